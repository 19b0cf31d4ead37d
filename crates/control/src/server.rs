//! The controller's side: it listens and serves until it is told to stop.

use crate::address::Address;
pub use crate::admission::Limits;
use crate::admission::{Admission, Report, Sockets};
use crate::keeper::{Keeper, Started};
use crate::protocol::controller_server::ControllerServer;
use crate::service::Service;
use crate::tls;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tonic::transport::Server;
use weftwire_linux::LinuxError;
use weftwire_linux::local::{self, SocketFile};
use weftwire_linux::privileges::User;

/// Largest request in bytes.
const MOST_REQUEST: usize = 4 << 20;
/// Requests of one connection at the same time; further ones wait.
const MOST_STREAMS: u32 = 128;
/// How often an idle connection is asked whether its other end is alive.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// How long requests may take to end once the controller is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// A controller that cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Somebody answers there.
    #[error("another controller listens on {0}; give this one another --listen")]
    InUse(Address),
    /// A Unix socket can't be made.
    #[error(transparent)]
    Local(#[from] LinuxError),
    /// The system refused.
    #[error("cannot listen on {address}: {error}")]
    System {
        /// Where.
        address: Address,
        /// Why.
        error: io::Error,
    },
    /// Serving failed.
    #[error("the service failed: {0}")]
    Service(#[from] tonic::transport::Error),
}

/// An open socket. A Unix socket's file goes away with it.
pub struct Listener {
    socket: Socket,
    address: Address,
    tls: Option<tls::Server>,
    limits: Limits,
    report: Report,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener),
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Listener {
    /// Opens a socket. A Unix socket is for the user alone, or for `owner` if this is root; one left by a controller that is
    /// dead is replaced.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn open(address: &Address, owner: Option<User>) -> Result<Listener, ListenError> {
        let failed = |error| ListenError::System { address: address.clone(), error };
        let (socket, address) = match address {
            Address::Unix(path) => {
                let (listener, file) = local::listen(path, owner).map_err(|error| match error {
                    LinuxError::SocketInUse(_) => ListenError::InUse(address.clone()),
                    error => ListenError::Local(error),
                })?;
                (Socket::Unix(listener, file), address.clone())
            }
            Address::Tcp(place) => {
                let listener = TcpListener::bind(place).map_err(|error| match error.kind() {
                    io::ErrorKind::AddrInUse => ListenError::InUse(address.clone()),
                    _ => failed(error),
                })?;
                // Port 0 asks for any.
                let address = listener.local_addr().map_err(failed)?;
                (Socket::Tcp(listener), Address::Tcp(address.to_string()))
            }
        };
        Ok(Listener { socket, address, tls: None, limits: Limits::default(), report: Arc::new(drop) })
    }

    /// Talks TLS alone with those that come by TCP. A Unix socket stays as it is.
    #[must_use]
    pub fn secured(self, tls: tls::Server) -> Listener {
        Listener { tls: Some(tls), ..self }
    }

    /// Has other limits than the usual ones.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Listener {
        Listener { limits, ..self }
    }

    /// Tells `report`, in one line each and not more often than once a second, who was refused and why.
    #[must_use]
    pub fn reporting(self, report: impl Fn(String) + Send + Sync + 'static) -> Listener {
        Listener { report: Arc::new(report), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether others than this machine may reach it.
    pub fn is_remote(&self) -> bool {
        match &self.socket {
            Socket::Unix(..) => false,
            Socket::Tcp(listener) => listener.local_addr().is_ok_and(|address: SocketAddr| !address.ip().is_loopback()),
        }
    }
}

/// Serves until `stop`, then ends all streams, answers what was asked before, and closes the store. To be called in a
/// runtime of tokio with time and input enabled.
///
/// # Errors
/// [`ListenError`].
pub async fn serve(started: Started, listener: Listener, stop: impl Future<Output = ()>) -> Result<(), ListenError> {
    let Started { keeper, thread, .. } = started;
    let served = serve_requests(keeper, listener, stop).await;
    // It ends by itself, as nobody can ask it any more.
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    served
}

async fn serve_requests(keeper: Keeper, listener: Listener, stop: impl Future<Output = ()>) -> Result<(), ListenError> {
    let (stopping, stopped) = watch::channel(false);
    let service = ControllerServer::new(Service::new(keeper, stopped.clone())).max_decoding_message_size(MOST_REQUEST);
    let builder = Server::builder()
        .max_concurrent_streams(MOST_STREAMS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE));
    let signal = {
        let mut stopped = stopped.clone();
        async move { drop(stopped.wait_for(|stop| *stop).await) }
    };
    let Listener { socket, address, tls, limits, report } = listener;
    let failed = |error| ListenError::System { address: address.clone(), error };
    let serving = async {
        let (sockets, _file) = match socket {
            Socket::Unix(listener, file) => {
                (Sockets::Unix(tokio::net::UnixListener::from_std(listener).map_err(failed)?), Some(file))
            }
            Socket::Tcp(listener) => {
                listener.set_nonblocking(true).map_err(failed)?;
                (Sockets::Tcp(tokio::net::TcpListener::from_std(listener).map_err(failed)?, tls), None)
            }
        };
        let incoming = Admission::new(limits, report).admit(sockets);
        builder.serve_with_incoming_shutdown(service, incoming, signal).await?;
        Ok(())
    };
    let ending = async {
        stop.await;
        stopping.send_replace(true);
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = serving => served,
        () = ending => Ok(()),
    }
}
