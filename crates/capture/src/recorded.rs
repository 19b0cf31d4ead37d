//! A function whose inputs are recorded.

use crate::inputs::{Circumstances, Digest, Input, Kind, keep_consumed, put_frames, put_input};
use weftwire_core::control::Preparation;
use weftwire_core::inspect::{Counters, FlowDetail, FlowPage, FlowSummary, Inspect};
use weftwire_core::live::Clocks;
use weftwire_core::{
    Arrivals, CallError, Change, Command, Connections, ControlError, Deadline, Endpoints, FlowId, Function, Listen,
    Outbox, Placed, Time, order,
};

/// Where records go. It never waits.
pub trait Tape {
    /// Keeps these bytes, a whole record. `false`: there is no room, and the recording ends before them.
    fn put(&mut self, record: &[u8]) -> bool;

    /// The recording is over: these bytes are its last.
    fn end(&mut self, record: &[u8]);
}

/// Passes every input to a function and keeps it. When its tape has no room any more, the recording ends with the count of
/// the inputs that came after that.
pub struct Recorded {
    function: Box<dyn Function>,
    tape: Box<dyn Tape>,
    /// The record being made; kept for its memory.
    bytes: Vec<u8>,
    frames: Vec<usize>,
    ended: bool,
    lost: u64,
}

/// Where the circumstances stand in a record: behind its length, kind and time.
const OUTBOX: usize = 4 + 1 + 8;
/// Where an input stands in a record.
const BODY: usize = OUTBOX + 8 + 1;

impl Recorded {
    /// A function whose inputs go to `tape` from now on.
    pub fn new(function: Box<dyn Function>, tape: Box<dyn Tape>) -> Recorded {
        Recorded { function, tape, bytes: Vec::new(), frames: Vec::new(), ended: false, lost: 0 }
    }

    fn begin(&mut self, out: &Outbox) {
        let Circumstances { room, tracing } = Circumstances::of(out);
        self.bytes.clear();
        self.bytes.resize(OUTBOX, 0);
        self.bytes.extend(room.to_le_bytes());
        self.bytes.push(tracing.into());
    }

    fn finish(&mut self, kind: Kind, now: Time, digest: &Digest) {
        if self.ended {
            self.lost += 1;
            return;
        }
        self.bytes.extend(digest.value().to_le_bytes());
        let length = (self.bytes.len() - 4) as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4] = kind as u8;
        self.bytes[5..OUTBOX].copy_from_slice(&now.nanoseconds().to_le_bytes());
        self.ended = !self.tape.put(&self.bytes);
        self.lost += u64::from(self.ended);
    }

    /// An input that is written before it is handed in.
    fn input<R>(
        &mut self,
        now: Time,
        input: &Input,
        out: &mut Outbox,
        hand_in: impl FnOnce(&mut dyn Function, &mut Outbox, &mut Digest) -> R,
    ) -> R {
        self.begin(out);
        let kind = put_input(&mut self.bytes, input);
        let (start, mut digest) = (out.items().len(), Digest::default());
        let result = hand_in(self.function.as_mut(), out, &mut digest);
        digest.outputs(out, start);
        self.finish(kind, now, &digest);
        result
    }

    fn call<R: Copy>(
        &mut self,
        now: Time,
        input: &Input,
        out: &mut Outbox,
        value: impl FnOnce(R) -> u64,
        call: impl FnOnce(&mut dyn Connections, &mut Outbox) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        self.input(now, input, out, |function, out, digest| {
            let result = function.connections().ok_or(CallError::NoConnections).and_then(|inner| call(inner, out));
            digest.call(&result.clone().map(value));
            result
        })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let mut end = vec![9, 0, 0, 0, Kind::End as u8];
        end.extend(self.lost.to_le_bytes());
        self.tape.end(&end);
    }
}

impl Function for Recorded {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        self.begin(out);
        put_frames(&mut self.bytes, arrivals.iter(), &mut self.frames);
        let (start, offered) = (out.items().len(), arrivals.len());
        self.function.frames(now, arrivals, out);
        keep_consumed(&mut self.bytes, BODY, &self.frames, offered - arrivals.len());
        let mut digest = Digest::default();
        digest.outputs(out, start);
        self.finish(Kind::Frames, now, &digest);
    }

    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        let input = Input::Control(command.number, command.change.clone());
        self.input(now, &input, out, |function, out, _| function.control(now, command, out));
    }

    fn preparation(&self, change: &Change) -> Option<Preparation> {
        self.function.preparation(change)
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        self.input(now, &Input::Fire, out, |function, out, _| function.fire(now, out));
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.function.next_deadline()
    }

    fn input_time(&self, input: order::Input, now: Time) -> Time {
        self.function.input_time(input, now)
    }

    fn place(&self, input: &Placed<'_>) -> Option<u64> {
        self.function.place(input)
    }

    fn connections(&mut self) -> Option<&mut dyn Connections> {
        self.function.connections()?;
        Some(self)
    }
}

impl Connections for Recorded {
    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        let input = Input::Connect(*endpoints);
        self.call(now, &input, out, |flow: FlowId| flow.0, |inner, out| inner.connect(now, endpoints, out))
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        let input = Input::Write(flow, bytes.to_vec());
        self.call(now, &input, out, |accepted: usize| accepted as u64, |inner, out| inner.write(now, flow, bytes, out))
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, &Input::Close(flow), out, |()| 0, |inner, out| inner.close(now, flow, out))
    }

    fn abort(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, &Input::Abort(flow), out, |()| 0, |inner, out| inner.abort(now, flow, out))
    }

    fn listen(&mut self, now: Time, local: &Listen, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, &Input::Listen(*local), out, |()| 0, |inner, out| inner.listen(now, local, out))
    }

    fn unlisten(&mut self, now: Time, local: &Listen, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, &Input::Unlisten(*local), out, |()| 0, |inner, out| inner.unlisten(now, local, out))
    }

    fn accept(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, &Input::Accept(flow), out, |()| 0, |inner, out| inner.accept(now, flow, out))
    }

    fn consumed(&mut self, now: Time, flow: FlowId, length: usize, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, &Input::Consumed(flow, length), out, |()| 0, |inner, out| inner.consumed(now, flow, length, out))
    }
}

impl Inspect for Recorded {
    fn flows(&self) -> Vec<FlowSummary> {
        self.function.flows()
    }

    fn flows_after(&self, after: FlowId, most: usize) -> FlowPage {
        self.function.flows_after(after, most)
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        self.function.flow(flow)
    }

    fn notice_name(&self, notice: u16) -> &str {
        self.function.notice_name(notice)
    }

    fn snapshot(&self, flow: FlowId, clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        self.function.snapshot(flow, clocks)
    }

    fn whole(&self, clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        self.function.whole(clocks)
    }

    fn program(&self) -> Option<String> {
        self.function.program()
    }

    fn counters(&self) -> Counters {
        self.function.counters()
    }
}
