//! Well-typed XL programs as a tree, and as text. Declarations are the same in all programs: see [`Program::source`].

use std::fmt::Write;

/// The types of expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Integer,
    Unsigned,
    Sequence,
    Time,
    Bool,
}

/// The types that hold values: of registers, locals, parameters and what timers carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    U8,
    U16,
    U32,
    U64,
    I64,
    Seq32,
    Time,
    Bool,
}

impl Kind {
    pub const ALL: [Kind; 8] =
        [Kind::I64, Kind::U8, Kind::U16, Kind::U32, Kind::U64, Kind::Seq32, Kind::Time, Kind::Bool];

    pub fn name(self) -> &'static str {
        match self {
            Kind::U8 => "u8",
            Kind::U16 => "u16",
            Kind::U32 => "u32",
            Kind::U64 => "u64",
            Kind::I64 => "i64",
            Kind::Seq32 => "seq32",
            Kind::Time => "time",
            Kind::Bool => "bool",
        }
    }

    pub fn values(self) -> Type {
        match self {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::I64 => Type::Integer,
            Kind::U64 => Type::Unsigned,
            Kind::Seq32 => Type::Sequence,
            Kind::Time => Type::Time,
            Kind::Bool => Type::Bool,
        }
    }
}

/// The types of addresses. They are made of numbers and only compared: nothing keeps one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    Ipv4,
    Mac,
}

impl Address {
    pub fn bits(self) -> u32 {
        match self {
            Address::Ipv4 => 32,
            Address::Mac => 48,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Address::Ipv4 => "ipv4",
            Address::Mac => "mac",
        }
    }

    fn literal(self, value: u64) -> String {
        let bytes = &value.to_be_bytes()[8 - self.bits() as usize / 8..];
        match self {
            Address::Ipv4 => bytes.iter().map(u8::to_string).collect::<Vec<_>>().join("."),
            Address::Mac => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        }
    }
}

