//! One end of a TCP connection of a host: smoltcp's socket in an interface of its own, so that each costs the same,
//! however many there are.

use super::flows::Key;
use super::frames::{Frames, Slot};
use super::lane::NEVER;
use super::wire::{self, ETHERNET, MTU};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, ConnectError, ListenError, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::net::IpAddr;
use weftwire_network::model::Traffic;

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
    /// Of which state of the routes they are.
    pub epoch: u32,
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
    pub epoch: u32,
    /// For the initial sequence number.
    pub seed: u64,
    /// Bytes of the receive and the send buffer.
    pub buffers: (usize, usize),
    pub control: Control,
}

/// The congestion controls that there are here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Control {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681.
    Reno,
}

/// A traffic asks for a congestion control that there is not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("traffic `{traffic}` asks for the congestion control `{control}`: the simulator has `cubic` and `reno`")]
pub struct NoControl {
    /// The traffic.
    pub traffic: String,
    /// What it asks for.
    pub control: String,
}

impl Control {
    /// That of a traffic, or why there is none.
    pub fn of(traffic: &Traffic) -> Result<Control, NoControl> {
        match traffic.congestion_control.as_deref() {
            None => Ok(Control::default()),
            Some("cubic") => Ok(Control::Cubic),
            Some("reno") => Ok(Control::Reno),
            Some(other) => Err(NoControl { traffic: traffic.name.clone(), control: other.to_owned() }),
        }
    }

    /// As Linux names it.
    pub fn name(self) -> &'static str {
        match self {
            Control::Cubic => "cubic",
            Control::Reno => "reno",
        }
    }
}

