//! The document as a whole.

use super::{
    Block, Condition, Creation, Feature, FieldName, Flow, Format, OtherPackets, Preparation, Ranges, Register, Repeat,
    Row, Segments, State, Table, Tally, Template, Timer, Turns,
};
use crate::limits::DEFAULT_SEND_BUFFER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the document's form. Raised when an older reader would misunderstand.
pub const IMAGE_VERSION: u32 = 2;

/// A compiled network function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Always [`IMAGE_VERSION`].
    pub weftwire_image: u32,
    /// The machine's name.
    pub name: String,
    /// `sha256:` and 64 hexadecimal digits over the canonical document with this string empty.
    pub digest: String,
    /// What the image asks of an engine: exactly what it uses, by increasing name.
    pub features: Vec<Feature>,
    /// Registers.
    pub registers: Vec<Register>,
    /// How packets find their instance.
    pub flow: Flow,
    /// What happens to frames that have no flow key.
    pub other_packets: OtherPackets,
    /// Header formats in use. Built-in ones carry the built-in definition.
    pub formats: Vec<Format>,
    /// The header fields that operands and operations name by index.
    pub fields: Vec<FieldName>,
    /// Names of the packet slots an instance has, slot 0 first.
    pub slots: Vec<String>,
    /// Ranges of sequence numbers that an instance keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Ranges>,
    /// Records of segments that an instance keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segments>,
    /// Turns that all flows of the function share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turns>,
    /// Most bytes of the application that an instance holds until they are released; `None`: 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    /// What is counted over all flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tallies: Vec<Tally>,
    /// Packets the machine can build.
    pub templates: Vec<Template>,
    /// Timers by name.
    pub timers: Vec<Timer>,
    /// Constant look-up tables.
    pub tables: Vec<Table>,
    /// Names of notices to the application.
    pub notices: Vec<String>,
    /// Packets put into slots when `connect` makes an instance.
    pub creation: Vec<Creation>,
    /// States by name. State 0 is the initial state.
    pub states: Vec<State>,
    /// Number of internal events.
    pub internal_events: u16,
    /// Those that may be raised again, by increasing state and event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Repeat>,
    /// Operations that rows and preparations share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Operations that run before the conditions of a (state, event); at most one entry each.
    pub preparations: Vec<Preparation>,
    /// Numbered comparisons.
    pub conditions: Vec<Condition>,
    /// The rule table. Of the rows of a (state, event), the first that matches wins.
    pub rows: Vec<Row>,
    /// What the image wants to show to a debugger.
    pub debug: Debug,
}

impl Image {
    /// Most bytes of the application that an instance holds until they are released (semantics, rule A1).
    pub fn send_buffer_bytes(&self) -> usize {
        self.send_buffer.map_or(DEFAULT_SEND_BUFFER, |bytes| bytes as usize)
    }

    /// The receive buffer: its index among `ranges`, and its bytes.
    pub fn receive_buffer(&self) -> Option<(usize, u32)> {
        self.ranges.iter().enumerate().find_map(|(index, ranges)| Some((index, ranges.bytes?)))
    }
}

/// What the image wants to show to a debugger (XTRA, Section IV.D).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Debug {
    /// Names of the sources that the program includes and that rows come from, as its main source finds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Names of the snapshot points.
    pub points: Vec<String>,
    /// Registers to sample.
    pub samples: Vec<Sample>,
}

impl Debug {
    /// The name of a row's source; `None`: the program's main one.
    pub fn source(&self, number: u16) -> Option<&str> {
        let index = usize::from(number).checked_sub(1)?;
        self.sources.get(index).map(String::as_str)
    }
}

/// A register sampled in every live flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The register.
    pub register: u16,
    /// Nanoseconds between samples of one flow, counted from the flow's creation; at least 1,000.
    pub interval: i64,
}
