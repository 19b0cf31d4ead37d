//! Networks under random faults: the examples hold, and planted defects are found with the faults that they need.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect};
use weftwire_core::{
    Arrivals, CallError, Connections, Deadline, Endpoints, FlowId, Formats, Function, LinkType, Outbox, Output, Packet,
    Ports, Time,
};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::VerifiedImage;
use weftwire_lang::Dialect;
use weftwire_network::Network;
use weftwire_network::link::LinkSettings;
use weftwire_network::model::{LinkIndex, NodeIndex, NodeKind};
use weftwire_sim::chaos::{Experiment, Fault, FaultKind, Impairment, Invariant, Made, Stage, schedule, shrink};
use weftwire_sim::network::Progress;
use weftwire_text::{LoadError, Loader};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

struct Files;

#[expect(clippy::disallowed_methods, reason = "the examples are files")]
impl Loader for Files {
    fn load(&self, name: &str, _: Option<&str>) -> Result<String, LoadError> {
        Ok(std::fs::read_to_string(examples().join(name))?)
    }

    fn resolve(&self, name: &str, _: Option<&str>) -> String {
        name.to_owned()
    }
}

/// An example's network, with some values of the file changed.
fn network(name: &str, changes: &[(&str, &str)]) -> Network {
    let text = Files.load(&format!("networks/{name}.toml"), None).unwrap();
    let changes: Vec<_> =
        changes.iter().map(|(path, value)| ((*path).to_owned(), toml::Value::String((*value).to_owned()))).collect();
    let reading = weftwire_network::read(name, &text, &changes, &|name| Files.load(name, None));
    let messages: Vec<_> = reading.diagnostics.iter().map(|diagnostic| &diagnostic.message).collect();
    reading.network.unwrap_or_else(|| panic!("{messages:?}"))
}

/// Runs the examples' functions, one of them with a defect.
struct Planting {
    images: Vec<Option<VerifiedImage>>,
    /// The node and its defect.
    defect: Option<(NodeIndex, Defect)>,
}

impl Planting {
    fn new(network: &Network, defect: Option<(&str, Defect)>) -> Planting {
        let image = |kind: &NodeKind| {
            let NodeKind::Function(function) = kind else { return None };
            let name = function.image.trim_start_matches("../");
            let compiled = weftwire_lang::compile(name, Dialect::Xl, &Files);
            Some(compiled.image.unwrap().verify().unwrap())
        };
        let images = network.nodes().map(|(_, node)| image(&node.kind)).collect();
        let defect = defect.map(|(wanted, defect)| {
            let node = network.nodes().find(|(_, node)| node.name == wanted).unwrap().0;
            (node, defect)
        });
        Planting { images, defect }
    }
}

impl Stage for Planting {
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Made> {
        let image = self.images[node.0 as usize].clone().unwrap();
        let most_flows = image.flow.max.into();
        let options = EngineOptions { seed, ..EngineOptions::default() };
        let function = make("reference", image, ports.clone(), options).unwrap();
        let planted = self.defect.filter(|(wanted, _)| *wanted == node).map(|(_, defect)| defect);
        let Some(defect) = planted else { return Ok(Made { function, most_flows }) };
        let planted = Planted { function, defect, bad: false, done: false };
        Ok(Made { function: Box::new(planted), most_flows })
    }

    /// Frames with wrong checksums do not get as far as a host's TCP: its defect is there from the beginning.
    fn host(&mut self, node: NodeIndex, tcp: Box<dyn Function>) -> Box<dyn Function> {
        match self.defect {
            Some((wanted, defect)) if wanted == node => {
                Box::new(Planted { function: tcp, defect, bad: true, done: false })
            }
            _ => tcp,
        }
    }

    fn capture(&mut self, _: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        Err(io::Error::other("no captures here"))
    }

    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What goes wrong, once a frame with a wrong checksum has come in.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Defect {
    /// The next bytes for the application are handed over twice.
    DeliversTwice,
    /// The next bytes for the application are not handed over.
    DeliversNothing,
    /// The table grows beyond its limit.
    LeaksFlows,
    /// Timers do not fire.
    ForgetsTimers,
    Panics,
}

struct Planted {
    function: Box<dyn Function>,
    defect: Defect,
    /// A wrong frame has come in.
    bad: bool,
    /// A delivery has been spoilt.
    done: bool,
}

impl Function for Planted {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        while let Some(arrival) = arrivals.pop_front() {
            let port = arrival.port;
            let frame = arrival.frame();
            let wrong = Packet::parse(LinkType::Ethernet, frame, &Formats::default()).is_err();
            assert!(!(wrong && self.defect == Defect::Panics), "a planted panic");
            self.bad |= wrong;
            if !self.bad || !matches!(self.defect, Defect::DeliversTwice | Defect::DeliversNothing) {
                self.function.frame(now, port, frame, out);
                continue;
            }
            let mut own = Outbox::new();
            self.function.frame(now, port, frame, &mut own);
            for item in own.items() {
                match item {
                    Output::Deliver { flow, bytes } => {
                        let times = match self.defect {
                            _ if self.done => 1,
                            Defect::DeliversTwice => 2,
                            _ => 0,
                        };
                        for _ in 0..times {
                            out.deliver(*flow, own.bytes(bytes));
                        }
                        self.done = true;
                    }
                    Output::Send { at, port, bytes, offload } => {
                        out.send(*at, *port, own.bytes(bytes), *offload);
                    }
                    other => out.push(other.clone()),
                }
            }
        }
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        if !(self.bad && self.defect == Defect::ForgetsTimers) {
            self.function.fire(now, out);
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.function.next_deadline()
    }

