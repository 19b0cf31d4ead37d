//! Two runs of one network beside each other as one HTML page.

mod events;

use crate::agreement::{
    Agreement, FlowAgreement, GOODPUT_TOLERANCE, LinkAgreement, Relation, Run, SequenceAgreement, Sides,
    TrafficAgreement, Verdict,
};
use crate::network::time;
use std::fmt::Write as _;
use weftwire_draw::Axis;
use weftwire_draw::Unit;
use weftwire_draw::chart::{Chart, Shape, each};
use weftwire_draw::document;
use weftwire_draw::escape_markup;
use weftwire_draw::grouped;
use weftwire_draw::html::{Cell, facts, folded, notice, section, table};
use weftwire_draw::statistics::percentile;
use weftwire_network::link::Counts;
use weftwire_network::results::FlowProgress;

/// Sequences that are shown event by event; those that differ come first.
const MOST_SEQUENCES: usize = 8;
/// Rows of the other tables.
const MOST_ROWS: usize = 200;
/// Rows of flows that stand open; of more those that differ most, all others are folded.
const MOST_OPEN: usize = 20;
/// Flows whose bytes over time are drawn.
const MOST_PLOTS: usize = 8;
/// Differences of two networks that are named.
const MOST_DIFFERENCES: usize = 20;

/// The whole page about two runs and how they compare. The labels say what they are: `simulated`, `real`.
pub fn page(agreement: &Agreement, runs: Sides<&Run>, [left, right]: Sides<&str>, allow_late: bool) -> String {
    let title = format!("{}: {left} and {right}", agreement.runs[0].network);
    let mut body = String::new();
    let _ = writeln!(body, "<header><h1>{}</h1>", escape_markup(&title));
    header(&mut body, agreement, [left, right]);
    body.push_str("</header>\n");
    if agreement.relation == Relation::Unrelated {
        return document(&title, &body);
    }
    section(&mut body, "Verdict", "", || verdicts(agreement, [left, right], allow_late));
    section(
        &mut body,
        "Machine events by flow",
        "Events are the same if state, event, row, next state and what is done are; the values in them may differ. Flows of \
         a node are compared in the order in which they were made. Time differences are of the events that match, from the \
         first match on: p50, p99 and the worst.",
        || sequences(agreement, [left, right]),
    );
    let mut order: Vec<&SequenceAgreement> = agreement.sequences.iter().collect();
    order.sort_by_key(|sequence| std::cmp::Reverse(sequence.verdict));
    for sequence in order.into_iter().take(MOST_SEQUENCES) {
        let name = format!("{}, flow {}", escape_markup(&sequence.node), sequence.flow);
        section(
            &mut body,
            &name,
            "Seconds from the first event on each side; line and actions with their values as they were there.",
            || events::table(&agreement.kinds, sequence, runs, [left, right]),
        );
    }
    section(&mut body, "Goodput", "", || goodputs(agreement, [left, right]));
    section(
        &mut body,
        "Bytes over time",
        "Each stroke is a segment as its sender sent it, each dot one that repeats bytes, the stair what was acknowledged \
         or delivered; both from their own first segment.",
        || {
            let shown = agreement.progress.iter().take(MOST_PLOTS);
            let charts: Vec<Chart> = shown
                .filter_map(|(flow, sides)| Some(sequence_plot(agreement.flows.get(*flow)?, sides, [left, right])))
                .collect();
            each(&charts)
        },
    );
    section(
        &mut body,
        "Links",
        &format!("Both sides where they differ: {} | {}.", escape_markup(left), escape_markup(right)),
        || links(agreement),
    );
    section(&mut body, "Functions", "Counters that are not 0 on both sides.", || counters(agreement, [left, right]));
    document(&title, &body)
}

