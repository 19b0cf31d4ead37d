//! Carousel's idea as it is often built (Saeed et al., "Carousel: Scalable Traffic Shaping at End Hosts", 2017), to put beside the
//! calendar: one wheel of slots of equal width, each a queue.

use weftwire_linux::pacer::Scheduler;

/// No flow.
const NONE: u32 = u32::MAX;

/// One wheel of slots of equal width. A flow is due when its slot is over, so up to a slot late. One beyond the horizon goes into
/// the last slot, and round again from there.
#[derive(Clone, Debug)]
pub struct SlotWheel {
    /// Width of a slot, nanoseconds.
    width: i64,
    /// First and last flow of each slot.
    slots: Vec<(u32, u32)>,
    /// Of each flow: the next in its slot, and its time.
    flows: Vec<(u32, i64)>,
    /// The slot to be looked at next, counted from time 0 without wrap.
    position: i64,
    waiting: usize,
}

impl SlotWheel {
    /// A wheel for the flows 0 to `flows - 1` from `start` on, of slots this wide, as many as the horizon needs.
    pub fn new(flows: usize, start: i64, width: i64, horizon: i64) -> SlotWheel {
        let width = width.max(1);
        let slots = (horizon / width).clamp(1, 1 << 24) as usize;
        SlotWheel {
            width,
            slots: vec![(NONE, NONE); slots],
            flows: vec![(NONE, 0); flows],
            position: start.div_euclid(width),
            waiting: 0,
        }
    }
}

impl Scheduler for SlotWheel {
    fn add(&mut self, at: i64, flow: u32) {
        let slots = self.slots.len() as i64;
        let slot = at.div_euclid(self.width).clamp(self.position, self.position + slots - 1);
        let slot = &mut self.slots[slot.rem_euclid(slots) as usize];
        self.flows[flow as usize] = (NONE, at);
        match slot.1 {
            NONE => slot.0 = flow,
            last => self.flows[last as usize].0 = flow,
        }
        slot.1 = flow;
        self.waiting += 1;
    }

    fn take(&mut self, now: i64, most: usize, due: &mut Vec<(i64, u32)>) {
        let over = now.div_euclid(self.width);
        let most = due.len() + most;
        while self.position < over && due.len() < most {
            if self.waiting == 0 {
                self.position = over;
                return;
            }
            let slots = self.slots.len() as i64;
            let slot = &mut self.slots[self.position.rem_euclid(slots) as usize];
            let flow = slot.0;
            if flow == NONE {
                self.position += 1;
                continue;
            }
            let (next, at) = self.flows[flow as usize];
            *slot = if next == NONE { (NONE, NONE) } else { (next, slot.1) };
            self.waiting -= 1;
            if at.div_euclid(self.width) > self.position {
                self.add(at, flow);
            } else {
                due.push((at, flow));
            }
        }
    }

    fn next(&self) -> Option<i64> {
        (self.waiting > 0).then(|| (self.position + 1) * self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weftwire_calendar::Calendar;

    proptest! {
        #[test]
        fn both_give_each_flow_back_once_and_never_early(
            times in prop::collection::vec(0_i64..50_000, 1..60),
            steps in prop::collection::vec(1_i64..9_000, 1..60),
            most in 1_usize..9,
            horizon in 4_000_i64..64_000,
        ) {
            let mut wheel = SlotWheel::new(times.len(), 0, 2_000, horizon);
            let mut calendar: Calendar<u32> = Calendar::new();
            for (flow, at) in (0..).zip(&times) {
                wheel.add(*at, flow);
                Scheduler::add(&mut calendar, *at, flow);
            }
            let schedulers: [(&mut dyn Scheduler, i64); 2] = [(&mut wheel, 2_000), (&mut calendar, 1)];
            for (scheduler, width) in schedulers {
                let (mut now, mut got) = (0, Vec::new());
                for step in steps.iter().chain(std::iter::repeat(&5_000)) {
                    let Some(next) = scheduler.next() else { break };
                    now = (now + step).max(next);
                    loop {
                        let before = got.len();
                        scheduler.take(now, most, &mut got);
                        prop_assert!(got.len() - before <= most);
                        prop_assert!(got[before..].iter().all(|(at, _)| *at <= now));
                        if got.len() == before { break }
                    }
                    prop_assert!(scheduler.next().is_none_or(|next| next > now - width));
                }
                let mut flows: Vec<(u32, i64)> = got.iter().map(|(at, flow)| (*flow, *at)).collect();
                flows.sort_unstable();
                prop_assert_eq!(flows, (0..).zip(times.iter().copied()).collect::<Vec<_>>());
            }
        }
    }
}
