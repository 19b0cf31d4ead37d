//! A connection joined with descriptors: what can be read there is written to the connection, what the connection delivers is written
//! there. Nothing is taken that can't be passed on, in either direction.

use super::Calls;
use super::readiness::{Readiness, Want, Watched};
use crate::system::{may_wait, set_option, shut_down_writing};
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use weftwire_core::{Endpoints, FlowId, Time};

/// Bytes read or written at once.
const CHUNK: usize = 64 * 1024;

/// As many bytes as a pipe or terminal that is ready takes without waiting (POSIX's `PIPE_BUF`), where that can't be tried.
const CAUTIOUS_CHUNK: usize = 4_096;

/// Most bytes that are held for a slow reader. Machines with a receive buffer keep far below it: they deliver no more than that has
/// room for until they are told what was read.
const MOST_HELD: usize = 64 << 20;

/// The state of a machine in which both directions have ended, and it only waits for stragglers.
const LINGERING: &str = "time_wait";

/// How a connection ended.
#[derive(Debug)]
pub enum Outcome {
    /// Both directions have ended, and everything was passed on.
    Closed,
    /// The other end does not want the connection: notice `refused`.
    Refused,
    /// The other end, or something on the way, has broken it off: notice `reset`.
    Reset,
    /// Something on the way says that the other end can't be reached: notice `unreachable`, with a connection that is not open.
    Unreachable,
    /// The other end does not answer: notices `timed_out` and `failed`.
    TimedOut,
    /// It could not be opened within the time that there was for that.
    NotOpened,
    /// It ended before both directions had, without a word.
    Lost,
    /// It was broken off, as its bytes could not be read or written on this side.
    Broken(io::Error),
    /// It was broken off, as the run was asked to stop.
    Stopped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Closed => f.write_str("closed"),
            Outcome::Refused => f.write_str("refused: nobody listens there, or a filter on the way says so"),
            Outcome::Reset => f.write_str("reset by the other end"),
            Outcome::Unreachable => f.write_str("unreachable: something on the way says that there is no way there"),
            Outcome::TimedOut => f.write_str("timed out: the other end does not answer"),
            Outcome::NotOpened => f.write_str("timed out: the other end has not answered in the time given"),
            Outcome::Lost => f.write_str("lost: it ended before both directions had"),
            Outcome::Broken(error) => error.fmt(f),
            Outcome::Stopped => f.write_str("interrupted"),
        }
    }
}

/// How many bytes a connection has carried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Bytes read on this side and handed to the connection.
    pub sent: u64,
    /// Those of them that were not acknowledged.
    pub unacknowledged: u64,
    /// Bytes that the connection delivered and that were written on this side.
    pub received: u64,
    /// Bytes that it delivered and that were not.
    pub unwritten: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { sent, unacknowledged, received, unwritten } = self;
        write!(
            f,
            "{sent} bytes sent, of which {unacknowledged} were not acknowledged; {received} received and written"
        )?;
        if *unwritten > 0 { write!(f, ", {unwritten} received and not written") } else { Ok(()) }
    }
}

/// What a connection is joined with: where its bytes come from, and where they go.
#[derive(Debug)]
pub struct End {
    input: File,
    output: File,
    kind: Kind,
    /// The kernel still connects it.
    connecting: bool,
    tag: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Files, pipes, terminals: they are used by others too, and stay as they are.
    Files,
    /// A socket of this process.
    Local,
    /// A connection of the kernel: it is reset when the connection breaks off.
    Tcp,
}

impl End {
    /// Reads from one file and writes to another.
    pub fn files(input: File, output: File) -> End {
        End { input, output, kind: Kind::Files, connecting: false, tag: 0 }
    }

