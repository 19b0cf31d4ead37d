//! `weft pace`: packets paced from a rate envelope.

mod picture;

use crate::console;
use crate::output;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_catalog::file::{self, Kind};
use weftwire_linux::signals::StopSignal;
use weftwire_pace::pieces::Pieces;
use weftwire_pace::table::{CompileError, Then};
use weftwire_pace::{Envelope, Evolution, Form, Options, Report, Setting, Shape, Solver, TimeUnit};
use weftwire_sim::spec::parse_duration;

/// Pace packets from a rate envelope: times, tables for hardware, pictures.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the times of packets, one a line, from packet 1.
    Times(Times),
    /// Compile to the fixed-point table of a calendar's evolution block, and report its errors.
    Compile(Compile),
    /// Draw rate, packets and the table's errors.
    Plot(Plot),
}

/// The envelope and what its text leaves open.
#[derive(Args)]
struct Given {
    /// The envelope: a shape (slow_start, "bbr(40 pkt/RTT)"), a formula ("R(t) = 10 pkt/s + 2 pkt/s^2 * t"), or a table (.csv)
    #[arg(value_name = "SHAPE")]
    envelope: String,
    /// The round-trip time, e.g. 100ms: times are in seconds then
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    rtt: Option<Duration>,
    /// Bytes of a packet, for rates in bits and bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    packet_size: Option<u32>,
    /// What a rate of 1 in a table (.csv) is, e.g. "1 pkt/s", "1 Mbit/s"; its times are in that unit of time
    #[arg(long, value_name = "RATE", default_value = "1 pkt/s")]
    table_rate: String,
}

/// How to compile.
#[derive(Args)]
struct TableOptions {
    /// The form of the table [default: interpolated if that is exact for ever, else polynomial if it can be]
    #[arg(long, value_enum)]
    form: Option<FormName>,
    /// At most so many entries
    #[arg(long, value_name = "N", default_value_t = 4096)]
    entries: u32,
    /// Bits of a gap
    #[arg(long, value_name = "N", default_value_t = 32)]
    bits: u8,
    /// Follow an envelope that does not repeat so far [default: 1048576, or as far as the entries reach]
    #[arg(long, value_name = "N")]
    packets: Option<u32>,
    /// Greatest relative error of a gap in an interpolated table
    #[arg(long, value_name = "SHARE", default_value_t = 5e-6)]
    gap_error: f64,
    /// Compare so many packets
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=4_000_000))]
    check: u64,
    /// The tick that errors are told in, e.g. 5ns
    #[arg(long, value_name = "TIME", default_value = "5ns", value_parser = parse_duration)]
    tick: Duration,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormName {
    /// One rounded gap a packet, as in the paper
    Direct,
    /// One gap a packet, errors carried to the next
    Carried,
    /// One entry for a block of packets, errors carried
    Interpolated,
    /// No table: polynomials (linear, ramp, cubic) followed exactly for ever
    Polynomial,
}

#[derive(Args)]
struct Times {
    #[command(flatten)]
    given: Given,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    count: u64,
    /// Digits behind the point
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u8).range(0..=17))]
    digits: u8,
}

#[derive(Args)]
struct Compile {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    options: TableOptions,
    /// Where to write the table; - is standard output [default: only report]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the table for hardware here: gaps.mem, changes.mem, bands.mem and pace_parameters.svh
    #[arg(long, value_name = "DIR")]
    memory: Option<PathBuf>,
}

#[derive(Args)]
struct Plot {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    options: TableOptions,
    /// Where to write the picture, .svg or .html
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Draw this time, in the envelope's unit [default: the first 32 packets]
    #[arg(long, value_name = "UNITS")]
    until: Option<f64>,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Times(arguments) => times(arguments),
        Command::Compile(arguments) => compile(arguments),
        Command::Plot(arguments) => {
            let (envelope, evolution, report) = compiled(&arguments.given, &arguments.options, false)?;
            let text = &arguments.given.envelope;
            let form = arguments.output.extension().and_then(|extension| extension.to_str());
            let picture = picture::Picture { text, envelope: &envelope, report: &report, until: arguments.until };
            let drawn = match form {
                Some("svg") => picture.svg()?,
                Some("html") => picture.page(&describe(&evolution, &report, arguments.options.tick))?,
                _ => return Err(anyhow!("{}: a picture is a .svg or a .html file", arguments.output.display())),
            };
            output::text(Some(&arguments.output), &drawn)
        }
    }
}

