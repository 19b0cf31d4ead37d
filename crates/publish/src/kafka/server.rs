//! The broker on sockets: a thread for each client, one for the network.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is where the bridge's sockets, threads and clock live"
)]

use super::broker::{Answer, Broker, Counts, Limits, MAX_FETCH, Network, NotSent, Waiting};
use super::memory::{Budget, Hold, SMALL};
use super::request::{Body, Request};
use super::response::Response;
use super::wire::Malformed;
use crate::client::{self, PublishError, Publisher, Subscriber};
use crate::message::Message;
use crate::topic::Topic;
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use weftwire_linux::places::{Places, peer};
use weftwire_linux::random_words;

/// Clients at once.
const MAX_CLIENTS: usize = 256;
/// Of one address of another machine.
const MAX_OF_PEER: usize = 64;
/// The longest request: Kafka's clients send up to 1 MB of records unless told otherwise.
const MAX_REQUEST: usize = 2 << 20;
/// The shortest has a head.
const MIN_REQUEST: usize = 8;
/// A client that has asked nothing yet is let go after this.
const OPENING: Duration = Duration::from_secs(10);
/// A client that asks nothing more for so long too.
const IDLE: Duration = Duration::from_secs(600);
/// A client that does not take an answer for so long too, or that has not sent a request whole.
const STUCK: Duration = Duration::from_secs(30);
/// How often members of groups and requests that wait are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How often the network hears what was sent last.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// What a bridge does.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients of Kafka connect.
    pub listen: SocketAddr,
    /// The address that clients are told to connect to, if not the one by which they came.
    pub advertise: Option<(String, u16)>,
    /// The address of the interface towards the switch.
    pub local: IpAddr,
    /// Where messages go, and where they come from: a group, usually.
    pub destination: SocketAddr,
    /// Topics that are there from the start, and their partitions.
    pub topics: Vec<(Topic, u16)>,
    /// Messages sent in a second at most.
    pub rate: Option<u64>,
    /// The longest datagram, if not that of Ethernet.
    pub datagram: Option<usize>,
    /// How much the broker takes on.
    pub limits: Limits,
}

/// What a bridge has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The broker's counts.
    pub broker: Counts,
    /// What came from the network, and what is missing of it.
    pub network: client::Counts,
    /// Connections that ended because a request was malformed.
    pub malformed: BTreeMap<Malformed, u64>,
    /// Connections that were refused because there were too many.
    pub too_many: u64,
    /// Connections that made room for others.
    pub made_room: u64,
    /// Requests that there was no memory for.
    pub no_memory: u64,
    /// How often the kernel did not take messages.
    pub not_sent: u64,
}

/// A bridge that runs. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    broker: Mutex<Broker>,
    /// Something happened that a waiting request may have waited for.
    news: Condvar,
    /// Taken before `broker` by who needs both.
    wire: Mutex<Wire>,
    report: Mutex<Report>,
    start: Instant,
    stop: AtomicBool,
    /// Each with what ends its connection.
    clients: Mutex<Places<TcpStream>>,
    budget: Budget,
    advertise: Option<(String, u16)>,
}

/// The way into the network.
#[derive(Debug)]
struct Wire(Publisher);

impl Network for Wire {
    fn limit(&self) -> usize {
        self.0.limit()
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), NotSent> {
        self.0.queue(message).map(drop).map_err(|_| NotSent)
    }
}

/// For requests that send nothing.
struct NoNetwork;

impl Network for NoNetwork {
    fn limit(&self) -> usize {
        0
    }

    fn send(&mut self, _: &Message<'_>) -> Result<(), NotSent> {
        Err(NotSent)
    }
}

impl Server {
    /// Starts a bridge.
    ///
    /// # Errors
    /// If an address cannot be used.
    pub fn start(options: &Options) -> io::Result<Server> {
        Server::start_when_open(options, || Ok(()))
    }

