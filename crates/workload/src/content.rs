//! Requests for named content, as in hybrid ICN: the name of a content is an IPv6 address.

use crate::Numbers;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use weftwire_core::wire::builder::{FrameBuilder, Ipv6Fields};

/// How requests come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestSettings {
    /// Contents.
    pub contents: u16,
    /// How long, in nanoseconds.
    pub duration_ns: u64,
    /// From one request for a content that nobody is after to the next, in nanoseconds, on average.
    pub gap_ns: u64,
    /// Content number `.0` is asked for every `.1` nanoseconds between `.2` and `.3`.
    pub hot: (u16, u64, u64, u64),
}

impl Default for RequestSettings {
    /// 32 contents, each asked for twenty times a second; for 0.9 s number 7 a thousand times a second.
    fn default() -> RequestSettings {
        let ms = 1_000_000;
        RequestSettings { contents: 32, duration_ns: 1_500 * ms, gap_ns: 50 * ms, hot: (7, ms, 330 * ms, 1_230 * ms) }
    }
}

/// The name of a content.
pub fn content_name(content: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xb001, 0, 0, 0, 0, 0, 0, content)
}

/// Requests by time: when, for which content, and the frame.
pub fn requests(settings: &RequestSettings, seed: u64) -> Vec<(u64, u16, Vec<u8>)> {
    let mut numbers = Numbers::new(seed);
    let mut times: Vec<(u64, u16)> = Vec::new();
    for content in 0..settings.contents {
        // Even around the mean, so that a window never has many of them.
        let mut at = numbers.below(settings.gap_ns.max(1));
        while at < settings.duration_ns {
            times.push((at, content));
            at += settings.gap_ns / 2 + numbers.below(settings.gap_ns.max(1));
        }
    }
    let (content, every, from, to) = settings.hot;
    let mut at = from;
    while at < to.min(settings.duration_ns) && every > 0 {
        times.push((at, content));
        at += every;
    }
    times.sort_unstable();
    times
        .iter()
        .enumerate()
        .map(|(segment, (at, content))| (*at, *content, request(*content, segment as u32)))
        .collect()
}

/// A request for a segment of a content.
fn request(content: u16, segment: u32) -> Vec<u8> {
    let source = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
    let ip = Ipv6Fields { source, destination: content_name(content), ..Ipv6Fields::default() };
    let frame = FrameBuilder::ethernet([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]).ipv6(&ip).udp(9_695, 9_695);
    frame.payload(&segment.to_be_bytes()).finish().unwrap_or_default()
}

/// Two rules for each content: asked for more than `most` times in a window, to port 2, else to port 3.
pub fn split_rules(contents: u16, most: u32, window: &str) -> String {
    let mut text = String::from("// Hot contents to the cache at port 2, cold ones to their producer behind port 3.\n");
    for content in 0..contents {
        let name = content_name(content);
        let _ = writeln!(text, "ipv6.destination == {name} and count() over {window} > {most} : fwd(2);");
        let _ = writeln!(text, "ipv6.destination == {name} and count() over {window} <= {most} : fwd(3);");
    }
    text
}
