//! What clients are answered.

use super::request::{OFFERS, Request, kind};
use super::wire::Write;

/// An error of the protocol. 0 is none.
pub mod code {
    #![allow(missing_docs, reason = "Kafka's own names")]
    pub const NONE: i16 = 0;
    pub const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub const CORRUPT_MESSAGE: i16 = 2;
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub const MESSAGE_TOO_LARGE: i16 = 10;
    pub const OFFSET_METADATA_TOO_LARGE: i16 = 12;
    pub const COORDINATOR_NOT_AVAILABLE: i16 = 15;
    pub const INVALID_TOPIC: i16 = 17;
    pub const ILLEGAL_GENERATION: i16 = 22;
    pub const INCONSISTENT_GROUP_PROTOCOL: i16 = 23;
    pub const INVALID_GROUP_ID: i16 = 24;
    pub const UNKNOWN_MEMBER_ID: i16 = 25;
    pub const INVALID_SESSION_TIMEOUT: i16 = 26;
    pub const REBALANCE_IN_PROGRESS: i16 = 27;
    pub const UNSUPPORTED_VERSION: i16 = 35;
    pub const INVALID_REQUEST: i16 = 42;
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub const INVALID_PRODUCER_EPOCH: i16 = 47;
    pub const STORAGE_ERROR: i16 = 56;
    pub const UNSUPPORTED_COMPRESSION: i16 = 76;
    pub const GROUP_MAX_SIZE_REACHED: i16 = 81;
    pub const INVALID_RECORD: i16 = 87;
}

/// The number of the one broker.
pub const BROKER: i32 = 1;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Which requests are answered, or that this very request's version is not.
    ApiVersions {
        /// Whether the request's version is.
        supported: bool,
    },
    /// Topics and the broker.
    Metadata {
        /// The broker's address.
        address: (String, u16),
        /// Topics: their error, name and number of partitions.
        topics: Vec<(i16, String, u16)>,
    },
    /// What became of records.
    Produce(Topics<Produced>),
    /// Records.
    Fetch(Topics<Fetched>),
    /// Which records there are.
    ListOffsets(Topics<Listed>),
    /// A number for a producer.
    InitProducerId {
        /// What went wrong.
        error: i16,
        /// The number, or -1.
        producer: i64,
    },
    /// Who looks after a group.
    FindCoordinator {
        /// What went wrong.
        error: i16,
        /// The broker's address.
        address: (String, u16),
    },
    /// The group as it is after a round of joining.
    JoinGroup(Joined),
    /// A member's share.
    SyncGroup {
        /// What went wrong.
        error: i16,
        /// The share.
        share: Vec<u8>,
    },
    /// To a heartbeat.
    Heartbeat(i16),
    /// To a member that leaves.
    LeaveGroup(i16),
    /// What was remembered.
    OffsetCommit(Topics<(i32, i16)>),
    /// What is remembered.
    OffsetFetch {
        /// What went wrong with all of it.
        error: i16,
        /// What is remembered.
        topics: Topics<Remembered>,
    },
}

impl Response {
    /// Bytes of records in it.
    pub(super) fn record_bytes(&self) -> usize {
        let Response::Fetch(topics) = self else { return 0 };
        topics.iter().flat_map(|(_, partitions)| partitions).map(|fetched| fetched.records.len()).sum()
    }
}

/// Topics with something for each of some partitions.
pub type Topics<T> = Vec<(String, Vec<T>)>;

/// What became of a partition's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// The partition.
    pub partition: i32,
    /// What went wrong.
    pub error: i16,
    /// The first record's offset, or -1.
    pub offset: i64,
    /// Where the log begins, or -1.
    pub start: i64,
}

/// A partition's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The partition.
    pub partition: i32,
    /// What went wrong.
    pub error: i16,
    /// Where the log ends.
    pub end: i64,
    /// Where the log begins.
    pub start: i64,
    /// Record batches.
    pub records: Vec<u8>,
}

/// A place in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The partition.
    pub partition: i32,
    /// What went wrong.
    pub error: i16,
    /// The record's time, or -1.
    pub timestamp_ms: i64,
    /// The record's offset, or -1.
    pub offset: i64,
}

/// How far a group has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The partition.
    pub partition: i32,
    /// The next record to read, or -1.
    pub offset: i64,
    /// The client's note.
    pub note: String,
}

/// The group as a member that joined sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// What went wrong.
    pub error: i16,
    /// The round of joining.
    pub generation: i32,
    /// How the work is shared.
    pub protocol: String,
    /// Who shares it.
    pub leader: String,
    /// The member's own number.
    pub member: String,
    /// For the leader: all members and what they said.
    pub members: Vec<(String, Vec<u8>)>,
}

