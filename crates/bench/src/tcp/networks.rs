//! Flows over the relay: `weft up --run` with networks made here and with `examples/networks/tcp-*.toml`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use weftwire_network::results::{FlowResult, LinkResult, Results as Run};
use weftwire_testbed::{is_installed, ns3_program, run};
use weftwire_workload::Numbers;

use super::local::KERNEL;
use super::{Bench, CUBIC, LIMIT, NS3, OURS, RENO, SIMULATOR, text};
use crate::table::Results;

/// How long flows last in virtual and in real time.
const GOODPUT_SECONDS: u32 = 10;
const FAIRNESS_SECONDS: u32 = 60;

/// A host's congestion control, or a machine.
const SYSTEMS: [(&str, Option<&str>); 3] = [(OURS, None), (CUBIC, Some("cubic")), (RENO, Some("reno"))];

impl Bench {
    /// Runs a network for real.
    fn up(&self, file: &Path, round: u32, more: &[&str]) -> Result<Run> {
        let (name, seed) = (format!("bench-{}", std::process::id()), format!("seed={round}"));
        let words = ["up", text(file)?, "--run", "--name", &name, "--set", &seed];
        self.results(&[&words, more].concat())
    }

    /// Simulates it.
    fn sim(&self, file: &Path, round: u32, more: &[&str]) -> Result<Run> {
        let seed = format!("seed={round}");
        self.results(&[&["sim", text(file)?, "--set", &seed], more].concat())
    }

    fn results(&self, words: &[&str]) -> Result<Run> {
        let out = self.folder.join("out");
        self.weft(&[words, &["--out", text(&out)?]].concat())?;
        let run: Run = serde_json::from_slice(&std::fs::read(out.join("results.json"))?)?;
        for warning in &run.run.warnings {
            eprintln!("  {warning}");
        }
        Ok(run)
    }

    /// Runs a network for real, again if its relay was late; `None`: each time.
    fn up_in_time(&self, file: &Path, round: u32) -> Result<Option<Run>> {
        for _ in 0..TRIES {
            let run = self.up(file, round, &[])?;
            if !run.run.lateness.as_ref().is_some_and(|lateness| lateness.late) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    fn write(&self, network: &str) -> Result<std::path::PathBuf> {
        let file = self.folder.join("network.toml");
        std::fs::write(&file, network)?;
        Ok(file)
    }
}

fn flow<'a>(run: &'a Run, name: &str) -> Result<&'a FlowResult> {
    run.flows.iter().find(|flow| flow.traffic == name).with_context(|| format!("there is no flow {name}"))
}

/// Megabits per second of the application behind the warm-up.
fn goodput_of(run: &Run, flow: &FlowResult) -> f64 {
    let lasted = flow.end.unwrap_or(run.run.lasted) - flow.start.max(run.run.warm_up);
    (flow.delivered - flow.delivered_in_warm_up) as f64 * 8e3 / lasted as f64
}

/// A node that sends: the machine, or a kernel.
fn sender(bench: &Bench, name: &str, control: Option<&str>) -> String {
    match control {
        None => format!("[nodes.{name}]\nkind = 'function'\nimage = '{}'\n", bench.image.display()),
        Some(_) => format!("[nodes.{name}]\n"),
    }
}

fn bulk(name: &str, from: &str, to: &str, control: Option<&str>) -> String {
    let control = control.map(|control| format!("congestion_control = '{control}'\n")).unwrap_or_default();
    format!("[[traffic]]\nname = '{name}'\nkind = 'bulk'\nfrom = '{from}'\nto = '{to}'\n{control}")
}

