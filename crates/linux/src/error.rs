//! What can go wrong on this platform, each with what would be right.

use std::io;
use weftwire_core::{ControlError, Port};

/// An error of the Linux platform.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// A port specification that can't be read.
    #[error(
        "bad port `{text}`: {reason}; write NUMBER=INTERFACE, NUMBER=INTERFACE,ring, NUMBER=INTERFACE,xdp, \
         NUMBER=tun:NAME or NUMBER=tap:NAME, e.g. --port 1=eth0"
    )]
    PortSpec {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The interface does not exist in this network namespace.
    #[error("there is no interface `{name}`; there are: {known}")]
    NoInterface {
        /// What was asked for.
        name: String,
        /// What exists, comma-separated.
        known: String,
    },
    /// The interface is there but administratively down.
    #[error("interface `{0}` is down; bring it up with: ip link set {0} up")]
    Down(String),
    /// Frames of this interface begin with something else than Ethernet or IP.
    #[error(
        "interface `{name}` has hardware type {hardware_type}; only Ethernet, loopback and raw-IP interfaces can be ports"
    )]
    HardwareType {
        /// The interface.
        name: String,
        /// Its `ARPHRD_` number.
        hardware_type: u16,
    },
    /// An interface that AF_XDP has no use for.
    #[error("interface `{0}` has no Ethernet frames, which an AF_XDP port needs; use the option `socket` or `ring`")]
    NotEthernet(String),
    /// Frames of this interface may be longer than an AF_XDP port takes.
    #[error(
        "interface `{name}` has an MTU of {mtu}, and an AF_XDP port takes packets of up to {most} bytes; make it smaller with: \
         ip link set {name} mtu {most}, or use the option `socket` or `ring`"
    )]
    MtuTooLong {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: usize,
        /// The longest there may be.
        most: usize,
    },
    /// Another program takes the frames of this interface.
    #[error(
        "another XDP program or AF_XDP socket has interface `{0}`; stop the program that uses it, see: ip link show {0}, or take \
         an XDP program off with: ip link set {0} xdp off"
    )]
    OtherXdpProgram(String),
    /// The memory of AF_XDP ports stays in memory, and this process may not have so much of that.
    #[error(
        "this process may not lock the memory of AF_XDP ports, 32 MiB for each queue; allow more (ulimit -l), run as root, or \
         give the program CAP_IPC_LOCK"
    )]
    LockedMemory,
    /// The kernel refuses for lack of a capability.
    #[error(
        "no permission to {action}: this needs {capability}; run as root, or give the program its capabilities once: \
         setcap cap_net_raw,cap_net_admin{}+ep {program}",
        if capability.contains("CAP_BPF") { ",cap_bpf" } else { "" }
    )]
    Permission {
        /// What was tried.
        action: String,
        /// The capability that allows it.
        capability: &'static str,
        /// Path of this program.
        program: String,
    },
    /// The interface of a port was removed, and the run is to end then.
    #[error("port {port}: interface `{name}` is gone")]
    Gone {
        /// The port's number.
        port: Port,
        /// Its interface.
        name: String,
    },
    /// A TUN or TAP device that another program holds.
    #[error("device `{0}` is in use by another program; stop that program or choose another name")]
    Busy(String),
    /// A name that belongs to an interface of another kind.
    #[error("`{name}` exists and is no {kind} device; choose another name, or use it as a port by `{name}` alone")]
    NotThatKind {
        /// The interface.
        name: String,
        /// `tun` or `tap`.
        kind: &'static str,
    },
    /// The running kernel lacks something.
    #[error("this kernel has no {feature}; it came with Linux {since}. {instead}")]
    Missing {
        /// What is missing.
        feature: &'static str,
        /// First kernel that has it.
        since: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// Another run has this control socket.
    #[error(
        "a run named `{name}` is active already (control socket {path}); stop it, or give this one another --name or --control"
    )]
    NameTaken {
        /// The run's name.
        name: String,
        /// The socket's path.
        path: String,
    },
    /// Somebody listens on this socket.
    #[error("somebody listens on {0} already; stop that process, or name another place")]
    SocketInUse(String),
    /// Where a socket is to be there is something else.
    #[error("{0} is there and is no socket; name another place")]
    NoSocket(String),
    /// There is no place for this user's sockets.
    #[error(
        "there is no folder for this user's sockets, as XDG_RUNTIME_DIR is not set and there is no /run/user folder; set it \
         to a folder that only you may change, or name the socket's place (--control, --listen, --controller)"
    )]
    NoRunTimeDirectory,
    /// A folder in which others could put sockets of their own.
    #[error(
        "{path} is no place for sockets: {reason}; mend or remove it, or name the socket's place (--control, --listen)"
    )]
    UnsafeFolder {
        /// The folder.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The control socket does not answer, or several could be meant.
    #[error("{0}")]
    Control(String),
    /// No such user to become.
    #[error("there is no user `{0}`; give an existing one with --user, or --keep-privileges")]
    NoUser(String),
    /// More runs than there are users for them.
    #[error("all 606 users that runs become (60578 to 61183) are taken; give one by name with --user")]
    NoPrivateUser,
    /// A port whose frames go nowhere when a connection is to be opened.
    #[error(
        "no route: port {port} ({name}) is not operational; bring it up with: ip link set {name} up, and see that it has a carrier"
    )]
    NotOperational {
        /// The port's number.
        port: Port,
        /// Its interface.
        name: String,
    },
    /// More connections than the process may have descriptors for.
    #[error(
        "{connections} connections at once need {needed} descriptors, and this process may have {allowed}; ask for fewer, or \
         allow more (ulimit -n)"
    )]
    TooFewDescriptors {
        /// What was asked for.
        connections: usize,
        /// Descriptors for that.
        needed: usize,
        /// Descriptors that there may be.
        allowed: usize,
    },
    /// The function could not be made.
    #[error("cannot start the function")]
    Function(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The function refused a connection.
    #[error("cannot connect")]
    Connect(#[from] weftwire_core::CallError),
    /// A flow that the function should begin with is not fit for it.
    #[error("cannot begin with flow {number} of the file: {reason}")]
    Flow {
        /// Its place among those that were given, from 1 on.
        number: usize,
        /// Why.
        reason: ControlError,
    },
    /// The running kernel was built without what a link needs.
    #[error(
        "cannot {action}: this kernel lacks the feature (veth: CONFIG_VETH, bridge: CONFIG_BRIDGE, IPv6: CONFIG_IPV6)"
    )]
    LinksNotBuiltIn {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel has no such congestion control of TCP.
    #[error("this kernel has no congestion control `{name}`; it has {known}")]
    NoCongestionControl {
        /// What was asked for.
        name: String,
        /// What there is, comma-separated.
        known: String,
    },
    /// Any other failure of a system call.
    #[error("cannot {action}")]
    System {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl LinuxError {
    /// Wraps a system call's error with what was tried.
    pub fn system(action: impl Into<String>, source: io::Error) -> LinuxError {
        LinuxError::System { action: action.into(), source }
    }

    /// Like [`LinuxError::system`], but says which capability is missing if that is the reason.
    pub fn privileged(action: impl Into<String>, capability: &'static str, source: io::Error) -> LinuxError {
        if source.kind() == io::ErrorKind::PermissionDenied {
            let program = std::env::current_exe().map_or_else(|_| "weft".into(), |path| path.display().to_string());
            return LinuxError::Permission { action: action.into(), capability, program };
        }
        LinuxError::system(action, source)
    }
}
