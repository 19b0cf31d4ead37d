//! Header types out of P4_16 source: `header NAME { bit<N> field; ... }` (P4_16 language specification, section 7.2.2).
//!
//! Any `.p4` text will do: parsers, controls and preprocessor lines are skipped; `typedef` and `const` declarations are
//! understood where they give a field its width. Annotations are kept as text (section 18), for whoever knows them.

use std::collections::{BTreeMap, BTreeSet};

mod lexer;

use lexer::{Token, TokenKind};

/// Widest field that is read.
pub const MAX_FIELD_WIDTH: u16 = 2048;
/// Longest header that is read, in bits: longer than any packet.
const MAX_HEADER: u32 = 8 * 65_535;
/// Longest text that is read, in bytes.
pub const MAX_TEXT: usize = 4 << 20;
/// So many errors are told.
const MAX_ERRORS: usize = 100;

/// A header type with fields of fixed width.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderType {
    /// Its name.
    pub name: String,
    /// Line of its declaration, from 1.
    pub line: u32,
    /// Its fields in order; at least one.
    pub fields: Vec<HeaderField>,
    /// The annotations in front of it.
    pub annotations: Vec<Annotation>,
}

impl HeaderType {
    /// Sum of the fields' widths in bits, a multiple of 8.
    pub fn length(&self) -> u32 {
        self.fields.iter().map(|field| u32::from(field.width)).sum()
    }

    /// Of a header annotated `@invariant_crc` the names of its fields annotated `@variant`; see
    /// [`crate::Format::invariant_crc`].
    pub fn invariant_crc(&self) -> Option<Vec<String>> {
        let has = |list: &[Annotation], name| list.iter().any(|annotation| annotation.name == name);
        let variant = self.fields.iter().filter(|field| has(&field.annotations, "variant"));
        has(&self.annotations, "invariant_crc").then(|| variant.map(|field| field.name.clone()).collect())
    }
}

/// A field of a header type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// Bits from the start of the header.
    pub offset: u32,
    /// Width in bits, 1 to [`MAX_FIELD_WIDTH`].
    pub width: u16,
    /// The annotations in front of it.
    pub annotations: Vec<Annotation>,
}

/// An annotation: `@name`, `@name(text)`, `@name[text]`, or a line `@pragma name text`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Annotation {
    /// Its name; of a pragma, the pragma's.
    pub name: String,
    /// What stands in its brackets, or behind a pragma's name; may be empty.
    pub text: String,
    /// Where that text starts, in bytes from the start of the source.
    pub start: usize,
}

/// A member of a struct, as programs declare the headers they parse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its type's name.
    pub type_name: String,
    /// Its name.
    pub name: String,
}

/// What [`parse_source`] finds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// The header types in order.
    pub headers: Vec<HeaderType>,
    /// The lines `@pragma` outside of declarations, in order.
    pub pragmas: Vec<Annotation>,
    /// The members of all structs whose type is a plain name, in order.
    pub members: Vec<Member>,
}

/// What is wrong in P4 source, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {message}; {help}")]
pub struct P4Error {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: String,
}

/// Reads all header types of a P4 text, in order.
///
/// # Errors
/// Everything that is wrong with the header types, in order. Faults elsewhere in the text are not looked for.
pub fn parse_headers(text: &str) -> Result<Vec<HeaderType>, Vec<P4Error>> {
    parse_source(text).map(|source| source.headers)
}

/// Reads the header types, pragmas and struct members of a P4 text.
///
/// # Errors
/// As [`parse_headers`].
pub fn parse_source(text: &str) -> Result<Source, Vec<P4Error>> {
    if text.len() > MAX_TEXT {
        let message = format!("this text has {} bytes", text.len());
        let help = format!("a .p4 text has at most {} MiB", MAX_TEXT >> 20);
        return Err(vec![P4Error { line: 1, column: 1, message, help }]);
    }
    let mut parser = Parser {
        text,
        tokens: lexer::tokens(text),
        at: 0,
        types: BTreeMap::new(),
        constants: BTreeMap::new(),
        names: BTreeSet::new(),
        source: Source::default(),
        errors: Vec::new(),
    };
    parser.declarations();
    if parser.errors.is_empty() { Ok(parser.source) } else { Err(parser.errors) }
}

