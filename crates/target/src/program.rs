//! A switch program before it is written in any format's language: headers, a parser, tables, and the order of tables.

use weftwire_subscribe::cost::Memory;
use weftwire_subscribe::rules::Function;

/// A field of a header instance or of the metadata: the instance's name and the field's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The header instance, [`META`] or [`STANDARD`].
    pub header: String,
    /// The field.
    pub field: String,
}

/// The program's own metadata.
pub const META: &str = "meta";

/// The architecture's metadata, under bmv2's names.
pub const STANDARD: &str = "standard_metadata";

/// The header that carries values from ingress to egress where metadata does not: [`Program::bridge`].
pub const BRIDGE: &str = "bridge";

/// What a program is written for: what its switch can compute, and how much it has of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Architecture {
    /// bmv2's v1model: anything, in any number.
    #[default]
    V1model,
    /// The Tofino Native Architecture: one operation an action and field, one access a register and packet.
    Tna,
}

impl Architecture {
    /// The names of the controls ingress and egress in the program's text, which stand in front of the names of their tables
    /// and actions wherever those are named. `v1model.p4` declares `Ingress` and `Egress` itself.
    pub fn controls(self) -> [&'static str; 2] {
        match self {
            Architecture::V1model => ["SwitchIngress", "SwitchEgress"],
            Architecture::Tna => ["Ingress", "Egress"],
        }
    }
}

impl Place {
    /// A field of a header instance.
    pub fn new(header: &str, field: &str) -> Place {
        Place { header: header.to_owned(), field: field.to_owned() }
    }
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expression {
    /// Of a field.
    Field(Place),
    /// Whether a header is there.
    Valid(String),
    /// A number of so many bits.
    Number(u128, u16),
    /// A parameter of the action, by its place.
    Parameter(usize),
    /// An operation, in P4's spelling.
    Of(&'static str, Box<Expression>, Box<Expression>),
    /// The low bits of a value, or the value with zeros in front.
    Bits(u16, Box<Expression>),
    /// Bits of a value: how many low ones are left away, and how many taken.
    Slice(u16, u16, Box<Expression>),
    /// The second if the first holds, else the third.
    Choice(Box<Expression>, Box<Expression>, Box<Expression>),
}

impl Expression {
    /// A field of the program's metadata.
    pub fn meta(field: impl AsRef<str>) -> Expression {
        Expression::Field(Place::new(META, field.as_ref()))
    }

    /// `self OPERATOR other`.
    #[must_use]
    pub fn of(self, operator: &'static str, other: Expression) -> Expression {
        Expression::Of(operator, Box::new(self), Box::new(other))
    }

    /// See [`Expression::Bits`].
    #[must_use]
    pub fn bits(self, width: u16) -> Expression {
        Expression::Bits(width, Box::new(self))
    }
}

/// A step of an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Writes a field.
    Set(Place, Expression),
    /// Takes a header out of the packet.
    Remove(String),
    /// Sends the packet nowhere.
    Drop,
    /// Reads a register of one cell.
    Read(Place, String),
    /// Writes a register of one cell.
    Write(String, Expression),
    /// Takes a message into a window, see [`Program::windows`], and puts the window's value into a field.
    Update(Place, String),
}

/// An action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// What it does, for readers.
    pub purpose: &'static str,
    /// Its parameters with their widths in bits.
    pub parameters: Vec<(String, u16)>,
    /// Its steps in order.
    pub steps: Vec<Step>,
}

/// What a key of a table is matched by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One value.
    Exact,
    /// A prefix, of which the longest wins.
    Lpm,
    /// First to last value.
    Range,
    /// A value under a mask.
    Ternary,
}

impl Kind {
    /// Its name in P4 and in bmv2's JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Lpm => "lpm",
            Kind::Range => "range",
            Kind::Ternary => "ternary",
        }
    }
}

