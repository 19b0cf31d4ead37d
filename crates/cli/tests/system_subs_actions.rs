//! `weft subs run` between kernels, with actions: answers of the DNS to a real `dig`, plain IP forwarding under a real
//! `ping` and `iperf3`, a service that moves from one host to another, and several of these on one switch.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use weftwire_testbed::{Namespace, Output, Running, skip_unless_root, wait_for};
use weftwire_workload::Numbers;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions");
const LIMIT: Duration = Duration::from_secs(20);
/// What the name server behind the switch answers.
const FROM_SERVER: &str = "192.0.2.7";

/// A running `weft subs run` in its namespace.
struct Switch {
    namespace: Namespace,
    weft: Running,
    /// What repeats the run.
    again: Vec<String>,
}

/// Makes hosts, each joined to one switch by its `eth0`: the first to port 1 and so on. Their Ethernet addresses end in
/// these bytes.
fn hosts<const N: usize>(last_bytes: [u8; N]) -> Result<([Namespace; N], Namespace)> {
    let middle = Namespace::new()?;
    let mut hosts = Vec::new();
    for (index, byte) in last_bytes.into_iter().enumerate() {
        let host = Namespace::new()?;
        let (mac, port) = (format!("02:00:00:00:00:{byte:02x}"), format!("port{}", index + 1));
        host.join(("eth0", &mac), &middle, (&port, &format!("02:00:00:00:01:{byte:02x}")))?;
        hosts.push(host);
    }
    let hosts: [Namespace; N] = hosts.try_into().map_err(|_| anyhow::anyhow!("as many as asked for"))?;
    Ok((hosts, middle))
}

