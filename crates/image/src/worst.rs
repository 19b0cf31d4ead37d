//! The worst case of an event: how many operations may run from its beginning to its end.

use crate::chains::{Chains, event_name, state_name};
use crate::types::{Event, Image, Row};
use std::collections::BTreeMap;

/// The event with the longest way through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorstCase {
    /// In this state,
    pub state: u16,
    /// this event
    pub event: Event,
    /// may take so many operations, those of blocks, of preparations, of internal events with all rounds of repeats, and of the `exit` and
    /// `enter` that follow included.
    pub operations: u64,
}

impl Image {
    /// The worst case of all events; `None`: no event has rows.
    ///
    /// It is a bound: conditions are not looked at, so no event may take it. Saturates.
    pub fn worst_case(&self) -> Option<WorstCase> {
        let mut states: BTreeMap<u16, BTreeMap<Event, Cell<'_>>> = BTreeMap::new();
        for row in &self.rows {
            let operations = self.written_out_length(&row.operations) as u64;
            states.entry(row.state).or_default().entry(row.event).or_default().rows.push((row, operations));
        }
        for preparation in &self.preparations {
            if let Some(cell) = states.get_mut(&preparation.state).and_then(|cells| cells.get_mut(&preparation.event)) {
                cell.preparation = self.written_out_length(&preparation.operations) as u64;
            }
        }
        let ways = states.iter().map(|(state, cells)| (*state, Ways::new(self, *state, cells))).collect();
        let mut changes = Changes { ways, known: BTreeMap::new() };
        let mut worst: Option<WorstCase> = None;
        for (&state, cells) in &states {
            for &event in cells.keys().filter(|event| !matches!(event, Event::Internal(_))) {
                let operations = changes.with_what_follows(state, event);
                if worst.is_none_or(|known| operations > known.operations) {
                    worst = Some(WorstCase { state, event, operations });
                }
            }
        }
        worst
    }

    /// The worst case in words: `at most 12 operations (idle: packet)`.
    pub fn worst_case_text(&self) -> Option<String> {
        let WorstCase { state, event, operations } = self.worst_case()?;
        let chains = Chains::new(self);
        let place = format!("{}: {}", state_name(self, state), event_name(self, &chains, state, event));
        let plural = if operations == 1 { "" } else { "s" };
        Some(format!("at most {operations} operation{plural} ({place})"))
    }
}

/// What a (state, event) may do.
#[derive(Default)]
struct Cell<'a> {
    /// Operations of its preparation.
    preparation: u64,
    /// Its rows, and the operations of each.
    rows: Vec<(&'a Row, u64)>,
}

/// The longest ways through the events of one state.
struct Ways<'a> {
    cells: &'a BTreeMap<Event, Cell<'a>>,
    /// From each event to the end.
    ends: BTreeMap<Event, u64>,
}

/// Where a way leads to: the end of the event, or once more to the repeat of this internal event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    End,
    Again(u16),
}

/// A round of a repeat.
struct Round {
    most: u64,
    then: Event,
    operations: u64,
}

impl<'a> Ways<'a> {
    fn new(image: &Image, state: u16, cells: &'a BTreeMap<Event, Cell<'a>>) -> Ways<'a> {
        let mut rounds = BTreeMap::new();
        // Those inside of another repeat have greater numbers.
        for repeat in image.repeats.iter().rev().filter(|repeat| repeat.state == state) {
            let ways = longest(cells, &rounds, Goal::Again(repeat.event));
            if let Some(operations) = ways.get(&Event::Internal(repeat.event)).copied() {
                let round = Round { most: repeat.most.into(), then: Event::Internal(repeat.then), operations };
                rounds.insert(Event::Internal(repeat.event), round);
            }
        }
        Ways { cells, ends: longest(cells, &rounds, Goal::End) }
    }

    /// The states that an event may lead to, internal events included.
    fn next(&self, event: Event) -> Vec<u16> {
        let (mut next, mut seen, mut open) = (Vec::new(), Vec::new(), vec![event]);
        while let Some(event) = open.pop() {
            if seen.contains(&event) {
                continue;
            }
            seen.push(event);
            for (row, _) in self.cells.get(&event).into_iter().flat_map(|cell| &cell.rows) {
                next.extend(row.next);
                open.extend(row.raise.map(Event::Internal));
            }
        }
        next.sort_unstable();
        next.dedup();
        next
    }
}

