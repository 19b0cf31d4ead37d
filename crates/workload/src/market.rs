//! A market's day: a feed of ITCH 5.0 messages in MoldUDP64.

use crate::Numbers;
use std::net::Ipv4Addr;
use weftwire_core::MacAddress;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};

/// UDP port of the feed.
pub const FEED_PORT: u16 = 26_400;
/// The multicast group of the feed, and its Ethernet address.
const GROUP: (Ipv4Addr, MacAddress) = (Ipv4Addr::new(233, 54, 12, 1), MacAddress([0x01, 0x00, 0x5e, 0x36, 0x0c, 0x01]));
/// The exchange's Ethernet address.
const EXCHANGE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// The session that MoldUDP64 headers name.
const SESSION: &[u8; 10] = b"WEFT000001";
/// Bytes of a MoldUDP64 packet, so that it fits an Ethernet frame of 1,514.
const MOST_BYTES: usize = 1_472;
/// Bytes of a MoldUDP64 header.
const MOLD_HEADER: usize = 20;
/// Orders in the book at most: the oldest are deleted first.
const MOST_ORDERS: usize = 4_096;
/// Symbols by how much they are traded; those behind them are called `Z020` and so on.
const NAMES: [&str; 20] = [
    "GOOGL", "AAPL", "MSFT", "AMZN", "NVDA", "META", "TSLA", "AVGO", "COST", "NFLX", "ASML", "AMD", "PEP", "LIN",
    "CSCO", "ADBE", "TMUS", "QCOM", "TXN", "INTU",
];

/// What a feed is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedSettings {
    /// Symbols; orders for those other than the first are spread over them after Zipf's law.
    pub symbols: u16,
    /// Of a thousand messages, so many add an order for the first symbol, `GOOGL`.
    pub watched_per_mille: u16,
    /// Messages of a packet, from and to; few are more often than many, after Zipf's law.
    pub messages: (u16, u16),
}

impl Default for FeedSettings {
    /// The synthetic feed of the paper's Figure 8: 1 to 12 messages a packet, 5 % of them of interest.
    fn default() -> FeedSettings {
        FeedSettings { symbols: 100, watched_per_mille: 50, messages: (1, 12) }
    }
}

/// An order in the book.
#[derive(Clone, Copy, Debug)]
struct Order {
    reference: u64,
    symbol: u16,
    shares: u32,
    price: u32,
}

/// A feed. Orders that are executed, cancelled, deleted or replaced are in the book; sequence numbers, order and match
/// numbers count up.
#[derive(Clone, Debug)]
pub struct Feed {
    settings: FeedSettings,
    numbers: Numbers,
    book: Vec<Order>,
    weights: Vec<u64>,
    sizes: Vec<u64>,
    sequence: u64,
    reference: u64,
    match_number: u64,
    /// Symbols of which the directory has not been sent yet, behind the event that opens the day.
    directory: Option<u16>,
}

impl Feed {
    /// A feed before its first message. The first packets open the day and list the symbols.
    pub fn new(settings: FeedSettings, seed: u64) -> Feed {
        let zipf = |count: u16| (1..=u64::from(count.max(1))).map(move |rank| 1_000_000 / rank).collect();
        let (least, most) = settings.messages;
        Feed {
            settings,
            numbers: Numbers::new(seed),
            book: Vec::new(),
            weights: zipf(settings.symbols.max(2) - 1),
            sizes: zipf(most.max(least) - least + 1),
            sequence: 1,
            reference: 0,
            match_number: 0,
            directory: None,
        }
    }

    /// Skips the opening of the day and the list of symbols.
    #[must_use]
    pub fn opened(mut self) -> Feed {
        self.directory = Some(self.settings.symbols);
        self
    }

    /// The sequence number of the next message.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The name of a symbol by how much it is traded, from 0.
    pub fn symbol(rank: u16) -> String {
        NAMES.get(usize::from(rank)).map_or_else(|| format!("Z{rank:03}"), |name| (*name).to_owned())
    }

