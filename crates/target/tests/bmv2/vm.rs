//! A small interpreter of bmv2's JSON, written after its documentation and not after the generator: it knows nothing of
//! programs but the document and the entries.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Place = (String, String);

/// A key of an entry.
#[derive(Clone, PartialEq, Debug)]
pub enum Key {
    Exact(u128),
    Lpm(u128, u32),
    Range(u128, u128),
    Ternary(u128, u128),
    /// Left out: anything.
    Any,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub keys: Vec<Key>,
    pub action: String,
    pub data: Vec<u128>,
    pub priority: Option<i64>,
}

/// Which of several entries that match wins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    SmallestPriority,
    GreatestPriority,
}

pub struct Switch {
    program: Value,
    first: First,
    pub entries: BTreeMap<String, Vec<Entry>>,
    pub defaults: BTreeMap<String, (String, Vec<u128>)>,
    pub groups: BTreeMap<u128, Vec<u16>>,
    registers: BTreeMap<String, u128>,
}

/// One packet on its way.
#[derive(Clone, Default)]
struct Run {
    fields: BTreeMap<Place, u128>,
    valid: BTreeSet<String>,
    variable: BTreeMap<String, Vec<u8>>,
    payload: Vec<u8>,
}

/// Where a packet went, its bytes there, and what the metadata held at the end of ingress.
pub struct Sent {
    pub copies: Vec<(u16, Vec<u8>)>,
    pub metadata: BTreeMap<String, u128>,
}

pub fn number(text: &str) -> u128 {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).expect("hexadecimal"),
        None => text.parse().expect("decimal"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn place(value: &Value) -> Place {
    (text(&value[0]).to_owned(), text(&value[1]).to_owned())
}

fn mask(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - width.min(128)) }
}

impl Switch {
    pub fn new(program: &str, first: First) -> Switch {
        let program: Value = serde_json::from_str(program).expect("JSON");
        assert_eq!(program["__meta__"]["version"], serde_json::json!([2, 18]));
        let switch = Switch {
            program,
            first,
            entries: BTreeMap::new(),
            defaults: BTreeMap::new(),
            groups: BTreeMap::new(),
            registers: BTreeMap::new(),
        };
        switch.check();
        switch
    }

    /// What bmv2 checks when it loads a document: names exist, numbers are unique, types are whole bytes.
    fn check(&self) {
        for kind in list(&self.program["header_types"]) {
            let bits: u64 = list(&kind["fields"]).iter().filter_map(|field| field[1].as_u64()).sum();
            assert_eq!(bits % 8, 0, "{}", kind["name"]);
        }
        let mut ids = BTreeSet::new();
        for pipeline in list(&self.program["pipelines"]) {
            let tables = list(&pipeline["tables"]);
            let names: BTreeSet<&str> =
                tables.iter().chain(list(&pipeline["conditionals"])).map(|it| text(&it["name"])).collect();
            let known = |next: &Value| next.is_null() || names.contains(text(next));
            assert!(known(&pipeline["init_table"]));
            for table in tables {
                assert!(ids.insert(table["id"].as_u64()), "{}", table["name"]);
                assert!(known(&table["next_tables"]["__HIT__"]) && known(&table["next_tables"]["__MISS__"]));
                assert!(known(&table["base_default_next"]));
                let actions = list(&self.program["actions"]);
                for (id, name) in list(&table["action_ids"]).iter().zip(list(&table["actions"])) {
                    assert_eq!(actions[id.as_u64().unwrap() as usize]["name"], *name);
                }
                let kinds: Vec<&str> = list(&table["key"]).iter().map(|key| text(&key["match_type"])).collect();
                let whole = ["range", "ternary", "lpm"].into_iter().find(|kind| kinds.contains(kind));
                assert_eq!(text(&table["match_type"]), whole.unwrap_or("exact"));
                for key in list(&table["key"]) {
                    self.width(&place(&key["target"]));
                }
            }
            for test in list(&pipeline["conditionals"]) {
                assert!(known(&test["true_next"]) && known(&test["false_next"]));
            }
        }
        let actions = list(&self.program["actions"]);
        assert!(actions.iter().enumerate().all(|(id, action)| action["id"] == id));
    }

    pub fn table(&self, name: &str) -> &Value {
        let pipelines = list(&self.program["pipelines"]);
        let mut tables = pipelines.iter().flat_map(|pipeline| list(&pipeline["tables"]));
        tables.find(|table| table["name"] == name).unwrap_or_else(|| panic!("table {name}"))
    }

