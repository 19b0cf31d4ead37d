/* Who may reconfigure which segment: left anchors contend for locks on subsessions of one chain. See docs/chains-models.md.
 *
 * Agents 0 .. N-1 stand in a line. Request r is for the segment from agent LEFT(r) to agent RIGHT(r). SHAPE says how segments lie;
 * each left anchor may ask ROUNDS times. Two networks:
 *
 *   -DNET_SET   a link is the set of messages that were ever sent over it: each of them may arrive at any time, in any
 *               order, any number of times, or never. Nothing needs to be sent again, and there are no timers. For safety.
 *   -DNET_FIFO  a queue before each agent, LOSSES messages may be lost, and who waits sends again once nothing of its request is
 *               on the way. Attempts are counted, and after LIMIT without any answer the request is cancelled (0: never). For liveness.
 *
 * Left out: what travels on the new path, here one step (on_complete), or a failure (-DFAILURES); data; deltas that requests
 * and acknowledgements carry; reasons of refusals; boxes that a reconfiguration inserts, which are fresh agents; ends of the
 * session and crashes (two_paths.pml). Boxes between the anchors leave the chain when
 * it completes.
 */

#ifndef SHAPE
#define SHAPE 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef REQUESTORS
#define REQUESTORS 3
#endif

#define NONE 255

#define PICK(r, x, y, z) (((r) % REQUESTORS) == 0 -> x : (((r) % REQUESTORS) == 1 -> y : z))
#define SLOT(r) ((r) % REQUESTORS)
#define SLOTS REQUESTORS
#define EPOCH(r) ((r) / REQUESTORS + 1)
#if SHAPE == 1
/* Nested. */
#define N 5
#define LEFT(r) PICK(r, 0, 1, 2)
#define RIGHT(r) PICK(r, 4, 3, 3)
#elif SHAPE == 2
/* Crossing. */
#define N 5
#define LEFT(r) PICK(r, 0, 1, 2)
#define RIGHT(r) PICK(r, 2, 3, 4)
#elif SHAPE == 3
/* Adjacent. */
#define N 5
#define LEFT(r) PICK(r, 0, 2, 3)
#define RIGHT(r) PICK(r, 2, 3, 4)
#elif SHAPE == 4
/* Equal: one left anchor has two requests for the same segment, the second when it is through with the first. */
#define N 5
#define LEFT(r) PICK(r, 0, 0, 1)
#define RIGHT(r) PICK(r, 3, 3, 3)
#undef SLOT
#define SLOT(r) PICK(r, 0, 0, 1)
#undef EPOCH
#define EPOCH(r) PICK(r, 1, 2, 1)
#elif SHAPE == 5
/* Disjoint. */
#define N 6
#define LEFT(r) PICK(r, 0, 2, 4)
#define RIGHT(r) PICK(r, 1, 3, 5)
#elif SHAPE == 6
/* Nested, and the right anchor of the inner request is not in the chain. */
#define N 4
#define LEFT(r) PICK(r, 0, 1, 2)
#define RIGHT(r) PICK(r, 2, 9, 3)
#elif SHAPE == 7
/* Two nested in four agents. */
#define N 4
#define LEFT(r) PICK(r, 0, 1, 2)
#define RIGHT(r) PICK(r, 3, 2, 3)
#elif SHAPE == 8
/* Two crossing in four agents. */
#define N 4
#define LEFT(r) PICK(r, 0, 1, 2)
#define RIGHT(r) PICK(r, 2, 3, 3)
#elif SHAPE == 9
/* Nested, with an agent between the left anchors. */
#define N 4
#define LEFT(r) PICK(r, 0, 2, 1)
#define RIGHT(r) PICK(r, 3, 3, 3)
#endif

#define REQUESTS (REQUESTORS * ROUNDS)
#define OVERLAP(p, r) (LEFT(p) < RIGHT(r) && LEFT(r) < RIGHT(p))

/* The neighbours of each agent in the chain. */
byte next[N];
byte previous[N];
bit gone[N];

/* One line for each reaction: the agent, whether the chain ends there, what it keeps, the event, what it does, what it keeps then.
 * In simulations, or with -DPRINTF for the compiler of the verifier. */
