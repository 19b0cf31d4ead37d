//! A client of the controller.

use crate::address::Address;
use crate::protocol::controller_client::ControllerClient;
use crate::protocol::{self, ListPage, ListRequest, Outcome, Subscription, SubscriptionList, TopologyReply};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// Largest answer in bytes.
pub(crate) const MOST_ANSWER: usize = 16 << 20;
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
    Protocol(String),
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
}

impl Client {
    /// Connects. To be called in a runtime of tokio with time and input enabled, as all of the rest.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub async fn connect(address: &Address) -> Result<Client, ClientError> {
        let unreachable = |reason: String| ClientError::Unreachable { address: address.clone(), reason };
        let endpoint = Endpoint::from_shared(address.uri()).map_err(|error| unreachable(error.to_string()))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect().await.map_err(|error| unreachable(innermost(&error)))?;
        Ok(Client { inner: ControllerClient::new(channel).max_decoding_message_size(MOST_ANSWER) })
    }

    /// Hosts want messages: pairs of a host's name and a filter, all or none. In the store when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn subscribe(&self, list: Vec<Subscription>) -> Result<Outcome, ClientError> {
        let list = SubscriptionList { subscriptions: list };
        Ok(self.inner.clone().subscribe(list).await?.into_inner())
    }

    /// Hosts want messages no longer, all or none. In the store when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn unsubscribe(&self, list: Vec<Subscription>) -> Result<Outcome, ClientError> {
        let list = SubscriptionList { subscriptions: list };
        Ok(self.inner.clone().unsubscribe(list).await?.into_inner())
    }

    /// A page of the subscriptions, of one host or of all.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list(&self, host: Option<&str>, after: u64, limit: u32) -> Result<ListPage, ClientError> {
        let request = ListRequest { host: host.unwrap_or_default().to_owned(), after, limit };
        Ok(self.inner.clone().list(request).await?.into_inner())
    }

    /// The network.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn topology(&self) -> Result<TopologyReply, ClientError> {
        Ok(self.inner.clone().topology(protocol::TopologyRequest {}).await?.into_inner())
    }

    /// All changes from now on.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn watch(&self) -> Result<Streaming<protocol::WatchReply>, ClientError> {
        Ok(self.inner.clone().watch(protocol::WatchRequest {}).await?.into_inner())
    }

    /// A switch's table and its changes. What `said` has first begins it, and what it has later tells how far the switch is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow(
        &self,
        said: watch::Receiver<protocol::FollowRequest>,
    ) -> Result<Streaming<protocol::TableUpdate>, ClientError> {
        Ok(self.inner.clone().follow(WatchStream::new(said)).await?.into_inner())
    }
}

/// What an error comes from: the outer ones only say that something failed.
fn innermost(error: &tonic::transport::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