    /// The names of tables, or of actions, that there are.
    pub fn names(&self, actions: bool) -> Vec<&str> {
        if actions {
            return list(&self.program["actions"]).iter().map(|it| text(&it["name"])).collect();
        }
        let pipelines = list(&self.program["pipelines"]);
        pipelines.iter().flat_map(|pipeline| list(&pipeline["tables"])).map(|it| text(&it["name"])).collect()
    }

    /// Widths of a table's keys.
    pub fn key_widths(&self, table: &str) -> Vec<u32> {
        list(&self.table(table)["key"]).iter().map(|key| self.width(&place(&key["target"]))).collect()
    }

    /// An action of a table with its number.
    pub fn action(&self, table: &str, name: &str) -> &Value {
        let table = self.table(table);
        let place = list(&table["actions"]).iter().position(|action| action == name).expect("an action of the table");
        let id = table["action_ids"][place].as_u64().expect("a number");
        &self.program["actions"][id as usize]
    }

    pub fn add(&mut self, table: &str, entry: Entry) {
        let parameters = list(&self.action(table, &entry.action)["runtime_data"]).to_vec();
        assert_eq!(parameters.len(), entry.data.len(), "{table} {entry:?}");
        for (parameter, value) in parameters.iter().zip(&entry.data) {
            assert!(*value <= mask(parameter["bitwidth"].as_u64().unwrap() as u32), "{table} {entry:?}");
        }
        let widths = self.key_widths(table);
        assert_eq!(widths.len(), entry.keys.len());
        let kinds: Vec<String> =
            list(&self.table(table)["key"]).iter().map(|key| text(&key["match_type"]).to_owned()).collect();
        for ((key, width), kind) in entry.keys.iter().zip(widths).zip(&kinds) {
            let fits = |value: &u128| *value <= mask(width);
            match (key, kind.as_str()) {
                (Key::Exact(value), "exact") => assert!(fits(value)),
                (Key::Lpm(value, length), "lpm") => assert!(fits(value) && *length <= width),
                (Key::Range(low, high), "range") => assert!(low <= high && fits(high), "{entry:?}"),
                (Key::Ternary(value, bits), "ternary") => assert!(fits(value) && fits(bits) && value & !bits == 0),
                (Key::Any, "lpm" | "range" | "ternary") => {}
                _ => panic!("{key:?} in a key of kind {kind}"),
            }
        }
        let needs = kinds.iter().any(|kind| kind == "range" || kind == "ternary");
        assert_eq!(entry.priority.is_some(), needs, "{table} {entry:?}");
        assert!(entry.priority.is_none_or(|priority| priority > 0));
        let size = self.table(table)["max_size"].as_u64().unwrap() as usize;
        let entries = self.entries.entry(table.to_owned()).or_default();
        let same = |it: &&Entry| it.keys == entry.keys && it.priority == entry.priority;
        assert!(entries.iter().find(same).is_none(), "{table}: DUPLICATE_ENTRY {entry:?}");
        entries.push(entry);
        assert!(entries.len() <= size, "{table} is full");
    }

    pub fn set_default(&mut self, table: &str, action: &str, data: Vec<u128>) {
        assert_eq!(list(&self.action(table, action)["runtime_data"]).len(), data.len());
        self.defaults.insert(table.to_owned(), (action.to_owned(), data));
    }

    fn width(&self, field: &Place) -> u32 {
        if field.1 == "$valid$" {
            return 1;
        }
        let headers = list(&self.program["headers"]);
        let header = headers.iter().find(|it| it["name"] == field.0).unwrap_or_else(|| panic!("{field:?}"));
        let kind = self.header_type(text(&header["header_type"]));
        let known = list(&kind["fields"]).iter().find(|it| it[0] == field.1).unwrap_or_else(|| panic!("{field:?}"));
        known[1].as_u64().expect("a width") as u32
    }

    fn header_type(&self, name: &str) -> &Value {
        list(&self.program["header_types"]).iter().find(|it| it["name"] == name).expect("a type")
    }

    fn type_of(&self, header: &str) -> &Value {
        let found = list(&self.program["headers"]).iter().find(|it| it["name"] == header).expect("a header");
        self.header_type(text(&found["header_type"]))
    }

    /// The field that an alias stands for.
    fn alias(&self, name: &str) -> Option<Place> {
        let found = list(&self.program["field_aliases"]).iter().find(|it| it[0] == name)?;
        Some(place(&found[1]))
    }

