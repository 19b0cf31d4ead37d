//! ns-3 as a peer. The simulator: the same overloaded dumbbell gives the same deliveries, drops and queue. The TCP of
//! `examples/transports/tcp`: it exchanges files with ns-3's TCP, which runs in real time on a TAP device.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests write files")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use weftwire_testbed::{
    Namespace, Ns3, Payload, ns3_program, overload_network, run, sha256_of_file, skip_unless_installed,
    skip_unless_root, wait_for,
};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
const RATE: u64 = 10_000_000;
const SECONDS: u64 = 10;

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_overloaded_dumbbell_is_that_of_ns3() -> Result<()> {
    let Some(_turn) = skip_unless_installed(&["c++", "ns3++"]) else { return Ok(()) };
    in_folder("overload", compare)
}

/// Does something with a folder of its own.
fn in_folder(name: &str, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("weft-ns3-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let worked = work(&folder);
    std::fs::remove_dir_all(&folder)?;
    worked
}

fn compare(folder: &Path) -> Result<()> {
    let peer = Ns3::build(folder)?.overload(RATE, SECONDS, true)?;

    let (file, out) = (folder.join("overload.toml"), folder.join("out"));
    std::fs::write(&file, overload_network(RATE, SECONDS))?;
    let mut command = Command::new(WEFT);
    command.arg("sim").arg(&file).arg("--out").arg(&out);
    run(command, Duration::from_secs(60))?;
    let results: Value = serde_json::from_slice(&std::fs::read(out.join("results.json"))?)?;

    let delivered: Vec<u64> = results["flows"]
        .as_array()
        .context("no flows")?
        .iter()
        .map(|flow| flow["delivered"].as_u64().unwrap_or(0) / 958)
        .collect();
    let links = results["links"].as_array().context("no links")?;
    let bottleneck = links.iter().find(|link| link["rate"].as_u64() == Some(RATE)).context("no bottleneck")?;
    let count = |name: &str| bottleneck["counts"][name].as_f64().unwrap_or(f64::NAN);
    let frames = count("queue_bytes_integral") / 1000.0 / (SECONDS as f64 * 1e9);
    println!("ns-3 {peer:?}\nweft received {delivered:?}, drops {}, queue mean {frames}", count("dropped_full"));

    // Which flow's packets meet a full queue is decided by which of two events at one instant comes first.
    let total: u64 = delivered.iter().sum();
    let expected: u64 = peer.received.iter().sum();
    ensure!(total.abs_diff(expected) <= 5, "{total} datagrams delivered, {expected} by ns-3");
    ensure!((count("dropped_full") - peer.drops as f64).abs() <= 5.0, "drops");
    ensure!((frames - peer.queue_mean).abs() < 0.5, "the mean queue is {frames}, ns-3's {}", peer.queue_mean);
    ensure!(count("queue_packets_max") == peer.queue_max as f64, "the longest queue");
    Ok(())
}

/// No connection takes longer.
const LIMIT: Duration = Duration::from_secs(120);
/// Each way.
const BYTES: u64 = 3_000_000;

/// The machine, 10.79.1.2 behind the TUN device of its host; a router, and ns-3's host, 10.79.2.1, behind the router's TAP device.
struct Route {
    machine: Namespace,
    router: Namespace,
}

impl Route {
    /// `lost` packets of 1,000 are lost on their way, each way.
    fn build(lost: u32) -> Result<Route> {
        let route = Route { machine: Namespace::new()?, router: Namespace::new()? };
        let Route { machine, router } = &route;
        machine.join(("eth0", "02:00:00:00:00:01"), router, ("port1", "02:00:00:00:00:02"))?;
        // What is lost is packets of the wire.
        machine.set_offloads("eth0", false)?;
        router.set_offloads("port1", false)?;
        machine.exec("ip address add 10.79.10.1/24 dev eth0")?;
        machine.exec("ip tuntap add dev weft0 mode tun")?;
        machine.exec("ip link set weft0 up")?;
        machine.exec("ip route add 10.79.1.2/32 dev weft0")?;
        machine.exec("ip route add default via 10.79.10.2")?;
        router.exec("ip address add 10.79.10.2/24 dev port1")?;
        router.exec("ip tuntap add dev tap0 mode tap")?;
        router.exec("ip address add 10.79.2.2/24 dev tap0")?;
        router.exec("ip link set tap0 up")?;
        router.exec("ip route add 10.79.1.2/32 via 10.79.10.1")?;
        for host in [machine, router] {
            host.sysctl("net.ipv4.ip_forward", "1")?;
        }
        if lost > 0 {
            router.nft(&format!(
                "table inet weft_loss {{
                    chain forwarding {{
                        type filter hook forward priority 0
                        numgen random mod 1000 < {lost} drop
                    }}
                }}"
            ))?;
        }
        Ok(route)
    }

    /// Brings files over both ways at once; `connects`: the machine opens the connection.
    fn exchange(&self, peer: &Path, folder: &Path, control: &str, connects: bool) -> Result<()> {
        let ours = Payload::create(&folder.join("ours"), BYTES, 1)?;
        let theirs = Payload::create(&folder.join("theirs"), BYTES + 1, 2)?;
        let (received, answer) = (folder.join("received"), folder.join("answer"));
        let start = || {
            let command = if connects { "cat" } else { "listen" };
            let ends = if connects { "10.79.1.2:4000-10.79.2.1:80" } else { "10.79.1.2:80" };
            let line = format!(
                "exec {WEFT} {command} {TCP} --port 1=tun:weft0 --name {} {ends} < {} > {}",
                self.machine.name(),
                ours.path.display(),
                received.display()
            );
            self.machine.spawn(&["sh", "-c", &line])
        };
        let begin = || {
            let ends = if connects { "listen 80" } else { "connect 10.79.1.2 80" };
            let [peer, file, answer] = [peer, &theirs.path, &answer].map(Path::display);
            let line = format!("exec {peer} tap0 10.79.2.1 10.79.2.2 {control} {file} {answer} {ends}");
            self.router.spawn(&["sh", "-c", &line])
        };
        let (weft, ns3) = if connects {
            // Once it has its device, nothing is refused: what comes before ns-3 listens waits there.
            let mut ns3 = begin()?;
            let is_up = || self.router.exec("ip link show dev tap0").is_ok_and(|link| link.contains("LOWER_UP"));
            wait_for("ns-3 to take its TAP device", LIMIT, || !ns3.is_running() || is_up())?;
            (start()?, ns3)
        } else {
            let mut weft = start()?;
            weft.wait_for_control(self.machine.name())?;
            (weft, begin()?)
        };
        let (said, told) = (weft.wait(LIMIT)?, ns3.wait(LIMIT)?);
        ensure!(said.status.success() && said.stderr.is_empty() && told.status.success(), "{said:?} {told:?}");
        ensure!(sha256_of_file(&answer)? == ours.sha256, "ns-3 read other bytes");
        ensure!(sha256_of_file(&received)? == theirs.sha256, "the machine read other bytes");
        Ok(())
    }
}

#[test]
#[ignore = "compiles a program against ns-3: make test-long"]
fn the_machine_exchanges_files_with_ns3() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["c++", "ns3++", "nft", "ethtool"]) else { return Ok(()) };
    in_folder("peer", |folder| {
        let peer = ns3_program("peer", folder)?;
        for lost in [0, 20] {
            for (connects, control) in [(true, "ns3::TcpCubic"), (false, "ns3::TcpNewReno")] {
                let exchanged = Route::build(lost)?.exchange(&peer, folder, control, connects);
                exchanged
                    .with_context(|| format!("{lost} of 1,000 lost, {control}, the machine connects: {connects}"))?;
            }
        }
        Ok(())
    })
}
