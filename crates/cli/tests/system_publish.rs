//! Publish/subscribe between kernels: unmodified clients of Kafka at either end of a switch that knows topics and keys.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_publish::client::{GROUP, Publisher, Subscriber};
use weftwire_publish::message::Message;
use weftwire_publish::topic::Topic;
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FORMAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions/publish.p4");
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka/Client.java");
const LIMIT: Duration = Duration::from_secs(60);
/// Each host has its own broker.
const BROKER: &str = "127.0.0.1:9092";

/// Hosts around a switch. Each host's interface is `eth0` with the address 10.0.0.N, the switch's port N `portN`.
struct Network {
    hosts: Vec<Namespace>,
    _middle: Namespace,
    switch: Running,
    folder: PathBuf,
}

impl Network {
    /// A switch with these rules and so many hosts.
    fn new(name: &str, rules: &str, hosts: usize) -> Result<Network> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // It may be there from the last run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let (rules_file, control) = (folder.join("some.rules"), folder.join("control.sock"));
        fs::write(&rules_file, rules)?;
        let middle = Namespace::new()?;
        let path = |path: &Path| path.to_str().map(str::to_owned).context("the build's folder has a plain name");
        let (rules_file, control_path) = (path(&rules_file)?, path(&control)?);
        let mut words: Vec<String> =
            [WEFT, "subs", "run", "--format", FORMAT, "--keep-privileges"].map(Into::into).into();
        words.extend(["--rules".into(), rules_file, "--control".into(), control_path]);
        let mut all = Vec::new();
        for number in 1..=hosts {
            let (host, port) = (Namespace::new()?, format!("port{number}"));
            host.join(
                ("eth0", &format!("02:00:00:00:00:0{number}")),
                &middle,
                (&port, &format!("02:00:00:00:01:0{number}")),
            )?;
            host.exec(&format!("ip address add 10.0.0.{number}/24 dev eth0"))?;
            words.extend(["--port".into(), format!("{number}={port}")]);
            all.push(host);
        }
        let switch = middle.spawn(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        wait_for("the switch", LIMIT, || control.exists())?;
        Ok(Network { hosts: all, _middle: middle, switch, folder })
    }

    /// Starts a bridge on a host, with some more options.
    fn bridge(&self, host: usize, options: &[&str]) -> Result<Running> {
        let local = format!("10.0.0.{host}");
        let words = [&[WEFT, "subs", "kafka", "--local", &local], options].concat();
        let running = self.hosts[host - 1].spawn(&words)?;
        let address = BROKER.parse()?;
        wait_for("a bridge", LIMIT, || {
            self.hosts[host - 1].connect(address, LIMIT).is_ok_and(|stream| stream.is_ok())
        })?;
        Ok(running)
    }

    /// Has kcat produce lines with keys, written `key:value`.
    fn produce(&self, host: usize, topic: &str, lines: &str) -> Result<()> {
        let file = self.folder.join(format!("{topic}.txt"));
        fs::write(&file, lines)?;
        let file = file.to_str().context("a plain name")?;
        self.hosts[host - 1].exec_within(LIMIT, &["kcat", "-P", "-b", BROKER, "-t", topic, "-K:", "-l", file])?;
        Ok(())
    }

    /// Has kcat consume so many records.
    fn consume(&self, host: usize, topic: &str, count: usize) -> Result<String> {
        let count = count.to_string();
        let words = ["kcat", "-C", "-q", "-b", BROKER, "-t", topic, "-o", "beginning", "-c", &count, "-f", "%k:%s\\n"];
        self.hosts[host - 1].exec_within(LIMIT, &words)
    }

    /// Ends a bridge and gives what it says it received.
    fn received(bridge: Running) -> Result<String> {
        let ended = bridge.interrupt()?;
        ensure!(ended.status.success(), "{}", ended.stderr);
        Ok(ended.stderr.lines().skip_while(|line| !line.contains(" records produced")).collect::<Vec<_>>().join("\n"))
    }
}

