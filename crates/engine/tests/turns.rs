//! Turns (rules T1 to T7) beside an obvious model: a list of those that wait, searched for the first.

use crate::support::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weftwire_core::function::{Function, Placed};
use weftwire_core::inspect::{Inspect, WaitingTurn};
use weftwire_core::{Change, FlowId, Output, Port};
use weftwire_engine::Executor;
use weftwire_image::limits::MAX_TURN_COST;
use weftwire_image::*;

const MOST: usize = 3;
const FLOWS: usize = 4;

/// What a packet tells its flow to do.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// Ask; and after each turn again, so often.
    Ask {
        rank: u32,
        cost: u32,
        again: u32,
    },
    Withdraw,
    Delete,
    AskAndDelete {
        rank: u32,
    },
    Show,
}

impl Told {
    fn payload(self) -> Vec<u8> {
        let words = match self {
            Told::Ask { rank, cost, again } => [0, rank, cost, again],
            Told::Withdraw => [1, 0, 0, 0],
            Told::Delete => [2, 0, 0, 0],
            Told::AskAndDelete { rank } => [3, rank, 1, 0],
            Told::Show => [4, 0, 0, 0],
        };
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }
}

/// A rank as packets tell it: from -2 on.
fn signed(rank: u32) -> i64 {
    i64::from(rank) - 2
}

/// A machine that does what packets say, and tells its rank at each turn.
fn asking() -> Image {
    let mut image = machine();
    let word = |number: u16| Operand::Field { packet: PacketRef::Current, field: fields::WORD_1 + number };
    let first_field = image.fields.len() as u16;
    let name = |number| FieldName { format: "udp".into(), field: format!("word_{number}") };
    image.fields.extend([2, 3, 4].map(name));
    let told = |number: u16| Operand::Field { packet: PacketRef::Current, field: first_field + number };
    image.registers = ["rank", "cost", "again"].map(register).into();
    image.turns = vec![Turns { name: "go".into(), most: MOST as u32 }];
    (image.flow.max, image.flow.when_full) = (FLOWS as u32, WhenFull::EvictOldest);
    let equal = |left, right| Condition { comparison: Comparison::Eq, left, right: constant(right) };
    image.conditions = (0..5).map(|command| equal(word(0), command)).collect();
    image.conditions.push(equal(Operand::Register(2), 0));
    let ask = || Operation::Ask { turns: 0, rank: Operand::Register(0), cost: Operand::Register(1) };
    let take = || vec![compute(Operator::Sub, 0, told(0), constant(2)), set(1, told(1)), set(2, told(2)), ask()];
    let mut ask_and_delete = take();
    ask_and_delete.push(Operation::DeleteInstance);
    let commands = [
        take(),
        vec![Operation::Withdraw { turns: 0 }],
        vec![Operation::DeleteInstance],
        ask_and_delete,
        vec![notify(Operand::Environment(Environment::Waiting(0)))],
    ];
    for (command, operations) in (0..).zip(commands) {
        image.rows.push(Row { when: vec![(command, true)], ..row(0, Event::Packet, operations) });
    }
    let turn = notify(Operand::Register(0));
    let again = compute(Operator::Sub, 2, Operand::Register(2), constant(1));
    image.rows.push(Row { when: vec![(5, true)], ..row(0, Event::Turn(0), vec![turn.clone()]) });
    image.rows.push(row(0, Event::Turn(0), vec![turn, again, ask()]));
    image
}

/// A flow of the model.
#[derive(Default)]
struct Flow {
    id: u64,
    last: usize,
    rank: i64,
    cost: i64,
    again: u32,
}

/// The model.
#[derive(Default)]
struct Model {
    flows: BTreeMap<u16, Flow>,
    made: u64,
    /// Client, rank, number, cost.
    queue: Vec<(u16, i64, u64, i64)>,
    asked: u64,
    next: i64,
    full: u64,
    /// Flow, time, value.
    told: Vec<(u64, i64, i64)>,
}

