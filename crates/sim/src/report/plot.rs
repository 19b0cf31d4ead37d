//! The time-sequence plot (after tcptrace): bytes over time, one panel a direction and port, with the acknowledgments
//! that answer them, SACK blocks, and repeated bytes.

use super::connection::{Connection, Exchange, Standing};
use super::grouped;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weftwire_core::Port;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 36.0;
const PANEL: f64 = 250.0;
const FOOT: f64 = 46.0;

/// Draws the panels of one connection, or an empty text if no direction carries more than one packet of data.
pub fn plot(connection: &Connection) -> String {
    let panels = panels(connection);
    if panels.is_empty() {
        return String::new();
    }
    let end = connection.exchanges.iter().map(|exchange| connection.since_start(exchange)).max().unwrap_or(0);
    let step = TOP + PANEL + FOOT;
    let height = panels.len() as f64 * step;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft-plot\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>Bytes over time</title>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">", index as f64 * step);
        draw(&mut out, connection, panel, end.max(1));
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// One direction at one port.
struct Panel<'a> {
    port: Port,
    from_client: bool,
    inbound: bool,
    data: Vec<&'a Exchange>,
    /// Packets of the other direction, which acknowledge.
    answers: Vec<&'a Exchange>,
}

/// A panel for each direction and port with data; a direction that leaves as it arrived is shown once.
fn panels(connection: &Connection) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for from_client in [true, false] {
        for inbound in [true, false] {
            let ports: BTreeSet<Port> = connection
                .exchanges
                .iter()
                .filter(|exchange| exchange.from_client == from_client && exchange.inbound == inbound)
                .map(|exchange| exchange.port)
                .collect();
            for port in ports {
                let at_port = |exchange: &&Exchange| exchange.port == port;
                let data: Vec<&Exchange> = connection
                    .exchanges
                    .iter()
                    .filter(at_port)
                    .filter(|exchange| exchange.from_client == from_client && exchange.inbound == inbound)
                    .filter(|exchange| exchange.transport.payload > 0)
                    .collect();
                let answers = connection.exchanges.iter().filter(at_port);
                let answers = answers.filter(|exchange| exchange.from_client != from_client).collect();
                let shown = panels.iter().any(|panel| {
                    let numbers = |data: &[&Exchange]| -> Vec<(i64, u32)> {
                        data.iter().map(|exchange| (exchange.sequence, exchange.transport.payload)).collect()
                    };
                    panel.from_client == from_client && numbers(&panel.data) == numbers(&data)
                });
                if data.len() > 1 && !shown {
                    panels.push(Panel { port, from_client, inbound, data, answers });
                }
            }
        }
    }
    panels
}

/// Where values come to lie in a panel.
struct Scale {
    end: i64,
    low: i64,
    high: i64,
}

impl Scale {
    fn x(&self, nanoseconds: i64) -> f64 {
        LEFT + nanoseconds as f64 / self.end as f64 * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, bytes: i64) -> f64 {
        let share = (bytes - self.low) as f64 / (self.high - self.low).max(1) as f64;
        TOP + PANEL * (1.0 - share)
    }
}

