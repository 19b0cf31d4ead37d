//! Whether a state is one that a machine can have come to.

use super::{FlowState, StateError, TimerState, TurnState};
use crate::ZERO_TIME_DEPTH;
use crate::axis::Axis;
use crate::program::Program;
use crate::stores::{Ranges, Segments};
use std::collections::VecDeque;
use weftwire_core::build::TemplateTransport;
use weftwire_core::packet::Packet;
use weftwire_core::{Endpoints, Time};
use weftwire_image::limits::MAX_TURN_COST;

/// Numbers and counts from here on are not believed: no function lives so long, and they must not overflow.
pub(super) const TOO_MANY: u64 = 1 << 62;
/// The same for instances of one key at one instant.
pub(super) const TOO_EARLY: u32 = 1 << 31;

/// How late a timer may fire that was due while its flow was on its way, in nanoseconds: a timer that sets itself again
/// has to catch up with all that time.
const MOST_LATE: i64 = 600_000_000_000;

impl FlowState {
    /// Checks everything that one flow tells, and makes its packets. Its time will be on `axis`; the engine's is `now`.
    pub(super) fn check(&self, program: &Program, axis: Axis, now: Time) -> Result<Vec<Option<Packet>>, StateError> {
        self.check_image(program)?;
        self.check_numbers(program)?;
        self.check_times(program, axis)?;
        self.check_timers(program, axis, now)?;
        self.check_key(program)?;
        self.make_packets(program)
    }

    fn check_image(&self, program: &Program) -> Result<(), StateError> {
        let image = digest(&program.image.digest);
        if self.image == image {
            return Ok(());
        }
        Err(StateError::Image { found: hexadecimal(&self.image), expected: hexadecimal(&image) })
    }

    fn check_numbers(&self, program: &Program) -> Result<(), StateError> {
        let image = &program.image;
        if usize::from(self.state) >= image.states.len() {
            return Err(StateError::value("state", self.state, format!("less than {}", image.states.len())));
        }
        let stored: Vec<_> = image.registers.iter().filter(|register| !register.scratch).collect();
        counted("registers", self.registers.len(), stored.len())?;
        for (register, &value) in stored.into_iter().zip(&self.registers) {
            if register.kind.cut(value) != value {
                let name = format!("register {}", register.name);
                return Err(StateError::value(name, value, format!("what its type {:?} holds", register.kind)));
            }
        }
        let counts = [
            ("flow", self.flow.0),
            ("activity", self.activity),
            ("rank activity", self.rank_activity),
            ("draws", self.draws),
            ("events", self.events),
            ("packets in", self.packets_in),
            ("packets out", self.packets_out),
        ];
        for (name, count) in counts.into_iter().chain(self.drops.iter().map(|(reason, count)| (reason.name(), *count)))
        {
            if count >= TOO_MANY {
                return Err(StateError::value(name, count, format!("less than {TOO_MANY}")));
            }
        }
        if !self.drops.is_sorted_by(|one, other| one.0 < other.0) || self.drops.iter().any(|(_, count)| *count == 0) {
            return Err(StateError::value("drops", "out of order", "by reason, each once and not 0"));
        }
        if self.flow.0 == 0 {
            return Err(StateError::value("flow", self.flow, "at least 1"));
        }
        if self.earlier >= TOO_EARLY {
            return Err(StateError::value("earlier", self.earlier, format!("less than {TOO_EARLY}")));
        }
        counted("turns", self.turns.len(), image.turns.len())?;
        for (turns, turn) in image.turns.iter().zip(&self.turns) {
            if let Some(TurnState { cost, .. }) = turn.filter(|turn| !(1..=MAX_TURN_COST).contains(&turn.cost)) {
                let name = format!("turn cost {}", turns.name);
                return Err(StateError::value(name, cost, format!("1 to {MAX_TURN_COST}, or 0")));
            }
        }
        if self.closed && self.open {
            return Err(StateError::value("flags", "closed and open", "one of both at most"));
        }
        at_most("send buffer", self.send_buffer.len(), image.send_buffer_bytes())
    }

    fn check_times(&self, program: &Program, axis: Axis) -> Result<(), StateError> {
        if self.created > self.last_active || self.last_active > self.time {
            let expected = format!("from `created` ({}) to `time` ({})", self.created, self.time);
            return Err(StateError::value("last active", self.last_active, expected));
        }
        if self.rank < self.last_active || self.rank > self.time {
            let expected = format!("from `last active` ({}) to `time` ({})", self.last_active, self.time);
            return Err(StateError::value("rank", self.rank, expected));
        }
        for (name, at) in [("created", self.created), ("last active", self.last_active), ("time", self.time)] {
            reached(name, at, axis)?;
        }
        counted("samples", self.samples.len(), program.image.debug.samples.len())?;
        for (sample, &at) in program.image.debug.samples.iter().zip(&self.samples) {
            let whole = at.nanoseconds().checked_sub(self.created.nanoseconds());
            let fits = whole.is_some_and(|whole| whole > 0 && whole % sample.interval == 0);
            if !fits && at != Time::MAX {
                let expected = format!("whole intervals of {} ns behind `created`", sample.interval);
                return Err(StateError::value("sample", at, expected));
            }
            reached("sample", at, axis)?;
        }
        Ok(())
    }

