//! Files that are there whole or not at all.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file under a temporary name beside its own. It takes its own name when it is finished, and vanishes when it is
/// dropped before.
pub struct PendingFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl PendingFile {
    /// Begins the file that will be `path`.
    pub fn create(path: &Path) -> Result<PendingFile> {
        let mut name = path.file_name().with_context(|| format!("{} is no file name", path.display()))?.to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(PendingFile { path: path.to_owned(), temporary, writer: Some(BufWriter::new(file)) })
    }

    /// Where to write. Lent out, so that formats may be built on it; give it back to [`PendingFile::finish`].
    pub fn take_writer(&mut self) -> BufWriter<File> {
        self.writer.take().expect("a pending file's writer is taken once, by the code that created it")
    }

    /// Writes what is buffered and gives the file its name.
    pub fn finish(mut self, mut writer: BufWriter<File>) -> Result<()> {
        let path = self.path.clone();
        let renamed = writer.flush().and_then(|()| fs::rename(&self.temporary, &path));
        renamed.with_context(|| format!("cannot write {}", path.display()))?;
        self.temporary.clear();
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // It may be gone already; there is nobody to tell.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a text to the file, or to standard output without one.
pub fn text(path: Option<&Path>, text: &str) -> Result<()> {
    bytes(path, text.as_bytes())
}

/// Writes bytes to the file, or to standard output without one or for `-`.
pub fn bytes(path: Option<&Path>, bytes: &[u8]) -> Result<()> {
    match path.filter(|path| *path != Path::new("-")) {
        None => Ok(std::io::stdout().lock().write_all(bytes)?),
        Some(path) => {
            let mut file = PendingFile::create(path)?;
            let mut writer = file.take_writer();
            writer.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))?;
            file.finish(writer)
        }
    }
}
