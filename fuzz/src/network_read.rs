//! What the fuzz target `network_read` does with its input. Panics if something that must always hold does not.

use weftwire_core::Time;
use weftwire_network::model::Network;
use weftwire_network::read;
use weftwire_network::routing::{Routes, reroutes};
use weftwire_text::Severity;

/// The input is a network's file, and every file that it names.
pub fn network_read(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let load = |_: &str| Ok(text.to_owned());
    let reading = read("network.toml", text, &[], &load);
    let failed = reading.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(failed, reading.network.is_none(), "there is a network, or an error that says why not");
    for found in &reading.diagnostics {
        assert!(!found.message.is_empty());
        assert!(found.span.start <= found.span.end);
        let _ = found.to_text(&reading.sources);
    }
    let Some(network) = reading.network else { return };
    for (index, link) in network.links() {
        for (end, place) in link.ends.iter().enumerate() {
            assert_eq!(network.node(place.node).ports[usize::from(place.port.0) - 1], (index, end));
        }
    }
    assert!(network.changes.is_sorted_by_key(|change| change.at));
    if network.nodes.len() < 50 {
        routes(&network);
    }
    // Each value of a sweep can be put where it belongs, whatever it says there.
    for (path, values) in reading.sweep {
        for value in values.into_iter().take(3) {
            let _ = read("network.toml", text, &[(path.clone(), value)], &load);
        }
    }
}

/// All next hops are neighbours, whatever links are down; and whoever has a way keeps having one.
fn routes(network: &Network) {
    let mut routes = Routes::new(network);
    let pairs = || network.nodes().flat_map(|(from, _)| network.nodes().map(move |(to, _)| (from, to)));
    let reached: Vec<bool> = pairs().map(|(from, to)| !routes.all(from, to).is_empty()).collect();
    for reroute in reroutes(network).into_iter().take(4) {
        assert!(reroute.at >= Time::ZERO && !reroute.links.is_empty());
        routes.reroute(&reroute.links);
        for ((from, to), reached) in pairs().zip(&reached) {
            let all = routes.all(from, to);
            assert_eq!(!all.is_empty(), *reached);
            for (hop, weight) in all {
                assert!(weight > 0 && routes.neighbours(from).contains(&hop));
            }
        }
    }
}
