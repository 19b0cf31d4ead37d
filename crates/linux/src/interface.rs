//! What the kernel knows of an interface and its neighbours.

use crate::error::LinuxError;
use crate::system::{interface_ioctl, interface_request, socket};
use std::ffi::{CStr, CString, c_int};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use weftwire_core::{LinkType, MacAddress};

/// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`: frames with an Ethernet header.
const ETHERNET_TYPES: [u16; 2] = [1, 772];
/// `ARPHRD_NONE`, `ARPHRD_PPP`, `ARPHRD_RAWIP`: frames that begin with the IP header.
const IP_TYPES: [u16; 3] = [65534, 512, 519];

/// An existing interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// What its frames begin with.
    pub link: LinkType,
    /// Its own Ethernet address; zero on raw-IP interfaces.
    pub mac: MacAddress,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is operational: it has its carrier, and what else it waits for.
    pub running: bool,
    /// Most bytes of a packet behind the Ethernet header.
    pub mtu: usize,
}

impl Interface {
    /// Looks the interface up in this network namespace.
    ///
    /// # Errors
    /// [`LinuxError::NoInterface`], [`LinuxError::HardwareType`].
    pub fn find(name: &str) -> Result<Interface, LinuxError> {
        let failed = |error| LinuxError::system(format!("query interface `{name}`"), error);
        let index = index(name)?;
        let query = query_socket().map_err(failed)?;
        let mut request = interface_request(name);
        interface_ioctl(query.as_fd(), libc::SIOCGIFHWADDR as libc::Ioctl, &mut request).map_err(failed)?;
        // SAFETY: SIOCGIFHWADDR filled this member of the union.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let link = match address.sa_family {
            kind if ETHERNET_TYPES.contains(&kind) => LinkType::Ethernet,
            kind if IP_TYPES.contains(&kind) => LinkType::Ip,
            hardware_type => return Err(LinuxError::HardwareType { name: name.to_owned(), hardware_type }),
        };
        let mut mac = MacAddress::UNSPECIFIED;
        if link == LinkType::Ethernet {
            mac = MacAddress(std::array::from_fn(|at| address.sa_data[at] as u8));
        }
        let flags = flags(&query, name).map_err(failed)?;
        let (up, running) = (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0);
        let mut request = interface_request(name);
        interface_ioctl(query.as_fd(), libc::SIOCGIFMTU as libc::Ioctl, &mut request).map_err(failed)?;
        // SAFETY: SIOCGIFMTU filled this member of the union.
        let mtu = usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(usize::MAX);
        Ok(Interface { name: name.to_owned(), index, link, mac, up, running, mtu })
    }

    /// The interface of this number, whatever its name is now.
    pub(crate) fn of_index(index: u32) -> Option<Interface> {
        let mut name = [0; libc::IF_NAMESIZE];
        // SAFETY: the C library writes at most `IF_NAMESIZE` bytes, with a zero at the end.
        let name = unsafe {
            if libc::if_indextoname(index, name.as_mut_ptr()).is_null() {
                return None;
            }
            CStr::from_ptr(name.as_ptr())
        };
        Interface::find(name.to_str().ok()?).ok().filter(|found| found.index == index)
    }
}

/// The number of an interface in this network namespace.
///
/// # Errors
/// [`LinuxError::NoInterface`].
pub fn index(name: &str) -> Result<u32, LinuxError> {
    // SAFETY: a valid C string that outlives the call.
    let index = CString::new(name).map_or(0, |name| unsafe { libc::if_nametoindex(name.as_ptr()) });
    match index {
        0 => Err(LinuxError::NoInterface { name: name.to_owned(), known: known_interfaces() }),
        index => Ok(index),
    }
}

/// Sets an interface administratively up.
pub fn bring_up(name: &str) -> io::Result<()> {
    let query = query_socket()?;
    let flags = flags(&query, name)?;
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = (flags | libc::IFF_UP) as libc::c_short;
    interface_ioctl(query.as_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)
}

/// The Ethernet address of the next hop towards `remote` on `interface`, if the kernel's IPv4 neighbour table
/// has it: `remote`'s own entry, else that of the interface's default gateway.
pub fn next_hop(interface: &str, remote: IpAddr) -> Option<MacAddress> {
    let IpAddr::V4(remote) = remote else { return None };
    let neighbours = fs::read_to_string("/proc/net/arp").ok()?;
    neighbour(&neighbours, interface, remote).or_else(|| {
        let routes = fs::read_to_string("/proc/net/route").ok()?;
        neighbour(&neighbours, interface, default_gateway(&routes, interface)?)
    })
}

/// `/proc/net/arp`: address, hardware type, flags (0x2: complete), Ethernet address, mask, interface.
fn neighbour(table: &str, interface: &str, address: Ipv4Addr) -> Option<MacAddress> {
    let address = address.to_string();
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [ip, _, flags, mac, _, device] if ip == address && device == interface && flags != "0x0" => {
                mac.parse().ok()
            }
            _ => None,
        }
    })
}

/// `/proc/net/route`: interface, destination, gateway (hexadecimal, in memory's byte order), ...
fn default_gateway(table: &str, interface: &str) -> Option<Ipv4Addr> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [device, "00000000", gateway, ..] if device == interface => {
                let gateway = u32::from_str_radix(gateway, 16).ok().filter(|gateway| *gateway != 0)?;
                Some(Ipv4Addr::from(gateway.to_ne_bytes()))
            }
            _ => None,
        }
    })
}

fn known_interfaces() -> String {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names.join(", ")
}

fn query_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

fn flags(query: &OwnedFd, name: &str) -> io::Result<c_int> {
    let mut request = interface_request(name);
    interface_ioctl(query.as_fd(), libc::SIOCGIFFLAGS as libc::Ioctl, &mut request)?;
    // SAFETY: SIOCGIFFLAGS filled this member of the union.
    Ok(c_int::from(unsafe { request.ifr_ifru.ifru_flags } as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_neighbour_table() {
        let arp = "IP address       HW type     Flags       HW address            Mask     Device\n\
                   10.0.0.1         0x1         0x2         02:00:00:00:00:01     *        eth0\n\
                   10.0.0.2         0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        assert_eq!(neighbour(arp, "eth0", Ipv4Addr::new(10, 0, 0, 1)), Some(MacAddress([2, 0, 0, 0, 0, 1])));
        assert_eq!(neighbour(arp, "eth1", Ipv4Addr::new(10, 0, 0, 1)), None);
        assert_eq!(neighbour(arp, "eth0", Ipv4Addr::new(10, 0, 0, 2)), None);
    }

    #[test]
    fn reads_the_default_gateway() {
        let gateway = u32::from_ne_bytes([10, 0, 0, 1]);
        let routes =
            format!("Iface Destination Gateway Flags\neth0 0000000A 00000000 0001\neth0 00000000 {gateway:08X} 0003\n");
        assert_eq!(default_gateway(&routes, "eth0"), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(default_gateway(&routes, "eth1"), None);
    }

    #[test]
    fn a_missing_interface_lists_those_that_exist() {
        let error = Interface::find("nosuch0").unwrap_err().to_string();
        assert!(error.contains("nosuch0") && error.contains("lo"), "{error}");
    }
}
