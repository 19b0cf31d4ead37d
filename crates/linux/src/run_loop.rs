//! The run loop: one thread that moves frames, time and the application's bytes between the world and a function.
//!
//! Each turn reads the clock once, takes one batch of every port, runs what is due, lets the application
//! work, and sends what the function put into its outbox. A turn that is late for a deadline first takes all that waits at the ports, and
//! hands it in at the time of that deadline: what came before the process could run is no later than the timers that could not run either. When a turn finds nothing to do, the loop waits by `ppoll`
//! until the next deadline; with [`RunOptions::spin`] it never waits. Waiting is as exact as [`RunOptions::precision`] says: a policy that
//! spins wakes up early, looks at the ports until shortly before the deadline, and then at nothing but the clock.
//!
//! The function's time is 0 at its first input, a connection or a frame, as in a replay: so a capture of the run, replayed,
//! gives the same values of `now`. The time of a function that begins with the state of another run goes on instead.

use crate::application::{Application, Calls};
use crate::commands::CommandQueue;
use crate::control::{Condition, ControlServer, MAX_PAGE, PortStatus};
use crate::control_server::Asked;
use crate::error::LinuxError;
use crate::link::{LinkWatch, PortLink};
use crate::messages::Messages;
use crate::pacer::{Policy, Step};
use crate::port::{BATCH, FramePort};
use crate::recorder::Recorder;
use crate::replacement::{Heard, Looked, Offer, Pause, Stopped, Succession};
use crate::report::{PortReport, Report};
use crate::signals::StopSignal;
use crate::system::{Clock, monotonic_ns, poll, poll_input};
use crate::systemd::tell_main_process;
use std::io::{self, Write};
use std::time::Duration;
use weftwire_core::control::{PortChange, carry_out, change};
use weftwire_core::live::Clocks;
use weftwire_core::order::Input;
use weftwire_core::{Arrivals, CallError, Change, Command, FlowId, Frame, Function, Outbox, Output, Port, Time};
use weftwire_text::printable;

/// How often a loop that is kept busy looks at the control socket and at interfaces, in nanoseconds; one that waits is told.
const SERVICE_INTERVAL: i64 = 1_000_000;

/// This long before a deadline, in nanoseconds, a loop that spins for it looks at nothing but the clock: about as long as a look at
/// the ports takes. A frame that comes in meanwhile waits no longer than that.
const LAST_STRETCH: i64 = 2_000;

/// Most batches of every port that a turn takes which is late for a deadline.
const CATCH_UP: usize = 64;

/// How long connections wait until ports are operational, in nanoseconds.
const OPERATIONAL: i64 = 5_000_000_000;

/// How the loop runs and when it ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Never wait: poll all ports busily. Costs a whole processor, answers within microseconds.
    pub spin: bool,
    /// How deadlines are waited for.
    pub precision: Policy,
    /// End after this time.
    pub duration: Option<Duration>,
    /// End with an error when connections are to be opened and a port is not operational; else open them all the same.
    pub needs_ports: bool,
    /// Notices of the function are not told.
    pub silent: bool,
    /// End with an error when the interface of a port is gone; else wait until it is back.
    pub exit_when_gone: bool,
    /// The function begins with the state that another run left at this time, which stood so to the machine's clocks: its time
    /// goes on from there.
    pub resumes: Option<(Time, Clocks)>,
}

/// An open port with the number by which the function knows it.
pub struct OpenPort {
    /// The function's number.
    pub port: Port,
    /// The interface's name, for reports.
    pub name: String,
    /// The port itself.
    pub device: Box<dyn FramePort>,
}

impl OpenPort {
    fn status(&mut self, link: &PortLink) -> PortStatus {
        let counters = self.device.counters();
        PortStatus {
            port: self.port,
            interface: self.name.clone(),
            condition: link.condition,
            times_gone: link.times_gone,
            frames_in: counters.frames_in,
            frames_out: counters.frames_out,
            kernel_drops: counters.kernel_drops,
            not_sent: counters.send_errors.iter().map(|(reason, count)| (reason.to_owned(), count)).collect(),
        }
    }
}

