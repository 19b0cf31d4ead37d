//! The protocol against a library that was made from Kafka's own descriptions of its messages.

use bytes::{Buf as _, Bytes, BytesMut};
use kafka_protocol::messages::{self as kafka, ApiKey, BrokerId, GroupId, RequestHeader, ResponseHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use proptest::collection::vec;
use proptest::prelude::*;
use weftwire_publish::kafka::batch::{BadBatch, Batch};
use weftwire_publish::kafka::log::Log;
use weftwire_publish::kafka::request::{
    Body, Commit, FetchPartition, JoinGroup, Member, OFFERS, Records, Request, TopicOf, kind,
};
use weftwire_publish::kafka::response::{Fetched, Joined, Listed, Produced, Remembered, Response};
use weftwire_publish::kafka::wire::Malformed;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

fn group() -> GroupId {
    GroupId(text("g"))
}

/// A frame, without its length, as a client of Kafka would send it.
fn frame(key: ApiKey, version: i16, body: &impl Encodable) -> Vec<u8> {
    let header = RequestHeader::default()
        .with_request_api_key(key as i16)
        .with_request_api_version(version)
        .with_correlation_id(77)
        .with_client_id(Some(text("client")));
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes, key.request_header_version(version)).unwrap();
    body.encode(&mut bytes, version).unwrap();
    bytes.to_vec()
}

