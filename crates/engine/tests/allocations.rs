//! Once it is warm, the data path asks the heap for nothing: whatever a packet makes the engine do, flows that come and go
//! included. Each case runs the same traffic twice, and the second time nothing is allocated.

mod support;

use support::*;
use weftwire_core::wire::builder::{ArpFields, FrameBuilder};
use weftwire_core::{
    Arrival, Arrivals, Connections, FlowId, Frame, Function, LinkType, MacAddress, Outbox, Output, Port, Ports,
};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::*;
use weftwire_testbed::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const CURRENT: PacketRef = PacketRef::Current;
const WORK: PacketRef = PacketRef::Work;

/// An engine on ports 1 and 2 (Ethernet) and 3 (IP), its platform and its clock.
struct Platform {
    engine: ReferenceEngine,
    arrivals: Arrivals,
    out: Outbox,
    now: i64,
}

impl Platform {
    fn new(image: Image) -> Platform {
        let links = [LinkType::Ethernet, LinkType::Ethernet, LinkType::Ip];
        let ports = Ports::new((1..).map(Port).zip(links));
        let engine = ReferenceEngine::new(verified(image), ports, EngineOptions::default()).expect("a verified image");
        Platform { engine, arrivals: Arrivals::new(), out: Outbox::new(), now: 0 }
    }

    /// Handles a frame `later` nanoseconds after the one before, then what is due, and returns how many frames were sent.
    fn handle(&mut self, later: i64, frame: &[u8]) -> usize {
        self.now += later;
        self.out.clear();
        self.arrivals.push_back(Arrival::copied(Port(1), Frame::new(frame), &mut self.out));
        self.engine.frames(at(self.now), &mut self.arrivals, &mut self.out);
        self.fire();
        self.out.items().iter().filter(|output| matches!(output, Output::Send { .. })).count()
    }

    fn fire(&mut self) {
        while self.engine.next_deadline().is_some_and(|deadline| deadline.at <= at(self.now)) {
            self.engine.fire(at(self.now), &mut self.out);
        }
    }
}

/// Runs the traffic twice, and wants no allocation in the second run.
fn none_once_warm(mut traffic: impl FnMut()) {
    traffic();
    let before = allocations();
    traffic();
    let made = allocations() - before;
    assert_eq!(made, 0, "the heap was asked {made} times");
}

fn datagrams(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(|client| datagram(client, b"some payload")).collect()
}

fn send(packet: PacketRef, port: i64) -> Operation {
    Operation::Send { packet, port: constant(port) }
}

/// What a machine does that keeps packets of its flow: one that came, one that it makes, and a timer.
fn busy_machine() -> Image {
    let mut image = rich();
    image.states.truncate(1);
    (image.conditions, image.preparations) = (Vec::new(), Vec::new());
    (image.creation, image.debug) = (Vec::new(), Debug::default());
    image.flow.max = 64;
    image.flow.when_full = WhenFull::EvictOldest;
    image.flow.expire = 1_000_000;
    image.flow.max_timers = 8;
    let (first, second) = (PacketRef::Slot(0), PacketRef::Slot(1));
    image.rows = vec![
        row(
            0,
            Event::Packet,
            vec![
                Operation::Copy { from: CURRENT, to: first },
                Operation::Build { template: 1, to: second, options: Vec::new() },
                Operation::SetField { packet: second, field: fields::MSS, value: constant(1), optional: false },
                send(first, 2),
                send(second, 2),
                Operation::SetTimer { timer: 1, delay: constant(1_000), payload: vec![constant(1), constant(2)] },
            ],
        ),
        row(0, Event::Timer(1), vec![Operation::Reverse { packet: first }, send(first, 2)]),
    ];
    image
}

#[test]
fn the_heap_is_counted() {
    let before = allocations();
    let mut bytes = vec![1_u8; 10];
    bytes.reserve(1_000);
    assert_eq!((allocations() - before, bytes.len()), (2, 10));
}

#[test]
fn a_packet_of_a_known_flow() {
    let mut image = machine();
    image.registers.push(register("packets"));
    image.rows.push(row(
        0,
        Event::Packet,
        vec![
            compute(Operator::Add, 0, Operand::Register(0), constant(1)),
            Operation::SetField { packet: CURRENT, field: fields::TTL, value: constant(9), optional: false },
            send(CURRENT, 2),
            send(CURRENT, 3),
            Operation::Reverse { packet: CURRENT },
            send(CURRENT, 1),
            Operation::Copy { from: CURRENT, to: WORK },
            Operation::KeepOptions { packet: WORK, kinds: vec![8] },
            Operation::Deliver { packet: CURRENT, offset: constant(2), length: constant(5) },
            notify(Operand::Register(0)),
        ],
    ));
    let (mut platform, frame) = (Platform::new(image), segment(1, &[2, 8], b"some payload"));
    none_once_warm(|| (0..1_000).for_each(|_| assert_eq!(platform.handle(1_000, &frame), 3)));
}

#[test]
fn new_flows_in_a_full_table() {
    let (mut platform, frames) = (Platform::new(busy_machine()), datagrams(2_000));
    none_once_warm(|| frames.iter().for_each(|frame| assert!(platform.handle(100, frame) >= 2)));
    let counters = weftwire_core::inspect::Inspect::counters(&platform.engine);
    assert_eq!((counters.flows_created, counters.flows_evicted, counters.flows_expired), (4_000, 3_936, 0));
}

