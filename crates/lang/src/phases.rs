//! The phases of a module: what a register that holds one of some constants goes through, as the source says. The states of a
//! machine are in its image; phases are those that a module keeps in a register, such as BBR's or those of a recovery from losses.

use crate::ast::{
    ActionDeclaration, BinaryOperator, Expression, ExpressionKind, Item, ModuleDeclaration, Name, Program, Statement,
    StatementKind,
};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_text::SourceMap;
use weftwire_text::lexer::NumberValue;

/// Actions that call actions are followed so deep.
const MOST_CALLS: usize = 16;

/// What a register of a module may hold, and how it comes to hold something else.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Phases {
    /// The names of the constants, in the order of their values.
    pub names: Vec<String>,
    /// What leads from one to another.
    pub changes: Vec<PhaseChange>,
}

/// One way from one phase to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PhaseChange {
    /// Number of the phase before.
    pub from: usize,
    /// Number of the phase behind it.
    pub to: usize,
    /// The interface's action by which the module is told what leads there.
    pub event: String,
    /// What is tested on the way, as the source has it, without tests of the register itself.
    pub conditions: Vec<String>,
}

/// The phases of `register` in the module `module`; `None` if there is no such module, or it never sets the register to another of
/// its constants.
pub(crate) fn find(program: &Program, sources: &SourceMap, module: &str, register: &str) -> Option<Phases> {
    let module = program.items.iter().find_map(|item| match item {
        Item::Module(found) if found.name.text == module => Some(found),
        _ => None,
    })?;
    let constants = constants(program, module);
    let mut walk =
        Walk { sources, register, constants: &constants, actions: BTreeMap::new(), told: told(program, module) };
    walk.actions.extend(program.items.iter().chain(&module.items).filter_map(|item| match item {
        Item::Action(action) => Some((action.name.text.as_str(), action)),
        _ => None,
    }));
    // The first time tells which constants there are, the second time what is possible between them.
    let known = walk.all(&BTreeSet::new()).mentioned;
    let found = walk.all(&known).changes;
    let names: Vec<&str> = constants.iter().map(|(_, name)| *name).filter(|name| known.contains(name)).collect();
    let number = |name: &str| names.iter().position(|other| *other == name);
    let changes = found.into_iter().filter_map(|(from, to, event, conditions)| {
        Some(PhaseChange { from: number(from)?, to: number(to)?, event: event.to_owned(), conditions })
    });
    let changes: Vec<PhaseChange> = changes.collect();
    (!changes.is_empty()).then(|| Phases { names: names.into_iter().map(str::to_owned).collect(), changes })
}

/// Constants that the module can use, by value.
fn constants<'a>(program: &'a Program, module: &'a ModuleDeclaration) -> Vec<(u64, &'a str)> {
    let constants = program.items.iter().chain(&module.items).filter_map(|item| match item {
        Item::Constant {
            name,
            value: Expression { kind: ExpressionKind::Number { value: NumberValue::Whole(value), unit }, .. },
        } if unit.is_empty() => Some((*value, name.text.as_str())),
        _ => None,
    });
    let mut constants: Vec<(u64, &str)> = constants.collect();
    constants.sort_unstable();
    constants
}

/// Names of the interface's actions that the module has itself.
fn told<'a>(program: &'a Program, module: &'a ModuleDeclaration) -> Vec<&'a str> {
    let interfaces = program.items.iter().filter_map(|item| match item {
        Item::Interface(interface) if interface.name.text == module.interface.text => Some(&interface.actions),
        _ => None,
    });
    let own =
        |name: &str| module.items.iter().any(|item| matches!(item, Item::Action(action) if action.name.text == name));
    interfaces.flatten().map(|action| action.name.text.as_str()).filter(|name| own(name)).collect()
}

struct Walk<'a> {
    sources: &'a SourceMap,
    register: &'a str,
    constants: &'a [(u64, &'a str)],
    actions: BTreeMap<&'a str, &'a ActionDeclaration>,
    told: Vec<&'a str>,
}

/// What was found on the way.
#[derive(Default)]
struct Found<'a> {
    mentioned: BTreeSet<&'a str>,
    changes: BTreeSet<(&'a str, &'a str, &'a str, Vec<String>)>,
}

/// How a statement is reached.
#[derive(Clone)]
struct Way<'a> {
    event: &'a str,
    calls: usize,
    conditions: Vec<String>,
    /// Parameters that stand for constants.
    given: BTreeMap<&'a str, &'a str>,
}

/// Names of the constants that the register may hold.
type Held<'a> = BTreeSet<&'a str>;

