//! Packets to messages and back: finding the messages of a packet, and a packet with only some of them.

use crate::formats::{Batch, Condition, Framing, HeaderId, MessageFormats, Place};
use crate::message::Message;
use std::ops::Range;
use weftwire_core::port::Checksum;
use weftwire_core::{Buffer, DropReason, Frame, LinkType, Offload, Packet, bits};

/// The messages of a packet. A packet without a batch, or with an empty one, is one message of its headers alone.
#[derive(Clone, Debug)]
pub struct Messages {
    /// The messages in order; at least one.
    pub messages: Vec<Message>,
    /// Of a batch, where each message lies in the frame, with the length in front of it. Otherwise empty.
    pub places: Vec<Range<usize>>,
}

/// Finds the messages of a frame.
///
/// # Errors
/// The frame is to be dropped: a header is malformed or a checksum is wrong.
pub fn messages(formats: &MessageFormats, link: LinkType, frame: &[u8]) -> Result<Messages, DropReason> {
    let packet = Packet::parse(link, Frame::new(frame), formats.packet_formats())?;
    let frame = &frame[..packet.frame_length()];
    let mut starts = Starts(vec![None; formats.headers().len()]);
    for (index, header) in formats.headers().iter().enumerate() {
        if let Place::Packet(place) = header.place {
            starts.0[index] = packet.bit_of(place).map(|bit| bit / 8);
        }
    }
    let mut found = Messages { messages: Vec::new(), places: Vec::new() };
    if let Some((id, batch)) = formats.batch_header()
        && let Some(start) = starts.of(id)
    {
        places(&batch, start, start + formats.header(id).length as usize / 8, frame, &mut found.places);
    }
    let prefix = prefix_bytes(formats);
    for place in &found.places {
        let data = place.start + prefix..place.end;
        let starts = starts.in_message(formats, id_of_batch(formats), &data, frame);
        found.messages.push(starts.message(formats, &frame[..place.end]));
    }
    if found.messages.is_empty() {
        found.messages.push(starts.message(formats, frame));
    }
    Ok(found)
}

/// The frame with only those messages of its batch that are to be kept, its count, lengths and checksums made right. If
/// all are kept it is the frame as it was.
///
/// # Errors
/// As [`messages`].
pub fn pruned(
    formats: &MessageFormats,
    link: LinkType,
    frame: &[u8],
    found: &Messages,
    keep: &[bool],
) -> Result<Vec<u8>, DropReason> {
    if found.places.is_empty() || keep.iter().all(|keep| *keep) {
        return Ok(frame.to_vec());
    }
    let mut pruning = Pruning::default();
    pruning
        .prune(formats, link, Frame::new(frame), &found.places, |index| keep.get(index).copied().unwrap_or(false))?;
    Ok(pruning.out.to_vec())
}

/// Makes frames with only some messages of their batch, again and again in the same memory.
#[derive(Clone, Debug, Default)]
pub struct Pruning {
    bytes: Vec<u8>,
    packet: Packet,
    out: Buffer,
}

impl Pruning {
    /// The frame, whose messages lie at `places`, with only those messages that are to be kept; its count, lengths and
    /// checksums are made right. Its checksum was verified before, or is as the offload says.
    ///
    /// # Errors
    /// As [`messages`].
    pub fn prune(
        &mut self,
        formats: &MessageFormats,
        link: LinkType,
        frame: Frame<'_>,
        places: &[Range<usize>],
        keep: impl Fn(usize) -> bool,
    ) -> Result<Frame<'_>, DropReason> {
        let Some(first) = places.first() else { return Err(DropReason::NoPacket) };
        let kept = || places.iter().enumerate().filter(|(index, _)| keep(*index)).map(|(_, place)| place);
        self.bytes.clear();
        self.bytes.extend_from_slice(frame.bytes);
        if let Some((id, Batch { count: Some((offset, width)), .. })) = formats.batch_header() {
            let start = first.start * 8 - formats.header(id).length as usize;
            bits::write(&mut self.bytes, start + offset as usize, width.into(), kept().count() as u128);
        }
        // The checksum that there is was verified when the messages were found; a partial one stays partial.
        let checksum = match frame.offload.checksum {
            Checksum::Unverified => Checksum::Verified,
            other => other,
        };
        let changed = Frame { bytes: &self.bytes, offload: Offload { checksum, ..frame.offload } };
        self.packet.renew(link, changed, formats.packet_formats())?;
        let behind_batch = self.packet.frame_length() - first.start;
        let skipped = self.packet.payload().len() - behind_batch.min(self.packet.payload().len());
        self.packet.resize_payload(skipped)?;
        for place in kept() {
            self.packet.append_payload(&frame.bytes[place.clone()])?;
        }
        self.packet.finish();
        let offload = self.packet.emit(link, &mut self.out);
        Ok(Frame { bytes: &self.out, offload })
    }
}

