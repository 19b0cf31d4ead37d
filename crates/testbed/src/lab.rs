//! The bench of most system tests: a client and a server, with something in between.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{Running, wait_for};
use crate::{Flood, Namespace};

/// The client's address, on its interface `eth0`.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The server's address, on its interface `eth0`.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Where a [`Flood`] pretends to come from.
pub const SPOOFED_SOURCES: &str = "198.18.0.0/15";

/// The middle's address, if it has one; on no link, so that both sides can name it.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);

const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MIDDLE_CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const MIDDLE_SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 4];

/// What stands between client and server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Middle {
    /// The kernel forwards packets, and does nothing else.
    PlainRouting,
    /// The kernel forwards packets behind its own SYN proxy (iptables SYNPROXY).
    KernelSynproxy,
    /// `weft run` between two interfaces without addresses, in a namespace that forwards nothing by itself.
    Weft {
        /// The program `weft`.
        binary: PathBuf,
        /// The machine that it runs.
        image: PathBuf,
        /// What both its ports are made of, as `--port` says it: `socket`, `ring` or `xdp`.
        ports: &'static str,
    },
}

impl Middle {
    /// What to call it in a table of results.
    pub fn name(&self) -> &'static str {
        match self {
            Middle::PlainRouting => "plain routing",
            Middle::KernelSynproxy => "kernel SYNPROXY",
            Middle::Weft { ports: "ring", .. } => "weft, ring",
            Middle::Weft { ports: "xdp", .. } => "weft, AF_XDP",
            Middle::Weft { .. } => "weft",
        }
    }
}

/// Whether the interfaces cut segments and compute checksums (as hardware does) or the kernels do it in software,
/// so that each packet on the wire is whole and at most 1,514 bytes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offloads {
    /// Segmentation, checksum and receive offloads on.
    On,
    /// All of them off.
    Off,
}

/// Client `eth0` - `port1` middle `port2` - `eth0` server, with [`Middle`] at work.
pub struct Lab {
    weft: Option<Running>,
    /// Where clients run.
    pub client: Namespace,
    /// The namespace in between, with the interfaces `port1` (to the client) and `port2` (to the server).
    pub middle: Namespace,
    /// Where servers run.
    pub server: Namespace,
    next_hop: [u8; 6],
}

