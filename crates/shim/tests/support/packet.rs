//! TCP segments as bytes and as scripts write them. Nothing here is the project's own code: it checks that.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A TCP segment. Sequence numbers are as on the line, or as a script counts them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// As packetdrill writes them: `S`, `F`, `R`, `P`, `.`, `E`, `W`, `U`.
    pub flags: String,
    pub sequence: u32,
    pub length: usize,
    pub acknowledgment: Option<u32>,
    pub window: Option<u16>,
    /// `None`: whatever there is.
    pub options: Option<Vec<TcpOption>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TcpOption {
    Mss(u16),
    Scale(u8),
    SackPermitted,
    /// Blocks, `None` beyond the last.
    Sack([Option<(u32, u32)>; 4]),
    Timestamps(u32, u32),
    Nop,
    End,
    Other(u8),
}

const FLAGS: [(char, u8); 8] =
    [('F', 0x01), ('S', 0x02), ('R', 0x04), ('P', 0x08), ('.', 0x10), ('U', 0x20), ('E', 0x40), ('W', 0x80)];

impl Segment {
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// The packet, with this payload.
    pub fn build(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
        let mut options = Vec::new();
        for option in self.options.iter().flatten() {
            option.write(&mut options);
        }
        while options.len() % 4 != 0 {
            options.push(1);
        }
        let mut tcp = Vec::new();
        tcp.extend(from.port().to_be_bytes());
        tcp.extend(to.port().to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgment.unwrap_or(0).to_be_bytes());
        tcp.push(((20 + options.len()) as u8 / 4) << 4);
        tcp.push(FLAGS.iter().filter(|(letter, _)| self.has(*letter)).map(|(_, bit)| bit).sum());
        tcp.extend(self.window.unwrap_or(0).to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(payload);
        let sum = sum(&pseudo(from.ip(), to.ip(), 6, tcp.len()), &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = header(from.ip(), to.ip(), 6, tcp.len());
        packet.extend(tcp);
        packet
    }

    /// Reads a packet: who sends it, to whom, and its payload.
    pub fn read(packet: &[u8]) -> Result<(SocketAddr, SocketAddr, Segment, &[u8]), String> {
        let (from, to, tcp): (IpAddr, IpAddr, &[u8]) = match packet.first().map(|byte| byte >> 4) {
            Some(4) => {
                if sum(&[], &packet[..20]) != 0 {
                    return Err("the checksum of the IPv4 header is wrong".into());
                }
                let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
                if length != packet.len() {
                    return Err(format!("the IPv4 header says {length} bytes of {}", packet.len()));
                }
                let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).expect("four bytes");
                (address(12).into(), address(16).into(), &packet[20..])
            }
            Some(6) => {
                let length = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
                if length + 40 != packet.len() {
                    return Err(format!("the IPv6 header says {length} bytes behind it of {}", packet.len()));
                }
                let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).expect("sixteen bytes");
                (address(8).into(), address(24).into(), &packet[40..])
            }
            _ => return Err("neither IPv4 nor IPv6".into()),
        };
        if sum(&pseudo(from, to, 6, tcp.len()), tcp) != 0 {
            return Err("the checksum of TCP is wrong".into());
        }
        let word = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let header = usize::from(tcp[12] >> 4) * 4;
        let segment = Segment {
            flags: FLAGS.iter().filter(|(_, bit)| tcp[13] & bit != 0).map(|(letter, _)| *letter).collect(),
            sequence: word(4),
            length: tcp.len() - header,
            acknowledgment: (tcp[13] & 0x10 != 0).then(|| word(8)),
            window: Some(half(14)),
            options: Some(TcpOption::read_all(&tcp[20..header])?),
        };
        Ok((SocketAddr::new(from, half(0)), SocketAddr::new(to, half(2)), segment, &tcp[header..]))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Segment { flags, sequence, length, acknowledgment, window, options } = self;
        write!(f, "{flags} {sequence}:{}({length})", sequence.wrapping_add(*length as u32))?;
        if let Some(number) = acknowledgment {
            write!(f, " ack {number}")?;
        }
        if let Some(window) = window {
            write!(f, " win {window}")?;
        }
        match options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let words: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", words.join(","))
            }
        }
    }
}

