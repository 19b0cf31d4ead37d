//! Compiled rules as a machine: the diagram as the handler of an XL program, which comes to a portable image.
//!
//! Every way through the diagram becomes a row of the image, so that this is for small sets of rules; what a machine
//! cannot do is refused by name. `docs/subscription-targets.md` says where it differs from the other outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use weftwire_core::{Format, FormatPlace, Port, builtin_formats};
use weftwire_image::VerifiedImage;
use weftwire_image::limits::MAX_ROWS;
use weftwire_lang::{Dialect, compile};
use weftwire_subscribe::compiler::{Actions, Compiler, StateId, Variable};
use weftwire_subscribe::diagram::NodeId;
use weftwire_subscribe::formats::{FieldId, HeaderId, Place};
use weftwire_subscribe::rules::{Aggregate, Function};
use weftwire_subscribe::values::Interval;
use weftwire_text::{LoadError, Loader, Severity};

/// A program and the header formats that it imports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XlProgram {
    /// The program, `switch.xl`.
    pub xl: String,
    /// Its headers, [`HEADERS`]; empty if it needs none.
    pub headers: String,
    /// Ways through the diagram, each of which becomes a row of the image; those that do nothing may not.
    pub rows: u64,
}

/// The name under which the program imports its headers.
pub const HEADERS: &str = "headers.p4";

/// Names with a meaning of their own in front of a dot.
const OWN_NAMES: [&str; 4] = ["packet", "flow", "data", "application"];

/// Why rules can't become a machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfit {
    /// A header of messages of a batch.
    #[error("`{0}` is in a message of a batch; machines see packets, not the messages in them")]
    Message(String),
    /// Windows where a packet may have several messages.
    #[error("`{0}` counts messages, of which packets may have several here; machines count packets")]
    Batch(String),
    /// A field that is too wide.
    #[error("`{field}` has {width} bits; machines compare up to 64")]
    Wide {
        /// The field.
        field: String,
        /// Its width in bits.
        width: u16,
    },
    /// A sum that may not fit.
    #[error("`{0}` may pass 64 bits; machines sum up fields of up to 32 bits")]
    Sum(String),
    /// An action of an application.
    #[error("`{0}` is an action of an application; a machine only forwards")]
    Call(String),
    /// A header that is in no packet.
    #[error("`{0}` has no place in packets")]
    Nowhere(String),
    /// A header with a name that means something else in programs.
    #[error("`{0}` means something else in a program; give the header another name")]
    Name(String),
    /// More rows than an image may have.
    #[error("the rules come to {0} rows; an image has room for {MAX_ROWS}")]
    Rows(u64),
    /// What the compiler of machines says.
    #[error("{0}")]
    Refused(String),
}

/// The machine that forwards as the compiled rules say.
///
/// # Errors
/// [`Unfit`].
pub fn machine(compiler: &Compiler, name: &str) -> Result<XlProgram, Unfit> {
    let mut writer = Writer { compiler, names: BTreeMap::new(), rows: BTreeMap::new(), used: Used::default() };
    writer.check()?;
    let rows = writer.rows(compiler.root());
    if rows > MAX_ROWS as u64 {
        return Err(Unfit::Rows(rows));
    }
    writer.name_headers()?;
    let imports = writer.imports();
    let mut xl = format!("// {} rules, compiled.\nmachine {};\n\n", compiler.rule_count(), identifier(name));
    if !imports.is_empty() {
        let _ = writeln!(xl, "import \"{HEADERS}\" {{");
        for format in &imports {
            let FormatPlace::After { header, when } = &format.place else { continue };
            let when = when.as_ref().map(|(of, field, value)| format!(" when {of}.{field} == {value}"));
            let _ = writeln!(xl, "    {} after {header}{};", format.name, when.unwrap_or_default());
        }
        xl += "}\n\n";
    }
    xl += "flow key none expires after 0s at most 1 flows;\n\n";
    let states: Vec<StateId> = writer.used.states.iter().copied().collect();
    for id in &states {
        for part in writer.parts(*id) {
            let _ = writeln!(xl, "register {}: u64;", part.register(*id));
        }
    }
    xl += if states.is_empty() { "" } else { "\n" };
    xl += "initial state switching {\n    on packet {\n";
    writer.place(compiler.root(), true, 2, &mut xl)?;
    xl += "    }\n}\n";
    Ok(XlProgram { rows, xl, headers: imports.iter().map(|format| header_text(format)).collect() })
}

