//! `weft sim` as people use it: one run, many runs, interrupted and gone on with, and wrong input.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of the command run it and read its files"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Two hosts and a lossy link: a transfer by TCP and one of datagrams.
const NETWORK: &str = r#"
name = "pair"
duration = "2s"
record = ["a"]

[nodes.a]
[nodes.b]

[[links]]
name = "wire"
between = ["a", "b"]
rate = "10Mbit/s"
delay = "5ms"
queue = "50 packets"
loss = "1%"

[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "200kB"

[[traffic]]
name = "voice"
kind = "datagrams"
from = "b"
to = "a"
rate = "64kbit/s"
size = "160B"
"#;

/// A folder of this test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weft-sim-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn read_bytes(&self, out: &str, name: &str) -> Vec<u8> {
        fs::read(self.0.join(out).join(name)).unwrap_or_else(|error| panic!("{out}/{name}: {error}"))
    }

    /// `weft sim FILE --out OUT MORE...` in this folder.
    fn sim(&self, file: &str, out: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.current_dir(&self.0).args(["sim", file, "--out", out]).args(more).output().unwrap()
    }

    /// As [`Folder::sim`], which must succeed.
    fn done(&self, file: &str, out: &str, more: &[&str]) -> String {
        let output = self.sim(file, out, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    /// As [`Folder::sim`], which must fail, and what it says.
    fn refused(&self, file: &str, out: &str, more: &[&str]) -> String {
        let output = self.sim(file, out, more);
        assert!(!output.status.success(), "{more:?} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All files under a folder with their bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn one_run_leaves_tables_captures_and_a_page_and_is_reproducible() {
    let folder = Folder::new("one");
    folder.write("pair.toml", NETWORK);
    folder.done("pair.toml", "first", &[]);
    folder.done("pair.toml", "second", &[]);
    folder.done("pair.toml", "other", &["--seed", "2"]);
    for name in ["a.pcapng", "flows.csv", "links.csv", "samples.csv", "network.toml"] {
        assert_eq!(folder.read_bytes("first", name), folder.read_bytes("second", name), "{name}");
    }
    assert_ne!(folder.read_bytes("first", "a.pcapng"), folder.read_bytes("other", "a.pcapng"));
    for name in ["flows.parquet", "links.parquet", "samples.parquet", "report.html", "results.json"] {
        assert!(folder.read_bytes("first", name).len() > 100, "{name}");
    }
    let flows = folder.read("first/flows.csv");
    assert!(flows.lines().any(|line| line.contains("file") && line.contains("complete")), "{flows}");
}

#[test]
fn many_runs_are_resumed_and_shared_among_machines() {
    let folder = Folder::new("many");
    folder.write("sweep.toml", &format!("{NETWORK}\n[sweep]\n\"links.wire.delay\" = [\"1ms\", \"20ms\"]\n"));
    let short = ["--duration", "500ms", "--repeat", "3"];
    folder.done("sweep.toml", "whole", &[&short[..], &["--jobs", "2"]].concat());
    let table = folder.read("whole/runs.csv");
    assert_eq!(table.lines().count(), 1 + 2 * 3, "{table}");
    assert!(folder.read("whole/flows.csv").lines().count() > 6);

    // A run that is missing is made again, and it alone.
    let marker = folder.0.join("whole/runs/0001/marker");
    fs::write(&marker, "").unwrap();
    fs::remove_dir_all(folder.0.join("whole/runs/0004")).unwrap();
    let said = folder.done("sweep.toml", "whole", &[&short[..], &["--jobs", "1"]].concat());
    assert!(said.contains("5 runs are there already") && marker.exists(), "{said}");
    assert_eq!(folder.read("whole/runs.csv"), table);

    for shard in ["1/2", "2/2"] {
        let said = folder.done("sweep.toml", "shared", &[&short[..], &["--shard", shard]].concat());
        assert!(shard == "2/2" || said.contains("3 of 6 runs"), "{said}");
    }
    folder.done("sweep.toml", "shared", &short);
    assert_eq!(folder.read("shared/runs.csv"), table);

    // A row's point and seed give the same run alone.
    folder.done("sweep.toml", "alone", &[&short[..2], &["--repeat", "1", "--set", "links.wire.delay=20ms"]].concat());
    let said = folder.refused("sweep.toml", "whole", &["--duration", "1s", "--repeat", "3"]);
    assert!(said.contains("holds the results of another"), "{said}");
    let partial = files(&folder.0.join("whole"));
    assert!(partial.keys().all(|path| !path.to_string_lossy().contains("partial")));
}

#[test]
fn an_interrupted_run_keeps_what_is_done() {
    let folder = Folder::new("interrupted");
    folder.write("pair.toml", NETWORK);
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
        .current_dir(&folder.0)
        .args(["sim", "pair.toml", "--out", "out", "--duration", "1000h"])
        .args(["--set", "traffic.voice.rate=9Mbit/s", "--set", "record=[]"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its folder is begun once the signals are waited for.
    let begun = |path: &PathBuf| path.to_string_lossy().contains("/out.");
    while !fs::read_dir(&folder.0).unwrap().any(|entry| begun(&entry.unwrap().path())) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("interrupted at"), "{said}");
    let results: serde_json::Value = serde_json::from_str(&folder.read("out/results.json")).unwrap();
    assert_eq!(results["run"]["interrupted"], true);
    assert!(folder.0.join("out/report.html").exists());
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let folder = Folder::new("wrong");
    folder.write("pair.toml", NETWORK);
    folder.write("wrong.toml", &NETWORK.replace("between = [\"a\", \"b\"]", "between = [\"a\", \"c\"]"));
    folder.write("unit.toml", &NETWORK.replace("10Mbit/s", "10Mb"));
    let said = folder.refused("wrong.toml", "out", &[]);
    assert!(said.contains("wrong.toml:11") && said.contains('c'), "{said}");
    let said = folder.refused("unit.toml", "out", &[]);
    assert!(said.contains("unit.toml:12") && said.contains("Mbit/s"), "{said}");
    for (more, expected) in [
        (&["--shard", "9/8"][..], "K from 1 to N"),
        (&["--shard", "1/8"], "--repeat or a [sweep]"),
        (&["--set", "links.wire.speed=3"], "speed"),
        (&["--set", "links.wire.rate=fast"], "rate"),
        (&["--repeat", "0"], "1..=1000000"),
    ] {
        let said = folder.refused("pair.toml", "out", more);
        assert!(said.contains(expected), "expected `{expected}` in: {said}");
    }
    assert!(folder.refused("none.toml", "out", &[]).contains("cannot read none.toml"));
    assert!(!folder.0.join("out/results.json").exists());
}

/// The example as it stands: the flow with least left is done first, the one with most last.
#[test]
fn the_network_of_credits_runs() {
    let folder = Folder::new("credits");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/networks/credits.toml");
    let said = folder.done(example, "out", &[]);
    assert!(said.contains("of them complete 4"), "{said}");
    let results: serde_json::Value = serde_json::from_slice(&folder.read_bytes("out", "results.json")).unwrap();
    let mut flows: Vec<_> = results["flows"].as_array().unwrap().iter().collect();
    flows.sort_by_key(|flow| flow["end"].as_i64());
    let order: Vec<&str> = flows.iter().map(|flow| flow["traffic"].as_str().unwrap()).collect();
    assert_eq!((order[0], order[3]), ("shortest", "longest"), "{order:?}");
}

#[test]
fn chaos_says_what_it_examined() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/networks/arq.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["sim", example, "--chaos", "7", "--schedules", "2", "--set", "traffic.file.bytes=20kB"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("2 schedules examined, 0 failed"), "{said}");
    assert!(said.contains("seed 7:") && said.contains("seed 8:"), "{said}");
}
