//! Errors and warnings with their source lines, for people.

use crate::console::{self, tell};
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use std::io::IsTerminal;
use weftwire_text::diagnostic::MAX_REPORTED;
use weftwire_text::{Diagnostic, Severity, SourceMap};

/// A longer piece of source is cut to what is around its marked place.
const LONGEST_PIECE: usize = 400;
/// How much of a long line is shown in front of and behind the place where the marked one starts.
const AROUND: usize = 60;

/// Shows diagnostics with their source lines: all, or the first of very many.
pub fn show(diagnostics: &[Diagnostic], sources: &SourceMap) {
    // The compiler of programs reports at most so many errors, so many warnings, and that there are more.
    let most = 2 * (MAX_REPORTED + 1);
    for diagnostic in diagnostics.iter().take(most) {
        // With colours, which are no control characters of the source.
        console::tell_text(format_args!("{}\n\n", render(diagnostic, sources)));
    }
    if diagnostics.len() > most {
        tell!("and {} more\n", diagnostics.len() - most);
    }
}

/// Only the lines of the marked place are rendered: the cost does not grow with the file.
fn render(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = printable(&diagnostic.message);
    let mut group =
        level.primary_title(message.as_str()).elements([] as [Snippet<'_, annotate_snippets::Annotation<'_>>; 0]);
    let place;
    if let Some(file) = sources.file(diagnostic.span).filter(|_| diagnostic.span.end > 0) {
        place = printable(&file.name);
        let text = file.text.as_str();
        let start = text.floor_char_boundary(diagnostic.span.start as usize);
        let end = text.ceil_char_boundary((diagnostic.span.end as usize).min(text.len())).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at);
        let (line, column) = sources.line_column(diagnostic.span);
        let (from, to) = if line_end - line_start <= LONGEST_PIECE {
            (line_start, line_end)
        } else {
            let first_line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
            let from = text.ceil_char_boundary(start.saturating_sub(AROUND).max(line_start));
            (from, text.floor_char_boundary((start + AROUND).min(first_line_end)))
        };
        let annotation =
            AnnotationKind::Primary.span(start - from..end.min(to) - from).label(diagnostic.label.as_str());
        let piece = Snippet::source(&text[from..to]).line_start(line as usize).annotation(annotation);
        if from == line_start {
            group = group.element(piece.path(place.as_str()));
        } else {
            let origin = Origin::path(place.as_str()).line(line as usize).char_column(column as usize);
            group = group.element(origin).element(piece);
        }
    }
    let help = diagnostic.help.as_deref().map(printable);
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let styled = std::io::stderr().is_terminal();
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// A text that a terminal shows as it is: names in it may have come from anywhere.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push(letter),
            letter if letter.is_control() => shown.extend(letter.escape_default()),
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_text::Span;

    fn rendered(text: &str, start: usize, end: usize) -> String {
        let mut sources = SourceMap::default();
        let file = sources.add("a.xl".to_owned(), text.to_owned());
        let span = Span { file, start: start as u32, end: end as u32 };
        render(&Diagnostic::error(span, "wrong").help("right"), &sources)
    }

    #[test]
    fn the_marked_line_is_shown_with_its_number() {
        let shown = rendered("one\ntwo \u{e9}\u{e9} x\nthree\n", 8, 10);
        assert!(shown.contains("a.xl:2:5") && shown.contains("2 | two \u{e9}\u{e9} x"), "{shown}");
        assert!(!shown.contains("three"), "{shown}");
        assert!(shown.contains("help: right"), "{shown}");
    }

    #[test]
    fn a_place_inside_of_a_character_or_behind_the_text_is_no_problem() {
        for (start, end) in [(5, 6), (4, 5), (0, 99), (99, 99), (3, 3), (6, 5)] {
            rendered("one\u{e9}\u{1f980}", start, end);
        }
    }

    #[test]
    fn of_a_long_line_a_piece_is_shown() {
        let text = format!("first\n{}marked{}\nlast", "\u{e9}a".repeat(100_000), "b".repeat(100_000));
        let at = 6 + 300_000;
        let shown = rendered(&text, at, at + 6);
        assert!(shown.len() < 1_000 && shown.contains("a.xl:2:200001") && shown.contains("marked"), "{shown}");
        let shown = rendered(&text, at, text.len());
        assert!(shown.len() < 1_000, "{shown}");
    }

    #[test]
    fn control_characters_of_messages_are_escaped() {
        let found = Diagnostic::error(Span::default(), "can't read `\u{1b}[2J`");
        assert!(render(&found, &SourceMap::default()).contains("\\u{1b}[2J"));
    }
}
