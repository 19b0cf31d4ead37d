//! Service chains on real hosts: curl, nginx and iperf3 through boxes that are kernels, with an agent beside each host. No host knows of it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "system tests start programs and look at files"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weftwire_testbed::{Namespace, Nginx, Payload, Running, sha256_of_file, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const LIMIT: Duration = Duration::from_secs(60);
const BYTES: u64 = 64 << 20;

/// What a box does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Box {
    /// It forwards.
    Router,
    /// It forwards what belongs to connections that it has seen from their SYN, with sequence numbers in their windows.
    Firewall,
    /// It forwards from its own address.
    Nat,
}

/// Client, boxes and server around a router; between each of them and the router an agent.
struct Hosts {
    /// The router.
    core: Namespace,
    hosts: Vec<Namespace>,
    agents: Vec<Running>,
    /// Where the agents are.
    sides: Vec<Namespace>,
    folder: PathBuf,
}

/// The address of a host, by its number from 1.
fn address(number: usize) -> String {
    format!("10.44.{number}.2")
}

impl Hosts {
    /// The client's agent sends all sessions through the boxes that `through` names by their agents.
    fn build(name: &str, boxes: &[Box], through: &[usize], offloads: bool) -> Result<Hosts> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chain-{name}"));
        fs::create_dir_all(&folder)?;
        let core = Namespace::new()?;
        core.sysctl("net.ipv4.ip_forward", "1")?;
        // What has the session's own port on the network belongs to no subsession.
        core.nft(
            "table inet weft_chain {
                counter plain { }
                counter sub { }
                chain forward {
                    type filter hook forward priority 0
                    tcp dport 80 counter name plain
                    tcp dport 5201 counter name plain
                    tcp dport 61000-64999 counter name sub
                }
            }",
        )?;
        let count = boxes.len() + 2;
        let (mut hosts, mut sides, mut agents) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1..=count {
            let (host, side) = (Namespace::new()?, Namespace::new()?);
            let mac = |end: usize| format!("02:00:00:00:0{number}:0{end}");
            host.join(("eth0", &mac(1)), &side, ("host", &mac(2)))?;
            side.join(("net", &mac(3)), &core, (&format!("link{number}"), &mac(4)))?;
            for (namespace, interface) in
                [(&host, "eth0"), (&side, "host"), (&side, "net"), (&core, &*format!("link{number}"))]
            {
                namespace.set_offloads(interface, offloads)?;
            }
            core.exec(&format!("ip address add 10.44.{number}.1/24 dev link{number}"))?;
            host.exec(&format!("ip address add {}/24 dev eth0", address(number)))?;
            host.exec(&format!("ip route add default via 10.44.{number}.1"))?;
            if let Some(kind) = boxes.get(number.wrapping_sub(2)).filter(|_| number < count) {
                set_up_box(&host, *kind)?;
            }
            let path = folder.join(format!("agent-{number}.toml"));
            fs::write(&path, configuration(number, count, through))?;
            // Names of runs are the machine's.
            let words = [
                WEFT,
                "chain",
                "agent",
                path.to_str().context("the folder's path is not UTF-8")?,
                "--name",
                side.name(),
                "--port",
                "1=host",
                "--port",
                "2=net",
            ];
            let mut agent = side.spawn(&words)?;
            agent.wait_for_control(side.name())?;
            ensure!(agent.is_running(), "agent {number} has ended: {}", agent.stop()?.stderr);
            agents.push(agent);
            hosts.push(host);
            sides.push(side);
        }
        Ok(Hosts { core, hosts, agents, sides, folder })
    }

    fn client(&self) -> &Namespace {
        &self.hosts[0]
    }

    fn server(&self) -> &Namespace {
        &self.hosts[self.hosts.len() - 1]
    }

    /// Interrupts the agents; what each of them said at its end.
    fn end(self) -> Result<Vec<String>> {
        let end = |agent: Running| {
            let output = agent.interrupt()?;
            ensure!(output.status.success(), "{output:?}");
            Ok(output.stderr)
        };
        self.agents.into_iter().map(end).collect()
    }
}

fn set_up_box(host: &Namespace, kind: Box) -> Result<()> {
    host.sysctl("net.ipv4.ip_forward", "1")?;
    for key in ["all", "default", "eth0"] {
        // Packets leave by the interface that they come by, which is no mistake here.
        host.sysctl(&format!("net.ipv4.conf.{key}.send_redirects"), "0")?;
    }
    host.nft(
        "table inet weft_count {
            counter right { }
            counter left { }
            chain forward {
                type filter hook forward priority 10
                tcp dport { 80, 5201 } counter name right
                tcp sport { 80, 5201 } counter name left
            }
        }",
    )?;
    match kind {
        Box::Router => {}
        Box::Firewall => {
            host.exec("iptables -P FORWARD DROP")?;
            host.exec("iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP")?;
            host.exec("iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT")?;
            host.exec("iptables -A FORWARD -p tcp --syn -s 10.44.0.0/16 -m conntrack --ctstate NEW -j ACCEPT")?;
            host.sysctl("net.netfilter.nf_conntrack_tcp_loose", "0")?;
            host.sysctl("net.netfilter.nf_conntrack_tcp_be_liberal", "0")?;
        }
        Box::Nat => {
            host.exec("iptables -t nat -A POSTROUTING -o eth0 -p tcp -j MASQUERADE --to-ports 20000-29999")?;
        }
    }
    Ok(())
}

