//! The calendar against a sorted list.

use proptest::prelude::*;
use weftwire_calendar::{Calendar, Owned, TimerHandle};
use weftwire_core::Time;

#[allow(dead_code, reason = "shared with other tests, each of which uses a part")]
mod steps;
use steps::{Step, run};

/// Times of many kinds: equal, close together, far apart, at the ends.
fn instant() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -5..40_i64,
        2 => 0..3_i64,
        3 => 1_000_000_000..1_000_004_000_i64,
        2 => 0..10_000_000_000_i64,
        1 => any::<i64>(),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-1), Just(0), Just(1 << 62)],
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => instant().prop_map(Step::Insert),
        2 => (instant(), 2..40_u8).prop_map(|(at, count)| Step::InsertMany(at, count)),
        3 => (0..300_usize).prop_map(Step::Remove),
        3 => instant().prop_map(Step::PopDue),
        1 => (0..12_u8).prop_map(Step::PopSome),
        1 => (instant(), 0..40_usize).prop_map(|(at, most)| Step::Batch(at, most)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn agrees_with_a_sorted_list(
        tick in prop_oneof![3 => Just(1_i64), 1 => 2..100_i64],
        limit in prop_oneof![3 => Just(100_000_usize), 1 => 0..40_usize],
        steps in proptest::collection::vec(step(), 0..300),
    ) {
        run(tick, limit, &steps);
    }

    #[test]
    fn a_range_is_cancelled_as_in_a_list(
        settings in proptest::collection::vec((0..50_i64, 0..40_u64), 0..150),
        popped in 0..50_i64,
        (from, to) in (0..45_u64, 0..45_u64),
    ) {
        let mut calendar = Calendar::new();
        let (mut owned, mut others) = (Owned::new(), Owned::new());
        let mut list = Vec::new();
        for (at, number) in settings {
            let owner = if at % 2 == 0 { &mut owned } else { &mut others };
            let handle = owner.insert(&mut calendar, Time::from_nanoseconds(at), number, number).expect("not full");
            list.push((at, handle, number));
        }
        let now = Time::from_nanoseconds(popped);
        for (_, handle, number) in calendar.drain_due(now).collect::<Vec<_>>() {
            owned.forget(number, handle);
        }
        list.retain(|(at, ..)| *at > popped);
        let pending = list.len();
        list.retain(|(at, _, number)| at % 2 != 0 || !(from..to).contains(number));
        prop_assert_eq!(owned.cancel_range(&mut calendar, from..to), pending - list.len());
        prop_assert_eq!(owned.cancel_range(&mut calendar, from..to), 0);
        prop_assert_eq!(calendar.len(), list.len());
        for (_, handle, number) in list {
            prop_assert_eq!(calendar.get(handle), Some(&number));
        }
    }
}

#[test]
fn equal_deadlines_keep_their_order() {
    let mut calendar = Calendar::new();
    let noon = Time::from_nanoseconds(12);
    for number in 0..100 {
        calendar.insert(noon, number).expect("not full");
    }
    assert_eq!(calendar.pop_due(Time::from_nanoseconds(11)), None);
    let popped: Vec<i32> = calendar.drain_due(noon).map(|(_, _, number)| number).collect();
    assert_eq!(popped, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_handle_never_names_another_entry() {
    let mut calendar = Calendar::new();
    let noon = Time::from_nanoseconds(12);
    let old = calendar.insert(noon, "old").expect("not full");
    assert_eq!(calendar.remove(old), Some("old"));
    let new = calendar.insert(noon, "new").expect("not full");
    assert_eq!(calendar.remove(old), None);
    assert_eq!(calendar.remove(new), Some("new"));
}

#[test]
fn a_handle_of_another_calendar_does_no_harm() {
    let mut calendar = Calendar::new();
    let mut other = Calendar::new();
    let handles: Vec<TimerHandle> =
        (0..2_000).map(|it| other.insert(Time::from_nanoseconds(it % 7), it).expect("not full")).collect();
    for it in 0..1_000 {
        calendar.insert(Time::from_nanoseconds(it % 50), it).expect("not full");
    }
    handles.into_iter().for_each(|handle| _ = calendar.remove(handle));
    let left = calendar.len();
    assert!(calendar.drain_due(Time::MAX).take(left).count() <= left);
}

#[test]
fn a_full_calendar_gives_the_entry_back() {
    let mut calendar = Calendar::with_limit(2);
    let handle = calendar.insert(Time::ZERO, 1).expect("there is room");
    calendar.insert(Time::ZERO, 2).expect("there is room");
    let full = calendar.insert(Time::ZERO, 3).expect_err("there is no room");
    assert_eq!((full.entry, full.limit), (3, 2));
    assert_eq!(full.to_string(), "the calendar is full: it may have 2 entries");
    assert_eq!(calendar.remove(handle), Some(1));
    assert!(calendar.insert(Time::ZERO, 3).is_ok());
}

#[test]
fn an_owner_keeps_no_more_than_is_pending() {
    let (mut calendar, mut owned) = (Calendar::new(), Owned::new());
    for number in 0..10_000 {
        let at = Time::from_nanoseconds(number as i64);
        owned.insert(&mut calendar, at, number, ()).expect("not full");
        calendar.pop_due(at).expect("it is due");
        assert!(owned.len() <= 32);
    }
    assert!(owned.cancel_range(&mut calendar, ..) == 0 && owned.is_empty());
}
