//! The flow table: which key belongs to which instance, who has been idle for longest, and who has to go
//! (semantics, rules F1 to F20).

use crate::chance::KeyHasher;
use crate::instance::{Activity, Instance};
use crate::lines::{Lines, Rules, Waiting};
use hashbrown::HashTable;
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::BuildHasher;
use weftwire_core::{FlowId, Time};
use weftwire_image::Image;

/// Places of the order that are looked at for each instance of a page.
const LOOKS: usize = 8;

/// The instances by flow id and by key.
#[derive(Debug)]
pub struct FlowTable {
    rules: Rules,
    /// Most instances there may be.
    max: usize,
    /// The instances, each in a place of its own as long as it is here.
    places: Vec<Option<Box<Instance>>>,
    free: Vec<u32>,
    /// The places by flow id and by key. Nothing depends on the order of either.
    by_flow: HashTable<u32>,
    by_key: HashTable<u32>,
    /// The place that was looked up last: an event looks for its flow several times.
    latest: Cell<u32>,
    hasher: KeyHasher,
    /// All flows by id, as ids come in order, with those among them that have gone since: never more of these than of
    /// others, but for a few.
    order: VecDeque<FlowId>,
    /// The flows that may expire, idle longest first ([`IDLE`]), and those that may be evicted, first to go first ([`RANK`]).
    /// Only the first of a line is sure to be right: a flow further behind stays where it is when it becomes active or is
    /// held, and moves once it is first. So a busy flow costs nothing here.
    lines: [Lines; 2],
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
            lines: [Lines::new(rules.idle_lines()), Lines::new(rules.rank_lines())],
            rules,
            max: image.flow.max as usize,
            places: Vec::new(),
            free: Vec::new(),
            by_flow: HashTable::new(),
            by_key: HashTable::new(),
            latest: Cell::new(0),
            hasher,
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
        self.by_flow.len()
    }

    /// The flow of a key.
    pub fn find(&self, key: &[u8]) -> Option<FlowId> {
        let is_it = |place: &u32| at(&self.places, *place).is_some_and(|instance| instance.key[..] == *key);
        let place = *self.by_key.find(self.hash(key), is_it)?;
        self.latest.set(place);
        at(&self.places, place).map(|instance| instance.flow)
    }

    /// A number that all packets of a flow have in common, under the table's own key.
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// An instance, to look at it.
    pub fn get(&self, flow: FlowId) -> Option<&Instance> {
        at(&self.places, self.place_of(flow)?)
    }

    /// An instance, to run it. Afterwards the caller tells of changes that matter by [`FlowTable::settle`].
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut Instance> {
        let place = self.place_of(flow)?;
        at_mut(&mut self.places, place)
    }

    /// Changes all instances, one by one, in the order of their places.
    pub fn each(&mut self, change: impl FnMut(&mut Instance)) {
        self.places.iter_mut().flatten().map(Box::as_mut).for_each(change);
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
        instance.lines = [None; 2];
        let flow = instance.flow;
        let lines = [self.rules.idle_line(instance.state), self.rules.rank_line(instance.state)];
        let since = [instance.last_active, instance.rank];
        if self.order.back().is_none_or(|latest| *latest < flow) {
            self.order.push_back(flow);
        } else if let Err(place) = self.order.binary_search(&flow) {
            // It comes from elsewhere; if it was here before, its place may be there still.
            self.order.insert(place, flow);
        }
        let (hasher, by_key) = (self.hasher, self.hasher.hash_one(&instance.key[..]));
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = Some(instance);
        let places = &self.places;
        let key_of = |place: &u32| at(places, *place).map_or(0, |it| hasher.hash_one(&it.key[..]));
        let flow_of = |place: &u32| at(places, *place).map_or(0, |it| hasher.hash_one(it.flow));
        self.by_key.insert_unique(by_key, place, key_of);
        self.by_flow.insert_unique(hasher.hash_one(flow), place, flow_of);
        for order in [IDLE, RANK] {
            self.enter(order, lines[order], Waiting { since: since[order], flow, place });
        }
    }

    /// Takes an instance out.
    pub fn remove(&mut self, flow: FlowId) -> Option<Box<Instance>> {
        let place = self.place_of(flow)?;
        let instance = self.places[place as usize].take()?;
        for (table, hash) in [
            (&mut self.by_flow, self.hasher.hash_one(flow)),
            (&mut self.by_key, self.hasher.hash_one(&instance.key[..])),
        ] {
            if let Ok(entry) = table.find_entry(hash, |other| *other == place) {
                entry.remove();
            }
        }
        self.free.push(place);
        self.forget_gone();
        for order in [IDLE, RANK] {
            self.leave(order, instance.lines[order], place);
        }
        Some(instance)
    }

    /// Brings the lines up to date after an event at `now`. Returns whether the flow's idle time was up before: as it has
    /// been held till now, or as it came into a state where that is shorter (rule F14).
    pub fn settle(&mut self, flow: FlowId, now: Time) -> bool {
        let entered = self.activity(now);
        let Some(place) = self.place_of(flow) else { return false };
        let Some(instance) = at_mut(&mut self.places, place) else { return false };
        let moved = std::mem::take(&mut instance.came_into_group);
        instance.rank = if moved { entered } else { instance.rank.max(instance.last_active) };
        let (rank, active, before) = (instance.rank, instance.last_active, instance.lines);
        let idle_line = self.rules.idle_line(instance.state);
        let rank_line = self.rules.rank_line(instance.state);
        let stays = idle_line.is_some_and(|line| self.rules.holds(line)) && instance.is_held();
        if before[RANK] == rank_line {
            self.correct_if_first(RANK, rank_line, flow);
        } else {
            self.leave(RANK, before[RANK], place);
            self.enter(RANK, rank_line, Waiting { since: rank, flow, place });
        }
        if before[IDLE] == idle_line {
            self.correct_if_first(IDLE, idle_line, flow);
            return false;
        }
        self.leave(IDLE, before[IDLE], place);
        if stays {
            return false;
        }
        self.enter(IDLE, idle_line, Waiting { since: active, flow, place });
        idle_line.is_some_and(|line| self.rules.expiry(line, active) < now)
    }

    /// The next flow to expire, and when (rule F12).
    pub fn next_expiry(&self) -> Option<(Time, FlowId)> {
        let lines = &self.lines[IDLE];
        let firsts = (0..self.rules.idle_lines()).filter_map(|line| Some((line, lines.first(line)?)));
        let expiries = firsts.map(|(line, first)| (self.rules.expiry(line, first.since), first));
        expiries.min().map(|(at, first)| (at, first.flow))
    }

    /// Whether there is no room for one more.
    pub fn is_full(&self) -> bool {
        self.len() >= self.max
    }

    /// Takes those out of the order that have gone, once they are as many as those that are there.
    fn forget_gone(&mut self) {
        while let Some(flow) = self.order.front()
            && self.place_of(*flow).is_none()
        {
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.len() + LOOKS {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|flow| self.place_of(*flow).is_some());
            self.order = order;
        }
    }

    /// Where a flow is.
    fn place_of(&self, flow: FlowId) -> Option<u32> {
        let is_it = |place: &u32| at(&self.places, *place).is_some_and(|instance| instance.flow == flow);
        let latest = self.latest.get();
        if is_it(&latest) {
            return Some(latest);
        }
        let place = *self.by_flow.find(self.hasher.hash_one(flow), is_it)?;
        self.latest.set(place);
        Some(place)
    }

    fn enter(&mut self, order: usize, line: Option<usize>, waiting: Waiting) {
        let Some(instance) = at_mut(&mut self.places, waiting.place) else { return };
        instance.lines[order] = line;
        if let Some(line) = line {
            self.lines[order].insert(line, waiting);
        }
        self.correct_if_first(order, line, waiting.flow);
    }

    fn leave(&mut self, order: usize, line: Option<usize>, place: u32) {
        let Some(line) = line else { return };
        if let Some(instance) = at_mut(&mut self.places, place) {
            instance.lines[order] = None;
        }
        if self.lines[order].remove(line, place) {
            self.correct(order, line);
        }
    }

    fn correct_if_first(&mut self, order: usize, line: Option<usize>, flow: FlowId) {
        if let Some(line) = line.filter(|line| self.lines[order].first(*line).is_some_and(|first| first.flow == flow)) {
            self.correct(order, line);
        }
    }

    /// Moves whoever is first and has been active since, or is held, until the first is the one whose turn it is.
    fn correct(&mut self, order: usize, line: usize) {
        while let Some(first) = self.lines[order].first(line)
            && let Some(instance) = at_mut(&mut self.places, first.place)
        {
            let held = order == IDLE && self.rules.holds(line) && instance.is_held();
            let now = if order == IDLE { instance.last_active } else { instance.rank.max(instance.last_active) };
            if held {
                instance.lines[order] = None;
                self.lines[order].remove(line, first.place);
            } else if now != first.since {
                self.lines[order].postpone_first(line, now);
            } else {
                return;
            }
        }
    }
}

/// The instance in a place, if there is one.
fn at(places: &[Option<Box<Instance>>], place: u32) -> Option<&Instance> {
    places.get(place as usize)?.as_deref()
}

fn at_mut(places: &mut [Option<Box<Instance>>], place: u32) -> Option<&mut Instance> {
    places.get_mut(place as usize)?.as_deref_mut()
}
