//! One run: the network, its simulation, and what is measured of it.

use super::{Cell, FLOWS, FRAME, Options, Outcome, Pair, SEGMENT};
use crate::Dice;
use crate::applications::StudyError;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Ports, Time};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, PortPlace};
use weftwire_network::results::{FlowProgress, FlowResult, Results};
use weftwire_sim::network::{Progress, Surroundings, simulate};
use weftwire_text::LoadError;

/// What was measured of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// When each flow sent its first data, after the first that did: [`Run::limit_ns`] if it never did.
    pub begun_ns: [u64; FLOWS],
    /// From the first data sent to the last acknowledgment, of each flow; `None` if it did not end within the limit.
    pub times_ns: [Option<u64>; FLOWS],
    /// The run was watched for so long after the first flow was opened.
    pub limit_ns: u64,
    /// Mean wait of a packet in the bottleneck's queue.
    pub wait_mean_ns: u64,
    /// The longest.
    pub wait_max_ns: u64,
    /// Packets that the full queue dropped.
    pub drops: u64,
    /// Segments with data that were sent.
    pub packets: u64,
    /// Those of them that repeated what was sent before.
    pub retransmissions: u64,
}

impl Run {
    /// The completion time of the slowest flow. One that did not end counts with the time that it was watched: at least so long.
    pub fn slowest_ns(&self) -> u64 {
        self.times_ns.iter().map(|time| time.unwrap_or(self.limit_ns)).max().unwrap_or(0)
    }

    /// Flows that did not end.
    pub fn unfinished(&self) -> usize {
        self.times_ns.iter().filter(|time| time.is_none()).count()
    }
}

/// The time from full frames' first to last bit on the bottleneck.
fn serialisation_ns(rate: u64, frames: u64) -> u64 {
    (u128::from(frames * FRAME * 8) * 1_000_000_000 / u128::from(rate.max(1))) as u64
}

/// What the slowest flow takes at least, in nanoseconds, whatever TCP does: all data of flows that began no earlier than some time
/// passes the bottleneck after it, and the last of it takes a round trip more to be acknowledged. So for each flow: the data of
/// those that began with it or later, less what the last one began later.
pub fn bound(cell: &Cell, begun_ns: &[u64]) -> u64 {
    let last = begun_ns.iter().copied().max().unwrap_or(0);
    let least = |begun: &u64| {
        let flows = begun_ns.iter().filter(|other| *other >= begun).count() as u64;
        serialisation_ns(cell.rate, flows * u64::from(cell.length)).saturating_sub(last - begun)
    };
    begun_ns.iter().map(least).max().unwrap_or(0) + cell.rtt_ns
}

/// How long a run is watched: twenty times what is needed, and a minute for timeouts.
fn limit(cell: &Cell) -> u64 {
    20 * bound(cell, &[0; FLOWS]) + 60_000_000_000
}

/// When flows are opened: with the first seed all at once, else each at some time of the first round trip. The earliest at 0.
pub(super) fn starts(cell: &Cell, seed: u64, repetition: u32) -> [u64; FLOWS] {
    let mut dice = Dice::new(seed.wrapping_add(u64::from(repetition)));
    let drawn = [0; FLOWS].map(|_| if repetition == 0 { 0 } else { dice.below(cell.rtt_ns) });
    let first = drawn.iter().copied().min().unwrap_or(0);
    drawn.map(|start| start - first)
}

/// The network as its file. All of the way's delay is the bottleneck's.
fn description(cell: &Cell, pair: Pair, starts_ns: &[u64], seed: u64) -> String {
    let Cell { rate, rtt_ns, queue, length, initial_window } = cell;
    let duration = limit(cell);
    let mut text = format!(
        "duration = \"{duration}ns\"\nsample_interval = \"{duration}ns\"\nseed = {seed}\n\n[topology]\nkind = \"dumbbell\"\npairs = {FLOWS}\n\
         access = {{ rate = \"1Gbit/s\", queue = \"10000 packets\" }}\n\
         bottleneck = {{ rate = \"{rate}bit/s\", delay = \"{}ns\", queue = \"{queue} packets\" }}\n",
        rtt_ns / 2
    );
    for (index, start) in starts_ns.iter().enumerate() {
        let _ = write!(
            text,
            "\n[nodes.left{number}]\nparameters = {{ initial_window = {initial_window} }}\n\n[[traffic]]\nname = \"flow{number}\"\n\
             kind = \"bulk\"\nfrom = \"left{number}\"\nto = \"right{number}\"\nbytes = \"{}B\"\nstart = \"{start}ns\"\n\
             congestion_control = \"{}\"\nrecovery = \"{}\"\n",
            u64::from(*length) * SEGMENT,
            pair.control(),
            pair.recovery(),
            number = index + 1,
        );
    }
    text
}

struct World<'a>(&'a dyn Fn() -> ControlFlow<()>);

impl Surroundings for World<'_> {
    fn function(&mut self, _: NodeIndex, _: &Ports, _: u64) -> io::Result<Box<dyn Function>> {
        Err(io::Error::other("there are only hosts"))
    }

    fn capture(&mut self, _: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        Ok(Vec::new())
    }

    fn frame(&mut self, _: Time, _: PortPlace, _: &[u8], _: bool) -> io::Result<()> {
        Ok(())
    }

    fn trace(&mut self, _: NodeIndex, _: &TraceRecord) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        (self.0)()
    }
}

