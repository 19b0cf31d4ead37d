//! Segments with other numbers, and parts of segments: bytes, flags and checksums.

use proptest::prelude::*;
use weftwire_chain::paths::Block;
use weftwire_chain::rewrite::{map_blocks, narrow, part, renumber};
use weftwire_chain::segment::{Found, Segment, checksum_is_right, find};
use weftwire_core::LinkType;
use weftwire_core::checksum::Sum;
use weftwire_core::port::{Checksum, Offload, Segmentation, SegmentationKind};
use weftwire_core::wire::PROTOCOL_TCP;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::tcp::{Tcp, TcpFlags, TcpOption};

const LINK: LinkType = LinkType::Ethernet;

fn frame(v6: bool, flags: TcpFlags, urgent: u16, blocks: &[Block], payload: &[u8]) -> Vec<u8> {
    let builder = FrameBuilder::ethernet([2; 6], [4; 6]);
    let builder = if v6 { builder.ipv6(&Ipv6Fields::default()) } else { builder.ipv4(&Ipv4Fields::default()) };
    let fields =
        TcpFields { sequence: u32::MAX - 2, acknowledgment: 77, flags, urgent_pointer: urgent, ..TcpFields::default() };
    let bytes: Vec<u8> =
        blocks.iter().flat_map(|(first, end)| [first.to_be_bytes(), end.to_be_bytes()]).flatten().collect();
    let mut options = vec![TcpOption::Timestamps { value: 1, echo: 2 }];
    if !blocks.is_empty() {
        options.push(TcpOption::Other { kind: 5, data: &bytes });
    }
    builder.tcp(&fields, &options).payload(payload).finish().expect("a frame")
}

fn segment(frame: &[u8]) -> Segment {
    match find(LINK, frame) {
        Ok(Found::Segment(segment)) => segment,
        other => panic!("{other:?}"),
    }
}

/// Leaves of the checksum what hardware begins with.
fn begin_checksum(frame: &mut [u8]) {
    let segment = segment(frame);
    let begun = pseudo_header(frame, &segment).folded().to_be_bytes();
    frame[segment.tcp + 16..segment.tcp + 18].copy_from_slice(&begun);
}

/// What hardware does with it.
fn complete_checksum(frame: &mut [u8]) {
    let segment = segment(frame);
    let sum = Sum::new().bytes(&frame[segment.tcp..segment.end]).checksum().to_be_bytes();
    frame[segment.tcp + 16..segment.tcp + 18].copy_from_slice(&sum);
}

fn pseudo_header(frame: &[u8], segment: &Segment) -> Sum {
    let addresses = if segment.tuple.source.is_ipv4() { 12..20 } else { 8..40 };
    let addresses = &frame[segment.ip + addresses.start..segment.ip + addresses.end];
    Sum::new().bytes(addresses).word(PROTOCOL_TCP.into()).word((segment.end - segment.tcp) as u16)
}

fn assert_right(frame: &[u8]) {
    let found = segment(frame);
    assert!(checksum_is_right(frame, &found), "the TCP checksum");
    let v4 = found.tuple.source.is_ipv4();
    assert!(!v4 || Sum::new().bytes(&frame[found.ip..found.tcp]).folded() == 0xffff, "the header's checksum");
    assert_eq!(found.end, frame.len(), "the length");
}

fn blocks_of(frame: &[u8]) -> Vec<Block> {
    let found = segment(frame);
    let tcp = Tcp::parse(&frame[found.tcp..found.end]).expect("TCP");
    let found = tcp.options().find_map(|option| match option {
        TcpOption::Sack(blocks) => Some(blocks.iter().collect()),
        _ => None,
    });
    found.unwrap_or_default()
}

