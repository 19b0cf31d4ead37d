//! Publishers and subscribers on UDP sockets.
//!
//! Messages go to a multicast group, which switches forward by their rules alone: only hosts that a rule names get them.
//!
//! ```no_run
//! use std::time::Duration;
//! use weftwire_publish::client::{GROUP, Publisher, Subscriber};
//! use weftwire_publish::message::Message;
//! use weftwire_publish::topic::Topic;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orders = Topic::new("orders")?;
//! let mut publisher = Publisher::open("10.0.0.1".parse()?, GROUP)?;
//! publisher.publish(&Message { key: Some(b"eu-1"), number: 250, ..Message::new(orders, b"a book") })?;
//!
//! let mut subscriber = Subscriber::open("10.0.0.2".parse()?, GROUP)?;
//! subscriber.receive(Duration::from_secs(1), |message, arrival| println!("{message:?} {arrival:?}"))?;
//! # Ok(())
//! # }
//! ```
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is where the sockets and the clock live")]

use crate::message::{BadMessage, MAX_DATAGRAM, Message, PORT, TooLong};
use crate::streams::{Arrival, Streams, Tally};
use crate::topic::Topic;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weftwire_linux::datagrams::{self, Inbox};
use weftwire_linux::random_words;

/// Where messages go unless told otherwise: a group of the organisation-local scope.
pub const GROUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 192, 101, 102)), PORT);

/// How many bytes of messages wait for a subscriber that is busy. The system's limit may be lower.
const RECEIVE_BUFFER: usize = 32 << 20;

/// The longest datagram that is read whole: an Ethernet jumbo frame's.
const LARGEST: usize = 9_000;

/// Bytes of messages that wait to be sent, at most.
const MAX_QUEUE: usize = 4 << 20;

/// With a rate, so many messages go together; waiting for each alone would cost more than it brings.
const PACED: usize = 16;

/// Streams that a publisher numbers, and that a subscriber keeps count of.
const MAX_STREAMS: usize = 65_536;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The publisher has [65,536](Streams) topics and partitions already.
    #[error("a publisher has at most {MAX_STREAMS} topics and partitions")]
    TooManyStreams,
    /// The kernel refused.
    #[error("cannot send: {0}")]
    Io(#[from] io::Error),
}

/// Sends messages, and numbers them. Nobody acknowledges them.
#[derive(Debug)]
pub struct Publisher {
    socket: UdpSocket,
    id: u64,
    limit: usize,
    next: BTreeMap<(Topic, u16), u64>,
    /// Datagrams to be sent, one behind the other.
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
    /// The time that a message takes, and when the next may go.
    pace: Option<(Duration, Instant)>,
}

