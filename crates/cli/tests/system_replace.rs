//! One `weft run` takes over another one under a download: `weft run --replace`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{self, UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weftwire_testbed::{Flood, Namespace, Running, Turn, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FUNCTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
const LIMIT: Duration = Duration::from_secs(20);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// How often the run is replaced under the download.
const UPGRADES: usize = 25;

fn text(path: &Path) -> &str {
    path.to_str().expect("the build's folder has a plain name")
}

/// A client, a server, and a place for SYN proxies between them.
struct Bed {
    client: Namespace,
    middle: Namespace,
    server: Namespace,
    folder: PathBuf,
    program: PathBuf,
    started: AtomicU64,
    _turn: Turn,
}

/// A `weft run`, and what it says.
struct Proxy {
    weft: Running,
    log: PathBuf,
}

/// Frames that a run has received and sent on its ports 1 and 2.
#[derive(Clone, Copy, Default, Debug)]
struct Frames {
    received: [u64; 2],
    sent: [u64; 2],
    dropped: u64,
}

impl Bed {
    fn new(name: &str) -> Result<Option<Bed>> {
        let Some(turn) = skip_unless_root(&["ethtool"]) else { return Ok(None) };
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("system-replace-{name}"));
        // It may be there from the last run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let program = folder.join("proxy.xl");
        fs::copy(FUNCTION, &program)?;
        let (client, middle, server) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        client.join(("eth0", "02:00:00:00:00:01"), &middle, ("port1", "02:00:00:00:00:02"))?;
        server.join(("eth0", "02:00:00:00:00:04"), &middle, ("port2", "02:00:00:00:00:03"))?;
        for (host, interface) in [(&client, "eth0"), (&middle, "port1"), (&middle, "port2"), (&server, "eth0")] {
            // A frame is a packet then, and counted as one everywhere.
            host.set_offloads(interface, false)?;
            // Only what the test sends is counted. A kernel without IPv6 has no such setting.
            let _ = host.sysctl(&format!("net.ipv6.conf.{interface}.disable_ipv6"), "1");
        }
        for (host, address) in [(&client, CLIENT), (&server, SERVER)] {
            host.exec(&format!("ip address add {address}/24 dev eth0"))?;
        }
        Ok(Some(Bed { client, middle, server, folder, program, started: AtomicU64::new(0), _turn: turn }))
    }

    /// The namespace's name, because names of runs are the machine's, not the namespace's.
    fn name(&self) -> &str {
        self.middle.name()
    }

    fn socket(&self) -> PathBuf {
        Path::new("/run/weft/runs").join(self.name()).join("control.sock")
    }

    /// Starts one, with these further arguments.
    fn start(&self, further: &str) -> Result<Proxy> {
        self.start_with("", further)
    }

    /// The same, with this in its environment.
    fn start_with(&self, environment: &str, further: &str) -> Result<Proxy> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.folder.join(format!("{number}.log"));
        let command = format!(
            "{environment} exec {WEFT} run {} --port 1=port1 --port 2=port2 {further} 2> {}",
            text(&self.program),
            text(&log)
        );
        Ok(Proxy { weft: self.middle.spawn(&["sh", "-c", &command])?, log })
    }

    fn first(&self) -> Result<Proxy> {
        let mut proxy = self.start(&format!("--name {}", self.name()))?;
        proxy.weft.wait_for_control(self.name())?;
        proxy.says("Ctrl-C ends it")?;
        Ok(proxy)
    }

    fn successor(&self) -> Result<Proxy> {
        self.start(&format!("--replace {}", self.name()))
    }

    /// Has another process take `current`'s place: what that one has counted. On a machine that is busy elsewhere an answer may take longer than
    /// the run waits for it; then the run goes on, and this tries again.
    fn replace(&self, current: &mut Proxy, environment: &str) -> Result<Frames> {
        for _ in 0..20 {
            let mut next = self.start_with(environment, &format!("--replace {}", self.name()))?;
            wait_for("one of both to end", LIMIT, || !current.weft.is_running() || !next.weft.is_running())
                .with_context(|| format!("{}{}", current.log(), next.log()))?;
            if !current.weft.is_running() {
                let frames = std::mem::replace(current, next).ended(true)?;
                current.says("took over from process")?;
                return Ok(frames);
            }
            let log = next.log();
            ensure!(log.contains("keeps the ports"), "{}{log}", current.log());
        }
        bail!("the run was never replaced: {}", current.log())
    }

    /// What a process says that does not take over, or can't.
    fn refused(&self, further: &str) -> Result<String> {
        let Proxy { weft, log } = self.start(further)?;
        let ended = weft.wait(LIMIT)?;
        let said = fs::read_to_string(log)?;
        ensure!(!ended.status.success(), "it was not refused: {said}");
        Ok(said)
    }

    /// What arrived at the ports so far, from both hosts.
    fn arrived(&self) -> Result<[u64; 2]> {
        let count = |interface| Ok::<_, anyhow::Error>(self.middle.counters(interface)?.received_packets);
        Ok([count("port1")?, count("port2")?])
    }

    fn connect(&self) -> Result<(TcpStream, TcpStream)> {
        let address = SocketAddr::from((SERVER, 80));
        let listener = self.server.enter(|| TcpListener::bind(address))??;
        let near = self.client.connect(address, LIMIT)??;
        let (far, _) = listener.accept()?;
        for stream in [&near, &far] {
            stream.set_read_timeout(Some(LIMIT))?;
            stream.set_write_timeout(Some(LIMIT))?;
        }
        Ok((near, far))
    }
}

