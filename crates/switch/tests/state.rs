//! A switch is a value: put into another one at any packet, it goes on as if nothing had happened.

use crate::common::compile;
use proptest::prelude::*;
use weftwire_core::inspect::Inspect;
use weftwire_core::live::Clocks;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, Function, LinkType, MacAddress, Offload, Outbox, Output, Port, Ports, Time};
use weftwire_subscribe::Compiler;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::Registry;
use weftwire_switch::state::{RulesName, SwitchState, SwitchStateError};

const IP: &str = include_str!("../../../examples/subscriptions/ip.p4");
/// A router with an ICMP limiter, and rules about the messages of windows.
const RULES: &str = "
    ipv4.ttl <= 1 : timeExceeded(10.0.1.254);
    ipv4.destination in 10.0.2.0/24 : fwd(2);
    ipv4.ttl > 1 and count() over 2ms > 3 : fwd(3);
    ipv4.ttl > 1 and sum(ipv4.ttl) over 5ms > 100 : fwd(4);
    ipv4.destination == 10.0.2.7 and max(ipv4.ttl) over 3ms < 40 : answerEcho(), fwd(4);
";

const RULES_NAME: RulesName = RulesName { revision: 7, digest: [3; 32] };

fn rules() -> Compiler {
    compile(&[IP], RULES)
}

fn switch(compiler: &Compiler) -> SubscriptionSwitch {
    let ports = Ports::new((1..=4).map(|port| (Port(port), LinkType::Ethernet)));
    SubscriptionSwitch::with_actions(compiler, ports, Registry::built_in()).expect("built in")
}

/// Time passes, and a datagram to this host comes with so many hops left.
type Packet = (i64, u8, u8);

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let packet = (prop::sample::select(vec![0_i64, 100_000, 900_000, 4_000_000]), 0..9_u8, 0..60_u8);
    prop::collection::vec(packet, 1..60)
}

fn pass(switch: &mut SubscriptionSwitch, now: i64, host: u8, ttl: u8) -> Vec<(u16, Vec<u8>, Offload)> {
    let fields = Ipv4Fields {
        source: [10, 0, 1, 1].into(),
        destination: [10, 0, 2, host].into(),
        ttl: ttl.saturating_sub(10),
        ..Ipv4Fields::default()
    };
    let frame = FrameBuilder::ethernet(MacAddress([2; 6]), MacAddress([4; 6])).ipv4(&fields).udp(7, 8);
    let frame = frame.payload(b"data").finish().expect("a small datagram");
    let mut out = Outbox::new();
    switch.frame(Time::from_nanoseconds(now), Port(1), Frame::new(&frame), &mut out);
    let sent = |item: &Output| match item {
        Output::Send { port, bytes, offload, .. } => Some((port.0, out.bytes(bytes).to_vec(), *offload)),
        _ => None,
    };
    out.items().iter().filter_map(sent).collect()
}

/// How a state is changed on its way.
type Change = fn(&mut SwitchState);

/// Another switch with this one's state.
fn moved(switch: &SubscriptionSwitch, rules: &Compiler, change: Option<Change>) -> SubscriptionSwitch {
    let mut state = switch.snapshot(RULES_NAME, &[Port(3)]);
    change.iter().for_each(|change| change(&mut state));
    let bytes = state.to_bytes();
    let read = SwitchState::from_bytes(&bytes).expect("it was just written");
    assert_eq!(read, state);
    let mut other = self::switch(rules);
    other.restore(&read, RULES_NAME).expect("the same rules");
    if change.is_none() {
        assert_eq!(other.snapshot(RULES_NAME, &[Port(3)]).to_bytes(), bytes, "snapshot(restore(b)) = b");
    }
    other
}

/// Two switches in lock step, one of them replaced by its restore around every packet. Whether they ever differ.
fn differs(packets: &[Packet], change: Option<Change>) -> bool {
    let rules = rules();
    let (mut stays, mut moves) = (switch(&rules), switch(&rules));
    let mut now = 0;
    for (time, host, ttl) in packets {
        now += time;
        moves = moved(&moves, &rules, change);
        let differ = pass(&mut stays, now, *host, *ttl) != pass(&mut moves, now, *host, *ttl);
        if differ || stays.counters() != moves.counters() {
            return true;
        }
    }
    stays.snapshot(RULES_NAME, &[]) != moved(&moves, &rules, change).snapshot(RULES_NAME, &[])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_switch_that_moves_goes_on_as_if_it_had_stayed(packets in packets()) {
        let differ = differs(&packets, None);
        prop_assert!(!differ);
    }

    #[test]
    fn bytes_from_anywhere_are_refused_or_written_again(
        packets in packets(),
        place in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let rules = rules();
        let mut first = switch(&rules);
        for (number, (_, host, ttl)) in packets.iter().enumerate() {
            pass(&mut first, number as i64, *host, *ttl);
        }
        let clocks = Some(Clocks { boot: [7; 16], monotonic: -1, tai: 1 << 40 });
        let mut bytes = SwitchState { clocks, ..first.snapshot(RULES_NAME, &[Port(3), Port(4)]) }.to_bytes();
        let place = place.index(bytes.len());
        prop_assert!(SwitchState::from_bytes(&bytes[..place]).is_err());
        bytes[place] ^= flip;
        if let Ok(state) = SwitchState::from_bytes(&bytes) {
            prop_assert_eq!(state.to_bytes(), bytes);
            // Other rules, windows or actions are errors; all else lives.
            let _ = switch(&rules).restore(&state, RULES_NAME);
        }
    }
}

#[test]
fn whatever_is_left_out_is_found() {
    let omissions: [(&str, Change); 7] = [
        ("time", |state| state.time = Time::ZERO),
        ("counts", |state| state.counts = [0; 4]),
        ("drops", |state| state.drops.clear()),
        ("notes", |state| state.notes.clear()),
        ("calls", |state| state.calls.clear()),
        ("memories", |state| state.memories.clear()),
        ("windows", |state| state.windows.clear()),
    ];
    // More packets with no hop left than errors may be sent, and windows that fill up.
    let packets: Vec<Packet> = (0..200).map(|number| (100_000, (number % 9) as u8, (number % 60) as u8)).collect();
    let flood: Vec<Packet> = (0..120).map(|_| (0, 1, 0)).collect();
    for (name, change) in omissions {
        assert!(differs(&packets, Some(change)) || differs(&flood, Some(change)), "{name} was left out and not missed");
    }
}

#[test]
fn other_rules_are_told() {
    let state = switch(&rules()).snapshot(RULES_NAME, &[]);
    let other = RulesName { revision: 8, ..RULES_NAME };
    let refused = switch(&rules()).restore(&state, other);
    assert_eq!(refused, Err(SwitchStateError::OtherRules { state: 7, here: 8 }));
    let without = compile(&[IP], "ipv4.ttl <= 1 : fwd(1);");
    let refused = switch(&without).restore(&state, RULES_NAME).expect_err("no such action").to_string();
    assert_eq!(refused, "the rules of this switch have no action `timeExceeded(10.0.1.254)` that remembers anything");
}
