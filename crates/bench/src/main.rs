//! Side-by-side comparisons of whole systems. Each measures its peers in the same run, on the same machine, in turns,
//! and says how much the machine itself varied meanwhile.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock, files and processes"
)]

mod calendar;
mod calendar_plot;
mod controller;
mod dpdk;
mod network;
mod publish;
mod simulator;
mod subscriptions;
mod synproxy;
mod table;
mod tcp;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use weftwire_bench::{allocations, engine};

#[derive(Parser)]
#[command(about = "Compares Weftwire with its peers on this machine")]
struct Arguments {
    #[command(subcommand)]
    comparison: Comparison,
}

#[derive(Subcommand)]
enum Comparison {
    /// The calendar beside heaps, trees and timing wheels, with 1,000 to 10,000,000 timers
    Calendar {
        /// Measurements in each structure's turn
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
        /// Most timers
        #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
        most: u32,
        /// Only run this case with this many timers this many times, for a tool that counts instructions
        #[arg(long, num_args = 3, value_names = ["CASE", "TIMERS", "N"], conflicts_with_all = ["repeats", "json", "plot"])]
        once: Option<Vec<String>>,
        /// Also write every single measurement to this file
        #[arg(long)]
        json: Option<PathBuf>,
        /// Also draw the cost against the number of timers, as SVG
        #[arg(long)]
        plot: Option<PathBuf>,
    },
    /// The controller of subscriptions over the 20 switches of a fat tree: time, memory, and how long switches wait
    Controller {
        /// How many subscriptions
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        subscriptions: u32,
        /// The program to measure; by default the one that was built beside this
        #[arg(long)]
        weft: Option<PathBuf>,
        /// What is saved: `mr` or `tr`
        #[arg(long, default_value = "tr")]
        policy: String,
    },
    /// The reference engine on frames in memory, beside what any packet processor pays
    Engine {
        /// Rounds; each measures every case once
        #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
        /// Only run this case this many times, for a tool that counts instructions
        #[arg(long, num_args = 2, value_names = ["CASE", "N"], conflicts_with_all = ["repeats", "json"])]
        once: Option<Vec<String>>,
        /// Also write every single measurement to this file
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// The simulator and ns-3 on the same overloaded dumbbell
    Network {
        /// Rounds; each measures both simulators once at each rate
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// The program to measure; by default the one that was built beside this
        #[arg(long)]
        weft: Option<PathBuf>,
        /// Also write every single measurement to this file
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Publish/subscribe through a switch, with the library and with Kafka's client, beside NATS and Kafka. Needs root
    Publish {
        /// Rounds; each measures every system once
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// Messages sent as fast as can be
        #[arg(long, default_value_t = 400_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
        messages: u32,
        /// Only systems with this in their name, e.g. `library`
        #[arg(long)]
        only: Option<String>,
        /// The program to measure; by default the one that was built beside this
        #[arg(long)]
        weft: Option<PathBuf>,
        /// Where tables and a picture go
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// The simulator: packet-hops a second of one core, and memory
    Simulator {
        /// Only this case: `udp`, `tcp`, `flows` or `graph`
        case: Option<String>,
    },
    /// Packet subscriptions: compiling and updating the rule sets of the paper's evaluation, the engine's speed, and what
    /// applications gain
    Subscriptions {
        /// Only this part: `table1`, `update`, `siena`, `engine`, `telemetry` or `latency`; the last needs root
        part: Option<String>,
        /// The program to measure; by default the one that was built beside this
        #[arg(long)]
        weft: Option<PathBuf>,
        /// Also write tables and pictures of `telemetry` and `latency` into this folder
        #[arg(short, long)]
        out: Option<PathBuf>,
    },
    /// Plain routing, the kernel's SYNPROXY and `weft run` between a client and nginx. Needs root
    Synproxy {
        /// Rounds; each measures every system once
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// The program to measure; by default the one that was built beside this
        #[arg(long)]
        weft: Option<PathBuf>,
        /// The machine for it to run
        #[arg(long)]
        image: Option<PathBuf>,
        /// Also write every single measurement to this file
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// The TCP in XL beside the kernel's. Needs root
    Tcp {
        /// Only this part: `goodput`, `fairness`, `hosts`, `bulk`, `requests` or `connections`
        part: Option<String>,
        /// Rounds; each measures every system once
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
        /// The program to measure; by default the one that was built beside this
        #[arg(long)]
        weft: Option<PathBuf>,
        /// Also write every single measurement to this file
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().comparison {
        Comparison::Calendar { once: Some(words), .. } => {
            calendar::once(&words[0], words[1].parse()?, words[2].parse()?)
        }
        Comparison::Calendar { repeats, most, json, plot, once: None } => calendar::measure(repeats, most, json, plot),
        Comparison::Controller { subscriptions, weft, policy } => controller::measure(subscriptions, weft, &policy),
        Comparison::Engine { once: Some(words), .. } => engine::once(&words[0], words[1].parse()?),
        Comparison::Engine { repeats, json, once: None } => engine::measure(repeats, json),
        Comparison::Network { repeats, weft, json } => network::compare(repeats, weft, json),
        Comparison::Publish { repeats, messages, only, weft, out } => {
            publish::compare(repeats, messages, only.as_deref(), weft, &out)
        }
        Comparison::Simulator { case } => simulator::measure(case.as_deref()),
        Comparison::Subscriptions { part, weft, out } => subscriptions::measure(part.as_deref(), weft, out.as_deref()),
        Comparison::Synproxy { repeats, weft, image, json } => synproxy::compare(repeats, weft, image, json),
        Comparison::Tcp { part, repeats, weft, json } => tcp::compare(part.as_deref(), repeats, weft, json),
    }
}
