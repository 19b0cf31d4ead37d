//! Lines of flows: who waits, first to last, which states share a line, when those in it expire, and who is evicted first
//! (semantics, rules F7 to F14).

use crate::instance::Activity;
use weftwire_core::{FlowId, Time};
use weftwire_image::{Image, WhenFull};

/// A flow in a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Waiting {
    /// Since when it waits.
    pub since: Activity,
    /// The flow.
    pub flow: FlowId,
    /// Where the flow table has it.
    pub place: u32,
}

/// Lines of which a flow is in one at most. Each is a heap, and it is known where in it a flow is: any flow can leave.
#[derive(Debug)]
pub struct Lines {
    heaps: Vec<Vec<Waiting>>,
    /// Where in its heap a flow is, by its place in the table.
    indexes: Vec<u32>,
}

/// Those of a heap that come right behind one of it: as many as lie in few cache lines, so that a heap is not deep.
const BRANCHES: usize = 4;

impl Lines {
    /// So many empty lines.
    pub fn new(count: usize) -> Lines {
        Lines { heaps: vec![Vec::new(); count], indexes: Vec::new() }
    }

    /// How many flows are in a line.
    pub fn len(&self, line: usize) -> usize {
        self.heaps[line].len()
    }

    /// Who is first in a line.
    pub fn first(&self, line: usize) -> Option<Waiting> {
        self.heaps[line].first().copied()
    }

    /// Adds a flow that is in no line.
    pub fn insert(&mut self, line: usize, waiting: Waiting) {
        let place = waiting.place as usize;
        if self.indexes.len() <= place {
            self.indexes.resize(place + 1, 0);
        }
        self.heaps[line].push(waiting);
        self.rise(line, self.heaps[line].len() - 1);
    }

    /// Takes a flow out of the line that it is in. Returns whether it was first there.
    pub fn remove(&mut self, line: usize, place: u32) -> bool {
        let index = self.indexes[place as usize] as usize;
        self.heaps[line].swap_remove(index);
        if index < self.heaps[line].len() {
            let index = self.rise(line, index);
            self.sink(line, index);
        }
        index == 0
    }

    /// Whoever is first in a line waits only since then.
    pub fn postpone_first(&mut self, line: usize, since: Activity) {
        if let Some(first) = self.heaps[line].first_mut() {
            first.since = since;
            self.sink(line, 0);
        }
    }

    /// Moves a flow forward to where it belongs, and returns where that is.
    fn rise(&mut self, line: usize, mut index: usize) -> usize {
        let heap = &mut self.heaps[line];
        let moved = heap[index];
        while index > 0 && moved < heap[(index - 1) / BRANCHES] {
            let above = (index - 1) / BRANCHES;
            heap[index] = heap[above];
            self.indexes[heap[index].place as usize] = index as u32;
            index = above;
        }
        heap[index] = moved;
        self.indexes[moved.place as usize] = index as u32;
        index
    }

    /// Moves a flow back to where it belongs.
    fn sink(&mut self, line: usize, mut index: usize) {
        let heap = &mut self.heaps[line];
        let moved = heap[index];
        loop {
            let first = BRANCHES * index + 1;
            let below = first..heap.len().min(first + BRANCHES);
            let Some(least) = below.min_by_key(|below| heap[*below]).filter(|least| heap[*least] < moved) else {
                break;
            };
            heap[index] = heap[least];
            self.indexes[heap[index].place as usize] = index as u32;
            index = least;
        }
        heap[index] = moved;
        self.indexes[moved.place as usize] = index as u32;
    }
}

/// What an image says of expiry and eviction, by state.
#[derive(Debug)]
pub struct Rules {
    /// Which idle time each state has, if it has one.
    idle_of: Vec<Option<usize>>,
    idles: Vec<Idle>,
    /// Which set of groups each state belongs to, if it belongs to any.
    rank_of: Vec<Option<usize>>,
    /// The sets of groups, one bit a group.
    sets: Vec<u32>,
    groups: Vec<Group>,
}

/// An idle time that some states have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Idle {
    /// Nanoseconds until expiry.
    time: i64,
    /// Whether held flows stay.
    hold: bool,
}

/// Flows that a full table may give up.
#[derive(Debug)]
struct Group {
    idle: i64,
    above: usize,
}

