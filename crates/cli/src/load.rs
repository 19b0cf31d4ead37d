//! Functions from files: the one place where engines, compilers and files meet.

use anyhow::{Result, bail};
use std::path::Path;
use weftwire_core::Function;
use weftwire_core::function::Ports;

/// A function that is loaded and not yet started.
pub struct Loaded {
    name: String,
}

/// Loads the function in the file `path`.
pub fn function(path: &Path) -> Result<Loaded> {
    bail!("cannot load {}", path.display())
}

impl Loaded {
    /// The function's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it on these ports. Without a key one comes from the seed.
    pub fn start(self, _ports: &Ports, _seed: u64, _key: Option<[u64; 2]>) -> Result<Box<dyn Function>> {
        bail!("no engine")
    }
}
