//! What the texts say: snapshots, a recogniser of the P4 that is written, and the defects of earlier generators.

use super::cases::{ITCH, SINGLE, formats, program, switches, udp};
use std::path::Path;
use weftwire_subscribe::target::program::{Match, Program};
use weftwire_subscribe::target::{Targets, Unsupported, bmv2, commands, p4, p4runtime};
use weftwire_subscribe::workload;

const RULES: &str = r#"
    add_order.stock == "GOOGL" and add_order.price > 50 : fwd(1);
    add_order.stock == "GOOGL" and add_order.price > 100 : fwd(2);
    trade.stock == "MSFT" : fwd(3);
"#;

const WINDOWS: &str = "
    kind == 1 and count() over 100us > 3 : fwd(1);
    address == 10/8 and hits > 2 : fwd(2, 3);
    one.size > 3 : note(1, 10.0.0.1, \"a\"), note(2, 10.0.0.2, \"b\");
";

/// A payload of the header `one` alone.
fn one(size: u8) -> [u8; 21] {
    let mut payload = [0; 21];
    payload[0] = size;
    payload
}

fn itch(messages: usize) -> Program {
    program(&formats(ITCH), RULES, &Targets { messages, ternary: false })
}

fn single(rules: &str) -> Program {
    program(&formats(SINGLE), rules, &Targets::default())
}

/// `UPDATE=1 cargo test -p weftwire-subscribe` writes them anew.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests read their fixtures")]
fn texts_are_as_reviewed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bmv2/snapshots");
    let (batches, windows) = (itch(2), single(WINDOWS));
    let texts = [
        ("itch.p4", p4::v1model(&batches)),
        ("itch.json", bmv2::json(&batches)),
        ("itch-commands.txt", commands::text(&batches)),
        ("windows.p4", p4::v1model(&windows)),
        ("windows-p4info.txtpb", p4runtime::info(&windows)),
        ("windows-entries.txtpb", p4runtime::entries(&windows)),
    ];
    for (name, text) in texts {
        let file = folder.join(name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).expect("writable");
            std::fs::write(&file, &text).expect("writable");
        }
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(known == text, "{name} differs; look at it and run with UPDATE=1");
    }
}

/// Declarations and statements of the P4 that is written; whatever else stands there is an error.
struct Recogniser {
    tokens: Vec<String>,
    at: usize,
}

impl Recogniser {
    fn new(text: &str) -> Recogniser {
        let mut tokens = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let line = line.split("//").next().unwrap_or_default();
            let mut rest = line.trim();
            while let Some(first) = rest.chars().next() {
                let length = if first.is_alphanumeric() || first == '_' {
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
                } else if first == '"' {
                    rest[1..].find('"').expect("an end") + 2
                } else {
                    let long = ["&&&", "&&", "||", "==", "!=", ">=", "<<"];
                    long.iter().find(|it| rest.starts_with(**it)).map_or(1, |it| it.len())
                };
                tokens.push(rest[..length].to_owned());
                rest = rest[length..].trim_start();
            }
        }
        Recogniser { tokens, at: 0 }
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn is(&mut self, text: &str) -> bool {
        let found = self.peek() == text;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) {
        let near = self.tokens[self.at.saturating_sub(8)..(self.at + 3).min(self.tokens.len())].join(" ");
        assert!(self.is(text), "`{text}` is missing: {near}");
    }

    fn name(&mut self) -> String {
        let name = self.next();
        assert!(name.starts_with(|c: char| c.is_alphabetic() || c == '_'), "{name} is no name");
        assert!(!["type", "state", "key", "action", "table", "header"].contains(&name.as_str()), "{name} is reserved");
        name
    }

    fn kind(&mut self) {
        let name = self.name();
        while matches!(name.as_str(), "bit" | "varbit" | "register") && self.is("<") {
            if self.peek() == "bit" {
                self.kind();
            } else {
                assert!(self.next().parse::<u32>().is_ok_and(|width| width > 0));
            }
            self.expect(">");
        }
    }

