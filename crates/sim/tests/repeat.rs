//! Recordings of inputs: what comes out again is what came out, and a difference is found where it is.

use proptest::prelude::*;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use weftwire_capture::inputs::{RecordingError, RecordingReader, head};
use weftwire_capture::{Recorded, Tape};
use weftwire_core::control::PortChange;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{
    Arrival, Arrivals, Change, Command, Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, MacAddress,
    Outbox, Port, Ports, Time,
};
use weftwire_engine::{EngineOptions, change_to, make};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};
use weftwire_sim::repeat::{Repeated, repeat};
use weftwire_text::{LoadError, Loader};

/// Keeps a count and a random number a flow, answers, and has a timer.
const MACHINE: &str = "
machine counting;
flow key five_tuple expires after 1ms at most 8 flows when full evict oldest;
register count: u32;
register chance: u32;
timer later;
receive buffer held 100 at most 4 ranges;
initial state start {
    on packet {
        count = count + 1;
        chance = u32(random());
        reset later in 5us;
        deliver packet(0, 9);
        hold packet at held.top in held;
        deliver held to held.top;
        notify listened(u8(application.listening));
        send packet to 1;
        notify seen(count);
        notify drawn(chance);
    }
    on connect { notify opened; }
    on data { notify written(application.available); }
    on close { notify closed; }
    on read { notify read(read.length); }
    on abort { notify given_up; }
    on later { notify late(count); }
}
";

struct Source<'a>(&'a str);

impl Loader for Source<'_> {
    fn load(&self, _name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        Ok(self.0.into())
    }
}

fn image(text: &str) -> VerifiedImage {
    let compiled = compile("counting.xl", Dialect::Xl, &Source(text));
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    compiled.image.expect("a right program").verify().expect("a good image")
}

fn function(seed: u64, order_left_to_platform: bool) -> Box<dyn Function> {
    let options = EngineOptions { seed, order_left_to_platform, ..EngineOptions::default() };
    make("reference", image(MACHINE), ports(), options).expect("an engine")
}

fn ports() -> Ports {
    Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)])
}

/// A tape in memory with room for so many bytes.
#[derive(Clone)]
struct Memory(Rc<RefCell<Vec<u8>>>, usize);

impl Tape for Memory {
    fn put(&mut self, record: &[u8]) -> bool {
        let mut bytes = self.0.borrow_mut();
        let fits = bytes.len() + record.len() <= self.1;
        if fits {
            bytes.extend_from_slice(record);
        }
        fits
    }