struct Parser<'a> {
    text: &'a str,
    /// Ends with a token of kind `End`.
    tokens: Vec<Token<'a>>,
    at: usize,
    /// Widths of `typedef` and `type` names.
    types: BTreeMap<&'a str, u16>,
    constants: BTreeMap<&'a str, i128>,
    /// Names of the headers so far.
    names: BTreeSet<&'a str>,
    source: Source,
    errors: Vec<P4Error>,
}

/// An operation of two numbers; `None` if it overflows or divides by zero.
type Arithmetic = fn(i128, i128) -> Option<i128>;

/// Deepest nesting of parentheses in a constant; generous, and keeps hostile text from exhausting the stack.
const MAX_DEPTH: usize = 64;

impl<'a> Parser<'a> {
    fn declarations(&mut self) {
        loop {
            let annotations = self.annotations();
            match self.peek().kind {
                TokenKind::End => return,
                TokenKind::Name("header") => match self.header(annotations) {
                    Ok(header) => self.source.headers.push(header),
                    Err(error) => {
                        self.errors.push(error);
                        if self.errors.len() == MAX_ERRORS {
                            return;
                        }
                        self.skip_declaration();
                    }
                },
                TokenKind::Name("typedef" | "type") => {
                    // Types that are no field of a header (structs, stacks) are of no interest here.
                    let start = self.at;
                    if let Ok((name, width)) = self.type_name() {
                        self.types.insert(name, width);
                    }
                    self.at = start;
                    self.skip_declaration();
                }
                TokenKind::Name("const") => {
                    let start = self.at;
                    if let Ok((name, value)) = self.constant() {
                        self.constants.insert(name, value);
                    }
                    self.at = start;
                    self.skip_declaration();
                }
                TokenKind::Name("struct") => {
                    let start = self.at;
                    self.members();
                    self.at = start;
                    self.skip_declaration();
                }
                _ => self.skip_declaration(),
            }
        }
    }

    /// `struct NAME { TYPE name; ... }`; members of other shapes end the search.
    fn members(&mut self) {
        self.next();
        if self.name("the struct's name").is_err() || !self.accept('{') {
            return;
        }
        loop {
            self.annotations();
            let (TokenKind::Name(type_name), Ok(_)) = (self.peek().kind, self.name("a type")) else { return };
            let Ok(name) = self.name("the member's name") else { return };
            if !self.accept(';') {
                return;
            }
            self.source.members.push(Member { type_name: type_name.to_owned(), name: name.to_owned() });
        }
    }

    /// `header NAME { fields }`
    fn header(&mut self, annotations: Vec<Annotation>) -> Result<HeaderType, P4Error> {
        let line = self.next().line;
        let name_token = self.peek();
        let name = self.name("the header's name")?;
        if self.names.contains(name) {
            return Err(error(name_token, format!("header `{name}` is declared twice"), "give it a name of its own"));
        }
        self.mark('{', "`{` and the fields, like `header h { bit<16> f; }`")?;
        let mut fields: Vec<HeaderField> = Vec::new();
        let mut known = BTreeSet::new();
        let mut length: u32 = 0;
        loop {
            let annotations = self.annotations();
            if self.accept('}') {
                break;
            }
            let width = self.width()?;
            let field_token = self.peek();
            let field = self.name("the field's name")?;
            if !known.insert(field) {
                let message = format!("field `{field}` is declared twice in header `{name}`");
                return Err(error(field_token, message, "give each field a name of its own"));
            }
            self.mark(';', "`;` behind the field")?;
            fields.push(HeaderField { name: field.to_owned(), offset: length, width, annotations });
            length += u32::from(width);
            if length > MAX_HEADER {
                let message = format!("header `{name}` is longer than {} bytes", MAX_HEADER / 8);
                return Err(error(field_token, message, "no packet is so long"));
            }
        }
        if fields.is_empty() {
            return Err(error(name_token, format!("header `{name}` has no fields"), "declare at least one"));
        }
        if !length.is_multiple_of(8) {
            let missing = 8 - length % 8;
            return Err(error(
                name_token,
                format!("header `{name}` is {length} bits long, which is not a whole number of bytes"),
                &format!("add {missing} bits of padding, like `bit<{missing}> reserved;`"),
            ));
        }
        self.names.insert(name);
        Ok(HeaderType { name: name.to_owned(), line, fields, annotations })
    }

