//! Locks on subsessions: which agents may change which segment of a chain (section III.B of the journal version, with the changes of
//! `docs/chains-models.md`).
//!
//! [`Lock`] is what one agent keeps of one session for this, and [`Lock::react`] what it does at one event. It is without input and
//! output: the agent around it carries messages to the neighbours over the old path, adds what else they carry (deltas, the state
//! of the new path), and runs the clock.
//!
//! The same reactions are in Promela in `models/lock_agent.pml`, where Spin checks their properties; `tests/lock_model.rs` replays here
//! every reaction that Spin has taken, and lets no simulation leave them.
//!
//! A request locks subsessions from its left anchor to the right. What it holds is given back from the right to the left, so who holds something for
//! a request is always a connected stretch that begins at its left anchor. Answers therefore can't leave a lock behind.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An agent, in this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgentId(pub u64);

/// The wish of a left anchor to change the segment between it and a right anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Request {
    /// The agent at the left end of the segment, which asks.
    pub left: AgentId,
    /// The agent at the right end.
    pub right: AgentId,
    /// Counts the requests of this left anchor in this session, from 1; it never wraps.
    pub epoch: u32,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// A subsession of the segment is locked for another request.
    Busy,
    /// The chain ended before the right anchor: it is not, or no longer, in the chain.
    NoRightAnchor,
    /// The request had ended at an agent on its way, and the answer was lost.
    Ended,
    /// An agent on the way follows more left anchors than [`Lock::MAX_LEFT_ANCHORS`].
    Full,
}

/// What a message says; which request it is about goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// To the right: lock each subsession (`requestLock`).
    Request,
    /// To the left: the right anchor agrees (`ackLock`).
    Ack,
    /// To the left: refused (`nackLock`).
    Nack(Refusal),
    /// To the left: another request is decided first. Provisional: the left anchor goes on waiting and counts no failure.
    Held,
    /// To the right: the request, or what it was granted for, has failed (`cancelLock`).
    Cancel,
    /// To the left: nothing is locked for it any more (`ackCancel`).
    Cancelled,
    /// To the right: the change is complete, the old path is free.
    Release,
    /// To the left: the answer to [`Kind::Release`].
    Released,
}

impl Kind {
    /// Whether messages of this kind go from left to right.
    #[must_use]
    pub fn goes_right(self) -> bool {
        matches!(self, Self::Request | Self::Cancel | Self::Release)
    }
}

/// What happens to one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A message about a request has come from the neighbour that sends this kind: from the left what goes right, from the right the rest.
    Message(Kind, Request),
    /// This agent is told to lock a segment that begins here. See [`Lock::next_request`].
    Start(Request),
    /// Its attempts are spent, or the new path can't be set up.
    Abort,
    /// All that was sent on the old path is acknowledged at both anchors.
    Complete,
    /// An answer to the last message of this left anchor is overdue.
    Timer,
}

/// What the agent has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send to the right if the kind [goes right](Kind::goes_right), else to the left.
    Send(Kind, Request),
    /// This agent has become the right anchor of a request.
    Accepted(Request),
    /// The request of this left anchor is granted: the new path may be set up.
    Granted(Request),
    /// The request of this left anchor is refused.
    Refused(Request, Refusal),
    /// The request of this left anchor is decided later than others: a failure is not to be counted.
    Patience(Request),
    /// The request of this left anchor is cancelled or complete, and nothing is left of it in any agent.
    Ended(Request),
    /// This agent was between the anchors of a change that is complete. It still answers messages that come over the old path, and
    /// must not start requests.
    Left,
}

/// The state of the subsession to the right of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum State {
    /// Free.
    #[default]
    Unlocked,
    /// Asked for.
    Pending,
    /// Granted, as far as this agent knows.
    Locked,
    /// Being given back by this left anchor after a failure.
    Cancelling,
    /// Being given back by this left anchor when complete.
    Releasing,
}

/// An event that can't happen to an agent in its state. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// A request held back that is not the left anchor's to hold: a neighbour breaks the protocol.
    #[error("a neighbour breaks the lock protocol")]
    Neighbour,
    /// The agent around has called for what the state does not allow.
    #[error("not possible in this state")]
    State,
}

/// What one agent keeps of one session for locking.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lock {
    me: AgentId,
    state: State,
    own: Option<Request>,
    kept: Option<Request>,
    anchored: Option<Request>,
    seen: BTreeMap<AgentId, u32>,
}

