//! Whether two runs of one network, simulated and real, agree: the same way of the functions through their states, nearly
//! the same goodput.
//!
//! Machine events are the same if state, event, row, next state and the actions' names are; values in them (times, sequence
//! numbers) may differ. Of each function node the flows are compared in the order in which they were made.

mod diff;
mod relation;

pub use diff::Stretch;
pub use relation::Relation;

use crate::table::counter_rows;
use std::collections::BTreeMap;
use std::fmt;
use weftwire_core::Time;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_draw::statistics::percentile;
use weftwire_network::link::Counts;
use weftwire_network::results::{FlowProgress, FlowResult, Results, RunFacts};

/// Goodputs agree if neither is more than this share away from the other.
pub const GOODPUT_TOLERANCE: f64 = 0.05;

/// One run: its results, and what its functions did, by name of the node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The results.
    pub results: Results,
    /// The traces of the function nodes that wrote one.
    pub traces: Vec<(String, Vec<TraceRecord>)>,
}

/// Both sides of something: of the left run and of the right one.
pub type Sides<T> = [T; 2];

/// How two runs compare.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// What ran.
    pub runs: Sides<RunFacts>,
    /// Whether it is one network.
    pub relation: Relation,
    /// The kinds of machine events of both runs; events name them by index.
    pub kinds: Vec<EventKind>,
    /// The sequences of machine events: of each node in the order of the left run, of each flow in the order of creation.
    pub sequences: Vec<SequenceAgreement>,
    /// The flows of the network's traffic, by traffic and number.
    pub flows: Vec<FlowAgreement>,
    /// The directions of links, in the order of the left run.
    pub links: Vec<LinkAgreement>,
    /// The functions' counters.
    pub counters: Vec<CounterAgreement>,
    /// Bytes over time of both runs' first flows: index into [`Agreement::flows`], and both sides.
    pub progress: Vec<(usize, Sides<Option<FlowProgress>>)>,
}

/// What makes two machine events the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventKind {
    /// The state before.
    pub state: String,
    /// The event; of an error its name.
    pub event: String,
    /// The row that matched.
    pub row: Option<u32>,
    /// The state after.
    pub next: String,
    /// What the actions are, without the values of operands.
    pub actions: Vec<String>,
    /// It is an error of the function.
    pub error: bool,
}

/// One machine event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineEvent {
    /// When, by the function's clock.
    pub time: Time,
    /// Index into [`Agreement::kinds`].
    pub kind: u32,
    /// Index of its record in the node's trace.
    pub record: usize,
}

/// The machine events of one flow of a function, on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct SequenceAgreement {
    /// The node.
    pub node: String,
    /// Which of the node's flows, in the order of creation, from 1.
    pub flow: usize,
    /// The events.
    pub events: Sides<Vec<MachineEvent>>,
    /// How they are aligned.
    pub stretches: Vec<Stretch>,
    /// Whether they are the same.
    pub verdict: Verdict,
    /// By how many nanoseconds the times of matched events differ, each counted from the flow's first match.
    pub timing: Option<Timing>,
}

/// Whether sequences of events are the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// The same events in the same order.
    Same,
    /// The same way through the states, with more or fewer events within them: peers that cut or acknowledge the same bytes
    /// otherwise.
    SameStates,
    /// The same events as often, in another order.
    OtherOrder,
    /// Different events, or not as often.
    Differs,
}

/// A distribution of time differences in nanoseconds, by nearest rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Half are at most this.
    pub p50: i64,
    /// 99 of 100 are at most this.
    pub p99: i64,
    /// The greatest.
    pub worst: i64,
}

/// One flow of the network's traffic, on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowAgreement {
    /// Name of its traffic.
    pub traffic: String,
    /// Its number within.
    pub number: u64,
    /// Bits per second of the application; `None` where the flow was not.
    pub goodput: Sides<Option<f64>>,
    /// How it ended.
    pub outcome: Sides<Option<String>>,
}

