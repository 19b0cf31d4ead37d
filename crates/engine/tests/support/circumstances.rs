//! Runs a machine through random circumstances and watches its bounds.

use super::random::Step;
use super::{client, datagram, segment};
use weftwire_core::{FlowId, Frame, Function, LinkType, Listen, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, Executor, Runtime};
use weftwire_image::VerifiedImage;

/// Everything a run puts out, with its bytes.
pub type Outputs = Vec<(Output, Vec<u8>)>;

/// Runs a machine through these steps and returns what it put out.
pub fn run<E: Executor>(image: &VerifiedImage, steps: &[Step], seed: u64, tracing: bool) -> Outputs {
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
    let options = EngineOptions { seed, ..EngineOptions::default() };
    let mut engine = Runtime::<E>::new(image.clone(), ports, options).expect("it lacks nothing");
    let mut outputs = Outputs::new();
    let mut out = Outbox::new().bounded(usize::MAX);
    out.set_tracing(tracing);
    let mut now = 0;
    for step in steps {
        apply(step, &mut engine, &mut now, &mut out);
        for item in out.items() {
            let bytes = match item {
                Output::Send { bytes, .. } | Output::Deliver { bytes, .. } => out.bytes(bytes).to_vec(),
                _ => Vec::new(),
            };
            outputs.push((item.clone(), bytes));
        }
        out.clear();
        check_bounds(&engine, image);
    }
    outputs
}

/// Does one step at `now`.
pub fn apply(step: &Step, engine: &mut dyn Function, now: &mut i64, out: &mut Outbox) {
    let at = Time::from_nanoseconds(*now);
    match step {
        Step::Frame { port, client, tcp, payload } => {
            let frame = if *tcp { segment(*client, &[2, 8], payload) } else { datagram(*client, payload) };
            let start = if *port == 1 { 0 } else { 14 };
            engine.frame(at, Port(*port), Frame::new(&frame[start..]), out);
        }
        Step::Noise(bytes) => engine.frame(at, Port(1), Frame::new(bytes), out),
        Step::Connect(number) => {
            let _ = engine.connections().expect("engines carry connections").connect(at, &client(*number), out);
        }
        Step::Write(flow, length) => {
            let _ = engine.connections().expect("engines carry connections").write(
                at,
                FlowId(*flow),
                &vec![7; *length],
                out,
            );
        }
        Step::Close(flow) => {
            let _ = engine.connections().expect("engines carry connections").close(at, FlowId(*flow), out);
        }
        Step::Listen(port) => {
            let local = Listen { address: None, port: Some(*port).filter(|port| *port > 0) };
            let _ = engine.connections().expect("engines carry connections").listen(at, &local, out);
        }
        Step::Accept(flow) => {
            let _ = engine.connections().expect("engines carry connections").accept(at, FlowId(*flow), out);
        }
        Step::Consumed(flow, length) => {
            let _ = engine.connections().expect("engines carry connections").consumed(at, FlowId(*flow), *length, out);
        }
        Step::Abort(flow) => {
            let _ = engine.connections().expect("engines carry connections").abort(at, FlowId(*flow), out);
        }
        Step::Fire => {
            engine.fire(at, out);
            let deadline = engine.next_deadline();
            assert!(deadline.is_none_or(|deadline| deadline.at > at), "something is due after `fire`");
        }
        Step::Wait(time) => *now += time,
    }
}

fn check_bounds(engine: &dyn Function, image: &VerifiedImage) {
    let flows = engine.flows();
    assert!(flows.len() <= image.flow.max as usize, "the flow table is bounded");
    assert_eq!(flows.len() as u64, engine.counters().flows_live);
    for flow in flows {
        let detail = engine.flow(flow.flow).expect("a live flow");
        assert!(detail.timers.len() <= image.flow.max_timers as usize, "timers are bounded");
        let stored = image.registers.iter().filter(|register| !register.scratch);
        for (register, value) in stored.zip(&detail.registers) {
            assert_eq!(register.kind.cut(value.value), value.value, "registers hold what their type holds");
        }
    }
}