    /// Starts a bridge. `opened` is called when all sockets are open and before there are threads: each thread has privileges of
    /// its own, which may be given up there.
    ///
    /// # Errors
    /// If an address cannot be used; those of `opened`.
    pub fn start_when_open(options: &Options, opened: impl FnOnce() -> io::Result<()>) -> io::Result<Server> {
        let mut publisher = Publisher::open(options.local, options.destination)?;
        publisher.set_rate(options.rate);
        if let Some(limit) = options.datagram {
            publisher.set_limit(limit);
        }
        let subscriber = Subscriber::open(options.local, options.destination)?;
        let listener = TcpListener::bind(options.listen)?;
        let address = listener.local_addr()?;
        let [random] = random_words()?;
        let mut broker = Broker::new(options.limits, random as u32);
        for (topic, partitions) in &options.topics {
            if !broker.make(*topic, *partitions) {
                return Err(io::Error::other(format!("there is no room for the partitions of topic {topic}")));
            }
        }
        let shared = Arc::new(Shared {
            broker: Mutex::new(broker),
            news: Condvar::new(),
            wire: Mutex::new(Wire(publisher)),
            report: Mutex::default(),
            start: Instant::now(),
            stop: AtomicBool::new(false),
            clients: Mutex::new(Places::new(MAX_CLIENTS, MAX_OF_PEER)),
            budget: Budget::new(options.limits.on_the_way()),
            advertise: options.advertise.clone(),
        });
        opened()?;
        let (network, clients) = (shared.clone(), shared.clone());
        let threads = vec![
            thread::spawn(move || network.listen_to_network(subscriber)),
            thread::spawn(move || clients.listen_to_clients(&listener)),
        ];
        Ok(Server { shared, address, threads })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was counted so far; of the network, up to a second ago.
    pub fn report(&self) -> Report {
        Report { broker: lock(&self.shared.broker).counts(), ..lock(&self.shared.report).clone() }
    }

    /// The topics that there are now.
    pub fn topics(&self) -> Vec<Topic> {
        lock(&self.shared.broker).topics().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // The thread that waits for clients gets one. If it cannot be reached, it has ended.
        let reachable = match self.address.ip().is_unspecified() {
            true => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), self.address.port()),
            false => self.address,
        };
        let _ = TcpStream::connect_timeout(&reachable, Duration::from_secs(1));
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn listen_to_network(&self, mut subscriber: Subscriber) {
        let own = lock(&self.wire).0.id();
        let mut heartbeat = Duration::ZERO;
        while !self.stopped() {
            // What the kernel refuses now it may grant later; the wait is the time-out's.
            if subscriber.wait(TICK).is_err() {
                thread::sleep(TICK);
                continue;
            }
            let mut broker = lock(&self.broker);
            let count = subscriber.take(|message, _| {
                // The broker has its own already.
                if message.publisher != own {
                    broker.receive(message);
                }
            });
            drop(broker);
            if count > 0 {
                self.news.notify_all();
            }
            if self.now() >= heartbeat {
                heartbeat = self.now() + HEARTBEAT;
                let sent = lock(&self.wire).0.heartbeat();
                let mut report = lock(&self.report);
                report.network = subscriber.counts();
                report.not_sent += u64::from(matches!(sent, Err(PublishError::Io(_))));
            }
        }
        lock(&self.report).network = subscriber.counts();
    }

    fn listen_to_clients(self: &Arc<Shared>, listener: &TcpListener) {
        while !self.stopped() {
            let Ok((stream, from)) = listener.accept() else {
                thread::sleep(TICK);
                continue;
            };
            let Ok(handle) = stream.try_clone() else {
                lock(&self.report).too_many += 1;
                continue;
            };
            let entered = lock(&self.clients).enter(peer(from.ip()), self.now(), handle);
            let Ok((place, evicted)) = entered else {
                lock(&self.report).too_many += 1;
                continue;
            };
            if let Some(evicted) = evicted {
                lock(&self.report).made_room += 1;
                // Its thread finds that it is gone; it may be gone already.
                let _ = evicted.shutdown(Shutdown::Both);
            }
            let shared = self.clone();
            let serve = move || {
                if let Err(malformed) = shared.serve(&stream, place) {
                    *lock(&shared.report).malformed.entry(malformed).or_default() += 1;
                }
                lock(&shared.clients).leave(place);
                // The handle may live on in the report's stead.
                let _ = stream.shutdown(Shutdown::Both);
            };
            if thread::Builder::new().spawn(serve).is_err() {
                lock(&self.clients).leave(place);
                lock(&self.report).too_many += 1;
            }
        }
    }

