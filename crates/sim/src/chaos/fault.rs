//! What can go wrong, and for how long.

use std::time::Duration;
use weftwire_core::Time;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Loss};
use weftwire_network::model::{FieldFault, LinkIndex, NodeIndex};

/// Something goes wrong for a while.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// When, after the start of the run.
    pub at: Time,
    /// Then it is over. A restart has no duration.
    pub lasts: Duration,
    /// What.
    pub what: FaultKind,
}

/// What goes wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum FaultKind {
    /// A link is down, both ways: what is on it is lost.
    LinkDown {
        /// The link.
        link: LinkIndex,
    },
    /// One direction silently swallows what is offered.
    Blackhole {
        /// The link.
        link: LinkIndex,
        /// From end 0 (0) or from end 1 (1).
        direction: usize,
    },
    /// One direction changes a header field, checksums not corrected.
    CorruptField {
        /// The link.
        link: LinkIndex,
        /// From end 0 (0) or from end 1 (1).
        direction: usize,
        /// The field, and what happens to it.
        field: FieldFault,
    },
    /// A node starts anew.
    Restart {
        /// The node.
        node: NodeIndex,
    },
    /// A node's clock leaps, and runs at another speed for a while.
    Clock {
        /// The node; it runs a function.
        node: NodeIndex,
        /// Parts per million that it runs faster, above -1,000,000.
        drift_ppm: i64,
        /// So far it leaps forward when the fault begins.
        leap: Duration,
    },
    /// One direction of a link is worse than its settings say.
    Impair {
        /// The link.
        link: LinkIndex,
        /// From end 0 (0) or from end 1 (1).
        direction: usize,
        /// In what way.
        impairment: Impairment,
    },
}

/// How a direction of a link is worse than its settings say. What is set to more than this already stays.
#[derive(Clone, PartialEq, Debug)]
pub enum Impairment {
    /// This share of packets is lost.
    Loss(f64),
    /// The delay is longer by so much.
    Delay(Duration),
    /// This share of packets takes so much longer and may be overtaken.
    Reorder(f64, Duration),
    /// This share of packets arrives twice.
    Duplicate(f64),
    /// One random bit is inverted in this share of packets.
    Corrupt(f64),
}

impl Impairment {
    /// Makes settings worse by it.
    pub(super) fn apply(&self, settings: &mut LinkSettings) {
        match *self {
            Impairment::Loss(share) => {
                settings.loss = Loss::Random(match settings.loss {
                    Loss::Random(before) => before.max(share),
                    Loss::GilbertElliott { .. } => share,
                });
            }
            Impairment::Delay(more) => settings.delay = settings.delay.saturating_add(more),
            Impairment::Reorder(share, more) => {
                settings.reorder = settings.reorder.max(share);
                settings.reorder_delay = settings.reorder_delay.max(more);
            }
            Impairment::Duplicate(share) => settings.duplicate = settings.duplicate.max(share),
            Impairment::Corrupt(share) => settings.corrupt = settings.corrupt.max(share),
        }
    }
}

impl Fault {
    /// When it is over.
    pub fn end(&self) -> Time {
        self.at.plus(self.lasts)
    }

    /// Whether its link or node is one of this network's.
    pub(super) fn fits(&self, network: &Network) -> bool {
        match self.what {
            FaultKind::Restart { node } | FaultKind::Clock { node, .. } => (node.0 as usize) < network.nodes.len(),
            FaultKind::LinkDown { link }
            | FaultKind::Blackhole { link, .. }
            | FaultKind::CorruptField { link, .. }
            | FaultKind::Impair { link, .. } => (link.0 as usize) < network.links.len(),
        }
    }
}
