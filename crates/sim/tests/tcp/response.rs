//! What congestion control does about losses: its window beside the same in floating point over the same acknowledgments and losses, and what it
//! gets beside the known response functions.

use crate::support::{CLEAN, Connection, Fate, Line, data, machine};
use std::cell::Cell;
use std::rc::Rc;
use weftwire_core::inspect::Inspect;

const SEGMENT: f64 = 1_448.0;
const MILLISECOND: i64 = 1_000_000;

const NOTHING: i64 = 0;
const TIMEOUT: i64 = 2;

/// What registers say between two events.
struct Seen {
    phase: i64,
    una: i64,
    recover: i64,
    limited: bool,
    doubtful: bool,
    fresh: i64,
    window: f64,
    least: f64,
}

impl Seen {
    fn of(connection: &Connection) -> Option<Seen> {
        let detail = connection.ends[0].engine.flow(connection.ends[0].flow?)?;
        let get = |name: &str| detail.registers.iter().find(|it| it.name == name).expect("a register").value;
        Some(Seen {
            phase: get("phase"),
            una: get("una"),
            recover: get("recover"),
            limited: get("limited") != 0,
            doubtful: get("rack.doubtful") != 0,
            fresh: get("fresh"),
            window: get("congestion_window") as f64,
            least: get("least") as f64 / 1e9,
        })
    }
}

/// NewReno (RFC 5681), or CUBIC (RFC 9438), in segments and seconds.
struct Model {
    cubic: bool,
    window: f64,
    threshold: f64,
    highest: f64,
    prior: f64,
    /// When the curve began, what it is flat at, and after how long.
    curve: Option<(f64, f64, f64)>,
    friendly: f64,
}

impl Model {
    fn grow(&mut self, count: f64, now: f64, least: f64) {
        if self.window < self.threshold {
            self.window += count;
        } else if self.cubic {
            let (window, highest) = (self.window, self.highest);
            if self.curve.is_none() {
                self.friendly = window;
            }
            let (epoch, origin, knee) = *self
                .curve
                .get_or_insert_with(|| (now, highest.max(window), ((highest - window).max(0.0) / 0.4).cbrt()));
            let target = (origin + 0.4 * (now + least - epoch - knee).powi(3)).clamp(window, 1.5 * window);
            self.friendly += if self.friendly >= self.prior { 1.0 } else { 0.529 } * count / window;
            self.window = (window + (target - window) * count / window).max(self.friendly);
        } else {
            self.window += count / self.window;
        }
    }

    fn reduce(&mut self, flight: f64) {
        let flight = flight.min(self.window);
        if self.cubic {
            self.highest = if self.window < self.prior { 0.85 * self.window } else { self.window };
            self.prior = self.window;
            self.curve = None;
        }
        self.threshold = (flight * if self.cubic { 0.7 } else { 0.5 }).max(2.0);
    }

    fn collapse(&mut self) {
        self.window = 1.0;
        self.highest = 0.0;
        self.curve = None;
    }
}

/// What a bulk transfer got over a line of this round trip that loses every so many-th segment with data.
struct Run {
    /// Segments a round trip, after the first reductions.
    rate: f64,
    reductions: usize,
    lost: usize,
    compared: usize,
}

/// How losses are spread.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Spread {
    Even,
    Random,
}

fn run(control: i64, trip: i64, period: usize, spread: Spread) -> Run {
    let name = ["newreno", "cubic"][control as usize];
    let cell = format!("{name} over {trip} ms, one of {period} lost, {spread:?}");
    let segments = (4 * period + 500).max(1_500);
    // Slow start is not what is measured.
    let threshold = (1_400.0 * (period as f64).sqrt()) as i64;
    let images = [machine(&[("control", control), ("threshold", threshold)]), machine(&[])];
    let line = Line { delay: trip * MILLISECOND / 2, ..CLEAN };
    let mut connection = Connection::new(images, [data(segments * 1_448 + 4_000_000, 7), Vec::new()], line, 1);
    connection.ends[0].closes = false;
    let (mut count, mut dice, lost) = (0, 0x1234_5678_9abc_def1_u64, Rc::new(Cell::new(0)));
    let seen_lost = lost.clone();
    let (again, mut highest) = (Rc::new(Cell::new(0)), None);
    let seen_again = again.clone();
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        count += 1;
        let ahead = highest.is_none_or(|highest: u32| sending.sequence().wrapping_sub(highest) as i32 > 0);
        again.set(again.get() + usize::from(!ahead));
        highest = if ahead { Some(sending.sequence()) } else { highest };
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = if spread == Spread::Even { count } else { (dice >> 33) as usize };
        if number % period != 0 {
            return Fate::Passes;
        }
        lost.set(lost.get() + 1);
        Fate::Lost
    });
    connection.open();
    let mut model: Option<Model> = None;
    let (mut reductions, mut compared, mut lost_before) = (0, 0, 0);
    let (mut begun, mut had) = (0, 0);
    let mut now = Seen::of(&connection);
    while connection.ends[1].received.len() < segments * 1_448 {
        assert!(connection.step(), "{cell}: it stops");
        let before = std::mem::replace(&mut now, Seen::of(&connection));
        let (Some(before), Some(after)) = (before, &now) else { continue };
        assert!(
            !before.doubtful || after.doubtful,
            "{cell}: a reduction for a real loss is undone at {}",
            connection.now
        );
        let entered = after.phase != NOTHING && (before.phase != after.phase || before.recover != after.recover);
        if entered {
            reductions += 1;
            assert!(seen_lost.get() > lost_before, "{cell}: a reduction without a loss at {}", connection.now);
            lost_before = seen_lost.get();
            if reductions == 2 {
                (begun, had) = (connection.now, connection.ends[1].received.len());
            }
        }
        // From the first recovery on: slow start before it ends by HyStart++.
        let Some(model) = &mut model else {
            if before.phase != NOTHING && after.phase == NOTHING {
                let window = after.window / SEGMENT;
                let [highest, prior] = ["cubic.highest", "cubic.before_loss"]
                    .map(|name| connection.register(0, name).expect("a register") as f64 / SEGMENT);
                model = Some(Model {
                    cubic: control == 1,
                    window,
                    threshold: window,
                    highest,
                    prior,
                    curve: None,
                    friendly: window,
                });
                // This acknowledgment has grown it already, and begun the curve.
                if control == 1 {
                    let [epoch, origin, knee] = ["cubic.epoch", "cubic.origin", "cubic.knee"]
                        .map(|name| connection.register(0, name).expect("a register") as f64);
                    let model = model.as_mut().expect("it is there");
                    model.curve = Some((epoch / 1e9, origin / SEGMENT, knee / 1e3));
                    model.friendly = connection.register(0, "cubic.friendly").expect("a register") as f64 / SEGMENT;
                }
            }
            continue;
        };
        let now = connection.now as f64 / 1e9;
        let left = |phase: i64| phase != NOTHING && phase != TIMEOUT;
        if left(before.phase) && (after.phase == NOTHING || entered) {
            model.window = model.threshold;
        }
        if entered {
            model.reduce(((after.recover - after.una) & 0xffff_ffff) as f64 / SEGMENT);
            if after.phase == TIMEOUT {
                model.collapse();
            }
        } else if before.limited && before.una != after.una && !left(after.phase) {
            model.grow(after.fresh as f64 / SEGMENT, now, after.least);
        }
        if after.phase == NOTHING {
            let ours = after.window / SEGMENT;
            assert!(
                (ours - model.window).abs() <= (0.01 * ours).max(1.0),
                "{cell}: {ours} instead of {} at {now} s",
                model.window
            );
            compared += 1;
        }
    }
    let (lost, again) = (seen_lost.get(), seen_again.get());
    assert!(again <= lost, "{cell}: {again} segments sent again for {lost} lost");
    let got = (connection.ends[1].received.len() - had) as f64 / SEGMENT;
    Run { rate: got * trip as f64 * MILLISECOND as f64 / (connection.now - begun) as f64, reductions, lost, compared }
}

