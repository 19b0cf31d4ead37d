//! Flows: how packets find their instance, and who goes when the table is full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How packets find their instance, and how many instances there may be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Fields of the one side (indexes into `fields`), most significant first.
    pub source: Vec<u16>,
    /// Fields of the other side, pairwise of the same widths as `source`. Empty when the key has no sides.
    pub destination: Vec<u16>,
    /// Fields that belong to no side.
    pub common: Vec<u16>,
    /// Both directions meet one instance: the smaller side comes first in the key.
    pub symmetric: bool,
    /// Idle time in nanoseconds after which an instance expires, in states without one of their own; 0: never.
    pub expire: i64,
    /// In those states an instance does not expire while a setting of a timer is pending or its application is open.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub hold: bool,
    /// Greatest number of instances, at least 1.
    pub max: u32,
    /// What happens when a new flow meets a full table.
    pub when_full: WhenFull,
    /// Greatest number of timers an instance may have pending.
    pub max_timers: u32,
}

/// Policy of a full flow table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The new flow is refused; its packet is dropped.
    Reject,
    /// The flow idle for longest goes.
    EvictOldest,
    /// Of the flows in these states the one idle for longest goes; if there is none, the new flow is refused.
    EvictOldestIn(Vec<u16>),
    /// The first of these groups that has somebody to go decides; if none has, the new flow is refused.
    EvictInTurn(Vec<Eviction>),
}

/// Flows that a full table may give up: of those in the states, the one idle for longest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Eviction {
    /// The states.
    pub states: Vec<u16>,
    /// Only if it has been idle for this long, in nanoseconds.
    #[serde(default, skip_serializing_if = "super::is_zero_time")]
    pub idle: i64,
    /// Only if there are more than so many flows in the states.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub above: u32,
}

/// What happens to frames without a flow key (ARP, ICMP, other transports, fragments).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherPackets {
    /// Dropped and counted.
    Drop,
    /// Passed on untouched between these pairs of ports, both ways; dropped and counted on other ports.
    Pass(Vec<(u16, u16)>),
}
