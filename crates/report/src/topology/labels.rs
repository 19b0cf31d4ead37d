//! Where the labels of links go: near the middles of their links, over no node and over no other label.

use super::Place;

/// Pixels that a letter takes at most, and a line of them.
const LETTER: f64 = 6.2;
const LINE: f64 = 14.0;
/// Places along a link that are tried, in this order.
const ALONG: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78];
/// Pixels above and below the link that are tried: of a text's base line.
const ASIDE: [f64; 6] = [-9.0, 17.0, -28.0, 36.0, -42.0, 50.0];

/// A rectangle: its middle and half its sides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    middle: Place,
    half: (f64, f64),
}

impl Area {
    pub(super) fn new(middle: Place, size: (f64, f64)) -> Area {
        Area { middle, half: (size.0 / 2.0, size.1 / 2.0) }
    }

    pub(super) fn meets(&self, other: &Area) -> bool {
        (self.middle.0 - other.middle.0).abs() < self.half.0 + other.half.0
            && (self.middle.1 - other.middle.1).abs() < self.half.1 + other.half.1
    }

    fn within(&self, width: f64) -> bool {
        self.middle.0 - self.half.0 >= 0.0 && self.middle.0 + self.half.0 <= width && self.middle.1 >= self.half.1
    }
}

/// Places for labels of lines on a picture of this width, over none of the areas taken, which grow by those of the labels. A
/// label for which there is no room has no place. A place is the middle of a text's base line.
pub(super) fn places(taken: &mut Vec<Area>, lines: &[(Place, Place, String)], width: f64) -> Vec<Option<Place>> {
    let place = |(from, to, text): &(Place, Place, String)| {
        let size = (text.chars().count() as f64 * LETTER, LINE);
        let tried = ASIDE.iter().flat_map(|aside| ALONG.iter().map(move |along| (along, aside)));
        for (along, aside) in tried {
            let (x, y) = (from.0 + (to.0 - from.0) * along, from.1 + (to.1 - from.1) * along + aside);
            // Letters stand above their base line.
            let area = Area::new((x, y - 4.0), size);
            if area.within(width) && !taken.iter().any(|other| other.meets(&area)) {
                taken.push(area);
                return Some((x, y));
            }
        }
        None
    };
    lines.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_label_of_the_same_line_makes_room() {
        let line = ((100.0, 100.0), (300.0, 100.0), "10 Mbit/s, 5 ms".to_owned());
        let found = places(&mut Vec::new(), &[line.clone(), line], 400.0);
        assert_eq!(found[0], Some((200.0, 91.0)));
        assert_eq!(found[1], Some((200.0, 117.0)), "below");
    }

    proptest! {
        #[test]
        fn labels_meet_neither_nodes_nor_each_other(
            nodes in prop::collection::vec((50.0_f64..850.0, 30.0_f64..500.0), 2..20),
            ends in prop::collection::vec((0_usize..20, 0_usize..20), 1..30),
        ) {
            let mut taken: Vec<Area> = nodes.iter().map(|place| Area::new(*place, (70.0, 38.0))).collect();
            let before = taken.len();
            let at = |index: usize| nodes[index % nodes.len()];
            let lines: Vec<_> = ends.iter().map(|(a, b)| (at(*a), at(*b), "100 Mbit/s, 20 ms".to_owned())).collect();
            let found = places(&mut taken, &lines, 900.0);
            prop_assert_eq!(taken.len() - before, found.iter().flatten().count());
            for index in before..taken.len() {
                prop_assert!(taken[..index].iter().all(|other| !other.meets(&taken[index])));
            }
        }
    }
}
