//! Networks from namespaces: made, used, measured and removed, also after a crash.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use weftwire_lab::state::{Phase, folder, read};
use weftwire_linux::namespace::NetworkNamespace;
use weftwire_network::results::{FlowResult, Results};
use weftwire_testbed::{Output, Running, skip_unless_root, wait_for};

const LIMIT: Duration = Duration::from_secs(30);
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// `a` and `b` with a router between; 10 Mbit/s and 10 ms on one side.
const ROUTED: &str = r#"
duration = "20s"
[nodes.a]
[nodes.b]
[nodes.r]
kind = "router"
[[links]]
name = "slow"
between = ["a", "r"]
rate = "10Mbit/s"
delay = "10ms"
[[links]]
between = ["r", "b"]
"#;

/// A network of one test, named by it and by this process; taken down in the end, whatever happens.
struct Site {
    name: String,
    file: PathBuf,
    out: PathBuf,
    interfaces: BTreeSet<String>,
}

impl Site {
    fn new(test: &str, text: &str) -> Result<Site> {
        let name = format!("{test}-{}", std::process::id());
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("network-{test}"));
        // It may be there from the last run.
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out)?;
        let file = out.join("test.toml");
        fs::write(&file, text.replace("EXAMPLES", EXAMPLES))?;
        Ok(Site { name, file, out, interfaces: interfaces()? })
    }

    fn up(test: &str, text: &str) -> Result<Site> {
        let site = Site::new(test, text)?;
        site.succeed(&["up", site.path(), "--name", &site.name])?;
        Ok(site)
    }

    fn path(&self) -> &str {
        self.file.to_str().expect("the build's folder has a plain name")
    }

    fn succeed(&self, words: &[&str]) -> Result<String> {
        let output = weft(words)?;
        ensure!(output.status.success(), "weft {words:?}: {}{}", output.stdout, output.stderr);
        Ok(output.stdout)
    }

    /// Runs the file and gives its results.
    fn run(&self) -> Result<Results> {
        let out = self.out.to_str().context("the build's folder has a plain name")?;
        self.succeed(&["up", self.path(), "--name", &self.name, "--run", "--out", out])?;
        self.expect_nothing_left()?;
        Ok(serde_json::from_slice(&fs::read(self.out.join("results.json"))?)?)
    }

    fn namespace(&self, node: &str) -> Result<NetworkNamespace> {
        Ok(NetworkNamespace::open(&format!("weft.{}.{node}", self.name))?)
    }

    fn address(&self, node: &str, ipv6: bool) -> Result<SocketAddr> {
        let state = read(&self.name).context("the network has a state")?;
        let node = state.nodes.iter().find(|there| there.name == node).context("the node is there")?;
        let address: Option<IpAddr> = if ipv6 { node.ipv6.map(Into::into) } else { node.ipv4.map(Into::into) };
        Ok((address.context("the node has an address")?, 5001).into())
    }

    /// The time of a handshake and the seconds until all bytes are there, from `from` to `to`.
    fn transfer(&self, from: &str, to: &str, ipv6: bool, bytes: usize) -> Result<(Duration, f64)> {
        let address = self.address(to, ipv6)?;
        let listener = self.namespace(to)?.run(|| TcpListener::bind(address))??;
        let receiver = std::thread::spawn(move || -> Result<usize> {
            let mut received = Vec::new();
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.read_to_end(&mut received)?;
            Ok(received.len())
        });
        let before = Instant::now();
        let mut stream = self.namespace(from)?.run(|| TcpStream::connect_timeout(&address, LIMIT))??;
        let handshake = before.elapsed();
        stream.set_write_timeout(Some(LIMIT))?;
        stream.write_all(&vec![7; bytes])?;
        drop(stream);
        let received = receiver.join().expect("the receiver reports what failed")?;
        ensure!(received == bytes, "{received} of {bytes} bytes arrived");
        Ok((handshake, (before.elapsed() - handshake).as_secs_f64()))
    }

    fn down(&self) -> Result<()> {
        self.succeed(&["down", &self.name])?;
        self.expect_nothing_left()
    }

    fn expect_nothing_left(&self) -> Result<()> {
        let left: Vec<String> = namespaces().into_iter().filter(|there| there.contains(&self.name)).collect();
        ensure!(left.is_empty(), "namespaces are left: {left:?}");
        ensure!(!folder(&self.name).exists(), "the folder is left");
        let new: Vec<String> = interfaces()?.difference(&self.interfaces).cloned().collect();
        ensure!(new.is_empty(), "interfaces are left: {new:?}");
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A test that failed says why itself.
        let _ = weft(&["down", &self.name]);
    }
}

