//! A machine that runs, with what it puts out and its parameters.

use crate::SetupError;
use weftwire_catalog::parameter::{self, Parameter};
use weftwire_core::inspect::{FlowDetail, Inspect};
use weftwire_core::order::Input;
use weftwire_core::{
    Arrival, Arrivals, CallError, Change, Command, Connections, FlowId, Frame, Function, LinkType, Outbox, Port, Ports,
    Time,
};
use weftwire_engine::{EngineOptions, ReferenceEngine, change_to};
use weftwire_image::VerifiedImage;

/// The one port, with packets from the IP header on.
pub const PORT: Port = Port(1);
/// The engine's name.
const ENGINE: &str = "reference";

/// A machine that runs.
pub struct Machine {
    image: VerifiedImage,
    engine: ReferenceEngine,
    /// What it has put out.
    pub outbox: Outbox,
}

impl Machine {
    /// Starts a machine.
    ///
    /// # Errors
    /// [`SetupError::Engine`].
    pub fn new(image: VerifiedImage, seed: u64) -> Result<Machine, SetupError> {
        let ports = Ports::new([(PORT, LinkType::Ip)]);
        let options = EngineOptions { seed, ..EngineOptions::default() };
        let engine = ReferenceEngine::new(image.clone(), ports, options)?;
        Ok(Machine { image, engine, outbox: Outbox::new() })
    }

    /// Other initial values of registers, for connections that begin from now on.
    ///
    /// # Errors
    /// [`SetupError`]; nothing has changed then.
    pub fn set(&mut self, now: Time, parameters: &[Parameter]) -> Result<(), SetupError> {
        let image = parameter::apply(self.image.clone(), parameters)?;
        let (change, ready) = change_to(ENGINE, image.clone())?;
        self.engine.control(now, Command::prepared(0, change, ready), &mut self.outbox);
        self.image = image;
        Ok(())
    }

    /// A call of the application.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call<R>(
        &mut self,
        call: impl FnOnce(&mut dyn Connections, &mut Outbox) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let Machine { engine, outbox, .. } = self;
        outbox.unbounded(|outbox| call(engine, outbox))
    }

    /// A packet arrives.
    pub fn frame(&mut self, now: Time, bytes: &[u8]) {
        let arrival = Arrival::copied(PORT, Frame::new(bytes), &mut self.outbox);
        let engine = &mut self.engine;
        self.outbox.unbounded(|outbox| engine.frames(now, &mut Arrivals::from([arrival]), outbox));
    }

    /// Runs what is due.
    pub fn fire(&mut self, now: Time) {
        let engine = &mut self.engine;
        self.outbox.unbounded(|outbox| engine.fire(now, outbox));
    }

    /// The time of an input that is told `now`.
    pub fn input_time(&self, input: Input, now: Time) -> Time {
        self.engine.input_time(input, now)
    }

    /// When [`Machine::fire`] has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        self.engine.next_deadline().map(|deadline| deadline.at)
    }

    /// Gives a register of a flow a value, if there are both.
    pub fn set_register(&mut self, now: Time, flow: FlowId, register: &str, value: i64) {
        let change = Change::SetRegister { flow, register: register.into(), value };
        self.engine.control(now, Command::new(0, change), &mut self.outbox);
    }

    /// The value that a register has in a new flow.
    pub fn initial(&self, register: &str) -> Option<i64> {
        let found = self.image.registers.iter().find(|known| known.name == register && !known.scratch);
        found.map(|register| register.initial)
    }

    /// The engine, to look at.
    pub fn inspect(&self) -> &dyn Inspect {
        &self.engine
    }

    /// Everything about a flow.
    pub fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        Inspect::flow(&self.engine, flow)
    }

    /// The name of a notice.
    pub fn notice_name(&self, notice: u16) -> String {
        self.engine.notice_name(notice).to_owned()
    }

    /// Whether the machine ever gives this notice.
    pub fn gives_notice(&self, name: &str) -> bool {
        self.image.notices.iter().any(|notice| notice == name)
    }

    /// Bytes that its send buffer has room for.
    pub fn send_buffer(&self) -> usize {
        self.image.send_buffer_bytes()
    }

    /// Bytes that its receive buffer has room for, if it has one.
    pub fn receive_buffer(&self) -> Option<u32> {
        self.image.receive_buffer().map(|(_, bytes)| bytes)
    }
}
