//! Captures and results as pictures: who sent what when, how a connection went, what a network did.
//!
//! [`connections`] sorts captured packets into connections, [`ladder()`] and [`plot()`] draw one of them as SVG, and
//! [`page()`] makes one HTML page of everything. [`network::page`] shows a run of a network, [`sweep::page`] many runs,
//! [`comparison::page`] two runs beside each other; [`chart`] draws what they plot. All of it is a pure function of its
//! inputs.

mod axis;
mod boxes;
pub mod chart;
pub mod comparison;
mod connection;
mod html;
mod ladder;
pub mod network;
mod page;
mod plot;
pub mod sweep;
mod topology;
mod unit;

pub use axis::Axis;
pub use boxes::BoxPlot;
pub use connection::{Connection, Exchange, Observed, Standing, Tally, connections};
pub use ladder::ladder;
pub use page::{Page, document, page};
pub use plot::plot;
pub use unit::Unit;

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
