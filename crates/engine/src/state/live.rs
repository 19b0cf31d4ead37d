//! Flows out of an engine and into one.

use super::check::digest;
use super::{FlowState, FunctionState, StateError, TimerState, TurnState, TurnsState};
use crate::axis::Axis;
use crate::chance::Chance;
use crate::instance::{Activity, FlowCounts, Instance};
use crate::run::Setting;
use crate::stores::{Ranges, Segments};
use crate::turns::Turns;
use crate::{Executor, Runtime};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use weftwire_core::live::Clocks;
use weftwire_core::packet::Packet;
use weftwire_core::{FlowId, Time};
use weftwire_image::layout::StateLayout;

impl<E: Executor> Runtime<E> {
    /// Where everything is in the bytes of a flow's state.
    pub fn state_layout(&self) -> &StateLayout {
        &self.program.state_layout
    }

    /// The state of a flow at the boundary behind the latest event. `clocks` are those of the function's time.
    pub fn snapshot(&self, flow: FlowId, clocks: Option<&Clocks>) -> Option<FlowState> {
        let instance = self.table.get(flow)?;
        let axis = instance.axis;
        let registers = self.program.image.registers.iter().zip(&instance.registers);
        Some(FlowState {
            image: digest(&self.program.image.digest),
            time: axis.own(self.clock),
            clocks: clocks.map(|clocks| clocks.of_time_ahead(axis.ahead)),
            keys: self.shared.keys.of(instance.keys).keys(),
            flow,
            key: instance.key.to_vec(),
            state: instance.state,
            registers: registers.filter(|(register, _)| !register.scratch).map(|(_, value)| *value).collect(),
            endpoints: instance.endpoints,
            closed: instance.closed,
            open: instance.open,
            created: instance.created,
            earlier: instance.earlier,
            last_active: axis.own(instance.last_active.at),
            activity: instance.last_active.number,
            rank: axis.own(instance.rank.at),
            rank_activity: instance.rank.number,
            draws: instance.draws,
            events: instance.counts.events,
            packets_in: instance.counts.packets_in,
            packets_out: instance.counts.packets_out,
            drops: instance.counts.drops.iter().collect(),
            timers: self.timers_of(instance),
            samples: self.samples.of(flow).into_iter().map(|at| axis.own(at)).collect(),
            packets: instance.slots.iter().map(|slot| slot.as_ref().map(Packet::to_parts)).collect(),
            ranges: instance.ranges.iter().map(Ranges::state).collect(),
            held: instance.ranges.iter().flat_map(Ranges::held_bytes).collect(),
            unread: instance.ranges.iter().map(Ranges::unread).sum(),
            segments: instance.segments.iter().map(Segments::state).collect(),
            turns: self.turns_of(instance),
            send_buffer: instance.send_buffer.iter().copied().collect(),
        })
    }

    fn timers_of(&self, instance: &Instance) -> Vec<TimerState> {
        let settings = instance.timers.iter().filter_map(|handle| Some((handle, self.shared.calendar.get(*handle)?)));
        let state = |(handle, setting): (&weftwire_calendar::TimerHandle, &Setting)| TimerState {
            due: instance.axis.own(handle.deadline()),
            timer: setting.timer,
            depth: setting.depth,
            payload: setting.payload,
        };
        settings.map(state).collect()
    }

    fn turns_of(&self, instance: &Instance) -> Vec<Option<TurnState>> {
        let places = instance.waiting.iter().zip(&self.shared.turns);
        places.map(|(place, turns)| turns.request((*place)?)).collect()
    }

    /// Takes a flow out: it is here no more, and nobody is told.
    pub fn take(&mut self, flow: FlowId, clocks: Option<&Clocks>) -> Option<FlowState> {
        let state = self.snapshot(flow, clocks)?;
        let instance = self.table.remove(flow)?;
        self.samples.end(flow);
        self.forget(instance);
        Some(state)
    }

