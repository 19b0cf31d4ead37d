//! The keeper: one thread that writes changes to the store, many at once, and then makes them; everybody may read.

use crate::protocol::Outcome;
use crate::state::{Event, LogLimits, Network, Place, State, Wanted, configuration, hosts, read};
use crate::store::{Contents, Store, StoreError, Write};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use weftwire_route::{HostId, SettingsError, SwitchId};

/// Most subscriptions in one request.
pub const MOST_IN_REQUEST: usize = 10_000;
/// Requests that wait for the thread; who comes when they are so many waits before.
const WAITING: usize = 64;
/// Changes that go to the disk at once.
const MOST_AT_ONCE: usize = 10_000;

/// A controller that cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The routing's settings are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The store has subscriptions of another network, or about other messages.
    #[error(
        "{path} has {count} subscriptions that the network and the formats do not fit, the first one `{host}: {filter}`: \
         {reason}; start with the old ones, or with --drop-unfit to remove them from the store"
    )]
    Unfit {
        /// The store.
        path: String,
        /// How many.
        count: usize,
        /// The first one's host.
        host: String,
        /// The first one's filter.
        filter: String,
        /// What is wrong with the first one.
        reason: String,
    },
}

/// How a keeper starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeeperOptions {
    /// Remove subscriptions that the network and the formats do not fit.
    pub drop_unfit: bool,
    /// Most subscriptions at once.
    pub most: usize,
    /// How many changes are kept in memory.
    pub logs: LogLimits,
}

impl Default for KeeperOptions {
    fn default() -> KeeperOptions {
        KeeperOptions { drop_unfit: false, most: 1_000_000, logs: LogLimits::default() }
    }
}

/// How far a switch is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) followers: u32,
    pub(crate) revision: u64,
    /// Which rules it holds back, and why.
    pub(crate) refusal: String,
}

/// A request to change something.
struct Request {
    subscribe: bool,
    list: Vec<Wanted>,
    answer: oneshot::Sender<Result<Outcome, Refusal>>,
}

/// Why nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// There would be too many subscriptions.
    Full(String),
    /// The store cannot be written, or the controller ends.
    Unavailable(String),
}

/// What is shared between the thread and those who read.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) network: Network,
    pub(crate) hosts: BTreeMap<String, HostId>,
    pub(crate) configuration: Vec<u8>,
    /// By switch.
    pub(crate) places: Vec<Place>,
    state: RwLock<State>,
    progress: Mutex<Vec<Progress>>,
    revision: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Vec<Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when the revision changes.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(crate) fn switch_named(&self, name: &str) -> Option<SwitchId> {
        let topology = &self.network.topology;
        topology.switches().find(|switch| topology.switch_name(*switch) == name)
    }

    /// The subscriptions of a list.
    pub(crate) fn read(&self, list: &[(&str, &str)]) -> Result<Vec<Wanted>, (usize, crate::state::Wrong)> {
        read(&self.network, &self.hosts, list)
    }
}

/// The keeper of a store. When it and its clones are gone, the thread ends and the store is closed.
#[derive(Clone, Debug)]
pub struct Keeper {
    pub(crate) shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("subscribe", &self.subscribe).field("list", &self.list.len()).finish()
    }
}

