//! Networks, with the functions and captures that they name.

use crate::file::{self, Kind};
use crate::{Catalog, CatalogError, Compiling, Loaded, capture, summary};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_core::{LinkType, Time};
use weftwire_network::model::{FunctionNode, NodeIndex, NodeKind};
use weftwire_network::{Network, Reading};

/// What takes the place of a value in the file: a dotted path and the value.
pub type Change = (String, toml::Value);

/// Paths into the file and the values that each takes.
pub type Sweep = Vec<(String, Vec<toml::Value>)>;

/// The functions of a network's nodes.
pub type Functions = BTreeMap<NodeIndex, Loaded>;

/// What is to take the place of a value is not written as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write PATH=VALUE, e.g. links.uplink.rate=10Mbit/s or seed=7")]
pub struct NoChange;

/// Reads `PATH=VALUE`; the value as in the file, or plain text.
///
/// # Errors
/// It is written otherwise.
pub fn parse_change(text: &str) -> Result<Change, NoChange> {
    let Some((path, value)) = text.split_once('=').filter(|(path, _)| !path.is_empty()) else {
        return Err(NoChange);
    };
    Ok((path.trim().to_owned(), parse_value(value.trim())))
}

/// A value as TOML writes it; what is no TOML is a text.
pub fn parse_value(text: &str) -> toml::Value {
    let table: Result<toml::Table, _> = format!("value = {text}").parse();
    table.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

fn seed_change(seed: u64) -> Result<Change, CatalogError> {
    Ok(("seed".into(), toml::Value::Integer(i64::try_from(seed).map_err(|_| CatalogError::Seed)?)))
}

/// A network's file, and what is to be otherwise than it says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NetworkSource {
    /// The file.
    pub file: PathBuf,
    /// Other values.
    pub changes: Vec<Change>,
    /// Another seed.
    pub seed: Option<u64>,
    /// Another duration.
    pub duration: Option<Duration>,
}

impl From<&Path> for NetworkSource {
    fn from(file: &Path) -> NetworkSource {
        NetworkSource { file: file.to_owned(), ..NetworkSource::default() }
    }
}

/// A network's file, read.
#[derive(Clone)]
pub struct NetworkFile<'a> {
    catalog: Catalog<'a>,
    source: NetworkSource,
    text: String,
    /// The folder to which the file's names are relative.
    pub folder: PathBuf,
}

impl<'a> Catalog<'a> {
    /// Reads the text of a network's file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn network(&self, source: NetworkSource) -> Result<NetworkFile<'a>, CatalogError> {
        let text = file::text(&source.file, Kind::Network)?;
        let folder = source.file.parent().map(Path::to_owned).unwrap_or_default();
        Ok(NetworkFile { catalog: self.clone(), source, text, folder })
    }
}

impl NetworkFile<'_> {
    /// The file's text, as it is.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The network and its sweep, with `more` changes behind those of the source. Errors and warnings are reported.
    ///
    /// # Errors
    /// It is no network.
    pub fn network(&self, more: &[Change]) -> Result<(Network, Sweep), CatalogError> {
        let reading = self.read(more)?;
        (self.catalog.report)(&reading.diagnostics, &reading.sources);
        match reading.network {
            Some(network) => Ok((network, reading.sweep)),
            None => {
                let found = summary(&reading.diagnostics);
                Err(CatalogError::Wrong(format!("{}: {found}", self.source.file.display())))
            }
        }
    }

    /// The network of a point that was checked before, with another seed. Topologies and pairs that are drawn at random
    /// depend on it, so the file is read again.
    ///
    /// # Errors
    /// It is no network with that seed.
    pub fn reseeded(&self, more: &[Change], seed: u64) -> Result<Network, CatalogError> {
        let mut changes = more.to_vec();
        changes.push(seed_change(seed)?);
        let wrong = || CatalogError::NoNetwork { path: self.source.file.display().to_string(), seed };
        self.read(&changes)?.network.ok_or_else(wrong)
    }

    fn read(&self, more: &[Change]) -> Result<Reading, CatalogError> {
        let mut changes = self.source.changes.clone();
        if let Some(seed) = self.source.seed {
            changes.push(seed_change(seed)?);
        }
        if let Some(duration) = self.source.duration {
            changes.push(("duration".into(), toml::Value::String(format!("{}ns", duration.as_nanos()))));
        }
        changes.extend(more.iter().cloned());
        let load = |name: &str| file::load(&self.folder.join(name), Kind::Network);
        Ok(weftwire_network::read(&self.source.file.to_string_lossy(), &self.text, &changes, &load))
    }

    /// The functions of a network's nodes, loaded; rules are compiled as `compiling` says.
    ///
    /// # Errors
    /// One cannot be loaded.
    pub fn functions(&self, network: &Network, compiling: &Compiling) -> Result<Functions, CatalogError> {
        let mut functions = BTreeMap::new();
        // Many nodes may run the same function.
        let mut known: Vec<(&FunctionNode, Loaded)> = Vec::new();
        for (index, node) in network.nodes() {
            let NodeKind::Function(wanted) = &node.kind else { continue };
            let same = |other: &FunctionNode| {
                (&other.image, &other.format, &other.parameters) == (&wanted.image, &wanted.format, &wanted.parameters)
            };
            let loaded = match known.iter().find(|(other, _)| same(other)) {
                Some((_, loaded)) => loaded.clone(),
                None => {
                    let wrong = |error| CatalogError::Node { node: node.name.clone(), error: Box::new(error) };
                    let loaded = self.function(wanted, compiling).map_err(wrong)?;
                    known.push((wanted, loaded.clone()));
                    loaded
                }
            };
            functions.insert(index, loaded);
        }
        Ok(functions)
    }

    fn function(&self, wanted: &FunctionNode, compiling: &Compiling) -> Result<Loaded, CatalogError> {
        let file = self.folder.join(&wanted.image);
        if let Some(format) = &wanted.format {
            return self.catalog.switch(&[file], &[self.folder.join(format)], compiling);
        }
        let parameters: Vec<_> = wanted.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        self.catalog.machine(&file, &parameters)
    }

    /// The frames of a capture that traffic replays: nanoseconds after the first, and bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn capture(&self, name: &str) -> Result<Vec<(i64, Vec<u8>)>, CatalogError> {
        let (interfaces, records) = capture::read(&self.folder.join(name))?;
        let ethernet = |interface: usize| interfaces.get(interface).is_some_and(|it| it.link == LinkType::Ethernet);
        let mut frames: Vec<_> = records
            .into_iter()
            .filter(|record| ethernet(record.interface) && !capture::is_sent(record))
            .map(|record| (record.time, record.bytes))
            .collect();
        frames.sort_by_key(|(time, _)| *time);
        let first = frames.first().map_or(Time::ZERO, |(time, _)| *time);
        Ok(frames.into_iter().map(|(time, bytes)| (time.since(first), bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_toml_or_text() {
        assert_eq!(parse_change("seed=7"), Ok(("seed".into(), toml::Value::Integer(7))));
        assert_eq!(parse_change("links.a.rate = 10Mbit/s"), Ok(("links.a.rate".into(), "10Mbit/s".into())));
        assert_eq!(parse_change("links.a.loss=\"1%\""), Ok(("links.a.loss".into(), "1%".into())));
        assert!(parse_change("seed").is_err());
        assert!(parse_change("=7").is_err());
    }
}