impl Rules {
    /// The rules of an image.
    pub fn new(image: &Image) -> Rules {
        let (mut idles, mut sets) = (Vec::new(), Vec::new());
        let idle = |state: &weftwire_image::State| {
            let time = state.expire.unwrap_or(image.flow.expire);
            let hold = state.expire.is_none() && image.flow.hold;
            (time > 0).then(|| place_of(&mut idles, Idle { time, hold }))
        };
        let idle_of = image.states.iter().map(idle).collect();
        let rank_of = groups_of(image).iter().map(|set| (*set != 0).then(|| place_of(&mut sets, *set))).collect();
        let groups = match &image.flow.when_full {
            WhenFull::Reject => Vec::new(),
            WhenFull::EvictOldest | WhenFull::EvictOldestIn(_) => vec![Group { idle: 0, above: 0 }],
            WhenFull::EvictInTurn(list) => {
                list.iter().map(|group| Group { idle: group.idle, above: group.above as usize }).collect()
            }
        };
        Rules { idle_of, idles, rank_of, sets, groups }
    }

    /// How many lines there are for expiry.
    pub fn idle_lines(&self) -> usize {
        self.idles.len()
    }

    /// How many lines there are for eviction.
    pub fn rank_lines(&self) -> usize {
        self.sets.len()
    }

    /// The line in which flows in this state wait for their expiry.
    pub fn idle_line(&self, state: u16) -> Option<usize> {
        self.idle_of[usize::from(state)]
    }

    /// The line in which flows in this state wait for their eviction.
    pub fn rank_line(&self, state: u16) -> Option<usize> {
        self.rank_of[usize::from(state)]
    }

    /// When a flow of this line expires that has been idle since `active`.
    pub fn expiry(&self, line: usize, active: Activity) -> Time {
        active.at.after(self.idles[line].time)
    }

    /// Whether flows of this line that are held do not expire.
    pub fn holds(&self, line: usize) -> bool {
        self.idles[line].hold
    }

    /// Who has to go from a full table at `now`.
    pub fn victim(&self, lines: &Lines, now: Time) -> Option<FlowId> {
        self.groups.iter().enumerate().find_map(|(number, group)| {
            let members = || (0..self.sets.len()).filter(|line| self.sets[*line] & 1 << number != 0);
            if group.above > 0 && members().map(|line| lines.len(line)).sum::<usize>() <= group.above {
                return None;
            }
            let first = members().filter_map(|line| lines.first(line)).min()?;
            (now.since(first.since.at) >= group.idle).then_some(first.flow)
        })
    }
}

/// The groups from which a full table evicts that each state belongs to, one bit a group.
pub fn groups_of(image: &Image) -> Vec<u32> {
    let mut groups = vec![0_u32; image.states.len()];
    let mut add = |number: usize, states: &[u16]| {
        for &state in states {
            groups[usize::from(state)] |= 1 << number;
        }
    };
    match &image.flow.when_full {
        WhenFull::Reject => {}
        WhenFull::EvictOldest => groups.fill(1),
        WhenFull::EvictOldestIn(states) => add(0, states),
        WhenFull::EvictInTurn(list) => list.iter().enumerate().for_each(|(number, group)| add(number, &group.states)),
    }
    groups
}

/// Where `wanted` stands in the list; at its end if it was not there yet.
fn place_of<T: PartialEq>(list: &mut Vec<T>, wanted: T) -> usize {
    list.iter().position(|known| *known == wanted).unwrap_or_else(|| {
        list.push(wanted);
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn waiting(since: u64, place: u32) -> Waiting {
        let since = Activity { at: Time::from_nanoseconds(since as i64 / 4), number: since };
        Waiting { since, flow: FlowId(place.into()), place }
    }

    proptest! {
        /// Against an ordered set: whoever comes, leaves and waits again, the first is the one that waits for longest.
        #[test]
        fn the_first_is_who_waits_for_longest(steps in prop::collection::vec((0..3_u8, 0..2_usize, 0..40_u64, 0..30_u32), 0..300)) {
            let mut lines = Lines::new(2);
            let mut sets = [BTreeSet::new(), BTreeSet::new()];
            for (step, line, since, place) in steps {
                let was = sets.iter().position(|set| set.iter().any(|it: &Waiting| it.place == place));
                match step {
                    0 if was.is_none() => {
                        lines.insert(line, waiting(since, place));
                        sets[line].insert(waiting(since, place));
                    }
                    1 => {
                        if let Some(line) = was {
                            let first = sets[line].first().is_some_and(|it| it.place == place);
                            prop_assert_eq!(lines.remove(line, place), first);
                            sets[line].retain(|it| it.place != place);
                        }
                    }
                    2 => {
                        let since = waiting(since, place).since;
                        lines.postpone_first(line, since);
                        if let Some(first) = sets[line].pop_first() {
                            sets[line].insert(Waiting { since, ..first });
                        }
                    }
                    _ => {}
                }
                for (line, set) in sets.iter().enumerate() {
                    prop_assert_eq!((lines.first(line), lines.len(line)), (set.first().copied(), set.len()));
                }
            }
        }
    }
}
