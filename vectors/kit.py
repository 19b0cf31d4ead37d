"""What test vectors are made of: hashes, frames, and the parts of an image. It shares nothing with any engine."""

import ipaddress
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BASE = json.loads((HERE / "base.json").read_text())
FIELDS = {f"{field['format']}.{field['field']}": number for number, field in enumerate(BASE["fields"])}
MIN, MAX, HALF = -(1 << 63), (1 << 63) - 1, 1 << 31
ALL = (1 << 64) - 1

# Arithmetic and hashes.


def signed(value):
    value &= ALL
    return value - (1 << 64) if value >> 63 else value


def rotl(value, count):
    return ((value << count) | (value >> (64 - count))) & ALL


def siphash(key, data):
    """SipHash-2-4 (Aumasson, Bernstein) of bytes under 16 bytes of key."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & ALL
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & ALL
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & ALL
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & ALL
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    padded = data + b"\0" * (7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def pcg64(seed):
    """The first two outputs of PCG-XSL-RR-128/64, its 32 bytes of seed drawn from 64 bits by PCG32 (rand's `seed_from_u64`)."""
    words, state = [], seed
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) & ALL
        shifted, turn = (((state >> 18) ^ state) >> 27) & 0xFFFFFFFF, state >> 59
        words.append(((shifted >> turn) | (shifted << (-turn & 31))) & 0xFFFFFFFF)
    raw = struct.pack("<8I", *words)
    start, stream = int.from_bytes(raw[:16], "little"), int.from_bytes(raw[16:], "little") | 1
    step = lambda state: (state * 0x2360ED051FC65DA44385DF649FCCF645 + stream) & ((1 << 128) - 1)
    state, outputs = step((start + stream) & ((1 << 128) - 1)), []
    for _ in range(2):
        state = step(state)
        turn, folded = state >> 122, ((state >> 64) ^ state) & ALL
        outputs.append(((folded >> turn) | (folded << (-turn & 63))) & ALL)
    return struct.pack("<QQ", *outputs)


assert siphash(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5, "the vector of SipHash's paper"


def secret_key(seed=0):
    return pcg64(seed ^ 0x736563726574_6B79)


def random(key, created, earlier, number, seed=0):
    data = key + struct.pack("<qIQ", created, earlier, number)
    return signed(siphash(pcg64(seed), data))


# Frames.

MAC1, MAC2 = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])
SERVER = "10.9.9.9"


def ones(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ip(text):
    return ipaddress.ip_address(text).packed


def transport_sum(source, destination, protocol, segment, place):
    pseudo = ip(source) + ip(destination) + struct.pack(">IBBBB" if ":" in source else ">H", *((len(segment), 0, 0, 0, protocol) if ":" in source else (protocol,)))
    if ":" not in source:
        pseudo += struct.pack(">H", len(segment))
    value = 0xFFFF - ones(pseudo + segment)
    if value == 0 and protocol == 17:
        value = 0xFFFF
    return segment[:place] + struct.pack(">H", value) + segment[place + 2 :]


def network(source, destination, protocol, segment, ttl=64, options=b"", ident=0, fragment=0x4000, tail=b""):
    if ":" in source:
        return struct.pack(">IHBB", 6 << 28, len(segment), protocol, ttl) + ip(source) + ip(destination) + segment
    length = 20 + len(options) + len(segment)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, length, ident, fragment, ttl, protocol, 0) + ip(source) + ip(destination) + options
    return head[:10] + struct.pack(">H", 0xFFFF - ones(head)) + head[12:] + segment


def ether(payload, destination=MAC2, source=MAC1, vlan=None):
    kind = 0x86DD if payload[0] >> 4 == 6 else 0x0800
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    return destination + source + tag + struct.pack(">H", kind) + payload


def datagram(source, sport, destination, dport, payload, checksum=True):
    head = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    return transport_sum(source, destination, 17, head, 6) if checksum else head


