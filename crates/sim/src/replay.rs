//! Drives a function in virtual time from captures: no clock, no waiting, the same outputs for the same inputs.
//!
//! The order is that of `docs/semantics.md`, section 4.1: inputs by time; at one instant first connects, then packets by
//! port number, then by their order in the capture; then the timers due at that instant. The function's time starts at
//! 0 with the first packet of all captures; the [`Sink`] gets the captures' own times.

use crate::spec::Connect;
use std::ops::ControlFlow;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{
    Arrival, Arrivals, CallError, Connections, FlowId, Frame, Function, LinkType, Offload, Outbox, Output, Port, Time,
};

/// How long after the last input timers may go on when no end is given.
pub const GRACE: i64 = 10_000_000_000;

/// How many events pass between two calls of the progress callback.
const PROGRESS_STEP: u64 = 4096;

/// A captured frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Its time stamp, of the capture's own epoch.
    pub time: Time,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What was left undone on it.
    pub offload: Offload,
}

impl Captured {
    fn frame(&self) -> Frame<'_> {
        Frame { bytes: &self.bytes, offload: self.offload }
    }
}

/// What arrives at a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// The port.
    pub port: Port,
    /// What its frames begin with.
    pub link: LinkType,
    /// The frames in the order of the file.
    pub frames: Vec<Captured>,
}

/// What to replay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The ports' inputs.
    pub inputs: Vec<Input>,
    /// Connections the application opens.
    pub connects: Vec<Connect>,
    /// What the application sends on the first of them; then it closes.
    pub send: Option<Vec<u8>>,
    /// When the replay ends, after the start, inclusive. `None`: when nothing is left to do, at most
    /// [`GRACE`] after the last input.
    pub until: Option<Time>,
}

/// Where the outputs go. Times are the captures' own.
pub trait Sink {
    /// A frame arrives, before the function sees it.
    ///
    /// # Errors
    /// Whatever the outputs' medium says; it ends the replay.
    fn arrival(&mut self, at: Time, port: Port, frame: &Frame<'_>) -> std::io::Result<()>;

    /// The function sends a frame.
    ///
    /// # Errors
    /// As for [`Sink::arrival`].
    fn departure(&mut self, at: Time, port: Port, bytes: &[u8], offload: Offload) -> std::io::Result<()>;

    /// Bytes for the application.
    ///
    /// # Errors
    /// As for [`Sink::arrival`].
    fn deliver(&mut self, flow: FlowId, bytes: &[u8]) -> std::io::Result<()>;

    /// A notice to the application.
    ///
    /// # Errors
    /// As for [`Sink::arrival`].
    fn notice(&mut self, at: Time, flow: FlowId, name: &str, value: i64) -> std::io::Result<()>;

    /// A trace record; its time is that of the function.
    ///
    /// # Errors
    /// As for [`Sink::arrival`].
    fn trace(&mut self, record: &TraceRecord) -> std::io::Result<()>;
}

/// How far a replay is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Inputs handed in.
    pub done: usize,
    /// All inputs.
    pub total: usize,
    /// Virtual time since the start.
    pub now: Time,
}

/// How a replay ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The captures' time of the replay's start.
    pub base: Time,
    /// Virtual time at the end: of the last thing that happened, or the limit that was reached.
    pub end: Time,
    /// Why it ended.
    pub stop: Stop,
    /// Inputs not handed in, as they came after the end.
    pub left_out: usize,
    /// Bytes of the application accepted by the function.
    pub sent: usize,
    /// Things that went wrong: refused calls, zero-time loops.
    pub errors: Vec<String>,
}

/// Why a replay ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stop {
    /// No input and no deadline was left.
    #[default]
    Finished,
    /// The time given was reached with things left to do.
    Until,
    /// [`GRACE`] after the last input something (a timer, a flow's expiry, a sample) was still to come.
    Grace,
    /// The progress callback asked to stop.
    Interrupted,
}

