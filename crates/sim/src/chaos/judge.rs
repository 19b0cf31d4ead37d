//! What must hold after a run.

use super::watch::Log;
use super::{Fault, FaultKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use weftwire_network::Network;
use weftwire_network::link::Counts;
use weftwire_network::model::{ChangeKind, NodeIndex, Traffic, TrafficKind, Transport};
use weftwire_network::results::{FlowResult, Results};

/// What must hold whatever goes wrong on links and nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Invariant {
    /// Applications get exactly the bytes that were sent, or are told that they do not.
    Data,
    /// The flow table is bounded.
    Flows,
    /// Every timer fires when it is due or is cancelled; nothing happens at another time.
    Timers,
    /// Frames leave by ports that exist, well-formed and with right checksums.
    Frames,
    /// A flow id means one flow for ever.
    FlowIds,
    /// Every packet on a link arrives, is dropped and counted, or is still there.
    Conservation,
    /// The same schedule gives the same run.
    Repeatable,
    /// The simulator keeps its part of the contract.
    Simulator,
    /// Nothing panics.
    NoPanic,
}

impl Invariant {
    /// Its name as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Invariant::Data => "data",
            Invariant::Flows => "flows",
            Invariant::Timers => "timers",
            Invariant::Frames => "frames",
            Invariant::FlowIds => "flow-ids",
            Invariant::Conservation => "conservation",
            Invariant::Repeatable => "repeatable",
            Invariant::Simulator => "simulator",
            Invariant::NoPanic => "no-panic",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An invariant that did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which.
    pub invariant: Invariant,
    /// Where, when and how.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.text)
    }
}

/// What is wrong with a run's results, given what its functions told their applications.
pub(super) fn violations(network: &Network, faults: &[Fault], results: &Results, log: &Log) -> Vec<Finding> {
    let mut findings = log.findings.clone();
    let mut find = |invariant, text| findings.push(Finding { invariant, text });
    let traffic: BTreeMap<&str, &Traffic> =
        network.traffic.iter().map(|traffic| (traffic.name.as_str(), traffic)).collect();
    for flow in &results.flows {
        if let Some(text) = traffic.get(flow.traffic.as_str()).and_then(|traffic| wrong_data(flow, traffic)) {
            find(Invariant::Data, text);
        }
    }
    lost_data(network, faults, results, log, &mut find);
    for link in &results.links {
        if let Some(text) = unbalanced(&link.counts) {
            find(Invariant::Conservation, format!("{} from {}: {text}", link.link, link.from));
        }
    }
    findings
}

fn flow_name(flow: &FlowResult) -> String {
    format!("flow {} of `{}`", flow.number, flow.traffic)
}

/// Bytes that the receiving application must have got when the flow is complete, both ways together; `None`: not known, or not promised.
fn promised(flow: &FlowResult, traffic: &Traffic) -> Option<u64> {
    match traffic.kind {
        // The network may lose and duplicate datagrams.
        TrafficKind::Datagrams { .. } | TrafficKind::Capture { .. } => None,
        TrafficKind::RequestResponse { request, response, count, .. } => {
            Some(request.saturating_add(response).saturating_mul(count))
        }
        TrafficKind::Bulk { .. } | TrafficKind::Flows { .. } => flow.bytes,
    }
}

fn wrong_data(flow: &FlowResult, traffic: &Traffic) -> Option<String> {
    if flow.outcome.starts_with("failed: data") {
        return Some(format!("{} {}", flow_name(flow), flow.outcome));
    }
    let promised = promised(flow, traffic)?;
    let complete = flow.outcome == "complete";
    let wrong = flow.delivered > promised || complete && flow.delivered < promised;
    let state = if complete { ", and is complete" } else { "" };
    wrong.then(|| format!("{} delivered {} bytes of {promised}{state}", flow_name(flow), flow.delivered))
}

