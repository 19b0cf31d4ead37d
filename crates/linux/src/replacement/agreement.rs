//! Who has the ports while one process replaces another: two state machines, without clock or socket, around one word that both
//! processes map. Ownership changes by atomic exchanges of that word alone, so messages may be late or lost and either process may stop
//! or die anywhere: there are never two owners, and the one that lives owns the ports in the end.
//!
//! | exchange | by | means |
//! |---|---|---|
//! | `Offered` to `Go` | predecessor | it has stopped, and the successor has said that it has all flows |
//! | `Go` to `Taken` | successor | it owns the ports from now on; nothing takes that back |
//! | `Offered` or `Go` to `Void` | predecessor | too late, refused, or the successor is dead: it goes on itself |
//! | `Offered` to `Void` | successor | it gives up |
//! | `Offered` to `Taken` | successor | the predecessor is dead |

/// How long a predecessor that has stopped waits for an answer, in nanoseconds.
pub const PATIENCE: i64 = 100_000_000;

/// What the word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Ownership {
    /// The predecessor owns the ports.
    Offered = 0,
    /// The successor may take them; until it does, nobody touches them.
    Go = 1,
    /// The successor owns them.
    Taken = 2,
    /// The predecessor owns them, and this offer is over.
    Void = 3,
}

/// The word.
pub trait Word {
    /// Makes `to` of `from`, at once. Whether it was `from`.
    fn exchange(&self, from: Ownership, to: Ownership) -> bool;

    /// Whether it says this.
    fn is(&self, what: Ownership) -> bool;
}

/// What the predecessor is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldStep {
    /// Wait for the next message, or for time to pass.
    Wait,
    /// Nothing more comes in: send the flows.
    SendFlows,
    /// Say that the successor may take the ports.
    SendGo,
    /// Go on, as if nothing had been.
    Resume,
    /// End: the ports belong to the successor.
    End,
}

/// The process that runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Predecessor {
    /// It runs, and the successor makes itself ready.
    Running,
    /// It has stopped at this time, and waits until the successor has the flows.
    Stopped(i64),
    /// It has said at this time that the successor may take the ports.
    Going(i64),
    /// It owns the ports, and the offer is over.
    Resumed,
    /// It does not own them.
    Ended,
}

impl Predecessor {
    /// Whether it may touch the ports.
    pub fn owns(&self) -> bool {
        matches!(self, Predecessor::Running | Predecessor::Resumed)
    }

    /// The successor is ready.
    pub fn ready(&mut self, now: i64) -> OldStep {
        match self {
            Predecessor::Running => {
                *self = Predecessor::Stopped(now);
                OldStep::SendFlows
            }
            _ => OldStep::Wait,
        }
    }

    /// The last flow was sent: from now on the successor is waited for.
    pub fn sent(&mut self, now: i64) {
        if let Predecessor::Stopped(since) = self {
            *since = now;
        }
    }

    /// The successor has all flows.
    pub fn adopted(&mut self, word: &impl Word, now: i64) -> OldStep {
        match self {
            Predecessor::Stopped(_) if word.exchange(Ownership::Offered, Ownership::Go) => {
                *self = Predecessor::Going(now);
                OldStep::SendGo
            }
            Predecessor::Stopped(_) => self.give_up(word),
            _ => OldStep::Wait,
        }
    }

    /// It is `now`, or the successor has said something.
    pub fn look(&mut self, word: &impl Word, now: i64) -> OldStep {
        match *self {
            Predecessor::Running | Predecessor::Resumed | Predecessor::Ended => OldStep::Wait,
            Predecessor::Stopped(since) | Predecessor::Going(since) => {
                if word.is(Ownership::Taken) || word.is(Ownership::Void) || now - since >= PATIENCE {
                    self.give_up(word)
                } else {
                    OldStep::Wait
                }
            }
        }
    }

    /// The successor is gone, or has refused: goes on, unless the ports are taken.
    pub fn give_up(&mut self, word: &impl Word) -> OldStep {
        if matches!(self, Predecessor::Resumed | Predecessor::Ended) {
            return OldStep::Wait;
        }
        let void = word.exchange(Ownership::Offered, Ownership::Void)
            || word.exchange(Ownership::Go, Ownership::Void)
            || word.is(Ownership::Void);
        if void {
            *self = Predecessor::Resumed;
            OldStep::Resume
        } else {
            *self = Predecessor::Ended;
            OldStep::End
        }
    }
}

/// What the successor is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewStep {
    /// Wait for the next message.
    Wait,
    /// Say that it is ready.
    SendReady,
    /// Say that it has all flows.
    SendAdopted,
    /// Run: the ports are its own, and so are all flows.
    Run,
    /// Run: the ports are its own. The predecessor died before all flows were here.
    RunWithoutFlows,
    /// End: the ports belong to the predecessor.
    End,
}

