//! A flow's state from bytes, which may come from anywhere: every length is seen to be possible before memory is taken
//! for it.

use super::bytes::Reader;
use super::write::flags;
use super::{FlowState, Keys, RangesState, SegmentsState, StateError, TimerState, TurnState, packet};
use crate::run::Payload;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weftwire_core::live::Clocks;
use weftwire_core::{DropReason, Endpoints, FlowId, MacAddress, Time};
use weftwire_image::layout::{
    FLOW_MAGIC, LayoutSection, OLDEST_STATE_SCHEMA, SEMANTICS_VERSION, STATE_SCHEMA, StateLayout, WORD,
};

/// What every state of a flow begins with, of whatever image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateHead {
    /// SHA-256 of the image.
    pub image: [u8; 32],
    /// The boundary.
    pub time: Time,
    /// How its time stands to clocks.
    pub clocks: Option<Clocks>,
}

impl StateHead {
    /// Reads it.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn read(bytes: &[u8]) -> Result<StateHead, StateError> {
        header(bytes)?;
        let fields = weftwire_image::layout::head();
        let mut reader = Reader::new(bytes);
        reader.fields("", &fields);
        for known in ["magic", "schema", "semantics", "length"] {
            reader.word(known)?;
        }
        let (image, time) = (reader.string("image")?, time(reader.word("time")?));
        let clocks = clocks(&mut reader)?;
        for secret in ["hash key", "random key"] {
            reader.string::<16>(secret)?;
        }
        reader.word("flow")?;
        let known = reader.word("flags")? & flags::CLOCKS != 0;
        Ok(StateHead { image, time, clocks: known.then_some(clocks) })
    }
}

fn clocks(reader: &mut Reader<'_, '_>) -> Result<Clocks, StateError> {
    Ok(Clocks {
        boot: reader.string("boot")?,
        monotonic: reader.word("monotonic")? as i64,
        tai: reader.word("tai")? as i64,
    })
}

/// Bytes of the words that say what a state is and how long.
const HEAD: usize = 4 * WORD;

/// The head of a flow's state: how many bytes the whole has.
///
/// # Errors
/// The bytes are no state of a version that is read, or too few to say.
pub fn header(bytes: &[u8]) -> Result<usize, StateError> {
    version(bytes).map(|(_, length)| length)
}

/// The schema of a flow's state, and how many bytes the whole has.
pub(super) fn version(bytes: &[u8]) -> Result<(u64, usize), StateError> {
    let word = |at: usize| {
        let word = bytes.get(at * WORD..(at + 1) * WORD).and_then(|word| word.try_into().ok());
        let missing = HEAD.saturating_sub(bytes.len());
        word.map(u64::from_le_bytes).ok_or(StateError::Truncated { field: "length".into(), missing })
    };
    if word(0)?.to_le_bytes() != FLOW_MAGIC {
        return Err(StateError::Magic { what: "the state of a flow" });
    }
    let (schema, semantics) = (word(1)?, word(2)?);
    if !(OLDEST_STATE_SCHEMA..=STATE_SCHEMA).contains(&schema) || semantics != SEMANTICS_VERSION {
        return Err(StateError::Version { schema, semantics });
    }
    match word(3)? {
        length if length % WORD as u64 == 0 && length >= HEAD as u64 && length <= isize::MAX as u64 => {
            Ok((schema, length as usize))
        }
        length => Err(StateError::value("length", length, "a whole number of words")),
    }
}

