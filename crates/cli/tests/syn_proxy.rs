//! The SYN proxy, packet by packet: what kernels would only show as a connection that works or does not.

use weftwire_core::function::Ports;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::tcp::{SackBlocks, Tcp, TcpFlags, TcpOption};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Time};
use weftwire_engine::{EngineOptions, make};
use weftwire_lang::{Dialect, compile};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
const CLIENT_ISN: u32 = 0xffff_fff0;
const SERVER_ISN: u32 = 5_000;
const SYN_ACK: TcpFlags = TcpFlags::SYN.with(TcpFlags::ACK);

/// A segment that the proxy sent.
#[derive(Clone, PartialEq, Debug)]
struct Segment {
    port: u16,
    flags: TcpFlags,
    sequence: u32,
    acknowledgment: u32,
    window: u16,
    scale: Option<u8>,
    stamps: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    options: usize,
    payload: usize,
}

struct Proxy {
    function: Box<dyn Function>,
    out: Outbox,
    seen: usize,
}

impl Proxy {
    fn new(seed: u64) -> Proxy {
        let source = include_str!("../../../examples/syn-proxy.xl");
        let image = compile("syn-proxy.xl", Dialect::Xl, &source).image.expect("the example compiles");
        let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
        let options = EngineOptions { seed, hash_key: None };
        let function = make("reference", image.verify().expect("it verifies"), ports, options).expect("it exists");
        Proxy { function, out: Outbox::new(), seen: 0 }
    }

    fn client(&mut self, at_ms: i64, tcp: TcpFields, options: &[TcpOption<'_>], payload: &[u8]) -> Vec<Segment> {
        self.arrive(at_ms, 1, CLIENT, SERVER, tcp, options, payload)
    }

    fn server(&mut self, at_ms: i64, tcp: TcpFields, options: &[TcpOption<'_>], payload: &[u8]) -> Vec<Segment> {
        self.arrive(at_ms, 2, SERVER, CLIENT, tcp, options, payload)
    }

    #[allow(clippy::too_many_arguments, reason = "a packet has many parts")]
    fn arrive(
        &mut self,
        at_ms: i64,
        port: u16,
        from: ([u8; 4], u16),
        to: ([u8; 4], u16),
        tcp: TcpFields,
        options: &[TcpOption<'_>],
        payload: &[u8],
    ) -> Vec<Segment> {
        let ip = Ipv4Fields { source: from.0.into(), destination: to.0.into(), ..Ipv4Fields::default() };
        let tcp = TcpFields { source_port: from.1, destination_port: to.1, ..tcp };
        let frame = FrameBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]).ipv4(&ip).tcp(&tcp, options);
        let frame = frame.payload(payload).finish().expect("a small frame");
        self.function.frame(milliseconds(at_ms), Port(port), Frame::new(&frame), &mut self.out);
        self.sent()
    }

    fn fire(&mut self, at_ms: i64) -> Vec<Segment> {
        self.function.fire(milliseconds(at_ms), &mut self.out);
        self.sent()
    }

    /// What was sent since the last call.
    fn sent(&mut self) -> Vec<Segment> {
        let new = &self.out.items()[self.seen..];
        let segments = new.iter().filter_map(|item| match item {
            Output::Send { port, bytes, .. } => Some(segment(port.0, self.out.bytes(bytes))),
            _ => None,
        });
        let segments = segments.collect();
        self.seen = self.out.items().len();
        segments
    }

    /// A connection up to the established state: the client's view of the server's sequence numbers, and the SYN-ACK.
    fn establish(&mut self, server_options: &[TcpOption<'_>]) -> Segment {
        let answer = self.client(0, syn(), &client_options(), b"").remove(0);
        let acknowledgment =
            self.client(10, ack(answer.sequence.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &stamps(1_010), b"");
        assert_eq!((acknowledgment.len(), acknowledgment[0].port), (1, 2), "the SYN is replayed");
        self.server(20, syn_ack(), server_options, b"");
        answer
    }
}

fn segment(port: u16, frame: &[u8]) -> Segment {
    let ethernet = Ethernet::parse(frame).expect("Ethernet");
    assert_eq!(ethernet.payload_type(), 0x0800);
    let ip = Ipv4::parse(&frame[14..]).expect("IPv4");
    assert!(ip.checksum_is_right());
    let tcp = Tcp::parse(ip.payload()).expect("TCP");
    let mut found = Segment {
        port,
        flags: tcp.flags(),
        sequence: tcp.sequence(),
        acknowledgment: tcp.acknowledgment(),
        window: tcp.window(),
        scale: None,
        stamps: None,
        sack: Vec::new(),
        options: tcp.option_bytes().len(),
        payload: tcp.payload().len(),
    };
    for option in tcp.options() {
        match option {
            TcpOption::WindowScale(shift) => found.scale = Some(shift),
            TcpOption::Timestamps { value, echo } => found.stamps = Some((value, echo)),
            TcpOption::Sack(blocks) => found.sack = blocks.iter().collect(),
            _ => {}
        }
    }
    found
}

fn milliseconds(at: i64) -> Time {
    Time::from_nanoseconds(at * 1_000_000)
}

fn syn() -> TcpFields {
    let flags = TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR);
    TcpFields { sequence: CLIENT_ISN, flags, window: 64_240, ..TcpFields::default() }
}

fn syn_ack() -> TcpFields {
    let acknowledgment = CLIENT_ISN.wrapping_add(1);
    TcpFields { sequence: SERVER_ISN, acknowledgment, flags: SYN_ACK, window: 65_160, ..TcpFields::default() }
}

fn ack(acknowledgment: u32, sequence: u32) -> TcpFields {
    TcpFields { sequence, acknowledgment, flags: TcpFlags::ACK, window: 502, ..TcpFields::default() }
}

fn client_options() -> Vec<TcpOption<'static>> {
    vec![
        TcpOption::MaximumSegmentSize(1460),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 1_000, echo: 0 },
        TcpOption::WindowScale(9),
        TcpOption::Other { kind: 34, data: &[1, 2] },
    ]
}

