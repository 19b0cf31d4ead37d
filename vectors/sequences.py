"""Vectors of repeats, blocks, ranges, the receive buffer and segments: rules E18, E23, R1 to R7, G1 to G7 and A9."""

from events import CALL, refused
from kit import *

ONCE = [frame(0, "a", udp(1))]

# Repeats. Event 0 is the head, 1 is behind the repeat unless a vector says otherwise.


def repeat(event, most, then, state=0):
    return {"state": state, "event": event, "most": most, "then": then}


notes(
    "E18-repeat", "E18", "A repeat is handled again as often as it may, each packet anew; in place of once more comes what follows it.",
    {"internal_events": 2, "repeats": [repeat(0, 3, 1)], "rows": [row(0, PACKET, note(1), raises=0), row(0, internal(0), note(2), raises=0), row(0, internal(1), note(3))]},
    ONCE + [frame(1, "a", udp(1))], [1, 2, 2, 2, 2, 3] + [(v, 1) for v in (1, 2, 2, 2, 2, 3)],
)
notes(
    "E18-ends-before", "E18", "A row that raises something else ends a repeat; scratch registers, the packet and the event's values stay from round to round.",
    {
        "internal_events": 3, "repeats": [repeat(0, 9, 2)], "registers": [register("left", scratch=True)], "conditions": [test("gt", R(0), C(0))],
        "rows": [
            row(0, PACKET, put(0, C(2)), raises=0), row(0, internal(0), note(R(0)), note(EV(0)), note(HAS(CURRENT, "udp.length")), when=[(0, True)], raises=1), row(0, internal(0), raises=2),
            row(0, internal(1), compute("sub", 0, R(0), C(1)), raises=0), row(0, internal(2), note(R(0))),
        ],
    },
    ONCE, [2, 1, 1, 1, 1, 1, 0],
)
notes(
    "E18-in-one-another", "E18", "A repeat within another one begins anew whenever it is raised from before it.",
    {
        "internal_events": 4, "repeats": [repeat(0, 1, 3), repeat(1, 2, 2)],
        "rows": [row(0, PACKET, raises=0), row(0, internal(0), note(10), raises=1), row(0, internal(1), note(20), raises=1), row(0, internal(2), raises=0), row(0, internal(3), note(30))],
    },
    ONCE, [10, 20, 20, 20, 10, 20, 20, 20, 30],
)
notes(
    "E18-nothing-follows", "E18 E9", "What comes in place of once more may have no rows; `exit` and `enter` count anew.",
    {
        "internal_events": 2, "repeats": [repeat(0, 1, 1)],
        "rows": [row(0, PACKET, next=0, raises=0), row(0, internal(0), note(1), raises=0), row(0, EXIT, note(2), raises=0)],
    },
    ONCE, [1, 1, 2, 1, 1],
)


BACK = {"internal_events": 3, "rows": [row(0, PACKET, raises=0), row(0, internal(0), raises=1), row(0, internal(1), raises=0)]}
refused("E18-then-is-greater", "E18", "What follows a repeat must be greater than what raises it again.", BACK | {"repeats": [repeat(0, 1, 1)]}, "rows[2].raise")
refused("E18-too-many-rounds", "E18", "65,537 rounds.", BACK | {"repeats": [repeat(0, 65536, 2)]}, "repeats[0]")
refused(
    "E18-too-many-rounds-together", "E18", "257 rounds in each of 257.",
    {"internal_events": 4, "repeats": [repeat(0, 256, 3), repeat(1, 256, 2)], "rows": BACK["rows"][:2] + [row(0, internal(1), raises=1), row(0, internal(2), raises=0)]}, "repeats[1]",
)
refused(
    "E18-scratch-in-the-first-round", "E18 E5", "A repeat that is not reached by way of its first round.",
    {"internal_events": 3, "repeats": [repeat(0, 1, 2)], "registers": [register("t", scratch=True)], "rows": [row(0, PACKET, raises=1), row(0, internal(0), note(R(0))), row(0, internal(1), raises=0)]}, "rows[2]",
)

# Blocks.


def block(*operations):
    return {"operations": list(operations)}


def run(number):
    return {"run": {"block": number}}


