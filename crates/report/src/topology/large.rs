//! Networks of more nodes than fit as boxes: a dot a node, hosts in a fan around the node that they hang on.
//!
//! Networks in tiers, such as fat trees, stand in rows, hosts at the bottom; others as far apart as there are links between.

use super::{Place, frame, kind, stress};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use weftwire_draw::Unit;
use weftwire_draw::escape_markup;
use weftwire_network::Network;
use weftwire_network::model::{LinkIndex, NodeKind};

/// Dots and lines of a picture; hosts are left out if there are more.
const MOST_DRAWN: usize = 8_000;
/// No larger network is laid out.
const MOST_INNER: usize = 1_200;
/// Pixels of the picture, and between rows.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 620.0;
const ROW: f64 = 150.0;
/// From a node to the first of its hosts, between arcs of hosts, and between hosts.
const FIRST_ARC: f64 = 15.0;
const ARC: f64 = 8.0;
const BESIDE: f64 = 7.0;
/// Inner nodes have their names beside them up to so many.
const MOST_NAMES: usize = 40;

/// Draws a network; `None` if it is too large even so.
pub(super) fn picture(network: &Network, utilisation: &dyn Fn(LinkIndex, usize) -> Option<f64>) -> Option<String> {
    let shape = Shape::of(network);
    let inner = shape.inner.len();
    if inner > MOST_INNER || inner + shape.inner_links(network).count() > MOST_DRAWN {
        return None;
    }
    let with_hosts = network.nodes.len() + network.links.len() <= MOST_DRAWN;
    let mut places = shape.places(with_hosts);
    let mut dots: Vec<usize> = places.keys().copied().collect();
    let mut positions: Vec<Place> = dots.iter().map(|node| places[node]).collect();
    let (width, height) = frame(&mut positions, &vec![(14.0, 14.0); dots.len()]);
    places = dots.drain(..).zip(positions).collect();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft-network\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>The network</title>\n"
    );
    lines(&mut out, network, &places, utilisation);
    for (index, (x, y)) in &places {
        let node = &network.nodes[*index];
        let hosts = shape.hosts[*index].len();
        let class = match node.kind {
            NodeKind::Function(_) => "function",
            _ if shape.inner.contains(index) => "inner",
            _ => "outer",
        };
        let radius = if class == "outer" { 2.4 } else { 4.5 };
        let around = if hosts > 0 && !with_hosts { format!(", {hosts} hosts") } else { String::new() };
        let _ = writeln!(
            out,
            "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{}, {}{around}</title></circle>",
            escape_markup(&node.name),
            escape_markup(&kind(node))
        );
        if inner <= MOST_NAMES && shape.inner.contains(index) {
            let _ = writeln!(
                out,
                "<text class=\"about\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                y - 8.0,
                escape_markup(&node.name)
            );
        }
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// The links, a line for both directions with the colour of the busier: those with little to do in one path each.
fn lines(
    out: &mut String,
    network: &Network,
    places: &BTreeMap<usize, Place>,
    utilisation: &dyn Fn(LinkIndex, usize) -> Option<f64>,
) {
    let (mut quiet, mut busy) = ([String::new(), String::new()], String::new());
    for (index, link) in network.links() {
        let ends = link.ends.map(|end| places.get(&(end.node.0 as usize)));
        let [Some(from), Some(to)] = ends else { continue };
        let share = (0..2).filter_map(|direction| utilisation(index, direction)).fold(0.0, f64::max);
        let path = format!("M{:.1} {:.1}L{:.1} {:.1}", from.0, from.1, to.0, to.1);
        if share < 0.5 {
            quiet[usize::from(share > 0.0)].push_str(&path);
            continue;
        }
        let class = if share >= 0.9 { "busy3" } else { "busy2" };
        let _ = writeln!(
            busy,
            "<path class=\"wire {class}\" stroke-width=\"1.8\" d=\"{path}\"><title>{}: {}</title></path>",
            escape_markup(&link.name),
            Unit::Share.text(share)
        );
    }
    for (class, path) in ["idle", "busy1"].into_iter().zip(quiet).filter(|(_, path)| !path.is_empty()) {
        let _ = writeln!(out, "<path class=\"wire {class}\" stroke-width=\"0.7\" d=\"{path}\"/>");
    }
    out.push_str(&busy);
}

/// Which nodes are inside, and which hang on one of them.
struct Shape {
    neighbours: Vec<BTreeSet<usize>>,
    inner: BTreeSet<usize>,
    /// Of each node those that hang on it.
    hosts: Vec<Vec<usize>>,
}

impl Shape {
    fn of(network: &Network) -> Shape {
        let count = network.nodes.len();
        let mut neighbours = vec![BTreeSet::new(); count];
        for link in &network.links {
            let [a, b] = link.ends.map(|end| end.node.0 as usize);
            if a < count && b < count && a != b {
                neighbours[a].insert(b);
                neighbours[b].insert(a);
            }
        }
        let mut hosts = vec![Vec::new(); count];
        let mut inner = BTreeSet::new();
        for node in 0..count {
            let only = neighbours[node].first().filter(|_| neighbours[node].len() == 1);
            match only.filter(|other| neighbours[**other].len() > 1) {
                Some(other) => hosts[*other].push(node),
                None => _ = inner.insert(node),
            }
        }
        Shape { neighbours, inner, hosts }
    }

    fn inner_links<'a>(&'a self, network: &'a Network) -> impl Iterator<Item = LinkIndex> + 'a {
        let inside = |node: u32| self.inner.contains(&(node as usize));
        network.links().filter(move |(_, link)| link.ends.iter().all(|end| inside(end.node.0))).map(|(index, _)| index)
    }

    fn places(&self, with_hosts: bool) -> BTreeMap<usize, Place> {
        let (mut places, down) = match self.rows() {
            Some(rows) => (self.in_rows(&rows), true),
            None => (self.apart(), false),
        };
        if with_hosts {
            let mut fans = Vec::new();
            for node in &self.inner {
                let Some(at) = places.get(node) else { continue };
                let beside: Vec<Place> =
                    self.neighbours[*node].iter().filter_map(|other| places.get(other).copied()).collect();
                let direction = match (down, beside.len()) {
                    (true, _) => Some((0.0, 1.0)),
                    (false, 0) => None,
                    (false, count) => {
                        let count = count as f64;
                        let middle = beside
                            .iter()
                            .fold((0.0, 0.0), |sum, place| (sum.0 + place.0 / count, sum.1 + place.1 / count));
                        Some((at.0 - middle.0, at.1 - middle.1))
                    }
                };
                fans.extend(fan(*at, direction, &self.hosts[*node]));
            }
            places.extend(fans);
        }
        places
    }

    /// The inner nodes by how far they are from hosts, if each link leads from one row to the next.
    fn rows(&self) -> Option<Vec<Vec<usize>>> {
        let mut row: BTreeMap<usize, usize> = BTreeMap::new();
        let mut waiting: VecDeque<usize> =
            self.inner.iter().copied().filter(|node| !self.hosts[*node].is_empty()).collect();
        row.extend(waiting.iter().map(|node| (*node, 0)));
        while let Some(node) = waiting.pop_front() {
            let next = row[&node] + 1;
            for other in self.neighbours[node].iter().filter(|other| self.inner.contains(other)) {
                if !row.contains_key(other) {
                    row.insert(*other, next);
                    waiting.push_back(*other);
                }
            }
        }
        let last = *row.values().max()?;
        let inside = |node: &usize| self.neighbours[*node].iter().filter(|other| self.inner.contains(other));
        let in_tiers = self.inner.iter().all(|node| {
            row.get(node).is_some_and(|at| {
                inside(node).all(|other| row.get(other).is_some_and(|other| at.abs_diff(*other) == 1))
            })
        });
        (in_tiers && last > 0).then(|| {
            let mut rows = vec![Vec::new(); last + 1];
            row.iter().for_each(|(node, at)| rows[*at].push(*node));
            rows
        })
    }

    /// Row over row, each node over the middle of those that it has below.
    fn in_rows(&self, rows: &[Vec<usize>]) -> BTreeMap<usize, Place> {
        let mut places: BTreeMap<usize, Place> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            let mut order: Vec<(f64, usize)> = Vec::with_capacity(row.len());
            for node in row {
                let below: Vec<f64> =
                    self.neighbours[*node].iter().filter_map(|other| places.get(other).map(|place| place.0)).collect();
                order.push((weftwire_draw::statistics::mean(&below).unwrap_or(0.0), *node));
            }
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let step = WIDTH / row.len() as f64;
            let y = (rows.len() - 1 - number) as f64 * ROW;
            let placed = order.into_iter().enumerate();
            places.extend(placed.map(|(index, (_, node))| (node, ((index as f64 + 0.5) * step, y))));
        }
        places
    }

    /// As far apart as there are links between.
    fn apart(&self) -> BTreeMap<usize, Place> {
        let nodes: Vec<usize> = self.inner.iter().copied().collect();
        let numbers: BTreeMap<usize, usize> = nodes.iter().enumerate().map(|(number, node)| (*node, number)).collect();
        let inside =
            |node: &usize| self.neighbours[*node].iter().filter_map(|other| numbers.get(other).copied()).collect();
        let neighbours: Vec<Vec<usize>> = nodes.iter().map(inside).collect();
        let (places, _) = stress(&neighbours, (WIDTH, HEIGHT), f64::INFINITY);
        nodes.into_iter().zip(places).collect()
    }
}

