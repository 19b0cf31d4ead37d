//! Folders of results: they appear as a whole, nothing old stays beside what is new, and nothing of others is removed.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::place::{self, EXAMPLES, WEFT, names};

fn folder(name: &str) -> PathBuf {
    place::folder(&format!("folders-{name}"))
}

/// Words with spaces between them; `$` is the folder of the examples.
fn weft(folder: &Path, words: &str) -> Output {
    let words = words.replace('$', EXAMPLES);
    place::weft(folder, &words.split(' ').collect::<Vec<_>>())
}

fn done(folder: &Path, words: &str) {
    let output = weft(folder, words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

fn refused(folder: &Path, words: &str, reason: &str) {
    let before = names(folder);
    let output = weft(folder, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains(reason), "{words}: {said}");
    assert_eq!(names(folder), before, "{words} left something");
}

const RECORDED: &str = "sim $/networks/arq.toml --duration 50ms --out";
const PLAIN: &str = "sim $/networks/dumbbell.toml --duration 50ms --out";

#[test]
fn a_run_takes_the_place_of_older_results() {
    let folder = folder("replace");
    done(&folder, &format!("{RECORDED} out"));
    let (first, out) = (names(&folder.join("out")), folder.join("out"));
    assert!(first.contains("sender.trace.jsonl") && first.contains("results.json"), "{first:?}");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o750)).unwrap();
    let before = fs::metadata(&out).unwrap();
    done(&folder, &format!("{PLAIN} out"));
    let second = names(&out);
    assert!(!second.iter().any(|name| name.ends_with(".trace.jsonl") || name.starts_with("sender")), "{second:?}");
    let after = fs::metadata(&out).unwrap();
    assert!(after.ino() != before.ino() && after.mode() == before.mode(), "the folders are exchanged");

    // What is not of weft stays, as does a link to the folder; and so does the folder where somebody is in it.
    fs::write(out.join("notes.txt"), "mine").unwrap();
    symlink("out", folder.join("link")).unwrap();
    done(&folder, &format!("{RECORDED} link"));
    assert_eq!(names(&out), first.iter().cloned().chain(["notes.txt".to_owned()]).collect());
    assert_eq!(fs::metadata(&out).unwrap().ino(), after.ino());
    fs::remove_file(out.join("notes.txt")).unwrap();
    done(&out, &format!("{PLAIN} ."));
    assert_eq!(names(&out), second);
    assert_eq!(fs::metadata(&out).unwrap().ino(), after.ino());
    assert!(fs::symlink_metadata(folder.join("link")).unwrap().is_symlink());
    assert_eq!(names(&folder), ["link", "out"].map(str::to_owned).into());

    // A device in the folder is written through.
    fs::remove_file(out.join("report.html")).unwrap();
    symlink("/dev/null", out.join("report.html")).unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    done(&folder, &format!("{PLAIN} out"));
    assert!(fs::symlink_metadata(out.join("report.html")).unwrap().is_symlink());
}

#[test]
fn a_run_that_fails_leaves_the_older_results() {
    let folder = folder("fail");
    done(&folder, &format!("{PLAIN} out"));
    let before = fs::read(folder.join("out/results.json")).unwrap();
    // A capture that is no capture is found out when the run has begun.
    fs::write(folder.join("none.pcapng"), "no capture").unwrap();
    let traffic = "[[traffic]]\nkind = \"capture\"\nfile = \"none.pcapng\"\nfrom = \"a\"\n";
    let network = format!("duration = \"1s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\n{traffic}");
    fs::write(folder.join("bad.toml"), network).unwrap();
    refused(&folder, "sim bad.toml --out out", "this is no capture file");
    refused(&folder, "sim bad.toml --out new", "this is no capture file");
    assert!(fs::read(folder.join("out/results.json")).unwrap() == before);
    fs::write(folder.join("file"), "").unwrap();
    refused(&folder, &format!("{PLAIN} file"), "it is there, and no folder");
}

#[test]
fn results_of_unknown_files_are_refused() {
    let folder = folder("unknown");
    for name in ["results.json", "a.trace.jsonl", "runs.csv", "port-3.pcapng"] {
        fs::create_dir(folder.join(name.replace('.', "-"))).unwrap();
        fs::write(folder.join(name.replace('.', "-")).join(name), "old").unwrap();
        refused(&folder, &format!("{PLAIN} {}", name.replace('.', "-")), "new ones would stand beside them");
    }
    // A list that names what lies elsewhere has nothing removed there.
    fs::create_dir(folder.join("out")).unwrap();
    fs::write(folder.join("kept"), "").unwrap();
    fs::write(folder.join("out/.weft-files"), "../kept\n..\n/\n").unwrap();
    done(&folder, &format!("{PLAIN} out"));
    assert!(folder.join("kept").exists());
}

