//! Where a controller listens.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use thiserror::Error;

/// The address of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A host and a port. Without [TLS](crate::tls), whoever reaches it may do everything.
    Tcp(String),
}

/// Why a text is no address of a controller.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AddressError {
    /// A Unix socket without a path.
    #[error("`unix:` needs a path behind it, e.g. unix:/run/weft/controller/grpc.sock")]
    NoPath,
    /// Neither a Unix socket nor a host with a port.
    #[error("`{0}` is no address; write unix:PATH, or HOST:PORT like 127.0.0.1:7878")]
    Unreadable(String),
}

impl Address {
    /// What tonic wants to connect to.
    pub(crate) fn uri(&self, secure: bool) -> String {
        match self {
            // The name that a server is asked by; who connects knows the path.
            Address::Unix(_) => "http://localhost".to_owned(),
            Address::Tcp(place) if secure => format!("https://{place}"),
            Address::Tcp(place) => format!("http://{place}"),
        }
    }

    /// Whether it leads beyond this machine, as far as its text tells.
    pub fn is_remote(&self) -> bool {
        let Address::Tcp(place) = self else { return false };
        let host = place.rsplit_once(':').map_or(&**place, |(host, _)| host);
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.map_or(host != "localhost", |address| !address.to_canonical().is_loopback())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        if let Some(path) = text.strip_prefix("unix:").or(text.contains('/').then_some(text)) {
            if path.is_empty() {
                return Err(AddressError::NoPath);
            }
            return Ok(Address::Unix(path.into()));
        }
        let wrong = || AddressError::Unreadable(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host_fits = !host.is_empty() && (!host.contains(':') || host.starts_with('[') && host.ends_with(']'));
        if !host_fits || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        Ok(Address::Tcp(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(place) => f.write_str(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_or_places() {
        for (text, shown) in [
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("./a.sock", "unix:./a.sock"),
            ("unix:a.sock", "unix:a.sock"),
            ("127.0.0.1:7878", "127.0.0.1:7878"),
            ("[::1]:7878", "[::1]:7878"),
            ("controller.example:1", "controller.example:1"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
        for (text, is_remote) in [
            ("unix:/run/a.sock", false),
            ("127.0.0.1:7878", false),
            ("localhost:7878", false),
            ("[::1]:7878", false),
            ("[::ffff:127.0.0.1]:7878", false),
            ("0.0.0.0:7878", true),
            ("[fd00::1]:7878", true),
            ("controller.example:1", true),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().is_remote(), is_remote, "{text}");
        }
        for text in ["", "unix:", "7878", ":7878", "localhost", "::1:7878", "localhost:port", "localhost:65536"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("unix:"), "{text}: {error}");
        }
    }
}