/// A folder of its own for a test.
fn folder(name: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Switch {
    fn start(namespace: Namespace, folder: &Path, ports: usize, rules: &[PathBuf], formats: &[&str]) -> Result<Switch> {
        let (control, inputs) = (folder.join("control.sock"), folder.join("inputs").display().to_string());
        let mut words: Vec<String> =
            [WEFT, "subs", "run", "--keep-privileges", "--record", &inputs].map(Into::into).into();
        let mut again: Vec<String> = ["subs", "replay", &inputs].map(Into::into).into();
        for (number, path) in rules.iter().enumerate() {
            // The test may write others into the file.
            let first = folder.join(format!("first-{number}.rules"));
            fs::copy(path, &first)?;
            words.extend(["--rules".into(), path.display().to_string()]);
            again.extend(["--rules".into(), first.display().to_string()]);
        }
        for name in formats {
            let format = ["--format".into(), format!("{EXAMPLES}/{name}")];
            words.extend(format.clone());
            again.extend(format);
        }
        words.extend(["--control".into(), control.display().to_string()]);
        for port in 1..=ports {
            words.extend(["--port".into(), format!("{port}=port{port}")]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let weft = namespace.spawn(&words)?;
        wait_for("the control socket", LIMIT, || control.exists())?;
        Ok(Switch { namespace, weft, again })
    }

    /// Ends the run, and sees that the recording of its inputs gives what it gave.
    fn end(self) -> Result<Output> {
        let ended = self.weft.interrupt()?;
        ensure!(ended.status.success(), "{}", ended.stderr);
        drop(self.namespace);
        let mut replay = Command::new(WEFT);
        replay.args(&self.again);
        let replayed = Running::start(replay)?.wait(LIMIT)?;
        ensure!(replayed.status.success() && replayed.stderr.contains("are those of the run"), "{}", replayed.stderr);
        Ok(ended)
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(EXAMPLES).join(name)
}

/// A name server that answers every query for an address with the same one, on a thread for the rest of the test.
fn serve_names(host: &Namespace, address: &str) -> Result<()> {
    let socket = host.enter(|| UdpSocket::bind((address, 53)))??;
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let Some(name) = query[12..length].iter().position(|byte| *byte == 0) else { continue };
            let mut answer = query[..12 + name + 5].to_vec();
            answer[2..12].copy_from_slice(&[0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
            answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4]);
            answer.extend_from_slice(&FROM_SERVER.parse::<Ipv4Addr>().expect("an address").octets());
            let _ = socket.send_to(&answer, from);
        }
    });
    Ok(())
}

fn dig(host: &Namespace, server: &str, words: &str) -> Result<String> {
    host.exec(&format!("dig @{server} {words} +tries=2 +time=5 +norecurse"))
}

/// The lines of dig's answer section, and its whole output for messages.
fn answers(output: &str) -> Vec<&str> {
    output.lines().filter(|line| !line.starts_with(';') && !line.is_empty()).collect()
}

#[test]
fn a_switch_answers_dig() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["dig"]) else { return Ok(()) };
    let folder = folder("system-subs-dns")?;
    let ([client, server], middle) = hosts([1, 2])?;
    client.exec("ip address add 10.0.0.1/24 dev eth0")?;
    server.exec("ip address add 10.0.0.53/24 dev eth0")?;
    serve_names(&server, "10.0.0.53")?;
    let switch = Switch::start(middle, &folder, 2, &[example("dns.rules")], &["dns.p4"])?;

    for words in ["www.example.com", "www.example.com +noedns", "wWw.ExaMple.Com", "www.example.com +dnssec"] {
        let output = dig(&client, "10.0.0.53", words)?;
        ensure!(output.contains("status: NOERROR") && output.contains("flags: qr aa;"), "{words}: {output}");
        ensure!(!output.to_lowercase().contains("warning"), "{words}: {output}");
        let [answer] = answers(&output)[..] else { anyhow::bail!("{words}: {output}") };
        ensure!(answer.ends_with("\t10.0.0.105"), "{words}: {output}");
    }
    let output = dig(&client, "10.0.0.53", "imap.example.com")?;
    ensure!(answers(&output)[0].ends_with("\t10.0.0.106"), "{output}");
    let output = dig(&client, "10.0.0.53", "www.example.com AAAA")?;
    ensure!(output.contains("status: NOERROR") && answers(&output).is_empty(), "{output}");
    // Other names, and longer ones than the formats know, are the server's.
    let long = format!("{}.example.com", "a".repeat(60));
    for name in ["www.example.org", "ww.example.com", &long] {
        let output = dig(&client, "10.0.0.53", &format!("{name} +noedns"))?;
        ensure!(answers(&output)[0].ends_with(FROM_SERVER), "{output}");
    }
    let ended = switch.end()?;
    ensure!(ended.stderr.contains("answerDNS(10.0.0.105)"), "{}", ended.stderr);
    Ok(())
}

/// Gives two hosts the addresses of `ip.rules`, with the router as their way out.
fn address_by_ip_rules(client: &Namespace, server: &Namespace) -> Result<()> {
    for (host, net, own) in [(client, 1, 1), (server, 2, 1)] {
        host.exec(&format!("ip address add 10.0.{net}.{own}/24 dev eth0"))?;
        host.exec(&format!("ip address add fd00:{net}::{own}/64 dev eth0 nodad"))?;
        host.exec(&format!("ip route add default via 10.0.{net}.254"))?;
        host.exec(&format!("ip route add default via fd00:{net}::fe"))?;
    }
    Ok(())
}

/// Bits a second of a second of iperf3.
fn iperf3(client: &Namespace, server: &Namespace, address: &str, more: &str) -> Result<f64> {
    let listener = server.spawn(&["iperf3", "--server"])?;
    let deadline = Instant::now() + LIMIT;
    // It may not listen yet; what is wrong then stands in the report.
    loop {
        let report = client.exec(&format!("iperf3 --client {address} --time 2 --json {more}"))?;
        let report: serde_json::Value = serde_json::from_str(&report)?;
        if let Some(rate) = report["end"]["sum_received"]["bits_per_second"].as_f64() {
            listener.kill();
            return Ok(rate);
        }
        ensure!(Instant::now() < deadline, "{address} {more}: {}", report["error"]);
    }
}

