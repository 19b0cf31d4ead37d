//! A chain of agents in virtual time over links that lose, duplicate and reorder, with the properties of the model as oracle.

use std::collections::{BTreeMap, BTreeSet};

use rand_core::Rng as _;
use rand_pcg::Lcg128Xsl64;
use weftwire_chain::lock::{Action, AgentId, Event, Kind, Lock, Request, State};

use super::situation::{Situation, situation};

/// Milliseconds of virtual time.
type Time = u64;

const ROUND_TRIP: Time = 400;
const ATTEMPTS: u32 = 6;

enum Happening {
    Arrival(usize, Kind, Request),
    /// The clock of a left anchor, which has been set again if the number differs.
    Clock(usize, u64),
    Trigger(usize),
    /// Both paths are done with, or the new one has failed.
    End(usize, Request),
    /// An agent stops, and comes back with what it had written down.
    Crash(usize),
    Back(usize),
}

struct Agent {
    lock: Lock,
    next: Option<usize>,
    previous: Option<usize>,
    is_gone: bool,
    is_down: bool,
    attempts: u32,
    clock: u64,
    triggers: u32,
}

/// What has become of a request, and whether it has met a reason to be refused.
struct Fate {
    is_decided: bool,
    is_granted: bool,
    is_accepted: bool,
    has_reason: bool,
    is_complete: bool,
}