fn weft(words: &[&str]) -> Result<Output> {
    start(words)?.wait(LIMIT)
}

fn start(words: &[&str]) -> Result<Running> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(words);
    Running::start(command)
}

fn listed(folder: &str) -> std::io::Result<BTreeSet<String>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn interfaces() -> Result<BTreeSet<String>> {
    Ok(listed("/sys/class/net")?)
}

fn namespaces() -> BTreeSet<String> {
    listed("/run/netns").unwrap_or_default()
}

fn kill(pid: i32) -> Result<()> {
    weftwire_testbed::run(
        {
            let mut command = Command::new("kill");
            command.args(["-KILL", &pid.to_string()]);
            command
        },
        LIMIT,
    )
    .map(drop)
}

/// Errors of every kind say what would be right.
fn expect_refusal(words: &[&str], expected: &str) -> Result<()> {
    let output = weft(words)?;
    ensure!(!output.status.success(), "weft {words:?} succeeded");
    ensure!(output.stderr.contains(expected), "weft {words:?} says: {}", output.stderr);
    Ok(())
}

#[test]
fn a_network_is_made_used_and_removed() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::up("use", ROUTED)?;
    let name = &*site.name;
    let addresses = site.succeed(&["exec", "--network", name, "a", "--", "ip", "-brief", "address"])?;
    ensure!(addresses.contains(&site.address("a", false)?.ip().to_string()), "{addresses}");
    let failed = weft(&["exec", "--network", name, "b", "--", "sh", "-c", "exit 7"])?;
    ensure!(failed.status.code() == Some(7), "{:?}", failed.status);

    // A machine with other work is late now and then: one try of many has to be right, and none may be early.
    for ipv6 in [false, true] {
        let mut handshakes = Vec::new();
        while handshakes.len() < 30 && handshakes.last().is_none_or(|last| *last >= 22_000) {
            handshakes.push(site.transfer("a", "b", ipv6, 1000)?.0.as_micros());
        }
        let least = handshakes.iter().min().copied().unwrap_or_default();
        ensure!((20_000..22_000).contains(&least), "handshakes over 2 x 10 ms took {handshakes:?} us");
    }
    let bytes = 2_500_000;
    // Of 1,514 bytes on the link 1,448 are the application's.
    let goodput = || anyhow::Ok(bytes as f64 * 8.0 / site.transfer("a", "b", false, bytes)?.1 / 1448.0 * 1514.0);
    let mut goodputs = Vec::new();
    while goodputs.len() < 20 && goodputs.last().is_none_or(|last| *last < 9.5e6) {
        goodputs.push(goodput()?);
    }
    let best = goodputs.iter().copied().fold(0.0, f64::max);
    ensure!((9.5e6..10.1e6).contains(&best), "{goodputs:?} bit/s of frames over 10 Mbit/s");

    let text = site.succeed(&["status", name])?;
    ensure!(text.contains(": up") && text.contains("a:1 > r:1") && text.contains("10000000 bit/s"), "{text}");
    // The status is written now and then.
    let delivered = || -> Result<Option<u64>> {
        let json: serde_json::Value = serde_json::from_str(&site.succeed(&["status", name, "--json"])?)?;
        Ok(json[0]["status"]["relay"]["directions"][0]["counts"]["delivered_packets"].as_u64())
    };
    wait_for("the status to count the packets", LIMIT, || delivered().is_ok_and(|packets| packets > Some(1_700)))?;

    // A process in a node goes with it.
    let mut sleeper = start(&["exec", "--network", name, "a", "--", "sleep", "600"])?;
    expect_refusal(&["up", site.path(), "--name", name], "is up already")?;
    expect_refusal(&["exec", "--network", name, "nobody", "--", "true"], "there are: a, b, r")?;
    site.down()?;
    wait_for("the process in the node to end", LIMIT, || !sleeper.is_running())?;
    expect_refusal(&["exec", "--network", name, "a", "--", "true"], "no network")?;
    expect_refusal(&["down", name], "no network")
}

