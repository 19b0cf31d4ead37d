//! Functions from files, without the command line.
#![allow(clippy::disallowed_methods, reason = "a test of what reads files")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use weftwire_catalog::{Catalog, CatalogError, Compiling, NetworkSource, dialect};
use weftwire_core::{LinkType, Port, Ports};
use weftwire_text::{Diagnostic, SourceMap};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn quiet(_: &[Diagnostic], _: &SourceMap) {}

fn catalog() -> Catalog<'static> {
    Catalog { includes: Vec::new(), timers: None, report: &quiet }
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|it| it == ending)).collect();
    found.sort();
    assert!(!found.is_empty(), "no .{ending} in {}", folder.display());
    found
}

#[test]
fn every_example_starts() {
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
    for path in files(&examples(), "xl") {
        assert!(dialect(&path).is_some());
        let loaded = catalog().machine(&path, &[]).unwrap();
        let function = loaded.start("reference", &ports, 1, None).unwrap();
        assert_eq!(function.counters().flows_live, 0, "{}", loaded.name());
        assert!(loaded.start("no-such-engine", &ports, 1, None).is_err());
    }
    let folder = examples().join("subscriptions");
    let (rules, formats) = (folder.join("itch.rules"), folder.join("itch.p4"));
    let loaded = catalog().switch(&[rules], &[formats], &Compiling::default()).unwrap();
    assert_eq!(loaded.name(), "itch");
    loaded.start("reference", &ports, 1, None).unwrap();
}

#[test]
fn the_networks_of_the_examples_have_their_functions() {
    let mut functions = 0;
    for path in files(&examples().join("networks"), "toml") {
        let file = catalog().network(NetworkSource::from(&*path)).unwrap();
        let (network, _) = file.network(&[]).unwrap();
        functions += file.functions(&network, &Compiling::default()).unwrap().len();
    }
    assert!(functions > 1);
}

#[test]
fn what_is_wrong_is_reported_with_its_place_and_ends_in_an_error() {
    let folder = std::env::temp_dir().join(format!("weft-catalog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    let (sender, heard) = channel();
    let report = |found: &[Diagnostic], sources: &SourceMap| {
        found.iter().for_each(|found| sender.send(found.to_text(sources)).unwrap());
    };
    let catalog = Catalog { includes: Vec::new(), timers: None, report: &report };

    let wrong = write("wrong.xl", "machine m;\nflow key five_tuple;\ninitial state s { on packet { x = 1; } }\n");
    let error = catalog.image(&wrong).unwrap_err();
    assert_eq!(error.to_string(), "1 error, 0 warnings");
    let said = heard.recv().unwrap();
    assert!(said.contains("wrong.xl:3:"), "{said}");

    let error = catalog.image(&write("bad.json", "{}")).unwrap_err();
    assert!(matches!(error, CatalogError::NoImage { .. }), "{error}");
    let error = catalog.image(&folder.join("none.json")).unwrap_err();
    assert!(matches!(error, CatalogError::File { action: "read", .. }), "{error}");
    let error = catalog.compile(&write("program.txt", "")).unwrap_err();
    assert!(error.to_string().ends_with("sources end in .xl or .xtra"), "{error}");
    let arq = examples().join("arq-sender.xl");
    let error = catalog.machine(&arq, &[("no_such".into(), "1".into())]).unwrap_err();
    assert!(matches!(error, CatalogError::Parameter { .. }), "{error}");

    let network = "duration = \"1s\"\n[nodes.a]\nkind = \"function\"\nimage = \"wrong.xl\"\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\n";
    let file = catalog.network(NetworkSource::from(&*write("network.toml", network))).unwrap();
    let (network, _) = file.network(&[]).unwrap();
    let error = file.functions(&network, &Compiling::default()).unwrap_err();
    assert_eq!(error.to_string(), "node a");
    std::fs::remove_dir_all(&folder).unwrap();
}
