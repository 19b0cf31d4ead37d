//! What a few numbers say of many: percentiles, mean, standard deviation, confidence, bootstrap intervals, fairness. One place for all of it, so that
//! the same word means the same number in every table and picture.

/// The percentile of values in ascending order by nearest rank: the least of them such that at least `percent` of 100
/// are not above it. `None` of no values.
pub fn percentile<T: Copy>(ascending: &[T], percent: u32) -> Option<T> {
    let rank = (ascending.len() as u128 * u128::from(percent.min(100))).div_ceil(100);
    ascending.get((rank as usize).saturating_sub(1)).copied()
}

/// Many values in a few numbers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// How many values there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation of which they are a sample (with one less in the denominator); `None` of a single value.
    pub standard_deviation: Option<f64>,
    /// The mean of what they are a sample of lies so far from theirs at most, with 95 % confidence: Student's t, for values that
    /// do not depend on each other, as those of repetitions. `None` of a single value.
    pub confidence: Option<f64>,
    /// The median by nearest rank.
    pub median: f64,
    /// The 10th percentile.
    pub p10: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Summary {
    /// Of these values, which become sorted; `None` of no values. Only finite values count.
    pub fn of(values: &mut Vec<f64>) -> Option<Summary> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let mean = mean(values)?;
        let standard_deviation = (values.len() > 1).then(|| {
            // Of differences from the mean, so that large values of little spread lose nothing.
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            libm::sqrt(squares / (count - 1.0))
        });
        Some(Summary {
            count: values.len() as u64,
            mean,
            standard_deviation,
            confidence: standard_deviation.map(|sd| student_95(values.len() as u64 - 1) * sd / libm::sqrt(count)),
            median: percentile(values, 50)?,
            p10: percentile(values, 10)?,
            p90: percentile(values, 90)?,
            p99: percentile(values, 99)?,
            least: *values.first()?,
            greatest: *values.last()?,
        })
    }
}

