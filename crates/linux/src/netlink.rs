//! Links, addresses, neighbours and routes, asked of the kernel by rtnetlink (`rtnetlink(7)`).

use crate::error::LinuxError;
use crate::interface;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, BridgeStpState, In6AddrGenMode, InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute,
    LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use weftwire_core::MacAddress;

/// A new thing, which must not be there yet.
const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// A new thing, or another one in place of what is there.
const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;

/// One end of a pair of virtual Ethernet interfaces.
#[derive(Clone, Debug)]
pub struct VethEnd<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// Its Ethernet address; `None`: a random one.
    pub mac: Option<MacAddress>,
    /// Most bytes of a packet behind the Ethernet header; `None`: 1,500.
    pub mtu: Option<u32>,
    /// The namespace that it is in; `None`: that of the [`Netlink`].
    pub namespace: Option<BorrowedFd<'a>>,
}

impl VethEnd<'_> {
    fn message(&self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(self.name.to_owned()));
        message.attributes.extend(self.mac.map(|mac| LinkAttribute::Address(mac.octets().to_vec())));
        message.attributes.extend(self.mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(self.namespace.map(|namespace| LinkAttribute::NetNsFd(namespace.as_raw_fd())));
        message
    }
}

/// A way to a destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// The interface.
    pub interface: String,
    /// The router that is asked to pass packets on; `None`: the destination is on the link.
    pub via: Option<IpAddr>,
    /// Its share of flows among several, from 1 to 256.
    pub weight: u16,
}

/// The route to one address. Shown as the command `ip route` writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Where it leads.
    pub destination: IpAddr,
    /// The own address that packets have by default; of the same family.
    pub source: IpAddr,
    /// The ways there, at least one.
    pub hops: Vec<NextHop>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let onlink = if self.destination.is_ipv4() { " onlink" } else { "" };
        let way = |f: &mut fmt::Formatter<'_>, hop: &NextHop| match hop.via {
            Some(via) => write!(f, " via {via} dev {}", hop.interface),
            None => write!(f, " dev {}", hop.interface),
        };
        write!(f, "{}/{}", self.destination, bits(self.destination))?;
        if let [hop] = &self.hops[..] {
            way(f, hop)?;
            return write!(f, "{} src {}", if hop.via.is_some() { onlink } else { "" }, self.source);
        }
        write!(f, " src {}", self.source)?;
        for hop in &self.hops {
            f.write_str(" nexthop")?;
            way(f, hop)?;
            write!(f, " weight {}{onlink}", hop.weight)?;
        }
        Ok(())
    }
}

