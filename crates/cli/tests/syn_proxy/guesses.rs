//! Segments of somebody who guesses, after RFC 5961, and of those who are really gone.

use crate::proxy::{
    CLIENT_ISN, CLIENT_NEXT, CLIENT_ROOM, Proxy, RST, SERVER_NEXT, SERVER_ROOM, SYN_ACK, ack, client_options,
    server_options, syn, syn_ack, with_flags,
};
use weftwire_core::wire::builder::TcpFields;
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};

/// RFC 5961, section 3.2, from both sides: what is exact resets, what is in the window is asked about, all else is nothing.
#[test]
fn an_rst_must_be_exact() {
    let stamped = [TcpOption::Timestamps { value: 7, echo: 7 }];
    for (off, expected) in [
        (0, "closing"),
        (1, "challenge"),
        (SERVER_ROOM - 1, "challenge"),
        (SERVER_ROOM, "nothing"),
        (u32::MAX, "nothing"),
        (1 << 31, "nothing"),
    ] {
        let mut proxy = Proxy::new(1);
        let answer = proxy.establish(&server_options());
        let (isn, clock) = (answer.sequence, answer.stamps.expect("time stamps were offered").0);
        let rst = with_flags(RST, 0, CLIENT_NEXT.wrapping_add(off));
        let sent = proxy.client(600, rst, &stamped, b"");
        match expected {
            "closing" => assert_eq!((sent[0].port, sent[0].flags, sent[0].sequence), (2, RST, CLIENT_NEXT)),
            "challenge" => {
                let [sent] = &sent[..] else { panic!("{off}: {sent:?}") };
                assert_eq!((sent.port, sent.flags, sent.payload), (1, TcpFlags::ACK, 0));
                // In the client's numbers, with the window and the time stamps it knows.
                assert_eq!((sent.sequence, sent.acknowledgment), (isn.wrapping_add(1), CLIENT_NEXT));
                assert_eq!((sent.window, sent.stamps), (65_160 >> 7, Some((clock + 20, 1_010))));
            }
            _ => assert_eq!(sent, []),
        }
        assert_eq!(proxy.states(), [if expected == "closing" { "closing" } else { "established" }], "{off}");
    }
    for (off, expected) in [
        (0, "closing"),
        (1, "challenge"),
        (CLIENT_ROOM - 1, "challenge"),
        (CLIENT_ROOM, "nothing"),
        (u32::MAX, "nothing"),
    ] {
        let mut proxy = Proxy::new(1);
        let isn = proxy.establish(&server_options()).sequence;
        let sent = proxy.server(600, with_flags(RST, 0, SERVER_NEXT.wrapping_add(off)), &stamped, b"");
        match expected {
            "closing" => assert_eq!((sent[0].port, sent[0].flags, sent[0].sequence), (1, RST, isn.wrapping_add(1))),
            "challenge" => {
                let [sent] = &sent[..] else { panic!("{off}: {sent:?}") };
                assert_eq!((sent.port, sent.flags), (2, TcpFlags::ACK));
                assert_eq!((sent.sequence, sent.acknowledgment), (CLIENT_NEXT, SERVER_NEXT));
                assert_eq!((sent.window, sent.stamps), (502, Some((1_010, 900_000))));
            }
            _ => assert_eq!(sent, []),
        }
        assert_eq!(proxy.states(), [if expected == "closing" { "closing" } else { "established" }], "{off}");
    }
}

/// A challenge reaches one that has really gone, and its answer is exact.
#[test]
fn whoever_is_really_gone_answers_a_challenge_exactly() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    let data = ack(isn.wrapping_add(1), CLIENT_NEXT);
    assert_eq!(proxy.client(600, data, &[], &[0; 100])[0].payload, 100);
    // Behind what was acknowledged and before what was sent: somebody whose last bytes were lost.
    let challenge = proxy.client(601, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(50)), &[], b"").remove(0);
    assert_eq!((challenge.port, challenge.acknowledgment), (1, CLIENT_NEXT), "never more than the server acknowledged");
    let exact = proxy.client(602, with_flags(RST, 0, challenge.acknowledgment), &[], b"").remove(0);
    assert_eq!((exact.port, exact.flags, proxy.states()), (2, RST, vec!["closing".to_owned()]));

    // All that was sent is exact too: its acknowledgment may be on its way.
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    proxy.client(600, ack(isn.wrapping_add(1), CLIENT_NEXT), &[], &[0; 100]);
    let exact = proxy.client(601, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(100)), &[], b"").remove(0);
    assert_eq!((exact.port, exact.flags, proxy.states()), (2, RST, vec!["closing".to_owned()]));
}

