//! Data on two paths: what an anchor does with numbers while a session goes over from an old path to a new one (sections III.D to III.F,
//! with the changes of `docs/chains-models.md`).
//!
//! [`Anchor`] is what the agent at one end of the changed segment keeps for this, for one session. It is without input and output: it
//! is told what the host hands out ([`Anchor::leave`]) and what comes by a path ([`Anchor::arrive`]), and says which bytes and which
//! acknowledgments go where, with which numbers. The rules are those of `models/two_paths.pml`, where Spin checks them for segments of one byte;
//! here segments have any length, and are split where the old path ends.
//!
//! *Host numbers* are those of this anchor's host, for both directions. What is on a path has *path numbers*, as it leaves or arrives here. The
//! *cut-off* of a side is the first byte that belongs to the new path. The new path begins with the number that was next when it was asked
//! for, so all of its numbers are lower by the *beta*, the bytes that went over the old path since: boxes on it see no gap.

use crate::session::is_behind;
use serde::{Deserialize, Serialize};

/// How far a change of the path is at one anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// There is one path.
    One,
    /// The new path is being set up; all goes on the old one.
    Waiting,
    /// Both are used.
    Two,
}

/// One of two paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The path that was there; the only one if there is one.
    Old,
    /// The path that takes its place.
    New,
}

/// What lies between host numbers and the numbers of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Shift {
    /// Subtracted from numbers of what leaves; added to what arriving acknowledgments say.
    pub leaving: u32,
    /// Added to numbers of what arrives; subtracted from what leaving acknowledgments say.
    pub arriving: u32,
}

/// A segment for a path, in its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The path.
    pub side: Side,
    /// Its first byte.
    pub sequence: u32,
    /// Bytes of the host's segment that stand before it.
    pub skipped: u32,
    /// Its bytes; FIN counts as one.
    pub length: u32,
    /// What it acknowledges.
    pub acknowledgment: u32,
    /// The beta of this side, until the other one knows it.
    pub beta: Option<u32>,
    /// Whether this side knows the other one's beta.
    pub knows: bool,
}

/// What becomes of a segment that the host hands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leaving {
    /// What goes on paths, in this order.
    pub pieces: [Option<Piece>; 2],
    /// The host gets an acknowledgment of this instead: the other side has all of it.
    pub answer: Option<u32>,
}

/// A segment that has come by a path, in its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// The path.
    pub side: Side,
    /// Its first byte.
    pub sequence: u32,
    /// Its bytes; FIN counts as one.
    pub length: u32,
    /// What it acknowledges.
    pub acknowledgment: u32,
    /// The other side's beta, if it is told.
    pub beta: Option<u32>,
    /// Whether the other side knows ours.
    pub knows: bool,
}

/// What becomes of a segment that has come by a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arriving {
    /// The host gets it with this first number and this acknowledgment.
    pub handed: Option<(u32, u32)>,
    /// What goes on a path in answer.
    pub reply: Option<Piece>,
}

/// A sequence of numbers, from the first one to that behind the last one.
pub type Block = (u32, u32);

/// The beginning of a new path, as the other side tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Beginning {
    /// The first number behind its SYN, as the other side has sent it.
    pub told: u32,
    /// The same as it has arrived: boxes on the path may shift it.
    pub arrived: u32,
}

/// What one anchor keeps of one session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Anchor {
    stage: Stage,
    old: Shift,
    new: Shift,
    /// Behind the highest number that the host has sent.
    sent: u32,
    /// The highest acknowledgment that has come.
    acknowledged: u32,
    /// The highest acknowledgment that the host has given.
    given: u32,
    /// `sent` when the new path was asked for.
    base: u32,
    /// `sent` when it was taken: older bytes belong to the old path.
    cut: u32,
    /// What is added to the other host's numbers to get those of this host.
    delta: u32,
    beginning: Beginning,
    /// The other side's cut-off, once it is known.
    other_cut: Option<u32>,
    other_knows: bool,
}

impl Anchor {
    /// An anchor of a session with one path that shifts nothing more than hosts know. `sent` is the number behind what the host has sent,
    /// `acknowledged` the other host's latest acknowledgment, `given` that of this host. `delta` is what is added to the other host's numbers to get
    /// those of this host: what all boxes between them add.
    #[must_use]
    pub fn new(sent: u32, acknowledged: u32, given: u32, delta: u32) -> Anchor {
        Anchor {
            stage: Stage::One,
            old: Shift::default(),
            new: Shift::default(),
            sent,
            acknowledged,
            given,
            base: sent,
            cut: sent,
            delta,
            beginning: Beginning { told: 0, arrived: 0 },
            other_cut: None,
            other_knows: false,
        }
    }

