//! Hosts beside scripts: two of them joined by a line, other transports than TCP, addresses, time, and what arrives from anybody.
#![allow(clippy::disallowed_methods, reason = "tests read examples")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use weft_shim::{
    Answer, Call, Errno, Family, Fd, Host, Interest, Patience, Progress, Setup, SetupError, Side, SocketOption, Watch,
};
use weftwire_catalog::Catalog;
use weftwire_core::Time;
use weftwire_image::VerifiedImage;

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLISECOND;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn image(name: &str) -> VerifiedImage {
    let catalog = Catalog { includes: Vec::new(), timers: None, report: &|_, _| {} };
    catalog.image(&example(name)).expect("a right program")
}

fn host(image: &VerifiedImage, parameters: &str) -> Host {
    let (setup, _) = Setup::parse(parameters).expect("right parameters");
    setup.start(image.clone()).expect("a host")
}

fn at(address: &str) -> SocketAddr {
    address.parse().expect("an address")
}

/// A call that does not wait.
fn now(host: &mut Host, call: Call) -> Result<Answer, Errno> {
    match host.start(call, Patience::None) {
        Progress::Over(result) => result,
        Progress::Waits(_) => panic!("it may not wait"),
    }
}

/// Two hosts and a line that takes a time, with packets that it loses by their number.
struct Line {
    hosts: [Host; 2],
    delay: i64,
    flying: Vec<(i64, usize, Vec<u8>)>,
    left: usize,
    lost: fn(usize) -> bool,
}

impl Line {
    fn new(hosts: [Host; 2], delay: i64, lost: fn(usize) -> bool) -> Line {
        Line { hosts, delay, flying: Vec::new(), left: 0, lost }
    }

    /// The next thing that happens. `false`: nothing does.
    fn step(&mut self) -> bool {
        for from in 0..2 {
            while let Some(frame) = self.hosts[from].frame_out() {
                self.left += 1;
                if !(self.lost)(self.left) {
                    self.flying.push((frame.at.nanoseconds() + self.delay, 1 - from, frame.bytes));
                }
            }
        }
        self.flying.sort_by_key(|(at, ..)| *at);
        let due = self.hosts.iter().filter_map(Host::next_deadline).map(Time::nanoseconds).min();
        let arrives = self.flying.first().map(|(at, ..)| *at);
        match (arrives, due) {
            (Some(arrives), due) if due.is_none_or(|due| arrives <= due) => {
                let (at, to, bytes) = self.flying.remove(0);
                self.hosts[to].advance(Time::from_nanoseconds(at - 1));
                self.hosts[to].advance(Time::from_nanoseconds(at));
                self.hosts[to].frame_in(&bytes);
            }
            (_, Some(due)) => self.hosts.iter_mut().for_each(|host| host.advance(Time::from_nanoseconds(due))),
            (_, None) => return false,
        }
        true
    }
}

