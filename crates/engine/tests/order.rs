//! Rules E1 and E2: whatever order inputs come in, each has a time by which they are in the order of the page.

use crate::support::*;
use proptest::prelude::*;
use weftwire_core::order::Input;
use weftwire_core::{
    Arrival, Arrivals, Change, Connections, FlowId, Frame, Function, Outbox, Output, Port, Ports, Time,
};
use weftwire_core::{LinkType, control};
use weftwire_engine::{EngineOptions, Executor, Runtime};
use weftwire_image::*;

/// What is handed in.
#[derive(Clone, Debug)]
enum Step {
    Set,
    Write,
    /// A batch of frames by these ports.
    Frames(Vec<u16>),
    Fire,
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let step = prop_oneof![
        Just(Step::Set),
        Just(Step::Write),
        prop::collection::vec(1..4_u16, 0..4).prop_map(Step::Frames),
        Just(Step::Fire),
    ];
    // Mostly at the same instant, at times in the past.
    let passed = prop_oneof![4 => Just(0), 2 => 1..4_i64, 1 => -3..0_i64];
    prop::collection::vec((step, passed), 0..40)
}

/// Says what happens to it. At each frame it sets a timer, at each write one for this instant.
fn telling() -> Image {
    let mut image = machine();
    image.timers.push(timer("tick", &[]));
    image.flow.max_timers = 1_000;
    image.registers.push(register("value"));
    let port = notify(Operand::Event(0));
    image.rows.push(row(0, Event::Packet, vec![port, set_timer(0, 2)]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(10))]));
    image.rows.push(row(0, Event::Data, vec![notify(constant(20)), set_timer(0, 0)]));
    image.rows.push(row(0, Event::Set, vec![notify(constant(30))]));
    image
}

/// What the page says of one flow of [`telling`].
#[derive(Default)]
struct Model {
    /// The latest input and its time.
    latest: (i64, usize),
    /// When timers are due.
    pending: Vec<i64>,
    told: Vec<(i64, i64)>,
}

impl Model {
    /// The least time that an input of this place can have: not before it comes, nor in front of the input before.
    fn input(&mut self, place: usize, now: i64) -> i64 {
        let mut at = now;
        while (at, place) < self.latest {
            at += 1;
        }
        self.latest = (at, place);
        self.pending.sort_unstable();
        let due = self.pending.partition_point(|due| *due < at + i64::from(place == FIRE));
        self.told.extend(self.pending.drain(..due).map(|at| (at, 10)));
        at
    }
}

/// The places of inputs at one instant: changes, calls, frames by ports 1 to 3, `fire`.
const CHANGE: usize = 0;
const CALL: usize = 1;
const FIRE: usize = 5;

fn engine<E: Executor>(order_left_to_platform: bool) -> Runtime<E> {
    let ports = Ports::new([1, 2, 3].map(|port| (Port(port), LinkType::Ethernet)));
    let options = EngineOptions { order_left_to_platform, ..EngineOptions::default() };
    Runtime::new(verified(telling()), ports, options).expect("it lacks nothing")
}

fn arrivals(ports: &[u16], out: &mut Outbox) -> Arrivals {
    ports.iter().map(|port| Arrival::copied(Port(*port), Frame::new(&datagram(1, &[7])), out)).collect()
}

fn told(out: &Outbox) -> impl Iterator<Item = (i64, i64)> {
    out.items().iter().filter_map(|item| match item {
        Output::Notify { at, value, .. } => Some((at.nanoseconds(), *value)),
        _ => None,
    })
}

fn set_value() -> Change {
    Change::SetRegister { flow: FlowId(1), register: "value".into(), value: 1 }
}

fn inputs_are_in_the_order_of_the_page<E: Executor>() {
    proptest!(|(steps in steps(), bound in prop_oneof![Just(usize::MAX), Just(1_usize)])| {
        let (mut engine, mut out) = (engine::<E>(false), Outbox::new().bounded(bound));
        let (mut model, mut seen, mut now) = (Model::default(), Vec::new(), 0);
        let mut first = arrivals(&[1], &mut out);
        engine.frames(Time::ZERO, &mut first, &mut out);
        model.input(2, 0);
        model.told.push((0, 1));
        model.pending.push(2);
        for (step, passed) in &steps {
            now = (now + passed).max(0);
            let mut behind = None;
            match step {
                Step::Set => {
                    behind = Some((model.input(CHANGE, now), 30));
                    control::change(&mut engine, at(now), set_value(), &mut out).expect("there is such a register");
                }
                Step::Write => {
                    let at_write = model.input(CALL, now);
                    behind = Some((at_write, 20));
                    model.pending.push(at_write);
                    engine.write(at(now), FlowId(1), &[7], &mut out).expect("a live flow");
                }
                Step::Frames(ports) => {
                    let mut batch = arrivals(ports, &mut out);
                    while !batch.is_empty() {
                        engine.frames(at(now), &mut batch, &mut out);
                        seen.extend(told(&out));
                        out.clear();
                    }
                    for port in ports {
                        let at = model.input(1 + usize::from(*port), now);
                        model.told.push((at, (*port).into()));
                        model.pending.push(at + 2);
                    }
                }
                Step::Fire => {
                    let until = model.input(FIRE, now);
                    while engine.next_deadline().is_some_and(|deadline| deadline.at <= at(until)) {
                        engine.fire(at(now), &mut out);
                        seen.extend(told(&out));
                        out.clear();
                    }
                    engine.fire(at(now), &mut out);
                }
            }
            model.told.extend(behind);
            seen.extend(told(&out));
            out.clear();
            prop_assert_eq!(&seen, &model.told);
        }
    });
}

fn the_time_of_an_input_is_told_before<E: Executor>() {
    let (mut engine, mut out) = (engine::<E>(false), Outbox::new());
    engine.frames(at(5), &mut arrivals(&[2], &mut out), &mut out);
    let time = |engine: &Runtime<E>, input| engine.input_time(input, at(3)).nanoseconds();
    let inputs = [Input::Change, Input::Call, Input::Frame(Port(1)), Input::Frame(Port(2)), Input::Fire];
    assert_eq!(inputs.map(|input| time(&engine, input)), [6, 6, 6, 5, 5]);
    engine.fire(at(5), &mut out);
    assert_eq!(inputs.map(|input| time(&engine, input)), [6, 6, 6, 6, 5]);
    assert_eq!(engine.input_time(Input::Call, at(9)), at(9));
}

/// So runs of older versions are repeated.
fn what_was_left_to_the_platform_has_the_time_that_it_is_told<E: Executor>() {
    let (mut engine, mut out) = (engine::<E>(true), Outbox::new());
    engine.frames(at(5), &mut arrivals(&[2, 1], &mut out), &mut out);
    engine.write(at(5), FlowId(1), &[7], &mut out).expect("a live flow");
    control::change(&mut engine, at(5), set_value(), &mut out).expect("there is such a register");
    engine.fire(at(5), &mut out);
    engine.write(at(5), FlowId(1), &[7], &mut out).expect("a live flow");
    assert!(told(&out).eq([(5, 2), (5, 1), (5, 20), (5, 30), (5, 10), (6, 20)]));
}

on_every_engine! {
    inputs_are_in_the_order_of_the_page,
    the_time_of_an_input_is_told_before,
    what_was_left_to_the_platform_has_the_time_that_it_is_told,
}