/// The configuration of an agent.
fn configuration(own: usize, count: usize, through: &[usize]) -> String {
    let mut text = format!("agent = {own}\n");
    for number in 1..=count {
        let _ = write!(text, "[[agents]]\nnumber = {number}\naddresses = [\"{}\"]\n", address(number));
    }
    text += "[[keys]]\nnumber = 1\nsecret = \"of this test\"\n";
    if own == 1 {
        let boxes: Vec<String> = through.iter().map(ToString::to_string).collect();
        let _ = write!(text, "[[policies]]\ndestination = \"{}\"\nboxes = [{}]\n", address(count), boxes.join(", "));
    }
    text
}

/// Packets that an nftables counter has counted.
fn counted(host: &Namespace, table: &str, counter: &str) -> Result<u64> {
    let text = host.exec(&format!("nft list counter inet {table} {counter}"))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
    words.nth(1).and_then(|count| count.parse().ok()).with_context(|| format!("no packets are counted: {text}"))
}

fn through(name: &str, boxes: &[Box], offloads: bool) -> Result<()> {
    let all: Vec<usize> = (2..boxes.len() + 2).collect();
    let hosts = Hosts::build(name, boxes, &all, offloads)?;
    let payload = Payload::create(&hosts.folder.join("payload"), BYTES, 7)?;
    let server = address(boxes.len() + 2);
    let nginx = Nginx::start(hosts.server(), &[&payload])?;
    let received = hosts.folder.join("received");
    let target = received.to_str().context("the folder's path is not UTF-8")?;
    let url = format!("http://{server}/payload");
    hosts
        .client()
        .exec_within(LIMIT, &["curl", "--silent", "--show-error", "--fail", "--max-time", "50", "-o", target, &url])?;
    ensure!(sha256_of_file(&received)? == payload.sha256, "other bytes came");
    drop(nginx);

    let mut speeds = Vec::new();
    for reverse in [None, Some("--reverse")] {
        let listening = hosts.server().spawn(&["iperf3", "--server", "--one-off"])?;
        wait_for("iperf3 to listen", LIMIT, || {
            hosts.server().exec("ss -Hltn sport = :5201").is_ok_and(|text| !text.is_empty())
        })?;
        let mut words = vec!["iperf3", "--client", &server, "--time", "2", "--json"];
        words.extend(reverse);
        let report: serde_json::Value = serde_json::from_str(&hosts.client().exec_within(LIMIT, &words)?)?;
        let bits = report["end"]["sum_received"]["bits_per_second"].as_f64().context("iperf3 tells no speed")?;
        ensure!(bits > 1e6, "{bits} bit/s");
        speeds.push(bits / 1e6);
        listening.wait(LIMIT)?;
    }

    ensure!(counted(&hosts.core, "weft_chain", "plain")? == 0, "packets of the session itself were on the network");
    let on_network = counted(&hosts.core, "weft_chain", "sub")?;
    ensure!(on_network > 1_000, "{on_network} packets of subsessions");
    let mut passed = Vec::new();
    for host in &hosts.hosts[1..=boxes.len()] {
        let counts = [counted(host, "weft_count", "right")?, counted(host, "weft_count", "left")?];
        ensure!(counts.iter().all(|count| *count > 100), "{counts:?} packets passed through a box");
        passed.push(counts);
    }
    let said = hosts.end()?;
    println!(
        "{boxes:?}, offloads {offloads}: {speeds:.0?} Mbit/s to and from the server; {passed:?} packets right and left in boxes"
    );
    println!("{}", said[0]);
    Ok(())
}

#[test]
fn programs_work_through_chains() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft", "iptables", "ethtool", "curl", "nginx", "iperf3", "ss"]) else {
        return Ok(());
    };
    let chains: [(&str, &[Box], bool); 6] = [
        ("none", &[], true),
        ("router", &[Box::Router], true),
        ("plain", &[Box::Router, Box::Router], false),
        ("firewall", &[Box::Firewall], true),
        ("nat", &[Box::Nat], true),
        ("both", &[Box::Firewall, Box::Nat], true),
    ];
    for (name, boxes, offloads) in chains {
        through(name, boxes, offloads).with_context(|| format!("{boxes:?}, offloads {offloads}"))?;
    }
    Ok(())
}

/// The client's agent: what it is asked, and what it has counted.
fn ask(hosts: &Hosts, words: &str) -> Result<serde_json::Value> {
    let control = format!("/run/weft/runs/{}/control.sock", hosts.sides[0].name());
    let text = hosts.sides[0].exec(&format!("{WEFT} flows {words} --json --control {control}"))?;
    Ok(serde_json::from_str(&text)?)
}

