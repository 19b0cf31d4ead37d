//! The broker, asked as clients ask, without sockets and with a clock that the tests move.

use std::time::Duration;
use weftwire_publish::kafka::batch::write_batch;
use weftwire_publish::kafka::broker::{Answer, Broker, Limits, Network, NotSent};
use weftwire_publish::kafka::request::{Body, Commit, FetchPartition, JoinGroup, Member, Records, Request, TopicOf};
use weftwire_publish::kafka::response::{Response, code};
use weftwire_publish::kafka::wire::Write as _;
use weftwire_publish::message::{HEADER, MAX_DATAGRAM, Message, push_attribute};
use weftwire_publish::topic::Topic;

/// Keeps what is sent.
#[derive(Default)]
struct Kept {
    datagrams: Vec<Vec<u8>>,
    broken: bool,
}

impl Network for Kept {
    fn limit(&self) -> usize {
        MAX_DATAGRAM
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), NotSent> {
        if self.broken {
            return Err(NotSent);
        }
        let mut datagram = Vec::new();
        message.encode(self.limit(), &mut datagram).map_err(|_| NotSent)?;
        self.datagrams.push(datagram);
        Ok(())
    }
}

fn broker() -> Broker {
    Broker::new(Limits::default(), 1)
}

fn ask(broker: &mut Broker, network: &mut Kept, milliseconds: u64, body: Body<'_>) -> Answer {
    let request = Request { correlation: 1, version: 3, client: None, body };
    broker.handle(Duration::from_millis(milliseconds), &("host".into(), 9092), &request, network)
}

fn now(answer: Answer) -> Response {
    match answer {
        Answer::Now(response) => response,
        other => panic!("{other:?}"),
    }
}

fn body(key: Option<&[u8]>, value: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.variable_bytes(key);
    body.variable_bytes(Some(value));
    body.push(0);
    body
}

/// A batch of values with a producer's number and sequence.
fn batch(values: &[&[u8]], producer: i64, sequence: i32) -> Vec<u8> {
    let bodies: Vec<_> = values.iter().map(|value| body(Some(b"key"), value)).collect();
    let mut out = Vec::new();
    write_batch(0, bodies.iter().map(|body| (7, &body[..])), &mut out);
    out[43..51].copy_from_slice(&producer.to_be_bytes());
    out[51..53].copy_from_slice(&0_i16.to_be_bytes());
    out[53..57].copy_from_slice(&sequence.to_be_bytes());
    let sum = crc32c::crc32c(&out[21..]);
    out[17..21].copy_from_slice(&sum.to_be_bytes());
    out
}

fn produce(broker: &mut Broker, network: &mut Kept, batch: &[u8]) -> (i16, i64) {
    let topics = vec![TopicOf { name: "t", partitions: vec![Records { partition: 0, batch }] }];
    match now(ask(broker, network, 0, Body::Produce { acknowledgements: -1, topics })) {
        Response::Produce(topics) => (topics[0].1[0].error, topics[0].1[0].offset),
        other => panic!("{other:?}"),
    }
}

fn fetch<'a>(offset: i64, wait: i32) -> Body<'a> {
    let partitions = vec![FetchPartition { partition: 0, offset, most: 1 << 20 }];
    Body::Fetch { wait, least: 1, most: 1 << 20, topics: vec![TopicOf { name: "t", partitions }] }
}

