//! Hosts over links and routers: datagrams and TCP.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use weftwire_core::Port;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_network::link::{LinkSettings, Loss};
use weftwire_network::model::{NodeKind, PortPlace, TrafficKind, Transport};
use weftwire_network::traffic::{Gap, Size};
use weftwire_sim::network::simulate;

/// Datagrams of 1000 bytes at a constant rate.
fn datagrams(gap: i64, count: u64) -> TrafficKind {
    TrafficKind::Datagrams { gap: Gap::Constant(gap), size: Size::Constant(1000), count }
}

#[test]
fn an_overloaded_link_delivers_its_rate_and_loses_the_rest() {
    // 1042 bytes of frame at 10 Mbit/s last 833.6 us; twice as many come.
    let (mut network, [client, _, server]) = path(10 * SECOND, wire(10_000_000, MILLISECOND, 10));
    network.add([client, server], Transport::Udp, datagrams(416_800, 10_000));
    let results = run(&network);
    let flow = &results.flows[0];
    assert_eq!(flow.packets, Some(10_000));
    let lost = flow.lost.expect("known");
    // When the last one comes 5,000 have begun service, and ten wait.
    assert_eq!(lost, 4_990);
    assert_eq!(flow.delivered, (10_000 - lost) * 1000);
    assert_eq!(results.links[2].counts.dropped_full, lost);
    assert_eq!(results.run.packet_hops, 10_000 + 10_000 - lost);
    assert_eq!(flow.outcome, "complete");
    // The last one that finds room waits behind ten of 833.6 us; it ends then, not with the run.
    let took = flow.completion_time().expect("complete") - 9_999 * 416_800;
    assert!((0..12 * MILLISECOND).contains(&took), "{took} behind the last one sent");
    assert!(results.run.warnings.is_empty(), "{:?}", results.run.warnings);
    // 8 ms of transfer are 10 Mbit/s: the bottleneck's samples say so.
    let busiest = results.samples.iter().filter(|sample| sample.link == 2).map(|sample| sample.delivered_bytes);
    assert!(busiest.max().is_some_and(|bytes| (123_000..=125_100).contains(&bytes)));
}

#[test]
fn tcp_fills_a_clean_link() {
    for ipv6 in [false, true] {
        let (mut network, [client, _, server]) = path(20 * SECOND, wire(10_000_000, 10 * MILLISECOND, 10_000));
        network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 10_000_000 }).ipv6 = ipv6;
        let results = run(&network);
        let flow = &results.flows[0];
        assert_complete(flow);
        let goodput = flow.goodput(0);
        assert!(goodput > 0.9 * 10_000_000.0, "{goodput} bits/s: {flow:?}");
        assert!(flow.rtt_min.is_some_and(|rtt| rtt >= 22 * MILLISECOND) && flow.rtt_samples > 1000, "{flow:?}");
        assert!(results.progress[0].sent.len() > 1000 && results.progress[0].acknowledged.len() > 1000);
        assert_eq!(results.progress[0].acknowledged.last().map(|(_, bytes)| *bytes), Some(10_000_000));
        assert!(results.run.warnings.is_empty());
    }
}

/// All sequence numbers are used, and one once more.
#[test]
#[ignore = "takes minutes: make test-long"]
fn more_bytes_arrive_than_there_are_sequence_numbers() {
    let bytes = (1 << 32) + 1;
    let (mut network, [client, _, server]) = path(120 * SECOND, wire(10_000_000_000, MILLISECOND / 10, 1_000));
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes });
    let results = run(&network);
    assert_complete(&results.flows[0]);
    assert_eq!(results.flows[0].delivered, bytes);
}

#[test]
fn tcp_over_loss_and_corruption_delivers_every_byte() {
    let settings = LinkSettings {
        loss: Loss::Random(0.01),
        corrupt: 0.005,
        duplicate: 0.01,
        reorder: 0.01,
        reorder_delay: lasting(3 * MILLISECOND),
        jitter: lasting(MILLISECOND),
        ..wire(10_000_000, 5 * MILLISECOND, 100)
    };
    let (mut network, [client, _, server]) = path(120 * SECOND, settings);
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 2_000_000 });
    let results = run(&network);
    assert_complete(&results.flows[0]);
    assert!(results.flows[0].retransmissions.is_some_and(|count| count > 10), "{:?}", results.flows[0]);
    assert!(dropped(&results, "server", "bad_checksum") > 0);
}

