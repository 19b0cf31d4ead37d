//! Recursive descent over tokens. It never gives up: after an error it goes on behind the next `;` or block.

mod cursor;
mod declaration;
mod expression;
mod module;
mod statement;

pub(crate) use cursor::{Cursor, MAX_DEPTH, MAX_OPERATORS};

use crate::ast::Program;
use std::collections::BTreeSet;
use weftwire_text::diagnostic::{Diagnostic, MAX_REPORTED};
use weftwire_text::lexer::lex;
use weftwire_text::source::{Loader, MAX_TEXT, SourceMap, Span};

/// Includes may nest this deep.
const MAX_INCLUDE_DEPTH: usize = 16;
/// A program may have so many files.
const MAX_FILES: usize = 1_000;

/// Parses XL proper, includes expanded.
pub(crate) fn parse_program(
    name: &str,
    loader: &dyn Loader,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Program {
    let mut program = Program { name: stem(name), items: Vec::new() };
    let mut reader = Reader { loader, sources, diagnostics, open: Vec::new(), seen: BTreeSet::new() };
    reader.read(name, None, &mut program);
    program
}

/// The file's name without folders and ending, as a machine's name.
pub(crate) fn stem(name: &str) -> String {
    const LONGEST: usize = 30;
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let shown = stem.chars().map(|letter| if letter.is_control() { '_' } else { letter }).take(LONGEST).collect();
    if stem.is_empty() { "machine".to_string() } else { shown }
}

/// Loads one text, or reports why not.
pub(crate) fn load_tokens(
    name: &str,
    from: Option<(&str, Span)>,
    loader: &dyn Loader,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(u16, Vec<weftwire_text::lexer::Token>)> {
    let place = from.map_or(Span::default(), |(_, span)| span);
    match loader.load(name, from.map(|(file, _)| file)) {
        Ok(text) if text.len() <= MAX_TEXT - sources.length() && sources.files().len() < MAX_FILES => {
            let file = sources.add(loader.resolve(name, from.map(|(file, _)| file)), text);
            let tokens = lex(file, &sources.files()[usize::from(file)].text, diagnostics);
            Some((file, tokens))
        }
        Ok(text) => {
            diagnostics.push(too_much_text(place, name, text.len()));
            None
        }
        Err(why) => {
            diagnostics.push(Diagnostic::error(place, format!("can't read `{name}`: {why}")));
            None
        }
    }
}

/// What is said of a text for which there is no room left.
pub(crate) fn too_much_text(place: Span, name: &str, length: usize) -> Diagnostic {
    let message = format!("`{name}` has {length} bytes, too many for this program");
    let help = format!("a program has at most {} MiB of text in {MAX_FILES} files, all together", MAX_TEXT >> 20);
    Diagnostic::error(place, message).help(help)
}

struct Reader<'a> {
    loader: &'a dyn Loader,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// Files being read, outermost first.
    open: Vec<String>,
    /// Files read: an include that comes again brings nothing new.
    seen: BTreeSet<String>,
}

impl Reader<'_> {
    fn read(&mut self, name: &str, from: Option<(&str, Span)>, program: &mut Program) {
        let resolved = self.loader.resolve(name, from.map(|(file, _)| file));
        if let Some((_, span)) = from {
            if self.open.contains(&resolved) {
                self.diagnostics.push(Diagnostic::error(span, format!("`{name}` includes itself")));
                return;
            }
            if self.open.len() >= MAX_INCLUDE_DEPTH {
                let error = Diagnostic::error(span, format!("includes nest deeper than {MAX_INCLUDE_DEPTH}"));
                self.diagnostics.push(error);
                return;
            }
            if self.seen.contains(&resolved) {
                return;
            }
        }
        let Some((_, tokens)) = load_tokens(name, from, self.loader, self.sources, self.diagnostics) else { return };
        self.open.push(resolved.clone());
        self.seen.insert(resolved.clone());
        let mut cursor = Cursor::new(&tokens);
        while !cursor.at_end() {
            let before = cursor.position();
            if cursor.take_word("include") {
                let file = cursor.text("a file name in quotes");
                cursor.semicolon();
                self.diagnostics.append(&mut cursor.diagnostics);
                if let Some(file) = file {
                    self.read(&file.text, Some((&resolved, file.span)), program);
                    if self.diagnostics.len() > MAX_REPORTED {
                        break;
                    }
                }
            } else if cursor.take_word("machine") {
                if let Some(name) = cursor.name("the machine's name") {
                    program.name = name.text;
                }
                cursor.semicolon();
            } else if let Some(item) = cursor.item() {
                program.items.push(item);
            }
            cursor.must_move(before);
        }
        self.diagnostics.append(&mut cursor.diagnostics);
        self.open.pop();
    }
}
