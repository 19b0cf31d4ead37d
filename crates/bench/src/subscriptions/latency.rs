//! How late a market's messages of interest are on real kernels, filtered by the switch or by the subscriber. After Figure 8.

use super::{Lines, SEED, Start};
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::hint::black_box;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use weftwire_draw::chart::Chart;
use weftwire_draw::{Axis, Unit};
use weftwire_study::applications::market::FEEDS;
use weftwire_study::applications::quantile;
use weftwire_study::sheet::{alone, csv};
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};
use weftwire_workload::market::{FEED_PORT, Feed, FeedSettings};

/// Packets that are sent over and over.
const PACKETS: usize = 8_192;
/// Ethernet, IPv4 and UDP headers, which the sender's kernel makes.
const BELOW: usize = 42;
const MOLD_HEADER: usize = 20;
const SUBSCRIBER: (&str, &str) = ("02:00:00:00:00:09", "10.0.0.9");
const LIMIT: Duration = Duration::from_secs(20);
/// How long a rate is tried while the greatest is looked for, and how long it is measured.
const TRIAL: Duration = Duration::from_millis(500);
const MEASUREMENT: Duration = Duration::from_secs(3);
/// A chain that loses more than this cannot carry the rate.
const TOLERATED: f64 = 0.001;
/// Nothing comes any more after so long.
const SILENCE: Duration = Duration::from_millis(300);
const SHARES: [f64; 6] = [0.5, 0.9, 0.99, 0.995, 0.999, 1.0];

/// Finds the greatest rate that the chain carries without filter, and measures at nine tenths of it.
pub fn measure(weft: Option<PathBuf>, out: Option<&Path>) -> Result<()> {
    service();
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let weft = match weft {
        Some(weft) => weft,
        None => std::env::current_exe()?.with_file_name("weft"),
    };
    ensure!(weft.exists(), "there is no {}: run `cargo build --release -p weftwire-cli` first", weft.display());
    let mut table =
        Lines::new(&["feed", "filter", "packets/s", "50 % us", "99 % us", "99.9 % us", "all us", "wanted", "got"]);
    let (mut rows, mut charts) = (Vec::new(), Vec::new());
    for (name, settings) in FEEDS {
        let packets = packets(settings);
        let all = Chain::new(&weft, "udp.destination_port == 26400 : fwd(2);")?;
        let rate = greatest(&all, &packets)? * 0.9;
        let mut chart = Chart::new(
            &format!("Latency of messages of interest, real kernels: {name}"),
            Axis::logarithmic("latency", Unit::Seconds),
            Axis::new("messages", Unit::Share),
        );
        let filtered = Chain::new(&weft, "add_order.stock == GOOGL : fwd(2);")?;
        for (chain, filter) in [(&filtered, "switch"), (&all, "host")] {
            let mut run = chain.run(&packets, rate, MEASUREMENT)?;
            run.latencies.sort_unstable();
            let at = |share| format!("{:.1}", quantile(&run.latencies, share) as f64 / 1e3);
            table.row(&[
                name.into(),
                filter.into(),
                format!("{rate:.0}"),
                at(0.5),
                at(0.99),
                at(0.999),
                at(1.0),
                run.wanted.to_string(),
                run.latencies.len().to_string(),
            ]);
            for share in SHARES {
                let latency = quantile(&run.latencies, share).to_string();
                rows.push(vec![name.into(), filter.into(), format!("{rate:.0}"), share.to_string(), latency]);
            }
            let steps = (0..=1_000).map(|step| quantile(&run.latencies, f64::from(step) / 1_000.0) as f64 * 1e-9);
            let label = if filter == "switch" { "the switch filters" } else { "the host filters" };
            chart.add(label, Chart::distribution(steps));
        }
        charts.push(chart);
    }
    table.print();
    if let Some(folder) = out {
        fs::create_dir_all(folder)?;
        let heads = ["feed", "filter", "packets_per_second", "share", "latency_ns"];
        fs::write(folder.join("figure-8-linux.csv"), csv(&heads, rows.into_iter()))?;
        fs::write(folder.join("figure-8-linux.svg"), alone(&charts))?;
        println!("written to {}", folder.display());
    }
    Ok(())
}

/// What a subscriber takes for looking at a packet's messages, in processor time: the simulator's numbers.
fn service() {
    let cost = |messages: u16| {
        let packets = packets(FeedSettings { messages: (messages, messages), ..FeedSettings::default() });
        let looked = |rounds: u32| {
            let start = Start::now();
            for _ in 0..rounds {
                for packet in &packets {
                    black_box(orders(black_box(&packet.data)).count());
                }
            }
            start.elapsed()
        };
        // So many rounds that the processor's clock, which ticks every few milliseconds, is good enough.
        let mut rounds = 1;
        while looked(rounds) < Duration::from_millis(200) {
            rounds *= 2;
        }
        let best = (0..3).map(|_| looked(rounds)).min().unwrap_or_default();
        best.as_secs_f64() * 1e9 / f64::from(rounds) / packets.len() as f64
    };
    println!("looking at a packet takes {:.1} ns with one message and {:.1} ns with twelve\n", cost(1), cost(12));
}

/// A datagram, and where the times of its messages of interest are.
struct Datagram {
    data: Vec<u8>,
    times: Vec<usize>,
}

fn packets(settings: FeedSettings) -> Vec<Datagram> {
    let mut feed = Feed::new(settings, SEED).opened();
    let datagram = |_| {
        let data = feed.packet(0).split_off(BELOW);
        let times = orders(&data).map(|at| at + 5).collect();
        Datagram { data, times }
    };
    (0..PACKETS).map(datagram).collect()
}

