//! `weft study fct` from the outside.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::place::{self, WEFT, names};
use weftwire_testbed::Running;

/// Four cells of two pairs and two seeds.
const GRID: &str = "study fct --out out --rates 2Mbit/s --rtts 20ms,100ms --queues 5 --lengths 5,20 --initial-windows 10 \
                    --pairs newreno+tb_tcp --seeds 2";
const TABLES: [&str; 8] =
    ["by-rtt.svg", "cells.csv", "excess.svg", "groups.csv", "ratios.svg", "report.html", "results.json", "runs.csv"];

fn weft(folder: &Path, words: &str) -> Output {
    place::weft(folder, &words.split_whitespace().collect::<Vec<_>>())
}

fn done(folder: &Path, words: &str) -> String {
    let output = weft(folder, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}: {said}");
    said
}

/// All files below a folder, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |at: &Path| {
        let names = names(at).into_iter().filter(|name| at.join(name).is_file());
        names.map(|name| (name.clone(), fs::read(at.join(name)).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let mut all = read(folder);
    all.extend(read(&folder.join("cells")).into_iter().map(|(name, bytes)| (format!("cells/{name}"), bytes)));
    all
}

#[test]
fn the_same_grid_gives_the_same_bytes_in_one_run_or_in_two() {
    let one = place::folder("fct-one");
    let said = done(&one, &format!("{GRID} --jobs 1"));
    assert!(said.contains("4 cells of 4 runs: about "), "{said}");
    let whole = files(&one.join("out"));
    let tables: Vec<&str> = whole.keys().map(String::as_str).filter(|name| !name.starts_with("cells/")).collect();
    assert_eq!(tables, TABLES);
    assert_eq!(whole.len(), TABLES.len() + 4);
    let text = |name: &str| String::from_utf8(whole[name].clone()).unwrap();
    assert_eq!(text("runs.csv").lines().count(), 1 + 4 * 2 * 2);
    assert_eq!(text("cells.csv").lines().count(), 1 + 4 * 2);
    // Two lengths, all, below and from 80 ms, and two round-trip times, two pairs.
    assert_eq!(text("groups.csv").lines().count(), 1 + 2 * 5 * 2);
    // Six flows of 20 segments at 2 Mbit/s, opened at once with the first seed: the SYNs, 78 bytes each, leave the bottleneck in turn.
    let bound = 6 * 20 * 1_514 * 8 * 500 + 20_000_000 - 5 * 78 * 8 * 500;
    assert!(text("runs.csv").contains(&format!(",{bound},")), "{bound}");
    for line in text("runs.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (slowest, bound): (u64, u64) = (cells[7].parse().unwrap(), cells[8].parse().unwrap());
        assert!(slowest >= bound, "{line}");
    }

    // Half of it, then two cells less: what is missing is run, and what is there stays.
    let two = place::folder("fct-two");
    done(&two, &GRID.replace("20ms,100ms", "100ms"));
    let kept = names(&two.join("out/cells")).into_iter().next().unwrap();
    let written = |name: &str| fs::metadata(two.join("out/cells").join(name)).unwrap().modified().unwrap();
    let before = written(&kept);
    let said = done(&two, &format!("{GRID} --jobs 3"));
    assert!(said.contains("2 of 4 cells are there already") && said.contains("2 cells of 4 runs"), "{said}");
    assert!(files(&two.join("out")) == whole && written(&kept) == before);
    let said = done(&two, GRID);
    assert!(said.contains("4 of 4 cells") && !said.contains("runs: about"), "{said}");
    assert!(files(&two.join("out")) == whole);

    let other = place::folder("fct-other");
    done(&other, &format!("{GRID} --seed 9"));
    assert!(files(&other.join("out"))["runs.csv"] != whole["runs.csv"]);
}

#[test]
fn an_interrupted_run_leaves_whole_cells_and_goes_on() {
    let folder = place::folder("fct-interrupted");
    // Cells long enough that none of 28 is the last when the first is seen.
    let grid = "study fct --out out --jobs 1 --rates 5Mbit/s --rtts 10ms,20ms,40ms,80ms,100ms,150ms,200ms --queues 10,20,30,40 \
                --lengths 100 --initial-windows 10 --pairs newreno+rack --seeds 1";
    let mut command = Command::new(WEFT);
    command.args(grid.split_whitespace()).current_dir(&folder);
    let running = Running::start(command).expect("it starts");
    let cells = folder.join("out/cells");
    let begun = Instant::now();
    while !cells.exists() || names(&cells).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no cell is done");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = running.interrupt().expect("it ends");
    let said = ended.stderr;
    assert!(!ended.status.success() && said.contains("the same command goes on"), "{said}");
    assert_eq!(names(&folder.join("out")), ["cells".to_owned()].into(), "no table of a part");
    let left = names(&cells);
    assert!((1..28).contains(&left.len()), "{left:?}");
    for name in &left {
        let cell: serde_json::Value = serde_json::from_slice(&fs::read(cells.join(name)).unwrap()).expect("whole");
        assert_eq!(cell["outcome"]["runs"][0].as_array().expect("runs").len(), 1, "{name}");
    }
    let said = done(&folder, grid);
    assert!(said.contains(&format!("{} of 28 cells are there already", left.len())), "{said}");
    assert!(folder.join("out/report.html").exists());
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let folder = place::folder("fct-wrong");
    for (arguments, expected) in [
        ("--rates 5", "unit"),
        ("--rates 1kbit/s", "from 100kbit/s to 1Gbit/s"),
        ("--rtts 10us", "from 1ms to 2s"),
        ("--queues 0", "1..=100000"),
        ("--lengths 9999", "1..=5000"),
        ("--pairs newreno", "write CONTROL+RECOVERY, e.g. newreno+rack"),
        ("--pairs vegas+rack", "controls are newreno, cubic"),
        ("--base newreno+prr", "recoveries rack, rfc6675, tb_tcp"),
        ("--seeds 0", "1..=10000"),
    ] {
        let output = weft(&folder, &format!("study fct --out out {arguments}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{arguments}: {said}");
    }
    assert!(names(&folder).is_empty());

    done(&folder, "study calendar --loads 0.5 --repeats 1 --substitutions 10 --out other");
    let output = weft(&folder, &GRID.replace("--out out", "--out other"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("holds the results of one run"), "{said}");
    assert!(!folder.join("other/cells").exists());

    done(&folder, GRID);
    let refused = |words: &str, expected: &str| {
        let before = files(&folder.join("out"));
        let output = weft(&folder, words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(expected), "{words}: {said}");
        assert!(files(&folder.join("out")) == before, "nothing is thrown away");
    };
    for other in ["--seeds 3", "--seed 2", "--base cubic+rack"] {
        refused(&format!("{GRID} {other}").replace("--seeds 2 --seeds", "--seeds"), "of other pairs or seeds");
    }
    let cell = folder.join("out/cells").join(names(&folder.join("out/cells")).first().unwrap());
    fs::write(&cell, "{").unwrap();
    refused(GRID, "cannot read ");
}
