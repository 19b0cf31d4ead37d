//! What a test is about: a field, a counter, or a function over a window.

use super::*;

impl<'a> Parser<'a> {
    /// A field, a counter, or a function over a window.
    pub(super) fn left(&mut self) -> Parsed<Left<'a>> {
        let token = self.advance();
        let Kind::Word(word) = token.kind else {
            let found = self.text(token.span).to_owned();
            let message = if token.kind == Kind::End {
                "the file ends inside a rule".into()
            } else {
                format!("`{found}` is no field")
            };
            return self.fail(
                token.span,
                message,
                "a filter is made of tests like `price > 5`, joined by and, or, not",
            );
        };
        if self.at("(")
            && let Some(function) = Function::of_name(&word)
        {
            return self.window(function, token.span);
        }
        if !self.at(".")
            && let Some(counter) = self.formats.counter_named(&word)
        {
            let subject = Subject::State(Aggregate::Counter(counter));
            return Ok(number(subject, word, 64, token.span));
        }
        let formats: &'a MessageFormats = self.formats;
        let field = match self.named(word, token.span)? {
            Named::Field(field) => field,
            Named::Name(name) => {
                let Some(first) = name.words.first() else {
                    return self.fail(token.span, "this name has no fields", "declare it with 32 bits and more");
                };
                let left = number(Subject::Field(*first), name.name.clone(), NAME_WORD, token.span.to(self.last));
                return Ok(Left { words: Some(&name.words), ..left });
            }
        };
        let known = formats.field(field);
        Ok(Left {
            words: None,
            subject: Subject::Field(field),
            width: known.width,
            form: known.form,
            kind: known.kind,
            name: Cow::Borrowed(&known.name),
            mask: None,
            span: token.span.to(self.last),
        })
    }

    /// `header.field` or `field` of a number, of which the first word is read.
    pub(super) fn field(&mut self, word: String, span: Span) -> Parsed<FieldId> {
        match self.named(word, span)? {
            Named::Field(field) => Ok(field),
            Named::Name(name) => {
                self.fail(span.to(self.last), format!("`{}` is a name, not a number", name.name), "name a number")
            }
        }
    }

    /// `header.field` or `field`, of which the first word is read.
    pub(super) fn named(&mut self, word: String, span: Span) -> Parsed<Named<'a>> {
        let formats: &'a MessageFormats = self.formats;
        if !self.accept(".") {
            let names: Vec<_> = formats.names().iter().filter(|name| name.name == word).collect();
            return match (formats.fields_named(&word), &names[..]) {
                ([field], _) => Ok(Named::Field(*field)),
                ([], [name]) => Ok(Named::Name(name)),
                ([], _) => {
                    let names = self.formats.fields().iter().map(|field| field.name.as_str());
                    let counters = self.formats.counters().iter().map(|counter| counter.name.as_str());
                    let help = match nearest(&word, names.chain(counters)) {
                        Some(name) => format!("did you mean `{name}`?"),
                        None => "the format's annotations say which fields filters may use".to_owned(),
                    };
                    self.fail(span, format!("there is no field `{word}`"), help)
                }
                (several, _) => {
                    let names: Vec<String> = several.iter().map(|id| self.formats.full_name(*id)).collect();
                    let message = format!("several headers have a field `{word}`");
                    self.fail(span, message, format!("write one of {}", names.join(", ")))
                }
            };
        }
        let token = self.advance();
        let Kind::Word(name) = token.kind else {
            return self.fail(token.span, "a field's name is missing", "write `header.field`");
        };
        let Some(header) = self.formats.header_named(&word) else {
            let headers = self.formats.headers().iter().map(|header| header.name.as_str());
            let help = nearest(&word, headers)
                .map_or("the format file declares the headers".to_owned(), |name| format!("did you mean `{name}`?"));
            return self.fail(span, format!("there is no header `{word}`"), help);
        };
        if let Some(field) = formats.field_named(header, &name) {
            return Ok(Named::Field(field));
        }
        if let Some(found) = formats.names().iter().find(|it| it.header == header && it.name == name) {
            return Ok(Named::Name(found));
        }
        let names =
            self.formats.fields().iter().filter(|field| field.header == header).map(|field| field.name.as_str());
        let help = match nearest(&name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("annotate it in the format file with @subscribe[] if `{word}` has it"),
        };
        self.fail(span.to(token.span), format!("filters can't use a field `{word}.{name}`"), help)
    }

    /// `function(field) over 100us`, of which the function's name is read.
    pub(super) fn window(&mut self, function: Function, start: Span) -> Parsed<Left<'a>> {
        self.advance();
        let field = match &self.token.kind {
            Kind::Word(word) => {
                let word = word.clone();
                let span = self.advance().span;
                Some(self.field(word, span)?)
            }
            _ => None,
        };
        self.expect(")", "like `count()` or `avg(price)`")?;
        let span = start.to(self.last);
        if field.is_some() != (function != Function::Count) {
            let name = function.name();
            return self.fail(span, format!("`{name}` is not written so"), "count() has no field, the others have one");
        }
        let help = "say over which time, like `over 100us`, with ns, us, ms or s";
        self.expect("over", help)?;
        let token = self.advance();
        let window_ns = match &token.kind {
            Kind::Number { value, unit } => nanoseconds(*value, unit),
            _ => None,
        };
        let Some(window_ns) = window_ns else {
            return self.fail(token.span, "this is no length of a window", help);
        };
        let subject = Subject::State(Aggregate::Window { function, field, window_ns });
        let Some(of) = field.map(|field| self.formats.field(field)) else {
            return Ok(number(subject, function.name().to_owned(), 64, span.to(token.span)));
        };
        if of.width > 64 || matches!(of.form, Form::Text { .. }) {
            let message = format!("`{}` can't be summed up or compared in size", of.name);
            return self.fail(span, message, "windows are over numbers of up to 64 bits");
        }
        let width = if function == Function::Sum { 64 } else { of.width };
        let name = format!("{}({})", function.name(), of.name);
        Ok(Left { form: of.form, ..number(subject, name, width, span.to(token.span)) })
    }
}

fn number(subject: Subject, name: String, width: u16, span: Span) -> Left<'static> {
    Left {
        subject,
        name: Cow::Owned(name),
        width,
        form: Form::Number { decimals: 0 },
        kind: None,
        mask: None,
        words: None,
        span,
    }
}
