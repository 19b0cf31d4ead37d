//! TCP segments within frames: where their headers lie, and changes of them that keep checksums right.
//!
//! Addresses and ports are changed by increments (RFC 1624), so that a frame which stands for many segments, or whose checksum is only
//! begun, passes as it is. What makes a segment longer or shorter happens to single segments only; their checksums are made anew.

use crate::session::Latest;
use crate::tuple::Tuple;
use std::net::{IpAddr, SocketAddr};
use weftwire_core::buffer::Buffer;
use weftwire_core::checksum::{Sum, update};
use weftwire_core::port::{Checksum, Offload};
use weftwire_core::wire::PROTOCOL_TCP;
use weftwire_core::wire::ethernet::{Ethernet, TYPE_IPV4, TYPE_IPV6};
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::wire::tcp::{MAX_OPTIONS_LENGTH, OPTION_MSS, TCP_LENGTH, Tcp, TcpFlags, TcpOption};
use weftwire_core::{DropReason, LinkType};

/// Kind number of the option that carries a local tag: the first of those for experiments (RFC 4727).
pub const OPTION_TAG: u8 = 253;
/// What our tags begin with behind the length byte (RFC 6994).
pub(crate) const TAG_EXPERIMENT: [u8; 2] = *b"WC";
/// Kind number of the option that marks messages between agents: the second one of those for experiments.
pub const OPTION_MESSAGE: u8 = 254;
/// Bytes of the option with its tag.
const TAG_LENGTH: usize = 8;
/// Kind numbers of options that authenticate addresses and ports (RFC 2385, RFC 5925).
const OPTIONS_OF_KEYS: [u8; 2] = [19, 29];

/// Where a TCP segment lies in a frame, and what its fixed header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Start of the IP header.
    pub ip: usize,
    /// Start of the TCP header.
    pub tcp: usize,
    /// Start of the payload.
    pub payload: usize,
    /// The end of the IP packet: frames may be padded behind it.
    pub end: usize,
    /// Its ends.
    pub tuple: Tuple,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Flags.
    pub flags: TcpFlags,
}

/// What a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A TCP segment.
    Segment(Segment),
    /// The first fragment of a TCP segment: its ends are known.
    Fragment(Tuple),
    /// An IP packet of another protocol, whose header begins and ends here.
    Packet {
        /// Start of the IP header.
        ip: usize,
        /// Start of what follows it.
        payload: usize,
        /// Protocol number.
        protocol: u8,
        /// The end of the packet.
        end: usize,
    },
    /// Anything else.
    Other,
}

/// Looks into a frame. Checksums are not verified: who changes by increments keeps a wrong one wrong.
///
/// # Errors
/// As of the views of [`weftwire_core::wire`].
pub fn find(link: LinkType, frame: &[u8]) -> Result<Found, DropReason> {
    let (kind, ip) = match link {
        LinkType::Ethernet => {
            let ethernet = Ethernet::parse(frame)?;
            (ethernet.payload_type(), ethernet.header_length())
        }
        LinkType::Ip => match frame.first().map(|byte| byte >> 4) {
            Some(4) => (TYPE_IPV4, 0),
            Some(6) => (TYPE_IPV6, 0),
            _ => return Ok(Found::Other),
        },
    };
    let bytes = &frame[ip..];
    let (source, destination, protocol, payload, part): (IpAddr, IpAddr, u8, &[u8], _) = match kind {
        TYPE_IPV4 => {
            let view = Ipv4::parse(bytes)?;
            let part = (view.fragment_offset() > 0 || view.more_fragments()).then_some(view.fragment_offset());
            (view.source().into(), view.destination().into(), view.protocol(), view.payload(), part)
        }
        TYPE_IPV6 => {
            let view = Ipv6::parse(bytes)?;
            if view.final_destination() != view.destination() {
                return Ok(Found::Other);
            }
            let part = view.fragment().map(|fragment| fragment.offset);
            (view.source().into(), view.destination().into(), view.protocol(), view.payload(), part)
        }
        _ => return Ok(Found::Other),
    };
    // Views are slices of the frame: the payload's end is the packet's.
    let start = payload.as_ptr().addr() - frame.as_ptr().addr();
    let end = start + payload.len();
    if protocol != PROTOCOL_TCP {
        return Ok(if part.is_none() { Found::Packet { ip, payload: start, protocol, end } } else { Found::Other });
    }
    let ports = |tcp: &[u8]| {
        let ports = tcp.first_chunk::<4>().ok_or(DropReason::Truncated)?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        Ok(Tuple { source: SocketAddr::new(source, port(0)), destination: SocketAddr::new(destination, port(2)) })
    };
    match part {
        Some(0) => return Ok(Found::Fragment(ports(payload)?)),
        Some(_) => return Ok(Found::Other),
        None => {}
    }
    let tcp = Tcp::parse(payload)?;
    Ok(Found::Segment(Segment {
        ip,
        tcp: start,
        payload: start + tcp.header_length(),
        end,
        tuple: ports(payload)?,
        sequence: tcp.sequence(),
        acknowledgment: tcp.acknowledgment(),
        flags: tcp.flags(),
    }))
}