    /// Answers a client until it goes, one request after the other.
    fn serve(&self, stream: &TcpStream, place: u64) -> Result<(), Malformed> {
        let prepared = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_write_timeout(Some(STUCK)))
            .and_then(|()| stream.local_addr());
        let Ok(own) = prepared else { return Ok(()) };
        let address = self.advertise.clone().unwrap_or_else(|| (own.ip().to_string(), own.port()));
        let mut reader = BufReader::with_capacity(SMALL, stream);
        let (mut frame, mut out, mut wait) = (Vec::new(), Vec::new(), OPENING);
        while !self.stopped()
            && let Some(length) = read_length(&mut reader, wait)?
        {
            let Some(_held) = self.budget.take(length, STUCK) else {
                lock(&self.report).no_memory += 1;
                break;
            };
            if !read_frame(&mut reader, length, &mut frame) {
                break;
            }
            let request = Request::read(&frame)?;
            lock(&self.clients).begin(place);
            let (response, _held_too) = self.answer(&address, &request);
            out.clear();
            if let Some(response) = response {
                response.write(&request, &mut out);
            }
            let mut writer = stream;
            if writer.write_all(&out).is_err() {
                break;
            }
            lock(&self.clients).end(place, self.now());
            // An idle client keeps no more than a small request needs.
            frame.clear();
            frame.shrink_to(SMALL);
            out.clear();
            out.shrink_to(SMALL);
            wait = IDLE;
        }
        Ok(())
    }

    /// The answer to a request, with the memory that it has.
    fn answer(&self, address: &(String, u16), request: &Request<'_>) -> (Option<Response>, Option<Hold<'_>>) {
        let mut held = None;
        let answer = match request.body {
            Body::Produce { .. } => {
                let mut wire = lock(&self.wire);
                let answer = lock(&self.broker).handle(self.now(), address, request, &mut *wire);
                if wire.0.flush().is_err() {
                    lock(&self.report).not_sent += 1;
                }
                answer
            }
            _ => {
                let mut broker = lock(&self.broker);
                held = self.room(&mut broker, matches!(request.body, Body::Fetch { .. }));
                broker.handle(self.now(), address, request, &mut NoNetwork)
            }
        };
        if !matches!(request.body, Body::Fetch { .. } | Body::Heartbeat(_)) {
            self.news.notify_all();
        }
        let (response, mut held) = match answer {
            Answer::Now(response) => (Some(response), held),
            Answer::Nothing => (None, None),
            Answer::Later(waiting) => {
                drop(held);
                self.wait(&waiting)
            }
        };
        if let (Some(response), Some(held)) = (&response, &mut held) {
            held.shrink(2 * response.record_bytes());
        }
        (response, held)
    }

    /// Memory for the records of an answer, which are there twice: as they are kept, and as they are written.
    fn room(&self, broker: &mut Broker, has_records: bool) -> Option<Hold<'_>> {
        let held = has_records.then(|| self.budget.take_up_to(2 * MAX_FETCH))?;
        broker.set_room(held.bytes() / 2);
        Some(held)
    }

    fn wait(&self, waiting: &Waiting) -> (Option<Response>, Option<Hold<'_>>) {
        let mut broker = lock(&self.broker);
        while !self.stopped() {
            let now = self.now();
            let held = self.room(&mut broker, waiting.deadline().is_some());
            if let Some(response) = broker.poll(now, waiting) {
                return (Some(response), held);
            }
            drop(held);
            let left = waiting.deadline().map_or(TICK, |deadline| deadline.saturating_sub(now)).min(TICK);
            broker = self.news.wait_timeout(broker, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        (None, None)
    }
}

/// Reads the length of the next frame, which is to begin in time. `None`: the client has gone.
fn read_length(reader: &mut BufReader<&TcpStream>, wait: Duration) -> Result<Option<usize>, Malformed> {
    let mut length = [0; 4];
    // Time runs until the first byte; then there is less of it.
    if reader.get_ref().set_read_timeout(Some(wait)).is_err() || reader.fill_buf().is_ok_and(<[u8]>::is_empty) {
        return Ok(None);
    }
    if (Timely { reader, deadline: Instant::now() + STUCK }).read_exact(&mut length).is_err() {
        return Ok(None);
    }
    let length = usize::try_from(i32::from_be_bytes(length)).map_err(|_| Malformed::NegativeLength)?;
    match length {
        0..MIN_REQUEST => Err(Malformed::Short),
        MIN_REQUEST..=MAX_REQUEST => Ok(Some(length)),
        _ => Err(Malformed::TooLarge),
    }
}

/// Reads a frame. Gives `false` if the client has gone, or takes too long.
fn read_frame(reader: &mut BufReader<&TcpStream>, length: usize, frame: &mut Vec<u8>) -> bool {
    frame.clear();
    // It grows by what comes, not by what is promised.
    let timely = Timely { reader, deadline: Instant::now() + STUCK };
    timely.take(length as u64).read_to_end(frame).is_ok_and(|read| read == length)
}

/// Reads until a time, however little comes at once.
struct Timely<'a, 'b> {
    reader: &'a mut BufReader<&'b TcpStream>,
    deadline: Instant,
}

impl Read for Timely<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.reader.buffer().is_empty() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            // No time at all would mean for ever.
            self.reader.get_ref().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        self.reader.read(bytes)
    }
}
