//! The body of the fuzz target `flow_state`. It needs nothing of this folder: the fuzz crate includes the file by
//! `#[path]`, with `weftwire-core`, `weftwire-image`, `weftwire-engine` and `serde_json` as dependencies.

use std::net::{IpAddr, Ipv4Addr};
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::format::Formats;
use weftwire_core::inspect::Inspect;
use weftwire_core::packet::Packet;
use weftwire_core::{Connections, Endpoints, Frame, Function, LinkType, MacAddress, Outbox, Port, Ports, Time};
use weftwire_engine::state::{FlowState, FunctionState, states};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::layout::{FUNCTION_SCHEMA, FunctionLayout, OLDEST_STATE_SCHEMA, SEMANTICS_VERSION, STATE_SCHEMA};
use weftwire_image::{Image, VerifiedImage};

/// The image that the states are of: one that shows all it knows.
const IMAGE: &[u8] = include_bytes!("../../../../fuzz/corpus/image_load/lively");

/// Bytes of the head of a state: what it is, of which version, how long, and of which image.
const HEAD: usize = 64;

/// A fuzzer's bytes as the state of a flow, of a function, and as a file of states. What is taken is written again as it
/// was, and lives: nothing may panic, and no work is without end. Returns whether anything was taken.
pub fn flow_state(bytes: &[u8]) -> bool {
    if let Ok((_, list)) = states(bytes) {
        list.take_while(Result::is_ok).for_each(|_| {});
    }
    let mut taken = BASE.with(|base| base.try_both(bytes));
    // A fuzzer can't guess digests.
    if bytes.len() >= HEAD {
        BASE.with(|base| {
            let mut mended = bytes.to_vec();
            let word = |value: u64| value.to_le_bytes();
            mended[16..24].copy_from_slice(&word(SEMANTICS_VERSION));
            mended[24..32].copy_from_slice(&word(bytes.len() as u64));
            mended[32..HEAD].copy_from_slice(&base.image);
            for (magic, schema) in [(b"WEFTFLOW", STATE_SCHEMA), (b"WEFTFUNC", FUNCTION_SCHEMA)] {
                mended[..8].copy_from_slice(magic);
                if !(OLDEST_STATE_SCHEMA..schema).contains(&schema_of(bytes)) {
                    mended[8..16].copy_from_slice(&schema.to_le_bytes());
                }
                taken |= base.try_both(&mended);
            }
        });
    }
    taken
}

thread_local! {
    static BASE: Base = Base::new();
}

/// What is the same for all bytes.
struct Base {
    engine: ReferenceEngine,
    layout: FunctionLayout,
    /// Digest of the image.
    image: [u8; 32],
}

/// The image, sealed again: it may have been written by an older version.
pub fn image() -> VerifiedImage {
    let mut image: Image = serde_json::from_slice(IMAGE).expect("the corpus has an image");
    image.seal();
    image.verify().expect("it is a good one")
}

impl Base {
    fn new() -> Base {
        let image = image();
        let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
        let layout = FunctionLayout::of(&image);
        let engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("a verified image");
        let image = engine.snapshot_all(None).image;
        Base { engine, layout, image }
    }

    fn another(&self) -> ReferenceEngine {
        self.engine.another(EngineOptions::default()).expect("as before")
    }

    fn try_both(&self, bytes: &[u8]) -> bool {
        self.one(bytes) | self.whole(bytes)
    }

    fn one(&self, bytes: &[u8]) -> bool {
        let Ok(state) = FlowState::from_bytes(bytes, &self.layout.flow) else { return false };
        let again = state.to_bytes(&self.layout.flow);
        if schema_of(bytes) == STATE_SCHEMA {
            assert_eq!(again, bytes, "equal states have equal bytes");
        }
        assert_eq!(FlowState::from_bytes(&again, &self.layout.flow).as_ref(), Ok(&state), "what is written is read");
        let mut engine = self.another();
        let clocks = state.clocks.as_ref();
        let Ok(flow) = engine.restore(state.time, &state, clocks) else { return false };
        let there = engine.snapshot(flow, clocks).expect("it was put in");
        // Samples that were due on the way are not shown.
        assert_eq!(FlowState { samples: state.samples.clone(), ..there }, state, "it is as it was");
        live(&mut engine);
        true
    }

    fn whole(&self, bytes: &[u8]) -> bool {
        let Ok(state) = FunctionState::from_bytes(bytes, &self.layout) else { return false };
        let again = state.to_bytes(&self.layout);
        if schema_of(bytes) == FUNCTION_SCHEMA {
            assert_eq!(again, bytes, "equal states have equal bytes");
        }
        assert_eq!(FunctionState::from_bytes(&again, &self.layout).as_ref(), Ok(&state), "what is written is read");
        let mut engine = self.another();
        let taken = engine.restore_all(&state).is_ok();
        if taken {
            live(&mut engine);
        }
        taken
    }
}

/// The schema that a state says. Those of one before are written in the new form.
fn schema_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"))
}

/// Some of what is due, a few packets and calls.
fn live(engine: &mut ReferenceEngine) {
    let mut out = Outbox::tracing();
    for _ in 0..200 {
        engine.run_next(Time::MAX, &mut out);
        out.clear();
    }
    if engine.next_deadline().is_some_and(|deadline| deadline.at < engine.snapshot_all(None).time) {
        return;
    }
    let now = engine.snapshot_all(None).time;
    for number in 0..4_u8 {
        let transport = if number % 2 == 0 { TemplateTransport::Udp } else { TemplateTransport::Tcp };
        let ends = Endpoints {
            protocol: if number % 2 == 0 { 17 } else { 6 },
            local_address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)),
            local_port: 4_000,
            remote_address: IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)),
            remote_port: 80,
            local_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            remote_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            vlan: None,
        };
        let bare =
            TemplateSpec { transport, tcp_options: &[2, 8], wanted: &[], headers: &[], payload: 40, presets: &[] };
        let mut frame = weftwire_core::Buffer::default();
        Packet::build(&bare, &ends, &Formats::default()).emit(LinkType::Ethernet, &mut frame);
        engine.frame(now, Port(1), Frame::new(&frame), &mut out);
    }
    for flow in engine.flows() {
        let _ = engine.write(now, flow.flow, &[7; 100], &mut out);
        let _ = engine.close(now, flow.flow, &mut out);
        assert!(Inspect::flow(engine, flow.flow).is_none_or(|detail| detail.summary.flow == flow.flow));
    }
}
