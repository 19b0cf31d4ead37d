//! The SYN proxy between real kernels: nginx on one side, clients and a flood on the other.
//!
//! Every test also runs with plain routing, which proves that the test bed itself is sound (and that the flood is seen where
//! nobody stops it), and with the kernel's own SYN proxy, which is the peer. The tests push gigabytes and run in
//! the release profile: `make system`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests read the clock")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use weftwire_testbed::{
    Flood, Lab, Middle, Nginx, Offloads, Payload, SERVER, Turn, download, peak_resident_bytes, skip_unless_root,
    wait_for,
};

/// Nothing here takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn weft(ports: &'static str) -> Middle {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/syn-proxy.xl");
    Middle::Weft { binary: env!("CARGO_BIN_EXE_weft").into(), image, ports }
}

/// Makes each function, which takes a [`Middle`], a test with each kind of it.
macro_rules! test_with {
    ($name:ident, $middle:expr, $($test:ident),+ $(,)?) => {
        mod $name {
            $(
                #[test]
                #[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
                fn $test() -> anyhow::Result<()> {
                    super::$test(&$middle)
                }
            )+
        }
    };
}

test_with!(
    plain_routing,
    weftwire_testbed::Middle::PlainRouting,
    a_thousand_connections,
    a_gigabyte_with_offloads,
    a_gigabyte_without_offloads,
    a_flood_of_a_million,
    a_closed_port,
    a_server_restart,
    a_server_without_options,
    random_loss,
);

// The kernel's proxy promises its clients options that it was told of beforehand, so it is not for a server without them.
// Its connection tracking drops the reset of a server that has forgotten the connection, and about one connection in
// some thousands stalls in it, so these tests are not asked of it either.
test_with!(
    kernel_synproxy,
    weftwire_testbed::Middle::KernelSynproxy,
    a_gigabyte_with_offloads,
    a_gigabyte_without_offloads,
    a_flood_of_a_million,
    a_closed_port,
    random_loss,
);

test_with!(
    weft_syn_proxy,
    super::weft("socket"),
    a_thousand_connections,
    a_gigabyte_with_offloads,
    a_gigabyte_without_offloads,
    a_flood_of_a_million,
    a_closed_port,
    a_server_restart,
    a_server_without_options,
    random_loss,
);

// What differs between the kinds of ports; the rest is the proxy's.
test_with!(
    weft_syn_proxy_by_xdp,
    super::weft("xdp"),
    a_gigabyte_with_offloads,
    a_gigabyte_without_offloads,
    a_server_restart
);

/// A lab with nginx in it that serves one payload.
struct Site {
    nginx: Nginx,
    lab: Lab,
    payload: Payload,
    url: String,
    _turn: Turn,
}

impl Site {
    /// `None` if the test has to be skipped.
    fn build(middle: &Middle, offloads: Offloads, bytes: u64) -> Result<Option<Site>> {
        let Some(turn) = skip_unless_root(&["nginx", "nft", "iptables", "ethtool"]) else { return Ok(None) };
        let name = format!("payload-{bytes}");
        let payload = Payload::create(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name), bytes, bytes)?;
        let mut lab = Lab::new(middle, offloads)?;
        let nginx = Nginx::start(&lab.server, &[&payload])?;
        lab.wait_until_reachable()?;
        Ok(Some(Site { nginx, lab, payload, url: format!("/{name}"), _turn: turn }))
    }

    fn expect_intact_download(&self) -> Result<()> {
        self.expect_intact_download_within(LIMIT)
    }

    fn expect_intact_download_within(&self, limit: Duration) -> Result<()> {
        let got = download(&self.lab.client, self.lab.web(), &self.url, limit)?;
        ensure!(got.bytes == self.payload.bytes, "{} of {} bytes arrived", got.bytes, self.payload.bytes);
        ensure!(got.sha256 == self.payload.sha256, "the bytes that arrived are not those that were sent");
        Ok(())
    }

    /// Serves clients, one after the other, for as long as the flood lasts. None may fail, unless in the kernel's proxy.
    fn serve_during(&self, flood: Flood, middle: &Middle) -> Result<()> {
        let (report, served) = std::thread::scope(|scope| -> Result<_> {
            let flooder = scope.spawn(|| self.lab.client.enter(|| flood.run()));
            let mut served = 0;
            while !flooder.is_finished() {
                match self.expect_intact_download_within(Duration::from_secs(10)) {
                    Ok(()) => served += 1,
                    Err(_) if *middle == Middle::KernelSynproxy => {}
                    Err(error) => return Err(error.context(format!("after {served} clients served during the flood"))),
                }
            }
            let report = flooder.join().map_err(|_| anyhow::anyhow!("the flooder panicked"))???;
            Ok((report, served))
        })?;
        ensure!(report.sent == flood.count && served > 0, "{report:?}, {served} clients served meanwhile");
        Ok(())
    }
}

