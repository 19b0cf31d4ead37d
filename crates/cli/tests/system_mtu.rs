//! The TCP of `examples/transports/tcp` and the kernel's over a way with a narrow link in its middle: machine - router - router - kernel.
//! The routers say what is too large by ICMP, or are silent about it (a black hole, RFC 2923).

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests open sockets and files")]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weftwire_testbed::{Namespace, Payload, sha256_of_file, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
const LIMIT: Duration = Duration::from_secs(60);
/// Each way.
const BYTES: u64 = 6_000_000;
/// Packets that are too large, until an end knows how large they may be: a flight or two, what is sent again of it, and with silent routers
/// the probes that find out.
const UNTIL_KNOWN: u64 = 80;

/// Machine, the router beside it, the router beside the kernel, kernel.
struct Way {
    hosts: [Namespace; 4],
    addresses: [IpAddr; 2],
}

impl Way {
    /// The two routers are joined by a link of this MTU, all others have 1,500.
    fn build(ipv6: bool, narrow: u32, silent: bool) -> Result<Way> {
        let hosts = [Namespace::new()?, Namespace::new()?, Namespace::new()?, Namespace::new()?];
        let [machine, near, far, kernel] = &hosts;
        let mac = |number: usize| format!("02:00:00:00:00:0{number}");
        for (at, pair) in hosts.windows(2).enumerate() {
            pair[0].join(("east", &mac(2 * at + 1)), &pair[1], ("west", &mac(2 * at + 2)))?;
            // Packets are looked at as they are on the wire.
            pair[0].set_offloads("east", false)?;
            pair[1].set_offloads("west", false)?;
        }
        near.exec(&format!("ip link set east mtu {narrow}"))?;
        far.exec(&format!("ip link set west mtu {narrow}"))?;
        // Network, length of its prefix, length of an address.
        let (prefix, whole, all) = if ipv6 { (64, 128, "::/0") } else { (24, 32, "0.0.0.0/0") };
        let address = |subnet: usize, host: usize| {
            if ipv6 { format!("fd86:{subnet}::{host}") } else { format!("10.86.{subnet}.{host}") }
        };
        let own = address(9, 1);
        machine.exec("ip tuntap add dev weft0 mode tun")?;
        machine.exec("ip link set weft0 up")?;
        machine.exec(&format!("ip route add {own}/{whole} dev weft0"))?;
        for (at, pair) in hosts.windows(2).enumerate() {
            pair[0].exec(&format!("ip address add {}/{prefix} dev east", address(at, 1)))?;
            pair[1].exec(&format!("ip address add {}/{prefix} dev west", address(at, 2)))?;
            // Nobody asks for neighbours: without addresses of the link IPv6 could not.
            let (one, other) = (address(at, 2), address(at, 1));
            pair[0].exec(&format!("ip neighbour add {one} lladdr {} dev east", mac(2 * at + 2)))?;
            pair[1].exec(&format!("ip neighbour add {other} lladdr {} dev west", mac(2 * at + 1)))?;
        }
        machine.exec(&format!("ip route add {all} via {}", address(0, 2)))?;
        near.exec(&format!("ip route add {all} via {}", address(1, 2)))?;
        near.exec(&format!("ip route add {own}/{whole} via {}", address(0, 1)))?;
        far.exec(&format!("ip route add {all} via {}", address(1, 1)))?;
        kernel.exec(&format!("ip route add {all} via {}", address(2, 1)))?;
        for host in [machine, near, far] {
            host.sysctl(if ipv6 { "net.ipv6.conf.all.forwarding" } else { "net.ipv4.ip_forward" }, "1")?;
        }
        if silent {
            // What a kernel does about it is off by default.
            kernel.sysctl("net.ipv4.tcp_mtu_probing", "1")?;
        }
        let said = if ipv6 { "icmpv6 type packet-too-big" } else { "icmp type destination-unreachable" };
        let verdict = if silent { "drop" } else { "accept" };
        for router in [near, far] {
            // A length without Ethernet's header. What comes back from the narrow link is never too large.
            router.nft(&format!(
                "table inet weft_mtu {{
                    counter large {{ }}
                    chain coming {{
                        type filter hook prerouting priority 0
                        meta length > {narrow} counter name large
                    }}
                    chain saying {{
                        type filter hook output priority 0
                        {said} {verdict}
                    }}
                }}"
            ))?;
        }
        Ok(Way { addresses: [own.parse()?, address(2, 2).parse()?], hosts })
    }

    /// How many packets that are too large for the narrow link have come to the router beside the machine, and to that beside the kernel.
    fn too_large(&self) -> Result<[u64; 2]> {
        let of = |router: &Namespace| -> Result<u64> {
            let text = router.exec("nft list counter inet weft_mtu large")?;
            let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
            words.nth(1).and_then(|count| count.parse().ok()).with_context(|| format!("no packets are counted: {text}"))
        };
        let [_, near, far, _] = &self.hosts;
        Ok([of(near)?, of(far)?])
    }

    /// Brings files over both ways at once. Behind the first half nothing is too large any more.
    fn exchange(&self, name: &str) -> Result<[u64; 2]> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let ours = Payload::create(&folder.join("mtu-ours"), BYTES, 1)?;
        let theirs = Payload::create(&folder.join("mtu-theirs"), BYTES, 2)?;
        let received = folder.join(format!("mtu-received-{name}"));
        let [machine, .., kernel] = &self.hosts;
        let [own, other] = self.addresses.map(|address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        let listener = kernel.enter(|| TcpListener::bind((self.addresses[1], 80)))??;
        let line = format!(
            "exec {WEFT} cat {TCP} --port 1=tun:weft0 {own}:4000-{other}:80 < {} > {}",
            ours.path.display(),
            received.display()
        );
        let weft = machine.spawn(&["sh", "-c", &line])?;
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut writer = stream.try_clone()?;
        let sent = std::fs::read(&theirs.path)?;
        let (first, second) = sent.split_at(sent.len() / 2);
        let mut read = vec![0; usize::try_from(BYTES)?];
        let (first_read, second_read) = read.split_at_mut(first.len());
        // Half of it both ways, and what was too large until then.
        let half = std::thread::scope(|scope| -> Result<[u64; 2]> {
            let writing = scope.spawn(|| writer.write_all(first));
            stream.read_exact(first_read)?;
            writing.join().expect("it does not panic")?;
            let arrived = || received.metadata().is_ok_and(|file| file.len() >= BYTES / 2);
            wait_for("half of it to come", LIMIT, arrived)?;
            self.too_large()
        })?;
        std::thread::scope(|scope| -> Result<()> {
            let writing = scope.spawn(|| writer.write_all(second).and_then(|()| writer.shutdown(Shutdown::Write)));
            stream.read_exact(second_read)?;
            ensure!(stream.read(&mut [0])? == 0, "more came than was sent");
            Ok(writing.join().expect("it does not panic")?)
        })?;
        drop((stream, writer));
        let output = weft.wait(LIMIT)?;
        ensure!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        ensure!(read == std::fs::read(&ours.path)?, "the kernel read other bytes");
        ensure!(sha256_of_file(&received)? == theirs.sha256, "the machine read other bytes");
        let all = self.too_large()?;
        ensure!(all == half, "{half:?} packets were too large in the first half, and {all:?} in all");
        ensure!(all.iter().all(|count| (1..=UNTIL_KNOWN).contains(count)), "{all:?} packets were too large");
        Ok(all)
    }
}

/// IPv6, MTU of the narrow link, whether routers are silent.
const WAYS: [(bool, u32, bool); 4] =
    [(false, 1280, false), (true, 1400, false), (false, 1280, true), (true, 1400, true)];

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn files_come_whole_through_a_narrow_link() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft", "ethtool"]) else { return Ok(()) };
    let run = |at: usize, (ipv6, narrow, silent)| {
        let way = format!("IPv6: {ipv6}, {narrow} bytes, silent: {silent}");
        let large = Way::build(ipv6, narrow, silent)?.exchange(&at.to_string()).with_context(|| way.clone())?;
        println!("{way}: {large:?} packets were too large");
        Ok(())
    };
    // All at once: silence is mostly waiting.
    std::thread::scope(|scope| {
        let threads =
            WAYS.into_iter().enumerate().map(|(at, way)| scope.spawn(move || run(at, way))).collect::<Vec<_>>();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}
