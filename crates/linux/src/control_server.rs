//! The run's side of the control socket.
//!
//! Reading, line lengths, clients, stored debug records and the work of each call are all bounded, nothing ever waits for
//! a client, and a request is only taken once the client has read the previous answer.

use crate::control::{MAX_CLIENTS, MAX_PAGE, MAX_PENDING, MAX_REQUEST, PortStatus, Request, Response, RunCounters};
use crate::control_states;
use crate::error::LinuxError;
use crate::local::{self, SocketFile, peer};
use crate::privileges::User;
use crate::replacement::{PROTOCOL, Plan, Replaceable};
use crate::system::{Waker, poll_input};
use std::any::Any;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use weftwire_core::control::{self, Done, Preparation};
use weftwire_core::live::Clocks;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{Change, Command, ControlError, FlowId, Function, Outbox, Time};

/// The server's side of the control socket. Its file goes away with it.
pub struct ControlServer {
    /// First, as it goes before anybody hears of the end.
    file: Option<SocketFile>,
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
    /// The client whose turn it is to be answered.
    turn: usize,
    /// Counts what clients do, to tell who has been silent for longest.
    clock: u64,
    /// Records lost by clients that are gone.
    lost: u64,
    /// Woken when a change is ready.
    waker: Arc<Waker>,
    /// What it says to a process that is to replace this one.
    replaceable: Option<Replaceable>,
    /// Such a process, which is no client any more.
    successor: Option<UnixStream>,
}

/// A change that a thread of its own makes ready, and the way back to it for what the change replaces, which takes long to free.
struct Preparing {
    change: Change,
    ready: Receiver<Result<Prepared, ControlError>>,
    replaced: Sender<Vec<Prepared>>,
}

type Prepared = Box<dyn Any + Send>;

impl Preparing {
    fn start(change: Change, preparation: Preparation, waker: Arc<Waker>) -> io::Result<Preparing> {
        let ((done, ready), (replaced, old)) = (channel(), channel());
        thread::Builder::new().name("parameters".into()).spawn(move || {
            let _ = done.send(preparation());
            drop(done);
            waker.wake();
            drop(old.recv());
        })?;
        Ok(Preparing { change, ready, replaced })
    }
}

/// What a client asks about.
pub(crate) struct Asked<'a> {
    /// The function.
    pub(crate) function: &'a mut dyn Function,
    /// Where its answers go.
    pub(crate) out: &'a mut Outbox,
    /// How the ports are.
    pub(crate) ports: &'a mut dyn FnMut() -> Vec<PortStatus>,
    /// The function's time and how it stands to the machine's clocks. With `true` it starts if it stands still.
    pub(crate) time: &'a mut dyn FnMut(bool) -> (Time, Clocks),
}

impl Asked<'_> {
    /// Changes the function.
    pub(crate) fn change(&mut self, now: Time, change: Change) -> Result<Done, ControlError> {
        control::change(self.function, now, change, self.out)
    }
}

impl ControlServer {
    /// Opens the socket `path` for `owner` alone (and root). A file left by a run that is dead is replaced.
    ///
    /// # Errors
    /// [`LinuxError::NameTaken`] if another run answers there; as of [`local::listen`].
    pub fn open(path: &Path, name: &str, owner: Option<User>) -> Result<ControlServer, LinuxError> {
        let (listener, file) = local::listen(path, owner).map_err(|error| match error {
            LinuxError::SocketInUse(path) => LinuxError::NameTaken { name: name.to_owned(), path },
            error => error,
        })?;
        ControlServer::of(path, listener, Some(file))
    }

