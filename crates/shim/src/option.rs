//! Options of sockets. Those that are the machine's own are registers of it: a machine that has no such register has no such option.

use crate::connection::Phase;
use crate::socket::{Role, Socket};
use crate::{Errno, Family, Fd, Host};
use weftwire_core::FlowId;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
const MILLISECOND: i64 = 1_000_000;
/// The register of [`SocketOption::KeepAlive`].
const KEEP_ALIVE: &str = "keep_alive";
/// What [`SocketOption::KeepIdle`] may be, as in kernels.
const LONGEST_IDLE: std::ops::RangeInclusive<i64> = 1..=32_767;

/// An option of a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SocketOption {
    /// `SO_ERROR`: what went wrong since somebody last asked; its number or 0.
    Error,
    /// `SO_TYPE`.
    Type,
    /// `SO_PROTOCOL`.
    Protocol,
    /// `SO_DOMAIN`.
    Domain,
    /// `SO_ACCEPTCONN`: it listens.
    Listens,
    /// `SO_REUSEADDR`.
    ReuseAddress,
    /// `SO_SNDBUF`: bytes of the application that may be written and not acknowledged, not more than the engine holds.
    SendBuffer,
    /// `SO_RCVBUF`: bytes that the machine's receive buffer has room for. It is the same for all connections.
    ReceiveBuffer,
    /// `SO_RCVTIMEO`.
    ReceiveTimeout,
    /// `SO_SNDTIMEO`.
    SendTimeout,
    /// `SO_LINGER`: off, or with no time. A call that waits for all to be acknowledged is not provided.
    Linger,
    /// `IPV6_V6ONLY`.
    V6Only,
    /// `TCP_MAXSEG`: bytes of payload of a segment; register `mss`.
    MaximumSegment,
    /// `TCP_NODELAY`: register `eager`.
    NoDelay,
    /// `SO_KEEPALIVE`: register `keep_alive` has the time of [`SocketOption::KeepIdle`], or 0.
    KeepAlive,
    /// `TCP_KEEPIDLE` in seconds.
    KeepIdle,
    /// `TCP_KEEPINTVL` in seconds: register `keep_between`.
    KeepInterval,
    /// `TCP_KEEPCNT`: register `keep_most`.
    KeepCount,
    /// `TCP_SYNCNT`: register `syn_retries`.
    SynRetries,
    /// `TCP_USER_TIMEOUT` in milliseconds: register `user_timeout`.
    UserTimeout,
}

/// The value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// A number, or 0 and 1.
    Number(i64),
    /// A time in nanoseconds; `None`: without end.
    Time(Option<i64>),
    /// Whether to wait when a socket is closed, and for how many seconds.
    Linger(bool, i32),
}

/// The register that is an option, and how many of its units are one of the option's. It can be written unless it says how things are.
fn register(option: SocketOption) -> Option<(&'static str, i64, bool)> {
    Some(match option {
        SocketOption::MaximumSegment => ("mss", 1, false),
        SocketOption::NoDelay => ("eager", 1, true),
        SocketOption::KeepInterval => ("keep_between", SECOND, true),
        SocketOption::KeepCount => ("keep_most", 1, true),
        SocketOption::SynRetries => ("syn_retries", 1, true),
        SocketOption::UserTimeout => ("user_timeout", MILLISECOND, true),
        _ => return None,
    })
}

impl Host {
    /// An option's value.
    ///
    /// # Errors
    /// [`Errno::NoOption`]: the machine has nothing of the kind; [`Errno::BadDescriptor`].
    pub fn option(&mut self, fd: Fd, option: SocketOption) -> Result<OptionValue, Errno> {
        let protocol = self.setup.protocol;
        let socket = self.socket_of(fd)?;
        let settings = &socket.settings;
        let flag = |on: bool| OptionValue::Number(on.into());
        Ok(match option {
            SocketOption::Type => OptionValue::Number(libc::SOCK_STREAM.into()),
            SocketOption::Protocol => OptionValue::Number(protocol.into()),
            SocketOption::Domain => OptionValue::Number(match socket.family {
                Family::V4 => libc::AF_INET.into(),
                Family::V6 => libc::AF_INET6.into(),
            }),
            SocketOption::Listens => flag(matches!(socket.role, Role::Listening(_))),
            SocketOption::ReuseAddress => flag(settings.reuse_address),
            SocketOption::V6Only => flag(settings.v6_only),
            SocketOption::SendBuffer => OptionValue::Number(self.send_buffer(socket) as i64),
            SocketOption::ReceiveTimeout => OptionValue::Time(settings.receive_timeout),
            SocketOption::SendTimeout => OptionValue::Time(settings.send_timeout),
            SocketOption::Linger => OptionValue::Linger(settings.reset_on_close, 0),
            SocketOption::ReceiveBuffer => {
                OptionValue::Number(self.machine.receive_buffer().ok_or(Errno::NoOption)?.into())
            }
            SocketOption::KeepAlive | SocketOption::KeepIdle if self.machine.initial(KEEP_ALIVE).is_none() => {
                return Err(Errno::NoOption);
            }
            SocketOption::KeepAlive => flag(settings.keep_alive),
            SocketOption::KeepIdle => OptionValue::Number(settings.keep_idle),
            SocketOption::Error => OptionValue::Number(self.take_error(fd)?.map_or(0, Errno::number).into()),
            _ => self.register_option(fd, option)?,
        })
    }

