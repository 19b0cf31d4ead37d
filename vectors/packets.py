"""Vectors of the rules P1 to P28."""

import zlib

from kit import *

COUNT = {"registers": registers("n"), "rows": [row(0, PACKET, compute("add", 0, R(0), C(1)), note(R(0)), note(EV(2)))]}


def broken(name, rules, about, frames, drops):
    """Frames of which none raises an event."""
    vector(name, rules, about, COUNT | {"other_packets": {"pass": [[1, 2]]}}, [frame(0, None, data) for data in frames], drops=drops)


def rechecked(data, start, length):
    """The frame with its IPv4 checksum made right."""
    head = data[start : start + 10] + b"\0\0" + data[start + 12 : start + length]
    return data[: start + 10] + struct.pack(">H", 0xFFFF - ones(head)) + data[start + 12 :]


GOOD = udp(1)
LONG = udp(1, bytes(40))
TCP = tcp(1, options=bytes([2, 4, 5, 0xB4]))

vector(
    "P01-headers", "P1 P10 P14", "Plain, tagged once, tagged twice, with IPv4 options, over IPv6: the same flow where the key is the same.",
    {"rows": [row(0, PACKET, note(F(CURRENT, "vlan.id")), note(F(CURRENT, "network.version")), note(F(CURRENT, "network.protocol")),
                  note(F(CURRENT, "transport.destination_port")), note(EV(2)))]},
    [
        frame(0, "a", GOOD),
        frame(1, "a", udp(1)[:12] + bytes.fromhex("81000123") + udp(1)[12:]),
        frame(2, "a", udp(1)[:12] + bytes.fromhex("88a80007") + bytes.fromhex("81000123") + udp(1)[12:]),
        frame(3, "a", udp(1, options=bytes([1, 1, 1, 0]))),
        frame(4, "b", ether(network("fd00::1", "fd00::2", 17, datagram("fd00::1", 4000, "fd00::2", 80, b"six")))),
        frame(5, "c", TCP),
    ],
    flows={
        "a": [noted(v, at) for at, vlan in ((0, 0), (1, 0x123), (2, 7), (3, 0)) for v in (vlan, 4, 17, 80, 4)],
        "b": [noted(v, 4) for v in (0, 6, 17, 80, 3)],
        "c": [noted(v, 5) for v in (0, 4, 6, 80, 0)],
    },
)

broken(
    "P02-truncated", "P2 F3", "Frames that end in a header, or before their IP length; none is passed on.",
    [GOOD[:10], GOOD[:30], GOOD[:40], GOOD[:-1], TCP[:50]], {"truncated": 5},
)

LONG_HEADER = rechecked(GOOD[:14] + b"\x4f" + GOOD[15:] + bytes(40), 14, 60)
SHORT_HEADER = GOOD[:14] + b"\x44" + GOOD[15:]
broken(
    "P03-bad-length", "P3 F3", "Lengths that are too small or lead beyond the packet.",
    [
        LONG_HEADER, SHORT_HEADER,
        TCP[:46] + b"\x40" + TCP[47:], TCP[:46] + b"\xf0" + TCP[47:],
        GOOD[:38] + b"\0\7" + GOOD[40:], GOOD[:38] + b"\0\xff" + GOOD[40:],
        tcp(1, options=bytes([2, 1, 0, 0])), tcp(1, options=bytes([2, 9, 0, 0])),
    ],
    {"bad_length": 8},
)

broken(
    "P04-bad-version", "P4", "IPv6 announced, IPv4 found, and the other way round.",
    [LONG[:12] + b"\x86\xdd" + LONG[14:], LONG[:14] + b"\x65" + LONG[15:]], {"bad_version": 2},
)

broken(
    "P05-bad-checksum", "P5 F3", "A wrong checksum of IPv4, of UDP, of TCP.",
    [GOOD[:22] + b"\x41" + GOOD[23:], GOOD[:-1] + b"\x08", TCP[:-5] + b"\xff" + TCP[-4:]], {"bad_checksum": 3},
)

