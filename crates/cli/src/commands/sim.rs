//! `weft sim`: a network in virtual time, once or many times.

mod chaos;
mod many;
mod one;

use crate::memory;
use crate::network;
use anyhow::{Result, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use weftwire_linux::signals::StopSignal;

/// Simulate a network: the same file and seed give the same packets, byte for byte.
///
/// One run writes its tables, captures, traces and report into the folder. With --repeat, or a `[sweep]` or `repetitions`
/// in the file, there are many runs: each point of the sweep with each seed. What is done stays done: the same command
/// goes on where an interrupted one stopped.
///
/// With --chaos the network runs under random faults, and what must hold all the same is checked.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    network: network::Arguments,
    /// Write the results into this folder
    #[arg(long, value_name = "DIR", required_unless_present = "chaos")]
    out: Option<PathBuf>,
    /// Run each point so many times, with seeds that count up [default: the file's `repetitions`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: Option<u32>,
    /// Simulate so many runs at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Only each N-th run, from the K-th on: for several machines, e.g. 3/8
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Of each of many runs, write all tables and its report, not only its results
    #[arg(long)]
    details: bool,
    /// Examine the network under random faults, drawn from this seed
    #[arg(long, value_name = "SEED", conflicts_with_all = ["repeat", "jobs", "shard", "details"])]
    chaos: Option<u64>,
    /// So many schedules of faults, with seeds that count up
    #[arg(long, value_name = "N", default_value_t = 1, requires = "chaos",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    schedules: u32,
}

impl Arguments {
    /// Where results go. Only without faults must it be given, and is: clap asks for it.
    fn folder(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("."))
    }
}

/// A share of many runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shard {
    /// From 1.
    number: u64,
    of: u64,
}

impl Shard {
    /// Whether the run with this number, from 1, belongs to it.
    fn has(self, run: u64) -> bool {
        run % self.of == self.number % self.of
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("write K/N with K from 1 to N, e.g. 3/8".into()),
        }
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let file = arguments.network.open()?;
    let (network, sweep) = file.network(&[])?;
    let repetitions = arguments.repeat.unwrap_or(network.repetitions);
    memory::check_simulation(&network, 1)?;
    let stop = StopSignal::install()?;
    if let Some(seed) = arguments.chaos {
        ensure!(
            sweep.is_empty(),
            "--chaos examines one network; choose a point of the [sweep] with --set and leave the table out"
        );
        return chaos::run(&file, &network, seed, arguments.schedules, arguments.out.as_deref(), &stop);
    }
    if sweep.is_empty() && repetitions == 1 {
        ensure!(arguments.shard.is_none(), "--shard divides many runs; this is one: give --repeat or a [sweep]");
        return one::run(&file, &network, arguments.folder(), &stop);
    }
    if arguments.network.seed.is_some() && sweep.iter().any(|(path, _)| path == "seed") {
        bail!("--seed has no meaning where the sweep sets the seed; leave one of them out");
    }
    many::run(&file, &sweep, repetitions, arguments, &stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_all_runs() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for run in 1..=10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(run)).count(), 1, "{run}");
        }
        assert!(shards[0].has(1) && shards[2].has(3));
        for bad in ["0/3", "4/3", "1", "a/b", "1/0", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