    /// Puts a flow in at `now`. Its time goes on by the clocks that both functions know, or else from where it was; it
    /// never goes back. Timers that were due meanwhile fire late, in order. It keeps its number if no flow has it here.
    ///
    /// # Errors
    /// See [`StateError`]; nothing has changed then.
    pub fn restore(&mut self, now: Time, state: &FlowState, clocks: Option<&Clocks>) -> Result<FlowId, StateError> {
        let now = self.clock.max(now);
        let at_least = state.time.nanoseconds().checked_sub(now.nanoseconds());
        let by_clocks = match (clocks, &state.clocks) {
            (Some(here), Some(there)) => here.until(there),
            _ => at_least,
        };
        let (Some(at_least), Some(ahead)) = (at_least, by_clocks) else {
            return Err(StateError::value("time", state.time, "nearer to the function's time"));
        };
        let free = self.table.get(state.flow).is_none();
        let flow = if free { state.flow } else { FlowId(self.last_flow + 1) };
        self.put(flow, state, Axis { ahead: ahead.max(at_least) }, now)?;
        self.clock = now;
        Ok(flow)
    }

    /// Puts a flow in, with its timers behind all that are due at the same instants.
    fn put(&mut self, flow: FlowId, state: &FlowState, axis: Axis, now: Time) -> Result<(), StateError> {
        let slots = state.check(&self.program, axis, now)?;
        let (ranges, segments) = state.make_stores(&self.program)?;
        if let Some(other) = self.table.find(&state.key) {
            return Err(StateError::Exists(other));
        }
        if self.table.is_full() {
            return Err(StateError::TableFull(self.table.len()));
        }
        if self.shared.calendar.room() < state.timers.len() {
            return Err(StateError::TooManyTimers(state.timers.len()));
        }
        let (packets, stored) = (slots.iter().flatten().count(), self.shared.stored);
        if let Some(most) = self.shared.limits.packets.filter(|_| !self.shared.limits.has_buffers(stored, packets)) {
            return Err(StateError::TooManyPackets { packets, stored, most });
        }
        let waits = state.turns.iter().zip(&self.shared.turns).zip(&self.program.image.turns);
        if let Some((_, turns)) = waits.into_iter().find(|((turn, queue), _)| turn.is_some() && queue.is_full()) {
            return Err(StateError::TurnsFull(turns.name.clone()));
        }
        let sets = crate::key_sets::MOST_KEY_SETS;
        let keys = self.shared.keys.hold(&state.keys).ok_or(StateError::TooManyKeys(sets))?;
        let mut timers = VecDeque::with_capacity(state.timers.len());
        for &TimerState { due, timer, depth, payload } in &state.timers {
            let setting = Setting { flow, timer, depth, payload };
            timers.extend(self.shared.calendar.insert(axis.engine(due), setting));
        }
        // Behind those that wait here with the same rank.
        let mut waiting = SmallVec::from_elem(None, state.turns.len());
        for ((place, turn), queue) in waiting.iter_mut().zip(&state.turns).zip(&mut self.shared.turns) {
            if let Some(TurnState { rank, cost }) = *turn {
                queue.ask(place, flow, rank, cost, now);
            }
        }
        let last_active = Activity { at: axis.engine(state.last_active), number: state.activity };
        self.shared.stored += packets;
        self.shared.populations[usize::from(state.state)] += 1;
        self.samples.go_on(flow, state.samples.iter().map(|at| axis.engine(*at)), now);
        self.last_flow = self.last_flow.max(flow.0);
        self.table.insert(Box::new(Instance {
            flow,
            axis,
            keys,
            key: state.key.as_slice().into(),
            state: state.state,
            registers: state.all_registers(&self.program),
            slots,
            ranges,
            segments,
            waiting,
            timers,
            endpoints: state.endpoints,
            send_buffer: state.send_buffer.iter().copied().collect(),
            closed: state.closed,
            created: state.created,
            earlier: state.earlier,
            draws: state.draws,
            last_active,
            open: state.open,
            rank: Activity { at: axis.engine(state.rank), number: state.rank_activity },
            came_into_group: false,
            lines: [None; 2],
            counts: FlowCounts {
                events: state.events,
                packets_in: state.packets_in,
                packets_out: state.packets_out,
                drops: state.drops.iter().copied().collect(),
            },
        }));
        let peak = &mut self.shared.counts.flows_peak;
        *peak = (*peak).max(self.table.len() as u64);
        Ok(())
    }