DOUBLE = block(compute("add", 0, R(0), R(0)), note(R(0)))
notes(
    "E23-in-its-place", "E23", "A block runs where it is called, as often as it is called, between the operations around it; scratch registers are its parameter and its result.",
    {"registers": [register("t", scratch=True)], "blocks": [block(note(7)), DOUBLE], "rows": [row(0, PACKET, put(0, C(3)), run(1), note(1), run(0), run(1), compute("add", 0, R(0), C(1)), note(R(0)))]},
    ONCE, [6, 1, 7, 12, 13],
)
notes(
    "E23-shared", "E23 E9", "Rows of several events and states share a block; each has its own event's values, and the packet that it has.",
    {
        "registers": [register("r")], "states": states("one", "two"), "internal_events": 1, "timers": timers(tick=["v"]),
        "blocks": [block(compute("add", 0, R(0), EV(0)), note(R(0)), note(HAS(CURRENT, "udp.length")))],
        "rows": [row(0, PACKET, run(0), arm(0, 5, C(40)), next=1, raises=0), row(0, internal(0), run(0)), row(1, ENTER, note(9)), row(1, timer(0), run(0), next=1)],
    },
    ONCE + [fire(5)], [1, 1, 2, 1, 9, (42, 5), (0, 5), (9, 5)],
)
notes(
    "E23-in-a-preparation", "E23 E6", "A preparation runs blocks, too; conditions see what these have written.",
    {
        "registers": [register("r", initial=4), register("t", scratch=True)], "conditions": [test("eq", R(1), C(9))],
        "blocks": [block(compute("add", 1, R(1), C(2)))], "preparations": [prepare(0, PACKET, put(1, R(0)), run(0), compute("add", 1, R(1), C(1)), run(0))],
        "rows": [row(0, PACKET, note(1), when=[(0, False)]), row(0, PACKET, note(R(1)))],
    },
    ONCE, [9],
)
notes("E23-empty", "E23", "A block may be empty.", {"blocks": [block()], "rows": [row(0, PACKET, run(0), note(1))]}, ONCE, [1])
refused("E23-no-block", "E23", "There is no such block.", {"blocks": [block()], "rows": [row(0, PACKET, run(1))]}, "rows[0].operations[0].block")
refused("E23-one-runs-another", "E23", "A block that runs a block.", {"blocks": [block(), block(note(1), run(0))]}, "blocks[1].operations[1]")
refused("E23-runs-itself", "E23", "A block that runs itself.", {"blocks": [block(run(0))]}, "blocks[0].operations[0]")
refused("E23-preparations-compute", "E23", "A preparation runs a block that notifies.", {"blocks": [block(note(1))], "preparations": [prepare(0, PACKET, run(0))], "rows": [row(0, PACKET)]}, "preparations[0].operations[0].block")
refused(
    "E23-values-of-the-event", "E23 V14", "A block that reads what one of the events that run it does not carry.",
    {"blocks": [block(note(EV(1)))], "rows": [row(0, PACKET, run(0)), row(0, DATA, run(0))]}, "rows[1].operations[0].block",
)
refused(
    "E23-scratch-read-first", "E23 E5", "A block that reads a scratch register which one of the rows that run it has not written.",
    {"registers": [register("t", scratch=True)], "blocks": [DOUBLE], "rows": [row(0, PACKET, put(0, C(1)), run(0)), row(0, CLOSE, run(0))]}, "rows[1]",
)
refused("E23-too-many-operations", "E23", "1,025 operations, written out.", {"blocks": [block(*[note(1)] * 512)], "rows": [row(0, PACKET, run(0), note(1), run(0))]}, "rows[0].operations")

# Ranges. Every packet runs all the operations of its vector.


def begin(at, store=None):
    return {"begin": {"store": store or {"ranges": 0}, "at": C(at)}}


def trim(to, store=None):
    return {"trim": {"store": store or {"ranges": 0}, "to": C(to)}}


def add(left, right):
    return {"add_range": {"ranges": 0, "left": C(left), "right": C(right)}}


def hold(offset, length, at, packet=CURRENT):
    return {"hold": {"ranges": 0, "packet": packet, "offset": C(offset), "length": C(length), "at": C(at)}}


def hand(to):
    return {"deliver_held": {"ranges": 0, "to": C(to)}}


def ask(what, argument=0):
    return [{"query": {"register": 0, "query": {"ranges": {"ranges": 0, "what": what, "argument": C(argument)}}}}, note(R(0))]


def shape(count):
    """All that is read of so many ranges."""
    asked = [*ask("floor"), *ask("top"), *ask("count"), *ask("bytes")]
    for number in range(count):
        asked += [*ask("left", number), *ask("right", number)]
    return asked


def ranges(most=4, **more):
    return {"registers": registers("r"), "ranges": [{"name": "them", "most": most} | more]}


