//! What every layer of Weftwire shares: packets and their header formats, checksums, flow endpoints, time,
//! ports, captures, and the [`Function`] trait that all network functions implement and all platforms run.
//!
//! Nothing here reads a clock, opens a socket or draws a random number.
#![forbid(unsafe_code)]

pub mod function;
pub mod inspect;
pub mod port;
pub mod time;
pub mod trace;

pub use function::{CallError, Deadline, DropReason, Endpoints, FlowId, Function, Outbox, Output};
pub use port::{Frame, LinkType, Offload, Port, Segmentation};
pub use time::Time;
