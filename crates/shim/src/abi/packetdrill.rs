//! The table of callbacks that packetdrill asks a shared object for (`--so_filename`).
//!
//! packetdrill makes calls that are to wait on a thread of their own, while another one injects packets, looks at those that leave,
//! and lets time pass by `usleep`. Here a call that waits is an entry in the [`Host`], completed at an instant of virtual time; its
//! thread only sleeps until somebody has completed it. When it asks for the time next, it is told that instant: packetdrill takes
//! it for the end of the call. So what a script sees does not depend on the scheduler.
//!
//! packetdrill also waits by asking for the time again and again. So each answer lets a microsecond pass.
#![allow(clippy::disallowed_types, reason = "packetdrill calls from two threads")]

use super::memory::{address, bytes, put, put_address, read, text, write};
use super::weft::{poll as poll_entries, words};
use super::{milliseconds, numbers, receive, send};
use crate::{Answer, Call, Completion, Errno, Fd, Host, Interest, Patience, Progress, Setup, SetupError, Watch};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weftwire_core::Time;

/// Nanoseconds of a microsecond.
const MICROSECOND: i64 = 1_000;
/// Virtual time begins so many seconds after 1970: packetdrill wants times of day.
const EPOCH: i64 = 1_000_000_000;
/// `netdev_receive` waits for a packet for as long, in nanoseconds: an hour.
const LONGEST: i64 = 3_600 * 1_000_000_000;
/// A call waits for so long of real time while nobody makes another; then it would wait for ever.
const IDLE: Duration = Duration::from_secs(10);

thread_local! {
    /// When the call was over that this thread has waited for, until it asks for the time.
    static OVER: Cell<Option<Time>> = const { Cell::new(None) };
}

/// What is behind `userdata`.
struct Drill {
    /// `None`: there is no machine, and every call fails.
    host: Mutex<Option<Host>>,
    /// Something has happened that calls may have waited for.
    changed: Condvar,
}

impl Drill {
    fn lock(&self) -> MutexGuard<'_, Option<Host>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call that does not wait.
    fn at_once<R>(&self, work: impl FnOnce(&mut Host) -> Result<R, Errno>) -> Result<R, Errno> {
        let result = self.lock().as_mut().ok_or(Errno::NoDevice).and_then(work);
        self.changed.notify_all();
        result
    }

    /// Makes a call that may wait until other threads let it go on.
    fn call(&self, call: Call, patience: Patience) -> Result<Answer, Errno> {
        let mut guard = self.lock();
        let ticket = match guard.as_mut().ok_or(Errno::NoDevice)?.start(call, patience) {
            Progress::Over(result) => {
                self.changed.notify_all();
                return result;
            }
            Progress::Waits(ticket) => ticket,
        };
        loop {
            let (next, time) = self.changed.wait_timeout(guard, IDLE).unwrap_or_else(PoisonError::into_inner);
            guard = next;
            let host = guard.as_mut().ok_or(Errno::NoDevice)?;
            if let Some(Completion { at, result }) = host.take(ticket) {
                OVER.set(Some(at));
                return result;
            }
            if time.timed_out() {
                host.cancel(ticket);
                return Err(Errno::Deadlock);
            }
        }
    }
}

/// Microseconds of the day, as packetdrill has them.
fn microseconds(at: Time) -> i64 {
    EPOCH * 1_000_000 + at.nanoseconds() / MICROSECOND
}

/// Works on what is behind `userdata`. Gives -1 and sets `errno` where C expects that.
///
/// # Safety
/// `userdata` comes from [`packetdrill_interface_init`] and was not freed.
unsafe fn with<N: From<i8>>(userdata: *mut c_void, work: impl FnOnce(&Drill) -> Result<N, Errno>) -> N {
    // SAFETY: as the caller promises.
    let result = match unsafe { userdata.cast::<Drill>().as_ref() } {
        Some(drill) => work(drill),
        None => Err(Errno::NoDevice),
    };
    result.unwrap_or_else(|errno| {
        // SAFETY: this thread's own.
        unsafe { *libc::__errno_location() = errno.number() };
        N::from(-1)
    })
}

