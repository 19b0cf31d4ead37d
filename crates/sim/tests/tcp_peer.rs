//! The TCP of `examples/transports/tcp` and an independent one, smoltcp's, over a line that may lose packets, in virtual time: bytes of
//! both applications arrive once and in order, whoever opens the connection, and both ends close.
#![allow(clippy::disallowed_methods, reason = "a test reads an example")]

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use weftwire_core::inspect::Inspect;
use weftwire_core::{
    Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output, Port, Ports, Time,
    segments,
};
use weftwire_engine::{EngineOptions, ReferenceEngine, Runtime};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};
use weftwire_testbed::standstill;
use weftwire_text::{LoadError, Loader};

const OURS: (IpAddr, u16) = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 4_000);
const THEIRS: (IpAddr, u16) = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 5_000);
/// One way, in nanoseconds.
const DELAY: i64 = 5_000_000;

struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        std::fs::read_to_string(self.0.join(name)).map_err(LoadError::from)
    }
}

static IMAGE: LazyLock<VerifiedImage> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/tcp");
    let image = compile("tcp.xl", Dialect::Xl, &Folder(folder)).image.expect("a right program");
    image.verify().expect("a right image")
});

fn machine() -> ReferenceEngine {
    let ports = Ports::new([(Port(1), LinkType::Ip)]);
    Runtime::new(IMAGE.clone(), ports, EngineOptions::default()).expect("an engine")
}

/// One way of the line: packets with the times at which they arrive.
struct Line {
    flying: VecDeque<(i64, Vec<u8>)>,
    /// Of a thousand packets, how many are lost.
    loss: u64,
    seed: u64,
    lost: usize,
}

impl Line {
    fn new(loss: u64, seed: u64) -> Line {
        Line { flying: VecDeque::new(), loss, seed, lost: 0 }
    }

    fn send(&mut self, now: i64, packet: Vec<u8>) {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (self.seed >> 33) % 1_000 < self.loss {
            self.lost += 1;
        } else {
            self.flying.push_back((now + DELAY, packet));
        }
    }

    fn next(&self) -> Option<i64> {
        self.flying.front().map(|(at, _)| *at)
    }

    fn take(&mut self, now: i64) -> Option<Vec<u8>> {
        self.flying.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }
}

/// What smoltcp has as a device: a packet at most in, any number out.
#[derive(Default)]
struct Wire {
    input: Option<Vec<u8>>,
    output: Vec<Vec<u8>>,
}

impl Device for Wire {
    type RxToken<'t> = Input;
    type TxToken<'t> = Sent<'t>;

    fn receive(&mut self, _: Instant) -> Option<(Input, Sent<'_>)> {
        Some((Input(self.input.take()?), Sent(&mut self.output)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.output))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1_500;
        capabilities
    }
}

struct Input(Vec<u8>);

impl RxToken for Input {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}

/// Our end with its application.
struct Ours {
    engine: ReferenceEngine,
    out: Outbox,
    flow: Option<FlowId>,
    to_send: Vec<u8>,
    written: usize,
    released: usize,
    closed: bool,
    received: Vec<u8>,
    finished: bool,
    ended: bool,
}

impl Ours {
    /// Does what the engine asks for, and what the application may do then.
    fn after(&mut self, now: i64, line: &mut Line) {
        let at = Time::from_nanoseconds(now);
        loop {
            let (mut read, mut again) = (0, false);
            for item in self.out.items() {
                match item {
                    Output::Send { bytes, offload, .. } => {
                        let frame = Frame { bytes: self.out.bytes(bytes), offload: *offload };
                        for packet in segments(LinkType::Ip, frame).expect("a good super-frame") {
                            line.send(now, packet.to_vec());
                        }
                    }
                    Output::Deliver { bytes, .. } => {
                        self.received.extend_from_slice(self.out.bytes(bytes));
                        read += self.out.bytes(bytes).len();
                    }
                    Output::Notify { notice, .. } => self.finished |= self.engine.notice_name(*notice) == "finished",
                    Output::Opened { flow, .. } => self.flow = Some(*flow),
                    Output::Released { length, .. } => {
                        self.released += length;
                        again = true;
                    }
                    Output::Ended { .. } => self.ended = true,
                    _ => {}
                }
            }
            self.out.clear();
            let Some(flow) = self.flow.filter(|_| !self.ended) else { return };
            if read > 0 {
                self.engine.consumed(at, flow, read, &mut self.out).expect("the flow is there");
                again = true;
            }
            if self.written < self.to_send.len() {
                let accepted = self.engine.write(at, flow, &self.to_send[self.written..], &mut self.out).unwrap_or(0);
                self.written += accepted;
                again |= accepted > 0;
            } else if !self.closed {
                self.closed = true;
                let _ = self.engine.close(at, flow, &mut self.out);
                again = true;
            }
            if !again {
                let detail = self.engine.flow(flow).expect("the flow is there");
                assert_eq!(standstill(&detail, Some(self.written - self.released)), None);
                return;
            }
        }
    }
}

/// Their end with its application.
struct Theirs {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    wire: Wire,
    to_send: Vec<u8>,
    written: usize,
    received: Vec<u8>,
}

