//! `pacer` and `pace`: a rate envelope becomes a table of gaps and a few statements that any platform can run.
//!
//! A pacer is a table, registers and two actions, named `NAME.…`, which no program can write. The action `NAME.step`
//! does to the bit what [`weftwire_pace::EvolutionBlock`] does with the same table: the next gap, in nanoseconds, with what is below
//! a nanosecond carried to the gap after it. A pacer that draws its gaps takes the random numbers of the instance.

use super::{Lowerer, Scope, Symbol};
use crate::ast::{
    ActionDeclaration, BinaryOperator, Expression, ExpressionKind, Name, PaceStatement, PacerDeclaration, Statement,
    StatementKind,
};
use crate::lower::ir::Step;
use crate::lower::types::Type;
use weftwire_image::RegisterType;
use weftwire_pace::table::Then;
use weftwire_pace::{Evolution, Form, Options, Setting, TimeUnit};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::NumberValue;
use weftwire_text::source::Span;

/// Entries of a pacer's table, if the program does not say.
const DEFAULT_ENTRIES: i64 = 4_096;
/// Greatest number of them.
const MOST_ENTRIES: i64 = 65_536;
/// What computing one entry counts for among the formulas of tables.
const ENTRY_WORK: usize = 32;
const SECOND: i64 = 1_000_000_000;

/// Writes the statements of a pacer, all of which stand where it is declared or used.
struct Writer<'a> {
    pacer: &'a str,
    span: Span,
}

