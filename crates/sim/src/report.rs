//! Captures as pictures: who sent what when, and how a connection went.
//!
//! [`connections`] sorts captured packets into connections, [`ladder()`] and [`plot()`] draw one of them as SVG, and
//! [`page()`] makes one HTML page of everything. All of it is a pure function of its inputs.

mod connection;
mod ladder;
mod page;
mod plot;

pub use connection::{Connection, Exchange, Observed, Standing, Tally, connections};
pub use ladder::ladder;
pub use page::{Page, document, page};
pub use plot::plot;

/// Seconds since `start` as pictures show them: `0.012345`.
fn seconds(nanoseconds: i64) -> String {
    let micros = nanoseconds / 1_000;
    format!("{}{}.{:06}", if micros < 0 { "-" } else { "" }, (micros / 1_000_000).abs(), (micros % 1_000_000).abs())
}

/// A number of bytes with thin digits groups: `1 234 567`.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}
