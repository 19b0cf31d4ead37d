//! Packets sorted into connections, with sequence numbers made relative and repeats found.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use weftwire_capture::{Headers, Transport};
use weftwire_core::{LinkType, Port, Time};

/// A frame as a capture with one interface a port holds it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Its time stamp.
    pub at: Time,
    /// The port it was seen at.
    pub port: Port,
    /// What it begins with.
    pub link: LinkType,
    /// Whether it arrived at the function (`true`) or left it; `None` if the capture does not say.
    pub inbound: Option<bool>,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Packets between the same two endpoints, in either direction, on all ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The end that opened it, or else that was seen first.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// TCP; else UDP.
    pub is_tcp: bool,
    /// Its packets in the order of the capture.
    pub exchanges: Vec<Exchange>,
}

/// One packet at one port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Its time stamp.
    pub at: Time,
    /// The port.
    pub port: Port,
    /// Whether it arrived at the function, else it left it.
    pub inbound: bool,
    /// Sent by the client, else by the server (or in their names).
    pub from_client: bool,
    /// The transport header as it stands in the packet.
    pub transport: Transport,
    /// First byte's number: relative to the first sequence number of this port and direction. For UDP the bytes before.
    pub sequence: i64,
    /// The acknowledgment, relative to the other direction.
    pub acknowledgment: Option<i64>,
    /// The SACK blocks, relative to the other direction.
    pub sack: Vec<(i64, i64)>,
    /// How the payload stands to what this port saw in this direction before.
    pub standing: Standing,
}

/// How a packet's payload stands to what was seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// New bytes behind all others, or none.
    #[default]
    New,
    /// All its bytes were seen before.
    Repeated,
    /// It fills a gap.
    Late,
}

/// Counts of one port and direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Payload bytes, repeats included.
    pub payload: u64,
    /// Packets whose payload was seen before.
    pub repeated: u64,
    /// Packets that filled a gap.
    pub late: u64,
    /// Packets without payload, SYN, FIN or RST.
    pub pure_acknowledgments: u64,
    /// Packets with SACK blocks.
    pub with_sack: u64,
    /// Resets.
    pub resets: u64,
}

