//! Rule sets to measure with, the same on every machine: those of the paper's evaluation, and the Siena synthetic
//! benchmark generator's after its parameters. The modules here make the traffic of applications.
#![forbid(unsafe_code)]

pub mod content;
pub mod highway;
pub mod market;
pub mod reports;

use std::fmt::Write as _;
use weftwire_core::checksum::{Sum, checksum};

/// Formats for [`itch`].
pub const ITCH_FORMATS: &str = include_str!("../../../examples/subscriptions/itch.p4");

/// Formats for [`telemetry`].
pub const TELEMETRY_FORMATS: &str = "header int {
    @subscribe[match=exact] bit<32> switch_id;
    @subscribe[match=range] bit<32> hop_latency;
}";

/// Formats for [`identifiers`].
pub const IDENTIFIER_FORMATS: &str = "header content {
    @subscribe[match=exact] bit<64> identifier;
}";

/// A generator of numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// From a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A place in a list of weights, as often as its weight says.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum::<u64>().max(1));
        for (place, weight) in weights.iter().enumerate() {
            if left < *weight {
                return place;
            }
            left -= weight;
        }
        0
    }
}

/// `count` rules `stock == S and price > P : fwd(H)`: S of 100 symbols, P from 1 to 999, H of 200 hosts.
pub fn itch(count: usize, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = String::with_capacity(count * 70);
    for _ in 0..count {
        let rule = itch_rule(&mut numbers);
        let _ = writeln!(text, "{rule}");
    }
    text
}

/// One rule of [`itch`].
pub fn itch_rule(numbers: &mut Numbers) -> String {
    let (symbol, price, host) = (numbers.below(100), 1 + numbers.below(999), 1 + numbers.below(200));
    format!("add_order.stock == S{symbol:02} and add_order.price > {price} : fwd({host});")
}

/// Bytes of Ethernet, IPv4, UDP and MoldUDP64 headers in front of the messages of [`itch_packet`].
const ITCH_HEADERS: usize = 14 + 20 + 8 + 20;

/// A packet for [`itch`]'s rules, all of whose symbols are as likely ([`market`] has a real feed): MoldUDP64 in UDP to port 26400 of 233.54.12.1, with
/// `messages` messages (at most 30 fit an Ethernet frame of 1,514 bytes) from `sequence` on. Of ten messages, eight add an order,
/// one is a trade, one deletes an order.
pub fn itch_packet(messages: u16, sequence: u64, numbers: &mut Numbers) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ITCH_HEADERS + usize::from(messages) * 46);
    frame.extend_from_slice(&[0x01, 0x00, 0x5e, 0x36, 0x0c, 0x01, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00]);
    frame.extend_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 16, 17, 0, 0, 10, 0, 0, 1, 233, 54, 12, 1]);
    frame.extend_from_slice(&[0x67, 0x20, 0x67, 0x20, 0, 0, 0, 0]);
    frame.extend_from_slice(b"WEFT000001");
    frame.extend_from_slice(&sequence.to_be_bytes());
    frame.extend_from_slice(&messages.to_be_bytes());
    for index in 0..messages {
        itch_message(sequence + u64::from(index), numbers, &mut frame);
    }
    let ip_length = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&ip_length.to_be_bytes());
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let udp_length = ip_length - 20;
    frame[38..40].copy_from_slice(&udp_length.to_be_bytes());
    let sum = Sum::new().bytes(&frame[26..34]).word(17).word(udp_length).bytes(&frame[34..]).checksum();
    frame[40..42].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
    frame
}

/// Appends a message with its length in front.
fn itch_message(reference: u64, numbers: &mut Numbers, bytes: &mut Vec<u8>) {
    let (kind, length) = match numbers.below(10) {
        0 => (b'P', 44u16),
        1 => (b'D', 19),
        _ => (b'A', 36),
    };
    let end = bytes.len() + 2 + usize::from(length);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.push(kind);
    // Locate, tracking and a time of 6 bytes; the order's number.
    bytes.extend_from_slice(&[0; 10]);
    bytes.extend_from_slice(&reference.to_be_bytes());
    if kind != b'D' {
        bytes.push(if numbers.below(2) == 0 { b'B' } else { b'S' });
        bytes.extend_from_slice(&(1 + numbers.below(1000) as u32).to_be_bytes());
        bytes.extend_from_slice(format!("S{:02}     ", numbers.below(100)).as_bytes());
        bytes.extend_from_slice(&(numbers.below(10_000_000) as u32).to_be_bytes());
    }
    bytes.resize(end, 0);
}

