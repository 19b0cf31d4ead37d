//! Traffic over TCP between kernels.

use super::{FLOWS, Ledger, PATIENCE, Stage, pattern};
use crate::process::answer_at_once;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weftwire_core::nanoseconds;
use weftwire_linux::LinuxError;
use weftwire_linux::socket_address::{congestion_control, connect, listen as open, set_congestion_control, tcp_info};
use weftwire_network::model::{NodeIndex, Traffic, TrafficKind};
use weftwire_network::results::FlowResult;
use weftwire_network::traffic::{Begin, Begins, Draws, Gap};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// Opens a listening socket; in the node's namespace.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, LinuxError> {
    let socket = open(address, PATIENCE).map_err(|error| LinuxError::system(format!("listen at {address}"), error))?;
    Ok(TcpListener::from(socket))
}

/// Takes connections until the run is over, a thread each.
pub(crate) fn serve(stage: &Arc<Stage>, listener: &TcpListener, node: NodeIndex) -> Result<(), String> {
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let mut threads = Vec::new();
    while !stage.is_over() {
        let Ok((stream, peer)) = listener.accept() else { continue };
        // A command in the file may connect here too; its bytes belong to no flow.
        let Some((number, flow)) = stage.identify(node, port, peer) else { continue };
        let stage = stage.clone();
        let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
            // What ends a connection early shows at the sender.
            let _ = prepare(&stage, &stream, number).and_then(|()| answer(&stage, stream, number, flow));
        });
        threads.extend(thread.ok());
        threads.retain(|thread| !thread.is_finished());
    }
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

/// A connection that was taken gets what the opener's end has.
fn prepare(stage: &Stage, stream: &TcpStream, number: usize) -> io::Result<()> {
    if let Some(name) = &stage.network.traffic[number].congestion_control {
        set_congestion_control(stream, name)?;
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// The receiver's side of a flow.
fn answer(stage: &Stage, mut stream: TcpStream, number: usize, flow: u64) -> io::Result<()> {
    let traffic = &stage.network.traffic[number];
    let ledger = &stage.ledgers[number];
    if let TrafficKind::RequestResponse { .. } = traffic.kind {
        answer_at_once();
    }
    let mut buffer = vec![0; CHUNK];
    let (mut received, mut sent) = (0, 0);
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if is_timeout(&error) && !stage.is_over() => continue,
            Err(error) => return Err(error),
        };
        let now = stage.now();
        if count == 0 {
            if let TrafficKind::Bulk { bytes: u64::MAX } = traffic.kind {
                ledger.update(flow, |flow| {
                    flow.end = Some(now);
                    flow.outcome = "complete".to_owned();
                });
            }
            return Ok(());
        }
        received += count as u64;
        match traffic.kind {
            TrafficKind::RequestResponse { request, response, .. } => {
                ledger.update(flow, |flow| {
                    flow.first_byte.get_or_insert(now);
                    flow.delivered += count as u64;
                });
                // An answer for each request that is complete.
                let due = received / request.max(1) * response;
                while sent < due {
                    let piece = pattern(sent, due - sent);
                    write_all(stage, &mut stream, piece)?;
                    sent += piece.len() as u64;
                }
            }
            _ => {
                // The opener knows how much there is to come.
                let mut wanted = None;
                ledger.update(flow, |flow| wanted = flow.bytes);
                ledger.received(flow, now, &buffer[..count], wanted);
            }
        }
    }
}

