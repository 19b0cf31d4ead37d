//! How many messages of a packet a program looks at if nobody says.

use crate::{Architecture, MOST_MESSAGES, Program, Targets};
use weftwire_subscribe::compiler::Compiler;
use weftwire_subscribe::formats::{Framing, Place};
use weftwire_subscribe::values::Interval;

/// Bytes that packets have behind Ethernet.
const PACKET_BYTES: u32 = 1500;

/// Bytes in front of a batch: IPv4 and UDP.
const FRONT_BYTES: u32 = 28;

/// Entries that many messages may not come to: each message has all of them.
const MOST_ENTRIES: usize = 100_000;

/// Messages that are looked at whatever that comes to.
const USUAL: usize = 4;

/// As many messages as a packet of 1,500 bytes has room for, of the shortest kind that the formats know; fewer where the
/// switch has no room for them, or where they would come to more than 100,000 entries.
pub fn messages(compiler: &Compiler, architecture: Architecture, targets: &Targets) -> usize {
    let formats = compiler.formats();
    let Some((header, batch)) = formats.batch_header() else { return 1 };
    let kinds = formats.headers().iter().filter(|it| matches!(it.place, Place::Message { .. }));
    let shortest = match batch.framing {
        Framing::Fixed(bytes) => bytes,
        Framing::Prefix(width) => u32::from(width / 8) + kinds.map(|it| it.length / 8).min().unwrap_or(0),
    };
    let room = PACKET_BYTES.saturating_sub(FRONT_BYTES + formats.header(header).length / 8);
    let counted = batch.count.map_or(u128::MAX, |(_, width)| Interval::of_width(width).last);
    let fits = u128::from(room / shortest.max(1)).min(counted).clamp(1, MOST_MESSAGES as u128) as usize;
    let entries: usize = compiler.tables().stages().map(|(_, stage)| stage.entry_count() + stage.rows.len()).sum();
    let most = fits.min((MOST_ENTRIES / entries.max(1)).max(USUAL));
    match architecture {
        Architecture::V1model => most,
        Architecture::Tna => {
            let has_room = |messages: &usize| {
                Program::new(compiler, architecture, &Targets { messages: *messages, ..*targets }).is_ok()
            };
            (1..=most).take_while(has_room).last().unwrap_or(1)
        }
    }
}
