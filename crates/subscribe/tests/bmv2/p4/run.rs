//! Runs programs as their texts say, packet by packet.

use super::architectures::{Kind, PORT_METADATA_BITS};
use super::check::Checker;
use super::syntax::*;
use crate::vm::{Entry, First, Key, Sent};
use std::collections::{BTreeMap, BTreeSet};

/// A value.
#[derive(Clone, PartialEq, Debug)]
enum Val {
    Bits(u128, u32),
    /// More than 128 bits, or a field of variable length.
    Wide(Vec<bool>),
    Bool(bool),
    /// Whether there is one.
    Error(bool),
    List(Vec<Val>),
    /// Whether a table had an entry.
    Applied(bool),
}

pub struct Switch {
    file: File,
    kind: Kind,
    first: First,
    types: BTreeMap<String, Fields>,
    /// The names of the blocks in the package's order.
    blocks: Vec<String>,
    /// Of `CONTROL.TABLE`.
    pub entries: BTreeMap<String, Vec<Entry>>,
    pub defaults: BTreeMap<String, (String, Vec<u128>)>,
    pub groups: BTreeMap<u128, Vec<u16>>,
    /// Registers; those of pairs have two values.
    registers: BTreeMap<String, Vec<u128>>,
}

/// What a packet has on its way through one pipe. Places are types and members: `headers_t.ipv4.ttl`.
#[derive(Clone, Default)]
struct Run {
    values: BTreeMap<String, Val>,
    valid: BTreeSet<String>,
    packet: Vec<bool>,
    at: usize,
    counter: i64,
    out: Vec<bool>,
}

/// Names of a block: its parameters, and what functions have beside them.
#[derive(Clone, Default)]
struct Names<'a> {
    parameters: BTreeMap<&'a str, String>,
    locals: BTreeMap<String, Val>,
}

/// The bits of what was never set.
const ANYTHING: u128 = 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a;

/// A packet was too short.
struct TooShort;

fn mask(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - width.min(128)) }
}

fn to_bits(value: u128, width: u32) -> impl Iterator<Item = bool> {
    (0..width).rev().map(move |bit| value >> bit & 1 == 1)
}

fn of_bits(bits: &[bool]) -> Val {
    if bits.len() > 128 {
        return Val::Wide(bits.to_vec());
    }
    Val::Bits(bits.iter().fold(0, |value, bit| value << 1 | u128::from(*bit)), bits.len() as u32)
}

impl Val {
    fn number(&self) -> u128 {
        match self {
            Val::Bits(value, _) => *value,
            Val::Bool(value) => (*value).into(),
            other => panic!("{other:?} is no number"),
        }
    }

    fn holds(&self) -> bool {
        matches!(self, Val::Bool(true))
    }
}

impl Switch {
    pub fn new(text: &str, kind: Kind, first: First) -> Switch {
        let file = read(text);
        let blocks = Checker::new(&file, kind).program();
        let all = kind.types().into_iter().chain(file.types.iter().cloned());
        let types = all.map(|it| (it.name.clone(), it)).collect();
        let mut switch = Switch {
            file,
            kind,
            first,
            types,
            blocks,
            entries: BTreeMap::new(),
            defaults: BTreeMap::new(),
            groups: BTreeMap::new(),
            registers: BTreeMap::new(),
        };
        for instance in switch.file.controls.iter().flat_map(|control| &control.instances) {
            // Of pairs the start's values stand in a list.
            if let Some(Expr::List(values)) = instance.arguments.get(1) {
                let number =
                    |value: &Expr| if let Expr::Number(value, _) = value { *value } else { panic!("{value:?}") };
                switch.registers.insert(instance.name.clone(), values.iter().map(number).collect());
            }
        }
        switch
    }

    pub fn is_tofino(&self) -> bool {
        self.kind == Kind::Tna
    }

    /// The table of a name, and its control.
    pub fn table(&self, name: &str) -> (&Control, &Table) {
        let (control, table) = name.rsplit_once('.').expect("a control's table");
        let control = self.file.controls.iter().find(|it| it.name == control).expect("a control");
        let found = control.tables.iter().find(|it| it.name == table);
        (control, found.unwrap_or_else(|| panic!("{name} is no table")))
    }

