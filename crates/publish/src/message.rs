//! A message as it is in a datagram: a header of [`HEADER`] bytes, the key, the attributes, the payload.
//!
//! `examples/subscriptions/publish.p4` describes the header to switches. All numbers are big-endian.

use crate::topic::{MAX_LENGTH, Topic};

/// The length of the header.
pub const HEADER: usize = 88;

/// The largest datagram that fits an Ethernet frame of 1500 bytes behind IPv4 and UDP.
pub const MAX_DATAGRAM: usize = 1_472;

/// The UDP port by which switches know these messages.
pub const PORT: u16 = 26_500;

const VERSION: u8 = 1;
const HAS_KEY: u8 = 1;
const HAS_PAYLOAD: u8 = 2;
const HEARTBEAT: u8 = 4;
/// As the length of an attribute's value: it has none.
const NO_VALUE: u16 = u16::MAX;
/// How much of the key the header has.
const KEY_FIELD: usize = 16;

/// A message. What it points at stays where it is: in the datagram, or with who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who sends it: a number drawn at random when the publisher starts.
    pub publisher: u64,
    /// Counts the messages of this publisher, topic and partition from 0.
    pub sequence: u64,
    /// A part of the topic.
    pub partition: u16,
    /// What it is about.
    pub topic: Topic,
    /// Milliseconds since 1970, as the publisher says.
    pub timestamp_ms: u64,
    /// A number for filters.
    pub number: u64,
    /// It says only that `sequence` is the next, so that the loss of the last message is noticed.
    pub heartbeat: bool,
    /// What tells it from other messages of the topic. Filters see the first 16 bytes.
    pub key: Option<&'a [u8]>,
    /// More that the publisher says of it; filters don't see it.
    pub attributes: Attributes<'a>,
    /// Its contents.
    pub payload: Option<&'a [u8]>,
}

/// Names with values, as they stand in a message. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes that [`push_attribute`] wrote into `bytes`. `None` if something else is in there.
    pub fn read(bytes: &'a [u8]) -> Option<Attributes<'a>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = next_attribute(rest)?.1;
        }
        Some(Attributes(bytes))
    }

    /// Name and value of each.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (attribute, behind) = next_attribute(rest)?;
            rest = behind;
            Some(attribute)
        })
    }
}

/// Appends an attribute to `bytes`. Gives `false`, and appends nothing, if name or value have 65,535 bytes or more.
#[must_use]
pub fn push_attribute(bytes: &mut Vec<u8>, name: &[u8], value: Option<&[u8]>) -> bool {
    let length = |length: usize| u16::try_from(length).ok().filter(|length| *length != NO_VALUE);
    let (Some(name_length), Some(value_length)) =
        (length(name.len()), value.map_or(Some(NO_VALUE), |value| length(value.len())))
    else {
        return false;
    };
    bytes.extend(name_length.to_be_bytes());
    bytes.extend(name);
    bytes.extend(value_length.to_be_bytes());
    bytes.extend(value.unwrap_or_default());
    true
}

type Attribute<'a> = (&'a [u8], Option<&'a [u8]>);

fn next_attribute(bytes: &[u8]) -> Option<(Attribute<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (length, rest) = rest.split_first_chunk()?;
    match u16::from_be_bytes(*length) {
        NO_VALUE => Some(((name, None), rest)),
        length => {
            let (value, rest) = rest.split_at_checked(usize::from(length))?;
            Some(((name, Some(value)), rest))
        }
    }
}

/// The message does not fit a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {length} bytes does not fit a datagram of {limit}")]
pub struct TooLong {
    /// Its length with its header.
    pub length: usize,
    /// What fits.
    pub limit: usize,
}

/// What is wrong with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum BadMessage {
    /// It ends too early.
    #[error("it ends too early")]
    Short,
    /// It has another version.
    #[error("its version is another than {VERSION}")]
    Version,
    /// Its topic is no name.
    #[error("its topic is no name")]
    Topic,
    /// Its attributes are broken.
    #[error("its attributes are broken")]
    Attributes,
}