#ifdef LOG
inline note_request(r)
{
	if
	:: (r) == NONE -> printf(" -")
	:: else -> printf(" %d.%d.%d", LEFT(r), RIGHT(r), EPOCH(r))
	fi
}
#define NOTE(text) printf(text)
#define NOTE_STATE(a) \
	printf(" %d", st[a]); note_request(own[a]); note_request(kept[a]); note_request(anchored[a]); \
	for (slot : 0 .. SLOTS - 1) { if :: seen[(a) * SLOTS + slot] > 0 -> printf(" %d:%d", LEFT(slot), seen[(a) * SLOTS + slot]) :: else -> skip fi }; \
	slot = 0
#define NOTE_EVENT(a, event, r) printf("\n%d %d", a, next[a] == NONE); NOTE_STATE(a); printf(" | "); printf(event); note_request(r); printf(" |")
#define NOTE_MESSAGE(a, message, r) printf("\n%d %d", a, next[a] == NONE); NOTE_STATE(a); printf(" | %d", message); note_request(r); printf(" |")
#define NOTE_SENT(side, message, r) printf(side); printf("%d", message); note_request(r)
#define NOTE_AFTER(a) printf(" |"); NOTE_STATE(a); printf(" .\n")
#else
#define NOTE(text) skip
#define NOTE_EVENT(a, event, r) skip
#define NOTE_MESSAGE(a, message, r) skip
#define NOTE_SENT(side, message, r) skip
#define NOTE_AFTER(a) skip
#endif

/* The networks. */
#ifdef NET_SET
byte box[N * 8];
#define BOX(a, message) box[(a) * 8 + message - 1]
/* HELD is left out unless told, as it only changes the count of attempts, which this network does not have. */
#ifndef ALL_MESSAGES
#define ALL_MESSAGES 0
#endif
#define SEND(to, message, r) BOX(to, message) = BOX(to, message) | (message == HELD && !ALL_MESSAGES -> 0 : 1 << (r))
#else
#define CAPACITY 6
chan queue[N] = [CAPACITY] of { mtype:message, byte };
byte on_the_way[REQUESTS];
byte losses;
byte attempts[REQUESTS];
#define SEND(to, message, r) assert(nfull(queue[to])); on_the_way[r]++; queue[to]!message, r
#endif

inline send_left(a, message, r) { NOTE_SENT(" <", message, r); SEND(previous[a], message, r) }
inline send_right(a, message, r) { NOTE_SENT(" >", message, r); SEND(next[a], message, r) }

/* What has become of a request, and what the properties remember of it. */
mtype:fate = { IDLE, ASKED, GRANTED, CANCELS, DONE, REFUSED, ABORTED }
mtype:fate fate[REQUESTS] = IDLE;
bit accepted[REQUESTS];    /* by its right anchor, until it ends */
bit met[REQUESTS];         /* while it was undecided an overlapping one was accepted, or its right anchor was gone */
bit failed;
byte scratch;
#ifdef LOG
byte slot;
#endif
#ifdef NET_FIFO
bit tick;
#endif

inline on_accepted(a, r)
{
	NOTE(" accepted");
	accepted[r] = 1;
	for (scratch : 0 .. REQUESTS - 1) {
		if
		:: scratch != r && fate[scratch] == ASKED && OVERLAP(scratch, r) -> met[scratch] = 1
		:: else -> skip
		fi
	};
	scratch = 0
}

inline on_granted(a, r)
{
	NOTE(" granted");
	/* Granted segments never share a subsession, and all of this one are locked for it. */
	for (scratch : 0 .. REQUESTS - 1) {
		assert(scratch == r || fate[scratch] != GRANTED || !OVERLAP(scratch, r))
	};
	assert(fate[r] == ASKED && anchored[RIGHT(r)] == r);
	scratch = LEFT(r);
	do
	:: scratch != RIGHT(r) -> assert(st[scratch] == LOCKED && own[scratch] == r && !gone[scratch]); scratch = next[scratch]
	:: else -> break
	od;
	scratch = 0;
	fate[r] = GRANTED;
#ifdef TOGETHER
	/* To be found wrong: requests that don't overlap are granted at once. */
	assert(!(fate[0] == GRANTED && fate[1] == GRANTED && fate[2] == GRANTED))
#endif
}

