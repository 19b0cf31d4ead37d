//! The calendar against a sorted list.

use proptest::prelude::*;
use weftwire_calendar::{Calendar, TimerHandle};
use weftwire_core::Time;

#[derive(Clone, Debug)]
enum Step {
    Insert(i64),
    /// Removes the entry inserted as the n-th, whether it is still there or not.
    Remove(usize),
    PopDue(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (-5..40_i64).prop_map(Step::Insert),
        1 => (0..60_usize).prop_map(Step::Remove),
        2 => (-5..40_i64).prop_map(Step::PopDue),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_list(steps in proptest::collection::vec(step(), 0..200)) {
        let mut calendar = Calendar::new();
        let mut handles: Vec<TimerHandle> = Vec::new();
        // Deadline and number of insertion, in order.
        let mut list: Vec<(Time, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(deadline) => {
                    let deadline = Time::from_nanoseconds(deadline);
                    let number = handles.len();
                    let handle = calendar.insert(deadline, number);
                    prop_assert_eq!(handle.deadline(), deadline);
                    prop_assert!(!handles.contains(&handle), "a handle came twice");
                    handles.push(handle);
                    let place = list.partition_point(|entry| *entry <= (deadline, number));
                    list.insert(place, (deadline, number));
                }
                Step::Remove(number) => {
                    let Some(&handle) = handles.get(number) else { continue };
                    let place = list.iter().position(|(_, known)| *known == number);
                    let expected = place.map(|place| list.remove(place).1);
                    prop_assert_eq!(calendar.get(handle).copied(), expected);
                    prop_assert_eq!(calendar.remove(handle), expected);
                }
                Step::PopDue(now) => {
                    let now = Time::from_nanoseconds(now);
                    let expected = list.first().copied().filter(|(deadline, _)| *deadline <= now);
                    if expected.is_some() {
                        list.remove(0);
                    }
                    let popped = calendar.pop_due(now);
                    prop_assert_eq!(popped.map(|(deadline, _, number)| (deadline, number)), expected);
                    if let Some((_, handle, number)) = popped {
                        prop_assert_eq!(handle, handles[number]);
                    }
                }
            }
            prop_assert_eq!(calendar.len(), list.len());
            prop_assert_eq!(calendar.is_empty(), list.is_empty());
            prop_assert_eq!(calendar.next_deadline(), list.first().map(|(deadline, _)| *deadline));
        }
    }
}

#[test]
fn equal_deadlines_come_in_order_of_insertion() {
    let mut calendar = Calendar::new();
    let noon = Time::from_nanoseconds(12);
    for number in 0..10 {
        calendar.insert(noon, number);
    }
    assert_eq!(calendar.pop_due(Time::from_nanoseconds(11)), None);
    let popped: Vec<i32> = std::iter::from_fn(|| calendar.pop_due(noon).map(|(_, _, number)| number)).collect();
    assert_eq!(popped, (0..10).collect::<Vec<_>>());
}

#[test]
fn an_old_handle_never_meets_a_new_entry() {
    let mut calendar = Calendar::new();
    let noon = Time::from_nanoseconds(12);
    let old = calendar.insert(noon, "old");
    assert_eq!(calendar.remove(old), Some("old"));
    let new = calendar.insert(noon, "new");
    assert_eq!(calendar.remove(old), None);
    assert_eq!(calendar.remove(new), Some("new"));
}
