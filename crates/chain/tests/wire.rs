//! Messages and segments: what is written is read, checksums stay right, and hostile bytes do no harm.

mod world;

use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};
use weftwire_chain::keys::{Key, Keys};
use weftwire_chain::lock::{AgentId, Kind, Refusal, Request};
use weftwire_chain::message::{
    BetaMessage, Confirmation, Exit, Header, Hop, LockMessage, Message, MessageError, NewPath, SessionList, read,
};
use weftwire_chain::segment::{Edit, Found, Segment, checksum_is_right, edit, find};
use weftwire_chain::tuple::Tuple;
use weftwire_chain::{HOST, NETWORK};
use weftwire_core::buffer::Buffer;
use weftwire_core::checksum::Sum;
use weftwire_core::port::{Checksum, Offload};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
use weftwire_core::{Frame, Function as _, LinkType, Outbox, Time};
use world::{agent, config, policy};

fn keys() -> Keys {
    Keys::new(vec![Key { number: 3, secret: "tests".into() }])
}

fn ip(v6: bool) -> BoxedStrategy<IpAddr> {
    if v6 { any::<[u8; 16]>().prop_map(IpAddr::from).boxed() } else { any::<[u8; 4]>().prop_map(IpAddr::from).boxed() }
}

fn tuple(v6: bool) -> impl Strategy<Value = Tuple> {
    (ip(v6), ip(v6), any::<[u16; 2]>()).prop_map(|(source, destination, ports)| Tuple {
        source: SocketAddr::new(source, ports[0]),
        destination: SocketAddr::new(destination, ports[1]),
    })
}

fn header() -> impl Strategy<Value = Header> {
    (any::<u16>(), any::<u16>(), any::<u64>(), any::<u64>()).prop_map(|(from, to, session, counter)| Header {
        from,
        to,
        session,
        counter,
    })
}

fn message() -> impl Strategy<Value = Message> {
    any::<bool>().prop_flat_map(|v6| {
        let hop = (any::<u16>(), ip(v6)).prop_map(|(agent, address)| Hop { agent, address });
        let change = prop::option::of((request(), any::<u32>()));
        let change = change.prop_map(|change| change.map(|(request, begins)| NewPath { request, begins }));
        let hops = prop::collection::vec(hop, 0..=16);
        let list = (header(), any::<u32>(), tuple(v6), tuple(v6), any::<bool>(), hops, change);
        let list = list.prop_map(|(header, initial_sequence, session, subsession, nat, rest, change)| {
            let exit = if nat { Exit::Nat } else { Exit::Route };
            Message::List(SessionList { header, initial_sequence, session, subsession, exit, rest, change })
        });
        let confirmation = (header(), prop::collection::vec(any::<u16>(), 0..=17), any::<[u32; 2]>(), tuple(v6));
        let confirmation = confirmation.prop_map(|(header, agents, [initial_sequence, begins], arrives_as)| {
            Message::Confirmation(Confirmation { header, agents, initial_sequence, begins, arrives_as })
        });
        let lock = (header(), prop::sample::select(kinds()), request(), any::<u32>());
        let lock =
            lock.prop_map(|(header, kind, request, delta)| Message::Lock(LockMessage { header, kind, request, delta }));
        let beta = (header(), request(), any::<Option<u32>>(), any::<[bool; 2]>());
        let beta = beta.prop_map(|(header, request, beta, [knows, is_done])| {
            Message::Beta(BetaMessage { header, request, beta, knows, is_done })
        });
        prop_oneof![list, confirmation, lock, beta]
    })
}

fn request() -> impl Strategy<Value = Request> {
    (any::<[u16; 2]>(), any::<u32>()).prop_map(|(agents, epoch)| {
        let [left, right] = agents.map(|number| AgentId(number.into()));
        Request { left, right, epoch }
    })
}

fn kinds() -> Vec<Kind> {
    let refusals = [Refusal::Busy, Refusal::NoRightAnchor, Refusal::Ended, Refusal::Full].map(Kind::Nack);
    let others = [Kind::Request, Kind::Ack, Kind::Held, Kind::Cancel, Kind::Cancelled, Kind::Release, Kind::Released];
    refusals.into_iter().chain(others).collect()
}

fn to(message: &Message) -> u16 {
    match message {
        Message::List(list) => list.header.to,
        Message::Confirmation(confirmation) => confirmation.header.to,
        Message::Lock(lock) => lock.header.to,
        Message::Beta(beta) => beta.header.to,
    }
}