/// A connection to the kernel about one network namespace.
pub struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Netlink {
    /// For the namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel has no rtnetlink, or no socket left.
    pub fn open() -> Result<Netlink, LinuxError> {
        let failed = |error| LinuxError::system("open a netlink socket", error);
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        // Refusals without the request that they are of.
        socket.set_cap_ack(true).map_err(failed)?;
        Ok(Netlink { socket, buffer: Vec::new() })
    }

    /// Makes two interfaces, each the other's wire.
    ///
    /// # Errors
    /// One is there already, there is no permission (`CAP_NET_ADMIN` in both namespaces), or the kernel has no veth.
    pub fn add_veth(&mut self, ends: [&VethEnd<'_>; 2]) -> Result<(), LinuxError> {
        let mut message = ends[0].message();
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(ends[1].message()))),
        ]));
        self.ask(RouteNetlinkMessage::NewLink(message), NEW, || {
            format!("make the veth pair {} and {}", ends[0].name, ends[1].name)
        })
    }

    /// Makes a bridge that learns addresses and nothing else: no spanning tree, no snooping, no delay.
    ///
    /// # Errors
    /// It is there already, there is no permission, or the kernel has no bridges.
    pub fn add_bridge(&mut self, name: &str) -> Result<(), LinuxError> {
        let settings = vec![
            InfoBridge::StpState(BridgeStpState::Disabled),
            InfoBridge::MulticastSnooping(false),
            InfoBridge::ForwardDelay(0),
        ];
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge), LinkInfo::Data(InfoData::Bridge(settings))]),
        ];
        self.ask(RouteNetlinkMessage::NewLink(message), NEW, || format!("make the bridge {name}"))
    }

    /// Makes an interface a port of a bridge.
    ///
    /// # Errors
    /// One of them is not there, or it cannot be one.
    pub fn set_bridge(&mut self, interface: &str, bridge: &str) -> Result<(), LinuxError> {
        let index = interface::index(bridge)?;
        self.change(interface, LinkAttribute::Controller(index), || format!("add {interface} to the bridge {bridge}"))
    }

    /// Has an interface make no link-local IPv6 addresses of its own.
    ///
    /// # Errors
    /// It is not there, or the kernel has no IPv6.
    pub fn set_no_own_addresses(&mut self, interface: &str) -> Result<(), LinuxError> {
        let mode = vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)];
        self.change(interface, LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(mode)]), || {
            format!("keep {interface} from making addresses")
        })
    }

    /// The most segments that an interface takes in one large frame.
    ///
    /// # Errors
    /// It is not there, or refuses the number.
    pub fn set_gso_max_segments(&mut self, interface: &str, most: u32) -> Result<(), LinuxError> {
        self.change(interface, LinkAttribute::GsoMaxSegs(most), || format!("set gso_max_segs of {interface} to {most}"))
    }

    /// Gives an interface an address of a prefix of so many bits. It can be used at once: nobody is asked whether it is taken.
    ///
    /// # Errors
    /// The interface is not there, or has it already; or the kernel has no such family.
    pub fn add_address(&mut self, interface: &str, address: IpAddr, prefix: u8) -> Result<(), LinuxError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = interface::index(interface)?;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.ask(RouteNetlinkMessage::NewAddress(message), NEW, || format!("add {address}/{prefix} to {interface}"))
    }

    /// Says at which Ethernet address a neighbour is, so that it is never asked for.
    ///
    /// # Errors
    /// The interface is not there.
    pub fn set_neighbour(&mut self, interface: &str, address: IpAddr, mac: MacAddress) -> Result<(), LinuxError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = interface::index(interface)?;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(mac.octets().to_vec()),
        ];
        self.ask(RouteNetlinkMessage::NewNeighbour(message), REPLACE, || {
            format!("make {mac} the neighbour {address} of {interface}")
        })
    }

    /// Adds a route to the main table.
    ///
    /// # Errors
    /// There is one to this destination, an interface is not there, or a router is not on its link.
    pub fn add_route(&mut self, route: &Route) -> Result<(), LinuxError> {
        let message = message_of(route)?;
        self.ask(RouteNetlinkMessage::NewRoute(message), NEW, || format!("add the route {route}"))
    }

    /// As [`Netlink::add_route`], in place of the one that there is.
    ///
    /// # Errors
    /// An interface is not there, or a router is not on its link.
    pub fn replace_route(&mut self, route: &Route) -> Result<(), LinuxError> {
        let message = message_of(route)?;
        self.ask(RouteNetlinkMessage::NewRoute(message), REPLACE, || format!("replace the route {route}"))
    }

    fn change(
        &mut self,
        interface: &str,
        attribute: LinkAttribute,
        action: impl FnOnce() -> String,
    ) -> Result<(), LinuxError> {
        let mut message = LinkMessage::default();
        message.header.index = interface::index(interface)?;
        message.attributes.push(attribute);
        self.ask(RouteNetlinkMessage::SetLink(message), 0, action)
    }

    /// Asks for something and waits for the answer. `action` says what, should it be refused.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        action: impl FnOnce() -> String,
    ) -> Result<(), LinuxError> {
        self.exchange(message, flags).map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT) => {
                LinuxError::LinksNotBuiltIn { action: action(), source: error }
            }
            _ => LinuxError::privileged(action(), "CAP_NET_ADMIN", error),
        })
    }

    fn exchange(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        self.buffer.resize(request.buffer_len(), 0);
        request.serialize(&mut self.buffer);
        self.socket.send(&self.buffer, 0)?;
        let mut answer = [0; 4096];
        let length = self.socket.recv(&mut &mut answer[..], 0)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length]).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(refusal) if refusal.code.is_some() => Err(refusal.to_io()),
            NetlinkPayload::Error(_) => Ok(()),
            other => {
                Err(io::Error::other(format!("the kernel answers with a message of type {}", other.message_type())))
            }
        }
    }
}

