//! A network as a picture: nodes as far from each other as there are links between them, links as thick as they are
//! busy. The same network gives the same picture.
//!
//! The layout minimises stress by majorization (Gansner, Koren, North 2004): the distance on paper of any two nodes
//! should be that in the graph, near ones counting most.

mod labels;
mod large;

use labels::Area;
use std::collections::VecDeque;
use std::fmt::Write as _;
use weftwire_draw::Unit;
use weftwire_draw::chart::clip;
use weftwire_draw::escape_markup;
use weftwire_network::Network;
use weftwire_network::link::Rate;
use weftwire_network::model::{Link, LinkIndex, Node, NodeKind};

/// Networks with more nodes have dots instead of boxes.
pub(super) const MOST_BOXES: usize = 60;
/// Steps of the layout, and how often a pair of nodes may be looked at in all of them.
const MOST_STEPS: usize = 800;
const MOST_LOOKS: usize = 30_000_000;
/// Pixels between neighbours, if there is room.
const STEP: f64 = 185.0;
/// Pixels to stay within before boxes are pushed apart.
const MOST_WIDTH: f64 = 900.0;
const MOST_HEIGHT: f64 = 560.0;
/// Least space between boxes.
const GAP: f64 = 16.0;
const BOX_HEIGHT: f64 = 38.0;
const MARGIN: f64 = 16.0;
/// Letters of a node's name.
const LONGEST_NAME: usize = 18;
/// Links are labelled if neighbours are at least this far apart.
const LABEL_STEP: f64 = 150.0;

/// Draws a network; `None` if it is too large. `utilisation` tells the share of time in which a direction of a link was busy.
pub(super) fn picture(network: &Network, utilisation: &dyn Fn(LinkIndex, usize) -> Option<f64>) -> Option<String> {
    match network.nodes.len() > MOST_BOXES {
        true => large::picture(network, utilisation),
        false => Some(boxes(network, utilisation)),
    }
}

/// Draws a network of a few nodes.
fn boxes(network: &Network, utilisation: &dyn Fn(LinkIndex, usize) -> Option<f64>) -> String {
    let sizes: Vec<(f64, f64)> = network.nodes.iter().map(|node| (box_width(node), BOX_HEIGHT)).collect();
    let (mut places, step) = layout(network);
    push_apart(&mut places, &sizes);
    let (width, height) = frame(&mut places, &sizes);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft-network\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>The network</title>\n"
    );
    let mut labels: Vec<(Place, Place, String)> = Vec::new();
    for (index, link) in network.links() {
        let [a, b] = link.ends.map(|end| end.node.0 as usize);
        let (Some(from), Some(to)) = (places.get(a).copied(), places.get(b).copied()) else { continue };
        // Links between the same nodes lie beside each other.
        let pair = |other: &Link| {
            let [c, d] = other.ends.map(|end| end.node.0 as usize);
            (c.min(d), c.max(d)) == (a.min(b), a.max(b))
        };
        let before = network.links[..index.0 as usize].iter().filter(|other| pair(other)).count();
        let aside = before as f64 * 14.0;
        for (direction, ends) in [(0, (from, to)), (1, (to, from))] {
            let names = if direction == 0 { [a, b] } else { [b, a] }.map(|node| network.nodes[node].name.as_str());
            let aside = if direction == 0 { 3.0 + aside } else { 3.0 - aside };
            wire(&mut out, ends, aside, names, &about(link), utilisation(index, direction));
        }
        let text = about(link);
        if step >= LABEL_STEP && !text.is_empty() {
            labels.push((from, to, text));
        }
    }
    let nodes = places.iter().zip(&sizes);
    let mut taken: Vec<Area> =
        nodes.map(|(place, (width, height))| Area::new(*place, (width + 4.0, height + 4.0))).collect();
    let found = labels::places(&mut taken, &labels, width);
    for ((x, y), text) in found.iter().zip(&labels).filter_map(|(place, (.., text))| Some((place.as_ref()?, text))) {
        let _ = writeln!(out, "<text class=\"about\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape_markup(text));
    }
    for (node, ((x, y), (width, height))) in network.nodes.iter().zip(places.iter().zip(&sizes)) {
        let class = match node.kind {
            NodeKind::Function(_) => "node function",
            NodeKind::Router | NodeKind::Switch => "node plain",
            _ => "node",
        };
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"7\"/><text x=\"{x:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"kind\" x=\"{x:.1}\" y=\"{:.1}\">{}</text></g>",
            escape_markup(&node.name),
            x - width / 2.0,
            y - height / 2.0,
            y - 2.0,
            escape_markup(&clip(&node.name, LONGEST_NAME)),
            y + 12.0,
            escape_markup(&clip(&kind(node), LONGEST_NAME))
        );
    }
    out.push_str("</svg>\n");
    out
}

