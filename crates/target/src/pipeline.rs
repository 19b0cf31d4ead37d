//! From compiled tables to a program's tables and what is done in which order.

use crate::parser::Parsing;
use crate::program::*;
use crate::{MOST_MESSAGES, MOST_PORT, Targets, Unsupported, batch, limits};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_subscribe::compiler::{Actions, Compiler, StateId, Variable};
use weftwire_subscribe::formats::ArgumentKind;
use weftwire_subscribe::rules::{Aggregate, Argument, Call};

/// Bits of a word of a set of ports.
const WORD: usize = 128;

impl Program {
    /// The program of a compiler's tables.
    ///
    /// # Errors
    /// [`Unsupported`].
    pub fn new(compiler: &Compiler, architecture: Architecture, targets: &Targets) -> Result<Program, Unsupported> {
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
        let parsing = Parsing::new(compiler.formats(), targets, architecture, headers, fields)?;
        let mut program = Program { architecture, ..Program::default() };
        parsing.write(&mut program)?;
        let builder = Builder::new(compiler, targets, architecture, stages, parsing.batch().is_some())?;
        builder.common(&mut program);
        builder.windows(&mut program)?;
        let slots = if builder.batch { targets.messages } else { 1 };
        let mut body = Vec::new();
        for slot in 0..slots {
            let nodes = builder.slot(slot, &mut program)?;
            match parsing.batch() {
                Some((_, batch)) if slot > 0 => {
                    body.push(Node::If(parsing.present(batch, slot), nodes, Vec::new()));
                }
                _ => body.extend(nodes),
            }
        }
        match parsing.batch() {
            Some((header, batch)) => batch::write(&parsing, header, batch, &builder.sets(), body, &mut program),
            None => program.ingress.nodes.extend(body),
        }
        if !targets.hairpin {
            program.exclude_arrival();
        }
        program.fill_bridge();
        program.check_names()?;
        if program.groups.len() > 65_535 {
            return Err(Unsupported::Groups(program.groups.len()));
        }
        if architecture == Architecture::Tna {
            program.clear();
            limits::check(&program)?;
        }
        Ok(program)
    }

    /// No copy leaves by the port that the packet came in by. That is asked of each copy: the groups of the switch know
    /// nothing of where packets come from.
    fn exclude_arrival(&mut self) {
        if self.architecture == Architecture::Tna {
            // Where in its bytes the port of egress is too: Tofino compares bits of the same places.
            self.bridge.splice(0..0, [("before_port".to_owned(), 7), ("ingress_port".to_owned(), 9)]);
            let from = Expression::Field(Place::new(STANDARD, "ingress_port"));
            self.ingress.actions.push(Action {
                name: "arrive".to_owned(),
                purpose: "Tells egress where the packet came in.",
                parameters: Vec::new(),
                steps: vec![Step::Set(self.arrival(), from)],
            });
            self.ingress.nodes.insert(0, Node::Do("arrive".to_owned()));
        }
        let to = Expression::Field(Place::new(STANDARD, "egress_port"));
        let back = to.of("==", Expression::Field(self.arrival()));
        let others = std::mem::take(&mut self.egress.nodes);
        self.egress.actions.push(Action {
            name: "drop_back".to_owned(),
            purpose: "No packet goes back to where it came from.",
            parameters: Vec::new(),
            steps: vec![Step::Drop],
        });
        self.egress.nodes = vec![Node::If(back, vec![Node::Do("drop_back".to_owned())], others)];
    }

    /// Makes whole bytes of the bridge.
    fn fill_bridge(&mut self) {
        let bits: u32 = self.bridge.iter().map(|(_, width)| u32::from(*width)).sum();
        if !bits.is_multiple_of(8) {
            self.bridge.push(("padding".to_owned(), (8 - bits % 8) as u16));
        }
    }

    /// Lets the parser start with zeros: Tofino's metadata begins with anything.
    fn clear(&mut self) {
        let own = self.metadata.iter().map(|(name, width)| (Place::new(META, name), Expression::Number(0, *width)));
        let mut zeros: Vec<(Place, Expression)> = own.collect();
        if self.bridge.iter().any(|(name, _)| name == "too_many") {
            zeros.push((Place::new(BRIDGE, "too_many"), Expression::Number(0, 1)));
        }
        if let Some(start) = self.states.first_mut() {
            start.sets = zeros;
        }
    }