impl Proxy {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn says(&self, words: &str) -> Result<()> {
        wait_for(words, LIMIT, || self.log().contains(words)).with_context(|| self.log())
    }

    /// Waits until it has ended in order, and reads its report.
    fn ended(self, replaced: bool) -> Result<Frames> {
        let Proxy { weft, log } = self;
        let ended = match replaced {
            true => weft.wait(LIMIT),
            false => weft.interrupt(),
        };
        let said = fs::read_to_string(&log)?;
        let ended = ended.with_context(|| said.clone())?;
        ensure!(ended.status.success(), "{said}");
        ensure!(said.contains(", and was replaced") == replaced, "{said}");
        let mut frames = Frames::default();
        for line in said.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [port @ ("1" | "2"), _, received, _, sent, _, dropped] = words[..] {
                let place = usize::from(port == "2");
                (frames.received[place], frames.sent[place]) = (received.parse()?, sent.parse()?);
                frames.dropped += dropped.parse::<u64>()?;
            }
        }
        Ok(frames)
    }
}

/// Bytes that never repeat, as the server sends them.
fn block(number: u64) -> Vec<u8> {
    let word = |at: u64| (number << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..8_192).flat_map(word).collect()
}

/// Sends until told otherwise: the number of bytes and their digest.
fn serve(mut far: TcpStream, enough: &AtomicBool) -> Result<(u64, String)> {
    let (mut bytes, mut digest) = (0, Sha256::new());
    for number in 0.. {
        let block = block(number);
        far.write_all(&block).context("the server can't send")?;
        digest.update(&block);
        bytes += block.len() as u64;
        if enough.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok((bytes, format!("{:x?}", digest.finalize().as_slice())))
}

fn download(mut near: TcpStream, progress: &AtomicU64) -> Result<(u64, String)> {
    let (mut bytes, mut digest, mut buffer) = (0, Sha256::new(), vec![0; 65_536]);
    loop {
        let count = near.read(&mut buffer).context("the client can't read")?;
        if count == 0 {
            return Ok((bytes, format!("{:x?}", digest.finalize().as_slice())));
        }
        digest.update(&buffer[..count]);
        bytes += count as u64;
        progress.store(bytes, Ordering::Relaxed);
    }
}

/// Has `meanwhile` run under a download, which must come whole.
fn under_a_download(bed: &Bed, meanwhile: impl FnOnce(&AtomicU64) -> Result<()>) -> Result<u64> {
    let (near, far) = bed.connect()?;
    let (enough, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| serve(far, &enough));
        let receiver = scope.spawn(|| download(near, &progress));
        let done = wait_for("the download to begin", LIMIT, || progress.load(Ordering::Relaxed) > 0)
            .and_then(|()| meanwhile(&progress));
        enough.store(true, Ordering::Relaxed);
        let (sent, received) = (sender.join().expect("no panic"), receiver.join().expect("no panic"));
        done?;
        let (sent, received) = (sent?, received?);
        ensure!(sent == received, "{sent:?} were sent, {received:?} came");
        Ok(sent.0)
    })
}

/// Waits until more of the download has come.
fn goes_on(progress: &AtomicU64) -> Result<()> {
    let before = progress.load(Ordering::Relaxed);
    wait_for("the download to go on", LIMIT, || progress.load(Ordering::Relaxed) > before + 1_000_000)
}

