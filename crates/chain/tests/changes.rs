//! Chains that change while their sessions run, in virtual time: bytes arrive whole, boxes see sound connections, nothing stays behind.

mod world;

use std::collections::BTreeMap;
use weftwire_chain::agent::ChangeError;
use weftwire_chain::session::{Phase, Place};
use weftwire_chain::state::AgentState;
use weftwire_core::Time;
use weftwire_core::inspect::Inspect as _;
use world::{Chance, Kind, SECOND, World, agent, config, policy};

const MILLISECOND: i64 = 1_000_000;

fn at(milliseconds: i64) -> Time {
    Time::from_nanoseconds(milliseconds * MILLISECOND)
}

/// A client, so many routers and a server; the session goes through those that `through` names.
fn world(seed: u64, v6: bool, boxes: u16, through: &[u16], bytes: [usize; 2], window: usize) -> World {
    let routers = (0..boxes).map(|_| Kind::Router).collect();
    let mut world = World::chain(seed, v6, routers, bytes);
    world.nodes[0].agent = Some(agent(config(1, boxes + 2, v6, vec![policy(through)])));
    world.peer(0).window = window;
    world.peer(usize::from(boxes) + 1).window = window;
    world
}

fn assert_done(world: &mut World) {
    let last = world.nodes.len() - 1;
    for node in [0, last] {
        let peer = world.peer(node);
        if !peer.is_done() || peer.reset {
            let progress = peer.progress();
            panic!("seed {}: node {node} has {progress}", world.seed);
        }
    }
}

fn counts(world: &World, node: usize) -> BTreeMap<String, u64> {
    world.nodes[node].agent.as_ref().unwrap().counters().rows.into_iter().collect()
}

/// Nothing is locked, and nobody waits for anything.
fn assert_free(world: &World) {
    for (node, here) in world.nodes.iter().enumerate() {
        for session in here.agent.as_ref().unwrap().sessions().filter(|session| session.phase != Phase::Left) {
            assert!(session.lock.as_ref().is_none_or(|lock| lock.is_free()), "node {node}: {:?}", session.lock);
            assert_eq!((session.key(Place::NewLeft), session.key(Place::NewRight)), (None, None), "node {node}");
        }
    }
}

fn segments(world: &World, node: usize) -> usize {
    world.nodes[node].seen.len()
}

#[test]
fn a_box_is_inserted_and_deleted() {
    for v6 in [false, true] {
        let mut world = world(1, v6, 1, &[], [300_000, 400_000], 8);
        world.run(at(20));
        assert_eq!(segments(&world, 1), 0);
        world.change(0, 3, &[2]).unwrap();
        world.run(at(60));
        let seen = segments(&world, 1);
        assert!(seen > 50, "{seen} segments, {:?}", counts(&world, 0));
        assert_eq!(counts(&world, 0)["changes_made"], 1);
        assert_free(&world);
        world.change(0, 3, &[]).unwrap();
        world.run(at(90));
        let seen = segments(&world, 1);
        world.run(at(120));
        assert_eq!((segments(&world, 1), counts(&world, 0)["changes_made"]), (seen, 2));
        assert!(!world.peer(0).is_done() && !world.peer(2).is_done());
        world.run(at(10_000));
        assert_done(&mut world);
        world.assert_no_gaps(1);
        assert_free(&world);
        world.run(at(200_000));
        assert_eq!([0, 1, 2].map(|node| world.sessions(node)), [0; 3]);
    }
}

/// What an agent shows of its only session.
fn shown(world: &World, node: usize) -> BTreeMap<String, String> {
    let agent = world.nodes[node].agent.as_ref().unwrap();
    let flow = agent.flows()[0].flow;
    agent.flow(flow).unwrap().registers.into_iter().map(|register| (register.name, register.text)).collect()
}

