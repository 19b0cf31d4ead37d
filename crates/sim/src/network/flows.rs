//! Flows of the network's traffic: what their applications want, and what became of it.

use super::pattern::Phase;
use super::tcp::control_name;
use super::track::Track;
use hashbrown::HashMap;
use std::hash::BuildHasherDefault;
use weftwire_core::FlowId;
use weftwire_network::model::{Network, NodeIndex, Traffic, TrafficKind, Transport};
use weftwire_network::results::{FlowProgress, FlowResult};
use weftwire_network::traffic::{Begin, Draws};

/// How many flows' bytes are drawn over time.
const PROGRESS_FLOWS: usize = 8;
/// Most points of each such curve.
const PROGRESS_POINTS: usize = 20_000;
/// How many of the last datagrams' numbers are remembered, to tell copies.
const REMEMBERED: u64 = 4096;

/// No flow.
pub const NO_FLOW: u32 = u32::MAX;

/// A hasher of keys that are one or two numbers already: multiply and fold. Keys are the network's own, no attacker's.
#[derive(Default)]
pub struct Mix(u64);

impl std::hash::Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }
}

/// A map that is only looked up, never walked through, so that its order is no matter.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Who talks with whom, seen from one node: packed into one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(u128);

impl Key {
    /// From the ends.
    pub fn new(transport: Transport, ipv6: bool, here: (u32, u16), there: (u32, u16)) -> Key {
        let kind = u128::from(transport == Transport::Tcp) << 1 | u128::from(ipv6);
        let ports = u128::from(here.1) << 16 | u128::from(there.1);
        Key(kind << 96 | u128::from(here.0) << 64 | u128::from(there.0) << 32 | ports)
    }

    /// The same seen from the other end.
    pub fn reversed(self) -> Key {
        let Key(key) = self;
        let nodes = (key >> 64 & 0xffff_ffff) << 32 | (key >> 32 & 0xffff_ffff) << 64;
        let ports = (key >> 16 & 0xffff) | (key & 0xffff) << 16;
        Key(key >> 96 << 96 | nodes | ports)
    }
}

/// How a flow ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Not yet.
    Running,
    /// Everything arrived.
    Complete,
    /// Nobody listens.
    Refused,
    /// Broken off.
    Reset,
    /// It could not be, and why.
    Failed(Box<str>),
}

/// One flow.
pub struct Flow {
    pub traffic: u32,
    pub number: u64,
    pub to: NodeIndex,
    pub source_port: u16,
    pub key: Key,
    pub start: i64,
    pub first_byte: Option<i64>,
    pub end: Option<i64>,
    /// When bytes last reached the receiving application.
    pub last_byte: Option<i64>,
    pub outcome: Outcome,
    /// What carries it at the opener (0) and the other end (1): the flow of the node's function, as long as there is one.
    pub carriers: [Option<FlowId>; 2],
    /// How many bytes the carriers have room for; `None`: unknown.
    pub room: [Option<u64>; 2],
    /// The applications have closed their ends.
    pub closed: [bool; 2],
    /// They have been told that the other end has closed.
    pub finished: [bool; 2],
    /// Between hosts: what segments tell. It is of the opener.
    pub track: Option<Box<Track>>,
    /// The opener's connection came to be.
    pub established: bool,
    /// Bytes that the applications want to have sent by now.
    pub goal: [u64; 2],
    /// Bytes that their transports have accepted.
    pub written: [u64; 2],
    /// Bytes that have reached the applications.
    pub received: [u64; 2],
    /// Those of them that did so in the warm-up.
    pub received_in_warm_up: u64,
    /// The opener sends nothing beyond its goal.
    pub closing: bool,
    /// Segments or datagrams put on the wire.
    pub packets: u64,
    pub retransmissions: u64,
    /// Request and response: answers had, and when the last request was made.
    pub rounds: u64,
    pub asked_at: i64,
    pub rtt: RoundTrips,
    /// Index of its progress.
    pub progress: Option<usize>,
    /// Datagrams received.
    pub seen: Option<Box<Seen>>,
    /// The last notice of the function that carries the opener's end.
    pub notice: Option<Box<str>>,
}

/// Round-trip times.
#[derive(Clone, Copy, Default)]
pub struct RoundTrips {
    samples: u64,
    least: i64,
    greatest: i64,
    sum: i128,
}

