/* Data on two paths: a session goes on while its anchors change from an old path to a new one. See docs/chains-models.md.
 *
 * Side 0 is left, side 1 right. Each has an end host and its anchor; the boxes of a path are one queue in each direction, and shift
 * numbers by the deltas D_LR and D_RL. Numbers are modulo 16, begin just below the wrap, and each segment has one byte or none; the last byte
 * of each side, TOTAL - 1, is its FIN. `mark` is which byte it really is. It begins with the lock granted (lock.pml).
 *
 * ROUNDS reconfigurations follow each other; the queue of a path that is released keeps what is in it, and comes back as the next
 * new path. -DCANCELS: the left anchor gives up a new path once, and tries again.
 * LOSSES, DUPLICATES and SPURIOUS (retransmissions) may happen, LOSSES also between host and anchor.
 * -DRESETS: the left host resets once, at any time; -DCRASHES=s: the anchor of side s loses its memory once.
 *
 * Left out: segments of several bytes, and so their splitting at the cut-off; SACK blocks; windows other than of two segments; that the
 * release takes messages (lock.pml has them); reordering within a path; the arithmetic of time stamps that carry a beta: a segment has it or not.
 */

#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef TOTAL_L
#define TOTAL_L 3
#endif
#ifndef TOTAL_R
#define TOTAL_R 3
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef DUPLICATES
#define DUPLICATES 0
#endif
#ifndef SPURIOUS
#define SPURIOUS 0
#endif

#define D_LR 5
#define D_RL 11
#define DELTA_TO(s) ((s) == 0 -> D_RL : D_LR)
#define START(s) ((s) == 0 -> 14 : 15)
#define TOTAL(s) ((s) == 0 -> TOTAL_L : TOTAL_R)
#define UNKNOWN 16

/* Modulo 16: from a to b, and whether a is before b. */
#define FROM_TO(a, b) (((b) - (a)) & 15)
#define BEFORE(a, b) (FROM_TO(a, b) != 0 && FROM_TO(a, b) < 8)
#define MINIMUM(a, b) (BEFORE(a, b) -> (a) : (b))

mtype = { SYN, SYN_ACK, SEGMENT, RESET }
/* kind, epoch, number, length, acknowledgment, beta or UNKNOWN, whether the other beta is known, mark */
chan way[4] = [5] of { mtype, byte, byte, bit, byte, byte, bit, byte }
#define WAY(x, s) way[(x) * 2 + (s)]

/* End hosts: next number to send, oldest not acknowledged, next expected; how many bytes were got; an acknowledgment is due. */
byte sends[2], unacked[2], expects[2], got[2];
bit due[2];
bit host_closed[2];
bit deaf;                  /* what is handed to the host now is lost */

/* Anchors. On one path, waiting for the new one, on two, or closed. */
mtype:phase = { ONE, WAITS, TWO, CLOSED }
mtype:phase phase[2] = ONE;
bit current[2];            /* the old path while there are two */
byte epoch[2];
byte sent[2];              /* highest number sent, plus one */
byte acked[2];             /* highest acknowledgment from the other side */
byte acks[2];              /* highest acknowledgment that the host has given */
byte base[2];              /* `sent` when the new path was begun: where its numbers begin */
byte cut[2];               /* `sent` when the new path was taken: older bytes belong to the old path */
byte cut_of_peer[2] = UNKNOWN;
byte base_of_peer[2];
bit peer_knows[2];         /* the beta */
byte out_by[4], in_by[4];  /* what each anchor subtracts and adds, for each path */

/* What boxes on a path have seen: the highest number of each direction, plus one, and the number it began with. */
byte top[4], origin[4];
byte losses, duplicates, spurious, rounds, cancels, resets, crashes;
byte x, y, z, n, a, k;

/* Two segments in each direction of a path; answers of anchors find room. */
#define READY(s) (len(WAY(0, s)) < 2 && len(WAY(1, s)) < 2)
#define QUIET (empty(way[0]) && empty(way[1]) && empty(way[2]) && empty(way[3]) && !due[0] && !due[1])
#define HAS_ALL(s) (got[s] == TOTAL(1 - s) && FROM_TO(START(s), unacked[s]) == TOTAL(s))

/* The other side has acknowledged this byte, and the host has missed that. */
#ifdef TRAP_OLD_ON_NEW
#define IS_KNOWN(s, number) (phase[s] == TWO && BEFORE(number, acked[s]))
#else
#define IS_KNOWN(s, number) BEFORE(number, acked[s])
#endif

