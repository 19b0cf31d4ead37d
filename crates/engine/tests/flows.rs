//! Flows of the semantics page, point by point: the rules F1 to F20.

use crate::support::*;
use weftwire_core::inspect::Inspect;
use weftwire_core::{CallError, Change, Connections, FlowId, Function, Port};
use weftwire_engine::Executor;
use weftwire_image::{
    Creation, Event, Eviction, Image, Operand, Operation, OtherPackets, PacketRef, Template, TemplateTransport,
    WhenFull,
};

/// Counts its packets in register 0.
fn counting() -> Image {
    let mut image = machine();
    image.registers.push(register("packets"));
    let count = compute(weftwire_image::Operator::Add, 0, Operand::Register(0), constant(1));
    image.rows.push(row(0, Event::Packet, vec![count]));
    image
}

/// The frame turned round: the answer to it.
fn answer(frame: &[u8]) -> Vec<u8> {
    let formats = weftwire_core::format::Formats::default();
    let frame = weftwire_core::Frame::new(frame);
    let link = weftwire_core::LinkType::Ethernet;
    let mut packet = weftwire_core::packet::Packet::parse(link, frame, &formats).unwrap();
    packet.reverse();
    packet.finish();
    let mut bytes = weftwire_core::Buffer::default();
    packet.emit(link, &mut bytes);
    bytes.to_vec()
}

fn packets_without_key_are_dropped_or_passed_on<E: Executor>() {
    let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &[8, 6], &[0, 1, 8, 0, 6, 4, 0, 1], &[0; 20]].concat();
    let mut bench = Bench::<E>::new(counting());
    bench.frame(0, &arp);
    assert_eq!((bench.drops("no_flow_key"), bench.counters().flows_created), (1, 0));

    let mut image = counting();
    image.other_packets = OtherPackets::Pass(vec![(2, 1)]);
    let mut bench = Bench::<E>::new(image);
    bench.frame(0, &arp);
    assert_eq!(bench.sent(), [(Port(2), arp.clone())]);
    assert_eq!(bench.counters().frames_passed, 1);
    // Bad packets are never passed on.
    let mut bad = datagram(1, b"data");
    *bad.last_mut().unwrap() ^= 1;
    bench.frame(0, &bad);
    assert_eq!((bench.sent().len(), bench.drops("bad_checksum")), (1, 1));

    let mut image = counting();
    image.other_packets = OtherPackets::Pass(vec![(3, 4)]);
    let mut bench = Bench::<E>::new(image);
    bench.frame(0, &arp);
    assert_eq!((bench.sent().len(), bench.drops("no_flow_key")), (0, 1));
}

fn link_headers_change_between_link_types<E: Executor>() {
    let mut image = counting();
    image.other_packets = OtherPackets::Pass(vec![(1, 2)]);
    let mut bench = Bench::<E>::with_second_port(image, weftwire_core::LinkType::Ip);
    let question = datagram(1, b"ping");
    let mut icmp = question.clone();
    // ICMP instead of UDP: a packet without flow key. The IPv4 checksum follows the protocol number.
    icmp[14 + 9] = 1;
    let checksum = u16::from_be_bytes([icmp[24], icmp[25]]) + 16;
    icmp[24..26].copy_from_slice(&checksum.to_be_bytes());
    bench.frame(0, &icmp);
    assert_eq!(bench.sent(), [(Port(2), icmp[14..].to_vec())]);
    bench.out.clear();
    bench.engine.frame(at(0), Port(2), weftwire_core::Frame::new(&icmp[14..]), &mut bench.out);
    assert_eq!(bench.sent(), [(Port(1), [&[0; 12][..], &icmp[12..]].concat())]);
    // Only IP packets can leave by a raw-IP port, and a frame from nowhere is nothing.
    bench.frame(0, &[0; 60]);
    bench.engine.frame(at(0), Port(3), weftwire_core::Frame::new(&question), &mut bench.out);
    assert_eq!((bench.counters().frames_passed, bench.drops("no_port")), (2, 2));
}

fn a_symmetric_key_joins_both_directions<E: Executor>() {
    let frame = datagram(1, b"question");
    let mut bench = Bench::<E>::new(counting());
    bench.frame(0, &frame);
    bench.frame(1, &answer(&frame));
    assert_eq!((bench.flows(), bench.register(1, "packets")), (vec![1], 2));

    let mut image = counting();
    image.flow.symmetric = false;
    let mut bench = Bench::<E>::new(image);
    bench.frame(0, &frame);
    bench.frame(1, &answer(&frame));
    assert_eq!(bench.flows(), [1, 2]);
}

