//! `weft bench`: what this machine can do.

mod pacing;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Measure this machine.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure how exactly packets are paced, and many flows at once.
    Pacing(pacing::Arguments),
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Pacing(arguments) => pacing::execute(arguments),
    }
}
