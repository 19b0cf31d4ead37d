//! The Linux platform: runs any [`weftwire_core::Function`] on real ports in real time.
//!
//! Start reading at [`run_loop`]: one thread takes batches of frames from [`port`]s, hands them to the function
//! with the monotonic clock's time, and sends what the function puts into its outbox. [`vnet`] explains how
//! checksum and segmentation offloads pass through unharmed, `xdp` how frames stay in memory that the kernel shares. `docs/linux.md` is the page for users.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a platform: this is where clocks, files and sockets live"
)]

pub mod application;
pub mod commands;
pub mod control;
pub mod control_client;
mod control_server;
mod control_states;
pub mod datagrams;
pub mod device;
mod error;
pub mod ethtool;
pub mod files;
pub mod hub_socket;
pub mod interface;
mod link;
pub mod local;
pub mod memory;
mod memory_file;
mod messages;
pub mod namespace;
pub mod netlink;
pub mod pacer;
pub mod packet_socket;
pub mod places;
pub mod port;
pub mod privileges;
pub mod reach;
pub mod recorder;
pub mod replacement;
pub mod report;
mod ring;
pub mod run_loop;
pub mod session;
pub mod signals;
pub mod socket_address;
pub mod system;
mod systemd;
pub mod tape;
mod transmit;
pub mod transport;
mod tuntap;
pub mod vnet;
mod xdp;

pub use device::PortSpec;
pub use error::LinuxError;
pub use port::FramePort;
pub use system::{processor_seconds, random_words};
pub use transport::Transport;
