//! Source texts, and places in them.

/// Gives the text of a file that a program includes or imports.
pub trait Loader {
    /// The text of `name`, as written in the program, relative to the file `from` (`None`: the program itself).
    ///
    /// # Errors
    /// A sentence that says why the text can't be had.
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, String>;

    /// The name under which diagnostics and nested includes know `name` when it is named in `from`.
    fn resolve(&self, name: &str, _from: Option<&str>) -> String {
        name.to_string()
    }
}

/// A loader of one text that includes nothing.
impl Loader for &str {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, String> {
        match from {
            None => Ok(self.to_string()),
            Some(_) => Err(format!("`{name}` can't be read here: this program stands alone")),
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
}

impl SourceMap {
    /// Adds a text and returns its index.
    pub fn add(&mut self, name: String, text: String) -> u16 {
        self.files.push(SourceFile { name, text });
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// All texts.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The text that a span points into.
    pub fn file(&self, span: Span) -> Option<&SourceFile> {
        self.files.get(usize::from(span.file))
    }

    /// Line and column of the span's start, both from 1; columns count characters.
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let Some(file) = self.file(span) else { return (0, 0) };
        let mut start = (span.start as usize).min(file.text.len());
        while !file.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &file.text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line as u32, column as u32)
    }

    /// The spanned text.
    pub fn text(&self, span: Span) -> &str {
        self.file(span).and_then(|file| file.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }
}
