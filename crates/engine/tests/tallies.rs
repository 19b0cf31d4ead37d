//! Tallies (rule N1) beside an obvious model: all flows looked at one by one.

use crate::support::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weftwire_engine::state::FunctionState;
use weftwire_engine::{EngineOptions, Executor};
use weftwire_image::layout::FunctionLayout;
use weftwire_image::*;

const FLOWS: usize = 4;

/// What a packet tells its flow to do.
#[derive(Clone, Copy, Debug)]
enum Told {
    Go(u16),
    Set(i64),
    Cancel,
    Delete,
}

/// In every state the same, but where it goes.
const TOLD: [Told; 7] =
    [Told::Go(0), Told::Go(1), Told::Go(2), Told::Set(30), Told::Set(200), Told::Cancel, Told::Delete];

/// Says how many flows are in state 0, in 1 and 2, and how many settings there are; then does what it is told.
fn counting() -> Image {
    let mut image = machine();
    image.states = ["zero", "one", "two"].map(state).into();
    image.timers = vec![timer("tick", &[])];
    let tally = |name: &str, states: &[u16], timers: &[u8]| Tally {
        name: name.into(),
        states: states.into(),
        timers: timers.into(),
    };
    image.tallies = vec![tally("zero", &[0], &[]), tally("more", &[2, 1], &[]), tally("settings", &[], &[0])];
    (image.flow.max, image.flow.when_full) = (FLOWS as u32, WhenFull::EvictOldest);
    let word = Operand::Field { packet: PacketRef::Current, field: fields::WORD_1 };
    for (number, told) in (0..).zip(TOLD) {
        image.conditions.push(Condition { comparison: Comparison::Eq, left: word, right: constant(number.into()) });
        for state in 0..3 {
            let mut operations =
                (0..3).map(|it| notify(Operand::Environment(Environment::Tally(it)))).collect::<Vec<_>>();
            let mut next = None;
            match told {
                Told::Go(to) => next = Some(to),
                Told::Set(delay) => operations.push(set_timer(0, delay)),
                Told::Cancel => operations.push(Operation::CancelTimer { timer: 0, tests: Vec::new() }),
                Told::Delete => operations.push(Operation::DeleteInstance),
            }
            image.rows.push(Row { when: vec![(number, true)], next, ..row(state, Event::Packet, operations) });
        }
    }
    image
}

/// A flow of the model: when it was active last, its state, and when its settings are due.
#[derive(Default)]
struct Flow {
    last: usize,
    state: u16,
    due: Vec<i64>,
}

fn tallies_are_what_counting_gives<E: Executor>() {
    let steps = prop::collection::vec((0..6_u16, 0..TOLD.len(), prop_oneof![Just(0), 1..90_i64]), 1..80);
    proptest!(|(steps in steps, moved in any::<prop::sample::Index>())| {
        let image = counting();
        let layout = FunctionLayout::of(&verified(image.clone()));
        let (mut bench, mut flows, mut now) = (Bench::<E>::new(image), BTreeMap::<u16, Flow>::new(), 0);
        let (mut expected, moved) = (Vec::new(), moved.index(steps.len()));
        for (number, (client, told, wait)) in steps.into_iter().enumerate() {
            if number == moved {
                // It goes on in another function, which is told only what there is.
                let bytes = bench.engine.snapshot_all(None).to_bytes(&layout);
                let state = FunctionState::from_bytes(&bytes, &layout).expect("it was just written");
                let mut other = bench.engine.another(EngineOptions::default()).expect("as before");
                other.restore_all(&state).expect("a state of the same image");
                bench.engine = other;
            }
            now += wait;
            bench.frame(now, &datagram(client, &(told as u32).to_be_bytes()));
            flows.values_mut().for_each(|flow| flow.due.retain(|due| *due >= now));
            let full = flows.len() == FLOWS && !flows.contains_key(&client);
            let own = flows.entry(client).or_default();
            own.last = number;
            let count = |flows: &BTreeMap<u16, Flow>, states: &[u16]| {
                flows.values().filter(|flow| states.contains(&flow.state)).count() as i64
            };
            let settings = flows.values().map(|flow| flow.due.len() as i64).sum();
            expected.extend([count(&flows, &[0]), count(&flows, &[1, 2]), settings]);
            let own = flows.get_mut(&client).expect("it is there");
            match TOLD[told] {
                Told::Go(to) => own.state = to,
                Told::Set(delay) => own.due.push(now + delay),
                Told::Cancel => own.due.clear(),
                Told::Delete => drop(flows.remove(&client)),
            }
            if full && flows.contains_key(&client) {
                let oldest = flows.iter().min_by_key(|(_, flow)| flow.last).map(|(client, _)| *client);
                flows.remove(&oldest.expect("it is full"));
            }
        }
        prop_assert_eq!(bench.notices(), expected);
    });
}

on_every_engine! { tallies_are_what_counting_gives }