    /// Goes on with the socket of another process at `path`. The file is that one's until this process owns it.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn take_over(path: &Path, listener: UnixListener) -> Result<ControlServer, LinuxError> {
        ControlServer::of(path, listener, None)
    }

    fn of(path: &Path, listener: UnixListener, file: Option<SocketFile>) -> Result<ControlServer, LinuxError> {
        let waker = Waker::new().map_err(|error| LinuxError::system("make a way for changes", error))?;
        let (waker, path) = (Arc::new(waker), path.to_owned());
        let (clients, turn, clock, lost, replaceable, successor) = (Vec::new(), 0, 0, 0, None, None);
        Ok(ControlServer { file, listener, path, clients, turn, clock, lost, waker, replaceable, successor })
    }

    /// Another process may replace this one, and needs to know this.
    pub fn set_replaceable(&mut self, replaceable: Replaceable) {
        self.replaceable = Some(replaceable);
    }

    /// The socket's file goes with this value from now on.
    pub(crate) fn own_file(&mut self) {
        self.file = Some(SocketFile::of(&self.path));
    }

    /// The socket's file stays.
    pub(crate) fn leave_file(&mut self) {
        if let Some(file) = self.file.take() {
            file.leave();
        }
    }

    /// The process that is to replace this one, once.
    pub(crate) fn take_successor(&mut self) -> Option<UnixStream> {
        self.successor.take()
    }

    /// What goes over to it beside the ports: the listening socket, and the lock on the run's name.
    pub(crate) fn to_pass(&self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        let lock = self.replaceable.as_ref().and_then(|replaceable| replaceable.lock.as_ref());
        (self.listener.as_fd(), lock.map(AsFd::as_fd))
    }

    /// Takes new clients, answers one request and sends what is pending, all without waiting. Returns the flow that was
    /// deleted by request.
    pub(crate) fn serve(&mut self, asked: &mut Asked<'_>) -> Option<FlowId> {
        for _ in 0..MAX_CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.admit(Client::new(stream));
            }
        }
        for client in &mut self.clients {
            if client.exchange() {
                self.clock += 1;
                client.active = self.clock;
            }
        }
        self.waker.reset();
        for client in &mut self.clients {
            client.finish(asked);
        }
        let deleted = self.answer_one(asked);
        if let Some(place) = self.clients.iter().position(|client| client.replaces && !client.gone) {
            // A second one has been refused.
            self.successor = Some(self.clients.remove(place).stream);
        }
        let lost = &mut self.lost;
        self.clients.retain(|client| {
            if client.gone {
                *lost += client.lost;
            }
            !client.gone
        });
        deleted
    }

    /// Gives a client a place. If there is none, the one goes that has been silent for longest; not root for another user.
    fn admit(&mut self, mut client: Client) {
        self.clock += 1;
        client.active = self.clock;
        if self.clients.len() == MAX_CLIENTS {
            let may_go = |at: &usize| client.root || !self.clients[*at].root;
            let silent =
                (0..MAX_CLIENTS).filter(may_go).min_by_key(|at| (self.clients[*at].root, self.clients[*at].active));
            let Some(silent) = silent else {
                client.dismiss("root has all places");
                return;
            };
            let mut gone = self.clients.remove(silent);
            gone.dismiss("another client needed the place of this one, which had been silent for longest");
            self.lost += gone.lost;
        }
        self.clients.push(client);
    }

    /// Answers one request of one client, the clients in turn.
    fn answer_one(&mut self, asked: &mut Asked<'_>) -> Option<FlowId> {
        let count = self.clients.len();
        let next = (0..count).map(|step| (self.turn + step) % count).find(|at| self.clients[*at].is_ready())?;
        self.turn = next + 1;
        self.clients[next].answer_request(asked, &self.waker, self.replaceable.as_ref())
    }

    /// Whether a request waits for its answer.
    pub(crate) fn has_request(&self) -> bool {
        self.clients.iter().any(Client::is_ready)
    }

    /// Hands a record to the clients that debug.
    pub(crate) fn publish(&mut self, record: &TraceRecord) {
        for client in &mut self.clients {
            client.publish(record);
        }
    }

    /// Whether any client wants debug records.
    pub(crate) fn wants_trace(&self) -> bool {
        self.clients.iter().any(|client| client.debug.is_some())
    }

    /// Adds what the run loop has to wait on.
    pub(crate) fn add_descriptors(&self, descriptors: &mut Vec<libc::pollfd>) {
        descriptors.push(poll_input(self.listener.as_fd()));
        descriptors.push(poll_input(self.waker.descriptor()));
        descriptors.extend(self.clients.iter().map(|client| {
            let writing = if client.output.is_empty() { 0 } else { libc::POLLOUT };
            let reading = if client.may_read() { libc::POLLIN } else { 0 };
            libc::pollfd { fd: client.stream.as_raw_fd(), events: reading | writing, revents: 0 }
        }));
    }

    /// Debug records that clients lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost + self.clients.iter().map(|client| client.lost).sum::<u64>()
    }
}

fn done(result: Result<Done, ControlError>) -> Response {
    match result {
        Ok(_) => Response::Done {},
        Err(error) => Response::Error(error.to_string()),
    }
}

/// What a client wants to see while debugging.
#[derive(Clone, Copy, PartialEq, Eq)]
struct DebugChoice {
    events: bool,
}

