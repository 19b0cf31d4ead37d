//! The network's traffic among kernels: threads in the nodes' namespaces, one for each flow's end.
//!
//! All threads are in one process, so that both ends of a flow read the same clock.

mod machine;
mod replay;
mod tcp;
mod udp;

pub(crate) use machine::RawHost;

use crate::build::{in_namespace, namespace_name};
use crate::error::LabError;
use crate::lateness::allowed_for_sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;
use weftwire_core::{DropReason, nanoseconds};
use weftwire_draw::Histogram;
use weftwire_linux::system::monotonic_ns;
use weftwire_network::Network;
use weftwire_network::model::{Node, NodeIndex, NodeKind, Traffic, TrafficKind, Transport};
use weftwire_network::results::{FlowProgress, FlowResult, Lateness};

/// Flows at once; each costs two threads.
pub(super) const FLOWS: usize = 2048;
/// How long a system call may block before the thread looks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// Points of a flow's plot.
const POINTS: i64 = 2000;
/// Flows that have a plot.
const PLOTS: usize = 16;
/// Before a deadline this near a thread does not sleep.
const NO_SLEEP: i64 = 60_000;

/// The run that all threads take part in.
pub(crate) struct Stage {
    pub(crate) network: Arc<Network>,
    /// `CLOCK_MONOTONIC` at the start.
    origin: AtomicI64,
    /// The folder to which files' names are relative.
    pub(crate) base: PathBuf,
    over: AtomicBool,
    flows: AtomicUsize,
    /// Of each traffic.
    pub(crate) ledgers: Vec<Ledger>,
    warnings: Mutex<Vec<String>>,
    /// How late what the traffic begins began.
    lateness: Mutex<Histogram>,
    /// Damaged frames that sinks and echoes dropped.
    drops: Mutex<BTreeMap<(NodeIndex, &'static str), u64>>,
}

/// The flows of a traffic, as far as they are known.
pub(crate) struct Ledger {
    template: FlowResult,
    /// Nanoseconds between points of a plot; 0: none.
    every: i64,
    flows: Mutex<BTreeMap<u64, FlowResult>>,
    progress: Mutex<FlowProgress>,
}

impl Stage {
    /// A run that has not begun: its time is long before 0.
    pub(crate) fn new(network: Arc<Network>, base: PathBuf) -> Stage {
        let ledger = |(number, traffic): (usize, &Traffic)| {
            let every = if number < PLOTS { (nanoseconds(network.duration) / POINTS).max(1) } else { 0 };
            Ledger::new(&network, traffic, every)
        };
        let ledgers = network.traffic.iter().enumerate().map(ledger).collect();
        let (over, flows) = (AtomicBool::new(false), AtomicUsize::new(0));
        let origin = AtomicI64::new(i64::MAX);
        let (warnings, lateness, drops) = (Mutex::default(), Mutex::default(), Mutex::default());
        Stage { network, origin, base, over, flows, ledgers, warnings, lateness, drops }
    }

    /// Sets when it starts, by `CLOCK_MONOTONIC`.
    pub(crate) fn begin(&self, origin: i64) {
        self.origin.store(origin, Ordering::Relaxed);
    }

    /// Nanoseconds since the start.
    pub(crate) fn now(&self) -> i64 {
        monotonic_ns() - self.origin.load(Ordering::Relaxed)
    }

    /// Whether threads are to end.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Asks all threads to end.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// A sink or an echo dropped a frame.
    pub(crate) fn dropped(&self, node: NodeIndex, reason: DropReason) {
        *lock(&self.drops).entry((node, reason.name())).or_default() += 1;
    }

    /// What sinks and echoes dropped: node, reason, count.
    pub(crate) fn drops(&self) -> Vec<(NodeIndex, &'static str, u64)> {
        lock(&self.drops).iter().map(|((node, reason), count)| (*node, *reason, *count)).collect()
    }

    pub(crate) fn warn(&self, warning: String) {
        let mut warnings = lock(&self.warnings);
        if warnings.len() < 100 {
            warnings.push(warning);
        }
    }

