//! When routes change because links go down and up.

use crate::model::{ChangeKind, LinkIndex, Network};
use std::collections::BTreeMap;
use weftwire_core::{Time, nanoseconds};

/// Routes change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reroute {
    /// When, after the start.
    pub at: Time,
    /// Links that are routed round from now on (`true`), or used again.
    pub links: Vec<(LinkIndex, bool)>,
}

/// All changes of routes during a run, by time. A link of which a direction is down counts as down. It is routed round when
/// that has lasted for the network's convergence time, and used again when it has been up for as long. A black hole is
/// noticed by nobody.
pub fn reroutes(network: &Network) -> Vec<Reroute> {
    let Some(convergence) = network.routing.convergence else { return Vec::new() };
    let mut links: BTreeMap<LinkIndex, Outages> = BTreeMap::new();
    for change in &network.changes {
        let (link, direction, down) = match change.what {
            ChangeKind::Down { link, direction } => (link, direction, true),
            ChangeKind::Up { link, direction } => (link, direction, false),
            _ => continue,
        };
        links.entry(link).or_default().note(change.at.nanoseconds(), direction, down);
    }
    let mut by_time: BTreeMap<i64, Vec<(LinkIndex, bool)>> = BTreeMap::new();
    for (link, outages) in links {
        for (at, down) in outages.noticed(nanoseconds(convergence)) {
            by_time.entry(at).or_default().push((link, down));
        }
    }
    by_time.into_iter().map(|(at, links)| Reroute { at: Time::from_nanoseconds(at), links }).collect()
}

/// The outages of a link.
#[derive(Default)]
struct Outages {
    down: [bool; 2],
    /// When it went down, and up again, in turn.
    turns: Vec<i64>,
}

impl Outages {
    fn note(&mut self, at: i64, direction: usize, down: bool) {
        self.down[direction & 1] = down;
        let is_down = self.down != [false; 2];
        if is_down != (self.turns.len() % 2 == 1) {
            // What changes back within an instant has not changed.
            if self.turns.last() == Some(&at) {
                self.turns.pop();
            } else {
                self.turns.push(at);
            }
        }
    }

    /// What lasts longer than so long, each when it has.
    fn noticed(&self, convergence: i64) -> Vec<(i64, bool)> {
        let mut all = Vec::new();
        let mut noticed = false;
        for (number, at) in self.turns.iter().enumerate() {
            let down = number % 2 == 0;
            let lasts = self.turns.get(number + 1).map_or(i64::MAX, |next| next - at);
            if down != noticed && lasts > convergence {
                noticed = down;
                all.push((at.saturating_add(convergence), down));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_not_noticed() {
        let mut outages = Outages::default();
        for (at, direction, down) in [
            (10, 0, true),
            (15, 0, false),
            // Both directions, one after another.
            (100, 0, true),
            (105, 1, true),
            (130, 0, false),
            (140, 1, false),
            // Up for a moment only.
            (200, 1, true),
            (230, 1, false),
            (235, 1, true),
            (300, 1, false),
            (300, 1, true),
            (400, 1, false),
        ] {
            outages.note(at, direction, down);
        }
        assert_eq!(outages.noticed(10), [(110, true), (150, false), (210, true), (410, false)]);
        assert_eq!(outages.noticed(1_000), []);
        assert_eq!(outages.noticed(0)[..2], [(10, true), (15, false)]);
    }
}
