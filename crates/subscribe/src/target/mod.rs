//! Programs and entries for switches, out of compiled tables: P4 text, bmv2's JSON and commands, P4Runtime.
//!
//! [`Program`] is what all have in common; [`files`] writes it down. `docs/subscription-targets.md` says what each file
//! is for and which limits hold. The format of bmv2's JSON is laid out in behavioral-model's `docs/JSON_format.md`, entries
//! for controllers in the P4Runtime specification, version 1.

mod batch;
pub mod bmv2;
pub mod commands;
pub mod p4;
pub mod p4runtime;
mod parser;
mod pipeline;
pub mod program;

pub use program::Program;

use crate::compiler::Compiler;

/// What a program is written for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    /// `switch.p4`: P4_16 for the architecture v1model.
    P4,
    /// `switch.json` and `commands.txt`: what bmv2's `simple_switch` and its command line take.
    Bmv2,
    /// `p4info.txtpb` and `entries.txtpb`: tables and entries for P4Runtime.
    P4Runtime,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 3] = [Target::P4, Target::Bmv2, Target::P4Runtime];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Target::P4 => "p4",
            Target::Bmv2 => "bmv2",
            Target::P4Runtime => "p4runtime",
        }
    }
}

/// How programs are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Targets {
    /// Messages of a packet that are looked at, 1 to [`MOST_MESSAGES`]. Packets with more go to all ports as they are.
    pub messages: usize,
    /// Whether ranges become prefixes of ternary tables.
    pub ternary: bool,
}

impl Default for Targets {
    fn default() -> Targets {
        Targets { messages: 4, ternary: false }
    }
}

/// Most messages of a packet that a program may look at: each has tables of its own.
pub const MOST_MESSAGES: usize = 64;

/// Why tables can't become a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsupported {
    /// A port that these switches do not have.
    #[error("port {0} is none of 0 to 510, which the switch has; give the rule another port")]
    Port(u16),
    /// Messages follow to the packet's end.
    #[error("parsers of switches can't tell where a packet ends: `{0}` needs a field that counts its messages")]
    BatchWithoutCount(String),
    /// Two fields share bits.
    #[error("`{0}` shares bits with another field or lies outside of its header; a parser gives each bit to one field")]
    Overlap(String),
    /// A header that every message has, beside others.
    #[error("`{0}` is told by nothing from the other headers of messages; give it a `when`")]
    Ambiguous(String),
    /// A mean.
    #[error("`{0}`: a mean is a quotient, and switches do not divide; compare sum and count apart")]
    Mean(String),
    /// A window that the switch's clock is too coarse for.
    #[error("`{0}`: the switch's clock counts microseconds; windows are whole microseconds, up to 2^47")]
    Window(String),
    /// A sum of a field that is wider than registers.
    #[error("`{0}`: windows are of fields of up to 64 bits")]
    WideWindow(String),
    /// More windows than a program can tell apart.
    #[error("the rules have {0} windows and counters; a program has room for 64")]
    Windows(usize),
    /// A text that is too long for an argument.
    #[error("the text \"{0}\" is longer than the 16 bytes of an argument")]
    Text(String),
    /// A number of messages that is out of range.
    #[error("{0} messages a packet; programs look at 1 to 64")]
    Messages(usize),
    /// More multicast groups than numbers for them.
    #[error("the rules have {0} sets of ports; the switch has room for 65,535")]
    Groups(usize),
}

/// A file: its name and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The name.
    pub name: &'static str,
    /// The text.
    pub text: String,
}

/// The files of a target.
///
/// # Errors
/// [`Unsupported`].
pub fn files(compiler: &Compiler, target: Target, targets: &Targets) -> Result<Vec<File>, Unsupported> {
    let program = Program::new(compiler, targets)?;
    Ok(match target {
        Target::P4 => vec![File { name: "switch.p4", text: p4::v1model(&program) }],
        Target::Bmv2 => vec![
            File { name: "switch.json", text: bmv2::json(&program) },
            File { name: "commands.txt", text: commands::text(&program) },
        ],
        Target::P4Runtime => vec![
            File { name: "p4info.txtpb", text: p4runtime::info(&program) },
            File { name: "entries.txtpb", text: p4runtime::entries(&program) },
        ],
    })
}