def segment(source, sport, destination, dport, payload=b"", options=b"", flags=0, sequence=0, ack=0, window=65535):
    head = struct.pack(">HHIIBBHHH", sport, dport, sequence, ack, (5 + len(options) // 4) << 4, flags, window, 0, 0) + options + payload
    return transport_sum(source, destination, 6, head, 16)


def client(number):
    return f"10.0.0.{number}"


def udp(number, payload=b"\0\0\0\7", back=False, **more):
    """A datagram of client `number` to the server, or the answer to it."""
    if back:
        return ether(network(SERVER, client(number), 17, datagram(SERVER, 80, client(number), 4000, payload), **more), MAC1, MAC2)
    return ether(network(client(number), SERVER, 17, datagram(client(number), 4000, SERVER, 80, payload), **more))


def tcp(number, **more):
    return ether(network(client(number), SERVER, 6, segment(client(number), 4000, SERVER, 80, **more)))


def icmp(kind, code, quoted, told=0, source="192.0.2.1", destination=SERVER, damage=0, **more):
    """An error about a packet without link header, which tells a number in its second word."""
    message = struct.pack(">BBHI", kind, code, 0, told) + quoted
    if ":" in source:
        message = transport_sum(source, destination, 58, message, 2)
    else:
        message = message[:2] + struct.pack(">H", 0xFFFF - ones(message)) + message[4:]
    message = message[:-1] + bytes([message[-1] ^ damage])
    return ether(network(source, destination, 58 if ":" in source else 1, message, **more))


def key(number, protocol=17):
    """The flow key of a client's flow: the protocol, then the smaller side, mapped into IPv6."""
    mapped = lambda text: b"\0" * 10 + b"\xff\xff" + ip(text)
    return bytes([protocol]) + mapped(client(number)) + struct.pack(">H", 4000) + mapped(SERVER) + struct.pack(">H", 80)


def ends(number, protocol="udp"):
    return {"protocol": protocol, "local": f"{client(number)}:4000", "remote": f"{SERVER}:80", "local_mac": MAC1.hex(), "remote_mac": MAC2.hex()}


# Images.

CURRENT, WORK = "current", "work"
PACKET, CONNECT, DATA, CLOSE, ENTER, EXIT, EXPIRE, ABORT, READ, ICMP, SET = "packet", "connect", "data", "close", "enter", "exit", "expire", "abort", "read", "icmp", "set"


def slot(number):
    return {"slot": number}


def R(number):
    return {"register": number}


def C(value):
    return {"constant": value}


def F(packet, name):
    return {"field": {"packet": packet, "field": FIELDS[name]}}


def HAS(packet, name):
    return {"present": {"packet": packet, "field": FIELDS[name]}}


def EV(number):
    return {"event": number}


def ENV(name):
    return {"environment": name}


def compute(operator, register, left, right):
    return {"compute": {"operator": operator, "register": register, "left": left, "right": right}}


def put(register, value):
    return compute("add", register, value, C(0))


def note(value):
    return {"notify": {"notice": 0, "value": value if isinstance(value, dict) else C(value)}}


def send(packet, port=1):
    return {"send": {"packet": packet, "port": port if isinstance(port, dict) else C(port)}}


def write(packet, name, value, optional=False):
    operation = {"packet": packet, "field": FIELDS[name], "value": C(value) if isinstance(value, int) else value}
    return {"set_field": operation | ({"optional": True} if optional else {})}


def arm(timer, delay, *payload):
    return {"set_timer": {"timer": timer, "delay": C(delay) if isinstance(delay, int) else delay, "payload": list(payload)}}


def cancel(timer, *tests):
    return {"cancel_timer": {"timer": timer, "tests": [{"value": v, "comparison": c, "right": r} for v, c, r in tests]}}


def of_timer(test):
    """A test of what settings carry; a fourth part are the bits of its sequence numbers."""
    value, comparison, right, *bits = test
    return {"value": value, "comparison": comparison, "right": right} | ({"bits": bits[0]} if bits else {})


def move(timer, delay, *tests):
    return {"move_timer": {"timer": timer, "delay": C(delay) if isinstance(delay, int) else delay, "tests": [of_timer(test) for test in tests]}}


def ask_timer(timer, what, value=0, *tests, kind="i64"):
    """Asks, and notifies the answer."""
    query = {"timer": {"timer": timer, "what": what, "value": value, "kind": kind, "tests": [of_timer(test) for test in tests]}}
    return [{"query": {"register": 0, "query": query}}, note(R(0))]


def timer(number):
    return {"timer": number}


def turn(number):
    return {"turn": number}


def ask(rank, cost, turns=0):
    value = lambda it: C(it) if isinstance(it, int) else it
    return {"ask": {"turns": turns, "rank": value(rank), "cost": value(cost)}}


def withdraw(turns=0):
    return {"withdraw": {"turns": turns}}


def WAITING(turns=0):
    return {"environment": {"waiting": turns}}


def internal(number):
    return {"internal": number}


def copy(source, to):
    return {"copy": {"from": source, "to": to}}


def build(template, to=WORK, *options):
    made = {"template": template, "to": to}
    return {"build": made | ({"options": [C(value) for value in options]} if options else {})}


def resize(packet, length):
    return {"resize": {"packet": packet, "length": C(length) if isinstance(length, int) else length}}


def deliver(packet, offset, length):
    return {"deliver": {"packet": packet, "offset": C(offset), "length": C(length)}}


def snapshot(point=0):
    return {"snapshot": {"point": point}}


DELETE = "delete_instance"
RESTART = "restart_instance"


def row(state, event, *operations, when=(), next=None, raises=None):
    made = {"state": state, "event": event, "when": [list(test) for test in when], "operations": list(operations)}
    if next is not None:
        made["next"] = next
    if raises is not None:
        made["raise"] = raises
    return made


def test(comparison, left, right):
    return {"comparison": comparison, "left": left, "right": right}


def prepare(state, event, *operations):
    return {"state": state, "event": event, "operations": list(operations)}


def register(name, kind="i64", initial=0, scratch=False):
    return {"name": name, "type": kind, "initial": initial} | ({"scratch": True} if scratch else {})


def registers(*names):
    return [register(name) for name in names]


def states(*names, **expire):
    return [{"name": name} | ({"expire": expire[name]} if name in expire else {}) for name in names]


def timers(**payloads):
    return [{"name": name, "payload": list(payload)} for name, payload in payloads.items()]


def template(name, transport="udp", options=(), payload=0, presets=(), headers=()):
    return {
        "name": name,
        "transport": transport,
        "tcp_options": list(options),
        "headers": list(headers),
        "payload": payload,
        "presets": [[FIELDS.get(field, field), value] for field, value in presets],
    }


# Inputs and what is expected.


def frame(at, flow, data, port=1, **more):
    made = {"at": at, "port": port, "frame": data.hex()} | more
    return made | ({"flow": flow} if flow else {})


def connect(at, flow, number, **more):
    return {"at": at, "flow": flow, "connect": ends(number, more.pop("protocol", "udp"))} | more


def fire(at):
    return {"at": at, "fire": True}


def noted(value, at=0, name="note"):
    return {"at": at, "notify": [name, value]}


ENDED = {"ended": True}
VECTORS = {}


def vector(name, rules, about, image, inputs, sent=(), flows=None, drops=None, **more):
    assert name not in VECTORS, name
    made = {"rules": rules.split(), "about": about, "image": image, "inputs": inputs}
    made |= {member: more.pop(member) for member in ("ports", "seed", "hash_key", "limits", "debug") if member in more}
    made["expected"] = {"sent": [[at, port, data.hex()] for at, port, data in sent], "flows": flows or {}, "drops": drops or {}} | more
    VECTORS[name] = made


def notes(name, rules, about, image, inputs, values, **more):
    """One flow `a` that notifies these values, at time 0 unless a pair says otherwise."""
    pairs = [value if isinstance(value, tuple) else (value, 0) for value in values]
    vector(name, rules, about, image, inputs, flows={"a": [noted(value, at) for value, at in pairs]} | more.pop("flows", {}), **more)


def computed(name, rules, about, cases, drops=None):
    """One packet computes (operator, left, right, expected) and notifies each result."""
    operations = []
    for operator, left, right, _ in cases:
        operations += [compute(operator, 0, C(left), C(right)), note(R(0))]
    image = {"registers": registers("r"), "rows": [row(0, PACKET, *operations)]}
    notes(name, rules, about, image, [frame(0, "a", udp(1))], [case[3] for case in cases], drops=drops)