    /// Adds an entry, as a runtime would check it.
    pub fn add(&mut self, name: &str, entry: Entry) {
        let (control, table) = self.table(name);
        assert_eq!(entry.keys.len(), table.keys.len(), "{name}");
        let action = control.actions.iter().find(|it| it.name == entry.action).expect("an action");
        assert!(table.actions.contains(&entry.action) && action.parameters.len() == entry.data.len());
        for (parameter, value) in action.parameters.iter().zip(&entry.data) {
            let Type::Bits(width) = parameter.kind else { panic!("{parameter:?}") };
            assert!(*value <= mask(width), "{name}: {value:#x}");
        }
        for (key, (_, kind, _)) in entry.keys.iter().zip(&table.keys) {
            match key {
                Key::Exact(_) => assert_eq!(kind, "exact"),
                Key::Lpm(..) => assert_eq!(kind, "lpm"),
                Key::Range(low, high) => assert!(kind == "range" && low <= high),
                Key::Ternary(value, mask) => assert!(kind == "ternary" && value & !mask == 0),
                Key::Any => assert_ne!(kind, "exact"),
            }
        }
        let wants = table.keys.iter().any(|(_, kind, _)| kind == "range" || kind == "ternary");
        assert_eq!(entry.priority.is_some(), wants, "{name}");
        let size = table.size.expect("a size");
        let all = self.entries.entry(name.to_owned()).or_default();
        all.push(entry);
        assert!(all.len() as u128 <= size, "{name} is full");
    }

    pub fn set_default(&mut self, name: &str, action: &str, data: Vec<u128>) {
        assert!(self.table(name).1.actions.iter().any(|it| it == action));
        self.defaults.insert(name.to_owned(), (action.to_owned(), data));
    }

    /// A packet at a time in the clock's unit.
    pub fn packet(&mut self, frame: &[u8], now: u64) -> Sent {
        let frame: Vec<bool> = frame.iter().flat_map(|byte| to_bits((*byte).into(), 8)).collect();
        match self.kind {
            Kind::V1model => self.v1model(frame, now),
            Kind::Tna => self.tna(frame, now),
        }
    }

    fn v1model(&mut self, frame: Vec<bool>, now: u64) -> Sent {
        let blocks = self.blocks.clone();
        let mut run = Run { packet: frame, ..Run::default() };
        let standard = |field: &str| format!("standard_metadata_t.{field}");
        run.values.insert(standard("ingress_global_timestamp"), Val::Bits(now.into(), 48));
        let failed = self.parse(&blocks[0], &mut run).is_err();
        run.values.insert(standard("parser_error"), Val::Error(failed));
        self.control(&blocks[1], &mut run);
        self.control(&blocks[2], &mut run);
        let metadata = self.metadata(&run);
        let of = |run: &Run, field: &str| run.values.get(&standard(field)).map_or(0, Val::number);
        let ports = match (of(&run, "mcast_grp"), of(&run, "egress_spec")) {
            (0, 511) => Vec::new(),
            (0, port) => vec![port as u16],
            (group, _) => self.groups.get(&group).cloned().unwrap_or_default(),
        };
        let mut copies = Vec::new();
        for port in ports {
            let mut copy = run.clone();
            copy.values.insert(standard("egress_port"), Val::Bits(port.into(), 9));
            copy.values.insert(standard("egress_spec"), Val::Bits(0, 9));
            self.control(&blocks[3], &mut copy);
            if of(&copy, "egress_spec") == 511 {
                continue;
            }
            self.control(&blocks[4], &mut copy);
            self.control(&blocks[5], &mut copy);
            copies.push((port, copy.sent()));
        }
        Sent { copies, metadata }
    }

