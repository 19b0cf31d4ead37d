//! Windows as registers: their updates, and what is compared of them.

use crate::Unsupported;
use crate::parser::{field_name, instance};
use crate::pipeline::Builder;
use crate::program::*;
use weftwire_subscribe::compiler::{StateId, Variable};
use weftwire_subscribe::formats::{FieldId, MatchKind};
use weftwire_subscribe::rules::{Aggregate, Function};
use weftwire_subscribe::tables::Stage;
use weftwire_subscribe::values::Interval;

/// Most windows of a program: each has registers and tables of its own.
const MOST_WINDOWS: usize = 64;

/// Most values that one mean is compared with.
const MOST_MEANS: usize = 256;

/// Bits of the clock of both architectures; v1model's counts microseconds, Tofino's nanoseconds.
const CLOCK_BITS: u16 = 48;

/// Bits of each half of Tofino's registers.
const HALF: u16 = 32;

/// What a window computes, of which field, over how long.
#[derive(Clone, Copy)]
struct Window {
    id: StateId,
    function: Function,
    field: Option<FieldId>,
    length_ns: u64,
}

impl Builder<'_> {
    /// The windows that are compared or updated, in order.
    fn windows_used(&self) -> Vec<Window> {
        let mut used: Vec<StateId> = self.leaves.values().flat_map(|actions| actions.updates.iter().copied()).collect();
        used.extend(self.stages.iter().filter_map(|stage| match stage {
            Variable::State(state) => Some(*state),
            _ => None,
        }));
        used.sort_unstable();
        used.dedup();
        let window = |id: &StateId| match self.compiler.state(*id).aggregate {
            Aggregate::Counter(counter) => {
                let length_ns = self.compiler.formats().counters()[usize::from(counter.0)].window_ns;
                Window { id: *id, function: Function::Count, field: None, length_ns }
            }
            Aggregate::Window { function, field, window_ns } => {
                Window { id: *id, function, field, length_ns: window_ns }
            }
        };
        used.iter().map(window).collect()
    }

    /// What all slots share: registers and metadata.
    pub(super) fn windows(&self, program: &mut Program) -> Result<(), Unsupported> {
        let windows = self.windows_used();
        if windows.len() > MOST_WINDOWS {
            return Err(Unsupported::Windows(windows.len()));
        }
        for window in &windows {
            self.check(window)?;
            let id = window.id.0;
            if self.architecture == Architecture::Tna {
                program.metadata.push((format!("value_{id}"), HALF));
                program.metadata.push((format!("number_{id}"), HALF));
                let value = window.field.map(|_| Place::new(META, &format!("operand_{id}")));
                program.metadata.extend(value.iter().map(|value| (value.field.clone(), HALF)));
                program.windows.push(WindowRegister {
                    name: format!("window_{id}"),
                    function: window.function,
                    number: Place::new(META, &format!("number_{id}")),
                    value,
                });
                continue;
            }
            program.registers.push(Register { name: format!("window_{id}_number"), width: CLOCK_BITS });
            program.registers.push(Register { name: format!("window_{id}"), width: 64 });
            if window.function == Function::Avg {
                program.registers.push(Register { name: format!("window_{id}_count"), width: 64 });
                program.metadata.push((format!("sum_{id}"), 64));
                program.metadata.push((format!("count_{id}"), 64));
                program.metadata.push((format!("value_{id}"), self.mean_bits(&self.thresholds(window.id)?)));
            } else {
                program.metadata.push((format!("value_{id}"), 64));
            }
        }
        if !windows.is_empty() && self.architecture == Architecture::V1model {
            for (name, width) in [("number", CLOCK_BITS), ("known", CLOCK_BITS), ("fresh", 1)] {
                program.metadata.push((name.to_owned(), width));
            }
        }
        Ok(())
    }

    /// Whether the switch can keep a window.
    fn check(&self, window: &Window) -> Result<(), Unsupported> {
        let name = || self.compiler.variable_name(Variable::State(window.id));
        let width = window.field.map_or(0, |field| self.compiler.formats().field(field).width);
        match self.architecture {
            Architecture::V1model if width > 64 => Err(Unsupported::WideWindow(name())),
            Architecture::V1model
                if !window.length_ns.is_multiple_of(1000) || window.length_ns / 1000 >= 1 << (CLOCK_BITS - 1) =>
            {
                Err(Unsupported::Window(name()))
            }
            Architecture::V1model => Ok(()),
            Architecture::Tna if window.function == Function::Avg => Err(Unsupported::Mean(name())),
            Architecture::Tna if width > HALF => Err(Unsupported::WideValue(name())),
            Architecture::Tna if self.batch && self.targets.messages > 1 => Err(Unsupported::WindowOfBatch(name())),
            Architecture::Tna if !window.length_ns.is_power_of_two() || window.length_ns >> CLOCK_BITS != 0 => {
                let below = 1u64 << window.length_ns.max(1).ilog2().min(u32::from(CLOCK_BITS) - 1);
                Err(Unsupported::Length { window: name(), below, above: below.saturating_mul(2) })
            }
            Architecture::Tna => Ok(()),
        }
    }

    /// Which windows a message updates, and the updates.
    pub(super) fn updates(&self, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Result<(), Unsupported> {
        let tables = self.compiler.tables();
        let behind = tables.stages().filter(|(variable, _)| matches!(variable, Variable::State(_)));
        let mut states: Vec<u32> = behind.flat_map(|(_, stage)| stage.rows.keys().copied()).collect();
        states.extend(self.leaves.keys());
        states.sort_unstable();
        states.dedup();
        let of_states: Vec<(u32, Vec<StateId>)> = states
            .into_iter()
            .map(|state| (state, self.compiler.actions(tables.any_leaf(state)).updates))
            .filter(|(_, updates)| !updates.is_empty())
            .collect();
        for window in self.windows_used() {
            let action = self.update(&window, slot, program, nodes);
            let of_window = of_states.iter().filter(|(_, updates)| updates.contains(&window.id));
            let name = format!("update_{}_{slot}", window.id.0);
            let entries = of_window
                .map(|(state, _)| Entry::new(vec![Match::Exact((*state).into())], &action.name, Vec::new()))
                .collect();
            nodes.push(Node::Apply(name.clone()));
            program.ingress.tables.push(Table {
                name,
                keys: vec![self.state_key(slot)],
                actions: vec![action.name.clone(), "nothing".to_owned()],
                default: ("nothing".to_owned(), Vec::new()),
                entries,
            });
            program.ingress.actions.push(action);
            if window.function == Function::Avg {
                self.mean(window.id, slot, program, nodes)?;
            }
        }
        Ok(())
    }

    /// The value that a message has for a window, of so many bits.
    fn operand(&self, window: &Window, slot: usize, width: u16) -> Expression {
        let formats = self.compiler.formats();
        let Some(field) = window.field else { return Expression::Number(1, width) };
        let known = formats.field(field);
        let its = field_name(formats, known.header, known.offset, known.width);
        let field = Expression::Field(Place::new(&instance(formats, known.header, slot), &its));
        if known.width == width { field } else { field.bits(width) }
    }

    /// The action that takes a message into a window.
    fn update(&self, window: &Window, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Action {
        let id = window.id.0;
        let steps = match self.architecture {
            Architecture::V1model => self.by_registers(window, slot),
            Architecture::Tna => {
                // Registers take whole fields: so the window's number and the value are made ready before.
                let shift = window.length_ns.trailing_zeros() as u16;
                let now = Expression::Field(Place::new(STANDARD, "ingress_global_timestamp"));
                let number = Expression::Slice(shift, HALF.min(CLOCK_BITS - shift), Box::new(now));
                let number = if CLOCK_BITS - shift < HALF { number.bits(HALF) } else { number };
                let mut steps = vec![Step::Set(Place::new(META, &format!("number_{id}")), number)];
                if window.field.is_some() {
                    let value = self.operand(window, slot, HALF);
                    steps.push(Step::Set(Place::new(META, &format!("operand_{id}")), value));
                }
                let prepare = format!("prepare_{id}_{slot}");
                nodes.insert(0, Node::Do(prepare.clone()));
                let purpose = "The number of the window that the message falls into, and its value.";
                program.ingress.actions.push(Action { name: prepare, purpose, parameters: Vec::new(), steps });
                vec![Step::Update(Place::new(META, &format!("value_{id}")), format!("window_{id}"))]
            }
        };
        Action {
            name: format!("take_{id}_{slot}"),
            purpose: "Takes the message into a window.",
            parameters: Vec::new(),
            steps,
        }
    }

    /// With registers that are read and written apart: the window's number plus 1, and its value, or sum and count.
    fn by_registers(&self, window: &Window, slot: usize) -> Vec<Step> {
        let id = window.id.0;
        let meta = |name: &str| Place::new(META, name);
        let field = || self.operand(window, slot, 64);
        let choice = |test: Expression, yes, no| Expression::Choice(Box::new(test), Box::new(yes), Box::new(no));
        let fresh = || Expression::meta("fresh").of("==", Expression::Number(1, 1));
        let one = |value| Expression::Number(value, 1);
        let number = window_number(window.length_ns / 1000).of("+", Expression::Number(1, CLOCK_BITS));
        let same = Expression::meta("known").of("==", Expression::meta("number"));
        let mut steps = vec![
            Step::Set(meta("number"), number.bits(CLOCK_BITS)),
            Step::Read(meta("known"), format!("window_{id}_number")),
            Step::Set(meta("fresh"), choice(same, one(0), one(1))),
            Step::Write(format!("window_{id}_number"), Expression::meta("number")),
        ];
        let mut keep = |field: String, register: String, next: &dyn Fn(Expression) -> Expression| {
            steps.push(Step::Read(meta(&field), register.clone()));
            steps.push(Step::Set(meta(&field), next(Expression::meta(&field))));
            steps.push(Step::Write(register, Expression::meta(&field)));
        };
        let most = || Expression::Number(u64::MAX.into(), 64);
        let sum = |known: Expression| {
            let full = known.clone().of(">", most().of("-", field()).bits(64));
            choice(fresh(), field(), choice(full, most(), known.of("+", field()).bits(64)))
        };
        let count = |known: Expression| {
            choice(fresh(), Expression::Number(1, 64), known.of("+", Expression::Number(1, 64)).bits(64))
        };
        let (value, register) = (format!("value_{id}"), format!("window_{id}"));
        match window.function {
            Function::Count => keep(value, register, &count),
            Function::Sum => keep(value, register, &sum),
            Function::Min => {
                keep(value, register, &|known| choice(fresh().of("||", field().of("<", known.clone())), field(), known))
            }
            Function::Max => {
                keep(value, register, &|known| choice(fresh().of("||", field().of(">", known.clone())), field(), known))
            }
            Function::Avg => {
                keep(format!("sum_{id}"), register.clone(), &sum);
                keep(format!("count_{id}"), format!("{register}_count"), &count);
            }
        }
        steps
    }

    /// The values that a mean is compared with, in order: each the least of those for which a comparison holds or fails.
    fn thresholds(&self, id: StateId) -> Result<Vec<u128>, Unsupported> {
        let mut found = Vec::new();
        for (_, stage) in self.compiler.tables().stages().filter(|(variable, _)| *variable == Variable::State(id)) {
            for entry in stage.rows.values().flat_map(|rows| rows.entries()) {
                found.push(entry.values.first);
                found.push(entry.values.last.saturating_add(1));
            }
        }
        found.retain(|value| (1..=u64::MAX.into()).contains(value));
        found.sort_unstable();
        found.dedup();
        if found.len() > MOST_MEANS {
            return Err(Unsupported::Means(self.compiler.variable_name(Variable::State(id)), found.len()));
        }
        Ok(found)
    }

    fn mean_bits(&self, thresholds: &[u128]) -> u16 {
        (usize::BITS - thresholds.len().leading_zeros()).max(1) as u16
    }

    /// How many of the values that a mean is compared with it reaches: the mean is at least `c` if the sum is at least
    /// `c` times the count. So nothing is divided.
    fn mean(&self, id: StateId, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Result<(), Unsupported> {
        let thresholds = self.thresholds(id)?;
        let width = self.mean_bits(&thresholds);
        let meta = |name: &str| Expression::meta(format!("{name}_{}", id.0));
        let value = || Place::new(META, &format!("value_{}", id.0));
        let mut steps = vec![Step::Set(value(), Expression::Number(0, width))];
        for index in 0..thresholds.len() {
            let least = Expression::Parameter(index).bits(128).of("*", meta("count").bits(128)).bits(128);
            let reached = meta("sum").bits(128).of(">=", least);
            let number = |value| Box::new(Expression::Number(value, width));
            let more = Expression::Choice(Box::new(reached), number(1), number(0));
            steps.push(Step::Set(value(), meta("value").of("+", more).bits(width)));
        }
        let name = format!("mean_{}_{slot}", id.0);
        let action = format!("compare_{name}");
        nodes.push(Node::Apply(name.clone()));
        program.ingress.actions.push(Action {
            name: action.clone(),
            purpose: "How many of the values that the mean is compared with it reaches.",
            parameters: (0..thresholds.len()).map(|index| (format!("value_{index}"), 64)).collect(),
            steps,
        });
        program.ingress.tables.push(Table {
            name,
            keys: Vec::new(),
            actions: vec![action.clone()],
            default: (action, thresholds),
            entries: Vec::new(),
        });
        Ok(())
    }

    /// The entries of a stage of state as the program has its values: means as the number of thresholds that they reach,
    /// values of Tofino in 32 bits.
    pub(super) fn window_entries(
        &self,
        id: StateId,
        stage: &Stage,
        key: &mut Key,
        entries: &mut [(u32, Interval, u32)],
    ) -> Result<(), Unsupported> {
        let window = self.windows_used().into_iter().find(|window| window.id == id);
        if window.is_some_and(|window| window.function == Function::Avg) {
            let thresholds = self.thresholds(id)?;
            key.width = self.mean_bits(&thresholds);
            key.kind = self.kind(MatchKind::Range, key.width);
            let code = |value: u128| thresholds.partition_point(|least| *least <= value) as u128;
            for (_, values, _) in entries {
                *values = Interval { first: code(values.first), last: code(values.last) };
            }
        } else if self.architecture == Architecture::Tna {
            key.width = HALF;
            key.kind = self.kind(stage.kind(), HALF);
            // Sums end at the greatest value: it stands for all from there on, so nothing may tell those apart.
            let most = Interval::of_width(HALF).last;
            for (_, values, _) in entries {
                if values.first > most || (values.last >= most && values.last < u64::MAX.into()) {
                    return Err(Unsupported::Large(self.compiler.variable_name(Variable::State(id))));
                }
                values.last = values.last.min(most);
            }
        }
        Ok(())
    }
}

/// The number of the window of so many microseconds that the clock is in: the quotient, by a multiplication and a shift
/// that are exact for all values of the clock (Granlund, Montgomery: "Division by Invariant Integers using
/// Multiplication", PLDI 1994). Nothing is divided, for P4 has no division of values that are not constant.
fn window_number(length_us: u64) -> Expression {
    let now = Expression::Field(Place::new(STANDARD, "ingress_global_timestamp"));
    let length = u128::from(length_us.max(1));
    let shift = u32::from(CLOCK_BITS) + u128::BITS - (length - 1).leading_zeros();
    let factor = (1u128 << shift).div_ceil(length);
    let product = now.bits(128).of("*", Expression::Number(factor, 128)).bits(128);
    product.of(">>", Expression::Number(shift.into(), 8)).bits(CLOCK_BITS)
}
