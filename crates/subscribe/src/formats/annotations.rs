//! The insides of annotations: lists `key=value, key=value`.

use weftwire_core::p4::Annotation;
use weftwire_text::lexer::{Kind, Lexer, NumberValue};
use weftwire_text::quantity::{self, Measure};
use weftwire_text::{Diagnostic, Span};

/// One `key=value`.
pub(super) struct Entry {
    pub key: String,
    /// Where key and value stand in the file.
    pub span: Span,
    pub value: Vec<Kind>,
}

/// The tokens of an annotation with spans of the file it stands in.
pub(super) fn tokens(annotation: &Annotation, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Vec<(Kind, Span)> {
    let mut found = Vec::new();
    let shift = |span: Span| Span {
        file,
        start: span.start + annotation.start as u32,
        end: span.end + annotation.start as u32,
    };
    let mut tokens = Vec::new();
    let mut lexer = Lexer::for_rules(file, &annotation.text, &mut found);
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            break;
        }
        tokens.push((token.kind, shift(token.span)));
    }
    diagnostics.extend(found.into_iter().map(|mut diagnostic| {
        diagnostic.span = shift(diagnostic.span);
        diagnostic
    }));
    tokens
}

/// All `key=value` of an annotation.
pub(super) fn entries(annotation: &Annotation, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Vec<Entry> {
    let tokens = tokens(annotation, file, diagnostics);
    let mut entries = Vec::new();
    for part in tokens.split(|(kind, _)| *kind == Kind::Punctuation(",")) {
        let (Some((_, first)), Some((_, last))) = (part.first(), part.last()) else { continue };
        let span = first.to(*last);
        match part {
            [(Kind::Word(key), _), (Kind::Punctuation("="), _), value @ ..] if !value.is_empty() => {
                let value = value.iter().map(|(kind, _)| kind.clone()).collect();
                entries.push(Entry { key: key.clone(), span, value });
            }
            _ => diagnostics.push(
                Diagnostic::error(span, "this is no `key=value`")
                    .help("write like `@subscribe[match=exact, text=\" \"]`"),
            ),
        }
    }
    entries
}

impl Entry {
    /// The value as one name, bare or quoted.
    pub fn name(&self) -> Option<&str> {
        match &self.value[..] {
            [Kind::Word(text) | Kind::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The value as a whole number.
    pub fn number(&self) -> Option<u64> {
        match &self.value[..] {
            [Kind::Number { value: NumberValue::Whole(value), unit }] if unit.is_empty() => Some(*value),
            _ => None,
        }
    }
}

/// Nanoseconds of a number with a unit of time: `ns`, `us`, `ms`, `s`, `min`, `h`. `None` for other units, or less than one.
pub(crate) fn nanoseconds(value: NumberValue, unit: &str) -> Option<u64> {
    let (scale, Measure::Nanoseconds) = quantity::unit(unit)? else { return None };
    let nanoseconds = match value {
        NumberValue::Whole(value) => value.checked_mul(scale)?,
        NumberValue::Fraction(value) => (value * scale as f64) as u64,
    };
    (nanoseconds > 0).then_some(nanoseconds)
}
