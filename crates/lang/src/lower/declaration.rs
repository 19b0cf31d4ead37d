//! Declarations: everything that is not in a state or an action.

use super::expression::Value;
use super::types::{self, Type};
use super::{EventKind, Lowerer, Symbol};
use crate::Dialect;
use crate::ast::{ActionDeclaration, Expression, Item, Name, Program, StateDeclaration, TableContents, TableFormula};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_image::{
    Debug, Flow, IMAGE_VERSION, Image, OtherPackets, Register, RegisterType, Sample, Table, Timer, WhenFull, limits,
};
use weftwire_text::diagnostic::{Diagnostic, nearest};
use weftwire_text::source::Span;

/// Idle time after which a flow expires, if the program does not say.
const DEFAULT_EXPIRY: i64 = 300_000_000_000;
/// Greatest number of flows, if the program does not say.
const DEFAULT_FLOWS: u32 = 65_536;
/// Greatest number of timers a flow may have pending, if the program does not say.
const DEFAULT_TIMERS: u32 = 4_096;
/// The same in the dialect, which has no way to say it: as many as an image may ask for.
const DIALECT_TIMERS: u32 = limits::MAX_PENDING_TIMERS;
/// Greatest number of entries of one table.
const MAX_TABLE: i64 = 1 << 20;
/// Greatest number of operators that all formulas of tables compute together.
const MAX_TABLE_WORK: usize = 1 << 25;
/// Greatest number of handlers that states share, counted for each of them.
const MAX_SHARED: usize = 16_384;
/// Greatest number of timers.
const MAX_TIMERS: usize = 64;

/// An image of nothing.
pub(crate) fn empty_image(name: &str, dialect: Dialect, timers: Option<u32>) -> Image {
    let usual = if dialect == Dialect::Xtra { DIALECT_TIMERS } else { DEFAULT_TIMERS };
    Image {
        weftwire_image: IMAGE_VERSION,
        name: name.to_string(),
        digest: String::new(),
        features: Vec::new(),
        registers: Vec::new(),
        flow: Flow {
            source: Vec::new(),
            destination: Vec::new(),
            common: Vec::new(),
            symmetric: true,
            expire: DEFAULT_EXPIRY,
            hold: true,
            max: DEFAULT_FLOWS,
            when_full: WhenFull::EvictOldest,
            max_timers: timers.unwrap_or(usual),
        },
        other_packets: OtherPackets::Drop,
        formats: Vec::new(),
        fields: Vec::new(),
        slots: Vec::new(),
        templates: Vec::new(),
        timers: Vec::new(),
        tables: Vec::new(),
        notices: Vec::new(),
        creation: Vec::new(),
        states: Vec::new(),
        internal_events: 0,
        repeats: Vec::new(),
        blocks: Vec::new(),
        ranges: Vec::new(),
        segments: Vec::new(),
        send_buffer: None,
        turns: Vec::new(),
        tallies: Vec::new(),
        preparations: Vec::new(),
        conditions: Vec::new(),
        rows: Vec::new(),
        debug: Debug::default(),
    }
}

