//! `weft report`: a capture of a run as a page for people.

use crate::console::tell;
use crate::load;
use crate::output;
use anyhow::{Result, bail};
use clap::Args;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use weftwire_capture::CaptureRecord;
use weftwire_catalog::capture;
use weftwire_core::{LinkType, Port};
use weftwire_report::{Connection, Observed, Page, connections, page};

/// Most connections that the error for a wrong --flow lists.
const MOST_LISTED: usize = 20;

/// Make one HTML page of a capture with one interface a port, as `weft replay` and `weft run` write it.
#[derive(Args)]
pub struct Arguments {
    /// The capture
    #[arg(long, value_name = "FILE.pcapng")]
    capture: PathBuf,
    /// The machine that ran: adds its state diagram and rule table
    #[arg(long, value_name = "IMAGE")]
    image: Option<PathBuf>,
    /// Which connection, by order of first packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    flow: usize,
    /// Write to this file; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// The page's title [default: the machine's name, or the capture's]
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    includes: load::Includes,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let image = {
        let catalog = arguments.includes.catalog()?;
        arguments.image.as_deref().map(|image| catalog.image(image)).transpose()?
    };
    let capture = read(&arguments.capture)?;
    let found = connections(&observed(&capture));
    let number = arguments.flow;
    let Some(connection) = number.checked_sub(1).and_then(|index| found.get(index)) else {
        bail!("{} has no connection {number}; {}", arguments.capture.display(), list(&found));
    };
    let title = arguments.title.clone().unwrap_or_else(|| match &image {
        Some(image) => format!("A connection through {}", image.name),
        None => arguments.capture.display().to_string(),
    });
    let show = Page { title: &title, image: image.as_deref(), connection, number: (number, found.len()) };
    output::text(Some(&arguments.out), &page(&show))?;
    if arguments.out != Path::new("-") {
        let ends = format!("{} - {}", connection.client, connection.server);
        tell!("{}: connection {number} of {}, {ends}", arguments.out.display(), found.len());
    }
    Ok(())
}

fn list(found: &[Connection]) -> String {
    if found.is_empty() {
        return "it has no TCP or UDP packets".into();
    }
    let mut text = String::from("there are:");
    for (index, connection) in found.iter().take(MOST_LISTED).enumerate() {
        let kind = if connection.is_tcp { "tcp" } else { "udp" };
        let (client, server) = (connection.client, connection.server);
        let packets = connection.exchanges.len();
        let _ = write!(text, "\n  {}  {client} - {server} {kind}, {packets} packets", index + 1);
    }
    if found.len() > MOST_LISTED {
        let _ = write!(text, "\n  and {} more", found.len() - MOST_LISTED);
    }
    text
}

/// A whole capture.
struct Capture {
    /// Port and link type of each interface.
    interfaces: Vec<(Port, LinkType)>,
    records: Vec<CaptureRecord>,
}

fn read(path: &Path) -> Result<Capture> {
    let (interfaces, records) = capture::read(path)?;
    let interfaces = interfaces.iter().enumerate().map(|(index, interface)| {
        // `weft replay` names interfaces after their ports; others count in order.
        let named = interface.name.strip_prefix("port ").and_then(|number| number.parse().ok());
        (Port(named.unwrap_or(u16::try_from(index + 1).unwrap_or(u16::MAX))), interface.link)
    });
    Ok(Capture { interfaces: interfaces.collect(), records })
}

fn observed(capture: &Capture) -> Vec<Observed<'_>> {
    // Functions' captures mark what was sent; a capture without any mark says nothing of directions.
    let says = capture.records.iter().any(capture::is_sent);
    let known = capture.records.iter().filter_map(|record| {
        let (port, link) = *capture.interfaces.get(record.interface)?;
        let inbound = says.then(|| !capture::is_sent(record));
        Some(Observed { at: record.time, port, link, inbound, bytes: &record.bytes })
    });
    known.collect()
}
