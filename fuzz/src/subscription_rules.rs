//! The body of the target `subscription_rules`, apart from the others: only what may depend on the compiler includes it.

use weftwire_subscribe::{Compiler, MessageFormats, Options, check, read_rules, write};
use weftwire_text::{Severity, SourceMap};

const FORMATS: &str = include_str!("../../examples/subscriptions/itch.p4");

/// Rules, or formats if the first byte is odd, or formats and rules, with a zero byte in between, if its second bit is set. They come to
/// errors, or to tables, and rules can be written and read again.
pub fn subscription_rules(data: &[u8]) {
    let [choice, text @ ..] = data else { return };
    let text = String::from_utf8_lossy(text);
    let (own, text) = match choice & 3 {
        0 => (None, &*text),
        1 => (Some(&*text), ""),
        _ => text.split_once('\0').map_or((Some(&*text), ""), |(formats, rules)| (Some(formats), rules)),
    };
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let formats = MessageFormats::read("formats", own.unwrap_or(FORMATS), &mut sources, &mut diagnostics);
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(formats.is_none(), failed, "formats or an error");
    let Some(formats) = formats else { return };
    let mut rules = read_rules("rules", text, &formats, &mut sources, &mut diagnostics);
    // More rules than this take long and find nothing more.
    rules.truncate(8);
    diagnostics.extend(check::check(&formats, &rules));
    for found in &diagnostics {
        assert!(!found.to_text(&sources).is_empty());
    }
    // Other formats may give headers names that mean something else at the start of a test.
    if own.is_none() {
        for rule in &rules {
            let written = write::rule(&formats, rule);
            let again = read_rules("again", &written, &formats, &mut sources, &mut Vec::new());
            let texts: Vec<String> = again.iter().map(|rule| write::rule(&formats, rule)).collect();
            assert_eq!(texts, [written]);
        }
    }
    if let Ok(compiler) = Compiler::new(formats, &Options::default(), &rules) {
        assert_eq!(compiler.rule_count(), rules.len());
    }
}
