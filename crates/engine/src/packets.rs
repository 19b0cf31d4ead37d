//! The packets of an event: where they are, how they change, and how they leave (semantics, rules P16, P22 and P23).
//!
//! A packet that is sent usually is not touched again, so its frame is only *promised* to the outbox: it goes there without
//! a copy when the event is over. If the packet changes before, a copy of it goes there first.

use crate::operations::MOST_OUTPUT;
use crate::run::Run;
use weftwire_core::outbox::FrameNumber;
use weftwire_core::packet::Packet;
use weftwire_core::{DropReason, LinkType, Port};
use weftwire_image::PacketRef;

/// A frame that the outbox waits for: its packet's, as it is now.
#[derive(Clone, Copy, Debug)]
struct Promise {
    frame: FrameNumber,
    link: LinkType,
}

/// What was promised of `current` and of `work`.
#[derive(Default, Debug)]
pub struct Promises {
    current: Option<Promise>,
    work: Option<Promise>,
}

impl Promises {
    /// What was promised of a packet; `None` for those in slots, which outlive their events and leave by copies.
    fn of(&mut self, packet: PacketRef) -> Option<&mut Option<Promise>> {
        match packet {
            PacketRef::Current => Some(&mut self.current),
            PacketRef::Work => Some(&mut self.work),
            PacketRef::Slot(_) => None,
        }
    }
}