    /// A socket within this machine.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn local(socket: UnixStream) -> io::Result<End> {
        socket.set_nonblocking(true)?;
        End::socket(socket.into(), Kind::Local, false)
    }

    /// A connection of the kernel's TCP.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn tcp(socket: TcpStream) -> io::Result<End> {
        socket.set_nonblocking(true)?;
        // What is small goes at once: the other end of the connection decides how it is put together.
        socket.set_nodelay(true)?;
        ask_after_silence(socket.as_fd())?;
        End::socket(socket.into(), Kind::Tcp, false)
    }

    /// A socket of the kernel's TCP that does not block and still connects.
    pub(super) fn connecting(socket: OwnedFd) -> io::Result<End> {
        ask_after_silence(socket.as_fd())?;
        End::socket(socket, Kind::Tcp, true)
    }

    fn socket(socket: OwnedFd, kind: Kind, connecting: bool) -> io::Result<End> {
        Ok(End { output: socket.try_clone()?.into(), input: socket.into(), kind, connecting, tag: 0 })
    }

    /// The same with a number, by which the side knows it again.
    #[must_use]
    pub fn tagged(self, tag: u64) -> End {
        End { tag, ..self }
    }

    /// That number.
    pub(super) fn tag(&self) -> u64 {
        self.tag
    }

    /// Breaks off a kernel's connection.
    pub(super) fn reset(self) {
        if self.kind == Kind::Tcp {
            reset_on_close(&self.output);
        }
    }
}

/// The kernel looks after the other end of an idle connection, as often as the system says (tcp(7), `tcp_keepalive_time`): one that has
/// gone without a word does not stay for ever.
fn ask_after_silence(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, &1_i32)
}

/// Closing the socket resets its connection (socket(7), `SO_LINGER`).
fn reset_on_close(socket: &File) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    // A socket that is no longer connected needs none.
    let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &at_once);
}

/// A direction, as the last bit of a token of [`Readiness`]; the flow is in those before.
const OUTPUT: u64 = 1;

/// The flow that a token belongs to.
pub(super) fn flow_of(token: u64) -> FlowId {
    FlowId(token >> 1)
}

/// A connection and, once it has one, its end.
pub(super) struct Joint {
    flow: FlowId,
    pub(super) endpoints: Option<Endpoints>,
    /// When it is given up, unless it is open by then.
    pub(super) opened_until: Option<Time>,
    attached: bool,
    pub(super) tag: u64,
    kind: Kind,
    connecting: bool,
    /// Writing may wait, and so is done in small pieces.
    cautious: bool,
    input: Option<Watched>,
    output: Option<Watched>,
    /// Room for [`CHUNK`] bytes from the first reading on, how many of them were read, and how many of those the flow has accepted.
    buffer: Vec<u8>,
    filled: usize,
    accepted: usize,
    /// The flow's buffer is full.
    blocked: bool,
    /// Bytes delivered that are not written yet.
    held: VecDeque<u8>,
    /// The other end is there.
    pub(super) established: bool,
    /// Something on the way says that the other end can't be reached. That may pass.
    pub(super) unreachable: bool,
    /// The other end sends no more.
    pub(super) finished: bool,
    /// The flow was told that nothing more comes,
    closed: bool,
    /// and that nobody reads what it delivers.
    abandoned: bool,
    /// The flow is gone.
    pub(super) gone: bool,
    pub(super) outcome: Option<Outcome>,
    totals: Totals,
}

/// What became of a joint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// There is more to do at once.
    More,
    /// Something has to happen first.
    Waits,
    /// Both directions have ended; the function still sees the other end off.
    Leaving,
    /// It is over.
    Over,
}

impl Joint {
    pub(super) fn new(flow: FlowId, endpoints: Option<Endpoints>) -> Joint {
        Joint {
            flow,
            endpoints,
            opened_until: None,
            attached: false,
            tag: 0,
            kind: Kind::Files,
            connecting: false,
            cautious: false,
            input: None,
            output: None,
            buffer: Vec::new(),
            filled: 0,
            accepted: 0,
            blocked: false,
            held: VecDeque::new(),
            established: false,
            unreachable: false,
            finished: false,
            closed: false,
            abandoned: false,
            gone: false,
            outcome: None,
            totals: Totals::default(),
        }
    }

    /// Gives it its end.
    pub(super) fn attach(&mut self, end: End, readiness: &Rc<Readiness>) {
        let End { input, output, kind, connecting, tag } = end;
        (self.attached, self.tag, self.kind, self.connecting) = (true, tag, kind, connecting);
        let token = self.flow.0 << 1;
        let watched = Watched::new(input, readiness, token)
            .and_then(|input| Ok((input, Watched::new(output, readiness, token | OUTPUT)?)));
        match watched {
            Ok((input, output)) => {
                self.cautious = kind == Kind::Files && !output.is_regular() && may_wait(output.file.as_fd());
                (self.input, self.output) = (Some(input), Some(output));
            }
            Err(error) => self.fail(Outcome::Broken(error)),
        }
    }

