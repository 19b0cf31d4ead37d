//! Many datagrams a system call, through ordinary UDP sockets.

use crate::system::{check, set_option};
use std::io;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

/// At most so many datagrams go through one system call.
pub const MOST: usize = 64;

/// Makes the socket hold so many bytes of datagrams that nobody has read yet, past the system's limit if the process
/// has the right to; else as many as the system allows.
///
/// # Errors
/// If the kernel refuses both.
pub fn set_receive_buffer(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let set = |name| set_option(socket.as_fd(), libc::SOL_SOCKET, name, &bytes);
    set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF))
}

/// Sends the datagrams at these places in `bytes`, the first [`MOST`] of them, to the socket's peer, and gives how many
/// the kernel took. The kernel may take fewer than all; at least one unless it fails.
///
/// # Errors
/// Whatever the kernel says of the first datagram.
pub fn send(socket: &UdpSocket, bytes: &[u8], places: &[Range<usize>]) -> io::Result<usize> {
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    for (vector, place) in vectors.iter_mut().zip(places) {
        let datagram = &bytes[place.clone()];
        *vector = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
    }
    let count = places.len().min(MOST);
    let mut headers = headers(&mut vectors[..count]);
    // SAFETY: the first `count` headers point at vectors that live to the end of this function, and these at parts of
    // `bytes`, which the kernel only reads.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as libc::c_uint, 0) };
    check(sent).map(|sent| sent as usize)
}

/// A place for datagrams that come.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    size: usize,
    lengths: Vec<usize>,
}

impl Inbox {
    /// A place for [`MOST`] datagrams of up to `size` bytes, which is at least 1. Of longer ones the rest is cut off.
    pub fn new(size: usize) -> Inbox {
        let size = size.max(1);
        Inbox { bytes: vec![0; MOST * size], size, lengths: Vec::with_capacity(MOST) }
    }

    /// Waits for a datagram, as long as the socket's read timeout says, and takes those that are there.
    ///
    /// # Errors
    /// As of [`UdpSocket::recv`]. Nothing has been received then.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.lengths.clear();
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
        for (vector, room) in vectors.iter_mut().zip(self.bytes.chunks_exact_mut(self.size)) {
            *vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        }
        let mut headers = headers(&mut vectors);
        // SAFETY: all headers point at vectors that live to the end of this function, and these at parts of `bytes`
        // that do not overlap and that nobody else uses meanwhile. No timeout is given.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                MOST as libc::c_uint,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        let received = check(received)? as usize;
        self.lengths.extend(headers.iter().take(received).map(|header| (header.msg_len as usize).min(self.size)));
        Ok(())
    }

    /// Forgets the datagrams.
    pub fn clear(&mut self) {
        self.lengths.clear();
    }

    /// The datagrams received last.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.size).zip(&self.lengths).map(|(room, length)| &room[..*length])
    }
}

/// Headers of one vector each, without addresses.
fn headers(vectors: &mut [libc::iovec]) -> [libc::mmsghdr; MOST] {
    // SAFETY: `mmsghdr` is plain data for which all zeros is valid.
    let mut headers: [libc::mmsghdr; MOST] = unsafe { std::mem::zeroed() };
    for (header, vector) in headers.iter_mut().zip(vectors) {
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn many_go_and_come_whole() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        set_receive_buffer(&receiver, 1 << 20).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();

        let bytes: Vec<u8> = (0..100_u8).flat_map(|number| vec![number; usize::from(number) + 1]).collect();
        let mut places = Vec::new();
        for length in 1..=100 {
            let start = places.last().map_or(0, |last: &Range<usize>| last.end);
            places.push(start..start + length);
        }
        let mut sent = 0;
        while sent < places.len() {
            let count = send(&sender, &bytes, &places[sent..]).unwrap();
            assert!((1..=MOST).contains(&count));
            sent += count;
        }
        let (mut inbox, mut received) = (Inbox::new(90), Vec::new());
        while received.len() < places.len() {
            inbox.receive(&receiver).unwrap();
            received.extend(inbox.datagrams().map(<[u8]>::to_vec));
        }
        for (place, received) in places.iter().zip(received) {
            // The last ten are longer than there is room for.
            assert_eq!(&bytes[place.start..place.end.min(place.start + 90)], received);
        }
    }

    #[test]
    fn waiting_in_vain_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut inbox = Inbox::new(10);
        assert_eq!(inbox.receive(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(inbox.datagrams().count(), 0);
    }
}
