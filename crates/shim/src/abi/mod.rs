//! The calls for C: those of `include/weft_shim.h` ([`weft`]), and packetdrill's table of callbacks ([`packetdrill`]). Only here is code
//! unsafe, and only where it reads and writes memory of the caller.
#![allow(unsafe_code)]

mod memory;
mod numbers;
pub mod packetdrill;
#[cfg(test)]
mod tests;
pub mod weft;

use crate::{Call, Errno, Fd, Patience};
use std::ffi::c_int;

/// How long a call with these flags may wait.
fn patience(flags: c_int) -> Patience {
    if flags & libc::MSG_DONTWAIT != 0 { Patience::None } else { Patience::OfSocket }
}

/// `recv` with these flags.
fn receive(fd: c_int, most: usize, flags: c_int) -> Result<(Call, Patience), Errno> {
    const KNOWN: c_int = libc::MSG_DONTWAIT | libc::MSG_PEEK | libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
    if flags & !KNOWN != 0 {
        return Err(Errno::NotSupported);
    }
    let (peek, all) = (flags & libc::MSG_PEEK != 0, flags & libc::MSG_WAITALL != 0);
    Ok((Call::Receive { fd: Fd(fd), most, peek, all }, patience(flags)))
}

/// `send` with these flags.
fn send(fd: c_int, bytes: Vec<u8>, flags: c_int) -> Result<(Call, Patience), Errno> {
    if flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) != 0 {
        return Err(Errno::NotSupported);
    }
    Ok((Call::Send { fd: Fd(fd), bytes, taken: 0 }, patience(flags)))
}

/// How long `poll` may wait for so many milliseconds; less than none is for ever.
fn milliseconds(timeout: c_int) -> Patience {
    match timeout {
        ..0 => Patience::Endless,
        timeout => Patience::For(i64::from(timeout) * 1_000_000),
    }
}
