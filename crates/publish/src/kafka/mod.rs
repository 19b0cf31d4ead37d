//! A broker to clients of Kafka, for messages that come from the network and go into it.
//!
//! [`broker`] is the broker without sockets and without a clock: it takes [`request`]s and gives [`response`]s.
//! [`server`] connects it to clients and to the network.
//!
//! The protocol's messages are read by code of this crate, not by a library made from Kafka's descriptions of them: what
//! clients send is checked against what is there before anything is allocated for it, and the versions that every client since
//! Kafka 2.1 knows need none of the later ones' compact forms. Tests hold it against such a library.

pub mod batch;
pub mod broker;
pub mod group;
pub mod log;
mod memory;
pub mod producers;
pub mod request;
pub mod response;
pub mod server;
pub mod wire;
