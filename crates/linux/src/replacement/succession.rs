//! The successor's side.

use super::agreement::{NewStep, Successor};
use super::descriptors::{Inbox, Kind, send};
use super::word::SharedWord;
use super::{PROTOCOL, Passed, Plan, Stopped};
use crate::control::{Request, Response};
use crate::control_client::ControlClient;
use crate::device::PortSpec;
use crate::error::LinuxError;
use crate::run_loop::OpenPort;
use crate::system::monotonic_ns;
use std::any::Any;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use weftwire_core::{Change, Port};

/// How long the successor waits for each message of the predecessor.
const PATIENCE: Duration = Duration::from_secs(3);

/// A run that is about to be taken over.
pub struct Succession {
    stream: UnixStream,
    inbox: Inbox,
    word: SharedWord,
    state: Successor,
    listener: Option<UnixListener>,
    lock: Option<OwnedFd>,
    ports: Vec<(Port, OwnedFd)>,
    /// To what the function changes once its flows are there.
    change: Option<(Change, Box<dyn Any + Send>)>,
    process: u32,
}

/// What the predecessor says, as far as the function has to do with it.
pub(crate) enum Heard {
    /// Where it has stopped.
    Stopped(Stopped),
    /// A flow.
    Flow(Vec<u8>),
    /// There are no more.
    Last,
    /// The ports are this process's. With `false` the predecessor died before all flows were here.
    Run(bool),
}

/// How long nobody served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// The process that served before.
    pub(crate) process: u32,
    /// How many flows came.
    pub(crate) flows: u64,
    /// `CLOCK_MONOTONIC` of the last input there, if there was any.
    pub(crate) last_input: Option<i64>,
    /// `CLOCK_MONOTONIC` when it stopped.
    pub(crate) stopped: i64,
    /// `CLOCK_MONOTONIC` when this process took the ports.
    pub(crate) taken: i64,
}

impl Succession {
    /// Asks a run what it would take to replace it. Nothing changes.
    ///
    /// # Errors
    /// [`LinuxError::Control`]: the run can't be replaced, and why.
    pub fn plan(client: &mut ControlClient) -> Result<Plan, LinuxError> {
        match client.ask(&Request::Plan)? {
            Response::Plan(plan) if plan.protocol == PROTOCOL => Ok(*plan),
            Response::Plan(plan) => Err(LinuxError::Control(format!(
                "the run hands over by version {} of the protocol, and this program by {PROTOCOL}; move its flows by `weft flows snapshot`",
                plan.protocol
            ))),
            _ => Err(LinuxError::Control("the run gave an answer to another question".into())),
        }
    }

    /// Gets the descriptors of a run. It goes on serving.
    ///
    /// # Errors
    /// [`LinuxError::Control`]: the run refuses, or ends.
    pub fn begin(mut client: ControlClient, plan: &Plan) -> Result<Succession, LinuxError> {
        client.ask(&Request::Replace)?;
        let failed = |error| LinuxError::system("get the ports of the run that is replaced", error);
        let stream = client.into_stream();
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        send(&stream, Kind::Begin, b"", &[]).map_err(failed)?;
        let mut inbox = Inbox::default();
        let message = loop {
            if let Some(message) = inbox.next().map_err(failed)? {
                break message;
            }
            if !inbox.receive(&stream).map_err(failed)? {
                return Err(failed(ErrorKind::UnexpectedEof.into()));
            }
        };
        let wrong = || failed(io::Error::new(ErrorKind::InvalidData, "they did not come as they should"));
        let (Kind::Descriptors, bytes) = message else { return Err(wrong()) };
        let passed: Passed = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        let mut descriptors = std::mem::take(&mut inbox.descriptors).into_iter();
        let mut next = || descriptors.next().ok_or_else(wrong);
        let word = SharedWord::of(next()?).map_err(failed)?;
        let listener = Some(UnixListener::from(next()?));
        let ports = passed.ports.iter().map(|port| Ok((*port, next()?))).collect::<Result<_, LinuxError>>()?;
        let lock = if passed.lock { Some(next()?) } else { None };
        let (state, change, process) = (Successor::Preparing, None, plan.process);
        Ok(Succession { stream, inbox, word, state, listener, lock, ports, change, process })
    }