impl<'a> Message<'a> {
    /// A message of a topic with this payload, and nothing else.
    pub fn new(topic: Topic, payload: &'a [u8]) -> Message<'a> {
        Message {
            publisher: 0,
            sequence: 0,
            partition: 0,
            topic,
            timestamp_ms: 0,
            number: 0,
            heartbeat: false,
            key: None,
            attributes: Attributes::default(),
            payload: Some(payload),
        }
    }

    /// Its length in a datagram.
    pub fn length(&self) -> usize {
        let optional = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
        HEADER + optional(self.key) + self.attributes.0.len() + optional(self.payload)
    }

    /// Appends the datagram to `out`, if it has no more than `limit` bytes.
    ///
    /// # Errors
    /// [`TooLong`]; nothing is appended then.
    pub fn encode(&self, limit: usize, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let length = self.length();
        // Lengths of parts are numbers of 16 bits.
        let limit = limit.min(usize::from(u16::MAX));
        if length > limit {
            return Err(TooLong { length, limit });
        }
        let key = self.key.unwrap_or_default();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.key.is_some(), HAS_KEY)
            | flag(self.payload.is_some(), HAS_PAYLOAD)
            | flag(self.heartbeat, HEARTBEAT);
        out.extend([VERSION, flags]);
        out.extend(self.partition.to_be_bytes());
        for number in [self.publisher, self.sequence, self.timestamp_ms, self.number] {
            out.extend(number.to_be_bytes());
        }
        out.extend(self.topic.padded());
        let mut field = [b' '; KEY_FIELD];
        let shown = key.len().min(KEY_FIELD);
        field[..shown].copy_from_slice(&key[..shown]);
        out.extend(field);
        for part in [key, self.attributes.0] {
            out.extend((part.len() as u16).to_be_bytes());
        }
        for part in [key, self.attributes.0, self.payload.unwrap_or_default()] {
            out.extend(part);
        }
        Ok(())
    }

    /// The message in a datagram.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn decode(datagram: &'a [u8]) -> Result<Message<'a>, BadMessage> {
        let (header, body) = datagram.split_first_chunk::<HEADER>().ok_or(BadMessage::Short)?;
        if header[0] != VERSION {
            return Err(BadMessage::Version);
        }
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let word = |at: usize| header[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let mut topic = [0; MAX_LENGTH];
        topic.copy_from_slice(&header[36..36 + MAX_LENGTH]);
        let (key, body) = body.split_at_checked(usize::from(half(84))).ok_or(BadMessage::Short)?;
        let (attributes, payload) = body.split_at_checked(usize::from(half(86))).ok_or(BadMessage::Short)?;
        let flags = header[1];
        Ok(Message {
            publisher: word(4),
            sequence: word(12),
            partition: half(2),
            topic: Topic::from_padded(topic).ok_or(BadMessage::Topic)?,
            timestamp_ms: word(20),
            number: word(28),
            heartbeat: flags & HEARTBEAT != 0,
            key: (flags & HAS_KEY != 0).then_some(key),
            attributes: Attributes::read(attributes).ok_or(BadMessage::Attributes)?,
            payload: (flags & HAS_PAYLOAD != 0).then_some(payload),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn optional_bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
        proptest::option::of(vec(any::<u8>(), 0..40))
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            numbers in any::<[u64; 4]>(), partition in any::<u16>(), heartbeat in any::<bool>(),
            name in "[A-Za-z0-9_-]{1,32}", key in optional_bytes(), payload in optional_bytes(),
            attributes in vec((vec(any::<u8>(), 0..10), optional_bytes()), 0..4),
        ) {
            let mut list = Vec::new();
            for (name, value) in &attributes {
                assert!(push_attribute(&mut list, name, value.as_deref()));
            }
            let message = Message {
                publisher: numbers[0],
                sequence: numbers[1],
                partition,
                topic: Topic::new(&name).unwrap(),
                timestamp_ms: numbers[2],
                number: numbers[3],
                heartbeat,
                key: key.as_deref(),
                attributes: Attributes::read(&list).unwrap(),
                payload: payload.as_deref(),
            };
            let mut datagram = Vec::new();
            message.encode(MAX_DATAGRAM, &mut datagram).unwrap();
            prop_assert_eq!(datagram.len(), message.length());
            let decoded = Message::decode(&datagram).unwrap();
            prop_assert_eq!(decoded, message);
            let found: Vec<_> =
                decoded.attributes.iter().map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect();
            prop_assert_eq!(found, attributes);
            let bytes = key.unwrap_or_default().len() + list.len();
            for length in 0..HEADER + bytes {
                prop_assert_eq!(Message::decode(&datagram[..length]), Err(BadMessage::Short));
            }
        }

        #[test]
        fn any_bytes_are_survived(mut bytes in vec(any::<u8>(), 0..200)) {
            let _ = Message::decode(&bytes);
            if let Some(version) = bytes.first_mut() {
                *version = VERSION;
                let _ = Message::decode(&bytes);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let topic = Topic::new("t").unwrap();
        let payload = [0; MAX_DATAGRAM - HEADER + 1];
        let mut datagram = Vec::new();
        Message::new(topic, &payload[1..]).encode(MAX_DATAGRAM, &mut datagram).unwrap();
        assert_eq!(datagram.len(), MAX_DATAGRAM);
        let error = Message::new(topic, &payload).encode(MAX_DATAGRAM, &mut datagram).unwrap_err();
        assert_eq!(error, TooLong { length: MAX_DATAGRAM + 1, limit: MAX_DATAGRAM });
        assert_eq!(datagram.len(), MAX_DATAGRAM);
        assert!(!push_attribute(&mut datagram, &[0; 65_535], None));
    }
}
