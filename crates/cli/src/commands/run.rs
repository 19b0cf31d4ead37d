//! `weft run`: a function on real ports.

pub mod node;
mod replace;

use crate::arguments::parse_listen;
use crate::console::{self, tell};
use crate::recording::Recording;
use crate::reload::{Renewal, reload_on};
use crate::{load, output, states};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use replace::{Planned, Replacing};
use std::fs::File;
use std::io::{stderr, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use weftwire_catalog::Loaded;
use weftwire_catalog::parameter::{Parameter, parse_parameter};
#[cfg(feature = "services")]
use weftwire_core::Port;
use weftwire_core::live::Clocks;
use weftwire_core::{Endpoints, Function, LinkType, Listen, MacAddress, Ports, Time};
use weftwire_engine::change_to;
use weftwire_linux::application::{Application, Transfer};
use weftwire_linux::commands::{CommandQueue, commands};
use weftwire_linux::control::ControlServer;
use weftwire_linux::device::{Device, PortSpec};
use weftwire_linux::interface::{Interface, next_hop};
use weftwire_linux::local::{Place, Service, socket_of};
use weftwire_linux::pacer::{self, Policy, Precision};
use weftwire_linux::privileges::{Account, drop_privileges, is_root};
use weftwire_linux::random_words;
use weftwire_linux::recorder::Recorder;
use weftwire_linux::replacement::{Plan, Replaceable, Succession};
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::{HangUp, StopSignal};
use weftwire_sim::spec::{parse_connection, parse_duration};

/// This end's Ethernet address on a TAP device, whose own address belongs to the kernel's end. Locally administered.
const TAP_LOCAL_MAC: MacAddress = MacAddress([0x02, 0x77, 0x65, 0x66, 0x74, 0x01]);

/// In the line that a run writes just before it opens its connections.
const BEGINS: &str = "runs with seed";

/// Run a function on network interfaces, TUN and TAP devices, until it is interrupted.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: Machine,
    /// Open a connection at the start
    #[arg(long = "connect", value_name = "SRC:PORT-DST:PORT[/udp]", value_parser = parse_connection)]
    connects: Vec<Endpoints>,
    /// Take connections that others open to this end; 10.0.0.1 is all of its ports, :80 this port of all addresses. Without --connect
    /// and --listen, --send, --receive and --exit-when-ended take all
    #[arg(long = "listen", value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listens: Vec<Listen>,
    /// Send this file's bytes on the first connection, then close it for sending; - is standard input. Without --connect it
    /// is the first one that the other end opens
    #[arg(long, value_name = "FILE")]
    send: Option<PathBuf>,
    /// Append the bytes delivered by any flow to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    receive: Option<PathBuf>,
    /// End when every connection opened by --connect has ended; without any, the first one that the other end opens
    #[arg(long)]
    exit_when_ended: bool,
    /// Begin with the flows of a file that `weft flows snapshot` has written: they are there before the first packet is read
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// With --from: its flows are copies, and the function that they were copied from is gone, or both may answer
    #[arg(long, requires = "from")]
    copy: bool,
    /// Take over the run of this name, or of --control: its ports, its control socket and its live flows. It ends once this one serves
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "connects", "listens", "send", "receive", "exit_when_ended", "from", "out", "trace", "record", "seed",
    ])]
    replace: Option<String>,
    /// With --replace: say what would happen, or why not, and change nothing
    #[arg(long, requires = "replace")]
    check: bool,
    #[command(flatten)]
    link: Link,
    #[command(flatten)]
    platform: Platform,
}

/// The machine that runs, and how.
#[derive(Args, Clone)]
#[group(skip)]
pub struct Machine {
    /// The function: an image (.json) or a source
    image: PathBuf,
    /// Initial value of a register in place of the machine's own
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    parameters: Vec<Parameter>,
    /// The engine that runs the image
    #[arg(long, value_name = "NAME", default_value = "reference")]
    engine: String,
    #[command(flatten)]
    includes: load::Includes,
}