    fn connections(&mut self) -> Option<&mut dyn Connections> {
        Some(self)
    }
}

impl Connections for Planted {
    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        self.function.connections().ok_or(CallError::NoConnections)?.connect(now, endpoints, out)
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        self.function.connections().ok_or(CallError::NoConnections)?.write(now, flow, bytes, out)
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.function.connections().ok_or(CallError::NoConnections)?.close(now, flow, out)
    }

    fn abort(&mut self, _: Time, flow: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        Err(CallError::NoFlow(flow))
    }
}

impl Inspect for Planted {
    fn flows(&self) -> Vec<FlowSummary> {
        self.function.flows()
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        self.function.flow(flow)
    }

    fn notice_name(&self, notice: u16) -> &str {
        self.function.notice_name(notice)
    }

    fn counters(&self) -> Counters {
        let mut counters = self.function.counters();
        if self.bad && self.defect == Defect::LeaksFlows {
            counters.flows_peak += 1_000_000;
        }
        counters
    }
}

/// No schedule of these seeds breaks anything.
fn survives(network: &Network, seeds: std::ops::Range<u64>) {
    let mut stage = Planting::new(network, None);
    let mut experiment = Experiment::new(network, &mut stage);
    for seed in seeds {
        let faults = schedule(network, seed);
        let verdict = experiment.examine(&faults).unwrap();
        assert_eq!(verdict.violations, [], "seed {seed}: {faults:#?}");
        for warning in verdict.warnings {
            println!("seed {seed}: {warning}");
        }
    }
}

#[test]
fn the_arq_transport_survives() {
    survives(&network("arq", &[("duration", "5s"), ("traffic.file.bytes", "50kB")]), 0..20);
}

#[test]
fn the_syn_proxy_survives() {
    survives(&network("syn-proxy", &[("duration", "2s"), ("traffic.download.bytes", "100kB")]), 0..20);
}

#[test]
fn the_tcp_of_hosts_survives_and_is_watched() {
    let network = network("tcp-single", &[("duration", "3s"), ("traffic.flow.bytes", "200kB")]);
    survives(&network, 0..10);
    let mut stage = Planting::new(&network, Some(("left1", Defect::LeaksFlows)));
    assert!(Experiment::new(&network, &mut stage).breaks(&[], Invariant::Flows).unwrap());
}

/// A link that corrupts, in the direction towards the receiver, and much that has nothing to do with it.
fn eventful() -> Vec<Fault> {
    let link = LinkIndex(0);
    let impair = |direction, impairment| FaultKind::Impair { link, direction, impairment };
    [
        (FaultKind::LinkDown { link }, 1),
        (impair(1, Impairment::Duplicate(0.5)), 777),
        (impair(0, Impairment::Corrupt(0.7)), 900),
        (impair(1, Impairment::Delay(Duration::from_millis(5))), 500),
        (FaultKind::Clock { node: NodeIndex(0), drift_ppm: 100, leap: Duration::ZERO }, 800),
    ]
    .into_iter()
    .enumerate()
    .map(|(index, (what, milliseconds))| Fault {
        at: Time::from_nanoseconds(123_456_000 * (index as i64 + 1)),
        lasts: Duration::from_millis(milliseconds),
        what,
    })
    .collect()
}

#[test]
fn planted_defects_are_found_with_the_fault_that_they_need() {
    let network = network("arq", &[("duration", "6s"), ("traffic.file.bytes", "50kB")]);
    let mut lossless = network.clone();
    for settings in &mut lossless.links[0].directions {
        *settings = LinkSettings { delay: settings.delay, rate: settings.rate.clone(), ..LinkSettings::default() };
    }
    let cases = [
        ("receiver", Defect::DeliversTwice, Invariant::Data),
        ("receiver", Defect::DeliversNothing, Invariant::Data),
        ("receiver", Defect::LeaksFlows, Invariant::Flows),
        ("receiver", Defect::Panics, Invariant::NoPanic),
    ];
    for (node, defect, invariant) in cases {
        let mut stage = Planting::new(&lossless, Some((node, defect)));
        let mut experiment = Experiment::new(&lossless, &mut stage);
        let verdict = experiment.examine(&eventful()).unwrap();
        assert_eq!(
            verdict.violations.first().map(|finding| finding.invariant),
            Some(invariant),
            "{defect:?}: {verdict:?}"
        );
        assert!(!experiment.breaks(&[], invariant).unwrap(), "{defect:?}");
        let shrunk = shrink(&eventful(), &mut |faults| experiment.breaks(faults, invariant).unwrap());
        let [fault] = shrunk.as_slice() else { panic!("{defect:?}: {shrunk:#?}") };
        let FaultKind::Impair { direction: 0, impairment: Impairment::Corrupt(_), .. } = fault.what else {
            panic!("{defect:?}: {fault:?}");
        };
        assert!(fault.lasts < Duration::from_millis(900), "{defect:?}: {fault:?}");
    }
}

#[test]
fn a_forgotten_timer_is_found() {
    let network = network("arq", &[("duration", "6s"), ("traffic.file.bytes", "50kB")]);
    let mut stage = Planting::new(&network, Some(("sender", Defect::ForgetsTimers)));
    let mut experiment = Experiment::new(&network, &mut stage);
    let corrupt = FaultKind::Impair { link: LinkIndex(0), direction: 1, impairment: Impairment::Corrupt(0.9) };
    let faults = [Fault { at: Time::from_nanoseconds(100_000_000), lasts: Duration::from_millis(500), what: corrupt }];
    assert!(experiment.breaks(&faults, Invariant::Timers).unwrap());
    assert!(!experiment.breaks(&[], Invariant::Timers).unwrap());
}