impl Segment {
    /// Bytes of sequence space that it takes.
    pub fn length(&self) -> u32 {
        let counts = |flag| u32::from(self.flags.contains(flag));
        (self.end - self.payload) as u32 + counts(TcpFlags::SYN) + counts(TcpFlags::FIN)
    }

    /// The payload.
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        &frame[self.payload..self.end]
    }

    /// Gives the packet other ends of the same family; the checksums follow.
    pub fn redirect(&self, frame: &mut [u8], to: Tuple, checksum: Checksum) {
        let from = self.tuple;
        if from == to {
            return;
        }
        let v4 = from.source.is_ipv4();
        let (addresses, ports) = if v4 { (self.ip + 12..self.ip + 20, 8) } else { (self.ip + 8..self.ip + 40, 32) };
        let mut new = [0; 36];
        write_ends(&mut new, to);
        let (new_addresses, new_ports) = new[..ports + 4].split_at(ports);
        let old = Sum::new().bytes(&frame[addresses.clone()]);
        let changed = Sum::new().bytes(new_addresses);
        if v4 {
            Segment::update(frame, self.ip + 10, old, changed);
        }
        match checksum {
            // Only begun: the sum of the pseudo-header, which has no ports.
            Checksum::Partial => Segment::update(frame, self.tcp + 16, changed, old),
            Checksum::Unverified | Checksum::Verified => {
                let old = old.bytes(&frame[self.tcp..self.tcp + 4]);
                Segment::update(frame, self.tcp + 16, old, changed.bytes(new_ports));
            }
        }
        frame[addresses].copy_from_slice(new_addresses);
        frame[self.tcp..self.tcp + 4].copy_from_slice(new_ports);
    }

    /// Updates a checksum for words that it covers, by their sums before and after.
    pub(crate) fn update(frame: &mut [u8], field: usize, old: Sum, new: Sum) {
        let sum = u16::from_be_bytes([frame[field], frame[field + 1]]);
        put(frame, field, update(sum, old.folded(), new.folded()));
    }

    /// The tag among the options, if it is one of ours.
    pub fn tag(&self, frame: &[u8]) -> Option<u32> {
        let (at, _) = self.tag_place(frame)?;
        let tag = frame.get(at + 4..at + TAG_LENGTH)?;
        Some(u32::from_be_bytes(tag.try_into().ok()?))
    }

    /// Where the tag lies in the frame, and its option's length.
    fn tag_place(&self, frame: &[u8]) -> Option<(usize, usize)> {
        let options = &frame[self.tcp + TCP_LENGTH..self.payload];
        let ours = |bytes: &[u8]| bytes.len() == TAG_LENGTH && bytes[2..4] == TAG_EXPERIMENT;
        walk(options)
            .find(|(at, length)| options[*at] == OPTION_TAG && ours(&options[*at..*at + *length]))
            .map(|(at, length)| (self.tcp + TCP_LENGTH + at, length))
    }

    /// Whether its sender authenticates addresses and ports, so that they can't be changed.
    pub fn is_keyed(&self, frame: &[u8]) -> bool {
        let options = &frame[self.tcp + TCP_LENGTH..self.payload];
        walk(options).any(|(at, _)| OPTIONS_OF_KEYS.contains(&options[at]))
    }

    /// The options.
    fn options<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        &frame[self.tcp + TCP_LENGTH..self.payload]
    }

    /// Whether it is marked as a message from agent to agent: none of a host is.
    pub fn is_message(&self, frame: &[u8]) -> bool {
        let options = self.options(frame);
        walk(options).any(|(at, length)| options[at..at + length] == [OPTION_MESSAGE, 4, b'W', b'C'])
    }

    /// What it says beside its numbers.
    pub fn latest(&self, frame: &[u8]) -> Latest {
        let options = self.options(frame);
        let stamp =
            |at: usize| options.get(at + 2..at + 6).map(|bytes| u32::from_be_bytes([0, 1, 2, 3].map(|n| bytes[n])));
        // As nearly all stacks write it (RFC 7323, appendix A).
        let stamp = if options.starts_with(&[1, 1, 8, 10]) {
            stamp(2)
        } else {
            walk(options).find(|(at, length)| options[*at] == 8 && *length == 10).and_then(|(at, _)| stamp(at))
        };
        Latest { window: u16::from_be_bytes([frame[self.tcp + 14], frame[self.tcp + 15]]), stamp }
    }

    /// Its options without a tag, and what the frame has in front of the IP header.
    pub(crate) fn opening(&self, frame: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let options = self.options(frame);
        let tag = self.tag_place(frame).map(|(at, _)| at - self.tcp - TCP_LENGTH);
        let kept = walk(options).filter(|(at, _)| Some(*at) != tag);
        (kept.flat_map(|(at, length)| &options[at..at + length]).copied().collect(), frame[..self.ip].to_vec())
    }

    /// Makes the segment's maximum segment size at most this, if it tells one. The checksums are to be finished.
    fn clamp(&self, frame: &mut [u8], most: u16) {
        let options = &mut frame[self.tcp + TCP_LENGTH..self.payload];
        let place = walk(options).find(|(at, length)| options[*at] == OPTION_MSS && *length == 4);
        if let Some((at, _)) = place {
            let size = u16::from_be_bytes([options[at + 2], options[at + 3]]).min(most);
            options[at + 2..at + 4].copy_from_slice(&size.to_be_bytes());
        }
    }
}

