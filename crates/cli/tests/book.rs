//! The book is true: its commands work as they stand, and print what the pages show.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read the book and run its commands")]

mod support;

use support::book::{Of, pages, run};

#[test]
fn commands_of_all_pages_work() {
    let wrong: Vec<String> = pages().iter().flat_map(|(name, page)| run(name, page, Of::Everybody)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
