//! `weft cat`, `weft listen` and `weft proxy` with the TCP of `examples/transports/tcp`, against the kernel's: servers, clients, nginx and
//! curl.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests open sockets and files")]

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_testbed::{
    Namespace, Nginx, Output, Payload, Running, exchange, reset, resident_bytes, sha256_of_file, skip_unless_root,
    wait_for,
};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
/// No step here takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// The kernel's end of a TUN device; the machine's is 10.80.0.1.
const KERNEL: &str = "10.80.0.2";
/// Any port of the machine to port 80 of the kernel.
const TO_KERNEL: &str = "10.80.0.1-10.80.0.2:80";

/// A host with a TUN device, behind which the machine is.
fn host() -> Result<Namespace> {
    Namespace::with_tun(&format!("{KERNEL}/24"))
}

/// Starts `weft COMMAND` on the host's device; with its streams at files if `streams` says so, as a shell does.
fn start(host: &Namespace, command: &str, arguments: &[&str], streams: &str) -> Result<Running> {
    let words = [&[WEFT, command, TCP, "--port", "1=tun:weft0"], arguments].concat();
    let line = format!("exec {} {streams}", words.join(" "));
    host.spawn(&["sh", "-c", &line])
}

/// The same, for a command that waits for connections: until it has its control socket, which it opens behind everything else. What
/// comes into its device before it listens waits there.
fn start_listening(host: &Namespace, command: &str, arguments: &[&str], streams: &str) -> Result<Running> {
    let mut weft = start(host, command, &[arguments, &["--name", host.name()]].concat(), streams)?;
    weft.wait_for_control(host.name())?;
    Ok(weft)
}

fn code(output: &Output, expected: i32, said: &str) -> Result<()> {
    ensure!(output.status.code() == Some(expected), "not {expected}: {output:?}");
    ensure!(output.stderr.contains(said), "`{said}` is not said: {}", output.stderr);
    ensure!(output.stderr.lines().count() <= 1, "more than one line: {}", output.stderr);
    Ok(())
}

/// A file of this test's.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn listener(host: &Namespace) -> Result<TcpListener> {
    Ok(host.enter(|| TcpListener::bind((KERNEL, 80)))??)
}

fn connect(host: &Namespace, to: &str) -> Result<TcpStream> {
    host.connect(to.parse()?, LIMIT)?.with_context(|| format!("cannot connect to {to}"))
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// A connection ends with a reset instead of the end of its bytes.
#[track_caller]
fn ensure_reset(stream: &mut TcpStream) -> Result<()> {
    let line = std::panic::Location::caller().line();
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest).map_err(|error| error.kind());
    ensure!(end == Err(ErrorKind::ConnectionReset), "line {line}: {end:?}");
    Ok(())
}

#[test]
fn cat_and_a_server_of_the_kernel_exchange_files() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    let ours = Payload::create(&file("cat-ours"), 3_000_000, 11)?;
    let theirs = Payload::create(&file("cat-theirs"), 3_000_001, 12)?;
    let received = file("cat-received");
    let server = listener(&host)?;
    let streams = format!("< {} > {}", ours.path.display(), received.display());
    let weft = start(&host, "cat", &[TO_KERNEL], &streams)?;
    let digest = exchange(accept(&server)?, &std::fs::read(&theirs.path)?)?;
    code(&weft.wait(LIMIT)?, 0, "")?;
    ensure!(digest == ours.sha256, "the kernel read other bytes");
    ensure!(sha256_of_file(&received)? == theirs.sha256, "cat wrote other bytes");
    Ok(())
}

