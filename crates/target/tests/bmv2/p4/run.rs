//! Runs programs as their texts say, packet by packet.

mod expressions;
mod objects;
mod value;

use super::architectures::{Kind, PORT_METADATA_BITS};
use super::check::Checker;
use super::syntax::*;
use crate::vm::{Entry, First, Key, Sent};
use std::collections::{BTreeMap, BTreeSet};
use value::*;

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

/// A packet was too short.
struct TooShort;

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
        let local = self.local_action(name, &entry.action);
        let action = control.actions.iter().find(|it| it.name == local).expect("an action");
        assert!(action.parameters.len() == entry.data.len());
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
        all.push(Entry { action: local, ..entry });
        assert!(all.len() as u128 <= size, "{name} is full");
    }

    pub fn set_default(&mut self, name: &str, action: &str, data: Vec<u128>) {
        let local = self.local_action(name, action);
        self.defaults.insert(name.to_owned(), (local, data));
    }

    /// An action of a table as the text has it: runtimes know it with its control's name in front.
    fn local_action(&self, table: &str, action: &str) -> String {
        let (control, known) = self.table(table);
        let local = action.strip_prefix(&format!("{}.", control.name)).unwrap_or_default();
        assert!(known.actions.iter().any(|it| it == local), "Table {table} has no action {action}");
        local.to_owned()
    }

    /// A packet that came in by a port at a time in the clock's unit.
    pub fn packet(&mut self, from: u16, frame: &[u8], now: u64) -> Sent {
        let frame: Vec<bool> = frame.iter().flat_map(|byte| to_bits((*byte).into(), 8)).collect();
        match self.kind {
            Kind::V1model => self.v1model(from, frame, now),
            Kind::Tna => self.tna(from, frame, now),
        }
    }

    fn v1model(&mut self, from: u16, frame: Vec<bool>, now: u64) -> Sent {
        let blocks = self.blocks.clone();
        let mut run = Run { packet: frame, ..Run::default() };
        let standard = |field: &str| format!("standard_metadata_t.{field}");
        run.values.insert(standard("ingress_global_timestamp"), Val::Bits(now.into(), 48));
        run.values.insert(standard("ingress_port"), Val::Bits(from.into(), 9));
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

    fn tna(&mut self, from: u16, frame: Vec<bool>, now: u64) -> Sent {
        let blocks = self.blocks.clone();
        let mut run = Run {
            packet: self.intrinsic("ingress_intrinsic_metadata_t", "ingress_port", from.into()),
            ..Run::default()
        };
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
