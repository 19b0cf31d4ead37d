//! Datagrams between kernels. Each begins with its number and the time it was sent, if it is long enough.

use super::tcp::sample;
use super::{PATIENCE, Stage, pattern};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use weftwire_linux::LinuxError;
use weftwire_linux::socket_address::udp;
use weftwire_network::model::{NodeIndex, NodeKind};
use weftwire_network::traffic::Begins;

/// Bytes of number and time.
const STAMP: usize = 16;

/// Opens a socket; in the node's namespace.
pub(crate) fn open(address: SocketAddr) -> Result<UdpSocket, LinuxError> {
    let socket = udp(address, PATIENCE).map_err(|error| LinuxError::system(format!("bind to {address}"), error))?;
    Ok(UdpSocket::from(socket))
}

/// Counts datagrams until the run is over.
pub(crate) fn receive(stage: &Arc<Stage>, socket: &UdpSocket, node: NodeIndex) -> Result<(), String> {
    let port = socket.local_addr().map_err(|error| error.to_string())?.port();
    let mut buffer = vec![0; 65_536];
    while !stage.is_over() {
        if let Ok((count, peer)) = socket.recv_from(&mut buffer) {
            arrived(stage, node, port, peer, count as u64);
        }
    }
    Ok(())
}

/// A datagram of so many bytes reached a node.
pub(crate) fn arrived(stage: &Stage, node: NodeIndex, port: u16, peer: SocketAddr, bytes: u64) {
    let Some((number, _)) = stage.identify(node, port, peer) else { return };
    let now = stage.now();
    let ledger = &stage.ledgers[number];
    let mut total = 0;
    ledger.update(0, |flow| {
        flow.first_byte.get_or_insert(now);
        flow.end = Some(now);
        flow.delivered += bytes;
        // Counted down to what did not arrive.
        flow.lost = Some(flow.lost.unwrap_or(0).wrapping_sub(1));
        total = flow.delivered;
    });
    ledger.plot(0, now, total);
}

/// Sends the datagrams of a traffic at their times, and takes those that an echo returns.
pub(crate) fn send(stage: &Arc<Stage>, number: usize) -> Result<(), String> {
    let traffic = &stage.network.traffic[number];
    let ledger = &stage.ledgers[number];
    let failed = |error: std::io::Error| format!("traffic `{}`: {error}", traffic.name);
    let local = (stage.network.address(traffic.from, traffic.ipv6), traffic.source_port).into();
    let remote: SocketAddr = (stage.network.address(traffic.to, traffic.ipv6), traffic.port).into();
    let socket = UdpSocket::from(udp(local, PATIENCE).map_err(failed)?);
    socket.connect(remote).map_err(failed)?;
    let echo = matches!(stage.network.node(traffic.to).kind, NodeKind::Echo);
    if echo {
        take_echoes(stage, number, &socket).map_err(failed)?;
    }
    let mut buffer = Vec::new();
    let (mut first, mut sent, mut bytes, mut refused) = (None, 0_u64, 0_u64, 0_u64);
    for begin in Begins::new(traffic) {
        if !stage.wait_until(begin.at.nanoseconds()) {
            break;
        }
        buffer.clear();
        buffer.extend_from_slice(pattern(0, begin.bytes.min(65_507)));
        let now = stage.begins(begin.at.nanoseconds());
        if buffer.len() >= STAMP {
            buffer[..8].copy_from_slice(&begin.number.to_be_bytes());
            buffer[8..STAMP].copy_from_slice(&now.to_be_bytes());
        }
        if first.is_none() {
            first = Some(now);
            ledger.update(0, |flow| flow.start = now);
        }
        // An ICMP error of an earlier datagram comes back here once; this one has not been sent then.
        match socket.send(&buffer).or_else(|_| socket.send(&buffer)) {
            Ok(_) => {
                sent += 1;
                bytes += buffer.len() as u64;
            }
            Err(_) => refused += 1,
        }
    }
    if refused > 0 {
        stage.warn(format!("traffic `{}`: the kernel refused {refused} datagrams", traffic.name));
    }
    ledger.update(0, |flow| {
        flow.packets = Some(sent);
        flow.bytes = Some(bytes);
        flow.lost = Some(flow.lost.unwrap_or(0).wrapping_add(sent));
        flow.outcome = if stage.is_over() { "running" } else { "complete" }.to_owned();
    });
    Ok(())
}

/// Round trips of what comes back, until the run is over.
fn take_echoes(stage: &Arc<Stage>, number: usize, socket: &UdpSocket) -> std::io::Result<()> {
    let (stage, socket) = (stage.clone(), socket.try_clone()?);
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
        let mut buffer = vec![0; 65_536];
        while !stage.is_over() {
            let Ok(count @ STAMP..) = socket.recv(&mut buffer) else { continue };
            let _ = count;
            let mut time = [0; 8];
            time.copy_from_slice(&buffer[8..STAMP]);
            let rtt = stage.now() - i64::from_be_bytes(time);
            stage.ledgers[number].update(0, |flow| sample(flow, rtt));
        }
    });
    thread.map(drop)
}
