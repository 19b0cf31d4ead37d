//! Measurements, and the table that people read.

use std::fmt;

use serde::Serialize;

/// All measurements of one comparison.
#[derive(Serialize)]
pub struct Results {
    machine: HostFacts,
    systems: Vec<&'static str>,
    metrics: Vec<Metric>,
    /// People read means and how sure they are, in place of medians.
    means: bool,
}

#[derive(Serialize)]
struct HostFacts {
    kernel: String,
    processors: usize,
    congestion_control: String,
}

#[derive(Serialize)]
struct Metric {
    name: String,
    unit: &'static str,
    /// For each system, in the order of `Results::systems`, what each round measured.
    rounds: Vec<Vec<f64>>,
}

impl Results {
    /// No measurements yet. The first system is what the others are compared with.
    pub fn new(systems: impl Iterator<Item = &'static str>) -> Results {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let machine = HostFacts {
            kernel: read("/proc/sys/kernel/osrelease"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
        };
        Results { machine, systems: systems.collect(), metrics: Vec::new(), means: false }
    }

    /// Shows means and their 95 % intervals, for systems whose rounds have nothing to do with each other.
    pub fn show_means(&mut self) {
        self.means = true;
    }

    /// Adds one measurement of one system.
    pub fn add(&mut self, name: &str, unit: &'static str, system: &str, value: f64) {
        let Some(column) = self.systems.iter().position(|it| *it == system) else { return };
        let row = self.metrics.iter().position(|it| it.name == name).unwrap_or_else(|| {
            self.metrics.push(Metric { name: name.to_owned(), unit, rounds: vec![Vec::new(); self.systems.len()] });
            self.metrics.len() - 1
        });
        self.metrics[row].rounds[column].push(value);
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostFacts { kernel, processors, congestion_control } = &self.machine;
        writeln!(f, "Linux {kernel}, {processors} processors, {congestion_control}")?;
        if self.means {
            return self.fmt_means(f);
        }
        writeln!(f, "medians; in brackets the ratio to {}; noise is its own (max - min) / median\n", self.systems[0])?;
        write!(f, "{:<24} {:>8}", "", "unit")?;
        for system in &self.systems {
            write!(f, " {system:>22}")?;
        }
        writeln!(f, " {:>8} {:>7}", "noise", "rounds")?;
        for Metric { name, unit, rounds } in &self.metrics {
            write!(f, "{name:<24} {unit:>8}")?;
            let reference = median(&rounds[0]);
            for values in rounds {
                let value = median(values);
                let digits = if reference >= 1000.0 { 0 } else { 2 };
                let text = match values.len() {
                    0 => "-".to_owned(),
                    _ => format!("{} ({})", number(value, digits), number(value / reference, 2)),
                };
                write!(f, " {text:>22}")?;
            }
            let noise = number(100.0 * spread(&rounds[0]) / reference, 0);
            writeln!(f, " {noise:>7}% {:>7}", rounds[0].len())?;
        }
        Ok(())
    }
}

impl Results {
    fn fmt_means(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "means, +- half of their 95 % interval (Student's t), rounds; in brackets the ratio to {}\n",
            self.systems[0]
        )?;
        write!(f, "{:<32} {:>8}", "", "unit")?;
        for system in &self.systems {
            write!(f, " {system:>32}")?;
        }
        writeln!(f)?;
        for Metric { name, unit, rounds } in &self.metrics {
            write!(f, "{name:<32} {unit:>8}")?;
            let reference = mean(&rounds[0]);
            for values in rounds {
                let (mean, half, count) = (mean(values), half_interval(values), values.len());
                let text = match count {
                    0 => "-".to_owned(),
                    _ => format!("{mean:.2} +- {}, {count} ({})", number(half, 2), number(mean / reference, 3)),
                };
                write!(f, " {text:>32}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A number as people read it; where there is none, as of no rounds, `-`.
fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half of the interval that the mean is in with a probability of 95 %, if the values are normally distributed; NaN of less than two.
fn half_interval(values: &[f64]) -> f64 {
    // Student's t for 1 to 30 degrees of freedom, 0.975.
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let Some(freedom) = values.len().checked_sub(2) else { return f64::NAN };
    let (mean, count) = (mean(values), values.len() as f64);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    T.get(freedom).unwrap_or(&1.96) * (variance / count).sqrt()
}

/// The middle value, or the mean of the two in the middle; NaN of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    most - least
}

/// A number with its thousands apart.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spread() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(spread(&[3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn intervals_are_those_of_student() {
        assert!(half_interval(&[1.0]).is_nan());
        // Ten values with a standard deviation of 1.4907.
        let values: Vec<f64> = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0].to_vec();
        assert!((mean(&values) - 3.0).abs() < 1e-12);
        assert!((half_interval(&values) - 2.262 * 1.490_712 / 10f64.sqrt()).abs() < 1e-5);
        let mut results = Results::new(["a", "b"].into_iter());
        results.show_means();
        for value in &values {
            results.add("speed", "Mbit/s", "a", *value);
        }
        let text = results.to_string();
        assert!(text.contains("3.00 +- 1.07, 10 (1.000)") && text.trim_end().ends_with(" -"), "{text}");
    }

    /// The first system may have no figure of what is measured, or only one round.
    #[test]
    fn what_was_not_measured_is_a_dash() {
        let mut results = Results::new(["a", "b"].into_iter());
        results.add("speed", "Gbit/s", "b", 5.0);
        let row = |results: &Results| results.to_string().lines().last().map(str::to_owned).unwrap_or_default();
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        assert_eq!(words(row(&results)), ["speed", "Gbit/s", "-", "5.00", "(-)", "-%", "0"]);
        results.show_means();
        assert_eq!(words(row(&results)), ["speed", "Gbit/s", "-", "5.00", "+-", "-,", "1", "(-)"]);
    }

    #[test]
    fn the_table_shows_medians_and_ratios() {
        let mut results = Results::new(["a", "b"].into_iter());
        for (system, value) in [("a", 10.0), ("b", 5.0), ("a", 12.0), ("b", 5.5), ("a", 11.0), ("b", 6.0)] {
            results.add("speed", "Gbit/s", system, value);
        }
        let text = results.to_string();
        assert!(text.contains("11.00 (1.00)") && text.contains("5.50 (0.50)") && text.contains("18%"), "{text}");
    }
}
