//! Programs and entries for switches, out of compiled tables: P4 text, bmv2's JSON and commands, P4Runtime, Tofino.
//!
//! [`Program`] is what all have in common; [`files`] writes it down. `docs/subscription-targets.md` says what each file
//! is for and which limits hold. The format of bmv2's JSON is laid out in behavioral-model's `docs/JSON_format.md`, entries
//! for controllers in the P4Runtime specification, version 1.
#![forbid(unsafe_code)]

mod batch;
pub mod bfrt;
pub mod bmv2;
pub mod commands;
pub mod fit;
pub mod limits;
pub mod machine;
mod messages;
pub mod p4;
pub mod p4runtime;
mod parser;
mod pipeline;
pub mod program;
mod stages;
pub mod tna;
mod windows;

pub use program::{Architecture, Program};

use weftwire_subscribe::compiler::Compiler;

/// What a program is written for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    /// `switch.p4`: P4_16 for the architecture v1model.
    P4,
    /// `switch.json` and `commands.txt`: what bmv2's `simple_switch` and its command line take; and `load.py`, which loads the
    /// commands and stops where one fails.
    Bmv2,
    /// `p4info.txtpb` and `entries.txtpb`: tables and entries for P4Runtime.
    P4Runtime,
    /// `tna.p4` and `tna.json`: P4_16 for the Tofino Native Architecture, and entries as its runtime, bfrt, lists them.
    Tna,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 4] = [Target::P4, Target::Bmv2, Target::P4Runtime, Target::Tna];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Target::P4 => "p4",
            Target::Bmv2 => "bmv2",
            Target::P4Runtime => "p4runtime",
            Target::Tna => "tna",
        }
    }

    /// The architecture that it is written for.
    pub fn architecture(self) -> Architecture {
        match self {
            Target::P4 | Target::Bmv2 | Target::P4Runtime => Architecture::V1model,
            Target::Tna => Architecture::Tna,
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
    /// Whether fields that several states look at are mapped to few bits first.
    pub compress: bool,
    /// Whether a copy may leave by the port that its packet came in by.
    pub hairpin: bool,
}

impl Default for Targets {
    fn default() -> Targets {
        Targets { messages: 4, ternary: false, compress: false, hairpin: false }
    }
}

/// Most messages of a packet that a program may look at: each has tables of its own.
pub const MOST_MESSAGES: usize = 64;

/// The greatest port that a program sends to; the least is 1, as in all rules. 9 bits are a port's number, and 511 of bmv2
/// means none.
pub const MOST_PORT: u16 = 510;

/// Why tables can't become a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsupported {
    /// A port that these switches do not have.
    #[error("port {0} is none of 1 to {MOST_PORT}, which programs for switches send to; give the rule another port")]
    Port(u16),
    /// A header without a place.
    #[error(
        "`{0}` has no place in packets, so that no rule about it would ever match; say where it is with @subscribe[after=..] in front of the header"
    )]
    Nowhere(String),
    /// Messages follow to the packet's end.
    #[error("parsers of switches can't tell where a packet ends: `{0}` needs a field that counts its messages")]
    BatchWithoutCount(String),
    /// Two fields share bits.
    #[error("`{0}` shares bits with another field or lies outside of its header; a parser gives each bit to one field")]
    Overlap(String),
    /// A header that every message has, beside others.
    #[error("`{0}` is told by nothing from the other headers of messages; give it a `when`")]
    Ambiguous(String),
    /// A mean on a switch that can't multiply.
    #[error("`{0}`: a mean is compared by a product, and Tofino does not multiply; compare sum and count apart")]
    Mean(String),
    /// A mean that is compared with very many values.
    #[error("`{0}` is compared with {1} values; a program has room for 256")]
    Means(String, usize),
    /// A window that the switch's clock is too coarse for.
    #[error("`{0}`: the switch's clock counts microseconds; windows are whole microseconds, up to 2^47")]
    Window(String),
    /// A sum of a field that is wider than registers.
    #[error("`{0}`: windows are of fields of up to 64 bits")]
    WideWindow(String),
    /// A window of values that are wider than the halves of Tofino's registers.
    #[error("`{0}`: Tofino's windows are of fields of up to 32 bits")]
    WideValue(String),
    /// A value of a window that is compared with more than the halves of Tofino's registers hold.
    #[error("`{0}`: Tofino's sums and counts end at 2^32 - 1, and are compared with more")]
    Large(String),
    /// A window's length that Tofino can't divide its clock by.
    #[error(
        "`{window}`: Tofino does not divide its clock; windows are a power of two nanoseconds long: {below}ns or {above}ns"
    )]
    Length {
        /// The window.
        window: String,
        /// The greatest length that is not greater.
        below: u64,
        /// The next length.
        above: u64,
    },
    /// A window that several messages of a packet would update.
    #[error("`{0}`: a packet reaches a register of Tofino once; look at one message a packet with --messages 1")]
    WindowOfBatch(String),
    /// A state of Tofino's parser that looks at too much.
    #[error("a state of the parser looks at {0} bits, and Tofino's at 32; tell messages by fewer bits")]
    Select(u32),
    /// Headers that are longer than what Tofino takes with a packet.
    #[error("packets take {0} bits of headers along, and Tofino 4,096; look at fewer messages with --messages")]
    Vector(u32),
    /// Tables that wait for each other longer than Tofino has stages.
    #[error(
        "tables need {0} stages one after the other, and Tofino has 12 or 20; test fewer fields, or look at fewer messages with --messages"
    )]
    Stages(usize),
    /// More windows than a program can tell apart.
    #[error("the rules have {0} windows and counters; a program has room for 64")]
    Windows(usize),
    /// A text that is too long for an argument.
    #[error("the text \"{0}\" is longer than the 16 bytes of an argument")]
    Text(String),
    /// A name that stands for two things.
    #[error(
        "`{0}` would mean two things in the program; give one of the headers, fields or actions in it another name"
    )]
    Name(String),
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
    let program = Program::new(compiler, target.architecture(), targets)?;
    Ok(written(&program, target))
}

/// The files of a target for a program of its architecture.
pub fn written(program: &Program, target: Target) -> Vec<File> {
    let file = |name, text| File { name, text };
    match target {
        Target::P4 => vec![file("switch.p4", p4::v1model(program))],
        Target::Bmv2 => {
            let commands = file("commands.txt", commands::text(program));
            vec![file("switch.json", bmv2::json(program)), commands, file("load.py", commands::LOADER.to_owned())]
        }
        Target::P4Runtime => {
            vec![file("p4info.txtpb", p4runtime::info(program)), file("entries.txtpb", p4runtime::entries(program))]
        }
        Target::Tna => vec![file("tna.p4", tna::text(program)), file("tna.json", bfrt::json(program))],
    }
}
