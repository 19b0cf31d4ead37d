//! Random and hostile images in random circumstances: nothing panics, everything stays bounded, and the same run twice
//! is the same run.

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use support::circumstances::{image_load, run};
use support::{random, rich, verified};
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
        let outputs = run(&image, &steps, seed, true);
        prop_assert_eq!(&outputs, &run(&image, &steps, seed, true));
        // Looking on changes nothing.
        let unseen = run(&image, &steps, seed, false);
        let seen = outputs.into_iter().filter(|(item, _)| !matches!(item, weftwire_core::Output::Trace(_)));
        let without_places = |(item, bytes)| (strip(item), bytes);
        prop_assert_eq!(
            seen.map(without_places).collect::<Vec<_>>(),
            unseen.into_iter().map(without_places).collect::<Vec<_>>()
        );
    }

    #[test]
    fn hostile_documents_are_refused_or_run(
        changes in proptest::collection::vec((any::<u32>(), 0..HOSTILE.len() + 2), 1..4),
        steps in random::steps(),
    ) {
        let mut document = serde_json::to_value(rich()).expect("an image is JSON");
        for (place, change) in changes {
            spoil(&mut document, place as usize, change);
        }
        let text = document.to_string();
        prop_assert!(VerifiedImage::from_json(text.as_bytes()).is_err(), "the digest is empty");
        if let Ok(mut image) = serde_json::from_value::<Image>(document) {
            image.seal();
            if let Ok(image) = VerifiedImage::from_json(&image.to_json()) {
                run(&image, &steps, 1, false);
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
        Output::Send { at, port, offload, .. } => Output::Send { at, port, bytes: 0..0, offload },
        Output::Deliver { flow, .. } => Output::Deliver { flow, bytes: 0..0 },
        other => other,
    }
}

/// What a number or anything else may become.
const HOSTILE: [i128; 12] =
    [0, 1, 2, 3, 7, -1, 255, 65_535, 1 << 31, i64::MAX as i128, i64::MIN as i128, u64::MAX as i128];

/// Changes the value at the `place`-th place of a document.
fn spoil(document: &mut Value, place: usize, change: usize) {
    let mut count = 0;
    count_values(document, &mut count);
    let mut place = place % count;
    visit(document, &mut place, &mut |value| {
        let replacement = match change {
            0 => Some(Value::Null),
            1 => None,
            number => {
                let number = HOSTILE[number - 2];
                i64::try_from(number).map(Value::from).ok().or(u64::try_from(number).map(Value::from).ok())
            }
        };
        match (value, replacement) {
            (Value::Array(items), None) => {
                let again = items.first().cloned().unwrap_or(json!(0));
                items.push(again);
            }
            (Value::Object(members), None) => {
                let first = members.keys().next().cloned();
                first.map(|name| members.remove(&name));
            }
            (value, None) => *value = json!("x"),
            (value, Some(replacement)) => *value = replacement,
        }
    });
}

fn count_values(value: &Value, count: &mut usize) {
    *count += 1;
    match value {
        Value::Array(items) => items.iter().for_each(|item| count_values(item, count)),
        Value::Object(members) => members.values().for_each(|member| count_values(member, count)),
        _ => {}
    }
}

fn visit(value: &mut Value, left: &mut usize, change: &mut impl FnMut(&mut Value)) {
    if *left == 0 {
        change(value);
        *left = usize::MAX;
        return;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, left, change)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, left, change)),
        _ => {}
    }
}
