//! Segments on one of two paths: with the numbers of that path, and only the bytes that belong to it. [`crate::paths`] says which those are.
//!
//! Numbers and SACK blocks are changed by increments, so a frame that stands for many segments, or whose checksum is only begun, stays
//! so. A part of a segment is a frame of its own.

use crate::paths::Block;
use crate::segment::{Segment, checksum_is_right, finish, pseudo_header, put, walk};
use weftwire_core::checksum::Sum;
use weftwire_core::port::{Checksum, Offload, SegmentationKind};
use weftwire_core::wire::tcp::{OPTION_SACK, TCP_LENGTH, TcpFlags};

/// Gives a segment other numbers; its checksum follows.
pub fn renumber(frame: &mut [u8], segment: &Segment, sequence: u32, acknowledgment: u32, checksum: Checksum) {
    let mut numbers = [0; 8];
    numbers[..4].copy_from_slice(&sequence.to_be_bytes());
    numbers[4..].copy_from_slice(&acknowledgment.to_be_bytes());
    replace(frame, segment, segment.tcp + 4, &numbers, checksum);
}

/// Makes the window smaller by so many bytes: its acknowledgment was made higher by them. The window's right end stays where its sender has said
/// that it is.
pub fn narrow(frame: &mut [u8], segment: &Segment, bytes: u32, scale: u8, checksum: Checksum) {
    let at = segment.tcp + 14;
    let window = u16::from_be_bytes([frame[at], frame[at + 1]]);
    let taken = bytes.div_ceil(1 << scale.min(14));
    let left = u32::from(window).saturating_sub(taken) as u16;
    replace(frame, segment, at, &left.to_be_bytes(), checksum);
}

/// Gives each SACK block of a segment (RFC 2018) other numbers, or takes it out; padding that does nothing takes its place.
pub fn map_blocks(
    frame: &mut [u8],
    segment: &Segment,
    checksum: Checksum,
    mut map: impl FnMut(Block) -> Option<Block>,
) {
    let start = segment.tcp + TCP_LENGTH;
    let mut options = [0; 40];
    let options = &mut options[..segment.payload - start];
    options.copy_from_slice(&frame[start..segment.payload]);
    let places: Vec<(usize, usize)> = walk(options).filter(|(at, _)| options[*at] == OPTION_SACK).collect();
    for (at, length) in places {
        let mut end = at + 2;
        for place in (at + 2..at + length).step_by(8).take_while(|place| place + 8 <= at + length) {
            let number = |from: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| options[from + byte]));
            let block = (number(place), number(place + 4));
            if let Some((first, behind)) = map(block) {
                options[end..end + 4].copy_from_slice(&first.to_be_bytes());
                options[end + 4..end + 8].copy_from_slice(&behind.to_be_bytes());
                end += 8;
            }
        }
        // An option without blocks says nothing.
        let kept = if end == at + 2 { 0 } else { end - at };
        if kept > 0 {
            options[at + 1] = kept as u8;
        }
        options[at + kept..at + length].fill(1);
    }
    replace(frame, segment, start, options, checksum);
}

/// Puts bytes in the place of others, which begin at an even distance from the TCP header.
fn replace(frame: &mut [u8], segment: &Segment, at: usize, bytes: &[u8], checksum: Checksum) {
    let place = at..at + bytes.len();
    // One that is only begun covers the pseudo-header alone.
    if checksum != Checksum::Partial {
        let (old, new) = (Sum::new().bytes(&frame[place.clone()]), Sum::new().bytes(bytes));
        Segment::update(frame, segment.tcp + 16, old, new);
    }
    frame[place].copy_from_slice(bytes);
}

/// A part of a segment as a frame of its own: `length` of its sequence space behind the first `skipped`. FIN is the last number of a segment and
/// goes with the part that has it, PSH with its end, CWR with its beginning. `None` if the segment has no such part, opens or resets a
/// connection, or has a wrong checksum.
///
/// The numbers are still those of the whole: see [`renumber`].
#[must_use]
pub fn part(
    frame: &[u8],
    segment: &Segment,
    offload: Offload,
    skipped: u32,
    length: u32,
) -> Option<(Vec<u8>, Offload)> {
    let has = |flag| segment.flags.contains(flag);
    let end = skipped.checked_add(length).filter(|end| *end <= segment.length())?;
    // A checksum that is made anew would hide that the old one is wrong.
    let is_wrong = offload.checksum == Checksum::Unverified && !checksum_is_right(frame, segment);
    if is_wrong || has(TcpFlags::SYN) || has(TcpFlags::RST) {
        return None;
    }
    let payload = (segment.end - segment.payload) as u32;
    let [first, behind] = [skipped, end].map(|number| segment.payload + number.min(payload) as usize);
    let mut bytes = frame[..segment.payload].to_vec();
    bytes.extend_from_slice(&frame[first..behind]);
    let part = Segment { end: bytes.len(), ..*segment };

    let is_end = end == segment.length();
    let mut drop = |flag: TcpFlags, drops: bool| {
        if drops {
            bytes[segment.tcp + 13] &= !flag.0;
        }
    };
    drop(TcpFlags::FIN, !is_end || length == 0);
    drop(TcpFlags::PSH, !is_end || length == 0);
    drop(TcpFlags::CWR, skipped > 0);
    let urgent = u32::from(u16::from_be_bytes([frame[segment.tcp + 18], frame[segment.tcp + 19]]));
    // The pointer counts from the segment's first byte.
    let points_here = has(TcpFlags::URG) && urgent > skipped;
    drop(TcpFlags::URG, !points_here);
    put(&mut bytes, segment.tcp + 18, if points_here { (urgent - skipped) as u16 } else { 0 });
    if skipped > 0 && segment.tuple.source.is_ipv4() {
        let identification = u16::from_be_bytes([frame[segment.ip + 4], frame[segment.ip + 5]]);
        put(&mut bytes, segment.ip + 4, identification.wrapping_add(1));
    }

    let parts = part.end - part.payload;
    let segmentation = offload.segmentation.filter(|how| parts > usize::from(how.size)).map(|mut how| {
        if let SegmentationKind::TcpIpv4 { ecn } | SegmentationKind::TcpIpv6 { ecn } = &mut how.kind {
            *ecn &= skipped == 0;
        }
        how
    });
    finish(&mut bytes, &part);
    if offload.checksum == Checksum::Partial {
        let begun = pseudo_header(&bytes, &part).folded();
        put(&mut bytes, segment.tcp + 16, begun);
    }
    Some((bytes, Offload { segmentation, ..offload }))
}
