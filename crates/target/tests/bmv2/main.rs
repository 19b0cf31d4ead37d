//! Programs for switches against the tables they were made of: interpreters of bmv2's JSON and of P4_16, for v1model and for
//! Tofino, run packets with entries of bmv2's command line, of P4Runtime and of bfrt.

mod bfrt;
mod cases;
mod commands;
#[path = "../../../subscribe/tests/common/mod.rs"]
mod common;
mod loader;
mod network;
mod p4;
mod p4runtime;
#[path = "../../../route/tests/route_common/mod.rs"]
mod route_common;
mod simple_switch;
mod texts;
mod vm;
