//! The lock protocol in Rust is the one that Spin has checked. `lock.transitions` has every reaction that Spin took in the runs `log` of
//! `models/runs` (`scripts/models.sh` compares the file with the model): each is replayed here, and must give the same actions and the same
//! state. Chains of these agents are then simulated with losses, duplicates, reordering and crashes: the properties of the model hold, and
//! agents meet all situations that the model has and no other.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use support::situation::{Situation, situation};
use support::world::World;
use weftwire_chain::lock::{Action, AgentId, Event, Kind, Lock, Refusal, Request, State, Unexpected};

const REACTIONS: &str = include_str!("lock.transitions");

/// What the model prints of one agent.
#[derive(Debug, PartialEq)]
struct Snapshot {
    state: State,
    requests: [Option<Request>; 3],
    seen: BTreeMap<AgentId, u32>,
}

fn request(word: &str) -> Option<Request> {
    let mut numbers = word.split('.').map(|number| number.parse::<u64>().ok());
    Some(Request {
        left: AgentId(numbers.next()??),
        right: AgentId(numbers.next()??),
        epoch: u32::try_from(numbers.next()??).ok()?,
    })
}

fn snapshot(text: &str) -> Snapshot {
    let mut words = text.split_whitespace();
    let state = match words.next() {
        Some("5") => State::Unlocked,
        Some("4") => State::Pending,
        Some("3") => State::Locked,
        Some("2") => State::Cancelling,
        Some("1") => State::Releasing,
        other => panic!("no state: {other:?}"),
    };
    let requests = std::array::from_fn(|_| request(words.next().expect("three requests")));
    let seen = words.filter(|word| *word != ".").map(|word| word.split_once(':').expect("left:epoch"));
    Snapshot {
        state,
        requests,
        seen: seen.map(|(left, epoch)| (AgentId(left.parse().unwrap()), epoch.parse().unwrap())).collect(),
    }
}

/// The model's numbers: Promela counts symbols from the last. Reasons are left out of it.
fn kind(number: &str) -> Kind {
    match number {
        "8" => Kind::Request,
        "7" => Kind::Ack,
        "6" => Kind::Nack(Refusal::Busy),
        "5" => Kind::Held,
        "4" => Kind::Cancel,
        "3" => Kind::Cancelled,
        "2" => Kind::Release,
        "1" => Kind::Released,
        other => panic!("no message: {other}"),
    }
}

fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Request => 8,
        Kind::Ack => 7,
        Kind::Nack(_) => 6,
        Kind::Held => 5,
        Kind::Cancel => 4,
        Kind::Cancelled => 3,
        Kind::Release => 2,
        Kind::Released => 1,
    }
}

fn spelled(action: Action) -> String {
    match action {
        Action::Send(kind, Request { left, right, epoch }) => {
            format!("{}{} {}.{}.{epoch}", if kind.goes_right() { '>' } else { '<' }, number(kind), left.0, right.0)
        }
        Action::Accepted(_) => "accepted".into(),
        Action::Granted(_) => "granted".into(),
        Action::Refused(..) => "refused".into(),
        Action::Patience(_) => "patience".into(),
        Action::Ended(_) => "ended".into(),
        Action::Left => "left".into(),
    }
}

/// A line of the file: the agent before, the event, whether the chain ends there, the actions, the agent after.
fn parts(line: &str) -> (Lock, Event, bool, &str, Snapshot) {
    let [before, event, actions, after] = line.split('|').collect::<Vec<_>>()[..] else { panic!("four parts: {line}") };
    let (me, before) = before.split_once(' ').expect("an agent");
    let (is_end, before) = before.split_once(' ').expect("an end or not");
    let Snapshot { state, requests: [own, kept, anchored], seen } = snapshot(before);
    let lock = Lock::with(AgentId(me.parse().unwrap()), (state, own), kept, anchored, seen);
    let (what, about) = event.trim().split_once(' ').expect("an event and a request");
    let about = request(about).expect("a request");
    let event = match what {
        "START" => Event::Start(about),
        "ABORT" => Event::Abort,
        "COMPLETE" => Event::Complete,
        "TIMER" => Event::Timer,
        message => Event::Message(kind(message), about),
    };
    (lock, event, is_end == "1", actions.trim(), snapshot(after))
}

