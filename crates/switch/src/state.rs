//! All that a switch knows besides its rules, as a value: windows, what actions remember, counts. Put into another switch with
//! the same rules, it goes on as the first one would have.
//!
//! The bytes: [`MAGIC`], the schema, then the fields of [`SwitchState`] in their order. Numbers are little-endian; a list
//! or a text has its length in front, 4 bytes; lists are sorted by their texts. So equal states have equal bytes.

use std::collections::BTreeMap;
use weftwire_core::fields::Fields;
use weftwire_core::live::Clocks;
use weftwire_core::{Port, Time};
use weftwire_subscribe::window::Window;

/// What a state begins with.
pub const MAGIC: [u8; 8] = *b"WEFTSWCH";
/// The schema of the bytes.
pub const SCHEMA: u32 = 2;

/// The rules that a switch has, for whoever keeps them to name.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RulesName {
    /// Which of the rule sets that came one after the other it is.
    pub revision: u64,
    /// Digest of the rules.
    pub digest: [u8; 32],
}

/// The state of a switch.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SwitchState {
    /// The rules that it belongs to.
    pub rules: RulesName,
    /// The ports that the logical up port stands for.
    pub up: Vec<Port>,
    /// The time of the latest input.
    pub time: Time,
    /// How its time stands to clocks, if it has to do with any.
    pub clocks: Option<Clocks>,
    /// Frames that came in, frames that went out, messages, messages that no rule matched.
    pub counts: [u64; 4],
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// What actions count.
    pub notes: BTreeMap<String, u64>,
    /// How often each of the application's actions was taken, by its text.
    pub calls: BTreeMap<String, u64>,
    /// What actions remember, by their texts.
    pub memories: BTreeMap<String, u64>,
    /// The windows, by what they are of.
    pub windows: BTreeMap<String, Window>,
}

/// Why a state can't go on in a switch. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SwitchStateError {
    /// The bytes are something else.
    #[error("the state of a switch begins otherwise")]
    NoState,
    /// Another version wrote it.
    #[error("the state is of schema {0}; schema {SCHEMA} is read")]
    Schema(u32),
    /// The bytes end too early, go on behind the end, or are not as they are written.
    #[error("the state is damaged in its {0}")]
    Damaged(&'static str),
    /// It belongs to other rules.
    #[error("the state belongs to other rules (revision {state}) than the switch has (revision {here})")]
    OtherRules {
        /// The state's revision.
        state: u64,
        /// The switch's.
        here: u64,
    },
    /// The rules have no such window or action.
    #[error("the rules of this switch have no {0}")]
    Unknown(String),
}

impl SwitchState {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(SCHEMA.to_le_bytes());
        bytes.extend(self.rules.revision.to_le_bytes());
        bytes.extend(self.rules.digest);
        bytes.extend((self.up.len() as u32).to_le_bytes());
        self.up.iter().for_each(|port| bytes.extend(port.0.to_le_bytes()));
        bytes.extend(self.time.nanoseconds().to_le_bytes());
        bytes.push(self.clocks.is_some().into());
        if let Some(Clocks { boot, monotonic, tai }) = self.clocks {
            bytes.extend(boot);
            bytes.extend(monotonic.to_le_bytes());
            bytes.extend(tai.to_le_bytes());
        }
        self.counts.iter().for_each(|count| bytes.extend(count.to_le_bytes()));
        for numbers in [&self.drops, &self.notes, &self.calls, &self.memories] {
            put_map(&mut bytes, numbers, |bytes, number| bytes.extend(number.to_le_bytes()));
        }
        put_map(&mut bytes, &self.windows, |bytes, window| {
            window.to_words().iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        });
        bytes
    }

    /// Reads the canonical bytes, which may come from anywhere.
    ///
    /// # Errors
    /// See [`SwitchStateError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SwitchState, SwitchStateError> {
        let mut fields = Fields::new(bytes);
        if fields.take(MAGIC.len()) != Some(&MAGIC) {
            return Err(SwitchStateError::NoState);
        }
        let schema = fields.u32().ok_or(SwitchStateError::NoState)?;
        if schema != SCHEMA {
            return Err(SwitchStateError::Schema(schema));
        }
        let damaged = SwitchStateError::Damaged;
        let revision = fields.u64().ok_or(damaged("rules"))?;
        let rules = RulesName { revision, digest: fields.array().ok_or(damaged("rules"))? };
        let up = ports(&mut fields).ok_or(damaged("up ports"))?;
        let time = Time::from_nanoseconds(fields.u64().ok_or(damaged("time"))? as i64);
        let clocks = clocks(&mut fields).ok_or(damaged("clocks"))?;
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = fields.u64().ok_or(damaged("counts"))?;
        }
        let mut numbers = |what| map(&mut fields, Fields::u64).ok_or(damaged(what));
        let drops = numbers("drops")?;
        let notes = numbers("notes")?;
        let calls = numbers("actions")?;
        let memories = numbers("memories of actions")?;
        let windows = map(&mut fields, window).ok_or(damaged("windows"))?;
        let state = SwitchState { rules, up, time, clocks, counts, drops, notes, calls, memories, windows };
        if fields.is_empty() { Ok(state) } else { Err(damaged("end")) }
    }
}

fn put_map<T>(bytes: &mut Vec<u8>, map: &BTreeMap<String, T>, put: impl Fn(&mut Vec<u8>, &T)) {
    bytes.extend((map.len() as u32).to_le_bytes());
    for (text, value) in map {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        put(bytes, value);
    }
}

fn ports(fields: &mut Fields<'_>) -> Option<Vec<Port>> {
    let count = fields.u32()? as usize;
    let ports = fields.take(count.checked_mul(2)?)?;
    Some(ports.chunks_exact(2).map(|port| Port(u16::from_le_bytes([port[0], port[1]]))).collect())
}

/// Clocks, if there are any.
fn clocks(fields: &mut Fields<'_>) -> Option<Option<Clocks>> {
    match fields.u8()? {
        0 => Some(None),
        1 => {
            let (boot, monotonic, tai) = (fields.array()?, fields.u64()? as i64, fields.u64()? as i64);
            Some(Some(Clocks { boot, monotonic, tai }))
        }
        _ => None,
    }
}

fn window(fields: &mut Fields<'_>) -> Option<Window> {
    let mut words = [0; Window::WORDS];
    for word in &mut words {
        *word = fields.u64()?;
    }
    Some(Window::from_words(words))
}

/// A sorted list by texts: an entry that is not behind the one before makes other bytes than were written.
fn map<'a, T>(fields: &mut Fields<'a>, read: impl Fn(&mut Fields<'a>) -> Option<T>) -> Option<BTreeMap<String, T>> {
    let count = fields.u32()?;
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let text = String::from_utf8(fields.bytes()?.to_vec()).ok()?;
        if map.last_key_value().is_some_and(|(last, _)| *last >= text) {
            return None;
        }
        map.insert(text, read(fields)?);
    }
    Some(map)
}
