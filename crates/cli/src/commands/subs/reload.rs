//! A running switch whose rules are read again when the process is told to.

use crate::load::Loaded;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use weftwire_core::function::Ports;
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::{CallError, Deadline, Endpoints, FlowId, Frame, Function, Outbox, Port, Time};
use weftwire_linux::signals::HangUp;
use weftwire_subscribe::Compiler;
use weftwire_subscribe::application::Registry;
use weftwire_subscribe::engine::SubscriptionSwitch;

/// A subscription switch that reads its rules again whenever SIGHUP comes, and goes over to them between two inputs. What
/// is wrong with them goes to standard error, and the rules stay as they are.
pub struct Reloading {
    switch: SubscriptionSwitch,
    /// Starts the thread that reads rules: at the first input, when the process has given up its privileges.
    begin: Option<Box<dyn FnOnce() -> Result<()>>>,
    later: Receiver<Arc<Compiler>>,
}

impl Reloading {
    /// Starts a switch on these ports. `load` gives its rules, now and later.
    pub fn start(
        switch: &Loaded,
        ports: &Ports,
        hangup: HangUp,
        load: impl Fn() -> Result<Loaded> + Send + 'static,
    ) -> Result<Box<dyn Function>> {
        let Loaded::Subscriptions { compiler, .. } = switch else { bail!("this is no subscription switch") };
        let switch = SubscriptionSwitch::with_actions(compiler, ports.clone(), Registry::built_in())?;
        let (sender, later) = channel();
        let read = move || match load() {
            Ok(Loaded::Subscriptions { compiler, .. }) => {
                eprintln!("the rules are read again: {}", compiler.rule_count());
                // Without a receiver the run is over.
                let _ = sender.send(compiler);
            }
            Ok(Loaded::Machine(_)) => {}
            Err(error) => eprintln!("the rules stay as they are: {error:#}"),
        };
        let begin = Some(Box::new(move || Ok(hangup.on_each(read)?)) as Box<dyn FnOnce() -> Result<()>>);
        Ok(Box::new(Reloading { switch, begin, later }))
    }

    fn renew(&mut self) {
        if let Some(begin) = self.begin.take()
            && let Err(error) = begin()
        {
            eprintln!("the rules will stay as they are: {error:#}");
        }
        // Only the newest rules count.
        if let Some(compiler) = self.later.try_iter().last()
            && let Err(error) = self.switch.replace(&compiler)
        {
            eprintln!("the rules stay as they are: {error}");
        }
    }
}

impl Function for Reloading {
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox) {
        self.renew();
        self.switch.frame(now, port, frame, out);
    }

    fn frames(&mut self, now: Time, batch: &[(Port, Frame<'_>)], out: &mut Outbox) {
        self.renew();
        self.switch.frames(now, batch, out);
    }

    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        self.switch.connect(now, endpoints, out)
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        self.switch.write(now, flow, bytes, out)
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.switch.close(now, flow, out)
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        self.switch.fire(now, out);
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.switch.next_deadline()
    }
}

impl Inspect for Reloading {
    fn counters(&self) -> Counters {
        self.switch.counters()
    }
}
