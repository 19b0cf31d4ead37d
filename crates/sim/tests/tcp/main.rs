//! The TCP of `examples/transports/tcp`, both ends of it, over a line that loses, doubles, delays and reorders: every byte
//! arrives once and in order, both ends close, and after every event something is pending that gets things going again.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read an example, and share its machines between their threads"
)]

mod again;
mod bbr_v3;
mod bbr_v3_model;
mod control;
mod flood;
mod hostile;
mod larger;
mod matrix;
mod recovery;
mod reductions;
mod response;
mod rfc6675;
mod slow_start;
mod support;
mod ways;

use proptest::prelude::*;
use support::{CLEAN, Line, brought, machine};

#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let (connection, took) = brought([machine(&[]), machine(&[])], [3_000_000, 0], CLEAN, 1);
    assert_eq!(connection.ends[0].sent, 3_000_000);
    // Slow start doubles from ten segments each round trip of 10 ms; then 60 s of TIME-WAIT.
    assert!((60.0..60.3).contains(&took), "{took} s");
}

#[test]
fn a_burst_of_losses_is_sent_once_more_each() {
    let line = Line { lost: 20, ..CLEAN };
    let (connection, _) = brought([machine(&[]), machine(&[])], [2_000_000, 0], line, 3);
    // A few of those that are lost are acknowledgments.
    let again = (connection.ends[0].sent - 2_000_000) / 1_448;
    assert!(connection.lost > 10 && again <= connection.lost, "{again} again, {} lost", connection.lost);
}

#[test]
fn sequence_numbers_wrap() {
    for first in [u32::MAX - 5, (1 << 31) - 70_000, u32::MAX - 200_000] {
        let images = [machine(&[("first", first.into())]), machine(&[("first", i64::from(first) + 3)])];
        brought(images, [400_000, 300_000], Line { lost: 10, ..CLEAN }, u64::from(first));
    }
}

#[test]
fn peers_without_options_are_understood() {
    let plain = [("offer_scaling", 0), ("offer_stamps", 0), ("offer_selective", 0)];
    for count in 0..3 {
        let images = [machine(&plain[..=count]), machine(&[])];
        brought(images.clone(), [200_000, 100_000], Line { lost: 20, ..CLEAN }, count as u64);
        let [one, other] = images;
        brought([other, one], [200_000, 100_000], Line { lost: 20, ..CLEAN }, count as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives(
        lengths in (0..80_000_usize, 0..50_000_usize),
        lost in 0..150_u64,
        doubled in 0..100_u64,
        late in 0..100_u64,
        delay in 100_000..100_000_000_i64,
        seed in any::<u64>(),
    ) {
        let line = Line { lost, doubled, late, delay };
        brought([machine(&[]), machine(&[])], [lengths.0, lengths.1], line, seed);
    }
}
