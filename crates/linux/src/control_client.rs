//! The client's side of the control socket.

use crate::control::{Request, Response, STATE_PART, State};
use crate::error::LinuxError;
use crate::local;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_core::FlowId;
use weftwire_core::inspect::FlowSummary;

/// How long a run has to take a connection, and to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer in bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// A connection to a running function.
pub struct ControlClient {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl ControlClient {
    /// Connects to the control socket at `path`; without a path to the only one there is. Only root's and this user's own
    /// runs are talked to.
    ///
    /// # Errors
    /// [`LinuxError::Control`] if nothing answers, or if there are several sockets to choose from.
    pub fn connect(path: Option<&Path>) -> Result<ControlClient, LinuxError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => only_socket()?,
        };
        let stream = local::connect(&path, PATIENCE).map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::PermissionDenied => "; it belongs to another user: use sudo",
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => "; is `weft run` active?",
                _ => "",
            };
            LinuxError::Control(format!("cannot connect to control socket {}: {error}{hint}", path.display()))
        })?;
        Ok(ControlClient { path, stream: BufReader::new(stream) })
    }

    /// Asks and waits for the answer; debug records that come in between are not answers.
    ///
    /// # Errors
    /// [`LinuxError::Control`]: the run refused (its reason), has ended, or does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Response, LinuxError> {
        self.wait_at_most(Some(PATIENCE))?;
        let mut line = serde_json::to_string(request).map_err(|error| self.failed(&error))?;
        line.push('\n');
        // It may have been turned away, and told why.
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        loop {
            match self.next_line()? {
                Some(Response::Error(reason)) => return Err(LinuxError::Control(reason)),
                Some(Response::Trace(_) | Response::Lost(_)) => {}
                Some(answer) => return Ok(answer),
                None => {
                    return Err(sent.map_or_else(|error| self.failed(&error), |()| self.failed(&"the run has ended")));
                }
            }
        }
    }

    /// All live flows, page by page: those that end or begin meanwhile may be among them or not.
    ///
    /// # Errors
    /// As of [`ControlClient::ask`].
    pub fn flows(&mut self) -> Result<Vec<FlowSummary>, LinuxError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let Response::Page(page) = self.ask(&Request::Flows { after })? else {
                return Err(self.failed(&"the run gave an answer to another question"));
            };
            all.extend(page.flows);
            if page.next.is_none() || page.next <= after {
                return Ok(all);
            }
            after = page.next;
        }
    }

    /// The state of one flow; with `take` it is in the run no more.
    ///
    /// # Errors
    /// As of [`ControlClient::ask`].
    pub fn state(&mut self, flow: FlowId, take: bool) -> Result<State, LinuxError> {
        match self.ask(&Request::State { flow, take })? {
            Response::States(mut page) if page.states.len() == 1 => Ok(page.states.remove(0)),
            _ => Err(self.failed(&"the run gave an answer to another question")),
        }
    }

    /// The states of all live flows, a page at a time, each as it was when its page was made: `each` gets them.
    ///
    /// # Errors
    /// As of [`ControlClient::ask`], and those of `each`.
    pub fn states<E: From<LinuxError>>(&mut self, mut each: impl FnMut(&State) -> Result<(), E>) -> Result<(), E> {
        let mut after = None;
        loop {
            let Response::States(page) = self.ask(&Request::States { after })? else {
                return Err(self.failed(&"the run gave an answer to another question").into());
            };
            page.states.iter().try_for_each(&mut each)?;
            if page.next.is_none() || page.next <= after {
                return Ok(());
            }
            after = page.next;
        }
    }

    /// The state of the whole function.
    ///
    /// # Errors
    /// As of [`ControlClient::ask`].
    pub fn whole(&mut self) -> Result<Vec<u8>, LinuxError> {
        match self.ask(&Request::Whole)? {
            Response::Whole { state } => Ok(state),
            _ => Err(self.failed(&"the run gave an answer to another question")),
        }
    }

    /// Puts a flow in: the number that it has there.
    ///
    /// # Errors
    /// As of [`ControlClient::ask`].
    pub fn adopt(&mut self, state: &[u8]) -> Result<FlowId, LinuxError> {
        let mut parts = state.chunks(STATE_PART).peekable();
        while let Some(part) = parts.next() {
            let request = Request::Adopt { state: part.to_vec(), more: parts.peek().is_some() };
            if let Response::Adopted { flow } = self.ask(&request)? {
                return Ok(flow);
            }
        }
        Err(self.failed(&"the run gave an answer to another question"))
    }

    /// The next line from the run, however long it takes; `None` when the run has ended.
    ///
    /// # Errors
    /// [`LinuxError::Control`] for a line that is no response.
    pub fn next_response(&mut self) -> Result<Option<Response>, LinuxError> {
        self.wait_at_most(None)?;
        self.next_line()
    }

    /// The connection itself, once every question has its answer.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream.into_inner()
    }

    fn next_line(&mut self) -> Result<Option<Response>, LinuxError> {
        let mut line = String::new();
        match self.stream.by_ref().take(MAX_ANSWER).read_line(&mut line) {
            Ok(0) => return Ok(None),
            // The run ended before it took the connection.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(self.failed(&format!("no answer within {PATIENCE:?}")));
            }
            Err(error) => return Err(self.failed(&error)),
            Ok(_) => {}
        }
        serde_json::from_str(&line).map(Some).map_err(|error| self.failed(&error))
    }

    fn wait_at_most(&self, patience: Option<Duration>) -> Result<(), LinuxError> {
        self.stream.get_ref().set_read_timeout(patience).map_err(|error| self.failed(&error))
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> LinuxError {
        LinuxError::Control(format!("control socket {}: {reason}", self.path.display()))
    }
}

/// The only control socket of this user's runs and of root's. One that others made, or on which nobody listens, does not
/// count.
fn only_socket() -> Result<PathBuf, LinuxError> {
    let mut sockets = local::sockets_of_runs();
    sockets.retain(|socket| match local::connect(socket, PATIENCE) {
        Ok(_) => true,
        Err(error) if error.get_ref().is_some_and(|inner| inner.is::<local::StrangePeer>()) => false,
        Err(error) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
    });
    let list = |paths: &[PathBuf], between| -> String {
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(between)
    };
    match sockets.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(LinuxError::Control(format!(
            "no run is active: there is no control socket below {}; start one with `weft run`, or name its socket with --control",
            list(&local::folders_of_runs(), " or ")
        ))),
        several => Err(LinuxError::Control(format!(
            "several runs are active; choose one with --control: {}",
            list(several, ", ")
        ))),
    }
}