    /// Names are put together of those of headers, fields and actions, and must stay apart.
    fn check_names(&self) -> Result<(), Unsupported> {
        let own = match self.architecture {
            Architecture::V1model => ["headers_t", "meta_t", "standard_metadata_t"].as_slice(),
            Architecture::Tna => ["headers_t", "meta_t", "bridge_t", "bridged_t", "empty_t", "window_t"].as_slice(),
        };
        let headers = self.headers.iter().map(|header| header.name.as_str());
        let mut of_kinds: BTreeMap<&str, &[(String, u16)]> = own.iter().map(|name| (*name, [].as_slice())).collect();
        for header in &self.headers {
            let known = of_kinds.entry(&header.kind).or_insert(&header.fields);
            if *known != header.fields || own.contains(&header.kind.as_str()) {
                return Err(Unsupported::Name(header.kind.clone()));
            }
        }
        let metadata = self.metadata.iter().map(|(name, _)| name.as_str());
        let registers = self.registers.iter().map(|it| it.name.as_str());
        let of_control = |control: &'_ Control| {
            let tables = control.tables.iter().map(|it| it.name.clone());
            tables.chain(control.actions.iter().map(|it| it.name.clone())).collect::<Vec<_>>()
        };
        unique(headers)?;
        unique(metadata)?;
        let ingress = of_control(&self.ingress);
        unique(ingress.iter().map(String::as_str).chain(registers))?;
        unique(of_control(&self.egress).iter().map(String::as_str))
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Unsupported> {
    let mut known = BTreeSet::new();
    let mut names = names;
    names.find(|name| !known.insert(*name)).map_or(Ok(()), |name| Err(Unsupported::Name(name.to_owned())))
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

/// Writes ingress for the messages.
pub(super) struct Builder<'a> {
    pub(super) compiler: &'a Compiler,
    pub(super) targets: &'a Targets,
    pub(super) architecture: Architecture,
    pub(super) stages: Vec<Variable>,
    /// The actions of states at the end.
    pub(super) leaves: BTreeMap<u32, Actions>,
    ports: Vec<u16>,
    pub(super) batch: bool,
    state_bits: u16,
    /// How many calls of an action one message may get.
    calls: BTreeMap<String, usize>,
}

impl<'a> Builder<'a> {
    fn new(
        compiler: &'a Compiler,
        targets: &'a Targets,
        architecture: Architecture,
        stages: Vec<Variable>,
        batch: bool,
    ) -> Result<Builder<'a>, Unsupported> {
        let tables = compiler.tables();
        let leaves: BTreeMap<u32, Actions> =
            tables.leaves().iter().map(|(state, set)| (*state, compiler.actions(*set))).collect();
        let mut ports: Vec<u16> = leaves.values().flat_map(|actions| &actions.ports).map(|port| port.0).collect();
        ports.sort_unstable();
        ports.dedup();
        if let Some(port) = ports.iter().find(|port| **port > MOST_PORT) {
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
        let state_bits = state_bits as u16;
        Ok(Builder { compiler, targets, architecture, stages, leaves, ports, batch, state_bits, calls })
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

    /// What all slots share: groups, and the actions of forwarding.
    fn common(&self, program: &mut Program) {
        let sets = self.sets();
        program.groups = sets.groups.iter().map(|(ports, id)| Group { id: *id, ports: ports.clone() }).collect();
        program.groups.sort_by_key(|group| group.id);
        let mut action = |name: &str, purpose, parameters: &[(&str, u16)], steps| {
            program.ingress.actions.push(Action {
                name: name.to_owned(),
                purpose,
                parameters: parameters.iter().map(|(name, width)| ((*name).to_owned(), *width)).collect(),
                steps,
            });
        };
        let send = |field: &str| vec![Step::Set(Place::new(STANDARD, field), Expression::Parameter(0))];
        action("nothing", "Leaves the message alone.", &[], Vec::new());
        action("discard", "Sends the packet nowhere.", &[], vec![Step::Drop]);
        action("forward", "Sends the packet to one port.", &[("port", 9)], send("egress_spec"));
        action("multicast", "Sends the packet to the ports of a group.", &[("group", 16)], send("mcast_grp"));
    }

    /// The tables of one message of a packet.
    fn slot(&self, slot: usize, program: &mut Program) -> Result<Vec<Node>, Unsupported> {
        let mut nodes = Vec::new();
        self.begin(slot, program, &mut nodes);
        let mut updated = false;
        for (variable, stage) in self.compiler.tables().stages().filter(|(it, _)| self.stages.contains(it)) {
            if matches!(variable, Variable::State(_)) && !updated {
                updated = true;
                self.updates(slot, program, &mut nodes)?;
            }
            self.stage(slot, variable, stage, program, &mut nodes)?;
        }
        if !updated {
            self.updates(slot, program, &mut nodes)?;
        }
        self.end(slot, program, &mut nodes)?;
        Ok(nodes)
    }

    /// The state that messages start in.
    fn begin(&self, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) {
        let state = Self::state(slot);
        program.metadata.push((state.field.clone(), self.state_bits));
        let go = format!("go_{slot}");
        program.ingress.actions.push(Action {
            name: go.clone(),
            purpose: "Takes the message to a state.",
            parameters: vec![("next".to_owned(), self.state_bits)],
            steps: vec![Step::Set(state, Expression::Parameter(0))],
        });
        nodes.push(Node::Apply(format!("begin_{slot}")));
        program.ingress.tables.push(Table {
            name: format!("begin_{slot}"),
            keys: Vec::new(),
            actions: vec![go.clone()],
            default: (go, vec![self.compiler.tables().initial().into()]),
            entries: Vec::new(),
        });
    }

    /// The state that the message of a slot is in.
    fn state(slot: usize) -> Place {
        Place::new(META, &format!("current_{slot}"))
    }

    pub(super) fn state_key(&self, slot: usize) -> Key {
        let state = Self::state(slot);
        Key {
            name: format!("meta.{}", state.field),
            value: Expression::Field(state),
            width: self.state_bits,
            kind: Kind::Exact,
        }
    }

    /// What states at the end do.
    fn end(&self, slot: usize, program: &mut Program, nodes: &mut Vec<Node>) -> Result<(), Unsupported> {
        let sets = self.sets();
        let name = format!("end_{slot}");
        nodes.push(Node::Apply(name.clone()));
        let mut table = Table {
            name,
            keys: vec![self.state_key(slot)],
            actions: ["forward", "multicast", "discard"].map(str::to_owned).to_vec(),
            default: ("discard".to_owned(), Vec::new()),
            entries: Vec::new(),
        };
        if self.batch {
            let action = format!("ports_{slot}");
            table.actions = vec![action.clone()];
            table.default = (action.clone(), vec![0; sets.words]);
            let mut steps = Vec::new();
            for word in 0..sets.words {
                let place = program.kept(&format!("ports_{slot}_{word}"));
                program.keep(place.field.clone(), sets.width(word));
                steps.push(Step::Set(place, Expression::Parameter(word)));
            }
            program.ingress.actions.push(Action {
                name: action,
                purpose: "The ports that the message goes to.",
                parameters: (0..sets.words).map(|word| (format!("word_{word}"), sets.width(word))).collect(),
                steps,
            });
        }
        for (state, actions) in self.leaves.iter().filter(|(_, actions)| !actions.ports.is_empty()) {
            let ports: Vec<u16> = actions.ports.iter().map(|port| port.0).collect();
            let (action, arguments) = match self.batch {
                true => (format!("ports_{slot}"), sets.bits(&ports)),
                false => sets.send(&ports),
            };
            table.entries.push(Entry::new(vec![Match::Exact((*state).into())], &action, arguments));
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
                        entries.push(Entry::new(matches, &action, arguments(call)?));
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
                    keys: vec![self.state_key(slot)],
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