    /// How far a change is.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// What lies between host numbers and those of a path.
    #[must_use]
    pub fn shift(&self, side: Side) -> Shift {
        match side {
            Side::Old => self.old,
            Side::New => self.new,
        }
    }

    /// The path by which the other host's byte of this number has come.
    #[must_use]
    pub fn side_of(&self, sequence: u32) -> Side {
        match self.other_cut {
            Some(cut) if self.stage == Stage::Two && !is_behind(cut, sequence) => Side::New,
            _ => Side::Old,
        }
    }

    /// A segment without data for a path that says nothing new: boxes take it for a keep-alive.
    #[must_use]
    pub fn keep_alive(&self, side: Side) -> Piece {
        let (sequence, given) = match side {
            Side::Old if self.stage == Stage::Two => {
                let given = self.other_cut.map_or(self.given, |cut| lower(self.given, cut));
                (lower(self.acknowledged, self.cut), given)
            }
            Side::Old => (self.acknowledged, self.given),
            Side::New => (higher(self.acknowledged, self.cut), self.given),
        };
        self.piece(side, Cut::empty(sequence), given)
    }

    /// What all boxes between the hosts add to the other host's numbers, if that has changed: boxes that change a stream's length.
    pub fn set_delta(&mut self, delta: u32) {
        self.delta = delta;
    }

    /// A new path is asked for, or another attempt at it: the first number behind its SYN.
    pub fn begin(&mut self) -> u32 {
        self.stage = Stage::Waiting;
        self.base = self.sent;
        self.other_cut = None;
        self.base
    }

    /// The right anchor gets the SYN of a new path: the first number behind that of its answer. A repeated SYN is not to be told.
    pub fn begin_with(&mut self, beginning: Beginning) -> u32 {
        self.beginning = beginning;
        self.begin()
    }

