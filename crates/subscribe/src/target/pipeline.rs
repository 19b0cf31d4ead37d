//! From compiled tables to a program's tables and what is done in which order.

use super::batch;
use super::parser::{Parsing, field_name, instance};
use super::program::*;
use super::{MOST_MESSAGES, Targets, Unsupported};
use crate::compiler::{Actions, Compiler, StateId, Variable};
use crate::formats::{ArgumentKind, MatchKind};
use crate::rules::{Aggregate, Argument, Call, Function};
use crate::tables::Stage;
use crate::tables::cost::prefix_list;
use crate::values::Interval;
use std::collections::BTreeMap;

/// Ports that a switch has, and one more for packets that go nowhere.
const PORTS: u16 = 511;

/// Bits of a word of a set of ports.
const WORD: usize = 128;

impl Program {
    /// The program of a compiler's tables.
    ///
    /// # Errors
    /// [`Unsupported`].
    pub fn new(compiler: &Compiler, targets: &Targets) -> Result<Program, Unsupported> {
        if !(1..=MOST_MESSAGES).contains(&targets.messages) {
            return Err(Unsupported::Messages(targets.messages));
        }
        let stages: Vec<Variable> =
            compiler.tables().stages().filter(|(_, it)| !it.rows.is_empty()).map(|(it, _)| it).collect();
        let headers = stages.iter().filter_map(|variable| match variable {
            Variable::Present(header) => Some(*header),
            _ => None,
        });
        let of_state = |id: &StateId| match compiler.state(*id).aggregate {
            Aggregate::Window { field, .. } => field,
            Aggregate::Counter(_) => None,
        };
        let fields = stages.iter().filter_map(|variable| match variable {
            Variable::Field(field) => Some(*field),
            Variable::State(state) => of_state(state),
            Variable::Present(_) => None,
        });
        let parsing = Parsing::new(compiler.formats(), targets, headers, fields)?;
        let mut program = Program::default();
        parsing.write(&mut program)?;
        let builder = Builder::new(compiler, targets, stages, parsing.batch().is_some())?;
        builder.common(&mut program)?;
        let slots = if builder.batch { targets.messages } else { 1 };
        let mut body = Vec::new();
        for slot in 0..slots {
            let nodes = builder.slot(slot, &mut program)?;
            if slot == 0 {
                body.extend(nodes);
            } else {
                body.push(Node::If(Expression::Valid(format!("rest_{slot}")), nodes, Vec::new()));
            }
        }
        match parsing.batch() {
            Some((header, batch)) => {
                let sets = builder.sets();
                batch::write(compiler.formats(), header, batch, slots, &sets, body, &mut program);
            }
            None => program.ingress.nodes.extend(body),
        }
        if program.groups.len() > 65_535 {
            return Err(Unsupported::Groups(program.groups.len()));
        }
        Ok(program)
    }
}

/// Sets of ports as bits of words, and the multicast groups.
pub(super) struct PortSets {
    /// All ports of the rules, sorted.
    pub ports: Vec<u16>,
    /// Words of a set.
    pub words: usize,
    /// The sets of two ports and more, with their groups.
    pub groups: BTreeMap<Vec<u16>, u32>,
    /// All sets that messages go to, without the empty one.
    pub sets: Vec<Vec<u16>>,
}

impl PortSets {
    /// A set's words.
    pub fn bits(&self, set: &[u16]) -> Vec<u128> {
        let mut words = vec![0; self.words];
        for port in set {
            let place = self.ports.partition_point(|known| known < port);
            words[place / WORD] |= 1 << (place % WORD);
        }
        words
    }

    /// The width of a word.
    pub fn width(&self, word: usize) -> u16 {
        (self.ports.len().max(1) - word * WORD).min(WORD) as u16
    }

