//! Connections over Unix sockets, to nobody but root and this user.

use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use weftwire_linux::reach::Reach;

/// Makes the connections of a channel of `tonic`.
#[derive(Clone, Debug)]
pub(crate) struct UnixConnector {
    path: PathBuf,
    reach: Reach,
    patience: Duration,
}

impl UnixConnector {
    pub(crate) fn new(path: &Path, reach: &Reach, patience: Duration) -> UnixConnector {
        UnixConnector { path: path.to_owned(), reach: reach.clone(), patience }
    }
}

impl Service<Uri> for UnixConnector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let UnixConnector { path, reach, patience } = self.clone();
        Box::pin(async move {
            // On this thread, as one of the runtime's own could have kept privileges that this one has given up. Only a
            // listener of root or this user that takes nothing holds it up.
            let stream = reach.connect(&path, patience)?;
            stream.set_nonblocking(true)?;
            Ok(TokioIo::new(UnixStream::from_std(stream)?))
        })
    }
}
