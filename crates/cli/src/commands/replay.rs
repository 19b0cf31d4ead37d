//! `weft replay`: a function in virtual time, fed from captures.

use crate::console::{self, tell};
use crate::output::{PendingFile, Writer};
use crate::progress::ProgressLine;
use crate::recording::{self, Inputs, Keys};
use crate::{load, states};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use weftwire_capture::Headers;
use weftwire_capture::{CaptureInterface, CaptureRecord, CaptureWriter, SENT, marked, recorded, restored};
use weftwire_catalog::file::{self, Kind};
use weftwire_catalog::parameter::{Parameter, parse_parameter};
use weftwire_catalog::{capture, engine_options};
use weftwire_core::packet::checksum_is_partial;
use weftwire_core::port::Checksum;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{DropReason, FlowId, Formats, Frame, Function, LinkType, Offload, Port, Ports, Time};
use weftwire_engine::EngineOptions;
use weftwire_linux::report::write_counters;
use weftwire_linux::signals::StopSignal;
use weftwire_sim::replay::{Captured, Input, Plan, Progress, Sink, Stop, Summary, replay};
use weftwire_sim::spec::{Connect, Source, parse_duration};

/// Run a function in virtual time from captures: the same inputs give the same outputs, byte for byte.
#[derive(Args)]
pub struct Arguments {
    /// The function: an image (.json) or a source (.xl, .xtra)
    image: PathBuf,
    /// A port and what arrives there: `NUMBER=FILE[,source=ADDRESS][,interface=NAME]`, or `NUMBER=none[,ip]` for a port
    /// where nothing arrives
    ///
    /// With `source`, an IP or Ethernet address, only packets with that source are fed in: so a capture made beside a
    /// function can be replayed without what the function itself sent. Packets that a capture of `weft` marks as sent
    /// are left out always.
    #[arg(long = "port", value_name = "NUMBER=FILE", required_unless_present = "inputs")]
    ports: Vec<PortSpec>,
    /// Repeat a run from the recording of its inputs, and see that the same comes out
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ports", "connects", "send", "receive", "until", "out", "trace", "seed", "from"])]
    inputs: Option<PathBuf>,
    /// Begin with the flows of this file, which `weft flows snapshot` has written: the start is the time of the latest of them
    #[arg(long, value_name = "SNAPSHOT")]
    from: Option<PathBuf>,
    /// Open a connection at this time after the start [default: 0s]
    #[arg(long = "connect", value_name = "SRC:PORT-DST:PORT[/udp][@TIME]")]
    connects: Vec<Connect>,
    /// Send this file's bytes on the first connection, then close it for sending
    #[arg(long, value_name = "FILE", requires = "connects")]
    send: Option<PathBuf>,
    /// Write the bytes delivered by all flows to this file
    #[arg(long, value_name = "FILE")]
    receive: Option<PathBuf>,
    /// End at this time after the start, e.g. 10s [default: when nothing is left to do, at most 10 s after the last input]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    until: Option<Duration>,
    /// What to make of TCP and UDP checksums
    #[arg(long, value_enum, default_value_t = Checksums::Partial)]
    checksums: Checksums,
    /// Seed of the function's random numbers and hash key
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Initial value of a register in place of the machine's own
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    parameters: Vec<Parameter>,
    /// The engine that runs the image
    #[arg(long, value_name = "NAME", default_value = "reference")]
    engine: String,
    /// Write all frames, arrived and sent, one interface a port; sent ones have the comment `sent`
    #[arg(long, value_name = "FILE.pcapng")]
    out: Option<PathBuf>,
    /// Write a trace of every event
    #[arg(long, value_name = "FILE.jsonl")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    includes: load::Includes,
}

/// What is made of the TCP and UDP checksums of captured frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Checksums {
    /// All must be right
    Verify,
    /// Right, or just begun: the capture's host left the rest to its hardware
    Partial,
    /// Nobody looks
    Ignore,
}

/// What was noticed in the captures.
#[derive(Default)]
struct Notes {
    /// Frames with checksums just begun that were taken as right.
    partial: u64,
    /// Frames left out, as the capture cut off what they need.
    cut: u64,
}

/// A port of the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PortSpec {
    port: Port,
    /// The capture, if anything arrives.
    file: Option<PathBuf>,
    /// Link type of a port without capture.
    link: LinkType,
    source: Option<Source>,
    interface: Option<String>,
}

