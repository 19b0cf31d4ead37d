//! Tables of rows of ways, all tables read at once, and a stash.

use crate::dice::Dice;
use crate::hash::{Hash, Hasher};
use crate::model::{Model, Placed, Refusal, Tick};

/// Of the places that are free, which is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// In the first table that has one.
    First,
    /// In a table by chance, of those that have one.
    Random,
    /// In the row with the most of them, the first of equals.
    LeastLoaded,
}

/// Where the next try is made if no place is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// With the window after: the timer fires later than asked for.
    Later,
    /// With the window before: the timer is met too early, held, and fires at the very tick.
    Earlier,
}

/// When timers of the stash go back to the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drain {
    /// Never: they stay until they fire.
    Never,
    /// For each place that becomes free, the first that fits anywhere within reach. More than hardware can look up in a tick.
    Best,
    /// For each place that becomes free, one try with one window of one of them, in turn: one read.
    OneTry,
}

/// Parameters of [`Bucketed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// How many tables.
    pub tables: usize,
    /// Each with `2^row_bits` rows.
    pub row_bits: u32,
    /// Each row with this many places.
    pub ways: usize,
    /// Which place is taken.
    pub choice: Choice,
    /// How rows are found.
    pub hash: Hash,
    /// Windows of `2^window_bits` ticks share their rows.
    pub window_bits: u32,
    /// The most tries, each with another window.
    pub most_tries: u32,
    /// Which window comes next.
    pub direction: Direction,
    /// Places in the stash.
    pub stash: usize,
    /// When it is drained.
    pub drain: Drain,
}

impl Shape {
    /// Places in all tables.
    pub fn places(&self) -> usize {
        (self.tables * self.ways) << self.row_bits
    }

    /// The most ticks that a timer fires late.
    pub fn most_shift(&self) -> u64 {
        match self.direction {
            Direction::Later => u64::from(self.most_tries - 1) << self.window_bits,
            Direction::Earlier => 0,
        }
    }
}

/// No tick: the place is free.
const FREE: Tick = Tick::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    Nowhere,
    /// In a table, at this place.
    Place(u32),
    Stash,
    /// Met before its tick, waiting for it.
    Held,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    asked: Tick,
    due: Tick,
    home: Home,
}

/// Timers in rows of `ways` places; a try reads one row of each table.
#[derive(Clone, Debug)]
pub struct Bucketed {
    shape: Shape,
    hasher: Hasher,
    dice: Dice,
    /// The tick at which each place is met.
    keys: Vec<Tick>,
    /// The timer at each place.
    ids: Vec<u32>,
    timers: Vec<Timer>,
    stash: Vec<u32>,
    held: Vec<u32>,
    moved: Vec<u32>,
    /// Which timer of the stash tries next, and which try that is.
    turn: (usize, u32),
    now: Tick,
    pending: usize,
}

impl Bucketed {
    /// Empty tables for the timers 0 to `timers - 1`, with functions drawn from the seed.
    pub fn new(shape: Shape, timers: u32, seed: u64) -> Bucketed {
        let mut dice = Dice::new(seed);
        let nowhere = Timer { asked: 0, due: 0, home: Home::Nowhere };
        Bucketed {
            shape,
            hasher: Hasher::new(shape.hash, shape.tables, shape.row_bits, &mut dice),
            dice,
            keys: vec![FREE; shape.places()],
            ids: vec![0; shape.places()],
            timers: vec![nowhere; timers as usize],
            stash: Vec::new(),
            held: Vec::new(),
            moved: Vec::new(),
            turn: (0, 0),
            now: 0,
            pending: 0,
        }
    }

    /// The tick under which a timer may be stored at a try, from 0: one that is still to come.
    fn key(&self, expiry: Tick, attempt: u32) -> Option<Tick> {
        if attempt == 0 {
            return Some(expiry);
        }
        let (window, attempt) = (expiry >> self.shape.window_bits, u64::from(attempt));
        match self.shape.direction {
            Direction::Later => Some((window + attempt) << self.shape.window_bits),
            Direction::Earlier => {
                // The last tick of an earlier window.
                let key = ((window + 1).checked_sub(attempt)? << self.shape.window_bits).checked_sub(1)?;
                (key > self.now).then_some(key)
            }
        }
    }

    /// The first place of the row of a tick in a table. The window's first tick is hashed: multiplied by an odd constant, it leaves as
    /// many zeros at the low end, which is room for the tick within the window.
    fn row(&self, table: usize, key: Tick) -> usize {
        let first_tick = (key >> self.shape.window_bits) << self.shape.window_bits;
        let row = self.hasher.row(table, first_tick);
        ((table << self.shape.row_bits) + row) * self.shape.ways
    }

    /// The free place to take in the rows of a tick.
    fn free_place(&mut self, key: Tick) -> Option<usize> {
        let ways = self.shape.ways;
        let mut best: Option<(usize, usize)> = None;
        let mut seen = 0;
        for table in 0..self.shape.tables {
            let row = self.row(table, key);
            let places = &self.keys[row..row + ways];
            let Some(first) = places.iter().position(|key| *key == FREE) else { continue };
            let found = row + first;
            match self.shape.choice {
                Choice::First => return Some(found),
                Choice::Random => {
                    seen += 1;
                    // Each of those seen is kept with the same chance.
                    if seen == 1 || self.dice.below(seen) == 0 {
                        best = Some((0, found));
                    }
                }
                Choice::LeastLoaded => {
                    let free = places[first..].iter().filter(|key| **key == FREE).count();
                    if best.is_none_or(|(most, _)| free > most) {
                        best = Some((free, found));
                    }
                }
            }
        }
        best.map(|(_, found)| found)
    }

