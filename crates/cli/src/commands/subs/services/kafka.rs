//! `weft subs kafka`: a bridge between clients of Kafka and a network of subscriptions.

use crate::console::tell;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;
use weftwire_linux::privileges::{Account, drop_privileges, is_root};
use weftwire_linux::signals::StopSignal;
use weftwire_publish::client::GROUP;
use weftwire_publish::kafka::broker::Limits;
use weftwire_publish::kafka::server::{Options, Report, Server};
use weftwire_publish::message::HEADER;
use weftwire_publish::topic::Topic;

/// How often the signal to end is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Each of 1,024 partitions has a record, and each of 256 clients some room.
const LEAST_MEMORY: usize = 64 << 20;

/// Be a broker to unmodified clients of Kafka, until it is interrupted. Each record that they produce becomes a message of
/// the network; messages that the network's rules send here are records that they can consume.
#[derive(Args)]
pub struct Arguments {
    /// Where clients of Kafka connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9092")]
    listen: SocketAddr,
    /// The address that clients are told to connect to [default: the one by which they came]
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    advertise: Option<(String, u16)>,
    /// The address of the interface towards the switch
    #[arg(long, value_name = "ADDRESS")]
    local: IpAddr,
    /// Where messages go and come from: a multicast group, or this host's address if it only consumes
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = GROUP)]
    destination: SocketAddr,
    /// A topic that is there from the start, with the number of its partitions
    #[arg(long = "topic", value_name = "NAME[:PARTITIONS]", value_parser = topic)]
    topics: Vec<(Topic, Option<u16>)>,
    /// Make no topics because clients ask for them
    #[arg(long)]
    no_new_topics: bool,
    /// Make topics and partitions also because messages of them come from the network, where anybody may send
    #[arg(long)]
    topics_from_network: bool,
    /// Partitions of topics that don't say
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    partitions: u16,
    /// Bytes of records kept for each partition
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().retain)]
    retain: usize,
    /// Bytes of memory in all: half of it for records, a quarter for requests and answers on their way, a quarter for groups
    /// and producers
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().memory, value_parser = memory)]
    memory: usize,
    /// Send no more messages a second
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Bytes of a datagram [default: what fits an Ethernet frame]
    #[arg(long, value_name = "BYTES", value_parser = datagram)]
    datagram: Option<usize>,
    /// The user that root becomes once everything is open [default: one of its own, without a name]
    #[arg(long, value_name = "NAME", conflicts_with = "keep_privileges")]
    user: Option<String>,
    /// Do not give up privileges
    #[arg(long)]
    keep_privileges: bool,
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    parts.filter(|(host, _)| !host.is_empty()).ok_or_else(|| "write HOST:PORT, e.g. broker:9092".into())
}

fn topic(text: &str) -> Result<(Topic, Option<u16>), String> {
    let (name, partitions) = match text.split_once(':') {
        Some((name, count)) => {
            let count = count.parse().ok().filter(|count| *count > 0);
            (name, Some(count.ok_or("write NAME:PARTITIONS, e.g. orders:4")?))
        }
        None => (text, None),
    };
    Ok((Topic::new(name).map_err(|bad| bad.to_string())?, partitions))
}

fn memory(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| *bytes >= LEAST_MEMORY);
    bytes.ok_or_else(|| format!("write a number from {LEAST_MEMORY} (64 MiB)"))
}

fn datagram(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| (HEADER..=9_000).contains(bytes));
    bytes.ok_or_else(|| format!("write a number from {HEADER} to 9000"))
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    if arguments.local.is_ipv6() != arguments.destination.is_ipv6() {
        bail!("--local and --destination must both be IPv4 or both IPv6 addresses");
    }
    let partitions = arguments.partitions;
    let stop = StopSignal::install()?;
    let account = match is_root() && !arguments.keep_privileges {
        true => Some(Account::choose(arguments.user.as_deref())?),
        false => None,
    };
    let opened = || match arguments.keep_privileges {
        true => Ok(()),
        false => drop_privileges(account.as_ref().map(Account::user)).map_err(io::Error::other),
    };
    let options = Options {
        listen: arguments.listen,
        advertise: arguments.advertise.clone(),
        local: arguments.local,
        destination: arguments.destination,
        topics: arguments.topics.iter().map(|(topic, count)| (*topic, count.unwrap_or(partitions))).collect(),
        rate: arguments.rate,
        datagram: arguments.datagram,
        limits: Limits {
            partitions,
            new_topics: !arguments.no_new_topics,
            topics_from_network: arguments.topics_from_network,
            retain: arguments.retain,
            memory: arguments.memory,
            ..Limits::default()
        },
    };
    let server = Server::start_when_open(&options, opened)
        .with_context(|| format!("cannot serve on {} and {}", arguments.listen, arguments.local))?;
    tell!(
        "clients of Kafka connect to {}; messages go to {} from {}; Ctrl-C ends it",
        server.address(),
        arguments.destination,
        arguments.local
    );
    for (topic, _) in &arguments.topics {
        tell!("{topic} comes here by a rule like `{} : fwd(PORT);`", topic.filter());
    }
    while !stop.requested() {
        thread::sleep(LOOK);
    }
    show(&server.report());
    Ok(())
}

/// One line of what was, and one of each thing that went wrong.
fn show(report: &Report) {
    let (broker, network) = (&report.broker, &report.network);
    tell!("{} records produced, {} received from the network", broker.produced, broker.received);
    let mut faults = vec![
        ("messages missing", network.streams.missing),
        ("messages late or twice", network.streams.late),
        ("messages of more publishers than are counted", network.streams.uncounted),
        ("messages of no topic or partition that there is (--topic, --topics-from-network)", broker.no_partition),
        ("records forgotten early as all took too much memory (--memory)", broker.forgotten),
        ("batches with a record that fits no packet", broker.too_large),
        ("batches refused", broker.refused),
        ("batches that came again", broker.repeated),
        ("connections too many", report.too_many),
        ("idle connections that made room for others", report.made_room),
        ("requests that there was no memory for", report.no_memory),
        ("times the kernel did not send", report.not_sent),
    ];
    let texts: Vec<(String, u64)> =
        (network.bad.iter().map(|(bad, count)| (format!("datagrams ignored: {bad}"), *count)))
            .chain(report.malformed.iter().map(|(bad, count)| (format!("connections ended: {bad}"), *count)))
            .collect();
    faults.extend(texts.iter().map(|(text, count)| (&**text, *count)));
    for (what, count) in faults.into_iter().filter(|(_, count)| *count > 0) {
        tell!("{count} {what}");
    }
}