impl Lab {
    /// Builds the three namespaces and starts what is in the middle.
    ///
    /// # Errors
    ///
    /// If a command fails, for example because of missing rights or a kernel that lacks SYNPROXY.
    pub fn new(kind: &Middle, offloads: Offloads) -> Result<Lab> {
        let (client, middle, server) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let (c, m1) = (mac_text(CLIENT_MAC), mac_text(MIDDLE_CLIENT_MAC));
        let (m2, s) = (mac_text(MIDDLE_SERVER_MAC), mac_text(SERVER_MAC));
        client.join(("eth0", &c), &middle, ("port1", &m1))?;
        middle.join(("port2", &m2), &server, ("eth0", &s))?;
        for (namespace, interface) in [(&client, "eth0"), (&middle, "port1"), (&middle, "port2"), (&server, "eth0")] {
            namespace.set_offloads(interface, offloads == Offloads::On)?;
        }
        client.exec(&format!("ip address add {CLIENT}/24 dev eth0"))?;
        server.exec(&format!("ip address add {SERVER}/24 dev eth0"))?;
        server.nft(&format!(
            "table inet weft_count {{
                counter spoofed {{ }}
                chain arrivals {{
                    type filter hook prerouting priority raw;
                    ip saddr {SPOOFED_SOURCES} counter name spoofed
                }}
            }}"
        ))?;

        let mut lab = Lab { weft: None, client, middle, server, next_hop: MIDDLE_CLIENT_MAC };
        match kind {
            Middle::PlainRouting => lab.route()?,
            Middle::KernelSynproxy => {
                lab.route()?;
                lab.start_kernel_synproxy()?;
            }
            Middle::Weft { binary, image, ports } => {
                lab.server.exec(&format!("ip route add {SPOOFED_SOURCES} via {CLIENT}"))?;
                lab.next_hop = SERVER_MAC;
                let binary = binary.to_str().context("the path of weft is not UTF-8")?;
                let image = image.to_str().context("the path of the image is not UTF-8")?;
                // The namespace's name, because names of runs are the machine's, not the namespace's.
                let name = lab.middle.name();
                let [one, two] = [1, 2].map(|port| format!("{port}=port{port},{ports}"));
                let words = [binary, "run", image, "--name", name, "--port", &one, "--port", &two];
                lab.weft = Some(lab.middle.spawn(&words)?);
            }
        }
        Ok(lab)
    }

    /// Makes the middle a router and sends both sides through it, also for each other's addresses.
    fn route(&self) -> Result<()> {
        self.middle.sysctl("net.ipv4.ip_forward", "1")?;
        for key in ["all", "default", "port1", "port2"] {
            self.middle.sysctl(&format!("net.ipv4.conf.{key}.send_redirects"), "0")?;
        }
        self.middle.exec(&format!("ip address add {ROUTER}/32 dev lo"))?;
        self.middle.exec(&format!("ip route add {CLIENT}/32 dev port1 src {ROUTER}"))?;
        self.middle.exec(&format!("ip route add {SERVER}/32 dev port2 src {ROUTER}"))?;
        self.middle.exec(&format!("ip route add {SPOOFED_SOURCES} via {CLIENT} dev port1 onlink"))?;
        self.client.exec(&format!("ip route add {SERVER}/32 via {ROUTER}"))?;
        self.server.exec(&format!("ip route add {CLIENT}/32 via {ROUTER}"))?;
        self.server.exec(&format!("ip route add {SPOOFED_SOURCES} via {ROUTER}"))?;
        Ok(())
    }

    /// The set-up that iptables-extensions(8) gives for SYNPROXY.
    fn start_kernel_synproxy(&self) -> Result<()> {
        let middle = &self.middle;
        middle.exec("iptables -t raw -A PREROUTING -i port1 -p tcp --syn -j CT --notrack")?;
        middle.exec(
            "iptables -A FORWARD -i port1 -p tcp -m conntrack --ctstate INVALID,UNTRACKED \
             -j SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460",
        )?;
        middle.exec("iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP")?;
        // A client that uses a port again must not meet the connection tracking of the time before.
        for state in ["time_wait", "close", "last_ack", "fin_wait", "close_wait"] {
            middle.sysctl(&format!("net.netfilter.nf_conntrack_tcp_timeout_{state}"), "1")?;
        }
        middle.sysctl("net.netfilter.nf_conntrack_tcp_loose", "0")
    }

    /// The server's address and the port of [`crate::Nginx`].
    pub fn web(&self) -> SocketAddr {
        SocketAddr::from((SERVER, 80))
    }

    /// Waits until a connection to [`Lab::web`] opens, for which somebody must listen there.
    ///
    /// # Errors
    ///
    /// If it does not within 20 seconds, or `weft` has ended; the error says what it printed.
    pub fn wait_until_reachable(&mut self) -> Result<()> {
        let Lab { weft, client, .. } = self;
        let server = SocketAddr::from((SERVER, 80));
        let mut ended = false;
        let reached = wait_for("the server to be reachable", Duration::from_secs(20), || {
            ended = weft.as_mut().is_some_and(|weft| !weft.is_running());
            ended || client.connect(server, Duration::from_millis(500)).is_ok_and(|it| it.is_ok())
        });
        if (ended || reached.is_err())
            && let Some(weft) = self.weft.take()
        {
            let output = weft.stop()?;
            bail!("weft is in the way: {}\n{}{}", output.status, output.stdout, output.stderr);
        }
        reached
    }

    /// The process number of `weft`, if it is what stands in the middle and still runs.
    pub fn weft_pid(&mut self) -> Option<u32> {
        self.weft.as_mut().and_then(|weft| weft.is_running().then(|| weft.pid()))
    }

    /// Makes both hosts lose arriving IP packets at random.
    ///
    /// # Errors
    ///
    /// If `nft` refuses it.
    pub fn lose(&self, percent: u32) -> Result<()> {
        for host in [&self.client, &self.server] {
            host.nft(&format!(
                "table inet weft_loss {{
                    chain arrivals {{
                        type filter hook prerouting priority raw;
                        numgen random mod 100 < {percent} drop
                    }}
                }}"
            ))?;
        }
        Ok(())
    }

    /// A flood from the client's side to the web server's port, ready to be changed and run.
    pub fn flood(&self, count: u64) -> Flood {
        Flood {
            interface: "eth0".into(),
            source_mac: CLIENT_MAC,
            destination_mac: self.next_hop,
            destination: std::net::SocketAddrV4::new(SERVER, 80),
            count,
            rate: None,
            sequential: false,
            seed: 1,
        }
    }

    /// How many packets from spoofed addresses have reached the server.
    ///
    /// # Errors
    ///
    /// If `nft` fails.
    pub fn spoofed_arrivals(&self) -> Result<u64> {
        let text = self.server.exec("nft list counter inet weft_count spoofed")?;
        let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
        let packets = words.nth(1).and_then(|word| word.parse().ok());
        packets.with_context(|| format!("no number of packets in {text}"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(weft) = self.weft.take() {
            // Asked to end, it removes its control socket; if it doesn't end, it is killed.
            let _ = weft.stop();
        }
    }
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
