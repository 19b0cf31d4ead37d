//! A running switch whose rules are read again when the process is told to.

use crate::console::tell;
use anyhow::{Result, bail};
use weftwire_catalog::Loaded;
use weftwire_core::{Change, Ports};
use weftwire_linux::commands::CommandSender;
use weftwire_linux::signals::HangUp;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::Registry;
use weftwire_switch::state::RulesName;

/// A switch with these rules, and their number.
pub fn made(rules: &Loaded, ports: &Ports) -> Result<(SubscriptionSwitch, usize)> {
    let Loaded::Subscriptions { compiler, digest, .. } = rules else { bail!("this is no subscription switch") };
    let mut switch = SubscriptionSwitch::with_actions(compiler, ports.clone(), Registry::built_in())?;
    switch.name_rules(RulesName { revision: 0, digest: bytes(digest) });
    Ok((switch, compiler.rule_count()))
}

/// A digest in hexadecimal as bytes.
fn bytes(digest: &str) -> [u8; 32] {
    std::array::from_fn(|at| {
        digest.get(2 * at..2 * at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0)
    })
}

/// Reads the rules again whenever SIGHUP comes, on a thread of its own, and has the run go over to them between two
/// inputs. `load` gives them with their text. What is wrong with them goes to standard error, and the rules stay as they are.
pub fn reload_on(
    hangup: HangUp,
    ports: Ports,
    load: impl Fn() -> Result<(Loaded, String)> + Send + 'static,
    mut run: CommandSender,
) {
    let renew = move || {
        let loaded = load().and_then(|(rules, text)| Ok((made(&rules, &ports)?, text)));
        let (switch, count, text) = match loaded {
            Ok(((switch, count), text)) => (switch, count, text),
            Err(error) => return tell!("the rules stay as they are: {error:#}"),
        };
        match run.change(Change::Rules { text }, Box::new(switch)) {
            Some(Ok(_)) => tell!("the rules are read again: {count}"),
            Some(Err(error)) => tell!("the rules stay as they are: {error}"),
            // The run has ended.
            None => {}
        }
    };
    if let Err(error) = hangup.on_each(renew) {
        tell!("the rules will stay as they are: {error:#}");
    }
}
