//! Reading a `network.toml`.

use crate::model::Network;
use weftwire_lang::{Diagnostic, SourceMap};

/// What reading a file gave: the network if there is no error.
pub struct Reading {
    /// The network.
    pub network: Option<Network>,
    /// Its sweep: dotted paths into the file and the values each takes, in the order of the file; empty without one.
    pub sweep: Vec<(String, Vec<toml::Value>)>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that the diagnostics point into.
    pub sources: SourceMap,
}

/// Reads the text of the file `name`. `changes` are dotted paths (`links.uplink.rate`, `seed`) with values that take the
/// place of the file's: a point of a sweep, or `--set`. `load` gives the text of a file that the network names (rate
/// traces, size distributions), relative to the network's file.
pub fn read(
    _name: &str,
    _text: &str,
    _changes: &[(String, toml::Value)],
    _load: &dyn Fn(&str) -> Result<String, String>,
) -> Reading {
    todo!()
}