    /// A descriptor was told of.
    pub(super) fn set_ready(&mut self, token: u64, hung_up: bool) {
        let watched = if token & OUTPUT == 0 { &mut self.input } else { &mut self.output };
        if let Some(watched) = watched {
            watched.set_ready(hung_up);
        }
    }

    pub(super) fn deliver(&mut self, bytes: &[u8]) {
        if self.outcome.is_some() {
            self.totals.unwritten += bytes.len() as u64;
            return;
        }
        self.held.extend(bytes);
        if self.held.len() > MOST_HELD {
            let reason = "it delivers faster than its bytes are read, and its machine has no receive buffer that would hold it up";
            self.fail(Outcome::Broken(io::Error::other(reason)));
        }
    }

    pub(super) fn released(&mut self, length: usize) {
        self.totals.unacknowledged = self.totals.unacknowledged.saturating_sub(length as u64);
        self.blocked = false;
    }

    /// The flow is gone. Without a word it is well if everything was said before.
    pub(super) fn ended(&mut self) {
        self.gone = true;
        let well = match self.established {
            true => self.closed && (self.finished || self.abandoned),
            false => !self.unreachable && self.totals.unacknowledged == 0 && self.accepted == self.filled,
        };
        if well {
            (self.finished, self.closed) = (true, true);
            self.input = None;
        } else {
            self.fail(Outcome::Lost);
        }
    }

    /// It ends otherwise than both ends want. The first reason counts; of a connection that never was open, what was said on the way.
    pub(super) fn fail(&mut self, outcome: Outcome) {
        let unanswered = matches!(outcome, Outcome::TimedOut | Outcome::NotOpened | Outcome::Lost);
        let unreachable = unanswered && self.unreachable && !self.established;
        self.outcome.get_or_insert(if unreachable { Outcome::Unreachable } else { outcome });
    }

    /// Moves bytes in both directions, as far as that needs no waiting.
    pub(super) fn serve(&mut self, calls: &mut Calls<'_>, sees_off: bool) -> Served {
        let mut more = false;
        if self.outcome.is_none() {
            self.connected();
            more = self.write(calls) | self.read(calls);
            self.look_for_reader(calls);
        } else if self.kind != Kind::Tcp {
            // What came before the end is good.
            more = self.write(calls);
        }
        if self.outcome.is_some() {
            if !self.gone {
                calls.abort(self.flow);
                self.gone = true;
            }
            let waits = self.kind != Kind::Tcp && self.output.is_some() && !self.held.is_empty();
            return if !waits {
                Served::Over
            } else if more {
                Served::More
            } else {
                Served::Waits
            };
        }
        if !self.is_through() {
            return if more { Served::More } else { Served::Waits };
        }
        // A machine that tells nothing of its connections has no state either that tells when it is done.
        let seen_off = self.gone
            || !sees_off
            || !self.established
            || calls.state(self.flow).is_none_or(|state| state == LINGERING);
        if seen_off { Served::Over } else { Served::Leaving }
    }

    /// Both directions have ended, and everything was passed on.
    fn is_through(&self) -> bool {
        self.closed
            && self.finished
            && self.held.is_empty()
            && self.output.is_none()
            && (self.gone || self.totals.unacknowledged == 0)
    }

    /// Looks whether the kernel has connected the socket.
    fn connected(&mut self) {
        if !self.connecting {
            return;
        }
        let Some(output) = &mut self.output else { return };
        output.ask(Want::Output);
        if output.is_ready() {
            self.connecting = false;
            if let Some(error) = failure_of(&output.file) {
                self.fail(Outcome::Broken(error));
            }
        }
    }

