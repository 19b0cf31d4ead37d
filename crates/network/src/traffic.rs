//! Sizes and gaps of traffic, drawn from a seed: the same numbers on every platform.

mod distributions;
mod paced;

pub use distributions::{NAMES, named};

use crate::chance::Chance;
use crate::model::{NodeIndex, Traffic, TrafficKind};
use paced::Paced;
use std::sync::Arc;
use weftwire_core::Time;
use weftwire_pace::Envelope;

/// Time from one beginning to the next, in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub enum Gap {
    /// Always the same.
    Constant(i64),
    /// Exponentially distributed with this mean: Poisson arrivals.
    Exponential(f64),
    /// As a rate envelope says; its times are in seconds.
    Envelope(Arc<Envelope>),
}

/// Sizes in bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Size {
    /// Always the same.
    Constant(u64),
    /// Exponentially distributed with this mean, rounded, at least 1.
    Exponential(f64),
    /// The same with those above a greatest drawn again: mean (before that), greatest.
    ExponentialUpTo(f64, u64),
    /// Uniform between both, inclusive.
    Uniform(u64, u64),
    /// Bounded Pareto: shape, smallest, greatest.
    Pareto(f64, u64, u64),
    /// An empirical distribution: sizes with their cumulative shares, ascending, from share 0 to 1; linear between.
    Empirical(Arc<Vec<(u64, f64)>>),
}

impl Size {
    /// The mean in bytes (before rounding).
    pub fn mean(&self) -> f64 {
        match self {
            Size::Constant(size) => *size as f64,
            Size::Exponential(mean) => *mean,
            Size::ExponentialUpTo(mean, most) => mean - *most as f64 / libm::expm1(*most as f64 / mean),
            Size::Uniform(least, greatest) => (*least as f64 + *greatest as f64) / 2.0,
            Size::Pareto(_, least, greatest) if least >= greatest => *least as f64,
            Size::Pareto(shape, least, greatest) => {
                let (least, greatest) = (*least as f64, *greatest as f64);
                let ratio = least / greatest;
                if (shape - 1.0).abs() < 1e-9 {
                    return -least * libm::log(ratio) / (1.0 - ratio);
                }
                let tails = 1.0 - libm::pow(ratio, shape - 1.0);
                least * shape / (shape - 1.0) * tails / (1.0 - libm::pow(ratio, *shape))
            }
            Size::Empirical(table) => {
                let first = table.first().map_or(0.0, |&(size, share)| size as f64 * share);
                let between =
                    |pair: &[(u64, f64)]| (pair[1].1 - pair[0].1) * (pair[0].0 as f64 + pair[1].0 as f64) / 2.0;
                first + table.windows(2).map(between).sum::<f64>()
            }
        }
    }
}

/// Draws gaps, sizes and receivers of one traffic, each in order. They have random numbers of their own, so that none
/// shifts another.
pub struct Draws {
    gaps: Chance,
    sizes: Chance,
    receivers: Chance,
    paced: Option<Paced>,
}

/// Tells the sizes' random numbers from the gaps'.
const SIZES_STREAM: u64 = 0x73_697a_6573;
/// And those of the receivers.
const RECEIVERS_STREAM: u64 = 0x746f;

impl Draws {
    /// From the traffic's seed.
    pub fn new(traffic: &Traffic) -> Draws {
        Draws {
            gaps: Chance::new(traffic.seed),
            sizes: Chance::new(traffic.seed ^ SIZES_STREAM),
            receivers: Chance::new(traffic.seed ^ RECEIVERS_STREAM),
            paced: None,
        }
    }

    /// The next gap.
    pub fn gap(&mut self, gap: &Gap) -> i64 {
        match gap {
            Gap::Constant(gap) => (*gap).max(0),
            Gap::Exponential(mean) => libm::round(exponential(&mut self.gaps, *mean)) as i64,
            Gap::Envelope(envelope) => self.paced.get_or_insert_with(|| Paced::new(envelope)).gap(),
        }
    }

    /// The next size.
    pub fn size(&mut self, size: &Size) -> u64 {
        let chance = &mut self.sizes;
        match size {
            Size::Constant(size) => *size,
            Size::Exponential(mean) => (libm::round(exponential(chance, *mean)) as u64).max(1),
            Size::ExponentialUpTo(mean, most) => {
                let below = -libm::expm1(-(*most as f64) / mean);
                let size = -mean * libm::log1p(-chance.share() * below);
                (libm::round(size) as u64).clamp(1, *most)
            }
            Size::Uniform(least, greatest) => least + chance.up_to(greatest.saturating_sub(*least)),
            Size::Pareto(shape, least, greatest) => {
                let below = 1.0 - libm::pow(*least as f64 / (*greatest).max(1) as f64, *shape);
                let size = *least as f64 * libm::pow(1.0 - chance.share() * below, -1.0 / shape);
                (libm::round(size) as u64).min(*greatest).max((*least).max(1))
            }
            Size::Empirical(table) => interpolate(table, chance.share()),
        }
    }
}