/// The message of a route, whose interfaces are in the namespace of the calling thread.
fn message_of(route: &Route) -> Result<RouteMessage, LinuxError> {
    let is_ipv4 = route.destination.is_ipv4();
    let on_link = route.hops.iter().all(|hop| hop.via.is_none());
    let mut message = RouteMessage::default();
    message.header.address_family = family(route.destination);
    message.header.destination_prefix_length = bits(route.destination);
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Boot;
    message.header.scope = if is_ipv4 && on_link { RouteScope::Link } else { RouteScope::Universe };
    message.header.kind = RouteType::Unicast;
    message.attributes =
        vec![RouteAttribute::Destination(route.destination.into()), RouteAttribute::PrefSource(route.source.into())];
    if let [hop] = &route.hops[..] {
        // No address of the router's net is here.
        if is_ipv4 && !on_link {
            message.header.flags = RouteFlags::Onlink;
        }
        message.attributes.push(RouteAttribute::Oif(interface::index(&hop.interface)?));
        message.attributes.extend(hop.via.map(|via| RouteAttribute::Gateway(via.into())));
        return Ok(message);
    }
    let mut hops = Vec::new();
    for hop in &route.hops {
        let mut next = RouteNextHop::default();
        if is_ipv4 && hop.via.is_some() {
            next.flags = RouteNextHopFlags::Onlink;
        }
        // The kernel counts from 0.
        next.hops = u8::try_from(hop.weight.saturating_sub(1)).unwrap_or(u8::MAX);
        next.interface_index = interface::index(&hop.interface)?;
        next.attributes.extend(hop.via.map(|via| RouteAttribute::Gateway(via.into())));
        hops.push(next);
    }
    message.attributes.push(RouteAttribute::MultiPath(hops));
    Ok(message)
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// The bits of an address.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_shown_as_tools_write_them() {
        let hop = |via: Option<&str>, weight| NextHop {
            interface: format!("port{weight}"),
            via: via.map(|via| via.parse().unwrap()),
            weight,
        };
        let route = |destination: &str, source: &str, hops: Vec<NextHop>| {
            Route { destination: destination.parse().unwrap(), source: source.parse().unwrap(), hops }.to_string()
        };
        assert_eq!(route("10.0.0.1", "10.0.0.3", vec![hop(None, 1)]), "10.0.0.1/32 dev port1 src 10.0.0.3");
        assert_eq!(
            route("10.0.0.1", "10.0.0.3", vec![hop(Some("10.0.0.2"), 1)]),
            "10.0.0.1/32 via 10.0.0.2 dev port1 onlink src 10.0.0.3"
        );
        assert_eq!(
            route("fd77::1", "fd77::3", vec![hop(Some("fe80::1"), 1), hop(Some("fe80::2"), 2)]),
            "fd77::1/128 src fd77::3 nexthop via fe80::1 dev port1 weight 1 nexthop via fe80::2 dev port2 weight 2"
        );
    }

    #[test]
    fn a_failure_says_what_was_tried() {
        let mut netlink = Netlink::open().unwrap();
        let error = netlink.set_gso_max_segments("no-such-device", 1).unwrap_err();
        assert!(error.to_string().contains("no-such-device"), "{error}");
    }
}
