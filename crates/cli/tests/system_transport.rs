//! The TCP of `examples/transports/tcp` as a library: connections with the kernel's that read and write as those of `std::net` do.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests open sockets and files")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use weftwire_catalog::{Catalog, CatalogError};
use weftwire_core::{Endpoints, Function, Listen, MacAddress, Ports};
use weftwire_linux::Transport;
use weftwire_testbed::{Namespace, exchange, reset, sha256_of_file, skip_unless_root};

const TCP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
const LIMIT: Duration = Duration::from_secs(60);

fn start(ports: &Ports) -> Result<Box<dyn Function>, CatalogError> {
    let catalog = Catalog { includes: Vec::new(), timers: None, report: &|_, _| {} };
    catalog.machine(Path::new(TCP), &[])?.start("reference", ports, 1, None)
}

/// From any port of the machine to one of the kernel.
fn to(port: u16) -> Endpoints {
    Endpoints {
        protocol: 6,
        local_address: [10, 81, 0, 1].into(),
        local_port: 0,
        remote_address: [10, 81, 0, 2].into(),
        remote_port: port,
        local_mac: MacAddress::UNSPECIFIED,
        remote_mac: MacAddress::UNSPECIFIED,
        vlan: None,
    }
}

fn host() -> Result<Namespace> {
    let host = Namespace::new()?;
    host.exec("ip tuntap add dev weft0 mode tun")?;
    host.exec("ip address add 10.81.0.2/24 dev weft0")?;
    host.exec("ip link set weft0 up")?;
    Ok(host)
}

fn open(host: &Namespace) -> Result<Transport> {
    Ok(host.enter(|| Transport::open(&["1=tun:weft0".parse()?], start))??)
}

#[test]
fn a_program_connects_and_listens() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    let server = host.enter(|| TcpListener::bind("10.81.0.2:80"))??;
    let transport = open(&host)?;
    let listener = transport.listen(Listen { address: None, port: Some(7) })?;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();

    // Several at once, each read on one thread and written on another.
    let pairs = (0..4).map(|_| Ok((transport.connect(&to(80))?, server.accept()?.0))).collect::<Result<Vec<_>>>()?;
    let talks = pairs.into_iter().map(|(mut stream, kernel)| {
        let (mut writer, sent, echoed) = (stream.try_clone()?, bytes.clone(), bytes.clone());
        let kernel = std::thread::spawn(move || exchange(kernel, &echoed));
        let writing = std::thread::spawn(move || writer.write_all(&sent).and_then(|()| writer.finish_sending()));
        let reading = std::thread::spawn(move || {
            let mut read = Vec::new();
            stream.read_to_end(&mut read).map(|_| read)
        });
        Ok((kernel, writing, reading))
    });
    let mut digests = Vec::new();
    for (kernel, writing, reading) in talks.collect::<Result<Vec<_>>>()? {
        writing.join().expect("it does not panic")?;
        ensure!(reading.join().expect("it does not panic")? == bytes, "other bytes came");
        digests.push(kernel.join().expect("it does not panic")?);
    }
    let sent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transport-bytes");
    std::fs::write(&sent, &bytes)?;
    ensure!(digests == vec![sha256_of_file(&sent)?; 4], "the kernel read other bytes");

    let kernel = host.connect("10.81.0.1:7".parse()?, LIMIT)??;
    let mut stream = listener.accept()?;
    ensure!(stream.endpoints().local_port == 7 && stream.endpoints().remote_port == kernel.local_addr()?.port());
    let talking = std::thread::spawn(move || exchange(kernel, b"question"));
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    stream.write_all(b"answer")?;
    drop(stream);
    talking.join().expect("it does not panic")?;
    ensure!(text == "question");
    transport.close()?;
    Ok(())
}

#[test]
fn a_program_learns_how_connections_end() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    let server = host.enter(|| TcpListener::bind("10.81.0.2:80"))??;
    let transport = open(&host)?;
    let kind = |result: std::io::Result<usize>| result.map_err(|error| error.kind());
    let refused = transport.connect(&to(81)).map(drop).map_err(|error| error.kind());
    ensure!(refused == Err(ErrorKind::ConnectionRefused), "{refused:?}");
    let nobody = Endpoints { remote_address: [10, 81, 0, 3].into(), ..to(80) };
    let late = transport.connect_within(&nobody, Duration::from_millis(200)).map(drop).map_err(|error| error.kind());
    ensure!(late == Err(ErrorKind::TimedOut), "{late:?}");

    // What came before a reset can be read.
    let pair = || -> Result<_> { Ok((transport.connect(&to(80))?, server.accept()?.0)) };
    let (mut stream, mut kernel) = pair()?;
    kernel.write_all(b"x")?;
    stream.read_exact(&mut [0])?;
    reset(kernel)?;
    let end = kind(stream.read(&mut [0]));
    ensure!(end == Err(ErrorKind::ConnectionReset), "{end:?}");
    let end = kind(stream.write(b"x"));
    ensure!(end == Err(ErrorKind::ConnectionReset), "{end:?}");

    // Whoever closes with bytes unread, or drops the transport, breaks the connection off.
    let ensure_reset = |mut kernel: TcpStream| -> Result<()> {
        kernel.set_read_timeout(Some(LIMIT))?;
        let end = kind(kernel.read(&mut [0]));
        ensure!(end == Err(ErrorKind::ConnectionReset), "{end:?}");
        Ok(())
    };
    let (mut stream, mut kernel) = pair()?;
    kernel.write_all(b"two")?;
    stream.read_exact(&mut [0])?;
    drop(stream);
    ensure_reset(kernel)?;
    let (mut stream, kernel) = pair()?;
    drop(transport);
    ensure_reset(kernel)?;
    let end = kind(stream.read(&mut [0]));
    ensure!(end == Err(ErrorKind::ConnectionAborted), "{end:?}");
    Ok(())
}

#[test]
fn what_cannot_be_opened_is_told() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let host = host()?;
    let error = host.enter(|| Transport::open(&["1=none-such".parse()?], start).map(drop))?.unwrap_err();
    ensure!(error.to_string().contains("there is no interface `none-such`"), "{error}");
    let failing = |_: &Ports| Err::<Box<dyn Function>, _>(std::io::Error::other("no machine"));
    let error = host.enter(|| Transport::open(&["1=tun:weft0".parse()?], failing).map(drop))?.unwrap_err();
    ensure!(error.to_string() == "cannot start the function", "{error}");
    Ok(())
}
