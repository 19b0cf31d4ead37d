//! The two ends of the ARQ transport, and those of the steps that go on from there, on two machines with a router between them
//! that loses every tenth packet.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests write files")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weftwire_testbed::{Namespace, Payload, Running, sha256_of_file, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// The sender's machine, 10.78.1.2 behind its TUN device; a lossy router; the receiver's machine, 10.78.2.2.
struct Route {
    sender: Namespace,
    router: Namespace,
    receiver: Namespace,
}

impl Route {
    fn build() -> Result<Route> {
        let path = Route { sender: Namespace::new()?, router: Namespace::new()?, receiver: Namespace::new()? };
        let Route { sender, router, receiver } = &path;
        sender.join(("eth0", "02:00:00:00:00:01"), router, ("port1", "02:00:00:00:00:02"))?;
        router.join(("port2", "02:00:00:00:00:03"), receiver, ("eth0", "02:00:00:00:00:04"))?;
        for (host, own, port, gateway, machine) in [
            (sender, "10.78.10.1", "port1", "10.78.10.2", "10.78.1.2"),
            (receiver, "10.78.20.1", "port2", "10.78.20.2", "10.78.2.2"),
        ] {
            host.exec(&format!("ip address add {own}/24 dev eth0"))?;
            host.exec("ip tuntap add dev weft0 mode tun")?;
            host.exec("ip link set weft0 up")?;
            host.exec(&format!("ip route add {machine}/32 dev weft0"))?;
            host.exec(&format!("ip route add default via {gateway}"))?;
            host.sysctl("net.ipv4.ip_forward", "1")?;
            router.exec(&format!("ip address add {gateway}/24 dev {port}"))?;
            router.exec(&format!("ip route add {machine}/32 via {own}"))?;
        }
        router.sysctl("net.ipv4.ip_forward", "1")?;
        router.nft(
            "table inet weft_loss {
                counter lost { }
                chain forwarding {
                    type filter hook forward priority 0
                    numgen random mod 10 == 0 counter name lost drop
                }
            }",
        )?;
        Ok(path)
    }
}

/// Starts `weft run` on the host's TUN device and waits until it holds the device.
fn start(host: &Namespace, example: &str, more: &[&str]) -> Result<Running> {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    let image = image.to_str().context("the path of the example is not UTF-8")?;
    let words = [WEFT, "run", image, "--name", host.name(), "--port", "1=tun:weft0"];
    let mut weft = host.spawn(&[&words, more].concat())?;
    let attached = wait_for("weft to take its TUN device", Duration::from_secs(10), || {
        !weft.is_running() || host.exec("ip link show dev weft0").is_ok_and(|link| link.contains("LOWER_UP"))
    });
    match attached {
        Ok(()) => Ok(weft),
        Err(error) => {
            let output = weft.stop()?;
            Err(error.context(format!("{}{}", output.stdout, output.stderr)))
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn a_megabyte_arrives_through_heavy_loss() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    arrives(&Route::build()?, "arq-sender.xl", "arq-receiver.xl", 1_000_000)
}

/// The steps of the chapter "Write your own transport".
#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn each_step_to_a_transport_of_ones_own_brings_all() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    let path = Route::build()?;
    for (sender, receiver) in
        [("wait", "in-order"), ("window", "in-order"), ("selective", "any-order"), ("rate", "any-order")]
    {
        let [sender, receiver] = [sender, receiver].map(|name| format!("transports/own/{name}.xl"));
        arrives(&path, &sender, &receiver, 150_000).with_context(|| sender)?;
    }
    Ok(())
}

/// So many bytes get from one end to the other as they were.
fn arrives(path: &Route, sending: &str, receiving: &str, bytes: u64) -> Result<()> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let sent = Payload::create(&folder.join("arq-sent"), bytes, 1)?;
    let received = folder.join("arq-received");
    if received.exists() {
        std::fs::remove_file(&received)?;
    }
    let name = |file: &Path| file.to_str().map(str::to_owned).context("the target folder's path is not UTF-8");

    let receiver = start(&path.receiver, receiving, &["--receive", &name(&received)?])?;
    let endpoints = "10.78.1.2:4000-10.78.2.2:5000/udp";
    let arguments = ["--connect", endpoints, "--send", &name(&sent.path)?, "--exit-when-ended"];
    let output = start(&path.sender, sending, &arguments)?.wait(Duration::from_secs(120))?;
    ensure!(output.status.success(), "the sender failed: {}{}", output.stdout, output.stderr);
    let output = receiver.stop()?;
    ensure!(output.status.success(), "the receiver failed: {}{}", output.stdout, output.stderr);

    let lost = path.router.exec("nft list counter inet weft_loss lost")?;
    ensure!(!lost.contains("packets 0 "), "nothing was lost, so nothing was tested: {lost}");
    ensure!(received.metadata()?.len() == sent.bytes, "{} of {} bytes arrived", received.metadata()?.len(), sent.bytes);
    ensure!(sha256_of_file(&received)? == sent.sha256, "the bytes that arrived are not those that were sent");
    Ok(())
}
