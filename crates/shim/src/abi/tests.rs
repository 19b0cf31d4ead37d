//! What programs in C do, in an interpreter that finds undefined behaviour (`scripts/miri.sh`): every call that takes or gives memory.
#![allow(clippy::disallowed_methods, reason = "packetdrill calls from two threads")]

use super::memory::put_address;
use super::packetdrill::{PacketdrillInterface, fill, packetdrill_interface_init};
use super::weft::*;
use crate::Setup;
use std::ffi::{CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};

/// Datagrams, without TCP's hundreds of rows, which take an interpreter minutes.
const MACHINE: &str = "machine datagrams;
flow key five_tuple;
register eager: bool;
template out: udp;
initial state open {
    on connect {}
    on data { send out with data(0, application.available) to 1; release application.available; }
    on packet { deliver packet; }
}
";

/// Without a file: the interpreter knows not all that opening one takes.
fn image() -> VerifiedImage {
    let image = compile("datagrams.xl", Dialect::Xl, &MACHINE).image.expect("a right program");
    image.verify().expect("an image that can run")
}

fn c(text: &str) -> CString {
    CString::new(text).expect("no zero byte")
}

fn there() -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: plain data for which zeros are valid.
    let mut storage: libc::sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let address = "192.0.2.1:9".parse().expect("an address");
    // SAFETY: as much room as the length says.
    unsafe { put_address((&raw mut storage).cast(), &raw mut length, address) }.expect("room");
    (storage, length)
}

#[test]
fn own_calls_keep_to_the_memory_of_the_caller() {
    let (image, parameters) = (image().to_json(), c("protocol=17"));
    let (address, length) = there();
    let address = (&raw const address).cast();
    // SAFETY: pointers are to what is alive here, with its own length.
    unsafe {
        let shim = weft_shim_new_image(image.as_ptr().cast(), image.len(), parameters.as_ptr(), null_mut(), 0);
        assert!(!shim.is_null());
        let fd = weft_shim_socket(shim, libc::AF_INET, libc::SOCK_STREAM, 0);
        assert_eq!(weft_shim_connect(shim, fd, address, length), 0);
        assert_eq!(weft_shim_send(shim, fd, b"hello".as_ptr().cast(), 5, 0), 5);
        let mut packet = [0_u8; 100];
        let mut at = -1;
        let room = packet.as_mut_ptr().cast::<c_void>();
        assert_eq!(weft_shim_frame_out(shim, room, 32, &raw mut at), -libc::EMSGSIZE);
        assert_eq!(weft_shim_frame_out(shim, room, 100, &raw mut at), 33);
        assert_eq!((at, weft_shim_frame_out(shim, room, 100, null_mut())), (0, 0));
        // It comes back.
        let (from, to): ([u8; 4], [u8; 4]) = (packet[12..16].try_into().unwrap(), packet[16..20].try_into().unwrap());
        packet[12..16].copy_from_slice(&to);
        packet[16..20].copy_from_slice(&from);
        packet[20..24].rotate_left(2);
        assert_eq!(weft_shim_frame_in(shim, packet.as_ptr().cast(), 33), 0);
        let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        assert_eq!(weft_shim_poll(shim, &raw mut entry, 1, 0), 1);
        assert_eq!(entry.revents, libc::POLLIN);
        let mut read = [0_u8; 9];
        assert_eq!(weft_shim_recv(shim, fd, read.as_mut_ptr().cast(), 9, 0), 5);
        assert_eq!(&read[..6], b"hello\0");
        assert_eq!(weft_shim_recv(shim, fd, read.as_mut_ptr().cast(), 9, libc::MSG_DONTWAIT), -libc::EAGAIN);

        let (mut value, mut size): (c_int, libc::socklen_t) = (-1, 4);
        let place = (&raw mut value).cast::<c_void>();
        assert_eq!(
            weft_shim_setsockopt(shim, fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, [1, 0, 0, 0].as_ptr().cast(), 4),
            0
        );
        assert_eq!(weft_shim_getsockopt(shim, fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, place, &raw mut size), 0);
        assert_eq!((value, size), (1, 4));
        size = 2;
        assert_eq!(weft_shim_getsockopt(shim, fd, libc::SOL_SOCKET, libc::SO_TYPE, place, &raw mut size), 0);
        assert_eq!(size, 2);
        let mut name = [0_u8; 16];
        let mut room = 16;
        assert_eq!(weft_shim_getpeername(shim, fd, name.as_mut_ptr().cast(), &raw mut room), 0);
        assert_eq!((room, &name[4..8]), (16, &[192, 0, 2, 1][..]));
        let mut message = [b'x'; 12];
        assert_eq!(weft_shim_set(shim, c("no").as_ptr(), c("1").as_ptr()), -libc::EINVAL);
        weft_shim_message(shim, message.as_mut_ptr().cast(), 10);
        assert_eq!((message[9], message[10]), (0, b'x'));
        assert_eq!(weft_shim_close(shim, fd), 0);
        weft_shim_free(shim);

        // What is missing is said, not touched.
        assert!(weft_shim_new_image(null(), 9, null(), null_mut(), 0).is_null());
        assert_eq!(weft_shim_poll(null_mut(), null_mut(), 3, 0), -libc::ENODEV);
        weft_shim_free(null_mut());
    }
}

