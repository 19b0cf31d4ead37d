//! How far a long command is, and how long it still takes, on a terminal.

use crate::console;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

/// Commands that end sooner say nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// From one word to the next.
const PAUSE: Duration = Duration::from_millis(200);

/// One line on standard error, if that is a terminal, that goes when this goes.
pub struct ProgressLine {
    begun: Instant,
    pace: Pace,
    terminal: bool,
}

impl ProgressLine {
    /// Begins to count the time.
    pub fn begin() -> ProgressLine {
        ProgressLine { begun: Instant::now(), pace: Pace::default(), terminal: io::stderr().is_terminal() }
    }

    /// Whether anything is ever shown.
    pub fn is_shown(&self) -> bool {
        self.terminal
    }

    /// Tells that this share of the work, from 0 to 1, is done, and what it is about. May be called as often as one likes.
    pub fn tell(&mut self, share: f64, what: impl Display) {
        if self.terminal
            && let Some(line) = self.pace.line(self.begun.elapsed(), share, what)
        {
            console::tell_text(format_args!("\r{line}\x1b[K\r"));
        }
    }

    /// Takes the line away, before other words come.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.pace.shown) {
            console::tell_text(format_args!("\r\x1b[K"));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// When something is said, and what.
struct Pace {
    next: Duration,
    shown: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { next: PATIENCE, shown: false }
    }
}

impl Pace {
    fn line(&mut self, elapsed: Duration, share: f64, what: impl Display) -> Option<String> {
        if elapsed < self.next {
            return None;
        }
        (self.next, self.shown) = (elapsed + PAUSE, true);
        let share = share.clamp(0.0, 1.0);
        let left = match share > 0.0 {
            true => format!(", {} left", time(elapsed.as_secs_f64() * (1.0 - share) / share)),
            false => String::new(),
        };
        Some(format!("{:3.0} %{left}: {what}", share * 100.0))
    }
}

/// A time as people say it.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..99.5 => format!("{seconds:.0} s"),
        99.5..5_970.0 => format!("{:.0} min", seconds / 60.0),
        5_970.0..345_600.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_after_two_seconds_and_not_too_often() {
        let mut pace = Pace::default();
        let mut line = |milliseconds, share| pace.line(Duration::from_millis(milliseconds), share, "runs");
        assert_eq!(line(1_999, 0.5), None);
        assert_eq!(line(2_000, 0.0).unwrap(), "  0 %: runs");
        assert_eq!(line(2_199, 0.5), None);
        assert_eq!(line(4_000, 0.25).unwrap(), " 25 %, 12 s left: runs");
        assert_eq!(line(5_000, 1.5).unwrap(), "100 %, 0 s left: runs");
        for (seconds, words) in [(99.0, "99 s"), (120.0, "2 min"), (7_200.0, "2.0 h"), (8_640_000.0, "100 days")] {
            assert_eq!(time(seconds), words);
        }
    }
}
