//! The TCP in XL between two engines, back to back.

use std::net::{IpAddr, Ipv4Addr};

use weftwire_core::{
    Arrival, Arrivals, Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output,
    Port, Ports, Time,
};
use weftwire_engine::{EngineOptions, make};
use weftwire_lang::{Dialect, compile};
use weftwire_text::{LoadError, Loader};

use super::cases::{INTERVAL, SEGMENT};

const PORT: Port = Port(1);

/// A connection between two engines, whose line loses and delays nothing.
pub struct Pair {
    ends: [End; 2],
    bytes: Vec<u8>,
    now: Time,
}

/// One end of it.
struct End {
    engine: Box<dyn Function>,
    flow: FlowId,
    arrivals: Arrivals,
    out: Outbox,
}

impl Pair {
    /// An established connection that writes this much at a time.
    pub fn open(write: usize) -> Pair {
        let mut pair = Pair { ends: [End::new(), End::new()], bytes: vec![7; write], now: Time::ZERO };
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let ends = Endpoints {
            protocol: 6,
            local_address: address(1),
            local_port: 40_000,
            remote_address: address(2),
            remote_port: 80,
            local_mac: MacAddress([0; 6]),
            remote_mac: MacAddress([0; 6]),
            vlan: None,
        };
        let [client, server] = &mut pair.ends;
        End::calls(&mut server.engine)
            .listen(pair.now, &Listen::default(), &mut server.out)
            .expect("a machine that listens");
        client.flow =
            End::calls(&mut client.engine).connect(pair.now, &ends, &mut client.out).expect("a machine that connects");
        pair.settle();
        // Until the window is open and timers of the handshake are over.
        (0..1_000).for_each(|_| pair.write());
        pair
    }

    /// The application of the first end writes, the second one's reads.
    pub fn write(&mut self) {
        let client = &mut self.ends[0];
        let accepted = End::calls(&mut client.engine).write(self.now, client.flow, &self.bytes, &mut client.out);
        assert_eq!(accepted, Ok(self.bytes.len()), "the line is fast");
        self.settle();
    }

    /// Time goes on until no frame is on the line.
    fn settle(&mut self) {
        loop {
            self.now = self.now.after(INTERVAL);
            let [client, server] = &mut self.ends;
            let moved = client.pass_on(self.now, server) | server.pass_on(self.now, client);
            for end in &mut self.ends {
                end.run(self.now);
            }
            if !moved {
                return;
            }
        }
    }
}

impl End {
    fn new() -> End {
        let compiled = compile("tcp.xl", Dialect::Xl, &Sources).image.expect("the examples compile");
        let image = compiled.verify().expect("the compiler makes images that verify");
        let ports = Ports::new([(PORT, LinkType::Ip)]);
        let engine = make("reference", image, ports, EngineOptions::default()).expect("the engine exists");
        End { engine, flow: FlowId(0), arrivals: Arrivals::new(), out: Outbox::new() }
    }

    fn calls(engine: &mut Box<dyn Function>) -> &mut dyn Connections {
        engine.connections().expect("a machine for applications")
    }

    /// What was put out goes to the other end and to the application, which reads at once. Gives whether anything went to the other end.
    fn pass_on(&mut self, now: Time, other: &mut End) -> bool {
        let (mut moved, mut read) = (false, 0);
        for output in self.out.items() {
            match output {
                Output::Send { bytes, offload, .. } => {
                    let frame = Frame { bytes: self.out.bytes(bytes), offload: *offload };
                    other.arrivals.push_back(Arrival::copied(PORT, frame, &mut other.out));
                    moved = true;
                }
                Output::Deliver { bytes, .. } => read += self.out.bytes(bytes).len(),
                Output::Opened { flow, .. } => self.flow = *flow,
                _ => {}
            }
        }
        self.out.clear();
        if read > 0 {
            End::calls(&mut self.engine).consumed(now, self.flow, read, &mut self.out).expect("the flow is there");
        }
        moved
    }

    fn run(&mut self, now: Time) {
        self.engine.frames(now, &mut self.arrivals, &mut self.out);
        if self.engine.next_deadline().is_some_and(|deadline| deadline.at <= now) {
            self.engine.fire(now, &mut self.out);
        }
    }
}

/// One segment of full size, its acknowledgment, and what both ends do about them.
pub fn segments() -> Box<dyn FnMut()> {
    let mut pair = Pair::open(SEGMENT);
    Box::new(move || pair.write())
}

/// The folder of its sources.
struct Sources;

impl Loader for Sources {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp");
        std::fs::read_to_string(std::path::Path::new(folder).join(name)).map_err(LoadError::from)
    }
}
