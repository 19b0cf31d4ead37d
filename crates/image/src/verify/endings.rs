//! That every event ends (semantics, rule E11): exit rows lead nowhere, and no cycle of states leads
//! from `enter` to `enter`.

use super::Verifier;
use super::report::{Path, quote};
use crate::types::{Event, Row};
use std::collections::{BTreeMap, BTreeSet};

/// Row numbers by what they wait for.
type RowsAt = BTreeMap<(u16, Event), Vec<usize>>;

impl Verifier<'_> {
    pub(super) fn endings(&mut self) {
        let mut rows_at = RowsAt::new();
        for (number, row) in self.image.rows.iter().enumerate() {
            rows_at.entry((row.state, row.event)).or_default().push(number);
        }
        self.exits_stay(&rows_at);
        self.entries_end(&rows_at);
    }

    /// No `next` in a row of an `exit` event, nor in one that it raises.
    fn exits_stay(&mut self, rows_at: &RowsAt) {
        let rows = Path::Root.member("rows");
        for &(state, event) in rows_at.keys().filter(|(_, event)| *event == Event::Exit) {
            for number in reachable(&self.image.rows, rows_at, state, event) {
                if self.image.rows[number].next.is_some() {
                    let row = rows.item(number);
                    let problem = format_args!("the state would change again while state {state} is left");
                    self.report.add(row.member("next"), problem, "an `exit` event has no `next`, also through `raise`");
                }
            }
        }
    }

    /// The states form a graph: from a state to each that its `enter` event may lead to. It must have no cycle.
    fn entries_end(&mut self, rows_at: &RowsAt) {
        let mut leads_to: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
        for &(state, event) in rows_at.keys().filter(|(_, event)| *event == Event::Enter) {
            let next = reachable(&self.image.rows, rows_at, state, event)
                .into_iter()
                .filter_map(|number| self.image.rows[number].next)
                .collect();
            leads_to.insert(state, next);
        }
        if let Some(cycle) = find_cycle(&leads_to) {
            let names: Vec<String> = cycle
                .iter()
                .map(|&state| match self.image.states.get(usize::from(state)) {
                    Some(state) => quote(&state.name),
                    None => state.to_string(),
                })
                .collect();
            let problem = format_args!("entering leads round for ever: {}", shorten(names));
            self.report.add(
                Path::Root.member("rows"),
                problem,
                "break the cycle: wait for an event in one of the states",
            );
        }
    }
}

/// All rows that may run at this event and at the internal events raised from it, by number.
fn reachable(rows: &[Row], rows_at: &RowsAt, state: u16, event: Event) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::from([event]);
    let mut waiting = vec![event];
    while let Some(event) = waiting.pop() {
        for &number in rows_at.get(&(state, event)).into_iter().flatten() {
            found.insert(number);
            if let Some(raised) = rows[number].raise.map(Event::Internal)
                && seen.insert(raised)
            {
                waiting.push(raised);
            }
        }
    }
    found
}

/// The states of one cycle in order, its first state again at the end; `None` if there is no cycle.
fn find_cycle(leads_to: &BTreeMap<u16, BTreeSet<u16>>) -> Option<Vec<u16>> {
    let mut finished = BTreeSet::new();
    for &start in leads_to.keys() {
        // Depth first without recursion: the way from `start`, each state with those it still has to try.
        let mut way: Vec<(u16, Vec<u16>)> = Vec::new();
        let mut on_way = BTreeSet::new();
        let mut step = Some(start);
        loop {
            if let Some(state) = step.take().filter(|state| !finished.contains(state)) {
                if !on_way.insert(state) {
                    let from = way.iter().position(|(known, _)| *known == state)?;
                    let mut cycle: Vec<u16> = way[from..].iter().map(|(state, _)| *state).collect();
                    cycle.push(state);
                    return Some(cycle);
                }
                way.push((state, leads_to.get(&state).into_iter().flatten().copied().collect()));
            }
            let Some((state, untried)) = way.last_mut() else { break };
            step = untried.pop();
            if step.is_none() {
                finished.insert(*state);
                on_way.remove(state);
                way.pop();
            }
        }
    }
    None
}

fn shorten(mut names: Vec<String>) -> String {
    const MOST: usize = 8;
    if names.len() > MOST {
        names.splice(MOST / 2..names.len() - MOST / 2, [String::from("...")]);
    }
    names.join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u16, u16)]) -> BTreeMap<u16, BTreeSet<u16>> {
        let mut graph: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
        for &(from, to) in edges {
            graph.entry(from).or_default().insert(to);
        }
        graph
    }

    #[test]
    fn finds_cycles_and_nothing_else() {
        assert_eq!(find_cycle(&graph(&[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])), None);
        assert_eq!(find_cycle(&graph(&[(5, 5)])), Some(vec![5, 5]));
        assert_eq!(find_cycle(&graph(&[(0, 1), (1, 2), (2, 1)])), Some(vec![1, 2, 1]));
    }

    #[test]
    fn a_long_chain_is_no_problem() {
        let chain: Vec<(u16, u16)> = (0..4_000).map(|state| (state, state + 1)).collect();
        assert_eq!(find_cycle(&graph(&chain)), None);
    }
}
