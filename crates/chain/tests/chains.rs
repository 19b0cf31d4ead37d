//! Chains of agents in virtual time: they are set up, carry bytes both ways whatever the network does, and end.

mod world;

use std::collections::BTreeMap;
use weftwire_chain::config::Fail;
use weftwire_chain::message::{Exit, begins_message};
use weftwire_chain::segment::{Found, find, segment_size};
use weftwire_chain::session::Phase;
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{LinkType, Time};
use world::{Kind, SECOND, World, address, agent, config, policy};

fn seconds(count: i64) -> Time {
    Time::from_nanoseconds(count * SECOND)
}

fn routers(count: usize) -> Vec<Kind> {
    (0..count).map(|_| Kind::Router).collect()
}

#[test]
fn bytes_pass_through_all_boxes() {
    for v6 in [false, true] {
        for boxes in 0..=4 {
            let mut world = World::chain(1, v6, routers(boxes), [10_000, 20_000]);
            world.run(seconds(5));
            world.assert_whole();
            // On the network, all of it is of subsessions.
            for packet in &world.crossed {
                let Ok(Found::Segment(segment)) = find(LinkType::Ip, packet) else { panic!("no segment") };
                assert!(segment.tuple.source.port() >= 61_000 && segment.tuple.destination.port() >= 61_000);
                assert_eq!(segment.tag(packet), None);
            }
            let client = world.nodes[0].agent.as_ref().unwrap();
            let confirmed: Vec<_> =
                client.sessions().flat_map(|session| session.right.clone().unwrap().confirmed).collect();
            assert_eq!(confirmed, (2..=boxes as u16 + 2).collect::<Vec<_>>());
            for node in 0..boxes + 2 {
                assert_eq!(world.drops(node), BTreeMap::new(), "node {node}");
                let phases: Vec<_> =
                    world.nodes[node].agent.as_ref().unwrap().sessions().map(|session| session.phase).collect();
                assert_eq!(phases, [Phase::TimeWait], "node {node}");
            }
            world.run(seconds(120));
            assert!((0..boxes + 2).all(|node| world.sessions(node) == 0));
        }
    }
}

#[test]
fn the_first_and_the_last_host_see_the_session() {
    let mut world = World::chain(1, false, routers(2), [1_000, 1_000]);
    world.run(seconds(5));
    let session = |at: usize| world.nodes[at].seen[0].tuple;
    assert!((1..4).all(|node| session(node).to_string() == "10.0.0.1:40000 -> 10.0.0.4:80"));
    assert_eq!(session(0), session(3).reversed());
}

#[test]
fn a_box_may_change_addresses_and_ports() {
    for v6 in [false, true] {
        let kinds = vec![Kind::Router, Kind::Nat(BTreeMap::new()), Kind::Router];
        let mut world = World::chain(1, v6, kinds, [10_000, 20_000]);
        world.run(seconds(5));
        world.assert_whole();
        let source = |node: usize| world.nodes[node].seen[0].tuple.source;
        assert_eq!((source(2).ip(), source(2).port()), (address(v6, 1), 40_000));
        assert_eq!((source(3).ip(), source(3).port()), (address(v6, 3), 50_000));
        assert_eq!((source(4).ip(), source(4).port()), (address(v6, 3), 50_000));
        assert_eq!(world.sessions(2), 1);
    }
}

#[test]
fn loss_and_duplication_do_no_harm() {
    for seed in 0..300 {
        let boxes = seed as usize % 5;
        let mut kinds = routers(boxes);
        if boxes > 1 {
            kinds[1] = Kind::Nat(BTreeMap::new());
        }
        let mut world = World::chain(seed, seed % 2 == 1, kinds, [3_000, 4_000]);
        (world.loss, world.twice) = (4, 10);
        world.run(seconds(200));
        world.assert_whole();
        world.run(seconds(2_000));
        let left: Vec<_> = world.nodes.iter().flat_map(|node| node.agent.as_ref().unwrap().sessions()).collect();
        assert!(left.is_empty(), "seed {seed}: {left:#?}");
    }
}

