//! Tables for hardware: memory images and parameters of `rtl/pace_evolution.sv`.

use crate::table::{BadTable, Evolution, Form, Then};
use std::fmt::Write as _;

/// The files of a table, by name: `gaps.mem`, `changes.mem`, `bands.mem` (`$readmemh`, one entry a line) and
/// `pace_parameters.svh`.
///
/// An entry of `gaps.mem` and `changes.mem` has `WORD_BITS` bits, the latter in two's complement (zeros if nothing changes). A band
/// is 40 bits: from the top 21 of blocks, 5 of packets (a power of two), 6 of the gap's shift, 8 of the change's shift, in two's
/// complement. An error if the table can't run, or has the form `polynomial`.
pub fn files(evolution: &Evolution) -> Result<[(&'static str, String); 4], BadTable> {
    evolution.check()?;
    if evolution.form == Form::Polynomial {
        return Err(BadTable(
            "the form polynomial has no table; hardware runs carried and interpolated ones".to_owned(),
        ));
    }
    let digits = usize::from(evolution.word_bits).div_ceil(4);
    let mask = (1_u64 << evolution.word_bits) - 1;
    let mut gaps = String::new();
    let mut changes = String::new();
    let mut bands = String::new();
    for (index, gap) in evolution.gaps.iter().enumerate() {
        let change = evolution.changes.get(index).copied().unwrap_or(0) as u64 & mask;
        let _ = writeln!(gaps, "{gap:0digits$x}");
        let _ = writeln!(changes, "{change:0digits$x}");
    }
    for band in &evolution.bands {
        let word = u64::from(band.blocks) << 19
            | u64::from(band.packets_log2) << 14
            | u64::from(band.gap_shift) << 8
            | u64::from(band.change_shift as u8);
        let _ = writeln!(bands, "{word:010x}");
    }
    Ok([
        ("gaps.mem", gaps),
        ("changes.mem", changes),
        ("bands.mem", bands),
        ("pace_parameters.svh", parameters(evolution)),
    ])
}

/// Widths that no value of the table exceeds, and what comes after its end.
fn parameters(evolution: &Evolution) -> String {
    let bits = |value: u128| 128 - value.leading_zeros();
    let (band, octaves) = match evolution.then {
        Then::Double { band, octaves } => (band, u32::from(octaves)),
        Then::Repeat { band, .. } => (band, 0),
        _ => (0, 0),
    };
    let (mut grains, mut sum_bits, mut place_bits) = (1_u128, 8, 2);
    let mut entry = 0;
    for band in &evolution.bands {
        let packets_log2 = u32::from(band.packets_log2) + octaves;
        let (up, down) = (band.change_shift.max(0).unsigned_abs(), band.change_shift.min(0).unsigned_abs());
        place_bits = place_bits.max(packets_log2 + 1);
        for index in entry..entry + band.blocks as usize {
            let gap = u128::from(evolution.gaps[index]) << band.gap_shift;
            let change = u128::from(evolution.changes.get(index).copied().unwrap_or(0).unsigned_abs());
            // What the change adds at the end of a block is less in each octave: change · 2^(packets - shift).
            let most = (change << (u32::from(down) + packets_log2 - octaves)) >> up;
            grains = grains.max(gap + most + 2);
            let mean = bits(gap) + u32::from(up) + octaves;
            let moved = bits(change) + u32::from(down) + packets_log2 + 1;
            sum_bits = sum_bits.max(mean.max(moved).max(u32::from(up) + 2 * octaves) + 3);
        }
        entry += band.blocks as usize;
    }
    let (kind, extra, numerator, denominator, seed) = match evolution.then {
        Then::Hold => (0, 0, 0, 1, 0),
        Then::Repeat { grains, numerator, denominator, .. } => (1, grains, numerator, denominator, 0),
        Then::Double { .. } => (2, 0, 0, 1, 0),
        Then::Draw { seed } => (3, 0, 0, 1, seed),
    };
    let rewind: u32 = evolution.bands[..band as usize].iter().map(|band| band.blocks).sum();
    let entries = evolution.gaps.len();
    let mut out =
        String::from("// Parameters of pace_evolution.sv for one table. Made by `weft pace compile --memory`.\n");
    let mut line = |name: &str, value: String, says: &str| {
        let _ = writeln!(out, "localparam {name} = {value}; // {says}");
    };
    let integer = "int";
    let small = |value: u64| value.to_string();
    let mut number = |name: &str, value: u64, says: &str| line(&format!("{integer} {name}"), small(value), says);
    number("WORD_BITS", u64::from(evolution.word_bits), "bits of a gap, and of a change");
    number("ENTRIES", entries as u64, "lines of gaps.mem and changes.mem");
    number("ENTRY_BITS", u64::from(evolution.input_bits), "bits of an entry's number");
    number("BANDS", evolution.bands.len() as u64, "lines of bands.mem");
    number("BAND_BITS", u64::from(bits(evolution.bands.len() as u128)), "bits of a band's number");
    number("FRACTION_BITS", u64::from(evolution.fraction_bits), "a grain is 2^-this of the unit");
    number("GRAIN_BITS", u64::from(bits(grains + u128::from(extra) + 1).min(64)), "bits of a gap in grains");
    number("SUM_BITS", u64::from(sum_bits), "bits of a gap before it is rounded, with its sign");
    number("PLACE_BITS", u64::from(place_bits), "bits of a packet's place in a block");
    number("INTERPOLATES", u64::from(!evolution.changes.is_empty()), "whether gaps change within a block");
    number("CARRIES", u64::from(evolution.form != Form::Direct), "whether parts of a tick are carried");
    number("THEN", kind, "behind the last entry: 0 hold, 1 repeat, 2 double; 3 entries are drawn");
    number("THEN_BAND", u64::from(band), "the band that it goes on from");
    number("THEN_ENTRY", u64::from(rewind), "the entry that it goes on from");
    number("OCTAVES", u64::from(octaves), "rounds that are doubled");
    for (name, value, says) in [
        ("EXTRA_GRAINS", extra, "grains that a round is longer than its entries"),
        ("NUMERATOR", numerator, "and the part of a grain"),
        ("DENOMINATOR", denominator, "its denominator"),
        ("SEED", u64::from(seed), "the first random state"),
    ] {
        line(&format!("logic [63:0] {name}"), format!("64'h{value:016x}"), says);
    }
    out
}
