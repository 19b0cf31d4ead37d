//! A switch between kernels ends, and another one goes on with what it knew: a window that was half full fills up.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::{Namespace, Running, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const LIMIT: Duration = Duration::from_secs(20);
const FORMAT: &str = "
@subscribe[after=udp, when=udp.destination_port == 5000]
header number {
    @subscribe[] bit<8> value;
}";
const SUBSCRIBER: (&str, &str) = ("02:00:00:00:00:09", "10.0.0.9");

fn weft(words: &[&str]) -> Result<weftwire_testbed::Output> {
    let mut command = Command::new(WEFT);
    command.args(words);
    Running::start(command)?.wait(LIMIT)
}

#[test]
fn another_run_goes_on_with_the_windows_of_the_first() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-subs-state");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let file =
        |name: &str| folder.join(name).to_str().map(str::to_owned).context("the build's folder has a plain name");
    let (format, rules, others, state) = (file("number.p4")?, file("sum.rules")?, file("other.rules")?, file("state")?);
    fs::write(&format, FORMAT)?;
    fs::write(&rules, "sum(number.value) over 600s > 5 : fwd(2);")?;
    fs::write(&others, "sum(number.value) over 600s > 6 : fwd(2);")?;

    let [sender, middle, subscriber] = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
    sender.join(("eth0", "02:00:00:00:00:01"), &middle, ("port1", "02:00:00:00:01:01"))?;
    sender.exec("ip address add 10.0.0.1/24 dev eth0")?;
    sender.exec(&format!("ip neighbour add {} lladdr {} dev eth0", SUBSCRIBER.1, SUBSCRIBER.0))?;
    subscriber.join(("eth0", SUBSCRIBER.0), &middle, ("port2", "02:00:00:00:01:02"))?;
    subscriber.exec(&format!("ip address add {}/24 dev eth0", SUBSCRIBER.1))?;
    let received = subscriber.enter(|| UdpSocket::bind((SUBSCRIBER.1, 5000)))??;
    received.set_read_timeout(Some(LIMIT))?;
    let sent = sender.enter(|| UdpSocket::bind(("10.0.0.1", 0)))??;
    let send = |value: u8| sent.send_to(&[value], (SUBSCRIBER.1, 5000));

    let start = |control: &str, rules: &str, more: &[&str]| {
        let ports = ["--port", "1=port1", "--port", "2=port2", "--keep-privileges", "--control", control];
        middle.spawn(&[&[WEFT, "subs", "run", "--rules", rules, "--format", &format], &ports[..], more].concat())
    };
    let messages = |control: &str| -> Option<u64> {
        let text = weft(&["flows", "counters", "--json", "--control", control]).ok()?.stdout;
        let counters: serde_json::Value = serde_json::from_str(&text).ok()?;
        let rows = counters["rows"].as_array()?;
        rows.iter().find(|row| row[0] == "messages")?[1].as_u64()
    };

    let first = file("first.sock")?;
    let run = start(&first, &rules, &[])?;
    wait_for("the first run", LIMIT, || messages(&first) == Some(0))?;
    send(4)?;
    wait_for("its message", LIMIT, || messages(&first) == Some(1))?;
    let written = weft(&["subs", "snapshot", "--out", &state, "--control", &first])?;
    ensure!(written.status.success(), "{}", written.stderr);
    ensure!(fs::metadata(&state)?.permissions().mode() & 0o777 == 0o600, "the state is its owner's");
    ensure!(run.interrupt()?.status.success());

    // Other rules are refused, before anything runs.
    let second = file("second.sock")?;
    let refused = start(&second, &others, &["--from", &state])?.wait(LIMIT)?;
    ensure!(!refused.status.success() && refused.stderr.contains("belongs to other rules"), "{}", refused.stderr);

    let run = start(&second, &rules, &["--from", &state])?;
    wait_for("the second run", LIMIT, || messages(&second) == Some(1))?;
    // More than five, with the four of before.
    send(3)?;
    let mut message = [0; 9];
    let length = received.recv(&mut message).context("the window is half full from the first run")?;
    ensure!(message[..length] == [3], "{:?}", &message[..length]);
    ensure!(run.interrupt()?.status.success());
    Ok(())
}
