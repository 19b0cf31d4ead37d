//! A network from network namespaces, joined by veth pairs over a relay that treats packets as the simulator's links do.
mod build;
mod captures;
mod command;
mod hub_socket;
mod lateness;
mod relay;
pub mod state;
