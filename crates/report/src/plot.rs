//! The time-sequence plot (after tcptrace): bytes over time, one panel a direction and port, with the acknowledgments
//! that answer them, SACK blocks, and repeated bytes.

use crate::connection::{Connection, Exchange, Standing};
use std::collections::BTreeSet;
use weftwire_core::Port;
use weftwire_draw::Axis;
use weftwire_draw::Unit;
use weftwire_draw::chart::{Chart, Shape, stack};

/// Draws the panels of one connection, or an empty text if no direction carries more than one packet of data.
pub fn plot(connection: &Connection) -> String {
    let end = connection.exchanges.iter().map(|exchange| connection.since_start(exchange)).max().unwrap_or(0);
    let charts: Vec<Chart> = panels(connection).iter().map(|panel| chart(connection, panel, end.max(1))).collect();
    stack(&charts)
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

fn chart(connection: &Connection, panel: &Panel<'_>, end: i64) -> Chart {
    let last = |exchange: &Exchange| exchange.sequence + i64::from(exchange.transport.payload);
    let low = panel.data.iter().map(|exchange| exchange.sequence).min().unwrap_or(0).min(0);
    let high = panel.data.iter().map(|exchange| last(exchange)).max().unwrap_or(1);
    let (from, to) = if panel.from_client { ("client", "server") } else { ("server", "client") };
    let place = if panel.inbound { "arriving at" } else { "leaving" };
    let time = |exchange: &Exchange| connection.since_start(exchange) as f64 / 1e9;
    let mut chart = Chart::new(
        &format!("{from} to {to}, {place} port {}", panel.port),
        Axis { ends: (Some(0.0), Some(end as f64 / 1e9)), ..Axis::new("time", Unit::Seconds) },
        Axis { ends: (Some(low as f64), Some(high as f64)), ..Axis::new("", Unit::Bytes) },
    );
    let kinds = [
        (Standing::New, "data", "data"),
        (Standing::Late, "late", "late"),
        (Standing::Repeated, "repeated", "repeated"),
    ];
    for (standing, class, name) in kinds {
        let of_kind = panel.data.iter().filter(|exchange| exchange.standing == standing);
        let strokes = of_kind.map(|exchange| (time(exchange), exchange.sequence as f64, last(exchange) as f64));
        chart.add_as(class, name, Shape::Strokes(strokes.collect()));
    }
    // The stair rises with each acknowledgment of more, and goes on to the end.
    let (mut stair, mut highest) = (Vec::new(), i64::MIN);
    for exchange in &panel.answers {
        if let Some(acknowledged) = exchange.acknowledgment.filter(|number| *number > highest) {
            stair.push((time(exchange), acknowledged.clamp(low, high) as f64));
            highest = acknowledged;
        }
    }
    stair.extend(stair.last().map(|(_, value)| (end as f64 / 1e9, *value)));
    chart.add_as("stair", "acknowledged", Shape::Step(stair));
    let bars = panel.answers.iter().flat_map(|exchange| {
        let edge = |number: i64| number.clamp(low, high) as f64;
        exchange.sack.iter().map(move |(left, right)| (time(exchange), edge(*left), edge(*right)))
    });
    chart.add_as("sack", "SACK", Shape::Strokes(bars.collect()));
    chart.series.retain(|series| !series.shape.is_empty());
    // Acknowledgments lie under the data, repeated bytes on top.
    let order = ["stair", "sack", "data", "late", "repeated"];
    chart.series.sort_by_key(|series| order.iter().position(|class| Some(*class) == series.class));
    chart
}