/// RFC 5961, section 4.2.
#[test]
fn a_syn_of_an_established_connection_is_challenged() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    for (at, sequence) in [(600, 77), (1_200, CLIENT_NEXT), (1_800, CLIENT_ISN)] {
        let sent = proxy.client(at, TcpFields { sequence, ..syn() }, &client_options(), b"");
        let [sent] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((sent.port, sent.flags, sent.options), (1, TcpFlags::ACK, 12), "only the time stamps stay");
        assert_eq!((sent.sequence, sent.acknowledgment), (isn.wrapping_add(1), CLIENT_NEXT));
    }
    // Our ACK was lost and the server repeats its SYN-ACK: the challenge is what it waits for.
    let sent = proxy.server(2_400, syn_ack(), &server_options(), b"").remove(0);
    assert_eq!((sent.port, sent.flags), (2, TcpFlags::ACK));
    assert_eq!((sent.sequence, sent.acknowledgment, sent.stamps), (CLIENT_NEXT, SERVER_NEXT, Some((1_010, 900_000))));
    assert_eq!(proxy.states(), ["established"]);
}

#[test]
fn challenges_are_rare() {
    let mut proxy = Proxy::new(1);
    proxy.establish(&server_options());
    let rst = || with_flags(RST, 0, CLIENT_NEXT.wrapping_add(9));
    let challenges: usize = (600..1_600).map(|at| proxy.client(at, rst(), &[], b"").len()).sum();
    assert_eq!(challenges, 2, "in a second");
}

/// What somebody guesses does not move the numbers that an RST is measured by.
#[test]
fn guessed_segments_teach_the_proxy_nothing() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    let guesses = [
        // In the window, but with a gap in front; in order, but of an acknowledgment that can't be; far away.
        (ack(isn.wrapping_add(1), CLIENT_NEXT.wrapping_add(1_000)), CLIENT_NEXT.wrapping_add(1_100)),
        (ack(isn.wrapping_add(1 << 30), CLIENT_NEXT), CLIENT_NEXT.wrapping_add(100)),
        (ack(isn.wrapping_sub(9), CLIENT_NEXT), CLIENT_NEXT.wrapping_add(100)),
        (ack(isn.wrapping_add(1), 1 << 30), (1 << 30) + 100),
    ];
    for (at, (guess, end)) in (600..).step_by(600).zip(guesses) {
        assert_eq!(proxy.client(at, guess, &[], &[0; 100]).len(), 1, "the server will judge it");
        let sent = proxy.client(at + 1, with_flags(RST, 0, end), &[], b"");
        assert!(sent.iter().all(|sent| sent.port == 1 && sent.flags == TcpFlags::ACK), "{sent:?}");
    }
    assert_eq!(proxy.states(), ["established"]);
    // The real client's numbers count still.
    assert_eq!(proxy.client(9_000, with_flags(RST, 0, CLIENT_NEXT), &[], b"")[0].flags, RST);
}

/// A hole in what passes is closed by the other side's acknowledgment.
#[test]
fn an_acknowledgment_brings_the_proxy_up_to_date() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    // The first 100 bytes were lost in front of the proxy, and come last.
    proxy.client(600, ack(isn.wrapping_add(1), CLIENT_NEXT.wrapping_add(100)), &[], &[0; 100]);
    proxy.client(601, ack(isn.wrapping_add(1), CLIENT_NEXT), &[], &[0; 100]);
    proxy.server(602, ack(CLIENT_NEXT.wrapping_add(200), SERVER_NEXT), &[], b"");
    let rst = proxy.client(603, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(200)), &[], b"").remove(0);
    assert_eq!((rst.port, rst.flags), (2, RST));
}

