//! The designs that are compared, and the memory that each takes.

use crate::as_published::AsPublished;
use crate::bucketed::{Bucketed, Choice, Direction, Drain, Shape};
use crate::cuckoo::Cuckoo;
use crate::hash::Hash;
use crate::model::Model;
use crate::theory::try_fails;
use crate::tick_map::TickMap;

/// Timers of a full calendar: the places of the published one. Loads are shares of it, in every design.
pub const FULL: u32 = 16_384;
/// Bits of a place of the published calendar: 32 of time, 32 of what is to be done.
const WHOLE_BITS: u64 = 64;
/// Bits of a time.
const TIME_BITS: u64 = 32;
/// Bits of a timer's number.
const ID_BITS: u64 = 14;
/// What is to be done, if it lies in a table by the timer's number instead.
const ACTION_BITS: u64 = WHOLE_BITS - TIME_BITS - ID_BITS;
/// Moves after which a cuckoo insertion gives up.
const MOST_MOVES: u32 = 10_000;
/// Tries where the published scheme knows no end.
const ENDLESS: u32 = 4_096;

/// What holds the timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// Rows and ways. `split`: a place holds only what the row does not say of the time, and the timer's number; what is to be done
    /// lies in a table by that number.
    Bucketed {
        /// Its parameters.
        shape: Shape,
        /// How a place is laid out.
        split: bool,
    },
    /// Four tables of `2^row_bits` places.
    Cuckoo {
        /// Rows of a table, as a power of two.
        row_bits: u32,
    },
    /// One place for each of `2^span_bits` ticks.
    TickMap {
        /// Ticks, as a power of two.
        span_bits: u32,
    },
    /// The published source with its faults.
    AsPublished {
        /// Rows of a table, as a power of two.
        row_bits: u32,
    },
}

/// A design with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// For tables and charts.
    pub name: &'static str,
    /// What it is.
    pub structure: Structure,
}

/// The published table with another choice.
const fn seed(choice: Choice) -> Shape {
    Shape {
        tables: 4,
        row_bits: 12,
        ways: 1,
        choice,
        hash: Hash::Strong,
        window_bits: 0,
        most_tries: ENDLESS,
        direction: Direction::Later,
        stash: 0,
        drain: Drain::Never,
    }
}

const fn buckets(tables: usize, row_bits: u32, ways: usize) -> Shape {
    Shape { tables, row_bits, ways, choice: Choice::LeastLoaded, ..seed(Choice::First) }
}

/// At most 8 tries, then a stash.
const fn capped(shape: Shape, stash: usize, drain: Drain) -> Shape {
    Shape { most_tries: 8, hash: Hash::MultiplyShift, stash, drain, ..shape }
}

const fn whole(name: &'static str, shape: Shape) -> Design {
    Design { name, structure: Structure::Bucketed { shape, split: false } }
}

const fn split(name: &'static str, shape: Shape) -> Design {
    Design { name, structure: Structure::Bucketed { shape, split: true } }
}

impl Design {
    /// The published calendar.
    pub const FIRST_FREE: Design = whole("4 x 4096 x 1, first free", seed(Choice::First));
    /// The same, for which the published formula is exact.
    pub const RANDOM_FREE: Design = whole("4 x 4096 x 1, random free", seed(Choice::Random));
    /// What the paper compares with.
    pub const CUCKOO: Design = Design { name: "cuckoo 4 x 4096 x 1", structure: Structure::Cuckoo { row_bits: 12 } };
    /// The published source, for its losses.
    pub const AS_PUBLISHED: Design =
        Design { name: "published source", structure: Structure::AsPublished { row_bits: 10 } };
    /// The tables of the published source, without its faults.
    pub const SMALL: Design =
        whole("4 x 1024 x 1, first free", Shape { row_bits: 10, most_tries: 1_000, ..seed(Choice::First) });
    /// Rows of four, at most 8 ticks, a stash that is drained by one try for each timer that fires.
    pub const BUCKETS_OF_FOUR: Design =
        whole("4 x 1024 x 4, 8 tries, stash 32", capped(buckets(4, 10, 4), 32, Drain::OneTry));
    /// The proposal for hardware.
    pub const PROPOSAL: Design = split(
        "4 x 1024 x 5 split, windows of 2",
        Shape { window_bits: 1, ..capped(buckets(4, 10, 5), 32, Drain::OneTry) },
    );
    /// The same with earlier windows, so that nothing is ever late.
    pub const NEVER_LATE: Design = split(
        "4 x 1024 x 5 split, never late",
        Shape { window_bits: 1, direction: Direction::Earlier, ..capped(buckets(4, 10, 5), 32, Drain::OneTry) },
    );
    /// The hierarchical bitmap with as many ticks as the memory has room for.
    pub const TICK_MAP: Design =
        Design { name: "bitmap of 32768 ticks", structure: Structure::TickMap { span_bits: 15 } };