    fn tna(&mut self, frame: Vec<bool>, now: u64) -> Sent {
        let blocks = self.blocks.clone();
        let mut run =
            Run { packet: self.intrinsic("ingress_intrinsic_metadata_t", "ingress_port", 7), ..Run::default() };
        run.packet.extend([true; PORT_METADATA_BITS]);
        run.packet.extend(frame);
        if self.parse(&blocks[0], &mut run).is_err() {
            // Programs that do not look at errors do not get such packets.
            return Sent { copies: Vec::new(), metadata: BTreeMap::new() };
        }
        let time = "ingress_intrinsic_metadata_from_parser_t.global_tstamp";
        run.values.insert(time.to_owned(), Val::Bits(u128::from(now) & mask(48), 48));
        self.control(&blocks[1], &mut run);
        let metadata = self.metadata(&run);
        let of = |run: &Run, place: &str| run.values.get(place).map(Val::number);
        let manager = |field: &str| format!("ingress_intrinsic_metadata_for_tm_t.{field}");
        if of(&run, "ingress_intrinsic_metadata_for_deparser_t.drop_ctl") == Some(1) {
            return Sent { copies: Vec::new(), metadata };
        }
        let mut ports: Vec<u16> = of(&run, &manager("ucast_egress_port")).into_iter().map(|port| port as u16).collect();
        if let Some(group) = of(&run, &manager("mcast_grp_a")).filter(|group| *group != 0) {
            ports.extend(&self.groups[&group]);
        }
        let skips_egress = of(&run, &manager("bypass_egress")) == Some(1);
        self.control(&blocks[2], &mut run);
        let sent = run.packet_out();
        let mut copies = Vec::new();
        for port in ports {
            let mut copy = Run { packet: sent.clone(), ..Run::default() };
            if !skips_egress {
                copy.packet = self.intrinsic("egress_intrinsic_metadata_t", "egress_port", port.into());
                copy.packet.extend(&sent);
                assert!(self.parse(&blocks[3], &mut copy).is_ok(), "egress parses what ingress sent");
                self.control(&blocks[4], &mut copy);
                if of(&copy, "egress_intrinsic_metadata_for_deparser_t.drop_ctl") == Some(1) {
                    continue;
                }
                self.control(&blocks[5], &mut copy);
            }
            copies.push((port, copy.sent()));
        }
        Sent { copies, metadata }
    }

    /// The header that the switch puts in front of a packet.
    fn intrinsic(&self, kind: &str, field: &str, value: u128) -> Vec<bool> {
        let mut bits = Vec::new();
        for (kind, name) in &self.types[kind].fields {
            let Type::Bits(width) = kind else { panic!("{name}") };
            bits.extend(to_bits(if name == field { value } else { 0 }, *width));
        }
        bits
    }

    fn metadata(&self, run: &Run) -> BTreeMap<String, u128> {
        let own = run.values.iter().filter_map(|(place, value)| Some((place.strip_prefix("meta_t.")?, value)));
        own.map(|(name, value)| (name.to_owned(), value.number())).collect()
    }

