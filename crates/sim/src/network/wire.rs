//! The few header fields that nodes read and write, in place.

use std::net::IpAddr;
use weftwire_core::MacAddress;
use weftwire_core::checksum::{Sum, checksum, update};
use weftwire_network::routing::Flow;

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Most bytes of an IP packet on any link.
pub const MTU: usize = 1500;
/// IP protocol numbers.
pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// Hops that a packet may make.
const TTL: u8 = 64;

/// Start of the IP header behind Ethernet and its VLAN tags, and whether it is IPv6. `None`: not IP, or cut off.
pub fn network(frame: &[u8]) -> Option<(usize, bool)> {
    let mut at = 12;
    loop {
        match u16_at(frame, at)? {
            0x8100 | 0x88a8 => at += 4,
            0x0800 => return (frame.len() >= at + 22).then_some((at + 2, false)),
            0x86dd => return (frame.len() >= at + 42).then_some((at + 2, true)),
            _ => return None,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn address(bytes: &[u8]) -> IpAddr {
    match <[u8; 16]>::try_from(bytes) {
        Ok(long) => IpAddr::from(long),
        Err(_) => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
    }
}

/// Changes a word of the IPv4 header at `ip` and its checksum.
fn change_word(frame: &mut [u8], ip: usize, at: usize, change: impl FnOnce(u16) -> u16) {
    let old = u16::from_be_bytes([frame[at], frame[at + 1]]);
    let new = change(old);
    frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
    let sum = u16::from_be_bytes([frame[ip + 10], frame[ip + 11]]);
    frame[ip + 10..ip + 12].copy_from_slice(&update(sum, old, new).to_be_bytes());
}

/// Where a packet wants to go; or why it is no packet to forward.
pub fn destination(frame: &[u8]) -> Result<IpAddr, &'static str> {
    let (at, v6) = network(frame).ok_or("not_ip")?;
    if v6 {
        if frame[at] >> 4 != 6 {
            return Err("bad_header");
        }
        return Ok(address(&frame[at + 24..at + 40]));
    }
    let header = usize::from(frame[at] & 15) * 4;
    let whole = frame.get(at..at + header).ok_or("bad_header")?;
    if frame[at] >> 4 != 4 || header < 20 || Sum::new().bytes(whole).folded() != 0xffff {
        return Err("bad_header");
    }
    Ok(address(&frame[at + 16..at + 20]))
}

/// The flow that a packet belongs to. Only for frames with a destination.
pub fn flow(frame: &[u8]) -> Flow {
    let Some((at, v6)) = network(frame) else {
        let nobody = IpAddr::from([0; 4]);
        return Flow { source: nobody, destination: nobody, protocol: 0, ports: [0; 2] };
    };
    let (addresses, length, protocol, transport) = match v6 {
        true => (at + 8, 16, frame[at + 6], at + 40),
        false => (at + 12, 4, frame[at + 9], at + usize::from(frame[at] & 15) * 4),
    };
    let fragment = !v6 && u16_at(frame, at + 6).unwrap_or(0) & 0x3fff != 0;
    let port = |place| if matches!(protocol, TCP | UDP) && !fragment { u16_at(frame, place).unwrap_or(0) } else { 0 };
    Flow {
        source: address(&frame[addresses..addresses + length]),
        destination: address(&frame[addresses + length..addresses + 2 * length]),
        protocol,
        ports: [port(transport), port(transport + 2)],
    }
}

/// One hop less to live; `false` if that was the last one. Only for frames with a destination.
pub fn decrement_ttl(frame: &mut [u8]) -> bool {
    match network(frame) {
        Some((at, false)) if frame[at + 8] > 1 => {
            change_word(frame, at, at + 8, |word| word - 0x100);
            true
        }
        Some((at, true)) if frame[at + 7] > 1 => {
            frame[at + 7] -= 1;
            true
        }
        _ => false,
    }
}

/// What a host reads of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where the IP header starts in the frame.
    pub ip: usize,
    /// Where the transport header starts.
    pub transport: usize,
    /// Where the IP packet ends.
    pub end: usize,
    /// IPv6.
    pub ipv6: bool,
    /// IP protocol number.
    pub protocol: u8,
    /// Who sent it.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// Transport ports; 0 unless TCP or UDP.
    pub source_port: u16,
    /// Transport ports; 0 unless TCP or UDP.
    pub destination_port: u16,
}

impl Packet {
    /// Reads a packet. Hosts send no fragments and no IPv6 extension headers, and understand none.
    ///
    /// # Errors
    /// Why it is dropped.
    pub fn read(frame: &[u8]) -> Result<Packet, &'static str> {
        let destination = destination(frame)?;
        let (ip, ipv6) = network(frame).ok_or("not_ip")?;
        let (transport, end, protocol, source) = if ipv6 {
            let end = ip + 40 + usize::from(u16_at(frame, ip + 4).unwrap_or(0));
            (ip + 40, end, frame[ip + 6], address(&frame[ip + 8..ip + 24]))
        } else {
            if u16_at(frame, ip + 6).unwrap_or(0) & 0x3fff != 0 {
                return Err("fragment");
            }
            let end = ip + usize::from(u16_at(frame, ip + 2).unwrap_or(0));
            (ip + usize::from(frame[ip] & 15) * 4, end, frame[ip + 9], address(&frame[ip + 12..ip + 16]))
        };
        if end > frame.len() || transport > end {
            return Err("bad_header");
        }
        let mut packet =
            Packet { ip, transport, end, ipv6, protocol, source, destination, source_port: 0, destination_port: 0 };
        let least = match protocol {
            TCP => 20,
            UDP => 8,
            _ => return Ok(packet),
        };
        if transport + least > end {
            return Err("bad_header");
        }
        packet.source_port = u16_at(frame, transport).unwrap_or(0);
        packet.destination_port = u16_at(frame, transport + 2).unwrap_or(0);
        if protocol == TCP {
            let header = usize::from(frame[transport + 12] >> 4) * 4;
            if header < 20 || transport + header > end {
                return Err("bad_header");
            }
        } else {
            let length = usize::from(u16_at(frame, transport + 4).unwrap_or(0));
            if length < 8 || transport + length > end {
                return Err("bad_header");
            }
            packet.end = transport + length;
            if !ipv6 && frame[transport + 6..transport + 8] == [0, 0] {
                return Ok(packet);
            }
        }
        if packet.sum(frame) == 0xffff { Ok(packet) } else { Err("bad_checksum") }
    }

    /// The folded sum of pseudo-header and segment.
    fn sum(&self, frame: &[u8]) -> u16 {
        let addresses = if self.ipv6 { self.ip + 8..self.ip + 40 } else { self.ip + 12..self.ip + 20 };
        Sum::new()
            .bytes(&frame[addresses])
            .word(u16::from(self.protocol))
            .word((self.end - self.transport) as u16)
            .bytes(&frame[self.transport..self.end])
            .folded()
    }

    /// What is behind the transport header.
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let header = match self.protocol {
            TCP => usize::from(frame[self.transport + 12] >> 4) * 4,
            UDP => 8,
            _ => 0,
        };
        &frame[self.transport + header..self.end]
    }

    /// TCP's sequence number, acknowledgment number and flags.
    pub fn tcp(&self, frame: &[u8]) -> (u32, u32, u8) {
        (u32_at(frame, self.transport + 4), u32_at(frame, self.transport + 8), frame[self.transport + 13])
    }
}

