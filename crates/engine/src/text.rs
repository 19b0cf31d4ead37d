//! Registers and flow keys as people write them.

use crate::program::Program;
use std::net::{Ipv4Addr, Ipv6Addr};
use weftwire_core::{MacAddress, Time};
use weftwire_image::RegisterType;

/// A register's value as its type is written.
pub fn value_text(kind: RegisterType, value: i64) -> String {
    match kind {
        RegisterType::Bool => (value != 0).to_string(),
        RegisterType::U8 | RegisterType::U16 | RegisterType::U32 | RegisterType::U64 => (value as u64).to_string(),
        RegisterType::Seq16 | RegisterType::Seq24 | RegisterType::Seq32 | RegisterType::Seq64 => {
            (value as u64).to_string()
        }
        RegisterType::I64 => value.to_string(),
        RegisterType::Time => format!("{} s", Time::from_nanoseconds(value)),
        RegisterType::Mac => MacAddress::from_bits(value as u64).to_string(),
        RegisterType::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
    }
}

/// A flow key, e.g. `10.0.0.1:4000 <-> 10.0.0.2:80 tcp`.
pub fn key_text(program: &Program, key: &[u8]) -> String {
    let flow = &program.image.flow;
    let mut rest = key;
    let common: Vec<String> = flow.common.iter().map(|&field| field_text(program, field, &mut rest)).collect();
    let mut parts = Vec::new();
    if !flow.source.is_empty() {
        let source = side_text(program, &flow.source, &mut rest);
        let destination = side_text(program, &flow.destination, &mut rest);
        let arrow = if flow.symmetric { "<->" } else { "->" };
        parts.push(format!("{source} {arrow} {destination}"));
    }
    parts.extend(common);
    parts.join(" ")
}

fn side_text(program: &Program, fields: &[u16], rest: &mut &[u8]) -> String {
    let texts = fields.iter().map(|&field| {
        let text = field_text(program, field, rest);
        // As in URLs, so that the port stands apart.
        if fields.len() > 1 && program.places[usize::from(field)].width() == 128 && text.contains(':') {
            format!("[{text}]")
        } else {
            text
        }
    });
    texts.collect::<Vec<String>>().join(":")
}

/// Takes one field from the front of a key.
fn field_text(program: &Program, field: u16, rest: &mut &[u8]) -> String {
    let width = program.places[usize::from(field)].width();
    let (bytes, behind) = rest.split_at(usize::from(width).div_ceil(8));
    *rest = behind;
    let value = bytes.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
    let name = &program.image.fields[usize::from(field)];
    match (width, name.field.as_str(), value) {
        (8, "protocol" | "next_header", 6) => "tcp".into(),
        (8, "protocol" | "next_header", 17) => "udp".into(),
        (128, ..) => {
            let address = Ipv6Addr::from(value);
            address.to_ipv4_mapped().map_or(address.to_string(), |address| address.to_string())
        }
        (48, ..) => MacAddress::from_bits(value as u64).to_string(),
        (32, "source" | "destination" | "sender_address" | "target_address", _) => {
            Ipv4Addr::from(value as u32).to_string()
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_like_their_types() {
        assert_eq!(value_text(RegisterType::Bool, 1), "true");
        assert_eq!(value_text(RegisterType::U64, -1), "18446744073709551615");
        assert_eq!(value_text(RegisterType::I64, -1), "-1");
        assert_eq!(value_text(RegisterType::Time, 1_500_000_000), "1.500000000 s");
        assert_eq!(value_text(RegisterType::Mac, 0x0200_0000_0001), "02:00:00:00:00:01");
        assert_eq!(value_text(RegisterType::Ipv4, 0x0a00_0001), "10.0.0.1");
    }
}
