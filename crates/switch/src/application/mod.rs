//! Actions of applications: what they are told, what they may do, and which there are.
//!
//! A rule names an action with arguments, `answerDNS(10.0.0.105)`. A [`Registry`] makes an [`Action`] of it, which is
//! then carried out on the messages that the rule matches. [`Registry::built_in`] has those of this project.
//!
//! Actions are pure like all functions here: they are told the time, and what they send goes out with the switch's own
//! frames. In which order things happen is fixed in `docs/subscription-actions.md`.

mod dns;
mod forward;
mod frame;
mod icmp;
mod locator;
mod neighbour;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use weftwire_core::{LinkType, Offload, Port, Time};
use weftwire_subscribe::compiler::Compiler;
use weftwire_subscribe::formats::{ActionSignature, ArgumentKind, MessageFormats};
use weftwire_subscribe::rules::{Argument, Call};

/// An action with its arguments, ready to be carried out.
pub trait Action: Send {
    /// Carries it out on a packet all of whose messages have it.
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict;

    /// What it remembers from packet to packet, if anything.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Remembers this from now on.
    fn remember(&mut self, _memory: u64) {}
}

/// What becomes of a packet after an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// On to the next action, and then to the messages' ports.
    Continue,
    /// The action took the packet: no further action, no port gets it.
    Done,
    /// The same, counted among the drops by this reason.
    Drop(&'static str),
}

/// A packet on its way: one message, or messages of a batch that have the same actions.
pub struct Passing<'a> {
    /// When the packet arrived.
    pub now: Time,
    /// The port it came in by.
    pub port: Port,
    /// What the packet begins with.
    pub link: LinkType,
    /// The packet: what earlier actions left of it, and what the ports get of it in the end. Messages of a batch must
    /// stay where they are.
    pub frame: &'a mut Vec<u8>,
    /// What is left to do on the packet. It may stand for many segments of a TCP connection.
    pub offload: Offload,
    /// Where the messages of a batch lie, with their lengths in front; empty without one.
    pub messages: &'a [Range<usize>],
    pub(crate) exit: &'a mut dyn Exit,
}

impl Passing<'_> {
    /// Sends a packet of its own out of a port. One that the switch does not have is counted.
    pub fn send(&mut self, port: Port, bytes: &[u8], offload: Offload) {
        self.exit.send(port, self.link, bytes, offload);
    }

    /// Sends a packet of its own back out of the port that this one came in by.
    pub fn answer(&mut self, bytes: &[u8], offload: Offload) {
        self.send(self.port, bytes, offload);
    }

    /// Counts something worth telling, by its name.
    pub fn count(&mut self, what: &'static str) {
        self.exit.count(what);
    }
}

/// The way out of a switch.
pub(crate) trait Exit {
    fn send(&mut self, port: Port, link: LinkType, bytes: &[u8], offload: Offload);
    fn count(&mut self, what: &'static str);
}

/// Why an action cannot be carried out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ActionError {
    /// Nobody registered it.
    #[error("nothing here carries out the action `{name}`; there are {known}")]
    Unknown {
        /// Its name.
        name: String,
        /// What there is.
        known: String,
    },
    /// The formats declare other arguments than it takes.
    #[error("the action `{name}` is declared with arguments ({declared}), and takes ({takes})")]
    Arguments {
        /// Its name.
        name: String,
        /// Kinds of the arguments declared.
        declared: String,
        /// Kinds of the arguments it takes.
        takes: String,
    },
    /// An argument's value makes no sense.
    #[error("`{call}`: {reason}")]
    Value {
        /// The action with its arguments.
        call: String,
        /// Why not.
        reason: &'static str,
    },
}

type Make = Arc<dyn Fn(&[Argument]) -> Result<Box<dyn Action>, &'static str> + Send + Sync>;

/// The actions that can be carried out. The default one has none.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<String, (Vec<ArgumentKind>, Make)>);

