//! Makes the namespaces, wires, addresses and routes of a network.
//!
//! Each node is a namespace; each end of a link is a veth pair between the node (`port1`, `port2`, ...) and the hub, where
//! the relay sits (`l0a` for end 0 of the first link, `l0b` for its other end). All offloads are off, so that what
//! crosses a link is real packets with complete checksums. All next hops are static, so nodes never ask for any.

use crate::error::LabError;
use crate::routing;
use crate::state::{LinkState, NodeState, Phase, Process, State};
use std::fs;
use std::path::Path;
use std::time::Duration;
use weftwire_core::{MacAddress, Port};
use weftwire_linux::ethtool::switch_offloads_off;
use weftwire_linux::interface::bring_up;
use weftwire_linux::namespace::{self, NetworkNamespace};
use weftwire_linux::netlink::{Netlink, VethEnd};
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Rate};
use weftwire_network::model::{ChangeKind, Link, Node, NodeIndex, NodeKind, PortPlace};
use weftwire_network::routing::Routes;

/// Bytes of an IP packet on a link.
pub const MTU: u32 = 1500;

/// The bridge of a switch.
const BRIDGE: &str = "bridge";

/// How long processes in the namespaces have between SIGTERM and SIGKILL.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The namespace of the relay.
pub fn hub_name(network: &str) -> String {
    format!("weft.{network}")
}

/// The namespace of a node. Names of networks and nodes have no dot, so no two are equal.
pub fn namespace_name(network: &str, node: &str) -> String {
    format!("weft.{network}.{node}")
}

/// The node's interface of a port.
pub fn port_name(port: Port) -> String {
    format!("port{}", port.0)
}

/// The hub's interface of an end of a link.
pub(crate) fn hub_interface(link: usize, end: usize) -> String {
    format!("l{link}{}", ["a", "b"][end])
}

/// What a node is, in one word.
pub fn kind_name(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Host { .. } => "host",
        NodeKind::Router => "router",
        NodeKind::Switch => "switch",
        NodeKind::Sink => "sink",
        NodeKind::Echo => "echo",
        NodeKind::Function(_) => "function",
    }
}

/// Whether the kernel of the node's namespace has its addresses. Sinks, echoes and functions take frames themselves.
pub(crate) fn has_kernel_addresses(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Host { .. } | NodeKind::Router)
}

/// The state of a network that is about to be made.
///
/// # Errors
/// There is no `/proc`.
pub fn plan(network: &Network, file: &Path, foreground: bool) -> Result<State, LabError> {
    let node = |node: &Node| NodeState {
        name: node.name.clone(),
        kind: kind_name(&node.kind).to_owned(),
        namespace: namespace_name(&network.name, &node.name),
        ipv4: node.is_addressed().then_some(node.ipv4),
        ipv6: node.is_addressed().then_some(node.ipv6),
        interfaces: (1..)
            .zip(&node.ports)
            .map(|(port, (link, _))| (port_name(Port(port)), network.link(*link).name.clone()))
            .collect(),
    };
    let link = |link: &Link| LinkState {
        name: link.name.clone(),
        ends: link.ends.map(|end| network.place_name(end)),
        rates: [0, 1].map(|direction| constant_rate(&link.directions[direction])),
    };
    Ok(State {
        name: network.name.clone(),
        file: file.to_owned(),
        phase: Phase::Building,
        supervisor: Process::own()?,
        foreground,
        hub: hub_name(&network.name),
        nodes: network.nodes.iter().map(node).collect(),
        links: network.links.iter().map(link).collect(),
    })
}

/// A direction's rate, if it is limited and does not change.
pub(crate) fn constant_rate(settings: &LinkSettings) -> Option<u64> {
    match settings.rate {
        Some(Rate::Constant(rate)) => Some(rate),
        _ => None,
    }
}

impl State {
    /// All namespaces of the network.
    pub fn namespaces(&self) -> Vec<String> {
        [self.hub.clone()].into_iter().chain(self.nodes.iter().map(|node| node.namespace.clone())).collect()
    }
}

/// Refuses names that somebody else's namespaces have.
///
/// # Errors
/// Which one is taken.
pub fn refuse_taken(state: &State) -> Result<(), LabError> {
    match state.namespaces().into_iter().find(|name| namespace::exists(name)) {
        None => Ok(()),
        Some(taken) => Err(LabError::NamespaceTaken(taken)),
    }
}