impl Lock {
    /// How many left anchors of one session an agent follows; a chain has no more hops than this.
    pub const MAX_LEFT_ANCHORS: usize = 64;

    /// The agent `me` of a session that has just begun.
    #[must_use]
    pub fn new(me: AgentId) -> Self {
        Self { me, state: State::Unlocked, own: None, kept: None, anchored: None, seen: BTreeMap::new() }
    }

    /// The agent in any state, for replays.
    #[must_use]
    pub fn with(
        me: AgentId,
        (state, own): (State, Option<Request>),
        kept: Option<Request>,
        anchored: Option<Request>,
        seen: BTreeMap<AgentId, u32>,
    ) -> Self {
        Self { me, state, own, kept, anchored, seen }
    }

    /// The state of the subsession to the right.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The request that the subsession to the right is locked for, or is to be.
    #[must_use]
    pub fn own(&self) -> Option<Request> {
        self.own
    }

    /// The request that waits until the one of this left anchor is decided.
    #[must_use]
    pub fn kept(&self) -> Option<Request> {
        self.kept
    }

    /// The request whose right anchor this agent is.
    #[must_use]
    pub fn anchored(&self) -> Option<Request> {
        self.anchored
    }

    /// The latest epoch heard of from a left anchor; 0 before the first.
    #[must_use]
    pub fn seen(&self, left: AgentId) -> u32 {
        self.seen.get(&left).copied().unwrap_or(0)
    }