impl XlProgram {
    /// The image that the program comes to.
    ///
    /// # Errors
    /// [`Unfit::Refused`]: it is too large, or a name of a header means something else in a program.
    pub fn image(&self) -> Result<VerifiedImage, Unfit> {
        let compilation = compile("switch.xl", Dialect::Xl, &Files(self));
        if let Some(error) = compilation.diagnostics.iter().find(|found| found.severity == Severity::Error) {
            return Err(Unfit::Refused(error.to_text(&compilation.sources)));
        }
        let image = compilation.image.ok_or_else(|| Unfit::Refused("there is no image".to_owned()))?;
        image.verify().map_err(|error| Unfit::Refused(error.to_string()))
    }
}

struct Files<'a>(&'a XlProgram);

impl Loader for Files<'_> {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, LoadError> {
        match (name, from) {
            (_, None) => Ok(self.0.xl.clone()),
            (HEADERS, Some(_)) => Ok(self.0.headers.clone()),
            _ => Err(LoadError::Unknown(name.to_owned())),
        }
    }
}

/// What one piece of state keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Number of the window.
    Number,
    Count,
    Sum,
    Least,
    Greatest,
}

impl Part {
    fn register(self, id: StateId) -> String {
        let part = match self {
            Part::Number => "number",
            Part::Count => "count",
            Part::Sum => "sum",
            Part::Least => "least",
            Part::Greatest => "greatest",
        };
        format!("window_{}_{part}", id.0)
    }
}

/// What the diagram asks for and does.
#[derive(Default)]
struct Used {
    headers: BTreeSet<HeaderId>,
    fields: BTreeSet<FieldId>,
    states: BTreeSet<StateId>,
}

struct Writer<'a> {
    compiler: &'a Compiler,
    /// Headers as programs call them.
    names: BTreeMap<HeaderId, &'a Format>,
    /// Rows that the part of the diagram behind a node comes to.
    rows: BTreeMap<NodeId, u64>,
    used: Used,
}

impl<'a> Writer<'a> {
    /// Collects what is used, and finds what no machine can do.
    fn check(&mut self) -> Result<(), Unfit> {
        let compiler = self.compiler;
        let (formats, diagram) = (compiler.formats(), compiler.diagram());
        let mut known = BTreeSet::from([compiler.root()]);
        let mut open = vec![compiler.root()];
        while let Some(id) = open.pop() {
            let Some(node) = diagram.node(id) else {
                let actions = self.actions(id);
                if let Some(call) = actions.calls.first() {
                    return Err(Unfit::Call(compiler.call(*call).to_string()));
                }
                self.used.states.extend(actions.updates);
                continue;
            };
            match compiler.variable(node.level) {
                Variable::Present(header) => drop(self.used.headers.insert(header)),
                Variable::Field(field) => drop(self.used.fields.insert(field)),
                Variable::State(_) => {}
            }
            open.extend(node.intervals().map(|(_, to)| to).filter(|to| known.insert(*to)));
        }
        for id in self.used.states.clone() {
            let name = || compiler.variable_name(Variable::State(id));
            if formats.batch_header().is_some() {
                return Err(Unfit::Batch(name()));
            }
            if let Aggregate::Window { function, field: Some(field), .. } = compiler.state(id).aggregate {
                if matches!(function, Function::Sum | Function::Avg) && formats.field(field).width > 32 {
                    return Err(Unfit::Sum(name()));
                }
                self.used.fields.insert(field);
            }
        }
        for id in &self.used.fields {
            let field = formats.field(*id);
            if field.width > 64 {
                return Err(Unfit::Wide { field: formats.full_name(*id), width: field.width });
            }
            self.used.headers.insert(field.header);
        }
        Ok(())
    }