/// A transfer from one host to the other; gives when it was over, and how many packets there were.
fn transfer(image: &VerifiedImage, addresses: [&str; 2], family: Family, lost: fn(usize) -> bool) -> (i64, usize) {
    const BYTES: usize = 300_000;
    let hosts = addresses.map(|address| host(image, &format!("local={address}")));
    let mut line = Line::new(hosts, 10 * MILLISECOND, lost);
    let there = SocketAddr::new(addresses[1].parse().unwrap(), 80);
    let server = line.hosts[1].socket(family);
    line.hosts[1].bind(server, there).unwrap();
    line.hosts[1].listen(server, 1).unwrap();
    let client = line.hosts[0].socket(family);
    let remote = there;
    let Progress::Waits(opened) = line.hosts[0].start(Call::Connect { fd: client, remote }, Patience::Endless) else {
        panic!("it waits")
    };
    let Progress::Waits(accepted) = line.hosts[1].start(Call::Accept { fd: server }, Patience::Endless) else {
        panic!("it waits")
    };
    let mut connection = None;
    let (mut opened, mut accepted) = (Some(opened), Some(accepted));
    let (mut written, mut closed, mut received) = (0, false, Vec::new());
    let byte = |at: usize| (at % 251) as u8;
    while line.step() {
        if opened.is_some_and(|ticket| line.hosts[0].take(ticket).is_some()) {
            opened = None;
        }
        if let Some(completion) = accepted.and_then(|ticket| line.hosts[1].take(ticket)) {
            let Ok(Answer::Accepted(fd, from)) = completion.result else { panic!("{completion:?}") };
            assert_eq!(from.ip().to_string(), addresses[0]);
            (accepted, connection) = (None, Some(fd));
        }
        if opened.is_none() && written < BYTES {
            let bytes = (written..(written + 50_000).min(BYTES)).map(byte).collect();
            match now(&mut line.hosts[0], Call::Send { fd: client, bytes, taken: 0 }) {
                Ok(Answer::Count(count)) => written += count,
                Err(Errno::Again) => {}
                other => panic!("{other:?}"),
            }
        }
        if written == BYTES && !closed {
            line.hosts[0].shutdown(client, Side::Write).unwrap();
            closed = true;
        }
        if let Some(fd) = connection {
            let call = Call::Receive { fd, most: 40_000, peek: false, all: false };
            match now(&mut line.hosts[1], call) {
                Ok(Answer::Bytes(bytes)) if bytes.is_empty() => {
                    assert_eq!(received.len(), BYTES);
                    return (line.hosts[1].now().nanoseconds(), line.left);
                }
                Ok(Answer::Bytes(bytes)) => received.extend(bytes),
                Err(Errno::Again) => {}
                other => panic!("{other:?}"),
            }
            let wrong = received.iter().enumerate().position(|(at, seen)| *seen != byte(at));
            assert_eq!(wrong, None, "the first wrong byte");
        }
    }
    panic!("it ends with {} of {BYTES} bytes", received.len());
}

#[test]
fn two_hosts_exchange_data_in_virtual_time() {
    let image = image("transports/tcp/tcp.xl");
    let clean = transfer(&image, ["10.0.0.1", "10.0.0.2"], Family::V4, |_| false);
    // Handshake, slow start of ten segments and a FIN: a handful of round trips of 20 ms.
    assert!(clean.0 < SECOND, "{} ns", clean.0);
    assert_eq!(transfer(&image, ["10.0.0.1", "10.0.0.2"], Family::V4, |_| false), clean, "every run is the same");
    transfer(&image, ["fd00::1", "fd00::2"], Family::V6, |_| false);
    let lossy = transfer(&image, ["10.0.0.1", "10.0.0.2"], Family::V4, |number| number % 13 == 0);
    assert!(lossy.1 > clean.1, "{lossy:?} {clean:?}");
}

#[test]
fn any_transport_can_be_driven() {
    let machine = image("arq-sender.xl");
    let mut host = host(&machine, "protocol=17,shortest_timeout=20ms");
    let fd = host.socket(Family::V4);
    assert_eq!(now(&mut host, Call::Connect { fd, remote: at("192.0.2.1:9") }), Ok(Answer::Done), "no handshake");
    let bytes = vec![7; 1_500];
    assert_eq!(now(&mut host, Call::Send { fd, bytes, taken: 0 }), Ok(Answer::Count(1_500)));
    let first = host.frame_out().expect("the first segment");
    assert_eq!((first.at, first.bytes[9]), (Time::ZERO, 17));
    assert!(host.run_to_frame(Time::from_nanoseconds(SECOND)), "it comes again");
    assert_eq!(host.frame_out().expect("the same").at.nanoseconds(), 100 * MILLISECOND);
    // It has no option that TCP has, and no buffer to receive into.
    assert_eq!(host.option(fd, SocketOption::NoDelay), Err(Errno::NoOption));
    assert_eq!(host.option(fd, SocketOption::ReceiveBuffer), Err(Errno::NoOption));
    assert_eq!(host.tcp_info(fd).expect("what is known").window, None);
    assert!(matches!(
        Setup { receive_buffer: Some(1), ..Setup::default() }.start(machine),
        Err(SetupError::NoReceiveBuffer)
    ));
}

