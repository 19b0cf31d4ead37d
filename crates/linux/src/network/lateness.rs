//! How late packets leave the relay, and flows and datagrams their sources: a histogram with a bounded relative error.

use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Rate};
use weftwire_network::model::TrafficKind;
use weftwire_network::results::Lateness;
use weftwire_network::traffic::Gap;

/// Sub-buckets of each power of two: values are known to 1/16.
const STEPS: usize = 16;
const BUCKETS: usize = (64 - 3) * STEPS;

/// Counts of latenesses, log-linear: exact below 16 ns, to 1/16 above.
pub struct Histogram {
    counts: Box<[u64]>,
    packets: u64,
    worst: i64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS].into(), packets: 0, worst: 0 }
    }
}

impl Histogram {
    /// Adds a lateness in nanoseconds; early is not late.
    pub fn add(&mut self, late: i64) {
        let late = late.max(0);
        self.counts[bucket(late)] += 1;
        self.packets += 1;
        self.worst = self.worst.max(late);
    }

    /// The least bound of a bucket that this share of all values does not exceed.
    pub fn quantile(&self, share: f64) -> i64 {
        let rank = (self.packets as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).min(self.worst);
            }
        }
        self.worst
    }

    /// The greatest value.
    pub fn worst(&self) -> i64 {
        self.worst
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.packets
    }

    /// The buckets that are not empty: the greatest value each may hold, and how many it holds.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (upper_bound(bucket).min(self.worst), *count))
    }

    /// The summary, with what was allowed.
    pub fn summary(&self, allowed: i64) -> Lateness {
        let p99 = self.quantile(0.99);
        let (packets, p50, worst) = (self.packets, self.quantile(0.5), self.worst);
        Lateness { packets, p50, p99, worst, allowed, late: p99 > allowed }
    }
}

fn bucket(value: i64) -> usize {
    let value = value as u64;
    if value < STEPS as u64 {
        return value as usize;
    }
    let power = value.ilog2() as usize;
    let step = (value >> (power - 4)) as usize - STEPS;
    (power - 3) * STEPS + step
}

/// The greatest value of a bucket.
fn upper_bound(bucket: usize) -> i64 {
    if bucket < STEPS {
        return bucket as i64;
    }
    let (power, step) = (bucket / STEPS + 3, bucket % STEPS);
    ((((STEPS + step + 1) as u64) << (power - 4)) - 1).cast_signed()
}

/// Nobody tells 50 us from none where the kernel's own timers are no better.
const ALWAYS_ALLOWED: i64 = 50_000;

/// What is allowed for the 99th percentile: of each direction with a rate or a delay a tenth of the time of a packet of
/// 1,500 bytes or a twentieth of its delay, whichever is more, and at least 50 us; of all directions the least.
pub fn allowed(network: &Network) -> i64 {
    let settings = network.links.iter().flat_map(|link| &link.directions);
    settings.filter_map(allowed_by).min().unwrap_or(ALWAYS_ALLOWED)
}

fn allowed_by(settings: &LinkSettings) -> Option<i64> {
    let rate = settings.rate.as_ref().map(|rate| match rate {
        Rate::Constant(rate) => *rate,
        Rate::Trace(trace) => trace.steps.iter().map(|step| step.1).max().unwrap_or(1),
    });
    let packet_time = rate.map_or(0, |rate| (1500.0 * 8e9 / rate.max(1) as f64) as i64);
    if packet_time == 0 && settings.delay == 0 {
        return None;
    }
    Some((packet_time / 10).max(settings.delay / 20).max(ALWAYS_ALLOWED))
}

/// What is allowed for the sources where no gap says how exact times must be.
const ALLOWED_WITHOUT_GAPS: i64 = 1_000_000;

/// What is allowed for the 99th percentile of the sources: a tenth of the least mean gap of all traffic, or 1 ms if none has
/// gaps, and no less than for the relay.
pub fn allowed_for_sources(network: &Network) -> i64 {
    let gaps = network.traffic.iter().filter_map(|traffic| match &traffic.kind {
        TrafficKind::Flows { gap, .. } | TrafficKind::Datagrams { gap, .. } => mean(gap),
        TrafficKind::RequestResponse { think, .. } => mean(think),
        TrafficKind::Bulk { .. } | TrafficKind::Capture { .. } => None,
    });
    gaps.min().map_or(ALLOWED_WITHOUT_GAPS, |gap| gap / 10).max(allowed(network))
}

/// The mean of a gap, if it has one above 0.
fn mean(gap: &Gap) -> Option<i64> {
    let mean = match gap {
        Gap::Constant(gap) => *gap,
        Gap::Exponential(mean) => *mean as i64,
        Gap::Envelope(_) => 0,
    };
    (mean > 0).then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_network::read;

    #[test]
    fn sources_may_be_late_by_a_tenth_of_their_gap() {
        let allowed = |traffic: &str| {
            let text = format!(
                "duration = \"1s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\nrate = \"1Gbit/s\"\n\
                 [[traffic]]\nfrom = \"a\"\nto = \"b\"\n{traffic}"
            );
            let reading = read("t.toml", &text, &[], &|_| Err("no files".into()));
            allowed_for_sources(&reading.network.expect("a valid network"))
        };
        assert_eq!(allowed("kind = \"bulk\""), 1_000_000);
        assert_eq!(allowed("kind = \"datagrams\"\nsize = \"100B\"\ngap = \"20ms\""), 2_000_000);
        assert_eq!(allowed("kind = \"flows\"\nsize = \"1kB\"\nrate = \"500/s\""), 200_000);
        assert_eq!(allowed("kind = \"datagrams\"\nsize = \"100B\"\ngap = \"10us\""), 50_000, "as for the relay");
        assert_eq!(allowed("kind = \"request-response\"\ncount = 9"), 1_000_000, "who does not think is never late");
    }

    #[test]
    fn buckets_hold_their_values_and_are_narrow() {
        let values = (0..200).chain((8..62).flat_map(|power| [(1_i64 << power) - 1, 1 << power, (1 << power) / 4 * 5]));
        for value in values.chain([i64::MAX]) {
            let bound = upper_bound(bucket(value));
            assert!(bound >= value, "{value}");
            assert!(bound - value <= value / 16, "{value} {bound}");
            assert!(bucket(value) == 0 || upper_bound(bucket(value) - 1) < value, "{value}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut histogram = Histogram::default();
        for value in 0..1000 {
            histogram.add(value * 100);
        }
        let summary = histogram.summary(98_000);
        assert_eq!((summary.packets, summary.worst), (1000, 99_900));
        assert!((49_900..=53_100).contains(&summary.p50), "{}", summary.p50);
        assert!((98_900..=99_900).contains(&summary.p99), "{}", summary.p99);
        assert!(summary.late);
        assert!(!Histogram::default().summary(0).late);
    }

    #[test]
    fn a_slow_link_and_a_long_one_allow_more() {
        let rate = |rate, delay| LinkSettings { rate: Some(Rate::Constant(rate)), delay, ..LinkSettings::default() };
        assert_eq!(allowed_by(&LinkSettings::default()), None);
        assert_eq!(allowed_by(&rate(1_000_000, 0)), Some(1_200_000));
        assert_eq!(allowed_by(&rate(1_000_000_000, 0)), Some(50_000));
        assert_eq!(allowed_by(&rate(1_000_000_000, 20_000_000)), Some(1_000_000));
    }
}
