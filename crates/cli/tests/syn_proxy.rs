//! The SYN proxy, packet by packet: what kernels would only show as a connection that works or does not.

use weftwire_core::function::Ports;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::tcp::{SackBlocks, Tcp, TcpFlags, TcpOption};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Time};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::{Image, WhenFull};
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
        Proxy::changed(seed, |_| {})
    }

    /// With a changed image.
    fn changed(seed: u64, change: impl FnOnce(&mut Image)) -> Proxy {
        let source = include_str!("../../../examples/syn-proxy.xl");
        let mut image = compile("syn-proxy.xl", Dialect::Xl, &source).image.expect("the example compiles");
        change(&mut image);
        image.seal();
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

    /// The flows' states.
    fn states(&self) -> Vec<String> {
        self.function.flows().into_iter().map(|flow| flow.state).collect()
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
    assert_eq!(proxy.states(), ["refused"]);
    proxy.fire(6_001);
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

const RST: TcpFlags = TcpFlags::RST;
/// What the client has to send next, and the server, behind the handshake.
const CLIENT_NEXT: u32 = CLIENT_ISN.wrapping_add(1);
const SERVER_NEXT: u32 = SERVER_ISN + 1;
/// Room for the client's bytes: the server's window, which its SYN-ACK does not scale.
const SERVER_ROOM: u32 = 65_160;
/// Room for the server's bytes: the client's window, scaled.
const CLIENT_ROOM: u32 = 502 << 9;

fn with_flags(flags: TcpFlags, acknowledgment: u32, sequence: u32) -> TcpFields {
    TcpFields { flags, ..ack(acknowledgment, sequence) }
}

/// RFC 5961, section 3.2, from both sides: what is exact resets, what is in the window is asked about, all else is nothing.
#[test]
fn an_rst_must_be_exact() {
    let stamped = [TcpOption::Timestamps { value: 7, echo: 7 }];
    for (off, expected) in [
        (0, "closing"),
        (1, "challenge"),
        (SERVER_ROOM - 1, "challenge"),
        (SERVER_ROOM, "nothing"),
        (u32::MAX, "nothing"),
        (1 << 31, "nothing"),
    ] {
        let mut proxy = Proxy::new(1);
        let answer = proxy.establish(&server_options());
        let (isn, clock) = (answer.sequence, answer.stamps.expect("time stamps were offered").0);
        let rst = with_flags(RST, 0, CLIENT_NEXT.wrapping_add(off));
        let sent = proxy.client(600, rst, &stamped, b"");
        match expected {
            "closing" => assert_eq!((sent[0].port, sent[0].flags, sent[0].sequence), (2, RST, CLIENT_NEXT)),
            "challenge" => {
                let [sent] = &sent[..] else { panic!("{off}: {sent:?}") };
                assert_eq!((sent.port, sent.flags, sent.payload), (1, TcpFlags::ACK, 0));
                // In the client's numbers, with the window and the time stamps it knows.
                assert_eq!((sent.sequence, sent.acknowledgment), (isn.wrapping_add(1), CLIENT_NEXT));
                assert_eq!((sent.window, sent.stamps), (65_160 >> 7, Some((clock + 20, 1_010))));
            }
            _ => assert_eq!(sent, []),
        }
        assert_eq!(proxy.states(), [if expected == "closing" { "closing" } else { "established" }], "{off}");
    }
    for (off, expected) in [
        (0, "closing"),
        (1, "challenge"),
        (CLIENT_ROOM - 1, "challenge"),
        (CLIENT_ROOM, "nothing"),
        (u32::MAX, "nothing"),
    ] {
        let mut proxy = Proxy::new(1);
        let isn = proxy.establish(&server_options()).sequence;
        let sent = proxy.server(600, with_flags(RST, 0, SERVER_NEXT.wrapping_add(off)), &stamped, b"");
        match expected {
            "closing" => assert_eq!((sent[0].port, sent[0].flags, sent[0].sequence), (1, RST, isn.wrapping_add(1))),
            "challenge" => {
                let [sent] = &sent[..] else { panic!("{off}: {sent:?}") };
                assert_eq!((sent.port, sent.flags), (2, TcpFlags::ACK));
                assert_eq!((sent.sequence, sent.acknowledgment), (CLIENT_NEXT, SERVER_NEXT));
                assert_eq!((sent.window, sent.stamps), (502, Some((1_010, 900_000))));
            }
            _ => assert_eq!(sent, []),
        }
        assert_eq!(proxy.states(), [if expected == "closing" { "closing" } else { "established" }], "{off}");
    }
}

/// A challenge reaches one that has really gone, and its answer is exact.
#[test]
fn whoever_is_really_gone_answers_a_challenge_exactly() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    let data = ack(isn.wrapping_add(1), CLIENT_NEXT);
    assert_eq!(proxy.client(600, data, &[], &[0; 100])[0].payload, 100);
    // Behind what was acknowledged and before what was sent: somebody whose last bytes were lost.
    let challenge = proxy.client(601, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(50)), &[], b"").remove(0);
    assert_eq!((challenge.port, challenge.acknowledgment), (1, CLIENT_NEXT), "never more than the server acknowledged");
    let exact = proxy.client(602, with_flags(RST, 0, challenge.acknowledgment), &[], b"").remove(0);
    assert_eq!((exact.port, exact.flags, proxy.states()), (2, RST, vec!["closing".to_owned()]));

    // All that was sent is exact too: its acknowledgment may be on its way.
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    proxy.client(600, ack(isn.wrapping_add(1), CLIENT_NEXT), &[], &[0; 100]);
    let exact = proxy.client(601, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(100)), &[], b"").remove(0);
    assert_eq!((exact.port, exact.flags, proxy.states()), (2, RST, vec!["closing".to_owned()]));
}