    /// The next packet as a frame from the exchange. `now_ns`: nanoseconds since midnight, which messages carry.
    pub fn packet(&mut self, now_ns: u64) -> Vec<u8> {
        let wanted = self.settings.messages.0.max(1) as usize + self.numbers.weighted(&self.sizes);
        let mut data = Vec::with_capacity(MOLD_HEADER + wanted * 42);
        data.extend_from_slice(SESSION);
        data.extend_from_slice(&self.sequence.to_be_bytes());
        data.extend_from_slice(&[0; 2]);
        let mut count = 0u16;
        while usize::from(count) < wanted {
            let before = data.len();
            data.extend_from_slice(&[0; 2]);
            self.message(now_ns, &mut data);
            let length = (data.len() - before - 2) as u16;
            data[before..before + 2].copy_from_slice(&length.to_be_bytes());
            count += 1;
            // Room for the longest message that may follow.
            if data.len() + 46 > MOST_BYTES {
                break;
            }
        }
        data[18..20].copy_from_slice(&count.to_be_bytes());
        self.sequence += u64::from(count);
        frame(&data)
    }

    /// A heartbeat: no message, the next sequence number.
    pub fn heartbeat(&self) -> Vec<u8> {
        frame(&[&SESSION[..], &self.sequence.to_be_bytes(), &[0; 2]].concat())
    }

    /// The feed's last packet: as a heartbeat with the count that ends a session.
    pub fn end(&self) -> Vec<u8> {
        frame(&[&SESSION[..], &self.sequence.to_be_bytes(), &[0xff; 2]].concat())
    }

    fn message(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        match self.directory {
            None => {
                self.directory = Some(0);
                head(out, b'S', 0, now_ns);
                out.push(b'O');
            }
            Some(next) if next < self.settings.symbols => {
                self.directory = Some(next + 1);
                directory(next, now_ns, out);
            }
            Some(_) => self.trading(now_ns, out),
        }
    }

    /// Shares of messages as on a real day, about: most orders are added and deleted, few are executed.
    fn trading(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.numbers.below(1_000) < u64::from(self.settings.watched_per_mille) {
            return self.add(0, now_ns, out);
        }
        let kind = self.numbers.below(100);
        match kind {
            _ if self.book.len() >= MOST_ORDERS => self.delete(0, now_ns, out),
            0..45 => self.add_any(now_ns, out),
            // Trades against orders that were never shown.
            45..49 => self.trade(now_ns, out),
            _ if self.book.is_empty() => self.add_any(now_ns, out),
            _ => {
                let place = self.numbers.below(self.book.len() as u64) as usize;
                match kind {
                    49..85 => self.delete(place, now_ns, out),
                    85..93 => self.replace(place, now_ns, out),
                    93..98 => self.execute(place, now_ns, out),
                    _ => self.cancel(place, now_ns, out),
                }
            }
        }
    }

    fn add_any(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let symbol = 1 + self.numbers.weighted(&self.weights) as u16;
        self.add(symbol, now_ns, out);
    }

    /// A price of a symbol: around its own mean, four decimals.
    fn price(&mut self, symbol: u16) -> u32 {
        let mean = 100_000 + (u64::from(symbol) + 9) * 7_919 % 170 * 10_000;
        (mean * 9 / 10 + self.numbers.below(mean / 5) / 100 * 100) as u32
    }

    fn shares(&mut self) -> u32 {
        100 * (1 + self.numbers.below(10)) as u32
    }

    fn side(&mut self) -> u8 {
        if self.numbers.below(2) == 0 { b'B' } else { b'S' }
    }

    /// `A`, or of one in twenty `F` with the market maker's name.
    fn add(&mut self, symbol: u16, now_ns: u64, out: &mut Vec<u8>) {
        self.reference += 1;
        let order = Order { reference: self.reference, symbol, shares: self.shares(), price: self.price(symbol) };
        // Of the first symbol orders are always plain, so that their share is exact.
        let attributed = symbol != 0 && self.numbers.below(20) == 0;
        head(out, if attributed { b'F' } else { b'A' }, symbol, now_ns);
        out.extend_from_slice(&order.reference.to_be_bytes());
        out.push(self.side());
        out.extend_from_slice(&order.shares.to_be_bytes());
        out.extend_from_slice(&padded(symbol));
        out.extend_from_slice(&order.price.to_be_bytes());
        if attributed {
            out.extend_from_slice(b"WEFT");
        }
        self.book.push(order);
        if self.book.len() > MOST_ORDERS {
            // The watched symbol's orders come whatever the book holds.
            self.book.remove(0);
        }
    }

