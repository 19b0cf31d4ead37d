//! From the bytes of packets to rows, by a plan made once. [`weftwire_subscribe::packet::messages`] does the same for all fields,
//! slowly.

use crate::pipeline::{Column, Pipeline};
use std::ops::Range;
use weftwire_core::{FieldPlace, Packet, bits};
use weftwire_subscribe::formats::{Batch, Condition, HeaderId, MessageFormats, Place};
use weftwire_subscribe::packet::{places, prefix_bytes};

/// No header starts here.
const NOWHERE: usize = usize::MAX;

/// Finds messages and writes the words of a [`Pipeline`]'s rows.
#[derive(Clone, Debug, Default)]
pub struct Extractor {
    /// Headers that the packet parser finds.
    in_packet: Vec<(usize, FieldPlace)>,
    /// Headers of messages, those in front of others first.
    in_message: Vec<MessageHeader>,
    batch: Option<(usize, Batch)>,
    batch_length: usize,
    prefix: usize,
    words: Vec<Word>,
    /// Where each header starts in bytes.
    starts: Vec<usize>,
    /// Bits from a header's start to the end of its last field.
    spans: Vec<usize>,
}

#[derive(Clone, Debug)]
struct MessageHeader {
    header: usize,
    /// The header in front and its length in bytes; none at the start of a message.
    behind: Option<(usize, usize)>,
    length: usize,
    when: Option<Condition>,
}

#[derive(Clone, Copy, Debug)]
enum Word {
    Present(usize),
    Field { header: usize, offset: usize, width: usize, high: bool },
}

impl Extractor {
    /// A plan for the columns of a pipeline.
    pub fn new(formats: &MessageFormats, pipeline: &Pipeline) -> Extractor {
        let index = |header: HeaderId| usize::from(header.0);
        let words: Vec<Word> = pipeline.columns().iter().map(|column| word(formats, *column)).collect();
        let batch = formats.batch_header();
        // Only what the columns need is looked for: their headers, and those by which these are found.
        let mut needed = vec![false; formats.headers().len()];
        for word in &words {
            let (Word::Present(header) | Word::Field { header, .. }) = word;
            needed[*header] = true;
        }
        let mut open: Vec<usize> = (0..needed.len()).filter(|header| needed[*header]).collect();
        open.extend(batch.map(|(id, _)| index(id)));
        while let Some(header) = open.pop() {
            needed[header] = true;
            let (Place::Message { when, .. } | Place::Behind { when, .. }) = &formats.headers()[header].place else {
                continue;
            };
            let front = match &formats.headers()[header].place {
                Place::Behind { header, .. } => Some(index(*header)),
                _ => None,
            };
            open.extend(when.iter().map(|when| index(when.header)).chain(front).filter(|other| !needed[*other]));
        }
        let mut extractor = Extractor {
            words,
            batch: batch.map(|(id, batch)| (index(id), batch)),
            batch_length: batch.map_or(0, |(id, _)| formats.header(id).length as usize / 8),
            prefix: prefix_bytes(formats),
            starts: vec![NOWHERE; needed.len()],
            spans: vec![0; needed.len()],
            ..Extractor::default()
        };
        for field in formats.fields() {
            let span = &mut extractor.spans[index(field.header)];
            *span = (*span).max(field.offset as usize + usize::from(field.width));
        }
        for (header, description) in formats.headers().iter().enumerate().filter(|(header, _)| needed[*header]) {
            let length = description.length as usize / 8;
            match &description.place {
                Place::Packet(place) => extractor.in_packet.push((header, *place)),
                Place::Message { of, when } if batch.is_some_and(|(id, _)| id == *of) => {
                    extractor.in_message.push(MessageHeader { header, behind: None, length, when: *when });
                }
                Place::Behind { header: front, when } => {
                    let behind = Some((index(*front), formats.header(*front).length as usize / 8));
                    extractor.in_message.push(MessageHeader { header, behind, length, when: *when });
                }
                Place::Message { .. } | Place::Nowhere => {}
            }
        }
        extractor
    }

    /// Appends the rows of a packet's messages. `frame` is the packet's bytes without padding; `messages` becomes where
    /// each message of its batch lies, empty without one: then the packet is one message.
    pub fn packet(&mut self, packet: &Packet, frame: &[u8], messages: &mut Vec<Range<usize>>, rows: &mut Vec<u64>) {
        messages.clear();
        for message in &self.in_message {
            self.starts[message.header] = NOWHERE;
        }
        for (header, place) in &self.in_packet {
            self.starts[*header] = packet.bit_of(*place).map_or(NOWHERE, |bit| bit / 8);
        }
        if let Some((header, batch)) = &self.batch
            && self.starts[*header] != NOWHERE
        {
            let start = self.starts[*header];
            places(batch, start, start + self.batch_length, frame, messages);
        }
        for place in &*messages {
            self.message(place.start + self.prefix..place.end, frame, rows);
        }
        if messages.is_empty() {
            self.row(frame, rows);
        }
    }

    /// Appends the row of one message that lies at `data`.
    fn message(&mut self, data: Range<usize>, frame: &[u8], rows: &mut Vec<u64>) {
        for message in &self.in_message {
            self.starts[message.header] = NOWHERE;
        }
        for message in &self.in_message {
            let start = match message.behind {
                None => data.start,
                Some((front, length)) => self.starts[front].saturating_add(length),
            };
            let fits = start.checked_add(message.length).is_some_and(|end| end <= data.end);
            self.starts[message.header] = if fits { start } else { NOWHERE };
            if let Some(when) = &message.when {
                let start = self.starts[usize::from(when.header.0)];
                let value = start
                    .checked_mul(8)
                    .and_then(|bit| bits::read(frame, bit + when.offset as usize, when.width.into()));
                if value != Some(when.value) {
                    self.starts[message.header] = NOWHERE;
                }
            }
        }
        self.row(&frame[..data.end], rows);
    }

    /// Appends a row of the headers at `starts`. A header that does not fit into the frame is not there.
    fn row(&self, frame: &[u8], rows: &mut Vec<u64>) {
        let bits = frame.len() * 8;
        let start = |header: usize| {
            let start = self.starts[header].checked_mul(8)?;
            (start + self.spans[header] <= bits).then_some(start)
        };
        for word in &self.words {
            rows.push(match *word {
                Word::Present(header) => start(header).is_some().into(),
                Word::Field { header, offset, width, high } => {
                    let value = start(header).and_then(|start| bits::read(frame, start + offset, width)).unwrap_or(0);
                    (value >> if high { 64 } else { 0 }) as u64
                }
            });
        }
        if self.words.is_empty() {
            rows.push(0);
        }
    }
}

fn word(formats: &MessageFormats, column: Column) -> Word {
    match column {
        Column::Present(header) => Word::Present(header.0.into()),
        Column::Low(id) | Column::High(id) => {
            let field = formats.field(id);
            Word::Field {
                header: field.header.0.into(),
                offset: field.offset as usize,
                width: field.width.into(),
                high: matches!(column, Column::High(_)),
            }
        }
    }
}
