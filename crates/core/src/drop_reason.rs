//! Why something was dropped.

use serde::{Deserialize, Serialize};

/// Why a frame raised no event, or an event had less effect than it asked for. Counted, one count a reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The frame ends inside a header that its predecessor announces.
    Truncated,
    /// A header's own length field is too small, or points beyond the packet.
    BadLength,
    /// The version field is not that of the protocol announced.
    BadVersion,
    /// The IPv4, TCP or UDP checksum is wrong.
    BadChecksum,
    /// The packet lacks a field of the flow key (ARP, ICMP, another transport, a later fragment).
    NoFlowKey,
    /// The flow table is full and its policy evicts nobody.
    TableFull,
    /// No row matched the event in the flow's state.
    NoRow,
    /// An action named a packet that is not there (empty slot, no current packet).
    NoPacket,
    /// An action named a port that the platform has not got.
    NoPort,
    /// An action set a field whose header or option the packet lacks.
    NoField,
    /// A division by zero; its result is 0.
    DivisionByZero,
    /// The instance, or the engine, has its greatest number of timers; the new one was not set.
    TooManyTimers,
    /// The instance kept setting timers for the present instant without end and was deleted.
    ZeroTimeLoop,
    /// A packet grew beyond 65,535 bytes of IP length and was not changed, or a frame is longer than the engine takes.
    TooLong,
    /// One event put out more frames and bytes than an event may; the rest was not put out.
    TooMuchOutput,
    /// The headers of a frame are longer than the engine takes.
    HeaderUnsupported,
    /// All flows together store as many packets as the engine has room for.
    NoBuffer,
    /// There would be more ranges than their object has room for; it was not changed.
    RangesFull,
    /// Bytes lie behind the end of the receive buffer; they were not kept.
    NoRoom,
    /// Bytes were to be delivered that the receive buffer does not hold; none were.
    NotHeld,
    /// There would be more records of segments than their object has room for; it was not changed.
    SegmentsFull,
    /// More flows would wait for a turn than there is room for; this one does not wait.
    TurnsFull,
    /// The invariant CRC at the packet's end is wrong.
    BadInvariantCrc,
}

impl DropReason {
    /// Every reason, in the order of declaration. Written states number them by their place here: new ones go to the end.
    pub const ALL: [DropReason; 23] = [
        DropReason::Truncated,
        DropReason::BadLength,
        DropReason::BadVersion,
        DropReason::BadChecksum,
        DropReason::NoFlowKey,
        DropReason::TableFull,
        DropReason::NoRow,
        DropReason::NoPacket,
        DropReason::NoPort,
        DropReason::NoField,
        DropReason::DivisionByZero,
        DropReason::TooManyTimers,
        DropReason::ZeroTimeLoop,
        DropReason::TooLong,
        DropReason::TooMuchOutput,
        DropReason::HeaderUnsupported,
        DropReason::NoBuffer,
        DropReason::RangesFull,
        DropReason::NoRoom,
        DropReason::NotHeld,
        DropReason::SegmentsFull,
        DropReason::TurnsFull,
        DropReason::BadInvariantCrc,
    ];

    /// The reason's place in [`DropReason::ALL`].
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The name as counters and reports show it, e.g. `bad_checksum`.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Truncated => "truncated",
            DropReason::BadLength => "bad_length",
            DropReason::BadVersion => "bad_version",
            DropReason::BadChecksum => "bad_checksum",
            DropReason::NoFlowKey => "no_flow_key",
            DropReason::TableFull => "table_full",
            DropReason::NoRow => "no_row",
            DropReason::NoPacket => "no_packet",
            DropReason::NoPort => "no_port",
            DropReason::NoField => "no_field",
            DropReason::DivisionByZero => "division_by_zero",
            DropReason::TooManyTimers => "too_many_timers",
            DropReason::ZeroTimeLoop => "zero_time_loop",
            DropReason::TooLong => "too_long",
            DropReason::HeaderUnsupported => "header_unsupported",
            DropReason::NoBuffer => "no_buffer",
            DropReason::RangesFull => "ranges_full",
            DropReason::NoRoom => "no_room",
            DropReason::NotHeld => "not_held",
            DropReason::SegmentsFull => "segments_full",
            DropReason::TurnsFull => "turns_full",
            DropReason::BadInvariantCrc => "bad_invariant_crc",
            DropReason::TooMuchOutput => "too_much_output",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_by_their_place() {
        assert!(DropReason::ALL.iter().enumerate().all(|(place, reason)| reason.number() == place as u64));
    }
}
