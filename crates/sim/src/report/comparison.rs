//! Two runs of one network beside each other as one HTML page.

use super::axis::Axis;
use super::chart::{Chart, Shape, stack};
use super::html::{Cell, facts, notice, section, table};
use super::network::time;
use super::page::document;
use super::unit::Unit;
use super::{grouped, seconds};
use crate::agreement::{
    Agreement, EventKind, FlowAgreement, GOODPUT_TOLERANCE, LinkAgreement, MachineEvent, SequenceAgreement, Sides,
    Stretch, Verdict,
};
use std::fmt::Write as _;
use weftwire_image::explain::escape_markup;
use weftwire_network::link::Counts;
use weftwire_network::results::FlowProgress;

/// Sequences that are shown event by event; those that differ come first.
const MOST_SEQUENCES: usize = 8;
/// Rows of each.
const MOST_EVENTS: usize = 300;
/// Rows of the other tables.
const MOST_ROWS: usize = 200;
/// Flows whose bytes over time are drawn.
const MOST_PLOTS: usize = 8;
/// Longer stretches of equal events are folded; so many stay at each end.
const KEPT: usize = 4;

/// The whole page. The labels say what the two runs are: `simulated`, `real`.
pub fn page(agreement: &Agreement, left: &str, right: &str) -> String {
    let title = format!("{}: {left} and {right}", agreement.runs[0].network);
    let mut body = String::new();
    let _ = writeln!(body, "<header><h1>{}</h1>", escape_markup(&title));
    header(&mut body, agreement, [left, right]);
    body.push_str("</header>\n");
    section(&mut body, "Verdict", "", || verdicts(agreement, [left, right]));
    section(
        &mut body,
        "Machine events by flow",
        "Events are the same if state, event, row, next state and actions are; the values in them may differ. Flows of \
         a node are compared in the order in which they were made. Time differences are of the events that match, from the \
         first match on: p50, p99 and the worst.",
        || sequences(agreement, [left, right]),
    );
    let mut order: Vec<&SequenceAgreement> = agreement.sequences.iter().collect();
    order.sort_by_key(|sequence| sequence.verdict == Verdict::Same);
    for sequence in order.into_iter().take(MOST_SEQUENCES) {
        let name = format!("{}, flow {}", escape_markup(&sequence.node), sequence.flow);
        section(&mut body, &name, "Seconds from the first event on each side.", || {
            events(&agreement.kinds, sequence, [left, right])
        });
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
            stack(&charts)
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
        if let Some(late) = &run.lateness {
            lines.push(("lateness p50 / p99 / worst", [late.p50, late.p99, late.worst].map(time).join(" / ")));
        }
        facts(body, &lines);
    }
    for (run, label) in agreement.runs.iter().zip(labels) {
        if run.lateness.is_some_and(|lateness| lateness.late) {
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

fn verdicts(agreement: &Agreement, [left, right]: Sides<&str>) -> String {
    let mut rows = vec![vec![
        Cell::text("both runs"),
        good(agreement.agrees(false), "agree", "do not agree"),
        Cell::text("each flow goes the same way through its states, goodputs within the tolerance, no run late"),
    ]];
    if !agreement.sequences.is_empty() {
        let count = |verdict| agreement.sequences.iter().filter(|sequence| sequence.verdict == verdict).count();
        let events =
            |side: usize| agreement.sequences.iter().map(|sequence| sequence.events[side].len()).sum::<usize>();
        let matched: usize = agreement.sequences.iter().map(SequenceAgreement::matched).sum();
        let detail = format!(
            "flows: {} the same, {} through the same states, {} in another order, {} different; events: {} matched, \
             {} only {left}, {} only {right}",
            count(Verdict::Same),
            count(Verdict::SameStates),
            count(Verdict::OtherOrder),
            count(Verdict::Differs),
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
    table(&["what", "verdict", "detail"], rows)
}

fn verdict(verdict: Verdict) -> Cell {
    match verdict {
        Verdict::Same => Cell::Verdict("good", "same".to_owned()),
        Verdict::SameStates => Cell::Verdict("good", "same states".to_owned()),
        Verdict::OtherOrder => Cell::Verdict("fair", "other order".to_owned()),
        Verdict::Differs => Cell::Verdict("bad", "different".to_owned()),
    }
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
    let mut out = table(&heads, agreement.sequences.iter().take(MOST_ROWS).map(row));
    more(&mut out, agreement.sequences.len());
    out
}

fn more(out: &mut String, count: usize) {
    if count > MOST_ROWS {
        let _ = writeln!(out, "<p class=\"note\">... and {} more.</p>", grouped((count - MOST_ROWS) as i64));
    }
}

/// A row of two aligned sequences: indices of the events, or how many equal ones are folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Row {
    Both(usize, usize),
    Only(Option<usize>, Option<usize>),
    Skipped(usize),
}

/// The rows of an alignment: long stretches of equal events are folded, differences stand beside each other.
fn rows(stretches: &[Stretch]) -> Vec<Row> {
    let (mut left, mut right) = (0, 0);
    let mut rows = Vec::new();
    let mut apart: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for stretch in stretches.iter().chain([&Stretch::Same(0)]) {
        match *stretch {
            Stretch::Left(count) => {
                apart[0].extend(left..left + count);
                left += count;
            }
            Stretch::Right(count) => {
                apart[1].extend(right..right + count);
                right += count;
            }
            Stretch::Same(count) => {
                let only = |index: usize| Row::Only(apart[0].get(index).copied(), apart[1].get(index).copied());
                rows.extend((0..apart[0].len().max(apart[1].len())).map(only));
                apart.iter_mut().for_each(Vec::clear);
                let folded = if count > 2 * KEPT + 1 { count - 2 * KEPT } else { 0 };
                let ahead = if folded > 0 { KEPT } else { count };
                rows.extend((0..ahead).map(|index| Row::Both(left + index, right + index)));
                if folded > 0 {
                    rows.push(Row::Skipped(folded));
                    rows.extend((ahead + folded..count).map(|index| Row::Both(left + index, right + index)));
                }
                (left, right) = (left + count, right + count);
            }
        }
    }
    rows
}

fn events(kinds: &[EventKind], sequence: &SequenceAgreement, labels: Sides<&str>) -> String {
    let rows = rows(&sequence.stretches);
    let [left, right] = labels.map(escape_markup);
    let mut out = format!(
        "<table class=\"events\">\n<thead><tr><th class=\"right\">s</th><th>{left}</th><th class=\"right\">s</th>\
         <th>{right}</th></tr></thead>\n<tbody>\n"
    );
    let cells = |out: &mut String, side: usize, index: Option<usize>| {
        let events: &[MachineEvent] = &sequence.events[side];
        let Some((event, first)) = index.and_then(|index| Some((events.get(index)?, events.first()?))) else {
            out.push_str("<td></td><td></td>");
            return;
        };
        let text = kinds.get(event.kind as usize).map(text).unwrap_or_default();
        let _ = write!(out, "<td>{}</td><td>{text}</td>", seconds(event.time.since(first.time)));
    };
    for row in rows.iter().take(MOST_EVENTS) {
        let (class, sides) = match *row {
            Row::Both(left, right) => ("", [Some(left), Some(right)]),
            Row::Only(left, right) => (" class=\"only\"", [left, right]),
            Row::Skipped(count) => {
                let count = grouped(count as i64);
                let _ = writeln!(out, "<tr class=\"skip\"><td colspan=\"4\">{count} equal events</td></tr>");
                continue;
            }
        };
        let _ = write!(out, "<tr{class}>");
        cells(&mut out, 0, sides[0]);
        cells(&mut out, 1, sides[1]);
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    if rows.len() > MOST_EVENTS {
        let _ =
            writeln!(out, "<p class=\"note\">... and {} more rows.</p>", grouped((rows.len() - MOST_EVENTS) as i64));
    }
    out
}

/// One event as markup: `open: packet → closed, row 3: send work, set_timer retry`.
fn text(kind: &EventKind) -> String {
    let mut text = format!("{}: {}", kind.state, kind.event);
    if kind.error {
        text.push_str(" (error)");
    }
    if kind.next != kind.state {
        let _ = write!(text, " → {}", kind.next);
    }
    if let Some(row) = kind.row {
        let _ = write!(text, ", row {row}");
    }
    let mut text = escape_markup(&text);
    if !kind.actions.is_empty() {
        let _ = write!(text, "<span class=\"zero\">: {}</span>", escape_markup(&kind.actions.join(", ")));
    }
    text
}

fn goodputs(agreement: &Agreement, [left, right]: Sides<&str>) -> String {
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
    let mut out = table(&heads, agreement.flows.iter().take(MOST_ROWS).map(row));
    more(&mut out, agreement.flows.len());
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stretches_are_folded_and_differences_stand_beside_each_other() {
        use Row::{Both, Only, Skipped};
        let found =
            rows(&[Stretch::Same(20), Stretch::Left(2), Stretch::Right(1), Stretch::Same(1), Stretch::Right(1)]);
        let mut expected: Vec<Row> = (0..4).map(|index| Both(index, index)).collect();
        expected.push(Skipped(12));
        expected.extend((16..20).map(|index| Both(index, index)));
        expected.extend([Only(Some(20), Some(20)), Only(Some(21), None), Both(22, 21), Only(None, Some(22))]);
        assert_eq!(found, expected);
        assert_eq!(rows(&[Stretch::Same(9)]).len(), 9, "folding one event would save nothing");
        assert_eq!(rows(&[]), []);
    }
}