#[test]
fn an_agent_shows_locks_paths_and_what_numbers_are_shifted_by() {
    let mut world = world(1, false, 1, &[], [300_000, 400_000], 8);
    world.run(at(20));
    let before = shown(&world, 0);
    let path = |shown: &BTreeMap<String, String>| (shown["right.agent"].clone(), shown["right.leaving"].clone());
    assert_eq!((before["lock"].as_str(), path(&before)), ("free", ("3".into(), "0".into())));
    assert_eq!(before.get("left"), None);
    world.change(0, 3, &[2]).unwrap();
    // While it goes on both paths, both are shown.
    let mut both = None;
    while !counts(&world, 0).contains_key("changes_made") {
        assert!(world.now < at(60), "{:?}", counts(&world, 0));
        world.run(world.now.after(MILLISECOND / 10));
        let now = shown(&world, 0);
        if now.get("right.stage").is_some_and(|stage| stage == "two_paths") {
            both.get_or_insert(now);
        }
    }
    let both = both.unwrap();
    assert_eq!(
        (both["lock"].as_str(), both["right.agent"].as_str(), both["new_right.agent"].as_str()),
        ("locked", "3", "2")
    );
    let after = shown(&world, 0);
    assert_eq!((after["right"].as_str(), after.get("new_right")), (both["new_right"].as_str(), None));
    // The new path began with fewer bytes before it than the old one, by those that were under way.
    let (agent, leaving) = path(&after);
    assert_eq!((agent.as_str(), &leaving), ("2", &both["new_right.leaving"]));
    assert!(leaving.parse::<i32>().unwrap() > 0, "{leaving}");
    world.run(at(60));
    assert_eq!(shown(&world, 0)["lock"], "free");
}

#[test]
fn boxes_are_replaced() {
    let mut world = world(1, false, 4, &[2, 3], [900_000, 900_000], 6);
    world.run(at(40));
    // One by one, two by none, and by others.
    for (node, right, boxes) in
        [(0, 6, vec![4, 5]), (0, 4, vec![2]), (3, 6, vec![3]), (0, 6, vec![5]), (0, 6, vec![4, 3, 2])]
    {
        let before = world.nodes.iter().map(|node| node.seen.len()).collect::<Vec<_>>();
        world.change(node, right, &boxes).unwrap();
        world.run(Time::from_nanoseconds(world.now.nanoseconds() + 150 * MILLISECOND));
        assert_free(&world);
        for number in &boxes {
            let at = usize::from(*number) - 1;
            assert!(segments(&world, at) > before[at] + 10, "box {number} of {boxes:?}: {:?}", counts(&world, node));
        }
    }
    assert!(!world.peer(0).is_done());
    world.run(at(60_000));
    assert_done(&mut world);
    (1..5).for_each(|node| world.assert_no_gaps(node));
}

#[test]
fn an_idle_session_is_changed() {
    let mut world = world(1, false, 1, &[], [100, 100], 1);
    world.peer(0).hold = true;
    world.peer(2).hold = true;
    world.run(at(20));
    world.change(0, 3, &[2]).unwrap();
    world.run(at(60));
    assert_eq!(counts(&world, 0)["changes_made"], 1);
    assert_free(&world);
    for node in [0, 2] {
        world.let_go(node);
    }
    world.run(at(10_000));
    assert_done(&mut world);
    assert!(segments(&world, 1) > 5);
}

#[test]
fn a_box_that_is_dead_is_not_taken() {
    let mut world = world(1, false, 1, &[], [300_000, 300_000], 8);
    world.nodes[1].kind = Kind::Dead;
    world.run(at(10));
    assert!(!world.peer(0).is_done());
    world.change(0, 3, &[2]).unwrap();
    world.run(at(40));
    [0, 2].into_iter().for_each(|node| world.peer(node).hold = true);
    world.run(at(20_000));
    assert_eq!(counts(&world, 0)["changes_cancelled"], 1);
    assert_free(&world);
    world.nodes[1].kind = Kind::Router;
    world.change(0, 3, &[2]).unwrap();
    world.run(at(20_100));
    assert_eq!(counts(&world, 0)["changes_made"], 1);
    [0, 2].into_iter().for_each(|node| world.let_go(node));
    world.run(at(60_000));
    assert_done(&mut world);
    assert!(segments(&world, 1) > 20, "{}", segments(&world, 1));
}

#[test]
fn a_box_stands_once_in_a_chain() {
    let mut world = world(1, false, 3, &[2, 3], [400_000, 400_000], 4);
    world.run(at(20));
    assert_eq!(world.change(0, 5, &[1]), Err(ChangeError::Loop(1)));
    // Box 3 is between the anchors, box 2 is not.
    for (node, right, boxes) in [(0, 5, vec![4, 3]), (2, 5, vec![4, 2])] {
        world.change(node, right, &boxes).unwrap();
        world.run(world.now.after(40 * MILLISECOND));
        assert_eq!(counts(&world, node)["changes_cancelled"], 1);
        assert_eq!(world.drops(usize::from(boxes[1]) - 1)["already_in_chain"], 1);
        assert_free(&world);
    }
    assert!(!world.peer(0).is_done());
    world.run(at(60_000));
    assert_done(&mut world);
}

