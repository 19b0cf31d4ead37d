//! Initial values of registers, written as text.

use weftwire_catalog::parameter::{ParameterError, apply};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};

const MACHINE: &str = "machine m;\nflow key five_tuple;\nregister wait: time = 1s;\nregister peer: ipv4;\n\
    register line: rate = 1Gbit/s;\nregister small: u8 = 3;\n\
    initial state s { on packet { small = small + 1; peer = peer; wait = wait; line = line; } }\n";

fn image() -> VerifiedImage {
    compile("m.xl", Dialect::Xl, &MACHINE).image.unwrap().verify().unwrap()
}

fn set(name: &str, value: &str) -> Result<VerifiedImage, ParameterError> {
    apply(image(), &[(name.to_owned(), value.to_owned())])
}

#[test]
fn values_are_written_as_their_types_are() {
    let initial = |image: &VerifiedImage, name: &str| {
        image.registers.iter().find(|register| register.name == name).map(|register| register.initial)
    };
    assert_eq!(initial(&set("wait", "250ms").unwrap(), "wait"), Some(250_000_000));
    assert_eq!(initial(&set("peer", "10.0.0.1").unwrap(), "peer"), Some(0x0a00_0001));
    assert_eq!(initial(&set("line", "2.5Mbit/s").unwrap(), "line"), Some(2_500_000));
    assert_eq!(initial(&set("line", "64").unwrap(), "line"), Some(64));
    assert_eq!(initial(&set("small", "0xff").unwrap(), "small"), Some(255));
    assert_ne!(set("small", "4").unwrap().digest, image().digest);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (name, value, words) in [
        ("small", "256", "from 0 to 255"),
        ("small", "-1", "from 0 to 255"),
        ("wait", "soon", "200ms"),
        ("line", "fast", "10Mbit/s"),
        ("peer", "::1", "10.0.0.1"),
        ("smal", "1", "did you mean `small`?"),
    ] {
        let error = set(name, value).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// Which module's notice a packet makes, if the parameter that chooses has this value.
fn told_by(parameters: &[(String, String)]) -> i64 {
    let source = "interface way { action go(by: u8); action back() { notify told(0); } }\n\
        module first is way { register own: u8 = 10; action go(by: u8) { notify told(own + by); } action back() { notify told(9); } }\n\
        module second is way { register own: u8 = 20; action go(step: u8) { notify told(own + step); own = 30; } }\n\
        module third is way { register own: u8 = 40; action go(by: u8) { notify told(own + by); } }\n\
        use way from first, second, third by parameter taken = second;\n\
        initial state s { on packet { go(1); back(); go(2); } }\n";
    let image = apply(compile("m.xl", Dialect::Xl, &source).image.unwrap().verify().unwrap(), parameters).unwrap();
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).unwrap();
    let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
    let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(1, 2).finish().unwrap();
    let mut out = Outbox::new();
    engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
    let told = out.items().iter().filter_map(|item| match item {
        Output::Notify { value, .. } => Some(*value),
        _ => None,
    });
    // Three notices in one number, two digits each.
    told.fold(0, |all, value| all * 100 + value)
}

#[test]
fn a_parameter_chooses_a_module_by_name_or_number() {
    let chosen = |value: &str| told_by(&[("taken".into(), value.into())]);
    assert_eq!(told_by(&[]), 210_032, "the one that the program says");
    assert_eq!((chosen("first"), chosen("0")), (110_912, 110_912));
    assert_eq!((chosen("second"), chosen("1")), (210_032, 210_032));
    assert_eq!((chosen("third"), chosen("2")), (410_042, 410_042));
    assert_eq!(chosen("200"), 410_042, "beyond the last there is the last");
    // What belongs to a module is set by its whole name.
    assert_eq!(told_by(&[("second.own".into(), "50".into())]), 510_032);
}

#[test]
fn a_name_that_no_module_has_is_refused() {
    let source = "interface way { action go(); } module one is way { action go() { } } module two is way { action go() { notify x; } }\n\
        use way from one, two by parameter taken; initial state s { on packet { go(); } }\n";
    let image = || compile("m.xl", Dialect::Xl, &source).image.unwrap().verify().unwrap();
    let refused = |text: &str| apply(image(), &[("taken".into(), text.into())]).unwrap_err().to_string();
    assert_eq!(refused("three"), "parameter taken: `three` does not fit; write one, two");
    assert_eq!(refused("256"), "parameter taken: `256` does not fit; write one, two");
}