impl Cell {
    /// Runs the cell with each pair and each seed. `watch` is asked again and again whether it goes on.
    ///
    /// # Errors
    /// [`StudyError`].
    pub fn run(&self, options: &Options, watch: &dyn Fn() -> ControlFlow<()>) -> Result<Outcome, StudyError> {
        let of_pair =
            |pair: &Pair| (0..options.seeds).map(|it| self.run_once(*pair, options.seed, it, watch)).collect();
        Ok(Outcome { cell: *self, runs: options.pairs.iter().map(of_pair).collect::<Result<_, StudyError>>()? })
    }

    /// Runs the cell once.
    ///
    /// # Errors
    /// [`StudyError`].
    pub fn run_once(
        &self,
        pair: Pair,
        seed: u64,
        repetition: u32,
        watch: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Run, StudyError> {
        if watch().is_break() {
            return Err(StudyError::Interrupted);
        }
        let starts_ns = starts(self, seed, repetition);
        // A file's numbers have 63 bits.
        let seed = seed.wrapping_add(u64::from(repetition)) & (u64::MAX >> 1);
        let text = description(self, pair, &starts_ns, seed);
        let results = simulated(&network(&text)?, watch)?;
        measured(self, &results)
    }
}

fn network(text: &str) -> Result<Network, StudyError> {
    let reading = weftwire_network::read("network", text, &[], &|name| Err(LoadError::Unknown(name.to_owned())));
    let said = || reading.diagnostics.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ");
    reading.network.ok_or_else(|| StudyError::Defect(said()))
}

fn simulated(network: &Network, watch: &dyn Fn() -> ControlFlow<()>) -> Result<Results, StudyError> {
    let results = simulate(network, &mut World(watch)).map_err(|error| StudyError::Defect(error.to_string()))?;
    if results.run.interrupted {
        return Err(StudyError::Interrupted);
    }
    Ok(results)
}

fn measured(cell: &Cell, results: &Results) -> Result<Run, StudyError> {
    let defect = |what: &str| StudyError::Defect(format!("{cell}: {what}"));
    if let Some(flow) = results.flows.iter().find(|flow| !matches!(&*flow.outcome, "complete" | "running")) {
        return Err(defect(&format!("{} is {}", flow.traffic, flow.outcome)));
    }
    let bottleneck = results.links.iter().find(|link| link.link == "bottleneck" && link.from.starts_with("west"));
    let counts = &bottleneck.ok_or_else(|| defect("no bottleneck"))?.counts;
    let bytes = u64::from(cell.length) * SEGMENT;
    let limit_ns = limit(cell);
    let begun = |progress: &FlowProgress| progress.sent.first().map(|(at, ..)| *at);
    let first = results.progress.iter().filter_map(begun).min().unwrap_or(0);
    let (mut begun_ns, mut times_ns) = ([limit_ns; FLOWS], [None; FLOWS]);
    for progress in &results.progress {
        let Some(begun) = begun(progress) else { continue };
        let ended = progress.acknowledged.iter().find(|(_, acknowledged)| *acknowledged >= bytes).map(|(at, _)| *at);
        let index = progress.flow;
        if index >= FLOWS {
            return Err(defect("more flows than there are"));
        }
        begun_ns[index] = (begun - first) as u64;
        times_ns[index] = ended.map(|ended| (ended - begun) as u64);
    }
    let sum = |of: fn(&FlowResult) -> Option<u64>| results.flows.iter().filter_map(of).sum();
    Ok(Run {
        begun_ns,
        times_ns,
        limit_ns,
        wait_mean_ns: counts.waited_sum.checked_div(u128::from(counts.served)).unwrap_or(0) as u64,
        wait_max_ns: counts.waited_max as u64,
        drops: counts.dropped_full,
        packets: sum(|flow| flow.packets),
        retransmissions: sum(|flow| flow.retransmissions),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,514 bytes take 12.112 ms at 1 Mbit/s.
    const CELL: Cell = Cell { rate: 1_000_000, rtt_ns: 20_000_000, queue: 5, length: 2, initial_window: 10 };

    #[test]
    fn the_bound_is_serialisation_and_a_round_trip() {
        assert_eq!(bound(&CELL, &[0; FLOWS]), 12 * 12_112_000 + 20_000_000);
        // The last begins 3 ms after the first: so much less of its time is left for all.
        assert_eq!(bound(&CELL, &[0, 0, 0, 0, 0, 3_000_000]), 12 * 12_112_000 - 3_000_000 + 20_000_000);
        // It begins when the others are done: alone it takes two frames and a round trip.
        assert_eq!(bound(&CELL, &[0, 0, 0, 0, 0, 900_000_000]), 2 * 12_112_000 + 20_000_000);
    }

    #[test]
    fn flows_begin_at_once_and_then_within_a_round_trip() {
        assert_eq!(starts(&CELL, 7, 0), [0; FLOWS]);
        let some = starts(&CELL, 7, 1);
        assert!(some.contains(&0) && some.iter().all(|start| *start < CELL.rtt_ns) && some != starts(&CELL, 7, 2));
    }
}
