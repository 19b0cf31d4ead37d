//! Many flows: as many packets as go, and paced at a rate that leaves room.

use super::many::{Design, Outcome, Plan, RATE_GOAL, pace};
use super::{FlowsResult, Results};
use crate::console::tell;
use anyhow::Result;
use std::time::Duration;
use weftwire_linux::pacer::{Place, Policy};
use weftwire_linux::signals::StopSignal;
use weftwire_measure::line::Line;

/// The fastest flow is so many times as fast as the slowest.
const SPREAD: f64 = 100.0;
/// Width of a slot of the single wheel, in nanoseconds.
const SLOT: i64 = 2_000;
/// The paced rate as a share of what goes at most.
const LOAD: f64 = 0.7;
/// Packets a second where the processor is to rest, at most.
const LIGHT: f64 = 5_000.0;
/// As many packets as go are sent for so long, so often; the cheapest time counts.
const FLAT_OUT: Duration = Duration::from_millis(100);
const TURNS: usize = 5;

/// Measures each design in turns.
pub fn measure(
    results: &mut Results,
    flows: usize,
    place: Place,
    line: Option<&Line>,
    time: Duration,
    stop: &StopSignal,
) -> Result<()> {
    let designs = [("calendar", Design::Calendar), ("one wheel, 2 us slots", Design::Slots(SLOT))];
    let outputs: &[(&str, Option<&Line>)] = match line {
        Some(line) => &[("scheduling alone", None), ("sending", Some(line))],
        None => &[("scheduling alone", None)],
    };
    let half = Policy::SleepSpin { margin: Duration::from_nanos(results.machine.margin_ns.unsigned_abs()) };
    // Each run at a paced rate has the same share of the time, and none so long that a spinning thread is stopped often.
    let each = (time / (6 * outputs.len()) as u32).clamp(Duration::from_millis(500), Duration::from_secs(10));
    for (output, line) in outputs {
        tell!("{flows} flows, {output}");
        // Any rate does where nothing waits.
        let plan = Plan::logarithmic(flows, SPREAD, 1e6);
        let mut most = f64::INFINITY;
        let mut best = designs.map(|_| Outcome { cost_ns: f64::INFINITY, ..Outcome::default() });
        for _ in 0..TURNS {
            for ((_, design), best) in designs.iter().zip(&mut best) {
                let outcome = pace(&plan, *design, None, place, *line, FLAT_OUT)?;
                if outcome.cost_ns < best.cost_ns {
                    *best = outcome;
                }
            }
        }
        for ((name, _), best) in designs.iter().zip(best) {
            let reached = best.packets as f64 / best.usage.elapsed_seconds.max(1e-9);
            most = most.min(reached);
            results.flows.push(FlowsResult {
                name: format!("{name}, {output}, flat out"),
                flows,
                reached,
                cost_ns: best.cost_ns,
                ..FlowsResult::default()
            });
        }
        let heavy = most * LOAD;
        for (load, wanted, policy) in
            [("spin", heavy, Policy::Spin), ("sleep", heavy, Policy::Sleep), ("sleep+spin", LIGHT.min(heavy), half)]
        {
            let plan = Plan::logarithmic(flows, SPREAD, wanted);
            for (name, design) in designs {
                if stop.requested() {
                    return Ok(());
                }
                let outcome = pace(&plan, design, Some(policy), place, *line, each)?;
                results.flows.push(of(&format!("{name}, {output}, {load}"), &plan, wanted, &outcome));
            }
        }
    }
    Ok(())
}

fn of(name: &str, plan: &Plan, wanted: f64, outcome: &Outcome) -> FlowsResult {
    let errors = &outcome.rate_errors;
    let at = |share: f64| errors[((errors.len() as f64 * share) as usize).min(errors.len() - 1)];
    let right = errors.partition_point(|error| *error <= RATE_GOAL);
    let mut result = FlowsResult {
        name: name.to_owned(),
        flows: plan.rates.len(),
        wanted: Some(wanted),
        reached: outcome.packets as f64 / outcome.usage.elapsed_seconds.max(1e-9),
        cost_ns: outcome.cost_ns,
        right: (!errors.is_empty()).then(|| right as f64 / errors.len() as f64),
        rate_error: (!errors.is_empty()).then(|| [at(0.5), at(0.99), at(1.0)]),
        late_ns: Some(outcome.late_ns),
        ..FlowsResult::default()
    };
    result.processor.add(outcome.usage);
    result
}