inline put(s, path, what, first, size, up_to, shift, told, which)
{
	assert(nfull(WAY(path, s)));
	WAY(path, s)!what, epoch[s], (first) & 15, size, (up_to) & 15, shift, told, which
}

/* A segment enters a path. The boxes on it see numbers without gaps, and acknowledge nothing that they have not seen. */
inline emit(s, path, number, length, ack, mark)
{
	n = ((number) - out_by[(path) * 2 + (s)]) & 15;
	a = ((ack) - in_by[(path) * 2 + (s)]) & 15;
	assert(!BEFORE(top[(path) * 2 + (s)], n) && !BEFORE(n, origin[(path) * 2 + (s)]));
	if
	:: (path) != current[s] ->
		assert(!BEFORE((top[(path) * 2 + 1 - (s)]), a));
	:: else -> skip
	fi;
	if
	:: length && !BEFORE(n, top[(path) * 2 + (s)]) -> top[(path) * 2 + (s)] = (n + 1) & 15
	:: else -> skip
	fi;
	if
	:: (path) != current[s] && !peer_knows[s] ->
		put(s, path, SEGMENT, n, length, a, FROM_TO(base[s], cut[s]), cut_of_peer[s] != UNKNOWN, mark);
	:: (path) != current[s] && peer_knows[s] ->
		put(s, path, SEGMENT, n, length, a, UNKNOWN, cut_of_peer[s] != UNKNOWN, mark);
	:: (path) == current[s] ->
		put(s, path, SEGMENT, n, length, a, UNKNOWN, 0, mark);
	fi
}

/* To the host: what it must not see is an error. */
inline deliver(s, number, length, ack, mark)
{
	assert(!BEFORE(sends[s], ack) && !BEFORE(ack, unacked[s]));
	assert(FROM_TO(START(s), ack) <= got[1 - s]);
	unacked[s] = ack;
	if
	:: length && (number) == expects[s] ->
		assert(mark == got[s]);
		got[s]++;
		expects[s] = (expects[s] + 1) & 15;
		due[s] = 1
	:: length && (number) != expects[s] ->
		/* Again, or early: the new path may be the faster. This host keeps nothing that is early. */
		due[s] = 1
	:: !length -> skip
	fi
}

inline close_host(s) { host_closed[s] = 1; due[s] = 0 }

inline hand(s, number, length, mark)
{
	if
	:: !host_closed[s] && !deaf -> deliver(s, number, length, acked[s], mark);
	:: else -> skip
	fi
}

/* What a segment on the new path acknowledges: at least its SYN, which is no byte of the session. */
inline new_ack(s, ack)
{
	if
	:: cut_of_peer[s] == UNKNOWN -> y = (base_of_peer[s] + in_by[(1 - x) * 2 + (s)]) & 15
	:: cut_of_peer[s] != UNKNOWN -> y = (BEFORE(ack, cut_of_peer[s]) -> cut_of_peer[s] : (ack))
	fi
}

/* A segment from the host: which path, or which two, it takes (section III.F). */
inline leave(s, number, length, ack, mark)
{
	x = current[s];
	if
	:: phase[s] == CLOSED -> close_host(s);
	:: phase[s] != CLOSED && length && IS_KNOWN(s, number) ->
		/* Answered here: the byte may belong to a path that is gone. */
		deliver(s, expects[s], 0, acked[s], 0);
	:: phase[s] != CLOSED && !(length && IS_KNOWN(s, number)) ->
		if
		:: phase[s] != TWO || cut_of_peer[s] == UNKNOWN -> k = 1
		/* Asks for a byte of the old path, or acknowledges one for the first time. */
#ifdef TRAP_NO_DUPLICATE_ACKS
		:: phase[s] == TWO && cut_of_peer[s] != UNKNOWN -> k = BEFORE(acks[s], MINIMUM(ack, cut_of_peer[s]))
#else
		:: phase[s] == TWO && cut_of_peer[s] != UNKNOWN -> k = BEFORE(ack, cut_of_peer[s]) || BEFORE(acks[s], cut_of_peer[s])
#endif
		fi;
		if
		:: phase[s] != TWO ->
			emit(s, x, number, length, ack, mark);
		:: phase[s] == TWO ->
			y = (cut_of_peer[s] == UNKNOWN -> (ack) : MINIMUM(ack, cut_of_peer[s]));
			if
			:: length && BEFORE(number, cut[s]) ->
				emit(s, x, number, 1, y, mark);
			:: length && !BEFORE(number, cut[s]) ->
				if
				:: k -> z = MINIMUM(sent[s], cut[s]); emit(s, x, z, 0, y, 0);
				:: else -> skip
				fi;
				new_ack(s, ack);
				emit(s, 1 - x, number, 1, y, mark);
			:: !length && k ->
				z = MINIMUM(sent[s], cut[s]); emit(s, x, z, 0, y, 0);
			:: else -> skip
			fi;
			if
			:: cut_of_peer[s] != UNKNOWN && !BEFORE(ack, cut_of_peer[s]) && (!length || (BEFORE(number, cut[s]) && BEFORE(cut_of_peer[s], ack))) ->
				z = (BEFORE(sent[s], cut[s]) -> cut[s] : sent[s]); emit(s, 1 - x, z, 0, ack, 0);
			:: else -> skip
			fi
		fi;
		if
		:: BEFORE(acks[s], ack) -> acks[s] = ack
		:: else -> skip
		fi;
		if
		:: length && !BEFORE(number, sent[s]) -> sent[s] = ((number) + 1) & 15
		:: else -> skip
		fi
	fi;
	x = 0; y = 0; z = 0; n = 0; a = 0; k = 0
}

