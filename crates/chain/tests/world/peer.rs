//! A small TCP: one connection, a fixed window, all of it sent again after a second, or after three acknowledgments of the same number.

use super::SECOND;
use std::net::{IpAddr, SocketAddr};
use weftwire_chain::segment::Segment;
use weftwire_core::Time;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};

const SEGMENT: usize = 1_000;

#[derive(Clone, Debug)]
pub struct Peer {
    pub own: SocketAddr,
    pub other: Option<SocketAddr>,
    pub initial: u32,
    data: Vec<u8>,
    expected: Vec<u8>,
    pub received: Vec<u8>,
    /// Bytes acknowledged: SYN, data, FIN.
    acked: usize,
    /// Sequence number expected next.
    pub next: Option<u32>,
    got_fin: bool,
    pub reset: bool,
    timer: Option<Time>,
    pub syns: u32,
    is_client: bool,
    /// Refuses by RST.
    pub refuses: bool,
    /// Sends no data for now.
    pub hold: bool,
    /// Segments under way at once.
    pub window: usize,
    /// Bytes sent: SYN, data, FIN.
    sent: usize,
    /// Acknowledgments in a row that have said the same.
    same: u32,
    /// Goes on the SYN (TCP Fast Open).
    pub early: Vec<u8>,
}

fn bytes(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251) as u8 ^ seed).collect()
}

impl Peer {
    pub fn client(own: SocketAddr, other: SocketAddr, send: usize, receive: usize) -> Peer {
        let mut peer = Peer::server(own, send, receive);
        (peer.data, peer.expected) = (bytes(send, 1), bytes(receive, 2));
        (peer.other, peer.is_client, peer.initial, peer.timer) = (Some(other), true, 0x7fff_fff0, Some(Time::ZERO));
        peer
    }

    pub fn server(own: SocketAddr, send: usize, receive: usize) -> Peer {
        Peer {
            own,
            other: None,
            initial: 0xffff_fff0,
            data: bytes(send, 2),
            expected: bytes(receive, 1),
            received: Vec::new(),
            acked: 0,
            next: None,
            got_fin: false,
            reset: false,
            timer: None,
            syns: 0,
            is_client: false,
            refuses: false,
            hold: false,
            window: 1,
            sent: 0,
            same: 0,
            early: Vec::new(),
        }
    }

    /// All is sent, acknowledged and received.
    pub fn is_done(&self) -> bool {
        self.acked == self.data.len() + 2 && self.got_fin && self.received == self.expected
    }

    /// How far it is.
    pub fn progress(&self) -> String {
        let [acked, sent, all] = [self.acked, self.sent, self.data.len() + 2];
        let (received, expected) = (self.received.len(), self.expected.len());
        let same = self.received[..] == self.expected[..received.min(expected)];
        let reset = if self.reset { ", was reset" } else { "" };
        format!("{acked} acknowledged, {sent} sent of {all}, {received} of {expected} (right: {same}){reset}")
    }

    pub fn timer(&self) -> Option<Time> {
        self.timer.filter(|_| !self.reset)
    }

    pub fn fire(&mut self, now: Time) -> Vec<Vec<u8>> {
        if self.timer().is_none_or(|timer| timer > now) {
            return vec![];
        }
        self.sent = self.acked;
        self.send(now)
    }

    /// What is to be sent next.
    fn send(&mut self, now: Time) -> Vec<Vec<u8>> {
        self.timer = None;
        if self.acked == self.data.len() + 2 || self.syns > 6 && self.acked == 0 {
            return vec![];
        }
        self.timer = Some(now.after(SECOND));
        if self.acked == 0 {
            self.syns += 1;
            let flags = if self.is_client { TcpFlags::SYN } else { TcpFlags::SYN.with(TcpFlags::ACK) };
            let early = self.early.clone();
            self.sent = 1;
            return vec![self.segment(flags, self.initial, &early)];
        }
        let mut segments = vec![];
        self.sent = self.sent.max(self.acked);
        if self.hold {
            self.timer = None;
            return segments;
        }
        while self.sent < (self.acked + self.window * SEGMENT).min(self.data.len() + 2) {
            let sequence = self.initial.wrapping_add(self.sent as u32);
            let left = &self.data[self.sent - 1..];
            let payload = left[..left.len().min(SEGMENT)].to_vec();
            let is_last = payload.len() == left.len();
            self.sent += payload.len() + usize::from(is_last);
            let last = if is_last { TcpFlags::FIN } else { TcpFlags::PSH };
            segments.push(self.segment(TcpFlags::ACK.with(last), sequence, &payload));
        }
        segments
    }

