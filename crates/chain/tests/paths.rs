//! Two hosts whose session goes from path to path, over boxes that shift numbers, with losses, repetitions and reordering: whatever happens,
//! each byte arrives once in order, acknowledgments are true, and boxes see numbers without gaps.

use rand_core::Rng as _;
use rand_pcg::Lcg128Xsl64;
use std::collections::{BTreeMap, VecDeque};
use weftwire_chain::paths::{Anchor, Arrived, Beginning, Block, Piece, Side, Stage};

const WINDOW: u64 = 40_000;
const LONGEST: u64 = 3_000;
/// Steps of virtual time without any progress after which something is sent again.
const PATIENCE: u64 = 300;
/// No seed takes a tenth of this.
const MOST_STEPS: u64 = 2_000_000;

/// A number lies behind another one.
fn is_behind(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

/// What both hosts do not see.
struct Odds {
    loss: u64,
    double: u64,
    late: u64,
}

/// An end host. Offsets count bytes of the session from 0, without any wrap.
struct Host {
    start: u32,
    /// What this host's numbers of the other's bytes begin with.
    other_start: u32,
    total: u64,
    next: u64,
    unacked: u64,
    got: u64,
    /// Pieces that came early, by offset.
    early: BTreeMap<u64, u64>,
    due: bool,
    repeated: u32,
    progress: u64,
}

impl Host {
    fn number(&self, offset: u64) -> u32 {
        self.start.wrapping_add(offset as u32)
    }

    fn acknowledgment(&self) -> u32 {
        self.other_start.wrapping_add(self.got as u32)
    }

    fn blocks(&self) -> Vec<Block> {
        let number = |offset: u64| self.other_start.wrapping_add(offset as u32);
        self.early.iter().take(3).map(|(first, end)| (number(*first), number(*end))).collect()
    }

    fn has(&self, first: u64, end: u64) -> bool {
        end <= self.got || self.early.iter().any(|(from, to)| *from <= first && end <= *to)
    }

    fn take(&mut self, offset: u64, length: u64) {
        let (mut first, mut end) = (offset, offset + length);
        let touching: Vec<u64> =
            self.early.range(..=end).filter(|(_, to)| **to >= first).map(|(from, _)| *from).collect();
        for from in touching {
            let to = self.early.remove(&from).expect("it is there");
            (first, end) = (first.min(from), end.max(to));
        }
        if first <= self.got {
            self.got = self.got.max(end);
        } else {
            self.early.insert(first, end);
        }
    }
}

/// A path: what its boxes add to numbers from each side, and what they have seen of it.
struct Path {
    shift: [u32; 2],
    origin: [u32; 2],
    top: [u32; 2],
}

#[derive(Clone)]
enum Message {
    Syn { epoch: u32, base: u32 },
    Answer { epoch: u32, base: u32 },
    Segment { piece: Piece, offset: u64, blocks: Vec<Block> },
}

struct World {
    seed: u64,
    random: Lcg128Xsl64,
    odds: Odds,
    now: u64,
    serial: u64,
    hosts: [Host; 2],
    anchors: [Anchor; 2],
    paths: Vec<Path>,
    /// The numbers of each anchor's paths: the old one, and the new one if there is any.
    of: [[Option<usize>; 2]; 2],
    epoch: [u32; 2],
    base: [u32; 2],
    rounds: u32,
    cancels: u32,
    released: [bool; 2],
    under_way: BTreeMap<(u64, u64), (usize, usize, Message)>,
    splits: u32,
    both: u32,
}

fn below(random: &mut Lcg128Xsl64, bound: u64) -> u64 {
    random.next_u64() % bound
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Lcg128Xsl64::new(seed.into(), 1);
        let near = |random: &mut Lcg128Xsl64| {
            let around = [0, 1 << 31, random.next_u64() as u32][below(random, 3) as usize];
            around.wrapping_sub(below(random, 60_000) as u32)
        };
        let starts = [near(&mut random), near(&mut random)];
        let shift = [random.next_u64() as u32, random.next_u64() as u32];
        let others = [starts[1].wrapping_add(shift[1]), starts[0].wrapping_add(shift[0])];
        let hosts = [0, 1].map(|side| Host {
            start: starts[side],
            other_start: others[side],
            total: [0, 1, below(&mut random, 300_000)][below(&mut random, 3) as usize],
            next: 0,
            unacked: 0,
            got: 0,
            early: BTreeMap::new(),
            due: false,
            repeated: 0,
            progress: 0,
        });
        let odds = match seed % 3 {
            0 => Odds { loss: 0, double: 0, late: 0 },
            1 => Odds { loss: 3, double: 2, late: 0 },
            _ => Odds { loss: below(&mut random, 25), double: below(&mut random, 10), late: below(&mut random, 30) },
        };
        World {
            seed,
            odds,
            now: 0,
            serial: 0,
            anchors: [0, 1].map(|side| Anchor::new(starts[side], starts[side], others[side], shift[1 - side])),
            hosts,
            paths: vec![Path { shift, origin: starts, top: starts }],
            of: [[Some(0), None]; 2],
            epoch: [0; 2],
            base: [0; 2],
            rounds: 1 + below(&mut random, 4) as u32,
            cancels: below(&mut random, 2) as u32,
            released: [true; 2],
            under_way: BTreeMap::new(),
            splits: 0,
            both: 0,
            random,
        }
    }

    fn happens(&mut self, percent: u64) -> bool {
        below(&mut self.random, 100) < percent
    }

    fn put(&mut self, path: usize, to: usize, message: Message) {
        let times = if self.happens(self.odds.loss) { 0 } else { 1 + usize::from(self.happens(self.odds.double)) };
        for _ in 0..times {
            let late = if self.happens(self.odds.late) { below(&mut self.random, 200) } else { 0 };
            // Paths differ in length, so the new one may be the faster.
            let at = self.now + 20 + 13 * (path as u64 * 7 % 5) + late;
            self.serial += 1;
            self.under_way.insert((at, self.serial), (path, to, message.clone()));
        }
    }

    /// What an anchor sends enters a path, whose boxes look at it.
    fn emit(&mut self, side: usize, piece: Piece, offset: u64, blocks: &[Block]) {
        let path = self.of[side][usize::from(piece.side == Side::New)].expect("the path is there");
        let seen = &mut self.paths[path];
        let context = format!("seed {}, side {side}, {piece:?}", self.seed);
        assert!(!is_behind(piece.sequence, seen.top[side]), "{context}: boxes see a gap");
        assert!(!is_behind(seen.origin[side], piece.sequence), "{context}: below the path's first number");
        let end = piece.sequence.wrapping_add(piece.length);
        if is_behind(end, seen.top[side]) {
            seen.top[side] = end;
        }
        let acknowledged = piece.acknowledgment.wrapping_sub(seen.shift[1 - side]);
        assert!(!is_behind(acknowledged, seen.top[1 - side]), "{context}: boxes have not seen what is acknowledged");
        assert!(!is_behind(seen.origin[1 - side], acknowledged), "{context}: less is acknowledged than the path's SYN");
        let blocks: Vec<Block> =
            blocks.iter().filter_map(|block| self.anchors[side].block_to(piece.side, *block)).collect();
        for (first, end) in &blocks {
            let of_boxes = [first, end].map(|number| number.wrapping_sub(seen.shift[1 - side]));
            assert!(!is_behind(seen.origin[1 - side], of_boxes[0]), "{context}: a block below the path's first number");
            assert!(!is_behind(of_boxes[1], seen.top[1 - side]), "{context}: boxes have not seen a block");
        }
        let offset = offset + u64::from(piece.skipped);
        self.put(path, 1 - side, Message::Segment { piece, offset, blocks });
    }

    fn host_sends(&mut self, side: usize, offset: u64, length: u64) {
        let host = &mut self.hosts[side];
        host.due = false;
        let (sequence, acknowledgment, blocks) = (host.number(offset), host.acknowledgment(), host.blocks());
        if length == 0 && self.happens(self.odds.loss) {
            return;
        }
        let leaving = self.anchors[side].leave(sequence, length as u32, acknowledgment);
        if let [Some(first), Some(second)] = leaving.pieces {
            self.both += 1;
            self.splits += u32::from(first.length > 0 && second.length > 0);
        }
        for piece in leaving.pieces.into_iter().flatten() {
            self.emit(side, piece, offset, &blocks);
        }
        if let Some(answer) = leaving.answer {
            self.host_gets(side, None, answer, &[]);
        }
    }

    /// A segment for a host: a byte at this offset with its number, what is acknowledged, and what the other is said to have.
    fn host_gets(&mut self, side: usize, data: Option<(u32, u64, u64)>, acknowledgment: u32, blocks: &[Block]) {
        if self.happens(self.odds.loss) {
            return;
        }
        let (now, seed) = (self.now, self.seed);
        let [one, two] = &mut self.hosts;
        let (host, other) = if side == 0 { (one, two) } else { (two, one) };
        let offset = |number: u32| {
            host.unacked.wrapping_add_signed(i64::from(number.wrapping_sub(host.number(host.unacked)) as i32))
        };
        let acked = offset(acknowledgment);
        assert!(acked >= host.unacked, "seed {seed}: host {side} is told of {acked} after {}", host.unacked);
        assert!(acked <= other.got, "seed {seed}: host {side} is told that {acked} bytes arrived, {} have", other.got);
        for (first, end) in blocks {
            let (first, end) = (offset(*first), offset(*end));
            assert!(first < end && other.has(first, end), "seed {seed}: host {side} is told of {first}..{end}");
            assert!(first >= acked, "seed {seed}: host {side} is told that {first}..{end} came twice");
        }
        host.repeated = if acked == host.unacked && data.is_none() { host.repeated + 1 } else { 0 };
        if acked > host.unacked {
            host.unacked = acked;
            host.progress = now;
        }
        if let Some((number, offset, length)) = data {
            assert_eq!(
                number,
                host.other_start.wrapping_add(offset as u32),
                "seed {seed}: host {side} gets another byte"
            );
            host.take(offset, length);
            host.due = true;
        }
    }

    fn arrive(&mut self, path: usize, side: usize, message: Message) {
        let from = 1 - side;
        let shift = self.paths[path].shift;
        match message {
            Message::Syn { epoch, base } => {
                if self.anchors[1].stage() == Stage::Two || epoch < self.epoch[1] {
                    return;
                }
                if epoch > self.epoch[1] {
                    self.epoch[1] = epoch;
                    self.of[1][1] = Some(path);
                    let beginning = Beginning { told: base, arrived: base.wrapping_add(shift[0]) };
                    self.base[1] = self.anchors[1].begin_with(beginning);
                    self.released[1] = false;
                    self.paths[path].origin[1] = self.base[1];
                    self.paths[path].top[1] = self.base[1];
                }
                self.put(path, 0, Message::Answer { epoch, base: self.base[1] });
            }
            Message::Answer { epoch, base } => {
                if epoch == self.epoch[0] && self.of[0][1] == Some(path) {
                    let beginning = Beginning { told: base, arrived: base.wrapping_add(shift[1]) };
                    if let Some(piece) = self.anchors[0].answered(beginning) {
                        self.emit(0, piece, 0, &[]);
                    }
                }
            }
            Message::Segment { piece, offset, blocks } => {
                let Some(at) = self.of[side].iter().position(|known| *known == Some(path)) else { return };
                let arrived = Arrived {
                    side: [Side::Old, Side::New][at],
                    sequence: piece.sequence.wrapping_add(shift[from]),
                    length: piece.length,
                    acknowledgment: piece.acknowledgment.wrapping_sub(shift[side]),
                    beta: piece.beta,
                    knows: piece.knows,
                };
                let arriving = self.anchors[side].arrive(arrived);
                if let Some(reply) = arriving.reply {
                    self.emit(side, reply, 0, &[]);
                }
                if let Some((sequence, acknowledgment)) = arriving.handed {
                    let blocks: Vec<Block> = blocks
                        .iter()
                        .map(|(first, end)| (first.wrapping_sub(shift[side]), end.wrapping_sub(shift[side])))
                        .filter_map(|block| self.anchors[side].block_from(arrived.side, block, arrived.acknowledgment))
                        .collect();
                    let data = (piece.length > 0).then_some((sequence, offset, u64::from(piece.length)));
                    self.host_gets(side, data, acknowledgment, &blocks);
                }
            }
        }
    }

    fn host_step(&mut self, side: usize) {
        let host = &self.hosts[side];
        let left = host.total - host.next;
        let room = WINDOW.saturating_sub(host.next - host.unacked);
        let waits = host.next > host.unacked && self.now > host.progress + PATIENCE;
        if waits || host.repeated == 3 && host.next > host.unacked {
            let (first, most) = (host.unacked, (host.next - host.unacked).min(LONGEST));
            self.hosts[side].progress = self.now;
            self.hosts[side].repeated = 0;
            let length = 1 + below(&mut self.random, most);
            self.host_sends(side, first, length);
        } else if left > 0 && room > 0 && self.happens(20) {
            let (first, length) = (self.hosts[side].next, 1 + below(&mut self.random, left.min(room).min(LONGEST)));
            if self.hosts[side].next == self.hosts[side].unacked {
                self.hosts[side].progress = self.now;
            }
            self.hosts[side].next += length;
            self.host_sends(side, first, length);
        } else if self.hosts[side].due && self.happens(50) {
            let next = self.hosts[side].next;
            self.host_sends(side, next, 0);
        }
    }

    fn anchor_step(&mut self) {
        let again = self.now.is_multiple_of(100);
        let stages = [self.anchors[0].stage(), self.anchors[1].stage()];
        if stages[0] == Stage::One && stages[1] != Stage::Two && self.rounds > 0 && self.happens(1) {
            self.rounds -= 1;
            self.epoch[0] += 1;
            self.released[0] = false;
            let base = self.anchors[0].begin();
            self.base[0] = base;
            let shift = [self.random.next_u64() as u32, self.random.next_u64() as u32];
            self.paths.push(Path { shift, origin: [base; 2], top: [base; 2] });
            self.of[0][1] = Some(self.paths.len() - 1);
            self.put(self.paths.len() - 1, 1, Message::Syn { epoch: self.epoch[0], base });
        } else if stages[0] == Stage::Waiting && self.cancels > 0 && self.happens(5) {
            self.cancels -= 1;
            self.rounds += 1;
            self.anchors[0].cancel();
            self.of[0][1] = None;
        } else if stages[0] == Stage::Waiting && again {
            let path = self.of[0][1].expect("a path");
            self.put(path, 1, Message::Syn { epoch: self.epoch[0], base: self.base[0] });
        }
        for side in [0, 1] {
            if again && let Some(piece) = self.anchors[side].reminder() {
                self.emit(side, piece, 0, &[]);
            }
            let other = 1 - side;
            let may = self.anchors[other].is_done() || self.released[other] && self.epoch[other] == self.epoch[side];
            if self.anchors[side].is_done() && may && self.happens(5) {
                self.anchors[side].release();
                self.released[side] = true;
                self.of[side] = [self.of[side][1], None];
            }
        }
    }

    fn is_over(&self) -> bool {
        let done = |side: usize| {
            self.hosts[side].got == self.hosts[1 - side].total && self.hosts[side].unacked == self.hosts[side].total
        };
        let idle = [0, 1].iter().all(|side| self.anchors[*side].stage() == Stage::One);
        done(0) && done(1) && idle && self.rounds == 0 && self.of[0] == self.of[1]
    }

    fn run(&mut self) {
        while !self.is_over() {
            self.now += 1;
            assert!(self.now < MOST_STEPS, "seed {}: nothing goes on", self.seed);
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= self.now
            {
                let (path, to, message) = entry.remove();
                self.arrive(path, to, message);
            }
            self.host_step(0);
            self.host_step(1);
            self.anchor_step();
        }
    }
}

