//! Lines of idle flows: which states share one, when those in it expire, and who is evicted first (semantics,
//! sections 3.3 and 3.4).

use crate::instance::Activity;
use std::collections::BTreeSet;
use weftwire_core::{FlowId, Time};
use weftwire_image::{Image, WhenFull};

/// Flows by when they became idle. The first is at hand without a look into the tree.
#[derive(Clone, Default, Debug)]
pub struct Line {
    flows: BTreeSet<(Activity, FlowId)>,
    first: Option<(Activity, FlowId)>,
}

impl Line {
    /// Who has been idle for longest, and since when.
    pub fn first(&self) -> Option<(Activity, FlowId)> {
        self.first
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

/// The line of states that nothing looks at.
const NO_LINE: usize = usize::MAX;

/// What an image says of expiry and eviction.
#[derive(Debug)]
pub struct Rules {
    /// The line of each state.
    line_of: Vec<usize>,
    kinds: Vec<Kind>,
    groups: Vec<Group>,
    evict_any: bool,
}

/// What the states of one line have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    /// Idle time until expiry in nanoseconds; 0: never.
    expire: i64,
    /// Whether held flows stay.
    hold: bool,
    /// The groups of [`WhenFull::EvictInTurn`] that they belong to, one bit each.
    groups: u32,
}

/// A group of flows to evict from.
#[derive(Debug)]
struct Group {
    idle: i64,
    above: usize,
}

impl Rules {
    /// The rules of an image.
    pub fn new(image: &Image) -> Rules {
        let (mut groups, mut members) = (Vec::new(), vec![0_u32; image.states.len()]);
        let mut add = |states: &[u16], idle: i64, above: u32| {
            for &state in states {
                members[usize::from(state)] |= 1 << groups.len();
            }
            groups.push(Group { idle, above: above as usize });
        };
        match &image.flow.when_full {
            WhenFull::Reject | WhenFull::EvictOldest => {}
            WhenFull::EvictOldestIn(states) => add(states, 0, 0),
            WhenFull::EvictInTurn(list) => list.iter().for_each(|group| add(&group.states, group.idle, group.above)),
        }
        let evict_any = image.flow.when_full == WhenFull::EvictOldest;
        let mut kinds: Vec<Kind> = Vec::new();
        let mut line = |(state, &groups): (&weftwire_image::State, &u32)| {
            let expire = state.expire.unwrap_or(image.flow.expire);
            let kind = Kind { expire, hold: expire > 0 && state.expire.is_none() && image.flow.hold, groups };
            if expire == 0 && groups == 0 && !evict_any {
                return NO_LINE;
            }
            kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            })
        };
        let line_of = image.states.iter().zip(&members).map(&mut line).collect();
        Rules { line_of, kinds, groups, evict_any }
    }

    /// How many lines there are, those of held flows not counted.
    pub fn count(&self) -> usize {
        self.kinds.len()
    }

    /// The line of flows in this state; beyond all lines if nothing looks at them.
    pub fn line(&self, state: u16) -> usize {
        self.line_of[usize::from(state)]
    }

    /// When a flow of this line expires that has been idle since `active`.
    pub fn expiry(&self, line: usize, active: Activity) -> Option<Time> {
        self.kinds.get(line).filter(|kind| kind.expire > 0).map(|kind| active.at.after(kind.expire))
    }

    /// Whether flows of this line that are held do not expire.
    pub fn holds(&self, line: usize) -> bool {
        self.kinds.get(line).is_some_and(|kind| kind.hold)
    }

    /// Who has to go from a full table at `now`.
    pub fn victim(&self, lines: &[Line], now: Time) -> Option<FlowId> {
        let lines_of = |bit: u32| {
            let with_kind = lines.iter().zip(self.kinds.iter().chain(&self.kinds));
            with_kind.filter(move |(_, kind)| bit == 0 || kind.groups & bit != 0).map(|(line, _)| line)
        };
        if self.evict_any {
            return lines_of(0).filter_map(Line::first).min().map(|(_, flow)| flow);
        }
        self.groups.iter().enumerate().find_map(|(number, group)| {
            let bit = 1 << number;
            if group.above > 0 && lines_of(bit).map(|line| line.flows.len()).sum::<usize>() <= group.above {
                return None;
            }
            let (active, flow) = lines_of(bit).filter_map(Line::first).min()?;
            (now.since(active.at) >= group.idle).then_some(flow)
        })
    }
}