    fn names<'a>(parameters: &'a [Parameter]) -> Names<'a> {
        let parameters = parameters.iter().map(|it| (it.name.as_str(), it.kind_name().to_owned())).collect();
        Names { parameters, locals: BTreeMap::new() }
    }

    fn parse(&mut self, name: &str, run: &mut Run) -> Result<(), TooShort> {
        let parser = self.file.parsers.iter().find(|it| it.name == name).expect("a parser").clone();
        let mut names = Self::names(&parser.parameters);
        let mut next = "start".to_owned();
        for _ in 0..10_000 {
            match next.as_str() {
                "accept" => return Ok(()),
                "reject" => return Err(TooShort),
                _ => {}
            }
            let state = parser.states.iter().find(|it| it.name == next).expect("a state");
            for statement in &state.statements {
                self.statement(None, statement, &mut names, run)?;
            }
            let mut values = Vec::new();
            for value in &state.select {
                values.push(self.value(None, value, &names, run)?);
            }
            let matches = |cases: &[Expr]| {
                cases.iter().zip(&values).all(|(case, value)| match case {
                    Expr::Any => true,
                    Expr::Bool(wanted) => *value == Val::Bool(*wanted),
                    Expr::Number(wanted, _) => value.number() == *wanted,
                    Expr::Masked(wanted, bits) => match (wanted.as_ref(), bits.as_ref()) {
                        (Expr::Number(wanted, _), Expr::Number(bits, _)) => value.number() & bits == wanted & bits,
                        _ => panic!("{case:?}"),
                    },
                    _ => panic!("{case:?}"),
                })
            };
            next.clone_from(&state.cases.iter().find(|(cases, _)| matches(cases)).expect("a case").1);
        }
        panic!("the parser does not end")
    }

    fn control(&mut self, name: &str, run: &mut Run) {
        let control = self.file.controls.iter().find(|it| it.name == name).expect("a control").clone();
        let mut names = Self::names(&control.parameters);
        for statement in &control.apply {
            assert!(self.statement(Some(&control), statement, &mut names, run).is_ok());
        }
    }

    fn statement<'a>(
        &mut self,
        control: Option<&'a Control>,
        statement: &Statement,
        names: &mut Names<'a>,
        run: &mut Run,
    ) -> Result<(), TooShort> {
        match statement {
            Statement::Assign(to, value) => {
                let value = self.value(control, value, names, run)?;
                self.assign(to, value, names, run);
            }
            Statement::Call(call) => {
                self.value(control, call, names, run)?;
            }
            Statement::If(test, yes, no) => {
                let part = if self.value(control, test, names, run)?.holds() { yes } else { no };
                for statement in part {
                    self.statement(control, statement, names, run)?;
                }
            }
        }
        Ok(())
    }

    fn assign(&self, to: &Expr, value: Val, names: &mut Names<'_>, run: &mut Run) {
        let value = |width: u32| match &value {
            Val::Bits(value, _) => Val::Bits(value & mask(width), width),
            other => other.clone(),
        };
        if let Some(local) = self.local(to, names) {
            let width = if let Val::Bits(_, width) = names.locals[&local] { width } else { panic!("{local}") };
            names.locals.insert(local, value(width));
            return;
        }
        let place = Self::place(to, names);
        let width = match self.type_of(&place) {
            Type::Bits(width) => width,
            _ => 0,
        };
        run.values.insert(place, value(width));
    }

    /// The name of a local value: `x`, or `x.member` of a pair.
    fn local(&self, value: &Expr, names: &Names<'_>) -> Option<String> {
        let name = match value {
            Expr::Name(name) => name.clone(),
            Expr::Member(of, member) => match of.as_ref() {
                Expr::Name(name) => format!("{name}.{member}"),
                _ => return None,
            },
            _ => return None,
        };
        names.locals.contains_key(&name).then_some(name)
    }

    fn place(value: &Expr, names: &Names<'_>) -> String {
        match value {
            Expr::Name(name) => {
                names.parameters.get(name.as_str()).unwrap_or_else(|| panic!("{name} is no parameter")).clone()
            }
            Expr::Member(of, member) => format!("{}.{member}", Self::place(of, names)),
            _ => panic!("{value:?} is no place"),
        }
    }

    fn type_of(&self, place: &str) -> Type {
        let mut parts = place.split('.');
        let mut kind = Type::Named(parts.next().unwrap_or_default().to_owned(), Vec::new());
        for part in parts {
            let Type::Named(name, _) = &kind else { panic!("{place}") };
            let fields = &self.types[name].fields;
            kind = fields.iter().find(|(_, name)| name == part).unwrap_or_else(|| panic!("{place}")).0.clone();
        }
        kind
    }

    /// Reads a field. Those of headers that are not there are anything; metadata of Tofino has to be set before.
    fn read(&self, place: &str, run: &Run) -> Val {
        let kind = self.type_of(place);
        let (owner, _) = place.rsplit_once('.').unwrap_or_default();
        let in_header = matches!(self.type_of(owner), Type::Named(name, _) if self.types[&name].is_header);
        let anything = in_header
            && self.types.contains_key("headers_t")
            && owner.starts_with("headers_t")
            && !run.valid.contains(owner);
        let width = match kind {
            Type::Bits(width) => width,
            Type::Error => return run.values.get(place).cloned().unwrap_or(Val::Error(false)),
            Type::Varbit(_) => return run.values.get(place).cloned().unwrap_or(Val::Wide(Vec::new())),
            _ => panic!("{place}"),
        };
        if anything && width <= 128 {
            return Val::Bits(ANYTHING & mask(width), width);
        }
        match run.values.get(place) {
            Some(value) => value.clone(),
            None if self.kind == Kind::V1model && width <= 128 => Val::Bits(0, width),
            None => panic!("{place} is read before it is set"),
        }
    }

    fn value<'a>(
        &mut self,
        control: Option<&'a Control>,
        value: &Expr,
        names: &Names<'a>,
        run: &mut Run,
    ) -> Result<Val, TooShort> {
        Ok(match value {
            Expr::Number(value, width) => Val::Bits(*value, width.unwrap_or(0)),
            Expr::Bool(value) => Val::Bool(*value),
            Expr::Name(_) | Expr::Member(..) => {
                if let Some(local) = self.local(value, names) {
                    return Ok(names.locals[&local].clone());
                }
                if let Expr::Member(of, member) = value {
                    match of.as_ref() {
                        Expr::Name(name) if name == "error" => return Ok(Val::Error(member != "NoError")),
                        Expr::Call(..) => {
                            let Val::Applied(hit) = self.value(control, of, names, run)? else { panic!("{value:?}") };
                            return Ok(Val::Bool(hit == (member == "hit")));
                        }
                        _ => {}
                    }
                }
                self.read(&Self::place(value, names), run)
            }
            Expr::Call(function, kinds, arguments) => self.call(control, function, kinds, arguments, names, run)?,
            Expr::Slice(of, high, low) => match self.value(control, of, names, run)? {
                Val::Bits(value, _) => Val::Bits(value >> low & mask(high - low + 1), high - low + 1),
                Val::Wide(bits) => of_bits(&bits[bits.len() - 1 - *high as usize..bits.len() - *low as usize]),
                other => panic!("{other:?}"),
            },
            Expr::Not(of) => Val::Bool(!self.value(control, of, names, run)?.holds()),
            Expr::Cast(Type::Bits(width), of) => {
                Val::Bits(self.value(control, of, names, run)?.number() & mask(*width), *width)
            }
            Expr::Choice(test, yes, no) => {
                let part = if self.value(control, test, names, run)?.holds() { yes } else { no };
                self.value(control, part, names, run)?
            }
            Expr::List(all) => {
                let mut values = Vec::new();
                for it in all {
                    values.push(self.value(control, it, names, run)?);
                }
                Val::List(values)
            }
            Expr::Binary(operator, left, right) => {
                let left = self.value(control, left, names, run)?;
                if (operator == "&&" && !left.holds()) || (operator == "||" && left.holds()) {
                    return Ok(left);
                }
                let right = self.value(control, right, names, run)?;
                binary(operator, &left, &right)
            }
            _ => panic!("{value:?}"),
        })
    }

    fn call<'a>(
        &mut self,
        control: Option<&'a Control>,
        function: &Expr,
        kinds: &[Type],
        arguments: &[Expr],
        names: &Names<'a>,
        run: &mut Run,
    ) -> Result<Val, TooShort> {
        let nothing = Val::List(Vec::new());
        let Expr::Member(of, method) = function else {
            let Expr::Name(name) = function else { panic!("{function:?}") };
            match name.as_str() {
                "mark_to_drop" => {
                    run.values.insert("standard_metadata_t.egress_spec".to_owned(), Val::Bits(511, 9));
                    run.values.insert("standard_metadata_t.mcast_grp".to_owned(), Val::Bits(0, 16));
                }
                "update_checksum" => {
                    if self.value(control, &arguments[0], names, run)?.holds() {
                        let sum = checksum(self.value(control, &arguments[1], names, run)?);
                        run.values.insert(Self::place(&arguments[2], names), sum);
                    }
                }
                _ => self.action(control.expect("a control"), name, &[], names, run),
            }
            return Ok(nothing);
        };
        if let Expr::Name(object) = of.as_ref()
            && !names.parameters.contains_key(object.as_str())
        {
            return self.object(control, object, method, arguments, names, run);
        }
        let object = Self::place(of, names);
        match (object.as_str(), method.as_str()) {
            ("packet_in", "extract") => {
                let header = Self::place(&arguments[0], names);
                let length = match arguments.get(1) {
                    Some(length) => Some(self.value(control, length, names, run)?.number() as usize),
                    None => None,
                };
                self.extract(&header, length, run)?;
            }
            ("packet_in", "advance") => {
                let bits = match &arguments[0] {
                    Expr::Name(name) if name == "PORT_METADATA_SIZE" => PORT_METADATA_BITS,
                    other => panic!("{other:?}"),
                };
                run.take(bits)?;
            }
            ("packet_in", "lookahead") => {
                let Type::Bits(width) = kinds[0] else { panic!("{kinds:?}") };
                let at = run.at;
                let bits = run.take(width as usize)?;
                run.at = at;
                return Ok(of_bits(&bits));
            }
            ("packet_out", "emit") => {
                let what = Self::place(&arguments[0], names);
                self.emit(&what, run);
            }
            (header, "isValid") => return Ok(Val::Bool(run.valid.contains(header))),
            (header, "setValid") => {
                run.valid.insert(header.to_owned());
            }
            (header, "setInvalid") => {
                run.valid.remove(header);
            }
            other => panic!("{other:?}"),
        }
        Ok(nothing)
    }

    /// A method of a table, a register or the like.
    fn object<'a>(
        &mut self,
        control: Option<&'a Control>,
        object: &str,
        method: &str,
        arguments: &[Expr],
        names: &Names<'a>,
        run: &mut Run,
    ) -> Result<Val, TooShort> {
        let nothing = Val::List(Vec::new());
        match method {
            "apply" => {
                let control = control.expect("a control");
                return Ok(Val::Applied(self.apply(control, object, names, run)));
            }
            "read" => {
                let value = self.registers.get(object).map_or(0, |values| values[0]);
                let place = Self::place(&arguments[0], names);
                let Type::Bits(width) = self.type_of(&place) else { panic!("{place}") };
                run.values.insert(place, Val::Bits(value, width));
            }
            "write" => {
                let value = self.value(control, &arguments[1], names, run)?.number();
                self.registers.insert(object.to_owned(), vec![value]);
            }
            "execute" => return Ok(self.execute(control.expect("a control"), object, names, run)),
            "update" => return Ok(checksum(self.value(control, &arguments[0], names, run)?)),
            "set" => run.counter = self.value(control, &arguments[0], names, run)?.number() as i64,
            "decrement" => run.counter -= self.value(control, &arguments[0], names, run)?.number() as i64,
            "is_zero" => return Ok(Val::Bool(run.counter == 0)),
            _ => panic!("{object}.{method}"),
        }
        Ok(nothing)
    }

    /// A register's action: its pair as a local value, and the result.
    fn execute<'a>(&mut self, control: &'a Control, object: &str, names: &Names<'a>, run: &mut Run) -> Val {
        let instance = control.instances.iter().find(|it| it.name == object).expect("an action of a register");
        let Expr::Name(register) = &instance.arguments[0] else { panic!("{instance:?}") };
        let function = &instance.functions[0];
        let [pair, result] = &function.parameters[..] else { panic!("{function:?}") };
        let fields: Vec<String> = self.types[pair.kind_name()].fields.iter().map(|it| it.1.clone()).collect();
        let mut inner = names.clone();
        for (field, value) in fields.iter().zip(&self.registers[register]) {
            inner.locals.insert(format!("{}.{field}", pair.name), Val::Bits(*value, 32));
        }
        inner.locals.insert(result.name.clone(), Val::Bits(0, 32));
        for statement in &function.body {
            assert!(self.statement(Some(control), statement, &mut inner, run).is_ok());
        }
        let values = fields.iter().map(|field| inner.locals[&format!("{}.{field}", pair.name)].number()).collect();
        self.registers.insert(register.clone(), values);
        inner.locals[&result.name].clone()
    }

    fn apply<'a>(&mut self, control: &'a Control, name: &str, names: &Names<'a>, run: &mut Run) -> bool {
        let table = control.tables.iter().find(|it| it.name == name).expect("a table");
        let mut values = Vec::new();
        for (value, ..) in &table.keys {
            // A key may be anything as long as no entry of the other keys' values asks for it.
            if let Expr::Member(of, _) = value
                && matches!(of.as_ref(), Expr::Name(_) | Expr::Member(..))
                && let place = Self::place(value, names)
                && let Type::Bits(width @ ..=128) = self.type_of(&place)
                && !run.values.contains_key(&place)
            {
                values.push((ANYTHING & mask(width), width));
                continue;
            }
            let Ok(value) = self.value(Some(control), value, names, run) else { panic!("{value:?}") };
            values.push(match value {
                Val::Bits(value, width) => (value, width),
                other => (other.number(), 1),
            });
        }
        let full = format!("{}.{name}", control.name);
        let matching = |entry: &&Entry| {
            entry.keys.iter().zip(&values).all(|(key, (value, width))| match key {
                Key::Exact(wanted) => value == wanted,
                Key::Lpm(wanted, length) => (value ^ wanted) & mask(*width) & !mask(width - length) == 0,
                Key::Range(low, high) => low <= value && value <= high,
                Key::Ternary(wanted, bits) => value & bits == *wanted,
                Key::Any => true,
            })
        };
        let length = |entry: &&Entry| {
            entry.keys.iter().map(|key| if let Key::Lpm(_, length) = key { *length } else { 0 }).sum::<u32>()
        };
        let found = self.entries.get(&full).into_iter().flatten().filter(matching);
        let best = match self.first {
            First::SmallestPriority => found.min_by_key(|it| (it.priority, std::cmp::Reverse(length(it)))),
            First::GreatestPriority => found.max_by_key(|it| (it.priority, length(it))),
        };
        let hit = best.is_some();
        let (action, data) = match (best, self.defaults.get(&full)) {
            (Some(entry), _) => (entry.action.clone(), entry.data.clone()),
            (None, Some((action, data))) => (action.clone(), data.clone()),
            (None, None) => {
                let number = |it: &Expr| if let Expr::Number(value, _) = it { *value } else { panic!("{it:?}") };
                (table.default.0.clone(), table.default.1.iter().map(number).collect())
            }
        };
        self.action(control, &action, &data, names, run);
        hit
    }

    fn action<'a>(&mut self, control: &'a Control, name: &str, data: &[u128], names: &Names<'a>, run: &mut Run) {
        let action = control.actions.iter().find(|it| it.name == name).expect("an action");
        let mut inner = names.clone();
        for (parameter, value) in action.parameters.iter().zip(data) {
            let Type::Bits(width) = parameter.kind else { panic!("{parameter:?}") };
            inner.locals.insert(parameter.name.clone(), Val::Bits(*value, width));
        }
        for statement in &action.body {
            assert!(self.statement(Some(control), statement, &mut inner, run).is_ok());
        }
    }

    fn extract(&self, header: &str, length: Option<usize>, run: &mut Run) -> Result<(), TooShort> {
        let Type::Named(kind, _) = self.type_of(header) else { panic!("{header}") };
        let before = run.at;
        let all: usize = self.types[&kind]
            .fields
            .iter()
            .map(|(kind, _)| match kind {
                Type::Bits(width) => *width as usize,
                Type::Varbit(most) => length.filter(|length| *length <= *most as usize).unwrap_or(usize::MAX),
                _ => panic!("{header}"),
            })
            .fold(0, usize::saturating_add);
        run.take(all)?;
        run.at = before;
        for (kind, name) in &self.types[&kind].fields {
            let width = if let Type::Bits(width) = kind { *width as usize } else { all };
            let bits = run.take(width)?;
            let value = if matches!(kind, Type::Varbit(_)) { Val::Wide(bits) } else { of_bits(&bits) };
            run.values.insert(format!("{header}.{name}"), value);
        }
        run.valid.insert(header.to_owned());
        Ok(())
    }

    /// A header, or all of a structure's.
    fn emit(&self, place: &str, run: &mut Run) {
        let Type::Named(kind, _) = self.type_of(place) else { panic!("{place}") };
        let fields = &self.types[&kind];
        if !fields.is_header {
            fields.fields.iter().for_each(|(_, name)| self.emit(&format!("{place}.{name}"), run));
            return;
        }
        if !run.valid.contains(place) {
            return;
        }
        for (kind, name) in &fields.fields {
            match (run.values.get(&format!("{place}.{name}")), kind) {
                (Some(Val::Bits(value, width)), _) => run.out.extend(to_bits(*value, *width)),
                (Some(Val::Wide(bits)), _) => run.out.extend(bits),
                // What was never set is anything.
                (None, Type::Bits(width)) => run.out.extend((0..*width).map(|bit| bit % 2 == 0)),
                other => panic!("{other:?}"),
            }
        }
    }
}

