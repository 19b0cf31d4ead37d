//! A transport that is a machine, for programs: connections that read and write as those of `std::net` do.
//!
//! ```no_run
//! use std::io::{Read, Write};
//! use weftwire_core::{Endpoints, Function, Ports};
//! use weftwire_linux::Transport;
//!
//! /// Asks a server for its page. `start` makes the function, e.g. by
//! /// `catalog.machine("tcp.xl", &[])?.start("reference", ports, seed, key)`.
//! fn page<E>(
//!     start: impl FnOnce(&Ports) -> Result<Box<dyn Function>, E> + Send + 'static,
//!     endpoints: &Endpoints,
//! ) -> Result<String, Box<dyn std::error::Error>>
//! where
//!     E: std::error::Error + Send + Sync + 'static,
//! {
//!     let transport = Transport::open(&["1=tun:weft0".parse()?], start)?;
//!     let mut stream = transport.connect(endpoints)?;
//!     stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
//!     stream.finish_sending()?;
//!     let mut page = String::new();
//!     stream.read_to_string(&mut page)?;
//!     drop(stream);
//!     transport.close()?;
//!     Ok(page)
//! }
//! ```
//!
//! A thread runs the function and joins each of its connections with a pair of sockets of this process, of which a [`Stream`] is the other
//! end. So a slow reader holds the sender up, as far as the machine has a receive buffer, and memory is bounded.

use crate::application::{BACKLOG, Ending, Joints, Open, Request, Sockets};
use crate::device::PortSpec;
use crate::error::LinuxError;
use crate::recorder::Recorder;
use crate::report::Report;
use crate::run_loop::{OpenPort, Run, RunOptions};
use crate::signals::StopSignal;
use crate::system::Waker;
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weftwire_core::{Endpoints, Function, Listen, Ports};

/// A function that runs on ports of this machine, on a thread of its own. When it is dropped, its connections are broken off;
/// [`Transport::close`] waits for them.
///
/// - connections: [`Transport::connect`], [`Transport::connect_within`], [`Transport::listen`];
/// - its end: [`Transport::close`].
///
/// The function must notify its application as those of `examples/transports` do: `established`, `finished`, `refused`, `reset`,
/// `timed_out`.
#[derive(Debug)]
pub struct Transport {
    requests: Option<Sender<Request>>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<Report, LinuxError>>>,
}

impl Transport {
    /// Opens the ports and starts the function that `start` makes for them. Needs the right to open them.
    ///
    /// # Errors
    /// See [`LinuxError`]; [`LinuxError::Function`] if `start` fails.
    pub fn open<E: Error + Send + Sync + 'static>(
        ports: &[PortSpec],
        start: impl FnOnce(&Ports) -> Result<Box<dyn Function>, E> + Send + 'static,
    ) -> Result<Transport, LinuxError> {
        let failed = |error| LinuxError::system("start a transport", error);
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let (requests, requested) = channel();
        let (begun, begins) = sync_channel(1);
        let (ports, woken) = (ports.to_vec(), waker.clone());
        let work = move || run(&ports, start, Sockets::new(requested, woken), &begun);
        let thread = std::thread::Builder::new().name("transport".into()).spawn(work).map_err(failed)?;
        let mut transport = Transport { requests: Some(requests), waker, thread: Some(thread) };
        // The thread says nothing only if it could not begin; then it has ended, and says why.
        match begins.recv() {
            Ok(()) => Ok(transport),
            Err(_) => Err(transport.join().err().unwrap_or_else(|| failed(ErrorKind::Other.into()))),
        }
    }

    /// Opens a connection, and waits until it is open. With the local port number 0 it gets a free one.
    ///
    /// # Errors
    /// [`ErrorKind::ConnectionRefused`], [`ErrorKind::TimedOut`], [`ErrorKind::ConnectionReset`]; others say what is wrong.
    pub fn connect(&self, endpoints: &Endpoints) -> io::Result<Stream> {
        self.open_connection(endpoints, None)
    }

    /// Opens a connection, and waits for that no longer than this.
    ///
    /// # Errors
    /// As [`Transport::connect`].
    pub fn connect_within(&self, endpoints: &Endpoints, limit: Duration) -> io::Result<Stream> {
        self.open_connection(endpoints, Some(limit))
    }

    /// Takes connections that others open to this end, from now on until the transport ends; those that nobody accepts are reset when
    /// there are too many.
    ///
    /// # Errors
    /// The transport has ended.
    pub fn listen(&self, local: Listen) -> io::Result<Listener> {
        let (accepted, connections) = sync_channel(BACKLOG);
        self.request(Request::Listen(local, accepted))?;
        Ok(Listener(connections))
    }

    /// Waits until all connections have ended, in both directions and for the other end too, and ends the transport. Takes no new ones.
    ///
    /// # Errors
    /// A port failed for good.
    pub fn close(mut self) -> Result<Report, LinuxError> {
        // If it has ended already, the thread says why.
        let _ = self.request(Request::Finish);
        self.join()
    }

    fn open_connection(&self, endpoints: &Endpoints, within: Option<Duration>) -> io::Result<Stream> {
        let (answer, answered) = channel();
        self.request(Request::Connect(*endpoints, within, answer))?;
        answered.recv().map_err(|_| has_ended())?.map(Stream::new)
    }

    fn request(&self, request: Request) -> io::Result<()> {
        let requests = self.requests.as_ref().ok_or_else(has_ended)?;
        requests.send(request).map_err(|_| has_ended())?;
        self.waker.wake();
        Ok(())
    }

    /// Waits for the thread, which ends when nobody can make requests and its connections have ended, or are broken off.
    fn join(&mut self) -> Result<Report, LinuxError> {
        self.requests = None;
        self.waker.wake();
        let panicked = || LinuxError::system("run a transport", io::Error::other("its thread has panicked"));
        let thread = self.thread.take().ok_or_else(panicked)?;
        thread.join().map_err(|_| panicked())?
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Nobody is left to tell.
            let _ = self.join();
        }
    }
}

