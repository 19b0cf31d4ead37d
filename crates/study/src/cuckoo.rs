//! A cuckoo table: a timer without a free place takes another's, which looks for a new one.

use crate::dice::Dice;
use crate::hash::{Hash, Hasher};
use crate::model::{Model, Placed, Refusal, Tick};

/// No tick: the place is free.
const FREE: Tick = Tick::MAX;
const NOWHERE: u32 = u32::MAX;

/// Four tables with rows of one place. Timers fire at the very tick; five of one tick are too many.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    row_bits: u32,
    most_moves: u32,
    hasher: Hasher,
    dice: Dice,
    /// The tick of each place.
    keys: Vec<Tick>,
    /// The timer of each place.
    ids: Vec<u32>,
    /// The place of each timer.
    places: Vec<u32>,
    /// Places of the insertion that is going on, in the order in which timers were put there.
    path: Vec<usize>,
    now: Tick,
    pending: usize,
}

impl Cuckoo {
    /// How many tables.
    pub const TABLES: usize = 4;

    /// Empty tables for the timers 0 to `timers - 1`. An insertion that has moved `most_moves` timers is undone and refused.
    pub fn new(row_bits: u32, hash: Hash, most_moves: u32, timers: u32, seed: u64) -> Cuckoo {
        let mut dice = Dice::new(seed);
        Cuckoo {
            row_bits,
            most_moves,
            hasher: Hasher::new(hash, Self::TABLES, row_bits, &mut dice),
            dice,
            keys: vec![FREE; Self::TABLES << row_bits],
            ids: vec![0; Self::TABLES << row_bits],
            places: vec![NOWHERE; timers as usize],
            path: Vec::new(),
            now: 0,
            pending: 0,
        }
    }

    fn place(&self, table: usize, key: Tick) -> usize {
        (table << self.row_bits) + self.hasher.row(table, key)
    }

    fn put(&mut self, place: usize, key: Tick, id: u32) {
        self.keys[place] = key;
        self.ids[place] = id;
        self.places[id as usize] = place as u32;
    }
}

impl Model for Cuckoo {
    fn insert(&mut self, expiry: Tick, id: u32) -> Result<Placed, Refusal> {
        match self.places.get(id as usize) {
            None => return Err(Refusal::NoTimer),
            Some(place) if *place != NOWHERE => return Err(Refusal::Armed),
            Some(_) if expiry <= self.now => return Err(Refusal::Past),
            Some(_) => {}
        }
        self.path.clear();
        let (mut key, mut holder, mut came_from) = (expiry, id, usize::MAX);
        loop {
            let free = (0..Self::TABLES).map(|table| self.place(table, key)).find(|place| self.keys[*place] == FREE);
            let moves = self.path.len() as u32;
            if let Some(place) = free {
                self.put(place, key, holder);
                self.pending += 1;
                return Ok(Placed { shift: 0, tries: moves + 1, moves, stashed: false });
            }
            if moves == self.most_moves {
                break;
            }
            // Not back to the table that it was just driven out of.
            let others = if came_from < Self::TABLES { Self::TABLES - 1 } else { Self::TABLES };
            let chosen = self.dice.below(others as u64) as usize;
            let table = if chosen >= came_from { chosen + 1 } else { chosen };
            let place = self.place(table, key);
            let driven_out = (self.keys[place], self.ids[place]);
            self.put(place, key, holder);
            self.path.push(place);
            (key, holder) = driven_out;
            came_from = table;
        }
        let tries = self.path.len() as u32 + 1;
        while let Some(place) = self.path.pop() {
            let back = (self.keys[place], self.ids[place]);
            self.put(place, key, holder);
            (key, holder) = back;
        }
        self.places[id as usize] = NOWHERE;
        Err(Refusal::Full { tries })
    }

    fn expire(&mut self, tick: Tick, fired: &mut Vec<u32>) {
        self.now = tick;
        for table in 0..Self::TABLES {
            let place = self.place(table, tick);
            if self.keys[place] == tick {
                self.keys[place] = FREE;
                self.places[self.ids[place] as usize] = NOWHERE;
                self.pending -= 1;
                fired.push(self.ids[place]);
            }
        }
    }

    fn cancel(&mut self, id: u32) -> bool {
        match self.places.get_mut(id as usize) {
            Some(place) if *place != NOWHERE => {
                self.keys[*place as usize] = FREE;
                *place = NOWHERE;
                self.pending -= 1;
                true
            }
            _ => false,
        }
    }

    fn next_visit(&self, id: u32) -> Option<Tick> {
        let place = self.places.get(id as usize).copied().filter(|place| *place != NOWHERE)?;
        Some(self.keys[place as usize])
    }

    fn pending(&self) -> usize {
        self.pending
    }
}
