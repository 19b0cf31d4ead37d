//! The layout of states: without gaps, with all that the image declares, and as a table.

mod support;

use support::*;
use weftwire_core::DropReason;
use weftwire_image::RegisterType;
use weftwire_image::layout::{Counted, StateLayout, WORD};

#[test]
fn fields_follow_one_another() {
    let layout = StateLayout::of(&verified(rich()));
    let mut end = 0;
    for field in &layout.fields {
        assert_eq!(field.offset, end, "{}", field.name);
        end += field.words * WORD;
    }
    assert_eq!(layout.fixed_length(), end);
    let place = |name: &str| layout.field(name).map(|field| (field.words, field.holds));
    // Two addresses, two ports and a protocol.
    assert_eq!((layout.key_bytes, place("key")), (37, Some((5, "the flow key"))));
    assert_eq!(
        (place("register count"), place("register hash")),
        (Some((1, "u32")), None),
        "scratch ones are no state"
    );
    assert!(place("sample of count").is_some() && place("packet first").is_some());
}

#[test]
fn hardware_finds_the_same_places_whatever_the_image_declares() {
    let small = StateLayout::of(&verified(machine()));
    let large = StateLayout::of(&verified(rich()));
    for name in ["magic", "length", "image", "time", "hash key", "flow", "state", "created", "key"] {
        assert_eq!(small.field(name), large.field(name));
    }
}

#[test]
fn the_longest_state_has_all_of_everything() {
    let mut image = machine();
    image.flow.max_timers = 3;
    image.slots = vec![];
    let layout = StateLayout::of(&verified(image));
    let of: Vec<_> =
        layout.sections().map(|section| (section.name.as_str(), section.length(1), section.length(9))).collect();
    assert_eq!(of, [("drops", 16, 144), ("timers", 56, 504), ("send buffer", 8, 16)]);
    assert_eq!(layout.longest(), layout.fixed_length() + DropReason::ALL.len() * 16 + 3 * 56 + (1 << 20));
    assert_eq!((layout.send_buffer.counted, layout.send_buffer.length(0)), (Counted::Bytes, 0));
}

#[test]
fn people_get_a_table() {
    let mut image = machine();
    image.registers.push(weftwire_image::Register { kind: RegisterType::Ipv4, ..register("server") });
    let text = StateLayout::of(&verified(image)).to_string();
    assert!(text.starts_with("State of a flow: schema 2, semantics 2, 408 bytes"), "{text}");
    assert!(text.contains("\n       0      8  magic              the bytes `WEFTFLOW`\n"), "{text}");
    assert!(text.contains("register server    ipv4\n"), "{text}");
    assert!(text.contains("\ntimers: an entry for each of `timers`, at most 8\n       0      8  due "), "{text}");
}
