//! Connections as sockets of this process: what a [`crate::transport::Transport`] is on the run loop's thread.

use super::joint::{End, Outcome, Totals};
use super::joints::{Side, Wanted};
use crate::error::LinuxError;
use crate::system::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weftwire_core::{CallError, Endpoints, Listen};

/// Most connections of a listener that wait to be accepted.
pub(crate) const BACKLOG: usize = 128;

/// Why a connection has ended, if not well: told before its socket is closed.
pub(crate) type Ending = Arc<OnceLock<(ErrorKind, String)>>;

/// A connection for the other thread.
pub(crate) type Open = (UnixStream, Ending, Endpoints);

/// What other threads want.
pub(crate) enum Request {
    /// A connection, within that time.
    Connect(Endpoints, Option<Duration>, Sender<io::Result<Open>>),
    /// The connections that others open to this end.
    Listen(Listen, SyncSender<Open>),
    /// No more, but what is open goes on.
    Finish,
}

/// The side of those who make requests.
pub(crate) struct Sockets {
    requests: Receiver<Request>,
    waker: Arc<Waker>,
    /// To be opened.
    wanted: VecDeque<Wanted>,
    /// Being opened, by tag: who waits for it.
    opening: BTreeMap<u64, (UnixStream, Sender<io::Result<Open>>)>,
    listeners: Vec<(Listen, SyncSender<Open>)>,
    /// How many of the listeners the function knows of.
    told: usize,
    endings: BTreeMap<u64, Ending>,
    next_tag: u64,
    finishes: bool,
    /// Nobody can make requests any more.
    alone: bool,
}

impl Sockets {
    pub(crate) fn new(requests: Receiver<Request>, waker: Arc<Waker>) -> Sockets {
        Sockets {
            requests,
            waker,
            wanted: VecDeque::new(),
            opening: BTreeMap::new(),
            listeners: Vec::new(),
            told: 0,
            endings: BTreeMap::new(),
            next_tag: 1,
            finishes: false,
            alone: false,
        }
    }

    /// A new pair of sockets: the end of a connection, and what the other thread gets.
    fn pair(&mut self) -> io::Result<(u64, End, UnixStream)> {
        let tag = self.next_tag;
        self.next_tag += 1;
        let (own, other) = UnixStream::pair()?;
        let end = End::local(own)?.tagged(tag);
        self.endings.insert(tag, Ending::default());
        Ok((tag, end, other))
    }

    fn connect(&mut self, endpoints: Endpoints, within: Option<Duration>, answer: Sender<io::Result<Open>>) {
        match self.pair() {
            Ok((tag, end, other)) => {
                self.opening.insert(tag, (other, answer));
                self.wanted.push_back(Wanted { endpoints, within, end });
            }
            // Who does not wait any more does not want to know; so below.
            Err(error) => drop(answer.send(Err(error))),
        }
    }
}

impl Side for Sockets {
    const SEES_OFF: bool = true;

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.waker.descriptor())
    }

    fn attend(&mut self, _: usize) {
        self.waker.reset();
        loop {
            match self.requests.try_recv() {
                Ok(Request::Connect(endpoints, within, answer)) => self.connect(endpoints, within, answer),
                Ok(Request::Listen(local, accepted)) => self.listeners.push((local, accepted)),
                Ok(Request::Finish) => {
                    self.finishes = true;
                    self.listeners.clear();
                    return;
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.alone = true;
                    return;
                }
            }
        }
    }

    fn next_listen(&mut self) -> Option<Listen> {
        let (local, _) = self.listeners.get(self.told)?;
        self.told += 1;
        Some(*local)
    }

    fn breaks_off(&self) -> bool {
        self.alone && !self.finishes
    }

    fn wants(&self) -> bool {
        !self.wanted.is_empty()
    }

    fn next_wanted(&mut self) -> Option<Wanted> {
        self.wanted.pop_front()
    }

    fn refused(&mut self, wanted: Wanted, error: CallError) -> Result<(), LinuxError> {
        self.endings.remove(&wanted.end.tag());
        if let Some((_, answer)) = self.opening.remove(&wanted.end.tag()) {
            let _ = answer.send(Err(io::Error::other(error)));
        }
        Ok(())
    }

    fn takes(&mut self, _: usize, without_end: usize) -> bool {
        !self.listeners.is_empty() && without_end < BACKLOG
    }

    fn end_for(&mut self, endpoints: Option<&Endpoints>) -> io::Result<Option<End>> {
        let gone = || io::Error::new(ErrorKind::ConnectionRefused, "nobody listens any more");
        let endpoints = *endpoints.ok_or_else(gone)?;
        let matches = |local: &Listen| {
            local.address.is_none_or(|address| address == endpoints.local_address)
                && local.port.is_none_or(|port| port == endpoints.local_port)
        };
        let at = self.listeners.iter().position(|(local, _)| matches(local)).ok_or_else(gone)?;
        let (tag, end, other) = self.pair()?;
        let ending = self.endings.get(&tag).cloned().unwrap_or_default();
        match self.listeners[at].1.try_send((other, ending, endpoints)) {
            Ok(()) => Ok(Some(end)),
            Err(_) => {
                self.endings.remove(&tag);
                Err(gone())
            }
        }
    }

    fn established(&mut self, tag: u64, endpoints: Option<Endpoints>) {
        let Some(((other, answer), endpoints)) = self.opening.remove(&tag).zip(endpoints) else { return };
        let ending = self.endings.get(&tag).cloned().unwrap_or_default();
        let _ = answer.send(Ok((other, ending, endpoints)));
    }

    fn over(&mut self, tag: u64, _: Option<Endpoints>, outcome: Outcome, _: Totals) {
        let ending = self.endings.remove(&tag);
        let kind = match &outcome {
            Outcome::Closed => return,
            Outcome::Refused => ErrorKind::ConnectionRefused,
            Outcome::Unreachable => ErrorKind::HostUnreachable,
            Outcome::Reset => ErrorKind::ConnectionReset,
            Outcome::TimedOut | Outcome::NotOpened => ErrorKind::TimedOut,
            Outcome::Lost | Outcome::Broken(_) | Outcome::Stopped => ErrorKind::ConnectionAborted,
        };
        if let Some((_, answer)) = self.opening.remove(&tag) {
            let _ = answer.send(Err(io::Error::new(kind, outcome.to_string())));
        } else if let Some(ending) = ending {
            let _ = ending.set((kind, outcome.to_string()));
        }
    }

    fn is_over(&self) -> bool {
        self.alone || self.finishes && self.wanted.is_empty()
    }
}

/// Whatever ends the run: what is still open has not ended well, and is told so before its socket is closed ([`super::Joints`] drops the side
/// first).
impl Drop for Sockets {
    fn drop(&mut self) {
        for ending in self.endings.values() {
            let _ = ending.set((ErrorKind::ConnectionAborted, "the transport has ended".into()));
        }
    }
}
