//! A small document of headings, notes and tables, and its three written forms.

use std::fmt::Write as _;
use weftwire_draw::escape_markup;

/// A document in reading order.
#[derive(Default)]
pub(crate) struct Document(Vec<Block>);

enum Block {
    Heading(u8, String),
    Note(String),
    Table(Table),
}

/// A table; each cell is a list of lines.
pub(crate) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Vec<String>>>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(columns: &[&'static str]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, one cell a column.
    pub(crate) fn row(&mut self, cells: Vec<Vec<String>>) {
        self.rows.push(cells);
    }
}

impl Document {
    /// Adds a heading; level 1 is the greatest.
    pub(crate) fn heading(&mut self, level: u8, text: impl Into<String>) {
        self.0.push(Block::Heading(level, text.into()));
    }

    /// Adds a line of text.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.0.push(Block::Note(text.into()));
    }

    /// Adds a table, unless it is empty.
    pub(crate) fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.0.push(Block::Table(table));
        }
    }

    /// Aligned plain text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for block in &self.0 {
            match block {
                Block::Heading(level, text) => {
                    let line = match level {
                        1 => "=".repeat(text.chars().count()),
                        2 => "-".repeat(text.chars().count()),
                        _ => String::new(),
                    };
                    let _ = writeln!(out, "{}{text}", if out.is_empty() { "" } else { "\n" });
                    if !line.is_empty() {
                        let _ = writeln!(out, "{line}");
                    }
                }
                Block::Note(text) => {
                    let _ = writeln!(out, "  {text}");
                }
                Block::Table(table) => table.text(&mut out),
            }
        }
        out
    }

    /// Markdown with pipe tables.
    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        for block in &self.0 {
            match block {
                Block::Heading(level, text) => {
                    let _ = writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), markdown_escape(text));
                }
                Block::Note(text) => {
                    let _ = writeln!(out, "{}\n", markdown_escape(text));
                }
                Block::Table(table) => {
                    let _ = writeln!(out, "| {} |", table.columns.join(" | "));
                    let _ = writeln!(out, "|{}", " --- |".repeat(table.columns.len()));
                    for row in &table.rows {
                        let cells: Vec<String> = row
                            .iter()
                            .map(|lines| {
                                lines.iter().map(|line| markdown_escape(line)).collect::<Vec<_>>().join("<br>")
                            })
                            .collect();
                        let _ = writeln!(out, "| {} |", cells.join(" | "));
                    }
                    out.push('\n');
                }
            }
        }
        out
    }

    /// An HTML fragment: headings from `h2` on, and tables of class `rules`.
    pub(crate) fn html(&self) -> String {
        let mut out = String::new();
        for block in &self.0 {
            match block {
                Block::Heading(level, text) => {
                    let level = (level + 1).min(6);
                    let _ = writeln!(out, "<h{level}>{}</h{level}>", escape_markup(text));
                }
                Block::Note(text) => {
                    let _ = writeln!(out, "<p class=\"note\">{}</p>", escape_markup(text));
                }
                Block::Table(table) => table.html(&mut out),
            }
        }
        out
    }
}

impl Table {
    fn text(&self, out: &mut String) {
        let mut widths: Vec<usize> = self.columns.iter().map(|name| name.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.iter().map(|line| line.chars().count()).fold(*width, usize::max);
            }
        }
        let line = |out: &mut String, cells: &[&str]| {
            let mut text = String::from(" ");
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(text, " {cell:<width$} ");
            }
            let _ = writeln!(out, "{}", text.trim_end());
        };
        line(out, &self.columns);
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        line(out, &rule.iter().map(String::as_str).collect::<Vec<_>>());
        // Rows of several lines are told apart by an empty line.
        let spaced = self.rows.iter().flatten().any(|cell| cell.len() > 1);
        for (number, row) in self.rows.iter().enumerate() {
            if spaced && number > 0 {
                out.push('\n');
            }
            for index in 0..row.iter().map(Vec::len).max().unwrap_or(0) {
                let cells: Vec<&str> = row.iter().map(|cell| cell.get(index).map_or("", String::as_str)).collect();
                line(out, &cells);
            }
        }
    }

    fn html(&self, out: &mut String) {
        out.push_str("<div class=\"scroll\"><table class=\"rules\">\n<thead><tr>");
        for name in &self.columns {
            let _ = write!(out, "<th class=\"{name}\">{name}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (cell, name) in row.iter().zip(&self.columns) {
                let lines: Vec<String> = cell.iter().map(|line| escape_markup(line)).collect();
                let _ = write!(out, "<td class=\"{name}\">{}</td>", lines.join("<br>"));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
}

fn markdown_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
