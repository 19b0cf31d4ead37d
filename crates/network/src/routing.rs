//! Next hops over shortest paths, found when asked for, so that ten thousand nodes need no square of tables.

use crate::model::{Network, NodeIndex, PortPlace};
use weftwire_core::Port;

/// The way from a node towards a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Out of this port of the node.
    pub port: Port,
    /// To this port of the next addressed node, behind any switches and transparent functions.
    pub to: PortPlace,
}

/// Next hops in a network. Paths are those with the fewest addressed nodes, then the least delay (of the settings at the
/// start, both directions added), then the lowest port number; only hosts at the ends, only routers between.
pub struct Routes {
    _tables: Vec<Option<Vec<u16>>>,
}

impl Routes {
    /// Prepares the neighbours of each node; tables are made when first asked for.
    pub fn new(_network: &Network) -> Routes {
        todo!()
    }

    /// The next hop from `from` towards `to`; `None` if there is no way, or both are the same.
    pub fn next(&mut self, _from: NodeIndex, _to: NodeIndex) -> Option<Hop> {
        todo!()
    }
}
