//! Packets that the nodes' kernels dropped because a checksum was wrong: what corruption on a link comes to.

use super::build::namespace_name;
use crate::namespace::NetworkNamespace;
use std::fs;
use weftwire_network::Network;
use weftwire_network::model::NodeKind;

/// The simulator's name of the reason.
pub(super) const BAD_CHECKSUM: &str = "bad_checksum";

/// What the kernels of hosts and routers dropped since their namespaces were made: node, reason and count, in the network's
/// order.
pub(super) fn of_kernels(network: &Network) -> Vec<(String, String, u64)> {
    let kernels = network.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::Host { .. } | NodeKind::Router));
    let count = |name: &str| {
        let namespace = NetworkNamespace::open(&namespace_name(&network.name, name)).ok()?;
        // A table that this kernel has not got counts nothing.
        let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        namespace.run(|| in_pairs(&read("snmp")) + in_pairs(&read("netstat")) + in_list(&read("snmp6"))).ok()
    };
    kernels
        .filter_map(|(_, node)| Some((node.name.clone(), BAD_CHECKSUM.to_owned(), count(&node.name)?)))
        .filter(|(_, _, count)| *count > 0)
        .collect()
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