def with_ranges(name, rules, about, steps, values, most=4, drops=None, **more):
    notes(name, rules, about, ranges(most) | {"rows": [row(0, PACKET, *steps)]}, ONCE, values, drops=drops, **more)


TOP = 0xFFFFFFFF
with_ranges("R01-new", "R1 R5", "New ranges: what is not there reads as the floor.", [*shape(1), *ask("has", 0), *ask("after", 7), *ask("next", 7)], [0, 0, 0, 0, 0, 0, 0, 7, 0])
with_ranges("R02-begin", "R2 R5", "`begin` takes all ranges out.", [add(3, 5), begin(100), *shape(1)], [100, 100, 0, 0, 100, 100])
with_ranges(
    "R03-ranges-join", "R3 R5", "Ranges that overlap or touch become one; the one changed last is the first.",
    [begin(10), add(20, 30), add(40, 50), add(60, 70), *shape(3), add(30, 40), *shape(2), add(55, 58), add(15, 65), *shape(1)],
    [10, 70, 3, 30, 60, 70, 40, 50, 20, 30] + [10, 70, 2, 40, 20, 50, 60, 70] + [10, 70, 1, 55, 15, 70],
)
with_ranges(
    "R03-cut-at-the-floor", "R3", "What lies below the floor is left out; what is left of nothing is nothing.",
    [begin(10), add(5, 15), *shape(1), add(3, 10), add(20, 20), add(30, 25), *shape(1)], [10, 15, 1, 5, 10, 15] * 2,
)
with_ranges(
    "R03-one-too-many", "R3", "One range too many changes nothing and is counted; one that joins others is none too many.",
    [add(10, 20), add(30, 40), add(50, 60), *shape(2), add(15, 35), *shape(1), add(50, 60), *shape(2)],
    [0, 40, 2, 20, 30, 40, 10, 20] + [0, 40, 1, 30, 10, 40] + [0, 60, 2, 40, 50, 60, 10, 40], most=2, drops={"ranges_full": 1},
)
with_ranges(
    "R03-across-the-wrap", "R3 R4 R5", "Numbers go on behind 2^32 - 1.",
    [begin(TOP - 9), add(TOP - 4, 5), *shape(1), *ask("has", 0), *ask("after", TOP), *ask("next", TOP - 9), add(TOP - 9 + HALF - 1, TOP - 9 + HALF), *ask("count"), trim(2), *shape(1)],
    [TOP - 9, 5, 1, 10, TOP - 4, 5, 1, 5, TOP - 4, 1, 2, 5, 1, 3, 2, 5],
)
with_ranges(
    "R04-trim", "R4", "`trim` cuts and takes out what lies in front, and never goes back.",
    [begin(10), add(60, 70), add(20, 30), add(40, 50), trim(25), *shape(3), trim(12), trim(30), *shape(2), trim(90), *shape(0)],
    [25, 70, 3, 25, 40, 50, 25, 30, 60, 70] + [30, 70, 2, 20, 40, 50, 60, 70] + [90, 90, 0, 0],
)
with_ranges(
    "R05-questions", "R5", "`has`, `after` and `next` at each place; an index that is not there.",
    [begin(10), add(10, 20), add(30, 40)] + [one for at in (5, 10, 19, 20, 35, 40, 99) for one in (*ask("has", at), *ask("after", at), *ask("next", at))] + [*ask("left", 2), *ask("right", -1)],
    [0, 20, 10, 1, 20, 10, 1, 20, 19, 0, 20, 30, 1, 40, 35, 0, 40, 40, 0, 99, 40, 10, 10],
)

# The receive buffer, of 20 bytes.


def with_buffer(name, rules, about, rows, inputs, values, drops=None, **more):
    """What flow `a` tells is given in order, deliveries as bytes."""
    told = [{"deliver": value.hex()} if isinstance(value, bytes) else noted(*value) if isinstance(value, tuple) else noted(value) for value in values]
    vector(name, rules, about, ranges(2, bytes=20) | {"rows": rows}, inputs, flows={"a": told}, drops=drops, **more)