inline on_refused(a, r)
{
	NOTE(" refused");
	/* Refused only for a reason. */
	assert(met[r] || failed || RIGHT(r) >= N || gone[RIGHT(r)]);
	fate[r] = REFUSED;
	settle(r)
}

inline on_ended(a, r)
{
	NOTE(" ended");
	/* Nothing of it is left to its right. What was deleted has left the chain. */
	scratch = next[a];
	do
	:: scratch == NONE -> break
	:: scratch != NONE ->
		assert(own[scratch] != r && kept[scratch] != r && anchored[scratch] != r);
		assert(fate[r] == CANCELS || scratch == RIGHT(r) || (st[scratch] == UNLOCKED && kept[scratch] == NONE && gone[scratch]));
		if
		:: scratch == RIGHT(r) -> break
		:: else -> skip
		fi;
		scratch = next[scratch]
	od;
	scratch = 0;
	if
	:: fate[r] == DONE -> next[a] = RIGHT(r); previous[RIGHT(r)] = a
	:: else -> fate[r] = ABORTED
	fi;
	settle(r)
}

/* It still answers what comes over the old path, but begins nothing. */
inline on_left(a)
{
	NOTE(" left");
	gone[a] = 1
}

/* What was asked before this ended knows of it; what is asked later has never met it. */
inline settle(r) { accepted[r] = 0; met[r] = 0 }

inline on_patience(a, r)
{
	NOTE(" patience");
#ifdef NET_FIFO
	attempts[r] = 0
#else
	skip
#endif
}

#include "lock_agent.pml"

/* What a left anchor is told from outside, or decides by its clock. */
#define MAY_START(a, r) (LEFT(r) == a && fate[r] == IDLE && st[a] == UNLOCKED && !gone[a] && EPOCH(r) == SEEN(a, r) + 1)

inline start(a, r)
{
	NOTE_EVENT(a, "START", r);
	fate[r] = ASKED;
	for (scratch : 0 .. REQUESTS - 1) {
		if
		:: scratch != r && accepted[scratch] && OVERLAP(scratch, r) -> met[r] = 1
		:: else -> skip
		fi
	};
	scratch = 0;
	on_start(a, r);
	NOTE_AFTER(a)
}

inline abort(a, r)
{
	NOTE_EVENT(a, "ABORT", r);
	failed = 1;
	fate[r] = CANCELS;
	on_abort(a, r);
	NOTE_AFTER(a)
}

inline complete(a, r)
{
	NOTE_EVENT(a, "COMPLETE", r);
	fate[r] = DONE;
	on_complete(a, r);
	NOTE_AFTER(a)
}

inline receive(a, message, r)
{
	NOTE_MESSAGE(a, message, r);
	on_message(a, message, r);
	NOTE_AFTER(a)
}

#define IS_OWN(a, r) (own[a] == r && LEFT(r) == a)

#ifdef NET_SET
#define ARRIVES(m, r) \
	:: d_step { BOX(a, m) & (1 << r) -> receive(a, m, r) }
#define EVENTS_OF(r) \
	:: d_step { MAY_START(a, r) -> start(a, r) } \
	:: d_step { IS_OWN(a, r) && (st[a] == PENDING || st[a] == LOCKED) -> abort(a, r) } \
	:: d_step { IS_OWN(a, r) && st[a] == LOCKED -> complete(a, r) } \
	ARRIVES(REQUEST, r) ARRIVES(ACK, r) ARRIVES(NACK, r) ARRIVES(HELD, r) \
	ARRIVES(CANCEL, r) ARRIVES(CANCELLED, r) ARRIVES(RELEASE, r) ARRIVES(RELEASED, r)

proctype agent(byte a)
{
end:	do
	EVENTS_OF(0)
	EVENTS_OF(1)
#if REQUESTS > 2
	EVENTS_OF(2)
#endif
#if REQUESTS > 3
	EVENTS_OF(3)
#endif
#if REQUESTS > 4
	EVENTS_OF(4)
	EVENTS_OF(5)
#endif
	od
}
#endif