    fn put(&mut self, place: usize, key: Tick, id: u32) {
        self.keys[place] = key;
        self.ids[place] = id;
        let timer = &mut self.timers[id as usize];
        timer.due = if self.shape.direction == Direction::Later { key } else { timer.asked };
        timer.home = Home::Place(place as u32);
    }

    /// Tries to move a timer of the stash to the tables, with one window.
    fn unstash(&mut self, index: usize, attempt: u32) -> bool {
        let id = self.stash[index];
        let Some(key) = self.key(self.timers[id as usize].asked, attempt) else { return false };
        let Some(place) = self.free_place(key) else { return false };
        self.stash.remove(index);
        self.moved.push(id);
        self.put(place, key, id);
        true
    }

    /// Gives timers of the stash a chance, now that so many places are free that were not.
    fn drain(&mut self, freed: usize) {
        for _ in 0..freed {
            let (tries, count) = (self.shape.most_tries, self.stash.len());
            if count == 0 {
                return;
            }
            match self.shape.drain {
                Drain::Never => return,
                Drain::Best => {
                    let moved = (0..count).any(|index| (0..tries).any(|attempt| self.unstash(index, attempt)));
                    if !moved {
                        return;
                    }
                }
                Drain::OneTry => {
                    let (index, attempt) = (self.turn.0 % count, self.turn.1);
                    let moved = self.unstash(index, attempt);
                    self.turn = match moved || attempt + 1 == tries {
                        true => (index + usize::from(!moved), 0),
                        false => (index, attempt + 1),
                    };
                }
            }
        }
    }

    fn fire(&mut self, id: u32, fired: &mut Vec<u32>) {
        self.timers[id as usize].home = Home::Nowhere;
        self.pending -= 1;
        fired.push(id);
    }

    /// Fires what is due of the stash, or of those that are held.
    fn fire_due(&mut self, of: fn(&mut Bucketed) -> &mut Vec<u32>, fired: &mut Vec<u32>) {
        let mut index = 0;
        while let Some(id) = of(self).get(index).copied() {
            if self.timers[id as usize].due == self.now {
                of(self).remove(index);
                self.fire(id, fired);
            } else {
                index += 1;
            }
        }
    }
}

impl Model for Bucketed {
    fn insert(&mut self, expiry: Tick, id: u32) -> Result<Placed, Refusal> {
        let timer = self.timers.get(id as usize).ok_or(Refusal::NoTimer)?;
        if timer.home != Home::Nowhere {
            return Err(Refusal::Armed);
        }
        if expiry <= self.now {
            return Err(Refusal::Past);
        }
        let mut tries = 0;
        while let Some(key) = self.key(expiry, tries).filter(|_| tries < self.shape.most_tries) {
            tries += 1;
            if let Some(place) = self.free_place(key) {
                self.timers[id as usize].asked = expiry;
                self.put(place, key, id);
                self.pending += 1;
                let shift = self.timers[id as usize].due - expiry;
                return Ok(Placed { shift, tries, moves: 0, stashed: false });
            }
        }
        if self.stash.len() >= self.shape.stash {
            return Err(Refusal::Full { tries });
        }
        self.stash.push(id);
        self.timers[id as usize] = Timer { asked: expiry, due: expiry, home: Home::Stash };
        self.pending += 1;
        Ok(Placed { shift: 0, tries, moves: 0, stashed: true })
    }

    fn expire(&mut self, tick: Tick, fired: &mut Vec<u32>) {
        self.now = tick;
        self.moved.clear();
        self.fire_due(|calendar| &mut calendar.held, fired);
        self.fire_due(|calendar| &mut calendar.stash, fired);
        let mut freed = 0;
        for table in 0..self.shape.tables {
            let row = self.row(table, tick);
            for place in row..row + self.shape.ways {
                if self.keys[place] != tick {
                    continue;
                }
                self.keys[place] = FREE;
                freed += 1;
                let id = self.ids[place];
                if self.timers[id as usize].due == tick {
                    self.fire(id, fired);
                } else {
                    self.timers[id as usize].home = Home::Held;
                    self.held.push(id);
                }
            }
        }
        self.drain(freed);
    }

    fn cancel(&mut self, id: u32) -> bool {
        let Some(timer) = self.timers.get_mut(id as usize) else { return false };
        let home = std::mem::replace(&mut timer.home, Home::Nowhere);
        match home {
            Home::Nowhere => return false,
            Home::Place(place) => self.keys[place as usize] = FREE,
            Home::Stash => self.stash.retain(|other| *other != id),
            Home::Held => self.held.retain(|other| *other != id),
        }
        self.pending -= 1;
        self.moved.clear();
        self.drain(usize::from(matches!(home, Home::Place(_))));
        true
    }

    fn next_visit(&self, id: u32) -> Option<Tick> {
        let timer = self.timers.get(id as usize)?;
        match timer.home {
            Home::Nowhere => None,
            Home::Place(place) => Some(self.keys[place as usize]),
            Home::Stash | Home::Held => Some(timer.due),
        }
    }

    fn pending(&self) -> usize {
        self.pending
    }

    fn moved(&self) -> &[u32] {
        &self.moved
    }

    fn stashed(&self) -> usize {
        self.stash.len()
    }
}
