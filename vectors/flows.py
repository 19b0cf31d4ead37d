"""Vectors of the rules F1 to F20 and L1 to L4."""

from kit import *

SEEN = [row(0, PACKET, note(EV(2)))]
HOSTS = {"source": [FIELDS["network.source"]], "destination": [FIELDS["network.destination"]]}
ARP = MAC2 + MAC1 + b"\x08\x06" + bytes.fromhex("0001080006040001") + bytes(20)


def flow(**more):
    return {"flow": more}


def word(number, value):
    """A datagram of a client whose first word is `value`."""
    return udp(number, struct.pack(">I", value))


WORD = F(CURRENT, "udp.word_1")

TAGGED = udp(1)[:12] + bytes.fromhex("81000123") + udp(1)[12:]
BACK = MAC1 + MAC2 + TAGGED[12:]
for name, symmetric in (("symmetric", True), ("one-way", False)):
    sides = [MAC1 + MAC2, MAC1 + MAC2 if symmetric else MAC2 + MAC1]
    labels = ["a", "a" if symmetric else "b"]
    flows = {}
    for at, (label, side) in enumerate(zip(labels, sides)):
        flows.setdefault(label, []).append(noted(signed(siphash(bytes(range(16)), b"\x01\x23" + side)), at))
    vector(
        f"F01-key-{name}", "F1 F2 V10", "A key of 12 and of 48 bits: each field in whole bytes, big-endian, the common one first.",
        flow(common=[FIELDS["vlan.id"]], source=[FIELDS["ethernet.source"]], destination=[FIELDS["ethernet.destination"]], symmetric=symmetric)
        | {"rows": [row(0, PACKET, note(ENV("flow_hash")))]},
        [frame(0, labels[0], TAGGED), frame(1, labels[1], BACK)], flows=flows, hash_key=bytes(range(16)).hex(),
    )


def between(source, sport, destination, dport):
    return ether(network(source, destination, 17, datagram(source, sport, destination, dport, b"1234")))


vector(
    "F02-sides-stay-together", "F2", "An answer has its question's key; swapped ports alone make another.",
    {"registers": registers("n"), "rows": [row(0, PACKET, compute("add", 0, R(0), C(1)), note(R(0)))]},
    [frame(0, "a", between("10.0.0.1", 1000, "10.0.0.2", 2000)), frame(1, "a", between("10.0.0.2", 2000, "10.0.0.1", 1000)),
     frame(2, "b", between("10.0.0.1", 2000, "10.0.0.2", 1000))],
    flows={"a": [noted(1), noted(2, 1)], "b": [noted(1, 2)]},
)

for name, policy, sent, drops in (
    ("dropped", "drop", [], {"no_flow_key": 1}),
    ("passed-on", {"pass": [[2, 1]]}, [(0, 2, ARP)], {}),
    ("without-partner", {"pass": [[3, 4]]}, [], {"no_flow_key": 1}),
    ("partner-is-not-there", {"pass": [[1, 3]]}, [], {"no_port": 1}),
):
    vector(f"F03-no-key-{name}", "F3", "A packet without flow key.", {"other_packets": policy, "rows": SEEN}, [frame(0, None, ARP)], sent=sent, drops=drops, live=[])

notes(
    "F04-enter-comes-first", "F4", "A new instance enters state 0 first, and sees the packet there.",
    {"registers": [register("r", "i64", 5)], "rows": [row(0, ENTER, note(HAS(CURRENT, "ipv4.ttl")), note(R(0))), row(0, PACKET, note(2))]},
    [frame(0, "a", udp(1)), frame(1, "a", udp(1))], [1, 5, 2, (2, 1)],
)

vector(
    "F05-no-place-needed", "F5 F16 E13", "Instances that are deleted in their first event take no place, and their timers never fire.",
    flow(max=1) | {"timers": timers(never=[]), "rows": [row(0, PACKET, arm(0, 5), DELETE), row(0, timer(0), note(9))]},
    [frame(0, "a", udp(1)), frame(0, "b", udp(2)), fire(100)], flows={"a": [ENDED], "b": [ENDED]}, live=[], due=None, counters={"flows_created": 2},
)
notes(
    "F05-deleted-in-enter", "F5", "An instance that is deleted in `enter` does not handle the packet.",
    {"rows": [row(0, ENTER, DELETE, note(1)), row(0, PACKET, note(2))]}, [frame(0, "a", udp(1))], [1], flows={"a": [noted(1), ENDED]},
)

