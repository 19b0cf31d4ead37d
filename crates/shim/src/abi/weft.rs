//! The calls of `include/weft_shim.h`, which is their documentation.

use super::memory::{address, bytes, put, put_address, put_text, read, text, write};
use super::{milliseconds, numbers, receive, send};
use crate::{Answer, Call, Errno, Fd, Host, Patience, Progress, Setup, SetupError, Ticket};
use std::ffi::{c_char, c_int, c_void};
use std::mem::discriminant;
use std::path::Path;
use weftwire_catalog::parameter::parse_parameter;
use weftwire_core::Time;

/// What a call gives that waits until the other end has done something.
const WAITING: c_int = -1_000_000;

/// A host, and the calls of its applications that wait.
pub struct Shim {
    host: Host,
    /// A call that waits goes on when it is made again.
    waiting: Vec<(Call, Ticket)>,
    /// Calls that wait let no time pass.
    still: bool,
    /// What went wrong in [`weft_shim_set`].
    message: String,
}

/// Why a call does not give what it is for.
enum Failure {
    Waiting,
    Errno(Errno),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl Failure {
    fn number(self) -> c_int {
        match self {
            Failure::Waiting => WAITING,
            Failure::Errno(errno) => -errno.number(),
        }
    }
}

impl Shim {
    fn boxed(host: Host) -> *mut Shim {
        Box::into_raw(Box::new(Shim { host, waiting: Vec::new(), still: false, message: String::new() }))
    }

    /// Makes a call, or goes on with it.
    fn call(&mut self, call: Call, patience: Patience) -> Result<Answer, Failure> {
        let same = |waiting: &Call| discriminant(waiting) == discriminant(&call) && waiting.fd() == call.fd();
        let ticket = match self.waiting.iter().position(|(waiting, _)| same(waiting)) {
            Some(place) => self.waiting[place].1,
            None => match self.host.start(call.clone(), patience) {
                Progress::Over(result) => return Ok(result?),
                Progress::Waits(ticket) => {
                    self.waiting.push((call, ticket));
                    ticket
                }
            },
        };
        let over = if self.still { self.host.take(ticket) } else { self.host.wait(ticket) };
        let over = over.ok_or(Failure::Waiting)?;
        self.waiting.retain(|(_, waiting)| *waiting != ticket);
        Ok(over.result?)
    }
}

/// Works on a shim.
///
/// # Safety
/// `shim` is null or comes from [`weft_shim_new`] or [`weft_shim_new_image`], and nobody else works on it.
unsafe fn with(shim: *mut Shim, work: impl FnOnce(&mut Shim) -> Result<c_int, Failure>) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { shim.as_mut() } {
        Some(shim) => work(shim).unwrap_or_else(Failure::number),
        None => -Errno::NoDevice.number(),
    }
}

/// A number of bytes, which are never as many as `c_int` has room for.
fn length(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// # Safety
/// See the header.
unsafe fn made(
    parameters: *const c_char,
    message: *mut c_char,
    room: usize,
    start: impl FnOnce(Setup) -> Result<Host, SetupError>,
) -> *mut Shim {
    // SAFETY: as the header asks.
    let parameters = unsafe { text(parameters) };
    match Setup::parse(&parameters).and_then(|(setup, _)| start(setup)) {
        Ok(host) => Shim::boxed(host),
        Err(error) => {
            // SAFETY: as the header asks.
            unsafe { put_text(message, room, &words(&error)) };
            std::ptr::null_mut()
        }
    }
}

/// An error and what is behind it.
pub(super) fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words += &format!(": {error}");
        source = error.source();
    }
    words
}

/// Makes a shim from a file.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_new(
    path: *const c_char,
    parameters: *const c_char,
    message: *mut c_char,
    room: usize,
) -> *mut Shim {
    // SAFETY: as the header asks.
    unsafe {
        let path = text(path);
        made(parameters, message, room, |setup| setup.load(Path::new(&path)))
    }
}

/// Makes a shim from an image.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_new_image(
    image: *const c_void,
    length: usize,
    parameters: *const c_char,
    message: *mut c_char,
    room: usize,
) -> *mut Shim {
    // SAFETY: as the header asks.
    unsafe {
        let image = bytes(image, length).unwrap_or_default();
        made(parameters, message, room, |setup| setup.read(image))
    }
}

