//! A whole function as a value: all its flows, what they share, and what stands between them: the order of timers at one
//! instant, who was idle for longest, and the keys of flows to come.

use super::bytes::{Reader, Writer};
use super::check::{TOO_EARLY, TOO_MANY};
use super::read::{time, version};
use super::{FlowState, Keys, StateError, TurnsState};
use crate::Counts;
use crate::program::Program;
use crate::runtime::MOST_LISTENING;
use std::net::{IpAddr, Ipv6Addr};
use weftwire_core::live::Clocks;
use weftwire_core::order::Input;
use weftwire_core::{DropReason, FlowId, Listen, Port, Time};
use weftwire_image::layout::{
    FUNCTION_SCHEMA, FunctionLayout, OLDEST_STATE_SCHEMA, SEMANTICS_VERSION, STATE_SCHEMA, StateLayout, WORD,
};

/// In the word of the latest input: the port, if it was a frame.
const PORT_SHIFT: u32 = 16;
const PORT_BITS: u64 = 0xffff << PORT_SHIFT;

/// What stands for an input.
fn number_of(input: Input) -> u64 {
    match input {
        Input::Change => 1,
        Input::Call => 2,
        Input::Frame(port) => 3 | u64::from(port.0) << PORT_SHIFT,
        Input::Fire => 4,
    }
}

/// What the state of a function begins with.
const MAGIC: [u8; 8] = *b"WEFTFUNC";

/// Everything about a function at an event boundary.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FunctionState {
    /// SHA-256 of the image.
    pub image: [u8; 32],
    /// The boundary: the time of the latest input or event.
    pub time: Time,
    /// How its time stands to clocks, if it has to do with any.
    pub clocks: Option<Clocks>,
    /// The keys of flows that it makes.
    pub keys: Keys,
    /// Number of the latest flow.
    pub last_flow: u64,
    /// Packets and calls of the application that flows have had, and their changes.
    pub activities: u64,
    /// When the latest flow was made.
    pub last_made: Time,
    /// The latest input, and its time (rules E1 and E2).
    pub latest_input: Option<(Time, Input)>,
    /// How many flows of a key were made at that instant, for keys whose last one has ended since; by key.
    pub made_then: Vec<(Vec<u8>, u32)>,
    /// Where applications listen, in order (rule A8).
    pub listening: Vec<Listen>,
    /// The turns that flows wait for.
    pub turns: Vec<TurnsState>,
    /// Counts since the start.
    pub counts: Counts,
    /// The flows by number.
    pub flows: Vec<FlowState>,
    /// The flows of all pending timers, in the order in which these fire.
    pub due: Vec<FlowId>,
}

