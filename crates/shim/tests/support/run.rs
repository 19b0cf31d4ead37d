//! What a host does with a script.

use super::packet::{Segment, TcpOption, icmp};
use super::script::{Error, Script, SystemCall, What, When};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use weft_shim::{
    Answer, Call, Completion, Errno, Family, Fd, Host, Interest, OptionValue, Patience, Progress, Setup, Side,
    SocketOption, Ticket,
};
use weftwire_core::Time;
use weftwire_image::VerifiedImage;
use weftwire_testbed::standstill;

/// What times of events may differ by, as for packetdrill.
const TOLERANCE: i64 = 4_000_000;
const SERVER_PORT: u16 = 8_080;
/// Remote ports of connections that the other end opens begin behind this one.
const CLIENT_PORT: u16 = 40_000;

/// Runs a script against a machine, over both families unless it is about one.
pub fn run(script: &Script, machine: &VerifiedImage) -> Result<(), String> {
    let families =
        [Family::V4, Family::V6].into_iter().filter(|family| script.family.is_none_or(|only| only == *family));
    families
        .into_iter()
        .try_for_each(|family| run_over(script, machine, family).map_err(|error| format!("{error} (over {family:?})")))
}

fn run_over(script: &Script, machine: &VerifiedImage, family: Family) -> Result<(), String> {
    let addresses = if family == Family::V6 { ["fd3d::1", "2001:db8::1"] } else { ["192.168.0.1", "192.0.2.1"] };
    let parameters = format!("local={},{}", addresses[0], script.parameters.join(","));
    let (setup, _) = Setup::parse(&parameters).map_err(|error| error.to_string())?;
    let host = setup.start(machine.clone()).map_err(|error| error.to_string())?;
    let [local, remote] = addresses.map(|address| address.parse().expect("an address"));
    let mut run = Run {
        host,
        local: SocketAddr::new(local, SERVER_PORT),
        remote: SocketAddr::new(remote, SERVER_PORT),
        connections: BTreeMap::new(),
        waiting: Vec::new(),
        written: BTreeMap::new(),
        read: BTreeMap::new(),
        family,
    };
    for (line, event) in &script.events {
        run.event(event.when, &event.what).map_err(|error| format!("line {line}: {error}"))?;
    }
    run.end()
}

struct Run {
    host: Host,
    local: SocketAddr,
    remote: SocketAddr,
    connections: BTreeMap<usize, Connection>,
    waiting: Vec<(Ticket, i64, SystemCall)>,
    /// Bytes that were written to a socket, and read from it.
    written: BTreeMap<Fd, usize>,
    read: BTreeMap<Fd, usize>,
    family: Family,
}

/// What a script's numbers are on the line.
#[derive(Clone, Copy, Default)]
struct Connection {
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    /// The initial sequence number of this end.
    initial: u32,
    /// The other end's, as it was written.
    remote_initial: u32,
    /// What this end's timestamps are ahead of the script's.
    stamp: Option<u32>,
}

impl Run {
    fn now(&self) -> i64 {
        self.host.now().nanoseconds()
    }

    fn event(&mut self, when: When, what: &What) -> Result<(), String> {
        let base = if when.relative { self.now() } else { 0 };
        let at = base + when.at;
        if let What::Leaves(connection, expected) = what {
            let latest = when.latest.map_or(at, |latest| base + latest);
            return self.leaves(at - TOLERANCE, latest + TOLERANCE, *connection, expected);
        }
        self.pass(at)?;
        match what {
            What::Arrives(connection, segment) => self.arrives(*connection, segment),
            What::Error(error, segment) => self.error(*error, segment)?,
            What::Call(call) => self.call(call, when.over.map(|over| base + over))?,
            What::Silence | What::Leaves(..) => {}
        }
        self.completions()?;
        self.lives()
    }

    /// Every connection of the machine can go on.
    fn lives(&self) -> Result<(), String> {
        let machine = self.host.inspect();
        let mut flows = machine.flows().into_iter().filter_map(|flow| machine.flow(flow.flow));
        flows.find_map(|flow| standstill(&flow, None)).map_or(Ok(()), Err)
    }

    /// Lets time pass; nothing may leave.
    fn pass(&mut self, at: i64) -> Result<(), String> {
        self.silent()?;
        if self.host.run_to_frame(Time::from_nanoseconds(at)) {
            self.silent()?;
        }
        if at > self.now() {
            self.host.advance(Time::from_nanoseconds(at));
        }
        self.completions()
    }

