//! A fresh folder, and the command run in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The command.
pub const WEFT: &str = env!("CARGO_BIN_EXE_weft");
/// The folder of the examples.
pub const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// An empty folder of this name.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The names of what is in a folder.
pub fn names(folder: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Runs the command in a folder.
pub fn weft(folder: &Path, words: &[&str]) -> Output {
    Command::new(WEFT).args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}
