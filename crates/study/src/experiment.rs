//! A calendar is filled to a load; then each timer that fires is replaced by a new one.

use crate::design::Design;
use crate::dice::Dice;
use crate::model::{Model, Refusal, Tick};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tries and shifts that are counted one by one; beyond, only the greatest is kept.
const COUNTED: usize = 1 << 13;

/// For which ticks timers are armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// An interval from 1 to `horizon`, each as likely.
    Uniform {
        /// The longest, in ticks.
        horizon: u64,
    },
    /// The same, but `size` timers after each other share one tick.
    Bursts {
        /// The longest interval, in ticks.
        horizon: u64,
        /// Timers of a tick.
        size: u32,
    },
    /// Each timer comes again after `period`; first at a multiple of `stride` by chance.
    Periodic {
        /// In ticks.
        period: u64,
        /// In ticks.
        stride: u64,
    },
}

impl Arrivals {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Arrivals::Uniform { horizon } => format!("within {horizon} ticks"),
            Arrivals::Bursts { horizon, size } => format!("within {horizon} ticks, {size} at a time"),
            Arrivals::Periodic { period, stride } => format!("period {period} ticks, multiples of {stride}"),
        }
    }
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trial {
    /// What is filled.
    pub design: Design,
    /// The share of the design's timers that are armed.
    pub load: f64,
    /// For which ticks.
    pub arrivals: Arrivals,
    /// How many timers are replaced after the fill: what is measured.
    pub substitutions: u64,
}

/// What was measured, of one run or of many.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Insertions that were measured, with those refused.
    pub insertions: u64,
    /// Those refused.
    pub refused: u64,
    /// Timers refused while filling.
    pub refused_filling: u64,
    /// Insertions that went to the stash.
    pub to_stash: u64,
    /// Timers in the stash, after each insertion, added up.
    pub stash_sum: u64,
    /// The most timers in the stash.
    pub stash_peak: u64,
    /// Tries of all insertions.
    pub tries: u64,
    /// The squares of each run's tries, added up.
    pub tries_squared: u128,
    /// The most tries.
    pub most_tries: u64,
    /// The most tries of each run, added up.
    pub most_tries_sum: u64,
    /// Shifts of all insertions.
    pub shifts: u64,
    /// The greatest shift.
    pub most_shift: u64,
    /// Timers that an insertion moved.
    pub moves: u64,
    /// How often each number of tries was seen.
    pub counts: Vec<u64>,
}

impl Tally {
    /// Adds the runs of another one.
    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.insertions += other.insertions;
        self.refused += other.refused;
        self.refused_filling += other.refused_filling;
        self.to_stash += other.to_stash;
        self.stash_sum += other.stash_sum;
        self.stash_peak = self.stash_peak.max(other.stash_peak);
        self.tries += other.tries;
        self.tries_squared += other.tries_squared;
        self.most_tries = self.most_tries.max(other.most_tries);
        self.most_tries_sum += other.most_tries_sum;
        self.shifts += other.shifts;
        self.most_shift = self.most_shift.max(other.most_shift);
        self.moves += other.moves;
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    fn count(&mut self, tries: u64) {
        self.tries += tries;
        self.most_tries = self.most_tries.max(tries);
        let index = (tries as usize).min(COUNTED);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Tries of an insertion on average.
    pub fn mean_tries(&self) -> f64 {
        self.tries as f64 / self.insertions.max(1) as f64
    }

    /// Standard error of the mean, from the spread between runs.
    pub fn error_of_mean(&self) -> f64 {
        let runs = self.runs.max(1) as f64;
        let per_run = self.insertions as f64 / runs;
        let mean = self.tries as f64 / runs;
        let spread = (self.tries_squared as f64 / runs - mean * mean).max(0.0);
        (spread / (runs - 1.0).max(1.0)).sqrt() / per_run.max(1.0)
    }

    /// Ticks that an insertion moves its timer on average.
    pub fn mean_shift(&self) -> f64 {
        self.shifts as f64 / self.insertions.max(1) as f64
    }

    /// The number of tries that this share of the insertions stays within.
    pub fn tries_within(&self, share: f64) -> u64 {
        let wanted = (self.insertions as f64 * share).ceil() as u64;
        let mut seen = 0;
        let within = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        within.map_or(self.most_tries, |tries| tries as u64)
    }

    /// The greatest number of tries of a run, on average over runs.
    pub fn mean_of_worst(&self) -> f64 {
        self.most_tries_sum as f64 / self.runs.max(1) as f64
    }

    /// Timers in the stash on average.
    pub fn mean_stashed(&self) -> f64 {
        self.stash_sum as f64 / self.insertions.max(1) as f64
    }
}

/// Draws the ticks of timers.
struct Source {
    arrivals: Arrivals,
    dice: Dice,
    /// The tick of the burst that goes on, and how many it still has.
    burst: (Tick, u32),
}

impl Source {
    /// For a timer that has not been armed before.
    fn first(&mut self, now: Tick) -> Tick {
        match self.arrivals {
            Arrivals::Periodic { period, stride } => now + stride * (1 + self.dice.below((period / stride).max(1))),
            _ => self.next(now, now),
        }
    }

