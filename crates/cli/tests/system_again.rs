//! Connections that begin while an end of the last one between the same ports lingers in TIME-WAIT: the machine's end, or the kernel's
//! (RFC 6191). `weft proxy` carries them, so that the test says which side leaves first.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests open sockets")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use weftwire_core::inspect::FlowSummary;
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::socket_address::connect;
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
const LIMIT: Duration = Duration::from_secs(60);
/// The kernel's end of the TUN device, and the machine's.
const KERNEL: [u8; 4] = [10, 85, 0, 1];
const MACHINE: [u8; 4] = [10, 85, 0, 10];
/// The port that every connection begins from.
const PORT: u16 = 4000;
/// Connections one after the other.
const ROUNDS: u8 = 3;
/// Bytes each way: more than a sequence number that follows a clock has gone on by when the next connection begins.
const BYTES: usize = 1_000_000;
/// With timestamps and without.
const OPTIONS: [&[&str]; 2] = [&[], &["--parameter", "offer_stamps=0"]];

struct Site {
    host: Namespace,
    weft: Running,
    control: PathBuf,
}

impl Site {
    fn start(arguments: &[&str], options: &[&str]) -> Result<Site> {
        let host = Namespace::with_tun("10.85.0.1/24")?;
        let words = [WEFT, "proxy", TCP, "--port", "1=tun:weft0", "--name", host.name()];
        let mut weft = host.spawn(&[&words, options, arguments].concat())?;
        let control = weft.wait_for_control(host.name())?;
        Ok(Site { host, weft, control })
    }

    fn listener(&self, at: SocketAddr) -> Result<TcpListener> {
        Ok(self.host.enter(|| TcpListener::bind(at))??)
    }

    fn flows(&self) -> Result<Vec<FlowSummary>> {
        Ok(ControlClient::connect(Some(Path::new(&self.control)))?.flows()?)
    }

    /// A connection from one address to another, which the listener has the end of, with bytes both ways at once. The server leaves first.
    fn exchange(&self, from: SocketAddr, to: SocketAddr, listener: &TcpListener, round: u8) -> Result<()> {
        let [question, answer] =
            [1, 2].map(|side| (0..BYTES).map(|at| (at / 7) as u8 ^ side ^ round << 4).collect::<Vec<_>>());
        let client = TcpStream::from(self.host.enter(|| connect(from, to, None, LIMIT, LIMIT))??);
        let (server, _) = listener.accept()?;
        server.set_read_timeout(Some(LIMIT))?;
        let (asked, answered) = std::thread::scope(|scope| {
            let serving = scope.spawn(|| talk(server, &answer, true));
            let answered = talk(client, &question, false);
            (serving.join().expect("it does not panic"), answered)
        });
        ensure!(asked? == question && answered? == answer, "other bytes came in round {round}");
        Ok(())
    }

    fn stop(self, closed: u8) -> Result<()> {
        let output = self.weft.interrupt()?;
        let all = format!("{closed} connections: {closed} closed, ");
        ensure!(output.status.success() && output.stderr.contains(&all), "{output:?}");
        Ok(())
    }
}

/// Sends these bytes, and gives what comes up to the end. Who leaves first ends its bytes by itself; the other one when it has read that.
fn talk(mut stream: TcpStream, bytes: &[u8], first: bool) -> std::io::Result<Vec<u8>> {
    let mut writer = stream.try_clone()?;
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            writer.write_all(bytes)?;
            if first { writer.shutdown(Shutdown::Write) } else { Ok(()) }
        });
        let mut read = Vec::new();
        stream.read_to_end(&mut read)?;
        writing.join().expect("it does not panic")?;
        Ok(read)
    })
}

#[test]
fn the_kernel_connects_again_while_the_machine_lingers() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    for options in OPTIONS {
        let site = Site::start(&["--listen", ":80", "--kernel-connect", "127.0.0.1:8080"], options)?;
        let listener = site.listener(SocketAddr::from(([127, 0, 0, 1], 8080)))?;
        let mut before = None;
        for round in 1..=ROUNDS {
            site.exchange((KERNEL, PORT).into(), (MACHINE, 80).into(), &listener, round)?;
            let mut flows = Vec::new();
            wait_for("the machine to linger", LIMIT, || {
                flows = site.flows().unwrap_or_default();
                !flows.is_empty() && flows.iter().all(|flow| flow.state == "time_wait")
            })?;
            // The one before is gone.
            ensure!(flows.len() == 1, "{options:?}, round {round}: {flows:?}");
            ensure!(before < Some(flows[0].flow), "{options:?}, round {round}: it is the same flow");
            before = Some(flows[0].flow);
        }
        site.stop(ROUNDS)?;
    }
    Ok(())
}

#[test]
fn the_machine_connects_again_while_the_kernel_lingers() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ss"]) else { return Ok(()) };
    for options in OPTIONS {
        let ends = format!("10.85.0.10:{PORT}-10.85.0.1:80");
        let site = Site::start(&["--kernel-listen", "127.0.0.1:8080", "--connect", &ends], options)?;
        let listener = site.listener((KERNEL, 80).into())?;
        for round in 1..=ROUNDS {
            site.exchange(([127, 0, 0, 1], 0).into(), ([127, 0, 0, 1], 8080).into(), &listener, round)?;
            // The kernel's end of the last connection, and of none before.
            let lingers = || site.host.exec("ss -Htn state time-wait sport = :80").map(|text| text.lines().count());
            wait_for("the kernel to linger", LIMIT, || lingers().is_ok_and(|count| count == 1))?;
            wait_for("the machine to end", LIMIT, || site.flows().is_ok_and(|flows| flows.is_empty()))?;
        }
        site.stop(ROUNDS)?;
    }
    Ok(())
}