/// Opens the flows of a traffic at their times, a thread each.
pub(crate) fn open_flows(stage: &Arc<Stage>, number: usize) -> Result<(), String> {
    let traffic = &stage.network.traffic[number];
    let mut threads = Vec::new();
    for begin in Begins::new(traffic) {
        if !stage.wait_until(begin.at.nanoseconds()) {
            break;
        }
        if stage.flows.load(Ordering::Relaxed) >= FLOWS {
            stage.ledgers[number].update(begin.number, |flow| {
                flow.start = begin.at.nanoseconds();
                flow.to.clone_from(&stage.network.node(begin.to).name);
                flow.bytes = Some(begin.bytes);
                flow.outcome = format!("failed: more than {FLOWS} flows at once");
            });
            continue;
        }
        stage.flows.fetch_add(1, Ordering::Relaxed);
        threads.extend(stage.start(traffic.from, move |stage| {
            open_flow(stage, number, &begin);
            stage.flows.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        }));
        threads.retain(|thread| !thread.is_finished());
    }
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

/// The sender's side of a flow, from opening to the end.
fn open_flow(stage: &Stage, number: usize, begin: &Begin) {
    let traffic = &stage.network.traffic[number];
    let ledger = &stage.ledgers[number];
    let bytes = match traffic.kind {
        TrafficKind::Bulk { bytes: u64::MAX } => None,
        TrafficKind::RequestResponse { response, count, .. } => {
            Some(begin.bytes.saturating_add(response.saturating_mul(count)))
        }
        _ => Some(begin.bytes),
    };
    let start = stage.begins(begin.at.nanoseconds());
    ledger.update(begin.number, |flow| {
        flow.start = start;
        flow.bytes = bytes;
        flow.to.clone_from(&stage.network.node(begin.to).name);
    });
    if let TrafficKind::RequestResponse { .. } = traffic.kind {
        answer_at_once();
    }
    let mut rtt = Rtt::default();
    let done = connection(stage, traffic, begin).and_then(|mut stream| {
        let control = congestion_control(&stream).ok();
        ledger.update(begin.number, |flow| flow.congestion_control = control);
        let sent = match &traffic.kind {
            TrafficKind::RequestResponse { request, response, count, think } => {
                converse(stage, &mut stream, begin.number, number, (*request, *response, *count, think))
            }
            _ => send(stage, traffic, &mut stream, bytes.unwrap_or(u64::MAX), &mut rtt),
        };
        let closed = sent.and_then(|()| {
            stream.shutdown(Shutdown::Write)?;
            await_end(stage, &mut stream)
        });
        rtt.note(ledger, begin.number, &stream);
        closed
    });
    if let Err(error) = done {
        ledger.update(begin.number, |flow| fail(flow, &error, stage));
    }
}

/// How a flow ended that did not get to its end. One that was complete at the receiver stays so.
fn fail(flow: &mut FlowResult, error: &io::Error, stage: &Stage) {
    if flow.outcome != "running" {
        return;
    }
    flow.outcome = match error.kind() {
        ErrorKind::ConnectionRefused => "refused".to_owned(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "reset".to_owned(),
        _ if is_timeout(error) || stage.is_over() => "running".to_owned(),
        _ => format!("failed: {error}"),
    };
}

fn connection(stage: &Stage, traffic: &Traffic, begin: &Begin) -> io::Result<TcpStream> {
    let number = begin.number;
    let port = u16::try_from(u64::from(traffic.source_port) + number).map_err(|_| {
        io::Error::other(format!("there is no port {} + {number}; lower source_port or the count", traffic.source_port))
    })?;
    let local = (stage.network.address(traffic.from, traffic.ipv6), port).into();
    let remote = (stage.network.address(begin.to, traffic.ipv6), traffic.port).into();
    let left = (nanoseconds(stage.network.duration) - stage.now()).max(1_000_000);
    let control = traffic.congestion_control.as_deref();
    let socket: OwnedFd = connect(local, remote, control, Duration::from_nanos(left.unsigned_abs()), PATIENCE)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends so many bytes; without a limit until the traffic's stop.
fn send(stage: &Stage, traffic: &Traffic, stream: &mut TcpStream, bytes: u64, rtt: &mut Rtt) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes && (bytes != u64::MAX || stage.now() < traffic.stop.nanoseconds()) {
        let piece = pattern(sent, bytes - sent);
        write_all(stage, stream, piece)?;
        sent += piece.len() as u64;
        rtt.sample(stream);
    }
    Ok(())
}

/// Requests and answers in turn.
fn converse(
    stage: &Stage,
    stream: &mut TcpStream,
    flow: u64,
    number: usize,
    (request, response, count, think): (u64, u64, u64, &Gap),
) -> io::Result<()> {
    let ledger = &stage.ledgers[number];
    let mut draws = Draws::new(&stage.network.traffic[number]);
    let mut buffer = vec![0; CHUNK];
    for turn in 0..count {
        let mut asked = stage.now();
        if turn > 0 {
            let due = asked + draws.gap(think);
            if !stage.wait_until(due) {
                return Ok(());
            }
            asked = stage.begins(due);
        }
        let mut sent = 0;
        while sent < request {
            let piece = pattern(sent, request - sent);
            write_all(stage, stream, piece)?;
            sent += piece.len() as u64;
        }
        let mut got = 0;
        while got < response {
            let most = (response - got).min(CHUNK as u64) as usize;
            match stream.read(&mut buffer[..most]) {
                Ok(0) => return Err(ErrorKind::ConnectionReset.into()),
                Ok(count) => got += count as u64,
                Err(error) if is_timeout(&error) && !stage.is_over() => {}
                Err(error) => return Err(error),
            }
        }
        let now = stage.now();
        ledger.update(flow, |flow| {
            flow.delivered += got;
            sample(flow, now - asked);
            if turn + 1 == count {
                flow.end = Some(now);
                flow.outcome = "complete".to_owned();
            }
        });
    }
    Ok(())
}

/// Adds a round trip of the application.
pub(crate) fn sample(flow: &mut FlowResult, rtt: i64) {
    let before = flow.rtt_samples as i64;
    flow.rtt_samples += 1;
    flow.rtt_min = Some(flow.rtt_min.map_or(rtt, |least| least.min(rtt)));
    flow.rtt_max = Some(flow.rtt_max.map_or(rtt, |most| most.max(rtt)));
    flow.rtt_mean = Some(flow.rtt_mean.map_or(rtt, |mean| mean + (rtt - mean) / (before + 1)));
}

/// Reads to the peer's end, so that everything sent was acknowledged.
fn await_end(stage: &Stage, stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 512];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_timeout(&error) && !stage.is_over() => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_all(stage: &Stage, stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_timeout(&error) && !stage.is_over() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A system call gave up waiting.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(libc::EINPROGRESS)
}

/// Round-trip times as the kernel smooths them, sampled at each write.
#[derive(Default)]
struct Rtt {
    samples: u64,
    sum: Duration,
    greatest: Duration,
}

impl Rtt {
    fn sample(&mut self, stream: &TcpStream) {
        if let Some(info) = tcp_info(stream).ok().filter(|info| !info.rtt.is_zero()) {
            self.samples += 1;
            self.sum += info.rtt;
            self.greatest = self.greatest.max(info.rtt);
        }
    }

    /// Writes what the kernel knows into the flow's row. Round trips of the application, if any, stay.
    fn note(mut self, ledger: &Ledger, number: u64, stream: &TcpStream) {
        self.sample(stream);
        let Ok(info) = tcp_info(stream) else { return };
        ledger.update(number, |flow| {
            flow.packets = Some(u64::from(info.data_segments));
            flow.retransmissions = Some(u64::from(info.retransmissions));
            if flow.rtt_samples == 0 && self.samples > 0 {
                flow.rtt_samples = self.samples;
                flow.rtt_min = info.rtt_min.map(nanoseconds);
                flow.rtt_mean = i64::try_from(self.sum.as_nanos() / u128::from(self.samples)).ok();
                flow.rtt_max = Some(nanoseconds(self.greatest));
            }
        });
    }
}