    fn silent(&mut self) -> Result<(), String> {
        let Some(frame) = self.host.frame_out() else { return Ok(()) };
        let (from, to, segment, _) = Segment::read(&frame.bytes)?;
        let connection = self.connection_of(from, to).map(|(_, connection)| connection).unwrap_or_default();
        let segment = scripted(segment, connection);
        Err(format!("at {} s unexpectedly leaves {segment}", seconds(frame.at.nanoseconds())))
    }

    fn leaves(&mut self, earliest: i64, latest: i64, number: usize, expected: &Segment) -> Result<(), String> {
        if !self.host.run_to_frame(Time::from_nanoseconds(latest)) {
            return Err(format!("nothing leaves until {} s; expected {expected}", seconds(latest)));
        }
        let frame = self.host.frame_out().expect("a packet has left");
        self.completions()?;
        self.lives()?;
        let (from, to, segment, payload) = Segment::read(&frame.bytes)?;
        let connection = self.connections.entry(number).or_default();
        if connection.local.is_none() {
            (connection.local, connection.remote) = (Some(from), Some(to));
        }
        if (connection.local, connection.remote) != (Some(from), Some(to)) {
            return Err(format!("{segment} leaves from {from} to {to}, of another connection than {expected}"));
        }
        if segment.has('S') && expected.has('S') {
            connection.initial = segment.sequence.wrapping_sub(expected.sequence);
        }
        let stamps = |segment: &Segment| {
            segment.options.iter().flatten().find_map(|option| match option {
                TcpOption::Timestamps(value, _) => Some(*value),
                _ => None,
            })
        };
        if let (Some(live), Some(script), None) = (stamps(&segment), stamps(expected), connection.stamp) {
            connection.stamp = Some(live.wrapping_sub(script));
        }
        let connection = *connection;
        let actual = scripted(segment, connection);
        if let Some(fault) = difference(&over(expected, self.family), &actual) {
            return Err(format!("{fault}: expected {expected}, seen {actual}"));
        }
        if let Some(at) = mismatch(payload, actual.sequence.wrapping_sub(1) as usize) {
            return Err(format!("byte {at} of the payload of {actual} is wrong"));
        }
        let at = frame.at.nanoseconds();
        if !(earliest..=latest).contains(&at) {
            let (from, to) = (seconds(earliest + TOLERANCE), seconds(latest - TOLERANCE));
            return Err(format!("{actual} leaves at {} s, expected from {from} s to {to} s", seconds(at)));
        }
        Ok(())
    }

    fn arrives(&mut self, number: usize, segment: &Segment) {
        let (server, remote) = (self.local, self.remote);
        let connection = self.connections.entry(number).or_default();
        let from = *connection.remote.get_or_insert(SocketAddr::new(remote.ip(), CLIENT_PORT + number as u16));
        let to = *connection.local.get_or_insert(server);
        if segment.has('S') {
            connection.remote_initial = segment.sequence;
        }
        let mut live = segment.clone();
        let initial = connection.initial;
        live.acknowledgment = segment.acknowledgment.map(|number| number.wrapping_add(initial));
        for option in live.options.iter_mut().flatten() {
            match option {
                TcpOption::Sack(blocks) => {
                    for (left, right) in blocks.iter_mut().flatten() {
                        (*left, *right) = (left.wrapping_add(initial), right.wrapping_add(initial));
                    }
                }
                TcpOption::Timestamps(_, echo) if *echo != 0 => {
                    *echo = echo.wrapping_add(connection.stamp.unwrap_or(0));
                }
                _ => {}
            }
        }
        let first = segment.sequence.wrapping_sub(connection.remote_initial).wrapping_sub(1);
        let payload: Vec<u8> = (0..segment.length).map(|at| pattern(first.wrapping_add(at as u32) as usize)).collect();
        self.host.frame_in(&live.build(from, to, &payload));
    }

    /// ICMP says something of a segment of the first connection.
    fn error(&mut self, error: Error, segment: &Segment) -> Result<(), String> {
        let connection = self.connections.get(&1).copied().unwrap_or_default();
        let ends = connection.local.zip(connection.remote).ok_or("no segment has left")?;
        let mut live = segment.clone();
        live.sequence = segment.sequence.wrapping_add(connection.initial);
        let about = live.build(ends.0, ends.1, &vec![0; segment.length]);
        let (kind, code, rest) = match (error, ends.0.is_ipv4()) {
            (Error::Net, true) => (3, 0, 0),
            (Error::Host, true) => (3, 1, 0),
            (Error::Port, true) => (3, 3, 0),
            (Error::TooBig(mtu), true) => (3, 4, mtu),
            (Error::Net, false) => (1, 0, 0),
            (Error::Host, false) => (1, 3, 0),
            (Error::Port, false) => (1, 4, 0),
            (Error::TooBig(mtu), false) => (2, 0, mtu),
        };
        self.host.frame_in(&icmp(ends.1.ip(), ends.0.ip(), [kind, code], rest, &about));
        Ok(())
    }

