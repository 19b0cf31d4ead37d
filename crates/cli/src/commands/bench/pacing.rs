//! `weft bench pacing`: exponential pacing by each policy, beside the kernel's and the machine's own jitter; and many flows.

mod flows;
mod page;
mod results;
mod summary;

use crate::console::{self, say};
use crate::folder::OutputFolder;
use crate::outputs::{write_json, write_text};
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use clap::Args;
use results::{FlowsResult, HostFacts, Results, Series};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weftwire_core::nanoseconds;
use weftwire_linux::pacer::{Departures, Place, Policy, Precision, departures};
use weftwire_linux::signals::StopSignal;
use weftwire_measure::jitter::Jitter;
use weftwire_measure::line::{Line, NEAR};
use weftwire_measure::sweep::{self, Sweep};
use weftwire_measure::{flows as many, kernel, ticker};
use weftwire_pace::{Envelope, Shape, Solver, TimeUnit};

/// The first and the last gap, in seconds: the last is that of frames of 1,500 bytes at 10 Gbit/s.
const GAPS: (f64, f64) = (1e-3, 1.22e-6);
/// The round trip, in which the rate doubles: a sweep takes not quite ten of them.
const ROUND_TRIP: f64 = 0.025;
/// A bare spin loop in each round.
const JITTER: Duration = Duration::from_millis(250);
/// The kernel paces each gap for so long in each round, or for so many gaps.
const KERNEL: (Duration, u32) = (Duration::from_millis(50), 120);

/// Measure pacing.
#[derive(Args)]
pub struct Arguments {
    /// Write a page, tables (CSV) and one JSON document into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Measure single packets for this long, many flows for half of it more
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Pace on this processor [default: the last one]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Real-time priority (SCHED_FIFO); 0 is an ordinary thread
    #[arg(long, value_name = "0..99", default_value_t = 10, value_parser = clap::value_parser!(i32).range(0..=99))]
    priority: i32,
    /// How long before a deadline sleep+spin wakes up: auto measures it
    #[arg(long, value_name = "auto|TIME", default_value = "auto")]
    margin: Precision,
    /// Pace this many flows at once; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    flows: u32,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    if matches!(arguments.margin, Precision::Sleep | Precision::Spin) {
        bail!("--margin is auto or a time, e.g. 60us; all policies are measured in any case");
    }
    let stop = StopSignal::install()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let place = Place {
        cpu: Some(arguments.cpu.unwrap_or(processors - 1)),
        priority: Some(arguments.priority).filter(|priority| *priority > 0),
    };
    let mut bench = Bench::prepare(arguments, place)?;
    let time = Duration::from_secs(arguments.seconds);
    let (start, mut line) = (Instant::now(), ProgressLine::begin());
    let mut rounds = 0;
    while (rounds == 0 || start.elapsed() < time) && !stop.requested() {
        rounds += 1;
        let seconds = start.elapsed().as_secs_f64();
        let share = seconds / (arguments.seconds.max(1) as f64);
        line.tell(share, format_args!("{seconds:.0} of {} s, round {rounds}", arguments.seconds));
        bench.round(&stop)?;
    }
    drop(line);
    bench.results.rounds = rounds;
    let all = arguments.flows as usize;
    if all > 0 && !stop.requested() {
        flows::measure(&mut bench.results, all, place, bench.line.as_ref(), time / 2, &stop)?;
    }
    if stop.requested() {
        bail!("interrupted: nothing was written");
    }
    bench.results.machine.jitter(&bench.jitter);
    console::say_text(format_args!("{}", summary::text(&bench.results)));
    if let Some(folder) = &arguments.out {
        let out = OutputFolder::begin(folder)?;
        write_json(&out.path().join("pacing.json"), &bench.results)?;
        for table in summary::tables(&bench.results) {
            write_text(&out.path().join(format!("{}.csv", table.name())), &table.to_csv())?;
        }
        write_text(&out.path().join("pacing.html"), &page::page(&bench.results))?;
        out.finish()?;
        say!("report          {}", folder.join("pacing.html").display());
    }
    Ok(())
}

