/* The lock protocol: what one agent does at one event. `crates/chain/src/lock.rs` is the same in Rust, and
 * `crates/chain/tests/lock_model.rs` replays every reaction that Spin has taken (lock.transitions) there.
 *
 * An agent keeps, for the subsession to its right, a lock state and whose request it is for; the request that it holds back while
 * a request of its own is undecided; the request whose right anchor it is; and for each left anchor the latest epoch heard of.
 *
 * Who includes this gives NONE, LEFT, RIGHT and EPOCH of a request, SLOT (of its left anchor, for `seen`), send_left and send_right,
 * and the inlines on_accepted, on_granted, on_refused, on_patience, on_ended and on_left, at which its properties look. */

mtype:lock = { UNLOCKED, PENDING, LOCKED, CANCELLING, RELEASING }
mtype:message = { REQUEST, ACK, NACK, HELD, CANCEL, CANCELLED, RELEASE, RELEASED }

mtype:lock st[N] = UNLOCKED;
byte own[N] = NONE;
byte kept[N] = NONE;
byte anchored[N] = NONE;
byte seen[N * SLOTS];

#define SEEN(a, r) seen[(a) * SLOTS + SLOT(r)]

#ifdef TRAP_NO_EPOCH
#define IS_NEW(a, r) (own[a] != r && kept[a] != r && anchored[a] != r)
#else
#define IS_NEW(a, r) (EPOCH(r) > SEEN(a, r))
#endif

inline say_held(a, r)
{
#ifndef TRAP_NO_HELD
	send_left(a, HELD, r);
#else
	skip
#endif
}

/* The subsession is free, and a request that was held back for it goes on. */
inline unlock(a)
{
	if
	:: kept[a] == NONE ->
		st[a] = UNLOCKED;
		own[a] = NONE
	:: kept[a] != NONE ->
#ifdef TRAP_NACK_HELD
		st[a] = UNLOCKED;
		own[a] = NONE;
		send_left(a, NACK, kept[a]);
#else
		st[a] = PENDING;
		own[a] = kept[a];
		send_right(a, REQUEST, kept[a]);
#endif
		kept[a] = NONE
	fi
}

/* A left anchor is told to lock. */
inline on_start(a, r)
{
	SEEN(a, r) = EPOCH(r);
	st[a] = PENDING;
	own[a] = r;
	send_right(a, REQUEST, r);
}

/* Its attempts are spent, or the new path has failed. */
inline on_abort(a, r)
{
	st[a] = CANCELLING;
	send_right(a, CANCEL, r);
}

/* All that was sent on the old path is acknowledged. */
inline on_complete(a, r)
{
	st[a] = RELEASING;
	send_right(a, RELEASE, r);
}

/* No answer has come in time: the message that waits for one goes again. */
inline on_timer(a, r)
{
	if
	:: st[a] == PENDING    -> send_right(a, REQUEST, r);
	:: st[a] == CANCELLING -> send_right(a, CANCEL, r);
	:: st[a] == RELEASING  -> send_right(a, RELEASE, r);
	fi
}

/* From the left. */
inline on_request(a, r)
{
	if
	:: IS_NEW(a, r) ->
		SEEN(a, r) = EPOCH(r);
		if
		:: RIGHT(r) == a ->
			assert(anchored[a] == NONE);
			anchored[a] = r;
			on_accepted(a, r);
			send_left(a, ACK, r);
		:: RIGHT(r) != a && next[a] == NONE ->
			send_left(a, NACK, r);
		:: RIGHT(r) != a && next[a] != NONE && st[a] == UNLOCKED ->
			st[a] = PENDING;
			own[a] = r;
			send_right(a, REQUEST, r);
		:: RIGHT(r) != a && next[a] != NONE && (st[a] == PENDING || st[a] == CANCELLING) ->
			/* Only the left anchor of an undecided request is ever asked for another. */
			assert(LEFT(own[a]) == a && kept[a] == NONE);
			kept[a] = r;
			say_held(a, r);
		:: RIGHT(r) != a && next[a] != NONE && (st[a] == LOCKED || st[a] == RELEASING) ->
#ifndef TRAP_BUSY_SILENT
			send_left(a, NACK, r);
#else
			skip
#endif
		fi
	:: !IS_NEW(a, r) && EPOCH(r) == SEEN(a, r) ->
		if
		:: anchored[a] == r ->
			send_left(a, ACK, r);
		:: own[a] == r ->
			send_right(a, REQUEST, r);
		:: kept[a] == r ->
			say_held(a, r);
		:: own[a] != r && kept[a] != r && anchored[a] != r ->
			/* It has ended here, and the left has not heard so. */
#if !defined(TRAP_NACK_ONCE) && !defined(TRAP_BUSY_SILENT)
			send_left(a, NACK, r);
#else
			skip
#endif
		fi
	:: !IS_NEW(a, r) && EPOCH(r) < SEEN(a, r) ->
		skip
	fi
}

