//! The frames that the cases are made of.

use std::net::Ipv4Addr;

use weftwire_core::checksum::update;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};

const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER_PORT: u16 = 80;
/// The first sequence number of every client.
const CLIENT_SEQUENCE: u32 = 1_000;
/// The first sequence number of the server, in every flow.
const SERVER_SEQUENCE: u32 = 900_000;
const TIMESTAMPS: TcpOption<'_> = TcpOption::Timestamps { value: 1, echo: 1 };
/// Where the IPv4 header starts.
const IP: usize = 14;
/// Where TCP's sequence number starts.
const SEQUENCE: usize = IP + 20 + 4;

/// A client, by number: addresses of the range for benchmarks (RFC 2544, section C.2.2) and ports.
#[derive(Clone, Copy)]
pub struct Client(pub u32);

impl Client {
    fn address(self) -> Ipv4Addr {
        Ipv4Addr::from(0xc612_0000 | self.0 & 0x1_ffff)
    }

    fn port(self) -> u16 {
        1_024 + (self.0 >> 17) as u16
    }

    fn to_server(self, fields: &TcpFields, options: &[TcpOption<'_>]) -> Vec<u8> {
        let ip = Ipv4Fields { source: self.address(), destination: SERVER, ..Ipv4Fields::default() };
        let fields = TcpFields { source_port: self.port(), destination_port: SERVER_PORT, ..*fields };
        finished(FrameBuilder::ethernet(SERVER_MAC, CLIENT_MAC).ipv4(&ip).tcp(&fields, options))
    }

    fn to_client(self, fields: &TcpFields, options: &[TcpOption<'_>], payload: usize) -> Vec<u8> {
        let ip = Ipv4Fields { source: SERVER, destination: self.address(), ..Ipv4Fields::default() };
        let fields = TcpFields { source_port: SERVER_PORT, destination_port: self.port(), ..*fields };
        let frame = FrameBuilder::ethernet(CLIENT_MAC, SERVER_MAC).ipv4(&ip).tcp(&fields, options);
        finished(frame.payload(&vec![0x5a; payload]))
    }

    /// The SYN of a Linux client, with all its options.
    pub fn syn(self) -> Vec<u8> {
        let fields = TcpFields { sequence: CLIENT_SEQUENCE, flags: TcpFlags::SYN, ..TcpFields::default() };
        let timestamps = TcpOption::Timestamps { value: 1, echo: 0 };
        let size = TcpOption::MaximumSegmentSize(1_460);
        self.to_server(&fields, &[size, TcpOption::SackPermitted, timestamps, TcpOption::WindowScale(7)])
    }

    /// Acknowledges what came with sequence numbers below `acknowledgment`; `sack_blocks` ranges behind it are there too.
    pub fn ack(self, acknowledgment: u32, sack_blocks: u32) -> Vec<u8> {
        let sequence = CLIENT_SEQUENCE + 1;
        let fields = TcpFields { sequence, acknowledgment, flags: TcpFlags::ACK, window: 500, ..TcpFields::default() };
        let edges = (0..2 * sack_blocks).flat_map(|edge| (acknowledgment + 1_448 * (edge + 1)).to_be_bytes());
        let sack = TcpOption::Other { kind: 5, data: &edges.collect::<Vec<u8>>() };
        let options = [TIMESTAMPS, sack];
        self.to_server(&fields, &options[..if sack_blocks > 0 { 2 } else { 1 }])
    }

    /// The server's answer to the SYN.
    pub fn server_syn_ack(self) -> Vec<u8> {
        let fields = TcpFields {
            sequence: SERVER_SEQUENCE,
            acknowledgment: CLIENT_SEQUENCE + 1,
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            ..TcpFields::default()
        };
        let options =
            [TcpOption::MaximumSegmentSize(1_460), TcpOption::SackPermitted, TIMESTAMPS, TcpOption::WindowScale(7)];
        self.to_client(&fields, &options, 0)
    }

    /// Data of the server.
    pub fn server_data(self, payload: usize) -> Vec<u8> {
        let fields = TcpFields {
            sequence: SERVER_SEQUENCE + 1,
            acknowledgment: CLIENT_SEQUENCE + 1,
            flags: TcpFlags::ACK,
            ..TcpFields::default()
        };
        self.to_client(&fields, &[TIMESTAMPS], payload)
    }

    /// Makes another client's frame this client's. Only the IPv4 checksum is made right.
    pub fn claim(self, frame: &mut [u8]) {
        let [a, b, c, d] = self.address().octets();
        for (at, new) in [(IP + 12, [a, b]), (IP + 14, [c, d])] {
            let checksum = update(word(frame, IP + 10), word(frame, at), u16::from_be_bytes(new));
            frame[IP + 10..IP + 12].copy_from_slice(&checksum.to_be_bytes());
            frame[at..at + 2].copy_from_slice(&new);
        }
        frame[IP + 20..IP + 22].copy_from_slice(&self.port().to_be_bytes());
    }
}

/// TCP's sequence number in a frame.
pub fn sequence(frame: &[u8]) -> u32 {
    u32::from(word(frame, SEQUENCE)) << 16 | u32::from(word(frame, SEQUENCE + 2))
}

/// Where [`arq_data`] has the segment's number.
pub const ARQ_SEQUENCE: usize = IP + 20 + 8 + 4;

/// A data segment of the ARQ transport with 1,000 bytes.
pub fn arq_data() -> Vec<u8> {
    let ip = Ipv4Fields { source: Client(0).address(), destination: SERVER, ..Ipv4Fields::default() };
    let header = [1, 0, 0x03, 0xe8, 0, 0, 0, 1];
    let frame = FrameBuilder::ethernet(SERVER_MAC, CLIENT_MAC).ipv4(&ip).udp(5_000, 5_001);
    finished(frame.payload(&header).payload(&[0x5a; 1_000]))
}

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn finished(frame: FrameBuilder) -> Vec<u8> {
    frame.finish().expect("the frames here are well-formed and short enough")
}
