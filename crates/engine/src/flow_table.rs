//! The flow table: which key belongs to which instance, who has been idle for longest, and who has to go
//! (semantics, rules F1 to F19).

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
    /// The flows that may expire, idle longest first ([`IDLE`]), and those that may be evicted, first to go first ([`RANK`]).
    /// Only the first of a line is sure to be right: a flow further behind stays where it is when it becomes active or is
    /// held, and moves once it is first. So a busy flow costs nothing here.
    lines: [Vec<Line>; 2],
    /// The latest number of an activity.
    pub activities: u64,
}

/// The lines for expiry. Flows that do not expire as they are held are in none of them.
const IDLE: usize = 0;
/// The lines for eviction.
const RANK: usize = 1;

impl FlowTable {
    /// An empty table under these rules. The hasher's key keeps strangers from choosing keys that collide.
    pub fn new(image: &Image, hasher: KeyHasher) -> FlowTable {
        let rules = Rules::new(image);
        FlowTable {
            lines: [vec![Line::default(); rules.idle_lines()], vec![Line::default(); rules.rank_lines()]],
            rules,
            max: image.flow.max as usize,
            instances: Map::with_hasher(hasher),
            keys: Map::with_hasher(hasher),
            order: VecDeque::new(),
            activities: 0,
        }
    }

    /// One more packet, call of the application, or change into a group of states.
    pub fn activity(&mut self, at: Time) -> Activity {
        self.activities += 1;
        Activity { at, number: self.activities }
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
        !self.is_full() || self.rules.victim(&self.lines[RANK], now).is_some()
    }

    /// Who has to go before one more instance comes in; `None` if there is room, or nobody may go.
    pub fn to_evict(&self, now: Time) -> Option<FlowId> {
        if self.is_full() { self.rules.victim(&self.lines[RANK], now) } else { None }
    }

    /// Adds an instance. The caller has made room.
    pub fn insert(&mut self, mut instance: Box<Instance>) {
        instance.came_into_group = false;
        let flow = instance.flow;
        let lines = [self.rules.idle_line(instance.state), self.rules.rank_line(instance.state)];
        let activities = [instance.last_active, instance.rank];
        self.keys.insert(instance.key.clone(), flow);
        if self.order.back().is_none_or(|latest| *latest < flow) {
            self.order.push_back(flow);
        } else if let Err(place) = self.order.binary_search(&flow) {
            // It comes from elsewhere; if it was here before, its place may be there still.
            self.order.insert(place, flow);
        }
        self.instances.insert(flow, instance);
        for order in [IDLE, RANK] {
            self.enter(order, lines[order], activities[order], flow);
        }
    }

    /// Takes an instance out.
    pub fn remove(&mut self, flow: FlowId) -> Option<Box<Instance>> {
        let instance = self.instances.remove(&flow)?;
        self.forget_gone();
        self.keys.remove(&instance.key);
        for order in [IDLE, RANK] {
            self.leave(order, instance.filed[order], flow);
        }
        Some(instance)
    }

    /// Brings the lines up to date after an event at `now`. Returns whether the flow's idle time was up before: as it has
    /// been held till now, or as it came into a state where that is shorter (rule F14).
    pub fn settle(&mut self, flow: FlowId, now: Time) -> bool {
        let entered = self.activity(now);
        let Some(instance) = self.instances.get_mut(&flow) else { return false };
        let moved = std::mem::take(&mut instance.came_into_group);
        instance.rank = if moved { entered } else { instance.rank.max(instance.last_active) };
        let (filed, rank, active) = (instance.filed, instance.rank, instance.last_active);
        let idle_line = self.rules.idle_line(instance.state);
        let rank_line = self.rules.rank_line(instance.state);
        let stays = idle_line.is_some_and(|line| self.rules.holds(line)) && instance.is_held();
        let line_of = |order: usize| filed[order].map(|(line, _)| line);
        if line_of(RANK) == rank_line {
            self.correct_if_first(RANK, rank_line, flow);
        } else {
            self.leave(RANK, filed[RANK], flow);
            self.enter(RANK, rank_line, rank, flow);
        }
        if line_of(IDLE) == idle_line {
            self.correct_if_first(IDLE, idle_line, flow);
            return false;
        }
        self.leave(IDLE, filed[IDLE], flow);
        if stays {
            return false;
        }
        self.enter(IDLE, idle_line, active, flow);
        idle_line.is_some_and(|line| self.rules.expiry(line, active) < now)
    }

    /// The next flow to expire, and when (rule F12).
    pub fn next_expiry(&self) -> Option<(Time, FlowId)> {
        let firsts = self.lines[IDLE].iter().enumerate().filter_map(|(number, line)| Some((number, line.first()?)));
        let expiries = firsts.map(|(number, (active, flow))| (self.rules.expiry(number, active), active, flow));
        expiries.min().map(|(at, _, flow)| (at, flow))
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

    fn enter(&mut self, order: usize, line: Option<usize>, activity: Activity, flow: FlowId) {
        let Some(instance) = self.instances.get_mut(&flow) else { return };
        instance.filed[order] = line.map(|line| (line, activity));
        if let Some(line) = line {
            self.lines[order][line].insert(activity, flow);
            self.correct_if_first(order, Some(line), flow);
        }
    }

    fn leave(&mut self, order: usize, filed: Option<(usize, Activity)>, flow: FlowId) {
        let Some((line, activity)) = filed else { return };
        if let Some(instance) = self.instances.get_mut(&flow) {
            instance.filed[order] = None;
        }
        if self.lines[order][line].remove(activity, flow) {
            self.correct(order, line);
        }
    }

    fn correct_if_first(&mut self, order: usize, line: Option<usize>, flow: FlowId) {
        if let Some(line) = line.filter(|line| self.lines[order][*line].is_first(flow)) {
            self.correct(order, line);
        }
    }

    /// Moves whoever is first and has been active since, or is held, until the first is the one whose turn it is.
    fn correct(&mut self, order: usize, line: usize) {
        while let Some((filed, flow)) = self.lines[order][line].first()
            && let Some(instance) = self.instances.get_mut(&flow)
        {
            let held = order == IDLE && self.rules.holds(line) && instance.is_held();
            let now = if order == IDLE { instance.last_active } else { instance.rank.max(instance.last_active) };
            if !held && now == filed {
                return;
            }
            self.lines[order][line].pop_first();
            instance.filed[order] = (!held).then_some((line, now));
            if !held {
                self.lines[order][line].insert(now, flow);
            }
        }
    }
}
