//! Recordings of inputs on disk: the file, and beside it the seed and the keys; and runs repeated from them.

use crate::console::tell;
use crate::output;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weftwire_capture::inputs::RecordingReader;
use weftwire_capture::{Recorded, inputs};
use weftwire_core::{Function, Ports};
use weftwire_linux::signals::StopSignal;
use weftwire_linux::tape::{Failure, FileTape};
use weftwire_sim::repeat::{self, Prepare, Repeated};

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

/// The inputs of a run.
pub type Inputs = RecordingReader<BufReader<File>>;

/// Repeats a run from the recording of its inputs, with the function that `start` makes for it and its keys, and sees that
/// the same comes out.
pub fn repeat(
    path: &Path,
    start: impl FnOnce(&Inputs, Keys) -> Result<Box<dyn Function>>,
    prepare: &mut Prepare<'_>,
) -> Result<()> {
    let damaged = || format!("cannot repeat {}", path.display());
    let file = File::open(path).with_context(damaged)?;
    let mut recording = RecordingReader::new(BufReader::new(file)).with_context(damaged)?;
    let mut function = start(&recording, Keys::read(path)?)?;
    let stop = StopSignal::install()?;
    let mut line = ProgressLine::begin();
    let mut progress = |inputs, now| {
        line.tell(0.0, format_args!("{inputs} inputs, {now} s"));
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let repeated = repeat::repeat(function.as_mut(), &mut recording, prepare, &mut progress).with_context(damaged)?;
    let Repeated { inputs, end, outputs, not_recorded, .. } = repeated;
    if let Some((number, what)) = repeated.difference {
        bail!(
            "input {number} ({what}) gives something else than in the run: is it the same function, and the same version of weft?"
        );
    }
    ensure!(!repeated.interrupted, "interrupted after {inputs} inputs, which gave the same as in the run");
    tell!("repeated {inputs} inputs in {end} s; all {outputs} outputs are those of the run");
    if not_recorded > 0 {
        tell!("warning: {not_recorded} more inputs of the run were not recorded, as the disk was too slow for them");
    }
    Ok(())
}
