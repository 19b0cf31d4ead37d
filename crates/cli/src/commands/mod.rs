//! The subcommands.

pub mod check;
pub mod compile;
pub mod debug;
pub mod flows;
pub mod run;
