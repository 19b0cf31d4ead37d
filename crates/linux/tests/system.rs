//! The platform on a real kernel: a bridge process between two network namespaces.
//!
//! Needs root, `ip` and `ethtool`. Every process and socket here has a time limit.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use support::line::Line;
use support::process::{BridgeProcess, bridge_main};
use weftwire_core::buffer::Pool;
use weftwire_core::{Arrivals, FlowId, Frame, Port};
use weftwire_linux::control::{MAX_REQUEST, Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::device::Device;
use weftwire_linux::port::SendErrors;
use weftwire_testbed::{Namespace, skip_unless_root};

/// Not a test: the bridge itself, when the process was started as one.
#[test]
fn bridge_process() {
    bridge_main();
}

const TRANSFER: usize = 200_000_000;
const BLOCK: usize = 1 << 16;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// Bytes of the stream that every transfer sends: each word depends on its place (SplitMix64).
fn fill(block: &mut [u8], start: usize) {
    for (at, word) in block.chunks_mut(8).enumerate() {
        let mut value = ((start / 8 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word.copy_from_slice(&(value ^ (value >> 27)).to_le_bytes()[..word.len()]);
    }
}

/// Sends [`TRANSFER`] bytes by kernel TCP from left to right and compares every one.
fn transfer(line: &Line) {
    let (ready, listening) = std::sync::mpsc::channel();
    let server = line.right.start_thread(move || {
        let listener = TcpListener::bind("10.9.0.2:5000").unwrap();
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(PATIENCE).unwrap();
        let (mut got, mut expected) = (vec![0; BLOCK], vec![0; BLOCK]);
        for start in (0..TRANSFER).step_by(BLOCK) {
            let length = BLOCK.min(TRANSFER - start);
            stream.read_exact(&mut got[..length]).unwrap();
            fill(&mut expected[..length], start);
            assert!(got[..length] == expected[..length], "bytes {start}.. differ");
        }
        assert_eq!(stream.read(&mut got).unwrap(), 0, "more bytes than were sent");
        stream.write_all(b"whole").unwrap();
    });
    listening.recv().unwrap();
    let client = line.left.start_thread(|| {
        let address = "10.9.0.2:5000".parse().unwrap();
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap();
        stream.set_read_timeout(PATIENCE).unwrap();
        stream.set_write_timeout(PATIENCE).unwrap();
        let mut block = vec![0; BLOCK];
        for start in (0..TRANSFER).step_by(BLOCK) {
            let length = BLOCK.min(TRANSFER - start);
            fill(&mut block[..length], start);
            stream.write_all(&block[..length]).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "whole");
    });
    client.join().expect("the client reports what failed");
    server.join().expect("the server reports what failed");
}

/// Sends one echo request from `host` and waits for the answer.
fn ping(host: &Namespace, address: &'static str) -> bool {
    let thread = host.start_thread(move || {
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").unwrap();
        // SAFETY: only numbers; the new descriptor belongs to nobody else. A datagram socket of ICMP works like a UDP
        // socket, except that the kernel sets checksum and identifier.
        let socket = unsafe {
            let descriptor = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP);
            assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
            UdpSocket::from_raw_fd(descriptor)
        };
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.connect((address, 0)).unwrap();
        let request = [8, 0, 0, 0, 0, 0, 0, 1, b'w', b'e', b'f', b't'];
        socket.send(&request).unwrap();
        let mut answer = [0; 64];
        socket.recv(&mut answer).is_ok_and(|length| length == 12 && answer[0] == 0 && answer[8..12] == *b"weft")
    });
    thread.join().unwrap()
}

fn bridge_carries_tcp(mode: &str, offloads: bool) {
    let Some(_turn) = skip_unless_root(&["ethtool"]) else { return };
    let line = Line::new();
    line.set_offloads(offloads);
    let bridge = BridgeProcess::start(&line.middle, mode);
    assert!(ping(&line.left, "10.9.0.2"));
    assert!(ping(&line.right, "10.9.0.1"));
    let start = std::time::Instant::now();
    transfer(&line);
    let gigabits = TRANSFER as f64 * 8.0 / 1e9 / start.elapsed().as_secs_f64();
    let (status, summary) = bridge.stop(libc::SIGINT);
    eprintln!("{mode}, offloads {}: {gigabits:.2} Gbit/s\n{summary}", if offloads { "on" } else { "off" });
    assert!(status.success());
    assert!(summary.contains("kernel drops") && summary.contains("m1") && summary.contains("frames out"), "{summary}");
    let frames: u64 = summary
        .lines()
        .find_map(|line| line.trim().strip_prefix("1  m1")?.split_whitespace().next()?.parse().ok())
        .expect("the summary has a line for port 1");
    // Super-frames cross whole, but by AF_XDP: with offloads on far fewer frames carry the same bytes.
    assert_eq!(frames < (TRANSFER / 3000) as u64, offloads && mode != "xdp", "{frames} frames");
}

#[test]
fn socket_carries_tcp_with_offloads() {
    bridge_carries_tcp("socket", true);
}

#[test]
fn socket_carries_tcp_without_offloads() {
    bridge_carries_tcp("socket", false);
}

#[test]
fn ring_carries_tcp_with_offloads() {
    bridge_carries_tcp("ring", true);
}

#[test]
fn ring_carries_tcp_without_offloads() {
    bridge_carries_tcp("ring", false);
}

/// The senders leave checksums to hardware that is not there.
#[test]
fn xdp_carries_tcp_with_offloads() {
    bridge_carries_tcp("xdp", true);
}

#[test]
fn xdp_carries_tcp_without_offloads() {
    bridge_carries_tcp("xdp", false);
}

/// The kernel sends 50 datagrams as one super-frame (`UDP_SEGMENT`); the other end gets 50 datagrams.
#[test]
fn udp_super_frames_cross_the_bridge() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    const SEGMENT: i32 = 1000;
    // linux/udp.h; also the level is the protocol number.
    const UDP_SEGMENT: i32 = 103;
    let line = Line::new();
    let bridge = BridgeProcess::start(&line.middle, "socket");
    assert!(ping(&line.left, "10.9.0.2"));
    let (ready, listening) = std::sync::mpsc::channel();
    let receiver = line.right.start_thread(move || {
        let socket = UdpSocket::bind("10.9.0.2:6000").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        ready.send(()).unwrap();
        let mut datagram = [0; 2000];
        for number in 0..50_u8 {
            assert_eq!(socket.recv(&mut datagram).unwrap(), SEGMENT as usize);
            assert!(datagram[..SEGMENT as usize].iter().all(|byte| *byte == number));
        }
    });
    listening.recv().unwrap();
    let sender = line.left.start_thread(|| {
        let socket = UdpSocket::bind("10.9.0.1:6000").unwrap();
        // SAFETY: the kernel reads one int.
        let result = unsafe {
            let value = std::ptr::from_ref(&SEGMENT).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_UDP, UDP_SEGMENT, value, size_of::<i32>() as u32)
        };
        assert_eq!(result, 0);
        let bytes: Vec<u8> = (0..50).flat_map(|number| [number; SEGMENT as usize]).collect();
        assert_eq!(socket.send_to(&bytes, "10.9.0.2:6000").unwrap(), bytes.len());
    });
    sender.join().unwrap();
    receiver.join().unwrap();
    let (_, summary) = bridge.stop(libc::SIGINT);
    let row = summary.lines().find(|line| line.contains(" m1 ")).unwrap();
    let frames: u64 = row.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(frames < 20, "the super-frame was cut on the way: {summary}");
}

