//! Rule D6 of the semantics page: another image in place of the running one.

mod support;

use support::*;
use weftwire_core::control::Done;
use weftwire_core::{Change, Command, ControlError, Function, Output};
use weftwire_engine::change_to;
use weftwire_image::*;

/// A machine that adds to a count at each packet, and tells it.
fn counting(step: i64, name: &str) -> Image {
    let mut image = machine();
    image.registers = vec![register(name)];
    let count = compute(Operator::Add, 0, Operand::Register(0), constant(step));
    image.rows.push(row(0, Event::Packet, vec![count, notify(Operand::Register(0))]));
    image
}

#[test]
fn another_image_takes_over_whether_it_was_prepared_or_not() {
    for prepared in [false, true] {
        let mut bench: Bench = Bench::new(counting(1, "count"));
        bench.packet(0, 1);
        let (change, ready) = change_to("reference", verified(counting(10, "count"))).unwrap();
        let command = if prepared { Command::prepared(3, change, ready) } else { Command::new(3, change) };
        bench.engine.control(at(1), command, &mut bench.out);
        let answered = bench.out.items().iter().any(|item| match item {
            Output::Answered(answer) => (answer.number, answer.at, &answer.result) == (3, at(1), &Ok(Done::Done)),
            _ => false,
        });
        assert!(answered, "{:?}", bench.out.items());
        assert_eq!(bench.out.take_leftovers().len(), 1, "the old one is freed elsewhere");
        bench.packet(2, 1);
        assert_eq!(bench.notices(), [1, 11]);
        assert_eq!(bench.counters().rows.iter().map(|(_, count)| *count).collect::<Vec<u64>>(), [1]);
    }
}

#[test]
fn an_image_in_which_flows_know_something_else_is_refused() {
    let mut bench: Bench = Bench::new(counting(1, "count"));
    bench.packet(0, 1);
    let (change, ready) = change_to("reference", verified(counting(10, "sum"))).unwrap();
    bench.engine.control(at(1), Command::prepared(1, change.clone(), ready), &mut bench.out);
    assert_eq!(bench.out.take_leftovers().len(), 0);
    let refused = bench.change(change).unwrap_err().to_string();
    assert!(refused.contains("its registers differ from those of the image that runs"), "{refused}");
    let refused = bench.change(Change::Image { document: "{}".into() }).unwrap_err();
    assert!(matches!(refused, ControlError::Unfit(_)), "{refused}");
    bench.packet(2, 1);
    assert_eq!(bench.notices(), [1, 2]);
}
