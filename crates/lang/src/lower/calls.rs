//! Calls of actions: written out where they are called, those of an interface for each module that may be the chosen one.

use super::expression::compare;
use super::ir::{Ir, Step, local_operand};
use super::types::{self, Type};
use super::{Lowerer, Scope, Symbol, Value};
use crate::ast::{ActionDeclaration, BinaryOperator, Expression, Name, Parameters};
use std::rc::Rc;
use weftwire_image::Operand;
use weftwire_text::diagnostic::{Diagnostic, nearest};

/// Actions may call actions this deep; deeper is taken for recursion.
const MAX_CALLS: usize = 50;

/// An action that can be written out.
pub(crate) struct Action {
    /// What it does.
    pub(crate) declaration: Rc<ActionDeclaration>,
    /// In front of the names of the module that it belongs to; empty if it belongs to none.
    pub(crate) namespace: String,
}

/// An action of an interface.
#[derive(Clone)]
pub(crate) struct Choice {
    /// Its name.
    pub(crate) name: Name,
    /// Its parameters.
    pub(crate) parameters: Parameters,
    /// The register that says which module is meant.
    pub(crate) parameter: Option<Name>,
    /// The action of each module, by index; of none if no module is used.
    pub(crate) actions: Vec<usize>,
}

/// What a call runs.
enum Callee {
    Action(usize),
    Choice(Rc<Choice>),
}

