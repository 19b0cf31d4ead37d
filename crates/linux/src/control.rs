//! The control socket: looking into a running function and changing it from outside.
//!
//! A unix stream socket; both ways one JSON document a line ([`Request`], [`Response`]). [`ControlServer`] is the run's
//! side, [`crate::control_client::ControlClient`] the other one.

pub use crate::control_server::ControlServer;
use crate::replacement::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weftwire_core::inspect::{Counters, FlowDetail, FlowPage};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{FlowId, Port};

/// Most clients at once; for one more the one that has been silent for longest goes.
pub const MAX_CLIENTS: usize = 16;
/// Longest request in bytes; a client that sends a longer one is turned away.
pub const MAX_REQUEST: usize = 4096;
/// Bytes of debug records kept for a client that does not read; further records are lost, and counted.
pub const MAX_PENDING: usize = 256 * 1024;
/// Most flows in one answer. Frames wait for it: some tens of microseconds.
pub const MAX_PAGE: usize = 32;

/// Longest state of a flow that a client may send, in bytes.
pub const MAX_STATE: usize = 16 << 20;
/// Bytes of a state in one request: with them it is no longer than [`MAX_REQUEST`].
pub const STATE_PART: usize = 2_880;
/// A page of states ends behind the one with which it has so many bytes.
pub const STATE_PAGE: usize = 64 * 1024;

/// What a client may ask.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The live flows, a page of them.
    Flows {
        /// Only those behind this one: the page before says from where it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FlowId>,
    },
    /// Everything about one flow.
    Flow {
        /// Which.
        flow: FlowId,
    },
    /// Sets a register of a flow.
    Set {
        /// Which flow.
        flow: FlowId,
        /// The register's name.
        register: String,
        /// Its new value.
        value: i64,
    },
    /// Gives registers other initial values, for flows to come.
    Parameters {
        /// Names of registers, and values as they are written for their types.
        parameters: Vec<(String, String)>,
    },
    /// Gives a session that runs another chain.
    Chain {
        /// Which session.
        flow: FlowId,
        /// The agent up to which it changes.
        right: u16,
        /// The agents of the boxes that are to be between.
        boxes: Vec<u16>,
    },
    /// Deletes a flow.
    Delete {
        /// Which.
        flow: FlowId,
    },
    /// The state of one flow, as bytes.
    State {
        /// Which flow.
        flow: FlowId,
        /// Take it out: it is in this function no more.
        #[serde(default)]
        take: bool,
    },
    /// The states of live flows, a page of them.
    States {
        /// Only those behind this one: the page before says from where it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FlowId>,
    },
    /// The state of the whole function, as bytes.
    Whole,
    /// Puts a flow in.
    Adopt {
        /// Its state, or a part of it: [`STATE_PART`] bytes at most.
        #[serde(with = "base64_string")]
        state: Vec<u8>,
        /// Another part follows with the next request.
        #[serde(default)]
        more: bool,
    },
    /// The counters of the function and of the ports.
    Counters,
    /// What a process has to know that is to replace this one. Only root may ask.
    Plan,
    /// This connection is that of a process that is to replace this one: from now on it carries other messages
    /// ([`crate::replacement`]). Only root may ask.
    Replace,
    /// Starts or stops a stream of debug records to this client.
    Debug {
        /// Start or stop.
        on: bool,
        /// All events, not only snapshots, samples and errors.
        #[serde(default)]
        events: bool,
    },
}

/// What the server answers. `trace` and `lost` come unasked while debugging is on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Live flows, at most [`MAX_PAGE`].
    Page(FlowPage),
    /// Everything about one flow.
    Flow(Box<FlowDetail>),
    /// States of flows.
    States(StatePage),
    /// The state of the whole function.
    Whole {
        /// Its bytes.
        #[serde(with = "base64_string")]
        state: Vec<u8>,
    },
    /// A flow is in the function now, with this number.
    Adopted {
        /// The flow.
        flow: FlowId,
    },
    /// The counters of the function and of the ports.
    Counters(RunCounters),
    /// What a process has to know that is to replace this one.
    Plan(Box<Plan>),
    /// It was done.
    Done {},
    /// It was not done, and why.
    Error(String),
    /// A debug record.
    Trace(Box<TraceRecord>),
    /// So many debug records were lost here, as the client did not read them in time.
    Lost(u64),
}

