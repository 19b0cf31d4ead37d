//! Requests for named content, as in hybrid ICN: the name of a content is an IPv6 address.

use crate::Numbers;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::time::Duration;
use weftwire_core::Time;
use weftwire_core::wire::builder::{FrameBuilder, Ipv6Fields};

/// How requests come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestSettings {
    /// Contents.
    pub contents: u16,
    /// How long.
    pub duration: Duration,
    /// From one request for a content that nobody is after to the next, on average.
    pub gap: Duration,
    /// What everybody is after for a while.
    pub hot: Hot,
}

/// A content that everybody is after for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hot {
    /// The content.
    pub content: u16,
    /// From one request to the next.
    pub every: Duration,
    /// When the first one comes.
    pub from: Time,
    /// Before this time the last one comes.
    pub to: Time,
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// When it comes, after the start.
    pub at: Time,
    /// What for.
    pub content: u16,
    /// Its frame.
    pub frame: Vec<u8>,
}

impl Default for RequestSettings {
    /// 32 contents, each asked for twenty times a second; for 0.9 s number 7 a thousand times a second.
    fn default() -> RequestSettings {
        let at = |milliseconds: i64| Time::from_nanoseconds(milliseconds * 1_000_000);
        let hot = Hot { content: 7, every: Duration::from_millis(1), from: at(330), to: at(1_230) };
        RequestSettings { contents: 32, duration: Duration::from_millis(1_500), gap: Duration::from_millis(50), hot }
    }
}

/// The name of a content.
pub fn content_name(content: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xb001, 0, 0, 0, 0, 0, 0, content)
}

/// Requests by time.
pub fn requests(settings: &RequestSettings, seed: u64) -> Vec<Request> {
    let mut numbers = Numbers::new(seed);
    let [end, gap, every] = [settings.duration, settings.gap, settings.hot.every].map(|it| it.as_nanos() as u64);
    let [from, to] = [settings.hot.from, settings.hot.to].map(|at| at.nanoseconds().max(0) as u64);
    let mut times: Vec<(u64, u16)> = Vec::new();
    for content in 0..settings.contents {
        // Even around the mean, so that a window never has many of them.
        let mut at = numbers.below(gap.max(1));
        while at < end {
            times.push((at, content));
            at += gap / 2 + numbers.below(gap.max(1));
        }
    }
    let mut at = from;
    while at < to.min(end) && every > 0 {
        times.push((at, settings.hot.content));
        at += every;
    }
    times.sort_unstable();
    let request = |(segment, (at, content)): (usize, (u64, u16))| Request {
        at: Time::from_nanoseconds(at as i64),
        content,
        frame: frame(content, segment as u32),
    };
    times.into_iter().enumerate().map(request).collect()
}

/// A request for a segment of a content.
fn frame(content: u16, segment: u32) -> Vec<u8> {
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
