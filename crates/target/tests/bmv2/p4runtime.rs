//! Entries of P4Runtime into an interpreter: a reader of protocol buffers' text format, and of messages it needs.

use super::vm::{Entry, First, Key, Switch};
use std::collections::BTreeMap;

/// A message: fields in order.
#[derive(Debug, Default)]
pub struct Message(Vec<(String, Value)>);

#[derive(Debug)]
enum Value {
    Message(Message),
    Scalar(String),
    Bytes(Vec<u8>),
}

impl Message {
    pub fn read(text: &str) -> Message {
        let mut tokens = tokens(text).into_iter();
        message(&mut tokens)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Message> {
        self.0.iter().filter_map(move |(field, value)| match value {
            Value::Message(message) if field == name => Some(message),
            _ => None,
        })
    }

    fn one<'a>(&'a self, name: &'a str) -> Option<&'a Message> {
        self.all(name).next()
    }

    fn scalar(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(field, value)| match value {
            Value::Scalar(text) if field == name => Some(text.as_str()),
            _ => None,
        })
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.scalar(name).map(|text| text.parse().expect("a number"))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find_map(|(field, value)| match value {
            Value::Bytes(bytes) if field == name => Some(bytes.as_slice()),
            _ => None,
        })
    }

    fn value(&self, name: &str) -> u128 {
        let bytes = self.bytes(name).expect("a value");
        // Canonical: no zero in front, except for zero itself.
        assert!(!bytes.is_empty() && (bytes.len() == 1 || bytes[0] != 0), "{bytes:?}");
        bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 2 + rest[1..].find('"').expect("an end of the text"),
            '{' | '}' | ':' => 1,
            _ => rest.find(|c: char| c.is_whitespace() || "{}:".contains(c)).unwrap_or(rest.len()),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

fn message(tokens: &mut std::vec::IntoIter<String>) -> Message {
    let mut fields = Vec::new();
    while let Some(name) = tokens.next() {
        if name == "}" {
            break;
        }
        let value = match tokens.next().as_deref() {
            Some("{") => Value::Message(message(tokens)),
            Some(":") => {
                let text = tokens.next().expect("a value");
                match text.strip_prefix('"') {
                    Some(quoted) => Value::Bytes(unescaped(quoted.strip_suffix('"').expect("an end"))),
                    None => Value::Scalar(text),
                }
            }
            other => panic!("{name} {other:?}"),
        };
        fields.push((name, value));
    }
    Message(fields)
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(digits) = rest.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(&digits[..2], 16).expect("digits"));
            rest = &digits[2..];
        } else {
            bytes.push(rest.as_bytes()[0]);
            rest = &rest[1..];
        }
    }
    bytes
}

/// Number, width and kind of a table's keys.
type Keys = Vec<(u32, u32, String)>;

/// The names of things by their numbers, as the P4Info has them.
struct Info {
    tables: BTreeMap<u32, (String, Keys, usize)>,
    actions: BTreeMap<u32, String>,
}

fn info(text: &str) -> Info {
    let all = Message::read(text);
    let mut found = Info { tables: BTreeMap::new(), actions: BTreeMap::new() };
    for table in all.all("tables") {
        let preamble = table.one("preamble").expect("a name");
        let keys = table.all("match_fields").map(|key| {
            let kind = key.scalar("match_type").expect("a kind").to_owned();
            (key.number("id").expect("a number"), key.number("bitwidth").expect("a width"), kind)
        });
        let id = preamble.number("id").expect("a number");
        assert_eq!(id >> 24, 2);
        let size = table.number("size").expect("a size") as usize;
        let before = found.tables.insert(id, (preamble.text("name").expect("a name"), keys.collect(), size));
        assert!(before.is_none());
    }
    for action in all.all("actions") {
        let preamble = action.one("preamble").expect("a name");
        let id = preamble.number("id").expect("a number");
        assert_eq!(id >> 24, 1);
        assert!(found.actions.insert(id, preamble.text("name").expect("a name")).is_none());
    }
    found
}

/// Loads the same program with entries of a `WriteRequest`.
pub fn load(program: &str, p4info: &str, entries: &str) -> Switch {
    let info = info(p4info);
    let mut switch = Switch::new(program, First::GreatestPriority);
    for update in Message::read(entries).all("updates") {
        let entity = update.one("entity").expect("an entity");
        if let Some(engine) = entity.one("packet_replication_engine_entry") {
            let group = engine.one("multicast_group_entry").expect("a group");
            let ports = group.all("replicas").map(|it| it.number("egress_port").expect("a port") as u16).collect();
            let id = group.number("multicast_group_id").expect("a number");
            assert!(switch.groups.insert(id.into(), ports).is_none());
            continue;
        }
        let entry = entity.one("table_entry").expect("a table's entry");
        let (table, keys, size) = &info.tables[&entry.number("table_id").expect("a table")];
        let action = entry.one("action").and_then(|it| it.one("action")).expect("an action");
        let name = info.actions[&action.number("action_id").expect("an action")].clone();
        let mut data = Vec::new();
        for (index, parameter) in action.all("params").enumerate() {
            assert_eq!(parameter.number("param_id"), Some(index as u32 + 1));
            data.push(parameter.value("value"));
        }
        if entry.scalar("is_default_action") == Some("true") {
            assert_eq!(update.scalar("type"), Some("MODIFY"));
            switch.set_default(table, &name, data);
            continue;
        }
        assert_eq!(update.scalar("type"), Some("INSERT"));
        let key = |(id, _, kind): &(u32, u32, String)| {
            let found = entry.all("match").find(|it| it.number("field_id") == Some(*id));
            let Some(found) = found else { return Key::Any };
            match kind.as_str() {
                "EXACT" => Key::Exact(found.one("exact").expect("exact").value("value")),
                "LPM" => {
                    let it = found.one("lpm").expect("lpm");
                    let length = it.number("prefix_len").expect("a length");
                    assert!(length > 0);
                    Key::Lpm(it.value("value"), length)
                }
                "RANGE" => {
                    let it = found.one("range").expect("range");
                    Key::Range(it.value("low"), it.value("high"))
                }
                "TERNARY" => {
                    let it = found.one("ternary").expect("ternary");
                    Key::Ternary(it.value("value"), it.value("mask"))
                }
                other => panic!("match type {other}"),
            }
        };
        let keys = keys.iter().map(key).collect();
        let priority = entry.number("priority").map(i64::from);
        switch.add(table, Entry { keys, action: name, data, priority });
        assert!(switch.entries[table].len() <= *size);
    }
    switch
}
