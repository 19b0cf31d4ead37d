//! A machine with a clock, a line, and sockets.

use crate::call::Waiting;
use crate::connection::{Connection, Owner, Phase};
use crate::filter::destination;
use crate::machine::{Machine, PORT};
use crate::socket::{Role, Socket};
use crate::{Answer, Call, Completion, Errno, Fd, Progress, Setup, SetupError, Ticket};
use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::net::SocketAddr;
use weftwire_core::inspect::Inspect;
use weftwire_core::order::Input;
use weftwire_core::{CallError, Connections, Endpoints, FlowId, LinkType, Outbox, Output, Time, outbox, segments};
use weftwire_engine::Chance;
use weftwire_image::VerifiedImage;

/// No call waits for longer than this, in nanoseconds: a day.
const LONGEST: i64 = 24 * 3_600 * 1_000_000_000;
/// File descriptors begin here, behind standard input, output and error.
const FIRST_FD: i32 = 3;

/// A machine with a clock, a line, and sockets.
///
/// - time: [`Host::now`], [`Host::next_deadline`], [`Host::advance`], [`Host::run_to_frame`];
/// - the line: [`Host::frame_in`], [`Host::frame_out`];
/// - sockets: [`Host::socket`], [`Host::bind`], [`Host::listen`], [`Host::shutdown`], [`Host::close`] and others that never wait;
/// - what may have to wait: [`Host::start`], then [`Host::take`] after whatever happened, or [`Host::wait`], which lets time pass;
/// - parameters: [`Host::set`].
///
/// Time never goes back. What is due at an instant runs after what arrives at that instant; what belongs in front of something that was there at that
/// instant comes a nanosecond later.
pub struct Host {
    pub(crate) machine: Machine,
    pub(crate) setup: Setup,
    pub(crate) chance: Chance,
    pub(crate) sockets: BTreeMap<Fd, Socket>,
    pub(crate) connections: BTreeMap<FlowId, Connection>,
    /// How many ephemeral ports were tried before.
    pub(crate) ports_tried: u64,
    clock: Time,
    line: VecDeque<Departed>,
    waiting: Vec<Waiting>,
    over: BTreeMap<Ticket, Completion>,
    tickets: u64,
}

/// A packet that has left.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Departed {
    /// When.
    pub at: Time,
    /// From the IP header on, with all checksums.
    pub bytes: Vec<u8>,
}