/// The mean; `None` of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Jain's index of fairness: 1 if all have the same, one of their number if one has everything. `None` if nobody has anything.
pub fn jain(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = shares
        .into_iter()
        .fold((0.0, 0.0, 0.0), |(count, sum, squares), share| (count + 1.0, sum + share, squares + share * share));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// What `statistic` says of as many samples as `replicates`, each drawn from `values` with replacement and sorted: the bootstrap of
/// Efron (1979). `below` draws a number below the one it is given.
pub fn bootstrap<T>(
    values: &[f64],
    replicates: usize,
    below: &mut dyn FnMut(usize) -> usize,
    statistic: impl Fn(&[f64]) -> T,
) -> Vec<T> {
    let mut sample = Vec::with_capacity(values.len());
    let mut replicate = |_| {
        sample.clear();
        sample.extend(values.iter().map(|_| values[below(values.len())]));
        sample.sort_by(f64::total_cmp);
        statistic(&sample)
    };
    (0..replicates).map(&mut replicate).collect()
}

/// The middle 95 % of what [`bootstrap`] gave, by nearest rank: a 95 % percentile interval. `None` of no values.
pub fn interval_95(mut replicates: Vec<f64>) -> Option<(f64, f64)> {
    replicates.sort_by(f64::total_cmp);
    let at = |per_mille: usize| replicates.get((replicates.len() * per_mille).div_ceil(1_000).max(1) - 1).copied();
    Some((at(25)?, at(975)?))
}

/// Half the width in standard errors of a 95 % confidence interval: the 97.5th percentile of Student's distribution with so many
/// degrees of freedom, at least 1; to three decimals.
pub fn student_95(degrees: u64) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    if let Some(value) = degrees.checked_sub(1).and_then(|index| FIRST.get(usize::try_from(index).ok()?)) {
        return *value;
    }
    // The expansion of Cornish and Fisher around the normal distribution's 1.96; from 31 on exact to five decimals.
    let (z, n) = (1.959_963_985, degrees.max(1) as f64);
    let (z3, z5) = (z * z * z, z * z * z * z * z);
    let z7 = z5 * z * z;
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_go_by_nearest_rank() {
        // The worked example of the definition: five ordered values.
        let values = [15, 20, 35, 40, 50];
        let found: Vec<_> = [0, 5, 30, 40, 50, 100].map(|percent| percentile(&values, percent)).to_vec();
        assert_eq!(found, [Some(15), Some(15), Some(20), Some(20), Some(35), Some(50)]);
        assert_eq!(percentile::<i64>(&[], 50), None);
    }

    #[test]
    fn mean_deviation_and_confidence_are_those_of_a_known_sample() {
        // Mean 5, sum of squares 32, so a sample's variance of 32 / 7; t of 7 degrees is 2.365.
        let found = Summary::of(&mut vec![9.0, 2.0, 4.0, f64::NAN, 4.0, 4.0, 5.0, 5.0, 7.0]).expect("there are values");
        let close = |found: Option<f64>, wanted: f64| found.is_some_and(|found| (found - wanted).abs() < 1e-6);
        assert_eq!((found.count, found.mean, found.median, found.least, found.greatest), (8, 5.0, 4.0, 2.0, 9.0));
        assert!(close(found.standard_deviation, 2.138_089_935), "{found:?}");
        assert!(close(found.confidence, 2.365 * 2.138_089_935 / 8_f64.sqrt()), "{found:?}");
        let one = Summary::of(&mut vec![3.0]).expect("there is a value");
        assert_eq!((one.mean, one.standard_deviation, one.confidence), (3.0, None, None));
        assert_eq!(Summary::of(&mut vec![f64::NAN]), None);
    }

    #[test]
    fn a_large_mean_hides_no_spread() {
        // The certified example "NumAcc4" of NIST: standard deviation 0.1 around 10,000,000.2.
        let mut values = vec![10_000_000.2];
        values.extend((0..1000).map(|index| if index % 2 == 0 { 10_000_000.1 } else { 10_000_000.3 }));
        let found = Summary::of(&mut values).expect("there are values");
        assert!((found.standard_deviation.expect("many") - 0.1).abs() < 1e-8, "{found:?}");
    }

    #[test]
    fn bootstrap_samples_are_drawn_with_replacement_and_sorted() {
        // Places 2, 0, 2 and 1, 1, 0 of the values.
        let mut drawn = [2, 0, 2, 1, 1, 0].into_iter();
        let mut below = |bound: usize| {
            assert_eq!(bound, 3);
            drawn.next().expect("three numbers a sample")
        };
        let found = bootstrap(&[30.0, 10.0, 20.0], 2, &mut below, <[f64]>::to_vec);
        assert_eq!(found, [vec![20.0, 20.0, 30.0], vec![10.0, 10.0, 30.0]]);
        assert!(bootstrap(&[], 1, &mut |_| 0, <[f64]>::is_empty)[0], "nothing is drawn from nothing");
    }

    #[test]
    fn an_interval_leaves_out_a_fortieth_at_each_end() {
        let replicates: Vec<f64> = (1..=1_000).rev().map(f64::from).collect();
        assert_eq!(interval_95(replicates), Some((25.0, 975.0)));
        assert_eq!((interval_95(vec![3.0, 1.0]), interval_95(Vec::new())), (Some((1.0, 3.0)), None));
    }

    /// As printed tables have it.
    #[test]
    fn students_distribution_is_that_of_the_tables() {
        let known = [
            (1, 12.706),
            (2, 4.303),
            (9, 2.262),
            (29, 2.045),
            (30, 2.042),
            (31, 2.040),
            (40, 2.021),
            (60, 2.000),
            (100, 1.984),
            (120, 1.980),
            (1_000, 1.962),
            (u64::MAX, 1.960),
        ];
        for (degrees, wanted) in known {
            assert!((student_95(degrees) - wanted).abs() < 6e-4, "{degrees}: {}", student_95(degrees));
        }
        assert!((2..200).all(|degrees| student_95(degrees) < student_95(degrees - 1)), "it falls");
    }

    #[test]
    fn jains_index_is_that_of_its_paper() {
        // Jain, Chiu and Hawe 1984: of 100, who has the same as 9 others has an index of 0.1.
        let some = (0..100).map(|user| if user < 10 { 7.0 } else { 0.0 });
        assert!(jain(some).is_some_and(|index| (index - 0.1).abs() < 1e-12));
        assert_eq!((jain([5.0]), jain([2.0; 9]), jain([0.0, 0.0]), jain([])), (Some(1.0), Some(1.0), None, None));
        assert!(jain([1.0, 3.0]).is_some_and(|index| (index - 0.8).abs() < 1e-12));
    }

    proptest! {
        #[test]
        fn a_percentile_is_the_least_value_with_enough_at_or_below(
            mut values in prop::collection::vec(0_u32..50, 1..60),
            percent in 1_u32..=100,
        ) {
            values.sort_unstable();
            let enough = |value: u32| {
                let below = values.iter().filter(|other| **other <= value).count();
                below * 100 >= values.len() * percent as usize
            };
            let least = values.iter().copied().find(|value| enough(*value));
            prop_assert_eq!(percentile(&values, percent), least);
        }

        #[test]
        fn jains_index_lies_between_a_share_and_one(shares in prop::collection::vec(0.001_f64..1e9, 1..40)) {
            let index = jain(shares.iter().copied()).expect("everybody has something");
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / shares.len() as f64 - 1e-9);
        }
    }
}
