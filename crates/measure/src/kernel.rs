//! The kernel's own pacing: a TCP connection with `SO_MAX_PACING_RATE` over the line, and when its segments leave.

use crate::line::{FAR_ADDRESS, Line, NEAR, NEAR_ADDRESS};
use crate::observer::{Departed, Observer};
use crate::usage::{Meter, Usage};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;
use weftwire_linux::LinuxError;
use weftwire_linux::socket_address::{connect, listen};
use weftwire_linux::system::{check, monotonic_ns, set_option};

/// Payload of a segment on an MTU of 1,500 with time stamps.
const SEGMENT: i64 = 1_448;
/// The first frames are a burst that pacing lets pass; they are left out.
const WARM_UP: usize = 2;
/// A first SYN may be lost while the kernel brings the line up; the next one comes a second later.
const PATIENCE: Duration = Duration::from_secs(5);
/// Departures kept at most.
const MOST: usize = 1 << 20;

/// What the kernel made of one rate.
#[derive(Clone, Debug, Default)]
pub struct Paced {
    /// The time from each segment to the next, in nanoseconds: 0 within a frame of many.
    pub gaps_ns: Vec<i64>,
    /// Segments a frame, on average.
    pub burst: f64,
    /// The rate of the segments over all, as a share of the rate asked for.
    pub rate: f64,
    /// Processor time; the thread's is that of writing, pacing itself happens in soft interrupts.
    pub usage: Usage,
}

/// Has the kernel pace segments, one every `gap` nanoseconds, for this time.
///
/// # Errors
/// No permission, or the connection fails.
pub fn paced(line: &Line, gap: i64, time: Duration) -> Result<Paced, LinuxError> {
    let failed = |error| LinuxError::system("have the kernel pace a TCP connection", error);
    let receiver =
        line.far.run(|| listen((FAR_ADDRESS, PORT).into(), PATIENCE)).and_then(|socket| socket).map_err(failed)?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| receive_all(&receiver));
        let sent = line.near.run(|| {
            let observer = Observer::open(NEAR)?;
            let usage = send(gap, time).map_err(failed)?;
            summary(&observer, gap, usage).map_err(failed)
        });
        // It ends with the connection, or when none has come for a while.
        let _ = thread.join();
        sent.map_err(failed)?
    })
}

const PORT: u16 = 5_201;

/// Accepts one connection and throws away what comes.
fn receive_all(listener: &OwnedFd) -> io::Result<()> {
    // SAFETY: no address is asked for; the new descriptor belongs to nobody else.
    let mut stream = unsafe {
        use std::os::fd::FromRawFd;
        let flags = libc::SOCK_CLOEXEC;
        let none = std::ptr::null_mut;
        File::from(OwnedFd::from_raw_fd(check(libc::accept4(listener.as_raw_fd(), none(), none().cast(), flags))?))
    };
    let mut buffer = vec![0; 1 << 18];
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Writes as fast as the connection takes it, then drops all that has not left.
fn send(gap: i64, time: Duration) -> io::Result<Usage> {
    let socket =
        connect((NEAR_ADDRESS, 0).into(), (FAR_ADDRESS, PORT).into(), None, PATIENCE, Duration::from_millis(20))?;
    let rate = (SEGMENT * 1_000_000_000 / gap.max(1)).cast_unsigned();
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate)?;
    // Congestion control that does not pace by itself, so that this rate alone counts. If it is not there, the default has to do.
    let _ = set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"cubic");
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
    let (block, mut stream) = (vec![0; 1 << 16], File::from(socket));
    let meter = Meter::start();
    let end = monotonic_ns() + i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    while monotonic_ns() < end {
        match stream.write(&block) {
            Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(meter.stop())
}

fn summary(observer: &Observer, gap: i64, usage: Usage) -> io::Result<Paced> {
    let mut frames: Vec<(i64, usize)> = Vec::new();
    observer.drain(|frame| {
        frames.extend(payload(&frame).filter(|_| frames.len() < MOST).map(|bytes| (frame.at_ns, bytes)))
    })?;
    let frames = frames.get(WARM_UP..).unwrap_or_default();
    let mut times = Vec::new();
    for (at, bytes) in frames {
        times.extend(std::iter::repeat_n(*at, bytes.div_ceil(SEGMENT as usize).min(64)));
    }
    let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let lasted: i64 = gaps.iter().sum();
    let rate = if lasted > 0 { gaps.len() as f64 * gap as f64 / lasted as f64 } else { 0.0 };
    Ok(Paced { burst: times.len() as f64 / frames.len().max(1) as f64, rate, usage, gaps_ns: gaps })
}

/// Bytes of TCP's payload in a frame of the line, if it has any.
fn payload(frame: &Departed<'_>) -> Option<usize> {
    let head = frame.head;
    if head.get(12..14)? != [8, 0] || *head.get(23)? != 6 {
        return None;
    }
    let network = usize::from(head[14] & 15) * 4;
    let transport = usize::from(*head.get(14 + network + 12)? >> 4) * 4;
    frame.length.checked_sub(14 + network + transport).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_what_is_behind_the_headers() {
        let mut head = vec![0; 80];
        head[12..14].copy_from_slice(&[8, 0]);
        (head[14], head[23], head[14 + 20 + 12]) = (0x45, 6, 0x80);
        let bytes = |length| payload(&Departed { at_ns: 0, length, head: &head });
        assert_eq!(bytes(1_514), Some(1_448));
        assert_eq!(bytes(66), None);
        assert_eq!(payload(&Departed { at_ns: 0, length: 20, head: &head[..20] }), None);
    }
}