struct Client {
    stream: UnixStream,
    /// Whether it is root.
    root: bool,
    /// When it did something last, by the server's count.
    active: u64,
    input: Vec<u8>,
    /// Bytes to write; the first `written` are out already.
    output: Vec<u8>,
    written: usize,
    debug: Option<DebugChoice>,
    /// The parts of a state that came so far.
    adopted: Vec<u8>,
    /// What it has asked for and is made ready: its answer comes later.
    preparing: Option<Preparing>,
    /// Records lost, in all and not yet told.
    lost: u64,
    untold: u64,
    gone: bool,
    /// It is to replace this process.
    replaces: bool,
}

impl Client {
    fn new(stream: UnixStream) -> Client {
        let root = peer(&stream).is_ok_and(|uid| uid == 0);
        let (input, output, adopted) = (Vec::new(), Vec::new(), Vec::new());
        let (active, written, debug, preparing, lost, untold, gone) = (0, 0, None, None, 0, 0, false);
        Client {
            stream,
            root,
            active,
            input,
            output,
            written,
            debug,
            adopted,
            preparing,
            lost,
            untold,
            gone,
            replaces: false,
        }
    }

    /// Writes what is pending, and reads once at most, so that no client can hold up the others or the frames. Returns
    /// whether anything moved.
    fn exchange(&mut self) -> bool {
        let moved = self.flush();
        moved | (self.may_read() && self.read())
    }

    /// With a request or an answer pending there is no reading.
    fn may_read(&self) -> bool {
        !self.gone && !self.awaits_reader() && !self.input.contains(&b'\n')
    }

    /// Whether it has asked something that can be answered now.
    fn is_ready(&self) -> bool {
        !self.gone && !self.awaits_reader() && self.preparing.is_none() && self.input.contains(&b'\n')
    }

    /// Carries out what it has asked for if that is ready, and answers.
    fn finish(&mut self, asked: &mut Asked<'_>) {
        let Some(preparing) = self.preparing.take() else { return };
        let result = match preparing.ready.try_recv() {
            Err(TryRecvError::Empty) => {
                self.preparing = Some(preparing);
                return;
            }
            Err(TryRecvError::Disconnected) => Err(ControlError::Unfit("it could not be made ready".into())),
            Ok(Err(error)) => Err(error),
            Ok(Ok(prepared)) => {
                let (now, _) = (asked.time)(false);
                let command = Command::prepared(0, preparing.change, prepared);
                let result = control::carry_out(asked.function, now, command, asked.out);
                let _ = preparing.replaced.send(asked.out.take_leftovers());
                result
            }
        };
        self.put(&done(result));
        self.flush();
    }

    fn answer_request(
        &mut self,
        asked: &mut Asked<'_>,
        waker: &Arc<Waker>,
        replaceable: Option<&Replaceable>,
    ) -> Option<FlowId> {
        let end = self.input.iter().position(|byte| *byte == b'\n')?;
        let mut deleted = None;
        let answer = match serde_json::from_slice(&self.input[..end]) {
            Ok(request) => {
                let flow = match request {
                    Request::Delete { flow } | Request::State { flow, take: true } => Some(flow),
                    _ => None,
                };
                let answer = match request {
                    Request::Plan | Request::Replace => Some(self.answer_successor(&request, asked, replaceable)),
                    request => self.answer(request, asked, waker),
                };
                deleted = flow.filter(|_| !matches!(answer, Some(Response::Error(_))));
                answer
            }
            Err(error) => Some(Response::Error(format!("not a request: {error}"))),
        };
        self.input.drain(..=end);
        if let Some(answer) = answer {
            self.put(&answer);
            self.flush();
        }
        deleted
    }

    /// A client that debugs may send requests while records are pending; others read each answer first.
    fn awaits_reader(&self) -> bool {
        self.output.len() - self.written > if self.debug.is_some() { MAX_PENDING } else { 0 }
    }

    /// Reads once. Returns whether there was anything.
    fn read(&mut self) -> bool {
        let mut bytes = [0; MAX_REQUEST];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.gone = true,
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                if self.input.len() > MAX_REQUEST && !self.input.contains(&b'\n') {
                    self.dismiss(&format!("a request has at most {MAX_REQUEST} bytes"));
                }
                return true;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
        false
    }

    /// Says why and lets the client go.
    fn dismiss(&mut self, reason: &str) {
        self.put(&Response::Error(reason.to_owned()));
        self.flush();
        self.gone = true;
    }