/// RFC 5961, section 4.2.
#[test]
fn a_syn_of_an_established_connection_is_challenged() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    for (at, sequence) in [(600, 77), (1_200, CLIENT_NEXT), (1_800, CLIENT_ISN)] {
        let sent = proxy.client(at, TcpFields { sequence, ..syn() }, &client_options(), b"");
        let [sent] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((sent.port, sent.flags, sent.options), (1, TcpFlags::ACK, 12), "only the time stamps stay");
        assert_eq!((sent.sequence, sent.acknowledgment), (isn.wrapping_add(1), CLIENT_NEXT));
    }
    // Our ACK was lost and the server repeats its SYN-ACK: the challenge is what it waits for.
    let sent = proxy.server(2_400, syn_ack(), &server_options(), b"").remove(0);
    assert_eq!((sent.port, sent.flags), (2, TcpFlags::ACK));
    assert_eq!((sent.sequence, sent.acknowledgment, sent.stamps), (CLIENT_NEXT, SERVER_NEXT, Some((1_010, 900_000))));
    assert_eq!(proxy.states(), ["established"]);
}

#[test]
fn challenges_are_rare() {
    let mut proxy = Proxy::new(1);
    proxy.establish(&server_options());
    let rst = || with_flags(RST, 0, CLIENT_NEXT.wrapping_add(9));
    let challenges: usize = (600..1_600).map(|at| proxy.client(at, rst(), &[], b"").len()).sum();
    assert_eq!(challenges, 2, "in a second");
}

/// What somebody guesses does not move the numbers that an RST is measured by.
#[test]
fn guessed_segments_teach_the_proxy_nothing() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    let guesses = [
        // In the window, but with a gap in front; in order, but of an acknowledgment that can't be; far away.
        (ack(isn.wrapping_add(1), CLIENT_NEXT.wrapping_add(1_000)), CLIENT_NEXT.wrapping_add(1_100)),
        (ack(isn.wrapping_add(1 << 30), CLIENT_NEXT), CLIENT_NEXT.wrapping_add(100)),
        (ack(isn.wrapping_sub(9), CLIENT_NEXT), CLIENT_NEXT.wrapping_add(100)),
        (ack(isn.wrapping_add(1), 1 << 30), (1 << 30) + 100),
    ];
    for (at, (guess, end)) in (600..).step_by(600).zip(guesses) {
        assert_eq!(proxy.client(at, guess, &[], &[0; 100]).len(), 1, "the server will judge it");
        let sent = proxy.client(at + 1, with_flags(RST, 0, end), &[], b"");
        assert!(sent.iter().all(|sent| sent.port == 1 && sent.flags == TcpFlags::ACK), "{sent:?}");
    }
    assert_eq!(proxy.states(), ["established"]);
    // The real client's numbers count still.
    assert_eq!(proxy.client(9_000, with_flags(RST, 0, CLIENT_NEXT), &[], b"")[0].flags, RST);
}

