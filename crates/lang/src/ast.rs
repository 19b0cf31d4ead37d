//! The syntax tree, shared by XL proper and the published dialect.

use weftwire_text::lexer::NumberValue;
use weftwire_text::source::Span;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A program: everything at its top, in order, includes expanded.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// `machine NAME;`, or the file's name.
    pub name: String,
    /// The declarations.
    pub items: Vec<Item>,
}

/// A declaration.
#[derive(Clone, Debug)]
pub enum Item {
    /// `const NAME = expression;`
    Constant { name: Name, value: Expression },
    /// `condition NAME = expression;`, and the dialect's `Event`.
    Condition { name: Name, value: Expression },
    /// `value NAME = expression;`
    Value { name: Name, value: Expression },
    /// `import "file.p4" { header [as NAME] after HEADER [when FIELD == VALUE] [with FIELD: type, ...]; ... }`
    Import { file: Name, headers: Vec<ImportedHeader> },
    /// `flow key ...;`
    Flow(FlowDeclaration),
    /// `other packets ...;`: the pairs of ports to pass between, none to drop.
    OtherPackets { pairs: Vec<(Expression, Expression)>, span: Span },
    /// `register NAME, NAME: type = value;`
    Register { names: Vec<Name>, kind: Option<Name>, initial: Option<Expression> },
    /// `register NAME[LENGTH]: type = value;`
    Array { name: Name, length: Expression, kind: Option<Name>, initial: Option<Expression> },
    /// `slot NAME, NAME;`
    Slot { names: Vec<Name> },
    /// `template NAME: transport, header { ... }`
    Template(TemplateDeclaration),
    /// `timer NAME(value: type, ...);`
    Timer { name: Name, payload: Vec<(Name, Option<Name>)> },
    /// `ranges NAME at most N;`, `receive buffer NAME SIZE at most N ranges;`
    Ranges { name: Name, bytes: Option<Expression>, most: Expression },
    /// `send buffer SIZE;`
    SendBuffer { bytes: Expression, span: Span },
    /// `segments NAME(field: type, ...) at most N;`
    Segments { name: Name, fields: Vec<(Name, Option<Name>)>, most: Expression },
    /// `shared NAME counts flows in STATE, ...;` or `... settings of TIMER, ...;`
    Tally { name: Name, flows: bool, counted: Vec<Name> },
    /// `turns NAME at most N;`
    Turns { name: Name, most: Expression },
    /// `table NAME = [..];` or `table NAME(index in first..last) = formula;`
    Table { name: Name, contents: TableContents },
    /// `pacer NAME = "ENVELOPE";`
    Pacer(PacerDeclaration),
    /// `action NAME(parameter: type, ...) { ... }`
    Action(ActionDeclaration),
    /// `interface NAME { ... }`
    Interface(InterfaceDeclaration),
    /// `module NAME is INTERFACE { ... }`
    Module(ModuleDeclaration),
    /// `use INTERFACE from MODULE, ... by parameter NAME;`
    Use(UseDeclaration),
    /// `#debug REGISTER every INTERVAL`
    Sample { register: Name, interval: Expression },
    /// A state.
    State(StateDeclaration),
    /// `in STATE, ... { on ... }`: handlers of several states; `None`: of all.
    Shared { states: Option<Vec<Name>>, handlers: Vec<Handler> },
}

/// One header of an import.
#[derive(Clone, Debug)]
pub struct ImportedHeader {
    /// The P4 header type.
    pub header: Name,
    /// What the program calls it.
    pub alias: Name,
    /// The header in front.
    pub after: Name,
    /// The test on a field in front.
    pub when: Option<(Vec<Name>, Expression)>,
    /// Fields and their types, of those that are more than numbers.
    pub types: Vec<(Name, Name)>,
}

/// `flow key`.
#[derive(Clone, Debug)]
pub struct FlowDeclaration {
    /// Fields of the one side.
    pub source: Vec<Vec<Name>>,
    /// Fields of the other side.
    pub destination: Vec<Vec<Name>>,
    /// Fields of no side.
    pub common: Vec<Vec<Name>>,
    /// `<->`
    pub symmetric: bool,
    /// `expires after`
    pub expire: Option<Expression>,
    /// `at most N flows`
    pub max: Option<Expression>,
    /// `at most N timers`
    pub max_timers: Option<Expression>,
    /// `when full`
    pub when_full: FullPolicy,
    /// Its place.
    pub span: Span,
}

