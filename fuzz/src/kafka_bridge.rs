//! The body of the target `kafka_bridge`: clients' requests and the network's messages through the broker of the bridge.

use std::time::Duration;
use weftwire_publish::kafka::batch::Batch;
use weftwire_publish::kafka::broker::{Answer, Broker, Limits, Network, NotSent, Waiting};
use weftwire_publish::kafka::request::{Body, Request};
use weftwire_publish::kafka::response::Response;
use weftwire_publish::message::{MAX_DATAGRAM, Message};
use weftwire_publish::topic::Topic;

/// Clients that wait for an answer; when there are more, the one that has waited longest goes.
const MAX_WAITING: usize = 8;
/// A batch's checksum, and where what it is over begins.
const CHECKSUM: std::ops::Range<usize> = 17..21;

/// Checks what is sent.
struct Wire;

impl Network for Wire {
    fn limit(&self) -> usize {
        MAX_DATAGRAM
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), NotSent> {
        let mut datagram = Vec::new();
        message.encode(self.limit(), &mut datagram).expect("what does not fit was refused");
        assert_eq!(Message::decode(&datagram).as_ref(), Ok(message));
        Ok(())
    }
}

/// Inputs follow each other: a byte that says how much later it is and what comes, two bytes of length, and the bytes: a
/// request, one whose batches get their right checksums, a datagram, or nothing.
pub fn kafka_bridge(data: &[u8]) {
    let limits = Limits {
        topics_from_network: true,
        max_topics: 4,
        max_partitions: 8,
        retain: 4_000,
        memory: 100_000,
        ..Limits::default()
    };
    let mut broker = Broker::new(limits, 1);
    assert!(broker.make(Topic::new("t").expect("a name"), 2));
    let address = ("host".to_owned(), 9_092);
    let mut waiting: Vec<(Vec<u8>, Waiting)> = Vec::new();
    let (mut rest, mut now) = (data, Duration::ZERO);
    while let [choice, high, low, tail @ ..] = rest {
        now += Duration::from_millis(u64::from(choice >> 2) * 100);
        let (bytes, tail) = tail.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(tail.len()));
        rest = tail;
        match choice & 3 {
            kind @ 0..2 => {
                let mut frame = bytes.to_vec();
                if kind == 1 {
                    right_checksums(&mut frame);
                }
                let Ok(request) = Request::read(&frame) else { continue };
                match broker.handle(now, &address, &request, &mut Wire) {
                    Answer::Now(response) => check(&request, &response),
                    Answer::Nothing => {}
                    Answer::Later(later) => {
                        if waiting.len() == MAX_WAITING {
                            waiting.remove(0);
                        }
                        waiting.push((frame, later));
                    }
                }
            }
            2 => drop(Message::decode(bytes).map(|message| broker.receive(&message))),
            _ => {}
        }
        waiting.retain(|(frame, later)| {
            let Some(response) = broker.poll(now, later) else {
                assert!(later.deadline().is_none_or(|deadline| now < deadline), "an answer is late");
                return true;
            };
            check(&Request::read(frame).expect("it was read before"), &response);
            false
        });
    }
}

/// Clients can read the answer, and it has no more records than they asked for, but for one.
fn check(request: &Request<'_>, response: &Response) {
    let mut out = Vec::new();
    response.write(request, &mut out);
    let (length, body) = out.split_first_chunk().expect("a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, body.len());
    if let (Response::Fetch(topics), Body::Fetch { most, .. }) = (response, &request.body) {
        let found = topics.iter().flat_map(|(_, partitions)| partitions).map(|partition| &partition.records);
        for batch in found.clone().filter(|batch| !batch.is_empty()) {
            Batch::read(batch).expect("what is given was taken");
        }
        let most = usize::try_from(*most).unwrap_or(0);
        assert!(found.map(Vec::len).sum::<usize>() <= most + MAX_DATAGRAM + 200, "more than was asked for");
    }
}

/// Gives the batches in a request to produce the checksums that they should have.
fn right_checksums(frame: &mut [u8]) {
    let start = frame.as_ptr().addr();
    let Ok(Request { body: Body::Produce { topics, .. }, .. }) = Request::read(frame) else { return };
    // A batch that is not there lies nowhere in the frame.
    let records = topics.iter().flat_map(|topic| &topic.partitions).filter(|records| !records.batch.is_empty());
    let places: Vec<_> = records.map(|records| (records.batch.as_ptr().addr() - start, records.batch.len())).collect();
    for (start, length) in places {
        let batch = &mut frame[start..start + length];
        if let Some(checked) = batch.get(CHECKSUM.end..) {
            let checksum = crc32c::crc32c(checked);
            batch[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}
