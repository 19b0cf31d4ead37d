//! How late packets may leave the relay, and flows and datagrams their sources.

use weftwire_core::nanoseconds;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Rate};
use weftwire_network::model::TrafficKind;
use weftwire_network::traffic::Gap;

/// Nobody tells 50 us from none where the kernel's own timers are no better.
const ALWAYS_ALLOWED: i64 = 50_000;

/// What is allowed for the 99th percentile: of each direction with a rate or a delay a tenth of the time of a packet of
/// 1,500 bytes or a twentieth of its delay, whichever is more, and at least 50 us; of all directions the least.
pub fn allowed(network: &Network) -> i64 {
    let settings = network.links.iter().flat_map(|link| &link.directions);
    settings.filter_map(allowed_by).min().unwrap_or(ALWAYS_ALLOWED)
}

/// What one direction allows by itself; `None` if it has neither rate nor delay.
pub(crate) fn allowed_by(settings: &LinkSettings) -> Option<i64> {
    let rate = settings.rate.as_ref().map(|rate| match rate {
        Rate::Constant(rate) => *rate,
        Rate::Trace(trace) => trace.steps.iter().map(|step| step.1).max().unwrap_or(1),
    });
    let packet_time = rate.map_or(0, |rate| (1500.0 * 8e9 / rate.max(1) as f64) as i64);
    if packet_time == 0 && settings.delay.is_zero() {
        return None;
    }
    Some((packet_time / 10).max(nanoseconds(settings.delay) / 20).max(ALWAYS_ALLOWED))
}

/// What is allowed for the sources where no gap says how exact times must be.
const ALLOWED_WITHOUT_GAPS: i64 = 1_000_000;

/// What is allowed for the 99th percentile of the sources: a tenth of the least mean gap of all traffic, or 1 ms if none has
/// gaps, and no less than for the relay.
pub fn allowed_for_sources(network: &Network) -> i64 {
    let gaps = network.traffic.iter().filter_map(|traffic| match &traffic.kind {
        TrafficKind::Flows { gap, .. } | TrafficKind::Datagrams { gap, .. } => mean(gap),
        TrafficKind::RequestResponse { think, .. } => mean(think),
        TrafficKind::Bulk { .. } | TrafficKind::Capture { .. } => None,
    });
    gaps.min().map_or(ALLOWED_WITHOUT_GAPS, |gap| gap / 10).max(allowed(network))
}

/// The mean of a gap, if it has one above 0.
fn mean(gap: &Gap) -> Option<i64> {
    let mean = match gap {
        Gap::Constant(gap) => *gap,
        Gap::Exponential(mean) => *mean as i64,
        Gap::Envelope(_) => 0,
    };
    (mean > 0).then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weftwire_network::read;

    #[test]
    fn sources_may_be_late_by_a_tenth_of_their_gap() {
        let allowed = |traffic: &str| {
            let text = format!(
                "duration = \"1s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\nrate = \"1Gbit/s\"\n\
                 [[traffic]]\nfrom = \"a\"\nto = \"b\"\n{traffic}"
            );
            let reading = read("t.toml", &text, &[], &|_| Err(std::io::Error::other("no files").into()));
            allowed_for_sources(&reading.network.expect("a valid network"))
        };
        assert_eq!(allowed("kind = \"bulk\""), 1_000_000);
        assert_eq!(allowed("kind = \"datagrams\"\nsize = \"100B\"\ngap = \"20ms\""), 2_000_000);
        assert_eq!(allowed("kind = \"flows\"\nsize = \"1kB\"\nrate = \"500/s\""), 200_000);
        assert_eq!(allowed("kind = \"datagrams\"\nsize = \"100B\"\ngap = \"10us\""), 50_000, "as for the relay");
        assert_eq!(allowed("kind = \"request-response\"\ncount = 9"), 1_000_000, "who does not think is never late");
    }

    #[test]
    fn a_slow_link_and_a_long_one_allow_more() {
        let rate = |rate, delay| LinkSettings {
            rate: Some(Rate::Constant(rate)),
            delay: Duration::from_millis(delay),
            ..LinkSettings::default()
        };
        assert_eq!(allowed_by(&LinkSettings::default()), None);
        assert_eq!(allowed_by(&rate(1_000_000, 0)), Some(1_200_000));
        assert_eq!(allowed_by(&rate(1_000_000_000, 0)), Some(50_000));
        assert_eq!(allowed_by(&rate(1_000_000_000, 20)), Some(1_000_000));
    }
}