    /// How many bytes a socket takes that are not acknowledged.
    pub(crate) fn send_buffer(&self, socket: &Socket) -> usize {
        socket.settings.send_buffer.unwrap_or(self.machine.send_buffer())
    }

    fn take_error(&mut self, fd: Fd) -> Result<Option<Errno>, Errno> {
        let Role::Connected(stream) = &self.socket_of(fd)?.role else { return Ok(None) };
        let flow = stream.flow;
        Ok(self.connections.get_mut(&flow).and_then(|connection| connection.error.take()))
    }

    fn register_option(&self, fd: Fd, option: SocketOption) -> Result<OptionValue, Errno> {
        let (name, unit, _) = register(option).ok_or(Errno::NoOption)?;
        let socket = self.socket_of(fd)?;
        let initial = self.machine.initial(name).ok_or(Errno::NoOption)?;
        let live = socket.stream().ok().and_then(|stream| self.machine.flow(stream.flow)).and_then(|flow| {
            flow.registers.into_iter().find(|register| register.name == name).map(|register| register.value)
        });
        let wanted = socket.settings.registers.get(name).copied();
        Ok(OptionValue::Number(live.or(wanted).unwrap_or(initial) / unit))
    }

    /// Gives an option a value.
    ///
    /// # Errors
    /// [`Errno::NoOption`]: the machine has nothing of the kind, or it can't be chosen; [`Errno::Invalid`]: not this value;
    /// [`Errno::BadDescriptor`].
    pub fn set_option(&mut self, fd: Fd, option: SocketOption, value: OptionValue) -> Result<(), Errno> {
        let most = self.machine.send_buffer();
        let socket = self.socket_of_mut(fd)?;
        match (option, value) {
            (SocketOption::ReuseAddress, OptionValue::Number(on)) => socket.settings.reuse_address = on != 0,
            (SocketOption::V6Only, OptionValue::Number(on)) => {
                if socket.family != Family::V6 {
                    return Err(Errno::NoOption);
                }
                if socket.local.is_some() {
                    return Err(Errno::Invalid);
                }
                socket.settings.v6_only = on != 0;
            }
            (SocketOption::SendBuffer, OptionValue::Number(bytes)) => {
                let bytes = usize::try_from(bytes).map_err(|_| Errno::Invalid)?;
                socket.settings.send_buffer = Some(bytes.clamp(1, most));
                self.settle();
            }
            (SocketOption::ReceiveTimeout, OptionValue::Time(time)) => socket.settings.receive_timeout = time,
            (SocketOption::SendTimeout, OptionValue::Time(time)) => socket.settings.send_timeout = time,
            (SocketOption::KeepAlive | SocketOption::KeepIdle, OptionValue::Number(number)) => {
                return self.set_keep_alive(fd, option, number);
            }
            (SocketOption::Linger, OptionValue::Linger(true, 1..)) => return Err(Errno::NoOption),
            (SocketOption::Linger, OptionValue::Linger(on, _)) => socket.settings.reset_on_close = on,
            (_, OptionValue::Number(number)) => {
                let (name, unit, writable) = register(option).ok_or(Errno::NoOption)?;
                if !writable || self.machine.initial(name).is_none() {
                    return Err(Errno::NoOption);
                }
                let value = number.checked_mul(unit).filter(|value| *value >= 0).ok_or(Errno::Invalid)?;
                self.socket_of_mut(fd)?.settings.registers.insert(name, value);
                self.set_own_registers(fd);
                self.settle();
            }
            _ => return Err(Errno::Invalid),
        }
        Ok(())
    }

    fn set_keep_alive(&mut self, fd: Fd, option: SocketOption, number: i64) -> Result<(), Errno> {
        if self.machine.initial(KEEP_ALIVE).is_none() {
            return Err(Errno::NoOption);
        }
        let settings = &mut self.socket_of_mut(fd)?.settings;
        match option {
            SocketOption::KeepIdle if !LONGEST_IDLE.contains(&number) => return Err(Errno::Invalid),
            SocketOption::KeepIdle => settings.keep_idle = number,
            _ => settings.keep_alive = number != 0,
        }
        let time = if settings.keep_alive { settings.keep_idle * SECOND } else { 0 };
        settings.registers.insert(KEEP_ALIVE, time);
        self.set_own_registers(fd);
        self.settle();
        Ok(())
    }

    /// Has the registers of a socket's connection follow its options.
    fn set_own_registers(&mut self, fd: Fd) {
        if let Ok(flow) = self.socket_of(fd).and_then(|socket| Ok(socket.stream()?.flow)) {
            self.set_registers(fd, flow);
        }
    }

    /// Has a connection's registers follow the options of a socket.
    pub(crate) fn set_registers(&mut self, fd: Fd, flow: FlowId) {
        let Ok(socket) = self.socket_of(fd) else { return };
        if self.connection(flow).is_none_or(|connection| connection.phase == Phase::Ended) {
            return;
        }
        for (name, value) in socket.settings.registers.clone() {
            self.set_register(flow, name, value);
        }
    }
}
