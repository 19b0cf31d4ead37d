//! A layered layout in the manner of Sugiyama: arrows are labelled, and each label is a box of its own between the
//! layers of its two ends, so that nothing overlaps whatever the machine.

use std::collections::BTreeMap;

/// Space between layers.
const LAYER_GAP: f64 = 26.0;
/// Space between neighbours in a layer.
const ITEM_GAP: f64 = 22.0;
/// Passes over all layers, for the order and for the coordinates.
const SWEEPS: usize = 24;

/// The space something needs around its anchor: to the left and right of it, and its whole height.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
}

/// A node to place.
pub(super) struct Node {
    /// The space it needs.
    pub(super) extent: Extent,
    /// The part of its width, around the anchor, on which wires may end.
    pub(super) port_width: f64,
    /// The height of the box at which wires end.
    pub(super) box_height: f64,
}

/// An arrow between two different nodes.
pub(super) struct Wire {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The label hangs on the arrow, whose line is the label's anchor.
    pub(super) label: Extent,
}

/// Where everything came to lie. Coordinates grow right and down from 0.
pub(super) struct Placement {
    /// Anchor and vertical middle of each node.
    pub(super) nodes: Vec<(f64, f64)>,
    /// The points of each wire, from its `from` to its `to`: pairs of points that are joined by a straight line,
    /// with curves between the pairs.
    pub(super) wires: Vec<Vec<(f64, f64)>>,
    /// Anchor and vertical middle of each wire's label.
    pub(super) labels: Vec<(f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A node, or a piece of a wire that crosses a layer.
struct Item {
    extent: Extent,
    above: Vec<usize>,
    below: Vec<usize>,
    /// The wire it is a piece of. The pieces of a wire are kept in one line.
    wire: Option<usize>,
}

/// Places nodes and wires.
pub(super) fn place(nodes: &[Node], wires: &[Wire]) -> Placement {
    let reversed = back_wires(nodes.len(), wires);
    let ends = |index: usize| match reversed[index] {
        true => (wires[index].to, wires[index].from),
        false => (wires[index].from, wires[index].to),
    };
    let downward: Vec<(usize, usize)> = (0..wires.len()).map(ends).collect();
    let ranks = ranks(nodes.len(), &downward);

    // Nodes lie in the even layers, labels in the odd ones.
    let mut items: Vec<Item> = nodes
        .iter()
        .map(|node| Item { extent: node.extent, above: Vec::new(), below: Vec::new(), wire: None })
        .collect();
    let count = ranks.iter().max().map_or(0, |last| 2 * last + 1);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (node, rank) in ranks.iter().enumerate() {
        layers[2 * rank].push(node);
    }
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut label_items = Vec::new();
    for (wire, (upper, lower)) in wires.iter().zip(&downward) {
        let (first, last) = (2 * ranks[*upper] + 1, 2 * ranks[*lower] - 1);
        let middle = (first + last) / 2;
        let label_layer = if middle % 2 == 1 { middle } else { middle + 1 };
        let mut chain = Vec::new();
        let mut before = *upper;
        for (layer, members) in layers.iter_mut().enumerate().take(last + 1).skip(first) {
            let extent = match layer == label_layer {
                true => wire.label,
                false => Extent { left: 2.0, right: 2.0, height: 0.0 },
            };
            let item = items.len();
            items.push(Item { extent, above: vec![before], below: Vec::new(), wire: Some(pieces.len()) });
            items[before].below.push(item);
            members.push(item);
            chain.push(item);
            before = item;
            if layer == label_layer {
                label_items.push(item);
            }
        }
        items[before].below.push(*lower);
        items[*lower].above.push(before);
        pieces.push(chain);
    }

    order(&items, &mut layers);
    let x = coordinates(&items, &layers, &pieces);
    let (y, tops, bottoms, height) = heights(&items, &layers);

    let ports = Ports::new(&items, &x, nodes);
    let paths = downward.iter().zip(&pieces).enumerate().map(|(index, ((upper, lower), chain))| {
        let (first, last) = (chain[0], chain[chain.len() - 1]);
        let out = (ports.x[&(*upper, first, false)], y[*upper] + nodes[*upper].box_height / 2.0);
        let into = (ports.x[&(*lower, last, true)], y[*lower] - nodes[*lower].box_height / 2.0);
        // A node may be lower than its layer: the wire runs straight to the layer's border first.
        let mut path = vec![out, (out.0, bottoms[2 * ranks[*upper]])];
        for (offset, item) in chain.iter().enumerate() {
            let layer = 2 * ranks[*upper] + 1 + offset;
            path.push((x[*item], tops[layer]));
            path.push((x[*item], bottoms[layer]));
        }
        path.extend([(into.0, tops[2 * ranks[*lower]]), into]);
        if reversed[index] {
            path.reverse();
        }
        path
    });
    let wires: Vec<Vec<(f64, f64)>> = paths.collect();
    let width = (0..items.len()).map(|item| x[item] + items[item].extent.right).fold(0.0, f64::max);
    Placement {
        nodes: (0..nodes.len()).map(|node| (x[node], y[node])).collect(),
        wires,
        labels: label_items.iter().map(|item| (x[*item], y[*item])).collect(),
        width,
        height,
    }
}

/// Which wires lead back to a node still open in a depth-first walk: turned round, the rest has no cycle.
fn back_wires(nodes: usize, wires: &[Wire]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; nodes];
    let mut reversed = vec![false; wires.len()];
    for root in 0..nodes {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            match wires.iter().enumerate().skip(next).find(|(_, wire)| wire.from == node) {
                None => marks[node] = Mark::Done,
                Some((index, wire)) => {
                    stack.push((node, index + 1));
                    match marks[wire.to] {
                        Mark::New => {
                            marks[wire.to] = Mark::Open;
                            stack.push((wire.to, 0));
                        }
                        Mark::Open => reversed[index] = true,
                        Mark::Done => {}
                    }
                }
            }
        }
    }
    reversed
}

