//! `weft subs controller` and its clients as processes: what was acknowledged survives `kill -9`; what people type wrong is told.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of processes and files")]

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use weftwire_control::protocol::Subscription;
use weftwire_control::{Address, Client};
use weftwire_testbed::{Running, wait_for};

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
        let running = Running::start(self.command(&["--fat-tree", "4"]))?;
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
                    let Ok(client) = Client::connect(&address).await else { return };
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

    ensure!(lab.says(&["subscribe", "pod1-host1", "trade.price > 5", "--wait"])? == "subscribed\n");
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