/// Replays `plan` into `function`. `progress` is called now and then and may stop the replay.
///
/// # Errors
/// Those of the sink. What goes wrong in the function is in [`Summary::errors`].
pub fn replay(
    function: &mut dyn Function,
    plan: &Plan,
    sink: &mut dyn Sink,
    tracing: bool,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::io::Result<Summary> {
    let base = base(plan);
    let arrivals = arrivals(plan, base);
    let last_input = arrivals.last().map_or(Time::ZERO, |arrival| arrival.at);
    let limit = plan.until.unwrap_or_else(|| last_input.after(GRACE));
    let outbox = if tracing { Outbox::tracing() } else { Outbox::new() };
    let mut run = Run {
        function,
        sink,
        outbox,
        base,
        now: Time::ZERO,
        application: plan.send.as_deref().map(|data| Application { data, flow: None, room: false }),
        summary: Summary { base, ..Summary::default() },
    };

    let mut next = 0;
    let mut steps: u64 = 0;
    loop {
        steps += 1;
        if steps.is_multiple_of(PROGRESS_STEP)
            && progress(Progress { done: next, total: arrivals.len(), now: run.now }).is_break()
        {
            run.summary.stop = Stop::Interrupted;
            break;
        }
        let arrival = arrivals.get(next);
        let deadline = run.function.next_deadline().map(|deadline| deadline.at.max(run.now));
        let Some(at) = arrival.map(|arrival| arrival.at).into_iter().chain(deadline).min() else { break };
        if at > limit {
            run.summary.stop = if plan.until.is_some() { Stop::Until } else { Stop::Grace };
            run.now = run.now.max(limit);
            break;
        }
        run.now = at;
        match arrival.filter(|arrival| arrival.at == at) {
            Some(arrival) => {
                next += 1;
                run.input(arrival.what, arrival.first)?;
            }
            None => {
                run.function.fire(at, &mut run.outbox);
                run.drain()?;
            }
        }
    }
    run.summary.left_out = arrivals.len() - next;
    Ok(run.finish())
}

/// The captures' first time stamp; 0 without one.
fn base(plan: &Plan) -> Time {
    plan.inputs.iter().flat_map(|input| input.frames.iter().map(|frame| frame.time)).min().unwrap_or(Time::ZERO)
}

/// An input at its instant.
struct Scheduled<'a> {
    at: Time,
    what: What<'a>,
    /// The first connect: its flow is the one that sends.
    first: bool,
}

#[derive(Clone, Copy)]
enum What<'a> {
    Connect(&'a Connect),
    Frame(Port, &'a Captured),
}

/// All inputs in order: the sort is stable, so what is handed in first stays first among equals.
fn arrivals<'a>(plan: &'a Plan, base: Time) -> Vec<Scheduled<'a>> {
    let mut inputs: Vec<&Input> = plan.inputs.iter().collect();
    inputs.sort_by_key(|input| input.port);
    let connects = plan.connects.iter().enumerate().map(|(index, connect)| Scheduled {
        at: connect.at,
        what: What::Connect(connect),
        first: index == 0,
    });
    let frames = inputs.into_iter().flat_map(|input| {
        input.frames.iter().map(|frame| Scheduled {
            at: Time::from_nanoseconds(frame.time.since(base)),
            what: What::Frame(input.port, frame),
            first: false,
        })
    });
    let mut arrivals: Vec<Scheduled<'a>> = connects.chain(frames).collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

/// The application's sending side.
struct Application<'a> {
    /// What is not yet accepted.
    data: &'a [u8],
    /// Its flow, from the connect until everything is sent or the flow is gone.
    flow: Option<FlowId>,
    /// The function told of room since the last write.
    room: bool,
}

struct Run<'a> {
    function: &'a mut dyn Function,
    sink: &'a mut dyn Sink,
    outbox: Outbox,
    base: Time,
    now: Time,
    application: Option<Application<'a>>,
    summary: Summary,
}

