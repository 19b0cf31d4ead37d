//! Rules to diagram and tables, all at once or one by one.

use crate::budget::{Budget, CompileError, MOST_TESTS};
use crate::clauses::{Clause, Term, aggregates, clauses, header_of, with_header};
use crate::diagram::{Diagram, Effect, NodeId, SetId};
use crate::formats::{FieldId, HeaderId, MatchKind, MessageFormats};
use crate::order;
use crate::rules::{Action, Aggregate, Call, Rule};
use crate::tables::{Delta, Tables};
use crate::trie::{Branch, Tests};
use crate::values::Interval;
use crate::variable::Levels;
pub use crate::variable::{StateId, StateVariable, Variable};
use crate::watch::Watch;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::Port;

/// Number of a rule within its [`Compiler`], given in order of arrival and never again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct RuleId(pub u32);

/// Number of an application's action with its arguments, see [`Compiler::call`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct CallId(pub u32);

/// What a message gets: the effects of all rules that it matches, each once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Actions {
    /// The ports it goes to.
    pub ports: Vec<Port>,
    /// The application's actions, in the order in which rules first named them.
    pub calls: Vec<CallId>,
    /// The pieces of state that it updates.
    pub updates: Vec<StateId>,
}

const UPDATE: Effect = 1 << 32;
const CALL: Effect = 2 << 32;

impl Actions {
    fn of_effects(effects: &[Effect]) -> Actions {
        let mut actions = Actions::default();
        for effect in effects {
            match effect & !0xffff_ffff {
                UPDATE => actions.updates.push(StateId(*effect as u32)),
                CALL => actions.calls.push(CallId(*effect as u32)),
                _ => actions.ports.push(Port(*effect as u16)),
            }
        }
        actions
    }
}

/// How rules are compiled.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The order of fields; those that are missing follow in the formats' order. `None` takes the formats' order.
    pub order: Option<Vec<FieldId>>,
    /// Take tests of state to hold and update none: what a switch does that is not the last before a subscriber.
    pub without_state: bool,
    /// What it may cost to compile them all, and then each change.
    pub budget: Budget,
    /// Hears how far the compilation of them all is.
    pub watch: Watch,
}

/// The clauses of one rule, as they went into the trie.
#[derive(Clone, Debug)]
struct Compiled {
    clauses: Vec<(Tests, SetId)>,
    states: Vec<StateId>,
}

/// A set of rules with its diagram and tables, kept right as rules come and go.
///
/// - inputs: [`Compiler::new`] with all rules that are known at the start, [`Compiler::add`], [`Compiler::remove`];
/// - results: [`Compiler::diagram`] with [`Compiler::root`], and [`Compiler::tables`].
#[derive(Clone, Debug)]
pub struct Compiler {
    formats: MessageFormats,
    without_state: bool,
    /// The fields in order, and the place of each.
    order: Vec<FieldId>,
    places: Vec<u32>,
    diagram: Diagram,
    trie: Branch,
    root: NodeId,
    rules: BTreeMap<RuleId, Compiled>,
    next_rule: u32,
    calls: Vec<Call>,
    known_calls: BTreeMap<Call, CallId>,
    states: Vec<StateVariable>,
    /// What tells pieces of state apart: of a counter its name alone.
    known_states: BTreeMap<(Aggregate, Vec<Clause>), StateId>,
    free_states: BTreeSet<StateId>,
    /// Those that came since the last delta.
    new_states: Vec<StateId>,
    tables: Tables,
    /// The diagram's size after the last collection.
    kept: usize,
    budget: Budget,
}

impl Compiler {
    /// Compiles a set of rules. They are numbered from 0.
    ///
    /// # Errors
    /// [`CompileError`], with the place in `rules` of the one that is too large; of all together, the one that adds most.
    pub fn new(formats: MessageFormats, options: &Options, rules: &[Rule]) -> Result<Compiler, (usize, CompileError)> {
        let formats_again = formats.clone();
        if options.watch.is_on() {
            options.watch.expect(order::expected_steps(&formats, options, rules));
        }
        Compiler::try_new(formats, options, rules).map_err(|(rule, error)| {
            (rule.unwrap_or_else(|| Compiler::costliest(formats_again, options, rules)), error)
        })
    }