    fn connection_of(&self, local: SocketAddr, remote: SocketAddr) -> Option<(usize, Connection)> {
        let found = self.connections.iter().find(|(_, it)| (it.local, it.remote) == (Some(local), Some(remote)));
        found.map(|(number, connection)| (*number, *connection))
    }

    fn call(&mut self, call: &SystemCall, over: Option<i64>) -> Result<(), String> {
        let started = self.start(call)?;
        let result = match started {
            Started::Number(result) => result,
            Started::Call(started) => match self.host.start(started, Patience::OfSocket) {
                Progress::Over(result) => self.number(call, result)?,
                Progress::Waits(ticket) => {
                    let over = over.ok_or_else(|| format!("{} waits", call.name))?;
                    let copy = SystemCall {
                        name: call.name.clone(),
                        arguments: call.arguments.clone(),
                        result: call.result,
                        error: call.error.clone(),
                    };
                    self.waiting.push((ticket, over, copy));
                    return Ok(());
                }
            },
        };
        check(call, result)?;
        match over {
            Some(over) if over > self.now() + TOLERANCE => Err(format!("{} does not wait", call.name)),
            _ => Ok(()),
        }
    }

    /// Looks at calls that have waited.
    fn completions(&mut self) -> Result<(), String> {
        for (ticket, over, call) in std::mem::take(&mut self.waiting) {
            let Some(Completion { at, result }) = self.host.take(ticket) else {
                self.waiting.push((ticket, over, call));
                continue;
            };
            let result = self.number(&call, result)?;
            check(&call, result)?;
            let at = at.nanoseconds();
            if (at - over).abs() > TOLERANCE {
                return Err(format!("{} is over at {} s, expected {} s", call.name, seconds(at), seconds(over)));
            }
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), String> {
        self.silent().map_err(|error| format!("at the end: {error}"))?;
        match self.waiting.first() {
            Some((_, _, call)) => Err(format!("at the end: {} still waits", call.name)),
            None => Ok(()),
        }
    }

    /// A result as a number; bytes that were read are looked at.
    fn number(&mut self, call: &SystemCall, result: Result<Answer, Errno>) -> Result<Result<i64, Errno>, String> {
        Ok(match result {
            Ok(Answer::Done) => Ok(0),
            Ok(Answer::Accepted(fd, _)) => Ok(fd.0.into()),
            Ok(Answer::Count(count)) => Ok(count as i64),
            Ok(Answer::Bytes(bytes)) => {
                let peek = call.arguments.get(3).is_some_and(|flags| flags.contains("MSG_PEEK"));
                let read = self.read.entry(descriptor(call)?).or_default();
                if let Some(at) = mismatch(&bytes, *read) {
                    return Err(format!("byte {at} of what was read is wrong"));
                }
                *read += if peek { 0 } else { bytes.len() };
                Ok(bytes.len() as i64)
            }
            Ok(Answer::Ready(ready)) => {
                let wanted = poll_entries(&call.arguments[0])?;
                for ((fd, _, expected), seen) in wanted.iter().zip(&ready) {
                    if expected != seen {
                        return Err(format!("poll of {}: expected {:#x}, seen {:#x}", fd.0, expected.0, seen.0));
                    }
                }
                Ok(ready.iter().filter(|ready| **ready != Interest::NONE).count() as i64)
            }
            Ok(Answer::Watched(watched)) => Ok(watched.len() as i64),
            Err(error) => Err(error),
        })
    }

    fn start(&mut self, call: &SystemCall) -> Result<Started, String> {
        let argument = |at: usize| call.arguments.get(at).map_or("", String::as_str);
        let plain = |result: Result<(), Errno>| Ok(Started::Number(result.map(|()| 0)));
        match call.name.as_str() {
            "socket" => return Ok(Started::Number(Ok(self.host.socket(self.family).0.into()))),
            "set" => {
                let parameter = [(argument(0).to_owned(), argument(1).to_owned())];
                self.host.set(&parameter).map_err(|error| error.to_string())?;
                return Ok(Started::Number(Ok(0)));
            }
            "poll" => {
                let entries = poll_entries(argument(0))?.into_iter().map(|(fd, events, _)| (fd, events)).collect();
                let patience = match count(argument(2))? {
                    ..0 => Patience::Endless,
                    milliseconds => Patience::For(milliseconds * 1_000_000),
                };
                let progress = self.host.start(Call::Poll { entries }, patience);
                return match progress {
                    Progress::Over(result) => Ok(Started::Number(self.number(call, result)?)),
                    Progress::Waits(_) => Err("poll waits; scripts give it no time".into()),
                };
            }
            _ => {}
        }
        let fd = descriptor(call)?;
        match call.name.as_str() {
            "bind" => plain(self.host.bind(fd, self.local)),
            "listen" => plain(self.host.listen(fd, count(argument(1))? as i32)),
            "close" => plain(self.host.close(fd)),
            "shutdown" => {
                let side = match argument(1) {
                    "SHUT_RD" => Side::Read,
                    "SHUT_WR" => Side::Write,
                    "SHUT_RDWR" => Side::Both,
                    other => return Err(format!("`{other}`: write SHUT_RD, SHUT_WR or SHUT_RDWR")),
                };
                plain(self.host.shutdown(fd, side))
            }
            "fcntl" => plain(self.host.set_nonblocking(fd, argument(2).contains("O_NONBLOCK"))),
            "accept" => Ok(Started::Call(Call::Accept { fd })),
            "connect" => Ok(Started::Call(Call::Connect { fd, remote: self.remote })),
            "read" | "recv" => {
                let (most, flags) = (count(argument(2))? as usize, argument(3));
                let (peek, all) = (flags.contains("MSG_PEEK"), flags.contains("MSG_WAITALL"));
                Ok(Started::Call(Call::Receive { fd, most, peek, all }))
            }
            "write" | "send" => {
                let written = self.written.entry(fd).or_default();
                let bytes = (*written..*written + count(argument(2))? as usize).map(pattern).collect();
                if call.result > 0 {
                    *written += call.result as usize;
                }
                Ok(Started::Call(Call::Send { fd, bytes, taken: 0 }))
            }
            "tcp_info" => {
                let info = self.host.tcp_info(fd).map_err(|error| error.to_string())?;
                let value = info.named(argument(1)).ok_or_else(|| format!("{} is not known", argument(1)))?;
                Ok(Started::Number(Ok(value.into())))
            }
            "setsockopt" => {
                let value = argument(3).trim_matches(['[', ']']);
                let value = match argument(2) {
                    "SO_LINGER" => {
                        let on = value.contains("onoff=1");
                        OptionValue::Linger(on, 0)
                    }
                    "SO_RCVTIMEO" | "SO_SNDTIMEO" => OptionValue::Time(Some(count(value)? * 1_000_000)),
                    _ => OptionValue::Number(count(value)?),
                };
                plain(self.host.set_option(fd, option(argument(2))?, value))
            }
            "getsockopt" => match self.host.option(fd, option(argument(2))?) {
                Ok(OptionValue::Number(seen)) => {
                    let wanted = argument(3).trim_matches(['[', ']']);
                    let wanted = errno(wanted).map_or_else(|| count(wanted), |errno| Ok(errno.number().into()))?;
                    match seen == wanted {
                        true => Ok(Started::Number(Ok(0))),
                        false => Err(format!("{} is {seen}, expected {wanted}", argument(2))),
                    }
                }
                Ok(other) => Err(format!("{} is {other:?}", argument(2))),
                Err(error) => Ok(Started::Number(Err(error))),
            },
            other => Err(format!("scripts have no call `{other}`")),
        }
    }
}

enum Started {
    Number(Result<i64, Errno>),
    Call(Call),
}

fn check(call: &SystemCall, seen: Result<i64, Errno>) -> Result<(), String> {
    let expected = match &call.error {
        Some(name) => Err(name.clone()),
        None => Ok(call.result),
    };
    let seen = seen.map_err(|error| error.to_string());
    match seen == expected {
        true => Ok(()),
        false => Err(format!("{} gives {seen:?}, expected {expected:?}", call.name)),
    }
}

/// A segment in a script's numbers.
fn scripted(mut segment: Segment, connection: Connection) -> Segment {
    segment.sequence = segment.sequence.wrapping_sub(connection.initial);
    for option in segment.options.iter_mut().flatten() {
        if let TcpOption::Timestamps(value, _) = option {
            *value = value.wrapping_sub(connection.stamp.unwrap_or(0));
        }
    }
    segment
}

/// What a script expects, over this family.
fn over(expected: &Segment, family: Family) -> Segment {
    let mut expected = expected.clone();
    for option in expected.options.iter_mut().flatten() {
        if *option == TcpOption::Mss(1_460) && family == Family::V6 {
            *option = TcpOption::Mss(1_440);
        }
    }
    expected
}

/// What is wrong with a segment.
fn difference(expected: &Segment, actual: &Segment) -> Option<&'static str> {
    // A reset of something else than a SYN may acknowledge or not.
    let free = expected.has('R') && !expected.has('.');
    let flags = |segment: &Segment| {
        let of_interest = |flag: &char| (*flag != 'P' || expected.has('P')) && (*flag != '.' || !free);
        let mut flags: Vec<char> = segment.flags.chars().filter(of_interest).collect();
        flags.sort_unstable();
        flags
    };
    if flags(expected) != flags(actual) {
        return Some("other flags");
    }
    if expected.sequence != actual.sequence {
        return Some("another sequence number");
    }
    if expected.length != actual.length {
        return Some("another length");
    }
    if !free && expected.acknowledgment != actual.acknowledgment {
        return Some("another acknowledgment");
    }
    if expected.window.is_some() && expected.window != actual.window {
        return Some("another window");
    }
    let options = |segment: &Segment| {
        let mut options = segment.options.clone().unwrap_or_default();
        options.retain(|option| !matches!(option, TcpOption::Nop | TcpOption::End));
        options.sort_unstable();
        options
    };
    (expected.options.is_some() && options(expected) != options(actual)).then_some("other options")
}