#[test]
fn ports_of_connections_are_hard_to_guess_and_free() {
    let image = image("transports/tcp/tcp.xl");
    let ports = |seed: u64| {
        let mut host = host(&image, &format!("local=10.0.0.1,seed={seed}"));
        let port = |_| {
            let fd = host.socket(Family::V4);
            assert_eq!(now(&mut host, Call::Connect { fd, remote: at("10.0.0.2:80") }), Err(Errno::InProgress));
            host.local_address(fd).expect("an address").port()
        };
        (0..200).map(port).collect::<Vec<u16>>()
    };
    let first = ports(1);
    let mut sorted = first.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 200, "each is used once");
    assert!(first.iter().all(|port| *port >= 49_152));
    assert_ne!(first, ports(2), "they depend on a key");
    assert_eq!(first, ports(1));
}

#[test]
fn addresses_of_both_families() {
    let image = image("transports/tcp/tcp.xl");
    let mut host = host(&image, "local=10.0.0.1,local=fd00::1");
    let four = host.socket(Family::V4);
    assert_eq!(host.bind(four, at("[fd00::1]:80")), Err(Errno::AddressFamily));
    assert_eq!(host.bind(four, at("10.0.0.9:80")), Err(Errno::AddressNotAvailable));
    host.bind(four, at("10.0.0.1:0")).expect("any port");
    assert!(host.local_address(four).expect("an address").port() >= 49_152);
    // One of IPv6 takes those of IPv4 too, unless it says that it does not.
    let six = host.socket(Family::V6);
    host.bind(six, at("[::ffff:10.0.0.1]:80")).expect("an address of IPv4 inside");
    assert_eq!(host.local_address(six), Ok(at("[::ffff:10.0.0.1]:80")));
    let only = host.socket(Family::V6);
    host.set_option(only, SocketOption::V6Only, weft_shim::OptionValue::Number(1)).expect("an option");
    assert_eq!(host.bind(only, at("[::ffff:10.0.0.1]:81")), Err(Errno::AddressNotAvailable));
    assert_eq!(now(&mut host, Call::Connect { fd: four, remote: at("[fd00::2]:80") }), Err(Errno::AddressFamily));
    assert_eq!(now(&mut host, Call::Connect { fd: six, remote: at("[::ffff:10.0.0.2]:80") }), Err(Errno::InProgress));
    let frame = host.frame_out().expect("a SYN");
    assert_eq!(frame.bytes[0] >> 4, 4);
}

#[test]
fn a_call_that_waits_lets_time_pass_until_a_packet_leaves() {
    let mut host = host(&image("transports/tcp/tcp.xl"), "");
    let fd = host.socket(Family::V4);
    let Progress::Waits(ticket) = host.start(Call::Connect { fd, remote: at("192.0.2.1:80") }, Patience::OfSocket)
    else {
        panic!("it waits")
    };
    let mut syns = Vec::new();
    let completion = loop {
        match host.wait(ticket) {
            Some(completion) => break completion,
            None => syns.push(host.frame_out().expect("a SYN").at.nanoseconds() / SECOND),
        }
    };
    assert_eq!(syns[..6], [0, 1, 3, 7, 15, 31]);
    assert_eq!(completion.result, Err(Errno::TimedOut));
    assert_eq!(completion.at, host.now());
    // Nothing is due any more, so that nothing can ever happen.
    let listening = host.socket(Family::V4);
    host.listen(listening, 1).expect("any port");
    let Progress::Waits(ticket) = host.start(Call::Accept { fd: listening }, Patience::OfSocket) else {
        panic!("it waits")
    };
    assert_eq!((host.wait(ticket), host.next_deadline()), (None, None));
    host.close(listening).expect("a socket");
    assert_eq!(host.take(ticket).expect("it is over").result, Err(Errno::BadDescriptor));
}

