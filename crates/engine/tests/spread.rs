//! Rule F19: flows spread over two engines by their place do what they do in one, as long as no limit is met that they share.

use crate::support::random::Step;
use crate::support::{at, client, datagram, random, segment, verified};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weftwire_core::function::Placed;
use weftwire_core::order::{Input, InputOrder};
use weftwire_core::{FlowId, Frame, Function, LinkType, Listen, Outbox, Output, Port, Ports};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::{VerifiedImage, WhenFull};

/// What flows have put out, each in its order, as text; flows by what came first of them: the step's number. Frames, which do
/// not say of which flow they are, by time.
#[derive(PartialEq, Eq, Default, Debug)]
struct Told {
    flows: BTreeMap<usize, Vec<String>>,
    frames: Vec<(i64, u16, Vec<u8>)>,
    drops: BTreeMap<String, u64>,
}

/// Engines that share the work, and their flows by number.
struct Engines {
    engines: Vec<Box<dyn Function>>,
    names: Vec<BTreeMap<FlowId, usize>>,
    /// One for all: which input comes first at one instant does not depend on where it goes.
    order: InputOrder,
    out: Outbox,
    told: Told,
}

impl Engines {
    fn new(image: &VerifiedImage, seed: u64, count: usize) -> Engines {
        let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
        let options = EngineOptions { seed, ..EngineOptions::default() };
        let engine = |_| make("reference", image.clone(), ports.clone(), options).expect("the engine exists");
        Engines {
            engines: (0..count).map(engine).collect(),
            names: vec![BTreeMap::new(); count],
            order: InputOrder::default(),
            // A bound would end what is due at another place in each of them.
            out: Outbox::tracing().bounded(usize::MAX),
            told: Told::default(),
        }
    }

    /// The engine where an input belongs.
    fn of(&self, input: &Placed<'_>) -> usize {
        self.engines[0].place(input).unwrap_or(0) as usize % self.engines.len()
    }

    fn step(&mut self, number: usize, step: &Step, now: i64) {
        let input = match step {
            Step::Frame { port, .. } => Input::Frame(Port(*port)),
            Step::Noise(_) => Input::Frame(Port(1)),
            Step::Fire => Input::Fire,
            Step::Wait(_) => return,
            _ => Input::Call,
        };
        let now = self.order.time(input, at(now)).nanoseconds();
        match step {
            Step::Frame { port, client, tcp, payload } => {
                let bytes = if *tcp { segment(*client, &[2, 8], payload) } else { datagram(*client, payload) };
                self.frame(number, now, *port, &bytes[if *port == 1 { 0 } else { 14 }..]);
            }
            Step::Noise(bytes) => self.frame(number, now, 1, bytes),
            Step::Connect(one) => {
                let chosen = self.of(&Placed::Connection(&client(*one)));
                let calls = self.engines[chosen].connections().expect("engines carry connections");
                let _ = calls.connect(at(now), &client(*one), &mut self.out);
                self.take_in(chosen, number);
            }
            Step::Write(one, length) => self.call(number, *one, |calls, flow, out| {
                let _ = calls.write(at(now), flow, &vec![7; *length], out);
            }),
            Step::Close(one) => self.call(number, *one, |calls, flow, out| {
                let _ = calls.close(at(now), flow, out);
            }),
            Step::Listen(port) => {
                let local = Listen { address: None, port: Some(*port).filter(|port| *port > 0) };
                for chosen in 0..self.engines.len() {
                    let calls = self.engines[chosen].connections().expect("engines carry connections");
                    let _ = calls.listen(at(now), &local, &mut self.out);
                    self.take_in(chosen, number);
                }
            }
            Step::Accept(one) => self.call(number, *one, |calls, flow, out| {
                let _ = calls.accept(at(now), flow, out);
            }),
            Step::Consumed(one, length) => self.call(number, *one, |calls, flow, out| {
                let _ = calls.consumed(at(now), flow, *length, out);
            }),
            Step::Abort(one) => self.call(number, *one, |calls, flow, out| {
                let _ = calls.abort(at(now), flow, out);
            }),
            Step::Fire => self.fire(number, now),
            Step::Wait(_) => {}
        }
    }