    fn delete(&mut self, place: usize, now_ns: u64, out: &mut Vec<u8>) {
        let order = self.book.swap_remove(place);
        head(out, b'D', order.symbol, now_ns);
        out.extend_from_slice(&order.reference.to_be_bytes());
    }

    /// `E`, or of one in ten `C` with a price of its own.
    fn execute(&mut self, place: usize, now_ns: u64, out: &mut Vec<u8>) {
        let order = self.book[place];
        let shares = self.take(place);
        self.match_number += 1;
        let priced = self.numbers.below(10) == 0;
        head(out, if priced { b'C' } else { b'E' }, order.symbol, now_ns);
        out.extend_from_slice(&order.reference.to_be_bytes());
        out.extend_from_slice(&shares.to_be_bytes());
        out.extend_from_slice(&self.match_number.to_be_bytes());
        if priced {
            out.push(b'Y');
            out.extend_from_slice(&order.price.to_be_bytes());
        }
    }

    fn cancel(&mut self, place: usize, now_ns: u64, out: &mut Vec<u8>) {
        let order = self.book[place];
        if order.shares <= 100 {
            return self.delete(place, now_ns, out);
        }
        head(out, b'X', order.symbol, now_ns);
        out.extend_from_slice(&order.reference.to_be_bytes());
        out.extend_from_slice(&100u32.to_be_bytes());
        self.book[place].shares -= 100;
    }

    fn replace(&mut self, place: usize, now_ns: u64, out: &mut Vec<u8>) {
        let old = self.book[place];
        self.reference += 1;
        let new = Order { reference: self.reference, shares: self.shares(), price: self.price(old.symbol), ..old };
        head(out, b'U', old.symbol, now_ns);
        out.extend_from_slice(&old.reference.to_be_bytes());
        out.extend_from_slice(&new.reference.to_be_bytes());
        out.extend_from_slice(&new.shares.to_be_bytes());
        out.extend_from_slice(&new.price.to_be_bytes());
        self.book[place] = new;
    }

    fn trade(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let symbol = self.numbers.weighted(&self.weights) as u16;
        self.match_number += 1;
        head(out, b'P', symbol, now_ns);
        // Since 2014 the order's number and side of a hidden trade are always these.
        out.extend_from_slice(&0u64.to_be_bytes());
        out.push(b'B');
        out.extend_from_slice(&self.shares().to_be_bytes());
        out.extend_from_slice(&padded(symbol));
        out.extend_from_slice(&self.price(symbol).to_be_bytes());
        out.extend_from_slice(&self.match_number.to_be_bytes());
    }

    /// Takes some hundreds of an order's shares; an order without shares leaves the book.
    fn take(&mut self, place: usize) -> u32 {
        let order = &mut self.book[place];
        let hundreds = u64::from(order.shares / 100);
        let taken = 100 * (1 + self.numbers.below(hundreds.max(1))) as u32;
        order.shares = order.shares.saturating_sub(taken);
        if order.shares == 0 {
            self.book.swap_remove(place);
        }
        taken
    }
}

/// What all messages begin with: type, stock locate, tracking number, time.
fn head(out: &mut Vec<u8>, kind: u8, symbol: u16, now_ns: u64) {
    out.push(kind);
    // The day's events are of no stock.
    let locate = if kind == b'S' { 0 } else { symbol + 1 };
    out.extend_from_slice(&locate.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&now_ns.to_be_bytes()[2..]);
}

