//! Tables and entries for P4Runtime, in the text format of protocol buffers: a `P4Info`, and one `WriteRequest` with all
//! entries.
//!
//! P4Runtime takes the greatest priority first, bmv2's command line the smallest; see [`crate::commands`].

use crate::commands::PRIORITY;
use crate::program::*;
use std::fmt::Write as _;

/// The first byte of a table's number.
const TABLES: u32 = 0x0200_0000;

/// The first byte of an action's number.
const ACTIONS: u32 = 0x0100_0000;

/// Tables and actions with their controls and numbers. [`crate::p4`] writes the numbers too, so that what a compiler says of
/// them is the same.
pub(super) struct Numbers<'a> {
    tables: Vec<(u32, &'static str, &'a Table)>,
    actions: Vec<(u32, &'static str, &'a Action)>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(program: &'a Program) -> Numbers<'a> {
        let tables = program.controls().into_iter().flat_map(|(of, it)| it.tables.iter().map(move |it| (of, it)));
        let actions = program.controls().into_iter().flat_map(|(of, it)| it.actions.iter().map(move |it| (of, it)));
        Numbers {
            tables: tables.enumerate().map(|(index, (of, it))| (TABLES | (index as u32 + 1), of, it)).collect(),
            actions: actions.enumerate().map(|(index, (of, it))| (ACTIONS | (index as u32 + 1), of, it)).collect(),
        }
    }

    pub(super) fn action(&self, control: &str, name: &str) -> u32 {
        let found = self.actions.iter().find(|(_, of, action)| *of == control && action.name == name);
        found.map_or(0, |(id, ..)| *id)
    }

    pub(super) fn table(&self, control: &str, name: &str) -> u32 {
        let found = self.tables.iter().find(|(_, of, table)| *of == control && table.name == name);
        found.map_or(0, |(id, ..)| *id)
    }
}

/// Number, name in full, and the shortest end of that which names nothing else.
fn preamble(id: u32, control: &str, name: &str, is_unique: bool) -> String {
    let alias = if is_unique { name.to_owned() } else { format!("{control}.{name}") };
    format!("preamble {{ id: {id} name: \"{control}.{name}\" alias: \"{alias}\" }}")
}

/// The `p4.config.v1.P4Info`.
pub fn info(program: &Program) -> String {
    let numbers = Numbers::new(program);
    let mut text = String::from("pkg_info {\n  arch: \"v1model\"\n}\n");
    for (id, control, table) in &numbers.tables {
        let is_unique = numbers.tables.iter().filter(|(.., it)| it.name == table.name).count() == 1;
        let _ = writeln!(text, "tables {{\n  {}", preamble(*id, control, &table.name, is_unique));
        for (index, key) in table.keys.iter().enumerate() {
            let kind = key.kind.name().to_uppercase();
            let _ = writeln!(
                text,
                "  match_fields {{ id: {} name: \"{}\" bitwidth: {} match_type: {kind} }}",
                index + 1,
                key.name,
                key.width
            );
        }
        for action in &table.actions {
            let _ = writeln!(text, "  action_refs {{ id: {} }}", numbers.action(control, action));
        }
        let _ = writeln!(text, "  size: {}\n}}", table.size());
    }
    for (id, control, action) in &numbers.actions {
        let is_unique = numbers.actions.iter().filter(|(.., it)| it.name == action.name).count() == 1;
        let _ = writeln!(text, "actions {{\n  {}", preamble(*id, control, &action.name, is_unique));
        for (index, (name, width)) in action.parameters.iter().enumerate() {
            let _ = writeln!(text, "  params {{ id: {} name: \"{name}\" bitwidth: {width} }}", index + 1);
        }
        text.push_str("}\n");
    }
    text
}

/// The `p4.v1.WriteRequest`.
pub fn entries(program: &Program) -> String {
    let numbers = Numbers::new(program);
    let mut text = String::from("device_id: 0\nelection_id { low: 1 }\n");
    for group in &program.groups {
        text.push_str("updates {\n  type: INSERT\n  entity {\n    packet_replication_engine_entry {\n");
        let _ = writeln!(text, "      multicast_group_entry {{\n        multicast_group_id: {}", group.id);
        for port in &group.ports {
            let _ = writeln!(text, "        replicas {{ egress_port: {port} instance: 1 }}");
        }
        text.push_str("      }\n    }\n  }\n}\n");
    }
    for (id, control, table) in &numbers.tables {
        let (action, arguments) = &table.default;
        text.push_str("updates {\n  type: MODIFY\n  entity {\n    table_entry {\n");
        let _ = writeln!(text, "      table_id: {id}");
        write_action(&mut text, numbers.action(control, action), arguments);
        text.push_str("      is_default_action: true\n    }\n  }\n}\n");
        for entry in &table.entries {
            text.push_str("updates {\n  type: INSERT\n  entity {\n    table_entry {\n");
            let _ = writeln!(text, "      table_id: {id}");
            for (index, (found, key)) in entry.matches.iter().zip(&table.keys).enumerate() {
                write_match(&mut text, index + 1, *found, key.width);
            }
            write_action(&mut text, numbers.action(control, &entry.action), &entry.arguments);
            if table.has_priorities() {
                let _ = writeln!(text, "      priority: {PRIORITY}");
            }
            text.push_str("    }\n  }\n}\n");
        }
    }
    text
}

/// Keys that any value matches are left out, as the specification asks (section 9.1.1).
fn write_match(text: &mut String, id: usize, found: Match, width: u16) {
    let all = u128::MAX >> (128 - width.clamp(1, 128));
    let _ = match found {
        Match::Exact(value) => writeln!(text, "      match {{ field_id: {id} exact {{ value: {} }} }}", bytes(value)),
        Match::Lpm(_, 0) | Match::Ternary(_, 0) => Ok(()),
        Match::Range(0, last) if last == all => Ok(()),
        Match::Lpm(value, length) => {
            writeln!(text, "      match {{ field_id: {id} lpm {{ value: {} prefix_len: {length} }} }}", bytes(value))
        }
        Match::Range(first, last) => {
            writeln!(text, "      match {{ field_id: {id} range {{ low: {} high: {} }} }}", bytes(first), bytes(last))
        }
        Match::Ternary(value, mask) => {
            writeln!(
                text,
                "      match {{ field_id: {id} ternary {{ value: {} mask: {} }} }}",
                bytes(value),
                bytes(mask)
            )
        }
    };
}

fn write_action(text: &mut String, id: u32, arguments: &[u128]) {
    let _ = write!(text, "      action {{ action {{ action_id: {id}");
    for (index, argument) in arguments.iter().enumerate() {
        let _ = write!(text, " params {{ param_id: {} value: {} }}", index + 1, bytes(*argument));
    }
    text.push_str(" } }\n");
}

/// A number as the shortest string of bytes, at least one (section 8.4).
fn bytes(value: u128) -> String {
    let all = value.to_be_bytes();
    let skipped = (value.leading_zeros() / 8).min(15) as usize;
    let escaped: String = all[skipped..].iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{escaped}\"")
}