#[test]
fn a_killed_supervisor_leaves_nothing_that_down_does_not_find() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::up("killed", ROUTED)?;
    let supervisor = read(&site.name).context("the network has a state")?.supervisor;
    kill(supervisor.pid)?;
    wait_for("the supervisor to be gone", LIMIT, || !supervisor.is_alive())?;
    let text = site.succeed(&["status", &site.name])?;
    ensure!(text.contains("left over: weft down"), "{text}");
    expect_refusal(&["up", site.path(), "--name", &site.name], "left the network")?;
    site.down()?;
    site.succeed(&["up", site.path(), "--name", &site.name])?;
    // By its file this time.
    site.succeed(&["down", site.path()])?;
    site.expect_nothing_left()
}

#[test]
fn an_up_that_is_killed_half_way_leaves_nothing_that_down_does_not_find() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::new("half", "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 8\n")?;
    let phase = || read(&site.name).map(|state| state.phase);
    let mut half = 0;
    for milliseconds in (0..400).step_by(20) {
        let holder = start(&["hold", site.path(), "--name", &site.name])?;
        wait_for("the network to be begun", LIMIT, || phase().is_some())?;
        // Not a wait for anything: each round strikes at another moment, the first one at once.
        std::thread::sleep(Duration::from_millis(milliseconds));
        holder.kill();
        half += u32::from(phase() == Some(Phase::Building));
        if folder(&site.name).exists() {
            site.down()?;
        }
        site.expect_nothing_left()?;
    }
    ensure!(half > 0, "no round struck half-way");
    Ok(())
}

#[test]
fn a_failure_half_way_leaves_nothing() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let site = Site::new("foreign", ROUTED)?;
    let foreign = format!("weft.{}.b", site.name);
    let ip = |word: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", word, &foreign]);
        weftwire_testbed::run(command, LIMIT)
    };
    ip("add")?;
    let refused =
        expect_refusal(&["up", site.path(), "--name", &site.name], "that no network of this program has made");
    let kept = namespaces().contains(&foreign);
    ip("delete")?;
    refused?;
    ensure!(kept, "a foreign namespace was removed");
    site.expect_nothing_left()?;

    let missing = ROUTED.replace("kind = \"router\"", "kind = \"function\"\nimage = \"nowhere.xl\"");
    let site = Site::new("missing", &missing)?;
    expect_refusal(&["up", site.path(), "--name", &site.name], "nowhere.xl")?;
    site.expect_nothing_left()
}

#[test]
fn two_networks_have_the_same_addresses_and_do_not_meet() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let first = Site::up("first", ROUTED)?;
    let second = Site::up("second", ROUTED)?;
    ensure!(first.address("b", false)? == second.address("b", false)?, "the addresses differ");
    for site in [&first, &second] {
        site.transfer("a", "b", false, 50_000)?;
    }
    first.succeed(&["down", &first.name])?;
    second.transfer("b", "a", true, 50_000)?;
    second.down()?;
    first.expect_nothing_left()
}

#[test]
fn the_syn_proxy_stands_between_two_kernels() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let text = "duration = \"1s\"\n[nodes.client]\n[nodes.server]\n[nodes.proxy]\nkind = \"function\"\nimage = \"EXAMPLES/syn-proxy.xl\"\n\
                [[links]]\nbetween = [\"client\", \"proxy:1\"]\ndelay = \"2ms\"\n\
                [[links]]\nbetween = [\"proxy:2\", \"server\"]\n";
    let site = Site::up("proxy", text)?;
    for ipv6 in [false, true] {
        site.transfer("client", "server", ipv6, 200_000)?;
    }
    site.down()
}

