//! Sinks and echoes: nodes whose kernel has no address. A thread takes the frames of all their ports, counts the
//! datagrams of the network's traffic, and at an echo sends them back.

use super::{Stage, udp};
use crate::build::{in_namespace, namespace_name, port_name};
use crate::error::LabError;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use weftwire_core::buffer::Pool;
use weftwire_core::wire::PROTOCOL_UDP;
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::{Arrivals, DropReason, Formats, Frame, Packet, Port};
use weftwire_linux::packet_socket::PacketSocket;
use weftwire_linux::port::FramePort;
use weftwire_linux::system::{poll, poll_input};
use weftwire_network::Network;
use weftwire_network::model::{Node, NodeIndex, NodeKind};

/// Starts the threads of all sinks and echoes; their sockets are open when this returns.
pub(crate) fn start(stage: &Arc<Stage>) -> Result<Vec<JoinHandle<()>>, LabError> {
    let mut threads = Vec::new();
    for (index, node) in stage.network.nodes() {
        if let Some(ports) = open(&stage.network, node)? {
            threads.extend(stage.start(index, move |stage| {
                let mut machine = RawHost::new(&stage.network, index, ports);
                while !stage.is_over() {
                    machine.turn(
                        |port, peer, bytes| udp::arrived(stage, index, port, peer, bytes),
                        |reason| stage.dropped(index, reason),
                    );
                }
                Ok(())
            }));
        }
    }
    Ok(threads)
}

/// The ports of a sink or echo, opened; `None` for other nodes.
pub(crate) fn open(network: &Network, node: &Node) -> Result<Option<Vec<PacketSocket>>, LabError> {
    if !matches!(node.kind, NodeKind::Sink | NodeKind::Echo) {
        return Ok(None);
    }
    in_namespace(&namespace_name(&network.name, &node.name), || {
        (1..=node.ports.len()).map(|port| PacketSocket::open(&port_name(Port(port as u16)))).collect()
    })
    .map(Some)
}

/// A sink or an echo.
pub(crate) struct RawHost {
    ports: Vec<PacketSocket>,
    addresses: [IpAddr; 2],
    echo: bool,
    formats: Formats,
    pool: Pool,
    arrivals: Arrivals,
}

impl RawHost {
    pub(crate) fn new(network: &Network, index: NodeIndex, ports: Vec<PacketSocket>) -> RawHost {
        let node = network.node(index);
        let addresses = [node.ipv4.into(), node.ipv6.into()];
        let (echo, formats) = (matches!(node.kind, NodeKind::Echo), Formats::default());
        RawHost { ports, addresses, echo, formats, pool: Pool::default(), arrivals: Arrivals::new() }
    }

    /// Waits a little for frames and handles them; tells of each datagram to this node its port, whence it came, and
    /// the bytes of its payload; and of each damaged frame what is wrong with it.
    pub(crate) fn turn(&mut self, mut arrived: impl FnMut(u16, SocketAddr, u64), mut dropped: impl FnMut(DropReason)) {
        let mut waiting: Vec<_> = self.ports.iter().map(|port| poll_input(port.descriptor())).collect();
        // An error would come again; the caller goes on until the run is over.
        let _ = poll(&mut waiting, Some(super::PATIENCE));
        let RawHost { ports, addresses, echo, formats, pool, arrivals } = self;
        for port in ports {
            // A port that can't be used any more receives nothing.
            let _ = port.receive(Port(1), pool, arrivals);
            let mut answers = Vec::new();
            for arrival in arrivals.drain(..) {
                let frame = arrival.frame();
                if let Err(reason) = Packet::parse(port.link(), frame, formats) {
                    dropped(reason);
                    continue;
                }
                let bytes = frame.bytes;
                let Some(datagram) = Datagram::find(bytes).filter(|it| addresses.contains(&it.to.ip())) else {
                    continue;
                };
                arrived(datagram.to.port(), datagram.from, datagram.payload);
                if *echo {
                    answers.push(datagram.answer(bytes));
                }
                pool.give_back(arrival.buffer);
            }
            for answer in answers {
                port.send(&[Frame::new(&answer)]);
            }
        }
    }
}

/// A UDP datagram within a frame.
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    payload: u64,
    /// Where the IP header starts, and the UDP header.
    network: usize,
    transport: usize,
}

impl Datagram {
    fn find(frame: &[u8]) -> Option<Datagram> {
        let network = Ethernet::parse(frame).ok()?.header_length();
        let packet = frame.get(network..)?;
        let (from, to, length, protocol): (IpAddr, IpAddr, _, _) = match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4::parse(packet).ok()?;
                (ip.source().into(), ip.destination().into(), ip.header_length(), ip.protocol())
            }
            6 => {
                let ip = Ipv6::parse(packet).ok()?;
                (ip.source().into(), ip.destination().into(), ip.header_length(), ip.protocol())
            }
            _ => return None,
        };
        let transport = network + length;
        let header = frame.get(transport..transport + 8).filter(|_| protocol == PROTOCOL_UDP)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let payload = u64::from(word(4)).saturating_sub(8);
        Some(Datagram { from: (from, word(0)).into(), to: (to, word(2)).into(), payload, network, transport })
    }

    /// The same frame back to where it came from. Exchanging places changes no checksum; the hop limit stays, so that
    /// no frame can go round for ever.
    fn answer(&self, frame: &[u8]) -> Vec<u8> {
        let mut answer = frame.to_vec();
        let (places, length) = if self.from.is_ipv4() { (12, 4) } else { (8, 16) };
        for (start, length) in [(0, 6), (self.network + places, length), (self.transport, 2)] {
            let (first, second) = answer[start..start + 2 * length].split_at_mut(length);
            first.swap_with_slice(second);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_core::wire::builder::{FrameBuilder, Ipv6Fields};

    #[test]
    fn an_answer_is_the_datagram_with_its_ends_exchanged() {
        let fields = Ipv6Fields { source: 1.into(), destination: 2.into(), ..Ipv6Fields::default() };
        let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv6(&fields).udp(7, 9).payload(b"hello").finish().unwrap();
        let datagram = Datagram::find(&frame).unwrap();
        assert_eq!((datagram.from.port(), datagram.to.port(), datagram.payload), (7, 9, 5));
        let answer = datagram.answer(&frame);
        let back = Datagram::find(&answer).unwrap();
        assert_eq!((back.from, back.to), (datagram.to, datagram.from));
        assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]));
        assert_eq!(back.answer(&answer), frame);
        assert!(Datagram::find(&frame[..40]).is_none());
    }
}
