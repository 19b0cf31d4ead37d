//! Filtering reports of telemetry, over the number of filters: the engine beside plain loops. After Figure 9.

use super::{Lines, SEED, Start, formats, rules};
use anyhow::{Result, anyhow, bail, ensure};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;
use weftwire_core::{Frame, LinkType};
use weftwire_draw::chart::{Chart, Shape};
use weftwire_draw::{Axis, Unit};
use weftwire_study::sheet::{alone, csv};
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::{Compiler, packet};
use weftwire_switch::{Engine, Memory, Pipeline};
use weftwire_workload::Numbers;
use weftwire_workload::reports::{FIRST_HOP, REPORT_FORMATS, REPORT_PORT, hop, report_packet, report_rules};

/// Reports of one hop each that are filtered over and over: more than caches of branches remember.
const REPORTS: usize = 32_768;
/// Filters are about latencies above this, in nanoseconds: less than one report in a hundred matches.
const SLOW: u32 = 10_000;
const COUNTS: [u32; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
/// How long each measurement lasts at least, and how many there are; the best counts.
const LEAST: Duration = Duration::from_millis(100);
const RUNS: usize = 3;
const HEADS: &[&str] = &["filters", "matching", "engine", "scan", "engine_parsed", "scan_parsed"];

/// Where a rule sends what.
struct Filter {
    switch: u32,
    above: u32,
    port: u16,
}

/// Millions of reports a second with so many filters.
struct Row {
    filters: u32,
    matching: usize,
    rates: [f64; 4],
}

/// Measures all numbers of filters; tables and a picture go into `out`.
pub fn measure(out: Option<&Path>) -> Result<()> {
    let mut numbers = Numbers::new(SEED);
    let hops: Vec<_> = (0..REPORTS).map(|_| hop(100, &mut numbers)).collect();
    let frames: Vec<Vec<u8>> =
        hops.iter().enumerate().map(|(index, hop)| report_packet(&[*hop], index as u32)).collect();
    let parsed: Vec<(u32, u32)> = hops.iter().map(|hop| (hop.switch_id, hop.latency)).collect();
    let rows = COUNTS.iter().map(|count| row(*count, &frames, &parsed)).collect::<Result<Vec<Row>>>()?;
    print(&rows);
    if let Some(folder) = out {
        fs::create_dir_all(folder)?;
        let cells = |row: &Row| {
            let mut cells = vec![row.filters.to_string(), row.matching.to_string()];
            cells.extend(row.rates.map(|rate| format!("{rate:.4}")));
            cells
        };
        fs::write(folder.join("figure-9.csv"), csv(HEADS, rows.iter().map(cells)))?;
        fs::write(folder.join("figure-9.svg"), picture(&rows))?;
        println!("written to {}", folder.display());
    }
    Ok(())
}

fn row(count: u32, frames: &[Vec<u8>], parsed: &[(u32, u32)]) -> Result<Row> {
    let formats = formats(REPORT_FORMATS)?;
    let text = report_rules(count, SLOW, 1);
    let Ok(compiler) = Compiler::new(formats.clone(), &Options::default(), &rules(&text, &formats)?) else {
        bail!("the workload has too many clauses")
    };
    let filters: Vec<Filter> =
        (0..count).map(|number| Filter { switch: number % 100, above: SLOW + number / 100, port: 2 }).collect();

    let mut engine = Engine::new(&compiler);
    let mut whole = |frame: &[u8]| -> Result<u64> {
        let mut copies = 0;
        let copy = |_, copy: Frame<'_>| copies += u64::from(!black_box(copy).bytes.is_empty());
        let result = engine.frame(0, LinkType::Ethernet, Frame::new(frame), copy, |_| {});
        result.map(|()| copies).map_err(|reason| anyhow!("a report is dropped: {}", reason.name()))
    };
    let pipeline = Pipeline::new(&compiler);
    let mut rows = Vec::new();
    for frame in frames {
        let found = packet::messages(&formats, LinkType::Ethernet, frame)
            .map_err(|reason| anyhow!("a report is dropped: {}", reason.name()))?;
        found.messages.iter().for_each(|message| pipeline.push_row(message, &mut rows));
    }
    let (length, mut memory, mut sets) = (pipeline.row_length(), Memory::default(), Vec::with_capacity(1));
    let mut walk = |index: usize| {
        sets.clear();
        pipeline.walk(&rows[index * length..(index + 1) * length], 0, &mut memory, &mut sets);
        sets.first().map_or(0, |set| pipeline.ports(*set).len() as u64)
    };
    let on_frame = |frame: &[u8]| read(frame).and_then(|(switch, latency)| scan(&filters, switch, latency));

    // All say the same before anything is measured.
    let mut matching = 0;
    for (index, (frame, (switch, latency))) in frames.iter().zip(parsed).enumerate() {
        let expected = u64::from(scan(&filters, *switch, *latency).is_some());
        ensure!(whole(frame)? == expected && walk(index) == expected, "the engine differs at report {index}");
        ensure!(u64::from(on_frame(frame).is_some()) == expected, "the scan differs at report {index}");
        matching += expected as usize;
    }
    let count_of = |port: Option<u16>| u64::from(port.is_some());
    let rates = [
        rate(frames.len(), |index| whole(&frames[index]).unwrap_or(0)),
        rate(frames.len(), |index| count_of(on_frame(&frames[index]))),
        rate(frames.len(), &mut walk),
        rate(parsed.len(), |index| count_of(scan(&filters, parsed[index].0, parsed[index].1))),
    ];
    Ok(Row { filters: count, matching, rates })
}

/// Switch and latency of a report's first hop, read as a program for just these packets would.
fn read(frame: &[u8]) -> Option<(u32, u32)> {
    let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let is_report = half(12)? == 0x0800 && *frame.get(14)? == 0x45 && *frame.get(23)? == 17 && half(36)? == REPORT_PORT;
    let hop = frame.get(FIRST_HOP..FIRST_HOP + 8).filter(|_| is_report)?;
    let word = |at: usize| u32::from_be_bytes([hop[at], hop[at + 1], hop[at + 2], hop[at + 3]]);
    Some((word(0), word(4)))
}

/// The first filter that matches.
fn scan(filters: &[Filter], switch: u32, latency: u32) -> Option<u16> {
    filters.iter().find(|filter| filter.switch == switch && latency > filter.above).map(|filter| filter.port)
}

/// Million calls a second of processor time, the best of some runs.
fn rate(count: usize, mut call: impl FnMut(usize) -> u64) -> f64 {
    let (mut sum, mut at, mut number) = (0, 0, 1usize);
    let mut calls = |number: usize| {
        let start = Start::now();
        for _ in 0..number {
            sum += call(at);
            at = if at + 1 == count { 0 } else { at + 1 };
        }
        start.elapsed()
    };
    while calls(number) < LEAST {
        number *= 2;
    }
    let best = (0..RUNS).map(|_| calls(number)).min().unwrap_or_default();
    black_box(sum);
    number as f64 / best.as_secs_f64() / 1e6
}

fn print(rows: &[Row]) {
    let mut table = Lines::new(&[
        "filters",
        "matching",
        "engine M/s",
        "scan M/s",
        "ratio",
        "parsed: engine M/s",
        "scan M/s",
        "ratio",
    ]);
    for row in rows {
        let [engine, scan, walk, loops] = row.rates;
        table.row(&[
            row.filters.to_string(),
            format!("{:.2} %", row.matching as f64 * 100.0 / REPORTS as f64),
            format!("{engine:.2}"),
            format!("{scan:.4}"),
            format!("{:.2}", engine / scan),
            format!("{walk:.2}"),
            format!("{loops:.4}"),
            format!("{:.2}", walk / loops),
        ]);
    }
    table.print();
}

fn picture(rows: &[Row]) -> String {
    let axes = (Axis::logarithmic("filters", Unit::Plain), Axis::logarithmic("reports a second", Unit::Plain));
    let mut chart = Chart::new("Filtering reports of telemetry", axes.0, axes.1);
    let names = ["engine, packets", "scan, packets", "engine, parsed", "scan, parsed"];
    for (place, name) in names.into_iter().enumerate() {
        let point = |row: &Row| (f64::from(row.filters), row.rates[place] * 1e6);
        chart.add(name, Shape::Line(rows.iter().map(point).collect()));
    }
    alone(&[chart])
}
