//! Faults as changes of a network, merged with those that it has already.
//!
//! Faults may overlap each other and the network's own: a link is up again only when the last fault that holds it down
//! is over, and has then the settings that it would have had without faults. The file's blocks know nothing of
//! each other, so overlapping faults are first cut into [`Block`]s that give this when each just begins and ends.

use super::{Fault, FaultKind, Impairment};
use std::collections::BTreeSet;
use std::time::Duration;
use weftwire_core::Time;
use weftwire_network::Network;
use weftwire_network::link::LinkSettings;
use weftwire_network::model::{Change, ChangeKind, FieldFault, LinkIndex, NodeIndex};

/// All changes of a network under faults: its own and theirs, by time; at one instant its own come first. Faults on links
/// and nodes that the network has not are left out.
pub fn expand(network: &Network, faults: &[Fault]) -> Vec<Change> {
    let mut changes = network.changes.clone();
    for block in blocks(network, faults) {
        block.changes(&mut changes);
    }
    // Stable: the network's own stay in front.
    changes.sort_by_key(|change| change.at);
    changes
}

/// A part of a fault that can stand in the file as it is, behind the file's own blocks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Block {
    pub at: Time,
    /// Zero: it does not end.
    pub lasts: Duration,
    pub what: BlockKind,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum BlockKind {
    /// These settings from now on. They differ from the network's own in these properties, or did so before.
    Settings {
        link: LinkIndex,
        direction: usize,
        settings: Box<LinkSettings>,
        properties: BTreeSet<Property>,
    },
    /// Of both directions, or of one.
    Down {
        link: LinkIndex,
        direction: Option<usize>,
    },
    Blackhole {
        link: LinkIndex,
        direction: usize,
    },
    Field {
        link: LinkIndex,
        direction: usize,
        field: FieldFault,
    },
    Restart {
        node: NodeIndex,
    },
    Clock {
        node: NodeIndex,
        drift_ppm: i64,
        leap: Duration,
    },
}

/// A property of a link that impairments change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Property {
    Loss,
    Delay,
    Reorder,
    Duplicate,
    Corrupt,
}

impl Block {
    fn changes(self, changes: &mut Vec<Change>) {
        let (at, end) = (self.at, self.at.plus(self.lasts));
        let mut push = |at, what| changes.push(Change { at, what });
        match self.what {
            BlockKind::Settings { link, direction, settings, .. } => {
                push(at, ChangeKind::Settings { link, direction, settings });
            }
            BlockKind::Down { link, direction } => {
                let directions = direction.map_or(0..2, |direction| direction..direction + 1);
                for direction in directions {
                    push(at, ChangeKind::Down { link, direction });
                    push(end, ChangeKind::Up { link, direction });
                }
            }
            BlockKind::Blackhole { link, direction } => {
                push(at, ChangeKind::Blackhole { link, direction, on: true });
                push(end, ChangeKind::Blackhole { link, direction, on: false });
            }
            BlockKind::Field { link, direction, field } => {
                push(at, ChangeKind::CorruptField { link, direction, field: Some(field) });
                push(end, ChangeKind::CorruptField { link, direction, field: None });
            }
            BlockKind::Restart { node } => push(at, ChangeKind::Restart { node }),
            BlockKind::Clock { node, drift_ppm, leap } => {
                push(at, ChangeKind::Clock { node, drift_ppm, leap });
                push(end, ChangeKind::Clock { node, drift_ppm: 0, leap: Duration::ZERO });
            }
        }
    }
}

/// The faults as blocks, by time.
pub(super) fn blocks(network: &Network, faults: &[Fault]) -> Vec<Block> {
    let faults: Vec<&Fault> = faults.iter().filter(|fault| fault.fits(network)).collect();
    let mut blocks = Vec::new();
    for (link, _) in network.links().filter(|(link, _)| faults.iter().any(|fault| fault.link() == Some(*link))) {
        down(network, &faults, link, &mut blocks);
        for direction in 0..2 {
            blackhole(network, &faults, link, direction, &mut blocks);
            field(network, &faults, link, direction, &mut blocks);
            settings(network, &faults, link, direction, &mut blocks);
        }
    }
    for (node, _) in network.nodes() {
        clock(network, &faults, node, &mut blocks);
        let restarts = faults.iter().filter(|fault| fault.what == FaultKind::Restart { node });
        blocks.extend(restarts.map(|fault| Block {
            at: fault.at,
            lasts: Duration::ZERO,
            what: BlockKind::Restart { node },
        }));
    }
    blocks.sort_by_key(|block| block.at);
    blocks
}

