//! A receiver that grants its link to senders, least left first: `examples/credit-receiver.xl` beside an obvious model.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use std::net::Ipv4Addr;
use weftwire_core::Port;
use weftwire_network::model::{NodeKind, PortPlace, TrafficKind, Transport};
use weftwire_network::results::Results;

const LINE: i64 = 10_000_000;
const MOST: i64 = 1_400;
const HEADERS: i64 = 50;
const REQUEST: u8 = 1;
const GRANT: u8 = 2;

/// A packet of the transport at the receiver's port.
struct Seen {
    at: i64,
    sent: bool,
    /// The end that is not the receiver.
    sender: Ipv4Addr,
    kind: u8,
    position: i64,
}

impl Seen {
    /// Ethernet, IPv4 and UDP without options, then kind, length and position.
    fn read(&(at, _, ref bytes, sent): &(i64, PortPlace, Vec<u8>, bool)) -> Seen {
        let word = |place: usize| <[u8; 4]>::try_from(&bytes[place..place + 4]).expect("four bytes");
        let position = u32::from_be_bytes(word(46)).into();
        Seen { at, sent, sender: word(if sent { 30 } else { 26 }).into(), kind: bytes[42], position }
    }
}

/// A sender as the model knows it.
struct Sender {
    address: Ipv4Addr,
    wanted: i64,
    granted: i64,
    /// When it asked, by number, with what it had left then.
    waits: Option<(i64, u64)>,
}

/// The senders, who asks for how manieth time, and from when on the line is free.
#[derive(Default)]
struct Model {
    senders: Vec<Sender>,
    asked: u64,
    free: i64,
    grants: Vec<(i64, Ipv4Addr, i64)>,
}

impl Model {
    fn request(&mut self, at: i64, address: Ipv4Addr, wanted: i64) {
        self.grant_before(at);
        if self.senders.iter().all(|sender| sender.waits.is_none()) {
            self.free = self.free.max(at);
        }
        let known = self.senders.iter().position(|sender| sender.address == address);
        let known = known.unwrap_or_else(|| {
            self.senders.push(Sender { address, wanted: 0, granted: 0, waits: None });
            self.senders.len() - 1
        });
        self.senders[known].wanted = wanted;
        self.wait(known);
    }

    fn wait(&mut self, sender: usize) {
        let sender = &mut self.senders[sender];
        let left = sender.wanted - sender.granted;
        match sender.waits {
            _ if left == 0 => sender.waits = None,
            Some((before, _)) if before == left => {}
            _ => {
                self.asked += 1;
                sender.waits = Some((left, self.asked));
            }
        }
    }

    fn grant_before(&mut self, end: i64) {
        while self.free < end {
            let waiting = (0..self.senders.len()).filter_map(|one| Some((self.senders[one].waits?, one)));
            let Some((_, first)) = waiting.min() else { return };
            let sender = &mut self.senders[first];
            let bytes = MOST.min(sender.wanted - sender.granted);
            sender.granted += bytes;
            sender.waits = None;
            self.grants.push((self.free, sender.address, sender.granted));
            self.free += (bytes + HEADERS) * 8 * SECOND / LINE;
            self.wait(first);
        }
    }
}

/// Senders of so many bytes from these times on, and what the receiver's port has seen.
fn transfers(transfers: &[(u64, i64)]) -> (Results, Vec<Seen>) {
    let mut network = network(20 * SECOND);
    let router = network.add_node("router", NodeKind::Router);
    let receiver = network.add_node("receiver", function("credit-receiver.xl", false));
    network.add_link([router, receiver], wire(LINE as u64, MILLISECOND, 8));
    for (number, &(bytes, start)) in transfers.iter().enumerate() {
        let sender = network.add_node(&format!("sender{number}"), function("credit-sender.xl", false));
        network.add_link([sender, router], wire(100_000_000, (1 + number as i64 % 3) * MILLISECOND, 1_000));
        network.add([sender, receiver], Transport::Udp, TrafficKind::Bulk { bytes }).start = at(start);
    }
    network.captures.push(PortPlace { node: receiver, port: Port(1) });
    let (results, kept) = run_keeping(&network, Kept::default());
    let seen = kept.frames.iter().map(Seen::read).collect();
    (results, seen)
}

#[test]
fn grants_come_as_in_the_model_and_the_line_is_full_but_never_overfull() {
    let all = [(300_000, 0), (120_000, 0), (1, 0), (120_000, 0), (40_000, 50 * MILLISECOND), (1_400, 60 * MILLISECOND)];
    let (results, seen) = transfers(&all);
    results.flows.iter().for_each(assert_complete);
    assert!(results.run.warnings.is_empty(), "{:?}", results.run.warnings);
    let mut model = Model::default();
    for packet in seen.iter().filter(|packet| !packet.sent && packet.kind == REQUEST) {
        model.request(packet.at, packet.sender, packet.position);
    }
    model.grant_before(i64::MAX);
    let grants = seen.iter().filter(|packet| packet.sent && packet.kind == GRANT);
    let grants: Vec<_> = grants.map(|packet| (packet.at, packet.sender, packet.position)).collect();
    assert_eq!(grants, model.grants);
    assert_eq!(grants.len(), all.iter().map(|(bytes, _)| bytes.div_ceil(MOST as u64) as usize).sum::<usize>());
    // Grants that are paced fill no queue: that of the line has room for eight packets.
    let line = &results.links[0];
    assert_eq!(line.counts.dropped_full, 0);
    // Who has least is done first.
    let mut by_end: Vec<_> = results.flows.iter().map(|flow| (flow.end, flow.bytes)).collect();
    by_end.sort();
    let sizes: Vec<_> = by_end.iter().filter_map(|(_, bytes)| *bytes).collect();
    assert_eq!(sizes, [1, 1_400, 40_000, 120_000, 120_000, 300_000]);
    // All that time the line carried data: 583 kB at 10 Mbit/s, and the way there and back.
    let bytes: i64 = all.iter().map(|(bytes, _)| *bytes as i64 + (*bytes as i64).div_euclid(MOST) * HEADERS).sum();
    let end = by_end.last().and_then(|(end, _)| *end).expect("complete");
    let least = bytes * 8 * SECOND / LINE;
    assert!((least..least + 30 * MILLISECOND).contains(&end), "{end} ns beside {least} ns");
}