DATA16 = frame(0, "a", udp(1, b"0123456789abcdef"))
ROOM = [note(ENV("application_room"))]
with_buffer(
    "R06-hold", "R6 R7", "Bytes out of order come together, and a byte that is there does not change.",
    [row(0, PACKET, begin(100), hold(4, 4, 104), hold(0, 2, 102), hold(8, 8, 102), *shape(1), hand(104), hold(0, 2, 100), hold(10, 3, 100), hand(110), *shape(0), *ROOM)],
    [DATA16], [100, 110, 1, 8, 102, 110, b"0101" + b"4567" + b"ef", 110, 110, 0, 0, 10], drops={"not_held": 1},
)
with_buffer(
    "R06-cut", "R6 A5", "What lies below the floor or has no room is left out; offsets and lengths stop where the bytes end.",
    [row(0, PACKET, begin(100), hold(0, 16, 95), *shape(1), hold(0, 16, 110), *shape(1), hold(0, 4, 120), hold(14, 99, 90), hold(-3, -1, 115), hold(99, 5, 115), hand(120))],
    [DATA16], [100, 111, 1, 11, 100, 111, 100, 120, 1, 20, 100, 120, b"56789abcdef" + b"123456789"], drops={"no_room": 2},
)
with_buffer(
    "R06-refused-whole", "R6 R3", "Bytes whose range is one too many are not kept; those beside a range are.",
    [row(0, PACKET, begin(0), hold(0, 2, 2), hold(2, 2, 6), hold(4, 2, 10), *shape(2), hold(6, 2, 4), hold(0, 4, 0), hand(8))],
    [DATA16], [0, 8, 2, 4, 6, 8, 2, 4, b"01016723"], drops={"ranges_full": 1},
)
with_buffer(
    "R07-not-held", "R7", "Nothing is delivered if one byte is not there; nothing from the floor to itself or below.",
    [row(0, PACKET, begin(0), hold(0, 4, 0), hold(8, 4, 8), hand(5), hand(12), hand(0), hand(-1), *shape(0), hand(3), *shape(0))],
    [DATA16], [0, 12, 2, 8, b"012", 3, 12, 2, 5], drops={"not_held": 2},
)
with_buffer(
    "R06-no-packet", "R6 P23", "There is no packet to take bytes from.", [row(0, PACKET, begin(0), hold(0, 4, 0, WORK), *shape(0))], [DATA16], [0, 0, 0, 0], drops={"no_packet": 1},
)
with_buffer(
    "A09-consumed", "A9 R6 R7", "What was delivered takes room until the application has read it; it cannot read more.",
    [row(0, PACKET, *ROOM, hold(0, 16, 0), hand(16), *ROOM, hold(0, 16, 16), *shape(0)), row(0, READ, note(EV(0)), *ROOM)],
    [DATA16, CALL(1, "a", consumed=0), CALL(2, "a", consumed=6), CALL(3, "a", consumed=99), CALL(4, "a", consumed=1), CALL(5, "b", consumed=1, refused="no_flow")],
    [20, b"0123456789abcdef", 4, 16, 20, 1, 4, (6, 2), (10, 2), (10, 3), (20, 3)], drops={"no_room": 1},
)
refused("R06-ranges-keep-no-bytes", "R6", "Ranges without bytes hold none.", ranges() | {"rows": [row(0, PACKET, hold(0, 1, 0))]}, "rows[0].operations[0].ranges")

# Segments, with a number and a flag.

THEM = {"segments": 0}
MARKED = {"registers": registers("r"), "segments": [{"name": "them", "most": 4, "fields": [{"name": "mark", "type": "u8"}, {"name": "at", "type": "seq32"}]}]}


def append(end, mark=0, at=0):
    return {"append_segment": {"segments": 0, "end": C(end), "values": [C(mark), C(at)]}}


def split(at):
    return {"split_segment": {"segments": 0, "at": C(at)}}


def tests(*those):
    return [{"value": value, "comparison": comparison, "right": C(right) if isinstance(right, int) else right} for value, comparison, right in those]


def change(those, *writes):
    return {"change_segments": {"segments": 0, "tests": tests(*those), "writes": [[field, C(value) if isinstance(value, int) else value] for field, value in writes]}}


def which(what, field=0, *those):
    return [{"query": {"register": 0, "query": {"segments": {"segments": 0, "what": what, "field": field, "tests": tests(*those)}}}}, note(R(0))]


WHOLE = [*which("start"), *which("end"), *which("count"), *which("bytes")]


def each(count):
    """All records: where each ends, and its mark, found by where it begins."""
    asked = []
    for number in range(count):
        asked += [*which("first", 1, (0, "seq_ge", R(0))), *which("last", 2, (1, "eq", R(0)))] if number else [*which("first", 1), *which("first", 2)]
    return asked


def with_segments(name, rules, about, steps, values, drops=None):
    notes(name, rules, about, MARKED | {"rows": [row(0, PACKET, *steps)]}, ONCE, values, drops=drops)