/* From the right. */
inline on_ack(a, r)
{
	if
	:: own[a] == r && st[a] == PENDING ->
		st[a] = LOCKED;
		if
		:: LEFT(r) == a ->
			on_granted(a, r);
			if
			:: kept[a] != NONE ->
				send_left(a, NACK, kept[a]);
				kept[a] = NONE
			:: else -> skip
			fi
		:: LEFT(r) != a ->
			assert(kept[a] == NONE);
			send_left(a, ACK, r);
		fi
	:: own[a] == r && st[a] == LOCKED && LEFT(r) != a ->
		send_left(a, ACK, r);
	:: else ->
		/* Acknowledged before, being given back, or ended. */
		skip
	fi
}

inline on_nack(a, r)
{
	if
	:: own[a] == r && st[a] == PENDING ->
		if
		:: LEFT(r) == a ->
			on_refused(a, r);
#ifdef TRAP_PENDING_FOREVER
			skip
#else
			unlock(a);
#endif
		:: LEFT(r) != a ->
			unlock(a);
			send_left(a, NACK, r);
		fi
	:: else ->
		/* Ended, or being given back, which has an answer of its own. */
		skip
	fi
}

inline on_held(a, r)
{
	if
	:: own[a] == r && st[a] == PENDING ->
		if
		:: LEFT(r) == a -> on_patience(a, r);
		:: LEFT(r) != a -> send_left(a, HELD, r);
		fi
	:: else -> skip
	fi
}

/* From the left: CANCEL is answered by CANCELLED, RELEASE by RELEASED. */
inline on_give_back(a, r, message, answer)
{
	if
	:: EPOCH(r) >= SEEN(a, r) ->
		/* A request that comes after this is known to be dead. */
#ifndef TRAP_NO_TOMBSTONE
		SEEN(a, r) = EPOCH(r);
#endif
		if
		:: anchored[a] == r ->
			anchored[a] = NONE;
			send_left(a, answer, r);
		:: own[a] == r ->
			send_right(a, message, r);
#ifdef TRAP_UNLOCK_ON_CANCEL
			if
			:: LEFT(r) != a ->
				unlock(a);
				send_left(a, answer, r);
			:: else -> skip
			fi
#endif
		:: kept[a] == r ->
			kept[a] = NONE;
			send_left(a, answer, r);
		:: own[a] != r && kept[a] != r && anchored[a] != r ->
			send_left(a, answer, r);
		fi
	:: EPOCH(r) < SEEN(a, r) ->
		skip
	fi
}

/* From the right: all further right have given back what they held for this request. */
inline on_given_back(a, r, phase, answer)
{
	if
	:: own[a] == r && LEFT(r) == a && st[a] == phase ->
		on_ended(a, r);
#ifndef TRAP_ABORT_KEEPS_LOCK
		unlock(a);
#endif
	:: own[a] == r && LEFT(r) != a ->
		unlock(a);
		/* Who is between the anchors of what is complete is out of the chain at once: a request of its own would have nowhere to go. */
		if
#ifndef TRAP_LINGERS
		:: answer == RELEASED -> on_left(a);
#endif
		:: else -> skip
		fi;
		send_left(a, answer, r);
	:: else -> skip
	fi
}

inline on_message(a, message, r)
{
	if
	:: message == REQUEST   -> on_request(a, r);
	:: message == ACK       -> on_ack(a, r);
	:: message == NACK      -> on_nack(a, r);
	:: message == HELD      -> on_held(a, r);
	:: message == CANCEL    -> on_give_back(a, r, CANCEL, CANCELLED);
	:: message == CANCELLED -> on_given_back(a, r, CANCELLING, CANCELLED);
	:: message == RELEASE   -> on_give_back(a, r, RELEASE, RELEASED);
	:: message == RELEASED  -> on_given_back(a, r, RELEASING, RELEASED);
	fi
}
