//! Sending that all ports share: bounded retries, software segmentation where the kernel refuses a super-frame,
//! and a count for every frame that could not be sent.

use crate::port::{BATCH, PortCounters, SendError};
use crate::vnet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use weftwire_core::segment::segments;
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::{Frame, LinkType};

/// Attempts to send a frame while the kernel's queue is full. Each lets other threads run in between.
const ATTEMPTS: u32 = 64;

/// Sends frames in order by `submit`, which takes a front part of what it is given and says how many frames that
/// was (at least one), or why the first frame can't go.
///
/// Frames beyond the route's MTU are not sent on any kind of port. The kernel would take them into a TUN or TAP device, and it
/// allows packet sockets a VLAN tag more.
pub(crate) fn send_all(
    mut frames: &[Frame<'_>],
    route: Route,
    counters: &mut PortCounters,
    submit: &mut dyn FnMut(&[Frame<'_>]) -> io::Result<usize>,
) {
    while !frames.is_empty() {
        let fit = frames.iter().position(|frame| route.is_too_long(frame)).unwrap_or(frames.len());
        send_fit(&frames[..fit], route, counters, submit);
        frames = &frames[fit..];
        if !frames.is_empty() {
            counters.send_errors.count(SendError::TooLong, 1);
            frames = &frames[1..];
        }
    }
}

/// What frames are sent into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// What they begin with.
    pub(crate) link: LinkType,
    /// Most bytes behind the Ethernet header and its VLAN tags; of each packet that a super-frame is cut into.
    pub(crate) mtu: usize,
}

impl Route {
    fn is_too_long(self, frame: &Frame<'_>) -> bool {
        // The usual case looks into no header.
        if frame.bytes.len() <= self.mtu {
            return false;
        }
        let below = match self.link {
            LinkType::Ip => 0,
            LinkType::Ethernet => Ethernet::parse(frame.bytes).map_or(0, |ethernet| ethernet.header_length()),
        };
        let length = match frame.offload.segmentation {
            Some(_) => vnet::segment_length(frame, self.link).unwrap_or(frame.bytes.len()),
            None => frame.bytes.len(),
        };
        length.saturating_sub(below) > self.mtu
    }
}

/// Sends frames none of which is too long.
fn send_fit(
    mut frames: &[Frame<'_>],
    route: Route,
    counters: &mut PortCounters,
    submit: &mut dyn FnMut(&[Frame<'_>]) -> io::Result<usize>,
) {
    let mut attempts = 0;
    while let Some(first) = frames.first() {
        match submit(frames) {
            Ok(count) => {
                counters.frames_out += count as u64;
                counters.bytes_out += frames[..count].iter().map(|frame| frame.bytes.len() as u64).sum::<u64>();
                frames = &frames[count..];
                attempts = 0;
                continue;
            }
            Err(error) => match error.raw_os_error().unwrap_or(0) {
                libc::EINTR => continue,
                libc::ENOBUFS | libc::EAGAIN if attempts < ATTEMPTS => {
                    attempts += 1;
                    std::thread::yield_now();
                    continue;
                }
                libc::EMSGSIZE | libc::EINVAL if first.offload.segmentation.is_some() => {
                    send_segments(first, route, counters, submit);
                }
                code => counters.send_errors.count(reason(code), 1),
            },
        }
        frames = &frames[1..];
        attempts = 0;
    }
}

/// Sends frames by one system call, each with its virtio-net header in front.
pub(crate) fn send_messages(socket: BorrowedFd<'_>, frames: &[Frame<'_>], link: LinkType) -> io::Result<usize> {
    let count = frames.len().min(BATCH);
    let mut headers = [vnet::Header::default(); BATCH];
    // SAFETY: iovec and mmsghdr are plain data for which all zeros is valid.
    let (mut parts, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) = unsafe { std::mem::zeroed() };
    for (at, frame) in frames[..count].iter().enumerate() {
        headers[at] = vnet::encode(frame, link);
        parts[at] = message_parts(&headers[at], frame);
        messages[at].msg_hdr.msg_iov = parts[at].as_mut_ptr();
        messages[at].msg_hdr.msg_iovlen = 2;
    }
    // SAFETY: the messages point into `parts`, those into `headers` and `frames`; all outlive the call, and sending
    // only reads the bytes.
    let sent =
        unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as libc::c_uint, libc::MSG_DONTWAIT) };
    crate::system::check(sent).map(|sent| sent as usize)
}

/// A virtio-net header and a frame, for system calls that only read them.
pub(crate) fn message_parts(header: &vnet::Header, frame: &Frame<'_>) -> [libc::iovec; 2] {
    [
        libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: header.len() },
        libc::iovec { iov_base: frame.bytes.as_ptr().cast_mut().cast(), iov_len: frame.bytes.len() },
    ]
}

/// What the kernel's code means.
fn reason(code: i32) -> SendError {
    match code {
        libc::ENOBUFS | libc::EAGAIN => SendError::QueueFull,
        libc::EMSGSIZE => SendError::TooLong,
        libc::ENETDOWN => SendError::Down,
        libc::ENXIO | libc::ENODEV | libc::EBADFD => SendError::Gone,
        libc::EINVAL => SendError::Malformed,
        libc::EPERM => SendError::Forbidden,
        libc::EIO => SendError::NotUp,
        _ => SendError::Other,
    }
}

/// Cuts a super-frame that the kernel refuses (a UDP one before Linux 6.2) and sends the packets.
fn send_segments(
    frame: &Frame<'_>,
    route: Route,
    counters: &mut PortCounters,
    submit: &mut dyn FnMut(&[Frame<'_>]) -> io::Result<usize>,
) {
    match segments(route.link, *frame) {
        Ok(packets) => {
            counters.segmented += 1;
            for packet in packets {
                // An ordinary frame: it is not cut again.
                send_all(&[Frame::new(&packet)], route, counters, submit);
            }
        }
        Err(_) => counters.send_errors.count(SendError::Malformed, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::SendErrors;
    use std::collections::VecDeque;
    use weftwire_core::port::{Checksum, SegmentationKind};
    use weftwire_core::{Offload, Segmentation};

    /// Sends `frames` to a kernel that gives these answers, and then takes everything.
    fn send(frames: &[Frame<'_>], answers: Vec<Result<usize, i32>>) -> (PortCounters, Vec<usize>, usize) {
        let (mut counters, mut sent, mut calls) = (PortCounters::default(), Vec::new(), 0);
        let mut answers = VecDeque::from(answers);
        send_all(frames, Route { link: LinkType::Ethernet, mtu: 10_000 }, &mut counters, &mut |frames| {
            calls += 1;
            match answers.pop_front().unwrap_or(Ok(frames.len())) {
                Ok(count) => {
                    sent.extend(frames[..count].iter().map(|frame| frame.bytes.len()));
                    Ok(count)
                }
                Err(code) => Err(io::Error::from_raw_os_error(code)),
            }
        });
        (counters, sent, calls)
    }

    #[test]
    fn a_full_queue_is_tried_again_but_not_for_ever() {
        let frames = [Frame::new(&[0; 60]), Frame::new(&[0; 61]), Frame::new(&[0; 62])];
        let (counters, sent, calls) = send(&frames, vec![Ok(1), Err(libc::ENOBUFS), Err(libc::EINTR), Ok(2)]);
        assert_eq!((sent, calls), (vec![60, 61, 62], 4));
        assert_eq!((counters.frames_out, counters.bytes_out), (3, 183));
        assert_eq!(counters.send_errors, SendErrors::default());

        let full = vec![Err(libc::ENOBUFS); ATTEMPTS as usize + 1];
        let (counters, sent, _) = send(&frames, full);
        assert_eq!(sent, [61, 62]);
        assert_eq!(counters.send_errors.of(SendError::QueueFull), 1);
    }

    #[test]
    fn a_refused_frame_is_counted_and_the_next_ones_go() {
        let frames = [Frame::new(&[0; 60]), Frame::new(&[0; 9000]), Frame::new(&[0; 62])];
        let (counters, sent, _) = send(&frames, vec![Ok(1), Err(libc::EMSGSIZE)]);
        assert_eq!(sent, [60, 62]);
        assert!(counters.send_errors.iter().eq([("longer than the MTU (EMSGSIZE)", 1)]));
        assert_eq!(counters.segmented, 0);
    }

    #[test]
    fn frames_beyond_the_mtu_are_counted_and_the_others_go() {
        let send = |link, lengths: &[usize]| {
            let bytes = vec![0; 9_000];
            let frames: Vec<Frame<'_>> = lengths.iter().map(|length| Frame::new(&bytes[..*length])).collect();
            let (mut counters, mut sent) = (PortCounters::default(), Vec::new());
            send_all(&frames, Route { link, mtu: 1_500 }, &mut counters, &mut |frames| {
                sent.extend(frames.iter().map(|frame| frame.bytes.len()));
                Ok(frames.len())
            });
            (sent, counters.send_errors.of(SendError::TooLong))
        };
        assert_eq!(send(LinkType::Ip, &[1_500, 1_501, 20, 9_000]), (vec![1_500, 20], 2));
        assert_eq!(send(LinkType::Ethernet, &[1_515, 1_514, 1_515, 60]), (vec![1_514, 60], 2));
        // A VLAN tag is no part of the packet.
        let mut tagged = vec![0; 1_518];
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        assert!(!Route { link: LinkType::Ethernet, mtu: 1_500 }.is_too_long(&Frame::new(&tagged)));
    }

    #[test]
    fn the_packets_of_a_super_frame_have_to_fit() {
        let mut bytes = vec![0; 4_000];
        bytes[..10].copy_from_slice(&[0x45, 0, 0x0f, 0xa0, 0, 0, 0, 0, 64, 6]);
        bytes[32] = 0x50;
        let frame = |size| Frame {
            bytes: &bytes,
            offload: Offload {
                segmentation: Some(Segmentation { size, kind: SegmentationKind::TcpIpv4 { ecn: false } }),
                checksum: Checksum::Partial,
            },
        };
        let route = Route { link: LinkType::Ip, mtu: 1_500 };
        assert!(!route.is_too_long(&frame(1_460)) && route.is_too_long(&frame(1_461)));
    }

    #[test]
    fn a_refused_super_frame_is_cut() {
        let segmentation = Some(Segmentation { size: 40, kind: SegmentationKind::Udp });
        let mut bytes =
            vec![0x45, 0, 0, 128, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 7, 0, 108, 0, 0];
        let header_sum = weftwire_core::checksum::checksum(&bytes[..20]);
        bytes[10..12].copy_from_slice(&header_sum.to_be_bytes());
        bytes.resize(128, 9);
        let frame = Frame { bytes: &bytes, offload: Offload { segmentation, checksum: Checksum::Partial } };
        let (mut counters, mut sent) = (PortCounters::default(), Vec::new());
        send_all(&[frame], Route { link: LinkType::Ip, mtu: 68 }, &mut counters, &mut |frames| {
            if frames[0].offload.segmentation.is_some() {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            sent.push(frames[0].bytes.len());
            Ok(1)
        });
        assert_eq!(sent, [68, 68, 48]);
        assert_eq!((counters.segmented, counters.frames_out, counters.bytes_out), (1, 3, 184));
        assert_eq!(counters.send_errors, SendErrors::default());
    }
}
