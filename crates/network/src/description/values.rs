//! Values of keys: quantities with units, names, and values that can be written in more than one way.

use crate::read::fields::{FromValue, Places, parsed, table, wrong_type};
use crate::read::problems::Problems;
use crate::read::tree::{Kind, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use weftwire_core::{Time, nanoseconds};
use weftwire_text::Span;
use weftwire_text::quantity::{self, parse_duration, parse_rate, parse_share, parse_size};

/// No time in a file is longer: 1000 days, so that sums of times stay far within 64 bits.
pub const LONGEST: i64 = 1_000 * 24 * 3_600 * 1_000_000_000;

/// No rate in a file is higher, bits per second.
pub const FASTEST: u64 = 1_000_000_000_000_000;

macro_rules! quantity {
    ($(#[$meta:meta])* $name:ident($inner:ty), $parse:expr, $pattern:literal, $($example:literal),+) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name(pub $inner);

        impl FromValue for $name {
            const EXAMPLE: &'static str = concat!($("\"", $example, "\" "),+).trim_ascii_end();

            fn from_value(value: &Value, problems: &mut Problems) -> Option<$name> {
                parsed(value, Self::EXAMPLE, $parse, problems).map($name)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": [$($example),+] })
            }
        }
    };
}

quantity!(
    /// A time in nanoseconds, at most [`LONGEST`].
    Duration(i64),
    duration,
    r"^\d+(\.\d+)?\s*(ns|us|ms|s|min|h)?$",
    "10ms"
);

impl Duration {
    /// As the type that programs compute with.
    pub fn get(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.unsigned_abs())
    }

    /// So long after the start.
    pub fn time(self) -> Time {
        Time::from_nanoseconds(self.0)
    }
}

quantity!(
    /// A time in nanoseconds, at most [`LONGEST`]; `None`: never.
    Convergence(Option<i64>),
    |text: &str| if text == "never" { Ok(None) } else { duration(text).map(Some) },
    r"^(\d+(\.\d+)?\s*(ns|us|ms|s|min|h)?|never)$",
    "200ms",
    "never"
);
quantity!(
    /// A rate in bits per second from 1 to [`FASTEST`]; `None`: unlimited.
    LinkRate(Option<u64>),
    link_rate,
    r"^(\d+(\.\d+)?\s*[kMGT]?bit/s|unlimited)$",
    "10Mbit/s"
);
quantity!(
    /// A rate in bits per second that may be 0.
    StepRate(u64),
    step_rate,
    r"^\d+(\.\d+)?\s*[kMGT]?bit/s$",
    "2Mbit/s"
);
quantity!(
    /// Bytes.
    Bytes(u64),
    parse_size,
    r"^\d+(\.\d+)?\s*([kMGT]?B|[KMG]iB)$",
    "10kB"
);
quantity!(
    /// Bytes; `u64::MAX`: unlimited.
    BulkBytes(u64),
    |text: &str| if text == "unlimited" { Ok(u64::MAX) } else { parse_size(text) },
    r"^(\d+(\.\d+)?\s*([kMGT]?B|[KMG]iB)|unlimited)$",
    "10MB",
    "unlimited"
);
quantity!(
    /// Packets or bytes.
    Amount(quantity::Amount),
    quantity::parse_amount,
    r"^(\d+\s*packets?|\d+(\.\d+)?\s*([kMGT]?B|[KMG]iB))$",
    "100 packets"
);
quantity!(
    /// How fast something is begun.
    Pace(PaceKind),
    pace,
    r"^\d+(\.\d+)?\s*([kMGT]?bit/s|/(ns|us|ms|s|min|h))$",
    "100/s",
    "1Mbit/s"
);

/// How fast something is begun.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PaceKind {
    /// So many bits of the application a second.
    Bits(u64),
    /// One after so many nanoseconds, in the mean.
    Every(f64),
}

fn duration(text: &str) -> Result<i64, String> {
    let parsed = nanoseconds(parse_duration(text).map_err(|error| error.to_string())?);
    if parsed > LONGEST { Err(format!("`{text}` is too long; the longest time is 24000h")) } else { Ok(parsed) }
}