/// The process that is to run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Successor {
    /// It has the descriptors, and makes itself ready.
    Preparing,
    /// Flows come.
    Adopting,
    /// It has all flows.
    Waiting,
    /// It owns the ports.
    Owner,
    /// It does not, and will not.
    Over,
}

impl Successor {
    /// Whether it may touch the ports.
    pub fn owns(&self) -> bool {
        *self == Successor::Owner
    }

    /// All is open, and privileges are gone.
    pub fn prepared(&mut self) -> NewStep {
        match self {
            Successor::Preparing => {
                *self = Successor::Adopting;
                NewStep::SendReady
            }
            _ => NewStep::Wait,
        }
    }

    /// The last flow is here.
    pub fn last(&mut self) -> NewStep {
        match self {
            Successor::Adopting => {
                *self = Successor::Waiting;
                NewStep::SendAdopted
            }
            _ => NewStep::Wait,
        }
    }

    /// It may take the ports.
    pub fn go(&mut self, word: &impl Word) -> NewStep {
        match self {
            Successor::Waiting => self.take(word, &[Ownership::Go]),
            _ => NewStep::Wait,
        }
    }

    /// The predecessor's end of the connection is closed: it has taken its offer back, or it is dead, however it died.
    pub fn gone(&mut self, word: &impl Word) -> NewStep {
        self.take(word, &[Ownership::Go, Ownership::Offered])
    }

    /// It waits no longer, or can't do it.
    pub fn give_up(&mut self, word: &impl Word) -> NewStep {
        match self {
            Successor::Owner | Successor::Over => NewStep::Wait,
            _ if word.exchange(Ownership::Offered, Ownership::Void) => {
                *self = Successor::Over;
                NewStep::End
            }
            _ => self.take(word, &[Ownership::Go]),
        }
    }

