//! Rules E1 to E17 and A1 to A6 and 6 of the semantics page, point by point.

use crate::support::*;
use weftwire_core::inspect::Inspect;
use weftwire_core::trace::TraceKind;
use weftwire_core::{CallError, Change, Connections, ControlError, FlowId, Function, Listen, Output};
use weftwire_engine::Executor;
use weftwire_image::*;

const CURRENT: PacketRef = PacketRef::Current;
const WORK: PacketRef = PacketRef::Work;

fn arrivals_come_before_timers_of_the_same_instant<E: Executor>() {
    let mut image = machine();
    image.timers.push(timer("tick", &[]));
    image.rows.push(row(0, Event::Packet, vec![notify(constant(1)), set_timer(0, 10)]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(2))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(10, 1);
    bench.packet(10, 1);
    bench.fire(10);
    assert_eq!(bench.timed_notices(), [(0, 1), (10, 1), (10, 1), (10, 2)]);
    // An arrival at 20 runs what was due before it, but not what is due with it.
    bench.packet(20, 1);
    assert_eq!(bench.timed_notices()[4..], [(20, 1)]);
}

fn timers_fire_in_the_order_they_were_set_at_the_time_they_were_due<E: Executor>() {
    let mut image = machine();
    image.timers = vec![timer("a", &["value"]), timer("b", &[])];
    let set_a = |delay: i64, value: i64| Operation::SetTimer {
        timer: 0,
        delay: constant(delay),
        payload: vec![constant(value)],
    };
    let both = vec![set_a(10, 1), set_timer(1, 10), set_a(10, 3), set_a(5, 4)];
    image.rows.push(row(0, Event::Packet, both));
    image.rows.push(row(0, Event::Timer(0), vec![notify(Operand::Event(0))]));
    image.rows.push(row(0, Event::Timer(1), vec![notify(constant(2)), set_a(-3, 5), set_a(0, 6)]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    // The platform is late: each timer still has its own time.
    bench.fire(1_000);
    assert_eq!(bench.timed_notices(), [(5, 4), (10, 1), (10, 2), (10, 3), (10, 5), (10, 6)]);
}

fn conditions_see_the_preparation_and_the_first_matching_row_wins<E: Executor>() {
    let mut image = machine();
    image.registers = vec![register("stored"), Register { scratch: true, ..register("seen") }];
    image.preparations.push(Preparation {
        state: 0,
        event: Event::Packet,
        operations: vec![set(1, Operand::Register(0))],
    });
    image.conditions.push(Condition { comparison: Comparison::Gt, left: Operand::Register(1), right: constant(0) });
    let step = compute(Operator::Add, 0, Operand::Register(0), constant(1));
    let second = notify(Operand::Register(0));
    image.rows.push(Row { when: vec![(0, false)], ..row(0, Event::Packet, vec![step.clone(), second]) });
    image.rows.push(Row { when: vec![(0, true)], ..row(0, Event::Packet, vec![notify(constant(100))]) });
    image.rows.push(row(0, Event::Packet, vec![notify(constant(200))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.packet(0, 1);
    bench.packet(0, 1);
    assert_eq!(bench.notices(), [1, 100, 100]);
    let rows: Vec<u64> = bench.counters().rows.iter().map(|(_, count)| *count).collect();
    assert_eq!(rows, [1, 2, 0]);
}

fn no_row_is_counted_for_packets_only<E: Executor>() {
    let mut image = machine();
    image.timers.push(timer("tick", &[]));
    image.conditions.push(Condition { comparison: Comparison::Eq, left: constant(0), right: constant(1) });
    image.rows.push(row(0, Event::Enter, vec![set_timer(0, 1)]));
    image.rows.push(Row { when: vec![(0, true)], ..row(0, Event::Packet, vec![]) });
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.fire(5);
    assert_eq!(bench.drops("no_row"), 1);
}

fn internal_events_run_before_exit_and_enter<E: Executor>() {
    let mut image = machine();
    image.states = vec![state("start"), state("middle"), state("end")];
    image.internal_events = 2;
    image.registers = vec![Register { scratch: true, ..register("kept") }];
    let kept = notify(Operand::Register(0));
    image.rows = vec![
        Row {
            next: Some(1),
            raise: Some(0),
            ..row(0, Event::Packet, vec![set(0, constant(5)), Operation::Copy { from: CURRENT, to: WORK }])
        },
        // The event's own values, scratch registers, `work` and `current` stay.
        Row {
            raise: Some(1),
            next: Some(2),
            ..row(
                0,
                Event::Internal(0),
                vec![
                    kept,
                    notify(Operand::Event(0)),
                    notify(Operand::Present { packet: WORK, field: fields::TTL }),
                    notify(Operand::Present { packet: CURRENT, field: fields::TTL }),
                ],
            )
        },
        row(0, Event::Internal(1), vec![notify(constant(20))]),
        row(0, Event::Exit, vec![notify(constant(30))]),
        row(
            2,
            Event::Enter,
            vec![
                notify(Operand::Present { packet: WORK, field: fields::TTL }),
                notify(Operand::Present { packet: CURRENT, field: fields::TTL }),
                notify(Operand::Event(0)),
                notify(constant(40)),
            ],
        ),
        row(1, Event::Enter, vec![notify(constant(-1))]),
    ];
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!(bench.notices(), [5, 1, 1, 1, 20, 30, 0, 1, 1, 40]);
    assert_eq!(bench.state(1), "end");
    let records = bench.records(TraceKind::Event);
    let events: Vec<&str> = records.iter().map(|record| record.event.as_str()).collect();
    assert_eq!(events, ["packet", "internal 0", "internal 1", "exit", "enter"]);
    let states: Vec<(&str, &str)> =
        records.iter().map(|record| (record.state.as_str(), record.next.as_str())).collect();
    assert_eq!(states, [("start", "middle"), ("start", "end"), ("start", "end"), ("start", "end"), ("end", "end")]);
}

fn a_pending_state_is_entered_although_no_row_takes_the_internal_event<E: Executor>() {
    let mut image = machine();
    image.states.push(state("next"));
    image.internal_events = 1;
    image.rows.push(Row { next: Some(1), raise: Some(0), ..row(0, Event::Packet, vec![]) });
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!(bench.state(1), "next");
}

fn a_state_is_left_and_entered_from_itself<E: Executor>() {
    let mut image = machine();
    image.rows.push(row(0, Event::Enter, vec![notify(constant(1))]));
    image.rows.push(row(0, Event::Exit, vec![notify(constant(2))]));
    image.rows.push(Row { next: Some(0), ..row(0, Event::Packet, vec![notify(constant(3))]) });
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!(bench.notices(), [1, 3, 2, 1]);
}

fn entries_may_lead_on<E: Executor>() {
    let mut image = machine();
    image.states = vec![state("a"), state("b"), state("c")];
    image.rows.push(Row { next: Some(1), ..row(0, Event::Packet, vec![]) });
    image.rows.push(Row { next: Some(2), ..row(1, Event::Enter, vec![notify(constant(1))]) });
    image.rows.push(row(1, Event::Exit, vec![notify(constant(2))]));
    image.rows.push(row(2, Event::Enter, vec![notify(constant(3))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!((bench.state(1).as_str(), bench.notices()), ("c", vec![1, 2, 3]));
}

fn delete_ends_the_instance_after_its_row<E: Executor>() {
    let mut image = machine();
    image.states.push(state("other"));
    image.timers.push(timer("tick", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 5), set_timer(0, 7)]));
    let ending = vec![Operation::DeleteInstance, notify(constant(1))];
    image.rows.push(Row { next: Some(1), ..row(0, Event::Timer(0), ending) });
    image.rows.push(row(0, Event::Exit, vec![notify(constant(2))]));
    image.rows.push(row(1, Event::Enter, vec![notify(constant(3))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.fire(100);
    assert_eq!((bench.timed_notices(), bench.ended(), bench.flows()), (vec![(5, 1)], vec![1], vec![]));
    assert_eq!(bench.engine.next_deadline(), None);
}

fn timers_are_bounded<E: Executor>() {
    let mut image = machine();
    image.flow.max_timers = 2;
    image.timers.push(timer("tick", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 5), set_timer(0, 6), set_timer(0, 7)]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(1))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!(bench.drops("too_many_timers"), 1);
    bench.fire(100);
    bench.packet(101, 1);
    bench.fire(200);
    assert_eq!(bench.timed_notices(), [(5, 1), (6, 1), (106, 1), (107, 1)]);
}

fn a_zero_time_loop_is_cut<E: Executor>() {
    let mut image = machine();
    image.timers.push(timer("again", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 3)]));
    image.rows.push(row(0, Event::Timer(0), vec![set_timer(0, -1)]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.fire(3);
    assert_eq!((bench.drops("zero_time_loop"), bench.ended()), (1, vec![1]));
    let errors = bench.records(TraceKind::Error);
    assert_eq!((errors.len(), errors[0].event.as_str(), errors[0].time), (1, "zero_time_loop", at(3)));
    assert_eq!(bench.records(TraceKind::Event).len(), 1 + 10_000);
}

/// It is the length of the chain that counts, not the number of settings that are due at one instant.
fn many_equal_timers_are_no_loop<E: Executor>() {
    let mut image = machine();
    image.flow.max_timers = 20_000;
    image.timers = vec![timer("many", &[]), timer("once_more", &[])];
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 1_000)]));
    image.rows.push(row(0, Event::Timer(0), vec![set_timer(1, 0)]));
    image.rows.push(row(0, Event::Timer(1), vec![notify(constant(1))]));
    let mut bench = Bench::<E>::new(image);
    bench.out.set_tracing(false);
    for _ in 0..10_001 {
        bench.packet(0, 1);
    }
    bench.fire(1_000);
    assert_eq!((bench.flows(), bench.drops("zero_time_loop")), (vec![1], 0));
    assert_eq!(bench.notices().len(), 10_001);
}

/// Where time ends, no delay leads on.
fn a_zero_time_loop_at_the_end_of_time_is_cut<E: Executor>() {
    let mut image = machine();
    image.timers.push(timer("again", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, i64::MAX)]));
    image.rows.push(row(0, Event::Timer(0), vec![set_timer(0, 1)]));
    let mut bench = Bench::<E>::new(image);
    bench.out.set_tracing(false);
    bench.packet(1, 1);
    bench.fire(i64::MAX);
    assert_eq!((bench.drops("zero_time_loop"), bench.ended()), (1, vec![1]));
}

fn timers_that_move_on_are_no_loop<E: Executor>() {
    let mut image = machine();
    image.timers.push(timer("again", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 1)]));
    image.rows.push(row(0, Event::Timer(0), vec![set_timer(0, 1)]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.fire(20_000);
    assert_eq!((bench.flows(), bench.drops("zero_time_loop")), (vec![1], 0));
}

fn cancelling_is_exact<E: Executor>() {
    let mut image = machine();
    image.timers = vec![timer("retry", &["sequence"]), timer("killer", &[])];
    image.registers = vec![register("acknowledged")];
    let retry = |delay: i64, sequence: i64| Operation::SetTimer {
        timer: 0,
        delay: constant(delay),
        payload: vec![constant(sequence)],
    };
    // The killer is set first, so that it fires first at the instant of the retries.
    let operations = vec![set_timer(1, 10), retry(10, 1), retry(10, 2), retry(20, 2), retry(30, 3)];
    image.rows.push(row(0, Event::Packet, operations));
    let test = PayloadTest::new(0, Comparison::SeqLe, Operand::Register(0));
    let cancel = Operation::CancelTimer { timer: 0, tests: vec![test] };
    image.rows.push(row(0, Event::Timer(1), vec![set(0, constant(2)), cancel]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(Operand::Event(0))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    assert_eq!(bench.engine.flow(FlowId(1)).unwrap().timers.len(), 5);
    bench.fire(10);
    let left = bench.engine.flow(FlowId(1)).unwrap().timers;
    assert_eq!(
        (left.len(), left[0].name.as_str(), left[0].due, left[0].payload.clone()),
        (1, "retry", at(30), vec![3])
    );
    bench.fire(100);
    assert_eq!(bench.timed_notices(), [(30, 3)]);
}

fn missing_packets_ports_and_fields_are_counted<E: Executor>() {
    let mut image = machine();
    let send = |packet, port| Operation::Send { packet, port: constant(port) };
    image.rows.push(row(
        0,
        Event::Packet,
        vec![
            send(WORK, 1),
            send(PacketRef::Slot(1), 1),
            send(CURRENT, 0),
            send(CURRENT, 3),
            send(CURRENT, 65_537),
            send(CURRENT, 2),
            Operation::SetField { packet: CURRENT, field: fields::MSS, value: constant(1), optional: false },
            Operation::SetField { packet: CURRENT, field: fields::MSS, value: constant(1), optional: true },
            Operation::KeepOptions { packet: CURRENT, kinds: vec![] },
            Operation::Resize { packet: CURRENT, length: constant(70_000) },
            compute(Operator::Div, 0, constant(1), constant(0)),
        ],
    ));
    image.registers.push(register("r"));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    let drops = ["no_packet", "no_port", "no_field", "too_long", "division_by_zero"].map(|reason| bench.drops(reason));
    assert_eq!(drops, [2, 3, 2, 1, 1]);
    assert_eq!(bench.counters().frames_out, 1);
    assert_eq!(bench.engine.flow(FlowId(1)).unwrap().counters["no_port"], 3);
}

fn a_packet_is_sent_as_it_is_at_that_moment<E: Executor>() {
    let mut image = machine();
    let set_word = |value: i64| Operation::SetField {
        packet: WORK,
        field: fields::WORD_1,
        value: constant(value),
        optional: false,
    };
    let send = || Operation::Send { packet: WORK, port: constant(1) };
    image.rows.push(row(
        0,
        Event::Packet,
        vec![Operation::Copy { from: CURRENT, to: WORK }, set_word(1), send(), set_word(2), send()],
    ));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    let frames: Vec<Vec<u8>> = bench.sent().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(frames, [datagram(1, &[0, 0, 0, 1]), datagram(1, &[0, 0, 0, 2])]);
}

/// Sends what the application writes, four bytes a packet, and releases it on each packet from the network.
fn sender() -> Image {
    let mut image = machine();
    let ends = Template {
        name: "data".into(),
        transport: TemplateTransport::Udp,
        tcp_options: vec![],
        headers: vec![],
        payload: 0,
        presets: vec![],
    };
    image.templates.push(ends);
    image.rows = vec![
        row(0, Event::Connect, vec![]),
        row(
            0,
            Event::Data,
            vec![
                notify(Operand::Event(0)),
                notify(Operand::Environment(Environment::ApplicationAvailable)),
                Operation::Build { template: 0, to: WORK, options: Vec::new() },
                Operation::AppendData { packet: WORK, offset: constant(-2), length: constant(4) },
                Operation::AppendData { packet: WORK, offset: constant(4), length: constant(100) },
                Operation::AppendData { packet: WORK, offset: constant(100), length: constant(1) },
                Operation::Send { packet: WORK, port: constant(1) },
            ],
        ),
        row(
            0,
            Event::Packet,
            vec![
                Operation::ReleaseData { length: Operand::Event(2) },
                Operation::Deliver { packet: CURRENT, offset: constant(1), length: constant(2) },
                Operation::Deliver { packet: CURRENT, offset: constant(100), length: constant(2) },
                Operation::Deliver { packet: CURRENT, offset: constant(3), length: constant(100) },
            ],
        ),
        row(0, Event::Close, vec![notify(Operand::Environment(Environment::ApplicationClosed))]),
    ];
    image
}

fn an_image_says_how_much_the_application_may_write_ahead<E: Executor>() {
    let mut bench = Bench::<E>::new(Image { send_buffer: Some(6), ..sender() });
    let flow = bench.engine.connect(at(0), &client(1), &mut bench.out).unwrap();
    assert_eq!(bench.engine.write(at(1), flow, b"abcdefgh", &mut bench.out), Ok(6));
    // Four bytes of a packet of the flow release four bytes.
    bench.packet(2, 1);
    assert_eq!(bench.engine.write(at(3), flow, b"ghijklmn", &mut bench.out), Ok(4));
}

fn the_application_writes_and_closes<E: Executor>() {
    let mut bench = Bench::<E>::new(sender());
    let flow = bench.engine.connect(at(0), &client(1), &mut bench.out).unwrap();
    assert_eq!(bench.engine.write(at(1), flow, b"", &mut bench.out), Ok(0));
    assert_eq!(bench.notices(), [0; 0]);
    assert_eq!(bench.engine.write(at(1), flow, b"abcdefgh", &mut bench.out), Ok(8));
    assert_eq!(bench.notices(), [8, 8]);
    let (_, frame) = bench.sent().remove(0);
    assert_eq!(frame, datagram(1, b"abcdefgh"));
    // Four bytes of a packet of the flow release four bytes.
    bench.packet(2, 1);
    let released: Vec<usize> = bench
        .out
        .items()
        .iter()
        .filter_map(|item| match item {
            Output::Released { length, .. } => Some(*length),
            _ => None,
        })
        .collect();
    assert_eq!((released, bench.delivered()), (vec![4], vec![0, 0, 7]));
    let big = vec![0; 2 << 20];
    assert_eq!(bench.engine.write(at(3), flow, &big, &mut bench.out), Ok((1 << 20) - 4));
    assert_eq!(bench.engine.write(at(3), flow, &big, &mut bench.out), Ok(0));
    assert_eq!(bench.engine.close(at(4), flow, &mut bench.out), Ok(()));
    assert_eq!(bench.notices().last(), Some(&1));
    assert_eq!(bench.engine.close(at(4), flow, &mut bench.out), Err(CallError::Closed(flow)));
    assert_eq!(bench.engine.write(at(4), flow, b"x", &mut bench.out), Err(CallError::Closed(flow)));
    let nobody = FlowId(77);
    assert_eq!(bench.engine.write(at(4), nobody, b"x", &mut bench.out), Err(CallError::NoFlow(nobody)));
}

fn snapshots_and_samples_show_and_change_nothing<E: Executor>() {
    let mut image = machine();
    image.registers = vec![register("count"), Register { scratch: true, ..register("hidden") }];
    image.timers.push(timer("tick", &[]));
    image.debug =
        Debug { sources: vec![], points: vec!["seen".into()], samples: vec![Sample { register: 0, interval: 1_000 }] };
    let count = || compute(Operator::Add, 0, Operand::Register(0), constant(1));
    let snapshot = Operation::Snapshot { point: 0 };
    image.rows.push(row(0, Event::Packet, vec![count(), snapshot, count(), set_timer(0, 1_000)]));
    image.rows.push(row(0, Event::Timer(0), vec![count()]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(100, 1);
    let snapshots = bench.records(TraceKind::Snapshot);
    assert_eq!((snapshots.len(), snapshots[0].event.as_str()), (1, "seen"));
    assert_eq!(snapshots[0].registers, [("count".to_owned(), 1)]);
    bench.fire(2_100);
    let samples: Vec<(i64, i64)> = bench
        .records(TraceKind::Sample)
        .iter()
        .map(|record| (record.time.nanoseconds(), record.registers[0].1))
        .collect();
    // At 1,100 the timer of that instant came first.
    assert_eq!(samples, [(1_100, 3), (2_100, 3)]);
    bench.change(Change::Delete { flow: FlowId(1) }).unwrap();
    assert_eq!(bench.engine.next_deadline(), None);
}

fn traces_name_actions_with_their_values<E: Executor>() {
    let mut image = machine();
    image.registers = vec![register("count")];
    image.timers.push(timer("retry", &["attempt"]));
    image.rows.push(Row {
        line: 12,
        ..row(
            0,
            Event::Packet,
            vec![
                compute(Operator::Mul, 0, Operand::Event(2), constant(10)),
                Operation::SetTimer { timer: 0, delay: constant(5), payload: vec![Operand::Register(0)] },
                Operation::Send { packet: CURRENT, port: Operand::Event(0) },
                Operation::Send { packet: WORK, port: constant(1) },
            ],
        )
    });
    let mut elsewhere = image.clone();
    elsewhere.debug.sources = vec!["timers.xl".into()];
    elsewhere.rows[0].source = 1;
    let mut bench = Bench::<E>::new(elsewhere);
    bench.packet(7, 1);
    assert_eq!(bench.records(TraceKind::Event)[0].place().as_deref(), Some("line 12 of timers.xl"));
    let mut bench = Bench::<E>::new(image);
    bench.packet(7, 1);
    let record = bench.records(TraceKind::Event).remove(0);
    assert_eq!(
        record.actions,
        [
            "count := event 2 (4) * 10",
            "set_timer retry in 5 ns, attempt count (40)",
            "send current (46 bytes) to port event 0 (1)",
            "send work (empty) to port 1",
        ]
    );
    assert_eq!((record.row, record.line, record.time), (Some(0), Some(12), at(7)));
    assert_eq!(record.place().as_deref(), Some("line 12"));
    assert_eq!(record.registers, [("count".to_owned(), 40)]);
    // Without a listener there is nothing.
    bench.out.clear();
    bench.out.set_tracing(false);
    bench.packet(8, 1);
    assert!(!bench.out.items().iter().any(|item| matches!(item, Output::Trace(_))));
}

fn registers_are_changed_from_outside_as_their_type_holds<E: Executor>() {
    let mut image = machine();
    image.registers = vec![
        Register { kind: RegisterType::Ipv4, ..register("address") },
        Register { scratch: true, ..register("hidden") },
    ];
    image.rows.push(row(0, Event::Packet, vec![]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    bench.change(Change::SetRegister { flow: FlowId(1), register: "address".into(), value: -1 }).unwrap();
    let detail = bench.engine.flow(FlowId(1)).unwrap();
    assert_eq!((detail.registers[0].value, detail.registers[0].text.as_str()), (0xffff_ffff, "255.255.255.255"));
    assert_eq!(detail.summary.key, "10.0.0.1:4000 <-> 10.9.9.9:80 udp");
    let error = bench.change(Change::SetRegister { flow: FlowId(1), register: "hidden".into(), value: 0 }).unwrap_err();
    assert_eq!(error, ControlError::NoRegister { name: "hidden".into(), known: "address".into() });
    assert_eq!(bench.change(Change::Delete { flow: FlowId(2) }), Err(ControlError::NoFlow(FlowId(2))));
}

fn applications_listen_until_they_take_it_back<E: Executor>() {
    let mut image = machine();
    image.rows.push(row(0, Event::Packet, vec![notify(Operand::Environment(Environment::ApplicationListening))]));
    let mut bench = Bench::<E>::new(image);
    let [port, all, other] = [Some(80), None, Some(81)].map(|port| Listen { address: None, port });
    let calls = [(true, other), (true, port), (true, all), (false, port), (false, port), (false, other), (false, all)];
    for (number, (listens, local)) in (1..).zip(calls) {
        let Bench { engine, out, .. } = &mut bench;
        let done =
            if listens { engine.listen(at(number), &local, out) } else { engine.unlisten(at(number), &local, out) };
        assert_eq!(done, Ok(()));
        bench.packet(number, 1);
    }
    assert_eq!(bench.notices(), [0, 1, 1, 1, 1, 1, 0]);
}

fn time_never_goes_back<E: Executor>() {
    let mut image = machine();
    image.rows.push(row(0, Event::Packet, vec![notify(Operand::Environment(Environment::Now))]));
    let mut bench = Bench::<E>::new(image);
    bench.packet(10, 1);
    bench.packet(3, 1);
    assert_eq!(bench.notices(), [10, 10]);
}

fn one_event_puts_out_16_mebibytes_at_most<E: Executor>() {
    let mut image = machine();
    let mut operations = vec![Operation::Resize { packet: CURRENT, length: constant(60_000) }];
    operations.extend(vec![Operation::Send { packet: CURRENT, port: constant(1) }; 300]);
    image.rows.push(row(0, Event::Packet, operations));
    let mut bench = Bench::<E>::new(image);
    bench.packet(0, 1);
    let frame = bench.sent()[0].1.len();
    let fitting = (16 << 20) / frame;
    assert_eq!((bench.sent().len(), bench.drops("too_much_output")), (fitting, 300 - fitting as u64));
    bench.packet(1, 1);
    assert_eq!(bench.sent().len(), 2 * fitting, "the next event may again");
}

on_every_engine! {
    arrivals_come_before_timers_of_the_same_instant,
    timers_fire_in_the_order_they_were_set_at_the_time_they_were_due,
    conditions_see_the_preparation_and_the_first_matching_row_wins,
    no_row_is_counted_for_packets_only,
    internal_events_run_before_exit_and_enter,
    a_pending_state_is_entered_although_no_row_takes_the_internal_event,
    a_state_is_left_and_entered_from_itself,
    entries_may_lead_on,
    delete_ends_the_instance_after_its_row,
    timers_are_bounded,
    a_zero_time_loop_is_cut,
    many_equal_timers_are_no_loop,
    a_zero_time_loop_at_the_end_of_time_is_cut,
    timers_that_move_on_are_no_loop,
    cancelling_is_exact,
    missing_packets_ports_and_fields_are_counted,
    a_packet_is_sent_as_it_is_at_that_moment,
    an_image_says_how_much_the_application_may_write_ahead,
    the_application_writes_and_closes,
    snapshots_and_samples_show_and_change_nothing,
    traces_name_actions_with_their_values,
    registers_are_changed_from_outside_as_their_type_holds,
    applications_listen_until_they_take_it_back,
    time_never_goes_back,
    one_event_puts_out_16_mebibytes_at_most,
}
