//! Sending that all ports share: bounded retries, software segmentation where the kernel refuses a super-frame,
//! and a count for every frame that could not be sent.

use crate::port::{BATCH, PortCounters};
use crate::vnet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use weftwire_core::segment::segments;
use weftwire_core::{Frame, LinkType};

/// Attempts to send a frame while the kernel's queue is full. Each lets other threads run in between.
const ATTEMPTS: u32 = 64;

/// Sends frames in order by `submit`, which takes a front part of what it is given and says how many frames that
/// was (at least one), or why the first frame can't go.
pub(crate) fn send_all(
    mut frames: &[Frame<'_>],
    link: LinkType,
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
                    send_segments(first, link, counters, submit);
                }
                code => *counters.send_errors.entry(reason(code)).or_default() += 1,
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

/// The kernel's reason by the name that manual pages use.
fn reason(code: i32) -> &'static str {
    match code {
        libc::ENOBUFS | libc::EAGAIN => "queue full (ENOBUFS)",
        libc::EMSGSIZE => "longer than the MTU (EMSGSIZE)",
        libc::ENETDOWN => "interface down (ENETDOWN)",
        libc::ENXIO | libc::ENODEV => "interface gone (ENXIO)",
        libc::EINVAL => "malformed frame (EINVAL)",
        libc::EPERM => "forbidden by a filter (EPERM)",
        libc::EIO => "device not up (EIO)",
        _ => "other",
    }
}

/// Cuts a super-frame that the kernel refuses (a UDP one before Linux 6.2) and sends the packets.
fn send_segments(
    frame: &Frame<'_>,
    link: LinkType,
    counters: &mut PortCounters,
    submit: &mut dyn FnMut(&[Frame<'_>]) -> io::Result<usize>,
) {
    match segments(link, *frame) {
        Ok(packets) => {
            counters.segmented += 1;
            for packet in packets {
                // An ordinary frame: it is not cut again.
                send_all(&[Frame::new(&packet)], link, counters, submit);
            }
        }
        Err(_) => *counters.send_errors.entry(reason(libc::EINVAL)).or_default() += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use weftwire_core::port::{Checksum, SegmentationKind};
    use weftwire_core::{Offload, Segmentation};

    /// Sends `frames` to a kernel that gives these answers, and then takes everything.
    fn send(frames: &[Frame<'_>], answers: Vec<Result<usize, i32>>) -> (PortCounters, Vec<usize>, usize) {
        let (mut counters, mut sent, mut calls) = (PortCounters::default(), Vec::new(), 0);
        let mut answers = VecDeque::from(answers);
        send_all(frames, LinkType::Ethernet, &mut counters, &mut |frames| {
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
        assert!(counters.send_errors.is_empty());

        let full = vec![Err(libc::ENOBUFS); ATTEMPTS as usize + 1];
        let (counters, sent, _) = send(&frames, full);
        assert_eq!(sent, [61, 62]);
        assert_eq!(counters.send_errors[reason(libc::ENOBUFS)], 1);
    }

    #[test]
    fn a_refused_frame_is_counted_and_the_next_ones_go() {
        let frames = [Frame::new(&[0; 60]), Frame::new(&[0; 9000]), Frame::new(&[0; 62])];
        let (counters, sent, _) = send(&frames, vec![Ok(1), Err(libc::EMSGSIZE)]);
        assert_eq!(sent, [60, 62]);
        assert_eq!(counters.send_errors["longer than the MTU (EMSGSIZE)"], 1);
        assert_eq!(counters.segmented, 0);
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
        send_all(&[frame], LinkType::Ip, &mut counters, &mut |frames| {
            if frames[0].offload.segmentation.is_some() {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            sent.push(frames[0].bytes.len());
            Ok(1)
        });
        assert_eq!(sent, [68, 68, 48]);
        assert_eq!((counters.segmented, counters.frames_out, counters.bytes_out), (1, 3, 184));
        assert!(counters.send_errors.is_empty());
    }
}
