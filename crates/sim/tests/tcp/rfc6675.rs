//! RFC 6675 beside its pseudo-code: what leaves in a recovery is, segment by segment, what a model of SetPipe(), IsLost() and NextSeg() says, octet
//! by octet, in random patterns of losses and of what comes late.

use crate::support::{CLEAN, Connection, Fate, Line, Sending, data, machine};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

const MILLISECOND: i64 = 1_000_000;
/// Bytes that the model takes for one: every segment is a multiple.
const UNIT: usize = 100;
/// SMSS, in units.
const SEGMENT: usize = 10;
/// DupThresh.
const ENOUGH: usize = 3;

/// The scoreboard, and the variables of section 2; all in units, ends exclusive.
#[derive(Default)]
struct Model {
    una: usize,
    next: usize,
    /// What the application has written.
    written: usize,
    sacked: Vec<bool>,
    /// Where segments begin and end.
    edges: BTreeSet<usize>,
    duplicates: usize,
    window: f64,
    /// RecoveryPoint, in a recovery.
    recovery: Option<usize>,
    high_rxt: usize,
    rescue_rxt: usize,
}

impl Model {
    fn is_lost(&self, octet: usize) -> bool {
        let above = &self.sacked[octet..self.next];
        let pieces = (1..above.len()).filter(|at| above[*at] && !above[at - 1]).count();
        pieces >= ENOUGH || above.iter().filter(|sacked| **sacked).count() > (ENOUGH - 1) * SEGMENT
    }

    fn pipe(&self) -> usize {
        let missing = (self.una..self.next).filter(|octet| !self.sacked[*octet]);
        missing.map(|octet| usize::from(!self.is_lost(octet)) + usize::from(octet < self.high_rxt)).sum()
    }

    /// A segment from here on, of what is not SACKed.
    fn segment(&self, from: usize) -> Range<usize> {
        let edge = self.edges.range(from + 1..).next().copied().unwrap_or(self.next).min(from + SEGMENT);
        from..(from..edge).find(|octet| self.sacked[*octet]).unwrap_or(edge)
    }

    /// The segment, and whether it is a rescue.
    fn next_segment(&self) -> Option<(Range<usize>, bool)> {
        let highest = (self.una..self.next).rfind(|octet| self.sacked[*octet]).unwrap_or(self.una);
        let mut missing = (self.high_rxt.max(self.una)..highest).filter(|octet| !self.sacked[*octet]);
        if let Some(lost) = missing.clone().find(|octet| self.is_lost(*octet)) {
            return Some((self.segment(lost), false));
        }
        if self.written > self.next {
            return Some((self.next..self.written.min(self.next + SEGMENT), false));
        }
        if let Some(suspected) = missing.next() {
            return Some((self.segment(suspected), false));
        }
        let end = (self.una..self.next).rfind(|octet| !self.sacked[*octet]).filter(|_| self.una > self.rescue_rxt)?;
        Some((end..end + 1, true))
    }

    /// An acknowledgment; the segment that leaves at once, if it begins a recovery.
    fn acknowledged(&mut self, edge: usize, blocks: &[Range<usize>]) -> Option<Range<usize>> {
        let (mut news, mut ended) = (false, false);
        if edge > self.una {
            self.una = edge;
            self.duplicates = 0;
            if self.recovery.is_some_and(|point| edge >= point) {
                self.recovery = None;
                ended = true;
            }
        }
        for octet in blocks.iter().cloned().flatten().filter(|octet| (self.una..self.next).contains(octet)) {
            news |= !std::mem::replace(&mut self.sacked[octet], true);
        }
        if self.recovery.is_some() {
            return None;
        }
        self.duplicates += usize::from(news);
        let lost = self.una < self.next && self.is_lost(self.una);
        let sent_once = self.una >= self.high_rxt;
        if !(news && (self.duplicates >= ENOUGH || lost) || ended && lost && sent_once) {
            return None;
        }
        self.recovery = Some(self.next);
        self.window = ((self.next - self.una) as f64).min(self.window).max(4.0 * SEGMENT as f64) / 2.0;
        let first = self.sent_again(self.una);
        (self.high_rxt, self.rescue_rxt) = (first.end, first.end);
        Some(first)
    }