/// Starts and lengths of the options that are no padding.
pub(crate) fn walk(options: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while options.get(at) == Some(&1) {
            at += 1;
        }
        let length = usize::from(*options.get(at + 1)?);
        if options[at] == 0 || length < 2 || at + length > options.len() {
            return None;
        }
        at += length;
        Some((at - length, length))
    })
}

/// Writes source address, destination address, source port and destination port, as headers have them.
fn write_ends(bytes: &mut [u8; 36], ends: Tuple) {
    let mut at = 0;
    let mut write = |part: &[u8]| {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    };
    for end in [ends.source, ends.destination] {
        match end.ip() {
            IpAddr::V4(address) => write(&address.octets()),
            IpAddr::V6(address) => write(&address.octets()),
        }
    }
    write(&ends.source.port().to_be_bytes());
    write(&ends.destination.port().to_be_bytes());
}

/// What is to become of a single segment beside its ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edit<'a> {
    /// This goes in front of the payload.
    pub insert: &'a [u8],
    /// So many bytes of the payload go.
    pub remove: usize,
    /// A tag is added to the options.
    pub tag: Option<u32>,
    /// A tag goes.
    pub untag: bool,
    /// The maximum segment size becomes at most this.
    pub segment_size: Option<u16>,
}

/// Why a segment can't be edited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoEdit {
    /// It would be longer than an IP packet can be.
    TooLong,
}

