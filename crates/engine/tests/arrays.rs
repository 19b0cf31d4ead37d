//! Arrays (rule V16) beside a plain list of numbers.

use crate::support::*;
use proptest::prelude::*;
use weftwire_engine::Executor;
use weftwire_image::*;

const FIRST: u16 = 2;

/// Whatever is written and read in whatever order, the array is the list, and the registers around it stay as they are.
fn an_array_is_a_list<E: Executor>() {
    let kinds = prop::sample::select(&RegisterType::ALL[..]);
    let index = prop_oneof![-40_i64..40, any::<i64>()];
    let accesses = prop::collection::vec((index, prop::option::of(any::<i64>())), 1..60);
    proptest!(|(count in 1_u16..20, kind in kinds, accesses in accesses)| {
        let mut image = machine();
        image.registers = vec![register("read"), register("in front")];
        image.registers.extend((0..count).map(|index| Register { kind, ..register(&format!("a[{index}]")) }));
        image.registers.push(register("behind"));
        let mut list = vec![0; usize::from(count)];
        let (mut operations, mut expected) = (Vec::new(), Vec::new());
        for (index, written) in accesses {
            let place = (i128::from(index) % i128::from(count) + i128::from(count)) % i128::from(count);
            let index = constant(index);
            if let Some(value) = written {
                list[place as usize] = kind.cut(value);
                operations.push(Operation::SetElement { first: FIRST, count, index, value: constant(value) });
            } else {
                expected.push(list[place as usize]);
                operations.push(Operation::Element { register: 0, first: FIRST, count, index });
                operations.push(notify(Operand::Register(0)));
            }
        }
        let around = [FIRST - 1, FIRST + count];
        operations.extend((FIRST..FIRST + count).chain(around).map(|register| notify(Operand::Register(register))));
        expected.extend(list.into_iter().chain([0, 0]));
        image.rows.push(row(0, Event::Packet, operations));
        let mut bench = Bench::<E>::new(image);
        bench.packet(0, 1);
        prop_assert_eq!(bench.notices(), expected);
    });
}

on_every_engine! { an_array_is_a_list }