impl FlowState {
    /// Reads the bytes of one state. Whether an engine has a place for it, and whether it makes sense there, is seen when
    /// it is restored.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn from_bytes(bytes: &[u8], layout: &StateLayout) -> Result<FlowState, StateError> {
        let (schema, length) = version(bytes)?;
        let layout = &*layout.of_schema(schema);
        if length > layout.longest() {
            return Err(StateError::value("length", length, format!("at most {} for this image", layout.longest())));
        }
        match length.checked_sub(bytes.len()) {
            Some(0) => {}
            Some(missing) => return Err(StateError::Truncated { field: "length".into(), missing }),
            None => return Err(StateError::Behind { bytes: bytes.len() - length }),
        }
        let mut reader = Reader::new(bytes);
        reader.fields("", &layout.fields);
        let (mut state, counts) = fixed(&mut reader, layout)?;
        for _ in 0..counts.drops {
            reader.fields("drops", &layout.drops.entry);
            let reason = reader.below("reason", DropReason::ALL.len() as u64)?;
            state.drops.push((DropReason::ALL[reason as usize], reader.word("count")?));
        }
        for number in 0..counts.timers {
            reader.fields(format!("timer {number}"), &layout.timers.entry);
            let mut timer = TimerState {
                due: time(reader.word("due")?),
                timer: reader.below("timer", 256)? as u8,
                depth: reader.below("depth", 1 << 16)? as u16,
                payload: Payload::default(),
            };
            for (value, (_, word)) in timer.payload.iter_mut().zip(reader.list("value ")?) {
                *value = word as i64;
            }
            state.timers.push(timer);
        }
        for (length, section) in counts.packets.into_iter().zip(&layout.packets) {
            let packet = (length > 0).then(|| packet::read(&mut reader, section, length)).transpose()?;
            state.packets.push(packet);
        }
        for (state, section) in state.ranges.iter_mut().zip(&layout.ranges) {
            for entry in &mut state.entries {
                reader.fields(section.name.as_str(), &section.entry);
                *entry = (reader.below("left", 1 << 32)? as u32, reader.below("right", 1 << 32)? as u32);
            }
        }
        state.held = reader.filled("receive buffer", counts.held)?.to_vec();
        for (state, section) in state.segments.iter_mut().zip(&layout.segments) {
            for (length, values) in &mut state.records {
                reader.fields(section.name.as_str(), &section.entry);
                *length = reader.below("length", 1 << 32)? as u32;
                *values = reader.list("")?.into_iter().map(|(_, value)| value as i64).collect();
            }
        }
        state.send_buffer = reader.filled("send buffer", counts.send_buffer)?.to_vec();
        match reader.rest().len() {
            0 => Ok(state),
            bytes => Err(StateError::Behind { bytes }),
        }
    }
}

/// How long the sections are.
#[derive(Default)]
struct Counts {
    drops: usize,
    timers: usize,
    packets: Vec<usize>,
    held: usize,
    send_buffer: usize,
}

fn fixed(reader: &mut Reader<'_, '_>, layout: &StateLayout) -> Result<(FlowState, Counts), StateError> {
    for known in ["magic", "schema", "semantics", "length"] {
        reader.word(known)?;
    }
    let mut state =
        FlowState { image: reader.string("image")?, time: time(reader.word("time")?), ..FlowState::default() };
    let clocks = clocks(reader)?;
    state.keys = Keys { hash: reader.string("hash key")?, random: reader.string("random key")? };
    state.flow = FlowId(reader.word("flow")?);
    let bits = reader.word("flags")?;
    if bits & !flags::ALL != 0 || bits & flags::ENDS == 0 && bits & (flags::IPV6 | flags::TAGGED) != 0 {
        return Err(StateError::value("flags", format!("{bits:#x}"), "made of the bits that have a meaning"));
    }
    state.closed = bits & flags::CLOSED != 0;
    state.open = bits & flags::OPEN != 0;
    state.clocks = (bits & flags::CLOCKS != 0).then_some(clocks);
    if state.clocks.is_none() && clocks != Clocks::default() {
        return Err(StateError::value(
            "boot",
            "not zero",
            "zero, as are `monotonic` and `tai`, where no clocks are known",
        ));
    }
    state.state = reader.below("state", 1 << 16)? as u16;
    state.created = time(reader.word("created")?);
    state.key = reader.part("key", layout.key_bytes)?.to_vec();
    state.earlier = reader.below("earlier", 1 << 32)? as u32;
    state.last_active = time(reader.word("last active")?);
    state.activity = reader.word("activity")?;
    state.rank = time(reader.word("rank")?);
    state.rank_activity = reader.word("rank activity")?;
    state.draws = reader.word("draws")?;
    state.endpoints = endpoints(reader, bits)?;
    state.events = reader.word("events")?;
    state.packets_in = reader.word("packets in")?;
    state.packets_out = reader.word("packets out")?;
    state.samples = reader.list("sample of ")?.into_iter().map(|(_, word)| time(word)).collect();
    state.registers = reader.list("register ")?.into_iter().map(|(_, word)| word as i64).collect();
    let count = |reader: &mut Reader<'_, '_>, section: &LayoutSection| {
        reader.below(&section.count, section.most as u64 + 1).map(|count| count as usize)
    };
    let mut counts = Counts {
        drops: count(reader, &layout.drops)?,
        timers: count(reader, &layout.timers)?,
        packets: layout.packets.iter().map(|section| count(reader, section)).collect::<Result<_, _>>()?,
        ..Counts::default()
    };
    let mut stores = 0;
    for section in &layout.ranges {
        let floor = one(reader, "floor ")? as u32;
        let entries = count(reader, section)?;
        stores += section.length(entries);
        state.ranges.push(RangesState { floor, entries: vec![(0, 0); entries] });
    }
    if let Some(section) = &layout.receive_buffer {
        state.unread = reader.below("unread", 1 << 32)? as u32;
        counts.held = count(reader, section)?;
        stores += section.length(counts.held);
    }
    for section in &layout.segments {
        let start = one(reader, "start ")? as u32;
        let records = count(reader, section)?;
        stores += section.length(records);
        state.segments.push(SegmentsState { start, records: vec![(0, Vec::new()); records] });
    }
    for words in reader.list("turn ")?.chunks(2) {
        let [(_, cost), (name, rank)] = *words else { continue };
        if cost == 0 && rank != 0 {
            return Err(StateError::value(name, rank, "0, as it does not wait"));
        }
        state.turns.push((cost > 0).then_some(TurnState { rank: rank as i64, cost: cost as i64 }));
    }
    counts.send_buffer = count(reader, &layout.send_buffer)?;
    let needed = stores
        + layout.drops.length(counts.drops)
        + layout.timers.length(counts.timers)
        + layout.packets.iter().zip(&counts.packets).map(|(section, count)| section.length(*count)).sum::<usize>()
        + layout.send_buffer.length(counts.send_buffer);
    match needed.checked_sub(reader.rest().len()) {
        Some(0) => Ok((state, counts)),
        Some(missing) => Err(StateError::Truncated { field: "sections".into(), missing }),
        None => Err(StateError::Behind { bytes: reader.rest().len() - needed }),
    }
}

