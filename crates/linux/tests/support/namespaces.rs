//! Network namespaces that go away with the test, also when it panics.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A network namespace of `ip netns`.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    /// Makes one; `None` if that is not possible here.
    pub fn new(role: &str) -> Option<Namespace> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("weft-{}-{serial}-{role}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output().is_ok_and(|o| o.status.success());
        made.then_some(Namespace { name })
    }

    /// Runs a command line in the namespace; it must succeed.
    pub fn run(&self, command: &str) {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.name])
            .args(command.split_whitespace())
            .output()
            .expect("ip is there: `can_run` was asked");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs `work` in a thread that lives in the namespace.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let file = File::open(format!("/run/netns/{}", self.name)).unwrap();
        thread::spawn(move || {
            // SAFETY: only numbers; moves this thread alone.
            assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            work()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

/// Two hosts with a middle between: `left` (a0, 10.9.0.1) - m1 `middle` m2 - (b0, 10.9.0.2) `right`.
pub struct Line {
    pub left: Namespace,
    pub middle: Namespace,
    pub right: Namespace,
}

impl Line {
    pub fn new() -> Line {
        let new = |role| Namespace::new(role).expect("namespaces work: `can_run` was asked");
        let line = Line { left: new("left"), middle: new("middle"), right: new("right") };
        for namespace in [&line.left, &line.middle, &line.right] {
            // Router solicitations and duplicate-address detection would come in between.
            namespace.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
            namespace.run("ip link set lo up");
        }
        for (host, device, port, address) in
            [(&line.left, "a0", "m1", "10.9.0.1/24"), (&line.right, "b0", "m2", "10.9.0.2/24")]
        {
            host.run(&format!("ip link add {device} type veth peer name {port} netns {}", line.middle.name));
            host.run(&format!("ip address add {address} dev {device}"));
            host.run(&format!("ip link set {device} up"));
            line.middle.run(&format!("ip link set {port} up"));
        }
        line
    }

    /// Switches all offloads of all four ends off.
    pub fn without_offloads(self) -> Line {
        let off = |namespace: &Namespace, device: &str| {
            namespace.run(&format!("ethtool -K {device} tx off rx off tso off gso off gro off"));
        };
        off(&self.left, "a0");
        off(&self.middle, "m1");
        off(&self.middle, "m2");
        off(&self.right, "b0");
        self
    }
}
