//! `weft check`, `compile`, `explain`, `graph` and `replay` from the outside, on good and bad inputs: the exit status, what
//! is said, and that nothing half-written is left.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weftwire_capture::CaptureWriter;
use weftwire_core::{LinkType, Time};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const GOOD: &str = "machine good; initial state only { on packet { notify seen; } }\n";
const BAD: &str = "machine bad;\ninitial state only {\n    on packet { goto nowhere; }\n}\n";

fn weft(folder: &Path, arguments: &[&str]) -> Output {
    let weft = Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).current_dir(folder).output();
    weft.expect("the command starts")
}

/// A fresh folder with a good and a bad program.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("commands-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    fs::write(folder.join("good.xl"), GOOD).expect("the folder is there");
    fs::write(folder.join("bad.xl"), BAD).expect("the folder is there");
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there").filter_map(Result::ok);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs a command that must succeed; what it writes to standard output.
fn good(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = weft(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs a command that must fail with status 1, say all of `parts`, write no file, and not panic.
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let before = files(folder);
    let output = weft(folder, arguments);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?} should say `{part}`: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(files(folder), before, "{arguments:?} left something");
}

/// A command on a file; `replay` wants a port, too.
fn with_port<'a>(command: &'a str, file: &'a str) -> Vec<&'a str> {
    let port: &[&str] = if command == "replay" { &["--port", "1=none"] } else { &[] };
    [&[command, file], port].concat()
}

#[test]
fn check_says_ok_or_where_and_what() {
    let folder = folder("check");
    assert_eq!(
        good(&folder, &["check", "good.xl"]),
        b"good.xl: ok, an event takes at most 1 operation (only: packet)\n"
    );
    refused(
        &folder,
        &["check", "good.xl", "bad.xl"],
        &["bad.xl:3", "there is no state `nowhere`", "states are only", "1 of 2"],
    );
    fs::write(folder.join("warn.xl"), "register a: u8; initial state only { on packet { a = 1; } }").unwrap();
    good(&folder, &["check", "warn.xl"]);
    refused(&folder, &["check", "--deny-warnings", "warn.xl"], &["`a` is never read"]);
    // Registers of the TCP of a network's hosts.
    let network = |node: &str, probes: &str| {
        let ends = "[[links]]\nbetween = ['a', 'b']\n[[traffic]]\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n";
        let text =
            format!("duration = '1s'\nprobes = [{probes}]\n[nodes.a]\nparameters = {{ {node} }}\n[nodes.b]\n{ends}");
        fs::write(folder.join("hosts.toml"), text).unwrap();
    };
    network("mtu = 1400", "'congestion_window'");
    assert_eq!(good(&folder, &["check", "hosts.toml"]), b"hosts.toml: ok\n");
    for (node, probes, says) in [
        ("mtus = 1400", "", "node a: tcp has no register `mtus` to be a parameter; did you mean `mtu`?"),
        ("keep_alive = 'soon'", "", "node a: parameter keep_alive: `soon` does not fit"),
        ("mtu = 1400", "'congestion_windo'", "did you mean `congestion_window`?"),
    ] {
        network(node, probes);
        refused(&folder, &["check", "hosts.toml"], &[says]);
    }
}

#[test]
fn what_check_and_compile_accept_can_run() {
    let folder = folder("runs");
    fs::write(folder.join("probe.p4"), "header probe_t { bit<32> kind; }").unwrap();
    let import = "import \"probe.p4\" { probe_t as probe after udp; }\n";
    let keyed = "flow key (ipv4.source) -> (ipv4.destination), probe.kind;\n";
    let program = format!("{import}{keyed}initial state only {{ on connect {{ notify opened; }} }}");
    fs::write(folder.join("keyed.xl"), program).unwrap();
    for command in ["check", "compile"] {
        let words = ["keyed.xl:2", "`on connect` can't know `probe.kind`", "addresses, ports and protocol"];
        refused(&folder, &[command, "keyed.xl"], &words);
    }
}

#[test]
fn compile_gives_the_same_bytes_each_time_and_everywhere() {
    let folder = folder("compile");
    for example in ["syn-proxy.xl", "arq-sender.xl"] {
        let source = format!("{EXAMPLES}/{example}");
        let shown = good(&folder, &["compile", &source, "-o", "-"]);
        good(&folder, &["compile", &source, "-o", "one.json"]);
        good(&folder, &["compile", &source, "--output", "two.json"]);
        assert_eq!(fs::read(folder.join("one.json")).unwrap(), shown);
        assert_eq!(fs::read(folder.join("two.json")).unwrap(), shown);
    }
    assert!(good(&folder, &["compile", "good.xl"]).is_empty());
    assert_eq!(files(&folder), ["bad.xl", "good.json", "good.xl", "one.json", "two.json"]);
    assert_eq!(
        good(&folder, &["check", "good.json"]),
        b"good.json: ok, an event takes at most 1 operation (only: packet)\n"
    );
}