fn step_rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate(text).map_err(|error| error.to_string())?;
    if rate > FASTEST { Err(format!("`{text}` is too fast; the highest rate is 1000Tbit/s")) } else { Ok(rate) }
}

fn link_rate(text: &str) -> Result<Option<u64>, String> {
    match text {
        "unlimited" => Ok(None),
        _ => match step_rate(text)? {
            0 => Err("a link's rate is at least 1bit/s; take it down with a fault `link-down`".into()),
            rate => Ok(Some(rate)),
        },
    }
}

fn pace(text: &str) -> Result<PaceKind, String> {
    if let Ok(rate) = parse_rate(text) {
        let fits = (1..=FASTEST).contains(&rate);
        return if fits {
            Ok(PaceKind::Bits(rate))
        } else {
            Err(format!("`{text}` is not above 0 and at most 1000Tbit/s"))
        };
    }
    let wrong = |_| format!("`{text}` is neither a frequency nor a rate; write 100/s or 1Mbit/s");
    quantity::parse_frequency(text).map(PaceKind::Every).map_err(wrong)
}

/// A share from 0 to 1: a number, or percents as a string.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share(pub f64);

impl FromValue for Share {
    const EXAMPLE: &'static str = "\"1%\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Share> {
        let number = match value.kind {
            Kind::Float(float) => float,
            Kind::Integer(integer) => integer as f64,
            _ => return parsed(value, "0.01 or \"1%\"", parse_share, problems).map(Share),
        };
        if (0.0..=1.0).contains(&number) {
            return Some(Share(number));
        }
        problems.error(value.span, quantity::QuantityError::Share(number.to_string()).to_string());
        None
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^\d+(\.\d+)?\s*%?$" },
            ],
            "examples": [0.01, "1%"],
        })
    }
}

/// A text and where it stands.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Where.
    #[schemars(skip)]
    pub(crate) span: Span,
}

impl FromValue for Word {
    const EXAMPLE: &'static str = "\"…\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Word> {
        String::from_value(value, problems).map(|text| Word { text, span: value.span })
    }
}

/// One name, or several; `*` stands for any letters.
#[derive(Clone, Debug)]
pub struct Names(pub Vec<Word>);

impl FromValue for Names {
    const EXAMPLE: &'static str = "\"NAME\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Names> {
        match &value.kind {
            Kind::Array(_) => Vec::from_value(value, problems).map(Names),
            Kind::Text(_) => Word::from_value(value, problems).map(|word| Names(vec![word])),
            _ => {
                wrong_type(value, "a name, or names in brackets", problems);
                None
            }
        }
    }
}

impl JsonSchema for Names {
    fn schema_name() -> Cow<'static, str> {
        "Names".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

/// Named tables in the order of the file.
#[derive(Clone, Debug)]
pub struct Named<T>(pub Vec<(Word, T)>);

impl<T: FromValue + crate::read::fields::Table> FromValue for Named<T> {
    const EXAMPLE: &'static str = "{ … }";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Named<T>> {
        let Kind::Table(entries) = &value.kind else {
            wrong_type(value, "tables with names, such as [nodes.client]", problems);
            return None;
        };
        let named = entries.iter().filter_map(|entry| {
            let word = Word { text: entry.key.clone(), span: entry.span };
            crate::read::fields::read_table(&entry.value, entry.span, problems).map(|table| (word, table))
        });
        Some(Named(named.collect()))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

/// The text of a scalar: of a string its text, else as it is written.
#[derive(Clone, Debug)]
pub struct Scalar(pub String);

impl FromValue for Scalar {
    const EXAMPLE: &'static str = "\"200ms\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Scalar> {
        Some(Scalar(match &value.kind {
            Kind::Text(text) => text.clone(),
            Kind::Integer(integer) => integer.to_string(),
            Kind::Float(float) => float.to_string(),
            Kind::Boolean(boolean) => boolean.to_string(),
            _ => {
                wrong_type(value, "a number or a string", problems);
                return None;
            }
        }))
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// Initial values of registers.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(transparent)]
pub struct Parameters(pub std::collections::BTreeMap<String, Scalar>);

impl FromValue for Parameters {
    const EXAMPLE: &'static str = "{ … }";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Parameters> {
        let Kind::Table(entries) = &value.kind else {
            wrong_type(value, "{ register = value }", problems);
            return None;
        };
        let read = entries
            .iter()
            .filter_map(|entry| Scalar::from_value(&entry.value, problems).map(|scalar| (entry.key.clone(), scalar)));
        Some(Parameters(read.collect()))
    }
}

/// A program and its arguments: words, or a string that is split at spaces.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum Run {
    /// A string.
    Line(String),
    /// Words.
    Words(Vec<String>),
}

impl FromValue for Run {
    const EXAMPLE: &'static str = "[\"PROGRAM\", \"ARGUMENT\"]";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Run> {
        match &value.kind {
            Kind::Text(text) => Some(Run::Line(text.clone())),
            Kind::Array(_) => Vec::from_value(value, problems).map(Run::Words),
            _ => {
                wrong_type(value, Self::EXAMPLE, problems);
                None
            }
        }
    }
}

