//! Programs with repeats, shared handlers, ranges, the receive buffer and segments, from their text to what they do.

use proptest::prelude::*;
use weftwire_core::inspect::Inspect;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{Connections, FlowId, Frame, Function, LinkType, MacAddress, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine, Runtime};
use weftwire_lang::{Dialect, compile};
use weftwire_text::{LoadError, Loader};

struct Source(&'static str);

impl Loader for Source {
    fn load(&self, _name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        Ok(self.0.into())
    }
}

fn engine(program: &'static str) -> ReferenceEngine {
    let compiled = compile("program.xl", Dialect::Xl, &Source(program));
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let image = compiled.image.expect("a right program").verify().unwrap_or_else(|error| panic!("{error}"));
    Runtime::new(image, Ports::new([(Port(1), LinkType::Ethernet)]), EngineOptions::default()).expect("an engine")
}

fn frame(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let fields =
        Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 1, 1].into(), ..Ipv4Fields::default() };
    let segment =
        TcpFields { source_port: 1, destination_port: 2, sequence, flags: TcpFlags::ACK, ..TcpFields::default() };
    let frame = FrameBuilder::ethernet(MacAddress([4; 6]), MacAddress([2; 6])).ipv4(&fields).tcp(&segment, &[]);
    frame.payload(payload).finish().expect("a small segment")
}

/// What the machine tells of a segment: notices with values, and bytes.
fn told(engine: &mut ReferenceEngine, at: i64, sequence: u32, payload: &[u8]) -> (Vec<(String, i64)>, Vec<u8>) {
    let mut out = Outbox::new();
    engine.frame(Time::from_nanoseconds(at), Port(1), Frame::new(&frame(sequence, payload)), &mut out);
    tell(engine, &out)
}

fn tell(engine: &ReferenceEngine, out: &Outbox) -> (Vec<(String, i64)>, Vec<u8>) {
    let (mut notices, mut bytes) = (Vec::new(), Vec::new());
    for output in out.items() {
        match output {
            Output::Notify { notice, value, .. } => notices.push((engine.notice_name(*notice).to_owned(), *value)),
            Output::Deliver { bytes: range, .. } => bytes.extend_from_slice(out.bytes(range)),
            _ => {}
        }
    }
    (notices, bytes)
}

const LOOPS: &str = "
machine loops;
register total: u32;
register rounds: u32;
initial state idle {
    on packet when packet.payload == 9 { goto busy; }
}
state busy {}
in idle, busy {
    on packet {
        total = 0;
        rounds = 0;
        let wanted = packet.payload;
        repeat 5 while rounds < wanted {
            rounds += 1;
            let square = rounds * rounds;
            if square > 3 { total += square; }
            repeat 3 { total += 100; }
        }
        notify total(total);
        notify rounds(rounds);
        repeat 2 while false { notify never; }
    }
}
";

#[test]
fn repeats_run_as_often_as_they_may() {
    let mut engine = engine(LOOPS);
    for wanted in 0..9_i64 {
        let rounds = wanted.min(5);
        let total = (1..=rounds).map(|round| 300 + if round > 1 { round * round } else { 0 }).sum::<i64>();
        let (notices, _) = told(&mut engine, wanted, 1, &vec![0; wanted as usize]);
        assert_eq!(notices, [("total".into(), total), ("rounds".into(), rounds)]);
    }
    // Handlers of both states.
    assert_eq!(told(&mut engine, 20, 1, &[0; 9]).0, []);
    assert_eq!(told(&mut engine, 21, 1, &[0; 9]).0[1], ("rounds".into(), 5));
}

