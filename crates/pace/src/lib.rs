//! Pacing from any rate envelope.
//!
//! An [`Envelope`] says how fast packets may go: a formula for the rate, for the packets sent or for the time of a packet, a
//! table of rates, or a named shape. A [`Solver`] gives the time of each packet: of `n - n0 = ∫R` it finds T(n), in closed
//! form where there is one. [`compile`] makes of it an [`Evolution`], the fixed-point table that a calendar's evolution block
//! runs, [`EvolutionBlock`] is that block to the bit, and [`measure`] compares both.
//!
//! The crate is pure: the same text gives the same bits on every machine, as all its transcendental functions come from
//! `libm`. After Pontarelli, Bianchi and Welzl, "A Programmable Hardware Calendar for High Resolution Pacing", section III.
#![forbid(unsafe_code)]

pub mod bytes;
mod cells;
pub mod envelope;
pub mod evolution;
mod expression;
pub mod fault;
mod fit;
mod formula;
mod interval;
mod lexer;
pub mod memory;
mod modes;
pub mod pieces;
pub mod polynomial;
pub mod report;
mod series;
mod shape;
pub mod solve;
pub mod table;
mod wide;

pub use envelope::{Envelope, Setting, Shape, TimeUnit};
pub use evolution::EvolutionBlock;
pub use fault::{Fault, SolveError};
pub use formula::parse;
pub use report::{Report, measure, measure_watched};
pub use solve::Solver;
pub use table::{Evolution, Form, Options, Watch, compile, compile_watched};
