//! What all flows share: turns, which are declared, asked for and withdrawn from, and tallies.

use super::expression::Value;
use super::ir::{Ir, Step};
use super::statement::{NO_VALUE, push};
use super::types::Type;
use super::{Lowerer, Scope, Symbol};
use crate::ast::{Expression, Name};
use weftwire_image::{Environment, Operand, Operation, Tally, Turns, limits};
use weftwire_text::diagnostic::Diagnostic;

impl Lowerer<'_> {
    pub(super) fn turns(&mut self, name: &Name, most: &Expression) {
        let most = self.bounded(most, Type::Integer, 1, limits::MAX_WAITING.into()) as u32;
        if matches!(name.text.as_str(), "connect" | "close") {
            let message = format!("`{}` is an event already and can't name turns", name.text);
            self.report(Diagnostic::error(name.span, message));
        }
        if self.image.turns.len() >= limits::MAX_TURNS {
            return self.too_many(name.span, "kinds of turns", limits::MAX_TURNS);
        }
        self.declare(name, Symbol::Turns(self.image.turns.len() as u8));
        self.image.turns.push(Turns { name: name.text.clone(), most });
    }

    pub(super) fn turns_index(&mut self, name: &Name) -> Option<u8> {
        match self.symbol(name, "turns")? {
            Symbol::Turns(turns) => Some(turns),
            other => {
                let message = format!("`{}` is {}, not turns", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message));
                None
            }
        }
    }

    /// `ask TURNS [rank RANK] for TIME;`
    pub(super) fn ask(
        &mut self,
        name: &Name,
        rank: Option<&Expression>,
        cost: &Expression,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some(turns) = self.turns_index(name) else { return };
        self.used.insert(name.text.clone());
        let rank = rank.map_or(Ir::constant(0), |rank| self.expression(rank, scope).ir);
        let time = self.expression(cost, scope);
        let known = time.ir.as_constant().filter(|_| time.kind == Type::Time);
        if let Some(time) = known.filter(|time| !(1..=limits::MAX_TURN_COST).contains(time)) {
            let message = format!("a turn takes 1 ns to {} ns, found {time} ns", limits::MAX_TURN_COST);
            self.report(Diagnostic::error(cost.span, message));
        }
        let time = self.coerce(time, Type::Time, cost.span);
        push(steps, Operation::Ask { turns, rank: NO_VALUE, cost: NO_VALUE }, vec![rank, time]);
    }

    /// `TURNS.waiting`
    pub(super) fn turns_question(&mut self, index: u8, question: &Name) -> Value {
        if question.text != "waiting" {
            let message = format!("turns say nothing of `{}`", question.text);
            self.report(Diagnostic::error(question.span, message).help("they say whether this flow is `waiting`"));
            return Value::error();
        }
        Value::new(Ir::Operand(Operand::Environment(Environment::Waiting(index))), Type::Bool)
    }

    /// `shared NAME counts flows in STATE, ...;` or `... settings of TIMER, ...;`
    pub(super) fn tally(&mut self, name: &Name, flows: bool, counted: &[Name]) {
        let (mut states, mut timers) = (Vec::new(), Vec::new());
        for one in counted {
            let (state, timer) = if flows { (self.state(one), None) } else { (None, self.timer_index(one)) };
            let again =
                state.is_some_and(|state| states.contains(&state)) || timer.is_some_and(|it| timers.contains(&it));
            if again {
                let error = Diagnostic::error(one.span, format!("`{}` is counted already", one.text));
                self.report(error.help("name it once"));
                continue;
            }
            states.extend(state);
            timers.extend(timer);
        }
        if self.image.tallies.len() >= limits::MAX_TALLIES {
            return self.too_many(name.span, "numbers that are counted over all flows", limits::MAX_TALLIES);
        }
        self.declare(name, Symbol::Tally(self.image.tallies.len() as u8));
        self.image.tallies.push(Tally { name: name.text.clone(), states, timers });
    }
}
