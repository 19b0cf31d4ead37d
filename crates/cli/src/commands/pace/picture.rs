//! Pictures of an envelope and of its table's errors.

use anyhow::Result;
use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::{Axis, Unit, alone, document};
use weftwire_pace::{Envelope, Report, Solver, TimeUnit};

/// Points of a curve.
const POINTS: u32 = 400;
/// Packets drawn at most.
const MOST_PACKETS: u64 = 100_000;
/// Packets drawn if no time is asked for.
const FEW_PACKETS: u64 = 32;

/// What to draw.
pub struct Picture<'a> {
    /// The envelope as it was written.
    pub text: &'a str,
    /// The envelope.
    pub envelope: &'a Envelope,
    /// How far its table is from it.
    pub report: &'a Report,
    /// The time to draw, in the envelope's unit.
    pub until: Option<f64>,
}

impl Picture<'_> {
    /// One SVG picture.
    pub fn svg(&self) -> Result<String> {
        Ok(alone(&stack(&self.charts()?)))
    }

    /// A page with the pictures and the report in words.
    pub fn page(&self, words: &str) -> Result<String> {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let body = format!(
            "<header><h1>{}</h1></header>\n<section>\n{}</section>\n<section>\n<pre>{}</pre>\n</section>\n",
            escaped(self.text),
            stack(&self.charts()?),
            escaped(words)
        );
        Ok(document(self.text, &body))
    }

    fn charts(&self) -> Result<Vec<Chart>> {
        let mut solver = Solver::new(self.envelope);
        let mut packets = Vec::new();
        for n in 1..=MOST_PACKETS {
            let time = solver.time_of_packet(n)?;
            if self.until.map_or(n > FEW_PACKETS, |until| time > until) {
                break;
            }
            packets.push((time, n as f64));
        }
        let end = self.until.or(packets.last().map(|last| last.0)).unwrap_or(1.0).max(1e-9);
        let axis = || match self.envelope.unit {
            TimeUnit::Second => Axis::new("time", Unit::Seconds),
            TimeUnit::RoundTrip => Axis::new("time, RTT", Unit::Plain),
        };
        let rate: Vec<(f64, f64)> = (0..=POINTS)
            .map(|point| end * f64::from(point) / f64::from(POINTS))
            .filter_map(|time| Some((time, self.envelope.rate(time)?)))
            .collect();
        let mut charts = Vec::new();
        if !rate.is_empty() {
            let name = format!("packets per {}", self.envelope.unit.name());
            let mut chart = Chart::new(&format!("Rate: {}", self.text), axis(), Axis::new(&name, Unit::Plain));
            chart.add("rate", Shape::Line(rate));
            chart.height = 180.0;
            charts.push(chart);
        }
        let mut chart = Chart::new("Packets", axis(), Axis::new("packet", Unit::Plain));
        chart.add("sent", Shape::Step(packets.clone()));
        chart.add("a packet", Shape::Dots(packets));
        charts.push(chart);

        let error = |of: fn(&weftwire_pace::report::Line) -> f64| {
            self.report.lines.iter().map(|line| (line.packet as f64, of(line))).collect()
        };
        let numbers = || Axis::logarithmic("packet", Unit::Plain);
        let mut chart =
            Chart::new("Error of the table's gaps", numbers(), Axis::logarithmic("relative error", Unit::Plain));
        chart.add("relative", Shape::Line(error(weftwire_pace::report::Line::relative_error)));
        chart.height = 180.0;
        charts.push(chart);
        let mut chart = Chart::new("Error of the times", numbers(), Axis::new("ticks late", Unit::Plain));
        chart.add("ticks", Shape::Line(error(|line| line.ticks_late)));
        chart.height = 140.0;
        charts.push(chart);
        Ok(charts)
    }
}
