//! A peer that says what it likes: whatever comes, the machine neither fails nor waits for ever, and delivers only what was
//! sent.

use crate::support::{check, controlled, data, endpoints, machine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use weftwire_core::inspect::Inspect;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
use weftwire_core::{
    Connections, FlowId, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output, Port, Ports, Time, segments,
};
use weftwire_engine::{EngineOptions, ReferenceEngine, Runtime};
use weftwire_image::VerifiedImage;

const OUR_DATA: usize = 30_000;
const ISN: u32 = u32::MAX - 3_000;

/// Where a number of a segment lies: near something that the machine knows, or anywhere.
#[derive(Clone, Copy, Debug)]
enum Near {
    Right,
    Before(u32),
    Behind(u32),
    Anywhere(u32),
}

#[derive(Clone, Debug)]
struct Move {
    wait_ms: u16,
    sequence: Near,
    acknowledgment: Near,
    length: u16,
    lies: bool,
    flags: u8,
    window: u16,
    sack: Vec<(Near, u16)>,
    stamp: Option<Near>,
    soup: Vec<u8>,
}

fn near() -> impl Strategy<Value = Near> {
    prop_oneof![
        8 => Just(Near::Right),
        3 => (1..4_000_u32).prop_map(Near::Before),
        3 => (1..4_000_u32).prop_map(Near::Behind),
        1 => any::<u32>().prop_map(Near::Anywhere),
    ]
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let flags = prop_oneof![10 => Just(0x10_u8), 3 => Just(0x18), 1 => Just(0x11), 1 => Just(0x02), 1 => Just(0x14), 2 => any::<u8>()];
    let lengths = prop_oneof![4 => Just(0_u16), 4 => 1..1_461_u16, 1 => Just(1_u16)];
    let windows = prop_oneof![3 => Just(65_535_u16), 2 => Just(0), 2 => any::<u16>(), 1 => Just(1)];
    let numbers = (near(), near(), vec((near(), any::<u16>()), 0..4), proptest::option::weighted(0.8, near()));
    let rest = (0..1_500_u16, lengths, any::<bool>(), flags, windows, vec(any::<u8>(), 0..12));
    let one = (numbers, rest).prop_map(
        |((sequence, acknowledgment, sack, stamp), (wait_ms, length, lies, flags, window, soup))| Move {
            wait_ms,
            sequence,
            acknowledgment,
            length,
            lies,
            flags,
            window,
            sack,
            stamp,
            soup,
        },
    );
    vec(one, 1..60)
}

fn place(near: Near, base: u32) -> u32 {
    match near {
        Near::Right => base,
        Near::Before(distance) => base.wrapping_sub(distance),
        Near::Behind(distance) => base.wrapping_add(distance),
        Near::Anywhere(value) => value,
    }
}

/// The byte of the peer's stream at a place, and what it says is there when it lies.
fn byte(position: u32, lies: bool) -> u8 {
    (position.wrapping_mul(7) % 251) as u8 ^ if lies { 0xff } else { 0 }
}

struct Against {
    engine: ReferenceEngine,
    out: Outbox,
    flow: Option<FlowId>,
    now: i64,
    delivered: Vec<u8>,
    frames: usize,
    /// Sequence numbers of what left with payload.
    sent: Vec<u32>,
    ended: bool,
}

impl Against {
    fn at(&self) -> Time {
        Time::from_nanoseconds(self.now)
    }

    fn register(&self, name: &str) -> u32 {
        let detail = self.flow.and_then(|flow| self.engine.flow(flow));
        let registers = detail.map(|detail| detail.registers).unwrap_or_default();
        registers.iter().find(|register| register.name == name).map_or(0, |register| register.value as u32)
    }

    /// What the machine did with one input.
    fn after(&mut self) {
        let mut read = 0;
        let mut frames = 0;
        for item in self.out.items() {
            match item {
                Output::Send { bytes, offload, .. } => {
                    frames += 1;
                    let frame = Frame { bytes: self.out.bytes(bytes), offload: *offload };
                    for segment in segments(LinkType::Ethernet, frame).expect("a good super-frame") {
                        if segment.len() > 34 + 4 * usize::from(segment[46] >> 4) {
                            self.sent.push(u32::from_be_bytes([segment[38], segment[39], segment[40], segment[41]]));
                        }
                    }
                }
                Output::Deliver { bytes, .. } => {
                    let bytes = self.out.bytes(bytes);
                    read += bytes.len();
                    self.delivered.extend_from_slice(bytes);
                }
                Output::Opened { flow, .. } => (self.flow, self.ended) = (Some(*flow), false),
                Output::Ended { .. } => self.ended = true,
                _ => {}
            }
        }
        assert!(frames <= 130, "{frames} frames at once");
        self.frames += frames;
        self.out.clear();
        if read > 0 && !self.ended {
            let (at, flow) = (self.at(), self.flow.expect("a flow"));
            self.engine.consumed(at, flow, read, &mut self.out).expect("it reads");
            return self.after();
        }
        check(&self.engine, self.flow.filter(|_| !self.ended), None);
    }

    fn pass(&mut self, until: i64) {
        let mut steps = 0;
        while let Some(due) = self.engine.next_deadline().map(|deadline| deadline.at.nanoseconds()) {
            if due > until {
                break;
            }
            steps += 1;
            assert!(steps < 20_000, "timers fire without end");
            self.now = self.now.max(due);
            let at = self.at();
            self.engine.fire(at, &mut self.out);
            self.after();
        }
        self.now = until;
    }

    fn hear(&mut self, tcp: &TcpFields, options: &[TcpOption<'_>], payload: &[u8]) {
        let addresses =
            Ipv4Fields { source: [10, 0, 0, 2].into(), destination: [10, 0, 0, 1].into(), ..Ipv4Fields::default() };
        let frame = FrameBuilder::ethernet(MacAddress([2; 6]), MacAddress([4; 6])).ipv4(&addresses).tcp(tcp, options);
        // More options than fit are no segment.
        let Ok(frame) = frame.payload(payload).finish() else { return };
        let at = self.at();
        self.engine.frame(at, Port(1), Frame::new(&frame), &mut self.out);
        self.after();
    }

    fn segment(&mut self, step: &Move) {
        let expected = self.register("expected");
        let sequence = place(step.sequence, expected);
        let (una, next) = (self.register("una"), self.register("next"));
        let acknowledgment = place(step.acknowledgment, if step.lies { next } else { una });
        let from = sequence.wrapping_sub(ISN.wrapping_add(1));
        let payload: Vec<u8> = (0..u32::from(step.length)).map(|at| byte(from.wrapping_add(at), step.lies)).collect();
        let tcp = TcpFields {
            source_port: 80,
            destination_port: 4_000,
            sequence,
            acknowledgment,
            flags: TcpFlags(step.flags),
            window: step.window,
            ..TcpFields::default()
        };
        let block = |(near, length): &(Near, u16)| {
            let left = place(*near, una);
            [left, left.wrapping_add(u32::from(*length))].map(u32::to_be_bytes).concat()
        };
        let blocks: Vec<u8> = step.sack.iter().flat_map(block).collect();
        let mut options = Vec::new();
        if let Some(stamp) = step.stamp {
            let recent = self.register("recent");
            options.push(TcpOption::Timestamps { value: place(stamp, recent), echo: self.register("stamps") });
        }
        if !blocks.is_empty() {
            options.push(TcpOption::Other { kind: 5, data: &blocks });
        }
        if step.soup.len() > 1 && step.stamp.is_none() {
            options.push(TcpOption::Other { kind: step.soup[0], data: &step.soup[1..] });
        }
        self.hear(&tcp, &options, &payload);
    }
}

/// The machine with a congestion control.
fn chosen(control: &str) -> VerifiedImage {
    controlled(control, &[("offer_ecn", i64::from(control == "dctcp"))])
}

/// A connection with the peer: we open it, or the peer does.
fn connected(image: VerifiedImage, opens: bool, options: &[TcpOption<'_>]) -> Against {
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let engine = Runtime::new(image, ports, EngineOptions { seed: 7, ..EngineOptions::default() }).expect("an engine");
    let mut peer = Against {
        engine,
        out: Outbox::new(),
        flow: None,
        now: 0,
        delivered: Vec::new(),
        frames: 0,
        sent: Vec::new(),
        ended: false,
    };
    let ports = TcpFields { source_port: 80, destination_port: 4_000, sequence: ISN, ..TcpFields::default() };
    if opens {
        let flow = peer.engine.connect(Time::ZERO, &endpoints(), &mut peer.out).expect("a connection");
        peer.flow = Some(flow);
        peer.after();
        let acknowledgment = peer.register("next");
        peer.hear(&TcpFields { acknowledgment, flags: TcpFlags(0x12), ..ports }, options, &[]);
    } else {
        peer.engine
            .listen(Time::ZERO, &Listen { address: None, port: Some(4_000) }, &mut peer.out)
            .expect("it listens");
        peer.hear(&TcpFields { flags: TcpFlags(0x02), ..ports }, options, &[]);
        let (acknowledgment, sequence) = (peer.register("next"), ISN.wrapping_add(1));
        peer.hear(&TcpFields { sequence, acknowledgment, flags: TcpFlags(0x10), ..ports }, &[], &[]);
    }
    let flow = peer.flow.expect("a flow");
    assert_eq!(peer.engine.flow(flow).expect("a flow").summary.state, "established");
    peer.engine.write(Time::ZERO, flow, &data(OUR_DATA, 7), &mut peer.out).expect("room");
    peer.after();
    peer
}

/// RFC 2018, 8: what was selectively acknowledged may be thrown away all the same; only an acknowledgment is for ever.
#[test]
fn a_receiver_that_throws_away_gets_it_again() {
    for recovery in 0..3 {
        throw_away(recovery);
    }
}

fn throw_away(recovery: i64) {
    let image = machine(&[("recovery", recovery)]);
    let mut peer = connected(image, true, &[TcpOption::MaximumSegmentSize(1_000), TcpOption::SackPermitted]);
    let una = peer.register("una");
    let place = |segment: u32| una.wrapping_add(1_000 * segment);
    let answer = |segment: u32| TcpFields {
        source_port: 80,
        destination_port: 4_000,
        sequence: ISN.wrapping_add(1),
        acknowledgment: place(segment),
        flags: TcpFlags(0x10),
        ..TcpFields::default()
    };
    let block = [place(1), place(9)].map(u32::to_be_bytes).concat();
    peer.hear(&answer(0), &[TcpOption::Other { kind: 5, data: &block }], &[]);
    peer.hear(&answer(1), &[], &[]);
    peer.sent.clear();
    for segment in 1..9 {
        peer.pass(peer.now + 1_000_000_000);
        assert!(
            peer.sent.contains(&place(segment)),
            "{recovery}: segment {segment} does not come again: {:?}",
            peer.sent
        );
        peer.hear(&answer(segment + 1), &[], &[]);
    }
}

/// A peer of a fast network that falls silent gets each segment a few times, ever more seldom.
#[test]
fn silence_is_not_shouted_at() {
    for recovery in 0..3 {
        let options = [TcpOption::MaximumSegmentSize(1_460), TcpOption::SackPermitted];
        let mut peer = connected(machine(&[("recovery", recovery)]), false, &options);
        peer.sent.clear();
        peer.pass(peer.now + 1_000_000_000);
        assert!(peer.sent.len() <= 80, "{recovery}: {} segments in a second", peer.sent.len());
        peer.pass(peer.now + 7_200_000_000_000);
        assert!(peer.sent.len() <= 450, "{recovery}: {} segments", peer.sent.len());
        assert!(peer.ended, "{recovery}: it waits for ever");
    }
}

/// Whatever the peer says, to a machine with this congestion control.
fn no_harm(image: VerifiedImage, opens: bool, all: bool, moves: &[Move]) -> Result<(), TestCaseError> {
    let offered = [
        TcpOption::MaximumSegmentSize(1_460),
        TcpOption::SackPermitted,
        TcpOption::WindowScale(2),
        TcpOption::Timestamps { value: 1, echo: 0 },
    ];
    let mut peer = connected(image, opens, &offered[..if all { 4 } else { 2 }]);
    for step in moves {
        if peer.ended {
            break;
        }
        peer.segment(step);
        let window = peer.register("congestion_window");
        prop_assert!(peer.ended || (1..1 << 30).contains(&window), "a window of {window}");
        let until = peer.now + i64::from(step.wait_ms) * 1_000_000;
        peer.pass(until);
    }
    for (at, delivered) in (0..).zip(&peer.delivered) {
        prop_assert!([byte(at, false), byte(at, true)].contains(delivered), "byte {at} was never sent");
    }
    // The peer says no more: the connection ends, or nothing is left to do.
    peer.pass(peer.now + 7_200_000_000_000);
    let state = peer.flow.and_then(|flow| peer.engine.flow(flow)).map(|flow| flow.summary.state);
    let idle = peer.register("una") == peer.register("next");
    prop_assert!(peer.ended || state.is_none() || idle || peer.register("peer_window") == 0, "{state:?} for ever");
    prop_assert!(peer.frames < 20_000, "{} frames", peer.frames);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn nothing_a_peer_says_does_harm(
        recovery in 0..3_i64, opens in any::<bool>(), all in any::<bool>(), moves in moves(),
    ) {
        no_harm(machine(&[("recovery", recovery)]), opens, all, &moves)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The same with any congestion control behind the interface.
    #[test]
    fn nor_to_any_congestion_control(control in select(&["newreno", "cubic", "dctcp", "swift", "bbr", "bbr3"][..]), opens in any::<bool>(), moves in moves()) {
        no_harm(chosen(control), opens, true, &moves)?;
    }
}
