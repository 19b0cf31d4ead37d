//! `weft subs snapshot`: the state of a running switch.

use crate::states;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weftwire_linux::control_client::ControlClient;

/// Write down what a running switch knows besides its rules, at one instant: windows, what actions remember, counts. The run goes
/// on; `weft subs run --from` begins with it.
#[derive(Args)]
pub struct Arguments {
    /// The run's control socket [default: the only one there is]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Write to this file, which only its owner may read [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let mut client = ControlClient::connect(arguments.control.as_deref())?;
    states::write_whole(&mut client, arguments.out)
}