PARTIAL = GOOD[:40] + struct.pack(">H", ones(ip(client(1)) + ip(SERVER) + struct.pack(">HH", 17, 12))) + GOOD[42:]
CHANGED_PARTIAL = GOOD[:26] + PARTIAL[26:]
notes(
    "P05-checksums-not-looked-at", "P5 P17", "A checksum that the receiver verified, or left to hardware, may be anything; the latter leaves so, with the sum of the pseudo-header.",
    {"rows": [row(0, PACKET, note(EV(2)), send(CURRENT, 2))]},
    [frame(0, "a", GOOD[:-1] + b"\x08", checksum="verified"), frame(1, "a", GOOD[:40] + b"\x12\x34" + GOOD[42:], checksum="partial")],
    [(4, 0), (4, 1)],
    sent=[(0, 2, udp(1, b"\0\0\0\x08")), (1, 2, PARTIAL)],
    partial=[1],
)

notes(
    "P06-padding", "P6 P16", "Bytes behind the IP length, and behind the UDP length, are no part of the packet.",
    {"rows": [row(0, PACKET, note(EV(1)), note(EV(2)), send(CURRENT, 2))]},
    [
        frame(0, "a", udp(1, b"x") + b"\xaa" * 17),
        frame(1, "a", ether(network(client(1), SERVER, 17, datagram(client(1), 4000, SERVER, 80, b"x") + b"junk"))),
    ],
    [(60, 0), (1, 0), (47, 1), (1, 1)],
    sent=[(0, 2, udp(1, b"x")), (1, 2, udp(1, b"x"))],
)

FRAGMENTED = {
    "flow": {"source": [FIELDS["network.source"]], "destination": [FIELDS["network.destination"]]},
    "rows": [row(0, PACKET, note(HAS(CURRENT, "udp.length")), note(F(CURRENT, "udp.length")), note(EV(2)), write(CURRENT, "ipv4.ttl", 9), send(CURRENT, 2))],
}
WHOLE = datagram(client(1), 4000, SERVER, 80, b"f" * 40)


