//! What must hold after a run.

use super::finding::{Finding, Invariant};
use super::watch::Log;
use super::{Fault, FaultKind};
use crate::network::LEAK;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::nanoseconds;
use weftwire_network::Network;
use weftwire_network::link::Counts;
use weftwire_network::model::{ChangeKind, NodeIndex, Traffic, TrafficKind, Transport};
use weftwire_network::results::{FlowResult, Results};

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
    for leak in results.run.warnings.iter().filter(|warning| warning.starts_with(LEAK)) {
        find(Invariant::Conservation, leak.clone());
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
            find(
                Invariant::Data,
                format!("{name}: the sender was told `finished`, delivered are {delivered} bytes of {promised}"),
            );
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
pub(super) fn stalled(
    network: &Network,
    faults: &[Fault],
    results: &Results,
    baseline: &Results,
    log: &Log,
) -> Vec<String> {
    let share = |tenths: i64| nanoseconds(network.duration) / 10 * tenths;
    let restarts = faults.iter().any(|fault| matches!(fault.what, FaultKind::Restart { .. }));
    if restarts || faults.iter().any(|fault| fault.end().nanoseconds() > share(8)) {
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
        .map(|(_, flow)| {
            format!("{} stands still: {} bytes delivered, no more since the faults", flow_name(flow), flow.delivered)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::watch::Claim;
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use weftwire_core::{Endpoints, MacAddress, Time};
    use weftwire_network::link::{LinkSettings, Loss};
    use weftwire_network::model::{LinkIndex, Node, NodeKind, Routing, TrafficKind};
    use weftwire_network::results::{FlowProgress, LinkResult, RunFacts};

    const SECOND: i64 = 1_000_000_000;

    /// A sender, a receiver, and one flow of 1,000 bytes that lasts 2 of 10 seconds.
    fn network() -> Network {
        let node = |name: &str, last| Node {
            name: name.into(),
            kind: NodeKind::Host { commands: Vec::new(), parameters: BTreeMap::new() },
            ipv4: [10, 0, 0, last].into(),
            ipv6: std::net::Ipv6Addr::UNSPECIFIED,
            ports: Vec::new(),
        };
        let traffic = Traffic {
            name: "file".into(),
            from: NodeIndex(0),
            to: NodeIndex(1),
            choices: None,
            start: Time::ZERO,
            stop: Time::from_nanoseconds(10 * SECOND),
            ipv6: false,
            transport: Transport::Udp,
            port: 5000,
            source_port: 40000,
            congestion_control: None,
            dscp: 0,
            recovery: None,
            kind: TrafficKind::Bulk { bytes: 1000 },
            seed: 1,
        };
        Network {
            name: "pair".into(),
            seed: 1,
            duration: Duration::from_secs(10),
            sample_interval: Duration::from_secs(1),
            probes: Vec::new(),
            warm_up: Duration::ZERO,
            repetitions: 1,
            nodes: vec![node("a", 1), node("b", 2)],
            links: Vec::new(),
            traffic: vec![traffic],
            changes: Vec::new(),
            captures: Vec::new(),
            routing: Routing::default(),
        }
    }

    fn results(delivered: u64, outcome: &str) -> Results {
        let complete = outcome == "complete";
        let flow = FlowResult {
            traffic: "file".into(),
            from: "a".into(),
            to: "b".into(),
            transport: "udp".into(),
            end: complete.then_some(2 * SECOND),
            bytes: Some(1000),
            delivered,
            outcome: outcome.into(),
            ..FlowResult::default()
        };
        let progress = FlowProgress { flow: 0, sent: Vec::new(), acknowledged: vec![(SECOND, delivered)] };
        Results { flows: vec![flow], progress: vec![progress], ..Results::default() }
    }

    fn told(name: &str) -> Log {
        let endpoints = Endpoints {
            protocol: 17,
            local_address: [10, 0, 0, 1].into(),
            local_port: 40000,
            remote_address: [10, 0, 0, 2].into(),
            remote_port: 5000,
            local_mac: MacAddress::UNSPECIFIED,
            remote_mac: MacAddress::UNSPECIFIED,
            vlan: None,
        };
        let claim = Claim { node: NodeIndex(0), endpoints, name: name.into() };
        Log { claims: vec![claim], ..Log::default() }
    }

    fn broken(faults: &[Fault], results: &Results, log: &Log) -> Vec<Invariant> {
        violations(&network(), faults, results, log).iter().map(|finding| finding.invariant).collect()
    }

    fn restart(node: u32) -> Fault {
        Fault {
            at: Time::from_nanoseconds(SECOND),
            lasts: Duration::ZERO,
            what: FaultKind::Restart { node: NodeIndex(node) },
        }
    }

    #[test]
    fn data_is_neither_lost_nor_doubled_nor_altered() {
        let quiet = Log::default();
        assert_eq!(broken(&[], &results(1000, "complete"), &quiet), []);
        assert_eq!(broken(&[], &results(500, "running"), &quiet), []);
        assert_eq!(broken(&[], &results(500, "failed: gave up"), &quiet), []);
        for (delivered, outcome) in [(999, "complete"), (1001, "running"), (500, "failed: data at byte 7 is wrong")] {
            assert_eq!(broken(&[], &results(delivered, outcome), &quiet), [Invariant::Data], "{outcome}");
        }
    }

    #[test]
    fn who_is_told_finished_has_delivered() {
        assert_eq!(broken(&[], &results(1000, "complete"), &told("finished")), []);
        assert_eq!(broken(&[], &results(999, "running"), &told("finished")), [Invariant::Data]);
        assert_eq!(broken(&[], &results(999, "running"), &told("failed")), []);
        assert_eq!(broken(&[restart(1)], &results(999, "running"), &told("finished")), []);
    }

    #[test]
    fn packets_do_not_vanish() {
        let mut run = results(1000, "complete");
        let counts = Counts {
            offered_packets: 10,
            duplicated: 2,
            delivered_packets: 7,
            lost: 3,
            on_link: 2,
            ..Counts::default()
        };
        run.links.push(LinkResult { link: "l".into(), from: "a:1".into(), to: "b:1".into(), rate: None, counts });
        assert_eq!(broken(&[], &run, &Log::default()), []);
        run.links[0].counts.on_link = 1;
        assert_eq!(broken(&[], &run, &Log::default()), [Invariant::Conservation]);
        run.links.clear();
        run.run = RunFacts { warnings: vec![format!("{LEAK}: 1")], ..RunFacts::default() };
        assert_eq!(broken(&[], &run, &Log::default()), [Invariant::Conservation]);
    }

    #[test]
    fn flows_that_stand_still_are_told_of() {
        let down = |at, lasts| Fault {
            at: Time::from_nanoseconds(at * SECOND),
            lasts: Duration::from_secs(lasts),
            what: FaultKind::LinkDown { link: LinkIndex(0) },
        };
        let stalled = |faults: &[Fault], results: &Results, baseline: &Results, log: &Log| {
            stalled(&network(), faults, results, baseline, log).len()
        };
        let (baseline, quiet, early) = (results(1000, "complete"), Log::default(), [down(1, 1)]);
        assert_eq!(stalled(&early, &results(500, "running"), &baseline, &quiet), 1);
        // Complete, given up, still going on, faults until late, a restart, or slow anyway.
        assert_eq!(stalled(&early, &results(1000, "complete"), &baseline, &quiet), 0);
        assert_eq!(stalled(&early, &results(500, "reset"), &baseline, &quiet), 0);
        assert_eq!(stalled(&early, &results(500, "running"), &baseline, &told("failed")), 0);
        let mut going_on = results(500, "running");
        going_on.progress[0].acknowledged.push((9 * SECOND, 400));
        assert_eq!(stalled(&early, &going_on, &baseline, &quiet), 0);
        assert_eq!(stalled(&[down(7, 2)], &results(500, "running"), &baseline, &quiet), 0);
        assert_eq!(stalled(&[restart(0)], &results(500, "running"), &baseline, &quiet), 0);
        assert_eq!(stalled(&early, &results(500, "running"), &results(900, "running"), &quiet), 0);
    }

    #[test]
    fn impairments_leave_what_is_worse_already() {
        let mut settings = LinkSettings { loss: Loss::Random(0.5), ..LinkSettings::default() };
        super::super::Impairment::Loss(0.1).apply(&mut settings);
        assert_eq!(settings.loss, Loss::Random(0.5));
    }
}
