//! Commands of bmv2's command line into an interpreter, with the answers that it gives to what it refuses (`tools/runtime_CLI.py`
//! of behavioral-model), and with the bounds of the switch's engine of copies.

use super::vm::{Entry, First, Key, Switch, number};

/// How many groups and nodes a switch has room for: options of `simple_switch` behind `--`.
#[derive(Clone, Copy)]
pub struct Room {
    /// `--max-mc-groups`.
    pub groups: usize,
    /// `--max-l1-entries`.
    pub nodes: usize,
    /// `--max-l2-entries`: each node takes one of these too.
    pub ports: usize,
}

/// Of a switch that is started without the options.
pub const USUAL: Room = Room { groups: 4096, nodes: 4096, ports: 8192 };

/// Loads commands that all succeed.
pub fn load(program: &str, commands: &str) -> Switch {
    let (switch, answers) = run(program, commands, USUAL);
    assert!(answers.is_empty(), "{answers:?}");
    switch
}

/// Loads commands as the command line does, which goes on behind those that fail. Returns what it says of these.
pub fn run(program: &str, commands: &str, room: Room) -> (Switch, Vec<String>) {
    let mut line =
        CommandLine { switch: Switch::new(program, First::SmallestPriority), nodes: Vec::new(), groups: 0, room };
    let answers = commands.lines().filter_map(|command| line.command(command).err());
    let answers = answers.collect();
    (line.switch, answers)
}

struct CommandLine {
    switch: Switch,
    /// The ports of each node, and whether it is in a group.
    nodes: Vec<(Vec<u16>, bool)>,
    groups: usize,
    room: Room,
}

impl CommandLine {
    fn command(&mut self, command: &str) -> Result<(), String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["mc_mgrp_create", group] => {
                if self.groups >= self.room.groups {
                    return Err("Invalid PRE operation (TABLE_FULL)".to_owned());
                }
                self.groups += 1;
                assert!(self.switch.groups.insert(number(group), Vec::new()).is_none());
            }
            ["mc_node_create", _, ref ports @ ..] => {
                if self.nodes.len() >= self.room.nodes.min(self.room.ports) {
                    return Err("Invalid PRE operation (TABLE_FULL)".to_owned());
                }
                let ports: Vec<u16> = ports.iter().map(|port| port.parse().expect("a port")).collect();
                assert!(ports.iter().all(|port| *port < 512), "a map of ports has 512 bits");
                self.nodes.push((ports, false));
            }
            ["mc_node_associate", group, node] => {
                let Some((ports, in_group)) = self.nodes.get_mut(number(node) as usize) else {
                    return Err("Invalid PRE operation (INVALID_L1_HANDLE)".to_owned());
                };
                let Some(group) = self.switch.groups.get_mut(&number(group)) else {
                    return Err("Invalid PRE operation (INVALID_MGRP_HANDLE)".to_owned());
                };
                if std::mem::replace(in_group, true) {
                    return Err("Invalid PRE operation (ERROR)".to_owned());
                }
                group.extend(ports.iter());
            }
            ["table_set_default", table, action, ref data @ ..] => {
                let (table, action) = self.names(table, action)?;
                self.switch.set_default(&table, &action, data.iter().map(|it| number(it)).collect());
            }
            ["table_add", table, action, ref rest @ ..] => {
                let (table, action) = self.names(table, action)?;
                let arrow = rest.iter().position(|word| *word == "=>").expect("an arrow");
                let keys = rest[..arrow].iter().map(|word| key(word)).collect();
                let mut data: Vec<u128> = rest[arrow + 1..].iter().map(|it| number(it)).collect();
                let kind = self.switch.table(&table)["match_type"].as_str().expect("a kind").to_owned();
                let priority = matches!(kind.as_str(), "range" | "ternary").then(|| data.pop().expect("it") as i64);
                self.switch.add(&table, Entry { keys, action, data, priority });
            }
            _ => panic!("no command: {command}"),
        }
        Ok(())
    }

    /// Names in full: of those with dots any end does that no other has.
    fn names(&self, table: &str, action: &str) -> Result<(String, String), String> {
        let only = |actions: bool, wanted: &str| {
            let is_end = |name: &&str| *name == wanted || name.strip_suffix(wanted).is_some_and(|it| it.ends_with('.'));
            let names = self.switch.names(actions);
            let mut found = names.iter().copied().filter(is_end);
            found.next().filter(|_| found.next().is_none()).map(str::to_owned)
        };
        let full = only(false, table).ok_or_else(|| format!("Error: Invalid table name ({table})"))?;
        let of_table = |name: &String| {
            self.switch.table(&full)["actions"].as_array().is_some_and(|all| all.iter().any(|it| it == name))
        };
        let known = only(true, action).filter(of_table);
        Ok((full.clone(), known.ok_or_else(|| format!("Error: Table {table} has no action {action}"))?))
    }
}

fn key(word: &str) -> Key {
    if let Some((low, high)) = word.split_once("->") {
        Key::Range(number(low), number(high))
    } else if let Some((value, mask)) = word.split_once("&&&") {
        Key::Ternary(number(value), number(mask))
    } else if let Some((value, length)) = word.split_once('/') {
        Key::Lpm(number(value), length.parse().expect("a length"))
    } else {
        Key::Exact(number(word))
    }
}
