//! `weft subs controller` and its clients as processes: what was acknowledged survives `kill -9`; what people type wrong is told.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of processes and files")]

use anyhow::{Context as _, Result, ensure};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use weftwire_control::follow::Follower;
use weftwire_control::protocol::Subscription;
use weftwire_control::state::formats_digest;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::{Address, Client};
use weftwire_core::Port;
use weftwire_linux::reach::Reach;
use weftwire_subscribe::{Budget, MessageFormats};
use weftwire_testbed::{Running, run, skip_unless_installed, wait_for};
use weftwire_text::SourceMap;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FORMAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions/itch.p4");
const LIMIT: Duration = Duration::from_secs(20);

struct Lab {
    folder: PathBuf,
}

impl Lab {
    fn new(name: &str) -> Result<Lab> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("controller-{name}"));
        // It may be there from the last run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        Ok(Lab { folder })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    fn address(&self) -> String {
        format!("unix:{}", self.path("socket"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(WEFT);
        command.args(["subs", "controller", "--format", FORMAT, "--store", &self.path("store")]);
        command.args(["--listen", &self.address(), "--keep-privileges"]).args(words);
        command
    }

    fn start(&self) -> Result<Running> {
        self.start_with(&[])
    }

    fn start_with(&self, words: &[&str]) -> Result<Running> {
        let running = Running::start(self.command(&[&["--fat-tree", "4"], words].concat()))?;
        wait_for("the controller", LIMIT, || self.ask(&["topology"]).is_ok_and(|output| output.status.success()))?;
        Ok(running)
    }

    fn ask(&self, words: &[&str]) -> Result<Output> {
        let mut command = Command::new(WEFT);
        command.arg("subs").args(words).args(["--controller", &self.address()]);
        command.output().context("cannot run weft")
    }

    fn says(&self, words: &[&str]) -> Result<String> {
        let output = self.ask(words)?;
        ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn refuses(&self, words: &[&str], reason: &str) -> Result<()> {
        let output = self.ask(words)?;
        let text = String::from_utf8(output.stderr)?;
        ensure!(!output.status.success() && text.contains(reason), "{words:?}: {text}");
        Ok(())
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() -> Result<()> {
    let lab = Lab::new("kill")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (mut acknowledged, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..3 {
        let controller = lab.start()?;
        let address: Address = lab.address().parse().map_err(anyhow::Error::msg)?;
        let (tell, told) = std::sync::mpsc::channel();
        // Eight clients subscribe until the controller is gone.
        runtime.spawn(async move {
            for client_number in 0..8 {
                let (address, tell) = (address.clone(), tell.clone());
                tokio::spawn(async move {
                    let Ok(client) = Client::connect(&address, None).await else { return };
                    for price in 1.. {
                        let filter = format!("trade.price > {price}.{round}{client_number}");
                        let wanted = Subscription { host: "pod1-host1".to_owned(), filter: filter.clone() };
                        let made = client.subscribe(vec![wanted]).await.is_ok();
                        if tell.send((filter, made)).is_err() || !made {
                            return;
                        }
                    }
                });
            }
        });
        let mut take = |(filter, made): (String, bool)| {
            if made {
                acknowledged.insert(filter.clone());
            }
            asked.insert(filter);
        };
        for _ in 0..100 {
            take(told.recv_timeout(LIMIT)?);
        }
        controller.kill();
        told.iter().for_each(&mut take);
        ensure!(asked.len() > acknowledged.len(), "the kill came in the middle");

        let controller = lab.start()?;
        let listed = lab.says(&["list"])?;
        let listed: BTreeSet<String> =
            listed.lines().filter_map(|line| Some(line.strip_prefix("pod1-host1: ")?.to_owned())).collect();
        ensure!(listed.is_superset(&acknowledged), "something acknowledged is gone");
        ensure!(listed.is_subset(&asked), "something nobody asked for is there");
        controller.kill();
    }
    Ok(())
}

/// A switch in this process, with a budget that is soon used up.
#[test]
fn what_a_switch_holds_back_is_told() -> Result<()> {
    let lab = Lab::new("held")?;
    let controller = lab.start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let text = fs::read_to_string(FORMAT)?;
    let formats = MessageFormats::read("formats", &text, &mut SourceMap::default(), &mut Vec::new());
    let formats = Arc::new(formats.context("the formats are wrong")?);
    let follower = Follower {
        address: lab.address().parse().map_err(anyhow::Error::msg)?,
        tls: None,
        reach: Reach::default(),
        switch: "pod1-edge1".to_owned(),
        formats: formats_digest(&text),
    };
    let mut table = FollowedTable::new(formats, FieldOrder::Chosen, (1..=4).map(Port));
    table.set_budget(Budget::of_size(200));
    lab.says(&["subscribe", "pod1-host1", "trade.price > 1"])?;
    runtime.spawn(async move { follower.follow(&mut table, |_, _| ()).await });
    wait_for("the switch", LIMIT, || lab.says(&["topology"]).is_ok_and(|text| text.contains("up to date")))?;
    let steps: Vec<String> =
        (1..20).map(|n| format!("add_order.price > {n} and add_order.shares == {}", 10 * n)).collect();
    let costly = lab.ask(&["subscribe", "pod1-host1", &steps.join(" or "), "--wait"])?;
    let warning = String::from_utf8(costly.stderr)?;
    let told = "`pod1-edge1` holds 1 rules back, whose subscribers get nothing through it; the first is `add_order.";
    ensure!(costly.status.success() && warning.contains("warning: switch ") && warning.contains(told), "{warning}");
    lab.says(&["subscribe", "pod1-host2", "trade.price > 2", "--wait"])?;
    let topology = lab.says(&["topology"])?;
    let line = topology.lines().last().unwrap_or_default();
    ensure!(line.starts_with(told) && line.contains("over the budget of 200 edges"), "{topology}");
    ensure!(topology.contains("up to date") && line.contains("--budget"), "{topology}");
    lab.says(&["unsubscribe", "pod1-host1", &steps.join(" or "), "--wait"])?;
    ensure!(!lab.says(&["topology"])?.contains("holds"), "nothing is held back any more");
    controller.kill();
    Ok(())
}

/// Python with gRPC's C core, which `scripts/setup.sh` installs.
fn python() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python").join("bin/python")
}

/// What the client in Python says.
fn ask_in_python(words: &[&str]) -> Result<String> {
    let mut command = Command::new(python());
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc_client.py")).args(words);
    run(command, 3 * LIMIT)
}

const SAID_IN_PYTHON: &str = "watch \nsubscribe 08011001\nwatch True\nlist True\n";

#[test]
fn a_client_in_python_asks_by_the_unix_socket() -> Result<()> {
    let Some(_turn) = skip_unless_installed(&[&python().to_string_lossy()]) else { return Ok(()) };
    let lab = Lab::new("python")?;
    let controller = lab.start()?;
    let said = ask_in_python(&[&lab.address(), "pod1-host1", "trade.price > 5"])?;
    ensure!(said == SAID_IN_PYTHON, "{said}");
    controller.kill();
    Ok(())
}

#[test]
fn an_empty_store_is_refused_unless_it_is_to_be_new() -> Result<()> {
    let lab = Lab::new("empty")?;
    fs::write(lab.path("store"), "")?;
    let output = lab.command(&["--fat-tree", "4"]).output()?;
    let text = String::from_utf8(output.stderr)?;
    ensure!(!output.status.success() && text.contains("empty") && text.contains("--new"), "{text}");
    let controller = lab.start_with(&["--new"])?;
    lab.says(&["subscribe", "pod1-host1", "true"])?;
    controller.kill();
    let output = lab.command(&["--fat-tree", "4", "--new"]).output()?;
    let text = String::from_utf8(output.stderr)?;
    ensure!(!output.status.success() && text.contains("leave --new out"), "{text}");
    let controller = lab.start()?;
    ensure!(lab.says(&["list"])? == "pod1-host1: true\n");
    controller.kill();
    Ok(())
}

#[test]
fn over_tcp_certificates_say_who_may_ask() -> Result<()> {
    let lab = Lab::new("tls")?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let file = |name: &str| lab.path(name);
    fs::write(file("authority.pem"), authority.pem())?;
    for (end, name) in [("server", "localhost"), ("client", "alice")] {
        let key = KeyPair::generate()?;
        fs::write(file(&format!("{end}-key.pem")), key.serialize_pem())?;
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &authority)?;
        fs::write(file(&format!("{end}.pem")), certificate.pem())?;
    }
    // A port that is free now; other processes' are asked for no more.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let options = |end: &str, authority: &str| {
        let named = |option: &str, name: &str| [option.to_owned(), file(name)];
        let options = [
            named("--tls-cert", &format!("{end}.pem")),
            named("--tls-key", &format!("{end}-key.pem")),
            named(authority, "authority.pem"),
        ];
        options.concat()
    };
    let controller = |listen: &str| {
        let mut command = Command::new(WEFT);
        command.args(["subs", "controller", "--fat-tree", "4", "--keep-privileges", "--format", FORMAT]);
        command.args(["--store", &file("store"), "--listen", listen]);
        command
    };
    let ask = |words: &[&str], host: &str, options: &[String]| -> Result<Output> {
        let mut command = Command::new(WEFT);
        command.arg("subs").args(words).args(["--controller", &format!("{host}:{port}")]).args(options);
        Ok(command.output()?)
    };
    let (of_server, of_client) = (options("server", "--client-ca"), options("client", "--server-ca"));

    // Beyond this machine it is TLS, or said to be insecure; on a Unix socket it makes no sense.
    let says = |mut command: Command, expected: &str| -> Result<()> {
        let output = command.output()?;
        let text = String::from_utf8(output.stderr)?;
        ensure!(!output.status.success() && text.contains(expected), "{expected}: {text}");
        Ok(())
    };
    says(controller("0.0.0.0:0"), "give --tls-cert, --tls-key and --client-ca, or --insecure")?;
    let mut half = controller("127.0.0.1:0");
    half.args(&of_server[..4]);
    says(half, "TLS needs --tls-cert, --tls-key and --client-ca")?;
    let mut unix = controller(&lab.address());
    unix.args(&of_server);
    says(unix, "leave the options of TLS out")?;
    let remote = ask(&["list"], "192.0.2.1", &[])?;
    ensure!(String::from_utf8(remote.stderr)?.contains("is not this machine: give --tls-cert"));

    let mut command = controller(&format!("0.0.0.0:{port}"));
    command.args(&of_server);
    let running = Running::start(command)?;
    let list = || ask(&["list"], "localhost", &of_client);
    wait_for("the controller", LIMIT, || list().is_ok_and(|output| output.status.success()))?;
    let made = ask(&["subscribe", "pod1-host1", "true"], "localhost", &of_client)?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let plain = String::from_utf8(ask(&["list"], "localhost", &[])?.stderr)?;
    ensure!(plain.contains("if it wants TLS, give --tls-cert, --tls-key and --server-ca"), "{plain}");
    let name = String::from_utf8(ask(&["list"], "127.0.0.1", &of_client)?.stderr)?;
    ensure!(name.contains("is not for `127.0.0.1` but for"), "{name}");
    if let Some(_turn) = skip_unless_installed(&[&python().to_string_lossy()]) {
        let target = format!("localhost:{port}");
        let files = [file("client.pem"), file("client-key.pem"), file("authority.pem")];
        let said = ask_in_python(&[&target, "pod1-host2", "trade.price > 5", &files[0], &files[1], &files[2]])?;
        ensure!(said.starts_with("watch 0801\nsubscribe 08021001\n"), "{said}");
    }
    let ended = running.interrupt()?;
    ensure!(ended.status.success(), "{}", ended.stderr);
    ensure!(ended.stderr.contains("refused 127.0.0.1:"), "{}", ended.stderr);
    Ok(())
}

#[test]
fn clients_say_what_they_did() -> Result<()> {
    let lab = Lab::new("clients")?;
    let controller = lab.start()?;
    let mut watch = Command::new(WEFT);
    watch.args(["subs", "watch", "--json", "--controller", &lab.address()]);
    let watch = Running::start(watch)?;
    // It has begun once it shows a change.
    let mut changes = 0;
    wait_for("the watch to begin", LIMIT, || {
        changes += 1;
        lab.says(&["subscribe", "pod4-host4", &format!("trade.price > {changes}")]).is_ok() && changes > 20
    })?;
    ensure!(lab.says(&["unsubscribe", "pod4-host4", "--all"])? == format!("{changes} subscriptions ended\n"));

    // Nothing forwards by it, so there is nothing to wait for; but it is there.
    lab.refuses(&["subscribe", "pod1-host1", "trade.price > 5", "--wait"], "no switch follows the controller")?;
    let never = lab.ask(&["subscribe", "pod1-host1", "trade.price > 5 and trade.price < 4"])?;
    let warning = String::from_utf8(never.stderr)?;
    ensure!(never.status.success() && warning.contains("never matches"), "{warning}");
    lab.says(&["unsubscribe", "pod1-host1", "trade.price > 5 and trade.price < 4"])?;
    ensure!(lab.says(&["subscribe", "pod1-host1", "trade.price > 5.00"])?.contains("nothing changed"));
    let outcome: Value = serde_json::from_str(&lab.says(&["subscribe", "pod1-host2", "true", "--json"])?)?;
    ensure!(outcome["changed"] == 1 && outcome["revision"].is_u64(), "{outcome}");
    fs::write(
        lab.path("some"),
        "# some\npod1-host1: trade.price > 5\n\npod2-host3 : add_order.stock == AAPL // why\n",
    )?;
    let made = lab.says(&["subscribe", "--file", &lab.path("some")])?;
    ensure!(made == "1 subscriptions made, 1 were there before\n", "{made}");
    let listed = lab.says(&["list"])?;
    ensure!(listed == "pod1-host1: trade.price > 5\npod1-host2: true\npod2-host3: add_order.stock == AAPL // why\n");
    let line: Value = serde_json::from_str(&lab.says(&["list", "--host", "pod1-host2", "--json"])?)?;
    ensure!(line["host"] == "pod1-host2" && line["filter"] == "true", "{line}");
    let topology: Value = serde_json::from_str(&lab.says(&["topology", "--json"])?)?;
    ensure!(topology["switches"].as_array().is_some_and(|list| list.len() == 20), "{topology}");
    ensure!(topology["subscriptions"] == 3 && topology["hosts"][0]["switch"] == "pod1-edge1", "{topology}");
    ensure!(lab.says(&["unsubscribe", "pod1-host2", "true"])? == "1 subscriptions ended\n");

    lab.refuses(&["unsubscribe", "pod1-host2", "true"], "`weft subs list --host pod1-host2` shows what it has")?;
    lab.refuses(&["subscribe", "pod1-host7", "true"], "there is no host `pod1-host7`; did you mean")?;
    lab.refuses(&["subscribe", "pod1-host1", "trade.prise > 1"], "did you mean `price`?")?;
    lab.refuses(&["subscribe", "pod1-host1"], "<FILTER>")?;
    lab.refuses(&["list", "--host", "pod9"], "there is no host `pod9`")?;
    fs::write(lab.path("wrong"), "pod1-host1: true\npod1-host1 true\n")?;
    lab.refuses(
        &["subscribe", "--file", &lab.path("wrong")],
        "wrong:2: this is no subscription; write `HOST: filter`",
    )?;
    fs::write(lab.path("wrong"), "pod1-host1: true\npod1-host1: price > \n")?;
    lab.refuses(&["subscribe", "--file", &lab.path("wrong")], "subscription 2 of 2: ")?;
    let again = lab.command(&["--fat-tree", "4"]).output()?;
    ensure!(String::from_utf8_lossy(&again.stderr).contains("another controller listens"));
    let mut other = Command::new(WEFT);
    other.args(["subs", "controller", "--fat-tree", "4", "--format", FORMAT, "--store", &lab.path("store")]);
    let other = other.args(["--listen", &lab.path("other")]).output()?;
    ensure!(String::from_utf8_lossy(&other.stderr).contains("store is in use"));

    let ended = controller.interrupt()?;
    ensure!(ended.status.success(), "{}", ended.stderr);
    let ended = watch.wait(LIMIT)?;
    ensure!(!ended.status.success() && ended.stderr.contains("the controller ends"), "{}", ended.stderr);
    let changes: Vec<Value> = ended.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let last = changes.last().context("no change was seen")?;
    ensure!(last["subscribed"] == false && last["host"] == "pod1-host2" && last["filter"] == "true", "{last}");
    lab.refuses(&["list"], "cannot reach a controller at unix:")?;

    // Another network.
    let fewer = lab.command(&["--fat-tree", "2"]).output()?;
    let text = String::from_utf8_lossy(&fewer.stderr);
    ensure!(!fewer.status.success() && text.contains("--drop-unfit"), "{text}");
    fs::write(lab.path("store"), "no store")?;
    let other = lab.command(&["--fat-tree", "4"]).output()?;
    let text = String::from_utf8_lossy(&other.stderr);
    ensure!(!other.status.success() && text.contains("is no store of subscriptions"), "{text}");
    Ok(())
}