    /// Waits until an instant, to a few microseconds; `false` if the run is over before.
    pub(crate) fn wait_until(&self, at: i64) -> bool {
        loop {
            let left = at - self.now();
            if left <= 0 || self.is_over() {
                return left <= 0;
            }
            if left > NO_SLEEP {
                let nanoseconds = (left - NO_SLEEP).min(PATIENCE.as_nanos() as i64);
                sleep(Duration::from_nanos(nanoseconds.cast_unsigned()));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Something that the traffic wanted to begin at `due` begins now. Gives the time.
    fn begins(&self, due: i64) -> i64 {
        let now = self.now();
        lock(&self.lateness).add(now - due);
        now
    }

    /// How late the sources were; `None` if nothing began.
    pub(crate) fn lateness(&self) -> Option<Lateness> {
        let lateness = lock(&self.lateness);
        (lateness.count() > 0).then(|| Lateness::of(&lateness, allowed_for_sources(&self.network)))
    }

    /// The traffic and flow that a peer's address and port belong to, among those to `node` at `port`.
    fn identify(&self, node: NodeIndex, port: u16, peer: std::net::SocketAddr) -> Option<(usize, u64)> {
        let candidates = self.network.traffic.iter().enumerate().filter(|(_, traffic)| {
            traffic.receivers().contains(&node)
                && traffic.port == port
                && traffic.source_port <= peer.port()
                && self.network.address(traffic.from, traffic.ipv6) == peer.ip()
        });
        let (number, traffic) = candidates.max_by_key(|(_, traffic)| traffic.source_port)?;
        Some((number, u64::from(peer.port() - traffic.source_port)))
    }

    /// Starts a thread in a node's namespace.
    fn start(
        self: &Arc<Stage>,
        node: NodeIndex,
        work: impl FnOnce(&Arc<Stage>) -> Result<(), String> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        let (stage, namespace) = (self.clone(), namespace_name(&self.network.name, &self.network.node(node).name));
        let thread = Builder::new().stack_size(256 * 1024).spawn(move || {
            let entered = weftwire_linux::namespace::NetworkNamespace::open(&namespace).and_then(|entry| entry.enter());
            let done = entered.map_err(|error| format!("cannot enter {namespace}: {error}"));
            if let Err(error) = done.and_then(|()| work(&stage)) {
                stage.warn(error);
            }
        });
        thread.map_err(|error| self.warn(format!("cannot start a thread: {error}"))).ok()
    }

    /// The warm-up is over: what flows deliver from here on is measured.
    pub(crate) fn end_warm_up(&self) {
        for ledger in &self.ledgers {
            for flow in lock(&ledger.flows).values_mut() {
                flow.delivered_in_warm_up = flow.delivered;
            }
        }
    }

    /// Whether all flows that began are complete, and each traffic but captures has any.
    pub(crate) fn all_complete(&self) -> bool {
        self.network.traffic.iter().zip(&self.ledgers).all(|(traffic, ledger)| {
            let flows = lock(&ledger.flows);
            let none_expected = matches!(traffic.kind, TrafficKind::Capture { .. });
            (none_expected || !flows.is_empty()) && flows.values().all(|flow| flow.outcome != "running")
        })
    }

    /// All rows of flows, the plots, and what went wrong, once all threads have ended.
    pub(crate) fn results(&self) -> (Vec<FlowResult>, Vec<FlowProgress>, Vec<String>) {
        let (mut flows, mut progress) = (Vec::new(), Vec::new());
        for ledger in &self.ledgers {
            let plot = std::mem::take(&mut *lock(&ledger.progress));
            if !plot.acknowledged.is_empty() {
                progress.push(FlowProgress { flow: flows.len(), ..plot });
            }
            let rows = std::mem::take(&mut *lock(&ledger.flows)).into_values();
            flows.extend(rows.map(|flow| FlowResult { end: flow.end.filter(|_| flow.outcome != "running"), ..flow }));
        }
        (flows, progress, std::mem::take(&mut *lock(&self.warnings)))
    }
}

impl Ledger {
    fn new(network: &Network, traffic: &Traffic, every: i64) -> Ledger {
        let name = |node| network.node(node).name.clone();
        let transport = [traffic.from, traffic.to].into_iter().find_map(|node| match &network.node(node).kind {
            NodeKind::Function(function) => {
                let file = std::path::Path::new(&function.image);
                Some(
                    file.file_stem().map_or_else(|| function.image.clone(), |stem| stem.to_string_lossy().into_owned()),
                )
            }
            _ => None,
        });
        let template = FlowResult {
            traffic: traffic.name.clone(),
            from: name(traffic.from),
            to: name(traffic.to),
            kind: traffic.kind.name().to_owned(),
            transport: transport.unwrap_or_else(|| traffic.transport.name().to_owned()),
            outcome: "running".to_owned(),
            ..FlowResult::default()
        };
        Ledger { template, every, flows: Mutex::default(), progress: Mutex::default() }
    }

    /// Changes the row of a flow; makes it if there is none.
    pub(crate) fn update(&self, number: u64, change: impl FnOnce(&mut FlowResult)) {
        let mut flows = lock(&self.flows);
        change(flows.entry(number).or_insert_with(|| FlowResult { number, ..self.template.clone() }));
    }

    /// Bytes of a flow reached the receiving application at `now`. It is complete with all that were `wanted`.
    pub(crate) fn received(&self, number: u64, now: i64, bytes: &[u8], wanted: Option<u64>) {
        let mut total = 0;
        self.update(number, |flow| {
            let intact = matches_pattern(flow.delivered, bytes);
            flow.first_byte.get_or_insert(now);
            flow.delivered += bytes.len() as u64;
            total = flow.delivered;
            if !intact {
                flow.outcome = "failed: other bytes arrived than were sent".to_owned();
            } else if wanted == Some(flow.delivered) {
                flow.end = Some(now);
                flow.outcome = "complete".to_owned();
            }
        });
        self.plot(number, now, total);
    }

    /// Adds a point to the plot, if this flow has one.
    fn plot(&self, number: u64, now: i64, total: u64) {
        if number == 0 && self.every > 0 {
            let mut progress = lock(&self.progress);
            if progress.acknowledged.last().is_none_or(|(last, _)| now - last >= self.every) {
                progress.acknowledged.push((now, total));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all flows carry: byte `n` of a flow is `n % 251`, so that a lost or doubled piece shows.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..251 + 65_536_usize).map(|at| (at % 251) as u8).collect());

/// The next bytes of a flow from an offset: at most 64 KiB, and at most `limit`.
pub(crate) fn pattern(offset: u64, limit: u64) -> &'static [u8] {
    let start = (offset % 251) as usize;
    &PATTERN[start..start + limit.min(65_536) as usize]
}

fn matches_pattern(offset: u64, mut bytes: &[u8]) -> bool {
    let mut offset = offset;
    while !bytes.is_empty() {
        let expected = pattern(offset, bytes.len() as u64);
        let (piece, rest) = bytes.split_at(expected.len());
        if piece != expected {
            return false;
        }
        (bytes, offset) = (rest, offset + piece.len() as u64);
    }
    true
}

/// A sink's or an echo's machine; `None` for other nodes.
pub(crate) fn open_machine(network: &Network, index: NodeIndex, node: &Node) -> Result<Option<RawHost>, LabError> {
    Ok(machine::open(network, node)?.map(|ports| RawHost::new(network, index, ports)))
}

/// Opens everything that receives, in the nodes' namespaces; returns their threads. Nothing is sent before
/// [`start_senders`].
pub(crate) fn start_receivers(stage: &Arc<Stage>) -> Result<Vec<JoinHandle<()>>, LabError> {
    let mut threads = machine::start(stage)?;
    let mut opened = BTreeSet::new();
    let all = stage.network.traffic.iter().flat_map(|traffic| traffic.receivers().iter().map(move |to| (traffic, *to)));
    for (traffic, to) in all {
        let receives = matches!(stage.network.node(to).kind, NodeKind::Host { .. } | NodeKind::Router);
        let place = (to, traffic.ipv6, traffic.port, traffic.transport);
        if !receives || matches!(traffic.kind, TrafficKind::Capture { .. }) || !opened.insert(place) {
            continue;
        }
        let address = (stage.network.address(to, traffic.ipv6), traffic.port).into();
        let namespace = namespace_name(&stage.network.name, &stage.network.node(to).name);
        threads.extend(match traffic.transport {
            Transport::Tcp => {
                let listener = in_namespace(&namespace, || tcp::listen(address))?;
                stage.start(to, move |stage| tcp::serve(stage, &listener, place.0))
            }
            Transport::Udp => {
                let socket = in_namespace(&namespace, || udp::open(address))?;
                stage.start(to, move |stage| udp::receive(stage, &socket, place.0))
            }
        });
    }
    Ok(threads)
}

/// Starts everything that sends. Traffic from functions is not among it.
pub(crate) fn start_senders(stage: &Arc<Stage>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for (number, traffic) in stage.network.traffic.iter().enumerate() {
        let from = stage.network.node(traffic.from);
        threads.extend(match (&traffic.kind, &from.kind, traffic.transport) {
            (TrafficKind::Capture { .. }, ..) => stage.start(traffic.from, move |stage| replay::send(stage, number)),
            (_, NodeKind::Function(_), _) => None,
            (TrafficKind::Datagrams { .. }, ..) => stage.start(traffic.from, move |stage| udp::send(stage, number)),
            (_, _, Transport::Tcp) => stage.start(traffic.from, move |stage| tcp::open_flows(stage, number)),
            (_, _, Transport::Udp) => {
                stage.warn(format!(
                    "traffic `{}` is not sent: hosts send bulk, request/response and flows by TCP; write transport = \
                     \"tcp\", or datagrams",
                    traffic.name
                ));
                None
            }
        });
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_piece_of_the_pattern_is_seen() {
        let bytes: Vec<u8> = (0..100_000_u64).map(|at| ((at + 1000) % 251) as u8).collect();
        assert!(matches_pattern(1000, &bytes));
        assert!(!matches_pattern(1001, &bytes));
        assert!(!matches_pattern(1000, &[&bytes[..70_000], &bytes[71_460..]].concat()));
        assert_eq!(pattern(5, 3), [5, 6, 7]);
    }
}
