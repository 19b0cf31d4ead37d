//! How often what was measured.

/// Values in steps of 1/16 of their size.
pub struct Histogram {
    counts: Vec<u64>,
    most: u64,
    total: u64,
}

/// Steps in each doubling.
const STEPS: u64 = 16;

impl Histogram {
    /// Nothing measured yet.
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; 64 * STEPS as usize], most: 0, total: 0 }
    }

    /// One more value.
    pub fn add(&mut self, value: u64) {
        self.counts[place(value)] += 1;
        self.most = self.most.max(value);
        self.total += 1;
    }

    /// The value that this share of all does not exceed, to a sixteenth; with 1.0 the greatest, exactly.
    pub fn quantile(&self, share: f64) -> u64 {
        if share >= 1.0 {
            return self.most;
        }
        let wanted = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(self.most, start)
    }

    /// How many values are greater, to a sixteenth.
    pub fn above(&self, value: u64) -> u64 {
        self.counts[place(value) + 1..].iter().sum()
    }
}

fn place(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let doubling = u64::from(value.ilog2()) - 4;
    (doubling * STEPS + (value >> doubling)) as usize
}

fn start(place: usize) -> u64 {
    let place = place as u64;
    match place.checked_sub(STEPS) {
        None => place,
        Some(above) => (STEPS + above % STEPS) << (above / STEPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_sixteenth() {
        let mut histogram = Histogram::new();
        (1..=10_000).for_each(|value| histogram.add(value));
        for (share, value) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.0001, 1.0)] {
            let found = histogram.quantile(share) as f64;
            assert!(found <= value && found >= value * 0.93, "{share}: {found}");
        }
        assert_eq!(histogram.quantile(1.0), 10_000);
        assert!((4_700..=5_000).contains(&histogram.above(5_000)));
        (0..100_000).for_each(|value| assert!(start(place(value)) <= value && start(place(value) + 1) > value));
    }
}