    /// What breaks the connection off, with the number that is due (RFC 9293, section 3.10.5).
    pub fn reset_now(&self) -> Vec<u8> {
        let sequence = self.initial.wrapping_add(self.sent as u32);
        self.segment(TcpFlags::RST.with(TcpFlags::ACK), sequence, &[])
    }

    /// Sends from now on.
    pub fn let_go(&mut self, now: Time) -> Vec<Vec<u8>> {
        self.hold = false;
        if self.other.is_none() { vec![] } else { self.send(now) }
    }

    pub fn receive(&mut self, now: Time, segment: &Segment, packet: &[u8]) -> Vec<Vec<u8>> {
        let has = |flag| segment.flags.contains(flag);
        if has(TcpFlags::RST) {
            self.reset = true;
            return vec![];
        }
        if has(TcpFlags::SYN) && self.refuses {
            self.other = Some(segment.tuple.source);
            self.next = Some(segment.sequence.wrapping_add(1));
            return vec![self.segment(TcpFlags::RST.with(TcpFlags::ACK), 0, &[])];
        }
        if self.other.is_some_and(|other| other != segment.tuple.source) {
            return vec![];
        }
        self.other = Some(segment.tuple.source);
        let mut fresh = false;
        if has(TcpFlags::SYN) && self.next.is_none() {
            self.next = Some(segment.sequence.wrapping_add(1));
            self.received.extend_from_slice(segment.payload(packet));
            self.next = self.next.map(|next| next.wrapping_add(segment.payload(packet).len() as u32));
            fresh = true;
        } else if self.next == Some(segment.sequence) && !has(TcpFlags::SYN) {
            self.received.extend_from_slice(segment.payload(packet));
            self.got_fin |= has(TcpFlags::FIN);
            self.next = Some(segment.sequence.wrapping_add(segment.length()));
        }
        let mut answers = vec![];
        let mut moved = fresh && !self.is_client;
        if has(TcpFlags::ACK) {
            let acked = segment.acknowledgment.wrapping_sub(self.initial) as usize;
            if acked > self.acked && acked <= self.data.len() + 2 {
                (self.acked, self.same) = (acked, 0);
                moved = true;
            } else if acked == self.acked && acked < self.sent && segment.length() == 0 {
                self.same += 1;
                if self.same == 3 && self.window > 1 {
                    self.sent = acked;
                    moved = true;
                }
            }
        }
        if moved {
            answers = self.send(now);
        }
        if answers.is_empty() && segment.length() > 0 && self.acked > 0 {
            let sequence = self.initial.wrapping_add(self.sent as u32);
            answers.push(self.segment(TcpFlags::ACK, sequence, &[]));
        }
        answers
    }

    /// A segment of this connection.
    pub fn segment(&self, flags: TcpFlags, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let other = self.other.unwrap();
        let builder = match (self.own.ip(), other.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                FrameBuilder::raw_ip().ipv4(&Ipv4Fields { source, destination, ..Ipv4Fields::default() })
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                FrameBuilder::raw_ip().ipv6(&Ipv6Fields { source, destination, ..Ipv6Fields::default() })
            }
            _ => unreachable!("one family"),
        };
        let fields = TcpFields {
            source_port: self.own.port(),
            destination_port: other.port(),
            sequence,
            acknowledgment: self.next.unwrap_or(0),
            flags,
            ..TcpFields::default()
        };
        let options: &[TcpOption<'_>] = match flags.contains(TcpFlags::SYN) {
            true => &[
                TcpOption::MaximumSegmentSize(1_460),
                TcpOption::SackPermitted,
                TcpOption::Timestamps { value: 1, echo: 0 },
                TcpOption::WindowScale(7),
            ],
            false => &[TcpOption::Timestamps { value: 2, echo: 1 }],
        };
        builder.tcp(&fields, options).payload(payload).finish().unwrap()
    }
}