/// Everything a run needs beside the function.
pub struct Run<'a> {
    /// The ports.
    pub ports: Vec<OpenPort>,
    /// The application's side.
    pub application: &'a mut dyn Application,
    /// The run's files.
    pub recorder: Recorder,
    /// Where flows can be looked into from outside.
    pub control: Option<ControlServer>,
    /// Where other threads of the process change the function.
    pub commands: Option<CommandQueue>,
    /// States of flows that the function begins with, before it gets any frame.
    pub flows: Vec<Vec<u8>>,
    /// The run of another process, which this one takes over before it begins.
    pub succession: Option<Succession>,
    /// Ends the run.
    pub stop: StopSignal,
    /// Where notices of the function go, a line each.
    pub messages: Box<dyn Write + Send>,
    /// How to run.
    pub options: RunOptions,
}

impl Run<'_> {
    /// Runs `function` until the end: a signal, the duration, or that its application is over.
    ///
    /// # Errors
    /// A connection or a flow is refused at the start, or a port fails for good.
    pub fn run(self, function: &mut dyn Function) -> Result<Report, LinuxError> {
        let Run { mut ports, application, recorder, control, commands, flows, succession, stop, messages, options } =
            self;
        let watch = LinkWatch::open()?;
        ports.sort_by_key(|open| open.port);
        let links = ports.iter_mut().map(|open| PortLink::of(&open.name, open.device.as_mut())).collect();
        let messages = Messages::start(messages).map_err(|error| LinuxError::system("begin a run", error))?;
        let mut effects = Effects { application, recorder, control, messages, silent: options.silent, no_port: 0 };
        if options.resumes.is_some() {
            effects.recorder.start();
        }
        // All that a batch needs is there before the first one: the largest may come at any time.
        let mut outbox = Outbox::new().reserved();
        outbox.pool().reserve(BATCH);
        let departures = ports.iter().map(|_| Vec::with_capacity(outbox.capacity())).collect();
        if let Some(lender) = ports.iter().find_map(|open| open.device.lender()) {
            outbox.pool().borrow_from(lender);
        }
        let mut turns = Turns {
            function,
            ports,
            links,
            watch,
            effects,
            commands,
            clock: Clock::start(),
            function_clock: options.resumes.map(|(time, clocks)| Clock::resume(time, &clocks)),
            outbox,
            arrivals: Arrivals::with_capacity(BATCH),
            handed: Arrivals::with_capacity(BATCH),
            departures,
            descriptors: Vec::new(),
            last_busy: Time::ZERO,
            offer: None,
            replaced: false,
            pause: None,
        };
        let taken = succession.map_or(Ok(()), |succession| turns.take_over(succession));
        let ran = taken.and_then(|()| turns.adopt(flows)).and_then(|()| turns.run(&stop, &options));
        let report = turns.finish();
        ran.and(report)
    }
}

/// The running loop.
struct Turns<'a> {
    function: &'a mut dyn Function,
    ports: Vec<OpenPort>,
    /// The interfaces of the ports.
    links: Vec<PortLink>,
    watch: LinkWatch,
    effects: Effects<'a>,
    commands: Option<CommandQueue>,
    /// Time since the start of the run.
    clock: Clock,
    /// The function's time; stands at 0 before the first input.
    function_clock: Option<Clock>,
    outbox: Outbox,
    /// The batch that was taken, and what of it is being handed in; kept for their memory.
    arrivals: Arrivals,
    handed: Arrivals,
    /// What each port is to send, as places in the outbox; kept for its memory.
    departures: Vec<Vec<u32>>,
    /// What [`Turns::wait`] waits for; kept for its memory.
    descriptors: Vec<libc::pollfd>,
    /// The function's time at the last turn with an input.
    last_busy: Time,
    /// The process that is to replace this one.
    offer: Option<Offer>,
    /// It has.
    replaced: bool,
    /// How this one has replaced another, until that was told.
    pause: Option<Pause>,
}

