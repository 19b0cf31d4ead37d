//! The criteria of RFC 9743 (sections 5 to 7) for each congestion control, in simulated networks. Each row of `docs/rfc9743.md` is what one test
//! here measures, and is compared with it; `UPDATE=1` writes it anew. Beside that each test has a bound that holds for all controls, or for all
//! but those that the page names.
#![allow(clippy::disallowed_methods, reason = "tests read and write the page")]
#![allow(clippy::disallowed_types, reason = "tests in parallel write one page")]

use crate::network_common::{Kept, SECOND, run_keeping};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use weftwire_network::results::{FlowResult, Results};
use weftwire_network::{Network, read};

/// What all controls hold. Where the page is written anew it is told, as the rest of the row counts, too.
macro_rules! bound {
    ($holds:expr, $($what:tt)*) => {
        let holds: bool = $holds;
        if std::env::var_os("UPDATE").is_none() {
            assert!(holds, $($what)*);
        } else if !holds {
            println!("out of bounds: {}", format!($($what)*));
        }
    };
}

/// A congestion control, or a recovery with one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Control {
    Tcp(&'static str),
    TbTcp,
    Ledbat,
    Timely,
}

use Control::{Ledbat, TbTcp, Tcp, Timely};

/// The columns of the page.
const CONTROLS: [Control; 9] =
    [Tcp("reno"), Tcp("cubic"), Tcp("dctcp"), Tcp("bbr"), Tcp("bbr3"), Tcp("swift"), TbTcp, Ledbat, Timely];

/// A bottleneck: Mbit/s, round trip of the whole path in milliseconds, room in packets, other keys of the link.
#[derive(Clone, Copy)]
struct Line<'a> {
    rate: f64,
    trip: u64,
    room: u64,
    more: &'a str,
}

/// 10 Mbit/s and 40 ms hold 33 packets.
const LINE: Line<'_> = Line { rate: 10.0, trip: 40, room: 33, more: "" };

impl Control {
    /// The tables of the nodes of a pair and of its traffic.
    fn pair(self, number: usize, line: &Line<'_>, traffic: &str) -> String {
        let trip = line.trip;
        let rate = line.rate * 1e3;
        let function = |image: &str, parameters: &str| {
            format!("kind = \"function\"\nimage = \"transports/stream/{image}.xl\"\nparameters = {{ {parameters} }}\n")
        };
        let (left, right, keys) = match self {
            Tcp("dctcp") => (
                "parameters = { offer_ecn = true }".to_owned(),
                "parameters = { offer_ecn = true, control = \"dctcp\" }".to_owned(),
                "congestion_control = \"dctcp\"",
            ),
            Tcp("swift") => {
                let target = format!(
                    "parameters = {{ control = \"cubic\", \"swift.base\" = \"{}ms\", \"swift.range\" = \"10ms\" }}",
                    trip + 5
                );
                (target, String::new(), "congestion_control = \"swift\"")
            }
            Tcp("reno") => (String::new(), String::new(), "congestion_control = \"reno\""),
            Tcp("cubic") => (String::new(), String::new(), "congestion_control = \"cubic\""),
            Tcp("bbr") => (String::new(), String::new(), "congestion_control = \"bbr\""),
            Tcp(_) => (String::new(), String::new(), "congestion_control = \"bbr3\""),
            TbTcp => (String::new(), String::new(), "congestion_control = \"reno\"\nrecovery = \"tb_tcp\""),
            Ledbat => {
                (function("sender", "\"ledbat.target\" = \"25ms\""), function("receiver", ""), "transport = \"udp\"")
            }
            Timely => {
                // Its constants are of a data center: these are as far from this path's round trip and rate.
                let constants = format!(
                    "control = \"timely\", \"timely.base\" = \"{trip}ms\", \"timely.low\" = \"{}ms\", \"timely.high\" = \"{}ms\", \
                     \"timely.line\" = \"{}kbit/s\", \"timely.least_rate\" = \"{}kbit/s\", \"timely.step\" = \"{}kbit/s\", \"timely.leap\" = \"{}kbit/s\"",
                    trip + trip / 4,
                    3 * trip,
                    2.0 * rate,
                    rate / 100.0,
                    rate / 100.0,
                    rate / 20.0,
                );
                (function("sender", &constants), function("receiver", ""), "transport = \"udp\"")
            }
        };
        let left = if left.is_empty() { left } else { format!("[nodes.left{number}]\n{left}\n") };
        let right = if right.is_empty() { right } else { format!("[nodes.right{number}]\n{right}\n") };
        format!(
            "{left}{right}[[traffic]]\nname = \"pair{number}\"\nfrom = \"left{number}\"\nto = \"right{number}\"\n{keys}\n{traffic}\n"
        )
    }
}

