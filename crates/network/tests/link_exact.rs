//! Links against obvious models of them: a drop-tail link nanosecond by nanosecond, and the balance of packets with
//! everything going wrong at once.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use weftwire_core::{Time, nanoseconds};
use weftwire_network::link::{
    Arrival, Counts, Direction, Discipline, DropCause, Holds, LinkSettings, Loss, Offer, Queue, QueueLimit, Rate,
    RateTrace,
};

fn at(nanoseconds: i64) -> Time {
    Time::from_nanoseconds(nanoseconds)
}

#[derive(Clone, Debug)]
enum Input {
    Offer(u32),
    Change(Box<LinkSettings>),
    Down,
    Up,
    Blackhole(bool),
    Pause(u8, bool),
}

/// Nanoseconds after the input before, and whether somebody takes what arrives in between.
type Step = (i64, bool, Input);

/// Everything that came out, with the waiting packets after each input and the counts at the end.
#[derive(PartialEq, Debug, Default)]
struct Outcome {
    /// Packet, when, how long it waited.
    arrivals: Vec<(u32, i64, i64)>,
    drops: Vec<(u32, DropCause)>,
    waiting: Vec<(u64, u64)>,
    busy: u128,
    integral: u128,
}

fn run(settings: LinkSettings, seed: u64, steps: &[Step], looks: bool) -> (Outcome, Vec<Arrival<u32>>, Counts) {
    let mut link = Direction::new(settings, seed);
    let mut outcome = Outcome::default();
    let (mut arrivals, mut held, mut freed) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = 0;
    for (number, (gap, look, input)) in steps.iter().enumerate() {
        now += gap;
        while let Some(next) = link.next().filter(|next| next.nanoseconds() <= now && *look && looks) {
            if let Some(arrival) = link.arrive(next) {
                assert_eq!(arrival.at, next, "an arrival is there when it was said to be, and not later");
                arrivals.push(arrival);
            }
        }
        match input {
            Input::Offer(bytes) => {
                let class = if link.settings().queue.priority { (bytes % 8) as u8 } else { 0 };
                // Some take room elsewhere.
                let holds = (class > 0 && bytes % 3 == 0).then_some(Holds { came_by: *bytes, class });
                match link.offer(
                    at(now),
                    number as u32,
                    Offer { bytes: *bytes, ecn_capable: bytes % 2 == 0, class, holds },
                ) {
                    Ok(()) => held.extend(holds.map(|holds| (holds, *bytes))),
                    Err(drop) => outcome.drops.push(drop),
                }
            }
            Input::Change(settings) => link.change(at(now), (**settings).clone()),
            Input::Down => link.down(at(now)),
            Input::Up => link.up(at(now)),
            Input::Blackhole(on) => link.set_blackhole(at(now), *on),
            Input::Pause(class, on) => link.pause(at(now), *class, *on),
        }
        outcome.drops.extend(std::iter::from_fn(|| link.take_dropped()));
        outcome.waiting.push(link.waiting(at(now)));
        freed.extend(std::iter::from_fn(|| link.take_freed()));
    }
    (0..8).for_each(|class| link.pause(at(now), class, false));
    while let Some(next) = link.next() {
        arrivals.extend(link.arrive(next));
        now = now.max(next.nanoseconds());
    }
    outcome.drops.extend(std::iter::from_fn(|| link.take_dropped()));
    outcome.drops.sort();
    freed.extend(std::iter::from_fn(|| link.take_freed()));
    held.sort();
    freed.sort();
    assert_eq!(held, freed, "what took room is told to be gone, once");
    outcome.arrivals = arrivals.iter().map(|a| (a.packet, a.at.nanoseconds(), nanoseconds(a.waited))).collect();
    let counts = link.counts(at(now));
    (outcome.busy, outcome.integral) = (counts.busy, counts.queue_bytes_integral);
    (outcome, arrivals, counts)
}

