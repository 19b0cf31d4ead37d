//! Connections: who gets a place, who loses it, and who has to show in time that he has something to say.

use crate::authority::Unescaped;
use crate::tls;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use weftwire_linux::places::{Places, peer};

/// How many connections a controller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// At the same time.
    pub connections: usize,
    /// Of one address of another machine, or of one network of 64 bits of IPv6.
    pub of_peer: usize,
    /// How long a client may take to begin: to agree on TLS, and to say that it speaks HTTP/2.
    pub opening: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 256, of_peer: 64, opening: tls::HANDSHAKE }
    }
}

/// What a client says when it begins (RFC 9113, 3.4).
const PREFACE: usize = 24;
/// How long a client that was refused may take to hear why.
const FAREWELL: Duration = Duration::from_secs(1);
/// When the system has no room for another connection, it is asked again after this.
const AGAIN: Duration = Duration::from_millis(100);
/// Between two lines.
const QUIET: Duration = Duration::from_secs(1);
/// Connections that are admitted and not yet served.
const READY: usize = 16;

/// Told what is worth a line.
pub(crate) type Report = Arc<dyn Fn(String) + Send + Sync>;

/// The places of a controller.
pub(crate) struct Admission {
    places: Mutex<Places<oneshot::Sender<()>>>,
    opening: Duration,
    start: Instant,
    report: Report,
    /// When something was told last, and how often nothing was since then.
    told: Mutex<(Option<Instant>, u64)>,
}

/// Sockets that clients come to.
pub(crate) enum Sockets {
    Unix(UnixListener),
    Tcp(TcpListener, Option<tls::Server>),
}

/// A way to a client.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

impl Admission {
    pub(crate) fn new(limits: Limits, report: Report) -> Arc<Admission> {
        let places = Mutex::new(Places::new(limits.connections, limits.of_peer));
        Arc::new(Admission { places, opening: limits.opening, start: Instant::now(), report, told: Mutex::default() })
    }

    /// Tells something, but not more than once in a while: strangers decide how often there is something to tell.
    fn tell(&self, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.is_some_and(|last| last.elapsed() < QUIET) {
            told.1 += 1;
            return;
        }
        let more =
            if told.1 == 0 { String::new() } else { format!(" (and {} times more since the last line)", told.1) };
        *told = (Some(Instant::now()), 0);
        (self.report)(format!("{text}{more}"));
    }

    fn places(&self) -> MutexGuard<'_, Places<oneshot::Sender<()>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, if there is one. Another one may lose its own.
    fn seat(self: &Arc<Admission>, address: Option<IpAddr>) -> Option<(Held, oneshot::Receiver<()>)> {
        let (close, closed) = oneshot::channel();
        let now = self.start.elapsed();
        let (id, evicted) = self.places().enter(address.and_then(peer), now, close).ok()?;
        if let Some(evicted) = evicted {
            // It may have ended by itself.
            let _ = evicted.send(());
        }
        Some((Held(Seat { admission: self.clone(), id }), closed))
    }

    /// Takes connections until nobody wants them any more.
    pub(crate) fn admit(self: Arc<Admission>, sockets: Sockets) -> ReceiverStream<io::Result<Admitted>> {
        let (ready, admitted) = mpsc::channel(READY);
        tokio::spawn(async move {
            tokio::select! {
                () = self.accept(sockets, &ready) => {}
                () = ready.closed() => {}
            }
        });
        ReceiverStream::new(admitted)
    }