/// A limit in short, or all of a queue.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum QueueValue {
    /// Only the limit.
    Limit(Amount),
    /// Everything.
    Table(Box<super::Queue>),
}

impl FromValue for QueueValue {
    const EXAMPLE: &'static str = "\"100 packets\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<QueueValue> {
        match &value.kind {
            Kind::Table(_) => super::Queue::from_value(value, problems).map(Box::new).map(QueueValue::Table),
            _ => Amount::from_value(value, problems).map(QueueValue::Limit),
        }
    }
}

/// Independent loss, or bursts.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum LossValue {
    /// Each packet with this probability.
    Random(Share),
    /// Gilbert-Elliott.
    Bursts(Bursts),
}

impl FromValue for LossValue {
    const EXAMPLE: &'static str = "\"1%\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<LossValue> {
        match &value.kind {
            Kind::Table(_) => Bursts::from_value(value, problems).map(LossValue::Bursts),
            _ => Share::from_value(value, problems).map(LossValue::Random),
        }
    }
}

table! {
    /// Gilbert-Elliott loss: a good and a bad state, stepped at each packet.
    pub struct Bursts {
        /// Probability to go from good to bad.
        good_to_bad: Share,
        /// Probability to go back; above 0.
        bad_to_good: Share,
        /// Loss in the good state. Default 0.
        loss_good: Option<Share>,
        /// Loss in the bad state. Default 1.
        loss_bad: Option<Share>,
    }
}

/// A jitter that keeps order, or one that need not.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum JitterValue {
    /// At most so much, in order.
    InOrder(Duration),
    /// All of it.
    Table(JitterTable),
}

impl FromValue for JitterValue {
    const EXAMPLE: &'static str = "\"1ms\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<JitterValue> {
        match &value.kind {
            Kind::Table(_) => JitterTable::from_value(value, problems).map(JitterValue::Table),
            _ => Duration::from_value(value, problems).map(JitterValue::InOrder),
        }
    }
}

table! {
    /// Time added to the delay.
    pub struct JitterTable {
        /// Uniform from 0 to this.
        most: Duration,
        /// Packets overtake each other by it. Default false.
        reorders: Option<bool>,
    }
}

/// Rates over time: the name of a file with lines `seconds,rate`, or the steps.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum TraceValue {
    /// A file, relative to the network's.
    File(String),
    /// Instants and rates.
    Steps(Vec<(Duration, StepRate)>),
}

impl FromValue for TraceValue {
    const EXAMPLE: &'static str = "[[\"0s\", \"10Mbit/s\"], [\"1s\", \"2Mbit/s\"]]";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<TraceValue> {
        let Kind::Array(steps) = &value.kind else {
            return parsed(value, Self::EXAMPLE, |text| Ok::<_, String>(TraceValue::File(text.into())), problems);
        };
        let mut read = Vec::with_capacity(steps.len());
        for step in steps {
            match pair(step, "[\"1s\", \"2Mbit/s\"]", problems) {
                Some([at, rate]) => {
                    read.push((Duration::from_value(at, problems)?, StepRate::from_value(rate, problems)?));
                }
                None => return None,
            }
        }
        Some(TraceValue::Steps(read))
    }
}

