//! Applications of packet subscriptions in the simulator, measured.
//!
//! [`market`] follows Figure 8 of Jepsen et al., "Forwarding and Routing With Packet Subscriptions": how late messages of interest
//! are if the network filters, and if the host does. [`content`] follows its Figure 11: requests for named content, with a cache that gets all
//! of them, or only those for what is asked for often. [`highway`] shows when cars' reports become alerts.

pub mod content;
pub mod highway;
pub mod host;
pub mod market;
mod report;
mod stage;
mod work;

pub use report::quantile;

use serde::Serialize;
use std::ops::ControlFlow;
use work::Work;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Options {
    /// Packets of each feed.
    pub packets: u32,
    /// Nanoseconds that the market's subscriber takes for a packet, whatever is in it.
    pub packet_ns: u64,
    /// Nanoseconds that it takes for each message.
    pub message_ns: u64,
    /// What the feed asks of the subscriber that filters by itself, in per cent of what it can do.
    pub load: u32,
    /// Packets of a burst on average.
    pub burst: u32,
    /// Nanoseconds that the cache takes for a request.
    pub cache_ns: u64,
    /// The same seed gives the same results.
    pub seed: u64,
}

impl Default for Options {
    /// The paper's subscriber takes 109 ns for a packet with one message: it filters 9.17 million a second. Looking at a message is 8 of
    /// them, as measured by `weftwire-bench subscriptions latency`.
    fn default() -> Options {
        Options { packets: 100_000, packet_ns: 101, message_ns: 8, load: 90, burst: 64, cache_ns: 550_000, seed: 1 }
    }
}

/// Everything.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Study {
    /// What was measured.
    pub options: Options,
    /// The market's feeds, each filtered at the switch and at the host.
    pub market: Vec<market::Run>,
    /// Requests for content, each way.
    pub content: Vec<content::Run>,
    /// Alerts of the highway.
    pub highway: Vec<highway::Alert>,
}

/// Why there are no results.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StudyError {
    /// Who watched broke it off.
    #[error("interrupted")]
    Interrupted,
    /// What the reader of networks or rules, or the simulator, says; a defect, as all of them are fixed.
    #[error("{0}")]
    Defect(String),
}

impl Study {
    /// Runs everything. `watch` hears now and then which share is done, from 0 to 1, and may break it off.
    ///
    /// # Errors
    /// [`StudyError`].
    pub fn run(options: &Options, watch: &mut dyn FnMut(f64) -> ControlFlow<()>) -> Result<Study, StudyError> {
        let mut work = Work::new(market::packets(options) + content::packets(options), watch);
        Ok(Study {
            options: *options,
            market: market::run(options, &mut work)?,
            content: content::run(options, &mut work)?,
            highway: highway::run(&mut work)?,
        })
    }
}