impl Lowerer<'_> {
    /// Takes in all declarations; returns the states, the initial one first.
    pub(crate) fn declarations(&mut self, program: &Program) -> Vec<StateDeclaration> {
        let mut states: Vec<StateDeclaration> = Vec::new();
        let mut flow = None;
        for item in &program.items {
            if self.full() {
                break;
            }
            match item {
                Item::State(state) => states.push(state.clone()),
                Item::Action(action) => self.action(action, ""),
                Item::Import { file, headers } => self.import(file, headers),
                _ => {}
            }
        }
        self.modules(program);
        self.share_handlers(&mut states, program);
        self.order_states(&mut states, program);
        for item in &program.items {
            if self.full() {
                break;
            }
            match item {
                Item::Flow(declaration) => {
                    if flow.is_some() {
                        self.report(Diagnostic::error(declaration.span, "a program has one flow key"));
                    }
                    flow = Some(declaration);
                }
                item => self.declaration(item),
            }
        }
        match flow {
            Some(declaration) => self.flow(declaration),
            None => self.five_tuple(),
        }
        self.state_expiries(&states);
        if self.untyped {
            self.dialect_slots(program);
        }
        states
    }

    /// A declaration that may stand in a module, or of which there may be many.
    fn declaration(&mut self, item: &Item) {
        match item {
            Item::Constant { name, value } => {
                let value = self.constant(value);
                self.declare(name, Symbol::Constant(value));
            }
            Item::Condition { name, value } => {
                self.declare(name, Symbol::Condition(value.clone()));
            }
            Item::Value { name, value } => {
                self.declare(name, Symbol::Value(value.clone()));
            }
            Item::Register { names, kind, initial } => self.registers(names, kind.as_ref(), initial.as_ref()),
            Item::Array { name, length, kind, initial } => {
                self.array(name, length, kind.as_ref(), initial.as_ref());
            }
            Item::Slot { names } => {
                for name in names {
                    self.add_slot(name);
                }
            }
            Item::Timer { name, payload } => self.timer(name, payload),
            Item::Ranges { name, bytes, most } => self.ranges(name, bytes.as_ref(), most),
            Item::SendBuffer { bytes, span } => self.send_buffer(bytes, *span),
            Item::Segments { name, fields, most } => self.segments(name, fields, most),
            Item::Table { name, contents } => self.table(name, contents),
            Item::Pacer(declaration) => self.pacer(declaration),
            Item::Template(template) => self.template(template),
            Item::Interface(interface) => interface.registers.iter().for_each(|register| self.declaration(register)),
            Item::Module(module) if self.used_modules.contains(&module.name.text) => {
                let namespace = format!("{}.", module.name.text);
                self.within(namespace, |lowerer| module.items.iter().for_each(|item| lowerer.declaration(item)));
            }
            Item::Use(choice) => self.module_parameter(choice),
            Item::Tally { name, flows, counted } => self.tally(name, *flows, counted),
            Item::Turns { name, most } => self.turns(name, most),
            Item::OtherPackets { pairs, span } => self.other_packets(pairs, *span),
            Item::Sample { register, interval } => self.sample(register, interval),
            Item::Module(_) | Item::Action(_) | Item::State(_) | Item::Shared { .. } | Item::Import { .. } => {}
            // A program has one, which the caller takes.
            Item::Flow(_) => {}
        }
    }

    /// An action of the program, or of the module with this namespace.
    pub(super) fn action(&mut self, action: &ActionDeclaration, namespace: &str) {
        let key = format!("{namespace}{}", action.name.text);
        if let Some(first) = self.first_of_action(&key) {
            let line = self.line(first);
            let message = format!("the action `{}` is declared twice", action.name.text);
            return self
                .report(Diagnostic::error(action.name.span, message).help(format!("the first is on line {line}")));
        }
        self.add_action(key, action.clone(), namespace.to_owned());
    }

    /// Lets a name stand for something; reports one that does already, and is false then.
    pub(super) fn declare(&mut self, name: &Name, symbol: Symbol) -> bool {
        const RESERVED: &[&str] = &["packet", "now", "true", "false", "application", "flow", "data"];
        if RESERVED.contains(&name.text.as_str()) && !self.untyped {
            let message = format!("`{}` has a meaning of its own and can't be declared", name.text);
            self.report(Diagnostic::error(name.span, message));
            return false;
        }
        let key = self.own_key(&name.text);
        if let Some((_, first)) = self.symbols.get(&key) {
            let line = self.line(*first);
            let message = format!("`{}` is declared twice", name.text);
            self.report(Diagnostic::error(name.span, message).help(format!("the first is on line {line}")));
            return false;
        }
        if key.len() > limits::MAX_NAME {
            let message = format!("`{key}` is longer than {} letters", limits::MAX_NAME);
            self.report(Diagnostic::error(name.span, message).help("give it or its module a shorter name"));
        }
        self.symbols.insert(key, (symbol, name.span));
        true
    }

    /// Gives handlers that several states share to each of them. The handlers of a state are tried in the order in which they
    /// stand in the program, wherever that is.
    fn share_handlers(&mut self, states: &mut [StateDeclaration], program: &Program) {
        let names: BTreeMap<String, usize> =
            states.iter().enumerate().map(|(index, state)| (state.name.text.clone(), index)).collect();
        let mut all = 0;
        let mut handlers = vec![Vec::new(); states.len()];
        for item in &program.items {
            match item {
                Item::State(state) => {
                    if let Some(index) = names.get(&state.name.text) {
                        handlers[*index].extend(state.handlers.iter().cloned());
                    }
                }
                Item::Shared { states, handlers: shared } => {
                    let mut targets = BTreeSet::new();
                    for name in states.iter().flatten() {
                        match names.get(&name.text) {
                            Some(index) if !targets.insert(*index) => {
                                let message = format!("the state `{}` stands here twice", name.text);
                                self.report(Diagnostic::error(name.span, message));
                            }
                            Some(_) => {}
                            None => self.unknown_state(name, names.keys().map(String::as_str)),
                        }
                    }
                    if states.is_none() {
                        targets.extend(0..handlers.len());
                    }
                    all += targets.len() * shared.len();
                    if let Some(first) = shared.first().filter(|_| all > MAX_SHARED) {
                        return self.too_many(
                            first.event.span,
                            "handlers, those of several states counted for each",
                            MAX_SHARED,
                        );
                    }
                    targets.iter().for_each(|index| handlers[*index].extend(shared.iter().cloned()));
                }
                _ => {}
            }
        }
        for (state, handlers) in states.iter_mut().zip(handlers) {
            state.handlers = handlers;
        }
    }

    fn order_states(&mut self, states: &mut Vec<StateDeclaration>, program: &Program) {
        // The dialect's statements at the top take one more.
        let most = limits::MAX_STATES - 1;
        if let Some(state) = states.get(most) {
            self.too_many(state.name.span, "states", most);
            states.truncate(most);
        }
        let initial: Vec<usize> = (0..states.len()).filter(|index| states[*index].initial).collect();
        match initial[..] {
            [] if states.is_empty() && self.has_errors() => {}
            [] if states.is_empty() => {
                let message = format!("`{}` has no state", program.name);
                self.report(Diagnostic::error(Span::default(), message).help("write `initial state NAME { ... }`"));
            }
            [] => {
                let span = states[0].name.span;
                let message = format!("no state is marked `initial`; `{}` is taken, as the first", states[0].name.text);
                self.report(Diagnostic::warning(span, message));
            }
            [first] => states[..=first].rotate_right(1),
            [_, second, ..] => {
                self.report(Diagnostic::error(states[second].name.span, "a program has one initial state"));
            }
        }
        if self.action_names.contains_key(crate::dialect::PROLOGUE) {
            self.add_state("(start)", Span::default());
        }
        for state in states.iter() {
            self.add_state(&state.name.text, state.name.span);
        }
    }

    /// An expression that must be constant.
    pub(crate) fn constant(&mut self, expression: &Expression) -> Value {
        let mut scope = Self::scope(EventKind::Other);
        scope.allow_random = false;
        self.values_made = 0;
        let value = self.expression(expression, &mut scope);
        if value.ir.as_constant().is_some() || value.kind == Type::Error {
            return value;
        }
        let error = Diagnostic::error(expression.span, "this is known only when the machine runs");
        self.report(error.help("a constant is made of numbers and other constants declared above"));
        Value::error()
    }

    pub(super) fn constant_of(&mut self, expression: &Expression, kind: Type) -> i64 {
        let value = self.constant(expression);
        self.coerce(value, kind, expression.span).as_constant().unwrap_or(0)
    }

    /// A constant within bounds.
    pub(super) fn bounded(&mut self, expression: &Expression, kind: Type, low: i64, high: i64) -> i64 {
        let value = self.constant_of(expression, kind);
        if (low..=high).contains(&value) {
            return value;
        }
        self.report(Diagnostic::error(expression.span, format!("this must be from {low} to {high}, found {value}")));
        low
    }

    fn registers(&mut self, names: &[Name], kind: Option<&Name>, initial: Option<&Expression>) {
        let (kind, initial) = self.kind_and_initial(kind, initial);
        for name in names {
            self.add_register(name, name.text.clone(), kind, initial);
        }
    }

    /// An array is registers in a row: `NAME[0]` and so on.
    fn array(&mut self, name: &Name, length: &Expression, kind: Option<&Name>, initial: Option<&Expression>) {
        let ((type_, kind), initial) = self.kind_and_initial(kind, initial);
        let count = self.bounded(length, Type::Integer, 1, limits::MAX_REGISTERS as i64) as u16;
        let first = self.image.registers.len();
        if first + usize::from(count) > limits::MAX_REGISTERS {
            return self.too_many(name.span, "registers, elements of arrays among them", limits::MAX_REGISTERS);
        }
        self.declare(name, Symbol::Array { first: first as u16, count });
        for index in 0..count {
            let name = format!("{}[{index}]", self.own_key(&name.text));
            self.register_types.push(type_);
            self.image.registers.push(Register { name, kind, initial, scratch: false, values: Vec::new() });
        }
    }

    /// The type of a register and what it begins with.
    fn kind_and_initial(&mut self, kind: Option<&Name>, initial: Option<&Expression>) -> ((Type, RegisterType), i64) {
        let (type_, register_type) = match kind {
            None => (Type::Integer, RegisterType::I64),
            Some(kind) => match types::named(&kind.text) {
                Some(known) => known,
                None => {
                    self.unknown_type(kind);
                    (Type::Error, RegisterType::I64)
                }
            },
        };
        let initial = initial.map_or(0, |initial| {
            let value = self.constant(initial);
            // All constants are checked here, those with units and names, too.
            if value.kind.fits(type_) || matches!(type_, Type::Mac | Type::Ipv4) {
                self.check_literal(register_type, &Value { literal: true, ..value.clone() }, initial.span);
            }
            register_type.cut(self.coerce(value, type_, initial.span).as_constant().unwrap_or(0))
        });
        ((type_, register_type), initial)
    }

    /// Adds a register; reports one too many.
    pub(super) fn add_register(
        &mut self,
        declared: &Name,
        name: String,
        (type_, kind): (Type, RegisterType),
        initial: i64,
    ) {
        if self.image.registers.len() >= limits::MAX_REGISTERS {
            return self.too_many(declared.span, "registers", limits::MAX_REGISTERS);
        }
        let declared = Name { text: name.clone(), span: declared.span };
        self.declare(&declared, Symbol::Register(self.image.registers.len() as u16));
        self.register_types.push(type_);
        let name = self.own_key(&name);
        self.image.registers.push(Register { name, kind, initial, scratch: false, values: Vec::new() });
    }

    /// Whether there is room for one more table of so many entries, and for the work of computing them.
    pub(super) fn table_room(&mut self, span: Span, entries: usize, work: usize) -> bool {
        self.table_entries += entries;
        self.table_work += entries * work;
        if self.image.tables.len() >= limits::MAX_TABLES {
            self.too_many(span, "tables", limits::MAX_TABLES);
        } else if self.table_entries > limits::MAX_TABLE_ENTRIES {
            self.too_many(span, "entries of all tables together", limits::MAX_TABLE_ENTRIES);
        } else if self.table_work > MAX_TABLE_WORK {
            self.too_many(span, "operators that all entries of tables compute", MAX_TABLE_WORK);
        } else {
            return true;
        }
        false
    }

    /// Adds a table for which there is room.
    pub(super) fn add_table(&mut self, name: &Name, base: i64, entries: Vec<i64>) {
        self.declare(name, Symbol::Table(self.image.tables.len() as u16));
        let name = self.own_key(&name.text);
        self.image.tables.push(Table { name, base, entries });
    }

    pub(crate) fn unknown_type(&mut self, name: &Name) {
        let mut error = Diagnostic::error(name.span, format!("`{}` is no type", name.text));
        error = match nearest(&name.text, types::NAMES.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("types are {}", types::NAMES.join(", "))),
        };
        self.report(error);
    }

    pub(super) fn add_slot(&mut self, name: &Name) {
        if self.image.slots.len() >= limits::MAX_SLOTS {
            return self.too_many(name.span, "slots", limits::MAX_SLOTS);
        }
        self.declare(name, Symbol::Slot(self.image.slots.len() as u8));
        self.image.slots.push(name.text.clone());
    }

    fn timer(&mut self, name: &Name, payload: &[(Name, Option<Name>)]) {
        if let Some((value, _)) = payload.get(limits::MAX_TIMER_PAYLOAD) {
            let message = format!("a timer carries at most {} values", limits::MAX_TIMER_PAYLOAD);
            self.report(Diagnostic::error(value.span, message));
        }
        let mut carried = Vec::new();
        for (value, kind) in payload.iter().take(limits::MAX_TIMER_PAYLOAD) {
            let kind = match kind {
                None => (Type::Integer, RegisterType::I64),
                Some(kind) => types::named(&kind.text).unwrap_or_else(|| {
                    self.unknown_type(kind);
                    (Type::Error, RegisterType::I64)
                }),
            };
            if carried.iter().any(|(known, _)| *known == value.text) {
                let message = format!("`{}` carries two values named `{}`", name.text, value.text);
                self.report(Diagnostic::error(value.span, message).help("give each value a name of its own"));
            }
            carried.push((value.text.clone(), kind));
        }
        if matches!(name.text.as_str(), "connect" | "close" | "data") {
            let message = format!("`{}` is an event already and can't name a timer", name.text);
            self.report(Diagnostic::error(name.span, message));
        }
        if self.image.timers.len() >= MAX_TIMERS {
            return self.too_many(name.span, "timers", MAX_TIMERS);
        }
        self.declare(name, Symbol::Timer(self.image.timers.len() as u8));
        let payload = carried.iter().map(|(name, _)| name.clone()).collect();
        self.image.timers.push(Timer { name: name.text.clone(), payload });
        self.timers.push(carried);
    }

    fn table(&mut self, name: &Name, contents: &TableContents) {
        let (base, entries) = match contents {
            TableContents::Given(entries) => {
                if !self.table_room(name.span, entries.len(), 1) {
                    return;
                }
                (0, entries.iter().map(|entry| self.constant(entry).ir.as_constant().unwrap_or(0)).collect())
            }
            TableContents::Formula(computed) => {
                let TableFormula { index, first, last, formula } = &**computed;
                let first_index = self.constant_of(first, Type::Integer);
                let last_index = self.constant_of(last, Type::Integer);
                let size = last_index.checked_sub(first_index).and_then(|span| span.checked_add(1)).unwrap_or(i64::MAX);
                if !(1..=MAX_TABLE).contains(&size) {
                    let message = format!("this table would have {size} entries; it may have 1 to {MAX_TABLE}");
                    self.report(Diagnostic::error(first.span.to(last.span), message));
                    return;
                }
                if !self.table_room(formula.span, size as usize, crate::formula::size(formula)) {
                    return;
                }
                let entries = self.formula_entries(&index.text, first_index..=last_index, formula);
                (first_index, entries)
            }
        };
        if entries.is_empty() {
            self.report(Diagnostic::error(name.span, "a table has at least one entry"));
            return;
        }
        self.add_table(name, base, entries);
    }

    fn formula_entries(&mut self, index: &str, range: std::ops::RangeInclusive<i64>, formula: &Expression) -> Vec<i64> {
        let constant = |name: &str| match self.known(name) {
            Some(Symbol::Constant(value)) => value.ir.as_constant().map(|value| value as f64),
            _ => None,
        };
        let mut entries = Vec::new();
        let mut error = None;
        for at in range {
            match crate::formula::evaluate(formula, index, at as f64, &constant) {
                Ok(value) if value.is_finite() && value.abs() < 9.2e18 => entries.push(libm::round(value) as i64),
                Ok(value) => {
                    let message = format!("the formula gives {value} for {index} = {at}, which is no 64-bit number");
                    error = Some(
                        Diagnostic::error(formula.span, message)
                            .help("leave that index out of the range, or bound the formula with min and max"),
                    );
                }
                Err(wrong) => error = Some(wrong),
            }
            if error.is_some() {
                break;
            }
        }
        if let Some(error) = error {
            self.report(error);
            return vec![0];
        }
        entries
    }

    fn sample(&mut self, register: &Name, interval: &Expression) {
        let Some(Symbol::Register(index)) = self.known(&register.text) else {
            let message = format!("`{}` is no register declared above", register.text);
            self.report(Diagnostic::error(register.span, message));
            return;
        };
        let kind = if self.untyped { Type::Integer } else { Type::Time };
        let interval = self.bounded(interval, kind, 1_000, i64::MAX);
        self.used.insert(register.text.clone());
        if self.image.debug.samples.len() >= limits::MAX_SAMPLES {
            return self.too_many(register.span, "samples", limits::MAX_SAMPLES);
        }
        self.image.debug.samples.push(Sample { register: index, interval });
    }

    fn other_packets(&mut self, pairs: &[(Expression, Expression)], span: Span) {
        if self.image.other_packets != OtherPackets::Drop {
            self.report(Diagnostic::error(span, "`other packets` is declared twice"));
        }
        if pairs.len() > limits::MAX_PORT_PAIRS {
            return self.too_many(span, "pairs of ports", limits::MAX_PORT_PAIRS);
        }
        let ports: Vec<(u16, u16)> = pairs
            .iter()
            .map(|(one, other)| {
                let port = |lowerer: &mut Self, port| lowerer.bounded(port, Type::Integer, 1, 65_535) as u16;
                (port(self, one), port(self, other))
            })
            .collect();
        let mut all: Vec<u16> = ports.iter().flat_map(|(one, other)| [*one, *other]).collect();
        all.sort_unstable();
        if all.windows(2).any(|two| two[0] == two[1]) {
            self.report(
                Diagnostic::error(span, "a port stands here twice").help("a port passes packets to one other port"),
            );
        }
        if !ports.is_empty() {
            self.image.other_packets = OtherPackets::Pass(ports);
        }
    }
}
