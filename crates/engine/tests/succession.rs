//! Another image in place of the running one, or the same with other parameters (semantics, rules D6 and D4).

use crate::support::*;
use weftwire_core::control::{Done, carry_out};
use weftwire_core::{Change, Command, ControlError, FlowId, Function, Output, Ports};
use weftwire_engine::parameter::apply;
use weftwire_engine::{EngineOptions, Executor, Runtime, change_to};
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

fn parameters(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A machine that tells its parameters, and an entry of a table.
fn telling() -> Image {
    let mut image = machine();
    image.registers = vec![Register { kind: RegisterType::U8, initial: 5, ..register("limit") }, register("entry")];
    image.tables = vec![Table { name: "steps".into(), base: 0, entries: vec![1] }];
    let look = Operation::Lookup { table: 0, register: 1, index: constant(0) };
    image.rows.push(row(0, Event::Packet, vec![look, notify(Operand::Register(0)), notify(Operand::Register(1))]));
    image
}

fn flows_to_come_begin_with_other_parameters<E: Executor>() {
    let mut bench = Bench::<E>::new(telling());
    bench.packet(0, 1);
    bench.change(Change::SetEntry { table: "steps".into(), index: 0, value: 2 }).expect("there is such an entry");
    let change = |list| Change::SetParameters { parameters: parameters(list) };
    assert_eq!(bench.change(change(&[("limit", "7")])), Ok(Done::Done));
    assert_eq!(bench.out.take_leftovers().len(), 1, "the old one is freed elsewhere");
    bench.packet(1, 1);
    bench.packet(2, 2);
    assert_eq!(bench.notices(), [5, 1, 5, 2, 7, 2], "tables stay as they are");
    assert_eq!(bench.counters().rows.iter().map(|(_, count)| *count).collect::<Vec<u64>>(), [3]);

    // What is wrong is told with what would be right, and nothing of the command is done.
    for (list, because) in [
        (&[("limit", "8"), ("limti", "9")][..], "has no register `limti` to be a parameter; did you mean `limit`?"),
        (&[("limit", "8"), ("limit", "256")], "parameter limit: `256` does not fit; write a number from 0 to 255"),
    ] {
        let refused = bench.change(change(list)).expect_err(because);
        assert!(refused.to_string().contains(because), "{refused}");
    }
    bench.packet(3, 3);
    assert_eq!(bench.notices()[6..], [7, 2]);

    // The state of the function is that of the image with these parameters.
    let state = bench.engine.snapshot_all(None);
    let load = |image| Runtime::<E>::new(image, Ports::default(), EngineOptions::default()).expect("it lacks nothing");
    assert!(load(verified(telling())).restore_all(&state).is_err());
    let image = apply(verified(telling()), &parameters(&[("limit", "7")])).expect("there is such a register");
    load(image).restore_all(&state).expect("it is of this image");
}

/// What was made ready elsewhere takes over; not if another image has taken over meanwhile.
fn parameters_are_made_ready_elsewhere<E: Executor>() {
    let mut bench = Bench::<E>::new(telling());
    let change = Change::SetParameters { parameters: parameters(&[("limit", "7")]) };
    let prepare = |bench: &Bench<E>| {
        let preparation = bench.engine.preparation(&change).expect("it takes long");
        preparation().expect("there is such a register")
    };
    let [first, second, late] = [0; 3].map(|_| prepare(&bench));
    let carry_out = |bench: &mut Bench<E>, prepared| {
        let command = Command::prepared(1, change.clone(), prepared);
        let done = carry_out(&mut bench.engine, at(1), command, &mut bench.out);
        assert_eq!((done, bench.out.take_leftovers().len()), (Ok(Done::Done), 1));
    };
    // Both were made from what ran then: the second finds that it is of an image that runs no more.
    carry_out(&mut bench, first);
    carry_out(&mut bench, second);
    bench.packet(2, 1);
    bench
        .change(Change::SetParameters { parameters: parameters(&[("limit", "9"), ("entry", "3")]) })
        .expect("there are");
    bench.out.take_leftovers();
    carry_out(&mut bench, late);
    bench.packet(3, 2);
    assert_eq!(bench.notices(), [7, 1, 7, 1]);
    let state = bench.engine.snapshot_all(None);
    let image = apply(verified(telling()), &parameters(&[("limit", "7"), ("entry", "3")])).expect("there are");
    let load = Runtime::<E>::new(image, Ports::default(), EngineOptions::default());
    load.expect("it lacks nothing").restore_all(&state).expect("what came later stays");

    let preparation = bench.engine.preparation(&Change::SetParameters { parameters: parameters(&[("limti", "1")]) });
    let refused = preparation.expect("it takes long")().map(drop).expect_err("there is no such register");
    assert!(refused.to_string().contains("did you mean `limit`?"), "{refused}");
    assert!(bench.engine.preparation(&Change::Delete { flow: FlowId(1) }).is_none());
}

on_every_engine! { flows_to_come_begin_with_other_parameters, parameters_are_made_ready_elsewhere }