impl Machine {
    /// Reads it, and runs it as [`run`] does. `name` is made from the machine's.
    pub fn run<A: Application>(
        &self,
        platform: &Platform,
        name: impl FnOnce(&str) -> String,
        application: impl FnOnce() -> Result<A>,
        course: Course,
    ) -> Result<A> {
        let function = self.load()?;
        ensure!(
            !course.opens_connections || function.opens_connections(),
            "{} opens no connections: it has no handler `on connect` or `on data`; examples/transports/tcp/tcp.xl has one",
            self.image.display()
        );
        let start = |ports: &Ports, seed, key| Ok(function.start(&self.engine, ports, seed, key)?);
        run(platform, &name(function.name()), start, application, || {}, course)
    }

    /// Runs it like that, and has it read again whenever SIGHUP comes: its flows go on in what the file holds then. With `planned`
    /// it begins as what runs elsewhere, and goes over to `function` once it has the flows.
    fn run_and_reload<A: Application>(
        &self,
        platform: &Platform,
        application: impl FnOnce() -> Result<A>,
        function: Loaded,
        planned: Option<Planned>,
        course: Course,
    ) -> Result<A> {
        let (name, mut function, mut succession) = (function.name().to_owned(), function, None);
        if let Some(planned) = planned {
            let old = Loaded::Machine(planned.old.clone());
            let (mut begun, plan) = planned.begin()?;
            if let Loaded::Machine(image) = std::mem::replace(&mut function, old) {
                let (change, prepared) = change_to(&self.engine, *image)?;
                begun.set_change(change, prepared);
            }
            succession = Some((begun, plan));
        }
        let start = |ports: &Ports, seed, key| Ok(function.start(&self.engine, ports, seed, key)?);
        let hangup = HangUp::hold()?;
        let (sender, queue) = commands()?;
        let machine = self.clone();
        let ready = || reload_on(hangup, "the machine stays as it is", move || machine.renewal(), sender);
        let course = Course { commands: Some(queue), succession, ..course };
        run(platform, &name, start, application, ready, course)
    }

    fn load(&self) -> Result<Loaded> {
        Ok(self.includes.catalog()?.machine(&self.image, &self.parameters)?)
    }

    /// What its file holds now, as a change of the running function.
    fn renewal(&self) -> Result<Renewal> {
        let Loaded::Machine(image) = self.load()? else { bail!("{} is no machine", self.image.display()) };
        let done = format!("{} is read again: image {}", self.image.display(), image.digest);
        let (change, prepared) = change_to(&self.engine, *image)?;
        Ok(Renewal { change, prepared, done })
    }
}

/// What connections that this end opens have below IP.
#[derive(Args)]
#[group(skip)]
pub struct Link {
    /// Ethernet address of this end of connections [default: the interface's]
    #[arg(long, value_name = "MAC")]
    local_mac: Option<MacAddress>,
    /// Ethernet address of the next hop of connections [default: from the kernel's neighbour table]
    #[arg(long, value_name = "MAC")]
    gateway_mac: Option<MacAddress>,
    /// VLAN of connections, 0 to 4095 with the priority in the bits above [default: untagged]
    #[arg(long, value_name = "TAG")]
    vlan: Option<u16>,
}

impl Link {
    /// Adds what the link asks for: the VLAN, and the Ethernet addresses on the first Ethernet port if there is one.
    pub fn complete(&self, platform: &Platform, mut ends: Endpoints) -> Result<Endpoints> {
        ends.vlan = self.vlan;
        let remote = ends.remote_address;
        for spec in &platform.ports {
            let name = spec.device.interface();
            let interface = Interface::find(name)?;
            if interface.link == LinkType::Ip {
                continue;
            }
            let (own, next) = match spec.device {
                Device::Tap(_) => (TAP_LOCAL_MAC, Some(interface.mac)),
                _ => (interface.mac, next_hop(name, remote)),
            };
            let Some(next) = self.gateway_mac.or(next) else {
                bail!(
                    "the Ethernet address of the next hop from `{name}` to {remote} is not known; give it with --gateway-mac"
                );
            };
            ends.local_mac = self.local_mac.unwrap_or(own);
            ends.remote_mac = next;
            break;
        }
        Ok(ends)
    }
}

