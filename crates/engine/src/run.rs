//! One event of one instance, from beginning to end (semantics, rules E5 to E12).

use crate::Executor;
use crate::counts::Counts;
use crate::instance::Instance;
use crate::key_sets::KeySets;
use crate::limits::Limits;
use crate::packets::Promises;
use crate::pending::Pending;
use crate::program::Program;
use crate::stores::Tests;
use crate::turns::Turns;
use weftwire_core::buffer::Storage;
use weftwire_core::packet::Packet;
use weftwire_core::{DropReason, FlowId, Listen, Outbox, Ports, Time};
use weftwire_image::limits::MAX_TIMER_PAYLOAD;
use weftwire_image::{Environment, Event, Operand, Operation, PacketRef, Table, Tally};

/// What a setting of a timer carries.
pub type Payload = [i64; MAX_TIMER_PAYLOAD];

/// A pending setting of a timer.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Whose it is.
    pub flow: FlowId,
    /// Which timer.
    pub timer: u8,
    /// How many timer events of this instant it comes from, each set by the one before (rule E15).
    pub depth: u16,
    /// The values it carries; those the timer does not declare are 0.
    pub payload: Payload,
}

impl Setting {
    /// Whether it is of this timer and passes all tests.
    pub fn passes(&self, timer: u8, tests: Tests<'_>) -> bool {
        self.timer == timer && tests.pass(&self.payload)
    }
}

/// Of no flow: what a place in the calendar holds that is free.
impl Default for Setting {
    fn default() -> Setting {
        Setting { flow: FlowId(0), timer: 0, depth: 0, payload: Payload::default() }
    }
}

/// What all instances of an engine share.
#[derive(Debug)]
pub struct Shared {
    /// The ports there are.
    pub ports: Ports,
    /// Hashes and random numbers.
    pub keys: KeySets,
    /// All pending settings of timers.
    pub calendar: Pending,
    /// What there is room for.
    pub limits: Limits,
    /// Packets in the slots of all instances.
    pub stored: usize,
    /// Memory for them.
    pub storage: Storage,
    /// Counts since the start.
    pub counts: Counts,
    /// The look-up tables as they are now.
    pub tables: Vec<Table>,
    /// Where applications listen, sorted.
    pub listening: Vec<Listen>,
    /// Settings of timers that are about to get a new deadline; empty between operations.
    pub moved: Vec<Setting>,
    /// How many instances are in each state.
    pub populations: Vec<u64>,
    /// The turns that flows wait for.
    pub turns: Vec<Turns>,
    /// How often each repeat was raised again in the event that runs.
    pub rounds: Vec<u32>,
}

impl Shared {
    /// A packet in memory for packets that are stored, instead of one of the outbox's buffers.
    pub fn store(&mut self, packet: Packet, out: &mut Outbox) -> Packet {
        let stored = packet.copy_into(self.storage.take(packet.frame_length()));
        out.recycle(packet.into_buffer());
        stored
    }
}

/// What happened: an event and the values it carries.
#[derive(Default, Debug)]
pub struct Occasion {
    /// The packet being handled, at a packet event.
    pub current: Option<Packet>,
    /// The event's own values; those it has not are 0.
    pub values: Payload,
    /// Depth of a setting of a timer that is made now for this instant (rule E15).
    pub depth: u16,
    /// Whether another instance has to go before this one, whose first event it is, takes its place (rule F20).
    pub full: bool,
}

/// An event while it runs.
pub struct Run<'a> {
    /// The machine.
    pub program: &'a Program,
    /// What all instances share.
    pub shared: &'a mut Shared,
    /// The instance.
    pub instance: &'a mut Instance,
    /// Where outputs go.
    pub out: &'a mut Outbox,
    /// The event's time.
    pub at: Time,
    /// What happened.
    pub occasion: Occasion,
    /// The packet under construction.
    pub work: Option<Packet>,
    /// What is to leave when the event is over.
    pub(crate) promises: Promises,
    /// Whether `delete_instance` has run.
    pub deleted: bool,
    /// The packet that is to make the next instance of this key (rule E20).
    pub(crate) successor: Option<Packet>,
    /// Bytes sent and delivered so far (rule E17).
    pub put_out: usize,
    /// Whether a setting was refused as part of a zero-time loop.
    pub endless: bool,
    pending: Option<u16>,
    /// The actions of the row so far, as text; only while tracing.
    pub(crate) actions: Vec<String>,
}

