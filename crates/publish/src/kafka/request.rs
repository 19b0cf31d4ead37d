//! What clients ask.

use super::wire::{Malformed, Reader};

/// A kind of request and the versions of it that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The kind's number.
    pub kind: i16,
    /// The oldest version.
    pub oldest: i16,
    /// The newest version.
    pub newest: i16,
}

/// The kinds of requests.
pub mod kind {
    #![allow(missing_docs, reason = "Kafka's own names")]
    pub const PRODUCE: i16 = 0;
    pub const FETCH: i16 = 1;
    pub const LIST_OFFSETS: i16 = 2;
    pub const METADATA: i16 = 3;
    pub const OFFSET_COMMIT: i16 = 8;
    pub const OFFSET_FETCH: i16 = 9;
    pub const FIND_COORDINATOR: i16 = 10;
    pub const JOIN_GROUP: i16 = 11;
    pub const HEARTBEAT: i16 = 12;
    pub const LEAVE_GROUP: i16 = 13;
    pub const SYNC_GROUP: i16 = 14;
    pub const API_VERSIONS: i16 = 18;
    pub const INIT_PRODUCER_ID: i16 = 22;
}

const fn offer(kind: i16, oldest: i16, newest: i16) -> Offer {
    Offer { kind, oldest, newest }
}

/// All that is answered.
pub const OFFERS: [Offer; 13] = [
    offer(kind::PRODUCE, 3, 7),
    offer(kind::FETCH, 4, 6),
    offer(kind::LIST_OFFSETS, 1, 2),
    offer(kind::METADATA, 1, 4),
    offer(kind::OFFSET_COMMIT, 2, 4),
    offer(kind::OFFSET_FETCH, 1, 3),
    offer(kind::FIND_COORDINATOR, 0, 2),
    offer(kind::JOIN_GROUP, 0, 3),
    offer(kind::HEARTBEAT, 0, 2),
    offer(kind::LEAVE_GROUP, 0, 2),
    offer(kind::SYNC_GROUP, 0, 2),
    offer(kind::API_VERSIONS, 0, 3),
    offer(kind::INIT_PRODUCER_ID, 0, 1),
];

/// A request with its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The number by which the client knows the answer again.
    pub correlation: i32,
    /// The version in which it is written and is to be answered.
    pub version: i16,
    /// What the client calls itself.
    pub client: Option<&'a str>,
    /// What it asks.
    pub body: Body<'a>,
}

/// A topic with something for each of some partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicOf<'a, T> {
    /// The topic's name.
    pub name: &'a str,
    /// The partitions.
    pub partitions: Vec<T>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Which requests are answered.
    ApiVersions {
        /// Whether that version of this very request is answered.
        supported: bool,
    },
    /// Topics and brokers.
    Metadata {
        /// The topics; `None` means all.
        topics: Option<Vec<&'a str>>,
        /// Whether topics that are not there are to be made.
        create: bool,
    },
    /// Take these records.
    Produce {
        /// 0 if no answer is wanted.
        acknowledgements: i16,
        /// The records.
        topics: Vec<TopicOf<'a, Records<'a>>>,
    },
    /// Give records.
    Fetch {
        /// How long to wait for them, in milliseconds.
        wait: i32,
        /// How many bytes are worth an answer before that.
        least: i32,
        /// How many bytes an answer may have.
        most: i32,
        /// What to give.
        topics: Vec<TopicOf<'a, FetchPartition>>,
    },
    /// Which records there are.
    ListOffsets {
        /// The partitions, each with a time: -1 is the end, -2 the beginning.
        topics: Vec<TopicOf<'a, (i32, i64)>>,
    },
    /// A number for a producer.
    InitProducerId {
        /// Its transactions' name.
        transactions: Option<&'a str>,
    },
    /// Who looks after a group.
    FindCoordinator {
        /// 0 if it is about a group of consumers.
        of: i8,
    },
    /// Let the client into a group.
    JoinGroup(JoinGroup<'a>),
    /// Who of the group gets what.
    SyncGroup {
        /// In which group, as whom.
        member: Member<'a>,
        /// From the leader: each member's share.
        shares: Vec<(&'a str, &'a [u8])>,
    },
    /// The client is alive.
    Heartbeat(Member<'a>),
    /// The client goes.
    LeaveGroup {
        /// The group.
        group: &'a str,
        /// The client's number.
        member: &'a str,
    },
    /// Remember how far the group has read.
    OffsetCommit {
        /// In which group, as whom.
        member: Member<'a>,
        /// How far.
        topics: Vec<TopicOf<'a, Commit<'a>>>,
    },
    /// How far the group has read.
    OffsetFetch {
        /// The group.
        group: &'a str,
        /// Of these partitions; `None` means all that are known.
        topics: Option<Vec<TopicOf<'a, i32>>>,
    },
}

/// A partition's part of [`Body::Produce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records<'a> {
    /// The partition.
    pub partition: i32,
    /// A record batch.
    pub batch: &'a [u8],
}

/// A partition's part of [`Body::Fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// The partition.
    pub partition: i32,
    /// The first record wanted.
    pub offset: i64,
    /// How many bytes of them.
    pub most: i32,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The group's name.
    pub group: &'a str,
    /// The round of joining that it knows.
    pub generation: i32,
    /// The number that the group gave it.
    pub member: &'a str,
}