    fn program(&mut self) {
        while self.at < self.tokens.len() {
            match self.next().as_str() {
                "header" | "struct" => {
                    self.name();
                    self.expect("{");
                    while !self.is("}") {
                        self.kind();
                        self.name();
                        self.expect(";");
                    }
                }
                "parser" => {
                    self.signature();
                    while !self.is("}") {
                        self.expect("state");
                        self.name();
                        self.expect("{");
                        self.state();
                    }
                }
                "control" => {
                    self.signature();
                    self.control();
                }
                "V1Switch" => {
                    while !self.is(";") {
                        self.next();
                    }
                }
                other => panic!("declaration {other}"),
            }
        }
    }

    fn signature(&mut self) {
        self.name();
        self.expect("(");
        while !self.is(")") {
            self.next();
        }
        self.expect("{");
    }

    fn state(&mut self) {
        loop {
            if self.is("transition") {
                if self.is("select") {
                    self.expect("(");
                    self.arguments();
                    self.expect("{");
                    while !self.is("}") {
                        let open = self.is("(");
                        self.value();
                        while self.is(",") {
                            self.value();
                        }
                        if open {
                            self.expect(")");
                        }
                        self.expect(":");
                        self.name();
                        self.expect(";");
                    }
                } else {
                    self.name();
                    self.expect(";");
                }
                self.expect("}");
                return;
            }
            self.statement();
        }
    }

    fn control(&mut self) {
        loop {
            match self.peek() {
                "register" => {
                    self.kind();
                    self.expect("(");
                    self.arguments();
                    self.name();
                    self.expect(";");
                }
                "action" => {
                    self.next();
                    self.signature();
                    self.block();
                }
                "table" => {
                    self.next();
                    self.name();
                    self.expect("{");
                    while !self.is("}") {
                        let property = self.next();
                        self.expect("=");
                        match property.as_str() {
                            "key" => {
                                self.expect("{");
                                while !self.is("}") {
                                    self.value();
                                    self.expect(":");
                                    let kind = self.name();
                                    assert!(["exact", "lpm", "range", "ternary"].contains(&kind.as_str()));
                                    self.expect("@");
                                    self.expect("name");
                                    self.expect("(");
                                    self.arguments();
                                    self.expect(";");
                                }
                            }
                            "actions" => {
                                self.expect("{");
                                while !self.is("}") {
                                    self.name();
                                    self.expect(";");
                                }
                            }
                            "default_action" | "size" => {
                                self.value();
                                self.expect(";");
                            }
                            other => panic!("property {other}"),
                        }
                    }
                }
                _ => {
                    self.expect("apply");
                    self.expect("{");
                    self.block();
                    self.expect("}");
                    return;
                }
            }
        }
    }

    fn block(&mut self) {
        while !self.is("}") {
            self.statement();
        }
    }

    fn statement(&mut self) {
        if self.is("if") {
            self.expect("(");
            self.value();
            self.expect(")");
            self.expect("{");
            self.block();
            if self.is("else") {
                self.expect("{");
                self.block();
            }
            return;
        }
        self.value();
        if self.is("=") {
            self.value();
        }
        self.expect(";");
    }

    fn arguments(&mut self) {
        while !self.is(")") {
            self.value();
            self.is(",");
        }
    }

    fn value(&mut self) {
        match self.next().as_str() {
            "(" if self.peek() == "bit" => {
                self.kind();
                self.expect(")");
                self.value();
                return;
            }
            "(" => {
                self.value();
                self.expect(")");
            }
            "{" => {
                while !self.is("}") {
                    self.value();
                    self.is(",");
                }
            }
            "!" => {
                self.value();
                return;
            }
            _ => {}
        }
        loop {
            match self.peek() {
                "." => {
                    self.next();
                    self.next();
                }
                "(" => {
                    self.next();
                    self.arguments();
                }
                "[" => {
                    while !self.is("]") {
                        self.next();
                    }
                }
                "<" if self.tokens.get(self.at + 1).is_some_and(|it| it == "bit") => {
                    self.next();
                    self.kind();
                    self.expect(">");
                }
                "&&&" | "&&" | "||" | "==" | "!=" | ">=" | "<<" | "<" | ">" | "+" | "-" | "&" | "|" => {
                    self.next();
                    self.value();
                    return;
                }
                "?" => {
                    self.next();
                    self.value();
                    self.expect(":");
                    self.value();
                    return;
                }
                _ => return,
            }
        }
    }
}