#[test]
fn plain_ip_is_forwarded() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ping", "iperf3"]) else { return Ok(()) };
    let folder = folder("system-subs-ip")?;
    let ([client, server], middle) = hosts([1, 2])?;
    address_by_ip_rules(&client, &server)?;
    let switch = Switch::start(middle, &folder, 2, &[example("ip.rules")], &["ip.p4"])?;

    // Both hosts ask the router for its address by ARP and neighbour discovery, and ping it.
    for target in ["10.0.2.1", "fd00:2::1", "10.0.1.254", "fd00:1::fe"] {
        let output = client.exec(&format!("ping -c 3 -i 0.01 -W 5 {target}"))?;
        ensure!(output.contains(" 0% packet loss"), "{output}");
        let hops = if target.ends_with('e') || target.ends_with('4') { "ttl=64" } else { "ttl=63" };
        ensure!(output.contains(hops), "{output}");
    }
    // Large pings come in fragments.
    let output = client.exec("ping -c 2 -i 0.01 -W 5 -s 4000 10.0.2.1")?;
    ensure!(output.contains(" 0% packet loss"), "{output}");
    for (target, router) in [("10.0.2.1", "10.0.1.254"), ("fd00:2::1", "fd00:1::fe")] {
        let output = client.exec_within(LIMIT, &["sh", "-c", &format!("ping -c 1 -t 1 -W 5 {target} || true")])?;
        ensure!(output.contains(&format!("From {router}")) && output.contains("exceeded"), "{output}");
    }

    let through_switch = [
        iperf3(&client, &server, "10.0.2.1", "")?,
        iperf3(&client, &server, "10.0.2.1", "--reverse")?,
        iperf3(&client, &server, "fd00:2::1", "")?,
    ];
    let ended = switch.end()?;
    ensure!(ended.stderr.contains("answerARP") && ended.stderr.contains("route("), "{}", ended.stderr);

    // The same hosts' like, with a kernel between them.
    let ([client, server], middle) = hosts([1, 2])?;
    address_by_ip_rules(&client, &server)?;
    for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        middle.sysctl(key, "1")?;
    }
    for net in [1, 2] {
        middle.exec(&format!("ip address add 10.0.{net}.254/24 dev port{net}"))?;
        middle.exec(&format!("ip address add fd00:{net}::fe/64 dev port{net} nodad"))?;
        // By which it asks for its neighbours.
        middle.exec(&format!("ip address add fe80::fe/64 dev port{net} nodad"))?;
    }
    let through_kernel = [
        iperf3(&client, &server, "10.0.2.1", "")?,
        iperf3(&client, &server, "10.0.2.1", "--reverse")?,
        iperf3(&client, &server, "fd00:2::1", "")?,
    ];
    for ((what, switch), kernel) in ["IPv4", "IPv4, back", "IPv6"].iter().zip(through_switch).zip(through_kernel) {
        eprintln!(
            "{what}: {:.2} Gbit/s by rules, {:.2} by the kernel: {:.2}",
            switch / 1e9,
            kernel / 1e9,
            switch / kernel
        );
        ensure!(switch > 5e7, "{what}: {switch} bit/s");
    }
    Ok(())
}

/// A service that answers each datagram with its host's name and the datagram.
fn serve(host: &Namespace, address: &str, name: &'static str) -> Result<()> {
    let socket = host.enter(|| UdpSocket::bind((address, 7777)))??;
    std::thread::spawn(move || {
        let mut bytes = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let answer = [name.as_bytes(), &bytes[..length]].concat();
            let _ = socket.send_to(&answer, from);
        }
    });
    Ok(())
}