fn header(body: &mut String, agreement: &Agreement, labels: Sides<&str>) {
    for (run, label) in agreement.runs.iter().zip(labels) {
        let mut lines = vec![
            ("run", label.to_owned()),
            ("platform", run.platform.clone()),
            ("seed", run.seed.to_string()),
            ("lasted", time(run.lasted)),
            ("packet-hops", grouped(i64::try_from(run.packet_hops).unwrap_or(i64::MAX))),
        ];
        lines.extend(crate::network::lateness(run));
        facts(body, &lines);
    }
    match &agreement.relation {
        Relation::Same => {}
        Relation::Changed(differences) => {
            let mut lines = vec!["These are not runs of one network. What differs:".to_owned()];
            lines.extend(differences.iter().take(MOST_DIFFERENCES).cloned());
            if differences.len() > MOST_DIFFERENCES {
                lines.push(format!("... and {} more.", differences.len() - MOST_DIFFERENCES));
            }
            notice(body, "alert", lines.iter().map(String::as_str));
        }
        Relation::Unrelated => {
            let names = agreement.runs.each_ref().map(|run| &run.network);
            let text = format!(
                "The networks of these runs, {} and {}, have no link in common: there is nothing to compare.",
                names[0], names[1]
            );
            notice(body, "alert", [text.as_str()]);
        }
    }
    if agreement.runs[0].seed != agreement.runs[1].seed {
        notice(body, "calm", ["The seeds differ: times and sizes of flows, and what links do at random, are others."]);
    }
    for (run, label) in agreement.runs.iter().zip(labels) {
        if run.is_late() {
            notice(body, "alert", [format!("{label}: this run was late and is not to be trusted.").as_str()]);
        }
        if run.interrupted {
            notice(body, "calm", [format!("{label}: this run was interrupted.").as_str()]);
        }
        let warnings: Vec<String> = run.warnings.iter().map(|warning| format!("{label}: {warning}")).collect();
        notice(body, "calm", warnings.iter().map(String::as_str));
    }
}

fn good(holds: bool, yes: &str, no: &str) -> Cell {
    if holds { Cell::Verdict("good", yes.to_owned()) } else { Cell::Verdict("bad", no.to_owned()) }
}

fn verdicts(agreement: &Agreement, [left, right]: Sides<&str>, allow_late: bool) -> String {
    let mut rows = vec![vec![
        Cell::text("both runs"),
        good(agreement.agrees(allow_late), "agree", "do not agree"),
        Cell::text(
            "one network; each flow of a function goes the same way through its states; goodputs within the tolerance; no \
             run late",
        ),
    ]];
    if agreement.relation != Relation::Same {
        rows.push(vec![Cell::text("network"), good(false, "", "different"), Cell::text("see above")]);
    }
    if !agreement.sequences.is_empty() {
        let count = |verdict| agreement.sequences.iter().filter(|sequence| sequence.verdict == verdict).count();
        let events =
            |side: usize| agreement.sequences.iter().map(|sequence| sequence.events[side].len()).sum::<usize>();
        let matched: usize = agreement.sequences.iter().map(SequenceAgreement::matched).sum();
        let counts = Verdict::ALL.map(|verdict| format!("{} {}", count(verdict), verdict.word()));
        let detail = format!(
            "flows: {}; events: {} matched, {} only {left}, {} only {right}",
            counts.join(", "),
            grouped(matched as i64),
            grouped((events(0) - matched) as i64),
            grouped((events(1) - matched) as i64)
        );
        rows.push(vec![Cell::text("machine events"), verdict(agreement.verdict()), Cell::Text(detail)]);
    }
    if !agreement.flows.is_empty() {
        let close = agreement.flows.iter().filter(|flow| flow.agrees()).count();
        let ratios = agreement.flows.iter().filter_map(FlowAgreement::ratio);
        let worst = ratios.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
        let worst = worst.map_or_else(String::new, |ratio| format!("; the farthest is {}", change(ratio)));
        let tolerance = Unit::Share.text(GOODPUT_TOLERANCE).replace(".00", "");
        let all = agreement.flows.len();
        rows.push(vec![
            Cell::text("goodput"),
            good(close == all, "agrees", "differs"),
            Cell::Text(format!("{close} of {all} flows within {tolerance}{worst}")),
        ]);
    }
    if agreement.runs.iter().any(|run| run.is_late()) {
        let late = if allow_late { Cell::Verdict("fair", "late, allowed".into()) } else { good(false, "", "late") };
        rows.push(vec![Cell::text("time"), late, Cell::text("a run was late and is not to be trusted")]);
    }
    table(&["what", "verdict", "detail"], rows)
}

/// Green is what runs that agree may have, red what they may not.
fn verdict(verdict: Verdict) -> Cell {
    good(verdict.agrees(), verdict.word(), verdict.word())
}

