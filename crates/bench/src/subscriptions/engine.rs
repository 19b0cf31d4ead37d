//! The engine's speed on one core, beside others on the same rules and messages in the same run.

use super::{Lines, SEED, Start, formats, rules};
use crate::allocations::allocations;
use crate::table::grouped;
use a_tree::{ATree, AttributeDefinition, Event};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use weftwire_core::{Frame, LinkType};
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::{Compiler, Message, MessageFormats, packet};
use weftwire_switch::{Engine, Memory, Pipeline};
use weftwire_testbed::run;
use weftwire_workload::Numbers;

/// Messages that are matched over and over: more than caches of branches remember.
const MESSAGES: usize = 32_768;
/// Messages of a packet, and a call.
const BATCH: u16 = 30;
/// How long each run of a peer lasts at least, and how many there are; the best counts.
const LEAST: Duration = Duration::from_millis(100);
const RUNS: usize = 5;

/// What a message asks for, and what a rule of the set says.
#[derive(Clone, Copy)]
struct Order {
    stock: u64,
    price: u32,
}

struct Rule {
    stock: u64,
    above: u32,
    host: u16,
}

/// Measures all sizes of the ITCH set.
pub fn measure() -> Result<()> {
    let formats = formats(weftwire_workload::ITCH_FORMATS)?;
    let mut numbers = Numbers::new(SEED);
    let packets: Vec<Vec<u8>> = (0..MESSAGES / usize::from(BATCH))
        .map(|index| weftwire_workload::itch_packet(BATCH, 1 + index as u64 * u64::from(BATCH), &mut numbers))
        .collect();
    let messages = adds(&formats, &packets)?;
    let mut table = Lines::new(&[
        "rules",
        "tables, KiB",
        "engine, messages",
        "linear scan",
        "`a-tree`",
        "`rte_acl`",
        "whole packets: messages in",
        "copies out",
    ]);
    let acl = Acl::build();
    let mut engine_rates = Vec::new();
    for count in [10, 100, 1_000, 10_000, 100_000] {
        let text = weftwire_workload::itch(count, SEED);
        let Ok(compiler) = Compiler::new(formats.clone(), &Options::default(), &rules(&text, &formats)?) else {
            bail!("the workload has too many clauses")
        };
        let (stock, price) = columns(&formats)?;
        let orders: Vec<Order> = messages
            .iter()
            .map(|message| Order { stock: message.value(stock) as u64, price: message.value(price) as u32 })
            .collect();
        let linear: Vec<Rule> = text.lines().map(plain).collect::<Result<_>>()?;
        let tree = tree(&linear)?;
        let events: Vec<Event> = orders.iter().map(|order| event(&tree, order)).collect::<Result<_>>()?;
        check(&compiler, &messages, &linear, &orders, &tree, &events)?;

        let pipeline = Pipeline::new(&compiler);
        let engine = walk(&pipeline, &messages)?;
        engine_rates.push((count, engine));
        let (whole, copies) = whole_packets(&compiler, &packets)?;
        table.row(&[
            grouped(count),
            (pipeline.bytes() / 1024).to_string(),
            format!("{engine:.1}"),
            format!("{:.4}", rate(orders.len(), |index| u64::from(scan(&linear, orders[index])[0] != 0))),
            format!(
                "{:.4}",
                rate(events.len(), |index| {
                    tree.search(&events[index]).map_or(0, |report| report.matches().len() as u64)
                })
            ),
            acl.as_ref().and_then(|acl| acl.rate(&linear, &orders)).map_or("-".into(), |rate| format!("{rate:.1}")),
            format!("{whole:.2}"),
            format!("{copies:.2}"),
        ]);
    }
    table.print();
    let of = |wanted: usize| engine_rates.iter().find(|(count, _)| *count == wanted).map_or(0.0, |(_, rate)| *rate);
    println!("100,000 rules against 1,000: {:.2}", of(100_000) / of(1_000));
    Ok(())
}

