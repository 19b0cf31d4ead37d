//! The tests of routing in one program, so that what they share is compiled once.

#[path = "../../subscribe/tests/common/mod.rs"]
mod common;
mod route_common;

mod algorithm;
mod cost;
mod filters;
mod packets;
mod trees;
mod updates;