/// `when full ...`
#[derive(Clone, Debug, Default)]
pub enum FullPolicy {
    /// `reject`
    Reject,
    /// `evict oldest`, the default
    #[default]
    EvictOldest,
    /// `evict oldest in STATE, ... [then in STATE, ...]`
    EvictOldestIn(Vec<EvictedStates>),
}

/// `in STATE, ... [idle TIME] [above COUNT]`
#[derive(Clone, Debug)]
pub struct EvictedStates {
    /// The states.
    pub states: Vec<Name>,
    /// Idle for at least so long.
    pub idle: Option<Expression>,
    /// Only if there are more.
    pub above: Option<Expression>,
}

/// A packet template.
#[derive(Clone, Debug)]
pub struct TemplateDeclaration {
    /// Its name.
    pub name: Name,
    /// `tcp` or `udp`, then imported headers.
    pub headers: Vec<Name>,
    /// TCP options.
    pub options: Vec<TemplateOption>,
    /// `payload N;`
    pub payload: Option<Expression>,
    /// Fields set from the start.
    pub fields: Vec<(Vec<Name>, Expression)>,
}

/// A TCP option of a template: `NAME`, `NAME if CONDITION`, `sack BLOCKS`.
#[derive(Clone, Debug)]
pub struct TemplateOption {
    /// The option.
    pub name: Name,
    /// When it is there, or how many blocks it has; `None`: always.
    pub wanted: Option<Expression>,
}

/// A table's contents.
#[derive(Clone, Debug)]
pub enum TableContents {
    /// Given entries, from index 0.
    Given(Vec<Expression>),
    /// A formula over an index from `first` to `last`, both included.
    Formula(Box<TableFormula>),
}

/// The formula of a computed table.
#[derive(Clone, Debug)]
pub struct TableFormula {
    /// The index's name.
    pub index: Name,
    /// First index.
    pub first: Expression,
    /// Last index.
    pub last: Expression,
    /// The entry's value, by the index.
    pub formula: Expression,
}

/// A pacer: `pacer NAME [= "ENVELOPE"] [packet size BYTES] [entries COUNT];`
#[derive(Clone, Debug)]
pub struct PacerDeclaration {
    /// Its name, which is also its envelope if no other is given.
    pub name: Name,
    /// The rate envelope's text; the span has the quotes.
    pub envelope: Option<Name>,
    /// `packet size BYTES`
    pub packet_size: Option<Expression>,
    /// `entries COUNT`
    pub entries: Option<Expression>,
}

/// Parameters and their types.
pub type Parameters = Vec<(Name, Option<Name>)>;

/// An action: statements with parameters.
#[derive(Clone, Debug)]
pub struct ActionDeclaration {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub parameters: Parameters,
    /// What it does.
    pub body: Vec<Statement>,
}

/// What modules have in common: registers that they share with the program, and actions that it calls.
#[derive(Clone, Debug)]
pub struct InterfaceDeclaration {
    /// Its name.
    pub name: Name,
    /// Declarations of registers.
    pub registers: Vec<Item>,
    /// Its actions.
    pub actions: Vec<InterfaceAction>,
}

/// `action NAME(parameter: type, ...);`, or with a body.
#[derive(Clone, Debug)]
pub struct InterfaceAction {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub parameters: Parameters,
    /// What it does in modules that don't have it; `None`: every module has it.
    pub body: Option<Vec<Statement>>,
}

/// One way to do what an interface asks for.
#[derive(Clone, Debug)]
pub struct ModuleDeclaration {
    /// Its name.
    pub name: Name,
    /// The interface.
    pub interface: Name,
    /// Its declarations.
    pub items: Vec<Item>,
}