    /// The designs of the comparison over loads, without a bound on the tries first.
    pub const COMPARED: [Design; 14] = [
        Design::FIRST_FREE,
        whole("2 x 2048 x 4, least loaded", buckets(2, 11, 4)),
        whole("4 x 2048 x 2, least loaded", buckets(4, 11, 2)),
        whole("2 x 1024 x 8, least loaded", buckets(2, 10, 8)),
        whole("4 x 1024 x 4, first free", Shape { choice: Choice::First, ..buckets(4, 10, 4) }),
        whole("4 x 1024 x 4, least loaded", buckets(4, 10, 4)),
        whole("4 x 1024 x 4, windows of 8", Shape { window_bits: 3, ..buckets(4, 10, 4) }),
        whole("2 x 2048 x 4, 8 tries, stash 64", capped(buckets(2, 11, 4), 64, Drain::OneTry)),
        Design::BUCKETS_OF_FOUR,
        whole(
            "4 x 1024 x 4, never late, stash 32",
            Shape { direction: Direction::Earlier, ..capped(buckets(4, 10, 4), 32, Drain::OneTry) },
        ),
        split("4 x 1024 x 5 split, single ticks", capped(buckets(4, 10, 5), 32, Drain::OneTry)),
        Design::PROPOSAL,
        Design::NEVER_LATE,
        Design::TICK_MAP,
    ];

    /// The designs with a stash, in long runs: how it is drained decides.
    pub const STASHED: [Design; 7] = [
        whole("4 x 1024 x 4, 8 tries, not drained", capped(buckets(4, 10, 4), 4_096, Drain::Never)),
        whole("4 x 1024 x 4, 8 tries, one-try drain", capped(buckets(4, 10, 4), 4_096, Drain::OneTry)),
        whole("4 x 1024 x 4, 8 tries, best drain", capped(buckets(4, 10, 4), 4_096, Drain::Best)),
        whole(
            "4 x 1024 x 4, 4 tries, best drain",
            Shape { most_tries: 4, ..capped(buckets(4, 10, 4), 4_096, Drain::Best) },
        ),
        whole(
            "4 x 1024 x 4, windows of 8, one window",
            Shape { window_bits: 3, most_tries: 1, ..capped(buckets(4, 10, 4), 4_096, Drain::Best) },
        ),
        whole("2 x 2048 x 4, 8 tries, best drain", capped(buckets(2, 11, 4), 4_096, Drain::Best)),
        Design::PROPOSAL,
    ];

    /// The same design with another hash.
    pub fn with_hash(self, hash: Hash) -> Design {
        match self.structure {
            Structure::Bucketed { shape, split } => {
                Design { structure: Structure::Bucketed { shape: Shape { hash, ..shape }, split }, ..self }
            }
            _ => self,
        }
    }