/// Frees a shim.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_free(shim: *mut Shim) {
    if !shim.is_null() {
        // SAFETY: it comes from a box, and is not used any more.
        drop(unsafe { Box::from_raw(shim) });
    }
}

/// A socket.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_socket(shim: *mut Shim, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let family = numbers::family(domain, kind, protocol, shim.host.protocol())?;
            let fd = shim.host.socket(family);
            shim.host.set_nonblocking(fd, kind & libc::SOCK_NONBLOCK != 0)?;
            Ok(fd.0)
        })
    }
}

/// Binds a socket.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_bind(
    shim: *mut Shim,
    fd: c_int,
    local: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.bind(Fd(fd), address(local, length)?)?;
            Ok(0)
        })
    }
}

/// Has a socket wait for connections.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_listen(shim: *mut Shim, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.listen(Fd(fd), backlog)?;
            Ok(0)
        })
    }
}

/// Takes the next connection.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_accept(
    shim: *mut Shim,
    fd: c_int,
    remote: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| match shim.call(Call::Accept { fd: Fd(fd) }, Patience::OfSocket)? {
            Answer::Accepted(new, from) => {
                put_address(remote, length, from)?;
                Ok(new.0)
            }
            _ => Ok(0),
        })
    }
}

/// Opens a connection.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_connect(
    shim: *mut Shim,
    fd: c_int,
    remote: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let remote = address(remote, length)?;
            shim.call(Call::Connect { fd: Fd(fd), remote }, Patience::OfSocket)?;
            Ok(0)
        })
    }
}

/// Reads.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_recv(
    shim: *mut Shim,
    fd: c_int,
    to: *mut c_void,
    room: usize,
    flags: c_int,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let (call, patience) = receive(fd, room, flags)?;
            let Answer::Bytes(bytes) = shim.call(call, patience)? else { return Ok(0) };
            // A call that goes on may have less room than it began with.
            let bytes = &bytes[..bytes.len().min(room)];
            write(to, bytes)?;
            Ok(length(bytes.len()))
        })
    }
}

/// Writes.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_send(
    shim: *mut Shim,
    fd: c_int,
    from: *const c_void,
    count: usize,
    flags: c_int,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let (call, patience) = send(fd, bytes(from, count)?.to_vec(), flags)?;
            match shim.call(call, patience)? {
                Answer::Count(count) => Ok(length(count)),
                _ => Ok(0),
            }
        })
    }
}

/// Says that nothing more is read or written.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_shutdown(shim: *mut Shim, fd: c_int, how: c_int) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.shutdown(Fd(fd), numbers::side(how)?)?;
            Ok(0)
        })
    }
}

/// Gives a socket up.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_close(shim: *mut Shim, fd: c_int) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.close(Fd(fd))?;
            let Shim { host, waiting, .. } = shim;
            waiting.retain(|(call, ticket)| {
                let stays = call.fd() != Some(Fd(fd));
                if !stays {
                    host.cancel(*ticket);
                }
                stays
            });
            Ok(0)
        })
    }
}

/// An option's value.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_getsockopt(
    shim: *mut Shim,
    fd: c_int,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    room: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let value = numbers::get_option(&mut shim.host, Fd(fd), level, name)?;
            let count = value.len().min(read(room)? as usize);
            write(to, &value[..count])?;
            put(room, count as libc::socklen_t)?;
            Ok(0)
        })
    }
}

/// Gives an option a value.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_setsockopt(
    shim: *mut Shim,
    fd: c_int,
    level: c_int,
    name: c_int,
    from: *const c_void,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            numbers::set_option(&mut shim.host, Fd(fd), level, name, bytes(from, length as usize)?)?;
            Ok(0)
        })
    }
}

/// Where a socket is bound.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_getsockname(
    shim: *mut Shim,
    fd: c_int,
    local: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            put_address(local, length, shim.host.local_address(Fd(fd))?)?;
            Ok(0)
        })
    }
}

/// Who is at the other end.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_getpeername(
    shim: *mut Shim,
    fd: c_int,
    remote: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            put_address(remote, length, shim.host.remote_address(Fd(fd))?)?;
            Ok(0)
        })
    }
}

