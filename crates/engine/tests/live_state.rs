//! Live state: the law over random machines, and that it finds whatever is left out.

use crate::support::law::{CLOCKS, Change, Compare, case, do_step, engine, law, lively};
use crate::support::random::{Step, apart};
use crate::support::{
    Bench, at, compute, constant, flow_state, machine, notify, register, rich, row, set_timer, timer, verified,
};
use std::collections::BTreeMap;
use weftwire_core::control::{self, Done};
use weftwire_core::inspect::Inspect;
use weftwire_core::live::Clocks;
use weftwire_core::order::Input;
use weftwire_core::packet_parts::PacketParts;
use weftwire_core::{ControlError, Endpoints, FlowId, Function, LinkType, MacAddress, Outbox, Port, Ports, Time};
use weftwire_engine::state::{FlowState, FunctionState, Keys, TurnState};
use weftwire_engine::{EngineOptions, Limits, ReferenceEngine, ZERO_TIME_DEPTH};
use weftwire_image::layout::{FunctionLayout, StateLayout};
use weftwire_image::{
    Comparison, Condition, Environment, Event, Image, Operand, Operation, Operator, PacketRef, Row, VerifiedImage,
    WhenFull,
};

/// Every field of a state, and how it is left out: it is as in a new flow, or in a new function.
const OMISSIONS: [(&str, Change); 56] = [
    ("time", |state| state.time = Time::ZERO),
    ("hash key", |state| state.keys.hash = [0; 16]),
    ("random key", |state| state.keys.random = [0; 16]),
    ("last flow", |state| state.last_flow = state.flows.last().map_or(0, |flow| flow.flow.0)),
    ("activities", |state| state.activities = 0),
    ("last made", |state| state.last_made = Time::ZERO),
    ("made then", |state| state.made_then.clear()),
    ("counts", |state| state.counts.frames_in = 0),
    ("counts of rows", |state| state.counts.rows.fill(0)),
    ("counts of refusals", |state| state.counts.drops.clear()),
    ("order of timers", |state| order_by_flow(state)),
    ("keys of flows", |state| each(state, |flow| flow.keys = Keys::default())),
    ("flow's number", |state| each(state, |flow| flow.flow = FlowId(flow.flow.0 + 1))),
    ("flow's hash key", |state| each(state, |flow| flow.keys.hash = [0; 16])),
    ("flow's random key", |state| each(state, |flow| flow.keys.random = [0; 16])),
    ("state", |state| each(state, |flow| flow.state = 0)),
    ("registers", |state| each(state, |flow| flow.registers.fill(0))),
    ("ends", |state| each(state, |flow| flow.endpoints = None)),
    ("this end's Ethernet address", |state| ends(state, |ends| ends.local_mac = MacAddress::UNSPECIFIED)),
    ("the next hop's Ethernet address", |state| ends(state, |ends| ends.remote_mac = MacAddress::UNSPECIFIED)),
    ("VLAN tag", |state| ends(state, |ends| ends.vlan = None)),
    ("closed", |state| each(state, |flow| flow.closed = false)),
    ("open", |state| each(state, |flow| flow.open = false)),
    ("created", |state| each(state, |flow| flow.created = flow.last_active)),
    ("last active", |state| each(state, |flow| flow.last_active = flow.time)),
    ("activity", |state| each(state, |flow| flow.activity = 0)),
    ("latest input", |state| state.latest_input = None),
    ("kind of the latest input", |state| state.latest_input = state.latest_input.map(|(at, _)| (at, Input::Change))),
    ("draws", |state| each(state, |flow| flow.draws = 0)),
    ("events", |state| each(state, |flow| flow.events = 0)),
    ("packets in", |state| each(state, |flow| flow.packets_in = 0)),
    ("packets out", |state| each(state, |flow| flow.packets_out = 0)),
    ("refusals", |state| each(state, |flow| flow.drops.clear())),
    ("timers", |state| {
        state.due.clear();
        each(state, |flow| flow.timers.clear())
    }),
    ("timers' payload", |state| each(state, |flow| flow.timers.iter_mut().for_each(|timer| timer.payload = [0; 4]))),
    ("a timer's third and fourth value", |state| {
        each(state, |flow| flow.timers.iter_mut().for_each(|timer| timer.payload[2..].fill(0)))
    }),
    ("order of a flow's timers", |state| each(state, |flow| flow.timers.sort_by_key(|timer| (timer.due, timer.timer)))),
    ("samples", |state| each(state, |flow| flow.samples.fill(Time::MAX))),
    ("packets", |state| each(state, |flow| flow.packets.fill(None))),
    ("offload marks", |state| {
        packets(state, |packet| {
            packet.partial = false;
            packet.segmentation = None
        })
    }),
    ("imported headers", |state| packets(state, |packet| packet.imported.fill((0, 0)))),
    ("payload of packets", |state| {
        packets(state, |packet| {
            packet.payload = if packet.transport_end > 0 { packet.transport_end } else { packet.payload }
        })
    }),
    ("send buffer", |state| each(state, |flow| flow.send_buffer.clear())),
    ("listening", |state| state.listening.clear()),
    ("floors", |state| each(state, |flow| flow.ranges.iter_mut().take(1).for_each(|ranges| ranges.floor = 0))),
    ("ranges", |state| each(state, |flow| flow.ranges.iter_mut().take(1).for_each(|ranges| ranges.entries.clear()))),
    ("order of ranges", |state| {
        each(state, |flow| flow.ranges.iter_mut().for_each(|ranges| ranges.entries.sort_unstable()))
    }),
    ("held bytes", |state| each(state, |flow| flow.held.fill(0))),
    ("unread", |state| each(state, |flow| flow.unread = 0)),
    ("segments", |state| each(state, |flow| flow.segments.iter_mut().for_each(|segments| segments.records.clear()))),
    ("fields of segments", |state| {
        each(state, |flow| {
            let records = flow.segments.iter_mut().flat_map(|segments| &mut segments.records);
            records.for_each(|(_, fields)| fields.fill(0));
        })
    }),
    ("waiting", |state| {
        state.turns.iter_mut().for_each(|turns| turns.waiting.clear());
        each(state, |flow| flow.turns.fill(None))
    }),
    ("ranks of those that wait", |state| waiting(state, |turn| turn.rank = 0)),
    ("costs of turns", |state| waiting(state, |turn| turn.cost = 1)),
    ("order of those that wait", |state| {
        let ranks: BTreeMap<FlowId, i64> =
            state.flows.iter().filter_map(|flow| Some((flow.flow, flow.turns[0]?.rank))).collect();
        state.turns[0].waiting.sort_by_key(|flow| (ranks[flow], *flow));
    }),
    ("when the next turn is", |state| state.turns.iter_mut().for_each(|turns| turns.next = state.time)),
];