    /// `typedef TYPE NAME;`
    fn type_name(&mut self) -> Result<(&'a str, u16), P4Error> {
        self.next();
        self.annotations();
        let width = self.width()?;
        Ok((self.name("the type's name")?, width))
    }

    /// `const TYPE NAME = VALUE;`
    fn constant(&mut self) -> Result<(&'a str, i128), P4Error> {
        self.next();
        if matches!(self.peek().kind, TokenKind::Name("int")) && self.tokens[self.at + 1].kind != TokenKind::Mark('<') {
            self.next();
        } else {
            self.width()?;
        }
        let name = self.name("the constant's name")?;
        self.mark('=', "`=` and the value")?;
        let value = self.expression(1, 0)?;
        self.mark(';', "`;` behind the value")?;
        Ok((name, value))
    }

    /// A field's type: `bit<N>`, `int<N>`, `bit`, `bool` or a name for one of these.
    fn width(&mut self) -> Result<u16, P4Error> {
        let token = self.next();
        const WANTED: &str = "a field is `bit<N> name;`, with N a number or a constant";
        match token.kind {
            TokenKind::Name("bool") => Ok(1),
            TokenKind::Name("bit") if self.peek().kind != TokenKind::Mark('<') => Ok(1),
            TokenKind::Name("bit" | "int") => {
                self.mark('<', "the width in angle brackets, like `bit<16>`")?;
                let width_token = self.peek();
                let width = self.expression(1, 0)?;
                self.mark('>', "`>` behind the width")?;
                match u16::try_from(width) {
                    Ok(width @ 1..=MAX_FIELD_WIDTH) => Ok(width),
                    _ => Err(error(
                        width_token,
                        format!("a field can't be {width} bits wide"),
                        &format!("widths go from 1 to {MAX_FIELD_WIDTH}"),
                    )),
                }
            }
            TokenKind::Name("varbit") => {
                Err(error(token, "fields of variable width are not supported".to_owned(), "use `bit<N>`"))
            }
            TokenKind::Name(name) => match self.types.get(name) {
                Some(width) => Ok(*width),
                None => Err(error(
                    token,
                    format!("`{name}` is no known type of fixed width"),
                    &format!("{WANTED}; or declare `typedef bit<N> {name};` before"),
                )),
            },
            _ => Err(error(token, format!("expected a field, found {}", token.kind), WANTED)),
        }
    }

    /// Sums and products: the arithmetic that widths are written in. Reads operators that bind at least as tightly
    /// as `level` (1: sums, 2: products).
    fn expression(&mut self, level: u8, depth: usize) -> Result<i128, P4Error> {
        let mut value = self.factor(depth)?;
        loop {
            let operator = self.peek();
            let (binding, apply): (u8, Arithmetic) = match operator.kind {
                TokenKind::Mark('+') => (1, i128::checked_add),
                TokenKind::Mark('-') => (1, i128::checked_sub),
                TokenKind::Mark('*') => (2, i128::checked_mul),
                TokenKind::Mark('/') => (2, i128::checked_div),
                TokenKind::Mark('%') => (2, i128::checked_rem),
                _ => return Ok(value),
            };
            if binding < level {
                return Ok(value);
            }
            self.next();
            let right = self.expression(binding + 1, depth)?;
            value = apply(value, right)
                .ok_or_else(|| error(operator, "this has no value".to_owned(), "it overflows, or divides by zero"))?;
        }
    }

    fn factor(&mut self, depth: usize) -> Result<i128, P4Error> {
        let token = self.next();
        match token.kind {
            TokenKind::Number(value) => Ok(value),
            TokenKind::Name(name) => self.constants.get(name).copied().ok_or_else(|| {
                let help = format!("declare `const int {name} = ...;` before its use");
                error(token, format!("`{name}` is no known constant"), &help)
            }),
            TokenKind::Mark('(') if depth < MAX_DEPTH => {
                let value = self.expression(1, depth + 1)?;
                self.mark(')', "`)`")?;
                Ok(value)
            }
            _ => Err(error(token, format!("expected a number, found {}", token.kind), "a number or a constant's name")),
        }
    }

