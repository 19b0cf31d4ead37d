"""Vectors of the rules E1 to E17, A1 to A6 and D1 to D5."""

from kit import *


def setting(at, flow, register, value):
    return {"at": at, "flow": flow, "set": {"register": register, "value": value}}


TICK = {"timers": timers(tick=[])}
notes(
    "E01-frames-before-timers", "E1 E2", "At one instant frames come before timers; what is due with an input waits for `fire`.",
    TICK | {"rows": [row(0, PACKET, note(1), arm(0, 10)), row(0, timer(0), note(2))]},
    [frame(0, "a", udp(1)), frame(10, "a", udp(1)), frame(10, "a", udp(1)), fire(10), frame(20, "a", udp(1))],
    [(1, 0), (1, 10), (1, 10), (2, 10), (1, 20)],
)
notes(
    "E02-time-goes-on", "E2", "An earlier time is that of the input before; after `fire` the next input is later.",
    {"rows": [row(0, PACKET, note(ENV("now")))]},
    [frame(10, "a", udp(1)), frame(3, "a", udp(1)), fire(20), frame(20, "a", udp(1)), frame(5, "a", udp(1))],
    [(10, 10), (10, 10), (21, 21), (21, 21)],
)
notes(
    "E02-behind-a-frame", "E1 E2", "A call or a change behind a frame of its instant is 1 ns later, and what was due with the frame has run before.",
    TICK | {"registers": registers("r"), "rows": [row(0, PACKET, note(1), arm(0, 0)), row(0, DATA, note(2), arm(0, 0)), row(0, SET, note(3)), row(0, timer(0), note(9))]},
    [frame(10, "a", udp(1)), {"at": 10, "flow": "a", "write": "78", "accepted": 1}, {"at": 10, "flow": "a", "write": "78", "accepted": 1}, setting(10, "a", "r", 1), fire(10)],
    [(1, 10), (9, 10), (2, 11), (2, 11), (9, 11), (9, 11), (3, 12)],
)
notes(
    "E02-by-port", "E1 E2", "Of two frames at one instant the one by the lesser port comes first; if it comes behind it is 1 ns later.",
    TICK | {"rows": [row(0, PACKET, note(ENV("now")), arm(0, 0)), row(0, timer(0), note(9))]},
    [frame(at, "a", udp(1), port=port) for at, port in ((5, 1), (5, 2), (5, 2), (5, 1), (4, 2), (5, 1))] + [fire(5)],
    [(5, 5)] * 3 + [(9, 5)] * 3 + [(6, 6)] * 2 + [(9, 6)] * 2 + [(7, 7), (9, 7)],
)
notes(
    "E02-in-order", "E1 E2", "A change, a call, a frame, and `fire` may have one time.",
    TICK | {"registers": registers("r"), "rows": [row(0, PACKET, note(1)), row(0, DATA, note(2), arm(0, 0)), row(0, SET, note(3)), row(0, timer(0), note(9))]},
    [frame(0, "a", udp(1)), setting(10, "a", "r", 1), {"at": 10, "flow": "a", "write": "78", "accepted": 1}, frame(10, "a", udp(1)), fire(10), fire(10),
     setting(10, "a", "r", 1)],
    [1, (3, 10), (2, 10), (1, 10), (9, 10), (3, 11)],
)
notes(
    "E02-what-was-due-before", "E2 E4", "An input runs what was due before it, each at its own time, but not what is due with it.",
    TICK | {"rows": [row(0, PACKET, note(1), arm(0, 5), arm(0, 20)), row(0, timer(0), note(ENV("now")))]},
    [frame(0, "a", udp(1)), frame(20, "a", udp(1))], [1, (5, 5), (1, 20)],
)
with_value = lambda delay, value: arm(0, delay, C(value))
notes(
    "E03-order-of-timers", "E3 E4", "Timers of one instant fire as they were set; one with a delay of 0 or less behind those already set. The platform is late.",
    {
        "timers": timers(a=["value"], b=[]),
        "rows": [row(0, PACKET, with_value(10, 1), arm(1, 10), with_value(10, 3), with_value(5, 4)), row(0, timer(0), note(EV(0))),
                 row(0, timer(1), note(2), with_value(-3, 5), with_value(0, 6))],
    },
    [frame(0, "a", udp(1)), fire(1000)], [(4, 5), (1, 10), (2, 10), (3, 10), (5, 10), (6, 10)],
)
notes(
    "E05-work-is-empty", "E5 E10", "Each event begins without a packet under construction: a packet's, `exit`, `enter`.",
    {"rows": [row(0, ENTER, note(HAS(WORK, "ipv4.ttl"))), row(0, PACKET, note(HAS(WORK, "ipv4.ttl")), copy(CURRENT, WORK), note(HAS(WORK, "ipv4.ttl")), next=0),
              row(0, EXIT, note(HAS(WORK, "ipv4.ttl")), copy(CURRENT, WORK))]},
    [frame(0, "a", udp(1)), frame(1, "a", udp(1))], [0, 0, 1, 0, 0] + [(v, 1) for v in (0, 1, 0, 0)],
)