    fn end(&mut self, record: &[u8]) {
        self.0.borrow_mut().extend_from_slice(record);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Frames(Vec<(u16, u8)>),
    Connect(u8),
    Write(u64, usize),
    Close(u64),
    Abort(u64),
    Listen(Option<u8>, Option<u16>),
    Unlisten(Option<u8>, Option<u16>),
    Accept(u64),
    Consumed(u64, usize),
    Set(u64, i64),
    Delete(u64),
    Port(u16, PortChange),
    Image(&'static str, bool),
    Parameters(&'static str, u8),
    Fire,
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => prop::collection::vec((1..4_u16, 0..6_u8), 0..5).prop_map(Step::Frames),
        1 => (0..6_u8).prop_map(Step::Connect),
        1 => (0..9_u64, 0..900_usize).prop_map(|(flow, length)| Step::Write(flow, length)),
        1 => (0..9_u64).prop_map(Step::Close),
        1 => (0..9_u64).prop_map(Step::Abort),
        1 => (proptest::option::of(any::<u8>()), proptest::option::of(1..3_u16))
            .prop_map(|(address, port)| Step::Listen(address, port)),
        1 => (proptest::option::of(any::<u8>()), proptest::option::of(1..3_u16))
            .prop_map(|(address, port)| Step::Unlisten(address, port)),
        1 => (0..9_u64).prop_map(Step::Accept),
        1 => (0..9_u64, 0..60_usize).prop_map(|(flow, length)| Step::Consumed(flow, length)),
        1 => (0..9_u64, any::<i64>()).prop_map(|(flow, value)| Step::Set(flow, value)),
        1 => (0..9_u64).prop_map(Step::Delete),
        1 => (1..4_u16, port_changes()).prop_map(|(port, change)| Step::Port(port, change)),
        1 => (prop::sample::select(&["count + 5", "count + zero"][..]), any::<bool>())
            .prop_map(|(other, prepared)| Step::Image(other, prepared)),
        1 => (prop::sample::select(&["count", "counts"][..]), any::<u8>())
            .prop_map(|(name, value)| Step::Parameters(name, value)),
        2 => Just(Step::Fire),
        2 => (0..9_000_i64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

fn port_changes() -> impl Strategy<Value = PortChange> {
    prop_oneof![
        Just(PortChange::Added { link: LinkType::Ethernet }),
        Just(PortChange::Added { link: LinkType::Ip }),
        Just(PortChange::Gone),
        Just(PortChange::Up),
        Just(PortChange::Down),
        any::<u32>().prop_map(|bytes| PortChange::Mtu { bytes }),
    ]
}

fn ends(client: u8) -> Endpoints {
    Endpoints {
        protocol: 17,
        local_address: [10, 0, 0, client].into(),
        local_port: 1,
        remote_address: [10, 0, 1, 1].into(),
        remote_port: 2,
        local_mac: MacAddress([2; 6]),
        remote_mac: MacAddress([4; 6]),
        vlan: None,
    }
}

fn frame(client: u8) -> Vec<u8> {
    let fields =
        Ipv4Fields { source: [10, 0, 0, client].into(), destination: [10, 0, 1, 1].into(), ..Ipv4Fields::default() };
    let frame = FrameBuilder::ethernet(MacAddress([4; 6]), MacAddress([2; 6])).ipv4(&fields).udp(1, 2);
    frame.payload(&[client; 30]).finish().expect("a small datagram")
}

/// Runs a machine under these circumstances; its recording with this much room.
fn recording(steps: &[Step], seed: u64, room: usize) -> Vec<u8> {
    let memory = Memory(Rc::new(RefCell::new(head(&ports()))), room);
    let mut function = Recorded::new(function(seed, false), Box::new(memory.clone()));
    // A small bound: batches are consumed in parts.
    let (mut out, mut now) = (Outbox::new().bounded(150), 0);
    for step in steps {
        let at = Time::from_nanoseconds(now);
        match step {
            Step::Frames(frames) => {
                let arrival = |(port, client): &(u16, u8), out: &mut Outbox| {
                    Arrival::copied(Port(*port), Frame::new(&frame(*client)), out)
                };
                let mut arrivals: Arrivals = frames.iter().map(|frame| arrival(frame, &mut out)).collect();
                while !arrivals.is_empty() {
                    function.frames(at, &mut arrivals, &mut out);
                    out.clear();
                }
            }
            Step::Connect(client) => drop(function.connect(at, &ends(*client), &mut out)),
            Step::Write(flow, length) => drop(function.write(at, FlowId(*flow), &vec![1; *length], &mut out)),
            Step::Close(flow) => drop(function.close(at, FlowId(*flow), &mut out)),
            Step::Listen(address, port) => {
                let address = address.map(|last| [10, 0, 1, last % 2].into());
                drop(function.listen(at, &Listen { address, port: *port }, &mut out));
            }
            Step::Unlisten(address, port) => {
                let address = address.map(|last| [10, 0, 1, last % 2].into());
                drop(function.unlisten(at, &Listen { address, port: *port }, &mut out));
            }
            Step::Accept(flow) => drop(function.accept(at, FlowId(*flow), &mut out)),
            Step::Consumed(flow, length) => drop(function.consumed(at, FlowId(*flow), *length, &mut out)),
            Step::Abort(flow) => drop(function.abort(at, FlowId(*flow), &mut out)),
            Step::Set(flow, value) => {
                let change = Change::SetRegister { flow: FlowId(*flow), register: "count".into(), value: *value };
                function.control(at, Command::new(now as u64, change), &mut out);
            }
            Step::Delete(flow) => {
                let change = Change::Delete { flow: FlowId(*flow) };
                function.control(at, Command::new(1, change), &mut out);
            }
            Step::Port(port, change) => {
                let change = Change::Port { port: Port(*port), change: *change };
                function.control(at, Command::new(2, change), &mut out);
            }
            Step::Image(other, prepared) => {
                let text = MACHINE.replace("count + 1", other).replace(
                    "register chance",
                    match *other {
                        "count + zero" => "register zero: u8; register chance",
                        _ => "register chance",
                    },
                );
                let (change, ready) = change_to("reference", image(&text)).expect("an engine");
                let command = if *prepared { Command::prepared(3, change, ready) } else { Command::new(3, change) };
                function.control(at, command, &mut out);
            }
            Step::Parameters(name, value) => {
                let parameters = vec![((*name).to_owned(), value.to_string())];
                function.control(at, Command::new(4, Change::SetParameters { parameters }), &mut out);
            }
            Step::Fire => function.fire(at, &mut out),
            Step::Wait(time) => now += time,
        }
        out.clear();
    }
    drop(function);
    memory.0.take()
}

fn again(recording: &[u8], seed: u64) -> Result<Repeated, RecordingError> {
    let mut reader = RecordingReader::new(recording)?;
    assert_eq!(reader.ports(), &ports());
    let mut function = function(seed, reader.order_left_to_platform());
    repeat(function.as_mut(), &mut reader, &mut |_| None, &mut |_, _| ControlFlow::Continue(()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_repeated(steps in steps(), seed in 0..3_u64) {
        let repeated = again(&recording(&steps, seed, usize::MAX), seed).unwrap();
        prop_assert_eq!(&repeated.difference, &None);
        prop_assert_eq!(repeated.not_recorded, 0);
        let least = steps.iter().filter(|step| !matches!(step, Step::Wait(_) | Step::Frames(_))).count();
        prop_assert!(repeated.inputs >= least as u64);
    }

    /// What is full ends early and says how much is missing.
    #[test]
    fn a_recording_has_no_holes(steps in steps(), room in 0..3_000_usize) {
        let whole = again(&recording(&steps, 1, usize::MAX), 1).unwrap();
        let part = again(&recording(&steps, 1, room), 1).unwrap();
        prop_assert_eq!(part.difference, None);
        prop_assert_eq!(part.inputs + part.not_recorded, whole.inputs);
    }

    /// Bytes from anywhere are refused, or repeated as far as they go.
    #[test]
    fn damage_is_an_error(steps in steps(), place in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let mut bytes = recording(&steps, 1, usize::MAX);
        let place = place.index(bytes.len());
        drop(again(&bytes[..place], 1).map_err(|error| error.to_string()));
        bytes[place] ^= flip;
        let Ok(mut reader) = RecordingReader::new(&bytes[..]) else { return Ok(()) };
        drop(repeat(function(1, false).as_mut(), &mut reader, &mut |_| None, &mut |_, _| ControlFlow::Continue(())));
    }
}

#[test]
fn another_seed_is_found_at_the_first_random_number() {
    let steps = [Step::Connect(1), Step::Fire, Step::Frames(vec![(1, 3)]), Step::Fire];
    let repeated = again(&recording(&steps, 1, usize::MAX), 2).unwrap();
    assert_eq!(repeated.difference, Some((2, "1 frames at 0.000000000 s".into())));
}

/// Inputs of one instant, not in the order of the page.
fn out_of_order() -> Vec<Step> {
    vec![
        Step::Connect(1),
        Step::Write(1, 5),
        Step::Set(1, 9),
        Step::Frames(vec![(2, 3), (1, 1), (2, 1)]),
        Step::Consumed(1, 3),
        Step::Set(1, 4),
        Step::Fire,
        Step::Close(1),
        Step::Frames(vec![(2, 2), (1, 2)]),
        Step::Wait(5_000),
        Step::Frames(vec![(1, 1)]),
        Step::Port(2, PortChange::Mtu { bytes: 900 }),
        Step::Write(2, 7),
        Step::Set(2, 7),
        Step::Wait(20_000),
        Step::Fire,
    ]
}

/// The recording of [`out_of_order`] that an older version has made, which left the order at one instant to platforms.
#[test]
fn a_recording_of_the_version_before_is_repeated() {
    let before = include_bytes!("recordings/version-2");
    let repeated = again(before, 1).unwrap();
    assert_eq!(repeated.difference, None);
    let now = recording(&out_of_order(), 1, usize::MAX);
    assert_eq!(again(&now, 1).unwrap().inputs, repeated.inputs);
    // Its inputs have other times now.
    let mut said_to_be_newer = before.to_vec();
    said_to_be_newer[8..12].copy_from_slice(&now[8..12]);
    assert!(again(&said_to_be_newer, 1).unwrap().difference.is_some());
}