#[test]
fn kcat_talks_to_kcat_and_nobody_gets_what_he_did_not_ask_for() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["kcat"]) else { return Ok(()) };
    let rules = "
        publish.topic == \"orders\" and publish.key prefix \"eu-\" : fwd(2);
        publish.topic == \"payments\" : fwd(3);
        publish.number >= 100 : fwd(4);
    ";
    let network = Network::new("system-publish", rules, 4)?;
    let [_producer, reader, other, watcher] = &network.hosts[..] else { unreachable!("four were asked for") };
    let bridges = [
        network.bridge(1, &[])?,
        network.bridge(2, &["--topic", "orders"])?,
        network.bridge(3, &["--topics-from-network"])?,
    ];
    let mut subscriber = watcher.enter(|| Subscriber::open([10, 0, 0, 4].into(), GROUP))??;

    let keys = |zone: &str| (0..50).map(|number| format!("{zone}-{number}:order {number}\n")).collect::<String>();
    let before = other.counters("eth0")?.received_packets;
    network.produce(1, "orders", &(keys("us") + &keys("eu") + &keys("asia")))?;
    // A program with the library is as good a publisher.
    let mut publisher = network.hosts[0].enter(|| Publisher::open([10, 0, 0, 1].into(), GROUP))??;
    let order = Message { key: Some(b"eu-last"), number: 100, ..Message::new(Topic::new("orders")?, b"order 50") };
    publisher.publish(&Message { number: 99, key: Some(b"us"), ..order })?;
    publisher.publish(&order)?;

    ensure!(network.consume(2, "orders", 51)? == keys("eu") + "eu-last:order 50\n");
    let mut watched = Vec::new();
    while watched.is_empty() {
        subscriber.receive(LIMIT, |message, _| watched.push((message.number, message.sequence)))?;
    }
    ensure!(watched == [(100, 1)], "{watched:?}");
    ensure!(other.counters("eth0")?.received_packets == before, "orders came where payments were asked for");

    network.produce(1, "payments", "one:1\n")?;
    ensure!(network.consume(3, "payments", 1)? == "one:1\n");
    // What a bridge's own clients produce, others of its clients consume.
    ensure!(network.consume(1, "payments", 1)? == "one:1\n");
    // Two members of a group, one after the other, get each record once.
    let group = |count: &str| {
        let words =
            ["kcat", "-q", "-b", BROKER, "-G", "readers", "-X", "auto.offset.reset=earliest", "-c", count, "orders"];
        reader.exec_within(LIMIT, &words)
    };
    ensure!(group("20")?.lines().count() == 20);
    ensure!(group("31")?.lines().last() == Some("order 50"), "the group goes on where it stopped");

    let [first, second, third] = bridges.map(Network::received);
    let first = first?;
    ensure!(first.starts_with("151 records produced, 0 received"), "{first}");
    let second = second?;
    ensure!(second.starts_with("0 records produced, 51 received"), "{second}");
    let third = third?;
    ensure!(third == "0 records produced, 1 received from the network", "{third}");
    ensure!(network.switch.interrupt()?.status.success());
    Ok(())
}

#[test]
fn the_java_client_produces_and_consumes() -> Result<()> {
    let jars = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("kafka");
    let client_jar = jars.join("kafka-clients.jar");
    let needed = ["javac", client_jar.to_str().context("a plain name")?];
    let Some(_turn) = skip_unless_root(&needed) else { return Ok(()) };
    let network = Network::new("system-publish-java", "publish.topic == \"java\" : fwd(2);", 2)?;
    let bridges = [network.bridge(1, &[])?, network.bridge(2, &["--topic", "java"])?];
    let class_path = format!("{}/*", jars.display());
    let client = |host: usize, what: &str| {
        let words = ["java", "-cp", &class_path, CLIENT, BROKER, what, "java", "200"];
        network.hosts[host - 1].exec_within(LIMIT, &words)
    };
    let said = client(1, "produce")?;
    ensure!(said.trim() == "RecordTooLargeException", "{said}");
    let consumed = client(2, "consume")?;
    let wanted: String = (0..200).map(|number| format!("key-{number} value-{number}\n")).collect();
    ensure!(consumed == wanted + "committed 200\n", "{consumed}");
    let [first, second] = bridges.map(Network::received);
    let first = first?;
    ensure!(
        first == "200 records produced, 0 received from the network\n1 batches with a record that fits no packet",
        "{first}"
    );
    ensure!(second? == "0 records produced, 200 received from the network");
    Ok(())
}
