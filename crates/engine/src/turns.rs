//! Turns that all flows share (semantics, rules T1 to T7): a queue by rank that serves one flow at a time.

use crate::state::{TurnState, TurnsState};
use std::collections::BTreeMap;
use weftwire_core::{FlowId, Time};
use weftwire_image::limits::MAX_TURN_COST;

/// Where a flow stands in the queue; the least is first. No two are alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    rank: i64,
    /// The number of its request, from 1.
    order: u64,
}

/// A flow that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    flow: FlowId,
    /// Nanoseconds from its turn to the next one.
    cost: i64,
}

/// A queue, and when its next turn is.
#[derive(Debug)]
pub struct Turns {
    most: usize,
    queue: BTreeMap<Place, Waiting>,
    /// No turn comes before.
    next: Time,
    /// How many numbers were given to those that wait.
    requests: u64,
}

impl Turns {
    /// Turns for which nobody waits, and at most so many flows will.
    pub fn new(most: u32) -> Turns {
        Turns { most: most as usize, queue: BTreeMap::new(), next: Time::ZERO, requests: 0 }
    }

    /// Rules T2 and T3. `place` is where the flow stands, if it waits already. Gives whether it waits now.
    pub fn ask(&mut self, place: &mut Option<Place>, flow: FlowId, rank: i64, cost: i64, now: Time) -> bool {
        let mut order = None;
        match *place {
            None if self.is_full() => return false,
            Some(known) => {
                self.queue.remove(&known);
                order = Some(known.order).filter(|_| known.rank == rank);
            }
            None => {}
        }
        // What was not used of the time before gives nobody a second turn at once.
        if self.queue.is_empty() {
            self.next = self.next.max(now);
        }
        let order = order.unwrap_or_else(|| {
            self.requests += 1;
            self.requests
        });
        self.queue.insert(Place { rank, order }, Waiting { flow, cost: cost.clamp(1, MAX_TURN_COST) });
        *place = Some(Place { rank, order });
        true
    }

    /// Rule T4.
    pub fn withdraw(&mut self, place: &mut Option<Place>) {
        if let Some(known) = place.take() {
            self.queue.remove(&known);
        }
    }

    /// When the next turn is; `None` if nobody waits.
    pub fn due(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.next)
    }

    /// Rule T5: the next turn, of the first in the queue.
    pub fn grant(&mut self) -> Option<(Time, FlowId)> {
        let (_, Waiting { flow, cost }) = self.queue.pop_first()?;
        let at = self.next;
        self.next = at.after(cost);
        Some((at, flow))
    }

    /// Whether no other flow may wait.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.most
    }

    /// What a flow that stands here waits for.
    pub fn request(&self, place: Place) -> Option<TurnState> {
        let Waiting { cost, .. } = *self.queue.get(&place)?;
        Some(TurnState { rank: place.rank, cost })
    }

    /// How many have their turn before a flow that stands here.
    pub fn ahead(&self, place: Place) -> usize {
        self.queue.range(..place).count()
    }

    /// When the next turn is, and who waits, in order.
    pub fn state(&self) -> TurnsState {
        TurnsState { next: self.next, waiting: self.queue.values().map(|waiting| waiting.flow).collect() }
    }

    /// No turn comes before `next`.
    pub fn not_before(&mut self, next: Time) {
        self.next = next;
    }
}
