//! Lines of flows: which states share one, when those in it expire, and who is evicted first (semantics,
//! rules F7 to F14).

use crate::instance::Activity;
use std::collections::BTreeSet;
use weftwire_core::{FlowId, Time};
use weftwire_image::{Image, WhenFull};

/// Flows in their order. The first is at hand without a look into the tree.
#[derive(Clone, Default, Debug)]
pub struct Line {
    flows: BTreeSet<(Activity, FlowId)>,
    first: Option<(Activity, FlowId)>,
}

impl Line {
    /// Who is first, and since when it waits.
    pub fn first(&self) -> Option<(Activity, FlowId)> {
        self.first
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether this flow is first.
    pub fn is_first(&self, flow: FlowId) -> bool {
        self.first.is_some_and(|(_, first)| first == flow)
    }

    /// Adds a flow.
    pub fn insert(&mut self, active: Activity, flow: FlowId) {
        self.flows.insert((active, flow));
        if self.first.is_none_or(|first| (active, flow) < first) {
            self.first = Some((active, flow));
        }
    }

    /// Takes a flow out. Returns whether it was first.
    pub fn remove(&mut self, filed: Activity, flow: FlowId) -> bool {
        self.flows.remove(&(filed, flow));
        let was_first = self.is_first(flow);
        if was_first {
            self.find_first();
        }
        was_first
    }

    /// Takes the first out.
    pub fn pop_first(&mut self) {
        self.flows.pop_first();
        self.find_first();
    }

    fn find_first(&mut self) {
        self.first = self.flows.first().copied();
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
    pub fn victim(&self, lines: &[Line], now: Time) -> Option<FlowId> {
        self.groups.iter().enumerate().find_map(|(number, group)| {
            let members =
                || lines.iter().zip(&self.sets).filter(|(_, set)| *set & 1 << number != 0).map(|(line, _)| line);
            if group.above > 0 && members().map(Line::len).sum::<usize>() <= group.above {
                return None;
            }
            let (rank, flow) = members().filter_map(Line::first).min()?;
            (now.since(rank.at) >= group.idle).then_some(flow)
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
