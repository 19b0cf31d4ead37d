//! From a schedule that breaks something to the little of it that it takes.

use super::{Fault, FaultKind, Impairment};
use std::time::Duration;
use weftwire_core::{Time, nanoseconds};
use weftwire_network::model::FieldFault;

/// At most so many schedules are tried.
pub const MOST_ATTEMPTS: u32 = 300;

/// The least part of a schedule that still `fails`: first whole faults are left out (delta debugging: Zeller and
/// Hildebrandt 2002, "Simplifying and Isolating Failure-Inducing Input"), then those that are left become shorter, rounder
/// and weaker. `fails` is asked at most [`MOST_ATTEMPTS`] times, and not for the schedule as given: that one has failed. If a schedule
/// fails whenever a part of it does, and there were attempts enough, no fault of the result can be left out.
pub fn shrink(faults: &[Fault], fails: &mut dyn FnMut(&[Fault]) -> bool) -> Vec<Fault> {
    let mut search = Search { best: faults.to_vec(), fails, attempts: 0 };
    search.remove();
    search.simplify();
    // A simpler schedule may need fewer faults.
    search.remove();
    search.best
}

struct Search<'a> {
    /// The simplest schedule so far that fails.
    best: Vec<Fault>,
    fails: &'a mut dyn FnMut(&[Fault]) -> bool,
    attempts: u32,
}

impl Search<'_> {
    /// Takes `faults` as the best if they fail.
    fn adopt(&mut self, faults: Vec<Fault>) -> bool {
        if self.attempts == MOST_ATTEMPTS {
            return false;
        }
        self.attempts += 1;
        let failed = (self.fails)(&faults);
        if failed {
            self.best = faults;
        }
        failed
    }

    /// Delta debugging: leaves out ever smaller parts, until no single fault can be left out.
    fn remove(&mut self) {
        let mut size = self.best.len();
        while size > 0 {
            let mut start = 0;
            let mut removed = false;
            while start < self.best.len() {
                let end = (start + size).min(self.best.len());
                let rest = [&self.best[..start], &self.best[end..]].concat();
                if self.adopt(rest) {
                    removed = true;
                } else {
                    start = end;
                }
            }
            // After a success smaller parts may go that could not before.
            size = if size == 1 && removed { 1 } else { size / 2 };
        }
    }

    /// Tries simpler values, fault by fault, until none helps.
    fn simplify(&mut self) {
        let mut progress = true;
        while progress && self.attempts < MOST_ATTEMPTS {
            progress = false;
            for index in 0..self.best.len() {
                progress |= self.simplify_one(index);
            }
        }
    }

    fn simplify_one(&mut self, index: usize) -> bool {
        for simpler in simpler(&self.best[index]) {
            let mut faults = self.best.clone();
            faults[index] = simpler;
            if self.adopt(faults) {
                return true;
            }
        }
        false
    }
}

/// Simpler forms of a fault, the simplest first. Each makes one number rounder or smaller, so that there is no circle.
fn simpler(fault: &Fault) -> Vec<Fault> {
    let mut list = Vec::new();
    let at = Duration::from_nanos(fault.at.nanoseconds().unsigned_abs());
    list.extend(rounder(at).map(|at| Fault { at: Time::ZERO.plus(at), ..fault.clone() }));
    list.extend(smaller(fault.lasts).into_iter().map(|lasts| Fault { lasts, ..fault.clone() }));
    list.extend(rounder(fault.lasts).map(|lasts| Fault { lasts, ..fault.clone() }));
    list.extend(simpler_kinds(&fault.what).into_iter().map(|what| Fault { what, ..fault.clone() }));
    list
}

fn simpler_kinds(what: &FaultKind) -> Vec<FaultKind> {
    match what {
        FaultKind::LinkDown { .. } | FaultKind::Blackhole { .. } | FaultKind::Restart { .. } => Vec::new(),
        FaultKind::CorruptField { link, direction, field } => {
            let lowest = field.mask & field.mask.wrapping_neg();
            let mut fields = Vec::new();
            if lowest != field.mask {
                fields.push(FieldFault { mask: lowest, ..field.clone() });
            }
            if field.share_millionths < 1_000_000 {
                fields.push(FieldFault { share_millionths: 1_000_000, ..field.clone() });
            }
            let make = |field| FaultKind::CorruptField { link: *link, direction: *direction, field };
            fields.into_iter().map(make).collect()
        }
        &FaultKind::Clock { node, drift_ppm, leap } => {
            let clock = |drift_ppm, leap| FaultKind::Clock { node, drift_ppm, leap };
            let mut list: Vec<FaultKind> = Vec::new();
            if !leap.is_zero() {
                list.extend([Duration::ZERO].into_iter().chain(smaller(leap)).map(|leap| clock(drift_ppm, leap)));
                list.extend(rounder(leap).map(|leap| clock(drift_ppm, leap)));
            }
            if drift_ppm != 0 {
                list.extend([0, drift_ppm / 2].map(|drift_ppm| clock(drift_ppm, leap)));
            }
            list
        }
        FaultKind::Impair { link, direction, impairment } => {
            let make = |impairment| FaultKind::Impair { link: *link, direction: *direction, impairment };
            weaker(impairment).into_iter().map(make).collect()
        }
    }
}

