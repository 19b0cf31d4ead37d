//! Parameters of a function: initial values of its machine's registers, given where it is started.

use std::net::Ipv4Addr;
use thiserror::Error;
use weftwire_core::{MacAddress, nanoseconds};
use weftwire_image::registers::element_of;
use weftwire_image::{Image, Register, RegisterType, VerifiedImage};
use weftwire_text::diagnostic::{list, nearest};
use weftwire_text::quantity::{parse_duration, parse_rate};

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
        form: String,
    },
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
    let values: Vec<(usize, i64)> =
        parameters.iter().map(|parameter| initial_value(&image, parameter)).collect::<Result<_, _>>()?;
    Ok(image.with_initial_values(values))
}

/// The register that a parameter names, by its index, and its value.
fn initial_value(image: &Image, (name, text): &Parameter) -> Result<(usize, i64), ParameterError> {
    let mut registers_of_flows = image.registers.iter().enumerate().filter(|(_, register)| is_parameter(register));
    let Some((index, register)) = registers_of_flows.find(|(_, register)| register.name == *name) else {
        let hint = hint(name, &registers(image));
        return Err(ParameterError::Unknown { machine: image.name.clone(), name: name.clone(), hint });
    };
    let value = register_value(register, text).ok_or_else(|| ParameterError::Unfit {
        name: name.clone(),
        text: text.clone(),
        form: form(register),
    })?;
    Ok((index, value))
}

/// The names of the registers that flows of a machine have.
pub fn registers(image: &Image) -> Vec<&str> {
    image.registers.iter().filter(|register| is_parameter(register)).map(|register| &*register.name).collect()
}

/// Whether a register may be given another initial value: none of an array.
fn is_parameter(register: &Register) -> bool {
    !register.scratch && element_of(&register.name).is_none()
}

/// What could be meant by the name of a register that is not there.
pub fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(like) => format!("did you mean `{like}`?"),
        None => format!("there are: {}", known.join(", ")),
    }
}

/// A value as written: one of the register's named values, or one of its type.
pub fn register_value(register: &Register, text: &str) -> Option<i64> {
    let named = register.values.iter().position(|name| name == text).map(|value| value as i64);
    named.or_else(|| value(register.kind, text).filter(|value| register.kind.cut(*value) == *value))
}

fn value(kind: RegisterType, text: &str) -> Option<i64> {
    match kind {
        RegisterType::Bool => text.parse::<bool>().ok().map(i64::from).or_else(|| number(text)),
        RegisterType::Time => parse_duration(text).ok().map(nanoseconds),
        RegisterType::Mac => text.parse().ok().map(|address: MacAddress| address.to_bits().cast_signed()),
        RegisterType::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| i64::from(u32::from(address))),
        // A rate is a number of bits in a second.
        RegisterType::U64 => number(text).or_else(|| parse_rate(text).ok().map(u64::cast_signed)),
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

/// What a value of this register looks like.
fn form(register: &Register) -> String {
    if !register.values.is_empty() {
        return list(register.values.iter().map(String::as_str));
    }
    let form = match register.kind {
        RegisterType::Bool => "true or false",
        RegisterType::U8 => "a number from 0 to 255",
        RegisterType::U16 | RegisterType::Seq16 => "a number from 0 to 65535",
        RegisterType::Seq24 => "a number from 0 to 16777215",
        RegisterType::U32 | RegisterType::Seq32 => "a number from 0 to 4294967295",
        RegisterType::U64 => "a number of 64 bits, or a rate such as 10Mbit/s",
        RegisterType::Seq64 | RegisterType::I64 => "a number of 64 bits",
        RegisterType::Time => "a duration such as 200ms",
        RegisterType::Mac => "an Ethernet address such as 02:00:00:00:00:01",
        RegisterType::Ipv4 => "an IPv4 address such as 10.0.0.1",
    };
    form.to_owned()
}
