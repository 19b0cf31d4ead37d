//! Programs for switches against the tables they were made of: an interpreter of bmv2's JSON of its own runs packets, with
//! entries of bmv2's command line or of P4Runtime.

mod cases;
mod commands;
mod p4runtime;
mod simple_switch;
mod texts;
mod vm;