impl Connection {
    /// A closed connection.
    pub fn new(opening: Opening, now: i64) -> Connection {
        let Opening { node, flow, side, key, lane, ends, epoch, seed, buffers, control } = opening;
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
        socket.set_congestion_control(match control {
            Control::Cubic => CongestionControl::Cubic,
            Control::Reno => CongestionControl::Reno,
        });
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
            epoch,
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
    pub fn connect(&mut self) -> Result<(), ConnectError> {
        let remote = (address(self.ends.destination), self.ends.destination_port);
        let local = (address(self.ends.source), self.ends.source_port);
        let socket = self.sockets.get_mut::<Socket>(self.handle);
        socket.connect(self.interface.context(), remote, local)
    }

    /// Waits for a SYN.
    pub fn listen(&mut self) -> Result<(), ListenError> {
        let port = self.ends.source_port;
        self.socket().listen(port)
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
///
/// A FIN counts as a byte behind the last, as in sequence numbers.
#[derive(Default)]
pub struct Track {
    /// Sequence number of the stream's first byte.
    base: Option<u32>,
    /// The stream's bytes sent.
    sent: u64,
    /// Where the FIN is, once it was sent.
    fin: Option<u64>,
    /// What is acknowledged, the FIN included.
    edge: u64,
    /// Segments sent and not yet acknowledged: first byte, end, time; `None` of what was sent twice.
    waiting: VecDeque<(u64, u64, Option<i64>)>,
    /// Up to here segments may have been held at the receiver behind one that was missing.
    held: u64,
}

impl Track {
    /// The stream's bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.edge.min(self.fin.unwrap_or(u64::MAX))
    }

    /// A segment leaves. Gives the stream's offset and whether bytes are repeated, if it has payload.
    pub fn sent(&mut self, now: i64, sequence: u32, [syn, fin]: [bool; 2], length: u32) -> Option<(u64, bool)> {
        if syn {
            self.base = Some(sequence.wrapping_add(1));
        }
        if length == 0 && !fin {
            return None;
        }
        let start = self.offset(sequence, self.sent)?;
        let end = start + u64::from(length);
        if fin {
            self.fin = Some(end);
        }
        let end = end + u64::from(fin);
        let repeated = start < self.sent;
        if repeated {
            // Karn's rule: an acknowledgment of what was sent twice tells no time.
            let again = self.waiting.iter_mut().filter(|(first, last, _)| *last > start && *first < end);
            again.for_each(|(.., at)| *at = None);
        }
        if end > self.sent {
            self.waiting.push_back((start.max(self.sent), end, (!repeated).then_some(now)));
        }
        self.sent = self.sent.max(end);
        (length > 0).then_some((start, repeated))
    }

    /// An acknowledgment arrives. Gives a round-trip time, if it tells one: the time since the segment was sent whose arrival
    /// caused the acknowledgment, as the echoed time stamp of RFC 7323 would. That is the newest that it covers, unless that one
    /// had been waiting at the receiver for one before it: while that may be, only an acknowledgment of a single segment
    /// tells a time.
    pub fn received(&mut self, now: i64, acknowledgment: u32) -> Option<i64> {
        let end = self.offset(acknowledgment, self.edge)?;
        if end > self.sent {
            return None;
        }
        if end <= self.edge {
            if end == self.edge && self.sent > self.edge {
                // The same number again: something came that does not follow.
                self.held = self.sent;
            }
            return None;
        }
        let in_order = self.edge >= self.held;
        self.edge = end;
        let (mut covered, mut once, mut newest) = (0, true, None);
        while let Some((_, last, at)) = self.waiting.front().copied().filter(|(_, last, _)| *last <= end) {
            covered += 1;
            once &= at.is_some();
            newest = at.filter(|_| last == end);
            self.waiting.pop_front();
        }
        // Of a segment that is acknowledged in part, a part is left.
        if let Some((first, ..)) = self.waiting.front_mut() {
            *first = (*first).max(end);
        }
        newest.filter(|_| once && (in_order || covered == 1)).map(|at| now - at)
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

    const PLAIN: [bool; 2] = [false, false];

    /// A track after the handshake, whose first byte has the sequence number 1.
    fn open() -> Track {
        let mut track = Track::default();
        assert_eq!(track.sent(0, 0, [true, false], 0), None);
        track
    }

    /// So many segments of 100 bytes, the first at 10, a nanosecond apart.
    fn sending(count: u32) -> Track {
        let mut track = open();
        for number in 0..count {
            let sent = track.sent(10 + i64::from(number), 1 + 100 * number, PLAIN, 100);
            assert_eq!(sent, Some((100 * u64::from(number), false)));
        }
        track
    }

    #[test]
    fn repeats_and_round_trips_are_told_from_segments() {
        let mut track = Track::default();
        assert_eq!(track.sent(0, u32::MAX - 99, [true, false], 0), None);
        assert_eq!(track.sent(10, u32::MAX - 98, PLAIN, 100), Some((0, false)), "then the numbers wrap");
        assert_eq!(track.sent(20, 1, PLAIN, 100), Some((100, false)));
        assert_eq!(track.received(50, 1), Some(40));
        assert_eq!(track.sent(60, 1, PLAIN, 100), Some((100, true)));
        assert_eq!(track.sent(65, 101, PLAIN, 100), Some((200, false)));
        assert_eq!(track.received(70, 101), None, "sent twice");
        assert_eq!(track.received(80, 201), Some(15));
        assert_eq!(track.sent(85, 201, [false, true], 0), None, "the FIN");
        assert_eq!((track.acknowledged(), track.received(90, 202)), (300, Some(5)));
        assert_eq!((track.acknowledged(), track.received(91, 203)), (300, None), "what was never sent");
    }

    #[test]
    fn a_fin_sent_twice_tells_no_time() {
        let mut track = open();
        assert_eq!(track.sent(10, 1, [false, true], 100), Some((0, false)));
        assert_eq!(track.sent(20, 101, [false, true], 0), None);
        assert_eq!(track.received(30, 102), None);
        assert_eq!(track.acknowledged(), 100);
    }

    #[test]
    fn what_was_held_behind_a_lost_segment_tells_no_time() {
        // Of five segments the first is lost: four duplicate acknowledgments, the repeat, and one of all.
        let mut track = sending(5);
        for at in 50..54 {
            assert_eq!(track.received(at, 1), None);
        }
        assert_eq!(track.sent(60, 1, PLAIN, 100), Some((0, true)));
        assert_eq!(track.received(100, 501), None, "the repeat caused it, and the others were there long before");
        assert_eq!(track.sent(110, 501, PLAIN, 100), Some((500, false)));
        assert_eq!(track.received(150, 601), Some(40), "then all is well again");
    }

    #[test]
    fn what_was_held_tells_no_time_even_if_every_duplicate_is_lost() {
        let mut track = sending(5);
        assert_eq!(track.sent(60, 1, PLAIN, 100), Some((0, true)), "by the timer");
        assert_eq!(track.received(100, 501), None);
    }

    #[test]
    fn what_was_overtaken_tells_the_time_of_its_own_way_only() {
        // The first comes behind the other two, and nothing is sent twice.
        let mut track = sending(4);
        assert_eq!(track.received(40, 1), None);
        assert_eq!(track.received(41, 1), None);
        assert_eq!(track.received(60, 301), None, "the first caused it, the third would tell of waiting");
        assert_eq!(track.received(61, 401), Some(48), "a single one");
    }

    #[test]
    fn a_delayed_acknowledgment_is_of_the_newest() {
        let mut track = sending(4);
        assert_eq!(track.received(40, 201), Some(29));
        assert_eq!(track.received(41, 401), Some(28));
    }

    #[test]
    fn a_repeat_that_carries_new_bytes_too_tells_no_time() {
        let mut track = sending(1);
        assert_eq!(track.sent(20, 51, PLAIN, 100), Some((50, true)));
        assert_eq!(track.received(30, 151), None);
        assert_eq!((track.acknowledged(), track.received(31, 151)), (150, None));
    }
}
