//! The script that loads commands, with a stand-in for the switch's command line.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test runs the script and writes its files"
)]

use super::cases::{SINGLE, formats, program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use weftwire_target::{Target, Targets, written};

const LINE: &str = include_str!("simple_switch_CLI.py");

struct Place(PathBuf);

impl Place {
    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("written");
    }

    /// Exit code and what was said, on both channels.
    fn load(&self, arguments: &[&str]) -> (bool, String) {
        let others = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{others}", self.0.display());
        let output = Command::new("python3").arg(self.0.join("load.py")).args(arguments).env("PATH", path).output();
        let output = output.expect("python3 starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

#[test]
fn loading_stops_at_the_first_error() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: python3 is not on PATH; load.py was not run");
        return;
    }
    let place = Place(Path::new(env!("CARGO_TARGET_TMPDIR")).join("subscribe-loader"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&place.0);
    fs::create_dir_all(&place.0).expect("a folder");
    place.write("simple_switch_CLI", LINE);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.0.join("simple_switch_CLI"), executable).expect("it becomes a program");
    let rules = "one.size == 1 : fwd(1, 2); one.size == 2 : fwd(2, 3); one.size > 4 : fwd(4); other == 3 : fwd(1, 3);";
    let found = program(&formats(SINGLE), rules, &Targets::default());
    let files = written(&found, Target::Bmv2);
    files.iter().for_each(|file| place.write(file.name, &file.text));
    let commands = files.iter().find(|file| file.name == "commands.txt").expect("commands").text.clone();
    let count = commands.lines().count();

    assert_eq!(place.load(&[]), (true, format!("{count} commands loaded\n")));

    // The third group has no room.
    place.write("room.txt", "2");
    let (good, said) = place.load(&["--thrift-port", "9091"]);
    assert!(
        !good && said.starts_with("commands.txt:7: mc_mgrp_create 3\nInvalid PRE operation (TABLE_FULL)"),
        "{said}"
    );
    assert!(said.contains("the options that `weft subs compile` told"), "{said}");
    place.write("room.txt", "4096");

    // A name that means two things, as `nothing` does where both controls have it.
    place.write("commands.txt", &commands.replacen(" SwitchIngress.nothing", " nowhere", 1));
    let (good, said) = place.load(&[]);
    assert!(!good && said.contains("has no action nowhere") && said.starts_with("commands.txt:"), "{said}");

    // More entries than a table has room for, unknown words, a switch that has nodes already, none at all.
    let twice: String =
        commands.lines().filter(|line| line.starts_with("table_add")).map(|it| format!("{it}\n{it}\n")).collect();
    place.write("commands.txt", &twice);
    let (good, said) = place.load(&[]);
    assert!(!good && said.contains("Invalid table operation (TABLE_FULL)"), "{said}");
    place.write("commands.txt", "table_put a b\n");
    let (good, said) = place.load(&[]);
    assert!(!good && said.contains("*** Unknown syntax: table_put a b"), "{said}");
    place.write(
        "simple_switch_CLI",
        &LINE.replace("self.nodes, self.entries = set(), 0, {}", "self.nodes, self.entries = set(), 3, {}"),
    );
    place.write("commands.txt", &commands);
    let (good, said) = place.load(&[]);
    assert!(!good && said.contains("the node should have the handle 0; start the switch anew"), "{said}");
    let (good, said) = place.load(&["--no-switch"]);
    assert!(!good && said.contains("takes no commands: Could not connect"), "{said}");
}
