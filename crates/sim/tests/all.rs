//! The tests of the simulator in one program, so that what they share is compiled once. Those of the TCP stand beside it.

mod network_common;

mod chaos;
mod chaos_faults;
mod network_credits;
mod network_functions;
mod network_hosts;
mod network_links;
mod network_messages;
mod network_own;
mod network_roce;
mod network_routing;
mod network_streams;
mod primitives;
mod repeat;
mod replay;
mod rfc9743;
mod tcp_peer;