def refused(name, rules, about, image, path):
    vector(name, rules, about, image, [], refused=path)


SCRATCH = {"registers": [register("t", scratch=True)], "internal_events": 1}
refused("E05-scratch-read-first", "E5", "A scratch register that is read before it is written.", SCRATCH | {"rows": [row(0, PACKET, note(R(0)), put(0, C(1)))]}, "rows[0]")
refused(
    "E05-scratch-on-every-way", "E5 E9", "A scratch register that only one of two ways to an internal event has written.",
    SCRATCH | {"rows": [row(0, PACKET, put(0, C(1)), raises=0), row(0, CLOSE, raises=0), row(0, internal(0), note(R(0)))]}, "rows[2]",
)
refused(
    "E05-scratch-begins-anew", "E5 E10", "What an event has written, `exit` has not.", SCRATCH | {"rows": [row(0, PACKET, put(0, C(1)), next=0), row(0, EXIT, note(R(0)))]}, "rows[1]",
)

notes(
    "E06-first-row", "E6", "The preparation runs first, the conditions see it, and the first row that matches is taken.",
    {
        "registers": [register("stored"), register("seen", scratch=True)], "preparations": [prepare(0, PACKET, put(1, R(0)))],
        "conditions": [test("gt", R(1), C(0))],
        "rows": [row(0, PACKET, compute("add", 0, R(0), C(1)), note(R(0)), when=[(0, False)]), row(0, PACKET, note(100), when=[(0, True)]), row(0, PACKET, note(200))],
    },
    [frame(at, "a", udp(1)) for at in (0, 1, 2)], [1, (100, 1), (100, 2)], counters={"rows": [1, 2, 0]},
)
notes(
    "E06-conditions-see-what-was-before", "E6", "Conditions are read before any operation: both of them see the register as it was.",
    {
        "registers": registers("r"), "conditions": [test("eq", R(0), C(0)), test("eq", R(0), C(1))],
        "rows": [row(0, PACKET, put(0, C(1)), note(1), when=[(0, True), (1, False)]), row(0, PACKET, put(0, C(0)), note(2), when=[(0, False), (1, True)])],
    },
    [frame(at, "a", udp(1)) for at in (0, 1, 2)], [1, (2, 1), (1, 2)],
)
vector(
    "E07-no-row", "E7", "A packet that no row takes is counted, a timer is not.",
    TICK | {"conditions": [test("eq", C(0), C(1))], "rows": [row(0, ENTER, arm(0, 1)), row(0, PACKET, when=[(0, True)])]},
    [frame(0, "a", udp(1)), fire(5)], flows={"a": []}, drops={"no_row": 1}, live=["a"],
)

# The way of one packet through internal events, `exit` and `enter`.
LED_ON = {
    "states": states("start", "middle", "end"), "internal_events": 2, "registers": [register("kept", scratch=True)],
    "rows": [
        row(0, PACKET, put(0, C(5)), copy(CURRENT, WORK), next=1, raises=0),
        row(0, internal(0), note(R(0)), note(EV(0)), note(HAS(WORK, "ipv4.ttl")), note(HAS(CURRENT, "ipv4.ttl")), next=2, raises=1),
        row(0, internal(1), note(20)),
        row(0, EXIT, note(30)),
        row(2, ENTER, note(HAS(WORK, "ipv4.ttl")), note(HAS(CURRENT, "ipv4.ttl")), note(EV(0)), note(40)),
        row(1, ENTER, note(-1)),
    ],
}
notes(
    "E08-the-last-next-wins", "E8 E9 E10 E5", "Internal events keep what the event has; the last `next` counts; `exit` and `enter` come behind them.",
    LED_ON, [frame(0, "a", udp(1))], [5, 1, 1, 1, 20, 30, 0, 1, 1, 40], final={"a": {"state": "end"}},
)
show = lambda kind, name, state, after, registers=None, at=0: {"at": at, "show": [kind, name, state, after, registers or {}]}
vector(
    "D05-records", "D5 E8 E9 E10", "The records of the same packet: each with the state that is pending behind it.",
    LED_ON, [frame(0, "a", udp(1))], debug=["event"],
    flows={"a": [
        show("event", "packet", "start", "middle"), *[noted(v) for v in (5, 1, 1, 1)], show("event", "internal 0", "start", "end"), noted(20),
        show("event", "internal 1", "start", "end"), noted(30), show("event", "exit", "start", "end"), *[noted(v) for v in (0, 1, 1, 40)],
        show("event", "enter", "end", "end"),
    ]},
)
vector(
    "E09-nobody-takes-it", "E9 E10 E7", "An internal event that no row takes ends the matter; the pending state is entered.",
    {"states": states("start", "next"), "internal_events": 1, "rows": [row(0, PACKET, next=1, raises=0)]},
    [frame(0, "a", udp(1))], flows={"a": []}, final={"a": {"state": "next"}},
)
notes(
    "E10-from-a-state-to-itself", "E10 F4", "A state is left and entered, also from itself.",
    {"rows": [row(0, ENTER, note(1)), row(0, EXIT, note(2)), row(0, PACKET, note(3), next=0)]}, [frame(0, "a", udp(1))], [1, 3, 2, 1],
)
notes(
    "E10-enter-leads-on", "E10", "`enter` may lead on to another state.",
    {"states": states("a", "b", "c"), "rows": [row(0, PACKET, next=1), row(1, ENTER, note(1), next=2), row(1, EXIT, note(2)), row(2, ENTER, note(3))]},
    [frame(0, "a", udp(1))], [1, 2, 3], final={"a": {"state": "c"}},
)
refused("E11-internal-events-go-up", "E11", "An internal event that raises itself.", {"internal_events": 1, "rows": [row(0, internal(0), raises=0)]}, "rows[0].raise")
refused("E11-exit-stays", "E11", "An `exit` that leads on.", {"rows": [row(0, EXIT, next=0)]}, "rows[0].next")
refused(
    "E11-enter-ends", "E11", "Two states whose `enter` lead to each other.",
    {"states": states("a", "b"), "rows": [row(0, ENTER, next=1), row(1, ENTER, next=0)]}, "rows",
)
refused("P15-fixed-fields", "P15", "A write to a field that says what the packet is.", {"rows": [row(0, PACKET, write(CURRENT, "ipv4.header_length", 6))]}, "rows[0].operations[0].field")

