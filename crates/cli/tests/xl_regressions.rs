//! What the compiler once got wrong, found by `xl_oracle`: one small program each, and what it must notify.

use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_lang::{Dialect, compile};

/// The notices' values when one TCP packet arrives and 10 ms pass. The source is the declarations and one handler.
fn notices(declarations: &str, handler: &str) -> Vec<i64> {
    let source = format!(
        "register wide: i64 = 4294967301; register narrow: u8; register sequence: seq32 = 4294967295;\n\
         {declarations}\ninitial state only {{ on packet {{ {handler} }} on late {{ notify late(late.s); }} }}\n\
         timer late(s: seq32);"
    );
    let compilation = compile("program.xl", Dialect::Xl, &source.as_str());
    let image = compilation.image.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
    let image = image.verify().expect("the compiler's images verify");
    let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("it is verified");
    let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
    let tcp = TcpFields { source_port: 4000, destination_port: 80, ..TcpFields::default() };
    let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).tcp(&tcp, &[]).finish().expect("a small frame");
    let mut out = Outbox::new();
    engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
    engine.fire(Time::from_nanoseconds(10_000_000), &mut out);
    let values = out.items().iter().filter_map(|item| match item {
        Output::Notify { value, .. } => Some(*value),
        _ => None,
    });
    values.collect()
}

#[test]
fn a_sequence_number_wraps_on_its_way_into_a_wide_register() {
    assert_eq!(notices("", "wide = sequence + 1; notify seen(wide);"), [0]);
}

#[test]
fn joining_nothing_to_a_sequence_number_leaves_it_one() {
    assert_eq!(notices("", "notify seen((sequence + 1) | 0); notify seen((sequence + 1) >> 0);"), [0, 0]);
    assert_eq!(notices("", "notify seen(seq32(0) + wide); notify seen(wide + seq32(0));"), [5, 5]);
}

#[test]
fn the_least_of_sequence_numbers_is_one() {
    assert_eq!(
        notices("", "notify seen(min(sequence, -2)); notify seen(max(sequence, 4294967298));"),
        [4_294_967_294, 2]
    );
}

#[test]
fn a_declared_type_holds_no_more_in_a_local() {
    assert_eq!(notices("", "let x: u8 = wide + 255; notify seen(x);"), [4]);
    let equal = "let x: seq32 = wide; sequence = 5; if x == sequence { notify seen(1); } else { notify seen(0); }";
    assert_eq!(notices("", equal), [1]);
}

#[test]
fn a_declared_type_holds_no_more_in_a_parameter() {
    assert_eq!(notices("action show(x: u8) { notify seen(x); }", "show(wide + 255);"), [4]);
}

#[test]
fn a_declared_type_holds_no_more_in_a_timer() {
    assert_eq!(notices("", "set late(wide) in 1ms;"), [5]);
    assert!(notices("", "set late(5) in 1ms; cancel late where s == wide;").is_empty());
}

#[test]
fn a_condition_does_not_see_parameters_of_the_action_that_tests_it() {
    let declarations = "condition zero = narrow == 0;\n\
                        action test(narrow: u8) { if zero { notify seen(narrow); } }";
    assert_eq!(notices(declarations, "test(7);"), [7]);
}

#[test]
fn a_checksum_is_tested_behind_the_send_that_makes_it_right() {
    let handler = "let before = tcp.checksum; tcp.window = 1; send packet to 2;\n\
                   if tcp.checksum == before { notify seen(0); } else { notify seen(1); }";
    assert_eq!(notices("", handler), [1]);
}

#[test]
fn a_template_stored_in_a_slot_reads_what_was_there() {
    let handler = "tcp.sequence = 8; store packet in kept;\n\
                   store answer { tcp.sequence = kept.tcp.sequence + 1; } in kept; notify seen(kept.tcp.sequence);";
    assert_eq!(notices("slot kept; template answer: tcp { }", handler), [9]);
}