/// The longest way down to each node.
fn ranks(nodes: usize, downward: &[(usize, usize)]) -> Vec<usize> {
    let mut ranks = vec![0; nodes];
    // Without cycles the longest way has fewer steps than there are nodes.
    for _ in 0..nodes {
        for (upper, lower) in downward {
            ranks[*lower] = ranks[*lower].max(ranks[*upper] + 1);
        }
    }
    ranks
}

/// Orders each layer by the mean place of its neighbours, again and again, and keeps the order with fewest crossings.
fn order(items: &[Item], layers: &mut Vec<Vec<usize>>) {
    let mut best = layers.clone();
    let mut fewest = crossings(items, layers);
    for sweep in 0..SWEEPS {
        let downwards = sweep % 2 == 0;
        let turn: Vec<usize> = if downwards { (1..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
        for layer in turn {
            let places = places(items.len(), layers);
            let key = |item: usize| {
                let neighbours = if downwards { &items[item].above } else { &items[item].below };
                match neighbours.is_empty() {
                    true => places[item],
                    false => neighbours.iter().map(|other| places[*other]).sum::<f64>() / neighbours.len() as f64,
                }
            };
            layers[layer].sort_by(|a, b| key(*a).total_cmp(&key(*b)));
        }
        let now = crossings(items, layers);
        if now < fewest {
            fewest = now;
            best.clone_from(layers);
        }
    }
    *layers = best;
}

/// Each item's place in its layer, from 0 to 1, so that layers of different sizes compare.
fn places(items: usize, layers: &[Vec<usize>]) -> Vec<f64> {
    let mut places = vec![0.0; items];
    for layer in layers {
        for (place, item) in layer.iter().enumerate() {
            places[*item] = (place as f64 + 0.5) / layer.len() as f64;
        }
    }
    places
}

fn crossings(items: &[Item], layers: &[Vec<usize>]) -> usize {
    let places = places(items.len(), layers);
    let mut count = 0;
    for layer in layers {
        let links: Vec<(f64, f64)> = layer
            .iter()
            .flat_map(|item| items[*item].below.iter().map(|other| (places[*item], places[*other])))
            .collect();
        for (index, (a, b)) in links.iter().enumerate() {
            count += links[index + 1..].iter().filter(|(c, d)| (a < c && b > d) || (a > c && b < d)).count();
        }
    }
    count
}

/// Horizontal anchors: each layer in turn as near to its neighbours as the widths allow.
fn coordinates(items: &[Item], layers: &[Vec<usize>], pieces: &[Vec<usize>]) -> Vec<f64> {
    let mut x = vec![0.0; items.len()];
    for layer in layers {
        let mut right = 0.0;
        for item in layer {
            x[*item] = right + items[*item].extent.left;
            right = x[*item] + items[*item].extent.right + ITEM_GAP;
        }
        // Start centred, so that the first passes do not lean to one side.
        let middle = (right - ITEM_GAP) / 2.0;
        layer.iter().for_each(|item| x[*item] -= middle);
    }
    for sweep in 0..2 * SWEEPS {
        let turn: Vec<usize> =
            if sweep % 2 == 0 { (0..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
        for layer in turn {
            let wishes: Vec<(f64, f64)> = layers[layer].iter().map(|item| wish(items, pieces, &x, *item)).collect();
            for (item, placed) in layers[layer].iter().zip(spread(items, &layers[layer], &wishes)) {
                x[*item] = placed;
            }
        }
    }
    let left = (0..items.len()).map(|item| x[item] - items[item].extent.left).fold(f64::INFINITY, f64::min);
    x.iter_mut().for_each(|value| *value -= left);
    x
}

/// Where an item wants to be, and how much: a node between its wires, a piece of a wire in line with the others and
/// between the wire's ends.
fn wish(items: &[Item], pieces: &[Vec<usize>], x: &[f64], item: usize) -> (f64, f64) {
    let mean = |over: &mut dyn Iterator<Item = &usize>| {
        let (sum, count) = over.fold((0.0, 0.0), |(sum, count), other| (sum + x[*other], count + 1.0));
        (count > 0.0).then(|| sum / count)
    };
    match items[item].wire {
        None => match mean(&mut items[item].above.iter().chain(&items[item].below)) {
            Some(target) => (target, 4.0),
            None => (x[item], 0.1),
        },
        Some(wire) => {
            let chain = &pieces[wire];
            let (first, last) = (chain[0], chain[chain.len() - 1]);
            let line = mean(&mut chain.iter()).unwrap_or(x[item]);
            let ends = mean(&mut items[first].above.iter().chain(&items[last].below)).unwrap_or(line);
            let straight = chain.len() as f64;
            ((ends + straight * line) / (1.0 + straight), if chain.len() > 1 { 40.0 } else { 1.0 })
        }
    }
}

/// The places nearest to the wishes (least squares) that keep order and distances: pool adjacent violators.
fn spread(items: &[Item], layer: &[usize], wishes: &[(f64, f64)]) -> Vec<f64> {
    // Subtracting the least distances from the left turns the question into one of a non-decreasing sequence.
    let mut offsets = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (index, item) in layer.iter().enumerate() {
        if index > 0 {
            offset += items[layer[index - 1]].extent.right + ITEM_GAP + items[*item].extent.left;
        }
        offsets.push(offset);
    }
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (offset, (target, weight)) in offsets.iter().zip(wishes) {
        let mut pool = (target - offset, *weight, 1);
        while let Some(last) = pools.pop_if(|last| last.0 > pool.0) {
            let weight = last.1 + pool.1;
            pool = ((last.0 * last.1 + pool.0 * pool.1) / weight, weight, last.2 + pool.2);
        }
        pools.push(pool);
    }
    let values = pools.into_iter().flat_map(|(value, _, count)| std::iter::repeat_n(value, count));
    values.zip(offsets).map(|(value, offset)| value + offset).collect()
}

/// Vertical middle of each item, top and bottom of each layer, and the whole height.
fn heights(items: &[Item], layers: &[Vec<usize>]) -> (Vec<f64>, Vec<f64>, Vec<f64>, f64) {
    let mut y = vec![0.0; items.len()];
    let (mut tops, mut bottoms) = (Vec::new(), Vec::new());
    let mut top = 0.0;
    for layer in layers {
        let height = layer.iter().map(|item| items[*item].extent.height).fold(0.0, f64::max);
        for item in layer {
            y[*item] = top + height / 2.0;
        }
        tops.push(top);
        bottoms.push(top + height);
        top += height + LAYER_GAP;
    }
    (y, tops, bottoms, (top - LAYER_GAP).max(0.0))
}

/// Where on a node's edge each wire ends, keyed by node, first piece of the wire, and whether it comes from above.
struct Ports {
    x: BTreeMap<(usize, usize, bool), f64>,
}

impl Ports {
    fn new(items: &[Item], x: &[f64], nodes: &[Node]) -> Ports {
        let mut ports = BTreeMap::new();
        for (node, Node { port_width: width, .. }) in nodes.iter().enumerate() {
            for (neighbours, above) in [(&items[node].above, true), (&items[node].below, false)] {
                let mut sorted = neighbours.clone();
                sorted.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
                let step = (width / sorted.len().max(1) as f64).min(26.0);
                for (place, other) in sorted.iter().enumerate() {
                    let shift = (place as f64 - (sorted.len() as f64 - 1.0) / 2.0) * step;
                    ports.insert((node, *other, above), x[node] + shift);
                }
            }
        }
        Ports { x: ports }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_overlaps_and_wires_end_at_their_nodes(
            ends in prop::collection::vec((0_usize..12, 0_usize..12, 20_u8..200, 10_u8..90), 0..30),
        ) {
            let extent = Extent { left: 50.0, right: 60.0, height: 38.0 };
            let nodes: Vec<Node> =
                (0..12).map(|_| Node { extent, port_width: 70.0, box_height: 38.0 }).collect();
            let wires: Vec<Wire> = ends
                .into_iter()
                .filter(|(from, to, ..)| from != to)
                .map(|(from, to, right, height)| Wire {
                    from,
                    to,
                    label: Extent { left: 4.0, right: f64::from(right), height: f64::from(height) },
                })
                .collect();
            let placement = place(&nodes, &wires);
            let mut boxes: Vec<((f64, f64), Extent)> =
                placement.nodes.iter().map(|place| (*place, extent)).collect();
            boxes.extend(placement.labels.iter().copied().zip(wires.iter().map(|wire| wire.label)));
            for (index, ((x, y), a)) in boxes.iter().enumerate() {
                prop_assert!(x - a.left >= -0.01 && x + a.right <= placement.width + 0.01);
                for ((other_x, other_y), b) in &boxes[index + 1..] {
                    let apart = x + a.right <= other_x - b.left + 0.01 || other_x + b.right <= x - a.left + 0.01;
                    let above = (y - other_y).abs() + 0.01 >= (a.height + b.height) / 2.0;
                    prop_assert!(apart || above, "{x} {y} {a:?} and {other_x} {other_y} {b:?}");
                }
            }
            for (wire, path) in wires.iter().zip(&placement.wires) {
                for (node, end) in [(wire.from, path.first()), (wire.to, path.last())] {
                    let (x, y) = placement.nodes[node];
                    let end = end.expect("a wire has points");
                    prop_assert!((end.0 - x).abs() <= 35.01 && ((end.1 - y).abs() - 19.0).abs() < 0.01);
                }
            }
        }
    }
}