impl FunctionState {
    /// The canonical bytes.
    pub fn to_bytes(&self, layout: &FunctionLayout) -> Vec<u8> {
        let clocks = self.clocks.unwrap_or_default();
        let counts = &self.counts;
        let mut writer = Writer::new(Vec::new());
        writer.fields(&layout.fields);
        writer.string("magic", &MAGIC);
        writer.word("schema", FUNCTION_SCHEMA);
        writer.word("semantics", SEMANTICS_VERSION);
        writer.word("length", 0);
        writer.string("image", &self.image);
        writer.word("time", self.time.nanoseconds() as u64);
        writer.word("clocks known", self.clocks.is_some().into());
        writer.string("boot", &clocks.boot);
        writer.word("monotonic", clocks.monotonic as u64);
        writer.word("tai", clocks.tai as u64);
        writer.string("hash key", &self.keys.hash);
        writer.string("random key", &self.keys.random);
        writer.word("last flow", self.last_flow);
        writer.word("activities", self.activities);
        writer.word("last made", self.last_made.nanoseconds() as u64);
        let (input_at, input) = self.latest_input.map_or((Time::ZERO, 0), |(at, input)| (at, number_of(input)));
        writer.word("latest input", input);
        writer.word("input at", input_at.nanoseconds() as u64);
        writer.word("frames in", counts.frames_in);
        writer.word("frames out", counts.frames_out);
        writer.word("frames passed", counts.frames_passed);
        writer.word("flows created", counts.flows_created);
        writer.word("flows peak", counts.flows_peak);
        writer.word("flows expired", counts.flows_expired);
        writer.word("flows evicted", counts.flows_evicted);
        writer.list("row ", counts.rows.iter().copied());
        for TurnsState { next, waiting } in &self.turns {
            writer.list("next ", [next.nanoseconds() as u64]);
            writer.list("waiting ", [waiting.len() as u64]);
        }
        writer.word("drops", counts.drops.len() as u64);
        writer.word("made then", self.made_then.len() as u64);
        writer.word("listening", self.listening.len() as u64);
        writer.word("flows", self.flows.len() as u64);
        writer.word("due", self.due.len() as u64);
        for (reason, count) in &counts.drops {
            writer.filled(&reason.number().to_le_bytes());
            writer.filled(&count.to_le_bytes());
        }
        for (key, count) in &self.made_then {
            writer.filled(key);
            writer.filled(&u64::from(*count).to_le_bytes());
        }
        for Listen { address, port } in &self.listening {
            let known = u64::from(address.is_some()) | u64::from(port.is_some()) << 1;
            let octets = match address {
                None => [0; 16],
                Some(IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
                Some(IpAddr::V6(address)) => address.octets(),
            };
            writer.filled(&(known | u64::from(port.unwrap_or(0)) << 16).to_le_bytes());
            writer.filled(&octets);
        }
        for flow in &self.flows {
            writer.bytes.extend(flow.to_bytes(&layout.flow));
        }
        for flow in self.due.iter().chain(self.turns.iter().flat_map(|turns| &turns.waiting)) {
            writer.filled(&flow.0.to_le_bytes());
        }
        let length = (writer.bytes.len() as u64).to_le_bytes();
        writer.bytes[3 * WORD..4 * WORD].copy_from_slice(&length);
        writer.bytes
    }

    /// Reads what [`FunctionState::to_bytes`] wrote, from bytes that may come from anywhere.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn from_bytes(bytes: &[u8], layout: &FunctionLayout) -> Result<FunctionState, StateError> {
        let mut reader = Reader::new(bytes);
        reader.fields("", &layout.fields);
        if reader.string("magic")? != MAGIC {
            return Err(StateError::Magic { what: "the state of a function" });
        }
        let (schema, semantics) = (reader.word("schema")?, reader.word("semantics")?);
        if !(OLDEST_STATE_SCHEMA..=FUNCTION_SCHEMA).contains(&schema) || semantics != SEMANTICS_VERSION {
            return Err(StateError::Version { schema, semantics });
        }
        match reader.word("length")? {
            length if length == bytes.len() as u64 => {}
            length => return Err(StateError::value("length", length, format!("{}, as it is", bytes.len()))),
        }
        let mut state = FunctionState {
            image: reader.string("image")?,
            time: time(reader.word("time")?),
            ..FunctionState::default()
        };
        let known = reader.below("clocks known", 2)? == 1;
        let clocks = Clocks {
            boot: reader.string("boot")?,
            monotonic: reader.word("monotonic")? as i64,
            tai: reader.word("tai")? as i64,
        };
        if !known && clocks != Clocks::default() {
            return Err(StateError::value("boot", "not zero", "zero where no clocks are known"));
        }
        state.clocks = known.then_some(clocks);
        state.keys = Keys { hash: reader.string("hash key")?, random: reader.string("random key")? };
        state.last_flow = reader.word("last flow")?;
        state.activities = reader.word("activities")?;
        state.last_made = time(reader.word("last made")?);
        state.latest_input = latest_input(&mut reader, schema)?;
        state.counts = Counts {
            frames_in: reader.word("frames in")?,
            frames_out: reader.word("frames out")?,
            frames_passed: reader.word("frames passed")?,
            flows_created: reader.word("flows created")?,
            flows_peak: reader.word("flows peak")?,
            flows_expired: reader.word("flows expired")?,
            flows_evicted: reader.word("flows evicted")?,
            rows: reader.list("row ")?.into_iter().map(|(_, count)| count).collect(),
            ..Counts::default()
        };
        let mut waiting = Vec::new();
        for _ in 0..layout.turns {
            let (_, next) = reader.next_of("next ")?;
            waiting.push(reader.next_of("waiting ")?.1);
            state.turns.push(TurnsState { next: time(next), waiting: Vec::new() });
        }
        let lengths = ["drops", "made then", "listening", "flows", "due"].map(|section| reader.word(section));
        let [drops, made_then, listening, flows, due] = lengths;
        let lengths = [drops?, made_then?, listening?, flows?, due?];
        state.read_sections(&mut reader, lengths, schema, &layout.flow)?;
        for (turns, count) in state.turns.iter_mut().zip(waiting) {
            for _ in 0..count {
                turns.waiting.push(FlowId(word(&mut reader, "waiting")?));
            }
        }
        match reader.rest().len() {
            0 => Ok(state),
            bytes => Err(StateError::Behind { bytes }),
        }
    }

