//! Random and hostile images in random circumstances: nothing panics, everything stays bounded, and the same run twice
//! is the same run.

use crate::support::circumstances::run;
use crate::support::image_load::image_load;
use crate::support::plain::Plain;
use crate::support::{random, rich, verified};
use proptest::prelude::*;
use serde_json::{Value, json};
use weftwire_core::outbox::Bytes;
use weftwire_engine::Reference;
use weftwire_image::{Image, VerifiedImage};

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn the_same_run_twice_is_the_same_run(
        image in random::image(),
        steps in random::steps(),
        seed in 0..3_u64,
    ) {
        let image = verified(image);
        let outputs = run::<Reference>(&image, &steps, seed, true);
        prop_assert_eq!(&outputs, &run::<Reference>(&image, &steps, seed, true));
        prop_assert_eq!(&outputs, &run::<Plain>(&image, &steps, seed, true), "another engine does the same");
        // Looking on changes nothing.
        let unseen = run::<Reference>(&image, &steps, seed, false);
        let seen = outputs.into_iter().filter(|(item, _)| !matches!(item, weftwire_core::Output::Trace(_)));
        let without_places = |(item, bytes)| (strip(item), bytes);
        prop_assert_eq!(
            seen.map(without_places).collect::<Vec<_>>(),
            unseen.into_iter().map(without_places).collect::<Vec<_>>()
        );
    }

    /// Rule E23: it does not matter whether operations stand in a row or in a block.
    #[test]
    fn blocks_do_what_stands_in_their_place(
        image in random::image(),
        cuts in proptest::collection::vec((0..8_usize, 0..8_usize), 1..8),
        steps in random::steps(),
        seed in 0..3_u64,
    ) {
        let blocks = random::in_blocks(image.clone(), &cuts);
        prop_assert_eq!(blocks.blocks.len(), image.rows.len() + image.preparations.len());
        let (image, blocks) = (verified(image), verified(blocks));
        let outputs = run::<Reference>(&image, &steps, seed, true);
        prop_assert_eq!(&outputs, &run::<Reference>(&blocks, &steps, seed, true));
        prop_assert_eq!(&outputs, &run::<Plain>(&blocks, &steps, seed, true), "another engine does the same");
    }

    #[test]
    fn hostile_documents_are_refused_or_run(
        mild: bool,
        changes in proptest::collection::vec((any::<u32>(), 0..HOSTILE.len() + 2), 1..4),
        steps in random::steps(),
    ) {
        let mut document = serde_json::to_value(random::in_blocks(rich(), &[(0, 2), (1, 9)])).expect("an image is JSON");
        for (place, change) in changes {
            spoil(&mut document, place as usize, change, mild);
        }
        let text = document.to_string();
        prop_assert!(VerifiedImage::from_json(text.as_bytes()).is_err(), "the digest is empty");
        if let Ok(mut image) = serde_json::from_value::<Image>(document) {
            image.seal();
            if let Ok(image) = VerifiedImage::from_json(&image.to_json()) {
                run::<Reference>(&image, &steps, 1, false);
            }
        }
    }

    #[test]
    fn broken_bytes_are_refused(place in 0..10_000_usize, byte: u8) {
        let mut bytes = verified(rich()).to_json();
        let place = place % bytes.len();
        let same = bytes[place] == byte;
        bytes[place] = byte;
        let spoiled = VerifiedImage::from_json(&bytes);
        // Blanks between tokens are the only bytes the digest does not cover.
        prop_assert!(same || spoiled.is_err() || spoiled.unwrap().to_json() != bytes);
        image_load(&bytes);
        image_load(&bytes[..place]);
    }
}

/// An output without its place in the outbox, which trace records do not move but other outputs' order might.
fn strip(item: weftwire_core::Output) -> weftwire_core::Output {
    use weftwire_core::Output;
    match item {
        Output::Send { at, port, offload, .. } => Output::Send { at, port, bytes: Bytes::default(), offload },
        Output::Deliver { flow, .. } => Output::Deliver { flow, bytes: Bytes::default() },
        other => other,
    }
}

/// What a value may become, besides nothing at all.
const HOSTILE: [i128; 12] =
    [0, 1, 2, 3, 7, -1, 255, 65_535, 1 << 31, i64::MAX as i128, i64::MIN as i128, u64::MAX as i128];

/// Changes the value at the `place`-th place of a document. If `mild`, only numbers change, and become small ones,
/// except those of formats: many such documents are still images.
fn spoil(document: &mut Value, place: usize, change: usize, mild: bool) {
    let change = if mild { 2 + change % 5 } else { change };
    let formats = document.as_object_mut().and_then(|members| mild.then(|| members.remove("formats")).flatten());
    let mut count = 0;
    visit(document, &mut |value| count += usize::from(!mild || value.is_number()));
    let mut left = Some(place % count);
    visit(document, &mut |value| {
        if mild && !value.is_number() {
            return;
        }
        match left {
            Some(0) => {
                replace(value, change);
                left = None;
            }
            Some(number) => left = Some(number - 1),
            None => {}
        }
    });
    if let (Some(formats), Some(members)) = (formats, document.as_object_mut()) {
        members.insert("formats".into(), formats);
    }
}

fn replace(value: &mut Value, change: usize) {
    match (value, change) {
        (value, 0) => *value = Value::Null,
        (Value::Array(items), 1) => {
            let again = items.first().cloned().unwrap_or(json!(0));
            items.push(again);
        }
        (Value::Object(members), 1) => {
            let first = members.keys().next().cloned();
            first.map(|name| members.remove(&name));
        }
        (value, 1) => *value = json!("x"),
        (value, number) => {
            let number = HOSTILE[number - 2];
            *value = i64::try_from(number).map_or_else(|_| Value::from(number as u64), Value::from);
        }
    }
}

/// Shows every value of a document, those inside of it last.
fn visit(value: &mut Value, look: &mut impl FnMut(&mut Value)) {
    look(value);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, look)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, look)),
        _ => {}
    }
}
