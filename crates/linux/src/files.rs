//! Files as the kernel has them: reading nothing but regular ones, and exchanging two folders.

use crate::system::check;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opens a regular file to read it. What is none (a device, a FIFO, a folder) might never end, or never begin.
///
/// # Errors
/// It can't be opened, or is no regular file: then the error says what it is.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, opening a FIFO waits for its other end; for a regular file it has no meaning.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(file),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "no file",
    };
    Err(io::Error::other(format!("it is {what}, and only regular files are read")))
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open_regular`]; or it is longer.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    // Files of the kernel say that they have no bytes, and a file can grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(io::Error::other(format!("it is longer than {limit} bytes, the most that is read of such a file"))),
        false => Ok(bytes),
    }
}

/// Lets two files or folders of one file system take each other's names, at once.
///
/// # Errors
/// What the kernel says; `EINVAL` or `ENOSYS` where the file system has no such thing.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let [one, other] = [one, other].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (one, other) = (one?, other?);
    // SAFETY: two valid C strings that outlive the call.
    let done =
        unsafe { libc::renameat2(libc::AT_FDCWD, one.as_ptr(), libc::AT_FDCWD, other.as_ptr(), libc::RENAME_EXCHANGE) };
    check(done).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_regular_files_up_to_a_limit_are_read() {
        let folder = std::env::temp_dir().join(format!("weft-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, fifo) = (folder.join("file"), folder.join("fifo"));
        fs::write(&file, "12345").unwrap();
        let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: a valid C string.
        check(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }).unwrap();
        assert_eq!(read_regular(&file, 5).unwrap(), b"12345");
        let refused = |path: &Path, limit| read_regular(path, limit).unwrap_err().to_string();
        assert!(refused(&file, 4).contains("longer than 4 bytes"));
        assert!(refused(&fifo, 9).contains("it is a pipe"));
        assert!(refused(Path::new("/dev/zero"), 9).contains("it is a device"));
        assert!(refused(&folder, 9).contains("it is a folder"));
        assert_eq!(read_regular(&folder.join("none"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
        // Files of the kernel have no length.
        assert!(read_regular(Path::new("/proc/self/status"), 1 << 20).unwrap().starts_with(b"Name:"));
        assert!(refused(Path::new("/proc/self/status"), 9).contains("longer than 9 bytes"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
