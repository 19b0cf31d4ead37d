//! What the fuzz targets do with their input, as plain functions, so that the corpora can be replayed without a fuzzer.
//! Each panics if something that must always hold does not.

use weftwire_core::p4::parse_headers;
use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::{
    DropReason, FieldPlace, Format, FormatPlace, Formats, Frame, LinkType, Offload, Packet, Segmentation,
    builtin_formats, segments,
};

/// The first byte chooses link type and offloads, the second an operation; the rest is a frame.
pub fn packet_parse(data: &[u8]) {
    let [choice, operation, bytes @ ..] = data else { return };
    let link = if choice & 1 == 0 { LinkType::Ethernet } else { LinkType::Ip };
    let checksum = match choice >> 1 & 3 {
        0 => Checksum::Unverified,
        1 => Checksum::Partial,
        _ => Checksum::Verified,
    };
    let kind = SegmentationKind::TcpIpv4 { ecn: false };
    let segmentation = (choice & 8 != 0).then_some(Segmentation { size: u16::from(*choice), kind });
    let frame = Frame { bytes, offload: Offload { segmentation, checksum } };
    let formats = imported_formats();
    let Ok(mut packet) = Packet::parse(link, frame, &formats) else { return };

    let fields = all_fields(&formats);
    let read = |packet: &Packet| fields.iter().map(|field| packet.get_wide(*field)).collect::<Vec<_>>();
    let before = read(&packet);
    packet.reverse();
    packet.reverse();
    assert_eq!(read(&packet), before, "turned round twice");

    let length = usize::from(*operation);
    let payload = packet.payload().len();
    match operation % 4 {
        0 => drop(packet.keep_options(&[2, 3, *operation])),
        1 => {
            if packet.resize_payload(length).is_ok() {
                assert_eq!(packet.payload().len(), length);
            }
        }
        2 => {
            if packet.append_payload(&data[..length.min(data.len())]).is_ok() {
                assert_eq!(packet.payload().len(), payload + length.min(data.len()));
            }
        }
        _ => write_fields(&mut packet, &fields),
    }
    packet.finish();
    let mut out = weftwire_core::Buffer::default();
    let offload = packet.emit(link, &mut out);
    assert_eq!(out.len(), packet.frame_length());
    if operation % 4 == 3 {
        // Writing anything into version or length fields may make a packet that nobody takes.
        return;
    }
    let again =
        Packet::parse(link, Frame { bytes: &out, offload }, &Formats::default()).expect("what was sent is accepted");
    assert_eq!(again.endpoints(), packet.endpoints());
    let count = segments(link, Frame { bytes: &out, offload }).expect("what parses can be cut").map(|segment| {
        Packet::parse(link, Frame::new(&segment), &Formats::default()).expect("segments are accepted");
    });
    assert!(count.count() > 0);
}

/// Writes every field and reads it back: what is still there holds the value.
fn write_fields(packet: &mut Packet, fields: &[FieldPlace]) {
    let formats = Formats::default();
    // `udp.length` keeps at least the headers' length. `tcp.sack_permitted` is the byte that the option is found by: once it
    // is another one, the packet's next such option is read.
    let others = [formats.field("udp", "length"), formats.field("tcp", "sack_permitted")];
    for field in fields {
        let value = 0x5a5a_5a5a_5a5a_5a5a;
        match packet.set(*field, value) {
            Ok(()) if field.width() <= 64 && !others.contains(&Some(*field)) => {
                let kept = value & (u64::MAX >> (64 - field.width()));
                // A write to the kind byte before may have ended the option.
                assert!(packet.get(*field).is_none_or(|got| got == kept), "{field:?}");
            }
            Ok(()) | Err(DropReason::NoField | DropReason::TooLong) => {}
            Err(reason) => panic!("{reason:?}"),
        }
    }
}

fn imported_formats() -> Formats {
    let headers = parse_headers("header a { bit<7> x; bit<33> y; bit<8> z; } header b { bit<64> w; }").expect("fine");
    let after = |header: &str, when| FormatPlace::After { header: header.to_owned(), when };
    let when = Some(("a".to_owned(), "z".to_owned(), 0));
    let formats =
        [Format::from_p4(&headers[0], after("transport", None)), Format::from_p4(&headers[1], after("a", when))];
    Formats::new(&formats).expect("these are fine")
}

fn all_fields(formats: &Formats) -> Vec<FieldPlace> {
    let builtin = builtin_formats().iter();
    let mut places: Vec<_> = builtin
        .flat_map(|format| format.fields.iter().filter_map(|field| formats.field(&format.name, &field.name)))
        .collect();
    places.extend(["x", "y", "z"].iter().filter_map(|field| formats.field("a", field)));
    places.extend(formats.field("b", "w"));
    places
}

/// P4 text.
pub fn p4_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_headers(&text) {
        Err(errors) => {
            assert!(!errors.is_empty());
            let lines = text.split('\n').count() as u32;
            assert!(errors.iter().all(|error| (1..=lines).contains(&error.line) && error.column >= 1));
        }
        Ok(headers) => {
            for header in headers {
                assert!(header.length() > 0 && header.length() % 8 == 0);
                let place = FormatPlace::After { header: "udp".to_owned(), when: None };
                // Refused or not: no panic.
                let _ = Formats::new(&[Format::from_p4(&header, place)]);
            }
        }
    }
}
