//! The platform `rtl`: images run by the SystemVerilog of `rtl/`, simulated clock by clock with Verilator.
//!
//! - [`encode()`] makes the words that a driver writes over the register bus, or says what the hardware lacks;
//! - [`Model`] builds the simulation once, starts it, loads the words and hands in frames;
//! - [`layout`] has the numbers that both sides share.
//!
//! The model runs as a process of its own and speaks over pipes, so this crate needs Verilator only when a model is started.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a platform builds and starts the model")]

mod encode;
pub mod layout;
mod model;

pub use encode::{EncodeError, Word, encode};
pub use model::{Clocks, Message, Model, ModelError, Response};
