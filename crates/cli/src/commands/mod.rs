//! The subcommands.

pub mod debug;
pub mod flows;
pub mod run;