#[test]
fn a_repeated_syn_keeps_its_ports() {
    let mut world = World::chain(1, false, routers(1), [100, 100]);
    let syn = world.peer(0).segment(TcpFlags::SYN, 0x7fff_fff0, &[]);
    world.hand_out(0, syn.clone());
    world.hand_out(0, syn);
    assert_eq!(world.crossed[0], world.crossed[1]);
    world.run(seconds(5));
    world.assert_whole();
    assert_eq!((world.sessions(0), world.sessions(1), world.sessions(2)), (1, 1, 1));
}

#[test]
fn another_initial_number_is_another_incarnation() {
    let mut world = World::chain(1, false, routers(1), [100, 100]);
    let first = world.peer(0).segment(TcpFlags::SYN, 5, &[]);
    let second = world.peer(0).segment(TcpFlags::SYN, 77_777, &[]);
    world.hand_out(0, first);
    world.hand_out(0, second);
    let ports = |packet: &Vec<u8>| match find(LinkType::Ip, packet) {
        Ok(Found::Segment(segment)) => segment.tuple,
        _ => panic!("no segment"),
    };
    assert_ne!(ports(&world.crossed[0]), ports(&world.crossed[1]));
    assert_eq!(world.sessions(0), 1);
}

#[test]
fn a_refusal_comes_back_confirmed() {
    let mut world = World::chain(1, false, routers(2), [100, 100]);
    world.peer(3).refuses = true;
    world.run(seconds(3));
    assert!(world.peer(0).reset);
    assert!(world.drops(0).is_empty());
    world.run(seconds(60));
    assert_eq!([0, 1, 2, 3].map(|node| world.sessions(node)), [0; 4]);
}

#[test]
fn a_listed_box_without_agent_is_not_believed() {
    for fail in [Fail::Open, Fail::Closed] {
        let mut world = World::chain(1, false, routers(1), [100, 100]);
        let open = weftwire_chain::config::Policy { fail, ..policy(&[2]) };
        world.nodes[0].agent = Some(agent(config(1, 3, false, vec![open])));
        world.nodes[1].agent = None;
        // It answers for itself, from the ports that it was spoken to.
        world.nodes[1].kind = Kind::Peer(Box::new(world::peer::Peer::server((address(false, 2), 0).into(), 100, 100)));
        // A kernel answers from whatever port it was asked at; here: any RST.
        world.peer(1).refuses = true;
        world.run(seconds(30));
        // It answers from another port than it was asked at.
        assert!(world.drops(0).values().sum::<u64>() == world.drops(0).get("unknown_subsession").copied().unwrap_or(0));
        match fail {
            Fail::Open => {
                assert!(world.peer(0).is_done() && world.peer(2).is_done(), "it goes without the chain");
                assert!(
                    world.nodes[0].agent.as_ref().unwrap().sessions().all(|session| session.phase == Phase::Direct)
                );
            }
            Fail::Closed => {
                assert!(!world.peer(0).is_done() && world.peer(2).received.is_empty());
            }
        }
    }
}

#[test]
fn an_answer_without_confirmation_is_dropped() {
    let mut world = World::chain(1, false, routers(1), [100, 100]);
    let syn = world.peer(0).segment(TcpFlags::SYN, 0x7fff_fff0, &[]);
    world.hand_out(0, syn);
    let Ok(Found::Segment(sent)) = find(LinkType::Ip, &world.crossed[0]) else { panic!("no segment") };
    let mut forger = world::peer::Peer::server(sent.tuple.destination, 0, 0);
    (forger.other, forger.next) = (Some(sent.tuple.source), Some(0x7fff_fff1));
    for flags in [TcpFlags::SYN.with(TcpFlags::ACK), TcpFlags::RST.with(TcpFlags::ACK), TcpFlags::ACK] {
        let forged = forger.segment(flags, 9, &[]);
        world.cross(forged);
    }
    world.run(Time::from_nanoseconds(3_000_000));
    assert_eq!(world.drops(0)["unconfirmed_answer"], 3);
    world.run(seconds(5));
    world.assert_whole();
}

