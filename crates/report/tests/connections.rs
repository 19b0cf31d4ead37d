//! A synthetic transfer through a middlebox, sorted and drawn.

mod transfer;

use transfer::{Frame, observed, transfer};
use weftwire_core::{Port, Time};
use weftwire_report::{Page, Standing, connections, ladder, page, plot};

#[test]
fn both_sides_of_the_box_are_one_connection() {
    let frames = transfer(100);
    let found = connections(&observed(&frames));
    assert_eq!(found.len(), 1);
    let connection = &found[0];
    assert_eq!(connection.client.to_string(), "10.0.0.1:4000");
    assert_eq!(connection.ports(), (Some(Port(1)), Some(Port(2))));
    let tallies = connection.tallies();
    assert_eq!(tallies[&(Port(1), true)].payload, 101 * 1000, "100 packets and the repeated one");
    assert_eq!(tallies[&(Port(2), false)].payload, 100 * 1000, "one was lost in the box");
    assert_eq!(tallies[&(Port(1), true)].repeated, 1);
    assert_eq!(tallies[&(Port(2), false)].late, 1);
    assert_eq!(tallies[&(Port(2), true)].with_sack, 3);
}

#[test]
fn numbers_are_relative_and_wrap() {
    let frames = transfer(100);
    let connection = connections(&observed(&frames)).remove(0);
    let data: Vec<i64> = connection
        .exchanges
        .iter()
        .filter(|exchange| exchange.port == Port(1) && exchange.transport.payload > 0)
        .map(|exchange| exchange.sequence)
        .collect();
    assert_eq!(data[..3], [1, 1001, 2001]);
    assert_eq!(data.iter().max(), Some(&99_001));
    let repeated: Vec<&_> =
        connection.exchanges.iter().filter(|exchange| exchange.standing == Standing::Repeated).collect();
    assert_eq!(repeated.len(), 1);
    let acknowledged = connection.exchanges.iter().filter(|exchange| !exchange.from_client);
    assert_eq!(acknowledged.filter_map(|exchange| exchange.acknowledgment).max(), Some(100_002), "the FIN counts");
}

#[test]
fn a_capture_without_directions_is_understood() {
    let frames = transfer(20);
    let mut records = observed(&frames);
    let told = connections(&records);
    records.iter_mut().for_each(|record| record.inbound = None);
    assert_eq!(connections(&records), told);
}

#[test]
fn long_runs_are_folded_and_events_kept() {
    let frames = transfer(100);
    let svg = ladder(&connections(&observed(&frames)).remove(0), "box");
    assert!(svg.contains("more data packets"), "{svg}");
    assert!(svg.contains("SYN seq 0 win 64240 mss 1460 ws 7 sackOK"), "{svg}");
    assert!(svg.contains("repeated: "));
    assert!(svg.contains("sack "));
    assert!(svg.matches("class=\"shaft\"").count() < 120, "folding keeps the ladder short");
}

#[test]
fn the_page_is_well_formed_and_needs_no_network() {
    let frames = transfer(100);
    let connection = connections(&observed(&frames)).remove(0);
    let show = Page { title: "A <quick> look", image: None, connection: &connection, number: (1, 1) };
    let html = page(&show);
    assert_eq!(html, page(&show));
    assert!(html.contains("<h1>A &lt;quick&gt; look</h1>"));
    for part in ["<script", "<link", "url(", "@import", "src="] {
        assert!(!html.contains(part), "{part}");
    }
    for part in ["<svg", "<g", "<table", "<section", "<tr", "<text"] {
        let closed = format!("</{}>", &part[1..]);
        let opened = html.matches(&format!("{part}>")).count() + html.matches(&format!("{part} ")).count();
        assert_eq!(opened, html.matches(&closed).count(), "{part}");
    }
}

#[test]
fn a_connection_without_data_has_no_plot() {
    let frames = transfer(0);
    assert_eq!(plot(&connections(&observed(&frames)).remove(0)), "");
    assert!(plot(&connections(&observed(&transfer(5))).remove(0)).contains("client to server"));
}

#[test]
fn one_port_means_that_the_function_is_an_end() {
    let frames: Vec<Frame> = transfer(10).into_iter().filter(|frame| frame.port == 1).collect();
    let connection = connections(&observed(&frames)).remove(0);
    assert_eq!(connection.ports(), (Some(Port(1)), None));
    assert!(ladder(&connection, "server").contains("client"));
}

#[test]
fn garbage_is_left_out() {
    let mut frames = transfer(3);
    let whole = connections(&observed(&frames)).remove(0);
    frames.push(Frame { at: 9, port: 1, inbound: true, bytes: vec![0; 7] });
    frames.push(Frame { at: 10, port: 1, inbound: true, bytes: vec![0xff; 60] });
    let found = connections(&observed(&frames));
    assert_eq!(found, [whole]);
    assert_eq!(found[0].exchanges[0].at, Time::from_nanoseconds(1_700_000_000_000_000_000));
}
