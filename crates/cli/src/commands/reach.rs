//! The process that connects for one that has given up its privileges.

use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weftwire_linux::reach::serve;

/// Connect to a socket whenever the process at standard input asks, and hand the connection over.
#[derive(Args)]
pub struct Arguments {
    /// The socket
    path: PathBuf,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    Ok(serve(&arguments.path)?)
}
