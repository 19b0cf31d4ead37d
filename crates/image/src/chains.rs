//! How internal events hang together: from which events an internal one is reached, and which scratch registers it
//! still reads.

use crate::types::*;
use std::collections::{BTreeMap, BTreeSet};

/// The internal events of an image, by state.
pub struct Chains<'a> {
    image: &'a Image,
    /// Events of the outside from which (state, internal event) is reached.
    origins: BTreeMap<(u16, u16), BTreeSet<Event>>,
    /// What (state, internal event) reads of scratch registers; see [`Chains::live`].
    live: BTreeMap<(u16, u16), BTreeSet<u16>>,
}

impl<'a> Chains<'a> {
    /// Follows every `raise` of the image. Internal events only raise greater numbers, so one walk in order is enough.
    pub fn new(image: &'a Image) -> Chains<'a> {
        let mut raising: Vec<&Row> = image.rows.iter().filter(|row| row.raise.is_some()).collect();
        raising.sort_by_key(|row| (row.state, row.event));
        let mut origins: BTreeMap<(u16, u16), BTreeSet<Event>> = BTreeMap::new();
        for row in raising {
            let Some(raised) = row.raise else { continue };
            let from = match row.event {
                Event::Internal(number) => origins.get(&(row.state, number)).cloned().unwrap_or_default(),
                outside => BTreeSet::from([outside]),
            };
            origins.entry((row.state, raised)).or_default().extend(from);
        }
        Chains { image, origins, live: live(image) }
    }

    /// The events of the outside that lead to `event` in `state`; an outside event leads to itself.
    pub fn origins(&self, state: u16, event: Event) -> BTreeSet<Event> {
        match event {
            Event::Internal(number) => self.origins.get(&(state, number)).cloned().unwrap_or_default(),
            outside => BTreeSet::from([outside]),
        }
    }

    /// All events that have rows in `state`: each outside event, and behind it the internal ones it leads to first.
    pub fn events(&self, state: u16) -> Vec<Event> {
        let mut events: Vec<Event> =
            self.image.rows.iter().filter(|row| row.state == state).map(|row| row.event).collect();
        events.sort_by_key(|event| (self.origins(state, *event).first().copied(), *event));
        events.dedup();
        events
    }

    /// What the values of `event` in `state` are called: an internal event keeps those of the event it comes from.
    pub fn value_names(&self, state: u16, event: Event) -> Vec<String> {
        let mut names: Vec<Vec<String>> = self
            .origins(state, event)
            .into_iter()
            .map(|origin| match origin {
                Event::Packet => vec!["port".into(), "frame_length".into(), "payload_length".into()],
                Event::Timer(timer) => {
                    self.image.timers.get(usize::from(timer)).map(|timer| timer.payload.clone()).unwrap_or_default()
                }
                Event::Data => vec!["accepted".into()],
                Event::Read => vec!["read".into()],
                Event::Icmp => vec!["type".into(), "code".into(), "mtu".into()],
                _ => Vec::new(),
            })
            .collect();
        names.dedup();
        if names.len() == 1 { names.remove(0) } else { Vec::new() }
    }

    /// The scratch registers that internal event `number` in `state`, or one it raises, reads from those before it.
    pub fn live(&self, state: u16, number: u16) -> BTreeSet<u16> {
        self.live.get(&(state, number)).cloned().unwrap_or_default()
    }
}

/// The scratch registers that each internal event, or one it raises, reads from those before it. Greater numbers first: what
/// an event raises is known then.
fn live(image: &Image) -> BTreeMap<(u16, u16), BTreeSet<u16>> {
    let mut events: BTreeMap<(u16, u16), Vec<&Row>> = BTreeMap::new();
    for row in &image.rows {
        if let Event::Internal(number) = row.event {
            events.entry((row.state, number)).or_default().push(row);
        }
    }
    let mut known: BTreeMap<(u16, u16), BTreeSet<u16>> = BTreeMap::new();
    for ((state, number), rows) in events.into_iter().rev() {
        let mut live = BTreeSet::new();
        let mut prepared = BTreeSet::new();
        for operation in preparation(image, state, Event::Internal(number)) {
            scan(operation, &mut live, &mut prepared);
        }
        for row in rows {
            for (index, _) in &row.when {
                if let Some(condition) = image.conditions.get(usize::from(*index)) {
                    read(&condition.left, &prepared, &mut live);
                    read(&condition.right, &prepared, &mut live);
                }
            }
            let mut written = prepared.clone();
            for operation in image.written_out(&row.operations) {
                scan(operation, &mut live, &mut written);
            }
            let raised = row.raise.filter(|raised| *raised > number);
            if let Some(further) = raised.and_then(|raised| known.get(&(state, raised))) {
                live.extend(further.difference(&written));
            }
        }
        live.retain(|register| image.registers.get(usize::from(*register)).is_some_and(|found| found.scratch));
        known.insert((state, number), live);
    }
    known
}

fn read(operand: &Operand, written: &BTreeSet<u16>, live: &mut BTreeSet<u16>) {
    if let Operand::Register(register) = operand
        && !written.contains(register)
    {
        live.insert(*register);
    }
}

/// Adds what an operation reads before it is written, then what it writes.
fn scan(operation: &Operation, live: &mut BTreeSet<u16>, written: &mut BTreeSet<u16>) {
    for operand in operation.operands() {
        read(operand, written, live);
    }
    written.extend(operation.target());
}

/// The operations of the preparation of (state, event), blocks written out.
pub fn preparation(image: &Image, state: u16, event: Event) -> impl Iterator<Item = &Operation> {
    let found = image.preparations.iter().find(|entry| entry.state == state && entry.event == event);
    found.into_iter().flat_map(|entry| image.written_out(&entry.operations))
}

/// The event as a heading says it: `packet`, `timer rto`, `packet, continued (#3)`.
pub fn event_name(image: &Image, chains: &Chains<'_>, state: u16, event: Event) -> String {
    match event {
        Event::Packet => "packet".into(),
        Event::Timer(timer) => match image.timers.get(usize::from(timer)) {
            Some(found) => format!("timer {}", found.name),
            None => format!("timer {timer}"),
        },
        Event::Turn(turns) => match image.turns.get(usize::from(turns)) {
            Some(found) => format!("turn {}", found.name),
            None => format!("turn {turns}"),
        },
        Event::Connect => "connect".into(),
        Event::Close => "close".into(),
        Event::Data => "data".into(),
        Event::Enter => "enter".into(),
        Event::Exit => "exit".into(),
        Event::Abort => "abort".into(),
        Event::Read => "read".into(),
        Event::Icmp => "icmp".into(),
        Event::Set => "set".into(),
        Event::Expire => "expire".into(),
        Event::Internal(number) => {
            let origins: Vec<String> = chains
                .origins(state, event)
                .into_iter()
                .map(|origin| event_name(image, chains, state, origin))
                .collect();
            match origins.is_empty() {
                true => format!("continued (#{number}), never reached"),
                false => format!("{}, continued (#{number})", origins.join(" or ")),
            }
        }
    }
}

/// The name of a state, or its number if the image has none.
pub fn state_name(image: &Image, state: u16) -> String {
    image.states.get(usize::from(state)).map_or_else(|| format!("state {state}"), |found| found.name.clone())
}