vector(
    "F06-table-full", "F6 F17", "A full table that evicts nobody makes no instance, of a packet nor of a call.",
    flow(max=2) | {"rows": SEEN},
    [frame(0, "a", udp(1)), frame(0, "b", udp(2)), frame(0, None, udp(3)), connect(1, "d", 9, refused="table_full"), frame(2, "a", udp(1))],
    flows={"a": [noted(4), noted(4, 2)], "b": [noted(4)]}, drops={"table_full": 1}, live=["a", "b"], counters={"flows_created": 2},
)

QUIET = {"rows": [row(0, PACKET)]}
vector(
    "F07-timers-do-not-count", "F7 F12 E1", "Timers keep no instance alive, packets do; at one instant a packet comes before the expiry.",
    flow(expire=100) | {"timers": timers(tick=[]), "rows": [row(0, PACKET, arm(0, 60)), row(0, timer(0), note(1), arm(0, 60))]},
    [frame(0, "a", udp(1)), frame(0, "b", udp(2)), frame(100, "a", udp(1)), fire(100), fire(199), fire(1000)],
    flows={"a": [noted(1, at) for at in (60, 120, 160, 180)] + [ENDED], "b": [noted(1, 60), ENDED]}, live=[], due=None, counters={"flows_expired": 2},
)

vector(
    "F08-eviction", "F8 F9 E13", "An instance that is evicted goes without an event, and its timers with it.",
    flow(max=1, expire=100, when_full="evict_oldest")
    | {"timers": timers(tick=[]), "rows": [row(0, PACKET, arm(0, 5)), row(0, timer(0), note(2)), row(0, EXPIRE, note(1))]},
    [frame(0, "a", udp(1)), frame(1, "b", udp(2)), fire(50)], flows={"a": [ENDED], "b": [noted(2, 6)]}, live=["b"], counters={"flows_evicted": 1},
)
vector(
    "F08-who-takes-no-place-evicts-nobody", "F8 F5", "An instance that is deleted in its first event evicts nobody.",
    flow(max=1, when_full="evict_oldest")
    | {"conditions": [test("eq", WORD, C(9))], "rows": [row(0, PACKET, DELETE, when=[(0, True)]), row(0, PACKET, note(1))]},
    [frame(0, "a", udp(1)), frame(1, "b", word(2, 9)), frame(2, "a", udp(1))], flows={"a": [noted(1), noted(1, 2)], "b": [ENDED]}, live=["a"],
)

vector(
    "F09-idle-longest", "F9 F7", "Whose last packet came first goes, also among packets of one instant.",
    flow(max=2, when_full="evict_oldest") | QUIET,
    [frame(0, "a", udp(1)), frame(1, "b", udp(2)), frame(2, "a", udp(1)), frame(3, "c", udp(3)), frame(4, "c", udp(3)), frame(4, "a", udp(1)), frame(4, "d", udp(4))],
    flows={"a": [], "b": [ENDED], "c": [ENDED], "d": []}, live=["a", "d"], counters={"flows_evicted": 2},
)