impl RoundTrips {
    /// Adds one.
    pub fn add(&mut self, time: i64) {
        self.least = if self.samples == 0 { time } else { self.least.min(time) };
        self.greatest = self.greatest.max(time);
        self.sum += i128::from(time);
        self.samples += 1;
    }

    fn of(&self, value: i64) -> Option<i64> {
        (self.samples > 0).then_some(value)
    }
}

/// Which datagrams have come: exact while they are not overtaken by 4,096 others.
pub struct Seen {
    pub distinct: u64,
    newest: u64,
    window: [u64; (REMEMBERED / 64) as usize],
}

impl Seen {
    fn new() -> Box<Seen> {
        Box::new(Seen { distinct: 0, newest: 0, window: [0; (REMEMBERED / 64) as usize] })
    }

    /// Whether datagram `number` comes for the first time.
    pub fn first(&mut self, number: u64) -> bool {
        let number = number.saturating_add(1);
        if number.saturating_add(REMEMBERED) <= self.newest {
            return false;
        }
        if number > self.newest {
            if number - self.newest >= REMEMBERED {
                self.window.fill(0);
            } else {
                for skipped in self.newest + 1..=number {
                    let (word, bit) = Seen::place(skipped);
                    self.window[word] &= !bit;
                }
            }
            self.newest = number;
        }
        let (word, bit) = Seen::place(number);
        let first = self.window[word] & bit == 0;
        self.window[word] |= bit;
        self.distinct += u64::from(first);
        first
    }

    fn place(number: u64) -> (usize, u64) {
        ((number % REMEMBERED / 64) as usize, 1 << (number % 64))
    }
}

/// What an application does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing new.
    Nothing,
    /// The end `0` or `1` has more to send, or closes.
    Send(usize),
    /// The opener asks again after it has thought.
    Think,
}

impl Flow {
    /// Where the data of the end `side` begins in the pattern.
    pub fn phase(&self, side: usize) -> Phase {
        Phase::of((u64::from(self.traffic) << 40 ^ self.number) * 2 + side as u64)
    }

    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        self.outcome == Outcome::Running
    }

    /// It ends so, unless it has ended before.
    pub fn end(&mut self, now: i64, outcome: Outcome) {
        if self.is_running() {
            if outcome == Outcome::Complete {
                self.end = Some(now);
            }
            self.outcome = outcome;
        }
    }

    /// Whether the opener's end is over between hosts: both have closed, and all of it is acknowledged.
    pub fn is_closed(&self) -> bool {
        self.finished[0] && self.track.as_ref().is_some_and(|track| track.is_closed())
    }

    /// The opener's connection is gone. What it has sent may still be on its way to the application.
    pub fn gone(&mut self, now: i64, outcome: Outcome) {
        let acknowledged = self.track.as_ref().map_or(0, |track| track.acknowledged());
        if !(self.closing && acknowledged >= self.goal[0]) {
            self.end(now, outcome);
        }
    }

    /// Bytes have reached the receiving application.
    pub fn arrived(&mut self, now: i64) {
        self.first_byte.get_or_insert(now);
        self.last_byte = Some(now);
    }

    /// The application of `side` has received bytes of a stream, already counted.
    pub fn advance(&mut self, traffic: &Traffic, side: usize, now: i64) -> Next {
        if side == 1 {
            self.arrived(now);
        }
        match (&traffic.kind, side) {
            (TrafficKind::RequestResponse { request, response, count, .. }, 1) => {
                let answers = (self.received[1] / (*request).max(1)).min(*count);
                self.goal[1] = answers.saturating_mul((*response).max(1));
                Next::Send(1)
            }
            (TrafficKind::RequestResponse { response, count, .. }, _) => {
                if self.received[0] < (self.rounds + 1).saturating_mul((*response).max(1)) || self.closing {
                    return Next::Nothing;
                }
                self.rounds += 1;
                self.rtt.add(now - self.asked_at);
                if self.rounds < *count {
                    return Next::Think;
                }
                self.closing = true;
                self.end(now, Outcome::Complete);
                Next::Send(0)
            }
            (TrafficKind::Datagrams { .. }, _) => Next::Nothing,
            _ => {
                if side == 1 && self.closing && self.received[1] >= self.goal[0] {
                    self.end(now, Outcome::Complete);
                }
                Next::Nothing
            }
        }
    }
}