/// Has calls of a socket wait or not.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_set_nonblocking(shim: *mut Shim, fd: c_int, on: c_int) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.set_nonblocking(Fd(fd), on != 0)?;
            Ok(0)
        })
    }
}

/// Waits until one of some sockets is ready.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_poll(
    shim: *mut Shim,
    entries: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            poll(entries, count as usize, |entries| shim.call(Call::Poll { entries }, milliseconds(timeout)))
        })
    }
}

/// Polls these entries by a call.
///
/// # Safety
/// There are so many entries.
pub(super) unsafe fn poll<E: From<Errno>>(
    entries: *mut libc::pollfd,
    count: usize,
    call: impl FnOnce(Vec<(Fd, crate::Interest)>) -> Result<Answer, E>,
) -> Result<c_int, E> {
    let mut wanted = Vec::new();
    for at in 0..count {
        // SAFETY: as the caller promises.
        let entry = unsafe { read(entries.wrapping_add(at)) }?;
        wanted.push((Fd(entry.fd), numbers::interest(entry.events)));
    }
    let Answer::Ready(ready) = call(wanted)? else { return Ok(0) };
    let mut told = 0;
    for (at, ready) in ready.into_iter().enumerate().take(count) {
        let place = entries.wrapping_add(at);
        // SAFETY: as the caller promises.
        unsafe {
            let entry = read(place)?;
            put(place, libc::pollfd { revents: numbers::events(ready), ..entry })?;
        }
        told += c_int::from(ready != crate::Interest::NONE);
    }
    Ok(told)
}

/// A packet arrives.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_frame_in(shim: *mut Shim, from: *const c_void, length: usize) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.frame_in(bytes(from, length)?);
            Ok(0)
        })
    }
}

/// The next packet that has left.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_frame_out(shim: *mut Shim, to: *mut c_void, room: usize, at: *mut i64) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let Some(first) = shim.host.first_frame() else { return Ok(0) };
            if first.bytes.len() > room {
                return Err(Errno::MessageSize.into());
            }
            write(to, &first.bytes)?;
            if !at.is_null() {
                put(at, first.at.nanoseconds())?;
            }
            let count = length(first.bytes.len());
            shim.host.frame_out();
            Ok(count)
        })
    }
}

/// The present instant.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_now(shim: *const Shim) -> i64 {
    // SAFETY: as the header asks.
    unsafe { shim.as_ref() }.map_or(-1, |shim| shim.host.now().nanoseconds())
}

/// When something happens next.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_next_deadline(shim: *const Shim) -> i64 {
    // SAFETY: as the header asks.
    let deadline = unsafe { shim.as_ref() }.and_then(|shim| shim.host.next_deadline());
    deadline.map_or(-1, Time::nanoseconds)
}

/// Lets time pass.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_advance(shim: *mut Shim, until: i64) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.host.advance(Time::from_nanoseconds(until));
            Ok(0)
        })
    }
}

/// Lets time pass until a packet has left.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_run_to_frame(shim: *mut Shim, until: i64) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            let until = Time::from_nanoseconds(until);
            let left = shim.host.run_to_frame(until);
            if !left {
                shim.host.advance(until);
            }
            Ok(left.into())
        })
    }
}

/// Has calls that wait let time pass or not.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_keep_time(shim: *mut Shim, on: c_int) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(shim, |shim| {
            shim.still = on != 0;
            Ok(0)
        })
    }
}

/// Gives a register another initial value.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_set(shim: *mut Shim, name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        let (name, value) = (text(name), text(value));
        with(shim, |shim| {
            let wrong = |error: &dyn std::error::Error| (words(error), Errno::Invalid);
            let parameter = parse_parameter(&format!("{name}={value}")).map_err(|error| wrong(&error));
            let set = parameter.and_then(|it| shim.host.set(&[it]).map_err(|error| wrong(&error)));
            set.map_err(|(message, errno)| {
                shim.message = message;
                errno
            })?;
            Ok(0)
        })
    }
}

/// What went wrong in the latest [`weft_shim_set`] that failed.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shim_message(shim: *const Shim, to: *mut c_char, room: usize) {
    // SAFETY: as the header asks.
    unsafe {
        if let Some(shim) = shim.as_ref() {
            put_text(to, room, &shim.message);
        }
    }
}