    /// Annotations: `@name`, `@name(...)`, `@name[...]`. Lines `@pragma` go to the source's own list.
    fn annotations(&mut self) -> Vec<Annotation> {
        let mut annotations = Vec::new();
        while self.accept('@') {
            let token = self.next();
            let TokenKind::Name(name) = token.kind else { continue };
            if name == "pragma" {
                self.pragma(token.line);
                continue;
            }
            let mut body = token.start + name.len()..token.start + name.len();
            if matches!(self.peek().kind, TokenKind::Mark('(' | '[')) {
                body.start = self.peek().start + 1;
                self.skip_brackets();
                // The bracket that closes, or the end of the text.
                body.end = self.tokens[self.at - 1].start.max(body.start);
            }
            annotations.push(self.annotation(name, body));
        }
        annotations
    }

    /// The rest of a line `@pragma NAME TEXT`.
    fn pragma(&mut self, line: u32) {
        let start = self.peek().start;
        let name = match self.peek().kind {
            TokenKind::Name(name) if self.peek().line == line => name,
            _ => "",
        };
        let length = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
        while self.peek().line == line && self.peek().kind != TokenKind::End {
            self.next();
        }
        if !name.is_empty() {
            let annotation = self.annotation(name, start + name.len()..start + length);
            self.source.pragmas.push(annotation);
        }
    }

    fn annotation(&self, name: &str, body: std::ops::Range<usize>) -> Annotation {
        let start = body.start;
        Annotation { name: name.to_owned(), text: self.text.get(body).unwrap_or("").to_owned(), start }
    }

    /// Skips a declaration: up to a `;` outside of brackets, or a closing `}`.
    fn skip_declaration(&mut self) {
        loop {
            match self.peek().kind {
                TokenKind::End => return,
                TokenKind::Mark('{') => {
                    self.skip_brackets();
                    self.accept(';');
                    return;
                }
                TokenKind::Mark('(' | '[') => self.skip_brackets(),
                TokenKind::Mark(';' | '}') => {
                    self.next();
                    return;
                }
                _ => {
                    self.next();
                }
            }
        }
    }

