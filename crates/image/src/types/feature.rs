//! What engines may have or lack.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that an image asks of an engine beyond registers, rows, header fields and `send`, which all engines have.
/// An image lists those that it uses; an engine that lacks one refuses the image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Registers in a row, by number.
    Arrays,
    /// Events `connect`, `data` and `close`, a send buffer a flow, and bytes delivered.
    Application,
    /// Operations that rows share.
    Blocks,
    /// Packets built from templates.
    Build,
    /// A copy of a packet to work on.
    Copy,
    /// Division and remainder, signed and unsigned.
    Division,
    /// Eviction from groups of states, one after the other.
    EvictInTurn,
    /// Eviction of whoever is idle longest.
    EvictOldest,
    /// Eviction of whoever is idle longest in some states.
    EvictOldestIn,
    /// Rows for the event `expire`.
    ExpireEvent,
    /// Idle times after which instances expire.
    Expiry,
    /// The environment's `flow_full`.
    FlowFull,
    /// The environment's `flow_hash`.
    FlowHash,
    /// The operator `hash`.
    Hash,
    /// Instances that do not expire while a timer is pending or their application is open.
    Hold,
    /// Header formats that the image brings along.
    ImportedFormats,
    /// Events that rows raise.
    InternalEvents,
    /// Packets that end in an invariant CRC.
    InvariantCrc,
    /// TCP options taken out of a packet.
    KeepOptions,
    /// Whether an application listens.
    Listening,
    /// Products of 128 bits, divided.
    MulDiv,
    /// Products.
    Multiplication,
    /// Notices to the application.
    Notices,
    /// Packets without flow key passed on between pairs of ports.
    PassedPackets,
    /// Random numbers.
    Random,
    /// Ranges of sequence numbers.
    Ranges,
    /// Bytes kept until all in front of them is there.
    ReceiveBuffer,
    /// The event `icmp`.
    Icmp,
    /// Settings of timers that get a new deadline.
    MovedTimers,
    /// The MTU of ports.
    PortMtu,
    /// Internal events that are raised again, so and so often.
    Repeats,
    /// Payloads made shorter or longer.
    Resize,
    /// Instances that begin anew with the packet that they handle.
    Restart,
    /// Packets turned round.
    Reverse,
    /// Registers shown at regular times.
    Samples,
    /// Packets that stand for many segments.
    Segmentation,
    /// Records of segments.
    Segments,
    /// The event `set`.
    SetEvent,
    /// Packets stored in an instance.
    Slots,
    /// Registers shown by a row.
    Snapshots,
    /// Constant tables.
    Tables,
    /// Counts of flows and of settings of timers.
    Tallies,
    /// Questions about pending settings of timers.
    TimerQueries,
    /// Timers.
    Timers,
    /// Turns that all flows share.
    Turns,
}

impl fmt::Display for Feature {
    /// The name, as in the document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