impl Lowerer<'_> {
    /// Adds an action that is called by `key`.
    pub(super) fn add_action(&mut self, key: String, declaration: ActionDeclaration, namespace: String) {
        self.action_names.insert(key, self.actions.len());
        self.actions.push(Action { declaration: Rc::new(declaration), namespace });
    }

    pub(super) fn call_action(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some(callee) = self.callee(name) else { return };
        let (parameters, actions) = match &callee {
            Callee::Action(index) => (self.actions[*index].declaration.parameters.clone(), vec![*index]),
            Callee::Choice(choice) => (choice.parameters.clone(), choice.actions.clone()),
        };
        self.used_actions.extend(&actions);
        if actions.iter().any(|index| scope.calls.contains(index)) || scope.calls.len() >= MAX_CALLS {
            let message = format!("the action `{}` calls itself", name.text);
            let help = "actions are expanded where they are called; a timer or a state makes a loop";
            return self.report(Diagnostic::error(name.span, message).help(help));
        }
        if parameters.len() != arguments.len() {
            let message = format!("`{}` takes {} argument(s), found {}", name.text, parameters.len(), arguments.len());
            return self.report(Diagnostic::error(name.span, message));
        }
        let first_local = scope.next_local;
        let mut computed = Vec::new();
        let values = self.argument_values(&parameters, arguments, scope, &mut computed);
        if scope.calls.is_empty() {
            scope.call_line = self.line(name.span);
        }
        computed.append(&mut scope.before);
        match callee {
            Callee::Action(index) => {
                steps.append(&mut computed);
                steps.extend(self.expanded(index, &values, scope));
            }
            Callee::Choice(choice) => self.chosen(&choice, &values, computed, scope, steps),
        }
        if scope.next_local > first_local {
            steps.push(Step::Release(first_local));
        }
    }

    /// What a name calls: an action of the module at hand, one of an interface, one of the program.
    fn callee(&mut self, name: &Name) -> Option<Callee> {
        let own = format!("{}{}", self.namespace, name.text);
        if let Some(index) = self.action_names.get(&own) {
            return Some(Callee::Action(*index));
        }
        if let Some(choice) = self.choices.get(&name.text).map(Rc::clone) {
            self.used_choices.insert(name.text.clone());
            if !choice.actions.is_empty() {
                return Some(Callee::Choice(choice));
            }
            let message = format!("nothing says which module does `{}`", name.text);
            let help = "choose one: `use INTERFACE from MODULE;`";
            self.report(Diagnostic::error(name.span, message).help(help));
            return None;
        }
        if let Some(index) = self.action_names.get(&name.text) {
            return Some(Callee::Action(*index));
        }
        let error = Diagnostic::error(name.span, format!("`{}` is no action", name.text));
        let known = self.action_names.keys().chain(self.choices.keys()).map(String::as_str);
        let help = match (self.owner_of(&name.text), nearest(&name.text, known)) {
            (Some(module), _) => Some(private(&name.text, module)),
            (None, Some(near)) => Some(format!("did you mean `{near}`?")),
            (None, None) => None,
        };
        self.report(Diagnostic { help, ..error });
        None
    }

    /// Arguments are computed once, at the call: the body may change what they were computed from.
    fn argument_values(
        &mut self,
        parameters: &Parameters,
        arguments: &[Expression],
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) -> Vec<Value> {
        let mut values = Vec::new();
        for ((_, kind), argument) in parameters.iter().zip(arguments) {
            let mut value = self.expression(argument, scope);
            if let Some(kind) = kind {
                match types::named(&kind.text) {
                    Some(wanted) => value = Value::new(self.held(value, wanted, argument.span), wanted.0),
                    None => self.unknown_type(kind),
                }
            }
            if value.ir.as_constant().is_none() {
                let local = self.new_local(argument.span, scope);
                steps.append(&mut scope.before);
                steps.push(Step::Local { local, value: value.ir, tested: false });
                value = Value::new(Ir::Operand(local_operand(local)), value.kind);
            }
            values.push(value);
        }
        values
    }

    /// An action's statements, with these values of its parameters.
    fn expanded(&mut self, index: usize, values: &[Value], scope: &mut Scope) -> Vec<Step> {
        let Action { declaration, namespace } = &self.actions[index];
        let (action, namespace) = (Rc::clone(declaration), namespace.clone());
        let names = action.parameters.iter().map(|(name, _)| name.text.clone());
        scope.calls.push(index);
        let outer = std::mem::replace(&mut scope.locals, names.zip(values.iter().cloned()).collect());
        let steps = self.within(namespace, |lowerer| lowerer.block(&action.body, scope));
        scope.locals = outer;
        scope.calls.pop();
        steps
    }

    /// The action of the chosen module. A number that no module has means the last one. What arguments take, `computed`, is left
    /// away for modules that do nothing, if there is at most one other. What a module's action runs stays with this module: no test there.
    fn chosen(
        &mut self,
        choice: &Choice,
        values: &[Value],
        mut computed: Vec<Step>,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some((last, others)) = choice.actions.split_last() else { return };
        let parameter = choice.parameter.as_ref().map_or("", |parameter| parameter.text.as_str());
        let module = scope.chosen.iter().find(|(known, _)| known == parameter).map(|(_, module)| *module);
        if let Some(index) = module.and_then(|module| choice.actions.get(module)) {
            steps.append(&mut computed);
            return steps.extend(self.expanded(*index, values, scope));
        }
        let register = choice.parameter.as_ref().and_then(|parameter| match self.known(&parameter.text) {
            Some(Symbol::Register(register)) => {
                self.used.insert(parameter.text.clone());
                Some(Operand::Register(register))
            }
            _ => None,
        });
        // Modules that do the same in the end need no test.
        let different = others.iter().rposition(|index| index != last).map_or(0, |place| place + 1);
        let does_something = |index: &&usize| !self.actions[**index].declaration.body.is_empty();
        if others[..different].iter().chain([last]).filter(does_something).count() > 1 {
            steps.append(&mut computed);
        }
        let mut branches = Vec::new();
        for (number, index) in others.iter().enumerate().take(different) {
            let parameter = Ir::Operand(register.unwrap_or(Operand::Constant(0)));
            let condition = compare(BinaryOperator::Equal, Type::Integer, parameter, Ir::constant(number as i64));
            let line = self.source_line(self.actions[*index].declaration.name.span);
            let body = self.expanded_in(choice, number, values, scope);
            let before = if body.is_empty() { Vec::new() } else { std::mem::take(&mut computed) };
            branches.push((condition, [before, body].concat(), line));
        }
        let mut otherwise = self.expanded_in(choice, others.len(), values, scope);
        if !otherwise.is_empty() {
            otherwise.splice(0..0, computed);
        }
        match branches.is_empty() {
            true => steps.extend(otherwise),
            false => steps.push(Step::If { branches, otherwise, hoisted: false }),
        }
    }

    /// The action that a module has, or shares with others: then what it runs is not this module's alone.
    fn expanded_in(&mut self, choice: &Choice, module: usize, values: &[Value], scope: &mut Scope) -> Vec<Step> {
        let index = choice.actions[module];
        let shared = choice.actions.iter().filter(|other| **other == index).count() > 1;
        let known = choice.parameter.as_ref().filter(|_| !shared);
        scope.chosen.extend(known.map(|parameter| (parameter.text.clone(), module)));
        let steps = self.expanded(index, values, scope);
        if known.is_some() {
            scope.chosen.pop();
        }
        steps
    }
}

/// What is said of a name that only its module may say.
pub(super) fn private(name: &str, module: &str) -> String {
    format!("`{name}` belongs to the module `{module}`: only what the interface names is known outside of it")
}
