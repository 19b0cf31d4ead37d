//! Programs of the published dialect keep their meaning (docs/dialect.md): compiled, and run by the reference engine on
//! packets made for each point.

use std::net::{IpAddr, Ipv4Addr};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
use weftwire_core::{Endpoints, FlowId, Frame, Function, LinkType, MacAddress, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, make};
use weftwire_lang::{Dialect, compile};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

struct Bench {
    function: Box<dyn Function>,
    out: Outbox,
}

impl Bench {
    fn new(program: &str) -> Bench {
        let compilation = compile("program.xtra", Dialect::Xtra, &program);
        let text: Vec<String> =
            compilation.diagnostics.iter().map(|found| found.to_text(&compilation.sources)).collect();
        let image = compilation.image.unwrap_or_else(|| panic!("{}", text.join("\n")));
        let image = image.verify().expect("the compiler's images verify");
        let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet)]);
        let function = make("reference", image, ports, EngineOptions::default()).expect("the engine exists");
        Bench { function, out: Outbox::new() }
    }

    /// A TCP segment from the client (or, `back`, from the server) arrives on port 1 at this microsecond.
    fn tcp(&mut self, at_us: i64, flags: TcpFlags, sequence: u32, options: &[TcpOption<'_>], back: bool) {
        let (from, to) = if back { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
        let ip = Ipv4Fields { source: from.0.into(), destination: to.0.into(), ..Ipv4Fields::default() };
        let tcp = TcpFields { source_port: from.1, destination_port: to.1, sequence, flags, ..TcpFields::default() };
        let frame = FrameBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]).ipv4(&ip).tcp(&tcp, options);
        let frame = frame.finish().expect("a small frame");
        self.function.frame(time(at_us), Port(1), Frame::new(&frame), &mut self.out);
    }

    fn packet(&mut self, at_us: i64) {
        self.tcp(at_us, TcpFlags::ACK, 7, &[], false);
    }

    fn fire(&mut self, at_us: i64) {
        self.function.fire(time(at_us), &mut self.out);
    }

    fn connect(&mut self, protocol: u8) -> FlowId {
        let address = |bytes: [u8; 4]| IpAddr::V4(Ipv4Addr::from(bytes));
        let ends = Endpoints {
            protocol,
            local_address: address(CLIENT.0),
            local_port: CLIENT.1,
            remote_address: address(SERVER.0),
            remote_port: SERVER.1,
            local_mac: MacAddress::UNSPECIFIED,
            remote_mac: MacAddress::UNSPECIFIED,
            vlan: None,
        };
        self.function
            .connections()
            .expect("it carries connections")
            .connect(Time::ZERO, &ends, &mut self.out)
            .expect("the key fits")
    }

    fn register(&self, name: &str) -> i64 {
        let flow = self.function.flow(FlowId(1)).expect("the flow lives");
        flow.registers.iter().find(|register| register.name == name).expect("declared").value
    }

    fn state(&self) -> String {
        self.function.flow(FlowId(1)).expect("the flow lives").summary.state
    }

    /// Lengths and ports of the frames sent so far.
    fn sent(&self) -> Vec<(usize, u16)> {
        let sends = self.out.items().iter().filter_map(|item| match item {
            Output::Send { port, bytes, .. } => Some((self.out.bytes(bytes).len(), port.0)),
            _ => None,
        });
        sends.collect()
    }
}

fn time(microseconds: i64) -> Time {
    Time::from_nanoseconds(microseconds * 1_000)
}

#[test]
fn conditions_see_the_values_before_the_event_and_the_first_that_holds_wins() {
    let mut bench = Bench::new(
        "Register count, seen;
         State initial s {
             on (pktRcvd) {
                 count = count + 1;
                 if (count == 1) { seen = 1; }
                 if (count >= 1) { seen = 2; }
                 if (count == 0) { seen = 3; }
             }
         }",
    );
    bench.packet(0);
    assert_eq!((bench.register("count"), bench.register("seen")), (1, 3));
    bench.packet(1);
    assert_eq!((bench.register("count"), bench.register("seen")), (2, 1));
    bench.packet(2);
    assert_eq!((bench.register("count"), bench.register("seen")), (3, 2));
}

