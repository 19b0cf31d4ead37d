//! The tests of switches in one program, so that what they share is compiled once.

#[path = "../../subscribe/tests/common/mod.rs"]
mod common;

mod actions;
mod agreement;
mod corpus;
mod engine;
mod live;
mod machine;
mod state;
