//! What is to happen, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One thing to happen. At one instant in this order: the earlier variant first, then the smaller number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A change or fault of the network, by its index.
    Change(u32),
    /// Routes change, by its index.
    Reroute(u32),
    /// A traffic's next beginning or captured frame, by its index.
    Begin(u32),
    /// The application of a flow goes on: it has thought, or is to stop.
    Application(u32),
    /// A pause begins or ends at a lane's beginning, by lane, class, and whether it begins.
    Pause(u32),
    /// The next packet of a lane has reached its far end. Lanes are numbered by the port they lead to, so that packets
    /// of one instant arrive by node, then port.
    Arrival(u32),
    /// A function's deadline, by its node.
    Function(u32),
    /// Links are sampled.
    Sample,
}

const CLASS_SHIFT: u32 = 32;
const TIME_SHIFT: u32 = 64;

/// The events by time. An event is its own sort key, packed into one number: nothing else is stored.
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<u128>>,
}

impl Queue {
    /// Adds an event at an instant from 0 on.
    pub fn push(&mut self, at: i64, event: Event) {
        let (class, number) = match event {
            Event::Change(number) => (0, number),
            Event::Reroute(number) => (1, number),
            Event::Begin(number) => (2, number),
            Event::Application(number) => (3, number),
            Event::Pause(number) => (4, number),
            Event::Arrival(number) => (5, number),
            Event::Function(number) => (6, number),
            Event::Sample => (7, 0),
        };
        let low = u64::from(number) | class << CLASS_SHIFT;
        self.heap.push(Reverse(u128::from(at.max(0).unsigned_abs()) << TIME_SHIFT | u128::from(low)));
    }

    /// Takes the next event and its instant.
    pub fn pop(&mut self) -> Option<(i64, Event)> {
        let Reverse(key) = self.heap.pop()?;
        let number = key as u32;
        let event = match (key as u64) >> CLASS_SHIFT {
            0 => Event::Change(number),
            1 => Event::Reroute(number),
            2 => Event::Begin(number),
            3 => Event::Application(number),
            4 => Event::Pause(number),
            5 => Event::Arrival(number),
            6 => Event::Function(number),
            _ => Event::Sample,
        };
        Some(((key >> TIME_SHIFT) as i64, event))
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_kind_then_number() {
        let mut queue = Queue::default();
        let ordered = [
            (0, Event::Sample),
            (5, Event::Change(9)),
            (5, Event::Reroute(0)),
            (5, Event::Begin(1)),
            (5, Event::Application(0)),
            (5, Event::Pause(7)),
            (5, Event::Arrival(3)),
            (5, Event::Arrival(4)),
            (5, Event::Function(0)),
            (5, Event::Sample),
            (i64::MAX, Event::Change(0)),
        ];
        for (at, event) in ordered.iter().rev() {
            queue.push(*at, *event);
        }
        for expected in ordered {
            assert_eq!(queue.pop(), Some(expected));
        }
        assert!(queue.is_empty() && queue.pop().is_none());
    }
}