proptest! {
    #[test]
    fn numbers_and_blocks_change_and_checksums_follow(
        v6: bool, begun: bool, sequence: u32, acknowledgment: u32, shift: u32,
        blocks in prop::collection::vec(any::<Block>(), 0..=3), keep: [bool; 3],
        payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut frame = frame(v6, TcpFlags::ACK, 0, &blocks, &payload);
        if begun {
            begin_checksum(&mut frame);
        }
        let found = segment(&frame);
        let checksum = if begun { Checksum::Partial } else { Checksum::Unverified };
        renumber(&mut frame, &found, sequence, acknowledgment, checksum);
        let mut keeps = keep.into_iter();
        let moved = |(first, end): Block| (first.wrapping_add(shift), end.wrapping_add(shift));
        map_blocks(&mut frame, &found, checksum, |block| keeps.next().unwrap_or(false).then(|| moved(block)));
        if begun {
            complete_checksum(&mut frame);
        }
        assert_right(&frame);
        let after = segment(&frame);
        prop_assert_eq!((after.sequence, after.acknowledgment, after.payload), (sequence, acknowledgment, found.payload));
        prop_assert_eq!(after.payload(&frame), &payload[..]);
        let kept: Vec<Block> = blocks.iter().zip(keep).filter(|(_, keep)| *keep).map(|(block, _)| moved(*block)).collect();
        prop_assert_eq!(blocks_of(&frame), kept);
        let tcp = Tcp::parse(&frame[after.tcp..after.end]).expect("TCP");
        let has_stamps = tcp.options().any(|option| matches!(option, TcpOption::Timestamps { value: 1, echo: 2 }));
        prop_assert!(has_stamps);
        let tells_nothing = tcp.options().any(|option| matches!(option, TcpOption::Sack(blocks) if blocks.iter().count() == 0));
        prop_assert!(!tells_nothing);
    }

    /// An acknowledgment that is made higher lets nobody send more.
    #[test]
    fn the_window_s_end_stays(v6: bool, begun: bool, window: u16, raised in 1_u32..100_000, scale in 0_u8..=14) {
        let mut frame = frame(v6, TcpFlags::ACK, 0, &[], b"12");
        let at = segment(&frame).tcp + 14;
        let found = segment(&frame);
        frame[at..at + 2].copy_from_slice(&window.to_be_bytes());
        let checksum = if begun { Checksum::Partial } else { Checksum::Unverified };
        if begun {
            begin_checksum(&mut frame);
        } else {
            frame[found.tcp + 16..found.tcp + 18].fill(0);
            let sum = pseudo_header(&frame, &found).bytes(&frame[found.tcp..found.end]).checksum().to_be_bytes();
            frame[found.tcp + 16..found.tcp + 18].copy_from_slice(&sum);
        }
        narrow(&mut frame, &found, raised, scale, checksum);
        if begun {
            complete_checksum(&mut frame);
        }
        assert_right(&frame);
        let after = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let [before, left] = [window, after].map(|window| u64::from(window) << scale);
        prop_assert!(left + u64::from(raised) <= before || after == 0);
        prop_assert!(left + u64::from(raised) + (1 << scale) > before, "not more than needed");
    }

    #[test]
    fn parts_make_the_whole(
        v6: bool, begun: bool, fin: bool, payload in prop::collection::vec(any::<u8>(), 1..300), at: prop::sample::Index,
        urgent in 0_u16..300, size in 1_u16..200,
    ) {
        let mut flags = TcpFlags::ACK.with(TcpFlags::PSH).with(TcpFlags::CWR);
        flags = if fin { flags.with(TcpFlags::FIN) } else { flags };
        flags = if urgent > 0 { flags.with(TcpFlags::URG) } else { flags };
        let mut frame = frame(v6, flags, urgent, &[], &payload);
        if begun {
            begin_checksum(&mut frame);
        }
        let found = segment(&frame);
        let kind = if v6 { SegmentationKind::TcpIpv6 { ecn: true } } else { SegmentationKind::TcpIpv4 { ecn: true } };
        let checksum = if begun { Checksum::Partial } else { Checksum::Unverified };
        let offload = Offload { segmentation: Some(Segmentation { size, kind }), checksum };
        let cut = at.index(found.length() as usize + 1) as u32;
        let (mut first, how_first) = part(&frame, &found, offload, 0, cut).expect("it has one");
        let (mut second, how_second) = part(&frame, &found, offload, cut, found.length() - cut).expect("it has one");
        for part in [&mut first, &mut second] {
            if begun {
                complete_checksum(part);
            }
            assert_right(part);
        }
        let [one, two] = [segment(&first), segment(&second)];
        prop_assert_eq!([one.payload(&first), two.payload(&second)].concat(), payload);
        prop_assert_eq!([one.length(), two.length()], [cut, found.length() - cut]);
        let has = |flag| [one.flags.contains(flag), two.flags.contains(flag)];
        let last = if cut < found.length() { [false, true] } else { [true, false] };
        prop_assert_eq!(has(TcpFlags::PSH), last);
        prop_assert_eq!(has(TcpFlags::FIN), last.map(|last| last && fin));
        prop_assert_eq!(has(TcpFlags::CWR), [true, cut == 0]);
        prop_assert_eq!(has(TcpFlags::URG), [urgent > 0, u32::from(urgent) > cut]);
        for (part, bytes, skipped) in [(one, &first, 0), (two, &second, cut)] {
            let urgent_pointer = u16::from_be_bytes([bytes[part.tcp + 18], bytes[part.tcp + 19]]);
            prop_assert_eq!(u32::from(urgent_pointer), u32::from(urgent).saturating_sub(skipped));
            let is_other = v6 || bytes[part.ip + 4..part.ip + 6] != frame[part.ip + 4..part.ip + 6];
            prop_assert_eq!(is_other, v6 || skipped > 0);
        }
        let ecn = |how: Offload| match how.segmentation.map(|how| how.kind) {
            Some(SegmentationKind::TcpIpv4 { ecn } | SegmentationKind::TcpIpv6 { ecn }) => Some(ecn),
            _ => None,
        };
        prop_assert!(ecn(how_first).is_none_or(|ecn| ecn) && ecn(how_second).is_none_or(|ecn| ecn == (cut == 0)));
        for (how, part) in [(how_first, one), (how_second, two)] {
            let bytes = part.end - part.payload;
            prop_assert_eq!(how.segmentation.is_some(), bytes > usize::from(size));
            prop_assert_eq!(how.checksum, checksum);
        }
    }
}

#[test]
fn what_has_no_parts_is_not_split() {
    let whole = frame(false, TcpFlags::ACK, 0, &[], b"0123456789");
    let found = segment(&whole);
    assert!(part(&whole, &found, Offload::default(), 8, 3).is_none(), "beyond its end");
    assert!(part(&whole, &found, Offload::default(), u32::MAX, 2).is_none(), "beyond all numbers");
    let opens = frame(false, TcpFlags::SYN, 0, &[], b"0123456789");
    assert!(part(&opens, &segment(&opens), Offload::default(), 1, 3).is_none(), "a SYN");
    let mut wrong = whole;
    *wrong.last_mut().expect("a byte") ^= 1;
    assert!(part(&wrong, &segment(&wrong), Offload::default(), 0, 3).is_none(), "a wrong checksum");
}
