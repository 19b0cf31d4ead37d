//! Where along a tree each filter is, and which ports begin or cease to need it.
//!
//! A port needs a filter if it is somewhere behind the port. All switches need almost all filters, so that is not stored:
//! only where the filters are. When one comes to a further switch, the ports that begin to need it are those on the path
//! from the nearest switch where it already is; the same ports cease to when it goes. A change takes O(log) a switch on
//! this path and on that from the switch to the filter's topmost place, and all switches of a tree if it is the first or
//! the last.

use crate::intern::FilterId;
use crate::{Out, SwitchId, Tree};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct TreeState {
    /// By place of the unit: how many subscriptions of a filter's kind are at a position.
    places: Vec<BTreeMap<(FilterId, u32), u32>>,
}

/// One change of a subscription at a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) unit: usize,
    pub(crate) filter: FilterId,
    pub(crate) switch: SwitchId,
    pub(crate) added: bool,
}

impl TreeState {
    pub(crate) fn new(units: usize) -> Self {
        TreeState { places: vec![BTreeMap::new(); units] }
    }

    /// Puts a filter somewhere without a word.
    pub(crate) fn place(&mut self, tree: &Tree, unit: usize, filter: FilterId, switch: SwitchId) {
        if let Some((position, _)) = tree.span(switch) {
            *self.places[unit].entry((filter, position)).or_default() += 1;
        }
    }

    /// Makes a change; the ports that begin or cease to need the filter are emitted, those of switches of another unit too.
    pub(crate) fn change(&mut self, tree: &Tree, number: u16, step: Step, mut emit: impl FnMut(SwitchId, Out)) {
        let Some((position, _)) = tree.span(step.switch) else { return };
        let places = &mut self.places[step.unit];
        let key = (step.filter, position);
        if step.added {
            let count = places.entry(key).or_default();
            *count += 1;
            if *count > 1 {
                return;
            }
        } else {
            let Some(count) = places.get_mut(&key) else { return };
            *count -= 1;
            if *count > 0 {
                return;
            }
            places.remove(&key);
        }
        // The first and the last position within a span where the filter is, but for this one.
        let others = |(first, last): (u32, u32)| {
            let mut found =
                places.range((step.filter, first)..=(step.filter, last)).map(|((_, position), _)| *position);
            let mut found = found.by_ref().filter(|other| *other != position);
            let first = found.next()?;
            Some((first, found.next_back().unwrap_or(first)))
        };
        let mut lower = step.switch;
        while let Some(branch) = tree.branch(lower) {
            if tree.span(lower).is_some_and(|span| others(span).is_some()) {
                break;
            }
            emit(branch.parent, Out::Tree { tree: number, port: branch.down });
            lower = branch.parent;
        }
        let below = |switch: SwitchId, position: u32| {
            tree.span(switch).is_some_and(|(first, last)| (first..=last).contains(&position))
        };
        let mut emit_up = |switch: SwitchId| {
            if let Some(branch) = tree.branch(switch) {
                emit(switch, Out::Tree { tree: number, port: branch.up });
            }
        };
        let part = tree.part(position);
        match others(part) {
            Some((first, last)) => {
                let at = |position: u32| tree.order()[position as usize];
                let mut upper = tree.meet(at(first), at(last));
                while !below(upper, position) {
                    emit_up(upper);
                    let Some(branch) = tree.branch(upper) else { break };
                    upper = branch.parent;
                }
            }
            None => {
                let switches = &tree.order()[part.0 as usize..=part.1 as usize];
                switches.iter().filter(|switch| !below(**switch, position)).for_each(|switch| emit_up(*switch));
            }
        }
    }
}
