//! From the syntax tree to the image: names and types (`expression`, `function`, `statement`), declarations (`declaration`, `fields`), and
//! the flat rule table (`control`, `emit`).

mod calls;
mod control;
mod cycles;
mod declaration;
mod emit;
mod expression;
mod fields;
mod flow;
mod function;
mod ir;
mod modules;
mod names;
mod pacer;
mod serial;
mod statement;
mod stores;
mod suspicion;
mod template;
mod timers;
mod turns;
mod types;

use crate::Dialect;
use crate::ast::{Expression, Name, Program, StateDeclaration, Statement, StatementKind};
use calls::{Action, Choice};
use control::Rules;
use expression::Value;
use ir::Step;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use types::Type;
use weftwire_image::{Event, Image, Operation, Register, RegisterType, State, limits};
use weftwire_text::diagnostic::{Diagnostic, MAX_REPORTED, Severity, list};
use weftwire_text::quantity::{self, Measure};
use weftwire_text::source::{Loader, SourceMap, Span};

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Symbol {
    Constant(Value),
    Condition(Expression),
    Value(Expression),
    Register(u16),
    Array {
        first: u16,
        count: u16,
    },
    Slot(u8),
    Ranges(u8),
    Segments(u8),
    Template(u16),
    Timer(u8),
    Turns(u8),
    Tally(u8),
    Table(u16),
    Interface,
    Module,
    /// What it counts time in; `None` if its declaration is wrong.
    Pacer(Option<weftwire_pace::TimeUnit>),
}

impl Symbol {
    fn describe(&self) -> &'static str {
        match self {
            Symbol::Constant(_) => "a constant",
            Symbol::Condition(_) => "a condition",
            Symbol::Value(_) => "a value that is computed",
            Symbol::Register(_) => "a register",
            Symbol::Array { .. } => "an array",
            Symbol::Slot(_) => "a slot",
            Symbol::Ranges(_) => "ranges",
            Symbol::Segments(_) => "segments",
            Symbol::Template(_) => "a template",
            Symbol::Timer(_) => "a timer",
            Symbol::Turns(_) => "turns",
            Symbol::Tally(_) => "what is counted over all flows",
            Symbol::Table(_) => "a table",
            Symbol::Interface => "an interface",
            Symbol::Module => "a module",
            Symbol::Pacer(_) => "a pacer",
        }
    }
}

/// What a handler handles, as far as names in it care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventKind {
    Packet,
    Timer(u8),
    Turn,
    Data,
    Read,
    Icmp,
    /// `connect`, `close`, `abort` and `expire`.
    Call,
    /// `enter` and `exit`: they come in the course of any other event.
    Other,
}

/// What is known at a place in a handler.
pub(crate) struct Scope {
    pub(crate) event: EventKind,
    pub(crate) locals: Vec<(String, Value)>,
    pub(crate) next_local: usize,
    /// Steps that must come before the statement being lowered.
    pub(crate) before: Vec<Step>,
    pub(crate) allow_random: bool,
    /// Actions being expanded.
    pub(crate) calls: Vec<usize>,
    /// Where the outermost of them is called.
    pub(crate) call_line: u32,
    /// Parameters that choose a module, and the module one of whose actions is being expanded, by number.
    pub(crate) chosen: Vec<(String, usize)>,
    /// Conditions being expanded.
    pub(crate) depth: usize,
    /// Blocks around this place, those of actions written out.
    pub(crate) blocks: usize,
    pub(crate) no_goto: bool,
}

/// Names and types of values that belong together.
pub(crate) type Fields = Vec<(String, (Type, RegisterType))>;

/// A handler in steps: all that one state does at one event.
struct LoweredHandler {
    state: u16,
    event: Event,
    steps: Vec<Step>,
    /// Where it is written.
    span: Span,
}