fn pair<'a>(value: &'a Value, example: &str, problems: &mut Problems) -> Option<&'a [Value; 2]> {
    if let Kind::Array(values) = &value.kind
        && let Ok(pair) = values.as_slice().try_into()
    {
        return Some(pair);
    }
    problems.error_help(value.span, "two values belong here", format!("write {example}"));
    None
}

/// Sizes: always the same, drawn, or of a named distribution.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum SizeValue {
    /// A size, `websearch` or `datamining`.
    Word(String),
    /// A distribution.
    Table(SizeTable),
}

impl FromValue for SizeValue {
    const EXAMPLE: &'static str = "\"10kB\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<SizeValue> {
        match &value.kind {
            Kind::Table(_) => SizeTable::from_value(value, problems).map(SizeValue::Table),
            _ => String::from_value(value, problems).map(SizeValue::Word),
        }
    }
}

table! {
    /// A distribution of sizes: one of its keys.
    pub struct SizeTable {
        /// Exponential with this mean.
        exponential: Option<Bytes>,
        /// Uniform between both.
        uniform: Option<Vec<Bytes>>,
        /// Bounded Pareto.
        pareto: Option<Pareto>,
        /// A file with lines `bytes,cumulative share`, relative to the network's.
        file: Option<String>,
    }
}

table! {
    /// Bounded Pareto distribution.
    pub struct Pareto {
        /// Its shape, above 0 (1.2: heavy-tailed).
        shape: f64,
        /// The smallest size.
        minimum: Bytes,
        /// The greatest size.
        maximum: Bytes,
    }
}

/// A pause: always the same, or drawn.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum PauseValue {
    /// Always the same.
    Constant(Duration),
    /// Drawn.
    Table(PauseTable),
}

impl FromValue for PauseValue {
    const EXAMPLE: &'static str = "\"1ms\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<PauseValue> {
        match &value.kind {
            Kind::Table(_) => PauseTable::from_value(value, problems).map(PauseValue::Table),
            _ => Duration::from_value(value, problems).map(PauseValue::Constant),
        }
    }
}

table! {
    /// A pause that is drawn.
    pub struct PauseTable {
        /// Exponential with this mean.
        exponential: Duration,
    }
}

/// A sweep's values by dotted path.
#[derive(Clone, Debug)]
pub struct Sweep(pub(crate) Vec<(Word, Vec<Value>)>);

impl FromValue for Sweep {
    const EXAMPLE: &'static str = "{ \"links.uplink.delay\" = [\"10ms\", \"20ms\"] }";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Sweep> {
        fn collect(prefix: &str, value: &Value, span: Span, into: &mut Sweep, problems: &mut Problems) {
            match &value.kind {
                Kind::Table(entries) => {
                    for entry in entries {
                        let path =
                            if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
                        collect(&path, &entry.value, entry.span, into, problems);
                    }
                }
                Kind::Array(values) if !values.is_empty() && !prefix.is_empty() => {
                    into.0.push((Word { text: prefix.into(), span }, values.clone()));
                }
                _ => wrong_type(value, "the values it takes in brackets: [\"10ms\", \"20ms\"]", problems),
            }
        }
        let mut sweep = Sweep(Vec::new());
        collect("", value, value.span, &mut sweep, problems);
        Some(sweep)
    }
}

impl JsonSchema for Sweep {
    fn schema_name() -> Cow<'static, str> {
        "Sweep".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "examples": [{ "links.uplink.delay": ["10ms", "20ms"] }] })
    }
}

/// A table's place that nothing in a file stands for.
impl Places {
    pub(crate) fn span_of(&self, key: &str) -> Span {
        self.key(key).unwrap_or(self.span)
    }
}