#[test]
fn many_runs_and_one_do_not_share_a_folder() {
    let folder = folder("many");
    let many = "sim $/networks/dumbbell.toml --duration 20ms --out many --repeat";
    done(&folder, &format!("{many} 3"));
    done(&folder, &format!("{many} 3"));
    done(&folder, &format!("{many} 4"));
    refused(&folder, &format!("{many} 2"), "this command makes 2; remove the runs behind them");
    refused(&folder, &format!("{PLAIN} many"), "new ones would stand beside them");
    done(&folder, &format!("{PLAIN} one"));
    refused(
        &folder,
        "sim $/networks/dumbbell.toml --duration 20ms --out one --repeat 2",
        "holds the results of one run",
    );
}

#[test]
fn a_network_larger_than_memory_is_refused_before_it_starts() {
    let folder = folder("memory");
    let network = |gap: &str| {
        let traffic = format!("kind = \"flows\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1kB\"\ngap = \"{gap}\"\n");
        format!(
            "duration = \"1000s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\n[[traffic]]\n{traffic}"
        )
    };
    fs::write(folder.join("endless.toml"), network("1ns")).unwrap();
    fs::write(folder.join("large.toml"), network("1ms")).unwrap();
    fs::write(folder.join("small.toml"), network("1s")).unwrap();
    // More than any machine has.
    refused(&folder, "sim endless.toml --out out", "for 1000000000000 flows");
    refused(&folder, "sim endless.toml --out out --repeat 2", "for 1000000000000 flows");
    refused(&folder, "sim endless.toml --chaos 1", "open fewer flows");
    let limited = |file: &str| {
        let command = format!("ulimit -v 600000 && {WEFT} sim {file}.toml --duration 900s --out limited");
        Command::new("sh").args(["-c", &command]).current_dir(&folder).output().unwrap()
    };
    let output = limited("large");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("for 900000 flows"), "{said}");
    let output = limited("small");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The same for real networks, which are refused before anything of them is made, and whoever asks.
#[test]
fn a_real_network_larger_than_memory_is_refused_before_it_is_made() {
    let folder = folder("real-memory");
    let flows = |gap: &str| {
        let traffic = format!("kind = \"flows\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1kB\"\ngap = \"{gap}\"\n");
        let link = "[[links]]\nbetween = [\"a\", \"b\"]\n";
        format!("duration = \"10000s\"\n[nodes.a]\n[nodes.b]\n{link}[[traffic]]\n{traffic}")
    };
    fs::write(folder.join("endless.toml"), flows("1ns")).unwrap();
    fs::write(folder.join("large.toml"), flows("1ms")).unwrap();
    let nodes: String = (0..40_000).map(|number| format!("[nodes.n{number}]\n")).collect();
    fs::write(folder.join("wide.toml"), format!("duration = \"1s\"\n{nodes}[[links]]\nbetween = [\"n0\", \"n1\"]\n"))
        .unwrap();
    // More than any machine has.
    refused(&folder, "up endless.toml --run --out out", "for 10000000000000 flows");
    refused(&folder, "up wide.toml", "for 40000 nodes, 1 links and their routes; make it smaller");
    let before = names(&folder);
    let command = format!("ulimit -v 1000000 && {WEFT} up large.toml --run --out limited");
    let output = Command::new("sh").args(["-c", &command]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("for 10000000 flows"), "{said}");
    assert_eq!(names(&folder), before);
}

#[test]
fn other_commands_leave_nothing_old_behind() {
    let folder = folder("others");
    let compile = "subs compile $/subscriptions/itch.rules --format $/subscriptions/itch.p4 --out tables";
    done(&folder, &format!("{compile} --target p4,bmv2"));
    assert!(names(&folder.join("tables")).contains("switch.p4"));
    done(&folder, compile);
    assert_eq!(names(&folder.join("tables")), [".weft-files", "tables.json"].map(str::to_owned).into());
    let study = "study calendar --repeats 1 --substitutions 10 --out study --loads";
    done(&folder, &format!("{study} 0.5"));
    done(&folder, &format!("{study} 0.6"));
    assert!(fs::read_to_string(folder.join("study/results.csv")).unwrap().contains("0.6"));
    assert_eq!(names(&folder), ["study", "tables"].map(str::to_owned).into());
}
