//! A network from network namespaces, joined by veth pairs over a relay that treats packets as the simulator's links do.
//!
//! [`supervisor`] makes a network and holds it ([`supervisor::hold`]), or makes it for one run ([`run::run`]); both note
//! in [`state`] what they are about to make, so that [`supervisor::down`] can remove it whatever happened. [`relay`] says
//! what is emulated and how late. `docs/namespaces.md` is the page for users.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a platform: this is where clocks, files and sockets live"
)]

pub mod build;
mod captures;
mod drops;
pub mod error;
pub mod functions;
pub mod lateness;
pub mod memory;
mod process;
pub mod relay;
mod routing;
pub mod run;
pub mod state;
pub mod supervisor;
mod traffic;
