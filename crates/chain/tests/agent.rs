//! What an agent does beside setting chains up: ICMP errors, ends, limits, states, fragments.

mod world;

use std::net::{IpAddr, SocketAddr};
use weftwire_chain::segment::{Found, Segment, find};
use weftwire_chain::session::Phase;
use weftwire_chain::state::AgentState;
use weftwire_chain::{Agent, HOST, NETWORK};
use weftwire_core::checksum::{Sum, checksum};
use weftwire_core::inspect::Inspect as _;
use weftwire_core::outbox::sent;
use weftwire_core::port::{Checksum, Offload, Segmentation, SegmentationKind};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{Change, Frame, Function as _, LinkType, Outbox, Port, Time};
use world::{Kind, SECOND, World, address, agent, config, policy};

fn at(seconds: i64) -> Time {
    Time::from_nanoseconds(seconds * SECOND)
}

fn segment(packet: &[u8]) -> Segment {
    match find(LinkType::Ip, packet) {
        Ok(Found::Segment(segment)) => segment,
        other => panic!("{other:?}"),
    }
}

/// Client, a router as box, server; the session is open and stays so.
fn open() -> World {
    let mut world = World::chain(1, false, vec![Kind::Router], [100, 100]);
    world.run(Time::from_nanoseconds(5_000_000));
    world
}

fn pass(agent: &mut Agent, port: Port, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Outbox::new();
    agent.frame(at(1), port, Frame::new(bytes), &mut out);
    out.items().first().and_then(|item| sent(&out, item)).map(|(_, frame)| frame.bytes.to_vec())
}

