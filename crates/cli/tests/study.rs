//! `weft study` from the outside.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILES: [&str; 8] = [
    "designs.csv",
    "designs.svg",
    "figure-3.svg",
    "figure-4.svg",
    "report.html",
    "results.csv",
    "results.json",
    "same-tick.csv",
];

fn weft(folder: &Path, arguments: &[&str]) -> Output {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["study", "calendar", "-o", "out"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("study-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    folder
}

/// A small study, and all files it wrote.
fn small(name: &str, more: &[&str]) -> Vec<Vec<u8>> {
    let folder = folder(name);
    let mut arguments = vec!["--loads", "0.9,0.5", "--repeats", "2", "--substitutions", "60"];
    arguments.extend(more);
    let output = weft(&folder, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("1/(1-l^4)") && said.contains("2.9078"), "{said}");
    let mut names: Vec<_> = fs::read_dir(folder.join("out"))
        .expect("it is there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
        .collect();
    names.retain(|name| name != ".weft-files");
    names.sort();
    assert_eq!(names, FILES);
    FILES.iter().map(|file| fs::read(folder.join("out").join(file)).expect("it is there")).collect()
}

#[test]
fn equal_seeds_give_equal_bytes_however_many_jobs() {
    let one = small("one", &["--seed", "7", "--jobs", "1"]);
    assert!(one == small("three", &["--seed", "7", "--jobs", "3"]));
    assert!(one != small("other", &["--seed", "8"]));

    let text = String::from_utf8(one[6].clone()).expect("text");
    let results: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(results["options"]["loads"], serde_json::json!([0.5, 0.9]));
    let first = &results["results"][0];
    assert_eq!(first["design"], "4 x 4096 x 1, first free");
    assert_eq!(first["insertions"], 120);
    let table = String::from_utf8(one[5].clone()).expect("text");
    assert_eq!(table.lines().count(), results["results"].as_array().expect("a list").len() + 1);
    for part in ["figures", "designs", "stashes", "adversaries", "published-hash"] {
        assert!(table.contains(&format!("\n{part},")), "{part}");
    }
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let folder = folder("wrong");
    for (arguments, expected) in [
        (["--loads", "1.5"], "from 0.01 to 0.99"),
        (["--loads", "high"], "a number such as 0.97"),
        (["--repeats", "0"], "1..=100000"),
        (["--horizon", "3"], "1024..=1000000000000"),
        (["--jobs", "0"], "1..=1024"),
    ] {
        let output = weft(&folder, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{arguments:?}: {said}");
    }
    fs::write(folder.join("out"), "a file").expect("written");
    let output = weft(&folder, &["--repeats", "1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("cannot make the folder out"), "{said}");
}