/// A hole in what passes is closed by the other side's acknowledgment.
#[test]
fn an_acknowledgment_brings_the_proxy_up_to_date() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    // The first 100 bytes were lost in front of the proxy, and come last.
    proxy.client(600, ack(isn.wrapping_add(1), CLIENT_NEXT.wrapping_add(100)), &[], &[0; 100]);
    proxy.client(601, ack(isn.wrapping_add(1), CLIENT_NEXT), &[], &[0; 100]);
    proxy.server(602, ack(CLIENT_NEXT.wrapping_add(200), SERVER_NEXT), &[], b"");
    let rst = proxy.client(603, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(200)), &[], b"").remove(0);
    assert_eq!((rst.port, rst.flags), (2, RST));
}

#[test]
fn a_fin_counts_only_within_the_window() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    for (off, believed) in [(0, true), (500, true), (SERVER_ROOM, false), (u32::MAX - 9, false)] {
        let mut proxy = Proxy::new(1);
        let isn = proxy.establish(&server_options()).sequence;
        let passed = proxy.client(30, with_flags(fin, isn.wrapping_add(1), CLIENT_NEXT.wrapping_add(off)), &[], b"");
        assert_eq!((passed[0].port, passed[0].flags), (2, fin), "the server judges it itself");
        let passed = proxy.server(31, with_flags(fin, CLIENT_NEXT, SERVER_NEXT), &[], b"");
        assert_eq!((passed[0].port, passed[0].sequence), (1, isn.wrapping_add(1)));
        assert_eq!(proxy.states(), [if believed { "closing" } else { "established" }], "{off}");
    }
}

#[test]
fn half_open_connections_are_no_easier_to_kill() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &client_options(), b"")[0].sequence;
    for wrong in [0, 2, u32::MAX] {
        assert_eq!(proxy.client(600, with_flags(RST, 0, CLIENT_ISN.wrapping_add(wrong)), &[], b""), []);
    }
    let challenge = proxy.client(601, TcpFields { sequence: 99, ..syn() }, &client_options(), b"").remove(0);
    assert_eq!((challenge.port, challenge.flags, challenge.window), (1, TcpFlags::ACK, 0));
    assert_eq!((challenge.sequence, challenge.acknowledgment), (isn.wrapping_add(1), CLIENT_NEXT));
    assert_eq!(proxy.client(602, TcpFields { sequence: 98, ..syn() }, &[], b""), [], "not so soon again");
    // The server may have an older connection of these ports. It is refused; the SYN is not.
    let refusal = proxy.server(1_200, ack(77, 4_242), &[], b"old").remove(0);
    assert_eq!((refusal.port, refusal.flags, refusal.sequence, refusal.payload), (2, RST, 77, 0));
    assert_eq!(proxy.states(), ["syn_received"]);
    // A client that has started again answers the challenge, and its next SYN is new.
    assert_eq!(proxy.client(1_201, with_flags(RST, 0, challenge.acknowledgment), &[], b""), []);
    assert_eq!(proxy.function.flows(), []);
    let again = proxy.client(1_202, TcpFields { sequence: 99, ..syn() }, &[], b"").remove(0);
    assert_eq!((again.flags, again.acknowledgment), (SYN_ACK, 100));
}

#[test]
fn an_old_connection_of_the_server_does_not_block_a_new_one() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &[], b"")[0].sequence;
    proxy.client(0, ack(isn.wrapping_add(1), CLIENT_NEXT), &[], b"");
    assert_eq!(proxy.states(), ["connecting"]);
    // The server answers the SYN with a challenge, as it has an established connection of these ports.
    let refusal = proxy.server(600, ack(77, 4_242), &[], b"").remove(0);
    assert_eq!((refusal.port, refusal.flags, refusal.sequence), (2, RST, 77));
    for wrong in [CLIENT_ISN, CLIENT_NEXT.wrapping_add(1)] {
        assert_eq!(proxy.server(601, with_flags(RST.with(TcpFlags::ACK), wrong, 0), &[], b""), []);
        assert_eq!(proxy.client(602, with_flags(RST, 0, wrong), &[], b""), []);
    }
    assert_eq!(proxy.fire(1_000)[0].flags, TcpFlags::SYN, "the SYN goes again");
    assert_eq!(proxy.client(1_100, TcpFields { sequence: 5, ..syn() }, &[], b"")[0].flags, TcpFlags::ACK);
    assert_eq!(proxy.server(1_101, syn_ack(), &[], b"").len(), 2);
    assert_eq!(proxy.states(), ["established"]);
}