/// The byte of a stream at this place.
fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// The first byte that is not that of a stream from `place` on.
fn mismatch(bytes: &[u8], place: usize) -> Option<usize> {
    bytes.iter().enumerate().position(|(at, byte)| *byte != pattern(place.wrapping_add(at)))
}

fn descriptor(call: &SystemCall) -> Result<Fd, String> {
    let first = call.arguments.first().map_or("", String::as_str);
    first.parse().map(Fd).map_err(|_| format!("`{first}` is no file descriptor"))
}

fn count(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn option(name: &str) -> Result<SocketOption, String> {
    Ok(match name {
        "SO_ERROR" => SocketOption::Error,
        "SO_REUSEADDR" => SocketOption::ReuseAddress,
        "SO_LINGER" => SocketOption::Linger,
        "SO_SNDBUF" => SocketOption::SendBuffer,
        "SO_RCVBUF" => SocketOption::ReceiveBuffer,
        "SO_RCVTIMEO" => SocketOption::ReceiveTimeout,
        "SO_SNDTIMEO" => SocketOption::SendTimeout,
        "SO_KEEPALIVE" => SocketOption::KeepAlive,
        "TCP_NODELAY" => SocketOption::NoDelay,
        "TCP_MAXSEG" => SocketOption::MaximumSegment,
        "TCP_KEEPIDLE" => SocketOption::KeepIdle,
        "TCP_KEEPINTVL" => SocketOption::KeepInterval,
        "TCP_KEEPCNT" => SocketOption::KeepCount,
        "TCP_USER_TIMEOUT" => SocketOption::UserTimeout,
        _ => return Err(format!("scripts have no option `{name}`")),
    })
}

fn errno(name: &str) -> Option<Errno> {
    [Errno::Refused, Errno::Reset, Errno::TimedOut, Errno::Pipe, Errno::HostUnreachable]
        .into_iter()
        .find(|errno| errno.to_string() == name)
}

/// `[{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}]`.
fn poll_entries(text: &str) -> Result<Vec<(Fd, Interest, Interest)>, String> {
    let interest = |text: &str| {
        text.split('|').filter(|name| *name != "0").try_fold(Interest::NONE, |sum, name| {
            let one = match name.trim() {
                "POLLIN" => Interest::IN,
                "POLLOUT" => Interest::OUT,
                "POLLERR" => Interest::ERROR,
                "POLLHUP" => Interest::HANG_UP,
                "POLLRDHUP" => Interest::READ_HANG_UP,
                other => return Err(format!("`{other}` is nothing to poll for")),
            };
            Ok(sum.with(one, true))
        })
    };
    let mut entries = Vec::new();
    for entry in text.trim_matches(['[', ']']).split('}').map(|it| it.trim_matches([',', ' ', '{'])) {
        let mut values = entry.split(',').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value.trim());
        let (Some(fd), Some(events), Some(seen)) = (values.next(), values.next(), values.next()) else { continue };
        entries.push((Fd(count(fd)? as i32), interest(events)?, interest(seen)?));
    }
    Ok(entries)
}

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}
