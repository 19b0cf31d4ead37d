//! The whole service in one process: clients, switches that follow, restarts, and what must be refused.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of a platform: files and sockets")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use weftwire_control::follow::{Follower, Notice};
use weftwire_control::keeper::{Keeper, KeeperOptions, StartError};
use weftwire_control::protocol::{Outcome, Subscription};
use weftwire_control::server::{Listener, serve};
use weftwire_control::state::{LogLimits, Network, formats_digest};
use weftwire_control::store::Store;
use weftwire_control::switch::FollowingSwitch;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::{Address, Client, ClientError};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_linux::reach::Reach;
use weftwire_route::{Controller, MessageFilter, Out, Policy, Settings, Topology, fat_tree, ways};
use weftwire_subscribe::subscriptions::read_subscriptions;
use weftwire_subscribe::{Budget, MessageFormats};
use weftwire_switch::SubscriptionSwitch;
use weftwire_text::SourceMap;
use weftwire_workload::market::{Feed, FeedSettings};
use weftwire_workload::{ITCH_FORMATS, Numbers};

/// Where packets come from that switches of the tests forward.
const OUTSIDE: Port = Port(9);

/// A folder of a test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("controller-{name}"));
    // It may be there from the last run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn network(policy: Policy, units: &[u64]) -> Network {
    let formats = MessageFormats::read("formats", ITCH_FORMATS, &mut SourceMap::default(), &mut Vec::new()).unwrap();
    Network {
        topology: fat_tree(4).unwrap(),
        settings: Settings { policy, units: units.to_vec(), ..Settings::default() },
        policy: "tested".into(),
        formats: Arc::new(formats),
        formats_digest: formats_digest(ITCH_FORMATS),
        notes: Vec::new(),
    }
}

/// A controller that runs in this process.
struct Running {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    address: Address,
}

impl Running {
    fn start(folder: &Path, network: Network, options: KeeperOptions) -> Running {
        let address = Address::Unix(folder.join("socket"));
        let listener = Listener::open(&address, None).unwrap();
        let store = Store::open(&folder.join("store"), 7).unwrap();
        let started = Keeper::start(network, store, options).unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving =
            tokio::spawn(async move { serve(started, listener, async { drop(stopped.await) }).await.unwrap() });
        Running { stop, serving, address }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.address, None).await.unwrap()
    }

    fn follower(&self, switch: &str) -> Follower {
        Follower {
            address: self.address.clone(),
            tls: None,
            reach: Reach::default(),
            switch: switch.to_owned(),
            formats: formats_digest(ITCH_FORMATS),
        }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.serving.await.unwrap();
    }
}

fn subscription(host: &str, filter: &str) -> Subscription {
    Subscription { host: host.to_owned(), filter: filter.to_owned() }
}

fn table(network: &Network) -> FollowedTable {
    FollowedTable::new(network.formats.clone(), FieldOrder::Chosen, (1..=4).map(Port))
}

/// What each switch is to have, made afresh: the logical up port is the first port up.
fn expected(
    network: &Network,
    wanted: &BTreeSet<(String, String)>,
) -> BTreeMap<String, BTreeSet<(Port, MessageFilter)>> {
    let mut controller = Controller::new(network.topology.clone(), network.settings.clone()).unwrap();
    let hosts: BTreeMap<String, _> =
        network.topology.hosts().map(|host| (network.topology.host_name(host).to_owned(), host)).collect();
    let text: String = wanted.iter().map(|(host, filter)| format!("{host}: {filter}\n")).collect();
    for it in read_subscriptions("all", &text, &network.formats, &mut SourceMap::default(), &mut Vec::new()) {
        controller.subscribe(hosts[&it.host], MessageFilter::new(&it.filter, &network.formats).unwrap()).unwrap();
    }
    let mut tables = BTreeMap::new();
    for switch in network.topology.switches() {
        let up = controller.plan().up_ports(switch).first().copied();
        let port = |out| match (out, up) {
            (Out::Up, Some(up)) => Port(up.0 + 1),
            _ => ways(&network.topology, controller.plan(), switch)
                .into_iter()
                .find(|(_, way)| *way == out)
                .map(|(port, _)| port)
                .unwrap(),
        };
        let entries = controller.table(switch).into_iter();
        let entries = entries.flat_map(|(out, filters)| filters.into_iter().map(move |filter| (port(out), filter)));
        tables.insert(network.topology.switch_name(switch).to_owned(), entries.collect());
    }
    tables
}

