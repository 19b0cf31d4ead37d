//! The TCP of `examples/transports/tcp` against the kernel's, both ways, through a router that loses packets.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests write files")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use weftwire_testbed::{Namespace, Payload, Running, sha256_of_file, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
/// No connection here takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes each way.
const BYTES: u64 = 8_000_000;

/// The machine, 10.79.1.2 behind the TUN device of its host; a router; a host with the kernel's TCP, 10.79.2.1.
struct Route {
    machine: Namespace,
    _router: Namespace,
    kernel: Namespace,
}

impl Route {
    /// `lost` packets of 1,000 are lost on their way, each way.
    fn build(lost: u32) -> Result<Route> {
        let route = Route { machine: Namespace::new()?, _router: Namespace::new()?, kernel: Namespace::new()? };
        let Route { machine, _router: router, kernel } = &route;
        machine.join(("eth0", "02:00:00:00:00:01"), router, ("port1", "02:00:00:00:00:02"))?;
        router.join(("port2", "02:00:00:00:00:03"), kernel, ("eth0", "02:00:00:00:00:04"))?;
        // What the router loses is packets of the wire.
        for (host, interface) in [(machine, "eth0"), (router, "port1"), (router, "port2"), (kernel, "eth0")] {
            host.set_offloads(interface, false)?;
        }
        machine.exec("ip address add 10.79.10.1/24 dev eth0")?;
        machine.exec("ip tuntap add dev weft0 mode tun")?;
        machine.exec("ip link set weft0 up")?;
        machine.exec("ip route add 10.79.1.2/32 dev weft0")?;
        machine.exec("ip route add default via 10.79.10.2")?;
        machine.sysctl("net.ipv4.ip_forward", "1")?;
        router.exec("ip address add 10.79.10.2/24 dev port1")?;
        router.exec("ip address add 10.79.2.2/24 dev port2")?;
        router.exec("ip route add 10.79.1.2/32 via 10.79.10.1")?;
        router.sysctl("net.ipv4.ip_forward", "1")?;
        kernel.exec("ip address add 10.79.2.1/24 dev eth0")?;
        kernel.exec("ip route add default via 10.79.2.2")?;
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

    /// Starts `weft run` and waits until it holds its device.
    fn start(&self, more: &[&str]) -> Result<Running> {
        let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/tcp/tcp.xl");
        let image = image.to_str().context("the path of the example is not UTF-8")?;
        let host = &self.machine;
        let words = [WEFT, "run", image, "--name", host.name(), "--port", "1=tun:weft0"];
        let mut weft = host.spawn(&[&words, more].concat())?;
        wait_for("weft to take its TUN device", LIMIT, || {
            !weft.is_running() || host.exec("ip link show dev weft0").is_ok_and(|link| link.contains("LOWER_UP"))
        })?;
        Ok(weft)
    }
}

/// The kernel's side: sends a file, closes for sending, and reads to the end. The digest of what it read.
fn talk(stream: TcpStream, sent: &Path) -> Result<String> {
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(weftwire_testbed::exchange(stream, &std::fs::read(sent)?)?)
}

/// Both sides send a file at once; `connects`: the machine opens the connection.
fn exchange(lost: u32, connects: bool) -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft", "ethtool"]) else { return Ok(()) };
    let route = Route::build(lost)?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (ours, theirs) =
        (Payload::create(&folder.join("tcp-ours"), BYTES, 1)?, Payload::create(&folder.join("tcp-theirs"), BYTES, 2)?);
    let received = folder.join(format!("tcp-received-{lost}-{connects}"));
    if received.exists() {
        std::fs::remove_file(&received)?;
    }
    let name = |file: &Path| file.to_str().map(str::to_owned).context("the target folder's path is not UTF-8");
    let (send, receive) = (name(&ours.path)?, name(&received)?);
    let files = ["--send", &send, "--receive", &receive, "--exit-when-ended"];
    let (weft, digest) = if connects {
        let listener = route.kernel.enter(|| TcpListener::bind("10.79.2.1:80"))??;
        let weft = route.start(&[&files[..], &["--connect", "10.79.1.2:4000-10.79.2.1:80"]].concat())?;
        (weft, talk(listener.accept()?.0, &theirs.path)?)
    } else {
        let weft = route.start(&files)?;
        let stream = route.kernel.enter(|| TcpStream::connect("10.79.1.2:80"))??;
        (weft, talk(stream, &theirs.path)?)
    };
    ensure!(digest == ours.sha256, "the kernel read other bytes");
    wait_for("the last bytes", LIMIT, || received.metadata().is_ok_and(|file| file.len() == theirs.bytes))?;
    let said = weft.stop()?;
    ensure!(said.status.success(), "{}{}", said.stdout, said.stderr);
    ensure!(sha256_of_file(&received)? == theirs.sha256, "the machine read other bytes");
    for told in ["established", "finished"] {
        ensure!(said.stderr.contains(told), "{told} is not told: {}", said.stderr);
    }
    Ok(())
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_machine_connects_to_the_kernel() -> Result<()> {
    exchange(0, true)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_kernel_connects_to_the_machine() -> Result<()> {
    exchange(0, false)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_machine_connects_through_loss() -> Result<()> {
    exchange(20, true)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_kernel_connects_through_loss() -> Result<()> {
    exchange(20, false)
}

#[test]
fn a_port_that_nobody_listens_at_is_refused() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ethtool"]) else { return Ok(()) };
    let route = Route::build(0)?;
    let weft = route.start(&[])?;
    let refused = route.kernel.enter(|| TcpStream::connect("10.79.1.2:80"))?.map_err(|error| error.kind());
    ensure!(matches!(refused, Err(std::io::ErrorKind::ConnectionRefused)), "{refused:?}");
    ensure!(weft.stop()?.status.success());
    // The other way round: the kernel refuses, and the machine says so.
    let weft = route.start(&["--connect", "10.79.1.2:4000-10.79.2.1:81", "--exit-when-ended"])?;
    let said = weft.wait(LIMIT)?;
    ensure!(said.status.success() && said.stderr.contains("refused"), "{}", said.stderr);
    Ok(())
}

/// How many segments the kernel has got twice.
fn doubled(host: &Namespace) -> Result<u64> {
    let text = host.exec("cat /proc/net/netstat")?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let wanted = ["TCPDSACKOldSent", "TCPDSACKOfoSent"];
    let told = names.split(' ').zip(values.split(' ')).filter(|(name, _)| wanted.contains(name));
    told.map(|(_, value)| value.parse::<u64>().context("a count")).sum()
}

/// While the process is stopped acknowledgments wait for it, and timers become late: nothing of that is a loss. A machine that is busy holds
/// packets back on their way, too, which looks like one; not three times in a row.
#[test]
fn a_pause_of_the_process_is_no_loss() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["tc", "ethtool"]) else { return Ok(()) };
    let mut doubled = Vec::new();
    while doubled.len() < 3 {
        match sent_again_in_pauses()? {
            0 | 1 => return Ok(()),
            more => doubled.push(more),
        }
    }
    bail!("{doubled:?} segments came twice")
}

/// How many segments came twice in a transfer whose process was stopped four times.
fn sent_again_in_pauses() -> Result<u64> {
    let route = Route::build(0)?;
    // A window of 64 KiB takes some 13 ms.
    route._router.exec("tc qdisc add dev port2 root tbf rate 40mbit burst 32kb limit 4mb")?;
    route.kernel.sysctl("net.ipv4.tcp_rmem", "4096 65536 65536")?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (ours, theirs) = (
        Payload::create(&folder.join("tcp-paused"), 2 * BYTES, 3)?,
        Payload::create(&folder.join("tcp-pausing"), 1_000, 4)?,
    );
    let name = |file: &Path| file.to_str().map(str::to_owned).context("the target folder's path is not UTF-8");
    let (send, socket) = (name(&ours.path)?, name(&folder.join("tcp-paused.sock"))?);
    let listener = route.kernel.enter(|| TcpListener::bind("10.79.2.1:80"))??;
    let ends = ["--connect", "10.79.1.2:4000-10.79.2.1:80", "--send", &send, "--control", &socket];
    let mut weft = route.start(&ends)?;
    let stream = listener.accept()?.0;
    let talking = std::thread::spawn(move || talk(stream, &theirs.path).map_err(|error| error.to_string()));
    for pause in [50, 200, 50, 200] {
        std::thread::sleep(Duration::from_millis(150));
        weft.pause(Duration::from_millis(pause));
    }
    let flow = route.machine.exec_within(LIMIT, &[WEFT, "flows", "--control", &socket, "--json", "show", "1"])?;
    let flow: serde_json::Value = serde_json::from_str(&flow)?;
    let registers = flow["registers"].as_array().context("registers")?;
    let register = |name: &str| registers.iter().find(|it| it["name"] == name).map(|it| &it["value"]);
    ensure!(register("cubic.before_loss") == Some(&0.into()), "the window was reduced: {registers:?}");
    let digest = talking.join().ok().context("the thread ends")?;
    ensure!(digest.as_deref() == Ok(&ours.sha256), "the kernel read other bytes: {digest:?}");
    let doubled = doubled(&route.kernel)?;
    ensure!(weft.interrupt()?.status.success());
    Ok(doubled)
}