impl FromStr for PortSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PortSpec, String> {
        let (number, rest) = text.split_once('=').unwrap_or((text, "none"));
        let port = match number.parse() {
            Ok(0) | Err(_) => return Err(format!("`{number}` is no port; ports are numbers from 1 to 65535")),
            Ok(number) => Port(number),
        };
        let mut spec = PortSpec { port, file: None, link: LinkType::Ethernet, source: None, interface: None };
        // Options stand behind the file's name, which may hold commas itself.
        let mut file = rest;
        while let Some((front, option)) = file.rsplit_once(',') {
            match option.split_once('=') {
                None if option == "ip" => spec.link = LinkType::Ip,
                Some(("source", address)) => {
                    spec.source = Some(address.parse().map_err(|error| format!("{error}"))?);
                }
                Some(("interface", name)) => spec.interface = Some(name.to_owned()),
                _ => break,
            }
            file = front;
        }
        if file != "none" {
            if spec.link == LinkType::Ip {
                return Err("`ip` is for ports without a capture; a capture says itself what its frames are".into());
            }
            spec.file = Some(PathBuf::from(file));
        } else if spec.source.is_some() || spec.interface.is_some() {
            return Err("`source` and `interface` choose packets of a capture; this port has none".into());
        }
        Ok(spec)
    }
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let function = arguments.includes.catalog()?.machine(&arguments.image, &arguments.parameters)?;
    if let Some(path) = &arguments.inputs {
        let start = |inputs: &Inputs, keys: Keys| {
            let order_left_to_platform = inputs.order_left_to_platform();
            let options = EngineOptions { order_left_to_platform, ..engine_options(keys.seed, keys.hash_key) };
            Ok(function.start_with(&arguments.engine, inputs.ports(), options)? as Box<dyn Function>)
        };
        // A machine makes ready itself what it needs.
        return recording::repeat(path, start, &mut |_| None);
    }
    let mut inputs = Vec::new();
    let mut notes = Notes::default();
    for spec in &arguments.ports {
        let twice = inputs.iter().any(|input: &Input| input.port == spec.port);
        ensure!(!twice, "port {} is given twice; give each --port its own number", spec.port);
        inputs.push(read_input(spec, arguments.checksums, &mut notes)?);
    }
    inputs.sort_by_key(|input| input.port);
    let links = Ports::new(inputs.iter().map(|input| (input.port, input.link)));
    let mut function = function.start(&arguments.engine, &links, arguments.seed, None)?;
    if let Some(path) = &arguments.from {
        let begun = states::begin(function.as_mut(), path)?;
        tell!("begins with {begun} of {}", path.display());
    }
    let send = arguments.send.as_deref().map(|path| file::bytes(path, Kind::Data));
    let plan = Plan {
        inputs,
        connects: arguments.connects.clone(),
        send: send.transpose()?,
        until: arguments.until.map(|until| Time::ZERO.plus(until)),
    };

    let stop = StopSignal::install()?;
    let mut files = Files::create(&arguments, &links)?;
    let mut progress = progress(&stop);
    let tracing = arguments.trace.is_some();
    let summary = replay(function.as_mut(), &plan, &mut files, tracing, &mut progress)?;
    let delivered = files.delivered;
    if summary.stop == Stop::Interrupted {
        bail!("interrupted at {} s of virtual time; nothing was written", summary.end);
    }
    files.finish()?;

    let mut text = describe(&summary, &plan, &notes, delivered);
    // Writing to a string does not fail.
    let _ = write_counters(&mut text, &function.counters());
    console::tell_text(format_args!("{text}"));
    for error in &summary.errors {
        tell!("error: {error}");
    }
    ensure!(summary.errors.is_empty(), "the replay ended, but not all went well");
    Ok(())
}

