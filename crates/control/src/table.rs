//! A switch's table as the controller has it, compiled: one thread keeps it, another one forwards by what it [shares](Shared).

use crate::protocol::{Entry, TableStart, TableUpdate};
pub use crate::rules::FieldOrder;
use crate::rules::{Forward, Rules};
pub use crate::shared::Shared;
use crate::wire::{self, WireError};
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;
use weftwire_core::Port;
use weftwire_route::MessageFilter;
use weftwire_subscribe::clauses::TooManyClauses;
use weftwire_subscribe::{Budget, Compiler, MessageFormats};
use weftwire_switch::RulesKeeper;

/// Most entries that a switch takes.
const MOST_ENTRIES: usize = 10_000_000;
/// After more changes than these, all is laid out anew: that takes less time than to carry each one over.
const MANY: usize = 200;

/// Why an update makes no sense to a table.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// More than a switch takes.
    #[error("the table has more than {MOST_ENTRIES} entries")]
    Large,
    /// No switch has so many ports.
    #[error("{0} is no number of a port")]
    Port(u32),
    /// What is to be forwarded is missing.
    #[error("an entry has no filter")]
    NoFilter,
    /// The filter cannot be read.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The filter cannot be compiled.
    #[error(transparent)]
    Filter(#[from] TooManyClauses),
    /// The two ends do not know the same table.
    #[error("an entry is removed that the table has not")]
    Missing,
    /// The two ends do not know the same table.
    #[error("an entry is added that the table has already")]
    Double,
}

/// Keeps a table by the controller's updates.
pub struct FollowedTable {
    formats: Arc<MessageFormats>,
    /// The ports that are here.
    here: BTreeSet<Port>,
    shared: Shared,
    rules: Rules,
    start: TableStart,
    revision: u64,
    pending: Pending,
}

/// Parts of an update that has not come whole.
#[derive(Debug, Default)]
struct Pending {
    start: Option<TableStart>,
    removed: BTreeSet<Forward>,
    added: BTreeSet<Forward>,
}

impl FollowedTable {
    /// An empty table of a switch with these ports.
    pub fn new(formats: Arc<MessageFormats>, order: FieldOrder, here: impl IntoIterator<Item = Port>) -> FollowedTable {
        let rules = Rules::new(formats.clone(), order);
        FollowedTable {
            shared: Shared::new(formats.clone(), RulesKeeper::new(rules.compiler())),
            formats,
            here: here.into_iter().collect(),
            rules,
            start: TableStart::default(),
            revision: 0,
            pending: Pending::default(),
        }
    }

    /// What compiling the table may cost, and one rule a small part of it. What costs more is held back.
    pub fn set_budget(&mut self, budget: Budget) {
        self.rules.set_budget(budget);
    }

    /// What packets are forwarded by.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The rules, compiled, without those that are held back.
    pub fn compiler(&self) -> &Compiler {
        self.rules.compiler()
    }

    /// The configuration that the table is of; empty before the first one.
    pub fn configuration(&self) -> &[u8] {
        &self.start.configuration
    }

    /// The change that the table is at.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Which ports the controller's network has here.
    pub fn start(&self) -> &TableStart {
        &self.start
    }

    /// The rules that it forwards by: which filters each port has. The logical up port's are those of the first port that it
    /// stands for.
    pub fn rules(&self) -> impl Iterator<Item = &(Port, MessageFilter)> {
        self.rules.compiled()
    }

    /// How many rules it forwards by.
    pub fn rule_count(&self) -> usize {
        self.rules.compiled().len()
    }

    /// The rules that are held back, as they are over the budget.
    pub fn held(&self) -> impl ExactSizeIterator<Item = &(Port, MessageFilter)> {
        self.rules.held()
    }

    /// How many rules are held back, and the first with its filter, the reason and what would help; `None`: it forwards by all.
    pub fn refusal(&self) -> Option<String> {
        self.rules.refusal()
    }

    /// Forgets parts that have come, as the connection was lost.
    pub fn restart(&mut self) {
        self.pending = Pending::default();
    }

    /// Takes a part of an update. `true`: it was the last one, and the table is the new one.
    ///
    /// # Errors
    /// [`TableError`]: what makes no sense in it. The next table is then to come in full; until then the old one stays.
    pub fn take(&mut self, update: TableUpdate) -> Result<bool, TableError> {
        let taken = self.take_part(update);
        if taken.is_err() {
            self.pending = Pending::default();
            self.start.configuration.clear();
        }
        taken
    }

    fn take_part(&mut self, update: TableUpdate) -> Result<bool, TableError> {
        if let Some(start) = update.start {
            self.pending = Pending { start: Some(start), ..Pending::default() };
        }
        for entry in &update.removed {
            let key = self.entry(entry)?;
            self.pending.removed.insert(key);
        }
        for entry in &update.added {
            let key = self.entry(entry)?;
            self.pending.added.insert(key);
        }
        let known = self.rules.compiled().len() + self.rules.held().len();
        if known.max(self.pending.removed.len()) + self.pending.added.len() > MOST_ENTRIES {
            return Err(TableError::Large);
        }
        if update.complete {
            let pending = std::mem::take(&mut self.pending);
            self.finish(pending)?;
            self.revision = update.revision;
        }
        Ok(update.complete)
    }

    fn entry(&self, entry: &Entry) -> Result<Forward, TableError> {
        let start = self.pending.start.as_ref().unwrap_or(&self.start);
        let number = u16::try_from(entry.port).map_err(|_| TableError::Port(entry.port))?;
        let port = match start.up_port != 0 && entry.port == start.up_port {
            true => self.up_ports(start).first().copied().unwrap_or(Port(number)),
            false => Port(number),
        };
        let filter = wire::decode(entry.filter.as_ref().ok_or(TableError::NoFilter)?, &self.formats)?;
        Ok((port, MessageFilter::new(&filter, &self.formats)?))
    }

    /// Those that are here.
    fn up_ports(&self, start: &TableStart) -> Vec<Port> {
        let up = start.ports.iter().filter(|port| port.up).filter_map(|port| Some(Port(port.number.try_into().ok()?)));
        up.filter(|port| self.here.contains(port)).collect()
    }

    fn finish(&mut self, pending: Pending) -> Result<(), TableError> {
        let Pending { start, mut removed, mut added } = pending;
        if start.is_some() {
            // In full: what stays is neither removed nor added.
            removed = self.rules.all().filter(|rule| !added.contains(rule)).cloned().collect();
            added.retain(|rule| !self.rules.contains(rule));
        }
        if removed.iter().any(|rule| !self.rules.contains(rule)) {
            return Err(TableError::Missing);
        }
        if added.iter().any(|rule| self.rules.contains(rule)) {
            return Err(TableError::Double);
        }
        let many = added.len() + removed.len() > MANY;
        let shared = self.shared.clone();
        let followed = self.rules.update(added, &removed, start.is_some(), &mut |compiler, delta| {
            if !many {
                shared.follow(compiler, delta);
            }
        });
        if many || !followed {
            self.shared.lay_out(self.rules.compiler());
        }
        self.shared.publish(start.as_ref().map(|start| self.up_ports(start)));
        self.start = start.unwrap_or(std::mem::take(&mut self.start));
        Ok(())
    }
}