/// All requests of one version and what is to be read in them.
fn requests(kind: i16, version: i16) -> (Vec<u8>, Body<'static>) {
    let member = Member { group: "g", generation: 3, member: "m" };
    let key = ApiKey::try_from(kind).unwrap();
    match key {
        ApiKey::ApiVersions => {
            let body = kafka::ApiVersionsRequest::default().with_client_software_name(text("x"));
            (frame(key, version, &body), Body::ApiVersions { supported: true })
        }
        ApiKey::Metadata => {
            let named = |name| kafka::metadata_request::MetadataRequestTopic::default().with_name(Some(topic(name)));
            let body = kafka::MetadataRequest::default()
                .with_topics(Some(vec![named("a"), named("b")]))
                .with_allow_auto_topic_creation(version < 4);
            (frame(key, version, &body), Body::Metadata { topics: Some(vec!["a", "b"]), create: version < 4 })
        }
        ApiKey::Produce => {
            let partition = kafka::produce_request::PartitionProduceData::default()
                .with_index(4)
                .with_records(Some(Bytes::from_static(b"batch")));
            let data = kafka::produce_request::TopicProduceData::default()
                .with_name(topic("t"))
                .with_partition_data(vec![partition]);
            let body = kafka::ProduceRequest::default().with_acks(-1).with_timeout_ms(9).with_topic_data(vec![data]);
            let records = Records { partition: 4, batch: b"batch" };
            let topics = vec![TopicOf { name: "t", partitions: vec![records] }];
            (frame(key, version, &body), Body::Produce { acknowledgements: -1, topics })
        }
        ApiKey::Fetch => {
            let partition = kafka::fetch_request::FetchPartition::default()
                .with_partition(2)
                .with_fetch_offset(1 << 40)
                .with_partition_max_bytes(5);
            let wanted =
                kafka::fetch_request::FetchTopic::default().with_topic(topic("t")).with_partitions(vec![partition]);
            let body = kafka::FetchRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_max_wait_ms(500)
                .with_min_bytes(1)
                .with_max_bytes(1000)
                .with_topics(vec![wanted]);
            let partition = FetchPartition { partition: 2, offset: 1 << 40, most: 5 };
            let topics = vec![TopicOf { name: "t", partitions: vec![partition] }];
            (frame(key, version, &body), Body::Fetch { wait: 500, least: 1, most: 1000, topics })
        }
        ApiKey::ListOffsets => {
            let partition =
                kafka::list_offsets_request::ListOffsetsPartition::default().with_partition_index(1).with_timestamp(-2);
            let wanted = kafka::list_offsets_request::ListOffsetsTopic::default()
                .with_name(topic("t"))
                .with_partitions(vec![partition]);
            let body = kafka::ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![wanted]);
            let topics = vec![TopicOf { name: "t", partitions: vec![(1, -2)] }];
            (frame(key, version, &body), Body::ListOffsets { topics })
        }
        ApiKey::OffsetCommit => {
            let partition = kafka::offset_commit_request::OffsetCommitRequestPartition::default()
                .with_partition_index(1)
                .with_committed_offset(42)
                .with_committed_metadata(Some(text("note")));
            let wanted = kafka::offset_commit_request::OffsetCommitRequestTopic::default()
                .with_name(topic("t"))
                .with_partitions(vec![partition]);
            let body = kafka::OffsetCommitRequest::default()
                .with_group_id(group())
                .with_generation_id_or_member_epoch(3)
                .with_member_id(text("m"))
                .with_topics(vec![wanted]);
            let commit = Commit { partition: 1, offset: 42, note: Some("note") };
            let topics = vec![TopicOf { name: "t", partitions: vec![commit] }];
            (frame(key, version, &body), Body::OffsetCommit { member, topics })
        }
        ApiKey::OffsetFetch => {
            let wanted = kafka::offset_fetch_request::OffsetFetchRequestTopic::default()
                .with_name(topic("t"))
                .with_partition_indexes(vec![0, 5]);
            let body = kafka::OffsetFetchRequest::default().with_group_id(group()).with_topics(Some(vec![wanted]));
            let topics = Some(vec![TopicOf { name: "t", partitions: vec![0, 5] }]);
            (frame(key, version, &body), Body::OffsetFetch { group: "g", topics })
        }
        ApiKey::FindCoordinator => {
            let body = kafka::FindCoordinatorRequest::default().with_key(text("g"));
            (frame(key, version, &body), Body::FindCoordinator { of: 0 })
        }
        ApiKey::JoinGroup => {
            let protocol = kafka::join_group_request::JoinGroupRequestProtocol::default()
                .with_name(text("range"))
                .with_metadata(Bytes::from_static(b"said"));
            let mut body = kafka::JoinGroupRequest::default()
                .with_group_id(group())
                .with_session_timeout_ms(6)
                .with_member_id(text("m"))
                .with_protocol_type(text("consumer"))
                .with_protocols(vec![protocol]);
            let rebalance = if version >= 1 { 8 } else { 6 };
            if version >= 1 {
                body = body.with_rebalance_timeout_ms(rebalance);
            }
            let protocols = vec![("range", &b"said"[..])];
            let join = JoinGroup { group: "g", session: 6, rebalance, member: "m", kind: "consumer", protocols };
            (frame(key, version, &body), Body::JoinGroup(join))
        }
        ApiKey::SyncGroup => {
            let share = kafka::sync_group_request::SyncGroupRequestAssignment::default()
                .with_member_id(text("m"))
                .with_assignment(Bytes::from_static(b"share"));
            let body = kafka::SyncGroupRequest::default()
                .with_group_id(group())
                .with_generation_id(3)
                .with_member_id(text("m"))
                .with_assignments(vec![share]);
            (frame(key, version, &body), Body::SyncGroup { member, shares: vec![("m", b"share")] })
        }
        ApiKey::Heartbeat => {
            let body = kafka::HeartbeatRequest::default()
                .with_group_id(group())
                .with_generation_id(3)
                .with_member_id(text("m"));
            (frame(key, version, &body), Body::Heartbeat(member))
        }
        ApiKey::LeaveGroup => {
            let body = kafka::LeaveGroupRequest::default().with_group_id(group()).with_member_id(text("m"));
            (frame(key, version, &body), Body::LeaveGroup { group: "g", member: "m" })
        }
        ApiKey::InitProducerId => {
            let body =
                kafka::InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(5);
            (frame(key, version, &body), Body::InitProducerId { transactions: None })
        }
        other => panic!("{other:?} is offered and not tested"),
    }
}

fn all() -> impl Iterator<Item = (i16, i16)> {
    OFFERS.iter().flat_map(|offer| (offer.oldest..=offer.newest).map(|version| (offer.kind, version)))
}