/// The longest way from each event to a goal; from those that are not here none leads there.
fn longest(cells: &BTreeMap<Event, Cell<'_>>, rounds: &BTreeMap<Event, Round>, goal: Goal) -> BTreeMap<Event, u64> {
    let mut ways: BTreeMap<Event, u64> = BTreeMap::new();
    // Internal events raise greater ones, and are greater than all others.
    for (&event, cell) in cells.iter().rev() {
        let of_row = |row: &Row, operations: u64| {
            let further = match row.raise {
                None => (goal == Goal::End).then_some(0)?,
                Some(raised) if Event::Internal(raised) > event => into(&ways, cells, rounds, goal, raised)?,
                Some(raised) => (goal == Goal::Again(raised)).then_some(0)?,
            };
            Some(further.saturating_add(cell.preparation + operations))
        };
        let mut ways_from_here =
            cell.rows.iter().filter_map(|(row, operations)| of_row(row, *operations)).collect::<Vec<_>>();
        // No row may match.
        ways_from_here.extend((goal == Goal::End).then_some(cell.preparation));
        if let Some(longest) = ways_from_here.into_iter().max() {
            ways.insert(event, longest);
        }
    }
    ways
}

/// The longest way from an internal event that is raised from a smaller one: if it is a repeat, with all its rounds.
fn into(
    ways: &BTreeMap<Event, u64>,
    cells: &BTreeMap<Event, Cell<'_>>,
    rounds: &BTreeMap<Event, Round>,
    goal: Goal,
    raised: u16,
) -> Option<u64> {
    let event = Event::Internal(raised);
    // An event without rows ends all.
    let to = |event: Event| match cells.contains_key(&event) {
        true => ways.get(&event).copied(),
        false => (goal == Goal::End).then_some(0),
    };
    let Some(Round { most, then, operations }) = rounds.get(&event) else { return to(event) };
    let last = to(*then).map(|then| then.saturating_add(*operations));
    to(event).max(last).map(|further| further.saturating_add(most.saturating_mul(*operations)))
}

/// What follows when an event changes the state.
struct Changes<'a> {
    ways: BTreeMap<u16, Ways<'a>>,
    /// From coming into a state on.
    known: BTreeMap<u16, u64>,
}