impl Model {
    fn ask(&mut self, client: u16, rank: i64, cost: i64, now: i64) {
        let known = self.queue.iter().position(|waiting| waiting.0 == client);
        let cost = cost.clamp(1, MAX_TURN_COST);
        match known.map(|place| self.queue.remove(place)) {
            None if self.queue.len() == MOST => self.full += 1,
            Some((_, before, number, _)) if before == rank => self.queue.push((client, rank, number, cost)),
            before => {
                if self.queue.is_empty() && before.is_none() {
                    self.next = self.next.max(now);
                }
                self.asked += 1;
                self.queue.push((client, rank, self.asked, cost));
            }
        }
    }

    fn run_before(&mut self, now: i64) {
        while !self.queue.is_empty() && self.next < now {
            let first = self.queue.iter().copied().min_by_key(|&(_, rank, number, _)| (rank, number));
            let (client, _, _, cost) = first.expect("it is not empty");
            self.forget(client);
            let at = self.next;
            self.next += cost;
            let flow = self.flows.get_mut(&client).expect("only flows wait");
            self.told.push((flow.id, at, flow.rank));
            if flow.again > 0 {
                flow.again -= 1;
                let (rank, cost) = (flow.rank, flow.cost);
                self.ask(client, rank, cost, at);
            }
        }
    }

    fn forget(&mut self, client: u16) {
        self.queue.retain(|waiting| waiting.0 != client);
    }

    fn packet(&mut self, number: usize, client: u16, told: Told, now: i64) {
        self.run_before(now);
        let new = !self.flows.contains_key(&client);
        if new {
            self.made += 1;
        }
        let mut flow = self.flows.remove(&client).unwrap_or(Flow { id: self.made, ..Flow::default() });
        flow.last = number;
        if let Told::Ask { rank, cost, again } = told {
            (flow.rank, flow.cost, flow.again) = (signed(rank), cost.into(), again);
        }
        match told {
            Told::Ask { .. } => self.ask(client, flow.rank, flow.cost, now),
            Told::Withdraw => self.forget(client),
            Told::AskAndDelete { rank } => self.ask(client, signed(rank), 1, now),
            Told::Show => {
                let waits = self.queue.iter().any(|waiting| waiting.0 == client);
                self.told.push((flow.id, now, i64::from(waits)));
            }
            Told::Delete => {}
        }
        if matches!(told, Told::Delete | Told::AskAndDelete { .. }) {
            return self.forget(client);
        }
        if new && self.flows.len() == FLOWS {
            let victim = *self.flows.iter().min_by_key(|(_, flow)| flow.last).expect("it is full").0;
            self.flows.remove(&victim);
            self.forget(victim);
        }
        self.flows.insert(client, flow);
    }
}

fn told() -> impl Strategy<Value = Told> {
    let rank = || 0..5_u32;
    let cost = prop_oneof![1 => 0..3_u32, 4 => 20..90_u32];
    prop_oneof![
        8 => (rank(), cost, 0..4_u32).prop_map(|(rank, cost, again)| Told::Ask { rank, cost, again }),
        1 => Just(Told::Withdraw),
        1 => Just(Told::Delete),
        1 => rank().prop_map(|rank| Told::AskAndDelete { rank }),
        2 => Just(Told::Show),
    ]
}

/// Flows, times and values of all notices.
fn notices<E: Executor>(bench: &Bench<E>) -> Vec<(u64, i64, i64)> {
    let items = bench.out.items().iter();
    let told = items.filter_map(|item| match item {
        Output::Notify { flow, at, value, .. } => Some((flow.0, at.nanoseconds(), *value)),
        _ => None,
    });
    told.collect()
}