/// Says what two tables differ in, which are too large to be shown.
fn same(found: &BTreeSet<(Port, MessageFilter)>, expected: &BTreeSet<(Port, MessageFilter)>, place: &str) {
    let more: Vec<_> = found.difference(expected).collect();
    let missing: Vec<_> = expected.difference(found).collect();
    assert!(more.is_empty() && missing.is_empty(), "{place}: too much {more:?}, missing {missing:?}");
}

fn random_subscription(numbers: &mut Numbers, topology: &Topology) -> (String, String) {
    let hosts: Vec<_> = topology.hosts().collect();
    let host = hosts[numbers.below(hosts.len() as u64) as usize];
    let stock = ["AAPL", "MSFT", "GOOG"][numbers.below(3) as usize];
    let price = 1 + numbers.below(6);
    let filter = match numbers.below(8) {
        0 => format!("add_order.stock == {stock} and orders > {price}"),
        1 => {
            format!(
                "add_order.stock != {stock} and not (add_order.price in [{price}, 9] or add_order.shares == {price})"
            )
        }
        2 => format!("avg(add_order.price) over {price}ms > 60 and add_order.stock == {stock}"),
        3 => "true".to_owned(),
        _ => format!("add_order.stock == {stock} and add_order.price > {price}.5"),
    };
    (topology.host_name(host).to_owned(), filter)
}

/// Packets out by port, those of the logical up port by its first one.
fn sent(function: &mut dyn Function, now: Time, packets: &[Vec<u8>], up: &[Port]) -> Vec<BTreeMap<Port, Vec<u8>>> {
    let mut out = Outbox::new();
    let mut send = |packet: &Vec<u8>| {
        out.clear();
        function.frame(now, OUTSIDE, Frame::new(packet), &mut out);
        let sends = out.items().iter().map(|output| match output {
            Output::Send { port, bytes, .. } => (*port, out.bytes(bytes).to_vec()),
            other => panic!("{other:?}"),
        });
        sends.map(|(port, bytes)| (if up.contains(&port) { up[0] } else { port }, bytes)).collect()
    };
    packets.iter().map(&mut send).collect()
}

/// A switch that followed all changes forwards as one that starts now.
fn forwards_as_a_fresh_one(table: &FollowedTable, feed: &mut Feed, now: Time) {
    let ports = Ports::new((1..=4).map(Port).chain([OUTSIDE]).map(|port| (port, LinkType::Ethernet)));
    let packets: Vec<Vec<u8>> = (0..20).map(|_| feed.packet(0)).collect();
    let number = |port: u32| Port(port.try_into().unwrap());
    let up: Vec<Port> = table.start().ports.iter().filter(|port| port.up).map(|port| number(port.number)).collect();
    let mut fresh = SubscriptionSwitch::new(table.compiler(), ports.clone());
    let mut following = FollowingSwitch::new(table.shared().clone(), ports);
    let expected = sent(&mut fresh, now, &packets, &up);
    assert_eq!(sent(&mut following, now, &packets, &up), expected);
}

