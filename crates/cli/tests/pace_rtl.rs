//! The evolution block in SystemVerilog (`rtl/pace_evolution.sv`), run by Verilator, against its model, gap for gap.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and a simulator, and look at the files they write"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weftwire_pace::{Evolution, EvolutionBlock};
use weftwire_testbed::skip_unless_installed;

const GAPS: usize = 150_000;
/// Lengths of the unit in ticks, in turn: a round trip of 100 ms in ticks of 5 ns, one that is odd, the longest, the shortest.
const UNITS: [u64; 4] = [20_000_000, 1_000_003, (1 << 40) - 1, 1];

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The table that was compiled, with its memory images in the folder.
fn compiled(folder: &Path, arguments: &[&str]) -> Evolution {
    // It may be there from the last run.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("the build's folder can be written");
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["pace", "compile", "--check", "100", "-o", "table.json", "--memory", "."]);
    run(weft.args(arguments).current_dir(folder));
    Evolution::from_json(&fs::read_to_string(folder.join("table.json")).expect("it is there")).expect("it is right")
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("pace-rtl").join(name)
}

#[test]
fn two_blocks_in_a_design_give_every_gap_of_their_models() {
    let Some(_turn) = skip_unless_installed(&["verilator", "c++"]) else { return };
    let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl");
    // A shape with its options.
    type Table = &'static [&'static str];
    let pairs: [(&str, [Table; 2]); 3] = [
        (
            "carried-direct",
            [
                &["slow_start", "--form", "carried", "--entries", "1000"],
                &["linear", "--form", "direct", "--entries", "512", "--bits", "20"],
            ],
        ),
        ("doubled-held", [&["slow_start(10)", "--entries", "1024"], &["linear", "--packets", "30000", "--bits", "36"]]),
        (
            "repeated-drawn",
            [
                &["bbr(12.7 pkt/RTT)", "--form", "interpolated"],
                &["poisson(20 pkt/RTT, seed = 77)", "--entries", "1024"],
            ],
        ),
    ];
    for (name, tables) in pairs {
        let folder = folder(name);
        let evolutions =
            [("first", tables[0]), ("second", tables[1])].map(|(table, words)| compiled(&folder.join(table), words));
        let mut verilator = Command::new("verilator");
        verilator.args(["--cc", "--exe", "--build", "-Wall", "-O3", "--top-module", "pace_evolution_pair"]);
        verilator.args(["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0"]);
        verilator.args(["--Mdir", "build", "-o", "pace_evolution_pair", "-I."]);
        let sources = ["pace_evolution.sv", "test/pace_evolution_pair.sv", "test/pace_evolution_pair.cpp"];
        run(verilator.args(sources.map(|source| rtl.join(source))).current_dir(&folder));
        let mut pair = Command::new(folder.join("build/pace_evolution_pair"));
        pair.arg(GAPS.to_string()).args(UNITS.map(|unit| unit.to_string())).current_dir(&folder);
        let output = run(&mut pair);
        let found = String::from_utf8(output.stdout).expect("text");
        for (instance, evolution) in evolutions.iter().enumerate() {
            let number = instance.to_string();
            let gaps = found.lines().filter_map(|line| line.split_once(' ')).filter(|(index, _)| *index == number);
            let mut model = EvolutionBlock::new(evolution, 0);
            let mut count = 0;
            for ((_, gap), unit) in gaps.zip(UNITS.iter().cycle()) {
                model.set_ticks_per_unit(*unit);
                assert_eq!(gap.parse(), Ok(model.next_ticks()), "{name} {number}: gap {count}, of {unit} ticks a unit");
                count += 1;
            }
            assert_eq!(count, GAPS, "{name} {number}");
        }
        eprintln!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
}

#[test]
fn memory_images_have_a_line_an_entry() {
    let folder = folder("images");
    let evolution = compiled(&folder, &["slow_start", "--bits", "30"]);
    let lines = |name: &str| -> Vec<u64> {
        let text = fs::read_to_string(folder.join(name)).expect("it is there");
        text.lines().map(|line| u64::from_str_radix(line, 16).expect("hexadecimal")).collect()
    };
    assert_eq!(lines("gaps.mem"), evolution.gaps);
    let changes: Vec<i64> = lines("changes.mem").iter().map(|word| (word << 34) as i64 >> 34).collect();
    assert_eq!(changes, evolution.changes);
    assert_eq!(lines("bands.mem").len(), evolution.bands.len());
    let parameters = fs::read_to_string(folder.join("pace_parameters.svh")).expect("it is there");
    assert!(parameters.contains(".WORD_BITS(30), //"), "{parameters}");
    // A polynomial has no table.
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["pace", "compile", "linear", "--form", "polynomial", "--check", "100", "--memory", "."])
        .current_dir(&folder);
    let output = weft.output().expect("it starts");
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("has no table"));
}
