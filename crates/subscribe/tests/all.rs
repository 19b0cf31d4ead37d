//! The tests of subscriptions in one program, so that what they share is compiled once.

mod common;

mod budget;
mod exclusive;
mod fixtures;
mod formats;
mod incremental;
mod write;