fn server_options() -> Vec<TcpOption<'static>> {
    vec![
        TcpOption::MaximumSegmentSize(1400),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 900_000, echo: 1_000 },
        TcpOption::WindowScale(10),
    ]
}

fn stamps(value: u32) -> Vec<TcpOption<'static>> {
    vec![TcpOption::Timestamps { value, echo: 0 }]
}

#[test]
fn the_answer_promises_what_the_client_offered_and_opens_no_window() {
    let answer = Proxy::new(1).client(0, syn(), &client_options(), b"").remove(0);
    assert_eq!((answer.port, answer.flags, answer.window), (1, SYN_ACK, 0));
    assert_eq!(answer.acknowledgment, CLIENT_ISN.wrapping_add(1));
    assert_eq!((answer.scale, answer.stamps.map(|(_, echo)| echo)), (Some(7), Some(1_000)));
    let bare = Proxy::new(1).client(0, syn(), &[], b"").remove(0);
    assert_eq!((bare.scale, bare.stamps, bare.options), (None, None, 0));
}

#[test]
fn the_initial_sequence_number_hangs_on_the_secret_and_the_clock() {
    let first = |seed, at| Proxy::new(seed).client(at, syn(), &[], b"")[0].sequence;
    assert_ne!(first(1, 0), first(2, 0), "another secret, another number");
    assert_eq!(first(1, 1).wrapping_sub(first(1, 0)), 250, "a clock of 4 microseconds (RFC 6528)");
}

#[test]
fn only_the_right_acknowledgment_brings_the_syn_to_the_server() {
    let mut proxy = Proxy::new(1);
    let answer = proxy.client(0, syn(), &client_options(), b"").remove(0);
    let isn = answer.sequence;
    assert_eq!(proxy.client(1, syn(), &client_options(), b""), [answer], "a repeated SYN gets the same answer");
    let next = CLIENT_ISN.wrapping_add(1);
    for wrong in [isn, isn.wrapping_add(2), 0] {
        assert_eq!(proxy.client(2, ack(wrong, next), &[], b""), []);
    }
    assert_eq!(proxy.client(2, ack(isn.wrapping_add(1), next.wrapping_add(5)), &[], b""), []);
    let replayed = proxy.client(3, ack(isn.wrapping_add(1), next), &stamps(1_003), b"").remove(0);
    assert_eq!((replayed.port, replayed.flags, replayed.sequence), (2, TcpFlags::SYN, CLIENT_ISN), "without ECN");
    assert_eq!((replayed.window, replayed.scale, replayed.stamps), (64_240, Some(9), Some((1_000, 0))));
    assert_eq!(replayed.options, 24, "all of the client's options, also those that the proxy does not know");
}

#[test]
fn both_ends_get_a_connection_that_fits_the_other() {
    let mut proxy = Proxy::new(1);
    let answer = proxy.client(0, syn(), &client_options(), b"").remove(0);
    let next = CLIENT_ISN.wrapping_add(1);
    proxy.client(10, ack(answer.sequence.wrapping_add(1), next), &stamps(1_010), b"");
    let sent = proxy.server(20, syn_ack(), &server_options(), b"");
    let [to_server, to_client] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((to_server.port, to_server.flags, to_server.sequence), (2, TcpFlags::ACK, next));
    assert_eq!((to_server.acknowledgment, to_server.window), (SERVER_ISN + 1, 502));
    assert_eq!((to_server.stamps, to_server.options), (Some((1_010, 900_000)), 12), "no options of a SYN on an ACK");
    assert_eq!((to_client.port, to_client.flags), (1, TcpFlags::ACK));
    assert_eq!(to_client.sequence, answer.sequence.wrapping_add(1));
    assert_eq!(to_client.window, 65_160 >> 7, "a window in a SYN is not scaled");
    let clock = answer.stamps.expect("time stamps were offered").0;
    assert_eq!(to_client.stamps.map(|(value, _)| value), Some(clock + 20), "the clock goes on");
}

