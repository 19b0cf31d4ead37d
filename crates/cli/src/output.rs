//! Where every command opens what it writes.
//!
//! A regular file is there whole or not at all: it is written under another name and takes its own at the end, with owner
//! and mode of the file that it replaces. Links are followed, and stay. Everything that is no regular file (a device, a
//! pipe, a FIFO) is written through, and so is `-`, which is standard output.

use crate::console;
use anyhow::Result;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Most links from a name to its file, as in the kernel.
const MOST_LINKS: usize = 40;
/// Most names that are tried for a file that is not finished.
const MOST_NAMES: usize = 1_000;

/// A file could not be written. Says which, so that nobody else needs to.
#[derive(Debug)]
pub struct WriteFailure {
    /// `None`: standard output.
    path: Option<PathBuf>,
    error: io::Error,
}

impl WriteFailure {
    fn file(path: &Path, error: io::Error) -> io::Error {
        WriteFailure::wrap(Some(path), error)
    }

    /// Standard output could not be written.
    pub fn output(error: io::Error) -> io::Error {
        WriteFailure::wrap(None, error)
    }

    fn wrap(path: Option<&Path>, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), WriteFailure { path: path.map(Path::to_owned), error })
    }

    /// Whether the cause of an error is that nobody reads standard output any more.
    pub fn is_closed_output(error: &(dyn Error + 'static)) -> bool {
        if let Some(WriteFailure { path, error }) = error.downcast_ref() {
            return path.is_none() && error.kind() == ErrorKind::BrokenPipe;
        }
        // What an `io::Error` was made from is not among its sources.
        let made_from = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        made_from.is_some_and(|inner| WriteFailure::is_closed_output(inner))
            || error.source().is_some_and(WriteFailure::is_closed_output)
    }
}

impl fmt::Display for WriteFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(out, "cannot write {}: {}", path.display(), self.error),
            None => write!(out, "cannot write to standard output: {}", self.error),
        }
    }
}

impl Error for WriteFailure {}

/// An open output. Its errors name it.
#[derive(Debug)]
pub struct Output {
    path: Option<PathBuf>,
    file: File,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| WriteFailure::wrap(self.path.as_deref(), error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What commands write to.
pub type Writer = BufWriter<Output>;

/// A file that takes its name when it is finished, and vanishes when it is dropped before; or what is no regular file,
/// and is written as it goes.
pub struct PendingFile {
    writer: Option<Writer>,
    replacement: Option<Replacement>,
}

impl PendingFile {
    /// Begins the file that will be `path`.
    pub fn create(path: &Path) -> Result<PendingFile> {
        PendingFile::begin(path, false)
    }

    /// Begins a file that nobody but its owner may read.
    pub fn create_private(path: &Path) -> Result<PendingFile> {
        PendingFile::begin(path, true)
    }

    fn begin(path: &Path, private: bool) -> Result<PendingFile> {
        let (output, replacement) = match open(path, private) {
            Ok(opened) => opened,
            Err(error) => return Err(WriteFailure::file(path, error).into()),
        };
        Ok(PendingFile { writer: Some(BufWriter::new(output)), replacement })
    }

    /// Where to write. Lent out, so that formats may be built on it; give it back to [`PendingFile::finish`].
    pub fn take_writer(&mut self) -> Writer {
        self.writer.take().expect("a pending file's writer is taken once, by the code that created it")
    }

    /// Writes what is buffered and gives the file its name.
    pub fn finish(mut self, mut writer: Writer) -> Result<()> {
        writer.flush()?;
        if let Some(replacement) = self.replacement.take() {
            let done = replacement.finish(&writer.get_ref().file);
            done.map_err(|error| WriteFailure::wrap(writer.get_ref().path.as_deref(), error))?;
        }
        Ok(())
    }
}

/// Opens an output that grows while a command runs, and is there at once: a regular file is emptied, or appended to.
pub fn open_growing(path: &Path, append: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(!append).append(append);
    let opened = match standard(path) {
        Ok(Some((file, _))) => Ok(file),
        _ => options.open(path),
    };
    Ok(opened.map_err(|error| WriteFailure::file(path, error))?)
}

/// Opens an output that only its owner may read.
pub fn open_secret(path: &Path) -> Result<File> {
    let open = || {
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        Ok(file)
    };
    open().map_err(|error| WriteFailure::file(path, error).into())
}

/// Writes a text to the file, or to standard output without one.
pub fn text(path: Option<&Path>, text: &str) -> Result<()> {
    bytes(path, text.as_bytes())
}

/// Writes bytes to the file, or to standard output without one or for `-`.
pub fn bytes(path: Option<&Path>, bytes: &[u8]) -> Result<()> {
    match path.filter(|path| *path != Path::new("-")) {
        None => console::write(bytes),
        Some(path) => {
            let mut file = PendingFile::create(path)?;
            let mut writer = file.take_writer();
            writer.write_all(bytes)?;
            file.finish(writer)
        }
    }
}

fn open(path: &Path, private: bool) -> io::Result<(Output, Option<Replacement>)> {
    if let Some((file, is_output)) = standard(path)? {
        if private && file.metadata()?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(PRIVATE))?;
        }
        return Ok((Output { path: (!is_output).then(|| path.to_owned()), file }, None));
    }
    let through = |file| Ok((Output { path: Some(path.to_owned()), file }, None));
    let there = match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(io::Error::other("it is a folder; name a file")),
        Ok(there) if !there.is_file() => return through(OpenOptions::new().write(true).open(path)?),
        Ok(there) => Some(there),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(target) = resolve(path)? else { return through(OpenOptions::new().write(true).open(path)?) };
    // What may not be written may not be replaced either.
    let before = there.as_ref().map(|_| OpenOptions::new().write(true).open(&target)).transpose()?;
    match (Replacement::begin(target, there, private), before) {
        (Ok((replacement, file)), _) => Ok((Output { path: Some(path.to_owned()), file }, Some(replacement))),
        // The file may be written, but its folder may not.
        (Err(error), Some(file)) if is_refusal(&error) => {
            file.set_len(0)?;
            if private {
                file.set_permissions(fs::Permissions::from_mode(PRIVATE))?;
            }
            through(file)
        }
        (Err(error), _) => Err(error),
    }
}

