//! Declarations: everything that is not in a state or an action.

use super::expression::Value;
use super::types::{self, Type};
use super::{EventKind, Lowerer, Symbol};
use crate::Dialect;
use crate::ast::{
    Expression, FlowDeclaration, FullPolicy, Item, Name, Program, StateDeclaration, TableContents, TableFormula,
    TemplateDeclaration,
};
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use weftwire_image::{
    Creation, Debug, Flow, IMAGE_VERSION, Image, OtherPackets, Place, Register, RegisterType, Sample, Table, Template,
    TemplateTransport, Timer, WhenFull, limits,
};

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
/// Bytes of payload in the dialect's preset full packet.
const DIALECT_PAYLOAD: u16 = 1_448;

/// An image of nothing.
pub(crate) fn empty_image(name: &str, dialect: Dialect) -> Image {
    Image {
        weftwire_image: IMAGE_VERSION,
        name: name.to_string(),
        digest: String::new(),
        registers: Vec::new(),
        flow: Flow {
            source: Vec::new(),
            destination: Vec::new(),
            common: Vec::new(),
            symmetric: true,
            expire: DEFAULT_EXPIRY,
            max: DEFAULT_FLOWS,
            when_full: WhenFull::EvictOldest,
            max_timers: if dialect == Dialect::Xtra { DIALECT_TIMERS } else { DEFAULT_TIMERS },
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
            match item {
                Item::State(state) => states.push(state.clone()),
                Item::Action(action) => {
                    if let Some(first) = self.action_names.get(&action.name.text) {
                        let line = self.line(self.actions[*first].name.span);
                        let message = format!("the action `{}` is declared twice", action.name.text);
                        self.report(
                            Diagnostic::error(action.name.span, message).help(format!("the first is on line {line}")),
                        );
                        continue;
                    }
                    self.action_names.insert(action.name.text.clone(), self.actions.len());
                    self.actions.push(action.clone());
                }
                Item::Import { file, headers } => self.import(file, headers),
                _ => {}
            }
        }
        self.order_states(&mut states, program);
        for item in &program.items {
            match item {
                Item::Constant { name, value } => {
                    let value = self.constant(value);
                    self.declare(name, Symbol::Constant(value));
                }
                Item::Condition { name, value } => self.declare(name, Symbol::Condition(value.clone())),
                Item::Register { names, kind, initial } => self.registers(names, kind.as_ref(), initial.as_ref()),
                Item::Slot { names } => {
                    for name in names {
                        self.add_slot(name);
                    }
                }
                Item::Timer { name, payload } => self.timer(name, payload),
                Item::Table { name, contents } => self.table(name, contents),
                Item::Pacer(declaration) => self.pacer(declaration),
                Item::Template(template) => self.template(template),
                Item::Flow(declaration) => {
                    if flow.is_some() {
                        self.report(Diagnostic::error(declaration.span, "a program has one flow key"));
                    }
                    flow = Some(declaration);
                }
                Item::OtherPackets { pairs, span } => self.other_packets(pairs, *span),
                Item::Sample { register, interval } => self.sample(register, interval),
                Item::Action(_) | Item::State(_) | Item::Import { .. } => {}
            }
        }
        match flow {
            Some(declaration) => self.flow(declaration),
            None => self.five_tuple(),
        }
        if self.untyped {
            self.dialect_slots(program);
        }
        states
    }

    pub(super) fn declare(&mut self, name: &Name, symbol: Symbol) {
        const RESERVED: &[&str] = &["packet", "now", "true", "false", "application", "flow", "data"];
        if RESERVED.contains(&name.text.as_str()) && !self.untyped {
            let message = format!("`{}` has a meaning of its own and can't be declared", name.text);
            self.report(Diagnostic::error(name.span, message));
            return;
        }
        if let Some((_, first)) = self.symbols.get(&name.text) {
            let line = self.line(*first);
            let message = format!("`{}` is declared twice", name.text);
            self.report(Diagnostic::error(name.span, message).help(format!("the first is on line {line}")));
            return;
        }
        self.symbols.insert(name.text.clone(), (symbol, name.span));
    }

    fn order_states(&mut self, states: &mut [StateDeclaration], program: &Program) {
        let initial: Vec<usize> = (0..states.len()).filter(|index| states[*index].initial).collect();
        match initial[..] {
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
            let constant = self.constant_of(initial, type_);
            if register_type.cut(constant) != constant && type_ != Type::Error {
                self.report(Diagnostic::error(initial.span, format!("{constant} does not fit the register's type")));
            }
            register_type.cut(constant)
        });
        for name in names {
            self.declare(name, Symbol::Register(self.image.registers.len() as u16));
            self.register_types.push(type_);
            self.image.registers.push(Register {
                name: name.text.clone(),
                kind: register_type,
                initial,
                scratch: false,
            });
            if self.image.registers.len() > 4096 {
                self.report(Diagnostic::error(name.span, "a program has at most 4,096 registers"));
                return;
            }
        }
    }

    pub(crate) fn unknown_type(&mut self, name: &Name) {
        let mut error = Diagnostic::error(name.span, format!("`{}` is no type", name.text));
        error = match nearest(&name.text, types::NAMES.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("types are {}", types::NAMES.join(", "))),
        };
        self.report(error);
    }

    fn add_slot(&mut self, name: &Name) {
        if self.image.slots.len() >= 32 {
            self.report(Diagnostic::error(name.span, "an instance stores at most 32 packets"));
            return;
        }
        self.declare(name, Symbol::Slot(self.image.slots.len() as u8));
        self.image.slots.push(name.text.clone());
    }

    fn timer(&mut self, name: &Name, payload: &[(Name, Option<Name>)]) {
        if payload.len() > 2 {
            self.report(Diagnostic::error(payload[2].0.span, "a timer carries at most 2 values"));
        }
        let mut carried = Vec::new();
        for (value, kind) in payload.iter().take(2) {
            let kind = match kind {
                None => (Type::Integer, RegisterType::I64),
                Some(kind) => types::named(&kind.text).unwrap_or_else(|| {
                    self.unknown_type(kind);
                    (Type::Error, RegisterType::I64)
                }),
            };
            carried.push((value.text.clone(), kind));
        }
        if matches!(name.text.as_str(), "connect" | "close" | "data") {
            let message = format!("`{}` is an event already and can't name a timer", name.text);
            self.report(Diagnostic::error(name.span, message));
        }
        if self.image.timers.len() >= 64 {
            self.report(Diagnostic::error(name.span, "a program has at most 64 timers"));
            return;
        }
        self.declare(name, Symbol::Timer(self.image.timers.len() as u8));
        let payload = carried.iter().map(|(name, _)| name.clone()).collect();
        self.image.timers.push(Timer { name: name.text.clone(), payload });
        self.timers.push(carried);
    }

    fn table(&mut self, name: &Name, contents: &TableContents) {
        let (base, entries) = match contents {
            TableContents::Given(entries) => {
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
                let entries = self.formula_entries(&index.text, first_index..=last_index, formula);
                (first_index, entries)
            }
        };
        if entries.is_empty() {
            self.report(Diagnostic::error(name.span, "a table has at least one entry"));
            return;
        }
        let index = self.image.tables.len() as u16;
        self.declare(name, Symbol::Table(index));
        self.image.tables.push(Table { name: name.text.clone(), base, entries });
    }

    fn formula_entries(&mut self, index: &str, range: std::ops::RangeInclusive<i64>, formula: &Expression) -> Vec<i64> {
        let symbols = &self.symbols;
        let constant = |name: &str| match symbols.get(name) {
            Some((Symbol::Constant(value), _)) => value.ir.as_constant().map(|value| value as f64),
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
        let Some((Symbol::Register(index), _)) = self.symbols.get(&register.text).cloned() else {
            let message = format!("`{}` is no register declared above", register.text);
            self.report(Diagnostic::error(register.span, message));
            return;
        };
        let kind = if self.untyped { Type::Integer } else { Type::Time };
        let interval = self.bounded(interval, kind, 1_000, i64::MAX);
        self.used.insert(register.text.clone());
        self.image.debug.samples.push(Sample { register: index, interval });
    }

    fn other_packets(&mut self, pairs: &[(Expression, Expression)], span: Span) {
        if self.image.other_packets != OtherPackets::Drop {
            self.report(Diagnostic::error(span, "`other packets` is declared twice"));
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

    fn flow(&mut self, declaration: &FlowDeclaration) {
        self.image.flow.symmetric = declaration.symmetric;
        self.image.flow.source = self.key_fields(&declaration.source);
        self.image.flow.destination = self.key_fields(&declaration.destination);
        let common: Vec<&str> =
            declaration.common.iter().flat_map(|path| path.iter().map(|name| name.text.as_str())).collect();
        match common[..] {
            ["five_tuple"] => self.five_tuple(),
            // One instance for all packets.
            ["none"] if declaration.source.is_empty() => {}
            _ => self.image.flow.common = self.key_fields(&declaration.common),
        }
        if self.image.flow.source.len() != self.image.flow.destination.len() {
            let error = Diagnostic::error(declaration.span, "both sides of the key must have as many fields");
            self.report(error.help(
                "for instance `(network.source, tcp.source_port) <-> (network.destination, tcp.destination_port)`",
            ));
        }
        if let Some(expire) = &declaration.expire {
            self.image.flow.expire = self.bounded(expire, Type::Time, 0, i64::MAX);
        }
        if let Some(max) = &declaration.max {
            self.image.flow.max = self.bounded(max, Type::Integer, 1, i64::from(limits::MAX_FLOWS)) as u32;
        }
        if let Some(max) = &declaration.max_timers {
            let most = i64::from(limits::MAX_PENDING_TIMERS);
            self.image.flow.max_timers = self.bounded(max, Type::Integer, 1, most) as u32;
        }
        self.image.flow.when_full = match &declaration.when_full {
            FullPolicy::Reject => WhenFull::Reject,
            FullPolicy::EvictOldest => WhenFull::EvictOldest,
            FullPolicy::EvictOldestIn(states) => {
                WhenFull::EvictOldestIn(states.iter().filter_map(|state| self.state(state)).collect())
            }
        };
    }

    fn key_fields(&mut self, paths: &[Vec<Name>]) -> Vec<u16> {
        let mut fields = Vec::new();
        for path in paths {
            match &path[..] {
                [header, field] => fields.extend(self.field_any_width(header, field).map(|(index, ..)| index)),
                _ => {
                    let span = path.first().map_or(Span::default(), |name| name.span);
                    self.report(
                        Diagnostic::error(span, "a key is made of header fields")
                            .help("write `header.field`, or `flow key five_tuple`, or `flow key none`"),
                    );
                }
            }
        }
        fields
    }

    /// The symmetric key of addresses, ports and protocol.
    fn five_tuple(&mut self) {
        let mut field = |format: &str, field: &str| {
            let name = |text: &str| Name { text: text.to_string(), span: Span::default() };
            self.field_any_width(&name(format), &name(field)).map(|(index, ..)| index)
        };
        let source = [field("network", "source"), field("transport", "source_port")];
        let destination = [field("network", "destination"), field("transport", "destination_port")];
        let common = field("network", "protocol");
        let flow = &mut self.image.flow;
        flow.symmetric = true;
        flow.source = source.into_iter().flatten().collect();
        flow.destination = destination.into_iter().flatten().collect();
        flow.common = common.into_iter().collect();
    }

    fn template(&mut self, declaration: &TemplateDeclaration) {
        let Some(transport_name) = declaration.headers.first() else { return };
        let transport = match transport_name.text.as_str() {
            "tcp" => TemplateTransport::Tcp,
            "udp" => TemplateTransport::Udp,
            other => {
                let message = format!("a template starts with `tcp` or `udp`, not `{other}`");
                self.report(Diagnostic::error(transport_name.span, message));
                return;
            }
        };
        let mut headers = Vec::new();
        for header in &declaration.headers[1..] {
            match self.image.formats.iter().find(|format| format.name == header.text && format.place != Place::Builtin)
            {
                Some(format) => headers.push(format.name.clone()),
                None => {
                    let message = format!("`{}` is no imported header", header.text);
                    self.report(Diagnostic::error(header.span, message).help("import it from a .p4 file first"));
                }
            }
        }
        if transport == TemplateTransport::Udp && !declaration.options.is_empty() {
            self.report(Diagnostic::error(declaration.options[0].span, "UDP has no options"));
        }
        if let Some(sack) = declaration.options.iter().find(|option| option.text == "sack") {
            let error = Diagnostic::error(sack.span, "a template can't have the option `sack`: its length varies");
            self.report(error.help("options of templates are mss, window_scale, sack_permitted and timestamps"));
        }
        let tcp_options = declaration.options.iter().filter_map(|option| self.option_kind(option)).collect();
        let payload =
            declaration.payload.as_ref().map_or(0, |length| self.bounded(length, Type::Integer, 0, 65_000) as u16);
        let mut presets = Vec::new();
        for (path, value) in &declaration.fields {
            let [header, field] = &path[..] else {
                self.report(Diagnostic::error(value.span, "a template's fields are written `header.field`"));
                continue;
            };
            let foreign = |name: &str| match name {
                "ethernet" | "vlan" | "ipv4" | "ipv6" | "network" | "transport" => false,
                _ => name != transport_name.text && !headers.iter().any(|known| known == name),
            };
            let target =
                self.field(header, field).filter(|(index, _)| self.writable(*index, header.span.to(field.span)));
            if target.is_some() && foreign(&header.text) {
                let message = format!("this template has no header `{}`", header.text);
                self.report(Diagnostic::error(header.span, message).help("name it behind the template's `:`"));
                continue;
            }
            if let Some((index, kind)) = target {
                presets.push((index, self.constant_of(value, kind)));
            }
        }
        self.declare(&declaration.name, Symbol::Template(self.image.templates.len() as u16));
        let name = declaration.name.text.clone();
        self.image.templates.push(Template { name, transport, tcp_options, headers, payload, presets });
    }

    /// The dialect's numbered slots, as many as the program names, and the packets that `connect` presets.
    fn dialect_slots(&mut self, program: &Program) {
        let mut highest = None;
        for_each_slot(program, &mut |slot| highest = highest.max(Some(slot)));
        let Some(highest) = highest else { return };
        for slot in 0..=highest {
            self.add_slot(&Name { text: slot.to_string(), span: Span::default() });
        }
        let template = |name: &str, transport, options: &[u8], payload| Template {
            name: name.to_string(),
            transport,
            tcp_options: options.to_vec(),
            headers: Vec::new(),
            payload,
            presets: Vec::new(),
        };
        let presets = [
            (1, template("empty segment", TemplateTransport::Tcp, &[8], 0)),
            (1, template("datagram", TemplateTransport::Udp, &[], DIALECT_PAYLOAD)),
            (2, template("full segment", TemplateTransport::Tcp, &[8], DIALECT_PAYLOAD)),
            (2, template("full datagram", TemplateTransport::Udp, &[], DIALECT_PAYLOAD)),
        ];
        for (slot, template) in presets {
            if slot <= highest {
                let index = self.image.templates.len() as u16;
                self.image.templates.push(template);
                self.image.creation.push(Creation { slot, template: index });
            }
        }
    }
}

/// Calls `visit` with every numbered slot that a dialect program names.
fn for_each_slot(program: &Program, visit: &mut dyn FnMut(u8)) {
    use crate::ast::{Statement, StatementKind};
    fn walk(statements: &[Statement], visit: &mut dyn FnMut(u8)) {
        for statement in statements {
            let name = match &statement.kind {
                StatementKind::Send { packet, .. } => Some(&packet.name),
                StatementKind::Store { slot, .. } | StatementKind::Discard { slot } => Some(slot),
                StatementKind::Assign { target, .. } => target.first().filter(|_| target.len() == 3),
                StatementKind::If { branches, .. } => {
                    branches.iter().for_each(|branch| walk(&branch.body, visit));
                    None
                }
                _ => None,
            };
            if let Some(slot) = name.and_then(|name| name.text.parse().ok()) {
                visit(slot);
            }
        }
    }
    for item in &program.items {
        match item {
            Item::Action(action) => walk(&action.body, visit),
            Item::State(state) => {
                walk(&state.enter, visit);
                state.handlers.iter().for_each(|handler| walk(&handler.body, visit));
            }
            _ => {}
        }
    }
}