fn count(hosts: &Hosts, name: &str) -> Result<u64> {
    let counters = ask(hosts, "counters")?;
    let rows = counters["rows"].as_array().context("no rows")?;
    let found = rows.iter().find(|row| row[0] == name).and_then(|row| row[1].as_u64());
    Ok(found.unwrap_or(0))
}

/// A download whose chain changes.
struct Download<'a> {
    name: &'a str,
    boxes: &'a [Box],
    offloads: bool,
    /// One of a hundred packets is lost on each way between two agents.
    loses: bool,
    /// Mebibytes, and how many of them a second at most.
    size: u64,
    rate: u64,
    changes: u64,
}

/// A download goes from chain to chain, over boxes that follow connections strictly, and over none.
fn changes(download: &Download<'_>) -> Result<()> {
    let Download { name, boxes, offloads, loses, size, rate, changes } = *download;
    let hosts = Hosts::build(name, boxes, &[], offloads)?;
    if loses {
        hosts.core.nft(
            "table inet weft_loss {
                chain forward {
                    type filter hook forward priority 1
                    meta l4proto tcp numgen random mod 100 0 drop
                }
            }",
        )?;
    }
    let payload = Payload::create(&hosts.folder.join("payload"), size << 20, 7)?;
    let server = boxes.len() + 2;
    let _nginx = Nginx::start(hosts.server(), &[&payload])?;
    let received = hosts.folder.join("received");
    let target = received.to_str().context("the folder's path is not UTF-8")?;
    let url = format!("http://{}/payload", address(server));
    let rate = format!("{rate}M");
    let words =
        ["curl", "--silent", "--show-error", "--fail", "--limit-rate", &rate, "--max-time", "580", "-o", target, &url];
    let download = hosts.client().spawn(&words)?;
    let mut flow = None;
    wait_for("the session", LIMIT, || {
        let flows = ask(&hosts, "list").unwrap_or_default();
        flow = flows.as_array().and_then(|flows| flows.iter().find(|flow| flow["state"] == "open")?["flow"].as_u64());
        flow.is_some()
    })?;
    let flow = flow.context("there is no session")?;
    let control = format!("/run/weft/runs/{}/control.sock", hosts.sides[0].name());
    // Each box alone, then none, and so on.
    let chains: Vec<Vec<usize>> = (0..boxes.len()).map(|at| vec![at + 2]).chain([Vec::new()]).collect();
    for (turn, chain) in (0..changes).zip(chains.iter().cycle()) {
        let between: Vec<String> = chain.iter().map(ToString::to_string).collect();
        let between = if chain.is_empty() { String::new() } else { format!("--boxes {}", between.join(",")) };
        hosts.sides[0].exec(&format!("{WEFT} chain change {flow} --right {server} {between} --control {control}"))?;
        let made = wait_for("the change", LIMIT, || count(&hosts, "changes_made").is_ok_and(|made| made > turn));
        made.with_context(|| format!("change {turn} to {chain:?}: {:?}", ask(&hosts, "counters")))?;
    }
    let output = download.wait(10 * LIMIT)?;
    ensure!(output.status.success(), "{output:?}");
    ensure!(sha256_of_file(&received)? == payload.sha256, "other bytes came");
    let mut passed = Vec::new();
    for host in &hosts.hosts[1..=boxes.len()] {
        let counts = [counted(host, "weft_count", "right")?, counted(host, "weft_count", "left")?];
        ensure!(counts.iter().all(|count| *count > 10), "{counts:?} packets passed through a box");
        passed.push(counts);
    }
    ensure!(counted(&hosts.core, "weft_chain", "plain")? == 0, "packets of the session itself were on the network");
    let said = hosts.end()?;
    println!("{boxes:?}, offloads {offloads}: {changes} changes; {passed:?} packets right and left in boxes");
    println!("{}", said[0]);
    Ok(())
}

#[test]
fn chains_change_under_a_download() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft", "iptables", "ethtool", "curl", "nginx"]) else {
        return Ok(());
    };
    let short = Download {
        name: "strict",
        boxes: &[Box::Firewall, Box::Router],
        offloads: false,
        loses: false,
        size: 80,
        rate: 8,
        changes: 18,
    };
    let worlds = [
        Download { name: "strict-long", boxes: &[Box::Firewall, Box::Firewall], offloads: true, ..short },
        Download { name: "lossy", size: 48, loses: true, ..short },
        Download { name: "translator", boxes: &[Box::Nat, Box::Firewall], size: 48, offloads: true, ..short },
        short,
    ];
    for world in worlds {
        changes(&world).with_context(|| format!("{}: {:?}", world.name, world.boxes))?;
    }
    Ok(())
}

#[test]
#[ignore = "takes minutes"]
fn chains_change_hundreds_of_times() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft", "iptables", "ethtool", "curl", "nginx"]) else {
        return Ok(());
    };
    // As fast as it goes, and at 25 MB/s.
    for (name, size, rate) in [("long-fast", 6 << 10, 10_000), ("long-paced", 2 << 10, 24)] {
        let boxes = &[Box::Firewall, Box::Firewall];
        changes(&Download { name, boxes, offloads: true, loses: false, size, rate, changes: 300 })?;
    }
    Ok(())
}
