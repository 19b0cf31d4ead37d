//! The compiler against an oracle: random programs do, compiled and run by the reference engine, what reading them
//! statement by statement says.
//!
//! `PROPTEST_CASES=20000 cargo test --release -p weftwire-cli --test xl_oracle` runs long.

mod generate;
mod interpret;
mod tree;

use generate::Choices;
use interpret::{Flow, Interpreter, Seen, Setting};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use tree::{ARRAY, CHOSEN, MODULES, Program, REGISTERS, SLOTS, STATES, TIMERS};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
use weftwire_core::{FlowId, Formats, Frame, Function, LinkType, Outbox, Output, Packet, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_lang::{Dialect, compile};

/// What comes in.
enum Input {
    Packet { client: usize, port: u16, frame: Vec<u8> },
    Time,
}

/// Inputs with the time since the one before, in ns.
fn inputs(choices: &mut Choices<'_>) -> Vec<(i64, Input)> {
    let count = 1 + choices.pick(8);
    let input = |choices: &mut Choices<'_>| {
        let after = [1, 0, 1_000_000, 3_000_000, 7_000_001][choices.pick(5)];
        match choices.pick(3) {
            2 => (after, Input::Time),
            _ => {
                let (client, port) = (choices.pick(4), 1 + choices.pick(2) as u16);
                (after, Input::Packet { client, port, frame: frame(client, port, choices) })
            }
        }
    };
    (0..count).map(|_| input(choices)).collect()
}

/// A packet of a client's flow; those at port 2 come from the server. Even clients speak TCP, odd ones UDP.
fn frame(client: usize, port: u16, choices: &mut Choices<'_>) -> Vec<u8> {
    let ends = [([10, 0, 0, 1].into(), 4000 + client as u16), ([10, 0, 0, 2].into(), 80)];
    let [(source, source_port), (destination, destination_port)] = if port == 1 { ends } else { [ends[1], ends[0]] };
    let ip = Ipv4Fields { source, destination, ..Ipv4Fields::default() };
    let bare = FrameBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]).ipv4(&ip);
    let sequence: u32 = [5, 0, 0xffff_ffff, 0x8000_0005][choices.pick(4)];
    let options =
        [TcpOption::MaximumSegmentSize(1460), TcpOption::Timestamps { value: sequence.wrapping_add(1), echo: 5 }];
    let tcp = TcpFields {
        source_port,
        destination_port,
        sequence,
        flags: [TcpFlags::SYN, TcpFlags::ACK, TcpFlags::FIN][choices.pick(3)],
        window: 300,
        ..TcpFields::default()
    };
    let whole = match client % 2 {
        0 => bare.tcp(&tcp, &options[choices.pick(3)..]),
        _ => bare.udp(source_port, destination_port),
    };
    whole.payload(&[7; 9][..choices.pick(10)]).finish().expect("the frame is small")
}

/// Flows, by id: state, registers, pending timers, lengths of stored packets.
type State = (u64, String, BTreeMap<String, i64>, Vec<(String, i64, Vec<i64>)>, Vec<(String, usize)>);

fn states_of_engine(engine: &ReferenceEngine) -> Vec<State> {
    use weftwire_core::inspect::Inspect;
    let flows = engine.flows();
    let details = flows.iter().filter_map(|flow| Some((flow.flow, engine.flow(flow.flow)?)));
    details
        .map(|(FlowId(id), flow)| {
            let registers = flow.registers.iter().map(|register| (register.name.clone(), register.value)).collect();
            let timers = flow.timers.into_iter().map(|timer| (timer.name, timer.due.nanoseconds(), timer.payload));
            (id, flow.summary.state, registers, timers.collect(), flow.packets)
        })
        .collect()
}

/// All registers by name.
fn registers(flow: &Flow) -> BTreeMap<String, i64> {
    let plain = REGISTERS.iter().zip(&flow.registers).map(|((name, ..), value)| ((*name).to_owned(), *value));
    let elements = flow.array.iter().enumerate().map(|(index, value)| (format!("{}[{index}]", ARRAY.0), *value));
    let own = MODULES.iter().zip(&flow.own).map(|((module, _), value)| (format!("{module}.own"), *value));
    plain.chain(elements).chain(own).chain([(CHOSEN.to_owned(), flow.chosen as i64)]).collect()
}

fn states_of_interpreter(interpreter: &Interpreter<'_>) -> Vec<State> {
    let flows = interpreter.flows.iter().map(|(id, flow)| {
        let mut timers = flow.timers.clone();
        timers.sort();
        let timer = |setting: Setting| (TIMERS[setting.timer].0.to_string(), setting.due, setting.carried);
        let timers = timers.into_iter().map(timer).collect();
        let slots = SLOTS.iter().zip(&flow.slots);
        let slots = slots.filter_map(|(name, slot)| Some(((*name).to_string(), slot.as_ref()?.frame_length())));
        (*id, STATES[flow.state].to_string(), registers(flow), timers, slots.collect())
    });
    flows.collect()
}

