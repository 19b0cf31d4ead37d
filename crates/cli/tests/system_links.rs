//! `weft run` and its interfaces: those that go away and come back, those that are not ready yet; and connections that the
//! other end opens.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weftwire_capture::inputs::{Input, Record, RecordingReader};
use weftwire_core::control::PortChange;
use weftwire_core::{Change, Port};
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const PROXY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
const LIMIT: Duration = Duration::from_secs(20);
/// One datagram for each piece of the application's bytes, never sent again; an empty one at the end.
const PAIR: &str = "
machine pair;
const network = 1;
flow key five_tuple expires after 10min at most 16 flows;
register length: u16;
template datagram: udp { }
action say() {
    length = min(application.available, 1000B);
    if length > 0 {
        send datagram with data(0, length) to network;
        release length;
    }
}
initial state open {
    enter { say(); }
    on data { say(); }
    on packet { deliver packet; }
    on close { send datagram to network; delete instance; }
}
";

fn folder(name: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// `left` eth0 - port1 `middle` port2 - eth0 `right`, and the SYN proxy in the middle.
struct Site {
    left: Namespace,
    middle: Namespace,
    right: Namespace,
}

impl Site {
    fn new() -> Result<Site> {
        let site = Site { left: Namespace::new()?, middle: Namespace::new()?, right: Namespace::new()? };
        site.left.join(("eth0", "02:00:00:00:00:01"), &site.middle, ("port1", "02:00:00:00:00:02"))?;
        site.left.exec("ip address add 10.0.0.1/24 dev eth0")?;
        site.make_right()?;
        Ok(site)
    }

    fn make_right(&self) -> Result<()> {
        self.right.join(("eth0", "02:00:00:00:00:04"), &self.middle, ("port2", "02:00:00:00:00:03"))?;
        self.right.exec("ip address add 10.0.0.2/24 dev eth0")?;
        Ok(())
    }

    fn run(&self, more: &[&str]) -> Result<Running> {
        let words = [WEFT, "run", PROXY, "--name", self.middle.name(), "--port", "1=port1"];
        self.middle.spawn(&[&words, more].concat())
    }

    /// How the run says that port 2 is.
    fn condition(&self) -> Option<String> {
        let socket = format!("/run/weft/runs/{}/control.sock", self.middle.name());
        let text = self.middle.exec_within(LIMIT, &[WEFT, "flows", "counters", "--control", &socket]).ok()?;
        let line = text.lines().find(|line| line.starts_with("port 2 port2 is "))?;
        Some(line.trim_start_matches("port 2 port2 is ").to_owned())
    }

    /// Waits until a connection from left to right is made through the proxy.
    fn connects(&self) -> Result<()> {
        let address: SocketAddr = ([10, 0, 0, 2], 80).into();
        let listener = self.right.enter(|| TcpListener::bind(address))??;
        self.left.connect(address, LIMIT)??;
        drop(listener.accept()?);
        Ok(())
    }
}

#[test]
fn an_interface_that_comes_back_is_taken_up_again() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    for kind in ["2=port2", "2=port2,ring", "2=port2,xdp"] {
        let site = Site::new()?;
        let recording = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-links.inputs");
        // It may be there from the last run.
        let _ = fs::remove_file(&recording);
        let weft = site.run(&["--port", kind, "--record", recording.to_str().expect("a plain name")])?;
        let is = |wanted: &str| wait_for(wanted, LIMIT, || site.condition().is_some_and(|is| is.starts_with(wanted)));
        is("up")?;
        site.connects()?;
        site.middle.exec("ip link set port2 down")?;
        is("down")?;
        site.middle.exec("ip link set port2 mtu 1400")?;
        site.middle.exec("ip link set port2 up")?;
        is("up")?;
        site.middle.exec("ip link delete port2")?;
        is("gone, gone 1 times")?;
        site.make_right()?;
        is("up, gone 1 times")?;
        // Without any privileges, and in both directions.
        site.connects()?;
        let said = weft.stop()?;
        ensure!(said.status.success(), "{}", said.stderr);
        for line in ["port 2 (port2) is down", "port 2 (port2) is gone", "port 2 (port2) is up again"] {
            ensure!(said.stderr.contains(line), "{kind}: {}", said.stderr);
        }
        ensure!(said.stderr.contains("port 2 times its interface was gone"), "{}", said.stderr);
        let mut told = told(&recording)?;
        // Of two things that happen at once, the function may hear in any order.
        let place = told.iter().position(|change| matches!(change, PortChange::Mtu { bytes: 1_400 }));
        told.remove(place.with_context(|| format!("{told:?} has no MTU of 1400"))?);
        let usual = PortChange::Mtu { bytes: 1_500 };
        let expected = [usual, PortChange::Down, PortChange::Up, PortChange::Down, usual, PortChange::Up];
        ensure!(told == expected, "{kind}: {told:?}");
        let mut again = Command::new(WEFT);
        again.args(["replay", PROXY, "--inputs"]).arg(&recording);
        let again = Running::start(again)?.wait(LIMIT)?;
        ensure!(again.stderr.contains("outputs are those of the run"), "{}", again.stderr);
    }
    Ok(())
}

