//! The ladder: time runs down, an arrow for each packet between the hosts and the function's ports.

use crate::connection::{Connection, Exchange, Standing};
use std::fmt::Write as _;
use weftwire_core::Port;
use weftwire_draw::escape_markup;
use weftwire_draw::{grouped, seconds};

const TIME_WIDTH: f64 = 92.0;
const SPAN: f64 = 350.0;
/// Least width of the function's box.
const BOX_WIDTH: f64 = 96.0;
const ROW_HEIGHT: f64 = 25.0;
const HEAD_HEIGHT: f64 = 66.0;
/// Longest name of the function, in characters.
const LONGEST_NAME: usize = 24;
/// Rows looked back for the arrival of a packet that leaves: a function answers a whole batch at one instant.
const LOOK_BACK: usize = 512;
/// Runs of ordinary packets longer than this are folded.
const LONGEST_RUN: usize = 8;
/// Of a folded run the first packets stay.
const KEPT_AHEAD: usize = 4;
/// Of a folded run the last packets stay.
const KEPT_BEHIND: usize = 2;
/// Greatest number of rows; the rest is counted.
const MOST_ROWS: usize = 400;

/// Draws one connection as a ladder. `name` is the function's; long runs of ordinary data are folded.
pub fn ladder(connection: &Connection, name: &str) -> String {
    let lanes = Lanes::new(connection, name);
    let rows = fold(rows(connection, &lanes));
    let mut picture = Picture { out: String::new(), lanes, connection };
    picture.open(name, rows.len());
    for (index, line) in rows.iter().enumerate() {
        let y = HEAD_HEIGHT + 24.0 + index as f64 * ROW_HEIGHT;
        match line {
            Line::Row(row) => picture.row(row, y),
            Line::Fold(text) => picture.fold(text, y),
        }
    }
    picture.out.push_str("</svg>\n");
    picture.out
}

/// The vertical lines: client, the function's port on its side, the port on the server's side, server.
struct Lanes {
    client_port: Option<Port>,
    server_port: Option<Port>,
    /// Width of the function's box.
    width: f64,
}

impl Lanes {
    fn new(connection: &Connection, name: &str) -> Lanes {
        let (client_port, server_port) = connection.ports();
        let width = clip(name, LONGEST_NAME).chars().count() as f64 * 8.4 + 20.0;
        Lanes { client_port, server_port, width: width.max(BOX_WIDTH) }
    }

    fn left(&self) -> f64 {
        TIME_WIDTH + 70.0
    }

    /// Left and right edge of the function.
    fn function(&self) -> (f64, f64) {
        let left = if self.client_port.is_some() { self.left() + SPAN } else { self.left() };
        (left, left + self.width)
    }

    fn width(&self) -> f64 {
        let right = self.function().1;
        let right = if self.server_port.is_some() { right + SPAN } else { right };
        right + 80.0
    }

    fn side(&self, exchange: &Exchange) -> Option<Side> {
        if Some(exchange.port) == self.client_port {
            Some(Side::Client)
        } else if Some(exchange.port) == self.server_port {
            Some(Side::Server)
        } else {
            None
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// A packet on the client's side, on the server's side, or one that went through.
#[derive(Clone, Copy)]
struct Row<'a> {
    client: Option<&'a Exchange>,
    server: Option<&'a Exchange>,
}

impl<'a> Row<'a> {
    fn first(&self) -> Option<&'a Exchange> {
        match (self.client, self.server) {
            (Some(client), Some(server)) => Some(if client.inbound { client } else { server }),
            (client, server) => client.or(server),
        }
    }

    /// Ordinary packets may be folded: data in order, and acknowledgments that say nothing else.
    fn is_ordinary(&self, both: bool) -> bool {
        let ordinary = |exchange: &Exchange| {
            exchange.standing == Standing::New
                && exchange.sack.is_empty()
                && exchange.transport.tcp.as_ref().is_none_or(|tcp| {
                    let flags = tcp.flags;
                    !(flags.syn || flags.fin || flags.rst || flags.ece || flags.cwr || tcp.window == 0)
                })
        };
        let sides = [self.client, self.server];
        // With ports on both sides a packet that does not go through is the function's own deed, or a loss.
        sides.iter().flatten().all(|exchange| ordinary(exchange)) && (!both || sides.iter().all(Option::is_some))
    }
}

enum Line<'a> {
    Row(Row<'a>),
    Fold(String),
}

/// One row a packet; a packet that leaves as it came shares the row of its arrival.
fn rows<'a>(connection: &'a Connection, lanes: &Lanes) -> (Vec<Row<'a>>, bool) {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for exchange in &connection.exchanges {
        let Some(side) = lanes.side(exchange) else { continue };
        let start = rows.len().saturating_sub(LOOK_BACK);
        let through = rows[start..].iter_mut().find(|row| {
            let (other, own) = match side {
                Side::Client => (row.server, row.client),
                Side::Server => (row.client, row.server),
            };
            !exchange.inbound && own.is_none() && other.is_some_and(|arrived| goes_on_as(arrived, exchange))
        });
        let row = match through {
            Some(row) => row,
            None => {
                rows.push(Row { client: None, server: None });
                let last = rows.len() - 1;
                &mut rows[last]
            }
        };
        match side {
            Side::Client => row.client = Some(exchange),
            Side::Server => row.server = Some(exchange),
        }
    }
    (rows, lanes.client_port.is_some() && lanes.server_port.is_some())
}

