//! The TCP of hosts: the machine of `examples/transports/tcp`, compiled from the sources that this crate was built with.

use super::wire::MTU;
use std::collections::BTreeMap;
use std::io;
use std::sync::LazyLock;
use weftwire_core::{LinkType, Port, Ports};
use weftwire_engine::parameter::{self, Parameter, apply};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};
use weftwire_network::model::{Network, NodeKind, Traffic};
use weftwire_text::{LoadError, Loader};

/// The port of every host's machine. The way that a segment takes is the network layer's matter, not the machine's.
pub const PORT: Port = Port(1);

/// The ports of every host's machine.
pub fn ports() -> Ports {
    Ports::new([(PORT, LinkType::Ethernet)]).with_mtu(MTU as u32)
}

/// What the machine names its timer of TIME-WAIT.
pub const LINGER: &str = "linger";
/// What it tells applications: the connection is there,
pub const ESTABLISHED: &str = "established";
/// the other end has closed,
pub const FINISHED: &str = "finished";
/// the other end does not answer.
pub const TIMED_OUT: &str = "timed_out";

/// Its register that chooses the congestion control, and what Linux calls those by number.
pub const CONTROL: &str = "control";
const CONTROLS: [&str; 6] = ["reno", "cubic", "dctcp", "swift", "bbr", "bbr3"];

/// The files of the machine by name.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tcp_sources.rs"));

/// A machine, or why it can't be made.
type Made = Result<VerifiedImage, String>;

/// The machine, compiled when it is needed first.
static IMAGE: LazyLock<Made> = LazyLock::new(|| compiled("tcp.xl"));
/// The same with the congestion controls that few ask for.
static MORE: LazyLock<Made> = LazyLock::new(|| compiled("tcp_more.xl"));

fn compiled(name: &str) -> Made {
    let compilation = compile(name, Dialect::Xl, &Sources);
    let first = || compilation.diagnostics.first().map_or_else(String::new, |found| found.message.clone());
    let image = compilation.image.ok_or_else(|| format!("the hosts' TCP does not compile: {}", first()))?;
    image.verify().map_err(|error| format!("the hosts' TCP does not verify: {error}"))
}

/// The machine that has all congestion controls that a network asks for.
fn machine_of(network: &Network) -> &'static Made {
    let Ok(image) = &*IMAGE else { return &IMAGE };
    let Some(control) = image.registers.iter().find(|register| register.name == CONTROL) else { return &IMAGE };
    let few = control.values.len();
    let by_traffic = |traffic: &Traffic| chosen_control(traffic).is_ok_and(|number| number.is_some_and(|it| it >= few));
    let by_host = |kind: &NodeKind| match kind {
        NodeKind::Host { parameters, .. } => {
            parameters.get(CONTROL).is_some_and(|text| parameter::register_value(control, text).is_none())
        }
        _ => false,
    };
    let more = network.traffic.iter().any(by_traffic) || network.nodes().any(|(_, node)| by_host(&node.kind));
    if more { &MORE } else { &IMAGE }
}

struct Sources;

impl Loader for Sources {
    fn load(&self, name: &str, _: Option<&str>) -> Result<String, LoadError> {
        let found = SOURCES.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| LoadError::Unknown(name.to_owned()))
    }
}

/// The files of the hosts' TCP by name, as they were when this crate was built: what results depend on.
pub fn sources() -> &'static [(&'static str, &'static str)] {
    SOURCES
}

/// The names of the registers of a network's hosts; none if there is no machine.
pub fn registers(network: &Network) -> Vec<&'static str> {
    machine_of(network).as_ref().map_or_else(|_| Vec::new(), |image| parameter::registers(image))
}

/// How many flows the machine has room for.
pub fn most_flows() -> u64 {
    IMAGE.as_ref().map_or(0, |image| image.flow.max.into())
}

/// What hosts' machines are made from.
pub struct Tcp {
    made: &'static Made,
    /// One for each set of initial values.
    prototypes: Vec<(BTreeMap<String, String>, ReferenceEngine)>,
}

impl Tcp {
    /// What the machines of this network's hosts are made from.
    pub fn new(network: &Network) -> Tcp {
        Tcp { made: machine_of(network), prototypes: Vec::new() }
    }

