//! The parser's part for batches: the messages one after the other, each in a slot with headers of its own.
//!
//! What of a message is known are the headers that rules ask for. The rest of it follows: as bits of variable length where
//! parsers take those, as pieces of 32, 16, 8, 4, 2 and 1 byte where they do not ([`Architecture::Tna`]).

use crate::Unsupported;
use crate::parser::{Parsing, field_name, instance};
use crate::program::*;
use std::collections::BTreeSet;
use weftwire_subscribe::cost::prefix_list;
use weftwire_subscribe::formats::{Batch, Condition, Framing, HeaderId, Place as Found};
use weftwire_subscribe::values::Interval;

/// Headers of one message that come together: those in it, what tells them, and their bits.
#[derive(Clone, Default)]
struct Shape {
    headers: Vec<HeaderId>,
    conditions: Vec<(Select, u128)>,
    length: u32,
}

impl Shape {
    /// Whether no message is of both shapes.
    fn is_apart(&self, other: &Shape) -> bool {
        let differs = |(select, value): &(Select, u128)| {
            other.conditions.iter().any(|(its, wanted)| its == select && wanted != value)
        };
        self.conditions.iter().any(differs)
    }
}

impl Parsing<'_> {
    /// Headers that messages have together, those that ask for more first.
    fn shapes(&self) -> Result<Vec<Shape>, Unsupported> {
        let mut shapes: Vec<Shape> = Vec::new();
        for header in &self.needed {
            let known = self.formats.header(*header);
            let (front, when) = match &known.place {
                Found::Message { when, .. } => (None, when),
                Found::Behind { header, when } => (Some(*header), when),
                _ => continue,
            };
            let fronts: Vec<Shape> = match front {
                None => vec![Shape::default()],
                Some(front) => shapes.iter().filter(|shape| shape.headers.last() == Some(&front)).cloned().collect(),
            };
            for mut shape in fronts {
                shape.headers.push(*header);
                shape.length += known.length;
                if let Some(when) = when {
                    shape.conditions.push((self.condition(when, &shape.headers)?, when.value));
                }
                shapes.push(shape);
            }
        }
        let kinds = shapes.iter().filter(|shape| shape.headers.len() == 1).collect::<Vec<_>>();
        if kinds.len() > 1 && kinds.iter().any(|shape| shape.conditions.is_empty()) {
            let name = kinds.iter().find(|shape| shape.conditions.is_empty()).map(|shape| shape.headers[0]);
            return Err(Unsupported::Ambiguous(name.map_or(String::new(), |id| self.formats.header(id).name.clone())));
        }
        shapes.sort_by_key(|shape| (std::cmp::Reverse(shape.headers.len()), shape.headers.clone()));
        Ok(shapes)
    }

    /// Where a condition's bits are for a parser at the start of a message.
    fn condition(&self, when: &Condition, headers: &[HeaderId]) -> Result<Select, Unsupported> {
        let mut before = 0;
        for header in headers {
            if *header == when.header {
                return Ok(Select::Ahead(before + when.offset, when.width));
            }
            before += self.formats.header(*header).length;
        }
        let name = field_name(self.formats, when.header, when.offset, when.width);
        Ok(Select::Field(Place::new(&instance(self.formats, when.header, 0), &name), when.width))
    }

    /// What the state of the batch's header does, whose field `count` counts the messages.
    pub(super) fn begin_batch(&self, state: &mut State, count: Place, width: u16) {
        state.cases.clear();
        state.select.clear();
        state.otherwise = "batch_0".to_owned();
        if self.architecture == Architecture::Tna {
            // The counter has 8 bits, and no arithmetic but counting down: so it starts where there are few messages.
            state.select.push(Select::Field(count, width));
            for messages in self.counts(width) {
                let next = if messages == 0 { ACCEPT.to_owned() } else { format!("messages_{messages}") };
                state.cases.push((vec![(messages as u128, u128::MAX)], next));
            }
            state.otherwise = "too_many".to_owned();
        }
    }

    /// Numbers of messages that are looked at and that a field of so many bits can say.
    fn counts(&self, width: u16) -> impl Iterator<Item = usize> {
        let most = Interval::of_width(width).last;
        (0..=self.targets.messages).filter(move |count| *count as u128 <= most)
    }

    /// Writes headers and states of all slots.
    pub(super) fn messages(&self, program: &mut Program, header: HeaderId, batch: Batch) -> Result<(), Unsupported> {
        let shapes = self.shapes()?;
        let slots = self.targets.messages;
        let tna = self.architecture == Architecture::Tna;
        program.most_messages = Some(slots);
        let (offset, width) = batch.count.unwrap_or((0, 16));
        let count = Place::new(&instance(self.formats, header, 0), &field_name(self.formats, header, offset, width));
        if tna {
            for messages in self.counts(width).skip(1) {
                program.states.push(State {
                    name: format!("messages_{messages}"),
                    counter: Some(Counter::Set(messages as u8)),
                    otherwise: "message_0".to_owned(),
                    ..State::default()
                });
            }
        }
        for slot in 0..=slots {
            let (select, value) = match tna {
                true => (Select::Done, 1),
                false => (Select::Field(count.clone(), width), slot as u128),
            };
            let next = if slot == slots { "too_many".to_owned() } else { format!("message_{slot}") };
            // On TNA the first slot is entered, and the last left, without a look at the counter.
            if !(tna && (slot == 0 || slot == slots)) {
                let mut open = State { name: format!("batch_{slot}"), otherwise: next, ..State::default() };
                if value <= Interval::of_width(select.width()).last {
                    open.select = vec![select];
                    open.cases = vec![(vec![(value, u128::MAX)], ACCEPT.to_owned())];
                }
                program.states.push(open);
            }
            if slot < slots {
                self.slot(program, &shapes, batch, slot)?;
            }
        }
        program.states.push(State {
            name: "too_many".to_owned(),
            sets: vec![(program.kept("too_many"), Expression::Number(1, 1))],
            otherwise: ACCEPT.to_owned(),
            ..State::default()
        });
        Ok(())
    }

    /// The state behind a slot.
    fn behind(&self, slot: usize) -> String {
        match self.architecture {
            Architecture::Tna if slot + 1 == self.targets.messages => ACCEPT.to_owned(),
            _ => format!("batch_{}", slot + 1),
        }
    }

    /// The headers and states of one slot.
    fn slot(&self, program: &mut Program, shapes: &[Shape], batch: Batch, slot: usize) -> Result<(), Unsupported> {
        let tna = self.architecture == Architecture::Tna;
        let length = Place::new(&format!("length_{slot}"), "bytes");
        let mut message = State {
            name: format!("message_{slot}"),
            counter: tna.then_some(Counter::Down),
            otherwise: format!("other_{slot}"),
            ..State::default()
        };
        if let Framing::Prefix(width) = batch.framing {
            program.headers.push(Header {
                name: length.header.clone(),
                kind: "length_t".to_owned(),
                fields: vec![("bytes".to_owned(), width)],
                variable: 0,
            });
            message.extracts.push(Extract::Header(length.header.clone()));
            message.select.push(Select::Field(length, width));
        } else if tna {
            message.sets.push((Place::new(META, &format!("present_{slot}")), Expression::Number(1, 1)));
            program.metadata.push((format!("present_{slot}"), 1));
        }
        let order: BTreeSet<HeaderId> = shapes.iter().flat_map(|shape| shape.headers.iter().copied()).collect();
        for header in &order {
            program.headers.push(self.header(*header, slot)?);
        }
        for (select, _) in shapes.iter().flat_map(|shape| &shape.conditions) {
            if !message.select.contains(select) {
                message.select.push(select.clone());
            }
        }
        let mut states = Vec::new();
        // Of messages that are too short for any shape, which may end the packet, no bits ahead are looked at.
        let looks_ahead = message.select.iter().any(|select| matches!(select, Select::Ahead(..)));
        let shortest = shapes.iter().map(|shape| u128::from(shape.length / 8)).min();
        let shortest = shortest.filter(|_| looks_ahead).unwrap_or(0);
        for (index, shape) in shapes.iter().enumerate() {
            let name = format!("message_{slot}_{index}");
            let of_conditions = |select: &Select| {
                let value = shape.conditions.iter().find(|(known, _)| known == select);
                value.map_or((0, 0), |(_, value)| (*value, u128::MAX))
            };
            let bytes = u128::from(shape.length / 8);
            match batch.framing {
                Framing::Prefix(width) => {
                    let all = Interval::of_width(width);
                    let long = Interval { first: bytes, last: all.last };
                    let mut add = |lengths: Interval, next: &str| {
                        for lengths in prefix_list(lengths, width) {
                            let mask = all.last & !(lengths.last - lengths.first);
                            let mut values = vec![(lengths.first, mask)];
                            values.extend(message.select[1..].iter().map(of_conditions));
                            message.cases.push((values, next.to_owned()));
                        }
                    };
                    if long.first > long.last {
                        continue;
                    }
                    if !tna {
                        add(long, &name);
                    } else {
                        // What follows the known headers has no place: such packets go on whole. Where no other shape is
                        // like this one, the shorter lengths are fewer cases than the longer ones.
                        add(Interval::point(bytes), &name);
                        if shapes[index + 1..].iter().all(|other| shape.is_apart(other)) {
                            if let Some(last) = bytes.checked_sub(1).filter(|last| shortest <= *last) {
                                add(Interval { first: shortest, last }, &format!("other_{slot}"));
                            }
                            add(all, "too_many");
                        } else {
                            add(long, "too_many");
                        }
                    }
                }
                Framing::Fixed(most) if bytes <= most.into() && shape.conditions.is_empty() => {
                    message.otherwise.clone_from(&name);
                }
                Framing::Fixed(most) if bytes <= most.into() => {
                    message.cases.push((message.select.iter().map(of_conditions).collect(), name.clone()));
                }
                Framing::Fixed(_) => continue,
            }
            let mut inside = State { name, otherwise: self.behind(slot), ..State::default() };
            let headers = shape.headers.iter().map(|header| instance(self.formats, *header, slot));
            inside.extracts = headers.map(Extract::Header).collect();
            let place = Some(index);
            self.rest(program, &mut inside, batch.framing, slot, shape.length, place);
            states.push(inside);
        }
        if message.cases.is_empty() {
            message.select.clear();
        }
        if let (Framing::Prefix(width), Some(last)) = (batch.framing, shortest.checked_sub(1)) {
            let kind = format!("kind_{slot}");
            let length = message.select[0].clone();
            let choice = State {
                name: kind.clone(),
                select: std::mem::replace(&mut message.select, vec![length]),
                cases: std::mem::take(&mut message.cases),
                otherwise: std::mem::replace(&mut message.otherwise, kind),
                ..State::default()
            };
            let all = Interval::of_width(width).last;
            for lengths in prefix_list(Interval { first: 0, last: last.min(all) }, width) {
                let mask = all & !(lengths.last - lengths.first);
                message.cases.push((vec![(lengths.first, mask)], choice.otherwise.clone()));
            }
            program.states.push(message);
            program.states.push(choice);
        } else {
            program.states.push(message);
        }
        program.states.append(&mut states);
        let mut other = State { name: format!("other_{slot}"), otherwise: self.behind(slot), ..State::default() };
        match batch.framing {
            Framing::Prefix(width) if tna => self.pieces(program, other, slot, width),
            _ => {
                self.rest(program, &mut other, batch.framing, slot, 0, None);
                program.states.push(other);
            }
        }
        Ok(())
    }

    /// Takes what follows the first `bits` of a message.
    fn rest(
        &self,
        program: &mut Program,
        state: &mut State,
        framing: Framing,
        slot: usize,
        bits: u32,
        shape: Option<usize>,
    ) {
        let tna = self.architecture == Architecture::Tna;
        let (most, left) = match framing {
            // Where messages have lengths, TNA knows the whole shape.
            Framing::Prefix(_) if tna => return,
            Framing::Prefix(width) => {
                let length = Expression::Field(Place::new(&format!("length_{slot}"), "bytes"));
                let left = length.bits(32).of("-", Expression::Number((bits / 8).into(), 32)).bits(32);
                (if width == 8 { 255 } else { MOST_MESSAGE_BYTES }, left.of("<<", Expression::Number(3, 8)))
            }
            Framing::Fixed(bytes) => (bytes, Expression::Number((bytes * 8 - bits).into(), 32)),
        };
        if tna {
            let name = shape.map_or(format!("rest_{slot}"), |index| format!("rest_{slot}_{index}"));
            if most * 8 > bits {
                program.headers.push(piece(&name, most - bits / 8));
                state.extracts.push(Extract::Header(name));
            }
            return;
        }
        let name = format!("rest_{slot}");
        if !program.headers.iter().any(|header| header.name == name) {
            program.headers.push(Header {
                name: name.clone(),
                kind: "rest_t".to_owned(),
                fields: Vec::new(),
                variable: most * 8,
            });
        }
        state.extracts.push(Extract::Variable(name, left));
    }

    /// Takes a whole message of up to [`MOST_PIECES_BYTES`] bytes: of each power of two that its length is a sum of, one
    /// piece.
    fn pieces(&self, program: &mut Program, mut other: State, slot: usize, width: u16) {
        let length = Select::Field(Place::new(&format!("length_{slot}"), "bytes"), width);
        let all = Interval::of_width(width);
        let mut sizes: Vec<u32> = (0..6u32).rev().map(|bit| 1 << bit).collect();
        sizes.retain(|size| u128::from(*size) <= all.last);
        let state = |size: &u32| format!("piece_{slot}_{size}");
        let first = sizes.first().map_or(ACCEPT.to_owned(), state);
        let behind = std::mem::replace(&mut other.otherwise, first);
        if all.last > MOST_PIECES_BYTES {
            other.select = vec![length.clone()];
            let next = std::mem::replace(&mut other.otherwise, "too_many".to_owned());
            other.cases = vec![(vec![(0, !MOST_PIECES_BYTES)], next)];
        }
        program.states.push(other);
        for (index, size) in sizes.iter().enumerate() {
            let next = sizes.get(index + 1).map_or(behind.clone(), state);
            let (name, take) = (format!("rest_{slot}_{size}"), format!("take_{slot}_{size}"));
            program.headers.push(piece(&name, *size));
            program.states.push(State {
                name: state(size),
                select: vec![length.clone()],
                cases: vec![(vec![((*size).into(), (*size).into())], take.clone())],
                otherwise: next.clone(),
                ..State::default()
            });
            program.states.push(State {
                name: take,
                extracts: vec![Extract::Header(name)],
                otherwise: next,
                ..State::default()
            });
        }
    }

    /// Whether there is a message in a slot.
    pub(super) fn present(&self, batch: Batch, slot: usize) -> Expression {
        match (batch.framing, self.architecture) {
            (Framing::Prefix(_), _) => Expression::Valid(format!("length_{slot}")),
            (Framing::Fixed(_), Architecture::V1model) => Expression::Valid(format!("rest_{slot}")),
            (Framing::Fixed(_), Architecture::Tna) => {
                Expression::meta(format!("present_{slot}")).of("==", Expression::Number(1, 1))
            }
        }
    }
}

/// A header of so many bytes without a meaning.
fn piece(name: &str, bytes: u32) -> Header {
    Header {
        name: name.to_owned(),
        kind: format!("rest_{bytes}_t"),
        fields: vec![("data".to_owned(), (bytes * 8).min(u16::MAX.into()) as u16)],
        variable: 0,
    }
}

/// Most bytes of a message behind its known headers.
const MOST_MESSAGE_BYTES: u32 = 1500;

/// Most bytes of a message that is taken in pieces: all bits of the pieces.
const MOST_PIECES_BYTES: u128 = 63;