/// Exponentially distributed, by inversion.
fn exponential(chance: &mut Chance, mean: f64) -> f64 {
    -mean * libm::log(1.0 - chance.share())
}

/// The size at a cumulative share, at least 1.
fn interpolate(table: &[(u64, f64)], share: f64) -> u64 {
    let above = table.partition_point(|&(_, cumulative)| cumulative <= share);
    let size = match (above.checked_sub(1).and_then(|below| table.get(below)), table.get(above)) {
        (Some(&(low, from)), Some(&(high, to))) => {
            libm::round(low as f64 + (high as f64 - low as f64) * (share - from) / (to - from)) as u64
        }
        (Some(&(size, _)), None) | (None, Some(&(size, _))) => size,
        (None, None) => 1,
    };
    size.max(1)
}

/// One thing that begins: a flow, or a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// When, after the start of the run.
    pub at: Time,
    /// Its number within the traffic, from 0.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
    /// To whom.
    pub to: NodeIndex,
}

/// All begins of a traffic in order: one of `Bulk` and `RequestResponse` (bytes: all requests together), many of `Flows`
/// and `Datagrams`, none of `Capture`. Ends by itself at [`Traffic::stop`] or the count. Poisson arrivals begin with a gap
/// as well: an arrival at the start in each run would be no Poisson process, and one too many. Others begin at the start.
pub struct Begins {
    kind: TrafficKind,
    receivers: Receivers,
    draws: Draws,
    at: Time,
    stop: Time,
    number: u64,
}

impl Begins {
    /// From the traffic's seed.
    pub fn new(traffic: &Traffic) -> Begins {
        let draws = Draws::new(traffic);
        let receivers = Receivers::new(traffic);
        Begins { kind: traffic.kind.clone(), receivers, draws, at: traffic.start, stop: traffic.stop, number: 0 }
    }
}

/// Who may receive a flow.
enum Receivers {
    One(NodeIndex),
    /// One of these by chance, but not that at the place.
    Any(Arc<[NodeIndex]>, Option<usize>),
}

impl Receivers {
    fn new(traffic: &Traffic) -> Receivers {
        match &traffic.choices {
            None => Receivers::One(traffic.to),
            Some(all) => Receivers::Any(all.clone(), all.iter().position(|node| *node == traffic.from)),
        }
    }

    fn draw(&self, chance: &mut Chance) -> NodeIndex {
        match self {
            Receivers::One(node) => *node,
            Receivers::Any(all, without) => {
                let count = all.len() - usize::from(without.is_some());
                let drawn = chance.up_to(count.saturating_sub(1) as u64) as usize;
                all[drawn + usize::from(without.is_some_and(|place| place <= drawn))]
            }
        }
    }
}

impl Iterator for Begins {
    type Item = Begin;

