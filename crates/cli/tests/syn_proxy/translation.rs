//! What the proxy changes in the segments of a connection.

use crate::proxy::{CLIENT_ISN, Proxy, SERVER_ISN, ack, server_options};
use weftwire_core::wire::builder::TcpFields;
use weftwire_core::wire::tcp::{SackBlocks, TcpOption};

#[test]
fn sequence_numbers_sack_blocks_stamps_and_windows_are_translated() {
    let mut proxy = Proxy::new(1);
    let answer = proxy.establish(&server_options());
    let (isn, clock) = (answer.sequence, answer.stamps.expect("time stamps were offered").0);
    let theirs = |relative: u32| SERVER_ISN.wrapping_add(relative);
    let seen = |relative: u32| isn.wrapping_add(relative);

    let data = TcpFields { window: 100, ..ack(CLIENT_ISN.wrapping_add(1), theirs(1)) };
    let stamped = [TcpOption::Timestamps { value: 900_005, echo: 1_010 }];
    let passed = proxy.server(25, data, &stamped, b"data").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.payload), (1, seen(1), 4));
    assert_eq!(passed.window, 800, "100 << 10 >> 7");
    assert_eq!(passed.stamps, Some((clock + 25, 1_010)));

    let blocks: Vec<u8> = [(11, 21), (31, 41), (51, 61)]
        .iter()
        .flat_map(|(l, r)| [seen(*l), seen(*r)])
        .flat_map(u32::to_be_bytes)
        .collect();
    let options = [
        TcpOption::Timestamps { value: 1_030, echo: clock + 25 },
        TcpOption::Sack(SackBlocks::new(&blocks).expect("three blocks")),
    ];
    let passed = proxy.client(30, ack(seen(5), CLIENT_ISN.wrapping_add(1)), &options, b"").remove(0);
    assert_eq!((passed.port, passed.acknowledgment), (2, theirs(5)));
    assert_eq!(passed.sack, [(theirs(11), theirs(21)), (theirs(31), theirs(41)), (theirs(51), theirs(61))]);
    assert_eq!(passed.stamps, Some((1_030, 900_005)));
    assert_eq!((passed.sequence, passed.window), (CLIENT_ISN.wrapping_add(1), 502), "the client's own are not touched");
}

#[test]
fn a_server_that_does_not_scale_windows_sees_whole_ones() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&[]).sequence;
    let passed = proxy.client(30, ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &[], b"").remove(0);
    assert_eq!(passed.window, 65_535, "502 << 9 is more than a window without scale can say");
    let data = TcpFields { window: 64_000, ..ack(CLIENT_ISN.wrapping_add(1), SERVER_ISN + 1) };
    assert_eq!(proxy.server(31, data, &[], b"").remove(0).window, 64_000 >> 7);
}