fn each(state: &mut FunctionState, change: impl Fn(&mut FlowState)) {
    state.flows.iter_mut().for_each(change);
}

fn waiting(state: &mut FunctionState, change: impl Fn(&mut TurnState)) {
    each(state, |flow| flow.turns.iter_mut().flatten().for_each(&change));
}

fn ends(state: &mut FunctionState, change: impl Fn(&mut Endpoints)) {
    each(state, |flow| flow.endpoints.iter_mut().for_each(&change));
}

fn packets(state: &mut FunctionState, change: impl Fn(&mut PacketParts)) {
    each(state, |flow| flow.packets.iter_mut().flatten().for_each(&change));
}

/// The timers of one instant in the order of their flows.
fn order_by_flow(state: &mut FunctionState) {
    let timers = state.flows.iter().flat_map(|flow| flow.timers.iter().map(|timer| (timer.due, flow.flow)));
    let mut due: Vec<(Time, FlowId)> = timers.collect();
    due.sort();
    state.due = due.into_iter().map(|(_, flow)| flow).collect();
}

/// The first case from this one on in which the law falls, of so many.
fn falls(change: Change, first: u64, cases: u64) -> Option<(u64, String)> {
    (first..first + cases).find_map(|number| {
        let (image, steps) = case(number);
        Some((number, law(&image, &steps, number % 3, change, Compare::Behaviour).difference?))
    })
}

/// Goes through random cases from this one on until the law has held at so many boundaries.
fn hold(first: u64, boundaries: usize) {
    let (mut done, mut number) = (0, first);
    while done < boundaries {
        let (image, steps) = case(number);
        let run = law(&image, &steps, number % 3, |_| {}, Compare::Everything);
        assert_eq!(run.difference, None, "case {number} after {} boundaries", run.boundaries);
        done += run.boundaries;
        number += 1;
    }
}