/// Where and how a function runs on this machine, whatever it is.
#[derive(Args)]
#[group(skip)]
pub struct Platform {
    /// A port: NUMBER=INTERFACE[,socket|,ring|,xdp], NUMBER=tun:NAME or NUMBER=tap:NAME
    #[arg(long = "port", value_name = "NUMBER=DEVICE", required = true)]
    ports: Vec<PortSpec>,
    /// End after this time, e.g. 10s
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Poll all ports busily: answers within microseconds, costs a whole processor; implied by a `ring` port
    #[arg(long)]
    spin: bool,
    /// How timers are waited for: asleep, late by the kernel's 20 to 100 us; spinning, which costs a processor; or asleep first and spinning
    /// for the end, as long as this machine needs (auto) or for this time
    #[arg(long, value_name = "sleep|spin|auto|TIME", default_value = "sleep")]
    precision: Precision,
    /// End with an error when the interface of a port is gone [default: wait until it is back]
    #[arg(long)]
    exit_when_gone: bool,
    /// Stay on this processor
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Real-time priority (SCHED_FIFO)
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(i32).range(1..=99))]
    priority: Option<i32>,
    /// Seed of the function's random numbers and hash key, for reproducible runs [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Capture the frames of every port
    #[arg(long, value_name = "FILE.pcapng")]
    out: Option<PathBuf>,
    /// Write a trace of every event
    #[arg(long, value_name = "FILE.jsonl")]
    trace: Option<PathBuf>,
    /// Record all inputs, so that `weft replay --inputs` or `weft subs replay` can repeat the run bit for bit; seed and keys go to FILE.keys, which only
    /// you can read
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The run's name, for its control socket [default: the function's]
    #[arg(long)]
    name: Option<String>,
    /// Path of the control socket
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// The user that root becomes once everything is open [default: one of its own, without a name]
    #[arg(long, value_name = "NAME", conflicts_with = "keep_privileges")]
    user: Option<String>,
    /// Do not give up privileges
    #[arg(long)]
    keep_privileges: bool,
}

impl Platform {
    /// The numbers of the ports.
    #[cfg(feature = "services")]
    pub fn port_numbers(&self) -> impl Iterator<Item = Port> {
        self.ports.iter().map(|spec| spec.port)
    }