    /// Nothing is reserved by the counts: each entry has to be there.
    fn read_sections(
        &mut self,
        reader: &mut Reader<'_, '_>,
        [drops, made_then, listening, flows, due]: [u64; 5],
        schema: u64,
        layout: &StateLayout,
    ) -> Result<(), StateError> {
        let mut last = None;
        for _ in 0..drops {
            let reason = word(reader, "drops")?;
            let known = usize::try_from(reason).ok().and_then(|reason| DropReason::ALL.get(reason));
            let known = known.filter(|known| last.is_none_or(|last| last < **known));
            let known = *known.ok_or_else(|| StateError::value("drops", reason, "a reason, in order"))?;
            last = Some(known);
            self.counts.drops.insert(known, word(reader, "drops")?);
        }
        for _ in 0..made_then {
            let key = reader.filled("made then", layout.key_bytes)?.to_vec();
            let count = word(reader, "made then")?;
            let count = u32::try_from(count).map_err(|_| StateError::value("made then", count, "of 32 bits"))?;
            self.made_then.push((key, count));
        }
        for _ in 0..listening {
            let known = word(reader, "listening")?;
            let octets: [u8; 16] = reader.filled("listening", 16)?.try_into().unwrap_or_default();
            let address = Ipv6Addr::from(octets);
            let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
            let local = Listen {
                address: (known & 1 != 0).then_some(address),
                port: (known & 2 != 0).then_some((known >> 16) as u16),
            };
            let plain = known & !0xffff_0003 == 0
                && (local.port.is_some() || known >> 16 == 0)
                && (local.address.is_some() || octets == [0; 16]);
            if !plain || self.listening.last().is_some_and(|last| *last >= local) {
                return Err(StateError::value("listening", known, "an address and a port, in order"));
            }
            self.listening.push(local);
        }
        for _ in 0..flows {
            let (of_flow, length) = version(reader.rest())?;
            let schema = schema.min(STATE_SCHEMA);
            if of_flow != schema {
                return Err(StateError::value("flows", of_flow, format!("of schema {schema}, as the function")));
            }
            self.flows.push(FlowState::from_bytes(reader.filled("flows", length)?, layout)?);
        }
        for _ in 0..due {
            self.due.push(FlowId(word(reader, "due")?));
        }
        Ok(())
    }

    /// Checks what is not told by one flow alone.
    pub(super) fn check(&self, program: &Program) -> Result<(), StateError> {
        let wrong = |field: &str, expected: &str| Err(StateError::value(field, "otherwise", expected));
        if self.counts.rows.len() != program.image.rows.len() {
            return wrong("rows", "a count for each row of the image");
        }
        if self.turns.len() != program.image.turns.len() {
            return wrong("turns", "those of the image");
        }
        if self.last_made > self.time {
            return wrong("last made", "not behind `time`");
        }
        let counts = &self.counts;
        let single = [
            self.last_flow,
            self.activities,
            counts.frames_in,
            counts.frames_out,
            counts.frames_passed,
            counts.flows_created,
            counts.flows_peak,
            counts.flows_expired,
            counts.flows_evicted,
        ];
        if single.iter().chain(&counts.rows).chain(counts.drops.values()).any(|count| *count >= TOO_MANY) {
            return wrong("counts", &format!("less than {TOO_MANY}"));
        }
        let numbers = self.flows.iter().map(|state| state.flow);
        if !numbers.is_sorted_by(|one, other| one < other)
            || self.flows.iter().any(|state| state.flow.0 > self.last_flow)
        {
            return wrong("flows", "by their numbers, up to `last flow`");
        }
        if self.listening.len() > MOST_LISTENING {
            return wrong("listening", &format!("at most {MOST_LISTENING}"));
        }
        if !self.made_then.is_sorted_by(|one, other| one.0 < other.0)
            || self
                .made_then
                .iter()
                .any(|(key, count)| key.len() != program.key_length() || !(1..TOO_EARLY).contains(count))
        {
            return wrong("made then", "by keys of the image's length, each once, not 0 and less than 2^31");
        }
        Ok(())
    }
}

/// The latest input. In schemas before 3 stands the time that no input may be earlier than.
fn latest_input(reader: &mut Reader<'_, '_>, schema: u64) -> Result<Option<(Time, Input)>, StateError> {
    if schema < FUNCTION_SCHEMA {
        reader.lacks("latest input");
        reader.lacks("input at");
        let earliest = time(word(reader, "earliest")?);
        return Ok((earliest > Time::ZERO).then_some((earliest.after(-1), Input::Fire)));
    }
    let number = reader.word("latest input")?;
    let at = time(reader.word("input at")?);
    let input = match number {
        0 if at == Time::ZERO => return Ok(None),
        1 => Input::Change,
        2 => Input::Call,
        4 => Input::Fire,
        _ if number & !PORT_BITS == 3 => Input::Frame(Port((number >> PORT_SHIFT) as u16)),
        _ => return Err(StateError::value("latest input", number, "a kind of input")),
    };
    Ok(Some((at, input)))
}

fn word(reader: &mut Reader<'_, '_>, name: &str) -> Result<u64, StateError> {
    let bytes = reader.filled(name, WORD)?;
    Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
}
