"""Vectors of the rules V1 to V14."""

from kit import *

computed(
    "V01-sums-and-products-wrap", "V1", "Sums, differences and products are modulo 2^64.",
    [("add", 2, 3, 5), ("add", MAX, 1, MIN), ("add", -1, 1, 0), ("add", MIN, MIN, 0), ("sub", 2, 3, -1), ("sub", MIN, 1, MAX), ("sub", 0, MIN, MIN),
     ("mul", -3, 4, -12), ("mul", 1 << 32, 1 << 32, 0), ("mul", MIN, -1, MIN), ("mul", MAX, 2, -2)],
)

KINDS = ["bool", "u8", "u16", "u32", "u64", "i64", "seq32", "time", "mac", "ipv4", "seq16", "seq24", "seq64"]
KEPT = [1, 0xFE, 0xFFFE, 0xFFFFFFFE, -2, -2, 0xFFFFFFFE, -2, 0xFFFFFFFFFFFE, 0xFFFFFFFE, 0xFFFE, 0xFFFFFE, -2]
notes(
    "V02-types-keep-low-bits", "V2", "-2, then 0, then 256, written to a register of each type.",
    {
        "registers": [register(kind, kind) for kind in KINDS],
        "rows": [row(0, PACKET, *[step for value in (-2, 0, 256) for n in range(13) for step in (put(n, C(value)), note(R(n)))])],
    },
    [frame(0, "a", udp(1))],
    KEPT + [0] * 13 + [1, 0] + [256] * 11,
)

computed(
    "V03-division-goes-towards-zero", "V3", "Quotients and remainders, signed and unsigned.",
    [("div", 7, 2, 3), ("div", -7, 2, -3), ("div", 7, -2, -3), ("div", -7, -2, 3), ("div", MIN, -1, MIN), ("rem", 7, 2, 1), ("rem", -7, 2, -1),
     ("rem", 7, -2, 1), ("rem", -7, -2, -1), ("rem", MIN, -1, 0), ("div_unsigned", -1, 2, MAX), ("div_unsigned", 1, -1, 0),
     ("div_unsigned", MIN, MIN, 1), ("rem_unsigned", -1, 10, 5), ("rem_unsigned", 1, -1, 1), ("rem_unsigned", -1, MIN, MAX)],
)

computed(
    "V04-division-by-zero", "V4", "Each division by 0 gives 0 and is counted.",
    [(operator, left, 0, 0) for operator in ("div", "div_unsigned", "rem", "rem_unsigned") for left in (1, MIN)],
    drops={"division_by_zero": 8},
)

computed(
    "V05-shifts", "V5", "Shifts, also by counts that are none.",
    [("shl", 1, 0, 1), ("shl", 1, 63, MIN), ("shl", 1, 64, 0), ("shl", 1, -1, 0), ("shl", 1, 1 << 32, 0), ("shr", -1, 63, 1), ("shr", -1, 64, 0),
     ("shr", -1, -1, 0), ("shr", MIN, 1, 1 << 62), ("shr_signed", -8, 1, -4), ("shr_signed", -1, 64, -1), ("shr_signed", MAX, 64, 0),
     ("shr_signed", MIN, -1, -1), ("shr_signed", MAX, -1, 0), ("shr_signed", 5, 0, 5)],
)

TOP = 0xFFFFFFFF
computed(
    "V06-sequence-numbers-compare", "V6", "Sequence numbers around 0 and at a distance of 2^31; only the low 32 bits count.",
    [("seq_lt", 1, 2, 1), ("seq_lt", 2, 1, 0), ("seq_lt", 2, 2, 0), ("seq_lt", TOP, 0, 1), ("seq_lt", 0, TOP, 0), ("seq_lt", 0, HALF, 1),
     ("seq_lt", HALF, 0, 1), ("seq_lt", 1 << 32, 1, 1), ("seq_le", 2, 2, 1), ("seq_le", 2, 1, 0), ("seq_le", 1 << 32, 0, 1), ("seq_le", HALF, 0, 1)],
)

