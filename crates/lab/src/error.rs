//! What can go wrong with a network of namespaces, each with what would be right.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use weftwire_linux::LinuxError;

/// A network of namespaces can't be made, used or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Only root makes networks.
    #[error("networks are made of network namespaces, which needs root; use sudo, or `weft sim` for the simulator")]
    NoRoot,
    /// Only root takes networks down.
    #[error("taking a network down needs root; use sudo")]
    NoRootToRemove,
    /// Another network has the name.
    #[error(
        "a network `{name}` is up already (from {}); take it down with `weft down {name}`, or give this one another name with \
         --name",
        file.display()
    )]
    AlreadyUp {
        /// The network.
        name: String,
        /// The file that it was made from.
        file: PathBuf,
    },
    /// A network of this name was not taken down.
    #[error("a crash has left the network `{0}` behind; remove it with `weft down {0}`")]
    LeftBehind(String),
    /// Others work on the network.
    #[error(
        "another `weft up` or `weft down` of the network `{0}` has been at work for a minute; wait for it, or end it"
    )]
    AtWork(String),
    /// A namespace of somebody else has a name that is needed.
    #[error(
        "there is a namespace `{0}` that no network of this program has made; remove it with `ip netns delete {0}`, or give the \
         network another name with --name"
    )]
    NamespaceTaken(String),
    /// Something went wrong in a namespace.
    #[error("in namespace {namespace}")]
    InNamespace {
        /// The namespace.
        namespace: String,
        /// What.
        source: Box<LabError>,
    },
    /// There is no `/proc`.
    #[error("cannot read /proc/self/stat; networks need /proc to be mounted")]
    NoProc,
    /// The relay ended without a word.
    #[error("the relay's thread ended at once")]
    RelayEnded,
    /// A file asks for what only the simulator can do.
    #[error(
        "multipath = \"packet\" can't be on Linux: its kernel spreads flows over several ways, not packets; add --set \
         routing.multipath=flow, or use `weft sim`"
    )]
    PacketMultipath,
    /// The same of priority-based flow control.
    #[error(
        "`pause` of links can't be on Linux: its kernel forwards between links and hears of no pause; leave it out, or use \
         `weft sim`"
    )]
    Pause,
    /// The same of a traffic's DSCP.
    #[error(
        "the `dscp` of traffic `{0}` can't be on Linux: leave it out and send by a command of the host (`ping -Q`, `iperf3 \
         --dscp`), or use `weft sim`"
    )]
    Dscp(String),
    /// A node that should run a function has none.
    #[error("node `{0}` has no function")]
    NoFunction(String),
    /// A node's function does not run.
    #[error("the function of node `{node}` {what}; it said: {said}")]
    FunctionFailed {
        /// The node.
        node: String,
        /// What it did instead.
        what: &'static str,
        /// What its standard error holds.
        said: String,
    },
    /// A node that should run a command is no host.
    #[error("node `{0}` is no host")]
    NoHost(String),
    /// A command without a word.
    #[error("command {number} of node `{node}` is empty")]
    EmptyCommand {
        /// The node.
        node: String,
        /// Which of its commands, counted from 1.
        number: usize,
    },
    /// The ends of a traffic can't reach each other.
    #[error("traffic `{traffic}`: there is no way from {from} to {to}")]
    NoWay {
        /// The traffic.
        traffic: String,
        /// Address of its sender.
        from: IpAddr,
        /// Address of its receiver.
        to: IpAddr,
    },
    /// The kernel can't do what a traffic asks for.
    #[error("traffic `{traffic}`")]
    Traffic {
        /// The traffic.
        traffic: String,
        /// Why not.
        source: LinuxError,
    },
    /// A traffic asks for a recovery from losses; the kernel's is RACK-TLP.
    #[error("traffic `{0}`: a kernel recovers from losses by RACK-TLP; leave out `recovery`, or use `weft sim`")]
    OtherRecovery(String),
    /// An error of the platform.
    #[error(transparent)]
    Linux(#[from] LinuxError),
}

impl LabError {
    /// As [`LinuxError::system`].
    pub(crate) fn system(action: impl Into<String>, source: io::Error) -> LabError {
        LinuxError::system(action, source).into()
    }

    /// As [`LinuxError::privileged`].
    pub(crate) fn privileged(action: impl Into<String>, capability: &'static str, source: io::Error) -> LabError {
        LinuxError::privileged(action, capability, source).into()
    }
}
