//! Changes from outside while a function runs: images, rules, tables, registers, flows, ports.
//!
//! A command is an input like any other: it comes in between two batches, has a time, and its answer is an output. So a run
//! that was changed can be replayed. What takes long (to compile rules, to lay out tables) is done before, elsewhere; the
//! function only exchanges what it has for what was prepared, and puts the old into its outbox's leftovers, so that it is
//! freed elsewhere too.

use crate::flow::FlowId;
use crate::function::Function;
use crate::live::Clocks;
use crate::outbox::{Outbox, Output};
use crate::port::{LinkType, Port};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;

/// What is to change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A register of a flow gets a value, cut to its type.
    SetRegister {
        /// The flow.
        flow: FlowId,
        /// The register's name.
        register: String,
        /// Its new value.
        value: i64,
    },
    /// An entry of a look-up table gets a value.
    SetEntry {
        /// The table's name.
        table: String,
        /// The entry's index, as a machine reads it.
        index: i64,
        /// Its new value.
        value: i64,
    },
    /// Registers have other initial values: flows that live keep theirs, those to come begin with these.
    SetParameters {
        /// Names of registers, and values as they are written for their types: `timeout`, `200ms`.
        parameters: Vec<(String, String)>,
    },
    /// A flow ends with its timers and packets; its application is not told.
    Delete {
        /// The flow.
        flow: FlowId,
    },
    /// A flow's state is taken out: it ends here, to go on elsewhere.
    Take {
        /// The flow.
        flow: FlowId,
        /// The clocks of the function's time, if it has any.
        clocks: Option<Clocks>,
    },
    /// A flow that was taken out goes on here: its time and its keys as they were, and its number if no other flow has it.
    Adopt {
        /// Its state, as [`Change::Take`] has answered it. It may come from anywhere.
        state: Vec<u8>,
        /// The clocks of the function's time, if it has any.
        clocks: Option<Clocks>,
    },
    /// Other rules, as their text. Needs to be prepared.
    Rules {
        /// The rules as they are written in files.
        text: String,
    },
    /// Another machine image, in which the live flows go on. It is to be prepared: a function that has to make it ready itself
    /// holds up packets meanwhile.
    Image {
        /// The image's canonical document.
        document: String,
    },
    /// Another chain for a session that runs: of chain agents.
    Chain {
        /// The session.
        flow: FlowId,
        /// The agent of its chain up to which it changes, by number.
        right: u16,
        /// The boxes that are to be between, by the numbers of their agents.
        boxes: Vec<u16>,
    },
    /// Something about a port.
    Port {
        /// The port.
        port: Port,
        /// What.
        change: PortChange,
    },
}

impl Change {
    /// What it changes, for messages.
    pub fn subject(&self) -> &'static str {
        match self {
            Change::SetRegister { .. } => "registers",
            Change::SetEntry { .. } => "tables",
            Change::SetParameters { .. } => "parameters",
            Change::Delete { .. } | Change::Take { .. } | Change::Adopt { .. } => "flows",
            Change::Rules { .. } => "rules",
            Change::Image { .. } => "images",
            Change::Chain { .. } => "chains",
            Change::Port { .. } => "ports",
        }
    }
}

/// What happens to ports, as far as the platform learns of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortChange {
    /// There is such a port now, or its frames begin with something else.
    Added {
        /// What its frames begin with.
        link: LinkType,
    },
    /// There is no such port any more.
    Gone,
    /// Frames can come and go again.
    Up,
    /// Frames neither come nor go: the interface is switched off, or away for now. The port stays.
    Down,
    /// The longest packet that can leave by it has another length.
    Mtu {
        /// Most bytes of a packet, without the Ethernet header.
        bytes: u32,
    },
}

/// What makes a change ready, on whatever thread: its result goes with the [`Command`].
pub type Preparation = Box<dyn FnOnce() -> Result<Box<dyn Any + Send>, ControlError> + Send>;

/// A change on its way into a function.
pub struct Command {
    /// The platform's number for it, which the answer repeats.
    pub number: u64,
    /// What is to change.
    pub change: Change,
    /// What was made of it off the data path.
    prepared: Option<Box<dyn Any + Send>>,
}

impl Command {
    /// A change that needs no preparation.
    pub fn new(number: u64, change: Change) -> Command {
        Command { number, change, prepared: None }
    }

    /// A change with what was prepared for it.
    pub fn prepared(number: u64, change: Change, prepared: Box<dyn Any + Send>) -> Command {
        Command { number, change, prepared: Some(prepared) }
    }

    /// What was prepared, if it is of this type.
    pub fn take_prepared<T: 'static>(&mut self) -> Option<Box<T>> {
        match self.prepared.take()?.downcast() {
            Ok(prepared) => Some(prepared),
            Err(other) => {
                self.prepared = Some(other);
                None
            }
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("number", &self.number).field("change", &self.change).finish_non_exhaustive()
    }
}

/// Has a function make a change that needs no preparation, at once. What the function put out before the answer is in the
/// outbox, and so is the answer.
///
/// # Errors
/// See [`ControlError`].
pub fn change(
    function: &mut (impl Function + ?Sized),
    now: Time,
    change: Change,
    out: &mut Outbox,
) -> Result<Done, ControlError> {
    carry_out(function, now, Command::new(0, change), out)
}

/// The same of a command, which may bring what was prepared for it.
///
/// # Errors
/// See [`ControlError`].
pub fn carry_out(
    function: &mut (impl Function + ?Sized),
    now: Time,
    command: Command,
    out: &mut Outbox,
) -> Result<Done, ControlError> {
    let (start, subject) = (out.items().len(), command.change.subject());
    function.control(now, command, out);
    let answer = out.items()[start..].iter().find_map(|output| match output {
        Output::Answered(answer) => Some(answer.result.clone()),
        _ => None,
    });
    answer.unwrap_or(Err(ControlError::Unsupported(subject)))
}

/// What became of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The command's number.
    pub number: u64,
    /// When it was carried out.
    pub at: Time,
    /// What came of it.
    pub result: Result<Done, ControlError>,
}

/// What a command that was carried out says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// It is done.
    Done,
    /// The flow that goes on here.
    Flow(FlowId),
    /// The state of the flow that was taken out.
    State(Vec<u8>),
}

/// Why a command was refused. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ControlError {
    /// No such flow.
    #[error("no flow {0}")]
    NoFlow(FlowId),
    /// No such register; the names that exist.
    #[error("no register `{name}`; there are: {known}")]
    NoRegister {
        /// What was asked for.
        name: String,
        /// What exists, comma-separated.
        known: String,
    },
    /// No such table, or no such entry in it.
    #[error("no entry {index} of a table `{table}`; there are: {known}")]
    NoEntry {
        /// The table that was asked for.
        table: String,
        /// The entry that was asked for.
        index: i64,
        /// The tables that exist with their first and last index, comma-separated.
        known: String,
    },
    /// The function has nothing of the kind.
    #[error("this function has no {0} to change")]
    Unsupported(&'static str),
    /// The function as a whole is no value.
    #[error("the state of this function as a whole can't be written down")]
    NoValue,
    /// The command came without what should have been prepared for it.
    #[error("the change was not prepared for this function")]
    Unprepared,
    /// What is to be adopted can't go on here, live flows can't go on in another image, or a machine has no such parameter.
    #[error("{0}")]
    Unfit(String),
}