/// `use INTERFACE from MODULE, ... [by parameter NAME [= MODULE]];`
#[derive(Clone, Debug)]
pub struct UseDeclaration {
    /// The interface.
    pub interface: Name,
    /// The modules to choose from.
    pub modules: Vec<Name>,
    /// The register that says which, and the one that it names from the start.
    pub parameter: Option<(Name, Option<Name>)>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct StateDeclaration {
    /// Its name.
    pub name: Name,
    /// `initial`
    pub initial: bool,
    /// A `#debug` in front.
    pub debug: bool,
    /// `expires after`
    pub expire: Option<Expression>,
    /// `enter { ... }`
    pub enter: Vec<Statement>,
    /// `exit { ... }`
    pub exit: Vec<Statement>,
    /// `on ...`, in order.
    pub handlers: Vec<Handler>,
}

/// `on EVENT [from PORT] [when CONDITION] { ... }`
#[derive(Clone, Debug)]
pub struct Handler {
    /// `packet`, `connect`, `close`, `data`, `expire` or a timer's name.
    pub event: Name,
    /// `from PORT`
    pub from: Option<Expression>,
    /// `when CONDITION`
    pub when: Option<Expression>,
    /// A `#debug` in front.
    pub debug: bool,
    /// What it does.
    pub body: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// Its place.
    pub span: Span,
}

/// Kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `target = value [if present];`, `target += value;`
    Assign { target: Vec<Name>, operator: Option<BinaryOperator>, value: Expression, optional: bool },
    /// `array[index] = value;`, `array[index] += value;`
    SetElement(Box<ElementStatement>),
    /// `let name[: type] = value;`
    Let { name: Name, kind: Option<Name>, value: Expression },
    /// `if`, `else if`, `else`
    If { branches: Vec<Branch>, otherwise: Vec<Statement> },
    /// `repeat COUNT [while CONDITION] { ... }`
    Repeat(Box<Repeat>),
    /// `send PACKET to PORT [cut to SIZE];`
    Send { packet: PacketExpression, port: Expression, cut: Option<Box<Expression>> },
    /// `store PACKET in SLOT;`
    Store { packet: PacketExpression, slot: Name },
    /// `discard SLOT;`
    Discard { slot: Name },
    /// `reverse PACKET;`
    Reverse { packet: Name },
    /// `keep options KIND, ... in PACKET;`
    KeepOptions { kinds: Vec<Name>, packet: Name },
    /// `resize PACKET to LENGTH;`
    Resize { packet: Name, length: Expression },
    /// `set TIMER(values) in DELAY;`; `reset` cancels the earlier settings first.
    Set { timer: Name, arguments: Vec<Expression>, delay: Expression, reset: bool },
    /// `pace TIMER[(values)] with PACER[(UNIT)];`
    Pace(PaceStatement),
    /// `restart PACER;`
    Restart { pacer: Name },
    /// `cancel TIMER [where tests];`
    Cancel { timer: Name, tests: Option<Expression> },
    /// `move TIMER [where tests] to in DELAY;`; `fire TIMER [where tests];` without a delay.
    Move { timer: Name, tests: Option<Expression>, delay: Option<Expression> },
    /// `ask TURNS [rank RANK] for TIME;`
    Ask { turns: Name, rank: Option<Expression>, cost: Expression },
    /// `withdraw TURNS;`
    Withdraw { turns: Name },
    /// `goto STATE;`
    Goto { state: Name },
    /// `delete instance;`
    DeleteInstance,
    /// `restart instance;`
    RestartInstance,
    /// `deliver PACKET[(offset, length)];`
    Deliver { packet: Name, range: Option<(Expression, Expression)> },
    /// `release LENGTH;`
    Release { length: Expression },
    /// `notify NAME[(value)];`
    Notify { name: Name, value: Option<Expression> },
    /// About ranges, the receive buffer or segments.
    Sequence(Box<SequenceStatement>),
    /// `ACTION(values);`
    Call { action: Name, arguments: Vec<Expression> },
}

impl StatementKind {
    /// Whether it ends with a block, without a semicolon.
    pub fn ends_with_block(&self) -> bool {
        match self {
            StatementKind::If { .. } | StatementKind::Repeat(_) => true,
            StatementKind::Sequence(statement) => matches!(**statement, SequenceStatement::Change { .. }),
            _ => false,
        }
    }
}

/// `array[index] = value;`, `array[index] += value;`
#[derive(Clone, Debug)]
pub struct ElementStatement {
    /// The array.
    pub array: Name,
    /// Which element.
    pub index: Expression,
    /// The operator in front of the `=`.
    pub operator: Option<BinaryOperator>,
    /// The value.
    pub value: Expression,
}