/// A ratio as what it adds: `+1.2 %`.
fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

fn sequences(agreement: &Agreement, [left, right]: Sides<&str>) -> String {
    let heads = [
        "node",
        "flow",
        &format!("events, {left}"),
        right,
        "matched",
        "first difference",
        "p50",
        "p99",
        "worst",
        "verdict",
    ];
    let row = |sequence: &SequenceAgreement| {
        let timing = |of: fn(&crate::agreement::Timing) -> i64| Cell::known(sequence.timing.as_ref().map(of).map(time));
        vec![
            Cell::text(&sequence.node),
            Cell::Number(sequence.flow.to_string()),
            Cell::count(sequence.events[0].len() as u64),
            Cell::count(sequence.events[1].len() as u64),
            Cell::count(sequence.matched() as u64),
            Cell::known(sequence.first_difference().map(|count| format!("behind {}", grouped(count as i64)))),
            timing(|timing| timing.p50),
            timing(|timing| timing.p99),
            timing(|timing| timing.worst),
            verdict(sequence.verdict),
        ]
    };
    let all: Vec<&SequenceAgreement> = agreement.sequences.iter().collect();
    few_open(all, |sequence| !sequence.verdict.agrees(), &|some| table(&heads, some.iter().copied().map(row)))
}

/// Tables of a few rows open and the rest folded: of many rows those that matter stand open.
fn few_open<T: Copy>(all: Vec<T>, matters: impl Fn(T) -> bool, table: &dyn Fn(&[T]) -> String) -> String {
    if all.len() <= MOST_OPEN {
        return table(&all);
    }
    let open: Vec<T> = all.iter().copied().filter(|item| matters(*item)).take(MOST_OPEN).collect();
    let mut rest = table(&all[..all.len().min(MOST_ROWS)]);
    more(&mut rest, all.len());
    let mut out = table(&open);
    out.push_str(&folded(&format!("All {}", grouped(all.len() as i64)), &rest));
    out
}

fn more(out: &mut String, count: usize) {
    if count > MOST_ROWS {
        let _ = writeln!(out, "<p class=\"note\">... and {} more.</p>", grouped((count - MOST_ROWS) as i64));
    }
}

fn goodputs(agreement: &Agreement, labels: Sides<&str>) -> String {
    let [left, right] = labels;
    let row = |flow: &FlowAgreement| {
        let goodput = |side: usize| Cell::known(flow.goodput[side].map(|value| Unit::BitsPerSecond.text(value)));
        let outcome = |side: usize| flow.outcome[side].clone().unwrap_or_else(|| "-".to_owned());
        let outcomes = match flow.outcome[0] == flow.outcome[1] {
            true => outcome(0),
            false => format!("{} | {}", outcome(0), outcome(1)),
        };
        vec![
            Cell::text(&flow.traffic),
            Cell::Number(flow.number.to_string()),
            goodput(0),
            goodput(1),
            Cell::known(flow.ratio().map(change)),
            good(flow.agrees(), "agrees", "differs"),
            Cell::Text(outcomes),
        ]
    };
    let heads = ["traffic", "number", left, right, "difference", "verdict", "outcome"];
    let mut all: Vec<&FlowAgreement> = agreement.flows.iter().collect();
    let mut out = String::new();
    if all.len() > MOST_OPEN {
        out = by_traffic(agreement, labels);
        // The farthest first.
        all.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
    }
    out.push_str(&few_open(all, |flow| !flow.agrees(), &|some| table(&heads, some.iter().copied().map(row))));
    out
}

/// How many flows of each traffic agree, and the medians of their goodputs.
fn by_traffic(agreement: &Agreement, [left, right]: Sides<&str>) -> String {
    let row = |traffic: TrafficAgreement<'_>| {
        let median = |side: usize| {
            let mut all: Vec<f64> = traffic.flows.iter().filter_map(|flow| flow.goodput[side]).collect();
            all.sort_by(f64::total_cmp);
            Cell::known(percentile(&all, 50).map(|value| Unit::BitsPerSecond.text(value)))
        };
        let (agreeing, all) = (traffic.agreeing(), traffic.flows.len());
        let farthest = traffic.farthest().map(|flow| match flow.ratio() {
            Some(ratio) => format!("{} of {}", change(ratio), flow.number),
            None => format!("number {}", flow.number),
        });
        vec![
            Cell::text(traffic.traffic),
            Cell::count(all as u64),
            Cell::count(agreeing as u64),
            median(0),
            median(1),
            Cell::known(farthest),
            good(agreeing == all, "agrees", "differs"),
        ]
    };
    let heads = ["traffic", "flows", "agree", &format!("median, {left}"), right, "farthest", "verdict"];
    table(&heads, agreement.traffic().into_iter().take(MOST_ROWS).map(row))
}

