//! Whether the kernel holds packets of an interface back until a given time: by its queueing disciplines, as rtnetlink(7)
//! tells them (`RTM_GETQDISC`).

use crate::error::LinuxError;
use crate::interface::Interface;
use crate::system::{check, socket};
use std::io;
use std::os::fd::AsRawFd;

/// What a queueing discipline counts departure times by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransmitClock {
    /// `CLOCK_MONOTONIC`: `fq`.
    Monotonic,
    /// `CLOCK_TAI`: `etf`, which is most often given that one.
    Tai,
}

/// What becomes of departure times on an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Departures {
    /// The kernel holds packets back until then.
    Honoured {
        /// The queueing discipline: `fq`, `etf`.
        qdisc: String,
        /// The clock of its times.
        clock: TransmitClock,
    },
    /// They are accepted and ignored: whoever sends must wait.
    Ignored {
        /// The queueing disciplines that are there, comma-separated; `noqueue` if none.
        qdiscs: String,
    },
}

/// What becomes of departure times on the interface `name` of this network namespace.
///
/// # Errors
/// There is no such interface, or the kernel does not answer.
pub fn departures(name: &str) -> Result<Departures, LinuxError> {
    let index = Interface::find(name)?.index;
    let failed = |error| LinuxError::system(format!("ask for the queueing disciplines of `{name}`"), error);
    Ok(judge(&dump().map_err(failed)?.into_iter().filter(|qdisc| qdisc.interface == index).collect::<Vec<_>>()))
}

/// A queueing discipline as the kernel tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Qdisc {
    interface: u32,
    parent: u32,
    kind: String,
}

/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// Those that only share packets out to the ones below them.
const MULTIPLE: [&str; 3] = ["mq", "mqprio", "taprio"];