/// RFC 9293, section 3.10.7.4, TIME-WAIT.
#[test]
fn a_closed_connection_s_ports_are_used_again_by_a_later_syn_only() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    proxy.client(600, with_flags(fin, isn.wrapping_add(1), CLIENT_NEXT), &[], b"");
    proxy.server(601, with_flags(fin, CLIENT_NEXT.wrapping_add(1), SERVER_NEXT), &[], b"");
    let last = proxy.client(602, ack(isn.wrapping_add(2), CLIENT_NEXT.wrapping_add(1)), &[], b"").remove(0);
    assert_eq!((last.port, last.acknowledgment), (2, SERVER_NEXT + 1));
    let old = proxy.client(1_200, TcpFields { sequence: CLIENT_ISN, ..syn() }, &[], b"").remove(0);
    assert_eq!((old.port, old.flags, old.acknowledgment), (1, TcpFlags::ACK, CLIENT_NEXT.wrapping_add(1)));
    let rst = proxy.client(1_201, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(500)), &[], b"");
    assert_eq!(rst, [], "challenged just now");
    let new = proxy.client(1_202, TcpFields { sequence: CLIENT_NEXT.wrapping_add(2), ..syn() }, &[], b"").remove(0);
    assert_eq!((new.flags, new.acknowledgment), (SYN_ACK, CLIENT_NEXT.wrapping_add(3)));
    assert_eq!(proxy.states(), ["syn_received"]);
}

/// RFC 9293, section 3.10.7.1: after a restart, or when the flow has gone.
#[test]
fn each_side_is_told_of_connections_that_are_not_there_by_its_own_segments() {
    let mut proxy = Proxy::new(1);
    let refusal = proxy.server(0, ack(77, 4_242), &stamps(5), b"data").remove(0);
    assert_eq!((refusal.port, refusal.flags, refusal.sequence, refusal.acknowledgment), (2, RST, 77, 0));
    assert_eq!((refusal.options, refusal.payload, refusal.window), (0, 0, 0));
    // A window of segments gets one RST a second, and the other side, if it speaks in that time, none.
    assert_eq!(proxy.server(1, ack(77, 4_246), &[], b"data"), []);
    assert_eq!(proxy.client(2, ack(4_250, 77), &[], b""), []);
    proxy.fire(1_000);
    assert_eq!(proxy.function.flows(), []);
    assert_eq!(proxy.server(1_001, ack(77, 4_246), &[], b"data").len(), 1);
    // A new connection need not wait.
    assert_eq!(proxy.client(1_002, syn(), &[], b"")[0].flags, SYN_ACK);

    let no_ack = TcpFields { flags: TcpFlags::FIN, sequence: 10, ..TcpFields::default() };
    let refusal = Proxy::new(1).client(0, no_ack, &[], b"data").remove(0);
    assert_eq!((refusal.port, refusal.flags), (1, RST.with(TcpFlags::ACK)));
    assert_eq!((refusal.sequence, refusal.acknowledgment), (0, 15));

    for flags in [RST, RST.with(TcpFlags::ACK), RST.with(TcpFlags::SYN)] {
        let mut proxy = Proxy::new(1);
        assert_eq!(proxy.server(0, with_flags(flags, 77, 1), &[], b""), [], "never for an RST");
        assert_eq!(proxy.client(0, with_flags(flags, 77, 1), &[], b""), []);
        assert_eq!(proxy.function.flows(), []);
    }
}

#[test]
fn the_answer_can_be_turned_off() {
    let mut proxy = Proxy::changed(1, |image| {
        let register = image.registers.iter_mut().find(|register| register.name == "answer_unknown");
        register.expect("the parameter").initial = 0;
    });
    assert_eq!(proxy.server(0, ack(77, 4_242), &[], b"data"), []);
    assert_eq!(proxy.client(0, ack(77, 4_242), &[], b"data"), []);
    assert_eq!(proxy.function.flows(), []);
    assert_eq!(proxy.client(0, syn(), &[], b"").len(), 1);
}

