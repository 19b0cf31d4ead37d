//! The gRPC service.

use crate::admission::{Seat, Underway};
use crate::keeper::{Keeper, MOST_IN_REQUEST, Refusal, Shared};
use crate::protocol::controller_server::Controller;
use crate::protocol::{self, Entry, FollowRequest, ListPage, ListRequest, Outcome, SubscriptionList, TableUpdate};
use crate::state::{TableChange, Wanted, Wrong, shorten};
use crate::wire;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use weftwire_route::{Attached, MessageFilter, Out, SwitchId};

/// Most subscriptions on a page of the list.
pub const MOST_ON_PAGE: usize = 1_000;
/// Most warnings about a list.
const MOST_WARNINGS: usize = 20;
/// Most characters of what a switch says.
const MOST_REFUSAL: usize = 500;
/// Bytes of filters after which a page ends.
const PAGE_BYTES: usize = 1 << 20;
/// About as many entries as go into one part of an update. Each costs some 100 bytes, seldom much more.
const PART_ENTRIES: usize = 1_000;
/// Bytes after which a part of an update ends.
const PART_BYTES: usize = 1 << 20;
/// Parts that wait for a slow reader.
const PARTS_WAITING: usize = 2;

type Answer<T> = Result<Response<T>, Status>;
type Parts<T> = mpsc::Sender<Result<T, Status>>;

/// The service of a keeper.
#[derive(Clone, Debug)]
pub struct Service {
    keeper: Keeper,
    /// Ends all streams.
    stop: watch::Receiver<bool>,
}

impl Service {
    /// The service; its streams end when `stop` says so.
    pub fn new(keeper: Keeper, stop: watch::Receiver<bool>) -> Service {
        Service { keeper, stop }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.keeper.shared
    }

    async fn change(&self, subscribe: bool, list: SubscriptionList) -> Answer<Outcome> {
        let count = list.subscriptions.len();
        if count > MOST_IN_REQUEST {
            let text = format!("{count} subscriptions in one request; {MOST_IN_REQUEST} are possible: send several");
            return Err(Status::invalid_argument(text));
        }
        let pairs: Vec<(&str, &str)> =
            list.subscriptions.iter().map(|it| (it.host.as_str(), it.filter.as_str())).collect();
        let wanted = self.shared().read(&pairs).map_err(|(index, wrong)| {
            let place = if count > 1 { format!("subscription {} of {count}: ", index + 1) } else { String::new() };
            match wrong {
                Wrong::Host(text) => Status::not_found(place + &text),
                Wrong::Filter(text) => Status::invalid_argument(place + &text),
            }
        })?;
        let warnings = if subscribe { warnings(&wanted) } else { Vec::new() };
        let outcome = self.keeper.change(subscribe, wanted).await.map_err(|refusal| match refusal {
            Refusal::Full(text) => Status::resource_exhausted(text),
            Refusal::Unavailable(text) => Status::unavailable(text),
        })?;
        Ok(Response::new(Outcome { warnings, ..outcome }))
    }
}

#[tonic::async_trait]
impl Controller for Service {
    async fn subscribe(&self, request: Request<SubscriptionList>) -> Answer<Outcome> {
        let _underway = underway(&request);
        self.change(true, request.into_inner()).await
    }

