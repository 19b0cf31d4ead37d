//! `weft study applications`.

use crate::console::say;
use crate::folder::OutputFolder;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Result, bail};
use clap::Args;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weftwire_linux::signals::StopSignal;
use weftwire_study::applications::{Options, Study, StudyError, quantile};

#[derive(Args)]
pub struct Arguments {
    /// Packets of each of the market's feeds
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    packets: u32,
    /// Nanoseconds that the market's subscriber takes for a packet
    #[arg(long, value_name = "NS", default_value_t = 101, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    packet_ns: u64,
    /// Nanoseconds that it takes for each message
    #[arg(long, value_name = "NS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    message_ns: u64,
    /// What the feed asks of it if it filters by itself, in per cent of what it can do
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=200))]
    load: u32,
    /// Packets of a burst on average
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    burst: u32,
    /// Nanoseconds that the cache takes for a request
    #[arg(long, value_name = "NS", default_value_t = 550_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    cache_ns: u64,
    /// The same seed gives the same results, byte for byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write tables, pictures and the page into this folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let stop = StopSignal::install()?;
    // A folder that cannot be made is known before the work.
    let folder = OutputFolder::begin(&arguments.out)?;
    let options = Options {
        packets: arguments.packets,
        packet_ns: arguments.packet_ns,
        message_ns: arguments.message_ns,
        load: arguments.load,
        burst: arguments.burst,
        cache_ns: arguments.cache_ns,
        seed: arguments.seed,
    };
    let mut line = ProgressLine::begin();
    let study = Study::run(&options, &mut |share| {
        line.tell(share, "market, content and highway");
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(line);
    let study = match study {
        Err(StudyError::Interrupted) => bail!("interrupted; nothing was written"),
        study => study?,
    };
    write(folder.path(), &study)?;
    folder.finish()?;
    describe(&study, &arguments.out);
    Ok(())
}

fn write(folder: &Path, study: &Study) -> Result<()> {
    let texts = [
        ("figure-8.csv", study.figure_8_csv()),
        ("figure-8.svg", study.figure_8()),
        ("hot-content.csv", study.hot_csv()),
        ("figure-11.csv", study.figure_11_csv()),
        ("figure-11.svg", study.figure_11()),
        ("highway.csv", study.alerts_csv()),
        ("highway.svg", study.alerts()),
        ("report.html", study.page()),
    ];
    outputs::write_json(&folder.join("results.json"), study)?;
    texts.iter().try_for_each(|(name, text)| outputs::write_text(&folder.join(name), text))
}

/// The figures in numbers, on standard output.
fn describe(study: &Study, folder: &Path) {
    say!("messages of interest: microseconds of 50 %, 99 %, 99.9 % and all");
    for run in &study.market {
        let at = |share| quantile(&run.latencies_ns, share) as f64 / 1e3;
        say!(
            "{:<26} {:<6} {:>9.1} {:>9.1} {:>9.1} {:>9.1}   {} of {} messages, {} packets at the host",
            run.feed,
            run.filter,
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            run.latencies_ns.len(),
            run.wanted,
            run.packets_at_host
        );
    }
    say!("cold content: milliseconds of 50 %, 95 % and all");
    for run in &study.content {
        let at = |share| quantile(&run.cold_ns, share) as f64 / 1e6;
        say!(
            "{:<6} {:>9.2} {:>9.2} {:>9.2}   {} requests at the cache, {} hits",
            run.rules,
            at(0.5),
            at(0.95),
            at(1.0),
            run.at_cache,
            run.hits
        );
    }
    say!("highway         {} alerts", study.highway.len());
    say!("report          {}", folder.join("report.html").display());
}