# Each packet says after how long its instance is done.
FINISHING = {
    "states": states("start", "done"), "timers": timers(finish=[]),
    "rows": [row(0, PACKET, arm(0, WORD)), row(0, timer(0), next=1), row(1, PACKET)],
} | flow(max=2, when_full={"evict_oldest_in": [1]})
vector(
    "F10-states-of-now", "F10 F8 F6", "Only who is in a listed state when room is needed goes; as long as nobody is, the new packet is dropped.",
    FINISHING, [frame(0, "a", word(1, 10)), frame(5, "b", word(2, 10)), frame(6, None, word(3, 10)), frame(11, "c", word(3, 10)), frame(12, None, word(4, 10))],
    flows={"a": [ENDED], "b": [], "c": []}, drops={"table_full": 2}, live=["b", "c"],
)
vector(
    "F10-rank-of-a-change", "F10", "Who came into a listed state first goes first, not who is idle longest.",
    FINISHING, [frame(0, "a", word(1, 30)), frame(1, "b", word(2, 10)), frame(40, "c", word(3, 1000)), frame(41, "d", word(4, 1000))],
    flows={"a": [ENDED], "b": [ENDED], "c": [], "d": []}, live=["c", "d"],
)
vector(
    "F10-who-goes-first", "F10", "The same, seen after the first eviction.",
    FINISHING, [frame(0, "a", word(1, 30)), frame(1, "b", word(2, 10)), frame(40, "c", word(3, 1000))],
    flows={"a": [], "b": [ENDED], "c": []}, live=["a", "c"],
)
vector(
    "F10-packets-count-too", "F10 F7", "A packet in a listed state counts behind the change into it.",
    FINISHING, [frame(0, "a", word(1, 30)), frame(1, "b", word(2, 10)), frame(35, "b", word(2, 0)), frame(40, "c", word(3, 1000))],
    flows={"a": [ENDED], "b": [], "c": []}, live=["b", "c"],
)
vector(
    "F10-among-listed-states", "F10", "A change from one listed state to another does not count.",
    {
        "states": states("start", "one", "two"), "timers": timers(finish=[]),
        "rows": [row(0, PACKET, arm(0, WORD)), row(0, timer(0), arm(0, 10), next=1), row(1, timer(0), next=2)],
    } | flow(max=2, when_full={"evict_oldest_in": [1, 2]}),
    [frame(0, "a", word(1, 10)), frame(0, "b", word(2, 15)), frame(22, "c", word(3, 1000))],
    flows={"a": [ENDED], "b": [], "c": []}, live=["b", "c"],
)

group = lambda states, idle=0, above=0: {"states": states, "idle": idle, "above": above}
vector(
    "F11-in-turn", "F11 F10", "Groups are asked one after the other: too many new ones, one that is over, a known one idle for 50, and then new ones and those over.",
    {
        "states": states("new", "known", "over"), "registers": registers("packets"), "conditions": [test("eq", R(0), C(0))],
        "rows": [row(0, PACKET, compute("add", 0, R(0), C(1)), when=[(0, True)]), row(0, PACKET, next=1), row(1, PACKET, next=2), row(2, PACKET)],
    } | flow(max=4, when_full={"evict_in_turn": [group([0], above=2), group([2]), group([1], idle=50), group([0, 2])]}),
    [frame(at, label, udp(int(label[1:])) if label else udp(8))
     for at, label in [(0, "c1"), (0, "c2"), (0, "c3"), (0, "c4"), (1, "c5"), (2, "c2"), (3, "c3"), (4, "c6"), (5, "c2"), (6, "c7"),
                       (10, "c5"), (10, "c6"), (10, "c7"), (52, None), (53, "c8")]],
    flows={"c1": [ENDED], "c2": [ENDED], "c3": [ENDED], "c4": [ENDED], "c5": [], "c6": [], "c7": [], "c8": []},
    drops={"table_full": 1}, live=["c5", "c6", "c7", "c8"],
)

notes(
    "F12-after-the-timers", "F12 E1 E3", "An instance expires after the timers due at that instant, also those that they set for it.",
    flow(expire=100) | {"timers": timers(tick=[], more=[]), "rows": [row(0, PACKET, arm(0, 100)), row(0, timer(0), note(1), arm(1, 0)), row(0, timer(1), note(2))]},
    [frame(0, "a", udp(1)), fire(99), fire(100)], [], flows={"a": [noted(1, 100), noted(2, 100), ENDED]}, live=[],
)
vector(
    "F12-idle-longest-first", "F12 F15 F7", "Instances that expire at one instant go as their last packets came.",
    flow(expire=100) | {"rows": [row(0, PACKET, copy(CURRENT, slot(0))), row(0, EXPIRE, send(slot(0), 2))]},
    [frame(7, label, udp(number)) for label, number in (("a", 1), ("b", 2), ("c", 3), ("b", 2), ("a", 1))] + [fire(107)],
    sent=[(107, 2, udp(number)) for number in (3, 2, 1)], flows={label: [ENDED] for label in "abc"}, live=[],
)

