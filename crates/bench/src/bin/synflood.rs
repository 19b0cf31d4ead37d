//! Sends a flood of spoofed connection requests, to test what has to withstand them. For machines of your own only:
//! the sources are of 198.18.0.0/15, the range set aside for benchmarks (RFC 2544).

use std::net::SocketAddrV4;
use weftwire_core::MacAddress;

use anyhow::{Context as _, Result};
use clap::Parser;
use weftwire_testbed::Flood;

#[derive(Parser)]
#[command(about = "Sends spoofed SYNs from 198.18.0.0/15 and prints how many and how fast. Needs root.")]
struct Arguments {
    /// The interface to send from
    interface: String,
    /// Address and port to flood, such as 10.77.0.2:80
    destination: SocketAddrV4,
    /// Ethernet address of the next hop
    destination_mac: MacAddress,
    /// Ethernet source address
    #[arg(long, default_value = "02:00:00:00:00:01")]
    source_mac: MacAddress,
    /// How many
    #[arg(long, default_value_t = 1_000_000)]
    count: u64,
    /// At most this many a second; without it as many as the kernel takes
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Source addresses and ports one after the other instead of at random
    #[arg(long)]
    sequential: bool,
    /// The same seed gives the same packets
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let Arguments { interface, destination, destination_mac, source_mac, count, rate, sequential, seed } =
        Arguments::parse();
    let (source_mac, destination_mac) = (source_mac.octets(), destination_mac.octets());
    let flood = Flood { interface, source_mac, destination_mac, destination, count, rate, sequential, seed };
    let report = flood.run().with_context(|| format!("cannot flood from {}", flood.interface))?;
    println!("{} packets in {:.3} s: {:.0} packets/s", report.sent, report.elapsed.as_secs_f64(), report.rate());
    Ok(())
}