    fn next(&mut self) -> Option<Begin> {
        let number = self.number;
        let bytes = match &self.kind {
            TrafficKind::Bulk { bytes } if number == 0 => *bytes,
            TrafficKind::RequestResponse { request, count, .. } if number == 0 => request.saturating_mul(*count),
            TrafficKind::Flows { gap, size, count } | TrafficKind::Datagrams { gap, size, count }
                if number < *count =>
            {
                if number > 0 || matches!(gap, Gap::Exponential(_)) {
                    self.at = self.at.after(self.draws.gap(gap));
                }
                self.draws.size(size)
            }
            _ => return None,
        };
        self.number += 1;
        if self.at > self.stop {
            self.number = u64::MAX;
            return None;
        }
        let to = self.receivers.draw(&mut self.draws.receivers);
        Some(Begin { at: self.at, number, bytes, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NodeIndex, Transport};
    use weftwire_pace::{Setting, parse};

    fn at(nanoseconds: i64) -> Time {
        Time::from_nanoseconds(nanoseconds)
    }

    fn traffic(kind: TrafficKind) -> Traffic {
        Traffic {
            name: "t".to_owned(),
            from: NodeIndex(0),
            to: NodeIndex(1),
            choices: None,
            start: at(1_000),
            stop: at(2_000_000),
            ipv6: false,
            transport: Transport::Tcp,
            port: 80,
            source_port: 1_024,
            congestion_control: None,
            dscp: 0,
            recovery: None,
            kind,
            seed: 42,
        }
    }

    /// Many draws of a size.
    fn sizes(size: &Size) -> Vec<u64> {
        let mut draws = Draws::new(&traffic(TrafficKind::Bulk { bytes: 1 }));
        (0..200_000).map(|_| draws.size(size)).collect()
    }

    #[test]
    fn sizes_have_their_means() {
        for size in [
            Size::Constant(7),
            Size::Exponential(1e6),
            Size::ExponentialUpTo(600.0, 1_472),
            Size::ExponentialUpTo(1_000.0, 1_000_000),
            Size::Uniform(10, 1_000_000),
            Size::Pareto(1.5, 10_000, 10_000_000),
            Size::Pareto(1.0, 10_000, 10_000_000),
            Size::Pareto(1.2, 5, 5),
            named("websearch").expect("known"),
            named("datamining").expect("known"),
        ] {
            let drawn: Vec<f64> = sizes(&size).into_iter().map(|size| size as f64).collect();
            let count = drawn.len() as f64;
            let mean = drawn.iter().sum::<f64>() / count;
            let variance = drawn.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / count;
            let error = (variance / count).sqrt();
            assert!((mean - size.mean()).abs() <= 4.0 * error + 0.5, "{size:?}: {mean} ± {error}, not {}", size.mean());
        }
    }

    #[test]
    fn an_empirical_distribution_has_its_shares() {
        for name in NAMES {
            let size = named(name).expect("known");
            let drawn = sizes(&size);
            let Size::Empirical(table) = size else { panic!("{name} is empirical") };
            assert!(table.is_sorted_by_key(|entry| entry.0) && table.is_sorted_by(|a, b| a.1 <= b.1));
            assert_eq!((table[0].1, table[table.len() - 1].1), (0.0, 1.0));
            for pair in table.windows(2).filter(|pair| pair[0].0 != pair[1].0) {
                let share = drawn.iter().filter(|drawn| **drawn <= pair[0].0).count() as f64 / drawn.len() as f64;
                assert!((share - pair[0].1).abs() < 0.005, "{name}: {share} are at most {}", pair[0].0);
            }
            assert!(drawn.iter().all(|size| *size >= 1 && *size <= table[table.len() - 1].0));
        }
        assert_eq!(named("webserch"), None);
    }

    #[test]
    fn bounds_hold_where_there_is_next_to_no_room() {
        assert!(sizes(&Size::Exponential(0.01)).into_iter().all(|size| size == 1));
        assert!(sizes(&Size::ExponentialUpTo(1e9, 12)).into_iter().all(|size| (1..=12).contains(&size)));
        assert!(sizes(&Size::Pareto(0.1, 10, 12)).into_iter().all(|size| (10..=12).contains(&size)));
        let uniform = sizes(&Size::Uniform(3, 5));
        assert!((3..=5).all(|size| uniform.contains(&size)) && uniform.iter().all(|size| (3..=5).contains(size)));
        assert_eq!(sizes(&Size::Empirical(Arc::new(Vec::new())))[0], 1);
    }

    #[test]
    fn gaps_are_exponential_and_independent_of_sizes() {
        let traffic = traffic(TrafficKind::Bulk { bytes: 1 });
        let (mut one, mut other) = (Draws::new(&traffic), Draws::new(&traffic));
        let gap = Gap::Exponential(1e6);
        let gaps: Vec<i64> = (0..100_000).map(|_| one.gap(&gap)).collect();
        for expected in &gaps {
            other.size(&Size::Exponential(5.0));
            assert_eq!(other.gap(&gap), *expected);
        }
        let above = |limit: f64| gaps.iter().filter(|gap| **gap as f64 > limit).count() as f64 / gaps.len() as f64;
        for times in [0.5, 1.0, 2.0, 4.0] {
            let expected = f64::exp(-times);
            assert!((above(times * 1e6) - expected).abs() < 4.0 * (expected / gaps.len() as f64).sqrt(), "{times}");
        }
    }

    /// Drawn once, on x86-64; any other machine has to draw the same.
    #[test]
    fn numbers_are_the_same_everywhere() {
        let mut draws = Draws::new(&traffic(TrafficKind::Bulk { bytes: 1 }));
        let gaps = [0; 3].map(|_| draws.gap(&Gap::Exponential(1e9)));
        let sizes =
            [Size::Exponential(1e9), Size::Pareto(1.1, 1_000, 1_000_000_000), named("websearch").expect("known")]
                .map(|size| draws.size(&size));
        assert_eq!((gaps, sizes), ([256_845_793, 273_262_128, 1_430_594_943], [3_931_805_517, 175_104, 19_599_590]));
    }

    #[test]
    fn begins_follow_an_envelope_to_its_end() {
        let begins = |text: &str, count| {
            let setting = Setting { round_trip: Some(1e-7), ..Setting::default() };
            let gap = Gap::Envelope(Arc::new(parse(text, &setting).expect("an envelope")));
            let traffic = traffic(TrafficKind::Flows { gap, size: Size::Constant(8), count });
            Begins::new(&traffic).map(|begin| begin.at.nanoseconds() - 1_000).collect::<Vec<_>>()
        };
        assert_eq!(begins("slow_start", 6), [0, 100, 158, 200, 232, 258]);
        assert_eq!(begins("token_bucket(10 pkt/RTT, 3)", 5), [0, 0, 0, 10, 20]);
        // It sends 5 packets behind the first and no more.
        assert_eq!(begins("R(t) = if(t < 1 RTT, 5 pkt/RTT, 0 pkt/RTT)", 100), [0, 20, 40, 60, 80, 100]);
        let many = begins("constant(1000 pkt/RTT)", 10_000);
        assert!(
            many.iter().enumerate().all(|(number, at)| (*at * 10 - number as i64).abs() <= 5),
            "over several tables"
        );
    }

    /// Few arrivals of many sources: their number is Poisson's, mean and variance alike, from the start on.
    #[test]
    fn poisson_arrivals_are_as_many_as_they_should() {
        let kind = TrafficKind::Flows { gap: Gap::Exponential(400.0), size: Size::Constant(8), count: u64::MAX };
        let counts: Vec<f64> = (0..20_000)
            .map(|seed| Traffic { seed, stop: at(3_000), ..traffic(kind.clone()) })
            .map(|source| Begins::new(&source).count() as f64)
            .collect();
        let mean = counts.iter().sum::<f64>() / 20_000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 20_000.0;
        // 2,000 ns at one each 400 ns; four standard errors.
        assert!((mean - 5.0).abs() < 0.07, "{mean}");
        assert!((variance - 5.0).abs() < 0.25, "{variance}");
    }

    #[test]
    fn each_flow_goes_to_another_by_chance_and_none_back() {
        let kind = TrafficKind::Flows { gap: Gap::Constant(1), size: Size::Constant(8), count: 30_000 };
        let nodes: Arc<[NodeIndex]> = [7, 0, 3, 5].map(NodeIndex).into();
        let source = Traffic { choices: Some(nodes), ..traffic(kind) };
        let to: Vec<u32> = Begins::new(&source).map(|begin| begin.to.0).collect();
        assert_eq!(to, Begins::new(&source).map(|begin| begin.to.0).collect::<Vec<_>>());
        for (node, expected) in [(7, 10_000.0), (0, 0.0), (3, 10_000.0), (5, 10_000.0)] {
            let count = to.iter().filter(|to| **to == node).count() as f64;
            assert!((count - expected).abs() <= 4.0 * 82.0, "{node}: {count}");
        }
    }

    #[test]
    fn begins_come_in_order_and_end() {
        let one = Begin { at: at(1_000), number: 0, bytes: 500, to: NodeIndex(1) };
        assert_eq!(Begins::new(&traffic(TrafficKind::Bulk { bytes: 500 })).collect::<Vec<_>>(), [one]);
        let think = Gap::Constant(5);
        let pairs = TrafficKind::RequestResponse { request: 50, response: 9, count: 10, think };
        assert_eq!(Begins::new(&traffic(pairs)).collect::<Vec<_>>(), [one]);
        let flows = |gap, count| Begins::new(&traffic(TrafficKind::Flows { gap, size: Size::Constant(8), count }));
        let begins: Vec<_> =
            flows(Gap::Constant(100), 3).map(|begin| (begin.at.nanoseconds(), begin.number, begin.bytes)).collect();
        assert_eq!(begins, [(1_000, 0, 8), (1_100, 1, 8), (1_200, 2, 8)]);
        assert_eq!(
            flows(Gap::Constant(1_999_000), u64::MAX).map(|begin| begin.at.nanoseconds()).collect::<Vec<_>>(),
            [1_000, 2_000_000]
        );
        let mut poisson = flows(Gap::Exponential(1_000.0), u64::MAX);
        assert!(poisson.next().is_some_and(|first| first.at.nanoseconds() > 1_000), "the first comes by chance, too");
        let at: Vec<_> = poisson.by_ref().map(|begin| begin.at.nanoseconds()).collect();
        assert!(at.is_sorted() && (1_800..2_200).contains(&at.len()) && at[at.len() - 1] <= 2_000_000);
        assert_eq!(poisson.next(), None, "stays at its end");
        let capture = TrafficKind::Capture { file: String::new(), port: weftwire_core::Port(1) };
        assert_eq!(Begins::new(&traffic(capture)).next(), None);
    }
}
