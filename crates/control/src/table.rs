//! A switch's table as the controller has it, compiled: one thread keeps it, another one forwards by it.

use crate::protocol::{Entry, TableStart, TableUpdate};
use crate::wire;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weftwire_core::Port;
use weftwire_core::function::Ports;
use weftwire_route::MessageFilter;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::rules::{Action, Rule};
use weftwire_subscribe::tables::Delta;
use weftwire_subscribe::{Budget, CompileError, Compiler, MessageFormats, RuleId, order};
use weftwire_switch::{Pipeline, SubscriptionSwitch};
use weftwire_text::Span;

/// Most entries that a switch takes.
const MOST_ENTRIES: usize = 10_000_000;
/// After more changes than these, all is laid out anew: that takes less time than to carry each one over.
const MANY: usize = 200;

/// How the fields of a table are ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldOrder {
    /// As suits the first rules that come, if there are some; else as in the formats.
    Chosen,
    /// These first, the others as in the formats.
    Given(Vec<FieldId>),
}

/// The switch that packets are forwarded by, shared between the thread that follows and the one that forwards. Neither holds
/// it while rules are compiled: the first for as long as it takes to carry one rule's change over, the other for a packet.
#[derive(Clone)]
pub struct Shared {
    formats: Arc<MessageFormats>,
    live: Arc<Mutex<Live>>,
}

/// What is shared.
pub(crate) struct Live {
    pub(crate) switch: SubscriptionSwitch,
    /// The ports here that the logical up port stands for; rules name the first one.
    pub(crate) up: Vec<Port>,
}

