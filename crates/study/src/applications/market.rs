//! Figure 8: how late the messages of interest of a market's feed are.

use super::host::Host;
use super::stage::{Frames, Stage};
use super::work::Work;
use super::{Options, StudyError};
use serde::Serialize;
use weftwire_workload::market::{Feed, FeedSettings};
use weftwire_workload::{ITCH_FORMATS, Numbers};

/// An exchange, a switch and a subscriber on links of 100 Gbit/s; half a microsecond each way is also the switch's.
const NETWORK: &str = r#"
duration = "100s"
sample_interval = "1s"
[nodes.exchange]
[nodes.switch]
kind = "function"
rules = "rules"
format = "formats"
[nodes.subscriber]
kind = "sink"
[[links]]
between = ["exchange", "switch:1"]
rate = "100Gbit/s"
delay = "500ns"
overhead = 24
queue = "100000 packets"
[[links]]
between = ["switch:2", "subscriber"]
rate = "100Gbit/s"
delay = "500ns"
overhead = 24
queue = "100000 packets"
[[traffic]]
kind = "capture"
from = "exchange"
file = "feed"
"#;
/// Bits per nanosecond of the links, and what a frame takes on them beside its bytes.
const WIRE: (u64, u64) = (100, 24);
/// Where MoldUDP64 begins in a frame, and messages.
const MOLD: usize = 42;
const FIRST: usize = MOLD + 20;

/// The feeds of Figure 8: one message a packet, half a per cent of interest; 1 to 12 messages, 5 %.
pub const FEEDS: [(&str, FeedSettings); 2] = [
    ("one message a packet", FeedSettings { symbols: 100, watched_per_mille: 5, messages: (1, 1) }),
    ("1 to 12 messages a packet", FeedSettings { symbols: 100, watched_per_mille: 50, messages: (1, 12) }),
];

/// A feed, filtered at one place.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// The feed.
    pub feed: &'static str,
    /// Who filters: `switch` or `host`.
    pub filter: &'static str,
    /// Packets that the exchange sends a second.
    pub packets_per_second: f64,
    /// Packets that come to the subscriber.
    pub packets_at_host: u64,
    /// Messages of interest that the exchange sent.
    pub wanted: usize,
    /// From sending to the end of the subscriber's work, of messages of interest that it got; sorted.
    #[serde(skip)]
    pub latencies_ns: Vec<u64>,
}

/// What the work is: each feed is made once and sent twice.
pub(super) fn packets(options: &Options) -> usize {
    FEEDS.len() * 3 * options.packets as usize
}

/// Both feeds, each filtered by the switch and by the host.
pub(super) fn run(options: &Options, work: &mut Work<'_>) -> Result<Vec<Run>, StudyError> {
    let mut runs = Vec::new();
    for (feed, settings) in FEEDS {
        let (frames, rate) = frames(options, settings, work)?;
        let wanted = frames.iter().map(|(_, frame)| orders(frame).count()).sum();
        let rules = ["add_order.stock == GOOGL : fwd(2);", "udp.destination_port == 26400 : fwd(2);"];
        for (filter, rules) in ["switch", "host"].into_iter().zip(rules) {
            let (mut host, mut packets_at_host, mut latencies_ns) = (Host::default(), 0, Vec::new());
            let mut arrive = |_: usize, at: u64, frame: &[u8]| {
                packets_at_host += 1;
                if let Some(done) = host.take(at, cost(options, frame)) {
                    latencies_ns.extend(orders(frame).map(|sent| done - sent));
                }
            };
            Stage::new(NETWORK, ITCH_FORMATS, rules)?.run(frames.clone(), &["subscriber"], work, &mut arrive)?;
            latencies_ns.sort_unstable();
            runs.push(Run { feed, filter, packets_per_second: rate, packets_at_host, wanted, latencies_ns });
        }
    }
    Ok(runs)
}

/// What the subscriber takes for a frame: it looks at every message, whoever filtered.
fn cost(options: &Options, frame: &[u8]) -> u64 {
    let messages = u64::from(u16::from_be_bytes([frame[MOLD + 18], frame[MOLD + 19]]));
    options.packet_ns + messages * options.message_ns
}

/// When each order of interest in a frame was sent, by the message's own time.
fn orders(frame: &[u8]) -> impl Iterator<Item = u64> {
    let mut rest = frame.get(FIRST..).unwrap_or_default();
    std::iter::from_fn(move || {
        while let [high, low, behind @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
            let (message, next) = behind.split_at(length);
            rest = next;
            if message.first() == Some(&b'A') && message.get(24..32) == Some(b"GOOGL   ") {
                return Some(message[5..11].iter().fold(0, |time, byte| time << 8 | u64::from(*byte)));
            }
        }
        None
    })
}

/// The feed in bursts, and its packets a second. Bursts begin after times with an exponential distribution and have a geometric
/// number of packets, one behind the other on the wire.
fn frames(options: &Options, settings: FeedSettings, work: &mut Work<'_>) -> Result<(Frames, f64), StudyError> {
    let start = Feed::new(settings, options.seed).opened();
    // What a packet costs the host on average.
    let mut sample = start.clone();
    let mean = (0..10_000).map(|_| cost(options, &sample.packet(0))).sum::<u64>() as f64 / 10_000.0;
    let rate = f64::from(options.load) / 100.0 / mean;
    let mut numbers = Numbers::new(options.seed + 1);
    let (mut feed, mut burst_at, mut wire_free) = (start, 0.0, 0);
    let mut frames: Frames = Vec::with_capacity(options.packets as usize);
    for _ in 0..options.packets {
        // The first burst begins at 0, as a capture's traffic does.
        if !frames.is_empty() && numbers.below(u64::from(options.burst.max(1))) == 0 {
            let uniform = (numbers.bits() >> 11) as f64 / (1u64 << 53) as f64;
            burst_at -= (1.0 - uniform).ln() * f64::from(options.burst.max(1)) / rate;
        }
        let at = (burst_at as u64).max(wire_free);
        let frame = feed.packet(at);
        wire_free = at + (frame.len() as u64 + WIRE.1) * 8 / WIRE.0;
        frames.push((at as i64, frame));
        if frames.len().is_multiple_of(1 << 12) && work.tell(frames.len()).is_break() {
            return Err(StudyError::Interrupted);
        }
    }
    work.finish(frames.len())?;
    let lasted = frames.last().map_or(1, |(at, _)| *at).max(1) as f64;
    let sent = frames.len() as f64 / lasted * 1e9;
    Ok((frames, sent))
}