impl TcpOption {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            TcpOption::End => to.push(0),
            TcpOption::Nop => to.push(1),
            TcpOption::Mss(bytes) => {
                to.extend([2, 4]);
                to.extend(bytes.to_be_bytes());
            }
            TcpOption::Scale(shift) => to.extend([3, 3, *shift]),
            TcpOption::SackPermitted => to.extend([4, 2]),
            TcpOption::Sack(blocks) => {
                to.extend([5, 2 + 8 * blocks.iter().flatten().count() as u8]);
                for (left, right) in blocks.iter().flatten() {
                    to.extend(left.to_be_bytes());
                    to.extend(right.to_be_bytes());
                }
            }
            TcpOption::Timestamps(value, echo) => {
                to.extend([8, 10]);
                to.extend(value.to_be_bytes());
                to.extend(echo.to_be_bytes());
            }
            TcpOption::Other(kind) => to.extend([*kind, 2]),
        }
    }

    fn read_all(mut bytes: &[u8]) -> Result<Vec<TcpOption>, String> {
        let mut options = Vec::new();
        while let Some(kind) = bytes.first() {
            if *kind < 2 {
                options.push(if *kind == 0 { TcpOption::End } else { TcpOption::Nop });
                bytes = &bytes[1..];
                continue;
            }
            let length = usize::from(*bytes.get(1).ok_or("an option is cut short")?);
            let body = bytes.get(2..length).ok_or("an option is cut short")?;
            let word = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
            options.push(match (kind, body.len()) {
                (2, 2) => TcpOption::Mss(u16::from_be_bytes([body[0], body[1]])),
                (3, 1) => TcpOption::Scale(body[0]),
                (4, 0) => TcpOption::SackPermitted,
                (5, 8 | 16 | 24 | 32) => {
                    let block = |at: usize| (8 * at < body.len()).then(|| (word(8 * at), word(8 * at + 4)));
                    TcpOption::Sack([block(0), block(1), block(2), block(3)])
                }
                (8, 8) => TcpOption::Timestamps(word(0), word(4)),
                (kind, _) => TcpOption::Other(*kind),
            });
            bytes = &bytes[length..];
        }
        Ok(options)
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Mss(bytes) => write!(f, "mss {bytes}"),
            TcpOption::Scale(shift) => write!(f, "wscale {shift}"),
            TcpOption::SackPermitted => write!(f, "sackOK"),
            TcpOption::Sack(blocks) => {
                write!(f, "sack")?;
                blocks.iter().flatten().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            TcpOption::Timestamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            TcpOption::Nop => write!(f, "nop"),
            TcpOption::End => write!(f, "eol"),
            TcpOption::Other(kind) => write!(f, "option {kind}"),
        }
    }
}

/// A message of ICMP about a packet.
pub fn icmp(from: IpAddr, to: IpAddr, [kind, code]: [u8; 2], rest: u16, about: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
    message[6..8].copy_from_slice(&rest.to_be_bytes());
    message.extend(&about[..about.len().min(100)]);
    let (protocol, first) = match from {
        IpAddr::V4(_) => (1, Vec::new()),
        IpAddr::V6(_) => (58, pseudo(from, to, 58, message.len())),
    };
    let sum = sum(&first, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = header(from, to, protocol, message.len());
    packet.extend(message);
    packet
}

fn header(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
            header[2..4].copy_from_slice(&(20 + length as u16).to_be_bytes());
            header.extend(from.octets());
            header.extend(to.octets());
            let sum = sum(&[], &header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
            header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            header.extend(from.octets());
            header.extend(to.octets());
            header
        }
        _ => panic!("one family"),
    }
}

fn pseudo(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for address in [from, to] {
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    bytes.extend((length as u32).to_be_bytes());
    bytes.extend(u32::from(protocol).to_be_bytes());
    bytes
}

/// The Internet checksum (RFC 1071); 0 over something that has a right one.
fn sum(first: &[u8], second: &[u8]) -> u16 {
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
    };
    let mut sum = words(first) + words(second);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}
