//! No operation does much, and nothing is left behind.

use super::*;

/// Slots that one operation may look at and move at most: a list that is counted and split, or sorted and linked.
const MOST_STEPS: usize = 2 * MOST as usize;

/// Wheels, and how many steps one operation took at most.
struct Watched {
    wheels: Wheels<u64>,
    most: usize,
}

impl Watched {
    fn run<R>(&mut self, operation: impl FnOnce(&mut Wheels<u64>) -> R) -> R {
        self.wheels.steps.set(0);
        let result = operation(&mut self.wheels);
        self.most = self.most.max(self.wheels.steps.get());
        result
    }

    /// The key and the number of the next one.
    fn pop(&mut self) -> Option<(u64, u64)> {
        let next = self.run(|wheels| wheels.first().map(|found| (found.key, found.entry)));
        let popped = self.run(|wheels| wheels.remove_first(u64::MAX));
        assert_eq!(popped.map(|(key, _, _, number)| (key, number)), next);
        next
    }
}

/// Not random, and without a pattern that matters here.
fn scattered(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn no_operation_takes_many_steps() {
    type Shape = (&'static str, fn(u64) -> u64);
    let shapes: [Shape; 8] = [
        ("all in one bucket far away", |it| (1 << 40) + it),
        ("all equal", |_| 7),
        ("spread over everything", scattered),
        ("spread over a second", |it| scattered(it) % 1_000_000_000),
        ("backwards", |it| (1 << 40) - it * 100),
        ("a few ticks", |it| scattered(it) % 100),
        ("clusters far apart", |it| (it / 20) << 33),
        ("every power of two", |it| 1 << (it % 64)),
    ];
    for (name, shape) in shapes {
        let mut watched = Watched { wheels: Wheels::new(), most: 0 };
        let count = 50_000;
        // One before all others, which keeps them from being looked at until it is gone.
        watched.run(|wheels| wheels.insert(0, count));
        let insert = |number| watched.run(|wheels| wheels.insert(shape(number).max(1), number));
        let slots: Vec<(u32, u32)> = (0..count).map(insert).collect();
        for (slot, generation) in slots.into_iter().step_by(3) {
            assert!(watched.run(|wheels| wheels.remove(slot, generation)).is_some(), "{name}");
        }
        let mut last = (0, 0);
        assert_eq!(watched.pop(), Some((0, count)));
        while let Some(next) = watched.pop() {
            assert!(last <= next, "{name}: {last:?} before {next:?}");
            last = next;
        }
        assert_eq!(watched.wheels.len(), 0);
        assert!(watched.most <= MOST_STEPS, "{name}: {} steps at once", watched.most);
    }
}

#[test]
fn nothing_is_left_behind() {
    let mut wheels = Wheels::new();
    let slots: Vec<(u32, u32)> = (0..5_000).map(|it| wheels.insert(scattered(it) % 100_000, it)).collect();
    for (slot, generation) in slots {
        assert!(wheels.remove(slot, generation).is_some());
        assert!(wheels.remove(slot, generation).is_none());
    }
    assert!(wheels.first().is_none() && wheels.wheels.at(ROOT).occupied == 0);
    assert_eq!((wheels.wheels.used(), wheels.slots.used()), (1, 0));
}

#[test]
fn there_are_fewer_wheels_than_twice_the_slots() {
    for spread in [1 << 30, 1 << 12, 200] {
        let mut wheels = Wheels::new();
        let slots: Vec<(u32, u32)> = (0..2_000).map(|it| wheels.insert(scattered(it) % spread, it)).collect();
        for (slot, generation) in &slots[..1_990] {
            assert!(wheels.remove(*slot, *generation).is_some());
            assert!(wheels.wheels.used() <= 2 * wheels.len());
        }
    }
}

#[test]
fn a_slot_whose_generations_are_used_up_is_left_alone() {
    let mut wheels = Wheels::new();
    let (slot, generation) = wheels.insert(1, ());
    assert!(wheels.remove(slot, generation).is_some());
    wheels.slots.at_mut(slot).generation = u32::MAX - 3;
    for left in [2, 0] {
        let (again, generation) = wheels.insert(1, ());
        assert_eq!((again, u32::MAX - generation), (slot, left));
        assert!(wheels.remove(slot, generation).is_some());
    }
    let (other, generation) = wheels.insert(1, ());
    assert!(other != slot && wheels.remove(slot, generation).is_none());
}
