//! The calendar in ticks against what anybody would write: look at every tick.

use proptest::prelude::*;
use weftwire_calendar::{Expiry, Placement, Refusal, Started, TickCalendar};

/// A hardware calendar, obviously: a list of places, a counter that wraps.
struct Obvious {
    counter: u64,
    bits: u32,
    placement: Placement,
    /// The counter's value at which it expires, the timer, and its payload; in the order of setting.
    places: Vec<(u64, u32, u64)>,
}

impl Obvious {
    fn ones(&self) -> u64 {
        (1 << self.bits) - 1
    }

    fn start(&mut self, interval: u64, id: u32, payload: u64) -> Option<u32> {
        if interval > self.ones() || self.places.iter().any(|(_, other, _)| *other == id) {
            return None;
        }
        let interval = interval.max(1);
        let reach = match self.placement {
            Placement::Exact => 0,
            Placement::NextFreeTick { reach } => reach,
        };
        for moved in 0..=reach {
            if interval + u64::from(moved) > self.ones() {
                return None;
            }
            let at = (self.counter + interval + u64::from(moved)) & self.ones();
            if self.placement == Placement::Exact || self.places.iter().all(|(other, ..)| *other != at) {
                self.places.push((at, id, payload));
                return Some(moved);
            }
        }
        None
    }

    fn stop(&mut self, id: u32) -> Option<u64> {
        let place = self.places.iter().position(|(_, other, _)| *other == id)?;
        Some(self.places.remove(place).2)
    }

    fn tick(&mut self) -> Vec<(u32, u64)> {
        self.counter = (self.counter + 1) & self.ones();
        let counter = self.counter;
        let expired = self.places.iter().filter(|(at, ..)| *at == counter).map(|(_, id, payload)| (*id, *payload));
        let expired = expired.collect();
        self.places.retain(|(at, ..)| *at != counter);
        expired
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start(u64, u32),
    Stop(u32),
    Tick(u16),
    Advance(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..20_u64, 0..64_u32).prop_map(|(interval, id)| Step::Start(interval, id)),
        1 => (0..600_u64, 0..64_u32).prop_map(|(interval, id)| Step::Start(interval, id)),
        2 => (0..64_u32).prop_map(Step::Stop),
        2 => (0..5_u16).prop_map(Step::Tick),
        1 => (0..700_u16).prop_map(Step::Advance),
    ]
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![Just(Placement::Exact), (0..80_u32).prop_map(|reach| Placement::NextFreeTick { reach })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_looking_at_every_tick(
        placement in placement(),
        bits in 2..10_u32,
        steps in proptest::collection::vec(step(), 0..200),
    ) {
        let mut calendar = TickCalendar::new(64, bits, placement);
        let mut obvious = Obvious { counter: 0, bits, placement, places: Vec::new() };
        for (number, step) in steps.into_iter().enumerate() {
            let payload = number as u64;
            match step {
                Step::Start(interval, id) => {
                    let started = calendar.start_timer(interval, id, payload);
                    prop_assert_eq!(started.ok().map(|it| it.moved), obvious.start(interval, id, payload));
                }
                Step::Stop(id) => prop_assert_eq!(calendar.stop_timer(id), obvious.stop(id)),
                Step::Tick(ticks) => {
                    for _ in 0..ticks {
                        let mut expired = Vec::new();
                        calendar.per_tick_bookkeeping(|it| expired.push((it.id, it.payload)));
                        let most = if placement == Placement::Exact { usize::MAX } else { 1 };
                        prop_assert!(expired.len() <= most);
                        prop_assert_eq!(expired, obvious.tick());
                    }
                }
                Step::Advance(ticks) => {
                    let (mut expired, mut expected) = (Vec::new(), Vec::new());
                    let to = calendar.now() + u64::from(ticks);
                    calendar.advance(to, |Expiry { id, payload, .. }| expired.push((id, payload)));
                    (0..ticks).for_each(|_| expected.extend(obvious.tick()));
                    prop_assert_eq!(expired, expected);
                }
            }
            prop_assert_eq!(calendar.counter(calendar.now()), obvious.counter);
            prop_assert_eq!(calendar.len(), obvious.places.len());
        }
    }
}

#[test]
fn a_collision_moves_on_by_a_tick() {
    let mut calendar = TickCalendar::new(8, 16, Placement::NextFreeTick { reach: 2 });
    assert_eq!(calendar.start_timer(5, 0, 10), Ok(Started { tick: 5, moved: 0 }));
    assert_eq!(calendar.start_timer(5, 1, 11), Ok(Started { tick: 6, moved: 1 }));
    assert_eq!(calendar.start_timer(6, 2, 12), Ok(Started { tick: 7, moved: 1 }));
    assert_eq!(calendar.start_timer(5, 3, 13), Err(Refusal::NoFreeTick { reach: 2 }));
    assert_eq!(calendar.stop_timer(1), Some(11));
    assert_eq!(calendar.start_timer(5, 3, 13), Ok(Started { tick: 6, moved: 1 }));
    assert_eq!(calendar.start_timer(5, 3, 13), Err(Refusal::Running(3)));
    assert_eq!(calendar.start_timer(5, 8, 13), Err(Refusal::NoTimer { id: 8, timers: 8 }));
    assert_eq!(calendar.start_timer(1 << 16, 4, 0), Err(Refusal::TooFar { interval: 1 << 16, most: 65_535 }));
    let mut expired = Vec::new();
    calendar.advance(10, |it| expired.push((it.tick, it.id)));
    assert_eq!(expired, [(5, 0), (6, 3), (7, 2)]);
    assert!(calendar.is_empty() && calendar.next_expiry().is_none());
}