#[test]
fn compile_writes_nothing_when_it_fails() {
    let folder = folder("compile-bad");
    fs::write(folder.join("bad.json"), "precious").unwrap();
    refused(&folder, &["compile", "bad.xl"], &["bad.xl:3", "there is no state `nowhere`"]);
    assert_eq!(fs::read(folder.join("bad.json")).unwrap(), b"precious");
    refused(&folder, &["compile", "bad.xl", "-o", "-"], &["nowhere"]);
    refused(&folder, &["compile", "good.xl", "-o", "no/such/folder.json"], &["no/such/folder.json"]);
    fs::create_dir(folder.join("place.json")).unwrap();
    refused(&folder, &["compile", "good.xl", "-o", "place.json"], &["place.json"]);
    refused(&folder, &["compile", "place.json"], &["sources end in .xl or .xtra"]);
}

#[test]
fn a_profile_that_is_exceeded_is_named_with_what_exceeds_it() {
    let folder = folder("profile");
    let parts: String = (0..700).map(|n| format!("if tcp.window == {n} {{ notify n{n}; }}\n")).collect();
    fs::write(folder.join("large.xl"), format!("initial state only {{ on packet {{ {parts} }} }}")).unwrap();
    good(&folder, &["check", "large.xl"]);
    refused(
        &folder,
        &["check", "large.xl", "--profile", "fpga"],
        &["large.xl:", ": profile fpga: rows: ", "large.xl: too large for the profile `fpga`"],
    );
    let checked = weft(&folder, &["check", "large.xl", "--profile", "fpga"]);
    assert!(!String::from_utf8_lossy(&checked.stdout).contains("ok"), "nothing says `ok` of what does not fit");
    let many: String = (0..20).map(|n| format!("    tcp.window = {n};\n")).collect();
    fs::write(folder.join("long.xl"), format!("initial state only {{\n  on packet {{\n{many}  }}\n}}")).unwrap();
    let place = ["long.xl:2: profile fpga: rows[0].operations: 20 operations", "operation 17 is `set_field`"];
    refused(&folder, &["check", "long.xl", "--profile", "fpga"], &place);
    // What is too much may stand in a file that the program includes.
    fs::create_dir(folder.join("parts")).unwrap();
    fs::write(folder.join("parts/long.xl"), format!("// Long.\naction long {{\n{many}}}\n")).unwrap();
    let main = "include \"parts/long.xl\";\ninitial state only {\n  on packet { if tcp.syn { long(); } }\n}";
    fs::write(folder.join("main.xl"), main).unwrap();
    refused(&folder, &["check", "main.xl", "--profile", "fpga"], &["main.xl:3: profile fpga: rows[0].operations: 20"]);
    let states = "state other {\n  on packet {\n".to_owned() + &many + "  }\n}\n";
    fs::write(folder.join("parts/state.xl"), states).unwrap();
    let main = "include \"parts/state.xl\";\ninitial state only { on packet { goto other; } }";
    fs::write(folder.join("main.xl"), main).unwrap();
    let place = "parts/state.xl:2: profile fpga: rows[1].operations: 20 operations";
    refused(&folder, &["check", "main.xl", "--profile", "fpga"], &[place]);
    good(&folder, &["compile", "main.xl"]);
    refused(&folder, &["check", "main.json", "--profile", "fpga"], &[place]);
    let old = fs::read_to_string(folder.join("main.json")).unwrap().replace("image\": 2", "image\": 1");
    fs::write(folder.join("old.json"), old).unwrap();
    refused(&folder, &["check", "old.json"], &["image of version 1", "compile its program again with `weft compile`"]);
    refused(
        &folder,
        &["compile", "large.xl", "--profile", "fpga"],
        &["exceeds the profile `fpga`", "nothing was written"],
    );
    // How many settings of timers there may be is the program's to say, then what its handlers show, then the platform's.
    let said = [("", "set", 4_096, 16), ("", "reset", 1, 1), ("flow key five_tuple at most 9 timers;", "set", 9, 9)];
    for (flow, verb, software, fpga) in said {
        let program = format!("{flow} timer t; initial state only {{ on packet {{ {verb} t in 1s; }} on t {{ }} }}");
        fs::write(folder.join("timers.xl"), program).unwrap();
        for (profile, most) in [("software", software), ("fpga", fpga)] {
            good(&folder, &["compile", "timers.xl", "--profile", profile]);
            let image = fs::read_to_string(folder.join("timers.json")).unwrap();
            assert!(image.contains(&format!("\"max_timers\": {most}\n")), "{flow} {verb} {profile}: {image}");
        }
    }
    let output = weft(&folder, &["compile", "good.xl", "--profile", "abacus"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("profiles are software and fpga"));
}

#[test]
fn files_that_are_not_there_or_no_files_are_named() {
    let folder = folder("missing");
    for directory in ["folder.xl", "folder.json"] {
        fs::create_dir(folder.join(directory)).unwrap();
    }
    fs::write(folder.join("binary.xl"), [0xff, 0xfe, 0, 1]).unwrap();
    for command in ["check", "explain", "graph", "replay", "compile"] {
        for file in ["nosuch.xl", "folder.xl", "binary.xl", "nosuch.json", "folder.json"] {
            refused(&folder, &with_port(command, file), &[file]);
        }
    }
}

#[test]
fn hostile_images_are_refused_with_a_reason() {
    let folder = folder("images");
    good(&folder, &["compile", "good.xl"]);
    let image = fs::read_to_string(folder.join("good.json")).unwrap();
    let deep = "[".repeat(200_000);
    let changed = image.replacen("\"good\"", "\"evil\"", 1);
    let other_version = image.replacen("\"weftwire_image\": 2", "\"weftwire_image\": 999", 1);
    assert!(changed != image && other_version != image, "{image}");
    for (text, reason) in [
        ("", "line 1"),
        ("null", "null"),
        ("{}", "missing field"),
        (deep.as_str(), "line 1"),
        (&image[..image.len() / 2], "EOF"),
        (changed.as_str(), "digest"),
        (other_version.as_str(), "999"),
    ] {
        fs::write(folder.join("hostile.json"), text).unwrap();
        for command in ["check", "explain", "graph", "replay"] {
            refused(&folder, &with_port(command, "hostile.json"), &["hostile.json", reason]);
        }
    }
    fs::write(folder.join("hostile.json"), [0xff, 0xfe]).unwrap();
    refused(&folder, &["check", "hostile.json"], &["hostile.json"]);
}

#[test]
fn pictures_are_written_whole_or_not_at_all() {
    let folder = folder("pictures");
    for command in ["explain", "graph"] {
        let shown = good(&folder, &[command, "good.xl"]);
        good(&folder, &[command, "good.xl", "--out", "out"]);
        assert_eq!(fs::read(folder.join("out")).unwrap(), shown);
        refused(&folder, &[command, "bad.xl", "--out", "new"], &["nowhere"]);
        refused(&folder, &[command, "good.xl", "--out", "no/such"], &["no/such"]);
    }
    refused(&folder, &["graph", "good.xl", "--phases", "bbr.mode"], &["good.xl", "no", "module `bbr`", "`mode`"]);
}

#[test]
fn captures_that_are_empty_or_cut_are_dealt_with() {
    let folder = folder("captures");
    let path = folder.join("whole.pcap");
    let mut writer = CaptureWriter::pcap(fs::File::create(&path).unwrap(), LinkType::Ethernet).unwrap();
    for second in 0..3 {
        writer.write(Time::from_nanoseconds(second * 1_000_000_000), 0, &[0; 60], None).unwrap();
    }
    drop(writer);
    let whole = fs::read(&path).unwrap();
    good(&folder, &["replay", "good.xl", "--port", "1=whole.pcap", "--out", "out.pcapng"]);
    fs::remove_file(folder.join("out.pcapng")).unwrap();

    // The header alone is a capture of nothing.
    fs::write(folder.join("header.pcap"), &whole[..24]).unwrap();
    good(&folder, &["replay", "good.xl", "--port", "1=header.pcap"]);

    fs::write(folder.join("empty.pcap"), "").unwrap();
    fs::write(folder.join("cut.pcap"), &whole[..whole.len() - 30]).unwrap();
    fs::write(folder.join("header-cut.pcap"), &whole[..10]).unwrap();
    fs::write(folder.join("text.pcap"), "this is no capture at all, but a text").unwrap();
    for file in ["empty.pcap", "cut.pcap", "header-cut.pcap", "text.pcap"] {
        let port = format!("1={file}");
        let arguments = ["replay", "good.xl", "--port", &port, "--out", "out.pcapng", "--trace", "out.jsonl"];
        refused(&folder, &arguments, &[file]);
    }
    let port = ["replay", "good.xl", "--port", "1=whole.pcap", "--out", "no/such/out.pcapng"];
    refused(&folder, &port, &["no/such/out.pcapng"]);
}
