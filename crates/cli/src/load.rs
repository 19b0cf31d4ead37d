//! What the command line tells the catalog.

use crate::diagnostics::show;
use anyhow::{Context, Result};
use std::path::PathBuf;
use weftwire_catalog::Catalog;

/// Whose files a program may include.
#[derive(clap::Args, Clone, Default, Debug)]
#[group(skip)]
pub struct Includes {
    /// Let programs include files of this folder too, beside those of their own
    #[arg(long = "allow-includes", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
}

impl Includes {
    /// The catalog with these folders. Errors and warnings go to standard error.
    pub fn catalog(&self) -> Result<Catalog<'static>> {
        let whole = |folder: &PathBuf| {
            folder.canonicalize().with_context(|| format!("cannot find the folder {}", folder.display()))
        };
        Ok(Catalog { includes: self.folders.iter().map(whole).collect::<Result<_>>()?, ..catalog() })
    }
}

/// The catalog of files that include none of other folders.
pub fn catalog() -> Catalog<'static> {
    Catalog { includes: Vec::new(), timers: None, report: &show }
}
