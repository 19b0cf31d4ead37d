//! The pictures of the gallery of transports. A page of `docs/gallery` says in a comment what the picture under it shows:
//!
//! | comment | picture |
//! |---|---|
//! | `<!-- picture: states of FILE.xl -->` | the states of a machine |
//! | `<!-- picture: MODULE.REGISTER of FILE.xl -->` | the phases that a module keeps in a register |
//! | `<!-- picture: CHART, CHART of FILE.toml -->` | a run of a network: `goodput`, `queue`, `times` (distributions), `segments`, or a register that it probes |
//! | `<!-- picture: packets of FILE.toml -->` | the first connection that passes the node where the network captures |

use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weftwire_catalog::{Catalog, Compiling, Functions, NetworkFile, NetworkSource};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, LinkType, Port, Ports, Time};
use weftwire_draw::alone;
use weftwire_draw::chart::{Chart, stack};
use weftwire_explain::{phases, states};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind, PortPlace};
use weftwire_network::results::Results;
use weftwire_report::{Observed, beside, connections, ladder, network as report};
use weftwire_sim::network::{Progress, Surroundings, simulate};

const PAGES: &str = "docs/gallery";
const PICTURES: &str = "docs/images/gallery";
const CATALOG: Catalog<'static> = Catalog { includes: Vec::new(), timers: None, report: &|_, _| {} };

/// What a picture shows, and of which file.
type Wanted = (Vec<String>, PathBuf);

/// All pictures: paths and contents.
pub fn pictures(root: &Path) -> Result<Vec<(String, String)>> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for page in files(&root.join(PAGES), "md")? {
        let text = std::fs::read_to_string(&page)?;
        for (line, (what, path)) in read(&text).with_context(|| page.display().to_string())? {
            let picture = format!("{PICTURES}/{}", line.rsplit('/').next().unwrap_or_default());
            let same = wanted.insert(picture.clone(), (what.clone(), path.clone())).is_none_or(|it| it == (what, path));
            ensure!(same, "{}: {picture} is another picture on another page", page.display());
        }
    }
    let known: BTreeSet<PathBuf> = wanted.keys().map(|picture| root.join(picture)).collect();
    if let Some(unused) = files(&root.join(PICTURES), "svg")?.iter().find(|file| !known.contains(*file)) {
        bail!("{}: no page of {PAGES} asks for it; remove it", unused.display());
    }
    let mut runs: BTreeMap<PathBuf, Run> = BTreeMap::new();
    let drawn = wanted.into_iter().map(|(picture, (what, file))| {
        let svg =
            draw(&root.join(&file), &what, &mut runs).with_context(|| format!("{picture}, of {}", file.display()))?;
        Ok((picture, svg))
    });
    drawn.collect()
}

fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|it| it == ending));
    files.sort();
    Ok(files)
}

/// What a page asks for, with the pictures' paths.
fn read(page: &str) -> Result<Vec<(String, Wanted)>> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(text) = line.strip_prefix("<!-- picture: ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let below = lines.next().unwrap_or_default();
        let path =
            below.strip_prefix("![").and_then(|rest| rest.strip_suffix(".svg)")?.rsplit_once("](")).map(|it| it.1);
        let path =
            path.ok_or_else(|| anyhow!("`{line}` wants a picture in the next line: ![what it shows](PATH.svg)"))?;
        let (what, file) = text
            .rsplit_once(" of ")
            .ok_or_else(|| anyhow!("`{line}` is to name a file: `<!-- picture: WHAT of FILE -->`"))?;
        found.push((format!("{path}.svg"), (what.split(", ").map(str::to_owned).collect(), PathBuf::from(file))));
    }
    Ok(found)
}

