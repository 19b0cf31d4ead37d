//! `weft subs match`: the packets of a capture, sorted by the rules.

use super::Compiling;
use crate::console::say;
use crate::folder::OutputFolder;
use crate::load::catalog;
use crate::output;
use crate::progress::ProgressLine;
use anyhow::{Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use weftwire_capture::CaptureWriter;
use weftwire_catalog::capture;
use weftwire_core::Port;
use weftwire_linux::signals::StopSignal;
use weftwire_subscribe::packet;
use weftwire_subscribe::switch::Switch;

/// Sort the packets of a capture by the rules: one capture a port, each packet with the messages for that port.
#[derive(Args)]
pub struct Arguments {
    /// The capture
    capture: PathBuf,
    /// The rules; of several files they are taken together
    #[arg(long, value_name = "FILE", required = true)]
    rules: Vec<PathBuf>,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    /// Write port-NUMBER.pcapng into this folder
    #[arg(short, long, value_name = "FOLDER")]
    out: PathBuf,
    #[command(flatten)]
    compiling: Compiling,
}

type Writer = CaptureWriter<output::Writer>;

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let loaded = catalog().rules(&arguments.rules, &arguments.formats)?;
    let (compiler, _) = catalog().tables(&loaded, &arguments.compiling.begin())?;
    let (interfaces, records) = capture::read(&arguments.capture)?;
    let stop = StopSignal::install()?;
    let folder = OutputFolder::begin(&arguments.out)?;
    let mut switch = Switch::default();
    let mut ports: BTreeMap<Port, (output::PendingFile, Writer, u64, u64)> = BTreeMap::new();
    let (mut messages, mut unmatched, mut calls, mut both) = (0u64, 0u64, 0u64, 0u64);
    let mut dropped: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut line = ProgressLine::begin();
    for (done, record) in records.iter().enumerate() {
        line.tell(done as f64 / records.len() as f64, format_args!("{done} of {} packets", records.len()));
        if stop.requested() {
            bail!("interrupted; nothing was written");
        }
        let link = interfaces[record.interface].link;
        let found = match packet::messages(&loaded.formats, link, &record.bytes) {
            Ok(found) => found,
            Err(reason) => {
                *dropped.entry(reason.name()).or_default() += 1;
                continue;
            }
        };
        let now_ns = u64::try_from(record.time.nanoseconds()).unwrap_or(0);
        let mut wanted: BTreeMap<Port, Vec<bool>> = BTreeMap::new();
        for (index, message) in found.messages.iter().enumerate() {
            let actions = switch.message(&compiler, message, now_ns);
            messages += 1;
            unmatched += u64::from(actions.ports.is_empty() && actions.calls.is_empty());
            calls += actions.calls.len() as u64;
            both += u64::from(!actions.ports.is_empty() && !actions.calls.is_empty());
            for port in actions.ports {
                wanted.entry(port).or_insert_with(|| vec![false; found.messages.len()])[index] = true;
            }
        }
        for (port, keep) in wanted {
            let frame = match packet::pruned(&loaded.formats, link, &record.bytes, &found, &keep) {
                Ok(frame) => frame,
                Err(reason) => {
                    *dropped.entry(reason.name()).or_default() += 1;
                    continue;
                }
            };
            let (_, writer, packets, kept) = match ports.entry(port) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let path = folder.path().join(format!("port-{port}.pcapng"));
                    let mut file = output::PendingFile::create(&path)?;
                    let writer = CaptureWriter::pcapng(file.take_writer(), &interfaces)?;
                    entry.insert((file, writer, 0, 0))
                }
            };
            writer.write(record.time, record.interface, &frame, None)?;
            *packets += 1;
            *kept += keep.iter().filter(|keep| **keep).count() as u64;
        }
    }
    drop(line);
    say!("{} packets with {messages} messages; {unmatched} messages match no rule", records.len());
    for (port, (file, writer, packets, kept)) in ports {
        say!("port {port}: {packets} packets with {kept} messages");
        file.finish(writer.into_inner())?;
    }
    folder.finish()?;
    if calls > 0 {
        say!("{calls} actions of applications, which are not carried out here");
    }
    if both > 0 {
        say!(
            "{both} messages have actions and ports: `weft subs run` carries the actions out first, which may change, answer \
             or drop a message; here the ports got it as it came"
        );
    }
    for (reason, count) in dropped {
        say!("dropped, {reason}: {count}");
    }
    Ok(())
}
