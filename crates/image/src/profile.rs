//! Profiles: how large an image a platform takes.

use crate::chains::{Chains, event_name, state_name};
use crate::limits;
use crate::types::{Event, Feature, Image, Row};
use std::fmt;

/// What a platform has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Registers, scratch ones included.
    pub registers: usize,
    /// Conditions.
    pub conditions: usize,
    /// Rows.
    pub rows: usize,
    /// Operations of one row or preparation, blocks written out.
    pub operations: usize,
    /// Blocks.
    pub blocks: usize,
    /// Packet slots of an instance.
    pub slots: usize,
    /// Rounds of repeats inside one another.
    pub rounds: usize,
    /// Operations of one event at worst ([`Image::worst_case`]); `None`: any number.
    pub event_operations: Option<u64>,
    /// Settings of timers that an instance may have pending where the program does not say; `None`: as the language has it.
    pub timers: Option<u32>,
    /// Flows that wait for all turns together.
    pub waiting: usize,
    /// What it has no means for.
    pub lacks: &'static [Feature],
}

/// The software engines: as much as the verifier allows.
pub const SOFTWARE: Profile = Profile {
    name: "software",
    registers: limits::MAX_REGISTERS,
    conditions: limits::MAX_CONDITIONS,
    rows: limits::MAX_ROWS,
    operations: limits::MAX_OPERATIONS,
    blocks: limits::MAX_BLOCKS,
    slots: limits::MAX_SLOTS,
    rounds: limits::MAX_ROUNDS as usize,
    event_operations: None,
    timers: None,
    waiting: limits::MAX_TURNS * limits::MAX_WAITING as usize,
    lacks: &[],
};

/// The hardware pipeline.
pub const FPGA: Profile = Profile {
    name: "fpga",
    registers: 16,
    conditions: 32,
    rows: 64,
    operations: 16,
    blocks: 64,
    slots: 8,
    rounds: 64,
    event_operations: Some(4_096),
    timers: Some(16),
    waiting: 1_024,
    lacks: &[],
};

/// All profiles.
pub const PROFILES: [Profile; 2] = [SOFTWARE, FPGA];

/// One way in which an image is too large for a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excess {
    /// What there is too much of.
    pub what: String,
    /// How much the profile has room for.
    pub limit: usize,
    /// How much the image has.
    pub found: usize,
    /// Where in the document, e.g. `rows[12].operations`.
    pub place: String,
    /// Source line of what is too much; 0: unknown.
    pub line: u32,
    /// Which source that is, as in [`Row::source`].
    pub source: u16,
    /// What it is there, in words: state and event, and the first operation that there is no room for. May be empty.
    pub at: String,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Excess { what, limit, found, place, .. } = self;
        write!(f, "{place}: {found} {what}, {} more than the {limit} of the profile", found - limit)
    }
}

impl Profile {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<Profile> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// What `image` uses and the platform has no means for.
    pub fn missing(&self, image: &Image) -> Vec<Feature> {
        image.features.iter().copied().filter(|feature| self.lacks.contains(feature)).collect()
    }

    /// All ways in which `image` is too large; none if it fits.
    pub fn exceeded(&self, image: &Image) -> Vec<Excess> {
        let mut found = Vec::new();
        let mut check = |what: String, limit: usize, count: usize, place: String, row: Option<&Row>, at: String| {
            let (line, source) = row.map_or((0, 0), |row| (row.line, row.source));
            found.push(Excess { what, limit, found: count, place, line, source, at });
        };
        let scratch = image.registers.iter().filter(|register| register.scratch).count();
        let first_row_beyond = |limit: usize| image.rows.get(limit);
        let tests_beyond = |row: &&Row| row.when.iter().any(|(test, _)| usize::from(*test) >= self.conditions);
        let first_test_beyond = image.rows.iter().find(tests_beyond);
        let waiting: u32 = image.turns.iter().map(|turns| turns.most).sum();
        let (repeat, rounds) = image.most_rounds().unwrap_or((0, 0));
        let repeated = |row: &&Row| {
            image.repeats.get(repeat).is_some_and(|it| (row.state, row.event) == (it.state, Event::Internal(it.event)))
        };
        let first_repeated = image.rows.iter().find(repeated);
        for (what, limit, count, place, row) in [
            (
                format!("registers (of which {scratch} scratch)"),
                self.registers,
                image.registers.len(),
                "registers",
                None,
            ),
            ("conditions".into(), self.conditions, image.conditions.len(), "conditions", first_test_beyond),
            ("rows".into(), self.rows, image.rows.len(), "rows", first_row_beyond(self.rows)),
            ("blocks".into(), self.blocks, image.blocks.len(), "blocks", None),
            ("packet slots".into(), self.slots, image.slots.len(), "slots", None),
            ("flows waiting for turns".into(), self.waiting, waiting as usize, "turns", None),
            ("rounds of repeats".into(), self.rounds, rounds as usize, "repeats", first_repeated),
        ] {
            if count > limit {
                check(what, limit, count, place.into(), row, String::new());
            }
        }
        let chains = Chains::new(image);
        let worst = image.worst_case().zip(self.event_operations);
        if let Some((worst, limit)) = worst.filter(|(worst, limit)| worst.operations > *limit) {
            let row = image.rows.iter().find(|row| (row.state, row.event) == (worst.state, worst.event));
            let (state, event) = (state_name(image, worst.state), event_name(image, &chains, worst.state, worst.event));
            check(
                "operations of an event at worst, with all rounds of repeats".into(),
                limit as usize,
                usize::try_from(worst.operations).unwrap_or(usize::MAX),
                "rows".into(),
                row,
                format!("state {state}, {event}"),
            );
        }
        let rows =
            image.rows.iter().enumerate().map(|(index, row)| ("rows", index, row.state, row.event, &row.operations));
        let preparations = image.preparations.iter().enumerate();
        let preparations = preparations.map(|(index, it)| ("preparations", index, it.state, it.event, &it.operations));
        for (list, index, state, event, operations) in rows.chain(preparations) {
            let Some(operation) = image.written_out(operations).nth(self.operations) else { continue };
            let row = match list {
                "rows" => image.rows.get(index),
                _ => image.rows.iter().find(|row| (row.state, row.event) == (state, event)),
            };
            let at = format!(
                "state {}, {}; operation {} is `{}`",
                state_name(image, state),
                event_name(image, &chains, state, event),
                self.operations + 1,
                operation.name()
            );
            check(
                "operations".into(),
                self.operations,
                image.written_out_length(operations),
                format!("{list}[{index}].operations"),
                row,
                at,
            );
        }
        found
    }
}
