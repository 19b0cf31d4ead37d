//! One place for each tick of the near future, and a hierarchical bitmap that finds the next free one.

use crate::model::{Model, Placed, Refusal, Tick};

const NOWHERE: u32 = u32::MAX;
/// Bits that choose within a word.
const WORD_BITS: u32 = 6;

/// `2^span_bits` places, one a tick, used in a circle. A timer whose tick is taken goes to the next that is free, which takes the same
/// number of steps however far that is.
#[derive(Clone, Debug)]
pub struct TickMap {
    span_bits: u32,
    most_shift: u64,
    /// From the finest: a bit for each tick that is taken; above, a bit for each word below that is full.
    levels: Vec<Vec<u64>>,
    /// The timer of each place.
    ids: Vec<u32>,
    /// The tick of each timer, if it is armed.
    ticks: Vec<Option<Tick>>,
    now: Tick,
    pending: usize,
}

impl TickMap {
    /// No timers yet, of 0 to `timers - 1`. `most_shift`: the most ticks that a timer is moved on.
    pub fn new(span_bits: u32, most_shift: u64, timers: u32) -> TickMap {
        let mut levels = Vec::new();
        let mut bits = span_bits;
        loop {
            bits = bits.saturating_sub(WORD_BITS);
            levels.push(vec![0; 1 << bits]);
            if bits == 0 {
                break;
            }
        }
        TickMap {
            span_bits,
            most_shift,
            levels,
            ids: vec![NOWHERE; 1 << span_bits],
            ticks: vec![None; timers as usize],
            now: 0,
            pending: 0,
        }
    }

    /// Bits of all levels of a map with so many ticks.
    pub fn map_bits(span_bits: u32) -> u64 {
        (0..)
            .map(|level| span_bits.saturating_sub(level * WORD_BITS))
            .take_while(|bits| *bits > 0)
            .map(|b| 1 << b)
            .sum()
    }

    /// The first free place from `from` on, without going round.
    fn free_from(&self, from: usize) -> Option<usize> {
        let (mut level, mut from) = (0, from);
        loop {
            let words = self.levels.get(level)?;
            let (word, bit) = (from >> WORD_BITS, from & 63);
            let width = self.width(level);
            let free = !words.get(word)? & (u64::MAX << bit) & width;
            if free != 0 {
                let mut place = (word << WORD_BITS) + free.trailing_zeros() as usize;
                // Down again: the word below has a free bit, the first of which it is.
                for finer in self.levels[..level].iter().rev() {
                    place = (place << WORD_BITS) + (!finer[place]).trailing_zeros() as usize;
                }
                return Some(place);
            }
            (level, from) = (level + 1, word + 1);
        }
    }

    /// The bits of a word that stand for something: fewer than 64 in the coarsest.
    fn width(&self, level: usize) -> u64 {
        let bits = self.span_bits.saturating_sub(level as u32 * WORD_BITS);
        if bits >= WORD_BITS { u64::MAX } else { (1 << (1 << bits)) - 1 }
    }

    fn mark(&mut self, place: usize, taken: bool) {
        let mut at = place;
        for level in 0..self.levels.len() {
            let full = self.width(level);
            let word = &mut self.levels[level][at >> WORD_BITS];
            let was_full = *word == full;
            if taken {
                *word |= 1 << (at & 63);
            } else {
                *word &= !(1 << (at & 63));
            }
            if was_full == (*word == full) {
                return;
            }
            at >>= WORD_BITS;
        }
    }

    fn place(&self, tick: Tick) -> usize {
        (tick & ((1 << self.span_bits) - 1)) as usize
    }

    fn remove(&mut self, id: u32) -> bool {
        let Some(tick) = self.ticks.get_mut(id as usize).and_then(Option::take) else { return false };
        let place = self.place(tick);
        self.ids[place] = NOWHERE;
        self.mark(place, false);
        self.pending -= 1;
        true
    }
}

impl Model for TickMap {
    fn insert(&mut self, expiry: Tick, id: u32) -> Result<Placed, Refusal> {
        if self.ticks.get(id as usize).ok_or(Refusal::NoTimer)?.is_some() {
            return Err(Refusal::Armed);
        }
        if expiry <= self.now {
            return Err(Refusal::Past);
        }
        let span = 1_u64 << self.span_bits;
        if expiry - self.now >= span {
            return Err(Refusal::TooFar);
        }
        let start = self.place(expiry);
        let place = self.free_from(start).or_else(|| self.free_from(0)).ok_or(Refusal::Full { tries: 1 })?;
        let shift = (place as u64).wrapping_sub(start as u64) & (span - 1);
        if shift > self.most_shift || expiry + shift - self.now >= span {
            return Err(Refusal::Full { tries: 1 });
        }
        self.mark(place, true);
        self.ids[place] = id;
        self.ticks[id as usize] = Some(expiry + shift);
        self.pending += 1;
        Ok(Placed { shift, tries: 1, moves: 0, stashed: false })
    }

    fn expire(&mut self, tick: Tick, fired: &mut Vec<u32>) {
        self.now = tick;
        let id = self.ids[self.place(tick)];
        if self.ticks.get(id as usize).copied().flatten() == Some(tick) {
            self.remove(id);
            fired.push(id);
        }
    }

    fn cancel(&mut self, id: u32) -> bool {
        self.remove(id)
    }

    fn next_visit(&self, id: u32) -> Option<Tick> {
        self.ticks.get(id as usize).copied().flatten()
    }

    fn pending(&self) -> usize {
        self.pending
    }
}