#[test]
fn chains_end_before_hosts_without_agent() {
    for exit in [Exit::Route, Exit::Nat] {
        let mut world = World::chain(1, false, routers(1), [5_000, 6_000]);
        // The server is not registered. With `Route` its answers have to pass by the box: here it is their way by a rule of the world.
        let chosen = weftwire_chain::config::Policy { exit, ..policy(&[2]) };
        world.nodes[0].agent = Some(agent(config(1, 2, false, vec![chosen])));
        world.nodes[1].agent = Some(agent(config(2, 2, false, vec![])));
        world.nodes[2].agent = None;
        if exit == Exit::Nat {
            world.run(seconds(5));
            world.assert_whole();
            assert_eq!(world.nodes[2].seen[0].tuple.source.ip(), address(false, 2));
        } else {
            world.run(seconds(1));
            assert_eq!(world.nodes[2].seen[0].tuple.source, (address(false, 1), 40_000).into());
            assert_eq!(world.nodes[2].seen[0].tuple.destination, (address(false, 3), 80).into());
        }
    }
}

#[test]
fn early_data_stays_behind_the_list() {
    let mut world = World::chain(1, false, routers(2), [100, 100]);
    world.peer(0).early = b"early".to_vec();
    let syn = world.peer(0).segment(TcpFlags::SYN, 0x7fff_fff0, b"early");
    world.hand_out(0, syn);
    world.run(Time::from_nanoseconds(10_000_000));
    assert!(world.peer(3).received.starts_with(b"early"));
    assert!(world.nodes[2].seen[0].length() == 6);
}

#[test]
fn segments_leave_room_for_options() {
    let mut world = World::chain(1, false, routers(1), [100, 100]);
    world.run(seconds(1));
    let syns = world.crossed.iter().filter_map(|packet| segment_size(LinkType::Ip, packet));
    assert!(syns.clone().count() >= 4 && syns.into_iter().all(|size| size == 1_448));
}

#[test]
fn a_list_that_is_not_authentic_is_an_ordinary_segment() {
    let mut world = World::chain(1, false, routers(1), [100, 100]);
    let syn = world.peer(0).segment(TcpFlags::SYN, 0x7fff_fff0, &[]);
    world.hand_out(0, syn);
    let good = world.crossed[0].clone();
    world.run(seconds(1));
    let before = world.sessions(1);
    use weftwire_core::Function as _;
    use weftwire_core::inspect::Inspect as _;
    let mut out = weftwire_core::Outbox::new();
    // A byte of the list, with a checksum that fits; from ports that no session has.
    for at in 60..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let Ok(Found::Segment(segment)) = find(LinkType::Ip, &bad) else { continue };
        let mut buffer = weftwire_core::Buffer::from(bad);
        let mut elsewhere = segment.tuple;
        elsewhere.source.set_port(1_000);
        elsewhere.destination.set_port(2_000);
        weftwire_chain::segment::edit(&mut buffer, &segment, elsewhere, Default::default()).unwrap();
        let now = world.now;
        let box_agent = world.nodes[1].agent.as_mut().unwrap();
        box_agent.frame(now, weftwire_chain::NETWORK, weftwire_core::Frame::new(&buffer), &mut out);
    }
    assert_eq!(world.sessions(1), before);
    let counters = world.nodes[1].agent.as_ref().unwrap().counters();
    let refused: u64 =
        counters.rows.iter().filter(|(name, _)| name.starts_with("message_")).map(|(_, count)| count).sum();
    assert!(refused > 50 && out.items().len() as u64 >= refused, "{refused} of {}", out.items().len());
}

#[test]
fn a_list_is_taken_once() {
    let mut world = World::chain(1, false, routers(1), [100, 100]);
    world.run(seconds(2));
    let syn = world.crossed.iter().find(|packet| begins(packet)).cloned().unwrap();
    world.run(seconds(200));
    assert_eq!(world.sessions(1), 0);
    world.cross(syn);
    world.run(seconds(201));
    assert_eq!((world.sessions(1), world.drops(1)["replayed"]), (0, 1));
}

fn begins(packet: &[u8]) -> bool {
    match find(LinkType::Ip, packet) {
        Ok(Found::Segment(segment)) => begins_message(segment.payload(packet)),
        _ => false,
    }
}
