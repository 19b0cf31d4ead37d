//! Hot and cold content: which requests go to a cache in the network, and how late cold content is. After Figure 11.

use super::host::Host;
use super::stage::{Frames, Stage};
use super::work::Work;
use super::{Options, StudyError};
use serde::Serialize;
use weftwire_workload::content::{RequestSettings, requests, split_rules};

const NETWORK: &str = include_str!("../../../../examples/networks/hicn.toml");
const FORMATS: &str = include_str!("../../../../examples/subscriptions/hicn.p4");
/// Contents that the cache holds, the least recently asked for go first.
const HELD: usize = 4;
/// From the cache to the producer and back.
const PRODUCER_NS: u64 = 20_000_000;
/// The window of the rules' meters.
const WINDOW_NS: u64 = 100_000_000;
/// Where a request names its content.
const NAME: std::ops::Range<usize> = 52..54;

/// Requests, sent by one set of rules.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// `meter`: only hot content is asked of the cache; `all`: all content is.
    pub rules: &'static str,
    /// Requests that the cache got.
    pub at_cache: u64,
    /// Of them, those whose content it held.
    pub hits: u64,
    /// Requests that went to the producer, past the cache.
    pub past_cache: u64,
    /// Of the content that becomes hot: requests at the cache and past it, in each window.
    pub hot_by_window: Vec<(u32, u32)>,
    /// From the switch to the answer, of requests for content that never is hot; sorted.
    #[serde(skip)]
    pub cold_ns: Vec<u64>,
}

/// A cache in front of a producer, in the order of arrival.
#[derive(Default)]
struct Cache {
    host: Host,
    held: Vec<u16>,
    hits: u64,
}

impl Cache {
    /// When the answer to a request is there.
    fn answer(&mut self, at: u64, content: u16, cost: u64) -> Option<u64> {
        let done = self.host.take(at, cost)?;
        let hit = self.held.contains(&content);
        self.held.retain(|known| *known != content);
        self.held.push(content);
        if self.held.len() > HELD {
            self.held.remove(0);
        }
        self.hits += u64::from(hit);
        Some(if hit { done } else { done + PRODUCER_NS })
    }
}

/// What the work is: the requests go twice.
pub(super) fn packets(options: &Options) -> usize {
    2 * requests(&RequestSettings::default(), options.seed).len()
}

/// The requests of the example, with its rules and with rules that send all to the cache.
pub(super) fn run(options: &Options, work: &mut Work<'_>) -> Result<Vec<Run>, StudyError> {
    let settings = RequestSettings::default();
    let split = split_rules(settings.contents, 10, "100ms");
    let list = requests(&settings, options.seed);
    let frames: Frames = list.into_iter().map(|request| (request.at.nanoseconds(), request.frame)).collect();
    let mut runs = Vec::new();
    for (name, rules) in [("meter", &*split), ("all", "udp.destination_port == 9695 : fwd(2);")] {
        let mut cache = Cache::default();
        let (mut at_cache, mut past_cache, mut cold_ns) = (0, 0, Vec::new());
        let mut hot_by_window = vec![(0, 0); settings.duration.as_nanos() as usize / WINDOW_NS as usize + 1];
        let mut arrive = |node: usize, at: u64, frame: &[u8]| {
            let content = frame.get(NAME).map_or(0, |name| u16::from_be_bytes([name[0], name[1]]));
            // Links: 10 us to the cache, 10 ms to the producer.
            let (left, answer) = match node {
                0 => (at.saturating_sub(10_000), cache.answer(at, content, options.cache_ns)),
                _ => (at.saturating_sub(PRODUCER_NS / 2), Some(at + PRODUCER_NS / 2)),
            };
            *(if node == 0 { &mut at_cache } else { &mut past_cache }) += 1;
            if content != settings.hot.content {
                cold_ns.extend(answer.map(|answer| answer - left));
            } else if let Some((cached, past)) = hot_by_window.get_mut((left / WINDOW_NS) as usize) {
                *(if node == 0 { cached } else { past }) += 1;
            }
        };
        Stage::new(NETWORK, FORMATS, rules)?.run(frames.clone(), &["cache", "producer"], work, &mut arrive)?;
        cold_ns.sort_unstable();
        runs.push(Run { rules: name, at_cache, hits: cache.hits, past_cache, hot_by_window, cold_ns });
    }
    Ok(runs)
}