/// The table, as packetdrill lays it out. `fcntl` and `ioctl` have `...` behind what is here; on Linux the third argument comes like
/// that of a function without.
#[repr(C)]
#[allow(missing_docs, reason = "the calls of Linux, which their manual pages describe")]
pub struct PacketdrillInterface {
    pub userdata: *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub socket: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    pub bind: unsafe extern "C" fn(*mut c_void, c_int, *const libc::sockaddr, libc::socklen_t) -> c_int,
    pub listen: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    pub accept: unsafe extern "C" fn(*mut c_void, c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int,
    pub connect: unsafe extern "C" fn(*mut c_void, c_int, *const libc::sockaddr, libc::socklen_t) -> c_int,
    pub read: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize) -> isize,
    pub readv: unsafe extern "C" fn(*mut c_void, c_int, *const libc::iovec, c_int) -> isize,
    pub recv: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize, c_int) -> isize,
    pub recvfrom: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *mut c_void,
        usize,
        c_int,
        *mut libc::sockaddr,
        *mut libc::socklen_t,
    ) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut c_void, c_int, *mut libc::msghdr, c_int) -> isize,
    pub write: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> isize,
    pub writev: unsafe extern "C" fn(*mut c_void, c_int, *const libc::iovec, c_int) -> isize,
    pub send: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, c_int) -> isize,
    pub sendto: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_void,
        usize,
        c_int,
        *const libc::sockaddr,
        libc::socklen_t,
    ) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut c_void, c_int, *const libc::msghdr, c_int) -> isize,
    pub fcntl: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_long) -> c_int,
    pub ioctl: unsafe extern "C" fn(*mut c_void, c_int, c_ulong, *mut c_int) -> c_int,
    pub close: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub shutdown: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    pub getsockopt: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void, *mut libc::socklen_t) -> c_int,
    pub setsockopt: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *const c_void, libc::socklen_t) -> c_int,
    pub poll: unsafe extern "C" fn(*mut c_void, *mut libc::pollfd, libc::nfds_t, c_int) -> c_int,
    pub netdev_send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    pub netdev_receive: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    pub usleep: unsafe extern "C" fn(*mut c_void, c_uint) -> c_int,
    pub gettimeofday: unsafe extern "C" fn(*mut c_void, *mut libc::timeval, *mut libc::timezone) -> c_int,
    pub epoll_create: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub epoll_ctl: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut libc::epoll_event) -> c_int,
    pub epoll_wait: unsafe extern "C" fn(*mut c_void, c_int, *mut libc::epoll_event, c_int, c_int) -> c_int,
    pub pipe: unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    pub splice: unsafe extern "C" fn(*mut c_void, c_int, *mut i64, c_int, *mut i64, usize, c_uint) -> isize,
}

/// Fills packetdrill's table. `flags` are parameters, `machine=PATH` among them, as [`Setup::parse`] reads them. Without a machine
/// that can run, this says why on standard error, and every call fails with `ENODEV`.
///
/// # Safety
/// `flags` is null or a C string; there is room for a table at `table`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, table: *mut PacketdrillInterface) {
    // SAFETY: as the caller promises.
    let flags = unsafe { text(flags) };
    let host = match host(&flags) {
        Ok(host) => Some(host),
        Err(error) => {
            eprintln!("weft_shim: {}", words(&error));
            None
        }
    };
    // SAFETY: as the caller promises.
    unsafe { fill(table, host) };
}

/// Fills a table whose calls work on this host.
///
/// # Safety
/// There is room for a table at `table`.
pub(super) unsafe fn fill(table: *mut PacketdrillInterface, host: Option<Host>) {
    let drill = Box::new(Drill { host: Mutex::new(host), changed: Condvar::new() });
    let filled = PacketdrillInterface {
        userdata: Box::into_raw(drill).cast(),
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read: read_call,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write: write_call,
        writev,
        send: send_call,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    };
    if !table.is_null() {
        // SAFETY: not null, and as the caller promises.
        unsafe { table.write(filled) };
    }
}

fn host(flags: &str) -> Result<Host, SetupError> {
    let (setup, machine) = Setup::parse(flags)?;
    setup.load(Path::new(&machine.ok_or(SetupError::NoMachine)?))
}

unsafe extern "C" fn free(userdata: *mut c_void) {
    if !userdata.is_null() {
        // SAFETY: it comes from a box, and is not used any more.
        drop(unsafe { Box::from_raw(userdata.cast::<Drill>()) });
    }
}

unsafe extern "C" fn socket(userdata: *mut c_void, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let made = |host: &mut Host| {
        let fd = host.socket(numbers::family(domain, kind, protocol, host.protocol())?);
        host.set_nonblocking(fd, kind & libc::SOCK_NONBLOCK != 0)?;
        Ok(fd.0)
    };
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(made)) }
}

unsafe extern "C" fn bind(
    userdata: *mut c_void,
    fd: c_int,
    local: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own; an address of C.
    unsafe {
        with(userdata, |drill| {
            let local = address(local, length)?;
            drill.at_once(|host| host.bind(Fd(fd), local)).map(|()| 0)
        })
    }
}