impl Writer<'_> {
    /// `NAME.part`: a table, register or action of the pacer.
    fn name(&self, part: &str) -> Name {
        Name { text: format!("{}.{part}", self.pacer), span: self.span }
    }

    fn expression(&self, kind: ExpressionKind) -> Expression {
        Expression { kind, span: self.span }
    }

    fn part(&self, part: &str) -> Expression {
        self.expression(ExpressionKind::Path(vec![self.name(part)]))
    }

    /// A parameter or local.
    fn local(&self, name: &str) -> Expression {
        self.expression(ExpressionKind::Path(vec![Name { text: name.to_string(), span: self.span }]))
    }

    fn number(&self, value: u64) -> Expression {
        self.expression(ExpressionKind::Number { value: NumberValue::Whole(value), unit: String::new() })
    }

    fn nanosecond(&self) -> Expression {
        self.expression(ExpressionKind::Number { value: NumberValue::Whole(1), unit: "ns".to_string() })
    }

    fn call<const N: usize>(&self, function: &str, arguments: [Expression; N]) -> Expression {
        let name = Name { text: function.to_string(), span: self.span };
        self.expression(ExpressionKind::Call(name, arguments.into()))
    }

    fn binary(&self, left: Expression, operator: BinaryOperator, right: Expression) -> Expression {
        self.expression(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)))
    }

    fn statement(&self, kind: StatementKind) -> Statement {
        Statement { kind, span: self.span }
    }

    fn set(&self, part: &str, value: Expression) -> Statement {
        let target = vec![self.name(part)];
        self.statement(StatementKind::Assign { target, operator: None, value, optional: false })
    }

    fn define(&self, name: &str, value: Expression) -> Statement {
        let name = Name { text: name.to_string(), span: self.span };
        self.statement(StatementKind::Let { name, kind: None, value })
    }

    fn action(&self, part: &str, parameters: &[(&str, &str)], body: Vec<Statement>) -> ActionDeclaration {
        let name = |text: &str| Name { text: text.to_string(), span: self.span };
        let parameters = parameters.iter().map(|(parameter, kind)| (name(parameter), Some(name(kind)))).collect();
        ActionDeclaration { name: self.name(part), parameters, body }
    }

    /// What `NAME.step(unit)` does: finds the next gap and where the one after it is, then scales it.
    fn step(&self, evolution: &Evolution) -> Vec<Statement> {
        use BinaryOperator::{Add, BitAnd, Equal, GreaterEqual, Multiply, ShiftRight, Subtract};
        let last = evolution.gaps.len() as u64 - 1;
        let next = || self.part("next");
        let entry = |index: Expression| self.expression(ExpressionKind::Index(self.name("gaps"), Box::new(index)));
        let mut statements = Vec::new();
        match evolution.then {
            Then::Draw { .. } => {
                let bits = u64::from(evolution.gaps.len().ilog2());
                let drawn = self.binary(self.call("random", []), BinaryOperator::ShiftRight, self.number(64 - bits));
                // One entry: nothing to choose, and no number is shifted by 64 bits.
                let index = if bits == 0 { self.number(0) } else { self.call("i64", [drawn]) };
                statements.push(self.define("gap", entry(index)));
            }
            Then::Repeat { band, grains, numerator, denominator } => {
                let start: u64 = evolution.bands[..band as usize].iter().map(|band| u64::from(band.blocks)).sum();
                let ends = self.call("u8", [self.binary(next(), Equal, self.number(last))]);
                statements.push(self.define("ends", ends));
                let ends = || self.local("ends");
                let mut gap = self.binary(entry(next()), Add, self.binary(ends(), Multiply, self.number(grains)));
                if numerator > 0 {
                    let part = || self.part("part");
                    let more = self.binary(part(), Add, self.binary(ends(), Multiply, self.number(numerator)));
                    statements.push(self.set("part", more));
                    let whole = self.binary(part(), GreaterEqual, self.call("u64", [self.number(denominator)]));
                    statements.push(self.define("whole", self.call("u8", [whole])));
                    let whole = || self.local("whole");
                    let rest = self.binary(whole(), Multiply, self.number(denominator));
                    statements.push(self.set("part", self.binary(part(), Subtract, rest)));
                    gap = self.binary(gap, Add, whole());
                }
                statements.push(self.define("gap", gap));
                let back = self.binary(ends(), Multiply, self.number(last + 1 - start));
                let on = self.binary(next(), Add, self.number(1));
                statements.push(self.set("next", self.binary(on, Subtract, back)));
            }
            // Carried tables, which have an entry for each packet, never double.
            Then::Hold | Then::Double { .. } => {
                statements.push(self.define("gap", entry(next())));
                let on = self.binary(next(), Add, self.number(1));
                statements.push(self.set("next", self.call("min", [on, self.number(last)])));
            }
        }
        // A gap has up to 32 bits and what ends a round: units up to this do not overflow 64.
        let greatest = evolution.gaps.iter().max().copied().unwrap_or(0)
            + if let Then::Repeat { grains, .. } = evolution.then { grains + 1 } else { 0 };
        let fraction = (1_u64 << evolution.fraction_bits) - 1;
        let longest = ((u64::MAX - fraction) / greatest.max(1)).min(i64::MAX as u64);
        let unit = self.call("nanoseconds", [self.local("unit")]);
        let unit = self.call("min", [self.call("max", [unit, self.number(0)]), self.number(longest)]);
        let product = self.binary(self.call("u64", [self.local("gap")]), Multiply, self.call("u64", [unit]));
        statements.push(self.define("sum", self.binary(product, Add, self.part("carry"))));
        let sum = || self.local("sum");
        statements.push(self.set("carry", self.binary(sum(), BitAnd, self.number(fraction))));
        let whole = self.binary(sum(), ShiftRight, self.number(u64::from(evolution.fraction_bits)));
        statements.push(self.set("gap", self.binary(self.nanosecond(), Multiply, self.call("i64", [whole]))));
        statements
    }
}

