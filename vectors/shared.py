"""Vectors of what all flows share: rules T1 to T7 and N1."""

from events import refused
from flows import flow
from kit import *


def turns(*most):
    return {"turns": [{"name": f"turns{number}", "most": count} for number, count in enumerate(most)]}


WORD = F(CURRENT, "udp.word_1")
TOLD = lambda number, rank: udp(number, rank.to_bytes(4, "big"))
RANKED = flow(max=8) | turns(8) | {"rows": [row(0, PACKET, ask(WORD, 10), note(WAITING())), row(0, turn(0), note(WAITING()), note(100))]}


def turned(at, flows):
    """What a flow of `RANKED` tells that asks at an instant and has its turn at another."""
    return [noted(1, flows), noted(0, at), noted(100, at)]


vector(
    "T05-order", "T1 T2 T5 T6", "The least rank is first, of equal ranks who asked first; a turn is a cost behind the one before. Who comes in between is as good as others.",
    RANKED, [frame(0, "a", TOLD(1, 7)), frame(0, "b", TOLD(2, 5)), frame(0, "c", TOLD(3, 7)), frame(0, "d", TOLD(4, 9)), frame(15, "e", TOLD(5, 8)), fire(100)],
    flows={"a": turned(10, 0), "b": turned(0, 0), "c": turned(20, 0), "d": turned(40, 0), "e": turned(30, 15)}, due=None,
)
vector(
    "T05-negative-rank", "T5", "Ranks are signed.",
    turns(8) | {"registers": registers("rank"), "rows": [row(0, PACKET, compute("sub", 0, WORD, C(5)), ask(R(0), 10)), row(0, turn(0), note(R(0)))]},
    [frame(0, "a", TOLD(1, 5)), frame(0, "b", TOLD(2, 4)), frame(0, "c", TOLD(3, 6)), fire(100)],
    flows={"a": [noted(0, 10)], "b": [noted(-1, 0)], "c": [noted(1, 20)]},
)
vector(
    "T05-late", "T5 E4", "A platform that is late changes nothing: turns have their own time. A turn uses itself up where no row waits for it.",
    {"states": states("start", "deaf"), **turns(8), "rows": [
        row(0, PACKET, ask(WORD, 10)), row(0, turn(0), note(1), ask(5, 10), next=1), row(1, ENTER, note(2)), row(1, PACKET, note(WAITING()))]},
    [frame(0, "a", TOLD(1, 5)), fire(90), frame(91, "a", TOLD(1, 5))], flows={"a": [noted(1), noted(2), noted(0, 91)]}, due=None,
)
vector(
    "T03-asks-again", "T3", "Asked again with its rank, a flow keeps its place and has the new cost; with another rank it stands where that is, behind those that are there.",
    turns(8) | {
        "registers": registers("asked"), "conditions": [test("eq", R(0), C(0)), test("eq", WORD, C(3))],
        "rows": [
            row(0, PACKET, ask(5, 10), put(0, C(1)), when=[(0, True)]), row(0, PACKET, ask(7, 10), ask(5, 10), when=[(1, True)]), row(0, PACKET, ask(5, 30)),
            row(0, turn(0), note(1)),
        ],
    },
    [frame(at, name, TOLD(number, told)) for at, told, names in ((0, 0, "zabc"), (1, 9, "a"), (2, 3, "b")) for name, number in ((name, "zabc".index(name) + 1) for name in names)] + [fire(100)],
    flows={"z": [noted(1, 0)], "a": [noted(1, 10)], "c": [noted(1, 40)], "b": [noted(1, 50)]},
)
vector(
    "T04-withdraw", "T4 T1", "Who withdraws has no turn; who does not wait can withdraw, too.",
    turns(8) | {
        "conditions": [test("eq", WORD, C(1))],
        "rows": [row(0, PACKET, withdraw(), note(WAITING()), when=[(0, True)]), row(0, PACKET, note(WAITING()), ask(5, 10)), row(0, turn(0), note(9))],
    },
    [frame(0, "a", TOLD(1, 0)), frame(1, "b", TOLD(2, 0)), frame(1, "c", TOLD(3, 0)), frame(2, "b", TOLD(2, 1)), frame(3, "b", TOLD(2, 1)), fire(50)],
    flows={"a": [noted(0), noted(9)], "b": [noted(0, 1), noted(0, 2), noted(0, 3)], "c": [noted(0, 1), noted(9, 10)]}, due=None,
)
vector(
    "T02-full", "T2 T3 T7", "No more than so many wait; those that do may ask again. When one goes, in whatever way, there is a place.",
    turns(2) | {"conditions": [test("eq", WORD, C(1))], "rows": [row(0, PACKET, DELETE, when=[(0, True)]), row(0, PACKET, ask(WORD, 10), note(WAITING())), row(0, turn(0), note(9))]},
    [frame(0, "z", TOLD(9, 2)), *(frame(1, name, TOLD(number, rank)) for name, number, rank in (("a", 1, 5), ("b", 2, 6), ("c", 3, 4), ("a", 1, 7), ("b", 2, 1), ("c", 3, 4))), fire(100)],
    flows={"z": [noted(1), noted(9)], "a": [noted(1, 1), noted(1, 1), noted(9, 20)], "b": [noted(1, 1), ENDED], "c": [noted(0, 1), noted(1, 1), noted(9, 10)]}, drops={"turns_full": 1},
)
vector(
    "T06-cost", "T6", "A cost below 1 ns is 1, one above 2^32 - 1 is that; nothing is saved up while nobody waits.",
    flow(max=8) | turns(8) | {"registers": registers("cost"), "rows": [
        row(0, PACKET, compute("sub", 0, WORD, C(1)), compute("mul", 0, R(0), C(1 << 32)), ask(0, R(0))), row(0, turn(0), note(1))]},
    [frame(0, "a", TOLD(1, 0)), frame(0, "b", TOLD(2, 1)), frame(0, "c", TOLD(3, 2)), frame(0, "d", TOLD(4, 1)), fire(100), frame(1 << 33, "e", TOLD(5, 1)), frame(1 << 33, "f", TOLD(6, 1)), fire(1 << 34)],
    flows={name: [noted(1, at)] for name, at in zip("abcdef", (0, 1, 2, (1 << 32) + 1, 1 << 33, (1 << 33) + 1))},
)
vector(
    "T07-one-instant", "T7 E1 E3", "At one instant timers come first, those that turns set included; then turns, in the order in which they are declared; then what expires.",
    flow(expire=10) | turns(8, 8) | {
        "timers": timers(first=[], second=[]),
        "rows": [
            row(0, PACKET, arm(0, 10), ask(1, 10), ask(2, 10, turns=1)),
            row(0, turn(0), note(1), arm(1, 0)), row(0, turn(1), note(2)), row(0, timer(0), note(3), ask(1, 1), ask(1, 1, turns=1)), row(0, timer(1), note(4)), row(0, EXPIRE, note(5)),
        ],
    },
    [frame(0, "a", udp(1)), fire(100)],
    flows={"a": [noted(1), noted(4), noted(2), noted(3, 10), noted(1, 10), noted(4, 10), noted(2, 10), noted(5, 10), ENDED]}, due=None,
)
vector(
    "T07-gone", "T7 F8 F16", "Deleted, evicted, expired or given up, an instance waits no more; the same flow begins without a place.",
    flow(max=2, when_full="evict_oldest") | turns(8) | {"states": states("start", "short", short=20), "rows": [
        row(0, PACKET, ask(WORD, 50), note(WAITING()), next=1), row(0, turn(0), note(8)), row(1, PACKET, note(WAITING())), row(1, turn(0), note(9))]},
    [frame(0, "a", TOLD(1, 5)), frame(0, "b", TOLD(2, 6)), fire(1), frame(2, "c", TOLD(3, 7)), frame(3, "d", TOLD(1, 6)), {"flow": "d", "delete": True}, fire(200)],
    flows={"a": [noted(1), noted(9), ENDED], "b": [noted(1), ENDED], "c": [noted(1, 2), ENDED], "d": [noted(1, 3)]}, due=None, counters={"flows_evicted": 2, "flows_expired": 1},
)
vector(
    "F13-held-by-a-turn", "F13 F14 F7 T5", "An instance that waits for a turn is held; a turn counts for no activity: idle long enough, it expires at that instant.",
    flow(expire=10, hold=True) | turns(8) | {"rows": [row(0, PACKET, ask(WORD, 50)), row(0, turn(0), note(1)), row(0, EXPIRE, note(2))]},
    [frame(0, "a", TOLD(1, 5)), frame(0, "b", TOLD(2, 6)), fire(200)], flows={"a": [noted(1), noted(2, 10), ENDED], "b": [noted(1, 50), noted(2, 50), ENDED]}, due=None,
)
refused("T02-nobody-may-wait", "T2", "Turns for which nobody may wait.", turns(0), "turns[0].most")
refused("T02-no-such-turns", "T2", "Turns that are not there.", turns(1) | {"rows": [row(0, PACKET, ask(1, 1, turns=1))]}, "rows[0].operations[0].turns")
refused("T05-no-such-event", "T5", "An event of turns that are not there.", turns(1) | {"rows": [row(0, turn(1), note(1))]}, "rows[0].event.turn")
refused("T01-no-such-waiting", "T1", "Waiting for turns that are not there.", turns(1) | {"rows": [row(0, PACKET, note(WAITING(1)))]}, "rows[0].operations[0].value.environment.waiting")


