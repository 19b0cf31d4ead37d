//! `weft study fct --real`: the kernel's TCP beside the one in XL, in network namespaces.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes")]

mod support;

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::{Running, skip_unless_root};

const LIMIT: Duration = Duration::from_secs(180);
/// One cell, whose packets may be late by 2.5 ms, of three pairs and two seeds.
const GRID: &str = "study fct --real --rates 2Mbit/s --rtts 100ms --queues 10 --lengths 20 --initial-windows 4 \
                    --pairs kernel+reno_rto,newreno+tb_tcp --seeds 2 --at-once 3";

fn study(out: &str) -> Result<String> {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(GRID.split_whitespace()).args(["--out", out]);
    let ended = Running::start(weft)?.wait(LIMIT)?;
    ensure!(ended.status.success(), "{}", ended.stderr);
    Ok(ended.stderr)
}

#[test]
fn kernels_and_machines_send_at_the_same_times_over_the_same_path() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ip"]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-fct");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    let out = folder.to_str().context("the build's folder has a plain name")?;
    let said = study(out)?;
    ensure!(said.contains("1 cells of 3 ways, 3 runs at once"), "{said}");

    let runs = fs::read_to_string(folder.join("runs.csv"))?;
    let mut lines = runs.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().context("runs.csv is empty")?;
    let column = |name: &str| heads.iter().position(|head| *head == name).with_context(|| format!("no column {name}"));
    let (pair, bound, slowest) = (column("pair")?, column("bound_ns")?, column("slowest_ns")?);
    let begun = (1..=6).map(|flow| column(&format!("begun_{flow}_ns"))).collect::<Result<Vec<_>>>()?;
    let packets = column("packets")?;
    let mut pairs = Vec::new();
    for line in lines {
        let value = |at: usize| line[at].parse::<u64>().with_context(|| format!("{}: {line:?}", heads[at]));
        pairs.push(line[pair].to_owned());
        for at in &begun {
            value(at + 1).context("a flow has no time: it did not end")?;
        }
        ensure!(value(slowest)? >= value(bound)?, "faster than the link: {line:?}");
        ensure!(value(packets)? >= 120, "fewer segments than there are: {line:?}");
        // All begin within a round trip, however long their processes take to start; what is late and what waits for the others is in the rest.
        let spread = begun.iter().map(|at| value(*at)).collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0);
        ensure!(spread < 200_000_000, "flows begin within {spread} ns: {line:?}");
    }
    ensure!(
        pairs
            == ["kernel+reno", "kernel+reno", "kernel+reno_rto", "kernel+reno_rto", "newreno+tb_tcp", "newreno+tb_tcp"],
        "{pairs:?}"
    );
    let late = fs::read_to_string(folder.join("late.csv"))?;
    ensure!(late.lines().nth(1).is_some_and(|line| line.starts_with("2000000,100,10,20,4,2,")), "{late}");

    // What is there is not run again, and gives the same tables.
    let said = study(out)?;
    ensure!(said.contains("1 of 1 cells are there already") && !said.contains("runs at once"), "{said}");
    ensure!(fs::read_to_string(folder.join("runs.csv"))? == runs, "another table of the same runs");
    ensure!(!folder.join("batch").exists(), "files of batches are left");
    Ok(())
}
