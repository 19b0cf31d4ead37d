//! Every calendar against a plain list: each armed timer fires exactly once, never early, at most as late as the design says.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_study::{Bucketed, Choice, Cuckoo, Direction, Drain, Hash, Model, Refusal, Shape, TickMap};

const TIMERS: u32 = 60;

#[derive(Clone, Debug)]
enum Step {
    /// Arm a timer so many ticks from now.
    Insert(u32, u64),
    /// Arm so many timers, from one on, for one tick.
    Burst(u32, u32, u64),
    Cancel(u32),
    /// Let ticks pass.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let ticks = || prop_oneof![1..6_u64, 1..60_u64];
    prop_oneof![
        6 => (0..TIMERS + 2, prop_oneof![4 => ticks(), 1 => Just(0)]).prop_map(|(id, ticks)| Step::Insert(id, ticks)),
        1 => (0..TIMERS, 1..20_u32, ticks()).prop_map(|(id, count, ticks)| Step::Burst(id, count, ticks)),
        2 => (0..TIMERS + 2).prop_map(Step::Cancel),
        3 => (1..12_u64).prop_map(Step::Pass),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..120)
}

fn shape() -> impl Strategy<Value = Shape> {
    let choice = prop_oneof![Just(Choice::First), Just(Choice::Random), Just(Choice::LeastLoaded)];
    let hash = prop_oneof![Just(Hash::Strong), Just(Hash::MultiplyShift), Just(Hash::H3), Just(Hash::Published)];
    let direction = prop_oneof![Just(Direction::Later), Just(Direction::Earlier)];
    let drain = prop_oneof![Just(Drain::Never), Just(Drain::Best), Just(Drain::OneTry)];
    let sizes = (1..=4_usize, 0..=3_u32, 1..=4_usize, 0..=3_u32, 1..=8_u32, 0..=6_usize);
    (choice, hash, direction, drain, sizes).prop_map(|(choice, hash, direction, drain, sizes)| {
        let (tables, row_bits, ways, window_bits, most_tries, stash) = sizes;
        Shape { tables, row_bits, ways, choice, hash, window_bits, most_tries, direction, stash, drain }
    })
}

/// The list, and what may be said of the calendar.
struct Check<'a> {
    model: &'a mut dyn Model,
    asked: BTreeMap<u32, u64>,
    most_shift: u64,
    places: usize,
    now: u64,
    /// Leave out the ticks that are nobody's next visit.
    sparing: bool,
}

impl Check<'_> {
    /// Tells the calendar what time it is, if that was left out.
    fn catch_up(&mut self) {
        let mut fired = Vec::new();
        if self.sparing {
            self.model.expire(self.now, &mut fired);
        }
        assert!(fired.is_empty());
    }

    fn insert(&mut self, id: u32, ticks: u64) {
        self.catch_up();
        let outcome = self.model.insert(self.now + ticks, id);
        match outcome {
            Ok(placed) => {
                assert!(id < TIMERS && ticks > 0 && !self.asked.contains_key(&id), "{id} was not to be armed");
                assert!(placed.shift <= self.most_shift && placed.tries >= 1, "{placed:?}");
                self.asked.insert(id, self.now + ticks);
            }
            Err(Refusal::NoTimer) => assert!(id >= TIMERS),
            Err(Refusal::Armed) => assert!(self.asked.contains_key(&id)),
            Err(Refusal::Past) => assert_eq!(ticks, 0),
            // Nothing is refused by a calendar that is empty, and nothing is forgotten.
            Err(Refusal::Full { .. }) => assert!(!self.asked.is_empty()),
            Err(Refusal::TooFar) => assert!(ticks as usize >= self.places),
        }
        self.agree();
    }

    fn pass(&mut self, ticks: u64) {
        for now in self.now + 1..=self.now + ticks {
            self.now = now;
            let visited: BTreeSet<u64> = self.asked.keys().filter_map(|id| self.model.next_visit(*id)).collect();
            assert!(visited.iter().all(|visit| *visit >= now), "a visit was missed");
            if self.sparing && !visited.contains(&now) {
                continue;
            }
            let mut fired = Vec::new();
            self.model.expire(now, &mut fired);
            for id in fired {
                let asked = self.asked.remove(&id);
                let asked = asked.unwrap_or_else(|| panic!("timer {id} fired and was not armed"));
                assert!((asked..=asked + self.most_shift).contains(&now), "asked for {asked}, fired at {now}");
            }
            self.agree();
        }
    }

    fn agree(&self) {
        assert_eq!(self.model.pending(), self.asked.len());
        let late = self.asked.values().find(|asked| **asked + self.most_shift < self.now);
        assert_eq!(late, None, "it is {}", self.now);
        for id in 0..TIMERS {
            assert_eq!(self.model.next_visit(id).is_some(), self.asked.contains_key(&id), "{id}");
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Insert(id, ticks) => self.insert(id, ticks),
                Step::Burst(first, count, ticks) => {
                    (0..count).for_each(|next| self.insert((first + next) % TIMERS, ticks));
                }
                Step::Cancel(id) => {
                    self.catch_up();
                    assert_eq!(self.model.cancel(id), self.asked.remove(&id).is_some());
                    self.agree();
                }
                Step::Pass(ticks) => self.pass(ticks),
            }
        }
        // Whatever is left fires.
        self.pass(60 + self.most_shift);
        assert!(self.asked.is_empty() && self.model.pending() == 0 && self.model.stashed() == 0);
    }
}

fn check(model: &mut dyn Model, most_shift: u64, places: usize, sparing: bool, steps: &[Step]) {
    Check { model, asked: BTreeMap::new(), most_shift, places, now: 0, sparing }.run(steps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn buckets_keep_the_promise(shape in shape(), seed in 0..9_u64, sparing: bool, steps in steps()) {
        let mut model = Bucketed::new(shape, TIMERS, seed);
        check(&mut model, shape.most_shift(), shape.places(), sparing, &steps);
    }

    #[test]
    fn a_cuckoo_table_keeps_the_promise(row_bits in 0..5_u32, most_moves in 0..20_u32, seed in 0..9_u64, sparing: bool, steps in steps()) {
        let mut model = Cuckoo::new(row_bits, Hash::Strong, most_moves, TIMERS, seed);
        check(&mut model, 0, Cuckoo::TABLES << row_bits, sparing, &steps);
    }

    #[test]
    fn a_tick_map_keeps_the_promise(span_bits in 1..9_u32, most_shift in 0..30_u64, sparing: bool, steps in steps()) {
        let mut model = TickMap::new(span_bits, most_shift, TIMERS);
        check(&mut model, most_shift, 1 << span_bits, sparing, &steps);
    }
}

#[test]
fn a_tick_map_finds_the_next_free_tick_across_levels() {
    let span = 1 << 13;
    let mut model = TickMap::new(13, span, span as u32);
    for id in 0..span as u32 - 2 {
        // All ticks but 7,000 and the present one, from behind.
        let tick = span - 1 - u64::from(id);
        assert_eq!(
            model.insert(if tick > 7_000 { tick } else { tick - 1 }, id).map(|placed| placed.shift).ok(),
            if tick == 1 { None } else { Some(0) }
        );
    }
    let last = span as u32 - 1;
    assert_eq!(model.insert(1, last).map(|placed| placed.shift), Ok(6_999));
    assert!(model.cancel(0));
    assert_eq!(model.insert(7_001, last - 1).map(|placed| placed.shift), Ok(span - 1 - 7_001));
}