# Tallies.


def TALLY(number=0):
    return {"environment": {"tally": number}}


def tally(name, states=(), timers=()):
    return {"name": name} | ({"states": list(states)} if states else {}) | ({"timers": list(timers)} if timers else {})


GOES = {"states": states("start", "half", "whole"), "tallies": [tally("half", [1]), tally("open", [1, 2])]}
TALLIES = (note(TALLY(0)), note(TALLY(1)))
vector(
    "N01-flows", "N1 E10", "Flows are counted in the states in which they are: in the new one before `enter`, in the old one in `exit`.",
    GOES | {"rows": [row(0, PACKET, *TALLIES, next=1), row(1, ENTER, *TALLIES), row(1, PACKET, *TALLIES, next=2), row(1, EXIT, *TALLIES), row(2, ENTER, *TALLIES)]},
    [frame(0, "a", udp(1)), frame(1, "b", udp(2)), frame(2, "a", udp(1))],
    flows={"a": [noted(v) for v in (0, 0, 1, 1)] + [noted(v, 2) for v in (2, 2, 2, 2, 1, 2)], "b": [noted(v, 1) for v in (1, 1, 2, 2)]},
)
vector(
    "N01-flows-go", "N1 F4 F5 F8 F16", "A provisional instance counts, and one that is deleted until its event is over; evicted, deleted or expired ones count no more.",
    flow(max=2, when_full="evict_oldest") | {"states": states("start", "short", short=10), "tallies": [tally("all", [0, 1])], "conditions": [test("eq", WORD, C(9))], "rows": [
        row(0, PACKET, DELETE, note(TALLY()), when=[(0, True)]), row(0, PACKET, note(TALLY()), next=1), row(1, PACKET, note(TALLY())), row(1, EXPIRE, note(TALLY()))]},
    [frame(0, "x", TOLD(9, 9)), frame(0, "a", TOLD(1, 0)), frame(1, "b", TOLD(2, 0)), frame(2, "c", TOLD(3, 0)), frame(3, "c", TOLD(3, 0)), {"flow": "b", "delete": True}, frame(4, "c", TOLD(3, 0)), fire(30), frame(40, "d", TOLD(4, 0))],
    flows={"x": [noted(1), ENDED], "a": [noted(1), ENDED], "b": [noted(2, 1)], "c": [noted(3, 2), noted(2, 3), noted(1, 4), noted(1, 14), ENDED], "d": [noted(1, 40)]}, counters={"flows_evicted": 1},
)
vector(
    "N01-settings", "N1 E13 E16", "Settings are counted that are pending: from their operation on, until their event begins or they are cancelled, or their instance is gone.",
    {
        "timers": timers(one=["number"], two=[]), "tallies": [tally("ones", timers=[0]), tally("both", timers=[1, 0])],
        "conditions": [test("eq", WORD, C(1)), test("eq", WORD, C(2))],
        "rows": [
            row(0, PACKET, cancel(0, (0, "eq", C(1))), *TALLIES, when=[(0, True)]), row(0, PACKET, DELETE, *TALLIES, when=[(1, True)]),
            row(0, PACKET, *TALLIES, arm(0, 10, C(1)), arm(0, 20, C(2)), arm(1, 10), *TALLIES), row(0, timer(0), *TALLIES), row(0, timer(1), *TALLIES),
        ],
    },
    [frame(0, "a", TOLD(1, 0)), frame(1, "b", TOLD(2, 0)), frame(2, "b", TOLD(2, 1)), fire(15), frame(16, "b", TOLD(2, 2)), frame(17, "c", TOLD(3, 2))],
    flows={
        "a": [noted(v) for v in (0, 0, 2, 3)] + [noted(v, 10) for v in (2, 4)] + [noted(v, 10) for v in (2, 3)],
        "b": [noted(v, 1) for v in (2, 3, 4, 6)] + [noted(v, 2) for v in (3, 5)] + [noted(v, 11) for v in (2, 2)] + [noted(v, 16) for v in (2, 2)] + [ENDED],
        "c": [noted(1, 17), noted(1, 17), ENDED],
    },
)
refused("N01-no-such-tally", "N1", "A tally that is not there.", {"rows": [row(0, PACKET, note(TALLY()))]}, "rows[0].operations[0].value.environment.tally")
refused("N01-no-such-state", "N1", "A tally of a state that is not there.", {"tallies": [tally("t", [1])]}, "tallies[0].states[0]")
refused("N01-no-such-timer", "N1", "A tally of a timer that is not there.", {"tallies": [tally("t", timers=[0])]}, "tallies[0].timers[0]")
refused("N01-counted-twice", "N1", "A state that is listed twice.", {"tallies": [tally("t", [0, 0])]}, "tallies[0].states[1]")