    pub fn packet(&mut self, from: u16, frame: &[u8], now_us: u64) -> Sent {
        let mut run = self.parse(frame);
        if let Some(clock) = self.alias("intrinsic_metadata.ingress_global_timestamp") {
            run.fields.insert(clock, now_us.into());
        }
        run.fields.insert(("standard_metadata".to_owned(), "ingress_port".to_owned()), from.into());
        self.pipeline(0, &mut run);
        let metadata = run.fields.iter().filter(|((header, _), _)| header == "meta");
        let metadata = metadata.map(|((_, field), value)| (field.clone(), *value)).collect();
        let standard = |field: &str| ("standard_metadata".to_owned(), field.to_owned());
        // Without the alias the switch does not see the group.
        let group = self.alias("intrinsic_metadata.mcast_grp").map_or(0, |place| run.get(&place));
        let ports = if group != 0 {
            self.groups.get(&group).cloned().unwrap_or_default()
        } else {
            let port = run.get(&standard("egress_spec"));
            if port == 511 { Vec::new() } else { vec![port as u16] }
        };
        let mut copies = Vec::new();
        for port in ports {
            let mut copy = run.clone();
            copy.fields.insert(standard("egress_port"), port.into());
            copy.fields.insert(standard("egress_spec"), 0);
            self.pipeline(1, &mut copy);
            if copy.get(&standard("egress_spec")) != 511 {
                self.checksums(&mut copy);
                copies.push((port, self.deparse(&copy)));
            }
        }
        Sent { copies, metadata }
    }