/// Subscriptions come and go, the controller restarts, connections are lost; each switch always gets to the table that a
/// fresh controller has. Two switches follow all the time, the others look now and then.
async fn random_changes(seed: u64, policy: Policy, units: &[u64], logs: LogLimits) {
    let (folder, network) = (folder(&format!("random-{seed}")), network(policy, units));
    let options = KeeperOptions { logs, ..KeeperOptions::default() };
    let mut numbers = Numbers::new(seed);
    let mut feed = Feed::new(FeedSettings::default(), seed).opened();
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    let mut running = Running::start(&folder, network.clone(), options);
    let names: Vec<String> =
        network.topology.switches().map(|switch| network.topology.switch_name(switch).to_owned()).collect();
    let mut tables: BTreeMap<&String, FollowedTable> = names.iter().map(|name| (name, table(&network))).collect();
    let mut revision = 0;

    let follow = |name: &str| {
        let (tell, told) = tokio::sync::watch::channel((0, BTreeSet::new()));
        let (follower, mut table) = (running.follower(name), table(&network));
        let task = tokio::spawn(async move {
            follower
                .follow(&mut table, |notice, table| {
                    if !matches!(notice, Notice::Lost(_)) {
                        tell.send_replace((table.revision(), table.rules().cloned().collect()));
                    }
                })
                .await;
        });
        (name.to_owned(), told, task)
    };
    let mut following = vec![follow(&names[0]), follow(&names[names.len() - 1])];

    for step in 0..40 {
        let client = running.client().await;
        for _ in 0..numbers.below(4) {
            let mut list = Vec::new();
            let subscribe = numbers.below(5) < 3;
            for _ in 0..1 + numbers.below(8) {
                let it = match (wanted.iter().nth(numbers.below(wanted.len().max(1) as u64) as usize), subscribe) {
                    (Some(it), false) => it.clone(),
                    _ => random_subscription(&mut numbers, &network.topology),
                };
                list.push(it);
            }
            let before = wanted.len();
            for it in &list {
                if subscribe {
                    wanted.insert(it.clone())
                } else {
                    wanted.remove(it)
                };
            }
            let messages = list.iter().map(|(host, filter)| subscription(host, filter)).collect();
            let outcome = match subscribe {
                true => client.subscribe(messages).await.unwrap(),
                false => client.unsubscribe(messages).await.unwrap(),
            };
            assert_eq!(outcome.changed as usize, wanted.len().abs_diff(before));
            assert_eq!(outcome.changed as usize + outcome.unchanged as usize, list.len());
            revision += u64::from(outcome.changed);
            assert_eq!(outcome.revision, revision);
        }
        if numbers.below(6) == 0 {
            running.stop().await;
            running = Running::start(&folder, network.clone(), options);
        }
        let expected = expected(&network, &wanted);
        for name in &names {
            if numbers.below(3) == 0 || step == 39 {
                let table = tables.get_mut(name).unwrap();
                running.follower(name).fetch(table).await.unwrap();
                same(&table.rules().cloned().collect(), &expected[name], &format!("{name}, step {step}"));
                assert_eq!(table.revision(), revision);
                assert_eq!(table.compiler().rule_count(), table.rule_count());
                // So late that all windows begin anew.
                forwards_as_a_fresh_one(table, &mut feed, Time::from_nanoseconds((step + 1) * 1_000_000_000_000));
            }
            if numbers.below(20) == 0 {
                tables.insert(name, self::table(&network));
            }
        }
        for (name, told, _) in &mut following {
            let (_, rules) = told.wait_for(|(at, _)| *at == revision).await.unwrap().clone();
            same(&rules, &expected[name.as_str()], &format!("{name}, step {step}"));
        }
    }
    let listed = listed(&running.client().await, None).await;
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), wanted);
    following.iter().for_each(|(_, _, task)| task.abort());
    running.stop().await;
}