/// All flows, by the order of their opening, and those of them that packets may belong to.
pub struct Flows {
    pub all: Vec<Flow>,
    by_key: Map<Key, u32>,
    progress: Vec<FlowProgress>,
}

impl Flows {
    /// None yet.
    pub fn new() -> Flows {
        Flows { all: Vec::new(), by_key: Map::default(), progress: Vec::new() }
    }

    /// Opens a flow. `Err` with its number if its ports are in use.
    pub fn open(&mut self, network: &Network, index: u32, begin: Begin, now: i64) -> Result<u32, u32> {
        let Begin { number, bytes, to, .. } = begin;
        let traffic = &network.traffic[index as usize];
        // Flow i has the port number `source_port + i`, round and round up to the greatest.
        let span = 65_536 - u64::from(traffic.source_port.max(1));
        let source_port = traffic.source_port.max(1) + (number % span) as u16;
        let ends = [(traffic.from.0, source_port), (to.0, traffic.port)];
        let key = Key::new(traffic.transport, traffic.ipv6, ends[0], ends[1]);
        let datagrams = matches!(traffic.kind, TrafficKind::Datagrams { .. });
        let asks = match traffic.kind {
            TrafficKind::RequestResponse { request, .. } => Some(request.max(1)),
            _ => None,
        };
        let mut flow = Flow {
            traffic: index,
            number,
            to,
            source_port,
            key,
            start: now,
            first_byte: None,
            end: None,
            last_byte: None,
            outcome: Outcome::Running,
            carriers: [None; 2],
            room: [None; 2],
            closed: [false; 2],
            finished: [false; 2],
            track: None,
            established: false,
            goal: [asks.unwrap_or(if datagrams { 0 } else { bytes.max(1) }), 0],
            written: [0; 2],
            received: [0; 2],
            received_in_warm_up: 0,
            closing: asks.is_none() && !datagrams && bytes != u64::MAX,
            packets: 0,
            retransmissions: 0,
            rounds: 0,
            asked_at: now,
            rtt: RoundTrips::default(),
            progress: None,
            seen: datagrams.then(Seen::new),
            notice: None,
        };
        let id = self.all.len() as u32;
        if self.by_key.contains_key(&key) {
            flow.outcome = Outcome::Failed("its port numbers are still in use".into());
            self.all.push(flow);
            return Err(id);
        }
        if !datagrams && self.progress.len() < PROGRESS_FLOWS {
            flow.progress = Some(self.progress.len());
            self.progress.push(FlowProgress { flow: id as usize, ..FlowProgress::default() });
        }
        self.by_key.insert(key, id);
        self.all.push(flow);
        Ok(id)
    }

    /// How many packets may belong to.
    pub fn open_count(&self) -> usize {
        self.by_key.len()
    }

    /// The flow with this key, as its opener sees it.
    pub fn find(&self, key: Key) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// Packets no longer belong to it.
    pub fn forget(&mut self, flow: u32) {
        let key = self.all[flow as usize].key;
        if self.by_key.get(&key) == Some(&flow) {
            self.by_key.remove(&key);
        }
    }

    /// A flow.
    pub fn get_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.all[flow as usize]
    }

    /// A segment of the opener is on the wire.
    pub fn sent(&mut self, flow: u32, now: i64, offset: u64, length: u32, repeated: bool) {
        let flow = &mut self.all[flow as usize];
        flow.packets += 1;
        flow.retransmissions += u64::from(repeated);
        if let Some(progress) = flow.progress.map(|index| &mut self.progress[index])
            && progress.sent.len() < PROGRESS_POINTS
        {
            progress.sent.push((now, offset, length, repeated));
        }
    }

    /// So many bytes are acknowledged to the opener, or delivered.
    pub fn acknowledged(&mut self, flow: u32, now: i64, bytes: u64) {
        if let Some(progress) = self.all[flow as usize].progress.map(|index| &mut self.progress[index])
            && progress.acknowledged.len() < PROGRESS_POINTS
        {
            progress.acknowledged.push((now, bytes));
        }
    }

    /// The tables' rows, by traffic and number, the curves, and which flow is in which row.
    pub fn results(&mut self, network: &Network) -> (Vec<FlowResult>, Vec<FlowProgress>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|index| (self.all[*index].traffic, self.all[*index].number));
        let mut progress = std::mem::take(&mut self.progress);
        let mut rows = Vec::with_capacity(order.len());
        for index in &order {
            let flow = &self.all[*index];
            if let Some(at) = flow.progress {
                progress[at].flow = rows.len();
            }
            rows.push(result(network, flow));
        }
        progress.sort_by_key(|progress| progress.flow);
        (rows, progress, order)
    }
}

