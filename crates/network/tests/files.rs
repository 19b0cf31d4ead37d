//! Folders of networks: valid ones and the examples are read; of invalid ones the diagnostics are the expected output,
//! which is reviewed like code. `UPDATE=1 cargo test -p weftwire-network` writes it anew.
#![allow(clippy::disallowed_methods, reason = "tests read their fixtures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_network::model::{ChangeKind, Multipath, NodeIndex, NodeKind};
use weftwire_network::{Network, Reading, read};
use weftwire_text::{LoadError, Severity};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("the folder is part of the repository");
    let mut names: Vec<String> =
        names.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    assert!(!names.is_empty());
    names
}

fn load(name: &str) -> Result<String, LoadError> {
    match name {
        "lte.csv" => Ok("# seconds,rate\n0,10Mbit/s\n0.5,2Mbit/s\n".into()),
        "backwards.csv" => Ok("0,10Mbit/s\n2,1Mbit/s\n1,2Mbit/s\n".into()),
        "sizes.csv" => Ok("100,0\n1kB,50%\n10kB,1\n".into()),
        "half.csv" => Ok("100,0\n1kB,50%\n".into()),
        _ => Err(std::io::Error::other("there is no such file").into()),
    }
}

fn read_file(folder: &Path, name: &str) -> Reading {
    read(name, &fs::read_to_string(folder.join(name)).expect("readable"), &[], &load)
}

fn said(reading: &Reading) -> String {
    let lines: Vec<String> = reading.diagnostics.iter().map(|found| found.to_text(&reading.sources)).collect();
    lines.join("\n") + "\n"
}

fn network(text: &str, changes: &[(&str, toml::Value)]) -> Network {
    let changes: Vec<(String, toml::Value)> =
        changes.iter().map(|(path, value)| (path.to_string(), value.clone())).collect();
    let reading = read("test.toml", text, &changes, &load);
    let said = said(&reading);
    reading.network.unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn valid_files_and_examples_are_read_without_warning() {
    for name in ["tests/files/valid", "../../examples/networks"] {
        let folder = folder(name);
        for file in files(&folder) {
            let reading = read_file(&folder, &file);
            assert!(reading.network.is_some() && reading.diagnostics.is_empty(), "{}", said(&reading));
            assert_eq!(reading.network, read_file(&folder, &file).network, "{file}: same text, same network");
        }
    }
}

#[test]
fn examples_say_what_they_show() {
    let folder = folder("../../examples/networks");
    for file in files(&folder) {
        let text = fs::read_to_string(folder.join(&file)).expect("readable");
        assert!(text.starts_with("# "), "{file}");
    }
}

#[test]
fn invalid_files_say_what_is_wrong() {
    let folder = folder("tests/files/invalid");
    for file in files(&folder) {
        let reading = read_file(&folder, &file);
        let failed = reading.diagnostics.iter().any(|found| found.severity == Severity::Error);
        assert_eq!(failed, reading.network.is_none(), "{file}");
        assert!(failed || file.starts_with("warn"), "{file} was taken");
        let found = said(&reading);
        let expected_file = folder.join(&file).with_extension("expected");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected_file, &found).expect("writable");
        }
        let expected = fs::read_to_string(&expected_file).unwrap_or_default();
        assert_eq!(found, expected, "{file}; run with UPDATE=1 if this is what it should say");
    }
}

#[test]
fn the_dumbbell_is_what_it_says() {
    let folder = folder("../../examples/networks");
    let network = read_file(&folder, "dumbbell.toml").network.expect("it is valid");
    assert_eq!((network.name.as_str(), network.nodes.len(), network.links.len()), ("dumbbell", 14, 13));
    assert_eq!((network.duration, network.sample_interval), (Duration::from_secs(30), Duration::from_millis(30)));
    assert_eq!(network.nodes[0].ipv4.to_string(), "10.0.0.1");
    assert_eq!(network.nodes[13].ipv6.to_string(), "fd77::e");
    assert_eq!(network.traffic.len(), 6);
    for (index, traffic) in network.traffic.iter().enumerate() {
        assert_eq!(network.node(traffic.from).name, format!("left{}", index + 1));
        assert_eq!(network.node(traffic.to).name, format!("right{}", index + 1));
        assert_eq!((traffic.port, traffic.source_port), (5_001, 40_000));
        assert_eq!(traffic.name, format!("bulk-{}", index + 1));
    }
    for (index, link) in network.links() {
        for (end, place) in link.ends.iter().enumerate() {
            let port = network.node(place.node).ports[usize::from(place.port.0) - 1];
            assert_eq!(port, (index, end));
        }
    }
}

#[test]
fn ports_are_given_out_around_those_asked_for() {
    let folder = folder("../../examples/networks");
    let network = read_file(&folder, "syn-proxy.toml").network.expect("it is valid");
    let proxy = network.nodes.iter().find(|node| node.name == "proxy").expect("it is there");
    let names: Vec<&str> = proxy.ports.iter().map(|(link, _)| network.link(*link).name.as_str()).collect();
    assert_eq!(names, ["outside", "inside"]);
    assert!(matches!(&proxy.kind, NodeKind::Function(function) if function.transparent));
}