#[test]
fn p4_is_of_the_grammar_and_its_headers_can_be_read_back() {
    for program in [itch(3), single(WINDOWS), single("")] {
        let text = p4::v1model(&program);
        Recogniser::new(&text).program();
        // Fields of variable width are none that filters could use: the reader of formats refuses them.
        let fixed = text
            .lines()
            .map(|line| if line.contains("varbit<") { "bit<8> data;\n".to_owned() } else { format!("{line}\n") });
        let fixed: String = fixed.collect();
        let headers = weftwire_core::p4::parse_headers(&fixed).expect("header types");
        for header in &program.headers {
            let found = headers.iter().find(|it| it.name == header.kind);
            if header.variable == 0 {
                let bits: u32 = header.fields.iter().map(|(_, width)| u32::from(*width)).sum();
                assert_eq!(found.map(|it| it.length()), Some(bits), "{}", header.name);
            }
        }
        // Everything that is applied or named is declared.
        for table in program.ingress.tables.iter().chain(&program.egress.tables) {
            assert!(text.contains(&format!("table {} {{", table.name)));
            assert!(text.contains(&format!("{}.apply()", table.name)));
        }
    }
}

#[test]
fn states_are_dense_and_tables_have_room() {
    let rules = workload::itch(1000, 3);
    let found = program(&formats(ITCH), &rules, &Targets { messages: 1, ternary: false });
    let states = found.metadata.iter().find(|(name, _)| name == "current").expect("the state").1;
    let entries: usize = found.ingress.tables.iter().map(|table| table.entries.len()).sum();
    assert!(u64::from(states) <= u64::from(entries.ilog2()) + 2);
    for table in &found.ingress.tables {
        assert_eq!(table.size(), table.entries.len().max(1));
        for entry in &table.entries {
            for found in &entry.matches {
                if let Match::Range(first, last) = found {
                    assert!(first <= last);
                }
            }
            if let (Some(Match::Exact(state)), "go") = (entry.matches.first(), entry.action.as_str()) {
                assert!(state >> states == 0 && entry.arguments[0] >> states == 0);
            }
        }
    }
    // The interpreter checks widths, sizes and priorities of every entry.
    switches(&found);
}

#[test]
fn no_two_entries_meet_so_that_priorities_do_not_matter() {
    let rules = "one.size > 3 and one.size < 11 : fwd(1); one.size > 5 and one.size < 9 and kind == 1 : fwd(2); one.size in [8, 10] : fwd(3);";
    for ternary in [false, true] {
        let found = program(&formats(SINGLE), rules, &Targets { ternary, ..Targets::default() });
        for table in found.ingress.tables.iter().filter(|table| table.has_priorities()) {
            let values = |found: &Match| -> Vec<u128> {
                let holds = |value: &u128| match found {
                    Match::Range(first, last) => (first..=last).contains(&value),
                    Match::Ternary(wanted, mask) => value & mask == *wanted,
                    _ => false,
                };
                (0..32).filter(holds).collect()
            };
            for (index, a) in table.entries.iter().enumerate() {
                for b in &table.entries[index + 1..] {
                    let both = values(&a.matches[1]).iter().any(|value| values(&b.matches[1]).contains(value));
                    assert!(a.matches[0] != b.matches[0] || !both);
                }
            }
        }
        assert!(!commands::text(&found).contains("10->9"));
        assert!(commands::text(&found).lines().filter(|line| line.contains("&&&")).count() > 0 || !ternary);
    }
}