    /// The ports that these describe, of what came.
    ///
    /// # Errors
    /// There is no such port, or its interface is gone.
    pub fn open_ports(&mut self, specs: &[PortSpec]) -> Result<Vec<OpenPort>, LinuxError> {
        let mut open = Vec::new();
        for spec in specs {
            let place = self.ports.iter().position(|(port, _)| *port == spec.port);
            let Some(place) = place else {
                return Err(LinuxError::Control(format!("the run that is replaced has no port {}", spec.port)));
            };
            let (port, descriptor) = self.ports.remove(place);
            open.push(OpenPort {
                port,
                name: spec.device.interface().to_owned(),
                device: spec.device.take_over(descriptor)?,
            });
        }
        Ok(open)
    }

    /// The listening control socket, once.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }

    /// The lock on the run's name, if it has one; once.
    pub fn take_lock(&mut self) -> Option<OwnedFd> {
        self.lock.take()
    }

    /// The function becomes this once it has its flows.
    pub fn set_change(&mut self, change: Change, prepared: Box<dyn Any + Send>) {
        self.change = Some((change, prepared));
    }

    /// What it becomes, once.
    pub(crate) fn take_change(&mut self) -> Option<(Change, Box<dyn Any + Send>)> {
        self.change.take()
    }

    /// The process that serves.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// Says that all is open and privileges are gone.
    pub(crate) fn ready(&mut self) {
        if self.state.prepared() == NewStep::SendReady {
            self.say(Kind::Ready, b"");
        }
    }

    /// Says that all flows are here.
    pub(crate) fn adopted(&mut self) {
        if self.state.last() == NewStep::SendAdopted {
            self.say(Kind::Adopted, b"");
        }
    }

    /// Says why it can't go on. Unless the predecessor is dead, it does.
    pub(crate) fn refuse(&mut self, reason: &str) {
        self.state.give_up(&self.word);
        self.say(Kind::Refused, reason.as_bytes());
    }

    /// Waits for what comes next.
    ///
    /// # Errors
    /// The predecessor keeps the ports.
    pub(crate) fn next(&mut self) -> Result<Heard, LinuxError> {
        loop {
            match self.inbox.next() {
                Ok(Some((kind, bytes))) => match kind {
                    Kind::Stopped => match serde_json::from_slice(&bytes) {
                        Ok(stopped) => return Ok(Heard::Stopped(stopped)),
                        Err(error) => return self.fail(&error.to_string()),
                    },
                    Kind::Flow => return Ok(Heard::Flow(bytes)),
                    Kind::Last => return Ok(Heard::Last),
                    Kind::Go => {
                        let step = self.state.go(&self.word);
                        return self.become_owner(step);
                    }
                    _ => return self.fail("what came is no message of a run that is replaced"),
                },
                Ok(None) => match self.inbox.receive(&self.stream) {
                    Ok(true) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        let step = self.state.give_up(&self.word);
                        return self.become_owner(step);
                    }
                    // Closed, or reset: it has taken its offer back, or it is dead.
                    Ok(false) | Err(_) => {
                        let step = self.state.gone(&self.word);
                        return self.become_owner(step);
                    }
                },
                Err(error) => return self.fail(&error.to_string()),
            }
        }
    }

    fn become_owner(&mut self, step: NewStep) -> Result<Heard, LinuxError> {
        match step {
            NewStep::Run | NewStep::RunWithoutFlows => {
                self.say(Kind::Taken, b"");
                Ok(Heard::Run(step == NewStep::Run))
            }
            _ => Err(LinuxError::Control(format!(
                "process {} keeps the ports: it got no answer within {} ms, or was told to end; nothing has changed",
                self.process,
                super::agreement::PATIENCE / 1_000_000
            ))),
        }
    }

    fn fail(&mut self, reason: &str) -> Result<Heard, LinuxError> {
        self.refuse(reason);
        Err(LinuxError::Control(reason.to_owned()))
    }

    /// Nobody may be there to hear it; the word says all that counts.
    fn say(&self, kind: Kind, bytes: &[u8]) {
        let _ = send(&self.stream, kind, bytes, &[]);
    }

    /// How it went, up to here.
    pub(crate) fn pause(&self, stopped: Option<Stopped>, flows: u64) -> Option<Pause> {
        let Stopped { last_input, stopped, .. } = stopped?;
        Some(Pause { process: self.process, flows, last_input, stopped, taken: monotonic_ns() })
    }
}