/// What a node is, in a word.
pub(super) fn kind(node: &Node) -> String {
    match &node.kind {
        NodeKind::Host { .. } => "host".to_owned(),
        NodeKind::Router => "router".to_owned(),
        NodeKind::Switch => "switch".to_owned(),
        NodeKind::Sink => "sink".to_owned(),
        NodeKind::Echo => "echo".to_owned(),
        NodeKind::Function(function) => {
            let file = function.image.rsplit('/').next().unwrap_or_default();
            file.split('.').next().unwrap_or_default().to_owned()
        }
    }
}

fn box_width(node: &Node) -> f64 {
    let letters = clip(&node.name, LONGEST_NAME).chars().count().max(clip(&kind(node), LONGEST_NAME).chars().count());
    (letters as f64 * 7.2 + 18.0).max(62.0)
}

/// Rate and delay of a link, both directions if they differ.
fn about(link: &Link) -> String {
    let rate = |direction: usize| match &link.directions[direction].rate {
        None => None,
        Some(Rate::Constant(rate)) => {
            Some(Unit::BitsPerSecond.text(*rate as f64).replace(".00 ", " ").replace(".0 ", " "))
        }
        Some(Rate::Trace(_)) => Some("varying rate".to_owned()),
    };
    let delay = |direction: usize| {
        let delay = link.directions[direction].delay;
        (!delay.is_zero())
            .then(|| Unit::Seconds.text(delay.as_nanos() as f64 / 1e9).replace(".00 ", " ").replace(".0 ", " "))
    };
    let both = |ends: [Option<String>; 2]| match ends {
        [there, back] if there == back => there,
        ends => Some(ends.map(|end| end.unwrap_or_else(|| "none".to_owned())).join(" / ")),
    };
    let parts = [both([rate(0), rate(1)]), both([delay(0), delay(1)])];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

type Place = (f64, f64);

/// One direction of a link: beside the line between both nodes, on the right as seen by its packets.
fn wire(out: &mut String, (from, to): (Place, Place), aside: f64, names: [&str; 2], about: &str, busy: Option<f64>) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1e-9);
    let (x, y) = (-dy / length * aside, dx / length * aside);
    let class = match busy.unwrap_or(0.0) {
        share if share >= 0.9 => "busy3",
        share if share >= 0.5 => "busy2",
        share if share > 0.0 => "busy1",
        _ => "idle",
    };
    let width = 1.2 + 4.3 * busy.unwrap_or(0.0).clamp(0.0, 1.0);
    let share = busy.map_or("no limit".to_owned(), |share| Unit::Share.text(share));
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    let _ = writeln!(
        out,
        "<path class=\"wire {class}\" stroke-width=\"{width:.1}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"><title>{} to {}{}: \
         {share}</title></path>",
        from.0 + x,
        from.1 + y,
        to.0 + x,
        to.1 + y,
        escape_markup(names[0]),
        escape_markup(names[1]),
        escape_markup(&about)
    );
}