/// One direction of a link, on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkAgreement {
    /// The link's name.
    pub link: String,
    /// `NODE:PORT` where packets enter.
    pub from: String,
    /// What it counted.
    pub counts: Sides<Option<Counts>>,
}

/// A counter of a function, on both sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CounterAgreement {
    /// The node.
    pub node: String,
    /// What it counts: `frames_in`, ..., `row`, `drop`.
    pub counter: String,
    /// The row or the reason.
    pub name: Option<String>,
    /// The counts; `None` where there is no such counter.
    pub counts: Sides<Option<u64>>,
}

impl FlowAgreement {
    /// The right goodput over the left one; `None` if one is missing or the left one alone is 0.
    pub fn ratio(&self) -> Option<f64> {
        match self.goodput {
            [Some(left), Some(right)] if left == right => Some(1.0),
            [Some(left), Some(right)] if left > 0.0 => Some(right / left),
            _ => None,
        }
    }

    /// By how much the goodputs differ, as a share of the left one; infinite where one side has no flow or nothing of it
    /// arrived there.
    pub fn distance(&self) -> f64 {
        self.ratio().map_or(f64::INFINITY, |ratio| (ratio - 1.0).abs())
    }

    /// Whether the goodputs differ by at most [`GOODPUT_TOLERANCE`], and the flow failed on both sides or on none.
    pub fn agrees(&self) -> bool {
        // A hair more, as the ratio is rounded.
        self.distance() <= GOODPUT_TOLERANCE + 1e-12 && self.failed(0) == self.failed(1)
    }

    /// Whether it came to a bad end on a side: refused, reset, other bytes than were sent.
    fn failed(&self, side: usize) -> bool {
        self.outcome[side].as_ref().is_some_and(|outcome| outcome != "complete" && outcome != "running")
    }
}

/// The flows of one traffic, on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct TrafficAgreement<'a> {
    /// Its name.
    pub traffic: &'a str,
    /// Its flows.
    pub flows: Vec<&'a FlowAgreement>,
}

impl TrafficAgreement<'_> {
    /// How many of the flows agree.
    pub fn agreeing(&self) -> usize {
        self.flows.iter().filter(|flow| flow.agrees()).count()
    }

    /// The flow that is farthest from agreeing.
    pub fn farthest(&self) -> Option<&FlowAgreement> {
        let order = |flow: &FlowAgreement| (!flow.agrees(), flow.distance());
        let farther = |a: &&FlowAgreement, b: &&FlowAgreement| {
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        // Of equals the first.
        self.flows.iter().rev().copied().max_by(farther)
    }
}

impl SequenceAgreement {
    /// How many events are matched.
    pub fn matched(&self) -> usize {
        let same = |stretch: &Stretch| if let Stretch::Same(count) = stretch { *count } else { 0 };
        self.stretches.iter().map(same).sum()
    }

    /// Where it first differs: how many events come before on each side. `None` if it does not.
    pub fn first_difference(&self) -> Option<usize> {
        match self.stretches.first() {
            Some(Stretch::Same(count)) => (self.stretches.len() > 1).then_some(*count),
            Some(_) => Some(0),
            None => None,
        }
    }
}

impl Agreement {
    /// The worst verdict of all sequences.
    pub fn verdict(&self) -> Verdict {
        self.sequences.iter().map(|sequence| sequence.verdict).max().unwrap_or(Verdict::Same)
    }

    /// Whether both are runs of one network, all functions went the same way through their states, all flows agree, and neither
    /// run was late (unless that is allowed).
    pub fn agrees(&self, allow_late: bool) -> bool {
        let late = !allow_late && self.runs.iter().any(RunFacts::is_late);
        self.relation == Relation::Same
            && self.verdict().agrees()
            && self.flows.iter().all(FlowAgreement::agrees)
            && !late
    }

    /// The flows by traffic, in the order of each one's first.
    pub fn traffic(&self) -> Vec<TrafficAgreement<'_>> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut all: Vec<TrafficAgreement<'_>> = Vec::new();
        for flow in &self.flows {
            let place = *places.entry(&flow.traffic).or_insert_with(|| {
                all.push(TrafficAgreement { traffic: &flow.traffic, flows: Vec::new() });
                all.len() - 1
            });
            all[place].flows.push(flow);
        }
        all
    }
}