    /// The same, without finding out which of all rules together adds most.
    pub(crate) fn try_new(
        formats: MessageFormats,
        options: &Options,
        rules: &[Rule],
    ) -> Result<Compiler, (Option<usize>, CompileError)> {
        let mut compiler = Compiler::empty(formats, options);
        for (index, rule) in rules.iter().enumerate() {
            let compiled = compiler.compile(rule).map_err(|error| (Some(index), error))?;
            let levels = Levels { formats: &compiler.formats, order: &compiler.order, states: &compiler.states };
            for (tests, set) in &compiled.clauses {
                compiler.trie.insert(tests, *set, &|level| levels.domain(level));
            }
            compiler.rules.insert(RuleId(index as u32), compiled);
        }
        compiler.next_rule = rules.len() as u32;
        compiler.diagram.begin(options.budget);
        compiler.diagram.watched(options.watch.clone());
        compiler.root = compiler.trie.build(&mut compiler.diagram);
        compiler.diagram.watched(Watch::default());
        if let Some(excess) = compiler.diagram.excess() {
            return Err((None, CompileError::OverBudget(excess, options.budget)));
        }
        compiler.kept = compiler.diagram.size();
        compiler.renew_tables();
        Ok(compiler)
    }

    /// Of rules that are too much together: the one that takes the most steps when they are added one by one, up to where
    /// they are too much.
    pub(crate) fn costliest(formats: MessageFormats, options: &Options, rules: &[Rule]) -> usize {
        let mut compiler = Compiler::empty(formats, options);
        compiler.diagram.begin(options.budget);
        options.watch.expect(options.budget.steps);
        compiler.diagram.watched(options.watch.clone());
        let mut most = (0, 0);
        for (index, rule) in rules.iter().enumerate() {
            let Ok(compiled) = compiler.compile(rule) else { break };
            let before = compiler.diagram.steps();
            if compiler.change(&compiled, true).is_err() {
                return index;
            }
            most = most.max((compiler.diagram.steps() - before, index));
        }
        most.1
    }

    /// Rules that are still to come, with these fields first and the others in the order of the formats.
    pub fn without_rules(formats: &MessageFormats, order: &[FieldId]) -> Compiler {
        let options = Options { order: Some(order.to_vec()), ..Options::default() };
        let mut compiler = Compiler::empty(formats.clone(), &options);
        compiler.renew_tables();
        compiler
    }

    fn empty(formats: MessageFormats, options: &Options) -> Compiler {
        let mut order: Vec<FieldId> = Vec::with_capacity(formats.fields().len());
        let mut known = vec![false; formats.fields().len()];
        let all = (0..formats.fields().len()).map(|index| FieldId(index as u16));
        for field in options.order.iter().flatten().copied().chain(all) {
            if !std::mem::replace(&mut known[usize::from(field.0)], true) {
                order.push(field);
            }
        }
        let mut places = vec![0; order.len()];
        for (place, field) in order.iter().enumerate() {
            places[usize::from(field.0)] = place as u32;
        }
        let headers = 0..formats.headers().len() as u16;
        // The levels of headers come first.
        let excluded = headers.clone().map(|level| {
            let others = level + 1..headers.end;
            let excluded = others.filter(|other| formats.exclude(HeaderId(level), HeaderId(*other)));
            excluded.map(u32::from).collect()
        });
        let excluded = excluded.collect();
        let prefixed = order.iter().map(|field| match formats.field(*field) {
            field if field.kind == Some(MatchKind::Lpm) => field.width,
            _ => 0,
        });
        let prefixed = headers.map(|_| 0).chain(prefixed).collect();
        Compiler {
            without_state: options.without_state,
            order,
            places,
            diagram: Diagram::new(excluded, prefixed),
            trie: Branch::default(),
            root: crate::diagram::NOTHING,
            rules: BTreeMap::new(),
            next_rule: 0,
            calls: Vec::new(),
            known_calls: BTreeMap::new(),
            states: Vec::new(),
            known_states: BTreeMap::new(),
            free_states: BTreeSet::new(),
            new_states: Vec::new(),
            tables: Tables::default(),
            kept: 0,
            budget: options.budget,
            formats,
        }
    }

    /// Adds a rule. Returns its number, and what this changes in the tables.
    ///
    /// # Errors
    /// [`CompileError`]; nothing is changed then.
    pub fn add(&mut self, rule: &Rule) -> Result<(RuleId, Delta), CompileError> {
        // Before the rule's sets of effects are there, which nothing holds yet.
        self.make_room();
        let compiled = self.compile(rule)?;
        self.diagram.begin(self.budget);
        if let Err(error) = self.change(&compiled, true) {
            let gone = self.release(&compiled);
            self.new_states.retain(|state| !gone.contains(state));
            return Err(error);
        }
        let id = RuleId(self.next_rule);
        self.next_rule += 1;
        self.rules.insert(id, compiled);
        Ok((id, self.renew_tables()))
    }