/// Where the orders for the watched symbol lie in a datagram: how a subscriber filters.
fn orders(data: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = MOLD_HEADER;
    std::iter::from_fn(move || {
        while let Some([high, low]) = data.get(at..at + 2) {
            let start = at + 2;
            at = start + usize::from(u16::from_be_bytes([*high, *low]));
            let message = data.get(start..at)?;
            if message[0] == b'A' && &message[24..32] == b"GOOGL   " {
                return Some(start);
            }
        }
        None
    })
}

/// Exchange, switch and subscriber, each in a namespace.
struct Chain {
    sender: UdpSocket,
    receiver: UdpSocket,
    weft: Option<Running>,
    folder: PathBuf,
    _namespaces: [Namespace; 3],
}

/// What came of a time of sending.
struct Run {
    sent: u64,
    received: u64,
    wanted: usize,
    latencies: Vec<u64>,
}

impl Chain {
    fn new(weft: &Path, rules: &str) -> Result<Chain> {
        let namespaces = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        let [exchange, middle, host] = &namespaces;
        exchange.join(("eth0", "02:00:00:00:00:01"), middle, ("port1", "02:00:00:00:01:01"))?;
        exchange.exec("ip address add 10.0.0.1/24 dev eth0")?;
        exchange.exec(&format!("ip neighbour add {} lladdr {} dev eth0", SUBSCRIBER.1, SUBSCRIBER.0))?;
        host.join(("eth0", SUBSCRIBER.0), middle, ("port2", "02:00:00:00:01:02"))?;
        host.exec(&format!("ip address add {}/24 dev eth0", SUBSCRIBER.1))?;
        let receiver = host.enter(|| UdpSocket::bind((SUBSCRIBER.1, FEED_PORT)))??;
        receiver.set_read_timeout(Some(SILENCE))?;
        let sender = exchange.enter(|| UdpSocket::bind(("10.0.0.1", FEED_PORT)))??;
        sender.connect((SUBSCRIBER.1, FEED_PORT))?;

        let folder = std::env::temp_dir().join(format!("weft-bench-{}-{}", std::process::id(), rules.len()));
        fs::create_dir_all(&folder)?;
        let format = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions/itch.p4");
        let (file, control) = (folder.join("some.rules"), folder.join("control.sock"));
        fs::write(&file, rules)?;
        let path = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
        let (weft, file, socket) = (path(weft)?, path(&file)?, path(&control)?);
        let mut words = vec![&*weft, "subs", "run", "--rules", &file, "--format", format, "--keep-privileges"];
        words.extend(["--control", &socket, "--port", "1=port1", "--port", "2=port2"]);
        let weft = Some(middle.spawn(&words)?);
        wait_for("the control socket", LIMIT, || control.exists())?;
        Ok(Chain { sender, receiver, weft, folder, _namespaces: namespaces })
    }

    /// Sends at a rate for a time. Messages of interest carry the time at which they were sent.
    fn run(&self, packets: &[Datagram], rate: f64, time: Duration) -> Result<Run> {
        let base = Instant::now();
        let now = move || base.elapsed().as_nanos() as u64;
        thread::scope(|scope| {
            let receiver = scope.spawn(move || -> Result<(u64, Vec<u64>)> {
                let (mut received, mut latencies, mut bytes) = (0, Vec::new(), [0; 2_048]);
                loop {
                    match self.receiver.recv(&mut bytes) {
                        Ok(length) => {
                            received += 1;
                            let data = &bytes[..length];
                            for order in orders(data) {
                                let sent = data[order + 5..order + 11]
                                    .iter()
                                    .fold(0, |time, byte| time << 8 | u64::from(*byte));
                                latencies.push(now().saturating_sub(sent));
                            }
                        }
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                            if base.elapsed() > time + SILENCE {
                                return Ok((received, latencies));
                            }
                        }
                        Err(error) => bail!("the subscriber cannot receive: {error}"),
                    }
                }
            });
            let (mut sent, mut wanted, mut bytes) = (0u64, 0, Vec::new());
            while base.elapsed() < time {
                // What is due since the last look; between looks the processor is free for others.
                let due = (base.elapsed().as_secs_f64() * rate) as u64;
                while sent < due {
                    let datagram = &packets[sent as usize % packets.len()];
                    bytes.clear();
                    bytes.extend_from_slice(&datagram.data);
                    for at in &datagram.times {
                        bytes[*at..*at + 6].copy_from_slice(&now().to_be_bytes()[2..]);
                    }
                    // What the kernel refuses is lost, and counted as such.
                    let _ = self.sender.send(&bytes);
                    wanted += datagram.times.len();
                    sent += 1;
                }
                thread::sleep(Duration::from_micros(100));
            }
            match receiver.join() {
                Ok(result) => result.map(|(received, latencies)| Run { sent, received, wanted, latencies }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        if let Some(weft) = self.weft.take() {
            // The namespaces go with it in any case.
            let _ = weft.interrupt();
        }
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Packets a second that arrive without loss: doubled until some are lost, then halved in between.
fn greatest(chain: &Chain, packets: &[Datagram]) -> Result<f64> {
    let carries = |rate: f64| -> Result<bool> {
        let run = chain.run(packets, rate, TRIAL)?;
        // A sender that cannot keep up is the chain's limit, too.
        let kept_up = run.sent as f64 > rate * TRIAL.as_secs_f64() * 0.95;
        Ok(kept_up && (run.sent - run.received.min(run.sent)) as f64 <= TOLERATED * run.sent as f64)
    };
    let (mut good, mut bad) = (5_000.0, 10_000.0);
    while carries(bad)? && bad < 5e6 {
        (good, bad) = (bad, bad * 2.0);
    }
    for _ in 0..4 {
        let middle = (good + bad) / 2.0;
        *(if carries(middle)? { &mut good } else { &mut bad }) = middle;
    }
    Ok(good)
}
