//! Network namespaces by name, as `ip netns` keeps them: files in `/run/netns` onto which a namespace is mounted.

use crate::system::check;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where named namespaces are.
const FOLDER: &str = "/run/netns";

/// An open network namespace. It lives at least as long as this.
#[derive(Debug)]
pub struct NetworkNamespace(File);

impl NetworkNamespace {
    /// Opens a namespace by its name.
    ///
    /// # Errors
    /// There is none of that name, or no permission.
    pub fn open(name: &str) -> io::Result<NetworkNamespace> {
        File::open(path(name)).map(NetworkNamespace)
    }

    /// Makes a namespace without a name, which is gone with the last process, socket and value that holds it.
    ///
    /// # Errors
    /// No permission (`CAP_SYS_ADMIN`).
    pub fn anonymous() -> io::Result<NetworkNamespace> {
        // Only a thread can be moved into a new one, so it is a thread that ends with that.
        let thread = std::thread::spawn(|| {
            // SAFETY: takes a number; it changes this thread only.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            File::open("/proc/thread-self/ns/net").map(NetworkNamespace)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Its file.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Moves the calling thread, and no other, into the namespace for good.
    ///
    /// # Errors
    /// No permission (`CAP_SYS_ADMIN`), or the file is no namespace.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: setns takes an open descriptor and a number; it changes this thread only.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
    }

    /// Runs `work` on a thread of its own in the namespace and waits for it. Sockets that it opens stay there.
    ///
    /// # Errors
    /// As for [`NetworkNamespace::enter`].
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || self.enter().map(|()| work()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// What tells a namespace from all others and from ordinary files: device and number of its file.
fn identity(path: impl AsRef<Path>) -> Option<(u64, u64)> {
    fs::metadata(path).map(|data| (data.dev(), data.ino())).ok()
}

/// The file of a namespace.
pub fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Whether a namespace of this name is there, or at least its file.
pub fn exists(name: &str) -> bool {
    path(name).symlink_metadata().is_ok()
}

/// Makes a namespace of this name, with nothing in it but a loopback that is down.
///
/// # Errors
/// The name is taken, or no permission (`CAP_SYS_ADMIN`).
pub fn add(name: &str) -> io::Result<()> {
    share_folder()?;
    let path = path(name);
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    // The thread ends with the namespace that it has made for itself; the mount keeps that.
    let thread = std::thread::scope(|scope| {
        let made = || {
            // SAFETY: takes a number; it changes this thread only.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            mount(c"/proc/thread-self/ns/net", &path, libc::MS_BIND)
        };
        scope.spawn(made).join()
    });
    let made = thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    if made.is_err() {
        let _ = fs::remove_file(&path);
    }
    made
}

/// Makes the folder of namespaces, and sees that other mount namespaces get what is mounted there, and lose it with this one,
/// as `ip netns` does.
fn share_folder() -> io::Result<()> {
    fs::create_dir_all(FOLDER)?;
    let shared = || mount(c"", Path::new(FOLDER), libc::MS_SHARED | libc::MS_REC);
    match shared() {
        // Only what is mounted can be shared.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let folder = CString::new(FOLDER)?;
            mount(&folder, Path::new(FOLDER), libc::MS_BIND | libc::MS_REC)?;
            shared()
        }
        done => done,
    }
}

fn mount(source: &CStr, target: &Path, flags: libc::c_ulong) -> io::Result<()> {
    let target = CString::new(target.as_os_str().as_bytes())?;
    // SAFETY: valid C strings that outlive the call; these kinds of mounts take no data.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), c"none".as_ptr(), flags, std::ptr::null()) }).map(drop)
}

/// Takes the name away. The namespace itself goes with its last process and socket. One that is not there is fine.
///
/// # Errors
/// No permission.
pub fn delete(name: &str) -> io::Result<()> {
    let path = path(name);
    let c_path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a valid C string that outlives the call.
    match check(unsafe { libc::umount2(c_path.as_ptr(), libc::MNT_DETACH) }) {
        // A file onto which nothing is mounted is what a killed maker leaves.
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => return Err(error),
        _ => {}
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The processes whose main thread is in one of these namespaces.
pub fn processes(names: &[String]) -> Vec<i32> {
    let own = identity("/proc/self/ns/net");
    let wanted: BTreeSet<_> = names.iter().filter_map(|name| identity(path(name))).collect();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let inside = |pid: &i32| {
        let inside = identity(format!("/proc/{pid}/ns/net"));
        inside != own && inside.is_some_and(|inside| wanted.contains(&inside))
    };
    numbers.filter(inside).collect()
}

/// Ends the processes in these namespaces: politely, and after `patience` for good.
pub fn end_processes(names: &[String], patience: Duration) {
    let signal = |pids: &[i32], signal| {
        for pid in pids {
            // SAFETY: kill takes numbers. The processes were found in our own namespaces just now.
            unsafe { libc::kill(*pid, signal) };
        }
    };
    let mut left = processes(names);
    if left.is_empty() {
        return;
    }
    signal(&left, libc::SIGTERM);
    let deadline = Instant::now() + patience;
    while !left.is_empty() && Instant::now() < deadline {
        sleep(Duration::from_millis(10));
        left = processes(names);
    }
    // New ones may have been started by those that ended.
    for _ in 0..10 {
        signal(&left, libc::SIGKILL);
        sleep(Duration::from_millis(10));
        left = processes(names);
        if left.is_empty() {
            return;
        }
    }
}