/// Refuses what only the simulator does.
///
/// # Errors
/// The network asks for it.
fn refuse_simulated(network: &Network) -> Result<(), LabError> {
    routing::refuse_spraying(network)?;
    let changed = network.changes.iter().filter_map(|change| match &change.what {
        ChangeKind::Settings { settings, .. } => Some(&**settings),
        _ => None,
    });
    if network.links.iter().flat_map(|link| &link.directions).chain(changed).any(|settings| settings.pause.is_some()) {
        return Err(LabError::Pause);
    }
    match network.traffic.iter().find(|traffic| traffic.dscp > 0) {
        Some(traffic) => Err(LabError::Dscp(traffic.name.clone())),
        None => Ok(()),
    }
}

/// Makes everything that the kernel holds. What was made stays when it fails: see [`remove`].
///
/// # Errors
/// What could not be made, and why.
pub fn build(network: &Network, state: &State) -> Result<(), LabError> {
    refuse_simulated(network)?;
    for name in state.namespaces() {
        namespace::add(&name)
            .map_err(|error| LabError::privileged(format!("make the namespace {name}"), "root", error))?;
    }

    in_namespace(&state.hub, || quiet(false))?;
    for (node, made) in network.nodes.iter().zip(&state.nodes) {
        in_namespace(&made.namespace, || {
            quiet(has_kernel_addresses(&node.kind))?;
            if matches!(node.kind, NodeKind::Router) {
                set("ipv4/ip_forward", "1")?;
                set("ipv6/conf/all/forwarding", "1")?;
            }
            Ok::<_, LabError>(())
        })?;
    }

    in_namespace(&state.hub, || {
        let mut netlink = Netlink::open()?;
        for (index, link) in network.links.iter().enumerate() {
            for (end, place) in link.ends.iter().enumerate() {
                let name = &state.nodes[place.node.0 as usize].namespace;
                let namespace = NetworkNamespace::open(name)
                    .map_err(|error| LabError::system(format!("open the namespace {name}"), error))?;
                let (port, other) = (port_name(place.port), hub_interface(index, end));
                let (mac, namespace) = (Some(network.mac(*place)), Some(namespace.as_fd()));
                let port = VethEnd { name: &port, mac, mtu: Some(MTU), namespace };
                netlink.add_veth([&port, &VethEnd { name: &other, mac: None, mtu: Some(MTU), namespace: None }])?;
                start(&other)?;
            }
        }
        Ok::<_, LabError>(())
    })?;
    let mut routes = Routes::new(network);
    for ((index, node), made) in network.nodes().zip(&state.nodes) {
        let spreads = has_kernel_addresses(&node.kind) && routing::has_choice(network, &mut routes, index);
        in_namespace(&made.namespace, || {
            made.interfaces.iter().try_for_each(|(port, _)| start(port))?;
            if spreads {
                routing::spread(network.route_seed(index))?;
            }
            set_up(network, &mut routes, index, node)
        })?;
    }
    Ok(())
}

/// Gives the node whose namespace the thread is in its addresses, neighbours and routes, or its bridge.
fn set_up(network: &Network, routes: &mut Routes, index: NodeIndex, node: &Node) -> Result<(), LabError> {
    let mut netlink = Netlink::open()?;
    if let NodeKind::Switch = node.kind {
        netlink.add_bridge(BRIDGE)?;
        for port in 1..=node.ports.len() {
            netlink.set_bridge(&port_name(Port(port as u16)), BRIDGE)?;
        }
        bring_up(BRIDGE).map_err(|error| LabError::system(format!("bring {BRIDGE} up"), error))?;
    }
    if !has_kernel_addresses(&node.kind) {
        return Ok(());
    }
    let device = if node.ports.is_empty() { "lo" } else { &port_name(Port(1)) };
    netlink.add_address(device, node.ipv4.into(), 32)?;
    netlink.add_address(device, node.ipv6.into(), 128)?;
    for hop in routes.neighbours(index).to_vec() {
        let (mac, port) = (network.mac(hop.to), port_name(hop.port));
        let neighbour = network.node(hop.to.node);
        for address in [neighbour.ipv4.into(), neighbour.ipv6.into(), routing::link_local(network, &hop).into()] {
            netlink.set_neighbour(&port, address, mac)?;
        }
    }
    routing::routes_of(network, routes, index).iter().try_for_each(|route| Ok(netlink.add_route(route)?))
}

