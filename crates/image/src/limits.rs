//! Hard limits of every image. They keep a hostile document cheap: its memory and the work of one event are bounded
//! by these numbers and by the length of the document. Profiles ([`crate::profile`]) are tighter.

/// Longest document in bytes (16 MiB).
pub const MAX_DOCUMENT: usize = 16 << 20;
/// Greatest number of names of a register's values.
pub const MAX_NAMED_VALUES: usize = 256;
/// Longest name in bytes.
pub const MAX_NAME: usize = 128;
/// Most registers, scratch ones included.
pub const MAX_REGISTERS: usize = 4_096;
/// Most fields in each of the key's three lists.
pub const MAX_KEY_FIELDS: usize = 16;
/// Most instances.
pub const MAX_FLOWS: u32 = 1 << 24;
/// Most timers an instance may have pending.
pub const MAX_PENDING_TIMERS: u32 = 65_536;
/// Most groups in [`crate::WhenFull::EvictInTurn`].
pub const MAX_EVICTIONS: usize = 16;
/// Most pairs of ports in [`crate::OtherPackets::Pass`].
pub const MAX_PORT_PAIRS: usize = 256;
/// Most header formats: the built-in ones and as many imported ones as a packet's layout has room for.
pub const MAX_FORMATS: usize = 9 + weftwire_core::format::MAX_IMPORTED;
/// Most fields of one format.
pub const MAX_FORMAT_FIELDS: usize = 256;
/// Most header fields an image may name.
pub const MAX_FIELDS: usize = 4_096;
/// Most packet slots.
pub const MAX_SLOTS: usize = 32;
/// Most templates.
pub const MAX_TEMPLATES: usize = 256;
/// Most imported headers, and most TCP options, of a template.
pub const MAX_TEMPLATE_PARTS: usize = 16;
/// Most presets of a template.
pub const MAX_PRESETS: usize = 256;
/// Most timers.
pub const MAX_TIMERS: usize = 256;
/// Most values a timer carries.
pub const MAX_TIMER_PAYLOAD: usize = 4;
/// Most tables.
pub const MAX_TABLES: usize = 256;
/// Most entries of all tables together.
pub const MAX_TABLE_ENTRIES: usize = 1 << 20;
/// Most notices.
pub const MAX_NOTICES: usize = 1_024;
/// Most packets put into slots by `connect`: one of each transport a slot.
pub const MAX_CREATIONS: usize = 2 * MAX_SLOTS;
/// Most states.
pub const MAX_STATES: usize = 4_096;
/// Most internal events.
pub const MAX_INTERNAL_EVENTS: u16 = 4_096;
/// Most rounds of repeats inside one another in one event.
pub const MAX_ROUNDS: u64 = 65_536;
/// Most preparations.
pub const MAX_PREPARATIONS: usize = 65_535;
/// Most conditions.
pub const MAX_CONDITIONS: usize = 4_096;
/// Most rows.
pub const MAX_ROWS: usize = 65_535;
/// Most operations of one row, preparation or block, blocks written out.
pub const MAX_OPERATIONS: usize = 1_024;
/// Most operations of all rows, preparations and blocks together.
pub const MAX_ALL_OPERATIONS: usize = 1 << 18;
/// Most operations of all rows and preparations together, blocks written out.
pub const MAX_WRITTEN_OUT: usize = 1 << 20;
/// Most blocks.
pub const MAX_BLOCKS: usize = 65_535;
/// Most tests of one operation, and most kinds of one `keep_options`.
pub const MAX_TESTS: usize = 64;
/// Most objects of ranges.
pub const MAX_RANGES: usize = 8;
/// Most ranges of one object.
pub const MAX_RANGE_COUNT: u32 = 1_024;
/// Most bytes of the receive buffer.
pub const MAX_RECEIVE_BUFFER: u32 = 1 << 30;
/// Bytes of the send buffer, if an image does not say.
pub const DEFAULT_SEND_BUFFER: usize = 1 << 20;
/// Most bytes of the send buffer.
pub const MAX_SEND_BUFFER: u32 = 1 << 30;
/// Most objects of segments.
pub const MAX_SEGMENTS: usize = 8;
/// Most records of one object.
pub const MAX_SEGMENT_COUNT: u32 = 1 << 16;
/// Most fields of a record, beside its two sequence numbers.
pub const MAX_SEGMENT_FIELDS: usize = 30;
/// Most turns, each a queue.
pub const MAX_TURNS: usize = 8;
/// Most flows that wait for turns of one kind.
pub const MAX_WAITING: u32 = 1 << 16;
/// Most tallies.
pub const MAX_TALLIES: usize = 16;
/// Longest time from one turn to the next, in nanoseconds; the shortest is 1.
pub const MAX_TURN_COST: i64 = (1 << 32) - 1;
/// Most debug points.
pub const MAX_DEBUG_POINTS: usize = 65_535;
/// Most sources that rows come from, besides the main one.
pub const MAX_SOURCES: usize = 1_024;
/// Most samples.
pub const MAX_SAMPLES: usize = 256;
/// Shortest interval of a sample, in nanoseconds.
pub const MIN_SAMPLE_INTERVAL: i64 = 1_000;
/// Most findings a refused image is told.
pub const MAX_FINDINGS: usize = 100;