/// What these qdiscs of one interface do with departure times.
fn judge(qdiscs: &[Qdisc]) -> Departures {
    // `ingress` and `clsact` are of what comes in.
    let egress = || qdiscs.iter().filter(|qdisc| !matches!(qdisc.kind.as_str(), "ingress" | "clsact"));
    let root = egress().find(|qdisc| qdisc.parent == ROOT);
    let shared = root.is_some_and(|root| MULTIPLE.contains(&root.kind.as_str()));
    let mut holders: Vec<&str> =
        egress().filter(|qdisc| shared != (qdisc.parent == ROOT)).map(|qdisc| qdisc.kind.as_str()).collect();
    if !shared {
        // Below another root, only some packets come to them.
        holders.truncate(1);
    }
    holders.sort_unstable();
    holders.dedup();
    match holders[..] {
        ["fq"] => Departures::Honoured { qdisc: "fq".to_owned(), clock: TransmitClock::Monotonic },
        ["etf"] => Departures::Honoured { qdisc: "etf".to_owned(), clock: TransmitClock::Tai },
        _ => {
            let mut names: Vec<&str> = egress().map(|qdisc| qdisc.kind.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let qdiscs = if names.is_empty() { "noqueue".to_owned() } else { names.join(", ") };
            Departures::Ignored { qdiscs }
        }
    }
}

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
/// Bytes of `struct nlmsghdr` and `struct tcmsg`.
const HEADER: usize = 16;
const MESSAGE: usize = 20;
/// Answers taken at most, so that a kernel that never ends does not either.
const MOST_ANSWERS: usize = 10_000;

/// All queueing disciplines of this network namespace.
fn dump() -> io::Result<Vec<Qdisc>> {
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let mut request = [0_u8; HEADER + MESSAGE];
    request[0..4].copy_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the kernel reads the request.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut qdiscs, mut answer) = (Vec::new(), vec![0_u8; 1 << 16]);
    for _ in 0..MOST_ANSWERS {
        // SAFETY: the kernel writes at most the buffer's length.
        let length = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let length = check(i32::try_from(length).unwrap_or(-1))? as usize;
        if !read_answer(&answer[..length], &mut qdiscs)? {
            return Ok(qdiscs);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Reads the messages of one answer. Returns whether more answers come.
fn read_answer(mut bytes: &[u8], qdiscs: &mut Vec<Qdisc>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (word(bytes, 0), half(bytes, 4)) {
        let length = length as usize;
        if length < HEADER || length > bytes.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let message = &bytes[HEADER..length];
        match kind {
            RTM_NEWQDISC => qdiscs.extend(read_qdisc(message)),
            kind if kind == libc::NLMSG_DONE as u16 => return Ok(false),
            kind if kind == libc::NLMSG_ERROR as u16 => {
                let code = word(message, 0).unwrap_or(0).cast_signed();
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

fn read_qdisc(message: &[u8]) -> Option<Qdisc> {
    let (interface, parent) = (word(message, 4)?, word(message, 12)?);
    let mut attributes = message.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (half(attributes, 0), half(attributes, 2)) {
        let length = usize::from(length);
        let value = attributes.get(4..length)?;
        if kind == TCA_KIND {
            let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
            return Some(Qdisc { interface, parent, kind: String::from_utf8_lossy(name).into_owned() });
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(parent: u32, kind: &str) -> Qdisc {
        Qdisc { interface: 2, parent, kind: kind.to_owned() }
    }

    #[test]
    fn fq_and_etf_honour_times_wherever_all_packets_come_to_them() {
        let fq = Departures::Honoured { qdisc: "fq".to_owned(), clock: TransmitClock::Monotonic };
        let etf = Departures::Honoured { qdisc: "etf".to_owned(), clock: TransmitClock::Tai };
        let ignored = |qdiscs: &str| Departures::Ignored { qdiscs: qdiscs.to_owned() };
        assert_eq!(judge(&[qdisc(ROOT, "fq"), qdisc(0xffff_fff1, "clsact")]), fq);
        assert_eq!(judge(&[qdisc(ROOT, "mq"), qdisc(0x10001, "fq"), qdisc(0x10002, "fq")]), fq);
        assert_eq!(judge(&[qdisc(ROOT, "taprio"), qdisc(0x10001, "etf")]), etf);
        assert_eq!(judge(&[qdisc(ROOT, "mq"), qdisc(0x10001, "fq"), qdisc(0x10002, "etf")]), ignored("etf, fq, mq"));
        assert_eq!(judge(&[qdisc(ROOT, "htb"), qdisc(0x10001, "fq")]), ignored("fq, htb"));
        assert_eq!(judge(&[qdisc(ROOT, "mq")]), ignored("mq"));
        assert_eq!(judge(&[]), ignored("noqueue"));
    }

    #[test]
    fn reads_answers_and_refuses_broken_ones() {
        let mut message = vec![0; HEADER + MESSAGE];
        message[4..6].copy_from_slice(&RTM_NEWQDISC.to_ne_bytes());
        message[HEADER + 4] = 2_u8.to_be();
        message[HEADER + 4..HEADER + 8].copy_from_slice(&2_u32.to_ne_bytes());
        message[HEADER + 12..HEADER + 16].copy_from_slice(&ROOT.to_ne_bytes());
        message.extend([&7_u16.to_ne_bytes()[..], &TCA_KIND.to_ne_bytes()[..], b"fq\0", &[0]].concat());
        let length = message.len() as u32;
        message[0..4].copy_from_slice(&length.to_ne_bytes());
        let mut qdiscs = Vec::new();
        assert!(read_answer(&message, &mut qdiscs).is_ok_and(|more| more));
        assert_eq!(qdiscs, [qdisc(ROOT, "fq")]);
        for cut in 0..message.len() {
            // Whatever is missing: no panic, and nothing made up.
            let mut qdiscs = Vec::new();
            let _ = read_answer(&message[..cut], &mut qdiscs);
            assert!(qdiscs.is_empty());
        }
        let mut done = vec![0; HEADER];
        done[0..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
        done[4..6].copy_from_slice(&(libc::NLMSG_DONE as u16).to_ne_bytes());
        assert!(read_answer(&done, &mut qdiscs).is_ok_and(|more| !more));
    }

    #[test]
    fn the_loopback_interface_ignores_times() {
        assert!(matches!(departures("lo"), Ok(Departures::Ignored { .. })));
    }
}