    /// The action that sends to a set of ports, with its arguments.
    pub fn send(&self, set: &[u16]) -> (String, Vec<u128>) {
        match set {
            [] => ("discard".to_owned(), Vec::new()),
            [port] => ("forward".to_owned(), vec![(*port).into()]),
            _ => ("multicast".to_owned(), vec![self.groups.get(set).copied().unwrap_or(0).into()]),
        }
    }
}

struct Builder<'a> {
    compiler: &'a Compiler,
    targets: &'a Targets,
    stages: Vec<Variable>,
    /// The actions of states at the end.
    leaves: BTreeMap<u32, Actions>,
    ports: Vec<u16>,
    batch: bool,
    state_bits: u16,
    /// How many calls of an action one message may get.
    calls: BTreeMap<String, usize>,
}

impl<'a> Builder<'a> {
    fn new(
        compiler: &'a Compiler,
        targets: &'a Targets,
        stages: Vec<Variable>,
        batch: bool,
    ) -> Result<Builder<'a>, Unsupported> {
        let tables = compiler.tables();
        let leaves: BTreeMap<u32, Actions> =
            tables.leaves().iter().map(|(state, set)| (*state, compiler.actions(*set))).collect();
        let mut ports: Vec<u16> = leaves.values().flat_map(|actions| &actions.ports).map(|port| port.0).collect();
        ports.sort_unstable();
        ports.dedup();
        if let Some(port) = ports.iter().find(|port| **port >= PORTS) {
            return Err(Unsupported::Port(*port));
        }
        let mut calls: BTreeMap<String, usize> = BTreeMap::new();
        for actions in leaves.values() {
            let mut of_leaf: BTreeMap<&str, usize> = BTreeMap::new();
            for call in &actions.calls {
                *of_leaf.entry(&compiler.call(*call).action).or_default() += 1;
            }
            for (action, count) in of_leaf {
                let known = calls.entry(action.to_owned()).or_default();
                *known = (*known).max(count);
            }
        }
        let state_bits = 32 - tables.state_bound().saturating_sub(1).leading_zeros().min(31);
        Ok(Builder { compiler, targets, stages, leaves, ports, batch, state_bits: state_bits as u16, calls })
    }

    fn sets(&self) -> PortSets {
        let mut sets: Vec<Vec<u16>> =
            self.leaves.values().map(|it| it.ports.iter().map(|port| port.0).collect()).collect();
        sets.retain(|set| !set.is_empty());
        // Packets with more messages than are looked at go to all ports.
        if self.batch && !self.ports.is_empty() {
            sets.push(self.ports.clone());
        }
        sets.sort_unstable();
        sets.dedup();
        let large = sets.iter().filter(|set| set.len() > 1);
        let groups = large.enumerate().map(|(index, set)| (set.clone(), index as u32 + 1)).collect();
        PortSets { words: self.ports.len().div_ceil(WORD).max(1), ports: self.ports.clone(), groups, sets }
    }

    /// What all slots share: metadata, actions of forwarding, groups, windows' registers.
    fn common(&self, program: &mut Program) -> Result<(), Unsupported> {
        program.metadata.push(("current".to_owned(), self.state_bits));
        let sets = self.sets();
        program.groups = sets.groups.iter().map(|(ports, id)| Group { id: *id, ports: ports.clone() }).collect();
        program.groups.sort_by_key(|group| group.id);
        let actions = &mut program.ingress.actions;
        let meta = |field: &str| Place::new(META, field);
        let action = |name: &str, purpose, parameters: &[(&str, u16)], steps| Action {
            name: name.to_owned(),
            purpose,
            parameters: parameters.iter().map(|(name, width)| ((*name).to_owned(), *width)).collect(),
            steps,
        };
        let first = || Expression::Parameter(0);
        actions.push(action("nothing", "Leaves the message alone.", &[], Vec::new()));
        actions.push(action(
            "go",
            "Takes the message to a state.",
            &[("next", self.state_bits)],
            vec![Step::Set(meta("current"), first())],
        ));
        actions.push(action("discard", "Sends the packet nowhere.", &[], vec![Step::Drop]));
        actions.push(action(
            "forward",
            "Sends the packet to one port.",
            &[("port", 9)],
            vec![Step::Set(Place::new(STANDARD, "egress_spec"), first())],
        ));
        actions.push(action(
            "multicast",
            "Sends the packet to the ports of a group.",
            &[("group", 16)],
            vec![Step::Set(Place::new(STANDARD, "mcast_grp"), first())],
        ));
        self.windows(program)
    }

    fn windows(&self, program: &mut Program) -> Result<(), Unsupported> {
        let windows = self.windows_used();
        if windows.len() > 64 {
            return Err(Unsupported::Windows(windows.len()));
        }
        if windows.is_empty() {
            return Ok(());
        }
        program.metadata.push(("updates".to_owned(), 64));
        program.metadata.push(("start".to_owned(), 48));
        program.metadata.push(("fresh".to_owned(), 1));
        program.ingress.actions.push(Action {
            name: "update".to_owned(),
            purpose: "Says which windows the message updates.",
            parameters: vec![("windows".to_owned(), 64)],
            steps: vec![Step::Set(Place::new(META, "updates"), Expression::Parameter(0))],
        });
        for id in windows {
            program.registers.push(Register { name: format!("window_{}_start", id.0), width: 48 });
            program.registers.push(Register { name: format!("window_{}", id.0), width: 64 });
            program.metadata.push((format!("value_{}", id.0), 64));
        }
        Ok(())
    }

    /// The windows that are compared or updated, in order.
    fn windows_used(&self) -> Vec<StateId> {
        let mut used: Vec<StateId> = self.leaves.values().flat_map(|actions| actions.updates.iter().copied()).collect();
        used.extend(self.stages.iter().filter_map(|stage| match stage {
            Variable::State(state) => Some(*state),
            _ => None,
        }));
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The tables of one message of a packet.
    fn slot(&self, slot: usize, program: &mut Program) -> Result<Vec<Node>, Unsupported> {
        let mut nodes = vec![Node::Apply(format!("begin_{slot}"))];
        program.ingress.tables.push(Table {
            name: format!("begin_{slot}"),
            keys: Vec::new(),
            actions: vec!["go".to_owned()],
            default: ("go".to_owned(), vec![self.compiler.tables().initial().into()]),
            entries: Vec::new(),
        });
        let mut updated = false;
        for (variable, stage) in self.compiler.tables().stages().filter(|(it, _)| self.stages.contains(it)) {
            if matches!(variable, Variable::State(_)) && !updated {
                updated = true;
                self.updates(slot, program, &mut nodes)?;
            }
            self.stage(slot, variable, stage, program, &mut nodes);
        }
        if !updated {
            self.updates(slot, program, &mut nodes)?;
        }
        self.end(slot, program, &mut nodes)?;
        Ok(nodes)
    }

    fn state_key(&self) -> Key {
        Key {
            value: Expression::meta("current"),
            name: "meta.current".to_owned(),
            width: self.state_bits,
            kind: Kind::Exact,
        }
    }

    fn stage(&self, slot: usize, variable: Variable, stage: &Stage, program: &mut Program, nodes: &mut Vec<Node>) {
        let formats = self.compiler.formats();
        let width = self.compiler.width(variable);
        let (name, value, key) = match variable {
            Variable::Present(header) => {
                let it = instance(formats, header, slot);
                (
                    format!("has_{}", formats.header(header).name),
                    Expression::Valid(it.clone()),
                    format!("hdr.{it}.$valid$"),
                )
            }
            Variable::Field(field) => {
                let known = formats.field(field);
                let it = instance(formats, known.header, slot);
                let its = field_name(formats, known.header, known.offset, known.width);
                let name = format!("{}_{}", formats.header(known.header).name, known.name);
                (name, Expression::Field(Place::new(&it, &its)), format!("hdr.{it}.{its}"))
            }
            Variable::State(id) => (
                format!("window_{}", id.0),
                Expression::meta(format!("value_{}", id.0)),
                format!("meta.value_{}", id.0),
            ),
        };
        let kind = match stage.kind() {
            MatchKind::Exact => Kind::Exact,
            MatchKind::Lpm => Kind::Lpm,
            MatchKind::Range if self.targets.ternary => Kind::Ternary,
            MatchKind::Range => Kind::Range,
        };
        let all = Interval::of_width(width);
        let mut table = Table {
            name: format!("{name}_{slot}"),
            keys: vec![self.state_key(), Key { value, name: key, width, kind }],
            actions: vec!["go".to_owned(), "nothing".to_owned()],
            default: ("nothing".to_owned(), Vec::new()),
            entries: Vec::new(),
        };
        let mut others = Table {
            name: format!("{name}_{slot}_else"),
            keys: vec![self.state_key()],
            entries: Vec::new(),
            ..table.clone()
        };
        let go = |matches, next: u32| Entry { matches, action: "go".to_owned(), arguments: vec![next.into()] };
        for (state, rows) in &stage.rows {
            let state = Match::Exact((*state).into());
            for entry in rows.entries() {
                let Interval { first, last } = entry.values;
                let values = match kind {
                    Kind::Exact => vec![Match::Exact(first)],
                    Kind::Range => vec![Match::Range(first, last)],
                    Kind::Lpm => vec![Match::Lpm(first, width - (128 - (last - first).leading_zeros()) as u16)],
                    Kind::Ternary => prefix_list(entry.values, width)
                        .map(|prefix| Match::Ternary(prefix.first, all.last & !(prefix.last - prefix.first)))
                        .collect(),
                };
                table.entries.extend(values.into_iter().map(|value| go(vec![state, value], entry.next)));
            }
            others.entries.push(go(vec![state], rows.default));
        }
        nodes.push(Node::ApplyOr(table.name.clone(), vec![Node::Apply(others.name.clone())]));
        program.ingress.tables.push(table);
        program.ingress.tables.push(others);
    }

    /// Which windows a message updates, and the updates.
    fn updates(&self, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Result<(), Unsupported> {
        let windows = self.windows_used();
        if windows.is_empty() {
            return Ok(());
        }
        let tables = self.compiler.tables();
        let behind = tables.stages().filter(|(variable, _)| matches!(variable, Variable::State(_)));
        let mut states: Vec<u32> = behind.flat_map(|(_, stage)| stage.rows.keys().copied()).collect();
        states.extend(self.leaves.keys());
        states.sort_unstable();
        states.dedup();
        let mut entries = Vec::new();
        for state in states {
            let updates = self.compiler.actions(tables.any_leaf(state)).updates;
            let bit = |id: &StateId| windows.iter().position(|it| it == id).map_or(0, |place| 1u128 << place);
            let bits: u128 = updates.iter().map(bit).sum();
            if bits != 0 {
                let matches = vec![Match::Exact(state.into())];
                entries.push(Entry { matches, action: "update".to_owned(), arguments: vec![bits] });
            }
        }
        let name = format!("updates_{slot}");
        nodes.push(Node::Apply(name.clone()));
        program.ingress.tables.push(Table {
            name,
            keys: vec![self.state_key()],
            actions: vec!["update".to_owned()],
            default: ("update".to_owned(), vec![0]),
            entries,
        });
        for (place, id) in windows.iter().enumerate() {
            let action = self.window(*id, slot)?;
            let bit = Expression::meta("updates").of("&", Expression::Number(1 << place, 64));
            let set = bit.of("!=", Expression::Number(0, 64));
            nodes.push(Node::If(set, vec![Node::Do(action.name.clone())], Vec::new()));
            program.ingress.actions.push(action);
        }
        Ok(())
    }

    /// The update of a window. It starts with the first message after the one before has ended.
    fn window(&self, id: StateId, slot: usize) -> Result<Action, Unsupported> {
        let formats = self.compiler.formats();
        let name = || self.compiler.variable_name(Variable::State(id));
        let (function, field, window_ns) = match self.compiler.state(id).aggregate {
            Aggregate::Counter(counter) => {
                (Function::Count, None, formats.counters()[usize::from(counter.0)].window_ns)
            }
            Aggregate::Window { function, field, window_ns } => (function, field, window_ns),
        };
        if window_ns % 1000 != 0 || window_ns / 1000 >= 1 << 47 {
            return Err(Unsupported::Window(name()));
        }
        let number = |value: u64| Expression::Number(value.into(), 64);
        let field = match field {
            None => number(0),
            Some(field) => {
                let known = formats.field(field);
                if known.width > 64 {
                    return Err(Unsupported::WideWindow(name()));
                }
                let its = field_name(formats, known.header, known.offset, known.width);
                Expression::Field(Place::new(&instance(formats, known.header, slot), &its)).bits(64)
            }
        };
        let value = || Expression::meta(format!("value_{}", id.0));
        let fresh = || Expression::meta("fresh").of("==", Expression::Number(1, 1));
        let choice = |test: Expression, yes, no| Expression::Choice(Box::new(test), Box::new(yes), Box::new(no));
        let next = match function {
            Function::Count => choice(fresh(), number(1), value().of("+", number(1)).bits(64)),
            Function::Sum => choice(fresh(), field.clone(), value().of("+", field).bits(64)),
            Function::Min => choice(fresh().of("||", field.clone().of("<", value())), field, value()),
            Function::Max => choice(fresh().of("||", field.clone().of(">", value())), field, value()),
            Function::Avg => return Err(Unsupported::Mean(name())),
        };
        let now = || Expression::Field(Place::new(STANDARD, "ingress_global_timestamp"));
        let start = || Expression::meta("start");
        let length = Expression::Number((window_ns / 1000).into(), 48);
        let over = now().of("-", start()).bits(48).of(">=", length);
        let none = start().of("==", Expression::Number(0, 48));
        let registers = (format!("window_{}_start", id.0), format!("window_{}", id.0));
        let one = |value| Expression::Number(value, 1);
        Ok(Action {
            name: format!("update_{}_{slot}", id.0),
            purpose: "Takes the message into a window.",
            parameters: Vec::new(),
            steps: vec![
                Step::Read(Place::new(META, "start"), registers.0.clone()),
                Step::Read(Place::new(META, &format!("value_{}", id.0)), registers.1.clone()),
                Step::Set(Place::new(META, "fresh"), choice(none.of("||", over), one(1), one(0))),
                Step::Set(Place::new(META, "start"), choice(fresh(), now(), start())),
                Step::Set(Place::new(META, &format!("value_{}", id.0)), next),
                Step::Write(registers.0, start()),
                Step::Write(registers.1, value()),
            ],
        })
    }

    /// What states at the end do.
    fn end(&self, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Result<(), Unsupported> {
        let sets = self.sets();
        let name = format!("end_{slot}");
        nodes.push(Node::Apply(name.clone()));
        let mut table = Table {
            name,
            keys: vec![self.state_key()],
            actions: ["forward", "multicast", "discard"].map(str::to_owned).to_vec(),
            default: ("discard".to_owned(), Vec::new()),
            entries: Vec::new(),
        };
        if self.batch {
            let action = format!("ports_{slot}");
            table.actions = vec![action.clone()];
            table.default = (action.clone(), vec![0; sets.words]);
            let word = |word| (format!("word_{word}"), sets.width(word));
            let place = |word| Place::new(META, &format!("ports_{slot}_{word}"));
            program.ingress.actions.push(Action {
                name: action,
                purpose: "The ports that the message goes to.",
                parameters: (0..sets.words).map(word).collect(),
                steps: (0..sets.words).map(|word| Step::Set(place(word), Expression::Parameter(word))).collect(),
            });
            for word in 0..sets.words {
                program.metadata.push((format!("ports_{slot}_{word}"), sets.width(word)));
            }
        }
        for (state, actions) in self.leaves.iter().filter(|(_, actions)| !actions.ports.is_empty()) {
            let ports: Vec<u16> = actions.ports.iter().map(|port| port.0).collect();
            let (action, arguments) = match self.batch {
                true => (format!("ports_{slot}"), sets.bits(&ports)),
                false => sets.send(&ports),
            };
            table.entries.push(Entry { matches: vec![Match::Exact((*state).into())], action, arguments });
        }
        program.ingress.tables.push(table);
        self.calls(slot, program, nodes)
    }

    /// The applications' actions: one table for each action that a message may get at once.
    fn calls(&self, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Result<(), Unsupported> {
        for (name, count) in &self.calls {
            let signature = self.compiler.formats().actions().iter().find(|action| action.name == *name);
            let kinds = signature.map_or(&[][..], |action| &action.arguments);
            for place in 0..*count {
                let table = format!("{name}_{place}_{slot}");
                let action = format!("call_{table}");
                let mut entries = Vec::new();
                for (state, actions) in &self.leaves {
                    let mut calls = actions.calls.iter().map(|call| self.compiler.call(*call));
                    if let Some(call) = calls.by_ref().filter(|call| call.action == *name).nth(place) {
                        let matches = vec![Match::Exact((*state).into())];
                        entries.push(Entry { matches, action: action.clone(), arguments: arguments(call)? });
                    }
                }
                let parameters: Vec<(String, u16)> =
                    kinds.iter().enumerate().map(|(index, kind)| (format!("argument_{index}"), width(*kind))).collect();
                let called = Place::new(META, &format!("{table}_called"));
                program.metadata.push((called.field.clone(), 1));
                let mut steps = vec![Step::Set(called, Expression::Number(1, 1))];
                for (index, (parameter, width)) in parameters.iter().enumerate() {
                    let field = format!("{table}_{parameter}");
                    program.metadata.push((field.clone(), *width));
                    steps.push(Step::Set(Place::new(META, &field), Expression::Parameter(index)));
                }
                let purpose = "An application's action: what it does is written here.";
                program.ingress.actions.push(Action { name: action.clone(), purpose, parameters, steps });
                nodes.push(Node::Apply(table.clone()));
                program.ingress.tables.push(Table {
                    name: table,
                    keys: vec![self.state_key()],
                    actions: vec![action, "nothing".to_owned()],
                    default: ("nothing".to_owned(), Vec::new()),
                    entries,
                });
            }
        }
        Ok(())
    }
}

fn width(kind: ArgumentKind) -> u16 {
    match kind {
        ArgumentKind::Number => 64,
        ArgumentKind::Text | ArgumentKind::Ipv6 => 128,
        ArgumentKind::Ipv4 => 32,
        ArgumentKind::Mac => 48,
    }
}

/// A call's arguments as numbers; texts have zeros behind them.
fn arguments(call: &Call) -> Result<Vec<u128>, Unsupported> {
    let number = |argument: &Argument| {
        Ok(match argument {
            Argument::Number(number) | Argument::Mac(number) => (*number).into(),
            Argument::Ipv4(address) => u32::from(*address).into(),
            Argument::Ipv6(address) => u128::from(*address),
            Argument::Text(text) => {
                let mut bytes = [0; 16];
                let part = bytes.get_mut(..text.len()).ok_or_else(|| Unsupported::Text(text.clone()))?;
                part.copy_from_slice(text.as_bytes());
                u128::from_be_bytes(bytes)
            }
        })
    };
    call.arguments.iter().map(number).collect()
}