impl Keeper {
    /// Takes up the subscriptions of a store, and starts the thread that keeps it.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        network: Network,
        (store, contents): (Store, Contents),
        options: KeeperOptions,
    ) -> Result<Started, StartError> {
        let hosts = hosts(&network.topology);
        let (state, unfit) = restore(&network, &hosts, &contents, store.path(), options)?;
        let writes: Vec<Write<'_>> = unfit.iter().map(|number| Write::Remove { number: *number }).collect();
        let revision = state.revision;
        if !unfit.is_empty() {
            store.write(&writes, revision, contents.next)?;
        }
        let configuration = configuration(&network, contents.identity);
        let place = |switch| Place::new(&state.controller, switch, &configuration);
        let places: Vec<Place> = network.topology.switches().map(place).collect();
        let progress = Mutex::new(vec![Progress::default(); places.len()]);
        let found = state.subscriptions.len();
        let shared = Arc::new(Shared {
            network,
            hosts,
            configuration,
            places,
            state: RwLock::new(state),
            progress,
            revision: watch::Sender::new(revision),
        });
        let (requests, receiver) = mpsc::channel(WAITING);
        let path = store.path().display().to_string();
        let writer = Writer { shared: shared.clone(), store, most: options.most };
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(move || writer.run(receiver));
        let thread = thread.map_err(|error| StoreError::System { path, reason: format!("no thread: {error}") })?;
        Ok(Started { keeper: Keeper { shared, requests }, thread, found, removed: unfit.len() })
    }

    /// Makes a change. It is in the store when this returns.
    pub(crate) async fn change(&self, subscribe: bool, list: Vec<Wanted>) -> Result<Outcome, Refusal> {
        let (answer, answered) = oneshot::channel();
        let ended = || Refusal::Unavailable("the controller ends; ask again when it runs again".to_owned());
        self.requests.send(Request { subscribe, list, answer }).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// A keeper that has started.
#[derive(Debug)]
pub struct Started {
    /// It.
    pub keeper: Keeper,
    /// Its thread. When it has ended, the store is closed.
    pub thread: JoinHandle<()>,
    /// How many subscriptions the store had.
    pub found: usize,
    /// How many were removed as unfit.
    pub removed: usize,
}

/// The state of a store's contents, and the numbers of those that are unfit.
fn restore(
    network: &Network,
    hosts: &BTreeMap<String, HostId>,
    contents: &Contents,
    path: &Path,
    options: KeeperOptions,
) -> Result<(State, Vec<u64>), StartError> {
    let mut state = State::new(network, contents.revision, contents.next, options.logs)?;
    let (mut unfit, mut first) = (Vec::new(), None);
    for kept in &contents.subscriptions {
        let reason = match read(network, hosts, &[(&kept.host, &kept.filter)]).map(|mut read| read.pop()) {
            Err((_, wrong)) => wrong.text().to_owned(),
            Ok(wanted) => {
                if wanted.is_some_and(|wanted| state.restore(kept.number, wanted)) {
                    continue;
                }
                "another one of the same host means the same".to_owned()
            }
        };
        unfit.push(kept.number);
        first.get_or_insert((kept, reason));
    }
    if let (Some((kept, reason)), false) = (first, options.drop_unfit) {
        let (path, count) = (path.display().to_string(), unfit.len());
        let (host, filter) = (kept.host.clone(), kept.filter.clone());
        return Err(StartError::Unfit { path, count, host, filter, reason });
    }
    if !unfit.is_empty() {
        state.skip_revision();
    }
    Ok((state, unfit))
}

/// The thread's side.
struct Writer {
    shared: Arc<Shared>,
    store: Store,
    most: usize,
}

impl Writer {
    /// Until all keepers are gone.
    fn run(self, mut receiver: mpsc::Receiver<Request>) {
        while let Some(first) = receiver.blocking_recv() {
            let mut size = first.list.len();
            let mut requests = vec![first];
            while size < MOST_AT_ONCE
                && let Ok(request) = receiver.try_recv()
            {
                size += request.list.len();
                requests.push(request);
            }
            self.serve(requests);
        }
    }

    /// Writes what some requests change, makes it, and answers.
    fn serve(&self, requests: Vec<Request>) {
        let state = self.shared.state();
        let mut planned = Planned::new(&state, self.most);
        let outcomes: Vec<_> = requests.iter().map(|request| planned.request(request)).collect();
        let Planned { events, next, .. } = planned;
        drop(state);
        let written = self.write(&events, next);
        if written.is_ok() && !events.is_empty() {
            let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
            state.apply(events);
            let revision = state.revision;
            drop(state);
            self.shared.revision.send_replace(revision);
        }
        for (request, outcome) in requests.into_iter().zip(outcomes) {
            // Nobody listens any more if the client is gone.
            let _ = request.answer.send(written.clone().and(outcome));
        }
    }

    fn write(&self, events: &[Event], next: u64) -> Result<(), Refusal> {
        let Some(last) = events.last() else { return Ok(()) };
        let topology = &self.shared.network.topology;
        let writes: Vec<Write<'_>> = events
            .iter()
            .map(|Event { number, subscribed, wanted, .. }| match subscribed {
                true => Write::Insert { number: *number, host: topology.host_name(wanted.host), filter: &wanted.text },
                false => Write::Remove { number: *number },
            })
            .collect();
        self.store.write(&writes, last.revision, next).map_err(|error| {
            Refusal::Unavailable(format!("nothing was changed: {error}; see to it and start the controller again"))
        })
    }
}

/// What some requests change, one after the other.
struct Planned<'a> {
    state: &'a State,
    events: Vec<Event>,
    /// The numbers of subscriptions that began or ended on the way.
    changed: BTreeMap<(HostId, weftwire_route::MessageFilter), Option<u64>>,
    next: u64,
    revision: u64,
    count: usize,
    most: usize,
}

impl<'a> Planned<'a> {
    fn new(state: &'a State, most: usize) -> Planned<'a> {
        let (next, revision, count) = (state.next, state.revision, state.subscriptions.len());
        Planned { state, events: Vec::new(), changed: BTreeMap::new(), next, revision, count, most }
    }

    fn number(&self, wanted: &Wanted) -> Option<u64> {
        match self.changed.get(&(wanted.host, wanted.filter.clone())) {
            Some(number) => *number,
            None => self.state.number(wanted),
        }
    }

    fn request(&mut self, request: &Request) -> Result<Outcome, Refusal> {
        let fresh = request.list.iter().filter(|wanted| self.number(wanted).is_none()).count();
        if request.subscribe && self.count + fresh > self.most {
            return Err(Refusal::Full(format!(
                "there are {} subscriptions and may be {}; {fresh} more are too many: end some, or start the controller \
                 with a greater --most",
                self.count, self.most
            )));
        }
        let mut outcome = Outcome::default();
        for wanted in &request.list {
            let number = match (self.number(wanted), request.subscribe) {
                (None, true) => {
                    self.next += 1;
                    self.count += 1;
                    self.next - 1
                }
                (Some(number), false) => {
                    self.count -= 1;
                    number
                }
                _ => {
                    outcome.unchanged += 1;
                    continue;
                }
            };
            outcome.changed += 1;
            self.revision += 1;
            let now = request.subscribe.then_some(number);
            self.changed.insert((wanted.host, wanted.filter.clone()), now);
            let (revision, subscribed, wanted) = (self.revision, request.subscribe, wanted.clone());
            self.events.push(Event { revision, number, subscribed, wanted });
        }
        outcome.revision = self.revision;
        Ok(outcome)
    }
}
