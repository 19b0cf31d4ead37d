//! Where the verifier is in the document, and what it found there.

use crate::error::{Finding, Findings};
use crate::limits::MAX_FINDINGS;
use std::fmt;

/// A place in the document. It lives on the stack and becomes text only when there is something to report.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'static str),
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) fn member(&'a self, name: &'static str) -> Path<'a> {
        Path::Member(self, name)
    }

    pub(super) fn item(&'a self, index: usize) -> Path<'a> {
        Path::Item(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Member(Path::Root, name) => f.write_str(name),
            Path::Member(parent, name) => write!(f, "{parent}.{name}"),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The findings so far.
#[derive(Default)]
pub(super) struct Report {
    findings: Findings,
}

impl Report {
    /// Notes that something is wrong at `path`.
    pub(super) fn add(&mut self, path: Path<'_>, problem: impl fmt::Display, remedy: impl fmt::Display) {
        if self.findings.list.len() == MAX_FINDINGS {
            self.findings.more += 1;
            return;
        }
        self.findings.list.push(Finding {
            path: path.to_string(),
            problem: problem.to_string(),
            remedy: remedy.to_string(),
        });
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.findings.list.is_empty()
    }

    /// Checks that a list is no longer than `limit`.
    pub(super) fn at_most(&mut self, path: Path<'_>, found: usize, limit: usize) {
        if found > limit {
            self.add(path, format_args!("{found} is too many"), format_args!("at most {limit}"));
        }
    }

    /// Checks an index into a list of `count` things called `what`. Returns whether it is good.
    pub(super) fn index(&mut self, path: Path<'_>, what: &str, index: usize, count: usize) -> bool {
        if index < count {
            return true;
        }
        let problem = format_args!("there is no {what} {index}");
        match count {
            0 => self.add(path, problem, format_args!("the image has no {what}")),
            _ => self.add(path, problem, format_args!("use 0 to {}", count - 1)),
        }
        false
    }

    /// The findings, if there are any.
    pub(super) fn finish(self) -> Result<(), Findings> {
        if self.findings.list.is_empty() { Ok(()) } else { Err(self.findings) }
    }
}

/// A name as an error message quotes it: never longer than a line.
pub(super) fn quote(name: &str) -> String {
    const LONGEST: usize = 40;
    if name.chars().count() <= LONGEST {
        return format!("`{}`", name.escape_debug());
    }
    let start: String = name.chars().take(LONGEST).collect();
    format!("`{}...`", start.escape_debug())
}
