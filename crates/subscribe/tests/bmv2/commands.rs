//! Commands of bmv2's command line into an interpreter.

use super::vm::{Entry, First, Key, Switch, number};

pub fn load(program: &str, commands: &str) -> Switch {
    let mut switch = Switch::new(program, First::SmallestPriority);
    let mut nodes: Vec<Vec<u16>> = Vec::new();
    for line in commands.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["mc_mgrp_create", group] => {
                assert!(switch.groups.insert(number(group), Vec::new()).is_none());
            }
            ["mc_node_create", _, ref ports @ ..] => {
                nodes.push(ports.iter().map(|port| port.parse().expect("a port")).collect());
            }
            ["mc_node_associate", group, node] => {
                let node = number(node) as usize;
                switch.groups.get_mut(&number(group)).expect("the group").extend(&nodes[node]);
            }
            ["table_set_default", table, action, ref data @ ..] => {
                switch.set_default(table, action, data.iter().map(|it| number(it)).collect());
            }
            ["table_add", table, action, ref rest @ ..] => {
                let arrow = rest.iter().position(|word| *word == "=>").expect("an arrow");
                let keys = rest[..arrow].iter().map(|word| key(word)).collect();
                let mut data: Vec<u128> = rest[arrow + 1..].iter().map(|it| number(it)).collect();
                let kind = switch.table(table)["match_type"].as_str().expect("a kind").to_owned();
                let priority = matches!(kind.as_str(), "range" | "ternary").then(|| data.pop().expect("it") as i64);
                switch.add(table, Entry { keys, action: action.to_owned(), data, priority });
            }
            _ => panic!("no command: {line}"),
        }
    }
    switch
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
