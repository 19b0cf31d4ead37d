//! `weft subs route` and `weft study subscriptions` from the outside.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn weft(folder: &Path, arguments: &[&str]) -> Output {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(arguments).current_dir(folder).output().expect("the command starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("subscriptions-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    folder
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Routes these subscriptions with ITCH's formats.
fn route(folder: &Path, subscriptions: &str, more: &[&str]) -> Output {
    fs::write(folder.join("wanted"), subscriptions).expect("written");
    let format = format!("{REPOSITORY}/examples/subscriptions/itch.p4");
    let mut arguments = vec!["subs", "route", "--format", &format, "--subscriptions", "wanted", "-o", "out"];
    arguments.extend(more);
    weft(folder, &arguments)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const WANTED: &str = "// who wants what\n\
    pod1-host1: add_order.stock == AAPL and add_order.price > 7.0015\n\
    pod3-host2: add_order.stock == AAPL and orders > 3\n";

#[test]
fn switches_get_rules_tables_and_a_report() {
    let folder = folder("route");
    let output = route(&folder, WANTED, &["--fat-tree", "4", "--alpha", "1,100"]);
    assert!(output.status.success(), "{}", said(&output));
    let out = folder.join("out");
    let edge = read(&out, "pod1-edge1.rules");
    assert!(
        edge.contains("// port 3: pod1-host1") && edge.contains("// port 5: up, by one of the ports 1, 2"),
        "{edge}"
    );
    // Exact at the host's switch and as unit 1 says below; rounded to 0.01 above.
    assert!(edge.contains("add_order.price > 7.0015 : fwd(3);"), "{edge}");
    assert!(read(&out, "pod2-edge1.rules").contains("add_order.price > 7.0015 : fwd(5);"));
    assert!(read(&out, "core1.rules").contains("add_order.price > 7.0000 : fwd(1);"), "{}", read(&out, "core1.rules"));
    // Only the last switch counts.
    assert!(read(&out, "pod3-edge1.rules").contains("orders > 3 : fwd(4);"), "{}", read(&out, "pod3-edge1.rules"));
    assert!(!read(&out, "core1.rules").contains("orders"));
    let tables: serde_json::Value = serde_json::from_str(&read(&out, "core1.json")).expect("it is JSON");
    assert_eq!(tables["layout"], "weftwire-subscription-tables/1");
    let results: serde_json::Value = serde_json::from_str(&read(&out, "results.json")).expect("it is JSON");
    assert_eq!(results["switches"].as_array().map(Vec::len), Some(20));
    assert_eq!(read(&out, "layers.csv").lines().count(), 4);
    assert_eq!(read(&out, "switches.csv").lines().count(), 21);
    assert!(read(&out, "report.html").contains("Entries by layer"));

    // What was written is read as rules.
    let format = format!("{REPOSITORY}/examples/subscriptions/itch.p4");
    let checked = weft(&folder, &["subs", "check", "out/core1.rules", "--format", &format]);
    assert!(checked.status.success(), "{}", said(&checked));
}

#[test]
fn networks_come_from_files_and_policies_differ() {
    let folder = folder("files");
    let network = format!("{REPOSITORY}/examples/networks/fat-tree.toml");
    let size = |more: &[&str]| {
        let output = route(&folder, WANTED, more);
        assert!(output.status.success(), "{more:?}: {}", said(&output));
        read(&folder, "out/switches.csv")
    };
    // The same network, in another order.
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let from_file = sorted(size(&["--network", &network]));
    assert_eq!(from_file, sorted(size(&["--fat-tree", "4"])));
    assert_ne!(from_file, sorted(size(&["--fat-tree", "4", "--policy", "mr"])));
    assert!(size(&["--fat-tree", "4", "--policy", "mst++"]).contains("core1,0,"));
    fs::write(folder.join("edges"), "1 2\n2 3\n3 4\n").expect("written");
    let wanted = "host1: add_order.price > 5\nhost4: add_order.price < 3\n";
    let output = route(&folder, wanted, &["--edges", "edges", "--policy", "mst"]);
    assert!(output.status.success(), "{}", said(&output));
    let rules = read(&folder, "out/2.rules");
    assert!(rules.contains("add_order.price > 5.0000 : fwd(1);") && rules.contains("// port 2: 3"), "{rules}");
}

#[test]
fn errors_say_where_and_what_would_be_right() {
    let folder = folder("errors");
    for (subscriptions, more, expected) in [
        ("pod1-host9: true", &["--fat-tree", "4"][..], "did you mean `pod1-host"),
        ("pod1-host1: add_order.prize > 5", &["--fat-tree", "4"], "did you mean `price`"),
        ("pod1-host1 true", &["--fat-tree", "4"], "a subscription is `HOST: filter` in one line"),
        (WANTED, &["--fat-tree", "3"], "must be even"),
        (WANTED, &["--edges", "missing"], "cannot read missing"),
    ] {
        let output = route(&folder, subscriptions, more);
        assert!(output.status.code() == Some(1) && said(&output).contains(expected), "{}", said(&output));
        assert!(!folder.join("out").exists());
    }
    for more in [&[][..], &["--fat-tree", "4", "--edges", "x"]] {
        assert_eq!(route(&folder, WANTED, more).status.code(), Some(2));
    }
}

const FILES: [&str; 5] = ["figure-13.svg", "figure-15.svg", "report.html", "results.csv", "results.json"];

/// A small study, and all files it wrote.
fn study(name: &str, more: &[&str]) -> Vec<String> {
    let folder = folder(name);
    fs::write(
        folder.join("ring.edges"),
        (0..60).map(|node| format!("{node} {}\n", (node + 1) % 60)).collect::<String>(),
    )
    .expect("written");
    let mut arguments =
        vec!["study", "subscriptions", "-o", "out", "--filters", "40,20", "--alphas", "25", "--rules", "30"];
    arguments.extend(["--messages", "50", "--nodes", "80", "--repeats", "2", "--edges", "ring.edges"]);
    arguments.extend(more);
    let output = weft(&folder, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let mut names: Vec<_> = fs::read_dir(folder.join("out"))
        .expect("it is there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
        .collect();
    names.retain(|name| name != ".weft-files");
    names.sort();
    assert_eq!(names, FILES);
    FILES.iter().map(|file| read(&folder, &format!("out/{file}"))).collect()
}

#[test]
fn equal_seeds_give_equal_bytes_however_many_jobs() {
    let one = study("one", &["--seed", "7", "--jobs", "1"]);
    assert!(one == study("three", &["--seed", "7", "--jobs", "3"]));
    assert!(one != study("other", &["--seed", "8"]));
    // Two policies, two units, two numbers of filters, three layers; two graphs, two trees, one and ten rules a node.
    assert_eq!(one[3].lines().count(), 1 + 2 * 2 * 2 * 3 + 2 * 2 * 2);
    assert!(one[3].contains(",mst++,1,30,10,all,2,") && one[3].contains("ring"), "{}", one[3]);
    for part in ["Figure 13a", "Figure 13d"] {
        assert!(one[0].contains(part) && one[2].contains(part), "{part}");
    }
    let output = weft(&folder("many"), &["study", "subscriptions", "-o", "out", "--nodes", "50", "--rules", "60"]);
    assert!(output.status.code() == Some(1) && said(&output).contains("lower --rules"), "{}", said(&output));
}