#[test]
fn listen_takes_one_connection_or_one_after_the_other() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    let ours = Payload::create(&file("listen-ours"), 3_000_000, 13)?;
    let theirs = Payload::create(&file("listen-theirs"), 3_000_001, 14)?;
    let received = file("listen-received");
    let streams = format!("< {} > {}", ours.path.display(), received.display());
    let weft = start_listening(&host, "listen", &["10.80.0.1:7"], &streams)?;
    let refused = connect(&host, "10.80.0.1:8").map(drop);
    ensure!(refused.is_err(), "it listens on other ports too");
    let digest = exchange(connect(&host, "10.80.0.1:7")?, &std::fs::read(&theirs.path)?)?;
    code(&weft.wait(LIMIT)?, 0, "")?;
    ensure!(digest == ours.sha256, "the kernel read other bytes");
    ensure!(sha256_of_file(&received)? == theirs.sha256, "listen wrote other bytes");

    let told = file("listen-told");
    let streams = format!("> {} 2> {}", received.display(), told.display());
    let many = start_listening(&host, "listen", &["--many", ":7"], &streams)?;
    for _ in 0..3 {
        exchange(connect(&host, "10.80.0.1:7")?, b"one of three\n")?;
    }
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let closed = "closed; 0 bytes sent, of which 0 were not acknowledged; 13 received and written";
    wait_for("the ends of all", LIMIT, || text(&told).matches(closed).count() == 3)?;
    let output = many.interrupt()?;
    ensure!(output.status.code() == Some(0) && text(&received) == "one of three\n".repeat(3), "{output:?}");

    let run = start_listening(&host, "run", &["--listen", "10.80.0.1:7", "--send", TCP], "")?;
    ensure!(connect(&host, "10.80.0.1:8").is_err(), "it listens on other ports too");
    ensure!(exchange(connect(&host, "10.80.0.1:7")?, b"")? == sha256_of_file(Path::new(TCP))?, "other bytes came");
    ensure!(run.stop()?.status.success());
    Ok(())
}

#[test]
fn every_bad_end_has_its_exit_code_and_one_line() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    code(&start(&host, "cat", &[TO_KERNEL], "")?.wait(LIMIT)?, 3, "10.80.0.2:80 refused")?;
    // Nobody has this address.
    let nobody = ["--connect-timeout", "300ms", "10.80.0.1-10.80.0.3:80"];
    code(&start(&host, "cat", &nobody, "")?.wait(LIMIT)?, 5, "10.80.0.3:80 timed out")?;

    // A router that knows no way, as it has none for this address.
    host.sysctl("net.ipv4.ip_forward", "1")?;
    let nowhere = ["--connect-timeout", "300ms", "10.80.0.1-192.0.2.1:80"];
    code(&start(&host, "cat", &nowhere, "")?.wait(LIMIT)?, 6, "192.0.2.1:80 unreachable")?;

    let server = listener(&host)?;
    // Standard input that does not end.
    let weft = start(&host, "cat", &[TO_KERNEL], "< /dev/zero")?;
    let mut stream = accept(&server)?;
    stream.read_exact(&mut [0; 1_000_000])?;
    reset(stream)?;
    code(&weft.wait(LIMIT)?, 4, "reset by the other end; ")?;

    let weft = start(&host, "cat", &[TO_KERNEL], "< /dev/zero")?;
    let mut stream = accept(&server)?;
    stream.read_exact(&mut [0; 1_000_000])?;
    code(&weft.interrupt()?, 130, "interrupted; ")?;
    ensure_reset(&mut stream)?;

    // Whoever reads standard output has seen enough.
    let weft = start(&host, "cat", &[TO_KERNEL], "< /dev/zero | head -c 1000")?;
    let mut stream = accept(&server)?;
    let sent = std::iter::repeat_with(|| stream.write_all(&[b'x'; 1_000])).take(10_000).find(Result::is_err);
    ensure!(sent.is_some(), "the server writes on");
    let output = weft.wait(LIMIT)?;
    ensure!(output.status.success() && output.stdout.len() == 1_000 && output.stderr.is_empty(), "{output:?}");

    let image = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
    let output = host.spawn(&[WEFT, "cat", image, "--port", "1=tun:weft0", TO_KERNEL])?.wait(LIMIT)?;
    code(&output, 1, "opens no connections: it has no handler `on connect` or `on data`")?;

    // A port without a carrier.
    host.exec("ip link add dead0 type veth peer name dead1")?;
    host.exec("ip link set dead0 up")?;
    let words = [WEFT, "cat", TCP, "--port", "1=dead0", "--gateway-mac", "02:00:00:00:00:01", TO_KERNEL];
    code(&host.spawn(&words)?.wait(LIMIT)?, 6, "no route: port 1 (dead0) is not operational")
}

