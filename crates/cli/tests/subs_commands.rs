//! `weft subs check`, `compile`, `match`, `explain`, `graph` and `route` from the outside: what good runs leave, what is
//! said about wrong ones, and that nothing is left behind by those.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of the command run it and look at its files"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions");

/// A folder of a test with the example's files and some with mistakes.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("subs-commands-{name}"));
        // It may be there from the last run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the build's folder can be written");
        for file in ["itch.p4", "market-data.rules", "market-data.pcapng"] {
            fs::copy(Path::new(EXAMPLES).join(file), folder.join(file)).expect("the example is there");
        }
        let place = Place(folder);
        place.write("wrong.rules", "add_order.stock == A : fwd(1);\nadd_order.prize > 5 : fwd(2);\ntrue fwd(2);\n");
        place.write("doubtful.rules", "add_order.price > 5 and add_order.price < 3 : fwd(1);\n");
        place.write("wrong.p4", "header a {\n    bit<8> x;\n    @subscribe[match=nearly] bit<8> y;\n}\n");
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.arg("subs").args(words).current_dir(&self.0);
        command
    }

    fn weft(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("weft starts")
    }

    /// Runs a command that succeeds; what it says on standard output.
    fn good(&self, words: &[&str]) -> String {
        let output = self.weft(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        assert_eq!(said(&output), "", "{words:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that fails; what it says on standard error.
    fn wrong(&self, words: &[&str]) -> String {
        let output = self.weft(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        said(&output)
    }

    /// The files of a folder by name, but for the list of them.
    fn files(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|it| it.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != ".weft-files");
        names.sort();
        names
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const RULES: [&str; 3] = ["market-data.rules", "--format", "itch.p4"];
const MATCH: [&str; 6] = ["match", "market-data.pcapng", "--rules", "market-data.rules", "--format", "itch.p4"];

#[test]
fn check_tells_line_place_and_reason() {
    let place = Place::new("check");
    assert_eq!(place.good(&[&["check"], &RULES[..]].concat()), "market-data.rules: ok, 3 rules\n");
    let error = place.wrong(&["check", "wrong.rules", "market-data.rules", "--format", "itch.p4"]);
    for part in [
        "error: filters can't use a field `add_order.prize`\n --> wrong.rules:2:1\n",
        "2 | add_order.prize > 5 : fwd(2);\n  | ^^^^^^^^^^^^^^^\n",
        "= help: did you mean `price`?",
        "error: expected `:`, found `fwd`\n --> wrong.rules:3:6\n",
        "= help: a rule is `filter : action, action;`",
        "error: 1 of 2 files failed",
    ] {
        assert!(error.contains(part), "{part}\n in\n{error}");
    }
    let error = place.wrong(&["check", "market-data.rules", "--format", "wrong.p4"]);
    assert!(error.contains(" --> wrong.p4:3:") && error.contains("nearly"), "{error}");
    // All files are looked at, each with its own result.
    let output = place.weft(&["check", "wrong.rules", "market-data.rules", "--format", "itch.p4"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told, "wrong.rules: 2 errors, 0 warnings\nmarket-data.rules: ok, 3 rules\n");
}

#[test]
fn warnings_fail_only_if_they_are_denied() {
    let place = Place::new("warnings");
    let words = ["check", "doubtful.rules", "--format", "itch.p4"];
    let output = place.weft(&words);
    assert!(output.status.success());
    for part in ["warning: this rule never matches\n --> doubtful.rules:1:1\n", "^^^ its tests exclude each other"] {
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "doubtful.rules: 0 errors, 1 warning\n");
    let error = place.wrong(&[&words[..], &["--deny-warnings"]].concat());
    assert!(error.contains("this rule never matches") && error.contains("1 of 1 files failed"), "{error}");
}

#[test]
fn compile_writes_all_files_or_none() {
    let place = Place::new("compile");
    let told = place.good(&[&["compile"], &RULES[..]].concat());
    assert!(told.contains("3 rules, 5 stages") && told.contains("1 multicast group\n"), "{told}");
    // The folder is made with all above it; one that is there keeps what else is in it.
    let words = [&["compile"], &RULES[..], &["-o", "deep/out"]].concat();
    place.good(&words);
    assert_eq!(place.files("deep/out"), ["tables.json"]);
    place.write("deep/out/note.txt", "mine");
    place.write("deep/out/tables.json", "old");
    let told = place.good(&[&words[..], &["--target", "p4,bmv2,p4runtime", "--messages", "4"]].concat());
    assert!(told.contains("3 rules"));
    let all = "commands.txt entries.txtpb load.py note.txt p4info.txtpb switch.json switch.p4 tables.json";
    assert_eq!(place.files("deep/out").join(" "), all);
    assert_eq!(place.read("deep/out/note.txt"), "mine");
    let tables: serde_json::Value = serde_json::from_str(&place.read("deep/out/tables.json")).expect("it is JSON");
    assert_eq!(tables["layout"], "weftwire-subscription-tables/1");

    // Rules that the tables hold and a target does not: nothing is written, also not the tables.
    place.write("far.rules", "add_order.price > 5 : fwd(600);");
    let error = place.wrong(&["compile", "far.rules", "--format", "itch.p4", "-o", "far", "--target", "p4"]);
    assert!(error.contains("the rules can't become a program for") && error.contains("port 600"), "{error}");
    let error = place.wrong(&["compile", "wrong.rules", "--format", "itch.p4", "-o", "far"]);
    assert!(error.contains("wrong.rules:2:1") && error.contains("2 errors"), "{error}");
    // As many messages as a packet has room for, where nobody says how many.
    let told = place.good(&[&words[..], &["--target", "p4,tna"]].concat());
    assert!(told.contains("p4: looks at 38 messages of a packet") && told.contains("tna: looks at "), "{told}");
    let told = place.good(&[&words[..], &["--target", "p4", "--messages", "2"]].concat());
    assert!(told.contains("p4: looks at 2 messages of a packet"), "{told}");

    // What no packet has is refused for switches; tables may be for other programs.
    place.write("adrift.p4", "header adrift { @subscribe[] bit<8> x; }");
    place.write("adrift.rules", "x > 1 : fwd(1);");
    place.good(&["compile", "adrift.rules", "--format", "adrift.p4"]);
    for target in ["p4", "bmv2", "tna", "xl"] {
        let words = ["compile", "adrift.rules", "--format", "adrift.p4", "-o", "far", "--target", target];
        let error = place.wrong(&words);
        assert!(error.contains("`adrift` has no place in packets"), "{error}");
    }
    // A program that `weft check` would refuse is not written either.
    place.write(
        "word.p4",
        "@subscribe[after=udp, when=udp.destination_port == 7] header not { @subscribe[] bit<8> x; }",
    );
    place.write("word.rules", "x > 1 : fwd(1);");
    for target in ["xl", "image"] {
        let error = place.wrong(&["compile", "word.rules", "--format", "word.p4", "-o", "far", "--target", target]);
        assert!(error.contains("the rules can't become a machine"), "{error}");
        let hairpin =
            ["compile", "market-data.rules", "--format", "itch.p4", "-o", "far", "--hairpin", "--target", target];
        assert!(place.wrong(&hairpin).contains("--hairpin"));
    }
    assert!(place.files("far").is_empty());

    // More groups of ports than a switch has room for unless it is told.
    let pairs = (1..=92).flat_map(|a| (a + 1..=92).map(move |b| (a, b)));
    let rules = pairs.enumerate().map(|(at, (a, b))| format!("udp.source_port == {at} : fwd({a}, {b});\n"));
    place.write("groups.rules", &rules.collect::<String>());
    let words =
        ["compile", "groups.rules", "--format", "itch.p4", "-o", "groups", "--target", "bmv2", "--messages", "1"];
    let told = place.good(&words);
    assert!(told.contains("bmv2: 4186 multicast groups,") && told.contains("-- --max-mc-groups 4186"), "{told}");
    let error = place.wrong(&[&["compile"], &RULES[..], &["-o", "itch.p4"]].concat());
    assert!(error.contains("cannot make the folder itch.p4"), "{error}");
    let error = place.wrong(&[&["compile"], &RULES[..], &["--order", "add_order.stock,depth"]].concat());
    assert!(error.contains("there is no one field `depth`"), "{error}");
    // A target needs a folder.
    assert_eq!(place.weft(&[&["compile"], &RULES[..], &["--target", "p4"]].concat()).status.code(), Some(2));
}

#[test]
fn missing_files_are_named() {
    let place = Place::new("missing");
    for words in [
        &["check", "none.rules", "--format", "itch.p4"][..],
        &["compile", "none.rules", "--format", "itch.p4"],
        &["graph", "none.rules", "--format", "itch.p4"],
        &["explain", "none.rules", "--format", "itch.p4", "true"],
        &["match", "market-data.pcapng", "--rules", "none.rules", "--format", "itch.p4", "--out", "out"],
    ] {
        let error = place.wrong(words);
        assert!(error.contains("cannot read none.rules: No such file"), "{words:?}: {error}");
        let formats: Vec<&str> = words
            .iter()
            .map(|word| match *word {
                "none.rules" => "market-data.rules",
                "itch.p4" => "none.p4",
                other => other,
            })
            .collect();
        assert!(place.wrong(&formats).contains("cannot read none.p4: No such file"), "{formats:?}");
    }
    let error = place.wrong(&["match", "none.pcap", "--rules", RULES[0], "--format", "itch.p4", "--out", "out"]);
    assert!(error.contains("cannot open none.pcap: No such file"), "{error}");
    assert!(!place.0.join("out").exists());
}

#[test]
fn match_writes_a_capture_a_port() {
    let place = Place::new("match");
    let words = [&MATCH[..], &["--out", "out"]].concat();
    let told = place.good(&words);
    assert_eq!(
        told,
        "150 packets with 1336 messages; 1005 messages match no rule\nport 2: 59 packets with 79 messages\n\
         port 3: 111 packets with 252 messages\nport 4: 30 packets with 32 messages\n"
    );
    assert_eq!(place.files("out"), ["port-2.pcapng", "port-3.pcapng", "port-4.pcapng"]);
    // Into the same folder again: the same bytes.
    let before = fs::read(place.0.join("out/port-3.pcapng")).expect("it is there");
    place.good(&words);
    assert_eq!(fs::read(place.0.join("out/port-3.pcapng")).expect("it is there"), before);
    // What came out goes in again, and passes in whole.
    let again = ["match", "out/port-3.pcapng", "--rules", RULES[0], "--format", "itch.p4", "--out", "again"];
    assert!(place.good(&again).contains("port 3: 111 packets with 252 messages"));
}

#[test]
fn broken_captures_leave_nothing() {
    let place = Place::new("broken");
    let bytes = fs::read(place.0.join("market-data.pcapng")).expect("it is there");
    fs::write(place.0.join("cut.pcapng"), &bytes[..3000]).expect("written");
    for (capture, says) in [
        ("cut.pcapng", "cannot read cut.pcapng: record 6: the file ends inside a block"),
        ("itch.p4", "cannot read itch.p4: this is no capture file"),
    ] {
        let error = place.wrong(&["match", capture, "--rules", RULES[0], "--format", "itch.p4", "--out", "out"]);
        assert!(error.contains(says), "{error}");
        let error = place.wrong(&["explain", RULES[0], "--format", "itch.p4", "--capture", capture]);
        assert!(error.contains(says), "{error}");
        assert!(!place.0.join("out").exists());
    }
}

/// A capture of many packets takes long enough to be interrupted while files are open.
#[test]
fn an_interrupted_match_leaves_no_files() {
    let place = Place::new("interrupted");
    let bytes = fs::read(place.0.join("market-data.pcapng")).expect("it is there");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    // The section's and the interface's block, then the packets again and again.
    let header = word(4) + word(word(4) + 4);
    let mut long = bytes.clone();
    for _ in 0..2000 {
        long.extend_from_slice(&bytes[header..]);
    }
    fs::write(place.0.join("long.pcapng"), long).expect("written");
    let words = ["match", "long.pcapng", "--rules", RULES[0], "--format", "itch.p4", "--out", "out"];
    let mut command = place.command(&words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.files(".").iter().any(|name| name.starts_with("out.") && name.ends_with(".partial")) {
        assert!(Instant::now() < deadline, "nothing was begun");
        std::thread::yield_now();
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(interrupted.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("interrupted; nothing was written"), "{}", said(&output));
    assert!(!place.files(".").iter().any(|name| name.starts_with("out")), "{:?}", place.files("."));
}

#[test]
fn explain_tells_why() {
    let place = Place::new("explain");
    let told =
        place.good(&[&["explain"], &RULES[..], &["add_order.stock=META", "add_order.price=40.5", "--all"]].concat());
    for part in [
        "stock=\"META\" price=40.5000",
        "line 2 does not match: add_order.stock == GOOGL and add_order.price > 50 : fwd(2)",
        "add_order.price > 50: does not hold, it is 40.5000",
        "line 3 matches:",
        "trade.shares >= 300: does not hold, the message has no trade",
        "it goes to ports 3\n",
    ] {
        assert!(told.contains(part), "{part}\n in\n{told}");
    }
    // Without --all only what matches.
    let told = place.good(&[&["explain"], &RULES[..], &["trade.shares=300"]].concat());
    assert!(told.contains("line 4 matches") && !told.contains("line 2"), "{told}");
    assert!(place.good(&[&["explain"], &RULES[..], &["trade.shares=299"]].concat()).ends_with("it is dropped\n"));
    let told =
        place.good(&[&["explain"], &RULES[..], &["--capture", "market-data.pcapng", "--packet", "149"]].concat());
    assert_eq!(told.lines().filter(|line| line.starts_with("message ")).count(), 17);
    for (words, says) in [
        (&["add_order.stuck=S01"][..], "did you mean `stock`?"),
        (&["add_order.stock"], "add_order.stock"),
        (&["add_order.side=B", "trade.price=5"], "no message is both `add_order` and `trade`"),
        (&["add_order.price=1.23456"], "more decimals"),
        (&["--capture", "market-data.pcapng", "--packet", "151"], "market-data.pcapng has 150 packets"),
    ] {
        let error = place.wrong(&[&["explain"], &RULES[..], words].concat());
        assert!(error.contains(says), "{words:?}: {error}");
    }
    assert_eq!(place.weft(&[&["explain"], &RULES[..]].concat()).status.code(), Some(2));
}

/// Fields that rules compare with addresses are shown as those are written.
#[test]
fn explain_shows_addresses_as_addresses() {
    let place = Place::new("explain-addresses");
    place.write(
        "plain.p4",
        "header message { @subscribe[] bit<128> to; @subscribe[] bit<48> at; @subscribe[] bit<32> by; }",
    );
    let rules = "ipv4.destination in 10.0.0.0/8 : fwd(1);\nto == fd00::1: fwd(2);\nat == 02:00:00:00:00:01: fwd(3);\nby > 7: fwd(4);";
    place.write("plain.rules", rules);
    let words = ["explain", "plain.rules", "--format", "plain.p4", "--all"];
    let fields = ["ipv4.destination=10.1.2.3", "to=fd00::2", "at=02:00:00:00:00:0a", "by=9"];
    let told = place.good(&[&words[..], &fields[..]].concat());
    for part in [
        "destination=10.1.2.3",
        "to=fd00::2 at=02:00:00:00:00:0a by=9",
        "holds, it is 10.1.2.3",
        "does not hold, it is fd00::2",
    ] {
        assert!(told.contains(part), "{part}\n in\n{told}");
    }
}

/// Whether rules fit does not depend on the machine: the budget is counted.
#[test]
fn rules_over_the_budget_are_refused_with_the_costly_one() {
    let place = Place::new("budget");
    let fields: String = (0..40).map(|field| format!("@subscribe[] bit<8> f{field}; ")).collect();
    place.write("many.p4", &format!("header message {{ {fields} }}"));
    let rules: String = (0..40).map(|n| format!("f{n} > {n} : fwd({});\n", n + 1)).collect();
    place.write("many.rules", &rules);
    for command in [&["compile"][..], &["graph"]] {
        let many = ["many.rules", "--format", "many.p4", "--budget", "50000"];
        let error = place.wrong(&[command, &many[..]].concat());
        for part in ["come to more than 50000 edges", "many.rules:", "--budget allows more"] {
            assert!(error.contains(part), "{part}\n in\n{error}");
        }
        place.good(&[command, &["market-data.rules", "--format", "itch.p4", "--budget", "50000"]].concat());
    }
    let told = place.good(&["compile", "market-data.rules", "--format", "itch.p4"]);
    assert!(told.contains("in the order of the formats"), "{told}");
}

/// `match` carries no action out, and says where that makes a difference.
#[test]
fn match_tells_of_actions_that_run_would_carry_out_first() {
    let place = Place::new("match-actions");
    let formats = place.read("itch.p4").replacen(
        "header add_order",
        "@subscribe_action[name=answerEcho, arguments=\"\"]\nheader add_order",
        1,
    );
    place.write("echo.p4", &formats);
    place.write("echo.rules", "add_order.price > 5 : answerEcho();\nadd_order.price > 5 : fwd(1);\n");
    let told =
        place.good(&["match", "market-data.pcapng", "--rules", "echo.rules", "--format", "echo.p4", "--out", "out"]);
    assert!(told.contains("messages have actions and ports: `weft subs run` carries the actions out first"), "{told}");
    place.write("apart.rules", "add_order.price > 5 : answerEcho();\nadd_order.price <= 5 : fwd(1);\n");
    let told =
        place.good(&["match", "market-data.pcapng", "--rules", "apart.rules", "--format", "echo.p4", "--out", "apart"]);
    assert!(told.contains("which are not carried out here") && !told.contains("actions and ports"), "{told}");
}

#[test]
fn graph_draws_the_diagram() {
    let place = Place::new("graph");
    let dot = place.good(&[&["graph"], &RULES[..], &["--picture", "dot"]].concat());
    assert!(dot.starts_with("digraph") && dot.contains("add_order present"), "{dot}");
    let svg = place.good(&[&["graph"], &RULES[..]].concat());
    assert_eq!(place.good(&[&["graph"], &RULES[..], &["-o", "diagram.svg"]].concat()), "");
    assert_eq!(place.read("diagram.svg"), svg);
    assert!(svg.contains("<svg") && svg.contains("fwd(2, 4)") && svg.trim_end().ends_with("</svg>"));
    let error = place.wrong(&["graph", "wrong.rules", "--format", "itch.p4", "-o", "wrong.svg"]);
    assert!(error.contains("wrong.rules:2:1"), "{error}");
    assert!(!place.0.join("wrong.svg").exists());
}

#[test]
fn route_counts_what_messages_cross() {
    let place = Place::new("route");
    place.write(
        "wanted",
        "pod1-host1: add_order.stock == AAPL\npod2-host1: add_order.price > 50\npod3-host2: trade.shares >= 300\n",
    );
    let words = ["route", "--fat-tree", "4", "--format", "itch.p4", "--subscriptions", "wanted", "-o", "out"];
    let told = place.good(&[&words[..], &["--messages", "market-data.pcapng"]].concat());
    assert!(told.contains("3 subscriptions, 20 switches") && told.contains("links of layer"), "{told}");
    let results: serde_json::Value = serde_json::from_str(&place.read("out/results.json")).expect("it is JSON");
    assert_eq!(results["messages"], 1336);
    assert!(results["deliveries"].as_u64().is_some_and(|count| count > 50), "{}", results["deliveries"]);
    let traffic = place.read("out/traffic.csv");
    assert!(traffic.starts_with("layer,crossings,extra,extra_share\n") && traffic.lines().count() > 2, "{traffic}");
    // Without rounding no packet crosses in vain where traffic is reduced.
    assert!(traffic.lines().skip(1).all(|line| line.split(',').nth(2) == Some("0")), "{traffic}");
    let fresh = [&words[..8], &["other", "--messages", "itch.p4"]].concat();
    let error = place.wrong(&fresh);
    assert!(error.contains("cannot read itch.p4: this is no capture file"), "{error}");
    assert!(!place.0.join("other").exists());
}

const PORTS: &str = "udp.destination_port == 26400 and ipv4.ttl > 3 : fwd(2, 3);\nudp.length >= 880 : fwd(4);\n";

/// The machine that rules come to checks, draws, compiles to the image that is written beside it, and forwards in a simulated network what a
/// switch with the rules forwards.
#[test]
fn rules_become_a_machine() {
    let place = Place::new("machine");
    place.write("ports.rules", PORTS);
    place.good(&["compile", "ports.rules", "--format", "itch.p4", "-o", "out", "--target", "xl,image"]);
    assert_eq!(place.files("out"), ["image.json", "switch.xl", "tables.json"]);
    let weft = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(words).current_dir(&place.0).output();
        let output = output.expect("weft starts");
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    weft(&["check", "out/switch.xl", "--deny-warnings"]);
    weft(&["check", "out/switch.xl", "--profile", "fpga"]);
    weft(&["compile", "out/switch.xl", "-o", "again.json"]);
    assert_eq!(place.read("again.json"), place.read("out/image.json"));
    assert!(weft(&["graph", "out/image.json"]).contains("<svg"));
    let network = |function: &str| {
        let mut text = format!(
            "duration = \"50ms\"\nrecord = [\"switch\"]\n[nodes.switch]\nkind = \"function\"\n{function}\n[nodes.one]\n"
        );
        text += "[[links]]\nbetween = [\"one\", \"switch:1\"]\nrate = \"1Gbit/s\"\ndelay = \"1us\"\n";
        for port in 2..=4 {
            text += &format!("[nodes.n{port}]\n[[links]]\nbetween = [\"switch:{port}\", \"n{port}\"]\n");
            text += "rate = \"1Gbit/s\"\ndelay = \"1us\"\n";
        }
        text + "[[traffic]]\nname = \"feed\"\nkind = \"capture\"\nfrom = \"one\"\nfile = \"market-data.pcapng\"\n"
    };
    let sent = |name: &str, function: &str| {
        place.write(&format!("{name}.toml"), &network(function));
        weft(&["sim", &format!("{name}.toml"), "--out", name]);
        support::sent(&place.0.join(name).join("switch.pcapng")).expect("a capture")
    };
    let machine = sent("machine", "image = \"out/image.json\"");
    let switch = sent("switch", "rules = \"ports.rules\"\nformat = \"itch.p4\"");
    assert!(machine.len() > 60, "{} frames", machine.len());
    assert_eq!(machine, switch);

    let error = place.wrong(&[&["compile"], &RULES[..], &["-o", "none", "--target", "image"]].concat());
    assert!(error.contains("the rules can't become a machine") && error.contains("a message of a batch"), "{error}");
    assert!(place.files("none").is_empty());
}