#[test]
fn requests_of_all_versions_are_read() {
    for (kind, version) in all() {
        let (frame, body) = requests(kind, version);
        let request = Request::read(&frame).unwrap_or_else(|bad| panic!("{kind} version {version}: {bad}"));
        assert_eq!(request, Request { correlation: 77, version, client: Some("client"), body });
        if kind == kind::API_VERSIONS {
            continue;
        }
        for length in 0..frame.len() {
            assert_eq!(Request::read(&frame[..length]), Err(Malformed::Short), "{kind} version {version}");
        }
        assert_eq!(Request::read(&[&frame[..], b"x"].concat()), Err(Malformed::Long));
    }
}

fn response(kind: i16) -> Response {
    let address = ("host".to_owned(), 9092);
    match kind {
        kind::API_VERSIONS => Response::ApiVersions { supported: true },
        kind::METADATA => {
            Response::Metadata { address, topics: vec![(0, "a".into(), 3), (3, "b".into(), 0), (17, "c d".into(), 0)] }
        }
        kind::PRODUCE => {
            let produced = Produced { partition: 1, error: 10, offset: -1, start: 8 };
            Response::Produce(vec![("t".into(), vec![produced, produced])])
        }
        kind::FETCH => {
            let fetched = Fetched { partition: 1, error: 0, end: 9, start: 2, records: b"records".to_vec() };
            Response::Fetch(vec![("t".into(), vec![fetched])])
        }
        kind::LIST_OFFSETS => {
            let listed = Listed { partition: 1, error: 0, timestamp_ms: 5, offset: 6 };
            Response::ListOffsets(vec![("t".into(), vec![listed])])
        }
        kind::OFFSET_COMMIT => Response::OffsetCommit(vec![("t".into(), vec![(1, 0), (2, 3)])]),
        kind::OFFSET_FETCH => {
            let remembered = Remembered { partition: 1, offset: 42, note: "note".into() };
            Response::OffsetFetch { error: 0, topics: vec![("t".into(), vec![remembered])] }
        }
        kind::FIND_COORDINATOR => Response::FindCoordinator { error: 0, address },
        kind::JOIN_GROUP => Response::JoinGroup(Joined {
            error: 0,
            generation: 3,
            protocol: "range".into(),
            leader: "m".into(),
            member: "m".into(),
            members: vec![("m".into(), b"said".to_vec())],
        }),
        kind::SYNC_GROUP => Response::SyncGroup { error: 0, share: b"share".to_vec() },
        kind::HEARTBEAT => Response::Heartbeat(27),
        kind::LEAVE_GROUP => Response::LeaveGroup(0),
        kind::INIT_PRODUCER_ID => Response::InitProducerId { error: 0, producer: 7 },
        other => panic!("{other} is offered and not tested"),
    }
}

/// Reads a response as a client of Kafka does, and writes what was read again.
fn again<T: Encodable + Decodable + std::fmt::Debug>(bytes: &mut Bytes, version: i16) -> (String, Vec<u8>) {
    let read = T::decode(bytes, version).unwrap();
    assert!(!bytes.has_remaining(), "{} bytes are left", bytes.remaining());
    let mut written = BytesMut::new();
    read.encode(&mut written, version).unwrap();
    (format!("{read:?}"), written.to_vec())
}

