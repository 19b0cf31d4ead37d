//! What a person or a filter wants to know of a packet: addresses, ports, TCP numbers and options.
//!
//! Reading is lenient, as captures may be cut: whatever headers are there are used.

use etherparse::{LaxNetSlice, LaxSlicedPacket, LinkSlice, TcpOptionElement, TransportSlice};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use weftwire_core::{LinkType, MacAddress};

/// The headers of a packet that are of interest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Ethernet source and destination, if there is an Ethernet header.
    pub ethernet: Option<(MacAddress, MacAddress)>,
    /// IP source address.
    pub source: IpAddr,
    /// IP destination address.
    pub destination: IpAddr,
    /// TCP or UDP; `None` for anything else, and for fragments other than the first.
    pub transport: Option<Transport>,
}

/// A transport header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Source port number.
    pub source_port: u16,
    /// Destination port number.
    pub destination_port: u16,
    /// Bytes of payload, by the IP header's length.
    pub payload: u32,
    /// TCP's part; `None` for UDP.
    pub tcp: Option<Tcp>,
}

/// TCP header fields (RFC 9293, RFC 7323, RFC 2018).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tcp {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number; means something only with `ack`.
    pub acknowledgment: u32,
    /// The flags.
    pub flags: Flags,
    /// The window as it stands in the header.
    pub window: u16,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// SACK-permitted option.
    pub sack_permitted: bool,
    /// SACK blocks, left and right edge.
    pub sack: Vec<(u32, u32)>,
    /// Timestamps option: value and echo.
    pub timestamps: Option<(u32, u32)>,
}

/// TCP flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// Synchronize.
    pub syn: bool,
    /// Finish.
    pub fin: bool,
    /// Reset.
    pub rst: bool,
    /// The acknowledgment number means something.
    pub ack: bool,
    /// Push.
    pub psh: bool,
    /// Congestion window reduced (RFC 3168).
    pub cwr: bool,
    /// ECN echo (RFC 3168).
    pub ece: bool,
}

/// The flags that are set, e.g. `SYN ACK`.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.syn, "SYN"),
            (self.fin, "FIN"),
            (self.rst, "RST"),
            (self.psh, "PSH"),
            (self.ack, "ACK"),
            (self.cwr, "CWR"),
            (self.ece, "ECE"),
        ];
        let set: Vec<&str> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        f.write_str(&set.join(" "))
    }
}

impl Headers {
    /// Reads a frame. `None` if it is not IP.
    pub fn parse(link: LinkType, bytes: &[u8]) -> Option<Headers> {
        let sliced = match link {
            LinkType::Ethernet => LaxSlicedPacket::from_ethernet(bytes).ok()?,
            LinkType::Ip => LaxSlicedPacket::from_ip(bytes).ok()?,
        };
        let ethernet = match &sliced.link {
            Some(LinkSlice::Ethernet2(header)) => Some((header.source().into(), header.destination().into())),
            _ => None,
        };
        let (source, destination, length): (IpAddr, IpAddr, usize) = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let length = usize::from(header.total_len()).saturating_sub(header.slice().len());
                (header.source_addr().into(), header.destination_addr().into(), length)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let extensions = ip.extensions().slice().len();
                let length = usize::from(header.payload_length()).saturating_sub(extensions);
                (header.source_addr().into(), header.destination_addr().into(), length)
            }
            _ => return None,
        };
        let payload = |header: usize| u32::try_from(length.saturating_sub(header)).unwrap_or(u32::MAX);
        let transport = match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => Some(Transport {
                source_port: tcp.source_port(),
                destination_port: tcp.destination_port(),
                payload: payload(tcp.header_slice().len()),
                tcp: Some(read_tcp(tcp)),
            }),
            Some(TransportSlice::Udp(udp)) => Some(Transport {
                source_port: udp.source_port(),
                destination_port: udp.destination_port(),
                payload: payload(8),
                tcp: None,
            }),
            _ => None,
        };
        Some(Headers { ethernet, source, destination, transport })
    }

    /// Both ends of a packet with ports: from, to.
    pub fn endpoints(&self) -> Option<(SocketAddr, SocketAddr)> {
        let transport = self.transport.as_ref()?;
        Some((
            SocketAddr::new(self.source, transport.source_port),
            SocketAddr::new(self.destination, transport.destination_port),
        ))
    }
}

fn read_tcp(header: &etherparse::TcpSlice<'_>) -> Tcp {
    let mut tcp = Tcp {
        sequence: header.sequence_number(),
        acknowledgment: header.acknowledgment_number(),
        flags: Flags {
            syn: header.syn(),
            fin: header.fin(),
            rst: header.rst(),
            ack: header.ack(),
            psh: header.psh(),
            cwr: header.cwr(),
            ece: header.ece(),
        },
        window: header.window_size(),
        ..Tcp::default()
    };
    for option in header.options_iterator().flatten() {
        match option {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => tcp.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => tcp.window_scale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => tcp.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                tcp.sack.push(first);
                tcp.sack.extend(rest.into_iter().flatten());
            }
            TcpOptionElement::Timestamp(value, echo) => tcp.timestamps = Some((value, echo)),
        }
    }
    tcp
}