    /// Skips a bracket and everything up to the one that closes it.
    fn skip_brackets(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.next().kind {
                TokenKind::End => return,
                TokenKind::Mark('(' | '[' | '{') => depth += 1,
                TokenKind::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    /// Takes a token; the last one, of kind `End`, is never passed.
    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn accept(&mut self, mark: char) -> bool {
        let there = self.peek().kind == TokenKind::Mark(mark);
        if there {
            self.next();
        }
        there
    }

    fn mark(&mut self, mark: char, wanted: &str) -> Result<(), P4Error> {
        if self.accept(mark) {
            return Ok(());
        }
        let found = self.peek();
        Err(error(found, format!("unexpected {}", found.kind), &format!("expected {wanted}")))
    }

    fn name(&mut self, wanted: &str) -> Result<&'a str, P4Error> {
        let found = self.peek();
        let TokenKind::Name(name) = found.kind else {
            return Err(error(found, format!("unexpected {}", found.kind), &format!("expected {wanted}")));
        };
        self.next();
        Ok(name)
    }
}

fn error(at: Token<'_>, message: String, help: &str) -> P4Error {
    P4Error { line: at.line, column: at.column, message, help: help.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_headers_between_everything_else() {
        let text = r#"
            #include <core.p4>
            #define NOT_READ \
                header
            typedef bit<48> mac_t; /* a comment; header no { } */
            const bit<16> WIDTH = 16w0x8 * (1 + 1);
            const int SMALL = 4;
            @name("a;}{") struct metadata { bit<3> odd; }
            parser P(packet_in b)(int x) { state start { transition accept; } }
            @controller_header("in") header first {
                mac_t source; // trailing
                @optional bit<WIDTH> kind;
                bit<SMALL> low; bit<(SMALL + 8) / 3> high; bool b; bit c; int<6> d;
            }
            control C(inout first f) { apply { f.kind = 1; } }
            Switch(P(), C()) main;
            header second { bit<8> only; }
        "#;
        let headers = parse_headers(text).unwrap();
        assert_eq!(
            headers.iter().map(|h| (h.name.as_str(), h.length())).collect::<Vec<_>>(),
            [("first", 80), ("second", 8)]
        );
        let places: Vec<_> = headers[0].fields.iter().map(|f| (f.name.as_str(), f.offset, f.width)).collect();
        assert_eq!(
            places,
            [
                ("source", 0, 48),
                ("kind", 48, 16),
                ("low", 64, 4),
                ("high", 68, 4),
                ("b", 72, 1),
                ("c", 73, 1),
                ("d", 74, 6)
            ]
        );
    }

    #[test]
    fn keeps_annotations_pragmas_and_members() {
        let text = r#"
            @pragma query_field(itch.shares, 32)
            @place[after=udp, text="a]("] @other header itch_t { @match(exact) bit<32> shares; bit<8> plain; }
            struct headers { ethernet_t ethernet; itch_t itch; bit<3> odd; itch_t unseen; }
            @pragma last"#;
        let source = parse_source(text).unwrap();
        let texts = |list: &[Annotation]| {
            for annotation in list {
                assert!(text[annotation.start..].starts_with(&annotation.text));
            }
            list.iter().map(|a| (a.name.clone(), a.text.clone())).collect::<Vec<_>>()
        };
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(texts(&source.pragmas), [pair("query_field", "(itch.shares, 32)"), pair("last", "")]);
        let header = &source.headers[0];
        assert_eq!(texts(&header.annotations), [pair("place", "after=udp, text=\"a](\""), pair("other", "")]);
        assert_eq!(texts(&header.fields[0].annotations), [pair("match", "exact")]);
        assert_eq!(header.fields[1].annotations, []);
        let members: Vec<_> = source.members.iter().map(|m| (m.type_name.as_str(), m.name.as_str())).collect();
        assert_eq!(members, [("ethernet_t", "ethernet"), ("itch_t", "itch")]);
    }

    #[test]
    fn errors_say_where_and_what_would_be_right() {
        let message = |text: &str| parse_headers(text).unwrap_err().iter().map(P4Error::to_string).collect::<Vec<_>>();
        assert_eq!(
            message("header h {\n  bit<3> a;\n}"),
            [
                "1:8: header `h` is 3 bits long, which is not a whole number of bytes; add 5 bits of padding, like `bit<5> reserved;`"
            ]
        );
        assert_eq!(
            message("header h { bit<8> a; bit<8> a; } header g { bit<0> z; } header ok { bit<8> a; }"),
            [
                "1:29: field `a` is declared twice in header `h`; give each field a name of its own",
                "1:49: a field can't be 0 bits wide; widths go from 1 to 2048",
            ]
        );
        assert!(message("header h { mac_t a; }")[0].contains("`mac_t` is no known type"));
        assert!(message("header h { varbit<8> a; }")[0].contains("variable width"));
        assert!(message("header h { bit<1 / 0> a; }")[0].contains("no value"));
        assert!(message("header h {}")[0].contains("no fields"));
        assert!(message("header h { bit<8> a")[0].contains("end of the text"));
        assert_eq!(message(&format!("header h {{ bit<{}", "(".repeat(100_000))).len(), 1);
        assert!(message(&format!("header h {{ {} }}", field_list(300, 2048)))[0].contains("longer than 65535 bytes"));
        assert_eq!(message(&"header h { } ".repeat(1_000)).len(), 100);
        assert!(message(&" ".repeat(MAX_TEXT + 1))[0].contains("at most 4 MiB"));
    }

    fn field_list(count: usize, width: usize) -> String {
        (0..count).map(|n| format!("bit<{width}> f{n}; ")).collect()
    }

    #[test]
    fn many_headers_and_fields_are_read() {
        let many: String = (0..50_000).map(|n| format!("header h{n} {{ bit<8> a; }} ")).collect();
        assert_eq!(parse_headers(&many).unwrap().len(), 50_000);
        let long = format!("header h {{ {} }}", field_list(100_000, 1));
        assert_eq!(parse_headers(&long).unwrap()[0].fields.len(), 100_000);
    }

    #[test]
    fn letters_outside_ascii_are_marks_like_others() {
        let errors = parse_headers("\u{feff}header \u{e9}\u{1f980} { bit<8> a; }").unwrap_err();
        assert_eq!(errors[0].to_string(), "1:8: unexpected `\u{e9}`; expected the header's name");
        assert_eq!(parse_headers("\u{feff}header first { bit<8> a; }").unwrap().len(), 1);
        for inside in [
            "@\u{e9}(\u{e9}) ",
            "@a[\u{e9}",
            "@a(\"\u{e9}\u{e9}\") ",
            "@pragma \u{e9}\n",
            "@pragma a \u{e9}\n",
            "#\u{e9}\n",
            "const int \u{e9} = 1;",
        ] {
            let _whatever = parse_source(&format!("{inside} header h {{ {inside} bit<8> a; }}"));
        }
    }
}
