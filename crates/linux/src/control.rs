//! The control socket: looking into a running function and changing it from outside.
//!
//! A unix stream socket; both ways one JSON document a line ([`Request`], [`Response`]). Reading, line lengths, clients
//! and stored debug records are all bounded, nothing ever waits for a client, and a request is only taken once the
//! client has read the previous answer.

use crate::error::LinuxError;
use crate::privileges::{User, is_root};
use crate::system::poll_input;
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary};
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{FlowId, Function};

/// Most clients at once; one more is turned away.
pub const MAX_CLIENTS: usize = 16;
/// Longest request in bytes; a client that sends a longer one is turned away.
pub const MAX_REQUEST: usize = 4096;
/// Bytes of debug records kept for a client that does not read; further records are lost, and counted.
pub const MAX_PENDING: usize = 256 * 1024;

/// What a client may ask.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// All live flows.
    Flows,
    /// Everything about one flow.
    Flow {
        /// Which.
        flow: FlowId,
    },
    /// Sets a register of a flow.
    Set {
        /// Which flow.
        flow: FlowId,
        /// The register's name.
        register: String,
        /// Its new value.
        value: i64,
    },
    /// Deletes a flow.
    Delete {
        /// Which.
        flow: FlowId,
    },
    /// The function's counters.
    Counters,
    /// Starts or stops a stream of debug records to this client.
    Debug {
        /// Start or stop.
        on: bool,
        /// All events, not only snapshots, samples and errors.
        #[serde(default)]
        events: bool,
    },
}

/// What the server answers. `trace` and `lost` come unasked while debugging is on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// All live flows.
    Flows(Vec<FlowSummary>),
    /// Everything about one flow.
    Flow(Box<FlowDetail>),
    /// The function's counters.
    Counters(Counters),
    /// It was done.
    Done {},
    /// It was not done, and why.
    Error(String),
    /// A debug record.
    Trace(Box<TraceRecord>),
    /// So many debug records were lost here, as the client did not read them in time.
    Lost(u64),
}

/// The server's side of the control socket. Its file goes away with it.
pub struct ControlServer {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
    /// Records lost by clients that are gone.
    lost: u64,
}

impl ControlServer {
    /// Opens the socket `path` for `owner` alone (and root). A file left by a run that is dead is replaced.
    ///
    /// # Errors
    /// [`LinuxError::NameTaken`] if another run answers there; [`LinuxError::System`].
    pub fn open(path: &Path, name: &str, owner: Option<User>) -> Result<ControlServer, LinuxError> {
        let failed = |error| LinuxError::system(format!("make control socket {}", path.display()), error);
        if UnixStream::connect(path).is_ok() {
            return Err(LinuxError::NameTaken { name: name.to_owned(), path: path.display().to_string() });
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        // SAFETY: sets the process's file mode mask and puts it back; no other thread makes files meanwhile.
        let listener = unsafe {
            let mask = libc::umask(0o177);
            let listener = UnixListener::bind(path);
            libc::umask(mask);
            listener.map_err(failed)?
        };
        if let Some(owner) = owner.filter(|_| is_root()) {
            std::os::unix::fs::lchown(path, Some(owner.uid), Some(owner.gid)).map_err(failed)?;
        }
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(ControlServer { listener, path: path.to_owned(), clients: Vec::new(), lost: 0 })
    }

    /// Takes new clients, answers requests and sends what is pending, all without waiting. Returns the flows that were
    /// deleted by request.
    pub(crate) fn serve(&mut self, function: &mut dyn Function) -> Vec<FlowId> {
        let mut deleted = Vec::new();
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client::new(stream));
            }
        }
        for client in &mut self.clients {
            client.serve(function, &mut deleted);
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
        descriptors.extend(self.clients.iter().map(|client| {
            let writing = if client.output.is_empty() { 0 } else { libc::POLLOUT };
            // With an answer unread no further request is taken, so there is no reading either.
            let reading = if client.awaits_reader() { 0 } else { libc::POLLIN };
            libc::pollfd { fd: client.stream.as_raw_fd(), events: reading | writing, revents: 0 }
        }));
    }

    /// Debug records that clients lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost + self.clients.iter().map(|client| client.lost).sum::<u64>()
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // It may be gone already; there is nobody to tell.
        let _ = fs::remove_file(&self.path);
    }
}

/// What a client wants to see while debugging.
#[derive(Clone, Copy, PartialEq, Eq)]
struct DebugChoice {
    events: bool,
}

struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    /// Bytes to write; the first `written` are out already.
    output: Vec<u8>,
    written: usize,
    debug: Option<DebugChoice>,
    /// Records lost, in all and not yet told.
    lost: u64,
    untold: u64,
    gone: bool,
}

impl Client {
    fn new(stream: UnixStream) -> Client {
        let (input, output) = (Vec::new(), Vec::new());
        Client { stream, input, output, written: 0, debug: None, lost: 0, untold: 0, gone: false }
    }