/// The measurement of single packets: rounds in which everything has its turn, so that all see the same machine.
struct Bench {
    place: Place,
    schedule: Vec<i64>,
    policies: [(&'static str, Policy); 3],
    /// `None` without the rights to make it.
    line: Option<Line>,
    fair_queue: bool,
    jitter: Jitter,
    results: Results,
}

impl Bench {
    fn prepare(arguments: &Arguments, place: Place) -> Result<Bench> {
        let margin = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let standing = place.take();
                (standing, arguments.margin.policy())
            });
            thread.join().ok()
        });
        let (standing, half) = margin.context("cannot measure the margin")?;
        let mut machine = HostFacts::here(&standing);
        machine.margin_ns = if let Policy::SleepSpin { margin } = half { nanoseconds(margin) } else { 0 };
        let mut skipped = Vec::new();
        let line = match Line::make() {
            Ok(line) => Some(line),
            Err(error) => {
                let error = anyhow::Error::from(error);
                skipped.push(format!("sending, the kernel's pacing: there is no line to send on: {error:#}"));
                None
            }
        };
        let mut fair_queue = false;
        if let Some(line) = &line {
            match line.set_fair_queue(true) {
                Ok(()) => {
                    let found = line.near.run(|| departures(NEAR)).context("cannot enter the line's namespace")??;
                    fair_queue = matches!(found, Departures::Honoured { .. });
                    let _ = line.set_fair_queue(false);
                }
                Err(reason) => skipped.push(format!(
                    "departure times handed to the kernel (SO_TXTIME): no queueing discipline here honours them ({reason}), \
                     so the pacer waits itself"
                )),
            }
        }
        let policies = [("sleep", Policy::Sleep), ("sleep+spin", half), ("spin", Policy::Spin)];
        let results = Results { machine, skipped, ..Results::default() };
        Ok(Bench { place, schedule: schedule()?, policies, line, fair_queue, jitter: Jitter::default(), results })
    }

    fn round(&mut self, stop: &StopSignal) -> Result<()> {
        self.jitter.measure(self.place, JITTER);
        for (name, policy) in self.policies {
            if stop.requested() {
                return Ok(());
            }
            let swept = sweep::release(&self.schedule, policy, self.place);
            self.add(name, &swept);
            let swept = ticker::run(&self.schedule, policy, self.place)?;
            self.add(&format!("{name}, weft run"), &swept);
        }
        let Some(line) = self.line.take() else { return Ok(()) };
        let sent = self.round_on(&line, stop);
        self.line = Some(line);
        sent
    }

    fn round_on(&mut self, line: &Line, stop: &StopSignal) -> Result<()> {
        for (name, policy) in self.policies {
            if stop.requested() {
                return Ok(());
            }
            for (doing, watched) in [("sending", false), ("watched", true)] {
                let swept = sweep::send(line, &self.schedule, policy, self.place, watched)?;
                self.add(&format!("{name}, {doing}"), &swept);
            }
        }
        if self.fair_queue {
            line.set_fair_queue(true)?;
            let swept = sweep::send(line, &self.schedule, Policy::Sleep, self.place, true);
            line.set_fair_queue(false)?;
            self.add("handed to fq", &swept?);
        }
        for (name, single) in [("kernel TCP", false), ("kernel TCP, single segments", true)] {
            line.set_single_segments(single)?;
            for bin in 0..results::BINS {
                if stop.requested() {
                    return Ok(());
                }
                let gap = results::middle(bin);
                let time = KERNEL.0.max(Duration::from_secs_f64(gap) * KERNEL.1);
                let paced = kernel::paced(line, (gap * 1e9) as i64, time)?;
                self.results.kernel(name).add(bin, &paced);
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &str, swept: &Sweep) {
        let schedule = &self.schedule;
        let method = self.results.method(name);
        method.add_usage(swept.usage);
        method.refused += swept.refused;
        method.send_cost_ns = swept.send_cost_ns;
        method.unseen += swept.departed_ns.iter().filter(|departed| departed.is_none()).count() as u64;
        let mut last = None;
        for number in 1..schedule.len() {
            let gap = schedule[number] - schedule[number - 1];
            let bin = results::bin(gap as f64 * 1e-9);
            swept.released_ns.get(number).into_iter().for_each(|late| method.series(Series::Release, bin).push(*late));
            let Some(late) = swept.departed_ns.get(number).copied().flatten() else {
                last = None;
                continue;
            };
            method.series(Series::Departure, bin).push(late);
            // How far the gap in front of it was from what it should be.
            if let Some(before) = last {
                method.series(Series::Gap, bin).push(i64::abs(late - before));
            }
            last = Some(late);
        }
    }
}

/// T(n) of the exponential envelope, in nanoseconds, from the first gap to the last.
fn schedule() -> Result<Vec<i64>> {
    let packets = |gap: f64| ROUND_TRIP / (std::f64::consts::LN_2 * gap);
    let window = packets(GAPS.0);
    let envelope = Envelope { shape: Shape::Exponential { window, doubling: ROUND_TRIP }, unit: TimeUnit::Second };
    let mut solver = Solver::new(&envelope);
    let numbers = window.ceil() as u64..=packets(GAPS.1) as u64;
    numbers.map(|number| Ok((solver.time_of_packet(number)? * 1e9).round() as i64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_goes_from_the_first_gap_to_the_last() {
        let schedule = schedule().unwrap();
        let gap = |at: usize| schedule[at + 1] - schedule[at];
        assert!((950_000..=1_000_000).contains(&gap(0)), "{}", gap(0));
        assert!((1_219..=1_222).contains(&gap(schedule.len() - 2)), "{}", gap(schedule.len() - 2));
        assert!(schedule.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((results::bin(1.22e-6), results::bin(1e-3)), (0, results::BINS - 1));
    }
}