/// Every loss costs a reduction, none is undone, and what is left is what RFC 5681 and RFC 9438 (5.1) say.
#[test]
fn losses_cost_newreno_what_they_should() {
    losses_cost(0);
}

#[test]
fn losses_cost_cubic_what_they_should() {
    losses_cost(1);
}

fn losses_cost(control: i64) {
    for (trip, period) in [10, 50, 100].into_iter().flat_map(|trip| [1_000, 100, 20].map(|period| (trip, period))) {
        let Run { rate, reductions, lost, compared } = run(control, trip, period, Spread::Even);
        let segments = period as f64;
        let reno = 1.22 * segments.sqrt();
        let cubic = 1.054 * (trip as f64 / 1e3 * segments).powf(0.75);
        let known = if control == 1 { reno.max(cubic) } else { reno };
        // The functions leave out the round trip in which a loss is made good.
        let known = segments / (segments / known + 1.0);
        let told = format!(
            "control {control}, {trip} ms, every {period}th lost: {rate:.2} segments a round trip, {known:.2} expected"
        );
        println!("{told}; {reductions} reductions for {lost} losses, {compared} windows compared");
        // Of windows of four segments, where in them the losses fall takes an eighth.
        let least = if known < 5.0 { 0.75 } else { 0.8 };
        assert!((least..=1.1).contains(&(rate / known)), "{told}");
        // The loss of what is sent again does not count.
        assert!(reductions + lost / 10 >= lost, "{told}: {reductions} reductions for {lost} losses");
        assert!(compared > 1_000, "{told}: {compared} windows compared");
    }
}

/// Where several of a round trip are lost, or those that made a loss good, there is nothing to be undone either.
#[test]
fn no_reduction_for_a_loss_is_undone() {
    for (control, period) in [(0, 200), (1, 200), (1, 50), (1, 20)] {
        let Run { reductions, lost, .. } = run(control, 10, period, Spread::Random);
        assert!(reductions <= lost && 2 * reductions > lost, "{reductions} reductions for {lost} losses");
    }
}

/// RFC 5681, 4.3: losses in two windows in a row are two, also if the second is found before the first has been made good.
#[test]
fn what_leaves_in_a_recovery_and_is_lost_is_another_loss() {
    let images = [machine(&[]), machine(&[])];
    let mut connection = Connection::new(images, [data(4_000_000, 7), Vec::new()], CLEAN, 1);
    let (mut losses, mut highest, mut missing, mut noticed) = (0, 0, 0, false);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        // What is sent again for the first loss comes late.
        if losses > 0 && sending.sequence() == missing {
            noticed = true;
            return Fate::Late(CLEAN.delay);
        }
        let new = sending.sequence() > highest;
        highest = highest.max(sending.sequence());
        if !new || losses == 2 || (losses == 0 && sending.at < 40 * MILLISECOND) || (losses == 1 && !noticed) {
            return Fate::Passes;
        }
        losses += 1;
        missing = if losses == 1 { sending.sequence() } else { missing };
        Fate::Lost
    });
    connection.open();
    let mut thresholds = Vec::new();
    connection.until(|connection| {
        if let Some(now) = connection.register(0, "threshold").filter(|now| thresholds.last() != Some(now)) {
            thresholds.push(now);
        }
        connection.ends[1].received.len() == 4_000_000
    });
    let [_, first, second] = thresholds[..] else { panic!("{thresholds:?}") };
    assert!(second <= first * 71 / 100, "{thresholds:?}");
}