/// `repeat COUNT [while CONDITION] { ... }`
#[derive(Clone, Debug)]
pub struct Repeat {
    /// How often at most.
    pub count: Expression,
    /// As long as it holds.
    pub condition: Option<Expression>,
    /// What.
    pub body: Vec<Statement>,
}

/// Statements about ranges, the receive buffer and segments.
#[derive(Clone, Debug)]
pub enum SequenceStatement {
    /// `begin NAME at POSITION;`
    Begin { store: Name, at: Expression },
    /// `trim NAME to POSITION;`
    Trim { store: Name, to: Expression },
    /// `add RANGES(left, right);`
    Add { ranges: Name, arguments: Vec<Expression> },
    /// `hold PACKET[(offset, length)] at POSITION in BUFFER;`
    Hold { packet: Name, range: Option<(Expression, Expression)>, at: Expression, buffer: Name },
    /// `deliver BUFFER to POSITION;`
    DeliverHeld { buffer: Name, to: Expression },
    /// `append SEGMENTS(end, values);`
    Append { segments: Name, arguments: Vec<Expression> },
    /// `split SEGMENTS at POSITION;`
    Split { segments: Name, at: Expression },
    /// `change SEGMENTS [where tests] { field = value; ... }`
    Change { segments: Name, tests: Option<Expression>, writes: Vec<(Name, Expression)> },
}

/// `pace TIMER[(values)] with PACER[(UNIT)];`
#[derive(Clone, Debug)]
pub struct PaceStatement {
    /// The timer to set.
    pub timer: Name,
    /// What the setting carries.
    pub arguments: Vec<Expression>,
    /// The pacer that knows the gap.
    pub pacer: Name,
    /// How long a round trip is.
    pub unit: Option<Expression>,
}

/// A branch of an `if`.
#[derive(Clone, Debug)]
pub struct Branch {
    /// When.
    pub condition: Expression,
    /// What.
    pub body: Vec<Statement>,
    /// A `#debug` in front.
    pub debug: bool,
}

/// A packet in `send` and `store`: the current one, a slot, or a template with fields and data.
#[derive(Clone, Debug)]
pub struct PacketExpression {
    /// `packet`, a slot or a template.
    pub name: Name,
    /// Fields to set, of a template.
    pub fields: Vec<(Vec<Name>, Expression)>,
    /// `with data(offset, length)`
    pub data: Option<(Expression, Expression)>,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Its place.
    pub span: Span,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    /// A number with its unit.
    Number { value: NumberValue, unit: String },
    /// An Ethernet address.
    Mac(u64),
    /// An IPv4 address.
    Ipv4(u32),
    /// `name` or `a.b` or `a.b.c`
    Path(Vec<Name>),
    /// `not x`, `-x`, `~x`
    Unary(UnaryOperator, Box<Expression>),
    /// `x + y`
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `f(x, y)`
    Call(Name, Vec<Expression>),
    /// `object.question(x, y)`
    Question(Box<Question>),
    /// `table[index]`
    Index(Name, Box<Expression>),
    /// What did not parse; was reported.
    Error,
}

/// `object.question(x, y)`
#[derive(Clone, Debug)]
pub struct Question {
    /// Ranges, the receive buffer or segments.
    pub object: Name,
    /// What is asked.
    pub name: Name,
    /// Its arguments.
    pub arguments: Vec<Expression>,
}

/// Operators in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `not`
    Not,
    /// `-`
    Negate,
    /// `~`
    Complement,
}

/// Operators between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOperator {
    /// As written.
    pub fn symbol(self) -> &'static str {
        use BinaryOperator::*;
        match self {
            Or => "or",
            And => "and",
            Equal => "==",
            NotEqual => "!=",
            Less => "<",
            LessEqual => "<=",
            Greater => ">",
            GreaterEqual => ">=",
            BitOr => "|",
            BitXor => "^",
            BitAnd => "&",
            ShiftLeft => "<<",
            ShiftRight => ">>",
            Add => "+",
            Subtract => "-",
            Multiply => "*",
            Divide => "/",
            Remainder => "%",
        }
    }

    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        use BinaryOperator::*;
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }
}
