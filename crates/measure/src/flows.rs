//! Many paced flows at different rates on one processor.

use crate::line::{Line, NEAR};
use crate::on_own_thread;
use crate::sweep::frame;
use crate::usage::{Meter, Usage};
use crate::wheel::SlotWheel;
use std::time::Duration;
use weftwire_calendar::Calendar;
use weftwire_core::Frame;
use weftwire_draw::Histogram;
use weftwire_linux::LinuxError;
use weftwire_linux::device::Device;
use weftwire_linux::pacer::{Clock, Pacer, Place, Policy, Scheduler, Standing, Waiter};
use weftwire_linux::port::{BATCH, FramePort};
use weftwire_linux::system::monotonic_ns;

/// Time before the first packet, in nanoseconds: enough to add many flows.
const START: i64 = 20_000_000;
/// Time that passes with each batch where nothing waits, in nanoseconds: so much that batches are full.
const A_BATCH: i64 = 1_000 * BATCH as i64;
/// Rates are to be right to this share.
pub const RATE_GOAL: f64 = 0.001;

/// The flows.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Packets a second of each.
    pub rates: Vec<f64>,
}

impl Plan {
    /// Flows whose rates lie evenly on a logarithmic scale, the greatest `spread` times the least, `aggregate` packets a second
    /// in all.
    pub fn logarithmic(flows: usize, spread: f64, aggregate: f64) -> Plan {
        // Multiples of the golden ratio: evenly spread, and neighbours are far apart.
        let place = |flow: usize| (flow as f64 * 0.618_033_988_749_894_9).fract();
        let rates: Vec<f64> = (0..flows).map(|flow| spread.powf(place(flow))).collect();
        let scale = aggregate / rates.iter().sum::<f64>().max(1e-9);
        Plan { rates: rates.into_iter().map(|rate| rate * scale).collect() }
    }

    /// Time from a flow's packet to its next, in nanoseconds.
    fn gap(&self, flow: usize) -> i64 {
        ((1e9 / self.rates[flow]).round() as i64).max(1)
    }

    /// The longest of these times.
    fn longest(&self) -> i64 {
        (0..self.rates.len()).map(|flow| self.gap(flow)).max().unwrap_or(1)
    }
}

/// What says which flow is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Design {
    /// The calendar, exact to a nanosecond.
    Calendar,
    /// One wheel of slots of this width in nanoseconds ([`SlotWheel`]).
    Slots(i64),
}

impl Design {
    /// A scheduler for the flows, without any in it yet.
    fn scheduler(self, plan: &Plan, now: i64) -> Box<dyn Scheduler> {
        let flows = plan.rates.len();
        match self {
            Design::Calendar => Box::new(Calendar::<u32>::with_limit(flows)),
            Design::Slots(width) => Box::new(SlotWheel::new(flows, now, width, plan.longest() + START + 8 * width)),
        }
    }
}

/// What was reached.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Packets that went.
    pub packets: u64,
    /// Nanoseconds of the thread's processor time a packet.
    pub cost_ns: f64,
    /// Of each flow that sent at least three packets, how far its rate was from what it should be, as a share; rising.
    pub rate_errors: Vec<f64>,
    /// How late packets were sent, nanoseconds: median, 99th percentile, worst.
    pub late_ns: [i64; 3],
    /// Processor time.
    pub usage: Usage,
    /// The place that the thread got.
    pub standing: Standing,
}

/// When a flow's packets went.
#[derive(Clone, Copy, Default)]
struct Sent {
    first: i64,
    last: i64,
    count: u64,
}

/// Paces the flows for this time: over the line, or without sending anything. With no policy they go as fast as they
/// can: time is always what the next flow needs.
///
/// # Errors
/// No permission, or the line's interface is gone.
pub fn pace(
    plan: &Plan,
    design: Design,
    policy: Option<Policy>,
    place: Place,
    line: Option<&Line>,
    time: Duration,
) -> Result<Outcome, LinuxError> {
    let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    match line {
        None => Ok(on_own_thread(|| drive(plan, design, policy, place, None, time))),
        Some(line) => {
            let paced = line.near.run(|| {
                let mut port = Device::Socket(NEAR.to_owned()).open()?;
                Ok(drive(plan, design, policy, place, Some(port.as_mut()), time))
            });
            paced.map_err(|error| LinuxError::system("enter the namespace of the line", error))?
        }
    }
}

/// A clock for going flat out: it does not pass by itself, and waiting takes it so far that a whole batch is due.
struct FlatOut(i64);

impl Clock for FlatOut {
    fn now(&mut self) -> i64 {
        self.0
    }

    fn sleep_until(&mut self, at: i64) {
        self.0 = at + A_BATCH;
    }
}

