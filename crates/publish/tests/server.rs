//! The bridge's sockets: what is no request ends a connection, and is counted.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of real sockets")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use weftwire_publish::client::Publisher;
use weftwire_publish::kafka::broker::Limits;
use weftwire_publish::kafka::server::{Options, Report, Server};
use weftwire_publish::kafka::wire::Malformed;
use weftwire_publish::message::Message;
use weftwire_publish::topic::Topic;

const LIMIT: Duration = Duration::from_secs(10);

fn start() -> (Server, SocketAddr) {
    let local = [127, 0, 0, 1].into();
    // A port that is free now; other processes' are asked for no more.
    let destination = UdpSocket::bind((local, 0)).unwrap().local_addr().unwrap();
    let options = Options {
        listen: SocketAddr::new(local, 0),
        advertise: None,
        local,
        destination,
        topics: vec![(Topic::new("t").unwrap(), 1)],
        rate: None,
        datagram: None,
        limits: Limits::default(),
    };
    (Server::start(&options).unwrap(), destination)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn wait_until(server: &Server, condition: impl Fn(&Report) -> bool) {
    let start = Instant::now();
    while !condition(&server.report()) {
        assert!(start.elapsed() < LIMIT, "{:?}", server.report());
        std::thread::yield_now();
    }
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let (server, _) = start();
    // A list of more members than anybody needs: topics without names, of which there are more than bytes.
    let mut many = vec![0, 0, 0x30, 0, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0x17, 0];
    many.resize(4 + 0x3000, 0);
    let cases: [(&[u8], Malformed); 6] = [
        (&many, Malformed::Many),
        (&[0xff; 4], Malformed::NegativeLength),
        (&[0x7f, 0xff, 0xff, 0xff], Malformed::TooLarge),
        (&[0, 0, 0, 7], Malformed::Short),
        (&[0, 0, 0, 10, 0, 99, 0, 0, 0, 0, 0, 1, 0xff, 0xff], Malformed::Kind),
        (&[0, 0, 0, 10, 0, 3, 0, 99, 0, 0, 0, 1, 0xff, 0xff], Malformed::Version),
    ];
    for (bytes, malformed) in cases {
        let mut stream = connect(&server);
        stream.write_all(bytes).unwrap();
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0, "{malformed}");
        wait_until(&server, |report| report.malformed.get(&malformed) == Some(&1));
    }
    // Others are served as before: which requests there are.
    let mut stream = connect(&server);
    stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff]).unwrap();
    let mut answer = [0; 14];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4..], [0, 0, 0, 1, 0, 0, 0, 0, 0, 13]);
}

#[test]
fn what_comes_from_the_network_is_counted() {
    let (server, destination) = start();
    let mut publisher = Publisher::open([127, 0, 0, 1].into(), destination).unwrap();
    let t = Topic::new("t").unwrap();
    for _ in 0..3 {
        publisher.publish(&Message::new(t, b"x")).unwrap();
    }
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"no message", destination).unwrap();
    wait_until(&server, |report| report.broker.received == 3 && report.network.bad.len() == 1);
    assert_eq!(server.report().network.streams.missing, 0);
}

#[test]
fn silent_connections_lock_nobody_out() {
    let (server, _) = start();
    // More than there are places, of this machine, which may have them all.
    let silent: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
    let mut stream = connect(&server);
    stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff]).unwrap();
    let mut answer = [0; 14];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4..8], [0, 0, 0, 1]);
    // The first ones have lost their places, and hear it.
    let mut first = &silent[0];
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
    assert_eq!((server.report().made_room, server.report().too_many), (45, 0));
    // One that has asked something goes after those that have not.
    let more: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
    wait_until(&server, |report| report.made_room == 345);
    stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 2, 0xff, 0xff]).unwrap();
    let mut rest = vec![0; 4];
    // What is left of the first answer comes before the second.
    while !rest.ends_with(&[0, 0, 0, 2]) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        rest.push(byte[0]);
    }
    drop((silent, more));
}