impl Registry {
    /// The project's own actions, see `docs/subscription-actions.md`.
    pub fn built_in() -> Registry {
        let mut registry = Registry::default();
        dns::register(&mut registry);
        forward::register(&mut registry);
        icmp::register(&mut registry);
        locator::register(&mut registry);
        neighbour::register(&mut registry);
        registry
    }

    /// Adds an action, in place of one of the same name. `make` gets arguments of the kinds that the signature says, and
    /// refuses values that make no sense by saying why.
    pub fn register(
        &mut self,
        signature: ActionSignature,
        make: impl Fn(&[Argument]) -> Result<Box<dyn Action>, &'static str> + Send + Sync + 'static,
    ) {
        self.0.insert(signature.name, (signature.arguments, Arc::new(make)));
    }

    /// Whether all actions that the formats declare are there, with the same arguments.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self, formats: &MessageFormats) -> Result<(), ActionError> {
        for ActionSignature { name, arguments } in formats.actions() {
            let Some((takes, _)) = self.0.get(name) else { return Err(self.unknown(name)) };
            if takes != arguments {
                let (name, declared, takes) = (name.clone(), kinds(arguments), kinds(takes));
                return Err(ActionError::Arguments { name, declared, takes });
            }
        }
        Ok(())
    }

    /// Whether all actions that formats declare and rules name are there, with arguments that make sense.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_rules(&self, compiler: &Compiler) -> Result<(), ActionError> {
        self.check(compiler.formats())?;
        compiler.calls().try_for_each(|id| self.action(compiler.call(id)).map(drop))
    }

    /// Makes the action that a rule names.
    ///
    /// # Errors
    /// It is not there, or not with these arguments.
    pub fn action(&self, call: &Call) -> Result<Box<dyn Action>, ActionError> {
        let Some((takes, make)) = self.0.get(&call.action) else { return Err(self.unknown(&call.action)) };
        let given: Vec<ArgumentKind> = call.arguments.iter().map(Argument::kind).collect();
        if given != *takes {
            let (declared, takes) = (kinds(&given), kinds(takes));
            return Err(ActionError::Arguments { name: call.action.clone(), declared, takes });
        }
        make(&call.arguments).map_err(|reason| ActionError::Value { call: call.to_string(), reason })
    }

    fn unknown(&self, name: &str) -> ActionError {
        let mut known = String::new();
        for (name, (takes, _)) in &self.0 {
            let separator = if known.is_empty() { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = write!(known, "{separator}{name}({})", kinds(takes));
        }
        let known = if known.is_empty() { "none".to_owned() } else { known };
        ActionError::Unknown { name: name.to_owned(), known }
    }
}

fn kinds(kinds: &[ArgumentKind]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// A signature of the project's own.
fn signature(name: &str, arguments: &[ArgumentKind]) -> ActionSignature {
    ActionSignature { name: name.to_owned(), arguments: arguments.to_vec() }
}

/// What a maker says of arguments that the registry never hands it.
const OTHER_ARGUMENTS: &str = "these are other arguments than it takes";

#[cfg(test)]
mod tests {
    use super::*;

    fn call(action: &str, arguments: Vec<Argument>) -> Call {
        Call { action: action.to_owned(), arguments }
    }

    #[test]
    fn what_is_missing_is_told_with_what_there_is() {
        let registry = Registry::built_in();
        let error = registry.action(&call("answerDSN", vec![])).err().expect("no such action").to_string();
        assert!(error.contains("`answerDSN`") && error.contains("answerDNS(ipv4)"), "{error}");
        assert!(registry.action(&call("answerDNS", vec![Argument::Number(1)])).is_err());
        assert!(registry.action(&call("answerDNS", vec![Argument::Ipv4([10, 0, 0, 1].into())])).is_ok());

        let mut formats = MessageFormats::default();
        assert!(registry.check(&formats).is_ok());
        formats.register_action(signature("answerDNS", &[ArgumentKind::Mac]));
        let error = registry.check(&formats).unwrap_err().to_string();
        assert_eq!(error, "the action `answerDNS` is declared with arguments (mac), and takes (ipv4)");
        assert!(Registry::default().check(&formats).unwrap_err().to_string().contains("there are none"));
    }
}
