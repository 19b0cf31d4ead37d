//! Sequence numbers of all widths beside the arithmetic of RFC 1982.

use proptest::prelude::*;
use std::cell::LazyCell;
use weftwire_catalog::parameter::apply;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};

const WIDTHS: [u32; 4] = [16, 24, 32, 64];

thread_local! {
    /// A machine for each width: it tells what it makes of two sequence numbers and a number.
    static MACHINES: LazyCell<Vec<VerifiedImage>> = LazyCell::new(|| WIDTHS.map(machine).into());
}

fn machine(width: u32) -> VerifiedImage {
    let source = format!(
        "machine m; register a, b: seq{width}; register n: i64;\n\
         initial state s {{ on packet {{\n\
         notify is(u8(a < b)); notify is(u8(a <= b)); notify is(u8(a > b)); notify is(u8(a >= b)); notify is(u8(a == b));\n\
         if a < b and not a >= b {{ notify is(1); }} else {{ notify is(0); }}\n\
         notify is(a - b); notify is(a + n); notify is(n + a); notify is(a - n);\n\
         notify is(min(a, b)); notify is(max(a, b)); notify is(u8(a + n < n)); notify is(seq{width}(n)); }} }}\n"
    );
    let compilation = compile("m.xl", Dialect::Xl, &source.as_str());
    compilation.image.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics)).verify().expect("a good image")
}

fn told(width: usize, a: u64, b: u64, n: i64) -> Vec<i64> {
    let parameters = [("a", a.to_string()), ("b", b.to_string()), ("n", n.to_string())];
    let image = MACHINES.with(|machines| machines[width].clone());
    let image = apply(image, &parameters.map(|(name, value)| (name.to_owned(), value))).expect("they fit");
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("it is verified");
    let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
    let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(1, 2).finish().expect("a small frame");
    let mut out = Outbox::new();
    engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
    let values = out.items().iter().filter_map(|item| match item {
        Output::Notify { value, .. } => Some(*value),
        _ => None,
    });
    values.collect()
}

/// The same by way of whole numbers.
fn expected(width: u32, a: u64, b: u64, n: i64) -> Vec<i64> {
    let modulus = 1_i128 << width;
    let (a, b, n) = (i128::from(a), i128::from(b), i128::from(n));
    let cut = |value: i128| value.rem_euclid(modulus);
    let signed = |value: i128| if cut(value) < modulus / 2 { cut(value) } else { cut(value) - modulus };
    let before = |one: i128, other: i128| signed(one - other) < 0;
    let (less, greater) = (before(a, b), before(b, a));
    let (at_most, at_least) = (a == b || less, a == b || greater);
    let is = |truth: bool| i128::from(truth);
    let all = [
        is(less),
        is(at_most),
        is(greater),
        is(at_least),
        is(a == b),
        is(less && !at_least),
        signed(a - b),
        cut(a + n),
        cut(n + a),
        cut(a - n),
        if at_most { a } else { b },
        if at_most { b } else { a },
        is(before(cut(a + n), cut(n))),
        cut(n),
    ];
    all.iter().map(|value| *value as i64).collect()
}

proptest! {
    #[test]
    fn they_are_compared_and_moved_modulo_their_width(
        (width, a, b) in (0..WIDTHS.len()).prop_flat_map(|width| {
            let all = u64::MAX >> (64 - WIDTHS[width]);
            let number = (0..=all, -2_i64..3, any::<bool>());
            // Near one another, half the circle apart, or anywhere.
            (Just(width), 0..=all, number).prop_map(move |(width, a, (other, near, close))| {
                let half = if near == 2 { (all >> 1) + 1 } else { 0 };
                let b = if close { a.wrapping_add(near as u64).wrapping_add(half) & all } else { other };
                (width, a, b)
            })
        }),
        n in prop_oneof![-3_i64..4, any::<i64>()],
    ) {
        prop_assert_eq!(told(width, a, b, n), expected(WIDTHS[width], a, b, n));
    }
}
