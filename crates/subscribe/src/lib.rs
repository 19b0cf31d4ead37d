//! Packet subscriptions: filters compiled to forwarding.

pub mod route;
