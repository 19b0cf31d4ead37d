//! What tests share: formats and rules, which must be right.
#![allow(dead_code, reason = "each test file uses its part")]

use weftwire_subscribe::{Compiler, MessageFormats, Rule, read_rules};
use weftwire_text::{Severity, SourceMap};

/// Formats without any mistake or warning.
pub fn formats(text: &str) -> MessageFormats {
    formats_of(&[text])
}

/// The same of several files.
pub fn formats_of(texts: &[&str]) -> MessageFormats {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let files: Vec<(&str, &str)> = texts.iter().map(|text| ("formats.p4", *text)).collect();
    let formats = MessageFormats::read_all(&files, &mut sources, &mut diagnostics);
    let found: Vec<String> = diagnostics.iter().map(|it| it.to_text(&sources)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    formats.expect("without a mistake there are formats")
}

/// Rules without a mistake; there may be warnings.
pub fn rules(text: &str, formats: &MessageFormats) -> Vec<Rule> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let rules = read_rules("rules", text, formats, &mut sources, &mut diagnostics);
    let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|it| it.to_text(&sources)).collect();
    assert!(errors.is_empty(), "{text}\n{}", errors.join("\n"));
    rules
}

/// Both, compiled.
pub fn compile(formats: &[&str], text: &str) -> Compiler {
    let formats = formats_of(formats);
    let rules = rules(text, &formats);
    Compiler::new(formats, &Default::default(), &rules).expect("few clauses")
}