#[test]
fn sockets_are_watched() {
    let mut host = host(&image("transports/tcp/tcp.xl"), "");
    let (watcher, fd) = (host.watcher(), host.socket(Family::V4));
    let watch = Watch { interest: Interest::OUT, data: 5, once: true };
    assert_eq!(host.rewatch(watcher, fd, Some(watch)), Err(Errno::NoEntry));
    assert_eq!(host.watch(watcher, Fd(77), watch), Err(Errno::BadDescriptor));
    assert_eq!(host.watch(fd, watcher, watch), Err(Errno::Invalid));
    host.watch(watcher, fd, watch).expect("a socket");
    let wait = || Call::WaitForWatched { fd: watcher, most: 9 };
    let told = Answer::Watched(vec![(Interest::OUT.with(Interest::HANG_UP, true), 5)]);
    assert_eq!(now(&mut host, wait()), Ok(told));
    assert_eq!(now(&mut host, wait()), Ok(Answer::Watched(Vec::new())), "it is told once");
    // A call with patience ends when that does.
    let Progress::Waits(ticket) = host.start(wait(), Patience::For(30 * MILLISECOND)) else { panic!("it waits") };
    assert_eq!(host.next_deadline(), Some(Time::from_nanoseconds(30 * MILLISECOND)));
    let completion = host.wait(ticket).expect("it ends");
    assert_eq!((completion.at.nanoseconds(), completion.result), (30 * MILLISECOND, Ok(Answer::Watched(Vec::new()))));
}

/// Whatever arrives and whatever applications call, in any order: no call panics, and time never goes back.
#[test]
fn nothing_from_outside_breaks_a_host() {
    let image = image("transports/tcp/tcp.xl");
    for seed in 0..20_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut dice = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut host = host(&image, &format!("local=10.0.0.1,seed={seed},receive_buffer=8192"));
        let mut sent: Vec<Vec<u8>> = Vec::new();
        let mut before = host.now();
        for step in 0..400 {
            let fd = Fd(3 + dice(5) as i32);
            // What fails says so; that it may is the point.
            match dice(16) {
                0 => drop(host.socket(Family::V4)),
                1 => drop(host.bind(fd, at("10.0.0.1:80"))),
                2 => drop(host.listen(fd, dice(3) as i32)),
                3 => drop(host.close(fd)),
                4 => drop(host.shutdown(fd, [Side::Read, Side::Write, Side::Both][dice(3) as usize])),
                5 => drop(host.start(Call::Connect { fd, remote: at("10.0.0.1:80") }, Patience::For(SECOND))),
                6 => drop(host.start(Call::Accept { fd }, Patience::For(SECOND))),
                7 => {
                    drop(host.start(Call::Send { fd, bytes: vec![1; dice(5_000) as usize], taken: 0 }, Patience::None))
                }
                8 => {
                    let call = Call::Receive { fd, most: dice(5_000) as usize, peek: dice(2) == 0, all: dice(2) == 0 };
                    drop(host.start(call, Patience::For(SECOND)));
                }
                9 => drop(host.option(fd, SocketOption::Error)),
                10 => drop(host.tcp_info(fd)),
                11 => host.advance(host.now().after(dice(3 * SECOND as u64) as i64)),
                12 => host.frame_in(&(0..dice(80)).map(|_| dice(256) as u8).collect::<Vec<u8>>()),
                // What has left comes back, whole or with a changed byte: both ends are this host.
                _ => {
                    if let Some(mut bytes) = sent.get(dice(sent.len().max(1) as u64) as usize).cloned() {
                        if dice(3) == 0 {
                            let place = dice(bytes.len() as u64) as usize;
                            bytes[place] ^= 1 << dice(8);
                        }
                        host.frame_in(&bytes);
                    }
                }
            }
            while let Some(frame) = host.frame_out() {
                sent.push(frame.bytes);
            }
            assert!(host.now() >= before, "seed {seed}, step {step}: time goes back");
            before = host.now();
        }
    }
}
