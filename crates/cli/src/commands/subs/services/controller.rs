//! `weft subs controller`: subscriptions kept for a network, and switches that follow.

use super::client;
use super::ends::ServerEnd;
use crate::commands::subs::route::{PolicyName, notes, of_network};
use crate::console::tell;
use crate::load::catalog;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use weftwire_catalog::texts;
use weftwire_control::keeper::{Keeper, KeeperOptions};
use weftwire_control::server::{Listener, serve};
use weftwire_control::state::{Network, formats_digest};
use weftwire_control::store::Store;
use weftwire_linux::local::{Place, Service};
use weftwire_linux::privileges::{Account, drop_privileges, is_root};
use weftwire_linux::random_words;
use weftwire_route::{Failures, Layers, Plan, fat_tree};

/// Keep the subscriptions of a network's hosts in a file, and tell its switches what follows from them, until it is
/// interrupted. Hosts subscribe by `weft subs subscribe`, switches follow by `weft subs run --switch`; both also by gRPC.
#[derive(Args)]
pub struct Arguments {
    /// The network: its routers, switches and functions forward, all other nodes publish and subscribe
    #[arg(value_name = "NETWORK.toml", required_unless_present = "fat_tree")]
    network: Option<PathBuf>,
    /// The network is a fat tree of switches with K ports
    #[arg(long, value_name = "K", conflicts_with = "network")]
    fat_tree: Option<u32>,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    /// Keep subscriptions in this file; it is made if it is not there
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// Begin a new store, also in a file that is there and empty
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    listen: ServerEnd,
    /// What is saved: memory or traffic up a hierarchy; or how the spanning tree of any graph is chosen
    #[arg(long, value_enum, default_value_t = PolicyName::Tr)]
    policy: PolicyName,
    /// Round constants of filters to multiples of this; by layer from the lowest, the last one for all above
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    alpha: Vec<u64>,
    /// Most subscriptions at once
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    most: usize,
    /// Remove subscriptions from the store that this network and these formats do not fit
    #[arg(long)]
    drop_unfit: bool,
    /// The user that root becomes once everything is open [default: one of its own, without a name]
    #[arg(long, value_name = "NAME", conflicts_with = "keep_privileges")]
    user: Option<String>,
    /// Do not give up privileges
    #[arg(long)]
    keep_privileges: bool,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let formats = catalog().formats(&arguments.formats)?.formats;
    let formats_digest = formats_digest(&texts(&arguments.formats)?);
    let layers = if arguments.policy.is_hierarchical() { Layers::Found } else { Layers::Flat };
    let topology = match &arguments.network {
        Some(file) => of_network(file, layers)?,
        None => {
            let mut topology = fat_tree(arguments.fat_tree.unwrap_or(4))?;
            topology.set_layers(layers)?;
            topology
        }
    };
    let settings = arguments.policy.settings(&arguments.alpha);
    let plan = Plan::new(&topology, &Failures::default(), settings.clone())?;
    let notes = notes(&topology, &plan, arguments.policy);
    notes.iter().for_each(|note| tell!("note: {note}"));
    let (policy, formats) = (arguments.policy.name(), Arc::new(formats));
    let network = Network { topology, settings, policy, formats, formats_digest, notes };

    let account = match is_root() && !arguments.keep_privileges {
        true => Some(Account::choose(arguments.user.as_deref())?),
        false => None,
    };
    let user = account.as_ref().map(Account::user);
    // The folder is this controller's until it ends.
    let place = match arguments.listen.is_given() {
        true => None,
        false => Some(Place::take(Service::Controller)?),
    };
    let listener = Listener::open(&arguments.listen.address()?, account.as_ref().and_then(Account::operator))?;
    if let (Some(place), Some(user)) = (&place, user) {
        place.give_to(user)?;
    }
    let is_remote = listener.is_remote();
    let tls = arguments.listen.secured(listener.address(), is_remote)?;
    let is_open = is_remote && tls.is_none();
    let listener = listener.reporting(|line| tell!("{line}"));
    let listener = match tls {
        Some(tls) => listener.secured(tls),
        None => listener,
    };
    let [identity] = random_words::<1>().context("cannot draw a random number")?;
    let options = KeeperOptions { drop_unfit: arguments.drop_unfit, most: arguments.most, ..KeeperOptions::default() };
    let (switches, hosts) = (network.topology.switch_count(), network.topology.host_count());
    let store = match arguments.new {
        true => Store::open_even_empty(&arguments.store, identity)?,
        false => Store::open(&arguments.store, identity)?,
    };
    let (path, changes) = (arguments.store.display(), store.1.revision);
    ensure!(
        !arguments.new || changes == 0,
        "{path} is a store with {changes} changes: leave --new out to go on with it, or name another file"
    );
    if !arguments.keep_privileges {
        // Before there are threads: each has capabilities of its own.
        drop_privileges(user)?;
    }
    let started = Keeper::start(network, store, options)?;
    if started.removed > 0 {
        tell!("{} subscriptions that do not fit were removed", started.removed);
    }
    if is_open {
        tell!(
            "warning: whoever reaches {} may subscribe, unsubscribe and follow: it asks nobody who he is",
            listener.address()
        );
    }
    tell!(
        "controls {switches} switches and {hosts} hosts with {} subscriptions; listens on {}; Ctrl-C ends it",
        started.found,
        listener.address()
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stopped = client::stopped()?;
    runtime.block_on(serve(started, listener, async { drop(stopped.await) }))?;
    Ok(())
}