fn goes_on_as(arrived: &Exchange, left: &Exchange) -> bool {
    let same_flags = match (&arrived.transport.tcp, &left.transport.tcp) {
        (Some(a), Some(b)) => a.flags == b.flags,
        (None, None) => true,
        _ => false,
    };
    arrived.inbound
        && arrived.from_client == left.from_client
        && same_flags
        && arrived.transport.payload == left.transport.payload
        && arrived.sequence == left.sequence
        // What a function sends carries the time of the event that made it; a packet that it kept leaves later.
        && left.at == arrived.at
}

fn fold((rows, both): (Vec<Row<'_>>, bool)) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = rows.as_slice();
    while let Some(first) = rest.first() {
        if lines.len() >= MOST_ROWS {
            lines.push(Line::Fold(format!("... {} more packets, not shown", rest.len())));
            break;
        }
        let run = rest.iter().take_while(|row| row.is_ordinary(both)).count();
        if run == 0 {
            lines.push(Line::Row(*first));
            rest = &rest[1..];
            continue;
        }
        let (ordinary, behind) = rest.split_at(run);
        rest = behind;
        if run <= LONGEST_RUN {
            lines.extend(ordinary.iter().copied().map(Line::Row));
            continue;
        }
        let folded = &ordinary[KEPT_AHEAD..run - KEPT_BEHIND];
        lines.extend(ordinary[..KEPT_AHEAD].iter().copied().map(Line::Row));
        lines.push(Line::Fold(fold_text(folded)));
        lines.extend(ordinary[run - KEPT_BEHIND..].iter().copied().map(Line::Row));
    }
    lines
}

fn fold_text(rows: &[Row<'_>]) -> String {
    let (mut data, mut bytes, mut acknowledgments) = (0_usize, 0_i64, 0_usize);
    for exchange in rows.iter().filter_map(Row::first) {
        if exchange.transport.payload > 0 {
            data += 1;
            bytes += i64::from(exchange.transport.payload);
        } else {
            acknowledgments += 1;
        }
    }
    let mut parts = Vec::new();
    if data > 0 {
        parts.push(format!("{data} more data packets, {} bytes", grouped(bytes)));
    }
    if acknowledgments > 0 {
        parts.push(format!("{acknowledgments} acknowledgments"));
    }
    format!("... {}", parts.join("; "))
}

/// What stands on an arrow.
fn label(exchange: &Exchange) -> String {
    let mut text = String::new();
    let length = i64::from(exchange.transport.payload);
    let Some(tcp) = &exchange.transport.tcp else { return format!("UDP {length} bytes") };
    let _ = write!(text, "{}", tcp.flags);
    if length > 0 {
        let first = exchange.sequence + i64::from(tcp.flags.syn);
        let _ = write!(text, " {first}..{} ({length})", first + length);
    } else if tcp.flags.syn || tcp.flags.fin || tcp.flags.rst {
        let _ = write!(text, " seq {}", exchange.sequence);
    }
    if let Some(acknowledgment) = exchange.acknowledgment {
        let _ = write!(text, " ack {acknowledgment}");
    }
    if tcp.flags.syn || tcp.window == 0 || exchange.is_pure_acknowledgment() {
        let _ = write!(text, " win {}", tcp.window);
    }
    if let Some(mss) = tcp.mss {
        let _ = write!(text, " mss {mss}");
    }
    if let Some(shift) = tcp.window_scale {
        let _ = write!(text, " ws {shift}");
    }
    if tcp.sack_permitted {
        text.push_str(" sackOK");
    }
    if tcp.flags.syn && tcp.timestamps.is_some() {
        text.push_str(" ts");
    }
    for (left, right) in exchange.sack.iter().take(2) {
        let _ = write!(text, " sack {left}..{right}");
    }
    text
}

/// The full header, for the tool tip.
fn detail(exchange: &Exchange) -> String {
    let transport = &exchange.transport;
    let Some(tcp) = &transport.tcp else { return format!("UDP, {} bytes of payload", transport.payload) };
    let mut text = format!(
        "{}\nsequence {} acknowledgment {}\n{} bytes of payload, window {}",
        tcp.flags, tcp.sequence, tcp.acknowledgment, transport.payload, tcp.window
    );
    if let Some((value, echo)) = tcp.timestamps {
        let _ = write!(text, "\ntimestamp {value} echo {echo}");
    }
    for (left, right) in &exchange.sack {
        let _ = write!(text, "\nsack {left}..{right}");
    }
    text
}

/// The arrow's class: what the eye should tell apart.
fn class(exchange: &Exchange) -> &'static str {
    let flags = exchange.transport.tcp.as_ref().map(|tcp| tcp.flags).unwrap_or_default();
    match exchange.standing {
        _ if flags.rst => "alarm",
        Standing::Repeated => "alarm",
        Standing::Late => "late",
        Standing::New if flags.syn || flags.fin => "control",
        Standing::New if exchange.is_pure_acknowledgment() => "quiet",
        Standing::New if exchange.from_client => "client",
        Standing::New => "server",
    }
}

struct Picture<'a> {
    out: String,
    lanes: Lanes,
    connection: &'a Connection,
}