/// The mode of files that only their owner may read.
const PRIVATE: u32 = 0o600;

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Standard output or standard error, if that is what the name stands for, and whether it is the first.
fn standard(path: &Path) -> io::Result<Option<(File, bool)>> {
    let (output, errors) = (io::stdout(), io::stderr());
    let wanted = match path == Path::new("-") {
        true => None,
        false => match fs::metadata(path) {
            Ok(there) => Some((there.dev(), there.ino())),
            Err(_) => return Ok(None),
        },
    };
    for (stream, is_output) in [(output.as_fd(), true), (errors.as_fd(), false)] {
        let file = File::from(stream.try_clone_to_owned()?);
        let is = |wanted| file.metadata().is_ok_and(|there| (there.dev(), there.ino()) == wanted);
        if wanted.is_none_or(is) {
            output.lock().flush()?;
            return Ok(Some((file, is_output)));
        }
    }
    Ok(None)
}

/// The file that a name and the links behind it lead to, whether it is there or not. `None`: the name is one of the kernel's,
/// such as `/dev/fd/3`, whose file may not be replaced by another.
fn resolve(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let name = path.file_name().ok_or_else(|| io::Error::other("it is no name of a file"))?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize()?,
            _ => Path::new(".").canonicalize()?,
        };
        if folder.starts_with("/proc") {
            return Ok(None);
        }
        let full = folder.join(name);
        match fs::read_link(&full) {
            Ok(link) => path = folder.join(link),
            Err(_) => return Ok(Some(full)),
        }
    }
    Err(io::Error::other("it is a link to a link, and so on"))
}

/// A regular file that is still under another name.
struct Replacement {
    target: PathBuf,
    temporary: PathBuf,
    /// Of the file that it replaces.
    before: Option<Metadata>,
    /// Only its owner may read it, whatever was there before.
    private: bool,
}

impl Replacement {
    fn begin(target: PathBuf, before: Option<Metadata>, private: bool) -> io::Result<(Replacement, File)> {
        // Until it has its owner, nobody else reads what was not readable before.
        let mode = if before.is_some() || private { PRIVATE } else { 0o666 };
        for number in 0..MOST_NAMES {
            let mut name = target.file_name().map_or_else(OsString::new, OsString::from);
            let number = if number == 0 { String::new() } else { format!(".{number}") };
            name.push(format!(".{}{number}.partial", std::process::id()));
            let temporary = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => return Ok((Replacement { target, temporary, before, private }, file)),
            }
        }
        Err(io::Error::other("there are too many files named .partial beside it; remove them"))
    }

    fn finish(mut self, file: &File) -> io::Result<()> {
        if let Some(before) = &self.before {
            let own = file.metadata()?;
            let same = (own.uid(), own.gid()) == (before.uid(), before.gid());
            // Who may not give files away keeps them; then no rights of the other owner go with them.
            let kept = same || std::os::unix::fs::fchown(file, Some(before.uid()), Some(before.gid())).is_ok();
            let mode = match self.private {
                true => PRIVATE,
                false => before.mode() & if kept { 0o7777 } else { 0o777 },
            };
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        match fs::symlink_metadata(&self.target) {
            Ok(there) if !there.is_file() => return Err(io::Error::other("it became something else meanwhile")),
            _ => fs::rename(&self.temporary, &self.target)?,
        }
        self.temporary.clear();
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // It may be gone already; there is nobody to tell.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
