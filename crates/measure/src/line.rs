//! A line to send on: two network namespaces without names, joined by a veth pair. They end with this process, however it ends.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;
use weftwire_core::MacAddress;
use weftwire_linux::LinuxError;
use weftwire_linux::interface::bring_up;
use weftwire_linux::namespace::NetworkNamespace;
use weftwire_linux::netlink::{Netlink, VethEnd};
use weftwire_linux::system::set_option;

/// The sender's end of the line.
pub const NEAR: &str = "pace0";
/// The receiver's end.
pub const FAR: &str = "pace1";
/// Ethernet addresses of both ends. Locally administered.
pub const NEAR_MAC: MacAddress = MacAddress([0x02, 0x77, 0x65, 0x66, 0x70, 0x00]);
/// The receiver's.
pub const FAR_MAC: MacAddress = MacAddress([0x02, 0x77, 0x65, 0x66, 0x70, 0x01]);
/// The sender's address, of the block for tests between networks (RFC 2544).
pub const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The receiver's.
pub const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// Two namespaces and the line between them.
#[derive(Debug)]
pub struct Line {
    /// Where [`NEAR`] is.
    pub near: NetworkNamespace,
    /// Where [`FAR`] is.
    pub far: NetworkNamespace,
    /// Keeps the kernel stamping frames: it begins to a little after the first socket asks for it, and what is not stamped by then
    /// gets the time at which it is looked at.
    _stamps: UdpSocket,
}

impl Line {
    /// Makes the line. Both ends are up, with addresses, and know each other.
    ///
    /// # Errors
    /// No permission (`CAP_SYS_ADMIN`, `CAP_NET_ADMIN`), or the kernel has no veth.
    pub fn make() -> Result<Line, LinuxError> {
        let failed = |error| LinuxError::privileged("make a network namespace", "CAP_SYS_ADMIN", error);
        let line = Line {
            near: NetworkNamespace::anonymous().map_err(failed)?,
            far: NetworkNamespace::anonymous().map_err(failed)?,
            _stamps: stamping().map_err(|error| LinuxError::system("have the kernel stamp frames", error))?,
        };
        let near = VethEnd { name: NEAR, mac: Some(NEAR_MAC), mtu: None, namespace: None };
        let far = VethEnd { name: FAR, mac: Some(FAR_MAC), mtu: None, namespace: Some(line.far.as_fd()) };
        line.near
            .run(|| {
                let mut netlink = Netlink::open()?;
                netlink.add_veth([&near, &far])?;
                set_up(&mut netlink, NEAR, NEAR_ADDRESS, (FAR_ADDRESS, FAR_MAC))
            })
            .map_err(failed)??;
        line.far
            .run(|| set_up(&mut Netlink::open()?, FAR, FAR_ADDRESS, (NEAR_ADDRESS, NEAR_MAC)))
            .map_err(failed)??;
        Ok(line)
    }

    /// Has the near end send TCP's segments one by one, or in large frames as the kernel does by itself.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_single_segments(&self, single: bool) -> Result<(), LinuxError> {
        let most = if single { 1 } else { 65_535 };
        let ran = self.near.run(|| Netlink::open()?.set_gso_max_segments(NEAR, most));
        ran.map_err(|error| LinuxError::system("enter the namespace of the line", error))?
    }

    /// Puts the fair queue (`fq`), which holds packets back until their time, on the near end, or takes it away.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn set_fair_queue(&self, on: bool) -> Result<(), QueueError> {
        let words = if on { ["replace", "dev", NEAR, "root", "fq"].as_slice() } else { &["del", "dev", NEAR, "root"] };
        let ran = self.near.run(|| Command::new("tc").arg("qdisc").args(words).stdin(Stdio::null()).output());
        let output = ran.and_then(|output| output).map_err(QueueError::NoTool)?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(QueueError::Refused { command: words.join(" "), said })
            }
        }
    }
}

/// Why the near end has no fair queue, or keeps it.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// There is no command `tc`, or it cannot be run in the line's namespace.
    #[error("cannot run `tc`: {0}")]
    NoTool(io::Error),
    /// The kernel has no `fq`.
    #[error("`tc qdisc {command}`: {said}")]
    Refused {
        /// What `tc qdisc` was told.
        command: String,
        /// What it answered.
        said: String,
    },
}

/// How long the kernel may take to begin stamping frames.
const STAMPING: Duration = Duration::from_millis(50);

/// A socket that asks for time stamps, once there are some.
fn stamping() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
    std::thread::sleep(STAMPING);
    Ok(socket)
}

/// Makes one end ready: no frames but those of the measurement.
fn set_up(
    netlink: &mut Netlink,
    name: &str,
    own: Ipv4Addr,
    (other, mac): (Ipv4Addr, MacAddress),
) -> Result<(), LinuxError> {
    netlink.set_no_own_addresses(name)?;
    bring_up(name).map_err(|error| LinuxError::system(format!("bring {name} up"), error))?;
    netlink.add_address(name, own.into(), 30)?;
    netlink.set_neighbour(name, other.into(), mac)
}
