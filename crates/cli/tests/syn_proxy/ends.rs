//! Ends of connections, and segments of those that are not there.

use crate::proxy::{
    CLIENT_ISN, CLIENT_NEXT, Proxy, RST, SERVER_ISN, SERVER_NEXT, SYN_ACK, ack, server_options, stamps, syn, with_flags,
};
use weftwire_core::wire::builder::TcpFields;
use weftwire_core::wire::tcp::TcpFlags;

#[test]
fn resets_and_both_fins_end_the_flow() {
    for fins in [true, false] {
        let mut proxy = Proxy::new(1);
        let isn = proxy.establish(&server_options()).sequence;
        let end = if fins { TcpFlags::FIN.with(TcpFlags::ACK) } else { TcpFlags::RST };
        let from_client = TcpFields { flags: end, ..ack(isn.wrapping_add(1), CLIENT_ISN.wrapping_add(1)) };
        let from_server = TcpFields { flags: end, ..ack(CLIENT_ISN.wrapping_add(2), SERVER_ISN + 1) };
        assert_eq!(proxy.client(30, from_client, &[], b"")[0].flags, end);
        if fins {
            assert_eq!(proxy.server(31, from_server, &[], b"")[0].sequence, isn.wrapping_add(1));
        }
        proxy.fire(if fins { 30_030 } else { 1_029 });
        assert_eq!(proxy.function.flows().len(), 1);
        proxy.fire(if fins { 30_031 } else { 1_030 });
        assert_eq!(proxy.function.flows(), []);
    }
}

/// RFC 9293, section 3.10.7.4, TIME-WAIT.
#[test]
fn a_closed_connection_s_ports_are_used_again_by_a_later_syn_only() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    let mut proxy = Proxy::new(1);
    let isn = proxy.establish(&server_options()).sequence;
    proxy.client(600, with_flags(fin, isn.wrapping_add(1), CLIENT_NEXT), &[], b"");
    proxy.server(601, with_flags(fin, CLIENT_NEXT.wrapping_add(1), SERVER_NEXT), &[], b"");
    let last = proxy.client(602, ack(isn.wrapping_add(2), CLIENT_NEXT.wrapping_add(1)), &[], b"").remove(0);
    assert_eq!((last.port, last.acknowledgment), (2, SERVER_NEXT + 1));
    let old = proxy.client(1_200, TcpFields { sequence: CLIENT_ISN, ..syn() }, &[], b"").remove(0);
    assert_eq!((old.port, old.flags, old.acknowledgment), (1, TcpFlags::ACK, CLIENT_NEXT.wrapping_add(1)));
    let rst = proxy.client(1_201, with_flags(RST, 0, CLIENT_NEXT.wrapping_add(500)), &[], b"");
    assert_eq!(rst, [], "challenged just now");
    let new = proxy.client(1_202, TcpFields { sequence: CLIENT_NEXT.wrapping_add(2), ..syn() }, &[], b"").remove(0);
    assert_eq!((new.flags, new.acknowledgment), (SYN_ACK, CLIENT_NEXT.wrapping_add(3)));
    assert_eq!(proxy.states(), ["syn_received"]);
}

/// RFC 9293, section 3.10.7.1: after a restart, or when the flow has gone.
#[test]
fn each_side_is_told_of_connections_that_are_not_there_by_its_own_segments() {
    let mut proxy = Proxy::new(1);
    let refusal = proxy.server(0, ack(77, 4_242), &stamps(5), b"data").remove(0);
    assert_eq!((refusal.port, refusal.flags, refusal.sequence, refusal.acknowledgment), (2, RST, 77, 0));
    assert_eq!((refusal.options, refusal.payload, refusal.window), (0, 0, 0));
    // A window of segments gets one RST a second, and the other side, if it speaks in that time, none.
    assert_eq!(proxy.server(1, ack(77, 4_246), &[], b"data"), []);
    assert_eq!(proxy.client(2, ack(4_250, 77), &[], b""), []);
    proxy.fire(1_000);
    assert_eq!(proxy.function.flows(), []);
    assert_eq!(proxy.server(1_001, ack(77, 4_246), &[], b"data").len(), 1);
    // A new connection need not wait.
    assert_eq!(proxy.client(1_002, syn(), &[], b"")[0].flags, SYN_ACK);

    let no_ack = TcpFields { flags: TcpFlags::FIN, sequence: 10, ..TcpFields::default() };
    let refusal = Proxy::new(1).client(0, no_ack, &[], b"data").remove(0);
    assert_eq!((refusal.port, refusal.flags), (1, RST.with(TcpFlags::ACK)));
    assert_eq!((refusal.sequence, refusal.acknowledgment), (0, 15));

    for flags in [RST, RST.with(TcpFlags::ACK), RST.with(TcpFlags::SYN)] {
        let mut proxy = Proxy::new(1);
        assert_eq!(proxy.server(0, with_flags(flags, 77, 1), &[], b""), [], "never for an RST");
        assert_eq!(proxy.client(0, with_flags(flags, 77, 1), &[], b""), []);
        assert_eq!(proxy.function.flows(), []);
    }
}

#[test]
fn the_answer_can_be_turned_off() {
    let mut proxy = Proxy::changed(1, |image| {
        let register = image.registers.iter_mut().find(|register| register.name == "answer_unknown");
        register.expect("the parameter").initial = 0;
    });
    assert_eq!(proxy.server(0, ack(77, 4_242), &[], b"data"), []);
    assert_eq!(proxy.client(0, ack(77, 4_242), &[], b"data"), []);
    assert_eq!(proxy.function.flows(), []);
    assert_eq!(proxy.client(0, syn(), &[], b"").len(), 1);
}
