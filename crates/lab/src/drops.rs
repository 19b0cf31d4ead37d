//! Packets that nodes dropped, as results tell them. A kernel tells of those with a wrong checksum: what corruption on a
//! link comes to.

use crate::build::namespace_name;
use std::fs;
use weftwire_core::DropReason;
use weftwire_linux::namespace::NetworkNamespace;
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind};

/// All drops of nodes: those of the kernels of hosts and routers since their namespaces were made, and `others`, those of
/// other nodes. Node, reason and count, in the network's order.
pub(crate) fn named(network: &Network, mut others: Vec<(NodeIndex, &'static str, u64)>) -> Vec<(String, String, u64)> {
    let kernels = network.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::Host { .. } | NodeKind::Router));
    let counts = kernels.filter_map(|(index, node)| {
        let namespace = NetworkNamespace::open(&namespace_name(&network.name, &node.name)).ok()?;
        // A table that this kernel has not got counts nothing.
        let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        let count =
            namespace.run(|| in_pairs(&read("snmp")) + in_pairs(&read("netstat")) + in_list(&read("snmp6"))).ok()?;
        (count > 0).then_some((index, DropReason::BadChecksum.name(), count))
    });
    others.extend(counts);
    others.sort_unstable();
    let name =
        |(node, reason, count): (NodeIndex, &str, u64)| (network.node(node).name.clone(), reason.to_owned(), count);
    others.into_iter().map(name).collect()
}

/// `/proc/net/snmp`, `netstat`: a line of names, then one of numbers, both with the protocol in front.
fn in_pairs(table: &str) -> u64 {
    let lines: Vec<&str> = table.lines().collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| pair[0].split_whitespace().zip(pair[1].split_whitespace()));
    // Those of `Tcp` are of both families.
    pairs.filter(|(name, _)| *name == "InCsumErrors").filter_map(|(_, count)| count.parse::<u64>().ok()).sum()
}

/// `/proc/net/snmp6`: a name and a number a line.
fn in_list(table: &str) -> u64 {
    let lines = table.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let wrong = lines.filter(|(name, _)| name.ends_with("InCsumErrors"));
    wrong.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let snmp = "Ip: Forwarding InHdrErrors\nIp: 2 7\nTcp: InErrs InCsumErrors\nTcp: 9 3\nUdp: InCsumErrors MemErrors\nUdp: 4 0\n";
        assert_eq!(in_pairs(snmp), 7);
        assert_eq!(in_pairs("IpExt: InNoRoutes InCsumErrors\nIpExt: 1 2\n"), 2);
        assert_eq!(in_list("Udp6InErrors \t5\nUdp6InCsumErrors                \t6\nIcmp6InCsumErrors\t1\n"), 7);
        assert_eq!(in_pairs("") + in_list(""), 0);
    }
}
