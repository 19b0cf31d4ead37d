//! The predecessor's side.

use super::agreement::{OldStep, PATIENCE, Predecessor};
use super::descriptors::{Inbox, Kind, put, send};
use super::word::SharedWord;
use super::{Passed, Stopped};
use crate::system::{monotonic_ns, poll, poll_input};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weftwire_core::Port;

/// Bytes that are written at once.
const CHUNK: usize = 256 * 1024;

/// A run that is offered to a successor.
pub(crate) struct Offer {
    stream: UnixStream,
    word: SharedWord,
    state: Predecessor,
    inbox: Inbox,
    /// Why the successor went, if it said so.
    reason: Option<String>,
}

/// What the successor wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Looked {
    /// Nothing.
    Nothing,
    /// The descriptors.
    Begin,
    /// That the run stops: it is ready.
    Ready,
    /// It is gone, or was refused.
    Over,
}

impl Offer {
    /// Offers the run to the process at the other end.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Offer> {
        stream.set_nonblocking(true)?;
        let (state, inbox) = (Predecessor::Running, Inbox::default());
        Ok(Offer { stream, word: SharedWord::new()?, state, inbox, reason: None })
    }

    /// Readable when the successor wants something.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Why it is over, if the successor said so.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Looks what the successor wants, without waiting.
    pub(crate) fn look(&mut self) -> Looked {
        match self.hear() {
            Ok(Some((Kind::Begin, _))) => Looked::Begin,
            Ok(Some((Kind::Ready, _))) if self.state.ready(monotonic_ns()) == OldStep::SendFlows => Looked::Ready,
            Ok(None) => Looked::Nothing,
            Ok(Some(_)) | Err(_) => {
                self.state.give_up(&self.word);
                Looked::Over
            }
        }
    }

    /// Hands over copies of the descriptors. This process goes on using its own.
    pub(crate) fn send_descriptors(
        &self,
        listener: BorrowedFd<'_>,
        ports: &[(Port, BorrowedFd<'_>)],
        lock: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let passed = Passed { ports: ports.iter().map(|(port, _)| *port).collect(), lock: lock.is_some() };
        let all: Vec<_> = [self.word.descriptor(), listener]
            .into_iter()
            .chain(ports.iter().map(|(_, descriptor)| *descriptor))
            .chain(lock)
            .collect();
        send(&self.stream, Kind::Descriptors, &serde_json::to_vec(&passed)?, &all)
    }

    /// Sends where the run has stopped and its flows, which `flows` puts out one by one, and waits until it is clear who owns the ports.
    /// Whether it is the successor: then this process must not touch them any more.
    pub(crate) fn conclude(
        &mut self,
        stopped: &Stopped,
        flows: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> bool {
        let step = match self.send_flows(stopped, flows) {
            Ok(()) => {
                self.state.sent(monotonic_ns());
                self.wait()
            }
            Err(error) => {
                self.reason.get_or_insert_with(|| format!("its flows could not be sent: {error}"));
                self.state.give_up(&self.word)
            }
        };
        step == OldStep::End
    }

    fn send_flows(
        &mut self,
        stopped: &Stopped,
        flows: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(Duration::from_nanos(PATIENCE.unsigned_abs())))?;
        let (mut out, stream) = (Vec::new(), &mut &self.stream);
        put(&mut out, Kind::Stopped, &serde_json::to_vec(stopped)?);
        flows(&mut |state| {
            put(&mut out, Kind::Flow, state);
            if out.len() >= CHUNK {
                stream.write_all(&out)?;
                out.clear();
            }
            Ok(())
        })?;
        put(&mut out, Kind::Last, b"");
        self.stream.write_all(&out)?;
        self.stream.set_nonblocking(true)
    }

    /// Waits until the ports are somebody's, which is not for long.
    fn wait(&mut self) -> OldStep {
        loop {
            let step = match self.hear() {
                Ok(Some((Kind::Adopted, _))) => self.state.adopted(&self.word, monotonic_ns()),
                Ok(Some((Kind::Taken, _))) => self.state.look(&self.word, monotonic_ns()),
                Ok(Some(_)) | Err(_) => self.state.give_up(&self.word),
                Ok(None) => self.state.look(&self.word, monotonic_ns()),
            };
            match step {
                OldStep::Resume | OldStep::End => return step,
                // The successor sees the word in any case; the message wakes it.
                OldStep::SendGo => drop(send(&self.stream, Kind::Go, b"", &[])),
                OldStep::Wait | OldStep::SendFlows => {
                    let mut ready = [poll_input(self.stream.as_fd())];
                    let (Predecessor::Stopped(since) | Predecessor::Going(since)) = self.state else {
                        return self.state.give_up(&self.word);
                    };
                    let left = (since + PATIENCE - monotonic_ns()).max(0);
                    if poll(&mut ready, Some(Duration::from_nanos(left.unsigned_abs()))).is_err() {
                        return self.state.give_up(&self.word);
                    }
                }
            }
        }
    }

    /// The next message, if one is here.
    fn hear(&mut self) -> io::Result<Option<(Kind, Vec<u8>)>> {
        loop {
            if let Some((kind, bytes)) = self.inbox.next()? {
                if kind == Kind::Refused {
                    self.reason = Some(String::from_utf8_lossy(&bytes).into_owned());
                }
                return Ok(Some((kind, bytes)));
            }
            match self.inbox.receive(&self.stream) {
                Ok(true) => {}
                Ok(false) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A run that ends by itself takes its offer back; only one that dies leaves it open.
impl Drop for Offer {
    fn drop(&mut self) {
        self.state.give_up(&self.word);
    }
}
