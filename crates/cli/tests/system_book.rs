//! The book's commands that need root.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read the book and run its commands")]

mod support;

use support::book::{Of, pages, run};
use weftwire_testbed::skip_unless_root;

#[test]
fn commands_of_all_pages_that_need_root_work() {
    let Some(_turn) = skip_unless_root(&["ip"]) else { return };
    let wrong: Vec<String> = pages().iter().flat_map(|(name, page)| run(name, page, Of::Root)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
