//! What a connection costs on this machine: bulk data, requests, and many connections at once, between two namespaces joined by a veth pair.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use weftwire_testbed::{Namespace, Running, processor_seconds, resident_bytes, run};

use super::{Bench, IMAGE, LIMIT, OURS, text};
use crate::table::Results;

/// The kernel's TCP with its own congestion control.
pub const KERNEL: &str = "kernel";

const BYTES: usize = 100_000_000;
const CHUNK: usize = 1 << 18;
const REQUESTS: usize = 3_000;
const REQUEST: usize = 64;
const CONNECTIONS: usize = 10_000;

const OWN: &str = "10.90.0.1";
const OTHER: &str = "10.90.0.2";
/// The kernel in front of a machine behind a TUN device.
const ROUTER: &str = "10.90.0.3";
const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// Where the first end is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Kernel,
    /// A machine at the veth itself.
    Interface,
    /// A machine behind a TUN device.
    Tun,
}

/// Two hosts: the one that is measured has the address [`OWN`], the other one, a kernel, [`OTHER`].
struct Hosts {
    own: Namespace,
    other: Namespace,
    place: Place,
}

impl Hosts {
    fn new(place: Place, offloads: bool) -> Result<Hosts> {
        let (own, other) = (Namespace::new()?, Namespace::new()?);
        own.join(("eth0", MACS[0]), &other, ("eth0", MACS[1]))?;
        own.set_offloads("eth0", offloads)?;
        other.set_offloads("eth0", offloads)?;
        other.exec(&format!("ip address add {OTHER}/24 dev eth0"))?;
        match place {
            Place::Kernel => drop(own.exec(&format!("ip address add {OWN}/24 dev eth0"))?),
            Place::Interface => drop(other.exec(&format!("ip neighbour add {OWN} lladdr {} dev eth0", MACS[0]))?),
            Place::Tun => {
                own.exec(&format!("ip address add {ROUTER}/24 dev eth0"))?;
                own.exec("ip tuntap add dev weft0 mode tun")?;
                own.exec("ip link set weft0 up")?;
                own.exec(&format!("ip route add {OWN}/32 dev weft0"))?;
                own.sysctl("net.ipv4.ip_forward", "1")?;
                other.exec(&format!("ip route add {OWN}/32 via {ROUTER}"))?;
            }
        }
        Ok(Hosts { own, other, place })
    }

    /// `weft COMMAND` at the first end.
    fn words<'a>(&self, bench: &'a Bench, command: &'a str, ends: &'a [&str]) -> Result<Vec<&'a str>> {
        let port: &[&str] = match (self.place, command) {
            (Place::Tun, _) => &["1=tun:weft0"],
            (_, "cat") => &["1=eth0", "--gateway-mac", MACS[1]],
            _ => &["1=eth0"],
        };
        Ok([&[text(&bench.weft)?, command, IMAGE, "--port"], port, ends].concat())
    }
}

/// From the machine's host to the other one.
fn ends() -> String {
    format!("{OWN}-{OTHER}:80")
}

/// Gigabits a second and seconds of processors for a gigabyte, of everything that takes part.
pub fn bulk(bench: &Bench, _: u32, results: &mut Results) -> Result<()> {
    let file = bench.folder.join("bulk");
    if !file.exists() {
        std::fs::write(&file, vec![b'x'; BYTES])?;
    }
    for (device, place) in [("veth", Place::Interface), ("TUN", Place::Tun)] {
        for offloads in [false, true] {
            for sends in [true, false] {
                for (system, place) in [(KERNEL, Place::Kernel), (OURS, place)] {
                    let hosts = Hosts::new(place, offloads)?;
                    let (seconds, processor) = hosts.transfer(bench, &file, sends)?;
                    let offloads = if offloads { "on" } else { "off" };
                    let name = format!("{}, {device}, offloads {offloads}", if sends { "send" } else { "receive" });
                    results.add(&name, "Gbit/s", system, BYTES as f64 * 8e-9 / seconds);
                    results.add(&format!("{name}, processor"), "s/GB", system, processor * 1e9 / BYTES as f64);
                }
            }
        }
    }
    Ok(())
}

impl Hosts {
    /// Seconds that it takes, and seconds of processors.
    fn transfer(&self, bench: &Bench, file: &Path, sends: bool) -> Result<(f64, f64)> {
        let listener = self.other.enter(|| TcpListener::bind((OTHER, 80)))??;
        let before = processor_seconds();
        let weft = match self.place {
            Place::Kernel => None,
            _ => {
                let (ends, input) = (ends(), if sends { text(file)? } else { "/dev/null" });
                let words = self.words(bench, "cat", &[&ends])?.join(" ");
                Some(self.own.spawn(&["sh", "-c", &format!("exec {words} < {input} > /dev/null")])?)
            }
        };
        let own = match self.place {
            Place::Kernel => Some(self.own.enter(|| TcpStream::connect((OTHER, 80)))??),
            _ => None,
        };
        let (other, _) = listener.accept()?;
        let begun = Instant::now();
        let own = own.map(|own| std::thread::spawn(move || talk(own, sends)));
        talk(other, !sends)?;
        if let Some(own) = own {
            own.join().expect("it does not panic")?;
        }
        if let Some(weft) = weft {
            let output = weft.wait(LIMIT)?;
            ensure!(output.status.success(), "{output:?}");
        }
        Ok((begun.elapsed().as_secs_f64(), processor_seconds() - before))
    }
}