/// What waits at the receiver behind a lost segment says nothing of the way: no segment takes more than the delays, the full
/// queue and the delayed acknowledgment.
#[test]
fn round_trip_times_are_those_of_packets_whatever_is_lost() {
    let settings = LinkSettings { loss: Loss::Random(0.02), ..wire(100_000_000, MILLISECOND, 10) };
    let (mut network, [client, _, server]) = path(60 * SECOND, settings);
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 5_000_000 });
    let results = run(&network);
    let flow = &results.flows[0];
    assert_complete(flow);
    assert!(flow.retransmissions.is_some_and(|count| count > 30) && flow.rtt_samples > 300, "{flow:?}");
    let [least, mean, most] = [flow.rtt_min, flow.rtt_mean, flow.rtt_max].map(|rtt| rtt.expect("sampled"));
    assert!(least >= 4 * MILLISECOND && mean < 7 * MILLISECOND && most < 47 * MILLISECOND, "{flow:?}");
}

#[test]
fn a_warm_up_is_left_out_of_what_is_measured() {
    let build = |warm_up: i64| {
        let (mut network, [client, _, server]) = path(10 * SECOND, wire(10_000_000, MILLISECOND, 100));
        network.warm_up = lasting(warm_up);
        // Ten times as many in the first two seconds; 1,042 bytes each.
        network.add([client, server], Transport::Udp, datagrams(MILLISECOND, 2_000));
        network.add([client, server], Transport::Udp, datagrams(10 * MILLISECOND, 1_000));
        run(&network)
    };
    let (whole, measured) = (build(0), build(5 * SECOND));
    assert_eq!(measured.run.measured(), measured.run.lasted - 5 * SECOND);
    assert_eq!(whole.samples, measured.samples, "samples are of the whole run");
    let [whole, rest] = [&whole, &measured].map(|results| results.links[2].counts);
    assert!(whole.delivered_packets == 3_000 && rest.delivered_packets == 500, "{rest:?}");
    assert!(whole.waited_max > 0 && rest.waited_max == 0, "nobody waits any more");
    let busy = measured.links[2].utilisation(measured.run.measured()).expect("it has a rate");
    assert!((busy - 0.0833).abs() < 0.0005, "{busy}");
    let [early, long] = &measured.flows[..] else { panic!("two flows") };
    assert_eq!((early.delivered_in_warm_up, early.measured_goodput(&measured.run)), (2_000_000, None));
    assert_eq!(long.delivered - long.delivered_in_warm_up, 500_000);
    assert!(long.measured_goodput(&measured.run).is_some_and(|goodput| (goodput - 800_000.0).abs() < 3_000.0));
}

/// The ideal time is a bound from below, and a transfer that meets nobody gets near it.
#[test]
fn a_transfer_alone_takes_little_longer_than_the_ideal() {
    for ipv6 in [false, true] {
        let (mut network, [client, _, server]) = path(20 * SECOND, wire(10_000_000, 5 * MILLISECOND, 10_000));
        for (number, bytes) in [1, 1_400, 10_000, 10_000_000].into_iter().enumerate() {
            let traffic = network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes });
            (traffic.ipv6, traffic.start) = (ipv6, at(number as i64 * SECOND));
        }
        let slowdowns: Vec<f64> = run(&network).flows.iter().map(|flow| flow.slowdown().expect("complete")).collect();
        assert!(slowdowns.iter().all(|slowdown| *slowdown >= 1.0), "{slowdowns:?}");
        // 10 kB take a round trip more, as the first window is smaller.
        assert!([0, 1, 3].iter().all(|flow| slowdowns[*flow] < 1.02) && slowdowns[2] < 3.0, "{slowdowns:?}");
    }
}

#[test]
fn the_congestion_control_can_be_chosen_and_is_told() {
    let outcome = |control: Option<&str>| {
        let (mut network, [client, _, server]) = path(20 * SECOND, wire(10_000_000, 20 * MILLISECOND, 40));
        network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 5_000_000 }).congestion_control =
            control.map(str::to_owned);
        network.add([client, server], Transport::Udp, datagrams(SECOND, 3));
        simulate(&network, &mut Kept::default()).map(|results| results.flows)
    };
    let own = outcome(None).expect("it runs");
    let [cubic, reno] = ["cubic", "reno"].map(|name| outcome(Some(name)).expect("there is one"));
    assert_eq!(own, cubic, "it is this simulator's own");
    assert_eq!((own[0].congestion_control.as_deref(), own[1].congestion_control.as_deref()), (Some("cubic"), None));
    assert_eq!(reno[0].congestion_control.as_deref(), Some("reno"));
    assert_complete(&reno[0]);
    assert_ne!(reno[0].rtt_mean, cubic[0].rtt_mean, "they fill the queue in other ways");
    let error = outcome(Some("vegas")).expect_err("there is no such one").to_string();
    let all = "asks for the congestion control `vegas`: the simulator has reno, cubic, dctcp, swift, bbr, bbr3";
    assert!(error.contains(all), "{error}");
    // What few ask for is in another machine.
    let bbr = outcome(Some("bbr")).expect("there is one");
    assert_eq!(bbr[0].congestion_control.as_deref(), Some("bbr"));
    assert_complete(&bbr[0]);
    assert!(bbr[0].rtt_mean < cubic[0].rtt_mean, "it leaves the queue empty");
}

