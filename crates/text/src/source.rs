//! Source texts, and places in them.

use std::io;
use std::string::FromUtf8Error;

/// All texts of a program together may have so many bytes: what it includes and imports counts, too.
pub const MAX_TEXT: usize = 4 << 20;

/// Why a text can't be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system does not give the file.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The file is no text.
    #[error("it is no UTF-8 text: {0}")]
    NoText(FromUtf8Error),
    /// Nothing is known by this name.
    #[error("there is no `{0}` here")]
    Unknown(String),
    /// A program that stands alone names a file.
    #[error("`{0}` can't be read here: this program stands alone")]
    Alone(String),
    /// The file is none that the program may read.
    #[error("it lies outside {folder}, the program's own folder; allow its folder with --allow-includes")]
    Outside {
        /// The program's own folder.
        folder: String,
    },
}

/// Gives the text of a file that a program includes or imports.
pub trait Loader {
    /// The text of `name`, as written in the program, relative to the file `from` (`None`: the program itself).
    ///
    /// # Errors
    /// Why the text can't be had.
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, LoadError>;

    /// The name under which diagnostics and nested includes know `name` when it is named in `from`.
    fn resolve(&self, name: &str, _from: Option<&str>) -> String {
        name.to_string()
    }
}

/// A loader of one text that includes nothing.
impl Loader for &str {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, LoadError> {
        match from {
            None => Ok(self.to_string()),
            Some(_) => Err(LoadError::Alone(name.to_owned())),
        }
    }
}

/// A stretch of a source text, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Span {
    /// Index of the file in the [`SourceMap`].
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of `self` to the end of `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end.max(self.end), ..self }
    }
}

/// The texts of a program: the main file and what it includes.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// One text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where its lines start, in bytes.
    lines: Vec<u32>,
}

impl SourceFile {
    /// The line that a byte stands in, from 0, and where that line starts.
    fn line_of(&self, at: u32) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at).saturating_sub(1);
        (line, self.lines.get(line).map_or(0, |start| *start as usize))
    }
}

impl SourceMap {
    /// Adds a text and returns its index.
    pub fn add(&mut self, name: String, text: String) -> u16 {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        self.files.push(SourceFile { name, text, lines });
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// How many bytes all texts have together.
    pub fn length(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }

    /// All texts.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The text that a span points into.
    pub fn file(&self, span: Span) -> Option<&SourceFile> {
        self.files.get(usize::from(span.file))
    }

    /// Line of the span's start, from 1.
    pub fn line(&self, span: Span) -> u32 {
        self.file(span).map_or(0, |file| file.line_of(span.start).0 as u32 + 1)
    }

    /// Line and column of the span's start, both from 1; columns count characters.
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let Some(file) = self.file(span) else { return (0, 0) };
        let (line, line_start) = file.line_of(span.start);
        let before = file.text[line_start..].char_indices();
        let column = before.take_while(|(at, _)| line_start + at < span.start as usize).count();
        (line as u32 + 1, column as u32 + 1)
    }

    /// The character at a line and column, both from 1; behind the line's last one, the line's end.
    pub fn span_at(&self, file: u16, line: u32, column: u32) -> Span {
        let Some(source) = self.files.get(usize::from(file)) else { return Span { file, ..Span::default() } };
        let line = (line.max(1) as usize - 1).min(source.lines.len() - 1);
        let start = source.lines[line] as usize;
        let text = source.text[start..].split('\n').next().unwrap_or("");
        let (at, letter) = text.char_indices().nth(column.max(1) as usize - 1).unwrap_or((text.len(), '\0'));
        let length = if at < text.len() { letter.len_utf8() } else { 0 };
        Span { file, start: (start + at) as u32, end: (start + at + length) as u32 }
    }

    /// The spanned text.
    pub fn text(&self, span: Span) -> &str {
        self.file(span).and_then(|file| file.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let mut sources = SourceMap::default();
        let file = sources.add("a".to_owned(), "one\n\u{e9}\u{e9}x\n\nlast".to_owned());
        let span = |start, end| Span { file, start, end };
        for (line, column, wanted) in
            [(1, 1, span(0, 1)), (2, 2, span(6, 8)), (2, 3, span(8, 9)), (2, 9, span(9, 9)), (9, 4, span(14, 15))]
        {
            let found = sources.span_at(file, line, column);
            assert_eq!(found, wanted, "{line}:{column}");
            assert_eq!(sources.line(found), line.min(4));
        }
        assert_eq!(sources.line_column(span(6, 8)), (2, 2));
        assert_eq!(sources.line_column(span(7, 8)), (2, 3), "inside of a character is behind it");
        assert_eq!(sources.line_column(span(99, 99)), (4, 5));
    }
}
