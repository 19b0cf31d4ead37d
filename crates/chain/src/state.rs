//! What an agent knows, as a value that another run can go on with.

use crate::session::Session;
use crate::windows::Windows;
use serde::{Deserialize, Serialize};
use weftwire_core::Time;
use weftwire_core::live::Clocks;

/// The version of the written form.
const VERSION: u32 = 1;

/// All that an agent knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentState {
    /// The agent's number.
    pub agent: u16,
    /// The time of its latest input.
    pub time: Time,
    /// Its sessions.
    pub sessions: Vec<Session>,
    /// Messages that have come.
    pub windows: Windows,
    /// The next session's number within the agent.
    pub next_flow: u64,
    /// The latest counter of its own messages.
    pub next_counter: u64,
    /// The next tag.
    pub next_tag: u32,
    /// Where the search for free ports goes on.
    pub next_port: u32,
}

/// Why an agent can't go on with a state.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StateError {
    /// It is that of another agent.
    #[error("the state is that of agent {0}")]
    OtherAgent(u16),
    /// It is no state, or of another version.
    #[error("this is no state of a chain agent: {0}")]
    Unreadable(String),
}

#[derive(Serialize, Deserialize)]
struct Written<S> {
    chain_agent: u32,
    clocks: Option<Clocks>,
    state: S,
}

impl AgentState {
    /// The written form: JSON.
    pub fn to_bytes(&self, clocks: Option<&Clocks>) -> Vec<u8> {
        let written = Written { chain_agent: VERSION, clocks: clocks.copied(), state: self };
        serde_json::to_vec(&written).expect("all of it has a written form")
    }

    /// Reads the written form, and how time stood to the machine's clocks.
    ///
    /// # Errors
    /// [`StateError::Unreadable`].
    pub fn from_bytes(bytes: &[u8]) -> Result<(AgentState, Option<Clocks>), StateError> {
        let written: Written<AgentState> =
            serde_json::from_slice(bytes).map_err(|error| StateError::Unreadable(error.to_string()))?;
        if written.chain_agent != VERSION {
            return Err(StateError::Unreadable(format!("its version is {}", written.chain_agent)));
        }
        Ok((written.state, written.clocks))
    }
}
