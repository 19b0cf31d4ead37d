//! Repeats a run from a recording of its inputs, and compares what comes out.

use std::any::Any;
use std::io::Read;
use std::ops::ControlFlow;
use weftwire_capture::inputs::{Digest, Input, Record, RecordingError, RecordingReader};
use weftwire_core::{Arrivals, CallError, Change, Command, Connections, Function, Outbox, Time};

/// How many inputs pass between two calls of the progress callback.
const PROGRESS_STEP: u64 = 4096;

/// How a repetition ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repeated {
    /// Inputs that were handed in.
    pub inputs: u64,
    /// The function's time at the last of them.
    pub end: Time,
    /// What came out.
    pub outputs: u64,
    /// Inputs of the run that were not recorded, as the recording ended before them.
    pub not_recorded: u64,
    /// The first input at which something else came out than in the run: its number from 0, and what it was.
    pub difference: Option<(u64, String)>,
    /// The progress callback asked to stop.
    pub interrupted: bool,
}

/// Makes ready what a change of the run came with. `None`: nothing, or it can't be made.
pub type Prepare<'a> = dyn FnMut(&Change) -> Option<Box<dyn Any + Send>> + 'a;

/// Hands the inputs of a recording to a function that was made as that of the run was: same image or rules, ports, seed and
/// key. Ends at the first difference.
///
/// # Errors
/// The recording can't be read.
pub fn repeat<R: Read>(
    function: &mut dyn Function,
    recording: &mut RecordingReader<R>,
    prepare: &mut Prepare<'_>,
    progress: &mut dyn FnMut(u64, Time) -> ControlFlow<()>,
) -> Result<Repeated, RecordingError> {
    let mut out = Outbox::new();
    let mut repeated = Repeated::default();
    loop {
        let (now, outbox, input, recorded) = match recording.next_record()? {
            Record::Input { now, outbox, input, digest } => (now, outbox, input, digest),
            Record::End(lost) => {
                repeated.not_recorded = lost;
                return Ok(repeated);
            }
        };
        let text = describe(now, &input);
        let mut digest = Digest::default();
        outbox.recreate(&mut out);
        let whole = hand_in(function, now, input, prepare, &mut out, &mut digest);
        digest.outputs(&out, 0);
        repeated.outputs += out.items().len() as u64;
        out.clear();
        if !whole || digest.value() != recorded {
            repeated.difference = Some((repeated.inputs, text));
            return Ok(repeated);
        }
        repeated.inputs += 1;
        repeated.end = now;
        if repeated.inputs.is_multiple_of(PROGRESS_STEP) && progress(repeated.inputs, now).is_break() {
            repeated.interrupted = true;
            return Ok(repeated);
        }
    }
}

/// Returns whether the function took all of it, as in the run.
fn hand_in(
    function: &mut dyn Function,
    now: Time,
    input: Input,
    prepare: &mut Prepare<'_>,
    out: &mut Outbox,
    digest: &mut Digest,
) -> bool {
    let mut call = |call: &mut dyn FnMut(&mut dyn Connections) -> Result<u64, CallError>| {
        let result = function.connections().ok_or(CallError::NoConnections).and_then(call);
        digest.call(&result);
    };
    match input {
        Input::Frames(frames) => {
            let mut arrivals = Arrivals::from(frames);
            function.frames(now, &mut arrivals, out);
            return arrivals.is_empty();
        }
        Input::Fire => function.fire(now, out),
        Input::Control(number, change) => {
            let command = match prepare(&change) {
                Some(prepared) => Command::prepared(number, change, prepared),
                None => Command::new(number, change),
            };
            function.control(now, command, out);
        }
        Input::Connect(ends) => call(&mut |inner| inner.connect(now, &ends, out).map(|flow| flow.0)),
        Input::Write(flow, bytes) => call(&mut |inner| inner.write(now, flow, &bytes, out).map(|count| count as u64)),
        Input::Close(flow) => call(&mut |inner| inner.close(now, flow, out).map(|()| 0)),
        Input::Abort(flow) => call(&mut |inner| inner.abort(now, flow, out).map(|()| 0)),
        Input::Listen(local) => call(&mut |inner| inner.listen(now, &local, out).map(|()| 0)),
        Input::Unlisten(local) => call(&mut |inner| inner.unlisten(now, &local, out).map(|()| 0)),
        Input::Accept(flow) => call(&mut |inner| inner.accept(now, flow, out).map(|()| 0)),
        Input::Consumed(flow, length) => call(&mut |inner| inner.consumed(now, flow, length, out).map(|()| 0)),
    }
    true
}

fn describe(now: Time, input: &Input) -> String {
    let what = match input {
        Input::Frames(frames) => format!("{} frames", frames.len()),
        Input::Fire => "what was due".into(),
        Input::Control(number, change) => format!("command {number}, which changes {}", change.subject()),
        Input::Connect(ends) => format!("connect to {} port {}", ends.remote_address, ends.remote_port),
        Input::Write(flow, bytes) => format!("{} bytes written on flow {flow}", bytes.len()),
        Input::Close(flow) => format!("close of flow {flow}"),
        Input::Abort(flow) => format!("abort of flow {flow}"),
        Input::Listen(_) => "a call to listen".into(),
        Input::Unlisten(_) => "a call to listen no more".into(),
        Input::Accept(flow) => format!("accept of flow {flow}"),
        Input::Consumed(flow, length) => format!("{length} bytes read on flow {flow}"),
    };
    format!("{what} at {now} s")
}