impl<'a> Run<'a> {
    /// An event at time `at`, about to be handled by `instance`.
    pub fn new(
        program: &'a Program,
        shared: &'a mut Shared,
        instance: &'a mut Instance,
        out: &'a mut Outbox,
        at: Time,
    ) -> Run<'a> {
        let occasion = Occasion::default();
        Run {
            program,
            shared,
            instance,
            out,
            at,
            occasion,
            work: None,
            promises: Promises::default(),
            deleted: false,
            successor: None,
            put_out: 0,
            endless: false,
            pending: None,
            actions: Vec::new(),
        }
    }

    /// Handles an event with all that follows from it.
    pub fn event(&mut self, executor: &impl Executor, event: Event, occasion: Occasion) {
        self.occasion = occasion;
        self.one(executor, event);
        self.let_go();
    }

    /// Handles the first event of a new instance, which is in its initial state and comes into it first (rule F4).
    pub fn first_event(&mut self, executor: &impl Executor, event: Event, occasion: Occasion) {
        self.occasion = occasion;
        self.one(executor, Event::Enter);
        if !self.deleted {
            self.one(executor, event);
        }
        self.let_go();
    }

    fn one(&mut self, executor: &impl Executor, event: Event) {
        self.steps(executor, event);
        self.change_state(executor);
    }

    /// Rule E10. An `enter` event may change the state again; the verifier makes sure that this ends.
    fn change_state(&mut self, executor: &impl Executor) {
        while let Some(next) = self.pending.take() {
            if self.deleted {
                return;
            }
            self.pending = Some(next);
            self.steps(executor, Event::Exit);
            self.pending = None;
            if self.deleted {
                return;
            }
            let groups = [self.instance.state, next].map(|state| self.program.groups[usize::from(state)]);
            self.instance.came_into_group |= groups[1] & !groups[0] != 0;
            self.shared.populations[usize::from(self.instance.state)] -= 1;
            self.shared.populations[usize::from(next)] += 1;
            self.instance.state = next;
            self.steps(executor, Event::Enter);
        }
    }

    /// Rules E5 to E9: one event and the internal events raised from it.
    fn steps(&mut self, executor: &impl Executor, event: Event) {
        self.remove(PacketRef::Work);
        self.instance.counts.events += 1;
        self.shared.rounds.fill(0);
        let mut handled = event;
        while let Some(raised) = self.step(executor, handled) {
            handled = self.repeated(handled, raised);
        }
    }

    /// The event to handle when a row of `handled` has raised another one (rule E18).
    fn repeated(&mut self, handled: Event, raised: u16) -> Event {
        let repeats = &self.program.image.repeats;
        let Some(repeat) = self.program.repeat_of(self.instance.state, raised) else { return Event::Internal(raised) };
        let rounds = &mut self.shared.rounds[repeat];
        if handled < Event::Internal(raised) {
            *rounds = 0;
        } else if *rounds < repeats[repeat].most {
            *rounds += 1;
        } else {
            return Event::Internal(repeats[repeat].then);
        }
        Event::Internal(raised)
    }

    /// One round of rules E6 to E8; returns the internal event to go on with.
    fn step(&mut self, executor: &impl Executor, event: Event) -> Option<u16> {
        let before = self.out.wants_trace().then(|| self.instance.registers.clone());
        let number = executor.run_row(self, event);
        let row = number.map(|number| &self.program.image.rows[number]);
        match number {
            None if event == Event::Packet => self.count(DropReason::NoRow),
            None => {}
            Some(number) => self.shared.counts.rows[number] += 1,
        }
        self.pending = row.and_then(|row| row.next).or(self.pending);
        if let Some(before) = before {
            self.trace_event(event, number, self.pending, &before);
        }
        row.and_then(|row| row.raise)
    }

    /// Rule E20.
    pub fn restart(&mut self) {
        self.deleted = true;
        if self.successor.is_none() {
            self.successor = self.duplicate(PacketRef::Current);
        }
    }

    /// The value of an operand now.
    #[inline(always)]
    pub fn read(&self, operand: &Operand) -> i64 {
        match *operand {
            Operand::Register(register) => self.instance.registers[usize::from(register)],
            Operand::Constant(value) => value,
            ref other => self.look_up(other),
        }
    }

    // What is neither a register nor a constant; within `read` it would keep that from being inlined where operands are read.
    #[inline(never)]
    fn look_up(&self, operand: &Operand) -> i64 {
        match *operand {
            Operand::Register(_) | Operand::Constant(_) => self.read(operand),
            // Rule P10: bits as an unsigned number.
            Operand::Field { packet, field } => self.field(packet, field).unwrap_or(0) as i64,
            Operand::Present { packet, field } => {
                let place = self.program.places[usize::from(field)];
                i64::from(self.packet(packet).is_some_and(|packet| packet.get_wide(place).is_some()))
            }
            Operand::Event(value) => self.occasion.values.get(usize::from(value)).copied().unwrap_or(0),
            Operand::Environment(environment) => self.environment(environment),
        }
    }

    fn field(&self, packet: PacketRef, field: u16) -> Option<u64> {
        self.packet(packet)?.get(self.program.places[usize::from(field)])
    }

    fn environment(&self, environment: Environment) -> i64 {
        let now = self.instance.axis.own(self.at).nanoseconds();
        match environment {
            Environment::Now => now,
            Environment::NowMicroseconds => now.div_euclid(1_000),
            Environment::NowMilliseconds => now.div_euclid(1_000_000),
            Environment::FlowHash => self.shared.keys.of(self.instance.keys).hash_key(&self.instance.key),
            Environment::FlowFull => i64::from(self.occasion.full),
            Environment::ApplicationAvailable => self.instance.send_buffer.len() as i64,
            Environment::ApplicationClosed => i64::from(self.instance.closed),
            Environment::ApplicationListening => i64::from(self.is_listening()),
            Environment::ApplicationRoom => {
                let buffer = self.program.image.receive_buffer();
                buffer.map_or(0, |(index, _)| self.instance.ranges[index].room().into())
            }
            Environment::Tally(tally) => self.tally(tally),
            Environment::Waiting(turns) => i64::from(self.instance.waiting[usize::from(turns)].is_some()),
        }
    }

    /// Rule N1.
    fn tally(&self, tally: u8) -> i64 {
        let Tally { states, timers, .. } = &self.program.image.tallies[usize::from(tally)];
        let flows: u64 = states.iter().map(|state| self.shared.populations[usize::from(*state)]).sum();
        let settings: u64 = timers.iter().map(|timer| self.shared.calendar.count(*timer)).sum();
        (flows + settings) as i64
    }

    /// Rule A8.
    fn is_listening(&self) -> bool {
        let Some(ends) = &self.instance.endpoints else { return false };
        let (address, port) = (Some(ends.local_address), Some(ends.local_port));
        let wanted = [(address, port), (None, port), (address, None), (None, None)];
        wanted.into_iter().any(|(address, port)| self.shared.listening.binary_search(&Listen { address, port }).is_ok())
    }

    /// Counts that something had less effect than asked for.
    pub fn count(&mut self, reason: DropReason) {
        self.shared.counts.drop(reason);
        self.instance.counts.drops.count(reason);
    }

    /// A length or offset: negative is taken as 0 (rules P21 and A5).
    pub fn read_length(&self, operand: &Operand) -> usize {
        usize::try_from(self.read(operand).max(0)).unwrap_or(usize::MAX)
    }

    /// Notes an operation that is about to run, other than one that shows something else; only while tracing.
    pub fn show(&mut self, operation: &Operation) {
        if !matches!(operation, Operation::Snapshot { .. } | Operation::Run { .. }) {
            let text = self.describe(operation);
            self.actions.push(text);
        }
    }
}