    /// Reads once at most, so that no client can hold up the others or the frames.
    fn serve(&mut self, function: &mut dyn Function, deleted: &mut Vec<FlowId>) {
        self.flush();
        self.answer_requests(function, deleted);
        if !self.gone && !self.awaits_reader() {
            self.read();
            self.answer_requests(function, deleted);
        }
    }

    fn answer_requests(&mut self, function: &mut dyn Function, deleted: &mut Vec<FlowId>) {
        while !self.gone && !self.awaits_reader() {
            let Some(end) = self.input.iter().position(|byte| *byte == b'\n') else { return };
            let answer = match serde_json::from_slice(&self.input[..end]) {
                Ok(request) => {
                    let flow = if let Request::Delete { flow } = request { Some(flow) } else { None };
                    let answer = self.answer(request, function);
                    deleted.extend(flow.filter(|_| answer == Response::Done {}));
                    answer
                }
                Err(error) => Response::Error(format!("not a request: {error}")),
            };
            self.input.drain(..=end);
            self.put(&answer);
            self.flush();
        }
    }

    /// A client that debugs may send requests while records are pending; others read each answer first.
    fn awaits_reader(&self) -> bool {
        self.output.len() - self.written > if self.debug.is_some() { MAX_PENDING } else { 0 }
    }

    fn read(&mut self) {
        let mut bytes = [0; MAX_REQUEST];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.gone = true,
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                if self.input.len() > MAX_REQUEST && !self.input.contains(&b'\n') {
                    self.put(&Response::Error(format!("a request has at most {MAX_REQUEST} bytes")));
                    self.flush();
                    self.gone = true;
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
    }

    fn answer(&mut self, request: Request, function: &mut dyn Function) -> Response {
        let done = |result: Result<(), weftwire_core::inspect::InspectError>| match result {
            Ok(()) => Response::Done {},
            Err(error) => Response::Error(error.to_string()),
        };
        match request {
            Request::Flows => Response::Flows(function.flows()),
            Request::Flow { flow } => match function.flow(flow) {
                Some(detail) => Response::Flow(Box::new(detail)),
                None => Response::Error(weftwire_core::inspect::InspectError::NoFlow(flow).to_string()),
            },
            Request::Set { flow, register, value } => done(function.set_register(flow, &register, value)),
            Request::Delete { flow } => done(function.delete(flow)),
            Request::Counters => Response::Counters(function.counters()),
            Request::Debug { on, events } => {
                self.debug = on.then_some(DebugChoice { events });
                Response::Done {}
            }
        }
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

    /// Writes as much as the client takes.
    fn flush(&mut self) {
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
        self.output.drain(..self.written);
        self.written = 0;
    }
}

/// Where control sockets live: `/run/weftwire` for root, else `weftwire` in the user's run-time directory.
pub fn directory() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) if !is_root() => Path::new(&directory).join("weftwire"),
        _ => PathBuf::from(ROOT_DIRECTORY),
    }
}

/// The directory of runs started by root.
pub(crate) const ROOT_DIRECTORY: &str = "/run/weftwire";

/// The default socket of a run called `name`, and its directory made ready. In root's directory everybody may remove
/// his own files and nobody else's, like in `/tmp`: a run that has dropped its privileges removes its socket.
///
/// # Errors
/// [`LinuxError::System`] if the directory can't be made.
pub fn default_path(name: &str) -> Result<PathBuf, LinuxError> {
    let directory = directory();
    let action =
        || format!("make the directory {} (name another place for the socket with --control)", directory.display());
    let failed = |error| LinuxError::system(action(), error);
    if !directory.is_dir() {
        fs::create_dir_all(&directory).map_err(failed)?;
        let mode = if is_root() { 0o1777 } else { 0o700 };
        fs::set_permissions(&directory, Permissions::from_mode(mode)).map_err(failed)?;
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' };
    let name: String = name.chars().map(plain).take(64).collect();
    Ok(directory.join(format!("{name}.sock")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;
    use weftwire_core::Time;

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

    #[test]
    fn requests_have_a_plain_form() {
        let read = |text: &str| serde_json::from_str::<Request>(text);
        assert_eq!(read(r#"{"request":"flow","flow":3}"#).unwrap(), Request::Flow { flow: FlowId(3) });
        assert_eq!(read(r#"{"request":"debug","on":true}"#).unwrap(), Request::Debug { on: true, events: false });
        assert!(read(r#"{"request":"flow","flow":3,"more":1}"#).is_err());
        assert_eq!(serde_json::to_string(&Response::Done {}).unwrap(), r#"{"done":{}}"#);
    }

    #[test]
    fn a_second_run_of_a_name_is_refused_and_a_dead_one_replaced() {
        let path = std::env::temp_dir().join(format!("weft-control-{}.sock", std::process::id()));
        let first = ControlServer::open(&path, "twin", None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = ControlServer::open(&path, "twin", None).err().unwrap().to_string();
        assert!(error.contains("`twin` is active already") && error.contains("--name"), "{error}");
        drop(first);
        assert!(!path.exists());
        // A listener that is closed without its file being removed: what a killed run leaves.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(ControlServer::open(&path, "twin", None).unwrap());
        assert!(!path.exists());
    }
}