impl Turns<'_> {
    fn run(&mut self, stop: &StopSignal, options: &RunOptions) -> Result<(), LinuxError> {
        let end = options
            .duration
            .map_or(Time::MAX, |duration| Time::ZERO.after(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)));
        let mut service_due = Time::ZERO;
        self.effects.choose_tracing(&mut self.outbox);
        let known = self.ports.iter().zip(&self.links);
        self.tell(known.flat_map(|(open, link)| link.first_changes().map(|change| (open.port, change))).collect());
        self.listen()?;
        let mut awaited = false;
        loop {
            if self.effects.application.connects() {
                if !std::mem::replace(&mut awaited, true) {
                    self.await_operational(stop, end, options)?;
                }
                self.connect()?;
            }
            // What is done below is done at this time: what has come by then was handed in.
            let looked = self.function_time();
            let mut busy = self.receive(looked)?;
            let now = self.clock.now();
            busy |= self.fire(looked);
            if busy {
                self.last_busy = looked;
                self.tell_pause(looked);
            }
            if now >= service_due {
                service_due = now.after(SERVICE_INTERVAL);
                self.serve();
                if self.hand_over() {
                    self.replaced = true;
                    return Ok(());
                }
                self.look_at_links(options)?;
            }
            busy |= self.work(looked);
            if stop.requested() || now >= end {
                self.interrupt();
                return Ok(());
            }
            if self.effects.application.is_over() {
                return Ok(());
            }
            if self.next_step(options) == Step::Spin {
                self.last_stretch();
            } else if !busy && !options.spin {
                // What only frames and the application's bytes have ended looks at nothing else: they wait for it.
                if self.wait(stop, end, options)? {
                    service_due = Time::ZERO;
                }
            }
        }
    }

    /// The function's time.
    fn function_time(&self) -> Time {
        self.function_clock.map_or(Time::ZERO, |clock| clock.now())
    }

    /// The first input starts the function's clock.
    fn start_clock(&mut self) {
        if self.function_clock.is_none() {
            self.function_clock = Some(Clock::start());
            self.effects.recorder.start();
        }
    }

    /// The deadline that a turn is late for.
    fn missed(&self, looked: Time) -> Option<Time> {
        self.function.next_deadline().map(|deadline| deadline.at).filter(|at| *at < looked)
    }

    /// Takes one batch of every port, or all that waits if the turn is late: port by port, as frames of one instant come (rule E1).
    /// Returns whether there was anything.
    fn receive(&mut self, looked: Time) -> Result<bool, LinuxError> {
        let batches = if self.missed(looked).is_some() { CATCH_UP } else { 1 };
        let mut busy = false;
        for place in 0..self.ports.len() {
            for _ in 0..batches {
                if !self.receive_batch(place, looked)? {
                    break;
                }
                busy = true;
            }
        }
        Ok(busy)
    }

    /// Takes one batch of a port. Returns whether there was anything.
    fn receive_batch(&mut self, place: usize, looked: Time) -> Result<bool, LinuxError> {
        let OpenPort { port, name, device } = &mut self.ports[place];
        device
            .receive(*port, self.outbox.pool(), &mut self.arrivals)
            .map_err(|error| LinuxError::system(format!("receive on port {port} ({name})"), error))?;
        let port = *port;
        let busy = !self.arrivals.is_empty();
        self.hand_in(port, looked);
        Ok(busy)
    }

    /// Hands in the batch that a port gave: as a whole, or as long as a deadline was missed, frame by frame at the time of that
    /// deadline, which a frame may put off.
    fn hand_in(&mut self, port: Port, looked: Time) {
        while let Some(first) = self.arrivals.pop_front() {
            self.handed.push_back(first);
            let missed = self.missed(looked);
            if missed.is_none() {
                self.handed.append(&mut self.arrivals);
            }
            self.start_clock();
            let now = missed.unwrap_or(looked);
            let arrived = self.function.input_time(Input::Frame(port), now);
            for arrival in &self.handed {
                self.effects.recorder.received(arrived, arrival.port, &arrival.frame());
            }
            while !self.handed.is_empty() {
                self.function.frames(now, &mut self.handed, &mut self.outbox);
                self.dispatch();
            }
        }
    }

    /// Runs what is due. Returns whether anything was.
    fn fire(&mut self, now: Time) -> bool {
        let due = self.function.next_deadline().is_some_and(|deadline| deadline.at <= now);
        if due {
            self.function.fire(now, &mut self.outbox);
            self.dispatch();
        }
        due
    }

    /// Says where the application waits for connections. Before the first input, so that time does not begin.
    fn listen(&mut self) -> Result<(), LinuxError> {
        for local in self.effects.application.listens() {
            let function = self.function.connections().ok_or(CallError::NoConnections)?;
            function.listen(Time::ZERO, &local, &mut self.outbox)?;
        }
        Ok(())
    }

    /// Opens the application's connections.
    fn connect(&mut self) -> Result<(), LinuxError> {
        let now = self.function_time();
        self.start_clock();
        let function = self.function.connections().ok_or(CallError::NoConnections)?;
        let connected = self.effects.application.connect(&mut Calls { function, now, out: &mut self.outbox });
        self.dispatch();
        connected
    }

    /// Lets the application work. Returns whether there may be more at once.
    fn work(&mut self, now: Time) -> bool {
        let Some(function) = self.function.connections() else { return false };
        let more = self.effects.application.work(&mut Calls { function, now, out: &mut self.outbox });
        self.dispatch();
        more
    }

    /// Tells the application that the run ends.
    fn interrupt(&mut self) {
        let now = self.function_time();
        let Some(function) = self.function.connections() else { return };
        self.effects.application.interrupt(&mut Calls { function, now, out: &mut self.outbox });
        self.dispatch();
    }

    /// Puts in the flows that the function begins with.
    fn adopt(&mut self, flows: Vec<Vec<u8>>) -> Result<(), LinuxError> {
        for (number, state) in flows.into_iter().enumerate() {
            let now = self.function_time();
            self.start_clock();
            let clocks = self.function_clock.map(|clock| clock.clocks());
            change(self.function, now, Change::Adopt { state, clocks }, &mut self.outbox)
                .map_err(|reason| LinuxError::Flow { number: number + 1, reason })?;
            self.dispatch();
        }
        Ok(())
    }

    /// Hands in the command that another thread has sent. It does not start the function's clock.
    fn obey(&mut self) {
        let Some(command) = self.commands.as_ref().and_then(CommandQueue::next) else { return };
        let now = self.function_time();
        self.function.control(now, command, &mut self.outbox);
        let replaced = self.outbox.take_leftovers();
        let answer = self.outbox.items().iter().rev().find_map(|output| match output {
            Output::Answered(answer) => Some((**answer).clone()),
            _ => None,
        });
        if let (Some(queue), Some(answer)) = (&self.commands, answer) {
            queue.reply(answer, replaced);
        }
        self.dispatch();
    }

    /// Answers the control socket's clients and lets go of what is buffered for others.
    fn serve(&mut self) {
        self.obey();
        self.effects.application.flush();
        if let Some(control) = &mut self.effects.control {
            let (ports, links) = (&mut self.ports, &self.links);
            let mut status = || ports.iter_mut().zip(links).map(|(open, link)| open.status(link)).collect();
            let (function_clock, recorder) = (&mut self.function_clock, &mut self.effects.recorder);
            let mut time = |start| {
                if start && function_clock.is_none() {
                    *function_clock = Some(Clock::start());
                    recorder.start();
                }
                function_clock.map_or_else(Default::default, |clock| (clock.now(), clock.clocks()))
            };
            let mut asked =
                Asked { function: &mut *self.function, out: &mut self.outbox, ports: &mut status, time: &mut time };
            if let Some(flow) = control.serve(&mut asked) {
                self.effects.application.ended(flow);
            }
            self.effects.choose_tracing(&mut self.outbox);
            self.dispatch();
        }
    }

    /// Goes on with what another process wants that is to replace this one. Whether it has: then the ports are not this one's any more.
    fn hand_over(&mut self) -> bool {
        let Some(control) = &mut self.effects.control else { return false };
        if let Some(stream) = control.take_successor() {
            // With two of them the first one goes on; the other sees that nobody answers it.
            if self.offer.is_none() {
                self.offer = Offer::new(stream).ok();
            }
        }
        let Some(offer) = &mut self.offer else { return false };
        match offer.look() {
            Looked::Nothing => false,
            Looked::Begin => {
                let (listener, lock) = control.to_pass();
                let ports = self.ports.iter().map(|open| Some((open.port, open.device.hand_over()?)));
                let sent =
                    ports.collect::<Option<Vec<_>>>().map(|ports| offer.send_descriptors(listener, &ports, lock));
                if !matches!(sent, Some(Ok(()))) {
                    self.offer = None;
                }
                false
            }
            Looked::Over => {
                self.end_offer();
                false
            }
            Looked::Ready => self.stop_for_successor(),
        }
    }

    /// The run stops, the successor gets the flows, and it becomes clear who goes on.
    fn stop_for_successor(&mut self) -> bool {
        let now = self.function_time();
        // All that is due by now has left.
        for _ in 0..CATCH_UP {
            if !self.fire(now) {
                break;
            }
        }
        let clocks = self.function_clock.map(|clock| clock.clocks());
        let stopped = Stopped {
            resumes: clocks.map(|clocks| (now, clocks)),
            last_input: clocks.map(|clocks| clocks.monotonic.saturating_add(self.last_busy.nanoseconds())),
            stopped: monotonic_ns(),
        };
        let function = &*self.function;
        let flows = |put: &mut dyn FnMut(&[u8]) -> io::Result<()>| {
            let mut after = FlowId(0);
            loop {
                let page = function.flows_after(after, MAX_PAGE);
                for summary in page.flows {
                    put(&function.snapshot(summary.flow, clocks.as_ref()).map_err(io::Error::other)?)?;
                }
                match page.next {
                    Some(next) => after = next,
                    None => return Ok(()),
                }
            }
        };
        let ended = self.offer.as_mut().is_some_and(|offer| offer.conclude(&stopped, flows));
        if ended {
            if let Some(control) = &mut self.effects.control {
                control.leave_file();
            }
            return true;
        }
        self.end_offer();
        false
    }

    fn end_offer(&mut self) {
        let Some(offer) = self.offer.take() else { return };
        let reason = offer.reason().unwrap_or("the other process is gone, or did not answer in time").to_owned();
        self.effects.say(&format!("not replaced: {reason}"));
    }

    /// Takes over the run of another process: its flows first, then its ports.
    fn take_over(&mut self, mut succession: Succession) -> Result<(), LinuxError> {
        succession.ready();
        let (mut stopped, mut now, mut flows) = (None, Time::ZERO, 0);
        let whole = loop {
            match succession.next()? {
                Heard::Stopped(told) => {
                    stopped = Some(told);
                    if let Some((time, clocks)) = told.resumes {
                        now = time;
                        self.function_clock = Some(Clock::resume(time, &clocks));
                        let last = told.last_input.map_or(0, |last| last.saturating_sub(clocks.monotonic));
                        self.last_busy = Time::from_nanoseconds(last);
                        self.effects.recorder.start();
                    }
                }
                Heard::Flow(state) => {
                    flows += 1;
                    let clocks = self.function_clock.map(|clock| clock.clocks());
                    self.succeed(&mut succession, now, Command::new(0, Change::Adopt { state, clocks }), flows)?;
                }
                Heard::Last => {
                    self.take_change(&mut succession, now)?;
                    succession.adopted();
                }
                Heard::Run(whole) => break whole,
            }
        };
        if let Some(control) = &mut self.effects.control {
            control.own_file();
        }
        self.pause = succession.pause(stopped, flows as u64);
        if let Some(address) = std::env::var_os("NOTIFY_SOCKET")
            && let Err(error) = tell_main_process(&address)
        {
            self.effects.say(&format!("the service manager does not know that this is the main process now: {error}"));
        }
        if !whole {
            self.take_change(&mut succession, now)?;
            let process = succession.process();
            self.effects.say(&format!(
                "process {process} is dead: took over its ports, and {flows} flows that it had sent before"
            ));
            self.pause = None;
        }
        self.dispatch();
        Ok(())
    }

    /// The image of this process comes into the place of the one that the flows came with.
    fn take_change(&mut self, succession: &mut Succession, now: Time) -> Result<(), LinuxError> {
        match succession.take_change() {
            Some((change, prepared)) => self.succeed(succession, now, Command::prepared(0, change, prepared), 0),
            None => Ok(()),
        }
    }

    /// Hands in a command before the ports are this process's. What it puts out waits until they are: nothing is due then.
    fn succeed(
        &mut self,
        succession: &mut Succession,
        now: Time,
        command: Command,
        number: usize,
    ) -> Result<(), LinuxError> {
        let done = carry_out(self.function, now, command, &mut self.outbox);
        drop(self.outbox.take_leftovers());
        if !self.outbox.items().iter().any(|item| matches!(item, Output::Send { .. })) {
            self.outbox.clear();
        }
        done.map(drop).map_err(|reason| {
            succession.refuse(&reason.to_string());
            LinuxError::Flow { number, reason }
        })
    }

    /// Says how long nobody served, at the first input.
    fn tell_pause(&mut self, looked: Time) {
        let Some(pause) = self.pause.take() else { return };
        let first =
            self.function_clock.map_or(0, |clock| clock.clocks().monotonic.saturating_add(looked.nanoseconds()));
        let microseconds = |from: i64, to: i64| (to - from) / 1_000;
        let between = pause.last_input.map(|last| microseconds(last, first));
        let between = between.map(|between| format!(", {between} us from its last input to the first one here"));
        self.effects.say(&format!(
            "took over from process {}: {} flows; {} us from its stop to the start here{}",
            pause.process,
            pause.flows,
            microseconds(pause.stopped, pause.taken),
            between.unwrap_or_default()
        ));
    }

    /// Tells the function what has happened to ports.
    fn tell(&mut self, changes: Vec<(Port, PortChange)>) {
        for (port, change) in changes {
            let (now, command) = (self.function_time(), Command::new(0, Change::Port { port, change }));
            self.function.control(now, command, &mut self.outbox);
            self.dispatch();
        }
    }

    /// Says what has become of interfaces.
    fn look_at_links(&mut self, options: &RunOptions) -> Result<(), LinuxError> {
        if !self.watch.has_news() {
            return Ok(());
        }
        let mut changes = Vec::new();
        for (open, link) in self.ports.iter_mut().zip(&mut self.links) {
            let news = link.look(open.device.as_mut());
            changes.extend(news.changes.into_iter().map(|change| (open.port, change)));
            if news.condition {
                self.effects.say(&format!("port {} ({}) {}", open.port, open.name, link.said()));
            }
            if let Some(error) = news.refused {
                self.effects
                    .say(&format!("port {} ({}) is back but can't be opened again: {error}", open.port, open.name));
            }
            if options.exit_when_gone && link.times_gone > 0 {
                return Err(LinuxError::Gone { port: open.port, name: open.name.clone() });
            }
        }
        self.tell(changes);
        Ok(())
    }

    /// Waits until frames can leave by every port and answers can come back, but not for ever.
    fn await_operational(&mut self, stop: &StopSignal, end: Time, options: &RunOptions) -> Result<(), LinuxError> {
        let limit = self.clock.now().after(OPERATIONAL).min(end);
        let waits = |turns: &Turns<'_>| turns.links.iter().position(|link| !link.is_operational());
        while let Some(waiting) = waits(self) {
            let left = limit.since(self.clock.now());
            if left <= 0 || stop.requested() {
                let OpenPort { port, name, .. } = &self.ports[waiting];
                if options.needs_ports && !stop.requested() {
                    return Err(LinuxError::NotOperational { port: *port, name: name.clone() });
                }
                self.effects
                    .say(&format!("port {port} ({name}) is not operational: has it no carrier? Connects all the same"));
                return Ok(());
            }
            let mut descriptors = [poll_input(stop.descriptor()), poll_input(self.watch.descriptor())];
            let left = Duration::from_nanos(left.unsigned_abs());
            poll(&mut descriptors, Some(left)).map_err(|error| LinuxError::system("wait for interfaces", error))?;
            self.look_at_links(&RunOptions::default())?;
        }
        Ok(())
    }

    /// What to do until the function's next deadline; without one, to sleep.
    fn next_step(&self, options: &RunOptions) -> Step {
        let sleep = Step::Sleep { until: Time::MAX };
        // The usual case asks for no clock.
        if options.precision == Policy::Sleep {
            return sleep;
        }
        let now = self.function_time();
        self.function.next_deadline().map_or(sleep, |deadline| options.precision.step(now, deadline.at))
    }

    /// Looks at nothing but the clock until the deadline, if it is that near, and runs what is due then.
    fn last_stretch(&mut self) {
        let Some(deadline) = self.function.next_deadline().map(|deadline| deadline.at) else { return };
        let mut now = self.function_time();
        if deadline.since(now) > LAST_STRETCH {
            return;
        }
        while now < deadline {
            std::hint::spin_loop();
            now = self.function_time();
        }
        // Who was kept from looking at the clock looks at the ports before.
        if now.since(deadline) <= LAST_STRETCH {
            self.fire(now);
        }
    }

    /// Waits until something can be done. Returns whether somebody beside the ports and the application has news.
    fn wait(&mut self, stop: &StopSignal, end: Time, options: &RunOptions) -> Result<bool, LinuxError> {
        // Nothing that was delivered waits with it.
        self.effects.application.flush();
        let descriptors = &mut self.descriptors;
        descriptors.clear();
        // A device that is gone is always ready to say so.
        let there = self.ports.iter().zip(&self.links).filter(|(_, link)| link.condition != Condition::Gone);
        descriptors.extend(there.map(|(port, _)| poll_input(port.device.descriptor())));
        descriptors.extend(self.effects.application.descriptor().map(poll_input));
        let others = descriptors.len();
        descriptors.push(poll_input(stop.descriptor()));
        descriptors.push(poll_input(self.watch.descriptor()));
        descriptors.extend(self.commands.as_ref().map(|commands| poll_input(commands.descriptor())));
        if let Some(control) = &self.effects.control {
            control.add_descriptors(descriptors);
        }
        descriptors.extend(self.offer.as_ref().map(|offer| poll_input(offer.descriptor())));
        let now = self.function_time();
        let deadline = self.function.next_deadline().map(|deadline| match options.precision.step(now, deadline.at) {
            Step::Sleep { until } => until.since(now),
            Step::Spin | Step::Due => 0,
        });
        let application = self.effects.application.deadline().map(|deadline| deadline.since(now));
        let end = (end != Time::MAX).then(|| end.since(self.clock.now()));
        let asked = self.effects.control.as_ref().is_some_and(ControlServer::has_request).then_some(0);
        let timeout = deadline.into_iter().chain(application).chain(end).chain(asked).min();
        let timeout = timeout.map(|left| Duration::from_nanos(left.max(0).unsigned_abs()));
        poll(&mut self.descriptors, timeout).map_err(|error| LinuxError::system("wait for frames", error))?;
        Ok(asked.is_some() || self.descriptors[others..].iter().any(|descriptor| descriptor.revents != 0))
    }

    /// Does what the function asked for.
    fn dispatch(&mut self) {
        if self.outbox.items().is_empty() {
            return;
        }
        for (number, item) in (0..).zip(self.outbox.items()) {
            let Output::Send { at, port, bytes, offload } = item else {
                self.effects.apply(item, &self.outbox, self.function);
                continue;
            };
            match self.ports.iter().position(|open| open.port == *port) {
                Some(place) => {
                    let frame = Frame { bytes: self.outbox.bytes(bytes), offload: *offload };
                    self.effects.recorder.sent(*at, *port, &frame);
                    self.departures[place].push(number);
                }
                None => self.effects.no_port += 1,
            }
        }
        for (open, departures) in self.ports.iter_mut().zip(&mut self.departures) {
            send_all(open.device.as_mut(), departures, &self.outbox);
            departures.clear();
        }
        self.outbox.clear();
    }

    fn finish(mut self) -> Result<Report, LinuxError> {
        self.effects.application.finish().map_err(|error| LinuxError::system("copy the application's bytes", error))?;
        self.effects.recorder.finish()?;
        let counters = |(open, link): (OpenPort, PortLink)| {
            let OpenPort { port, name, mut device } = open;
            PortReport { port, name, counters: device.counters(), times_gone: link.times_gone }
        };
        Ok(Report {
            duration: Duration::from_nanos(self.clock.now().nanoseconds().unsigned_abs()),
            ports: self.ports.into_iter().zip(self.links).map(counters).collect(),
            function: self.function.counters(),
            no_port: self.effects.no_port,
            replaced: self.replaced,
            debug_lost: self.effects.control.as_ref().map_or(0, ControlServer::lost),
        })
    }
}