/// Edits a segment that stands for one packet, and gives it its ends. A tag for which the options have no room is left out: the second
/// value says whether it fitted. The checksums are made anew, so the frame has nothing left to do.
///
/// # Errors
/// See [`NoEdit`]; the frame is as it was.
pub fn edit(frame: &mut Buffer, segment: &Segment, to: Tuple, edit: Edit<'_>) -> Result<(Offload, bool), NoEdit> {
    let old = &frame[..];
    let header = segment.payload - segment.tcp;
    let tag_place = segment.tag_place(old).filter(|_| edit.untag);
    let removed = edit.remove.min(segment.end - segment.payload);
    let cut = tag_place.map_or(0, |(_, length)| length);
    let fits = header - cut + TAG_LENGTH <= TCP_LENGTH + MAX_OPTIONS_LENGTH;
    let tag = edit.tag.filter(|_| fits);
    let grown = segment.end - segment.ip + edit.insert.len() + tag.map_or(0, |_| TAG_LENGTH);
    if grown > usize::from(u16::MAX) {
        return Err(NoEdit::TooLong);
    }
    let mut bytes = Vec::with_capacity(segment.ip + grown);
    match tag_place {
        Some((at, length)) => {
            bytes.extend_from_slice(&old[..at]);
            bytes.extend_from_slice(&old[at + length..segment.payload]);
        }
        None => bytes.extend_from_slice(&old[..segment.payload]),
    }
    if let Some(tag) = tag {
        bytes.extend([OPTION_TAG, TAG_LENGTH as u8]);
        bytes.extend(TAG_EXPERIMENT);
        bytes.extend(tag.to_be_bytes());
        // An end of the option list would hide what follows it.
        let options = &mut bytes[segment.tcp + TCP_LENGTH..segment.payload - cut];
        pad_with_no_operation(options);
    }
    let payload = bytes.len();
    bytes.extend_from_slice(edit.insert);
    bytes.extend_from_slice(&old[segment.payload + removed..segment.end]);
    bytes[segment.tcp + 12] = (((payload - segment.tcp) / 4) as u8) << 4 | (bytes[segment.tcp + 12] & 0x0f);
    let edited = Segment { payload, end: bytes.len(), ..*segment };
    if let Some(most) = edit.segment_size {
        edited.clamp(&mut bytes, most);
    }
    edited.redirect(&mut bytes, to, Checksum::Unverified);
    finish(&mut bytes, &edited);
    frame.assign(&bytes);
    Ok((Offload::default(), tag.is_some() || edit.tag.is_none()))
}

/// Turns the end of the option list, and what lies behind it, into padding that options may follow.
fn pad_with_no_operation(options: &mut [u8]) {
    let end = walk(options).last().map_or(0, |(at, length)| at + length);
    options[end..].fill(1);
}

/// Whether the TCP checksum of a single segment is right.
pub fn checksum_is_right(frame: &[u8], segment: &Segment) -> bool {
    pseudo_header(frame, segment).bytes(&frame[segment.tcp..segment.end]).folded() == 0xffff
}

pub(crate) fn pseudo_header(bytes: &[u8], segment: &Segment) -> Sum {
    let addresses = if segment.tuple.source.is_ipv4() { 12..20 } else { 8..40 };
    let addresses = segment.ip + addresses.start..segment.ip + addresses.end;
    Sum::new().bytes(&bytes[addresses]).word(PROTOCOL_TCP.into()).word((segment.end - segment.tcp) as u16)
}

/// Makes lengths and checksums right.
pub(crate) fn finish(bytes: &mut [u8], segment: &Segment) {
    let Segment { ip, tcp, end, .. } = *segment;
    if segment.tuple.source.is_ipv4() {
        put(bytes, ip + 2, (end - ip) as u16);
        put(bytes, ip + 10, 0);
        let header = Sum::new().bytes(&bytes[ip..tcp]).checksum();
        put(bytes, ip + 10, header);
    } else {
        put(bytes, ip + 4, (end - ip - 40) as u16);
    }
    put(bytes, tcp + 16, 0);
    let checksum = pseudo_header(bytes, segment).bytes(&bytes[tcp..end]).checksum();
    put(bytes, tcp + 16, checksum);
}

pub(crate) fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// The segment size that a SYN tells, for tests and tools.
pub fn segment_size(link: LinkType, frame: &[u8]) -> Option<u16> {
    let Ok(Found::Segment(segment)) = find(link, frame) else { return None };
    let tcp = Tcp::parse(&frame[segment.tcp..segment.end]).ok()?;
    tcp.options().find_map(|option| match option {
        TcpOption::MaximumSegmentSize(size) => Some(size),
        _ => None,
    })
}