    fn actions(&self, leaf: NodeId) -> Actions {
        leaf.leaf().map(|set| self.compiler.actions(set)).unwrap_or_default()
    }

    /// How many ways lead through the diagram behind a node. A leaf has one for each port that the packet may have come
    /// from and would go to, and one for all others.
    fn rows(&mut self, id: NodeId) -> u64 {
        if let Some(known) = self.rows.get(&id) {
            return *known;
        }
        let compiler = self.compiler;
        let rows = match compiler.diagram().node(id) {
            None => 1 + self.actions(id).ports.len() as u64,
            Some(node) => {
                let edges: Vec<(Interval, NodeId)> = node.intervals().collect();
                let otherwise = self.otherwise(&edges);
                let others = edges.iter().filter(|(_, to)| *to != otherwise);
                let rows: u64 = others.map(|(_, to)| self.rows(*to)).fold(0, u64::saturating_add);
                rows.saturating_add(self.rows(otherwise))
            }
        };
        self.rows.insert(id, rows);
        rows
    }

    /// Of a node's edges, where to go if no other holds: where that saves most rows.
    fn otherwise(&mut self, edges: &[(Interval, NodeId)]) -> NodeId {
        let mut saved: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (_, to) in edges {
            let rows = self.rows(*to);
            let sum = saved.entry(*to).or_default();
            *sum = sum.saturating_add(rows);
        }
        let kept = |to: &NodeId, sum: u64, rows: &BTreeMap<NodeId, u64>| sum - rows[to].min(sum);
        // Among equals it reads best to do nothing otherwise.
        let best = saved.iter().max_by_key(|(to, sum)| {
            (kept(to, **sum, &self.rows), **to == weftwire_subscribe::diagram::NOTHING, std::cmp::Reverse(**to))
        });
        best.map_or(weftwire_subscribe::diagram::NOTHING, |(to, _)| *to)
    }

    /// Finds what programs call the headers.
    fn name_headers(&mut self) -> Result<(), Unfit> {
        let formats = self.compiler.formats();
        let packet = formats.packet_formats();
        for id in &self.used.headers {
            let header = formats.header(*id);
            let place = match &header.place {
                Place::Packet(place) => *place,
                Place::Message { .. } | Place::Behind { .. } => return Err(Unfit::Message(header.name.clone())),
                Place::Nowhere => return Err(Unfit::Nowhere(header.name.clone())),
            };
            let of_place = |format: &&Format| {
                let first = format.fields.first();
                first.is_some_and(|field| packet.field(&format.name, &field.name) == Some(place))
            };
            let format = builtin_formats().iter().chain(packet.imports()).find(of_place);
            if format.is_some_and(|format| OWN_NAMES.contains(&format.name.as_str())) {
                return Err(Unfit::Name(header.name.clone()));
            }
            self.names.insert(*id, format.ok_or_else(|| Unfit::Nowhere(header.name.clone()))?);
        }
        Ok(())
    }

