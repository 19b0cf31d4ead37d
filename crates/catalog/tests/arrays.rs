//! Programs with arrays beside an interpreter of their statements: what is tested, kept and changed in which order must not be
//! seen from outside, however the compiler spreads it over rows.

use proptest::prelude::*;
use std::fmt::Write;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_lang::{Dialect, compile};

/// The elements of the arrays `bytes` (of `u8`) and `wide` (of `i64`).
const SIZES: [usize; 2] = [3, 4];
const NAMES: [&str; 2] = ["bytes", "wide"];

#[derive(Clone, Debug)]
enum Value {
    Constant(i8),
    /// The register `n`.
    Register,
    Element(usize, Box<Value>),
    Sum(Box<Value>, Box<Value>),
}

#[derive(Clone, Debug)]
enum Step {
    Set {
        array: usize,
        index: Value,
        value: Value,
        add: bool,
    },
    SetRegister(Value),
    /// A local, told behind these steps.
    Keep(Value, Vec<Step>),
    Tell(Value),
    If(Value, i8, Vec<Step>, Vec<Step>),
    Repeat(u8, Value, Vec<Step>),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![(-6_i8..7).prop_map(Value::Constant), Just(Value::Register)];
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            3 => (0..2_usize, inner.clone()).prop_map(|(array, index)| Value::Element(array, index.into())),
            1 => (inner.clone(), inner).prop_map(|(left, right)| Value::Sum(left.into(), right.into())),
        ]
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let leaf = prop_oneof![
        4 => (0..2_usize, value(), value(), any::<bool>())
            .prop_map(|(array, index, value, add)| Step::Set { array, index, value, add }),
        1 => value().prop_map(Step::SetRegister),
        2 => value().prop_map(Step::Tell),
    ];
    let step = leaf.prop_recursive(2, 10, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (value(), some()).prop_map(|(value, steps)| Step::Keep(value, steps)),
            (value(), -6_i8..7, some(), some()).prop_map(|(value, than, yes, no)| Step::If(value, than, yes, no)),
            (1..4_u8, value(), some()).prop_map(|(most, value, steps)| Step::Repeat(most, value, steps)),
        ]
    });
    prop::collection::vec(step, 1..8)
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Constant(constant) => format!("({constant})"),
            Value::Register => "n".into(),
            Value::Element(array, index) => format!("{}[{}]", NAMES[*array], index.text()),
            Value::Sum(left, right) => format!("({} + {})", left.text(), right.text()),
        }
    }
}

/// The steps as statements; locals are numbered on.
fn source(steps: &[Step], locals: &mut usize) -> String {
    let mut text = String::new();
    for step in steps {
        let line = match step {
            Step::Set { array, index, value, add } => {
                let sign = if *add { "+=" } else { "=" };
                // Names of types are conversions, too: all else would be a constant too large.
                let value = if *array == 0 { format!("u8({})", value.text()) } else { value.text() };
                format!("{}[{}] {sign} {value};", NAMES[*array], index.text())
            }
            Step::SetRegister(value) => format!("n = {};", value.text()),
            Step::Keep(value, steps) => {
                *locals += 1;
                let name = format!("l{locals}");
                let inner = source(steps, locals);
                format!("let {name} = {};\n{inner}notify told({name});", value.text())
            }
            Step::Tell(value) => format!("notify told({});", value.text()),
            Step::If(value, than, yes, no) => {
                let (yes, no) = (source(yes, locals), source(no, locals));
                format!("if {} + n - n < {than} {{\n{yes}}} else {{\n{no}}}", value.text())
            }
            Step::Repeat(most, value, steps) => {
                format!("repeat {most} while {} + n - n != 3 {{\n{}}}", value.text(), source(steps, locals))
            }
        };
        writeln!(text, "{line}").expect("a String takes all text");
    }
    text
}

/// What the statements mean.
#[derive(Default)]
struct Interpreter {
    bytes: [i64; SIZES[0]],
    wide: [i64; SIZES[1]],
    n: i64,
    told: Vec<i64>,
}

impl Interpreter {
    fn element(&mut self, array: usize, index: i64) -> &mut i64 {
        let place = index.rem_euclid(SIZES[array] as i64) as usize;
        if array == 0 { &mut self.bytes[place] } else { &mut self.wide[place] }
    }

    fn value(&mut self, value: &Value) -> i64 {
        match value {
            Value::Constant(constant) => i64::from(*constant),
            Value::Register => self.n,
            Value::Element(array, index) => {
                let index = self.value(index);
                *self.element(*array, index)
            }
            Value::Sum(left, right) => self.value(left).wrapping_add(self.value(right)),
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Set { array, index, value, add } => {
                    let (index, mut new) = (self.value(index), self.value(value));
                    if *array == 0 {
                        new &= 0xff;
                    }
                    let element = self.element(*array, index);
                    *element = if *add { element.wrapping_add(new) } else { new };
                    if *array == 0 {
                        *element &= 0xff;
                    }
                }
                Step::SetRegister(value) => self.n = self.value(value),
                Step::Keep(value, steps) => {
                    let kept = self.value(value);
                    self.run(steps);
                    self.told.push(kept);
                }
                Step::Tell(value) => {
                    let value = self.value(value);
                    self.told.push(value);
                }
                Step::If(value, than, yes, no) => {
                    let branch = if self.value(value) < i64::from(*than) { yes } else { no };
                    self.run(branch);
                }
                Step::Repeat(most, value, steps) => {
                    for _ in 0..*most {
                        if self.value(value) == 3 {
                            break;
                        }
                        self.run(steps);
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn compiled_programs_do_what_their_statements_say(steps in steps()) {
        let all: Vec<Value> = (0..2)
            .flat_map(|array| (0..SIZES[array]).map(move |index| Value::Element(array, Box::new(Value::Constant(index as i8)))))
            .collect();
        let steps = steps.into_iter().chain(all.into_iter().map(Step::Tell)).collect::<Vec<_>>();
        let source = format!(
            "machine m; register bytes[3]: u8; register wide[4]: i64; register n: i64;\n\
             initial state s {{ on packet {{\n{}}} }}\n",
            source(&steps, &mut 0)
        );
        let compilation = compile("m.xl", Dialect::Xl, &source.as_str());
        let Some(image) = compilation.image else { panic!("{:?}\n{source}", compilation.diagnostics) };
        let image = image.verify().expect("the compiler's images verify");
        let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
        let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("it is verified");
        let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
        let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(1, 2).finish().expect("a small frame");
        let (mut out, mut interpreter) = (Outbox::new(), Interpreter::default());
        // Twice: the second time begins with what the first has left.
        for _ in 0..2 {
            engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
            interpreter.run(&steps);
        }
        let told = out.items().iter().filter_map(|item| match item {
            Output::Notify { value, .. } => Some(*value),
            _ => None,
        });
        prop_assert_eq!(told.collect::<Vec<_>>(), interpreter.told, "{}", source);
    }
}
