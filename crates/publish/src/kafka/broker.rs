//! The broker: topics, their records, groups. It has no sockets and no clock.

use super::batch::{Batch, write_body};
use super::group::{Group, Offset};
use super::log::{Log, OutOfRange};
use super::producers::{Producers, Verdict};
use super::request::{Body, FetchPartition, Records, Request, TopicOf};
use super::response::{Fetched, Joined, Listed, Produced, Remembered, Response, Topics, code};
use crate::message::{Attributes, HEADER, Message};
use crate::topic::Topic;
use std::collections::BTreeMap;
use std::time::Duration;

/// Groups of consumers.
const MAX_GROUPS: usize = 256;
/// Bytes of a group's name; Kafka's clients are content with less.
const MAX_GROUP_NAME: usize = 255;
/// Producers remembered for each partition, and about the bytes that each takes.
const MAX_PRODUCERS: usize = 1_024;
const PRODUCER: usize = 256;
/// What an answer has of records, whatever the client allows.
pub(super) const MAX_FETCH: usize = 8 << 20;
/// About the memory that a committed offset takes.
const COMMITTED: usize = 256;
/// How long a client may wait for records.
const MAX_WAIT: i32 = 30_000;
/// As the time of a place in a log: its end, its beginning.
const AT_END: i64 = -1;
const AT_START: i64 = -2;

/// How much a broker takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Partitions of a topic that is made because somebody asks for it.
    pub partitions: u16,
    /// Whether topics are made because a client asks for them.
    pub new_topics: bool,
    /// Whether topics and partitions are made because messages of them come from the network, where anybody may send.
    pub topics_from_network: bool,
    /// Topics.
    pub max_topics: usize,
    /// Partitions in all.
    pub max_partitions: usize,
    /// Bytes of records that are kept for each partition.
    pub retain: usize,
    /// Bytes of memory in all: a half of it for records, a quarter for requests and answers on their way, an eighth each
    /// for groups and producers.
    pub memory: usize,
}

impl Limits {
    /// Bytes of records of all partitions.
    pub fn records(&self) -> usize {
        self.memory / 2
    }

    /// Bytes of large requests and answers on their way.
    pub fn on_the_way(&self) -> usize {
        self.memory / 4
    }

    fn groups(&self) -> usize {
        self.memory / 8
    }

    /// Of each partition.
    fn producers(&self) -> usize {
        (self.memory / 8 / PRODUCER / self.max_partitions.max(1)).clamp(1, MAX_PRODUCERS)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            partitions: 1,
            new_topics: true,
            topics_from_network: false,
            max_topics: 256,
            max_partitions: 1_024,
            retain: 16 << 20,
            memory: 512 << 20,
        }
    }
}

/// Where records go.
pub trait Network {
    /// The longest message, with its header.
    fn limit(&self) -> usize;
    /// Numbers a message and sends it.
    ///
    /// # Errors
    /// [`NotSent`].
    fn send(&mut self, message: &Message<'_>) -> Result<(), NotSent>;
}

/// The network did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSent;

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that clients produced and that went into the network.
    pub produced: u64,
    /// Records that were refused because they do not fit a packet.
    pub too_large: u64,
    /// Batches that were refused for another reason.
    pub refused: u64,
    /// Batches that came again.
    pub repeated: u64,
    /// Messages that came from the network and became records.
    pub received: u64,
    /// Messages from the network that there was no partition for.
    pub no_partition: u64,
    /// Records that were forgotten before their time because all partitions together had too many.
    pub forgotten: u64,
}

/// The broker.
#[derive(Debug)]
pub struct Broker {
    limits: Limits,
    topics: BTreeMap<Topic, Vec<Partition>>,
    groups: BTreeMap<String, Group>,
    next_producer: i64,
    counts: Counts,
    scratch: Vec<u8>,
    /// Bytes of all records.
    records: usize,
    /// Bytes of all groups.
    group_bytes: usize,
    /// Bytes of records that an answer may have now.
    room: usize,
}

