//! The flow table: which key belongs to which instance, who has been idle for longest, and who has to go
//! (semantics, section 3).

use crate::chance::KeyHasher;
use crate::instance::Instance;
use std::collections::BTreeSet;
use weftwire_core::{FlowId, Time};
use weftwire_image::{Flow, WhenFull};

/// A map that every packet looks into. Nothing depends on its order.
#[allow(
    clippy::disallowed_types,
    reason = "the hash key comes with the function, and whoever lists entries sorts them"
)]
type Map<K, V> = std::collections::HashMap<K, V, KeyHasher>;

/// The instances by flow id and by key.
#[derive(Debug)]
pub struct FlowTable {
    rules: Flow,
    instances: Map<FlowId, Box<Instance>>,
    keys: Map<Box<[u8]>, FlowId>,
    /// All flows, idle longest first, ties by the smaller flow id. Kept only if something looks at it.
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
        let mut all: Vec<&Instance> = self.instances.values().map(Box::as_ref).collect();
        all.sort_unstable_by_key(|instance| instance.flow);
        all.into_iter()
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
    pub fn insert(&mut self, instance: Box<Instance>) {
        let flow = instance.flow;
        self.keys.insert(instance.key.clone(), flow);
        self.order(instance.last_active, instance.state, flow);
        self.instances.insert(flow, instance);
    }

    /// Takes an instance out.
    pub fn remove(&mut self, flow: FlowId) -> Option<Box<Instance>> {
        let instance = self.instances.remove(&flow)?;
        self.keys.remove(&instance.key);
        self.forget(instance.last_active, instance.state, flow);
        Some(instance)
    }

    /// Brings the orders up to date after an event that began with this activity and state.
    pub fn settle(&mut self, flow: FlowId, last_active: Time, state: u16) {
        let Some(instance) = self.instances.get(&flow) else { return };
        let (now_active, now_state) = (instance.last_active, instance.state);
        if (now_active, now_state) != (last_active, state) {
            self.forget(last_active, state, flow);
            self.order(now_active, now_state, flow);
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

    fn order(&mut self, last_active: Time, state: u16, flow: FlowId) {
        if self.rules.expire > 0 || self.rules.when_full == WhenFull::EvictOldest {
            self.idle.insert((last_active, flow));
        }
        if self.is_evictable(state) {
            self.evictable.insert((last_active, flow));
        }
    }

    /// Undoes `order`.
    fn forget(&mut self, last_active: Time, state: u16, flow: FlowId) {
        self.idle.remove(&(last_active, flow));
        if self.is_evictable(state) {
            self.evictable.remove(&(last_active, flow));
        }
    }

    fn is_evictable(&self, state: u16) -> bool {
        matches!(&self.rules.when_full, WhenFull::EvictOldestIn(states) if states.contains(&state))
    }
}