pub struct World {
    random: Lcg128Xsl64,
    now: Time,
    happenings: BTreeMap<(Time, u64), Happening>,
    serial: u64,
    agents: Vec<Agent>,
    fates: BTreeMap<Request, Fate>,
    loss: u64,
    duplicates: u64,
    is_calm: bool,
    has_failed: bool,
    seed: u64,
    pub granted: u64,
    pub refused: u64,
    pub aborted: u64,
    pub messages: u64,
    pub situations: BTreeSet<Situation>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Lcg128Xsl64::new(u128::from(seed), 1);
        let size = 2 + below(&mut random, 7) as usize;
        let agents = (0..size).map(|index| Agent {
            lock: Lock::new(AgentId(index as u64)),
            next: (index + 1 < size).then_some(index + 1),
            previous: index.checked_sub(1),
            is_gone: false,
            is_down: false,
            attempts: 0,
            clock: 0,
            triggers: 4,
        });
        let agents = agents.collect();
        // One network in four is calm: there each refusal must have a reason.
        let is_calm = seed.is_multiple_of(4);
        let (loss, duplicates) = if is_calm { (0, 0) } else { (below(&mut random, 30), below(&mut random, 30)) };
        let mut world = Self {
            random,
            now: 0,
            happenings: BTreeMap::new(),
            serial: 0,
            agents,
            fates: BTreeMap::new(),
            loss,
            duplicates,
            is_calm,
            has_failed: false,
            seed,
            granted: 0,
            refused: 0,
            aborted: 0,
            messages: 0,
            situations: BTreeSet::new(),
        };
        for agent in 0..size {
            let wait = world.below(300);
            world.after(wait, Happening::Trigger(agent));
        }
        for _ in 0..if is_calm { 0 } else { world.below(3) } {
            let (wait, agent) = (world.below(3_000), world.below(size as u64) as usize);
            world.after(wait, Happening::Crash(agent));
        }
        world
    }

    /// Until nothing happens any more.
    pub fn run(&mut self) {
        let mut steps = 0;
        while let Some(((time, _), happening)) = self.happenings.pop_first() {
            self.now = time;
            self.step(happening);
            steps += 1;
            assert!(steps < 200_000, "seed {}: it goes on for ever", self.seed);
        }
        for (request, fate) in &self.fates {
            assert!(fate.is_decided, "seed {}: {request:?} is never decided", self.seed);
            assert!(!fate.is_granted && !fate.is_accepted, "seed {}: {request:?} never ends", self.seed);
        }
        for agent in &self.agents {
            assert!(agent.lock.is_free(), "seed {}: {:?} outlives all requests", self.seed, agent.lock);
        }
    }

    fn step(&mut self, happening: Happening) {
        match happening {
            Happening::Arrival(agent, kind, request) => {
                if !self.agents[agent].is_down {
                    self.messages += 1;
                    self.react(agent, Event::Message(kind, request));
                }
            }
            Happening::Trigger(agent) => self.trigger(agent),
            Happening::Clock(agent, clock) => {
                if self.agents[agent].clock == clock {
                    self.overdue(agent);
                }
            }
            Happening::End(agent, request) => {
                if self.agents[agent].is_down {
                    self.after(ROUND_TRIP, Happening::End(agent, request));
                } else if self.agents[agent].lock.own() == Some(request)
                    && self.agents[agent].lock.state() == State::Locked
                {
                    if !self.is_calm && self.below(4) == 0 {
                        self.abort(agent);
                    } else {
                        self.react(agent, Event::Complete);
                    }
                }
            }
            Happening::Crash(agent) => {
                self.has_failed = true;
                self.agents[agent].is_down = true;
                let wait = self.below(2_000);
                self.after(wait, Happening::Back(agent));
            }
            Happening::Back(agent) => {
                let lock = &self.agents[agent].lock;
                let seen = (0..self.agents.len() as u64)
                    .map(AgentId)
                    .map(|left| (left, lock.seen(left)))
                    .filter(|(_, epoch)| *epoch > 0);
                let back = Lock::with(
                    AgentId(agent as u64),
                    (lock.state(), lock.own()),
                    lock.kept(),
                    lock.anchored(),
                    seen.collect(),
                );
                assert_eq!(back, *lock, "the log is complete");
                self.agents[agent].lock = back;
                self.agents[agent].is_down = false;
                self.set_clock(agent);
            }
        }
    }

    /// Asks for a segment, once in a while for one whose right anchor is not in the chain.
    fn trigger(&mut self, agent: usize) {
        let size = self.agents.len() as u64;
        let right = AgentId(agent as u64 + 1 + self.below(size - agent as u64 + 1));
        let Agent { lock, is_gone, is_down, next, triggers, .. } = &mut self.agents[agent];
        if *is_gone || next.is_none() || *triggers == 0 {
            return;
        }
        *triggers -= 1;
        if let Some(request) = lock.next_request(right).filter(|_| !*is_down) {
            let has_reason = self.fates.iter().any(|(other, fate)| fate.is_accepted && overlap(other, &request));
            self.fates.insert(
                request,
                Fate { is_decided: false, is_granted: false, is_accepted: false, has_reason, is_complete: false },
            );
            self.agents[agent].attempts = 0;
            self.react(agent, Event::Start(request));
        }
        let wait = self.below(2_000);
        self.after(wait, Happening::Trigger(agent));
    }

    fn overdue(&mut self, agent: usize) {
        let Agent { lock, is_down, attempts, .. } = &mut self.agents[agent];
        let waits = matches!(lock.state(), State::Pending | State::Cancelling | State::Releasing);
        if *is_down || !waits || lock.own().is_none_or(|own| own.left != AgentId(agent as u64)) {
            return;
        }
        *attempts += 1;
        if lock.state() == State::Pending && *attempts > ATTEMPTS {
            self.abort(agent);
        } else {
            self.react(agent, Event::Timer);
        }
    }

    fn abort(&mut self, agent: usize) {
        self.has_failed = true;
        let request = self.agents[agent].lock.own().expect("a request");
        let fate = self.fates.get_mut(&request).expect("asked for");
        fate.is_decided = true;
        fate.is_granted = false;
        self.aborted += 1;
        self.react(agent, Event::Abort);
    }

    fn react(&mut self, agent: usize, event: Event) {
        let is_end = self.agents[agent].next.is_none();
        self.situations.insert(situation(&self.agents[agent].lock, AgentId(agent as u64), event, is_end));
        let mut actions = Vec::new();
        if let Err(error) = self.agents[agent].lock.react(event, is_end, &mut actions) {
            panic!("seed {}: {error}: {event:?} at {:?}", self.seed, self.agents[agent].lock);
        }
        if event == Event::Complete {
            let request = self.agents[agent].lock.own().expect("a request");
            let fate = self.fates.get_mut(&request).expect("asked for");
            (fate.is_granted, fate.is_complete) = (false, true);
        }
        for action in actions {
            self.act(agent, action);
        }
        self.set_clock(agent);
    }

    fn act(&mut self, agent: usize, action: Action) {
        match action {
            Action::Send(kind, request) => {
                let to = if kind.goes_right() { self.agents[agent].next } else { self.agents[agent].previous };
                self.send(to.expect("a neighbour"), kind, request);
            }
            Action::Accepted(request) => {
                for (other, fate) in &mut self.fates {
                    if *other == request {
                        fate.is_accepted = true;
                    } else if overlap(other, &request) {
                        fate.has_reason = true;
                    }
                }
            }
            Action::Granted(request) => {
                for (other, fate) in &self.fates {
                    assert!(
                        !fate.is_granted || !overlap(other, &request),
                        "seed {}: {other:?} and {request:?}",
                        self.seed
                    );
                }
                let fate = self.fates.get_mut(&request).expect("asked for");
                (fate.is_granted, fate.is_decided) = (true, true);
                let mut at = agent;
                while AgentId(at as u64) != request.right {
                    let lock = &self.agents[at].lock;
                    assert_eq!((lock.state(), lock.own()), (State::Locked, Some(request)), "seed {}", self.seed);
                    at = self.agents[at].next.expect("a right anchor");
                }
                assert_eq!(self.agents[at].lock.anchored(), Some(request), "seed {}", self.seed);
                self.granted += 1;
                let wait = self.below(3_000);
                self.after(wait, Happening::End(agent, request));
            }
            Action::Refused(request, why) => {
                let is_there = self.agents.get(request.right.0 as usize).is_some_and(|right| !right.is_gone);
                let fate = self.fates.get_mut(&request).expect("asked for");
                assert!(
                    fate.has_reason || !is_there || self.has_failed,
                    "seed {}: {request:?} is refused as {why:?}",
                    self.seed
                );
                fate.is_decided = true;
                fate.is_accepted = false;
                self.refused += 1;
            }
            Action::Patience(_) => self.agents[agent].attempts = 0,
            Action::Ended(request) => self.ended(agent, request),
            Action::Left => self.agents[agent].is_gone = true,
        }
    }

    fn ended(&mut self, agent: usize, request: Request) {
        for (index, other) in self.agents.iter().enumerate() {
            let keeps = [other.lock.own(), other.lock.kept(), other.lock.anchored()].contains(&Some(request));
            assert!(
                !keeps || (index == agent && other.lock.own() != Some(request)),
                "seed {}: {request:?} at {index}",
                self.seed
            );
        }
        let fate = self.fates.get_mut(&request).expect("asked for");
        fate.is_accepted = false;
        if fate.is_complete {
            let right = request.right.0 as usize;
            let mut at = self.agents[agent].next.expect("a right anchor");
            while at != right {
                assert!(self.agents[at].is_gone, "seed {}", self.seed);
                at = self.agents[at].next.expect("a right anchor");
            }
            self.agents[agent].next = Some(right);
            self.agents[right].previous = Some(agent);
        }
        self.agents[agent].attempts = 0;
    }

    fn send(&mut self, to: usize, kind: Kind, request: Request) {
        let copies = if self.below(100) < self.loss { 0 } else { 1 + u64::from(self.below(100) < self.duplicates) };
        if copies == 0 {
            self.has_failed = true;
        }
        for _ in 0..copies {
            // A few are very late.
            let wait = 1 + if !self.is_calm && self.below(20) == 0 { self.below(5_000) } else { self.below(40) };
            self.after(wait, Happening::Arrival(to, kind, request));
        }
    }

    fn set_clock(&mut self, agent: usize) {
        self.agents[agent].clock += 1;
        let clock = self.agents[agent].clock;
        self.after(ROUND_TRIP, Happening::Clock(agent, clock));
    }

    fn after(&mut self, wait: Time, happening: Happening) {
        self.serial += 1;
        self.happenings.insert((self.now + wait, self.serial), happening);
    }

    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }
}

fn below(random: &mut Lcg128Xsl64, bound: u64) -> u64 {
    random.next_u64() % bound
}

fn overlap(one: &Request, other: &Request) -> bool {
    one != other && one.left < other.right && other.left < one.right
}