impl Picture<'_> {
    fn open(&mut self, name: &str, rows: usize) {
        let width = self.lanes.width();
        let height = HEAD_HEIGHT + 32.0 + rows as f64 * ROW_HEIGHT;
        let foot = height - 8.0;
        let (left, right) = self.lanes.function();
        let _ = write!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft-ladder\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>Packets over time</title>\n\
             <rect class=\"function\" x=\"{left:.0}\" y=\"14\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\"/>\n",
            right - left,
            foot - 14.0
        );
        let middle = (left + right) / 2.0;
        self.text("head", middle, 34.0, &clip(name, LONGEST_NAME));
        let client = self.connection.client;
        let server = self.connection.server;
        // A function that is an end itself has one port, on the other side.
        let ports = match (self.lanes.client_port, self.lanes.server_port) {
            (Some(client), Some(server)) => {
                self.text("port", left + 14.0, 52.0, &client.to_string());
                self.text("port", right - 14.0, 52.0, &server.to_string());
                String::new()
            }
            (Some(port), None) => format!("server, port {port}"),
            (None, Some(port)) => format!("client, port {port}"),
            (None, None) => String::new(),
        };
        self.text("sub", middle, 52.0, &ports);
        if self.lanes.client_port.is_some() {
            self.host(self.lanes.left(), "client", &client.to_string(), foot);
        }
        if self.lanes.server_port.is_some() {
            self.host(right + SPAN, "server", &server.to_string(), foot);
        }
        self.text("axis", TIME_WIDTH / 2.0, 52.0, "seconds");
    }

    fn host(&mut self, x: f64, role: &str, address: &str, foot: f64) {
        self.text("head", x, 34.0, role);
        self.text("sub", x, 52.0, address);
        let _ = writeln!(self.out, "<path class=\"lane\" d=\"M{x:.1} 62V{foot:.1}\"/>");
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let _ = writeln!(self.out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape_markup(text));
    }

    fn row(&mut self, row: &Row<'_>, y: f64) {
        let Some(first) = row.first() else { return };
        self.text("time", TIME_WIDTH - 8.0, y + 4.0, &seconds(self.connection.since_start(first)));
        let (left, right) = self.lanes.function();
        let first_label = label(first);
        for (side, exchange) in [(Side::Client, row.client), (Side::Server, row.server)] {
            let Some(exchange) = exchange else { continue };
            let (from, to) = match (side, exchange.inbound) {
                (Side::Client, true) => (self.lanes.left(), left),
                (Side::Client, false) => (left, self.lanes.left()),
                (Side::Server, true) => (right + SPAN, right),
                (Side::Server, false) => (right, right + SPAN),
            };
            // A packet that goes through unchanged is labelled once.
            let text = label(exchange);
            let repeated = !std::ptr::eq(exchange, first) && text == first_label;
            self.arrow(exchange, from, to, y, if repeated { "" } else { &text });
        }
        // Went through: the line is drawn on, faintly.
        if row.client.is_some() && row.server.is_some() {
            let _ = writeln!(self.out, "<path class=\"through {}\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>", class(first));
        }
    }

    fn arrow(&mut self, exchange: &Exchange, from: f64, to: f64, y: f64, text: &str) {
        let class = class(exchange);
        let direction = (to - from).signum();
        let tip = to - direction * 9.0;
        let _ = write!(
            self.out,
            "<g class=\"{class}\"><title>{}</title><path class=\"shaft\" d=\"M{from:.1} {y:.1}H{tip:.1}\"/>\
             <path class=\"point\" d=\"M{to:.1} {y:.1}l{:.1} -4v8z\"/>",
            escape_markup(&detail(exchange)),
            -direction * 10.0
        );
        if !text.is_empty() {
            let note = match exchange.standing {
                Standing::Repeated => "repeated: ",
                Standing::Late => "late: ",
                Standing::New => "",
            };
            let _ = write!(
                self.out,
                "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{note}{}</text>",
                (from + to) / 2.0,
                y - 5.0,
                escape_markup(&clip(text, 50 - note.len()))
            );
        }
        self.out.push_str("</g>\n");
    }

    fn fold(&mut self, text: &str, y: f64) {
        let x = (self.lanes.left() + self.lanes.width() - 80.0) / 2.0;
        let width = text.chars().count() as f64 * 6.9 + 28.0;
        let _ = writeln!(
            self.out,
            "<rect class=\"fold\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"20\" rx=\"10\"/>",
            x - width / 2.0,
            y - 16.0
        );
        self.text("folded", x, y - 2.0, text);
    }
}

fn clip(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(3)).chain("...".chars()).collect()
}