    async fn unsubscribe(&self, request: Request<SubscriptionList>) -> Answer<Outcome> {
        let _underway = underway(&request);
        self.change(false, request.into_inner()).await
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListPage> {
        let _underway = underway(&request);
        list(self.shared(), &request.into_inner()).map(Response::new)
    }

    async fn topology(&self, request: Request<protocol::TopologyRequest>) -> Answer<protocol::TopologyReply> {
        let _underway = underway(&request);
        Ok(Response::new(topology(self.shared())))
    }

    type WatchStream = ReceiverStream<Result<protocol::WatchReply, Status>>;

    async fn watch(&self, request: Request<protocol::WatchRequest>) -> Answer<Self::WatchStream> {
        let underway = underway(&request);
        let (parts, receiver) = mpsc::channel(PARTS_WAITING);
        let watching = watch_changes(self.shared().clone(), parts, self.stop.clone());
        tokio::spawn(async move {
            let _underway = underway;
            watching.await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type FollowStream = ReceiverStream<Result<TableUpdate, Status>>;

    async fn follow(&self, request: Request<Streaming<FollowRequest>>) -> Answer<Self::FollowStream> {
        let underway = underway(&request);
        let mut requests = request.into_inner();
        let Some(first) = requests.message().await? else {
            return Err(Status::invalid_argument("a switch says its name first"));
        };
        let shared = self.shared();
        let Some(switch) = shared.switch_named(&first.switch) else {
            let names = shared.network.topology.switches().map(|switch| shared.network.topology.switch_name(switch));
            let near = weftwire_text::diagnostic::nearest(&first.switch, names);
            let advice =
                near.map_or("`weft subs topology` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
            let name: String = first.switch.chars().take(60).collect();
            return Err(Status::not_found(format!("there is no switch `{name}`; {advice}")));
        };
        if first.formats != shared.network.formats_digest {
            let text = "the switch's message formats are not the controller's; give both the same file with --format";
            return Err(Status::failed_precondition(text));
        }
        let (parts, receiver) = mpsc::channel(PARTS_WAITING);
        let known = (first.configuration == shared.configuration).then_some(first.revision);
        let follower = Follower { shared: shared.clone(), switch, parts, stop: self.stop.clone() };
        tokio::spawn(async move {
            let _underway = underway;
            follower.run(known, requests).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// What is suspicious in a list, each with its place.
fn warnings(list: &[Wanted]) -> Vec<String> {
    let found = (1..).zip(list).filter_map(|(place, wanted)| Some((place, wanted, wanted.warning?)));
    found
        .take(MOST_WARNINGS)
        .map(|(place, wanted, warning)| {
            let place =
                if list.len() > 1 { format!("subscription {place} of {}: ", list.len()) } else { String::new() };
            format!("{place}`{}`: {warning}", shorten(&wanted.text))
        })
        .collect()
}

/// Keeps the connection of a request from being the one that makes room for others.
fn underway<T>(request: &Request<T>) -> Option<Underway> {
    request.extensions().get().map(Seat::begin)
}

fn list(shared: &Shared, request: &ListRequest) -> Result<ListPage, Status> {
    let host = match request.host.as_str() {
        "" => None,
        name => Some(*shared.hosts.get(name).ok_or_else(|| {
            let name: String = name.chars().take(60).collect();
            Status::not_found(format!("there is no host `{name}`; `weft subs topology` lists them"))
        })?),
    };
    let limit = match request.limit as usize {
        0 => MOST_ON_PAGE,
        limit => limit.min(MOST_ON_PAGE),
    };
    let state = shared.state();
    let mut page =
        ListPage { revision: state.revision, total: state.subscriptions.len() as u64, ..ListPage::default() };
    let mut bytes = 0;
    let after = (std::ops::Bound::Excluded(request.after), std::ops::Bound::Unbounded);
    for (number, wanted) in state.subscriptions.range(after) {
        if host.is_some_and(|host| host != wanted.host) {
            continue;
        }
        if page.subscriptions.len() == limit || bytes > PAGE_BYTES {
            page.next = page.subscriptions.last().map_or(0, |last| last.number);
            break;
        }
        bytes += wanted.text.len();
        page.subscriptions.push(numbered(shared, *number, wanted));
    }
    Ok(page)
}

fn numbered(shared: &Shared, number: u64, wanted: &Wanted) -> protocol::NumberedSubscription {
    let host = shared.network.topology.host_name(wanted.host).to_owned();
    protocol::NumberedSubscription { number, host, filter: wanted.text.to_string() }
}

fn topology(shared: &Shared) -> protocol::TopologyReply {
    let network = &shared.network;
    let topology = &network.topology;
    let progress = shared.progress().clone();
    let switch = |switch: SwitchId| {
        let index = switch.0 as usize;
        protocol::Switch {
            name: topology.switch_name(switch).to_owned(),
            layer: topology.layer(switch).into(),
            ports: shared.places[index].start.ports.clone(),
            followers: progress[index].followers,
            revision: progress[index].revision,
            refusal: progress[index].refusal.clone(),
        }
    };
    let mut hosts = Vec::with_capacity(topology.host_count());
    for at in topology.switches() {
        for (port, attached) in (1..).zip(topology.ports(at)) {
            if let Attached::Host(host) = attached {
                let name = topology.host_name(*host).to_owned();
                hosts.push((*host, protocol::Host { name, switch: topology.switch_name(at).to_owned(), port }));
            }
        }
    }
    hosts.sort_by_key(|(host, _)| *host);
    let state = shared.state();
    protocol::TopologyReply {
        revision: state.revision,
        subscriptions: state.subscriptions.len() as u64,
        policy: network.policy.clone(),
        alpha: network.settings.units.clone(),
        switches: topology.switches().map(switch).collect(),
        hosts: hosts.into_iter().map(|(_, host)| host).collect(),
        notes: network.notes.clone(),
    }
}

/// Waits for a later revision than `known`. `false`: the stream is to end.
async fn later<T>(
    revisions: &mut watch::Receiver<u64>,
    known: u64,
    parts: &Parts<T>,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        revision = revisions.wait_for(|revision| *revision > known) => revision.is_ok(),
        () = parts.closed() => false,
        _ = stop.wait_for(|stop| *stop) => {
            let _ = parts.try_send(Err(ending()));
            false
        }
    }
}

fn ending() -> Status {
    Status::unavailable("the controller ends")
}

/// Sends unless the stream is to end.
async fn send<T>(parts: &Parts<T>, stop: &mut watch::Receiver<bool>, part: T) -> bool {
    tokio::select! {
        sent = parts.send(Ok(part)) => sent.is_ok(),
        _ = stop.wait_for(|stop| *stop) => false,
    }
}

async fn watch_changes(shared: Arc<Shared>, parts: Parts<protocol::WatchReply>, mut stop: watch::Receiver<bool>) {
    let mut revisions = shared.revisions();
    let mut revision = shared.state().revision;
    let mut reply = protocol::WatchReply { revision, changes: Vec::new() };
    while send(&parts, &mut stop, std::mem::take(&mut reply)).await {
        if !later(&mut revisions, revision, &parts, &mut stop).await {
            return;
        }
        let events = shared.state().events_since(revision, PART_ENTRIES);
        let Ok((events, last)) = events else {
            let text = "the watcher was too slow and has missed changes; list the subscriptions and watch again";
            let _ = parts.send(Err(Status::data_loss(text))).await;
            return;
        };
        revision = last;
        reply.revision = last;
        reply.changes = events
            .iter()
            .map(|event| protocol::SubscriptionChange {
                subscribed: event.subscribed,
                subscription: Some(numbered(&shared, event.number, &event.wanted)),
            })
            .collect();
    }
}

/// A switch that follows.
struct Follower {
    shared: Arc<Shared>,
    switch: SwitchId,
    parts: Parts<TableUpdate>,
    stop: watch::Receiver<bool>,
}

impl Follower {
    /// Until the switch is gone or the controller ends. `known`: the revision of the table that the switch has.
    async fn run(self, known: Option<u64>, mut requests: Streaming<FollowRequest>) {
        let (shared, index, parts) = (self.shared.clone(), self.switch.0 as usize, self.parts.clone());
        shared.progress()[index].followers += 1;
        let acknowledgements = async {
            while let Ok(Some(request)) = requests.message().await {
                let mut progress = shared.progress();
                progress[index].revision = request.revision;
                progress[index].refusal = request.refusal.chars().take(MOST_REFUSAL).collect();
            }
        };
        tokio::select! {
            () = self.updates(known) => {}
            () = acknowledgements => {}
            () = parts.closed() => {}
        }
        let mut progress = shared.progress();
        progress[index].followers -= 1;
        if progress[index].followers == 0 {
            progress[index].refusal.clear();
        }
    }

    async fn updates(mut self, known: Option<u64>) {
        let mut revisions = self.shared.revisions();
        let mut known = known;
        loop {
            let changes = match known {
                Some(known) => self.shared.state().changes_since(self.switch, known, PART_ENTRIES).ok(),
                None => None,
            };
            // A revision of the future is one of a store that was replaced by an older copy of itself.
            let ahead = known.is_some_and(|known| known > self.shared.state().revision);
            let revision = match changes.filter(|_| !ahead) {
                Some((changes, revision)) => {
                    if !self.send(changes, revision, None).await {
                        return;
                    }
                    revision
                }
                None => match self.table().await {
                    Some(revision) => revision,
                    None => return,
                },
            };
            known = Some(revision);
            if !later(&mut revisions, revision, &self.parts, &mut self.stop).await {
                return;
            }
        }
    }

    /// Sends the whole table.
    async fn table(&mut self) -> Option<u64> {
        let (shared, switch) = (self.shared.clone(), self.switch);
        // It takes a while for many subscriptions.
        let table = tokio::task::spawn_blocking(move || shared.state().table(switch));
        let (entries, revision) = table.await.ok()?;
        let start = self.shared.places[switch.0 as usize].start.clone();
        let changes = entries.into_iter().map(|(out, filter)| TableChange { added: true, out, filter }).collect();
        self.send(changes, revision, Some(start)).await.then_some(revision)
    }

    /// Sends what some changes come to, in parts.
    async fn send(&mut self, changes: Vec<TableChange>, revision: u64, start: Option<protocol::TableStart>) -> bool {
        // What came and went meanwhile, or went and came again, is no change.
        let mut net: BTreeMap<(Out, MessageFilter), i8> = BTreeMap::new();
        for TableChange { added, out, filter } in changes {
            *net.entry((out, filter)).or_default() += if added { 1 } else { -1 };
        }
        let shared = self.shared.clone();
        let place = &shared.places[self.switch.0 as usize];
        let formats = &shared.network.formats;
        let mut part = TableUpdate { revision, start, ..TableUpdate::default() };
        let mut bytes = 0;
        for ((out, filter), sum) in net.into_iter().filter(|(_, sum)| *sum != 0) {
            // A way without a number is one of more than there are numbers.
            let Some(port) = place.port(out) else { continue };
            let entry = Entry { port, filter: Some(wire::encode(&filter.filter(), formats)) };
            bytes += prost::Message::encoded_len(&entry);
            if sum > 0 {
                part.added.push(entry)
            } else {
                part.removed.push(entry)
            }
            if bytes > PART_BYTES || part.added.len() + part.removed.len() >= PART_ENTRIES {
                bytes = 0;
                let next = TableUpdate { revision, ..TableUpdate::default() };
                if !send(&self.parts, &mut self.stop, std::mem::replace(&mut part, next)).await {
                    return false;
                }
            }
        }
        part.complete = true;
        send(&self.parts, &mut self.stop, part).await
    }
}