/// Sorts packets into connections, in the order of their first packets. What is not TCP or UDP is left out.
pub fn connections(observed: &[Observed<'_>]) -> Vec<Connection> {
    let mut found: Vec<Connection> = Vec::new();
    let mut known: BTreeMap<(SocketAddr, SocketAddr, bool), usize> = BTreeMap::new();
    let mut homes: BTreeMap<SocketAddr, Port> = BTreeMap::new();
    let mut streams: BTreeMap<(usize, Port, bool), Stream> = BTreeMap::new();
    for record in observed {
        let Some(packet) = Headers::parse(record.link, record.bytes) else { continue };
        let (Some((from, to)), Some(transport)) = (packet.endpoints(), packet.transport.clone()) else { continue };
        // Without a direction in the capture, an end's own packets arrive where it was first seen.
        let home = *homes.entry(from).or_insert(record.port);
        let inbound = record.inbound.unwrap_or(home == record.port);
        let is_tcp = transport.tcp.is_some();
        let index = *known.entry((from.min(to), from.max(to), is_tcp)).or_insert_with(|| {
            let answers = transport.tcp.as_ref().is_some_and(|tcp| tcp.flags.syn && tcp.flags.ack);
            let (client, server) = if answers { (to, from) } else { (from, to) };
            found.push(Connection { client, server, is_tcp, exchanges: Vec::new() });
            found.len() - 1
        });
        let from_client = from == found[index].client;
        let (sequence, standing) = streams.entry((index, record.port, from_client)).or_default().sent(&transport);
        let other = streams.entry((index, record.port, !from_client)).or_default();
        let (acknowledgment, sack) = match &transport.tcp {
            Some(tcp) if tcp.flags.ack => {
                let sack = tcp.sack.iter().map(|(left, right)| (other.relative(*left), other.relative(*right)));
                let sack = sack.collect();
                (Some(other.relative(tcp.acknowledgment)), sack)
            }
            _ => (None, Vec::new()),
        };
        found[index].exchanges.push(Exchange {
            at: record.at,
            port: record.port,
            inbound,
            from_client,
            transport,
            sequence,
            acknowledgment,
            sack,
            standing,
        });
    }
    found
}

/// One direction at one port.
#[derive(Default)]
struct Stream {
    /// A sequence number and its relative value, moved along so that numbers may wrap.
    anchor: Option<(u32, i64)>,
    /// Seen bytes as disjoint ranges: start to end.
    seen: BTreeMap<i64, i64>,
}

impl Stream {
    fn relative(&mut self, number: u32) -> i64 {
        // An acknowledgment seen before any data names the next byte: the one behind the SYN.
        let (anchor, value) = *self.anchor.get_or_insert((number, 1));
        value + i64::from(number.wrapping_sub(anchor).cast_signed())
    }

    /// The relative number of a packet sent in this direction, and how it stands to those before.
    fn sent(&mut self, transport: &Transport) -> (i64, Standing) {
        let length = i64::from(transport.payload);
        let Some(tcp) = &transport.tcp else {
            let before = self.seen.values().copied().max().unwrap_or(0);
            self.seen.insert(0, before + length);
            return (before, Standing::New);
        };
        // A SYN is number 0, so that the first byte of data is number 1 with or without it.
        self.anchor.get_or_insert((tcp.sequence, i64::from(!tcp.flags.syn)));
        let start = self.relative(tcp.sequence);
        let first = start + i64::from(tcp.flags.syn);
        if length == 0 {
            return (start, Standing::New);
        }
        let standing = self.add(first, first + length);
        // Half the number space behind the front an old number would be taken for a new one.
        if standing == Standing::New {
            self.anchor = Some((tcp.sequence, start));
        }
        (start, standing)
    }

    fn add(&mut self, start: i64, end: i64) -> Standing {
        let front = self.seen.last_key_value().map_or(i64::MIN, |(_, end)| *end);
        let covered = self.seen.range(..=start).next_back().is_some_and(|(_, known)| *known >= end);
        if covered {
            return Standing::Repeated;
        }
        let (mut low, mut high) = (start, end);
        let touching: Vec<(i64, i64)> = self
            .seen
            .range(..=end)
            .rev()
            .take_while(|(_, known)| **known >= start)
            .map(|(left, right)| (*left, *right))
            .collect();
        for (left, right) in touching {
            (low, high) = (low.min(left), high.max(right));
            self.seen.remove(&left);
        }
        self.seen.insert(low, high);
        if end > front { Standing::New } else { Standing::Late }
    }
}

impl Connection {
    /// The port behind which the client is, and the one behind which the server is. `None` for an end that is the
    /// function itself.
    pub fn ports(&self) -> (Option<Port>, Option<Port>) {
        let port = |wanted: fn(&&Exchange) -> bool, not: Option<Port>| {
            self.exchanges.iter().filter(wanted).map(|exchange| exchange.port).find(|port| Some(*port) != not)
        };
        let client = port(|exchange| exchange.from_client && exchange.inbound, None);
        let server = port(|exchange| exchange.from_client != exchange.inbound, client);
        match (client, server) {
            // Seen from one side only: whoever answers on the client's own port is the function.
            (Some(_), _) => (client, server),
            (None, server) => (None, server),
        }
    }

    /// Nanoseconds from the first packet to this one.
    pub fn since_start(&self, exchange: &Exchange) -> i64 {
        self.exchanges.first().map_or(0, |first| exchange.at.since(first.at))
    }

    /// Counts by port and direction (`true`: inbound).
    pub fn tallies(&self) -> BTreeMap<(Port, bool), Tally> {
        let mut tallies: BTreeMap<(Port, bool), Tally> = BTreeMap::new();
        for exchange in &self.exchanges {
            let tally = tallies.entry((exchange.port, exchange.inbound)).or_default();
            tally.packets += 1;
            tally.payload += u64::from(exchange.transport.payload);
            tally.repeated += u64::from(exchange.standing == Standing::Repeated);
            tally.late += u64::from(exchange.standing == Standing::Late);
            if let Some(tcp) = &exchange.transport.tcp {
                tally.pure_acknowledgments += u64::from(exchange.is_pure_acknowledgment());
                tally.with_sack += u64::from(!tcp.sack.is_empty());
                tally.resets += u64::from(tcp.flags.rst);
            }
        }
        tallies
    }
}

impl Exchange {
    /// No payload, and nothing but an acknowledgment.
    pub fn is_pure_acknowledgment(&self) -> bool {
        self.transport.payload == 0
            && self.transport.tcp.as_ref().is_some_and(|tcp| {
                let flags = tcp.flags;
                flags.ack && !flags.syn && !flags.fin && !flags.rst
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn standing_is_what_a_set_of_bytes_says(
            pieces in prop::collection::vec((0_i64..60, 1_i64..20), 1..40),
        ) {
            let mut stream = Stream::default();
            let mut bytes = BTreeSet::new();
            for (start, length) in pieces {
                let range = start..start + length;
                let known = range.clone().all(|byte| bytes.contains(&byte));
                let behind = bytes.last().is_none_or(|last| range.end - 1 > *last);
                let wanted = match (known, behind) {
                    (true, _) => Standing::Repeated,
                    (false, true) => Standing::New,
                    (false, false) => Standing::Late,
                };
                prop_assert_eq!(stream.add(range.start, range.end), wanted);
                bytes.extend(range);
            }
            let kept: Vec<i64> = stream.seen.iter().flat_map(|(start, end)| *start..*end).collect();
            prop_assert_eq!(kept, bytes.into_iter().collect::<Vec<i64>>(), "ranges are disjoint and complete");
        }
    }
}