/// Flows of a traffic that are told one by one; of more only how many agree.
pub const MOST_FLOWS_TOLD: usize = 8;
/// Differences of the networks that are told.
const MOST_DIFFERENCES_TOLD: usize = 5;

/// A few lines for the terminal.
impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.relation {
            Relation::Same => {}
            Relation::Changed(differences) => {
                for difference in differences.iter().take(MOST_DIFFERENCES_TOLD) {
                    writeln!(f, "the networks differ: {difference}")?;
                }
                if differences.len() > MOST_DIFFERENCES_TOLD {
                    let more = differences.len() - MOST_DIFFERENCES_TOLD;
                    writeln!(f, "the networks differ in {more} more ways")?;
                }
            }
            Relation::Unrelated => {
                let [left, right] = self.runs.each_ref().map(|run| &run.network);
                return writeln!(
                    f,
                    "the networks `{left}` and `{right}` have no link in common: there is nothing to compare"
                );
            }
        }
        for verdict in Verdict::ALL {
            let count = self.sequences.iter().filter(|sequence| sequence.verdict == verdict).count();
            if count > 0 {
                writeln!(f, "flows of functions, {}: {count}", verdict.word())?;
            }
        }
        for traffic in self.traffic() {
            if traffic.flows.len() <= MOST_FLOWS_TOLD {
                for flow in &traffic.flows {
                    writeln!(f, "goodput of {} {}: {flow}", flow.traffic, flow.number)?;
                }
            } else {
                let (agreeing, all) = (traffic.agreeing(), traffic.flows.len());
                write!(f, "goodput of {}: {agreeing} of {all} flows agree", traffic.traffic)?;
                match traffic.farthest() {
                    Some(flow) => writeln!(f, "; the farthest, number {}: {flow}", flow.number)?,
                    None => writeln!(f)?,
                }
            }
        }
        for run in self.runs.iter().filter(|run| run.is_late()) {
            writeln!(f, "the run on {} was late and is not to be trusted", run.platform)?;
        }
        Ok(())
    }
}

/// Both goodputs and whether they agree.
impl fmt::Display for FlowAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |side: usize| self.goodput[side].map_or_else(|| "-".into(), |rate| format!("{:.0}", rate / 1e3));
        let verdict = if self.agrees() { "agrees" } else { "differs" };
        write!(f, "{} and {} kbit/s, {verdict}", rate(0), rate(1))?;
        match &self.outcome {
            [Some(left), Some(right)] if left != right => write!(f, " ({left}, {right})"),
            _ => Ok(()),
        }
    }
}

impl Verdict {
    /// All, the best first.
    pub const ALL: [Verdict; 4] = [Verdict::Same, Verdict::SameStates, Verdict::OtherOrder, Verdict::Differs];

    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::SameStates => "same states",
            Verdict::OtherOrder => "other order",
            Verdict::Differs => "different",
        }
    }

    /// Whether runs with it agree.
    pub fn agrees(self) -> bool {
        self <= Verdict::SameStates
    }
}

/// Compares two runs.
pub fn compare(left: &Run, right: &Run) -> Agreement {
    let mut kinds = Kinds::default();
    let flows =
        pairs(left.results.flows.iter(), right.results.flows.iter(), |flow| (flow.traffic.clone(), flow.number));
    let until = [left.results.run.lasted, right.results.run.lasted];
    let progress = progress(left, right, &flows);
    Agreement {
        runs: [left.results.run.clone(), right.results.run.clone()],
        relation: relation::relation([&left.results, &right.results]),
        sequences: sequences(left, right, &mut kinds),
        kinds: kinds.all,
        flows: flows.into_iter().map(|(key, sides)| flow(key, sides, until)).collect(),
        links: pairs(left.results.links.iter(), right.results.links.iter(), |row| (row.link.clone(), row.from.clone()))
            .into_iter()
            .map(|((link, from), rows)| LinkAgreement { link, from, counts: rows.map(|row| row.map(|row| row.counts)) })
            .collect(),
        counters: counters(left, right),
        progress,
    }
}

