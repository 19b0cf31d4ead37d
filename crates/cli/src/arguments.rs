//! Readers of arguments that several subcommands share. Each error says what would be right.

use std::net::SocketAddr;
use weftwire_core::{Endpoints, Listen};
use weftwire_sim::spec::parse_connection;

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

/// Reads what is listened at: `ADDRESS:PORT`, `[ADDRESS]:PORT`, `ADDRESS` for all its ports, `:PORT` for all addresses.
pub fn parse_listen(text: &str) -> Result<Listen, String> {
    if let Ok(address) = text.parse() {
        return Ok(Listen { address: Some(address), port: None });
    }
    if let Ok(port) = text.strip_prefix("*:").or(text.strip_prefix(':')).unwrap_or_default().parse() {
        return Ok(Listen { address: None, port: Some(port) });
    }
    match text.parse::<SocketAddr>() {
        Ok(end) => Ok(Listen { address: Some(end.ip()), port: Some(end.port()) }),
        Err(_) => {
            Err("write ADDRESS:PORT, e.g. 10.0.0.1:80; 10.0.0.1 is all of its ports, :80 this port of all addresses"
                .into())
        }
    }
}

/// Reads a connection whose local port may be left out, as [`parse_connection`] does; it is 0 then.
pub fn parse_connection_from(text: &str) -> Result<Endpoints, String> {
    let whole = text.split_once('-').and_then(|(local, remote)| {
        let address = local.parse().ok()?;
        Some(format!("{}-{remote}", SocketAddr::new(address, 0)))
    });
    parse_connection(whole.as_deref().unwrap_or(text)).map_err(|error| error.to_string())
}

/// Reads an end of the kernel's.
pub fn parse_socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write ADDRESS:PORT with a number for the address, e.g. 127.0.0.1:8080 or [::1]:8080".into())
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

    #[test]
    fn reads_where_to_listen() {
        let read = |text: &str| parse_listen(text).map(|listen| (listen.address.map(|it| it.to_string()), listen.port));
        assert_eq!(read("10.0.0.1:80"), Ok((Some("10.0.0.1".into()), Some(80))));
        assert_eq!(read("[fd00::1]:80"), Ok((Some("fd00::1".into()), Some(80))));
        assert_eq!(read("fd00::1"), Ok((Some("fd00::1".into()), None)));
        assert_eq!(read(":80"), Ok((None, Some(80))));
        assert_eq!(read("*:80"), Ok((None, Some(80))));
        for bad in ["", ":", "80", "10.0.0.1:", "10.0.0.1:99999", "example.org:80"] {
            assert!(read(bad).is_err_and(|error| error.contains("10.0.0.1:80")), "{bad}");
        }
    }

    #[test]
    fn reads_connections_from_any_port() {
        let port =
            |text: &str| parse_connection_from(text).map(|ends| (ends.local_port, ends.remote_port, ends.protocol));
        assert_eq!(port("10.0.0.1-10.0.0.2:80"), Ok((0, 80, 6)));
        assert_eq!(port("10.0.0.1:4000-10.0.0.2:80/udp"), Ok((4_000, 80, 17)));
        assert_eq!(port("fd00::1-[fd00::2]:80"), Ok((0, 80, 6)));
        for bad in ["", "10.0.0.1", "10.0.0.1-10.0.0.2", "10.0.0.1-[fd00::2]:80", "a-b"] {
            assert!(port(bad).is_err(), "{bad}");
        }
    }
}