#[test]
fn what_is_produced_goes_out_once_and_can_be_consumed() {
    let (mut broker, mut network) = (broker(), Kept::default());
    let t = Topic::new("t").unwrap();
    let one = batch(&[b"a", b"b"], 5, 0);
    assert_eq!(produce(&mut broker, &mut network, &one), (code::UNKNOWN_TOPIC_OR_PARTITION, -1));
    assert!(broker.make(t, 1));
    assert_eq!(produce(&mut broker, &mut network, &one), (code::NONE, 0));
    assert_eq!(produce(&mut broker, &mut network, &batch(&[b"c"], 5, 2)), (code::NONE, 2));
    // The client has not heard the answers.
    assert_eq!(produce(&mut broker, &mut network, &one), (code::NONE, 0));
    assert_eq!(produce(&mut broker, &mut network, &batch(&[b"x"], 5, 9)), (code::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    let sent: Vec<_> = network.datagrams.iter().map(|datagram| Message::decode(datagram).unwrap()).collect();
    let payloads: Vec<_> = sent.iter().map(|message| message.payload.unwrap()).collect();
    assert_eq!(payloads, [b"a", b"b", b"c"]);
    assert!(sent.iter().all(|message| message.topic == t && message.key == Some(b"key") && message.timestamp_ms == 7));

    let Response::Fetch(topics) = now(ask(&mut broker, &mut Kept::default(), 0, fetch(1, 100))) else { panic!() };
    assert_eq!((topics[0].1[0].error, topics[0].1[0].end, topics[0].1[0].start), (code::NONE, 3, 0));
    let counts = broker.counts();
    assert_eq!((counts.produced, counts.repeated, counts.refused), (3, 1, 1));
}

#[test]
fn what_fits_no_packet_is_refused_whole() {
    let (mut broker, mut network) = (broker(), Kept::default());
    broker.make(Topic::new("t").unwrap(), 1);
    let fits = vec![1; MAX_DATAGRAM - HEADER - b"key".len()];
    assert_eq!(produce(&mut broker, &mut network, &batch(&[&fits], -1, -1)), (code::NONE, 0));
    let longer = vec![1; fits.len() + 1];
    assert_eq!(produce(&mut broker, &mut network, &batch(&[b"a", &longer], -1, -1)), (code::MESSAGE_TOO_LARGE, -1));
    assert_eq!(network.datagrams.len(), 1);
    network.broken = true;
    assert_eq!(produce(&mut broker, &mut network, &batch(&[b"a"], -1, -1)), (code::STORAGE_ERROR, -1));
    let mut damaged = batch(&[b"a"], -1, -1);
    damaged[60] ^= 1;
    assert_eq!(produce(&mut broker, &mut network, &damaged), (code::CORRUPT_MESSAGE, -1));
}

#[test]
fn a_fetch_waits_for_what_comes_from_the_network() {
    let (mut broker, mut network) = (broker(), Kept::default());
    let t = Topic::new("t").unwrap();
    broker.make(t, 1);
    let Answer::Later(waiting) = ask(&mut broker, &mut network, 1_000, fetch(0, 500)) else { panic!() };
    assert_eq!(waiting.deadline(), Some(Duration::from_millis(1_500)));
    assert!(broker.poll(Duration::from_millis(1_499), &waiting).is_none());
    let mut attributes = Vec::new();
    assert!(push_attribute(&mut attributes, b"name", None));
    let attributes = weftwire_publish::message::Attributes::read(&attributes).unwrap();
    broker.receive(&Message { heartbeat: true, ..Message::new(t, b"") });
    assert!(broker.poll(Duration::from_millis(1_499), &waiting).is_none());
    broker.receive(&Message { attributes, ..Message::new(t, b"x") });
    let Some(Response::Fetch(topics)) = broker.poll(Duration::from_millis(1_499), &waiting) else { panic!() };
    let batch = weftwire_publish::kafka::batch::Batch::read(&topics[0].1[0].records).unwrap();
    assert_eq!(batch.records[0].value, Some(&b"x"[..]));
    assert_eq!(batch.records[0].headers().collect::<Vec<_>>(), [(&b"name"[..], None)]);
    // With nothing new it ends with nothing, when its time is up.
    let Answer::Later(waiting) = ask(&mut broker, &mut network, 2_000, fetch(1, 500)) else { panic!() };
    let Some(Response::Fetch(topics)) = broker.poll(Duration::from_millis(2_500), &waiting) else { panic!() };
    assert!(topics[0].1[0].records.is_empty());
    // What is wrong is told at once.
    let Response::Fetch(topics) = now(ask(&mut broker, &mut network, 3_000, fetch(5, 500))) else { panic!() };
    assert_eq!(topics[0].1[0].error, code::OFFSET_OUT_OF_RANGE);
}

#[test]
fn the_network_makes_no_topics_unless_asked() {
    let (mut broker, mut network) = (broker(), Kept::default());
    let message = |name: &str, partition| Message { partition, ..Message::new(Topic::new(name).unwrap(), b"") };
    broker.receive(&message("a", 0));
    broker.make(Topic::new("t").unwrap(), 1);
    broker.receive(&message("t", 1));
    broker.receive(&message("t", 0));
    assert_eq!(broker.topics().count(), 1);
    let counts = broker.counts();
    assert_eq!((counts.received, counts.no_partition), (1, 2));
    // A client that asks for one gets it.
    let body = Body::Metadata { topics: Some(vec!["a"]), create: true };
    assert!(matches!(now(ask(&mut broker, &mut network, 0, body)), Response::Metadata { .. }));
    broker.receive(&message("a", 0));
    assert_eq!(broker.counts().received, 2);
}

#[test]
fn all_records_together_have_an_end() {
    let limits = Limits { memory: 200_000, topics_from_network: true, ..Limits::default() };
    let mut broker = Broker::new(limits, 1);
    let quiet = Topic::new("quiet").unwrap();
    broker.receive(&Message::new(quiet, b"stays"));
    for number in 0..4_000_u16 {
        let name = format!("t{}", number % 7);
        broker.receive(&Message::new(Topic::new(&name).unwrap(), &[7; 300]));
        assert!(broker.memory() <= limits.records(), "{}", broker.memory());
    }
    assert!(broker.memory() > limits.records() / 2 && broker.counts().forgotten > 3_000);
    // Who has little loses nothing.
    let body = Body::ListOffsets { topics: vec![TopicOf { name: "quiet", partitions: vec![(0, -2)] }] };
    let Response::ListOffsets(listed) = now(ask(&mut broker, &mut Kept::default(), 0, body)) else { panic!() };
    assert_eq!(listed[0].1[0].offset, 0);
    // Producers count too.
    let one = batch(&[&[1; 1_000][..]; 20], -1, -1);
    broker.make(Topic::new("t").unwrap(), 1);
    for _ in 0..10 {
        assert_eq!(produce(&mut broker, &mut Kept::default(), &one).0, code::NONE);
        assert!(broker.memory() <= limits.records());
    }
}

#[test]
fn all_groups_together_have_an_end() {
    let limits = Limits { memory: 800_000, ..Limits::default() };
    let (mut broker, mut network) = (Broker::new(limits, 1), Kept::default());
    broker.make(Topic::new("t").unwrap(), 1);
    let said = vec![0; 30_000];
    let mut errors = Vec::new();
    for number in 0..5 {
        let group = format!("g{number}");
        let protocols = vec![("range", &said[..])];
        let (session, rebalance) = (6_000, 6_000);
        let join = JoinGroup { group: &group, session, rebalance, member: "", kind: "consumer", protocols };
        let Response::JoinGroup(joined) = now(ask(&mut broker, &mut network, 0, Body::JoinGroup(join))) else {
            panic!()
        };
        errors.push(joined.error);
        assert!(broker.memory() <= 100_000, "{}", broker.memory());
    }
    let full = code::COORDINATOR_NOT_AVAILABLE;
    assert_eq!(errors, [code::NONE, code::NONE, code::NONE, full, full]);
    let note = "n".repeat(4_096);
    let mut commits = Vec::new();
    for number in 0..9 {
        let member = Member { group: &format!("c{number}"), generation: -1, member: "" };
        let topics =
            vec![TopicOf { name: "t", partitions: vec![Commit { partition: 0, offset: 1, note: Some(&note) }] }];
        let Response::OffsetCommit(topics) =
            now(ask(&mut broker, &mut network, 0, Body::OffsetCommit { member, topics }))
        else {
            panic!()
        };
        commits.push(topics[0].1[0].1);
        assert!(broker.memory() <= 100_000, "{}", broker.memory());
    }
    assert!(commits[0] == code::NONE && commits[8] == full, "{commits:?}");
    // What members that are gone had, others have.
    let Response::Heartbeat(error) = now(ask(
        &mut broker,
        &mut network,
        60_000,
        Body::Heartbeat(Member { group: "g0", generation: 1, member: "host-1" }),
    )) else {
        panic!()
    };
    assert_eq!(error, code::UNKNOWN_MEMBER_ID);
    assert!(broker.memory() < 70_000, "{}", broker.memory());
}

#[test]
fn an_answer_has_no_more_than_there_is_room_for_but_a_record() {
    let (mut broker, mut network) = (broker(), Kept::default());
    let t = Topic::new("t").unwrap();
    broker.make(t, 1);
    for _ in 0..100 {
        broker.receive(&Message::new(t, &[1; 1_000]));
    }
    for (room, fits) in [(0, 1), (1, 1), (5_000, 4), (usize::MAX, 100)] {
        broker.set_room(room);
        let Response::Fetch(topics) = now(ask(&mut broker, &mut network, 0, fetch(0, 0))) else { panic!() };
        let batch = weftwire_publish::kafka::batch::Batch::read(&topics[0].1[0].records).unwrap();
        assert_eq!(batch.records.len(), fits, "{room}");
    }
}

#[test]
fn topics_and_partitions_have_an_end() {
    let limits = Limits { max_topics: 2, max_partitions: 5, topics_from_network: true, ..Limits::default() };
    let (mut broker, mut network) = (Broker::new(limits, 1), Kept::default());
    let message = |name: &str, partition| Message { partition, ..Message::new(Topic::new(name).unwrap(), b"") };
    broker.receive(&message("a", 2));
    broker.receive(&message("b", 4));
    broker.receive(&message("b", 1));
    broker.receive(&message("c", 0));
    let counts = broker.counts();
    assert_eq!((counts.received, counts.no_partition), (2, 2));
    let names = Some(vec!["a", "b", "c", "no name"]);
    let Response::Metadata { topics, .. } =
        now(ask(&mut broker, &mut network, 0, Body::Metadata { topics: names, create: true }))
    else {
        panic!()
    };
    let found: Vec<_> = topics.iter().map(|(error, name, partitions)| (*error, &**name, *partitions)).collect();
    let unknown = code::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(found, [(0, "a", 3), (0, "b", 2), (unknown, "c", 0), (code::INVALID_TOPIC, "no name", 0)]);
}

#[test]
fn what_a_group_has_read_is_remembered() {
    let (mut broker, mut network) = (broker(), Kept::default());
    broker.make(Topic::new("t").unwrap(), 1);
    let commit = |member, partition| {
        let commit = Commit { partition, offset: 42, note: None };
        Body::OffsetCommit { member, topics: vec![TopicOf { name: "t", partitions: vec![commit] }] }
    };
    let nobody = Member { group: "g", generation: -1, member: "" };
    let mut error = |body| match now(ask(&mut broker, &mut network, 0, body)) {
        Response::OffsetCommit(topics) => topics[0].1[0].1,
        other => panic!("{other:?}"),
    };
    assert_eq!(error(commit(nobody, 0)), code::NONE);
    assert_eq!(error(commit(nobody, 1)), code::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(error(commit(Member { member: "m", ..nobody }, 0)), code::UNKNOWN_MEMBER_ID);
    assert_eq!(error(commit(Member { group: "", ..nobody }, 0)), code::INVALID_GROUP_ID);
    for topics in [None, Some(vec![TopicOf { name: "t", partitions: vec![0] }])] {
        let body = Body::OffsetFetch { group: "g", topics };
        let Response::OffsetFetch { topics, .. } = now(ask(&mut broker, &mut network, 0, body)) else { panic!() };
        assert_eq!((&*topics[0].0, topics[0].1[0].offset), ("t", 42));
    }
}