#[test]
fn the_recovery_from_losses_can_be_chosen() {
    let outcome = |recovery: Option<&str>| {
        let (mut network, [client, _, server]) = path(20 * SECOND, wire(10_000_000, 20 * MILLISECOND, 10));
        network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 5_000_000 }).recovery =
            recovery.map(str::to_owned);
        simulate(&network, &mut Kept::default()).map(|results| results.flows)
    };
    let own = outcome(None).expect("it runs");
    let all = ["rack", "rfc6675", "tb_tcp"].map(|name| outcome(Some(name)).expect("there is one"));
    assert_eq!(own, all[0], "it is the machine's own");
    for flows in &all {
        assert_complete(&flows[0]);
        assert!(flows[0].retransmissions > Some(0), "nothing is lost");
    }
    assert!(all[0][0].end != all[1][0].end && all[1][0].end != all[2][0].end && all[0][0].end != all[2][0].end);
    let error = outcome(Some("fack")).expect_err("there is no such").to_string();
    assert!(error.contains("asks for the recovery `fack`: the simulator has rack, rfc6675, tb_tcp"), "{error}");
}

#[test]
fn registers_of_a_hosts_tcp_have_other_values_where_the_node_says_so() {
    let outcome = |name: &str, value: &str| {
        let (mut network, [client, _, server]) = path(30 * SECOND, wire(10_000_000, MILLISECOND, 20));
        let parameters = [(name.to_owned(), value.to_owned())].into();
        network.nodes[client.0 as usize].kind = NodeKind::Host { commands: Vec::new(), parameters };
        network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 1_000_000 });
        network.captures.push(PortPlace { node: server, port: Port(1) });
        let mut kept = Kept::default();
        simulate(&network, &mut kept).map(|results| (results, kept.frames))
    };
    // The SYN has options of 24 bytes: the greatest size, the window's scale, time stamps, selective acknowledgments.
    for (name, length) in [("offer_stamps", 12), ("offer_scaling", 20), ("smoothed", 24)] {
        let (results, frames) = outcome(name, if name == "smoothed" { "0s" } else { "false" }).expect("it runs");
        assert_complete(&results.flows[0]);
        assert_eq!(frames[0].2[46] >> 4, 5 + length / 4, "{name}");
    }
    for (name, value, words) in [
        (
            "offer_stamp",
            "1",
            "node client: tcp has no register `offer_stamp` to be a parameter; did you mean `offer_stamps`?",
        ),
        ("smoothed", "soon", "node client: parameter smoothed: `soon` does not fit; write a duration such as 200ms"),
    ] {
        let error = outcome(name, value).expect_err("it is wrong").to_string();
        assert_eq!(error, words);
    }
}

#[test]
fn requests_are_answered_in_turn() {
    let (mut network, [client, _, server]) = path(20 * SECOND, wire(100_000_000, 4 * MILLISECOND, 100));
    let kind = TrafficKind::RequestResponse {
        request: 100,
        response: 20_000,
        count: 50,
        think: Gap::Constant(10 * MILLISECOND),
    };
    network.add([client, server], Transport::Tcp, kind);
    let results = run(&network);
    let flow = &results.flows[0];
    assert_complete(flow);
    assert_eq!((flow.rtt_samples, flow.delivered), (50, 50 * 20_100));
    assert!(flow.rtt_min.is_some_and(|rtt| rtt >= 10 * MILLISECOND), "{flow:?}");
}

#[test]
fn many_short_flows_come_and_go() {
    let (mut network, [client, _, server]) = path(20 * SECOND, wire(100_000_000, MILLISECOND, 1000));
    let kind = TrafficKind::Flows {
        gap: Gap::Exponential(10.0 * MILLISECOND as f64),
        size: Size::Exponential(20_000.0),
        count: 1000,
    };
    network.add([client, server], Transport::Tcp, kind);
    let results = run(&network);
    assert_eq!(results.flows.len(), 1000);
    results.flows.iter().for_each(assert_complete);
}