#[test]
fn a_service_moves_unnoticed() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = folder("system-subs-ila")?;
    let ([client, old, new], middle) = hosts([1, 0x0a, 0x0b])?;
    for (host, net, own) in [(&client, "1", "1"), (&old, "a", "77"), (&new, "b", "77")] {
        host.exec(&format!("ip address add fd00:{net}::{own}/64 dev eth0 nodad"))?;
        host.exec(&format!("ip route add default via fd00:{net}::fe"))?;
    }
    // A second service, which stays.
    old.exec("ip address add fd00:a::78/64 dev eth0 nodad")?;
    let stays = "ipv6.destination == fd00:5::78 : setLocator(fd00:a::), \
                 route(02:00:00:00:00:fe, 02:00:00:00:00:0a), fwd(2); \
                 ipv6.source == fd00:a::78 : setSourceLocator(fd00:5::), \
                 route(02:00:00:00:00:fe, 02:00:00:00:00:01), fwd(1);";
    let before = fs::read_to_string(example("ila.rules"))? + stays;
    let rules = folder.join("ila.rules");
    fs::write(&rules, &before)?;
    serve(&old, "fd00:a::77", "old ")?;
    serve(&new, "fd00:b::77", "new ")?;
    let listener = old.enter(|| TcpListener::bind("[fd00:a::78]:7778"))??;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut bytes = [0; 64];
        loop {
            match stream.read(&mut bytes)? {
                0 => return Ok(()),
                length => stream.write_all(&bytes[..length])?,
            }
        }
    });
    let switch = Switch::start(middle, &folder, 3, std::slice::from_ref(&rules), &["ila.p4"])?;

    // The client's kernel takes answers from fd00:5::77 only.
    let socket = client.enter(|| {
        let socket = UdpSocket::bind("[fd00:1::1]:0")?;
        socket.connect("[fd00:5::77]:7777")?;
        socket.set_read_timeout(Some(LIMIT))?;
        Ok::<_, std::io::Error>(socket)
    })??;
    let mut number = 0;
    let mut ask = || -> Result<String> {
        number += 1;
        socket.send(number.to_string().as_bytes())?;
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).with_context(|| format!("the answer to request {number}"))?;
        let answer = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let (host, echoed) = answer.split_once(' ').context("a host and a number")?;
        ensure!(echoed == number.to_string(), "request {number} is answered {answer}");
        Ok(host.to_owned())
    };
    let mut stream = client.connect("[fd00:5::78]:7778".parse()?, LIMIT)??;
    let mut talk = |text: &[u8; 5]| -> Result<()> {
        stream.write_all(text)?;
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes)?;
        ensure!(&bytes == text, "the connection that stays");
        Ok(())
    };
    for _ in 0..50 {
        ensure!(ask()? == "old");
    }
    talk(b"first")?;

    // A mistake changes nothing.
    let reload = || switch.namespace.exec(&format!("kill -HUP {}", switch.weft.pid()));
    fs::write(&rules, "ipv6.destination == ")?;
    reload()?;
    ensure!(ask()? == "old");
    let moved = before.replace(
        "setLocator(fd00:a::), route(02:00:00:00:00:fe, 02:00:00:00:00:0a), fwd(2);\n",
        "setLocator(fd00:b::), route(02:00:00:00:00:fe, 02:00:00:00:00:0b), fwd(3);\n",
    );
    ensure!(moved != before, "the example names the locator");
    fs::write(&rules, moved)?;
    reload()?;
    // No request is lost, and after the first from the new host all are.
    let deadline = Instant::now() + LIMIT;
    while ask()? == "old" {
        ensure!(Instant::now() < deadline, "the rules are not read again");
    }
    for _ in 0..50 {
        ensure!(ask()? == "new");
    }
    talk(b"later")?;
    drop(stream);
    echo.join().expect("no panic")?;
    let ended = switch.end()?;
    ensure!(ended.stderr.contains("the rules stay as they are"), "{}", ended.stderr);
    ensure!(ended.stderr.contains("the rules are read again"), "{}", ended.stderr);
    Ok(())
}