fn has_ended() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the transport has ended")
}

/// What the thread does.
fn run<E: Error + Send + Sync + 'static>(
    ports: &[PortSpec],
    start: impl FnOnce(&Ports) -> Result<Box<dyn Function>, E>,
    sockets: Sockets,
    begun: &SyncSender<()>,
) -> Result<Report, LinuxError> {
    let open = |spec: &PortSpec| {
        let device = spec.device.open()?;
        Ok(OpenPort { port: spec.port, name: spec.device.interface().to_owned(), device })
    };
    let ports = ports.iter().map(open).collect::<Result<Vec<_>, LinuxError>>()?;
    let links = Ports::new(ports.iter().map(|open| (open.port, open.device.link())));
    let mut function = start(&links).map_err(|error| LinuxError::Function(Box::new(error)))?;
    let mut joints = Joints::new(sockets)?;
    let run = Run {
        succession: None,
        ports,
        application: &mut joints,
        recorder: Recorder::new(),
        control: None,
        commands: None,
        flows: Vec::new(),
        stop: StopSignal::never()?,
        messages: Box::new(io::sink()),
        options: RunOptions { silent: true, ..RunOptions::default() },
    };
    // Who waits for it has not gone away.
    let _ = begun.send(());
    run.run(function.as_mut())
}

/// Connections that others open.
#[derive(Debug)]
pub struct Listener(Receiver<Open>);

impl Listener {
    /// Waits for the next connection.
    ///
    /// # Errors
    /// The transport has ended.
    pub fn accept(&self) -> io::Result<Stream> {
        self.0.recv().map(Stream::new).map_err(|_| has_ended())
    }
}

/// A connection. Reading gives 0 bytes when the other end has said that it sends no more; when the connection has ended badly, reading and
/// writing say how: [`ErrorKind::ConnectionReset`], [`ErrorKind::TimedOut`], [`ErrorKind::ConnectionAborted`].
///
/// Dropping it closes it for sending, and resets the connection if the other end still has something to say.
#[derive(Debug)]
pub struct Stream {
    socket: UnixStream,
    ending: Ending,
    endpoints: Endpoints,
}

impl Stream {
    fn new((socket, ending, endpoints): Open) -> Stream {
        Stream { socket, ending, endpoints }
    }

    /// Both ends.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Says that nothing more will be written.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn finish_sending(&self) -> io::Result<()> {
        self.outcome(self.socket.shutdown(Shutdown::Write))
    }

    /// The same connection once more, e.g. to read on one thread and to write on another.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(Stream { socket: self.socket.try_clone()?, ending: self.ending.clone(), endpoints: self.endpoints })
    }

    /// Reading and writing wait no longer than this, and say [`ErrorKind::WouldBlock`] then. `None`: without end.
    ///
    /// # Errors
    /// The time is 0.
    pub fn set_patience(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(limit)?;
        self.socket.set_write_timeout(limit)
    }

    /// What an end of bytes and errors of the socket mean: how the connection has ended, if it has badly.
    fn outcome<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let passing = |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
        match (result, self.ending.get()) {
            (Err(error), Some((kind, text))) if !passing(&error) => Err(io::Error::new(*kind, text.clone())),
            (result, _) => result,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.socket.read(buffer) {
            Ok(0) if !buffer.is_empty() && self.ending.get().is_some() => {
                self.outcome(Err(ErrorKind::UnexpectedEof.into()))
            }
            read => self.outcome(read),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.socket.write(bytes);
        self.outcome(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Readable and writable when the connection is.
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