/// TCP flags.
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const ACK: u8 = 16;

/// Ends of a packet to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Ethernet addresses: destination, then source.
    pub macs: [MacAddress; 2],
    /// Who sends it.
    pub source: IpAddr,
    /// To whom; of the same family.
    pub destination: IpAddr,
    /// Transport ports.
    pub source_port: u16,
    /// Transport ports.
    pub destination_port: u16,
}

/// Headers up to IP in front of `length` bytes of transport.
fn headers(frame: &mut Vec<u8>, ends: &Ends, protocol: u8, length: usize) {
    frame.clear();
    frame.extend_from_slice(&ends.macs[0].octets());
    frame.extend_from_slice(&ends.macs[1].octets());
    match (ends.source, ends.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let [high, low] = (20 + length as u16).to_be_bytes();
            frame.extend_from_slice(&[8, 0, 0x45, 0, high, low, 0, 0, 0x40, 0, TTL, protocol, 0, 0]);
            frame.extend_from_slice(&source.octets());
            frame.extend_from_slice(&destination.octets());
            let sum = checksum(&frame[ETHERNET..]);
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        }
        (source, destination) => {
            let [high, low] = (length as u16).to_be_bytes();
            frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, high, low, protocol, TTL]);
            for address in [source, destination] {
                match address {
                    IpAddr::V6(address) => frame.extend_from_slice(&address.octets()),
                    IpAddr::V4(address) => frame.extend_from_slice(&address.to_ipv6_mapped().octets()),
                }
            }
        }
    }
}

/// Makes a UDP datagram of `length` bytes of payload, written by `fill`.
pub fn udp(frame: &mut Vec<u8>, ends: &Ends, length: usize, fill: impl FnOnce(&mut [u8])) {
    headers(frame, ends, UDP, 8 + length);
    let transport = frame.len();
    frame.extend_from_slice(&ends.source_port.to_be_bytes());
    frame.extend_from_slice(&ends.destination_port.to_be_bytes());
    frame.extend_from_slice(&(8 + length as u16).to_be_bytes());
    frame.extend_from_slice(&[0, 0]);
    frame.resize(transport + 8 + length, 0);
    fill(&mut frame[transport + 8..]);
    let sum = match finish_checksum(frame, transport, UDP) {
        0 => 0xffff,
        sum => sum,
    };
    frame[transport + 6..transport + 8].copy_from_slice(&sum.to_be_bytes());
}

/// What a TCP segment says of its place in the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its sequence number.
    pub sequence: u32,
    /// Its flags.
    pub flags: u8,
    /// Bytes of payload.
    pub payload: u32,
}

