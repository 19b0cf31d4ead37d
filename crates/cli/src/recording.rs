//! Recordings of inputs on disk: the file, and beside it the seed and the keys.

use crate::output;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use weftwire_capture::{Recorded, inputs};
use weftwire_core::{Function, Ports};
use weftwire_linux::tape::{Failure, FileTape};

/// What a function's secrets are made from.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Keys {
    /// The seed of its random numbers.
    pub seed: u64,
    /// Its hash key, if that is not made from the seed.
    pub hash_key: Option<[u64; 2]>,
}

impl Keys {
    /// Where the keys of a recording are.
    fn path(recording: &Path) -> PathBuf {
        let mut path = recording.as_os_str().to_owned();
        path.push(".keys");
        path.into()
    }

    /// Those of a recording.
    pub fn read(recording: &Path) -> Result<Keys> {
        let path = Keys::path(recording);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}, the keys of the recorded run", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} has no keys of a run", path.display()))
    }
}

/// A recording that is about to begin.
pub struct Recording(File);

impl Recording {
    /// Opens the file, and writes the keys beside it, for their owner alone.
    pub fn create(path: &Path, seed: u64, hash_key: Option<[u64; 2]>) -> Result<Recording> {
        let file = output::open_growing(path, false)?;
        let keys = Keys::path(path);
        let mut secret = output::open_secret(&keys)?;
        let written = serde_json::to_writer(&mut secret, &Keys { seed, hash_key }).map_err(std::io::Error::from);
        written.and_then(|()| secret.write_all(b"\n")).with_context(|| format!("cannot write {}", keys.display()))?;
        Ok(Recording(file))
    }

    /// The function, whose inputs are recorded from now on, and what may go wrong with that.
    pub fn begin(self, function: Box<dyn Function>, ports: &Ports) -> Result<(Box<dyn Function>, Failure)> {
        let (tape, failure) = FileTape::begin(self.0, &inputs::head(ports)).context("cannot begin a recording")?;
        Ok((Box::new(Recorded::new(function, Box::new(tape))), failure))
    }
}
