//! What the controller has in memory: subscriptions, the routing that follows from them, and the last changes.

use crate::log::{Forgotten, Log};
use crate::protocol::{SwitchPort, TableStart};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use weftwire_core::Port;
use weftwire_route::{
    Attached, Controller, HostId, MessageFilter, Out, Settings, SettingsError, SwitchId, Topology, ways,
};
use weftwire_subscribe::MessageFormats;
use weftwire_subscribe::rules::Filter;
use weftwire_subscribe::subscriptions::read_subscriptions;
use weftwire_text::{Severity, SourceMap};

/// Longest text of a filter in bytes.
pub const MOST_FILTER: usize = 65_536;

/// How many of the last changes are kept, for switches and watchers that are behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogLimits {
    /// Weight of the changes of each switch's table: 1, and 1 for each alternative of the filter.
    pub switch: usize,
    /// Bytes of the subscriptions and their ends.
    pub watch: usize,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits { switch: 65_536, watch: 16 << 20 }
    }
}

/// What a controller is for.
#[derive(Clone, Debug)]
pub struct Network {
    /// Hosts, switches and links.
    pub topology: Topology,
    /// How subscriptions are routed.
    pub settings: Settings,
    /// The policy's name, for people.
    pub policy: String,
    /// The messages.
    pub formats: Arc<MessageFormats>,
    /// The SHA-256 of the text that the formats were read from.
    pub formats_digest: [u8; 32],
    /// What the user may not expect of the routing.
    pub notes: Vec<String>,
}

/// The digest of a formats' text, by which switches and controller know that they have the same.
pub fn formats_digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// A subscription, read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) host: HostId,
    pub(crate) text: Arc<str>,
    pub(crate) filter: MessageFilter,
    /// What is suspicious in it.
    pub(crate) warning: Option<&'static str>,
}

/// A subscription that began or ended.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) number: u64,
    pub(crate) subscribed: bool,
    pub(crate) wanted: Wanted,
}

/// A change of a switch's table.
#[derive(Clone, Debug)]
pub(crate) struct TableChange {
    pub(crate) added: bool,
    pub(crate) out: Out,
    pub(crate) filter: MessageFilter,
}

/// The state; always that of the store, or for a moment behind it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) controller: Controller<MessageFilter>,
    /// By number.
    pub(crate) subscriptions: BTreeMap<u64, Wanted>,
    /// Filters that mean the same are the same.
    numbers: BTreeMap<(HostId, MessageFilter), u64>,
    /// The number of the next subscription.
    pub(crate) next: u64,
    /// The number of the last change.
    pub(crate) revision: u64,
    limits: LogLimits,
    events: Log<Event>,
    /// By switch.
    tables: Vec<Log<TableChange>>,
}

impl State {
    /// Without a subscription, after this many changes.
    pub(crate) fn new(network: &Network, revision: u64, next: u64, limits: LogLimits) -> Result<State, SettingsError> {
        let controller = Controller::new(network.topology.clone(), network.settings.clone())?;
        Ok(State {
            controller,
            subscriptions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next,
            revision,
            limits,
            events: Log::new(revision, limits.watch),
            tables: vec![Log::new(revision, limits.switch); network.topology.switch_count()],
        })
    }

    /// A subscription of the store. `false`: the host has it already.
    pub(crate) fn restore(&mut self, number: u64, wanted: Wanted) -> bool {
        if self.number(&wanted).is_some() {
            return false;
        }
        // The host exists, or it would have no number.
        let _ = self.controller.subscribe(wanted.host, wanted.filter.clone());
        self.numbers.insert((wanted.host, wanted.filter.clone()), number);
        self.subscriptions.insert(number, wanted);
        true
    }

    /// Goes on with a revision that nobody has seen yet.
    pub(crate) fn skip_revision(&mut self) {
        self.revision += 1;
        self.events = Log::new(self.revision, self.limits.watch);
        self.tables.fill(Log::new(self.revision, self.limits.switch));
    }

    /// The number of a subscription.
    pub(crate) fn number(&self, wanted: &Wanted) -> Option<u64> {
        self.numbers.get(&(wanted.host, wanted.filter.clone())).copied()
    }

    /// Makes changes that the store has.
    pub(crate) fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            let Wanted { host, filter, text, .. } = &event.wanted;
            let key = (*host, filter.clone());
            let delta = if event.subscribed {
                self.numbers.insert(key, event.number);
                self.subscriptions.insert(event.number, event.wanted.clone());
                self.controller.subscribe(*host, filter.clone())
            } else {
                self.numbers.remove(&key);
                self.subscriptions.remove(&event.number);
                self.controller.unsubscribe(*host, filter)
            };
            // Hosts exist, and only what began ends.
            for change in delta.unwrap_or_default().filters {
                let weight = 1 + change.filter.clause_count();
                let entry = TableChange { added: change.added, out: change.out, filter: change.filter };
                self.tables[change.switch.0 as usize].push(event.revision, weight, entry);
            }
            self.revision = event.revision;
            self.next = self.next.max(event.number + 1);
            let weight = size_of::<Event>() + text.len();
            self.events.push(event.revision, weight, event);
        }
    }

    /// What came after a revision, a part of it if it is much; and the revision it leads to.
    pub(crate) fn events_since(&self, revision: u64, most: usize) -> Result<(Vec<Event>, u64), Forgotten> {
        let (events, last) = self.events.since(revision, most)?;
        Ok((events, last.unwrap_or(self.revision)))
    }

    /// What changed in a switch's table after a revision, a part of it if it is much; and the revision it leads to.
    pub(crate) fn changes_since(
        &self,
        switch: SwitchId,
        revision: u64,
        most: usize,
    ) -> Result<(Vec<TableChange>, u64), Forgotten> {
        let (changes, last) = self.tables[switch.0 as usize].since(revision, most)?;
        Ok((changes, last.unwrap_or(self.revision)))
    }

    /// A switch's table and its revision.
    pub(crate) fn table(&self, switch: SwitchId) -> (Vec<(Out, MessageFilter)>, u64) {
        let table = self.controller.table(switch);
        let entries = table.into_iter().flat_map(|(out, filters)| filters.into_iter().map(move |filter| (out, filter)));
        (entries.collect(), self.revision)
    }
}