impl Run<'_> {
    /// The packet a reference means, if it is there.
    pub fn packet(&self, packet: PacketRef) -> Option<&Packet> {
        match packet {
            PacketRef::Current => self.occasion.current.as_ref(),
            PacketRef::Work => self.work.as_ref(),
            PacketRef::Slot(slot) => self.instance.slots[usize::from(slot)].as_ref(),
        }
    }

    /// Where a packet is or may be.
    fn place(&mut self, packet: PacketRef) -> &mut Option<Packet> {
        match packet {
            PacketRef::Current => &mut self.occasion.current,
            PacketRef::Work => &mut self.work,
            PacketRef::Slot(slot) => &mut self.instance.slots[usize::from(slot)],
        }
    }

    /// Takes a packet out of its place; if its frame was promised, it leaves. Returns whether it was there.
    pub(crate) fn remove(&mut self, packet: PacketRef) -> bool {
        let Some(found) = self.place(packet).take() else { return false };
        self.shared.stored -= usize::from(matches!(packet, PacketRef::Slot(_)));
        match self.promises.of(packet).and_then(Option::take) {
            Some(promise) => self.out.keep_promise(promise.frame, found.into_emitted(promise.link).0),
            None => self.recycle(packet, found),
        }
        true
    }

    /// A packet is not needed any more that was in this place, or was to come there.
    fn recycle(&mut self, place: PacketRef, packet: Packet) {
        match place {
            PacketRef::Slot(_) => self.shared.storage.give_back(packet.into_buffer()),
            PacketRef::Current | PacketRef::Work => self.out.recycle(packet.into_buffer()),
        }
    }

    /// Puts a packet into a place. A slot that is empty needs one among all stored packets (rule L3).
    fn put(&mut self, place: PacketRef, packet: Packet) {
        self.remove(place);
        if matches!(place, PacketRef::Slot(_)) {
            if !self.shared.limits.has_buffer(self.shared.stored) {
                self.recycle(place, packet);
                return self.count(DropReason::NoBuffer);
            }
            self.shared.stored += 1;
        }
        *self.place(place) = Some(packet);
    }

    /// A packet is about to change: what was promised of it leaves as it is.
    fn part(&mut self, packet: PacketRef) {
        let Some(promise) = self.promises.of(packet).and_then(Option::take) else { return };
        let mut frame = self.out.buffer(self.packet(packet).map_or(0, |packet| packet.emitted_length(promise.link)));
        if let Some(packet) = self.packet(packet) {
            packet.emit(promise.link, &mut frame);
        }
        self.out.keep_promise(promise.frame, frame);
    }

    /// The event is over.
    pub(crate) fn let_go(&mut self) {
        self.remove(PacketRef::Current);
        self.remove(PacketRef::Work);
    }

    /// Changes a packet, and counts why that was not possible (rules P11, P21 and P23).
    pub fn change(&mut self, packet: PacketRef, change: impl FnOnce(&mut Packet) -> Result<(), DropReason>) {
        self.part(packet);
        let result = self.place(packet).as_mut().map_or(Err(DropReason::NoPacket), change);
        if let Err(reason) = result {
            self.count(reason);
        }
    }

    /// The payload of a packet is about to become so long: a stored one moves to where it finds room. Others have it.
    pub fn make_room(&mut self, packet: PacketRef, payload: usize) {
        let PacketRef::Slot(slot) = packet else { return };
        let Some(found) = &mut self.instance.slots[usize::from(slot)] else { return };
        if let Some(length) = found.wants_room(payload) {
            let larger = found.copy_into(self.shared.storage.take(length));
            let left = std::mem::replace(found, larger);
            self.shared.storage.give_back(left.into_buffer());
        }
    }

    /// Rule P25.
    pub fn copy(&mut self, from: PacketRef, to: PacketRef) {
        let Some(length) = self.packet(from).map(Packet::frame_length) else {
            return self.count(DropReason::NoPacket);
        };
        // A stored packet takes no more memory than it needs, and none that frames are received into.
        let buffer = match to {
            PacketRef::Slot(_) => self.shared.storage.take(length),
            PacketRef::Current | PacketRef::Work => self.out.buffer(length),
        };
        if let Some(copy) = self.packet(from).map(|packet| packet.copy_into(buffer)) {
            self.put(to, copy);
        }
    }

    /// A copy of a packet, in a buffer of the outbox.
    pub(crate) fn duplicate(&mut self, packet: PacketRef) -> Option<Packet> {
        let length = self.packet(packet)?.frame_length();
        let buffer = self.out.buffer(length);
        self.packet(packet).map(|packet| packet.copy_into(buffer))
    }

    /// Rule P22.
    pub fn build(&mut self, template: u16, wanted: &[i64], to: PacketRef) {
        let Some(endpoints) = self.instance.endpoints else { return self.count(DropReason::NoPacket) };
        let mut packet = self.program.build(template, wanted, &endpoints, self.out);
        if matches!(to, PacketRef::Slot(_)) {
            packet = self.shared.store(packet, self.out);
        }
        self.put(to, packet);
    }

    /// Empties a slot (rule P23).
    pub fn discard(&mut self, packet: PacketRef) {
        if !self.remove(packet) {
            self.count(DropReason::NoPacket);
        }
    }

    /// Rule P27.
    pub fn port_mtu(&self, port: i64) -> i64 {
        let port = u16::try_from(port).ok().map(Port);
        port.and_then(|port| self.shared.ports.mtu(port)).map_or(0, i64::from)
    }

    /// Rule P16.
    pub fn send(&mut self, packet: PacketRef, port: i64) {
        let Some(found) = self.packet(packet) else { return self.count(DropReason::NoPacket) };
        let port = u16::try_from(port).ok().map(Port);
        let link = port.and_then(|port| self.shared.ports.link(port)).filter(|link| self.program.fits(found, *link));
        let (Some(port), Some(link)) = (port, link) else { return self.count(DropReason::NoPort) };
        let promised = self.promises.of(packet).and_then(|promise| *promise);
        // Sent before and not changed since: the same frame goes by this port too.
        let again = promised.filter(|promise| promise.link == link);
        if again.is_none() {
            self.part(packet);
        }
        let Some(found) = self.place(packet) else { return };
        found.finish();
        let (length, offload) = (found.emitted_length(link), found.offload());
        if let Err(reason) = self.shared.limits.frame(length) {
            return self.count(reason);
        }
        if !self.may_put_out(length) {
            return;
        }
        self.shared.counts.frames_out += 1;
        self.instance.counts.packets_out += 1;
        if let Some(promise) = again {
            return self.out.send_again(self.at, port, promise.frame, length, offload);
        }
        let frame = self.out.promise(self.at, port, length, offload);
        match self.promises.of(packet) {
            Some(promise) => *promise = Some(Promise { frame, link }),
            None => {
                let mut buffer = self.out.buffer(length);
                if let Some(found) = self.packet(packet) {
                    found.emit(link, &mut buffer);
                }
                self.out.keep_promise(frame, buffer);
            }
        }
    }

    /// Rule E17.
    pub(crate) fn may_put_out(&mut self, bytes: usize) -> bool {
        let allowed = self.put_out + bytes <= MOST_OUTPUT;
        if allowed {
            self.put_out += bytes;
        } else {
            self.count(DropReason::TooMuchOutput);
        }
        allowed
    }
}
