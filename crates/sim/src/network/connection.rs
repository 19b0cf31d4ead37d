//! One end of a TCP connection of a host: smoltcp's socket in an interface of its own, so that each costs the same,
//! however many there are.

use super::flows::Key;
use super::frames::{Frames, Slot};
use super::lane::NEVER;
use super::wire::{self, ETHERNET, MTU};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::net::IpAddr;

/// How long a connection that belongs to no flow may be silent.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(60);

/// One end of a connection.
pub struct Connection {
    /// Its node.
    pub node: u32,
    /// Its flow; [`super::flows::NO_FLOW`] of a stranger's.
    pub flow: u32,
    /// 0 at the flow's opener, 1 at the other end.
    pub side: usize,
    /// Its ends, seen from here.
    pub key: Key,
    /// The lane and the Ethernet addresses of its frames.
    pub lane: u32,
    /// Addresses and ports of its packets.
    pub ends: wire::Ends,
    /// When its timer event is in the queue.
    pub scheduled: i64,
    /// It was established once.
    pub established: bool,
    /// What was sent and acknowledged.
    pub track: Track,
    /// Behind the other end's FIN.
    pub fin: Option<u32>,
    /// Sequence and acknowledgment number of the last segment sent (behind its payload).
    pub last: (u32, u32),
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
}

/// What a connection is made of.
pub struct Opening {
    pub node: u32,
    pub flow: u32,
    pub side: usize,
    pub key: Key,
    pub lane: u32,
    pub ends: wire::Ends,
    /// For the initial sequence number.
    pub seed: u64,
    /// Bytes of the receive and the send buffer.
    pub buffers: (usize, usize),
}

impl Connection {
    /// A closed connection.
    pub fn new(opening: Opening, now: i64) -> Connection {
        let Opening { node, flow, side, key, lane, ends, seed, buffers } = opening;
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut device = Wire { frames: &mut Frames::default(), input: None, output: &mut Vec::new() };
        let mut interface = Interface::new(config, &mut device, instant(now));
        // A network of everything: the next hop was chosen already.
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(address(ends.source), 0));
        });
        let buffer = |bytes: usize| SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(buffer(buffers.0), buffer(buffers.1));
        socket.set_congestion_control(CongestionControl::Cubic);
        socket.set_nagle_enabled(false);
        if flow == super::flows::NO_FLOW {
            socket.set_timeout(Some(STRANGER_TIMEOUT));
        }
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Connection {
            node,
            flow,
            side,
            key,
            lane,
            ends,
            scheduled: NEVER,
            established: false,
            track: Track::default(),
            fin: None,
            last: (0, 0),
            interface,
            sockets,
            handle,
        }
    }

    /// Opens it actively.
    pub fn connect(&mut self) -> Result<(), String> {
        let remote = (address(self.ends.destination), self.ends.destination_port);
        let local = (address(self.ends.source), self.ends.source_port);
        let socket = self.sockets.get_mut::<Socket>(self.handle);
        socket.connect(self.interface.context(), remote, local).map_err(|error| error.to_string())
    }

    /// Waits for a SYN.
    pub fn listen(&mut self) -> Result<(), String> {
        let port = self.ends.source_port;
        self.socket().listen(port).map_err(|error| error.to_string())
    }

    /// The socket.
    pub fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket>(self.handle)
    }

    /// An IP packet arrives.
    pub fn ingress(&mut self, now: i64, packet: &[u8], frames: &mut Frames, output: &mut Vec<Slot>) {
        let mut device = Wire { frames, input: Some(packet), output };
        self.interface.poll_ingress_single(instant(now), &mut device, &mut self.sockets);
    }

    /// Sends what may be sent, and what is due.
    pub fn egress(&mut self, now: i64, frames: &mut Frames, output: &mut Vec<Slot>) {
        let mut device = Wire { frames, input: None, output };
        self.interface.poll_egress(instant(now), &mut device, &mut self.sockets);
    }

    /// When it wants to send by itself; [`NEVER`] if not.
    pub fn deadline(&mut self, now: i64) -> i64 {
        match self.interface.poll_at(instant(now), &self.sockets) {
            // A whole microsecond later at least: what was possible at this instant has been done.
            Some(at) => at.total_micros().saturating_mul(1000).max(now + 1000),
            None => NEVER,
        }
    }

    /// Completes an outgoing frame, of which smoltcp has written all behind the Ethernet header but checksums.
    pub fn complete(&self, frame: &mut [u8]) {
        wire::set_macs(frame, self.ends.macs[0], self.ends.macs[1]);
        let ipv6 = self.ends.source.is_ipv6();
        frame[12..14].copy_from_slice(if ipv6 { &[0x86, 0xdd] } else { &[8, 0] });
        let transport = ETHERNET + if ipv6 { 40 } else { 20 };
        wire::complete_tcp(frame, transport);
    }
}

