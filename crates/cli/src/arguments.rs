//! Readers of arguments that several subcommands share. Each error says what would be right.

use std::net::SocketAddr;
use std::time::Duration;
use weftwire_linux::interface::parse_mac;

/// Reads a duration: a number and `ms`, `s`, `m` or `h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || "write a number and a unit: 500ms, 10s, 5m or 1h".to_owned();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad()),
    };
    let number: f64 = number.parse().map_err(|_| bad())?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| bad())
}

/// The two ends and the protocol of a connection to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// IP protocol number: 6 TCP, 17 UDP.
    pub protocol: u8,
}

/// Reads `SOURCE:PORT-DESTINATION:PORT`, with `/udp` behind it for UDP.
pub fn connection(text: &str) -> Result<Connection, String> {
    let (ends, protocol) = match text.split_once('/') {
        None | Some((_, "tcp")) => (text.strip_suffix("/tcp").unwrap_or(text), 6),
        Some((ends, "udp")) => (ends, 17),
        Some(_) => return Err("the protocol is /tcp or /udp".into()),
    };
    let bad =
        || "write SOURCE:PORT-DESTINATION:PORT, e.g. 10.0.0.1:4000-10.0.0.2:80 or [fd00::1]:4000-[fd00::2]:80/udp";
    let (local, remote) = ends.split_once('-').ok_or_else(bad)?;
    let end = |text: &str| text.parse::<SocketAddr>().map_err(|_| bad());
    let (local, remote) = (end(local)?, end(remote)?);
    if local.is_ipv4() != remote.is_ipv4() {
        return Err("both ends must be IPv4, or both IPv6".into());
    }
    Ok(Connection { local, remote, protocol })
}

/// Reads an Ethernet address.
pub fn mac(text: &str) -> Result<[u8; 6], String> {
    parse_mac(text).ok_or_else(|| "write six hexadecimal bytes, e.g. 02:00:00:00:00:01".into())
}

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
    fn reads_durations() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1.2.3s", "1d"] {
            assert!(duration(bad).unwrap_err().contains("10s"), "{bad}");
        }
    }

    #[test]
    fn reads_connections() {
        let read = connection("10.0.0.1:4000-10.0.0.2:80").unwrap();
        assert_eq!((read.local.port(), read.remote.port(), read.protocol), (4000, 80, 6));
        assert_eq!(connection("[fd00::1]:1-[fd00::2]:2/udp").unwrap().protocol, 17);
        for bad in ["", "10.0.0.1:4000", "10.0.0.1-10.0.0.2:80", "10.0.0.1:1-[fd00::2]:2", "10.0.0.1:1-10.0.0.2:2/sctp"]
        {
            assert!(connection(bad).is_err(), "{bad}");
        }
    }

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