    /// For a timer that was asked for `asked` and has fired.
    fn next(&mut self, now: Tick, asked: Tick) -> Tick {
        match self.arrivals {
            Arrivals::Uniform { horizon } => now + 1 + self.dice.below(horizon.max(1)),
            Arrivals::Bursts { horizon, size } => {
                if self.burst.1 == 0 || self.burst.0 <= now {
                    self.burst = (now + 1 + self.dice.below(horizon.max(1)), size);
                }
                self.burst.1 -= 1;
                self.burst.0
            }
            Arrivals::Periodic { period, .. } => (asked + period).max(now + 1),
        }
    }
}

/// Timers that a run keeps track of.
struct Run {
    model: Box<dyn Model>,
    source: Source,
    /// The tick that each timer was asked for.
    asked: Vec<Tick>,
    /// How often each timer was armed: visits that were noted before the last time mean nothing.
    armings: Vec<u32>,
    visits: BinaryHeap<Reverse<(Tick, u32, u32)>>,
}

impl Trial {
    /// Fills a calendar and replaces timers.
    pub fn run(&self, seed: u64) -> Tally {
        let timers = (f64::from(self.design.full()) * self.load).round() as u32;
        let mut dice = Dice::new(seed);
        let mut run = Run {
            model: self.design.build(timers, dice.any()),
            source: Source { arrivals: self.arrivals, dice, burst: (0, 0) },
            asked: vec![0; timers as usize],
            armings: vec![0; timers as usize],
            visits: BinaryHeap::new(),
        };
        let mut tally = Tally { runs: 1, ..Tally::default() };
        run.fill(&mut tally);
        run.substitute(self.substitutions, &mut tally);
        tally.tries_squared = u128::from(tally.tries).pow(2);
        tally.most_tries_sum = tally.most_tries;
        tally
    }
}

impl Run {
    fn fill(&mut self, tally: &mut Tally) {
        let mut visits = Vec::with_capacity(self.asked.len());
        for id in 0..self.asked.len() as u32 {
            let asked = self.source.first(0);
            self.asked[id as usize] = asked;
            match self.model.insert(asked, id) {
                Ok(_) => visits.extend(self.model.next_visit(id).map(|tick| Reverse((tick, id, 0)))),
                Err(_) => tally.refused_filling += 1,
            }
        }
        self.visits = BinaryHeap::from(visits);
    }

    fn substitute(&mut self, substitutions: u64, tally: &mut Tally) {
        let mut fired = Vec::new();
        while tally.insertions < substitutions {
            let Some(Reverse((tick, id, arming))) = self.visits.pop() else { return };
            if self.armings[id as usize] != arming {
                continue;
            }
            // A timer may have been moved since; one that is met too early is held.
            if self.model.next_visit(id) == Some(tick) {
                self.model.expire(tick, &mut fired);
                for id in self.model.moved() {
                    let visit = self.model.next_visit(*id).map(|next| Reverse((next, *id, self.armings[*id as usize])));
                    self.visits.extend(visit);
                }
            }
            if !fired.contains(&id) {
                self.visits.extend(self.model.next_visit(id).map(|next| Reverse((next, id, arming))));
            }
            for id in fired.drain(..) {
                self.armings[id as usize] += 1;
                if tally.insertions < substitutions {
                    let asked = self.source.next(tick, self.asked[id as usize]);
                    self.asked[id as usize] = asked;
                    let outcome = self.model.insert(asked, id);
                    let visit = self.model.next_visit(id).map(|next| Reverse((next, id, self.armings[id as usize])));
                    self.visits.extend(visit);
                    tally.insertions += 1;
                    match outcome {
                        Ok(placed) => {
                            tally.count(u64::from(placed.tries));
                            tally.shifts += placed.shift;
                            tally.most_shift = tally.most_shift.max(placed.shift);
                            tally.moves += u64::from(placed.moves);
                            tally.to_stash += u64::from(placed.stashed);
                        }
                        Err(refusal) => {
                            tally.refused += 1;
                            tally.count(if let Refusal::Full { tries } = refusal { u64::from(tries) } else { 1 });
                        }
                    }
                    let stashed = self.model.stashed() as u64;
                    tally.stash_sum += stashed;
                    tally.stash_peak = tally.stash_peak.max(stashed);
                }
            }
        }
    }
}

/// What became of timers that were all armed for one tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OneTick {
    /// How many.
    pub timers: u32,
    /// Those that were refused, and told so.
    pub refused: u32,
    /// Those that fired.
    pub fired: u32,
    /// Those that were armed and never fired.
    pub lost: u32,
    /// The greatest number of ticks that one fired late.
    pub latest: u64,
}

/// Arms timers for one tick, beside others up to a load, and waits until all should have fired.
pub fn one_tick(design: &Design, load: f64, timers: u32, seed: u64) -> OneTick {
    let mut dice = Dice::new(seed);
    let others = (f64::from(design.full()) * load).round() as u32;
    let mut model = design.build(others + timers, dice.any());
    // Those around do not come near the tick, and stay.
    let (tick, far) = (20_000, 30_000);
    for id in timers..timers + others {
        // What is refused leaves a lower load.
        let _ = model.insert(far + dice.below(1_000_000_000), id);
    }
    let mut outcome = OneTick { timers, ..OneTick::default() };
    outcome.refused = (0..timers).filter(|id| model.insert(tick, *id).is_err()).count() as u32;
    let mut fired = Vec::new();
    for now in 1..far {
        model.expire(now, &mut fired);
        if !fired.is_empty() {
            outcome.fired += fired.len() as u32;
            outcome.latest = outcome.latest.max(now - tick);
            fired.clear();
        }
    }
    outcome.lost = timers - outcome.refused - outcome.fired;
    outcome
}
