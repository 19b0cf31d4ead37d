//! Readers of arguments that several subcommands share. Each error says what would be right.

/// Reads `REGISTER=VALUE`; the value decimal or hexadecimal (0x...), up to 64 bits, signed or unsigned.
pub fn assignment(text: &str) -> Result<(String, i64), String> {
    let bad = || "write REGISTER=VALUE, e.g. window=10 or mask=0xff00".to_owned();
    let (register, value) = text.split_once('=').filter(|(register, _)| !register.is_empty()).ok_or_else(bad)?;
    let value = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse::<i64>().map(i64::cast_unsigned).or_else(|_| value.parse()).ok(),
    };
    Ok((register.to_owned(), value.ok_or_else(bad)?.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_assignments() {
        assert_eq!(assignment("a=-5"), Ok(("a".into(), -5)));
        assert_eq!(assignment("a=0xffffffffffffffff"), Ok(("a".into(), -1)));
        assert_eq!(assignment("a=18446744073709551615"), Ok(("a".into(), -1)));
        for bad in ["a", "=1", "a=", "a=x", "a=18446744073709551616"] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }
}