/* Both ends of a new path are ready: its numbers begin at `base`, and what was sent since on the old path is the beta. */
inline take_new(s)
{
	x = current[s];
	phase[s] = TWO;
	cut[s] = sent[s];
#ifdef TRAP_NO_BETA
	out_by[(1 - x) * 2 + (s)] = 0;
#else
	out_by[(1 - x) * 2 + (s)] = FROM_TO(base[s], cut[s]);
#endif
	peer_knows[s] = 0
}

inline learn(s, beta)
{
	if
	:: (beta) != UNKNOWN ->
		cut_of_peer[s] = (base_of_peer[s] + (beta) + DELTA_TO(s)) & 15;
#ifdef TRAP_NO_BETA
		in_by[(1 - current[s]) * 2 + (s)] = DELTA_TO(s)
#elif defined(TRAP_NO_DELTA)
		in_by[(1 - current[s]) * 2 + (s)] = (beta) & 15
#else
		in_by[(1 - current[s]) * 2 + (s)] = ((beta) + DELTA_TO(s)) & 15
#endif
	:: else -> skip
	fi
}

/* Says the beta, with a segment that has no byte: nobody waits for data. */
inline introduce(s)
{
#ifndef TRAP_WAITS_FOR_DATA
	x = current[s];
	new_ack(s, acks[s]);
	if
	:: len(WAY(1 - x, s)) < 4 -> emit(s, 1 - x, cut[s], 0, y, 0);
	:: len(WAY(1 - x, s)) >= 4 -> skip /* It is said again. */
	fi;
#endif
	x = 0; y = 0; z = 0; n = 0; a = 0
}

/* The end of the session at this anchor; resets go on all paths that it uses. */
inline close(s)
{
	put(s, current[s], RESET, 0, 0, 0, UNKNOWN, 0, 0);
	if
	:: phase[s] == TWO -> put(s, 1 - current[s], RESET, 0, 0, 0, UNKNOWN, 0, 0);
	:: else -> skip
	fi;
	phase[s] = CLOSED;
	close_host(s)
}

