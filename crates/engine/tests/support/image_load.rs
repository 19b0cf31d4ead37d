//! The body of the fuzz target `image_load`. It needs nothing of this folder: the fuzz crate includes the file by
//! `#[path]`, with `weftwire-core`, `weftwire-image`, `weftwire-engine` and `serde_json` as dependencies; any sealed
//! image is a good first input.

use std::net::{IpAddr, Ipv4Addr};
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::format::Formats;
use weftwire_core::packet::Packet;
use weftwire_core::{Endpoints, Frame, LinkType, MacAddress, Outbox, Port, Ports, Time};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::{Image, VerifiedImage};

/// A fuzzer's bytes as an image. If they have the form of one, it is sealed, as a fuzzer can't guess digests; if it is
/// a good one, it runs. Nothing may panic.
pub fn image_load(bytes: &[u8]) {
    if let Ok(image) = VerifiedImage::from_json(bytes) {
        run(&image);
    } else if let Ok(mut image) = serde_json::from_slice::<Image>(bytes) {
        image.seal();
        if let Ok(image) = image.verify() {
            run(&image);
        }
    }
}

/// A connection, some packets, and a little time.
fn run(image: &VerifiedImage) {
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
    let Ok(mut engine) = make("reference", image.clone(), ports, EngineOptions::default()) else { return };
    let mut out = Outbox::tracing().bounded(usize::MAX);
    for number in 0..8_u8 {
        let now = Time::from_nanoseconds(i64::from(number) * 1_000);
        let transport = if number % 2 == 0 { TemplateTransport::Udp } else { TemplateTransport::Tcp };
        let ends = Endpoints {
            protocol: if number % 2 == 0 { 17 } else { 6 },
            local_address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, number % 3)),
            local_port: 4_000,
            remote_address: IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)),
            remote_port: 80,
            local_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            remote_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            vlan: None,
        };
        if let Ok(flow) = engine.connections().expect("engines carry connections").connect(now, &ends, &mut out) {
            // The flow may have ended again at once.
            let _ = engine.connections().expect("engines carry connections").write(now, flow, &[7; 100], &mut out);
        }
        let bare =
            TemplateSpec { transport, tcp_options: &[2, 8], wanted: &[], headers: &[], payload: 40, presets: &[] };
        let mut frame = weftwire_core::Buffer::default();
        Packet::build(&bare, &ends, &Formats::default()).emit(LinkType::Ethernet, &mut frame);
        engine.frame(now, Port(1), Frame::new(&frame), &mut out);
        engine.fire(now, &mut out);
        let flows = engine.flows();
        assert!(flows.len() <= image.flow.max as usize, "the flow table is bounded");
        out.clear();
    }
}
