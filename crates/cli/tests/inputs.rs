//! What commands read: regular files up to a limit, and of programs only what lies in their own folder.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command on files of all kinds"
)]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const GOOD: &str = "machine good; initial state only { on packet { notify seen; } }\n";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("inputs-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn weft(folder: &Path, words: &str) -> Output {
    let words = words.replace('$', EXAMPLES);
    let mut weft = Command::new(WEFT);
    weft.args(words.split(' ')).current_dir(folder).stdin(Stdio::null());
    weft.output().unwrap()
}

fn refused(folder: &Path, words: &str, reason: &str) {
    let output = weft(folder, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{words}: {said}");
    assert!(said.contains(reason) && !said.contains("panicked"), "{words}: {said}");
}

#[test]
fn devices_pipes_and_folders_are_no_inputs() {
    let folder = folder("kinds");
    fs::create_dir(folder.join("sub.xl")).unwrap();
    fs::write(folder.join("good.xl"), GOOD).unwrap();
    for (name, target) in [("zero.xl", "/dev/zero"), ("zero.json", "/dev/zero"), ("zero.toml", "/dev/zero")] {
        symlink(target, folder.join(name)).unwrap();
    }
    for name in ["fifo.xl", "fifo.xtra", "fifo.p4", "fifo.pcapng"] {
        assert!(Command::new("mkfifo").arg(folder.join(name)).status().unwrap().success());
    }
    fs::create_dir(folder.join("results.json")).unwrap();
    let rules = "$/subscriptions/itch.rules";
    for (words, reason) in [
        ("check zero.xl", "it is a device"),
        ("check zero.json", "it is a device"),
        ("check zero.toml", "it is a device"),
        ("check fifo.xl", "it is a pipe"),
        ("compile fifo.xtra", "it is a pipe"),
        ("explain sub.xl", "it is a folder"),
        ("sim zero.toml --out out", "it is a device"),
        ("replay good.xl --port 1=fifo.pcapng", "it is a pipe"),
        ("replay good.xl --port 1=none --connect 10.0.0.1:1-10.0.0.2:2 --send /dev/zero", "it is a device"),
        ("report --capture /dev/zero", "it is a device"),
        (&format!("subs check {rules} --format fifo.p4"), "it is a pipe"),
        ("subs check /dev/zero --format $/subscriptions/itch.p4", "it is a device"),
        ("subs match /dev/zero --rules r --format $/subscriptions/itch.p4 --out out", "cannot read r"),
        (
            "subs route --edges /dev/zero --format $/subscriptions/itch.p4 --subscriptions fifo.p4 --out out",
            "it is a pipe",
        ),
        ("subs subscribe --file /dev/zero --controller unix:none", "it is a device"),
        ("study subscriptions --edges /dev/zero --out out", "it is a device"),
        ("compare . .", "it is a folder"),
        ("pace times zero.csv", "No such file"),
    ] {
        refused(&folder, words, reason);
    }
}

#[test]
fn longer_files_than_are_read_are_refused_by_their_length() {
    let folder = folder("limits");
    for (name, length) in [("long.xl", 16 << 20), ("long.json", 64 << 20), ("long.toml", 64 << 20)] {
        // A hole: nothing is written.
        File::create(folder.join(name)).unwrap().set_len(length + 1).unwrap();
        refused(&folder, &format!("check {name}"), &format!("it is longer than {length} bytes"));
    }
    fs::write(folder.join("bytes.xl"), b"machine \xff;").unwrap();
    refused(&folder, "check bytes.xl", "it is no UTF-8 text");
}

#[test]
fn programs_include_files_of_their_own_folder_alone() {
    let folder = folder("includes");
    for name in ["program/parts", "other"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let shared = "action tell() { notify seen; }\n";
    let whole =
        |file: &str| format!("machine m;\ninclude \"{file}\";\ninitial state only {{ on packet {{ tell(); }} }}\n");
    for (name, text) in [
        ("program/parts/shared.xl", shared.to_owned()),
        ("program/parts/nested.xl", "include \"../../other/shared.xl\";\n".to_owned()),
        ("other/shared.xl", shared.to_owned()),
        ("program/inside.xl", whole("parts/shared.xl")),
        ("program/round.xl", whole("parts/../parts/shared.xl")),
        ("program/outside.xl", whole("../other/shared.xl")),
        ("program/nested.xl", whole("parts/nested.xl")),
        ("program/link.xl", whole("parts/link.xl")),
        ("program/absolute.xl", whole(&folder.join("other/shared.xl").to_string_lossy())),
        ("program/endless.xl", whole("/dev/zero")),
        ("program/own.xl", whole("parts/zero.xl")),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    symlink("../../other/shared.xl", folder.join("program/parts/link.xl")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("program/parts/zero.xl")).status().unwrap().success());
    for name in ["inside", "round"] {
        for words in [format!("check program/{name}.xl"), format!("compile program/{name}.xl --output -")] {
            let output = weft(&folder, &words);
            assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        }
        // From within, where the folder has no name.
        assert!(weft(&folder.join("program"), &format!("check {name}.xl")).status.success(), "{name}");
    }
    for name in ["outside", "nested", "link", "absolute", "endless"] {
        refused(
            &folder,
            &format!("check program/{name}.xl"),
            "the program's own folder; allow its folder with --allow-includes",
        );
        refused(&folder.join("program"), &format!("explain {name}.xl"), "the program's own folder");
        if name != "endless" {
            let output = weft(&folder, &format!("check program/{name}.xl --allow-includes other"));
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    refused(&folder, "check program/endless.xl --allow-includes /dev", "it is a device");
    refused(&folder, "check program/own.xl", "it is a pipe");
    refused(&folder, "check program/inside.xl --allow-includes none", "cannot find the folder none");

    // A network's function, whose folder is its own, not the network's.
    let node = "[nodes.m]\nkind = \"function\"\nimage = \"program/outside.xl\"\n";
    let network = format!("duration = \"10ms\"\n{node}[nodes.h]\n[[links]]\nbetween = [\"m\", \"h\"]\n");
    fs::write(folder.join("network.toml"), network).unwrap();
    refused(&folder, "sim network.toml --out out", "--allow-includes");
    let output = weft(&folder, "check network.toml --allow-includes other");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