impl Fault {
    fn link(&self) -> Option<LinkIndex> {
        match self.what {
            FaultKind::LinkDown { link }
            | FaultKind::Blackhole { link, .. }
            | FaultKind::CorruptField { link, .. }
            | FaultKind::Impair { link, .. } => Some(link),
            FaultKind::Restart { .. } | FaultKind::Clock { .. } => None,
        }
    }
}

fn down(network: &Network, faults: &[&Fault], wanted: LinkIndex, blocks: &mut Vec<Block>) {
    let mine = faults.iter().filter(|fault| fault.what == FaultKind::LinkDown { link: wanted });
    let mine: Vec<_> = mine.map(|fault| (fault.at, fault.end(), ())).collect();
    let [forward, backward] = [0, 1].map(|way| {
        let own = network.changes.iter().filter_map(|change| match change.what {
            ChangeKind::Down { link, direction } if (link, direction) == (wanted, way) => Some((change.at, Some(()))),
            ChangeKind::Up { link, direction } if (link, direction) == (wanted, way) => Some((change.at, None)),
            _ => None,
        });
        pieces(mine.clone(), own.collect(), Time::ZERO.plus(network.duration))
    });
    let mut push = |pieces: Vec<Piece<()>>, direction| {
        blocks.extend(pieces.into_iter().map(|piece| piece.block(BlockKind::Down { link: wanted, direction })));
    };
    if forward == backward {
        push(forward, None);
    } else {
        push(forward, Some(0));
        push(backward, Some(1));
    }
}

fn blackhole(network: &Network, faults: &[&Fault], wanted: LinkIndex, way: usize, blocks: &mut Vec<Block>) {
    let kind = FaultKind::Blackhole { link: wanted, direction: way };
    let mine = faults.iter().filter(|fault| fault.what == kind);
    let own = network.changes.iter().filter_map(|change| match change.what {
        ChangeKind::Blackhole { link, direction, on } if (link, direction) == (wanted, way) => {
            Some((change.at, on.then_some(())))
        }
        _ => None,
    });
    for piece in pieces(
        mine.map(|fault| (fault.at, fault.end(), ())).collect(),
        own.collect(),
        Time::ZERO.plus(network.duration),
    ) {
        blocks.push(piece.block(BlockKind::Blackhole { link: wanted, direction: way }));
    }
}

fn field(network: &Network, faults: &[&Fault], wanted: LinkIndex, way: usize, blocks: &mut Vec<Block>) {
    let mine = faults.iter().filter_map(|fault| match &fault.what {
        FaultKind::CorruptField { link, direction, field } if (*link, *direction) == (wanted, way) => {
            Some((fault.at, fault.end(), field.clone()))
        }
        _ => None,
    });
    let own = network.changes.iter().filter_map(|change| match &change.what {
        ChangeKind::CorruptField { link, direction, field } if (*link, *direction) == (wanted, way) => {
            Some((change.at, field.clone()))
        }
        _ => None,
    });
    for piece in pieces(mine.collect(), own.collect(), Time::ZERO.plus(network.duration)) {
        let field = piece.value.clone();
        blocks.push(piece.block(BlockKind::Field { link: wanted, direction: way, field }));
    }
}

fn clock(network: &Network, faults: &[&Fault], wanted: NodeIndex, blocks: &mut Vec<Block>) {
    let leaps = |at: Time| {
        let leaps = faults.iter().filter_map(|fault| match fault.what {
            FaultKind::Clock { node, leap, .. } if node == wanted && fault.at == at => Some(leap),
            _ => None,
        });
        leaps.fold(Duration::ZERO, Duration::saturating_add)
    };
    let mine = faults.iter().filter_map(|fault| match fault.what {
        FaultKind::Clock { node, drift_ppm, .. } if node == wanted => Some((fault.at, fault.end(), drift_ppm)),
        _ => None,
    });
    let own = network.changes.iter().filter_map(|change| match change.what {
        ChangeKind::Clock { node, drift_ppm, .. } if node == wanted => {
            Some((change.at, (drift_ppm != 0).then_some(drift_ppm)))
        }
        _ => None,
    });
    for piece in pieces(mine.collect(), own.collect(), Time::ZERO.plus(network.duration)) {
        let (drift_ppm, leap) = (piece.value, leaps(piece.at));
        blocks.push(piece.block(BlockKind::Clock { node: wanted, drift_ppm, leap }));
    }
}