#[test]
fn a_fin_counts_only_within_the_window() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    for (off, believed) in [(0, true), (500, true), (SERVER_ROOM, false), (u32::MAX - 9, false)] {
        let mut proxy = Proxy::new(1);
        let isn = proxy.establish(&server_options()).sequence;
        let passed = proxy.client(30, with_flags(fin, isn.wrapping_add(1), CLIENT_NEXT.wrapping_add(off)), &[], b"");
        assert_eq!((passed[0].port, passed[0].flags), (2, fin), "the server judges it itself");
        let passed = proxy.server(31, with_flags(fin, CLIENT_NEXT, SERVER_NEXT), &[], b"");
        assert_eq!((passed[0].port, passed[0].sequence), (1, isn.wrapping_add(1)));
        assert_eq!(proxy.states(), [if believed { "closing" } else { "established" }], "{off}");
    }
}

#[test]
fn half_open_connections_are_no_easier_to_kill() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &client_options(), b"")[0].sequence;
    for wrong in [0, 2, u32::MAX] {
        assert_eq!(proxy.client(600, with_flags(RST, 0, CLIENT_ISN.wrapping_add(wrong)), &[], b""), []);
    }
    let challenge = proxy.client(601, TcpFields { sequence: 99, ..syn() }, &client_options(), b"").remove(0);
    assert_eq!((challenge.port, challenge.flags, challenge.window), (1, TcpFlags::ACK, 0));
    assert_eq!((challenge.sequence, challenge.acknowledgment), (isn.wrapping_add(1), CLIENT_NEXT));
    assert_eq!(proxy.client(602, TcpFields { sequence: 98, ..syn() }, &[], b""), [], "not so soon again");
    // The server may have an older connection of these ports. It is refused; the SYN is not.
    let refusal = proxy.server(1_200, ack(77, 4_242), &[], b"old").remove(0);
    assert_eq!((refusal.port, refusal.flags, refusal.sequence, refusal.payload), (2, RST, 77, 0));
    assert_eq!(proxy.states(), ["syn_received"]);
    // A client that has started again answers the challenge, and its next SYN is new.
    assert_eq!(proxy.client(1_201, with_flags(RST, 0, challenge.acknowledgment), &[], b""), []);
    assert_eq!(proxy.function.flows(), []);
    let again = proxy.client(1_202, TcpFields { sequence: 99, ..syn() }, &[], b"").remove(0);
    assert_eq!((again.flags, again.acknowledgment), (SYN_ACK, 100));
}

#[test]
fn an_old_connection_of_the_server_does_not_block_a_new_one() {
    let mut proxy = Proxy::new(1);
    let isn = proxy.client(0, syn(), &[], b"")[0].sequence;
    proxy.client(0, ack(isn.wrapping_add(1), CLIENT_NEXT), &[], b"");
    assert_eq!(proxy.states(), ["connecting"]);
    // The server answers the SYN with a challenge, as it has an established connection of these ports.
    let refusal = proxy.server(600, ack(77, 4_242), &[], b"").remove(0);
    assert_eq!((refusal.port, refusal.flags, refusal.sequence), (2, RST, 77));
    for wrong in [CLIENT_ISN, CLIENT_NEXT.wrapping_add(1)] {
        assert_eq!(proxy.server(601, with_flags(RST.with(TcpFlags::ACK), wrong, 0), &[], b""), []);
        assert_eq!(proxy.client(602, with_flags(RST, 0, wrong), &[], b""), []);
    }
    assert_eq!(proxy.fire(1_000)[0].flags, TcpFlags::SYN, "the SYN goes again");
    assert_eq!(proxy.client(1_100, TcpFields { sequence: 5, ..syn() }, &[], b"")[0].flags, TcpFlags::ACK);
    assert_eq!(proxy.server(1_101, syn_ack(), &[], b"").len(), 2);
    assert_eq!(proxy.states(), ["established"]);
}