/// Items of both sides that have the same key: in the left order, then those only of the right side.
fn pairs<T: Copy, K: Ord + Clone>(
    left: impl Iterator<Item = T>,
    right: impl Iterator<Item = T>,
    key: impl Fn(T) -> K,
) -> Vec<(K, Sides<Option<T>>)> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut all: Vec<(K, Sides<Option<T>>)> = Vec::new();
    for (side, item) in left.map(|item| (0, item)).chain(right.map(|item| (1, item))) {
        let key = key(item);
        let place = *places.entry(key.clone()).or_insert_with(|| {
            all.push((key, [None, None]));
            all.len() - 1
        });
        all[place].1[side].get_or_insert(item);
    }
    all
}

fn flow((traffic, number): (String, u64), sides: Sides<Option<&FlowResult>>, until: Sides<i64>) -> FlowAgreement {
    let goodput = |side: usize| sides[side].map(|flow| flow.goodput(until[side]));
    FlowAgreement {
        traffic,
        number,
        goodput: [goodput(0), goodput(1)],
        outcome: sides.map(|flow| flow.map(|flow| flow.outcome.clone())),
    }
}

type FlowPairs<'a> = [((String, u64), Sides<Option<&'a FlowResult>>)];

fn progress(left: &Run, right: &Run, flows: &FlowPairs<'_>) -> Vec<(usize, Sides<Option<FlowProgress>>)> {
    let keyed = |run: &Run| -> Vec<((String, u64), FlowProgress)> {
        let keyed = run.results.progress.iter().filter_map(|progress| {
            let flow = run.results.flows.get(progress.flow)?;
            Some(((flow.traffic.clone(), flow.number), progress.clone()))
        });
        keyed.collect()
    };
    let (left, right) = (keyed(left), keyed(right));
    let both = pairs(left.iter(), right.iter(), |(key, _)| key.clone()).into_iter();
    let place = |key: &(String, u64)| flows.iter().position(|(known, _)| known == key);
    both.filter_map(|(key, sides)| Some((place(&key)?, sides.map(|side| side.map(|side| side.1.clone()))))).collect()
}

fn counters(left: &Run, right: &Run) -> Vec<CounterAgreement> {
    let rows = |run: &'_ Run| -> Vec<(String, String, Option<String>, u64)> {
        let all = run.results.functions.iter().flat_map(|(node, counters)| counter_rows(node, counters));
        all.map(|(node, counter, name, count)| (node.into(), counter.into(), name.map(Into::into), count)).collect()
    };
    let (left, right) = (rows(left), rows(right));
    let all =
        pairs(left.iter(), right.iter(), |(node, counter, name, _)| (node.clone(), counter.clone(), name.clone()));
    let counter = |((node, counter, name), sides): (_, Sides<Option<&(_, _, _, u64)>>)| CounterAgreement {
        node,
        counter,
        name,
        counts: sides.map(|row| row.map(|row| row.3)),
    };
    all.into_iter().map(counter).collect()
}

/// Numbers for kinds of events, the same for both runs.
#[derive(Default)]
struct Kinds {
    numbers: BTreeMap<EventKind, u32>,
    all: Vec<EventKind>,
}

impl Kinds {
    fn number(&mut self, record: &TraceRecord) -> u32 {
        let kind = EventKind {
            state: record.state.clone(),
            event: record.event.clone(),
            row: record.row,
            next: record.next.clone(),
            actions: record.actions.iter().map(|action| action_name(action)).collect(),
            error: record.kind == TraceKind::Error,
        };
        if let Some(number) = self.numbers.get(&kind) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(kind.clone());
        self.numbers.insert(kind, number);
        number
    }