fn drive(
    plan: &Plan,
    design: Design,
    policy: Option<Policy>,
    place: Place,
    port: Option<&mut (dyn FramePort + '_)>,
    time: i64,
) -> Outcome {
    let standing = place.take();
    let now = monotonic_ns();
    let scheduler = design.scheduler(plan, now);
    let start = monotonic_ns() + START;
    let outcome = match policy {
        Some(policy) => run(plan, Pacer::new(scheduler, Waiter::new(policy)), start, port, time),
        None => {
            let waiter = Waiter::with_clock(Policy::Sleep, FlatOut(now));
            run(plan, Pacer::new(scheduler, waiter), start, port, time)
        }
    };
    Outcome { standing, ..outcome }
}

/// Paces from `start` on, for this time.
fn run<C: Clock>(
    plan: &Plan,
    mut pacer: Pacer<Box<dyn Scheduler>, C>,
    start: i64,
    mut port: Option<&mut (dyn FramePort + '_)>,
    time: i64,
) -> Outcome {
    let gaps: Vec<i64> = (0..plan.rates.len()).map(|flow| plan.gap(flow)).collect();
    let mut buffers = [frame(); BATCH];
    let (mut sent, mut due) = (vec![Sent::default(); gaps.len()], Vec::with_capacity(BATCH));
    let (mut lateness, mut packets) = (Histogram::default(), 0);
    for (flow, gap) in gaps.iter().enumerate() {
        // Somewhere within its first gap, so that flows do not begin together.
        let share = (flow as f64 * 0.414_213_562_373_095_05).fract();
        pacer.add(start + (*gap as f64 * share) as i64, flow as u32);
    }
    Waiter::new(Policy::Sleep).wait_until(start);
    let meter = Meter::start();
    let end = start + time;
    // One batch at least, also if the time was over before this thread had its turn.
    while pacer.next_batch(BATCH, &mut due).is_some() {
        if let Some(port) = &mut port {
            for (buffer, (_, flow)) in buffers.iter_mut().zip(&due) {
                buffer[14..18].copy_from_slice(&flow.to_be_bytes());
            }
            let mut frames = [Frame::new(&[]); BATCH];
            frames.iter_mut().zip(&buffers).for_each(|(frame, buffer)| frame.bytes = buffer.as_slice());
            port.send(&frames[..due.len()]);
        }
        let at = monotonic_ns();
        packets += due.len() as u64;
        for (deadline, flow) in due.drain(..) {
            let record = &mut sent[flow as usize];
            if record.count == 0 {
                record.first = at;
            }
            (record.last, record.count) = (at, record.count + 1);
            lateness.add(at - deadline);
            pacer.add(deadline + gaps[flow as usize], flow);
        }
        if at >= end {
            break;
        }
    }
    let usage = meter.stop();
    let measured = sent.iter().zip(&plan.rates).filter(|(sent, _)| sent.count >= 3);
    let mut rate_errors: Vec<f64> = measured
        .map(|(sent, rate)| ((sent.count - 1) as f64 / ((sent.last - sent.first) as f64 * 1e-9) / rate - 1.0).abs())
        .collect();
    rate_errors.sort_by(f64::total_cmp);
    let late = [lateness.quantile(0.5), lateness.quantile(0.99), lateness.greatest()];
    let cost = usage.thread_seconds * 1e9 / packets.max(1) as f64;
    Outcome { packets, cost_ns: cost, rate_errors, late_ns: late, usage, ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_spread_and_add_up() {
        let plan = Plan::logarithmic(10_000, 100.0, 500_000.0);
        assert!((plan.rates.iter().sum::<f64>() - 500_000.0).abs() < 1e-3);
        let (least, most) =
            plan.rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        assert!((99.0..=100.0).contains(&(most / least)), "{least} {most}");
        let below = plan.rates.iter().filter(|rate| **rate < least * 10.0).count();
        assert!((4_900..=5_100).contains(&below), "{below}");
    }

    #[test]
    fn both_designs_pace_every_flow() {
        let plan = Plan::logarithmic(50, 10.0, 20_000.0);
        for design in [Design::Calendar, Design::Slots(8_000)] {
            let time = Duration::from_millis(60);
            let paced = pace(&plan, design, Some(Policy::Sleep), Place::default(), None, time).unwrap();
            // Never more than are due until the end; fewer if others held the thread up.
            assert!((1..=1_300).contains(&paced.packets), "{design:?}: {}", paced.packets);
            assert!(paced.rate_errors.len() <= 50 && paced.late_ns[0] >= 0);
            let flat_out = pace(&plan, design, None, Place::default(), None, Duration::from_millis(5)).unwrap();
            assert!(flat_out.packets > 0 && flat_out.cost_ns > 0.0);
        }
    }
}