/// The state of lowering one program.
pub(crate) struct Lowerer<'a> {
    /// The dialect: every value is a 64-bit signed number.
    pub(crate) untyped: bool,
    pub(crate) loader: &'a dyn Loader,
    pub(crate) sources: &'a SourceMap,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
    pub(crate) image: Image,
    pub(crate) symbols: BTreeMap<String, (Symbol, Span)>,
    pub(crate) states: BTreeMap<String, (u16, Span)>,
    pub(crate) action_names: BTreeMap<String, usize>,
    pub(crate) actions: Vec<Action>,
    pub(crate) used_actions: BTreeSet<usize>,
    /// Actions of interfaces.
    pub(crate) choices: BTreeMap<String, Rc<Choice>>,
    pub(crate) used_choices: BTreeSet<String>,
    pub(crate) used_modules: BTreeSet<String>,
    /// In front of the names of the module that names belong to here; empty outside of modules.
    pub(crate) namespace: String,
    pub(crate) register_types: Vec<Type>,
    /// Names and types of what each timer carries.
    pub(crate) timers: Vec<Fields>,
    /// Those of the fields of segments, `left` and `right` included.
    pub(crate) segments: Vec<Fields>,
    pub(crate) set_timers: BTreeSet<u8>,
    /// For each option of each template when it is there.
    pub(crate) wanted_options: BTreeMap<u16, Vec<Option<Expression>>>,
    /// Whether the program says how many settings may be pending.
    pub(crate) timers_said: bool,
    /// Settings of timers with a constant delay: where, and how long.
    pub(crate) long_timers: BTreeSet<(Span, i64)>,
    /// Registers that some expression reads.
    pub(crate) used: BTreeSet<String>,
    pub(crate) steps_made: usize,
    /// Values and operators of the expression being lowered, its named conditions written out.
    pub(crate) values_made: usize,
    /// Those of all expressions.
    pub(crate) all_values: usize,
    /// Entries of all tables, and the work of computing them.
    pub(crate) table_entries: usize,
    pub(crate) table_work: usize,
    /// Errors and warnings found, also those that were found before.
    reports: Reports,
    limits_reported: BTreeSet<String>,
    /// Where the fields of the flow key are named.
    pub(crate) key_spans: Vec<(u16, Span)>,
    /// Numbers of the fields, notices and debug points that the image names.
    pub(crate) field_numbers: BTreeMap<weftwire_image::FieldName, u16>,
    notice_numbers: BTreeMap<String, u16>,
    point_numbers: BTreeMap<String, u16>,
    /// Types that imports give to their fields.
    pub(crate) field_types: BTreeMap<weftwire_image::FieldName, Type>,
    /// The headers of each `.p4` file that was read.
    pub(crate) p4_files: BTreeMap<String, Rc<Vec<weftwire_core::p4::HeaderType>>>,
    /// Bytes of these files.
    pub(crate) p4_bytes: usize,
}

/// How much there is to say. Actions are expanded at each call, and their errors said once.
#[derive(Default)]
struct Reports {
    errors: usize,
    warnings: usize,
    all_errors: usize,
    said: BTreeSet<(Span, String)>,
}

/// Scale and type of a unit; without one, a number.
pub(crate) fn unit_scale(unit: &str) -> Option<(i64, Type)> {
    if unit.is_empty() {
        return Some((1, Type::Integer));
    }
    let (scale, measure) = quantity::unit(unit)?;
    let kind = match measure {
        Measure::Nanoseconds => Type::Time,
        Measure::BitsPerSecond => Type::Rate,
        Measure::Bytes => Type::Integer,
    };
    Some((scale.cast_signed(), kind))
}

