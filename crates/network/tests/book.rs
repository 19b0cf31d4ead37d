//! The book's networks are true: every block of TOML in `docs/network.md` is read without an error or a warning, and the
//! page names every key there is.
#![allow(clippy::disallowed_methods, reason = "tests read the book")]

use std::fs;
use std::path::Path;
use weftwire_network::{read, schema};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/network.md");
    fs::read_to_string(path).expect("the page is part of the book")
}

#[test]
fn every_network_of_the_book_is_read() {
    let page = page();
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(blocks.len() > 5);
    for block in blocks {
        let reading = read("book.toml", block, &[], &|_| Err(std::io::Error::other("the book has no files").into()));
        let said: Vec<String> = reading.diagnostics.iter().map(|found| found.to_text(&reading.sources)).collect();
        assert!(reading.network.is_some() && said.is_empty(), "{block}\n{}", said.join("\n"));
    }
}

#[test]
fn the_page_names_every_key_and_word() {
    fn collect(schema: &serde_json::Value, into: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(object) => {
                if let Some(serde_json::Value::Object(properties)) = object.get("properties") {
                    into.extend(properties.keys().cloned());
                }
                if let Some(serde_json::Value::String(word)) = object.get("const") {
                    into.push(word.clone());
                }
                object.values().for_each(|value| collect(value, into));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
    let (page, mut keys) = (page(), Vec::new());
    collect(&schema(), &mut keys);
    assert!(keys.len() > 100);
    let missing: Vec<&String> = keys.iter().filter(|key| !page.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
