//! How the state of one flow of a machine lies in bytes: the fixed part, field by field, and the sections behind it.
//!
//! Everything is a whole number of words of 8 bytes, little-endian; strings of bytes (addresses, keys, packets) stand in
//! their own order, filled up with zeros. So hardware writes the fixed part word by word. `docs/live-state.md` says what
//! each field means; [`StateLayout`] gives the places for an image.

use crate::limits::MAX_TIMER_PAYLOAD;
use crate::types::{RegisterType, Segments};
use crate::verify::VerifiedImage;
use std::borrow::Cow;
use std::fmt;
use weftwire_core::DropReason;
use weftwire_core::packet_parts::MAX_PACKET;

/// Version of the form that states are written in. Raised with every change of it; readers take the one before, too.
pub const STATE_SCHEMA: u64 = 2;
/// Version of the form that states of whole functions are written in: 3 tells of the latest input. The flows within are of [`STATE_SCHEMA`].
pub const FUNCTION_SCHEMA: u64 = 3;
/// The oldest version that is still read.
pub const OLDEST_STATE_SCHEMA: u64 = 1;
/// Version of `docs/semantics.md`: what a state means. Raised when a machine would go on differently from the same state.
pub const SEMANTICS_VERSION: u64 = 2;
/// What the state of a flow begins with.
pub const FLOW_MAGIC: [u8; 8] = *b"WEFTFLOW";
/// Bytes of a word.
pub const WORD: usize = 8;

/// A field: some words at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutField {
    /// Its name.
    pub name: String,
    /// Bytes from the start of the state, or of the entry, to its first byte.
    pub offset: usize,
    /// How many words it has.
    pub words: usize,
    /// What it holds, in words.
    pub holds: &'static str,
}

/// A section behind the fixed part, as long as a field of the fixed part says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutSection {
    /// Its name.
    pub name: String,
    /// The field that counts.
    pub count: String,
    /// The fields of an entry.
    pub entry: Vec<LayoutField>,
    /// What is counted.
    pub counted: Counted,
    /// The greatest count.
    pub most: usize,
}

/// What the field counts that says how long a section is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Entries.
    Entries,
    /// Bytes, filled up to whole words, with one entry in front of them unless there are none.
    Bytes,
}

impl LayoutSection {
    /// Bytes of the section with this count.
    pub fn length(&self, count: usize) -> usize {
        let entry = self.entry.iter().map(|field| field.words * WORD).sum::<usize>();
        match self.counted {
            Counted::Entries => count * entry,
            Counted::Bytes if count == 0 => 0,
            Counted::Bytes => entry + count.next_multiple_of(WORD),
        }
    }
}

/// Where everything is in the state of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateLayout {
    /// The fixed part, without gaps.
    pub fields: Vec<LayoutField>,
    /// What follows it first: refusals.
    pub drops: LayoutSection,
    /// Then pending settings of timers.
    pub timers: LayoutSection,
    /// Then stored packets, a section each slot.
    pub packets: Vec<LayoutSection>,
    /// Then ranges, and behind those of the receive buffer its bytes.
    pub ranges: Vec<LayoutSection>,
    /// The bytes of the receive buffer.
    pub receive_buffer: Option<LayoutSection>,
    /// Then records of segments.
    pub segments: Vec<LayoutSection>,
    /// Last the application's bytes.
    pub send_buffer: LayoutSection,
    /// Bytes of the flow key.
    pub key_bytes: usize,
}

impl StateLayout {
    /// The layout of the flows of an image.
    pub fn of(image: &VerifiedImage) -> StateLayout {
        let places = image.places(&image.formats());
        let key = [&image.flow.common, &image.flow.source, &image.flow.destination];
        let width = |field: &u16| usize::from(places[usize::from(*field)].width()).div_ceil(8);
        let key_bytes = key.into_iter().flatten().map(width).sum();
        let mut packet = Fields::of(&PACKET);
        if let Some(imported) = packet.last_mut() {
            imported.words = image.formats().imports().count();
        }
        let packet = |slot: &String| bytes(format!("packet {slot}"), packet.clone(), MAX_PACKET);
        StateLayout {
            fields: fixed(image, key_bytes),
            drops: entries("drops", &DROP, DropReason::ALL.len()),
            timers: entries("timers", &TIMER, image.flow.max_timers as usize),
            packets: image.slots.iter().map(packet).collect(),
            ranges: image
                .ranges
                .iter()
                .map(|it| entries(&format!("ranges {}", it.name), &RANGE, it.most as usize))
                .collect(),
            receive_buffer: image.receive_buffer().map(|(_, size)| bytes(HELD.into(), Vec::new(), size as usize)),
            segments: image.segments.iter().map(segments).collect(),
            send_buffer: bytes("send buffer".into(), Vec::new(), image.send_buffer_bytes()),
            key_bytes,
        }
    }

