//! Settings of a direction: what the file says over what was before.

use super::Reader;
use crate::description::values::{Amount, JitterValue, LossValue, QueueValue, TraceValue};
use crate::description::{self, DirectionSettings};
use crate::link::{CLASSES, Discipline, LinkSettings, Loss, Pause, Queue, QueueLimit, Rate, RateTrace};
use std::sync::Arc;
use std::time::Duration;
use weftwire_core::nanoseconds;
use weftwire_text::Span;
use weftwire_text::quantity::{self, parse_rate};

const OF_RED: [&str; 4] = ["minimum", "maximum", "probability", "weight"];
const OF_CODEL: [&str; 2] = ["target", "interval"];
const OF_STEP: [&str; 1] = ["threshold"];

/// A rate trace's steps; no file has more.
const MOST_STEPS: usize = 1_000_000;

impl Reader<'_> {
    /// Both directions of a link: settings for both, then those for one.
    pub fn apply_link(&mut self, from: &description::LinkSettings, to: &mut [LinkSettings; 2]) {
        for (direction, own) in [&from.forward, &from.backward].into_iter().enumerate() {
            self.apply(&from.both, &mut to[direction]);
            if let Some(own) = own {
                self.apply(own, &mut to[direction]);
            }
        }
    }

    /// One direction.
    pub fn apply(&mut self, from: &DirectionSettings, to: &mut LinkSettings) {
        if let Some(rate) = from.rate {
            to.rate = rate.0.map(Rate::Constant);
        }
        match &from.rate_trace {
            Some(_) if from.rate.is_some() => {
                let span = from.places.span_of("rate_trace");
                self.problems.error_help(span, "both `rate` and `rate_trace`", "keep one of them");
            }
            Some(trace) => {
                if let Some(trace) = self.rate_trace(trace, from) {
                    to.rate = Some(Rate::Trace(trace));
                }
            }
            None => {
                if let Some(span) = from.places.key("rate_period") {
                    self.problems.error(span, "`rate_period` has no meaning without `rate_trace`");
                }
            }
        }
        let set = |value: &mut Duration, given: &Option<description::values::Duration>| {
            if let Some(given) = given {
                *value = given.get();
            }
        };
        set(&mut to.delay, &from.delay);
        match &from.jitter {
            Some(JitterValue::InOrder(most)) => (to.jitter, to.jitter_reorders) = (most.get(), false),
            Some(JitterValue::Table(table)) => {
                (to.jitter, to.jitter_reorders) = (table.most.get(), table.reorders.unwrap_or(false));
            }
            None => {}
        }
        if let Some(reorder) = &from.reorder {
            (to.reorder, to.reorder_delay) = (reorder.share.0, reorder.delay.get());
        }
        if let Some(share) = from.duplicate {
            to.duplicate = share.0;
        }
        if let Some(share) = from.corrupt {
            to.corrupt = share.0;
        }
        if let Some(overhead) = from.overhead {
            to.overhead = overhead.into();
        }
        match &from.loss {
            Some(LossValue::Random(share)) => to.loss = Loss::Random(share.0),
            Some(LossValue::Bursts(bursts)) => {
                if bursts.bad_to_good.0 == 0.0 {
                    let span = bursts.places.value("bad_to_good");
                    self.problems.error_help(span, "the bad state would never end", "write a share above 0");
                }
                to.loss = Loss::GilbertElliott {
                    good_to_bad: bursts.good_to_bad.0,
                    bad_to_good: bursts.bad_to_good.0,
                    loss_good: bursts.loss_good.map_or(0.0, |share| share.0),
                    loss_bad: bursts.loss_bad.map_or(1.0, |share| share.0),
                };
            }
            None => {}
        }
        match &from.queue {
            Some(QueueValue::Limit(amount)) => {
                to.queue.limit = limit(*amount);
                if let (Discipline::Step { threshold }, QueueLimit::Packets(limit) | QueueLimit::Bytes(limit)) =
                    (&mut to.queue.discipline, to.queue.limit)
                {
                    *threshold = limit / 4;
                }
                if let Discipline::Red { probability, weight, .. } = to.queue.discipline {
                    let span = from.places.value("queue");
                    to.queue.discipline = self.red(&to.queue, None, None, probability, weight, span);
                }
            }
            Some(QueueValue::Table(queue)) => self.queue(queue, &mut to.queue),
            None => {}
        }
        if let Some(pause) = &from.pause {
            to.pause = Some(self.flow_control(pause));
        }
    }

    fn flow_control(&mut self, from: &description::Pause) -> Pause {
        let xoff = from.xoff.0;
        let xon = from.xon.map_or(xoff / 2, |bytes| bytes.0);
        if xon > xoff {
            self.problems.error(from.places.value("xon"), "`xon` must be at most `xoff`");
        }
        let mut classes = 0;
        for class in from.classes.as_deref().unwrap_or(&[0, 1, 2, 3, 4, 5, 6, 7]) {
            if usize::from(*class) >= CLASSES {
                self.problems
                    .error(from.places.value("classes"), format!("there is no class {class}: they are 0 to 7"));
            }
            classes |= 1_u8.checked_shl(u32::from(*class)).unwrap_or(0);
        }
        Pause { xoff, xon, headroom: from.headroom.map_or(xoff, |bytes| bytes.0), classes }
    }

    fn queue(&mut self, from: &description::Queue, to: &mut Queue) {
        if let Some(amount) = from.limit {
            to.limit = limit(amount);
        }
        if let Some(ecn) = from.ecn {
            to.ecn = ecn;
        }
        if let Some(priority) = from.priority {
            to.priority = priority;
        }
        let discipline = from.discipline.unwrap_or(match to.discipline {
            Discipline::DropTail => description::Discipline::DropTail,
            Discipline::Step { .. } => description::Discipline::Step,
            Discipline::Red { .. } => description::Discipline::Red,
            Discipline::Codel { .. } => description::Discipline::Codel,
        });
        let all: Vec<&str> = OF_RED.into_iter().chain(OF_CODEL).chain(OF_STEP).collect();
        let allowed: &[&str] = match discipline {
            description::Discipline::DropTail => &[],
            description::Discipline::Step => &OF_STEP,
            description::Discipline::Red => &OF_RED,
            description::Discipline::Codel => &OF_CODEL,
        };
        let what = format!("a {} queue", discipline.word());
        from.places.only(&what, &all, allowed, self.problems);
        to.discipline = match discipline {
            description::Discipline::DropTail => Discipline::DropTail,
            description::Discipline::Step => {
                let (QueueLimit::Packets(limit) | QueueLimit::Bytes(limit)) = to.limit;
                let before = match to.discipline {
                    Discipline::Step { threshold } if from.limit.is_none() => threshold,
                    _ => limit / 4,
                };
                let span = from.places.value("threshold");
                let given = from.threshold.and_then(|amount| self.in_unit(amount, to.limit, span));
                let threshold = given.unwrap_or(before);
                if threshold > limit {
                    self.problems.error(span, format!("`threshold` {threshold} is above the limit, {limit}"));
                }
                Discipline::Step { threshold }
            }
            description::Discipline::Red => {
                let (before, mut probability, mut weight) = match to.discipline {
                    Discipline::Red { minimum, maximum, probability, weight } => {
                        (Some((minimum, maximum)), probability, weight)
                    }
                    _ => (None, 0.1, 0.002),
                };
                for (key, value, given) in
                    [("probability", &mut probability, from.probability), ("weight", &mut weight, from.weight)]
                {
                    if let Some(share) = given {
                        *value = share.0;
                        if share.0 == 0.0 {
                            self.problems.error(from.places.value(key), format!("`{key}` must be above 0"));
                        }
                    }
                }
                // A new limit makes new defaults.
                let before = before.filter(|_| from.limit.is_none());
                let mut threshold = |key: &str, given: Option<Amount>, before: Option<u64>| match given {
                    Some(amount) => self.in_unit(amount, to.limit, from.places.value(key)),
                    None => before,
                };
                let minimum = threshold("minimum", from.minimum, before.map(|(minimum, _)| minimum));
                let maximum = threshold("maximum", from.maximum, before.map(|(_, maximum)| maximum));
                let span = from.places.value(if from.maximum.is_some() { "maximum" } else { "minimum" });
                self.red(to, minimum, maximum, probability, weight, span)
            }
            description::Discipline::Codel => {
                let (target, interval) = match to.discipline {
                    Discipline::Codel { target, interval } => (target, interval),
                    _ => (Duration::from_millis(5), Duration::from_millis(100)),
                };
                let target = from.target.map_or(target, |duration| duration.get());
                let interval = from.interval.map_or(interval, |duration| duration.get());
                if target.is_zero() || interval < target {
                    let span = from.places.value(if target.is_zero() { "target" } else { "interval" });
                    let help = "the target is a few percent of the interval: 5ms and 100ms, for example";
                    self.problems.error_help(span, "`target` must be above 0 and at most `interval`", help);
                }
                Discipline::Codel { target, interval }
            }
        };
    }

    fn red(
        &mut self,
        queue: &Queue,
        minimum: Option<u64>,
        maximum: Option<u64>,
        probability: f64,
        weight: f64,
        span: Span,
    ) -> Discipline {
        let (QueueLimit::Packets(limit) | QueueLimit::Bytes(limit)) = queue.limit;
        let minimum = minimum.unwrap_or(limit / 4);
        let maximum = maximum.unwrap_or(limit - limit / 4);
        if minimum >= maximum || maximum > limit {
            let message = format!("minimum {minimum}, maximum {maximum} and limit {limit} do not ascend");
            self.problems.error_help(span, message, "minimum < maximum <= limit");
        }
        Discipline::Red { minimum, maximum, probability, weight }
    }

    fn in_unit(&mut self, amount: Amount, of: QueueLimit, span: Span) -> Option<u64> {
        match (limit(amount), of) {
            (QueueLimit::Packets(value), QueueLimit::Packets(_)) | (QueueLimit::Bytes(value), QueueLimit::Bytes(_)) => {
                Some(value)
            }
            _ => {
                let unit = if matches!(of, QueueLimit::Packets(_)) { "packets" } else { "bytes" };
                self.problems.error(span, format!("the queue's limit is in {unit}, so this must be, too"));
                None
            }
        }
    }

    fn rate_trace(&mut self, from: &TraceValue, settings: &DirectionSettings) -> Option<Arc<RateTrace>> {
        let span = settings.places.value("rate_trace");
        let steps = match from {
            TraceValue::Steps(steps) => steps.iter().map(|(at, rate)| (at.0, rate.0)).collect(),
            TraceValue::File(name) => {
                let key = (name.clone(), settings.rate_period.map(|period| period.0));
                if let Some(trace) = self.traces.get(&key) {
                    return Some(Arc::clone(trace));
                }
                self.lines(name, span, MOST_STEPS, |seconds, rate| {
                    let at = quantity::parse_duration(seconds).map_err(|error| error.to_string())?;
                    let rate = parse_rate(rate).map_err(|error| error.to_string())?;
                    Ok((nanoseconds(at), rate))
                })?
            }
        };
        let period = self.check_steps(&steps, settings, span)?;
        let trace = Arc::new(RateTrace { steps, period: Duration::from_nanos(period.unsigned_abs()) });
        if let TraceValue::File(name) = from {
            let key = (name.clone(), settings.rate_period.map(|period| period.0));
            self.traces.insert(key, Arc::clone(&trace));
        }
        Some(trace)
    }

    /// The period, if the steps are sound.
    fn check_steps(&mut self, steps: &[(i64, u64)], settings: &DirectionSettings, span: Span) -> Option<i64> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            self.problems.error(span, "a rate trace needs a step");
            return None;
        };
        let wrong = if first.0 != 0 {
            Some("the first step must be at 0s")
        } else if steps.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            Some("each step must be later than the one before")
        } else if last.0 > description::values::LONGEST
            || steps.iter().any(|step| step.1 > description::values::FASTEST)
        {
            Some("the longest time is 24000h, the highest rate 1000Tbit/s")
        } else if steps.iter().all(|step| step.1 == 0) {
            Some("at least one rate must be above 0")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.problems.error(span, wrong);
            return None;
        }
        let before = if steps.len() > 1 { steps[steps.len() - 2].0 } else { -1_000_000_000 };
        match settings.rate_period {
            None => Some(last.0 + (last.0 - before)),
            Some(period) if period.0 > last.0 => Some(period.0),
            Some(_) => {
                let span = settings.places.value("rate_period");
                self.problems.error(span, "`rate_period` must be behind the last step");
                None
            }
        }
    }

    /// Reads a file of lines with two values and a comma between; empty lines and those behind `#` are skipped.
    pub fn lines<T>(
        &mut self,
        name: &str,
        span: Span,
        most: usize,
        parse: impl Fn(&str, &str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let text = match (self.load)(name) {
            Ok(text) => text,
            Err(why) => {
                self.problems.error(span, format!("`{name}` can't be read: {why}"));
                return None;
            }
        };
        let mut read = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed = match line.split_once(',') {
                Some((left, right)) if read.len() < most => parse(left.trim(), right.trim()),
                Some(_) => Err(format!("there are more than {most} lines")),
                None => Err(format!("`{line}` is not two values with a comma between")),
            };
            match parsed {
                Ok(value) => read.push(value),
                Err(why) => {
                    self.problems.error(span, format!("{name}:{}: {why}", number + 1));
                    return None;
                }
            }
        }
        Some(read)
    }
}

fn limit(amount: Amount) -> QueueLimit {
    match amount.0 {
        quantity::Amount::Packets(packets) => QueueLimit::Packets(packets),
        quantity::Amount::Bytes(bytes) => QueueLimit::Bytes(bytes),
    }
}
