//! Programs that set, cancel, move and ask timers beside a list of settings: rules E3, E14, E16, E21 and E22 in the plainest way.

use proptest::prelude::*;
use std::fmt::Write;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_lang::{Dialect, compile};

/// Settings that may be pending.
const MOST: usize = 6;
/// Events of timers that do more than tell.
const ROUNDS: i64 = 8;

/// A test of what a setting carries.
#[derive(Clone, Debug)]
enum Test {
    /// Of the value `end`, a sequence number of 16 bits.
    End(&'static str, u16),
    /// Of the value `at`, a number.
    At(&'static str, i8),
    /// The value `last`, a truth value.
    Last(bool),
}

#[derive(Clone, Debug)]
enum Step {
    Set { delay: u8, end: u16, at: i8, last: bool },
    SetOther(u8),
    Cancel(Vec<Test>),
    Move(Vec<Test>, u8),
    Fire(Vec<Test>),
    Tell(&'static str, &'static str, Vec<Test>),
}

/// What a setting carries.
#[derive(Clone, Copy, Debug)]
struct Setting {
    due: i64,
    /// Of the other timer, which carries nothing.
    other: bool,
    end: u16,
    at: i64,
    last: bool,
}

fn tests() -> impl Strategy<Value = Vec<Test>> {
    let sign = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let test = prop_oneof![
        (sign.clone(), end()).prop_map(|(sign, than)| Test::End(sign, than)),
        (sign, -3_i8..4).prop_map(|(sign, than)| Test::At(sign, than)),
        any::<bool>().prop_map(Test::Last),
    ];
    prop::collection::vec(test, 0..3)
}

/// Numbers on both sides of where they begin anew, and half the circle away.
fn end() -> impl Strategy<Value = u16> {
    prop::sample::select(vec![0xfff0, 0xfffe, 0, 1, 9, 0x7fff, 0x8000])
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let what = prop::sample::select(vec!["count", "first", "last", "least", "greatest"]);
    let value = prop::sample::select(vec!["end", "at"]);
    let step = prop_oneof![
        4 => (0..9_u8, end(), -3_i8..4, any::<bool>()).prop_map(|(delay, end, at, last)| Step::Set { delay, end, at, last }),
        1 => (0..9_u8).prop_map(Step::SetOther),
        1 => tests().prop_map(Step::Cancel),
        2 => (tests(), 0..9_u8).prop_map(|(tests, delay)| Step::Move(tests, delay)),
        1 => tests().prop_map(Step::Fire),
        2 => (what, value, tests()).prop_map(|(what, value, tests)| Step::Tell(what, value, tests)),
    ];
    prop::collection::vec(step, 0..most)
}

impl Test {
    fn text(&self) -> String {
        match self {
            Test::End(sign, than) => format!("end {sign} {than}"),
            Test::At(sign, than) => format!("at {sign} {than}"),
            Test::Last(true) => "last".into(),
            Test::Last(false) => "not last".into(),
        }
    }

    fn passes(&self, setting: &Setting) -> bool {
        let signed = |sign, distance: i64| match sign {
            "<" => distance < 0,
            "<=" => distance <= 0,
            ">" => distance > 0,
            ">=" => distance >= 0,
            "==" => distance == 0,
            _ => distance != 0,
        };
        match *self {
            // At half the circle each is before the other (rule V6).
            Test::End(sign @ (">" | ">="), than) => {
                let sign = if sign == ">" { "<" } else { "<=" };
                signed(sign, than.wrapping_sub(setting.end).cast_signed().into())
            }
            Test::End(sign, than) => signed(sign, setting.end.wrapping_sub(than).cast_signed().into()),
            Test::At(sign, than) => signed(sign, setting.at - i64::from(than)),
            Test::Last(last) => setting.last == last,
        }
    }
}

fn conjunction(tests: &[Test]) -> String {
    tests.iter().map(Test::text).collect::<Vec<_>>().join(" and ")
}

fn source(steps: &[Step]) -> String {
    let which =
        |tests: &[Test]| if tests.is_empty() { String::new() } else { format!(" where {}", conjunction(tests)) };
    let mut text = String::new();
    for step in steps {
        let line = match step {
            Step::Set { delay, end, at, last } => format!("set sent({end}, {at}, {last}, 1) in {delay}ns"),
            Step::SetOther(delay) => format!("set turn in {delay}ns"),
            Step::Cancel(tests) => format!("cancel sent{}", which(tests)),
            Step::Move(tests, delay) => format!("move sent{} to in {delay}ns", which(tests)),
            Step::Fire(tests) => format!("fire sent{}", which(tests)),
            Step::Tell(what, value, tests) => {
                let part = (*what != "count").then(|| (*value).to_string());
                let tests = (!tests.is_empty()).then(|| conjunction(tests));
                let arguments: Vec<String> = part.into_iter().chain(tests).collect();
                match (arguments.is_empty(), *what, *value) {
                    (true, ..) => format!("notify told(sent.{what})"),
                    (_, "first" | "last" | "least" | "greatest", "end") => {
                        format!("notify told(u16(sent.{what}({})))", arguments.join(", "))
                    }
                    _ => format!("notify told(sent.{what}({}))", arguments.join(", ")),
                }
            }
        };
        writeln!(text, "{line};").expect("a String takes all text");
    }
    text
}

/// The settings in the order in which they fire, and what was told when.
#[derive(Default)]
struct Model {
    now: i64,
    settings: Vec<Setting>,
    told: Vec<(i64, i64)>,
}

impl Model {
    /// Behind all that is due then.
    fn put(&mut self, setting: Setting) {
        let place = self.settings.iter().position(|other| other.due > setting.due);
        self.settings.insert(place.unwrap_or(self.settings.len()), setting);
    }

    fn set(&mut self, setting: Setting) {
        if self.settings.len() < MOST {
            self.put(setting);
        }
    }

    fn take(&mut self, tests: &[Test]) -> Vec<Setting> {
        let passes = |setting: &Setting| !setting.other && tests.iter().all(|test| test.passes(setting));
        let (taken, left) = self.settings.iter().partition(|setting| passes(setting));
        self.settings = left;
        taken
    }

    fn shift(&mut self, tests: &[Test], delay: u8) {
        for setting in self.take(tests) {
            self.put(Setting { due: self.now + i64::from(delay), ..setting });
        }
    }

    fn ask(&self, what: &str, value: &str, tests: &[Test]) -> i64 {
        let mut model = Model { settings: self.settings.clone(), ..Model::default() };
        let mut passing = model.take(tests);
        if what == "count" {
            return passing.len() as i64;
        }
        let before = |one: &Setting, other: &Setting| match value {
            "end" => one.end.wrapping_sub(other.end).cast_signed() < 0,
            _ => one.at < other.at,
        };
        let found = match what {
            "first" => passing.first().copied(),
            "last" => passing.pop(),
            "least" => passing.into_iter().reduce(|one, other| if before(&other, &one) { other } else { one }),
            _ => passing.into_iter().reduce(|one, other| if before(&one, &other) { other } else { one }),
        };
        found.map_or(0, |setting| if value == "end" { setting.end.into() } else { setting.at })
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Set { delay, end, at, last } => {
                    let due = self.now + i64::from(*delay);
                    self.set(Setting { due, other: false, end: *end, at: (*at).into(), last: *last });
                }
                Step::SetOther(delay) => {
                    let due = self.now + i64::from(*delay);
                    self.set(Setting { due, other: true, end: 0, at: 0, last: false });
                }
                Step::Cancel(tests) => drop(self.take(tests)),
                Step::Move(tests, delay) => self.shift(tests, *delay),
                Step::Fire(tests) => self.shift(tests, 0),
                Step::Tell(what, value, tests) => {
                    let told = self.ask(what, value, tests);
                    self.told.push((self.now, told));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn timers_do_what_a_list_of_settings_does(first in steps(12), then in steps(5)) {
        let source = format!(
            "machine m; flow key ipv4.source at most {MOST} timers; timer sent(end: seq16, at, last: bool, one: u8);\n\
             timer turn; register rounds: i64 = {ROUNDS};\n\
             initial state s {{ on packet {{\n{}}}\n\
             on turn {{ notify told(-99); }}\n\
             on sent {{ notify told(sent.at + 100 * sent.one); if rounds > 0 {{ rounds -= 1;\n{}}} }} }}\n",
            source(&first), source(&then)
        );
        let compilation = compile("m.xl", Dialect::Xl, &source.as_str());
        let Some(image) = compilation.image else { panic!("{:?}\n{source}", compilation.diagnostics) };
        let image = image.verify().expect("the compiler's images verify");
        let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
        let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("it is verified");
        let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
        let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(1, 2).finish().expect("a small frame");
        let mut out = Outbox::new();
        engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
        engine.fire(Time::from_nanoseconds(1_000), &mut out);
        let told: Vec<(i64, i64)> = out
            .items()
            .iter()
            .filter_map(|item| match item {
                Output::Notify { at, value, .. } => Some((at.nanoseconds(), *value)),
                _ => None,
            })
            .collect();
        let mut model = Model::default();
        model.run(&first);
        let mut rounds = ROUNDS;
        while !model.settings.is_empty() {
            let setting = model.settings.remove(0);
            model.now = setting.due;
            model.told.push((model.now, if setting.other { -99 } else { setting.at + 100 }));
            if !setting.other && rounds > 0 {
                rounds -= 1;
                model.run(&then);
            }
        }
        prop_assert_eq!(told, model.told, "{}", source);
    }
}
