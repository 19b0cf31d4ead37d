//! How connections end, for whoever calls `weft cat` and `weft listen`: a line, and an exit code.

use crate::output::WriteFailure;
use anyhow::Result;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use weftwire_core::Endpoints;
use weftwire_linux::LinuxError;
use weftwire_linux::application::{Outcome, Totals};

/// A connection that did not end as both ends wanted.
#[derive(Debug)]
pub struct BadEnding {
    line: String,
    code: u8,
}

impl fmt::Display for BadEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for BadEnding {}

/// The exit code if there is no way to the other end.
const NO_ROUTE: u8 = 6;

/// The exit code of a command that ends with this error. `docs/applications.md` has the table.
pub fn code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<BadEnding>(), error.downcast_ref::<LinuxError>()) {
        (Some(ending), _) => ending.code,
        (_, Some(LinuxError::NotOperational { .. })) => NO_ROUTE,
        _ => 1,
    }
}

/// What the command says of a connection that is over.
///
/// # Errors
/// It did not end well.
pub fn of(endpoints: Option<&Endpoints>, outcome: Outcome, totals: &Totals) -> Result<()> {
    let code = match &outcome {
        Outcome::Closed => return Ok(()),
        Outcome::Refused => 3,
        Outcome::Reset => 4,
        Outcome::TimedOut | Outcome::NotOpened => 5,
        Outcome::Unreachable => NO_ROUTE,
        Outcome::Lost => 7,
        // As a shell says of a command that was interrupted.
        Outcome::Stopped => 130,
        Outcome::Broken(_) => 1,
    };
    match outcome {
        Outcome::Broken(error) if error.kind() == ErrorKind::BrokenPipe => Err(WriteFailure::output(error).into()),
        outcome => Err(BadEnding { line: line(endpoints, &outcome, totals), code }.into()),
    }
}

/// A connection in one line.
pub fn line(endpoints: Option<&Endpoints>, outcome: &Outcome, totals: &Totals) -> String {
    let ends = endpoints.map_or_else(String::new, |ends| {
        let (local, remote) = (ends.local_address, ends.remote_address);
        format!("{}-{} ", SocketAddr::new(local, ends.local_port), SocketAddr::new(remote, ends.remote_port))
    });
    match totals {
        Totals { sent: 0, received: 0, unwritten: 0, .. } => format!("{ends}{outcome}"),
        totals => format!("{ends}{outcome}; {totals}"),
    }
}
