//! A histogram with a bounded relative error.

/// Sub-buckets of each power of two: values are known to 1/16.
const STEPS: usize = 16;
const BUCKETS: usize = (64 - 3) * STEPS;

/// Counts of whole numbers from 0 on, log-linear: exact below 16, to 1/16 above.
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    greatest: i64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS].into(), count: 0, greatest: 0 }
    }
}

impl Histogram {
    /// Adds a value; a negative one counts as 0.
    pub fn add(&mut self, value: i64) {
        let value = value.max(0);
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.greatest = self.greatest.max(value);
    }

    /// The least bound of a bucket that this share of all values does not exceed.
    pub fn quantile(&self, share: f64) -> i64 {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).min(self.greatest);
            }
        }
        self.greatest
    }

    /// The greatest value.
    pub fn greatest(&self) -> i64 {
        self.greatest
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many values are greater, to 1/16.
    pub fn above(&self, value: i64) -> u64 {
        self.counts[bucket(value.max(0)) + 1..].iter().sum()
    }

    /// The buckets that are not empty: the greatest value each may hold, and how many it holds.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (upper_bound(bucket).min(self.greatest), *count))
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((histogram.count(), histogram.greatest()), (1000, 99_900));
        for (share, bounds) in [(0.5, 49_900..=53_100), (0.99, 98_900..=99_900), (1.0, 99_900..=99_900)] {
            assert!(bounds.contains(&histogram.quantile(share)), "{share}: {}", histogram.quantile(share));
        }
        assert!((46_000..=50_000).contains(&(histogram.above(50_000) as i64 * 100)));
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
