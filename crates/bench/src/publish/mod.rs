//! Publish/subscribe: through a subscription switch with the library and with the bridge for Kafka's clients, beside NATS and a
//! Kafka broker. All run between two network namespaces, over a third.

mod java;
mod library;
mod nats;
mod picture;

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_testbed::{Namespace, Running, wait_for};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(90);
/// Bytes of messages.
const SIZES: [usize; 2] = [100, 1_000];
/// Messages a second when latency is measured, and how many.
const SLOW: (u64, u32) = (1_000, 4_000);
/// Rates that systems without flow control are tried at, one second each.
const RATES: [u64; 6] = [10_000, 20_000, 40_000, 80_000, 160_000, 320_000];

/// A way from a publisher to a subscriber.
trait System {
    /// Its name in the results.
    fn name(&self) -> &'static str;
    /// Whether a publisher that is too fast is slowed down.
    fn has_flow_control(&self) -> bool;
    /// Sends messages, at most `load.rate` a second, and looks at what arrives.
    fn run(&mut self, load: Load) -> Result<Outcome>;
}

/// Messages to send.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Bytes of each; at least 16.
    size: usize,
    /// How many.
    count: u32,
    /// How many first ones are not looked at.
    warm: u32,
    /// How many a second; as many as can be.
    rate: Option<u64>,
}

/// What arrived of the messages that are looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    received: u32,
    /// From the first to the last.
    seconds: f64,
    /// Microseconds.
    median: f64,
    /// Microseconds: 99 of 100 took no longer.
    late: f64,
}

impl Outcome {
    /// Of latencies in nanoseconds.
    fn new(mut latencies: Vec<u64>, seconds: f64) -> Outcome {
        latencies.sort_unstable();
        let at =
            |share: f64| latencies.get((latencies.len() as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1e3);
        Outcome { received: latencies.len() as u32, seconds, median: at(0.5), late: at(0.99) }
    }

    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { f64::from(self.received.saturating_sub(1)) / self.seconds } else { 0.0 }
    }
}

/// One line of the results.
#[derive(Clone, Debug)]
struct Row {
    system: &'static str,
    size: usize,
    /// Messages a second that arrived when they were sent as fast as can be.
    fastest: f64,
    /// What was lost of them, in percent.
    lost: f64,
    /// Messages a second with nothing lost.
    lossless: f64,
    /// Microseconds at a thousand messages a second.
    median: f64,
    late: f64,
}

