//! The flow table: which key belongs to which instance, who has been idle for longest, and who has to go
//! (semantics, section 3).

use crate::chance::KeyHasher;
use crate::instance::{Activity, Instance};
use crate::lines::{Line, Rules};
use std::collections::VecDeque;
use std::hash::BuildHasher;
use weftwire_core::{FlowId, Time};
use weftwire_image::Image;

/// A map that every packet looks into. Nothing depends on its order.
#[allow(
    clippy::disallowed_types,
    reason = "the hash key comes with the function, and whoever lists entries sorts them"
)]
type Map<K, V> = std::collections::HashMap<K, V, KeyHasher>;

/// Places of the order that are looked at for each instance of a page.
const LOOKS: usize = 8;

/// The instances by flow id and by key.
#[derive(Debug)]
pub struct FlowTable {
    rules: Rules,
    /// Most instances there may be.
    max: usize,
    instances: Map<FlowId, Box<Instance>>,
    keys: Map<Box<[u8]>, FlowId>,
    /// All flows by id, as ids come in order, with those among them that have gone since: never more of these than of
    /// others, but for a few.
    order: VecDeque<FlowId>,
    /// The flows, idle longest first: a line for all states with the same rules, and behind
    /// all of these another one each, for flows that do not expire as they are held. Only the first of a line is sure
    /// to be right: a flow further behind stays where it is when it becomes active or is held, and moves once it is
    /// first. So a busy flow costs nothing here.
    lines: Vec<Line>,
}

impl FlowTable {
    /// An empty table under these rules. The hasher's key keeps strangers from choosing keys that collide.
    pub fn new(image: &Image, hasher: KeyHasher) -> FlowTable {
        let rules = Rules::new(image);
        FlowTable {
            lines: vec![Line::default(); 2 * rules.count()],
            rules,
            max: image.flow.max as usize,
            instances: Map::with_hasher(hasher),
            keys: Map::with_hasher(hasher),
            order: VecDeque::new(),
        }
    }

    /// How many instances there are.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// The flow of a key.
    pub fn find(&self, key: &[u8]) -> Option<FlowId> {
        self.keys.get(key).copied()
    }

    /// A number that all packets of a flow have in common, under the table's own key.
    pub fn place(&self, key: &[u8]) -> u64 {
        self.keys.hasher().hash_one(key)
    }

    /// An instance, to look at it.
    pub fn get(&self, flow: FlowId) -> Option<&Instance> {
        self.instances.get(&flow).map(Box::as_ref)
    }

    /// An instance, to run it. Afterwards the caller tells of changes that matter by [`FlowTable::settle`].
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut Instance> {
        self.instances.get_mut(&flow).map(Box::as_mut)
    }

