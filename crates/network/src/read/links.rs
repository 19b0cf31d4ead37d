//! Links: those of the topology, those of the file, their names and ports.

use super::names::{Index, check_name};
use super::{MOST_LINKS, Reader};
use crate::description::{self, File};
use crate::link::LinkSettings;
use crate::model::{Link, LinkIndex, NodeIndex, PortPlace};
use crate::topology::{Made, Role};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::Port;
use weftwire_text::Span;

/// Ports of each node: the link and which of its ends.
type Ports = Vec<Vec<(LinkIndex, usize)>>;

/// An end of a link.
struct End {
    node: usize,
    /// As given.
    port: Option<u16>,
    span: Span,
}

/// A link without ports.
struct Draft {
    name: Option<String>,
    ends: [End; 2],
    settings: [LinkSettings; 2],
    cost: LinkCost,
}

/// What routing knows of a link.
#[derive(Clone, Copy)]
struct LinkCost {
    metric: u32,
    weight: u16,
}

impl Default for LinkCost {
    fn default() -> LinkCost {
        LinkCost { metric: 1, weight: 1 }
    }
}

impl Reader<'_> {
    /// All links, their names, and the ports they make; `None` if ports can't be given out.
    pub fn links(&mut self, made: &Made, file: &File, nodes: &Index) -> Option<(Vec<Link>, Index, Ports)> {
        let given = file.links.as_deref().unwrap_or_default();
        let most = made.links.len() + given.iter().filter(|link| link.between.is_some()).count();
        if most > MOST_LINKS {
            self.problems.error(file.places.value("links"), format!("there are more than {MOST_LINKS} links"));
            return None;
        }
        let mut drafts = self.made_links(made, file);
        let mut names = BTreeSet::new();
        names.extend(drafts.iter().filter_map(|draft| draft.name.clone()));
        let made_count = drafts.len();
        let mut sound = true;
        for link in given.iter().filter(|link| link.between.is_some()) {
            match self.draft(link, nodes, &mut names) {
                Some(draft) => drafts.push(draft),
                None => sound = false,
            }
        }
        let link_names = default_names(&mut drafts, &mut names, nodes);
        for link in given.iter().filter(|link| link.between.is_none()) {
            self.refine(link, &link_names, made_count, &mut drafts);
        }
        if !sound {
            return None;
        }
        let ports = self.ports(&drafts, nodes)?;
        let mut places = vec![[Port(0); 2]; drafts.len()];
        for node in &ports {
            for (number, (link, end)) in node.iter().enumerate() {
                places[link.0 as usize][*end] = Port(number as u16 + 1);
            }
        }
        let links = drafts.into_iter().zip(places).zip(&link_names.names).map(|((draft, ports), name)| Link {
            name: name.clone(),
            ends: [0, 1].map(|end| PortPlace { node: NodeIndex(draft.ends[end].node as u32), port: ports[end] }),
            directions: draft.settings,
            metric: draft.cost.metric,
            weight: draft.cost.weight,
        });
        Some((links.collect(), link_names, ports))
    }

    fn made_links(&mut self, made: &Made, file: &File) -> Vec<Draft> {
        let Some(topology) = &file.topology else { return Vec::new() };
        let mut settings = |from: &Option<description::LinkSettings>| {
            let (mut settings, mut cost) = ([LinkSettings::default(), LinkSettings::default()], LinkCost::default());
            if let Some(from) = from {
                self.apply_link(from, &mut settings);
                self.apply_cost(from, &mut cost);
            }
            (settings, cost)
        };
        let (access, bottleneck, core) =
            (settings(&topology.access), settings(&topology.bottleneck), settings(&topology.core));
        let span = topology.places.span;
        let draft = |link: &crate::topology::MadeLink| {
            let (settings, cost) = match link.role {
                Role::Access => access.clone(),
                Role::Bottleneck => bottleneck.clone(),
                Role::Core => core.clone(),
            };
            let ends = link.ends.map(|node| End { node, port: None, span });
            Draft { name: link.name.clone(), ends, settings, cost }
        };
        made.links.iter().map(draft).collect()
    }

    /// A link of the file.
    fn draft(&mut self, link: &description::Link, nodes: &Index, names: &mut BTreeSet<String>) -> Option<Draft> {
        let (mut settings, mut cost) = ([LinkSettings::default(), LinkSettings::default()], LinkCost::default());
        self.apply_link(&link.settings, &mut settings);
        self.apply_cost(&link.settings, &mut cost);
        let name = link.name.as_ref().map(|word| {
            check_name(word, "link", 65, self.problems);
            if !names.insert(word.text.clone()) {
                let help = "names are unique; to change a link that the topology made, leave out `between`";
                self.problems.error_help(word.span, format!("there is a link `{}` already", word.text), help);
            }
            word.text.clone()
        });
        let between = link.between.as_ref()?;
        let [from, to] = between.as_slice() else {
            let span = link.places.value("between");
            self.problems.error_help(span, "a link has two ends", "write between = [\"NODE\", \"NODE\"]");
            return None;
        };
        let mut end = |word: &description::values::Word| {
            let (node, port) = match word.text.split_once(':') {
                None => (word.text.as_str(), None),
                Some((node, port)) => {
                    let Some(port) = port.parse::<u16>().ok().filter(|port| *port > 0) else {
                        let help = "ports count from 1: write NODE or NODE:PORT";
                        self.problems.error_help(word.span, format!("`{port}` is not the number of a port"), help);
                        return None;
                    };
                    (node, Some(port))
                }
            };
            let Some(node) = nodes.get(node) else {
                let known = nodes.names.iter().map(String::as_str).take(1_000);
                self.problems.unknown(word.span, "node", node, known);
                return None;
            };
            Some(End { node, port, span: word.span })
        };
        let (Some(from), Some(to)) = (end(from), end(to)) else { return None };
        if from.node == to.node {
            let message = format!("the link joins `{}` to itself", nodes.names[to.node]);
            self.problems.error(to.span, message);
            return None;
        }
        Some(Draft { name, ends: [from, to], settings, cost })
    }

    /// More about links that the topology made.
    fn refine(&mut self, link: &description::Link, names: &Index, made: usize, drafts: &mut [Draft]) {
        let Some(pattern) = &link.name else {
            let help = "add `between = [\"NODE\", \"NODE\"]`";
            self.problems.error_help(link.places.span, "the link has neither ends nor the name of a made link", help);
            return;
        };
        let found = names.matching("link", pattern, self.problems);
        if found.iter().any(|index| *index >= made) {
            let help = "only links of the topology are changed so; say it at the link itself";
            self.problems.error_help(pattern.span, format!("`{}` is a link of this file", pattern.text), help);
        }
        for index in found.into_iter().filter(|index| *index < made) {
            self.apply_link(&link.settings, &mut drafts[index].settings);
            self.apply_cost(&link.settings, &mut drafts[index].cost);
        }
    }

    fn apply_cost(&mut self, from: &description::LinkSettings, to: &mut LinkCost) {
        if let Some(metric) = from.metric {
            to.metric = metric;
            if metric == 0 {
                self.problems.error(from.places.value("metric"), "`metric` must be at least 1");
            }
        }
        if let Some(weight) = from.weight {
            to.weight = weight;
            if !(1..=256).contains(&weight) {
                self.problems.error(from.places.value("weight"), "`weight` must be from 1 to 256");
            }
        }
    }

    /// Gives out ports: those asked for, the others in order; `None` if two are the same, or there are gaps.
    fn ports(&mut self, drafts: &[Draft], nodes: &Index) -> Option<Ports> {
        let mut counts = vec![0usize; nodes.names.len()];
        drafts.iter().flat_map(|draft| &draft.ends).for_each(|end| counts[end.node] += 1);
        let mut ports: Vec<Vec<Option<(LinkIndex, usize)>>> = counts.iter().map(|count| vec![None; *count]).collect();
        let mut sound = true;
        for (index, end_index, end) in ends(drafts) {
            let (name, count) = (&nodes.names[end.node], counts[end.node]);
            if count > usize::from(u16::MAX) {
                self.problems.error(end.span, format!("`{name}` has more than 65535 ports"));
                return None;
            }
            let Some(port) = end.port else { continue };
            match ports[end.node].get_mut(usize::from(port) - 1) {
                Some(slot @ None) => *slot = Some((index, end_index)),
                Some(Some(_)) => {
                    self.problems.error(end.span, format!("port {port} of `{name}` has a link already"));
                    sound = false;
                }
                None => {
                    let message = format!("port {port} of `{name}` would leave a gap: it has {count} links");
                    self.problems.error_help(end.span, message, "ports count from 1 without gaps");
                    sound = false;
                }
            }
        }
        if !sound {
            return None;
        }
        let mut next = vec![0; ports.len()];
        for (index, end_index, end) in ends(drafts).filter(|(.., end)| end.port.is_none()) {
            let (slots, next) = (&mut ports[end.node], &mut next[end.node]);
            while slots[*next].is_some() {
                *next += 1;
            }
            slots[*next] = Some((index, end_index));
        }
        Some(ports.into_iter().map(|slots| slots.into_iter().flatten().collect()).collect())
    }
}

fn ends(drafts: &[Draft]) -> impl Iterator<Item = (LinkIndex, usize, &End)> {
    drafts
        .iter()
        .enumerate()
        .flat_map(|(index, draft)| [0, 1].map(|end| (LinkIndex(index as u32), end, &draft.ends[end])))
}

/// Names those without: `A-B`, a number appended if that is taken.
fn default_names(drafts: &mut [Draft], taken: &mut BTreeSet<String>, nodes: &Index) -> Index {
    let mut index = Index::default();
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    for draft in drafts {
        let name = draft.name.take().unwrap_or_else(|| {
            let base = format!("{}-{}", nodes.names[draft.ends[0].node], nodes.names[draft.ends[1].node]);
            let mut name = base.clone();
            while !taken.insert(name.clone()) {
                let number = last.entry(base.clone()).or_insert(1);
                *number += 1;
                name = format!("{base}-{number}");
            }
            name
        });
        // A second link of a name given twice (an error already) is not found by it.
        if !index.add(&name) {
            index.names.push(name);
        }
    }
    index
}