vector(
    "F12-idle-times-of-states", "F12 F13 F14", "A state's own idle time counts in place of the flow's, and nothing holds an instance there; 0 is without end.",
    {
        "states": states("start", "short", "endless", short=10, endless=0), "timers": timers(tick=[]), "conditions": [test("eq", WORD, C(7))],
        "rows": [row(0, PACKET, arm(0, 500), when=[(0, True)]), row(0, PACKET, when=[(0, False)], next=2), row(0, timer(0), arm(0, 500), next=1),
                 row(1, EXPIRE, note(3))],
    } | flow(expire=1000, hold=True),
    [frame(0, "a", udp(1)), frame(0, "b", word(2, 8)), frame(495, "c", udp(3)), fire(500), fire(995), fire(MAX - 1)],
    flows={"a": [noted(3, 500), ENDED], "b": [], "c": [noted(3, 995), ENDED]}, live=["b"],
)

vector(
    "F13-held-by-timers", "F13 F14", "With a setting pending an instance does not expire; with the last one gone, at the end of that event if its time is up.",
    flow(expire=100, hold=True) | {"timers": timers(long=[]), "rows": [row(0, PACKET, arm(0, 250)), row(0, timer(0), note(1)), row(0, EXPIRE, note(ENV("now")))]},
    [frame(0, "a", udp(1)), frame(90, "b", udp(2)), fire(249), fire(250), frame(300, "b", udp(2)), fire(549), fire(550)],
    flows={"a": [noted(1, 250), noted(250, 250), ENDED], "b": [noted(1, 340), noted(1, 550), noted(550, 550), ENDED]}, live=[], due=None,
)
vector(
    "F13-held-by-the-application", "F13 A2", "An open application holds its instance until it closes; then the idle time counts from that call.",
    flow(expire=100, hold=True) | QUIET,
    [connect(0, "a", 1), frame(0, "b", udp(2)), frame(0, "c", udp(3)), {"at": 50, "flow": "c", "write": "78", "accepted": 1}, fire(1000),
     {"at": 1001, "flow": "a", "close": True}, fire(1100)],
    flows={"a": [], "b": [ENDED], "c": []}, live=["a", "c"], due=1101,
)

vector(
    "F15-expire", "F15 F16 E10", "The event `expire` may send, notify and change the state; its timers never fire, and the instance goes.",
    flow(expire=100)
    | {
        "states": states("start", "other"), "timers": timers(never=[]),
        "rows": [row(0, PACKET, copy(CURRENT, slot(0))), row(0, EXPIRE, note(1), send(slot(0), 2), arm(0, 0), arm(0, 50), next=1),
                 row(0, EXIT, note(2)), row(1, ENTER, note(3)), row(1, timer(0), note(9))],
    },
    [frame(0, "a", udp(1)), fire(1000)], sent=[(100, 2, udp(1))], flows={"a": [noted(1, 100), noted(2, 100), noted(3, 100), ENDED]}, live=[], due=None,
)

vector(
    "F16-opened", "F16 F18", "Instances that packets make are told of with their ends, also those that end at once; those of calls are not.",
    {"flow": {"source": [FIELDS["network.source"]], "destination": [FIELDS["network.destination"]]},
     "conditions": [test("eq", WORD, C(9))], "rows": [row(0, PACKET, DELETE, when=[(0, True)]), row(0, PACKET)]},
    [frame(0, "a", udp(1)), frame(1, "b", word(2, 9)), frame(2, "c", ether(network(client(3), SERVER, 1, bytes.fromhex("0800f7ff00000000")))), connect(3, "d", 4)],
    flows={"a": [], "b": [ENDED], "c": [], "d": []},
    opened={"a": [f"{SERVER}:80", f"{client(1)}:4000"], "b": [f"{SERVER}:80", f"{client(2)}:4000"], "c": None},
)

