//! What the texts say: snapshots, and the defects of earlier generators.

use super::cases::{ITCH, SINGLE, compiler, formats, program, switches, udp};
use std::path::Path;
use weftwire_target::program::{Kind, Match, Program};
use weftwire_target::{Architecture, Targets, Unsupported, bfrt, bmv2, commands, limits, p4, p4runtime, tna};

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

const USUAL: Targets = Targets { messages: 4, ternary: false, compress: false, hairpin: false };

fn tofino(formats_text: &str, rules: &str, targets: &Targets) -> Result<Program, Unsupported> {
    Program::new(&compiler(&formats(formats_text), rules), Architecture::Tna, targets)
}

/// A payload of the header `one` alone.
fn one(size: u8) -> [u8; 21] {
    let mut payload = [0; 21];
    payload[0] = size;
    payload
}

fn itch(messages: usize) -> Program {
    program(&formats(ITCH), RULES, &Targets { messages, ..Targets::default() })
}

fn single(rules: &str) -> Program {
    program(&formats(SINGLE), rules, &Targets::default())
}

/// `UPDATE=1 cargo test -p weftwire-target` writes them anew.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests read their fixtures")]
fn texts_are_as_reviewed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bmv2/snapshots");
    let (batches, windows) = (itch(2), single(WINDOWS));
    let of_tofino = |formats_text: &str, rules: &str| tofino(formats_text, rules, &Targets { messages: 2, ..USUAL });
    let (tna_batches, tna_windows) =
        (of_tofino(ITCH, RULES), of_tofino(&SINGLE.replace("100us", "8192ns"), &WINDOWS.replace("100us", "8192ns")));
    let [tna_batches, tna_windows] = [tna_batches, tna_windows].map(|it| it.expect("a program"));
    let texts = [
        ("itch.p4", p4::v1model(&batches)),
        ("itch.json", bmv2::json(&batches)),
        ("itch-commands.txt", commands::text(&batches)),
        ("windows.p4", p4::v1model(&windows)),
        ("windows-p4info.txtpb", p4runtime::info(&windows)),
        ("windows-entries.txtpb", p4runtime::entries(&windows)),
        ("itch-tna.p4", tna::text(&tna_batches)),
        ("itch-tna.json", bfrt::json(&tna_batches)),
        ("windows-tna.p4", tna::text(&tna_windows)),
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

#[test]
fn p4_is_of_the_grammar_and_its_headers_can_be_read_back() {
    for program in [itch(3), single(WINDOWS), single("")] {
        let text = p4::v1model(&program);
        super::p4::check(&text, super::p4::Kind::V1model);
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

/// Tables and actions have one name and number, whoever writes them: so text, JSON, commands and P4Runtime go together.
#[test]
fn all_texts_agree_about_names_and_numbers() {
    for program in [itch(3), single(WINDOWS), single("")] {
        let of_text = super::p4::numbers(&p4::v1model(&program), super::p4::Kind::V1model);
        let document: serde_json::Value = serde_json::from_str(&bmv2::json(&program)).expect("JSON");
        let info = p4runtime::info(&program);
        let name = |it: &serde_json::Value| it["name"].as_str().expect("a name").to_owned();
        let mut of_json: Vec<String> = document["actions"].as_array().expect("actions").iter().map(name).collect();
        let pipelines = document["pipelines"].as_array().expect("pipelines");
        let tables = pipelines.iter().flat_map(|it| it["tables"].as_array().expect("tables")).map(name);
        // Actions that are run without a table stand in one that nobody adds to.
        of_json.extend(tables.filter(|name| !name.contains(".do_")));
        of_json.sort();
        assert_eq!(of_text.keys().cloned().collect::<Vec<_>>(), of_json);
        for (name, number) in &of_text {
            let preamble = format!("preamble {{ id: {number} name: \"{name}\" alias: \"");
            assert!(info.contains(&preamble), "{preamble}");
        }
        for line in commands::text(&program).lines().filter(|line| line.starts_with("table_")) {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(of_text.contains_key(words[1]) && of_text.contains_key(words[2]), "{line}");
        }
    }
    // Where both controls have an action of a name, only the name in full says which.
    let (switch, answers) =
        super::commands::run(&bmv2::json(&itch(1)), "table_set_default end_0 ports_0 0x0", super::commands::USUAL);
    assert!(answers.is_empty() && switch.defaults.contains_key("SwitchIngress.end_0"));
    let wrong = "table_set_default add_order_stock_0 nothing";
    let (_, answers) = super::commands::run(&bmv2::json(&itch(1)), wrong, super::commands::USUAL);
    assert_eq!(answers, ["Error: Table add_order_stock_0 has no action nothing"]);
}

/// What p4c says of such programs; it did of the first.
#[test]
fn names_of_the_includes_and_unset_metadata_are_refused() {
    let refused = |text: &str, kind| {
        let text = text.to_owned();
        let result = std::panic::catch_unwind(move || super::p4::check(&text, kind)).expect_err("it is refused");
        result.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    let text = p4::v1model(&itch(1));
    for block in ["Parser", "Ingress", "Egress", "Deparser"] {
        let says = refused(&text.replace(&format!("Switch{block}"), block), super::p4::Kind::V1model);
        assert!(says.contains(&format!("{block} duplicates {block}")), "{says}");
    }
    let says = refused(&text.replace("ethernet_t", "standard_metadata_t"), super::p4::Kind::V1model);
    assert!(says.contains("standard_metadata_t"), "{says}");
    let text = tna::text(&tofino(ITCH, RULES, &Targets { messages: 2, ..USUAL }).expect("a program"));
    let says = refused(&text.replacen("        meta.changed = 1w0x0;\n", "", 1), super::p4::Kind::Tna);
    assert!(says.contains("out parameter meta may be uninitialized") && says.contains("changed"), "{says}");
}

/// Headers may be called like what the program has of its own.
#[test]
fn names_stay_apart() {
    let text = r#"
        @subscribe[after=udp, when=udp.destination_port == 9, messages=count, prefix=16]
        header headers { bit<16> count; }
        @subscribe[message=headers, when=kind == 1]
        header length { bit<8> kind; @subscribe[] bit<8> state; }
        @subscribe[message=headers, when=kind == 2]
        header rest { bit<8> kind; @subscribe[] bit<8> place; }
        @subscribe[after=udp, when=udp.destination_port == 8]
        header standard_metadata { @subscribe[] bit<8> apply; }
        @subscribe[after=udp, when=udp.destination_port == 7]
        header Counter { @subscribe[] bit<8> meta; }
    "#;
    let rules = "length.state > 3 : fwd(1); rest.place == 2 : fwd(2); standard_metadata.apply == 1 : fwd(3); meta == 4 : fwd(4);";
    let targets = Targets { messages: 1, ..USUAL };
    let batch = |kind: u8, value: u8| udp(9, &[0, 1, 0, 2, kind, value]);
    let frames = [(batch(1, 4), 1), (batch(2, 2), 2), (udp(8, &[1]), 3), (udp(7, &[4]), 4)];
    let found = program(&formats(text), rules, &targets);
    let all = switches(&found).into_iter().chain([super::cases::tofino(&tofino(text, rules, &targets).expect("it"))]);
    for mut switch in all {
        for (frame, port) in &frames {
            let ports: Vec<u16> = switch.packet(frame, 1).copies.iter().map(|(port, _)| *port).collect();
            assert_eq!(ports, [*port]);
        }
    }
    // The presence of one and a field of the other would have one table.
    let text = r#"
        @subscribe[after=udp, when=udp.destination_port == 9] header one { @subscribe[] bit<8> x; }
        @subscribe[after=udp, when=udp.destination_port == 8] header has { @subscribe[] bit<8> one; }
    "#;
    let compiler = compiler(&formats(text), "one.x > 3 and udp.source_port == 1 : fwd(1); has.one > 3 : fwd(2);");
    let error = Program::new(&compiler, Architecture::V1model, &USUAL).expect_err("two tables");
    assert_eq!(error, Unsupported::Name("has_one_0".to_owned()));
}

/// bmv2 counts prefixes from the top of whole bytes: those of other widths are ranges there, and masks where asked for.
#[test]
fn prefixes_of_odd_widths_match_what_they_say() {
    let text = r#"
        @subscribe[after=udp, when=udp.destination_port == 7]
        header it { @subscribe[match=lpm] bit<9> f; @subscribe[match=lpm] bit<16> g; bit<7> rest; }
    "#;
    let rules = "f == 279 : fwd(1); f == 256/4 : fwd(2); f == 288/7 : fwd(3); g == 0x1200/8 : fwd(4);";
    for (ternary, compress) in [(false, false), (true, false), (false, true), (true, true)] {
        let found = program(&formats(text), rules, &Targets { ternary, compress, ..USUAL });
        let kinds = |width| {
            let tables = found.ingress.tables.iter().flat_map(|table| &table.keys);
            tables.filter(move |key| key.width == width && key.name.contains("hdr.it")).map(|key| key.kind)
        };
        assert!(kinds(9).all(|kind| kind == if ternary { Kind::Ternary } else { Kind::Range }));
        assert!(kinds(16).all(|kind| kind == Kind::Lpm));
        assert!(kinds(9).count() > 0 && kinds(16).count() > 0);
        for mut switch in switches(&found) {
            for f in 0..512u32 {
                let bytes = (f << 23 | 0x3400 << 7).to_be_bytes();
                let ports: Vec<u16> = switch.packet(&udp(7, &bytes), 1).copies.iter().map(|it| it.0).collect();
                let wanted = [(f == 279, 1), (f >> 5 == 8, 2), (f >> 2 == 72, 3)];
                let wanted: Vec<u16> = wanted.iter().filter(|it| it.0).map(|it| it.1).collect();
                assert_eq!(ports, wanted, "{f}");
            }
        }
    }
    // As a prefix it matches the 128 values of its upper 9 bits out of 16.
    let found = program(&formats(text), "f == 279 : fwd(1);", &USUAL);
    let json = bmv2::json(&found).replace("\"range\"", "\"lpm\"");
    let lpm = commands::text(&found).replace("0x117->0x117", "0x117/9").replace(" => 0x1 1", " => 0x1");
    let lpm: String = lpm
        .lines()
        .map(|line| line.strip_suffix(" 1").filter(|_| line.contains("/9")).unwrap_or(line).to_owned() + "\n")
        .collect();
    let mut switch = super::commands::load(&json, &lpm);
    let matched = (0..512u32).filter(|f| !switch.packet(0, &udp(7, &(f << 23).to_be_bytes()), 1).copies.is_empty());
    assert_eq!(matched.count(), 128);
}

/// As many groups as a switch has no room for unless it is told.
#[test]
fn many_groups_need_the_options_that_are_told() {
    let pairs = (1..=92u16).flat_map(|a| (a + 1..=92).map(move |b| (a, b)));
    let rules: String = pairs.enumerate().map(|(at, (a, b))| format!("wide == {at} : fwd({a}, {b});\n")).collect();
    let found = single(&rules);
    assert_eq!(found.groups.len(), 4186);
    let options = commands::options(&found).expect("options");
    assert_eq!(options, "--max-mc-groups 4186 --max-l1-entries 4186");
    let (json, text) = (bmv2::json(&found), commands::text(&found));
    let (_, answers) = super::commands::run(&json, &text, super::commands::USUAL);
    assert_eq!(answers[0], "Invalid PRE operation (TABLE_FULL)");
    // A group, a node, and putting it into the group, for each that has no room.
    assert_eq!(answers.len(), 3 * (4186 - 4096));
    let room = super::commands::Room { groups: 4186, nodes: 4186, ..super::commands::USUAL };
    let (switch, answers) = super::commands::run(&json, &text, room);
    assert!(answers.is_empty() && switch.groups.len() == 4186);
    assert_eq!(commands::options(&itch(1)), None);
}

#[test]
fn states_are_dense_and_tables_have_room() {
    let rules = weftwire_workload::itch(1000, 3);
    let found = program(&formats(ITCH), &rules, &Targets { messages: 1, ..Targets::default() });
    let states = found.metadata.iter().find(|(name, _)| name == "current_0").expect("the state").1;
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
            if let (Some(Match::Exact(state)), "go_0") = (entry.matches.first(), entry.action.as_str()) {
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
        let sent = super::commands::load(json, &commands::text(&found)).packet(9, &frame, 1);
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
        let compiler = compiler(&formats(formats_text), rules);
        Program::new(&compiler, Architecture::V1model, targets).expect_err("it is refused")
    };
    let usual = Targets::default();
    assert_eq!(refused(SINGLE, "one.size == 1 : fwd(511);", &usual), Unsupported::Port(511));
    assert!(matches!(refused(SINGLE, "count() over 100ns > 3 : fwd(1);", &usual), Unsupported::Window(_)));
    assert!(matches!(refused(SINGLE, "tcp.flags == 2 and tcp.syn == 1 : fwd(1);", &usual), Unsupported::Overlap(_)));
    let long = "one.size == 1 : note(1, 1.1.1.1, \"longer than sixteen\");";
    assert!(matches!(refused(SINGLE, long, &usual), Unsupported::Text(_)));
    let none = Targets { messages: 0, ..Targets::default() };
    assert_eq!(refused(SINGLE, "one.size == 1 : fwd(1);", &none), Unsupported::Messages(0));
    let rest = ITCH.replace("messages=count", "messages=rest");
    let error = refused(&rest, "add_order.price > 1 : fwd(1);", &usual);
    assert!(matches!(error, Unsupported::BatchWithoutCount(_)));
    let nowhere = "header adrift { @subscribe[] bit<8> x; }";
    assert_eq!(refused(nowhere, "x > 1 : fwd(1);", &usual), Unsupported::Nowhere("adrift".to_owned()));
}

#[test]
fn what_tofino_can_not_do_is_said() {
    let refused = |rules: &str, targets: &Targets| {
        tofino(SINGLE, rules, targets).map(|_| ()).expect_err("it is refused").to_string()
    };
    let says = |rules: &str, part: &str| {
        let error = refused(rules, &USUAL);
        assert!(error.contains(part), "{error}");
    };
    says("avg(one.size) over 8192ns > 3 : fwd(1);", "does not multiply");
    says("count() over 100us > 3 : fwd(1);", "65536ns or 131072ns");
    says("sum(wide) over 8192ns > 3 : fwd(1);", "up to 32 bits");
    says("sum(one.size) over 8192ns > 4294967295 : fwd(1);", "2^32 - 1");
    says("one.size == 1 : fwd(511);", "1 to 510");
    // The greatest value stands for all from there on.
    assert!(tofino(SINGLE, "sum(one.size) over 8192ns >= 4294967295 : fwd(1);", &USUAL).is_ok());
    let windows = "add_order.price > 1 and count() over 8192ns > 3 : fwd(1);";
    let error = tofino(ITCH, windows, &USUAL).expect_err("several messages").to_string();
    assert!(error.contains("--messages 1"), "{error}");
    assert!(tofino(ITCH, windows, &Targets { messages: 1, ..USUAL }).is_ok());
    let many = tofino(ITCH, RULES, &Targets { messages: 20, ..USUAL }).expect_err("much is taken along");
    assert!(matches!(many, Unsupported::Vector(bits) if bits > 4096), "{many}");
    let wide = r#"
        @subscribe[after=udp, when=udp.destination_port == 7, messages=count, prefix=16]
        header many { bit<16> count; }
        @subscribe[message=many, when=kind == 5]
        header it { bit<32> kind; @subscribe[] bit<8> value; }
    "#;
    let error = tofino(wide, "value > 3 : fwd(1);", &USUAL).map(|_| ()).expect_err("48 bits");
    assert_eq!(error, Unsupported::Select(48));
    let deep: String = (0..24).map(|index| format!("@subscribe[match=exact] bit<8> field_{index};")).collect();
    let deep = format!("@subscribe[after=udp, when=udp.destination_port == 7] header deep {{ {deep} }}");
    let rule: Vec<String> = (0..24).map(|index| format!("field_{index} == 1")).collect();
    let error = tofino(&deep, &format!("{} : fwd(1);", rule.join(" and ")), &USUAL).map(|_| ());
    assert!(matches!(error, Err(Unsupported::Stages(stages)) if stages > 24), "{error:?}");
}

#[test]
fn tofino_has_room_for_the_feed() {
    let found = tofino(ITCH, &weftwire_workload::itch(1000, 3), &USUAL).expect("a program");
    assert!(limits::stages(&found.ingress) <= limits::STAGES, "{}", limits::stages(&found.ingress));
    assert!(limits::stages(&found.egress) <= limits::STAGES, "{}", limits::stages(&found.egress));
}

#[test]
fn wide_ranges_are_masks_on_tofino_and_defaults_come_last() {
    let found = tofino(ITCH, "add_order.price > 5 : fwd(1);", &Targets { messages: 1, ..USUAL }).expect("a program");
    let price = found.ingress.tables.iter().find(|it| it.name == "add_order_price_0").expect("the table");
    assert!(price.entries.iter().all(|entry| matches!(entry.matches[1], Match::Ternary(..))));
    assert_eq!(price.entries.iter().filter(|entry| entry.fallback).count(), 1);
    let small = tofino(SINGLE, "one.size > 5 : fwd(1);", &USUAL).expect("a program");
    let size = small.ingress.tables.iter().find(|it| it.name == "one_size_0").expect("the table");
    assert!(size.entries.iter().all(|entry| matches!(entry.matches[1], Match::Range(..))));
    // The smallest number comes first.
    let text = bfrt::json(&small);
    assert!(text.contains("\"$MATCH_PRIORITY\": 0") && text.contains("\"$MATCH_PRIORITY\": 1"));
}

#[test]
fn programs_take_what_the_costs_say() {
    let compiler = compiler(&formats(ITCH), &weftwire_workload::itch(300, 3));
    let costs = compiler.tables().costs(&compiler);
    let costs = costs.iter().find(|it| it.variable == "add_order.price").expect("costs");
    let found = |ternary, compress| {
        let targets = Targets { messages: 1, ternary, compress, ..USUAL };
        Program::new(&compiler, Architecture::V1model, &targets).expect("a program")
    };
    let entries = |program: &Program, name: &str| {
        program.ingress.tables.iter().find(|it| it.name == name).map_or(0, |it| it.entries.len() as u64)
    };
    assert_eq!(entries(&found(false, false), "add_order_price_0"), costs.entries as u64);
    assert_eq!(entries(&found(true, false), "add_order_price_0"), costs.ternary.entries);
    let compressed = found(true, true);
    assert_eq!(entries(&compressed, "class_add_order_price_0"), costs.compressed.map.entries);
    assert_eq!(entries(&compressed, "add_order_price_0"), costs.compressed.stage.entries);
    // Thresholds of a hundred symbols share their classes.
    let bits = |program: &Program| program.size().ternary.bits;
    assert!(bits(&compressed) < bits(&found(true, false)), "{} {}", bits(&compressed), bits(&found(true, false)));
}
