//! What functions put out, and the memory it lies in.

use crate::buffer::{Buffer, Pool};
use crate::control::Answer;
use crate::flow::{Endpoints, FlowId};
use crate::port::{Frame, Offload, Port};
use crate::time::Time;
use crate::trace::TraceRecord;
use std::any::Any;
use std::ops::Range;

/// An outbox is full with so many bytes of frames and payload: as many as one event may put out (semantics, rule E17).
pub const BOUND_BYTES: usize = 16 << 20;
/// An output counts as so many bytes more than it has, so that an outbox is also full with many that have none.
const OUTPUT_BYTES: usize = 1_024;

/// One thing a function wants done or known, in the order it asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// Send a frame. A frame for several ports is an output for each, with the same bytes: they lie there once.
    Send {
        /// The event's time.
        at: Time,
        /// Out of this port.
        port: Port,
        /// The frame; see [`Outbox::bytes`].
        bytes: Bytes,
        /// What the sender's platform still has to do on it.
        offload: Offload,
    },
    /// Bytes for the application on `flow`, in order.
    Deliver {
        /// The flow.
        flow: FlowId,
        /// The bytes; see [`Outbox::bytes`].
        bytes: Bytes,
    },
    /// The flow has room again for bytes of the application.
    Released {
        /// The flow.
        flow: FlowId,
        /// Bytes released.
        length: usize,
    },
    /// A notice to the application.
    Notify {
        /// The event's time.
        at: Time,
        /// The flow.
        flow: FlowId,
        /// The notice's number; [`crate::inspect::Inspect::notice_name`] knows its name.
        notice: u16,
        /// Its value.
        value: i64,
    },
    /// A flow has come to be that the application has not asked for: by a packet.
    Opened {
        /// The flow.
        flow: FlowId,
        /// Its ends, if its packets have a transport header.
        endpoints: Option<Endpoints>,
    },
    /// The flow's instance is gone; its id will not come again.
    Ended {
        /// The flow.
        flow: FlowId,
    },
    /// What became of a command.
    Answered(Box<Answer>),
    /// One event's record; only while tracing is on.
    Trace(Box<TraceRecord>),
}

/// Where the bytes of an output lie within its outbox; by default there are none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Bytes(Place);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Frame(FrameNumber),
    Delivered(Range<usize>),
}

impl Default for Place {
    fn default() -> Place {
        Place::Delivered(0..0)
    }
}

/// A frame of an outbox, to be sent by another port too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameNumber(u32);

/// Where a function puts its outputs, and where it gets memory for them. Reused from call to call: no allocation once warm.
///
/// A function stops between two events when the outbox [is full](Outbox::is_full); the platform then does what is in it,
/// clears it and calls again. What was put in does not change any more.
#[derive(Debug)]
pub struct Outbox {
    items: Vec<Output>,
    frames: Vec<Buffer>,
    delivered: Vec<u8>,
    /// Bytes of frames and deliveries, and [`OUTPUT_BYTES`] for each output.
    put_out: usize,
    bound: usize,
    /// Outputs before those that are in it now.
    earlier: u64,
    pool: Pool,
    leftovers: Vec<Box<dyn Any + Send>>,
    tracing: bool,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            items: Vec::new(),
            frames: Vec::new(),
            delivered: Vec::new(),
            put_out: 0,
            bound: BOUND_BYTES,
            earlier: 0,
            pool: Pool::default(),
            leftovers: Vec::new(),
            tracing: false,
        }
    }
}

impl Outbox {
    /// An empty outbox; tracing is off.
    pub fn new() -> Outbox {
        Outbox::default()
    }

    /// An empty outbox that asks functions for trace records.
    pub fn tracing() -> Outbox {
        Outbox { tracing: true, ..Outbox::default() }
    }

    /// The same outbox, full with other than [`BOUND_BYTES`]; with `usize::MAX` it never is.
    #[must_use]
    pub fn bounded(self, bytes: usize) -> Outbox {
        Outbox { bound: bytes, ..self }
    }

    /// The same outbox, with the memory for all that it may hold until it is full, so that none is asked for later, however
    /// many outputs come at once.
    #[must_use]
    pub fn reserved(mut self) -> Outbox {
        let bytes = self.bound.min(BOUND_BYTES);
        let outputs = bytes / OUTPUT_BYTES;
        self.items.reserve_exact(outputs);
        self.frames.reserve_exact(outputs);
        self.delivered.reserve_exact(bytes);
        self
    }

    /// Outputs that there is memory for.
    pub fn capacity(&self) -> usize {
        self.items.capacity()
    }

    /// Makes it full with so many bytes from now on.
    pub fn set_bound(&mut self, bytes: usize) {
        self.bound = bytes;
    }

    /// Whether functions should make trace records.
    pub fn wants_trace(&self) -> bool {
        self.tracing
    }

    /// Turns trace records on or off from now on.
    pub fn set_tracing(&mut self, on: bool) {
        self.tracing = on;
    }

    /// Whether functions should stop before the next event until this is cleared.
    pub fn is_full(&self) -> bool {
        self.put_out >= self.bound
    }

    /// Bytes until it is full; see [`Outbox::bounded`].
    pub fn room(&self) -> usize {
        self.bound.saturating_sub(self.put_out)
    }

    /// The outputs, oldest first.
    pub fn items(&self) -> &[Output] {
        &self.items
    }

    /// The serial number of the first of [`Outbox::items`], counted over the life of the outbox; those of the others
    /// follow it. It orders frames of all ports, deliveries and notices.
    pub fn first_serial(&self) -> u64 {
        self.earlier
    }