vector(
    "E12-delete", "E12 E13 F16", "The rest of the row runs, no state changes, and the other timer never fires.",
    TICK | {
        "states": states("start", "other"),
        "rows": [row(0, PACKET, arm(0, 5), arm(0, 7)), row(0, timer(0), DELETE, note(1), next=1), row(0, EXIT, note(2)), row(1, ENTER, note(3))],
    },
    [frame(0, "a", udp(1)), fire(100)], flows={"a": [noted(1, 5), ENDED]}, live=[], due=None,
)
vector(
    "E12-delete-in-exit", "E12", "Behind an `exit` that deletes there is no `enter`.",
    {"states": states("start", "other"), "rows": [row(0, PACKET, next=1), row(0, EXIT, DELETE, note(2)), row(1, ENTER, note(3))]},
    [frame(0, "a", udp(1))], flows={"a": [noted(2), ENDED]}, live=[],
)
notes(
    "E14-pending-settings", "E14", "Two settings may be pending; a third is not made.",
    {"flow": {"max_timers": 2}} | TICK | {"rows": [row(0, PACKET, arm(0, 5), arm(0, 6), arm(0, 7)), row(0, timer(0), note(1))]},
    [frame(0, "a", udp(1)), fire(100), frame(101, "a", udp(1)), fire(200)], [(1, at) for at in (5, 6, 106, 107)], drops={"too_many_timers": 2},
)
COUNTING = {"registers": registers("n"), "conditions": [test("ge", R(0), C(9_998))]}
count = lambda delay: [
    row(0, PACKET, arm(0, 3)), row(0, timer(0), compute("add", 0, R(0), C(1)), note(R(0)), arm(0, delay), when=[(0, True)]),
    row(0, timer(0), compute("add", 0, R(0), C(1)), arm(0, delay), when=[(0, False)]),
]
vector(
    "E15-zero-time-loop", "E15 E3", "A timer that sets itself for the same instant: after 10,000 events of this kind the instance goes.",
    TICK | COUNTING | {"rows": count(-1)}, [frame(0, "a", udp(1)), fire(3)], flows={"a": [noted(9_999, 3), noted(10_000, 3), ENDED]}, drops={"zero_time_loop": 1}, live=[],
)
vector(
    "E15-time-goes-on", "E15", "A timer that sets itself for later is no loop.",
    TICK | COUNTING | {"rows": count(1)}, [frame(0, "a", udp(1)), fire(10_003)], flows={"a": [noted(n, n + 2) for n in range(9_999, 10_002)]}, live=["a"],
)
retry = lambda delay, value: arm(0, delay, C(value))
vector(
    "E16-cancel", "E16 E3", "Cancelling is exact, also of settings that are due at this instant.",
    {
        "timers": timers(retry=["sequence"], killer=[]), "registers": registers("acknowledged"),
        "rows": [row(0, PACKET, arm(1, 10), retry(10, 1), retry(10, 2), retry(20, 2), retry(30, 3), retry(40, 4)),
                 row(0, timer(1), put(0, C(2)), cancel(0, (0, "seq_le", R(0)))), row(0, timer(0), note(EV(0)))],
    },
    [frame(0, "a", udp(1)), fire(30)], flows={"a": [noted(3, 30)]}, final={"a": {"timers": [["retry", 40, [4]]]}}, due=40,
)
notes(
    "E16-all-tests", "E16", "A setting is cancelled if it passes all tests; without tests all settings of the timer are.",
    {
        "timers": timers(pair=["x", "y"], other=[]),
        "rows": [row(0, PACKET, *[arm(0, 10, C(x), C(y)) for x in (1, 2) for y in (1, 2)], arm(1, 20), cancel(0, (0, "eq", C(1)), (1, "gt", C(1)))),
                 row(0, timer(0), note(EV(0)), note(EV(1))), row(0, timer(1), note(9), *[arm(0, 5, C(7), C(7))] * 2, arm(1, 5), cancel(0))],
    },
    [frame(0, "a", udp(1)), fire(29)], [(v, 10) for v in (1, 1, 2, 1, 2, 2)] + [(9, 20), (9, 25)],
)
four = lambda delay, a, b=0, c=0, d=0: arm(0, delay, C(a), C(b), C(c), C(d))
FOUR = {"timers": timers(sent=["end", "at", "mark", "last"], turn=[]), "registers": registers("answer")}
shown = [note(EV(0)), note(EV(3))]
notes(
    "E21-four-values", "E21 V14", "A setting carries four values, which its event has, and every row that comes of it.",
    FOUR | {"internal_events": 1, "rows": [row(0, PACKET, four(5, 1, 2, 3, 4)), row(0, timer(0), *[note(EV(n)) for n in range(4)], raises=0), row(0, internal(0), note(EV(3)))]},
    [frame(0, "a", udp(1)), fire(5)], [(v, 5) for v in (1, 2, 3, 4, 4)],
)
notes(
    "E21-order", "E21 E3", "Settings that are moved come behind those that are due then already, in the order in which they would have fired.",
    FOUR | {"rows": [
        row(0, PACKET, four(50, 1), four(40, 2), four(20, 3), four(60, 4), four(30, 5), arm(1, 10)),
        row(0, timer(1), move(0, 10, (0, "ne", C(5)), (0, "ne", C(3))), four(10, 6), *ask_timer(0, "first"), *ask_timer(0, "last")),
        row(0, timer(0), note(EV(0))),
    ]},
    [frame(0, "a", udp(1)), fire(60)], [(3, 10), (5, 10)] + [(v, 20) for v in (3, 2, 1, 4, 6)] + [(5, 30)],
)
notes(
    "E21-now", "E21 E3", "What is to fire now fires at this instant, behind what is due at it already; a delay below 0 is one of 0.",
    FOUR | {"rows": [
        row(0, PACKET, arm(1, 10), four(10, 1), four(10, 2), four(30, 3), four(20, 4)), row(0, timer(1), move(0, -5, (0, "ne", C(1)))),
        row(0, timer(0), note(EV(0))),
    ]},
    [frame(0, "a", udp(1)), fire(10)], [(v, 10) for v in (1, 2, 4, 3)], due=None,
)
vector(
    "E21-none", "E21 E14", "Settings of other timers and those that fail a test stay as they are; nothing is refused, however many are pending.",
    FOUR | {"flow": {"max_timers": 3}, "rows": [
        row(0, PACKET, four(10, 1, 7), four(20, 2, 7), arm(1, 30), move(0, 40, (0, "eq", C(1)), (1, "eq", C(8))), move(0, 5, (0, "gt", C(1)), (1, "eq", C(7))), *ask_timer(0, "count")),
        row(0, timer(0), note(EV(0))), row(0, timer(1), note(9)),
    ]},
    [frame(0, "a", udp(1)), fire(30)], flows={"a": [noted(2, 0), noted(2, 5), noted(1, 10), noted(9, 30)]}, drops={},
)
notes(
    "E21-is-read-once", "E21", "The delay and the right sides of the tests are read once, before any setting moves.",
    FOUR | {"rows": [
        row(0, PACKET, put(0, C(2)), four(10, 1), four(20, 2), move(0, R(0), (0, "le", R(0)))), row(0, timer(0), note(EV(0)), note(ENV("now"))),
    ]},
    [frame(0, "a", udp(1)), fire(30)], [(v, 2) for v in (1, 2, 2, 2)],
)
vector(
    "E21-zero-time-loop", "E21 E15", "Settings that move one another to this instant without end are a loop of no time: the instance goes.",
    {"timers": timers(one=[], two=[]), "rows": [
        row(0, PACKET, arm(0, 1)), row(0, timer(0), arm(1, 1_000), move(1, 0)), row(0, timer(1), arm(0, 1_000), move(0, 0)),
    ]},
    [frame(0, "a", udp(1)), fire(3)], flows={"a": [ENDED]}, drops={"zero_time_loop": 1}, live=[],
)
notes(
    "E22-questions", "E22", "Of the settings that pass all tests: how many, a value of the first and of the last, the least and the greatest.",
    FOUR | {"rows": [row(
        0, PACKET, *ask_timer(0, "count"), *ask_timer(0, "greatest", 1), four(30, 1, -5, 7), four(10, 2, 9, 7), four(20, 3, 4, 8), arm(1, 5),
        *ask_timer(0, "count"), *ask_timer(1, "count"), *ask_timer(0, "count", 0, (2, "eq", C(7))), *ask_timer(0, "first"), *ask_timer(0, "last"), *ask_timer(0, "least", 1), *ask_timer(0, "greatest", 1),
        *ask_timer(0, "greatest", 1, (2, "eq", C(7)), (0, "lt", C(2))), *ask_timer(0, "least", 1, (0, "gt", C(3))),
        *ask_timer(0, "greatest", 1, kind="u64"),
    )]},
    [frame(0, "a", udp(1))], [0, 0, 3, 1, 2, 2, 1, -5, 9, -5, 0, -5],
)
notes(
    "E22-is-gone", "E22 E16", "The setting whose event it is is not pending any more, nor is one that was cancelled.",
    FOUR | {"rows": [
        row(0, PACKET, four(10, 1), four(10, 2), four(30, 3)), row(0, timer(0), note(EV(0)), *ask_timer(0, "count"), cancel(0, (0, "eq", C(3))), *ask_timer(0, "count")),
    ]},
    [frame(0, "a", udp(1)), fire(30)], [(v, 10) for v in (1, 2, 1, 2, 0, 0)],
)
notes(
    "E22-by-type", "E22 V6", "Values are least and greatest by the order of the type that the question names, and tests compare at a width.",
    FOUR | {"rows": [row(
        0, PACKET, four(1, 0xFFFE, 0xFFFFFE), four(2, 3, 5), *ask_timer(0, "least", kind="seq16"), *ask_timer(0, "greatest", kind="seq16"), *ask_timer(0, "greatest"), *ask_timer(0, "greatest", kind="seq32"),
        *ask_timer(0, "least", 1, kind="seq24"), *ask_timer(0, "greatest", kind="seq64"),
        *ask_timer(0, "count", 0, (0, "seq_lt", C(2), 16)), *ask_timer(0, "count", 0, (0, "seq_ge", C(0xFFFE), 16)), *ask_timer(0, "count", 0, (0, "seq_gt", C(0xFFFE), 16)),
        *ask_timer(0, "count", 0, (0, "seq_le", C(3))), *ask_timer(0, "count", 0, (1, "seq_le", C(0xFFFFFF), 24)), *ask_timer(0, "count", 0, (0, "seq_lt", C(0xFFFE), 64)),
    )]},
    [frame(0, "a", udp(1))], [0xFFFE, 3, 0xFFFE, 0xFFFE, 0xFFFFFE, 0xFFFE, 1, 2, 1, 1, 1, 1],
)
vector(
    "E17-most-output", "E17", "One event puts out 16 MiB at most, 279 frames of 60,042 bytes; the next event may again.",
    {"rows": [row(0, PACKET, resize(CURRENT, 60000), *[send(CURRENT)] * 300)]},
    [frame(0, "a", udp(1)), frame(1, "a", udp(1))], flows={"a": []}, drops={"too_much_output": 2 * (300 - 16777216 // 60042)}, counters={"frames_out": 2 * (16777216 // 60042)},
    sent_is_left_out=True,
)

append = lambda offset, length: {"append_data": {"packet": WORK, "offset": C(offset), "length": C(length)}}
SENDER = {
    "templates": [template("data")],
    "rows": [
        row(0, DATA, note(EV(0)), note(ENV("application_available")), build(0), append(-2, 4), append(4, 100), append(100, 1), send(WORK)),
        row(0, PACKET, {"release_data": {"length": EV(2)}}, deliver(CURRENT, 1, 2), deliver(CURRENT, 100, 2), deliver(CURRENT, 3, 100), deliver(CURRENT, -1, 1)),
        row(0, CLOSE, note(ENV("application_closed")), {"release_data": {"length": C(-1)}}),
    ],
}
CALL = lambda at, flow, **call: {"at": at, "flow": flow} | call
MIB = 1 << 20
vector(
    "A01-write-and-close", "A1 A2 A3 A4 A5 A6 P16", "The application writes until its buffer is full, packets release and deliver, and it closes.",
    SENDER,
    [
        connect(0, "a", 1), CALL(1, "a", write="", accepted=0), CALL(1, "a", write=b"abcdefgh".hex(), accepted=8), frame(2, "a", udp(1)),
        CALL(3, "a", write=2 * MIB, accepted=MIB - 4), CALL(3, "a", write="00", accepted=0), CALL(4, "a", close=True),
        CALL(4, "a", close=True, refused="closed"), CALL(4, "a", write="00", refused="closed"), CALL(4, "nobody", write="00", refused="no_flow"),
    ],
    sent=[(1, 1, udp(1, b"abcdefgh")), (3, 1, udp(1, b"efgh" + bytes(101)))],
    flows={"a": [noted(8, 1), noted(8, 1), {"released": 4}, {"deliver": "0000"}, {"deliver": "07"}, {"deliver": "00"}, noted(MIB - 4, 3), noted(MIB, 3), noted(1, 4)]},
)
vector(
    "A01-nothing-accepted", "A1 F7", "A `write` of nothing is a call all the same: the idle time begins anew.",
    {"flow": {"expire": 100}, "rows": [row(0, PACKET)]}, [frame(0, "a", udp(1)), CALL(50, "a", write="", accepted=0), fire(149)], flows={"a": []}, live=["a"], due=150,
)

vector(
    "A07-abort", "A7 F16 E13", "A flow that the application wants no more goes at once, with its timers; without rows for it there is no event.",
    TICK | {"rows": [row(0, PACKET, arm(0, 10)), row(0, timer(0), note(1)), row(0, CLOSE, note(2)), row(0, EXIT, note(3))]},
    [frame(0, "a", udp(1)), CALL(5, "a", abort=True), CALL(6, "a", abort=True, refused="no_flow"), CALL(6, "a", close=True, refused="no_flow")],
    flows={"a": [ENDED]}, live=[], due=None,
)
vector(
    "A07-last-words", "A7", "The event `abort` may send and notify, but its timers never fire; then the flow is gone, wherever it led.",
    TICK | {"slots": ["kept"], "states": states("start", "end"), "rows": [row(0, PACKET, copy(CURRENT, slot(0))), row(0, ABORT, note(1), arm(0, 10), send(slot(0)), next=1), row(1, ENTER, note(2)), row(1, timer(0), note(3))]},
    [frame(0, "a", udp(1)), CALL(5, "a", abort=True), fire(20)], sent=[(5, 1, udp(1))], flows={"a": [noted(1, 5), noted(2, 5), ENDED]}, live=[], due=None,
)
HEARING = {"rows": [row(0, PACKET, note(1)), row(0, ICMP, note(EV(0)), note(EV(1)), note(EV(2)), note(F(CURRENT, "tcp.sequence")), note(HAS(CURRENT, "udp.length")))]}
ANSWER = network(SERVER, client(1), 6, segment(SERVER, 80, client(1), 4000, bytes(600), sequence=77))
notes(
    "E19-icmp", "E19", "An ICMP error about a packet that was sent comes to its flow, with type, code, the MTU it tells, and what it quotes.",
    HEARING, [frame(0, "a", tcp(1)), frame(1, None, icmp(3, 4, ANSWER[:28], 1280)), frame(2, None, icmp(11, 0, ANSWER[:28], 1280)), frame(3, None, icmp(12, 1, ANSWER, 7))],
    [1] + [(v, 1) for v in (3, 4, 1280, 77, 0)] + [(v, 2) for v in (11, 0, 0, 77, 0)] + [(v, 3) for v in (12, 1, 0, 77, 0)],
)
SIX = "2001:db8::9"
ANSWER6 = network(SIX, "2001:db8::1", 17, datagram(SIX, 80, "2001:db8::1", 4000, bytes(90)))
notes(
    "E19-icmpv6", "E19", "The same of ICMPv6, about a datagram.",
    HEARING, [
        frame(0, "a", ether(network("2001:db8::1", SIX, 17, datagram("2001:db8::1", 4000, SIX, 80, b"")))),
        frame(1, None, icmp(2, 0, ANSWER6, 1300, source="2001:db8::5", destination=SIX)), frame(2, None, icmp(1, 4, ANSWER6[:48], 1300, source="2001:db8::5", destination=SIX)),
    ], [1] + [(v, 1) for v in (2, 0, 1300, 0, 1)] + [(v, 2) for v in (1, 4, 0, 0, 1)],
)
OTHERS = {
    "echo": icmp(8, 0, ANSWER[:28]), "quench": icmp(4, 0, ANSWER[:28]), "short": icmp(3, 1, ANSWER[:27]), "checksum": icmp(3, 1, ANSWER[:28], damage=1), "fragment": icmp(3, 1, ANSWER[:28], fragment=0x2000),
    "later-fragment": icmp(3, 1, network(SERVER, client(1), 6, ANSWER[20:], fragment=9)[:28]), "nobody": icmp(3, 1, network(SERVER, client(2), 6, ANSWER[20:])[:28]),
}
for name, other in OTHERS.items():
    notes(f"E19-{name}", "E19 F3", "What is no error, or damaged, or about no flow, has no flow key.", HEARING, [frame(0, "a", tcp(1)), frame(1, None, other)], [1], drops={"no_flow_key": 1})
notes("E19-not-waited-for", "E19 F3", "Where no row waits for errors there is no such event.", {"rows": [row(0, PACKET, note(1))]}, [frame(0, "a", tcp(1)), frame(1, None, icmp(3, 1, ANSWER[:28]))], [1], drops={"no_flow_key": 1})
vector(
    "E19-no-activity", "E19 F7", "An error does not make a flow less idle.",
    HEARING | {"flow": {"expire": 100}}, [frame(0, "a", tcp(1)), frame(60, None, icmp(3, 1, ANSWER[:28])), fire(100)],
    flows={"a": [noted(1), *[noted(v, 60) for v in (3, 1, 0, 77, 0)], ENDED]}, live=[], due=None,
)
LISTENING = {"rows": [row(0, PACKET, note(ENV("application_listening")))]}
notes(
    "A08-listening", "A8", "An application listens at the local end of a flow by its address and port, by one of them, or anywhere.",
    LISTENING, [
        frame(0, "a", udp(1)), {"at": 1, "listen": [SERVER, 81]}, frame(1, "a", udp(1)), {"at": 2, "listen": [client(1), 80]}, frame(2, "a", udp(1)),
        {"at": 3, "listen": [None, 80]}, {"at": 3, "listen": [None, 80]}, frame(3, "a", udp(1)),
    ], [(0, 0), (0, 1), (0, 2), (1, 3)],
)
for name, at in (("whole", [SERVER, 80]), ("address", [SERVER, None]), ("any", [None, None])):
    notes(f"A08-listening-{name}", "A8", "The same with one of the others.", LISTENING, [{"at": 0, "listen": at}, frame(0, "a", udp(1))], [1])
notes(
    "A08-unlisten", "A8", "What was taken back is listened at no more; what was never listened at can be taken back.",
    LISTENING, [
        {"at": 0, "listen": [None, 80]}, {"at": 0, "listen": [SERVER, 80]}, frame(0, "a", udp(1)), {"at": 1, "unlisten": [SERVER, 80]}, frame(1, "a", udp(1)),
        {"at": 2, "unlisten": [SERVER, 81]}, {"at": 2, "unlisten": [None, 80]}, frame(2, "a", udp(1)),
    ], [1, (1, 1), (0, 2)],
)
vector(
    "A08-accepted", "A8 F13", "A flow that was taken up is held until its application closes; one that was closed before is not.",
    {"flow": {"expire": 100, "hold": True}, "rows": [row(0, PACKET), row(0, CLOSE, note(1))]},
    [frame(0, "a", udp(1)), frame(0, "b", udp(2)), CALL(10, "b", close=True), CALL(20, "a", accept=True), CALL(20, "b", accept=True), fire(300), CALL(310, "a", close=True), fire(500), CALL(600, "a", accept=True, refused="no_flow")],
    flows={"a": [noted(1, 310), ENDED], "b": [noted(1, 10), ENDED]}, live=[], due=None,
)

SHOWN = {
    "registers": [register("count"), register("hidden", scratch=True)], "timers": timers(tick=[]),
    "debug": {"points": ["seen"], "samples": [{"register": 0, "interval": 1000}]},
    "rows": [row(0, PACKET, compute("add", 0, R(0), C(1)), snapshot(), compute("add", 0, R(0), C(1)), arm(0, 1000), note(R(0))), row(0, timer(0), compute("add", 0, R(0), C(1)))],
}
vector(
    "D01-snapshots", "D1 D3", "A snapshot shows the registers as they are there, but scratch ones.",
    SHOWN, [frame(100, "a", udp(1)), fire(1100)], debug=["snapshot"], flows={"a": [show("snapshot", "seen", "start", "start", {"count": 1}, 100), noted(2, 100)]},
)
vector(
    "D02-samples", "D2 D3 E1", "Samples come in their interval after the creation, behind the timers of their instant.",
    SHOWN, [frame(100, "a", udp(1)), fire(2100)], debug=["sample"],
    flows={"a": [noted(2, 100), *[show("sample", "count", "start", "start", {"count": 3}, at) for at in (1100, 2100)]]},
)
vector(
    "D02-samples-before-expiry", "D2 E1", "At the instant of its expiry an instance is sampled first.",
    SHOWN | {"flow": {"expire": 1000}}, [frame(100, "a", udp(1)), fire(2100)], debug=["sample"],
    flows={"a": [noted(2, 100), show("sample", "count", "start", "start", {"count": 3}, 1100), ENDED]}, live=[], due=None,
)
vector(
    "D04-changed-from-outside", "D4 F16 E13", "A register that is set from outside keeps what its type holds, and nothing happens; a flow that is deleted from outside is not told of.",
    {"registers": [register("address", "ipv4")], "timers": timers(tick=[]), "rows": [row(0, PACKET, note(R(0)), arm(0, 100))]},
    [frame(0, "a", udp(1)), {"flow": "a", "set": {"register": "address", "value": -1}}, frame(1, "a", udp(1)), {"flow": "a", "delete": True}],
    flows={"a": [noted(0), noted(0xFFFFFFFF, 1)]}, live=[], due=None,
)
notes(
    "D04-parameters", "D4 F4", "Another initial value of a register is for instances to come: those that are there keep what they have. A value that its type does not hold is refused, and so is all that comes with it.",
    {"registers": [register("limit", "u8", 5), register("gap", "time", 9)], "rows": [row(0, PACKET, note(R(0)), note(R(1)))]},
    [
        frame(0, "a", udp(1)), {"at": 1, "parameters": [["gap", "2us"], ["limit", "7"]]}, frame(2, "a", udp(1)), frame(3, "b", udp(2)),
        {"at": 4, "parameters": [["gap", "3us"], ["limit", "256"]], "refused": "unfit"}, {"at": 5, "parameters": [["width", "1"]], "refused": "unfit"}, frame(6, "c", udp(3)),
    ],
    [(5, 0), (9, 0), (5, 2), (9, 2)], flows={"b": [noted(7, 3), noted(2000, 3)], "c": [noted(7, 6), noted(2000, 6)]},
)
mtu = lambda port: [{"query": {"register": 0, "query": {"port_mtu": {"port": port}}}}, note(R(0))]
told = lambda at, port, bytes: {"at": at, "mtu": [port, bytes]}
notes(
    "P27-mtu", "P27 D4", "The MTU of a port is what the platform said last; 0 if it said nothing, or there is no such port.",
    {"registers": registers("answer", "port"), "rows": [row(0, PACKET, put(1, C(2)), *mtu(C(1)), *mtu(R(1)), *mtu(C(9)), *mtu(C(-1)), *mtu(C(0x10002)))]},
    [frame(0, "a", udp(1)), told(1, 2, 1400), told(1, 9, 1300), frame(2, "a", udp(1)), told(3, 2, 9000), told(3, 1, 576), frame(4, "a", udp(1)), told(5, 2, None), frame(6, "a", udp(1))],
    [(v, 0) for v in (0, 0, 0, 0, 0)] + [(v, 2) for v in (0, 1400, 0, 0, 0)] + [(v, 4) for v in (576, 9000, 0, 0, 0)] + [(v, 6) for v in (576, 0, 0, 0, 0)],
)
notes(
    "A10-set", "A10 D4", "A change of a register is an event behind it, which may set timers, send, and change the state; in a state without rows for it nothing happens.",
    {"registers": [register("limit", "u8"), register("answer")], "timers": timers(tick=[]), "states": states("one", "two"), "rows": [
        row(0, PACKET, note(R(0)), arm(0, 100)), row(0, SET, note(R(0)), note(ENV("now")), arm(0, 5), next=1), row(1, ENTER, note(7)), row(1, timer(0), note(9)),
    ]},
    [frame(0, "a", udp(1)), setting(3, "a", "limit", 0x1FF), setting(4, "a", "limit", 2), fire(200)],
    [(0, 0), (0xFF, 3), (3, 3), (7, 3), (9, 8), (9, 100)],
)
vector(
    "A10-as-idle-as-before", "A10 F7 F12", "A change of a register is no packet and no call: an instance expires as if there had been none.",
    {"flow": {"expire": 10, "hold": False}, "registers": registers("limit"), "rows": [row(0, PACKET, note(1)), row(0, SET, note(2)), row(0, EXPIRE, note(3))]},
    [frame(0, "a", udp(1)), setting(9, "a", "limit", 1), fire(30)], flows={"a": [noted(1), noted(2, 9), noted(3, 10), ENDED]}, live=[],
)
vector(
    "A10-may-delete", "A10 E12", "What handles the change may end the instance.",
    {"registers": registers("limit"), "timers": timers(tick=[]), "rows": [row(0, PACKET, arm(0, 9)), row(0, timer(0), note(9)), row(0, SET, note(R(0)), DELETE)]},
    [frame(0, "a", udp(1)), setting(1, "a", "limit", 6), fire(30)], flows={"a": [noted(6, 1), ENDED]}, live=[],
)
COUNTING = {"registers": registers("count", "other"), "timers": timers(tick=[]), "rows": [
    row(0, PACKET, compute("add", 0, R(0), C(1)), note(R(0)), arm(0, 100)), row(0, timer(0), note(C(7)))]}
vector(
    "D06-another-image", "D6", "Another image takes over between two events: registers keep their values where scratch ones come in front, what is pending fires, new rows are taken.",
    COUNTING,
    [
        frame(0, "a", udp(1)),
        {"at": 1, "replace": {"registers": [register("work", scratch=True), *registers("count", "other")], "rows": [
            row(0, PACKET, compute("mul", 0, R(1), C(10)), compute("add", 1, R(0), C(1)), note(R(1))), row(0, timer(0), note(C(8)))]}},
        frame(2, "a", udp(1)), frame(3, "b", udp(2)), fire(200),
    ],
    flows={"a": [noted(1), noted(11, 2), noted(8, 100)], "b": [noted(1, 3)]},
)
vector(
    "D06-another-table", "D6", "The tables are those of the new image.",
    {"registers": registers("r"), "tables": [{"name": "t", "base": 0, "entries": [5]}], "rows": [row(0, PACKET, {"lookup": {"table": 0, "register": 0, "index": C(0)}}, note(R(0)))]},
    [frame(0, "a", udp(1)), {"at": 1, "replace": {"tables": [{"name": "t", "base": 0, "entries": [6]}]}}, frame(2, "a", udp(1))],
    flows={"a": [noted(5), noted(6, 2)]},
)
UNLIKE = [
    {"registers": registers("other", "count")}, {"registers": [register("count", "u32"), register("other")]}, {"states": states("begin")},
    {"states": states("start", start=5)}, {"timers": timers(tick=["value"])}, {"flow": {"max": 5}}, {"flow": {"symmetric": False}},
    {"slots": ["one", "two"]}, {"turns": [{"name": "turns", "most": 1}]}, {"notices": ["else"]}, {"debug": {"samples": [{"register": 0, "interval": 1000}]}},
]
vector(
    "D06-flows-know-something-else", "D6", "An image in which flows know something else, or live otherwise, is refused, and nothing changes.",
    COUNTING,
    [frame(0, "a", udp(1)), *[{"at": 1, "replace": {"rows": []} | patch, "refused": "unfit"} for patch in UNLIKE], frame(2, "a", udp(1))],
    flows={"a": [noted(1), noted(2, 2)]},
)