    /// The headers to import: those that are used, and those by which these are found.
    fn imports(&self) -> Vec<&'a Format> {
        let all: Vec<&Format> = self.compiler.formats().packet_formats().imports().collect();
        let mut needed: BTreeSet<&str> = self.names.values().map(|format| format.name.as_str()).collect();
        let mut imports = Vec::new();
        // What a header needs stands in front of it.
        for format in all.into_iter().rev() {
            if needed.contains(format.name.as_str()) {
                if let FormatPlace::After { header, when } = &format.place {
                    needed.insert(header);
                    needed.extend(when.iter().map(|(of, ..)| of.as_str()));
                }
                imports.push(format);
            }
        }
        imports.reverse();
        imports
    }

    /// A field as an expression.
    fn field(&self, id: FieldId) -> Result<String, Unfit> {
        let field = self.compiler.formats().field(id);
        let unknown = || Unfit::Nowhere(self.compiler.formats().full_name(id));
        let format = self.names.get(&field.header).ok_or_else(unknown)?;
        let same = |known: &&weftwire_core::FormatField| {
            known.option.is_none()
                && !known.name.is_empty()
                && (known.offset, known.width) == (field.offset, field.width)
        };
        let known = format.fields.iter().find(same).ok_or_else(unknown)?;
        Ok(format!("u64({}.{})", format.name, known.name))
    }

    /// What a piece of state keeps.
    fn parts(&self, id: StateId) -> Vec<Part> {
        let function = match self.compiler.state(id).aggregate {
            Aggregate::Counter(_) => Function::Count,
            Aggregate::Window { function, .. } => function,
        };
        let more = match function {
            Function::Count => None,
            Function::Sum | Function::Avg => Some(Part::Sum),
            Function::Min => Some(Part::Least),
            Function::Max => Some(Part::Greatest),
        };
        [Part::Number, Part::Count].into_iter().chain(more).collect()
    }

    /// A piece of state as an expression.
    fn value(&self, id: StateId) -> String {
        let register = |part: Part| part.register(id);
        match self.compiler.state(id).aggregate {
            Aggregate::Counter(_) => register(Part::Count),
            Aggregate::Window { function, .. } => match function {
                Function::Count => register(Part::Count),
                Function::Sum => register(Part::Sum),
                Function::Avg => format!("{} / {}", register(Part::Sum), register(Part::Count)),
                Function::Min => register(Part::Least),
                Function::Max => register(Part::Greatest),
            },
        }
    }

    /// Takes a packet into a window: without a branch, so that this takes no row of its own.
    fn update(&self, id: StateId, indent: &str, xl: &mut String) -> Result<(), Unfit> {
        let compiler = self.compiler;
        let (window_ns, field) = match compiler.state(id).aggregate {
            Aggregate::Counter(counter) => (compiler.formats().counters()[usize::from(counter.0)].window_ns, None),
            Aggregate::Window { field, window_ns, .. } => (window_ns, field),
        };
        let field = field.map(|field| self.field(field)).transpose()?.unwrap_or_default();
        let number = id.0;
        let [current, count] = [Part::Number, Part::Count].map(|part| part.register(id));
        let _ = writeln!(xl, "{indent}// {}", compiler.variable_name(Variable::State(id)));
        let _ = writeln!(xl, "{indent}let now_{number} = u64(now / {window_ns}ns);");
        let _ = writeln!(xl, "{indent}let same_{number} = u64({current} == now_{number} and {count} != 0);");
        for part in self.parts(id) {
            let register = part.register(id);
            let value = match part {
                Part::Number => format!("now_{number}"),
                Part::Count => format!("{register} * same_{number} + 1"),
                Part::Sum => format!("{register} * same_{number} + {field}"),
                // All bits set where nothing of the window was seen yet.
                Part::Least => format!("min({register} | (same_{number} - 1), {field})"),
                Part::Greatest => format!("max({register} * same_{number}, {field})"),
            };
            let _ = writeln!(xl, "{indent}{register} = {value};");
        }
        Ok(())
    }

    /// Writes what is behind a node. `fresh`: no window was brought up to date yet.
    fn place(&mut self, id: NodeId, fresh: bool, depth: usize, xl: &mut String) -> Result<(), Unfit> {
        let compiler = self.compiler;
        let indent = "    ".repeat(depth);
        let node = compiler.diagram().node(id);
        let variable = node.map(|node| compiler.variable(node.level));
        let last = matches!(variable, None | Some(Variable::State(_)));
        if fresh && last {
            for state in self.updates(id) {
                self.update(state, &indent, xl)?;
            }
        }
        let (Some(node), Some(variable)) = (node, variable) else {
            send(&self.actions(id).ports, &indent, xl);
            return Ok(());
        };
        let edges: Vec<(Interval, NodeId)> = node.intervals().collect();
        let otherwise = self.otherwise(&edges);
        let subject = match variable {
            Variable::Present(header) => format!("present({})", self.names[&header].name),
            Variable::Field(field) => self.field(field)?,
            Variable::State(state) => self.value(state),
        };
        let all = compiler.domain(node.level);
        let mut lead = indent.clone();
        for (values, to) in edges.iter().filter(|(_, to)| *to != otherwise) {
            let condition = match variable {
                Variable::Present(_) if values.first == 0 => format!("not {subject}"),
                Variable::Present(_) => subject.clone(),
                _ => condition(&subject, *values, all),
            };
            let _ = writeln!(xl, "{lead}if {condition} {{");
            self.place(*to, fresh && !last, depth + 1, xl)?;
            let _ = write!(xl, "{indent}}}");
            lead = " else ".to_owned();
        }
        if otherwise == weftwire_subscribe::diagram::NOTHING {
            xl.push('\n');
            return Ok(());
        }
        xl.push_str(" else {\n");
        self.place(otherwise, fresh && !last, depth + 1, xl)?;
        let _ = writeln!(xl, "{indent}}}");
        Ok(())
    }

    /// The pieces of state that are brought up to date where the tests of state begin: of all leaves the same.
    fn updates(&self, mut id: NodeId) -> Vec<StateId> {
        while let Some(node) = self.compiler.diagram().node(id) {
            id = node.next(0);
        }
        self.actions(id).updates
    }
}

