//! The calls of sockets for machines written in XL, in virtual time and without threads, so that conformance suites which were
//! written for other stacks can drive them. `docs/conformance.md` is the page for users.
//!
//! - [`Host`] is the core: a machine with a clock, a line, and the sockets of its applications. It does no input or output.
//! - [`Setup`] makes one from a file and parameters.
//! - `include/weft_shim.h` declares the calls for C; [`abi`] defines them, and the table of callbacks that packetdrill asks for.
//!
//! Nothing happens by itself: time passes when [`Host::advance`] says so, or while a call waits in [`Host::wait`]. A call that
//! has to wait is an entry in the host, which completes it at the very instant of virtual time at which it can go on. So what
//! applications see does not depend on when their threads run.
#![deny(unsafe_code)]

pub mod abi;
mod call;
mod calls;
mod connection;
mod errno;
mod filter;
mod host;
mod info;
mod machine;
mod option;
mod readiness;
mod setup;
mod socket;

pub use call::{Answer, Call, Completion, Patience, Progress, Ticket};
pub use errno::Errno;
pub use host::{Departed, Host};
pub use info::TcpInfo;
pub use option::{OptionValue, SocketOption};
pub use readiness::{Interest, Watch};
pub use setup::{Setup, SetupError};
pub use socket::{Family, Fd, Side};