/// Removes everything that `state` names and nothing else; what is not there is fine.
///
/// # Errors
/// A namespace can't be removed; the others are.
pub fn remove(state: &State) -> Result<(), LabError> {
    let names = state.namespaces();
    namespace::end_processes(&names, PATIENCE);
    let mut result = Ok(());
    for name in names {
        if let Err(error) = namespace::delete(&name) {
            result = Err(LabError::privileged(format!("remove the namespace {name}"), "root", error));
        }
    }
    result
}

/// Runs `work` in a namespace; says which if it fails.
pub(crate) fn in_namespace<T: Send, E: Into<LabError> + Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, LabError> {
    let entered = NetworkNamespace::open(name).and_then(|namespace| namespace.run(work));
    entered
        .map_err(|error| LabError::system(format!("enter the namespace {name}"), error))?
        .map_err(|error| LabError::InNamespace { namespace: name.to_owned(), source: Box::new(error.into()) })
}

fn start(interface: &str) -> Result<(), LabError> {
    switch_offloads_off(interface)
        .and_then(|()| bring_up(interface))
        .map_err(|error| LabError::system(format!("switch the offloads of {interface} off and bring it up"), error))
}

/// Sends nothing by itself: no router solicitations, no duplicate-address detection, no link-local addresses, no
/// redirects. Forgets what TCP learned of a path with each connection. Loopback is up.
fn quiet(ipv6: bool) -> Result<(), LabError> {
    for place in ["all", "default"] {
        for (key, value) in [("rp_filter", "0"), ("accept_redirects", "0"), ("send_redirects", "0")] {
            set(&format!("ipv4/conf/{place}/{key}"), value)?;
        }
        for (key, value) in [
            ("accept_dad", "0"),
            ("dad_transmits", "0"),
            ("accept_ra", "0"),
            ("accept_redirects", "0"),
            ("router_solicitations", "0"),
            // No link-local addresses.
            ("addr_gen_mode", "1"),
            ("disable_ipv6", if ipv6 { "0" } else { "1" }),
        ] {
            // A kernel without IPv6 has no such setting, and is quiet. Adding an address will tell.
            let _ = set(&format!("ipv6/conf/{place}/{key}"), value);
        }
    }
    set("ipv4/tcp_no_metrics_save", "1")?;
    bring_up("lo").map_err(|error| LabError::system("bring lo up", error))
}

/// Sets a setting of the namespace that the thread is in.
pub(crate) fn set(key: &str, value: &str) -> Result<(), LabError> {
    let path = format!("/proc/sys/net/{key}");
    fs::write(&path, value).map_err(|error| LabError::system(format!("write {value} to {path}"), error))
}

/// The next hop's Ethernet address and the own one, from a node towards another.
pub(crate) fn next_hop(network: &Network, from: NodeIndex, to: NodeIndex) -> Option<(MacAddress, MacAddress)> {
    let (hop, _) = *Routes::new(network).all(from, to).first()?;
    Some((network.mac(PortPlace { node: from, port: hop.port }), network.mac(hop.to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_simulator_does_is_refused() {
        let told = |link: &str, more: &str| {
            let text = format!(
                "name = \"n\"\nduration = \"9s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n{link}\n{more}"
            );
            let read = weftwire_network::read("n.toml", &text, &[], &|_| Err(std::io::Error::other("no files").into()));
            refuse_simulated(&read.network.expect("it is valid")).map_err(|error| error.to_string())
        };
        let traffic = "[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
        let queue = "queue = { priority = true, discipline = \"step\" }";
        assert_eq!(told(queue, traffic), Ok(()));
        let pauses = [
            told("pause = { xoff = \"9kB\" }", ""),
            told("", "[[changes]]\nat = \"1s\"\nlink = \"l\"\npause = { xoff = \"9kB\" }\n"),
        ];
        for pause in pauses {
            assert!(pause.is_err_and(|error| error.starts_with("`pause` of links")));
        }
        let marked = told("", &format!("{traffic}dscp = 46\n"));
        assert!(marked.is_err_and(|error| error.starts_with("the `dscp` of traffic `t`")));
    }
}
