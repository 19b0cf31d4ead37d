//! Entries for Tofino as its runtime, bfrt, lists them: tables with their names in full, keys and data by name.
//!
//! bfrt takes the smallest priority first. Entries of tables with ranges or masks have 0, a state's default, which only
//! counts where nothing else matches, 1.

use crate::program::*;
use serde_json::{Map, Value, json};

/// The document: a list of entries, those first that others refer to.
pub fn json(program: &Program) -> String {
    serde_json::to_string_pretty(&document(program)).unwrap_or_default() + "\n"
}

/// The document.
pub fn document(program: &Program) -> Value {
    let mut all = Vec::new();
    for group in &program.groups {
        all.push(json!({
            "table_name": "$pre.node",
            "key": {"$MULTICAST_NODE_ID": group.id},
            "data": {"$MULTICAST_RID": 1, "$MULTICAST_LAG_ID": [], "$DEV_PORT": group.ports},
        }));
        all.push(json!({
            "table_name": "$pre.mgid",
            "key": {"$MGID": group.id},
            "data": {"$MULTICAST_NODE_ID": [group.id], "$MULTICAST_NODE_L1_XID_VALID": [false],
                "$MULTICAST_NODE_L1_XID": [0]},
        }));
    }
    for (name, control) in program.controls() {
        for table in &control.tables {
            let full = |name: &str| format!("pipe.{name}");
            let table_name = full(&format!("{name}.{}", table.name));
            let action = |action: &str| format!("{name}.{action}");
            let data = |name: &str, arguments: &[u128]| -> Value {
                let parameters = control.action(name).map_or(&[][..], |action| &action.parameters);
                let named = parameters.iter().zip(arguments);
                named.map(|((name, _), value)| (name.clone(), json!(hex(*value)))).collect::<Map<_, _>>().into()
            };
            for entry in &table.entries {
                let mut key = Map::new();
                for (found, known) in entry.matches.iter().zip(&table.keys) {
                    key.insert(known.name.clone(), value(*found));
                }
                if table.has_priorities() {
                    key.insert("$MATCH_PRIORITY".to_owned(), json!(u8::from(entry.fallback)));
                }
                all.push(json!({"table_name": table_name, "action": action(&entry.action), "key": key,
                    "data": data(&entry.action, &entry.arguments)}));
            }
            let (default, arguments) = &table.default;
            all.push(json!({"table_name": table_name, "action": action(default), "is_default_entry": true,
                "data": data(default, arguments)}));
        }
    }
    Value::Array(all)
}

fn hex(value: u128) -> String {
    format!("{value:#x}")
}

fn value(found: Match) -> Value {
    match found {
        Match::Exact(value) => json!(hex(value)),
        Match::Lpm(value, length) => json!({"value": hex(value), "prefix_len": length}),
        Match::Range(low, high) => json!({"low": hex(low), "high": hex(high)}),
        Match::Ternary(value, mask) => json!({"value": hex(value), "mask": hex(mask)}),
    }
}
