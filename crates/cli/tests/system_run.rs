//! `weft run` with the SYN proxy between two kernels: both directions over IPv6, a capture that replays, two interrupts.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

mod support;

use anyhow::{Context as _, Result, ensure};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::sent;
use weftwire_capture::{CaptureReader, marked};
use weftwire_core::port::Checksum;
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FUNCTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
const LIMIT: Duration = Duration::from_secs(20);
const CLIENT: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const SERVER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// `client` eth0 (fd00::1) - port1 `middle` port2 - eth0 (fd00::2) `server`, all offloads on, and the proxy in the middle.
struct Site {
    weft: Running,
    client: Namespace,
    server: Namespace,
    _middle: Namespace,
}

impl Site {
    fn build(folder: &Path) -> Result<Site> {
        let (client, middle, server) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        client.join(("eth0", "02:00:00:00:00:01"), &middle, ("port1", "02:00:00:00:00:02"))?;
        server.join(("eth0", "02:00:00:00:00:04"), &middle, ("port2", "02:00:00:00:00:03"))?;
        for (host, address) in [(&client, CLIENT), (&server, SERVER)] {
            host.exec(&format!("ip address add {address}/64 dev eth0 nodad"))?;
        }
        let (control, capture) = (folder.join("control.sock"), folder.join("run.pcapng"));
        let inputs = folder.join("run.inputs");
        let mut words = vec![WEFT, "run", FUNCTION, "--seed", "5", "--port", "1=port1", "--port", "2=port2"];
        // The folder belongs to root, so the socket could not be removed by another user.
        words.extend(["--keep-privileges", "--control", text(&control), "--out", text(&capture)]);
        words.extend(["--record", text(&inputs)]);
        let weft = middle.spawn(&words)?;
        wait_for("the control socket", LIMIT, || control.exists())?;
        Ok(Site { weft, client, server, _middle: middle })
    }
}

fn folder(name: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the build's folder has a plain name")
}

/// Sends a request from `from` and compares the answer that a server in `to` gives.
fn transfer(from: &Namespace, to: &Namespace, address: SocketAddr) -> Result<()> {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let answer = bytes.clone();
    let listener = to.enter(|| TcpListener::bind(address))??;
    let server = to.start_thread(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        limit(&stream)?;
        let mut request = [0; REQUEST.len()];
        stream.read_exact(&mut request)?;
        assert_eq!(request, *REQUEST);
        stream.write_all(&answer)?;
        stream.shutdown(Shutdown::Write)?;
        // Until the client has closed too: the proxy sees both ends go.
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    let mut stream = from.connect(address, LIMIT)??;
    stream.write_all(REQUEST)?;
    let mut got = Vec::new();
    stream.read_to_end(&mut got)?;
    drop(stream);
    server.join().expect("the server reports what failed")?;
    ensure!(got == bytes, "{} bytes arrived, not those that were sent", got.len());
    Ok(())
}

fn limit(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))
}

/// The recording of the inputs gives what came out of the run, and nothing else does; nobody but its owner reads its keys.
fn repeats(folder: &Path) -> Result<()> {
    let (inputs, keys) = (folder.join("run.inputs"), folder.join("run.inputs.keys"));
    let repeat = || -> Result<_> {
        let mut command = Command::new(WEFT);
        command.args(["replay", FUNCTION, "--inputs", text(&inputs)]);
        Running::start(command)?.wait(LIMIT)
    };
    let again = repeat()?;
    ensure!(again.status.success(), "{}", again.stderr);
    ensure!(again.stderr.contains("outputs are those of the run"), "{}", again.stderr);
    ensure!(fs::metadata(&keys)?.permissions().mode() & 0o777 == 0o600, "the keys are secret");
    let right = fs::read_to_string(&keys)?;
    fs::write(&keys, right.replace("\"seed\":5", "\"seed\":6"))?;
    let other = repeat()?;
    ensure!(!other.status.success() && other.stderr.contains("something else than in the run"), "{}", other.stderr);
    fs::write(&keys, right)?;
    // A run that was killed leaves a recording without its end.
    let whole = fs::read(&inputs)?;
    fs::write(&inputs, &whole[..whole.len() - 7])?;
    let cut = repeat()?;
    ensure!(!cut.status.success() && cut.stderr.contains("ends within record"), "{}", cut.stderr);
    Ok(())
}

