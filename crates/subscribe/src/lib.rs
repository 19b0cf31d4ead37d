//! Packet subscriptions: filters on messages, compiled to tables that forward them.
//!
//! After "Forwarding and Routing With Packet Subscriptions" (IEEE/ACM Transactions on Networking). The way of a rule:
//!
//! 1. [`formats`] says which fields messages have, [`rules`] reads filters and actions;
//! 2. [`clauses`] brings filters into disjunctive normal form;
//! 3. [`compiler`] makes one [`diagram`] of all rules, all at once or rule by rule;
//! 4. [`tables`] slices it into stages that switches can hold, and counts what they cost;
//! 5. [`evaluate`] says what rules mean, [`switch`] what the tables do; tests hold one against the other.
//!
//! Other crates take packets through the tables (`switch`), write them for other switches (`target`), and say which
//! filters each switch of a network has (`route`).
//!
//! Nothing here reads a clock, a file or a random source.
#![forbid(unsafe_code)]

pub mod budget;
pub mod check;
pub mod clauses;
pub mod compiler;
pub mod cost;
pub mod diagram;
pub mod document;
pub mod evaluate;
pub mod formats;
pub mod graph;
pub mod message;
pub mod order;
pub mod packet;
mod pieces;
pub mod rules;
pub mod show;
pub mod subscriptions;
pub mod switch;
pub mod tables;
mod trie;
pub mod values;
mod variable;
pub mod watch;
pub mod window;
pub mod write;

pub use budget::{Budget, CompileError};
pub use compiler::{Actions, Compiler, Options, RuleId, Variable};
pub use formats::MessageFormats;
pub use message::Message;
pub use rules::{Rule, read_rules};
pub use watch::Watch;
