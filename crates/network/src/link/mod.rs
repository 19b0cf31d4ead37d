//! One direction of a link: a queue, a server with a rate, a delay, and everything that goes wrong on the way.
//!
//! [`Direction`] is a state machine without clock: packets are offered with the time, and come out with the time at
//! which they reach the far end. The simulator and the relay on Linux run this same code.
//!
//! A packet passes, in this order: blackhole and random loss; the queue of its class, by a discipline (drop-tail, RED, CoDel; each may
//! mark instead of drop; or marks above a step); the server, for its length over the rate (integrated over a rate trace); duplication;
//! corruption; the delay with jitter and reordering.

mod direction;
pub mod field;
pub mod frame;
mod loss;
mod pause;
mod queue;
mod rate;

pub use direction::{Arrival, Counts, Direction, DropCause, Offer};
pub use pause::{Holds, Ingress, Pause};

use std::sync::Arc;
use std::time::Duration;

/// How one direction of a link treats packets.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSettings {
    /// Bits per second; `None`: no serialisation time, and no queue ever.
    pub rate: Option<Rate>,
    /// Propagation.
    pub delay: Duration,
    /// Added to the delay: uniform between 0 and this.
    pub jitter: Duration,
    /// Packets overtake each other by jitter; else who would arrive before its predecessor arrives right behind it.
    pub jitter_reorders: bool,
    /// The queue before the server. The packet in service does not count.
    pub queue: Queue,
    /// The node at the far end asks for a pause when too much waits in it of what came by here (IEEE 802.1Q, priority-based
    /// flow control); `None`: it never does.
    pub pause: Option<Pause>,
    /// Loss before the queue.
    pub loss: Loss,
    /// Share of packets that take `reorder_delay` more and so may be overtaken, 0 to 1.
    pub reorder: f64,
    /// What a reordered packet takes more.
    pub reorder_delay: Duration,
    /// Share of packets that arrive twice, 0 to 1. The copy follows at once.
    pub duplicate: f64,
    /// Share of packets of which one random bit behind the Ethernet header is inverted, 0 to 1.
    pub corrupt: f64,
    /// Bytes added to each packet for its serialisation time (preamble, gap, FCS: 24 on Ethernet), not counted else.
    pub overhead: u32,
}

/// A rate in bits per second.
#[derive(Clone, PartialEq, Debug)]
pub enum Rate {
    /// Always the same; at least 1.
    Constant(u64),
    /// Changes over time.
    Trace(Arc<RateTrace>),
}

/// Rates over time, repeated from the start when over.
#[derive(Clone, PartialEq, Debug)]
pub struct RateTrace {
    /// From this instant (nanoseconds after the trace's start, the first is 0, ascending) this rate (may be 0).
    pub steps: Vec<(i64, u64)>,
    /// After this it begins anew: later than the last step. At least one step has a rate above 0.
    pub period: Duration,
}

/// A queue's size and discipline.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// How much may wait.
    pub limit: QueueLimit,
    /// Who is dropped or marked before the limit is reached.
    pub discipline: Discipline,
    /// Packets with an ECN-capable transport are marked where a discipline (not the limit) would drop them.
    pub ecn: bool,
    /// There is such a queue for each of [`CLASSES`], of which the highest that is not empty is served; else one for all.
    pub priority: bool,
}

/// Classes of traffic, 0 to 7: the upper three bits of DSCP (RFC 2474, 4.2.2). Higher ones go first.
pub const CLASSES: usize = 8;

impl Queue {
    /// Whether packets may be marked.
    pub fn marks(&self) -> bool {
        self.ecn || matches!(self.discipline, Discipline::Step { .. })
    }
}

/// How much may wait in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Packets.
    Packets(u64),
    /// Bytes of frames.
    Bytes(u64),
}

/// Queue disciplines.
#[derive(Clone, PartialEq, Debug)]
pub enum Discipline {
    /// Arrivals that find the queue full are dropped.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993, with the "gentle" ramp), thresholds in the limit's unit. Gaps between
    /// drops are uniform as in the paper's section 7: p / (1 - count p), which is ns-3's `Wait=false`.
    Red {
        /// Average queue below which nothing is dropped.
        minimum: u64,
        /// Average queue at which the probability is `probability`; it rises to 1 at twice this (gentle).
        maximum: u64,
        /// Greatest probability before the gentle ramp, above 0, at most 1.
        probability: f64,
        /// Weight of a new sample in the average, above 0, at most 1.
        weight: f64,
    },
    /// ECN-capable arrivals that find more than so much waiting, in the limit's unit, are marked (RFC 8257, 3.1: K); others wait,
    /// up to the limit.
    Step {
        /// K.
        threshold: u64,
    },
    /// Controlled delay (RFC 8289).
    Codel {
        /// Acceptable standing delay.
        target: Duration,
        /// Sliding minimum's width.
        interval: Duration,
    },
}

/// Loss at random.
#[derive(Clone, PartialEq, Debug)]
pub enum Loss {
    /// Each packet with this probability, independently; 0 is no loss.
    Random(f64),
    /// Gilbert-Elliott: a Markov chain of two states that steps at each packet; each state has its own loss.
    GilbertElliott {
        /// Probability to go from the good state to the bad one.
        good_to_bad: f64,
        /// Probability to go back; above 0.
        bad_to_good: f64,
        /// Loss in the good state.
        loss_good: f64,
        /// Loss in the bad state.
        loss_bad: f64,
    },
}

impl Default for LinkSettings {
    /// An ideal wire: no rate, no delay, nothing goes wrong.
    fn default() -> LinkSettings {
        LinkSettings {
            rate: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_reorders: false,
            queue: Queue {
                limit: QueueLimit::Packets(100),
                discipline: Discipline::DropTail,
                ecn: false,
                priority: false,
            },
            pause: None,
            loss: Loss::Random(0.0),
            reorder: 0.0,
            reorder_delay: Duration::ZERO,
            duplicate: 0.0,
            corrupt: 0.0,
            overhead: 0,
        }
    }
}