/// Million calls a second of processor time, the best of some runs. Calls go over `count` inputs again and again.
fn rate(count: usize, mut call: impl FnMut(usize) -> u64) -> f64 {
    let (mut sum, mut at) = (0, 0);
    let mut calls = |number: usize| {
        let start = Start::now();
        for _ in 0..number {
            sum += call(at);
            at = if at + 1 == count { 0 } else { at + 1 };
        }
        start.elapsed()
    };
    // So many calls that looking at the clock costs nothing beside them.
    let mut number = 1;
    while calls(number) < LEAST {
        number *= 2;
    }
    let best = (0..RUNS).map(|_| calls(number)).min().unwrap_or_default();
    black_box(sum);
    number as f64 / best.as_secs_f64() / 1e6
}

/// The engine on rows of values, a batch a call, nothing allocated.
fn walk(pipeline: &Pipeline, messages: &[Message]) -> Result<f64> {
    let mut rows = Vec::new();
    messages.iter().for_each(|message| pipeline.push_row(message, &mut rows));
    let batch = pipeline.row_length() * usize::from(BATCH);
    let batches: Vec<&[u64]> = rows.chunks_exact(batch).collect();
    let (mut memory, mut sets) = (Memory::default(), Vec::with_capacity(usize::from(BATCH)));
    let before = allocations();
    let mut used = 0;
    let mut best = 0.0f64;
    for _ in 0..RUNS {
        let start = Start::now();
        let rounds = 64;
        for _ in 0..rounds {
            for rows in &batches {
                sets.clear();
                pipeline.walk(rows, 0, &mut memory, &mut sets);
                used += black_box(&sets).len();
            }
        }
        let calls = rounds * batches.len() * usize::from(BATCH);
        // What reading the clock allocates is not the engine's.
        best = best.max(calls as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    let after = allocations();
    black_box(used);
    ensure!(after - before < 16 * RUNS as u64, "the walk allocated {} times", after - before);
    Ok(best)
}

/// The engine from whole packets to pruned copies: million messages in, and million copies out a second.
fn whole_packets(compiler: &Compiler, packets: &[Vec<u8>]) -> Result<(f64, f64)> {
    let mut engine = Engine::new(compiler);
    let mut take = |packet: &[u8]| {
        let mut copies = 0;
        let copy = |_, copy: Frame<'_>| copies += u64::from(!black_box(copy).bytes.is_empty());
        let result = engine.frame(0, LinkType::Ethernet, Frame::new(packet), copy, |_| {});
        result.map(|()| copies).map_err(|reason| anyhow!("a packet is dropped: {}", reason.name()))
    };
    for packet in packets {
        take(packet)?;
    }
    let before = allocations();
    let mut copies = 0;
    for packet in packets {
        copies += take(packet)?;
    }
    let allocated = allocations() - before;
    ensure!(allocated == 0, "{allocated} allocations for {} packets", packets.len());
    let rate = rate(packets.len(), |index| take(&packets[index]).unwrap_or(0));
    Ok((rate * f64::from(BATCH), rate * copies as f64 / packets.len() as f64))
}

/// The orders among the packets' messages.
fn adds(formats: &MessageFormats, packets: &[Vec<u8>]) -> Result<Vec<Message>> {
    let header = formats.header_named("add_order").context("ITCH has orders")?;
    let mut messages = Vec::new();
    for frame in packets {
        let found = packet::messages(formats, LinkType::Ethernet, frame)
            .map_err(|reason| anyhow!("a packet is dropped: {}", reason.name()))?;
        messages.extend(found.messages.into_iter().filter(|message| message.has(header)));
    }
    Ok(messages)
}

fn columns(
    formats: &MessageFormats,
) -> Result<(weftwire_subscribe::formats::FieldId, weftwire_subscribe::formats::FieldId)> {
    let header = formats.header_named("add_order").context("ITCH has orders")?;
    let field = |name| formats.field_named(header, name).context("orders have it");
    Ok((field("stock")?, field("price")?))
}

/// A rule of the set as plain numbers.
fn plain(line: &str) -> Result<Rule> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut stock = [b' '; 8];
    stock[..3].copy_from_slice(words[2].as_bytes());
    let host = words[8].trim_matches(|c: char| !c.is_ascii_digit()).parse()?;
    Ok(Rule { stock: u64::from_be_bytes(stock), above: words[6].parse::<u32>()? * 10_000, host })
}

/// The hosts of an order as bits, by looking at every rule.
fn scan(rules: &[Rule], order: Order) -> [u64; 4] {
    let mut hosts = [0; 4];
    for rule in rules {
        let bit = u64::from(rule.stock == order.stock && order.price > rule.above);
        hosts[usize::from(rule.host / 64)] |= bit << (rule.host % 64);
    }
    hosts
}

fn symbol(stock: u64) -> String {
    String::from_utf8_lossy(&stock.to_be_bytes()).trim_end().to_owned()
}

fn tree(rules: &[Rule]) -> Result<ATree<usize>> {
    let definitions = [AttributeDefinition::string("stock"), AttributeDefinition::integer("price")];
    let mut tree = ATree::new(&definitions).map_err(|error| anyhow!("{error:?}"))?;
    for (number, rule) in rules.iter().enumerate() {
        let text = format!("stock = \"{}\" and price > {}", symbol(rule.stock), rule.above);
        tree.insert(&number, &text).map_err(|error| anyhow!("{error:?}"))?;
    }
    Ok(tree)
}

fn event(tree: &ATree<usize>, order: &Order) -> Result<Event> {
    let mut builder = tree.make_event();
    let built = builder
        .with_string("stock", &symbol(order.stock))
        .and_then(|()| builder.with_integer("price", order.price.into()))
        .map_err(|error| anyhow!("{error:?}"));
    built?;
    builder.build().map_err(|error| anyhow!("{error:?}"))
}

/// The program `benches/dpdk/acl.c`, in a folder that goes with it.
struct Acl(PathBuf);

impl Acl {
    fn build() -> Option<Acl> {
        let built = crate::dpdk::compile("acl");
        if let Err(error) = &built {
            eprintln!("SKIPPED: rte_acl needs cc, pkg-config and libdpdk-dev: {error:#}");
        }
        built.ok().map(Acl)
    }

    /// Its rate on these rules; `None`, with the reason said, if it cannot hold them or finds other messages.
    fn rate(&self, rules: &[Rule], orders: &[Order]) -> Option<f64> {
        let rate = self.run(rules, orders);
        if let Err(error) = &rate {
            eprintln!("rte_acl with {} rules: {error:#}", rules.len());
        }
        rate.ok()
    }

    fn run(&self, rules: &[Rule], orders: &[Order]) -> Result<f64> {
        let orders = &orders[..orders.len() - orders.len() % 32];
        let mut text = format!("{}\n", rules.len());
        // Prices in whole dollars, rounded up, keep what rules of whole dollars say.
        rules.iter().for_each(|rule| text += &format!("{:x} {}\n", rule.stock, rule.above / 10_000 + 1));
        text += &format!("{}\n", orders.len());
        orders.iter().for_each(|order| text += &format!("{:x} {}\n", order.stock, order.price.div_ceil(10_000)));
        let input = self.0.join("input");
        fs::write(&input, text)?;
        let mut command = Command::new(self.0.join("acl"));
        command.arg(input);
        let answer = run(command, Duration::from_secs(300))?;
        let (matched, rate) = answer.trim().split_once(' ').context("the program says something else")?;
        let expected = orders.iter().filter(|order| scan(rules, **order) != [0; 4]).count();
        ensure!(matched.parse() == Ok(expected), "{matched} messages match, not {expected}");
        Ok(rate.parse()?)
    }
}

impl Drop for Acl {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All peers say the same of some messages.
fn check(
    compiler: &Compiler,
    messages: &[Message],
    linear: &[Rule],
    orders: &[Order],
    tree: &ATree<usize>,
    events: &[Event],
) -> Result<()> {
    let pipeline = Pipeline::new(compiler);
    for index in 0..200 {
        let (mut row, mut sets) = (Vec::new(), Vec::new());
        pipeline.push_row(&messages[index], &mut row);
        pipeline.walk(&row, 0, &mut Memory::default(), &mut sets);
        let engine: BTreeSet<u16> = pipeline.ports(sets[0]).iter().map(|port| port.0).collect();
        let bits = scan(linear, orders[index]);
        let scanned: BTreeSet<u16> =
            (0..256).filter(|host| bits[usize::from(host / 64)] >> (host % 64) & 1 == 1).collect();
        let report = tree.search(&events[index]).map_err(|error| anyhow!("{error:?}"))?;
        let found: BTreeSet<u16> = report.matches().iter().map(|rule| linear[**rule].host).collect();
        ensure!(engine == scanned && engine == found, "peers differ: {engine:?}, {scanned:?}, {found:?}");
    }
    Ok(())
}
