//! AF_XDP ports on a real kernel: what they have beside what all ports have, which `system.rs` tests.
//!
//! Needs root and `ip`. Every process and socket here has a time limit.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

#[allow(dead_code, reason = "the other test program uses the rest")]
mod support;

use std::net::UdpSocket;
use std::time::{Duration, Instant};
use support::line::Line;
use support::process::{BridgeProcess, bridge_main};
use weftwire_core::{Arrival, Arrivals, Frame, LinkType, Outbox, Port, Time};
use weftwire_linux::FramePort;
use weftwire_linux::device::Device;
use weftwire_linux::port::{BATCH, SendErrors};
use weftwire_testbed::{CountingAllocator, Namespace, allocations, skip_unless_root};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Not a test: the bridge itself, when the process was started as one.
#[test]
fn bridge_process() {
    bridge_main();
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Polls until there is an answer.
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what} did not happen in time");
        std::thread::yield_now();
    }
}

/// An Ethernet frame of no protocol of the kernel's, with a number.
fn numbered(number: u32) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x12, 0x34]);
    frame.extend(number.to_be_bytes());
    frame.resize(200, number as u8);
    frame
}

/// Takes what has arrived, passes on what is numbered, and returns how much that was.
fn forward(from: &mut dyn FramePort, to: &mut dyn FramePort, arrivals: &mut Arrivals, out: &mut Outbox) -> u32 {
    from.receive(Port(1), out.pool(), arrivals).unwrap();
    let mut count = 0;
    for arrival in arrivals.drain(..) {
        if arrival.buffer.get(6..12) == Some(&[2, 0, 0, 0, 0, 9]) {
            out.send_buffer(Time::ZERO, Port(2), arrival.buffer, arrival.offload);
            count += 1;
        } else {
            out.recycle(arrival.buffer);
        }
    }
    for output in out.items() {
        if let Some((_, frame)) = weftwire_core::outbox::sent(out, output) {
            to.send(&[frame]);
        }
    }
    out.clear();
    count
}

/// Frames cross from one port to another in the memory of both: many more than there are chunks, without any allocation. The first
/// half of them is taken while they are sent, in batches as they come; then whole blocks wait, so that the largest batches come late.
#[test]
fn frames_cross_without_allocations_and_no_chunk_is_lost() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    const FRAMES: u32 = 30_000;
    const BLOCK: u32 = 100;
    let line = Line::new();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (sent, was_sent) = std::sync::mpsc::channel();
    let (taken, was_taken) = std::sync::mpsc::channel();
    let middle = line.middle.start_thread(move || {
        let (mut left, mut right) =
            (Device::Xdp("m1".into()).open().unwrap(), Device::Xdp("m2".into()).open().unwrap());
        assert_eq!((left.link(), left.how().as_deref()), (LinkType::Ethernet, Some("AF_XDP, native, copy, 1 queue")));
        let (mut arrivals, mut out) = (Arrivals::with_capacity(BATCH), Outbox::new().reserved());
        out.pool().borrow_from(left.lender().expect("it has memory"));
        // From then on it has all of its memory to receive into.
        forward(left.as_mut(), right.as_mut(), &mut arrivals, &mut out);
        ready.send(()).unwrap();
        let (mut count, mut made) = (0, 0);
        while count < FRAMES {
            let (block, late) = (count + BLOCK, count >= FRAMES / 2);
            let wait_for_whole = || was_sent.recv_timeout(PATIENCE).unwrap();
            late.then(wait_for_whole);
            let before = allocations();
            wait("a block", || {
                count += forward(left.as_mut(), right.as_mut(), &mut arrivals, &mut out);
                (count >= block).then_some(())
            });
            made += allocations() - before;
            (!late).then(wait_for_whole);
            taken.send(count).unwrap();
        }
        (made, left.counters(), right.counters())
    });
    is_ready.recv().unwrap();
    let sender = line.left.start_thread(move || {
        let mut port = Device::Socket("a0".into()).open().unwrap();
        let mut done = 0;
        while done < FRAMES {
            for number in done..done + BLOCK {
                port.send(&[Frame::new(&numbered(number))]);
            }
            sent.send(()).unwrap();
            done = was_taken.recv_timeout(PATIENCE).unwrap();
        }
    });
    sender.join().unwrap();
    let (allocations, left, right) = middle.join().unwrap();
    assert_eq!((allocations, right.frames_out, left.kernel_drops), (0, u64::from(FRAMES), 0), "{left:?} {right:?}");
    assert!(right.send_errors == SendErrors::default() && left.unusable == 0, "{left:?} {right:?}");
}

/// The memory of frames has a file: another process that gets it finds a frame in it that was received and is lent.
#[test]
fn another_process_finds_the_frames_in_the_file_of_the_memory() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    const WORDS: &str = "a frame that another process is looking for";
    let line = Line::new();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let middle = line.middle.start_thread(move || {
        let mut port = Device::Xdp("m1".into()).open().unwrap();
        let (mut arrivals, mut out) = (Arrivals::new(), Outbox::new());
        port.receive(Port(1), out.pool(), &mut arrivals).unwrap();
        ready.send(()).unwrap();
        let is_wanted = |arrival: &Arrival| arrival.buffer.ends_with(WORDS.as_bytes());
        let frame = wait("the frame", || {
            port.receive(Port(1), out.pool(), &mut arrivals).unwrap();
            arrivals.drain(..).find(is_wanted)
        });
        let memory = port.memory().expect("it has memory").try_clone_to_owned().unwrap();
        let mut other = std::process::Command::new("grep");
        let found = other.args(["--text", "--only-matching", WORDS]).stdin(memory).output().unwrap();
        drop(frame);
        String::from_utf8(found.stdout).unwrap()
    });
    is_ready.recv().unwrap();
    let frame = [&numbered(1)[..14], WORDS.as_bytes()].concat();
    let send = || Device::Socket("a0".into()).open().unwrap().send(&[Frame::new(&frame)]);
    line.left.enter(send).unwrap();
    assert_eq!(middle.join().unwrap().trim(), WORDS);
}