/// Writes all bytes or reads to the end.
fn talk(mut stream: TcpStream, sends: bool) -> Result<()> {
    let mut buffer = vec![b'x'; CHUNK];
    if sends {
        let mut left = BYTES;
        while left > 0 {
            let piece = left.min(CHUNK);
            stream.write_all(&buffer[..piece])?;
            left -= piece;
        }
        return Ok(());
    }
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Requests and answers of a few bytes in turn: percentiles of the time between.
pub fn requests(bench: &Bench, _: u32, results: &mut Results) -> Result<()> {
    for (system, place) in [(KERNEL, Place::Kernel), (OURS, Place::Interface)] {
        let hosts = Hosts::new(place, false)?;
        let listener = hosts.other.enter(|| TcpListener::bind((OTHER, 80)))??;
        let answering = std::thread::spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let mut buffer = [0; REQUEST];
            while stream.read_exact(&mut buffer).is_ok() {
                stream.write_all(&buffer)?;
            }
            Ok(())
        });
        let mut times = match place {
            Place::Kernel => {
                let stream = hosts.own.enter(|| TcpStream::connect((OTHER, 80)))??;
                stream.set_nodelay(true)?;
                ask(stream.try_clone()?, stream)?
            }
            _ => {
                let ends = ends();
                let mut command = Command::new("ip");
                command.args(["netns", "exec", hosts.own.name()]).args(hosts.words(bench, "cat", &[&ends])?);
                let mut weft = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let (input, output) = (weft.stdin.take(), weft.stdout.take());
                let times = ask(input.context("it has an input")?, output.context("it has an output")?)?;
                ensure!(weft.wait()?.success(), "weft failed");
                times
            }
        };
        answering.join().expect("it does not panic")?;
        times.sort();
        for (name, of_a_thousand) in [("p50", 500), ("p99", 990), ("p99.9", 999)] {
            let time = times[times.len() * of_a_thousand / 1000];
            results.add(&format!("answer to {REQUEST} bytes, {name}"), "us", system, time.as_secs_f64() * 1e6);
        }
    }
    Ok(())
}

/// How long each answer takes.
fn ask(mut to: impl Write, mut from: impl Read) -> Result<Vec<Duration>> {
    let mut buffer = [0; REQUEST];
    let once = |_| {
        let begun = Instant::now();
        to.write_all(&[7; REQUEST])?;
        to.flush()?;
        from.read_exact(&mut buffer)?;
        Ok(begun.elapsed())
    };
    (0..REQUESTS).map(once).collect()
}

/// Many connections that clients of the kernel open and keep: memory and time of each.
pub fn connections(bench: &Bench, _: u32, results: &mut Results) -> Result<()> {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &std::process::id().to_string(), &format!("--nofile={0}:{0}", CONNECTIONS + 1_000)]);
    run(command, LIMIT)?;
    let hosts = Hosts::new(Place::Tun, true)?;
    let name = hosts.own.name();
    let listen = format!("{OWN}:80");
    let ends = ["--name", name, "--listen", &listen];
    let mut weft: Running = hosts.own.spawn(&hosts.words(bench, "run", &ends)?)?;
    weft.wait_for_control(name)?;
    let address = listen.parse()?;
    // The first ones have it take what it needs once.
    let first = (0..100).map(|_| open(&hosts, address)).collect::<Result<Vec<_>>>()?;
    let (before, begun) = (resident_bytes(weft.pid())?, Instant::now());
    let more = (0..CONNECTIONS).map(|_| open(&hosts, address)).collect::<Result<Vec<_>>>()?;
    let (after, lasted) = (resident_bytes(weft.pid())?, begun.elapsed());
    let bytes = (after - before) as f64 / more.len() as f64;
    results.add("memory of a connection", "bytes", OURS, bytes);
    results.add("time to open one", "us", OURS, lasted.as_secs_f64() * 1e6 / more.len() as f64);
    drop((first, more));
    ensure!(weft.stop()?.status.success(), "weft failed");
    Ok(())
}

fn open(hosts: &Hosts, address: std::net::SocketAddr) -> Result<TcpStream> {
    hosts.other.connect(address, LIMIT)?.context("a connection opens")
}