    /// The state of the whole function at the boundary behind the latest event.
    pub fn snapshot_all(&self, clocks: Option<&Clocks>) -> FunctionState {
        FunctionState {
            image: digest(&self.program.image.digest),
            time: self.clock,
            clocks: clocks.copied(),
            keys: self.shared.keys.own().keys(),
            last_flow: self.last_flow,
            activities: self.table.activities,
            last_made: self.last_made,
            latest_input: self.order.latest,
            made_then: self.made_then.sorted(),
            listening: self.shared.listening.clone(),
            counts: self.shared.counts.clone(),
            turns: self.shared.turns.iter().map(Turns::state).collect(),
            flows: self.table.iter().filter_map(|instance| self.snapshot(instance.flow, clocks)).collect(),
            due: self.shared.calendar.in_order().iter().map(|setting| setting.flow).collect(),
        }
    }

    /// Makes a new function the one whose state this is.
    ///
    /// # Errors
    /// See [`StateError`]; the function is of no use then, unless it is [`StateError::NotNew`].
    pub fn restore_all(&mut self, state: &FunctionState) -> Result<(), StateError> {
        if self.last_flow != 0 || self.table.activities != 0 || self.clock != Time::ZERO {
            return Err(StateError::NotNew);
        }
        state.check(&self.program)?;
        self.shared.keys.set_own(Chance::of_keys(&state.keys));
        self.clock = state.time;
        for one in &state.flows {
            let ahead = one.time.nanoseconds().checked_sub(state.time.nanoseconds());
            let ahead = ahead.ok_or_else(|| StateError::value("time", one.time, "nearer to the function's time"))?;
            self.put(one.flow, one, Axis { ahead }, state.time)?;
        }
        self.order_timers(&state.due)?;
        self.order_turns(state)?;
        self.last_flow = state.last_flow;
        self.table.activities = state.activities;
        self.order.latest = state.latest_input;
        self.last_made = state.last_made;
        self.made_then.clear();
        for (key, count) in &state.made_then {
            self.made_then.set(key, *count);
        }
        self.shared.counts = state.counts.clone();
        self.shared.listening.clone_from(&state.listening);
        Ok(())
    }

    /// Lets the flows that wait for turns do so in this order.
    fn order_turns(&mut self, state: &FunctionState) -> Result<(), StateError> {
        self.shared.turns = self.program.new_turns();
        for (index, TurnsState { next, waiting }) in state.turns.iter().enumerate() {
            let name = &self.program.image.turns[index].name;
            let wrong = || {
                let expected = "the flows that wait, in the order of their ranks";
                StateError::value(format!("waiting {name}"), "another list", expected)
            };
            let queue = &mut self.shared.turns[index];
            let mut told: BTreeMap<FlowId, TurnState> =
                state.flows.iter().filter_map(|flow| Some((flow.flow, flow.turns[index]?))).collect();
            let mut last = i64::MIN;
            for flow in waiting {
                let TurnState { rank, cost } = told.remove(flow).filter(|turn| turn.rank >= last).ok_or_else(wrong)?;
                last = rank;
                let instance = self.table.get_mut(*flow).ok_or_else(wrong)?;
                instance.waiting[index] = None;
                queue.ask(&mut instance.waiting[index], *flow, rank, cost, *next);
            }
            if !told.is_empty() {
                return Err(wrong());
            }
            if !waiting.is_empty() && *next < state.time {
                return Err(StateError::value(format!("next {name}"), next, "not before `time` while flows wait"));
            }
            queue.not_before(*next);
        }
        Ok(())
    }

    /// Sets all timers again, those of one instant in this order of their flows.
    fn order_timers(&mut self, due: &[FlowId]) -> Result<(), StateError> {
        let mut settings: BTreeMap<FlowId, VecDeque<(Time, Setting)>> = BTreeMap::new();
        let mut count = 0;
        while let Some((at, _, setting)) = self.shared.calendar.pop_due(Time::MAX) {
            settings.entry(setting.flow).or_default().push_back((at, setting));
            count += 1;
        }
        let wrong =
            || StateError::value("due", "another list", "the flows of all timers in the order of their instants");
        let mut last = Time::from_nanoseconds(i64::MIN);
        for flow in due {
            let next = settings.get_mut(flow).and_then(VecDeque::pop_front).filter(|(at, _)| *at >= last);
            let (at, setting) = next.ok_or_else(wrong)?;
            last = at;
            count -= 1;
            let handle = self.shared.calendar.insert(at, setting).map_err(|_| wrong())?;
            if let Some(instance) = self.table.get_mut(*flow) {
                // Those in front are set again, those behind not yet: the first old one is next.
                instance.timers.pop_front();
                instance.timers.push_back(handle);
            }
        }
        if count == 0 { Ok(()) } else { Err(wrong()) }
    }
}