#[test]
fn bytes_go_from_path_to_path() {
    let (mut splits, mut both, mut changes) = (0, 0, 0);
    for seed in 0..2_000 {
        let mut world = World::new(seed);
        world.run();
        splits += world.splits;
        both += world.both;
        changes += world.epoch[0];
    }
    println!("{changes} changes, {both} segments on both paths, {splits} split");
    assert!(splits > 200 && both > 10_000, "{splits} split, {both} on both paths");
}

#[test]
fn what_enters_a_path_leaves_it_the_same() {
    // The beta is subtracted on the way in and added on the way out: for all eight-bit betas, deltas and shifts, at the wrap.
    for beta in 0..=255_u32 {
        for delta in [0, 1, 255, u32::MAX] {
            for shift in [0, 7, u32::MAX - 3] {
                let start = u32::MAX - 100;
                let mut left = Anchor::new(start, start, 50, 0);
                let mut right = Anchor::new(50, 50, start.wrapping_add(delta), delta);
                let base = left.begin();
                let answer = right.begin_with(Beginning { told: base, arrived: base.wrapping_add(shift) });
                if beta > 0 {
                    left.leave(start, beta, 50);
                }
                let first = left.answered(Beginning { told: answer, arrived: answer }).expect("it says the beta");
                let arrived = |piece: Piece| Arrived {
                    side: Side::New,
                    sequence: piece.sequence.wrapping_add(shift),
                    length: piece.length,
                    acknowledgment: piece.acknowledgment,
                    beta: piece.beta,
                    knows: piece.knows,
                };
                assert_eq!((first.sequence, first.beta), (base, Some(beta)));
                right.arrive(arrived(first));
                let end = start.wrapping_add(beta);
                let [old, new] = left.leave(end, 10, 50).pieces;
                let pieces: VecDeque<Piece> =
                    [old, new].into_iter().flatten().filter(|piece| piece.length > 0).collect();
                assert_eq!(pieces.len(), 1, "all of it is new");
                let handed = right.arrive(arrived(pieces[0])).handed.expect("it is handed on");
                assert_eq!(handed.0, end.wrapping_add(delta), "beta {beta}, delta {delta}, shift {shift}");
            }
        }
    }
}

