//! How the controller and those who talk to it find and know each other.

use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use weftwire_control::{Address, tls};
use weftwire_linux::local::{Service, socket_of};

/// The certificate that an end of a connection shows.
#[derive(Args, Clone, Debug)]
struct Identity {
    /// This end's certificate for TLS, a PEM file
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, a PEM file
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

/// Where the controller is, for its clients and switches.
#[derive(Args, Clone, Debug)]
pub struct ClientEnd {
    /// The controller: unix:PATH or HOST:PORT [default: where `weft subs controller` of the same user listens]
    #[arg(long, value_name = "ADDRESS")]
    controller: Option<Address>,
    #[command(flatten)]
    identity: Identity,
    /// Certificates of the authorities that the controller's certificate must be from, a PEM file
    #[arg(long, value_name = "FILE")]
    server_ca: Option<PathBuf>,
    /// Talk to a controller on another machine without TLS
    #[arg(long)]
    insecure: bool,
}

/// Where the controller listens, and to whom.
#[derive(Args, Clone, Debug)]
pub struct ServerEnd {
    /// Listen here: unix:PATH, or HOST:PORT [default: the socket at which clients ask without --controller]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    #[command(flatten)]
    identity: Identity,
    /// Certificates of the authorities that clients' and switches' certificates must be from, a PEM file: whoever has one
    /// may do everything
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Listen beyond this machine without TLS: whoever reaches the port may do everything
    #[arg(long)]
    insecure: bool,
}

impl Identity {
    /// The files of an end, if there are any. `authority` is the option that names the other end's.
    fn files(&self, authority: (&str, &Option<PathBuf>), address: &Address) -> Result<Option<tls::Files>> {
        let (option, authority) = authority;
        match (&self.tls_cert, &self.tls_key, authority) {
            (None, None, None) => Ok(None),
            _ if matches!(address, Address::Unix(_)) => {
                bail!(
                    "{address} is a socket of this machine, which its owner alone may open: leave the options of TLS out"
                )
            }
            (Some(certificate), Some(key), Some(authority)) => Ok(Some(tls::Files {
                certificate: certificate.clone(),
                key: key.clone(),
                authority: authority.clone(),
            })),
            _ => bail!("TLS needs --tls-cert, --tls-key and {option}: each end shows a certificate"),
        }
    }
}

impl ClientEnd {
    /// Whether anything is said of the controller.
    pub fn is_given(&self) -> bool {
        let files = [&self.identity.tls_cert, &self.identity.tls_key, &self.server_ca];
        self.controller.is_some() || self.insecure || files.iter().any(|file| file.is_some())
    }

    /// Where the controller is, and how to talk to it.
    pub fn open(&self) -> Result<(Address, Option<tls::Client>)> {
        let address = self.controller.clone().map_or_else(default_address, Ok)?;
        let files = self.identity.files(("--server-ca", &self.server_ca), &address)?;
        if files.is_none() && address.is_remote() && !self.insecure {
            bail!(
                "{address} is not this machine: give --tls-cert, --tls-key and --server-ca, or --insecure to trust whoever \
                 answers there"
            );
        }
        Ok((address, files.map(tls::Client::open).transpose()?))
    }
}

impl ServerEnd {
    /// Whether a place to listen is given.
    pub(super) fn is_given(&self) -> bool {
        self.listen.is_some()
    }

    /// Where to listen.
    pub fn address(&self) -> Result<Address> {
        self.listen.clone().map_or_else(default_address, Ok)
    }

    /// How to know clients. `is_remote`: others than this machine may reach the address.
    pub fn secured(&self, address: &Address, is_remote: bool) -> Result<Option<tls::Server>> {
        let files = self.identity.files(("--client-ca", &self.client_ca), address)?;
        if files.is_none() && is_remote && !self.insecure {
            bail!(
                "others than this machine reach {address}: give --tls-cert, --tls-key and --client-ca, or --insecure to let \
                 whoever comes do everything"
            );
        }
        Ok(files.map(tls::Server::open).transpose()?)
    }
}

/// Where a controller listens if nobody says otherwise.
fn default_address() -> Result<Address> {
    Ok(Address::Unix(socket_of(Service::Controller)?))
}