#[test]
fn traffic_without_end_stops_when_told() {
    let (mut network, [client, _, server]) = path(30 * SECOND, wire(10_000_000, MILLISECOND, 50));
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: u64::MAX }).stop = at(5 * SECOND);
    let results = run(&network);
    let flow = &results.flows[0];
    assert_eq!((flow.outcome.as_str(), flow.bytes), ("complete", None), "{flow:?}");
    // What was in the send buffer then is sent still.
    assert!(flow.delivered > 5_000_000 && flow.end.is_some_and(|end| end < 15 * SECOND), "{flow:?}");
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let (mut network, [client, router, server]) = path(5 * SECOND, wire(10_000_000, MILLISECOND, 50));
    let own = PortPlace { node: client, port: Port(1) };
    let next = network.mac(PortPlace { node: router, port: Port(1) });
    let syn = FrameBuilder::ethernet(next, network.mac(own))
        .ipv4(&Ipv4Fields {
            source: network.node(client).ipv4,
            destination: network.node(server).ipv4,
            ..Ipv4Fields::default()
        })
        .tcp(&TcpFields { destination_port: 9, sequence: 7, flags: TcpFlags::SYN, ..TcpFields::default() }, &[])
        .finish()
        .expect("a frame");
    network.add([client, client], Transport::Tcp, TrafficKind::Capture { file: "syn".into(), port: Port(1) });
    network.add([client, router], Transport::Tcp, TrafficKind::Bulk { bytes: 1000 });
    network.captures.push(own);
    let captures = [("syn".to_owned(), vec![(0, syn)])].into();
    let (results, kept) = run_keeping(&network, Kept { captures, ..Kept::default() });
    let answer = kept.frames.iter().find(|(_, _, _, sent)| !sent).expect("an answer");
    let tcp = &answer.2[34..];
    assert_eq!((&tcp[8..12], tcp[13]), (&[0, 0, 0, 8][..], 0x14), "RST and ACK of the SYN");
    // A router does not speak TCP.
    assert_eq!(results.flows[0].outcome, "running");
    assert!(dropped(&results, "router", "no_listener") > 0);
}

#[test]
fn mean_wait_is_that_of_an_m_d_1_queue() {
    // 958 bytes of payload make frames of 1000: 800 us at 10 Mbit/s. One each 1000 us at random: load 0.8.
    let (mut network, [client, _, server]) = path(200 * SECOND, wire(10_000_000, MILLISECOND, 100_000));
    let kind =
        TrafficKind::Datagrams { gap: Gap::Exponential(1_000_000.0), size: Size::Constant(958), count: u64::MAX };
    network.add([client, server], Transport::Udp, kind).stop = at(199 * SECOND);
    let results = run(&network);
    let counts = results.links[2].counts;
    let mean = counts.waited_sum as f64 / counts.served as f64;
    // Pollaczek-Khinchine: load / (2 (1 - load)) services, here 2 of 800 us.
    let expected = 0.8 / (2.0 * 0.2) * 800_000.0;
    assert!(counts.served > 190_000 && (mean / expected - 1.0).abs() < 0.06, "{mean} against {expected}");
    assert_eq!(results.flows[0].lost, Some(counts.offered_packets - counts.delivered_packets));
}

#[test]
fn short_frames_are_padded_where_they_enter_a_link() {
    let (mut network, [client, _, server]) = path(SECOND, wire(1_000_000, MILLISECOND, 100));
    let kind = TrafficKind::Datagrams { gap: Gap::Constant(10 * MILLISECOND), size: Size::Constant(1), count: 10 };
    network.add([client, server], Transport::Udp, kind.clone());
    network.add([client, server], Transport::Udp, kind).ipv6 = true;
    network.captures.extend([client, server].map(|node| PortPlace { node, port: Port(1) }));
    let (results, kept) = run_keeping(&network, Kept::default());
    // One byte makes a frame of 43 bytes with IPv4 and of 63 with IPv6.
    let lengths: std::collections::BTreeSet<usize> = kept.frames.iter().map(|(_, _, bytes, _)| bytes.len()).collect();
    assert_eq!((kept.frames.len(), lengths), (40, [60, 63].into()));
    assert_eq!(results.links[2].counts.delivered_bytes, 10 * (60 + 63));
    assert_eq!(results.links[2].counts.busy, u128::from(10 * (60 + 63) * 8_000_u64));
    assert!(results.flows.iter().all(|flow| flow.delivered == 10), "{:?}", results.flows);
}

