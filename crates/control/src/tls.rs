//! Mutual TLS: both ends of a connection show a certificate, and each knows the authority that the other's must be from.
//!
//! The one implementation for all services that are reached over a network (RFC 8446; TLS 1.3 alone). The cryptography is
//! *ring*'s, which a C compiler alone builds.
//!
//! Files may be replaced while the program runs: each new connection takes what stands in them, as long as it fits together.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, InconsistentKeys, RootCertStore, ServerConfig, version,
};

/// How long both ends may take until each knows who the other is.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// The protocol inside, HTTP/2, as clients ask for it (RFC 7301).
const PROTOCOL: &[u8] = b"h2";

/// What one end of a connection needs, each a PEM file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// This end's certificate, with those between it and its authority behind it.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// Certificates of the authorities that the other end's certificate must be from.
    pub authority: PathBuf,
}

/// Files that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TlsError {
    /// One cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// One has something else in it than it should.
    #[error("{path} has no {what}; a PEM file with `-----BEGIN {label}-----` is wanted")]
    Lacks {
        /// Which.
        path: String,
        /// What it should have.
        what: &'static str,
        /// How that begins.
        label: &'static str,
    },
    /// One is broken, or they do not go together.
    #[error("{path}: {reason}")]
    Unfit {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
}

/// The server's end.
#[derive(Clone, Debug)]
pub struct Server(Arc<Renewed<Arc<ServerConfig>>>);

/// A client's end.
#[derive(Clone, Debug)]
pub struct Client(Arc<Renewed<Arc<ClientConfig>>>);

impl Server {
    /// A server that wants a certificate of its clients.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(files: Files) -> Result<Server, TlsError> {
        Ok(Server(Arc::new(Renewed::new(files, server_config)?)))
    }

    /// What the next connection is to be made with; and what is wrong with files that were replaced, the first time.
    pub(crate) fn config(&self) -> (Arc<ServerConfig>, Option<TlsError>) {
        self.0.get()
    }
}

impl Client {
    /// A client that shows a certificate.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(files: Files) -> Result<Client, TlsError> {
        Ok(Client(Arc::new(Renewed::new(files, client_config)?)))
    }

    /// A connection to a server of this name or address, once that has accepted this end too.
    ///
    /// # Errors
    /// [`explain`] says what they mean.
    pub async fn connect(&self, stream: TcpStream, name: &str) -> io::Result<BufReader<TlsStream<TcpStream>>> {
        // Files that do not fit together are not taken; the server says what it thinks of those of before.
        let config = self.0.get().0;
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let mut stream = BufReader::new(TlsConnector::from(config).connect(name, stream).await?);
        // Only what a server says of itself shows that it has accepted this end's certificate; one of HTTP/2 does at once.
        match stream.fill_buf().await?.is_empty() {
            false => Ok(stream),
            true => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Something made of files, and made again when they change.
struct Renewed<T> {
    files: Files,
    make: fn(&Contents, &Files) -> Result<T, TlsError>,
    current: Mutex<Current<T>>,
}

struct Current<T> {
    made: T,
    /// Of the files that it was made of.
    stamps: Stamps,
    /// What was wrong with newer ones.
    fault: Option<TlsError>,
}

/// When each file was written, and how long it is.
type Stamps = [Option<(SystemTime, u64)>; 3];

/// The files' bytes.
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl<T: Clone> Renewed<T> {
    fn new(files: Files, make: fn(&Contents, &Files) -> Result<T, TlsError>) -> Result<Renewed<T>, TlsError> {
        let stamps = files.stamps();
        let made = make(&files.read()?, &files)?;
        Ok(Renewed { files, make, current: Mutex::new(Current { made, stamps, fault: None }) })
    }

    fn get(&self) -> (T, Option<TlsError>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.files.stamps();
        let mut told = None;
        if stamps != current.stamps {
            match self.files.read().and_then(|contents| (self.make)(&contents, &self.files)) {
                Ok(made) => *current = Current { made, stamps, fault: None },
                // One file may be new already and another not yet; or all belong to a user that this program no longer is.
                Err(error) if current.fault.as_ref() != Some(&error) => {
                    current.fault = Some(error.clone());
                    told = Some(error);
                }
                Err(_) => {}
            }
        }
        (current.made.clone(), told)
    }
}

impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is in the files is nobody's business.
        self.files.fmt(f)
    }
}

impl Files {
    fn stamps(&self) -> Stamps {
        [&self.certificate, &self.key, &self.authority].map(|path| {
            let data = std::fs::metadata(path).ok()?;
            Some((data.modified().ok()?, data.len()))
        })
    }

