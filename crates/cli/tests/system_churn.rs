//! Many short connections through `weft proxy` with the TCP of `examples/transports/tcp`, and programs that measure.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests open sockets")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::socket_address::{connect, listen};
use weftwire_testbed::{Namespace, Running, resident_bytes, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
const LIMIT: Duration = Duration::from_secs(60);
/// The kernel's end of the TUN device. The machine has the other addresses of the network.
const KERNEL: &str = "10.83.0.1";

/// A proxy on the host's device, and its control socket.
fn proxy(host: &Namespace, arguments: &[&str]) -> Result<(Running, PathBuf)> {
    let words = [WEFT, "proxy", TCP, "--port", "1=tun:weft0", "--name", host.name()];
    let mut weft = host.spawn(&[&words, arguments].concat())?;
    let socket = weft.wait_for_control(host.name())?;
    Ok((weft, socket))
}

/// Four addresses of the clients, and four of the machine.
const ADDRESSES: u8 = 4;
/// What a client says: who is to close first.
const CLIENT: u8 = b'c';
const SERVER: u8 = b's';

/// Answers one connection after the other, until there are no more listeners' clients.
fn serve(listener: &TcpListener, left: &AtomicU64) -> Result<()> {
    while left.fetch_sub(1, Ordering::Relaxed).cast_signed() > 0 {
        let (mut stream, _) = listener.accept()?;
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        stream.write_all(b"a")?;
        if byte[0] == CLIENT {
            ensure!(stream.read(&mut byte)? == 0, "more than a question came");
        }
    }
    Ok(())
}

/// One after the other from this address, to each of the machine's in turn; each side closes first in turn.
fn ask(from: Ipv4Addr, count: u64) -> Result<()> {
    for number in 0..count {
        let to = Ipv4Addr::new(10, 83, 0, 10 + (number % u64::from(ADDRESSES)) as u8);
        let ends = [SocketAddr::from((from, 0)), SocketAddr::from((to, 80))];
        let mut stream = TcpStream::from(connect(ends[0], ends[1], None, LIMIT, LIMIT)?);
        let first = if number % 2 == 0 { CLIENT } else { SERVER };
        stream.write_all(&[first])?;
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        if first == SERVER {
            ensure!(stream.read(&mut byte)? == 0, "more than an answer came");
        }
    }
    Ok(())
}

/// So many connections, and how much memory the machine has after the first tenth and at the end.
fn come_and_go(count: u64) -> Result<[u64; 2]> {
    let host = Namespace::with_tun(&format!("{KERNEL}/24"))?;
    for address in 1..=ADDRESSES {
        host.exec(&format!("ip address add 10.84.0.{address}/32 dev lo"))?;
    }
    let (weft, socket) = proxy(&host, &["--listen", ":80", "--kernel-connect", &format!("{KERNEL}:8080")])?;
    let listener = TcpListener::from(host.enter(|| listen(SocketAddr::from(([10, 83, 0, 1], 8080)), LIMIT))??);
    let each = count / u64::from(ADDRESSES);
    let (left, memory) = (AtomicU64::new(each * u64::from(ADDRESSES)), || resident_bytes(weft.pid()));
    let begun = Instant::now();
    let early = std::thread::scope(|scope| -> Result<u64> {
        let servers = [(); 8].map(|()| scope.spawn(|| serve(&listener, &left)));
        let run = |each: u64| -> Result<()> {
            let clients = (1..=ADDRESSES).map(|last| {
                let (from, door) = (Ipv4Addr::new(10, 84, 0, last), host.door()?);
                Ok(scope.spawn(move || door.enter().map_err(Into::into).and_then(|()| ask(from, each))))
            });
            let clients = clients.collect::<Result<Vec<_>>>()?;
            clients.into_iter().try_for_each(|client| client.join().expect("it does not panic"))
        };
        run(each / 10)?;
        let early = memory()?;
        run(each - each / 10)?;
        for server in servers {
            server.join().expect("it does not panic")?;
        }
        Ok(early)
    })?;
    let (late, rate) = (memory()?, count as f64 / begun.elapsed().as_secs_f64());
    println!("{count} connections, {rate:.0} a second; {early} bytes after the first tenth, {late} at the end");
    // Clients go a little before the machine knows that they have.
    wait_for("the last ones to end", LIMIT, || {
        let flows = ControlClient::connect(Some(&socket)).and_then(|mut client| client.flows());
        flows.is_ok_and(|flows| flows.iter().all(|flow| flow.state == "time_wait"))
    })?;
    let output = weft.interrupt()?;
    ensure!(output.status.success(), "{output:?}");
    let all =
        format!("{count} connections: {count} closed, 0 refused, 0 reset, 0 failed, 0 broken off at the end; 0 more");
    ensure!(output.stderr.contains(&all), "{}", output.stderr);
    Ok([early, late])
}

/// What a connection may leave behind for the minute of TIME-WAIT, where this end has closed first.
const REMAINS: u64 = 4_000;

#[test]
fn thousands_of_short_connections_come_and_go() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let [early, late] = come_and_go(4_000)?;
    ensure!(late < early + 4_000 / 2 * REMAINS + 8_000_000, "memory grows from {early} to {late} bytes");
    Ok(())
}

/// Longer than TIME-WAIT: what it keeps becomes no more than that of a minute.
#[test]
#[ignore = "takes minutes: make test-long"]
fn short_connections_for_minutes_leave_nothing() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let [early, late] = come_and_go(100_000)?;
    ensure!(late < early + 100_000_000, "memory grows from {early} to {late} bytes");
    Ok(())
}

/// What iperf3 tells of a run: bytes that came.
fn measured(host: &Namespace, more: &[&str]) -> Result<f64> {
    let words = ["iperf3", "--client", "127.0.0.1", "--time", "1", "--json"];
    let told: serde_json::Value = serde_json::from_str(&host.exec_within(LIMIT, &[&words, more].concat())?)?;
    told["end"]["sum_received"]["bytes"].as_f64().with_context(|| format!("iperf3 tells no bytes: {told}"))
}

#[test]
fn iperf_measures_both_directions_through_a_proxy() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["iperf3"]) else { return Ok(()) };
    let host = Namespace::with_tun(&format!("{KERNEL}/24"))?;
    let mut server = host.spawn(&["iperf3", "--server", "--bind", KERNEL])?;
    wait_for("iperf3 to listen", LIMIT, || {
        !server.is_running() || host.exec("ss -Hltn sport = :5201").is_ok_and(|text| !text.is_empty())
    })?;
    let ends = format!("10.83.0.10-{KERNEL}:5201");
    let (weft, _) = proxy(&host, &["--kernel-listen", "127.0.0.1:5201", "--connect", &ends])?;
    for more in [&[][..], &["--reverse"], &["--bidir"], &["--parallel", "4"]] {
        let bytes = measured(&host, more)?;
        ensure!(bytes > 1e6, "{bytes} bytes came with {more:?}");
    }
    let output = weft.interrupt()?;
    ensure!(output.status.success(), "{output:?}");
    // Four of control and eight of data, which iperf3 itself resets.
    ensure!(output.stderr.contains("12 connections: ") && output.stderr.contains(" 0 failed"), "{}", output.stderr);
    Ok(())
}