/// "Fragmentation needed" from a router, with so many bytes of the packet that it is about.
fn too_big(about: &[u8], quoted: usize) -> Vec<u8> {
    let mut icmp = vec![3, 4, 0, 0, 0, 0, 5, 0];
    icmp.extend(&about[..quoted]);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (20 + icmp.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(&about[12..16]);
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(icmp);
    packet
}

#[test]
fn icmp_errors_speak_of_the_session() {
    for quoted in [28, 60] {
        let mut world = open();
        // The client's latest packet, on the network and as its host has it.
        let own = world.peer(0).clone();
        let bytes = own.segment(TcpFlags::ACK, own.initial.wrapping_add(101), &[3; 40]);
        let client = world.nodes[0].agent.as_mut().unwrap();
        let on_network = pass(client, HOST, &bytes).unwrap();
        assert_ne!(on_network[12..24], bytes[12..24]);
        let told = pass(client, NETWORK, &too_big(&on_network, quoted)).unwrap();
        assert_eq!(told[16..20], bytes[12..16], "the host is told");
        assert_eq!(told[28..28 + quoted], bytes[..quoted], "of the packet that it has sent, its checksums included");
        assert_eq!(Sum::new().bytes(&told[..20]).folded(), 0xffff);
        assert_eq!(Sum::new().bytes(&told[20..]).folded(), 0xffff);
        // The other way: the box's host tells of a packet from the left, which goes to the left as of the subsession.
        let arrived = segment(&on_network);
        let middle = world.nodes[1].agent.as_mut().unwrap();
        let inside = pass(middle, NETWORK, &on_network).unwrap();
        assert_eq!(inside[12..24], bytes[12..24]);
        let told = pass(middle, HOST, &too_big(&inside, quoted)).unwrap();
        assert_eq!(IpAddr::from(<[u8; 4]>::try_from(&told[16..20]).unwrap()), arrived.tuple.source.ip());
        assert_eq!(told[28 + 12..28 + 24], on_network[12..24]);
        assert_eq!(Sum::new().bytes(&told[20..]).folded(), 0xffff);
    }
}

#[test]
fn icmp_errors_about_nothing_under_way_are_dropped() {
    let mut world = open();
    let own = world.peer(0).clone();
    let sent = world.crossed.iter().find(|packet| segment(packet).tuple.source.ip() == own.own.ip()).unwrap().clone();
    let mut forged = sent;
    forged[24..28].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
    let client = world.nodes[0].agent.as_mut().unwrap();
    assert_eq!(pass(client, NETWORK, &too_big(&forged, 28)), None);
    assert_eq!(client.counters().drops["stray_icmp_error"], 1);
}

#[test]
fn only_an_exact_reset_ends_a_session() {
    let mut world = open();
    world.run(Time::from_nanoseconds(7_000_000));
    let server = world.peer(2).clone();
    let phase = |world: &World| world.nodes[2].agent.as_ref().unwrap().sessions().next().unwrap().phase;
    let before = phase(&world);
    let blind = server.segment(TcpFlags::RST, server.initial.wrapping_add(5_000), &[]);
    world.hand_out(2, blind);
    assert_eq!(phase(&world), before);
    let acknowledged = world.nodes[2].agent.as_ref().unwrap().sessions().next().unwrap().sent[0].acknowledged.unwrap();
    let exact = server.segment(TcpFlags::RST, acknowledged, &[]);
    world.hand_out(2, exact);
    assert_eq!(phase(&world), Phase::Reset);
    world.run(at(3));
    assert!(world.peer(0).reset, "it came through the chain");
}

#[test]
fn tables_are_bounded() {
    let few = |most_sessions, most_half_open| {
        let config =
            weftwire_chain::Config { most_sessions, most_half_open, ..config(1, 3, false, vec![policy(&[2])]) };
        agent(config)
    };
    for (mut agent, reason) in [(few(10, 100), "table_full"), (few(100, 10), "half_open_full")] {
        for port in 0..50 {
            let ends = [(address(false, 1), 1_000 + port), (address(false, 3), 80)].map(SocketAddr::from);
            let syn = world::peer::Peer::client(ends[0], ends[1], 1, 1).segment(TcpFlags::SYN, 1, &[]);
            assert_eq!(pass(&mut agent, HOST, &syn).is_some(), port < 10, "session {port}");
        }
        assert_eq!(agent.counters().drops[reason], 40);
    }
}

#[test]
fn ports_run_out_and_come_back() {
    let config =
        weftwire_chain::Config { subsession_ports: [61_000, 61_007], ..config(1, 3, false, vec![policy(&[2])]) };
    let mut agent = agent(config);
    let syn = |agent: &mut Agent, port: u16| {
        let ends = [(address(false, 1), port), (address(false, 3), 80)].map(SocketAddr::from);
        pass(agent, HOST, &world::peer::Peer::client(ends[0], ends[1], 1, 1).segment(TcpFlags::SYN, 1, &[]))
    };
    // Four even ports at each end.
    let used: std::collections::BTreeSet<_> =
        (0..16).map(|port| segment(&syn(&mut agent, port).unwrap()).tuple).collect();
    assert_eq!(used.len(), 16);
    assert_eq!(syn(&mut agent, 100), None);
    assert_eq!(agent.counters().drops["no_port"], 1);
    let flow = agent.sessions().next().unwrap().flow;
    weftwire_core::control::change(&mut agent, at(2), Change::Delete { flow }, &mut Outbox::new()).unwrap();
    let refilled: Vec<_> = (100..140).filter_map(|port| syn(&mut agent, port)).collect();
    assert_eq!(refilled.len(), 1);
}

#[test]
fn another_run_goes_on_with_the_state() {
    let mut world = World::chain(1, false, vec![Kind::Router, Kind::Router], [20_000, 20_000]);
    world.run(Time::from_nanoseconds(40_000_000));
    for node in 0..4 {
        let before = world.nodes[node].agent.as_ref().unwrap();
        let (state, _) = AgentState::from_bytes(&before.whole(None).unwrap()).unwrap();
        assert_eq!(state, before.state());
        let policies = if node == 0 { vec![policy(&[2, 3])] } else { Vec::new() };
        let mut after = agent(config(node as u16 + 1, 4, false, policies));
        after.restore(state.clone()).unwrap();
        assert_eq!(after.state(), state);
        assert!(agent(config(7, 9, false, vec![])).restore(state).is_err());
        world.nodes[node].agent = Some(after);
    }
    assert!(!world.peer(0).is_done());
    world.run(at(30));
    world.assert_whole();
}

#[test]
fn what_is_of_no_chain_passes_untouched() {
    let mut agent = agent(config(1, 3, false, vec![]));
    let ends = [(address(false, 1), 1_000), (address(false, 3), 80)].map(SocketAddr::from);
    let syn = world::peer::Peer::client(ends[0], ends[1], 1, 1).segment(TcpFlags::SYN, 1, &[]);
    for packet in [syn, vec![], vec![0x45], vec![0x60; 39], vec![0xff; 100]] {
        for port in [HOST, NETWORK] {
            assert_eq!(pass(&mut agent, port, &packet), Some(packet.clone()));
        }
    }
}

#[test]
fn frames_for_many_segments_pass_as_they_are() {
    let mut world = open();
    let own = world.peer(0).clone();
    let bytes = own.segment(TcpFlags::ACK, own.initial.wrapping_add(101), &[3; 30_000]);
    let offload = Offload {
        segmentation: Some(Segmentation { size: 1_448, kind: SegmentationKind::TcpIpv4 { ecn: false } }),
        checksum: Checksum::Partial,
    };
    let mut out = Outbox::new();
    let client = world.nodes[0].agent.as_mut().unwrap();
    client.frame(at(1), HOST, Frame { bytes: &bytes, offload }, &mut out);
    let (port, frame) = sent(&out, &out.items()[0]).unwrap();
    assert_eq!((port, frame.offload, frame.bytes.len()), (NETWORK, offload, bytes.len()));
    assert_ne!(frame.bytes[12..24], bytes[12..24]);
}

#[test]
fn fragments_of_chained_sessions_are_dropped() {
    let mut world = open();
    let own = world.peer(0).clone();
    let mut bytes = own.segment(TcpFlags::ACK, 9, &[3; 100]);
    bytes[6] = 0x20;
    let client = world.nodes[0].agent.as_mut().unwrap();
    assert_eq!(pass(client, HOST, &bytes), None);
    assert_eq!(client.counters().drops["fragment"], 1);
}

#[test]
fn what_comes_for_no_subsession_does_not_reach_the_host() {
    let mut world = open();
    let crossed =
        world.crossed.iter().find(|packet| segment(packet).tuple.destination.ip() == address(false, 2)).unwrap();
    let mut fresh = agent(config(2, 3, false, vec![]));
    let mut stray = crossed.clone();
    // No SYN any more, so that it can't bring a list.
    stray[33] = 0x10;
    assert_eq!(pass(&mut fresh, NETWORK, &stray), None);
    assert_eq!(fresh.counters().drops["unknown_subsession"], 1);
    world.run(at(1));
}

#[test]
fn sessions_with_keyed_options_are_not_chained() {
    let mut agent = agent(config(1, 3, false, vec![policy(&[2])]));
    let ends = [(address(false, 1), 1_000), (address(false, 3), 80)].map(SocketAddr::from);
    let mut syn = world::peer::Peer::client(ends[0], ends[1], 1, 1).segment(TcpFlags::SYN, 1, &[]);
    // Where the time stamps are, an option of the same length: TCP-AO.
    let place = syn.windows(2).position(|option| option == [8, 10]).unwrap();
    syn[place] = 29;
    assert_eq!(pass(&mut agent, HOST, &syn), None);
    assert_eq!(agent.counters().drops["keyed"], 1);
}