/// Both sides of a flow over each other.
fn sequence_plot(flow: &FlowAgreement, sides: &Sides<Option<FlowProgress>>, labels: Sides<&str>) -> Chart {
    let name = format!("{} {}", flow.traffic, flow.number);
    let mut chart = Chart::new(&name, Axis::new("time", Unit::Seconds), Axis::new("", Unit::Bytes));
    for ((progress, label), tone) in sides.iter().zip(labels).zip(["tone0", "tone1"]) {
        let Some(progress) = progress else { continue };
        let first = progress.sent.first().map_or(0, |segment| segment.0);
        let at = |time: i64| time.saturating_sub(first) as f64 / 1e9;
        let strokes =
            progress.sent.iter().filter(|segment| !segment.3).map(|(time, byte, length, _)| {
                (at(*time), *byte as f64, byte.saturating_add(u64::from(*length)) as f64)
            });
        chart.add_as(tone, label, Shape::Strokes(strokes.collect()));
        let repeated = progress.sent.iter().filter(|segment| segment.3);
        chart.add_as(tone, "", Shape::Dots(repeated.map(|(time, byte, ..)| (at(*time), *byte as f64)).collect()));
        let stair = progress.acknowledged.iter().map(|(time, bytes)| (at(*time), *bytes as f64));
        chart.add_as(tone, "", Shape::Step(stair.collect()));
    }
    chart
}

fn links(agreement: &Agreement) -> String {
    let heads = [
        "link",
        "from",
        "offered",
        "delivered",
        "lost",
        "full",
        "early",
        "down",
        "hole",
        "marks",
        "duplicates",
        "reordered",
    ];
    let counts: [fn(&Counts) -> u64; 10] = [
        |counts| counts.offered_packets,
        |counts| counts.delivered_packets,
        |counts| counts.lost,
        |counts| counts.dropped_full,
        |counts| counts.dropped_early,
        |counts| counts.dropped_down,
        |counts| counts.dropped_blackhole,
        |counts| counts.marked,
        |counts| counts.duplicated,
        |counts| counts.reordered,
    ];
    let row = |link: &LinkAgreement| {
        let mut cells = vec![Cell::text(&link.link), Cell::text(&link.from)];
        cells.extend(counts.map(|of| Cell::Number(both(link.counts.map(|counts| counts.as_ref().map(of))))));
        cells
    };
    let mut out = table(&heads, agreement.links.iter().take(MOST_ROWS).map(row));
    more(&mut out, agreement.links.len());
    out
}

/// One number if both sides have the same, else both.
fn both(sides: Sides<Option<u64>>) -> String {
    let one =
        |side: Option<u64>| side.map_or("-".to_owned(), |count| grouped(i64::try_from(count).unwrap_or(i64::MAX)));
    if sides[0] == sides[1] { one(sides[0]) } else { sides.map(one).join(" | ") }
}

fn counters(agreement: &Agreement, [left, right]: Sides<&str>) -> String {
    let shown =
        agreement.counters.iter().filter(|row| row.counts.iter().any(|count| count.is_some_and(|count| count > 0)));
    let rows = shown.take(2 * MOST_ROWS).map(|row| {
        let [a, b] = row.counts.map(|count| count.map_or(Cell::known(None), Cell::count));
        let same = if row.counts[0] == row.counts[1] {
            Cell::Verdict("good", "same".to_owned())
        } else {
            Cell::Verdict("fair", "different".to_owned())
        };
        vec![
            Cell::text(&row.node),
            Cell::text(&row.counter),
            Cell::text(row.name.clone().unwrap_or_default()),
            a,
            b,
            same,
        ]
    });
    table(&["node", "counter", "row or reason", left, right, ""], rows)
}