unsafe extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(|host| host.listen(Fd(fd), backlog)).map(|()| 0)) }
}

unsafe extern "C" fn accept(
    userdata: *mut c_void,
    fd: c_int,
    remote: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own; room for an address.
    unsafe {
        with(userdata, |drill| match drill.call(Call::Accept { fd: Fd(fd) }, Patience::OfSocket)? {
            Answer::Accepted(new, from) => {
                put_address(remote, length, from)?;
                Ok(new.0)
            }
            _ => Ok(0),
        })
    }
}

unsafe extern "C" fn connect(
    userdata: *mut c_void,
    fd: c_int,
    remote: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own; an address of C.
    unsafe {
        with(userdata, |drill| {
            let remote = address(remote, length)?;
            drill.call(Call::Connect { fd: Fd(fd), remote }, Patience::OfSocket).map(|_| 0)
        })
    }
}

/// Reads into pieces of memory.
///
/// # Safety
/// `userdata` as [`with`] asks; each piece can be written.
unsafe fn scatter(
    userdata: *mut c_void,
    fd: c_int,
    pieces: impl Fn(usize) -> Result<libc::iovec, Errno>,
    count: usize,
    flags: c_int,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        with(userdata, |drill| {
            let pieces = (0..count).map(pieces).collect::<Result<Vec<libc::iovec>, Errno>>()?;
            let room = pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(piece.iov_len));
            let (call, patience) = receive(fd, room.ok_or(Errno::Invalid)?, flags)?;
            let Answer::Bytes(got) = drill.call(call, patience)? else { return Ok(0) };
            let mut rest = &got[..];
            for piece in pieces {
                let (here, behind) = rest.split_at(piece.iov_len.min(rest.len()));
                write(piece.iov_base, here)?;
                rest = behind;
            }
            Ok(got.len().cast_signed())
        })
    }
}

/// Writes pieces of memory.
///
/// # Safety
/// `userdata` as [`with`] asks; each piece can be read.
unsafe fn gather(
    userdata: *mut c_void,
    fd: c_int,
    pieces: impl Fn(usize) -> Result<libc::iovec, Errno>,
    count: usize,
    flags: c_int,
) -> isize {
    // SAFETY: as the caller promises.
    unsafe {
        with(userdata, |drill| {
            let mut all = Vec::new();
            for at in 0..count {
                let piece = pieces(at)?;
                all.extend_from_slice(bytes(piece.iov_base, piece.iov_len)?);
            }
            let (call, patience) = send(fd, all, flags)?;
            match drill.call(call, patience)? {
                Answer::Count(count) => Ok(count.cast_signed()),
                _ => Ok(0),
            }
        })
    }
}

/// One piece of memory.
fn one(memory: *mut c_void, length: usize) -> impl Fn(usize) -> Result<libc::iovec, Errno> {
    move |_| Ok(libc::iovec { iov_base: memory, iov_len: length })
}

/// The pieces of an array of C.
///
/// # Safety
/// There are as many pieces as will be asked for.
unsafe fn array(pieces: *const libc::iovec) -> impl Fn(usize) -> Result<libc::iovec, Errno> {
    // SAFETY: as the caller promises.
    move |at| unsafe { read(pieces.wrapping_add(at)) }
}

unsafe extern "C" fn read_call(userdata: *mut c_void, fd: c_int, to: *mut c_void, room: usize) -> isize {
    // SAFETY: packetdrill's own; its room.
    unsafe { scatter(userdata, fd, one(to, room), 1, 0) }
}

unsafe extern "C" fn readv(userdata: *mut c_void, fd: c_int, pieces: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: packetdrill's own; so many pieces.
    unsafe { scatter(userdata, fd, array(pieces), usize::try_from(count).unwrap_or(0), 0) }
}

unsafe extern "C" fn recv(userdata: *mut c_void, fd: c_int, to: *mut c_void, room: usize, flags: c_int) -> isize {
    // SAFETY: packetdrill's own; its room.
    unsafe { scatter(userdata, fd, one(to, room), 1, flags) }
}

unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    to: *mut c_void,
    room: usize,
    flags: c_int,
    _remote: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> isize {
    // SAFETY: packetdrill's own; its room. Connections tell no address.
    unsafe {
        if !length.is_null() {
            length.write_unaligned(0);
        }
        scatter(userdata, fd, one(to, room), 1, flags)
    }
}