fn seen_of_engine(engine: &dyn Function, out: &Outbox) -> Vec<Seen> {
    let seen = out.items().iter().filter_map(|item| match item {
        Output::Notify { at, flow, notice, value } => {
            let name = engine.notice_name(*notice).to_owned();
            Some(Seen::Notice { at: at.nanoseconds(), flow: flow.0, name, value: *value })
        }
        Output::Send { at, port, bytes, .. } => {
            Some(Seen::Sent { at: at.nanoseconds(), port: i64::from(port.0), bytes: out.bytes(bytes).to_vec() })
        }
        Output::Ended { flow } => Some(Seen::Ended { flow: flow.0 }),
        _ => None,
    });
    seen.collect()
}

/// Runs a program both ways and compares all that can be seen after each input.
fn agree(program: &Program, inputs: &[(i64, Input)]) -> Result<(), TestCaseError> {
    use weftwire_core::inspect::Inspect;
    let source = program.source();
    let compilation = compile("random.xl", Dialect::Xl, &source.as_str());
    let diagnostics: Vec<String> =
        compilation.diagnostics.iter().map(|found| found.to_text(&compilation.sources)).collect();
    let Some(mut image) = compilation.image else {
        return Err(TestCaseError::fail(format!("{}\n{source}", diagnostics.join("\n"))));
    };
    image.flow.hold = program.rules.hold;
    image.seal();
    let image = image.verify().map_err(|error| TestCaseError::fail(format!("{error}\n{source}")))?;
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
    let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("it is verified");
    let mut interpreter = Interpreter::new(program);
    let formats = Formats::default();
    let mut now = 1_000_000_000;
    let mut latest = (0, 0);
    for (number, (after, input)) in inputs.iter().enumerate() {
        now += after;
        // At one instant frames come by port, and time passes behind them: what comes too late for that has the next nanosecond.
        let rank = if let Input::Packet { port, .. } = input { *port } else { u16::MAX };
        now += i64::from((now, rank) < latest);
        latest = (now, rank);
        let mut out = Outbox::new();
        match input {
            Input::Packet { client, port, frame } => {
                engine.frame(Time::from_nanoseconds(now), Port(*port), Frame::new(frame), &mut out);
                let packet = Packet::parse(LinkType::Ethernet, Frame::new(frame), &formats).expect("it was just built");
                interpreter.packet(now, *client, *port, packet);
            }
            Input::Time => {
                engine.fire(Time::from_nanoseconds(now), &mut out);
                interpreter.fire(now);
            }
        }
        let place = format!("at input {number} of\n{source}");
        prop_assert_eq!(
            seen_of_engine(&engine, &out),
            std::mem::take(&mut interpreter.seen),
            "engine, oracle: outputs {}",
            place
        );
        prop_assert_eq!(
            states_of_engine(&engine),
            states_of_interpreter(&interpreter),
            "engine, oracle: flows {}",
            place
        );
        let mut drops = engine.counters().drops;
        // Whether a handler that does nothing has a row, and whether a division in a condition that nobody asks for is
        // made, is left to the compiler.
        drops.retain(|name, count| *count > 0 && !matches!(name.as_str(), "no_row" | "division_by_zero"));
        let expected = interpreter.drops.iter().map(|(name, count)| ((*name).to_string(), *count)).collect();
        prop_assert_eq!(drops, expected, "engine, oracle: drops {}", place);
    }
    Ok(())
}

/// The numbers that a case is made of. The failing program's text says more than they do.
struct Numbers(Vec<u16>);

impl std::fmt::Debug for Numbers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} numbers", self.0.len())
    }
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 50_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn compiled_programs_do_what_reading_them_says(numbers in prop::collection::vec(any::<u16>(), 0..1200).prop_map(Numbers)) {
        // What comes in is chosen from numbers of its own, so that it stays while the program shrinks.
        let (events, program) = numbers.0.split_at(numbers.0.len().min(50));
        let inputs = inputs(&mut Choices::new(events));
        let program = Choices::new(program).program();
        agree(&program, &inputs)?;
    }
}

/// That rows of the programs above share operations (rule E23), in one of five at least.
#[test]
fn random_programs_have_blocks() {
    let mut runner = TestRunner::deterministic();
    let with_blocks = (0..50).filter(|_| {
        let numbers = prop::collection::vec(any::<u16>(), 1_000).new_tree(&mut runner).expect("a vector").current();
        let source = Choices::new(&numbers).program().source();
        let compiled = compile("random.xl", Dialect::Xl, &source.as_str());
        compiled.image.is_some_and(|image| !image.blocks.is_empty())
    });
    let count = with_blocks.count();
    assert!(count >= 10, "{count} of 50 programs have blocks");
}