/// What a client that joins a group says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinGroup<'a> {
    /// The group's name.
    pub group: &'a str,
    /// Without a heartbeat for so many milliseconds, the member is gone.
    pub session: i32,
    /// How many milliseconds members have to join again.
    pub rebalance: i32,
    /// The number that the group gave it, or nothing.
    pub member: &'a str,
    /// What kind of group.
    pub kind: &'a str,
    /// Names of ways to share the work, best first, and what the member says to each.
    pub protocols: Vec<(&'a str, &'a [u8])>,
}

/// A partition's part of [`Body::OffsetCommit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The partition.
    pub partition: i32,
    /// The next record to read.
    pub offset: i64,
    /// Whatever the client wants to remember with it.
    pub note: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// The request in a frame, without the frame's length.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(frame: &'a [u8]) -> Result<Request<'a>, Malformed> {
        let reader = &mut Reader::new(frame);
        let (kind, version, correlation) = (reader.i16()?, reader.i16()?, reader.i32()?);
        let client = reader.optional_text()?;
        let offer = OFFERS.iter().find(|offer| offer.kind == kind).ok_or(Malformed::Kind)?;
        let supported = (offer.oldest..=offer.newest).contains(&version);
        if kind == kind::API_VERSIONS {
            // What stands in it is of no interest, and not known of versions to come.
            return Ok(Request { correlation, version, client, body: Body::ApiVersions { supported } });
        }
        if !supported {
            return Err(Malformed::Version);
        }
        let body = Body::read(kind, version, reader)?;
        if !reader.rest().is_empty() {
            return Err(Malformed::Long);
        }
        Ok(Request { correlation, version, client, body })
    }
}

impl<'a> Body<'a> {
    fn read(kind: i16, version: i16, reader: &mut Reader<'a>) -> Result<Body<'a>, Malformed> {
        Ok(match kind {
            kind::METADATA => Body::Metadata {
                topics: reader.optional_list(Reader::text)?,
                create: if version >= 4 { reader.i8()? != 0 } else { true },
            },
            kind::PRODUCE => {
                reader.optional_text()?; // the name of a transaction
                let acknowledgements = reader.i16()?;
                reader.i32()?; // how long to wait for other brokers
                let topics = topics(reader, |reader| {
                    Ok(Records { partition: reader.i32()?, batch: reader.optional_bytes()?.unwrap_or_default() })
                })?;
                Body::Produce { acknowledgements, topics }
            }
            kind::FETCH => {
                reader.i32()?; // a broker's number
                let (wait, least, most) = (reader.i32()?, reader.i32()?, reader.i32()?);
                reader.i8()?; // whether transactions matter
                let topics = topics(reader, |reader| {
                    let (partition, offset) = (reader.i32()?, reader.i64()?);
                    if version >= 5 {
                        reader.i64()?; // where a broker's log begins
                    }
                    Ok(FetchPartition { partition, offset, most: reader.i32()? })
                })?;
                Body::Fetch { wait, least, most, topics }
            }
            kind::LIST_OFFSETS => {
                reader.i32()?; // a broker's number
                if version >= 2 {
                    reader.i8()?; // whether transactions matter
                }
                Body::ListOffsets { topics: topics(reader, |reader| Ok((reader.i32()?, reader.i64()?)))? }
            }
            kind::INIT_PRODUCER_ID => {
                let transactions = reader.optional_text()?;
                reader.i32()?; // how long a transaction may take
                Body::InitProducerId { transactions }
            }
            kind::FIND_COORDINATOR => {
                reader.text()?;
                Body::FindCoordinator { of: if version >= 1 { reader.i8()? } else { 0 } }
            }
            kind::JOIN_GROUP => {
                let (group, session) = (reader.text()?, reader.i32()?);
                let rebalance = if version >= 1 { reader.i32()? } else { session };
                let (member, kind) = (reader.text()?, reader.text()?);
                let protocols = reader.list(|reader| Ok((reader.text()?, reader.bytes()?)))?;
                Body::JoinGroup(JoinGroup { group, session, rebalance, member, kind, protocols })
            }
            kind::SYNC_GROUP => Body::SyncGroup {
                member: member(reader)?,
                shares: reader.list(|reader| Ok((reader.text()?, reader.bytes()?)))?,
            },
            kind::HEARTBEAT => Body::Heartbeat(member(reader)?),
            kind::LEAVE_GROUP => Body::LeaveGroup { group: reader.text()?, member: reader.text()? },
            kind::OFFSET_COMMIT => {
                let member = member(reader)?;
                reader.i64()?; // how long to remember
                let topics = topics(reader, |reader| {
                    Ok(Commit { partition: reader.i32()?, offset: reader.i64()?, note: reader.optional_text()? })
                })?;
                Body::OffsetCommit { member, topics }
            }
            kind::OFFSET_FETCH => {
                let group = reader.text()?;
                let topics = reader.optional_list(|reader| topic(reader, Reader::i32))?;
                Body::OffsetFetch { group, topics }
            }
            _ => return Err(Malformed::Kind),
        })
    }
}

fn member<'a>(reader: &mut Reader<'a>) -> Result<Member<'a>, Malformed> {
    Ok(Member { group: reader.text()?, generation: reader.i32()?, member: reader.text()? })
}

fn topic<'a, T>(
    reader: &mut Reader<'a>,
    partition: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<TopicOf<'a, T>, Malformed> {
    Ok(TopicOf { name: reader.text()?, partitions: reader.list(partition)? })
}

fn topics<'a, T>(
    reader: &mut Reader<'a>,
    mut partition: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<TopicOf<'a, T>>, Malformed> {
    reader.list(|reader| topic(reader, &mut partition))
}