#[test]
fn callbacks_keep_to_the_memory_of_the_caller() {
    let host = Setup { protocol: 17, ..Setup::default() }.start(image()).expect("a host");
    let (address, length) = there();
    let address = (&raw const address).cast();
    let mut table = MaybeUninit::<PacketdrillInterface>::uninit();
    // SAFETY: pointers are to what is alive here, with its own length.
    unsafe {
        // Without a machine every call fails.
        packetdrill_interface_init(null(), table.as_mut_ptr());
        let (socket, free, data) =
            (table.assume_init_ref().socket, table.assume_init_ref().free, table.assume_init_ref().userdata);
        assert_eq!(socket(data, libc::AF_INET, libc::SOCK_STREAM, 0), -1);
        assert_eq!(*libc::__errno_location(), libc::ENODEV);
        free(data);

        fill(table.as_mut_ptr(), Some(host));
        let table = table.assume_init();
        let data = table.userdata;
        let fd = (table.socket)(data, libc::AF_INET, libc::SOCK_STREAM, 0);
        assert_eq!((table.connect)(data, fd, address, length), 0);
        let pieces = [
            libc::iovec { iov_base: b"ab".as_ptr().cast_mut().cast(), iov_len: 2 },
            libc::iovec { iov_base: null_mut(), iov_len: 0 },
            libc::iovec { iov_base: b"cde".as_ptr().cast_mut().cast(), iov_len: 3 },
        ];
        assert_eq!((table.writev)(data, fd, pieces.as_ptr(), 3), 5);
        let mut packet = [0_u8; 100];
        let (mut count, mut at) = (100_usize, 0);
        assert_eq!((table.netdev_receive)(data, packet.as_mut_ptr().cast(), &raw mut count, &raw mut at), 0);
        assert_eq!((count, &packet[28..33]), (33, &b"abcde"[..]));
        // No packet will ever leave.
        assert_eq!((table.netdev_receive)(data, packet.as_mut_ptr().cast(), &raw mut count, &raw mut at), 0);
        assert_eq!(count, 0);
        let (from, to): ([u8; 4], [u8; 4]) = (packet[12..16].try_into().unwrap(), packet[16..20].try_into().unwrap());
        packet[12..16].copy_from_slice(&to);
        packet[16..20].copy_from_slice(&from);
        packet[20..24].rotate_left(2);
        // On another thread a call waits for it.
        struct Sent(*mut c_void);
        // SAFETY: packetdrill uses it from two threads too.
        unsafe impl Send for Sent {}
        let (read, sent) = (table.read, Sent(data));
        let reader = std::thread::spawn(move || {
            let sent = sent;
            let mut got = [0_u8; 9];
            (read(sent.0, fd, got.as_mut_ptr().cast(), 9), got)
        });
        assert_eq!((table.netdev_send)(data, packet.as_ptr().cast(), 33), 0);
        let (count, got) = reader.join().expect("it ends");
        assert_eq!((count, &got[..6]), (5, &b"abcde\0"[..]));
        let watcher = (table.epoll_create)(data, 1);
        let mut event = libc::epoll_event { events: libc::EPOLLOUT as u32, u64: 7 };
        assert_eq!((table.epoll_ctl)(data, watcher, libc::EPOLL_CTL_ADD, fd, &raw mut event), 0);
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        assert_eq!((table.epoll_wait)(data, watcher, events.as_mut_ptr(), 2, 0), 1);
        assert_eq!({ events[0].u64 }, 7);
        let mut left: c_int = -1;
        assert_eq!((table.ioctl)(data, fd, libc::FIONREAD, &raw mut left), 0);
        assert_eq!(left, 0);
        assert_eq!((table.read)(data, 99, null_mut(), 0), -1);
        assert_eq!(*libc::__errno_location(), libc::EBADF);
        (table.free)(data);
        (table.free)(null_mut());
    }
}
