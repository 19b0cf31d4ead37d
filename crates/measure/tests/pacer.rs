//! Pacing on a real kernel: timers of a function in the run loop, and frames over a line. Nothing here judges how late anything is.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real clocks and sockets")]

use std::time::Duration;
use weftwire_linux::pacer::{Departures, Place, Policy, departures};
use weftwire_measure::line::{Line, NEAR};
use weftwire_measure::{kernel, sweep, ticker};
use weftwire_testbed::skip_unless_root;

const POLICIES: [Policy; 3] = [Policy::Sleep, Policy::SleepSpin { margin: Duration::from_micros(100) }, Policy::Spin];

#[test]
fn timers_of_a_function_fire_once_in_order_and_never_early() {
    // 200 of them within 20 ms, some close together.
    let schedule: Vec<i64> = (1..=200).map(|tick| tick * 100_000 - i64::from(tick % 2 == 0) * 99_000).collect();
    for policy in POLICIES {
        let ran = ticker::run(&schedule, policy, Place::default()).unwrap();
        // A machine that others hold up may come to the end of the run before the last ones.
        assert!((1..=schedule.len()).contains(&ran.released_ns.len()), "{policy:?}");
        assert!(ran.released_ns.iter().all(|late| *late >= 0), "{policy:?}");
        let times: Vec<i64> = ran.released_ns.iter().zip(&schedule).map(|(late, at)| late + at).collect();
        assert!(times.is_sorted(), "{policy:?}");
    }
}

#[test]
fn frames_leave_once_in_order_and_never_early() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::make().unwrap();
    let schedule: Vec<i64> = (0..500).map(|number| number * 20_000).collect();
    for policy in POLICIES {
        let place = Place { cpu: Some(0), priority: Some(5) };
        let sent = sweep::send(&line, &schedule, policy, place, true).unwrap();
        assert_eq!((sent.released_ns.len(), sent.refused), (schedule.len(), 0), "{policy:?}");
        assert!(sent.released_ns.iter().all(|late| *late >= 0), "{policy:?}");
        let times: Vec<i64> =
            sent.departed_ns.iter().zip(&schedule).filter_map(|(late, at)| Some((*late)? + at)).collect();
        // All have been sent; a machine that is short of memory does not show all of them to who watches.
        assert!(!times.is_empty(), "{policy:?}: frames are seen to leave");
        assert!(times.is_sorted(), "{policy:?}");
        // The kernel's time stamps are of another clock, which may be told a little wrong from ours.
        assert!(times.iter().zip(&schedule).all(|(time, at)| *time > at - 20_000), "{policy:?}");
        assert_eq!((sent.standing.cpu, sent.standing.priority), (place.cpu, place.priority));
    }
}

#[test]
fn the_line_ignores_departure_times_until_it_has_a_fair_queue() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::make().unwrap();
    let found = || line.near.run(|| departures(NEAR)).unwrap().unwrap();
    assert_eq!(found(), Departures::Ignored { qdiscs: "noqueue".to_owned() });
    match line.set_fair_queue(true) {
        Ok(()) => assert!(matches!(found(), Departures::Honoured { .. }), "{:?}", found()),
        // Not every kernel has one.
        Err(error) => assert!(error.to_string().contains("tc"), "{error}"),
    }
}

#[test]
fn the_kernel_paces_a_connection() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::make().unwrap();
    line.set_single_segments(true).unwrap();
    let paced = kernel::paced(&line, 200_000, Duration::from_millis(100)).unwrap();
    assert!(!paced.gaps_ns.is_empty() && paced.gaps_ns.iter().all(|gap| *gap >= 0));
    assert!((1.0..1.01).contains(&paced.burst), "{}", paced.burst);
}