fn result(network: &Network, flow: &Flow) -> FlowResult {
    let traffic = &network.traffic[flow.traffic as usize];
    let datagrams = matches!(traffic.kind, TrafficKind::Datagrams { .. });
    let bytes = match traffic.kind {
        TrafficKind::Bulk { bytes: u64::MAX } => None,
        TrafficKind::RequestResponse { request, response, count, .. } => {
            Some(request.saturating_add(response).saturating_mul(count))
        }
        _ => Some(flow.goal[0]),
    };
    let carrier = carrier_name(network, traffic);
    let function = carrier.is_some();
    FlowResult {
        traffic: traffic.name.clone(),
        number: flow.number,
        from: network.node(traffic.from).name.clone(),
        to: network.node(flow.to).name.clone(),
        kind: traffic.kind.name().into(),
        congestion_control: (!function && traffic.transport == Transport::Tcp)
            .then(|| control_name(network, traffic).map(str::to_owned))
            .flatten(),
        transport: carrier.unwrap_or_else(|| traffic.transport.name().into()),
        start: flow.start,
        first_byte: flow.first_byte,
        end: flow.end,
        bytes,
        delivered: flow.received[0] + flow.received[1],
        delivered_in_warm_up: flow.received_in_warm_up,
        ideal: None,
        packets: (!function).then_some(flow.packets),
        retransmissions: (!function && !datagrams).then_some(flow.retransmissions),
        lost: flow.seen.as_ref().filter(|_| !function).map(|seen| flow.packets.saturating_sub(seen.distinct)),
        rtt_samples: flow.rtt.samples,
        rtt_min: flow.rtt.of(flow.rtt.least),
        rtt_mean: flow.rtt.of((flow.rtt.sum / i128::from(flow.rtt.samples.max(1))) as i64),
        rtt_max: flow.rtt.of(flow.rtt.greatest),
        outcome: match &flow.outcome {
            Outcome::Running => "running".into(),
            Outcome::Complete => "complete".into(),
            Outcome::Refused => "refused".into(),
            Outcome::Reset => "reset".into(),
            Outcome::Failed(reason) => format!("failed: {reason}"),
        },
    }
}

/// Name of the node whose function carries this traffic, if one does.
pub fn carrier_name(network: &Network, traffic: &Traffic) -> Option<String> {
    use weftwire_network::model::NodeKind;
    [traffic.from, traffic.to]
        .iter()
        .map(|index| network.node(*index))
        .find(|node| matches!(node.kind, NodeKind::Function(_)))
        .map(|node| node.name.clone())
}

/// A traffic's state.
pub struct Source {
    /// What begins next.
    pub begins: std::iter::Peekable<weftwire_network::traffic::Begins>,
    /// For its times to think.
    pub draws: Draws,
    /// Its one flow, of traffic with one.
    pub flow: u32,
    /// Of a capture: its frames and the next of them.
    pub frames: Vec<(i64, Vec<u8>)>,
    /// Next of the frames.
    pub next: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_turned_twice_is_itself() {
        let key = Key::new(Transport::Tcp, true, (7, 4000), (9, 80));
        assert_eq!(key.reversed(), Key::new(Transport::Tcp, true, (9, 80), (7, 4000)));
        assert_eq!(key.reversed().reversed(), key);
        assert_ne!(key, Key::new(Transport::Udp, true, (7, 4000), (9, 80)));
    }

    #[test]
    fn copies_of_datagrams_are_told() {
        let mut seen = Seen::new();
        let coming = [0, 1, 1, 0, 5, 4, 4, 100_000, 99_999, 99_999, 5, 104_095, 104_096, 99_999];
        let first: Vec<bool> = coming.iter().map(|number| seen.first(*number)).collect();
        let expected = [true, true, false, false, true, true, false, true, true, false, false, true, true, false];
        assert_eq!(first, expected);
        assert_eq!(seen.distinct, 8);
    }
}