impl Run {
    fn take(&mut self, bits: usize) -> Result<Vec<bool>, TooShort> {
        let end = self.at.checked_add(bits).filter(|end| *end <= self.packet.len()).ok_or(TooShort)?;
        let taken = self.packet[self.at..end].to_vec();
        self.at = end;
        Ok(taken)
    }

    /// The packet with what was emitted in front of what was not parsed.
    fn packet_out(&self) -> Vec<bool> {
        self.out.iter().chain(&self.packet[self.at..]).copied().collect()
    }

    fn sent(&self) -> Vec<u8> {
        self.packet_out().chunks(8).map(|byte| byte.iter().fold(0, |all, bit| all << 1 | u8::from(*bit))).collect()
    }
}

fn binary(operator: &str, left: &Val, right: &Val) -> Val {
    if let (Val::Error(left), Val::Error(right)) = (left, right) {
        return Val::Bool((left == right) == (operator == "=="));
    }
    let (a, b) = (left.number(), right.number());
    let width = match (left, right) {
        (Val::Bits(_, 0), Val::Bits(_, width)) => *width,
        (Val::Bits(_, width), _) => *width,
        _ => 1,
    };
    let bits = |value: u128| Val::Bits(value & mask(width), width);
    match operator {
        "&&" | "||" => right.clone(),
        "==" => Val::Bool(a == b),
        "!=" => Val::Bool(a != b),
        "<" => Val::Bool(a < b),
        ">" => Val::Bool(a > b),
        "<=" => Val::Bool(a <= b),
        ">=" => Val::Bool(a >= b),
        "+" => bits(a.wrapping_add(b)),
        "-" => bits(a.wrapping_sub(b)),
        "|+|" => Val::Bits(a.saturating_add(b).min(mask(width)), width),
        "*" => bits(a.wrapping_mul(b)),
        "&" => bits(a & b),
        "|" => bits(a | b),
        "^" => bits(a ^ b),
        "<<" => bits(a.checked_shl(b as u32).unwrap_or(0)),
        ">>" => bits(a.checked_shr(b as u32).unwrap_or(0)),
        _ => panic!("operator {operator}"),
    }
}

/// The ones' complement sum of 16 bits.
fn checksum(data: Val) -> Val {
    let Val::List(values) = data else { panic!("{data:?}") };
    let mut bits = Vec::new();
    for value in values {
        let Val::Bits(value, width) = value else { panic!("{value:?}") };
        bits.extend(to_bits(value, width));
    }
    assert_eq!(bits.len() % 16, 0);
    let word = |bits: &[bool]| bits.iter().fold(0u32, |word, bit| word << 1 | u32::from(*bit));
    let mut sum: u32 = bits.chunks(16).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    Val::Bits(u128::from(!sum & 0xffff), 16)
}
