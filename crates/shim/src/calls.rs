//! What each call does.

use crate::connection::{Connection, Owner, Phase};
use crate::socket::{Listener, Role, Socket, Stream};
use crate::{Answer, Call, Errno, Family, Fd, Host, Patience, Side};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use weftwire_core::{FlowId, Listen, ORPHAN};

/// Ephemeral ports (RFC 6335, section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Most connections that may wait to be accepted.
const MOST_WAITING: usize = 4_096;

impl Host {
    /// A socket.
    pub fn socket(&mut self, family: Family) -> Fd {
        self.add(Socket::new(family, Role::Fresh))
    }

    /// A socket that watches others (`epoll_create`).
    pub fn watcher(&mut self) -> Fd {
        self.add(Socket::new(Family::V4, Role::Watching(BTreeMap::new())))
    }

    /// Binds a socket to an address; port 0 is any.
    ///
    /// # Errors
    /// [`Errno::Invalid`]: it is bound already; [`Errno::AddressFamily`]; [`Errno::AddressNotAvailable`]: the address is not of
    /// this host; [`Errno::AddressInUse`].
    pub fn bind(&mut self, fd: Fd, local: SocketAddr) -> Result<(), Errno> {
        let socket = self.socket_of(fd)?;
        if socket.local.is_some() || !matches!(socket.role, Role::Fresh) {
            return Err(Errno::Invalid);
        }
        let mut local = canonical(socket, local)?;
        if !local.ip().is_unspecified() && !self.setup.has(local.ip()) {
            return Err(Errno::AddressNotAvailable);
        }
        if local.port() == 0 {
            local.set_port(self.free_port(fd, local, None).ok_or(Errno::AddressInUse)?);
        } else if self.is_taken(fd, local) {
            return Err(Errno::AddressInUse);
        }
        self.socket_of_mut(fd)?.local = Some(local);
        Ok(())
    }

    /// Has a socket wait for connections. Of those that nobody has accepted, `backlog` and one more may wait; further ones are not
    /// answered.
    ///
    /// # Errors
    /// [`Errno::Invalid`]: it is connected; [`Errno::AddressInUse`]: another one listens there; [`Errno::NoRoom`].
    pub fn listen(&mut self, fd: Fd, backlog: i32) -> Result<(), Errno> {
        let backlog = usize::try_from(backlog).unwrap_or(0).min(MOST_WAITING);
        let socket = self.socket_of_mut(fd)?;
        match &mut socket.role {
            Role::Listening(listener) => {
                listener.backlog = backlog;
                return Ok(());
            }
            Role::Fresh => {}
            Role::Connected(_) | Role::Watching(_) => return Err(Errno::Invalid),
        }
        if socket.local.is_none() {
            let any = SocketAddr::new(socket.family.any(), 0);
            self.bind(fd, any)?;
        }
        let socket = self.socket_of(fd)?;
        let local = socket.local.ok_or(Errno::Invalid)?;
        let listens = |(other, it): (&Fd, &Socket)| {
            *other != fd && matches!(it.role, Role::Listening(_)) && it.local.is_some_and(|at| overlap(at, local))
        };
        if self.sockets.iter().any(listens) {
            return Err(Errno::AddressInUse);
        }
        for address in self.named_by(socket, local) {
            let listen = Listen { address, port: Some(local.port()) };
            self.machine_call(|connections, now, outbox| connections.listen(now, &listen, outbox))
                .map_err(|_| Errno::NoRoom)?;
        }
        self.socket_of_mut(fd)?.role = Role::Listening(Listener { backlog, ..Listener::default() });
        Ok(())
    }

    /// The addresses that connections to a bound socket have; `None` is any.
    fn named_by(&self, socket: &Socket, local: SocketAddr) -> Vec<Option<std::net::IpAddr>> {
        if !local.ip().is_unspecified() {
            return vec![Some(local.ip())];
        }
        if self.setup.addresses.is_empty() {
            return vec![None];
        }
        let own = self.setup.addresses.iter().copied();
        own.filter(|own| socket.is_bound_to(SocketAddr::new(*own, local.port()))).map(Some).collect()
    }

