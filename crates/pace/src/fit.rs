//! Blocks of packets whose gaps change evenly, fitted to times and rounded to words.

use crate::table::{Band, CompileError, Options};

/// A block before it is rounded.
pub(crate) struct Block {
    pub(crate) packets_log2: u8,
    /// When its last gap ends, in units.
    pub(crate) end: f64,
    /// Its mean gap.
    pub(crate) mean: f64,
    /// By how much its gaps grow from packet to packet.
    pub(crate) change: f64,
}

impl Block {
    /// The gap behind packet `at`.
    pub(crate) fn single(times: &[f64], at: usize) -> Block {
        Block { packets_log2: 0, end: times[at + 1], mean: times[at + 1] - times[at], change: 0.0 }
    }

    /// The gap behind packet `n` of an envelope known between packets too, with the change that a block of many packets in its
    /// place would have.
    pub(crate) fn real(time: &impl Fn(f64) -> f64, n: f64) -> Block {
        let (start, middle, end) = (time(n), time(n + 0.5), time(n + 1.0));
        Block { packets_log2: 0, end, mean: end - start, change: ((end - start) / 2.0 - (middle - start)) * 8.0 }
    }

    /// A block of 2^k packets: its time is right at its ends and in its middle.
    fn even(times: &[f64], at: usize, packets_log2: u8) -> Block {
        let size = 1_usize << packets_log2;
        let (start, end) = (times[at], times[at + size]);
        let length = size as f64;
        // Half of the block takes D/2 - change h²/8.
        let change = match packets_log2 {
            0 => 0.0,
            _ => ((end - start) / 2.0 - (times[at + size / 2] - start)) * 8.0 / (length * length),
        };
        Block { packets_log2, end, mean: (end - start) / length, change }
    }

    /// Whether its times and gaps are near enough.
    fn fits(&self, times: &[f64], at: usize, options: &Options) -> bool {
        let size = 1_usize << self.packets_log2;
        let length = size as f64;
        let step = (size / 64).max(1);
        let indices = (0..size).step_by(step).chain([size - 1]);
        indices.into_iter().all(|index| {
            let i = index as f64;
            let time = i * self.mean + self.change * i * (i - length) / 2.0;
            let gap = self.mean + self.change * (i - (length - 1.0) / 2.0);
            let (true_time, true_gap) = (times[at + index] - times[at], times[at + index + 1] - times[at + index]);
            let noise = 4.0 * f64::EPSILON * times[at + size];
            (time - true_time).abs() <= options.time_error + noise
                && (gap - true_gap).abs() <= options.gap_error * true_gap + noise
                && gap >= 0.0
        })
    }
}

/// Cuts the packets into the greatest blocks that fit. Fails with how far it came if entries run out.
pub(crate) fn blocks(
    times: &[f64],
    from: usize,
    to: usize,
    options: &Options,
    quantizer: &mut Quantizer,
) -> Result<(), usize> {
    let (mut at, mut packets_log2) = (from, 0_u8);
    while at < to {
        if quantizer.gaps.len() >= options.entries as usize {
            return Err(at);
        }
        // A block at most twice as long as the one before: a longer one would seldom fit.
        packets_log2 = (packets_log2 + 1).min((to - at).ilog2() as u8).min(20);
        let block = loop {
            let block = Block::even(times, at, packets_log2);
            if packets_log2 == 0 || block.fits(times, at, options) {
                break block;
            }
            packets_log2 -= 1;
        };
        quantizer.push(&block);
        at += 1 << packets_log2;
    }
    Ok(())
}

/// From which packet on an exponential envelope's table repeats: the power of two that gives the errors asked for.
pub(crate) fn octave(first: u64, options: &Options) -> Result<u64, CompileError> {
    // With m blocks an octave the gaps err by 1 / (6 m²), the times by 2.9 · 0.008 / m³ of an octave.
    let of_gaps = libm::sqrt(1.0 / (6.0 * options.gap_error));
    let of_times = libm::cbrt(0.0233 / options.time_error);
    let blocks = libm::ceil(of_gaps.max(of_times)).clamp(2.0, 1e6) as u64;
    let octave = blocks.max(first).next_power_of_two();
    if 2 * octave - first > u64::from(options.entries) {
        let (allowed, wanted) = (options.entries, 2 * octave);
        return Err(CompileError::TooManyEntries { allowed, reached: first + u64::from(allowed), wanted });
    }
    Ok(octave)
}

/// The most bits behind the point with which the value fits into the word. A value that is one grain too great to fit
/// saturates: that costs less than halving the grain would.
pub(crate) fn fraction_bits(greatest: f64, word_bits: u8) -> u8 {
    let mut bits = 60_u8;
    while bits > 0 && greatest * libm::exp2(f64::from(bits)) > libm::exp2(f64::from(word_bits)) {
        bits -= 1;
    }
    bits
}