/// A time in which a value that faults want holds.
#[derive(Clone, PartialEq, Debug)]
struct Piece<T> {
    at: Time,
    end: Time,
    value: T,
}

impl<T> Piece<T> {
    fn block(self, what: BlockKind) -> Block {
        Block { at: self.at, lasts: Duration::from_nanos(self.end.since(self.at).unsigned_abs()), what }
    }
}

/// Cuts the times and values of `mine` so that each piece sets its value and clears it at its end, whatever `own` sets
/// and clears in between: at each instant holds the value of my time that began last; without one, the own value. As a
/// piece's end clears an own value too, a piece with the own value follows it.
fn pieces<T: Clone + PartialEq>(mine: Vec<(Time, Time, T)>, own: Vec<(Time, Option<T>)>, over: Time) -> Vec<Piece<T>> {
    let mine: Vec<_> = mine.into_iter().filter(|(at, end, _)| at < end).collect();
    let mut instants: BTreeSet<Time> = mine.iter().flat_map(|(at, end, _)| [*at, *end]).collect();
    instants.extend(own.iter().map(|(at, _)| *at));
    let instants: Vec<Time> = instants.into_iter().collect();
    let mut pieces: Vec<Piece<T>> = Vec::new();
    for (index, &at) in instants.iter().enumerate() {
        let end = instants.get(index + 1).copied().unwrap_or(over.max(at));
        let active = mine.iter().filter(|(from, to, _)| *from <= at && at < *to);
        let value = match active.max_by_key(|(from, ..)| *from) {
            Some((.., value)) => Some(value.clone()),
            // What a piece of mine has just cleared.
            None if pieces.last().is_some_and(|last| last.end == at) => {
                own.iter().rev().find(|(from, _)| *from <= at).and_then(|(_, value)| value.clone())
            }
            None => None,
        };
        let Some(value) = value.filter(|_| at < end) else { continue };
        match pieces.last_mut() {
            // Only an own change interrupts what goes on.
            Some(last) if last.end == at && last.value == value && own.iter().all(|(own, _)| *own != at) => {
                last.end = end;
            }
            _ => pieces.push(Piece { at, end, value }),
        }
    }
    pieces
}

/// The settings at each instant at which they change, from when the first impairment begins until the last one is over.
fn settings(network: &Network, faults: &[&Fault], wanted: LinkIndex, way: usize, blocks: &mut Vec<Block>) {
    let mine: Vec<(Time, Time, &Impairment)> = faults
        .iter()
        .filter_map(|fault| match &fault.what {
            FaultKind::Impair { link, direction, impairment } if (*link, *direction) == (wanted, way) => {
                Some((fault.at, fault.end(), impairment))
            }
            _ => None,
        })
        .filter(|(at, end, _)| at < end)
        .collect();
    let own: Vec<(Time, &LinkSettings)> = network
        .changes
        .iter()
        .filter_map(|change| match &change.what {
            ChangeKind::Settings { link, direction, settings } if (*link, *direction) == (wanted, way) => {
                Some((change.at, &**settings))
            }
            _ => None,
        })
        .collect();
    let properties: BTreeSet<Property> = mine.iter().map(|(.., impairment)| impairment.property()).collect();
    let mut instants: BTreeSet<Time> = mine.iter().flat_map(|(at, end, _)| [*at, *end]).collect();
    instants.extend(own.iter().map(|(at, _)| *at));
    let first = mine.iter().map(|(at, ..)| *at).min().unwrap_or(Time::MAX);
    let last = mine.iter().map(|(_, end, _)| *end).max().unwrap_or_default();
    for at in instants.into_iter().filter(|at| (first..=last).contains(at)) {
        let before = own.iter().rev().find(|(from, _)| *from <= at);
        let mut settings = before.map_or(&network.link(wanted).directions[way], |(_, settings)| settings).clone();
        for (.., impairment) in mine.iter().filter(|(from, to, _)| *from <= at && at < *to) {
            impairment.apply(&mut settings);
        }
        let settings = Box::new(settings);
        let what = BlockKind::Settings { link: wanted, direction: way, settings, properties: properties.clone() };
        blocks.push(Block { at, lasts: Duration::ZERO, what });
    }
}

impl Impairment {
    fn property(&self) -> Property {
        match self {
            Impairment::Loss(_) => Property::Loss,
            Impairment::Delay(_) => Property::Delay,
            Impairment::Reorder(..) => Property::Reorder,
            Impairment::Duplicate(_) => Property::Duplicate,
            Impairment::Corrupt(_) => Property::Corrupt,
        }
    }
}