/// Neighbour discovery passes untouched, the client's connection is proxied, the server's passes. The capture of it all,
/// offloaded frames too, gives the same frames in a replay.
#[test]
fn ipv6_both_ways_and_again_in_a_replay() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = folder("system-run-ipv6")?;
    let site = Site::build(&folder)?;
    transfer(&site.client, &site.server, (SERVER, 80).into())?;
    transfer(&site.server, &site.client, (CLIENT, 8080).into())?;
    let ended = site.weft.interrupt()?;
    ensure!(ended.status.success() && ended.stderr.contains("frames passed untouched"), "{}", ended.stderr);

    repeats(&folder)?;
    let (capture, again) = (folder.join("run.pcapng"), folder.join("replay.pcapng"));
    let mut command = Command::new(WEFT);
    command.args(["replay", FUNCTION, "--seed", "5", "--out", text(&again)]);
    for port in 1..=2 {
        command.args(["--port", &format!("{port}={},interface=port{port}", text(&capture))]);
    }
    let replay = Running::start(command)?.wait(LIMIT)?;
    ensure!(replay.status.success(), "{}", replay.stderr);
    let (live, replayed) = (sent(&capture)?, sent(&again)?);
    ensure!(live.iter().any(|(_, frame)| frame.len() > 1514), "no super-frame was sent");
    let differs = live.iter().zip(&replayed).position(|(live, replayed)| live != replayed);
    ensure!(
        differs.is_none() && live.len() == replayed.len(),
        "{} frames live, {} replayed, the first that differs: {differs:?}\n{}",
        live.len(),
        replayed.len(),
        ended.stderr
    );
    // So are the counters, down to each row; but in the replay time goes on behind the last frame.
    let counts = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.starts_with("frames in"));
        let lines = lines.filter(|line| !line.starts_with("flows live") && !line.contains("give_up"));
        lines.map(str::to_owned).collect()
    };
    let (live, replayed) = (counts(&ended.stderr), counts(&replay.stderr));
    ensure!(!live.is_empty() && live == replayed, "live: {live:#?}\nreplayed: {replayed:#?}");
    // What arrived with work left to hardware says so.
    let marked = CaptureReader::new(File::open(&capture)?)?;
    ensure!(marked_frames(marked)? > 0, "no frame has the mark of a partial checksum");
    Ok(())
}

/// Frames with the mark that their checksum was left to hardware.
fn marked_frames(mut capture: CaptureReader<File>) -> Result<usize> {
    let mut count = 0;
    while let Some(record) = capture.next_record()? {
        let offload = record.comment.as_deref().and_then(marked);
        count += usize::from(offload.is_some_and(|offload| offload.checksum == Checksum::Partial));
    }
    Ok(count)
}

/// The second request to end does not wait for the first one's orderly end.
#[test]
fn a_second_interrupt_ends_the_process_at_once() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::build(&folder("system-run-interrupt")?)?;
    let ended = site.weft.interrupt_twice()?;
    let code = ended.status.code().context("a signal ended it, not its own exit")?;
    // 128 and the signal that came second; the kernel chooses the order.
    ensure!([130, 143].contains(&code), "exit status {code}\n{}", ended.stderr);
    ensure!(!ended.stderr.contains("ran for"), "it ended in order: {}", ended.stderr);
    Ok(())
}

#[test]
fn timers_are_waited_for_as_exactly_as_asked() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let middle = Namespace::new()?;
    let folder = folder("run-precision")?;
    let control = folder.join("control.sock");
    for (precision, said) in [("auto", "spinning for the last"), ("60us", "runs with seed"), ("spin", "runs with seed")]
    {
        let words = [WEFT, "run", FUNCTION, "--port", "1=tun:weft0", "--port", "2=tun:weft1", "--for", "50ms"];
        let place = ["--precision", precision, "--cpu", "0", "--priority", "5", "--user", "nobody"];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", middle.name()]).args(words).args(place).args(["--control", text(&control)]);
        let output = command.output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success() && errors.contains(said), "{precision}: {errors}");
        ensure!(!errors.contains("warning"), "{precision}: {errors}");
        // It belongs to root's folder, from which another user can't remove it.
        let _ = fs::remove_file(&control);
    }
    Ok(())
}