    /// All instances by flow id.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.order.iter().filter_map(|flow| self.get(*flow))
    }

    /// At most `most` instances behind `after`, by flow id, and behind which flow the next ones begin. The work is bounded
    /// too: fewer come where many flows have gone.
    pub fn page(&self, after: FlowId, most: usize) -> (Vec<&Instance>, Option<FlowId>) {
        let start = self.order.partition_point(|flow| *flow <= after);
        let (mut page, mut last) = (Vec::new(), after);
        for flow in self.order.range(start..).take(most * LOOKS) {
            if page.len() == most {
                break;
            }
            page.extend(self.get(*flow));
            last = *flow;
        }
        (page, self.order.back().is_some_and(|end| last < *end).then_some(last))
    }

    /// Whether one more instance has a place at `now`: there is room, or somebody to evict.
    pub fn has_place(&self, now: Time) -> bool {
        !self.is_full() || self.rules.victim(&self.lines, now).is_some()
    }

    /// Who has to go before one more instance comes in; `None` if there is room, or nobody may go.
    pub fn to_evict(&self, now: Time) -> Option<FlowId> {
        if self.is_full() { self.rules.victim(&self.lines, now) } else { None }
    }

    /// Adds an instance. The caller has made room.
    pub fn insert(&mut self, mut instance: Box<Instance>) {
        let (flow, active) = (instance.flow, instance.last_active);
        self.keys.insert(instance.key.clone(), flow);
        let line = self.rules.line(instance.state);
        instance.filed = (line, active);
        if self.order.back().is_none_or(|latest| *latest < flow) {
            self.order.push_back(flow);
        } else if let Err(place) = self.order.binary_search(&flow) {
            // It comes from elsewhere; if it was here before, its place may be there still.
            self.order.insert(place, flow);
        }
        self.instances.insert(flow, instance);
        self.enter(line, active, flow);
    }

    /// Takes an instance out.
    pub fn remove(&mut self, flow: FlowId) -> Option<Box<Instance>> {
        let instance = self.instances.remove(&flow)?;
        self.forget_gone();
        self.keys.remove(&instance.key);
        self.leave(instance.filed, flow);
        Some(instance)
    }

    /// Brings the lines up to date after an event at `now`. Returns whether the flow's idle time was up before: as it has
    /// been held till now, or as it came into a state where that is shorter.
    pub fn settle(&mut self, flow: FlowId, now: Time) -> bool {
        let Some(instance) = self.instances.get_mut(&flow) else { return false };
        let (line, _) = instance.filed;
        let (wanted, active) = (self.rules.line(instance.state), instance.last_active);
        let count = self.rules.count();
        let aside = (count..2 * count).contains(&line);
        let own = if aside { line - count } else { line };
        if own != wanted || aside && !instance.is_held() {
            let old = std::mem::replace(&mut instance.filed, (wanted, active));
            self.leave(old, flow);
            self.enter(wanted, active, flow);
            let (expires, moved) = (self.rules.expiry(wanted, active), self.instances[&flow].filed.0);
            return moved == wanted && expires.is_some_and(|at| at < now);
        }
        if self.lines.get(line).is_some_and(|line| line.is_first(flow)) {
            self.correct(line);
        }
        false
    }

    /// The next flow to expire, and when (section 3.4).
    pub fn next_expiry(&self) -> Option<(Time, FlowId)> {
        let lines = self.lines[..self.rules.count()].iter().enumerate();
        lines
            .filter_map(|(number, line)| {
                line.first().and_then(|(active, flow)| Some((self.rules.expiry(number, active)?, active, flow)))
            })
            .min()
            .map(|(at, _, flow)| (at, flow))
    }

    /// Whether there is no room for one more.
    pub fn is_full(&self) -> bool {
        self.instances.len() >= self.max
    }

    /// Takes those out of the order that have gone, once they are as many as those that are there.
    fn forget_gone(&mut self) {
        while self.order.front().is_some_and(|flow| !self.instances.contains_key(flow)) {
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.instances.len() + LOOKS {
            self.order.retain(|flow| self.instances.contains_key(flow));
        }
    }

    fn enter(&mut self, number: usize, active: Activity, flow: FlowId) {
        let Some(line) = self.lines.get_mut(number) else { return };
        line.insert(active, flow);
        if line.is_first(flow) {
            self.correct(number);
        }
    }

    fn leave(&mut self, (number, filed): (usize, Activity), flow: FlowId) {
        let Some(line) = self.lines.get_mut(number) else { return };
        if line.remove(filed, flow) {
            self.correct(number);
        }
    }

    /// Moves whoever is first and has been active since, or is held, until the first is the one idle longest.
    fn correct(&mut self, number: usize) {
        while let Some((filed, flow)) = self.lines[number].first()
            && let Some(instance) = self.instances.get_mut(&flow)
        {
            let to = match self.rules.holds(number) && instance.is_held() {
                true => number + self.rules.count(),
                false => number,
            };
            if (to, instance.last_active) == (number, filed) {
                return;
            }
            instance.filed = (to, instance.last_active);
            self.lines[number].pop_first();
            self.lines[to].insert(instance.last_active, flow);
        }
    }
}