/// Takes frames from a port of this crate in the calling thread's namespace until one satisfies `wanted`.
fn receive(device: &Device, wanted: impl Fn(&[u8]) -> bool, ready: &std::sync::mpsc::Sender<()>) -> Option<Vec<u8>> {
    let mut port = device.open().unwrap();
    ready.send(()).unwrap();
    let start = std::time::Instant::now();
    let (mut pool, mut arrivals) = (Pool::default(), Arrivals::new());
    while start.elapsed() < Duration::from_secs(5) {
        port.receive(Port(1), &mut pool, &mut arrivals).unwrap();
        if let Some(found) = arrivals.drain(..).find(|arrival| wanted(&arrival.buffer)) {
            return Some(found.buffer.to_vec());
        }
    }
    None
}

#[test]
fn vlan_tags_cross_the_bridge() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    for mode in ["socket", "ring", "xdp"] {
        let bridge = BridgeProcess::start(&line.middle, mode);
        for tag_protocol in [0x8100_u16, 0x88a8] {
            let mut frame = vec![0xff; 6];
            frame.extend([2, 0, 0, 0, 0, 9]);
            frame.extend(tag_protocol.to_be_bytes());
            frame.extend([0x60, 5, 0x12, 0x34]);
            frame.extend((0..60).map(|byte| byte ^ 0x5a));
            let (ready, is_ready) = std::sync::mpsc::channel();
            let source = [2, 0, 0, 0, 0, 9];
            let device = match mode {
                "ring" => Device::Ring("b0".into()),
                "xdp" => Device::Xdp("b0".into()),
                _ => Device::Socket("b0".into()),
            };
            let receiver = line.right.start_thread(move || receive(&device, |bytes| bytes[6..12] == source, &ready));
            is_ready.recv().unwrap();
            let sent = frame.clone();
            let sender =
                line.left.start_thread(move || Device::Socket("a0".into()).open().unwrap().send(&[Frame::new(&sent)]));
            sender.join().unwrap();
            assert_eq!(receiver.join().unwrap(), Some(frame), "{mode} {tag_protocol:#x}");
        }
        bridge.stop(libc::SIGTERM);
    }
}

