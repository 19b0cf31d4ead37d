//! Entries as commands of bmv2's `simple_switch_CLI`.
//!
//! Its command line takes the smallest priority first, P4Runtime the greatest. Entries of one table never match the same
//! packet, so that all have the same priority, 1, which both accept.

use crate::program::*;
use std::fmt::Write as _;

/// The priority of all entries that need one.
pub const PRIORITY: u32 = 1;

/// A script that gives the commands to `simple_switch_CLI`, which itself goes on behind errors and ends well.
pub const LOADER: &str = include_str!("load.py");

/// Groups, and nodes of groups, that `simple_switch` has room for unless told otherwise.
const USUAL_GROUPS: usize = 4096;

/// Sets of ports of nodes, of which each node has one.
const USUAL_SETS: usize = 8192;

/// The options of `simple_switch`, behind its `--`, that these groups need, if they need any.
pub fn options(program: &Program) -> Option<String> {
    let count = program.groups.len();
    if count <= USUAL_GROUPS {
        return None;
    }
    let sets = if count > USUAL_SETS { format!(" --max-l2-entries {count}") } else { String::new() };
    Some(format!("--max-mc-groups {count} --max-l1-entries {count}{sets}"))
}

/// The commands' text.
pub fn text(program: &Program) -> String {
    let mut text = String::new();
    for group in &program.groups {
        let _ = writeln!(text, "mc_mgrp_create {}", group.id);
        let ports: Vec<String> = group.ports.iter().map(u16::to_string).collect();
        let _ = writeln!(text, "mc_node_create 0 {}", ports.join(" "));
        // Nodes are numbered in order of creation, from 0.
        let _ = writeln!(text, "mc_node_associate {} {}", group.id, group.id - 1);
    }
    // Names are in full: ends of them do where they name one thing only, which in a compiler's JSON they may not.
    let tables = program.controls().into_iter().flat_map(|(of, it)| it.tables.iter().map(move |it| (of, it)));
    for (of, table) in tables {
        let (action, arguments) = &table.default;
        let _ = writeln!(text, "table_set_default {of}.{} {of}.{action}{}", table.name, numbers(arguments));
        for entry in &table.entries {
            let _ = write!(text, "table_add {of}.{} {of}.{}", table.name, entry.action);
            for (found, key) in entry.matches.iter().zip(&table.keys) {
                let _ = match found {
                    Match::Exact(value) => write!(text, " {}", hex(*value, key.width)),
                    Match::Lpm(value, length) => write!(text, " {}/{length}", hex(*value, key.width)),
                    Match::Range(first, last) => {
                        write!(text, " {}->{}", hex(*first, key.width), hex(*last, key.width))
                    }
                    Match::Ternary(value, mask) => {
                        write!(text, " {}&&&{}", hex(*value, key.width), hex(*mask, key.width))
                    }
                };
            }
            let _ = write!(text, " =>{}", numbers(&entry.arguments));
            if table.has_priorities() {
                let _ = write!(text, " {PRIORITY}");
            }
            text.push('\n');
        }
    }
    text
}

fn numbers(arguments: &[u128]) -> String {
    arguments.iter().map(|argument| format!(" {argument:#x}")).collect()
}

/// A number in all digits of its width.
fn hex(value: u128, width: u16) -> String {
    let digits = usize::from(width.div_ceil(4));
    format!("0x{value:0digits$x}")
}