CASES = [
    (3, 3, "eq le ge le_unsigned ge_unsigned seq_le seq_ge"),
    (3, 4, "ne lt le lt_unsigned le_unsigned seq_lt seq_le"),
    (-1, 0, "ne lt le gt_unsigned ge_unsigned seq_lt seq_le"),
    (MIN, MAX, "ne lt le gt_unsigned ge_unsigned seq_gt seq_ge"),
    (0, HALF, "ne lt le lt_unsigned le_unsigned seq_lt seq_le seq_gt seq_ge"),
    (1 << 32, 0, "ne gt ge gt_unsigned ge_unsigned seq_le seq_ge"),
]
ORDER = "eq ne lt le gt ge lt_unsigned le_unsigned gt_unsigned ge_unsigned seq_lt seq_le seq_gt seq_ge".split()
# The n-th pair arrives in registers; internal event n notifies whether condition n holds.
for number, (left, right, holding) in enumerate(CASES):
    image = {
        "registers": registers("left", "right"),
        "internal_events": len(ORDER),
        "conditions": [test(comparison, R(0), R(1)) for comparison in ORDER],
        "rows": [row(0, PACKET, put(0, C(left)), put(1, C(right)), raises=0)],
    }
    for n in range(len(ORDER)):
        more = n + 1 if n + 1 < len(ORDER) else None
        image["rows"] += [row(0, internal(n), note(1), when=[(n, True)], raises=more), row(0, internal(n), note(0), raises=more)]
    notes(
        f"V06-conditions-{number + 1}", "V6 V8 E6 E9", f"All comparisons of {left} and {right}, as conditions: {', '.join(ORDER)}.",
        image, [frame(0, "a", udp(1))], [int(comparison in holding.split()) for comparison in ORDER],
    )

computed(
    "V07-earlier-later-distance", "V7", "The earlier and the later of two sequence numbers, and how far they are apart.",
    [("seq_min", TOP, 0, TOP), ("seq_min", 0, TOP, TOP), ("seq_min", 5, 6, 5), ("seq_min", 0, HALF, 0), ("seq_min", HALF, 0, HALF),
     ("seq_max", TOP, 0, 0), ("seq_max", 0, TOP, 0), ("seq_max", 5, 6, 6), ("seq_max", 0, HALF, HALF), ("seq_max", HALF, 0, 0),
     ("seq_distance", 5, 3, 2), ("seq_distance", 3, 5, -2), ("seq_distance", 0, TOP, 1), ("seq_distance", TOP, 0, -1),
     ("seq_distance", HALF, 0, -HALF), ("seq_distance", 0, HALF, -HALF)],
)

computed(
    "V08-bits-and-order", "V8", "Bits, smaller and greater, and comparisons as operators.",
    [("and", 12, 10, 8), ("and", -1, MIN, MIN), ("or", 12, 10, 14), ("xor", 12, 10, 6), ("xor", -1, -1, 0), ("min", 1, 2, 1), ("min", -1, 1, -1),
     ("min", MIN, MAX, MIN), ("max", 1, 2, 2), ("max", -1, 1, 1), ("min_unsigned", -1, 1, 1), ("min_unsigned", MIN, MAX, MAX),
     ("max_unsigned", -1, 1, -1), ("max_unsigned", MIN, MAX, MIN), ("eq", 1, 1, 1), ("eq", 1, 1 + (1 << 32), 0), ("ne", 1, 1 + (1 << 32), 1),
     ("ne", 5, 5, 0), ("lt", -1, 0, 1), ("lt", 0, 0, 0), ("le", 0, 0, 1), ("le", 0, -1, 0), ("lt_unsigned", -1, 0, 0), ("lt_unsigned", 0, -1, 1),
     ("le_unsigned", -1, 0, 0), ("le_unsigned", 0, 0, 1)],
)

KEY = bytes(range(16))
HASHED = {"registers": registers("h"), "rows": [row(0, PACKET, compute("hash", 0, C(1), C(-2)), note(R(0)), note(ENV("flow_hash")))]}
for name, given in (("given", KEY), ("from-seed", None)):
    used = given or secret_key(42)
    notes(
        f"V09-hashes-key-{name}", "V9 V10 V12 F1 F2", "A hash of two values and the hash of the flow's key, of a packet and of its answer.",
        HASHED, [frame(0, "a", udp(1)), frame(1, "a", udp(1, back=True))],
        [(signed(value), at) for at in (0, 1) for value in (siphash(used, struct.pack("<qq", 1, -2)), siphash(used, key(1)))],
        seed=42, **({"hash_key": given.hex()} if given else {}),
    )

DRAW = [compute("random", 0, C(0), C(0)), note(R(0))]
vector(
    "V11-random-numbers", "V11 V12 F19", "Draws of two flows, mixed: each flow's come from its key, its creation, and the number of the draw.",
    {"registers": registers("r"), "rows": [row(0, PACKET, *DRAW, *DRAW)]},
    [frame(5, "a", udp(1)), frame(5, "b", udp(2)), frame(9, "a", udp(1))],
    flows={
        "a": [noted(random(key(1), 5, 0, n, 7), at) for n, at in ((0, 5), (1, 5), (2, 9), (3, 9))],
        "b": [noted(random(key(2), 5, 0, n, 7), 5) for n in (0, 1)],
    },
    seed=7,
)
vector(
    "V11-instances-of-one-instant", "V11 F5 F16", "A key that is used anew at the instant of its first use draws other numbers; at another time it begins again.",
    {"registers": registers("r"), "rows": [row(0, PACKET, *DRAW, DELETE)]},
    [frame(5, "a", udp(1)), frame(5, "b", udp(1)), frame(5, "other", udp(2)), frame(5, "c", udp(1)), frame(6, "d", udp(1))],
    flows={
        label: [noted(random(key(client), at, earlier, 0), at), ENDED]
        for label, client, at, earlier in (("a", 1, 5, 0), ("b", 1, 5, 1), ("other", 2, 5, 0), ("c", 1, 5, 2), ("d", 1, 6, 0))
    },
)