vector(
    "F20-full", "F20 F5 F17", "Instances see in their first event that the table is full, in `enter` too; those that end at once take nobody's place.",
    flow(max=1, when_full="evict_oldest") | {
        "templates": [template("datagram")], "conditions": [test("eq", WORD, C(9))],
        "rows": [row(0, ENTER, note(ENV("flow_full"))), row(0, CONNECT, note(ENV("flow_full"))),
                 row(0, PACKET, note(ENV("flow_full")), DELETE, when=[(0, True)]), row(0, PACKET, note(ENV("flow_full")))],
    },
    [frame(0, "a", word(1, 1)), frame(1, "a", word(1, 1)), frame(2, "b", word(2, 9)), frame(3, "a", word(1, 1)), connect(4, "d", 4), frame(5, "e", word(5, 1)), frame(6, "e", word(5, 1))],
    flows={"a": [noted(0), noted(0), noted(0, 1), noted(0, 3), ENDED], "b": [noted(1, 2), noted(1, 2), ENDED], "d": [noted(1, 4), noted(1, 4), ENDED],
           "e": [noted(1, 5), noted(1, 5), noted(0, 6)]},
    live=["e"], counters={"flows_evicted": 2},
)

AGAIN = [test("eq", WORD, C(9)), test("gt", R(0), C(0))]
vector(
    "E20-restart", "E20 E12 F16", "A packet ends its instance and makes a new one of its key, in a table that is full: the rest of the row runs, timers never fire, registers begin anew.",
    flow(max=1) | {
        "states": states("start", "other"), "registers": registers("packets"), "timers": timers(never=[]), "conditions": AGAIN,
        "rows": [
            row(0, ENTER, note(HAS(CURRENT, "udp.length"))),
            row(0, PACKET, RESTART, note(100), arm(0, 1), when=[(0, True), (1, True)], next=1),
            row(0, PACKET, compute("add", 0, R(0), C(1)), note(R(0)), note(EV(2))), row(0, timer(0), note(200)), row(1, ENTER, note(300)),
        ],
    },
    [frame(0, "a", word(1, 1)), frame(1, "a", word(1, 1)), frame(2, "b", word(1, 9)), frame(3, "b", word(1, 1)), fire(100)],
    flows={"a": [noted(1), noted(1), noted(4), noted(2, 1), noted(4, 1), noted(100, 2), ENDED], "b": [noted(1, 2), noted(1, 2), noted(4, 2), noted(2, 3), noted(4, 3)]},
    opened={name: [f"{SERVER}:80", f"{client(1)}:4000"] for name in "ab"}, live=["b"], due=None, counters={"flows_created": 2, "flows_evicted": 0},
)
vector(
    "E20-as-it-was", "E20", "The new instance gets the packet as it was when the operation first ran.",
    {"registers": registers("packets"), "conditions": AGAIN,
     "rows": [row(0, PACKET, write(CURRENT, "udp.word_1", 5), RESTART, write(CURRENT, "udp.word_1", 7), RESTART, when=[(0, True), (1, True)]),
              row(0, PACKET, put(0, C(1)), note(WORD))]},
    [frame(0, "a", word(1, 1)), frame(1, "b", word(1, 9))], flows={"a": [noted(1), ENDED], "b": [noted(5, 1)]}, live=["b"],
)
vector(
    "E20-first-event", "E20 F5", "In the first event of an instance it only deletes: a packet makes two instances at most.",
    {"registers": registers("packets"), "conditions": AGAIN, "rows": [row(0, PACKET, RESTART, note(1), when=[(0, True)]), row(0, PACKET, note(2))]},
    [frame(0, "a", word(1, 9)), frame(1, "b", word(2, 1)), frame(2, "c", word(2, 9))],
    flows={"a": [noted(1), ENDED], "b": [noted(2, 1), noted(1, 2), ENDED], "c": [noted(1, 2), ENDED]}, live=[],
)
vector(
    "E20-no-packet-event", "E20", "At other events it only deletes, also where there is a packet.",
    {"timers": timers(end=[]), "rows": [row(0, PACKET, arm(0, 5), note(1)), row(0, timer(0), RESTART), row(0, ICMP, RESTART, note(2))]},
    [frame(0, "a", udp(1)), frame(1, None, icmp(3, 1, network(SERVER, client(1), 17, datagram(SERVER, 80, client(1), 4000, b""))[:28])), frame(2, "b", udp(1)), fire(9)],
    flows={"a": [noted(1), noted(2, 1), ENDED], "b": [noted(1, 2), ENDED]}, live=[], due=None,
)

