//! What C's numbers stand for.

use crate::{Errno, Family, Host, OptionValue, Side, SocketOption};
use crate::{Fd, Interest};
use std::ffi::c_int;

/// The family of `socket`, whose type and protocol must be those of connections.
///
/// # Errors
/// [`Errno::AddressFamily`], [`Errno::NoSocketType`], [`Errno::NoProtocol`]
pub fn family(domain: c_int, kind: c_int, protocol: c_int, connections: u8) -> Result<Family, Errno> {
    let family = match domain {
        libc::AF_INET => Family::V4,
        libc::AF_INET6 => Family::V6,
        _ => return Err(Errno::AddressFamily),
    };
    if kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != libc::SOCK_STREAM {
        return Err(Errno::NoSocketType);
    }
    if protocol != 0 && protocol != c_int::from(connections) {
        return Err(Errno::NoProtocol);
    }
    Ok(family)
}

/// `SHUT_RD`, `SHUT_WR`, `SHUT_RDWR`.
///
/// # Errors
/// [`Errno::Invalid`].
pub fn side(how: c_int) -> Result<Side, Errno> {
    match how {
        libc::SHUT_RD => Ok(Side::Read),
        libc::SHUT_WR => Ok(Side::Write),
        libc::SHUT_RDWR => Ok(Side::Both),
        _ => Err(Errno::Invalid),
    }
}

/// An option by its level and number.
fn option(level: c_int, name: c_int) -> Option<SocketOption> {
    Some(match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => SocketOption::Error,
        (libc::SOL_SOCKET, libc::SO_TYPE) => SocketOption::Type,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => SocketOption::Protocol,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => SocketOption::Domain,
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => SocketOption::Listens,
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => SocketOption::ReuseAddress,
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => SocketOption::SendBuffer,
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => SocketOption::ReceiveBuffer,
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => SocketOption::ReceiveTimeout,
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => SocketOption::SendTimeout,
        (libc::SOL_SOCKET, libc::SO_LINGER) => SocketOption::Linger,
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => SocketOption::KeepAlive,
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => SocketOption::V6Only,
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => SocketOption::MaximumSegment,
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => SocketOption::NoDelay,
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => SocketOption::SynRetries,
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => SocketOption::KeepIdle,
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => SocketOption::KeepInterval,
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => SocketOption::KeepCount,
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => SocketOption::UserTimeout,
        _ => return None,
    })
}

/// Nanoseconds of a second and of a microsecond.
const SECOND: i64 = 1_000_000_000;
const MICROSECOND: i64 = 1_000;

/// An option's value, as C has it.
///
/// # Errors
/// Those of [`Host::option`] and [`Host::tcp_info`].
pub fn get_option(host: &mut Host, fd: Fd, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_INFO) {
        return Ok(host.tcp_info(fd)?.to_bytes().to_vec());
    }
    let option = option(level, name).ok_or(Errno::NoOption)?;
    Ok(match host.option(fd, option)? {
        OptionValue::Number(number) => c_int::try_from(number).unwrap_or(c_int::MAX).to_ne_bytes().to_vec(),
        OptionValue::Linger(on, seconds) => pair(c_int::from(on).to_ne_bytes(), seconds.to_ne_bytes()),
        OptionValue::Time(time) => {
            let time = time.unwrap_or(0);
            pair((time / SECOND).to_ne_bytes(), (time % SECOND / MICROSECOND).to_ne_bytes())
        }
    })
}

/// Gives an option a value.
///
/// # Errors
/// Those of [`Host::set_option`]; [`Errno::Invalid`]: the value is too short.
pub fn set_option(host: &mut Host, fd: Fd, level: c_int, name: c_int, value: &[u8]) -> Result<(), Errno> {
    host.is_nonblocking(fd)?;
    let option = option(level, name).ok_or(Errno::NoOption)?;
    let number = |at: usize| -> Result<c_int, Errno> {
        value.get(at..at + 4).and_then(|part| part.try_into().ok()).map(c_int::from_ne_bytes).ok_or(Errno::Invalid)
    };
    let long = |at: usize| -> Result<i64, Errno> {
        value.get(at..at + 8).and_then(|part| part.try_into().ok()).map(i64::from_ne_bytes).ok_or(Errno::Invalid)
    };
    let value = match option {
        SocketOption::Linger => OptionValue::Linger(number(0)? != 0, number(4)?),
        SocketOption::ReceiveTimeout | SocketOption::SendTimeout => {
            let seconds = long(0)?.checked_mul(SECOND).ok_or(Errno::Invalid)?;
            let time = long(8)?.checked_mul(MICROSECOND).and_then(|rest| seconds.checked_add(rest));
            let time = time.filter(|time| *time >= 0).ok_or(Errno::Invalid)?;
            OptionValue::Time((time > 0).then_some(time))
        }
        _ => OptionValue::Number(number(0)?.into()),
    };
    host.set_option(fd, option, value)
}

fn pair<const N: usize>(left: [u8; N], right: [u8; N]) -> Vec<u8> {
    [left, right].concat()
}

/// What `poll` is asked for.
pub fn interest(events: i16) -> Interest {
    Interest(u32::from(events.cast_unsigned()))
}

/// What `poll` answers.
pub fn events(ready: Interest) -> i16 {
    (ready.0 as u16).cast_signed()
}