/// A segment with options and payload.
fn packet(from: Tuple, ethernet: bool, flags: TcpFlags, payload: &[u8], full: bool) -> Vec<u8> {
    let builder = if ethernet { FrameBuilder::ethernet([2; 6], [4; 6]) } else { FrameBuilder::raw_ip() };
    let builder = match (from.source.ip(), from.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            builder.ipv4(&Ipv4Fields { source, destination, ..Ipv4Fields::default() })
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            builder.ipv6(&Ipv6Fields { source, destination, ..Ipv6Fields::default() })
        }
        _ => unreachable!("one family"),
    };
    let fields = TcpFields {
        source_port: from.source.port(),
        destination_port: from.destination.port(),
        sequence: 7,
        flags,
        ..TcpFields::default()
    };
    let mut options = vec![TcpOption::MaximumSegmentSize(9_000), TcpOption::SackPermitted, TcpOption::WindowScale(7)];
    if full {
        options.extend([TcpOption::Timestamps { value: 1, echo: 2 }, TcpOption::Other { kind: 34, data: &[0; 16] }]);
    }
    builder.tcp(&fields, &options).payload(payload).finish().unwrap()
}

fn segment(link: LinkType, frame: &[u8]) -> Segment {
    match find(link, frame) {
        Ok(Found::Segment(segment)) => segment,
        other => panic!("{other:?}"),
    }
}

fn link(ethernet: bool) -> LinkType {
    if ethernet { LinkType::Ethernet } else { LinkType::Ip }
}

fn ip_checksum_is_right(frame: &[u8], segment: &Segment) -> bool {
    segment.tuple.source.is_ipv6() || Sum::new().bytes(&frame[segment.ip..segment.tcp]).folded() == 0xffff
}

