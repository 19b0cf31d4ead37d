//! `weft exec`: a command in a node's namespace.

use super::down::only;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use weftwire_lab::state::read;
use weftwire_linux::namespace::NetworkNamespace;

/// Run a command in a node of a network that is up. Terminal, signals and exit code are the command's own.
#[derive(Args)]
pub struct Arguments {
    /// The network's name [default: the only one there is]
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
    /// The node
    node: String,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command: returns only if that fails.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let name = only(arguments.network.as_deref())?;
    let state = read(&name)
        .with_context(|| format!("nothing is known of the network `{name}`; `weft down {name}` clears up"))?;
    let Some(node) = state.nodes.iter().find(|node| node.name == arguments.node) else {
        let mut names: Vec<&str> = state.nodes.iter().map(|node| &*node.name).collect();
        let more = names.len().saturating_sub(30);
        names.truncate(30);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        bail!("network `{name}` has no node `{}`; there are: {}{more}", arguments.node, names.join(", "));
    };
    NetworkNamespace::open(&node.namespace)
        .and_then(|namespace| namespace.enter())
        .with_context(|| format!("cannot enter node {} (needs root)", node.name))?;
    let [program, words @ ..] = arguments.command.as_slice() else { bail!("there is no command behind --") };
    let error = Command::new(program).args(words).exec();
    Err(anyhow!(error).context(format!("cannot run {}", program.to_string_lossy())))
}