fn address(address: IpAddr) -> IpAddress {
    address.into()
}

/// smoltcp counts microseconds.
fn instant(now: i64) -> Instant {
    Instant::from_micros(now / 1000)
}

/// The wire as smoltcp sees it: at most one packet in, any number out.
struct Wire<'a> {
    frames: &'a mut Frames,
    input: Option<&'a [u8]>,
    output: &'a mut Vec<Slot>,
}

impl Device for Wire<'_> {
    type RxToken<'t>
        = Receive<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Transmit<'t>
    where
        Self: 't;

    fn receive(&mut self, _: Instant) -> Option<(Receive<'_>, Transmit<'_>)> {
        let packet = self.input.take()?;
        Some((Receive(packet), Transmit { frames: self.frames, output: self.output }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Transmit<'_>> {
        Some(Transmit { frames: self.frames, output: self.output })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        // Verified before, and completed after.
        let mut checksum = ChecksumCapabilities::ignored();
        checksum.ipv4 = smoltcp::phy::Checksum::Tx;
        capabilities.checksum = checksum;
        capabilities
    }
}

struct Receive<'a>(&'a [u8]);

impl RxToken for Receive<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

struct Transmit<'a> {
    frames: &'a mut Frames,
    output: &'a mut Vec<Slot>,
}

impl TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let Some(slot) = self.frames.take() else { return write(&mut vec![0; length]) };
        let frame = self.frames.get_mut(slot);
        frame.resize(ETHERNET + length, 0);
        self.output.push(slot);
        write(&mut frame[ETHERNET..])
    }
}

/// Which bytes were sent first when, to know repeats and round-trip times from the segments alone.
#[derive(Default)]
pub struct Track {
    /// Sequence number of the stream's first byte.
    base: Option<u32>,
    /// The stream's bytes sent.
    sent: u64,
    /// The stream's bytes acknowledged.
    pub acknowledged: u64,
    /// Segments sent once and not yet acknowledged: first byte, end, time.
    waiting: VecDeque<(u64, u64, i64)>,
}

impl Track {
    /// A segment leaves. Gives the stream's offset and whether bytes are repeated, if it has payload.
    pub fn sent(&mut self, now: i64, sequence: u32, syn: bool, length: u32) -> Option<(u64, bool)> {
        if syn {
            self.base = Some(sequence.wrapping_add(1));
        }
        if length == 0 {
            return None;
        }
        let start = self.offset(sequence, self.sent)?;
        let end = start + u64::from(length);
        let repeated = start < self.sent;
        if repeated {
            // Karn's rule: an acknowledgment of what was sent twice tells no time.
            self.waiting.retain(|(first, last, _)| *last <= start || *first >= end);
        } else {
            self.waiting.push_back((start, end, now));
        }
        self.sent = self.sent.max(end);
        Some((start, repeated))
    }

    /// An acknowledgment arrives. Gives the time since the newest segment it covers was sent, if that tells anything.
    pub fn received(&mut self, now: i64, acknowledgment: u32) -> Option<i64> {
        let end = self.offset(acknowledgment, self.acknowledged)?;
        if end <= self.acknowledged || end > self.sent + 1 {
            return None;
        }
        // The FIN counts as a byte behind the last.
        let end = end.min(self.sent);
        self.acknowledged = end;
        let mut newest = None;
        while let Some((_, last, at)) = self.waiting.front().copied().filter(|(_, last, _)| *last <= end) {
            newest = (last == end).then_some(now - at);
            self.waiting.pop_front();
        }
        newest
    }

    /// The stream's offset of a sequence number, near a known one.
    fn offset(&self, sequence: u32, near: u64) -> Option<u64> {
        let distance = sequence.wrapping_sub(self.base?).wrapping_sub(near as u32) as i32;
        near.checked_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_and_round_trips_are_told_from_segments() {
        let mut track = Track::default();
        assert_eq!(track.sent(0, u32::MAX - 99, true, 0), None);
        assert_eq!(track.sent(10, u32::MAX - 98, false, 100), Some((0, false)), "then the numbers wrap");
        assert_eq!(track.sent(20, 1, false, 100), Some((100, false)));
        assert_eq!(track.sent(30, 101, false, 100), Some((200, false)));
        assert_eq!(track.received(50, 1), Some(40));
        assert_eq!(track.received(51, 1), None, "nothing new");
        assert_eq!(track.sent(60, 1, false, 100), Some((100, true)));
        assert_eq!(track.received(70, 101), None, "sent twice");
        assert_eq!(track.received(80, 201), Some(50));
        assert_eq!(track.received(90, 202), None, "the FIN");
        assert_eq!(track.acknowledged, 300);
    }
}