    /// What leaves in a recovery: step (C).
    fn fill(&mut self, left: &[Range<usize>], cell: &str) {
        let mut left = left.iter();
        while self.window - self.pipe() as f64 >= SEGMENT as f64
            && let Some((segment, rescue)) = self.next_segment()
        {
            let Some(found) = left.next() else { panic!("{cell}: {segment:?} should leave") };
            if rescue {
                assert!(found.end == segment.end && found.len() <= SEGMENT, "{cell}: {found:?} is not the end");
                assert!(!self.sacked[found.clone()].contains(&true), "{cell}: {found:?} has arrived");
                self.edges.retain(|edge| !found.contains(edge));
                self.edges.insert(found.start);
                self.rescue_rxt = self.recovery.unwrap_or(self.next);
                break;
            }
            assert_eq!(*found, segment, "{cell}");
            if segment.start == self.next {
                self.new_data(&segment);
            } else {
                self.high_rxt = self.sent_again(segment.start).end;
            }
        }
        assert_eq!(left.next(), None, "{cell}: this should not leave");
    }

    /// It is as long as a segment may be, or ends where it ended before.
    fn sent_again(&mut self, from: usize) -> Range<usize> {
        let segment = self.segment(from);
        self.edges.insert(segment.end);
        segment
    }

    fn new_data(&mut self, segment: &Range<usize>) {
        self.next = segment.end;
        self.edges.insert(segment.end);
        self.sacked.resize(self.next, false);
    }
}

/// Acknowledgment and SACK blocks of a segment.
fn told(frame: &[u8]) -> (u32, Vec<(u32, u32)>) {
    let word = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let (mut at, end, mut blocks) = (54, 34 + 4 * usize::from(frame[46] >> 4), Vec::new());
    while at < end {
        match frame[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let length = usize::from(frame[at + 1]);
                if kind == 5 {
                    blocks = (at + 2..at + length).step_by(8).map(|at| (word(at), word(at + 4))).collect();
                }
                at += length;
            }
        }
    }
    (word(42), blocks)
}

/// What leaves with data.
type Log = Rc<RefCell<Vec<(u32, usize)>>>;

