//! The TCP of `examples/transports/tcp` against the kernel's over paths of many kinds, several at once: losses one by one and in bursts,
//! what comes late, twice or in narrow packets, round trips from 1 to 200 ms, numbers that wrap.
//!
//! Both ends send and receive at once. Of each path: the bytes are the same at the other end, both ends close, nothing is reset, and
//! neither end is without progress for longer than its retransmission timer allows.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests open sockets and files")]

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use weftwire_lab::state::{State, read};
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::namespace::NetworkNamespace;
use weftwire_linux::socket_address::tcp_info;
use weftwire_testbed::{Namespace, Payload, Running, exchange, run, sha256_of_file, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
/// No connection takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// How late a timer may be on a machine with other work.
const LATE: Duration = Duration::from_millis(500);
/// The machine's port, the kernel's port.
const PORTS: (u16, u16) = (4000, 80);

/// Where the machine has its frames from.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Device {
    /// The interface itself, packet by packet.
    Interface,
    /// A TUN device behind a kernel that forwards: super-frames come and go.
    Tun,
}
use Device::{Interface, Tun};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Opener {
    Machine,
    Kernel,
}
use Opener::{Kernel, Machine};

/// A path through the relay, and a connection over it.
struct Cell {
    /// Keys of the link, as in network files.
    link: &'static str,
    ipv6: bool,
    mtu: u32,
    device: Device,
    opener: Opener,
    /// Registers of the machine.
    parameters: &'static [&'static str],
    /// Each way.
    bytes: u64,
}

const fn cell(link: &'static str, device: Device, opener: Opener, bytes: u64) -> Cell {
    Cell { link, ipv6: false, mtu: 1500, device, opener, parameters: &[], bytes }
}

const fn ipv6(link: &'static str, device: Device, opener: Opener, bytes: u64) -> Cell {
    Cell { ipv6: true, ..cell(link, device, opener, bytes) }
}

impl Cell {
    const fn narrow(self, mtu: u32, parameters: &'static [&'static str]) -> Cell {
        Cell { mtu, parameters, ..self }
    }

    const fn with(self, parameters: &'static [&'static str]) -> Cell {
        Cell { parameters, ..self }
    }
}

/// Bytes that take about ten seconds at most: a loss of 10 % at 200 ms leaves 0.2 Mbit/s. A burst ends after so many packets, not after a time: where one
/// segment is sent again and again, each try at twice the time of the one before, nine that fail last for a minute. So bursts are short.
const CELLS: [Cell; 20] = [
    cell("delay = '500us'", Interface, Machine, 4_000_000).with(&["first=4294967290", "first_stamp=4294966296"]),
    ipv6("delay = '500us'", Interface, Kernel, 4_000_000),
    cell("delay = '500us', loss = '1%'", Tun, Kernel, 4_000_000),
    ipv6("delay = '500us', loss = '5%'", Interface, Machine, 2_000_000),
    cell("delay = '500us', loss = '10%'", Tun, Machine, 1_000_000),
    cell("delay = '500us', loss = { good_to_bad = '7%', bad_to_good = '65%' }", Interface, Kernel, 1_000_000),
    cell("delay = '5ms', reorder = { share = '2%', delay = '3ms' }, duplicate = '1%'", Interface, Kernel, 4_000_000),
    ipv6("delay = '5ms', loss = { good_to_bad = '0.65%', bad_to_good = '65%' }", Interface, Machine, 2_000_000),
    cell("delay = '5ms', loss = '5%'", Tun, Machine, 1_000_000).with(&["first=2147483640", "first_stamp=2147482648"]),
    cell("delay = '5ms', loss = '1%'", Interface, Kernel, 1_000_000).narrow(576, &["mtu=576"]),
    ipv6("delay = '5ms', loss = '5%'", Interface, Machine, 500_000).narrow(1280, &["mtu=1280"]),
    cell("delay = '25ms'", Interface, Kernel, 4_000_000).with(&["first=2147483640", "first_stamp=2147483000"]),
    cell(
        "delay = '25ms', loss = '1%', reorder = { share = '1%', delay = '10ms' }, duplicate = '1%'",
        Interface,
        Machine,
        1_000_000,
    ),
    ipv6("delay = '25ms', loss = { good_to_bad = '3.2%', bad_to_good = '65%' }", Interface, Kernel, 400_000),
    cell("delay = '25ms', loss = '10%'", Interface, Kernel, 300_000),
    cell("delay = '50ms', loss = '1%'", Tun, Machine, 800_000),
    cell("delay = '100ms'", Tun, Kernel, 4_000_000),
    ipv6("delay = '100ms', loss = '1%'", Interface, Machine, 400_000)
        .with(&["first=4294900000", "first_stamp=4294962000"]),
    cell("delay = '100ms', loss = '5%'", Interface, Kernel, 150_000),
    cell("delay = '100ms', loss = '10%'", Interface, Machine, 80_000),
];