    fn frame(&mut self, number: usize, now: i64, port: u16, bytes: &[u8]) {
        let chosen = self.of(&Placed::Frame(Port(port), Frame::new(bytes)));
        self.engines[chosen].frame(at(now), Port(port), Frame::new(bytes), &mut self.out);
        self.take_in(chosen, number);
    }

    fn fire(&mut self, number: usize, now: i64) {
        for chosen in 0..self.engines.len() {
            self.engines[chosen].fire(at(now), &mut self.out);
            self.take_in(chosen, number);
        }
    }

    /// A call of the application on the latest flow that client `one` has.
    fn call(
        &mut self,
        number: usize,
        one: u64,
        call: impl FnOnce(&mut dyn weftwire_core::Connections, FlowId, &mut Outbox),
    ) {
        let ends = client((one % 6) as u16);
        let chosen = self.of(&Placed::Connection(&ends));
        let here = format!("{}:{}", ends.local_address, ends.local_port);
        let flows = self.engines[chosen].flows();
        let mine = flows.iter().rev().find(|flow| flow.key.contains(&here) && flow.key.ends_with("udp"));
        if let Some(flow) = mine.map(|flow| flow.flow) {
            let calls = self.engines[chosen].connections().expect("engines carry connections");
            call(calls, flow, &mut self.out);
            self.take_in(chosen, number);
        }
    }

    fn take_in(&mut self, chosen: usize, number: usize) {
        for item in self.out.items() {
            let (flow, text) = match item {
                Output::Send { at, port, bytes, .. } => {
                    self.told.frames.push((at.nanoseconds(), port.0, self.out.bytes(bytes).to_vec()));
                    continue;
                }
                Output::Deliver { flow, bytes } => (*flow, format!("deliver {:?}", self.out.bytes(bytes))),
                Output::Released { flow, length } => (*flow, format!("released {length}")),
                Output::Notify { at, flow, notice, value } => (*flow, format!("{at} notify {notice} {value}")),
                Output::Opened { flow, endpoints } => (*flow, format!("opened {endpoints:?}")),
                Output::Ended { flow } => (*flow, "ended".into()),
                Output::Answered(_) => continue,
                Output::Trace(record) => {
                    let mut record = record.as_ref().clone();
                    let flow = std::mem::replace(&mut record.flow, FlowId(0));
                    (flow, format!("{record:?}"))
                }
            };
            let name = *self.names[chosen].entry(flow).or_insert(number);
            self.told.flows.entry(name).or_default().push(text);
        }
        self.out.clear();
    }

    /// Everything, with all that is due up to `now`.
    fn end(mut self, number: usize, now: i64) -> Told {
        self.fire(number, now);
        for engine in &self.engines {
            for (reason, count) in engine.counters().drops {
                *self.told.drops.entry(reason).or_default() += count;
            }
        }
        self.told.frames.sort();
        self.told
    }
}

fn run(image: &VerifiedImage, steps: &[Step], seed: u64, count: usize) -> (Told, usize) {
    let mut engines = Engines::new(image, seed, count);
    let mut now = 0;
    for (number, step) in steps.iter().enumerate() {
        if let Step::Wait(time) = step {
            now += time;
        }
        engines.step(number, step, now);
    }
    let busy = engines.names.iter().filter(|names| !names.is_empty()).count();
    (engines.end(steps.len(), now + 10_000), busy)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn flows_do_the_same_in_one_engine_and_spread_over_two(
        image in random::image().prop_map(random::apart),
        steps in random::steps(),
        seed in 0..3_u64,
    ) {
        let mut image = image;
        // Each has its share, and nobody meets it.
        (image.flow.max, image.flow.when_full) = (1_000, WhenFull::Reject);
        let image = verified(image);
        prop_assert_eq!(run(&image, &steps, seed, 1).0, run(&image, &steps, seed, 2).0);
    }
}

/// The test above would pass if all flows had one place.
#[test]
fn flows_are_spread() {
    let mut image = crate::support::rich();
    image.flow.max = 1_000;
    let packet = |client| Step::Frame { port: 1, client, tcp: false, payload: vec![1; 8] };
    let steps: Vec<Step> = (0..20).map(packet).collect();
    let (told, busy) = run(&verified(image), &steps, 0, 2);
    assert_eq!((told.flows.len(), busy), (20, 2));
}