/// The only flow of a traffic.
fn flow<'a>(results: &'a Results, traffic: &str) -> Result<&'a FlowResult> {
    results.flows.iter().find(|flow| flow.traffic == traffic).with_context(|| format!("no flow of {traffic}"))
}

#[test]
fn a_run_measures_what_the_links_do() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let text = r#"
duration = "20s"
record = ["b"]
[nodes.a]
commands = [{ run = ["sh", "-c", "echo hello; exit 3"], at = "100ms" }]
[nodes.b]
[nodes.s]
kind = "switch"
[nodes.echo]
kind = "echo"
[nodes.sink]
kind = "sink"
[[links]]
name = "slow"
between = ["a", "s"]
rate = "10Mbit/s"
delay = "10ms"
[[links]]
between = ["s", "b"]
[[links]]
between = ["s", "echo"]
loss = "20%"
[[links]]
between = ["s", "sink"]
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "2.5MB"
start = "1s"
congestion_control = "reno"
[[traffic]]
name = "pages"
kind = "request-response"
from = "b"
to = "a"
request = "100B"
response = "1000B"
count = 5
stop = "900ms"
[[traffic]]
name = "there-and-back"
kind = "datagrams"
from = "a"
to = "echo"
size = "100B"
gap = "1ms"
count = 800
family = 6
[[traffic]]
name = "swallowed"
kind = "datagrams"
from = "b"
to = "sink"
size = "100B"
gap = "5ms"
count = 100
"#;
    let site = Site::new("measure", text)?;
    let results = site.run()?;
    let file = flow(&results, "file")?;
    ensure!(file.outcome == "complete" && file.delivered == 2_500_000, "{file:?}");
    let goodput = file.goodput(0) / 1448.0 * 1514.0;
    ensure!((9.5e6..10.1e6).contains(&goodput), "{goodput} bit/s of frames over 10 Mbit/s");
    let pages = flow(&results, "pages")?;
    ensure!(pages.outcome == "complete" && pages.delivered == 5 * 1100 && pages.rtt_samples == 5, "{pages:?}");
    ensure!(pages.rtt_min.is_some_and(|rtt| (20_000_000..60_000_000).contains(&rtt)), "{pages:?}");
    let echoed = flow(&results, "there-and-back")?;
    ensure!(echoed.packets == Some(800), "{echoed:?}");
    ensure!(echoed.lost.is_some_and(|lost| (100..220).contains(&lost)), "20 % of 800: {echoed:?}");
    ensure!(echoed.rtt_min.is_some_and(|rtt| (20_000_000..60_000_000).contains(&rtt)), "{echoed:?}");
    let swallowed = flow(&results, "swallowed")?;
    ensure!(swallowed.lost == Some(0) && swallowed.delivered == 10_000, "{swallowed:?}");
    ensure!(swallowed.completion_time().is_some_and(|time| time > 400_000_000), "{swallowed:?}");
    let controls = [file, pages, echoed].map(|flow| flow.congestion_control.as_deref());
    let own = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    ensure!(controls == [Some("reno"), Some(own.trim()), None], "{controls:?}");

    ensure!(results.run.warnings.iter().any(|warning| warning.contains("command 1 of node `a` failed")), "no warning");
    ensure!(fs::read_to_string(site.out.join("a.1.log"))? == "hello\n", "the command's output");
    ensure!(fs::metadata(site.out.join("b.pcapng"))?.len() > 2_500_000, "the capture is short");
    ensure!(results.run.lateness.is_some_and(|lateness| lateness.packets > 4_000), "{:?}", results.run.lateness);
    // 900 datagrams, two openings; who asks again at once is never late, but counts.
    let sources = results.run.source_lateness.context("the sources' lateness")?;
    ensure!(sources.packets == 906 && sources.worst > 0 && sources.allowed == 500_000, "{sources:?}");
    ensure!(!results.samples.is_empty() && results.run.platform == "linux", "{:?}", results.run);
    Ok(())
}