#[test]
fn a_download_lasts_through_upgrades() -> Result<()> {
    let Some(bed) = Bed::new("upgrades")? else { return Ok(()) };
    let source = fs::read_to_string(&bed.program)?;
    let other = source.replace("const refusal_gap = 1s;", "const refusal_gap = 2s;");
    ensure!(source != other, "the program has changed; change this test, too");
    let mut current = bed.first()?;
    let before = bed.arrived()?;
    let (mut all, mut pauses) = (Vec::new(), Vec::new());
    // A service manager, which hears of every new main process.
    let name = format!("weft-manager-{}", std::process::id());
    let address = net::SocketAddr::from_abstract_name(&name)?;
    let manager = bed.middle.enter(|| UnixDatagram::bind_addr(&address))??;
    manager.set_read_timeout(Some(LIMIT))?;
    let bytes = under_a_download(&bed, |progress| {
        for number in 0..UPGRADES {
            // Each second time another image, which is as good for the flows.
            fs::write(&bed.program, if number % 2 == 0 { &other } else { &source })?;
            let ended = bed.replace(&mut current, &format!("NOTIFY_SOCKET=@{name}"));
            all.push(ended.with_context(|| format!("upgrade {number}"))?);
            let mut told = [0; 64];
            let length = manager.recv(&mut told)?;
            ensure!(told[..length] == *format!("MAINPID={}", current.weft.pid()).as_bytes(), "{told:?}");
            goes_on(progress)?;
            pauses.extend(current.log().lines().filter(|line| line.contains("took over")).map(str::to_owned));
        }
        Ok(())
    })?;
    // Both ends have said goodbye once nothing more comes.
    let mut arrived = bed.arrived()?;
    wait_for("the hosts to be quiet", LIMIT, || {
        std::thread::sleep(Duration::from_millis(300));
        bed.arrived().is_ok_and(|now| std::mem::replace(&mut arrived, now) == now)
    })?;
    all.push(current.ended(false)?);
    for port in 0..2 {
        let received: u64 = all.iter().map(|frames| frames.received[port]).sum();
        let sent: u64 = all.iter().map(|frames| frames.sent[1 - port]).sum();
        let came = arrived[port] - before[port];
        ensure!(received == came, "{came} frames came to port {}, {received} were received", port + 1);
        println!("port {}: {came} frames came, {received} received, {sent} sent by the other", port + 1);
    }
    ensure!(all.iter().all(|frames| frames.dropped == 0), "{all:?}");
    println!("{bytes} bytes through {UPGRADES} upgrades\n{}", pauses.join("\n"));
    Ok(())
}

/// Whether a process has mapped the word by which runs change hands.
fn has_word(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"));
    maps.is_ok_and(|maps| maps.contains("memfd:weft replacement"))
}

fn signal(name: &str, pid: u32) -> Result<()> {
    ensure!(std::process::Command::new("kill").args([name, &pid.to_string()]).status()?.success(), "kill {name} {pid}");
    Ok(())
}

/// The run dies at any moment after its successor has got the ports: then that one has them, whether it was ready or not.
#[test]
fn a_run_that_dies_is_succeeded() -> Result<()> {
    let Some(bed) = Bed::new("death")? else { return Ok(()) };
    for number in 0..6 {
        let first = bed.first()?;
        let mut next = bed.successor()?;
        wait_for("the successor to have the ports", LIMIT, || has_word(next.weft.pid()))?;
        // A little later each time.
        for _ in 0..number * 100_000 {
            std::hint::spin_loop();
        }
        first.weft.kill();
        wait_for("the successor to serve", LIMIT, || {
            let log = next.log();
            !next.weft.is_running() || log.contains("is dead: took over its ports") || log.contains("Ctrl-C ends it")
        })?;
        // Connections to come are served by it.
        let (mut near, mut far) = bed.connect().with_context(|| next.log())?;
        let mut heard = [0; 4];
        near.write_all(b"word")?;
        far.read_exact(&mut heard)?;
        ensure!(heard == *b"word", "{heard:?}");
        drop((near, far));
        let socket = bed.socket();
        let counters = [WEFT, "flows", "counters", "--control", text(&socket)];
        bed.middle.exec_within(LIMIT, &counters).with_context(|| next.log())?;
        next.ended(false)?;
    }
    Ok(())
}