fn id_of_batch(formats: &MessageFormats) -> Option<HeaderId> {
    formats.batch_header().map(|(id, _)| id)
}

/// Bytes of the length in front of each message.
pub fn prefix_bytes(formats: &MessageFormats) -> usize {
    match formats.batch_header() {
        Some((_, Batch { framing: Framing::Prefix(bits), .. })) => usize::from(bits / 8),
        _ => 0,
    }
}

/// Where the messages of a batch lie, as many as are there in whole: behind `at`, while the batch's header starts at
/// `start`.
pub fn places(batch: &Batch, start: usize, mut at: usize, frame: &[u8], places: &mut Vec<Range<usize>>) {
    let count = match batch.count {
        Some((offset, width)) => bits::read(frame, start * 8 + offset as usize, width.into()).unwrap_or(0),
        None => u128::MAX,
    };
    places.clear();
    while (places.len() as u128) < count {
        let length = match batch.framing {
            Framing::Fixed(bytes) => Some(bytes as usize),
            Framing::Prefix(width) => {
                bits::read(frame, at * 8, width.into()).map(|length| length as usize + usize::from(width / 8))
            }
        };
        let end = length.and_then(|length| at.checked_add(length)).filter(|end| *end <= frame.len());
        let Some(end) = end else { break };
        places.push(at..end);
        at = end;
    }
}

/// The byte at which each header starts, if it is there.
#[derive(Clone)]
struct Starts(Vec<Option<usize>>);

impl Starts {
    fn of(&self, header: HeaderId) -> Option<usize> {
        self.0[usize::from(header.0)]
    }

    /// With the headers of the message at `data`.
    fn in_message(
        &self,
        formats: &MessageFormats,
        batch: Option<HeaderId>,
        data: &Range<usize>,
        frame: &[u8],
    ) -> Starts {
        let mut starts = self.clone();
        for (index, header) in formats.headers().iter().enumerate() {
            let (start, when) = match &header.place {
                Place::Message { of, when } if Some(*of) == batch => (Some(data.start), when),
                Place::Behind { header, when } => {
                    (starts.of(*header).map(|start| start + formats.header(*header).length as usize / 8), when)
                }
                _ => continue,
            };
            starts.0[index] = start.filter(|start| start + header.length as usize / 8 <= data.end);
            if when.is_some_and(|when| !starts.holds(&when, frame)) {
                starts.0[index] = None;
            }
        }
        starts
    }

    fn holds(&self, when: &Condition, frame: &[u8]) -> bool {
        let start = self.of(when.header);
        start.and_then(|start| bits::read(frame, start * 8 + when.offset as usize, when.width.into()))
            == Some(when.value)
    }

    fn message(&self, formats: &MessageFormats, frame: &[u8]) -> Message {
        let mut message = Message::new(formats);
        for (index, _) in self.0.iter().enumerate().filter(|(_, start)| start.is_some()) {
            message.add_header(HeaderId(index as u16));
        }
        for (index, field) in formats.fields().iter().enumerate() {
            if let Some(start) = self.of(field.header) {
                match bits::read(frame, start * 8 + field.offset as usize, field.width.into()) {
                    Some(value) => message.set(crate::formats::FieldId(index as u16), value),
                    None => message.remove_header(field.header),
                }
            }
        }
        message
    }
}