#[derive(Debug)]
struct Partition {
    log: Log,
    producers: Producers,
}

/// The answer to a request, now or later.
#[derive(Debug)]
pub enum Answer {
    /// This.
    Now(Response),
    /// None is wanted.
    Nothing,
    /// [`Broker::poll`] will give it.
    Later(Waiting),
}

/// A request that has no answer yet.
#[derive(Debug)]
pub struct Waiting(Wait);

#[derive(Debug)]
enum Wait {
    Fetch { deadline: Duration, least: usize, most: usize, topics: Topics<FetchPartition> },
    Join { group: String, member: String },
    Sync { group: String, member: String, generation: i32 },
}

impl Waiting {
    /// When [`Broker::poll`] gives an answer at the latest; `None` if that depends on others.
    pub fn deadline(&self) -> Option<Duration> {
        match self.0 {
            Wait::Fetch { deadline, .. } => Some(deadline),
            Wait::Join { .. } | Wait::Sync { .. } => None,
        }
    }
}

impl Broker {
    /// A broker without topics. `first_producer` is the number of the first producer: brokers should differ in it.
    pub fn new(limits: Limits, first_producer: u32) -> Broker {
        Broker {
            limits,
            topics: BTreeMap::new(),
            groups: BTreeMap::new(),
            next_producer: i64::from(first_producer) << 24,
            counts: Counts::default(),
            scratch: Vec::new(),
            records: 0,
            group_bytes: 0,
            room: MAX_FETCH,
        }
    }

    /// How many bytes of records the next answers may have, at most; whatever it is, they have one record.
    pub fn set_room(&mut self, bytes: usize) {
        self.room = bytes.min(MAX_FETCH);
    }

    /// Bytes of memory that records and groups take.
    pub fn memory(&self) -> usize {
        self.records + self.group_bytes
    }

    /// Makes a topic, or more partitions of it, as far as the limits allow. Gives whether it has so many partitions now.
    pub fn make(&mut self, topic: Topic, partitions: u16) -> bool {
        let all: usize = self.topics.values().map(Vec::len).sum();
        let full = self.topics.len() >= self.limits.max_topics && !self.topics.contains_key(&topic);
        let has = self.topics.get(&topic).map_or(0, Vec::len);
        let missing = usize::from(partitions).saturating_sub(has);
        if full || all + missing > self.limits.max_partitions {
            return false;
        }
        let retain = self.limits.retain;
        let new = || Partition { log: Log::new(retain), producers: Producers::default() };
        self.topics.entry(topic).or_default().extend(std::iter::repeat_with(new).take(missing));
        true
    }