pub const REGISTERS: [(&str, Kind, i64); 10] = [
    ("c", Kind::I64, -1),
    ("a", Kind::U8, 255),
    ("b", Kind::U32, 0),
    ("d", Kind::U64, 7),
    ("e", Kind::Seq32, 0xffff_ffff),
    ("f", Kind::Seq32, 5),
    ("h", Kind::I64, 0x1_0000_0005),
    ("k", Kind::Bool, 1),
    ("t", Kind::Time, 3_000_000),
    ("w", Kind::U16, 9),
];
/// Fields that are read and written; `network.*` and the like can't be.
pub const FIELDS: [(&str, &str, Type); 16] = [
    ("tcp", "sequence", Type::Sequence),
    ("tcp", "window", Type::Integer),
    ("tcp", "syn", Type::Bool),
    ("tcp", "fin", Type::Bool),
    ("tcp", "flags", Type::Integer),
    ("tcp", "mss", Type::Integer),
    ("tcp", "timestamp", Type::Sequence),
    ("tcp", "timestamp_echo", Type::Sequence),
    ("tcp", "checksum", Type::Integer),
    ("tcp", "source_port", Type::Integer),
    ("ipv4", "ttl", Type::Integer),
    ("ipv4", "total_length", Type::Integer),
    ("ipv4", "checksum", Type::Integer),
    ("udp", "length", Type::Integer),
    ("udp", "word_1", Type::Integer),
    ("udp", "checksum", Type::Integer),
];
pub const SLOTS: [&str; 2] = ["one", "two"];
/// Names and TCP options; no options: a UDP template.
pub const TEMPLATES: [(&str, &[u8]); 2] = [("segment", &[2, 8]), ("datagram", &[])];
/// Names and what they carry.
pub const TIMERS: [(&str, &[(&str, Kind)]); 2] = [("tick", &[]), ("pair", &[("s", Kind::Seq32), ("n", Kind::U8)])];
/// An array: its name, the kind and the number of its elements, and what they begin with.
pub const ARRAY: (&str, Kind, usize, i64) = ("row", Kind::U16, 3, 65_535);
/// The register that chooses a module, and the modules with what their register `own` begins with.
pub const CHOSEN: &str = "chosen";
pub const MODULES: [(&str, i64); 2] = [("left", 3), ("right", 250)];
/// The kind of `own`, and of what the interface's action takes.
pub const OWN: Kind = Kind::U8;
pub const TAKEN: (&str, Kind) = ("x", Kind::I64);
/// So many flows may wait for turns.
pub const MAX_WAITING: usize = 2;
/// What is counted over all flows: flows in the second and third state, and settings of the first timer.
pub const TALLIES: [&str; 2] = ["crowd", "ticking"];
pub const TABLE: [i64; 3] = [3, -1, 70_000];
pub const STATES: [&str; 3] = ["first", "second", "third"];
pub const NOTICES: [&str; 2] = ["seen", "noted"];
pub const MAX_TIMERS: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketName {
    Current,
    Slot(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

type Sub = Box<Expression>;

#[derive(Clone, Debug)]
pub enum Expression {
    /// A number as it stands; fits every type of number.
    Plain(i64),
    /// A constant of a type.
    Constant(Type, i64),
    Register(usize),
    /// A local or a parameter.
    Local(String),
    Field(PacketName, usize),
    Present(PacketName, usize),
    /// `packet.port`
    Port,
    Now,
    /// What the timer `pair` carries.
    Carried(usize),
    /// With the types of both sides.
    Binary(Operator, Type, Sub, Type, Sub),
    Complement(Sub),
    /// `min` or `max`, in a type.
    Least(bool, Type, Sub, Sub),
    /// In a type.
    Compare(Comparison, Type, Sub, Sub),
    And(Sub, Sub),
    Or(Sub, Sub),
    Not(Sub),
    Cast(Kind, Sub),
    /// `u64(bytes / time)`: a rate.
    Speed(Sub, Sub),
    /// An address as it stands.
    AddressLiteral(Address, u64),
    /// A number as an address.
    AddressCast(Address, Sub),
    /// An address under a mask.
    Masked(Sub, Sub),
    /// Whether two addresses are equal, or (`false`) are not.
    SameAddress(bool, Sub, Sub),
    /// An address in a prefix: address and bits.
    Prefix(Sub, Address, u64, u32),
    /// A time in units of so many nanoseconds, and the function that gives it.
    Count(&'static str, i64, Sub),
    /// A named condition.
    Named(usize),
    Table(Sub),
    /// An element of the array.
    Element(Sub),
    /// `go.waiting`
    Waiting,
    Tally(usize),
}

impl Expression {
    /// Whether it is made of plain numbers only, so that its type is open.
    pub fn is_literal(&self) -> bool {
        match self {
            Expression::Plain(_) | Expression::Constant(Type::Integer, _) => true,
            Expression::Binary(_, _, left, _, right) | Expression::Least(_, _, left, right) => {
                left.is_literal() && right.is_literal()
            }
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Packet {
    Named(PacketName),
    Template(usize, Vec<(usize, Expression)>),
}

#[derive(Clone, Debug)]
pub enum Statement {
    Notify(usize, Expression),
    Assign(usize, Expression),
    /// `+=` of a register.
    Increase(usize, Expression),
    /// `if present`
    SetField(PacketName, usize, Expression, bool),
    Let(String, Option<Kind>, Expression),
    If(Vec<(Expression, Vec<Statement>)>, Vec<Statement>),
    Goto(usize),
    Delete,
    Call(usize, Vec<Expression>),
    /// Timer, what it carries, delay, whether earlier settings go.
    Set(usize, Vec<Expression>, Expression, bool),
    Cancel(usize, Vec<(usize, Comparison, Expression)>),
    Send(Packet, Expression),
    Store(Packet, usize),
    Discard(usize),
    Reverse(PacketName),
    Resize(PacketName, Expression),
    /// Keeps MSS or time stamps.
    KeepOptions(PacketName, u8),
    /// Index and value, or what it is increased by.
    SetElement(Expression, Expression, bool),
    /// Rank and cost.
    Ask(Expression, Expression),
    Withdraw,
    /// The interface's action.
    Step(Expression),
    /// From now on this module.
    Choose(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Packet,
    Timer(usize),
    Turn,
    Expire,
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub event: Event,
    pub from: Option<u16>,
    pub when: Option<Expression>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Default, Debug)]
pub struct State {
    /// An idle time of its own.
    pub expire: Option<i64>,
    pub enter: Vec<Statement>,
    pub exit: Vec<Statement>,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug)]
pub struct Action {
    pub parameters: Vec<(&'static str, Kind)>,
    pub body: Vec<Statement>,
}

/// How long flows live, and who goes from a full table.
#[derive(Clone, Debug)]
pub struct Rules {
    pub expire: i64,
    /// Flows with a timer pending stay. XL has that only with its default idle time; it is put into the image.
    pub hold: bool,
    pub max: usize,
    pub when_full: WhenFull,
}

#[derive(Clone, Debug)]
pub enum WhenFull {
    EvictOldest,
    Reject,
    EvictIn(Vec<Group>),
}

#[derive(Clone, Debug)]
pub struct Group {
    pub states: Vec<usize>,
    pub idle: i64,
    pub above: usize,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub rules: Rules,
    pub conditions: Vec<Expression>,
    pub actions: Vec<Action>,
    /// What each module does besides adding what it is given to its register.
    pub modules: Vec<Vec<Statement>>,
    pub states: Vec<State>,
}

impl Program {
    /// The program as XL text.
    pub fn source(&self) -> String {
        let mut text = String::from("machine random;\n");
        let mut line = |words: String| {
            text.push_str(&words);
            text.push('\n');
        };
        let Rules { expire, max, when_full, .. } = &self.rules;
        let when_full = match when_full {
            WhenFull::EvictOldest => String::new(),
            WhenFull::Reject => " when full reject".into(),
            WhenFull::EvictIn(groups) => {
                let groups: Vec<String> = groups.iter().map(group).collect();
                format!(" when full evict oldest {}", groups.join(" then "))
            }
        };
        line(format!(
            "flow key five_tuple expires after {expire}ns at most {max} flows at most {MAX_TIMERS} timers{when_full};"
        ));
        for (name, kind, initial) in REGISTERS {
            let type_ = if kind == Kind::Bool { Type::Bool } else { Type::Integer };
            let initial = match kind {
                Kind::Time => format!("{initial}ns"),
                _ => expression(&Expression::Constant(type_, initial)),
            };
            line(format!("register {name}: {} = {initial};", kind.name()));
        }
        let (name, kind, count, initial) = ARRAY;
        line(format!("register {name}[{count}]: {} = {initial};", kind.name()));
        line(format!("slot {};", SLOTS.join(", ")));
        for (name, carried) in TIMERS {
            let carried: Vec<String> = carried.iter().map(|(name, kind)| format!("{name}: {}", kind.name())).collect();
            line(match carried.is_empty() {
                true => format!("timer {name};"),
                false => format!("timer {name}({});", carried.join(", ")),
            });
        }
        line(format!("turns go at most {MAX_WAITING};"));
        line(format!("shared {} counts flows in {}, {};", TALLIES[0], STATES[1], STATES[2]));
        line(format!("shared {} counts settings of {};", TALLIES[1], TIMERS[0].0));
        let (taken, kind) = TAKEN;
        line(format!("interface way {{ action step({taken}: {}); }}", kind.name()));
        for ((name, initial), body) in MODULES.iter().zip(&self.modules) {
            line(format!("module {name} is way {{\n    register own: {} = {initial};", OWN.name()));
            line(format!("    action step({taken}: {}) {{\n        own += {taken};", kind.name()));
            line(block(body, 2) + "    }\n}");
        }
        let names: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
        line(format!("use way from {} by parameter {CHOSEN};", names.join(", ")));
        line("template segment: tcp { options mss, timestamps; }".into());
        line("template datagram: udp { }".into());
        line(format!("table numbers = {TABLE:?};"));
        for (index, condition) in self.conditions.iter().enumerate() {
            line(format!("condition condition_{index} = {};", expression(condition)));
        }
        for (index, action) in self.actions.iter().enumerate() {
            let parameters: Vec<String> =
                action.parameters.iter().map(|(name, kind)| format!("{name}: {}", kind.name())).collect();
            line(format!("action action_{index}({}) {{", parameters.join(", ")));
            line(block(&action.body, 1) + "}");
        }
        for (name, state) in STATES.iter().zip(&self.states) {
            let expires = state.expire.map_or(String::new(), |idle| format!(" expires after {idle}ns"));
            line(format!("{}state {name}{expires} {{", if *name == STATES[0] { "initial " } else { "" }));
            for (word, body) in [("enter", &state.enter), ("exit", &state.exit)] {
                if !body.is_empty() {
                    line(format!("    {word} {{\n{}    }}", block(body, 2)));
                }
            }
            for handler in &state.handlers {
                let event = match handler.event {
                    Event::Packet => "packet",
                    Event::Timer(timer) => TIMERS[timer].0,
                    Event::Turn => "go",
                    Event::Expire => "expire",
                };
                let from = handler.from.map_or(String::new(), |port| format!(" from {port}"));
                let when = handler.when.as_ref().map_or(String::new(), |when| format!(" when {}", expression(when)));
                line(format!("    on {event}{from}{when} {{\n{}    }}", block(&handler.body, 2)));
            }
            line("}".into());
        }
        text
    }
}

fn group(group: &Group) -> String {
    let names: Vec<&str> = group.states.iter().map(|state| STATES[*state]).collect();
    let mut text = format!("in {}", names.join(", "));
    if group.idle > 0 {
        text += &format!(" idle {}ns", group.idle);
    }
    if group.above > 0 {
        text += &format!(" above {}", group.above);
    }
    text
}

fn block(statements: &[Statement], depth: usize) -> String {
    statements.iter().map(|found| format!("{}{}\n", "    ".repeat(depth), statement(found, depth))).collect()
}

fn statement(statement: &Statement, depth: usize) -> String {
    let port = expression;
    match statement {
        Statement::Notify(notice, value) => format!("notify {}({});", NOTICES[*notice], expression(value)),
        Statement::Assign(register, value) => format!("{} = {};", REGISTERS[*register].0, expression(value)),
        Statement::Increase(register, value) => format!("{} += {};", REGISTERS[*register].0, expression(value)),
        Statement::SetField(packet, field, value, optional) => {
            let suffix = if *optional { " if present" } else { "" };
            format!("{} = {}{suffix};", field_name(*packet, *field), expression(value))
        }
        Statement::Let(name, kind, value) => {
            let kind = kind.map_or(String::new(), |kind| format!(": {}", kind.name()));
            format!("let {name}{kind} = {};", expression(value))
        }
        Statement::If(branches, otherwise) => {
            let indent = "    ".repeat(depth);
            let mut text = String::new();
            for (index, (condition, body)) in branches.iter().enumerate() {
                let word = if index == 0 { "if" } else { " else if" };
                let body = block(body, depth + 1);
                write!(text, "{word} {} {{\n{body}{indent}}}", expression(condition)).expect("a string takes all");
            }
            if !otherwise.is_empty() {
                write!(text, " else {{\n{}{indent}}}", block(otherwise, depth + 1)).expect("a string takes all");
            }
            text
        }
        Statement::Goto(state) => format!("goto {};", STATES[*state]),
        Statement::Delete => "delete instance;".into(),
        Statement::Call(action, arguments) => format!("action_{action}({});", list(arguments)),
        Statement::Set(timer, carried, delay, reset) => {
            let word = if *reset { "reset" } else { "set" };
            let carried = if carried.is_empty() { String::new() } else { format!("({})", list(carried)) };
            format!("{word} {}{carried} in {};", TIMERS[*timer].0, expression(delay))
        }
        Statement::Cancel(timer, tests) => {
            let (name, carried) = TIMERS[*timer];
            let test = |(index, comparison, value): &(usize, Comparison, Expression)| {
                format!("{} {} {}", carried[*index].0, symbol(*comparison), expression(value))
            };
            let tests: Vec<String> = tests.iter().map(test).collect();
            match tests.is_empty() {
                true => format!("cancel {name};"),
                false => format!("cancel {name} where {};", tests.join(" and ")),
            }
        }
        Statement::SetElement(index, value, increase) => {
            let sign = if *increase { "+=" } else { "=" };
            format!("{}[{}] {sign} {};", ARRAY.0, expression(index), expression(value))
        }
        Statement::Ask(rank, cost) => format!("ask go rank {} for {};", expression(rank), expression(cost)),
        Statement::Withdraw => "withdraw go;".into(),
        Statement::Step(value) => format!("step({});", expression(value)),
        Statement::Choose(module) => format!("{CHOSEN} = {module};"),
        Statement::Send(found, to) => format!("send {} to {};", packet(found), port(to)),
        Statement::Store(found, slot) => format!("store {} in {};", packet(found), SLOTS[*slot]),
        Statement::Discard(slot) => format!("discard {};", SLOTS[*slot]),
        Statement::Reverse(name) => format!("reverse {};", packet_name(*name)),
        Statement::Resize(name, length) => format!("resize {} to {};", packet_name(*name), expression(length)),
        Statement::KeepOptions(name, kind) => {
            format!("keep options {} in {};", if *kind == 2 { "mss" } else { "timestamps" }, packet_name(*name))
        }
    }
}

fn packet(packet: &Packet) -> String {
    match packet {
        Packet::Named(name) => packet_name(*name).into(),
        Packet::Template(template, fields) => {
            let set = |(field, value): &(usize, Expression)| {
                let (header, name, _) = FIELDS[*field];
                format!("{header}.{name} = {}; ", expression(value))
            };
            format!("{} {{ {}}}", TEMPLATES[*template].0, fields.iter().map(set).collect::<String>())
        }
    }
}

fn packet_name(name: PacketName) -> &'static str {
    match name {
        PacketName::Current => "packet",
        PacketName::Slot(slot) => SLOTS[slot],
    }
}

fn field_name(packet: PacketName, field: usize) -> String {
    let (header, name, _) = FIELDS[field];
    match packet {
        PacketName::Current => format!("{header}.{name}"),
        PacketName::Slot(slot) => format!("{}.{header}.{name}", SLOTS[slot]),
    }
}

fn list(values: &[Expression]) -> String {
    values.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}

fn expression(value: &Expression) -> String {
    let both = |left: &Expression, symbol: &str, right: &Expression| {
        format!("({} {symbol} {})", expression(left), expression(right))
    };
    match value {
        Expression::Plain(value) | Expression::Constant(Type::Integer, value) if *value >= 0 => value.to_string(),
        Expression::Plain(value) | Expression::Constant(Type::Integer, value) => format!("({value})"),
        Expression::Constant(Type::Unsigned, value) => format!("u64({})", *value as u64),
        Expression::Constant(Type::Sequence, value) => format!("seq32({value})"),
        Expression::Constant(Type::Time, value) => format!("{value}ns"),
        Expression::Constant(Type::Bool, value) => (*value != 0).to_string(),
        Expression::Register(register) => REGISTERS[*register].0.into(),
        Expression::Local(name) => name.clone(),
        Expression::Field(packet, field) => field_name(*packet, *field),
        Expression::Present(packet, field) => format!("present({})", field_name(*packet, *field)),
        Expression::Port => "packet.port".into(),
        Expression::Now => "now".into(),
        Expression::Carried(index) => format!("pair.{}", TIMERS[1].1[*index].0),
        Expression::Binary(operator, _, left, _, right) => {
            let symbol = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Multiply => "*",
                Operator::Divide => "/",
                Operator::Remainder => "%",
                Operator::And => "&",
                Operator::Or => "|",
                Operator::Xor => "^",
                Operator::ShiftLeft => "<<",
                Operator::ShiftRight => ">>",
            };
            both(left, symbol, right)
        }
        Expression::Complement(inner) => format!("(~{})", expression(inner)),
        Expression::Least(least, _, left, right) => {
            format!("{}({}, {})", if *least { "min" } else { "max" }, expression(left), expression(right))
        }
        Expression::Compare(comparison, _, left, right) => both(left, symbol(*comparison), right),
        Expression::And(left, right) => both(left, "and", right),
        Expression::Or(left, right) => both(left, "or", right),
        Expression::Not(inner) => format!("(not {})", expression(inner)),
        Expression::Cast(kind, inner) => format!("{}({})", kind.name(), expression(inner)),
        Expression::Speed(bytes, time) => format!("u64(({}) / ({}))", expression(bytes), expression(time)),
        Expression::AddressLiteral(address, value) => address.literal(*value),
        Expression::AddressCast(address, value) => format!("{}({})", address.name(), expression(value)),
        Expression::Masked(value, mask) => both(value, "&", mask),
        Expression::SameAddress(equal, left, right) => both(left, if *equal { "==" } else { "!=" }, right),
        Expression::Prefix(value, address, prefix, bits) => {
            format!("({} in {}/{bits})", expression(value), address.literal(*prefix))
        }
        Expression::Count(function, _, time) => format!("{function}({})", expression(time)),
        Expression::Named(condition) => format!("condition_{condition}"),
        Expression::Table(index) => format!("numbers[{}]", expression(index)),
        Expression::Element(index) => format!("{}[{}]", ARRAY.0, expression(index)),
        Expression::Waiting => "go.waiting".into(),
        Expression::Tally(tally) => TALLIES[*tally].into(),
    }
}
