//! `weft pace` from the outside.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weftwire_pace::{Evolution, EvolutionBlock};

fn weft(folder: &Path, arguments: &[&str]) -> Output {
    let weft = Command::new(env!("CARGO_BIN_EXE_weft")).arg("pace").args(arguments).current_dir(folder).output();
    weft.expect("the command starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pace-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    folder
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = weft(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn times_are_the_published_ones() {
    let folder = folder("times");
    let published = "0.00\n1.00\n1.56\n2.00\n2.37\n2.70\n3.00\n3.27\n3.53\n3.77\n4.00\n";
    assert_eq!(good(&folder, &["times", "linear", "--digits", "2"]), published);
    assert_eq!(
        good(&folder, &["times", "slow_start", "--count", "4", "--digits", "3", "--rtt", "100ms"]),
        "0.000\n0.100\n0.158\n0.200\n"
    );
    fs::write(folder.join("rates.csv"), "time,rate\n0,12\n1,24\n").expect("written");
    let table =
        ["times", "rates.csv", "--table-rate", "1 Mbit/s", "--packet-size", "1500", "--count", "3", "--digits", "4"];
    assert_eq!(good(&folder, &table), "0.0000\n0.0010\n0.0020\n");
}

#[test]
fn a_compiled_table_runs() {
    let folder = folder("compile");
    let said = good(&folder, &["compile", "slow_start", "--entries", "2048", "--check", "20000", "-o", "table.json"]);
    for part in ["gap error", "in ticks", "absolute", "relative"] {
        assert!(said.contains(part), "{said}");
    }
    let text = fs::read_to_string(folder.join("table.json")).expect("it is there");
    let evolution = Evolution::from_json(&text).expect("it is right");
    let mut machine = EvolutionBlock::new(&evolution, 1000);
    let ticks: u64 = (1..1024).map(|_| machine.next_ticks()).sum();
    assert_eq!(ticks, 10_000);
    assert_eq!(good(&folder, &["compile", "slow_start", "--entries", "2048", "--check", "100", "-o", "-"]), text);
}

#[test]
fn the_report_says_what_is_exact_and_what_drifts() {
    let folder = folder("report");
    let followed = good(&folder, &["compile", "linear", "--form", "polynomial", "--check", "1000", "-o", "table.json"]);
    assert!(followed.contains("3 of 97 bits") && followed.contains("exact for 6.0e23 packets"), "{followed}");
    let text = fs::read_to_string(folder.join("table.json")).expect("it is there");
    let evolution = Evolution::from_json(&text).expect("it is right");
    let mut machine = EvolutionBlock::new(&evolution, 1000);
    // Packet 1 + k (k + 1) / 2 goes at k round trips.
    assert_eq!((0..5050).map(|_| machine.next_ticks()).sum::<u64>(), 100_000);
    let held = good(&folder, &["compile", "N(t) = sqrt(1 + t/RTT)", "--packets", "1000", "--check", "1000"]);
    assert!(held.contains("the times drift behind packet 1001"), "{held}");
}

#[test]
fn a_picture_stands_alone() {
    let folder = folder("plot");
    for file in ["a.svg", "a.html"] {
        good(&folder, &["plot", "linear", "--packets", "2000", "--check", "2000", "-o", file]);
        let text = fs::read_to_string(folder.join(file)).expect("it is there");
        assert!(
            text.contains("<style>")
                && text.contains("Rate: linear")
                && text.matches("<path class=\"line").count() >= 4
        );
        assert!(!text.contains("http") || text.matches("http").count() == 1, "only the name of SVG");
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let folder = folder("wrong");
    let cases: [(&[&str], &str); 6] = [
        (&["times", "R(t) = 10 pkt/s + 3"], "         ^^^^^^^^^^^^"),
        (&["times", "no-such.csv"], "cannot read no-such.csv"),
        (&["times", "R(t) = 1 pkt/RTT - t/RTT^2"], "a rate is never below 0"),
        (
            &["compile", "R(t) = t^5 * pkt/s^6", "--entries", "10", "--packets", "9999", "-o", "table.json"],
            "allow more entries",
        ),
        (&["compile", "linear", "--bits", "64", "-o", "table.json"], "8 to 48 bits"),
        (&["plot", "linear", "--packets", "100", "--check", "100", "-o", "a.png"], "a .svg or a .html file"),
    ];
    for (arguments, part) in cases {
        let output = weft(&folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(part) && !said.contains("panicked"), "{arguments:?} should say `{part}`: {said}");
        assert_eq!(fs::read_dir(&folder).expect("there").count(), 0, "{arguments:?}");
    }
}
