//! The proxy of the examples, and the segments that it gets and sends.

use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::tcp::{Tcp, TcpFlags, TcpOption};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::Image;
use weftwire_lang::{Dialect, compile};

pub const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
pub const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
pub const CLIENT_ISN: u32 = 0xffff_fff0;
pub const SERVER_ISN: u32 = 5_000;
pub const SYN_ACK: TcpFlags = TcpFlags::SYN.with(TcpFlags::ACK);

/// A segment that the proxy sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Segment {
    pub port: u16,
    pub flags: TcpFlags,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub window: u16,
    pub scale: Option<u8>,
    pub stamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    pub options: usize,
    pub payload: usize,
}

pub struct Proxy {
    pub function: Box<dyn Function>,
    out: Outbox,
    seen: usize,
}

impl Proxy {
    pub fn new(seed: u64) -> Proxy {
        Proxy::changed(seed, |_| {})
    }

    /// With a changed image.
    pub fn changed(seed: u64, change: impl FnOnce(&mut Image)) -> Proxy {
        let source = include_str!("../../../../examples/syn-proxy.xl");
        let mut image = compile("syn-proxy.xl", Dialect::Xl, &source).image.expect("the example compiles");
        change(&mut image);
        image.seal();
        let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
        let options = EngineOptions { seed, ..EngineOptions::default() };
        let function = make("reference", image.verify().expect("it verifies"), ports, options).expect("it exists");
        Proxy { function, out: Outbox::new(), seen: 0 }
    }

    pub fn client(&mut self, at_ms: i64, tcp: TcpFields, options: &[TcpOption<'_>], payload: &[u8]) -> Vec<Segment> {
        self.arrive(at_ms, 1, CLIENT, SERVER, tcp, options, payload)
    }

    pub fn server(&mut self, at_ms: i64, tcp: TcpFields, options: &[TcpOption<'_>], payload: &[u8]) -> Vec<Segment> {
        self.arrive(at_ms, 2, SERVER, CLIENT, tcp, options, payload)
    }

    #[allow(clippy::too_many_arguments, reason = "a packet has many parts")]
    pub fn arrive(
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

    pub fn fire(&mut self, at_ms: i64) -> Vec<Segment> {
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
    pub fn states(&self) -> Vec<String> {
        self.function.flows().into_iter().map(|flow| flow.state).collect()
    }

    /// A connection up to the established state: the client's view of the server's sequence numbers, and the SYN-ACK.
    pub fn establish(&mut self, server_options: &[TcpOption<'_>]) -> Segment {
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

pub fn syn() -> TcpFields {
    let flags = TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR);
    TcpFields { sequence: CLIENT_ISN, flags, window: 64_240, ..TcpFields::default() }
}

pub fn syn_ack() -> TcpFields {
    let acknowledgment = CLIENT_ISN.wrapping_add(1);
    TcpFields { sequence: SERVER_ISN, acknowledgment, flags: SYN_ACK, window: 65_160, ..TcpFields::default() }
}

pub fn ack(acknowledgment: u32, sequence: u32) -> TcpFields {
    TcpFields { sequence, acknowledgment, flags: TcpFlags::ACK, window: 502, ..TcpFields::default() }
}

pub fn client_options() -> Vec<TcpOption<'static>> {
    vec![
        TcpOption::MaximumSegmentSize(1460),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 1_000, echo: 0 },
        TcpOption::WindowScale(9),
        TcpOption::Other { kind: 34, data: &[1, 2] },
    ]
}

pub fn server_options() -> Vec<TcpOption<'static>> {
    vec![
        TcpOption::MaximumSegmentSize(1400),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 900_000, echo: 1_000 },
        TcpOption::WindowScale(10),
    ]
}

pub fn stamps(value: u32) -> Vec<TcpOption<'static>> {
    vec![TcpOption::Timestamps { value, echo: 0 }]
}
pub const RST: TcpFlags = TcpFlags::RST;
/// What the client has to send next, and the server, behind the handshake.
pub const CLIENT_NEXT: u32 = CLIENT_ISN.wrapping_add(1);
pub const SERVER_NEXT: u32 = SERVER_ISN + 1;
/// Room for the client's bytes: the server's window, which its SYN-ACK does not scale.
pub const SERVER_ROOM: u32 = 65_160;
/// Room for the server's bytes: the client's window, scaled.
pub const CLIENT_ROOM: u32 = 502 << 9;

pub fn with_flags(flags: TcpFlags, acknowledgment: u32, sequence: u32) -> TcpFields {
    TcpFields { flags, ..ack(acknowledgment, sequence) }
}