    /// The topics.
    pub fn topics(&self) -> impl Iterator<Item = Topic> {
        self.topics.keys().copied()
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A message came from the network.
    pub fn receive(&mut self, message: &Message<'_>) {
        if message.heartbeat {
            return;
        }
        let index = usize::from(message.partition);
        let known = self.topics.get(&message.topic).is_some_and(|partitions| index < partitions.len());
        if !known && self.limits.topics_from_network {
            self.make(message.topic, self.limits.partitions.max(message.partition.saturating_add(1)));
        }
        let partitions = self.topics.get_mut(&message.topic);
        let Some(partition) = partitions.and_then(|partitions| partitions.get_mut(index)) else {
            self.counts.no_partition += 1;
            return;
        };
        self.scratch.clear();
        write_body(message, &mut self.scratch);
        let before = partition.log.bytes();
        partition.log.append(i64::try_from(message.timestamp_ms).unwrap_or(i64::MAX), &self.scratch);
        self.records = self.records + partition.log.bytes() - before;
        self.counts.received += 1;
        self.make_room();
    }

    /// Forgets the oldest records of the largest partitions while there are too many of all.
    fn make_room(&mut self) {
        let most = self.limits.records();
        while self.records > most {
            let partitions = self.topics.values_mut().flatten();
            let Some(largest) = partitions.max_by_key(|partition| partition.log.bytes()) else { return };
            let before = largest.log.bytes();
            // Some more than is needed, so that partitions need not be compared for each record.
            let forgotten = largest.log.forget(self.records - most + most / 64);
            if forgotten == 0 {
                return;
            }
            self.counts.forgotten += forgotten;
            self.records -= before - largest.log.bytes();
        }
    }

    /// Does something with a group, if there is room for so many bytes more.
    fn with_group<T>(
        &mut self,
        name: &str,
        more: usize,
        work: impl FnOnce(&mut Group) -> Result<T, i16>,
    ) -> Result<T, i16> {
        if self.group_bytes + more > self.limits.groups() {
            return Err(code::COORDINATOR_NOT_AVAILABLE);
        }
        let group = self.groups.get_mut(name).ok_or(code::UNKNOWN_MEMBER_ID)?;
        let before = group.size();
        let outcome = work(group);
        self.group_bytes = self.group_bytes + group.size() - before;
        outcome
    }

    /// Answers a request. `now` is the time since some start; it never goes back. `address` is the broker's, as the
    /// client knows it.
    pub fn handle(
        &mut self,
        now: Duration,
        address: &(String, u16),
        request: &Request<'_>,
        network: &mut impl Network,
    ) -> Answer {
        Answer::Now(match &request.body {
            Body::ApiVersions { supported } => Response::ApiVersions { supported: *supported },
            Body::Metadata { topics, create } => self.metadata(address.clone(), topics.as_deref(), *create),
            Body::Produce { acknowledgements, topics } => {
                let produced = for_each(topics, |name, records| self.produce(name, records, network));
                match acknowledgements {
                    0 => return Answer::Nothing,
                    _ => Response::Produce(produced),
                }
            }
            Body::Fetch { wait, least, most, topics } => {
                let most = usize::try_from(*most).unwrap_or(0).min(MAX_FETCH);
                let wait = Wait::Fetch {
                    deadline: now + Duration::from_millis((*wait).clamp(0, MAX_WAIT) as u64),
                    // No answer has more.
                    least: usize::try_from(*least).unwrap_or(0).min(most),
                    most,
                    topics: for_each(topics, |_, partition| *partition),
                };
                return self.now_or_later(now, wait);
            }
            Body::ListOffsets { topics } => {
                Response::ListOffsets(for_each(topics, |name, at| self.list_offset(name, at.0, at.1)))
            }
            Body::InitProducerId { transactions: Some(_) } => {
                Response::InitProducerId { error: code::INVALID_REQUEST, producer: -1 }
            }
            Body::InitProducerId { transactions: None } => {
                self.next_producer += 1;
                Response::InitProducerId { error: code::NONE, producer: self.next_producer }
            }
            Body::FindCoordinator { of } => {
                let error = if *of == 0 { code::NONE } else { code::INVALID_REQUEST };
                Response::FindCoordinator { error, address: address.clone() }
            }
            Body::JoinGroup(join) => {
                let client = request.client.unwrap_or("consumer");
                let said: usize = join.protocols.iter().map(|(name, said)| name.len() + said.len()).sum();
                let made = self.make_group(join.group);
                match made.and_then(|()| self.with_group(join.group, said, |group| group.join(now, client, join))) {
                    Ok(member) => return self.now_or_later(now, Wait::Join { group: join.group.into(), member }),
                    Err(error) => Response::JoinGroup(Joined {
                        error,
                        generation: -1,
                        member: join.member.into(),
                        ..Joined::default()
                    }),
                }
            }
            Body::SyncGroup { member, shares } => {
                let more = shares.iter().map(|(_, share)| share.len()).sum();
                match self.with_group(member.group, more, |group| group.sync(now, member, shares)) {
                    Ok(()) => {
                        let (group, name) = (member.group.into(), member.member.into());
                        return self
                            .now_or_later(now, Wait::Sync { group, member: name, generation: member.generation });
                    }
                    Err(error) => Response::SyncGroup { error, share: Vec::new() },
                }
            }
            Body::Heartbeat(member) => {
                let error = self.with_group(member.group, 0, |group| Ok(group.heartbeat(now, member)));
                Response::Heartbeat(error.unwrap_or_else(|error| error))
            }
            Body::LeaveGroup { group, member } => {
                let error = self.with_group(group, 0, |group| Ok(group.leave(now, member)));
                Response::LeaveGroup(error.unwrap_or_else(|error| error))
            }
            Body::OffsetCommit { member, topics } => {
                let made = self.make_group(member.group);
                let allowed =
                    made.and_then(|()| self.with_group(member.group, 0, |group| group.may_commit(now, member)));
                Response::OffsetCommit(for_each(topics, |name, commit| {
                    let offset = Offset { offset: commit.offset, note: commit.note.unwrap_or_default().into() };
                    let error = allowed
                        .and_then(|()| self.place(name, commit.partition).ok_or(code::UNKNOWN_TOPIC_OR_PARTITION))
                        .and_then(|place| {
                            let more = offset.note.len() + COMMITTED;
                            self.with_group(member.group, more, |group| Ok(group.commit(place, offset)))
                        });
                    (commit.partition, error.unwrap_or_else(|error| error))
                }))
            }
            Body::OffsetFetch { group, topics } => {
                Response::OffsetFetch { error: code::NONE, topics: self.remembered(group, topics.as_deref()) }
            }
        })
    }

    /// The answer to a request that waits, if there is one now.
    pub fn poll(&mut self, now: Duration, waiting: &Waiting) -> Option<Response> {
        match &waiting.0 {
            Wait::Fetch { deadline, least, most, topics } => {
                let ready = now >= *deadline || topics.is_empty() || self.is_available(topics, *least);
                ready.then(|| self.fetch(topics, (*most).min(self.room)))
            }
            Wait::Join { group, member } => {
                let joined = self.with_group(group, 0, |group| Ok(group.joined(now, member)));
                joined.unwrap_or_else(|error| Some(Joined { error, ..Joined::default() })).map(Response::JoinGroup)
            }
            Wait::Sync { group, member, generation } => {
                let share = self.with_group(group, 0, |group| Ok(group.share(now, member, *generation)));
                let share = share.unwrap_or_else(|error| Some(Err(error)))?;
                let error = share.as_ref().err().copied().unwrap_or(code::NONE);
                Some(Response::SyncGroup { error, share: share.unwrap_or_default() })
            }
        }
    }

    fn now_or_later(&mut self, now: Duration, wait: Wait) -> Answer {
        let waiting = Waiting(wait);
        match self.poll(now, &waiting) {
            Some(response) => Answer::Now(response),
            None => Answer::Later(waiting),
        }
    }

    fn metadata(&mut self, address: (String, u16), names: Option<&[&str]>, create: bool) -> Response {
        let all = || self.topics.keys().map(|topic| topic.name().to_owned()).collect();
        let names: Vec<String> = names.map_or_else(all, |names| names.iter().map(|name| (*name).to_owned()).collect());
        let topics = names.into_iter().map(|name| {
            let Ok(topic) = Topic::new(&name) else { return (code::INVALID_TOPIC, name, 0) };
            if create && self.limits.new_topics && !self.topics.contains_key(&topic) {
                self.make(topic, self.limits.partitions);
            }
            match self.topics.get(&topic) {
                Some(partitions) => (code::NONE, name, partitions.len() as u16),
                None => (code::UNKNOWN_TOPIC_OR_PARTITION, name, 0),
            }
        });
        Response::Metadata { address, topics: topics.collect() }
    }

    fn produce(&mut self, name: &str, records: &Records<'_>, network: &mut impl Network) -> Produced {
        let partition = records.partition;
        match self.take(name, records, network) {
            Ok((offset, start)) => Produced { partition, error: code::NONE, offset, start },
            Err(error) => Produced { partition, error, offset: -1, start: -1 },
        }
    }

    /// Takes a batch whole or not at all. Gives its offset, and where the log begins.
    fn take(&mut self, name: &str, records: &Records<'_>, network: &mut impl Network) -> Result<(i64, i64), i16> {
        let place = self.place(name, records.partition).ok_or(code::UNKNOWN_TOPIC_OR_PARTITION)?;
        let batch = Batch::read(records.batch).map_err(|bad| {
            self.counts.refused += 1;
            bad.code()
        })?;
        let (topic, number) = place;
        let partitions = self.topics.get_mut(&topic);
        let partition = partitions.and_then(|partitions| partitions.get_mut(usize::from(number)));
        let Partition { log, producers } = partition.ok_or(code::UNKNOWN_TOPIC_OR_PARTITION)?;
        match producers.judge(&batch) {
            Verdict::Take => {}
            Verdict::Known(offset) => {
                self.counts.repeated += 1;
                return Ok((offset, log.start()));
            }
            Verdict::Refuse(error) => {
                self.counts.refused += 1;
                return Err(error);
            }
        }
        let attributes = &mut self.scratch;
        for record in &batch.records {
            attributes.clear();
            let fits = record.attributes(attributes).is_some_and(|_| {
                let parts = [record.key, record.value, Some(&attributes[..])];
                HEADER + parts.iter().flatten().map(|part| part.len()).sum::<usize>() <= network.limit()
            });
            if !fits {
                self.counts.too_large += 1;
                return Err(code::MESSAGE_TOO_LARGE);
            }
        }
        let (offset, before) = (log.end(), log.bytes());
        let sent = batch.records.iter().try_for_each(|record| {
            attributes.clear();
            let number_field = record.attributes(attributes).unwrap_or(0);
            let message = Message {
                partition: number,
                timestamp_ms: u64::try_from(record.timestamp_ms).unwrap_or(0),
                number: number_field,
                key: record.key,
                attributes: Attributes::read(attributes).unwrap_or_default(),
                payload: record.value,
                ..Message::new(topic, &[])
            };
            network.send(&message).map_err(|NotSent| code::STORAGE_ERROR)?;
            log.append(record.timestamp_ms, record.body);
            self.counts.produced += 1;
            Ok(())
        });
        self.records = self.records + log.bytes() - before;
        let outcome = sent.map(|()| {
            producers.taken(&batch, offset, self.limits.producers());
            (offset, log.start())
        });
        self.make_room();
        outcome
    }

    fn is_available(&self, topics: &Topics<FetchPartition>, least: usize) -> bool {
        let mut found = 0;
        for (name, partitions) in topics {
            for wanted in partitions {
                match self.log(name, wanted.partition).map(|log| log.available(wanted.offset, least - found)) {
                    Some(Ok(bytes)) => found += bytes,
                    // An error is to be told at once.
                    None | Some(Err(OutOfRange)) => return true,
                }
                if found >= least {
                    return true;
                }
            }
        }
        found >= least
    }

    fn fetch(&self, topics: &Topics<FetchPartition>, most: usize) -> Response {
        let (mut left, mut first) = (most, true);
        let mut read = |name: &str, wanted: &FetchPartition| {
            let mut fetched =
                Fetched { partition: wanted.partition, error: code::NONE, end: -1, start: -1, records: Vec::new() };
            let Some(log) = self.log(name, wanted.partition) else {
                return Fetched { error: code::UNKNOWN_TOPIC_OR_PARTITION, ..fetched };
            };
            (fetched.start, fetched.end) = (log.start(), log.end());
            let share = left.min(usize::try_from(wanted.most).unwrap_or(0));
            // The first partition with records gives one in any case.
            if (first || share > 0) && log.read(wanted.offset, share, &mut fetched.records).is_err() {
                fetched.error = code::OFFSET_OUT_OF_RANGE;
            }
            left = left.saturating_sub(fetched.records.len());
            first &= fetched.records.is_empty();
            fetched
        };
        Response::Fetch(
            topics
                .iter()
                .map(|(name, partitions)| (name.clone(), partitions.iter().map(|wanted| read(name, wanted)).collect()))
                .collect(),
        )
    }

    fn list_offset(&self, name: &str, partition: i32, at: i64) -> Listed {
        let Some(log) = self.log(name, partition) else {
            return Listed { partition, error: code::UNKNOWN_TOPIC_OR_PARTITION, timestamp_ms: -1, offset: -1 };
        };
        let (offset, timestamp) = match at {
            AT_END => (log.end(), -1),
            AT_START => (log.start(), -1),
            timestamp => log.since(timestamp).unwrap_or((-1, -1)),
        };
        Listed { partition, error: code::NONE, timestamp_ms: timestamp, offset }
    }

    fn remembered(&self, group: &str, topics: Option<&[TopicOf<'_, i32>]>) -> Topics<Remembered> {
        let known = self.groups.get(group).map(Group::offsets);
        let Some(topics) = topics else {
            let mut all = BTreeMap::<_, Vec<_>>::new();
            for ((topic, partition), offset) in known.into_iter().flatten() {
                let Offset { offset, note } = offset.clone();
                let remembered = Remembered { partition: i32::from(*partition), offset, note };
                all.entry(topic.name().to_owned()).or_default().push(remembered);
            }
            return all.into_iter().collect();
        };
        for_each(topics, |name, partition| {
            let place = Topic::new(name).ok().zip(u16::try_from(*partition).ok());
            let offset = place.and_then(|place| known?.get(&place).cloned());
            let Offset { offset, note } = offset.unwrap_or(Offset { offset: -1, note: String::new() });
            Remembered { partition: *partition, offset, note }
        })
    }

    /// Makes the group of this name if it is not there.
    fn make_group(&mut self, name: &str) -> Result<(), i16> {
        if name.is_empty() || name.len() > MAX_GROUP_NAME {
            return Err(code::INVALID_GROUP_ID);
        }
        if self.groups.contains_key(name) {
            return Ok(());
        }
        if self.groups.len() >= MAX_GROUPS {
            self.groups.retain(|_, group| !group.is_empty());
            self.group_bytes = self.groups.values().map(Group::size).sum();
        }
        let group = Group::default();
        if self.groups.len() >= MAX_GROUPS || self.group_bytes + group.size() > self.limits.groups() {
            return Err(code::COORDINATOR_NOT_AVAILABLE);
        }
        self.group_bytes += group.size();
        self.groups.insert(name.to_owned(), group);
        Ok(())
    }

    /// Topic and partition, if they are there.
    fn place(&self, name: &str, partition: i32) -> Option<(Topic, u16)> {
        let (topic, partition) = (Topic::new(name).ok()?, u16::try_from(partition).ok()?);
        (usize::from(partition) < self.topics.get(&topic)?.len()).then_some((topic, partition))
    }

    fn log(&self, name: &str, partition: i32) -> Option<&Log> {
        let (topic, partition) = self.place(name, partition)?;
        Some(&self.topics.get(&topic)?.get(usize::from(partition))?.log)
    }
}

/// What comes of each partition of each topic.
fn for_each<T, R>(topics: &[TopicOf<'_, T>], mut each: impl FnMut(&str, &T) -> R) -> Topics<R> {
    let topic = |topic: &TopicOf<'_, T>| {
        (topic.name.to_owned(), topic.partitions.iter().map(|partition| each(topic.name, partition)).collect())
    };
    topics.iter().map(topic).collect()
}
