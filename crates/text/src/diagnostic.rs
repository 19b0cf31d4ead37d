//! What the compiler has to say about a program. Rendering is the front end's; [`Diagnostic::to_text`] is the plain form.

use crate::source::{SourceMap, Span};

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// No image is made.
    Error,
    /// The image is made, but probably not what was meant.
    Warning,
}

/// An error or warning: what is wrong, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// A few words for the marked place; may be empty.
    pub label: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, message: message.into(), span, label: String::new(), help: None }
    }

    /// A warning.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// Adds words for the marked place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// One line (two with help): `file:line:column: error: message`.
    pub fn to_text(&self, sources: &SourceMap) -> String {
        let (line, column) = sources.line_column(self.span);
        let file = sources.file(self.span).map_or("?", |file| file.name.as_str());
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut text = format!("{file}:{line}:{column}: {severity}: {}", self.message);
        if !self.label.is_empty() {
            text += &format!(" ({})", self.label);
        }
        if let Some(help) = &self.help {
            text += &format!("\n  help: {help}");
        }
        text
    }
}

/// At most so many errors of a program are reported, and so many warnings.
pub const MAX_REPORTED: usize = 100;

/// Names that are longer are compared with no others.
const LONGEST_COMPARED: usize = 64;

/// So many candidates are compared letter by letter.
const MOST_COMPARED: usize = 200;

/// The candidate most like `name`, for "did you mean".
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_COMPARED {
        return None;
    }
    let letters = letters(name);
    let allowed = |candidate: &str| 1 + name.len().min(candidate.len()) / 4;
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST_COMPARED)
        // A changed letter takes one out of the set and puts one in.
        .filter(|candidate| (letters ^ self::letters(candidate)).count_ones() as usize <= 2 * allowed(candidate))
        .take(MOST_COMPARED)
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed(candidate))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The set of a text's letters, folded to 64 bits.
fn letters(text: &str) -> u64 {
    text.chars().fold(0, |set, letter| set | 1 << (letter as u32 % 64))
}

/// As [`nearest`]; else the candidate that `name` is the beginning of, if there is only one.
pub fn nearest_or_begun<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    nearest(name, candidates.clone()).or_else(|| {
        let mut begun = candidates.into_iter().filter(|candidate| name.len() >= 2 && candidate.starts_with(name));
        begun.next().filter(|_| begun.next().is_none())
    })
}

/// `a, b, c`: the names there are, for help; of many, the first.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 40;
    let mut names = names.into_iter();
    let first: Vec<&str> = names.by_ref().take(MOST).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// How many letters must be changed, added, removed, or swapped with their neighbour (optimal string alignment).
fn edit_distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = substituted.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_name() {
        assert_eq!(nearest("retransmt", ["retransmit", "give_up"]), Some("retransmit"));
        assert_eq!(nearest("zzz", ["retransmit", "give_up"]), None);
        assert_eq!(nearest("upd", ["ipv4", "udp", "tcp"]), Some("udp"));
    }

    #[test]
    fn a_beginning_is_taken_if_it_is_the_only_one() {
        assert_eq!(nearest_or_begun("seq", ["sequence", "source_port", "window"]), Some("sequence"));
        assert_eq!(nearest_or_begun("source", ["source_port", "source_address"]), None);
        assert_eq!(nearest_or_begun("s", ["sequence"]), None);
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(["a", "b"]), "a, b");
        assert!(list(vec!["a"; 100]).ends_with(", a and 60 more"));
    }
}
