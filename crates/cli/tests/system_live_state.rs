//! A live connection moves from one `weft run` to another one, and talks on.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Result, ensure};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FUNCTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
const LIMIT: Duration = Duration::from_secs(20);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn text(path: &Path) -> &str {
    path.to_str().expect("the build's folder has a plain name")
}

fn weft(words: &[&str]) -> Result<Output> {
    Ok(Command::new(WEFT).args(words).output()?)
}

/// A SYN proxy between `port1` and `port2`, with keys of its own.
fn run(middle: &Namespace, control: &Path) -> Result<Running> {
    let mut words = vec![WEFT, "run", FUNCTION, "--port", "1=port1", "--port", "2=port2"];
    words.extend(["--keep-privileges", "--control", text(control)]);
    let weft = middle.spawn(&words)?;
    wait_for("the control socket", LIMIT, || control.exists())?;
    Ok(weft)
}

/// The client says a word, the server says it again.
fn talk(client: &mut TcpStream, server: &mut TcpStream, word: &[u8; 4]) -> Result<()> {
    let mut heard = [0; 4];
    client.write_all(word)?;
    server.read_exact(&mut heard)?;
    server.write_all(&heard)?;
    let mut answer = [0; 4];
    client.read_exact(&mut answer)?;
    ensure!(answer == *word, "{answer:?} came back");
    Ok(())
}

#[test]
fn a_connection_talks_on_in_another_process() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("system-live-state");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let (here, there, file) = (folder.join("here.sock"), folder.join("there.sock"), folder.join("flows"));
    let (client, middle, server) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
    client.join(("eth0", "02:00:00:00:00:01"), &middle, ("port1", "02:00:00:00:00:02"))?;
    server.join(("eth0", "02:00:00:00:00:04"), &middle, ("port2", "02:00:00:00:00:03"))?;
    for (host, address) in [(&client, CLIENT), (&server, SERVER)] {
        host.exec(&format!("ip address add {address}/24 dev eth0"))?;
    }
    let first = run(&middle, &here)?;
    let address = SocketAddr::from((SERVER, 80));
    let listener = server.enter(|| TcpListener::bind(address))??;
    let mut near = client.connect(address, LIMIT)??;
    let (mut far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(LIMIT))?;
    }
    talk(&mut near, &mut far, b"here")?;

    // A copy, twice: the same flow, still alive.
    let copy = weft(&["flows", "--control", text(&here), "snapshot", "--all", "--out", text(&file)])?;
    ensure!(copy.status.success() && copy.stderr == b"1 flow\n", "{copy:?}");
    ensure!(fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600, "others can read it");
    let refused = weft(&["flows", "--control", text(&here), "adopt", text(&file)])?;
    ensure!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--copy"), "{refused:?}");
    let refused = weft(&["flows", "--control", text(&here), "adopt", "--copy", text(&file)])?;
    ensure!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("has this flow key here"),
        "{refused:?}"
    );
    // It begins a replay, where its timers run out.
    let ports = ["--port", "1=none", "--port", "2=none"];
    let replay = weft(&[&["replay", FUNCTION, "--from", text(&file)], &ports[..]].concat())?;
    let said = String::from_utf8_lossy(&replay.stderr);
    ensure!(replay.status.success() && said.contains("begins with 1 flow of "), "{said}");
    talk(&mut near, &mut far, b"copy")?;

    let list = weft(&["flows", "--control", text(&here), "--json"])?;
    let flow = serde_json::from_slice::<serde_json::Value>(&list.stdout)?[0]["flow"].to_string();
    let taken = weft(&["flows", "--control", text(&here), "snapshot", &flow, "--take", "--out", text(&file)])?;
    ensure!(taken.status.success(), "{taken:?}");
    let list = weft(&["flows", "--control", text(&here), "--json"])?;
    ensure!(list.stdout == b"[]\n", "{list:?}");
    let ended = first.interrupt()?;
    ensure!(ended.status.success(), "{}", ended.stderr);

    let second = run(&middle, &there)?;
    let adopted = weft(&["flows", "--control", text(&there), "adopt", text(&file)])?;
    ensure!(adopted.status.success() && adopted.stdout == format!("flow {flow}\n").into_bytes(), "{adopted:?}");
    talk(&mut near, &mut far, b"then")?;
    drop(near);
    // Until it has seen the end: nothing was reset.
    far.read_to_end(&mut Vec::new())?;
    let ended = second.interrupt()?;
    ensure!(ended.status.success(), "{}", ended.stderr);
    Ok(())
}