#[test]
fn plain_statements_run_also_when_no_condition_holds() {
    let mut bench = Bench::new(
        "Register count;
         State initial s { on (pktRcvd) { count = count + 1; if (count == 99) { count = 0; } } }",
    );
    bench.packet(0);
    bench.packet(1);
    assert_eq!(bench.register("count"), 2);
}

#[test]
fn entry_actions_run_at_creation_and_at_each_entry_also_from_the_state_itself() {
    let mut bench = Bench::new(
        "Register entries;
         State initial s { entries = entries + 1; on (pktRcvd) { if (tcp.flags == 16) { setNextState(s); } } }",
    );
    bench.packet(0);
    bench.packet(1);
    assert_eq!(bench.register("entries"), 3);
    bench.tcp(2, TcpFlags::RST, 0, &[], false);
    assert_eq!(bench.register("entries"), 3);
}

#[test]
fn the_last_next_state_wins_and_takes_effect_behind_the_actions() {
    let mut bench = Bench::new(
        "Register x;
         State initial s { on (pktRcvd) { setNextState(b); x = x + 1; setNextState(c); x = x + 1; } }
         State b { x = 100; }
         State c { x = x * 10; }",
    );
    bench.packet(0);
    assert_eq!((bench.state(), bench.register("x")), ("c".to_string(), 20));
}

#[test]
fn statements_at_the_top_run_once_before_the_initial_state() {
    let mut bench = Bench::new("Register x; x = 40; State initial s { x = x + 1; on (pktRcvd) { setNextState(s); } }");
    bench.packet(0);
    assert_eq!(bench.register("x"), 42);
}

#[test]
fn timers_fire_in_the_order_set_at_equal_times_and_zero_waits_for_the_event_to_end() {
    let mut bench = Bench::new(
        "Register order;
         State initial s {
             on (pktRcvd) { setTimer(1, 0, 5); setTimer(2, 0, 5); setTimer(3, 0, 0); order = 0 - 1; setTimer(4, 0, order); order = 9; }
             on (timeout) { order = order * 10; order = order + timeout.data0; }
         }",
    );
    bench.packet(0);
    assert_eq!(bench.register("order"), 9);
    bench.fire(0);
    assert_eq!(bench.register("order"), 934);
    bench.fire(5);
    assert_eq!(bench.register("order"), 93_412);
}

/// As many as a sender may have segments on their way.
#[test]
fn twelve_thousand_timers_of_one_instant_all_fire() {
    let mut bench = Bench::new(
        "Register fired;
         State initial s {
             on (pktRcvd) { setTimer(1, 0, 1000); }
             on (timeout) { fired = fired + 1; setTimer(0, 0, 100000); }
         }",
    );
    for _ in 0..12_000 {
        bench.packet(0);
    }
    bench.fire(1_000);
    assert_eq!(bench.register("fired"), 12_000);
}

#[test]
fn removed_timers_do_not_fire() {
    let mut bench = Bench::new(
        "Register fired;
         State initial s {
             on (pktRcvd) { setTimer(1, 5, 10); setTimer(1, 6, 10); setTimer(2, 5, 10); removeTimer(1, 5); }
             on (timeout) { fired = fired * 100; fired = fired + timeout.data0; fired = fired * 10; fired = fired + timeout.data1; }
         }",
    );
    bench.packet(0);
    bench.fire(10);
    assert_eq!(bench.register("fired"), 16_025);
}

#[test]
fn arithmetic_is_signed_and_division_by_zero_gives_zero() {
    let mut bench = Bench::new(
        "Register a, b, c;
         State initial s { on (pktRcvd) { a = 3 - 5; b = a / 0; if (a < 0) { c = 1; } } on (timeout) { c = 1; } }",
    );
    bench.packet(0);
    assert_eq!((bench.register("a"), bench.register("b")), (-2, 0));
    assert_eq!(bench.function.counters().drops.get("division_by_zero"), Some(&1));
    bench.packet(1);
    assert_eq!(bench.register("c"), 1);
}

