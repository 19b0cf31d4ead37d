//! What a network will keep in memory, whoever runs it.

use crate::Network;
use crate::link::{CLASSES, LinkSettings, QueueLimit};
use crate::model::{Traffic, TrafficKind};
use crate::traffic::Gap;

/// Bytes of a frame that waits, with its place in the queue.
pub const FRAME: u64 = 1_600;

/// How many flows the network's traffic opens, on average.
pub fn flows(network: &Network) -> u64 {
    network.traffic.iter().map(flows_of).fold(0, u64::saturating_add)
}

fn flows_of(traffic: &Traffic) -> u64 {
    match &traffic.kind {
        TrafficKind::Flows { gap, count, .. } => {
            let time = traffic.stop.since(traffic.start).max(0) as f64;
            let opened = match gap {
                Gap::Constant(gap) => time / (*gap).max(1) as f64,
                Gap::Exponential(mean) => time / mean.max(1.0),
                // Whatever it is, it is not known without following it.
                Gap::Envelope(_) => 0.0,
            };
            (opened as u64).min(*count)
        }
        TrafficKind::Capture { .. } => 0,
        _ => 1,
    }
}

/// How many frames wait if all queues in front of limited rates are full.
pub fn waiting(network: &Network) -> u64 {
    let directions = network.links.iter().flat_map(|link| &link.directions);
    let limited = directions.filter(|settings| settings.rate.is_some());
    let waiting = limited.map(|settings| match settings.queue.limit {
        QueueLimit::Packets(packets) => (settings, packets),
        QueueLimit::Bytes(bytes) => (settings, bytes / FRAME),
    });
    let queues = |settings: &LinkSettings| if settings.queue.priority { CLASSES as u64 } else { 1 };
    let waiting = waiting.map(|(settings, waiting)| waiting.saturating_mul(queues(settings)));
    waiting.fold(0, u64::saturating_add)
}
