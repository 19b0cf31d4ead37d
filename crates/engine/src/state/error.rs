//! Why bytes are no state, or a state has no place in an engine.

use weftwire_core::FlowId;
use weftwire_core::packet_parts::NoPacket;
use weftwire_image::layout::{OLDEST_STATE_SCHEMA, SEMANTICS_VERSION, STATE_SCHEMA};

/// Why a state was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StateError {
    /// The bytes begin otherwise than a state does.
    #[error("{what} begins otherwise: these bytes are something else")]
    Magic {
        /// What it should have been.
        what: &'static str,
    },
    /// Another version wrote it.
    #[error(
        "the state is of schema {schema} and semantics {semantics}; this version of weft reads schemas {OLDEST_STATE_SCHEMA} \
         to {STATE_SCHEMA} of semantics {SEMANTICS_VERSION}: take it with a `weft` of this version"
    )]
    Version {
        /// Its schema.
        schema: u64,
        /// Its semantics.
        semantics: u64,
    },
    /// It ends too early.
    #[error("the state ends within `{field}`, {missing} bytes too early: the file was cut off")]
    Truncated {
        /// The field.
        field: String,
        /// Bytes that are missing there.
        missing: usize,
    },
    /// Something stands behind its end.
    #[error("{bytes} bytes stand behind the end of the state")]
    Behind {
        /// How many.
        bytes: usize,
    },
    /// It is of another image.
    #[error(
        "the state is of the image {found}, the function's image is {expected}: use the image that it was taken from"
    )]
    Image {
        /// The digest in the state.
        found: String,
        /// The function's own.
        expected: String,
    },
    /// A field holds what it never can.
    #[error("`{field}` is {found}; it must be {expected}")]
    Value {
        /// The field, or the section's entry.
        field: String,
        /// What it holds.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// A stored packet is none.
    #[error("packet `{slot}`: {problem}")]
    Packet {
        /// The slot.
        slot: String,
        /// What is wrong.
        problem: NoPacket,
    },
    /// The ends are those of another flow key.
    #[error("the flow key is not that of the flow's ends")]
    Key,
    /// The key has a flow here.
    #[error("flow {0} has this flow key here: delete it first, or take the other one away")]
    Exists(FlowId),
    /// There is no room.
    #[error("the flow table is full: it has {0} flows")]
    TableFull(usize),
    /// Too many timers of all flows together.
    #[error("there is no room for {0} more timers")]
    TooManyTimers(usize),
    /// Too many packets of all flows together (rule L3).
    #[error("there is no room for {packets} more stored packets: {stored} of {most} are here already")]
    TooManyPackets {
        /// Those of the flow.
        packets: usize,
        /// Those that are here.
        stored: usize,
        /// As many as the engine has room for.
        most: usize,
    },
    /// Too many flows that wait for a turn.
    #[error("no other flow may wait for `{0}` here: as many do as the image allows")]
    TurnsFull(String),
    /// Too many sets of keys.
    #[error("flows of {0} different runs are here already, as many as there may be")]
    TooManyKeys(usize),
    /// A function that has flows can not become another one.
    #[error("the function has been at work: the state of a whole function goes into a new one")]
    NotNew,
}

impl StateError {
    /// A field that holds what it never can.
    pub(super) fn value(
        field: impl Into<String>,
        found: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> StateError {
        StateError::Value { field: field.into(), found: found.to_string(), expected: expected.into() }
    }
}