fn condition(subject: &str, Interval { first, last }: Interval, all: Interval) -> String {
    match () {
        () if first == last => format!("{subject} == {first}"),
        () if first == all.first => format!("{subject} <= {last}"),
        () if last == all.last => format!("{subject} >= {first}"),
        () => format!("{subject} >= {first} and {subject} <= {last}"),
    }
}

/// Sends the packet to all ports but the one it came from.
fn send(ports: &[Port], indent: &str, xl: &mut String) {
    let list = |without: Option<&Port>, indent: &str| {
        let to = ports.iter().filter(|port| Some(*port) != without);
        to.map(|port| format!("{indent}send packet to {port};\n")).collect::<String>()
    };
    let inner = format!("{indent}    ");
    match ports {
        [] => {}
        [port] => {
            let _ = writeln!(xl, "{indent}if packet.port != {port} {{\n{}{indent}}}", list(None, &inner));
        }
        _ => {
            let mut lead = indent;
            for port in ports {
                let _ = write!(xl, "{lead}if packet.port == {port} {{\n{}{indent}}}", list(Some(port), &inner));
                lead = " else ";
            }
            let _ = writeln!(xl, " else {{\n{}{indent}}}", list(None, &inner));
        }
    }
}

/// A header in P4, bits without a name filled up.
fn header_text(format: &Format) -> String {
    let mut text = format!("header {} {{\n", format.name);
    let (mut at, mut gaps) = (0, 0);
    let mut fields: Vec<_> = format.fields.iter().filter(|field| !field.name.is_empty()).collect();
    fields.sort_by_key(|field| field.offset);
    let mut fill = |at: &mut u32, until: u32, text: &mut String| {
        while *at < until {
            let width = (until - *at).min(64);
            let _ = writeln!(text, "    bit<{width}> unnamed_{gaps};");
            gaps += 1;
            *at += width;
        }
    };
    for field in fields {
        fill(&mut at, field.offset, &mut text);
        let _ = writeln!(text, "    bit<{}> {};", field.width, field.name);
        at = field.offset + u32::from(field.width);
    }
    fill(&mut at, format.length, &mut text);
    text + "}\n"
}

/// A name as programs may have it.
fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let text: String = name.chars().map(plain).collect();
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { text } else { format!("switch_{text}") }
}
