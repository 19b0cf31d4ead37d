//! Ranges, buffers and segments: declarations, statements and questions.

use super::expression::Value;
use super::ir::{Ir, Step};
use super::statement::{NO_VALUE, push};
use super::types::{self, Type};
use super::{Fields, Lowerer, Scope, Symbol};
use crate::ast::{Expression, ExpressionKind, Name, SequenceStatement};
use weftwire_image::{
    Operation, Query, Ranges, RangesQuery, RegisterType, SEGMENT_ENDS, SegmentField, Segments, SegmentsQuery, Store,
    limits,
};
use weftwire_text::diagnostic::{Diagnostic, list};
use weftwire_text::source::Span;

/// The questions about ranges, by their names in programs.
const RANGES: [RangesQuery; 9] = [
    RangesQuery::Floor,
    RangesQuery::Top,
    RangesQuery::Count,
    RangesQuery::Bytes,
    RangesQuery::Has,
    RangesQuery::After,
    RangesQuery::Next,
    RangesQuery::Left,
    RangesQuery::Right,
];

/// Those about segments.
const SEGMENTS: [SegmentsQuery; 8] = [
    SegmentsQuery::Start,
    SegmentsQuery::End,
    SegmentsQuery::Count,
    SegmentsQuery::Bytes,
    SegmentsQuery::First,
    SegmentsQuery::Last,
    SegmentsQuery::Least,
    SegmentsQuery::Greatest,
];