/// The segment in a frame that a host's TCP has made: without VLAN tags, IP options and padding.
pub fn segment(frame: &[u8]) -> Segment {
    let transport = ETHERNET + if frame[ETHERNET] >> 4 == 6 { 40 } else { 20 };
    Segment {
        sequence: u32_at(frame, transport + 4),
        flags: frame[transport + 13],
        payload: (frame.len() - transport - usize::from(frame[transport + 12] >> 4) * 4) as u32,
    }
}

/// The checksum of a transport segment up to the frame's end, of a frame made here (no tags, no options).
fn finish_checksum(frame: &[u8], transport: usize, protocol: u8) -> u16 {
    let addresses = if transport == ETHERNET + 20 { ETHERNET + 12..transport } else { ETHERNET + 8..transport };
    Sum::new()
        .bytes(&frame[addresses])
        .word(u16::from(protocol))
        .word((frame.len() - transport) as u16)
        .bytes(&frame[transport..])
        .checksum()
}

/// Turns a UDP datagram or ICMP echo request round, as an answer from the one to whom it was sent. `false`: it is neither.
/// The transport checksum is of the same words, but for the ICMP type.
pub fn turn_round(frame: &mut [u8], packet: &Packet) -> bool {
    let Packet { ip, transport, .. } = *packet;
    match (packet.protocol, packet.ipv6) {
        (UDP, _) => {
            let (left, right) = frame[transport..transport + 4].split_at_mut(2);
            left.swap_with_slice(right);
        }
        // Echo request, type 8, becomes echo reply, type 0.
        (ICMP, false) if packet.end >= transport + 8 && frame[transport] == 8 => {
            let old = u16::from_be_bytes([frame[transport], frame[transport + 1]]);
            let sum = u16::from_be_bytes([frame[transport + 2], frame[transport + 3]]);
            frame[transport] = 0;
            frame[transport + 2..transport + 4].copy_from_slice(&update(sum, old, old & 0xff).to_be_bytes());
        }
        _ => return false,
    }
    if packet.ipv6 {
        let (left, right) = frame[ip + 8..ip + 40].split_at_mut(16);
        left.swap_with_slice(right);
        frame[ip + 7] = TTL;
    } else {
        let (left, right) = frame[ip + 12..ip + 20].split_at_mut(4);
        left.swap_with_slice(right);
        change_word(frame, ip, ip + 8, |word| u16::from(TTL) << 8 | word & 0xff);
    }
    true
}

/// Writes the Ethernet addresses.
pub fn set_macs(frame: &mut [u8], destination: MacAddress, source: MacAddress) {
    frame[..6].copy_from_slice(&destination.octets());
    frame[6..12].copy_from_slice(&source.octets());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn ends(ipv6: bool) -> Ends {
        let (source, destination) = match ipv6 {
            true => (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7).into()),
            false => (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into()),
        };
        Ends {
            macs: [MacAddress([2; 6]), MacAddress([4; 6])],
            source,
            destination,
            source_port: 4000,
            destination_port: 53,
        }
    }

    #[test]
    fn what_is_made_is_read_and_passes_an_independent_parser() {
        for ipv6 in [false, true] {
            let mut frame = Vec::new();
            udp(&mut frame, &ends(ipv6), 33, |payload| payload.fill(0xab));
            let packet = Packet::read(&frame).expect("right");
            assert_eq!(packet.payload(&frame), [0xab; 33]);
            assert_eq!((packet.source_port, packet.destination_port, packet.ipv6), (4000, 53, ipv6));
            let sliced = etherparse::SlicedPacket::from_ethernet(&frame).expect("right");
            let Some(etherparse::TransportSlice::Udp(slice)) = &sliced.transport else { panic!("no UDP") };
            assert_eq!(slice.payload(), [0xab; 33]);
            drop(sliced);

            let length = frame.len();
            frame[length - 1] ^= 1;
            assert_eq!(Packet::read(&frame), Err("bad_checksum"));
        }
    }

    #[test]
    fn headers_stay_right_when_changed() {
        for ipv6 in [false, true] {
            let mut frame = Vec::new();
            udp(&mut frame, &ends(ipv6), 5, |_| ());
            assert!(decrement_ttl(&mut frame));
            let packet = Packet::read(&frame).expect("checksums follow");
            assert!(turn_round(&mut frame, &packet));
            let back = Packet::read(&frame).expect("checksums follow");
            assert_eq!((back.source, back.destination), (packet.destination, packet.source));
            assert_eq!((back.source_port, back.destination_port), (53, 4000));
            let hops = (0..100).take_while(|_| decrement_ttl(&mut frame)).count();
            assert_eq!(hops, 63);
        }
    }

    #[test]
    fn damage_is_no_panic() {
        let mut whole = Vec::new();
        udp(&mut whole, &ends(false), 20, |_| ());
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            assert!(Packet::read(&cut).is_err());
            let _ = decrement_ttl(&mut cut);
        }
        for at in 12..whole.len() {
            for bit in 0..8 {
                let mut frame = whole.clone();
                frame[at] ^= 1 << bit;
                if let Ok(packet) = Packet::read(&frame) {
                    let _ = turn_round(&mut frame, &packet);
                }
            }
        }
    }
}
