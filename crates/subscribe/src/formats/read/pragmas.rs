//! The annotations of the published compiler.

use super::*;

impl Reader<'_> {
    /// The spelling of the published compiler: `@pragma query_field_exact(header.field, width)` and so on.
    pub(super) fn pragmas(&mut self, source: &p4::Source) {
        for pragma in &source.pragmas {
            let kind = match pragma.name.as_str() {
                "query_field" => None,
                "query_field_exact" => Some(MatchKind::Exact),
                "query_field_range" => Some(MatchKind::Range),
                "query_field_lpm" => Some(MatchKind::Lpm),
                "query_counter" | "query_field_counter" => {
                    self.pragma_counter(pragma);
                    continue;
                }
                _ => continue,
            };
            let tokens = tokens(pragma, self.file, &mut self.found);
            let (Some((_, first)), Some((_, last))) = (tokens.first(), tokens.last()) else { continue };
            let span = first.to(*last);
            let kinds: Vec<&Kind> = tokens.iter().map(|(kind, _)| kind).collect();
            let (header, field, width) = match kinds[..] {
                [
                    Kind::Punctuation("("),
                    Kind::Word(header),
                    Kind::Punctuation("."),
                    Kind::Word(field),
                    Kind::Punctuation(")"),
                ] => (header, field, None),
                [
                    Kind::Punctuation("("),
                    Kind::Word(header),
                    Kind::Punctuation("."),
                    Kind::Word(field),
                    Kind::Punctuation(","),
                    Kind::Number { value: NumberValue::Whole(width), .. },
                    Kind::Punctuation(")"),
                ] => (header, field, Some(*width)),
                _ => {
                    let help = "write @pragma query_field(header.field) or (header.field, width)";
                    self.error(span, "this pragma names no field", help);
                    continue;
                }
            };
            self.pragma_field(span, header, field, width, kind);
        }
    }

    fn pragma_field(&mut self, span: Span, header: &str, field: &str, width: Option<u64>, kind: Option<MatchKind>) {
        let Some(id) = self.formats.header_named(header).or_else(|| self.add_builtin(header)) else {
            let help = "declare the header, or a struct with a member of this name, in the same file";
            return self.error(span, format!("there is no header `{header}`"), help);
        };
        let known = self.headers[usize::from(id.0)].fields.iter().find(|(name, ..)| name == field).cloned();
        let Some((name, offset, declared)) = known else {
            return self.error(span, format!("`{header}` has no field `{field}`"), "name one of its fields");
        };
        if width.is_some_and(|width| width != u64::from(declared)) {
            let message = format!("`{header}.{field}` is {declared} bits wide");
            return self.error(span, message, "leave the width out, or give the right one");
        }
        if !readable(offset, declared) {
            let message = format!("filters can't use `{header}.{field}`, which is {declared} bits wide");
            return self.error(span, message, "fields of filters have up to 64 bits, or up to 128 on a byte boundary");
        }
        match self.formats.field_named(id, field) {
            Some(known) => self.formats.fields[usize::from(known.0)].kind = kind,
            None => self.add_field(id, &name, offset, declared, Form::Number { decimals: 0 }, kind),
        }
    }

    /// `query_counter(NAME, MICROSECONDS, SIZE)`, and `query_field_counter(NAME, )` with a window of 10,000.
    fn pragma_counter(&mut self, pragma: &p4::Annotation) {
        let tokens = tokens(pragma, self.file, &mut self.found);
        let (Some((_, first)), Some((_, last))) = (tokens.first(), tokens.last()) else { return };
        let kinds: Vec<&Kind> = tokens.iter().map(|(kind, _)| kind).collect();
        let (name, microseconds) = match kinds[..] {
            [
                Kind::Punctuation("("),
                Kind::Word(name),
                Kind::Punctuation(","),
                Kind::Number { value: NumberValue::Whole(window @ 1..=1_000_000_000_000), .. },
                ..,
            ] => (name, *window),
            [Kind::Punctuation("("), Kind::Word(name), ..] => (name, 10_000),
            _ => {
                let help = "write @pragma query_counter(name, microseconds, size)";
                return self.error(first.to(*last), "this pragma declares no counter", help);
            }
        };
        if self.formats.counter_named(name).is_none() {
            self.formats.counters.push(Counter { name: name.clone(), window_ns: microseconds * 1000 });
        }
    }
}