    fn read(&self) -> Result<Contents, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| TlsError::Read { path: path.display().to_string(), reason: error.to_string() })
        };
        Ok(Contents { certificate: read(&self.certificate)?, key: read(&self.key)?, authority: read(&self.authority)? })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn unfit(path: &Path, reason: impl fmt::Display) -> TlsError {
    TlsError::Unfit { path: path.display().to_string(), reason: reason.to_string() }
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| unfit(path, error))?;
    if found.is_empty() {
        let path = path.display().to_string();
        return Err(TlsError::Lacks { path, what: "certificate", label: "CERTIFICATE" });
    }
    Ok(found)
}

/// The certificate with its key, and the authorities.
fn parsed(contents: &Contents, files: &Files) -> Result<(CertifiedKey, RootCertStore), TlsError> {
    let chain = certificates(&contents.certificate, &files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_| TlsError::Lacks {
        path: files.key.display().to_string(),
        what: "private key",
        label: "PRIVATE KEY",
    })?;
    let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            unfit(&files.key, format!("this is not the key of the certificate in {}", files.certificate.display()))
        }
        error => unfit(&files.certificate, error),
    })?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&contents.authority, &files.authority)? {
        roots.add(certificate).map_err(|error| unfit(&files.authority, error))?;
    }
    Ok((certified, roots))
}

fn server_config(contents: &Contents, files: &Files) -> Result<Arc<ServerConfig>, TlsError> {
    let (certified, roots) = parsed(contents, files)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider()).build();
    let verifier = verifier.map_err(|error| unfit(&files.authority, error))?;
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&version::TLS13]);
    let builder = builder.map_err(|error| unfit(&files.certificate, error))?;
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols.push(PROTOCOL.to_vec());
    Ok(Arc::new(config))
}

fn client_config(contents: &Contents, files: &Files) -> Result<Arc<ClientConfig>, TlsError> {
    let (certified, roots) = parsed(contents, files)?;
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&version::TLS13]);
    let builder = builder.map_err(|error| unfit(&files.certificate, error))?;
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    let mut config = builder.with_root_certificates(roots).with_client_cert_resolver(Arc::new(resolver));
    config.alpn_protocols.push(PROTOCOL.to_vec());
    Ok(Arc::new(config))
}

/// Why two ends could not agree, if that is what an error comes from; in one line, from the view of the end that asks.
/// `other` is what the other end is called.
pub fn explain(error: &(dyn Error + 'static), other: &str) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let within = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        let found = error.downcast_ref().or_else(|| within.and_then(|error| error.downcast_ref::<rustls::Error>()));
        if let Some(found) = found {
            return Some(explained(found, other));
        }
        let ended = |error: &io::Error| {
            use io::ErrorKind as Kind;
            matches!(error.kind(), Kind::UnexpectedEof | Kind::ConnectionReset | Kind::BrokenPipe)
        };
        if error.downcast_ref().is_some_and(ended) {
            return Some(format!("{other} does not speak TLS, or ended the connection in the middle of its beginning"));
        }
        next = error.source();
    }
    None
}

fn explained(error: &rustls::Error, other: &str) -> String {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::UnknownIssuer | Bad::BadSignature => {
                format!("{other}'s certificate is not from the authority that was given for it")
            }
            Bad::Expired | Bad::ExpiredContext { .. } => format!("{other}'s certificate has expired"),
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => format!("{other}'s certificate is not valid yet"),
            Bad::NotValidForNameContext { expected, presented } => format!(
                "{other}'s certificate is not for `{}` but for {}; connect to it by that name",
                expected.to_str(),
                if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") },
            ),
            bad => format!("{other}'s certificate does not do: {bad}"),
        },
        rustls::Error::NoCertificatesPresented => format!("{other} has shown no certificate"),
        rustls::Error::AlertReceived(alert) => {
            let what = match alert {
                AlertDescription::CertificateRequired => "wants a certificate of this end, and got none",
                AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                    "does not trust the authority of this end's certificate"
                }
                AlertDescription::CertificateExpired => "says that this end's certificate has expired",
                AlertDescription::BadCertificate | AlertDescription::UnsupportedCertificate => {
                    "does not accept this end's certificate"
                }
                AlertDescription::ProtocolVersion => "wants another version of TLS; 1.3 is possible",
                alert => return format!("{other} ended the connection: {alert:?}"),
            };
            format!("{other} {what}")
        }
        rustls::Error::InvalidMessage(_) => format!("{other} does not speak TLS"),
        error => format!("{other} and this end found no secure connection: {error}"),
    }
}
