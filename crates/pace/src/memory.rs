//! Tables for hardware: memory images and parameters of `rtl/pace_evolution.sv`.

use crate::table::{BadTable, Evolution, Form, Then};
use std::fmt::Write as _;

/// The files of a table, by name: `gaps.mem`, `changes.mem`, `bands.mem` (`$readmemh`, one entry a line) and
/// `pace_parameters.svh`.
///
/// An entry of `gaps.mem` and `changes.mem` has `WORD_BITS` bits, the latter in two's complement (zeros if nothing changes). A band
/// is 40 bits: from the top 21 of blocks, 5 of packets (a power of two), 6 of the gap's shift, 8 of the change's shift, in two's
/// complement. `pace_parameters.svh` is the parameters of an instance. An error if the table can't run, or has the form
/// `polynomial`.
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

/// Widths that no value of the table exceeds, and what comes after its end, as a list of named parameters.
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
    let lines: [(&str, String, &str); 19] = [
        ("WORD_BITS", evolution.word_bits.to_string(), "width of a gap, and of a change"),
        ("ENTRIES", evolution.gaps.len().to_string(), "lines of gaps.mem and changes.mem"),
        ("ENTRY_BITS", evolution.input_bits.to_string(), "width of an entry's index"),
        ("BANDS", evolution.bands.len().to_string(), "lines of bands.mem"),
        ("BAND_BITS", bits(evolution.bands.len() as u128).to_string(), "width of a band's index"),
        ("FRACTION_BITS", evolution.fraction_bits.to_string(), "a grain is 2^-FRACTION_BITS of the unit"),
        ("GRAIN_BITS", bits(grains + u128::from(extra) + 1).min(64).to_string(), "width of a gap in grains"),
        ("SUM_BITS", sum_bits.to_string(), "width of a gap before it is rounded, with its sign"),
        ("PLACE_BITS", place_bits.to_string(), "width of a packet's index in a block"),
        ("INTERPOLATES", u8::from(!evolution.changes.is_empty()).to_string(), "whether gaps change within a block"),
        ("CARRIES", u8::from(evolution.form != Form::Direct).to_string(), "whether fractions of a tick are carried"),
        ("THEN", kind.to_string(), "after the last entry: 0 hold, 1 repeat, 2 double; 3: entries are drawn"),
        ("THEN_BAND", band.to_string(), "the band to continue at"),
        ("THEN_ENTRY", rewind.to_string(), "the entry to continue at"),
        ("OCTAVES", octaves.to_string(), "rounds that are doubled"),
        ("EXTRA_GRAINS", format!("64'h{extra:016x}"), "added to the last gap of each round, in grains"),
        ("NUMERATOR", format!("64'h{numerator:016x}"), "and a fraction of a grain"),
        ("DENOMINATOR", format!("64'h{denominator:016x}"), "its denominator"),
        ("SEED", format!("32'h{seed:08x}"), "first state of the random generator"),
    ];
    let mut out = String::from(
        "// Parameters of one table, for an instance of pace_evolution. Made by `weft pace compile --memory`.\n",
    );
    for (index, (name, value, says)) in lines.iter().enumerate() {
        let comma = if index + 1 < lines.len() { "," } else { "" };
        let _ = writeln!(out, ".{name}({value}){comma} // {says}");
    }
    out
}