    /// Has a change made ready on a thread of its own, so that frames need not wait; without that, makes it at once.
    fn prepare(&mut self, change: Change, asked: &mut Asked<'_>, waker: &Arc<Waker>) -> Option<Response> {
        let Some(preparation) = asked.function.preparation(&change) else {
            let (now, _) = (asked.time)(false);
            return Some(done(asked.change(now, change)));
        };
        match Preparing::start(change, preparation, waker.clone()) {
            Ok(preparing) => self.preparing = Some(preparing),
            Err(error) => return Some(Response::Error(format!("it can't be made ready: {error}"))),
        }
        None
    }

    /// Answers a process that is to replace this one.
    fn answer_successor(
        &mut self,
        request: &Request,
        asked: &mut Asked<'_>,
        replaceable: Option<&Replaceable>,
    ) -> Response {
        let refused = |reason: &str| Response::Error(format!("this run can't be replaced: {reason}"));
        if !self.root {
            return refused("only root may ask for that; use sudo");
        }
        let Some(Replaceable { seed, key, ports, refusal, .. }) = replaceable else {
            return refused("it follows others, or is no machine; end it and start the new one");
        };
        if let Some(reason) = refusal {
            return refused(reason);
        }
        let Some(image) = asked.function.program() else { return refused("its function is no machine") };
        if *request == Request::Replace {
            self.replaces = true;
            return Response::Done {};
        }
        Response::Plan(Box::new(Plan {
            protocol: PROTOCOL,
            process: std::process::id(),
            image,
            seed: *seed,
            key: *key,
            ports: ports.clone(),
            flows: asked.function.counters().flows_live,
        }))
    }

    /// The answer, unless it comes later.
    fn answer(&mut self, request: Request, asked: &mut Asked<'_>, waker: &Arc<Waker>) -> Option<Response> {
        let states =
            |result: Result<Response, ControlError>| result.unwrap_or_else(|error| Response::Error(error.to_string()));
        let (now, _) = (asked.time)(false);
        let Asked { function, ports, .. } = asked;
        Some(match request {
            Request::Flows { after } => Response::Page(function.flows_after(after.unwrap_or(FlowId(0)), MAX_PAGE)),
            Request::Flow { flow } => match function.flow(flow) {
                Some(detail) => Response::Flow(Box::new(detail)),
                None => Response::Error(ControlError::NoFlow(flow).to_string()),
            },
            Request::Set { flow, register, value } => {
                done(asked.change(now, Change::SetRegister { flow, register, value }))
            }
            Request::Parameters { parameters } => {
                return self.prepare(Change::SetParameters { parameters }, asked, waker);
            }
            Request::Chain { flow, right, boxes } => done(asked.change(now, Change::Chain { flow, right, boxes })),
            Request::Delete { flow } => done(asked.change(now, Change::Delete { flow })),
            Request::State { flow, take } => states(control_states::state(asked, flow, take)),
            Request::States { after } => states(control_states::states(asked, after)),
            Request::Whole => states(control_states::whole(asked)),
            Request::Adopt { state, more } => states(control_states::adopt(asked, &mut self.adopted, &state, more)),
            Request::Counters => Response::Counters(RunCounters { function: function.counters(), ports: ports() }),
            // Answered before.
            Request::Plan | Request::Replace => return None,
            Request::Debug { on, events } => {
                self.debug = on.then_some(DebugChoice { events });
                Response::Done {}
            }
        })
    }

    fn publish(&mut self, record: &TraceRecord) {
        let Some(choice) = self.debug else { return };
        if record.kind == TraceKind::Event && !choice.events {
            return;
        }
        if self.output.len() - self.written > MAX_PENDING {
            self.lost += 1;
            self.untold += 1;
            return;
        }
        if self.untold > 0 {
            let untold = std::mem::take(&mut self.untold);
            self.put(&Response::Lost(untold));
        }
        self.put(&Response::Trace(Box::new(record.clone())));
    }

    fn put(&mut self, response: &Response) {
        match serde_json::to_writer(&mut self.output, response) {
            Ok(()) => self.output.push(b'\n'),
            // Not reached by any type of this protocol; a client that got half a line must not get more.
            Err(_) => self.gone = true,
        }
    }