    fn take(&mut self, word: &impl Word, from: &[Ownership]) -> NewStep {
        if matches!(self, Successor::Owner | Successor::Over) {
            return NewStep::Wait;
        }
        let whole = *self == Successor::Waiting;
        match from.iter().any(|from| word.exchange(*from, Ownership::Taken)) {
            true => {
                *self = Successor::Owner;
                if whole { NewStep::Run } else { NewStep::RunWithoutFlows }
            }
            false => {
                *self = Successor::Over;
                NewStep::End
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    enum Said {
        Ready,
        Adopted,
        Flows,
        Go,
    }

    /// Both processes, what is on its way between them, and who lives.
    #[derive(Clone, PartialEq, Debug)]
    struct World {
        old: Predecessor,
        new: Successor,
        word: Ownership,
        to_old: Vec<Said>,
        to_new: Vec<Said>,
        old_lives: bool,
        new_lives: bool,
        /// The old one has closed its end while it lived.
        closed: bool,
    }

    struct Shared<'a>(&'a Cell<Ownership>);

    impl Word for Shared<'_> {
        fn exchange(&self, from: Ownership, to: Ownership) -> bool {
            let was = self.0.get() == from;
            if was {
                self.0.set(to);
            }
            was
        }

        fn is(&self, what: Ownership) -> bool {
            self.0.get() == what
        }
    }

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Happens {
        Prepared,
        OldHears,
        NewHears,
        LostToOld,
        LostToNew,
        OldLooksLate,
        OldSeesGone,
        NewSeesGone,
        NewGivesUp,
        OldDies,
        NewDies,
    }

    const ALL: [Happens; 11] = [
        Happens::Prepared,
        Happens::OldHears,
        Happens::NewHears,
        Happens::LostToOld,
        Happens::LostToNew,
        Happens::OldLooksLate,
        Happens::OldSeesGone,
        Happens::NewSeesGone,
        Happens::NewGivesUp,
        Happens::OldDies,
        Happens::NewDies,
    ];

    impl World {
        fn new() -> World {
            World {
                old: Predecessor::Running,
                new: Successor::Preparing,
                word: Ownership::Offered,
                to_old: vec![],
                to_new: vec![],
                old_lives: true,
                new_lives: true,
                closed: false,
            }
        }

        /// The world after it, if it can happen here.
        fn after(&self, happens: Happens) -> Option<World> {
            let mut next = self.clone();
            let cell = Cell::new(self.word);
            let word = Shared(&cell);
            let hears = |said: &mut Vec<Said>| (!said.is_empty()).then(|| said.remove(0));
            let new_runs = self.new_lives && !matches!(self.new, Successor::Owner | Successor::Over);
            let old_waits = self.old_lives && !self.closed && self.old != Predecessor::Ended;
            let (mut old_step, mut new_step) = (OldStep::Wait, NewStep::Wait);
            match happens {
                Happens::Prepared if new_runs && self.new == Successor::Preparing => new_step = next.new.prepared(),
                Happens::OldHears if old_waits => {
                    old_step = match hears(&mut next.to_old)? {
                        Said::Ready => next.old.ready(0),
                        _ => next.old.adopted(&word, 0),
                    }
                }
                Happens::NewHears if new_runs => {
                    new_step = match hears(&mut next.to_new)? {
                        Said::Flows => next.new.last(),
                        _ => next.new.go(&word),
                    }
                }
                Happens::LostToOld => drop(hears(&mut next.to_old)?),
                Happens::LostToNew => drop(hears(&mut next.to_new)?),
                Happens::OldLooksLate if old_waits => old_step = next.old.look(&word, PATIENCE),
                // Closed ends are seen behind all that was said.
                Happens::OldSeesGone
                    if old_waits
                        && self.to_old.is_empty()
                        && (!self.new_lives || matches!(self.new, Successor::Over)) =>
                {
                    old_step = next.old.give_up(&word)
                }
                Happens::NewSeesGone if new_runs && self.to_new.is_empty() && (!self.old_lives || self.closed) => {
                    new_step = next.new.gone(&word)
                }
                Happens::NewGivesUp if new_runs => new_step = next.new.give_up(&word),
                Happens::OldDies if self.old_lives => next.old_lives = false,
                Happens::NewDies if self.new_lives => next.new_lives = false,
                _ => return None,
            }
            next.word = cell.get();
            match old_step {
                OldStep::SendFlows => next.to_new.push(Said::Flows),
                OldStep::SendGo => next.to_new.push(Said::Go),
                OldStep::Resume => next.closed = true,
                // A process that has nothing left to do ends.
                OldStep::End => next.old_lives = false,
                OldStep::Wait => {}
            }
            match new_step {
                NewStep::SendReady => next.to_old.push(Said::Ready),
                NewStep::SendAdopted => next.to_old.push(Said::Adopted),
                NewStep::End => next.new_lives = false,
                NewStep::Wait | NewStep::Run | NewStep::RunWithoutFlows => {}
            }
            (next != *self).then_some(next)
        }

        fn owners(&self) -> usize {
            usize::from(self.old_lives && self.old.owns()) + usize::from(self.new_lives && self.new.owns())
        }
    }

    /// Every order of all that can happen: messages, their loss, late looks, deaths.
    #[test]
    fn there_are_never_two_owners_and_whoever_is_left_becomes_one() {
        let mut known = BTreeSet::new();
        let mut worlds = vec![World::new()];
        let (mut taken, mut resumed, mut inherited) = (0, 0, 0);
        while let Some(world) = worlds.pop() {
            if !known.insert(format!("{world:?}")) {
                continue;
            }
            assert!(world.owners() <= 1, "two owners: {world:?}");
            taken += usize::from(world.new.owns() && world.old == Predecessor::Ended);
            resumed += usize::from(world.old == Predecessor::Resumed);
            inherited += usize::from(world.new.owns() && !world.old_lives && world.old == Predecessor::Running);
            worlds.extend(ALL.into_iter().filter_map(|happens| world.after(happens)));

            // From here on nobody else dies or gives up, and nothing more is lost: somebody who lives has the ports soon.
            let mut calm = world.clone();
            let order = [
                Happens::Prepared,
                Happens::OldHears,
                Happens::NewHears,
                Happens::OldSeesGone,
                Happens::NewSeesGone,
                Happens::OldLooksLate,
            ];
            while let Some(next) = order.into_iter().find_map(|happens| calm.after(happens)) {
                calm = next;
            }
            let lives = calm.old_lives || calm.new_lives;
            assert!(!lives || calm.owners() == 1, "no owner: {calm:?}, from {world:?}");
        }
        let found = (known.len(), taken, resumed, inherited);
        assert!(known.len() > 90 && taken > 0 && resumed > 0 && inherited > 0, "{found:?}");
    }

    #[test]
    fn a_successor_that_answers_too_late_finds_its_offer_void() {
        let cell = Cell::new(Ownership::Offered);
        let word = Shared(&cell);
        let (mut old, mut new) = (Predecessor::Running, Successor::Preparing);
        assert_eq!(new.prepared(), NewStep::SendReady);
        assert_eq!(old.ready(5), OldStep::SendFlows);
        old.sent(10);
        assert_eq!(new.last(), NewStep::SendAdopted);
        assert_eq!(old.adopted(&word, 20), OldStep::SendGo);
        assert_eq!(old.look(&word, 20 + PATIENCE - 1), OldStep::Wait);
        assert_eq!(old.look(&word, 20 + PATIENCE), OldStep::Resume);
        assert_eq!(new.go(&word), NewStep::End);
        assert!(old.owns() && !new.owns());
    }
}