    /// The bytes of an output.
    pub fn bytes(&self, bytes: &Bytes) -> &[u8] {
        match &bytes.0 {
            Place::Frame(number) => &self.frames[number.0 as usize],
            Place::Delivered(range) => &self.delivered[range.clone()],
        }
    }

    /// Forgets all outputs and keeps the memory.
    pub fn clear(&mut self) {
        self.earlier += self.items.len() as u64;
        for frame in self.frames.drain(..) {
            self.pool.give_back(frame);
        }
        self.delivered.clear();
        self.items.clear();
        self.leftovers.clear();
        self.put_out = 0;
    }

    /// Where its buffers come from: a platform receives into those of the same pool.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// An empty buffer for a frame of so many bytes.
    pub fn buffer(&mut self, length: usize) -> Buffer {
        self.pool.take(length)
    }

    /// A buffer with this frame's bytes.
    pub fn buffer_with(&mut self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.pool.take(bytes.len());
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Takes back a buffer whose frame is not sent.
    pub fn recycle(&mut self, buffer: Buffer) {
        self.pool.give_back(buffer);
    }

    /// Asks for a copy of a frame to be sent.
    pub fn send(&mut self, at: Time, port: Port, bytes: &[u8], offload: Offload) -> FrameNumber {
        let buffer = self.buffer_with(bytes);
        self.send_buffer(at, port, buffer, offload)
    }

    /// Asks for a frame to be sent.
    pub fn send_buffer(&mut self, at: Time, port: Port, frame: Buffer, offload: Offload) -> FrameNumber {
        let number = self.promise(at, port, frame.len(), offload);
        self.keep_promise(number, frame);
        number
    }

    /// Asks for a frame of `length` bytes to be sent by one more port.
    pub fn send_again(&mut self, at: Time, port: Port, frame: FrameNumber, length: usize, offload: Offload) {
        self.put_out += length;
        self.push(Output::Send { at, port, bytes: Bytes(Place::Frame(frame)), offload });
    }

    /// Asks for a frame of `length` bytes to be sent that is still being worked on. [`Outbox::keep_promise`] must bring it
    /// before the function returns.
    pub fn promise(&mut self, at: Time, port: Port, length: usize, offload: Offload) -> FrameNumber {
        let number = FrameNumber(self.frames.len() as u32);
        self.frames.push(Buffer::default());
        self.put_out += length;
        self.push(Output::Send { at, port, bytes: Bytes(Place::Frame(number)), offload });
        number
    }

    /// Brings a frame that was promised.
    pub fn keep_promise(&mut self, number: FrameNumber, frame: Buffer) {
        self.frames[number.0 as usize] = frame;
    }

    /// Hands bytes to the application.
    pub fn deliver(&mut self, flow: FlowId, bytes: &[u8]) {
        let start = self.delivered.len();
        self.delivered.extend_from_slice(bytes);
        self.put_out += bytes.len();
        self.push(Output::Deliver { flow, bytes: Bytes(Place::Delivered(start..start + bytes.len())) });
    }

    /// Answers a command. `leftover` is what it replaced, which takes long to free: the platform does that elsewhere.
    pub fn answer(&mut self, answer: Answer, leftover: Option<Box<dyn Any + Send>>) {
        self.push(Output::Answered(Box::new(answer)));
        self.leftovers.extend(leftover);
    }

    /// What commands have replaced, to be freed where nobody waits.
    pub fn take_leftovers(&mut self) -> Vec<Box<dyn Any + Send>> {
        std::mem::take(&mut self.leftovers)
    }

    /// Any other output.
    pub fn push(&mut self, item: Output) {
        self.put_out += OUTPUT_BYTES;
        self.items.push(item);
    }

    /// Does `work` as if there were no bound: for what must be done at once.
    pub fn unbounded<R>(&mut self, work: impl FnOnce(&mut Outbox) -> R) -> R {
        let bound = std::mem::replace(&mut self.bound, usize::MAX);
        let result = work(self);
        self.bound = bound;
        result
    }

    /// Changes the outputs that came after the first `from`, or takes them out: those for which `change` says no. So a
    /// function that has another one inside it lets that one write into the same outbox.
    pub fn rewrite(&mut self, from: usize, mut change: impl FnMut(&mut Output) -> bool) {
        let mut kept = from;
        for at in from..self.items.len() {
            if change(&mut self.items[at]) {
                self.items.swap(kept, at);
                kept += 1;
            }
        }
        self.items.truncate(kept);
    }
}

/// The frame of an output, as a port is to send it.
pub fn sent<'a>(outbox: &'a Outbox, output: &Output) -> Option<(Port, Frame<'a>)> {
    match output {
        Output::Send { port, bytes, offload, .. } => {
            Some((*port, Frame { bytes: outbox.bytes(bytes), offload: *offload }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reserved_suffices_until_it_is_full() {
        let mut out = Outbox::new().bounded(1 << 20).reserved();
        let places = |out: &Outbox| (out.items.as_ptr(), out.frames.as_ptr(), out.delivered.as_ptr(), out.capacity());
        let reserved = places(&out);
        let fills: [fn(&mut Outbox); 3] = [
            |out| _ = out.send_buffer(Time::ZERO, Port(1), Buffer::default(), Offload::default()),
            |out| out.deliver(FlowId(1), &[7; 5_000]),
            |out| out.push(Output::Ended { flow: FlowId(1) }),
        ];
        for fill in fills {
            while !out.is_full() {
                fill(&mut out);
            }
            assert_eq!(places(&out), reserved);
            out.clear();
        }
    }
}