/// How the replay ended, in words.
fn describe(summary: &Summary, plan: &Plan, notes: &Notes, delivered: u64) -> String {
    let end = match summary.stop {
        Stop::Finished | Stop::Interrupted => "nothing was left to do",
        Stop::Until => "the time given was over",
        Stop::Grace => {
            "it ends 10 s after the last input, though timers or expiries are still to come; --until goes on longer"
        }
    };
    let mut text = format!("replayed {} s of virtual time; {end}\n", summary.end);
    if summary.left_out > 0 {
        text.push_str(&format!("{} inputs come later and were left out\n", summary.left_out));
    }
    let mut count = |what: &str, count: u64| text.push_str(&format!("{what:44} {count:>12}\n"));
    if notes.partial > 0 {
        count("frames with checksum left to hardware", notes.partial);
    }
    if notes.cut > 0 {
        count("left out, cut short by the capture", notes.cut);
    }
    if plan.send.is_some() {
        count("application bytes sent", summary.sent as u64);
    }
    if delivered > 0 {
        count("application bytes delivered", delivered);
    }
    text
}

/// Reads a port's capture.
fn read_input(spec: &PortSpec, checksums: Checksums, notes: &mut Notes) -> Result<Input> {
    let Some(path) = &spec.file else { return Ok(Input { port: spec.port, link: spec.link, frames: Vec::new() }) };
    let (interfaces, records) = capture::read(path)?;
    let chosen = choose_interface(&interfaces, spec).with_context(|| format!("cannot read {}", path.display()))?;
    let link = interfaces[chosen].link;
    let wanted = |bytes: &[u8]| match &spec.source {
        Some(source) => Headers::parse(link, bytes).is_some_and(|packet| source.matches(&packet)),
        None => true,
    };
    let all = records.len();
    let frames: Vec<Captured> = records
        .into_iter()
        .filter(|record| record.interface == chosen && !capture::is_sent(record))
        .filter(|record| wanted(&record.bytes))
        .filter_map(|record| captured(link, record, checksums, notes))
        .collect();
    if frames.is_empty() && all > 0 {
        tell!("warning: of the {all} frames in {} none arrives at port {}", path.display(), spec.port);
    }
    Ok(Input { port: spec.port, link, frames })
}

/// A captured frame as the function gets it; `None` if the capture did not keep what it needs.
fn captured(link: LinkType, record: CaptureRecord, checksums: Checksums, notes: &mut Notes) -> Option<Captured> {
    let CaptureRecord { time, bytes, original_length, comment, .. } = record;
    let ignored = Offload { checksum: Checksum::Verified, ..Offload::default() };
    if (bytes.len() as u64) < u64::from(original_length) {
        let read = weftwire_core::Packet::parse(link, Frame { bytes: &bytes, offload: ignored }, &Formats::default());
        if read.is_err_and(|reason| reason == DropReason::Truncated) {
            notes.cut += 1;
            return None;
        }
    }
    let offload = match (comment.as_deref().and_then(marked), checksums) {
        (_, Checksums::Verify) => Offload::default(),
        (Some(offload), Checksums::Partial) => offload,
        (None, Checksums::Partial) if checksum_is_partial(link, &bytes) => {
            notes.partial += 1;
            Offload { checksum: Checksum::Partial, ..Offload::default() }
        }
        (None, Checksums::Partial) => Offload::default(),
        (mark, Checksums::Ignore) => Offload { checksum: Checksum::Verified, ..mark.unwrap_or_default() },
    };
    Some(Captured { time, bytes: restored(link, bytes, offload), offload })
}

/// The interface asked for; else the one named after the port; else the only one.
fn choose_interface(interfaces: &[CaptureInterface], spec: &PortSpec) -> Result<usize> {
    let own = format!("port {}", spec.port);
    let wanted = spec.interface.as_deref().unwrap_or(&own);
    if let Some(index) = interfaces.iter().position(|interface| interface.name == wanted) {
        return Ok(index);
    }
    let names: Vec<String> = interfaces.iter().map(|interface| format!("`{}`", interface.name)).collect();
    match (&spec.interface, interfaces.len()) {
        (Some(name), _) => bail!("it has no interface `{name}`; there are: {}", names.join(", ")),
        (None, 0) => bail!("it has no interface and no frames"),
        (None, 1) => Ok(0),
        (None, _) => bail!("it has several interfaces; choose one with ,interface=NAME: {}", names.join(", ")),
    }
}

