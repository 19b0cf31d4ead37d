//! Publish/subscribe over a network of packet subscriptions: a library for clients, and a bridge for clients of Kafka.
//!
//! A message is one UDP datagram ([`message`]), so that switches (`weft subs run`) forward it by rules about its topic,
//! partition, key and number. [`client`] sends and receives messages through sockets. [`kafka`] is a broker to clients
//! of Kafka: what they produce goes into the network, what comes from it they consume.
//!
//! Nobody keeps a message or sends it again: what is lost on the way stays lost. [`streams`] tells that something was.
#![forbid(unsafe_code)]

pub mod client;
pub mod kafka;
pub mod message;
pub mod streams;
pub mod topic;