    /// Says that nothing more will be read, or written. What was written before still goes out.
    ///
    /// # Errors
    /// [`Errno::NotConnected`].
    pub fn shutdown(&mut self, fd: Fd, side: Side) -> Result<(), Errno> {
        if matches!(self.socket_of(fd)?.role, Role::Listening(_)) && side != Side::Write {
            self.stop_listening(fd);
            self.settle();
            return Ok(());
        }
        let stream = self.socket_of_mut(fd)?.stream_mut()?;
        let (flow, was_shut) = (stream.flow, stream.write_shut);
        stream.read_shut |= side != Side::Write;
        stream.write_shut |= side != Side::Read;
        if side != Side::Read && !was_shut {
            if self.connection(flow).is_none_or(|connection| connection.phase == Phase::Ended) {
                return Err(Errno::NotConnected);
            }
            // A call at the very end of the connection finds nothing to close.
            let _ = self.machine_call(|connections, now, outbox| connections.close(now, flow, outbox));
        }
        self.settle();
        Ok(())
    }

    /// Gives a socket up. Its connection is closed behind what was written; if it is not open yet, if something that has arrived was
    /// not read, or if `SO_LINGER` says so with no time, it is reset.
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`].
    pub fn close(&mut self, fd: Fd) -> Result<(), Errno> {
        if matches!(self.socket_of(fd)?.role, Role::Listening(_)) {
            self.stop_listening(fd);
        }
        let socket = self.sockets.remove(&fd).ok_or(Errno::BadDescriptor)?;
        for other in self.sockets.values_mut() {
            if let Role::Watching(watches) = &mut other.role {
                watches.remove(&fd);
            }
        }
        if let Role::Connected(stream) = &socket.role {
            self.let_go(stream, socket.settings.reset_on_close);
        }
        self.settle();
        Ok(())
    }

    fn let_go(&mut self, stream: &Stream, reset: bool) {
        let flow = stream.flow;
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.owner = Owner::Nobody;
        if connection.phase == Phase::Ended {
            self.connections.remove(&flow);
        } else if reset || connection.phase == Phase::Opening || !connection.received.is_empty() {
            self.abort(flow);
        } else {
            if self.machine.initial(ORPHAN).is_some() {
                self.set_register(flow, ORPHAN, 1);
            }
            // That it was closed for sending before is no matter.
            let _ = self.machine_call(|connections, now, outbox| connections.close(now, flow, outbox));
        }
    }

    /// Connections come to this socket no more, and those that nobody has accepted are reset.
    fn stop_listening(&mut self, fd: Fd) {
        let Ok(socket) = self.socket_of(fd) else { return };
        let Some(local) = socket.local else { return };
        for address in self.named_by(socket, local) {
            let listen = Listen { address, port: Some(local.port()) };
            // An engine can always take it back.
            let _ = self.machine_call(|connections, now, outbox| connections.unlisten(now, &listen, outbox));
        }
        if let Ok(socket) = self.socket_of_mut(fd) {
            socket.role = Role::Fresh;
        }
        let of_it = |(_, connection): &(&FlowId, &Connection)| connection.owner == Owner::Listener(fd);
        let unwanted: Vec<FlowId> = self.connections.iter().filter(of_it).map(|(flow, _)| *flow).collect();
        for flow in unwanted {
            match self.connections.get_mut(&flow) {
                Some(connection) if connection.phase != Phase::Ended => {
                    connection.owner = Owner::Nobody;
                    self.abort(flow);
                }
                _ => {
                    self.connections.remove(&flow);
                }
            }
        }
    }

    /// What is to be checked and done before a call waits for the first time; and for how many nanoseconds it may wait.
    pub(crate) fn begin(&mut self, call: Call, patience: Patience) -> Result<(Call, Option<i64>), Errno> {
        let mut begun = call;
        let patience = match patience {
            Patience::None => Some(0),
            Patience::For(time) => Some(time.max(0)),
            Patience::Endless => None,
            Patience::OfSocket => match begun.fd().map(|fd| self.socket_of(fd)).transpose()? {
                Some(socket) if socket.nonblocking => Some(0),
                Some(socket) => match begun {
                    Call::Accept { .. } | Call::Receive { .. } => socket.settings.receive_timeout,
                    _ => socket.settings.send_timeout,
                },
                None => None,
            },
        };
        if let Call::Connect { fd, remote } = begun {
            if !self.connect(fd, remote)? && patience == Some(0) {
                return Err(Errno::Already);
            }
            begun = Call::Connected { fd };
        }
        Ok((begun, patience))
    }

    /// Opens the connection of a socket. `false`: it is being opened already.
    fn connect(&mut self, fd: Fd, remote: SocketAddr) -> Result<bool, Errno> {
        let socket = self.socket_of(fd)?;
        let remote = canonical(socket, remote)?;
        match &socket.role {
            Role::Fresh => {}
            Role::Connected(stream) if stream.connecting => {
                let opening = self.connection(stream.flow).is_some_and(|it| it.phase == Phase::Opening);
                return Ok(!opening);
            }
            Role::Connected(_) | Role::Listening(_) => return Err(Errno::IsConnected),
            Role::Watching(_) => return Err(Errno::NotSupported),
        }
        if remote.ip().is_unspecified() || remote.port() == 0 {
            return Err(Errno::AddressNotAvailable);
        }
        let mut local = socket.local.unwrap_or(SocketAddr::new(socket.family.any(), 0));
        if local.ip().is_unspecified() {
            local.set_ip(self.setup.source(remote.ip()).ok_or(Errno::AddressNotAvailable)?);
        }
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(Errno::AddressFamily);
        }
        if local.port() == 0 {
            local.set_port(self.free_port(fd, local, Some(remote)).ok_or(Errno::AddressNotAvailable)?);
        }
        let flow = self.open(fd, local, remote)?;
        let socket = self.socket_of_mut(fd)?;
        socket.local = Some(local);
        socket.role = Role::Connected(Stream { flow, connecting: true, read_shut: false, write_shut: false });
        self.set_registers(fd, flow);
        Ok(true)
    }

    /// What a call answers now, unless it has to wait.
    pub(crate) fn attempt(&mut self, call: &mut Call) -> Option<Result<Answer, Errno>> {
        match call {
            Call::Accept { fd } => self.accept(*fd).transpose(),
            Call::Connect { fd, .. } | Call::Connected { fd } => self.connected(*fd).transpose(),
            Call::Receive { fd, most, peek, all } => self.receive(*fd, *most, *peek, *all).transpose(),
            Call::Send { fd, bytes, taken } => self.send(*fd, bytes, taken).transpose(),
            Call::Poll { entries } => self.poll(entries).map(Ok),
            Call::WaitForWatched { fd, most } => self.wait_for_watched(*fd, *most).transpose(),
        }
    }

    fn accept(&mut self, fd: Fd) -> Result<Option<Answer>, Errno> {
        let socket = self.socket_of_mut(fd)?;
        let (family, local, settings) = (socket.family, socket.local, socket.settings.clone());
        let Role::Listening(listener) = &mut socket.role else { return Err(Errno::Invalid) };
        let Some(flow) = listener.complete.pop_front() else { return Ok(None) };
        let mut accepted = Socket::new(family, Role::Fresh);
        accepted.settings = settings;
        accepted.local = local;
        accepted.role = Role::Connected(Stream { flow, connecting: false, read_shut: false, write_shut: false });
        let new = self.add(accepted);
        let Some(connection) = self.connections.get_mut(&flow) else { return Err(Errno::Aborted) };
        connection.owner = Owner::Socket(new);
        let (local, remote) = (connection.local, connection.remote);
        self.socket_of_mut(new)?.local = Some(local);
        // One that has ended in the queue is accepted all the same.
        let _ = self.machine_call(|connections, now, outbox| connections.accept(now, flow, outbox));
        Ok(Some(Answer::Accepted(new, family.shown(remote))))
    }

    fn connected(&mut self, fd: Fd) -> Result<Option<Answer>, Errno> {
        let stream = self.socket_of_mut(fd)?.stream_mut()?;
        let flow = stream.flow;
        let Some(connection) = self.connections.get_mut(&flow) else { return Err(Errno::NotConnected) };
        if connection.phase == Phase::Opening {
            return Ok(None);
        }
        stream_of(&mut self.sockets, fd)?.connecting = false;
        let aborted = (connection.phase == Phase::Ended).then_some(Errno::Aborted);
        if let Some(error) = connection.error.take().or(aborted) {
            // The socket may be used again.
            self.connections.remove(&flow);
            let socket = self.socket_of_mut(fd)?;
            socket.role = Role::Fresh;
            return Err(error);
        }
        Ok(Some(Answer::Done))
    }

    fn receive(&mut self, fd: Fd, most: usize, peek: bool, all: bool) -> Result<Option<Answer>, Errno> {
        let stream = self.socket_of(fd)?.stream()?.clone();
        let Some(connection) = self.connections.get_mut(&stream.flow) else {
            return Ok(Some(Answer::Bytes(Vec::new())));
        };
        let (there, at_end) = (connection.received.len(), connection.is_at_end() || stream.read_shut);
        if most == 0 || there >= most || there > 0 && (!all || at_end) {
            return Ok(Some(self.read(stream.flow, most, peek)));
        }
        if let Some(error) = connection.error.take() {
            return Err(error);
        }
        Ok(at_end.then(|| Answer::Bytes(Vec::new())))
    }

    fn send(&mut self, fd: Fd, bytes: &[u8], taken: &mut usize) -> Result<Option<Answer>, Errno> {
        let socket = self.socket_of(fd)?;
        let limit = self.send_buffer(socket);
        let Role::Connected(stream) = socket.role.clone() else { return Err(Errno::Pipe) };
        let Some(connection) = self.connections.get_mut(&stream.flow) else { return Err(Errno::Pipe) };
        if *taken > 0 && (connection.error.is_some() || stream.write_shut || connection.phase == Phase::Ended) {
            return Ok(Some(Answer::Count(*taken)));
        }
        if let Some(error) = connection.error.take() {
            return Err(error);
        }
        if stream.write_shut || connection.phase == Phase::Ended {
            return Err(Errno::Pipe);
        }
        if connection.phase == Phase::Opening {
            return Ok(None);
        }
        let room = limit.saturating_sub(connection.unacknowledged).min(bytes.len() - *taken);
        if room > 0 {
            let part = &bytes[*taken..*taken + room];
            connection.unacknowledged += room;
            let flow = stream.flow;
            let written = self.machine_call(|connections, now, outbox| connections.write(now, flow, part, outbox));
            let written = written.map_err(|_| Errno::Pipe)?;
            if let Some(connection) = self.connections.get_mut(&flow) {
                connection.unacknowledged -= room - written;
            }
            *taken += written;
        }
        Ok((*taken == bytes.len()).then_some(Answer::Count(*taken)))
    }

    /// A port of this end that nobody uses (RFC 6056, 3.3.3): where the search begins depends on both ends and a key.
    fn free_port(&mut self, fd: Fd, local: SocketAddr, remote: Option<SocketAddr>) -> Option<u16> {
        let count = u64::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
        let offset = self.chance.hash_key(format!("{} {remote:?}", local.ip()).as_bytes()).cast_unsigned();
        for _ in 0..count {
            let place = offset.wrapping_add(self.ports_tried) % count;
            self.ports_tried += 1;
            let port = EPHEMERAL.start() + place as u16;
            let ends = |it: &Connection| it.local.port() == port && Some(it.remote) == remote;
            if !self.is_taken(fd, SocketAddr::new(local.ip(), port)) && !self.connections.values().any(ends) {
                return Some(port);
            }
        }
        None
    }

    /// Whether an address can't be bound to: another socket is, unless both may share it and it does not listen; or a connection is
    /// still there, unless the address may be used again.
    fn is_taken(&self, fd: Fd, local: SocketAddr) -> bool {
        let reuse = self.socket_of(fd).is_ok_and(|socket| socket.settings.reuse_address);
        let by_socket = self.sockets.iter().any(|(other, socket)| {
            let shares = reuse && socket.settings.reuse_address && !matches!(socket.role, Role::Listening(_));
            *other != fd && !shares && socket.local.is_some_and(|at| overlap(at, local))
        });
        let by_connection = |it: &Connection| it.owner == Owner::Nobody && overlap(it.local, local);
        by_socket || !reuse && self.connections.values().any(by_connection)
    }

    /// Where a socket is bound.
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`].
    pub fn local_address(&self, fd: Fd) -> Result<SocketAddr, Errno> {
        let socket = self.socket_of(fd)?;
        let local = socket.local.unwrap_or(SocketAddr::new(socket.family.any(), 0));
        Ok(socket.family.shown(local))
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// [`Errno::NotConnected`].
    pub fn remote_address(&self, fd: Fd) -> Result<SocketAddr, Errno> {
        let socket = self.socket_of(fd)?;
        let connection = self.connection(socket.stream()?.flow).filter(|it| it.phase == Phase::Open);
        connection.map(|connection| socket.family.shown(connection.remote)).ok_or(Errno::NotConnected)
    }

    /// How many bytes can be read at once (`FIONREAD`).
    ///
    /// # Errors
    /// [`Errno::Invalid`]: the socket listens.
    pub fn readable(&self, fd: Fd) -> Result<usize, Errno> {
        match &self.socket_of(fd)?.role {
            Role::Listening(_) | Role::Watching(_) => Err(Errno::Invalid),
            Role::Fresh => Ok(0),
            Role::Connected(stream) => Ok(self.connection(stream.flow).map_or(0, |it| it.received.len())),
        }
    }

    /// How many bytes that were written were not acknowledged (`SIOCOUTQ`).
    ///
    /// # Errors
    /// [`Errno::Invalid`]: the socket listens.
    pub fn unacknowledged(&self, fd: Fd) -> Result<usize, Errno> {
        match &self.socket_of(fd)?.role {
            Role::Listening(_) | Role::Watching(_) => Err(Errno::Invalid),
            Role::Fresh => Ok(0),
            Role::Connected(stream) => Ok(self.connection(stream.flow).map_or(0, |it| it.unacknowledged)),
        }
    }

    /// Whether calls wait (`O_NONBLOCK`).
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`].
    pub fn is_nonblocking(&self, fd: Fd) -> Result<bool, Errno> {
        Ok(self.socket_of(fd)?.nonblocking)
    }

    /// Has calls wait or not.
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`].
    pub fn set_nonblocking(&mut self, fd: Fd, on: bool) -> Result<(), Errno> {
        self.socket_of_mut(fd)?.nonblocking = on;
        Ok(())
    }
}

fn stream_of(sockets: &mut BTreeMap<Fd, Socket>, fd: Fd) -> Result<&mut Stream, Errno> {
    sockets.get_mut(&fd).ok_or(Errno::BadDescriptor)?.stream_mut()
}

/// An address as the machine knows it.
fn canonical(socket: &Socket, address: SocketAddr) -> Result<SocketAddr, Errno> {
    let known = SocketAddr::new(address.ip().to_canonical(), address.port());
    match socket.family {
        Family::V4 if !address.is_ipv4() => Err(Errno::AddressFamily),
        Family::V6 if address.is_ipv4() => Err(Errno::AddressFamily),
        Family::V6 if socket.settings.v6_only && known.is_ipv4() => Err(Errno::AddressNotAvailable),
        _ => Ok(known),
    }
}

/// Whether two bound addresses have one in common.
fn overlap(left: SocketAddr, right: SocketAddr) -> bool {
    let any = left.ip().is_unspecified() || right.ip().is_unspecified();
    left.port() == right.port() && (any || left.ip() == right.ip())
}
