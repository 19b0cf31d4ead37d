//! Texts that are wrong: what is said, and where.

use proptest::prelude::*;
use weftwire_pace::{Setting, parse};

/// The text, the words that are marked, and a part of what is said.
const WRONG: [(&str, &str, &str); 34] = [
    ("", "", "begins with a name"),
    ("7", "7", "begins with a name"),
    ("bbrr(3)", "bbrr", "`bbrr` is no shape"),
    ("Q(t) = 1", "Q", "`Q` is no kind of formula"),
    ("R(n) = 1 pkt/s", "n", "the variable of this formula is `t`"),
    ("R(t) = ", "", "expected a value, found the end"),
    ("R(t) = 10", "10", "must be a rate, and is a plain number"),
    ("R(t) = 10 s", "10 s", "must be a rate, and is a time"),
    ("R(t) = 10 Mbit/s", "10 Mbit/s", "depends on their size"),
    ("N(t) = t", "t", "must be a number of packets, and is a time"),
    ("T(n) = log2(n)", "log2(n)", "must be a time, and is a plain number"),
    ("R(t) = 10 pkt/s + 3", "10 pkt/s + 3", "packets per time and a plain number don't go together"),
    ("N(t) = 2^t", "t", "an exponent is a plain number, this is a time"),
    ("N(t) = t^(t/s)", "(t/s)", "whole exponent"),
    ("N(t) = exp(t)", "t", "`exp` takes a plain number, this is a time"),
    ("N(t) = sqrt(t)/s", "t", "has no such root"),
    ("R(t) = 1 pkt/RTT + 2 pkt/s", "s", "the round trip is not known"),
    ("R(t) = 1 pkt/s @", "@", "`@` means nothing"),
    ("R(t) = 1.2.3 pkt/s", ".3", "can't follow here"),
    ("R(t) = . pkt/s", ".", "`.` is no number"),
    ("R(t) = 1e999 pkt/s", "1e999", "is no number"),
    ("R(t) = (1 pkt/s", "", "expected `)` to close the parenthesis"),
    ("R(t) = 1 pkt/s)", ")", "`)` can't follow here"),
    ("R(t) = x pkt/s", "x", "`x` is not known"),
    ("R(t) = sinus(t) pkt/s", "sinus", "`sinus` is no function"),
    ("N(t) = min(1)", "min(1)", "can't have 1 argument"),
    ("N(t) = if(t, 1, 2)", ",", "expected a comparison"),
    ("N(t) = if(t < 1, 1, 2)", "t < 1", "a time and a plain number don't go together"),
    ("constant", "constant", "needs the argument `rate`"),
    ("constant(1 pkt/s, 2)", "2", "at most 1 argument"),
    ("constant(-1 pkt/s)", "-1 pkt/s", "must be more than 0"),
    ("linear(beginning = 1)", "beginning", "has no argument `beginning`"),
    ("linear(1, start = 2)", "start", "given twice"),
    ("cubic(window = 10, rtt = 1 RTT)", "1 RTT", "its round trip is in seconds"),
];

#[test]
fn a_wrong_text_is_marked_where_it_is_wrong() {
    for (text, marked, message) in WRONG {
        let fault = parse(text, &Setting::default()).expect_err(text);
        let said = fault.to_text(text);
        assert!(said.contains(message), "{text:?} should say `{message}`:\n{said}");
        assert_eq!(&text[fault.span.clone()], marked, "{text:?}:\n{said}");
    }
}

#[test]
fn a_fault_is_shown_with_marks_and_help() {
    let text = "R(t) = 10 pkt/s + 3 ms";
    let fault = parse(text, &Setting::default()).expect_err("units differ");
    let shown = "packets per time and a time don't go together\n  R(t) = 10 pkt/s + 3 ms\n         ^^^^^^^^^^^^^^^\n  \
                 help: give both sides the same unit";
    assert_eq!(fault.to_text(text), shown);
}

#[test]
fn hostile_depth_and_length_are_refused() {
    for text in ["(".repeat(4000), format!("R(t) = {}1", "-".repeat(3000)), "R(t) = 1".repeat(2000), "2^".repeat(900)] {
        let text = format!("R(t) = {text}");
        assert!(parse(&text, &Setting::default()).is_err());
    }
}

proptest! {
    #[test]
    fn any_text_comes_to_an_envelope_or_a_fault_inside_it(text in "[RNT(tn)= 0-9.a-z+*/^,<_µ-]{0,60}|\\PC{0,40}") {
        for setting in [Setting::default(), Setting { round_trip: Some(0.1), packet_size: Some(1500.0) }] {
            if let Err(fault) = parse(&text, &setting) {
                prop_assert!(text.get(fault.span.clone()).is_some(), "{fault:?}");
                prop_assert!(!fault.to_text(&text).is_empty());
            }
        }
    }
}