inline arrive(s, path, kind, e, number, length, ack, beta, knows, mark)
{
	if
	:: phase[s] == CLOSED && kind != RESET ->
		/* Nothing is known of this session: the other side is told. */
		put(s, path, RESET, 0, 0, 0, UNKNOWN, 0, 0);
	:: phase[s] == CLOSED && kind == RESET -> skip
	:: phase[s] != CLOSED && kind == RESET -> phase[s] = CLOSED; close_host(s);
	:: phase[s] != CLOSED && kind == SYN ->
		if
		:: (path) != current[s] && phase[s] != TWO && e > epoch[s] ->
			epoch[s] = e;
			phase[s] = WAITS;
			base[s] = sent[s];
			base_of_peer[s] = number;
			cut_of_peer[s] = UNKNOWN;
			top[(path) * 2 + s] = base[s];
			origin[(path) * 2 + s] = base[s];
			put(s, path, SYN_ACK, base[s], 0, number, UNKNOWN, 0, 0);
		:: (path) != current[s] && phase[s] == WAITS && e == epoch[s] ->
			put(s, path, SYN_ACK, base[s], 0, number, UNKNOWN, 0, 0);
		:: else -> skip
		fi
	:: phase[s] != CLOSED && kind == SYN_ACK ->
		if
		:: s == 0 && phase[s] == WAITS && e == epoch[s] ->
			base_of_peer[s] = number;
			take_new(s);
			introduce(s);
		:: s == 0 && phase[s] == TWO && e == epoch[s] && !peer_knows[s] -> introduce(s);
		:: else -> skip
		fi
	:: phase[s] != CLOSED && kind == SEGMENT && (path) != current[s] ->
		if
		:: e == epoch[s] && phase[s] != ONE ->
			learn(s, beta);
			if
			:: phase[s] == WAITS -> assert(s == 1); take_new(s); introduce(s);
			:: else ->
				if
				:: (beta) != UNKNOWN && !length -> introduce(s);
				:: else -> skip
				fi
			fi;
			if
			:: knows -> peer_knows[s] = 1
			:: else -> skip
			fi;
			assert(cut_of_peer[s] != UNKNOWN);
			n = (number + in_by[(path) * 2 + s]) & 15;
			a = (ack + out_by[(path) * 2 + s]) & 15;
			if
#ifdef TRAP_ACK_OF_SYN
			:: BEFORE(acked[s], a) -> acked[s] = a
#else
			/* An acknowledgment of the SYN alone says nothing about the old path. */
			:: BEFORE(acked[s], a) && a != cut[s] -> acked[s] = a
#endif
			:: else -> skip
			fi;
			hand(s, n, length, mark);
		:: else -> skip
		fi
	:: phase[s] != CLOSED && kind == SEGMENT && (path) == current[s] ->
		n = (number + in_by[(path) * 2 + s]) & 15;
		a = (ack + out_by[(path) * 2 + s]) & 15;
		if
		:: BEFORE(acked[s], a) -> acked[s] = a
		:: else -> skip
		fi;
		if
		:: phase[s] == TWO && length && BEFORE(n, acks[s]) ->
			/* Acknowledged before, and that was lost on the old path: the host may have nothing to say there any more. */
#ifndef TRAP_NO_DUPLICATE_ACKS
			y = (cut_of_peer[s] == UNKNOWN -> acks[s] : MINIMUM(acks[s], cut_of_peer[s]));
			z = MINIMUM(sent[s], cut[s]); emit(s, path, z, 0, y, 0);
#else
			hand(s, n, length, mark);
#endif
		:: else -> hand(s, n, length, mark);
		fi
	fi;
	x = 0; y = 0; z = 0; n = 0; a = 0
}

#define KNOWS_CUT(s) (cut_of_peer[s] != UNKNOWN)
#define IS_DONE(s) (phase[s] == TWO && !BEFORE(acked[s], cut[s]) && KNOWS_CUT(s) && !BEFORE(acks[s], cut_of_peer[s]) && peer_knows[s])
/* The other has said so before it released: RELEASE and RELEASED of the lock protocol. */
#define MAY_RELEASE(s) (IS_DONE(s) && (IS_DONE(1 - s) || (phase[1 - s] == ONE && epoch[1 - s] == epoch[s])))

proctype host(byte s)
{
end:	do
	:: d_step { !host_closed[s] && FROM_TO(START(s), sends[s]) < TOTAL(s) && FROM_TO(unacked[s], sends[s]) < 2 && READY(s) ->
		due[s] = 0;
		sends[s] = (sends[s] + 1) & 15;
		leave(s, (sends[s] - 1) & 15, 1, expects[s], FROM_TO(START(s), (sends[s] - 1))) }
	:: d_step { !host_closed[s] && due[s] && READY(s) ->
		due[s] = 0;
		leave(s, sends[s], 0, expects[s], 0) }
	:: d_step { !host_closed[s] && unacked[s] != sends[s] && QUIET ->
		leave(s, unacked[s], 1, expects[s], FROM_TO(START(s), unacked[s])) }
	:: d_step { !host_closed[s] && unacked[s] != sends[s] && spurious < SPURIOUS && READY(s) ->
		spurious++;
		leave(s, unacked[s], 1, expects[s], FROM_TO(START(s), unacked[s])) }
	/* What the host sends never reaches its anchor. */
	:: d_step { losses < LOSSES && due[s] -> losses++; due[s] = 0 }
#ifdef RESETS
	:: d_step { s == 0 && resets == 0 && phase[s] != CLOSED && READY(s) -> resets = 1; close(s) }
#endif
	od
}