#[test]
fn new_flows_where_old_ones_expire() {
    let (mut platform, frames) = (Platform::new(busy_machine()), datagrams(2_000));
    none_once_warm(|| {
        for burst in frames.chunks(50) {
            burst.iter().for_each(|frame| assert!(platform.handle(10, frame) >= 2));
            platform.now += 2_000_000;
        }
    });
    let counters = weftwire_core::inspect::Inspect::counters(&platform.engine);
    assert_eq!((counters.flows_evicted, counters.flows_expired), (0, 3_950));
}

/// With the counts of earlier ones at their instant (rule V11), and of a refusal.
#[test]
fn new_flows_that_end_with_their_first_packet() {
    let mut image = busy_machine();
    image.rows[0].operations.extend([Operation::Discard { packet: WORK }, Operation::DeleteInstance]);
    let (mut platform, frames) = (Platform::new(image), datagrams(100));
    none_once_warm(|| {
        for number in 0..1_000 {
            let later = i64::from(number % 10 == 0);
            assert_eq!(platform.handle(later, &frames[number % 7 * 3]), 2);
        }
    });
    let counters = weftwire_core::inspect::Inspect::counters(&platform.engine);
    assert_eq!((counters.flows_created, counters.drops["no_packet"]), (2_000, 2_000));
}

#[test]
fn packets_built_with_data_of_the_application() {
    let mut image = busy_machine();
    let built = |to| {
        [
            Operation::Build { template: 1, to, options: Vec::new() },
            Operation::Resize { packet: to, length: constant(100) },
            Operation::AppendData { packet: to, offset: constant(3), length: constant(900) },
            send(to, 2),
        ]
    };
    let mut operations = [built(WORK), built(PacketRef::Slot(0))].concat();
    operations.push(Operation::ReleaseData { length: Operand::Event(0) });
    image.rows = vec![row(0, Event::Data, operations)];
    let mut platform = Platform::new(image);
    let flow = platform.engine.connect(at(0), &client(1), &mut platform.out).expect("there is room");
    let bytes = [7; 1_000];
    none_once_warm(|| {
        for _ in 0..1_000 {
            platform.now += 1_000;
            platform.out.clear();
            let accepted = platform.engine.write(at(platform.now), flow, &bytes, &mut platform.out);
            assert_eq!((accepted, flow), (Ok(1_000), FlowId(1)));
            assert_eq!(platform.out.items().len(), 3);
        }
    });
}

#[test]
fn packets_that_are_passed_on() {
    let mut image = machine();
    image.other_packets = OtherPackets::Pass(vec![(1, 2)]);
    let mut platform = Platform::new(image);
    let [one, other] = [1, 2].map(|last| MacAddress([2, 0, 0, 0, 0, last]));
    let arp = ArpFields {
        operation: 1,
        sender_mac: one,
        sender_address: [10, 0, 0, 1].into(),
        target_mac: other,
        target_address: [10, 0, 0, 2].into(),
    };
    let frame = FrameBuilder::ethernet(other, one).arp(&arp).finish().expect("a short frame");
    none_once_warm(|| (0..1_000).for_each(|_| assert_eq!(platform.handle(1_000, &frame), 1)));
}

#[test]
fn timers_set_and_cancelled() {
    let mut image = machine();
    image.flow.max = 1_000;
    image.flow.expire = 1_000_000;
    image.flow.hold = true;
    image.timers = vec![timer("tick", &[]), timer("retry", &["number"])];
    image.registers.push(register("number"));
    let number = Operand::Register(0);
    let retry = |delay| Operation::SetTimer { timer: 1, delay: constant(delay), payload: vec![number] };
    let earlier = PayloadTest::new(0, Comparison::Lt, number);
    image.rows = vec![
        row(
            0,
            Event::Packet,
            vec![
                compute(Operator::Add, 0, number, constant(1)),
                Operation::CancelTimer { timer: 1, tests: vec![earlier] },
                retry(5_000),
                retry(3_000_000),
                set_timer(0, 700),
                send(CURRENT, 2),
            ],
        ),
        row(0, Event::Timer(0), vec![notify(number)]),
    ];
    let (mut platform, frames) = (Platform::new(image), datagrams(100));
    none_once_warm(|| {
        for number in 0..5_000 {
            assert_eq!(platform.handle(100, &frames[number * 37 % 100]), 1);
        }
        // Held no longer, they expire.
        platform.now += 5_000_000;
        platform.fire();
        assert_eq!(platform.engine.next_deadline(), None);
    });
}

#[test]
fn a_thousand_flows_in_turns() {
    let mut image = machine();
    image.flow.max = 2_000;
    image.flow.when_full = WhenFull::EvictOldest;
    image.flow.expire = 1_000_000_000;
    image.rows.push(row(0, Event::Packet, vec![send(CURRENT, 2)]));
    let (mut platform, frames) = (Platform::new(image), datagrams(1_000));
    none_once_warm(|| {
        for round in 0..5 {
            for number in 0..frames.len() {
                // In the same order, and in others.
                let frame = &frames[number * [1, 1, 7, 501, 373][round] % 1_000];
                assert_eq!(platform.handle(1_000, frame), 1);
            }
        }
    });
}