/// Lowers a program. The image is meaningful only if no error was reported.
pub(crate) fn lower(
    program: &Program,
    dialect: Dialect,
    loader: &dyn Loader,
    sources: &SourceMap,
    timers: Option<u32>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Image> {
    let mut lowerer = Lowerer {
        untyped: dialect == Dialect::Xtra,
        loader,
        sources,
        diagnostics,
        image: declaration::empty_image(&program.name, dialect, timers),
        symbols: BTreeMap::new(),
        states: BTreeMap::new(),
        action_names: BTreeMap::new(),
        actions: Vec::new(),
        used_actions: BTreeSet::new(),
        choices: BTreeMap::new(),
        used_choices: BTreeSet::new(),
        used_modules: BTreeSet::new(),
        namespace: String::new(),
        register_types: Vec::new(),
        timers: Vec::new(),
        segments: Vec::new(),
        set_timers: BTreeSet::new(),
        wanted_options: BTreeMap::new(),
        timers_said: dialect == Dialect::Xtra && timers.is_none(),
        long_timers: BTreeSet::new(),
        used: BTreeSet::new(),
        steps_made: 0,
        values_made: 0,
        all_values: 0,
        table_entries: 0,
        table_work: 0,
        reports: Reports::default(),
        limits_reported: BTreeSet::new(),
        key_spans: Vec::new(),
        field_numbers: BTreeMap::new(),
        notice_numbers: BTreeMap::new(),
        point_numbers: BTreeMap::new(),
        field_types: BTreeMap::new(),
        p4_files: BTreeMap::new(),
        p4_bytes: 0,
    };
    let states = lowerer.declarations(program);
    lowerer.states(&states);
    if lowerer.has_errors() {
        return None;
    }
    let mut image = lowerer.image;
    image.seal();
    Some(image)
}

impl Lowerer<'_> {
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        let reports = &mut self.reports;
        let error = diagnostic.severity == Severity::Error;
        reports.all_errors += usize::from(error);
        let count = if error { &mut reports.errors } else { &mut reports.warnings };
        if *count > MAX_REPORTED || !reports.said.insert((diagnostic.span, diagnostic.message.clone())) {
            return;
        }
        *count += 1;
        self.diagnostics.push(diagnostic);
    }

    /// Whether an error was found so far.
    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Whether there are so many errors that no more are looked for.
    pub(crate) fn full(&self) -> bool {
        self.reports.all_errors > 3 * MAX_REPORTED || self.reports.errors > MAX_REPORTED
    }

    /// Reports that a program has too many of something, once.
    pub(crate) fn too_many(&mut self, span: Span, what: &str, most: usize) {
        let message = format!("a program has at most {most} {what}");
        if self.limits_reported.insert(message.clone()) {
            self.report(Diagnostic::error(span, message));
        }
    }

    pub(crate) fn line(&self, span: Span) -> u32 {
        self.sources.line(span)
    }

    pub(crate) fn source_line(&self, span: Span) -> ir::SourceLine {
        ir::SourceLine { file: span.file, line: self.line(span) }
    }

    /// What a name stands for here.
    pub(crate) fn known(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(&self.key(name)).map(|(symbol, _)| symbol.clone())
    }

    /// The whole name of what a name stands for here: in a module, its own names come before those of the program.
    pub(crate) fn key(&self, name: &str) -> String {
        let own = self.own_key(name);
        if self.symbols.contains_key(&own) { own } else { name.to_owned() }
    }

    /// The whole name of what is declared here.
    pub(crate) fn own_key(&self, name: &str) -> String {
        format!("{}{name}", self.namespace)
    }

    /// What a name stands for; reports if nothing.
    pub(crate) fn symbol(&mut self, name: &Name, what: &str) -> Option<Symbol> {
        let found = self.known(&name.text);
        if found.is_none() {
            self.unknown(name, what, &Self::scope(EventKind::Other));
        }
        found
    }

    pub(crate) fn state(&mut self, name: &Name) -> Option<u16> {
        if let Some((state, _)) = self.states.get(&name.text) {
            return Some(*state);
        }
        let known: Vec<String> = self.states.keys().cloned().collect();
        self.unknown_state(name, known.iter().map(String::as_str));
        None
    }

    pub(crate) fn unknown_state<'n>(&mut self, name: &Name, known: impl Iterator<Item = &'n str> + Clone) {
        let error = Diagnostic::error(name.span, format!("there is no state `{}`", name.text));
        self.report(match weftwire_text::diagnostic::nearest(&name.text, known.clone()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("states are {}", list(known))),
        });
    }

    pub(crate) fn notice(&mut self, name: &Name) -> u16 {
        let notices = &mut self.image.notices;
        let index = *self.notice_numbers.entry(name.text.clone()).or_insert_with(|| {
            notices.push(name.text.clone());
            (notices.len() - 1) as u16
        });
        if usize::from(index) >= limits::MAX_NOTICES {
            self.too_many(name.span, "notices", limits::MAX_NOTICES);
        }
        index
    }

    pub(crate) fn debug_point(&mut self, mut name: String) -> u16 {
        // Names of states and events may be long, each.
        if name.len() > limits::MAX_NAME {
            name = name.chars().take(limits::MAX_NAME / 4).chain("...".chars()).collect();
        }
        let points = &mut self.image.debug.points;
        *self.point_numbers.entry(name).or_insert_with_key(|name| {
            points.push(name.clone());
            (points.len() - 1) as u16
        })
    }

    /// Lowers all states to rows.
    fn states(&mut self, states: &[StateDeclaration]) {
        let mut handlers = Vec::new();
        if self.action_names.contains_key(crate::dialect::PROLOGUE) {
            self.prologue(&mut handlers);
        }
        for state in states {
            if self.full() {
                return;
            }
            let Some((index, _)) = self.states.get(&state.name.text).copied() else { continue };
            let span = state.name.span;
            let mut enter = Vec::new();
            if state.debug {
                let point = self.debug_point(format!("state {}", state.name.text));
                enter.push(Step::Do { operation: Operation::Snapshot { point }, values: Vec::new() });
            }
            enter.extend(self.block(&state.enter, &mut Self::scope(EventKind::Other)));
            if !enter.is_empty() {
                handlers.push(LoweredHandler { state: index, event: Event::Enter, steps: enter, span });
            }
            if !state.exit.is_empty() {
                let mut scope = Self::scope(EventKind::Other);
                scope.no_goto = true;
                let steps = self.block(&state.exit, &mut scope);
                handlers.push(LoweredHandler { state: index, event: Event::Exit, steps, span });
            }
            self.handlers(state, index, &mut handlers);
        }
        if handlers.iter().any(|handler| handler.event == Event::Connect) {
            self.check_connect();
        }
        if self.has_errors() {
            return;
        }
        self.rules(handlers);
        self.check_entry_cycles(states);
        self.warn_of_unused(states);
        self.warn_of_long_timers();
    }

    /// The dialect's statements at the top: a state of their own in front of the initial one.
    fn prologue(&mut self, handlers: &mut Vec<LoweredHandler>) {
        let Some(index) = self.action_names.get(crate::dialect::PROLOGUE).copied() else { return };
        let body = self.actions[index].declaration.body.clone();
        let span = body.first().map_or(Span::default(), |first| first.span);
        let mut steps = self.block(&body, &mut Self::scope(EventKind::Other));
        steps.push(Step::Goto(1));
        handlers.push(LoweredHandler { state: 0, event: Event::Enter, steps, span });
    }

    /// The handlers of one state: those of one event are tried in order.
    fn handlers(&mut self, state: &StateDeclaration, index: u16, made: &mut Vec<LoweredHandler>) {
        let mut done: Vec<Event> = Vec::new();
        for handler in &state.handlers {
            let Some((event, kind)) = self.event(&handler.event) else { continue };
            if done.contains(&event) {
                continue;
            }
            done.push(event);
            let span = handler.event.span;
            let same: Vec<_> = state.handlers.iter().filter(|other| other.event.text == handler.event.text).collect();
            let mut scope = Self::scope(kind);
            if self.untyped {
                let steps = self.merged_blocks(state, &same, &mut scope);
                made.push(LoweredHandler { state: index, event, steps, span });
                continue;
            }
            let mut branches = Vec::new();
            let mut otherwise = None;
            for handler in same {
                if otherwise.is_some() {
                    let message = "this handler is never reached: the one above takes every such event";
                    self.report(
                        Diagnostic::error(handler.event.span, message)
                            .help("give the one above a `from` or `when`, or join the two"),
                    );
                    break;
                }
                self.values_made = 0;
                let mut guard = handler.when.as_ref().map(|when| self.condition(when, &mut scope));
                if let Some(from) = &handler.from {
                    if kind != EventKind::Packet {
                        self.report(Diagnostic::error(from.span, "only `on packet` comes from a port"));
                    }
                    let port = self.typed(from, Type::Integer, &mut scope);
                    self.check_port(&port, from.span);
                    let arrival = ir::Ir::Operand(weftwire_image::Operand::Event(0));
                    let test = expression::compare(crate::ast::BinaryOperator::Equal, Type::Integer, arrival, port);
                    guard = Some(match guard {
                        Some(when) => ir::Ir::And(Box::new(test), Box::new(when)),
                        None => test,
                    });
                }
                let mut body = Vec::new();
                let line = self.source_line(handler.event.span);
                if handler.debug {
                    let point = self.debug_point(format!("on {} in {}", handler.event.text, state.name.text));
                    body.push(Step::Do { operation: Operation::Snapshot { point }, values: Vec::new() });
                }
                body.extend(self.block(&handler.body, &mut scope));
                match guard {
                    Some(guard) => branches.push((guard, body, line)),
                    None => otherwise = Some(body),
                }
            }
            let steps = match (branches.is_empty(), otherwise) {
                (true, Some(body)) => body,
                (_, otherwise) => vec![Step::If { branches, otherwise: otherwise.unwrap_or_default(), hoisted: false }],
            };
            made.push(LoweredHandler { state: index, event, steps, span });
        }
    }

    /// The dialect: several `on` blocks of one event are one block, plain statements first.
    fn merged_blocks(
        &mut self,
        state: &StateDeclaration,
        blocks: &[&crate::ast::Handler],
        scope: &mut Scope,
    ) -> Vec<Step> {
        let mut plain: Vec<Statement> = Vec::new();
        let mut branches = Vec::new();
        let mut span = Span::default();
        let mut steps = Vec::new();
        for block in blocks {
            if block.debug {
                let point = self.debug_point(format!("on {} in {}", block.event.text, state.name.text));
                steps.push(Step::Do { operation: Operation::Snapshot { point }, values: Vec::new() });
            }
            for statement in &block.body {
                match &statement.kind {
                    StatementKind::If { branches: more, .. } => {
                        span = statement.span;
                        branches.extend(more.iter().cloned());
                    }
                    _ => plain.push(statement.clone()),
                }
            }
        }
        if let [_, second, ..] = blocks {
            let message =
                format!("the state `{}` has several blocks for this event; they are read as one", state.name.text);
            self.report(Diagnostic::warning(second.event.span, message));
        }
        if !branches.is_empty() {
            plain.push(Statement { kind: StatementKind::If { branches, otherwise: Vec::new() }, span });
        }
        steps.extend(self.block(&plain, scope));
        steps
    }

    fn event(&mut self, name: &Name) -> Option<(Event, EventKind)> {
        Some(match name.text.as_str() {
            "packet" => (Event::Packet, EventKind::Packet),
            "connect" => (Event::Connect, EventKind::Call),
            "close" => (Event::Close, EventKind::Call),
            "data" => (Event::Data, EventKind::Data),
            "expire" if !self.symbols.contains_key("expire") => (Event::Expire, EventKind::Call),
            "abort" if !self.symbols.contains_key("abort") => (Event::Abort, EventKind::Call),
            "read" if !self.symbols.contains_key("read") => (Event::Read, EventKind::Read),
            "icmp" if !self.symbols.contains_key("icmp") => (Event::Icmp, EventKind::Icmp),
            "set" if !self.symbols.contains_key("set") => (Event::Set, EventKind::Call),
            _ => match self.symbols.get(&name.text) {
                Some((Symbol::Timer(timer), _)) => (Event::Timer(*timer), EventKind::Timer(*timer)),
                Some((Symbol::Turns(turns), _)) => (Event::Turn(*turns), EventKind::Turn),
                _ => {
                    let error = Diagnostic::error(name.span, format!("`{}` is no event", name.text));
                    let image = &self.image;
                    let timers = image.timers.iter().map(|timer| timer.name.as_str());
                    let timers: Vec<&str> = timers.chain(image.turns.iter().map(|turns| turns.name.as_str())).collect();
                    self.report(error.help(format!(
                        "events are packet, connect, close, data, read, abort, icmp, set, expire, timers and turns{}",
                        if timers.is_empty() { String::new() } else { format!(" ({})", list(timers)) }
                    )));
                    return None;
                }
            },
        })
    }

    fn rules(&mut self, mut handlers: Vec<LoweredHandler>) {
        for handler in &mut handlers {
            ir::mark_tested(&mut handler.steps);
        }
        let fields: Vec<_> = self.image.fields.iter().map(|name| self.place(name)).collect();
        let overlaps = |one: u16, other: u16| fields::overlap(&fields[usize::from(one)], &fields[usize::from(other)]);
        let names = self.image.fields.clone();
        let refreshed = |field: u16| {
            let name = names[usize::from(field)].field.as_str();
            matches!(name, "checksum" | "length" | "total_length" | "payload_length")
        };
        let mut rules = Rules::new(self.image.registers.len() as u16, &overlaps, &refreshed);
        let mut exceeded = None;
        for handler in &handlers {
            let line = self.source_line(handler.span);
            rules.handler(handler.state, handler.event, &handler.steps, line);
            if let Some(found) = rules.exceeded.take() {
                exceeded = Some((found, handler.span));
                break;
            }
        }
        self.image.internal_events = rules.number_internal_events();
        self.image.repeats = rules.repeats;
        self.image.preparations = rules.preparations;
        self.image.conditions = rules.conditions;
        self.image.rows = rules.rows;
        self.name_sources();
        if !self.timers_said
            && let Some(most) = timers::settings_at_once(&self.image)
        {
            self.image.flow.max_timers = most;
        }
        for (index, kind) in rules.scratch.kinds().iter().enumerate() {
            let mut name = format!("scratch_{}", index + 1);
            while self.symbols.contains_key(&name) {
                name.push('_');
            }
            self.image.registers.push(Register { name, kind: *kind, initial: 0, scratch: true, values: Vec::new() });
        }
        self.image.share_operations();
        if exceeded.is_none() && self.image.operation_count() > limits::MAX_ALL_OPERATIONS {
            let most = limits::MAX_ALL_OPERATIONS;
            let found = format!("the program needs more different operations than an image may have ({most})");
            exceeded = handlers.last().map(|handler| (found, handler.span));
        }
        if let Some((found, span)) = exceeded {
            let help = "a condition on what a statement in front has changed takes an event; branches double the rows behind them";
            self.report(Diagnostic::error(span, found).help(help));
        }
    }

    /// Rows know their file by its index among all; the image names those that rows come from.
    fn name_sources(&mut self) {
        let included: BTreeSet<u16> = self.image.rows.iter().map(|row| row.source).filter(|file| *file != 0).collect();
        let files = self.sources.files();
        let folder = Path::new(&files[0].name).parent().unwrap_or(Path::new(""));
        for (number, file) in included.into_iter().enumerate() {
            let name = Path::new(&files[usize::from(file)].name);
            self.image.debug.sources.push(name.strip_prefix(folder).unwrap_or(name).display().to_string());
            for row in self.image.rows.iter_mut().filter(|row| row.source == file) {
                row.source = number as u16 + 1;
            }
        }
    }

    /// Entry actions that lead from state to state must come to an end.
    fn check_entry_cycles(&mut self, states: &[StateDeclaration]) {
        let mut rows_at: BTreeMap<(u16, Event), Vec<&weftwire_image::Row>> = BTreeMap::new();
        for row in &self.image.rows {
            rows_at.entry((row.state, row.event)).or_default().push(row);
        }
        let mut hops: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
        for (state, event) in rows_at.keys().filter(|(_, event)| *event == Event::Enter) {
            let mut seen = BTreeSet::from([*event]);
            let mut waiting = vec![*event];
            while let Some(event) = waiting.pop() {
                for row in rows_at.get(&(*state, event)).into_iter().flatten() {
                    hops.entry(*state).or_default().extend(row.next);
                    waiting.extend(row.raise.map(Event::Internal).filter(|raise| seen.insert(*raise)));
                }
            }
        }
        let cyclic = cycles::on_cycles(&hops);
        for state in states {
            if self.states.get(&state.name.text).is_some_and(|(index, _)| cyclic.contains(index)) {
                let message = format!("entry actions lead from `{}` back to it without end", state.name.text);
                self.report(Diagnostic::error(state.name.span, message).help("let a timer of 0 make the step"));
            }
        }
    }

    fn warn_of_unused(&mut self, states: &[StateDeclaration]) {
        let mut leads_to: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for row in &self.image.rows {
            leads_to.entry(row.state).or_default().extend(row.next);
        }
        let mut reached: BTreeSet<u16> = BTreeSet::from([0]);
        let mut open = vec![0];
        while let Some(state) = open.pop() {
            let next = leads_to.get(&state).into_iter().flatten();
            open.extend(next.filter(|next| reached.insert(**next)));
        }
        for state in states {
            if self.states.get(&state.name.text).is_some_and(|(index, _)| !reached.contains(index)) {
                self.report(Diagnostic::warning(
                    state.name.span,
                    format!("nothing leads to the state `{}`", state.name.text),
                ));
            }
        }
        let plain = self.actions.iter().enumerate().filter(|(index, _)| !self.used_actions.contains(index));
        let plain = plain.map(|(_, action)| &action.declaration.name);
        let of_interfaces = self.choices.values().map(|choice| &choice.name);
        let of_interfaces = of_interfaces.filter(|name| !self.used_choices.contains(&name.text));
        let never_called: Vec<Name> = plain.chain(of_interfaces).cloned().collect();
        for name in never_called.iter().filter(|name| name.text != crate::dialect::PROLOGUE) {
            let message = format!("the action `{}` is never called", name.text);
            self.report(Diagnostic::warning(name.span, message));
        }
        let symbols: Vec<(String, Symbol, Span)> =
            self.symbols.iter().map(|(name, (symbol, span))| (name.clone(), symbol.clone(), *span)).collect();
        for (name, symbol, span) in symbols {
            let message = match symbol {
                Symbol::Register(_) if !self.used.contains(&name) => format!("the register `{name}` is never read"),
                Symbol::Array { .. } if !self.used.contains(&name) => format!("the array `{name}` is never read"),
                Symbol::Timer(timer) if !self.set_timers.contains(&timer) && !self.untyped => {
                    format!("the timer `{name}` is never set")
                }
                Symbol::Tally(_) if !self.used.contains(&name) => format!("what `{name}` counts is never read"),
                Symbol::Turns(_) if !self.used.contains(&name) => format!("nobody asks for `{name}`"),
                Symbol::Pacer(_) if !self.used.contains(&name) => format!("nothing is paced with `{name}`"),
                _ => continue,
            };
            self.report(Diagnostic::warning(span, message));
        }
    }

    /// Adds a state; reports a second one of the same name.
    pub(crate) fn add_state(&mut self, name: &str, span: Span) {
        if let Some((_, first)) = self.states.get(name) {
            let line = self.line(*first);
            let message = format!("the state `{name}` is declared twice");
            self.report(Diagnostic::error(span, message).help(format!("the first is on line {line}")));
            return;
        }
        self.states.insert(name.to_string(), (self.image.states.len() as u16, span));
        self.image.states.push(State { name: name.to_string(), expire: None });
    }
}