impl Publisher {
    /// A publisher on the interface that has the address `local`. What it sends to a group does not come back to this
    /// host, as it does not from switches.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn open(local: IpAddr, destination: SocketAddr) -> io::Result<Publisher> {
        // Bound to an address, so that messages to a group leave by the interface that has it, whatever the routes.
        let socket = UdpSocket::bind((local, 0))?;
        if destination.is_ipv4() {
            // Subscribers on this host would get what no rule sends them, and a bridge all of its own.
            socket.set_multicast_loop_v4(false)?;
        }
        socket.connect(destination)?;
        let [id] = random_words()?;
        let limit = MAX_DATAGRAM - if destination.is_ipv6() { 20 } else { 0 };
        Ok(Publisher { socket, id, limit, next: BTreeMap::new(), bytes: Vec::new(), places: Vec::new(), pace: None })
    }

    /// The number that its messages bear.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The longest datagram, with the message's header: [`MAX_DATAGRAM`] unless it was changed.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Makes longer datagrams possible, or shorter ones necessary, for networks with another size of packets.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sends no more than so many messages a second; [`Publisher::flush`] waits then. `None` is as fast as can be.
    pub fn set_rate(&mut self, rate: Option<u64>) {
        let time = |rate: u64| Duration::from_secs(1) / u32::try_from(rate.max(1)).unwrap_or(u32::MAX);
        self.pace = rate.map(|rate| (time(rate), Instant::now()));
    }

    /// Sends a message and gives its number. The message's own publisher and number count for nothing.
    ///
    /// # Errors
    /// [`PublishError`]. Only if the kernel refused has the message used up a number.
    pub fn publish(&mut self, message: &Message<'_>) -> Result<u64, PublishError> {
        let sequence = self.queue(message)?;
        self.flush()?;
        Ok(sequence)
    }

    /// As [`Publisher::publish`], but the message waits for others, until [`Publisher::flush`] or until there are many.
    ///
    /// # Errors
    /// As of [`Publisher::publish`].
    pub fn queue(&mut self, message: &Message<'_>) -> Result<u64, PublishError> {
        let streams = self.next.len();
        let next = match self.next.get_mut(&(message.topic, message.partition)) {
            Some(next) => next,
            None if streams >= MAX_STREAMS => return Err(PublishError::TooManyStreams),
            None => self.next.entry((message.topic, message.partition)).or_default(),
        };
        let (start, sequence) = (self.bytes.len(), *next);
        Message { publisher: self.id, sequence, heartbeat: false, ..*message }.encode(self.limit, &mut self.bytes)?;
        *next += 1;
        self.places.push(start..self.bytes.len());
        if self.bytes.len() >= MAX_QUEUE {
            self.flush()?;
        }
        Ok(sequence)
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// If the kernel refuses. What waited is given up then.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        let outcome = loop {
            if sent == self.places.len() {
                break Ok(());
            }
            let most = if self.pace.is_some() { PACED } else { datagrams::MOST };
            let last = self.places.len().min(sent + most);
            self.wait_turn(last - sent);
            match datagrams::send(&self.socket, &self.bytes, &self.places[sent..last]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An earlier message found nobody at home.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => break Err(error),
            }
        };
        self.bytes.clear();
        self.places.clear();
        outcome
    }

    /// Waits until so many messages may go.
    fn wait_turn(&mut self, count: usize) {
        let Some((time, next)) = &mut self.pace else { return };
        let now = Instant::now();
        if *next > now {
            thread::sleep(*next - now);
        }
        // Time that nobody used is not made up for.
        *next = (*next).max(now) + *time * count as u32;
    }

    /// Says of each topic and partition which number comes next, so that subscribers notice the loss of a last message.
    ///
    /// # Errors
    /// As of [`Publisher::publish`].
    pub fn heartbeat(&mut self) -> Result<(), PublishError> {
        for (&(topic, partition), &sequence) in &self.next {
            let start = self.bytes.len();
            Message {
                publisher: self.id,
                sequence,
                partition,
                timestamp_ms: now(),
                heartbeat: true,
                payload: None,
                ..Message::new(topic, &[])
            }
            .encode(self.limit, &mut self.bytes)?;
            self.places.push(start..self.bytes.len());
        }
        self.flush()?;
        Ok(())
    }
}

/// What a subscriber has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages and what is missing.
    pub streams: Tally,
    /// Datagrams that are no messages.
    pub bad: BTreeMap<BadMessage, u64>,
}

/// Receives the messages that the network's rules send to this host.
#[derive(Debug)]
pub struct Subscriber {
    socket: UdpSocket,
    inbox: Inbox,
    streams: Streams,
    bad: BTreeMap<BadMessage, u64>,
    /// The socket's time-out, to set it only when it changes.
    wait: Duration,
}

