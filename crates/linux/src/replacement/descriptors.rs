//! Messages between a process and its successor on a stream socket, and descriptors with them (unix(7), `SCM_RIGHTS`): a length of
//! four bytes, a kind, and so many bytes.

use crate::system::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Most descriptors that go at once (`SCM_MAX_FD`).
pub(crate) const MOST_DESCRIPTORS: usize = 253;

/// Longest message in bytes: a flow's state and its kind.
const MOST_BYTES: usize = crate::control::MAX_STATE + 1;

/// Bytes in front of each message.
const HEAD: usize = 4;

/// Room for control messages, aligned.
type Control = [u64; 160];

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The descriptors, in their order. From the predecessor, as are the next ones.
    Descriptors = 1,
    /// The state of a flow.
    Flow = 2,
    /// Where the predecessor has stopped. It comes before the flows.
    Stopped = 3,
    /// The ports may be taken.
    Go = 4,
    /// The successor is ready. From it, as are the next ones.
    Ready = 5,
    /// It has all flows.
    Adopted = 6,
    /// It has taken the ports.
    Taken = 7,
    /// It can't go on, and why.
    Refused = 8,
    /// All flows were sent. From the predecessor.
    Last = 9,
    /// The successor waits for the descriptors.
    Begin = 10,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        const ALL: [Kind; 10] = [
            Kind::Descriptors,
            Kind::Flow,
            Kind::Stopped,
            Kind::Last,
            Kind::Begin,
            Kind::Go,
            Kind::Ready,
            Kind::Adopted,
            Kind::Taken,
            Kind::Refused,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Puts a message behind others.
pub(crate) fn put(out: &mut Vec<u8>, kind: Kind, bytes: &[u8]) {
    // No state is longer than `MOST_BYTES`; a longer message is refused by who reads it.
    out.extend(u32::try_from(bytes.len() + 1).unwrap_or(u32::MAX).to_le_bytes());
    out.push(kind as u8);
    out.extend(bytes);
}

/// Sends a message with descriptors, which are at most [`MOST_DESCRIPTORS`]. The socket has room for it.
pub(crate) fn send(socket: &UnixStream, kind: Kind, bytes: &[u8], passed: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut message = Vec::new();
    put(&mut message, kind, bytes);
    let mut part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    let length = (passed.len() * size_of::<i32>()) as u32;
    if passed.len() > MOST_DESCRIPTORS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    let mut control: Control = [0; 160];
    // SAFETY: msghdr is plain data for which all zeros is valid. What it points to outlives the call; the descriptors are written
    // into `control`, which has room for `MOST_DESCRIPTORS`.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if !passed.is_empty() {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(length) as usize;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(length) as usize;
            for (number, descriptor) in passed.iter().enumerate() {
                libc::CMSG_DATA(first).cast::<i32>().add(number).write_unaligned(descriptor.as_raw_fd());
            }
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == message.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// What comes by a stream: bytes until they are a message, and descriptors in their order.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// So many of them are read.
    read: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Inbox {
    /// The next message that is here whole.
    ///
    /// # Errors
    /// What is here is no message.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let rest = &self.bytes[self.read..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "what came is no message");
        if length == 0 || length > MOST_BYTES {
            return Err(wrong());
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = (Kind::of(message[0]).ok_or_else(wrong)?, message[1..].to_vec());
        self.read += HEAD + length;
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
        Ok(Some(message))
    }

    /// Reads once: as long as the socket's mode says. Returns whether the other end is still there.
    ///
    /// # Errors
    /// As of recvmsg(2).
    pub(crate) fn receive(&mut self, socket: &UnixStream) -> io::Result<bool> {
        self.bytes.drain(..self.read);
        self.read = 0;
        let mut bytes = [0_u8; 65_536];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut control: Control = [0; 160];
        // SAFETY: msghdr is plain data for which all zeros is valid. What it points to outlives the call; the kernel writes well-formed
        // control messages, and descriptors that come belong to nobody else.
        let length = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>();
            let length = libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC);
            let length = check(length.try_into().unwrap_or(-1))?;
            let mut entry = libc::CMSG_FIRSTHDR(&raw const header);
            while !entry.is_null() {
                if (*entry).cmsg_level == libc::SOL_SOCKET && (*entry).cmsg_type == libc::SCM_RIGHTS {
                    let count = ((*entry).cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<i32>();
                    for number in 0..count {
                        let descriptor = libc::CMSG_DATA(entry).cast::<i32>().add(number).read_unaligned();
                        self.descriptors.push(OwnedFd::from_raw_fd(descriptor));
                    }
                }
                entry = libc::CMSG_NXTHDR(&raw const header, entry);
            }
            length as usize
        };
        self.bytes.extend_from_slice(&bytes[..length]);
        Ok(length > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn messages_and_descriptors_arrive_whole() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let path = std::env::temp_dir().join(format!("weft-descriptors-{}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        send(&ours, Kind::Descriptors, b"two", &[file.as_fd(), ours.as_fd()]).unwrap();
        let mut more = Vec::new();
        put(&mut more, Kind::Flow, &[7; 100_000]);
        put(&mut more, Kind::Go, b"");
        let mut inbox = Inbox::default();
        let mut heard = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (&ours).write_all(&more).unwrap());
            while heard.len() < 3 {
                assert!(inbox.receive(&theirs).unwrap());
                while let Some(message) = inbox.next().unwrap() {
                    heard.push(message);
                }
            }
        });
        let expected = [(Kind::Descriptors, b"two".to_vec()), (Kind::Flow, vec![7; 100_000]), (Kind::Go, Vec::new())];
        assert_eq!(heard, expected);
        assert_eq!(inbox.descriptors.len(), 2);
        File::from(inbox.descriptors.remove(0)).write_all(b"same file").unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "same file");
        drop(inbox);
        drop(ours);
        assert!(!Inbox::default().receive(&theirs).unwrap());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [&[0, 0, 0, 0][..], &[255, 255, 255, 255], &[1, 0, 0, 0, 77]] {
            let mut inbox = Inbox { bytes: bytes.to_vec(), ..Inbox::default() };
            assert!(inbox.next().is_err(), "{bytes:?}");
        }
        let mut inbox = Inbox { bytes: vec![2, 0, 0, 0, Kind::Go as u8], ..Inbox::default() };
        assert_eq!(inbox.next().unwrap(), None, "a byte is to come");
    }
}