    /// The hash of its tables.
    pub fn hash(&self) -> &'static str {
        match self.structure {
            Structure::Bucketed { shape, .. } => shape.hash.name(),
            Structure::Cuckoo { .. } => Hash::Strong.name(),
            Structure::TickMap { .. } => "none",
            Structure::AsPublished { .. } => Hash::Published.name(),
        }
    }

    /// An empty one for the timers 0 to `timers - 1`.
    pub fn build(&self, timers: u32, seed: u64) -> Box<dyn Model> {
        match self.structure {
            Structure::Bucketed { shape, .. } => Box::new(Bucketed::new(shape, timers, seed)),
            Structure::Cuckoo { row_bits } => Box::new(Cuckoo::new(row_bits, Hash::Strong, MOST_MOVES, timers, seed)),
            Structure::TickMap { span_bits } => Box::new(TickMap::new(span_bits, 1 << span_bits, timers)),
            Structure::AsPublished { row_bits } => Box::new(AsPublished::new(row_bits, timers)),
        }
    }

    /// The timers of load 1.
    pub fn full(&self) -> u32 {
        match self.structure {
            Structure::Bucketed { shape, split: false } => shape.places() as u32,
            Structure::AsPublished { row_bits } => 4 << row_bits,
            _ => FULL,
        }
    }

    /// Places that hold timers, the stash left out.
    pub fn places(&self) -> u64 {
        match self.structure {
            Structure::Bucketed { shape, .. } => shape.places() as u64,
            Structure::Cuckoo { row_bits } | Structure::AsPublished { row_bits } => 4 << row_bits,
            Structure::TickMap { span_bits } => 1 << span_bits,
        }
    }

    /// Bits of one place.
    pub fn place_bits(&self) -> u64 {
        match self.structure {
            // The row says so many bits of the product of time and constant. One that was stored under an earlier window must say how
            // much earlier.
            Structure::Bucketed { shape, split: true } => {
                let earlier = match shape.direction {
                    Direction::Later => 0,
                    Direction::Earlier => u64::from(shape.most_tries.next_power_of_two().ilog2()),
                };
                TIME_BITS - u64::from(shape.row_bits) + earlier + ID_BITS
            }
            Structure::TickMap { .. } => ID_BITS,
            _ => WHOLE_BITS,
        }
    }

    /// Bits of all memory: places, stash, bitmaps, and what is to be done where it lies apart.
    pub fn memory_bits(&self) -> u64 {
        let actions = u64::from(FULL) * ACTION_BITS;
        let beside = match self.structure {
            // A place of the stash has the whole time, and says whether it is taken.
            Structure::Bucketed { shape, split: true } => actions + shape.stash as u64 * (TIME_BITS + ID_BITS + 1),
            Structure::Bucketed { shape, split: false } => shape.stash as u64 * (WHOLE_BITS + 1),
            Structure::TickMap { span_bits } => actions + TickMap::map_bits(span_bits),
            Structure::Cuckoo { .. } | Structure::AsPublished { .. } => 0,
        };
        self.places() * self.place_bits() + beside
    }

    /// Tries of an insertion on average, by theory, where there is one: no bound on the tries, a table used for long.
    pub fn expected_tries(&self, load: f64) -> Option<f64> {
        let Structure::Bucketed { shape, .. } = self.structure else { return None };
        if shape.ways > 1 && shape.choice != Choice::LeastLoaded {
            return None;
        }
        let of_places = load * f64::from(self.full()) / shape.places() as f64;
        Some(1.0 / (1.0 - try_fails(shape.tables as u32, shape.ways as u32, of_places)))
    }

    /// The most ticks that a timer fires late, if there is such a bound below the number of timers.
    pub fn most_shift(&self) -> Option<u64> {
        match self.structure {
            Structure::Bucketed { shape, .. } => Some(shape.most_shift()).filter(|_| shape.most_tries < 1_000),
            Structure::Cuckoo { .. } => Some(0),
            Structure::TickMap { .. } | Structure::AsPublished { .. } => None,
        }
    }

    /// The most cycles of an insertion, if they are bounded: one for each try and one to write. With windows of several ticks a port reads
    /// and writes in turn, two cycles for each try.
    pub fn most_cycles(&self) -> Option<u64> {
        match self.structure {
            Structure::Bucketed { shape, .. } => {
                let tries = u64::from(shape.most_tries);
                let cycles = if shape.window_bits > 0 { 2 * tries } else { tries + 1 };
                Some(cycles).filter(|_| shape.most_tries < 1_000)
            }
            // Down the map and up again, place and map written.
            Structure::TickMap { span_bits } => Some(2 * u64::from(span_bits.div_ceil(6)) + 1),
            Structure::Cuckoo { .. } => None,
            Structure::AsPublished { .. } => Some(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proposal_takes_no_more_than_the_published_memory() {
        let published = Design::FIRST_FREE.memory_bits();
        assert_eq!(published, 1 << 20);
        assert_eq!(Design::PROPOSAL.place_bits(), 36);
        assert!(Design::PROPOSAL.memory_bits() <= published, "{}", Design::PROPOSAL.memory_bits());
        assert!(Design::TICK_MAP.memory_bits() <= published);
    }

    #[test]
    fn names_are_told_apart() {
        for designs in [&Design::COMPARED[..], &Design::STASHED[..]] {
            let mut names: Vec<_> = designs.iter().map(|design| design.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), designs.len());
        }
    }
}
