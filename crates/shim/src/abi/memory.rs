//! What C passes on: memory that is read and written. All that this module asks of callers is what C asks of them.

use crate::Errno;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of the caller.
///
/// # Safety
/// `length` bytes at `from` can be read for as long as the result lives, unless `length` is 0.
pub unsafe fn bytes<'a>(from: *const c_void, length: usize) -> Result<&'a [u8], Errno> {
    if length == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(Errno::Fault);
    }
    // SAFETY: not null, and as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(from.cast(), length) })
}

/// Writes bytes to the caller.
///
/// # Safety
/// As many bytes at `to` can be written, unless there are none.
pub unsafe fn write(to: *mut c_void, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.is_empty() {
        return Ok(());
    }
    if to.is_null() {
        return Err(Errno::Fault);
    }
    // SAFETY: not null, as the caller promises; what is borrowed here does not overlap what C may write.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
    Ok(())
}

/// A value of the caller, wherever it lies.
///
/// # Safety
/// There is such a value at `from`, unless it is null.
pub unsafe fn read<T: Copy>(from: *const T) -> Result<T, Errno> {
    if from.is_null() {
        return Err(Errno::Fault);
    }
    // SAFETY: not null, and as the caller promises.
    Ok(unsafe { from.read_unaligned() })
}

/// Gives the caller a value.
///
/// # Safety
/// There is room for such a value at `to`, unless it is null.
pub unsafe fn put<T: Copy>(to: *mut T, value: T) -> Result<(), Errno> {
    if to.is_null() {
        return Err(Errno::Fault);
    }
    // SAFETY: not null, and as the caller promises.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// A text of the caller; null is none. What is no UTF-8 is replaced.
///
/// # Safety
/// `text` is null or ends with a zero byte.
pub unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Gives the caller a text, cut to the room for it, with a zero byte at its end.
///
/// # Safety
/// `room` bytes at `to` can be written, unless it is null.
pub unsafe fn put_text(to: *mut c_char, room: usize, text: &str) {
    if to.is_null() || room == 0 {
        return;
    }
    let mut bytes = text.as_bytes()[..text.floor_char_boundary(room - 1)].to_vec();
    bytes.push(0);
    // SAFETY: at most `room` bytes, which can be written as the caller promises.
    let _ = unsafe { write(to.cast(), &bytes) };
}

/// A socket address of the caller.
///
/// # Safety
/// `length` bytes at `from` can be read, unless it is null.
pub unsafe fn address(from: *const libc::sockaddr, length: libc::socklen_t) -> Result<SocketAddr, Errno> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(from.cast(), length as usize) }?;
    read_address(bytes)
}

/// Gives the caller a socket address, cut to its room, and how long it is.
///
/// # Safety
/// If `length` is not null, there is a length, and room for so many bytes at `to`, unless that is null.
pub unsafe fn put_address(
    to: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
    address: SocketAddr,
) -> Result<(), Errno> {
    if to.is_null() {
        return Ok(());
    }
    let bytes = address_bytes(address);
    // SAFETY: as the caller promises; at most its room is written.
    unsafe {
        let room = (read(length)? as usize).min(bytes.len());
        write(to.cast(), &bytes[..room])?;
        put(length, bytes.len() as libc::socklen_t)
    }
}

/// `struct sockaddr_in` or `struct sockaddr_in6`.
fn read_address(bytes: &[u8]) -> Result<SocketAddr, Errno> {
    let half = |at: usize| bytes.get(at..at + 2).map(|two| [two[0], two[1]]).ok_or(Errno::Invalid);
    let family = c_int::from(u16::from_ne_bytes(half(0)?));
    let port = u16::from_be_bytes(half(2)?);
    match family {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes.get(4..8).and_then(|octets| octets.try_into().ok()).ok_or(Errno::Invalid)?;
            Ok(SocketAddrV4::new(Ipv4Addr::from(octets), port).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..24).and_then(|octets| octets.try_into().ok()).ok_or(Errno::Invalid)?;
            Ok(SocketAddrV6::new(Ipv6Addr::from(octets), port, 0, 0).into())
        }
        _ => Err(Errno::AddressFamily),
    }
}

/// The other way.
fn address_bytes(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::new();
    match address {
        SocketAddr::V4(address) => {
            bytes.extend((libc::AF_INET as u16).to_ne_bytes());
            bytes.extend(address.port().to_be_bytes());
            bytes.extend(address.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(address) => {
            bytes.extend((libc::AF_INET6 as u16).to_ne_bytes());
            bytes.extend(address.port().to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(address.ip().octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_there_and_back() {
        for text in ["10.0.0.1:8080", "[fd3d::1]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            let bytes = address_bytes(address);
            assert_eq!(bytes.len(), if address.is_ipv4() { 16 } else { 28 });
            assert_eq!(read_address(&bytes), Ok(address));
            for cut in 0..8 {
                assert!(read_address(&bytes[..cut]).is_err(), "{cut}");
            }
        }
        assert_eq!(read_address(&[0; 16]), Err(Errno::AddressFamily));
    }

    #[test]
    fn the_callers_room_is_kept() {
        let mut room = [0x55_u8; 32];
        let mut length: libc::socklen_t = 4;
        // SAFETY: four bytes of 32.
        unsafe { put_address(room.as_mut_ptr().cast(), &raw mut length, "1.2.3.4:5".parse().unwrap()) }.unwrap();
        assert_eq!((length, room[3], room[4]), (16, 5, 0x55));
        let mut text = [1_u8; 8];
        // SAFETY: four bytes of eight.
        unsafe { put_text(text.as_mut_ptr().cast(), 4, "äbcde") };
        assert_eq!(text, [0xc3, 0xa4, b'b', 0, 1, 1, 1, 1]);
        // SAFETY: null, or nothing.
        unsafe {
            assert_eq!(bytes(std::ptr::null(), 1), Err(Errno::Fault));
            assert_eq!(bytes(std::ptr::null(), 0), Ok(&[][..]));
            assert_eq!(write(std::ptr::null_mut(), &[1]), Err(Errno::Fault));
            assert_eq!(super::text(std::ptr::null()), "");
        }
    }
}
