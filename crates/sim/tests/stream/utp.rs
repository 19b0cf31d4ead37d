//! uTP (BEP 29): what the programs send to each other, packet by packet, beside what the protocol's text says.

use crate::path::{Between, Path};
use crate::{MILLISECOND, data};
use proptest::prelude::*;
use std::collections::BTreeSet;

const UTP: [&str; 2] = ["utp_sender.xl", "utp_receiver.xl"];

/// The fields of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    kind: u8,
    version: u8,
    connection: u16,
    timestamp: u32,
    difference: u32,
    number: u16,
    acknowledged: u16,
    /// The numbers that a selective acknowledgment tells of.
    selective: Vec<u16>,
    payload: Vec<u8>,
}

/// Reads a frame with Ethernet, IPv4 and UDP in front, as BEP 29 says.
fn packet(frame: &[u8]) -> Packet {
    let length = usize::from(u16::from_be_bytes([frame[38], frame[39]])) - 8;
    let datagram = &frame[42..42 + length];
    let half = |at: usize| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
    let word = |at: usize| u32::from_be_bytes(datagram[at..at + 4].try_into().expect("four bytes"));
    let acknowledged = half(18);
    let (mut extension, mut at, mut selective) = (datagram[1], 20, Vec::new());
    while extension != 0 {
        let bytes = usize::from(datagram[at + 1]);
        let mask = &datagram[at + 2..at + 2 + bytes];
        if extension == 1 {
            assert!(bytes >= 4 && bytes % 4 == 0, "a mask of {bytes} bytes");
            // "The first bit in the mask represents ack_nr + 2", least significant bits first.
            let bits = (0..bytes * 8).filter(|bit| mask[bit / 8] >> (bit % 8) & 1 == 1);
            selective.extend(bits.map(|bit| acknowledged.wrapping_add(2 + bit as u16)));
        }
        (extension, at) = (datagram[at], at + 2 + bytes);
    }
    Packet {
        kind: datagram[0] >> 4,
        version: datagram[0] & 15,
        connection: half(2),
        timestamp: word(4),
        difference: word(8),
        number: half(16),
        acknowledged,
        selective,
        payload: datagram[at..].to_vec(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is lost, doubled or late: the bytes arrive, in order and once, both ends know that it is over, and each packet is as BEP 29 has it.
    #[test]
    fn all_bytes_arrive_by_utp(
        length in 0..300_000_usize, lost in 0..150_u64, doubled in 0..100_u64, late in 0..200_u64,
        rate in 1_000_000..20_000_000_i64, queue in 3_000..100_000_i64, seed: u64,
    ) {
        let between = Between { lost, doubled, late, ..Between::clean(rate, 5 * MILLISECOND, queue) };
        let mut path = Path::of(UTP, &[], between, data(length), seed);
        path.run();
        prop_assert!(path.received == data(length), "{} of {length} bytes", path.received.len());
        let mut notices = path.notices.clone();
        notices.sort();
        prop_assert_eq!(&notices[..], ["established", "established", "finished", "finished"]);
        as_the_text_has_it(&path);
    }
}

/// Types, connection ids, numbers and timestamps of all that left, and acknowledgments of nothing but what had arrived.
fn as_the_text_has_it(path: &Path) {
    let from_sender: Vec<Packet> =
        path.sent.iter().filter(|(to, _)| *to == 1).map(|(_, frame)| packet(frame)).collect();
    let from_receiver: Vec<Packet> =
        path.sent.iter().filter(|(to, _)| *to == 0).map(|(_, frame)| packet(frame)).collect();
    let syn = &from_sender[0];
    assert_eq!((syn.kind, syn.version, syn.number), (4, 1, 1), "the first is ST_SYN, number 1");
    let (mut highest, mut bytes) = (1_u16, std::collections::BTreeMap::new());
    for it in &from_sender {
        assert_eq!(it.version, 1);
        // The initiator's packets have one more than its SYN.
        assert_eq!(it.connection, syn.connection.wrapping_add(u16::from(it.kind != 4)), "{it:?}");
        match it.kind {
            4 => assert_eq!((it.number, it.payload.len()), (1, 0)),
            0 | 1 => {
                assert_eq!(it.payload.is_empty(), it.kind == 1, "{it:?}");
                assert!(it.number <= highest + 1, "{it:?} behind {highest}");
                highest = highest.max(it.number);
                // What is sent again is the same.
                assert_eq!(bytes.entry(it.number).or_insert_with(|| it.payload.clone()), &it.payload);
            }
            other => panic!("type {other}"),
        }
    }
    assert!(
        bytes.values().flatten().copied().eq(path.received.iter().copied()),
        "numbers are in the order of the stream"
    );
    // No acknowledgment is ahead of what arrived in all, and each difference is that of a packet.
    let arrived: BTreeSet<u16> =
        path.arrived.iter().filter(|(to, _)| *to == 1).map(|(_, frame)| packet(frame).number).collect();
    let number = from_receiver[0].number;
    for it in &from_receiver {
        assert_eq!((it.kind, it.version, it.connection, it.number), (2, 1, syn.connection, number), "{it:?}");
        assert!((1..=it.acknowledged).all(|number| arrived.contains(&number)), "{it:?}");
        assert!(it.selective.iter().all(|number| arrived.contains(number)), "{it:?}");
        // The same clock at both ends: on its way for 5 ms at least.
        assert!((5_000..10_000_000).contains(&it.difference), "{it:?}");
    }
    assert!(from_receiver.windows(2).all(|pair| pair[1].acknowledged >= pair[0].acknowledged));
}

/// A hole is told of by a mask, what is above it is not sent again, and the window is halved once (LEDBAT, RFC 6817, 2.4.2).
#[test]
fn a_hole_is_told_of_selectively() {
    let between = Between { lost: 30, ..Between::clean(10_000_000, 10 * MILLISECOND, 1_000_000) };
    let mut path = Path::of(UTP, &[], between, data(1_000_000), 3);
    path.run();
    assert!(path.received == data(1_000_000));
    let masks = path.sent.iter().filter(|(to, frame)| *to == 0 && !packet(frame).selective.is_empty()).count();
    let data_sent = path.sent.iter().filter(|(to, frame)| *to == 1 && packet(frame).kind == 0).count();
    let needed = 1_000_000_usize.div_ceil(1_200);
    let lost = data_sent - path.arrived.iter().filter(|(to, frame)| *to == 1 && packet(frame).kind == 0).count();
    println!("{masks} masks, {data_sent} packets for {needed}, {lost} lost");
    assert!(masks > 20 && data_sent - needed <= lost + lost / 2, "{data_sent} packets for {needed}, {lost} lost");
}
