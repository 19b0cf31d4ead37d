//! `weft subs run` between kernels: one datagram with a batch of messages, and each subscriber gets its own.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;
use weftwire_testbed::{Namespace, skip_unless_root, wait_for};
use weftwire_workload::Numbers;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FORMAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions/itch.p4");
const LIMIT: Duration = Duration::from_secs(20);
/// Both subscribers have the same addresses: each is alone on its link.
const SUBSCRIBER: (&str, &str) = ("02:00:00:00:00:09", "10.0.0.9");
const RULES: &str = "add_order.side == B : fwd(2); trade.shares >= 0 : fwd(3); udp.destination_port == 26401 : fwd(2);";
/// Ethernet, IPv4 and UDP headers, which the sender's kernel makes.
const BELOW: usize = 42;

/// The messages of a MoldUDP64 datagram; its count is right.
fn messages(datagram: &[u8]) -> Vec<Vec<u8>> {
    let (header, mut rest) = datagram.split_at(20);
    let mut found = Vec::new();
    while let [high, low, behind @ ..] = rest {
        let (message, next) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        found.push(message.to_vec());
        rest = next;
    }
    assert_eq!(usize::from(u16::from_be_bytes([header[18], header[19]])), found.len());
    found
}

#[test]
fn each_subscriber_gets_its_messages_of_a_batch() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-subs");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let (rules, control) = (folder.join("some.rules"), folder.join("control.sock"));
    fs::write(&rules, RULES)?;

    let [exchange, middle, buyers, traders] =
        [Namespace::new()?, Namespace::new()?, Namespace::new()?, Namespace::new()?];
    exchange.join(("eth0", "02:00:00:00:00:01"), &middle, ("port1", "02:00:00:00:01:01"))?;
    exchange.exec("ip address add 10.0.0.1/24 dev eth0")?;
    exchange.exec(&format!("ip neighbour add {} lladdr {} dev eth0", SUBSCRIBER.1, SUBSCRIBER.0))?;
    let mut sockets = Vec::new();
    for (number, host) in [(2, &buyers), (3, &traders)] {
        let port = format!("port{number}");
        host.join(("eth0", SUBSCRIBER.0), &middle, (&port, &format!("02:00:00:00:01:0{number}")))?;
        host.exec(&format!("ip address add {}/24 dev eth0", SUBSCRIBER.1))?;
        let socket = host.enter(|| UdpSocket::bind((SUBSCRIBER.1, 26_400)))??;
        socket.set_read_timeout(Some(LIMIT))?;
        sockets.push(socket);
    }
    let path = |path: &Path| path.to_str().map(str::to_owned).context("the build's folder has a plain name");
    let (rules, control_path) = (path(&rules)?, path(&control)?);
    let mut words = vec![WEFT, "subs", "run", "--rules", &rules, "--format", FORMAT, "--keep-privileges"];
    words.extend(["--control", &control_path, "--port", "1=port1", "--port", "2=port2", "--port", "3=port3"]);
    let weft = middle.spawn(&words)?;
    wait_for("the control socket", LIMIT, || control.exists())?;

    let frame = weftwire_workload::itch_packet(25, 1, &mut Numbers::new(7));
    let sender = exchange.enter(|| UdpSocket::bind(("10.0.0.1", 26_400)))??;
    sender.send_to(&frame[BELOW..], (SUBSCRIBER.1, 26_400))?;
    let all = messages(&frame[BELOW..]);
    let side = |message: &Vec<u8>| message.get(19).copied();
    let wanted: [Vec<Vec<u8>>; 2] = [
        all.iter().filter(|message| message[0] == b'A' && side(message) == Some(b'B')).cloned().collect(),
        all.iter().filter(|message| message[0] == b'P').cloned().collect(),
    ];
    for (socket, wanted) in sockets.iter().zip(wanted) {
        let mut bytes = [0; 2048];
        // The kernel drops datagrams whose lengths or checksums are wrong.
        let length = socket.recv(&mut bytes).context("a subscriber's copy")?;
        ensure!(!wanted.is_empty() && wanted.len() < all.len(), "the batch has something for everybody");
        ensure!(messages(&bytes[..length]) == wanted, "other messages than were asked for");
    }
    let ended = weft.interrupt()?;
    ensure!(ended.status.success(), "{}", ended.stderr);
    Ok(())
}