fn the_flow_hash_is_that_of_the_key<E: Executor>() {
    let mut image = machine();
    let hash = notify(Operand::Environment(weftwire_image::Environment::FlowHash));
    image.rows.push(row(0, Event::Packet, vec![hash]));
    let mut bench = Bench::<E>::new(image);
    let frame = datagram(1, b"question");
    bench.frame(0, &frame);
    bench.frame(1, &answer(&frame));
    bench.packet(2, 2);
    let hashes = bench.notices();
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
    // The protocol, then the smaller side: 10.0.0.1 as an IPv4-mapped address and its port.
    let mapped = |address: [u8; 4]| [&[0; 10][..], &[0xff; 2], &address].concat();
    let key = [&[17][..], &mapped([10, 0, 0, 1]), &[0x0f, 0xa0], &mapped([10, 9, 9, 9]), &[0, 80]].concat();
    assert_eq!(hashes[0], weftwire_engine::Chance::new(0, None).hash_key(&key));
}

fn enter_of_state_0_comes_before_the_first_packet<E: Executor>() {
    let mut image = machine();
    // It sees the packet already.
    let present = Operand::Present { packet: PacketRef::Current, field: 0 };
    image.rows.push(row(0, Event::Enter, vec![notify(present)]));
    image.rows.push(row(0, Event::Packet, vec![notify(constant(2))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(1, 1);
    assert_eq!(bench.notices(), [1, 2, 2]);
}

fn a_provisional_instance_needs_no_place_if_it_is_deleted_in_its_event<E: Executor>() {
    let mut image = machine();
    image.flow.max = 1;
    image.timers.push(timer("never", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 5), Operation::DeleteInstance]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(9))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(0, 2);
    assert_eq!((bench.flows(), bench.ended()), (vec![], vec![1, 2]));
    assert_eq!(bench.counters().flows_created, 2);
    assert_eq!(bench.engine.next_deadline(), None);
    bench.fire(100);
    assert_eq!(bench.notices(), [0; 0]);
}

fn deleted_while_entering_state_0_handles_no_packet<E: Executor>() {
    let mut image = machine();
    image.rows.push(row(0, Event::Enter, vec![Operation::DeleteInstance]));
    image.rows.push(row(0, Event::Packet, vec![notify(constant(2))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!((bench.notices(), bench.ended()), (vec![], vec![1]));
}

fn a_full_table_rejects<E: Executor>() {
    let mut image = counting();
    image.flow.max = 2;
    image.rows.push(row(0, Event::Connect, vec![]));
    let mut bench = Bench::<E>::new(image);
    for client in 1..=3 {
        bench.packet(0, client);
    }
    assert_eq!((bench.flows(), bench.drops("table_full")), (vec![1, 2], 1));
    // Refused is refused: no instance was made, so no number was used.
    assert_eq!(bench.counters().flows_created, 2);
    let refused = bench.engine.connect(at(1), &client(9), &mut bench.out);
    assert_eq!(refused, Err(CallError::TableFull));
}

fn the_flow_idle_for_longest_is_evicted<E: Executor>() {
    let mut image = counting();
    image.flow.max = 2;
    image.flow.when_full = WhenFull::EvictOldest;
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(1, 2);
    bench.packet(2, 1);
    bench.packet(3, 3);
    assert_eq!((bench.flows(), bench.ended()), (vec![1, 3], vec![2]));
    assert_eq!(bench.counters().flows_evicted, 1);
    // At one instant whose packet came first goes, whatever its number.
    bench.packet(4, 3);
    bench.packet(4, 1);
    bench.packet(4, 4);
    assert_eq!((bench.flows(), bench.ended()), (vec![1, 4], vec![2, 3]));
}

fn flows_that_expire_at_one_instant_go_as_their_packets_came<E: Executor>() {
    let mut image = counting();
    image.flow.expire = 100;
    let mut bench = Bench::<E>::new(image);
    for client in [1, 2, 3, 2, 1] {
        bench.packet(7, client);
    }
    bench.fire(107);
    assert_eq!(bench.ended(), [3, 2, 1]);
}

/// Draws a number for each packet.
fn drawing() -> Image {
    let mut image = machine();
    image.registers.push(register("drawn"));
    let draw = compute(weftwire_image::Operator::Random, 0, constant(0), constant(0));
    image.rows.push(row(0, Event::Packet, vec![draw, notify(Operand::Register(0))]));
    image
}

fn what_a_flow_draws_does_not_depend_on_other_flows<E: Executor>() {
    let drawn = |clients: &[u16]| {
        let mut bench = Bench::<E>::new(drawing());
        clients.iter().for_each(|client| bench.packet(5, *client));
        let numbers = bench.notices();
        let of = |wanted: u16| {
            let pairs = clients.iter().zip(&numbers).filter(move |(client, _)| **client == wanted);
            pairs.map(|(_, number)| *number).collect::<Vec<i64>>()
        };
        [of(1), of(2)]
    };
    let alone = [drawn(&[1, 1, 1])[0].clone(), drawn(&[2, 2, 2])[1].clone()];
    assert_eq!(drawn(&[1, 2, 2, 1, 1, 2]), alone);
    assert_eq!(drawn(&[2, 3, 1, 2, 1, 1, 2]), alone);
    let mut all: Vec<i64> = alone.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6, "each number is another one");
}

/// A key that is used anew at the instant of its first use draws other numbers.
fn instances_of_one_key_and_instant_draw_different_numbers<E: Executor>() {
    let mut image = drawing();
    image.rows[0].operations.push(Operation::DeleteInstance);
    let mut bench = Bench::<E>::new(image);
    for now in [5, 5, 5, 6] {
        bench.packet(now, 1);
    }
    let mut numbers = bench.notices();
    let again = {
        let mut image = drawing();
        image.rows[0].operations.push(Operation::DeleteInstance);
        let mut bench = Bench::<E>::new(image);
        // Another flow at that instant changes nothing.
        for client in [1, 2, 1, 1] {
            bench.packet(5, client);
        }
        bench.packet(6, 1);
        let numbers = bench.notices();
        [numbers[0], numbers[2], numbers[3], numbers[4]].to_vec()
    };
    assert_eq!(numbers, again);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 4);
}

fn eviction_looks_at_the_states_of_now<E: Executor>() {
    let mut image = machine();
    image.flow.max = 2;
    image.flow.when_full = WhenFull::EvictOldestIn(vec![1]);
    image.states.push(state("done"));
    image.timers.push(timer("finish", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 10)]));
    image.rows.push(weftwire_image::Row { next: Some(1), ..row(0, Event::Timer(0), vec![]) });
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(5, 2);
    bench.packet(6, 3);
    assert_eq!((bench.flows(), bench.drops("table_full")), (vec![1, 2], 1));
    // Flow 1 comes into the state by its timer at 10, flow 2 at 15.
    bench.packet(11, 3);
    assert_eq!((bench.flows(), bench.ended()), (vec![2, 3], vec![1]));
    bench.packet(12, 4);
    assert_eq!(bench.drops("table_full"), 2);
}

fn idle_flows_expire_after_the_timers_of_that_instant<E: Executor>() {
    let mut image = machine();
    image.flow.expire = 100;
    image.timers.push(timer("tick", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 100)]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(1)), set_timer(0, 0)]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    let deadline = bench.engine.next_deadline().unwrap();
    assert_eq!((deadline.at, deadline.reason), (at(100), "tick"));
    // The timer of this instant sets another for this instant, and so on, all before the expiry.
    bench.fire(99);
    assert_eq!(bench.flows(), [1]);
    bench.fire(100);
    assert_eq!(bench.notices().len(), 10_000);
    assert_eq!((bench.flows(), bench.ended()), (vec![], vec![1]));
}