/// Sends those of an outbox's frames, in batches. They stay where they are: nothing is copied here.
fn send_all(device: &mut dyn FramePort, departures: &[u32], outbox: &Outbox) {
    for chunk in departures.chunks(BATCH) {
        let mut batch = [Frame::new(&[]); BATCH];
        for (entry, number) in batch.iter_mut().zip(chunk) {
            if let Output::Send { bytes, offload, .. } = &outbox.items()[*number as usize] {
                *entry = Frame { bytes: outbox.bytes(bytes), offload: *offload };
            }
        }
        device.send(&batch[..chunk.len()]);
    }
}

/// Where everything but frames goes.
struct Effects<'a> {
    application: &'a mut dyn Application,
    recorder: Recorder,
    control: Option<ControlServer>,
    messages: Messages,
    silent: bool,
    no_port: u64,
}

impl Effects<'_> {
    fn say(&mut self, text: &str) {
        self.messages.say(printable(text).to_string());
    }

    fn apply(&mut self, item: &Output, outbox: &Outbox, function: &dyn Function) {
        match item {
            // Frames go by their ports.
            Output::Send { .. } | Output::Answered(_) => {}
            Output::Deliver { flow, bytes } => self.application.delivered(*flow, outbox.bytes(bytes)),
            Output::Released { flow, length } => self.application.released(*flow, *length),
            Output::Notify { at, flow, notice, value } => {
                let name = function.notice_name(*notice);
                self.application.notified(*flow, name);
                if !self.silent {
                    self.messages.say(format!("{at} flow {flow}: {} {value}", printable(name)));
                }
            }
            Output::Opened { flow, endpoints } => self.application.opened(*flow, endpoints.as_ref()),
            Output::Ended { flow } => self.application.ended(*flow),
            Output::Trace(record) => {
                self.recorder.trace(record);
                if let Some(control) = &mut self.control {
                    control.publish(record);
                }
            }
        }
    }

    fn choose_tracing(&self, outbox: &mut Outbox) {
        let debugged = self.control.as_ref().is_some_and(ControlServer::wants_trace);
        outbox.set_tracing(debugged || self.recorder.wants_trace());
    }
}