    /// Removes a rule. Returns what this changes in the tables, or `None` if there is no such rule.
    ///
    /// # Errors
    /// [`CompileError`], where the rule kept others apart that are too much without it; nothing is changed then.
    pub fn remove(&mut self, id: RuleId) -> Result<Option<Delta>, CompileError> {
        let Some(compiled) = self.rules.remove(&id) else { return Ok(None) };
        self.make_room();
        // Rules that are at their limit can be removed all the same.
        let held = self.diagram.size() + self.diagram.remembered();
        self.diagram.begin(Budget { size: self.budget.size.saturating_add(held), ..self.budget });
        if let Err(error) = self.change(&compiled, false) {
            self.rules.insert(id, compiled);
            return Err(error);
        }
        let mut delta = self.renew_tables();
        delta.gone_states = self.release(&compiled);
        Ok(Some(delta))
    }

    /// Takes a rule's uses of state away. Returns the pieces that no rule uses any more.
    fn release(&mut self, compiled: &Compiled) -> Vec<StateId> {
        let states = compiled.states.iter().copied();
        states.filter(|state| self.release_state(*state)).collect()
    }

    /// Edges and effects looked at by the last compilation or change.
    pub fn steps(&self) -> u64 {
        self.diagram.steps()
    }

    /// What each further change may cost.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// How many rules there are.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The formats that the rules are about.
    pub fn formats(&self) -> &MessageFormats {
        &self.formats
    }

    /// The fields in the order in which the diagram asks for them.
    pub fn order(&self) -> &[FieldId] {
        &self.order
    }

    /// The diagram's nodes.
    pub fn diagram(&self) -> &Diagram {
        &self.diagram
    }

    /// Where the diagram starts.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The variable of a level of the diagram.
    pub fn variable(&self, level: u32) -> Variable {
        self.levels().variable(level)
    }

    /// All values of the variable of a level.
    pub fn domain(&self, level: u32) -> Interval {
        self.levels().domain(level)
    }

    /// The width in bits of the values of a variable.
    pub fn width(&self, variable: Variable) -> u16 {
        self.levels().width(variable)
    }

    /// A variable's name.
    pub fn variable_name(&self, variable: Variable) -> String {
        match variable {
            Variable::Present(header) => format!("{} present", self.formats.header(header).name),
            Variable::Field(field) => self.formats.full_name(field),
            Variable::State(state) => self.state_name(state),
        }
    }

    /// All pieces of state; those that no rule uses any more are among them.
    pub fn states(&self) -> &[StateVariable] {
        &self.states
    }

    /// A piece of state.
    pub fn state(&self, id: StateId) -> &StateVariable {
        &self.states[id.0 as usize]
    }

    /// An action of an application.
    pub fn call(&self, id: CallId) -> &Call {
        &self.calls[id.0 as usize]
    }

    /// The actions of applications that messages may get now; one may come several times.
    pub fn calls(&self) -> impl Iterator<Item = CallId> {
        self.tables.leaves().values().flat_map(|set| self.actions(*set).calls)
    }

    /// What the effects of a leaf mean.
    pub fn actions(&self, set: SetId) -> Actions {
        Actions::of_effects(self.diagram.effects(set))
    }

    fn state_name(&self, id: StateId) -> String {
        match self.state(id).aggregate {
            Aggregate::Counter(counter) => self.formats.counters()[usize::from(counter.0)].name.clone(),
            Aggregate::Window { function, field, window_ns } => {
                let field = field.map_or(String::new(), |field| self.formats.full_name(field));
                format!("{}({field}) over {window_ns}ns #{}", function.name(), id.0)
            }
        }
    }