/// What the function was told of port 2.
fn told(recording: &Path) -> Result<Vec<PortChange>> {
    let mut reader = RecordingReader::new(File::open(recording)?)?;
    let mut told = Vec::new();
    loop {
        match reader.next_record()? {
            Record::Input { input: Input::Control(_, Change::Port { port: Port(2), change }), .. } => told.push(change),
            Record::Input { .. } => {}
            Record::End(lost) => {
                ensure!(lost == 0, "{lost} inputs were not recorded");
                return Ok(told);
            }
        }
    }
}

#[test]
fn a_tun_device_that_comes_back_is_taken_up_again() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::new()?;
    site.middle.exec("ip link delete port2")?;
    let weft = site.run(&["--port", "2=tun:port2"])?;
    let is = |wanted: &str| wait_for(wanted, LIMIT, || site.condition().is_some_and(|is| is.starts_with(wanted)));
    is("up")?;
    site.middle.exec("ip link delete port2")?;
    is("gone, gone 1 times")?;
    site.middle.exec("ip tuntap add dev port2 mode tun")?;
    site.middle.exec("ip link set port2 up")?;
    is("up, gone 1 times")?;
    let said = weft.stop()?;
    ensure!(said.status.success(), "{}", said.stderr);
    Ok(())
}

#[test]
fn a_run_may_end_when_an_interface_is_gone() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::new()?;
    let weft = site.run(&["--port", "2=port2", "--exit-when-gone"])?;
    wait_for("the run", LIMIT, || site.condition().is_some())?;
    site.middle.exec("ip link delete port2")?;
    let said = weft.wait(LIMIT)?;
    ensure!(!said.status.success() && said.stderr.contains("port 2: interface `port2` is gone"), "{}", said.stderr);
    Ok(())
}

/// A TUN device that was there before gets its carrier when it is opened, and is ready for answers a moment later.
#[test]
fn the_first_exchange_of_a_connection_is_not_lost() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = folder("system-links-first")?;
    let machine = folder.join("pair.xl");
    fs::write(&machine, PAIR)?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a plain name");
    let host = Namespace::new()?;
    host.exec("ip tuntap add dev weft0 mode tun")?;
    host.exec("ip address add 10.0.0.2/24 dev weft0")?;
    host.exec("ip link set weft0 up")?;
    let peer = host.enter(|| UdpSocket::bind("10.0.0.2:80"))??;
    peer.set_read_timeout(Some(LIMIT))?;
    for attempt in 0..10_u16 {
        let answer = folder.join(format!("answer{attempt}"));
        let connection = format!("10.0.0.1:{}-10.0.0.2:80/udp", 4000 + attempt);
        let words = [WEFT, "run", &text(&machine)?, "--port", "1=tun:weft0", "--name", host.name()];
        let more = ["--connect", &connection, "--send", "-", "--receive", &text(&answer)?];
        // Standard input has ended, so only the end of the connection is said. Its answer is one that nobody asks for again.
        let weft = host.spawn(&[&words[..], &more].concat())?;
        let mut bytes = [0; 100];
        let (length, from) = peer.recv_from(&mut bytes).with_context(|| format!("attempt {attempt}"))?;
        ensure!(length == 0, "{length} bytes");
        peer.send_to(b"answer", from)?;
        wait_for("the answer", LIMIT, || fs::read(&answer).is_ok_and(|bytes| bytes == b"answer"))
            .with_context(|| format!("attempt {attempt}"))?;
        ensure!(weft.stop()?.status.success());
    }
    Ok(())
}

#[test]
fn a_connection_that_the_other_end_opens_is_written_to_and_closed() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = folder("system-links-passive")?;
    let (machine, sent, received) = (folder.join("pair.xl"), folder.join("sent"), folder.join("received"));
    fs::write(&machine, PAIR)?;
    fs::write(&sent, "an answer")?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a plain name");
    let host = Namespace::new()?;
    let words = [WEFT, "run", &text(&machine)?, "--port", "1=tun:weft0", "--name", host.name(), "--exit-when-ended"];
    let weft = host.spawn(&[&words[..], &["--send", &text(&sent)?, "--receive", &text(&received)?]].concat())?;
    wait_for("the device", LIMIT, || host.exec("ip address add 10.0.0.2/24 dev weft0").is_ok())?;
    let peer = host.enter(|| UdpSocket::bind("10.0.0.2:5000"))??;
    peer.set_read_timeout(Some(LIMIT))?;
    peer.send_to(b"a question", "10.0.0.1:80")?;
    let mut bytes = [0; 100];
    for wanted in [&b"an answer"[..], b""] {
        let length = peer.recv(&mut bytes)?;
        ensure!(&bytes[..length] == wanted, "{:?}", &bytes[..length]);
    }
    let said = weft.wait(LIMIT)?;
    ensure!(said.status.success() && fs::read(&received)? == b"a question", "{}", said.stderr);
    Ok(())
}