fn timers_do_not_keep_a_flow_alive_and_arrivals_do<E: Executor>() {
    let mut image = machine();
    image.flow.expire = 100;
    image.timers.push(timer("tick", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 60)]));
    image.rows.push(row(0, Event::Timer(0), vec![set_timer(0, 60)]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(0, 2);
    // At the instant of expiry the arrival comes first.
    bench.packet(100, 1);
    bench.fire(100);
    assert_eq!((bench.flows(), bench.ended()), (vec![1], vec![2]));
    bench.fire(199);
    assert_eq!(bench.flows(), [1]);
    bench.fire(1_000);
    assert_eq!((bench.flows(), bench.counters().flows_expired), (vec![], 2));
    assert_eq!(bench.engine.next_deadline(), None);
}

/// A machine that may take long between packets: flows that wait for something of their own stay.
fn held_flows_expire_when_nothing_holds_them_any_more<E: Executor>() {
    let mut image = machine();
    (image.flow.expire, image.flow.hold) = (100, true);
    image.timers = vec![timer("long", &[]), timer("short", &[])];
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 250)]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(1))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    // Nobody is to be woken for a flow that does not expire.
    assert_eq!(bench.engine.next_deadline().unwrap().at, at(250));
    bench.packet(90, 2);
    bench.fire(249);
    assert_eq!(bench.flows(), [1, 2]);
    bench.fire(250);
    assert_eq!((bench.flows(), bench.ended(), bench.counters().flows_expired), (vec![2], vec![1], 1));
    // A packet begins the idle time anew.
    bench.packet(300, 2);
    bench.fire(340);
    assert_eq!((bench.notices(), bench.flows()), (vec![1, 1], vec![2]));
    bench.fire(549);
    assert_eq!(bench.flows(), [2]);
    bench.fire(550);
    assert_eq!((bench.notices().len(), bench.flows()), (3, vec![]));
    assert_eq!(bench.engine.next_deadline(), None);
}

