//! Network namespaces and the veth pairs that join them.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{Running, run};

/// The time limit of short commands such as `ip` and `ethtool`.
const SHORT: Duration = Duration::from_secs(30);

/// A network namespace `weft-<pid>-<n>`, deleted with all that is in it when this is dropped.
///
/// It is quiet: no router solicitations, no duplicate-address detection, no link-local addresses, no reverse-path
/// filter. So the packets that are seen in it are the test's own.
pub struct Namespace {
    name: String,
}

/// What an interface has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came in.
    pub received_packets: u64,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// Packets that went out.
    pub sent_packets: u64,
    /// Bytes that went out.
    pub sent_bytes: u64,
}

impl Namespace {
    /// Makes a quiet namespace with its loopback interface up.
    ///
    /// # Errors
    ///
    /// If `ip netns` fails, for example because of missing rights.
    pub fn new() -> Result<Namespace> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        static CLEANED: Once = Once::new();
        CLEANED.call_once(delete_leftovers);

        let name = format!("weft-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        ip(&["netns", "add", &name])?;
        let namespace = Namespace { name };
        for (key, value) in [
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.default.rp_filter", "0"),
            ("net.ipv6.conf.default.accept_dad", "0"),
            ("net.ipv6.conf.default.dad_transmits", "0"),
            ("net.ipv6.conf.default.accept_ra", "0"),
            ("net.ipv6.conf.default.router_solicitations", "0"),
            ("net.ipv6.conf.default.addr_gen_mode", "1"),
        ] {
            // A kernel without IPv6 has no such setting, and is quiet.
            if namespace.sysctl(key, value).is_err() && !key.contains("ipv6") {
                bail!("cannot set {key} in {}", namespace.name);
            }
        }
        namespace.exec("ip link set lo up")?;
        Ok(namespace)
    }

    /// Makes one with a TUN device `weft0`, at which the kernel has this address, e.g. `10.0.0.1/24`. All others of its network are of whoever
    /// takes the device.
    ///
    /// # Errors
    ///
    /// As [`Namespace::new`].
    pub fn with_tun(address: &str) -> Result<Namespace> {
        let host = Namespace::new()?;
        host.exec("ip tuntap add dev weft0 mode tun")?;
        host.exec(&format!("ip address add {address} dev weft0"))?;
        host.exec("ip link set weft0 up")?;
        Ok(host)
    }

    /// The namespace's name, as `ip netns list` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Joins two namespaces by a veth pair. Each end is an interface name and an Ethernet address; both come up.
    ///
    /// # Errors
    ///
    /// If `ip link` fails, for example because the interface is there already.
    pub fn join(
        &self,
        (interface, mac): (&str, &str),
        other: &Namespace,
        (peer, peer_mac): (&str, &str),
    ) -> Result<()> {
        let (a, b) = (&*self.name, &*other.name);
        ip(&[
            "link", "add", interface, "address", mac, "netns", a, "type", "veth", "peer", "name", peer, "address",
            peer_mac, "netns", b,
        ])?;
        self.exec(&format!("ip link set {interface} up"))?;
        other.exec(&format!("ip link set {peer} up"))?;
        Ok(())
    }

    /// Turns checksum, segmentation and receive offloads of an interface on or off.
    ///
    /// # Errors
    ///
    /// If `ethtool` fails.
    pub fn set_offloads(&self, interface: &str, on: bool) -> Result<()> {
        let set = if on { "on" } else { "off" };
        self.exec(&format!("ethtool -K {interface} rx {set} tx {set} sg {set} tso {set} gso {set} gro {set}"))?;
        Ok(())
    }