impl Changes<'_> {
    fn way(&self, state: u16, event: Event) -> u64 {
        self.ways.get(&state).and_then(|ways| ways.ends.get(&event)).copied().unwrap_or(0)
    }

    /// An event with the changes of states behind it. Entering leads in no circle, so this comes to an end.
    fn with_what_follows(&mut self, state: u16, event: Event) -> u64 {
        let next = self.ways.get(&state).map_or_else(Vec::new, |ways| ways.next(event));
        let change = next.into_iter().map(|next| self.coming_into(next)).max();
        let change = change.map_or(0, |entered| entered.saturating_add(self.way(state, Event::Exit)));
        self.way(state, event).saturating_add(change)
    }

    fn coming_into(&mut self, state: u16) -> u64 {
        if let Some(known) = self.known.get(&state) {
            return *known;
        }
        // Whatever is asked in between is a circle, which the verifier refuses.
        self.known.insert(state, 0);
        let operations = self.with_what_follows(state, Event::Enter);
        self.known.insert(state, operations);
        operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Operation, Repeat, State};

    fn row(event: Event, operations: usize, raise: Option<u16>) -> Row {
        let operations = vec![Operation::DeleteInstance; operations];
        Row { state: 0, event, when: Vec::new(), operations, next: None, raise, line: 0, source: 0 }
    }

    fn image(rows: Vec<Row>, repeats: &[(u16, u32, u16)]) -> Image {
        let text = include_str!("../../../vectors/base.json");
        let mut image: Image = serde_json::from_str(text).expect("the vectors' machine");
        let repeat = |&(event, most, then): &(u16, u32, u16)| Repeat { state: 0, event, most, then };
        image.repeats = repeats.iter().map(repeat).collect();
        image.preparations = Vec::new();
        image.rows = rows;
        image
    }

    fn worst(rows: Vec<Row>, repeats: &[(u16, u32, u16)]) -> u64 {
        image(rows, repeats).worst_case().map_or(0, |worst| worst.operations)
    }

    const INTERNAL: fn(u16) -> Event = Event::Internal;

    #[test]
    fn the_longest_way_counts() {
        assert_eq!(worst(Vec::new(), &[]), 0);
        let rows = vec![
            row(Event::Packet, 3, None),
            row(Event::Packet, 1, Some(0)),
            row(INTERNAL(0), 1, None),
            row(INTERNAL(0), 2, Some(1)),
            row(INTERNAL(1), 4, None),
        ];
        assert_eq!(worst(rows, &[]), 1 + 2 + 4);
    }

    #[test]
    fn rounds_of_repeats_multiply() {
        // Handled at most 1 + 9 times: nine rounds of 2 + 3, then one more or the way out, and 7 behind it.
        let rows = vec![
            row(Event::Packet, 1, Some(0)),
            row(INTERNAL(0), 2, Some(1)),
            row(INTERNAL(0), 0, Some(2)),
            row(INTERNAL(1), 3, Some(0)),
            row(INTERNAL(2), 7, None),
        ];
        assert_eq!(worst(rows.clone(), &[(0, 9, 2)]), 1 + 10 * 5 + 7);
        // One within it: each outer round has four handlings of the inner one.
        let nested = vec![
            row(Event::Packet, 1, Some(0)),
            row(INTERNAL(0), 2, Some(1)),
            row(INTERNAL(0), 0, Some(3)),
            row(INTERNAL(1), 10, Some(1)),
            row(INTERNAL(1), 1, Some(2)),
            row(INTERNAL(2), 3, Some(0)),
            row(INTERNAL(3), 7, None),
        ];
        assert_eq!(worst(nested, &[(0, 9, 3), (1, 3, 2)]), 1 + 10 * (2 + 4 * 10 + 3) + 7);
    }

    #[test]
    fn changes_of_the_state_count() {
        let mut rows = vec![row(Event::Packet, 1, None), row(Event::Exit, 10, None), row(Event::Enter, 100, None)];
        rows[0].next = Some(1);
        let to =
            |event: Event, operations: usize, next: Option<u16>| Row { state: 1, next, ..row(event, operations, None) };
        rows.extend([to(Event::Enter, 1_000, Some(2)), to(Event::Exit, 10_000, None)]);
        rows.push(Row { state: 2, ..row(Event::Enter, 100_000, None) });
        let mut image = image(rows, &[]);
        image.states = (0..3).map(|number| State { name: number.to_string(), expire: None }).collect();
        let worst = image.worst_case().expect("there are rows");
        assert_eq!(worst, WorstCase { state: 0, event: Event::Packet, operations: 111_011 });
    }

    /// Beside an engine that takes whatever way is asked for: no way is longer, and one is as long.
    #[test]
    fn no_way_is_longer() {
        let rows = vec![
            row(Event::Packet, 1, Some(0)),
            row(INTERNAL(0), 5, Some(1)),
            row(INTERNAL(0), 1, Some(3)),
            row(INTERNAL(1), 2, Some(0)),
            row(INTERNAL(1), 1, Some(2)),
            row(INTERNAL(2), 1, Some(2)),
            row(INTERNAL(2), 4, Some(0)),
            row(INTERNAL(3), 1, None),
            row(INTERNAL(0), 9, None),
        ];
        let image = image(rows, &[(0, 2, 3), (2, 2, 3)]);
        /// All ways from here on, each with what repeats have left.
        fn all(image: &Image, event: Event, mut rounds: Vec<u32>) -> u64 {
            let mut most = 0;
            for row in image.rows.iter().filter(|row| row.event == event) {
                let before = rounds.clone();
                let further = row.raise.map_or(0, |raised| {
                    let mut handled = raised;
                    if let Some(repeat) = image.repeat_of(0, raised) {
                        if event < Event::Internal(raised) {
                            rounds[repeat] = 0;
                        } else if rounds[repeat] < image.repeats[repeat].most {
                            rounds[repeat] += 1;
                        } else {
                            handled = image.repeats[repeat].then;
                        }
                    }
                    all(image, Event::Internal(handled), rounds.clone())
                });
                rounds = before;
                most = most.max(row.operations.len() as u64 + further);
            }
            most
        }
        let exact = all(&image, Event::Packet, vec![0; 2]);
        let bound = image.worst_case().expect("there are rows").operations;
        assert_eq!(bound, exact);
    }
}
