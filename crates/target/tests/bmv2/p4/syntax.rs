//! A grammar of P4_16, after its specification (version 1.2.4, appendix "P4 grammar") and not after the generator: all that
//! programs of one file may say, but generic declarations, header stacks and unions, and switch statements.

#[derive(Clone, PartialEq, Debug)]
pub enum Type {
    Bits(u32),
    Varbit(u32),
    Bool,
    Error,
    Void,
    /// A name, with arguments if it is generic.
    Named(String, Vec<Type>),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// With a width if it is written.
    Number(u128, Option<u32>),
    Bool(bool),
    Name(String),
    Member(Box<Expr>, String),
    Call(Box<Expr>, Vec<Type>, Vec<Expr>),
    Slice(Box<Expr>, u32, u32),
    Not(Box<Expr>),
    Binary(String, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Type, Box<Expr>),
    List(Vec<Expr>),
    /// In the cases of a selection: a value under a mask, and anything.
    Masked(Box<Expr>, Box<Expr>),
    Any,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    Assign(Expr, Expr),
    Call(Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    pub direction: String,
    pub kind: Type,
    pub name: String,
}

#[derive(Clone, Debug)]
pub struct Fields {
    pub name: String,
    pub is_header: bool,
    pub fields: Vec<(Type, String)>,
}

/// An object with its constructor's arguments, and functions if it has some of its own.
#[derive(Clone, Debug)]
pub struct Instance {
    pub kind: Type,
    pub arguments: Vec<Expr>,
    pub name: String,
    pub functions: Vec<Function>,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: String,
    pub statements: Vec<Statement>,
    /// What is selected by, and cases with the next states; a plain transition has one case for anything.
    pub select: Vec<Expr>,
    pub cases: Vec<(Vec<Expr>, String)>,
}

#[derive(Clone, Debug)]
pub struct Parser {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub instances: Vec<Instance>,
    pub states: Vec<State>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Value, kind and name.
    pub keys: Vec<(Expr, String, String)>,
    pub actions: Vec<String>,
    pub default: (String, Vec<Expr>),
    pub size: Option<u128>,
}

#[derive(Clone, Debug)]
pub struct Control {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub instances: Vec<Instance>,
    pub actions: Vec<Function>,
    pub tables: Vec<Table>,
    /// Numbers of tables and actions, where annotations give them.
    pub ids: Vec<(String, u128)>,
    pub apply: Vec<Statement>,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub includes: Vec<String>,
    pub types: Vec<Fields>,
    pub parsers: Vec<Parser>,
    pub controls: Vec<Control>,
    pub instances: Vec<Instance>,
}

const RESERVED: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "const",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "valueset",
    "varbit",
    "void",
];

/// Words that may still be names.
const NOT_QUITE_RESERVED: &[&str] = &["key", "actions", "apply", "state", "type", "entries", "list"];

struct Token {
    text: String,
    /// Whether it stands right behind the one before.
    adjacent: bool,
}

pub struct Reader {
    tokens: Vec<Token>,
    at: usize,
    includes: Vec<String>,
}

/// Reads a file. The directives of the preprocessor are only looked at for what they include.
pub fn read(text: &str) -> File {
    let mut reader = Reader { tokens: Vec::new(), at: 0, includes: Vec::new() };
    for line in text.lines() {
        if let Some(directive) = line.strip_prefix('#') {
            if let Some(name) = directive.strip_prefix("include ") {
                reader.includes.push(name.to_owned());
            } else {
                assert!(["if ", "else", "endif"].iter().any(|it| directive.starts_with(it)), "directive {line}");
            }
            continue;
        }
        reader.tokens(line.split("//").next().unwrap_or_default());
    }
    reader.file()
}

impl Reader {
    fn tokens(&mut self, line: &str) {
        let mut rest = line;
        let mut adjacent = false;
        loop {
            let trimmed = rest.trim_start();
            adjacent &= trimmed.len() == rest.len();
            rest = trimmed;
            let Some(first) = rest.chars().next() else { return };
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = if word(first) {
                rest.find(|c: char| !word(c)).unwrap_or(rest.len())
            } else if first == '"' {
                rest[1..].find('"').expect("an end of the text") + 2
            } else {
                let long = ["&&&", "|+|", "|-|", "&&", "||", "==", "!=", ">=", "<=", "<<", "++"];
                long.iter().find(|it| rest.starts_with(**it)).map_or(first.len_utf8(), |it| it.len())
            };
            self.tokens.push(Token { text: rest[..length].to_owned(), adjacent });
            rest = &rest[length..];
            adjacent = true;
        }
    }

