//! Queues of classes, step marking and pauses against an obvious model of them: nanosecond by nanosecond, whoever is first in the
//! highest class that is not paused leaves when the wire is free.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;
use weftwire_core::Time;
use weftwire_network::link::{CLASSES, Direction, Discipline, DropCause, LinkSettings, Offer, Queue, QueueLimit, Rate};

#[derive(Clone, Copy, Debug)]
enum Input {
    /// A packet of so many bytes, of a class, that may be marked or not.
    Offer(u32, u8, bool),
    Pause(u8, bool),
}

/// What arrives, when, marked or not; what was dropped; what waits at the end.
type Outcome = (Vec<(usize, i64, bool)>, Vec<usize>, u64);

/// One byte a nanosecond.
fn settings(limit: QueueLimit, threshold: u64, priority: bool) -> LinkSettings {
    LinkSettings {
        rate: Some(Rate::Constant(8_000_000_000)),
        delay: Duration::from_nanos(7),
        queue: Queue { limit, discipline: Discipline::Step { threshold }, ecn: false, priority },
        ..LinkSettings::default()
    }
}

fn real(settings: &LinkSettings, steps: &[(i64, Input)], end: i64) -> Outcome {
    let mut link = Direction::new(settings.clone(), 1);
    let (mut arrived, mut dropped, mut now) = (Vec::new(), Vec::new(), 0);
    for (number, (gap, input)) in steps.iter().enumerate() {
        now += gap;
        let at = Time::from_nanoseconds(now);
        match *input {
            Input::Offer(bytes, class, ecn_capable) => {
                let class = if settings.queue.priority { class } else { 0 };
                match link.offer(at, number, Offer { bytes, ecn_capable, class, holds: None }) {
                    Ok(()) => {}
                    Err((packet, DropCause::QueueFull)) => dropped.push(packet),
                    Err(other) => panic!("{other:?}"),
                }
            }
            Input::Pause(class, on) => link.pause(at, class, on),
        }
    }
    while let Some(arrival) = link.arrive(Time::from_nanoseconds(end)) {
        arrived.push((arrival.packet, arrival.at.nanoseconds(), arrival.mark));
    }
    let (waiting, _) = link.waiting(Time::from_nanoseconds(end));
    let counts = link.counts(Time::from_nanoseconds(end));
    assert_eq!(counts.offered_packets, counts.delivered_packets + counts.dropped_full + counts.on_link);
    let marked = arrived.iter().filter(|arrival| arrival.2).count() as u64;
    assert!(counts.marked >= marked && (counts.on_link > 0 || counts.marked == marked), "{counts:?}");
    (arrived, dropped, waiting)
}

fn model(settings: &LinkSettings, steps: &[(i64, Input)], end: i64) -> Outcome {
    let Discipline::Step { threshold } = settings.queue.discipline else { unreachable!("marks by step") };
    let mut queues: [VecDeque<(usize, u32, bool)>; CLASSES] = Default::default();
    let mut paused = [false; CLASSES];
    let (mut arrived, mut dropped, mut left) = (Vec::new(), Vec::new(), 0_u32);
    let mut inputs = steps.iter().enumerate().peekable();
    let mut due = steps.first().map_or(0, |step| step.0);
    for now in 0..=end {
        let serve =
            |queues: &mut [VecDeque<_>; CLASSES], paused: &[bool; CLASSES], left: &mut u32, arrived: &mut Vec<_>| {
                let first = (0..CLASSES).rev().find(|class| !paused[*class] && !queues[*class].is_empty());
                if let Some((packet, bytes, mark)) =
                    first.filter(|_| *left == 0).and_then(|class| queues[class].pop_front())
                {
                    *left = bytes;
                    arrived.push((packet, now + i64::from(bytes) + 7, mark));
                }
            };
        left = left.saturating_sub(1);
        serve(&mut queues, &paused, &mut left, &mut arrived);
        while due == now
            && let Some((number, (_, input))) = inputs.next()
        {
            match *input {
                Input::Offer(bytes, class, ecn) => {
                    let class = if settings.queue.priority { usize::from(class) } else { 0 };
                    let queue = &mut queues[class];
                    let bytes_before: u64 = queue.iter().map(|packet| u64::from(packet.1)).sum();
                    let (before, full) = match settings.queue.limit {
                        QueueLimit::Packets(limit) => (queue.len() as u64, queue.len() as u64 >= limit),
                        QueueLimit::Bytes(limit) => (bytes_before, bytes_before + u64::from(bytes) > limit),
                    };
                    if full && (left > 0 || paused[class]) {
                        dropped.push(number);
                    } else {
                        queue.push_back((number, bytes, ecn && before > threshold));
                    }
                }
                Input::Pause(class, on) => paused[usize::from(class)] = on,
            }
            serve(&mut queues, &paused, &mut left, &mut arrived);
            due = inputs.peek().map_or(i64::MAX, |(_, step)| now + step.0);
        }
    }
    arrived.retain(|arrival| arrival.1 <= end);
    (arrived, dropped, queues.iter().map(|queue| queue.len() as u64).sum())
}

