//! Entries as Tofino's runtime lists them, into an interpreter of the P4 text.

use super::p4::{Kind, Switch};
use super::vm::{Entry, First, Key, number};
use serde_json::Value;
use std::collections::BTreeMap;

fn value(value: &Value) -> u128 {
    value.as_u64().map_or_else(|| number(value.as_str().expect("a number")), u128::from)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

pub fn load(text: &str, entries: &str) -> Switch {
    let mut switch = Switch::new(text, Kind::Tna, First::SmallestPriority);
    let mut nodes: BTreeMap<u128, Vec<u16>> = BTreeMap::new();
    let document: Value = serde_json::from_str(entries).expect("JSON");
    for entry in list(&document) {
        let table = entry["table_name"].as_str().expect("a name");
        let (key, data) = (&entry["key"], &entry["data"]);
        match table {
            "$pre.node" => {
                let ports = list(&data["$DEV_PORT"]).map(|port| value(port) as u16).collect();
                assert!(nodes.insert(value(&key["$MULTICAST_NODE_ID"]), ports).is_none());
                continue;
            }
            "$pre.mgid" => {
                let ports = list(&data["$MULTICAST_NODE_ID"]).flat_map(|node| &nodes[&value(node)]).copied().collect();
                assert!(switch.groups.insert(value(&key["$MGID"]), ports).is_none());
                continue;
            }
            _ => {}
        }
        let table = table.strip_prefix("pipe.").expect("the pipe's");
        let (control, known) = switch.table(table);
        let full = entry["action"].as_str().expect("an action");
        let (_, action) = full.split_once('.').expect("a control's action");
        let function = control.actions.iter().find(|it| it.name == action).expect("an action");
        let given = data.as_object().expect("data");
        assert_eq!(given.len(), function.parameters.len());
        let arguments = function.parameters.iter().map(|it| value(&given[&it.name])).collect();
        if entry["is_default_entry"] == true {
            switch.set_default(table, full, arguments);
            continue;
        }
        let keys: Vec<Key> = known
            .keys
            .iter()
            .map(|(_, kind, name)| {
                let found = &key[name];
                match kind.as_str() {
                    "exact" => Key::Exact(value(found)),
                    "lpm" => Key::Lpm(value(&found["value"]), value(&found["prefix_len"]) as u32),
                    "range" => Key::Range(value(&found["low"]), value(&found["high"])),
                    _ => Key::Ternary(value(&found["value"]), value(&found["mask"])),
                }
            })
            .collect();
        let priority = key.get("$MATCH_PRIORITY").map(|it| value(it) as i64);
        assert_eq!(key.as_object().map(serde_json::Map::len), Some(keys.len() + usize::from(priority.is_some())));
        switch.add(table, Entry { keys, action: full.to_owned(), data: arguments, priority });
    }
    switch
}