#[test]
fn an_echo_answers_and_a_sink_does_not() {
    let mut network = network(SECOND);
    let client = network.add_node("client", host());
    let router = network.add_node("router", NodeKind::Router);
    let echo = network.add_node("echo", NodeKind::Echo);
    let sink = network.add_node("sink", NodeKind::Sink);
    network.add_link([client, router], wire(100_000_000, 2 * MILLISECOND, 100));
    network.add_link([router, echo], wire(100_000_000, 3 * MILLISECOND, 100));
    network.add_link([router, sink], wire(100_000_000, 3 * MILLISECOND, 100));
    network.add([client, echo], Transport::Udp, datagrams(MILLISECOND, 100));
    network.add([client, sink], Transport::Udp, datagrams(MILLISECOND, 100)).ipv6 = true;
    let results = run(&network);
    assert_eq!((results.flows[0].lost, results.flows[0].rtt_samples), (Some(0), 100));
    assert!(results.flows[0].rtt_min.is_some_and(|rtt| (10 * MILLISECOND..11 * MILLISECOND).contains(&rtt)));
    assert_eq!((results.flows[1].lost, results.flows[1].rtt_samples), (Some(0), 0));
    assert_eq!(results.links[5].counts.offered_packets, 0, "from the sink");
    assert!(results.node_drops.is_empty(), "{:?}", results.node_drops);
}

#[test]
fn probes_show_registers_while_flows_last() {
    let results = |probes: &[&str]| {
        let (mut network, [client, _, server]) = path(30 * SECOND, wire(10_000_000, 10 * MILLISECOND, 40));
        network.probes = probes.iter().map(|name| (*name).to_owned()).collect();
        network.add([client, server], Transport::Udp, datagrams(SECOND, 20));
        network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 5_000_000 }).start = at(SECOND);
        simulate(&network, &mut Kept::default())
    };
    let shown = results(&["congestion_window", "smoothed"]).expect("they are registers");
    let end = shown.flows[1].end.expect("complete");
    let of = |node: &str, register: &str| {
        let found = shown.probes.iter().filter(|probe| probe.node == node && probe.register == register);
        let [probe] = found.collect::<Vec<_>>()[..] else { panic!("one probe of {node}") };
        assert_eq!(probe.flow, 1, "datagrams have no machine");
        probe.points.clone()
    };
    let windows = of("client", "congestion_window");
    // Every 100 ms while there is a connection.
    assert!(windows.iter().all(|(at, _)| at % (100 * MILLISECOND) == 0 && (SECOND..=end).contains(at)));
    assert_eq!(windows.len() as i64, end / (100 * MILLISECOND) - SECOND / (100 * MILLISECOND) + 1);
    let greatest = windows.iter().map(|(_, window)| *window).max().unwrap_or(0);
    // The line and the queue hold 22 ms at 10 Mbit/s and 40 packets.
    assert!((60_000..150_000).contains(&greatest), "{greatest}");
    let round_trips = of("client", "smoothed");
    let longest = round_trips.iter().map(|(_, time)| *time).max().unwrap_or(0);
    assert!((30 * MILLISECOND..90 * MILLISECOND).contains(&longest), "{longest}");
    assert!(!of("server", "congestion_window").is_empty(), "both ends are probed");
    assert_eq!(shown.probes.len(), 4);

    let error = results(&["congestion_windo"]).expect_err("there is none").to_string();
    assert_eq!(error, "probes: the hosts' TCP has no register `congestion_windo`; did you mean `congestion_window`?");
}

/// An application that has closed reads nothing any more: the end of the other side is waited for a minute.
#[test]
fn a_connection_whose_other_end_never_closes_ends() {
    let mut network = network(200 * SECOND);
    // As long as there is a connection it asks after the other end.
    let parameters = [("keep_alive".to_owned(), "7s".to_owned())].into();
    let client = network.add_node("client", NodeKind::Host { commands: Vec::new(), parameters });
    // Behind a machine that is not the host's own there is no application that closes.
    let server = network.add_node("server", function("transports/tcp/tcp.xl", false));
    network.add_link([client, server], wire(10_000_000, MILLISECOND, 100));
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 10_000 });
    network.captures.push(PortPlace { node: client, port: Port(1) });
    let (results, kept) = run_keeping(&network, Kept::default());
    assert_complete(&results.flows[0]);
    let sent = kept.frames.iter().filter(|(.., sent)| *sent).map(|(at, ..)| *at / SECOND);
    assert_eq!(sent.max(), Some(56), "the last question before a minute is over");
}