/// Whoever has sent all and would not read what comes: the connection need not wait for the other end to close.
#[test]
fn a_connection_that_nobody_reads_is_an_orphan() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    let server = listener(&host)?;
    for (streams, orphan) in [("< /dev/null", 0), ("< /dev/null | true", 1)] {
        let mut weft = start(&host, "cat", &["--name", host.name(), TO_KERNEL], streams)?;
        let mut stream = accept(&server)?;
        ensure!(stream.read(&mut [0])? == 0, "it closes for sending");
        let control = weft.wait_for_control(host.name())?;
        let mut seen = None;
        wait_for("the machine to wait for the end", LIMIT, || {
            seen = flow_of(&control);
            seen.as_ref().is_some_and(|(state, value)| state == "fin_wait_2" && *value == orphan)
        })
        .with_context(|| format!("not {orphan} but {seen:?}"))?;
        // One that is read is not given up: data still comes through.
        stream.write_all(b"late")?;
        drop(stream);
        let output = weft.wait(LIMIT)?;
        ensure!(output.stdout == if orphan == 0 { "late" } else { "" }, "{output:?}");
    }
    Ok(())
}

/// The state and the register `orphan` of the flow of a run.
fn flow_of(control: &Path) -> Option<(String, i64)> {
    let mut client = ControlClient::connect(Some(control)).ok()?;
    let flow = client.flows().ok()?.first()?.flow;
    let Response::Flow(detail) = client.ask(&Request::Flow { flow }).ok()? else { return None };
    let orphan = detail.registers.iter().find(|register| register.name == "orphan")?.value;
    Some((detail.summary.state, orphan))
}

/// A transport over UDP that tells its application little: nothing of handshakes, for it has none.
#[test]
fn cat_and_listen_work_with_other_transports() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    host.exec("ip tuntap add dev weft1 mode tun")?;
    host.exec("ip address add 10.82.0.2/24 dev weft1")?;
    host.exec("ip link set weft1 up")?;
    host.sysctl("net.ipv4.ip_forward", "1")?;
    let ours = Payload::create(&file("arq-cat"), 100_000, 15)?;
    let received = file("arq-listen");
    let arq = |name: &str| format!("{}/../../examples/arq-{name}.xl", env!("CARGO_MANIFEST_DIR"));
    let shell = |line: String| host.spawn(&["sh", "-c", &line]);
    let (image, received_at) = (arq("receiver"), received.display());
    let mut listen = shell(format!(
        "exec {WEFT} listen {image} --port 1=tun:weft1 --name {} :5000 < /dev/null > {received_at}",
        host.name()
    ))?;
    listen.wait_for_control(host.name())?;
    let (image, sent) = (arq("sender"), ours.path.display());
    let ends = "10.80.0.1-10.82.0.1:5000/udp";
    let cat = shell(format!("exec {WEFT} cat {image} --port 1=tun:weft0 {ends} < {sent}"))?;
    code(&cat.wait(LIMIT)?, 0, "")?;
    code(&listen.wait(LIMIT)?, 0, "")?;
    ensure!(sha256_of_file(&received)? == ours.sha256, "other bytes came");
    Ok(())
}

/// By how much the memory of a process may grow here: the windows of one connection, not the bytes that wait.
const MEMORY: u64 = 15_000_000;
const MUCH: usize = 20_000_000;

/// That the process took no more than [`MEMORY`] since it had so much.
fn ensure_little_memory(weft: &Running, before: u64, written: usize) -> Result<()> {
    let grown = resident_bytes(weft.pid())?.saturating_sub(before);
    ensure!(written < MUCH, "all of it went, though nobody reads");
    ensure!(grown < MEMORY, "{grown} bytes of memory more than the {before} before, with {written} written");
    Ok(())
}