    fn check_timers(&self, program: &Program, axis: Axis, now: Time) -> Result<(), StateError> {
        at_most("timers", self.timers.len(), program.image.flow.max_timers as usize)?;
        let mut last = self.created;
        for (number, TimerState { due, timer, depth, payload }) in self.timers.iter().enumerate() {
            let name = |what: &str| format!("timer {number}: {what}");
            let Some(declared) = program.image.timers.get(usize::from(*timer)) else {
                return Err(StateError::value(
                    name("timer"),
                    timer,
                    format!("less than {}", program.image.timers.len()),
                ));
            };
            if *due < last {
                return Err(StateError::value(name("due"), due, format!("not before {last}")));
            }
            if axis.own(now).since(*due) > MOST_LATE {
                let expected = format!("due {} s before {} or later", MOST_LATE / 1_000_000_000, axis.own(now));
                return Err(StateError::value(name("due"), due, expected));
            }
            last = *due;
            reached(&name("due"), *due, axis)?;
            let deepest = if *due > self.time { 0 } else { ZERO_TIME_DEPTH - 1 };
            if *depth > deepest {
                return Err(StateError::value(name("depth"), depth, format!("at most {deepest}")));
            }
            if payload.iter().skip(declared.payload.len()).any(|value| *value != 0) {
                return Err(StateError::value(name("payload"), "longer", "as many values as the timer declares"));
            }
        }
        Ok(())
    }

    /// The key is one that a packet can have, and where the ends tell it, theirs.
    fn check_key(&self, program: &Program) -> Result<(), StateError> {
        counted("key", self.key.len(), program.key_length())?;
        if !program.is_key(&self.key) {
            return Err(StateError::Key);
        }
        let Some(ends) = &self.endpoints else { return Ok(()) };
        let transport = match ends.protocol {
            6 => TemplateTransport::Tcp,
            17 => TemplateTransport::Udp,
            other => return Err(StateError::value("protocol", other, "6 (TCP) or 17 (UDP)")),
        };
        if ends.local_address.is_ipv4() != ends.remote_address.is_ipv4() {
            return Err(StateError::value("remote address", ends.remote_address, "of the local one's family"));
        }
        if !program.ends_tell_key() {
            return Ok(());
        }
        // Of `connect` it is that of a packet to the other end, of a packet that of one from there.
        let back = Endpoints {
            local_address: ends.remote_address,
            local_port: ends.remote_port,
            remote_address: ends.local_address,
            remote_port: ends.local_port,
            ..*ends
        };
        let mut key = Vec::new();
        let fits = [ends, &back].into_iter().any(|ends| {
            let probe = program.probe(transport, ends);
            program.flow_key(&probe, &mut key) && key == self.key
        });
        fits.then_some(()).ok_or(StateError::Key)
    }

    fn make_packets(&self, program: &Program) -> Result<Vec<Option<Packet>>, StateError> {
        let slots = &program.image.slots;
        counted("packets", self.packets.len(), slots.len())?;
        let packets = self.packets.iter().zip(slots).map(|(parts, slot)| {
            let made = parts.clone().map(|parts| Packet::from_parts(parts, &program.formats)).transpose();
            made.map_err(|problem| StateError::Packet { slot: slot.clone(), problem })
        });
        packets.collect()
    }

    /// Its ranges and segments.
    pub(super) fn make_stores(&self, program: &Program) -> Result<(Vec<Ranges>, Vec<Segments>), StateError> {
        let image = &program.image;
        counted("ranges", self.ranges.len(), image.ranges.len())?;
        counted("segments", self.segments.len(), image.segments.len())?;
        let buffer = image.receive_buffer().map(|(index, _)| index);
        let mut ranges = Vec::new();
        for (index, (new, state)) in program.new_ranges().into_iter().zip(&self.ranges).enumerate() {
            let (held, unread) = if buffer == Some(index) { (&self.held[..], self.unread) } else { (&[][..], 0) };
            let name = || format!("ranges {}", image.ranges[index].name);
            let made = new.restored(state, held, unread);
            ranges.push(made.ok_or_else(|| {
                StateError::value(name(), "otherwise", "apart, within their bounds and with their bytes")
            })?);
        }
        if buffer.is_none() && (!self.held.is_empty() || self.unread != 0) {
            return Err(StateError::value("receive buffer", "not empty", "none, as the image has none"));
        }
        let mut segments = Vec::new();
        for (index, (new, state)) in program.new_segments().into_iter().zip(&self.segments).enumerate() {
            let name = || format!("segments {}", image.segments[index].name);
            let made = new.restored(state);
            segments.push(made.ok_or_else(|| StateError::value(name(), "otherwise", "within their bounds and types"))?);
        }
        Ok((ranges, segments))
    }

    /// The registers with the scratch ones in their places.
    pub(super) fn all_registers(&self, program: &Program) -> Vec<i64> {
        let mut stored: VecDeque<i64> = self.registers.iter().copied().collect();
        let mut next = |scratch: bool| if scratch { None } else { stored.pop_front() };
        program.image.registers.iter().map(|register| next(register.scratch).unwrap_or(0)).collect()
    }
}

fn counted(name: &str, found: usize, expected: usize) -> Result<(), StateError> {
    if found == expected {
        Ok(())
    } else {
        Err(StateError::value(name, format!("{found} long"), format!("{expected} long")))
    }
}

fn at_most(name: &str, found: usize, most: usize) -> Result<(), StateError> {
    if found <= most {
        Ok(())
    } else {
        Err(StateError::value(name, format!("{found} long"), format!("at most {most} long")))
    }
}

/// That an instant is none that saturates on the way to the engine's time.
fn reached(name: &str, at: Time, axis: Axis) -> Result<(), StateError> {
    if axis.reaches(at) { Ok(()) } else { Err(StateError::value(name, at, "nearer to the function's time")) }
}

/// An image's digest as its 32 bytes; the verifier has seen its form.
pub(super) fn digest(text: &str) -> [u8; 32] {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    std::array::from_fn(|byte| {
        digits.get(2 * byte..2 * byte + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0)
    })
}

fn hexadecimal(digest: &[u8; 32]) -> String {
    digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
