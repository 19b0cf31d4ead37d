//! The client's side of the control socket.

use crate::control::{ROOT_DIRECTORY, Request, Response, directory};
use crate::error::LinuxError;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A connection to a running function.
pub struct ControlClient {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl ControlClient {
    /// Connects to the control socket at `path`; without a path to the only one there is.
    ///
    /// # Errors
    /// [`LinuxError::Control`] if nothing answers, or if there are several sockets to choose from.
    pub fn connect(path: Option<&Path>) -> Result<ControlClient, LinuxError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => only_socket()?,
        };
        let stream = UnixStream::connect(&path).map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::PermissionDenied => "; it belongs to another user: use sudo",
                _ => "; is `weft run` active?",
            };
            LinuxError::Control(format!("cannot connect to control socket {}: {error}{hint}", path.display()))
        })?;
        Ok(ControlClient { path, stream: BufReader::new(stream) })
    }

    /// Asks and waits for the answer; debug records that come in between are not answers.
    ///
    /// # Errors
    /// [`LinuxError::Control`]: the run refused (its reason), or has ended.
    pub fn ask(&mut self, request: &Request) -> Result<Response, LinuxError> {
        let mut line = serde_json::to_string(request).map_err(|error| self.failed(&error))?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes()).map_err(|error| self.failed(&error))?;
        loop {
            match self.next_response()? {
                Some(Response::Error(reason)) => return Err(LinuxError::Control(reason)),
                Some(Response::Trace(_) | Response::Lost(_)) => {}
                Some(answer) => return Ok(answer),
                None => return Err(self.failed(&"the run has ended")),
            }
        }
    }

    /// The next line from the run; `None` when the run has ended.
    ///
    /// # Errors
    /// [`LinuxError::Control`] for a line that is no response.
    pub fn next_response(&mut self) -> Result<Option<Response>, LinuxError> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => return Ok(None),
            // The run ended before it took the connection.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
            Ok(_) => {}
        }
        serde_json::from_str(&line).map(Some).map_err(|error| self.failed(&error))
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> LinuxError {
        LinuxError::Control(format!("control socket {}: {reason}", self.path.display()))
    }
}

/// The only control socket in the user's and in root's directory.
fn only_socket() -> Result<PathBuf, LinuxError> {
    let mut directories = vec![directory(), PathBuf::from(ROOT_DIRECTORY)];
    directories.dedup();
    let mut sockets: Vec<PathBuf> = directories
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .filter(|path| !is_dead(path))
        .collect();
    sockets.sort_unstable();
    match sockets.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(LinuxError::Control(format!(
            "no run is active: there is no control socket in {}; start one with `weft run`, or name its socket with --control",
            directories.iter().map(|directory| directory.display().to_string()).collect::<Vec<_>>().join(" or ")
        ))),
        several => Err(LinuxError::Control(format!(
            "several runs are active; choose one with --control: {}",
            several.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// Whether a socket's file was left by a run that was killed.
fn is_dead(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}