/// At whatever instant of a change, a reset ends both ends and leaves nothing behind.
#[test]
fn a_reset_reaches_the_other_end_at_any_time() {
    for (instant, from) in (0..60).flat_map(|instant| [(instant, 0), (instant, 3)]) {
        let mut world = world(1, false, 2, &[2], [400_000, 400_000], 6);
        world.run(at(20));
        world.change(0, 4, &[3]).unwrap();
        world.run(Time::from_nanoseconds(20 * MILLISECOND + instant * MILLISECOND / 2));
        let reset = world.peer(from).reset_now();
        world.hand_out(from, reset);
        world.run(at(2_000));
        assert!(world.peer(3 - from).reset, "{instant}: the other end");
        world.peer(from).reset = true;
        world.run(at(700_000));
        assert_eq!([0, 1, 2, 3].map(|node| world.sessions(node)), [0; 4], "{instant}");
    }
}

/// Anybody changes anything at any time, on a network that loses and doubles.
#[test]
fn whatever_happens_bytes_arrive() {
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 1..=300_u64 {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let boxes = 1 + chance.below(4) as u16;
        let through: Vec<u16> = (2..boxes + 2).filter(|_| chance.below(2) == 0).collect();
        let bytes = [0, 1].map(|_| [0, 1_000, 200_000][chance.below(3) as usize]);
        let window = 1 + chance.below(6) as usize;
        let pauses = chance.below(3) > 0;
        let mut world = world(seed, seed % 2 == 1, boxes, &through, bytes, window);
        (world.loss, world.twice) = [(0, 0), (3, 5), (10, 10)][chance.below(3) as usize];
        let ends = [0, usize::from(boxes) + 1];
        ends.into_iter().filter(|_| pauses).for_each(|node| world.peer(node).hold = true);
        world.run(at(50));
        for _ in 0..chance.below(16) {
            let pause = [5, 50, 500][chance.below(3) as usize];
            world.run(world.now.after(1 + chance.below(pause * MILLISECOND as u64) as i64));
            if pauses && chance.below(2) == 0 {
                ends.into_iter().for_each(|node| world.let_go(node));
                world.run(world.now.after(chance.below(10 * MILLISECOND as u64) as i64));
                ends.into_iter().for_each(|node| world.peer(node).hold = true);
            }
            if chance.below(6) == 0 {
                let node = chance.below(u64::from(boxes) + 2) as usize;
                let before = world.nodes[node].agent.as_ref().unwrap();
                let (state, _) = AgentState::from_bytes(&before.whole(None).unwrap()).unwrap();
                assert_eq!(state, before.state());
                let mut after = agent(config(node as u16 + 1, boxes + 2, seed % 2 == 1, Vec::new()));
                after.restore(state).unwrap();
                world.nodes[node].agent = Some(after);
                *outcomes.entry("restarts".into()).or_default() += 1;
            }
            let is_member = |number: u16| {
                let agent = world.nodes[usize::from(number) - 1].agent.as_ref().unwrap();
                agent.sessions().any(|session| session.phase != Phase::Left)
            };
            let members: Vec<u16> = (1..boxes + 3).filter(|number| is_member(*number)).collect();
            let Some(left) = members.get(chance.below(members.len().max(1) as u64) as usize) else { continue };
            let right = members[chance.below(members.len() as u64) as usize];
            let node = usize::from(*left) - 1;
            let mut chosen: Vec<u16> = (2..boxes + 2).filter(|number| *number != right && number != left).collect();
            chosen.retain(|number| chance.below(if is_member(*number) { 10 } else { 2 }) == 0);
            // It may be no agent of the chain, to the left, or in the chain already.
            let result = world.change(node, right, &chosen);
            *outcomes
                .entry(format!("{result:.40?}").split("left").next().unwrap_or_default().to_owned())
                .or_default() += 1;
        }
        ends.into_iter().filter(|_| pauses).for_each(|node| world.let_go(node));
        world.run(world.now.after(400 * SECOND));
        assert_done(&mut world);
        for node in 0..world.nodes.len() {
            for (name, count) in counts(&world, node) {
                *outcomes.entry(name).or_default() += count;
            }
        }
        world.run(world.now.after(2_000 * SECOND));
        let left: Vec<_> = world.nodes.iter().flat_map(|node| node.agent.as_ref().unwrap().sessions()).collect();
        assert!(left.is_empty(), "seed {seed}: {left:#?}");
    }
    println!("{outcomes:#?}");
    let enough = [("changes_made", 150), ("changes_cancelled", 10), ("changes_refused_busy", 10), ("chains_left", 30)];
    enough.into_iter().for_each(|(name, least)| assert!(outcomes[name] >= least, "{name}"));
}
