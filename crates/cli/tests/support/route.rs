//! Two machines with a lossy router between them, and what machines of the examples bring from one to the other.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests write files")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weftwire_testbed::{Namespace, Payload, Running, sha256_of_file, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// The sender's machine, 10.78.1.2 behind its TUN device; a router that loses every tenth packet; the receiver's machine, 10.78.2.2.
pub struct Route {
    sender: Namespace,
    router: Namespace,
    receiver: Namespace,
}

/// What is to be brought by which programs of the examples.
pub struct Transfer<'a> {
    pub sender: &'a str,
    pub receiver: &'a str,
    pub bytes: u64,
    /// UDP ports of the sender and of the receiver.
    pub ports: [u16; 2],
    /// Arguments for the sender's `weft run`.
    pub arguments: &'a [&'a str],
}

impl<'a> Transfer<'a> {
    /// So many bytes, without further arguments.
    pub fn new(sender: &'a str, receiver: &'a str, bytes: u64) -> Transfer<'a> {
        Transfer { sender, receiver, bytes, ports: [4_000, 5_000], arguments: &[] }
    }
}

impl Route {
    pub fn build() -> Result<Route> {
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

    /// So many bytes get from one end to the other as they were.
    pub fn brings(&self, transfer: &Transfer<'_>) -> Result<()> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let sent = Payload::create(&folder.join("route-sent"), transfer.bytes, 1)?;
        let received = folder.join("route-received");
        if received.exists() {
            std::fs::remove_file(&received)?;
        }
        let name = |file: &Path| file.to_str().map(str::to_owned).context("the target folder's path is not UTF-8");

        let receiver = start(&self.receiver, transfer.receiver, &["--receive", &name(&received)?])?;
        let [source, destination] = transfer.ports;
        let endpoints = format!("10.78.1.2:{source}-10.78.2.2:{destination}/udp");
        let file = name(&sent.path)?;
        let arguments = [&["--connect", &endpoints, "--send", &file, "--exit-when-ended"], transfer.arguments].concat();
        let output = start(&self.sender, transfer.sender, &arguments)?.wait(Duration::from_secs(120))?;
        ensure!(output.status.success(), "the sender failed: {}{}", output.stdout, output.stderr);
        let output = receiver.stop()?;
        ensure!(output.status.success(), "the receiver failed: {}{}", output.stdout, output.stderr);

        let lost = self.router.exec("nft list counter inet weft_loss lost")?;
        ensure!(!lost.contains("packets 0 "), "nothing was lost, so nothing was tested: {lost}");
        let length = received.metadata()?.len();
        ensure!(length == sent.bytes, "{length} of {} bytes arrived", sent.bytes);
        ensure!(sha256_of_file(&received)? == sent.sha256, "the bytes that arrived are not those that were sent");
        Ok(())
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