async fn listed(client: &Client, host: Option<&str>) -> Vec<(String, String)> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = client.list(host, after, 7).await.unwrap();
        assert!(page.subscriptions.len() <= 7);
        all.extend(page.subscriptions.into_iter().map(|it| (it.host, it.filter)));
        after = page.next;
        if after == 0 {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn switches_follow_random_changes_and_restarts() {
    random_changes(1, Policy::TrafficReduction, &[], LogLimits::default()).await;
    random_changes(2, Policy::MemoryReduction, &[1, 10_000], LogLimits::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn switches_that_missed_too_much_get_the_table_in_full() {
    random_changes(3, Policy::TrafficReduction, &[20_000], LogLimits { switch: 30, watch: 1 << 20 }).await;
    random_changes(4, Policy::MemoryReduction, &[], LogLimits { switch: 0, watch: 0 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_means_the_same_is_one_subscription() {
    let running = Running::start(&folder("same"), network(Policy::default(), &[]), KeeperOptions::default());
    let client = running.client().await;
    let one = |filter| vec![subscription("pod1-host1", filter)];
    let outcome = client.subscribe(one("add_order.price > 5 and add_order.shares < 7")).await.unwrap();
    assert_eq!(outcome, Outcome { revision: 1, changed: 1, unchanged: 0, warnings: vec![] });
    let outcome = client.subscribe(one("add_order.shares < 7 && add_order.price > 5.0000")).await.unwrap();
    assert_eq!(outcome, Outcome { revision: 1, changed: 0, unchanged: 1, warnings: vec![] });
    // Twice in one list, too.
    let list = [one("trade.price > 1"), one("trade.price >= 1.0001")].concat();
    assert_eq!(
        client.subscribe(list).await.unwrap(),
        Outcome { revision: 2, changed: 1, unchanged: 1, warnings: vec![] }
    );
    let outcome = client.unsubscribe(one("not (add_order.shares >= 7 or add_order.price <= 5)")).await.unwrap();
    assert_eq!(outcome, Outcome { revision: 3, changed: 1, unchanged: 0, warnings: vec![] });
    assert_eq!(client.unsubscribe(one("trade.price > 2")).await.unwrap().unchanged, 1);
    assert_eq!(listed(&client, Some("pod1-host1")).await, [("pod1-host1".into(), "trade.price > 1".into())]);
    assert_eq!(listed(&client, Some("pod1-host2")).await, []);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_holds_back_what_it_cannot_take_and_says_so() {
    let network = network(Policy::default(), &[]);
    let running = Running::start(&folder("budget"), network.clone(), KeeperOptions::default());
    let client = running.client().await;
    client.subscribe(vec![subscription("pod1-host1", "trade.price > 1")]).await.unwrap();
    let (follower, mut table) = (running.follower("pod1-edge1"), table(&network));
    table.set_budget(Budget::of_size(200));
    let (tell, mut told) = tokio::sync::watch::channel((0, 0, 0));
    let task = tokio::spawn(async move {
        follower
            .follow(&mut table, |_, table| {
                tell.send_replace((table.revision(), table.rule_count(), table.held().len()));
            })
            .await;
    });
    told.wait_for(|told| *told == (1, 1, 0)).await.unwrap();
    let steps: Vec<String> =
        (1..20).map(|n| format!("add_order.price > {n} and add_order.shares == {}", 10 * n)).collect();
    let costly = subscription("pod1-host1", &steps.join(" or "));
    let revision = client.subscribe(vec![costly.clone()]).await.unwrap().revision;
    told.wait_for(|told| *told == (revision, 1, 1)).await.unwrap();
    // Others get what they want all the same.
    let revision = client.subscribe(vec![subscription("pod1-host2", "trade.price > 2")]).await.unwrap().revision;
    told.wait_for(|told| *told == (revision, 2, 1)).await.unwrap();
    let acknowledged = async |revision: u64| {
        loop {
            let mut switches = client.topology().await.unwrap().switches.into_iter();
            let switch = switches.find(|switch| switch.name == "pod1-edge1").unwrap();
            if switch.revision == revision {
                break switch;
            }
        }
    };
    let switch = acknowledged(revision).await;
    let beginning = "holds 1 rules back, whose subscribers get nothing through it; the first is `add_order.";
    assert!(switch.refusal.starts_with(beginning) && switch.refusal.contains("--budget"), "{}", switch.refusal);
    assert_eq!(switch.followers, 1);
    // Without what was too much nothing is held back.
    let revision = client.unsubscribe(vec![costly]).await.unwrap().revision;
    told.wait_for(|told| *told == (revision, 2, 0)).await.unwrap();
    assert_eq!(acknowledged(revision).await.refusal, "");
    task.abort();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused_and_change_nothing() {
    let options = KeeperOptions { most: 3, ..KeeperOptions::default() };
    let running = Running::start(&folder("wrong"), network(Policy::default(), &[]), options);
    let client = running.client().await;
    let good = subscription("pod1-host1", "trade.price > 1");
    let long = format!("true // {}", "x".repeat(70_000));
    for (host, filter, expected) in [
        ("pod1-host9", "true", "there is no host `pod1-host9`; did you mean `pod1-host"),
        ("", "true", "there is no host ``"),
        ("pod1-host1", "", "filter"),
        ("pod1-host1", "trade.prise > 1", "field `trade.prise` at `trade.prise`; did you mean `price`?"),
        ("pod1-host1", "trade.price > 1 : fwd(3)", "expected `;`, found `:`"),
        ("pod1-host1", "trade.price > 1 : fwd(3); true", "a subscription is a filter alone"),
        ("pod1-host1", "trade.price > 1\nand true", "several lines"),
        ("pod1-host1", "trade.price >", "error"),
        ("pod1-host1", &long, "70008 bytes; 65536 are possible"),
    ] {
        let list = vec![good.clone(), subscription(host, filter)];
        let error = client.subscribe(list).await.unwrap_err();
        let ClientError::Refused { status } = &error else { panic!("{error}") };
        let text = status.message();
        assert!(text.starts_with("subscription 2 of 2: "), "{text}");
        assert!(text.contains(expected) || expected == "error", "{text}");
    }
    let error = client.subscribe(vec![good.clone(); 10_001]).await.unwrap_err();
    assert!(error.to_string().contains("10000 are possible"), "{error}");
    let many: Vec<_> = (0..4).map(|price| subscription("pod2-host1", &format!("trade.price > {price}"))).collect();
    let error = client.subscribe(many.clone()).await.unwrap_err();
    assert!(
        error.to_string().contains("there are 0 and may be 3") || error.to_string().contains("may be 3"),
        "{error}"
    );
    assert_eq!(client.topology().await.unwrap().subscriptions, 0, "nothing of all this was made");
    client.subscribe(many[..3].to_vec()).await.unwrap();
    // What is there does not count again.
    client.subscribe(many[..3].to_vec()).await.unwrap();
    assert!(client.list(Some("nobody"), 0, 0).await.unwrap_err().to_string().contains("no host `nobody`"));

    let mut table = table(&network(Policy::default(), &[]));
    let error = running.follower("pod1-edge9").fetch(&mut table).await.unwrap_err();
    assert!(error.to_string().contains("there is no switch `pod1-edge9`"), "{error}");
    let name = running_switch();
    let other = Follower { formats: [0; 32], ..running.follower(&name) };
    let error = other.fetch(&mut table).await.unwrap_err();
    assert!(error.to_string().contains("not the controller's"), "{error}");
    running.stop().await;
}

fn running_switch() -> String {
    let topology = fat_tree(4).unwrap();
    topology.switch_name(topology.switches().next().unwrap()).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_see_every_change_in_order_and_slow_ones_are_told() {
    let logs = LogLimits { watch: 100_000, ..LogLimits::default() };
    let options = KeeperOptions { logs, ..KeeperOptions::default() };
    let running = Running::start(&folder("watch"), network(Policy::default(), &[]), options);
    let client = running.client().await;
    let (mut quick, mut slow) = (client.watch().await.unwrap(), client.watch().await.unwrap());
    assert_eq!(quick.message().await.unwrap().unwrap().revision, 0);
    assert_eq!(slow.message().await.unwrap().unwrap().revision, 0);
    // Comments make subscriptions large; the slow watcher's connection takes some of them.
    let padding = "x".repeat(50_000);
    for number in 1..=400_u64 {
        let filter = format!("trade.price > {number} // {padding}");
        client.subscribe(vec![subscription("pod1-host1", &filter)]).await.unwrap();
        let reply = quick.message().await.unwrap().unwrap();
        assert_eq!((reply.revision, reply.changes.len()), (number, 1));
        let change = reply.changes[0].subscription.as_ref().unwrap();
        assert!(reply.changes[0].subscribed && change.number == number && change.filter == filter);
    }
    client.unsubscribe(vec![subscription("pod1-host1", "trade.price > 7")]).await.unwrap();
    let reply = quick.message().await.unwrap().unwrap();
    assert!(reply.revision == 401 && !reply.changes[0].subscribed);
    assert_eq!(reply.changes[0].subscription.as_ref().unwrap().number, 7);
    let mut seen = 0;
    let told = loop {
        match slow.message().await {
            Ok(Some(reply)) => {
                assert_eq!(reply.revision, seen + reply.changes.len() as u64, "nothing is left out in between");
                seen = reply.revision;
            }
            other => break other.unwrap_err(),
        }
    };
    assert!(seen < 400 && told.message().contains("list the subscriptions and watch again"), "{seen}: {told}");
    // It starts again.
    assert_eq!(client.watch().await.unwrap().message().await.unwrap().unwrap().revision, 401);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_controller_ends_streams_and_gives_the_store_back() {
    let (folder, network) = (folder("end"), network(Policy::default(), &[]));
    let running = Running::start(&folder, network.clone(), KeeperOptions::default());
    let client = running.client().await;
    let mut watch = client.watch().await.unwrap();
    watch.message().await.unwrap();
    assert!(Store::open(&folder.join("store"), 8).unwrap_err().to_string().contains("is in use"));
    assert!(Listener::open(&running.address, None).unwrap_err().to_string().contains("another controller"));
    running.stop().await;
    assert!(watch.message().await.is_err());
    assert!(!folder.join("socket").exists());
    assert_eq!(Store::open(&folder.join("store"), 8).unwrap().1.identity, 7);
    let error = Client::connect(&Address::Unix(folder.join("socket")), None).await.unwrap_err();
    assert!(error.to_string().contains("cannot reach a controller"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_another_network_is_refused_or_cleared() {
    let (folder, mut network) = (folder("unfit"), network(Policy::default(), &[]));
    let running = Running::start(&folder, network.clone(), KeeperOptions::default());
    let client = running.client().await;
    let list = ["pod1-host1", "pod4-host4"].map(|host| subscription(host, "true"));
    client.subscribe(list.to_vec()).await.unwrap();
    running.stop().await;
    network.topology = fat_tree(2).unwrap();
    let open = || Store::open(&folder.join("store"), 8).unwrap();
    let refused = Keeper::start(network.clone(), open(), KeeperOptions::default());
    let Err(StartError::Unfit { count, host, reason, .. }) = refused else { panic!("it must not start") };
    assert!(count == 1 && host == "pod4-host4" && reason.contains("there is no host"), "{count} {host} {reason}");
    let options = KeeperOptions { drop_unfit: true, ..KeeperOptions::default() };
    let running = Running::start(&folder, network, options);
    let client = running.client().await;
    assert_eq!(listed(&client, None).await, [("pod1-host1".into(), "true".into())]);
    assert_eq!(client.topology().await.unwrap().revision, 3);
    running.stop().await;
    assert_eq!(open().1.subscriptions.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_topology_tells_who_follows() {
    let network = network(Policy::default(), &[]);
    let running = Running::start(&folder("topology"), network.clone(), KeeperOptions::default());
    let client = running.client().await;
    let found = client.topology().await.unwrap();
    assert_eq!((found.switches.len(), found.hosts.len()), (20, 16));
    let name = running_switch();
    let (follower, mut table) = (running.follower(&name), table(&network));
    let (tell, mut told) = tokio::sync::watch::channel(None);
    let task = tokio::spawn(async move {
        follower
            .follow(&mut table, |_, table| {
                tell.send_replace(Some(table.revision()));
            })
            .await;
    });
    told.wait_for(|at| *at == Some(0)).await.unwrap();
    let revision = client.subscribe(vec![subscription("pod1-host1", "true")]).await.unwrap().revision;
    told.wait_for(|at| *at == Some(revision)).await.unwrap();
    let mut changes = 0;
    loop {
        let found = client.topology().await.unwrap();
        let switch = found.switches.iter().find(|switch| switch.name == name).unwrap();
        assert_eq!(switch.followers, 1);
        if switch.revision == revision {
            break;
        }
        changes += 1;
        assert!(changes < 100_000, "the acknowledgement never comes");
    }
    task.abort();
    running.stop().await;
}