    async fn accept(self: &Arc<Admission>, sockets: Sockets, ready: &mpsc::Sender<io::Result<Admitted>>) {
        loop {
            let accepted = match &sockets {
                Sockets::Unix(listener) => {
                    listener.accept().await.map(|(stream, _)| (Box::new(Unescaped::new(stream)) as Box<dyn Wire>, None))
                }
                Sockets::Tcp(listener, None) => listener
                    .accept()
                    .await
                    .map(|(stream, from)| (Box::new(prompt(stream)) as Box<dyn Wire>, Some(from.ip()))),
                Sockets::Tcp(listener, Some(server)) => match listener.accept().await {
                    Ok((stream, from)) => {
                        // Nobody waits for another one's handshake.
                        tokio::spawn(self.clone().secure(prompt(stream), from, server.clone(), ready.clone()));
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            match accepted {
                Ok((wire, address)) => {
                    if let Some((held, closed)) = self.seat(address) {
                        // Nobody wants them any more if that fails.
                        let _ = ready.send(Ok(Admitted::new(wire, held, closed))).await;
                    }
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// Lets both ends show who they are.
    async fn secure(
        self: Arc<Admission>,
        stream: TcpStream,
        from: SocketAddr,
        server: tls::Server,
        ready: mpsc::Sender<io::Result<Admitted>>,
    ) {
        let Some((held, mut closed)) = self.seat(Some(from.ip())) else { return };
        let (config, fault) = server.config();
        if let Some(fault) = fault {
            (self.report)(format!("{fault}; goes on with what it has"));
        }
        tokio::select! {
            agreed = timeout(self.opening, agree(config, stream)) => match agreed {
                Ok(Ok(wire)) => {
                    let _ = ready.send(Ok(Admitted::new(wire, held, closed))).await;
                }
                Ok(Err((refusal, stream))) => {
                    self.tell(&format!("refused {from}: {refusal}"));
                    farewell(stream).await;
                }
                Err(_) => self.tell(&format!("refused {from}: it did not begin within {:?}", self.opening)),
            },
            _ = &mut closed => {}
        }
    }
}

/// Small messages are not to wait for others.
fn prompt(stream: TcpStream) -> TcpStream {
    // It works without, only slower.
    let _ = stream.set_nodelay(true);
    stream
}

/// A TLS connection, or why there is none.
async fn agree(config: Arc<ServerConfig>, stream: TcpStream) -> Result<Box<dyn Wire>, (String, TcpStream)> {
    match TlsAcceptor::from(config).accept(stream).into_fallible().await {
        Ok(stream) => Ok(Box::new(stream)),
        Err((error, stream)) => Err((tls::explain(&error, "the client").unwrap_or_else(|| error.to_string()), stream)),
    }
}

/// Lets a client hear why it was refused: what it has sent meanwhile would have the system throw that away.
async fn farewell(mut stream: TcpStream) {
    let hear = async {
        stream.shutdown().await?;
        let mut rest = [0; 1 << 10];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    // It may be gone already.
    let _ = timeout(FAREWELL, hear).await;
}

/// A connection that has its place.
pub(crate) struct Admitted {
    wire: Box<dyn Wire>,
    held: Held,
    /// Told when another one gets the place; `None`: another one has it.
    closed: Option<oneshot::Receiver<()>>,
    /// How many bytes are missing before it has begun, and when that must be.
    opening: Option<(usize, Pin<Box<Sleep>>)>,
}

impl Admitted {
    fn new(wire: Box<dyn Wire>, held: Held, closed: oneshot::Receiver<()>) -> Admitted {
        let opening = Some((PREFACE, Box::pin(sleep(held.0.admission.opening))));
        Admitted { wire, held, closed: Some(closed), opening }
    }
}

/// Gives the place back.
struct Held(Seat);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.admission.places().leave(self.0.id);
    }
}

/// The place of a connection, as its requests know it.
#[derive(Clone)]
pub(crate) struct Seat {
    admission: Arc<Admission>,
    id: u64,
}

impl Seat {
    /// A request is under way as long as the answer lives.
    pub(crate) fn begin(&self) -> Underway {
        self.admission.places().begin(self.id);
        Underway(self.clone())
    }
}

/// A request that is under way.
pub(crate) struct Underway(Seat);

impl Drop for Underway {
    fn drop(&mut self) {
        let now = self.0.admission.start.elapsed();
        self.0.admission.places().end(self.0.id, now);
    }
}

impl Connected for Admitted {
    type ConnectInfo = Seat;

    fn connect_info(&self) -> Seat {
        self.held.0.clone()
    }
}

impl AsyncRead for Admitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closed.as_mut().is_none_or(|closed| Pin::new(closed).poll(context).is_ready()) {
            // As if the client had gone.
            this.closed = None;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.wire).poll_read(context, buffer);
        if let Some((missing, deadline)) = &mut this.opening {
            let came = buffer.filled().len() - before;
            if came >= *missing {
                this.opening = None;
            } else {
                *missing -= came;
                if read.is_pending() && deadline.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        read
    }
}

impl AsyncWrite for Admitted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }
}