const TWO: &str = "duration = \"1s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\ndelay = \"1ms\"\n";

#[test]
fn changed_values_take_the_place_of_the_files() {
    let text = |text: &str| toml::Value::String(text.into());
    let changed = network(TWO, &[("links.a-b.delay", text("5ms")), ("seed", toml::Value::Integer(9))]);
    assert_eq!((changed.links[0].directions[1].delay, changed.seed), (Duration::from_millis(5), 9));
    let changed = network(TWO, &[("links.0.queue.limit", text("7 packets")), ("nodes.a.ipv4", text("10.9.9.9"))]);
    assert_eq!(changed.nodes[0].ipv4.to_string(), "10.9.9.9");

    let integer = toml::Value::Integer;
    let changed = network(
        TWO,
        &[
            ("routing.multipath", text("packet")),
            ("routing.convergence", text("never")),
            ("links.a-b.metric", integer(7)),
        ],
    );
    assert_eq!((changed.routing.multipath, changed.routing.convergence), (Multipath::Packet, None));
    assert_eq!((changed.links[0].metric, changed.links[0].weight), (7, 1));
    let changed = network(TWO, &[("links.a-b.jitter.most", text("1ms")), ("links.a-b.jitter.reorders", true.into())]);
    let settings = &changed.links[0].directions[1];
    assert_eq!((settings.jitter, settings.jitter_reorders), (Duration::from_millis(1), true));
    let routed = format!("{TWO}[[routes]]\nnode = \"a\"\nto = \"b\"\nvia = \"a\"\n");
    assert_eq!(network(&routed, &[("routes.0.via", text("b"))]).routing.routes.len(), 1);

    let wrong = |path: &str, value: &str| {
        let reading = read("test.toml", TWO, &[(path.to_string(), text(value))], &load);
        assert!(reading.network.is_none());
        said(&reading)
    };
    assert_eq!(
        wrong("links.a-b.delay", "5 parsec").lines().next(),
        Some(
            "test.toml (changed):1:19: error: `5 parsec` is not a duration; write a number and a unit, such as 10s, \
             1.5s, 5min, 1h, 200ms, 50us or 7ns"
        )
    );
    assert!(wrong("links.a-c.delay", "5ms").contains("did you mean `a-b`?"));
    assert!(wrong("links.a-b.dely", "5ms").contains("did you mean `delay`?"));
    assert!(wrong("duration.x", "5ms").contains("before it is a string"));
    assert!(wrong("", "5ms").contains("no path"));
}

#[test]
fn changes_build_on_each_other_in_time() {
    let text = format!(
        "{TWO}[[changes]]\nat = \"0.6s\"\nlink = \"*\"\nrate = \"1Mbit/s\"\n\
         [[changes]]\nat = \"0.5s\"\nlink = \"a-b\"\ndelay = \"7ms\"\n"
    );
    let network = network(&text, &[]);
    assert_eq!(network.changes.len(), 4);
    assert!(network.changes.is_sorted_by_key(|change| change.at));
    let ChangeKind::Settings { settings, .. } = &network.changes[3].what else { panic!("settings") };
    assert!(settings.delay == Duration::from_millis(7) && settings.rate.is_some());
}

#[test]
fn random_pairs_are_the_seeds_and_nobody_sends_to_itself() {
    let text = "duration = \"1s\"\n[topology]\nkind = \"star\"\nleaves = 50\n[[traffic]]\nkind = \"bulk\"\n\
                from = \"leaf*\"\nto = \"leaf*\"\npairs = \"random\"\n";
    let ends = |network: &Network| network.traffic.iter().map(|one| (one.from, one.to)).collect::<Vec<_>>();
    let first = ends(&network(text, &[]));
    assert_eq!(first, ends(&network(text, &[])));
    assert_ne!(first, ends(&network(text, &[("seed", toml::Value::Integer(2))])));
    assert!(first.iter().all(|(from, to)| from != to));
    let mut receivers: Vec<NodeIndex> = first.iter().map(|(_, to)| *to).collect();
    receivers.sort();
    receivers.dedup();
    assert_eq!(receivers.len(), 50);
}

#[test]
fn traffic_seeds_differ_and_follow_the_network() {
    let folder = folder("../../examples/networks");
    let mut network = read_file(&folder, "dumbbell.toml").network.expect("it is valid");
    let seeds: std::collections::BTreeSet<u64> = network.traffic.iter().map(|traffic| traffic.seed).collect();
    assert_eq!(seeds.len(), 6);
    let before = network.clone();
    network.reseed(1);
    assert_eq!(network, before, "the file's seed is 1");
}

#[test]
fn a_sweep_is_handed_out_in_order() {
    let folder = folder("../../examples/networks");
    let sweep = read_file(&folder, "sweep.toml").sweep;
    let shape: Vec<(&str, usize)> = sweep.iter().map(|(path, values)| (path.as_str(), values.len())).collect();
    assert_eq!(shape, [("topology.bottleneck.delay", 2), ("topology.bottleneck.queue", 2)]);
}
