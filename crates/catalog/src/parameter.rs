//! Parameters of a function: initial values of its machine's registers, given where it is started.

use std::net::Ipv4Addr;
use thiserror::Error;
use weftwire_core::MacAddress;
use weftwire_image::{ImageError, RegisterType, VerifiedImage};
use weftwire_text::diagnostic::nearest;
use weftwire_text::quantity::parse_duration;

/// A parameter as written: the register's name and its value.
pub type Parameter = (String, String);

/// Why a parameter is refused.
#[derive(Debug, Error)]
pub enum ParameterError {
    /// Not `NAME=VALUE`.
    #[error("write NAME=VALUE, e.g. timeout=200ms")]
    Form,
    /// The machine has no such register.
    #[error("{machine} has no register `{name}` to be a parameter; {hint}")]
    Unknown {
        /// The machine's name.
        machine: String,
        /// The register's.
        name: String,
        /// Which there are.
        hint: String,
    },
    /// The register does not hold such values.
    #[error("parameter {name}: `{text}` does not fit; write {form}")]
    Unfit {
        /// The register's name.
        name: String,
        /// The value as written.
        text: String,
        /// What values look like.
        form: &'static str,
    },
    /// With these values the image cannot run.
    #[error("the image does not verify with these parameters")]
    Image(#[source] ImageError),
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// [`ParameterError::Form`].
pub fn parse_parameter(text: &str) -> Result<Parameter, ParameterError> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or(ParameterError::Form)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The image with these initial values of registers in place of its own.
///
/// # Errors
/// [`ParameterError`].
pub fn apply(image: VerifiedImage, parameters: &[Parameter]) -> Result<VerifiedImage, ParameterError> {
    if parameters.is_empty() {
        return Ok(image);
    }
    let mut image = image.into_image();
    for (name, text) in parameters {
        let known = || image.registers.iter().filter(|register| !register.scratch).map(|register| &*register.name);
        let Some(at) = image.registers.iter().position(|register| register.name == *name && !register.scratch) else {
            let hint = match nearest(name, known()) {
                Some(like) => format!("did you mean `{like}`?"),
                None => format!("there are: {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(ParameterError::Unknown { machine: image.name, name: name.clone(), hint });
        };
        let kind = image.registers[at].kind;
        image.registers[at].initial = value(kind, text)
            .filter(|value| kind.cut(*value) == *value)
            .ok_or_else(|| ParameterError::Unfit { name: name.clone(), text: text.clone(), form: form(kind) })?;
    }
    image.seal();
    image.verify().map_err(ParameterError::Image)
}

fn value(kind: RegisterType, text: &str) -> Option<i64> {
    match kind {
        RegisterType::Bool => text.parse::<bool>().ok().map(i64::from).or_else(|| number(text)),
        RegisterType::Time => parse_duration(text).ok(),
        RegisterType::Mac => text.parse().ok().map(|address: MacAddress| address.to_bits().cast_signed()),
        RegisterType::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| i64::from(u32::from(address))),
        _ => number(text),
    }
}

/// Decimal or hexadecimal, signed or unsigned, up to 64 bits.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse::<i64>().ok().or_else(|| text.parse().ok().map(u64::cast_signed)),
    }
}

/// What a value of this type looks like.
fn form(kind: RegisterType) -> &'static str {
    match kind {
        RegisterType::Bool => "true or false",
        RegisterType::U8 => "a number from 0 to 255",
        RegisterType::U16 => "a number from 0 to 65535",
        RegisterType::U32 | RegisterType::Seq32 => "a number from 0 to 4294967295",
        RegisterType::U64 | RegisterType::I64 => "a number of 64 bits",
        RegisterType::Time => "a duration such as 200ms",
        RegisterType::Mac => "an Ethernet address such as 02:00:00:00:00:01",
        RegisterType::Ipv4 => "an IPv4 address such as 10.0.0.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_lang::{Dialect, compile};

    const MACHINE: &str = "machine m;\nflow key five_tuple;\nregister wait: time = 1s;\nregister peer: ipv4;\n\
        register small: u8 = 3;\ninitial state s { on packet { small = small + 1; peer = peer; wait = wait; } }\n";

    fn image() -> VerifiedImage {
        compile("m.xl", Dialect::Xl, &MACHINE).image.unwrap().verify().unwrap()
    }

    fn set(name: &str, value: &str) -> Result<VerifiedImage, ParameterError> {
        apply(image(), &[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn values_are_written_as_their_types_are() {
        let initial = |image: &VerifiedImage, name: &str| {
            image.registers.iter().find(|register| register.name == name).map(|register| register.initial)
        };
        assert_eq!(initial(&set("wait", "250ms").unwrap(), "wait"), Some(250_000_000));
        assert_eq!(initial(&set("peer", "10.0.0.1").unwrap(), "peer"), Some(0x0a00_0001));
        assert_eq!(initial(&set("small", "0xff").unwrap(), "small"), Some(255));
        assert_ne!(set("small", "4").unwrap().digest, image().digest);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (name, value, words) in [
            ("small", "256", "from 0 to 255"),
            ("small", "-1", "from 0 to 255"),
            ("wait", "soon", "200ms"),
            ("peer", "::1", "10.0.0.1"),
            ("smal", "1", "did you mean `small`?"),
        ] {
            let error = set(name, value).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