#[test]
fn lists_are_as_long_as_the_page_says() {
    let session = Tuple {
        source: SocketAddr::new([10, 0, 0, 1].into(), 1),
        destination: SocketAddr::new([10, 0, 0, 2].into(), 2),
    };
    let header = Header { from: 1, to: 2, session: 3, counter: 4 };
    let rest = vec![Hop { agent: 5, address: session.source.ip() }; 4];
    let exit = Exit::Route;
    let list = SessionList { header, initial_sequence: 9, session, subsession: session, exit, rest, change: None };
    let list = Message::List(list);
    assert_eq!((list.write(&Keys::default()).len(), list.write(&keys()).len()), (93, 125));
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were_written(message in message(), behind in prop::collection::vec(any::<u8>(), 0..20), signed: bool) {
        let keys = if signed { keys() } else { Keys::default() };
        let mut bytes = message.write(&keys);
        let length = bytes.len();
        bytes.extend(&behind);
        prop_assert_eq!(read(&bytes, to(&message), &keys), Ok((message.clone(), length)));
        prop_assert_eq!(read(&bytes, to(&message) ^ 1, &keys), Err(MessageError::NotForUs));
        for cut in 0..length {
            prop_assert!(read(&bytes[..cut], to(&message), &keys).is_err());
        }
    }

    #[test]
    fn no_bit_can_be_changed(message in message(), at: prop::sample::Index, bit in 0..8) {
        let mut bytes = message.write(&keys());
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(read(&bytes, to(&message), &keys()).is_err());
    }

    #[test]
    fn hostile_bytes_are_no_message(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0..20usize) {
        let mut message = b"\x57\xc4\xa1\x7e\x01\x01\x00\x00\x00\x40".to_vec();
        message.truncate(start);
        message.extend(&bytes);
        prop_assert!(read(&message, 1, &keys()).is_err());
        // Without keys all depends on the layout.
        let _ = read(&message, 1, &Keys::default());
    }

    #[test]
    fn redirection_keeps_checksums(
        (from, to) in any::<bool>().prop_flat_map(|v6| (tuple(v6), tuple(v6))),
        ethernet: bool,
        payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut frame = packet(from, ethernet, TcpFlags::ACK, &payload, false);
        let before = segment(link(ethernet), &frame);
        before.redirect(&mut frame, to, Checksum::Unverified);
        let after = segment(link(ethernet), &frame);
        prop_assert_eq!(after.tuple, to);
        prop_assert_eq!(Segment { tuple: from, ..after }, before);
        prop_assert!(checksum_is_right(&frame, &after) && ip_checksum_is_right(&frame, &after));
        prop_assert_eq!(frame, packet(to, ethernet, TcpFlags::ACK, &payload, false));
    }

    /// A begun checksum is the sum of the pseudo-header, before and after.
    #[test]
    fn redirection_keeps_begun_checksums((from, to) in any::<bool>().prop_flat_map(|v6| (tuple(v6), tuple(v6))), length in 0..100usize) {
        let begun = |frame: &[u8]| {
            let segment = segment(LinkType::Ip, frame);
            let addresses = if from.source.is_ipv4() { 12..20 } else { 8..40 };
            Sum::new().bytes(&frame[addresses]).word(6).word((segment.end - segment.tcp) as u16).folded()
        };
        let mut frame = packet(from, false, TcpFlags::ACK, &vec![5; length], false);
        let (sum, found) = (begun(&frame), segment(LinkType::Ip, &frame));
        frame[found.tcp + 16..found.tcp + 18].copy_from_slice(&sum.to_be_bytes());
        found.redirect(&mut frame, to, Checksum::Partial);
        let field = u16::from_be_bytes([frame[found.tcp + 16], frame[found.tcp + 17]]);
        // 0 and 0xffff are the same sum.
        prop_assert_eq!(u32::from(field) % 0xffff, u32::from(begun(&frame)) % 0xffff);
    }

    #[test]
    fn edits_do_what_they_say(
        (from, to) in any::<bool>().prop_flat_map(|v6| (tuple(v6), tuple(v6))),
        ethernet: bool,
        full: bool,
        tag: u32,
        payload in prop::collection::vec(any::<u8>(), 0..60),
        insert in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let frame = packet(from, ethernet, TcpFlags::SYN, &payload, full);
        let found = segment(link(ethernet), &frame);
        let mut buffer = Buffer::from(frame.clone());
        let what = Edit { insert: &insert, tag: Some(tag), segment_size: Some(1_400), ..Edit::default() };
        let (offload, fitted) = edit(&mut buffer, &found, to, what).unwrap();
        let edited = segment(link(ethernet), &buffer);
        prop_assert_eq!((offload, fitted), (Offload::default(), !full));
        prop_assert_eq!((edited.tuple, edited.tag(&buffer)), (to, Some(tag).filter(|_| fitted)));
        prop_assert_eq!(edited.payload(&buffer), [&insert[..], &payload[..]].concat());
        prop_assert!(checksum_is_right(&buffer, &edited) && ip_checksum_is_right(&buffer, &edited));
        prop_assert_eq!(weftwire_chain::segment::segment_size(link(ethernet), &buffer), Some(1_400));
        // And back.
        edit(&mut buffer, &edited, from, Edit { remove: insert.len(), untag: true, ..Edit::default() }).unwrap();
        let back = segment(link(ethernet), &buffer);
        prop_assert_eq!((back.tag(&buffer), back.payload(&buffer)), (None, &payload[..]));
        prop_assert!(checksum_is_right(&buffer, &back) && ip_checksum_is_right(&buffer, &back));
        prop_assert_eq!(buffer.len(), frame.len());
    }

    /// Whatever comes by whichever port, agents go on, and hand on at most one frame for it.
    #[test]
    fn hostile_frames_do_no_harm(
        v6: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut: prop::sample::Index,
        flags in prop_oneof![Just(TcpFlags::SYN), Just(TcpFlags::ACK), any::<u8>().prop_map(TcpFlags)],
        from_host: bool,
        partial: bool,
    ) {
        let mut agents = [agent(config(1, 3, v6, vec![policy(&[2])])), agent(config(2, 3, v6, vec![]))];
        let end = |number, port| SocketAddr::new(world::address(v6, number), port);
        let session = Tuple { source: end(1, 4_000), destination: end(3, 80) };
        let mut out = Outbox::new();
        let now = Time::ZERO;
        agents[0].frame(now, HOST, Frame::new(&packet(session, false, TcpFlags::SYN, &[], false)), &mut out);
        let item = weftwire_core::outbox::sent(&out, &out.items()[0]).unwrap();
        let mut frame = if flags == TcpFlags::SYN { item.1.bytes.to_vec() } else { packet(session, false, flags, &[1; 9], false) };
        for (at, value) in &changes {
            let at = at.index(frame.len());
            frame[at] = *value;
        }
        frame.truncate(cut.index(frame.len()) + 1);
        for agent in &mut agents {
            let mut out = Outbox::new();
            let checksum = if partial { Checksum::Partial } else { Checksum::Verified };
            let offload = Offload { checksum, ..Offload::default() };
            agent.frame(now, if from_host { HOST } else { NETWORK }, Frame { bytes: &frame, offload }, &mut out);
            prop_assert!(out.items().len() <= 1);
        }
    }
}