impl Lowerer<'_> {
    pub(super) fn ranges(&mut self, name: &Name, bytes: Option<&Expression>, most: &Expression) {
        let most = self.bounded(most, Type::Integer, 1, limits::MAX_RANGE_COUNT.into()) as u32;
        let size = i64::from(limits::MAX_RECEIVE_BUFFER);
        let bytes = bytes.map(|bytes| self.bounded(bytes, Type::Integer, 1, size) as u32);
        if bytes.is_some() && self.image.receive_buffer().is_some() {
            self.report(Diagnostic::error(name.span, "a program has one receive buffer"));
        }
        if self.image.ranges.len() >= limits::MAX_RANGES {
            return self.too_many(name.span, "objects of ranges", limits::MAX_RANGES);
        }
        self.declare(name, Symbol::Ranges(self.image.ranges.len() as u8));
        let name = self.own_key(&name.text);
        self.image.ranges.push(Ranges { name, most, bytes });
    }

    pub(super) fn send_buffer(&mut self, bytes: &Expression, span: Span) {
        let most = i64::from(limits::MAX_SEND_BUFFER);
        let bytes = self.bounded(bytes, Type::Integer, 1, most) as u32;
        if self.image.send_buffer.replace(bytes).is_some() {
            self.report(Diagnostic::error(span, "a program has one send buffer"));
        }
    }

    pub(super) fn segments(&mut self, name: &Name, fields: &[(Name, Option<Name>)], most: &Expression) {
        let most = self.bounded(most, Type::Integer, 1, limits::MAX_SEGMENT_COUNT.into()) as u32;
        let ends = SEGMENT_ENDS.map(|end| (end.to_string(), (Type::Sequence, RegisterType::Seq32)));
        let mut known = Vec::from(ends);
        for (field, kind) in fields {
            let kind = match kind {
                None => (Type::Integer, RegisterType::I64),
                Some(kind) => types::named(&kind.text).unwrap_or_else(|| {
                    self.unknown_type(kind);
                    (Type::Error, RegisterType::I64)
                }),
            };
            if known.iter().any(|(name, _)| *name == field.text) {
                let message = format!("`{}` has two fields named `{}`", name.text, field.text);
                self.report(Diagnostic::error(field.span, message).help("all segments have `left` and `right`"));
            }
            known.push((field.text.clone(), kind));
        }
        if known.len() > limits::MAX_SEGMENT_FIELDS {
            return self.too_many(name.span, "fields of segments", limits::MAX_SEGMENT_FIELDS - SEGMENT_ENDS.len());
        }
        if self.image.segments.len() >= limits::MAX_SEGMENTS {
            return self.too_many(name.span, "objects of segments", limits::MAX_SEGMENTS);
        }
        self.declare(name, Symbol::Segments(self.image.segments.len() as u8));
        let own = known.iter().skip(SEGMENT_ENDS.len());
        let fields = own.map(|(name, (_, kind))| SegmentField { name: name.clone(), kind: *kind }).collect();
        let name = self.own_key(&name.text);
        self.image.segments.push(Segments { name, most, fields });
        self.segments.push(known);
    }

    fn store(&mut self, name: &Name) -> Option<Store> {
        match self.symbol(name, "ranges or segments")? {
            Symbol::Ranges(index) => Some(Store::Ranges(index)),
            Symbol::Segments(index) => Some(Store::Segments(index)),
            other => {
                let message = format!("`{}` is {}, not ranges or segments", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message));
                None
            }
        }
    }

    fn ranges_index(&mut self, name: &Name, buffer: bool) -> Option<u8> {
        let Store::Ranges(index) = self.store(name)? else {
            self.report(Diagnostic::error(name.span, format!("`{}` is segments, not ranges", name.text)));
            return None;
        };
        if self.image.ranges[usize::from(index)].bytes.is_some() == buffer {
            return Some(index);
        }
        let (message, help) = match buffer {
            true => {
                ("keeps no bytes", "declare it as the receive buffer: `receive buffer NAME SIZE at most N ranges;`")
            }
            false => ("is the receive buffer", "`hold PACKET at POSITION in NAME` adds to it, with the bytes"),
        };
        self.report(Diagnostic::error(name.span, format!("`{}` {message}", name.text)).help(help));
        None
    }

    fn segments_index(&mut self, name: &Name) -> Option<u8> {
        match self.store(name)? {
            Store::Segments(index) => Some(index),
            Store::Ranges(_) => {
                self.report(Diagnostic::error(name.span, format!("`{}` is ranges, not segments", name.text)));
                None
            }
        }
    }

    pub(super) fn sequence_statement(
        &mut self,
        statement: &SequenceStatement,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let made = self.store_operation(statement, scope);
        if let Some((operation, values)) = made {
            push(steps, operation, values);
        }
    }

    /// The operation of a statement, and its values in the order of the operands.
    fn store_operation(&mut self, statement: &SequenceStatement, scope: &mut Scope) -> Option<(Operation, Vec<Ir>)> {
        Some(match statement {
            SequenceStatement::Begin { store, at } => {
                let store = self.store(store)?;
                (Operation::Begin { store, at: NO_VALUE }, vec![self.typed(at, Type::Sequence, scope)])
            }
            SequenceStatement::Trim { store, to } => {
                let store = self.store(store)?;
                (Operation::Trim { store, to: NO_VALUE }, vec![self.typed(to, Type::Sequence, scope)])
            }
            SequenceStatement::Add { ranges, arguments } => {
                let index = self.ranges_index(ranges, false)?;
                let [left, right] = &arguments[..] else {
                    let message = format!("`add` takes 2 sequence numbers, found {}", arguments.len());
                    self.report(Diagnostic::error(ranges.span, message).help("write `add NAME(left, right);`"));
                    return None;
                };
                let values = [left, right].map(|end| self.typed(end, Type::Sequence, scope));
                (Operation::AddRange { ranges: index, left: NO_VALUE, right: NO_VALUE }, values.into())
            }
            SequenceStatement::Hold { packet, range, at, buffer } => {
                let index = self.ranges_index(buffer, true)?;
                let packet = self.packet_name(packet, scope)?;
                let (offset, length) = match range {
                    Some((offset, length)) => {
                        (self.typed(offset, Type::Integer, scope), self.typed(length, Type::Integer, scope))
                    }
                    None => (Ir::constant(0), Ir::constant(65_535)),
                };
                let at = self.typed(at, Type::Sequence, scope);
                let operation =
                    Operation::Hold { ranges: index, packet, offset: NO_VALUE, length: NO_VALUE, at: NO_VALUE };
                (operation, vec![offset, length, at])
            }
            SequenceStatement::DeliverHeld { buffer, to } => {
                let index = self.ranges_index(buffer, true)?;
                let to = self.typed(to, Type::Sequence, scope);
                (Operation::DeliverHeld { ranges: index, to: NO_VALUE }, vec![to])
            }
            SequenceStatement::Append { segments, arguments } => {
                let index = self.segments_index(segments)?;
                let fields = self.segments[usize::from(index)].clone();
                // The end, then the record's own fields.
                if arguments.len() + 1 != fields.len() {
                    let names: Vec<&str> = fields.iter().skip(1).map(|(name, _)| name.as_str()).collect();
                    let message = format!("`append` takes {} value(s) here, found {}", names.len(), arguments.len());
                    let help = format!("write `append {}({});`", segments.text, names.join(", "));
                    self.report(Diagnostic::error(segments.span, message).help(help));
                    return None;
                }
                let mut values = Vec::new();
                for (argument, (_, kind)) in arguments.iter().zip(&fields[1..]) {
                    let value = self.expression(argument, scope);
                    values.push(self.held(value, *kind, argument.span));
                }
                let own = vec![NO_VALUE; values.len() - 1];
                (Operation::AppendSegment { segments: index, end: NO_VALUE, values: own }, values)
            }
            SequenceStatement::Split { segments, at } => {
                let index = self.segments_index(segments)?;
                let at = self.typed(at, Type::Sequence, scope);
                (Operation::SplitSegment { segments: index, at: NO_VALUE }, vec![at])
            }
            SequenceStatement::Change { segments, tests, writes } => {
                let index = self.segments_index(segments)?;
                let fields = self.segments[usize::from(index)].clone();
                let (mut made, mut values) = (Vec::new(), Vec::new());
                if let Some(tests) = tests {
                    self.field_tests(("the segment", &fields), tests, scope, &mut made, &mut values);
                }
                let mut written = Vec::new();
                for (field, value) in writes {
                    let known = fields.iter().position(|(name, _)| *name == field.text);
                    let Some(place) = known.filter(|place| *place >= SEGMENT_ENDS.len()) else {
                        let names = fields.iter().skip(SEGMENT_ENDS.len()).map(|(name, _)| name.as_str());
                        let message = format!("`{}` is no field of `{}` to change", field.text, segments.text);
                        self.report(Diagnostic::error(field.span, message).help(format!("fields are {}", list(names))));
                        continue;
                    };
                    let new = self.expression(value, scope);
                    values.push(self.held(new, fields[place].1, value.span));
                    written.push((place as u8, NO_VALUE));
                }
                (Operation::ChangeSegments { segments: index, tests: made, writes: written }, values)
            }
        })
    }

    /// `object.question(arguments)`
    pub(super) fn question(
        &mut self,
        object: &Name,
        question: &Name,
        arguments: &[Expression],
        scope: &mut Scope,
    ) -> Value {
        if let Some(Symbol::Timer(timer)) = self.known(&object.text) {
            return self.timer_question(timer, question, arguments, scope);
        }
        let is_store = matches!(self.known(&object.text), Some(Symbol::Ranges(_) | Symbol::Segments(_)));
        if object.text == "port" && question.text == "mtu" && !is_store {
            return self.port_mtu(question, arguments, scope);
        }
        match self.store(object) {
            Some(Store::Ranges(index)) => self.ranges_question(index, question, arguments, scope),
            Some(Store::Segments(index)) => self.segments_question(index, question, arguments, scope),
            None => Value::error(),
        }
    }

    /// `port.mtu(PORT)`
    fn port_mtu(&mut self, question: &Name, arguments: &[Expression], scope: &mut Scope) -> Value {
        let [port] = arguments else {
            let error = Diagnostic::error(question.span, "which port's `mtu` is meant?");
            self.report(error.help("write `port.mtu(1)`"));
            return Value::error();
        };
        let port = self.typed(port, Type::Integer, scope);
        Value::new(Ir::Query { query: Query::PortMtu { port: NO_VALUE }, values: vec![port] }, Type::Integer)
    }

    fn ranges_question(&mut self, ranges: u8, question: &Name, arguments: &[Expression], scope: &mut Scope) -> Value {
        let Some(what) = RANGES.into_iter().find(|what| what.name() == question.text) else {
            return self.no_question(question, "ranges", RANGES.iter().map(|what| what.name()));
        };
        let wanted = usize::from(what.has_argument());
        if arguments.len() != wanted {
            let message = format!("`{}` takes {wanted} argument(s), found {}", question.text, arguments.len());
            self.report(Diagnostic::error(question.span, message));
            return Value::error();
        }
        let kind = match what {
            RangesQuery::Left | RangesQuery::Right => Type::Integer,
            _ => Type::Sequence,
        };
        let argument = arguments.first().map_or(Ir::constant(0), |argument| self.typed(argument, kind, scope));
        let query = Query::Ranges { ranges, what, argument: NO_VALUE };
        let result = match what {
            RangesQuery::Count | RangesQuery::Bytes => Type::Integer,
            RangesQuery::Has => Type::Bool,
            _ => Type::Sequence,
        };
        Value::new(Ir::Query { query, values: vec![argument] }, result)
    }

    fn segments_question(
        &mut self,
        segments: u8,
        question: &Name,
        arguments: &[Expression],
        scope: &mut Scope,
    ) -> Value {
        let Some(what) = SEGMENTS.into_iter().find(|what| what.name() == question.text) else {
            return self.no_question(question, "segments", SEGMENTS.iter().map(|what| what.name()));
        };
        let fields = self.segments[usize::from(segments)].clone();
        if matches!(what, SegmentsQuery::Start | SegmentsQuery::End) && !arguments.is_empty() {
            let message = format!("`{}` takes nothing, found {} argument(s)", question.text, arguments.len());
            self.report(Diagnostic::error(question.span, message));
            return Value::error();
        }
        let Some((field, tests)) = self.asked_field(question, "the segments", what.has_field(), &fields, arguments)
        else {
            return Value::error();
        };
        let (mut made, mut values) = (Vec::new(), Vec::new());
        if let Some(tests) = tests {
            self.field_tests(("the segment", &fields), tests, scope, &mut made, &mut values);
        }
        let result = match what {
            SegmentsQuery::Start | SegmentsQuery::End => Type::Sequence,
            SegmentsQuery::Count | SegmentsQuery::Bytes => Type::Integer,
            _ => fields[field].1.0,
        };
        let query = Query::Segments { segments, what, field: field as u8, tests: made };
        Value::new(Ir::Query { query, values }, result)
    }

    /// The arguments of a question about one of these fields, if it `wants` one: the field, and a test if there is one.
    pub(super) fn asked_field<'e>(
        &mut self,
        question: &Name,
        owner: &str,
        wants: bool,
        fields: &Fields,
        arguments: &'e [Expression],
    ) -> Option<(usize, Option<&'e Expression>)> {
        let (field, tests) = match arguments {
            [field, tests @ ..] if wants => (Some(field), tests),
            _ => (None, arguments),
        };
        if tests.len() > 1 || wants && field.is_none() {
            let shape = if wants { "a field and a test" } else { "a test" };
            let message = format!("`{}` takes {shape}, found {} argument(s)", question.text, arguments.len());
            self.report(Diagnostic::error(question.span, message));
            return None;
        }
        let Some(field) = field else { return Some((0, tests.first())) };
        let place = match &field.kind {
            ExpressionKind::Path(path) if path.len() == 1 => fields.iter().position(|(name, _)| *name == path[0].text),
            _ => None,
        };
        if place.is_none() {
            let names = list(fields.iter().map(|(name, _)| name.as_str()));
            let error = Diagnostic::error(field.span, format!("this is no field of {owner}"));
            let help = if fields.is_empty() { "it carries nothing".into() } else { format!("fields are {names}") };
            self.report(error.help(help));
        }
        Some((place?, tests.first()))
    }

    pub(super) fn no_question<'n>(
        &mut self,
        name: &Name,
        of: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> Value {
        let error = Diagnostic::error(name.span, format!("{of} have no `{}`", name.text));
        self.report(error.help(format!("they have {}", list(known))));
        Value::error()
    }
}