/// What a switch is told of its place in the network.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) start: TableStart,
    ports: BTreeMap<Out, Port>,
}

impl Place {
    pub(crate) fn new(controller: &Controller<MessageFilter>, switch: SwitchId, configuration: &[u8]) -> Place {
        let (topology, plan) = (controller.topology(), controller.plan());
        let ways = ways(topology, plan, switch);
        let ports: BTreeMap<Out, Port> = ways.into_iter().map(|(port, out)| (out, port)).collect();
        let up = plan.up_ports(switch);
        let port = |(number, attached): (u32, &Attached)| SwitchPort {
            number: number + 1,
            neighbour: match attached {
                Attached::Host(host) => topology.host_name(*host).to_owned(),
                Attached::Switch { switch, .. } => topology.switch_name(*switch).to_owned(),
            },
            up: up.iter().any(|port| u32::from(port.0) == number),
        };
        let start = TableStart {
            configuration: configuration.to_owned(),
            ports: (0..).zip(topology.ports(switch)).map(port).collect(),
            up_port: ports.get(&Out::Up).map_or(0, |port| u32::from(port.0)),
        };
        Place { start, ports }
    }

    /// The number of a way out in the entries.
    pub(crate) fn port(&self, out: Out) -> Option<u32> {
        self.ports.get(&out).map(|port| u32::from(port.0))
    }
}

/// Reads subscriptions in the order of the list.
///
/// # Errors
/// The place of the first one that is wrong, and what is wrong with it.
pub(crate) fn read(
    network: &Network,
    hosts: &BTreeMap<String, HostId>,
    list: &[(&str, &str)],
) -> Result<Vec<Wanted>, (usize, Wrong)> {
    let mut wanted = Vec::with_capacity(list.len());
    for (index, (host, filter)) in list.iter().enumerate() {
        wanted.push(read_one(network, hosts, host, filter).map_err(|wrong| (index, wrong))?);
    }
    Ok(wanted)
}

/// What is wrong with a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// The network has no such host.
    Host(String),
    /// The filter cannot be read.
    Filter(String),
}

impl Wrong {
    pub(crate) fn text(&self) -> &str {
        match self {
            Wrong::Host(text) | Wrong::Filter(text) => text,
        }
    }
}

fn read_one(network: &Network, hosts: &BTreeMap<String, HostId>, host: &str, filter: &str) -> Result<Wanted, Wrong> {
    let Some(id) = hosts.get(host) else {
        let near = weftwire_text::diagnostic::nearest(host, hosts.keys().map(String::as_str));
        let advice = match (near, hosts.keys().next()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(first)) => format!("hosts are named like `{first}`"),
            (None, None) => "the network has no hosts".to_owned(),
        };
        return Err(Wrong::Host(format!("there is no host `{}`; {advice}", shorten(host))));
    };
    if filter.len() > MOST_FILTER {
        let length = filter.len();
        return Err(Wrong::Filter(format!("the filter has {length} bytes; {MOST_FILTER} are possible")));
    }
    let filter = filter.trim();
    if filter.contains(['\n', '\r']) {
        return Err(Wrong::Filter("the filter has several lines; write it in one".to_owned()));
    }
    // As a file of subscriptions has it.
    let line = format!("h: {filter}");
    let (mut sources, mut found) = (SourceMap::default(), Vec::new());
    let read = read_subscriptions("filter", &line, &network.formats, &mut sources, &mut found);
    if let Some(error) = found.iter().find(|found| found.severity == Severity::Error) {
        let at = sources.text(error.span);
        let place = if at.is_empty() { String::new() } else { format!(" at `{}`", shorten(at)) };
        let help = error.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        return Err(Wrong::Filter(format!("{}{place}{help}", error.message)));
    }
    let Some(subscription) = read.into_iter().next() else {
        return Err(Wrong::Filter("the filter is empty; write `true` for all messages".to_owned()));
    };
    let filter_read = MessageFilter::new(&subscription.filter, &network.formats);
    let filter_read = filter_read.map_err(|error| Wrong::Filter(error.to_string()))?;
    let never = filter_read.clause_count() == 0 && subscription.filter != Filter::Never;
    let warning = never.then_some("this filter never matches: its tests exclude each other");
    Ok(Wanted { host: *id, text: filter.into(), filter: filter_read, warning })
}

pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The name of each host.
pub(crate) fn hosts(topology: &Topology) -> BTreeMap<String, HostId> {
    topology.hosts().map(|host| (topology.host_name(host).to_owned(), host)).collect()
}

/// Of which store, network and formats tables are made.
pub(crate) fn configuration(network: &Network, identity: u64) -> Vec<u8> {
    // `Debug` of all that the routing depends on; a difference costs a switch nothing but a table in full.
    let text = format!("{identity} {:?} {:?}", network.topology, network.settings);
    let digest = Sha256::new().chain_update(text).chain_update(network.formats_digest).finalize();
    digest.as_slice().to_owned()
}
