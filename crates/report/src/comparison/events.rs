//! The events of a flow of a function on both sides, beside each other.

use crate::agreement::{EventKind, MachineEvent, Run, SequenceAgreement, Sides, Stretch};
use std::fmt::Write as _;
use weftwire_core::trace::TraceRecord;
use weftwire_draw::escape_markup;
use weftwire_draw::{grouped, seconds};

/// Rows of a table.
const MOST_EVENTS: usize = 300;
/// Longer stretches of equal events are folded; so many stay at each end.
const KEPT: usize = 4;

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

/// The events of one flow on both sides.
pub(super) fn table(
    kinds: &[EventKind],
    sequence: &SequenceAgreement,
    runs: Sides<&Run>,
    labels: Sides<&str>,
) -> String {
    let traces = runs.map(|run| {
        let of_node = run.traces.iter().find(|(node, _)| *node == sequence.node);
        of_node.map_or(&[][..], |(_, records)| records.as_slice())
    });
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
        let kind = kinds.get(event.kind as usize);
        let text = kind.map(|kind| text(kind, traces[side].get(event.record))).unwrap_or_default();
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

/// One event as markup: `open: packet → closed, line 3 of rules.xl: send work (60 bytes) to port 1, set_timer retry in 200 ns`.
fn text(kind: &EventKind, record: Option<&TraceRecord>) -> String {
    let mut text = format!("{}: {}", kind.state, kind.event);
    if kind.error {
        text.push_str(" (error)");
    }
    if kind.next != kind.state {
        let _ = write!(text, " → {}", kind.next);
    }
    let _ = match (record.and_then(TraceRecord::place), kind.row) {
        (Some(place), _) => write!(text, ", {place}"),
        (None, Some(row)) => write!(text, ", row {row}"),
        (None, None) => Ok(()),
    };
    let mut text = escape_markup(&text);
    let actions = record.map_or_else(Vec::new, |record| actions(&record.actions));
    if !actions.is_empty() {
        let _ = write!(text, "<span class=\"zero\">: {}</span>", escape_markup(&actions.join(", ")));
    }
    text
}

/// The actions as a reader of the source knows them: what the compiler computes ahead, into registers of its own, stands
/// where it is used.
fn actions(traced: &[String]) -> Vec<String> {
    let mut ahead: Vec<(&str, String)> = Vec::new();
    let mut shown = Vec::new();
    for action in traced {
        let expression = |text: &str| {
            // The newest first: a register may be used twice.
            ahead.iter().rev().fold(text.to_owned(), |text, (name, value)| put(&text, name, value))
        };
        match action.split_once(" := ") {
            Some((name, value)) if is_scratch(name) => {
                let value = expression(value);
                ahead.retain(|(known, _)| *known != name);
                ahead.push((name, value));
            }
            Some((name, value)) => shown.push(format!("{name} := {}", expression(value))),
            None => shown.push(expression(action)),
        }
    }
    shown
}

/// Whether the compiler has named it: `scratch_1`, with underscores behind if the program has one of that name.
fn is_scratch(name: &str) -> bool {
    let digits = name.strip_prefix("scratch_").map(|rest| rest.trim_end_matches('_'));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Replaces each `NAME (7)` by `(VALUE = 7)`; a value that is one known operand, `count (7)`, needs no more than itself.
fn put(text: &str, name: &str, value: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        let starts = !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.');
        out.push_str(before);
        let number = behind.strip_prefix(" (").and_then(|behind| behind.split_once(')'));
        match number.filter(|_| starts) {
            Some((number, behind)) => {
                let known = format!("({number})");
                let simple =
                    value == number || value.strip_suffix(&known).is_some_and(|name| !name.trim_end().contains(' '));
                match simple {
                    true => out.push_str(value),
                    false => _ = write!(out, "({value} = {number})"),
                }
                rest = behind;
            }
            None => {
                out.push_str(name);
                rest = behind;
            }
        }
    }
    out + rest
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

    #[test]
    fn what_the_compiler_computes_ahead_stands_where_it_is_used() {
        let traced = |list: &[&str]| actions(&list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let shown = traced(&[
            "scratch_1 := rto (200) << 1",
            "scratch_2 := scratch_1 (400) min 300",
            "set_timer retry in scratch_2 (300) ns",
            "scratch_1 := count (7)",
            "total := scratch_1 (7) + 1",
            "work.tcp.window := scratch_10 (3)",
        ]);
        let expected = [
            "set_timer retry in ((rto (200) << 1 = 400) min 300 = 300) ns",
            "total := count (7) + 1",
            "work.tcp.window := scratch_10 (3)",
        ];
        assert_eq!(shown, expected);
        assert_eq!(traced(&["scratch_pad := 3", "my_scratch_1 := scratch_1 := 1"]).len(), 2, "the program's own");
        assert!(is_scratch("scratch_12__") && !is_scratch("scratch_") && !is_scratch("scratch_1a"));
    }
}