fn steps() -> impl Strategy<Value = Vec<(i64, Input)>> {
    let input = prop_oneof![
        8 => (1u32..40, 0u8..8, any::<bool>()).prop_map(|(bytes, class, ecn)| Input::Offer(bytes, class, ecn)),
        1 => (0u8..8, any::<bool>()).prop_map(|(class, on)| Input::Pause(class, on)),
    ];
    vec((prop_oneof![Just(0), 0i64..20, 0i64..120], input), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn classes_marks_and_pauses_are_exact(
        steps in steps(),
        limit in prop_oneof![(0u64..6).prop_map(QueueLimit::Packets), (0u64..100).prop_map(QueueLimit::Bytes)],
        threshold in prop_oneof![0u64..6, 0u64..100],
        priority: bool,
        behind in 0i64..500,
    ) {
        let settings = settings(limit, threshold, priority);
        let end = steps.iter().map(|step| step.0).sum::<i64>() + behind;
        prop_assert_eq!(real(&settings, &steps, end), model(&settings, &steps, end));
    }
}

/// RFC 8257, 3.1: an arrival that finds more than K waiting is marked, at once, and not by an average.
#[test]
fn a_step_marks_who_finds_more_than_it_waiting() {
    let steps: Vec<_> = (0..6).map(|number| (0, Input::Offer(100, 0, number != 4))).collect();
    let (arrived, dropped, _) = real(&settings(QueueLimit::Packets(5), 2, false), &steps, 10_000);
    let marked: Vec<_> = arrived.iter().map(|arrival| arrival.2).collect();
    // The first is in service; the fifth can't be marked.
    assert_eq!((marked, dropped), (vec![false, false, false, false, false, true], vec![]));
}

#[test]
fn the_highest_class_goes_first_and_the_packet_in_service_stays() {
    let steps = [(0, Input::Offer(100, 0, false)), (10, Input::Offer(10, 2, false)), (0, Input::Offer(10, 7, false))];
    let (arrived, ..) = real(&settings(QueueLimit::Packets(5), 5, true), &steps, 10_000);
    assert_eq!(arrived, [(0, 107, false), (2, 117, false), (1, 127, false)]);
}

#[test]
fn a_pause_holds_back_its_class_only() {
    let steps = [
        (0, Input::Pause(3, true)),
        (5, Input::Offer(10, 3, false)),
        (0, Input::Offer(10, 0, false)),
        (100, Input::Pause(3, false)),
    ];
    let (arrived, ..) = real(&settings(QueueLimit::Packets(5), 5, true), &steps, 10_000);
    assert_eq!(arrived, [(2, 22, false), (1, 122, false)]);
}