/// One flow each over a link of its own, all links at once.
pub fn goodput(bench: &Bench, round: u32, results: &mut Results) -> Result<()> {
    // Round trip in ms, rate in Mbit/s, packets of the queue: a product of both.
    let cells = [(10, 50), (50, 20)].into_iter().flat_map(|(trip, rate)| [0, 1, 5].map(|lost| (trip, rate, lost)));
    let cells: Vec<(u32, u32, u32)> = cells.collect();
    let mut network = format!("duration = '{GOODPUT_SECONDS}s'\n");
    for (at, (trip, rate, lost)) in cells.iter().enumerate() {
        for (system, (_, control)) in SYSTEMS.iter().enumerate() {
            let (from, to, name) = (format!("a{at}{system}"), format!("b{at}{system}"), format!("flow{at}{system}"));
            let queue = (trip * rate * 1000 / 8 / 1514).max(20);
            network += &sender(bench, &from, *control);
            network += &format!("[nodes.{to}]\n[[links]]\nbetween = ['{from}', '{to}']\nrate = '{rate}Mbit/s'\n");
            network += &format!("delay = '{}ms'\nloss = '{lost}%'\nqueue = '{queue} packets'\n", trip / 2);
            network += &bulk(&name, &from, &to, *control);
        }
    }
    let run = bench.up(&bench.write(&network)?, round, &[])?;
    for (at, (trip, rate, lost)) in cells.iter().enumerate() {
        for (number, (system, _)) in SYSTEMS.iter().enumerate() {
            let flow = flow(&run, &format!("flow{at}{number}"))?;
            let name = format!("{trip} ms, {rate} Mbit/s, {lost} % lost");
            results.add(&name, "Mbit/s", system, goodput_of(&run, flow));
        }
    }
    Ok(())
}

/// When the flows of kernels begin. Who is there first has slow start for himself: in one round that is the second flow, in the next the first one, also if
/// that is a machine, which begins when its process is ready.
const OWN_BEGINS: &str = "1s";
const OTHER_BEGINS: [&str; 2] = ["3s", "0s"];

/// Two flows share a link: what the first gets for each bit of the second. The first is the machine's, or a kernel's for comparison.
pub fn fairness(bench: &Bench, round: u32, results: &mut Results) -> Result<()> {
    let mut cells = Vec::new();
    for trip in [20, 100] {
        for (buffer, tenths) in [("0.5", 5), ("2", 20)] {
            for (peer, control) in [(CUBIC, "cubic"), (RENO, "reno")] {
                cells.push((trip, buffer, tenths, peer, control, (OURS, None)));
                cells.push((trip, buffer, tenths, peer, control, (CUBIC, Some("cubic"))));
            }
        }
    }
    let mut network = format!("duration = '{FAIRNESS_SECONDS}s'\nwarm_up = '10s'\n");
    for (at, (trip, _, tenths, _, control, (_, own))) in cells.iter().enumerate() {
        // 10 Mbit/s; the other links take 1 ms each way.
        let queue = trip * 10_000 / 8 / 1514 * tenths / 10;
        network += &sender(bench, &format!("a{at}"), *own);
        network += &format!("[nodes.b{at}]\n[nodes.c{at}]\n[nodes.d{at}]\n[nodes.w{at}]\nkind = 'router'\n");
        network += &format!("[nodes.e{at}]\nkind = 'router'\n");
        for (one, other) in [("a", "w"), ("b", "w"), ("e", "c"), ("e", "d")] {
            network += &format!("[[links]]\nbetween = ['{one}{at}', '{other}{at}']\nrate = '1Gbit/s'\ndelay = '1ms'\n");
        }
        network += &format!("[[links]]\nbetween = ['w{at}', 'e{at}']\nrate = '10Mbit/s'\n");
        network += &format!("delay = '{}ms'\nqueue = '{queue} packets'\n", trip / 2 - 2);
        network += &bulk(&format!("own{at}"), &format!("a{at}"), &format!("c{at}"), *own);
        if own.is_some() {
            network += &format!("start = '{OWN_BEGINS}'\n");
        }
        network += &bulk(&format!("other{at}"), &format!("b{at}"), &format!("d{at}"), Some(control));
        network += &format!("start = '{}'\n", OTHER_BEGINS[round as usize % 2]);
    }
    let run = bench.up(&bench.write(&network)?, round, &[])?;
    for (at, (trip, buffer, _, peer, _, (system, _))) in cells.iter().enumerate() {
        let [own, other] = ["own", "other"].map(|name| flow(&run, &format!("{name}{at}")));
        let share = goodput_of(&run, own?) / goodput_of(&run, other?);
        results.add(&format!("beside {peer}, {trip} ms, {buffer} BDP"), "ratio", system, share);
    }
    Ok(())
}

