//! Whole-system tests: real Linux kernels, joined by veth pairs, each in a network namespace of its own.
//!
//! A test takes its [`Turn`] with [`skip_unless_root`], makes a [`Lab`] (client - middle - server), starts an
//! [`Nginx`] in it, and looks at what arrives. Everything made is removed when it is dropped, also when the test panics;
//! what a killed test left behind is removed by the next one. Every wait has a deadline, and none is a fixed sleep.
//!
//! Tests of the command that need no kernel take a [`Terminal`] from here, and tests of pages their [`blocks`], tests of data paths a
//! [`CountingAllocator`], tests of the TCP in XL what [`standstill`] says.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "test support runs on a real machine: it starts processes, reads the clock and files"
)]

mod allocations;
mod fenced;
mod flood;
mod lab;
mod liveness;
mod namespace;
mod nginx;
mod ns3;
mod payload;
mod process;
mod terminal;
mod turn;
mod user;

pub use allocations::{CountingAllocator, allocations};
pub use fenced::{Block, blocks};
pub use flood::{Flood, FloodReport};
pub use lab::{CLIENT, Lab, Middle, Offloads, SERVER, SPOOFED_SOURCES};
pub use liveness::standstill;
pub use namespace::{Counters, Door, Namespace};
pub use nginx::Nginx;
pub use ns3::{Ns3, Overload, ns3_program, overload_network};
pub use payload::{Download, Payload, download, exchange, fetch, reset, sha256_of_file};
pub use process::{Output, Running, peak_resident_bytes, processor_seconds, resident_bytes, run, wait_for};
pub use terminal::Terminal;
pub use turn::{Turn, is_installed, skip_unless_installed, skip_unless_root};
pub use user::as_user;