fn times(arguments: &Times) -> Result<()> {
    let envelope = arguments.given.envelope()?;
    let mut solver = Solver::new(&envelope);
    let mut text = String::new();
    let digits = usize::from(arguments.digits);
    let mut line = ProgressLine::begin();
    for n in 1..=arguments.count {
        let time = solver.time_of_packet(n)?;
        let _ = writeln!(text, "{time:.digits$}");
        if n.is_multiple_of(64) {
            line.tell(n as f64 / arguments.count as f64, format_args!("{n} of {} packets", arguments.count));
        }
        if text.len() > 1 << 16 {
            line.clear();
            output::text(None, &text)?;
            text.clear();
        }
    }
    drop(line);
    output::text(None, &text)
}

fn compile(arguments: &Compile) -> Result<()> {
    let (_, evolution, report) = compiled(&arguments.given, &arguments.options, arguments.memory.is_some())?;
    let description = describe(&evolution, &report, arguments.options.tick);
    // Up to here nothing is written; an interruption waits until all of these files are.
    let _stop = arguments.memory.is_some().then(StopSignal::install).transpose()?;
    if let Some(folder) = &arguments.memory {
        let files = weftwire_pace::memory::files(&evolution)?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, text) in files {
            output::text(Some(&folder.join(name)), &text)?;
        }
    }
    match arguments.output.as_deref() {
        Some(path) if path == Path::new("-") => {
            console::tell_text(format_args!("{description}"));
            output::text(None, &evolution.to_json())
        }
        path => {
            if let Some(path) = path {
                output::text(Some(path), &evolution.to_json())?;
            }
            console::say_text(format_args!("{description}"));
            Ok(())
        }
    }
}

/// Packets that are solved, of those that are to be.
struct Solving {
    line: ProgressLine,
    done: u64,
    all: u64,
}

impl Solving {
    fn begin() -> Solving {
        Solving { line: ProgressLine::begin(), done: 0, all: 0 }
    }

    /// So many more are to be solved.
    fn expect(&mut self, packets: u64) {
        self.all = self.done + packets;
    }

    fn tell(&mut self, packets: u64) {
        self.done += packets;
        let share = self.done as f64 / self.all.max(1) as f64;
        self.line.tell(share, format_args!("{} of {} packets", self.done.min(self.all), self.all));
    }
}

/// `table`: it must be a table, not a polynomial.
fn compiled(given: &Given, options: &TableOptions, table: bool) -> Result<(Envelope, Evolution, Report)> {
    let envelope = given.envelope()?;
    let mut solving = Solving::begin();
    let mut compile = |form: FormName| {
        let mut chosen = Options {
            form: match form {
                FormName::Direct => Form::Direct,
                FormName::Carried => Form::Carried,
                FormName::Interpolated => Form::Interpolated,
                FormName::Polynomial => Form::Polynomial,
            },
            entries: options.entries,
            word_bits: options.bits,
            gap_error: options.gap_error,
            ..Options::default()
        };
        chosen.packets = options.packets.unwrap_or(chosen.packets);
        let mut compile = |chosen: &Options| {
            let followed = match chosen.form {
                Form::Direct | Form::Carried => chosen.entries,
                Form::Interpolated => chosen.packets,
                Form::Polynomial => 0,
            };
            solving.expect(options.check + u64::from(followed));
            weftwire_pace::compile_watched(&envelope, &given.envelope, chosen, &mut |packets| solving.tell(packets))
        };
        match compile(&chosen) {
            Err(CompileError::TooManyEntries { reached, wanted, .. }) if options.packets.is_none() => {
                chosen.packets = chosen.packets.saturating_sub((wanted - reached) as u32).max(1);
                compile(&chosen)
            }
            done => done,
        }
    };
    let evolution = match options.form {
        Some(form) => compile(form)?,
        None => match compile(FormName::Interpolated) {
            Ok(exact) if table || exact.then != Then::Hold => exact,
            held if table => held?,
            held => compile(FormName::Polynomial).or(held)?,
        },
    };
    solving.expect(options.check);
    let ticks = options.ticks_per_unit(envelope.unit)?;
    let mut watch = |packets| solving.tell(packets);
    let report = weftwire_pace::measure_watched(&envelope, &evolution, options.check, ticks, &mut watch)?;
    Ok((envelope, evolution, report))
}

impl TableOptions {
    /// Ticks of a second, or of a round trip, which is taken for 100 ms.
    fn ticks_per_unit(&self, unit: TimeUnit) -> Result<u64> {
        let nanoseconds = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::RoundTrip => 100_000_000,
        };
        u64::try_from(nanoseconds / self.tick.as_nanos().max(1))
            .ok()
            .filter(|ticks| *ticks > 0)
            .context("the tick is too long")
    }
}