const STREAM: &str = "
machine stream;
register expected: seq32;
register started: bool;
receive buffer arrived 300 at most 8 ranges;
initial state open {
    on packet when not started {
        started = true;
        expected = tcp.sequence;
        begin arrived at expected;
        take();
    }
    on packet { take(); }
    on read { notify read(read.length); notify room(application.room); }
    on abort { notify aborted; }
}
action take() {
    hold packet at tcp.sequence in arrived;
    let edge = arrived.after(expected);
    deliver arrived to edge;
    expected = edge;
    notify edge(edge - 0);
    notify window(application.room);
}
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Parts of a stream in any order, again and overlapping: what is delivered is the stream, as far as its front is there,
    /// and no byte changes once it was accepted. At every boundary the machine is replaced by its restored state.
    #[test]
    fn a_stream_comes_together(
        start in any::<u32>(),
        parts in prop::collection::vec((0..250_usize, 1..60_usize, any::<bool>()), 1..60),
    ) {
        let stream: Vec<u8> = (0..400_u32).map(|place| (place * 7 % 251) as u8).collect();
        let mut engine = engine(STREAM);
        told(&mut engine, 0, start, &[]);
        let (mut held, mut delivered, mut reading) = (vec![None; 600], Vec::new(), 0);
        for (round, (from, length, lies)) in parts.into_iter().enumerate() {
            // A liar sends other bytes where some are there already.
            let bytes: Vec<u8> = (from..from + length).map(|at| stream[at] ^ u8::from(lies && held[at].is_some())).collect();
            let (_, new) = told(&mut engine, round as i64 + 1, start.wrapping_add(from as u32), &bytes);
            let limit = 300 + reading;
            let before = held.clone();
            for (at, byte) in (from..from + length).zip(&bytes).filter(|(at, _)| *at < limit) {
                held[at].get_or_insert(*byte);
            }
            let mut runs = 0;
            for at in delivered.len()..limit {
                runs += usize::from(held[at].is_some() && (at == delivered.len() || held[at - 1].is_none()));
            }
            if runs > 8 {
                held = before;
            }
            let edge = held.iter().position(Option::is_none).unwrap_or(0);
            prop_assert_eq!(&new[..], &stream[delivered.len()..edge]);
            delivered.extend(new);
            // The application reads a part.
            let mut out = Outbox::new();
            let read = (delivered.len() - reading) / 2;
            engine.consumed(Time::from_nanoseconds(round as i64 + 1), FlowId(1), read, &mut out).unwrap();
            reading += read;
            if read > 0 {
                let room = 300 - (delivered.len() - reading);
                prop_assert_eq!(tell(&engine, &out).0, [("read".into(), read as i64), ("room".into(), room as i64)]);
            }
            let state = engine.snapshot(FlowId(1), None).expect("it is there");
            let layout = engine.state_layout().clone();
            let bytes = state.to_bytes(&layout);
            let again = weftwire_engine::state::FlowState::from_bytes(&bytes, &layout).unwrap();
            prop_assert_eq!(&again, &state);
            let mut next = self::engine(STREAM);
            next.restore(Time::from_nanoseconds(round as i64 + 1), &again, None).unwrap();
            prop_assert_eq!(next.snapshot(FlowId(1), None).unwrap().to_bytes(&layout), bytes);
            engine = next;
        }
    }
}

#[test]
fn who_gives_up_is_told() {
    let mut engine = engine(STREAM);
    let mut out = Outbox::new();
    engine.listen(Time::ZERO, &weftwire_core::Listen::default(), &mut out).unwrap();
    told(&mut engine, 0, 1, &[]);
    engine.abort(Time::ZERO, FlowId(1), &mut out).unwrap();
    assert_eq!(tell(&engine, &out).0, [("aborted".into(), 0)]);
    assert!(engine.consumed(Time::ZERO, FlowId(1), 1, &mut out).is_err());
}

/// The scoreboard of a sender: a segment of 10 is sent at each packet; an acknowledgment says with its sequence number
/// what has arrived (its payload tells how).
const SCOREBOARD: &str = "
machine scoreboard;
register next: seq32 = 1000;
register begun: bool;
segments sent(at: time, times: u8, sacked: bool, lost: bool) at most 100;
initial state open {
    on packet when not begun { begun = true; begin sent at next; }
    on packet when packet.payload == 1 {                    // send
        append sent(next + 10, now, 1, false, false);
        next = next + 10;
        tell();
    }
    on packet when packet.payload == 2 { trim sent to tcp.sequence; tell(); }
    on packet when packet.payload == 3 {                    // this one and the one behind it have arrived
        split sent at tcp.sequence;
        split sent at tcp.sequence + 15;
        change sent where left >= tcp.sequence and right <= tcp.sequence + 15 and not sacked { sacked = true; }
        let newest = sent.greatest(at, sacked);
        change sent where not sacked and at < newest { lost = true; }
        tell();
    }
    on packet {                                             // again, all that is lost
        repeat 100 while sent.count(lost) > 0 {
            let front = sent.first(left, lost);
            notify again(front - 0);
            change sent where left == front { lost = false; at = now; times = 2; }
        }
    }
}
action tell() {
    notify count(sent.count);
    notify sacked(sent.bytes(sacked));
    notify lost(sent.bytes(lost and not sacked));
    notify front(sent.start - 0);
    notify end(sent.end - 0);
}
";

#[test]
fn segments_are_a_scoreboard() {
    let mut engine = engine(SCOREBOARD);
    told(&mut engine, 0, 0, &[]);
    let values = |told: (Vec<(String, i64)>, Vec<u8>)| told.0.into_iter().map(|(_, value)| value).collect::<Vec<i64>>();
    for sent in 1..=10 {
        assert_eq!(values(told(&mut engine, sent, 0, &[0])), [sent, 0, 0, 1000, 1000 + 10 * sent]);
    }
    // 1030 to 1045: a whole one and a half. All before 1045 were sent earlier than the newest of these, at 5.
    assert_eq!(values(told(&mut engine, 20, 1030, &[0; 3])), [11, 15, 30, 1000, 1100]);
    assert_eq!(values(told(&mut engine, 21, 0, &[0; 4])), [1000, 1010, 1020]);
    assert_eq!(values(told(&mut engine, 22, 1012, &[0; 2])), [10, 15, 0, 1012, 1100]);
    // The rest of the half, and 10 of the next: with it the half that was sent at 5 is newer than nothing.
    assert_eq!(values(told(&mut engine, 23, 1045, &[0; 3])), [10, 30, 0, 1012, 1100]);
    assert_eq!(values(told(&mut engine, 24, 1100, &[0; 2])), [0, 0, 0, 1100, 1100]);
}
