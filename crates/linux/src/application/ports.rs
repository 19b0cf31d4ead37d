//! Free local ports for connections that this end opens.

use super::Calls;
use crate::system::random_words;
use std::io;
use weftwire_core::{CallError, Endpoints, FlowId};

/// The dynamic ports (RFC 6335, section 6).
const FIRST: u16 = 49_152;
const COUNT: u16 = u16::MAX - FIRST + 1;

/// Draws ports: the first one at random, then one after the other, without those that are in use (RFC 6056, section 3.3.1).
#[derive(Debug)]
pub(super) struct FreePort {
    next: u16,
}

impl FreePort {
    pub(super) fn new() -> io::Result<FreePort> {
        let [word] = random_words()?;
        Ok(FreePort { next: (word % u64::from(COUNT)) as u16 })
    }

    /// Opens a connection from a free port, and writes it down in `endpoints`.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::Exists`] if all are in use.
    pub(super) fn connect(&mut self, endpoints: &mut Endpoints, calls: &mut Calls<'_>) -> Result<FlowId, CallError> {
        let mut opened = Err(CallError::NoConnections);
        for _ in 0..COUNT {
            endpoints.local_port = FIRST + self.next;
            self.next = (self.next + 1) % COUNT;
            opened = calls.connect(endpoints);
            if !matches!(opened, Err(CallError::Exists(_))) {
                break;
            }
        }
        opened
    }
}
