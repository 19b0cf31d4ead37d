//! Parts of pages that all of them share: sections, facts, tables.

use crate::escape_markup;
use crate::grouped;
use std::fmt::Write as _;

/// A section with a title, a note and content; nothing if there is no content. `note` and `content` are markup.
pub fn section(body: &mut String, title: &str, note: &str, content: impl FnOnce() -> String) {
    let content = content();
    if content.is_empty() {
        return;
    }
    let _ = writeln!(body, "<section>\n<h2>{title}</h2>");
    if !note.is_empty() {
        let _ = writeln!(body, "<p class=\"note\">{note}</p>");
    }
    let _ = writeln!(body, "<div class=\"scroll\">\n{content}</div>\n</section>");
}

/// Content that opens when its summary is pressed. `summary` is text, `content` markup.
pub fn folded(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escape_markup(summary))
}

/// Names with values, side by side.
pub fn facts(body: &mut String, facts: &[(&str, String)]) {
    body.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(body, "<div><dt>{}</dt><dd>{}</dd></div>", escape_markup(name), escape_markup(value));
    }
    body.push_str("</dl>\n");
}

/// A box with paragraphs that want to be seen. `class`: `alert` or `calm`.
pub fn notice<'a>(body: &mut String, class: &str, paragraphs: impl IntoIterator<Item = &'a str>) {
    let mut paragraphs = paragraphs.into_iter().peekable();
    if paragraphs.peek().is_none() {
        return;
    }
    let _ = write!(body, "<div class=\"{class}\" role=\"note\">");
    for text in paragraphs {
        let _ = write!(body, "<p>{}</p>", escape_markup(text));
    }
    body.push_str("</div>\n");
}

/// A cell of a table.
pub enum Cell {
    /// Text, on the left.
    Text(String),
    /// A number, on the right.
    Number(String),
    /// A verdict: its class (`good`, `fair`, `bad`) and text.
    Verdict(&'static str, String),
}

impl Cell {
    /// Of this text, which is escaped.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// Of a number, its digits in groups.
    pub fn count(count: u64) -> Cell {
        Cell::Number(grouped(i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// A number that may be unknown.
    pub fn known(text: Option<String>) -> Cell {
        Cell::Number(text.unwrap_or_else(|| "-".to_owned()))
    }
}

/// A table; an empty text without rows. A column whose first cell is a number is aligned to the right.
pub fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut rows = rows.into_iter().peekable();
    let Some(first) = rows.peek() else { return String::new() };
    let class = if heads.len() > 9 { " class=\"wide\"" } else { "" };
    let mut out = format!("<table{class}>\n<thead><tr>");
    for (head, cell) in heads.iter().zip(first) {
        let side = if matches!(cell, Cell::Number(_)) { " class=\"right\"" } else { "" };
        let _ = write!(out, "<th{side}>{}</th>", escape_markup(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = match cell {
                Cell::Text(text) => write!(out, "<td>{}</td>", escape_markup(&text)),
                Cell::Number(text) if text == "0" || text == "-" => {
                    write!(out, "<td class=\"right zero\">{text}</td>")
                }
                Cell::Number(text) => write!(out, "<td class=\"right\">{}</td>", escape_markup(&text)),
                Cell::Verdict(class, text) => write!(out, "<td class=\"{class}\">{}</td>", escape_markup(&text)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    out
}

/// A complete HTML document around `body`, in the style of all of Weftwire's pages.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape_markup(title),
        concat!(include_str!("picture.css"), include_str!("style.css"))
    )
}

/// A chart or ladder as a picture that stands alone: with the style that a page has for it.
pub fn alone(picture: &str) -> String {
    match picture.split_once('\n') {
        Some((first, rest)) => {
            format!(
                "{first}\n<style>\n{}svg {{ background: var(--page); }}\n</style>\n{rest}",
                include_str!("picture.css")
            )
        }
        None => picture.to_owned(),
    }
}
