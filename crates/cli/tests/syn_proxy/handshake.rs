//! The handshake on either side, and what comes of one that does not end.

use crate::proxy::{CLIENT_ISN, Proxy, SERVER_ISN, SYN_ACK, ack, client_options, server_options, stamps, syn, syn_ack};
use weftwire_core::wire::tcp::TcpFlags;

#[test]
fn the_answer_promises_what_the_client_offered_and_opens_no_window() {
    let answer = Proxy::new(1).client(0, syn(), &client_options(), b"").remove(0);
    assert_eq!((answer.port, answer.flags, answer.window), (1, SYN_ACK, 0));
    assert_eq!(answer.acknowledgment, CLIENT_ISN.wrapping_add(1));
    assert_eq!((answer.scale, answer.stamps.map(|(_, echo)| echo)), (Some(7), Some(1_000)));
    let bare = Proxy::new(1).client(0, syn(), &[], b"").remove(0);
    assert_eq!((bare.scale, bare.stamps, bare.options), (None, None, 0));
}

#[test]
fn the_initial_sequence_number_hangs_on_the_secret_and_the_clock() {
    let first = |seed, at| Proxy::new(seed).client(at, syn(), &[], b"")[0].sequence;
    assert_ne!(first(1, 0), first(2, 0), "another secret, another number");
    assert_eq!(first(1, 1).wrapping_sub(first(1, 0)), 250, "a clock of 4 microseconds (RFC 6528)");
}

#[test]
fn only_the_right_acknowledgment_brings_the_syn_to_the_server() {
    let mut proxy = Proxy::new(1);
    let answer = proxy.client(0, syn(), &client_options(), b"").remove(0);
    let isn = answer.sequence;
    assert_eq!(proxy.client(1, syn(), &client_options(), b""), [answer], "a repeated SYN gets the same answer");
    let next = CLIENT_ISN.wrapping_add(1);
    for wrong in [isn, isn.wrapping_add(2), 0] {
        assert_eq!(proxy.client(2, ack(wrong, next), &[], b""), []);
    }
    assert_eq!(proxy.client(2, ack(isn.wrapping_add(1), next.wrapping_add(5)), &[], b""), []);
    let replayed = proxy.client(3, ack(isn.wrapping_add(1), next), &stamps(1_003), b"").remove(0);
    assert_eq!((replayed.port, replayed.flags, replayed.sequence), (2, TcpFlags::SYN, CLIENT_ISN), "without ECN");
    assert_eq!((replayed.window, replayed.scale, replayed.stamps), (64_240, Some(9), Some((1_000, 0))));
    assert_eq!(replayed.options, 24, "all of the client's options, also those that the proxy does not know");
}

#[test]
fn both_ends_get_a_connection_that_fits_the_other() {
    let mut proxy = Proxy::new(1);
    let answer = proxy.client(0, syn(), &client_options(), b"").remove(0);
    let next = CLIENT_ISN.wrapping_add(1);
    proxy.client(10, ack(answer.sequence.wrapping_add(1), next), &stamps(1_010), b"");
    let sent = proxy.server(20, syn_ack(), &server_options(), b"");
    let [to_server, to_client] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((to_server.port, to_server.flags, to_server.sequence), (2, TcpFlags::ACK, next));
    assert_eq!((to_server.acknowledgment, to_server.window), (SERVER_ISN + 1, 502));
    assert_eq!((to_server.stamps, to_server.options), (Some((1_010, 900_000)), 12), "no options of a SYN on an ACK");
    assert_eq!((to_client.port, to_client.flags), (1, TcpFlags::ACK));
    assert_eq!(to_client.sequence, answer.sequence.wrapping_add(1));
    assert_eq!(to_client.window, 65_160 >> 7, "a window in a SYN is not scaled");
    let clock = answer.stamps.expect("time stamps were offered").0;
    assert_eq!(to_client.stamps.map(|(value, _)| value), Some(clock + 20), "the clock goes on");
}

#[test]
fn half_open_flows_expire_and_unknown_connections_are_reset() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &client_options(), b"")[0].sequence;
    assert_eq!(proxy.fire(4_999), []);
    assert_eq!(proxy.function.flows().len(), 1);
    assert_eq!(proxy.fire(5_000), []);
    assert_eq!(proxy.function.flows(), []);
    let late = proxy.client(5_001, ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &[], b"").remove(0);
    assert_eq!((late.port, late.flags, late.sequence), (1, TcpFlags::RST, isn.wrapping_add(1)));
    assert_eq!(proxy.states(), ["refused"]);
    proxy.fire(6_001);
    assert_eq!(proxy.function.flows(), []);
}

#[test]
fn a_server_that_does_not_answer_is_asked_again_and_then_given_up() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &[], b"")[0].sequence;
    proxy.client(0, ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)), &[], b"");
    let mut repeated = 0;
    let last = loop {
        let due = proxy.function.next_deadline().expect("a timer runs").at.nanoseconds() / 1_000_000;
        let sent = proxy.fire(due).remove(0);
        if sent.port == 1 {
            break sent;
        }
        assert_eq!((sent.flags, sent.sequence), (TcpFlags::SYN, CLIENT_ISN));
        repeated += 1;
    };
    assert_eq!((repeated, last.flags), (4, TcpFlags::RST.with(TcpFlags::ACK)));
    assert_eq!(last.sequence, isn.wrapping_add(1));
    assert_eq!(proxy.function.flows(), []);
}
