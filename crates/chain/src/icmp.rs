//! ICMP errors about packets of subsessions, told as errors about packets of the session, and back (RFC 792, RFC 4443).

use crate::segment::Found;
use crate::tuple::Tuple;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weftwire_core::checksum::{Sum, update};
use weftwire_core::wire::PROTOCOL_TCP;
use weftwire_core::wire::icmp::{PROTOCOL_ICMP, PROTOCOL_ICMPV6};

/// Bytes of an ICMP header.
const HEADER: usize = 8;
/// Errors of ICMP about a packet: unreachable, time exceeded, parameter problem.
const ERRORS: [u8; 3] = [3, 11, 12];

/// An ICMP error about a TCP segment, as it lies in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedSegment {
    /// The ends of the segment that it is about.
    pub tuple: Tuple,
    /// The segment's sequence number.
    pub sequence: u32,
    ip: usize,
    icmp: usize,
    /// The quoted IP header, and the quoted TCP header.
    quoted: [usize; 2],
    end: usize,
}

/// Finds the error in a packet that [`crate::segment::find`] has found.
pub fn quoted(frame: &[u8], found: &Found) -> Option<QuotedSegment> {
    let Found::Packet { ip, payload: icmp, protocol, end } = *found else { return None };
    let kind = *frame[..end].get(icmp)?;
    let quoted = frame[..end].get(icmp + HEADER..)?;
    let (length, inner, addresses): (usize, u8, [IpAddr; 2]) = match protocol {
        PROTOCOL_ICMP if ERRORS.contains(&kind) => {
            let header = quoted.first_chunk::<20>()?;
            let length = usize::from(header[0] & 15) * 4;
            let first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
            if header[0] >> 4 != 4 || length < 20 || !first {
                return None;
            }
            let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
            (length, header[9], [address(12).into(), address(16).into()])
        }
        PROTOCOL_ICMPV6 if kind < 128 => {
            let header = quoted.first_chunk::<40>()?;
            if header[0] >> 4 != 6 {
                return None;
            }
            let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
            (40, header[6], [address(8)?.into(), address(24)?.into()])
        }
        _ => return None,
    };
    let tcp = quoted.get(length..)?.first_chunk::<8>()?;
    if inner != PROTOCOL_TCP {
        return None;
    }
    let end_at = |address, at: usize| SocketAddr::new(address, u16::from_be_bytes([tcp[at], tcp[at + 1]]));
    Some(QuotedSegment {
        tuple: Tuple { source: end_at(addresses[0], 0), destination: end_at(addresses[1], 2) },
        sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        ip,
        icmp,
        quoted: [icmp + HEADER, icmp + HEADER + length],
        end,
    })
}

impl QuotedSegment {
    /// Gives the quoted segment another number. [`QuotedSegment::redirect`] makes the checksum of the error right.
    pub fn renumber(&self, frame: &mut [u8], sequence: u32) {
        let [_, tcp] = self.quoted;
        let words = |number: u32| [(number >> 16) as u16, number as u16];
        for (at, (old, new)) in [4, 6].into_iter().zip(words(self.sequence).into_iter().zip(words(sequence))) {
            change(frame, self.end, tcp + 16, old, new);
            put(frame, tcp + at, new);
        }
    }

    /// Makes it an error about the packet as `to` has it, for the sender of that one. All checksums are right then, the quoted TCP
    /// checksum if it is there.
    pub fn redirect(&self, frame: &mut [u8], to: Tuple) {
        let [inner, tcp] = self.quoted;
        let v4 = to.source.is_ipv4();
        let places = if v4 { [12, 16] } else { [8, 24] };
        for (place, (old, new)) in
            places.into_iter().zip([(self.tuple.source, to.source), (self.tuple.destination, to.destination)])
        {
            for (at, old, new) in words(old.ip(), new.ip()) {
                if v4 {
                    change(frame, self.end, inner + 10, old, new);
                }
                change(frame, self.end, tcp + 16, old, new);
                put(frame, inner + place + at, new);
            }
        }
        for (at, old, new) in [(0, self.tuple.source, to.source), (2, self.tuple.destination, to.destination)] {
            change(frame, self.end, tcp + 16, old.port(), new.port());
            put(frame, tcp + at, new.port());
        }
        let receiver = match to.source.ip() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let place = self.ip + places[1];
        frame[place..place + receiver.len()].copy_from_slice(&receiver);
        put(frame, self.icmp + 2, 0);
        let mut sum = Sum::new().bytes(&frame[self.icmp..self.end]);
        if v4 {
            put(frame, self.ip + 10, 0);
            let header = Sum::new().bytes(&frame[self.ip..self.icmp]).checksum();
            put(frame, self.ip + 10, header);
        } else {
            sum = sum.bytes(&frame[self.ip + 8..self.ip + 40]).word(PROTOCOL_ICMPV6.into());
            sum = sum.word((self.end - self.icmp) as u16);
        }
        put(frame, self.icmp + 2, sum.checksum());
    }
}

/// The words in which two addresses of a family may differ, with their places.
fn words(old: IpAddr, new: IpAddr) -> Vec<(usize, u16, u16)> {
    let split = |address: IpAddr| match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            vec![u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
        }
        IpAddr::V6(address) => address.segments().to_vec(),
    };
    split(old).into_iter().zip(split(new)).enumerate().map(|(place, (old, new))| (2 * place, old, new)).collect()
}

/// Updates a checksum field, if it lies before the end.
fn change(frame: &mut [u8], end: usize, field: usize, old: u16, new: u16) {
    if field + 2 <= end {
        let sum = u16::from_be_bytes([frame[field], frame[field + 1]]);
        put(frame, field, update(sum, old, new));
    }
}

fn put(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