/// A drop-tail link with a constant rate, nanosecond by nanosecond.
fn oracle(mut settings: LinkSettings, steps: &[Step]) -> Outcome {
    struct Waits {
        packet: u32,
        bytes: u32,
        since: i64,
    }
    let mut outcome = Outcome::default();
    let mut queue: Vec<Waits> = Vec::new();
    // Bits per second times nanoseconds left to do; with the packet's wire: packet, arrival, waited.
    let mut work = 0i128;
    let mut serving: Option<(u32, i64, i64)> = None;
    let mut wire: Vec<(u32, i64, i64)> = Vec::new();
    let mut last_arrival = i64::MIN;
    let mut is_down = false;
    let mut inputs = steps.iter().enumerate().peekable();
    let mut due = steps.first().map_or(0, |step| step.0);
    let mut now = 0;
    let rate = |settings: &LinkSettings| match settings.rate {
        Some(Rate::Constant(rate)) => i128::from(rate),
        _ => unreachable!("constant rates only"),
    };
    let mut serving_rate = 0;
    loop {
        // The packet in service has propagation and rate of when it began.
        let begin = |waits: &Waits, now: i64, settings: &LinkSettings| {
            (
                i128::from(waits.bytes + settings.overhead) * 8_000_000_000,
                (waits.packet, nanoseconds(settings.delay), now - waits.since),
            )
        };
        if work <= 0 {
            if let Some((packet, delay, waited)) = serving.take() {
                last_arrival = last_arrival.max(now + delay);
                wire.push((packet, last_arrival, waited));
            }
            if !queue.is_empty() {
                let head = queue.remove(0);
                let (todo, packet) = begin(&head, now, &settings);
                (work, serving, serving_rate) = (todo, Some(packet), rate(&settings));
            }
        }
        let (here, still): (Vec<_>, Vec<_>) = wire.into_iter().partition(|packet| packet.1 <= now);
        wire = still;
        outcome.arrivals.extend(here);
        while due == now
            && let Some((number, (_, _, input))) = inputs.next()
        {
            match input {
                Input::Offer(_) if is_down => outcome.drops.push((number as u32, DropCause::Down)),
                Input::Offer(bytes) => {
                    let waits = Waits { packet: number as u32, bytes: *bytes, since: now };
                    let full = match settings.queue.limit {
                        QueueLimit::Packets(limit) => queue.len() as u64 >= limit,
                        QueueLimit::Bytes(limit) => {
                            queue.iter().map(|w| u64::from(w.bytes)).sum::<u64>() + u64::from(*bytes) > limit
                        }
                    };
                    if serving.is_none() {
                        let (todo, packet) = begin(&waits, now, &settings);
                        (work, serving, serving_rate) = (todo, Some(packet), rate(&settings));
                    } else if full {
                        outcome.drops.push((waits.packet, DropCause::QueueFull));
                    } else {
                        queue.push(waits);
                    }
                }
                Input::Change(new) => settings = (**new).clone(),
                Input::Down => {
                    is_down = true;
                    let lost = wire.drain(..).map(|p| p.0).chain(serving.take().map(|p| p.0));
                    let lost: Vec<_> = lost.chain(queue.drain(..).map(|w| w.packet)).collect();
                    outcome.drops.extend(lost.into_iter().map(|packet| (packet, DropCause::Down)));
                    work = 0;
                    last_arrival = last_arrival.min(now);
                }
                Input::Up => is_down = false,
                Input::Blackhole(_) | Input::Pause(..) => {}
            }
            outcome.waiting.push((queue.len() as u64, queue.iter().map(|w| u64::from(w.bytes)).sum()));
            due = inputs.peek().map_or(i64::MAX, |(_, step)| now + step.0);
        }
        if inputs.peek().is_none() && serving.is_none() && wire.is_empty() {
            break;
        }
        outcome.busy += u128::from(serving.is_some());
        outcome.integral += queue.iter().map(|w| u128::from(w.bytes)).sum::<u128>();
        work -= serving_rate;
        now += 1;
    }
    outcome.drops.sort();
    outcome
}

fn nanos(nanoseconds: i64) -> Duration {
    Duration::from_nanos(nanoseconds.unsigned_abs())
}

fn plain() -> impl Strategy<Value = LinkSettings> {
    let limit = prop_oneof![(0u64..6).prop_map(QueueLimit::Packets), (0u64..100).prop_map(QueueLimit::Bytes)];
    (3_000_000_000u64..40_000_000_000, 0i64..60, limit, 0u32..5).prop_map(|(rate, delay, limit, overhead)| {
        LinkSettings {
            rate: Some(Rate::Constant(rate)),
            delay: nanos(delay),
            overhead,
            queue: Queue { limit, discipline: Discipline::DropTail, ecn: false, priority: false },
            ..LinkSettings::default()
        }
    })
}

fn steps(change: impl Strategy<Value = LinkSettings> + 'static) -> impl Strategy<Value = Vec<Step>> {
    let input = prop_oneof![
        20 => (1u32..60).prop_map(Input::Offer),
        1 => change.prop_map(|settings| Input::Change(Box::new(settings))),
        1 => Just(Input::Down),
        1 => Just(Input::Up),
    ];
    vec((prop_oneof![Just(0), 0i64..20, 0i64..120], any::<bool>(), input), 1..60)
}