fn weaker(impairment: &Impairment) -> Vec<Impairment> {
    match *impairment {
        // All packets or fewer of them: both say more than some share.
        Impairment::Loss(share) => shares(share).map(Impairment::Loss).collect(),
        Impairment::Duplicate(share) => shares(share).map(Impairment::Duplicate).collect(),
        Impairment::Corrupt(share) => shares(share).map(Impairment::Corrupt).collect(),
        Impairment::Delay(more) => smaller(more).into_iter().chain(rounder(more)).map(Impairment::Delay).collect(),
        Impairment::Reorder(share, more) => {
            let delays = smaller(more).into_iter().chain(rounder(more));
            let delays = delays.map(|more| Impairment::Reorder(share, more));
            delays.chain(shares(share).map(|share| Impairment::Reorder(share, more))).collect()
        }
    }
}

/// All packets: the same ones in every run.
fn shares(share: f64) -> impl Iterator<Item = f64> {
    (share < 1.0).then_some(1.0).into_iter()
}

/// A tenth and a half of a duration, down to a millisecond.
fn smaller(duration: Duration) -> Vec<Duration> {
    const LEAST: Duration = Duration::from_millis(1);
    [duration / 10, duration / 2].into_iter().filter(|smaller| (LEAST..duration).contains(smaller)).collect()
}

/// The same instant or duration to one significant unit: whole seconds, tenths, hundredths, milliseconds; not 0.
fn rounder(value: Duration) -> impl Iterator<Item = Duration> {
    let value = nanoseconds(value);
    let units = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000];
    // What is whole in a unit stays so.
    let whole = units.into_iter().find(|unit| value % unit == 0).unwrap_or(1);
    let rounded = units.into_iter().filter(move |unit| *unit > whole).map(move |unit| value / unit * unit);
    let rounded = rounded.filter(move |rounded| *rounded > 0 && *rounded != value);
    rounded.map(|rounded| Duration::from_nanos(rounded.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weftwire_network::model::LinkIndex;

    fn faults(count: u32) -> Vec<Fault> {
        let what = |link| FaultKind::LinkDown { link: LinkIndex(link) };
        let (at, lasts) = (Time::from_nanoseconds(1_234_567_890), Duration::from_millis(77));
        (0..count).map(|link| Fault { at, lasts, what: what(link) }).collect()
    }

    fn links(faults: &[Fault]) -> Vec<u32> {
        let link = |fault: &Fault| match fault.what {
            FaultKind::LinkDown { link } => link.0,
            _ => unreachable!("only links go down here"),
        };
        faults.iter().map(link).collect()
    }

    #[test]
    fn numbers_become_short_and_round() {
        let schedule = faults(3);
        let at = Time::from_nanoseconds(1_200_000_000);
        let shrunk = shrink(&schedule, &mut |faults| {
            faults
                .iter()
                .any(|fault| links(std::slice::from_ref(fault)) == [1] && fault.end() > at && fault.at > Time::ZERO)
        });
        let what = schedule[1].what.clone();
        assert_eq!(shrunk, [Fault { at, lasts: Duration::from_millis(1), what }]);
    }

    proptest! {
        /// With a schedule that fails whenever certain faults are in it, just those are left.
        #[test]
        fn no_fault_can_be_left_out(count in 1..9_u32, needed in any::<u8>()) {
            let needed: Vec<u32> = (0..count).filter(|link| needed >> link & 1 == 1).collect();
            let mut attempts = 0;
            let shrunk = shrink(&faults(count), &mut |faults| {
                attempts += 1;
                needed.iter().all(|link| links(faults).contains(link))
            });
            prop_assert_eq!(links(&shrunk), needed);
            prop_assert!(attempts <= MOST_ATTEMPTS);
        }

        /// Whatever decides, the result fails.
        #[test]
        fn the_result_fails(count in 1..9_u32, salt in any::<u64>()) {
            let schedule = faults(count);
            let mut fails = |faults: &[Fault]| {
                let digest = faults.iter().fold(salt, |digest, fault| {
                    (digest ^ (fault.at.nanoseconds() ^ nanoseconds(fault.lasts)) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                });
                faults == schedule || digest >> 62 == 0
            };
            let shrunk = shrink(&schedule, &mut fails);
            prop_assert!(fails(&shrunk));
        }
    }
}
