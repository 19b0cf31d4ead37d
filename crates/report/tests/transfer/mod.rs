//! A made-up TCP transfer through a middlebox: port 1 is the client's, port 2 the server's. One packet is lost in the
//! box, reported by SACK, and sent again.

use etherparse::{PacketBuilder, TcpOptionElement};
use weftwire_core::{LinkType, Port, Time};
use weftwire_report::Observed;

pub struct Frame {
    pub at: i64,
    pub port: u16,
    pub inbound: bool,
    pub bytes: Vec<u8>,
}

const START: i64 = 1_700_000_000_000_000_000;
/// The client's first number: the transfer wraps.
const CLIENT: u32 = u32::MAX - 20_000;
const SERVER: u32 = 7_000_000;

struct Segment<'a> {
    from_client: bool,
    sequence: u32,
    acknowledgment: Option<u32>,
    syn: bool,
    fin: bool,
    length: usize,
    options: &'a [TcpOptionElement],
}

fn bytes(segment: &Segment<'_>) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to, ports) =
        if segment.from_client { (client, server, (4000, 80)) } else { (server, client, (80, 4000)) };
    let mut builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(from, to, 64)
        .tcp(ports.0, ports.1, segment.sequence, 64_240)
        .options(segment.options)
        .expect("the options fit");
    if let Some(number) = segment.acknowledgment {
        builder = builder.ack(number);
    }
    if segment.syn {
        builder = builder.syn();
    }
    if segment.fin {
        builder = builder.fin();
    }
    let payload = vec![b'x'; segment.length];
    let mut out = Vec::new();
    builder.write(&mut out, &payload).expect("writing to memory works");
    out
}

/// `packets` packets of 1,000 bytes; the tenth is lost in the box, if there are that many.
pub fn transfer(packets: u32) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut through = |at: i64, segment: &Segment<'_>, lost: bool| {
        let (here, there) = if segment.from_client { (1, 2) } else { (2, 1) };
        let bytes = bytes(segment);
        frames.push(Frame { at: START + at, port: here, inbound: true, bytes: bytes.clone() });
        if !lost {
            frames.push(Frame { at: START + at, port: there, inbound: false, bytes });
        }
    };
    let plain = |from_client, sequence, acknowledgment| Segment {
        from_client,
        sequence,
        acknowledgment: Some(acknowledgment),
        syn: false,
        fin: false,
        length: 0,
        options: &[],
    };
    let options = [
        TcpOptionElement::MaximumSegmentSize(1460),
        TcpOptionElement::SelectiveAcknowledgementPermitted,
        TcpOptionElement::WindowScale(7),
    ];
    through(0, &Segment { acknowledgment: None, syn: true, options: &options, ..plain(true, CLIENT, 0) }, false);
    let answer = plain(false, SERVER, CLIENT.wrapping_add(1));
    through(20_000_000, &Segment { syn: true, options: &options, ..answer }, false);
    let first = CLIENT.wrapping_add(1);
    through(40_000_000, &plain(true, first, SERVER + 1), false);
    let number = |packet: u32| first.wrapping_add(packet * 1000);
    let mut acknowledged = 0;
    for packet in 0..packets {
        let at = 41_000_000 + i64::from(packet) * 1_200_000 + i64::from(packet / 10) * 16_000_000;
        let lost = packet == 9;
        through(at, &Segment { length: 1000, ..plain(true, number(packet), SERVER + 1) }, lost);
        match packet {
            0..=8 => acknowledged = packet + 1,
            10..13 => {
                let sack = [TcpOptionElement::SelectiveAcknowledgement((number(10), number(packet + 1)), [None; 3])];
                through(at + 9_000_000, &Segment { options: &sack, ..plain(false, SERVER + 1, number(9)) }, false);
                continue;
            }
            13 => {
                through(at + 10_000_000, &Segment { length: 1000, ..plain(true, number(9), SERVER + 1) }, false);
                acknowledged = 14;
            }
            14.. => acknowledged = packet + 1,
            _ => {}
        }
        through(at + 12_000_000, &plain(false, SERVER + 1, number(acknowledged)), false);
    }
    let end = 60_000_000 + i64::from(packets) * 1_200_000 + i64::from(packets / 10) * 16_000_000;
    through(end, &Segment { fin: true, ..plain(true, number(packets), SERVER + 1) }, false);
    let acknowledgment = number(packets).wrapping_add(1);
    through(end + 20_000_000, &Segment { fin: true, ..plain(false, SERVER + 1, acknowledgment) }, false);
    through(end + 40_000_000, &plain(true, acknowledgment, SERVER + 2), false);
    frames.sort_by_key(|frame| frame.at);
    frames
}

/// The frames as a capture tells of them.
pub fn observed(frames: &[Frame]) -> Vec<Observed<'_>> {
    frames
        .iter()
        .map(|frame| Observed {
            at: Time::from_nanoseconds(frame.at),
            port: Port(frame.port),
            link: LinkType::Ethernet,
            inbound: Some(frame.inbound),
            bytes: &frame.bytes,
        })
        .collect()
}