    /// Sets a `net.` kernel setting of this namespace, named as `sysctl` names it.
    ///
    /// # Errors
    ///
    /// If there is no such setting or it refuses the value.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        self.enter(|| fs::write(&path, value))?.with_context(|| format!("cannot write {value} to {path}"))
    }

    /// Runs a short command, given as words separated by spaces, and gives its standard output.
    ///
    /// # Errors
    ///
    /// If it fails or has not ended after 30 seconds.
    pub fn exec(&self, words: &str) -> Result<String> {
        let words: Vec<_> = words.split_whitespace().collect();
        self.exec_within(SHORT, &words)
    }

    /// Runs a program with arguments and gives its standard output.
    ///
    /// # Errors
    ///
    /// If it fails or has not ended after `limit`.
    pub fn exec_within(&self, limit: Duration, words: &[&str]) -> Result<String> {
        run(self.command(words), limit)
    }

    /// Starts a program that runs beside the test until it ends or is dropped.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn spawn(&self, words: &[&str]) -> Result<Running> {
        Running::start(self.command(words))
    }

    /// Loads an nftables ruleset.
    ///
    /// # Errors
    ///
    /// If `nft` refuses it.
    pub fn nft(&self, ruleset: &str) -> Result<()> {
        self.exec_within(SHORT, &["nft", ruleset])?;
        Ok(())
    }

    /// Runs `work` on a thread that is in this namespace. Sockets that it opens stay in the namespace.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let door = self.door()?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || door.enter().map(|()| work()));
            match thread.join() {
                Ok(result) => result.with_context(|| format!("cannot enter {}", self.name)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Starts `work` on a thread of its own that is in this namespace and runs beside the caller.
    ///
    /// # Panics
    ///
    /// The thread, if it cannot enter the namespace.
    pub fn start_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let door = self.door();
        std::thread::spawn(move || {
            door.and_then(|door| Ok(door.enter()?)).expect("whoever made a namespace may enter it");
            work()
        })
    }

    /// A way into this namespace for threads that can't borrow it.
    ///
    /// # Errors
    ///
    /// If the namespace is not there.
    pub fn door(&self) -> Result<Door> {
        let path = format!("/run/netns/{}", self.name);
        Ok(Door(fs::File::open(&path).with_context(|| path)?))
    }

    /// Opens a TCP connection from this namespace, with `limit` for the handshake and for every read and write.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered (outer), or as `connect` fails (inner).
    pub fn connect(&self, to: SocketAddr, limit: Duration) -> Result<std::io::Result<TcpStream>> {
        self.enter(|| {
            let stream = TcpStream::connect_timeout(&to, limit)?;
            stream.set_read_timeout(Some(limit))?;
            stream.set_write_timeout(Some(limit))?;
            Ok(stream)
        })
    }

    /// What `interface` has counted.
    ///
    /// # Errors
    ///
    /// If there is no such interface.
    pub fn counters(&self, interface: &str) -> Result<Counters> {
        let table = self.enter(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        parse_counters(&table, interface).with_context(|| format!("{} has no interface {interface}", self.name))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(words);
        command
    }
}

/// A way into a [`Namespace`].
pub struct Door(fs::File);

impl Door {
    /// Moves the calling thread, and no other, into the namespace for good.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn enter(&self) -> std::io::Result<()> {
        // SAFETY: setns takes an open descriptor and a number; it changes this thread only.
        match unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        delete(&self.name);
    }
}

/// One line of `/proc/net/dev`: the name, eight numbers received (bytes first, then packets), eight sent.
fn parse_counters(table: &str, interface: &str) -> Option<Counters> {
    let line = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    let number = |column: usize| line.split_whitespace().nth(column)?.parse().ok();
    Some(Counters {
        received_bytes: number(0)?,
        received_packets: number(1)?,
        sent_bytes: number(8)?,
        sent_packets: number(9)?,
    })
}

fn ip(words: &[&str]) -> Result<String> {
    let mut command = Command::new("ip");
    command.args(words);
    run(command, SHORT)
}

/// Deletes the namespaces of test processes that are no more.
fn delete_leftovers() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let maker = name.strip_prefix("weft-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)) {
            delete(&name);
        }
    }
}

/// Kills what runs in the namespace and deletes it. A failure leaves it to the next run's clean-up.
fn delete(name: &str) {
    for pid in ip(&["netns", "pids", name]).unwrap_or_default().split_whitespace() {
        if let Ok(pid) = pid.parse() {
            // SAFETY: kill only takes numbers. The process was listed as living in our own namespace.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
    let _ = ip(&["netns", "del", name]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip_unless_root;

    #[test]
    fn counters_are_read_by_column() {
        let table = "Inter-| Receive\n face |bytes\n    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n eth0: 5 6 0 0 0 0 0 0 7 8 0 0 0 0 0 0\n";
        let counters = Counters { received_bytes: 5, received_packets: 6, sent_bytes: 7, sent_packets: 8 };
        assert_eq!(parse_counters(table, "eth0"), Some(counters));
        assert_eq!(parse_counters(table, "eth"), None);
    }

    #[test]
    fn two_namespaces_talk_and_are_quiet_otherwise() -> Result<()> {
        let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
        let (a, b) = (Namespace::new()?, Namespace::new()?);
        a.join(("eth0", "02:00:00:00:00:0a"), &b, ("eth0", "02:00:00:00:00:0b"))?;
        a.exec("ip address add 10.0.0.1/24 dev eth0")?;
        b.exec("ip address add 10.0.0.2/24 dev eth0")?;
        assert_eq!(b.counters("eth0")?.received_packets, 0);
        let error = a.connect("10.0.0.2:80".parse()?, Duration::from_secs(5))?.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        // An ARP request and a SYN.
        assert_eq!(b.counters("eth0")?.received_packets, 2);
        Ok(())
    }

    #[test]
    fn a_namespace_is_deleted_also_on_panic() -> Result<()> {
        let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
        let namespace = Namespace::new()?;
        let path = format!("/run/netns/{}", namespace.name());
        assert!(fs::exists(&path)?);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let owned = namespace;
            let _sleeper = owned.spawn(&["sleep", "60"]).unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        }));
        assert!(failed.is_err());
        assert!(!fs::exists(&path)?);
        Ok(())
    }

    #[test]
    fn a_dead_process_leaves_nothing_behind() -> Result<()> {
        let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
        let mut child = Command::new("true").spawn()?;
        child.wait()?;
        let name = format!("weft-{}-1", child.id());
        ip(&["netns", "add", &name])?;
        delete_leftovers();
        assert!(!fs::exists(format!("/run/netns/{name}"))?);
        Ok(())
    }
}