    /// The same states in a schema that is still read: in the one before, timers carried two values.
    pub fn of_schema(&self, schema: u64) -> Cow<'_, StateLayout> {
        if schema == STATE_SCHEMA {
            return Cow::Borrowed(self);
        }
        let mut before = self.clone();
        before.timers.entry.truncate(before.timers.entry.len() - MAX_TIMER_PAYLOAD + VALUES_BEFORE);
        Cow::Owned(before)
    }

    /// What follows the fixed part, in this order.
    pub fn sections(&self) -> impl Iterator<Item = &LayoutSection> {
        [&self.drops, &self.timers]
            .into_iter()
            .chain(&self.packets)
            .chain(&self.ranges)
            .chain(&self.receive_buffer)
            .chain(&self.segments)
            .chain([&self.send_buffer])
    }

    /// Bytes of the fixed part.
    pub fn fixed_length(&self) -> usize {
        self.fields.last().map_or(0, |field| field.offset + field.words * WORD)
    }

    /// The most bytes that a state may have.
    pub fn longest(&self) -> usize {
        self.fixed_length() + self.sections().map(|section| section.length(section.most)).sum::<usize>()
    }

    /// The place of a field of the fixed part.
    pub fn field(&self, name: &str) -> Option<&LayoutField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The fields that every state begins with, whatever the image.
pub fn head() -> Vec<LayoutField> {
    Fields::of(&HEAD)
}

/// Adds fields one behind the other.
#[derive(Default)]
struct Fields(Vec<LayoutField>);

impl Fields {
    fn add(&mut self, name: impl Into<String>, words: usize, holds: &'static str) {
        let offset = self.0.last().map_or(0, |last| last.offset + last.words * WORD);
        self.0.push(LayoutField { name: name.into(), offset, words, holds });
    }

