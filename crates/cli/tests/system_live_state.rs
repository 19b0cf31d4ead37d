//! A live connection moves from one `weft run` to another one, and talks on.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
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

/// A SYN proxy between `port1` and `port2`, with keys of its own. It leaves packets of connections that it has not got unanswered:
/// while a connection moves, it is nowhere.
struct Proxy {
    weft: Running,
    control: PathBuf,
    log: PathBuf,
}

impl Proxy {
    fn start(middle: &Namespace, folder: &Path, name: &str, further: &str) -> Result<Proxy> {
        let (control, log) = (folder.join(format!("{name}.sock")), folder.join(format!("{name}.log")));
        let command = format!(
            "exec {WEFT} run {} --port 1=port1 --port 2=port2 --parameter answer_unknown=false --keep-privileges \
             --control {} {further} 2> {}",
            text(&folder.join("proxy.xl")),
            text(&control),
            text(&log)
        );
        let weft = middle.spawn(&["sh", "-c", &command])?;
        let proxy = Proxy { weft, control, log };
        wait_for("the control socket", LIMIT, || proxy.control.exists())?;
        Ok(proxy)
    }

    fn flows(&self, words: &[&str]) -> Result<Output> {
        weft(&[&["flows", "--control", text(&self.control)], words].concat())
    }

    /// What each flow says of its parameter, the oldest first.
    fn answers_unknown(&self) -> Result<Vec<String>> {
        let list: Vec<serde_json::Value> = serde_json::from_slice(&self.flows(&["--json"])?.stdout)?;
        let told = |flow: &serde_json::Value| {
            let detail = self.flows(&["show", &flow["flow"].to_string(), "--json"])?;
            let detail: serde_json::Value = serde_json::from_slice(&detail.stdout)?;
            let registers = detail["registers"].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = registers.iter().find(|register| register["name"] == "answer_unknown");
            found.and_then(|register| register["text"].as_str()).map(str::to_owned).context("no such register")
        };
        list.iter().map(told).collect()
    }

    /// Has it read its file again, and waits until it says that.
    fn reload(&self, says: &str) -> Result<()> {
        Command::new("kill").args(["-HUP", &self.weft.pid().to_string()]).status()?;
        wait_for(says, LIMIT, || fs::read_to_string(&self.log).is_ok_and(|log| log.contains(says)))
    }

    fn end(self) -> Result<()> {
        let ended = self.weft.interrupt()?;
        ensure!(ended.status.success(), "{}", fs::read_to_string(&self.log)?);
        Ok(())
    }
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
    let (program, file) = (folder.join("proxy.xl"), folder.join("flows"));
    fs::copy(FUNCTION, &program)?;
    let (client, middle, server) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
    client.join(("eth0", "02:00:00:00:00:01"), &middle, ("port1", "02:00:00:00:00:02"))?;
    server.join(("eth0", "02:00:00:00:00:04"), &middle, ("port2", "02:00:00:00:00:03"))?;
    for (host, address) in [(&client, CLIENT), (&server, SERVER)] {
        host.exec(&format!("ip address add {address}/24 dev eth0"))?;
    }
    let first = Proxy::start(&middle, &folder, "first", "")?;
    let address = SocketAddr::from((SERVER, 80));
    let listener = server.enter(|| TcpListener::bind(address))??;
    let mut near = client.connect(address, LIMIT)??;
    let (mut far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(LIMIT))?;
    }
    talk(&mut near, &mut far, b"here")?;

    // A copy, twice: the same flow, still alive.
    let copy = first.flows(&["snapshot", "--all", "--out", text(&file)])?;
    ensure!(copy.status.success() && copy.stderr == b"1 flow\n", "{copy:?}");
    ensure!(fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600, "others can read it");
    refused(&first.flows(&["adopt", text(&file)])?, "--copy")?;
    refused(&first.flows(&["adopt", "--copy", text(&file)])?, "has this flow key here")?;
    // It begins a replay, where its timers run out.
    let begins = ["replay", text(&program), "--parameter", "answer_unknown=false", "--from", text(&file)];
    let replay = weft(&[&begins[..], &["--port", "1=none", "--port", "2=none"]].concat())?;
    let said = String::from_utf8_lossy(&replay.stderr);
    ensure!(replay.status.success() && said.contains("begins with 1 flow of "), "{said}");
    talk(&mut near, &mut far, b"copy")?;

    // Other programs under it: one that does not compile, one that its flows cannot go on in, one that they can.
    let source = fs::read_to_string(&program)?;
    for (program_text, says) in [
        (source.replace("initial state", "initial estate"), "the machine stays as it is: "),
        (source.replace("register offset: i64;", "register offset: u32;"), "can't go on in the image"),
        (source.replace("const refusal_gap = 1s;", "const refusal_gap = 2s;"), "is read again: image "),
    ] {
        ensure!(program_text != source, "the program has changed; change this test, too");
        fs::write(&program, program_text)?;
        first.reload(says)?;
        talk(&mut near, &mut far, b"next")?;
    }

    let list = first.flows(&["--json"])?;
    let flow = serde_json::from_slice::<serde_json::Value>(&list.stdout)?[0]["flow"].to_string();
    let taken = first.flows(&["snapshot", &flow, "--take", "--out", text(&file)])?;
    ensure!(taken.status.success(), "{taken:?}");
    let list = first.flows(&["--json"])?;
    ensure!(list.stdout == b"[]\n", "{list:?}");
    first.end()?;

    // Into another process from its start on; out of it, and into it again. All of that is recorded.
    let inputs = folder.join("second.inputs");
    let further = format!("--from {} --record {}", text(&file), text(&inputs));
    let second = Proxy::start(&middle, &folder, "second", &further)?;
    talk(&mut near, &mut far, b"then")?;
    let taken = second.flows(&["snapshot", &flow, "--take", "--out", text(&file)])?;
    ensure!(taken.status.success(), "{taken:?}");
    let adopted = second.flows(&["adopt", text(&file)])?;
    ensure!(adopted.status.success() && adopted.stdout == format!("flow {flow}\n").into_bytes(), "{adopted:?}");
    talk(&mut near, &mut far, b"last")?;

    // Other parameters for connections to come; this one keeps what it has.
    refused(&second.flows(&["parameters", "answer_unknwon=true"])?, "did you mean `answer_unknown`?")?;
    refused(&second.flows(&["parameters", "answer_unknown=maybe"])?, "write true or false")?;
    let changed = second.flows(&["parameters", "answer_unknown=true"])?;
    ensure!(changed.status.success() && changed.stdout.is_empty(), "{changed:?}");
    let mut later = client.connect(address, LIMIT)??;
    let (mut served, _) = listener.accept()?;
    for stream in [&later, &served] {
        stream.set_read_timeout(Some(LIMIT))?;
    }
    talk(&mut later, &mut served, b"more")?;
    ensure!(second.answers_unknown()? == ["false", "true"], "{:?}", second.answers_unknown()?);
    drop(later);
    served.read_to_end(&mut Vec::new())?;

    drop(near);
    // Until it has seen the end: nothing was reset.
    far.read_to_end(&mut Vec::new())?;
    second.end()?;
    let repeats = ["replay", text(&program), "--parameter", "answer_unknown=false", "--inputs", text(&inputs)];
    let again = weft(&repeats)?;
    let said = String::from_utf8_lossy(&again.stderr);
    ensure!(again.status.success() && said.contains("outputs are those of the run"), "{said}");
    Ok(())
}

fn refused(output: &Output, because: &str) -> Result<()> {
    ensure!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains(because), "{output:?}");
    Ok(())
}
