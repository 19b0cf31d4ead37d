//! What every layer of Weftwire shares: packets and their header formats, checksums, flow endpoints, time,
//! ports, and the [`Function`] trait that all network functions implement and all platforms run.
//!
//! Nothing here reads a clock, opens a socket or draws a random number.
#![forbid(unsafe_code)]

pub mod bits;
pub mod buffer;
pub mod build;
pub mod checksum;
pub mod control;
mod drop_reason;
pub mod fields;
mod flow;
pub mod format;
pub mod function;
pub mod inspect;
mod invariant_crc;
mod layout;
pub mod live;
mod mac;
pub mod order;
pub mod outbox;
pub mod p4;
pub mod packet;
pub mod packet_parts;
pub mod port;
pub mod segment;
pub mod time;
pub mod trace;
pub mod wire;

pub use buffer::Buffer;
pub use build::{TemplateSpec, TemplateTransport};
pub use control::{Change, Command, ControlError};
pub use drop_reason::DropReason;
pub use flow::{Endpoints, FlowId};
pub use format::{FieldPlace, Format, FormatError, FormatField, FormatPlace, Formats, builtin_formats};
pub use function::{Arrival, Arrivals, CallError, Connections, Deadline, Function, Listen, ORPHAN, Placed, Ports};
pub use mac::{MacAddress, NoMacAddress};
pub use outbox::{Outbox, Output};
pub use packet::Packet;
pub use port::{Frame, LinkType, Offload, Port, Segmentation};
pub use segment::segments;
pub use time::{Time, nanoseconds};
