//! What is to hold, and where it did not.

use std::fmt;

/// What must hold whatever goes wrong on links and nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Invariant {
    /// Applications get exactly the bytes that were sent, or are told that they do not.
    Data,
    /// The flow table is bounded.
    Flows,
    /// Every timer fires when it is due or is cancelled; nothing happens at another time.
    Timers,
    /// Frames leave by ports that exist, well-formed and with right checksums.
    Frames,
    /// A flow id means one flow for ever.
    FlowIds,
    /// Every packet on a link arrives, is dropped and counted, or is still there.
    Conservation,
    /// The same schedule gives the same run.
    Repeatable,
    /// The simulator keeps its part of the contract.
    Simulator,
    /// Nothing panics.
    NoPanic,
}

impl Invariant {
    /// Its name as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Invariant::Data => "data",
            Invariant::Flows => "flows",
            Invariant::Timers => "timers",
            Invariant::Frames => "frames",
            Invariant::FlowIds => "flow-ids",
            Invariant::Conservation => "conservation",
            Invariant::Repeatable => "repeatable",
            Invariant::Simulator => "simulator",
            Invariant::NoPanic => "no-panic",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An invariant that did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which.
    pub invariant: Invariant,
    /// Where, when and how.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.text)
    }
}