#[test]
fn responses_of_all_versions_are_understood() {
    for (kind, version) in all() {
        let (frame, _) = requests(kind, version);
        let mut out = Vec::new();
        response(kind).write(&Request::read(&frame).unwrap(), &mut out);
        let mut bytes = Bytes::from(out);
        assert_eq!(bytes.get_i32() as usize, bytes.len());
        let key = ApiKey::try_from(kind).unwrap();
        let header = ResponseHeader::decode(&mut bytes, key.response_header_version(version)).unwrap();
        assert_eq!(header.correlation_id, 77);
        let body = bytes.to_vec();
        let bytes = &mut bytes;
        let (shown, written) = match key {
            ApiKey::ApiVersions => again::<kafka::ApiVersionsResponse>(bytes, version),
            ApiKey::Metadata => again::<kafka::MetadataResponse>(bytes, version),
            ApiKey::Produce => again::<kafka::ProduceResponse>(bytes, version),
            ApiKey::Fetch => again::<kafka::FetchResponse>(bytes, version),
            ApiKey::ListOffsets => again::<kafka::ListOffsetsResponse>(bytes, version),
            ApiKey::OffsetCommit => again::<kafka::OffsetCommitResponse>(bytes, version),
            ApiKey::OffsetFetch => again::<kafka::OffsetFetchResponse>(bytes, version),
            ApiKey::FindCoordinator => again::<kafka::FindCoordinatorResponse>(bytes, version),
            ApiKey::JoinGroup => again::<kafka::JoinGroupResponse>(bytes, version),
            ApiKey::SyncGroup => again::<kafka::SyncGroupResponse>(bytes, version),
            ApiKey::Heartbeat => again::<kafka::HeartbeatResponse>(bytes, version),
            ApiKey::LeaveGroup => again::<kafka::LeaveGroupResponse>(bytes, version),
            ApiKey::InitProducerId => again::<kafka::InitProducerIdResponse>(bytes, version),
            other => panic!("{other:?}"),
        };
        assert_eq!(written, body, "{shown}");
        let telling: &[&str] = match key {
            ApiKey::Metadata => &["\"host\"", "port: 9092", "\"a\"", "error_code: 17", "partition_index: 2"],
            ApiKey::Produce => &["index: 1", "error_code: 10", "base_offset: -1"],
            ApiKey::Fetch => &["high_watermark: 9", "records: Some(b\"records\")"],
            ApiKey::ListOffsets => &["timestamp: 5", "offset: 6"],
            ApiKey::OffsetCommit => &["partition_index: 2, error_code: 3"],
            ApiKey::OffsetFetch => &["committed_offset: 42", "\"note\""],
            ApiKey::JoinGroup => &["generation_id: 3", "\"range\"", "b\"said\""],
            ApiKey::SyncGroup => &["b\"share\""],
            ApiKey::Heartbeat => &["error_code: 27"],
            ApiKey::InitProducerId => &["producer_id: 7", "producer_epoch: 0"],
            _ => &[],
        };
        for words in telling {
            assert!(shown.contains(words), "{words} is not in {shown}");
        }
    }
}

#[test]
fn a_version_to_come_is_told_which_there_are() {
    let (mut frame, _) = requests(kind::API_VERSIONS, 3);
    frame[2..4].copy_from_slice(&9_i16.to_be_bytes());
    let request = Request::read(&frame).unwrap();
    assert_eq!(request.body, Body::ApiVersions { supported: false });
    let mut out = Vec::new();
    Response::ApiVersions { supported: false }.write(&request, &mut out);
    let mut bytes = Bytes::from(out).slice(8..);
    let read = kafka::ApiVersionsResponse::decode(&mut bytes, 0).unwrap();
    assert_eq!((read.error_code, read.api_keys.len()), (35, OFFERS.len()));
    // Others are not understood at all.
    let (mut frame, _) = requests(kind::METADATA, 1);
    frame[3] = 12;
    assert_eq!(Request::read(&frame), Err(Malformed::Version));
    frame[1] = 99;
    assert_eq!(Request::read(&frame), Err(Malformed::Kind));
}

type Plain = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(String, Option<Vec<u8>>)>);

fn encoded(records: &[Plain], compression: Compression, transactional: bool) -> Vec<u8> {
    let records: Vec<Record> = (0_i64..)
        .zip(records)
        .map(|(offset, (timestamp, key, value, headers))| Record {
            transactional,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: -1,
            producer_id: 9,
            producer_epoch: 2,
            timestamp_type: TimestampType::Creation,
            offset,
            sequence: 5 + offset as i32,
            timestamp: *timestamp,
            key: key.clone().map(Bytes::from),
            value: value.clone().map(Bytes::from),
            headers: headers.iter().map(|(name, value)| (text(name), value.clone().map(Bytes::from))).collect(),
        })
        .collect();
    let mut bytes = BytesMut::new();
    let compressor = None::<fn(&mut BytesMut, &mut BytesMut, Compression) -> anyhow::Result<()>>;
    let options = RecordEncodeOptions { version: 2, compression };
    RecordBatchEncoder::encode_with_custom_compression(&mut bytes, &records, &options, compressor).unwrap();
    bytes.to_vec()
}

fn some_bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(vec(any::<u8>(), 0..30))
}

