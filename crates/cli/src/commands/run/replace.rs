//! `weft run --replace`: what has to hold before this process may take over the run of another one.

use super::{Arguments, Platform};
use crate::console::say;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use weftwire_catalog::Loaded;
use weftwire_core::control::carry_out;
use weftwire_core::{Command, Outbox, Ports, Time};
use weftwire_engine::change_to;
use weftwire_image::VerifiedImage;
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::interface::Interface;
use weftwire_linux::local::{Service, socket_of};
use weftwire_linux::privileges::is_root;
use weftwire_linux::replacement::{Plan, PlannedPort, Succession};
use weftwire_linux::system::random_words;

/// Whether a run can be replaced.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Replacing {
    /// Runs of its kind can't.
    #[default]
    Never,
    /// It can't as it was started, and why.
    Refused(String),
    /// It can.
    Allowed,
}

/// A run that can be replaced by this program, as far as anybody can tell before it has stopped.
pub struct Planned {
    /// What it says of itself.
    pub plan: Plan,
    /// The image that runs there.
    pub old: Box<VerifiedImage>,
    client: ControlClient,
}

impl Planned {
    /// Gets the ports. The run goes on until this process is ready.
    pub fn begin(self) -> Result<(Succession, Plan)> {
        Ok((Succession::begin(self.client, &self.plan)?, self.plan))
    }
}

/// Whether what runs by these arguments can be replaced later.
pub fn replacing(arguments: &Arguments, machine: &Loaded) -> Replacing {
    let carries = !arguments.connects.is_empty()
        || !arguments.listens.is_empty()
        || arguments.send.is_some()
        || arguments.receive.is_some()
        || arguments.exit_when_ended;
    if carries || machine.opens_connections() {
        let reason = "it has connections of its own, whose bytes do not change hands yet; end it and start the new one";
        return Replacing::Refused(reason.into());
    }
    if let Some(spec) = arguments.platform.ports.iter().find(|spec| !spec.device.changes_hands()) {
        let (kind, interface) = (spec.device.kind(), spec.device.interface());
        return Replacing::Refused(format!(
            "port {} ({interface}) is of the kind `{kind}`, whose memory does not change hands yet; `socket`, `tun` and `tap` do",
            spec.port
        ));
    }
    Replacing::Allowed
}

/// Asks the run of this name, and sees whether it can go on in `machine` with these ports.
pub fn plan(name: &str, platform: &Platform, engine: &str, machine: &Loaded) -> Result<Planned> {
    ensure!(is_root(), "only root may replace a run; use sudo");
    let path: PathBuf = match &platform.control {
        Some(path) => path.clone(),
        None => socket_of(Service::Run(name))?,
    };
    let mut client = ControlClient::connect(Some(&path))?;
    let plan = Succession::plan(&mut client)?;
    let mut asked = ports(platform);
    let mut there = plan.ports.clone();
    asked.sort_by_key(|port| port.port);
    there.sort_by_key(|port| port.port);
    ensure!(
        asked == there,
        "the run that is to be replaced has other ports: {} there, {} here; give the same --port",
        list(&there),
        list(&asked)
    );
    let old = VerifiedImage::from_json(plan.image.as_bytes()).context("the image that runs there is of no use here")?;
    if let Loaded::Machine(new) = machine {
        fits(engine, platform, &old, new)?;
    }
    Ok(Planned { plan, old: Box::new(old), client })
}

/// Whether flows of the image `old` can go on in `new`: tried, with a function that has none.
fn fits(engine: &str, platform: &Platform, old: &VerifiedImage, new: &VerifiedImage) -> Result<()> {
    let links: Vec<_> = platform
        .ports
        .iter()
        .map(|spec| Ok((spec.port, Interface::find(spec.device.interface())?.link)))
        .collect::<Result<_>>()?;
    let [seed] = random_words().context("cannot draw a random seed")?;
    let there = Loaded::Machine(Box::new(old.clone()));
    let mut function = there.start(engine, &Ports::new(links), seed, None)?;
    let (change, prepared) = change_to(engine, new.clone())?;
    let command = Command::prepared(0, change, prepared);
    carry_out(function.as_mut(), Time::ZERO, command, &mut Outbox::new())
        .context("the run is not replaced: its flows would not go on in this machine")?;
    Ok(())
}

/// Says what would happen.
pub fn tell(name: &str, planned: &Planned, machine: &Loaded) {
    let Plan { process, ports, flows, .. } = &planned.plan;
    say!("run {name} of process {process} can be replaced: {flows} flows now, ports {}", list(ports));
    let Loaded::Machine(new) = machine else { return };
    match new.digest == planned.old.digest {
        true => say!("image {}, as it is", new.digest),
        false => say!("image {} in place of {}", new.digest, planned.old.digest),
    }
    say!("nothing has changed");
}

/// The ports as a run tells of them.
pub fn ports(platform: &Platform) -> Vec<PlannedPort> {
    let planned = |spec: &weftwire_linux::device::PortSpec| PlannedPort {
        port: spec.port,
        kind: spec.device.kind().to_owned(),
        interface: spec.device.interface().to_owned(),
    };
    platform.ports.iter().map(planned).collect()
}

fn list(ports: &[PlannedPort]) -> String {
    let one =
        |port: &PlannedPort| format!("{}={} ({})", port.port, weftwire_text::printable(&port.interface), port.kind);
    ports.iter().map(one).collect::<Vec<_>>().join(", ")
}