with_segments("G01-new", "G1 G7", "A new instance has none; what is asked of none is 0.", [*WHOLE, *which("first", 1), *which("greatest", 2)], [0, 0, 0, 0, 0, 0])
with_segments("G02-begin", "G2", "`begin` takes all out.", [append(10, 1), begin(50, THEM), *WHOLE, append(55, 2), *which("first", 0), *which("first", 2)], [50, 50, 0, 0, 50, 2])
with_segments(
    "G03-append", "G3", "Each record begins where the one in front ends, with its fields cut to their types.",
    [begin(100, THEM), append(110, 257, -1), append(110, 9), append(105, 9), append(130, 2, 3), *WHOLE, *which("first", 2), *which("first", 3), *which("last", 0), *which("last", 3)],
    [100, 130, 2, 30, 1, TOP, 110, 3],
)
with_segments(
    "G03-full", "G3", "A fifth of four changes nothing and is counted.", [append(1), append(2), append(3), append(4), append(5), *WHOLE], [0, 4, 4, 4], drops={"segments_full": 1},
)
with_segments(
    "G03-across-the-wrap", "G3 G4 G5", "Records go on behind 2^32 - 1, and end less than 2^31 above the first.",
    [begin(TOP - 9, THEM), append(10, 1), append(TOP - 9 + HALF, 2), split(0), *WHOLE, *which("last", 0), trim(0, THEM), *WHOLE],
    [TOP - 9, 10, 2, 20, 0, 0, 10, 1, 10],
)
with_segments(
    "G04-split", "G4", "A record is cut in two with the same fields; not where one begins or ends, nor outside.",
    [begin(10, THEM), append(20, 1), append(40, 2), split(30), *WHOLE, *which("count", 0, (2, "eq", 2)), *which("first", 1, (2, "eq", 2)), split(20), split(10), split(40), split(50), split(5), *WHOLE],
    [10, 40, 3, 30, 2, 30, 10, 40, 3, 30],
)
with_segments(
    "G04-full", "G4", "A fifth of four changes nothing and is counted; a cut where a record begins needs no room.",
    [append(10), append(20), append(30), append(40), split(15), split(20), *WHOLE, *which("first", 1)], [0, 40, 4, 40, 10], drops={"segments_full": 1},
)
with_segments(
    "G05-trim", "G5", "Records in front go, the one around is cut, and it never goes back; at the end all go.",
    [begin(10, THEM), append(20, 1), append(30, 2), append(40, 3), trim(25, THEM), *WHOLE, *which("first", 0), *which("first", 2), trim(15, THEM), trim(30, THEM), *WHOLE, *which("first", 2), trim(99, THEM), *WHOLE, append(45, 4), *WHOLE],
    [25, 40, 2, 15, 25, 2, 30, 40, 1, 10, 3, 40, 40, 0, 0, 40, 45, 1, 5],
)
with_segments(
    "G06-change", "G6", "All tests must hold; right sides and values are read once; writes are cut.",
    [append(10, 1), append(20, 2), append(30, 3), change([(0, "seq_ge", 10), (1, "seq_le", 30)], (2, 258), (3, -1)), *which("bytes", 0, (2, "eq", 2)), *which("count", 0, (3, "eq", TOP)), *which("first", 2),
     change([], (2, 7)), *which("count", 0, (2, "eq", 7)), change([(2, "eq", 8)], (2, 9)), *which("greatest", 2)],
    [20, 2, 1, 3, 7],
)
with_segments(
    "G07-questions", "G7 V6", "First and last by sequence, least and greatest by the field's type.",
    [begin(TOP - 9, THEM), append(0, 200, 5), append(10, 3, TOP), append(20, 100, 7)]
    + [one for what in ("first", "last", "least", "greatest") for field in (0, 1, 2, 3) for one in which(what, field)]
    + [*which("least", 2, (2, "gt", 3)), *which("greatest", 1, (2, "gt", 100)), *which("first", 0, (2, "gt", 200)), *which("bytes", 0, (2, "ge", 100)), *which("count", 0, (3, "seq_lt", 6))],
    [TOP - 9, 0, 200, 5, 10, 20, 100, 7, TOP - 9, 0, 3, TOP, 10, 20, 200, 7, 100, 0, 0, 20, 2],
)
refused(
    "G06-ends-are-not-written", "G6", "A record's sequence numbers are no fields to write.",
    MARKED | {"rows": [row(0, PACKET, change([], (1, 5)))]}, "rows[0].operations[0].writes[0]",
)