    fn of(list: &[(&str, usize, &'static str)]) -> Vec<LayoutField> {
        let mut fields = Fields::default();
        list.iter().for_each(|&(name, words, holds)| fields.add(name, words, holds));
        fields.0
    }
}

/// What every state begins with, of whatever image.
const HEAD: [(&str, usize, &str); 15] = [
    ("magic", 1, "the bytes `WEFTFLOW`"),
    ("schema", 1, "version of this form"),
    ("semantics", 1, "version of the semantics page"),
    ("length", 1, "bytes of the whole state"),
    ("image", 4, "SHA-256 of the image"),
    ("time", 1, "the boundary: time of the latest event, ns"),
    ("boot", 2, "boot of the machine whose CLOCK_MONOTONIC is meant"),
    ("monotonic", 1, "ns to add to a time for CLOCK_MONOTONIC"),
    ("tai", 1, "ns to add to a time for CLOCK_TAI"),
    ("hash key", 2, "secret key of `hash` and `flow.hash`"),
    ("random key", 2, "key of `random`"),
    ("flow", 1, "number of the flow where it was"),
    ("flags", 1, "bits: 0 closed, 1 open, 2 ends known, 3 IPv6, 4 tagged, 5 clocks known"),
    ("state", 1, "number of the state"),
    ("created", 1, "time of creation, ns"),
];

const BEHIND_KEY: [(&str, usize, &str); 16] = [
    ("earlier", 1, "instances of its key made before it at that instant"),
    ("last active", 1, "time of its last packet or call, ns"),
    ("activity", 1, "which of all packets and calls that was"),
    ("rank", 1, "time from which it waits for its eviction, ns"),
    ("rank activity", 1, "which of all packets, calls and changes that was"),
    ("draws", 1, "random numbers drawn"),
    ("protocol", 1, "6 TCP, 17 UDP"),
    ("local address", 2, "this end's IPv4 (first 4 bytes) or IPv6 address"),
    ("remote address", 2, "the other end's"),
    ("local port", 1, "this end's port"),
    ("remote port", 1, "the other end's"),
    ("local mac", 1, "this end's Ethernet address, first 6 bytes"),
    ("remote mac", 1, "the next hop's"),
    ("vlan", 1, "tag control information of the outer tag"),
    ("events", 1, "events handled"),
    ("packets in", 1, "its packets that arrived"),
];

fn fixed(image: &VerifiedImage, key_bytes: usize) -> Vec<LayoutField> {
    let mut fields = Fields(Fields::of(&HEAD));
    fields.add("key", key_bytes.div_ceil(WORD), "the flow key");
    BEHIND_KEY.iter().for_each(|&(name, words, holds)| fields.add(name, words, holds));
    fields.add("packets out", 1, "packets it sent");
    for sample in &image.debug.samples {
        let register = &image.registers[usize::from(sample.register)].name;
        fields.add(format!("sample of {register}"), 1, "when it is shown next, ns");
    }
    for register in image.registers.iter().filter(|register| !register.scratch) {
        fields.add(format!("register {}", register.name), 1, holds(register.kind));
    }
    fields.add("drops", 1, "entries of the section `drops`");
    fields.add("timers", 1, "entries of the section `timers`");
    for slot in &image.slots {
        fields.add(format!("packet {slot}"), 1, "bytes of the stored packet; 0: none");
    }
    for ranges in &image.ranges {
        fields.add(format!("floor {}", ranges.name), 1, "the sequence number that all ranges are at or above");
        fields.add(format!("ranges {}", ranges.name), 1, "how many ranges");
    }
    if image.receive_buffer().is_some() {
        fields.add("unread", 1, "bytes delivered and not read by the application");
        fields.add(HELD, 1, "bytes held in the receive buffer");
    }
    for segments in &image.segments {
        fields.add(format!("start {}", segments.name), 1, "the sequence number that the first record begins at");
        fields.add(format!("segments {}", segments.name), 1, "how many records");
    }
    for turns in &image.turns {
        fields.add(format!("turn cost {}", turns.name), 1, "ns from its turn to the next one; 0: it does not wait");
        fields.add(format!("turn rank {}", turns.name), 1, "its rank, or 0");
    }
    fields.add("send buffer", 1, "bytes accepted and not released");
    fields.0
}

fn holds(kind: RegisterType) -> &'static str {
    match kind {
        RegisterType::Bool => "bool",
        RegisterType::U8 => "u8",
        RegisterType::U16 => "u16",
        RegisterType::U32 => "u32",
        RegisterType::U64 => "u64",
        RegisterType::I64 => "i64",
        RegisterType::Seq32 => "seq32",
        RegisterType::Seq16 => "seq16",
        RegisterType::Seq24 => "seq24",
        RegisterType::Seq64 => "seq64",
        RegisterType::Time => "time, ns",
        RegisterType::Mac => "mac",
        RegisterType::Ipv4 => "ipv4",
    }
}

/// A refusal by reason.
const DROP: [(&str, usize, &str); 2] = [("reason", 1, "number of the reason"), ("count", 1, "how often; not 0")];

/// A pending setting, earliest first, those of one instant in the order of setting.
const TIMER: [(&str, usize, &str); 3 + MAX_TIMER_PAYLOAD] = [
    ("due", 1, "when it fires, ns"),
    ("timer", 1, "number of the timer"),
    ("depth", 1, "timer events of this instant that it comes from"),
    ("value 0", 1, "the first value that it carries, or 0"),
    ("value 1", 1, "the second"),
    ("value 2", 1, "the third"),
    ("value 3", 1, "the fourth"),
];

/// Values that a timer carried in schema 1.
const VALUES_BEFORE: usize = 2;

/// The section of the bytes in the receive buffer, range by range in order.
const HELD: &str = "receive buffer";

/// A range, the one changed last first.
const RANGE: [(&str, usize, &str); 2] =
    [("left", 1, "where it begins, behind the floor"), ("right", 1, "where it ends, behind the floor")];

/// Records of segments, by their order.
fn segments(object: &Segments) -> LayoutSection {
    let mut entry = Fields::default();
    entry.add("length", 1, "how many sequence numbers");
    object.fields.iter().for_each(|field| entry.add(field.name.clone(), 1, holds(field.kind)));
    let name = format!("segments {}", object.name);
    LayoutSection { count: name.clone(), name, entry: entry.0, counted: Counted::Entries, most: object.most as usize }
}

/// What is known of a stored packet beside its bytes.
const PACKET: [(&str, usize, &str); 8] = [
    ("kind", 1, "bits: 0 Ethernet, 1 checksum partial, 2 routed, 8-9 network (ARP, IPv4, IPv6 from 1), 16-17 fragment"),
    ("protocol", 1, "of what follows the network header"),
    ("segments", 1, "bits: 0-15 bytes of a segment, 16-18 kind of segmentation"),
    ("network", 1, "bits: 0-31 where the network header starts, 32-63 where it ends"),
    ("transport end", 1, "where the transport header ends"),
    ("payload", 1, "where the payload starts"),
    ("final destination", 2, "last stop of a routing header"),
    ("imported", 0, "a word each imported header: bits 0-31 its start, 32-63 its end"),
];

fn entries(name: &str, entry: &[(&str, usize, &'static str)], most: usize) -> LayoutSection {
    LayoutSection { name: name.into(), count: name.into(), entry: Fields::of(entry), counted: Counted::Entries, most }
}

fn bytes(name: String, entry: Vec<LayoutField>, most: usize) -> LayoutSection {
    LayoutSection { count: name.clone(), name, entry, counted: Counted::Bytes, most }
}

/// How the state of a whole function lies in bytes: a fixed part; behind it refusals, keys made at the latest instant,
/// flows and the order of timers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionLayout {
    /// The fixed part, without gaps.
    pub fields: Vec<LayoutField>,
    /// How many kinds of turns flows share.
    pub turns: usize,
    /// The layout of each flow.
    pub flow: StateLayout,
}

impl FunctionLayout {
    /// The layout of an image's functions.
    pub fn of(image: &VerifiedImage) -> FunctionLayout {
        let mut fields = Fields(Fields::of(&FUNCTION));
        for row in 0..image.rows.len() {
            fields.add(format!("row {row}"), 1, "times it was taken");
        }
        for turns in &image.turns {
            fields.add(format!("next {}", turns.name), 1, "no turn comes before, ns");
            fields.add(
                format!("waiting {}", turns.name),
                1,
                "flows that wait, by their places: a number each, at the end",
            );
        }
        for (name, holds) in [
            ("drops", "refusals: a reason and a count each"),
            ("made then", "keys with counts"),
            (
                "listening",
                "where applications listen: bits 0 address known, 1 port known, 16-31 the port; and the address",
            ),
            ("flows", "flows: a state each"),
            ("due", "pending timers: a flow's number each"),
        ] {
            fields.add(name, 1, holds);
        }
        FunctionLayout { fields: fields.0, turns: image.turns.len(), flow: StateLayout::of(image) }
    }
}

const FUNCTION: [(&str, usize, &str); 24] = [
    ("magic", 1, "the bytes `WEFTFUNC`"),
    ("schema", 1, "version of this form"),
    ("semantics", 1, "version of the semantics page"),
    ("length", 1, "bytes of the whole state"),
    ("image", 4, "SHA-256 of the image"),
    ("time", 1, "the boundary: time of the latest input or event, ns"),
    ("clocks known", 1, "whether the next three mean anything"),
    ("boot", 2, "boot of the machine whose CLOCK_MONOTONIC is meant"),
    ("monotonic", 1, "ns to add to a time for CLOCK_MONOTONIC"),
    ("tai", 1, "ns to add to a time for CLOCK_TAI"),
    ("hash key", 2, "secret key of flows to come"),
    ("random key", 2, "random key of flows to come"),
    ("last flow", 1, "number of the latest flow"),
    ("activities", 1, "packets and calls of all flows"),
    ("last made", 1, "when the latest flow was made, ns"),
    ("latest input", 1, "the latest input: 0 none, 1 change, 2 call, 3 frame, with its port in bits 16-31, 4 `fire`"),
    ("input at", 1, "its time, ns"),
    ("frames in", 1, "frames that arrived"),
    ("frames out", 1, "frames sent"),
    ("frames passed", 1, "frames passed on untouched"),
    ("flows created", 1, "flows made"),
    ("flows peak", 1, "the most flows at once"),
    ("flows expired", 1, "flows that expired"),
    ("flows evicted", 1, "flows that were evicted"),
];

/// A table for people.
impl fmt::Display for StateLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.fields.iter().chain(self.sections().flat_map(|section| &section.entry));
        let width = names.map(|field| field.name.chars().count()).max().unwrap_or(0);
        let table = |f: &mut fmt::Formatter<'_>, fields: &[LayoutField]| {
            fields.iter().filter(|field| field.words > 0).try_for_each(|LayoutField { name, offset, words, holds }| {
                writeln!(f, "{offset:>8} {:>6}  {name:width$}  {holds}", words * WORD)
            })
        };
        writeln!(
            f,
            "State of a flow: schema {STATE_SCHEMA}, semantics {SEMANTICS_VERSION}, {} bytes and what is behind them, \
             at most {} in all.\n\n{:>8} {:>6}  {:width$}  holds",
            self.fixed_length(),
            self.longest(),
            "offset",
            "bytes",
            "field"
        )?;
        table(f, &self.fields)?;
        for LayoutSection { name, count, entry, counted, most } in self.sections() {
            match counted {
                Counted::Entries => writeln!(f, "\n{name}: an entry for each of `{count}`, at most {most}")?,
                Counted::Bytes if entry.is_empty() => writeln!(f, "\n{name}: `{count}` bytes, at most {most}")?,
                Counted::Bytes => writeln!(f, "\n{name}: unless empty, an entry and `{count}` bytes, at most {most}")?,
            }
            table(f, entry)?;
        }
        Ok(())
    }
}