CALLED = {
    "templates": [template("datagram"), template("segment", "tcp")], "creation": [{"slot": 0, "template": 0}, {"slot": 0, "template": 1}],
    "rows": [row(0, ENTER, note(1)), row(0, CONNECT, note(2), send(slot(0), 2)), row(0, PACKET, note(EV(2)))],
}
vector(
    "F17-connect", "F17 F18", "A call makes an instance with its packets; the answer to them is the flow's, and it can't be opened twice.",
    CALLED,
    [connect(0, "a", 1), frame(1, "a", udp(1, b"answer", back=True)), connect(2, "a", 1, refused="exists"), connect(2, "b", 1, protocol="sctp", refused="unfit"),
     connect(3, "c", 1, protocol="tcp")],
    sent=[(0, 2, udp(1, b"")), (3, 2, tcp(1))], flows={"a": [noted(1), noted(2), noted(6, 1)], "c": [noted(1, 3), noted(2, 3)]}, live=["a", "c"],
)

SHORT = {"rows": [row(0, PACKET, note(EV(1)), resize(CURRENT, 18), send(CURRENT), resize(CURRENT, 19), send(CURRENT))]}
vector(
    "L01-longest-frame", "L1", "A frame that is too long is dropped, and not sent.", SHORT, [frame(0, "a", udp(1, bytes(18))), frame(1, None, udp(1, bytes(19)))],
    limits={"frame": 60}, sent=[(0, 1, udp(1, bytes(18)))], flows={"a": [noted(60)]}, drops={"too_long": 2},
)
vector(
    "L02-longest-headers", "L2", "Headers that are too long: a tag more than there is room for. Without transport header the network header is the last.",
    {"rows": SEEN}, [frame(0, "a", udp(1)), frame(1, None, TAGGED), frame(2, None, ether(network(client(1), SERVER, 1, bytes.fromhex("0800f7ff00000000") + bytes(40))))],
    limits={"headers": 42}, flows={"a": [noted(4)]}, drops={"header_unsupported": 1, "no_flow_key": 1},
)
vector(
    "L03-stored-packets", "L3", "One packet may be stored: another can take its place, but not a second; when its instance is gone there is room again.",
    {"rows": [row(0, PACKET, copy(CURRENT, slot(0)), copy(CURRENT, slot(1)), note(HAS(slot(0), "udp.length")), note(HAS(slot(1), "udp.length")))]},
    [frame(0, "a", udp(1)), frame(1, "a", udp(1)), frame(2, "b", udp(2)), {"flow": "a", "delete": True}, frame(3, "b", udp(2))],
    limits={"packets": 1},
    flows={"a": [noted(v, at) for at in (0, 1) for v in (1, 0)], "b": [noted(0, 2), noted(0, 2), noted(1, 3), noted(0, 3)]}, drops={"no_buffer": 5},
)
vector(
    "L03-packets-of-creation", "L3 F17", "A packet of `creation` for which there is no room is not made.",
    CALLED, [connect(0, "a", 1)], limits={"packets": 0}, flows={"a": [noted(1), noted(2)]}, drops={"no_buffer": 1, "no_packet": 1},
)
vector(
    "L04-timers-of-all", "L4", "Two settings may be pending in all instances together.",
    {"timers": timers(tick=[]), "rows": [row(0, PACKET, arm(0, 10)), row(0, timer(0), note(1))]},
    [frame(0, "a", udp(1)), frame(1, "b", udp(2)), frame(2, "c", udp(3)), fire(10), frame(11, "c", udp(3)), fire(30)],
    limits={"timers": 2}, flows={"a": [noted(1, 10)], "b": [noted(1, 11)], "c": [noted(1, 21)]}, drops={"too_many_timers": 1},
)
