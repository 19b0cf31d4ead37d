//! The subcommands.

pub mod check;
pub mod compare;
pub mod compile;
pub mod debug;
pub mod down;
pub mod exec;
pub mod explain;
pub mod flows;
pub mod graph;
pub mod pace;
pub mod replay;
pub mod report;
pub mod run;
pub mod sim;
pub mod status;
pub mod up;
