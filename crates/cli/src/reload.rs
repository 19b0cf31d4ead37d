//! A run that goes over to what its files hold now, when the process is told to read them again.

use crate::console::tell;
use anyhow::Result;
use std::any::Any;
use weftwire_core::Change;
use weftwire_linux::commands::CommandSender;
use weftwire_linux::signals::HangUp;

/// What a run goes over to.
pub struct Renewal {
    /// The change.
    pub change: Change,
    /// What is ready of it, so that packets need not wait.
    pub prepared: Box<dyn Any + Send>,
    /// What is told once it has taken place.
    pub done: String,
}

/// Loads whenever SIGHUP comes, on a thread of its own, and has the run go over to it between two inputs. What is wrong goes to
/// standard error behind the words of `stays`, and all stays as it is.
pub fn reload_on(
    hangup: HangUp,
    stays: &'static str,
    load: impl Fn() -> Result<Renewal> + Send + 'static,
    mut run: CommandSender,
) {
    let renew = move || {
        let Renewal { change, prepared, done } = match load() {
            Ok(renewal) => renewal,
            Err(error) => return tell!("{stays}: {error:#}"),
        };
        match run.change(change, prepared) {
            Some(Ok(_)) => tell!("{done}"),
            Some(Err(error)) => tell!("{stays}: {error}"),
            // The run has ended.
            None => {}
        }
    };
    if let Err(error) = hangup.on_each(renew) {
        tell!("{stays} when SIGHUP comes: {error:#}");
    }
}
