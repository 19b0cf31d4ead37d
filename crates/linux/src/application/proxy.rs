//! Connections of a function on one side, the kernel's TCP on the other: `weft proxy`.

use super::joint::{End, Outcome, Totals};
use super::joints::{Side, Wanted};
use crate::error::LinuxError;
use crate::socket_address::begin_connect;
use crate::system::allow_descriptors;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use weftwire_core::{CallError, Endpoints, Listen};

/// Descriptors of a connection: one to read, one to write.
const DESCRIPTORS: usize = 2;
/// Descriptors that the rest of a run needs, generously.
const OTHERS: usize = 100;

/// Who opens connections.
#[derive(Debug)]
pub enum ProxySide {
    /// The kernel's clients: for each of their connections the function opens one.
    Kernel(TcpListener, Endpoints),
    /// Clients of the function, which listens there: for each of their connections the kernel opens one.
    Function(Listen, SocketAddr),
}

/// Joins each connection of the function with one of the kernel's TCP.
#[derive(Debug)]
pub struct Proxy {
    side: ProxySide,
    most: usize,
    /// Connections of the kernel's clients that have no flow yet.
    accepted: VecDeque<End>,
    summary: ProxySummary,
}

/// What a proxy has done. Its `Display` is for people.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProxySummary {
    /// Connections that it has taken.
    pub connections: u64,
    /// Those that ended well.
    pub closed: u64,
    /// Those that the other side did not want.
    pub refused: u64,
    /// Those that were reset, by either side.
    pub reset: u64,
    /// Those that failed otherwise: nobody answered, or an error.
    pub failed: u64,
    /// Those that were broken off when the proxy was stopped.
    pub stopped: u64,
    /// Connections that were not taken, as there were as many as there may be.
    pub too_many: u64,
    /// Bytes from the kernel's TCP to the function.
    pub sent: u64,
    /// Bytes from the function to the kernel's TCP.
    pub received: u64,
}

impl fmt::Display for ProxySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProxySummary { connections, closed, refused, reset, failed, stopped, too_many, sent, received } = self;
        writeln!(
            f,
            "{connections} connections: {closed} closed, {refused} refused, {reset} reset, {failed} failed, {stopped} \
             broken off at the end; {too_many} more not taken"
        )?;
        writeln!(f, "{sent} bytes from the kernel's TCP, {received} bytes to it")
    }
}

impl Proxy {
    /// A proxy for at most so many connections at once.
    ///
    /// # Errors
    /// The process may not have as many descriptors as that takes.
    pub fn new(side: ProxySide, most: usize) -> Result<Proxy, LinuxError> {
        let needed = most.saturating_mul(DESCRIPTORS).saturating_add(OTHERS);
        let allowed = allow_descriptors(needed).map_err(|error| LinuxError::system("ask for descriptors", error))?;
        if allowed < needed {
            return Err(LinuxError::TooFewDescriptors { connections: most, needed, allowed });
        }
        if let ProxySide::Kernel(listener, _) = &side {
            listener.set_nonblocking(true).map_err(|error| LinuxError::system("listen", error))?;
        }
        Ok(Proxy { side, most, accepted: VecDeque::new(), summary: ProxySummary::default() })
    }

    /// What it has done.
    pub fn summary(&self) -> &ProxySummary {
        &self.summary
    }

    /// Whether there is room for one more.
    fn has_room(&mut self, connections: usize) -> bool {
        let room = connections < self.most;
        self.summary.too_many += u64::from(!room);
        room
    }
}

impl Side for Proxy {
    const SEES_OFF: bool = false;

    fn listens(&self) -> Vec<Listen> {
        match &self.side {
            ProxySide::Kernel(..) => Vec::new(),
            ProxySide::Function(listen, _) => vec![*listen],
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.side {
            ProxySide::Kernel(listener, _) => Some(listener.as_fd()),
            ProxySide::Function(..) => None,
        }
    }

    fn attend(&mut self, connections: usize) {
        loop {
            let ProxySide::Kernel(listener, _) = &self.side else { return };
            let end = match listener.accept() {
                Ok((socket, _)) => End::tcp(socket),
                // It was there, and has gone.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => continue,
                Err(_) => return,
            };
            let room = self.has_room(connections + self.accepted.len());
            match end {
                Ok(end) if room => self.accepted.push_back(end),
                Ok(end) => end.reset(),
                Err(_) => {}
            }
        }
    }

    fn wants(&self) -> bool {
        !self.accepted.is_empty()
    }

    fn next_wanted(&mut self) -> Option<Wanted> {
        let ProxySide::Kernel(_, endpoints) = &self.side else { return None };
        let end = self.accepted.pop_front()?;
        self.summary.connections += 1;
        Some(Wanted { endpoints: *endpoints, within: None, end })
    }

    fn refused(&mut self, wanted: Wanted, error: CallError) -> Result<(), LinuxError> {
        match error {
            // There may be room later.
            CallError::Exists(_) | CallError::TableFull => {
                self.summary.failed += 1;
                wanted.end.reset();
                Ok(())
            }
            error => Err(error.into()),
        }
    }

    fn takes(&mut self, connections: usize, _: usize) -> bool {
        self.has_room(connections)
    }

    fn end_for(&mut self, _: Option<&Endpoints>) -> io::Result<Option<End>> {
        let ProxySide::Function(_, to) = &self.side else { return Ok(None) };
        self.summary.connections += 1;
        End::connecting(begin_connect(*to)?).map(Some)
    }

    fn over(&mut self, _: u64, _: Option<Endpoints>, outcome: Outcome, totals: Totals) {
        let summary = &mut self.summary;
        let count = match &outcome {
            Outcome::Closed => &mut summary.closed,
            Outcome::Refused => &mut summary.refused,
            Outcome::Reset => &mut summary.reset,
            Outcome::Broken(error) => match error.kind() {
                ErrorKind::ConnectionRefused => &mut summary.refused,
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => &mut summary.reset,
                _ => &mut summary.failed,
            },
            Outcome::Unreachable | Outcome::TimedOut | Outcome::NotOpened | Outcome::Lost => &mut summary.failed,
            Outcome::Stopped => &mut summary.stopped,
        };
        *count += 1;
        summary.sent += totals.sent;
        summary.received += totals.received;
    }

    fn is_over(&self) -> bool {
        false
    }
}