#[test]
fn every_reaction_of_the_model_is_that_of_the_agent() {
    assert!(REACTIONS.lines().count() > 1000, "the file is whole");
    for line in REACTIONS.lines() {
        let (mut lock, event, is_end, expected, after) = parts(line);
        let mut actions = Vec::new();
        lock.react(event, is_end, &mut actions).unwrap_or_else(|error| panic!("{error}: {line}"));
        let actions: Vec<String> = actions.into_iter().map(spelled).collect();
        assert_eq!(actions.join(" "), expected, "{line}");
        let seen = after.seen.keys().map(|&left| (left, lock.seen(left))).collect();
        let got = Snapshot { state: lock.state(), requests: [lock.own(), lock.kept(), lock.anchored()], seen };
        assert_eq!(got, after, "{line}");
    }
}

#[test]
fn thousands_of_bad_networks_keep_the_properties_and_stay_inside_the_model() {
    let model: BTreeSet<Situation> = REACTIONS
        .lines()
        .map(|line| {
            let me = AgentId(line.split(' ').next().unwrap().parse().unwrap());
            let (lock, event, is_end, ..) = parts(line);
            situation(&lock, me, event, is_end)
        })
        .collect();
    let mut met = BTreeSet::new();
    let mut counts = [0_u64; 4];
    for seed in 0..8_000 {
        let mut world = World::new(seed);
        world.run();
        for (count, more) in counts.iter_mut().zip([world.granted, world.refused, world.aborted, world.messages]) {
            *count += more;
        }
        met.extend(world.situations);
    }
    let outside: Vec<_> = met.difference(&model).collect();
    assert!(outside.is_empty(), "the model has none of {}: {outside:#?}", outside.len());
    let missed: Vec<_> = model.difference(&met).collect();
    assert!(missed.is_empty(), "of {} situations of the model the simulations never met {missed:#?}", model.len());
    let [granted, refused, aborted, messages] = counts;
    println!(
        "{} situations; {granted} granted, {refused} refused, {aborted} cancelled, {messages} messages",
        model.len()
    );
    assert!(granted > 10_000 && refused > 10_000 && aborted > 1_000, "each outcome is common");
}

#[test]
fn what_no_neighbour_may_do_is_refused_and_changes_nothing() {
    let [left, me, right] = [1, 2, 3].map(AgentId);
    let mut lock = Lock::new(me);
    let mut actions = Vec::new();
    assert_eq!(lock.react(Event::Complete, false, &mut actions), Err(Unexpected::State));
    lock.react(Event::Message(Kind::Request, Request { left, right: me, epoch: 1 }), false, &mut actions).unwrap();
    actions.clear();
    // From an agent that the first request has put into the chain, before the old path is given back.
    let second = Request { left: AgentId(4), right: me, epoch: 1 };
    for again in [Refusal::Busy, Refusal::Ended] {
        lock.react(Event::Message(Kind::Request, second), false, &mut actions).unwrap();
        assert_eq!(actions.pop(), Some(Action::Send(Kind::Nack(again), second)));
        assert_eq!(lock.anchored().map(|request| request.left), Some(left));
    }
    let before = lock.clone();
    let through = Request { left, right, epoch: 2 };
    assert_eq!(lock.react(Event::Start(through), false, &mut actions), Err(Unexpected::State), "not its own");
    lock.react(Event::Message(Kind::Request, through), false, &mut actions).unwrap();
    actions.clear();
    let pending = lock.clone();
    assert_ne!(pending, before);
    let another = Request { left: AgentId(5), right, epoch: 1 };
    assert_eq!(lock.react(Event::Message(Kind::Request, another), false, &mut actions), Err(Unexpected::Neighbour));
    assert_eq!((lock, actions.len()), (pending, 0));
}

#[test]
fn memory_is_bounded() {
    let me = AgentId(0);
    let mut lock = Lock::new(me);
    let mut actions = Vec::new();
    for left in 1..=1_000 {
        let request = Request { left: AgentId(left), right: AgentId(5_000), epoch: 1 };
        lock.react(Event::Message(Kind::Cancel, request), false, &mut actions).unwrap();
        assert_eq!(actions.pop(), Some(Action::Send(Kind::Cancelled, request)));
        lock.react(Event::Message(Kind::Request, request), false, &mut actions).unwrap();
        let why = if left as usize <= Lock::MAX_LEFT_ANCHORS { Refusal::Ended } else { Refusal::Full };
        assert_eq!(actions.pop(), Some(Action::Send(Kind::Nack(why), request)), "no request gets in after its end");
    }
}
