//! How long single operations take at most, apart from what the machine does meanwhile.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cases::{CASES, FILL, Operations, STRUCTURES, prepare};
use weftwire_draw::Histogram;

/// Operations, or pairs, that are timed one by one.
const SINGLES: usize = 2_000_000;
/// How often the same sequence is run. The calendar knows no chance, so that an operation that is slow by itself is
/// slow each time, and the machine's interruptions are not at the same place each time.
const RUNS: usize = 7;
/// What an operation may take at most, in nanoseconds.
const MOST: u64 = 5_000;

/// The same sequence of single operations, several times.
#[derive(Serialize)]
pub struct Singles {
    case: &'static str,
    timers: u32,
    /// Nanoseconds, of the least of each operation's times: p50, p99, p99.9, p99.99, the longest.
    least: [u64; 5],
    /// How many are above 5 us even then.
    least_above: u64,
    /// Nanoseconds, of all times: the same.
    all: [u64; 5],
    /// Times above 5 us, a second.
    above_a_second: f64,
    /// Times above 5 us, a second, of a loop that does nothing, run for as long.
    nothing_a_second: f64,
}

const SHARES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 1.0];

/// The calendar with so many timers, in all cases.
pub fn measure(timers: u32) -> Vec<Singles> {
    CASES.iter().map(|case| case.name).chain([FILL]).map(|case| singles(case, timers)).collect()
}

fn singles(case: &'static str, timers: u32) -> Singles {
    let mut least = vec![u32::MAX; SINGLES];
    let mut all = Histogram::default();
    let mut wall = Duration::ZERO;
    // They stay, so that each run gets memory that was never used: growing is part of what is measured.
    let mut kept: Vec<Operations> = Vec::new();
    for _ in 0..RUNS {
        let Some(mut operations) = prepare(STRUCTURES[0], case, timers) else { continue };
        if case != FILL {
            kept.clear();
            operations(u64::from(timers) * 2);
        }
        let start = Instant::now();
        let mut before = start;
        for least in &mut least {
            black_box(&mut *operations)(1);
            let after = Instant::now();
            let nanoseconds = (after - before).as_nanos() as u64;
            *least = (*least).min(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
            all.add(nanoseconds as i64);
            before = Instant::now();
        }
        wall += start.elapsed();
        kept.push(operations);
    }
    let mut minima = Histogram::default();
    least.into_iter().for_each(|it| minima.add(it.into()));
    Singles {
        case,
        timers: if case == FILL { SINGLES as u32 } else { timers },
        least: SHARES.map(|share| minima.quantile(share) as u64),
        least_above: minima.above(MOST as i64),
        all: SHARES.map(|share| all.quantile(share) as u64),
        above_a_second: all.above(MOST as i64) as f64 / wall.as_secs_f64(),
        nothing_a_second: nothing(wall),
    }
}

/// Interruptions above 5 us a second of a loop that only reads the clock.
fn nothing(wall: Duration) -> f64 {
    let (start, mut above) = (Instant::now(), 0);
    let mut before = start;
    while before - start < wall {
        let after = Instant::now();
        above += u64::from((after - before).as_nanos() as u64 > MOST);
        before = after;
    }
    above as f64 / wall.as_secs_f64()
}

/// The heading of the table.
pub const HEADING: &str = "single operations: of each the least of 7 times, all times; in ns, with the clock's own cost
                           least of 7                                 all times                                  > 5 us a second
                   timers    p50    p99  p99.9 p99.99    max  > 5 us     p50    p99  p99.9 p99.99       max    here  nothing";

impl fmt::Display for Singles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<13} {:>10} ", self.case, self.timers)?;
        self.least.iter().try_for_each(|it| write!(f, "{it:>6} "))?;
        write!(f, "{:>7}  ", self.least_above)?;
        self.all[..4].iter().try_for_each(|it| write!(f, "{it:>6} "))?;
        write!(f, "{:>9} {:>7.0} {:>8.0}", self.all[4], self.above_a_second, self.nothing_a_second)
    }
}
