//! Results of networks as tables and pages.

mod sample;

use sample::{dumbbell, network, results, two_runs};
use weftwire_core::trace::TraceKind;
use weftwire_draw::chart::Shape;
use weftwire_network::results::{FlowProgress, LinkSample, Probe, Results, RunFacts};
use weftwire_report::agreement::{Relation, Run, Stretch, Verdict, compare};
use weftwire_report::table::{self, Cells, RunKey, Table};
use weftwire_report::{beside, comparison, network as report, sweep};

/// What is opened is closed, nothing comes from elsewhere, nothing is not a number.
fn check(html: &str) {
    for part in ["<script", "<link", "url(", "@import", "src=", "NaN", "inf<", "<b>"] {
        assert!(!html.contains(part), "{part}");
    }
    for part in ["<svg", "<details", "<summary", "<g", "<table", "<section", "<tr", "<td", "<text", "<div", "<p"] {
        let opened: usize = [">", " "].iter().map(|end| html.matches(&format!("{part}{end}")).count()).sum();
        // A path closes itself.
        assert_eq!(opened, html.matches(&format!("</{}>", &part[1..])).count(), "{part}");
    }
    assert!(html.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_page_of_a_run_is_well_formed_and_says_what_happened() {
    let network = dumbbell();
    let results = results(&network, 4, 400);
    let html = report::page(&network, &results);
    check(&html);
    assert_eq!(html, report::page(&network, &results), "the same each time");
    for part in [
        "Links over time",
        "Distributions",
        "Bytes over time",
        "Around its first repeated segment",
        "ttl_expired",
        "no_flow_key",
        "... and 200 more.",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("web &lt;b&gt;"), "names are escaped");
    assert_eq!(html.matches("busy3").count(), 2, "the style and the one direction that is full");
    assert!(!html.contains("class=\"alert\""));
}

#[test]
fn a_late_and_an_interrupted_run_are_flagged() {
    let network = dumbbell();
    let mut results = results(&network, 4, 3);
    results.run.lateness = Some(sample::late());
    results.run.interrupted = true;
    let html = report::page(&network, &results);
    check(&html);
    assert!(html.contains("class=\"alert\"") && html.contains("2.30 ms after the time"));
    assert!(html.contains("interrupted"));
}

#[test]
fn nothing_at_all_is_a_page_too() {
    let empty = network("empty", &[], &[]);
    check(&report::page(&empty, &Results::default()));
    let alone = network("alone", &["a", "b"], &[]);
    check(&report::page(&alone, &Results::default()));
    check(&compared(&Default::default(), &Default::default(), ["a <b>", "c"]));
}

#[test]
fn a_large_run_is_a_page_of_reasonable_size() {
    let names: Vec<String> = (0..2_000).map(|number| format!("node-with-a-long-name-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let links: Vec<_> = (1..2_000).map(|node| (names[node], node / 2, node, 1_000_000, 1)).collect();
    let mut large = network("large", &names, &links);
    large.sample_interval = std::time::Duration::from_millis(200);
    let results = results(&large, 7, 100_000);
    let html = report::page(&large, &results);
    check(&html);
    assert!(html.len() < 2_000_000, "{}", html.len());
    assert_eq!(html.matches("<circle").count(), 2_000, "a dot each");
    assert_eq!(table::samples(&results).rows(), results.samples.len());
}

#[test]
fn tables_have_a_row_for_each_thing_and_all_columns_are_as_long() {
    let network = dumbbell();
    let results = results(&network, 4, 10);
    let tables = [
        (table::links(&results), 16),
        (table::flows(&results), 10),
        (table::samples(&results), 16 * 1_000),
        (table::functions(&results), 8 + 2 + 1),
        (table::node_drops(&results), 1),
        (table::slowdown(&results), 0),
    ];
    for (table, rows) in tables {
        assert_eq!(table.rows(), rows, "{}", table.name());
        assert!(table.columns().iter().all(|column| column.cells.len() == rows));
        assert!(table.to_csv().lines().count() == rows + 1 && table.to_parquet().is_ok());
    }
    let samples = table::samples(&results);
    let Some(Cells::Integer(intervals)) = samples.column("interval_ns").map(|column| &column.cells) else { panic!() };
    assert!(intervals.iter().all(|interval| *interval == Some(weftwire_core::nanoseconds(network.sample_interval))));
}

/// The documentation names every column of every table.
#[test]
fn the_book_has_every_column() {
    let book = include_str!("../../../docs/results.md");
    let results = results(&dumbbell(), 4, 1);
    let all = [
        table::links(&results),
        table::flows(&results),
        table::samples(&results),
        table::functions(&results),
        table::node_drops(&results),
        table::runs(&[(RunKey::default(), Default::default())]),
        table::slowdown(&results),
        table::summary(&[(RunKey::default(), Default::default())]),
    ];
    for table in all {
        let start =
            book.find(&format!("## `{}`", table.name())).unwrap_or_else(|| panic!("no part on {}", table.name()));
        let part = book[start + 3..].split("\n## ").next().unwrap_or_default();
        for column in table.columns() {
            assert!(part.contains(&format!("`{}`", column.name)), "{}: {}", table.name(), column.name);
        }
    }
    for metric in results.metrics().keys() {
        let name = if metric.contains('.') { metric.rsplit('.').next() } else { Some(metric.as_str()) };
        assert!(book.contains(name.unwrap_or_default()), "{metric}");
    }
}

fn key(run: u64, delay: &str) -> RunKey {
    let parameters = vec![("links.slow.delay".to_owned(), delay.to_owned()), ("seed".to_owned(), run.to_string())];
    RunKey { run, parameters, repetition: 0, seed: u64::MAX - run }
}

#[test]
fn tables_of_many_runs_say_which_run_a_row_is_of() {
    let network = dumbbell();
    let results = results(&network, 4, 2);
    let mut flows = Table::new("flows");
    for (run, delay) in [(0, "5ms"), (1, "10ms")] {
        flows.append_run(&key(run, delay), table::flows(&results));
    }
    let names: Vec<&str> = flows.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names[..5], ["run", "links.slow.delay", "repetition", "seed", "traffic"]);
    assert_eq!(flows.rows(), 4);
    assert!(flows.to_csv().lines().nth(4).is_some_and(|line| line.starts_with("1,10ms,0,18446744073709551614,")));
    assert!(flows.to_parquet().is_ok(), "no column comes twice");

    let mut fewer = results.metrics();
    fewer.remove("fct_p50");
    let runs = table::runs(&[(key(0, "5ms"), results.metrics()), (key(1, "10ms"), fewer)]);
    assert_eq!(runs.rows(), 2);
    let Some(Cells::Float(cells)) = runs.column("fct_p50_s").map(|column| &column.cells) else { panic!() };
    assert!(cells[0].is_some() && cells[1].is_none());
    assert!(runs.column("goodput_bit_per_s").is_some() && runs.column("bottleneck.proxy:2.utilisation").is_some());
}

#[test]
fn many_runs_are_summed_up_by_point_and_metric() {
    let run = |repetition: u64, delay: &str, goodput: f64| {
        let parameters = vec![("links.slow.delay".to_owned(), delay.to_owned())];
        let metrics =
            [("goodput".to_owned(), goodput)].into_iter().chain((repetition == 1).then(|| ("drops".into(), 3.0)));
        (RunKey { run: 1, parameters, repetition, seed: 1 }, metrics.collect())
    };
    let runs = [run(1, "5ms", 10.0), run(1, "9ms", 1.0), run(2, "5ms", 14.0), run(3, "5ms", 12.0)];
    let csv = table::summary(&runs).to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    let head = "links.slow.delay,metric,runs,mean,standard_deviation,confidence_95,min,p10,p50,p90,max";
    assert_eq!(lines[..2], [head, "5ms,drops,1,3,,,3,3,3,3,3"]);
    assert!(
        lines[2].starts_with("5ms,goodput_bit_per_s,3,12,2,4.96") && lines[2].ends_with(",10,10,12,14,14"),
        "{csv}"
    );
    assert_eq!(lines[3..], ["9ms,drops,1,3,,,3,3,3,3,3", "9ms,goodput_bit_per_s,1,1,,,1,1,1,1,1"]);
}

#[test]
fn many_runs_are_a_page() {
    let network = dumbbell();
    let mut runs = Vec::new();
    for (index, delay) in ["5ms", "10ms", "200ms"].into_iter().enumerate() {
        let mut metrics = results(&network, 4, 20).metrics();
        metrics.values_mut().for_each(|value| *value *= 1.0 + index as f64);
        runs.push((key(0, delay), metrics));
    }
    runs.iter_mut().for_each(|(key, _)| key.parameters.truncate(1));
    let html = sweep::page("many <b>", &runs);
    check(&html);
    for part in ["Goodput of all flows", "Utilisation of bottleneck.proxy:2", "links.slow.delay", "class=\"band"] {
        assert!(html.contains(part), "{part}");
    }
}

fn compared(left: &Run, right: &Run, labels: [&str; 2]) -> String {
    comparison::page(&compare(left, right), [left, right], labels, false)
}

/// The verdict of a row of the page: its class and words.
fn verdict_of(html: &str, what: &str) -> String {
    let row = html.split(&format!("<tr><td>{what}</td><td class=\"")).nth(1).unwrap_or_else(|| panic!("no row {what}"));
    row.split("</td>").next().unwrap_or_default().replace("\">", ": ")
}

#[test]
fn a_comparison_of_other_networks_says_so() {
    let run = |seed: u64, names: [&str; 3]| {
        let network = network("net", &names, &[(names[0], 0, 1, 1_000_000, 1), (names[1], 1, 2, 1_000_000, 1)]);
        Run { results: results(&network, seed as usize, 400), traces: Vec::new() }
    };
    let (left, right) = (run(1, ["a", "b", "c"]), run(1, ["x", "y", "z"]));
    let agreement = compare(&left, &right);
    assert_eq!(agreement.relation, Relation::Unrelated);
    assert!(!agreement.agrees(true));
    assert!(agreement.to_string().contains("no link in common") && agreement.to_string().lines().count() == 1);
    let html = compared(&left, &right, ["l", "r"]);
    check(&html);
    assert!(html.contains("no link in common") && !html.contains("<table"));

    // One more link and another rate.
    let mut right = left.clone();
    right.results.links.pop();
    right.results.links[0].rate = Some(7);
    let agreement = compare(&left, &right);
    let said = agreement.to_string();
    assert!(!agreement.agrees(true) && said.contains("only the left run has the link `b` from c:"), "{said}");
    assert!(said.contains("has 1000000 bit/s and 7 bit/s"), "{said}");
    let html = compared(&left, &right, ["l", "r"]);
    check(&html);
    assert_eq!(verdict_of(&html, "network"), "bad: different");
    assert_eq!(verdict_of(&html, "goodput"), "good: agrees");
}

#[test]
fn hundreds_of_flows_are_folded() {
    let network = dumbbell();
    let left = Run { results: results(&network, 4, 400), traces: Vec::new() };
    let mut right = left.clone();
    right.results.flows[7].delivered *= 3;
    right.results.flows[9].outcome = "reset".into();
    let agreement = compare(&left, &right);
    let said = agreement.to_string();
    assert!(said.lines().count() < 5 && said.contains("318 of 320 flows agree; the farthest, number 7: "), "{said}");
    let html = compared(&left, &right, ["l", "r"]);
    check(&html);
    let open = html.split("<h2>Goodput</h2>").nth(1).and_then(|part| part.split("<details>").next());
    let open = open.expect("a part that is open").matches("<tr>").count();
    assert!(open < 10, "{open} rows stand open");
    assert!(html.contains("All 400</summary>"));
}

#[test]
fn words_and_colours_of_a_comparison_say_the_same() {
    let (left, right) = two_runs();
    let mut late = right.clone();
    late.results.run.source_lateness = Some(sample::late());
    let page = |right: &Run, allow| comparison::page(&compare(&left, right), [&left, right], ["l", "r"], allow);
    let both = |html: &str| verdict_of(html, "both runs");
    assert_eq!(both(&page(&right, false)), "good: agree");
    assert_eq!(both(&page(&late, false)), "bad: do not agree");
    assert_eq!(verdict_of(&page(&late, false), "time"), "bad: late");
    assert_eq!(both(&page(&late, true)), "good: agree");
    assert_eq!(verdict_of(&page(&late, true), "time"), "fair: late, allowed");
    // In another order the runs do not agree, and nothing is green.
    let mut swapped = left.clone();
    swapped.traces[0].1.swap(3, 4);
    assert_eq!(verdict_of(&page(&swapped, false), "machine events"), "bad: other order");
    assert_eq!(both(&page(&swapped, false)), "bad: do not agree");
    // A flow that was reset on one side only does not agree, however much had arrived.
    let mut reset = left.clone();
    reset.results.flows[0].outcome = "reset".into();
    assert_eq!(verdict_of(&page(&reset, false), "goodput"), "bad: differs");
}

#[test]
fn events_have_their_lines_and_values() {
    let (left, mut right) = two_runs();
    for record in &mut right.traces[0].1 {
        (record.line, record.source) = (Some(17), Some("lib/<timers>.xl".into()));
        record.actions = vec!["scratch_1 := count (5) + 1".into(), "send work (1042 bytes) to port 1".into()];
    }
    let html = compared(&left, &right, ["l", "r"]);
    for part in
        ["set_timer retransmit in 20", ", line 17 of lib/&lt;timers&gt;.xl<", "send work (1042 bytes) to port 1"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("scratch_1"));
}

#[test]
fn a_comparison_shows_where_runs_differ() {
    let (left, right) = two_runs();
    let agreement = compare(&left, &right);
    assert_eq!(agreement.verdict(), Verdict::SameStates);
    assert_eq!(agreement.sequences[0].stretches, [Stretch::Same(402), Stretch::Right(1), Stretch::Same(199)]);
    assert_eq!(agreement.sequences[1].verdict, Verdict::Same);
    assert!(agreement.flows[0].agrees(), "1.5 per cent");
    let html = compared(&left, &right, ["simulated", "real <b>"]);
    check(&html);
    assert!(html.contains("394 equal events") && html.contains("real &lt;b&gt;") && html.contains("same states"));
    assert_eq!(html.matches("<tr class=\"only\">").count(), 1);
    check(&compared(&left, &left, ["a", "b"]));
    assert!(compared(&left, &left, ["a", "b"]).contains(">agree<"));
}

#[test]
fn a_hundred_thousand_events_are_compared() {
    let (mut left, mut right) = two_runs();
    for (run, skipped) in [(&mut left, 30_000), (&mut right, 90_000)] {
        let pattern = run.traces[0].1.clone();
        let mut records: Vec<_> = (0..100_000).map(|index| pattern[index * 7 % pattern.len()].clone()).collect();
        records.remove(skipped);
        records[0].kind = TraceKind::Error;
        run.traces = vec![("sender".into(), records)];
    }
    right.results.run = RunFacts::default();
    let agreement = compare(&left, &right);
    assert!(agreement.sequences[0].matched() > 90_000);
    assert!(compared(&left, &right, ["a", "b"]).len() < 500_000);
}

/// Flows beside each other: a line each, of what the sender's registers hold and of what it gets through.
#[test]
fn flows_are_drawn_beside_each_other() {
    let mut results = results(&dumbbell(), 4, 4);
    let (from, to) = (results.flows[0].from.clone(), results.flows[0].to.clone());
    let probe = |flow: usize, node: &str, value| Probe {
        flow,
        node: node.to_owned(),
        register: "window".to_owned(),
        points: vec![(0, value), (1_000_000_000, value)],
    };
    // Its receiver has the register, too; of the other flow only the receiver has it.
    results.probes = vec![probe(0, &to, 7), probe(0, &from, 5), probe(1, "elsewhere", 3)];
    let chart = beside::register(&results, "window").expect("it is probed");
    let lows: Vec<f64> = chart.series.iter().map(|series| first_value(&series.shape)).collect();
    assert_eq!(lows, [5.0, 3.0]);
    assert!(beside::register(&results, "other").is_none());

    // 1 MB in the first second and nothing in the second.
    let link = results.samples[0].link;
    let sample = results.samples[0].clone();
    results.samples = (1..=20).map(|tenth| LinkSample { link, at: tenth * 100_000_000, ..sample.clone() }).collect();
    let acknowledged = (1..=10).map(|tenth| (tenth * 100_000_000, tenth as u64 * 100_000)).collect();
    results.progress = vec![FlowProgress { flow: 0, sent: Vec::new(), acknowledged }];
    (results.flows[0].start, results.flows[0].end, results.flows[0].delivered) = (0, None, 1_000_000);
    let chart = beside::goodput(&results).expect("there is progress");
    let Shape::Line(points) = &chart.series[0].shape else { panic!("{chart:?}") };
    let rates: Vec<f64> = points.iter().map(|(_, rate)| rate.round()).collect();
    assert_eq!(rates, [vec![8e6; 10], vec![0.0; 10]].concat());
    assert!(beside::charts(&results).len() >= 2 && report::page(&dumbbell(), &results).contains("Beside each other"));
    results.flows.truncate(1);
    assert!(beside::charts(&results).is_empty(), "of one flow there is nothing beside");
}

fn first_value(shape: &Shape) -> f64 {
    let Shape::Line(points) = shape else { panic!("{shape:?}") };
    points[0].1
}
