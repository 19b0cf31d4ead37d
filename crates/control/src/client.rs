//! A client of the controller.

use crate::address::Address;
use crate::protocol::controller_client::ControllerClient;
use crate::protocol::{self, ListPage, ListRequest, Outcome, Subscription, SubscriptionList, TopologyReply};
use crate::table::TableError;
use crate::tls;
use crate::unix::UnixConnector;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::client::TlsStream;
use tokio_stream::wrappers::WatchStream;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status, Streaming};
use weftwire_linux::reach::Reach;

/// Largest answer in bytes.
pub(crate) const MOST_ANSWER: usize = 16 << 20;
/// What it is called in errors.
const CONTROLLER: &str = "the controller";
/// What is to be said of how to connect.
const OPTIONS: &str = "give --tls-cert, --tls-key and --server-ca";
const CONNECT: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Why something was not done.
#[derive(Clone, Debug, Error)]
pub enum ClientError {
    /// Nobody answers.
    #[error(
        "cannot reach a controller at {address}: {reason}; `weft subs controller` starts one, --controller says where it is"
    )]
    Unreachable {
        /// Where.
        address: Address,
        /// Why.
        reason: String,
    },
    /// Somebody answers, but not one that this end and its certificate go with.
    #[error("no secure connection to the controller at {address}: {reason}")]
    Insecure {
        /// Where.
        address: Address,
        /// Why, and what would be right.
        reason: String,
    },
    /// The controller refused, and says why.
    #[error("{}", status.message())]
    Refused {
        /// Its answer.
        status: Status,
    },
    /// The connection was lost.
    #[error("the connection to the controller was lost: {}", status.message())]
    Lost {
        /// What is known of it.
        status: Status,
    },
    /// The other end says what makes no sense.
    #[error("the controller is of another kind than this program: {0}")]
    Table(TableError),
    /// The other end has nothing more to say, though a table is followed as long as somebody listens.
    #[error("the controller is of another kind than this program: it ended the stream without a reason")]
    Ended,
}

impl From<Status> for ClientError {
    fn from(status: Status) -> ClientError {
        match status.code() {
            Code::InvalidArgument
            | Code::NotFound
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::DataLoss
            | Code::Unimplemented => ClientError::Refused { status },
            _ => ClientError::Lost { status },
        }
    }
}

/// A connection to a controller, which is made anew when it is lost.
#[derive(Clone, Debug)]
pub struct Client {
    inner: ControllerClient<Channel>,
    address: Address,
    /// Nothing has shown yet that the controller takes plain connections by TCP.
    is_unanswered: Arc<AtomicBool>,
}

/// Makes connections by TLS.
struct Secure {
    place: String,
    tls: tls::Client,
}

impl Service<Uri> for Secure {
    type Response = TokioIo<BufReader<TlsStream<TcpStream>>>;
    type Error = io::Error;
    type Future = BoxFuture<Self::Response, io::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (place, tls) = (self.place.clone(), self.tls.clone());
        Box::pin(async move {
            let stream = TcpStream::connect(&place).await?;
            // It works without, only slower.
            let _ = stream.set_nodelay(true);
            let name = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
            let agreed = tokio::time::timeout(tls::HANDSHAKE, tls.connect(stream, name)).await;
            Ok(TokioIo::new(agreed.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??))
        })
    }
}

impl Client {
    /// Connects. To be called in a runtime of tokio with time and input enabled, as all of the rest. Addresses of
    /// [`Address::Tcp`] may have TLS.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`], [`ClientError::Insecure`].
    pub async fn connect(address: &Address, tls: Option<&tls::Client>) -> Result<Client, ClientError> {
        Client::connect_by(address, tls, &Reach::default()).await
    }

    /// As [`Client::connect`]; to a Unix socket in this way. Only root's controllers and this user's own are talked to there.
    ///
    /// # Errors
    /// As of [`Client::connect`].
    pub async fn connect_by(
        address: &Address,
        tls: Option<&tls::Client>,
        reach: &Reach,
    ) -> Result<Client, ClientError> {
        let unreachable = |reason: String| ClientError::Unreachable { address: address.clone(), reason };
        let endpoint =
            Endpoint::from_shared(address.uri(tls.is_some())).map_err(|error| unreachable(error.to_string()))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true);
        let connected = match (address, tls) {
            (Address::Tcp(place), Some(tls)) => {
                endpoint.connect_with_connector(Secure { place: place.clone(), tls: tls.clone() }).await
            }
            (Address::Unix(path), _) => endpoint.connect_with_connector(UnixConnector::new(path, reach, CONNECT)).await,
            _ => endpoint.connect().await,
        };
        let channel = connected.map_err(|error| match tls.and_then(|_| tls::explain(&error, CONTROLLER)) {
            Some(reason) => ClientError::Insecure { address: address.clone(), reason },
            None => unreachable(innermost(&error)),
        })?;
        let inner = ControllerClient::new(channel).max_decoding_message_size(MOST_ANSWER);
        let is_plain = matches!(address, Address::Tcp(_)) && tls.is_none();
        Ok(Client { inner, address: address.clone(), is_unanswered: Arc::new(AtomicBool::new(is_plain)) })
    }

    /// What came of a request.
    fn outcome<T>(&self, answer: Result<Response<T>, Status>) -> Result<T, ClientError> {
        let is_unanswered = self.is_unanswered.load(Ordering::Relaxed);
        match answer.map_err(ClientError::from) {
            Err(ClientError::Lost { .. }) if is_unanswered => Err(ClientError::Insecure {
                address: self.address.clone(),
                reason: format!("{CONTROLLER} does not take plain HTTP/2; if it wants TLS, {OPTIONS}"),
            }),
            answer => {
                self.is_unanswered.store(false, Ordering::Relaxed);
                answer.map(Response::into_inner)
            }
        }
    }

    /// Hosts want messages: pairs of a host's name and a filter, all or none. In the store when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn subscribe(&self, list: Vec<Subscription>) -> Result<Outcome, ClientError> {
        let list = SubscriptionList { subscriptions: list };
        self.outcome(self.inner.clone().subscribe(list).await)
    }

    /// Hosts want messages no longer, all or none. In the store when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn unsubscribe(&self, list: Vec<Subscription>) -> Result<Outcome, ClientError> {
        let list = SubscriptionList { subscriptions: list };
        self.outcome(self.inner.clone().unsubscribe(list).await)
    }

    /// A page of the subscriptions, of one host or of all.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list(&self, host: Option<&str>, after: u64, limit: u32) -> Result<ListPage, ClientError> {
        let request = ListRequest { host: host.unwrap_or_default().to_owned(), after, limit };
        self.outcome(self.inner.clone().list(request).await)
    }

    /// The network.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn topology(&self) -> Result<TopologyReply, ClientError> {
        self.outcome(self.inner.clone().topology(protocol::TopologyRequest {}).await)
    }

    /// All changes from now on.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn watch(&self) -> Result<Streaming<protocol::WatchReply>, ClientError> {
        self.outcome(self.inner.clone().watch(protocol::WatchRequest {}).await)
    }

    /// A switch's table and its changes. What `said` has first begins it, and what it has later tells how far the switch is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow(
        &self,
        said: watch::Receiver<protocol::FollowRequest>,
    ) -> Result<Streaming<protocol::TableUpdate>, ClientError> {
        self.outcome(self.inner.clone().follow(WatchStream::new(said)).await)
    }
}

/// What an error comes from: the outer ones only say that something failed.
fn innermost(error: &tonic::transport::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