/// The kernels of hosts and the threads of sinks drop what corruption has damaged; both are counted as in the simulator.
#[test]
fn drops_by_a_wrong_checksum_are_counted_as_in_the_simulator() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let text = r#"
duration = "5s"
[nodes.a]
[nodes.b]
[nodes.sink]
kind = "sink"
[[links]]
between = ["a", "b"]
corrupt = "20%"
[[links]]
between = ["a", "sink"]
corrupt = "20%"
[[traffic]]
name = "to-kernel"
kind = "datagrams"
from = "a"
to = "b"
size = "1000B"
gap = "1ms"
count = 500
[[traffic]]
name = "to-sink"
kind = "datagrams"
from = "a"
to = "sink"
size = "1000B"
gap = "1ms"
count = 500
"#;
    let site = Site::new("checksums", text)?;
    let real = site.run()?;
    let out = site.out.join("simulated");
    site.succeed(&["sim", site.path(), "--out", out.to_str().context("a plain name")?])?;
    let simulated: Results = serde_json::from_slice(&fs::read(out.join("results.json"))?)?;
    let drops = |results: &Results, node: &str| {
        let all = results.node_drops.iter().filter(|(name, reason, _)| name == node && reason == "bad_checksum");
        all.map(|(_, _, count)| *count).sum::<u64>()
    };
    for node in ["b", "sink"] {
        let (there, here) = (drops(&simulated, node), drops(&real, node));
        // The same packets are damaged; nearly all bits of one are under a checksum.
        ensure!(there > 50 && here.abs_diff(there) <= there / 10, "{node}: {there} simulated, {here} real");
    }
    Ok(())
}

#[test]
fn a_congestion_control_or_recovery_that_the_kernel_has_not_is_refused_before_anything_is_made() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    for (name, choice, said) in [
        ("control", "congestion_control = \"no_such\"", "this kernel has no congestion control `no_such`; it has "),
        ("recovery", "recovery = \"tb_tcp\"", "a kernel recovers from losses by RACK-TLP; leave out `recovery`"),
    ] {
        let traffic = format!("[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n{choice}\n");
        let site = Site::new(name, &format!("{ROUTED}{traffic}"))?;
        let out = site.out.to_str().context("the build's folder has a plain name")?;
        let words = ["up", site.path(), "--name", &site.name, "--run", "--out", out];
        expect_refusal(&words, &format!("traffic `bulk`: {said}"))?;
        site.expect_nothing_left()?;
    }
    Ok(())
}

#[test]
fn the_arq_transport_brings_its_bytes() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let text = r#"
duration = "10s"
[nodes.sender]
kind = "function"
image = "EXAMPLES/arq-sender.xl"
trace = true
[nodes.receiver]
kind = "function"
image = "EXAMPLES/arq-receiver.xl"
[[links]]
name = "line"
between = ["sender", "receiver"]
delay = "1ms"
[[traffic]]
kind = "bulk"
from = "sender"
to = "receiver"
transport = "udp"
bytes = "100kB"
"#;
    let site = Site::new("arq", text)?;
    let results = site.run()?;
    let [flow] = results.flows.as_slice() else { anyhow::bail!("{:?}", results.flows) };
    ensure!(flow.outcome == "complete" && flow.delivered == 100_000, "{flow:?}");
    ensure!(results.functions.len() == 2, "{:?}", results.functions);
    ensure!(fs::metadata(site.out.join("sender.trace.jsonl"))?.len() > 1000, "the trace is short");
    Ok(())
}

const SPEAKING: &str = r#"
duration = "500ms"
[nodes.a]
commands = [{ run = ["sh", "-c", "id -u; id -G"] }]
[nodes.b]
[[links]]
between = ["a", "b"]
"#;