    /// A machine for one more host with these initial values. Hosts with the same ones share the image and what the engine has made
    /// of it.
    ///
    /// # Errors
    /// An initial value is not one of a register.
    pub fn machine(&mut self, parameters: &BTreeMap<String, String>, seed: u64) -> io::Result<ReferenceEngine> {
        let options = EngineOptions { seed, ..EngineOptions::default() };
        if let Some((_, prototype)) = self.prototypes.iter().find(|(known, _)| known == parameters) {
            return prototype.another(options).map_err(io::Error::other);
        }
        let prototype =
            ReferenceEngine::new(image(self.made, parameters)?, ports(), options).map_err(io::Error::other)?;
        let machine = prototype.another(options).map_err(io::Error::other);
        self.prototypes.push((parameters.clone(), prototype));
        machine
    }
}

/// Sees whether all initial values are those of registers.
///
/// # Errors
/// The first that is not.
pub fn check(network: &Network) -> io::Result<()> {
    for (_, node) in network.nodes() {
        if let NodeKind::Host { parameters, .. } = &node.kind
            && !parameters.is_empty()
        {
            image(machine_of(network), parameters).map_err(|error| of_node(&node.name, &error))?;
        }
    }
    Ok(())
}

/// An error with the name of the host that it is about.
pub fn of_node(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("node {name}: {error}"))
}

/// The machine with these initial values.
fn image(made: &Made, parameters: &BTreeMap<String, String>) -> io::Result<VerifiedImage> {
    let image = made.clone().map_err(io::Error::other)?;
    let parameters: Vec<Parameter> = parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    apply(image, &parameters).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// A traffic asks for a congestion control that there is not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("traffic `{traffic}` asks for the congestion control `{control}`: the simulator has {}", CONTROLS.join(", "))]
pub struct NoControl {
    /// The traffic.
    pub traffic: String,
    /// What it asks for.
    pub control: String,
}

/// The congestion control that a traffic asks for, by number.
///
/// # Errors
/// There is none of that name.
pub fn chosen_control(traffic: &Traffic) -> Result<Option<usize>, NoControl> {
    let Some(name) = &traffic.congestion_control else { return Ok(None) };
    match CONTROLS.iter().position(|known| known == name) {
        Some(number) => Ok(Some(number)),
        None => Err(NoControl { traffic: traffic.name.clone(), control: name.clone() }),
    }
}

/// The register that chooses the recovery from losses.
pub const RECOVERY: &str = "recovery";

/// A traffic asks for a recovery from losses that there is not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("traffic `{traffic}` asks for the recovery `{recovery}`: the simulator has {}", recoveries().join(", "))]
pub struct NoRecovery {
    /// The traffic.
    pub traffic: String,
    /// What it asks for.
    pub recovery: String,
}

/// The names of the machine's ways to recover from losses; none if there is no machine.
fn recoveries() -> &'static [String] {
    let registers = IMAGE.as_ref().map_or(&[][..], |image| &image.registers[..]);
    registers.iter().find(|register| register.name == RECOVERY).map_or(&[], |register| &register.values)
}

/// The recovery from losses that a traffic asks for, by number.
///
/// # Errors
/// There is none of that name.
pub fn chosen_recovery(traffic: &Traffic) -> Result<Option<usize>, NoRecovery> {
    let Some(name) = &traffic.recovery else { return Ok(None) };
    match recoveries().iter().position(|known| known == name) {
        Some(number) => Ok(Some(number)),
        None => Err(NoRecovery { traffic: traffic.name.clone(), recovery: name.clone() }),
    }
}

/// The name of the congestion control of a traffic's connections: the one that it asks for, else that of the host, else the
/// machine's own.
pub fn control_name(network: &Network, traffic: &Traffic) -> Option<&'static str> {
    let registers = machine_of(network).as_ref().map_or(&[][..], |image| &image.registers[..]);
    let register = registers.iter().find(|register| register.name == CONTROL)?;
    let of_host = || match &network.node(traffic.from).kind {
        NodeKind::Host { parameters, .. } => parameter::register_value(register, parameters.get(CONTROL)?),
        _ => None,
    };
    let asked = chosen_control(traffic).ok().flatten();
    let number = asked.or_else(|| usize::try_from(of_host().unwrap_or(register.initial)).ok())?;
    CONTROLS.get(number).copied()
}