unsafe extern "C" fn recvmsg(userdata: *mut c_void, fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    // SAFETY: packetdrill's own; a message of C, which tells no address and nothing beside the bytes.
    unsafe {
        let Ok(mut header) = read(message) else { return with(userdata, |_| Err(Errno::Fault)) };
        (header.msg_namelen, header.msg_controllen, header.msg_flags) = (0, 0, 0);
        message.write_unaligned(header);
        scatter(userdata, fd, array(header.msg_iov), header.msg_iovlen, flags)
    }
}

unsafe extern "C" fn write_call(userdata: *mut c_void, fd: c_int, from: *const c_void, count: usize) -> isize {
    // SAFETY: packetdrill's own; its bytes.
    unsafe { gather(userdata, fd, one(from.cast_mut(), count), 1, 0) }
}

unsafe extern "C" fn writev(userdata: *mut c_void, fd: c_int, pieces: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: packetdrill's own; so many pieces.
    unsafe { gather(userdata, fd, array(pieces), usize::try_from(count).unwrap_or(0), 0) }
}

unsafe extern "C" fn send_call(
    userdata: *mut c_void,
    fd: c_int,
    from: *const c_void,
    count: usize,
    flags: c_int,
) -> isize {
    // SAFETY: packetdrill's own; its bytes.
    unsafe { gather(userdata, fd, one(from.cast_mut(), count), 1, flags) }
}

unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    from: *const c_void,
    count: usize,
    flags: c_int,
    _remote: *const libc::sockaddr,
    _length: libc::socklen_t,
) -> isize {
    // SAFETY: packetdrill's own; its bytes. Connections have one other end, whatever is named.
    unsafe { gather(userdata, fd, one(from.cast_mut(), count), 1, flags) }
}

unsafe extern "C" fn sendmsg(userdata: *mut c_void, fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize {
    // SAFETY: packetdrill's own; a message of C.
    unsafe {
        match read(message) {
            Ok(header) => gather(userdata, fd, array(header.msg_iov), header.msg_iovlen, flags),
            Err(errno) => with(userdata, |_| Err(errno)),
        }
    }
}

unsafe extern "C" fn fcntl(userdata: *mut c_void, fd: c_int, command: c_int, argument: c_long) -> c_int {
    let done = |host: &mut Host| match command {
        libc::F_GETFL => {
            let waits = if host.is_nonblocking(Fd(fd))? { libc::O_NONBLOCK } else { 0 };
            Ok(libc::O_RDWR | waits)
        }
        libc::F_SETFL => {
            host.set_nonblocking(Fd(fd), argument & c_long::from(libc::O_NONBLOCK) != 0)?;
            Ok(0)
        }
        _ => Err(Errno::Invalid),
    };
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(done)) }
}

unsafe extern "C" fn ioctl(userdata: *mut c_void, fd: c_int, request: c_ulong, argument: *mut c_int) -> c_int {
    let asked = |host: &mut Host| match request {
        libc::FIONREAD => host.readable(Fd(fd)),
        libc::TIOCOUTQ => host.unacknowledged(Fd(fd)),
        _ => Err(Errno::Invalid),
    };
    // SAFETY: packetdrill's own; room for a number, which both requests have.
    unsafe {
        with(userdata, |drill| {
            let count = drill.at_once(asked)?;
            put(argument, c_int::try_from(count).unwrap_or(c_int::MAX))?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn close(userdata: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(|host| host.close(Fd(fd))).map(|()| 0)) }
}

unsafe extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    let done = |host: &mut Host| host.shutdown(Fd(fd), numbers::side(how)?);
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(done).map(|()| 0)) }
}