#[test]
fn time_is_in_milliseconds_and_the_echo_in_elapsed_microseconds() {
    let mut bench = Bench::new(
        "Register now, rtt, none;
         State initial s { on (pktRcvd) { now = currentTime; rtt = tcp.timestampEchoReply; } }",
    );
    let stamps = [TcpOption::Timestamps { value: 1, echo: 30 }];
    bench.tcp(50_999, TcpFlags::ACK, 0, &stamps, false);
    assert_eq!((bench.register("now"), bench.register("rtt")), (50, 20_000));
    bench.tcp(60_000, TcpFlags::ACK, 0, &[], false);
    assert_eq!(bench.register("rtt"), 0, "no time stamp, no elapsed time");
}

#[test]
fn both_directions_meet_one_instance_and_ends_are_told_apart_by_address_and_port_together() {
    let mut bench = Bench::new("Register count; State initial s { on (pktRcvd) { count = count + 1; } }");
    bench.tcp(0, TcpFlags::ACK, 0, &[], false);
    bench.tcp(1, TcpFlags::ACK, 0, &[], true);
    assert_eq!((bench.register("count"), bench.function.flows().len()), (2, 1));
}

#[test]
fn connect_presets_packets_one_and_two() {
    let program = "State initial s { sendPacket(1, 1); sendPacket(2, 2); }";
    let mut bench = Bench::new(program);
    bench.connect(6);
    assert_eq!(bench.sent(), [(14 + 20 + 32, 1), (14 + 20 + 32 + 1448, 2)]);
    let mut bench = Bench::new(program);
    bench.connect(17);
    assert_eq!(bench.sent(), [(14 + 20 + 8 + 1448, 1), (14 + 20 + 8 + 1448, 2)]);
}

#[test]
fn the_preset_segments_have_ack_set() {
    let mut bench = Bench::new(
        "State initial s { sendPacket(1, 1); sendPacket(2, 1); setField(tcp.flags, 1, 2); sendPacket(1, 1); }",
    );
    bench.connect(6);
    let flags: Vec<u8> = bench
        .out
        .items()
        .iter()
        .filter_map(|item| match item {
            Output::Send { bytes, .. } => Some(bench.out.bytes(bytes)[14 + 20 + 13]),
            _ => None,
        })
        .collect();
    assert_eq!(flags, [0x10, 0x10, 2]);
}

#[test]
fn a_sent_packet_does_not_change_any_more() {
    let mut bench = Bench::new(
        "State initial s { on (pktRcvd) {
             storePacket(0); setField(tcp.seqNo, 0, 5); sendPacket(0, 1); setField(tcp.seqNo, 0, 6); sendPacket(0, 1); sendPacket(CURR_PKT, 1);
         } }",
    );
    bench.packet(0);
    let sequences: Vec<u8> = bench
        .out
        .items()
        .iter()
        .filter_map(|item| match item {
            Output::Send { bytes, .. } => Some(bench.out.bytes(bytes)[14 + 20 + 7]),
            _ => None,
        })
        .collect();
    assert_eq!(sequences, [5, 6, 7]);
}

#[test]
fn the_length_of_udp_sizes_the_payload() {
    let mut bench =
        Bench::new("State initial s { setField(udp.length, 1, 108); setField(udp.p1, 1, 77); sendPacket(1, 1); }");
    bench.connect(17);
    assert_eq!(bench.sent(), [(14 + 20 + 108, 1)]);
}

#[test]
fn a_deleted_instance_is_gone_with_its_timers() {
    let mut bench = Bench::new("State initial s { on (pktRcvd) { setTimer(0, 0, 5); deleteInstance(); } }");
    bench.packet(0);
    assert_eq!((bench.function.flows().len(), bench.function.next_deadline()), (0, None));
}
