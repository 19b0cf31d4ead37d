//! Whether two runs are of one network at all.

use super::Sides;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_network::results::{LinkResult, Results};

/// How the networks of two runs stand to each other, as far as their results tell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Relation {
    /// The same links between the same ports, the same functions.
    #[default]
    Same,
    /// They share links, but not all: what differs, in sentences.
    Changed(Vec<String>),
    /// They share nothing.
    Unrelated,
}

/// Looks at links, rates and functions; of networks without links at who sends to whom.
pub(super) fn relation(results: Sides<&Results>) -> Relation {
    let links = results.map(|results| {
        let place = |row: &LinkResult| ((row.from.clone(), row.to.clone()), (row.link.clone(), row.rate));
        results.links.iter().map(place).collect::<BTreeMap<_, _>>()
    });
    let functions = results.map(|results| results.functions.iter().map(|(node, _)| node).collect::<BTreeSet<_>>());
    if links.iter().all(BTreeMap::is_empty) {
        let ends = results.map(|results| {
            results.flows.iter().map(|flow| (&flow.traffic, &flow.from, &flow.to)).collect::<BTreeSet<_>>()
        });
        // A side of which nothing is known is no other network.
        let apart = ends.iter().all(|ends| !ends.is_empty()) && ends[0].is_disjoint(&ends[1]);
        return if apart { Relation::Unrelated } else { Relation::Same };
    }
    let mut differences = Vec::new();
    for (side, name) in ["left", "right"].into_iter().enumerate() {
        for ((from, to), (link, _)) in &links[side] {
            if !links[1 - side].contains_key(&(from.clone(), to.clone())) {
                differences.push(format!("only the {name} run has the link `{link}` from {from} to {to}"));
            }
        }
        for node in functions[side].difference(&functions[1 - side]) {
            differences.push(format!("only the {name} run has a function on `{node}`"));
        }
    }
    let shared = links[0].iter().filter_map(|(place, left)| Some((place, left, links[1].get(place)?)));
    if shared.clone().count() == 0 {
        return Relation::Unrelated;
    }
    for ((from, to), (link, left), (_, right)) in shared {
        if left != right {
            let rate = |rate: &Option<u64>| rate.map_or("no constant rate".to_owned(), |rate| format!("{rate} bit/s"));
            differences.push(format!("`{link}` from {from} to {to} has {} and {}", rate(left), rate(right)));
        }
    }
    if differences.is_empty() { Relation::Same } else { Relation::Changed(differences) }
}