/// A rule for each of `switches` and each latency below `latencies`: `switch_id == S and hop_latency > L : fwd(H)`. With
/// one host all latencies of a switch come to one range.
pub fn telemetry(switches: u32, latencies: u32, hosts: u32) -> String {
    let mut text = String::new();
    for switch in 0..switches {
        for latency in 0..latencies {
            let host = 1 + (latency * 7 + switch) % hosts.max(1);
            let _ = writeln!(text, "int.switch_id == {switch} and int.hop_latency > {latency} : fwd({host});");
        }
    }
    text
}

/// `count` rules `identifier == I : fwd(P)` with identifiers that differ, and P of 32 ports.
pub fn identifiers(count: usize, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut known = std::collections::BTreeSet::new();
    let mut text = String::with_capacity(count * 60);
    while known.len() < count {
        let identifier = numbers.bits();
        if known.insert(identifier) {
            let _ = writeln!(text, "content.identifier == {identifier} : fwd({});", 1 + numbers.below(32));
        }
    }
    text
}

/// Parameters of the Siena synthetic benchmark generator, as the paper's evaluation used it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Siena {
    /// How many attributes there are.
    pub attributes: usize,
    /// Conjunctions of a filter.
    pub disjunctions: usize,
    /// Tests of a conjunction, each of another attribute.
    pub conjunctions: usize,
    /// How many filters.
    pub filters: usize,
    /// Whether attributes are drawn after Zipf's law, the first most often; or evenly.
    pub zipf: bool,
    /// Percentage of attributes that are strings: 40 with the generator, 0 for integers alone.
    pub string_percentage: u64,
}

impl Default for Siena {
    fn default() -> Siena {
        Siena { attributes: 8, disjunctions: 1, conjunctions: 3, filters: 32, zipf: false, string_percentage: 40 }
    }
}

/// How many words strings are drawn from, and the greatest and least weight of a word.
const WORDS: (u64, u64, u64) = (170, 214_479, 24_370);

/// Formats and rules of the Siena generator. Integers are 0 to 99, compared by `=` 50, `<` 25 and `>` 25 %; strings are
/// only compared by `=`. Rule number N forwards to port N + 1.
pub fn siena(parameters: &Siena, seed: u64) -> (String, String) {
    let mut numbers = Numbers::new(seed);
    let attributes = parameters.attributes.clamp(1, 64);
    let strings: Vec<bool> = (0..attributes).map(|_| numbers.below(100) < parameters.string_percentage).collect();
    let mut formats = String::from("header siena {\n");
    for (attribute, string) in strings.iter().enumerate() {
        let (kind, width) = if *string { ("text=\" \"", 64) } else { ("match=range", 32) };
        let _ = writeln!(formats, "    @subscribe[{kind}] bit<{width}> a{attribute};");
    }
    formats.push_str("}\n");
    let weights: Vec<u64> =
        (1..=attributes as u64).map(|rank| if parameters.zipf { attributes as u64 / rank } else { 1 }).collect();
    let words: Vec<u64> = (0..WORDS.0).map(|rank| WORDS.1 - (WORDS.1 - WORDS.2) * rank / (WORDS.0 - 1)).collect();
    let mut text = String::new();
    for filter in 0..parameters.filters {
        let alternatives: Vec<String> = (0..parameters.disjunctions.max(1))
            .map(|_| conjunction(parameters.conjunctions, &strings, &weights, &words, &mut numbers))
            .collect();
        let _ = writeln!(text, "{} : fwd({});", alternatives.join(" or "), filter % 65_535 + 1);
    }
    (formats, text)
}

fn conjunction(size: usize, strings: &[bool], weights: &[u64], words: &[u64], numbers: &mut Numbers) -> String {
    let mut weights = weights.to_vec();
    let mut tests = Vec::new();
    for _ in 0..size.clamp(1, strings.len()) {
        let attribute = numbers.weighted(&weights);
        weights[attribute] = 0;
        tests.push(if strings[attribute] {
            format!("a{attribute} == \"w{:03}\"", numbers.weighted(words))
        } else {
            let operator = ["==", "==", "<", ">"][numbers.below(4) as usize];
            format!("a{attribute} {operator} {}", numbers.below(100))
        });
    }
    tests.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_rules() {
        assert_eq!(itch(20, 7), itch(20, 7));
        assert_ne!(itch(20, 7), itch(20, 8));
        // The head of a longer set is the shorter set.
        assert!(itch(20, 7).starts_with(&itch(10, 7)));
        assert_eq!(identifiers(10, 1).lines().count(), 10);
        let (formats, rules) = siena(&Siena::default(), 1);
        assert_eq!((formats.lines().count(), rules.lines().count()), (10, 32));
        assert_eq!(rules.lines().next().map(|rule| rule.matches(" and ").count()), Some(2));
    }
}