#[test]
fn commands_run_as_the_user_that_is_named() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ip"]) else { return Ok(()) };
    let site = Site::new("user", SPEAKING)?;
    let said = |more: &[&str]| -> Result<String> {
        let out = site.out.to_str().context("the build's folder has a plain name")?;
        site.succeed(&[&["up", site.path(), "--name", &site.name, "--run", "--out", out], more].concat())?;
        Ok(fs::read_to_string(site.out.join("a.1.log"))?)
    };
    ensure!(said(&[])?.starts_with("0\n"), "the maker runs them if nobody is named");
    let nobody = said(&["--user", "nobody"])?;
    let numbers: Vec<&str> = nobody.split_whitespace().collect();
    // The user's own group alone, none of root's.
    ensure!(numbers.len() == 2 && !numbers.contains(&"0"), "{nobody}");
    let wrong = weft(&["up", site.path(), "--run", "--out", "none", "--user", "no-such-user"])?;
    ensure!(!wrong.status.success() && wrong.stderr.contains("no-such-user"), "{}", wrong.stderr);
    site.expect_nothing_left()
}

/// Over two ways of weights 2 and 1, one of them with two links beside each other, until one goes down.
#[test]
fn kernels_spread_flows_and_route_round_links_that_are_down() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let mut text = "duration = \"4s\"\nrouting = { convergence = \"300ms\" }\n[nodes.a]\n".to_owned();
    for router in ["west", "north", "south", "east"] {
        text += &format!("[nodes.{router}]\nkind = \"router\"\n");
    }
    text += "[nodes.b]\n[[links]]\nname = \"over\"\nbetween = [\"west\", \"north\"]\nweight = 2\n";
    for (one, other) in
        [("a", "west"), ("west", "south"), ("north", "east"), ("north", "east"), ("south", "east"), ("east", "b")]
    {
        text += &format!("[[links]]\nbetween = [\"{one}\", \"{other}\"]\n");
    }
    for (name, family) in [("four", 4), ("six", 6)] {
        text += &format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"datagrams\"\nfamily = {family}\nfrom = \"a\"\nto = \"b\"\n\
             size = \"1B\"\ngap = \"10ms\"\ncount = 250\ncopies = 20\n"
        );
    }
    text += "[[faults]]\nat = \"1s\"\nkind = \"link-down\"\nlink = \"over\"\n";
    let site = Site::new("ways", &text)?;
    let sprayed = ["up", site.path(), "--name", &site.name, "--set", "routing.multipath=packet"];
    expect_refusal(&sprayed, "routing.multipath=flow")?;
    let results = site.run()?;
    ensure!(results.run.platform == "linux" && results.flows.len() == 40, "{:?}", results.run);
    for family in ["four", "six"] {
        let lost: Vec<u64> = results
            .flows
            .iter()
            .filter(|flow| flow.traffic.starts_with(family))
            .map(|flow| flow.lost.unwrap_or(u64::MAX))
            .collect();
        // 300 ms are 30 datagrams; without new routes 150 would be lost. What went the other way loses none.
        let hit = lost.iter().filter(|lost| **lost >= 20).count();
        ensure!((1..20).contains(&hit), "IPv{family}: {lost:?}");
        ensure!(lost.iter().all(|lost| *lost < 100), "IPv{family}: {lost:?}");
    }
    // One byte makes frames of 43 and 63 bytes; the shorter ones are padded.
    let arrived = |family: &str| {
        let flows = results.flows.iter().filter(|flow| flow.traffic.starts_with(family));
        flows.map(|flow| flow.delivered).sum::<u64>()
    };
    let last = results.links.iter().find(|link| link.link == "east-b").context("the last link")?.counts;
    let expected = 60 * arrived("four") + 63 * arrived("six");
    ensure!(last.delivered_bytes.abs_diff(expected) <= 600, "{} bytes, not {expected}", last.delivered_bytes);
    let used = |name: &str| {
        let direction = results.links.iter().find(|link| link.link == name);
        direction.map_or(0, |link| link.counts.delivered_packets)
    };
    for name in ["over", "west-south", "north-east", "north-east-2", "south-east"] {
        ensure!(used(name) > 200, "{name}: {}", used(name));
    }
    Ok(())
}