/// A key of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// A field, or whether a header is there.
    pub value: Expression,
    /// Its name for entries.
    pub name: String,
    /// Its width in bits.
    pub width: u16,
    /// What it is matched by.
    pub kind: Kind,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its keys; at least one, except for tables that only have a default.
    pub keys: Vec<Key>,
    /// Its actions by name; the default's among them.
    pub actions: Vec<String>,
    /// The action without an entry, with its arguments.
    pub default: (String, Vec<u128>),
    /// Its entries.
    pub entries: Vec<Entry>,
}

impl Table {
    /// How many entries it has room for: those it has, at least one.
    pub fn size(&self) -> usize {
        self.entries.len().max(1)
    }

    /// Whether formats ask for a priority with each entry.
    pub fn has_priorities(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, Kind::Range | Kind::Ternary))
    }

    /// What it matches by as a whole, as bmv2 has it.
    pub fn kind(&self) -> Kind {
        let all = [Kind::Range, Kind::Ternary, Kind::Lpm];
        all.into_iter().find(|kind| self.keys.iter().any(|key| key.kind == *kind)).unwrap_or(Kind::Exact)
    }
}

/// What one key of an entry asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// One value.
    Exact(u128),
    /// A value and how many leading bits of it count.
    Lpm(u128, u16),
    /// First and last value; the first is not the greater.
    Range(u128, u128),
    /// A value and which bits of it count.
    Ternary(u128, u128),
}

/// An entry of a table. No two entries of a table match the same packet, except for prefixes of different lengths and for
/// entries that are only asked last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// One a key.
    pub matches: Vec<Match>,
    /// The action's name.
    pub action: String,
    /// Its arguments.
    pub arguments: Vec<u128>,
    /// Whether it only counts where no other entry matches; only for [`Architecture::Tna`].
    pub fallback: bool,
}

impl Entry {
    /// An entry that matches nothing that another does.
    pub fn new(matches: Vec<Match>, action: &str, arguments: Vec<u128>) -> Entry {
        Entry { matches, action: action.to_owned(), arguments, fallback: false }
    }
}

/// A node of a control.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// Applies a table, by name.
    Apply(String),
    /// Applies a table, and these if none of its entries matches.
    ApplyOr(String, Vec<Node>),
    /// Runs an action without parameters.
    Do(String),
    /// Goes one way or the other.
    If(Expression, Vec<Node>, Vec<Node>),
}

/// A control: ingress or egress.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Control {
    /// Its actions.
    pub actions: Vec<Action>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What it does.
    pub nodes: Vec<Node>,
}

impl Control {
    /// An action by name.
    pub fn action(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == name)
    }
}

/// A header instance, of a type of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// The name of its type, which instances of several messages share.
    pub kind: String,
    /// Its fields with their widths in bits.
    pub fields: Vec<(String, u16)>,
    /// Most bits of a header of variable length, which has no other fields; 0: it has a fixed one.
    pub variable: u32,
}

/// What a state of the parser takes from the packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extract {
    /// A header.
    Header(String),
    /// A header of variable length, and its bits.
    Variable(String, Expression),
}

/// What a state of the parser looks at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Select {
    /// A field, with its width.
    Field(Place, u16),
    /// Bits ahead: how many bits are skipped, and how many read.
    Ahead(u32, u16),
    /// Whether the parser's counter is at zero: 1 or 0.
    Done,
}

impl Select {
    /// Width in bits.
    pub fn width(&self) -> u16 {
        match self {
            Select::Field(_, width) | Select::Ahead(_, width) => *width,
            Select::Done => 1,
        }
    }
}

/// What a state of the parser does to the counter. Only for [`Architecture::Tna`], whose parsers can't subtract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Starts it.
    Set(u8),
    /// Counts one down.
    Down,
}

/// A state of the parser.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Its name; the first is `start`.
    pub name: String,
    /// What it extracts, in order.
    pub extracts: Vec<Extract>,
    /// What it sets then.
    pub sets: Vec<(Place, Expression)>,
    /// What it does to the parser's counter then.
    pub counter: Option<Counter>,
    /// What it looks at then.
    pub select: Vec<Select>,
    /// Values under masks, one a `select`, and the next state. The first that fits is taken.
    pub cases: Vec<(Vec<(u128, u128)>, String)>,
    /// The next state otherwise, or [`ACCEPT`].
    pub otherwise: String,
}