/// The server's SYN and the client's SYN-ACK, which pass as they are.
fn server_opens(proxy: &mut Proxy) {
    let request = TcpFields { sequence: SERVER_ISN, flags: TcpFlags::SYN, window: 65_160, ..TcpFields::default() };
    let passed = proxy.server(0, request, &server_options(), b"").remove(0);
    assert_eq!((passed.port, passed.flags, passed.sequence, passed.scale), (1, TcpFlags::SYN, SERVER_ISN, Some(10)));
    let answer = TcpFields { flags: SYN_ACK, window: 64_240, ..ack(SERVER_NEXT, CLIENT_ISN) };
    let passed = proxy.client(1, answer, &client_options(), b"").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.acknowledgment), (2, CLIENT_ISN, SERVER_NEXT));
    assert_eq!((passed.window, passed.scale, passed.stamps), (64_240, Some(9), Some((1_000, 0))));
    let passed =
        proxy.server(2, TcpFields { window: 100, ..ack(CLIENT_NEXT, SERVER_NEXT) }, &stamps(900_001), b"").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.acknowledgment), (1, SERVER_NEXT, CLIENT_NEXT));
    assert_eq!((passed.window, passed.stamps), (100, Some((900_001, 0))));
}

#[test]
fn connections_that_the_server_opens_pass_as_they_are_and_end() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    let mut proxy = Proxy::new(1);
    server_opens(&mut proxy);
    let passed = proxy.client(3, ack(SERVER_NEXT, CLIENT_NEXT), &stamps(1_003), b"data").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.window, passed.stamps), (2, CLIENT_NEXT, 502, Some((1_003, 0))));
    // Its numbers are guarded like those of other connections, with both scales.
    let room = 100 << 10;
    let guess = proxy.client(600, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(room - 1)), &[], b"").remove(0);
    assert_eq!((guess.port, guess.flags, guess.sequence, guess.window), (1, TcpFlags::ACK, SERVER_NEXT, 100));
    assert_eq!(proxy.client(601, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(room)), &[], b""), []);
    let guess = proxy.server(1_200, with_flags(RST, 0, SERVER_NEXT + (502 << 9) - 1), &[], b"").remove(0);
    assert_eq!((guess.port, guess.flags, guess.sequence, guess.window), (2, TcpFlags::ACK, CLIENT_NEXT + 4, 502));
    proxy.server(1_201, with_flags(fin, CLIENT_NEXT.wrapping_add(4), SERVER_NEXT), &[], b"");
    assert_eq!(proxy.states(), ["established"]);
    proxy.client(1_202, with_flags(fin, SERVER_NEXT + 1, CLIENT_NEXT.wrapping_add(4)), &[], b"");
    assert_eq!(proxy.states(), ["closing"]);
    proxy.fire(31_202);
    assert_eq!(proxy.function.flows(), []);

    let mut proxy = Proxy::new(1);
    server_opens(&mut proxy);
    assert_eq!(proxy.client(3, with_flags(RST, 0, CLIENT_NEXT), &[], b"")[0].port, 2);
    proxy.fire(1_003);
    assert_eq!(proxy.function.flows(), []);
}

/// Today's scan by the server is not tomorrow's full table.
#[test]
fn what_nobody_answers_is_forgotten() {
    let request = || TcpFields { sequence: SERVER_ISN, flags: TcpFlags::SYN, ..TcpFields::default() };
    let mut proxy = Proxy::new(1);
    proxy.server(0, request(), &[], b"");
    assert_eq!(proxy.states(), ["opening"]);
    proxy.fire(30_000);
    assert_eq!(proxy.function.flows(), []);
    proxy.server(40_000, request(), &[], b"");
    let refused = RST.with(TcpFlags::ACK);
    for (acknowledgment, passes) in [(SERVER_NEXT + 1, 0), (SERVER_NEXT, 1)] {
        assert_eq!(proxy.client(40_001, with_flags(refused, acknowledgment, 0), &[], b"").len(), passes);
    }
    assert_eq!(proxy.function.flows(), []);
}

/// A table of this size, with room for this many half-open flows.
fn small_table(flows: u32, half_open: u32) -> Proxy {
    Proxy::changed(1, |image| {
        image.flow.max = flows;
        let WhenFull::EvictInTurn(groups) = &mut image.flow.when_full else { panic!("the example evicts in turn") };
        groups[1].above = half_open;
    })
}

fn from_port(proxy: &mut Proxy, at_ms: i64, port: u16, tcp: TcpFields) -> Vec<Segment> {
    proxy.arrive(at_ms, 1, (CLIENT.0, port), SERVER, tcp, &[], b"")
}

fn to_port(proxy: &mut Proxy, at_ms: i64, port: u16, tcp: TcpFields) -> Vec<Segment> {
    proxy.arrive(at_ms, 2, SERVER, (CLIENT.0, port), tcp, &[], b"")
}