/// The links of all cells, each between a machine's node and a kernel's, over one relay.
struct Site {
    name: String,
    state: State,
}

impl Site {
    fn up(folder: &Path) -> Result<Site> {
        let name = format!("peers-{}", std::process::id());
        let mut text = "duration = '60s'\n".to_owned();
        for (at, cell) in CELLS.iter().enumerate() {
            text += &format!("[nodes.m{at}]\nkind = 'sink'\n[nodes.k{at}]\n");
            text += &format!("[[links]]\nbetween = ['m{at}', 'k{at}']\nrate = '20Mbit/s'\n");
            // Keys of a link, one a line: commas also separate those of tables in it.
            text += &format!("{}\n", lines_of(cell.link));
        }
        let file = folder.join("peers.toml");
        std::fs::write(&file, text)?;
        weft(&["up", file.to_str().context("the build's folder has a plain name")?, "--name", &name])?;
        let state = read(&name).context("the network has a state")?;
        Ok(Site { name, state })
    }

    fn namespace(&self, node: &str) -> String {
        format!("weft.{}.{node}", self.name)
    }

    fn address(&self, node: &str, ipv6: bool) -> Result<IpAddr> {
        let node = self.state.nodes.iter().find(|there| there.name == node).context("the node is there")?;
        let address = if ipv6 { node.ipv6.map(IpAddr::from) } else { node.ipv4.map(IpAddr::from) };
        address.context("the node has an address")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A test that failed says why itself.
        let _ = weft(&["down", &self.name]);
    }
}

/// The keys of an inline table, one a line.
fn lines_of(keys: &str) -> String {
    let mut depth = 0;
    let separate = |letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ',' && depth == 0 { '\n' } else { letter }
    };
    keys.chars().map(separate).collect()
}

fn weft(words: &[&str]) -> Result<String> {
    let mut command = std::process::Command::new(WEFT);
    command.args(words);
    run(command, LIMIT)
}

/// `ip` in a namespace.
fn ip(namespace: &str, words: &str) -> Result<String> {
    let mut command = std::process::Command::new("ip");
    command.args(["-n", namespace]).args(words.split_whitespace());
    run(command, LIMIT)
}

/// Where a connection is: the namespaces and addresses of its ends.
struct Place {
    machine: String,
    kernel: String,
    addresses: [IpAddr; 2],
    /// The machine's port, as `weft` takes it, and more that it needs.
    port: Vec<String>,
    /// Nothing is lost, late or doubled on the way. Else an acknowledgment may come when the kernel's end is gone, and is answered by RST.
    orderly: bool,
}

impl Place {
    /// The path of a cell, made ready.
    fn of(site: &Site, at: usize) -> Result<Place> {
        let cell = &CELLS[at];
        let (m, k) = (format!("m{at}"), format!("k{at}"));
        let (machine, kernel) = (site.namespace(&m), site.namespace(&k));
        let addresses = [site.address(&m, cell.ipv6)?, site.address(&k, cell.ipv6)?];
        ip(&kernel, &format!("link set port1 mtu {}", cell.mtu))?;
        let link = ip(&kernel, "-brief link show dev port1")?;
        let mac = link.split_whitespace().nth(2).context("an interface has an address")?;
        let port = match cell.device {
            Interface => vec!["1=port1".to_owned(), "--gateway-mac".to_owned(), mac.to_owned()],
            Tun => {
                let [own, other] = addresses;
                ip(&machine, "tuntap add dev weft0 mode tun")?;
                ip(&machine, "link set weft0 up")?;
                ip(&machine, &format!("route add {own}/32 dev weft0"))?;
                ip(&machine, &format!("neighbour add 169.254.0.1 lladdr {mac} dev port1"))?;
                ip(&machine, &format!("route add {other}/32 via 169.254.0.1 dev port1 onlink"))?;
                NetworkNamespace::open(&machine)?.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
                vec!["1=tun:weft0".to_owned()]
            }
        };
        Ok(Place { machine, kernel, addresses, port, orderly: !cell.link.contains(',') })
    }