#[test]
fn privileges_are_gone() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    let bridge = BridgeProcess::start(&line.middle, "socket");
    let status = bridge.status();
    let field = |name: &str| {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {status}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for ids in [field("Uid:"), field("Gid:"), field("Groups:")] {
        assert!(!ids.is_empty() && ids.iter().all(|id| id != "0"), "{status}");
    }
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    // It works without them, and removes its control socket.
    assert!(ping(&line.left, "10.9.0.2"));
    let control = bridge.control.clone();
    assert!(control.exists());
    // The directory goes with the process handle, so look before that is dropped.
    let mut client = ControlClient::connect(Some(&control)).unwrap();
    let id = bridge.id();
    // SAFETY: only numbers; the child has not been waited for.
    unsafe { libc::kill(id as i32, libc::SIGTERM) };
    assert_eq!(client.next_response().unwrap(), None);
    assert!(!control.exists());
}

#[test]
fn the_control_socket_shows_and_changes_flows() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    let trace = std::env::temp_dir().join(format!("{}.jsonl", line.middle.name()));
    let bridge = BridgeProcess::start_with_trace(&line.middle, "socket", Some(&trace));
    let mut client = ControlClient::connect(Some(&bridge.control)).unwrap();
    assert_eq!(client.flows().unwrap().len(), 1);
    let flow = FlowId(1);
    client.ask(&Request::Set { flow, register: "limit".into(), value: 9 }).unwrap();
    let Response::Flow(detail) = client.ask(&Request::Flow { flow }).unwrap() else { panic!("no flow") };
    assert_eq!(detail.registers[0].value, 9);
    let error = client.ask(&Request::Set { flow, register: "limits".into(), value: 9 }).unwrap_err();
    assert_eq!(error.to_string(), "no register `limits`; there are: limit");

    // A client that debugs sees snapshots, one that wants events sees those too, and one that never reads hurts nobody.
    let mut events = ControlClient::connect(Some(&bridge.control)).unwrap();
    events.ask(&Request::Debug { on: true, events: true }).unwrap();
    client.ask(&Request::Debug { on: true, events: false }).unwrap();
    let mut silent = ControlClient::connect(Some(&bridge.control)).unwrap();
    silent.ask(&Request::Debug { on: true, events: true }).unwrap();
    assert!(ping(&line.left, "10.9.0.2"));
    let kind = |client: &mut ControlClient| match client.next_response().unwrap() {
        Some(Response::Trace(record)) => record.kind,
        other => panic!("no record but {other:?}"),
    };
    use weftwire_core::trace::TraceKind::{Event, Snapshot};
    assert_eq!([kind(&mut events), kind(&mut events)], [Event, Snapshot]);
    assert_eq!([kind(&mut client), kind(&mut client)], [Snapshot, Snapshot]);

    // What is no request is answered by an error; what is too long ends the conversation.
    let mut raw = BufReader::new(UnixStream::connect(&bridge.control).unwrap());
    raw.get_mut().write_all(b"{\"request\":\"dance\"}\n").unwrap();
    let mut answer = String::new();
    raw.read_line(&mut answer).unwrap();
    assert!(answer.starts_with("{\"error\":\"not a request:"), "{answer}");
    raw.get_mut().write_all(&vec![b'x'; 2 * MAX_REQUEST]).unwrap();
    answer.clear();
    // The rest that was not read may reset the connection after the answer.
    let _ = raw.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("{\"error\":\"a request has at most"), "{answer}");

    client.ask(&Request::Delete { flow }).unwrap();
    assert!(
        matches!(client.ask(&Request::Counters).unwrap(), Response::Counters(counters) if counters.function.frames_in > 0 && counters.ports[0].frames_in > 0)
    );
    let (status, _) = bridge.stop(libc::SIGINT);
    assert!(status.success());
    let records = std::fs::read_to_string(&trace).unwrap();
    std::fs::remove_file(&trace).unwrap();
    assert!(records.lines().count() >= 4 && records.lines().all(|line| line.starts_with('{') && line.ends_with('}')));
}