def fragment(part, offset, more, ttl=64):
    return ether(network(client(1), SERVER, 17, part, ttl=ttl, ident=5, fragment=(0x2000 if more else 0) | offset // 8))


notes(
    "P07-fragments", "P7 P16", "The first fragment has its transport header, whose length and checksum are those of the whole; the second has none.",
    FRAGMENTED, [frame(0, "a", fragment(WHOLE[:24], 0, True)), frame(1, "a", fragment(WHOLE[24:], 24, False))],
    [(1, 0), (48, 0), (16, 0), (0, 1), (0, 1), (0, 1)],
    sent=[(0, 2, fragment(WHOLE[:24], 0, True, 9)), (1, 2, fragment(WHOLE[24:], 24, False, 9))],
)

NONE = ether(network(client(1), SERVER, 17, datagram(client(1), 4000, SERVER, 80, b"free", checksum=False)))
SIX = datagram("fd00::1", 4000, "fd00::2", 80, b"free", checksum=False)
vector(
    "P08-no-checksum", "P8 P16", "No checksum over IPv4 is good and stays none; over IPv6 it is wrong.",
    {"rows": [row(0, PACKET, write(CURRENT, "udp.word_1", 1), send(CURRENT, 2))]},
    [frame(0, "a", NONE), frame(0, None, ether(network("fd00::1", "fd00::2", 17, SIX)))],
    sent=[(0, 2, ether(network(client(1), SERVER, 17, datagram(client(1), 4000, SERVER, 80, b"\0\0\0\1", checksum=False))))],
    flows={"a": []}, drops={"bad_checksum": 1},
)

REPORT = {
    "name": "report", "length": 64,
    "fields": [{"name": "kind", "offset": 0, "width": 8}, {"name": "value", "offset": 8, "width": 56}],
    "place": {"after": {"header": "udp", "when": {"field": {"format": "udp", "field": "destination_port"}, "equals": 80}}},
}
KIND, VALUE = len(BASE["fields"]), len(BASE["fields"]) + 1
IMPORTING = {
    "formats": BASE["formats"] + [REPORT],
    "fields": BASE["fields"] + [{"format": "report", "field": "kind"}, {"format": "report", "field": "value"}],
}
at_report = lambda field: {"field": {"packet": CURRENT, "field": field}}
notes(
    "P09-imported-headers", "P9 P10 P11", "A header behind UDP: there if its condition holds and it fits; the payload begins behind it.",
    IMPORTING | {"rows": [row(0, PACKET, note({"present": {"packet": CURRENT, "field": KIND}}), note(at_report(KIND)), note(at_report(VALUE)), note(EV(2)),
                              {"set_field": {"packet": CURRENT, "field": VALUE, "value": C(-1), "optional": True}}, send(CURRENT, 2))]},
    [frame(0, "a", udp(1, bytes(range(1, 12)))), frame(1, "a", udp(1, b"short")), frame(2, "a", udp(1, bytes(range(1, 12)), back=True))],
    [(1, 0), (1, 0), (0x02030405060708, 0), (3, 0), (0, 1), (0, 1), (0, 1), (5, 1), (0, 2), (0, 2), (0, 2), (11, 2)],
    sent=[(0, 2, udp(1, b"\1" + b"\xff" * 7 + bytes([9, 10, 11]))), (1, 2, udp(1, b"short")), (2, 2, udp(1, bytes(range(1, 12)), back=True))],
)

notes(
    "P11-writing", "P11 P16", "A write keeps the field's low bits and changes nothing else; where there is no field it is counted, unless it is optional.",
    {"rows": [row(0, PACKET, write(CURRENT, "ipv4.ttl", 0x1FF), write(CURRENT, "udp.word_1", -1), write(CURRENT, "tcp.sequence", 1),
                  write(CURRENT, "tcp.sequence", 1, optional=True), write(CURRENT, "vlan.id", 2), note(F(CURRENT, "ipv4.ttl")), send(CURRENT, 2))]},
    [frame(0, "a", udp(1))], [255], sent=[(0, 2, udp(1, b"\xff" * 4, ttl=255))], drops={"no_field": 2},
)

TWICE = bytes([2, 4, 1, 2, 2, 4, 3, 4, 5, 10]) + struct.pack(">II", 7, 8) + b"\1\1"
vector(
    "P12-tcp-options", "P12 P11", "Of two options of one kind the first is read and written; of a SACK option with one block, only that block is there.",
    {"rows": [row(0, PACKET, note(F(CURRENT, "tcp.mss")), note(HAS(CURRENT, "tcp.sack_left_1")), note(F(CURRENT, "tcp.sack_right_1")),
                  note(HAS(CURRENT, "tcp.sack_left_2")), write(CURRENT, "tcp.mss", 0x0506), send(CURRENT, 2))]},
    [frame(0, "a", tcp(1, options=TWICE))],
    sent=[(0, 2, tcp(1, options=TWICE[:2] + b"\5\6" + TWICE[4:]))],
    flows={"a": [noted(v) for v in (0x0102, 1, 8, 0)]},
)

notes(
    "P13-words", "P13", "Words behind the UDP header are there if the packet has all their bytes.",
    {"rows": [row(0, PACKET, *[note(HAS(CURRENT, f"udp.word_{n}")) for n in (1, 2, 3, 4)], note(F(CURRENT, "udp.word_2")))]},
    [frame(0, "a", udp(1, bytes(range(1, 12))))], [1, 1, 0, 0, 0x05060708],
)

notes(
    "P15-udp-length", "P15 P16 P21", "Writing the UDP length sizes the payload; below the header's length it is that.",
    {"rows": [row(0, PACKET, write(CURRENT, "udp.length", 14), send(CURRENT, 2), write(CURRENT, "udp.length", 9), send(CURRENT, 2),
                  write(CURRENT, "udp.length", 3), note(F(CURRENT, "udp.length")), send(CURRENT, 2))]},
    [frame(0, "a", udp(1, b"abcd"))], [8], sent=[(0, 2, udp(1, b"abcd\0\0")), (0, 2, udp(1, b"a")), (0, 2, udp(1, b""))],
)

vector(
    "P16-sent-as-it-is-then", "P16 P25 E6", "A packet is sent as it is at that moment; its copy goes ways of its own.",
    {"rows": [row(0, PACKET, copy(CURRENT, WORK), write(WORK, "udp.word_1", 1), send(WORK), write(WORK, "udp.word_1", 2), send(WORK, 2), send(CURRENT, 2))]},
    [frame(0, "a", udp(1))], sent=[(0, 1, udp(1, b"\0\0\0\1")), (0, 2, udp(1, b"\0\0\0\2")), (0, 2, udp(1))], flows={"a": []},
)

BARE = network(client(1), SERVER, 17, datagram(client(1), 4000, SERVER, 80, b"\0\0\0\7"))
ICMP = network(client(1), SERVER, 1, b"\x08\0\xf7\xff\0\0\0\0")
vector(
    "P18-link-headers", "P18 F3", "Between Ethernet and raw IP the link header goes and comes; what is not IP cannot leave by a raw-IP port.",
    {"other_packets": {"pass": [[1, 2]]}, "rows": [row(0, PACKET, send(CURRENT, 1), send(CURRENT, 2))]},
    [
        frame(0, "a", udp(1)[:12] + bytes.fromhex("81000123") + udp(1)[12:]),
        frame(1, "a", BARE, port=2),
        frame(2, None, ether(ICMP)),
        frame(3, None, ICMP, port=2),
        frame(4, None, MAC2 + MAC1 + b"\x08\x06" + bytes.fromhex("0001080006040001") + bytes(20)),
    ],
    ports={"1": "ethernet", "2": "ip"},
    sent=[
        (0, 1, udp(1)[:12] + bytes.fromhex("81000123") + udp(1)[12:]), (0, 2, BARE),
        (1, 1, ether(BARE, bytes(6), bytes(6))), (1, 2, BARE),
        (2, 2, ICMP), (3, 1, ether(ICMP, bytes(6), bytes(6))),
    ],
    flows={"a": []}, drops={"no_port": 1},
)

vector(
    "P18-only-ip-leaves-by-raw-ip", "P18 P24", "A machine that handles ARP can send it by Ethernet only.",
    {
        "flow": {"common": [FIELDS["ethernet.type"]], "source": [FIELDS["ethernet.source"]], "destination": [FIELDS["ethernet.destination"]]},
        "rows": [row(0, PACKET, send(CURRENT, 1), send(CURRENT, 2))],
    },
    [frame(0, "a", MAC2 + MAC1 + b"\x08\x06" + bytes.fromhex("0001080006040001") + bytes(20))],
    ports={"1": "ethernet", "2": "ip"},
    sent=[(0, 1, MAC2 + MAC1 + b"\x08\x06" + bytes.fromhex("0001080006040001") + bytes(20))], flows={"a": []}, drops={"no_port": 1},
)

vector(
    "P19-reverse", "P19", "A packet turned round.",
    {"rows": [row(0, PACKET, {"reverse": {"packet": CURRENT}}, send(CURRENT))]},
    [frame(0, "a", udp(1)), frame(1, "b", TCP)],
    sent=[(0, 1, udp(1, back=True)),
          (1, 1, ether(network(SERVER, client(1), 6, segment(SERVER, 80, client(1), 4000, options=bytes([2, 4, 5, 0xB4]))), MAC1, MAC2))],
    flows={"a": [], "b": []},
)

OPTIONS = bytes([2, 4, 5, 0xB4, 1, 3, 3, 7, 4, 2]) + bytes([8, 10]) + struct.pack(">II", 1, 2)
vector(
    "P20-keep-options", "P20", "Options that stay keep their order, behind NOPs; a packet without TCP header is counted.",
    {"rows": [row(0, PACKET, {"keep_options": {"packet": CURRENT, "kinds": [4, 3]}}, send(CURRENT, 2))]},
    [frame(0, "a", tcp(1, options=OPTIONS, payload=b"data")), frame(1, "b", udp(1))],
    sent=[(0, 2, tcp(1, options=bytes([1, 1, 1, 3, 3, 7, 4, 2]), payload=b"data")), (1, 2, udp(1))],
    flows={"a": [], "b": []}, drops={"no_field": 1},
)

vector(
    "P21-resize", "P21", "Longer with zeros, shorter, empty; too long and without transport header it stays as it is.",
    {
        "flow": {"source": [FIELDS["network.source"]], "destination": [FIELDS["network.destination"]]},
        "rows": [row(0, PACKET, resize(CURRENT, 6), send(CURRENT), resize(CURRENT, 2), send(CURRENT), resize(CURRENT, -5), send(CURRENT), resize(CURRENT, 65508), send(CURRENT))],
    },
    [frame(0, "a", udp(1, b"abcd")), frame(1, "b", ether(ICMP))],
    sent=[(0, 1, udp(1, b"abcd\0\0")), (0, 1, udp(1, b"ab")), (0, 1, udp(1, b"")), (0, 1, udp(1, b""))] + [(1, 1, ether(ICMP))] * 4,
    flows={"a": [], "b": []}, drops={"too_long": 1, "no_field": 4},
)

TEMPLATES = [
    template("answer", payload=3, presets=[("ipv4.ttl", 9)]),
    template("syn", "tcp", options=[2, 4, 8, 3], presets=[("tcp.flags", 2), ("tcp.sequence", 7)]),
]
SYN_OPTIONS = bytes([1, 1, 1]) + bytes([2, 4, 5, 0xB4]) + bytes([4, 2]) + bytes([8, 10]) + bytes(8) + bytes([3, 3, 0])
NOPS = (-(len(SYN_OPTIONS) - 3)) % 4
SYN_OPTIONS = b"\1" * NOPS + SYN_OPTIONS[3:]
vector(
    "P22-build", "P22 F18", "Built packets go from this end to the other: from the packet's destination to its source, in its VLAN; over IPv6 if the flow is.",
    {"templates": TEMPLATES, "rows": [row(0, PACKET, build(0), send(WORK), build(1), send(WORK))]},
    [
        frame(0, "a", udp(1)[:12] + bytes.fromhex("81000123") + udp(1)[12:]),
        frame(1, "b", ether(network("fd00::1", "fd00::2", 17, datagram("fd00::1", 4000, "fd00::2", 80, b"six")))),
    ],
    sent=[
        (0, 1, ether(network(SERVER, client(1), 17, datagram(SERVER, 80, client(1), 4000, bytes(3)), ttl=9), MAC1, MAC2, vlan=0x123)),
        (0, 1, ether(network(SERVER, client(1), 6, segment(SERVER, 80, client(1), 4000, options=SYN_OPTIONS, flags=2, sequence=7)), MAC1, MAC2, vlan=0x123)),
        (1, 1, ether(network("fd00::2", "fd00::1", 17, datagram("fd00::2", 80, "fd00::1", 4000, bytes(3))), MAC1, MAC2)),
        (1, 1, ether(network("fd00::2", "fd00::1", 6, segment("fd00::2", 80, "fd00::1", 4000, options=SYN_OPTIONS, flags=2, sequence=7)), MAC1, MAC2)),
    ],
    flows={"a": [], "b": []},
)

# Options: NOP, MSS, NOP, window scale, SACK, timestamps.
MANY = {"templates": [template("many", "tcp", options=[1, 2, 1, 3, 5, 8])], "rows": []}
MSS, SCALE, STAMPS = bytes.fromhex("020405b4"), bytes.fromhex("030300"), bytes([8, 10]) + bytes(8)
SACKS = lambda count: bytes([5, 2 + 8 * count]) + bytes(8 * count)
NOP = b"\1"


def with_options(name, about, options, *values, kinds=None):
    image = MANY if kinds is None else {"templates": [template("many", "tcp", options=kinds)]}
    vector(
        name, "P22", about, image | {"rows": [row(0, PACKET, build(0, WORK, *values), send(WORK))]}, [frame(0, "a", tcp(1))],
        sent=[(0, 1, ether(network(SERVER, client(1), 6, segment(SERVER, 80, client(1), 4000, options=options)), MAC1, MAC2))], flows={"a": []},
    )


with_options("P22-options-all", "Without values all options are there but SACK; with NOPs of its own a template is padded behind.", NOP + MSS + NOP + SCALE + STAMPS + bytes(1))
with_options("P22-options-wanted", "Only options are there whose value is not 0; SACK has so many blocks.", MSS + NOP + SACKS(2) + b"\0", 0, 1, 1, 0, 2, 0)
with_options("P22-options-what-fits", "SACK has as many blocks as fit; what does not fit behind it is left out.", NOP + MSS + NOP + SCALE + SACKS(3) + bytes(1), 1, -7, 1, 1, 9, 1)
with_options("P22-options-no-block", "A number of blocks that is negative is none; padding goes in front without NOPs.", NOP + NOP + STAMPS, -1, 1, kinds=[5, 8])
with_options("P22-options-sack-behind", "Behind timestamps SACK has three blocks.", STAMPS + SACKS(3), 1, 4, kinds=[8, 5])


def partial(frame):
    """A frame whose TCP checksum is only the sum of its pseudo-header: of IPv4 without options, or of IPv6."""
    six = frame[14] >> 4 == 6
    at = 54 if six else 34
    addresses = frame[22:54] if six else frame[26:34]
    value = ones(addresses + (struct.pack(">IHBB", len(frame) - at, 0, 0, 6) if six else struct.pack(">BBH", 0, 6, len(frame) - at)))
    return frame[: at + 16] + struct.pack(">H", value) + frame[at + 18 :]


def cut(packet, size):
    return {"cut": {"packet": packet, "size": C(size)}}


WHOLE = tcp(1, payload=b"0123456789")
SIX = ether(network("fd00::1", "fd00::2", 6, segment("fd00::1", 4000, "fd00::2", 80, b"0123456789", flags=0x80)))
vector(
    "P26-cut", "P26 P17 P16", "A packet stands for many segments when its payload is longer than one; a size that is none, or another cut, takes that back.",
    {"rows": [row(0, PACKET, send(CURRENT), cut(CURRENT, 4), send(CURRENT))]},
    [frame(0, "a", WHOLE), frame(1, "b", SIX), frame(2, "c", udp(3))],
    sent=[(0, 1, WHOLE), (0, 1, partial(WHOLE)), (1, 1, SIX), (1, 1, partial(SIX)), (2, 1, udp(3)), (2, 1, udp(3))], partial=[1, 3], cut=[[1, 4], [3, 4]],
    flows={"a": [], "b": [], "c": []}, drops={"no_field": 1},
)
vector(
    "P26-not-cut", "P26", "A size that the payload does not exceed, sizes that are none, and no packet.",
    {"rows": [row(0, PACKET, cut(CURRENT, 10), send(CURRENT), cut(CURRENT, 0), send(CURRENT), cut(CURRENT, 4), cut(CURRENT, -1), send(CURRENT), cut(CURRENT, 65536), send(CURRENT), cut(WORK, 4))]},
    [frame(0, "a", WHOLE)], sent=[(0, 1, WHOLE)] * 4, flows={"a": []}, drops={"no_packet": 1},
)

vector(
    "P23-no-packet", "P23 P24 P25", "What is not there can't be sent, changed, copied, or built; nor sent to a port that is not there.",
    {
        "flow": {"source": [FIELDS["network.source"]], "destination": [FIELDS["network.destination"]]},
        "templates": TEMPLATES, "timers": timers(tick=[]),
        "rows": [
            row(0, PACKET, arm(0, 1), send(slot(0)), write(WORK, "ipv4.ttl", 1), {"reverse": {"packet": slot(1)}}, copy(slot(0), WORK), {"discard": {"packet": slot(0)}},
                build(0), send(CURRENT, 0), send(CURRENT, 3), send(CURRENT, 65537), send(CURRENT, -1)),
            row(0, timer(0), send(CURRENT)),
        ],
    },
    [frame(0, "a", ether(ICMP)), fire(1), frame(2, None, udp(1), port=9)],
    flows={"a": []}, drops={"no_packet": 7, "no_port": 5},
)

vector(
    "P25-slots", "P25 P23", "Stored packets stay until something is put over them or they are discarded; a change of one is no change of the other.",
    {"rows": [row(0, PACKET, copy(slot(0), slot(1)), copy(CURRENT, slot(0)), write(CURRENT, "udp.word_1", 9), send(slot(0)), send(slot(1)), {"discard": {"packet": slot(1)}})]},
    [frame(0, "a", udp(1, b"one.")), frame(1, "a", udp(1, b"two."))],
    sent=[(0, 1, udp(1, b"one.")), (1, 1, udp(1, b"two.")), (1, 1, udp(1, b"one."))],
    flows={"a": []}, drops={"no_packet": 3},
)

MARKED = {
    "name": "mark", "length": 64, "invariant_crc": ["seen"],
    "fields": [{"name": "seen", "offset": 0, "width": 3}, {"name": "value", "offset": 32, "width": 32}],
    "place": {"after": {"header": "udp", "when": {"field": {"format": "udp", "field": "destination_port"}, "equals": 80}}},
}
ENDING = {
    "formats": BASE["formats"] + [MARKED],
    "fields": BASE["fields"] + [{"format": "mark", "field": "seen"}, {"format": "mark", "field": "value"}],
}
SEEN = len(BASE["fields"])


def ending(source, destination, mark, payload, checksum=True, wrong=0, **more):
    """A datagram to port 80 that ends in the invariant CRC."""
    body = mark + payload
    packet = bytearray(network(source, destination, 17, datagram(source, 4000, destination, 80, body + bytes(4), False), **more)[:-4])
    variant = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF, 46: 0xFF, 47: 0xFF, 48: 0xE0} if ":" in source else {1: 0xFF, 8: 0xFF, 10: 0xFF, 11: 0xFF, 26: 0xFF, 27: 0xFF, 28: 0xE0}
    for at, ones in variant.items():
        packet[at] |= ones
    crc = struct.pack("<I", zlib.crc32(b"\xff" * 8 + packet) ^ wrong)
    return ether(network(source, destination, 17, datagram(source, 4000, destination, 80, body + crc, checksum), **more))


FOUR, SIX_ENDS = (client(1), SERVER), ("fd00::1", "fd00::2")
FRESH, CHANGED = bytes.fromhex("1f02030405060708"), bytes.fromhex("bf02030400000009")
notes(
    "P28-invariant-crc", "P28 P9 P16", "A datagram ends in four bytes that are no payload; sent on with other fields, and another length, they are right.",
    ENDING | {"rows": [row(0, PACKET, note(EV(2)), {"set_field": {"packet": CURRENT, "field": SEEN, "value": C(5), "optional": False}},
                           {"set_field": {"packet": CURRENT, "field": SEEN + 1, "value": C(9), "optional": False}}, resize(CURRENT, 5), send(CURRENT, 2))]},
    [frame(0, "a", ending(*FOUR, FRESH, b"abc")), frame(1, "a", ending(*FOUR, FRESH, b"", checksum=False, ttl=3)), frame(2, "b", ending(*SIX_ENDS, FRESH, b"abcdefg")),
     frame(3, None, ending(*FOUR, FRESH, b"abc", wrong=1)), frame(4, None, udp(1, bytes(11))), frame(5, "a", udp(1, b"short"))],
    [(3, 0), (0, 1), (5, 5)],
    sent=[(0, 2, ending(*FOUR, CHANGED, b"abc\0\0")), (1, 2, ending(*FOUR, CHANGED, bytes(5), checksum=False, ttl=3)), (2, 2, ending(*SIX_ENDS, CHANGED, b"abcde")), (5, 2, udp(1, b"short"))],
    flows={"b": [noted(7, 2)]}, drops={"bad_invariant_crc": 1, "truncated": 1, "no_field": 2},
)