    /// Whether all inputs are recorded.
    #[cfg(feature = "services")]
    pub fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Whether privileges stay.
    #[cfg(feature = "services")]
    pub fn keeps_privileges(&self) -> bool {
        self.keep_privileges
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let flows = arguments.from.as_deref().map(|path| states::flows_to_adopt(path, arguments.copy)).transpose()?;
    let machine = arguments.machine.load()?;
    let engine = &arguments.machine.engine;
    let plan = |name: &String| replace::plan(name, &arguments.platform, engine, &machine);
    let planned = arguments.replace.as_ref().map(plan).transpose()?;
    if let (Some(planned), Some(name), true) = (&planned, &arguments.replace, arguments.check) {
        replace::tell(name, planned, &machine);
        return Ok(());
    }
    let replacing = replace::replacing(arguments, &machine);
    let name = arguments.replace.clone();
    let course = Course { flows: flows.unwrap_or_default(), replacing, name, ..Course::default() };
    let application = || application(arguments);
    arguments.machine.run_and_reload(&arguments.platform, application, machine, planned, course).map(drop)
}

/// How a run begins, goes on and ends, beside what users choose for every function.
#[derive(Default)]
pub struct Course {
    /// By these other threads change the function.
    pub commands: Option<CommandQueue>,
    /// When the state was written that the function begins with, and how its time stood to the machine's clocks.
    pub resumes: Option<(Time, Clocks)>,
    /// States of flows that the function begins with.
    pub flows: Vec<Vec<u8>>,
    /// It says nothing: no notices, no summary.
    pub silent: bool,
    /// Whether another process may take it over.
    pub replacing: Replacing,
    /// The run that it takes over.
    pub succession: Option<(Succession, Plan)>,
    /// Its name if the arguments give none, in place of the function's.
    pub name: Option<String>,
    /// It is of no use with a machine that opens no connections, or a port that no frames can leave by.
    pub opens_connections: bool,
}

/// Runs a function until it is interrupted, its application is over, or the arguments say that it ends. `start` makes it for these
/// ports, a seed and a hash key; `application` is what its connections carry, and comes back; `ready` is called once everything is
/// open and privileges are gone.
pub fn run<A: Application>(
    platform: &Platform,
    name: &str,
    start: impl FnOnce(&Ports, u64, Option<[u64; 2]>) -> Result<Box<dyn Function>>,
    application: impl FnOnce() -> Result<A>,
    ready: impl FnOnce(),
    course: Course,
) -> Result<A> {
    let Course { commands, resumes, flows, silent, opens_connections, replacing, succession, name: given } = course;
    let (mut succession, plan) = succession.unzip();
    let ports = match &mut succession {
        Some(succession) => succession.open_ports(&platform.ports)?,
        None => open_ports(&platform.ports)?,
    };
    let links = Ports::new(ports.iter().map(|open| (open.port, open.device.link())));
    let [random_seed, key @ ..] = random_words::<3>().context("cannot draw a random seed")?;
    // A key made from the seed is as reproducible as the rest, and known to whoever knows the seed.
    let (seed, key) = match (&plan, platform.seed) {
        // Flows to come draw from where those that live do: what was said to a client before it had a flow stays true.
        (Some(plan), _) => (plan.seed, plan.key),
        (None, Some(seed)) => (seed, None),
        (None, None) => (random_seed, Some(key)),
    };
    let name = platform.name.clone().or(given).unwrap_or_else(|| name.to_owned());
    let mut function = start(&links, seed, key)?;

    let stop = StopSignal::install()?;
    let account = match is_root() && !platform.keep_privileges {
        true => Some(Account::choose(platform.user.as_deref())?),
        false => None,
    };
    let user = account.as_ref().map(Account::user);
    let mut application = application()?;
    let recorder = recorder(platform, &ports)?;
    let recording = platform.record.as_deref().map(|path| Recording::create(path, seed, key)).transpose()?;
    // Its name and folder are this run's until it ends.
    let mut place = match (&platform.control, &mut succession) {
        (Some(_), _) => None,
        (None, None) => Some(Place::take(Service::Run(&name))?),
        (None, Some(succession)) => {
            let lock = succession.take_lock().context("the run that is replaced has no lock on its name")?;
            Some(Place::inherit(&socket_of(Service::Run(&name))?, lock))
        }
    };
    let path =
        place.as_ref().map_or_else(|| platform.control.clone().unwrap_or_default(), |place| place.socket().to_owned());
    let mut control = match succession.as_mut().and_then(Succession::take_listener) {
        Some(listener) => ControlServer::take_over(&path, listener)?,
        None => ControlServer::open(&path, &name, account.as_ref().and_then(Account::operator))?,
    };
    let refusal = match replacing {
        Replacing::Never => None,
        Replacing::Refused(reason) => Some(Some(reason)),
        Replacing::Allowed => Some(None),
    };
    if let Some(refusal) = refusal {
        let lock =
            place.as_ref().map(Place::share_lock).transpose().context("cannot share the lock on the run's name")?;
        control.set_replaceable(Replaceable { seed, key, ports: replace::ports(platform), lock, refusal });
    }
    if let (Some(place), Some(user)) = (&place, user) {
        place.give_to(user)?;
    }
    let precision = precision(platform);
    if !platform.keep_privileges {
        drop_privileges(user)?;
    }
    let failure = match recording {
        Some(recording) => {
            let (recorded, failure) = recording.begin(function, &links)?;
            function = recorded;
            Some(failure)
        }
        None => None,
    };
    ready();

    let options = RunOptions {
        spin: platform.spin
            || platform.precision == Precision::Spin
            || platform.ports.iter().any(|spec| matches!(spec.device, Device::Ring(_))),
        precision,
        // Never negative.
        duration: platform.duration,
        needs_ports: opens_connections,
        silent,
        exit_when_gone: platform.exit_when_gone,
        resumes,
    };
    if !silent {
        for OpenPort { port, name, device } in &ports {
            if let Some(how) = device.how() {
                tell!("port {port} ({name}): {how}");
            }
        }
        tell!("{name} {BEGINS} {seed}; control socket {}; Ctrl-C ends it", path.display());
    }
    let messages = Box::new(stderr());
    let control = Some(control);
    let run = Run {
        ports,
        application: &mut application,
        recorder,
        control,
        commands,
        flows,
        succession,
        stop,
        messages,
        options,
    };
    let report = run.run(function.as_mut())?;
    drop(function);
    if let Some(place) = &mut place {
        place.own(!report.replaced);
    }
    if !silent {
        console::tell_text(format_args!("{report}"));
    }
    if let Some(error) = failure.as_deref().and_then(OnceLock::get) {
        bail!("the recording is not whole: {error}");
    }
    Ok(application)
}

/// Puts this thread in its place, if anything exact was asked for, and finds out how deadlines are to be waited for.
fn precision(platform: &Platform) -> Policy {
    let place = pacer::Place { cpu: platform.cpu, priority: platform.priority };
    if place == pacer::Place::default() && platform.precision == Precision::Sleep {
        return Policy::Sleep;
    }
    for refused in place.take().refused {
        tell!("warning: timers may be late: {refused}");
    }
    let policy = platform.precision.policy();
    if let (Precision::Auto, Policy::SleepSpin { margin }) = (platform.precision, policy) {
        tell!("timers are waited for spinning for the last {} us", margin.as_micros());
    }
    policy
}

fn open_ports(specs: &[PortSpec]) -> Result<Vec<OpenPort>> {
    let mut ports: Vec<OpenPort> = Vec::new();
    for spec in specs {
        ensure!(
            ports.iter().all(|open| open.port != spec.port),
            "port {} is given twice; give each --port its own number",
            spec.port
        );
        let device = spec.device.open()?;
        ports.push(OpenPort { port: spec.port, name: spec.device.interface().to_owned(), device });
    }
    Ok(ports)
}

/// The streams and connections that the arguments ask for.
fn application(arguments: &Arguments) -> Result<Transfer> {
    let connects = arguments.connects.iter().map(|ends| arguments.link.complete(&arguments.platform, *ends));
    let mut transfer = Transfer::new(connects.collect::<Result<_>>()?);
    arguments.listens.iter().for_each(|local| transfer.listen(*local));
    if arguments.exit_when_ended {
        transfer.end_with_connections();
    }
    let opens_none = arguments.connects.is_empty();
    let awaits_peer = opens_none && (arguments.send.is_some() || arguments.exit_when_ended);
    if awaits_peer {
        transfer.await_peer();
    }
    if arguments.listens.is_empty() && (awaits_peer || opens_none && arguments.receive.is_some()) {
        transfer.listen(Listen::default());
    }
    if let Some(path) = &arguments.send {
        transfer.set_source(match path.to_str() {
            Some("-") => File::from(stdin().as_fd().try_clone_to_owned()?),
            _ => File::open(path).with_context(|| format!("cannot open {} to send it", path.display()))?,
        });
    }
    if let Some(path) = &arguments.receive {
        transfer.set_sink(output::open_growing(path, true)?);
    }
    Ok(transfer)
}

/// The files that the arguments ask for.
fn recorder(platform: &Platform, ports: &[OpenPort]) -> Result<Recorder> {
    let mut recorder = Recorder::new();
    if let Some(path) = &platform.trace {
        recorder.set_trace(path, output::open_growing(path, false)?);
    }
    if let Some(path) = &platform.out {
        let ports: Vec<_> = ports.iter().map(|open| (open.port, open.name.as_str(), open.device.link())).collect();
        recorder.set_capture(path, output::open_growing(path, false)?, &ports)?;
    }
    Ok(recorder)
}
