//! Initial values of registers, written as text.

use weftwire_catalog::parameter::{ParameterError, apply};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};

const MACHINE: &str = "machine m;\nflow key five_tuple;\nregister wait: time = 1s;\nregister peer: ipv4;\n\
    register small: u8 = 3;\ninitial state s { on packet { small = small + 1; peer = peer; wait = wait; } }\n";

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
    assert_eq!(initial(&set("small", "0xff").unwrap(), "small"), Some(255));
    assert_ne!(set("small", "4").unwrap().digest, image().digest);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (name, value, words) in [
        ("small", "256", "from 0 to 255"),
        ("small", "-1", "from 0 to 255"),
        ("wait", "soon", "200ms"),
        ("peer", "::1", "10.0.0.1"),
        ("smal", "1", "did you mean `small`?"),
    ] {
        let error = set(name, value).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