const BULK: &str = "kind = \"bulk\"\nbytes = \"100GB\"";
/// Short flows: 50 kB, two in a second.
const SHORT: &str = "kind = \"flows\"\nrate = \"2/s\"\nsize = \"50kB\"\nstart = \"5s\"\nstop = \"25s\"";

/// A dumbbell with a pair of hosts for each of these and one more, and other tables of the file.
fn dumbbell(seconds: u64, warm_up: u64, line: &Line<'_>, pairs: &[(Control, &str)], more: &str) -> Network {
    let mut text = format!(
        "duration = \"{seconds}s\"\nwarm_up = \"{warm_up}s\"\n[topology]\nkind = \"dumbbell\"\npairs = {}\n\
         access = {{ rate = \"1Gbit/s\", delay = \"1us\", queue = \"20000 packets\" }}\n\
         bottleneck = {{ rate = \"{}kbit/s\", delay = \"{}us\", {} {} }}\n",
        pairs.len() + 1,
        line.rate * 1e3,
        line.trip * 500,
        if line.more.contains("queue") { String::new() } else { format!("queue = \"{} packets\"", line.room) },
        line.more
    );
    for (number, (control, traffic)) in (1..).zip(pairs) {
        text += &control.pair(number, line, traffic);
    }
    text += more;
    let reading = read("rfc9743.toml", &text, &[], &|_| Err(std::io::Error::other("no files").into()));
    let said: Vec<String> = reading.diagnostics.iter().map(|found| found.to_text(&reading.sources)).collect();
    reading.network.unwrap_or_else(|| panic!("{}\n{text}", said.join("\n")))
}

fn run(network: &Network) -> Results {
    run_keeping(network, Kept::default()).0
}

/// One flow alone; of the whole line.
fn alone(control: Control, seconds: u64, warm_up: u64, line: &Line<'_>, more: &str) -> Results {
    run(&dumbbell(seconds, warm_up, line, &[(control, BULK)], more))
}

/// Bits in a second behind the warm-up.
fn goodput(results: &Results, flow: &FlowResult) -> f64 {
    let bytes = flow.delivered - flow.delivered_in_warm_up;
    bytes as f64 * 8e9 / (results.run.duration - results.run.warm_up) as f64
}

/// The share of a line's rate that all flows have, of what payload may have at most.
fn share(results: &Results, rate: f64) -> f64 {
    results.flows.iter().map(|flow| goodput(results, flow)).sum::<f64>() / (rate * 1e6)
}

/// What the bottleneck counted, from left to right.
fn bottleneck(results: &Results) -> (usize, &weftwire_network::link::Counts) {
    let place = results.links.iter().position(|link| link.link == "bottleneck" && link.from.starts_with("west"));
    let place = place.expect("a dumbbell");
    (place, &results.links[place].counts)
}

/// The mean wait of its packets, in milliseconds.
fn wait(results: &Results) -> f64 {
    let counts = bottleneck(results).1;
    counts.waited_sum as f64 / counts.served.max(1) as f64 / 1e6
}

fn mean_completion(results: &Results, traffic: &str) -> f64 {
    let flows: Vec<&FlowResult> = results.flows.iter().filter(|flow| flow.traffic == traffic).collect();
    let times = flows.iter().map(|flow| flow.end.unwrap_or(results.run.duration) - flow.start);
    times.sum::<i64>() as f64 / flows.len() as f64 / 1e6
}

/// What a line delivered from one second to another, of its rate.
fn delivered(results: &Results, from: f64, until: f64, rate: f64) -> f64 {
    let (place, _) = bottleneck(results);
    let within = |at: i64| (from..until).contains(&((at - 1) as f64 / 1e9));
    let samples = results.samples.iter().filter(|sample| sample.link == place && within(sample.at));
    samples.map(|sample| sample.delivered_bytes).sum::<u64>() as f64 * 8.0 / (until - from) / (rate * 1e6)
}

