//! The scripts of `tests/scripts`: what RFCs and kernels say that a TCP does, tried on the TCP of `examples/transports/tcp`.
//!
//! `WEFT_SCRIPT=name` runs one of them alone and says what becomes of it.
#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::run::run;
use support::script::Script;
use weftwire_catalog::Catalog;
use weftwire_image::VerifiedImage;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn machine() -> VerifiedImage {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/tcp/tcp.xl");
    let catalog = Catalog { includes: Vec::new(), timers: None, report: &|_, _| {} };
    catalog.image(&path).expect("a right program")
}

/// All scripts, by name.
fn scripts() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder()).expect("a folder of scripts");
    let paths = files.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "pkt"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a script"))
        })
        .collect()
}

/// Those that fail, and why: `name: reason`.
fn expected_failures() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("expected_failures.txt")).expect("a list");
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(": ").expect("NAME: REASON"))
        .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
        .collect()
}

fn outcome(name: &str, text: &str, machine: &VerifiedImage) -> Result<(), String> {
    let script = Script::parse(text).map_err(|error| format!("{name}.pkt: {error}"))?;
    assert!(script.shows.contains("RFC"), "{name}.pkt: its first comment says which RFC it shows");
    run(&script, machine).map_err(|error| format!("{name}.pkt: {error}"))
}

#[test]
fn scripts_pass_unless_the_list_says_why_not() {
    let (scripts, mut expected, machine) = (scripts(), expected_failures(), machine());
    let only = std::env::var("WEFT_SCRIPT").ok();
    let mut wrong = Vec::new();
    for (name, text) in &scripts {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        match (outcome(name, text, &machine), expected.remove(name)) {
            (Ok(()), None) => {}
            (Err(error), Some(reason)) => println!("expected to fail ({reason}): {error}"),
            (Err(error), None) => wrong.push(error),
            (Ok(()), Some(reason)) => wrong.push(format!("{name}.pkt passes; take it off the list ({reason})")),
        }
    }
    if only.is_none() {
        wrong.extend(expected.into_keys().map(|name| format!("{name} is on the list, but there is no such script")));
        assert!(scripts.len() >= 25, "{} scripts", scripts.len());
    }
    assert!(wrong.is_empty(), "{} of {} scripts:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
}

#[test]
fn the_page_tells_of_every_script() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let failing = expected_failures();
    let missing: Vec<String> = scripts()
        .iter()
        .filter_map(|(name, text)| {
            let shows = Script::parse(text).map_err(|error| format!("{name}: {error}")).ok()?.shows;
            let mark = if failing.contains_key(name) { "not yet" } else { "yes" };
            let row = format!("| `{name}` | {shows} | {mark} |");
            (!page.contains(&row)).then_some(row)
        })
        .collect();
    assert!(missing.is_empty(), "docs/conformance.md lacks:\n{}", missing.join("\n"));
}