impl Given {
    fn envelope(&self) -> Result<Envelope> {
        let setting = Setting {
            round_trip: self.rtt.map(|rtt| rtt.as_secs_f64()).filter(|seconds| *seconds > 0.0),
            packet_size: self.packet_size.map(f64::from),
        };
        let parse =
            |text: &str| weftwire_pace::parse(text, &setting).map_err(|fault| anyhow!("{}", fault.to_text(text)));
        if !self.envelope.ends_with(".csv") {
            return parse(&self.envelope);
        }
        let unit = parse(&format!("constant({})", self.table_rate)).context("--table-rate is no rate")?;
        let scale = unit.rate(0.0).context("--table-rate is no rate")?;
        let text = file::text(Path::new(&self.envelope), Kind::Source)?;
        let pieces =
            Pieces::from_csv(&text, scale).map_err(|fault| anyhow!("{}: {}", self.envelope, fault.to_text(&text)))?;
        Ok(Envelope { shape: Shape::Pieces { origin: 1.0, pieces }, unit: unit.unit })
    }
}

/// The table and its errors in words.
fn describe(evolution: &Evolution, report: &Report, tick: Duration) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<16}{text}");
    };
    let unit = evolution.unit.name();
    let form = match evolution.form {
        Form::Direct => "direct: one rounded gap a packet",
        Form::Carried => "carried: one gap a packet, errors carried to the next",
        Form::Interpolated => "interpolated: one entry a block of packets, errors carried",
        Form::Polynomial => "polynomial: differences followed, nothing is rounded",
    };
    line("envelope", evolution.envelope.clone());
    line("form", form.to_owned());
    if let Some(polynomial) = &evolution.polynomial {
        line(
            "registers",
            format!(
                "{} of {} bits, {} of them below a packet",
                polynomial.coefficients.len(),
                polynomial.state_bits,
                polynomial.packet_bits
            ),
        );
        line("grain", format!("2^-{} {unit}", evolution.fraction_bits));
        let then = match polynomial.followed_packets() {
            packets if packets.is_finite() => {
                format!("exact for {packets:.1e} packets, until a packet takes a grain; then the last gap stays")
            }
            _ => "exact for ever".to_owned(),
        };
        line("then", then);
    } else {
        describe_table(evolution, &mut line);
    }
    line(
        "compared",
        format!(
            "{} packets, ticks of {} ns{}",
            report.packets,
            tick.as_nanos(),
            match evolution.unit {
                TimeUnit::RoundTrip => ", round trips of 100 ms",
                TimeUnit::Second => "",
            }
        ),
    );
    line("gap error", format!("{:.2e} of the gap at most, behind packet {}", report.gap_error.0, report.gap_error.1));
    line("time error", format!("{:.2e} {unit} at most, at packet {}", report.time_error.0, report.time_error.1));
    line(
        "in ticks",
        format!(
            "{:.3} at most, at packet {}; {:.3} at the end",
            report.tick_error.0, report.tick_error.1, report.drift
        ),
    );
    let _ = writeln!(
        out,
        "\n{:>10}  {:>14}  {:>14}  {:>9}  {:>9}  {:>12}",
        "packet", "gap", "table", "absolute", "relative", "ticks late"
    );
    let mut wanted = 1;
    for found in &report.lines {
        if found.packet < wanted {
            continue;
        }
        wanted = found.packet.saturating_mul(4);
        let _ = writeln!(
            out,
            "{:>10}  {:>14.6e}  {:>14.6e}  {:>9.1e}  {:>9.1e}  {:>12.3}",
            found.packet,
            found.exact,
            found.table,
            found.absolute_error(),
            found.relative_error(),
            found.ticks_late
        );
    }
    out
}

/// A table of entries, and what comes after them.
fn describe_table(evolution: &Evolution, line: &mut impl FnMut(&str, String)) {
    let words = if evolution.changes.is_empty() { "gaps" } else { "gaps and changes" };
    let (entries, bits, kilobytes) =
        (evolution.gaps.len(), evolution.word_bits, evolution.memory_bits() as f64 / 8192.0);
    line(
        "table",
        format!("{entries} entries of {bits} bits ({words}), {kilobytes:.2} KiB, in {} bands", evolution.bands.len()),
    );
    let unit = evolution.unit.name();
    line("grain", format!("2^-{} {unit}, counter of {} bits", evolution.fraction_bits, evolution.input_bits));
    let then = match evolution.then {
        Then::Hold => {
            let last = evolution.first + evolution.packets();
            format!("the last gap stays: the times drift behind packet {last}")
        }
        Then::Repeat { band, numerator: 0, .. } => format!("from band {band} again, exactly"),
        Then::Repeat { band, numerator, denominator, .. } => {
            format!("from band {band} again, exactly: {numerator}/{denominator} of a grain more each round")
        }
        Then::Double { band, octaves } => {
            format!("from band {band} again {octaves} times, each with twice the packets")
        }
        Then::Draw { seed } => format!("drawn at random, seed {seed}"),
    };
    line("then", then);
}
