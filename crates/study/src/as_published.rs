//! The published source, as it is rather than as it is described.

use crate::dice::Dice;
use crate::hash::{Hash, Hasher};
use crate::model::{Model, Placed, Refusal, Tick};

/// No tick: the place is free.
const FREE: Tick = Tick::MAX;

/// Four tables with rows of one place, and two faults of the published source:
///
/// - The sign that no place is free comes one clock after the insertion is taken for done. There is no second try: the timer is lost, and
///   nobody is told.
/// - Of several timers of one tick only the one in the first table fires. The others stay until the counter has come round.
///
/// It is here to be compared with; it breaks the promise of [`Model`]. It has no cancellation.
#[derive(Clone, Debug)]
pub struct AsPublished {
    row_bits: u32,
    hasher: Hasher,
    keys: Vec<Tick>,
    ids: Vec<u32>,
    ticks: Vec<Option<Tick>>,
    pending: usize,
}

impl AsPublished {
    const TABLES: usize = 4;

    /// Empty tables for the timers 0 to `timers - 1`.
    pub fn new(row_bits: u32, timers: u32) -> AsPublished {
        let hasher = Hasher::new(Hash::Published, Self::TABLES, row_bits, &mut Dice::new(0));
        let places = Self::TABLES << row_bits;
        let (keys, ids, ticks) = (vec![FREE; places], vec![0; places], vec![None; timers as usize]);
        AsPublished { row_bits, hasher, keys, ids, ticks, pending: 0 }
    }

    fn place(&self, table: usize, key: Tick) -> usize {
        (table << self.row_bits) + self.hasher.row(table, key)
    }
}

impl Model for AsPublished {
    fn insert(&mut self, expiry: Tick, id: u32) -> Result<Placed, Refusal> {
        *self.ticks.get_mut(id as usize).ok_or(Refusal::NoTimer)? = Some(expiry);
        self.pending += 1;
        let free = (0..Self::TABLES).map(|table| self.place(table, expiry)).find(|place| self.keys[*place] == FREE);
        if let Some(place) = free {
            self.keys[place] = expiry;
            self.ids[place] = id;
        }
        Ok(Placed { shift: 0, tries: 1, moves: 0, stashed: false })
    }

    fn expire(&mut self, tick: Tick, fired: &mut Vec<u32>) {
        let first = (0..Self::TABLES).map(|table| self.place(table, tick)).find(|place| self.keys[*place] == tick);
        if let Some(place) = first {
            self.keys[place] = FREE;
            self.ticks[self.ids[place] as usize] = None;
            self.pending -= 1;
            fired.push(self.ids[place]);
        }
    }

    fn cancel(&mut self, _id: u32) -> bool {
        false
    }

    fn next_visit(&self, id: u32) -> Option<Tick> {
        self.ticks.get(id as usize).copied().flatten()
    }

    fn pending(&self) -> usize {
        self.pending
    }
}