impl Shared {
    /// The formats of its messages.
    pub(crate) fn formats(&self) -> &MessageFormats {
        &self.formats
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a table by the controller's updates.
pub struct FollowedTable {
    formats: Arc<MessageFormats>,
    order: FieldOrder,
    budget: Budget,
    /// The ports that are here.
    here: BTreeSet<Port>,
    compiler: Compiler,
    shared: Shared,
    rules: BTreeMap<(Port, MessageFilter), RuleId>,
    start: TableStart,
    revision: u64,
    pending: Pending,
}

/// Parts of an update that has not come whole.
#[derive(Debug, Default)]
struct Pending {
    start: Option<TableStart>,
    removed: BTreeSet<(Port, MessageFilter)>,
    added: BTreeSet<(Port, MessageFilter)>,
}

impl FollowedTable {
    /// An empty table of a switch with these ports.
    pub fn new(formats: Arc<MessageFormats>, order: FieldOrder, here: impl IntoIterator<Item = Port>) -> FollowedTable {
        let compiler = Compiler::without_rules(&formats);
        // It has no ports before the one that forwards says what they are.
        let live = Live { switch: SubscriptionSwitch::new(&compiler, Ports::default()), up: Vec::new() };
        FollowedTable {
            shared: Shared { formats: formats.clone(), live: Arc::new(Mutex::new(live)) },
            formats,
            order,
            budget: Budget::default(),
            here: here.into_iter().collect(),
            compiler,
            rules: BTreeMap::new(),
            start: TableStart::default(),
            revision: 0,
            pending: Pending::default(),
        }
    }

    /// What compiling the table, and each change of it, may cost. An update that costs more is refused.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
        self.compiler.set_budget(budget);
    }

    /// What packets are forwarded by.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The rules, compiled.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
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

    /// The rules: which filters each port has. The logical up port's are those of the first port that it stands for.
    pub fn rules(&self) -> impl Iterator<Item = &(Port, MessageFilter)> {
        self.rules.keys()
    }

    /// How many rules there are.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Forgets parts that have come, as the connection was lost.
    pub fn restart(&mut self) {
        self.pending = Pending::default();
    }

    /// Takes a part of an update. `true`: it was the last one, and the table is the new one.
    ///
    /// # Errors
    /// What makes no sense in it. The next table is then to come in full; until then the old one stays.
    pub fn take(&mut self, update: TableUpdate) -> Result<bool, String> {
        let taken = self.take_part(update);
        if taken.is_err() {
            self.pending = Pending::default();
            self.start.configuration.clear();
        }
        taken
    }

    fn take_part(&mut self, update: TableUpdate) -> Result<bool, String> {
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
        if self.rules.len().max(self.pending.removed.len()) + self.pending.added.len() > MOST_ENTRIES {
            return Err(format!("the table has more than {MOST_ENTRIES} entries"));
        }
        if update.complete {
            let pending = std::mem::take(&mut self.pending);
            self.finish(pending)?;
            self.revision = update.revision;
        }
        Ok(update.complete)
    }

    fn entry(&self, entry: &Entry) -> Result<(Port, MessageFilter), String> {
        let start = self.pending.start.as_ref().unwrap_or(&self.start);
        let number = u16::try_from(entry.port).map_err(|_| format!("{} is no number of a port", entry.port))?;
        let port = match start.up_port != 0 && entry.port == start.up_port {
            true => self.up_ports(start).first().copied().unwrap_or(Port(number)),
            false => Port(number),
        };
        let filter = wire::decode(entry.filter.as_ref().ok_or("an entry has no filter")?, &self.formats)?;
        Ok((port, MessageFilter::new(&filter, &self.formats).map_err(|error| error.to_string())?))
    }

    /// Those that are here.
    fn up_ports(&self, start: &TableStart) -> Vec<Port> {
        let up = start.ports.iter().filter(|port| port.up).filter_map(|port| Some(Port(port.number.try_into().ok()?)));
        up.filter(|port| self.here.contains(port)).collect()
    }

    fn finish(&mut self, pending: Pending) -> Result<(), String> {
        let Pending { start, mut removed, mut added } = pending;
        if start.is_some() {
            // In full: what stays is neither removed nor added.
            removed = self.rules.keys().filter(|key| !added.contains(key)).cloned().collect();
            added.retain(|key| !self.rules.contains_key(key));
        }
        let mut ids = Vec::with_capacity(removed.len());
        for key in &removed {
            ids.push(*self.rules.get(key).ok_or("an entry is removed that the table has not")?);
        }
        if added.iter().any(|key| self.rules.contains_key(key)) {
            return Err("an entry is added that the table has already".to_owned());
        }
        let fresh: Vec<Rule> = added.iter().map(|(port, filter)| rule(*port, filter)).collect();
        let numbers = if self.rules.is_empty() {
            // All at once is much faster than one by one.
            self.compiler = compile(&self.formats, &self.order, &fresh, self.budget)?;
            self.lay_out();
            (0..).map(RuleId).take(fresh.len()).collect()
        } else if ids.len() + fresh.len() > MANY {
            let numbers = change(&mut self.compiler, &ids, &fresh, |_, _| ()).map_err(|error| self.restore(error))?;
            self.lay_out();
            numbers
        } else {
            let shared = self.shared.clone();
            let follow = |compiler: &Compiler, delta: &Delta| shared.live().switch.apply(compiler, delta);
            change(&mut self.compiler, &ids, &fresh, follow).map_err(|error| self.restore(error))?
        };
        if let Some(start) = start {
            self.shared.live().up = self.up_ports(&start);
            self.start = start;
        }
        for key in &removed {
            self.rules.remove(key);
        }
        self.rules.extend(added.into_iter().zip(numbers));
        Ok(())
    }

    /// Goes back to the rules before a change that failed halfway.
    fn restore(&mut self, error: CompileError) -> String {
        let rules: Vec<Rule> = self.rules.keys().map(|(port, filter)| rule(*port, filter)).collect();
        if let Ok(mut compiler) = compile(&self.formats, &self.order, &rules, Budget::UNLIMITED) {
            compiler.set_budget(self.budget);
            self.compiler = compiler;
            self.rules.values_mut().zip(0..).for_each(|(id, number)| *id = RuleId(number));
            self.lay_out();
        }
        error.to_string()
    }

    /// Lays all rules out anew, and lets the switch go over to them.
    fn lay_out(&self) {
        let mut pipeline = Pipeline::new(&self.compiler);
        self.shared.live().switch.swap(&self.compiler, &mut pipeline);
        // The old one is freed here, and not while the switch waits.
    }
}

fn rule(port: Port, filter: &MessageFilter) -> Rule {
    Rule { filter: filter.filter(), actions: vec![Action::Forward(vec![port])], span: Span::default() }
}

fn compile(formats: &MessageFormats, order: &FieldOrder, rules: &[Rule], budget: Budget) -> Result<Compiler, String> {
    let options = Options { budget, ..Options::default() };
    let compiled = match order {
        FieldOrder::Given(fields) => {
            Compiler::new(formats.clone(), &Options { order: Some(fields.clone()), ..options }, rules)
        }
        FieldOrder::Chosen => order::compile(formats, &options, rules).map(|(compiler, _)| compiler),
    };
    compiled.map_err(|(_, error)| error.to_string())
}

/// Adds rules and removes others; `follow` sees each change. After an error some are changed and some are not.
fn change(
    compiler: &mut Compiler,
    removed: &[RuleId],
    added: &[Rule],
    follow: impl Fn(&Compiler, &Delta),
) -> Result<Vec<RuleId>, CompileError> {
    // What comes goes first: a message that had a way and is to have another one is not lost meanwhile.
    let mut numbers = Vec::with_capacity(added.len());
    for rule in added {
        let (number, delta) = compiler.add(rule)?;
        numbers.push(number);
        follow(compiler, &delta);
    }
    for id in removed {
        if let Some(delta) = compiler.remove(*id)? {
            follow(compiler, &delta);
        }
    }
    Ok(numbers)
}