fn draw(out: &mut String, connection: &Connection, panel: &Panel<'_>, end: i64) {
    let last = |exchange: &&Exchange| exchange.sequence + i64::from(exchange.transport.payload);
    let low = panel.data.iter().map(|exchange| exchange.sequence).min().unwrap_or(0).min(0);
    let high = panel.data.iter().map(last).max().unwrap_or(1);
    let scale = Scale { end, low, high };
    let (from, to) = if panel.from_client { ("client", "server") } else { ("server", "client") };
    let place = if panel.inbound { "arriving at" } else { "leaving" };
    let _ =
        writeln!(out, "<text class=\"head\" x=\"{LEFT}\" y=\"20\">{from} to {to}, {place} port {}</text>", panel.port);
    legend(out, panel);
    axes(out, &scale);
    acknowledgments(out, connection, panel, &scale);
    // Packets that fall on the same pixels are drawn once.
    let mut drawn = BTreeSet::new();
    let mut paths = [String::new(), String::new(), String::new()];
    for exchange in &panel.data {
        let x = scale.x(connection.since_start(exchange));
        let (bottom, top) = (scale.y(exchange.sequence), scale.y(last(exchange)));
        let kind = match exchange.standing {
            Standing::New => 0,
            Standing::Late => 1,
            Standing::Repeated => 2,
        };
        if drawn.insert((kind, (x * 2.0) as i64, (bottom * 2.0) as i64, (top * 2.0) as i64)) {
            let _ = write!(paths[kind], "M{x:.1} {bottom:.1}V{:.1}", top.min(bottom - 2.0));
        }
    }
    for (path, class) in paths.iter().zip(["data", "late", "repeated"]) {
        if !path.is_empty() {
            let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
}

/// The acknowledgments as a stair, the SACK blocks as bars.
fn acknowledgments(out: &mut String, connection: &Connection, panel: &Panel<'_>, scale: &Scale) {
    let (mut stair, mut bars) = (String::new(), String::new());
    let mut drawn = BTreeSet::new();
    let mut highest = i64::MIN;
    for exchange in &panel.answers {
        let x = scale.x(connection.since_start(exchange));
        if let Some(acknowledged) = exchange.acknowledgment.filter(|number| *number > highest) {
            let y = scale.y(acknowledged.clamp(scale.low, scale.high));
            if highest == i64::MIN {
                let _ = write!(stair, "M{x:.1} {y:.1}");
            } else if drawn.insert((0, (x * 2.0) as i64, (y * 2.0) as i64, 0)) {
                let _ = write!(stair, "H{x:.1}V{y:.1}");
            }
            highest = acknowledged;
        }
        for (left, right) in &exchange.sack {
            let (bottom, top) = (scale.y((*left).max(scale.low)), scale.y((*right).min(scale.high)));
            if drawn.insert((1, (x * 2.0) as i64, (bottom * 2.0) as i64, (top * 2.0) as i64)) {
                let _ = write!(bars, "M{x:.1} {bottom:.1}V{top:.1}");
            }
        }
    }
    if !stair.is_empty() {
        let _ = writeln!(out, "<path class=\"stair\" d=\"{stair}H{:.1}\"/>", WIDTH - RIGHT);
    }
    if !bars.is_empty() {
        let _ = writeln!(out, "<path class=\"sack\" d=\"{bars}\"/>");
    }
}

fn legend(out: &mut String, panel: &Panel<'_>) {
    let has = |standing| panel.data.iter().any(|exchange| exchange.standing == standing);
    let entries = [
        (true, "data", "data"),
        (has(Standing::Late), "late", "late"),
        (has(Standing::Repeated), "repeated", "repeated"),
        (panel.answers.iter().any(|exchange| exchange.acknowledgment.is_some()), "stair", "acknowledged"),
        (panel.answers.iter().any(|exchange| !exchange.sack.is_empty()), "sack", "SACK"),
    ];
    let mut right = WIDTH - RIGHT;
    for (_, class, text) in entries.iter().rev().filter(|(shown, ..)| *shown) {
        let _ = writeln!(
            out,
            "<text class=\"legend\" x=\"{right:.1}\" y=\"20\" text-anchor=\"end\">{text}</text>\
             <path class=\"{class} key\" d=\"M{:.1} 16h14\"/>",
            right - text.len() as f64 * 7.2 - 20.0
        );
        right -= text.len() as f64 * 7.2 + 40.0;
    }
}

fn axes(out: &mut String, scale: &Scale) {
    let bottom = TOP + PANEL;
    let _ = writeln!(
        out,
        "<rect class=\"plate\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{PANEL}\"/>",
        WIDTH - LEFT - RIGHT
    );
    for value in ticks(scale.low, scale.high) {
        let y = scale.y(value);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0,
            grouped(value)
        );
    }
    let (unit, name) = match scale.end {
        ..10_000 => (1, "nanoseconds"),
        10_000..10_000_000 => (1_000, "microseconds"),
        10_000_000..10_000_000_000 => (1_000_000, "milliseconds"),
        _ => (1_000_000_000, "seconds"),
    };
    for value in ticks(0, scale.end / unit) {
        let x = scale.x(value * unit);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            bottom + 17.0,
            grouped(value)
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"legend\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
         <text class=\"legend\" x=\"{:.1}\" y=\"20\" text-anchor=\"end\">bytes</text>",
        WIDTH - RIGHT,
        bottom + 34.0,
        LEFT - 8.0
    );
}

/// Round values from `low` to `high`, at most seven.
fn ticks(low: i64, high: i64) -> Vec<i64> {
    let rough = (high.saturating_sub(low).saturating_add(5) / 6).max(1);
    let power = 10_i64.pow(rough.ilog10());
    let step = [1, 2, 5, 10].into_iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough);
    let first = low.div_euclid(step) + i64::from(low.rem_euclid(step) != 0);
    (first..).map(|number| number * step).take_while(|value| *value <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(0, 10), [0, 2, 4, 6, 8, 10]);
        assert_eq!(ticks(0, 1), [0, 1]);
        assert_eq!(ticks(0, 0), [0]);
        assert_eq!(ticks(-3, 3), [-3, -2, -1, 0, 1, 2, 3]);
        for high in [7, 99, 1_000, 123_456_789] {
            assert!((2..=8).contains(&ticks(0, high).len()), "{high}");
        }
    }
}
