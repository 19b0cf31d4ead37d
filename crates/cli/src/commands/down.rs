//! `weft down`: removes what `weft up` has made.

use crate::console::say;
use anyhow::{Result, bail};
use clap::Args;
use std::path::Path;
use weftwire_lab::state::{NETWORKS, names, read};
use weftwire_lab::supervisor::down;

/// Remove a network made by `weft up`, all of it and nothing else, also after a crash.
#[derive(Args)]
pub struct Arguments {
    /// The network's name, or its file [default: the only one there is]
    #[arg(value_name = "NAME|FILE")]
    network: Option<String>,
    /// All networks
    #[arg(long, conflicts_with = "network")]
    all: bool,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let wanted = match (&arguments.network, arguments.all) {
        (None, true) => names(),
        (None, false) => vec![only(None)?],
        (Some(network), _) => chosen(network)?,
    };
    for name in wanted {
        if down(&name)? {
            say!("{name} is down");
        }
    }
    Ok(())
}

/// The networks of a name, or made from a file.
fn chosen(network: &str) -> Result<Vec<String>> {
    let names = names();
    if names.iter().any(|name| name == network) {
        return Ok(vec![network.to_owned()]);
    }
    let Ok(file) = Path::new(network).canonicalize() else { return Ok(vec![only(Some(network))?]) };
    let made: Vec<String> =
        names.into_iter().filter(|name| read(name).is_some_and(|state| state.file == file)).collect();
    if made.is_empty() {
        bail!("no network was made from {}; `weft status` shows those that there are", file.display());
    }
    Ok(made)
}

/// The network of this name; without a name the only one there is.
pub fn only(name: Option<&str>) -> Result<String> {
    let names = names();
    match (name, names.as_slice()) {
        (Some(name), names) if names.iter().any(|known| known == name) => Ok(name.to_owned()),
        (Some(name), []) => bail!("no network `{name}` is up; there is none in {NETWORKS}"),
        (Some(name), names) => bail!("no network `{name}` is up; there are: {}", names.join(", ")),
        (None, [only]) => Ok(only.clone()),
        (None, []) => bail!("no network is up; make one with `weft up NETWORK.toml`"),
        (None, names) => bail!("several networks are up; name one of: {}", names.join(", ")),
    }
}