/// The end of the parser.
pub const ACCEPT: &str = "accept";

/// A multicast group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its number, from 1.
    pub id: u32,
    /// Its ports; two or more.
    pub ports: Vec<u16>,
}

/// A register of one cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub width: u16,
}

/// A window as a pair of 32 bits in one register, with the function that takes a message in. Only for
/// [`Architecture::Tna`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowRegister {
    /// Its name.
    pub name: String,
    /// What it computes: anything but a mean.
    pub function: Function,
    /// The field of the metadata with the number of the window that a message falls into.
    pub number: Place,
    /// The field of the metadata with the message's value; of counts there is none.
    pub value: Option<Place>,
}

/// A switch program with its entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// What it is for.
    pub architecture: Architecture,
    /// Header instances in the order in which packets have them.
    pub headers: Vec<Header>,
    /// Fields of the metadata with their widths in bits.
    pub metadata: Vec<(String, u16)>,
    /// The parser's states.
    pub states: Vec<State>,
    /// Before the packet is copied.
    pub ingress: Control,
    /// For each copy.
    pub egress: Control,
    /// Registers.
    pub registers: Vec<Register>,
    /// Windows.
    pub windows: Vec<WindowRegister>,
    /// Fields of the header [`BRIDGE`] with their widths, whole bytes in all; empty: there is none.
    pub bridge: Vec<(String, u16)>,
    /// Whether egress looks at or changes headers of the packet.
    pub egress_parses: bool,
    /// Multicast groups.
    pub groups: Vec<Group>,
    /// Whether packets leave changed, so that the IPv4 checksum is to be made anew: if this field of the metadata is 1.
    pub checksum_when: Option<String>,
    /// Messages of a packet that are looked at, if packets are batches.
    pub most_messages: Option<usize>,
}

/// What a program's tables take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// Tables.
    pub tables: usize,
    /// Entries of tables that match single values, and bits of their keys.
    pub exact: Memory,
    /// Entries of tables with prefixes, ranges and masks, and bits of their keys: twice for these.
    pub ternary: Memory,
}

impl Program {
    /// Ingress and egress, each with its name.
    pub fn controls(&self) -> [(&'static str, &Control); 2] {
        let [ingress, egress] = self.architecture.controls();
        [(ingress, &self.ingress), (egress, &self.egress)]
    }

    /// What its tables take.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        for table in self.ingress.tables.iter().chain(&self.egress.tables) {
            size.tables += 1;
            let is_exact = table.kind() == Kind::Exact;
            let bits = |key: &Key| u64::from(key.width) * if key.kind == Kind::Exact && is_exact { 1 } else { 2 };
            let memory = if is_exact { &mut size.exact } else { &mut size.ternary };
            memory.entries += table.entries.len() as u64;
            memory.bits += table.entries.len() as u64 * table.keys.iter().map(bits).sum::<u64>();
        }
        size
    }

    /// The place of a value that egress needs too: metadata, or the header [`BRIDGE`].
    pub fn kept(&self, field: &str) -> Place {
        Place::new(if self.architecture == Architecture::Tna { BRIDGE } else { META }, field)
    }

    /// The port that the packet came in by, where egress finds it.
    pub fn arrival(&self) -> Place {
        match self.architecture {
            Architecture::V1model => Place::new(STANDARD, "ingress_port"),
            Architecture::Tna => Place::new(BRIDGE, "ingress_port"),
        }
    }

    /// Declares a value that egress needs too.
    pub fn keep(&mut self, field: String, width: u16) {
        match self.architecture {
            Architecture::Tna => self.bridge.push((field, width)),
            Architecture::V1model => self.metadata.push((field, width)),
        }
    }
}
