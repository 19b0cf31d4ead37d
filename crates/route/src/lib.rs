//! Routing of packet subscriptions: which filters each port of each switch needs, so that every subscriber gets exactly
//! its messages, once.
//!
//! [`Topology`] holds hosts, switches and links. [`Plan`] decides which links carry packets: up and down a hierarchy, or
//! along spanning trees where there is none. [`tables()`] fills in the filters in one go; [`Controller`] keeps them while
//! subscriptions and links come and go, and says what changed. [`walk()`] sends one packet through the result. [`Fibs`]
//! serves large graphs, switch by switch.
//!
//! After Jepsen et al., "Forwarding and Routing With Packet Subscriptions", section IV. Pure: no clock, no file, no random
//! source; every order is that of the numbers given to switches, hosts and links.
#![forbid(unsafe_code)]

mod controller;
mod edges;
mod failure;
mod fib;
mod filters;
mod hosts;
mod intern;
mod plan;
mod policy;
mod spread;
mod topology;
mod tree;
mod tree_state;
mod walk;

pub use controller::{Change, Controller, Delta, NotSubscribed};
pub use edges::{EdgeList, EdgeListError, parse_edges};
pub use failure::{Element, Failures};
pub use fib::{Fibs, TreePort};
pub use filters::{MessageFilter, Programs, SwitchProgram, ways};
pub use hosts::HostSet;
pub use plan::{Component, Fallback, Mode, Out, Plan, Source};
pub use policy::{Policy, Settings, SettingsError, Table, Tables, tables};
pub use spread::{Spread, Spreader};
pub use topology::{
    Attached, Direction, HostId, Layers, Link, LinkId, Node, NodeKind, PortId, SwitchId, Topology, TopologyError,
    fat_tree,
};
pub use tree::{Ties, Tree, Weight, spanning_trees};
pub use walk::{Crossing, Forwarding, LayerTraffic, Packet, Walk, walk};

/// What the routing needs to know of a filter.
///
/// Filters are cloned into tables and changes: a cheap clone helps, and [`std::sync::Arc`] of a filter is a filter too.
pub trait Filter: Clone + Ord {
    /// What filters are asked about.
    type Message: ?Sized;

    /// The filter that matches every message.
    fn everything() -> Self;

    /// What switches on the way are to have: a filter that matches at least what this one does, its constants multiples of
    /// `unit` (`x > 53` becomes `x > 50` and `x < 53` becomes `x < 60` for a unit of 10; a unit of 0 or 1 changes no constant),
    /// without what only the last switch may ask, such as the state of counters. Only hosts' ports have filters as they are.
    fn relaxed(&self, unit: u64) -> Self;

    /// Whether it matches.
    fn matches(&self, message: &Self::Message) -> bool;
}

impl<T: Filter> Filter for std::sync::Arc<T> {
    type Message = T::Message;

    fn everything() -> Self {
        T::everything().into()
    }

    fn relaxed(&self, unit: u64) -> Self {
        T::relaxed(self, unit).into()
    }

    fn matches(&self, message: &Self::Message) -> bool {
        T::matches(self, message)
    }
}

/// A well mixed number of two: SplitMix64's last step (Steele, Lea and Flood 2014).
pub(crate) fn mix(seed: u64, value: u64) -> u64 {
    let mut mixed = seed.wrapping_add(value.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number from 0 to `bound - 1` of a mixed one.
pub(crate) fn below(mixed: u64, bound: usize) -> usize {
    ((u128::from(mixed) * bound as u128) >> 64) as usize
}
