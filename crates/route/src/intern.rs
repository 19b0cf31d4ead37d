//! Filters by number: each is kept once, with what it becomes on the way to its host.

use crate::Filter;
use std::collections::BTreeMap;

/// A filter's number, as long as it is in use.
pub(crate) type FilterId = u32;

#[derive(Clone, Debug)]
struct Entry<F> {
    filter: F,
    /// How many hosts subscribe to it.
    subscribed: u32,
    /// How many subscribed filters become it.
    derived: u32,
    /// What it becomes, by unit; empty while nobody subscribes to it.
    relaxed: Box<[FilterId]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Interner<F> {
    /// Ascending; the first is 1, exact.
    units: Vec<u64>,
    ids: BTreeMap<F, FilterId>,
    entries: Vec<Option<Entry<F>>>,
    free: Vec<FilterId>,
}

impl<F: Filter> Interner<F> {
    pub(crate) fn new(mut units: Vec<u64>) -> Self {
        units.push(1);
        units.iter_mut().for_each(|unit| *unit = (*unit).max(1));
        units.sort_unstable();
        units.dedup();
        Interner { units, ids: BTreeMap::new(), entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn units(&self) -> &[u64] {
        &self.units
    }

    /// The place of a unit among the units; it must be one of them.
    pub(crate) fn unit_place(&self, unit: u64) -> usize {
        self.units.partition_point(|other| *other < unit)
    }

    /// The number of a filter that somebody subscribes to.
    pub(crate) fn find(&self, filter: &F) -> Option<FilterId> {
        let id = *self.ids.get(filter)?;
        (self.entry(id)?.subscribed > 0).then_some(id)
    }

    pub(crate) fn filter(&self, id: FilterId) -> Option<&F> {
        Some(&self.entry(id)?.filter)
    }

    /// What a subscribed filter becomes, by place of the unit.
    pub(crate) fn relaxed(&self, id: FilterId, unit: usize) -> Option<FilterId> {
        self.entry(id)?.relaxed.get(unit).copied()
    }

    fn entry(&self, id: FilterId) -> Option<&Entry<F>> {
        self.entries.get(id as usize)?.as_ref()
    }

    fn entry_mut(&mut self, id: FilterId) -> Option<&mut Entry<F>> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// One more host subscribes.
    pub(crate) fn subscribe(&mut self, filter: F) -> FilterId {
        let id = self.number(filter);
        let Some(entry) = self.entry_mut(id) else { return id };
        entry.subscribed += 1;
        if entry.subscribed == 1 {
            let filter = entry.filter.clone();
            let mut relaxed = Vec::with_capacity(self.units.len());
            for place in 0..self.units.len() {
                let unit = self.units[place];
                let becomes = self.number(filter.relaxed(unit));
                if let Some(entry) = self.entry_mut(becomes) {
                    entry.derived += 1;
                }
                relaxed.push(becomes);
            }
            if let Some(entry) = self.entry_mut(id) {
                entry.relaxed = relaxed.into();
            }
        }
        id
    }

    /// One host less subscribes. Numbers that nobody uses any more may be given to others.
    pub(crate) fn unsubscribe(&mut self, id: FilterId) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.subscribed = entry.subscribed.saturating_sub(1);
        if entry.subscribed > 0 {
            return;
        }
        for becomes in std::mem::take(&mut entry.relaxed) {
            if let Some(entry) = self.entry_mut(becomes) {
                entry.derived -= 1;
            }
            self.release(becomes);
        }
        self.release(id);
    }

    fn number(&mut self, filter: F) -> FilterId {
        if let Some(id) = self.ids.get(&filter) {
            return *id;
        }
        let entry = Some(Entry { filter: filter.clone(), subscribed: 0, derived: 0, relaxed: Box::default() });
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as FilterId - 1
            }
        };
        self.ids.insert(filter, id);
        id
    }

    fn release(&mut self, id: FilterId) {
        let Some(entry) = self.entry(id) else { return };
        if entry.subscribed == 0
            && entry.derived == 0
            && let Some(entry) = self.entries[id as usize].take()
        {
            self.ids.remove(&entry.filter);
            self.free.push(id);
        }
    }

    /// How many filters have a number.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }
}