#define MESSAGE kind, e, number, length, ack, beta, knows, mark
#define TAKES(s, p) \
	:: d_step { nempty(WAY(p, 1 - s)) -> \
		WAY(p, 1 - s)?MESSAGE; arrive(s, p, MESSAGE); \
		kind = SYN; e = 0; number = 0; length = 0; ack = 0; beta = 0; knows = 0; mark = 0 } \
	:: d_step { losses < LOSSES && nempty(WAY(p, 1 - s)) -> losses++; \
		WAY(p, 1 - s)?MESSAGE; \
		kind = SYN; e = 0; number = 0; length = 0; ack = 0; beta = 0; knows = 0; mark = 0 } \
	:: d_step { losses < LOSSES && nempty(WAY(p, 1 - s)) -> losses++; deaf = 1; \
		WAY(p, 1 - s)?MESSAGE; arrive(s, p, MESSAGE); deaf = 0; \
		kind = SYN; e = 0; number = 0; length = 0; ack = 0; beta = 0; knows = 0; mark = 0 } \
	:: d_step { duplicates < DUPLICATES && nempty(WAY(p, 1 - s)) -> duplicates++; \
		WAY(p, 1 - s)?<MESSAGE>; arrive(s, p, MESSAGE); \
		kind = SYN; e = 0; number = 0; length = 0; ack = 0; beta = 0; knows = 0; mark = 0 }

proctype anchor(byte s)
{
	mtype kind;
	byte e, number, ack, beta, mark;
	bit length, knows;
end:	do
	TAKES(s, 0)
	TAKES(s, 1)
	/* The lock is granted once more. */
	:: d_step { s == 0 && phase[0] == ONE && phase[1] != TWO && rounds < ROUNDS && READY(0) ->
		rounds++;
		epoch[0]++;
		phase[0] = WAITS;
		base[0] = sent[0];
		cut_of_peer[0] = UNKNOWN;
		top[(1 - current[0]) * 2] = base[0];
		origin[(1 - current[0]) * 2] = base[0];
		put(0, 1 - current[0], SYN, base[0], 0, 0, UNKNOWN, 0, 0) }
#ifdef CANCELS
	:: d_step { s == 0 && phase[0] == WAITS && phase[1] != TWO && cancels == 0 -> cancels = 1; rounds--; phase[0] = ONE }
#endif
	/* Messages that nobody has answered. */
	:: d_step { s == 0 && phase[0] == WAITS && QUIET -> put(0, 1 - current[0], SYN, base[0], 0, 0, UNKNOWN, 0, 0) }
	:: d_step { phase[s] == TWO && !peer_knows[s] && QUIET -> introduce(s) }
	:: d_step { MAY_RELEASE(s) -> phase[s] = ONE; current[s] = 1 - current[s] }
#ifdef CRASHES
	:: d_step { s == CRASHES && crashes == 0 && phase[s] != CLOSED -> crashes = 1; phase[s] = CLOSED }
#endif
#if defined(CRASHES) || defined(RESETS)
	/* Heartbeats: who has heard nothing asks. */
	:: d_step { phase[s] != CLOSED && phase[1 - s] == CLOSED && QUIET -> put(s, current[s], SEGMENT, 0, 0, 0, UNKNOWN, 0, 0) }
	/* And an anchor without memory resets its own host. */
	:: d_step { phase[s] == CLOSED && !host_closed[s] -> close_host(s) }
#endif
	od
}

#define IS_CLEAN (HAS_ALL(0) && HAS_ALL(1) && rounds == ROUNDS && phase[0] == ONE && phase[1] == ONE && current[0] == current[1])
#define IS_RESET (phase[0] == CLOSED && phase[1] == CLOSED && host_closed[0] && host_closed[1])

/* Where nothing happens any more, all has arrived and the old path is free; or, after a reset, nobody is left. */
init {
	byte s;
	atomic {
		for (s : 0 .. 1) {
			sends[s] = START(s); unacked[s] = START(s); expects[s] = (START(1 - s) + DELTA_TO(s)) & 15;
			sent[s] = START(s); acked[s] = START(s); acks[s] = expects[s]; top[s] = START(s); origin[s] = START(s);
			in_by[s] = DELTA_TO(s)
		};
		for (s : 0 .. 1) { run host(s); run anchor(s) };
		s = 0
	};
	timeout -> assert((resets + crashes == 0 && IS_CLEAN) || (resets + crashes > 0 && IS_RESET))
}