/// Where nodes go, and the pixels between neighbours.
fn layout(network: &Network) -> (Vec<Place>, f64) {
    let count = network.nodes.len();
    let mut neighbours = vec![Vec::new(); count];
    for link in &network.links {
        let [a, b] = link.ends.map(|end| end.node.0 as usize);
        if a < count && b < count {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
    }
    stress(&neighbours, (MOST_WIDTH, MOST_HEIGHT), STEP)
}

/// Places for a graph by its neighbours, within so much room, neighbours at most so far apart; and how far they are.
fn stress(neighbours: &[Vec<usize>], room: (f64, f64), longest: f64) -> (Vec<Place>, f64) {
    let distances = distances(neighbours);
    let count = distances.len();
    let farthest =
        |from: usize| (0..count).max_by(|a, b| distances[from][*a].total_cmp(&distances[from][*b])).unwrap_or(0);
    if count == 0 {
        return (Vec::new(), longest.min(STEP));
    }
    // A first guess: along the longest way through the network, a little apart.
    let left = farthest(0);
    let right = farthest(left);
    let mut places: Vec<Place> = (0..count)
        .map(|node| {
            let angle = node as f64 * 2.399_963;
            ((distances[left][node] - distances[right][node]) / 2.0 + 0.1 * angle.cos(), 0.4 * angle.sin())
        })
        .collect();
    if count > MOST_BOXES {
        // Few steps are left for many nodes: the second direction is guessed as the first one is.
        let from_ends = |node: &usize| distances[left][*node].min(distances[right][*node]);
        let upper = (0..count).max_by(|a, b| from_ends(a).total_cmp(&from_ends(b))).unwrap_or(0);
        let lower = farthest(upper);
        for (node, place) in places.iter_mut().enumerate() {
            place.1 += (distances[upper][node] - distances[lower][node]) / 2.0;
        }
    }
    for _ in 0..(MOST_LOOKS / (count * count)).clamp(12, MOST_STEPS) {
        for node in 0..count {
            let (mut x, mut y, mut weights) = (0.0, 0.0, 0.0);
            for other in (0..count).filter(|other| *other != node) {
                let wanted = distances[node][other];
                let weight = wanted.powi(-2);
                let (dx, dy) = (places[node].0 - places[other].0, places[node].1 - places[other].1);
                let stretch = wanted / dx.hypot(dy).max(1e-6);
                x += weight * (places[other].0 + dx * stretch);
                y += weight * (places[other].1 + dy * stretch);
                weights += weight;
            }
            if weights > 0.0 {
                places[node] = (x / weights, y / weights);
            }
        }
    }
    level(&mut places);
    let extent = |of: fn(&Place) -> f64| {
        let (low, high) = places.iter().map(of).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        (high - low).max(1e-6)
    };
    let step = longest.min(room.0 / extent(|place| place.0)).min(room.1 / extent(|place| place.1));
    (places.into_iter().map(|(x, y)| (x * step, y * step)).collect(), step)
}

/// Links between any two nodes; parts that are not connected lie a little further apart than anything connected.
fn distances(neighbours: &[Vec<usize>]) -> Vec<Vec<f64>> {
    let count = neighbours.len();
    let from = |start: usize| {
        let mut found = vec![f64::INFINITY; count];
        found[start] = 0.0;
        let mut waiting = VecDeque::from([start]);
        while let Some(node) = waiting.pop_front() {
            for next in &neighbours[node] {
                if found[*next].is_infinite() {
                    found[*next] = found[node] + 1.0;
                    waiting.push_back(*next);
                }
            }
        }
        found
    };
    let mut all: Vec<Vec<f64>> = (0..count).map(from).collect();
    let apart = all.iter().flatten().copied().filter(|distance| distance.is_finite()).fold(0.0, f64::max) + 1.0;
    all.iter_mut().flatten().filter(|distance| distance.is_infinite()).for_each(|distance| *distance = apart);
    all
}

/// Turns the picture so that it is widest from left to right, with the first node on the left and in the upper half.
fn level(places: &mut [Place]) {
    let count = places.len() as f64;
    let middle = places.iter().fold((0.0, 0.0), |sum, place| (sum.0 + place.0 / count, sum.1 + place.1 / count));
    let centred = places.iter().map(|place| (place.0 - middle.0, place.1 - middle.1));
    let (xx, xy, yy) =
        centred.clone().fold((0.0, 0.0, 0.0), |sum, (x, y)| (sum.0 + x * x, sum.1 + x * y, sum.2 + y * y));
    let angle = 0.5 * (2.0_f64 * xy).atan2(xx - yy);
    let (sin, cos) = angle.sin_cos();
    let turned: Vec<Place> = centred.map(|(x, y)| (x * cos + y * sin, y * cos - x * sin)).collect();
    let first = turned.first().copied().unwrap_or_default();
    let sign = |value: f64| if value > 1e-9 { -1.0 } else { 1.0 };
    for (place, (x, y)) in places.iter_mut().zip(turned) {
        *place = (x * sign(first.0), y * sign(first.1));
    }
}

/// Moves boxes that overlap away from each other, the shorter way.
fn push_apart(places: &mut [Place], sizes: &[(f64, f64)]) {
    for _ in 0..200 {
        let mut moved = false;
        for a in 0..places.len() {
            for b in 0..a {
                let x = (sizes[a].0 + sizes[b].0) / 2.0 + GAP - (places[a].0 - places[b].0).abs();
                let y = (sizes[a].1 + sizes[b].1) / 2.0 + GAP - (places[a].1 - places[b].1).abs();
                if x <= 0.1 || y <= 0.1 {
                    continue;
                }
                moved = true;
                if x < y {
                    let push = if places[a].0 < places[b].0 { -x } else { x } / 2.0;
                    places[a].0 += push;
                    places[b].0 -= push;
                } else {
                    let push = if places[a].1 < places[b].1 { -y } else { y } / 2.0;
                    places[a].1 += push;
                    places[b].1 -= push;
                }
            }
        }
        if !moved {
            return;
        }
    }
}

/// Moves everything into the first quadrant; the picture's size.
fn frame(places: &mut [Place], sizes: &[(f64, f64)]) -> (f64, f64) {
    let mut ends = (f64::MAX, f64::MAX, f64::MIN, f64::MIN);
    for ((x, y), (width, height)) in places.iter().zip(sizes) {
        ends = (
            ends.0.min(x - width / 2.0),
            ends.1.min(y - height / 2.0),
            ends.2.max(x + width / 2.0),
            ends.3.max(y + height / 2.0),
        );
    }
    if places.is_empty() {
        return (2.0 * MARGIN, 2.0 * MARGIN);
    }
    for place in places {
        *place = (place.0 - ends.0 + MARGIN, place.1 - ends.1 + MARGIN);
    }
    (ends.2 - ends.0 + 2.0 * MARGIN, ends.3 - ends.1 + 2.0 * MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;
    use weftwire_core::Port;
    use weftwire_network::link::LinkSettings;
    use weftwire_network::model::{NodeIndex, PortPlace, Routing};

    /// Nodes, and links between them by number; nothing else of the network matters to the picture.
    fn network(nodes: usize, links: &[(u32, u32)]) -> Network {
        let node = |number: usize| Node {
            name: format!("n{number}"),
            kind: NodeKind::Router,
            ipv4: [10, 0, 0, number as u8].into(),
            ipv6: [0; 16].into(),
            ports: Vec::new(),
        };
        let place = |node| PortPlace { node: NodeIndex(node), port: Port(1) };
        let link = |(a, b): &(u32, u32)| Link {
            name: "wire <1>".into(),
            ends: [place(*a), place(*b)],
            directions: [
                LinkSettings { rate: Some(Rate::Constant(1_500_000)), ..LinkSettings::default() },
                LinkSettings { delay: Duration::from_millis(20), ..LinkSettings::default() },
            ],
            metric: 1,
            weight: 1,
        };
        Network {
            name: "t".into(),
            seed: 0,
            duration: Duration::from_nanos(1),
            sample_interval: Duration::from_nanos(1),
            probes: Vec::new(),
            warm_up: Duration::ZERO,
            repetitions: 1,
            nodes: (0..nodes).map(node).collect(),
            links: links.iter().map(link).collect(),
            traffic: Vec::new(),
            changes: Vec::new(),
            captures: Vec::new(),
            routing: Routing::default(),
        }
    }

    #[test]
    fn a_chain_lies_in_a_line_from_left_to_right() {
        let places = layout(&network(5, &[(0, 1), (1, 2), (2, 3), (3, 4)])).0;
        assert!(places.windows(2).all(|pair| pair[1].0 > pair[0].0 + STEP * 0.9), "{places:?}");
        assert!(places.iter().all(|place| (place.1 - places[0].1).abs() < STEP * 0.1), "{places:?}");
    }

    #[test]
    fn neighbours_lie_nearer_than_others() {
        // Two stars of four, joined at their middles.
        let places = layout(&network(8, &[(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (4, 7), (0, 4)])).0;
        let distance = |a: usize, b: usize| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
        for (leaf, other) in [(1, 5), (2, 6), (3, 7)] {
            assert!(distance(leaf, 0) < distance(leaf, 4) && distance(leaf, 4) < distance(leaf, other));
        }
    }

    #[test]
    fn links_say_rate_and_delay_of_both_directions_if_they_differ() {
        assert_eq!(about(&network(2, &[(0, 1)]).links[0]), "1.50 Mbit/s / none, none / 20 ms");
        let svg = picture(&network(2, &[(0, 1), (0, 1)]), &|_, direction| Some(direction as f64)).expect("a picture");
        assert_eq!((svg.matches("busy3").count(), svg.matches("idle").count()), (2, 2));
        assert_eq!(picture(&network(0, &[]), &|_, _| None).map(|svg| svg.matches("<rect").count()), Some(0));
    }

    proptest! {
        #[test]
        fn boxes_never_overlap_much(
            places in prop::collection::vec((0.0_f64..500.0, 0.0_f64..300.0), 0..12),
        ) {
            let mut places = places;
            let sizes = vec![(70.0, 38.0); places.len()];
            push_apart(&mut places, &sizes);
            for a in 0..places.len() {
                for b in 0..a {
                    let (x, y) = ((places[a].0 - places[b].0).abs(), (places[a].1 - places[b].1).abs());
                    prop_assert!(x >= 70.0 || y >= 38.0, "{:?} {:?}", places[a], places[b]);
                }
            }
        }
    }
}