    fn parse(&self, frame: &[u8]) -> Run {
        let mut run = Run::default();
        let parser = &self.program["parsers"][0];
        let mut at = 0;
        let mut name = parser["init_state"].clone();
        let failed = 'parse: loop {
            if name.is_null() {
                break false;
            }
            let state = list(&parser["parse_states"]).iter().find(|it| it["name"] == name).expect("a state");
            for operation in list(&state["parser_ops"]) {
                let parameters = list(&operation["parameters"]);
                match text(&operation["op"]) {
                    "extract" => {
                        let header = text(&parameters[0]["value"]);
                        let mut bit = at * 8;
                        for field in list(&self.type_of(header)["fields"]) {
                            let width = field[1].as_u64().expect("a width") as usize;
                            if bit + width > frame.len() * 8 {
                                break 'parse true;
                            }
                            run.fields.insert((header.to_owned(), text(&field[0]).to_owned()), bits(frame, bit, width));
                            // Wider than numbers here: kept as bytes, which only whole ones can be.
                            if width > 128 {
                                let key = format!("{header}.{}", text(&field[0]));
                                run.variable.insert(key, frame[bit / 8..(bit + width) / 8].to_vec());
                            }
                            bit += width;
                        }
                        run.valid.insert(header.to_owned());
                        at = bit / 8;
                    }
                    "extract_VL" => {
                        let header = text(&parameters[0]["value"]);
                        assert_eq!(parameters[1]["type"], "expression");
                        let length = self.value(&parameters[1]["value"], &run, &[]) as usize;
                        let most = self.type_of(header)["max_length"].as_u64().expect("a length") as usize;
                        if !length.is_multiple_of(8) || length / 8 > most || at + length / 8 > frame.len() {
                            break 'parse true;
                        }
                        run.variable.insert(header.to_owned(), frame[at..at + length / 8].to_vec());
                        run.valid.insert(header.to_owned());
                        at += length / 8;
                    }
                    "set" => {
                        let value = self.parameter(&parameters[1], &run, &[]);
                        self.set(&mut run, &place(&parameters[0]["value"]), value);
                    }
                    other => panic!("parser operation {other}"),
                }
            }
            let mut key = Vec::new();
            for part in list(&state["transition_key"]) {
                let (value, width) = match text(&part["type"]) {
                    "field" => {
                        let field = place(&part["value"]);
                        (run.get(&field), self.width(&field) as usize)
                    }
                    "lookahead" => {
                        let offset = part["value"][0].as_u64().expect("an offset") as usize;
                        let width = part["value"][1].as_u64().expect("a width") as usize;
                        if at * 8 + offset + width > frame.len() * 8 {
                            break 'parse true;
                        }
                        (bits(frame, at * 8 + offset, width), width)
                    }
                    other => panic!("transition key {other}"),
                };
                // Each part takes whole bytes.
                key.extend_from_slice(&value.to_be_bytes()[16 - width.div_ceil(8)..]);
            }
            let matches = |it: &&Value| {
                if it["type"] == "default" {
                    return true;
                }
                let value = bytes(text(&it["value"]));
                assert_eq!(value.len(), key.len());
                let mask = if it["mask"].is_null() { vec![255; key.len()] } else { bytes(text(&it["mask"])) };
                key.iter().zip(&value).zip(&mask).all(|((key, value), mask)| key & mask == value & mask)
            };
            name = list(&state["transitions"]).iter().find(matches).expect("a default")["next_state"].clone();
        };
        if failed {
            run.fields.insert(("standard_metadata".to_owned(), "parser_error".to_owned()), 1);
        }
        run.payload = frame[at.min(frame.len())..].to_vec();
        run
    }

    fn pipeline(&mut self, index: usize, run: &mut Run) {
        let pipeline = self.program["pipelines"][index].clone();
        let mut next = pipeline["init_table"].clone();
        while !next.is_null() {
            if let Some(test) = list(&pipeline["conditionals"]).iter().find(|it| it["name"] == next) {
                let holds = self.value(&test["expression"], run, &[]) != 0;
                next = test[if holds { "true_next" } else { "false_next" }].clone();
                continue;
            }
            let table = list(&pipeline["tables"]).iter().find(|it| it["name"] == next).expect("a table");
            let name = text(&table["name"]);
            let found = self.look_up(table, run).cloned();
            let (action, data) = match &found {
                Some(entry) => (entry.action.clone(), entry.data.clone()),
                None => self.defaults.get(name).cloned().unwrap_or_else(|| {
                    let default = &table["default_entry"];
                    let id = default["action_id"].as_u64().expect("an action") as usize;
                    let data = list(&default["action_data"]).iter().map(|it| number(text(it))).collect();
                    (text(&self.program["actions"][id]["name"]).to_owned(), data)
                }),
            };
            let action = self.action(name, &action).clone();
            self.execute(&action, &data, run);
            next = table["next_tables"][if found.is_some() { "__HIT__" } else { "__MISS__" }].clone();
        }
    }

    fn look_up(&self, table: &Value, run: &Run) -> Option<&Entry> {
        let entries = self.entries.get(text(&table["name"]))?;
        let values: Vec<(u128, u32)> = list(&table["key"])
            .iter()
            .map(|key| {
                let target = place(&key["target"]);
                (self.key_value(&target, run), self.width(&target))
            })
            .collect();
        let matching = |entry: &&Entry| {
            entry.keys.iter().zip(&values).all(|(key, (value, width))| match key {
                Key::Exact(wanted) => value == wanted,
                // The trie knows the bytes that the value is kept in, and counts from the top of these.
                Key::Lpm(wanted, length) => {
                    let host = mask(width.next_multiple_of(8) - length);
                    value & !host == wanted & !host
                }
                Key::Range(low, high) => low <= value && value <= high,
                Key::Ternary(wanted, bits) => value & bits == wanted & bits,
                Key::Any => true,
            })
        };
        let longest = |entry: &Entry| -> u32 {
            entry.keys.iter().map(|key| if let Key::Lpm(_, length) = key { *length } else { 0 }).sum()
        };
        let found = entries.iter().filter(matching);
        match (text(&table["match_type"]), self.first) {
            ("lpm", _) => found.max_by_key(|entry| longest(entry)),
            (_, First::SmallestPriority) => found.min_by_key(|entry| entry.priority),
            (_, First::GreatestPriority) => found.max_by_key(|entry| entry.priority),
        }
    }

    /// A field as a key of a table: in headers that are not there all are 0.
    fn key_value(&self, field: &Place, run: &Run) -> u128 {
        let is_metadata =
            list(&self.program["headers"]).iter().any(|it| it["name"] == field.0 && it["metadata"] == true);
        let is_there = is_metadata || field.1 == "$valid$" || run.valid.contains(&field.0);
        if is_there { run.get(field) } else { 0 }
    }

    fn execute(&mut self, action: &Value, data: &[u128], run: &mut Run) {
        for primitive in list(&action["primitives"]) {
            let parameters = list(&primitive["parameters"]);
            match text(&primitive["op"]) {
                "assign" => {
                    let value = self.parameter(&parameters[1], run, data);
                    self.set(run, &place(&parameters[0]["value"]), value);
                }
                "remove_header" => {
                    run.valid.remove(text(&parameters[0]["value"]));
                }
                "mark_to_drop" => {
                    let header = text(&parameters[0]["value"]).to_owned();
                    run.fields.insert((header.clone(), "egress_spec".to_owned()), 511);
                    run.fields.insert((header, "mcast_grp".to_owned()), 0);
                }
                "register_read" => {
                    let value = self.registers.get(text(&parameters[1]["value"])).copied().unwrap_or(0);
                    self.set(run, &place(&parameters[0]["value"]), value);
                }
                "register_write" => {
                    let value = self.parameter(&parameters[2], run, data);
                    self.registers.insert(text(&parameters[0]["value"]).to_owned(), value);
                }
                other => panic!("primitive {other}"),
            }
        }
    }

    fn set(&self, run: &mut Run, field: &Place, value: u128) {
        run.fields.insert(field.clone(), value & mask(self.width(field)));
    }

    fn parameter(&self, parameter: &Value, run: &Run, data: &[u128]) -> u128 {
        match text(&parameter["type"]) {
            "runtime_data" => data[parameter["value"].as_u64().expect("an index") as usize],
            "expression" => self.value(&parameter["value"], run, data),
            _ => self.value(parameter, run, data),
        }
    }

    fn value(&self, value: &Value, run: &Run, data: &[u128]) -> u128 {
        match text(&value["type"]) {
            "field" => run.get(&place(&value["value"])),
            "hexstr" => number(text(&value["value"])),
            "local" => data[value["value"].as_u64().expect("an index") as usize],
            "expression" => {
                let it = &value["value"];
                let left = || self.value(&it["left"], run, data);
                let right = || self.value(&it["right"], run, data);
                match text(&it["op"]) {
                    "d2b" => right(),
                    "?" if self.value(&it["cond"], run, data) != 0 => left(),
                    "?" => right(),
                    "and" => u128::from(left() != 0 && right() != 0),
                    "or" => u128::from(left() != 0 || right() != 0),
                    "==" => u128::from(left() == right()),
                    "!=" => u128::from(left() != right()),
                    "<" => u128::from(left() < right()),
                    ">" => u128::from(left() > right()),
                    ">=" => u128::from(left() >= right()),
                    "&" => left() & right(),
                    "|" => left() | right(),
                    "+" => left().wrapping_add(right()),
                    "-" => left().wrapping_sub(right()),
                    "<<" => left() << right(),
                    ">>" => left() >> right(),
                    "*" => left().checked_mul(right()).expect("bmv2's numbers have no end, these do"),
                    other => panic!("operation {other}"),
                }
            }
            other => panic!("value {other}"),
        }
    }

    fn checksums(&self, run: &mut Run) {
        for checksum in list(&self.program["checksums"]) {
            if checksum["update"] != true || self.value(&checksum["if_cond"], run, &[]) == 0 {
                continue;
            }
            let calculations = list(&self.program["calculations"]);
            let calculation = calculations.iter().find(|it| it["name"] == checksum["calculation"]).expect("it");
            assert_eq!(calculation["algo"], "csum16");
            let mut bits = Vec::new();
            for input in list(&calculation["input"]) {
                let field = place(&input["value"]);
                let (value, width) = (run.get(&field), self.width(&field));
                bits.extend((0..width).rev().map(|bit| value >> bit & 1));
            }
            assert_eq!(bits.len() % 16, 0);
            let word = |bits: &[u128]| bits.iter().fold(0u32, |word, bit| word << 1 | *bit as u32);
            let mut sum: u32 = bits.chunks(16).map(word).sum();
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            self.set(run, &place(&checksum["target"]), u128::from(!sum & 0xffff));
        }
    }

    fn deparse(&self, run: &Run) -> Vec<u8> {
        let mut bits: Vec<bool> = Vec::new();
        for header in list(&self.program["deparsers"][0]["order"]).iter().map(text) {
            if !run.valid.contains(header) {
                continue;
            }
            let of_bytes = |bytes: &[u8]| -> Vec<bool> {
                bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
            };
            if let Some(bytes) = run.variable.get(header) {
                bits.extend(of_bytes(bytes));
                continue;
            }
            for field in list(&self.type_of(header)["fields"]) {
                let name = text(&field[0]);
                match run.variable.get(&format!("{header}.{name}")) {
                    Some(bytes) => bits.extend(of_bytes(bytes)),
                    None => {
                        let value = run.get(&(header.to_owned(), name.to_owned()));
                        let width = field[1].as_u64().expect("a width");
                        bits.extend((0..width).rev().map(|bit| value >> bit & 1 == 1));
                    }
                }
            }
        }
        let mut out: Vec<u8> =
            bits.chunks(8).map(|byte| byte.iter().fold(0, |all, bit| all << 1 | u8::from(*bit))).collect();
        out.extend_from_slice(&run.payload);
        out
    }
}

impl Run {
    fn get(&self, field: &Place) -> u128 {
        if field.1 == "$valid$" {
            return self.valid.contains(&field.0).into();
        }
        self.fields.get(field).copied().unwrap_or(0)
    }
}

fn bits(frame: &[u8], at: usize, width: usize) -> u128 {
    (at..at + width).fold(0, |value, bit| value << 1 | u128::from(frame[bit / 8] >> (7 - bit % 8) & 1))
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("0x").expect("hexadecimal");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}
