//! Pauses: what waits in routers and switches of what came by links that ask for them, when their beginnings hear of it, and
//! who waits for whom in a circle.

use super::frames::Slot;
use super::lane::Lanes;
use super::queue::Event;
use super::simulation::Simulation;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use weftwire_core::nanoseconds;
use weftwire_network::link::{CLASSES, Holds, Ingress, Rate};

/// A lane, and a class of it.
type Place = (u32, u8);

/// Bytes of a pause frame on the wire, as short as frames are.
const PAUSE_FRAME: u64 = 64;

/// What came by lanes that ask for pauses, by their numbers.
#[derive(Default)]
pub struct Pauses {
    waiting: BTreeMap<u32, Ingress>,
    /// By lane and class, since when it is paused.
    since: BTreeMap<Place, i64>,
    /// By what the frame that is being forwarded came.
    came_by: Option<Holds>,
}

impl Pauses {
    /// From here on, what is sent came by this.
    pub fn forward(&mut self, holds: Option<Holds>) {
        self.came_by = holds;
    }

    /// What the frame that leaves now would hold while it waits; `Err` if there is no room for it.
    pub fn room(&self, lanes: &mut Lanes, bytes: u32) -> Result<Option<Holds>, ()> {
        let Some(holds) = self.came_by else { return Ok(None) };
        let settings = lanes.get_mut(holds.came_by).direction.settings().pause.as_ref();
        let fits = match (settings, self.waiting.get(&holds.came_by)) {
            (Some(settings), Some(ingress)) => ingress.has_room(settings, holds.class, bytes),
            (Some(settings), None) => Ingress::default().has_room(settings, holds.class, bytes),
            (None, _) => return Ok(None),
        };
        if fits { Ok(Some(holds)) } else { Err(()) }
    }

    /// A frame was taken into a queue, or onto the wire at once: then it is freed at once, too.
    pub fn enters(&mut self, holds: Option<Holds>, bytes: u32) {
        if let Some(Holds { came_by, class }) = holds {
            self.waiting.entry(came_by).or_default().enters(class, bytes);
        }
    }
}

impl Simulation<'_> {
    /// A frame leaves a router or switch that came by a lane: it is counted while it waits.
    pub fn forwarding(
        &mut self,
        lane_number: u32,
        slot: Slot,
        send: impl FnOnce(&mut Self, Slot) -> io::Result<()>,
    ) -> io::Result<()> {
        let lane = self.lanes.get_mut(lane_number);
        let class = lane.class(self.frames.get(slot));
        let asks = lane.direction.settings().pause.as_ref().is_some_and(|pause| pause.is_for(class));
        self.pauses.forward(asks.then_some(Holds { came_by: lane_number, class }));
        let sent = send(self, slot);
        self.pauses.forward(None);
        sent
    }

    /// What no longer waits is told to those who count it, who may let their links' beginnings pause, or go on.
    pub fn free(&mut self, lane_number: u32, entered: Option<Holds>) {
        let mut touched = BTreeSet::from_iter(entered);
        while let Some((holds, bytes)) = self.lanes.get_mut(lane_number).direction.take_freed() {
            self.pauses.waiting.entry(holds.came_by).or_default().leaves(holds.class, bytes);
            touched.insert(holds);
        }
        for Holds { came_by, class } in touched {
            let settings = self.lanes.get_mut(came_by).direction.settings().pause.clone();
            let told = self.pauses.waiting.entry(came_by).or_default().tells(settings.as_ref(), class);
            if let Some(on) = told {
                // It overtakes what waits on its way back.
                let back = self.lanes.back(came_by);
                let settings = self.lanes.get_mut(back).direction.settings();
                let sending = match settings.rate {
                    Some(Rate::Constant(rate)) => (PAUSE_FRAME * 8_000_000_000).div_ceil(rate) as i64,
                    _ => 0,
                };
                let at = self.now.saturating_add(nanoseconds(settings.delay)).saturating_add(sending);
                self.queue.push(at, Event::Pause(came_by * 2 * CLASSES as u32 + u32::from(class) * 2 + u32::from(on)));
            }
        }
    }

    /// A pause begins or ends at a lane's beginning.
    pub fn pause(&mut self, number: u32) {
        let (lane, class, on) = (number / (2 * CLASSES as u32), (number / 2 % CLASSES as u32) as u8, number % 2 == 1);
        let now = self.time();
        self.lanes.get_mut(lane).direction.pause(now, class, on);
        match on {
            true => self.pauses.since.entry((lane, class)).or_insert(self.now),
            false => &mut self.pauses.since.remove(&(lane, class)).unwrap_or_default(),
        };
        self.settle(lane);
    }

    /// Tells of pauses that wait for one another in a circle: nothing ends them.
    pub fn tell_deadlocks(&mut self) {
        let mut waits: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
        for lane in self.pauses.since.keys().map(|(lane, _)| *lane).collect::<BTreeSet<_>>() {
            for (class, holds) in self.lanes.get_mut(lane).direction.stuck() {
                waits.entry((holds.came_by, holds.class)).or_default().insert((lane, class));
            }
        }
        // Who is paused, and whose frames wait where there is a pause, too.
        waits.retain(|waiter, _| self.pauses.since.contains_key(waiter));
        let mut done = BTreeSet::new();
        for start in waits.keys().copied().collect::<Vec<_>>() {
            let Some(circle) = circle(&waits, start, &mut done) else { continue };
            let since = circle.iter().filter_map(|place| self.pauses.since.get(place)).max().copied().unwrap_or(0);
            let name = |(lane, class): &Place| {
                let lane = self.lanes.get(*lane);
                let (from, to) = (self.network.place_name(lane.from), self.network.place_name(lane.to));
                format!("{from} to {to} in class {class}")
            };
            let names = circle.iter().map(name).collect::<Vec<_>>().join(", ");
            self.warn(|| {
                format!("deadlock: pauses wait for each other in a circle since {} s: {names}", since as f64 / 1e9)
            });
        }
    }
}

/// A circle that a place leads to, none of it looked at before.
fn circle(waits: &BTreeMap<Place, BTreeSet<Place>>, start: Place, done: &mut BTreeSet<Place>) -> Option<Vec<Place>> {
    // The way here, and of each place on it, what is left to try.
    let mut way: Vec<(Place, Vec<Place>)> = Vec::new();
    let mut next = Some(start);
    loop {
        if let Some(place) = next.take() {
            if let Some(first) = way.iter().position(|(on_way, _)| *on_way == place) {
                return Some(way[first..].iter().map(|(place, _)| *place).collect());
            }
            if done.insert(place) {
                way.push((place, waits.get(&place).into_iter().flatten().copied().collect()));
            }
        }
        let (_, left) = way.last_mut()?;
        next = left.pop();
        if next.is_none() {
            way.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_once_and_trees_are_none() {
        let place = |number| (number, 0);
        let waits = |edges: &[(u32, u32)]| {
            let mut waits: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
            for (from, to) in edges {
                waits.entry(place(*from)).or_default().insert(place(*to));
            }
            waits
        };
        let tree = waits(&[(1, 2), (1, 3), (2, 4), (3, 4)]);
        let ring = waits(&[(1, 2), (2, 3), (3, 4), (4, 2), (3, 5)]);
        for (graph, expected) in [(tree, vec![]), (ring, vec![vec![2, 3, 4]])] {
            let mut done = BTreeSet::new();
            let found = graph.keys().filter_map(|start| circle(&graph, *start, &mut done));
            let found: Vec<Vec<u32>> = found.map(|circle| circle.iter().map(|place| place.0).collect()).collect();
            assert_eq!(found, expected);
        }
    }
}