/// Writes until nothing more goes for a while; how many bytes went.
fn fill(stream: &mut TcpStream) -> Result<usize> {
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let mut written = 0;
    while written < MUCH {
        match stream.write(&[b'x'; 10_000]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

#[test]
fn a_slow_reader_of_standard_output_closes_the_window() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["mkfifo"]) else { return Ok(()) };
    let host = host()?;
    let fifo = file("cat-fifo");
    // It may be there from the last run.
    let _ = std::fs::remove_file(&fifo);
    host.exec_within(LIMIT, &["mkfifo", fifo.to_str().context("the target folder's path is not UTF-8")?])?;
    let server = listener(&host)?;
    let weft = start(&host, "cat", &[TO_KERNEL], &format!("> {}", fifo.display()))?;
    let mut reader = File::open(&fifo)?;
    let mut stream = accept(&server)?;
    let before = resident_bytes(weft.pid())?;
    let written = fill(&mut stream)?;
    ensure_little_memory(&weft, before, written)?;
    // The rest goes as it is read.
    let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(&vec![b'x'; MUCH - written])?;
    stream.shutdown(Shutdown::Write)?;
    let read = reading.join().expect("it does not panic")?;
    ensure!(read == MUCH as u64, "{read} bytes came");
    code(&weft.wait(LIMIT)?, 0, "")
}

/// A proxy one way or the other, and the end that its clients connect to.
fn proxies() -> [(&'static [&'static str], &'static str); 2] {
    [
        (&["--kernel-listen", "127.0.0.1:8080", "--connect", TO_KERNEL], "127.0.0.1:8080"),
        (&["--listen", "10.80.0.1:80", "--kernel-connect", "10.80.0.2:80"], "10.80.0.1:80"),
    ]
}

#[test]
fn curl_gets_files_of_nginx_through_a_proxy_either_way() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nginx", "curl"]) else { return Ok(()) };
    let payload = |name: &str, bytes, seed| Payload::create(&file(name), bytes, seed);
    let files = [payload("proxy-0", 0, 1)?, payload("proxy-1", 1, 2)?, payload("proxy-10m", 10_000_000, 3)?];
    for (arguments, to) in proxies() {
        let host = host()?;
        let _nginx = Nginx::start(&host, &files.each_ref())?;
        let weft = start_listening(&host, "proxy", arguments, "")?;
        let received = file("proxy-received");
        let target = received.to_str().context("the target folder's path is not UTF-8")?;
        for payload in &files {
            let name = payload.path.file_name().and_then(|name| name.to_str()).context("a payload has a file name")?;
            host.exec(&format!("curl --silent --show-error --fail --output {target} http://{to}/{name}"))?;
            ensure!(sha256_of_file(&received)? == payload.sha256, "{name} came as other bytes through {arguments:?}");
        }
        // One after the other, each on a connection of its own; then several at once.
        for _ in 0..100 {
            host.exec(&format!("curl --silent --show-error --fail --output /dev/null http://{to}/proxy-1"))?;
        }
        let at_once = (0..20).map(|at| {
            let target = file(&format!("proxy-received-{at}"));
            let url = format!("http://{to}/proxy-10m");
            let shown = target.to_str().context("the target folder's path is not UTF-8")?;
            Ok((host.spawn(&["curl", "--silent", "--show-error", "--fail", "--output", shown, &url])?, target.clone()))
        });
        for (curl, target) in at_once.collect::<Result<Vec<_>>>()? {
            let output = curl.wait(LIMIT)?;
            ensure!(output.status.success(), "{output:?}");
            ensure!(sha256_of_file(&target)? == files[2].sha256, "other bytes at once through {arguments:?}");
            std::fs::remove_file(target)?;
        }
        let output = weft.interrupt()?;
        ensure!(output.status.success(), "{output:?}");
        let all =
            "123 connections: 123 closed, 0 refused, 0 reset, 0 failed, 0 broken off at the end; 0 more not taken";
        ensure!(output.stderr.contains(all), "{}", output.stderr);
    }
    Ok(())
}