impl Subscriber {
    /// A subscriber on the interface that has the address `local`, to messages that are sent to `destination`: a group,
    /// or that address itself.
    ///
    /// # Errors
    /// If there is no such interface, or the port is taken.
    pub fn open(local: IpAddr, destination: SocketAddr) -> io::Result<Subscriber> {
        let socket = match (destination.ip(), local) {
            (group, _) if !group.is_multicast() => UdpSocket::bind(destination)?,
            // Bound to the group: datagrams to other addresses of the host stay out.
            (group @ IpAddr::V4(v4), IpAddr::V4(local)) => {
                let socket = UdpSocket::bind((group, destination.port()))?;
                socket.join_multicast_v4(&v4, &local)?;
                socket
            }
            (IpAddr::V6(_), _) | (_, IpAddr::V6(_)) => {
                let what = "groups of IPv6 are not supported; give an IPv4 group, or an address of this host";
                return Err(io::Error::new(io::ErrorKind::Unsupported, what));
            }
        };
        datagrams::set_receive_buffer(&socket, RECEIVE_BUFFER)?;
        let inbox = Inbox::new(LARGEST);
        Ok(Subscriber { socket, inbox, streams: Streams::new(MAX_STREAMS), bad: BTreeMap::new(), wait: Duration::ZERO })
    }

    /// Waits for messages, at most `wait` (at least a microsecond), gives those that are there to `each`, and says how
    /// many came. Heartbeats are among them.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn receive(&mut self, wait: Duration, each: impl FnMut(&Message<'_>, Arrival)) -> io::Result<usize> {
        self.wait(wait)?;
        Ok(self.take(each))
    }

    /// Gives the messages that the last [`Subscriber::wait`] found, once, and says how many there were.
    pub fn take(&mut self, mut each: impl FnMut(&Message<'_>, Arrival)) -> usize {
        let mut count = 0;
        for datagram in self.inbox.datagrams() {
            match Message::decode(datagram) {
                Ok(message) => {
                    count += 1;
                    each(&message, self.streams.observe(&message));
                }
                Err(bad) => *self.bad.entry(bad).or_default() += 1,
            }
        }
        self.inbox.clear();
        count
    }

    /// Waits for messages, at most so long (at least a microsecond). [`Subscriber::take`] gives them.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&mut self, wait: Duration) -> io::Result<()> {
        let wait = wait.max(Duration::from_micros(1));
        if self.wait != wait {
            self.socket.set_read_timeout(Some(wait))?;
            self.wait = wait;
        }
        match self.inbox.receive(&self.socket) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            outcome => outcome,
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        Counts { streams: self.streams.tally(), bad: self.bad.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    #[test]
    fn messages_arrive_numbered_and_a_heartbeat_tells_the_rest() {
        let local = IpAddr::from([127, 0, 0, 1]);
        // A port that is free now; other processes' are asked for no more.
        let port = UdpSocket::bind((local, 0)).unwrap().local_addr().unwrap().port();
        let destination = SocketAddr::new(local, port);
        let mut subscriber = Subscriber::open(local, destination).unwrap();
        let mut publisher = Publisher::open(local, destination).unwrap();
        let (a, b) = (Topic::new("a").unwrap(), Topic::new("b").unwrap());
        assert_eq!(publisher.publish(&Message::new(a, b"one")).unwrap(), 0);
        assert_eq!(publisher.publish(&Message::new(b, b"two")).unwrap(), 0);
        assert_eq!(publisher.publish(&Message::new(a, b"three")).unwrap(), 1);
        assert!(matches!(publisher.publish(&Message::new(a, &[0; 1_500])), Err(PublishError::TooLong(_))));
        publisher.heartbeat().unwrap();
        let id = publisher.id();
        let mut found = Vec::new();
        while found.len() < 5 {
            let each = |message: &Message<'_>, arrival| {
                assert_eq!((message.publisher, arrival), (id, Arrival::Expected));
                let payload = message.payload.map(<[u8]>::to_vec);
                found.push((message.topic, message.sequence, message.heartbeat, payload));
            };
            assert!(subscriber.receive(WAIT, each).unwrap() > 0);
        }
        let text = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(found[0], (a, 0, false, text("one")));
        assert_eq!(found[1], (b, 0, false, text("two")));
        assert_eq!(found[2], (a, 1, false, text("three")));
        assert_eq!(found[3..], [(a, 2, true, None), (b, 1, true, None)]);
        assert_eq!(subscriber.counts().streams, Tally { messages: 3, ..Tally::default() });
    }
}