/// Places for what hangs on a node: on arcs around it, away from its neighbours; all around if there are none.
fn fan(at: Place, direction: Option<Place>, hosts: &[usize]) -> Vec<(usize, Place)> {
    let (towards, spread) = match direction {
        Some((x, y)) => (y.atan2(x), 1.25),
        None => (0.0, std::f64::consts::PI),
    };
    let mut fan = Vec::with_capacity(hosts.len());
    let (mut left, mut radius) = (hosts, FIRST_ARC);
    while !left.is_empty() {
        let room = ((2.0 * spread * radius / BESIDE) as usize).clamp(1, left.len());
        let (now, rest) = left.split_at(room);
        let step = 2.0 * spread / room as f64;
        for (index, host) in now.iter().enumerate() {
            let angle = towards - spread + (index as f64 + 0.5) * step;
            fan.push((*host, (at.0 + radius * angle.cos(), at.1 + radius * angle.sin())));
        }
        (left, radius) = (rest, radius + ARC);
    }
    fan
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_network::read;

    fn network(topology: &str) -> Network {
        let text = format!("duration = \"1s\"\n[topology]\n{topology}\n");
        read("t.toml", &text, &[], &|_| Err(std::io::Error::other("no files").into())).network.expect("a valid network")
    }

    #[test]
    fn a_fat_tree_stands_in_rows_with_its_hosts_at_the_bottom() {
        let tree = network("kind = \"fat-tree\"\nk = 8");
        let shape = Shape::of(&tree);
        let rows = shape.rows().expect("tiers");
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 16]);
        let places = shape.places(true);
        assert_eq!(places.len(), 208);
        let height = |name: &str| {
            let node = tree.nodes.iter().position(|node| node.name == name).expect("it is there");
            places[&node].1
        };
        assert!(height("core1") < height("pod1-agg1") && height("pod1-agg1") < height("pod1-edge1"));
        assert!(height("pod1-edge1") < height("pod1-host1"));
        let svg = picture(&tree, &|link, _| Some(if link.0 == 0 { 0.95 } else { 0.1 })).expect("a picture");
        assert_eq!((svg.matches("<circle").count(), svg.matches("busy3").count()), (208, 1));
        assert!(svg.matches("<path").count() == 2 && !svg.contains("NaN"));
    }

    #[test]
    fn no_two_dots_of_a_star_lie_on_each_other() {
        let places = Shape::of(&network("kind = \"star\"\nleaves = 300")).places(true);
        let all: Vec<Place> = places.into_values().collect();
        assert_eq!(all.len(), 301);
        for (index, a) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|b| (a.0 - b.0).hypot(a.1 - b.1) > 4.0), "{a:?}");
        }
    }

    #[test]
    fn a_large_graph_has_a_picture_without_its_hosts_and_a_huge_one_none() {
        let graph = network("kind = \"as-graph\"\nnodes = 300\nhosts = 9000");
        let svg = picture(&graph, &|_, _| None).expect("a picture");
        assert!(svg.matches("<circle").count() == 300 && svg.contains(" hosts</title>") && !svg.contains("NaN"));
        assert!(picture(&network("kind = \"as-graph\"\nnodes = 3000"), &|_, _| None).is_none());
    }
}
