//! Nodes and links made by a rule.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A rule with its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// `left1`.. and `right1`.. on the routers `west` and `east`, the link `bottleneck` between these.
    Dumbbell {
        /// Hosts on each side.
        pairs: u32,
    },
    /// Routers `r1`.. in a row, joined by the links `hop1`..; hosts `a` and `b` at its ends, and across hop `i` the
    /// hosts `from{i}` and `to{i}`.
    ParkingLot {
        /// Links in the row.
        hops: u32,
    },
    /// `a`, then routers `r1`.., then `b`.
    Chain {
        /// Routers.
        length: u32,
    },
    /// `leaf1`.. around the router `hub`.
    Star {
        /// Hosts.
        leaves: u32,
    },
    /// A folded Clos network of k-port routers (Al-Fares, Loukissas and Vahdat 2008): `core1`.., and in pod `p`
    /// `pod{p}-agg1`.., `pod{p}-edge1`.., `pod{p}-host1`.., k^3/4 hosts in all.
    FatTree {
        /// Ports of a router, even.
        k: u32,
    },
    /// Routers `as1`.. joined by preferential attachment (Barabasi and Albert 1999): each new one has links to so many
    /// others, the likelier the more links these have. Hosts `host1`.. are spread over the stubs: those without more.
    AsGraph {
        /// Routers.
        nodes: u32,
        /// Links of a new router.
        degree: u32,
        /// Hosts; `None`: one on each stub.
        hosts: Option<u32>,
        /// For the choices.
        seed: u64,
    },
}

/// What a link joins, and so which settings it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A host and a router.
    Access,
    /// Routers, over the scarce link.
    Bottleneck,
    /// Routers.
    Core,
}

/// A made node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeNode {
    /// Its name.
    pub name: String,
    /// A router, else a host.
    pub router: bool,
}

/// A made link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeLink {
    /// Its name, if not that of its ends.
    pub name: Option<String>,
    /// Indices of its ends among the made nodes.
    pub ends: [usize; 2],
    /// What it joins.
    pub role: Role,
}

/// What a rule made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Made {
    /// The nodes.
    pub nodes: Vec<MadeNode>,
    /// The links.
    pub links: Vec<MadeLink>,
}

impl Made {
    fn host(&mut self, name: String) -> usize {
        self.nodes.push(MadeNode { name, router: false });
        self.nodes.len() - 1
    }

    fn router(&mut self, name: String) -> usize {
        self.nodes.push(MadeNode { name, router: true });
        self.nodes.len() - 1
    }

    fn link(&mut self, from: usize, to: usize, role: Role) {
        self.links.push(MadeLink { name: None, ends: [from, to], role });
    }

    fn named_link(&mut self, name: String, from: usize, to: usize, role: Role) {
        self.links.push(MadeLink { name: Some(name), ends: [from, to], role });
    }
}

impl Shape {
    /// How many nodes it makes; saturating.
    pub fn node_count(self) -> u64 {
        match self {
            Shape::Dumbbell { pairs } => 2 * u64::from(pairs) + 2,
            Shape::ParkingLot { hops } => 3 * u64::from(hops) + 3,
            Shape::Chain { length } => u64::from(length) + 2,
            Shape::Star { leaves } => u64::from(leaves) + 1,
            Shape::FatTree { k } => {
                let k = u128::from(k);
                u64::try_from(k * k * k / 4 + k * k * 5 / 4).unwrap_or(u64::MAX)
            }
            // Each router may be a stub.
            Shape::AsGraph { nodes, hosts, .. } => u64::from(nodes) + u64::from(hosts.unwrap_or(nodes)),
        }
    }

    /// Makes the nodes and links.
    pub fn make(self) -> Made {
        let mut made = Made::default();
        match self {
            Shape::Dumbbell { pairs } => {
                let (west, east) = (made.router("west".into()), made.router("east".into()));
                made.named_link("bottleneck".into(), west, east, Role::Bottleneck);
                for (side, router) in [("left", west), ("right", east)] {
                    for number in 1..=pairs {
                        let host = made.host(format!("{side}{number}"));
                        made.link(host, router, Role::Access);
                    }
                }
            }
            Shape::ParkingLot { hops } => {
                let routers: Vec<usize> = (1..=hops + 1).map(|number| made.router(format!("r{number}"))).collect();
                for (index, pair) in routers.windows(2).enumerate() {
                    made.named_link(format!("hop{}", index + 1), pair[0], pair[1], Role::Bottleneck);
                }
                let attach = |made: &mut Made, name: String, router: usize| {
                    let host = made.host(name);
                    made.link(host, router, Role::Access);
                };
                attach(&mut made, "a".into(), routers[0]);
                attach(&mut made, "b".into(), routers[routers.len() - 1]);
                for (index, pair) in routers.windows(2).enumerate() {
                    attach(&mut made, format!("from{}", index + 1), pair[0]);
                    attach(&mut made, format!("to{}", index + 1), pair[1]);
                }
            }
            Shape::Chain { length } => {
                let mut last = made.host("a".into());
                for number in 1..=length {
                    let router = made.router(format!("r{number}"));
                    made.link(last, router, if number == 1 { Role::Access } else { Role::Core });
                    last = router;
                }
                let end = made.host("b".into());
                made.link(last, end, Role::Access);
            }
            Shape::Star { leaves } => {
                let hub = made.router("hub".into());
                for number in 1..=leaves {
                    let leaf = made.host(format!("leaf{number}"));
                    made.link(leaf, hub, Role::Access);
                }
            }
            Shape::FatTree { k } => fat_tree(&mut made, k as usize),
            Shape::AsGraph { nodes, degree, hosts, seed } => {
                as_graph(&mut made, nodes as usize, degree as usize, hosts.map(|hosts| hosts as usize), seed);
            }
        }
        made
    }
}