/// Loses so many of a thousand segments and acknowledgments, and lets half as many segments come late.
fn losing(lost: u64, mut seed: u64, log: Log) -> impl FnMut(&Sending<'_>) -> Fate {
    move |sending| {
        let data = sending.to == 1 && sending.payload() > 0;
        if data {
            log.borrow_mut().push((sending.sequence(), sending.payload()));
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = (seed >> 33) % 1_000;
        match data {
            _ if sending.at < 30 * MILLISECOND => Fate::Passes,
            true if dice < lost => Fate::Lost,
            true if dice < lost * 3 / 2 => Fate::Late(6 * MILLISECOND),
            false if dice < lost / 2 => Fate::Lost,
            _ => Fate::Passes,
        }
    }
}

/// How many recoveries were the model's until everything had arrived or a timeout came, and how many segments left in them.
fn compared(lost: u64, seed: u64, pieces: bool) -> (usize, usize) {
    let cell = format!("{lost} of 1000, seed {seed}, pieces {pieces}");
    let own = [("control", 0), ("recovery", 1), ("mtu", (SEGMENT * UNIT) as i64 + 52), ("eager", 1)];
    let written = if pieces { 20 } else { 3_000 };
    let line = Line { delay: 10 * MILLISECOND, ..CLEAN };
    let mut connection =
        Connection::new([machine(&own), machine(&[])], [data(written * UNIT, 7), Vec::new()], line, seed);
    connection.ends[0].closes = false;
    let log = Log::default();
    connection.fates = Box::new(losing(lost, seed, log.clone()));
    connection.open();
    let get = |connection: &Connection, name: &str| connection.register(0, name).expect("a register");
    assert!(connection.until(|connection| connection.register(0, "smoothed").is_some_and(|it| it > 0)));
    let base = log.borrow()[0].0;
    let units = |number: u32| number.wrapping_sub(base) as usize / UNIT;
    let mut model = Model { written, ..Model::default() };
    let (mut recoveries, mut segments) = (0, 0);
    loop {
        let mut fill = false;
        if !log.borrow().is_empty() {
            // What the handshake's end has let go.
        } else if pieces && model.written < 1_000 && model.written <= model.next + SEGMENT {
            let count = 1 + (seed as usize + model.written) % 8;
            model.written += count;
            let more = data(model.written * UNIT, 7);
            connection.ends[0].to_send = more;
            connection.after(0);
            fill = true;
        } else {
            let top = connection.flying.peek().filter(|Reverse((_, _, to, _))| *to == 0).cloned();
            model.window = get(&connection, "congestion_window") as f64 / UNIT as f64;
            if model.una == 1_000.max(model.written) && model.una == model.written || !connection.step() {
                break;
            }
            if get(&connection, "phase") == 2 {
                break;
            }
            let taken = |Reverse((_, number, _, _)): &Reverse<(i64, u64, usize, Vec<u8>)>| {
                !connection.flying.iter().any(|Reverse((_, other, ..))| other == number)
            };
            if let Some(Reverse((_, _, _, frame))) = top.filter(taken) {
                let (edge, blocks) = told(&frame);
                let blocks: Vec<_> = blocks
                    .iter()
                    .filter(|(left, _)| left.wrapping_sub(base) < 1 << 31)
                    .map(|(left, right)| units(*left)..units(*right))
                    .collect();
                if let Some(first) = model.acknowledged(units(edge), &blocks) {
                    let mut log = log.borrow_mut();
                    assert!(!log.is_empty(), "{cell}: {first:?} should leave at once");
                    let (number, length) = log.remove(0);
                    assert_eq!(units(number)..units(number) + length / UNIT, first, "{cell}: at once");
                    recoveries += 1;
                }
                fill = true;
            }
        }
        let left: Vec<_> =
            log.borrow_mut().drain(..).map(|(number, length)| units(number)..units(number) + length / UNIT).collect();
        assert_eq!(get(&connection, "phase") == 1, model.recovery.is_some(), "{cell}: a recovery");
        if let Some(point) = model.recovery {
            assert_eq!(units(get(&connection, "recover") as u32), point, "{cell}: where it ends");
            segments += left.len();
            if fill { model.fill(&left, &cell) } else { assert_eq!(left, [], "{cell}: this should not leave") }
        } else {
            for segment in left {
                assert_eq!(segment.start, model.next, "{cell}: not in a recovery");
                model.new_data(&segment);
            }
        }
    }
    (recoveries, segments)
}

#[test]
fn what_leaves_is_what_the_pseudo_code_says() {
    let (mut recoveries, mut segments) = (0, 0);
    for lost in [10, 30, 60, 120] {
        for seed in 0..4 {
            for pieces in [false, true] {
                let (more, sent) = compared(lost, seed, pieces);
                (recoveries, segments) = (recoveries + more, segments + sent);
            }
        }
    }
    println!("{recoveries} recoveries, {segments} segments in them");
    assert!(recoveries > 50 && segments > 500, "{recoveries} recoveries, {segments} segments");
}

/// RFC 6582: each acknowledgment of a part lets the next hole's segment leave, and the window shrinks once.
#[test]
fn without_sack_a_hole_takes_a_round_trip() {
    let own = [("control", 0), ("recovery", 1), ("offer_selective", 0)];
    let line = Line { delay: 10 * MILLISECOND, ..CLEAN };
    let mut connection = Connection::new([machine(&own), machine(&[])], [data(1_000_000, 7), Vec::new()], line, 1);
    let log = Log::default();
    let (kept, mut count) = (log.clone(), 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        kept.borrow_mut().push((sending.sequence(), sending.payload()));
        count += 1;
        if [100, 103, 110].contains(&count) { Fate::Lost } else { Fate::Passes }
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a recovery");
    let (began, threshold) = (connection.now, connection.register(0, "threshold"));
    assert!(connection.until(|connection| connection.register(0, "phase") != Some(1)));
    assert_eq!(connection.register(0, "phase"), Some(0), "no timeout");
    assert_eq!(connection.register(0, "threshold"), threshold, "one reduction");
    let trips = (connection.now - began) as f64 / (20.0 * MILLISECOND as f64);
    assert!((2.9..3.3).contains(&trips), "{trips} round trips for three holes");
    assert!(connection.until(|connection| connection.ends[1].received.len() == 1_000_000));
    let lost = [100, 103, 110].map(|number| log.borrow()[number - 1].0);
    let mut seen = BTreeSet::new();
    let again: Vec<u32> =
        log.borrow().iter().map(|(number, _)| *number).filter(|number| !seen.insert(*number)).collect();
    assert_eq!(again, lost, "each leaves again once, and nothing else");
}