impl Lowerer<'_> {
    /// `pacer NAME = "ENVELOPE" ...;`
    pub(super) fn pacer(&mut self, declaration: &PacerDeclaration) {
        let name = &declaration.name;
        let evolution = self.evolution(declaration);
        let known = self.symbols.contains_key(&name.text);
        self.declare(name, Symbol::Pacer(evolution.as_ref().map(|evolution| evolution.unit)));
        let Some(evolution) = evolution.filter(|_| !known) else { return };
        let writer = Writer { pacer: &name.text, span: name.span };
        self.add_table(&writer.name("gaps"), 0, evolution.gaps.iter().map(|gap| *gap as i64).collect());

        let half = (1_i64 << evolution.fraction_bits) >> 1;
        let mut registers = vec![("carry", Type::Unsigned, RegisterType::U64, half)];
        match evolution.then {
            Then::Draw { .. } => {}
            Then::Repeat { numerator: 1.., .. } => {
                registers.push(("next", Type::Integer, RegisterType::U32, 0));
                registers.push(("part", Type::Unsigned, RegisterType::U64, 0));
            }
            _ => registers.push(("next", Type::Integer, RegisterType::U32, 0)),
        }
        registers.push(("gap", Type::Time, RegisterType::Time, 0));
        let mut restart = Vec::new();
        for (part, kind, register_type, initial) in registers {
            self.add_register(name, writer.name(part).text, (kind, register_type), initial);
            if part != "gap" {
                restart.push(writer.set(part, writer.number(initial as u64)));
            }
        }
        for action in [
            writer.action("step", &[("unit", "time")], writer.step(&evolution)),
            writer.action("restart", &[], restart),
        ] {
            // If nothing is paced with it, a warning says so of the pacer.
            self.used_actions.insert(self.actions.len());
            self.add_action(action.name.text.clone(), action, String::new());
        }
    }

    /// The table of a pacer: at most 32 bits a gap.
    fn evolution(&mut self, declaration: &PacerDeclaration) -> Option<Evolution> {
        let entries = match &declaration.entries {
            Some(entries) => self.bounded(entries, Type::Integer, 1, MOST_ENTRIES),
            None => DEFAULT_ENTRIES,
        };
        if !self.table_room(declaration.name.span, entries as usize, ENTRY_WORK) {
            return None;
        }
        let size = declaration.packet_size.as_ref().map(|size| self.bounded(size, Type::Integer, 1, 1 << 20) as f64);
        let setting = Setting { packet_size: size, ..Setting::default() };
        // A quoted text has its quotes around it, the pacer's name has not.
        let (text, offset) = match &declaration.envelope {
            Some(text) => (text, 1),
            None => (&declaration.name, 0),
        };
        let envelope = match weftwire_pace::parse(&text.text, &setting) {
            Ok(envelope) => envelope,
            Err(fault) => {
                let at = |place: usize| text.span.start + offset + place as u32;
                let span = Span { start: at(fault.span.start), end: at(fault.span.end), ..text.span };
                let error = Diagnostic::error(span, fault.message);
                self.report(match fault.help {
                    Some(help) => error.help(help),
                    None => error,
                });
                return None;
            }
        };
        let options = Options { form: Form::Carried, entries: entries as u32, word_bits: 32, ..Options::default() };
        match weftwire_pace::compile(&envelope, &text.text, &options) {
            Ok(evolution) => Some(evolution),
            Err(error) => {
                self.report(Diagnostic::error(text.span, error.to_string()));
                None
            }
        }
    }

    /// `pace TIMER(...) with PACER(UNIT);`
    pub(super) fn pace(&mut self, pace: &PaceStatement, span: Span, scope: &mut Scope, steps: &mut Vec<Step>) {
        let PaceStatement { timer, arguments, pacer, unit } = pace;
        let Some(counts_in) = self.pacer_unit(pacer) else { return };
        let writer = Writer { pacer: &pacer.text, span };
        let unit = match (counts_in, unit) {
            (TimeUnit::RoundTrip, Some(unit)) => unit.clone(),
            (TimeUnit::Second, None) => {
                writer.binary(writer.nanosecond(), BinaryOperator::Multiply, writer.number(SECOND as u64))
            }
            (TimeUnit::RoundTrip, None) => {
                let message = format!("`{}` counts in round trips, and does not know how long one is", pacer.text);
                let help = format!("write `pace {} with {}(TIME)`", timer.text, pacer.text);
                self.report(Diagnostic::error(pacer.span, message).help(help));
                return;
            }
            (TimeUnit::Second, Some(unit)) => {
                let message = format!("`{}` counts in seconds and takes no time", pacer.text);
                self.report(Diagnostic::error(unit.span, message).help("leave it away"));
                return;
            }
        };
        self.call_action(&writer.name("step"), &[unit], scope, steps);
        self.set_timer(timer, arguments, &writer.part("gap"), true, scope, steps);
    }

    /// `restart PACER;`
    pub(super) fn restart(&mut self, pacer: &Name, scope: &mut Scope, steps: &mut Vec<Step>) {
        if self.pacer_unit(pacer).is_some() {
            let writer = Writer { pacer: &pacer.text, span: pacer.span };
            self.call_action(&writer.name("restart"), &[], scope, steps);
        }
    }

    /// What a pacer counts time in; `None` if it is none, or is wrong itself, which was reported.
    fn pacer_unit(&mut self, name: &Name) -> Option<TimeUnit> {
        match self.symbol(name, "a pacer")? {
            Symbol::Pacer(unit) => {
                self.used.insert(name.text.clone());
                unit
            }
            other => {
                let message = format!("`{}` is {}, not a pacer", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message));
                None
            }
        }
    }
}