notes(
    "V13-tables", "V13", "Look-ups below, in and above a table.",
    {
        "registers": registers("r"),
        "tables": [{"name": "t", "base": -1, "entries": [10, 20, 30]}, {"name": "low", "base": MIN, "entries": [1, 2]}],
        "rows": [row(0, PACKET, *[
            step for table, index in [(0, MIN), (0, -2), (0, -1), (0, 0), (0, 1), (0, 2), (0, MAX), (1, MIN), (1, MAX)]
            for step in ({"lookup": {"table": table, "register": 0, "index": C(index)}}, note(R(0)))
        ])],
    },
    [frame(0, "a", udp(1))], [10, 10, 10, 20, 30, 30, 30, 1, 2],
)

notes(
    "V14-operands", "V14 P10", "What operands read: the event's values, time in three units, and what is not there.",
    {
        "timers": timers(tick=["x"]),
        "rows": [
            row(0, PACKET, note(EV(0)), note(EV(1)), note(EV(2)), note(ENV("now")), note(ENV("now_microseconds")), note(ENV("now_milliseconds")),
                note(F(CURRENT, "udp.destination_port")), note(F(CURRENT, "tcp.flags")), note(HAS(CURRENT, "udp.length")), note(HAS(CURRENT, "tcp.flags")),
                note(F(WORK, "udp.length")), arm(0, 1, C(77)), next=0),
            row(0, timer(0), note(EV(0))),
            row(0, EXIT, note(EV(2))),
        ],
    },
    [frame(1999999, "a", udp(1), port=2), fire(2000000)],
    [(value, 1999999) for value in (2, 46, 4, 1999999, 1999, 1, 80, 0, 1, 0, 0, 4)] + [(77, 2000000)],
)


def product(left, right, divisor):
    return [{"mul_div": {"register": 0, "left": C(left), "right": C(right), "divisor": C(divisor)}}, note(R(0))]


def divided(left, right, divisor):
    exact = abs(left) * abs(right) // abs(divisor)
    return signed(exact if (left < 0) ^ (right < 0) ^ (divisor < 0) == 0 else -exact)


PRODUCTS = [(7, 3, 2), (-7, 3, 2), (7, -3, 2), (-7, -3, -2), (100_000_000_000, 1_000_000_000, 8_000_000_000), (MAX, MAX, MAX), (MIN, MIN, MIN), (MIN, -1, 1), (MAX, 2, 1), (MIN, MIN, -1), (0, 5, 9)]
notes(
    "V15-products-divided", "V15", "A product of 128 bits, divided towards zero, of which the low 64 bits are kept.",
    {"registers": registers("r"), "rows": [row(0, PACKET, *[one for case in PRODUCTS for one in product(*case)])]},
    [frame(0, "a", udp(1))], [divided(*case) for case in PRODUCTS],
)
notes("V15-by-zero", "V15 V4", "Divided by 0 it is 0, and counted.", {"registers": registers("r"), "rows": [row(0, PACKET, *product(5, 6, 0))]}, [frame(0, "a", udp(1))], [0], drops={"division_by_zero": 1})


def written(index, value):
    return {"set_element": {"first": 1, "count": 3, "index": C(index), "value": C(value)}}


def element(index):
    return [{"element": {"register": 0, "first": 1, "count": 3, "index": C(index)}}, note(R(0))]


notes(
    "V16-arrays", "V16 V2", "Elements are counted round and round, also backwards, and cut like any register; beside the array nothing changes.",
    {
        "registers": [
            *registers("r"), *({"name": f"a[{index}]", "type": "u8", "initial": 10 + index} for index in range(3)), *registers("behind"),
        ],
        "rows": [
            row(
                0, PACKET, *element(0), *element(4), *element(-1), *element(MAX), *element(MIN),
                written(5, 300), *element(2), written(-3, 7), note(R(1)), written(1, -1), note(R(2)), note(R(3)), note(R(4)),
            )
        ],
    },
    [frame(0, "a", udp(1))],
    [10, 11, 12, 10 + MAX % 3, 10 + MIN % 3, 300 % 256, 7, 255, 300 % 256, 0],
)
