//! The summary at the end of a run.

use crate::port::PortCounters;
use std::fmt;
use std::time::Duration;
use weftwire_core::Port;
use weftwire_core::inspect::Counters;
use weftwire_text::printable;

/// What a run did. Its `Display` is an aligned table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How long it ran.
    pub duration: Duration,
    /// The ports.
    pub ports: Vec<PortReport>,
    /// The function's own counts.
    pub function: Counters,
    /// Frames that the function sent to ports which this run has not got.
    pub no_port: u64,
    /// Another process serves in its place now.
    pub replaced: bool,
    /// Debug records that slow clients of the control socket lost.
    pub debug_lost: u64,
}

/// What happened on a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortReport {
    /// The port.
    pub port: Port,
    /// Its interface.
    pub name: String,
    /// What was counted.
    pub counters: PortCounters,
    /// How often the interface was gone.
    pub times_gone: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replaced = if self.replaced { ", and was replaced" } else { "" };
        writeln!(f, "ran for {:.3} s{replaced}", self.duration.as_secs_f64())?;
        let name_width = self.ports.iter().map(|port| port.name.len()).max().unwrap_or(0).max("interface".len());
        writeln!(
            f,
            "port  {:name_width$}  {:>12} {:>16}  {:>12} {:>16}  {:>12}",
            "interface", "frames in", "bytes in", "frames out", "bytes out", "kernel drops"
        )?;
        for PortReport { port, name, counters, .. } in &self.ports {
            writeln!(
                f,
                "{port:>4}  {name:name_width$}  {:>12} {:>16}  {:>12} {:>16}  {:>12}",
                counters.frames_in, counters.bytes_in, counters.frames_out, counters.bytes_out, counters.kernel_drops
            )?;
        }
        for PortReport { port, counters, times_gone, .. } in &self.ports {
            nonzero(f, &format!("port {port} times its interface was gone"), *times_gone)?;
            for (reason, count) in &counters.kernel_drop_reasons {
                line(f, &format!("port {port} kernel drops: {reason}"), *count)?;
            }
            for (reason, count) in counters.send_errors.iter() {
                line(f, &format!("port {port} not sent: {reason}"), count)?;
            }
            nonzero(f, &format!("port {port} unusable frames"), counters.unusable)?;
            nonzero(f, &format!("port {port} super-frames cut in software"), counters.segmented)?;
        }
        nonzero(f, "frames to ports that are not there", self.no_port)?;
        nonzero(f, "debug records lost by slow clients", self.debug_lost)?;
        write_counters(f, &self.function)
    }
}

/// Writes a function's counters as an aligned table.
///
/// # Errors
/// Only those of the writer.
pub fn write_counters(f: &mut dyn fmt::Write, counters: &Counters) -> fmt::Result {
    line(f, "frames in", counters.frames_in)?;
    line(f, "frames out", counters.frames_out)?;
    nonzero(f, "frames passed untouched", counters.frames_passed)?;
    line(f, "flows created", counters.flows_created)?;
    line(f, "flows live", counters.flows_live)?;
    line(f, "flows at once, at most", counters.flows_peak)?;
    nonzero(f, "flows expired", counters.flows_expired)?;
    nonzero(f, "flows evicted", counters.flows_evicted)?;
    for (reason, count) in &counters.drops {
        nonzero(f, &format!("dropped: {reason}"), *count)?;
    }
    for (row, count) in &counters.rows {
        nonzero(f, row, *count)?;
    }
    Ok(())
}

fn nonzero(f: &mut dyn fmt::Write, name: &str, count: u64) -> fmt::Result {
    if count == 0 { Ok(()) } else { line(f, name, count) }
}

fn line(f: &mut dyn fmt::Write, name: &str, count: u64) -> fmt::Result {
    // Names come from the function, which somebody else may have written.
    writeln!(f, "{:44} {count:>12}", printable(name))
}