    /// The machine events of each flow, the flows in the order of creation.
    fn events(&mut self, trace: Option<&[TraceRecord]>) -> Vec<Vec<MachineEvent>> {
        let mut flows: BTreeMap<_, Vec<MachineEvent>> = BTreeMap::new();
        for (index, record) in trace.unwrap_or_default().iter().enumerate() {
            if matches!(record.kind, TraceKind::Event | TraceKind::Error) {
                let event = MachineEvent { time: record.time, kind: self.number(record), record: index };
                flows.entry(record.flow).or_default().push(event);
            }
        }
        flows.into_values().collect()
    }
}

/// An action without values: its first two words, which say what is done and to what (`set_timer retransmit`,
/// `next_number :=`, `send work`).
fn action_name(action: &str) -> String {
    let words: Vec<&str> = action.split_whitespace().take(2).collect();
    words.join(" ").trim_end_matches([':', ',']).to_owned()
}

fn sequences(left: &Run, right: &Run, kinds: &mut Kinds) -> Vec<SequenceAgreement> {
    let mut found = Vec::new();
    for (node, traces) in pairs(left.traces.iter(), right.traces.iter(), |(node, _)| node.clone()) {
        let [left, right] = traces.map(|trace| kinds.events(trace.map(|(_, records)| records.as_slice())));
        let count = left.len().max(right.len());
        let [mut left, mut right] = [left.into_iter(), right.into_iter()];
        for flow in 1..=count {
            let events = [left.next().unwrap_or_default(), right.next().unwrap_or_default()];
            found.push(sequence(node.clone(), flow, events, &kinds.all));
        }
    }
    found
}

fn sequence(node: String, flow: usize, events: Sides<Vec<MachineEvent>>, kinds: &[EventKind]) -> SequenceAgreement {
    let mut numbers =
        [0, 1].map(|side| events[side].iter().map(|event: &MachineEvent| event.kind).collect::<Vec<u32>>());
    let stretches = diff::diff(&numbers[0], &numbers[1], diff::MOST_DIFFERENCES);
    let timing = timing(&events, &stretches);
    let verdict = if numbers[0] == numbers[1] {
        Verdict::Same
    } else if path(&events[0], kinds).is_some_and(|path_left| Some(path_left) == path(&events[1], kinds)) {
        Verdict::SameStates
    } else {
        numbers.iter_mut().for_each(|numbers| numbers.sort_unstable());
        if numbers[0] == numbers[1] { Verdict::OtherOrder } else { Verdict::Differs }
    };
    SequenceAgreement { node, flow, events, stretches, verdict, timing }
}

/// The events that change the state; `None` if none does: then states say nothing.
fn path(events: &[MachineEvent], kinds: &[EventKind]) -> Option<Vec<u32>> {
    let moves = |number: &u32| kinds.get(*number as usize).is_some_and(|kind| kind.state != kind.next || kind.error);
    let path: Vec<u32> = events.iter().map(|event| event.kind).filter(moves).collect();
    (!path.is_empty()).then_some(path)
}

/// By how much matched events differ in time, from the first match on.
fn timing(events: &Sides<Vec<MachineEvent>>, stretches: &[Stretch]) -> Option<Timing> {
    let (mut left, mut right) = (0, 0);
    let mut origin: Option<(Time, Time)> = None;
    let mut differences = Vec::new();
    for stretch in stretches {
        match *stretch {
            Stretch::Same(count) => {
                for (a, b) in events[0][left..left + count].iter().zip(&events[1][right..right + count]) {
                    let (first_left, first_right) = *origin.get_or_insert((a.time, b.time));
                    let difference = b.time.since(first_right).saturating_sub(a.time.since(first_left));
                    differences.push(difference.saturating_abs());
                }
                (left, right) = (left + count, right + count);
            }
            Stretch::Left(count) => left += count,
            Stretch::Right(count) => right += count,
        }
    }
    differences.sort_unstable();
    Some(Timing { p50: percentile(&differences, 50)?, p99: percentile(&differences, 99)?, worst: *differences.last()? })
}

#[cfg(test)]
mod tests;