fn a_thousand_connections(middle: &Middle) -> Result<()> {
    let Some(site) = Site::build(middle, Offloads::On, 1000)? else { return Ok(()) };
    for number in 1..=1000 {
        site.expect_intact_download().map_err(|error| error.context(format!("connection {number}")))?;
    }
    Ok(())
}

fn a_gigabyte_with_offloads(middle: &Middle) -> Result<()> {
    let Some(site) = Site::build(middle, Offloads::On, 1_000_000_000)? else { return Ok(()) };
    site.expect_intact_download()
}

fn a_gigabyte_without_offloads(middle: &Middle) -> Result<()> {
    let Some(site) = Site::build(middle, Offloads::Off, 1_000_000_000)? else { return Ok(()) };
    site.expect_intact_download()
}

fn a_flood_of_a_million(middle: &Middle) -> Result<()> {
    const PACKETS: u64 = 1_000_000;
    /// After so many every table is full, and nothing may grow any more.
    const FIRST_PACKETS: u64 = 300_000;
    const RATE: u64 = 50_000;
    /// 4 KiB for each of the 65,536 flows that the proxy keeps.
    const MOST_MEMORY: u64 = 65_536 * 4096;
    const MOST_GROWTH: u64 = 32 << 20;
    let Some(mut site) = Site::build(middle, Offloads::On, 1000)? else { return Ok(()) };

    site.serve_during(Flood { rate: Some(RATE), ..site.lab.flood(FIRST_PACKETS) }, middle)?;
    let full = site.lab.weft_pid().map(peak_resident_bytes).transpose()?;
    site.serve_during(Flood { rate: Some(RATE), seed: 2, ..site.lab.flood(PACKETS - FIRST_PACKETS) }, middle)?;

    let arrived = site.lab.spoofed_arrivals()?;
    match middle {
        Middle::PlainRouting => ensure!(arrived > PACKETS / 2, "only {arrived} of the flood's packets were seen"),
        Middle::KernelSynproxy | Middle::Weft { .. } => {
            ensure!(arrived == 0, "{arrived} of the flood's packets reached the server");
        }
    }
    if let (Some(full), Some(pid)) = (full, site.lab.weft_pid()) {
        let most = peak_resident_bytes(pid)?;
        ensure!(most < MOST_MEMORY, "the flood made weft hold {most} bytes");
        ensure!(most - full < MOST_GROWTH, "weft grew from {full} to {most} bytes when its table was full already");
    }
    site.expect_intact_download()
}

/// A SYN proxy answers before it knows the server, so the client may be connected first and reset then.
fn a_closed_port(middle: &Middle) -> Result<()> {
    let Some(site) = Site::build(middle, Offloads::On, 1000)? else { return Ok(()) };
    let closed = SocketAddr::from((SERVER, 81));
    let refusal = match site.lab.client.connect(closed, LIMIT)? {
        Err(error) => error,
        Ok(mut stream) => match stream.read(&mut [0; 1]) {
            Err(error) => error,
            Ok(count) => anyhow::bail!("read {count} bytes from a closed port"),
        },
    };
    ensure!(
        matches!(refusal.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset),
        "a closed port should refuse or reset, not: {refusal}"
    );
    Ok(())
}

fn a_server_restart(middle: &Middle) -> Result<()> {
    let Some(mut site) = Site::build(middle, Offloads::On, 1000)? else { return Ok(()) };
    let request = format!("GET {} HTTP/1.1\r\nHost: server\r\n\r\n", site.url);
    let mut stream = site.lab.client.connect(site.lab.web(), Duration::from_secs(20))??;
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; 4096];
    ensure!(stream.read(&mut answer)? > 0, "the first request got no answer");

    // The server is gone without a goodbye on the wire: what it would say is dropped.
    site.lab.server.nft(
        "table inet weft_mute {
            chain departures {
                type filter hook output priority 0
                tcp flags & (fin | rst) != 0 drop
            }
        }",
    )?;
    site.nginx = site.nginx.restart(&site.lab.server)?;
    site.lab.server.nft("delete table inet weft_mute")?;

    wait_for("the old connection to end", Duration::from_secs(20), || has_ended(&mut stream, request.as_bytes()))?;
    site.expect_intact_download()
}

/// Sends another request and sees whether the server still keeps the connection.
fn has_ended(stream: &mut TcpStream, request: &[u8]) -> bool {
    if stream.write_all(request).is_err() {
        return true;
    }
    match stream.read(&mut [0; 4096]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn a_server_without_options(middle: &Middle) -> Result<()> {
    let Some(site) = Site::build(middle, Offloads::On, 10_000_000)? else { return Ok(()) };
    for option in ["tcp_timestamps", "tcp_window_scaling", "tcp_sack"] {
        site.lab.server.sysctl(&format!("net.ipv4.{option}"), "0")?;
    }
    site.expect_intact_download()
}

fn random_loss(middle: &Middle) -> Result<()> {
    let Some(site) = Site::build(middle, Offloads::On, 100_000_000)? else { return Ok(()) };
    site.lab.lose(1)?;
    site.expect_intact_download()
}