    /// Starts `weft cat` or `weft listen` and waits until it is there.
    fn start(&self, opener: Opener, parameters: &[&str], files: [&Path; 2]) -> Result<Running> {
        let [own, other] = self.addresses.map(|address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        let (command, ends) = match opener {
            Machine => ("cat", format!("{own}:{}-{other}:{}", PORTS.0, PORTS.1)),
            Kernel => ("listen", format!("{own}:{}", PORTS.0)),
        };
        let parameters = parameters.iter().map(|parameter| format!("--parameter {parameter}")).collect::<Vec<_>>();
        let port = match opener {
            Machine => self.port.join(" "),
            Kernel => self.port[0].clone(),
        };
        let line = format!(
            "exec {WEFT} {command} {TCP} --port {port} --name {} {} {ends} < {} > {}",
            self.run_name(),
            parameters.join(" "),
            files[0].display(),
            files[1].display()
        );
        let mut command = std::process::Command::new("ip");
        command.args(["netns", "exec", &self.machine, "sh", "-c", &line]);
        let mut weft = Running::start(command)?;
        wait_for("weft to begin", LIMIT, || !weft.is_running() || self.socket().exists())?;
        Ok(weft)
    }

    /// Names of runs have no dot.
    fn run_name(&self) -> String {
        self.machine.replace('.', "-")
    }

    fn socket(&self) -> PathBuf {
        Path::new("/run/weft/runs").join(self.run_name()).join("control.sock")
    }

    /// The kernel's end of the connection.
    fn stream(&self, opener: Opener, start: impl FnOnce() -> Result<Running>) -> Result<(Running, TcpStream)> {
        let [own, other] = self.addresses;
        let namespace = NetworkNamespace::open(&self.kernel)?;
        let (weft, stream) = match opener {
            Machine => {
                let listener = namespace.run(|| TcpListener::bind((other, PORTS.1)))??;
                listener.set_nonblocking(true)?;
                let (mut weft, mut stream) = (start()?, None);
                wait_for("the machine to connect", LIMIT, || {
                    stream = listener.accept().ok();
                    stream.is_some() || !weft.is_running()
                })?;
                let Some((stream, _)) = stream else { anyhow::bail!("{:?}", weft.wait(LIMIT)?) };
                (weft, stream)
            }
            Kernel => {
                let weft = start()?;
                let to = SocketAddr::from((own, PORTS.0));
                (weft, namespace.run(|| TcpStream::connect_timeout(&to, LIMIT))??)
            }
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok((weft, stream))
    }

    /// Brings files over both ways at once.
    fn exchange(&self, name: &str, opener: Opener, parameters: &[&str], bytes: u64) -> Result<()> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let ours = Payload::create(&folder.join(format!("peers-{bytes}-ours")), bytes, 1)?;
        let theirs = Payload::create(&folder.join(format!("peers-{bytes}-theirs")), bytes, 2)?;
        let received = folder.join(format!("peers-received-{name}"));
        let begun = Instant::now();
        let (weft, stream) = self.stream(opener, || self.start(opener, parameters, [&ours.path, &received]))?;
        let (over, watched) = (AtomicBool::new(false), stream.try_clone()?);
        let digest = std::thread::scope(|scope| -> Result<String> {
            let watching = scope.spawn(|| watch(&watched, &self.socket(), &over));
            let read = std::fs::read(&theirs.path)?;
            let digest = exchange(stream, &read);
            over.store(true, Ordering::Relaxed);
            watching.join().expect("it does not panic")?;
            Ok(digest?)
        })?;
        let output = weft.wait(LIMIT)?;
        ensure!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        ensure!(digest == ours.sha256, "the kernel read other bytes");
        ensure!(sha256_of_file(&received)? == theirs.sha256, "the machine read other bytes");
        let [reset, sent] = NetworkNamespace::open(&self.kernel)?.run(|| ["EstabResets", "OutRsts"].map(counted))?;
        let (reset, sent) = (reset?, sent?);
        ensure!(reset == 0, "the kernel had {reset} connections that were reset");
        ensure!(sent == 0 || !self.orderly, "the kernel has sent {sent} resets");
        println!("{name}: {bytes} bytes each way in {:.1} s", begun.elapsed().as_secs_f64());
        Ok(())
    }
}

/// What the kernel of this namespace has counted of TCP by this name.
fn counted(name: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let at = names.split_whitespace().position(|it| it == name).with_context(|| format!("the kernel counts {name}"))?;
    Ok(values.split_whitespace().nth(at).context("it has a value")?.parse()?)
}

/// Since when something stands still.
struct Still {
    progress: u64,
    since: Instant,
}

impl Still {
    /// How long it has, with this progress now.
    fn look(&mut self, progress: u64) -> Duration {
        if progress != self.progress {
            *self = Still { progress, since: Instant::now() };
        }
        self.since.elapsed()
    }
}

/// Watches both directions of a connection until it is over. All timers up to now lasted less than the one that is in force, which is
/// twice the one before: so no silence lasts longer than twice that.
fn watch(stream: &TcpStream, machine: &Path, over: &AtomicBool) -> Result<()> {
    let [mut kernels, mut machines] = [0; 2].map(|progress| Still { progress, since: Instant::now() });
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let info = tcp_info(stream)?;
        let still = kernels.look(info.acknowledged_bytes);
        let allowed = 2 * info.timeout + LATE;
        ensure!(info.unacknowledged == 0 || still < allowed, "the kernel stands still for {still:?}, not {allowed:?}");

        // Asking costs the machine time: only if there is a reason.
        let still = machines.look(info.received_bytes);
        if still > LATE
            && let Some((outstanding, timeout)) = timer_of(machine)
        {
            let allowed = 2 * timeout + LATE;
            ensure!(!outstanding || still < allowed, "the machine stands still for {still:?}, not {allowed:?}");
        }
    }
    Ok(())
}