fn records() -> impl Strategy<Value = Vec<Plain>> {
    let headers = prop::collection::btree_map("[a-z]{1,5}", some_bytes(), 0..3)
        .prop_map(|headers| headers.into_iter().collect::<Vec<_>>());
    vec((0_i64..2_000_000_000_000, some_bytes(), some_bytes(), headers), 1..12)
}

proptest! {
    #[test]
    fn batches_are_read_and_written_as_the_library_does(records in records()) {
        let bytes = encoded(&records, Compression::None, false);
        let batch = Batch::read(&bytes).unwrap();
        prop_assert_eq!((batch.producer, batch.epoch, batch.sequence), (9, 2, 5));
        let found: Vec<Plain> = batch.records.iter().map(|record| {
            let headers = record.headers().map(|(name, value)| {
                (String::from_utf8(name.to_vec()).unwrap(), value.map(<[u8]>::to_vec))
            });
            (record.timestamp_ms, record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec), headers.collect())
        }).collect();
        prop_assert_eq!(&found, &records);

        let mut log = Log::new(1 << 20);
        for record in &batch.records {
            log.append(record.timestamp_ms, record.body);
        }
        let mut out = Vec::new();
        log.read(0, 1 << 20, &mut out).unwrap();
        let decoded = RecordBatchDecoder::decode(&mut Bytes::from(out)).unwrap().records;
        prop_assert_eq!(decoded.len(), records.len());
        for (offset, (decoded, (timestamp, key, value, headers))) in (0..).zip(decoded.into_iter().zip(records)) {
            prop_assert_eq!((decoded.offset, decoded.timestamp), (offset, timestamp));
            prop_assert_eq!(decoded.key.map(|key| key.to_vec()), key);
            prop_assert_eq!(decoded.value.map(|value| value.to_vec()), value);
            let found: Vec<_> =
                decoded.headers.into_iter().map(|(name, value)| (name.to_string(), value.map(|it| it.to_vec()))).collect();
            prop_assert_eq!(found, headers);
        }
    }

    #[test]
    fn damaged_batches_are_refused_and_survived(records in records(), place in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = encoded(&records, Compression::None, false);
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        // The offset and the leader's epoch are not the producer's to say, and the checksum does not cover them.
        let free = place < 8 || (12..16).contains(&place);
        prop_assert_eq!(Batch::read(&bytes).is_ok(), free);
        // With a right checksum it is a batch, or is not.
        let sum = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&sum.to_be_bytes());
        let _ = Batch::read(&bytes);
    }

    #[test]
    fn damaged_requests_are_survived(
        which in any::<prop::sample::Index>(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        length in any::<prop::sample::Index>(),
    ) {
        let all: Vec<_> = all().collect();
        let (kind, version) = all[which.index(all.len())];
        let (mut frame, _) = requests(kind, version);
        for (place, byte) in damage {
            let place = place.index(frame.len());
            frame[place] = byte;
        }
        let _ = Request::read(&frame);
        frame.truncate(length.index(frame.len()));
        let _ = Request::read(&frame);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Request::read(&bytes);
        let _ = Batch::read(&bytes);
    }
}

#[test]
fn what_is_not_supported_is_told_apart() {
    let records = [(1, None, Some(b"x".to_vec()), Vec::new())];
    let good = encoded(&records, Compression::None, false);
    assert_eq!(Batch::read(&encoded(&records, Compression::None, true)), Err(BadBatch::Transaction));
    let twice = [&good[..], &good[..]].concat();
    assert_eq!(Batch::read(&twice), Err(BadBatch::Malformed));
    let mut old = good.clone();
    old[16] = 1;
    assert_eq!(Batch::read(&old), Err(BadBatch::Format));
    let mut compressed = good.clone();
    compressed[22] = 4;
    assert_eq!(Batch::read(&compressed), Err(BadBatch::Checksum));
    let sum = crc32c::crc32c(&compressed[21..]);
    compressed[17..21].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(Batch::read(&compressed), Err(BadBatch::Compressed));
    // Lengths in a record are not believed.
    let mut many = good;
    many[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let sum = crc32c::crc32c(&many[21..]);
    many[17..21].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(Batch::read(&many), Err(BadBatch::Malformed));
}