impl Run<'_> {
    fn input(&mut self, what: What<'_>, first: bool) -> std::io::Result<()> {
        match what {
            What::Frame(port, captured) => {
                let frame = captured.frame();
                self.sink.arrival(self.absolute(self.now), port, &frame)?;
                let mut arrivals = Arrivals::from([Arrival::copied(port, frame, &mut self.outbox)]);
                loop {
                    self.function.frames(self.now, &mut arrivals, &mut self.outbox);
                    if arrivals.is_empty() {
                        break;
                    }
                    self.drain()?;
                }
            }
            What::Connect(connect) => match self.connect(connect) {
                Ok(flow) => {
                    if let Some(application) = self.application.as_mut().filter(|_| first) {
                        application.flow = Some(flow);
                        application.room = true;
                    }
                }
                Err(error) => self.summary.errors.push(format!("connect {connect} at {}: {error}", self.now)),
            },
        }
        self.drain()
    }

    fn connections(&mut self) -> Result<(&mut dyn Connections, &mut Outbox), CallError> {
        let connections = self.function.connections().ok_or(CallError::NoConnections)?;
        Ok((connections, &mut self.outbox))
    }

    fn connect(&mut self, connect: &Connect) -> Result<FlowId, CallError> {
        let now = self.now;
        let (function, out) = self.connections()?;
        function.connect(now, &connect.endpoints, out)
    }

    /// Hands out what the function asked for, and lets the application send when there is room.
    fn drain(&mut self) -> std::io::Result<()> {
        loop {
            let items = std::mem::take(&mut self.outbox);
            for item in items.items() {
                self.output(&items, item)?;
            }
            // The outbox goes back with its memory.
            self.outbox = items;
            self.outbox.clear();
            if !self.send() {
                return Ok(());
            }
        }
    }

    fn output(&mut self, outbox: &Outbox, item: &Output) -> std::io::Result<()> {
        match item {
            Output::Send { at, port, bytes, offload } => {
                self.sink.departure(self.absolute(*at), *port, outbox.bytes(bytes), *offload)
            }
            Output::Deliver { flow, bytes } => self.sink.deliver(*flow, outbox.bytes(bytes)),
            Output::Notify { at, flow, notice, value } => {
                self.sink.notice(self.absolute(*at), *flow, self.function.notice_name(*notice), *value)
            }
            Output::Opened { .. } | Output::Answered(_) => Ok(()),
            Output::Trace(record) => {
                if record.kind == TraceKind::Error {
                    self.summary.errors.push(format!("flow {} at {}: {}", record.flow, record.time, record.event));
                }
                self.sink.trace(record)
            }
            Output::Released { flow, .. } => {
                if let Some(application) = self.application.as_mut().filter(|sender| sender.flow == Some(*flow)) {
                    application.room = true;
                }
                Ok(())
            }
            Output::Ended { flow } => {
                if let Some(application) = self.application.as_mut().filter(|sender| sender.flow == Some(*flow)) {
                    application.flow = None;
                }
                Ok(())
            }
        }
    }

    /// One write, and the close behind the last one. Whether anything was called.
    fn send(&mut self) -> bool {
        let Some(application) = &mut self.application else { return false };
        let Some(flow) = application.flow.filter(|_| std::mem::take(&mut application.room)) else { return false };
        let (now, out) = (self.now, &mut self.outbox);
        let connections = self.function.connections().ok_or(CallError::NoConnections);
        let closed = connections.and_then(|function| {
            let accepted = match application.data.is_empty() {
                true => 0,
                false => function.write(now, flow, application.data, out)?,
            };
            self.summary.sent += accepted;
            application.data = &application.data[accepted.min(application.data.len())..];
            if application.data.is_empty() {
                application.flow = None;
                function.close(now, flow, out)?;
            }
            Ok(())
        });
        if let Err(error) = closed {
            application.flow = None;
            self.summary.errors.push(format!("sending on flow {flow} at {}: {error}", self.now));
        }
        true
    }

    fn absolute(&self, at: Time) -> Time {
        self.base.after(at.nanoseconds())
    }

    fn finish(mut self) -> Summary {
        self.summary.end = self.now;
        let left = self.application.map_or(0, |application| application.data.len());
        if left > 0 {
            self.summary.errors.push(format!("{left} bytes of the application were not sent"));
        }
        let loops = self.function.counters().drops.get("zero_time_loop").copied().unwrap_or(0);
        if loops > 0 {
            self.summary.errors.push(format!("{loops} flows were deleted because of a zero-time loop"));
        }
        self.summary
    }
}