impl<'a> Walk<'a> {
    /// All that the module may be told, in whatever phase it is.
    fn all(&self, known: &Held<'a>) -> Found<'a> {
        let mut found = Found::default();
        for event in &self.told {
            let way = Way { event, calls: 0, conditions: Vec::new(), given: BTreeMap::new() };
            self.call(event, &way, known.clone(), &mut found);
        }
        found
    }

    fn call(&self, action: &str, way: &Way<'a>, held: Held<'a>, found: &mut Found<'a>) -> Held<'a> {
        match self.actions.get(action) {
            Some(action) if way.calls < MOST_CALLS => self.statements(&action.body, way, held, found),
            _ => held,
        }
    }

    /// Follows statements; what the register may hold behind them.
    fn statements(&self, body: &'a [Statement], way: &Way<'a>, mut held: Held<'a>, found: &mut Found<'a>) -> Held<'a> {
        for statement in body {
            held = self.statement(&statement.kind, way, held, found);
        }
        held
    }

    fn statement(&self, kind: &'a StatementKind, way: &Way<'a>, held: Held<'a>, found: &mut Found<'a>) -> Held<'a> {
        match kind {
            StatementKind::Assign { target, value, .. } if is_name(target, self.register) => {
                let Some(to) = self.constant(value, way) else { return held };
                found.mentioned.insert(to);
                for from in held.into_iter().filter(|from| *from != to) {
                    found.changes.insert((from, to, way.event, way.conditions.clone()));
                }
                BTreeSet::from([to])
            }
            StatementKind::If { branches, otherwise } => {
                let (mut rest, mut behind) = (held, BTreeSet::new());
                for branch in branches {
                    let mut taken = Test { held: rest.clone(), conditions: way.conditions.clone(), whole: true };
                    self.test(&branch.condition, way, &mut taken, found);
                    if taken.whole {
                        rest = rest.difference(&taken.held).copied().collect();
                    }
                    let way = Way { conditions: taken.conditions, ..way.clone() };
                    behind.append(&mut self.statements(&branch.body, &way, taken.held, found));
                }
                behind.append(&mut self.statements(otherwise, way, rest, found));
                behind
            }
            StatementKind::Repeat(repeat) => {
                let once = self.statements(&repeat.body, way, held.clone(), found);
                held.union(&once).copied().collect()
            }
            StatementKind::Call { action, arguments } => {
                let parameters = self.actions.get(action.text.as_str()).map_or(&[][..], |it| &it.parameters);
                let given = parameters.iter().zip(arguments);
                let given =
                    given.filter_map(|((name, _), value)| Some((name.text.as_str(), self.constant(value, way)?)));
                let way = Way { calls: way.calls + 1, given: given.collect(), ..way.clone() };
                self.call(&action.text, &way, held, found)
            }
            _ => held,
        }
    }

    /// What is known where a condition holds.
    fn test(&self, condition: &'a Expression, way: &Way<'a>, test: &mut Test<'a>, found: &mut Found<'a>) {
        if let ExpressionKind::Binary(BinaryOperator::And, left, right) = &condition.kind {
            self.test(left, way, test, found);
            self.test(right, way, test, found);
        } else if let Some(held) = self.told_of_register(condition, way, &test.held, found) {
            test.held = held;
        } else {
            test.whole = false;
            let text = self.sources.text(condition.span).split_whitespace().collect::<Vec<_>>().join(" ");
            if !test.conditions.contains(&text) {
                test.conditions.push(text);
            }
        }
    }

    /// Which of `held` a condition leaves, if it tests nothing but the register.
    fn told_of_register(
        &self,
        condition: &'a Expression,
        way: &Way<'a>,
        held: &Held<'a>,
        found: &mut Found<'a>,
    ) -> Option<Held<'a>> {
        match &condition.kind {
            ExpressionKind::Binary(BinaryOperator::Or, left, right) => {
                let mut either = self.told_of_register(left, way, held, found)?;
                either.append(&mut self.told_of_register(right, way, held, found)?);
                Some(either)
            }
            ExpressionKind::Binary(operator @ (BinaryOperator::Equal | BinaryOperator::NotEqual), left, right) if matches!(&left.kind, ExpressionKind::Path(path) if is_name(path, self.register)) =>
            {
                let name = self.constant(right, way)?;
                found.mentioned.insert(name);
                let wanted = |held: &&&str| (**held == name) == (*operator == BinaryOperator::Equal);
                Some(held.iter().filter(wanted).copied().collect())
            }
            _ => None,
        }
    }

    /// The constant that an expression names, maybe by a parameter.
    fn constant(&self, value: &'a Expression, way: &Way<'a>) -> Option<&'a str> {
        let ExpressionKind::Path(path) = &value.kind else { return None };
        let [name] = &path[..] else { return None };
        match way.given.get(name.text.as_str()) {
            Some(given) => Some(given),
            None => self.constants.iter().map(|(_, known)| *known).find(|known| *known == name.text),
        }
    }
}

/// Where a branch is taken.
struct Test<'a> {
    held: Held<'a>,
    conditions: Vec<String>,
    /// Nothing but the register was tested.
    whole: bool,
}

fn is_name(path: &[Name], name: &str) -> bool {
    matches!(path, [only] if only.text == name)
}
