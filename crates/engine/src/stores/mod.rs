//! Ranges, the receive buffer and segments of an instance (semantics, rules R1 to R7 and G1 to G7).

mod pages;
mod ranges;
mod segments;

pub use ranges::Ranges;
pub use segments::{Segments, Tests};

/// The distance from one sequence number to another, modulo 2^32, signed.
fn distance(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from).cast_signed())
}