impl Host {
    /// A host whose machine is this one.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(image: VerifiedImage, setup: Setup) -> Result<Host, SetupError> {
        let chance = Chance::new(setup.seed, None);
        Ok(Host {
            machine: Machine::new(image, setup.seed)?,
            setup,
            chance,
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            ports_tried: 0,
            clock: Time::ZERO,
            line: VecDeque::new(),
            waiting: Vec::new(),
            over: BTreeMap::new(),
            tickets: 0,
        })
    }

    /// The IP protocol number of connections.
    pub fn protocol(&self) -> u8 {
        self.setup.protocol
    }

    /// The present instant of virtual time.
    pub fn now(&self) -> Time {
        self.clock
    }

    /// The machine with its flows, to look at.
    pub fn inspect(&self) -> &dyn Inspect {
        self.machine.inspect()
    }

    /// When something happens next without anybody's doing: a timer of the machine, or the end of a call's patience.
    pub fn next_deadline(&self) -> Option<Time> {
        let calls = self.waiting.iter().filter_map(|waiting| waiting.until);
        self.machine.next_deadline().into_iter().chain(calls).min()
    }

    /// Lets time pass until `until`, and everything happen that is due by then.
    pub fn advance(&mut self, until: Time) {
        while let Some(deadline) = self.next_deadline().filter(|deadline| *deadline <= until) {
            self.step(deadline);
        }
        self.clock = until.max(self.clock);
    }

    /// Lets time pass until a packet has left, or until `until`. `false`: none has, and none will by then.
    pub fn run_to_frame(&mut self, until: Time) -> bool {
        while self.line.is_empty() {
            match self.next_deadline().filter(|deadline| *deadline <= until) {
                Some(deadline) => self.step(deadline),
                None => return false,
            }
        }
        true
    }

    /// One deadline.
    fn step(&mut self, deadline: Time) {
        self.clock = deadline.max(self.clock);
        if self.machine.next_deadline().is_some_and(|due| due <= self.clock) {
            let now = self.clock;
            self.machine.fire(now);
            self.outputs();
        }
        self.settle();
    }

    /// The instant of an input that comes now: a little later where it belongs in front of the one before.
    fn instant(&mut self, input: Input) -> Time {
        self.clock = self.machine.input_time(input, self.clock);
        self.clock
    }

    /// A packet arrives, from the IP header on. What is no packet, or for another host, is dropped.
    pub fn frame_in(&mut self, bytes: &[u8]) {
        let Some(destination) = destination(bytes).filter(|it| self.setup.has(it.address.ip())) else { return };
        if destination.opens && self.is_full(destination.address) {
            return;
        }
        let now = self.instant(Input::Frame(PORT));
        self.machine.frame(now, bytes);
        self.outputs();
        self.settle();
    }

    /// The next packet that has left.
    pub fn frame_out(&mut self) -> Option<Departed> {
        self.line.pop_front()
    }

    /// The next packet that has left, which stays.
    pub fn first_frame(&self) -> Option<&Departed> {
        self.line.front()
    }

    /// Gives registers other initial values, for connections that begin from now on: a pair is a name and a value as it is written.
    ///
    /// # Errors
    /// [`SetupError`]; nothing has changed then.
    pub fn set(&mut self, parameters: &[(String, String)]) -> Result<(), SetupError> {
        let now = self.instant(Input::Change);
        self.machine.set(now, parameters)?;
        self.outputs();
        Ok(())
    }

    /// Starts a call. If it has to wait, it goes on whenever something happens that lets it.
    pub fn start(&mut self, call: Call, patience: crate::Patience) -> Progress {
        let (mut call, patience) = match self.begin(call, patience) {
            Ok(begun) => begun,
            Err(error) => return Progress::Over(Err(error)),
        };
        if let Some(result) = self.attempt(&mut call) {
            self.settle();
            return Progress::Over(result);
        }
        if patience == Some(0) {
            self.settle();
            return Progress::Over(call.without_patience());
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.push(Waiting { ticket, call, until: patience.map(|patience| self.clock.after(patience)) });
        self.settle();
        match self.over.remove(&ticket) {
            Some(completion) => Progress::Over(completion.result),
            None => Progress::Waits(ticket),
        }
    }

    /// The result of a call that has waited, if it is over. It is told once.
    pub fn take(&mut self, ticket: Ticket) -> Option<Completion> {
        self.over.remove(&ticket)
    }

    /// Lets time pass until a call is over. `None`: packets have left, or nothing is due within a day: the other end must do
    /// something first.
    pub fn wait(&mut self, ticket: Ticket) -> Option<Completion> {
        let until = self.clock.after(LONGEST);
        loop {
            if let Some(completion) = self.take(ticket) {
                return Some(completion);
            }
            let deadline = self.next_deadline().filter(|deadline| self.line.is_empty() && *deadline <= until)?;
            self.step(deadline);
        }
    }

    /// Gives up a call that waits.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.waiting.retain(|waiting| waiting.ticket != ticket);
        self.over.remove(&ticket);
    }

    /// Lets calls go on that can.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut moved = false;
            for mut waiting in take(&mut self.waiting) {
                let result = self.attempt(&mut waiting.call).or_else(|| {
                    let is_up = waiting.until.is_some_and(|until| until <= self.clock);
                    is_up.then(|| waiting.call.without_patience())
                });
                match result {
                    Some(result) => {
                        moved = true;
                        self.over.insert(waiting.ticket, Completion { at: self.clock, result });
                    }
                    None => self.waiting.push(waiting),
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// A socket.
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`].
    pub(crate) fn socket_of(&self, fd: Fd) -> Result<&Socket, Errno> {
        self.sockets.get(&fd).ok_or(Errno::BadDescriptor)
    }

    /// A socket, to be changed.
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`].
    pub(crate) fn socket_of_mut(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::BadDescriptor)
    }

    pub(crate) fn connection(&self, flow: FlowId) -> Option<&Connection> {
        self.connections.get(&flow)
    }

    /// Adds a socket, with the lowest number that is free.
    pub(crate) fn add(&mut self, socket: Socket) -> Fd {
        let fd = (FIRST_FD..).map(Fd).find(|fd| !self.sockets.contains_key(fd)).unwrap_or(Fd(FIRST_FD));
        self.sockets.insert(fd, socket);
        fd
    }

    /// A call of the machine.
    pub(crate) fn machine_call<R>(
        &mut self,
        call: impl FnOnce(&mut dyn Connections, Time, &mut Outbox) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let now = self.instant(Input::Call);
        let result = self.machine.call(|connections, outbox| call(connections, now, outbox));
        self.outputs();
        result
    }

    /// Opens a connection for a socket.
    pub(crate) fn open(&mut self, fd: Fd, local: SocketAddr, remote: SocketAddr) -> Result<FlowId, Errno> {
        let ends = Endpoints {
            protocol: self.setup.protocol,
            local_address: local.ip(),
            local_port: local.port(),
            remote_address: remote.ip(),
            remote_port: remote.port(),
            local_mac: Default::default(),
            remote_mac: Default::default(),
            vlan: None,
        };
        let now = self.instant(Input::Call);
        let opened = self.machine.call(|connections, outbox| connections.connect(now, &ends, outbox));
        let flow = opened.map_err(|error| match error {
            CallError::Exists(_) => Errno::AddressNotAvailable,
            CallError::TableFull => Errno::NoRoom,
            CallError::Unfit(_) => Errno::AddressFamily,
            _ => Errno::NotSupported,
        })?;
        // What its first event has put out is about it.
        self.connections.insert(flow, Connection::new(local, remote, Owner::Socket(fd)));
        if !self.machine.gives_notice("established") {
            self.opened(flow);
        }
        self.outputs();
        Ok(flow)
    }

    /// Ends a connection at once.
    pub(crate) fn abort(&mut self, flow: FlowId) {
        // One that has ended is not there any more.
        let _ = self.machine_call(|connections, now, outbox| connections.abort(now, flow, outbox));
    }

    /// The listening socket of an address.
    fn listener(&self, address: SocketAddr) -> Option<Fd> {
        let listens =
            |(_, socket): &(&Fd, &Socket)| matches!(socket.role, Role::Listening(_)) && socket.is_bound_to(address);
        self.sockets.iter().find(listens).map(|(fd, _)| *fd)
    }

    /// Whether who listens at an address has as many connections as it may.
    fn is_full(&self, address: SocketAddr) -> bool {
        let listener = self.listener(address).and_then(|fd| self.sockets.get(&fd));
        listener.is_some_and(|socket| match &socket.role {
            Role::Listening(listener) => listener.complete.len() > listener.backlog,
            _ => false,
        })
    }

    /// Does what the machine has put out.
    fn outputs(&mut self) {
        let (mut unwanted, mut new) = (Vec::new(), Vec::new());
        let outbox = take(&mut self.machine.outbox);
        for output in outbox.items() {
            match output {
                Output::Send { at, .. } => self.departs(*at, &outbox, output),
                Output::Deliver { flow, bytes } => {
                    let Some(connection) = self.connections.get_mut(flow) else { continue };
                    match connection.owner {
                        // Nobody will ever read it (RFC 1122, 4.2.2.13).
                        Owner::Nobody => unwanted.push(*flow),
                        _ => connection.received.extend(outbox.bytes(bytes)),
                    }
                }
                Output::Released { flow, length } => {
                    if let Some(connection) = self.connections.get_mut(flow) {
                        connection.unacknowledged = connection.unacknowledged.saturating_sub(*length);
                    }
                }
                Output::Notify { flow, notice, value, .. } => {
                    self.notice(*flow, &self.machine.notice_name(*notice), *value);
                }
                Output::Opened { flow, endpoints: Some(ends) } => {
                    let local = SocketAddr::new(ends.local_address, ends.local_port);
                    let remote = SocketAddr::new(ends.remote_address, ends.remote_port);
                    let owner = self.listener(local).map_or(Owner::Nobody, Owner::Listener);
                    self.connections.insert(*flow, Connection::new(local, remote, owner));
                    new.extend(self.listener(local).map(|fd| (fd, *flow)));
                    if !self.machine.gives_notice("established") {
                        self.opened(*flow);
                    }
                }
                Output::Ended { flow } => self.ended(*flow),
                Output::Opened { endpoints: None, .. } | Output::Answered(_) | Output::Trace(_) => {}
            }
        }
        self.machine.outbox = outbox;
        self.machine.outbox.clear();
        for flow in unwanted {
            self.abort(flow);
        }
        // Connections have the options of the socket that listens.
        for (fd, flow) in new {
            self.set_registers(fd, flow);
        }
    }

    /// A packet leaves, cut into as many as a line takes.
    fn departs(&mut self, at: Time, outbox: &Outbox, output: &Output) {
        let Some((_, frame)) = outbox::sent(outbox, output) else { return };
        match segments(LinkType::Ip, frame) {
            Ok(packets) => {
                self.line.extend(packets.map(|packet| Departed { at, bytes: packet.to_vec() }));
            }
            Err(_) => self.line.push_back(Departed { at, bytes: frame.bytes.to_vec() }),
        }
    }

    /// A connection is open.
    fn opened(&mut self, flow: FlowId) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.phase = Phase::Open;
        if let Owner::Listener(fd) = connection.owner
            && let Some(Socket { role: Role::Listening(listener), .. }) = self.sockets.get_mut(&fd)
        {
            listener.complete.push_back(flow);
        }
    }

    /// What a machine tells of a connection, by the names that transports have for it.
    fn notice(&mut self, flow: FlowId, name: &str, value: i64) {
        if name == "established" {
            return self.opened(flow);
        }
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        match name {
            "finished" => connection.finished = true,
            "refused" => connection.error = Some(Errno::Refused),
            "timed_out" => connection.error = Some(connection.unreachable.unwrap_or(Errno::TimedOut)),
            "unreachable" => connection.unreachable = Some(connection.unreachable_by(value)),
            // Who has read to the end learns that nobody reads what it writes.
            "reset" if connection.finished => connection.error = Some(Errno::Pipe),
            "reset" => connection.error = Some(Errno::Reset),
            _ => {}
        }
    }

    /// The machine knows a connection no more.
    fn ended(&mut self, flow: FlowId) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let opening = connection.phase == Phase::Opening;
        connection.phase = Phase::Ended;
        connection.unacknowledged = 0;
        match connection.owner {
            Owner::Socket(_) if opening => {
                connection.error.get_or_insert(connection.unreachable.unwrap_or(Errno::Aborted));
            }
            Owner::Socket(_) => {}
            // Behind a queue's back nothing ends: whoever accepts it learns what became of it.
            Owner::Listener(_) if !opening => {}
            Owner::Listener(_) | Owner::Nobody => {
                self.connections.remove(&flow);
            }
        }
    }
}

/// What calls do to a connection.
impl Host {
    /// Gives a register of a connection a value.
    pub(crate) fn set_register(&mut self, flow: FlowId, name: &str, value: i64) {
        let now = self.instant(Input::Change);
        self.machine.set_register(now, flow, name, value);
        self.outputs();
    }

    /// Reads up to `most` bytes of what has arrived.
    pub(crate) fn read(&mut self, flow: FlowId, most: usize, peek: bool) -> Answer {
        let Some(connection) = self.connections.get_mut(&flow) else { return Answer::Bytes(Vec::new()) };
        let count = most.min(connection.received.len());
        if peek {
            return Answer::Bytes(connection.received.iter().take(count).copied().collect());
        }
        let bytes: Vec<u8> = connection.received.drain(..count).collect();
        if connection.phase != Phase::Ended && !bytes.is_empty() {
            // It may end in this very event.
            let _ = self.machine_call(|connections, now, outbox| connections.consumed(now, flow, count, outbox));
        }
        Answer::Bytes(bytes)
    }
}