impl Response {
    /// Appends the answer to a request, with its frame's length in front.
    pub fn write(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.i32(0);
        out.i32(request.correlation);
        self.write_body(request.version, out);
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn write_body(&self, version: i16, out: &mut Vec<u8>) {
        match self {
            Response::ApiVersions { supported } => write_offers(version, *supported, out),
            Response::Metadata { address, topics } => {
                throttled(version >= 3, out);
                out.list([address].into_iter(), |out, (host, port)| {
                    out.i32(BROKER);
                    out.text(host);
                    out.i32(i32::from(*port));
                    out.optional_text(None); // its rack
                });
                if version >= 2 {
                    out.text("weftwire");
                }
                out.i32(BROKER);
                out.list(topics.iter(), |out, (error, name, partitions)| {
                    out.i16(*error);
                    out.text(name);
                    out.i8(0); // it is not Kafka's own
                    out.list(0..*partitions, |out, partition| {
                        out.i16(code::NONE);
                        out.i32(i32::from(partition));
                        out.i32(BROKER);
                        // Replicas, and those that keep up.
                        out.list([BROKER].into_iter(), Write::i32);
                        out.list([BROKER].into_iter(), Write::i32);
                    });
                });
            }
            Response::Produce(topics) => {
                write_topics(topics, out, |out, produced| {
                    out.i32(produced.partition);
                    out.i16(produced.error);
                    out.i64(produced.offset);
                    out.i64(-1); // the records keep their own times
                    if version >= 5 {
                        out.i64(produced.start);
                    }
                });
                throttled(true, out);
            }
            Response::Fetch(topics) => {
                throttled(true, out);
                write_topics(topics, out, |out, fetched| {
                    out.i32(fetched.partition);
                    out.i16(fetched.error);
                    out.i64(fetched.end);
                    out.i64(fetched.end); // no transaction is open
                    if version >= 5 {
                        out.i64(fetched.start);
                    }
                    out.i32(-1); // no transaction was given up
                    out.bytes(&fetched.records);
                });
            }
            Response::ListOffsets(topics) => {
                throttled(version >= 2, out);
                write_topics(topics, out, |out, listed| {
                    out.i32(listed.partition);
                    out.i16(listed.error);
                    out.i64(listed.timestamp_ms);
                    out.i64(listed.offset);
                });
            }
            Response::InitProducerId { error, producer } => {
                throttled(true, out);
                out.i16(*error);
                out.i64(*producer);
                out.i16(if *error == code::NONE { 0 } else { -1 }); // its epoch
            }
            Response::FindCoordinator { error, address: (host, port) } => {
                throttled(version >= 1, out);
                out.i16(*error);
                if version >= 1 {
                    out.optional_text(None); // the error in words
                }
                out.i32(BROKER);
                out.text(host);
                out.i32(i32::from(*port));
            }
            Response::JoinGroup(joined) => {
                throttled(version >= 2, out);
                out.i16(joined.error);
                out.i32(joined.generation);
                out.text(&joined.protocol);
                out.text(&joined.leader);
                out.text(&joined.member);
                out.list(joined.members.iter(), |out, (member, said)| {
                    out.text(member);
                    out.bytes(said);
                });
            }
            Response::SyncGroup { error, share } => {
                throttled(version >= 1, out);
                out.i16(*error);
                out.bytes(share);
            }
            Response::Heartbeat(error) | Response::LeaveGroup(error) => {
                throttled(version >= 1, out);
                out.i16(*error);
            }
            Response::OffsetCommit(topics) => {
                throttled(version >= 3, out);
                write_topics(topics, out, |out, (partition, error)| {
                    out.i32(*partition);
                    out.i16(*error);
                });
            }
            Response::OffsetFetch { error, topics } => {
                throttled(version >= 3, out);
                write_topics(topics, out, |out, remembered| {
                    out.i32(remembered.partition);
                    out.i64(remembered.offset);
                    out.text(&remembered.note);
                    out.i16(*error);
                });
                if version >= 2 {
                    out.i16(*error);
                }
            }
        }
    }
}

/// Versions from some on tell clients how long to be quiet: not at all.
fn throttled(has: bool, out: &mut Vec<u8>) {
    if has {
        out.i32(0);
    }
}

fn write_topics<T>(topics: &Topics<T>, out: &mut Vec<u8>, mut write: impl FnMut(&mut Vec<u8>, &T)) {
    out.list(topics.iter(), |out, (name, partitions)| {
        out.text(name);
        out.list(partitions.iter(), &mut write);
    });
}

/// A client that asks in a version to come is answered in the first: it reads in it which versions there are, and asks again.
fn write_offers(version: i16, supported: bool, out: &mut Vec<u8>) {
    let version = if supported { version } else { 0 };
    out.i16(if supported { code::NONE } else { code::UNSUPPORTED_VERSION });
    let compact = version >= 3;
    match compact {
        // Of a short list, its length and 1.
        true => out.i8(OFFERS.len() as i8 + 1),
        false => out.i32(OFFERS.len() as i32),
    }
    for offer in OFFERS {
        out.i16(offer.kind);
        // librdkafka takes brokers without the first version for ones that cannot compress.
        out.i16(if offer.kind == kind::PRODUCE { 0 } else { offer.oldest });
        out.i16(offer.newest);
        if compact {
            out.i8(0);
        }
    }
    throttled(version >= 1, out);
    if compact {
        out.i8(0);
    }
}