    /// Whether nothing is locked, held or anchored here.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.state == State::Unlocked && self.kept.is_none() && self.anchored.is_none()
    }

    /// The request that this agent can start for a segment up to `right`, if its subsession is free.
    #[must_use]
    pub fn next_request(&self, right: AgentId) -> Option<Request> {
        let epoch = self.seen(self.me).checked_add(1)?;
        (self.state == State::Unlocked && right != self.me).then_some(Request { left: self.me, right, epoch })
    }

    /// Reacts to one event; `is_end` says that the chain ends at this agent. Actions are appended in their order.
    ///
    /// # Errors
    ///
    /// If the event can't happen in this state; nothing has changed then.
    pub fn react(&mut self, event: Event, is_end: bool, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        match event {
            Event::Start(request) => {
                if is_end || self.next_request(request.right) != Some(request) {
                    return Err(Unexpected::State);
                }
                self.seen.insert(self.me, request.epoch);
                self.take(request, actions);
            }
            Event::Abort => {
                let request = self.mine(&[State::Pending, State::Locked])?;
                self.state = State::Cancelling;
                actions.push(Action::Send(Kind::Cancel, request));
            }
            Event::Complete => {
                let request = self.mine(&[State::Locked])?;
                self.state = State::Releasing;
                actions.push(Action::Send(Kind::Release, request));
            }
            Event::Timer => {
                let request = self.mine(&[State::Pending, State::Cancelling, State::Releasing])?;
                let again = match self.state {
                    State::Cancelling => Kind::Cancel,
                    State::Releasing => Kind::Release,
                    _ => Kind::Request,
                };
                actions.push(Action::Send(again, request));
            }
            Event::Message(kind, request) => match kind {
                Kind::Request => self.on_request(request, is_end, actions)?,
                Kind::Ack => self.on_ack(request, actions),
                Kind::Nack(why) => self.on_nack(request, why, actions),
                Kind::Held => self.on_held(request, actions),
                Kind::Cancel => self.on_give_back(request, kind, Kind::Cancelled, actions),
                Kind::Release => self.on_give_back(request, kind, Kind::Released, actions),
                Kind::Cancelled => self.on_given_back(request, State::Cancelling, kind, actions),
                Kind::Released => self.on_given_back(request, State::Releasing, kind, actions),
            },
        }
        Ok(())
    }

    fn on_request(&mut self, request: Request, is_end: bool, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        let seen = self.seen(request.left);
        if request.epoch < seen {
            return Ok(());
        }
        if request.epoch == seen {
            actions.push(if self.anchored == Some(request) {
                Action::Send(Kind::Ack, request)
            } else if self.own == Some(request) {
                Action::Send(Kind::Request, request)
            } else if self.kept == Some(request) {
                Action::Send(Kind::Held, request)
            } else {
                // It has ended here, and the left has not heard so.
                Action::Send(Kind::Nack(Refusal::Ended), request)
            });
            return Ok(());
        }
        if self.is_full(request.left) {
            actions.push(Action::Send(Kind::Nack(Refusal::Full), request));
            return Ok(());
        }
        if request.right == self.me {
            if self.anchored.is_some() {
                // It comes by a new path, before the old one is given back: from an agent that is in the chain by that.
                actions.push(Action::Send(Kind::Nack(Refusal::Busy), request));
            } else {
                self.anchored = Some(request);
                actions.extend([Action::Accepted(request), Action::Send(Kind::Ack, request)]);
            }
        } else if is_end {
            actions.push(Action::Send(Kind::Nack(Refusal::NoRightAnchor), request));
        } else {
            match self.state {
                State::Unlocked => self.take(request, actions),
                State::Pending | State::Cancelling => {
                    // Only the left anchor of an undecided request is ever asked for another.
                    if self.kept.is_some() || !self.is_mine() {
                        return Err(Unexpected::Neighbour);
                    }
                    self.kept = Some(request);
                    actions.push(Action::Send(Kind::Held, request));
                }
                State::Locked | State::Releasing => actions.push(Action::Send(Kind::Nack(Refusal::Busy), request)),
            }
        }
        self.seen.insert(request.left, request.epoch);
        Ok(())
    }

    fn on_ack(&mut self, request: Request, actions: &mut Vec<Action>) {
        if self.own != Some(request) {
            return;
        }
        match (self.state, self.is_mine()) {
            (State::Pending, true) => {
                self.state = State::Locked;
                actions.push(Action::Granted(request));
                if let Some(kept) = self.kept.take() {
                    actions.push(Action::Send(Kind::Nack(Refusal::Busy), kept));
                }
            }
            (State::Pending | State::Locked, false) => {
                self.state = State::Locked;
                actions.push(Action::Send(Kind::Ack, request));
            }
            // Acknowledged before, or being given back.
            _ => {}
        }
    }

    fn on_nack(&mut self, request: Request, why: Refusal, actions: &mut Vec<Action>) {
        // What is being given back has an answer of its own.
        if self.own != Some(request) || self.state != State::Pending {
            return;
        }
        actions.push(if self.is_mine() {
            Action::Refused(request, why)
        } else {
            Action::Send(Kind::Nack(why), request)
        });
        self.unlock(actions);
    }

    fn on_held(&self, request: Request, actions: &mut Vec<Action>) {
        if self.own == Some(request) && self.state == State::Pending {
            actions.push(if self.is_mine() { Action::Patience(request) } else { Action::Send(Kind::Held, request) });
        }
    }

    fn on_give_back(&mut self, request: Request, kind: Kind, answer: Kind, actions: &mut Vec<Action>) {
        if request.epoch < self.seen(request.left) {
            return;
        }
        // A request that comes after this is known to be dead. Where there is no room for that, none gets in either.
        if !self.is_full(request.left) {
            self.seen.insert(request.left, request.epoch);
        }
        if self.own == Some(request) {
            actions.push(Action::Send(kind, request));
            return;
        }
        if self.anchored == Some(request) {
            self.anchored = None;
        } else if self.kept == Some(request) {
            self.kept = None;
        }
        actions.push(Action::Send(answer, request));
    }

    fn on_given_back(&mut self, request: Request, phase: State, answer: Kind, actions: &mut Vec<Action>) {
        if self.own != Some(request) {
            return;
        }
        if !self.is_mine() {
            if answer == Kind::Released {
                actions.push(Action::Left);
            }
            actions.push(Action::Send(answer, request));
            self.unlock(actions);
        } else if self.state == phase {
            actions.push(Action::Ended(request));
            self.unlock(actions);
        }
    }

    /// Frees the subsession; a request that was held back for it goes on.
    fn unlock(&mut self, actions: &mut Vec<Action>) {
        self.state = State::Unlocked;
        self.own = None;
        if let Some(kept) = self.kept.take() {
            self.take(kept, actions);
        }
    }

    fn take(&mut self, request: Request, actions: &mut Vec<Action>) {
        self.state = State::Pending;
        self.own = Some(request);
        actions.push(Action::Send(Kind::Request, request));
    }

    fn is_mine(&self) -> bool {
        self.own.is_some_and(|own| own.left == self.me)
    }

    fn mine(&self, states: &[State]) -> Result<Request, Unexpected> {
        self.own.filter(|own| own.left == self.me && states.contains(&self.state)).ok_or(Unexpected::State)
    }

    fn is_full(&self, left: AgentId) -> bool {
        self.seen.len() >= Self::MAX_LEFT_ANCHORS && !self.seen.contains_key(&left)
    }
}