/// Measures all systems, or only those with this in their name, each `repeats` times in turns, and writes `publish.csv` and `publish.svg` into `out`.
pub fn compare(repeats: u32, messages: u32, only: Option<&str>, weft: Option<PathBuf>, out: &Path) -> Result<()> {
    let weft = match weft {
        Some(weft) => weft,
        None => std::env::current_exe()?.with_file_name("weft"),
    };
    let weft = weft.to_str().context("the program has a plain name")?;
    fs::create_dir_all(out)?;
    let folder = std::env::temp_dir().join(format!("weft-publish-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let rows = rounds(repeats, messages, only, weft, &folder);
    fs::remove_dir_all(&folder)?;
    let rows = rows?;
    let medians: Vec<Row> = rows.iter().filter_map(|rows| median_of(rows)).collect();
    let mut csv = String::from("system,bytes,messages_per_s,lost_percent,lossless_messages_per_s,p50_us,p99_us\n");
    for row in rows.iter().flatten() {
        csv += &format!(
            "\"{}\",{},{:.0},{:.3},{:.0},{:.1},{:.1}\n",
            row.system, row.size, row.fastest, row.lost, row.lossless, row.median, row.late
        );
    }
    fs::write(out.join("publish.csv"), csv)?;
    fs::write(out.join("publish.svg"), picture::picture(&medians))?;
    println!(
        "| system | bytes | messages/s | lost | messages/s, none lost | latency p50 | p99 |\n|---|---|---|---|---|---|---|"
    );
    for row in &medians {
        println!(
            "| {} | {} | {:.0} | {:.1} % | {:.0} | {:.0} us | {:.0} us |",
            row.system, row.size, row.fastest, row.lost, row.lossless, row.median, row.late
        );
    }
    Ok(())
}

/// All rounds, by system and size; what programs need lies in `folder`.
fn rounds(repeats: u32, messages: u32, only: Option<&str>, weft: &str, folder: &Path) -> Result<Vec<Vec<Row>>> {
    let java = java::Java::prepare(folder)?;
    let switched = Lab::switched(weft, folder)?;
    let routed = Lab::routed()?;
    let mut systems: Vec<Box<dyn System>> = vec![
        Box::new(library::Library::new(&switched)?),
        Box::new(java::Bridge::new(&switched, weft, &java)),
        Box::new(nats::Nats::new(&routed)?),
        Box::new(java::Broker::new(&routed, &java)?),
    ];
    systems.retain(|system| only.is_none_or(|only| system.name().contains(only)));
    let mut rows: Vec<Vec<Row>> = Vec::new();
    for repeat in 0..repeats {
        for size in SIZES {
            for (index, system) in systems.iter_mut().enumerate() {
                let row = measure(system.as_mut(), size, messages)?;
                eprintln!("{repeat}: {row:?}");
                let place = SIZES.len() * index + SIZES.iter().position(|it| *it == size).unwrap_or(0);
                rows.resize(rows.len().max(place + 1), Vec::new());
                rows[place].push(row);
            }
        }
    }
    Ok(rows)
}

fn measure(system: &mut dyn System, size: usize, messages: u32) -> Result<Row> {
    let load = |count: u32, rate| Load { size, count, warm: count / 4, rate };
    let share = |outcome: &Outcome, load: Load| f64::from(outcome.received) / f64::from(load.count - load.warm);
    let fastest_load = load(messages, None);
    let fastest = system.run(fastest_load)?;
    let lost = 100.0 * (1.0 - share(&fastest, fastest_load));
    let mut lossless = if lost == 0.0 { fastest.rate() } else { 0.0 };
    if !system.has_flow_control() {
        for rate in RATES {
            let load = load(rate as u32, Some(rate));
            let outcome = system.run(load)?;
            if share(&outcome, load) < 1.0 {
                break;
            }
            lossless = lossless.max(outcome.rate());
        }
    }
    let slow = system.run(load(SLOW.1, Some(SLOW.0)))?;
    Ok(Row {
        system: system.name(),
        size,
        fastest: fastest.rate(),
        lost,
        lossless,
        median: slow.median,
        late: slow.late,
    })
}

/// The median of each column.
fn median_of(rows: &[Row]) -> Option<Row> {
    let column = |of: fn(&Row) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Some(Row {
        fastest: column(|row| row.fastest),
        lost: column(|row| row.lost),
        lossless: column(|row| row.lossless),
        median: column(|row| row.median),
        late: column(|row| row.late),
        ..rows.first()?.clone()
    })
}

/// Two hosts with something between them.
struct Lab {
    /// Where messages come from.
    source: Namespace,
    /// What they go through.
    middle: Namespace,
    /// Where they go.
    sink: Namespace,
    _switch: Option<Running>,
}

impl Lab {
    fn new() -> Result<Lab> {
        let lab = Lab { source: Namespace::new()?, middle: Namespace::new()?, sink: Namespace::new()?, _switch: None };
        for (number, host) in [(1, &lab.source), (2, &lab.sink)] {
            let macs = [format!("02:00:00:00:00:0{number}"), format!("02:00:00:00:01:0{number}")];
            let port = format!("port{number}");
            host.join(("eth0", &macs[0]), &lab.middle, (&port, &macs[1]))?;
            host.exec(&format!("ip address add 10.0.{number}.1/24 dev eth0"))?;
        }
        Ok(lab)
    }

    /// With a subscription switch.
    fn switched(weft: &str, folder: &Path) -> Result<Lab> {
        let mut lab = Lab::new()?;
        let file = |name: &str, text: &str| -> Result<String> {
            let path = folder.join(name);
            fs::write(&path, text)?;
            Ok(path.to_str().context("the folder has a plain name")?.to_owned())
        };
        let rules = file("publish.rules", "publish.topic prefix \"bench\" : fwd(2);\n")?;
        let format = file("publish.p4", include_str!("../../../../examples/subscriptions/publish.p4"))?;
        let control = folder.join("control.sock");
        // It may be there from the last run.
        let _ = fs::remove_file(&control);
        let path = control.to_str().context("the folder has a plain name")?;
        let words =
            [weft, "subs", "run", "--keep-privileges", "--rules", &rules, "--format", &format, "--control", path];
        let words = [&words[..], &["--port", "1=port1", "--port", "2=port2"]].concat();
        lab._switch = Some(lab.middle.spawn(&words)?);
        wait_for("the switch", START, || control.exists())?;
        Ok(lab)
    }

    /// With a host that servers can run on: 10.0.1.254 to the source, 10.0.2.254 to the sink.
    fn routed() -> Result<Lab> {
        let lab = Lab::new()?;
        for number in [1, 2] {
            lab.middle.exec(&format!("ip address add 10.0.{number}.254/24 dev port{number}"))?;
        }
        // A server has one name for all clients.
        lab.sink.exec("ip route add 10.0.1.0/24 via 10.0.2.254")?;
        Ok(lab)
    }

    /// Waits for a server on the middle host.
    fn wait_for_server(host: &Namespace, address: &str) -> Result<()> {
        let address = address.parse()?;
        let reached = || host.connect(address, Duration::from_secs(1)).is_ok_and(|stream| stream.is_ok());
        if wait_for("a server", START, reached).is_err() {
            bail!("no server answers on {address}");
        }
        Ok(())
    }
}

/// The payload of a message: its time and its number.
fn stamp(payload: &mut [u8], time: u64, number: u64) {
    payload[..8].copy_from_slice(&time.to_be_bytes());
    payload[8..16].copy_from_slice(&number.to_be_bytes());
}

/// Time and number of a message.
fn stamped(payload: &[u8]) -> Option<(u64, u64)> {
    let (time, rest) = payload.split_first_chunk()?;
    Some((u64::from_be_bytes(*time), u64::from_be_bytes(*rest.first_chunk()?)))
}

/// Takes note of what arrives.
struct Receipts {
    load: Load,
    latencies: Vec<u64>,
    first: u64,
    last: u64,
    done: bool,
}

impl Receipts {
    fn new(load: Load) -> Receipts {
        Receipts { load, latencies: Vec::with_capacity(load.count as usize), first: 0, last: 0, done: false }
    }

    /// A message came at this time, in nanoseconds since some start.
    fn add(&mut self, now: u64, payload: &[u8]) {
        let Some((time, number)) = stamped(payload) else { return };
        if number >= u64::from(self.load.warm) {
            if self.latencies.is_empty() {
                self.first = now;
            }
            self.last = now;
            self.latencies.push(now.saturating_sub(time));
        }
        self.done |= number + 1 == u64::from(self.load.count);
    }

    fn outcome(self) -> Outcome {
        Outcome::new(self.latencies, (self.last - self.first) as f64 / 1e9)
    }
}