/// An anchor whose host has sent 1,000 bytes on the old path, and got 2,000 there from 10,000 on; it has acknowledged `given` of them.
fn on_two_paths(given: u32) -> Anchor {
    on_two_paths_with(given, true)
}

/// The same; whether the other anchor says that it knows the beta.
fn on_two_paths_with(given: u32, knows: bool) -> Anchor {
    let mut left = Anchor::new(0, 0, 10_000 + given, 0);
    left.leave(0, 1_000, 10_000 + given);
    let base = left.begin();
    left.answered(Beginning { told: 12_000, arrived: 12_000 }).expect("it says the beta");
    let introduction =
        Arrived { side: Side::New, sequence: 12_000, length: 0, acknowledgment: base, beta: Some(0), knows };
    left.arrive(introduction);
    left
}

/// Which path gets what: its bytes and its acknowledgment.
fn went(anchor: &mut Anchor, sequence: u32, length: u32, acknowledgment: u32) -> Vec<(Side, u32, u32)> {
    let pieces = anchor.leave(sequence, length, acknowledgment).pieces;
    pieces.into_iter().flatten().map(|piece| (piece.side, piece.length, piece.acknowledgment)).collect()
}

#[test]
fn acknowledgments_go_where_the_bytes_travel_that_they_ask_for() {
    use Side::{New, Old};
    // Below the cut-off, for the first time and again, with and without data.
    assert_eq!(went(&mut on_two_paths(500), 1_000, 0, 10_900), [(Old, 0, 10_900)]);
    assert_eq!(went(&mut on_two_paths(500), 1_000, 0, 10_500), [(Old, 0, 10_500)]);
    assert_eq!(went(&mut on_two_paths(500), 1_000, 100, 10_500), [(Old, 0, 10_500), (New, 100, 12_000)]);
    assert_eq!(went(&mut on_two_paths(500), 500, 500, 10_500), [(Old, 500, 10_500)]);
    // Beyond it: the old path is told that all of it arrived, once.
    assert_eq!(went(&mut on_two_paths(500), 1_000, 0, 12_700), [(Old, 0, 12_000), (New, 0, 12_700)]);
    assert_eq!(went(&mut on_two_paths(2_000), 1_000, 0, 12_700), [(New, 0, 12_700)]);
    assert_eq!(went(&mut on_two_paths(2_000), 1_000, 0, 12_000), [(New, 0, 12_000)]);
    assert_eq!(went(&mut on_two_paths(2_000), 1_000, 50, 12_700), [(New, 50, 12_700)]);
    // Old bytes again, with news of new ones; and a segment that lies on both sides of the cut-off.
    assert_eq!(went(&mut on_two_paths(2_000), 0, 1_000, 12_700), [(Old, 1_000, 12_000), (New, 0, 12_700)]);
    assert_eq!(went(&mut on_two_paths(2_000), 0, 1_000, 12_000), [(Old, 1_000, 12_000)]);
    assert_eq!(went(&mut on_two_paths(2_000), 600, 600, 12_700), [(Old, 400, 12_000), (New, 200, 12_700)]);
}