fn an_open_application_holds_its_flow<E: Executor>() {
    let mut image = counting();
    (image.flow.expire, image.flow.hold) = (100, true);
    image.rows.push(row(0, Event::Connect, vec![]));
    let mut bench = Bench::<E>::new(image.clone());
    let flow = bench.engine.connect(at(0), &client(1), &mut bench.out).unwrap();
    bench.packet(0, 2);
    assert_eq!(bench.engine.next_deadline().unwrap().at, at(100));
    bench.fire(1_000);
    assert_eq!(bench.flows(), [flow.0]);
    assert_eq!(bench.engine.next_deadline(), None);
    bench.engine.close(at(1_001), flow, &mut bench.out).unwrap();
    bench.fire(1_100);
    assert_eq!(bench.flows(), [flow.0]);
    bench.fire(1_101);
    assert_eq!(bench.flows(), [0; 0]);
    // A flow that a packet made is the application's from its first write on.
    let mut bench = Bench::<E>::new(image.clone());
    bench.packet(0, 1);
    bench.engine.write(at(50), FlowId(1), b"x", &mut bench.out).unwrap();
    bench.fire(1_000);
    assert_eq!(bench.flows(), [1]);
    // Unless the program says that it expires.
    image.flow.hold = false;
    let mut bench = Bench::<E>::new(image);
    bench.engine.connect(at(0), &client(1), &mut bench.out).unwrap();
    bench.fire(100);
    assert_eq!(bench.flows(), [0; 0]);
}