#[test]
fn a_proxy_passes_half_closes_and_resets_on() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    for (arguments, to) in proxies() {
        let host = host()?;
        let server = listener(&host)?;
        let weft = start_listening(&host, "proxy", arguments, "")?;
        let pair = || Ok::<_, anyhow::Error>((connect(&host, to)?, accept(&server)?));

        // The server answers when it has seen the end.
        let (mut client, mut served) = pair()?;
        client.write_all(b"question")?;
        client.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        served.read_to_string(&mut text)?;
        served.write_all(format!("answer to {text}").as_bytes())?;
        drop(served);
        text.clear();
        client.read_to_string(&mut text)?;
        ensure!(text == "answer to question", "{text}");

        // Either side resets, in the middle.
        let (mut client, mut served) = pair()?;
        client.write_all(b"x")?;
        served.read_exact(&mut [0])?;
        reset(served)?;
        ensure_reset(&mut client)?;
        let (mut client, mut served) = pair()?;
        served.write_all(b"x")?;
        client.read_exact(&mut [0])?;
        reset(client)?;
        ensure_reset(&mut served)?;

        // A client that does not read holds its server up, and nobody else.
        let (client, mut slow) = pair()?;
        let before = resident_bytes(weft.pid())?;
        let written = fill(&mut slow)?;
        ensure_little_memory(&weft, before, written)?;
        let (other, served) = pair()?;
        let serving = std::thread::spawn(move || exchange(served, b"more"));
        exchange(other, b"much")?;
        serving.join().expect("it does not panic")?;

        // Nobody listens any more. The client may see that as early as when it connects.
        drop(server);
        if let Ok(mut late) = connect(&host, to) {
            ensure_reset(&mut late)?;
        }

        // What is open when the proxy ends is reset.
        let output = weft.interrupt()?;
        ensure!(output.status.success(), "{output:?}");
        let all = "6 connections: 2 closed, 1 refused, 2 reset, 0 failed, 1 broken off at the end; 0 more not taken";
        ensure!(output.stderr.contains(all), "{}", output.stderr);
        drop(client);
    }
    Ok(())
}

/// A kernel's connection whose other end has gone without a word is noticed by the kernel (keep-alive), and ends the one behind it.
#[test]
fn who_has_gone_without_a_word_is_noticed_behind_a_proxy() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    let ways: [(&[&str], &str, &str); 2] = [
        (&["--kernel-listen", "10.81.0.1:8080", "--connect", TO_KERNEL], "10.81.0.1:8080", "10.80.0.2:80"),
        (&["--listen", "10.80.0.1:80", "--kernel-connect", "10.81.0.2:80"], "10.80.0.1:80", "10.81.0.2:80"),
    ];
    for (number, (arguments, to, served_at)) in ways.into_iter().enumerate() {
        let (host, goer) = (host()?, Namespace::new()?);
        host.join(("eth0", "02:00:00:00:00:01"), &goer, ("eth0", "02:00:00:00:00:02"))?;
        host.exec("ip address add 10.81.0.1/24 dev eth0")?;
        goer.exec("ip address add 10.81.0.2/24 dev eth0")?;
        for (key, value) in [("time", "1"), ("intvl", "1"), ("probes", "2")] {
            host.sysctl(&format!("net.ipv4.tcp_keepalive_{key}"), value)?;
        }
        let [client, server] = if number == 0 { [&goer, &host] } else { [&host, &goer] };
        let listener = server.enter(|| TcpListener::bind(served_at))??;
        let weft = start_listening(&host, "proxy", arguments, "")?;
        let mut near = connect(client, to)?;
        let mut far = accept(&listener)?;
        near.write_all(b"x")?;
        far.read_exact(&mut [0])?;
        goer.nft("table inet weft_gone {\n chain gone {\n type filter hook input priority 0; policy drop;\n }\n }")?;
        ensure_reset(if number == 0 { &mut far } else { &mut near })?;
        let output = weft.interrupt()?;
        ensure!(output.stderr.contains("1 connections: 0 closed, 0 refused, 0 reset, 1 failed, "), "{}", output.stderr);
    }
    Ok(())
}

#[test]
fn more_connections_than_allowed_are_reset_and_counted() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    for (arguments, to) in proxies() {
        let host = host()?;
        let server = listener(&host)?;
        let weft = start_listening(&host, "proxy", &[arguments, &["--most", "2"]].concat(), "")?;
        let first = [connect(&host, to)?, connect(&host, to)?];
        let served = [accept(&server)?, accept(&server)?];
        // The kernel may tell of the reset as early as when it has connected.
        match host.connect(to.parse()?, LIMIT)? {
            Ok(mut third) => ensure_reset(&mut third)?,
            Err(error) => ensure!(error.kind() == ErrorKind::ConnectionReset, "{error}"),
        }
        drop((first, served));
        wait_for("room again", LIMIT, || {
            let Ok(mut client) = connect(&host, to) else { return false };
            let _ = client.shutdown(Shutdown::Write);
            // Who is not taken is reset; else the server has it.
            client.set_read_timeout(Some(Duration::from_millis(200))).is_ok()
                && client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        })?;
        let output = weft.interrupt()?;
        ensure!(output.status.success() && !output.stderr.contains(" 0 more not taken"), "{output:?}");
    }
    Ok(())
}
