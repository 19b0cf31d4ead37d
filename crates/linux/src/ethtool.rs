//! Offloads of an interface by `SIOCETHTOOL` (`linux/ethtool.h`), without the program `ethtool`.

use crate::system::{check, interface_request, socket};
use std::io;
use std::os::fd::AsRawFd;

/// `ETHTOOL_S...` numbers of what may hold back or join frames, or leave checksums undone: receive and transmit
/// checksums, scatter-gather, TCP segmentation, generic segmentation and generic receive offload.
const SWITCHES: [u32; 6] = [0x15, 0x17, 0x19, 0x1f, 0x24, 0x2c];
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_channels`: most that there may be, then how many there are.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    _most: [u32; 4],
    receive: u32,
    _transmit: u32,
    _other: u32,
    combined: u32,
}

/// Receive queues that the interface `name` uses.
///
/// # Errors
/// There is no such interface, or its driver knows of none: then there is one.
pub fn receive_queues(name: &str) -> io::Result<u32> {
    let query = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut channels).cast();
    // SAFETY: the request points to a structure that outlives the call, of the type that this command fills.
    check(unsafe { libc::ioctl(query.as_raw_fd(), SIOCETHTOOL, std::ptr::from_mut(&mut request)) })?;
    Ok(channels.receive + channels.combined)
}

/// Whether the interface `name` has a carrier. The answer waits for changes of interfaces that are under way.
pub fn has_link(name: &str) -> io::Result<bool> {
    let query = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut value = Value { command: ETHTOOL_GLINK, data: 0 };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the request points to a value that outlives the call, of the type that this command fills.
    check(unsafe { libc::ioctl(query.as_raw_fd(), SIOCETHTOOL, std::ptr::from_mut(&mut request)) })?;
    Ok(value.data != 0)
}

/// Switches the offloads of the interface `name` in this network namespace off, so that frames cross it one by one as
/// they would a wire. What a device has not got it need not switch off.
///
/// # Errors
/// There is no such interface, or no permission.
pub fn switch_offloads_off(name: &str) -> io::Result<()> {
    let query = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    for command in SWITCHES {
        let mut value = Value { command, data: 0 };
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
        // SAFETY: the request points to a value that outlives the call, of the type that these commands take.
        match check(unsafe { libc::ioctl(query.as_raw_fd(), SIOCETHTOOL, std::ptr::from_mut(&mut request)) }) {
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