/// Either process is stopped for a while once the successor has the ports: one of both has them afterwards, and the download comes whole.
#[test]
fn a_process_that_is_stopped_for_a_while_loses_nothing() -> Result<()> {
    let Some(bed) = Bed::new("pause")? else { return Ok(()) };
    let mut current = bed.first()?;
    under_a_download(&bed, |progress| {
        for stops_old in [true, false, true, false] {
            let mut next = bed.successor()?;
            wait_for("the successor to have the ports", LIMIT, || has_word(next.weft.pid()))?;
            let (stopped, other) = match stops_old {
                true => (current.weft.pid(), &mut next),
                false => (next.weft.pid(), &mut current),
            };
            signal("-STOP", stopped)?;
            // Until the other one has what it needs, or has given up.
            if stops_old {
                let said = |proxy: &Proxy| proxy.log().contains("took over") || proxy.log().contains("keeps the ports");
                wait_for("the successor to decide", LIMIT, || said(other) || !other.weft.is_running())?;
            } else {
                std::thread::sleep(Duration::from_millis(250));
            }
            signal("-CONT", stopped)?;
            // One of both ends.
            wait_for("one of both to end", LIMIT, || !current.weft.is_running() || !next.weft.is_running())?;
            match current.weft.is_running() {
                false => drop(std::mem::replace(&mut current, next).ended(true)?),
                true => {
                    let ended = next.weft.wait(LIMIT)?;
                    let said = fs::read_to_string(&next.log)?;
                    ensure!(!ended.status.success() && said.contains("keeps the ports"), "{said}");
                }
            }
            goes_on(progress).with_context(|| current.log())?;
        }
        Ok(())
    })?;
    current.ended(false)?;
    Ok(())
}

/// Says the words of a successor, by hand.
struct Impostor(UnixStream);

/// Kinds of messages, by their numbers.
const BEGIN: u8 = 10;
const READY: u8 = 5;
const ADOPTED: u8 = 6;

impl Impostor {
    fn connect(bed: &Bed) -> Result<Impostor> {
        let mut stream = UnixStream::connect(bed.socket())?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(b"{\"request\":\"replace\"}\n")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        ensure!(answer == *b"{\"done\":{}}\n", "{}", String::from_utf8_lossy(&answer));
        Ok(Impostor(stream))
    }

    fn say(&mut self, kind: u8) -> Result<()> {
        Ok(self.0.write_all(&[1, 0, 0, 0, kind])?)
    }

    /// Reads until this message has come.
    fn await_kind(&mut self, kind: u8) -> Result<()> {
        loop {
            let mut length = [0; 4];
            self.0.read_exact(&mut length)?;
            let mut message = vec![0; u32::from_le_bytes(length) as usize];
            self.0.read_exact(&mut message)?;
            if message[0] == kind {
                return Ok(());
            }
        }
    }

