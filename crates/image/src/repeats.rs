//! How often the rows of an event can run: the rounds of the repeats in it, multiplied where one lies in another.

use crate::types::{Event, Image, Repeat};
use std::collections::BTreeMap;

impl Image {
    /// The repeat of an internal event, by its index in the list.
    pub fn repeat_of(&self, state: u16, event: u16) -> Option<usize> {
        self.repeats.binary_search_by_key(&(state, event), |repeat| (repeat.state, repeat.event)).ok()
    }

    /// For each repeat, the greatest internal event that raises it again; `None`: none does.
    pub fn last_of_repeats(&self) -> Vec<Option<u16>> {
        let mut last = vec![None; self.repeats.len()];
        for row in &self.rows {
            let (Event::Internal(from), Some(to)) = (row.event, row.raise) else { continue };
            if to <= from
                && let Some(index) = self.repeat_of(row.state, to)
            {
                last[index] = last[index].max(Some(from));
            }
        }
        last
    }

    /// The repeat with the most rounds, those of the repeats around it included: its index and how many they are.
    pub fn most_rounds(&self) -> Option<(usize, u64)> {
        // A repeat is inside of another one that begins before it and has not ended where it begins. The list is in order.
        let mut open: BTreeMap<u16, Vec<(u16, u64)>> = BTreeMap::new();
        let mut most: Option<(usize, u64)> = None;
        for (index, (repeat, last)) in self.repeats.iter().zip(self.last_of_repeats()).enumerate() {
            let Repeat { state, event, most: rounds, .. } = *repeat;
            let around = open.entry(state).or_default();
            around.retain(|(last, _)| *last >= event);
            let own = u64::from(rounds) + 1;
            let all = around.iter().fold(own, |all, (_, rounds)| all.saturating_mul(*rounds));
            around.push((last.unwrap_or(event), own));
            if most.is_none_or(|(_, known)| all > known) {
                most = Some((index, all));
            }
        }
        most
    }
}
