//! Connections that the server opens.

use crate::proxy::{
    CLIENT_ISN, CLIENT_NEXT, Proxy, RST, SERVER_ISN, SERVER_NEXT, SYN_ACK, ack, client_options, server_options, stamps,
    with_flags,
};
use weftwire_core::wire::builder::TcpFields;
use weftwire_core::wire::tcp::TcpFlags;

/// The server's SYN and the client's SYN-ACK, which pass as they are.
fn server_opens(proxy: &mut Proxy) {
    let request = TcpFields { sequence: SERVER_ISN, flags: TcpFlags::SYN, window: 65_160, ..TcpFields::default() };
    let passed = proxy.server(0, request, &server_options(), b"").remove(0);
    assert_eq!((passed.port, passed.flags, passed.sequence, passed.scale), (1, TcpFlags::SYN, SERVER_ISN, Some(10)));
    let answer = TcpFields { flags: SYN_ACK, window: 64_240, ..ack(SERVER_NEXT, CLIENT_ISN) };
    let passed = proxy.client(1, answer, &client_options(), b"").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.acknowledgment), (2, CLIENT_ISN, SERVER_NEXT));
    assert_eq!((passed.window, passed.scale, passed.stamps), (64_240, Some(9), Some((1_000, 0))));
    let passed =
        proxy.server(2, TcpFields { window: 100, ..ack(CLIENT_NEXT, SERVER_NEXT) }, &stamps(900_001), b"").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.acknowledgment), (1, SERVER_NEXT, CLIENT_NEXT));
    assert_eq!((passed.window, passed.stamps), (100, Some((900_001, 0))));
}

#[test]
fn connections_that_the_server_opens_pass_as_they_are_and_end() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    let mut proxy = Proxy::new(1);
    server_opens(&mut proxy);
    let passed = proxy.client(3, ack(SERVER_NEXT, CLIENT_NEXT), &stamps(1_003), b"data").remove(0);
    assert_eq!((passed.port, passed.sequence, passed.window, passed.stamps), (2, CLIENT_NEXT, 502, Some((1_003, 0))));
    // Its numbers are guarded like those of other connections, with both scales.
    let room = 100 << 10;
    let guess = proxy.client(600, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(room - 1)), &[], b"").remove(0);
    assert_eq!((guess.port, guess.flags, guess.sequence, guess.window), (1, TcpFlags::ACK, SERVER_NEXT, 100));
    assert_eq!(proxy.client(601, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(room)), &[], b""), []);
    let guess = proxy.server(1_200, with_flags(RST, 0, SERVER_NEXT + (502 << 9) - 1), &[], b"").remove(0);
    assert_eq!((guess.port, guess.flags, guess.sequence, guess.window), (2, TcpFlags::ACK, CLIENT_NEXT + 4, 502));
    proxy.server(1_201, with_flags(fin, CLIENT_NEXT.wrapping_add(4), SERVER_NEXT), &[], b"");
    assert_eq!(proxy.states(), ["established"]);
    proxy.client(1_202, with_flags(fin, SERVER_NEXT + 1, CLIENT_NEXT.wrapping_add(4)), &[], b"");
    assert_eq!(proxy.states(), ["closing"]);
    proxy.fire(31_202);
    assert_eq!(proxy.function.flows(), []);

    let mut proxy = Proxy::new(1);
    server_opens(&mut proxy);
    assert_eq!(proxy.client(3, with_flags(RST, 0, CLIENT_NEXT), &[], b"")[0].port, 2);
    proxy.fire(1_003);
    assert_eq!(proxy.function.flows(), []);
}

/// Today's scan by the server is not tomorrow's full table.
#[test]
fn what_nobody_answers_is_forgotten() {
    let request = || TcpFields { sequence: SERVER_ISN, flags: TcpFlags::SYN, ..TcpFields::default() };
    let mut proxy = Proxy::new(1);
    proxy.server(0, request(), &[], b"");
    assert_eq!(proxy.states(), ["opening"]);
    proxy.fire(30_000);
    assert_eq!(proxy.function.flows(), []);
    proxy.server(40_000, request(), &[], b"");
    let refused = RST.with(TcpFlags::ACK);
    for (acknowledgment, passes) in [(SERVER_NEXT + 1, 0), (SERVER_NEXT, 1)] {
        assert_eq!(proxy.client(40_001, with_flags(refused, acknowledgment, 0), &[], b"").len(), passes);
    }
    assert_eq!(proxy.function.flows(), []);
}