/// Whether a datagram crosses the bridge from the left to the right host.
fn datagram_crosses(line: &Line) -> bool {
    let receiver = line.right.enter(|| UdpSocket::bind("10.9.0.2:6000")).unwrap().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let sender = line.left.enter(|| UdpSocket::bind("10.9.0.1:0")).unwrap().unwrap();
    // Its checksum is left to hardware that is not there. It may be lost while the hosts ask for each other's addresses.
    sender.send_to(b"whole", "10.9.0.2:6000").unwrap();
    receiver.recv(&mut [0; 10]).is_ok_and(|length| length == 5)
}

/// Once privileges are gone, too.
#[test]
fn an_interface_that_comes_back_is_taken_up_again() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    let bridge = BridgeProcess::start(&line.middle, "xdp");
    wait("the first datagram", || datagram_crosses(&line).then_some(()));
    for _ in 0..2 {
        line.middle.exec("ip link set m2 down").unwrap();
        line.middle.exec("ip link set m2 up").unwrap();
        wait("a datagram after the interface was down", || datagram_crosses(&line).then_some(()));
        line.middle.exec("ip link delete m2").unwrap();
        line.right.join(("b0", "02:00:00:00:00:b0"), &line.middle, ("m2", "02:00:00:00:00:02")).unwrap();
        line.right.exec("ip address add 10.9.0.2/24 dev b0").unwrap();
        wait("a datagram after the interface was gone", || datagram_crosses(&line).then_some(()));
    }
    let (status, said) = bridge.stop(libc::SIGTERM);
    assert!(status.success() && said.contains("port 2 (m2) is up again"), "{said}");
}

/// A run waits without using the processor, also for an interface that is gone.
#[test]
fn a_run_sleeps_while_nothing_comes() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    let bridge = BridgeProcess::start(&line.middle, "xdp");
    wait("the first datagram", || datagram_crosses(&line).then_some(()));
    line.middle.exec("ip link delete m2").unwrap();
    let ticks = || {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", bridge.id())).unwrap();
        let fields: Vec<u64> =
            text.rsplit(')').next().unwrap().split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        fields[11] + fields[12]
    };
    std::thread::sleep(Duration::from_millis(200));
    let before = ticks();
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks() - before;
    bridge.stop(libc::SIGTERM);
    // Of a hundred that a second has.
    assert!(used < 20, "{used} ticks in a second");
}

/// Each queue has its socket, and frames of every queue arrive.
#[test]
fn frames_of_all_queues_arrive() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let [left, right] = [(); 2].map(|()| Namespace::new().unwrap());
    left.exec(&format!(
        "ip link add a0 numtxqueues 4 numrxqueues 4 type veth peer name b0 numtxqueues 4 numrxqueues 4 netns {}",
        right.name()
    ))
    .unwrap();
    for (namespace, device) in [(&left, "a0"), (&right, "b0")] {
        namespace.exec(&format!("ip link set {device} up")).unwrap();
    }
    left.exec("ip address add 10.9.0.1/24 dev a0").unwrap();
    left.exec("ip neighbour add 10.9.0.2 lladdr 02:00:00:00:00:b0 dev a0").unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = right.start_thread(move || {
        let mut port = Device::Xdp("b0".into()).open().unwrap();
        assert_eq!(port.how().as_deref(), Some("AF_XDP, native, copy, 4 queues"));
        let (mut arrivals, mut out) = (Arrivals::with_capacity(BATCH), Outbox::new().reserved());
        port.receive(Port(1), out.pool(), &mut arrivals).unwrap();
        ready.send(()).unwrap();
        let mut sources = std::collections::BTreeSet::new();
        wait("a frame of each flow", || {
            port.receive(Port(1), out.pool(), &mut arrivals).unwrap();
            for arrival in arrivals.drain(..) {
                // UDP over IPv4.
                if arrival.buffer.len() > 42 && arrival.buffer[12..14] == [8, 0] && arrival.buffer[23] == 17 {
                    sources.insert([arrival.buffer[34], arrival.buffer[35]]);
                }
            }
            (sources.len() >= 64).then_some(())
        });
    });
    is_ready.recv().unwrap();
    let sockets: Vec<UdpSocket> =
        left.enter(|| (0..64).map(|_| UdpSocket::bind("10.9.0.1:0").unwrap()).collect()).unwrap();
    for socket in &sockets {
        socket.send_to(b"x", "10.9.0.2:6000").unwrap();
    }
    receiver.join().unwrap();
}

#[test]
fn what_can_not_be_such_a_port_says_what_would_be_right() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::new();
    let open = || {
        let opened =
            line.middle.start_thread(|| Device::Xdp("m1".into()).open().map(drop).map_err(|error| error.to_string()));
        opened.join().unwrap()
    };
    line.middle.exec("ip link set m1 mtu 9000").unwrap();
    assert!(open().unwrap_err().contains("ip link set m1 mtu 3818"));
    line.middle.exec("ip link set m1 mtu 1500").unwrap();
    let bridge = BridgeProcess::start(&line.middle, "xdp");
    assert!(open().unwrap_err().contains("another XDP program"));
    bridge.stop(libc::SIGTERM);
    // The program goes away with the process.
    wait("a free interface", || open().ok());
    line.middle.exec("ip link set m1 down").unwrap();
    assert!(open().unwrap_err().contains("ip link set m1 up"));
}