fn endpoints(reader: &mut Reader<'_, '_>, bits: u64) -> Result<Option<Endpoints>, StateError> {
    let address = |bytes: [u8; 16]| match bits & flags::IPV6 {
        0 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        _ => IpAddr::V6(Ipv6Addr::from(bytes)),
    };
    let protocol = reader.below("protocol", 256)? as u8;
    let (local, remote) = (reader.string::<16>("local address")?, reader.string::<16>("remote address")?);
    let ends = Endpoints {
        protocol,
        local_address: address(local),
        remote_address: address(remote),
        local_port: reader.below("local port", 1 << 16)? as u16,
        remote_port: reader.below("remote port", 1 << 16)? as u16,
        local_mac: MacAddress(reader.string("local mac")?),
        remote_mac: MacAddress(reader.string("remote mac")?),
        vlan: Some(reader.below("vlan", 1 << 16)? as u16),
    };
    let more = |bytes: &[u8; 16]| bits & flags::IPV6 == 0 && bytes[4..] != [0; 12];
    if more(&local) || more(&remote) {
        return Err(StateError::value("local address", "longer than 4 bytes", "an IPv4 address, as is the remote one"));
    }
    if bits & flags::TAGGED == 0 && ends.vlan != Some(0) {
        return Err(StateError::value("vlan", "not 0", "0 for a flow that is not tagged"));
    }
    let ends = Endpoints { vlan: ends.vlan.filter(|_| bits & flags::TAGGED != 0), ..ends };
    if bits & flags::ENDS != 0 {
        return Ok(Some(ends));
    }
    let none = (protocol, local, remote, ends.local_port, ends.remote_port, ends.local_mac, ends.remote_mac)
        == (0, [0; 16], [0; 16], 0, 0, MacAddress::UNSPECIFIED, MacAddress::UNSPECIFIED);
    none.then_some(None)
        .ok_or_else(|| StateError::value("protocol", "not 0", "0, as all of the ends, for a flow without ends"))
}

pub(super) fn time(word: u64) -> Time {
    Time::from_nanoseconds(word as i64)
}

/// The next field, of one word, whose name begins so: a sequence number.
fn one(reader: &mut Reader<'_, '_>, names: &str) -> Result<u64, StateError> {
    match reader.next_of(names)? {
        (_, word) if word < 1 << 32 => Ok(word),
        (name, word) => Err(StateError::value(name, word, "a sequence number of 32 bits")),
    }
}
