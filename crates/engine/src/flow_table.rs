//! The flow table: which key belongs to which instance, who has been idle for longest, and who has to go
//! (semantics, section 3).

use crate::chance::KeyHasher;
use crate::instance::Instance;
use std::collections::{BTreeSet, VecDeque};
use weftwire_core::{FlowId, Time};
use weftwire_image::{Flow, WhenFull};

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
    rules: Flow,
    instances: Map<FlowId, Box<Instance>>,
    keys: Map<Box<[u8]>, FlowId>,
    /// All flows by id, as ids come in order, with those among them that have gone since: never more of these than of
    /// others, but for a few.
    order: VecDeque<FlowId>,
    /// All flows, idle longest first, ties by the smaller flow id. Kept only if something looks at it. Only the first
    /// is sure to be right: a flow further behind stays where it is when it becomes active, and moves once it is first.
    /// So a busy flow costs nothing here.
    idle: BTreeSet<(Time, FlowId)>,
    /// Those of them in the states of `evict_oldest_in`.
    evictable: BTreeSet<(Time, FlowId)>,
}

impl FlowTable {
    /// An empty table under these rules. The hasher's key keeps strangers from choosing keys that collide.
    pub fn new(rules: &Flow, hasher: KeyHasher) -> FlowTable {
        FlowTable {
            rules: rules.clone(),
            instances: Map::with_hasher(hasher),
            keys: Map::with_hasher(hasher),
            order: VecDeque::new(),
            idle: BTreeSet::new(),
            evictable: BTreeSet::new(),
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

    /// Whether one more instance has a place: there is room, or somebody to evict.
    pub fn has_place(&self) -> bool {
        !self.is_full() || self.victim().is_some()
    }

    /// Who has to go before one more instance comes in; `None` if there is room, or nobody may go.
    pub fn to_evict(&self) -> Option<FlowId> {
        if self.is_full() { self.victim() } else { None }
    }

    /// Adds an instance. The caller has made room.
    pub fn insert(&mut self, mut instance: Box<Instance>) {
        let flow = instance.flow;
        self.keys.insert(instance.key.clone(), flow);
        if self.rules.expire > 0 || self.rules.when_full == WhenFull::EvictOldest {
            instance.filed = instance.last_active;
            self.idle.insert((instance.filed, flow));
        }
        if self.is_evictable(instance.state) {
            self.evictable.insert((instance.last_active, flow));
        }
        self.order.push_back(flow);
        self.instances.insert(flow, instance);
    }

    /// Takes an instance out.
    pub fn remove(&mut self, flow: FlowId) -> Option<Box<Instance>> {
        let instance = self.instances.remove(&flow)?;
        self.forget_gone();
        self.keys.remove(&instance.key);
        self.evictable.remove(&(instance.last_active, flow));
        self.idle.remove(&(instance.filed, flow));
        self.correct_first();
        Some(instance)
    }

    /// Brings the orders up to date after an event that began with this activity and state.
    pub fn settle(&mut self, flow: FlowId, last_active: Time, state: u16) {
        let Some(instance) = self.instances.get(&flow) else { return };
        let (now_active, now_state) = (instance.last_active, instance.state);
        if self.is_evictable(state) {
            self.evictable.remove(&(last_active, flow));
        }
        if self.is_evictable(now_state) {
            self.evictable.insert((now_active, flow));
        }
        if self.idle.first().is_some_and(|(_, first)| *first == flow) {
            self.correct_first();
        }
    }

    /// The next flow to expire, and when (section 3.4).
    pub fn next_expiry(&self) -> Option<(Time, FlowId)> {
        if self.rules.expire == 0 {
            return None;
        }
        self.idle.first().map(|&(last_active, flow)| (last_active.after(self.rules.expire), flow))
    }

    fn is_full(&self) -> bool {
        self.instances.len() >= self.rules.max as usize
    }

    fn victim(&self) -> Option<FlowId> {
        let candidates = match &self.rules.when_full {
            WhenFull::Reject => return None,
            WhenFull::EvictOldest => &self.idle,
            WhenFull::EvictOldestIn(_) => &self.evictable,
        };
        candidates.first().map(|(_, flow)| *flow)
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

    /// Moves whoever is first and has been active since, until the first is the one idle longest.
    fn correct_first(&mut self) {
        while let Some(&(filed, flow)) = self.idle.first()
            && let Some(instance) = self.instances.get_mut(&flow)
            && instance.last_active != filed
        {
            instance.filed = instance.last_active;
            self.idle.pop_first();
            self.idle.insert((instance.filed, flow));
        }
    }

    fn is_evictable(&self, state: u16) -> bool {
        matches!(&self.rules.when_full, WhenFull::EvictOldestIn(states) if states.contains(&state))
    }
}