    /// Writes what was delivered. Returns whether more could be.
    fn write(&mut self, calls: &mut Calls<'_>) -> bool {
        if self.connecting {
            return false;
        }
        let Some(output) = &mut self.output else { return false };
        if self.held.is_empty() {
            if self.finished {
                if self.kind != Kind::Files {
                    // If the socket is closed there is nothing left to shut down.
                    let _ = shut_down_writing(output.file.as_fd());
                }
                self.output = None;
            }
            return false;
        }
        if !output.is_ready() {
            output.ask(Want::Output);
            return false;
        }
        let most = if self.cautious { CAUTIOUS_CHUNK } else { CHUNK };
        let (front, _) = self.held.as_slices();
        let written = output.file.write(&front[..front.len().min(most)]);
        match written {
            Ok(count) => {
                self.held.drain(..count);
                self.totals.received += count as u64;
                calls.consumed(self.flow, count);
                if self.cautious {
                    output.set_used_up();
                    output.ask(Want::Output);
                }
                output.is_ready() && !self.held.is_empty() || self.finished && self.held.is_empty()
            }
            Err(error) if is_passing(&error) => {
                output.set_used_up();
                output.ask(Want::Output);
                false
            }
            Err(error) => {
                self.output = None;
                self.fail(Outcome::Broken(error));
                false
            }
        }
    }

    /// Reads bytes and hands them to the flow. Returns whether there may be more.
    fn read(&mut self, calls: &mut Calls<'_>) -> bool {
        if self.connecting || self.gone || self.outcome.is_some() {
            return false;
        }
        let Some(input) = &mut self.input else { return false };
        if self.blocked {
            // What is read could go nowhere; that the other side has broken off must not wait for that.
            input.ask(Want::News);
            if input.is_ready()
                && self.kind == Kind::Tcp
                && let Some(error) = failure_of(&input.file)
            {
                self.fail(Outcome::Broken(error));
            }
            return false;
        }
        if self.accepted == self.filled {
            if !input.is_ready() {
                input.ask(Want::Input);
                return false;
            }
            // What was read before stays behind what is read: that costs a short piece nothing.
            self.buffer.resize(CHUNK, 0);
            let read = input.file.read(&mut self.buffer);
            (self.accepted, self.filled) = (0, *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => {
                    self.input = None;
                    self.closed = true;
                    self.buffer = Vec::new();
                    calls.close(self.flow);
                    return false;
                }
                Ok(_) if self.kind == Kind::Files => input.set_used_up(),
                Ok(_) => {}
                Err(error) if is_passing(&error) => {
                    input.set_used_up();
                    input.ask(Want::Input);
                    return false;
                }
                Err(error) => {
                    self.fail(Outcome::Broken(error));
                    return false;
                }
            }
        }
        match calls.write(self.flow, &self.buffer[self.accepted..self.filled]) {
            Ok(count) => {
                self.accepted += count;
                self.totals.sent += count as u64;
                self.totals.unacknowledged += count as u64;
                self.blocked = self.accepted < self.filled;
                true
            }
            // That it ended is told right behind.
            Err(_) => false,
        }
    }

    /// Where nothing more is sent, the end of the other side is waited for as long as somebody would read what comes.
    fn look_for_reader(&mut self, calls: &mut Calls<'_>) {
        let waits = self.closed && !self.finished && !self.abandoned && self.held.is_empty() && self.outcome.is_none();
        let Some(output) = self.output.as_mut().filter(|_| waits) else { return };
        if !output.has_hung_up() {
            return;
        }
        if self.kind == Kind::Tcp {
            // Of a kernel's connection that is half closed, only a reset hangs up.
            let error = failure_of(&output.file).unwrap_or_else(|| ErrorKind::ConnectionReset.into());
            self.fail(Outcome::Broken(error));
        } else {
            self.abandoned = true;
            calls.abandon(self.flow);
        }
    }

    /// How it ended, and its totals. A kernel's connection that was not closed well is reset when this is dropped.
    pub(super) fn end(&mut self) -> (Outcome, Totals) {
        self.totals.unwritten += self.held.len() as u64;
        let outcome = self.outcome.take().unwrap_or(Outcome::Closed);
        if self.kind == Kind::Tcp && !matches!(outcome, Outcome::Closed) {
            for socket in [&self.input, &self.output].into_iter().flatten() {
                reset_on_close(&socket.file);
            }
        }
        (outcome, self.totals)
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }
}

/// Why the kernel's connection has failed, if it has.
fn failure_of(socket: &File) -> Option<io::Error> {
    let socket = socket.as_fd().try_clone_to_owned().map(TcpStream::from);
    socket.and_then(|socket| socket.take_error()).unwrap_or_else(Some)
}

/// Whether an error goes by.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