fn wild() -> impl Strategy<Value = LinkSettings> {
    let share = || prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64];
    let rate = prop_oneof![
        Just(None),
        (3_000_000_000u64..40_000_000_000).prop_map(|rate| Some(Rate::Constant(rate))),
        Just(Some(Rate::Trace(
            RateTrace { steps: vec![(0, 8_000_000_000), (50, 0), (90, 1_000)], period: nanos(100) }.into()
        ))),
    ];
    let limit = prop_oneof![(0u64..9).prop_map(QueueLimit::Packets), (0u64..200).prop_map(QueueLimit::Bytes)];
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        (0u64..4, 4u64..9, 0.1..1.0f64, 0.1..1.0f64).prop_map(|(minimum, maximum, probability, weight)| {
            Discipline::Red { minimum, maximum, probability, weight }
        }),
        (0u64..9).prop_map(|threshold| Discipline::Step { threshold }),
        (0i64..20, 1i64..60)
            .prop_map(|(target, interval)| Discipline::Codel { target: nanos(target), interval: nanos(interval) }),
    ];
    let loss = prop_oneof![
        (0.0..0.5f64).prop_map(Loss::Random),
        (0.0..1.0f64, 0.1..1.0f64).prop_map(|(good_to_bad, bad_to_good)| Loss::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_good: 0.0,
            loss_bad: 1.0
        }),
    ];
    (
        rate,
        0i64..60,
        (0i64..20, any::<bool>()),
        limit,
        discipline,
        any::<(bool, bool)>(),
        loss,
        (share(), 0i64..200),
        share(),
        share(),
    )
        .prop_map(
            |(
                rate,
                delay,
                (jitter, jitter_reorders),
                limit,
                discipline,
                (ecn, priority),
                loss,
                (reorder, reorder_delay),
                duplicate,
                corrupt,
            )| {
                LinkSettings {
                    rate,
                    delay: nanos(delay),
                    jitter: nanos(jitter),
                    jitter_reorders,
                    queue: Queue { limit, discipline, ecn, priority },
                    loss,
                    reorder,
                    reorder_delay: nanos(reorder_delay),
                    duplicate,
                    corrupt,
                    overhead: 3,
                    pause: None,
                }
            },
        )
}

fn wild_steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![
        30 => Just(None),
        1 => Just(Some(Input::Blackhole(true))),
        2 => Just(Some(Input::Blackhole(false))),
        3 => (0u8..8, any::<bool>()).prop_map(|(class, on)| Some(Input::Pause(class, on)))
    ];
    vec(fault, 60).prop_flat_map(|faults| {
        steps(wild()).prop_map(move |mut steps| {
            for (step, fault) in steps.iter_mut().zip(&faults) {
                if let Some(fault) = fault {
                    step.2 = fault.clone();
                }
            }
            steps
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn drop_tail_is_exact(settings in plain(), steps in steps(plain())) {
        let (outcome, _, counts) = run(settings.clone(), 1, &steps, true);
        let mut expected = oracle(settings, &steps);
        // The end of the last packet's service is the end of the oracle; both count up to their ends.
        prop_assert_eq!(counts.waited_sum, {
            let arrived: i64 = expected.arrivals.iter().map(|a| a.2).sum();
            arrived as u128 + counts.waited_sum - outcome.arrivals.iter().map(|a| a.2).sum::<i64>() as u128
        });
        expected.drops.sort();
        prop_assert_eq!(outcome, expected);
    }

    #[test]
    fn packets_come_out_once_whatever_happens(settings in wild(), steps in wild_steps(), seed: u64) {
        let (outcome, arrivals, counts) = run(settings, seed, &steps, true);
        let offered = steps.iter().enumerate().filter(|(_, step)| matches!(step.2, Input::Offer(_)));
        let mut left: BTreeMap<u32, i64> = offered.map(|(number, _)| (number as u32, 1)).collect();
        prop_assert_eq!(counts.offered_packets, left.len() as u64);
        let mut more = 0;
        for packet in arrivals.iter().map(|a| a.packet).chain(outcome.drops.iter().map(|drop| drop.0)) {
            let left = left.get_mut(&packet).expect("a packet that was offered");
            *left -= 1;
            more += u64::from(*left < 0);
            prop_assert!(*left >= -1, "at most one copy");
        }
        prop_assert!(left.values().all(|left| *left <= 0), "none leaks");
        prop_assert_eq!(more, counts.duplicated);
        let dropped = [DropCause::Loss, DropCause::QueueFull, DropCause::Discipline, DropCause::Down, DropCause::Blackhole]
            .map(|cause| outcome.drops.iter().filter(|drop| drop.1 == cause).count() as u64);
        let counted =
            [counts.lost, counts.dropped_full, counts.dropped_early, counts.dropped_down, counts.dropped_blackhole];
        prop_assert_eq!(dropped, counted);
        prop_assert_eq!(counts.delivered_packets, arrivals.len() as u64);
        prop_assert_eq!(
            counts.offered_packets + counts.duplicated,
            counts.delivered_packets + dropped.iter().sum::<u64>()
        );
        prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        for arrival in arrivals {
            let Input::Offer(bytes) = steps[arrival.packet as usize].2 else { unreachable!("only offers arrive") };
            prop_assert!(arrival.corrupt_bit.is_none_or(|bit| (112..bytes * 8).contains(&bit)));
            prop_assert!(!arrival.mark || bytes % 2 == 0);
        }
    }

    #[test]
    fn it_does_not_matter_how_often_anybody_looks(settings in wild(), steps in wild_steps(), seed: u64) {
        let (often, mut arrivals_often, _) = run(settings.clone(), seed, &steps, true);
        let (never, mut arrivals_never, _) = run(settings, seed, &steps, false);
        prop_assert_eq!(often.drops, never.drops);
        prop_assert_eq!(often.waiting, never.waiting);
        let key = |arrival: &Arrival<u32>| (arrival.at, arrival.packet, arrival.duplicate);
        arrivals_often.sort_by_key(key);
        arrivals_never.sort_by_key(key);
        prop_assert_eq!(arrivals_often, arrivals_never);
    }
}