    fn levels(&self) -> Levels<'_> {
        Levels { formats: &self.formats, order: &self.order, states: &self.states }
    }

    /// Adds or removes a rule's clauses. If that is over the budget, nothing is changed in the end.
    fn change(&mut self, compiled: &Compiled, add: bool) -> Result<(), CompileError> {
        let levels = Levels { formats: &self.formats, order: &self.order, states: &self.states };
        let (trie, diagram) = (&mut self.trie, &mut self.diagram);
        let mut change = |diagram: &mut Diagram, at: usize, add: bool| {
            let (tests, set) = &compiled.clauses[at];
            trie.change(tests, *set, add, diagram, &|level| levels.domain(level));
        };
        let mut result = Ok(());
        for at in 0..compiled.clauses.len() {
            change(diagram, at, add);
            if let Some(excess) = diagram.excess() {
                // All that was changed up to here is made anew from what it was made from before.
                diagram.begin(Budget::UNLIMITED);
                (0..=at).rev().for_each(|at| change(diagram, at, !add));
                result = Err(CompileError::OverBudget(excess, self.budget));
                break;
            }
        }
        self.root = self.trie.diagram();
        result
    }

    fn renew_tables(&mut self) -> Delta {
        let levels = Levels { formats: &self.formats, order: &self.order, states: &self.states };
        let mut delta = self.tables.renew(&self.diagram, self.root, &levels);
        delta.new_states = std::mem::take(&mut self.new_states);
        // Seldom enough to cost little on average, often enough to take a few times the memory at most.
        let most = 4 * self.kept + 2_000_000;
        if self.diagram.size() > most || self.diagram.remembered() > most {
            self.collect();
        }
        delta
    }

    /// Forgets what is not needed any more if it takes half of the room that the budget leaves.
    fn make_room(&mut self) {
        let room = self.budget.size.saturating_sub(self.kept);
        if self.diagram.size() + self.diagram.remembered() > self.kept + room / 2 {
            self.collect();
        }
    }

    /// Forgets what the changes up to now have left over, which happens now and then by itself.
    pub fn collect(&mut self) {
        let mut roots = vec![self.root];
        self.trie.roots(&mut roots);
        self.diagram.collect(roots);
        self.kept = self.diagram.size();
    }

    /// A rule's clauses, with the effects of each.
    fn compile(&mut self, rule: &Rule) -> Result<Compiled, CompileError> {
        let mut effects: Vec<Effect> = Vec::new();
        let filter = clauses(&rule.filter, !self.without_state, &self.formats)?;
        if filter.iter().any(|clause| clause.len() > MOST_TESTS) {
            return Err(CompileError::TooManyTests);
        }
        let aggregates = if self.without_state { Vec::new() } else { aggregates(rule) };
        let rest = if aggregates.is_empty() { Vec::new() } else { clauses(&rule.filter, false, &self.formats)? };
        for action in &rule.actions {
            match action {
                Action::Forward(ports) => effects.extend(ports.iter().map(|port| Effect::from(port.0))),
                Action::Drop => {}
                Action::Call(call) => effects.push(CALL | Effect::from(self.intern_call(call).0)),
            }
        }
        effects.sort_unstable();
        effects.dedup();
        let set = self.diagram.set(&effects);
        let mut states = Vec::new();
        let mut updates = Vec::new();
        for aggregate in aggregates {
            let state = self.intern_state(aggregate, &rest);
            states.push(state);
            let update = self.diagram.set(&[UPDATE | Effect::from(state.0)]);
            let header = header_of(aggregate, &self.formats);
            let clause = |clause: &Clause| match header {
                Some(header) => with_header(clause, header, &self.formats),
                None => Some(clause.clone()),
            };
            updates.extend(rest.iter().filter_map(clause).map(|clause| (clause, update)));
        }
        let levels = Levels { formats: &self.formats, order: &self.order, states: &self.states };
        let place = |term| match term {
            Term::Present(header) => levels.level(&self.places, Variable::Present(header)),
            Term::Field(field) => levels.level(&self.places, Variable::Field(field)),
            Term::State(aggregate) => {
                let of = |id: &&StateId| self.states[id.0 as usize].aggregate == aggregate;
                let id = states.iter().find(of).copied().unwrap_or(StateId(0));
                levels.level(&self.places, Variable::State(id))
            }
        };
        let in_order = |(clause, set): (Clause, SetId)| {
            let mut tests: Tests = clause.into_iter().map(|(term, values)| (place(term), values)).collect();
            tests.sort_unstable();
            (tests, set)
        };
        let all = filter.into_iter().map(|clause| (clause, set)).filter(|_| set != SetId::EMPTY).chain(updates);
        let clauses = all.map(in_order).collect();
        Ok(Compiled { clauses, states })
    }

    fn intern_call(&mut self, call: &Call) -> CallId {
        if let Some(known) = self.known_calls.get(call) {
            return *known;
        }
        let id = CallId(self.calls.len() as u32);
        self.calls.push(call.clone());
        self.known_calls.insert(call.clone(), id);
        id
    }

    fn intern_state(&mut self, aggregate: Aggregate, rest: &[Clause]) -> StateId {
        let identity = match aggregate {
            Aggregate::Counter(_) => Vec::new(),
            Aggregate::Window { .. } => rest.to_vec(),
        };
        let key = (aggregate, identity);
        let id = match self.known_states.get(&key) {
            Some(known) => *known,
            None => {
                let id = self.free_states.pop_first().unwrap_or(StateId(self.states.len() as u32));
                let state = StateVariable { aggregate, updated_by: key.1.clone(), rules: 0 };
                match self.states.get_mut(id.0 as usize) {
                    Some(place) => *place = state,
                    None => self.states.push(state),
                }
                self.known_states.insert(key, id);
                self.new_states.push(id);
                id
            }
        };
        self.states[id.0 as usize].rules += 1;
        id
    }

    /// One rule fewer uses a piece of state; whether it was the last.
    fn release_state(&mut self, id: StateId) -> bool {
        let state = &mut self.states[id.0 as usize];
        state.rules -= 1;
        if state.rules > 0 {
            return false;
        }
        let key = (state.aggregate, std::mem::take(&mut state.updated_by));
        self.known_states.remove(&key);
        self.free_states.insert(id);
        true
    }
}
