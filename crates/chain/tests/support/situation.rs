//! What a reaction depends on: the values of the conditions that the model tests at an event, whatever agents and epochs are called.

use std::cmp::Ordering;

use weftwire_chain::lock::{AgentId, Event, Kind, Lock, Refusal, Request, State};

/// What the event's request is to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It is what the subsession is locked for, or to be; whether this is the left anchor, and holds another request back.
    Own {
        state: State,
        is_left_anchor: bool,
        keeps: bool,
    },
    Kept,
    Anchored,
    /// Nothing: not come yet, or ended here.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Situation {
    /// From the left, of an epoch before the latest.
    Older(Kind),
    /// From the left, a request that was never heard of, and how the agent is placed.
    New { is_right_anchor: bool, is_anchored: bool, is_end: bool, state: State, is_left_anchor: bool, keeps: bool },
    /// Any other message; `knows`: from the left, of an epoch that was heard of.
    Message { kind: Kind, role: Role, knows: bool },
    /// From the agent around; 0 to 3.
    Call(u8, Role),
}

pub fn situation(lock: &Lock, me: AgentId, event: Event, is_end: bool) -> Situation {
    let is_left_anchor = lock.own().is_some_and(|own| own.left == me);
    let keeps = lock.kept().is_some();
    let role = |request: Option<Request>| match request {
        None => Role::Nothing,
        _ if lock.own() == request => Role::Own { state: lock.state(), is_left_anchor, keeps },
        _ if lock.kept() == request => Role::Kept,
        _ if lock.anchored() == request => Role::Anchored,
        _ => Role::Nothing,
    };
    let (kind, request) = match event {
        Event::Message(Kind::Nack(_), request) => (Kind::Nack(Refusal::Busy), request),
        Event::Message(kind, request) => (kind, request),
        Event::Start(_) => return Situation::Call(0, Role::Nothing),
        Event::Abort => return Situation::Call(1, role(lock.own())),
        Event::Complete => return Situation::Call(2, role(lock.own())),
        Event::Timer => return Situation::Call(3, role(lock.own())),
    };
    match (kind, request.epoch.cmp(&lock.seen(request.left))) {
        (Kind::Request | Kind::Cancel | Kind::Release, Ordering::Less) => Situation::Older(kind),
        (Kind::Request, Ordering::Greater) => Situation::New {
            is_right_anchor: request.right == me,
            is_anchored: request.right == me && lock.anchored().is_some(),
            is_end: request.right != me && is_end,
            state: if request.right == me || is_end { State::Unlocked } else { lock.state() },
            is_left_anchor: request.right != me && !is_end && is_left_anchor,
            keeps: request.right != me && !is_end && keeps,
        },
        (_, epoch) => Situation::Message {
            kind,
            // An answer concerns only what the subsession is locked for.
            role: if kind.goes_right() || lock.own() == Some(request) { role(Some(request)) } else { Role::Nothing },
            knows: kind.goes_right() && epoch == Ordering::Equal,
        },
    }
}
