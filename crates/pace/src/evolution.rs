//! The evolution block, to the bit: whole numbers only.
//!
//! One step does what a clocked block would: read an entry, multiply its change by the place in the block (`word_bits` times
//! 21 + 30 bits), add, shift, multiply by the unit's length in ticks (64 times 40 bits), add the carry. Two registers carry:
//! `rest` below a grain, `carry` below a tick. So after any number of packets, the sum of ticks is the sum of exact gaps,
//! rounded once: what is rounded away is never lost.

use crate::polynomial::Follower;
use crate::solve::xorshift;
use crate::table::{Band, Evolution, Form, Then};

/// Bits of a unit's length in ticks.
const SCALE_BITS: u32 = 40;

/// Runs a table.
#[derive(Clone, Debug)]
pub struct EvolutionBlock<'a> {
    evolution: &'a Evolution,
    /// The unit in ticks.
    scale: u64,
    /// The packet after which the next gap comes.
    packet: u64,
    /// Band, block in it, entry, and packet in the block.
    band: usize,
    block: u32,
    entry: usize,
    place: u64,
    /// Rounds that were doubled.
    octave: u8,
    /// After the last entry of a table that is held.
    held: Option<u64>,
    /// Parts of a grain within a block, and over rounds.
    rest: i128,
    part: u64,
    /// Parts of a tick, in 2^-`fraction_bits`.
    carry: u128,
    random: u32,
    follower: Option<Follower>,
}

impl<'a> EvolutionBlock<'a> {
    /// A machine at the first gap. `ticks_per_unit` is the length of the unit (a round trip or a second), at most 2^40 - 1.
    ///
    /// The table must be one that [`compile`](crate::compile) made or [`Evolution::check`] accepted.
    pub fn new(evolution: &'a Evolution, ticks_per_unit: u64) -> EvolutionBlock<'a> {
        let random = if let Then::Draw { seed } = evolution.then { seed } else { 0 };
        EvolutionBlock {
            evolution,
            scale: ticks_per_unit.min((1 << SCALE_BITS) - 1),
            packet: evolution.first,
            band: 0,
            block: 0,
            entry: 0,
            place: 0,
            octave: 0,
            held: None,
            rest: 0,
            part: 0,
            // Half a tick: sums are rounded to the nearest.
            carry: (1_u128 << evolution.fraction_bits) >> 1,
            random,
            follower: evolution.polynomial.as_ref().map(Follower::new),
        }
    }

    /// Whether a polynomial's rate has reached a packet a grain, from where on the last gap stays.
    pub fn saturated(&self) -> bool {
        self.follower.as_ref().is_some_and(Follower::saturated)
    }

    /// The packet after which the next gap comes.
    pub fn packet(&self) -> u64 {
        self.packet
    }

    /// Another length of the unit, from the next gap on: a new estimate of the round trip.
    pub fn set_ticks_per_unit(&mut self, ticks: u64) {
        self.scale = ticks.min((1 << SCALE_BITS) - 1);
    }

    /// The next gap in ticks.
    pub fn next_ticks(&mut self) -> u64 {
        self.next_gap().1
    }

    /// The next gap in grains and in ticks.
    pub(crate) fn next_gap(&mut self) -> (u64, u64) {
        let grains = self.next_grains();
        let product = u128::from(grains) * u128::from(self.scale);
        let sum = product + self.carry;
        if self.evolution.form != Form::Direct {
            self.carry = sum & ((1 << self.evolution.fraction_bits) - 1);
        }
        (grains, (sum >> self.evolution.fraction_bits) as u64)
    }

    /// The next gap in grains, 2^-`fraction_bits` of a unit; for comparison, as [`EvolutionBlock::next_ticks`] also takes it.
    pub fn next_grains(&mut self) -> u64 {
        self.packet += 1;
        if let Some(follower) = &mut self.follower {
            return follower.next_grains();
        }
        if let Some(held) = self.held {
            return held;
        }
        if let Then::Draw { .. } = self.evolution.then {
            self.random = xorshift(self.random);
            let entry = u64::from(self.random) >> (32 - self.evolution.gaps.len().ilog2());
            return self.evolution.gaps[entry as usize];
        }
        let band = self.evolution.bands[self.band];
        let gap = self.grains(band);
        let extra = self.advance(band);
        if self.held.is_some() {
            self.held = Some(gap);
        }
        gap + extra
    }

    /// The gap at this place of this block, with what was left of the one before.
    fn grains(&mut self, band: Band) -> u64 {
        let fine = u32::from(self.octave) * 2 + u32::from(band.change_shift.max(0) as u8);
        let mean =
            i128::from(self.evolution.gaps[self.entry]) << (u32::from(band.gap_shift) + fine - u32::from(self.octave));
        let size = 1_i128 << (band.packets_log2 + self.octave);
        let change = i128::from(self.evolution.changes.get(self.entry).copied().unwrap_or(0));
        let change = change << band.change_shift.min(0).unsigned_abs();
        let sum = self.rest + mean + change * (2 * i128::from(self.place) + 1 - size);
        self.rest = sum & ((1 << fine) - 1);
        (sum >> fine).max(0) as u64
    }

    /// To the next place; what a finished round adds to its last gap.
    fn advance(&mut self, band: Band) -> u64 {
        self.place += 1;
        if self.place >> (band.packets_log2 + self.octave) == 0 {
            return 0;
        }
        // The changes of a block sum up to nothing, and so does what is left.
        (self.place, self.rest) = (0, 0);
        self.entry += 1;
        self.block += 1;
        if self.block < band.blocks {
            return 0;
        }
        (self.block, self.band) = (0, self.band + 1);
        if self.band < self.evolution.bands.len() {
            return 0;
        }
        match self.evolution.then {
            Then::Repeat { band, grains, numerator, denominator } => {
                self.rewind(band);
                self.part += numerator;
                let whole = u64::from(self.part >= denominator);
                self.part -= whole * denominator;
                grains + whole
            }
            Then::Double { band, octaves } if self.octave < octaves => {
                self.octave += 1;
                self.rewind(band);
                0
            }
            _ => {
                self.held = Some(0);
                0
            }
        }
    }

    fn rewind(&mut self, band: u32) {
        self.band = band as usize;
        self.entry = self.evolution.bands[..self.band].iter().map(|band| band.blocks as usize).sum();
    }
}