/// By how many grains `time / rate` is longer than the entries' sum: whole ones, and a part as a quotient.
pub(crate) fn excess(time: f64, rate: f64, fraction_bits: u8, entries: i128) -> (u64, u64, u64) {
    // Both as m 2^e, exactly.
    let parts = |value: f64| {
        let (mantissa, exponent) = libm::frexp(value);
        let whole = (mantissa * libm::exp2(53.0)) as u64;
        let zeros = whole.trailing_zeros().min(63);
        (whole >> zeros, exponent - 53 + zeros as i32)
    };
    let ((time, time_exponent), (rate, rate_exponent)) = (parts(time), parts(rate));
    let exponent = time_exponent - rate_exponent + i32::from(fraction_bits);
    let (mut numerator, mut denominator) = (u128::from(time), u128::from(rate));
    if exponent >= 0 {
        let room = numerator.leading_zeros().saturating_sub(1) as i32;
        numerator <<= exponent.min(room);
    } else {
        // What does not fit is below 2^-60 grains.
        let room = (61 - (128 - denominator.leading_zeros() as i32)).max(0);
        denominator <<= (-exponent).min(room);
        numerator >>= (-exponent - room).clamp(0, 127);
    }
    let whole = (numerator / denominator) as i128 - entries;
    (whole.max(0) as u64, (numerator % denominator) as u64, denominator as u64)
}

/// Rounds blocks to words, carrying what is lost to the next.
pub(crate) struct Quantizer {
    fraction_bits: u8,
    word_bits: u8,
    carry: bool,
    /// Instead of the least shift with which a gap fits.
    pub(crate) fixed_shift: Option<u8>,
    /// Sums stay at or below the envelope, so that what is missing at the end can be added.
    pub(crate) round_down: bool,
    begin_band: bool,
    sum: i128,
    pub(crate) bands: Vec<Band>,
    pub(crate) gaps: Vec<u64>,
    pub(crate) changes: Vec<i64>,
}

impl Quantizer {
    pub(crate) fn new(fraction_bits: u8, word_bits: u8, carry: bool) -> Quantizer {
        Quantizer {
            fraction_bits,
            word_bits,
            carry,
            fixed_shift: None,
            round_down: false,
            begin_band: true,
            sum: 0,
            bands: Vec::new(),
            gaps: Vec::new(),
            changes: Vec::new(),
        }
    }

    pub(crate) fn fraction_bits(&self) -> u8 {
        self.fraction_bits
    }

    /// Grains of all gaps so far.
    pub(crate) fn sum(&self) -> i128 {
        self.sum
    }

    pub(crate) fn carries(&self) -> bool {
        self.carry
    }

    /// The next block begins a band; its index.
    pub(crate) fn new_band(&mut self) -> u32 {
        self.begin_band = true;
        self.bands.len() as u32
    }

    pub(crate) fn push(&mut self, block: &Block) {
        let grains = libm::exp2(f64::from(self.fraction_bits));
        let greatest = (1_u64 << self.word_bits) - 1;
        let fitting =
            (libm::ceil(libm::log2((block.mean * grains).max(1.0) + 1.0)) as i32 - i32::from(self.word_bits)).max(0);
        let gap_shift = self.fixed_shift.unwrap_or(fitting as u8);
        let unit = libm::exp2(f64::from(gap_shift));
        let gap = if self.carry {
            let missing = block.end * grains - self.sum as f64;
            let per_packet = missing / libm::exp2(f64::from(block.packets_log2)) / unit;
            if self.round_down { libm::floor(per_packet) } else { libm::round(per_packet) }
        } else {
            libm::round(block.mean * grains / unit)
        };
        let gap = (gap.max(0.0) as u64).min(greatest);
        self.sum += i128::from(gap) << (u32::from(gap_shift) + u32::from(block.packets_log2));

        let half_change = block.change / 2.0 * grains;
        let room = i32::from(self.word_bits) - 2 - libm::ceil(libm::log2(half_change.abs().max(1e-30))) as i32;
        // Blocks that are doubled have no packets to count, and use the room.
        let useful = if block.packets_log2 == 0 { 12 } else { i32::from(block.packets_log2) + 2 };
        let change_shift = if block.change == 0.0 { 0 } else { room.min(useful).clamp(-24, 30) as i8 };
        let change = libm::round(half_change * libm::exp2(f64::from(change_shift))) as i64;
        let band = Band { blocks: 1, packets_log2: block.packets_log2, gap_shift, change_shift };
        match self.bands.last_mut().filter(|last| !self.begin_band && Band { blocks: 1, ..**last } == band) {
            Some(last) => last.blocks += 1,
            None => self.bands.push(band),
        }
        self.begin_band = false;
        self.gaps.push(gap);
        self.changes.push(change);
    }
}