    /// Reads until the other end is closed.
    fn await_end(&mut self) -> Result<()> {
        match self.0.read_to_end(&mut Vec::new()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A successor stops, or goes, at each phase: the run goes on, and the next one may take it over.
#[test]
fn a_successor_that_stops_or_dies_changes_nothing() -> Result<()> {
    let Some(bed) = Bed::new("successor")? else { return Ok(()) };
    let mut current = bed.first()?;
    under_a_download(&bed, |progress| {
        // Each says so much, and then nothing more, or is gone.
        let phases: [&[u8]; 4] = [&[], &[BEGIN], &[BEGIN, READY], &[BEGIN, READY, ADOPTED]];
        let mut told = 0;
        for words in phases {
            for dies in [false, true] {
                let mut impostor = Impostor::connect(&bed)?;
                for word in words {
                    impostor.say(*word)?;
                    match *word {
                        // The descriptors; the last flow.
                        BEGIN => impostor.await_kind(1)?,
                        READY => impostor.await_kind(9)?,
                        _ => impostor.await_kind(4)?,
                    }
                }
                // Who has only begun is waited for without limit: the run serves.
                if dies || words.len() < 2 {
                    goes_on(progress)?;
                    drop(impostor);
                } else {
                    impostor.await_end()?;
                }
                told += 1;
                wait_for("the run to say so", LIMIT, || current.log().matches("not replaced: ").count() == told)?;
                goes_on(progress)?;
                ensure!(current.weft.is_running(), "{}", current.log());
            }
        }
        bed.replace(&mut current, "")?;
        goes_on(progress)
    })?;
    current.ended(false)?;
    Ok(())
}

#[test]
fn plans_that_do_not_fit_are_refused_with_the_reason() -> Result<()> {
    let Some(bed) = Bed::new("plans")? else { return Ok(()) };
    let first = bed.first()?;
    let name = bed.name().to_owned();
    let source = fs::read_to_string(&bed.program)?;
    let log = bed.refused(&format!("--replace {name} --port 3=lo"))?;
    ensure!(log.contains("other ports: 1=port1 (socket), 2=port2 (socket) there"), "{log}");
    let log = bed.refused("--replace nobody-has-this-name")?;
    ensure!(log.contains("is `weft run` active?"), "{log}");
    let log = bed.refused(&format!("--replace {name} --trace there.jsonl"))?;
    ensure!(log.contains("cannot be used with"), "{log}");
    let log = bed.refused(&format!("--name {name}"))?;
    ensure!(log.contains("is active already"), "{log}");
    fs::write(&bed.program, source.replace("register offset: i64;", "register offset: u32;"))?;
    let log = bed.refused(&format!("--replace {name}"))?;
    ensure!(log.contains("the run is not replaced") && log.contains("can't go on in the image"), "{log}");
    fs::write(&bed.program, &source)?;

    // What fits is told, and nothing changes.
    let Proxy { weft, .. } = bed.start(&format!("--replace {name} --check"))?;
    let told = weft.wait(LIMIT)?;
    ensure!(told.status.success() && told.stdout.contains("nothing has changed"), "{}{}", told.stdout, told.stderr);
    first.ended(false)?;

    // Not everything changes hands.
    let ring = bed.middle.spawn(&[WEFT, "run", text(&bed.program), "--name", &name, "--port", "1=port1,ring"])?;
    wait_for("the run", LIMIT, || UnixStream::connect(bed.socket()).is_ok())?;
    let next = [WEFT, "run", text(&bed.program), "--replace", &name, "--port", "1=port1,ring"];
    let refused = bed.middle.spawn(&next)?.wait(LIMIT)?;
    ensure!(refused.stderr.contains("whose memory does not change hands yet"), "{}", refused.stderr);
    ring.interrupt()?;
    Ok(())
}

/// TUN devices stay as they are, addresses and all: whoever holds them.
#[test]
fn tun_devices_change_hands() -> Result<()> {
    let Some(bed) = Bed::new("tun")? else { return Ok(()) };
    let (program, name) = (text(&bed.program), bed.name());
    let ports = ["--port", "1=tun:weft0", "--port", "2=tun:weft1"];
    let run = |which: &[&str]| bed.middle.spawn(&[&[WEFT, "run", program], which, &ports].concat());
    let mut first = run(&["--name", name])?;
    let socket = first.wait_for_control(name)?;
    bed.middle.exec("ip address add 10.9.0.1/24 dev weft0")?;
    let next = run(&["--replace", name])?;
    let ended = first.wait(LIMIT)?;
    ensure!(ended.status.success() && ended.stderr.contains(", and was replaced"), "{}", ended.stderr);
    let sender = bed.middle.enter(|| UdpSocket::bind("10.9.0.1:0"))??;
    for _ in 0..3 {
        sender.send_to(b"through the device", "10.9.0.2:9")?;
    }
    wait_for("three packets through the successor", LIMIT, || {
        let counters =
            bed.middle.exec_within(LIMIT, &[WEFT, "flows", "counters", "--json", "--control", text(&socket)]);
        let counters = counters.ok().and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        counters.is_some_and(|it| {
            let count = |port: usize, what: &str| it["ports"][port][what].as_u64() >= Some(3);
            count(0, "frames_in") && count(1, "frames_out")
        })
    })?;
    next.interrupt()?;
    Ok(())
}

/// Ten thousand half-open connections, each with a timer that is pending, go along with one that downloads.
#[test]
fn ten_thousand_flows_go_along() -> Result<()> {
    let Some(bed) = Bed::new("many")? else { return Ok(()) };
    let source = fs::read_to_string(&bed.program)?;
    let patient = source.replace("const half_open_time = 5s;", "const half_open_time = 300s;");
    ensure!(source != patient, "the program has changed; change this test, too");
    fs::write(&bed.program, patient)?;
    let mut current = bed.first()?;
    let flood = Flood {
        interface: "eth0".into(),
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 4],
        destination: SocketAddrV4::new(SERVER, 80),
        count: 10_000,
        rate: Some(20_000),
        sequential: true,
        seed: 1,
    };
    bed.client.enter(|| flood.run())??;
    under_a_download(&bed, |progress| {
        for _ in 0..3 {
            bed.replace(&mut current, "")?;
            goes_on(progress)?;
            let log = current.log();
            let said = log.lines().find(|line| line.contains("took over")).context("it says so")?;
            println!("{said}");
            ensure!(said.contains(": 10001 flows;"), "{said}");
        }
        Ok(())
    })?;
    current.ended(false)?;
    Ok(())
}