fn draw(file: &Path, what: &[String], runs: &mut BTreeMap<PathBuf, Run>) -> Result<String> {
    if file.extension().is_some_and(|it| it == "xl") {
        let [what] = what else { bail!("of a machine one thing is drawn: `states`, or MODULE.REGISTER") };
        return match what.split_once('.') {
            Some((module, register)) => {
                let found = CATALOG.phases(file, module, register);
                let found = found.with_context(|| format!("no module {module} sets `{register}` to constants"))?;
                Ok(phases(found).svg(module))
            }
            None if what == "states" => {
                let image = CATALOG.image(file)?;
                Ok(states(&image).svg(&image.name))
            }
            None => bail!("`{what}` is neither `states` nor MODULE.REGISTER"),
        };
    }
    if !runs.contains_key(file) {
        runs.insert(file.to_owned(), Run::of(file)?);
    }
    let run = &runs[file];
    if what == ["packets"] {
        return run.packets();
    }
    let mut charts: Vec<Chart> = Vec::new();
    for name in what {
        let results = &run.results;
        let more = match name.as_str() {
            "goodput" => beside::goodput(results).into_iter().collect(),
            "queue" => beside::queue(results).into_iter().collect(),
            "times" => beside::times(results).into_iter().collect(),
            "segments" => report::segments(results),
            register => beside::register(results, register).into_iter().collect::<Vec<Chart>>(),
        };
        ensure!(!more.is_empty(), "the run has no `{name}`");
        charts.extend(more);
    }
    Ok(alone(&stack(&charts)))
}

/// A run of a network, with what passed the ports where it captures.
struct Run {
    results: Results,
    name: String,
    frames: Vec<(Time, Port, Vec<u8>, bool)>,
}

impl Run {
    fn of(file: &Path) -> Result<Run> {
        let file = CATALOG.network(NetworkSource::from(file))?;
        let (network, _) = file.network(&[])?;
        let functions = file.functions(&network, &Compiling::default())?;
        let mut world = World { file: &file, network: &network, functions: &functions, frames: Vec::new() };
        let results = simulate(&network, &mut world)?;
        let frames = world.frames;
        let name = network.captures.first().map_or_else(String::new, |place| network.node(place.node).name.clone());
        Ok(Run { results, name, frames })
    }

    fn packets(&self) -> Result<String> {
        let observed: Vec<Observed<'_>> = self
            .frames
            .iter()
            .map(|(at, port, bytes, sent)| Observed {
                at: *at,
                port: *port,
                link: LinkType::Ethernet,
                inbound: Some(!sent),
                bytes,
            })
            .collect();
        let found = connections(&observed);
        Ok(alone(&ladder(found.first().context("no connection was captured; name a node in `record`")?, &self.name)))
    }
}

struct World<'a> {
    file: &'a NetworkFile<'a>,
    network: &'a Network,
    functions: &'a Functions,
    frames: Vec<(Time, Port, Vec<u8>, bool)>,
}

impl Surroundings for World<'_> {
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Box<dyn Function>> {
        let NodeKind::Function(wanted) = &self.network.node(node).kind else {
            return Err(io::Error::other("a node without a function asks for one"));
        };
        let loaded = self.functions.get(&node).ok_or_else(|| io::Error::other("a function was not loaded"))?;
        loaded.start(&wanted.engine, ports, seed, None).map_err(io::Error::other)
    }

    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        self.file.capture(file).map_err(io::Error::other)
    }

    fn frame(&mut self, at: Time, place: PortPlace, bytes: &[u8], sent: bool) -> io::Result<()> {
        self.frames.push((at, place.port, bytes.to_vec(), sent));
        Ok(())
    }

    fn trace(&mut self, _: NodeIndex, _: &TraceRecord) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_say_what_they_want() {
        let page = "# A page\n\n<!-- picture: window, queue of a/b.toml -->\n![A run](../images/gallery/run.svg)\n";
        let wanted = (vec!["window".to_owned(), "queue".to_owned()], PathBuf::from("a/b.toml"));
        assert_eq!(read(page).unwrap(), [("../images/gallery/run.svg".to_owned(), wanted)]);
        for wrong in [
            "<!-- picture: states of a.xl -->\n\n![A run](run.svg)\n",
            "<!-- picture: states -->\n![A run](run.svg)\n",
            "<!-- picture: states of a.xl -->\n![A run](run.png)\n",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