/// Shows how far the replay is, on a terminal, and stops it on Ctrl-C.
fn progress(stop: &StopSignal) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
    let mut line = ProgressLine::begin();
    move |progress| {
        let share = progress.done as f64 / progress.total.max(1) as f64;
        line.tell(share, format_args!("{} of {} inputs, {} s", progress.done, progress.total, progress.now));
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The replay's output files.
struct Files {
    capture: Option<(PendingFile, CaptureWriter<Writer>)>,
    ports: Vec<(Port, LinkType)>,
    trace: Option<(PendingFile, Writer)>,
    receive: Option<(PendingFile, Writer)>,
    delivered: u64,
}

impl Files {
    fn create(arguments: &Arguments, links: &Ports) -> Result<Files> {
        let pending = |path: Option<&Path>| {
            path.map(|path| {
                let mut file = PendingFile::create(path)?;
                let writer = file.take_writer();
                anyhow::Ok((file, writer))
            })
            .transpose()
        };
        let interfaces: Vec<CaptureInterface> =
            links.iter().map(|(port, link)| CaptureInterface { name: format!("port {port}"), link }).collect();
        let capture = match pending(arguments.out.as_deref())? {
            Some((file, writer)) => Some((file, CaptureWriter::pcapng(writer, &interfaces)?)),
            None => None,
        };
        Ok(Files {
            capture,
            ports: links.iter().collect(),
            trace: pending(arguments.trace.as_deref())?,
            receive: pending(arguments.receive.as_deref())?,
            delivered: 0,
        })
    }

    fn frame(&mut self, at: Time, port: Port, frame: &Frame<'_>, comment: Option<&str>) -> io::Result<()> {
        let Some((_, writer)) = &mut self.capture else { return Ok(()) };
        // What a function sends to a port that is not there is counted, not captured.
        let Some(interface) = self.ports.iter().position(|(known, _)| *known == port) else { return Ok(()) };
        let (bytes, mark) = recorded(self.ports[interface].1, frame);
        writer.write(at, interface, &bytes, comment.or(mark.as_deref())).map_err(io::Error::other)
    }

    /// Gives all files their names.
    fn finish(self) -> Result<()> {
        if let Some((file, writer)) = self.capture {
            file.finish(writer.into_inner())?;
        }
        for (file, writer) in [self.trace, self.receive].into_iter().flatten() {
            file.finish(writer)?;
        }
        Ok(())
    }
}

impl Sink for Files {
    fn arrival(&mut self, at: Time, port: Port, frame: &Frame<'_>) -> io::Result<()> {
        self.frame(at, port, frame, None)
    }

    fn departure(&mut self, at: Time, port: Port, bytes: &[u8], offload: Offload) -> io::Result<()> {
        self.frame(at, port, &Frame { bytes, offload }, Some(SENT))
    }

    fn deliver(&mut self, _: FlowId, bytes: &[u8]) -> io::Result<()> {
        self.delivered += bytes.len() as u64;
        self.receive.as_mut().map_or(Ok(()), |(_, writer)| writer.write_all(bytes))
    }

    fn notice(&mut self, at: Time, flow: FlowId, name: &str, value: i64) -> io::Result<()> {
        tell!("{at} flow {flow}: {name} {value}");
        Ok(())
    }

    fn trace(&mut self, record: &TraceRecord) -> io::Result<()> {
        let Some((_, writer)) = &mut self.trace else { return Ok(()) };
        serde_json::to_writer(&mut *writer, record)?;
        writer.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ports() {
        let spec: PortSpec = "1=a,b.pcap,source=10.0.0.1".parse().unwrap();
        assert_eq!((spec.port, spec.file), (Port(1), Some("a,b.pcap".into())));
        assert_eq!(spec.source, Some(Source::Ip([10, 0, 0, 1].into())));
        let spec: PortSpec = "2=none,ip".parse().unwrap();
        assert_eq!((spec.port, spec.file, spec.link), (Port(2), None, LinkType::Ip));
        assert_eq!("3".parse::<PortSpec>().unwrap().link, LinkType::Ethernet);
        assert_eq!("1=a.pcapng,interface=port 2".parse::<PortSpec>().unwrap().interface.as_deref(), Some("port 2"));
    }

    #[test]
    fn refuses_other_ports_with_a_reason() {
        for (text, reason) in [
            ("0=a", "from 1 to 65535"),
            ("x=a", "from 1 to 65535"),
            ("1=a.pcap,ip", "without a capture"),
            ("1=none,source=10.0.0.1", "this port has none"),
            ("1=a.pcap,source=host", "neither an IP address"),
        ] {
            let error = text.parse::<PortSpec>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
