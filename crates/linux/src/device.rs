//! How ports are named, and opened.

use crate::error::LinuxError;
use crate::packet_socket::PacketSocket;
use crate::port::FramePort;
use crate::ring::Ring;
use crate::tuntap::TunTap;
use crate::xdp::XdpPort;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use weftwire_core::{LinkType, Port};

/// A port as the user names it: `1=eth0`, `1=eth0,ring`, `1=eth0,xdp`, `1=tun:weft0`, `1=tap:weft0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortSpec {
    /// The function's port number, from 1.
    pub port: Port,
    /// What it is.
    pub device: Device,
}

/// What a port is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// An existing interface by a plain packet socket.
    Socket(String),
    /// An existing interface by a memory-mapped receive ring, for busy polling.
    Ring(String),
    /// An existing interface by AF_XDP sockets.
    Xdp(String),
    /// A TUN device (raw IP), made if absent.
    Tun(String),
    /// A TAP device (Ethernet), made if absent.
    Tap(String),
}

impl Device {
    /// The interface's name.
    pub fn interface(&self) -> &str {
        match self {
            Device::Socket(name) | Device::Ring(name) | Device::Xdp(name) | Device::Tun(name) | Device::Tap(name) => {
                name
            }
        }
    }

    /// What it is made of, as a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Device::Socket(_) => "socket",
            Device::Ring(_) => "ring",
            Device::Xdp(_) => "xdp",
            Device::Tun(_) => "tun",
            Device::Tap(_) => "tap",
        }
    }

    /// Whether another process can take it over as it is.
    pub fn changes_hands(&self) -> bool {
        matches!(self, Device::Socket(_) | Device::Tun(_) | Device::Tap(_))
    }

    /// Takes the port of another process over, by its descriptor.
    ///
    /// # Errors
    /// The interface is gone; [`LinuxError::Control`] for a port that does not change hands.
    pub(crate) fn take_over(&self, descriptor: OwnedFd) -> Result<Box<dyn FramePort>, LinuxError> {
        Ok(match self {
            Device::Socket(name) => Box::new(PacketSocket::take_over(descriptor, name)?),
            Device::Tun(name) => Box::new(TunTap::take_over(descriptor, name, LinkType::Ip)?),
            Device::Tap(name) => Box::new(TunTap::take_over(descriptor, name, LinkType::Ethernet)?),
            Device::Ring(name) | Device::Xdp(name) => {
                let kind = self.kind();
                return Err(LinuxError::Control(format!("the {kind} port on `{name}` shares memory with the kernel")));
            }
        })
    }

    /// Opens the port.
    ///
    /// # Errors
    /// See [`LinuxError`].
    pub fn open(&self) -> Result<Box<dyn FramePort>, LinuxError> {
        Ok(match self {
            Device::Socket(name) => Box::new(PacketSocket::open(name)?),
            Device::Ring(name) => Box::new(Ring::open(name)?),
            Device::Xdp(name) => Box::new(XdpPort::open(name)?),
            Device::Tun(name) => Box::new(TunTap::open(name, LinkType::Ip)?),
            Device::Tap(name) => Box::new(TunTap::open(name, LinkType::Ethernet)?),
        })
    }
}

impl FromStr for PortSpec {
    type Err = LinuxError;

    fn from_str(text: &str) -> Result<PortSpec, LinuxError> {
        let bad = |reason| LinuxError::PortSpec { text: text.to_owned(), reason };
        let (number, device) = text.split_once('=').ok_or_else(|| bad("there is no `=`"))?;
        let number: u16 = number.parse().map_err(|_| bad("the port number is not a number from 1 to 65535"))?;
        if number == 0 {
            return Err(bad("ports count from 1"));
        }
        let (device, option) = match device.split_once(',') {
            Some((device, option)) => (device, Some(option)),
            None => (device, None),
        };
        let (kind, name) = match device.split_once(':') {
            Some((kind @ ("tun" | "tap"), name)) => (Some(kind), name),
            _ => (None, device),
        };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|b| b == b'/' || !b.is_ascii_graphic()) {
            return Err(bad("an interface's name has 1 to 15 letters and no space or slash"));
        }
        let name = name.to_owned();
        let device = match (kind, option) {
            (None, None | Some("socket")) => Device::Socket(name),
            (None, Some("ring")) => Device::Ring(name),
            (None, Some("xdp")) => Device::Xdp(name),
            (None, Some(_)) => return Err(bad("the options of an interface are `socket`, `ring` and `xdp`")),
            (Some(_), Some(_)) => return Err(bad("tun and tap take no option")),
            (Some("tun"), None) => Device::Tun(name),
            (Some(_), None) => Device::Tap(name),
        };
        Ok(PortSpec { port: Port(number), device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_port_specifications() {
        let read = |text: &str| text.parse::<PortSpec>().map(|spec| (spec.port.0, spec.device));
        assert_eq!(read("1=eth0").unwrap(), (1, Device::Socket("eth0".into())));
        assert_eq!(read("2=eth0,socket").unwrap(), (2, Device::Socket("eth0".into())));
        assert_eq!(read("3=eth0.5,ring").unwrap(), (3, Device::Ring("eth0.5".into())));
        assert_eq!(read("3=eth0,xdp").unwrap(), (3, Device::Xdp("eth0".into())));
        assert_eq!(read("4=tun:weft0").unwrap(), (4, Device::Tun("weft0".into())));
        assert_eq!(read("5=tap:weft0").unwrap(), (5, Device::Tap("weft0".into())));
        assert_eq!(read("6=eth0:1").unwrap(), (6, Device::Socket("eth0:1".into())));
    }

    #[test]
    fn refuses_bad_ones_and_says_what_is_right() {
        for text in [
            "eth0",
            "0=eth0",
            "x=eth0",
            "1=",
            "1=tun:",
            "1=a/b",
            "1=0123456789abcdef",
            "1=eth0,fast",
            "1=tap:a,ring",
            "1=tun:a,xdp",
        ] {
            let error = text.parse::<PortSpec>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("--port 1=eth0"), "{error}");
        }
    }
}