/// `R`: that there is a symbol, and its stock locate.
fn directory(symbol: u16, now_ns: u64, out: &mut Vec<u8>) {
    head(out, b'R', symbol, now_ns);
    out.extend_from_slice(&padded(symbol));
    // Market category Q, financial status normal, round lots of 100.
    out.extend_from_slice(b"QN");
    out.extend_from_slice(&100u32.to_be_bytes());
    // Not round lots only, common stock, no subtype, production, no short sale threshold, no IPO, tier 1, no ETP.
    out.extend_from_slice(b"NCZ PN 1N");
    out.extend_from_slice(&0u32.to_be_bytes());
    out.push(b'N');
}

fn padded(symbol: u16) -> [u8; 8] {
    let mut name = [b' '; 8];
    let text = Feed::symbol(symbol);
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn frame(data: &[u8]) -> Vec<u8> {
    let ip = Ipv4Fields { source: Ipv4Addr::new(10, 0, 0, 1), destination: GROUP.0, ttl: 16, ..Ipv4Fields::default() };
    let built = FrameBuilder::ethernet(GROUP.1, EXCHANGE).ipv4(&ip).udp(FEED_PORT, FEED_PORT).payload(data).finish();
    built.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn number(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// Reads a feed as a subscriber would, and keeps a book of its own.
    #[test]
    fn a_subscriber_can_follow_the_book() {
        let lengths: BTreeMap<u8, usize> = [
            (b'S', 12),
            (b'R', 39),
            (b'A', 36),
            (b'F', 40),
            (b'E', 31),
            (b'C', 36),
            (b'X', 23),
            (b'D', 19),
            (b'U', 35),
            (b'P', 44),
        ]
        .into();
        let mut feed = Feed::new(FeedSettings::default(), 7);
        let (mut book, mut counts, mut names) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut sequence, mut watched, mut all) = (1, 0, 0u32);
        for packet in 0..8_000u64 {
            let frame = feed.packet(34_200_000_000_000 + packet);
            assert!(frame.len() <= 1_514);
            let mold = &frame[42..];
            assert_eq!(number(&mold[10..18]), sequence);
            let count = number(&mold[18..20]);
            assert!((1..=12).contains(&count));
            sequence += count;
            let mut rest = &mold[20..];
            for _ in 0..count {
                let (message, next) = rest[2..].split_at(number(&rest[..2]) as usize);
                rest = next;
                let kind = message[0];
                assert_eq!(message.len(), lengths[&kind], "{}", kind as char);
                assert_eq!(number(&message[5..11]), 34_200_000_000_000 + packet);
                *counts.entry(kind).or_insert(0u32) += 1;
                all += 1;
                let (locate, reference) = (number(&message[1..3]), number(message.get(11..19).unwrap_or_default()));
                match kind {
                    b'R' => assert_eq!(names.insert(locate, message[11..19].to_vec()), None),
                    b'A' | b'F' => {
                        assert_eq!(names[&locate], &message[24..32]);
                        watched += u32::from(&message[24..32] == b"GOOGL   ");
                        assert_eq!(book.insert(reference, (locate, number(&message[20..24]))), None);
                    }
                    b'E' | b'C' | b'X' => {
                        let (of, shares) = book.get_mut(&reference).expect("the order is in the book");
                        assert_eq!(*of, locate);
                        *shares = shares.checked_sub(number(&message[19..23])).expect("no more than there are");
                        if *shares == 0 {
                            book.remove(&reference);
                        }
                    }
                    b'D' => assert!(book.remove(&reference).is_some()),
                    b'U' => {
                        let (of, _) = book.remove(&reference).expect("the order is in the book");
                        book.insert(number(&message[19..27]), (of, number(&message[27..31])));
                    }
                    _ => {}
                }
            }
            assert!(rest.is_empty());
        }
        assert_eq!((counts.len(), names.len()), (10, 100), "{counts:?}");
        let share = f64::from(watched) / f64::from(all);
        assert!((0.045..0.055).contains(&share), "{share}");
        // A heartbeat has the next number and no message; so has the end, with another count.
        assert_eq!(number(&feed.heartbeat()[52..62]), sequence << 16);
        assert_eq!(number(&feed.end()[52..62]), sequence << 16 | 0xffff);
    }
}