/// A TUN or TAP device in each host's namespace, joined by this process: kernel TCP with all its offloads crosses.
fn devices_carry_tcp(kind: fn(String) -> Device) {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let hosts = Line::new();
    // The veth addresses are not needed here, the devices get them.
    hosts.left.exec("ip address flush dev a0").unwrap();
    hosts.right.exec("ip address flush dev b0").unwrap();
    let (ready, opened) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let right = hosts.right.door().unwrap();
    let bridge = hosts.left.start_thread(move || {
        let mut ports = [kind("w0".into()).open().unwrap(), {
            // The device opened above stays in its namespace.
            right.enter().unwrap();
            kind("w0".into()).open().unwrap()
        }];
        ready.send(()).unwrap();
        let start = std::time::Instant::now();
        let mut whole = 0;
        let (mut pool, mut arrivals) = (Pool::default(), Arrivals::new());
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) && start.elapsed().as_secs() < 40 {
            for _direction in 0..2 {
                ports.swap(0, 1);
                let [from, to] = &mut ports;
                from.receive(Port(1), &mut pool, &mut arrivals).unwrap();
                for arrival in arrivals.drain(..) {
                    whole += u32::from(arrival.offload.segmentation.is_some());
                    to.send(&[arrival.frame()]);
                    pool.give_back(arrival.buffer);
                }
            }
        }
        (whole, ports.map(|mut port| port.counters()))
    });
    opened.recv().unwrap();
    hosts.left.exec("ip address add 10.9.0.1/24 dev w0").unwrap();
    hosts.right.exec("ip address add 10.9.0.2/24 dev w0").unwrap();
    assert!(ping(&hosts.left, "10.9.0.2"));
    transfer(&hosts);
    drop(stop);
    let (whole, counters) = bridge.join().unwrap();
    assert!(whole > 1000, "super-frames came cut: {whole}");
    assert!(
        counters.iter().all(|port| port.send_errors == SendErrors::default() && port.unusable == 0),
        "{counters:?}"
    );
}

#[test]
fn tun_carries_tcp() {
    devices_carry_tcp(Device::Tun);
}

#[test]
fn tap_carries_tcp() {
    devices_carry_tcp(Device::Tap);
}

/// The kernel itself would let long frames into TUN and TAP devices, and would count no packet of them.
#[test]
fn frames_beyond_the_mtu_are_counted_on_every_kind_of_port() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    let name = String::from;
    for device in [
        Device::Socket(name("a0")),
        Device::Ring(name("a0")),
        Device::Xdp(name("a0")),
        Device::Tun(name("t0")),
        Device::Tap(name("t1")),
    ] {
        let sent = device.clone();
        let counters = line.left.start_thread(move || {
            let mut port = sent.open().unwrap();
            let below = if port.link() == weftwire_core::LinkType::Ethernet { 14 } else { 0 };
            // An Ethernet header of no protocol, or an IPv4 header.
            let mut bytes = vec![0; 9_000];
            bytes[0] = 0x45;
            for length in [1_500, 1_501, 200, 8_000] {
                port.send(&[Frame::new(&bytes[..below + length])]);
            }
            port.set_mtu(100);
            port.send(&[Frame::new(&bytes[..below + 100]), Frame::new(&bytes[..below + 101])]);
            port.counters()
        });
        let counters = counters.join().unwrap();
        assert_eq!(counters.frames_out, 3, "{device:?}: {counters:?}");
        let errors = counters.send_errors.iter();
        assert!(errors.eq([("longer than the MTU (EMSGSIZE)", 3)]), "{device:?}: {counters:?}");
    }
}
