//! An image as people see it: the rule table in words and the state diagram.

mod common;

use common::sample;
use weftwire_draw::escape_markup;
use weftwire_explain::{Form, explain, states};
use weftwire_image::*;

#[test]
fn the_rule_table_reads_as_statements() {
    let text = explain(&sample(), Form::Text);
    for line in [
        "State CLOSED (initial)",
        "SYN_SENT: timer retransmit, continued (#0)",
        "At most 100 flows (the one idle for longest in FIN_WAIT makes room), 4 timers each; they expire after 60 s \
         without a packet.",
        "send syn to port 1",
        "set timer retransmit in rto with sequence = next",
    ] {
        assert!(text.contains(line), "`{line}` is missing in\n{text}");
    }
}

#[test]
fn temporaries_stand_for_their_expressions_only_while_those_hold() {
    let text = explain(&sample(), Form::Text);
    assert!(text.contains("tcp.acknowledgment == next + 1"), "{text}");
    assert!(text.contains("retries < 5"), "{text}");
    assert!(text.contains("retries >= 5"), "a negated test is said directly\n{text}");
    // In row 1 `next` is written before the temporary is read: the row must compute it by name first.
    let row = text.lines().skip_while(|line| !line.contains("t0 := next + 1"));
    let statements: Vec<&str> = row.take(4).map(str::trim).collect();
    assert!(statements[1].contains("next := tcp.acknowledgment"), "{statements:?}");
    assert!(statements[2].contains("retries := max(t0, retries)"), "{statements:?}");
}

#[test]
fn values_of_a_timer_keep_their_names_in_internal_events() {
    assert!(explain(&sample(), Form::Text).contains("notify failed(sequence)"));
}

#[test]
fn markdown_and_html_hold_the_same_rows() {
    let markdown = explain(&sample(), Form::Markdown);
    assert!(markdown.contains("| row | line | when | do | next |"));
    assert!(markdown.contains("-\\> SYN\\_SENT"), "{markdown}");
    let html = explain(&sample(), Form::Html);
    assert!(html.contains("<td class=\"next\">-&gt; SYN_SENT</td>"), "{html}");
    assert_eq!(html.matches("<tr>").count(), html.matches("</tr>").count());
}

#[test]
fn an_image_that_names_what_it_has_not_got_is_still_shown() {
    let mut image = sample();
    image.rows[0].next = Some(77);
    image.rows[0].operations.push(Operation::Send { packet: PacketRef::Slot(9), port: Operand::Register(99) });
    image.rows[1].when.push((99, true));
    let text = explain(&image, Form::Text);
    assert!(text.contains("-> state 77") && text.contains("send slot 9 to port register 99"), "{text}");
    states(&image).svg("x");
}

/// One decision behind another has as many ways through it as there are numbers of so many bits.
#[test]
fn long_chains_of_decisions_are_shown_at_once() {
    let mut image = sample();
    let first = image.rows.iter().find(|row| row.raise.is_some()).expect("a chain").clone();
    let condition = image.rows.iter().find_map(|row| row.when.first().copied()).expect("a condition");
    image.internal_events = 500;
    image.rows.retain(|row| !(row.state == first.state && matches!(row.event, Event::Internal(_))));
    for number in 0..499 {
        for when in [vec![condition], Vec::new()] {
            image.rows.push(Row { event: Event::Internal(number), when, raise: Some(number + 1), ..first.clone() });
        }
    }
    assert!(explain(&image, Form::Text).contains("(#498)"));
    assert!(!states(&image).svg("x").is_empty());
}

#[test]
fn the_diagram_follows_chains_of_internal_events() {
    let dot = states(&sample()).dot("x");
    assert!(dot.contains("s1 -> s1 [label=\"timer retransmit\\nretries < 5\"];"), "{dot}");
    assert!(dot.contains("s1 -> s0 [label=\"timer retransmit\\nretries >= 5\"];"), "{dot}");
    assert!(dot.contains("s1 -> end "), "{dot}");
    let mermaid = states(&sample()).mermaid();
    assert!(mermaid.contains("s3 --> [*]: packet<br/>tcp.acknowledgment at or after next"), "{mermaid}");
}

#[test]
fn the_picture_is_the_same_every_time_and_well_formed() {
    let mut image = sample();
    image.states[0].name = "<CLOSED> & \"quiet\"".into();
    let svg = states(&image).svg("x");
    assert_eq!(svg, states(&image).svg("x"));
    well_formed(&svg);
    assert!(!svg.contains("<CLOSED>"));
}

#[test]
fn labels_and_states_do_not_overlap() {
    // Every state leads to every other: the worst a diagram of this size can be.
    let mut image = sample();
    image.rows.clear();
    for from in 0..4 {
        for to in 0..4 {
            image.rows.push(Row {
                state: from,
                event: Event::Packet,
                when: vec![(to, true)],
                operations: vec![],
                next: Some(to),
                raise: None,
                line: 0,
                source: 0,
            });
        }
    }
    let svg = states(&image).svg("x");
    let labels: Vec<(f64, f64)> =
        svg.split("<text class=\"event\" ").skip(1).map(|text| (attribute(text, "x"), attribute(text, "y"))).collect();
    assert_eq!(labels.len(), 16);
    for (index, a) in labels.iter().enumerate() {
        for b in &labels[index + 1..] {
            assert!((a.0 - b.0).abs() > 40.0 || (a.1 - b.1).abs() >= 14.0, "{a:?} lies on {b:?}");
        }
    }
}

fn attribute(text: &str, name: &str) -> f64 {
    let start = text.find(&format!("{name}=\"")).expect("the attribute is written") + name.len() + 2;
    text[start..].split('"').next().expect("split yields one part").parse().expect("a number")
}

/// Every tag is closed in order, and text holds no bare markup.
fn well_formed(svg: &str) {
    let mut open: Vec<String> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("every tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag has a name").to_owned());
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn markup_is_escaped() {
    assert_eq!(escape_markup("<a href=\"x\">&'\u{1}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}");
}
