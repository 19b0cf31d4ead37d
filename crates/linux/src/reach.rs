//! Connections to a socket that this process may not open any more, as it has given up its privileges.
//!
//! A helper, this program once more, keeps the privileges and does one thing: whenever it is asked, it connects to the one
//! path that it was started for, sees who listens there, and hands the connection over (unix(7), `SCM_RIGHTS`). It ends
//! with the process that started it.

use crate::error::LinuxError;
use crate::local;
use crate::system::{check, set_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest reason that a helper gives for not connecting.
const REASON: usize = 512;
/// Longer than a helper ever needs; then it hangs.
const HELPER: Duration = Duration::from_secs(20);

/// Connects to Unix sockets: this process itself, or a helper for it.
#[derive(Clone, Debug, Default)]
pub struct Reach(Option<Arc<Mutex<OwnedFd>>>);

impl Reach {
    /// Starts a helper for `path`: this program with the arguments `words` and the path behind them, which calls
    /// [`serve`].
    ///
    /// # Errors
    /// [`LinuxError::System`].
    pub fn start_helper(words: &[&str], path: &Path) -> Result<Reach, LinuxError> {
        let failed = |error| LinuxError::system("start the process that connects", error);
        let (own, other) = pair().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        // In a group of its own it does not hear the terminal's Ctrl-C.
        let mut command = Command::new(program);
        command.args(words).arg(path).process_group(0).stdin(other).stdout(Stdio::null());
        command.spawn().map_err(failed)?;
        Ok(Reach(Some(Arc::new(Mutex::new(own)))))
    }

    /// Connects, as [`local::connect`] does. A helper connects to its own path, whatever this one is.
    ///
    /// # Errors
    /// As of [`local::connect`].
    pub fn connect(&self, path: &Path, patience: Duration) -> io::Result<UnixStream> {
        let Some(helper) = &self.0 else { return local::connect(path, patience) };
        let helper = helper.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = u8::try_from(patience.as_secs()).unwrap_or(u8::MAX);
        send(helper.as_fd(), &[seconds], None)?;
        let mut reason = [0; REASON];
        match receive(helper.as_fd(), &mut reason)? {
            (0, None) => Err(io::Error::other("the process that connects has ended")),
            (_, Some(connection)) => Ok(connection.into()),
            (length, None) => Err(io::Error::other(String::from_utf8_lossy(&reason[..length]).into_owned())),
        }
    }
}

/// What a helper does, on its standard input: until the other end is gone.
///
/// # Errors
/// The input is no socket.
pub fn serve(path: &Path) -> Result<(), LinuxError> {
    serve_on(std::io::stdin().as_fd(), path).map_err(|error| LinuxError::system("answer on standard input", error))
}

fn serve_on(socket: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let mut seconds = [0];
    while receive(socket, &mut seconds)?.0 > 0 {
        match local::connect(path, Duration::from_secs(seconds[0].into())) {
            Ok(connection) => send(socket, b"ok", Some(connection.as_fd()))?,
            Err(error) => {
                let mut reason = error.to_string().into_bytes();
                reason.truncate(REASON);
                send(socket, &reason, None)?;
            }
        }
    }
    Ok(())
}

/// Two ends of a connection that keeps messages apart and tells when the other end is gone.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which belong to nobody else.
    let (own, other) = unsafe {
        check(libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()))?;
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    let limit = libc::timeval { tv_sec: HELPER.as_secs().cast_signed(), tv_usec: 0 };
    set_option(own.as_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit)?;
    Ok((own, other))
}

/// Room for a control message with one descriptor, aligned.
type Control = [u64; 4];

/// Sends a message, with a descriptor or without.
fn send(socket: BorrowedFd<'_>, bytes: &[u8], passed: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control::default();
    // SAFETY: msghdr is plain data for which all zeros is valid. What it points to outlives the call; the control message is
    // written into `control`, which has room for it.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(passed) = passed {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as usize;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(passed.as_raw_fd());
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a message: its length, and the descriptor that came with it. Length 0: the other end is gone.
fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control::default();
    loop {
        // SAFETY: msghdr is plain data for which all zeros is valid. What it points to outlives the call; the kernel writes well-formed
        // control messages, and a descriptor that comes belongs to nobody else.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of::<Control>();
            let length = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
            let Ok(length) = usize::try_from(length) else {
                match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => continue,
                    error => return Err(error),
                }
            };
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            let passed = !header.is_null()
                && (*header).cmsg_level == libc::SOL_SOCKET
                && (*header).cmsg_type == libc::SCM_RIGHTS;
            let descriptor =
                passed.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned()));
            return Ok((length, descriptor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_helper_hands_connections_over_and_ends_with_its_master() {
        let path = std::env::temp_dir().join(format!("weft-reach-{}.sock", std::process::id()));
        let (own, other) = pair().unwrap();
        let helper = {
            let path = path.clone();
            std::thread::spawn(move || serve_on(other.as_fd(), &path))
        };
        let reach = Reach(Some(Arc::new(Mutex::new(own))));
        let connect = || reach.connect(Path::new("/nowhere"), Duration::from_secs(5));
        let error = connect().unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
        for _ in 0..2 {
            let (listener, _file) = local::listen(&path, None).unwrap();
            let mut ours = connect().unwrap();
            listener.set_nonblocking(false).unwrap();
            let (mut theirs, _) = listener.accept().unwrap();
            ours.write_all(b"hello").unwrap();
            drop(ours);
            let mut text = String::new();
            theirs.read_to_string(&mut text).unwrap();
            assert_eq!(text, "hello");
        }
        drop(reach);
        helper.join().unwrap().unwrap();
    }
}