fn expiry_is_an_event_that_ends_the_instance<E: Executor>() {
    let mut image = machine();
    image.flow.expire = 100;
    image.states.push(state("other"));
    image.timers.push(timer("never", &[]));
    let send = Operation::Send { packet: PacketRef::Slot(0), port: constant(2) };
    let store = Operation::Copy { from: PacketRef::Current, to: PacketRef::Slot(0) };
    image.rows.push(row(0, Event::Packet, vec![store]));
    image.rows.push(weftwire_image::Row {
        next: Some(1),
        ..row(0, Event::Expire, vec![notify(constant(1)), send, set_timer(0, 0), set_timer(0, 50)])
    });
    image.rows.push(row(0, Event::Exit, vec![notify(constant(2))]));
    image.rows.push(row(1, Event::Enter, vec![notify(constant(3))]));
    image.rows.push(row(1, Event::Timer(0), vec![notify(constant(9))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.fire(1_000);
    assert_eq!(bench.timed_notices(), [(100, 1), (100, 2), (100, 3)]);
    assert_eq!((bench.sent().len(), bench.flows(), bench.ended()), (1, vec![], vec![1]));
    assert_eq!((bench.counters().flows_expired, bench.engine.next_deadline()), (1, None));
}

fn eviction_raises_no_event<E: Executor>() {
    let mut image = machine();
    (image.flow.max, image.flow.expire) = (1, 100);
    image.flow.when_full = WhenFull::EvictOldest;
    image.rows.push(row(0, Event::Packet, vec![]));
    image.rows.push(row(0, Event::Expire, vec![notify(constant(1))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(1, 2);
    assert_eq!((bench.notices(), bench.ended()), (vec![], vec![1]));
}

fn a_state_may_have_an_idle_time_of_its_own<E: Executor>() {
    let mut image = machine();
    (image.flow.expire, image.flow.hold) = (1_000, true);
    image.states = vec![state("start"), state("short"), state("endless")];
    image.states[1].expire = Some(10);
    image.states[2].expire = Some(0);
    image.timers.push(timer("tick", &[]));
    image.conditions.push(weftwire_image::Condition {
        comparison: weftwire_image::Comparison::Eq,
        left: Operand::Field { packet: PacketRef::Current, field: fields::WORD_1 },
        right: constant(7),
    });
    let to = |next, when, operations| weftwire_image::Row {
        next: Some(next),
        when: vec![(0, when)],
        ..row(0, Event::Packet, operations)
    };
    // Its timer comes when the time in the next state is up already: it ends with the timer's event.
    image.rows.push(to(0, true, vec![set_timer(0, 500)]));
    image.rows.push(to(2, false, vec![]));
    image.rows.push(weftwire_image::Row { next: Some(1), ..row(0, Event::Timer(0), vec![set_timer(0, 500)]) });
    image.rows.push(row(1, Event::Packet, vec![]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.frame(0, &datagram(2, b"else"));
    bench.packet(495, 3);
    bench.fire(500);
    assert_eq!((bench.ended(), bench.flows()), (vec![1], vec![2, 3]));
    // A setting of a timer does not hold it where the state says so itself.
    bench.fire(995);
    assert_eq!((bench.ended(), bench.flows()), (vec![1, 3], vec![2]));
    bench.fire(i64::MAX - 1);
    assert_eq!(bench.flows(), [2]);
}

fn a_full_table_evicts_in_turn<E: Executor>() {
    let mut image = machine();
    image.flow.max = 4;
    image.states = vec![state("new"), state("known"), state("over")];
    let group = |states: &[u16], idle, above| Eviction { states: states.to_vec(), idle, above };
    image.flow.when_full =
        WhenFull::EvictInTurn(vec![group(&[0], 0, 2), group(&[2], 0, 0), group(&[1], 50, 0), group(&[0, 2], 0, 0)]);
    for state in 0..2 {
        image.rows.push(weftwire_image::Row { next: Some(state + 1), ..row(state, Event::Packet, vec![]) });
    }
    image.rows.push(row(2, Event::Packet, vec![]));
    // A first packet leaves the flow in state 0: the row is for later ones.
    image.registers.push(register("packets"));
    image.conditions.push(weftwire_image::Condition {
        comparison: weftwire_image::Comparison::Eq,
        left: Operand::Register(0),
        right: constant(0),
    });
    let count = compute(weftwire_image::Operator::Add, 0, Operand::Register(0), constant(1));
    image.rows.insert(0, weftwire_image::Row { when: vec![(0, true)], ..row(0, Event::Packet, vec![count]) });
    let mut bench = Bench::<E>::new(image);
    for client in 1..=4 {
        bench.packet(0, client);
    }
    // More than two new ones: the oldest of them goes.
    bench.packet(1, 5);
    assert_eq!((bench.flows(), bench.ended()), (vec![2, 3, 4, 5], vec![1]));
    // Two new ones and two known: nobody is over, no known one idle for 50; so a new one after all.
    bench.packet(2, 2);
    bench.packet(3, 3);
    bench.packet(4, 6);
    assert_eq!(bench.flows(), [2, 3, 5, 6]);
    // One that is over goes before new ones.
    bench.packet(5, 2);
    bench.packet(6, 7);
    assert_eq!(bench.flows(), [3, 5, 6, 7]);
    // All known, then one of them idle for 50.
    for client in 5..=7 {
        bench.packet(10, client);
    }
    bench.packet(52, 8);
    assert_eq!((bench.flows(), bench.drops("table_full")), (vec![3, 5, 6, 7], 1));
    bench.packet(53, 8);
    assert_eq!((bench.flows(), bench.drops("table_full")), (vec![5, 6, 7, 8], 1));
    assert_eq!(bench.counters().flows_evicted, 4);
}

fn connect_fills_slots_and_finds_the_flow_again<E: Executor>() {
    let mut image = counting();
    image.templates = vec![template("datagram", TemplateTransport::Udp), template("segment", TemplateTransport::Tcp)];
    image.creation = vec![Creation { slot: 0, template: 0 }, Creation { slot: 0, template: 1 }];
    image.rows.push(row(0, Event::Enter, vec![notify(constant(1))]));
    let send = Operation::Send { packet: PacketRef::Slot(0), port: constant(2) };
    image.rows.push(row(0, Event::Connect, vec![notify(constant(2)), send]));
    let mut bench = Bench::<E>::new(image);
    let flow = bench.engine.connect(at(0), &client(1), &mut bench.out).unwrap();
    assert_eq!((flow, bench.notices()), (FlowId(1), vec![1, 2]));
    let (port, frame) = bench.sent().remove(0);
    assert_eq!(port, Port(2));
    // The packet goes from this end to the other, so its answer belongs to the flow.
    bench.frame(1, &answer(&frame));
    assert_eq!((bench.flows(), bench.register(1, "packets")), (vec![1], 1));
    assert_eq!(bench.engine.connect(at(2), &client(1), &mut bench.out), Err(CallError::Exists(FlowId(1))));
    let sctp = weftwire_core::Endpoints { protocol: 132, ..client(2) };
    assert!(matches!(bench.engine.connect(at(2), &sctp, &mut bench.out), Err(CallError::Unfit(_))));
}

fn connect_needs_a_key_that_is_known_in_advance<E: Executor>() {
    let mut image = counting();
    image.flow.common.push(fields::TTL);
    let mut bench = Bench::<E>::new(image);
    let refused = bench.engine.connect(at(0), &client(1), &mut bench.out);
    assert!(matches!(refused, Err(CallError::Unfit(_))), "{refused:?}");
    bench.packet(0, 1);
    assert_eq!(bench.flows(), [1]);
}

fn template(name: &str, transport: TemplateTransport) -> Template {
    Template { name: name.into(), transport, tcp_options: vec![], headers: vec![], payload: 0, presets: vec![] }
}

fn built_packets_go_from_the_packets_destination_to_its_source<E: Executor>() {
    let mut image = machine();
    image.templates = vec![template("reply", TemplateTransport::Udp)];
    let operations = vec![
        Operation::Build { template: 0, to: PacketRef::Work, options: Vec::new() },
        Operation::Send { packet: PacketRef::Work, port: Operand::Event(0) },
    ];
    image.rows.push(row(0, Event::Packet, operations));
    let mut bench = Bench::<E>::new(image);
    let question = datagram(1, b"");
    bench.frame(0, &question);
    assert_eq!(bench.sent(), [(Port(1), answer(&question))]);
}

/// The work of a page is bounded, so it may have fewer flows where many have gone; none is left out.
fn flows_are_told_page_by_page_whatever_has_gone<E: Executor>() {
    let mut image = counting();
    image.flow.max = 1_000;
    let mut bench = Bench::<E>::new(image);
    for number in 0..700 {
        bench.frame(0, &datagram(number, b"some"));
    }
    for flow in (1..=700).filter(|flow| flow % 7 != 0) {
        bench.change(Change::Delete { flow: FlowId(flow) }).expect("the flow is there");
    }
    let (mut all, mut after) = (Vec::new(), FlowId(0));
    for _ in 0..700 {
        let page = bench.engine.flows_after(after, 3);
        assert!(page.flows.len() <= 3);
        all.extend(page.flows.iter().map(|flow| flow.flow.0));
        let Some(next) = page.next else { break };
        assert!(next > after);
        after = next;
    }
    assert!(all.iter().copied().eq((7..=700).step_by(7)));
    assert_eq!(all, bench.flows());
}

on_every_engine! {
    packets_without_key_are_dropped_or_passed_on,
    link_headers_change_between_link_types,
    a_symmetric_key_joins_both_directions,
    the_flow_hash_is_that_of_the_key,
    enter_of_state_0_comes_before_the_first_packet,
    a_provisional_instance_needs_no_place_if_it_is_deleted_in_its_event,
    deleted_while_entering_state_0_handles_no_packet,
    a_full_table_rejects,
    the_flow_idle_for_longest_is_evicted,
    flows_that_expire_at_one_instant_go_as_their_packets_came,
    what_a_flow_draws_does_not_depend_on_other_flows,
    instances_of_one_key_and_instant_draw_different_numbers,
    eviction_looks_at_the_states_of_now,
    idle_flows_expire_after_the_timers_of_that_instant,
    timers_do_not_keep_a_flow_alive_and_arrivals_do,
    held_flows_expire_when_nothing_holds_them_any_more,
    an_open_application_holds_its_flow,
    expiry_is_an_event_that_ends_the_instance,
    eviction_raises_no_event,
    a_state_may_have_an_idle_time_of_its_own,
    a_full_table_evicts_in_turn,
    connect_fills_slots_and_finds_the_flow_again,
    connect_needs_a_key_that_is_known_in_advance,
    built_packets_go_from_the_packets_destination_to_its_source,
    flows_are_told_page_by_page_whatever_has_gone,
}
