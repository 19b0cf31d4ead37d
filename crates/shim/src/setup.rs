//! What a host is made of: a file, and parameters.

use crate::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use thiserror::Error;
use weftwire_catalog::parameter::{self, ParameterError, parse_parameter};
use weftwire_catalog::{Catalog, CatalogError, dialect};
use weftwire_core::CallError;
use weftwire_engine::EngineError;
use weftwire_image::{ImageError, VerifiedImage};

/// TCP.
const TCP: u8 = 6;

/// What a host is made of, beside its machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Of random numbers, and of the key of hashes.
    pub seed: u64,
    /// This host's addresses. None: every address is, and connections leave from [`Setup::DEFAULT_V4`] or [`Setup::DEFAULT_V6`].
    pub addresses: Vec<IpAddr>,
    /// The IP protocol number of connections.
    pub protocol: u8,
    /// Bytes that the machine's receive buffer has room for, in place of its own number.
    pub receive_buffer: Option<u32>,
    /// Initial values of the machine's registers: names, and values as they are written.
    pub registers: Vec<(String, String)>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { seed: 1, addresses: Vec::new(), protocol: TCP, receive_buffer: None, registers: Vec::new() }
    }
}

/// Why there is no host.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The file gives no machine.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The source is no right program; where and why.
    #[error("{0}")]
    Program(String),
    /// The bytes are no image that can run.
    #[error("these bytes are no image that can run")]
    Image(#[from] ImageError),
    /// A register does not exist, or does not hold such a value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A parameter of the shim has no such value.
    #[error("parameter {name}: `{text}` does not fit; write {form}")]
    Unfit {
        /// The parameter.
        name: &'static str,
        /// The value as written.
        text: String,
        /// What values look like.
        form: &'static str,
    },
    /// No parameter says what runs.
    #[error("say which machine: machine=PATH")]
    NoMachine,
    /// The machine has no receive buffer.
    #[error("this machine has no receive buffer whose size could be a parameter")]
    NoReceiveBuffer,
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It carries no connections.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Setup {
    /// Where connections leave from that were not bound, if every address is this host's.
    pub const DEFAULT_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
    /// The same for IPv6.
    pub const DEFAULT_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1);

    /// Reads `NAME=VALUE,NAME=VALUE`. `machine` is the path of the machine; `local` an address of this host, and may come again;
    /// `seed`, `protocol` and `receive_buffer` are numbers; all others are registers. Gives the path too, if there is one.
    ///
    /// # Errors
    /// [`SetupError::Parameter`], [`SetupError::Unfit`].
    pub fn parse(text: &str) -> Result<(Setup, Option<String>), SetupError> {
        let (mut setup, mut machine) = (Setup::default(), None);
        for part in text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = parse_parameter(part)?;
            match name.as_str() {
                "machine" => machine = Some(value),
                "local" => setup.addresses.push(fit("local", &value, "an address such as 192.168.0.1")?),
                "seed" => setup.seed = fit("seed", &value, "a number of 64 bits")?,
                "protocol" => setup.protocol = fit("protocol", &value, "a number from 0 to 255")?,
                "receive_buffer" => {
                    setup.receive_buffer = Some(fit("receive_buffer", &value, "a number of bytes such as 65536")?);
                }
                _ => setup.registers.push((name, value)),
            }
        }
        Ok((setup, machine))
    }

    /// A host with the machine of a file: an image (.json) or a source (.xl, .xtra).
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn load(self, path: &Path) -> Result<Host, SetupError> {
        let catalog = Catalog { includes: Vec::new(), timers: None, report: &|_, _| {} };
        if dialect(path).is_none() {
            return self.start(catalog.image(path)?);
        }
        let compilation = catalog.try_compile(path)?;
        let Some(image) = compilation.image else {
            let faults = compilation.diagnostics.iter().map(|fault| fault.to_text(&compilation.sources));
            return Err(SetupError::Program(faults.collect::<Vec<_>>().join("\n")));
        };
        self.start(image.verify().map_err(CatalogError::Defect)?)
    }

    /// A host with a machine's image, as JSON.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn read(self, image: &[u8]) -> Result<Host, SetupError> {
        self.start(VerifiedImage::from_json(image)?)
    }

    /// A host with this machine.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn start(self, image: VerifiedImage) -> Result<Host, SetupError> {
        let mut image = parameter::apply(image, &self.registers)?;
        if let Some(bytes) = self.receive_buffer {
            let mut changed = image.into_image();
            let (index, _) = changed.receive_buffer().ok_or(SetupError::NoReceiveBuffer)?;
            changed.ranges[index].bytes = Some(bytes);
            changed.seal();
            image = changed.verify()?;
        }
        Host::new(image, self)
    }

    /// Whether an address is this host's.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.is_empty() || self.addresses.contains(&address)
    }

    /// The address that connections to this one leave from.
    pub fn source(&self, remote: IpAddr) -> Option<IpAddr> {
        match self.addresses.is_empty() {
            true if remote.is_ipv4() => Some(Setup::DEFAULT_V4.into()),
            true => Some(Setup::DEFAULT_V6.into()),
            false => self.addresses.iter().find(|address| address.is_ipv4() == remote.is_ipv4()).copied(),
        }
    }
}

fn fit<T: std::str::FromStr>(name: &'static str, text: &str, form: &'static str) -> Result<T, SetupError> {
    text.parse().map_err(|_| SetupError::Unfit { name, text: text.into(), form })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let (setup, machine) = Setup::parse("machine=tcp.xl, local=10.0.0.1,local=::1,seed=7,offer_stamps=0").unwrap();
        assert_eq!(machine.as_deref(), Some("tcp.xl"));
        assert_eq!((setup.seed, setup.addresses.len()), (7, 2));
        assert_eq!(setup.registers, [("offer_stamps".to_owned(), "0".to_owned())]);
        assert!(setup.has("::1".parse().unwrap()) && !setup.has("::2".parse().unwrap()));
        assert_eq!(setup.source("10.9.9.9".parse().unwrap()), Some("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_words() {
        for (text, words) in [("seed=x", "of 64 bits"), ("local=10.0.0", "192.168.0.1"), ("seed", "NAME=VALUE")] {
            let error = Setup::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