/// Some states of flows, each as it was when it was written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StatePage {
    /// The states.
    pub states: Vec<State>,
    /// Where the next page begins: behind this flow. `None`: there is none.
    pub next: Option<FlowId>,
}

/// The state of a flow. It holds payload and keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// The flow.
    pub flow: FlowId,
    /// Its bytes.
    #[serde(with = "base64_string")]
    pub bytes: Vec<u8>,
}

/// Bytes in JSON.
mod base64_string {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        BASE64_STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// What a run counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunCounters {
    /// The function's own counts.
    #[serde(flatten)]
    pub function: Counters,
    /// The ports.
    #[serde(default)]
    pub ports: Vec<PortStatus>,
}

/// How a port is, and what happened on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PortStatus {
    /// The port.
    pub port: Port,
    /// Its interface.
    pub interface: String,
    /// Whether frames can come and go.
    pub condition: Condition,
    /// How often the interface was gone.
    pub times_gone: u64,
    /// Frames received.
    pub frames_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Frames that the kernel dropped because the run did not take them in time.
    pub kernel_drops: u64,
    /// Frames that could not be sent, by reason.
    pub not_sent: BTreeMap<String, u64>,
}

/// How an interface is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// There and up.
    #[default]
    Up,
    /// There, and administratively down.
    Down,
    /// Not there, or not the same kind of interface any more.
    Gone,
}

impl Condition {
    /// As a word.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Up => "up",
            Condition::Down => "down",
            Condition::Gone => "gone",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_plain_form() {
        let read = |text: &str| serde_json::from_str::<Request>(text);
        assert_eq!(read(r#"{"request":"flow","flow":3}"#).unwrap(), Request::Flow { flow: FlowId(3) });
        assert_eq!(read(r#"{"request":"flows"}"#).unwrap(), Request::Flows { after: None });
        assert_eq!(read(r#"{"request":"flows","after":32}"#).unwrap(), Request::Flows { after: Some(FlowId(32)) });
        assert_eq!(read(r#"{"request":"debug","on":true}"#).unwrap(), Request::Debug { on: true, events: false });
        assert!(read(r#"{"request":"flow","flow":3,"more":1}"#).is_err());
        assert_eq!(serde_json::to_string(&Response::Done {}).unwrap(), r#"{"done":{}}"#);
        let part = Request::Adopt { state: b"WEFT".to_vec(), more: false };
        assert_eq!(read(r#"{"request":"adopt","state":"V0VGVA=="}"#).unwrap(), part);
        assert!(read(r#"{"request":"adopt","state":"V0VG="}"#).is_err());
        let longest = Request::Adopt { state: vec![255; STATE_PART], more: true };
        assert!(serde_json::to_string(&longest).unwrap().len() < MAX_REQUEST);
    }

    #[test]
    fn counters_of_functions_and_ports_are_one_document() {
        let port = PortStatus {
            port: Port(2),
            interface: "eth1".into(),
            condition: Condition::Gone,
            times_gone: 1,
            frames_in: 3,
            frames_out: 4,
            kernel_drops: 0,
            not_sent: BTreeMap::from([("interface gone (ENXIO)".to_owned(), 5)]),
        };
        let counters = RunCounters { function: Counters { frames_in: 3, ..Counters::default() }, ports: vec![port] };
        let text = serde_json::to_string(&Response::Counters(counters.clone())).unwrap();
        assert!(text.starts_with(r#"{"counters":{"frames_in":3,"#) && text.contains(r#""condition":"gone""#), "{text}");
        assert_eq!(serde_json::from_str::<Response>(&text).unwrap(), Response::Counters(counters));
    }
}