/// Flows whose sender was told that all is delivered, though it is not.
fn lost_data(
    network: &Network,
    faults: &[Fault],
    results: &Results,
    log: &Log,
    find: &mut dyn FnMut(Invariant, String),
) {
    let restarted = restarted(network, faults);
    for claim in log.claims.iter().filter(|claim| claim.name == "finished") {
        let opened = network.traffic.iter().filter(|traffic| {
            let protocol = if traffic.transport == Transport::Tcp { 6 } else { 17 };
            let ends = &claim.endpoints;
            traffic.from == claim.node
                && (protocol, traffic.port) == (ends.protocol, ends.remote_port)
                && network.address(traffic.to, traffic.ipv6) == ends.remote_address
                && ends.local_port >= traffic.source_port
        });
        // Of several traffics the one whose ports begin last before this one.
        let Some(traffic) = opened.max_by_key(|traffic| traffic.source_port) else { continue };
        let number = u64::from(claim.endpoints.local_port - traffic.source_port);
        // What a restarted node had, it has forgotten; no transport can know.
        if restarted.contains(&traffic.to) || restarted.contains(&traffic.from) {
            continue;
        }
        let flow = results.flows.iter().find(|flow| flow.traffic == traffic.name && flow.number == number);
        let Some((flow, promised)) = flow.and_then(|flow| Some((flow, promised(flow, traffic)?))) else { continue };
        if flow.delivered < promised {
            let (name, delivered) = (flow_name(flow), flow.delivered);
            find(Invariant::Data, format!("{name}: the sender was told `finished`, delivered are {delivered} bytes of {promised}"));
        }
    }
}

fn restarted(network: &Network, faults: &[Fault]) -> BTreeSet<NodeIndex> {
    let own = network.changes.iter().filter_map(|change| match change.what {
        ChangeKind::Restart { node } => Some(node),
        _ => None,
    });
    let mine = faults.iter().filter_map(|fault| match fault.what {
        FaultKind::Restart { node } => Some(node),
        _ => None,
    });
    own.chain(mine).collect()
}

/// What comes onto a link must leave it or still be there.
fn unbalanced(counts: &Counts) -> Option<String> {
    let Counts { offered_packets, duplicated, delivered_packets, on_link, .. } = *counts;
    let dropped =
        counts.lost + counts.dropped_full + counts.dropped_early + counts.dropped_down + counts.dropped_blackhole;
    let (came, left) = (offered_packets + duplicated, delivered_packets + dropped + on_link);
    (came != left).then(|| {
        format!(
            "{offered_packets} packets offered and {duplicated} copies made, but {delivered_packets} delivered, \
             {dropped} dropped and {on_link} still there"
        )
    })
}

/// Flows that did not go on after the last fault, though they would have ended long before without faults. Not an error: a
/// transport may wait for long.
pub(super) fn stalled(network: &Network, faults: &[Fault], results: &Results, baseline: &Results, log: &Log) -> Vec<String> {
    let share = |tenths: i64| network.duration / 10 * tenths;
    let restarts = faults.iter().any(|fault| matches!(fault.what, FaultKind::Restart { .. }));
    if restarts || faults.iter().any(|fault| fault.end() > share(8)) {
        return Vec::new();
    }
    let key = |flow: &FlowResult| (flow.traffic.clone(), flow.number);
    let ended: BTreeSet<_> = baseline
        .flows
        .iter()
        .filter(|flow| flow.outcome == "complete" && flow.end.is_some_and(|end| end <= share(6)))
        .map(key)
        .collect();
    let gave_up = |flow: &FlowResult| {
        log.claims.iter().any(|claim| {
            claim.name == "failed"
                && network.node(claim.node).name == flow.from
                && network.traffic.iter().any(|traffic| {
                    traffic.name == flow.traffic
                        && u64::from(claim.endpoints.local_port) == u64::from(traffic.source_port) + flow.number
                })
        })
    };
    let progress: BTreeMap<usize, i64> = results
        .progress
        .iter()
        .map(|progress| (progress.flow, progress.acknowledged.last().map_or(0, |(at, _)| *at)))
        .collect();
    let still = |index: usize, flow: &FlowResult| {
        // Nobody watched it: it has come to a stop only if nothing at all has arrived.
        progress.get(&index).map_or(flow.delivered > 0, |last| *last > share(8))
    };
    let flows = results.flows.iter().enumerate().filter(|(index, flow)| {
        flow.outcome == "running" && ended.contains(&key(flow)) && !still(*index, flow) && !gave_up(flow)
    });
    flows
        .map(|(_, flow)| format!("{} stands still: {} bytes delivered, no more since the faults", flow_name(flow), flow.delivered))
        .collect()
}
