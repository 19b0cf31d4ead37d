//! `weft subs controller` and switches that follow it, between kernels: what hosts subscribe to at run time arrives, what they
//! end does not, and killed switches and controllers catch up.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::{Namespace, Running, run, skip_unless_root, wait_for};
use weftwire_workload::Numbers;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FORMAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions/itch.p4");
const LIMIT: Duration = Duration::from_secs(20);
/// All subscribers have the same addresses: each is alone on its link.
const SUBSCRIBER: (&str, &str) = ("02:00:00:00:00:09", "10.0.0.9");
/// Ethernet, IPv4 and UDP headers, which the sender's kernel makes.
const BELOW: usize = 42;
/// Ports are numbered in the order of the links.
const NETWORK: &str = r#"
duration = "1s"
nodes = { exchange = {}, alice = {}, bob = {}, leaf1 = { kind = "router" }, leaf2 = { kind = "router" }, spine1 = { kind = "router" }, spine2 = { kind = "router" } }
links = [
    { between = ["exchange", "leaf1"], rate = "1Gbit/s" },
    { between = ["alice", "leaf1"], rate = "1Gbit/s" },
    { between = ["leaf1", "spine1"], rate = "1Gbit/s" },
    { between = ["leaf1", "spine2"], rate = "1Gbit/s" },
    { between = ["bob", "leaf2"], rate = "1Gbit/s" },
    { between = ["leaf2", "spine1"], rate = "1Gbit/s" },
    { between = ["leaf2", "spine2"], rate = "1Gbit/s" },
]
"#;

/// The messages of a MoldUDP64 datagram.
fn messages(datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &datagram[20..];
    let mut found = Vec::new();
    while let [high, low, behind @ ..] = rest {
        let (message, next) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        found.push(message.to_vec());
        rest = next;
    }
    found
}

struct Lab {
    middle: Namespace,
    socket: String,
    network: String,
    store: String,
    folder: String,
}

impl Lab {
    fn controller(&self) -> Result<Running> {
        let words = [
            WEFT,
            "subs",
            "controller",
            &self.network,
            "--format",
            FORMAT,
            "--store",
            &self.store,
            "--listen",
            &self.socket,
            "--keep-privileges",
        ];
        let running = self.middle.spawn(&words)?;
        wait_for("the controller", LIMIT, || self.ask(&["topology"]).is_ok())?;
        Ok(running)
    }

    fn switch(&self, name: &str, ports: &[&str]) -> Result<Running> {
        let control = format!("{}/{name}.sock", self.folder);
        let mut words = vec![WEFT, "subs", "run", "--switch", name, "--controller", &self.socket, "--format", FORMAT];
        words.extend(["--keep-privileges", "--control", &control]);
        ports.iter().for_each(|port| words.extend(["--port", port]));
        self.middle.spawn(&words)
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(WEFT);
        command.arg("subs").args(words).args(["--controller", &self.socket]);
        run(command, LIMIT)
    }

    /// Waits until all switches follow.
    fn wait_until_all_follow(&self) -> Result<()> {
        wait_for("all switches", LIMIT, || {
            let topology = self.ask(&["topology"]).unwrap_or_default();
            topology.matches("up to date").count() == 4
        })
    }
}

/// A sender whose packets each have a number.
struct Exchange {
    sockets: Vec<UdpSocket>,
    sequence: u64,
}

impl Exchange {
    /// Sends a batch by each of the flows, and returns their messages by number.
    fn send(&mut self) -> Result<Batches> {
        let mut batches = Batches::new();
        for socket in &self.sockets {
            self.sequence += 1;
            let frame = weftwire_workload::itch_packet(25, self.sequence, &mut Numbers::new(7));
            socket.send_to(&frame[BELOW..], (SUBSCRIBER.1, 26_400))?;
            batches.insert(self.sequence, messages(&frame[BELOW..]));
        }
        Ok(batches)
    }
}

/// The messages of datagrams, by number.
type Batches = BTreeMap<u64, Vec<Vec<u8>>>;

/// Takes as many datagrams as were sent, and sees that each has the messages that are wanted. Flows may overtake each other.
fn expect(socket: &UdpSocket, who: &str, sent: &Batches, wanted: impl Fn(&[u8]) -> bool) -> Result<()> {
    let mut missing = sent.clone();
    for _ in 0..sent.len() {
        let mut bytes = [0; 2048];
        let length = socket.recv(&mut bytes).with_context(|| format!("a batch for {who}"))?;
        let number = u64::from_be_bytes(bytes[10..18].try_into()?);
        let all = missing.remove(&number).with_context(|| format!("{who} got batch {number}, of {:?}", sent.keys()))?;
        let wanted: Vec<Vec<u8>> = all.iter().filter(|message| wanted(message)).cloned().collect();
        ensure!(!wanted.is_empty() && wanted.len() < all.len(), "the batch has something for everybody");
        ensure!(messages(&bytes[..length]) == wanted, "{who} got other messages than were asked for");
    }
    Ok(())
}

fn is_side(message: &[u8], side: u8) -> bool {
    message[0] == b'A' && message.get(19) == Some(&side)
}

