//! Changes, faults and captures.

use super::names::matches;
use super::{Graph, MOST_CHANGES, Reader};
use crate::description::values::{Names, Word};
use crate::description::{self, Direction, Fault, FaultKind, File};
use crate::link::LinkSettings;
use crate::model::{Change, ChangeKind, FieldFault, LinkIndex, NodeIndex, NodeKind, PortPlace};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weftwire_core::format::builtin_formats;
use weftwire_core::{Port, Time};
use weftwire_text::{Diagnostic, Span};

const OF_FAULTS: [&str; 9] = ["for", "link", "direction", "field", "mask", "share", "node", "drift_ppm", "leap"];

impl Reader<'_> {
    /// Changes and faults by time; equal times in the order of the file, changes first.
    pub fn changes(&mut self, file: &File, graph: &Graph) -> Vec<Change> {
        let mut all = Vec::new();
        // Changes build on each other, so they are taken by time.
        let mut given: Vec<&description::Change> = file.changes.iter().flatten().collect();
        given.sort_by_key(|change| change.at.0);
        let mut settings: BTreeMap<(usize, usize), LinkSettings> = BTreeMap::new();
        for change in given {
            self.check_time(change.at.0, change.places.value("at"), graph);
            for link in graph.link_names.all_matching("link", &change.link, self.problems) {
                for direction in directions(change.direction) {
                    let current = || graph.links[link].directions[direction].clone();
                    let current = settings.entry((link, direction)).or_insert_with(current);
                    self.apply(&change.settings, current);
                    let settings = Box::new(current.clone());
                    let what = ChangeKind::Settings { link: LinkIndex(link as u32), direction, settings };
                    all.push(Change { at: change.at.time(), what });
                }
                if self.too_many(all.len(), change.places.span) {
                    return Vec::new();
                }
            }
        }
        for fault in file.faults.iter().flatten() {
            self.fault(fault, graph, &mut all);
            if self.too_many(all.len(), fault.places.span) {
                return Vec::new();
            }
        }
        all.sort_by_key(|change| change.at);
        all
    }

    fn too_many(&mut self, count: usize, span: Span) -> bool {
        if count > MOST_CHANGES {
            self.problems.error(span, format!("there are more than {MOST_CHANGES} changes of directions of links"));
        }
        count > MOST_CHANGES
    }

    fn check_time(&mut self, at: i64, span: Span, graph: &Graph) {
        if at >= graph.duration {
            self.problems.add(Diagnostic::warning(span, "this never happens: the run ends before"));
        }
    }

    fn fault(&mut self, fault: &Fault, graph: &Graph, all: &mut Vec<Change>) {
        let places = &fault.places;
        self.check_time(fault.at.0, places.value("at"), graph);
        let allowed: &[&str] = match fault.kind {
            FaultKind::LinkDown | FaultKind::Blackhole => &["for", "link", "direction"],
            FaultKind::CorruptField => &["for", "link", "direction", "field", "mask", "share"],
            FaultKind::NodeRestart => &["node"],
            FaultKind::Clock => &["for", "node", "drift_ppm", "leap"],
        };
        places.only(&format!("a fault of kind {}", fault.kind.word()), &OF_FAULTS, allowed, self.problems);
        let end = fault.r#for.map(|duration| fault.at.time().plus(duration.get()));
        if end == Some(fault.at.time()) {
            self.problems.error(places.value("for"), "a fault lasts longer than 0s");
        }
        match fault.kind {
            FaultKind::LinkDown | FaultKind::Blackhole | FaultKind::CorruptField => {
                let field = if fault.kind == FaultKind::CorruptField { self.field_fault(fault) } else { None };
                let Some(links) = self.fault_names(fault, "link", fault.link.as_ref(), graph) else { return };
                for link in links {
                    for direction in directions(fault.direction) {
                        let link = LinkIndex(link as u32);
                        let (begin, over) = match fault.kind {
                            FaultKind::LinkDown => {
                                (ChangeKind::Down { link, direction }, ChangeKind::Up { link, direction })
                            }
                            FaultKind::Blackhole => (
                                ChangeKind::Blackhole { link, direction, on: true },
                                ChangeKind::Blackhole { link, direction, on: false },
                            ),
                            _ => (
                                ChangeKind::CorruptField { link, direction, field: field.clone() },
                                ChangeKind::CorruptField { link, direction, field: None },
                            ),
                        };
                        all.push(Change { at: fault.at.time(), what: begin });
                        all.extend(end.map(|at| Change { at, what: over }));
                    }
                }
            }
            FaultKind::NodeRestart => {
                for node in self.fault_names(fault, "node", fault.node.as_ref(), graph).unwrap_or_default() {
                    all.push(Change {
                        at: fault.at.time(),
                        what: ChangeKind::Restart { node: NodeIndex(node as u32) },
                    });
                }
            }
            FaultKind::Clock => self.clock(fault, end, graph, all),
        }
    }

    fn fault_names(
        &mut self,
        fault: &Fault,
        what: &'static str,
        names: Option<&Names>,
        graph: &Graph,
    ) -> Option<Vec<usize>> {
        let Some(names) = names else {
            let help = format!("add `{what} = \"NAME\"`");
            self.problems.error_help(fault.places.span, format!("`{what}` is missing"), help);
            return None;
        };
        let index = if what == "link" { &graph.link_names } else { &graph.node_names };
        Some(index.all_matching(what, names, self.problems))
    }

    fn clock(&mut self, fault: &Fault, end: Option<Time>, graph: &Graph, all: &mut Vec<Change>) {
        let drift_ppm = fault.drift_ppm.unwrap_or(0);
        if !(-999_999..=1_000_000_000).contains(&drift_ppm) {
            let message = "`drift_ppm` must be above -1000000 and at most 1000000000";
            self.problems.error(fault.places.value("drift_ppm"), message);
        }
        if fault.drift_ppm.is_none() && fault.leap.is_none() {
            self.problems.error_help(fault.places.span, "this clock runs rightly", "add `drift_ppm` or `leap`");
        }
        let Some(nodes) = self.fault_names(fault, "node", fault.node.as_ref(), graph) else { return };
        for index in nodes {
            let found = &graph.nodes[index];
            if !matches!(found.kind, NodeKind::Function(_)) {
                let message = format!("`{}` runs no function, so it has no clock of its own", found.name);
                self.problems.error(fault.places.value("node"), message);
                return;
            }
            let node = NodeIndex(index as u32);
            let leap = fault.leap.map_or(Duration::ZERO, |leap| leap.get());
            all.push(Change { at: fault.at.time(), what: ChangeKind::Clock { node, drift_ppm, leap } });
            all.extend(
                end.map(|at| Change { at, what: ChangeKind::Clock { node, drift_ppm: 0, leap: Duration::ZERO } }),
            );
        }
    }

    fn field_fault(&mut self, fault: &Fault) -> Option<FieldFault> {
        let Some(word) = &fault.field else {
            let help = "add `field = \"tcp.sequence\"`";
            self.problems.error_help(fault.places.span, "`field` is missing", help);
            return None;
        };
        let formats = builtin_formats();
        let fields = || formats.iter().flat_map(|format| format.fields.iter().map(move |field| (format, field)));
        let named = fields().find(|(format, field)| {
            word.text.split_once('.').is_some_and(|(left, right)| left == format.name && right == field.name)
        });
        let Some((_, field)) = named else {
            let names: Vec<String> =
                fields().map(|(format, field)| format!("{}.{}", format.name, field.name)).collect();
            let error = Diagnostic::error(word.span, format!("there is no header field `{}`", word.text));
            let otherwise = "write FORMAT.FIELD, such as tcp.sequence or ipv4.ttl".to_owned();
            self.problems.misnamed(error, &word.text, names.iter().map(String::as_str), Some(otherwise));
            return None;
        };
        let mask = fault.mask.unwrap_or(1);
        if mask == 0 || (field.width < 64 && mask >> field.width != 0) {
            let message = format!("the mask must be above 0 and within the {} bits of the field", field.width);
            self.problems.error(fault.places.value("mask"), message);
        }
        let share = fault.share.map_or(1.0, |share| share.0);
        let share_millionths = (share * 1e6).round() as u32;
        Some(FieldFault { field: word.text.clone(), mask, share_millionths })
    }

    /// Ports to capture at, each once.
    pub fn captures(&mut self, record: &Names, graph: &Graph) -> Vec<PortPlace> {
        let mut places = BTreeSet::new();
        for word in &record.0 {
            let (node, port) = word.text.split_once(':').unwrap_or((&word.text, "*"));
            let node = Word { text: node.to_owned(), span: word.span };
            let nodes = graph.node_names.matching("node", &node, self.problems);
            let before = places.len();
            let mut found = false;
            for index in &nodes {
                for number in 1..=graph.nodes[*index].ports.len() {
                    if port == "*" || matches(port, &number.to_string()) {
                        found = true;
                        places.insert(PortPlace { node: NodeIndex(*index as u32), port: Port(number as u16) });
                    }
                }
            }
            if !found && places.len() == before && !nodes.is_empty() {
                let message = format!("`{}` is not the place of a port", word.text);
                self.problems.error_help(word.span, message, "write NODE, or NODE:PORT with a port that has a link");
            }
        }
        places.into_iter().collect()
    }
}

fn directions(direction: Option<Direction>) -> std::ops::Range<usize> {
    match direction.unwrap_or(Direction::Both) {
        Direction::Forward => 0..1,
        Direction::Backward => 1..2,
        Direction::Both => 0..2,
    }
}