#[test]
fn strings_are_padded_to_their_fields() {
    let text = commands::text(&itch(1));
    // GOOGL and three spaces.
    assert!(text.contains("0x474f4f474c202020"), "{text}");
    assert!(p4runtime::entries(&itch(1)).contains(r#""\x47\x4f\x4f\x47\x4c\x20\x20\x20""#));
}

#[test]
fn groups_are_of_two_ports_and_more() {
    let found = single("one.size == 1 : fwd(1); one.size == 2 : fwd(2); one.size == 3 : fwd(1, 2);");
    assert_eq!(found.groups.len(), 1);
    assert_eq!(found.groups[0].ports, [1, 2]);
    assert!(single("one.size == 1 : fwd(1);").groups.is_empty());
    let batches = program(&formats(ITCH), "add_order.price > 1 : fwd(4);", &Targets::default());
    assert!(batches.groups.is_empty());
}

#[test]
fn without_the_alias_groups_lead_to_port_0() {
    let found = single("one.size == 3 : fwd(1, 2);");
    let frame = udp(7, &one(3));
    let ports = |json: &str| -> Vec<u16> {
        let sent = super::commands::load(json, &commands::text(&found)).packet(&frame, 1);
        sent.copies.iter().map(|(port, _)| *port).collect()
    };
    let json = bmv2::json(&found);
    assert_eq!(ports(&json), [1, 2]);
    assert_eq!(ports(&json.replace("intrinsic_metadata.mcast_grp", "elsewhere")), [0]);
}

#[test]
fn no_rules_drop_everything() {
    let found = single("");
    for mut switch in switches(&found) {
        assert!(switch.packet(&udp(7, &one(3)), 1).copies.is_empty());
    }
}

#[test]
fn a_header_that_is_not_there_matches_nothing() {
    // Bytes that would be `two` if `one.kind` said so.
    let found = single("other == 5 : fwd(1);");
    let mut payload = [0u8; 22];
    payload[21] = 0x55;
    for mut switch in switches(&found) {
        assert!(switch.packet(&udp(7, &payload), 1).copies.is_empty());
        let mut two = payload;
        two[0] = 1 << 5;
        assert_eq!(switch.packet(&udp(7, &two), 1).copies.len(), 1);
    }
}

#[test]
fn actions_have_all_their_arguments() {
    let found = single("one.size == 3 : note(7, 10.0.0.105, \"ab\"); one.size == 3 : note(8, 10.0.0.1, \"\"), fwd(1);");
    let frame = udp(7, &one(3));
    for mut switch in switches(&found) {
        let sent = switch.packet(&frame, 1);
        assert_eq!(sent.copies.len(), 1);
        assert_eq!(sent.metadata["note_0_0_argument_0"], 7);
        assert_eq!(sent.metadata["note_0_0_argument_1"], 0x0a00_0069);
        assert_eq!(sent.metadata["note_0_0_argument_2"], 0x6162 << 112);
        assert_eq!(sent.metadata["note_1_0_argument_0"], 8);
    }
}

#[test]
fn what_switches_can_not_do_is_said() {
    let refused = |formats_text: &str, rules: &str, targets: &Targets| {
        let formats = formats(formats_text);
        let options = weftwire_subscribe::compiler::Options::default();
        let compiler =
            weftwire_subscribe::Compiler::new(formats.clone(), &options, &super::cases::rules(rules, &formats));
        Program::new(&compiler.expect("few clauses"), targets).expect_err("it is refused")
    };
    let usual = Targets::default();
    assert_eq!(refused(SINGLE, "one.size == 1 : fwd(511);", &usual), Unsupported::Port(511));
    assert!(matches!(refused(SINGLE, "avg(one.size) over 100us > 3 : fwd(1);", &usual), Unsupported::Mean(_)));
    assert!(matches!(refused(SINGLE, "count() over 100ns > 3 : fwd(1);", &usual), Unsupported::Window(_)));
    assert!(matches!(refused(SINGLE, "tcp.flags == 2 and tcp.syn == 1 : fwd(1);", &usual), Unsupported::Overlap(_)));
    let long = "one.size == 1 : note(1, 1.1.1.1, \"longer than sixteen\");";
    assert!(matches!(refused(SINGLE, long, &usual), Unsupported::Text(_)));
    let none = Targets { messages: 0, ternary: false };
    assert_eq!(refused(SINGLE, "one.size == 1 : fwd(1);", &none), Unsupported::Messages(0));
    let rest = ITCH.replace("messages=count", "messages=rest");
    let error = refused(&rest, "add_order.price > 1 : fwd(1);", &usual);
    assert!(matches!(error, Unsupported::BatchWithoutCount(_)));
}
