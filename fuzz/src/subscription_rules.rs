//! The body of the target `subscription_rules`, apart from the others: only what may depend on the compiler includes it.

use weftwire_lang::{Severity, SourceMap};
use weftwire_subscribe::{Compiler, MessageFormats, Options, check, read_rules};

const FORMATS: &str = include_str!("../../examples/subscriptions/itch.p4");

/// Rules, or formats if the first byte is odd. They come to errors, or to tables.
pub fn subscription_rules(data: &[u8]) {
    let [choice, text @ ..] = data else { return };
    let text = String::from_utf8_lossy(text);
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    if choice & 1 == 1 {
        let formats = MessageFormats::read("formats", &text, &mut sources, &mut diagnostics);
        let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
        assert_eq!(formats.is_none(), failed, "formats or an error");
        return;
    }
    let Some(formats) = MessageFormats::read("formats", FORMATS, &mut sources, &mut diagnostics) else { return };
    let mut rules = read_rules("rules", &text, &formats, &mut sources, &mut diagnostics);
    // More rules than this take long and find nothing more.
    rules.truncate(8);
    diagnostics.extend(check::check(&formats, &rules));
    for found in &diagnostics {
        assert!(!found.to_text(&sources).is_empty());
    }
    if let Ok(compiler) = Compiler::new(formats, &Options::default(), &rules) {
        assert_eq!(compiler.rule_count(), rules.len());
    }
}
