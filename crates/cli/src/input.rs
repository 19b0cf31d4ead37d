//! Where every command reads files: only regular ones, none longer than what is read of its kind can be.

use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;
use weftwire_linux::files::{open_regular, read_regular};

/// What a file is, and so how long it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A program, message formats, or a table of rates.
    Source,
    /// A machine image.
    Image,
    /// A network, or what its file names.
    Network,
    /// Rules, subscriptions, or the edges of a graph.
    Rules,
    /// What a run has written, or is to send.
    Data,
}

impl Kind {
    /// The most bytes.
    pub fn limit(self) -> u64 {
        match self {
            Kind::Source => 16 << 20,
            Kind::Image | Kind::Network => 64 << 20,
            Kind::Rules => 256 << 20,
            Kind::Data => 4 << 30,
        }
    }
}

/// Reads a whole file.
pub fn bytes(path: &Path, kind: Kind) -> Result<Vec<u8>> {
    read_regular(path, kind.limit()).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a whole text.
pub fn text(path: &Path, kind: Kind) -> Result<String> {
    String::from_utf8(bytes(path, kind)?)
        .with_context(|| format!("cannot read {}: it is no UTF-8 text", path.display()))
}

/// As [`text`], for those who name the file themselves: the error is only the reason.
pub fn text_or_reason(path: &Path, kind: Kind) -> Result<String, String> {
    let bytes = read_regular(path, kind.limit()).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| format!("it is no UTF-8 text: {error}"))
}

/// Opens a file that is read piece by piece, and may be as long as it is.
pub fn open(path: &Path) -> Result<File> {
    open_regular(path).with_context(|| format!("cannot open {}", path.display()))
}