    /// There will be no new path.
    pub fn cancel(&mut self) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::One;
        }
    }

    /// The left anchor gets the answer to its SYN: what is new goes over the new path from now on. The piece says so at once, as nobody may have
    /// data.
    pub fn answered(&mut self, beginning: Beginning) -> Option<Piece> {
        if self.stage != Stage::Waiting {
            return None;
        }
        self.beginning = beginning;
        self.take_new();
        Some(self.introduction())
    }

    /// What says the beta again, while the other side may not know it.
    #[must_use]
    pub fn reminder(&self) -> Option<Piece> {
        (self.stage == Stage::Two && !self.other_knows).then(|| self.introduction())
    }

    /// Whether nothing is left to come or to go on the old path, as far as this side sees.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Two
            && self.other_knows
            && !is_behind(self.cut, self.acknowledged)
            && self.other_cut.is_some_and(|cut| !is_behind(cut, self.given))
    }

    /// Both sides are done: the new path is the only one.
    pub fn release(&mut self) {
        if self.stage == Stage::Two {
            self.stage = Stage::One;
            self.old = self.new;
        }
    }

    /// The host hands out a segment, in host numbers.
    pub fn leave(&mut self, sequence: u32, length: u32, acknowledgment: u32) -> Leaving {
        let end = sequence.wrapping_add(length);
        // What the other side has must not go again: it may belong to a path that is gone.
        let known = if is_behind(self.acknowledged, sequence) {
            self.acknowledged.wrapping_sub(sequence).min(length)
        } else {
            0
        };
        if length > 0 && known == length {
            return Leaving { pieces: [None; 2], answer: Some(self.acknowledged) };
        }
        let segment = Cut { sequence: sequence.wrapping_add(known), skipped: known, length: length - known };
        let pieces = match self.stage {
            Stage::One | Stage::Waiting => [Some(self.piece(Side::Old, segment, acknowledgment)), None],
            Stage::Two => self.split(segment, acknowledgment),
        };
        if is_behind(acknowledgment, self.given) {
            self.given = acknowledgment;
        }
        if is_behind(end, self.sent) {
            self.sent = end;
        }
        Leaving { pieces, answer: None }
    }

    /// The host breaks the connection off: both paths learn of it.
    #[must_use]
    pub fn reset(&self, sequence: u32, acknowledgment: u32) -> Leaving {
        let to_old = self.other_cut.map_or(acknowledgment, |cut| lower(acknowledgment, cut));
        let pieces = match self.stage {
            Stage::One | Stage::Waiting => [Some(self.piece(Side::Old, Cut::empty(sequence), acknowledgment)), None],
            Stage::Two => [
                Some(self.piece(Side::Old, Cut::empty(lower(sequence, self.cut)), to_old)),
                Some(self.piece(Side::New, Cut::empty(higher(sequence, self.cut)), acknowledgment)),
            ],
        };
        Leaving { pieces, answer: None }
    }

    /// A reset has come by a path: it only gets other numbers.
    #[must_use]
    pub fn arrive_reset(&self, arrived: Arrived) -> Arriving {
        let shift = self.shift(arrived.side);
        if arrived.side == Side::New && self.other_cut.is_none() {
            return Arriving::default();
        }
        let numbers =
            (arrived.sequence.wrapping_add(shift.arriving), arrived.acknowledgment.wrapping_add(shift.leaving));
        Arriving { handed: Some(numbers), reply: None }
    }

    /// A segment of the host on two paths.
    fn split(&self, segment: Cut, acknowledgment: u32) -> [Option<Piece>; 2] {
        let (old, new) = segment.at(self.cut);
        // It asks for bytes of the old path, or acknowledges some for the first time.
        let speaks_to_old =
            self.other_cut.is_none_or(|cut| is_behind(cut, acknowledgment) || is_behind(cut, self.given));
        let to_old = self.other_cut.map_or(acknowledgment, |cut| lower(acknowledgment, cut));
        let first = match old {
            Some(part) => Some(self.piece(Side::Old, part, to_old)),
            None if speaks_to_old => Some(self.piece(Side::Old, Cut::empty(lower(self.sent, self.cut)), to_old)),
            None => None,
        };
        let says_new = self.other_cut.is_some_and(|cut| {
            !is_behind(cut, acknowledgment) && (segment.length == 0 || is_behind(acknowledgment, cut))
        });
        let second = match new {
            Some(part) => Some(self.piece(Side::New, part, acknowledgment)),
            None if says_new => Some(self.piece(Side::New, Cut::empty(higher(self.sent, self.cut)), acknowledgment)),
            None => None,
        };
        [first, second]
    }

    /// A segment has come by a path.
    pub fn arrive(&mut self, arrived: Arrived) -> Arriving {
        match arrived.side {
            Side::Old => self.arrive_by_old(arrived),
            Side::New => self.arrive_by_new(arrived),
        }
    }

    fn arrive_by_old(&mut self, arrived: Arrived) -> Arriving {
        let sequence = arrived.sequence.wrapping_add(self.old.arriving);
        let acknowledgment = arrived.acknowledgment.wrapping_add(self.old.leaving);
        if is_behind(acknowledgment, self.acknowledged) {
            self.acknowledged = acknowledgment;
        }
        let end = sequence.wrapping_add(arrived.length);
        if self.stage == Stage::Two && arrived.length > 0 && !is_behind(end, self.given) {
            // The host has it, and that was lost on the old path. The host may have nothing to say there any more.
            let to_old = self.other_cut.map_or(self.given, |cut| lower(self.given, cut));
            let reply = self.piece(Side::Old, Cut::empty(lower(self.sent, self.cut)), to_old);
            return Arriving { handed: None, reply: Some(reply) };
        }
        Arriving { handed: Some((sequence, self.acknowledged)), reply: None }
    }

    fn arrive_by_new(&mut self, arrived: Arrived) -> Arriving {
        let Some(introduction) = self.learn(arrived.beta, arrived.knows) else {
            // All that the new path brings says the beta until this side has said that it knows it.
            return Arriving::default();
        };
        let reply = introduction.filter(|_| arrived.length == 0 || arrived.beta.is_none());
        let acknowledgment = arrived.acknowledgment.wrapping_add(self.new.leaving);
        // An acknowledgment of the SYN alone says nothing of the old path.
        if acknowledgment != self.cut && is_behind(acknowledgment, self.acknowledged) {
            self.acknowledged = acknowledgment;
        }
        Arriving { handed: Some((arrived.sequence.wrapping_add(self.new.arriving), self.acknowledged)), reply }
    }

    /// The other side tells its beta apart from segments, or that it knows this one: what is to be told in answer.
    pub fn told(&mut self, beta: Option<u32>, knows: bool) -> Option<Piece> {
        self.learn(beta, knows).flatten()
    }

    /// `None` if nothing is known of the new path. The inner value says what this side says of it, if it should.
    fn learn(&mut self, beta: Option<u32>, knows: bool) -> Option<Option<Piece>> {
        if self.stage == Stage::One {
            return None;
        }
        if let Some(beta) = beta {
            let beyond = beta.wrapping_add(self.delta);
            self.other_cut = Some(self.beginning.told.wrapping_add(beyond));
            self.new.arriving = beyond.wrapping_sub(self.beginning.arrived.wrapping_sub(self.beginning.told));
        }
        self.other_cut?;
        let takes = self.stage == Stage::Waiting;
        if takes {
            self.take_new();
        }
        let introduction = (takes || beta.is_some()).then(|| self.introduction());
        self.other_knows |= knows;
        Some(introduction)
    }

    /// What the host has told to have (RFC 2018), as it goes on a path; `None` if that path has nothing of it.
    #[must_use]
    pub fn block_to(&self, side: Side, (first, end): Block) -> Option<Block> {
        let shift = self.shift(side);
        let (first, end) = match (self.stage, self.other_cut, side) {
            (Stage::Two, Some(cut), Side::Old) => (first, lower(end, cut)),
            (Stage::Two, Some(cut), Side::New) => (higher(first, cut), end),
            // Nothing has come by it yet.
            (_, None, Side::New) => return None,
            _ => (first, end),
        };
        is_behind(end, first).then(|| (first.wrapping_sub(shift.arriving), end.wrapping_sub(shift.arriving)))
    }

    /// What a path tells that the other host has, in host numbers. `acknowledgment` is that of the same segment. What is older than the
    /// acknowledgment that the host gets is left out: the host would take it for bytes that have come twice (RFC 2883).
    #[must_use]
    pub fn block_from(&self, side: Side, (first, end): Block, acknowledgment: u32) -> Option<Block> {
        let shift = self.shift(side).leaving;
        let own = acknowledgment.wrapping_add(shift);
        let (first, end) = (first.wrapping_add(shift), end.wrapping_add(shift));
        if is_behind(own, first) {
            return Some((first, end));
        }
        let first = higher(first, self.acknowledged);
        is_behind(end, first).then_some((first, end))
    }

    /// The new path is ready at both ends.
    fn take_new(&mut self) {
        self.stage = Stage::Two;
        self.cut = self.sent;
        self.new.leaving = self.cut.wrapping_sub(self.base);
        self.other_knows = false;
    }

    /// Says the beta, without a byte.
    fn introduction(&self) -> Piece {
        self.piece(Side::New, Cut::empty(self.cut), self.given)
    }

    fn piece(&self, side: Side, part: Cut, acknowledgment: u32) -> Piece {
        let shift = self.shift(side);
        let is_new = side == Side::New;
        let acknowledgment = match self.other_cut {
            // At least the path's SYN, which is no byte of the session.
            None if is_new => self.beginning.arrived,
            Some(cut) if is_new => higher(acknowledgment, cut).wrapping_sub(shift.arriving),
            _ => acknowledgment.wrapping_sub(shift.arriving),
        };
        Piece {
            side,
            sequence: part.sequence.wrapping_sub(shift.leaving),
            skipped: part.skipped,
            length: part.length,
            acknowledgment,
            beta: (is_new && !self.other_knows).then(|| self.cut.wrapping_sub(self.base)),
            knows: is_new && self.other_cut.is_some(),
        }
    }
}

/// A part of the host's segment, in host numbers.
#[derive(Clone, Copy)]
struct Cut {
    sequence: u32,
    skipped: u32,
    length: u32,
}

impl Cut {
    /// No byte, at this number.
    fn empty(sequence: u32) -> Cut {
        Cut { sequence, skipped: 0, length: 0 }
    }

    /// What lies before this number, and what does not.
    fn at(self, number: u32) -> (Option<Cut>, Option<Cut>) {
        let before = if is_behind(number, self.sequence) { number.wrapping_sub(self.sequence) } else { 0 };
        let before = before.min(self.length);
        let old = Cut { length: before, ..self };
        let new = Cut {
            sequence: self.sequence.wrapping_add(before),
            skipped: self.skipped + before,
            length: self.length - before,
        };
        (Some(old).filter(|part| part.length > 0), Some(new).filter(|part| part.length > 0))
    }
}

fn lower(number: u32, other: u32) -> u32 {
    if is_behind(number, other) { other } else { number }
}

fn higher(number: u32, other: u32) -> u32 {
    if is_behind(number, other) { number } else { other }
}
