//! Thin safe wrappers of the system calls that several modules need.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;
use weftwire_core::Time;
use weftwire_core::live::Clocks;

/// Turns the C convention of -1 and `errno` into a result.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Opens a socket, closed on exec.
pub fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; a new descriptor belongs to nobody else.
    unsafe {
        let descriptor = check(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Sets a socket option whose value is the plain C type `T`.
pub fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel only reads `size_of::<T>()` bytes behind a valid reference.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// Whether reading and writing there may wait (fcntl(2), `O_NONBLOCK`).
pub(crate) fn may_wait(descriptor: BorrowedFd<'_>) -> bool {
    // SAFETY: takes numbers.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
    flags < 0 || flags & libc::O_NONBLOCK == 0
}

/// The same pipe to write to, where writing does not wait: opened once more, so that whoever shares the descriptor sees no change
/// (proc(5), `/proc/self/fd`). `None` if it is no pipe, or can't be opened.
pub(crate) fn pipe_without_waiting(pipe: &File) -> Option<File> {
    if !pipe.metadata().ok()?.file_type().is_fifo() {
        return None;
    }
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path).ok()
}

/// Reads a socket option whose value is the plain C type `T`.
///
/// # Safety
/// Every pattern of bits is a `T`.
///
/// # Errors
/// The kernel refuses, or its value is shorter.
pub(crate) unsafe fn get_option<T: Copy>(socket: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<T> {
    let (mut value, mut length) = (std::mem::MaybeUninit::<T>::zeroed(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes into `value`, which holds zeros where it does not.
    unsafe {
        check(libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length))?;
        match length as usize == size_of::<T>() {
            true => Ok(value.assume_init()),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Wakes a thread that polls (eventfd(2)).
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        // SAFETY: no pointers; the new descriptor belongs to nobody else.
        Ok(Waker(unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) }))
    }

    pub(crate) fn wake(&self) {
        let one = 1_u64;
        // SAFETY: writes 8 valid bytes to a descriptor that is open; a counter that is full wakes the thread all the same.
        unsafe { libc::write(self.0.as_raw_fd(), std::ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }

    /// It is readable again only when it is woken again.
    pub(crate) fn reset(&self) {
        let mut count = 0_u64;
        // SAFETY: reads 8 bytes into `count`; nothing to read is no harm.
        unsafe { libc::read(self.0.as_raw_fd(), std::ptr::from_mut(&mut count).cast(), size_of::<u64>()) };
    }

    /// Readable when it was woken.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Says that nothing more will be written to a socket; what is there still arrives.
pub(crate) fn shut_down_writing(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes numbers.
    check(unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// Lets this process have so many descriptors, if it may. Returns how many it may have now.
pub(crate) fn allow_descriptors(count: usize) -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel reads and writes one `rlimit` behind a valid reference.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        if (limit.rlim_cur as usize) < count {
            limit.rlim_cur = limit.rlim_max.min(count as libc::rlim_t);
            check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        }
    }
    Ok(limit.rlim_cur as usize)
}

/// An empty `ifreq` for the interface `name`, which must be shorter than `IFNAMSIZ`.
pub(crate) fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is plain data for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0 whatever the name.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// An interface request (`SIOCGIF...`, `SIOCSIF...`, `TUNSETIFF`).
pub(crate) fn interface_ioctl(
    descriptor: BorrowedFd<'_>,
    number: libc::Ioctl,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: all numbers used with this function take an `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(descriptor.as_raw_fd(), number, std::ptr::from_mut(request)) }).map(drop)
}

/// Seconds of processor time that the calling thread has used.
pub fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` behind a valid reference.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } {
        0 => time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
        _ => 0.0,
    }
}

/// Seconds of processor time that this process and those of its children that have ended used.
pub fn process_seconds() -> f64 {
    let seconds = |who| {
        // SAFETY: rusage is plain data, which the kernel fills; with these numbers the call can't fail.
        let usage: libc::rusage = unsafe {
            let mut usage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let time = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    seconds(libc::RUSAGE_SELF) + seconds(libc::RUSAGE_CHILDREN)
}

/// Waits until a descriptor is ready or so much time has passed; `None` waits without end. Interruption by a
/// signal is an early return, not an error.
pub fn poll(descriptors: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice and the timeout outlive the call; a null signal mask leaves the mask alone.
    let result =
        unsafe { libc::ppoll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, timeout, std::ptr::null()) };
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// A poll entry that waits for input.
pub fn poll_input(descriptor: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// The run's clock: `CLOCK_MONOTONIC` since the clock was made.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: i64,
}

impl Clock {
    /// A clock that shows zero now.
    pub(crate) fn start() -> Clock {
        Clock { start: monotonic_ns() }
    }

    /// The clock of a function that stopped at `time` where its time stood so to the machine's clocks: it goes on as if it had
    /// never stopped, by `CLOCK_MONOTONIC` on the same boot, else by `CLOCK_TAI`, and never back.
    pub(crate) fn resume(time: Time, clocks: &Clocks) -> Clock {
        let by_clocks = match clocks.boot == boot() {
            true => monotonic_ns().saturating_sub(clocks.monotonic),
            false => clock_ns(libc::CLOCK_TAI).saturating_sub(clocks.tai),
        };
        Clock { start: monotonic_ns().saturating_sub(by_clocks.max(time.nanoseconds())) }
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Time {
        Time::from_nanoseconds(monotonic_ns() - self.start)
    }

    /// How it stands to the machine's clocks.
    pub(crate) fn clocks(&self) -> Clocks {
        let tai = clock_ns(libc::CLOCK_TAI) - monotonic_ns();
        Clocks { boot: boot(), monotonic: self.start, tai: self.start + tai }
    }
}

/// Which boot of the machine this is; zeros where the kernel does not say.
fn boot() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub fn realtime_ns() -> i64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// A clock of clock_gettime(2) that always exists, in nanoseconds.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec. These clocks always exist, so the call can't fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Words from the kernel's random source, for seeds and secret keys.
///
/// # Errors
/// Only on kernels without `getrandom` (before Linux 3.17).
pub fn random_words<const N: usize>() -> io::Result<[u64; N]> {
    let mut words = [0_u64; N];
    // SAFETY: the kernel writes at most the given number of bytes into `words`, for which all bit patterns are valid.
    // Requests of up to 256 bytes are answered whole.
    let result = unsafe { libc::getrandom(words.as_mut_ptr().cast(), size_of_val(&words), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(words) }
}

/// Has the kernel kill the process when the thread that starts it ends, however it ends.
pub fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: prctl and getppid are allowed between fork and exec, and nothing is allocated here.
    unsafe {
        command.pre_exec(move || {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
            // It may have ended just before.
            if libc::getppid() as u32 == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_where_a_run_has_ended_and_never_goes_back() {
        let first = Clock::start();
        let clocks = first.clocks();
        let before = first.now();
        let (again, after) = (Clock::resume(before, &clocks).now(), first.now());
        assert!(before <= again && again <= after, "{before} {again} {after}");
        // After another boot the time of day counts: it is the same clock but for the two readings that it takes.
        let elsewhere = Clocks { boot: [0xff; 16], ..clocks };
        assert!(Clock::resume(before, &elsewhere).now() >= before);
        let later = before.after(1_000_000_000_000_000);
        assert!(Clock::resume(later, &clocks).now() >= later, "the time of the state is the least");
    }
}
