//! What each operation does, its operands read already (semantics, rules V1 to V14, P1 to P25, E14, E16, E21, E22, A1 to A6 and D1 to D5).

use crate::chance::Draw;
use crate::instance::Instance;
use crate::run::{Payload, Run, Setting};
use crate::stores::Tests;
use crate::value::{compute, is_before, mul_div};
use weftwire_core::{DropReason, Output, Time};
use weftwire_image::{Operator, PacketRef, RegisterType, Store, TimerQuery};

impl Run<'_> {
    /// Rules V1 to V12.
    #[inline]
    pub fn compute(&mut self, operator: Operator, register: u16, left: i64, right: i64) {
        let value = compute(operator, left, right, || self.secret(operator, left, right)).unwrap_or_else(|_| {
            self.count(DropReason::DivisionByZero);
            0
        });
        self.write(register, value);
    }

    /// A random number or a hash.
    #[inline(never)]
    fn secret(&mut self, operator: Operator, left: i64, right: i64) -> i64 {
        let (chance, instance) = (self.shared.keys.of(self.instance.keys), &mut *self.instance);
        match operator {
            Operator::Random => {
                let Instance { key, created, earlier, draws, .. } = instance;
                *draws += 1;
                chance.random(Draw { key: &key[..], created: *created, earlier: *earlier, number: *draws - 1 })
            }
            _ => chance.hash(left, right),
        }
    }

    /// Rule V15.
    pub fn mul_div(&mut self, register: u16, left: i64, right: i64, divisor: i64) {
        if divisor == 0 {
            self.count(DropReason::DivisionByZero);
        }
        self.write(register, mul_div(left, right, divisor));
    }

    /// Rule V2.
    #[inline]
    pub fn write(&mut self, register: u16, value: i64) {
        let register = usize::from(register);
        self.instance.registers[register] = self.program.kinds[register].cut(value);
    }

    /// Rules E3, E14, E15 and L4.
    pub fn set_timer(&mut self, timer: u8, delay: i64, payload: Payload) {
        if self.instance.timers.len() >= self.program.image.flow.max_timers as usize {
            return self.count(DropReason::TooManyTimers);
        }
        let Some((due, depth)) = self.deadline(delay) else { return };
        match self.shared.calendar.insert(due, Setting { flow: self.instance.flow, timer, depth, payload }) {
            Ok(handle) => self.instance.add_timer(handle),
            Err(_full) => self.count(DropReason::TooManyTimers),
        }
    }

    /// When a setting with this delay is due, and its depth; `None`: it is not made (rule E15).
    fn deadline(&mut self, delay: i64) -> Option<(Time, u16)> {
        let due = self.at.after(delay.max(0));
        let depth = if due == self.at { self.occasion.depth } else { 0 };
        self.endless |= depth >= ZERO_TIME_DEPTH;
        (depth < ZERO_TIME_DEPTH).then_some((due, depth))
    }

    /// Rule E16.
    pub fn cancel_timer(&mut self, timer: u8, tests: Tests<'_>) {
        let calendar = &mut self.shared.calendar;
        self.instance.timers.retain(|handle| {
            let cancelled = calendar.get(*handle).is_some_and(|setting| setting.passes(timer, tests));
            if cancelled {
                calendar.remove(*handle);
            }
            !cancelled
        });
    }

    /// Rule E21.
    pub fn move_timer(&mut self, timer: u8, tests: Tests<'_>, delay: i64) {
        let mut moved = std::mem::take(&mut self.shared.moved);
        let calendar = &mut self.shared.calendar;
        self.instance.timers.retain(|handle| {
            let found = calendar.get(*handle).copied().filter(|setting| setting.passes(timer, tests));
            moved.extend(found);
            found.is_none_or(|_| calendar.remove(*handle).is_none())
        });
        if !moved.is_empty()
            && let Some((due, depth)) = self.deadline(delay)
        {
            let settings = moved.iter().map(|setting| Setting { depth, ..*setting });
            // There is room: as many have just gone.
            let handles = settings.filter_map(|setting| self.shared.calendar.insert(due, setting).ok());
            self.instance.add_timers(due, handles);
        }
        moved.clear();
        self.shared.moved = moved;
    }

    /// Rule E22.
    pub fn ask_timer(&self, timer: u8, what: TimerQuery, (value, kind): (u8, RegisterType), tests: Tests<'_>) -> i64 {
        let settings = self.instance.timers.iter().filter_map(|handle| self.shared.calendar.get(*handle));
        let passing = settings.filter(|setting| setting.passes(timer, tests));
        let mut values = passing.map(|setting| setting.payload[usize::from(value)]);
        let found = match what {
            TimerQuery::Count => Some(values.count() as i64),
            TimerQuery::First => values.next(),
            TimerQuery::Last => values.next_back(),
            TimerQuery::Least => values.reduce(|one, other| if is_before(kind, other, one) { other } else { one }),
            TimerQuery::Greatest => values.reduce(|one, other| if is_before(kind, one, other) { other } else { one }),
        };
        found.unwrap_or(0)
    }

    /// Rules T2 and T3.
    pub fn ask(&mut self, turns: u8, rank: i64, cost: i64) {
        let (queue, instance) = (&mut self.shared.turns[usize::from(turns)], &mut *self.instance);
        if !queue.ask(&mut instance.waiting[usize::from(turns)], instance.flow, rank, cost, self.at) {
            self.count(DropReason::TurnsFull);
        }
    }

    /// Rule T4.
    pub fn withdraw(&mut self, turns: u8) {
        let turns = usize::from(turns);
        self.shared.turns[turns].withdraw(&mut self.instance.waiting[turns]);
    }

    /// Rule A3.
    pub fn append_data(&mut self, packet: PacketRef, offset: usize, length: usize) {
        let mut data = std::mem::take(&mut self.instance.send_buffer);
        let front = data.as_slices().0.len();
        // The buffer is moved only for bytes across the end of its memory.
        if offset < front && front < offset.saturating_add(length) {
            data.make_contiguous();
        }
        let bytes = match data.as_slices() {
            (front, back) if offset >= front.len() => part(back, offset - front.len(), length),
            (front, _) => part(front, offset, length),
        };
        let payload = self.packet(packet).map_or(0, |packet| packet.payload().len());
        self.make_room(packet, payload + bytes.len());
        self.change(packet, |packet| packet.append_payload(bytes));
        self.instance.send_buffer = data;
    }

    /// Rule A3.
    pub fn release_data(&mut self, length: usize) {
        let length = length.min(self.instance.send_buffer.len());
        if length > 0 {
            self.instance.send_buffer.drain(..length);
            self.out.push(Output::Released { flow: self.instance.flow, length });
        }
    }

    /// Rule A4.
    pub fn deliver(&mut self, packet: PacketRef, offset: usize, length: usize) {
        let Some(found) = self.packet(packet) else { return self.count(DropReason::NoPacket) };
        let count = part(found.payload(), offset, length).len();
        if count == 0 || !self.may_put_out(count) {
            return;
        }
        let packet = match packet {
            PacketRef::Current => self.occasion.current.as_ref(),
            PacketRef::Work => self.work.as_ref(),
            PacketRef::Slot(slot) => self.instance.slots[usize::from(slot)].as_ref(),
        };
        if let Some(packet) = packet {
            self.out.deliver(self.instance.flow, part(packet.payload(), offset, length));
        }
    }

    /// Rules R2 and G2.
    pub fn begin(&mut self, store: Store, at: i64) {
        match store {
            Store::Ranges(index) => self.instance.ranges[usize::from(index)].begin(at as u32),
            Store::Segments(index) => self.instance.segments[usize::from(index)].begin(at as u32),
        }
    }

    /// Rules R4 and G5.
    pub fn trim(&mut self, store: Store, to: i64) {
        match store {
            Store::Ranges(index) => self.instance.ranges[usize::from(index)].trim(to as u32),
            Store::Segments(index) => self.instance.segments[usize::from(index)].trim(to as u32),
        }
    }

    /// Rule R3.
    pub fn add_range(&mut self, ranges: u8, left: i64, right: i64) {
        let result = self.instance.ranges[usize::from(ranges)].add(left as u32, right as u32);
        self.count_refusal(result);
    }

    /// Rule R6.
    pub fn hold(&mut self, ranges: u8, packet: PacketRef, offset: usize, length: usize, at: i64) {
        let Instance { slots, ranges: all, .. } = &mut *self.instance;
        let found = match packet {
            PacketRef::Current => self.occasion.current.as_ref(),
            PacketRef::Work => self.work.as_ref(),
            PacketRef::Slot(slot) => slots[usize::from(slot)].as_ref(),
        };
        let result = found.map_or(Err(DropReason::NoPacket), |found| {
            all[usize::from(ranges)].hold(at as u32, part(found.payload(), offset, length))
        });
        self.count_refusal(result);
    }

    /// Rule R7.
    pub fn deliver_held(&mut self, ranges: u8, to: i64) {
        let index = usize::from(ranges);
        let Some(length) = self.instance.ranges[index].held(to as u32) else { return self.count(DropReason::NotHeld) };
        if length == 0 || !self.may_put_out(length) {
            return;
        }
        let ranges = &mut self.instance.ranges[index];
        self.out.deliver(self.instance.flow, ranges.front(length));
        ranges.delivered(length);
    }

    /// Rule G3.
    pub fn append_segment(&mut self, segments: u8, end: i64, values: &[i64]) {
        let result = self.instance.segments[usize::from(segments)].append(end as u32, values);
        self.count_refusal(result);
    }

    /// Rule G4.
    pub fn split_segment(&mut self, segments: u8, at: i64) {
        let result = self.instance.segments[usize::from(segments)].split(at as u32);
        self.count_refusal(result);
    }

    fn count_refusal(&mut self, result: Result<(), DropReason>) {
        if let Err(reason) = result {
            self.count(reason);
        }
    }

    /// Rule A6.
    pub fn notify(&mut self, notice: u16, value: i64) {
        self.out.push(Output::Notify { at: self.at, flow: self.instance.flow, notice, value });
    }
}

/// How deep no setting of a timer is: one that would be ends its instance (rule E15).
pub const ZERO_TIME_DEPTH: u16 = 10_000;

/// Most bytes that one event may send and deliver together (rule E17).
pub(crate) const MOST_OUTPUT: usize = 16 << 20;

/// At most `length` bytes from `offset` on; fewer if there are fewer.
fn part(bytes: &[u8], offset: usize, length: usize) -> &[u8] {
    let behind = bytes.get(offset..).unwrap_or_default();
    &behind[..length.min(behind.len())]
}
