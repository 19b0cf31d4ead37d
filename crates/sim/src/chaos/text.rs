//! Faults as text of a network's file.

use super::Fault;
use super::expand::{Block, BlockKind, Property, blocks};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weftwire_core::nanoseconds;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Loss};

/// The blocks `[[faults]]` and `[[changes]]` which, put behind the network's file, give the same run as [`super::expand()`]
/// does.
pub fn to_toml(faults: &[Fault], network: &Network) -> String {
    let mut text = String::new();
    for block in blocks(network, faults) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing into a string does not fail.
        let _ = write_block(&mut text, network, &block);
    }
    text
}

fn write_block(text: &mut String, network: &Network, block: &Block) -> std::fmt::Result {
    let changes = matches!(block.what, BlockKind::Settings { .. });
    writeln!(text, "[[{}]]", if changes { "changes" } else { "faults" })?;
    writeln!(text, "at = \"{}\"", duration(block.at.nanoseconds()))?;
    if !block.lasts.is_zero() {
        writeln!(text, "for = \"{}\"", duration(nanoseconds(block.lasts)))?;
    }
    let link = |link, direction: Option<usize>| {
        let mut lines = format!("link = \"{}\"\n", network.link(link).name);
        if let Some(direction) = direction {
            lines += ["direction = \"forward\"\n", "direction = \"backward\"\n"][direction];
        }
        lines
    };
    match &block.what {
        BlockKind::Settings { link: index, direction, settings, properties } => {
            text.push_str(&link(*index, Some(*direction)));
            write_settings(text, settings, properties)
        }
        BlockKind::Down { link: index, direction } => {
            write!(text, "kind = \"link-down\"\n{}", link(*index, *direction))
        }
        BlockKind::Blackhole { link: index, direction } => {
            write!(text, "kind = \"blackhole\"\n{}", link(*index, Some(*direction)))
        }
        BlockKind::Field { link: index, direction, field } => {
            write!(text, "kind = \"corrupt-field\"\n{}", link(*index, Some(*direction)))?;
            writeln!(text, "field = \"{}\"\nmask = {:#x}", field.field, field.mask)?;
            writeln!(text, "share = {}", share(f64::from(field.share_millionths) / 1e6))
        }
        BlockKind::Restart { node } => {
            writeln!(text, "kind = \"node-restart\"\nnode = \"{}\"", network.node(*node).name)
        }
        BlockKind::Clock { node, drift_ppm, leap } => {
            writeln!(text, "kind = \"clock\"\nnode = \"{}\"\ndrift_ppm = {drift_ppm}", network.node(*node).name)?;
            if leap.is_zero() {
                return Ok(());
            }
            writeln!(text, "leap = \"{}\"", duration(nanoseconds(*leap)))
        }
    }
}

fn write_settings(text: &mut String, settings: &LinkSettings, properties: &BTreeSet<Property>) -> std::fmt::Result {
    for property in properties {
        match property {
            Property::Loss => match settings.loss {
                Loss::Random(loss) => writeln!(text, "loss = {}", share(loss))?,
                Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                    let [to_bad, to_good, good, bad] = [good_to_bad, bad_to_good, loss_good, loss_bad].map(share);
                    writeln!(
                        text,
                        "loss = {{ good_to_bad = {to_bad}, bad_to_good = {to_good}, loss_good = {good}, loss_bad = {bad} }}"
                    )?;
                }
            },
            Property::Delay => writeln!(text, "delay = \"{}\"", duration(nanoseconds(settings.delay)))?,
            Property::Reorder => {
                let (share, delay) = (share(settings.reorder), duration(nanoseconds(settings.reorder_delay)));
                writeln!(text, "reorder = {{ share = {share}, delay = \"{delay}\" }}")?;
            }
            Property::Duplicate => writeln!(text, "duplicate = {}", share(settings.duplicate))?,
            Property::Corrupt => writeln!(text, "corrupt = {}", share(settings.corrupt))?,
        }
    }
    Ok(())
}

/// In the largest unit in which it is a whole number.
fn duration(nanoseconds: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(unit, _)| nanoseconds % unit == 0) {
        Some((unit, name)) => format!("{}{name}", nanoseconds / unit),
        None => format!("{nanoseconds}ns"),
    }
}

/// With a point, so that it is read to the same number.
fn share(share: f64) -> String {
    format!("{share:?}")
}