    fn peek(&self) -> &str {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> &str {
        self.tokens.get(self.at + count).map_or("", |token| token.text.as_str())
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).map_or(String::new(), |token| token.text.clone())
    }

    fn is(&mut self, text: &str) -> bool {
        let found = self.peek() == text;
        self.at += usize::from(found);
        found
    }

    fn fail(&self, what: &str) -> ! {
        let near = &self.tokens[self.at.saturating_sub(10)..(self.at + 5).min(self.tokens.len())];
        panic!("{what}: {}", near.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" "))
    }

    fn expect(&mut self, text: &str) {
        if !self.is(text) {
            self.fail(&format!("`{text}` is missing"));
        }
    }

    fn name(&mut self) -> String {
        let name = self.next();
        let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_word || (RESERVED.contains(&name.as_str()) && !NOT_QUITE_RESERVED.contains(&name.as_str())) {
            self.fail(&format!("`{name}` is no name"));
        }
        name
    }

    /// Parts that a separator stands between, up to an end.
    fn list<T>(&mut self, end: &str, mut part: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut all = Vec::new();
        if self.is(end) {
            return all;
        }
        loop {
            all.push(part(self));
            if self.is(end) {
                return all;
            }
            self.expect(",");
        }
    }

    fn file(mut self) -> File {
        let mut file = File { includes: std::mem::take(&mut self.includes), ..File::default() };
        while self.at < self.tokens.len() {
            match self.peek() {
                "header" | "struct" => {
                    let is_header = self.next() == "header";
                    let name = self.name();
                    self.expect("{");
                    let mut fields = Vec::new();
                    while !self.is("}") {
                        let kind = self.kind();
                        fields.push((kind, self.name()));
                        self.expect(";");
                    }
                    file.types.push(Fields { name, is_header, fields });
                }
                "parser" => {
                    let parser = self.parser();
                    file.parsers.push(parser);
                }
                "control" => {
                    let control = self.control();
                    file.controls.push(control);
                }
                _ => {
                    let instance = self.instance();
                    file.instances.push(instance);
                }
            }
        }
        file
    }

    fn kind(&mut self) -> Type {
        match self.peek() {
            "bit" | "varbit" => {
                let is_bit = self.next() == "bit";
                self.expect("<");
                let width = self.next().parse().ok().filter(|width| *width > 0);
                let width = width.unwrap_or_else(|| self.fail("a width"));
                self.expect(">");
                if is_bit { Type::Bits(width) } else { Type::Varbit(width) }
            }
            "bool" => {
                self.next();
                Type::Bool
            }
            "error" => {
                self.next();
                Type::Error
            }
            "void" => {
                self.next();
                Type::Void
            }
            _ => {
                let name = self.name();
                let arguments = if self.is("<") { self.list(">", Self::kind) } else { Vec::new() };
                Type::Named(name, arguments)
            }
        }
    }

    fn parameters(&mut self) -> Vec<Parameter> {
        self.expect("(");
        self.list(")", |reader| {
            let directed = ["in", "out", "inout"].contains(&reader.peek());
            let direction = if directed { reader.next() } else { String::new() };
            let kind = reader.kind();
            Parameter { direction, kind, name: reader.name() }
        })
    }

    fn instance(&mut self) -> Instance {
        let kind = self.kind();
        self.expect("(");
        let arguments = self.list(")", Self::value);
        let name = self.name();
        let mut functions = Vec::new();
        if self.is("=") {
            self.expect("{");
            while !self.is("}") {
                assert_eq!(self.kind(), Type::Void);
                let (name, parameters) = (self.name(), self.parameters());
                self.expect("{");
                functions.push(Function { name, parameters, body: self.block() });
            }
        }
        self.expect(";");
        Instance { kind, arguments, name, functions }
    }

    fn parser(&mut self) -> Parser {
        self.expect("parser");
        let (name, parameters) = (self.name(), self.parameters());
        self.expect("{");
        let (mut instances, mut states) = (Vec::new(), Vec::new());
        while !self.is("}") {
            if !self.is("state") {
                instances.push(self.instance());
                continue;
            }
            let name = self.name();
            self.expect("{");
            let mut statements = Vec::new();
            while !self.is("transition") {
                statements.push(self.statement());
            }
            let (mut select, mut cases) = (Vec::new(), Vec::new());
            if self.is("select") {
                self.expect("(");
                select = self.list(")", Self::value);
                self.expect("{");
                while !self.is("}") {
                    let values = self.keyset();
                    self.expect(":");
                    cases.push((values, self.name()));
                    self.expect(";");
                }
            } else {
                cases.push((Vec::new(), self.name()));
                self.expect(";");
            }
            self.expect("}");
            states.push(State { name, statements, select, cases });
        }
        Parser { name, parameters, instances, states }
    }

    fn keyset(&mut self) -> Vec<Expr> {
        if self.is("default") {
            return Vec::new();
        }
        if self.is("(") { self.list(")", Self::masked) } else { vec![self.masked()] }
    }

    fn masked(&mut self) -> Expr {
        if self.is("_") {
            return Expr::Any;
        }
        let value = self.value();
        if self.is("&&&") { Expr::Masked(Box::new(value), Box::new(self.value())) } else { value }
    }

    fn control(&mut self) -> Control {
        self.expect("control");
        let (name, parameters) = (self.name(), self.parameters());
        self.expect("{");
        let mut control = Control {
            name,
            parameters,
            instances: Vec::new(),
            actions: Vec::new(),
            tables: Vec::new(),
            ids: Vec::new(),
            apply: Vec::new(),
        };
        loop {
            let mut id = None;
            if self.is("@") {
                assert_eq!(self.next(), "id");
                self.expect("(");
                let Expr::Number(number, None) = self.value() else { self.fail("a number") };
                self.expect(")");
                id = Some(number);
                assert!(["action", "table"].contains(&self.peek()));
            }
            match self.peek() {
                "action" => {
                    self.next();
                    let (name, parameters) = (self.name(), self.parameters());
                    self.expect("{");
                    control.ids.extend(id.map(|id| (name.clone(), id)));
                    control.actions.push(Function { name, parameters, body: self.block() });
                }
                "table" => {
                    let table = self.table();
                    control.ids.extend(id.map(|id| (table.name.clone(), id)));
                    control.tables.push(table);
                }
                "apply" => {
                    self.next();
                    self.expect("{");
                    control.apply = self.block();
                    self.expect("}");
                    return control;
                }
                _ => {
                    let instance = self.instance();
                    control.instances.push(instance);
                }
            }
        }
    }

    fn table(&mut self) -> Table {
        self.expect("table");
        let name = self.name();
        let mut table =
            Table { name, keys: Vec::new(), actions: Vec::new(), default: (String::new(), Vec::new()), size: None };
        self.expect("{");
        while !self.is("}") {
            let property = self.next();
            self.expect("=");
            match property.as_str() {
                "key" => {
                    self.expect("{");
                    while !self.is("}") {
                        let value = self.value();
                        self.expect(":");
                        let kind = self.name();
                        self.expect("@");
                        assert_eq!(self.next(), "name");
                        self.expect("(");
                        let name = self.next().trim_matches('"').to_owned();
                        self.expect(")");
                        self.expect(";");
                        table.keys.push((value, kind, name));
                    }
                }
                "actions" => {
                    self.expect("{");
                    while !self.is("}") {
                        table.actions.push(self.name());
                        self.expect(";");
                    }
                }
                "default_action" => {
                    let name = self.name();
                    self.expect("(");
                    table.default = (name, self.list(")", Self::value));
                    self.expect(";");
                }
                "size" => {
                    let Expr::Number(size, None) = self.value() else { self.fail("a size") };
                    table.size = Some(size);
                    self.expect(";");
                }
                _ => self.fail("property"),
            }
        }
        table
    }

    fn block(&mut self) -> Vec<Statement> {
        let mut all = Vec::new();
        while !self.is("}") {
            all.push(self.statement());
        }
        all
    }

    fn statement(&mut self) -> Statement {
        if self.is("if") {
            self.expect("(");
            let test = self.value();
            self.expect(")");
            self.expect("{");
            let yes = self.block();
            let mut no = Vec::new();
            if self.is("else") {
                self.expect("{");
                no = self.block();
            }
            return Statement::If(test, yes, no);
        }
        let to = self.value();
        let statement = match to {
            Expr::Call(..) => Statement::Call(to),
            _ => {
                self.expect("=");
                Statement::Assign(to, self.value())
            }
        };
        self.expect(";");
        statement
    }

    pub fn value(&mut self) -> Expr {
        let test = self.binary(0);
        if !self.is("?") {
            return test;
        }
        let yes = self.value();
        self.expect(":");
        Expr::Choice(Box::new(test), Box::new(yes), Box::new(self.value()))
    }

    /// Operators by how close they bind, the loosest first.
    fn binary(&mut self, level: usize) -> Expr {
        const LEVELS: &[&[&str]] = &[
            &["||"],
            &["&&"],
            &["==", "!="],
            &["<", ">", "<=", ">="],
            &["|"],
            &["^"],
            &["&"],
            &["<<", ">>"],
            &["+", "-", "|+|", "|-|", "++"],
            &["*", "/", "%"],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1);
        loop {
            // Two closing brackets of types are no shift; a shift is two right behind each other.
            let shift = self.peek() == ">"
                && self.ahead(1) == ">"
                && self.tokens.get(self.at + 1).is_some_and(|token| token.adjacent);
            let operator = if shift { ">>".to_owned() } else { self.peek().to_owned() };
            if !operators.contains(&operator.as_str()) {
                return left;
            }
            self.at += if shift { 2 } else { 1 };
            let right = self.binary(level + 1);
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn unary(&mut self) -> Expr {
        if self.is("!") {
            return Expr::Not(Box::new(self.unary()));
        }
        if self.peek() == "(" && ["bit", "bool"].contains(&self.ahead(1)) {
            self.next();
            let kind = self.kind();
            self.expect(")");
            return Expr::Cast(kind, Box::new(self.unary()));
        }
        let mut value = self.primary();
        loop {
            if self.is(".") {
                value = Expr::Member(Box::new(value), self.next());
            } else if self.is("(") {
                value = Expr::Call(Box::new(value), Vec::new(), self.list(")", Self::value));
            } else if self.peek() == "<" && self.ahead(1) == "bit" {
                self.next();
                let kinds = self.list(">", Self::kind);
                self.expect("(");
                value = Expr::Call(Box::new(value), kinds, self.list(")", Self::value));
            } else if self.is("[") {
                let (high, low) = {
                    let high = self.next().parse().expect("a bit");
                    self.expect(":");
                    (high, self.next().parse().expect("a bit"))
                };
                self.expect("]");
                value = Expr::Slice(Box::new(value), high, low);
            } else {
                return value;
            }
        }
    }

    fn primary(&mut self) -> Expr {
        let token = self.peek().to_owned();
        match token.as_str() {
            "(" => {
                self.next();
                let value = self.value();
                self.expect(")");
                value
            }
            "{" => {
                self.next();
                Expr::List(self.list("}", Self::value))
            }
            "true" | "false" => Expr::Bool(self.next() == "true"),
            "error" => {
                self.next();
                Expr::Name("error".to_owned())
            }
            _ if token.starts_with(|c: char| c.is_ascii_digit()) => {
                self.next();
                number(&token)
            }
            _ => Expr::Name(self.name()),
        }
    }
}

fn number(text: &str) -> Expr {
    let (width, digits) = match text.split_once('w') {
        Some((width, digits)) => (Some(width.parse().expect("a width")), digits),
        None => (None, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).expect("hexadecimal"),
        None => digits.parse().expect("decimal"),
    };
    assert!(width.is_none_or(|width| width >= 128 || value >> width == 0), "{text} does not fit");
    Expr::Number(value, width)
}
