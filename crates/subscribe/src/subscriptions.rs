//! Subscriptions as text: lines `HOST: filter`.

use crate::formats::MessageFormats;
use crate::rules::{Filter, Rule, read_rules};
use weftwire_text::{Diagnostic, SourceMap, Span};

/// A host's subscription.
#[derive(Clone, PartialEq, Debug)]
pub struct Subscription {
    /// The host's name.
    pub host: String,
    /// Where the name is written.
    pub host_span: Span,
    /// Which messages it wants.
    pub filter: Filter,
}

/// What makes a filter a rule. On a line of its own, behind a comment.
const ACTION: &str = "\n: drop;\n";

/// Reads lines `HOST: filter`; blank lines and those that start with `#` or `//` are left out. What is wrong goes to
/// `diagnostics`, and the others are read all the same.
pub fn read_subscriptions(
    name: &str,
    text: &str,
    formats: &MessageFormats,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Subscription> {
    let file = sources.add(name.to_owned(), text.to_owned());
    let span = |start: usize, end: usize| Span { file, start: start as u32, end: end as u32 };
    let mut lines = Vec::new();
    let mut rules = String::with_capacity(text.len() + 16);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let (begin, line) = (start, line.trim_end());
        start += text[start..].find('\n').map_or(text.len() - start, |end| end + 1);
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with("//") {
            continue;
        }
        let host_at = begin + line.len() - trimmed.len();
        let Some((host, filter)) = trimmed.split_once(':').filter(|(host, _)| is_name(host.trim())) else {
            let error = Diagnostic::error(span(host_at, begin + line.len()), "this is no subscription");
            diagnostics.push(error.help("a subscription is `HOST: filter` in one line"));
            continue;
        };
        let filter_at = host_at + host.len() + 1;
        let host_span = span(host_at, host_at + host.trim_end().len());
        lines.push(Line { rules_at: rules.len(), filter_at, length: filter.len(), host: host.trim(), host_span });
        rules += filter;
        rules += ACTION;
    }
    let (mut inner, mut found) = (SourceMap::default(), Vec::new());
    let read = read_rules(name, &rules, formats, &mut inner, &mut found);
    for mut diagnostic in found {
        diagnostic.span = line_of(&lines, diagnostic.span).map_or(span(0, 0), |line| line.outer(diagnostic.span, file));
        diagnostics.push(diagnostic);
    }
    let mut subscriptions: Vec<Subscription> = Vec::with_capacity(read.len());
    for Rule { filter, span, .. } in read {
        let Some(line) = line_of(&lines, span) else { continue };
        // Only a filter that ends itself as a rule gives two of a line, or one that begins in a line and ends in another.
        let whole = span.end as usize >= line.rules_at + line.length;
        if whole && subscriptions.last().is_none_or(|last| last.host_span != line.host_span) {
            subscriptions.push(Subscription { host: line.host.to_owned(), host_span: line.host_span, filter });
        } else {
            let error = Diagnostic::error(line.outer(span, file), "a subscription is a filter alone");
            diagnostics.push(error.help("leave actions and `;` out: what passes goes to the host"));
        }
    }
    subscriptions
}

struct Line<'a> {
    /// Where its filter begins among the rules, and in the text.
    rules_at: usize,
    filter_at: usize,
    length: usize,
    host: &'a str,
    host_span: Span,
}

impl Line<'_> {
    /// A span among the rules as one of the text.
    fn outer(&self, span: Span, file: u16) -> Span {
        let place = |at: u32| (self.filter_at + (at as usize).saturating_sub(self.rules_at).min(self.length)) as u32;
        Span { file, start: place(span.start), end: place(span.end) }
    }
}

fn line_of<'a, 'b>(lines: &'b [Line<'a>], span: Span) -> Option<&'b Line<'a>> {
    let behind = lines.partition_point(|line| line.rules_at <= span.start as usize);
    lines.get(behind.checked_sub(1)?)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let formats = "header h { @subscribe[] bit<8> a; @subscribe[] bit<16> b; }";
        let (mut sources, mut found) = (SourceMap::default(), Vec::new());
        let formats = MessageFormats::read("f", formats, &mut sources, &mut found).unwrap();
        let read = read_subscriptions("s", text, &formats, &mut sources, &mut found);
        let read = read.iter().map(|it| format!("{} {}", it.host, crate::write::filter(&formats, &it.filter)));
        let texts = found.iter().map(|it| format!("{} {:?}", it.to_text(&sources), sources.text(it.span)));
        (read.collect(), texts.collect())
    }

    #[test]
    fn lines_are_subscriptions() {
        let (read, found) = read("# those\nh1: a > 5 // much\n\n  h-2 : a == 1 or b == 2\r\n// no: a > 1\nh1: true");
        assert_eq!(found, [""; 0]);
        assert_eq!(read, ["h1 h.a > 5", "h-2 h.a == 1 or h.b == 2", "h1 true"]);
    }

    #[test]
    fn errors_point_into_the_text() {
        for (text, place, expected) in [
            ("h1: a > 5\nh2: c > 5", "s:2:5", "there is no field `c`"),
            ("h1: a > 500", "s:1:9", "500 does not fit `a`"),
            ("\n h1 a > 5\nh2: a > 5", "s:2:2", "this is no subscription"),
            ("h1: a > 5 : fwd(3); a < 3", "s:1:5", "a subscription is a filter alone"),
            ("h1: a > 5 : fwd(3); a < 3 : drop;", "s:1:", "a subscription is a filter alone"),
            ("h1:", "s:1:4", "error"),
            ("h1: a >\nh2: a > 5", "s:1:", "error"),
        ] {
            let (_, found) = read(text);
            let fits = found.iter().any(|it| it.contains(expected) && it.contains(place));
            assert!(fits, "{text:?}: {found:?}");
        }
        // The others are read.
        assert_eq!(read("h1: c > 5\nh2: a > 5").0, ["h2 h.a > 5"]);
    }
}
