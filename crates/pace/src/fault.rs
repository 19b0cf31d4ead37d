//! What can be wrong: with the text of an envelope, and with solving it.

use std::fmt::Write as _;
use std::ops::Range;

/// What is wrong with the text of an envelope, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Bytes of the text that are wrong; empty at its end if something is missing there.
    pub span: Range<usize>,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Fault {
    /// A fault without help.
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into(), help: None }
    }

    /// Adds what would be right.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    /// The message, the text and marks under the place that is wrong.
    pub fn to_text(&self, text: &str) -> String {
        let start = text.floor_char_boundary(self.span.start);
        let end = text.floor_char_boundary(self.span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let blanks = text[line_start..start].chars().count();
        let marks = text[start..end.min(line_end)].chars().count().max(1);
        let line = text[line_start..line_end].replace(char::is_control, " ");
        let mut out = format!("{}\n  {line}\n  {}{}", self.message, " ".repeat(blanks), "^".repeat(marks));
        if let Some(help) = &self.help {
            let _ = write!(out, "\n  help: {help}");
        }
        out
    }
}

/// Why no time can be found for a packet. Times are in the envelope's unit.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SolveError {
    /// The rate is below zero.
    #[error("the rate is {rate} at t = {time}; a rate is never below 0 (bound it with max(0, ...))")]
    NegativeRate {
        /// When.
        time: f64,
        /// The rate there.
        rate: f64,
    },
    /// The formula gives no number.
    #[error("the formula gives no finite number at {at}")]
    NotFinite {
        /// The time, or for T(n) the packet.
        at: f64,
    },
    /// The formula changes so fast that following it costs too much.
    #[error(
        "the formula changes too fast to be followed at t = {time}; make it smoother, or begin closer to the packets wanted"
    )]
    TooFast {
        /// Where the search was given up.
        time: f64,
    },
    /// So many packets are never sent.
    #[error("packet {packet} is never sent: the envelope ends after about {sent} packets")]
    NeverSent {
        /// The packet's number.
        packet: f64,
        /// How far the envelope gets.
        sent: f64,
    },
    /// Packets would go backwards in time.
    #[error("packet {packet} would go before the packet in front of it")]
    Backwards {
        /// The later packet.
        packet: f64,
    },
}