/// Whether the machine waits for an acknowledgment, and the timeout in force; none if it has no connection any more.
fn timer_of(socket: &Path) -> Option<(bool, Duration)> {
    let mut client = ControlClient::connect(Some(socket)).ok()?;
    let flow = client.flows().ok()?.first()?.flow;
    let Response::Flow(detail) = client.ask(&Request::Flow { flow }).ok()? else { return None };
    let value = |name: &str| detail.registers.iter().find(|it| it.name == name).map(|it| it.value);
    let timeout = value("timeout")?.checked_shl(u32::try_from(value("backoff")?).ok()?)?;
    Some((value("una") != value("next"), Duration::from_nanos(timeout.cast_unsigned())))
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn files_come_whole_over_paths_of_every_kind() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ethtool"]) else { return Ok(()) };
    let site = Site::up(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    all_at_once(CELLS.iter().enumerate().map(|(at, cell)| {
        let site = &site;
        let name = format!("{at}: {} {:?} {:?} {:?}", cell.link, cell.device, cell.opener, cell.parameters);
        (name, move || {
            let place = Place::of(site, at)?;
            place.exchange(&at.to_string(), cell.opener, cell.parameters, cell.bytes)
        })
    }))
}

/// Runs all, and says of each that fails which it is.
fn all_at_once(cells: impl Iterator<Item = (String, impl FnOnce() -> Result<()> + Send)>) -> Result<()> {
    let failed = std::thread::scope(|scope| {
        let threads = cells.map(|(name, work)| (name, scope.spawn(work))).collect::<Vec<_>>();
        let ended = threads.into_iter().map(|(name, thread)| (name, thread.join().expect("it does not panic")));
        ended.filter_map(|(name, result)| Some(format!("{name}: {:?}", result.err()?))).collect::<Vec<_>>()
    });
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// A path without the relay, which takes no longer frames: the machine behind a TUN device, a router, the kernel.
struct Wide {
    ipv6: bool,
    mtu: u32,
    offloads: bool,
    /// Of a thousand packets that the router forwards.
    lost: u32,
    opener: Opener,
    bytes: u64,
}

const WIDE: [Wide; 4] = [
    Wide { ipv6: false, mtu: 9000, offloads: false, lost: 10, opener: Machine, bytes: 16_000_000 },
    Wide { ipv6: true, mtu: 9000, offloads: false, lost: 0, opener: Kernel, bytes: 32_000_000 },
    Wide { ipv6: false, mtu: 1500, offloads: true, lost: 0, opener: Machine, bytes: 64_000_000 },
    Wide { ipv6: true, mtu: 1500, offloads: true, lost: 20, opener: Kernel, bytes: 16_000_000 },
];

impl Wide {
    fn exchange(&self, at: usize) -> Result<()> {
        let [machine, router, kernel] = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        machine.join(("eth0", "02:00:00:00:00:01"), &router, ("port1", "02:00:00:00:00:02"))?;
        router.join(("port2", "02:00:00:00:00:03"), &kernel, ("eth0", "02:00:00:00:00:04"))?;
        for (host, interface) in [(&machine, "eth0"), (&router, "port1"), (&router, "port2"), (&kernel, "eth0")] {
            host.set_offloads(interface, self.offloads)?;
            host.exec(&format!("ip link set {interface} mtu {}", self.mtu))?;
        }
        machine.exec("ip tuntap add dev weft0 mode tun")?;
        machine.exec(&format!("ip link set weft0 up mtu {}", self.mtu))?;
        // Network, length of its prefix, length of an address.
        let (net, prefix, whole) = if self.ipv6 { ("fd79:", 64, 128) } else { ("10.79", 24, 32) };
        let address = |subnet: u32, host: u32| {
            if self.ipv6 { format!("{net}{subnet}::{host}") } else { format!("{net}.{subnet}.{host}") }
        };
        let own = address(1, 2);
        machine.exec(&format!("ip address add {}/{prefix} dev eth0", address(3, 1)))?;
        machine.exec(&format!("ip route add {own}/{whole} dev weft0"))?;
        machine.exec(&format!("ip route add {} via {}", default(self.ipv6), address(3, 2)))?;
        router.exec(&format!("ip address add {}/{prefix} dev port1", address(3, 2)))?;
        router.exec(&format!("ip address add {}/{prefix} dev port2", address(2, 2)))?;
        router.exec(&format!("ip route add {own}/{whole} via {}", address(3, 1)))?;
        kernel.exec(&format!("ip address add {}/{prefix} dev eth0", address(2, 1)))?;
        kernel.exec(&format!("ip route add {} via {}", default(self.ipv6), address(2, 2)))?;
        // Nobody asks for neighbours: without addresses of the link IPv6 could not.
        for (host, interface, neighbour, mac) in [
            (&machine, "eth0", address(3, 2), "02:00:00:00:00:02"),
            (&router, "port1", address(3, 1), "02:00:00:00:00:01"),
            (&router, "port2", address(2, 1), "02:00:00:00:00:04"),
            (&kernel, "eth0", address(2, 2), "02:00:00:00:00:03"),
        ] {
            host.exec(&format!("ip neighbour add {neighbour} lladdr {mac} dev {interface}"))?;
        }
        for host in [&machine, &router] {
            host.sysctl(if self.ipv6 { "net.ipv6.conf.all.forwarding" } else { "net.ipv4.ip_forward" }, "1")?;
        }
        if self.lost > 0 {
            router.nft(&format!(
                "table inet weft_loss {{
                    chain forwarding {{
                        type filter hook forward priority 0
                        numgen random mod 1000 < {} drop
                    }}
                }}",
                self.lost
            ))?;
        }
        let place = Place {
            machine: machine.name().to_owned(),
            kernel: kernel.name().to_owned(),
            addresses: [own.parse()?, address(2, 1).parse()?],
            port: vec!["1=tun:weft0".to_owned()],
            orderly: self.lost == 0,
        };
        let mtu = format!("mtu={}", self.mtu);
        place.exchange(&format!("wide-{at}"), self.opener, &[&mtu], self.bytes)
    }
}

/// All addresses.
fn default(ipv6: bool) -> &'static str {
    if ipv6 { "::/0" } else { "0.0.0.0/0" }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn files_come_whole_in_large_packets_and_in_super_frames() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft", "ethtool"]) else { return Ok(()) };
    all_at_once(WIDE.iter().enumerate().map(|(at, wide)| {
        let name = format!("{at}: packets of {} bytes, {} of 1,000 lost, {:?}", wide.mtu, wide.lost, wide.opener);
        (name, move || wide.exchange(at))
    }))
}