impl Theirs {
    fn new(to_send: Vec<u8>) -> Theirs {
        let mut wire = Wire::default();
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(THEIRS.0.into(), 24)).expect("room"));
        let buffer = || SocketBuffer::new(vec![0; 100_000]);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(Socket::new(buffer(), buffer()));
        Theirs { interface, sockets, socket, wire, to_send, written: 0, received: Vec::new() }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn connect(&mut self) {
        let socket = self.sockets.get_mut::<Socket>(self.socket);
        socket.connect(self.interface.context(), OURS, THEIRS.1).expect("it connects");
    }

    fn go_on(&mut self, now: i64, packet: Option<Vec<u8>>, line: &mut Line) {
        let at = Instant::from_micros(now / 1_000);
        self.wire.input = packet;
        self.interface.poll(at, &mut self.wire, &mut self.sockets);
        let socket = self.sockets.get_mut::<Socket>(self.socket);
        while socket.can_recv() {
            let received = &mut self.received;
            socket.recv(|data| (data.len(), received.extend_from_slice(data))).expect("there is something");
        }
        if socket.may_send() {
            self.written += socket.send_slice(&self.to_send[self.written..]).expect("it may send");
            if self.written == self.to_send.len() {
                socket.close();
            }
        }
        self.interface.poll(at, &mut self.wire, &mut self.sockets);
        for packet in self.wire.output.drain(..) {
            line.send(now, packet);
        }
    }

    fn deadline(&mut self, now: i64) -> Option<i64> {
        let at = self.interface.poll_at(Instant::from_micros(now / 1_000), &self.sockets)?;
        // A whole microsecond later at least: what was possible at this instant has been done.
        Some((at.total_micros() * 1_000).max(now + 1_000))
    }
}

fn bytes(length: usize, step: usize) -> Vec<u8> {
    (0..length).map(|at| (at * step % 251) as u8).collect()
}

/// Exchanges these many bytes from us and from them; gives how many packets were lost.
fn exchange(we_open: bool, lengths: [usize; 2], loss: u64, seed: u64) -> usize {
    let mut to_them = Line::new(loss, seed);
    let mut to_us = Line::new(loss, seed ^ 0x5555);
    let mut theirs = Theirs::new(bytes(lengths[1], 11));
    let mut ours = Ours {
        engine: machine(),
        out: Outbox::new(),
        flow: None,
        to_send: bytes(lengths[0], 7),
        written: 0,
        released: 0,
        closed: false,
        received: Vec::new(),
        finished: false,
        ended: false,
    };
    if we_open {
        theirs.socket().listen(THEIRS.1).expect("it listens");
        let endpoints = Endpoints {
            protocol: 6,
            local_address: OURS.0,
            local_port: OURS.1,
            remote_address: THEIRS.0,
            remote_port: THEIRS.1,
            local_mac: MacAddress::UNSPECIFIED,
            remote_mac: MacAddress::UNSPECIFIED,
            vlan: None,
        };
        ours.flow = Some(ours.engine.connect(Time::ZERO, &endpoints, &mut ours.out).expect("a connection"));
    } else {
        ours.engine.listen(Time::ZERO, &Listen::default(), &mut ours.out).expect("it listens");
        theirs.connect();
    }
    ours.after(0, &mut to_them);
    theirs.go_on(0, None, &mut to_us);
    let mut now = 0;
    for _ in 0..1_000_000 {
        let ours_due = ours.engine.next_deadline().map(|deadline| deadline.at.nanoseconds());
        let theirs_due = theirs.deadline(now);
        let Some(next) = [to_them.next(), to_us.next(), ours_due, theirs_due].into_iter().flatten().min() else {
            break;
        };
        now = now.max(next);
        let at = Time::from_nanoseconds(now);
        while let Some(packet) = to_us.take(now) {
            ours.engine.frame(at, Port(1), Frame::new(&packet), &mut ours.out);
            ours.after(now, &mut to_them);
        }
        ours.engine.fire(at, &mut ours.out);
        ours.after(now, &mut to_them);
        loop {
            let packet = to_them.take(now);
            let more = packet.is_some();
            theirs.go_on(now, packet, &mut to_us);
            if !more {
                break;
            }
        }
    }
    let what = format!("we open: {we_open}, {lengths:?} bytes, loss {loss}/1000, seed {seed}, at {now} ns");
    assert!(theirs.received == ours.to_send, "{what}: they received {} bytes", theirs.received.len());
    assert!(ours.received == theirs.to_send, "{what}: we received {} bytes", ours.received.len());
    assert!(ours.finished && ours.ended && !theirs.socket().is_open(), "{what}: not closed");
    to_them.lost + to_us.lost
}

#[test]
fn bytes_cross_a_line_that_loses_nothing() {
    for we_open in [true, false] {
        for lengths in [[0, 0], [1, 0], [0, 1], [300_000, 0], [0, 300_000], [200_000, 150_000]] {
            assert_eq!(exchange(we_open, lengths, 0, 1), 0);
        }
    }
}

#[test]
fn bytes_cross_a_line_that_loses_packets() {
    let mut lost = 0;
    for seed in 1..6 {
        for we_open in [true, false] {
            lost += exchange(we_open, [200_000, 150_000], 30, seed);
        }
    }
    assert!(lost > 50, "{lost} lost");
}
