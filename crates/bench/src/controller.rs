//! The controller of subscriptions: a process of its own with 20 switches that follow it.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use weftwire_control::follow::Follower;
use weftwire_control::protocol::{FollowRequest, Subscription};
use weftwire_control::state::formats_digest;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::{Address, Client};
use weftwire_core::Port;
use weftwire_subscribe::MessageFormats;
use weftwire_testbed::{Running, peak_resident_bytes, resident_bytes};
use weftwire_text::SourceMap;
use weftwire_workload::{ITCH_FORMATS, Numbers};

/// Subscriptions in one request of a list.
const BATCH: usize = 1_000;
/// Requests under way at the same time.
const PIPELINE: usize = 64;
/// Single subscriptions whose way is timed.
const SINGLES: usize = 1_000;
/// The switch that is compiled, too; one at the edge.
const SWITCH: &str = "pod1-edge1";

/// Measures everything.
pub fn measure(count: u32, weft: Option<PathBuf>, policy: &str) -> Result<()> {
    let weft = match weft {
        Some(weft) => weft,
        None => std::env::current_exe()?.with_file_name("weft"),
    };
    ensure!(weft.exists(), "{} is not there; build it, or name it with --weft", weft.display());
    let folder = std::env::temp_dir().join(format!("weft-controller-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured =
        runtime.block_on(Bench { weft, folder: folder.clone(), policy: policy.to_owned() }.run(count as usize));
    fs::remove_dir_all(&folder)?;
    measured
}

struct Bench {
    weft: PathBuf,
    folder: PathBuf,
    policy: String,
}

/// A follower that reads its stream and tells how far it is.
struct Light {
    at: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Bench {
    async fn run(&self, count: usize) -> Result<()> {
        let mut numbers = Numbers::new(1);
        let wanted = subscriptions(count + 4 * SINGLES, &mut numbers);
        let (first, rest) = wanted.split_at(count);
        let (mut controller, client) = self.start().await?;
        let empty = resident_bytes(controller.pid())?;
        let topology = client.topology().await?;
        let mut switches = Vec::new();
        for switch in &topology.switches {
            switches.push(self.light(&switch.name, 0, Vec::new()).await?);
        }

        let start = Instant::now();
        let revision = pipelined(&client, first.chunks(BATCH).map(<[_]>::to_vec), 4).await?;
        let answered = start.elapsed();
        for switch in &mut switches {
            switch.at.wait_for(|at| *at >= revision).await?;
        }
        println!("{} subscriptions, {} switches, policy {}", count, switches.len(), self.policy);
        show("all subscribed, 1,000 in a request", answered);
        show("until all switches have them", start.elapsed());
        let pid = controller.pid();
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (now, peak) = (resident_bytes(pid)?, peak_resident_bytes(pid)?);
        println!("memory: {:.0} MiB empty, {:.0} MiB now, {:.0} MiB at most", mib(empty), mib(now), mib(peak));
        println!("store: {:.1} MiB", mib(fs::metadata(self.folder.join("store"))?.len()));

        let start = Instant::now();
        let singles = rest[..SINGLES].iter().map(|it| vec![it.clone()]);
        let revision = pipelined(&client, singles, PIPELINE).await?;
        let rate = SINGLES as f64 / start.elapsed().as_secs_f64();
        println!("one in a request, {PIPELINE} requests at the same time: {rate:.0} a second");

        // One after the other: the answer, the switches' streams.
        for switch in &mut switches {
            switch.at.wait_for(|at| *at >= revision).await?;
        }
        let (mut answers, mut arrivals) = (Vec::new(), Vec::new());
        for it in &rest[SINGLES..2 * SINGLES] {
            let start = Instant::now();
            let revision = client.subscribe(vec![it.clone()]).await?.revision;
            answers.push(start.elapsed());
            for switch in &mut switches {
                switch.at.wait_for(|at| *at >= revision).await?;
            }
            arrivals.push(start.elapsed());
        }
        show_all("one subscription: until it is acknowledged", &mut answers);
        show_all("one subscription: until all switches have the change", &mut arrivals);

        // One switch compiles, too.
        let (mut table, took) = self.fetch().await?;
        show(&format!("a new switch has and has compiled {} rules", table.rule_count()), took);
        let revision = table.revision();
        let (tell, mut told) = watch::channel(revision);
        let follower = self.follower();
        let compiling = tokio::spawn(async move {
            follower
                .follow(&mut table, |_, table| {
                    tell.send_replace(table.revision());
                })
                .await;
        });
        let mut compiled = Vec::new();
        for it in &rest[2 * SINGLES..3 * SINGLES] {
            let start = Instant::now();
            let revision = client.subscribe(vec![it.clone()]).await?.revision;
            told.wait_for(|at| *at >= revision).await?;
            compiled.push(start.elapsed());
        }
        compiling.abort();
        show_all(&format!("one subscription: until {SWITCH} has compiled it"), &mut compiled);

        // A switch that was away for a moment.
        let (mut table, _) = self.fetch().await?;
        pipelined(&client, rest[3 * SINGLES..].chunks(BATCH).map(<[_]>::to_vec), 1).await?;
        let start = Instant::now();
        self.follower().fetch(&mut table).await?;
        show(&format!("a switch that missed {SINGLES} changes has them, compiled"), start.elapsed());

        for switch in &switches {
            switch.task.abort();
        }
        let before = client.topology().await?.subscriptions;
        controller.kill();
        let start = Instant::now();
        // It listens at once, and answers when it has everything.
        let client;
        (controller, client) = self.start().await?;
        let again = client.topology().await?.subscriptions;
        ensure!(again == before, "{again} of {before} subscriptions are left");
        show("a controller that was killed has all subscriptions again", start.elapsed());
        let start = Instant::now();
        let mut all = Vec::new();
        for switch in &topology.switches {
            all.push(self.light(&switch.name, 0, Vec::new()).await?);
        }
        for switch in &mut all {
            switch.at.wait_for(|at| *at > 0).await?;
        }
        show("all new switches at once have their tables, not compiled", start.elapsed());
        println!("memory after that: {:.0} MiB", mib(resident_bytes(controller.pid())?));
        all.iter().for_each(|switch| switch.task.abort());
        controller.interrupt()?;
        Ok(())
    }

    fn address(&self) -> Address {
        Address::Unix(self.folder.join("socket"))
    }

    async fn start(&self) -> Result<(Running, Client)> {
        let format = self.folder.join("itch.p4");
        fs::write(&format, ITCH_FORMATS)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut command = Command::new(&self.weft);
        command.args(["subs", "controller", "--fat-tree", "4", "--policy", &self.policy, "--keep-privileges"]);
        command.args(["--format", &text(&format), "--store", &text(&self.folder.join("store"))]);
        command.args(["--listen", &self.address().to_string()]);
        let mut running = Running::start(command)?;
        loop {
            match Client::connect(&self.address(), None).await {
                Ok(client) => return Ok((running, client)),
                Err(error) => ensure!(running.is_running(), "the controller has ended: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn light(&self, switch: &str, revision: u64, configuration: Vec<u8>) -> Result<Light> {
        let client = Client::connect(&self.address(), None).await?;
        let formats = formats_digest(ITCH_FORMATS).to_vec();
        let (said, saying) = watch::channel(FollowRequest {
            switch: switch.to_owned(),
            formats,
            configuration,
            revision,
            refusal: String::new(),
        });
        let mut updates = client.follow(saying).await?;
        let (tell, at) = watch::channel(0);
        let task = tokio::spawn(async move {
            while let Ok(Some(update)) = updates.message().await {
                if update.complete {
                    said.send_modify(|said| said.revision = update.revision);
                    tell.send_replace(update.revision);
                }
            }
        });
        Ok(Light { at, task })
    }

    fn follower(&self) -> Follower {
        Follower {
            address: self.address(),
            tls: None,
            reach: Default::default(),
            switch: SWITCH.to_owned(),
            formats: formats_digest(ITCH_FORMATS),
        }
    }

    async fn fetch(&self) -> Result<(FollowedTable, Duration)> {
        let formats = MessageFormats::read("formats", ITCH_FORMATS, &mut SourceMap::default(), &mut Vec::new());
        let formats = Arc::new(formats.context("the workload's formats are wrong")?);
        let start = Instant::now();
        let mut table = FollowedTable::new(formats, FieldOrder::Chosen, (1..=4).map(Port));
        self.follower().fetch(&mut table).await?;
        Ok((table, start.elapsed()))
    }
}

/// Different subscriptions to ITCH: 100 symbols, prices from 1 to 999, 16 hosts.
fn subscriptions(count: usize, numbers: &mut Numbers) -> Vec<Subscription> {
    let all = 16 * 100 * 999;
    // 7919 and the number of all share no factor, so that nothing comes twice.
    let offset = numbers.below(all);
    let one = |index: usize| {
        let number = (offset + index as u64 * 7919) % all;
        let (host, rest) = (number % 16, number / 16);
        Subscription {
            host: format!("pod{}-host{}", host / 4 + 1, host % 4 + 1),
            filter: format!("add_order.stock == S{:03} and add_order.price > {}", rest % 100, rest / 100 + 1),
        }
    };
    (0..count).map(one).collect()
}

/// Sends requests, so many at the same time. Returns the last revision.
async fn pipelined(client: &Client, requests: impl Iterator<Item = Vec<Subscription>>, at_once: usize) -> Result<u64> {
    let (mut under_way, mut revision) = (JoinSet::new(), 0);
    for request in requests {
        if under_way.len() >= at_once
            && let Some(ended) = under_way.join_next().await
        {
            revision = revision.max(ended??);
        }
        let client = client.clone();
        under_way.spawn(async move {
            let outcome = client.subscribe(request).await?;
            anyhow::Ok(outcome.revision)
        });
    }
    while let Some(ended) = under_way.join_next().await {
        revision = revision.max(ended??);
    }
    Ok(revision)
}

fn show(what: &str, took: Duration) {
    println!("{what}: {:.0} ms", took.as_secs_f64() * 1e3);
}

fn show_all(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!("{what}: median {:.2} ms, 99 % {:.2} ms, worst {:.2} ms", at(0.5), at(0.99), at(1.0));
}
