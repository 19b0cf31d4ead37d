//! What chance says before anything is measured.

/// The chance that a try finds no free place, in tables with rows of `ways` places that are used for long, each timer put into the row
/// with the most room of one row of each table, timers leaving at random. With one way it is `load^tables`, the paper's equation 4.
///
/// Let `s(k)` be the share of rows with at least `k` timers. A row gets its `k`th timer if all rows read have at least `k - 1` and not all
/// have `k`: `rate * (s(k-1)^tables - s(k)^tables)`; it loses it as often: `k * (s(k) - s(k+1))`. The equations are solved from the full rows
/// down. Ties are taken to be broken by chance; always taking the first table does a little better (Vöcking's "always go left").
pub fn try_fails(tables: u32, ways: u32, load: f64) -> f64 {
    let wanted = f64::from(ways) * load.clamp(1e-6, 1.0 - 1e-6);
    let full = middle(0.0, 1.0, |full| mean_of_rows(tables, ways, full) < wanted);
    full.powi(tables as i32)
}

/// Timers of a row on average if so many rows are full.
fn mean_of_rows(tables: u32, ways: u32, full: f64) -> f64 {
    // The rate is that for which all rows have at least no timer; the higher, the fewer timers there are in rows that are not full.
    let logarithm = middle(-60.0, 60.0, |logarithm| rows_and_mean(tables, ways, full, logarithm).0 > 1.0);
    rows_and_mean(tables, ways, full, logarithm).1
}

/// `s(0)` and the sum of all others, for a rate with this binary logarithm.
fn rows_and_mean(tables: u32, ways: u32, full: f64, logarithm: f64) -> (f64, f64) {
    let (rate, power) = (logarithm.exp2(), tables as i32);
    let (mut above, mut here, mut sum) = (0.0, full, 0.0);
    for timers in (1..=ways).rev() {
        sum += here;
        let below = (here.powi(power) + f64::from(timers) * (here - above) / rate).powf(1.0 / f64::from(tables));
        (above, here) = (here, below);
    }
    (here, sum)
}

/// Where a condition that holds at first ceases to hold.
fn middle(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_places_are_the_papers_formula() {
        for load in [0.1_f64, 0.5, 0.9, 0.97] {
            assert!((try_fails(4, 1, load) - load.powi(4)).abs() < 1e-6, "{load}");
        }
    }

    #[test]
    fn more_room_in_a_row_is_better() {
        let fails = [1, 2, 4, 8].map(|ways| try_fails(4, ways, 0.9));
        assert!(fails.windows(2).all(|pair| pair[1] < pair[0] * 0.75), "{fails:?}");
        assert!((try_fails(4, 4, 0.97) - 0.623).abs() < 1e-3);
        assert!((try_fails(4, 5, 0.776) - 0.0021).abs() < 1e-4);
    }
}
