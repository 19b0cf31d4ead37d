//! An agent as an anchor of one session: the state of a change of the chain on one side of its host.

use crate::lock::Request;
use crate::message::Hop;
use crate::paths::Anchor;
use crate::session::Path;
use serde::{Deserialize, Serialize};
use weftwire_core::Time;

/// Between two attempts to say something, at first.
const PAUSE: i64 = 200_000_000;
/// The pause grows up to so many times twofold.
const DOUBLINGS: u32 = 4;

/// One side of the host, once a change has begun or ended there. It stays as long as the session: numbers on a path that was exchanged are not those of
/// the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Face {
    /// Numbers on both paths.
    pub anchor: Anchor,
    /// The latest change.
    pub request: Request,
    /// Boxes of the new path, and the right anchor; empty at the right anchor itself.
    pub hops: Vec<Hop>,
    /// The path that is to become the only one.
    pub new: Option<Path>,
    /// What windows of the end that opened the session are shifted by, and those of the other (RFC 7323, section 2).
    pub scale: [u8; 2],
    /// Whether the other anchor has said that nothing is left for it on the old path.
    pub other_is_done: bool,
    /// How often something was said without an answer.
    pub attempts: u32,
    /// When it is said again.
    pub due: Option<Time>,
}

impl Face {
    /// Puts off what is to be said again.
    pub fn wait(&mut self, now: Time) {
        self.due = Some(now.after(PAUSE << self.attempts.min(DOUBLINGS)));
    }
}
