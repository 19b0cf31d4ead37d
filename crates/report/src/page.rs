//! One HTML page of everything: no network, no scripts, light or dark as the reader has it.

use crate::connection::{Connection, Tally};
use crate::{ladder, plot};
use std::fmt::Write as _;
use weftwire_core::Port;
use weftwire_draw::escape_markup;
use weftwire_draw::html::{self, Cell, section, table};
use weftwire_draw::{document, seconds};
use weftwire_explain::{Form, explain, states};
use weftwire_image::Image;

/// What a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Its title.
    pub title: &'a str,
    /// The machine, if it is at hand: its state diagram and rule table.
    pub image: Option<&'a Image>,
    /// The connection.
    pub connection: &'a Connection,
    /// Its number among all connections of the capture, from 1, and how many there are.
    pub number: (usize, usize),
}

/// The whole page.
pub fn page(page: &Page<'_>) -> String {
    let connection = page.connection;
    let mut body = String::new();
    let _ = writeln!(body, "<header><h1>{}</h1>", escape_markup(page.title));
    facts(&mut body, page);
    body.push_str("</header>\n");
    section(
        &mut body,
        "Packets",
        "Time runs down. Numbers are relative to each side's first; point at an arrow for the \
        numbers on the wire. An arrow without a label is the packet beside it, sent on.",
        || ladder(connection, page.image.map_or("function", |image| image.name.as_str())),
    );
    section(
        &mut body,
        "Bytes over time",
        "Each stroke is a packet's payload, from its first byte to its last.",
        || plot(connection),
    );
    section(&mut body, "Counts", "", || tallies(connection));
    if let Some(image) = page.image {
        section(&mut body, "States", "", || states(image).svg(&image.name));
        body.push_str("<section class=\"rules-part\">\n");
        body.push_str(&explain(image, Form::Html));
        body.push_str("</section>\n");
    }
    document(page.title, &body)
}

fn facts(body: &mut String, page: &Page<'_>) {
    let connection = page.connection;
    let duration = connection.exchanges.last().map_or(0, |last| connection.since_start(last));
    let mut facts = vec![
        ("transport", if connection.is_tcp { "TCP" } else { "UDP" }.to_owned()),
        ("client", connection.client.to_string()),
        ("server", connection.server.to_string()),
        ("lasted", format!("{} s", seconds(duration))),
        ("connection", format!("{} of {}", page.number.0, page.number.1)),
    ];
    if let Some(image) = page.image {
        facts.insert(0, ("machine", image.name.clone()));
    }
    html::facts(body, &facts);
}

fn tallies(connection: &Connection) -> String {
    let heads =
        ["port", "direction", "packets", "payload bytes", "repeated", "late", "pure ACKs", "with SACK", "resets"];
    let mut tallies: Vec<_> = connection.tallies().into_iter().collect();
    tallies.sort_by_key(|((port, inbound), _)| (*port, !inbound));
    let row = |((port, inbound), tally): ((Port, bool), Tally)| {
        let counts = [
            tally.packets,
            tally.payload,
            tally.repeated,
            tally.late,
            tally.pure_acknowledgments,
            tally.with_sack,
            tally.resets,
        ];
        let mut cells = vec![Cell::text(port.to_string()), Cell::text(if inbound { "arrived" } else { "left" })];
        cells.extend(counts.map(Cell::count));
        cells
    };
    table(&heads, tallies.into_iter().map(row))
}