unsafe extern "C" fn getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    room: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own; its room.
    unsafe {
        with(userdata, |drill| {
            let value = drill.at_once(|host| numbers::get_option(host, Fd(fd), level, name))?;
            let count = value.len().min(read(room)? as usize);
            write(to, &value[..count])?;
            put(room, count as libc::socklen_t)?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    from: *const c_void,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own; its value.
    unsafe {
        with(userdata, |drill| {
            let value = bytes(from, length as usize)?;
            drill.at_once(|host| numbers::set_option(host, Fd(fd), level, name, value)).map(|()| 0)
        })
    }
}

unsafe extern "C" fn poll(
    userdata: *mut c_void,
    entries: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: packetdrill's own; so many entries.
    unsafe {
        with(userdata, |drill| {
            let call = |entries| drill.call(Call::Poll { entries }, milliseconds(timeout));
            poll_entries(entries, count as usize, call)
        })
    }
}

unsafe extern "C" fn netdev_send(userdata: *mut c_void, from: *const c_void, count: usize) -> c_int {
    // SAFETY: packetdrill's own; its packet.
    unsafe {
        with(userdata, |drill| {
            let packet = bytes(from, count)?;
            drill.at_once(|host| {
                host.frame_in(packet);
                Ok(0)
            })
        })
    }
}

/// Lets time pass until a packet leaves. If none does within an hour, packetdrill is told that it received nothing, and gives up.
unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    to: *mut c_void,
    count: *mut usize,
    at: *mut c_longlong,
) -> c_int {
    // SAFETY: packetdrill's own; its room.
    unsafe {
        with(userdata, |drill| {
            let room = read(count)?;
            let packet = drill.at_once(|host| {
                host.run_to_frame(host.now().after(LONGEST));
                match host.first_frame() {
                    Some(first) if first.bytes.len() > room => Err(Errno::MessageSize),
                    _ => Ok(host.frame_out()),
                }
            })?;
            let packet = packet.unwrap_or_default();
            write(to, &packet.bytes)?;
            put(count, packet.bytes.len())?;
            put(at, microseconds(packet.at))?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn usleep(userdata: *mut c_void, microseconds: c_uint) -> c_int {
    let pass = |host: &mut Host| {
        host.advance(host.now().after(i64::from(microseconds) * MICROSECOND));
        Ok(0)
    };
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(pass)) }
}

unsafe extern "C" fn gettimeofday(userdata: *mut c_void, to: *mut libc::timeval, _zone: *mut libc::timezone) -> c_int {
    let pass = |host: &mut Host| {
        host.advance(host.now().after(MICROSECOND));
        Ok(host.now())
    };
    // SAFETY: packetdrill's own; room for a time.
    unsafe {
        with(userdata, |drill| {
            let now = match OVER.take() {
                Some(over) => over,
                None => drill.at_once(pass)?,
            };
            let now = microseconds(now);
            put(to, libc::timeval { tv_sec: now / 1_000_000, tv_usec: now % 1_000_000 })?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn epoll_create(userdata: *mut c_void, size: c_int) -> c_int {
    let made = |host: &mut Host| if size > 0 { Ok(host.watcher().0) } else { Err(Errno::Invalid) };
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |drill| drill.at_once(made)) }
}

/// Events are told for as long as they hold; `EPOLLET` is not provided.
unsafe extern "C" fn epoll_ctl(
    userdata: *mut c_void,
    fd: c_int,
    operation: c_int,
    other: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    const FREE: u32 = (libc::EPOLLET | libc::EPOLLEXCLUSIVE) as u32;
    const ONCE: u32 = libc::EPOLLONESHOT as u32;
    // SAFETY: packetdrill's own; an event unless one is taken out.
    unsafe {
        with(userdata, |drill| {
            let watch = match operation {
                libc::EPOLL_CTL_DEL => None,
                libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD => {
                    let event = read(event)?;
                    if event.events & FREE != 0 {
                        return Err(Errno::Invalid);
                    }
                    let interest = Interest(event.events & !ONCE);
                    Some(Watch { interest, data: event.u64, once: event.events & ONCE != 0 })
                }
                _ => return Err(Errno::Invalid),
            };
            drill.at_once(|host| match watch.filter(|_| operation == libc::EPOLL_CTL_ADD) {
                Some(watch) => host.watch(Fd(fd), Fd(other), watch),
                None => host.rewatch(Fd(fd), Fd(other), watch),
            })?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn epoll_wait(
    userdata: *mut c_void,
    fd: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: packetdrill's own; room for so many events.
    unsafe {
        with(userdata, |drill| {
            let most = usize::try_from(most).ok().filter(|most| *most > 0).ok_or(Errno::Invalid)?;
            let call = Call::WaitForWatched { fd: Fd(fd), most };
            let Answer::Watched(told) = drill.call(call, milliseconds(timeout))? else { return Ok(0) };
            for (at, (ready, data)) in told.iter().enumerate() {
                put(events.wrapping_add(at), libc::epoll_event { events: ready.0, u64: *data })?;
            }
            Ok(c_int::try_from(told.len()).unwrap_or(c_int::MAX))
        })
    }
}

unsafe extern "C" fn pipe(userdata: *mut c_void, _ends: *mut c_int) -> c_int {
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |_| Err(Errno::NoCall)) }
}

unsafe extern "C" fn splice(
    userdata: *mut c_void,
    _from: c_int,
    _from_offset: *mut i64,
    _to: c_int,
    _to_offset: *mut i64,
    _length: usize,
    _flags: c_uint,
) -> isize {
    // SAFETY: packetdrill's own.
    unsafe { with(userdata, |_| Err(Errno::NoCall)) }
}