/// How many seconds behind `from` the line first delivers 80 % of its rate for half a second; `None` up to `until`.
fn comes_back(results: &Results, from: f64, until: f64, rate: f64) -> Option<f64> {
    let steps = ((until - from) * 10.0) as usize;
    (0..steps.saturating_sub(5))
        .map(|step| step as f64 / 10.0)
        .find(|later| delivered(results, from + later, from + later + 0.5, rate) >= 0.8)
}

/// Measures for every control, and compares the row with the page.
fn row(section: &str, what: &str, measure: impl Fn(Control) -> String) {
    static PAGE: Mutex<()> = Mutex::new(());
    let cells: Vec<String> = CONTROLS.iter().map(|control| measure(*control)).collect();
    let row = format!("| {section} | {what} | {} |", cells.join(" | "));
    println!("{row}");
    let _page = PAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rfc9743.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let head = format!("| {section} | {what} | ");
    let old = page.lines().find(|line| line.starts_with(&head));
    if std::env::var_os("UPDATE").is_some() {
        let old = old.unwrap_or_else(|| panic!("the page has no row `{head}`"));
        std::fs::write(&path, page.replace(old, &row)).expect("the page can be written");
    } else {
        assert_eq!(old, Some(row.as_str()), "the page says something else; UPDATE=1 writes it");
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Nothing comes through for half a minute: how often something is sent again.
#[test]
#[ignore = "takes minutes: make test-long"]
fn silence_is_answered_by_silence() {
    let fault = "[[faults]]\nat = \"5s\"\nkind = \"blackhole\"\nlink = \"bottleneck\"\ndirection = \"forward\"";
    row("5.1.1", "packets into 30 s of nothing, from the second second on", |control| {
        let results = alone(control, 36, 0, &LINE, fault);
        let (place, _) = bottleneck(&results);
        let later = results.samples.iter().filter(|sample| sample.link == place && sample.at > 6 * SECOND);
        let sent: u64 = later.map(|sample| sample.drops).sum();
        // TB-TCP has a timer for each packet that was under way; TIMELY has a rate, and no window that would shrink.
        bound!(sent <= if matches!(control, TbTcp | Timely) { 1_000 } else { 60 }, "{control:?}: {sent} packets");
        sent.to_string()
    });
}

/// A buffer of ten times what the line holds.
#[test]
#[ignore = "takes minutes: make test-long"]
fn long_buffers() {
    row("5.1.2", "mean wait in a buffer of 396 ms, ms", |control| {
        let results = alone(control, 20, 0, &Line { room: 330, ..LINE }, "");
        format!("{:.0}", wait(&results))
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn what_four_flows_lose() {
    let of = |control: Control, room: u64| {
        let results = run(&dumbbell(30, 0, &Line { room, ..LINE }, &[(control, BULK); 4], ""));
        let counts = bottleneck(&results).1;
        counts.dropped_full as f64 / counts.offered_packets as f64
    };
    row("5.1.3", "lost by four flows, buffer half a BDP; two BDP", |control| {
        let [short, long] = [of(control, 16), of(control, 66)];
        bound!(short < 0.25 && long < 0.15, "{control:?}: {short} {long}");
        format!("{:.1}; {:.1} %", short * 100.0, long * 100.0)
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn fairness_among_themselves() {
    row("5.1.4", "Jain's index of four flows from second 0, 1, 2 and 3 on, seconds 20 to 40", |control| {
        let starts = ["0s", "1s", "2s", "3s"].map(|start| format!("{BULK}\nstart = \"{start}\""));
        let pairs: Vec<(Control, &str)> = starts.iter().map(|traffic| (control, traffic.as_str())).collect();
        let results = run(&dumbbell(40, 20, &LINE, &pairs, ""));
        let rates: Vec<f64> = results.flows.iter().map(|flow| goodput(&results, flow)).collect();
        let sum: f64 = rates.iter().sum();
        let index = sum * sum / 4.0 / rates.iter().map(|rate| rate * rate).sum::<f64>();
        bound!(index > 0.3, "{control:?}: {rates:?}");
        format!("{index:.2}")
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn short_flows_beside_a_long_one() {
    row("5.1.5", "flows of 50 kB beside a long one of the same: mean ms; the long one's share", |control| {
        let results = run(&dumbbell(30, 5, &LINE, &[(control, BULK), (control, SHORT)], ""));
        let long = goodput(&results, &results.flows[0]) / 1e7;
        format!("{:.0}; {}", mean_completion(&results, "pair2"), percent(long))
    });
}

/// The share of NewReno or CUBIC beside one flow of a control.
fn beside(control: Control, other: Control, room: u64) -> f64 {
    let results = run(&dumbbell(40, 10, &Line { room, ..LINE }, &[(control, BULK), (other, BULK)], ""));
    let rates = [0, 1].map(|flow| goodput(&results, &results.flows[flow]));
    rates[1] / (rates[0] + rates[1])
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn beside_newreno() {
    row("5.2.1", "NewReno's share beside one flow, buffer half a BDP; one; four", |control| {
        let shares = [16, 33, 132].map(|room| beside(control, Tcp("reno"), room));
        bound!(shares.iter().all(|share| *share > 0.02), "{control:?} starves NewReno: {shares:?}");
        shares.map(percent).join("; ")
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn beside_cubic() {
    row("5.2.1", "CUBIC's share beside one flow, buffer one BDP", |control| {
        let share = beside(control, Tcp("cubic"), 33);
        bound!(share > 0.05, "{control:?} starves CUBIC: {share}");
        percent(share)
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn beside_a_call() {
    // Of the pair behind the others.
    let call = "[[traffic]]\nname = \"call\"\nkind = \"datagrams\"\nfrom = \"left2\"\nto = \"right2\"\ngap = \"20ms\"\nsize = \"160B\"\nstart = \"2s\"";
    row("5.2.2", "a call of 64 kbit/s beside one flow: lost; longest wait, ms", |control| {
        let results = alone(control, 30, 0, &Line { room: 66, ..LINE }, call);
        let flow = &results.flows[1];
        let lost = flow.lost.unwrap_or(0) as f64 / flow.packets.unwrap_or(1).max(1) as f64;
        bound!(lost < 0.25, "{control:?}: {lost}");
        format!("{:.1} %; {:.0}", lost * 100.0, bottleneck(&results).1.waited_max as f64 / 1e6)
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn short_newreno_flows_beside_a_long_one() {
    row("5.2.3", "NewReno flows of 50 kB beside a long flow: mean ms", |control| {
        let results = run(&dumbbell(30, 5, &LINE, &[(control, BULK), (Tcp("reno"), SHORT)], ""));
        format!("{:.0}", mean_completion(&results, "pair2"))
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn rates_delays_and_buffers() {
    row(
        "6.1, 6.3",
        "share of the line, least and most of 2 and 10 Mbit/s, 10 and 100 ms, buffers of half a BDP and two",
        |control| {
            let mut shares = Vec::new();
            for rate in [2.0, 10.0] {
                for trip in [10, 100] {
                    for buffer in [0.5, 2.0] {
                        let room = (rate * 1e6 / 8.0 * trip as f64 / 1e3 / 1_500.0 * buffer).max(4.0) as u64;
                        let line = Line { rate, trip, room, more: "" };
                        shares.push(share(&alone(control, 20, 5, &line, ""), rate));
                    }
                }
            }
            let (least, most) =
                shares.iter().fold((1.0_f64, 0.0_f64), |(least, most), share| (least.min(*share), most.max(*share)));
            // A round trip that serialization alone makes longer than Swift's target stops it.
            bound!(least > 0.1 || control == Tcp("swift"), "{control:?}: {shares:?}");
            format!("{} to {}", percent(least), percent(most))
        },
    );
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn radio() {
    row("6.4", "share of a radio link: 1 % lost; 1 % lost, 5 ms of jitter, rates from 5 to 10 Mbit/s", |control| {
        let lossy = Line { room: 66, more: ", loss = \"1%\"", ..LINE };
        let changes: String = (1..20).fold(String::new(), |mut text, second| {
            let _ = write!(
                text,
                "[[changes]]\nat = \"{second}s\"\nlink = \"bottleneck\"\nrate = \"{}Mbit/s\"\n",
                if second % 2 == 1 { 5 } else { 10 }
            );
            text
        });
        let varying = Line { more: ", loss = \"1%\", jitter = \"5ms\"", ..lossy };
        let shares =
            [share(&alone(control, 20, 3, &lossy, ""), 10.0), share(&alone(control, 20, 3, &varying, &changes), 7.5)];
        bound!(shares.iter().all(|share| *share > 0.2 || control == Tcp("swift")), "{control:?}: {shares:?}");
        shares.map(percent).join("; ")
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn managed_queues() {
    row("7.1", "share and mean wait in ms: CoDel; CoDel that marks", |control| {
        let of = |ecn: bool| {
            let more = format!(", queue = {{ limit = \"330 packets\", discipline = \"codel\", ecn = {ecn} }}");
            let results = alone(control, 20, 3, &Line { more: more.trim_start_matches(", "), ..LINE }, "");
            format!("{}, {:.0}", percent(share(&results, 10.0)), wait(&results))
        };
        format!("{}; {}", of(false), of(true))
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_longer_path() {
    row("7.2, 7.7.1", "round trip from 40 to 120 ms: share 10 to 20 s behind it", |control| {
        let change = "[[changes]]\nat = \"10s\"\nlink = \"bottleneck\"\ndelay = \"60ms\"";
        let results = alone(control, 30, 0, &Line { room: 66, ..LINE }, change);
        percent(delivered(&results, 20.0, 30.0, 10.0))
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_thin_line() {
    row("7.3", "64 kbit/s, 200 ms, 8 packets: share; lost", |control| {
        let line = Line { rate: 0.064, trip: 200, room: 8, more: "" };
        let results = alone(control, 120, 20, &line, "");
        let counts = bottleneck(&results).1;
        format!(
            "{}; {:.0} %",
            percent(share(&results, 0.064)),
            counts.dropped_full as f64 / counts.offered_packets.max(1) as f64 * 100.0
        )
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_satellite() {
    row("7.4", "600 ms, 10 Mbit/s, buffer one BDP: share in seconds 10 to 40", |control| {
        percent(share(&alone(control, 40, 10, &Line { trip: 600, room: 500, ..LINE }, ""), 10.0))
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn reordering() {
    row("7.6", "5 % of packets 20 ms late: share", |control| {
        let line = Line { room: 66, more: ", reorder = { share = \"5%\", delay = \"20ms\" }", ..LINE };
        let share = share(&alone(control, 20, 3, &line, ""), 10.0);
        bound!(share > 0.02, "{control:?}: {share}");
        percent(share)
    });
}

/// The line is down for two seconds; its rate halves, and doubles.
#[test]
#[ignore = "takes minutes: make test-long"]
fn transient_events() {
    row("7.7", "line down from 8 to 10 s: seconds behind that until 80 % are used", |control| {
        let fault = "[[faults]]\nat = \"8s\"\nfor = \"2s\"\nkind = \"link-down\"\nlink = \"bottleneck\"";
        let results = alone(control, 30, 0, &Line { room: 66, ..LINE }, fault);
        let later = comes_back(&results, 10.0, 30.0, 10.0);
        later.map_or_else(|| "not in 20".to_owned(), |later| format!("{later:.1}"))
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_rate_changes() {
    row(
        "7.7.1",
        "rate halved at 10 s, back at 20 s: share of 5 Mbit/s, lost from 11 to 20 s; seconds until 80 % of 10 Mbit/s",
        |control| {
            let changes = "[[changes]]\nat = \"10s\"\nlink = \"bottleneck\"\nrate = \"5Mbit/s\"\n[[changes]]\nat = \"20s\"\nlink = \"bottleneck\"\nrate = \"10Mbit/s\"";
            let results = alone(control, 40, 0, &Line { room: 66, ..LINE }, changes);
            let (place, _) = bottleneck(&results);
            let within =
                results.samples.iter().filter(|it| it.link == place && (11 * SECOND..20 * SECOND).contains(&it.at));
            let (drops, bytes) =
                within.fold((0, 0), |(drops, bytes), it| (drops + it.drops, bytes + it.delivered_bytes));
            let lost = drops as f64 / (drops as f64 + bytes as f64 / 1_514.0).max(1.0);
            let back = comes_back(&results, 20.0, 40.0, 10.0);
            let back = back.map_or_else(|| "not in 20".to_owned(), |later| format!("{later:.1}"));
            bound!(lost < 0.25, "{control:?}: {lost}");
            format!("{}, {:.1} %; {back}", percent(delivered(&results, 11.0, 20.0, 5.0)), lost * 100.0)
        },
    );
}