#ifdef NET_FIFO
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef LIMIT
#define LIMIT 3
#endif

/* Once nothing of it is on the way: the clock is slower than the chain. NET_SET has clocks of any speed. */
#define OVERDUE(a, r) (IS_OWN(a, r) && st[a] != LOCKED && on_the_way[r] == 0)

#define EVENTS_OF(r) \
	:: d_step { MAY_START(a, r) -> start(a, r) } \
	MAY_FAIL(r) \
	MAY_COMPLETE(r) \
	:: d_step { OVERDUE(a, r) && (st[a] != PENDING || LIMIT == 0 || attempts[r] < LIMIT) -> \
		NOTE_EVENT(a, "TIMER", r); \
		if \
		:: st[a] == PENDING && LIMIT > 0 -> attempts[r]++ \
		:: else -> skip \
		fi; \
		on_timer(a, r); \
		NOTE_AFTER(a) } \
	:: d_step { OVERDUE(a, r) && st[a] == PENDING && LIMIT > 0 && attempts[r] == LIMIT -> \
		/* Patience ends only if messages were lost. */ \
		assert(losses >= LIMIT); \
		attempts[r] = 0; \
		abort(a, r) }

#ifdef HASTY
#define MAY_FAIL(r) :: d_step { IS_OWN(a, r) && (st[a] == PENDING || st[a] == LOCKED) -> abort(a, r) }
#elif defined(FAILURES)
#define MAY_FAIL(r) :: d_step { IS_OWN(a, r) && st[a] == LOCKED -> abort(a, r) }
#else
#define MAY_FAIL(r)
#endif
/* A closed window can keep both paths in use for ever. */
#ifdef STUCK
#define MAY_COMPLETE(r)
#else
#define MAY_COMPLETE(r) :: d_step { IS_OWN(a, r) && st[a] == LOCKED -> complete(a, r) }
#endif

/* A process each, as fairness is between processes: a clock runs out however many messages arrive. */
proctype left_anchor(byte a, r)
{
end:	do
	EVENTS_OF(r)
	od
}

proctype agent(byte a)
{
	mtype:message message;
	byte r;
end:	do
	:: d_step { queue[a]?message, r ->
		on_the_way[r]--;
		receive(a, message, r);
		message = REQUEST; r = 0 }
	:: d_step { losses < LOSSES && nempty(queue[a]) ->
		queue[a]?message, r;
		on_the_way[r]--;
		losses++;
		message = REQUEST; r = 0 }
	od
}

#define IS_FREE(a) (st[a] == UNLOCKED && kept[a] == NONE && anchored[a] == NONE)
#define ALL_FREE (IS_FREE(0) && IS_FREE(1) && IS_FREE(2) && IS_FREE(3))
#define IS_OVER(r) (fate[r] == DONE || fate[r] == REFUSED || fate[r] == ABORTED)

/* Each request is decided. */
ltl decided { [] (fate[0] == ASKED -> <> (fate[0] != ASKED)) && [] (fate[1] == ASKED -> <> (fate[1] != ASKED)) }
/* What is granted, and does not fail, completes, and is over at its left anchor. */
ltl completes { [] (fate[0] == GRANTED -> <> IS_OVER(0)) && [] (fate[1] == GRANTED -> <> IS_OVER(1)) }
/* In the end nothing is locked, held or anchored. */
ltl free { <> [] ALL_FREE }
/* Without failures somebody is served. */
ltl served { <> (fate[0] == GRANTED || fate[1] == GRANTED || failed) }
#endif

init {
	byte i;
	atomic {
		for (i : 0 .. N - 1) {
			next[i] = (i == N - 1 -> NONE : i + 1);
			previous[i] = (i == 0 -> NONE : i - 1)
		};
		for (i : 0 .. N - 1) { run agent(i) };
#ifdef NET_FIFO
		for (i : 0 .. REQUESTS - 1) { run left_anchor(LEFT(i), i) };
#endif
		i = 0
	}
#ifdef NET_FIFO
	/* Time passes also when nothing else does: Spin's fairness is about runs that never end. */
	;do :: tick = 1 - tick od
#endif
}