fn turns_come_as_in_the_model<E: Executor>() {
    let steps = prop::collection::vec((0..6_u16, told(), prop_oneof![Just(0), 1..60_i64]), 1..60);
    proptest!(|(steps in steps)| {
        let (mut bench, mut model, mut now) = (Bench::<E>::new(asking()), Model::default(), 5);
        for (number, (client, told, wait)) in steps.into_iter().enumerate() {
            now += wait;
            bench.frame(now, &datagram(client, &told.payload()));
            model.packet(number, client, told, now);
            let due = (!model.queue.is_empty()).then_some(model.next);
            prop_assert_eq!(bench.engine.next_deadline().map(|next| next.at.nanoseconds()), due);
        }
        bench.fire(now + 100_000);
        model.run_before(now + 100_001);
        prop_assert_eq!(notices(&bench), model.told);
        prop_assert_eq!(bench.drops("turns_full"), model.full);
    });
}

fn a_flow_that_comes_in_stands_behind_those_of_its_rank<E: Executor>() {
    let mut bench = Bench::<E>::new(asking());
    for client in 1..4 {
        let told = Told::Ask { rank: 5, cost: 10, again: 0 };
        bench.frame(0, &datagram(client, &told.payload()));
    }
    let taken = bench.engine.take(FlowId(1), None).expect("it is there");
    bench.engine.restore(at(0), &taken, None).expect("there is room");
    bench.fire(100);
    assert_eq!(notices(&bench), [(2, 0, 3), (3, 10, 3), (1, 20, 3)]);
}

fn a_flow_for_which_there_is_no_place_in_the_queue_stays_out<E: Executor>() {
    let mut bench = Bench::<E>::new(asking());
    let told = Told::Ask { rank: 5, cost: 10, again: 0 };
    bench.frame(0, &datagram(1, &told.payload()));
    let taken = bench.engine.take(FlowId(1), None).expect("it is there");
    for client in 2..5 {
        bench.frame(0, &datagram(client, &told.payload()));
    }
    let refused = bench.engine.restore(at(0), &taken, None).expect_err("three wait");
    assert_eq!(refused.to_string(), "no other flow may wait for `go` here: as many do as the image allows");
    assert_eq!(bench.flows(), [2, 3, 4]);
}

fn who_looks_on_sees_what_a_flow_waits_for<E: Executor>() {
    let mut bench = Bench::<E>::new(asking());
    for (client, rank) in [(1, 5), (2, 3), (3, 4)] {
        let told = Told::Ask { rank, cost: 10, again: 0 };
        bench.frame(0, &datagram(client, &told.payload()));
    }
    let turns = |bench: &Bench<E>, flow| bench.engine.flow(FlowId(flow)).expect("it is there").turns;
    let waits = |rank, ahead| vec![WaitingTurn { name: "go".into(), rank, cost: 10, ahead }];
    assert_eq!([1, 2, 3].map(|flow| turns(&bench, flow)), [waits(3, 2), waits(1, 0), waits(2, 1)]);
    bench.fire(0);
    assert_eq!([1, 2, 3].map(|flow| turns(&bench, flow)), [waits(3, 1), vec![], waits(2, 0)]);
}

fn all_flows_that_share_turns_have_one_place<E: Executor>() {
    let bench = Bench::<E>::new(asking());
    let frame = |client| datagram(client, &[0; 16]);
    let place = |frame: &[u8]| bench.engine.place(&Placed::Frame(Port(1), weftwire_core::Frame::new(frame)));
    assert_eq!(place(&frame(1)), place(&frame(2)));
    assert!(place(&frame(1)).is_some());
}

fn deleted_from_outside_a_flow_waits_no_more<E: Executor>() {
    let mut bench = Bench::<E>::new(asking());
    let told = Told::Ask { rank: 5, cost: 10, again: 0 };
    bench.frame(0, &datagram(1, &told.payload()));
    bench.change(Change::Delete { flow: FlowId(1) }).expect("it is there");
    assert!(bench.engine.next_deadline().is_none());
}

on_every_engine! {
    turns_come_as_in_the_model,
    a_flow_that_comes_in_stands_behind_those_of_its_rank,
    a_flow_for_which_there_is_no_place_in_the_queue_stays_out,
    who_looks_on_sees_what_a_flow_waits_for,
    all_flows_that_share_turns_have_one_place,
    deleted_from_outside_a_flow_waits_no_more,
}
