//! Where everything reads files: only regular ones, none longer than what is read of its kind can be.

use crate::CatalogError;
use std::fs::File;
use std::path::Path;
use weftwire_linux::files::{open_regular, read_regular};
use weftwire_text::LoadError;

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
///
/// # Errors
/// [`CatalogError::File`].
pub fn bytes(path: &Path, kind: Kind) -> Result<Vec<u8>, CatalogError> {
    let wrong = |error| CatalogError::File { action: "read", path: path.display().to_string(), error };
    read_regular(path, kind.limit()).map_err(wrong)
}

/// Reads a whole text.
///
/// # Errors
/// [`CatalogError::File`], [`CatalogError::NoText`].
pub fn text(path: &Path, kind: Kind) -> Result<String, CatalogError> {
    let wrong = |error| CatalogError::NoText { path: path.display().to_string(), error };
    String::from_utf8(bytes(path, kind)?).map_err(wrong)
}

/// As [`text`], for those who name the file themselves: the error is only the reason.
///
/// # Errors
/// [`LoadError::System`], [`LoadError::NoText`].
pub fn load(path: &Path, kind: Kind) -> Result<String, LoadError> {
    String::from_utf8(read_regular(path, kind.limit())?).map_err(LoadError::NoText)
}

/// Opens a file that is read piece by piece, and may be as long as it is.
///
/// # Errors
/// [`CatalogError::File`].
pub fn open(path: &Path) -> Result<File, CatalogError> {
    open_regular(path).map_err(|error| CatalogError::File { action: "open", path: path.display().to_string(), error })
}
