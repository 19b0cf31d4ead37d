//! What each operation does (semantics, sections 1, 2, 4.8, 4.10, 5 and 6).

use crate::chance::Draw;
use crate::instance::Instance;
use crate::run::{Run, Setting};
use crate::value::{compare, compute, look_up};
use weftwire_core::{DropReason, Output, Port};
use weftwire_image::{Operand, Operation, Operator, PacketRef, PayloadTest};

impl Run<'_> {
    /// Runs one operation.
    pub fn execute(&mut self, operation: &Operation) {
        match operation {
            Operation::Compute { operator, register, left, right } => self.compute(*operator, *register, left, right),
            Operation::Lookup { table, register, index } => {
                let value = look_up(&self.program.image.tables[usize::from(*table)], self.read(index));
                self.write(*register, value);
            }
            Operation::SetField { packet, field, value, optional } => {
                let value = self.read(value) as u64;
                let place = self.program.places[usize::from(*field)];
                self.change(*packet, |packet| match packet.set(place, value) {
                    Err(DropReason::NoField) if *optional => Ok(()),
                    result => result,
                });
            }
            Operation::Resize { packet, length } => {
                let length = self.read_length(length);
                self.change(*packet, |packet| packet.resize_payload(length));
            }
            Operation::Reverse { packet } => self.change(*packet, |packet| {
                packet.reverse();
                Ok(())
            }),
            Operation::KeepOptions { packet, kinds } => self.change(*packet, |packet| packet.keep_options(kinds)),
            Operation::Copy { from, to } => match self.packet(*from).cloned() {
                Some(copy) => *self.packet_place(*to) = Some(copy),
                None => self.count(DropReason::NoPacket),
            },
            Operation::Build { template, to } => match self.instance.endpoints {
                Some(endpoints) => *self.packet_place(*to) = Some(self.program.build(*template, &endpoints)),
                None => self.count(DropReason::NoPacket),
            },
            Operation::Discard { packet } => {
                if self.packet_place(*packet).take().is_none() {
                    self.count(DropReason::NoPacket);
                }
            }
            Operation::Send { packet, port } => {
                let port = self.read(port);
                self.send(*packet, port);
            }
            Operation::SetTimer { timer, delay, payload } => self.set_timer(*timer, delay, payload),
            Operation::CancelTimer { timer, tests } => self.cancel_timer(*timer, tests),
            Operation::AppendData { packet, offset, length } => {
                let (offset, length) = (self.read_length(offset), self.read_length(length));
                let bytes = part(self.instance.send_buffer.make_contiguous(), offset, length).to_vec();
                self.change(*packet, |packet| packet.append_payload(&bytes));
            }
            Operation::ReleaseData { length } => {
                let length = self.read_length(length).min(self.instance.send_buffer.len());
                if length > 0 {
                    self.instance.send_buffer.drain(..length);
                    self.out.push(Output::Released { flow: self.instance.flow, length });
                }
            }
            Operation::Deliver { packet, offset, length } => {
                let (offset, length) = (self.read_length(offset), self.read_length(length));
                self.deliver(*packet, offset, length);
            }
            Operation::Notify { notice, value } => {
                let name = self.program.image.notices[usize::from(*notice)].clone();
                let notice = Output::Notify { at: self.at, flow: self.instance.flow, name, value: self.read(value) };
                self.out.push(notice);
            }
            Operation::DeleteInstance => self.deleted = true,
            Operation::Snapshot { point } => self.snapshot(*point),
        }
    }

    fn compute(&mut self, operator: Operator, register: u16, left: &Operand, right: &Operand) {
        let (left, right) = (self.read(left), self.read(right));
        let (chance, instance) = (&self.shared.chance, &mut *self.instance);
        let secret = || match operator {
            Operator::Random => {
                let Instance { key, created, earlier, draws, .. } = instance;
                *draws += 1;
                chance.random(Draw { key: &key[..], created: *created, earlier: *earlier, number: *draws - 1 })
            }
            _ => chance.hash(left, right),
        };
        let value = compute(operator, left, right, secret).unwrap_or_else(|_| {
            self.count(DropReason::DivisionByZero);
            0
        });
        self.write(register, value);
    }

    /// Section 1.2.
    fn write(&mut self, register: u16, value: i64) {
        let register = usize::from(register);
        self.instance.registers[register] = self.program.image.registers[register].kind.cut(value);
    }

    /// A length or offset: negative is taken as 0 (sections 2.11 and 2.14).
    fn read_length(&self, operand: &Operand) -> usize {
        usize::try_from(self.read(operand).max(0)).unwrap_or(usize::MAX)
    }

    /// Changes a packet, and counts why that was not possible (sections 2.4, 2.11 and 2.13).
    fn change(
        &mut self,
        packet: PacketRef,
        change: impl FnOnce(&mut weftwire_core::packet::Packet) -> Result<(), DropReason>,
    ) {
        let result = self.packet_place(packet).as_mut().map_or(Err(DropReason::NoPacket), change);
        if let Err(reason) = result {
            self.count(reason);
        }
    }

    /// Section 2.7.
    fn send(&mut self, packet: PacketRef, port: i64) {
        let Some(found) = self.packet(packet) else { return self.count(DropReason::NoPacket) };
        let port = u16::try_from(port).ok().map(Port);
        let link = port.and_then(|port| self.shared.ports.link(port)).filter(|link| self.program.fits(found, *link));
        let (Some(port), Some(link)) = (port, link) else { return self.count(DropReason::NoPort) };
        let mut frame = std::mem::take(&mut self.shared.frame);
        if let Some(packet) = self.packet_place(packet) {
            packet.finish();
            let offload = packet.emit(link, &mut frame);
            if self.may_put_out(frame.len()) {
                self.out.send(self.at, port, &frame, offload);
                self.shared.counts.frames_out += 1;
                self.instance.counts.packets_out += 1;
            }
        }
        self.shared.frame = frame;
    }

    /// Section 4.11.
    fn may_put_out(&mut self, bytes: usize) -> bool {
        let allowed = self.put_out + bytes <= MOST_OUTPUT;
        if allowed {
            self.put_out += bytes;
        } else {
            self.count(DropReason::TooMuchOutput);
        }
        allowed
    }

    /// Sections 4.1, 4.8 and 4.9.
    fn set_timer(&mut self, timer: u8, delay: &Operand, payload: &[Operand]) {
        if self.instance.timers.len() >= self.program.image.flow.max_timers as usize {
            return self.count(DropReason::TooManyTimers);
        }
        let due = self.at.after(self.read(delay).max(0));
        let depth = if due == self.at { self.occasion.depth } else { 0 };
        if depth >= ZERO_TIME_DEPTH {
            self.endless = true;
            return;
        }
        let mut values = [0; 2];
        for (value, operand) in values.iter_mut().zip(payload) {
            *value = self.read(operand);
        }
        let setting = Setting { flow: self.instance.flow, timer, depth, payload: values };
        match self.shared.calendar.insert(due, setting) {
            Ok(handle) => self.instance.add_timer(handle),
            Err(_full) => self.count(DropReason::TooManyTimers),
        }
    }

    /// Section 4.10.
    fn cancel_timer(&mut self, timer: u8, tests: &[PayloadTest]) {
        let right: Vec<i64> = tests.iter().map(|test| self.read(&test.right)).collect();
        let passes = |setting: &Setting| {
            setting.timer == timer
                && tests
                    .iter()
                    .zip(&right)
                    .all(|(test, right)| compare(test.comparison, setting.payload[usize::from(test.value)], *right))
        };
        let calendar = &mut self.shared.calendar;
        self.instance.timers.retain(|handle| {
            let cancelled = calendar.get(*handle).is_some_and(passes);
            if cancelled {
                calendar.remove(*handle);
            }
            !cancelled
        });
    }

    /// Section 5.3.
    fn deliver(&mut self, packet: PacketRef, offset: usize, length: usize) {
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
}

/// How deep no setting of a timer is: one that would be ends its instance (section 4.9).
pub const ZERO_TIME_DEPTH: u16 = 10_000;

/// Most bytes that one event may send and deliver together (section 4.11).
const MOST_OUTPUT: usize = 16 << 20;

/// At most `length` bytes from `offset` on; fewer if there are fewer.
fn part(bytes: &[u8], offset: usize, length: usize) -> &[u8] {
    let behind = bytes.get(offset..).unwrap_or_default();
    &behind[..length.min(behind.len())]
}
