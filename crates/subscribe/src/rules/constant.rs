//! Constants of rules as values of fields.

use crate::formats::{Form, NAME_WORD};
use crate::values::{Interval, ValueSet};
use weftwire_text::lexer::{Kind, NumberValue};

/// What is wrong with a constant, and what would be right.
pub(super) struct Misfit {
    pub message: String,
    pub help: String,
}

/// What a constant is compared with: a field, or a number of state.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub name: &'a str,
    pub width: u16,
    pub form: Form,
}

impl Target<'_> {
    fn misfit(&self, message: String) -> Misfit {
        let (width, all) = (self.width, Interval::of_width(self.width));
        let help = match self.form {
            Form::Text { .. } => format!("it is a text of {} bytes, like \"A\"", width / 8),
            Form::Number { decimals: 0 } => format!("it is a number of {width} bits, up to {}", all.last),
            Form::Number { decimals } => {
                let scale = 10u128.pow(decimals.into());
                format!("it is a number with {decimals} decimals, up to {}", all.last / scale)
            }
        };
        Misfit { message, help }
    }

    /// The value of a constant, `source` being its text.
    ///
    /// # Errors
    /// It is of another type, or does not fit.
    pub fn value(&self, kind: &Kind, source: &str) -> Result<u128, Misfit> {
        let name = self.name;
        match (kind, self.form) {
            (Kind::Number { unit, .. }, _) if !unit.is_empty() => {
                Err(self.misfit(format!("`{name}` has no unit like `{unit}`")))
            }
            (Kind::Number { value: NumberValue::Whole(value), .. }, Form::Number { decimals }) => {
                self.scaled(u128::from(*value), decimals, source)
            }
            (Kind::Wide(value), Form::Number { decimals }) => self.scaled(*value, decimals, source),
            (Kind::Number { value: NumberValue::Fraction(_), .. }, Form::Number { decimals }) => {
                self.fraction(source, decimals)
            }
            (Kind::Text(text) | Kind::Word(text), Form::Text { padding }) => self.text(text, padding),
            // Bytes that no text in quotes can have.
            (Kind::Number { value: NumberValue::Whole(value), .. }, Form::Text { .. }) if is_hexadecimal(source) => {
                self.checked(Some((*value).into()), source)
            }
            (Kind::Wide(value), Form::Text { .. }) if is_hexadecimal(source) => self.checked(Some(*value), source),
            // Without an annotation that says more, whole bytes may be text as well; the usual padding is the space.
            (Kind::Text(text), Form::Number { decimals: 0 }) if self.width.is_multiple_of(8) => self.text(text, b' '),
            (Kind::Ipv4(address), Form::Number { decimals: 0 }) if self.width == 32 => Ok((*address).into()),
            (Kind::Ipv6(address), Form::Number { decimals: 0 }) if self.width == 128 => Ok(*address),
            (Kind::Mac(address), Form::Number { decimals: 0 }) if self.width == 48 => Ok((*address).into()),
            _ => Err(self.misfit(format!("`{name}` can't be {}", described(kind)))),
        }
    }

    fn scaled(&self, value: u128, decimals: u8, source: &str) -> Result<u128, Misfit> {
        let scaled = value.checked_mul(10u128.pow(decimals.into()));
        self.checked(scaled, source)
    }

    fn checked(&self, value: Option<u128>, source: &str) -> Result<u128, Misfit> {
        value
            .filter(|value| Interval::of_width(self.width).contains(*value))
            .ok_or_else(|| self.misfit(format!("{source} does not fit `{}`", self.name)))
    }

    /// `12.50`, digit by digit: no rounding.
    fn fraction(&self, source: &str, decimals: u8) -> Result<u128, Misfit> {
        let source = source.replace('_', "");
        let (whole, places) = source.split_once('.').unwrap_or((&source, ""));
        let places = places.trim_end_matches('0');
        if places.len() > usize::from(decimals) {
            return Err(self.misfit(format!("{source} has more decimals than `{}`", self.name)));
        }
        let digits = format!("{whole}{places:0<width$}", width = usize::from(decimals));
        self.checked(digits.parse().ok(), &source)
    }

    fn text(&self, text: &str, padding: u8) -> Result<u128, Misfit> {
        let width = usize::from(self.width / 8);
        if text.len() > width {
            return Err(self.misfit(format!("\"{text}\" is longer than `{}`", self.name)));
        }
        let bytes = text.bytes().chain(std::iter::repeat(padding)).take(width);
        Ok(bytes.fold(0, |value, byte| value << 8 | u128::from(byte)))
    }

    /// All values that start with a text.
    pub fn starting_with(&self, text: &str) -> Result<Interval, Misfit> {
        let is_text = match self.form {
            Form::Text { .. } => true,
            Form::Number { decimals } => decimals == 0 && self.width.is_multiple_of(8),
        };
        if !is_text {
            return Err(self.misfit(format!("`{}` is no text, which alone has prefixes", self.name)));
        }
        let value = self.text(text, 0)?;
        Ok(Interval::of_prefix(value, text.len() as u16 * 8, self.width))
    }
}

fn is_hexadecimal(source: &str) -> bool {
    source.starts_with("0x") || source.starts_with("0X")
}

impl Misfit {
    /// Of a name that is cut into so many words.
    pub fn of_name(message: impl Into<String>, words: usize) -> Misfit {
        let help = format!(
            "it is a quoted name like \"www.example.com\", of up to {} characters",
            (words * BYTES).saturating_sub(2)
        );
        Misfit { message: message.into(), help }
    }
}

/// Bytes of each field that a name is cut into.
const BYTES: usize = NAME_WORD as usize / 8;

/// What the fields of a name may be for it to be this one: its labels with their lengths, the root's last. Names are
/// equal whatever the case of their letters (RFC 4343).
pub(super) fn domain_name(text: &str, words: usize) -> Result<Vec<ValueSet>, Misfit> {
    let mut wire = Vec::new();
    for label in text.strip_suffix('.').unwrap_or(text).split('.') {
        let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        if label.is_empty() || label.len() > 63 || !label.bytes().all(is_fit) {
            return Err(Misfit::of_name(format!("`{label}` is no label of a name"), words));
        }
        wire.push(label.len() as u8);
        wire.extend_from_slice(label.as_bytes());
    }
    wire.push(0);
    if wire.len() > words * BYTES {
        return Err(Misfit::of_name(format!("\"{text}\" is longer than the format's names"), words));
    }
    Ok(wire.chunks(BYTES).map(word_values).collect())
}

/// The values of a field that starts with these bytes, letters in either case.
fn word_values(bytes: &[u8]) -> ValueSet {
    let mut values = vec![0u128];
    for byte in bytes {
        let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
        let mut next: Vec<u128> = values.iter().map(|value| value << 8 | u128::from(lower)).collect();
        if upper != lower {
            next.extend(values.iter().map(|value| value << 8 | u128::from(upper)));
        }
        values = next;
    }
    let length = 8 * bytes.len() as u16;
    let prefix = |value: u128| Interval::of_prefix(value << (NAME_WORD - length), length, NAME_WORD);
    ValueSet::union_of(values.into_iter().map(prefix))
}

/// A constant for people.
fn described(kind: &Kind) -> &'static str {
    match kind {
        Kind::Word(_) | Kind::Text(_) => "a text",
        Kind::Number { .. } | Kind::Wide(_) => "a number",
        Kind::Mac(_) => "an Ethernet address",
        Kind::Ipv4(_) => "an IPv4 address",
        Kind::Ipv6(_) => "an IPv6 address",
        _ => "this",
    }
}