/// A network of `examples/networks/tcp-*.toml`, and who sends in it.
struct Hosts {
    name: &'static str,
    /// From and to; `#` is the flow's number.
    ends: [&'static str; 2],
    flows: u32,
    /// What each flow sends, as a key of the file.
    bytes: &'static str,
    /// A round trip over empty queues, in which all flows begin.
    trip_ms: u64,
}

const NETWORKS: [Hosts; 4] = [
    Hosts { name: "single", ends: ["left#", "right#"], flows: 1, bytes: "", trip_ms: 24 },
    Hosts { name: "dumbbell", ends: ["left#", "right#"], flows: 20, bytes: "", trip_ms: 24 },
    Hosts { name: "chain", ends: ["a", "b"], flows: 1, bytes: "", trip_ms: 40 },
    Hosts { name: "incast", ends: ["leaf#", "leaf17"], flows: 16, bytes: "bytes = '256kB'", trip_ms: 2 },
];
/// What a congestion control is called in networks and in ns-3.
const CONTROLS: [(&str, &str); 2] = [("cubic", "ns3::TcpCubic"), ("reno", "ns3::TcpNewReno")];
/// A real run whose relay was late is made again, so many times.
const TRIES: u32 = 3;

/// What a run has come to.
#[derive(Deserialize)]
struct Came {
    /// Bits per second.
    goodput: f64,
    /// Segments sent again.
    again: u64,
    /// Packets dropped at queues.
    drops: u64,
}

impl Came {
    fn of(run: &Run) -> Came {
        let again = run.flows.iter().filter_map(|flow| flow.retransmissions).sum();
        Came { goodput: run.goodput(), again, drops: run.links.iter().map(LinkResult::drops).sum() }
    }

    fn add(&self, name: &str, system: &str, results: &mut Results) {
        results.add(name, "Mbit/s", system, self.goodput / 1e6);
        results.add(&format!("{name}: drops"), "packets", system, self.drops as f64);
        results.add(&format!("{name}: sent again"), "segments", system, self.again as f64);
        if self.drops > 0 {
            results.add(&format!("{name}: of these a drop"), "segments", system, self.again as f64 / self.drops as f64);
        }
    }
}

/// The same networks simulated, with kernels, and in ns-3 if that is installed.
pub fn hosts(bench: &Bench, round: u32, results: &mut Results) -> Result<()> {
    let ns3 = ["c++", "ns3++"].iter().all(|tool| is_installed(tool));
    let ns3 = ns3.then(|| ns3_program("tcp", &bench.folder)).transpose()?;
    for network in NETWORKS {
        for (control, theirs) in CONTROLS {
            let name = format!("{}, {control}", network.name);
            let file = bench.write(&network.text(control, round)?)?;
            Came::of(&bench.sim(&file, round, &[])?).add(&name, SIMULATOR, results);
            match bench.up_in_time(&file, round)? {
                Some(run) => Came::of(&run).add(&name, KERNEL, results),
                None => eprintln!("  {name}: the relay was late {TRIES} times, which does not count"),
            }
            if let Some(program) = &ns3 {
                let mut command = Command::new(program);
                command.args([network.name, theirs, &round.to_string()]);
                serde_json::from_str::<Came>(&run(command, LIMIT)?)?.add(&name, NS3, results);
            }
        }
    }
    Ok(())
}

impl Hosts {
    /// The network, whose flows begin within a round trip, at times that the round says.
    fn text(&self, control: &str, round: u32) -> Result<String> {
        let file = format!("{}/../../examples/networks/tcp-{}.toml", env!("CARGO_MANIFEST_DIR"), self.name);
        let text = std::fs::read_to_string(&file).with_context(|| file.clone())?;
        let (topology, _) = text.split_once("[[traffic]]").with_context(|| format!("{file} has no traffic"))?;
        let (mut network, mut numbers) = (topology.to_owned(), Numbers::new(u64::from(round)));
        for flow in 1..=self.flows {
            let [from, to] = self.ends.map(|end| end.replace('#', &flow.to_string()));
            let start = numbers.below(self.trip_ms * 1_000_000);
            network += &bulk(&format!("flow{flow}"), &from, &to, Some(control));
            network += &format!("start = '{start}ns'\n{}\n", self.bytes);
        }
        Ok(network)
    }
}
