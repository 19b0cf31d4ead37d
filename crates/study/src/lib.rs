//! The hash calendar of hardware, as models that are measured.
//!
//! A [`Model`] holds timers as one design of a hardware calendar would: [`Bucketed`] is the published table of four times 4,096
//! slots with insertion at the next tick, and with other parameters everything better that is made of rows and ways; [`Cuckoo`]
//! moves timers out of the way; [`TickMap`] finds the next free tick in a hierarchical bitmap; [`AsPublished`] loses timers as the
//! published source does. All count what an insertion costs.
//!
//! [`plan`](study::plan) says which [`Case`](study::Case)s a study has, [`Case::run`](study::Case::run) runs one, and
//! [`Study`](study::Study) puts them together as tables and pictures. All of it is a pure function of the seed.
//!
//! After Pontarelli, Bianchi and Welzl, "A Programmable Hardware Calendar for High Resolution Pacing", sections IV and V.
#![forbid(unsafe_code)]

pub mod applications;
mod as_published;
mod bucketed;
mod cuckoo;
mod design;
mod dice;
mod experiment;
pub mod fct;
mod hash;
mod model;
mod report;
pub mod sheet;
pub mod study;
pub mod subscriptions;
pub mod theory;
mod tick_map;

pub use as_published::AsPublished;
pub use bucketed::{Bucketed, Choice, Direction, Drain, Shape};
pub use cuckoo::Cuckoo;
pub use design::{Design, Structure};
pub use dice::Dice;
pub use experiment::{Arrivals, OneTick, Tally, Trial, one_tick};
pub use hash::{Hash, Hasher};
pub use model::{Model, Placed, Refusal, Tick};
pub use tick_map::TickMap;