#[test]
fn a_side_is_done_when_it_has_all_and_the_other_one_too() {
    let done = |given, acknowledged: Option<u32>, knows: bool| {
        let mut left = on_two_paths_with(given, knows);
        if let Some(acknowledgment) = acknowledged {
            left.arrive(Arrived {
                side: Side::Old,
                sequence: 12_000,
                length: 0,
                acknowledgment,
                beta: None,
                knows: false,
            });
        }
        left.is_done()
    };
    assert!(done(2_000, Some(1_000), true));
    assert!(!done(1_999, Some(1_000), true), "the host has not got all of the old path");
    assert!(!done(2_000, Some(999), true), "the other host has not");
    assert!(!done(2_000, Some(1_000), false), "the other anchor does not know where the new path begins");
}

#[test]
fn bytes_that_came_twice_are_told_of() {
    let mut left = on_two_paths(500);
    left.arrive(Arrived {
        side: Side::Old,
        sequence: 10_500,
        length: 0,
        acknowledgment: 400,
        beta: None,
        knows: false,
    });
    assert_eq!(left.block_from(Side::Old, (100, 200), 400), Some((100, 200)), "the host has got it twice");
    assert_eq!(left.block_from(Side::Old, (200, 300), 100), None, "that was news when it was sent");
    assert_eq!(left.block_from(Side::Old, (200, 600), 100), Some((400, 600)), "a part still is");
}