#[test]
fn subscriptions_take_effect_at_run_time_and_survive_kills() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-controller");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let path =
        |name: &str| folder.join(name).to_str().map(str::to_owned).context("the build's folder has a plain name");
    fs::write(folder.join("network.toml"), NETWORK)?;
    let lab = Lab {
        middle: Namespace::new()?,
        socket: format!("unix:{}", path("controller.grpc")?),
        network: path("network.toml")?,
        store: path("store")?,
        folder: path(".")?,
    };

    let [exchange, alice, bob] = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
    exchange.join(("eth0", "02:00:00:00:00:01"), &lab.middle, ("exchange", "02:00:00:00:01:01"))?;
    exchange.exec("ip address add 10.0.0.1/24 dev eth0")?;
    exchange.exec(&format!("ip neighbour add {} lladdr {} dev eth0", SUBSCRIBER.1, SUBSCRIBER.0))?;
    let subscriber = |host: &Namespace, name: &str, mac: &str| -> Result<UdpSocket> {
        host.join(("eth0", SUBSCRIBER.0), &lab.middle, (name, mac))?;
        host.exec(&format!("ip address add {}/24 dev eth0", SUBSCRIBER.1))?;
        let socket = host.enter(|| UdpSocket::bind((SUBSCRIBER.1, 26_400)))??;
        socket.set_read_timeout(Some(LIMIT))?;
        Ok(socket)
    };
    let alice = (subscriber(&alice, "alice", "02:00:00:00:01:02")?, alice);
    let bob = (subscriber(&bob, "bob", "02:00:00:00:01:03")?, bob);
    for (link, number) in [("l1s1", 1), ("l1s2", 2), ("l2s1", 3), ("l2s2", 4)] {
        let (low, high) = (format!("{link}a"), format!("{link}b"));
        lab.middle.exec(&format!("ip link add {low} address 02:00:00:00:02:0{number} type veth peer name {high}"))?;
        for end in [low, high] {
            lab.middle.exec(&format!("ip link set {end} up"))?;
        }
    }

    let controller = lab.controller()?;
    let leaf2_ports = ["1=bob", "2=l2s1a", "3=l2s2a"];
    let leaf1 = lab.switch("leaf1", &["1=exchange", "2=alice", "3=l1s1a", "4=l1s2a"])?;
    let leaf2 = lab.switch("leaf2", &leaf2_ports)?;
    let spine1 = lab.switch("spine1", &["1=l1s1b", "2=l2s1b"])?;
    let spine2 = lab.switch("spine2", &["1=l1s2b", "2=l2s2b"])?;
    lab.wait_until_all_follow()?;

    // Several flows take both ways up.
    let sockets: std::io::Result<Vec<UdpSocket>> =
        exchange.enter(|| (0..8).map(|port| UdpSocket::bind(("10.0.0.1", 26_400 + port))).collect())?;
    let mut exchange = Exchange { sockets: sockets?, sequence: 0 };
    // Nobody has subscribed yet: what is sent now must not be what is received first.
    exchange.send()?;
    lab.ask(&["subscribe", "alice", "add_order.side == B", "--wait"])?;
    lab.ask(&["subscribe", "bob", "trade.shares >= 0", "--wait"])?;
    let sent = exchange.send()?;
    expect(&alice.0, "alice", &sent, |message| is_side(message, b'B'))?;
    expect(&bob.0, "bob", &sent, |message| message[0] == b'P')?;

    // What ended does not come any more.
    lab.ask(&["unsubscribe", "bob", "trade.shares >= 0", "--wait"])?;
    let sent = exchange.send()?;
    expect(&alice.0, "alice", &sent, |message| is_side(message, b'B'))?;
    lab.ask(&["subscribe", "bob", "add_order.side == S", "--wait"])?;
    let sent = exchange.send()?;
    expect(&alice.0, "alice", &sent, |message| is_side(message, b'B'))?;
    expect(&bob.0, "bob", &sent, |message| is_side(message, b'S'))?;

    // A switch that was killed has all that it missed.
    leaf2.kill();
    lab.ask(&["subscribe", "bob", "trade.shares >= 0"])?;
    let leaf2 = lab.switch("leaf2", &leaf2_ports)?;
    lab.wait_until_all_follow()?;
    let sent = exchange.send()?;
    expect(&alice.0, "alice", &sent, |message| is_side(message, b'B'))?;
    expect(&bob.0, "bob", &sent, |message| message[0] == b'P' || is_side(message, b'S'))?;

    // Without a controller everything goes on; one that starts again has what it had acknowledged.
    controller.kill();
    ensure!(lab.ask(&["list"]).is_err(), "the controller was killed");
    let sent = exchange.send()?;
    expect(&alice.0, "alice", &sent, |message| is_side(message, b'B'))?;
    expect(&bob.0, "bob", &sent, |message| message[0] == b'P' || is_side(message, b'S'))?;
    let controller = lab.controller()?;
    lab.wait_until_all_follow()?;
    ensure!(lab.ask(&["list", "--host", "bob"])?.lines().count() == 2);
    lab.ask(&["unsubscribe", "bob", "--all", "--wait"])?;
    lab.ask(&["subscribe", "bob", "add_order.side == B", "--wait"])?;
    let sent = exchange.send()?;
    expect(&alice.0, "alice", &sent, |message| is_side(message, b'B'))?;
    expect(&bob.0, "bob", &sent, |message| is_side(message, b'B'))?;

    for running in [leaf1, leaf2, spine1, spine2, controller] {
        let ended = running.interrupt()?;
        ensure!(ended.status.success(), "{}", ended.stderr);
    }
    ensure!(!folder.join("controller.grpc").exists(), "the socket is removed");
    Ok(())
}