fn fat_tree(made: &mut Made, k: usize) {
    let half = k / 2;
    let cores: Vec<usize> = (1..=half * half).map(|number| made.router(format!("core{number}"))).collect();
    for pod in 1..=k {
        let aggregation: Vec<usize> = (1..=half).map(|number| made.router(format!("pod{pod}-agg{number}"))).collect();
        for (index, router) in aggregation.iter().enumerate() {
            for core in &cores[index * half..(index + 1) * half] {
                made.link(*router, *core, Role::Core);
            }
        }
        for edge_number in 0..half {
            let edge = made.router(format!("pod{pod}-edge{}", edge_number + 1));
            for router in &aggregation {
                made.link(edge, *router, Role::Core);
            }
            for number in 1..=half {
                let host = made.host(format!("pod{pod}-host{}", edge_number * half + number));
                made.link(host, edge, Role::Access);
            }
        }
    }
}

fn as_graph(made: &mut Made, nodes: usize, degree: usize, hosts: Option<usize>, seed: u64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut degrees = vec![0; nodes];
    // Each router as often as it has links: a uniform choice here prefers those with many.
    let mut ends = Vec::new();
    for new in 0..nodes {
        made.router(format!("as{}", new + 1));
        let mut chosen: Vec<usize> = Vec::with_capacity(degree);
        if (1..=degree).contains(&new) {
            // The first ones make a star, so that there is something to choose from.
            chosen.push(0);
        } else if new > degree {
            while chosen.len() < degree {
                let candidate = ends[below(&mut random, ends.len())];
                if !chosen.contains(&candidate) {
                    chosen.push(candidate);
                }
            }
        }
        for old in chosen {
            made.link(new, old, Role::Core);
            degrees[new] += 1;
            degrees[old] += 1;
            ends.extend([new, old]);
        }
    }
    let stubs: Vec<usize> = (0..nodes).filter(|node| degrees[*node] <= degree).collect();
    for number in 0..hosts.unwrap_or(stubs.len()) {
        let host = made.host(format!("host{}", number + 1));
        made.link(host, stubs[number % stubs.len()], Role::Access);
    }
}

/// A number from 0 to `bound - 1`, each equally likely but for 2^-64.
pub(crate) fn below(random: &mut Pcg64, bound: usize) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn degrees(made: &Made) -> Vec<usize> {
        let mut degrees = vec![0; made.nodes.len()];
        made.links.iter().flat_map(|link| link.ends).for_each(|end| degrees[end] += 1);
        degrees
    }

    /// All nodes are reached from the first, names are unique, no link joins a node to itself.
    fn sound(shape: Shape) -> Made {
        let made = shape.make();
        let mut neighbours: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for link in &made.links {
            let [a, b] = link.ends;
            assert_ne!(a, b);
            neighbours.entry(a).or_default().push(b);
            neighbours.entry(b).or_default().push(a);
        }
        let (mut seen, mut open) = (BTreeSet::from([0]), vec![0]);
        while let Some(node) = open.pop() {
            open.extend(neighbours[&node].iter().filter(|next| seen.insert(**next)));
        }
        assert_eq!(seen.len(), made.nodes.len(), "{shape:?}");
        let names: BTreeSet<&str> = made.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names.len(), made.nodes.len());
        for (node, degree) in made.nodes.iter().zip(degrees(&made)) {
            assert!(node.router || degree == 1, "a host has one link");
        }
        made
    }

    #[test]
    fn counts() {
        for (shape, nodes, links) in [
            (Shape::Dumbbell { pairs: 6 }, 14, 13),
            (Shape::ParkingLot { hops: 3 }, 12, 11),
            (Shape::Chain { length: 0 }, 2, 1),
            (Shape::Chain { length: 4 }, 6, 5),
            (Shape::Star { leaves: 5 }, 6, 5),
            (Shape::FatTree { k: 4 }, 16 + 20, 16 + 32),
            (Shape::AsGraph { nodes: 100, degree: 2, hosts: Some(40), seed: 1 }, 140, 2 + 97 * 2 + 40),
        ] {
            let made = sound(shape);
            assert_eq!((made.nodes.len(), made.links.len()), (nodes, links), "{shape:?}");
            assert_eq!(shape.node_count(), nodes as u64);
        }
    }

    #[test]
    fn every_router_of_a_fat_tree_has_k_links() {
        for k in [2, 4, 8] {
            let made = sound(Shape::FatTree { k });
            let hosts = made.nodes.iter().filter(|node| !node.router).count();
            assert_eq!(hosts, (k * k * k / 4) as usize);
            for (node, degree) in made.nodes.iter().zip(degrees(&made)) {
                assert_eq!(degree, if node.router { k as usize } else { 1 }, "{}", node.name);
            }
        }
    }

    #[test]
    fn an_as_graph_is_the_seeds_and_has_few_large_routers() {
        let shape = |seed| Shape::AsGraph { nodes: 1_000, degree: 2, hosts: None, seed };
        let made = sound(shape(1));
        assert_eq!(made, shape(1).make());
        assert_ne!(made, shape(2).make());
        let degrees = degrees(&made);
        let greatest = degrees[..1_000].iter().max().unwrap();
        assert!(*greatest > 40, "{greatest}: random graphs without preference hardly reach 15");
    }
}
