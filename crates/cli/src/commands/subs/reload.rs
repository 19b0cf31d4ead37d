//! A running switch whose rules are read again when the process is told to.

use crate::console::tell;
use anyhow::{Result, bail};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weftwire_catalog::Loaded;
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::{Arrivals, Command, Deadline, Function, Outbox, Ports, Time};
use weftwire_linux::signals::HangUp;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::Registry;

/// A subscription switch that reads its rules again whenever SIGHUP comes, and goes over to them between two inputs. What
/// is wrong with them goes to standard error, and the rules stay as they are.
pub struct Reloading {
    /// Shared with the thread that reads rules, which holds it only to go over to what it has laid out.
    switch: Arc<Mutex<SubscriptionSwitch>>,
    /// Starts that thread: at the first input, when the process has given up its privileges.
    begin: Option<Box<dyn FnOnce() -> Result<()>>>,
}

impl Reloading {
    /// Starts a switch on these ports. `load` gives its rules, now and later.
    pub fn start(
        switch: &Loaded,
        ports: &Ports,
        hangup: HangUp,
        load: impl Fn() -> Result<Loaded> + Send + 'static,
    ) -> Result<Box<dyn Function>> {
        let (switch, _) = made(switch, ports)?;
        let switch = Arc::new(Mutex::new(switch));
        let (shared, ports) = (switch.clone(), ports.clone());
        let renew = move || match load().and_then(|rules| made(&rules, &ports)) {
            Ok((mut renewed, count)) => {
                lock(&shared).replace(&mut renewed);
                tell!("the rules are read again: {count}");
            }
            Err(error) => tell!("the rules stay as they are: {error:#}"),
        };
        let begin = Some(Box::new(move || Ok(hangup.on_each(renew)?)) as Box<dyn FnOnce() -> Result<()>>);
        Ok(Box::new(Reloading { switch, begin }))
    }

    fn begin(&mut self) {
        if let Some(begin) = self.begin.take()
            && let Err(error) = begin()
        {
            tell!("the rules will stay as they are: {error:#}");
        }
    }
}

/// A switch with these rules, and their number.
fn made(rules: &Loaded, ports: &Ports) -> Result<(SubscriptionSwitch, usize)> {
    let Loaded::Subscriptions { compiler, .. } = rules else { bail!("this is no subscription switch") };
    let switch = SubscriptionSwitch::with_actions(compiler, ports.clone(), Registry::built_in())?;
    Ok((switch, compiler.rule_count()))
}

fn lock(switch: &Mutex<SubscriptionSwitch>) -> MutexGuard<'_, SubscriptionSwitch> {
    switch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Function for Reloading {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        self.begin();
        lock(&self.switch).frames(now, arrivals, out);
    }

    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        lock(&self.switch).control(now, command, out);
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        lock(&self.switch).fire(now, out);
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        // The switch has no timers.
        None
    }
}

impl Inspect for Reloading {
    fn counters(&self) -> Counters {
        lock(&self.switch).counters()
    }
}