fn adopt(engine: &mut ReferenceEngine, now: Time, state: &[u8], clocks: Option<Clocks>) -> Result<Done, ControlError> {
    control::change(engine, now, weftwire_core::Change::Adopt { state: state.to_vec(), clocks }, &mut Outbox::new())
}

#[test]
fn a_function_replaced_at_every_boundary_is_the_same_function() {
    hold(0, 100_000);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn a_function_replaced_a_million_times_is_the_same_function() {
    hold(1_000_000, 1_000_000);
}

/// Not only the bytes differ then: what the function does and shows is another thing.
#[test]
fn whatever_is_left_out_is_found() {
    for (name, change) in OMISSIONS {
        assert!(falls(change, 0, 1_000).is_some(), "nobody notices that this is left out: {name}");
    }
}

#[test]
fn depth_that_is_left_out_is_found() {
    let mut image = machine();
    image.timers.push(timer("again", &[]));
    image.rows.push(row(0, Event::Packet, vec![set_timer(0, 0)]));
    image.rows.push(row(0, Event::Timer(0), vec![set_timer(0, 0)]));
    let packet = Step::Frame { port: 1, client: 0, tcp: false, payload: vec![] };
    let fall = |change| law(&verified(image.clone()), &[packet.clone(), Step::Fire], 0, change, Compare::Behaviour);
    let whole = fall(|_| {});
    assert_eq!((whole.boundaries, whole.difference), (usize::from(ZERO_TIME_DEPTH) + 2, None));
    let left_out = fall(|state| each(state, |flow| flow.timers.iter_mut().for_each(|timer| timer.depth = 0)));
    assert!(left_out.difference.is_some());
}

/// A flow's random numbers depend on how many of its key were made before it at that instant (rule V11).
#[test]
fn earlier_that_is_left_out_is_found() {
    let mut image = machine();
    let ends = Operand::Field { packet: PacketRef::Current, field: crate::support::fields::WORD_1 };
    image.conditions.push(Condition { comparison: Comparison::Eq, left: ends, right: constant(0) });
    image.registers.push(register("drawn"));
    let draw = compute(Operator::Random, 0, constant(0), constant(0));
    image.rows.push(Row { when: vec![(0, true)], ..row(0, Event::Packet, vec![Operation::DeleteInstance]) });
    image.rows.push(row(0, Event::Packet, vec![draw, notify(Operand::Register(0))]));
    let packet = |word| Step::Frame { port: 1, client: 0, tcp: false, payload: vec![0, 0, 0, word] };
    let steps = [packet(0), packet(1), packet(1)];
    let fall = |change| law(&verified(image.clone()), &steps, 0, change, Compare::Behaviour);
    assert_eq!(fall(|_| {}).difference, None);
    assert!(fall(|state| each(state, |flow| flow.earlier = 0)).difference.is_some());
}

/// Who comes into a listed state first goes first, not who is idle longest (rule F10).
#[test]
fn rank_that_is_left_out_is_found() {
    let mut image = machine();
    (image.flow.max, image.flow.when_full) = (2, WhenFull::EvictOldestIn(vec![1]));
    image.states.push(crate::support::state("done"));
    image.timers.push(timer("finish", &[]));
    let delay = Operand::Field { packet: PacketRef::Current, field: crate::support::fields::WORD_1 };
    image.rows.push(row(0, Event::Packet, vec![Operation::SetTimer { timer: 0, delay, payload: vec![] }]));
    image.rows.push(Row { next: Some(1), ..row(0, Event::Timer(0), vec![]) });
    let packet = |client, delay| Step::Frame { port: 1, client, tcp: false, payload: vec![0, 0, 0, delay] };
    let steps = [packet(0, 30), Step::Wait(1), packet(3, 10), Step::Wait(39), packet(6, 99)];
    let fall = |change| law(&verified(image.clone()), &steps, 0, change, Compare::Behaviour);
    assert_eq!(fall(|_| {}).difference, None);
    let left_out = fall(|state| {
        each(state, |flow| {
            flow.rank = flow.last_active;
            flow.rank_activity = flow.activity;
        });
    });
    assert!(left_out.difference.is_some());
}

/// Those of the single flows are the function's, moved to their own time.
#[test]
fn clocks_that_are_left_out_are_found() {
    let (image, steps) = case(0);
    assert!(law(&image, &steps, 0, |state| state.clocks = None, Compare::Everything).difference.is_some());
}

/// Flows that move to a function with another time and other keys: each goes on there as if it had stayed.
#[test]
fn a_flow_that_moves_goes_on_as_if_it_had_stayed() {
    let mut compared = 0;
    for number in 0..600 {
        let (image, steps) = case(number);
        let mut image = image.into_image();
        // Flows that meet only in their order.
        image.flow.max = 1_000;
        image.flow.when_full = WhenFull::Reject;
        let image = verified(apart(image));
        let ahead = [0, 5_000_000, -6_000_000][number as usize % 3];
        let (mut here, mut there) = (engine(&image, 1), engine(&image, 2));
        let mut out = Outbox::new();
        let mut now = 10_000_000;
        let half = steps.len() / 2;
        for step in &steps[..half] {
            // Where applications listen is no flow's.
            if matches!(step, Step::Listen(_)) {
                do_step(step, &mut there, &mut 0, &mut out);
            }
            do_step(step, &mut here, &mut now, &mut out);
        }
        let theirs = CLOCKS.of_time_ahead(ahead);
        let boundary = here.snapshot_all(None).time;
        here.fire(boundary, &mut out);
        let now_there = boundary.after(ahead);
        let moved: Vec<FlowId> = here.flows().iter().map(|flow| flow.flow).collect();
        for flow in &moved {
            let bytes = Inspect::snapshot(&here, *flow, Some(&CLOCKS)).expect("a live flow");
            let adopted = adopt(&mut there, now_there, &bytes, Some(theirs));
            assert_eq!(adopted, Ok(Done::Flow(*flow)), "case {number}");
            assert_eq!(Inspect::snapshot(&there, *flow, Some(&theirs)), Ok(bytes), "case {number}");
        }
        there.fire(now_there, &mut out);
        for step in &steps[half..] {
            let mut now_there = now + ahead;
            do_step(step, &mut here, &mut now, &mut out);
            do_step(step, &mut there, &mut now_there, &mut out);
            out.clear();
            for flow in &moved {
                // Which of all packets the last one was, or the last change, is the function's own count.
                let of = |engine: &ReferenceEngine, clocks| {
                    engine.snapshot(*flow, Some(clocks)).map(|state| FlowState {
                        activity: 0,
                        rank_activity: 0,
                        ..state
                    })
                };
                assert_eq!(of(&here, &CLOCKS), of(&there, &theirs), "case {number}, flow {flow}");
                compared += usize::from(here.snapshot(*flow, None).is_some());
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn timers_that_were_due_on_the_way_fire_late_in_order_at_their_own_time() {
    let mut image = machine();
    image.timers.push(timer("tick", &[]));
    let tick = vec![notify(Operand::Environment(Environment::Now)), set_timer(0, 100)];
    image.rows.push(row(0, Event::Packet, tick.clone()));
    image.rows.push(row(0, Event::Timer(0), tick));
    let mut first: Bench = Bench::new(image.clone());
    first.packet(1_000, 1);
    let taken = first.engine.take(FlowId(1), Some(&CLOCKS)).expect("a live flow");
    assert_eq!((first.flows(), first.ended()), (vec![], vec![]));
    first.fire(5_000);
    assert_eq!(first.notices(), [1_000]);
    // It arrives when it is 1,350 there, and 777,350 here.
    let mut second: Bench = Bench::new(image.clone());
    second.packet(777_350, 2);
    let clocks = CLOCKS.of_time_ahead(776_000);
    let flow = second.engine.restore(at(777_350), &taken, Some(&clocks)).expect("it fits");
    // Its number is taken here: it has another one.
    assert_eq!(flow, FlowId(2));
    second.out.clear();
    second.fire(777_400);
    assert_eq!(second.timed_notices(), [(777_100, 1_100), (777_200, 1_200), (777_300, 1_300), (777_400, 1_400)]);
    // Without a clock that both know it goes on from where it was.
    let mut third: Bench = Bench::new(image);
    third.fire(50);
    assert_eq!(third.engine.restore(at(60), &taken, None), Ok(FlowId(1)));
    third.fire(160);
    assert_eq!(third.timed_notices(), [(160, 1_100)]);
}

/// States of flows of the fuzz target's image, one in a function that has just begun and some that have lived.
fn states_to_spoil() -> Vec<Vec<u8>> {
    let image = flow_state::image();
    let mut all = Vec::new();
    for number in [1, 3] {
        let (_, steps) = case(number);
        let mut engine = engine(&image, number);
        let (mut out, mut now) = (Outbox::new(), 0);
        steps.iter().for_each(|step| do_step(step, &mut engine, &mut now, &mut out));
        for flow in engine.flows() {
            all.push(Inspect::snapshot(&engine, flow.flow, Some(&CLOCKS)).expect("a live flow"));
        }
        all.push(engine.snapshot_all(None).to_bytes(&FunctionLayout::of(&image)));
    }
    all
}

/// States that were written in the schema before, and the image that they are of.
const SCHEMA_BEFORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema-1");

#[test]
#[allow(clippy::disallowed_methods, reason = "a test that reads files")]
fn states_of_the_schema_before_are_read_and_live() {
    let read = |name: &str| std::fs::read(format!("{SCHEMA_BEFORE}/{name}")).unwrap();
    let image = VerifiedImage::from_json(&read("image.json")).unwrap();
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
    let fresh = ReferenceEngine::new(image.clone(), ports, EngineOptions::default()).unwrap();
    let layout = FunctionLayout::of(&image);
    let mut carried = 0;
    for name in ["0.flow", "1.flow", "2.flow", "3.flow", "5.flow", "6.flow", "7.flow"] {
        let bytes = read(name);
        assert_eq!(bytes[8], 1, "{name} is of schema 1");
        let state = FlowState::from_bytes(&bytes, &layout.flow).unwrap();
        carried += state.timers.iter().filter(|timer| timer.payload[0] != 0 && timer.payload[2..] == [0; 2]).count();
        let mut engine = fresh.another(EngineOptions::default()).unwrap();
        let flow = engine.restore(state.time, &state, state.clocks.as_ref()).unwrap();
        assert_eq!(engine.snapshot(flow, state.clocks.as_ref()), Some(state.clone()), "{name}");
        let again = state.to_bytes(&layout.flow);
        assert_eq!((again[8], FlowState::from_bytes(&again, &layout.flow)), (2, Ok(state)), "{name}");
        assert!(FlowState::from_bytes(&bytes[..bytes.len() - 8], &layout.flow).is_err(), "{name} cut off");
    }
    assert!(carried > 0, "timers with values are among them");
    // Of schema 2, too: what it tells of the latest input is the time that no input may be earlier than.
    let mut image: Image = serde_json::from_slice(include_bytes!("schema-2/image.json")).unwrap();
    image.seal();
    let layout_2 = FunctionLayout::of(&image.verify().unwrap());
    let state = FunctionState::from_bytes(include_bytes!("schema-2/4.function"), &layout_2).unwrap();
    assert_eq!(state.latest_input, Some((at(2_000), Input::Fire)));
    assert_eq!(FunctionState::from_bytes(&state.to_bytes(&layout_2), &layout_2), Ok(state));
    for name in ["4.function", "8.function"] {
        let state = FunctionState::from_bytes(&read(name), &layout).unwrap();
        let mut engine = fresh.another(EngineOptions::default()).unwrap();
        engine.restore_all(&state).unwrap();
        assert_eq!(engine.snapshot_all(None).flows, state.flows, "{name}");
        let mut mixed = state.to_bytes(&layout);
        mixed[8] = 1;
        assert!(FunctionState::from_bytes(&mixed, &layout).is_err(), "{name}: flows of the other schema");
    }
}

#[test]
fn bytes_from_anywhere_are_refused_or_live() {
    for state in states_to_spoil() {
        assert!(flow_state::flow_state(&state));
        for end in (0..state.len()).step_by(11) {
            flow_state::flow_state(&state[..end]);
        }
        for at in (0..state.len()).step_by(5) {
            let mut spoiled = state.clone();
            spoiled[at] ^= 1 << (at % 8);
            flow_state::flow_state(&spoiled);
        }
        for word in (32..state.len()).step_by(8) {
            for hostile in [0, 1, 1 << 62, u64::MAX] {
                let mut spoiled = state.clone();
                spoiled[word..word + 8].copy_from_slice(&hostile.to_le_bytes());
                flow_state::flow_state(&spoiled);
            }
        }
    }
}

#[test]
fn refusals_say_what_and_where() {
    let image = flow_state::image();
    let layout = StateLayout::of(&image);
    let (_, steps) = case(1);
    let mut engine = engine(&image, 1);
    let (mut out, mut now) = (Outbox::new(), 0);
    steps.iter().for_each(|step| do_step(step, &mut engine, &mut now, &mut out));
    let flow = engine.flows().first().expect("a flow").flow;
    let bytes = Inspect::snapshot(&engine, flow, None).expect("a live flow");
    let refusal =
        |engine: &mut ReferenceEngine, bytes: &[u8]| adopt(engine, at(now), bytes, None).unwrap_err().to_string();
    let with = |name: &str, value: u64| {
        let place = layout.field(name).expect("a field").offset;
        [&bytes[..place], &value.to_le_bytes(), &bytes[place + 8..]].concat()
    };
    assert_eq!(
        refusal(&mut engine, &bytes),
        format!("flow {flow} has this flow key here: delete it first, or take the other one away")
    );
    engine.take(flow, None).expect("a live flow");
    for (bytes, expected) in [
        (bytes[..bytes.len() - 8].to_vec(), "the state ends within `length`, 8 bytes too early"),
        ([&bytes[..], &[0; 8]].concat(), "8 bytes stand behind the end of the state"),
        (with("magic", 7), "the state of a flow begins otherwise"),
        (with("schema", 3), "the state is of schema 3 and semantics 2; this version of weft reads schemas 1 to 2"),
        (with("image", 7), "use the image that it was taken from"),
        (with("state", 77), "`state` is 77; it must be less than 3"),
        (with("register count", 1 << 40), "`register count` is 1099511627776; it must be what its type U32 holds"),
        (with("timers", 1 << 50), "`timers` is 1125899906842624; it must be less than 9"),
        (with("send buffer", 1 << 20), "the state ends within `sections`, 1048"),
        (with("created", i64::MAX as u64), "`last active` is"),
        (with("remote port", 1), "the flow key is not that of the flow's ends"),
        (with("flags", 1 << 20), "`flags` is 0x100000"),
    ] {
        let refused = refusal(&mut engine, &bytes);
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
    assert_eq!(adopt(&mut engine, at(now), &bytes, None), Ok(Done::Flow(flow)));
}

/// Rule L3.
#[test]
fn a_flow_with_more_packets_than_there_is_room_for_is_refused() {
    let mut image = machine();
    image.slots = vec!["first".into(), "second".into()];
    let keep = |slot| Operation::Copy { from: PacketRef::Current, to: PacketRef::Slot(slot) };
    image.rows.push(row(0, Event::Packet, vec![keep(0), keep(1)]));
    let mut there: Bench = Bench::new(image.clone());
    (0..2).for_each(|client| there.packet(0, client));
    let states = [1, 2].map(|flow| Inspect::snapshot(&there.engine, FlowId(flow), None).expect("a live flow"));
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
    let limits = Limits { packets: Some(3), ..Limits::default() };
    let options = EngineOptions { limits, ..EngineOptions::default() };
    let mut here = ReferenceEngine::new(verified(image), ports, options).expect("a verified image");
    assert_eq!(adopt(&mut here, at(0), &states[0], None), Ok(Done::Flow(FlowId(1))));
    let refused = adopt(&mut here, at(0), &states[1], None);
    let expected = "there is no room for 2 more stored packets: 2 of 3 are here already";
    assert_eq!(refused, Err(ControlError::Unfit(expected.into())));
    here.take(FlowId(1), None).expect("a live flow");
    assert_eq!(adopt(&mut here, at(0), &states[1], None), Ok(Done::Flow(FlowId(2))));
}

/// Writes the corpus of the fuzz target `flow_state`, with the image that its states are of.
#[test]
#[ignore = "writes files"]
#[allow(clippy::disallowed_methods, reason = "it writes files")]
fn write_the_corpus() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let image = verified(Image { flow: rich().flow, ..lively(&rich()) });
    std::fs::write(folder.join("image_load/lively"), image.to_json()).unwrap();
    std::fs::remove_dir_all(folder.join("flow_state")).unwrap();
    std::fs::create_dir_all(folder.join("flow_state")).unwrap();
    for (number, state) in states_to_spoil().iter().enumerate() {
        std::fs::write(folder.join(format!("flow_state/{number}")), state).unwrap();
    }
}