/// Ethernet, IPv4 and UDP headers, which the sender's kernel makes.
const BELOW: usize = 42;

#[test]
fn a_market_names_and_plain_ip_share_a_switch() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["dig", "ping", "iperf3"]) else { return Ok(()) };
    let folder = folder("system-subs-three")?;
    let ([client, server, trader], middle) = hosts([1, 2, 3])?;
    address_by_ip_rules(&client, &server)?;
    client.exec("ip route add 239.0.0.0/8 dev eth0")?;
    trader.exec("ip address add 10.0.3.1/24 dev eth0")?;
    serve_names(&server, "10.0.2.1")?;
    let (names, market) = (folder.join("names.rules"), folder.join("market.rules"));
    fs::write(&names, "dns.name == \"www.example.com\" : answerDNS(10.0.0.105);")?;
    fs::write(&market, "add_order.side == B : fwd(3);")?;
    // Answers of names come in front of forwarding: an action that is done ends the way.
    let rules = [names, market, example("ip.rules")];
    let switch = Switch::start(middle, &folder, 3, &rules, &["itch.p4", "dns.p4", "ip.p4"])?;

    let subscriber = trader.enter(|| {
        let socket = UdpSocket::bind("0.0.0.0:26400")?;
        socket.join_multicast_v4(&Ipv4Addr::new(239, 0, 0, 1), &Ipv4Addr::new(10, 0, 3, 1))?;
        socket.set_read_timeout(Some(LIMIT))?;
        Ok::<_, std::io::Error>(socket)
    })??;
    let exchange = client.enter(|| UdpSocket::bind("10.0.1.1:26400"))??;
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let feed = std::thread::spawn(move || -> std::io::Result<u64> {
        let (mut numbers, mut sent) = (Numbers::new(11), 0);
        while matches!(stopped.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
            let frame = weftwire_workload::itch_packet(25, 1 + 25 * sent, &mut numbers);
            exchange.send_to(&frame[BELOW..], "239.0.0.1:26400")?;
            sent += 1;
            // A feed's pace, and not a flood that leaves the others no room.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(sent)
    });
    let taken = std::thread::spawn(move || -> Result<(u64, u64)> {
        let (mut packets, mut messages) = (0, 0);
        let mut bytes = [0; 2048];
        while packets < 200 {
            let length = subscriber.recv(&mut bytes).context("market data")?;
            let (header, mut rest) = bytes[..length].split_at(20);
            let count = u64::from(u16::from_be_bytes([header[18], header[19]]));
            for _ in 0..count {
                let (message, behind) = rest[2..].split_at(usize::from(u16::from_be_bytes([rest[0], rest[1]])));
                ensure!((message[0], message[19]) == (b'A', b'B'), "a message that nobody asked for");
                rest = behind;
            }
            ensure!(rest.is_empty(), "the batch's count is right");
            (packets, messages) = (packets + 1, messages + count);
        }
        Ok((packets, messages))
    });

    let output = dig(&client, "10.0.2.1", "www.example.com")?;
    ensure!(answers(&output)[0].ends_with("\t10.0.0.105"), "{output}");
    let output = dig(&client, "10.0.2.1", "www.example.org")?;
    ensure!(answers(&output)[0].ends_with(FROM_SERVER), "{output}");
    let output = client.exec("ping -c 3 -i 0.01 -W 5 fd00:2::1")?;
    ensure!(output.contains(" 0% packet loss"), "{output}");
    let rate = iperf3(&client, &server, "10.0.2.1", "")?;
    ensure!(rate > 1e7, "{rate} bit/s");
    let (packets, messages) = taken.join().expect("no panic")?;
    ensure!(messages > packets, "{messages} messages in {packets} packets");
    drop(stop);
    let sent = feed.join().expect("no panic")?;
    ensure!(sent >= packets);
    switch.end()?;
    Ok(())
}