    /// Writes as much as the client takes. Returns whether it took anything.
    fn flush(&mut self) -> bool {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(count) if count > 0 => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.gone = true;
                    break;
                }
            }
        }
        let moved = self.written > 0;
        self.output.drain(..self.written);
        self.written = 0;
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;
    use weftwire_core::inspect::{FlowPage, FlowSummary, Inspect};
    use weftwire_core::{Arrivals, Deadline};

    fn client() -> (Client, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Client::new(ours), theirs)
    }

    fn record(kind: TraceKind) -> TraceRecord {
        let (state, event, next) = ("open".to_owned(), "packet".to_owned(), "open".to_owned());
        let (actions, registers) = (Vec::new(), Vec::new());
        TraceRecord {
            time: Time::ZERO,
            flow: FlowId(1),
            kind,
            state,
            event,
            row: None,
            line: None,
            source: None,
            next,
            actions,
            registers,
        }
    }

    #[test]
    fn a_client_that_does_not_read_loses_records_and_is_told() {
        let (mut client, mut theirs) = client();
        client.debug = Some(DebugChoice { events: true });
        let record = record(TraceKind::Event);
        let length = serde_json::to_string(&Response::Trace(Box::new(record.clone()))).unwrap().len() + 1;
        let fits = MAX_PENDING / length + 1;
        for _ in 0..fits + 5 {
            client.publish(&record);
        }
        assert_eq!(client.lost, 5);
        assert!(client.output.len() <= MAX_PENDING + length);
        // Once it reads, it hears of the loss in front of the next record.
        let mut all = Vec::new();
        while !client.output.is_empty() {
            client.flush();
            let mut bytes = [0; 65536];
            let count = theirs.read(&mut bytes).unwrap();
            all.extend_from_slice(&bytes[..count]);
        }
        client.publish(&record);
        client.flush();
        client.stream.shutdown(Shutdown::Write).unwrap();
        theirs.read_to_end(&mut all).unwrap();
        let lines: Vec<Response> = all
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(lines.len(), fits + 2);
        assert_eq!(lines[fits], Response::Lost(5));
    }

    #[test]
    fn snapshots_come_without_events_unless_those_are_asked_for() {
        let (mut client, _theirs) = client();
        client.publish(&record(TraceKind::Snapshot));
        assert!(client.output.is_empty());
        client.debug = Some(DebugChoice { events: false });
        client.publish(&record(TraceKind::Event));
        assert!(client.output.is_empty());
        client.publish(&record(TraceKind::Snapshot));
        assert!(!client.output.is_empty());
    }

    /// A function of so many flows that counts how many it was asked for.
    struct Many {
        flows: u64,
        told: std::cell::Cell<usize>,
    }

    impl Function for Many {
        fn frames(&mut self, _: Time, arrivals: &mut Arrivals, _: &mut Outbox) {
            arrivals.clear();
        }

        fn fire(&mut self, _: Time, _: &mut Outbox) {}

        fn next_deadline(&self) -> Option<Deadline<'_>> {
            None
        }
    }

    impl Inspect for Many {
        fn flows_after(&self, after: FlowId, most: usize) -> FlowPage {
            let end = self.flows.min(after.0 + most as u64);
            self.told.set(self.told.get() + (end - after.0) as usize);
            let flow = |number| FlowSummary {
                flow: FlowId(number),
                key: "a <-> b".into(),
                state: "open".into(),
                created: Time::ZERO,
                last_active: Time::ZERO,
                events: 1,
            };
            FlowPage { flows: (after.0 + 1..=end).map(flow).collect(), next: (end < self.flows).then_some(FlowId(end)) }
        }
    }

    fn serve(server: &mut ControlServer, function: &mut Many) {
        let (mut time, out) = (|_| (Time::ZERO, Clocks::default()), &mut Outbox::new());
        server.serve(&mut Asked { function, out, ports: &mut Vec::new, time: &mut time });
    }

    fn server(name: &str) -> (ControlServer, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("weft-control-{name}-{}.sock", std::process::id()));
        (ControlServer::open(&path, name, None).unwrap(), path)
    }

    #[test]
    fn the_work_of_a_call_is_bounded_whoever_asks_for_whatever() {
        let (mut server, path) = server("pages");
        let mut function = Many { flows: 21_000, told: Default::default() };
        let mut clients: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for client in &mut clients {
            client.write_all(&b"{\"request\":\"flows\"}\n".repeat(50)).unwrap();
        }
        for _ in 0..8 {
            let before = function.told.get();
            serve(&mut server, &mut function);
            assert!(function.told.get() - before <= MAX_PAGE, "more than a page at once");
        }
        assert_eq!(function.told.get(), 8 * MAX_PAGE);
        assert!(server.has_request());
        // All had the same number of turns.
        for client in clients {
            client.set_nonblocking(true).unwrap();
            let mut bytes = vec![0; 1 << 20];
            let length = (&client).read(&mut bytes).unwrap();
            assert!(bytes[..length].iter().filter(|byte| **byte == b'\n').count() >= 1);
        }
    }

    #[test]
    fn a_client_gets_all_flows_page_by_page() {
        let (mut server, path) = server("all");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut function = Many { flows: 1_000, told: Default::default() };
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    serve(&mut server, &mut function);
                    std::thread::yield_now();
                }
            });
            let flows =
                crate::control_client::ControlClient::connect(Some(&path)).and_then(|mut client| client.flows());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let numbers: Vec<u64> = flows.unwrap().iter().map(|flow| flow.flow.0).collect();
            assert!(numbers.into_iter().eq(1..=1_000));
        });
    }

    #[test]
    fn the_client_that_was_silent_for_longest_makes_room() {
        let (mut server, path) = server("full");
        let mut function = Many { flows: 0, told: Default::default() };
        let mut clients = Vec::new();
        for _ in 0..MAX_CLIENTS {
            clients.push(UnixStream::connect(&path).unwrap());
            serve(&mut server, &mut function);
        }
        let ask = |server: &mut ControlServer, function: &mut Many, client: &mut UnixStream| {
            client.write_all(b"{\"request\":\"counters\"}\n").unwrap();
            serve(server, function);
            let mut bytes = [0; 4096];
            let length = client.read(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        };
        assert!(ask(&mut server, &mut function, &mut clients[0]).starts_with("{\"counters\""));
        let mut late = UnixStream::connect(&path).unwrap();
        assert!(ask(&mut server, &mut function, &mut late).starts_with("{\"counters\""));
        // Not the first one, which has asked something, but the second one.
        let mut said = String::new();
        clients[1].read_to_string(&mut said).unwrap();
        assert!(said.contains("silent for longest"), "{said}");
        assert!(ask(&mut server, &mut function, &mut clients[0]).starts_with("{\"counters\""));
        assert!(ask(&mut server, &mut function, &mut clients[2]).starts_with("{\"counters\""));
    }

    #[test]
    fn other_users_do_not_take_the_place_of_root() {
        let (mut server, _) = server("root");
        let client = |root| {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            Client { root, ..Client::new(ours) }
        };
        for at in 0..MAX_CLIENTS {
            server.admit(client(at < 3));
        }
        for _ in 0..2 * MAX_CLIENTS {
            server.admit(client(false));
        }
        assert_eq!(server.clients.iter().filter(|client| client.root).count(), 3);
        for _ in 0..2 * MAX_CLIENTS {
            server.admit(client(true));
        }
        server.admit(client(false));
        assert_eq!(server.clients.iter().filter(|client| client.root).count(), MAX_CLIENTS);
    }

    #[test]
    fn only_root_may_replace_a_run_and_hears_why_not() {
        let mut function = Many { flows: 0, told: Default::default() };
        let mut ask = |root, replaceable: Option<Replaceable>, request| {
            let (mut client, _theirs) = client();
            client.root = root;
            let (mut time, out) = (|_| (Time::ZERO, Clocks::default()), &mut Outbox::new());
            let mut asked = Asked { function: &mut function, out, ports: &mut Vec::new, time: &mut time };
            let answer = client.answer_successor(&request, &mut asked, replaceable.as_ref());
            assert!(!client.replaces);
            match answer {
                Response::Error(reason) => reason,
                other => panic!("{other:?}"),
            }
        };
        let replaceable = |refusal: Option<&str>| {
            let refusal = refusal.map(str::to_owned);
            Some(Replaceable { seed: 1, key: Some([2, 3]), ports: vec![], lock: None, refusal })
        };
        for request in [Request::Plan, Request::Replace] {
            for (root, replaceable, says) in [
                (false, replaceable(None), "only root may ask"),
                (true, None, "it follows others, or is no machine"),
                (true, replaceable(Some("it is in a bad mood")), "it is in a bad mood"),
                (true, replaceable(None), "its function is no machine"),
            ] {
                let reason = ask(root, replaceable, request.clone());
                assert!(reason.starts_with("this run can't be replaced: ") && reason.contains(says), "{reason}");
            }
        }
    }

    #[test]
    fn a_second_run_of_a_name_is_refused() {
        let (first, path) = server("twin");
        let error = ControlServer::open(&path, "twin", None).err().unwrap().to_string();
        assert!(error.contains("`twin` is active already") && error.contains("--name"), "{error}");
        drop(first);
        assert!(!path.exists());
    }
}