#[test]
fn sequence_numbers_sack_blocks_stamps_and_windows_are_translated() {
    let mut proxy = Proxy::new(1);
    let answer = proxy.establish(&server_options());
    let (isn, clock) = (answer.sequence, answer.stamps.expect("time stamps were offered").0);
    let theirs = |relative: u32| SERVER_ISN.wrapping_add(relative);
    let seen = |relative: u32| isn.wrapping_add(relative);

    let data = TcpFields { window: 100, ..ack(CLIENT_ISN.wrapping_add(1), theirs(1)) };
    let stamped = [TcpOption::Timestamps { value: 900_005, echo: 1_010 }];
    let passed = proxy.server(25, data, &stamped, b"data").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.payload), (1, seen(1), 4));
    assert_eq!(passed.window, 800, "100 << 10 >> 7");
    assert_eq!(passed.stamps, Some((clock + 25, 1_010)));

    let blocks: Vec<u8> = [(11, 21), (31, 41), (51, 61)]
        .iter()
        .flat_map(|(l, r)| [seen(*l), seen(*r)])
        .flat_map(u32::to_be_bytes)
        .collect();
    let options = [
        TcpOption::Timestamps { value: 1_030, echo: clock + 25 },
        TcpOption::Sack(SackBlocks::new(&blocks).expect("three blocks")),
    ];
    let passed = proxy.client(30, ack(seen(5), CLIENT_ISN.wrapping_add(1)), &options, b"").remove(0);
    assert_eq!((passed.port, passed.acknowledgment), (2, theirs(5)));
    assert_eq!(passed.sack, [(theirs(11), theirs(21)), (theirs(31), theirs(41)), (theirs(51), theirs(61))]);
    assert_eq!(passed.stamps, Some((1_030, 900_005)));
    assert_eq!((passed.sequence, passed.window), (CLIENT_ISN.wrapping_add(1), 502), "the client's own are not touched");
}

#[test]
fn a_server_that_does_not_scale_windows_sees_whole_ones() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&[]).sequence;
    let passed = proxy.client(30, ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &[], b"").remove(0);
    assert_eq!(passed.window, 65_535, "502 << 9 is more than a window without scale can say");
    let data = TcpFields { window: 64_000, ..ack(CLIENT_ISN.wrapping_add(1), SERVER_ISN + 1) };
    assert_eq!(proxy.server(31, data, &[], b"").remove(0).window, 64_000 >> 7);
}

#[test]
fn half_open_flows_expire_and_unknown_connections_are_reset() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &client_options(), b"")[0].sequence;
    assert_eq!(proxy.fire(4_999), []);
    assert_eq!(proxy.function.flows().len(), 1);
    assert_eq!(proxy.fire(5_000), []);
    assert_eq!(proxy.function.flows(), []);
    let late = proxy.client(5_001, ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &[], b"").remove(0);
    assert_eq!((late.port, late.flags, late.sequence), (1, TcpFlags::RST, isn.wrapping_add(1)));
    assert_eq!(proxy.function.flows(), []);
}

#[test]
fn a_server_that_does_not_answer_is_asked_again_and_then_given_up() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &[], b"")[0].sequence;
    proxy.client(0, ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &[], b"");
    let mut repeated = 0;
    let last = loop {
        let due = proxy.function.next_deadline().expect("a timer runs").at.nanoseconds() / 1_000_000;
        let sent = proxy.fire(due).remove(0);
        if sent.port == 1 {
            break sent;
        }
        assert_eq!((sent.flags, sent.sequence), (TcpFlags::SYN, CLIENT_ISN));
        repeated += 1;
    };
    assert_eq!((repeated, last.flags), (4, TcpFlags::RST.with(TcpFlags::ACK)));
    assert_eq!(last.sequence, isn.wrapping_add(1));
    assert_eq!(proxy.function.flows(), []);
}

#[test]
fn resets_and_both_fins_end_the_flow() {
    for fins in [true, false] {
        let mut proxy = Proxy::new(1);
        let isn = proxy.establish(&server_options()).sequence;
        let end = if fins { TcpFlags::FIN.with(TcpFlags::ACK) } else { TcpFlags::RST };
        let from_client = TcpFields { flags: end, ..ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)) };
        let from_server = TcpFields { flags: end, ..ack(CLIENT_ISN.wrapping_add(2), SERVER_ISN + 1) };
        assert_eq!(proxy.client(30, from_client, &[], b"")[0].flags, end);
        if fins {
            assert_eq!(proxy.server(31, from_server, &[], b"")[0].sequence, isn.wrapping_add(1));
        }
        proxy.fire(if fins { 30_030 } else { 1_029 });
        assert_eq!(proxy.function.flows().len(), 1);
        proxy.fire(if fins { 30_031 } else { 1_030 });
        assert_eq!(proxy.function.flows(), []);
    }
}