/// The client's view of the server's next number.
fn establish_from(proxy: &mut Proxy, at_ms: i64, port: u16) -> u32 {
    let next = from_port(proxy, at_ms, port, syn())[0].sequence.wrapping_add(1);
    from_port(proxy, at_ms, port, ack(next, CLIENT_NEXT));
    assert_eq!(to_port(proxy, at_ms, port, syn_ack()).len(), 2);
    next
}

/// Idle connections make room for new clients, those idle longest first; those in use never do.
#[test]
fn a_table_full_of_idle_connections_takes_new_clients() {
    let mut proxy = small_table(4, 1);
    let next: Vec<u32> = (0..4).map(|number| establish_from(&mut proxy, i64::from(number), 5_000 + number)).collect();
    // Nobody is idle for a minute: the new client has to come again.
    assert_eq!(from_port(&mut proxy, 59_000, 6_000, syn()), []);
    assert_eq!(proxy.function.counters().drops.get("table_full"), Some(&1));
    from_port(&mut proxy, 59_500, 5_000, ack(next[0], CLIENT_NEXT));
    to_port(&mut proxy, 59_500, 5_001, ack(CLIENT_NEXT, SERVER_NEXT));
    let answer = from_port(&mut proxy, 60_002, 6_000, syn());
    assert_eq!(answer[0].flags, SYN_ACK, "connection 5002 has been idle for a minute");
    assert_eq!(proxy.function.counters().flows_evicted, 1);
    // The next client takes the half-open one's place, for one is its share; a connection idle for a minute goes otherwise.
    establish_from(&mut proxy, 60_010, 6_000);
    establish_from(&mut proxy, 60_020, 6_001);
    assert_eq!(from_port(&mut proxy, 60_030, 6_002, syn()), [], "5000, 5001, 6000 and 6001 are in use");
    // The evicted one is told when it speaks, once there is room for it to be answered.
    proxy.fire(119_501);
    let told = from_port(&mut proxy, 119_501, 5_002, ack(next[2], CLIENT_NEXT)).remove(0);
    assert_eq!((told.port, told.flags, told.sequence), (1, RST, next[2]));
}

/// A flood gets the places that nobody else needs and its share; it does not end a connection in use.
#[test]
fn a_flood_through_a_full_table_pushes_itself_out() {
    let mut proxy = small_table(8, 2);
    for number in 0..4 {
        establish_from(&mut proxy, 0, 5_000 + number);
    }
    let mut port = 10_000;
    let mut flood = |proxy: &mut Proxy, at_ms: i64| {
        for _ in 0..100 {
            port += 1;
            assert_eq!(from_port(proxy, at_ms, port, syn())[0].flags, SYN_ACK);
        }
    };
    let count = |proxy: &Proxy, state: &str| proxy.states().iter().filter(|known| *known == state).count();
    flood(&mut proxy, 1_000);
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (4, 4));
    // More connections: the flood keeps no more than its share, and a client that answers is never in its way.
    for number in 4..6 {
        establish_from(&mut proxy, 1_001, 5_000 + number);
        flood(&mut proxy, 1_002);
    }
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (6, 2));
    // With all connections in use the table is the flood's share and theirs. Idle ones do not shrink that share.
    establish_from(&mut proxy, 1_003, 5_006);
    flood(&mut proxy, 2_000);
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (7, 1), "nobody is idle for a minute");
    flood(&mut proxy, 62_000);
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (5, 3));
}

/// What is refused, closed or never answered goes before anybody else.
#[test]
fn what_is_over_makes_room_first() {
    let mut proxy = small_table(2, 1);
    establish_from(&mut proxy, 0, 5_000);
    from_port(&mut proxy, 1, 7_000, ack(9, 9));
    assert_eq!(proxy.states(), ["established", "refused"]);
    establish_from(&mut proxy, 2, 5_001);
    assert_eq!(proxy.states(), ["established", "established"]);
    from_port(&mut proxy, 3, 5_001, with_flags(RST, 0, CLIENT_NEXT));
    assert_eq!(proxy.states(), ["established", "closing"]);
    let request = TcpFields { sequence: SERVER_ISN, flags: TcpFlags::SYN, ..TcpFields::default() };
    to_port(&mut proxy, 4, 5_002, request);
    assert_eq!(proxy.states(), ["established", "opening"]);
    from_port(&mut proxy, 5, 5_003, syn());
    assert_eq!(proxy.states(), ["established", "syn_received"]);
}
