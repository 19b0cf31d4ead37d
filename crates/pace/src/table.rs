//! The document that an evolution block runs: gaps as fixed-point numbers, and what comes after the last of them.
//!
//! Times are whole multiples of 2^-`fraction_bits` of the envelope's unit, *grains* below. A **block** is 2^k packets whose gaps
//! change evenly; blocks of one packet are the plain look-up table. The gaps of a block sum up to `2^k · gap` grains exactly,
//! whatever its `change` is, so the sum of all gaps is known at compile time. Each entry is rounded so that this sum, not the
//! entry, is nearest to the envelope: an entry's error is given back by the next one.

use crate::envelope::{Envelope, Shape, TimeUnit};
use crate::fault::SolveError;
use crate::fit::{self, Block, Quantizer};
use crate::polynomial::{self, Polynomial};
use crate::solve::Solver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the document.
pub const EVOLUTION_VERSION: u32 = 1;
/// Most entries of a table, and most packets that are fitted.
pub const MOST_ENTRIES: u32 = 1 << 20;
/// Grains of interpolated tables: 2^-48 of the unit.
const INTERPOLATED_GRAIN: u8 = 48;
/// Octaves that a self-similar envelope is followed: up to 2^30 times the packets in its table.
const OCTAVES: u8 = 30;

/// An envelope compiled to fixed point: `weft pace compile`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evolution {
    /// Version of this document: 1.
    pub evolution_version: u32,
    /// The envelope's text.
    pub envelope: String,
    /// What times are fractions of.
    pub unit: TimeUnit,
    /// The form of the table.
    pub form: Form,
    /// The packet that goes at time 0 with all before it; the first gap comes after it.
    pub first: u64,
    /// Times are multiples of 2^-this of the unit.
    pub fraction_bits: u8,
    /// Bits of a gap, and of a change, which has a sign.
    pub word_bits: u8,
    /// Bits of the counter that addresses the table.
    pub input_bits: u8,
    /// Runs of blocks of one size, in order.
    pub bands: Vec<Band>,
    /// The mean gap of each block, before its band's shift.
    pub gaps: Vec<u64>,
    /// Half of what the gap changes by from packet to packet in each block; empty if all blocks are of one packet.
    pub changes: Vec<i64>,
    /// What comes after the last block.
    pub then: Then,
    /// The registers of the form `polynomial`, which has no blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polynomial: Option<Polynomial>,
}

/// A run of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// How many blocks.
    pub blocks: u32,
    /// Packets of each, as a power of two.
    pub packets_log2: u8,
    /// Gaps are shifted left by so many bits to give grains.
    pub gap_shift: u8,
    /// Changes count 2^-this of a grain.
    pub change_shift: i8,
}

/// The form of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// δ(n) rounded, one entry a packet, each gap rounded to ticks: as in the paper.
    Direct,
    /// One entry a packet, errors carried to the next gap.
    Carried,
    /// One entry for each block of packets, gaps changing evenly in it, errors carried.
    #[default]
    Interpolated,
    /// No table: packets that are a polynomial of the time (linear, ramp, CUBIC) are followed by their differences, exactly and
    /// for ever.
    Polynomial,
}

/// What comes after the last entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Then {
    /// The last gap, again and again.
    Hold,
    /// All from this band on, again and again. Each round is longer than its entries by `grains` and
    /// `numerator / denominator` of a grain, which the last gap of a round gets: exact for ever.
    Repeat {
        /// The first band of a round.
        band: u32,
        /// Whole grains.
        grains: u64,
        /// The part of a grain.
        numerator: u64,
        /// Its denominator, more than the numerator.
        denominator: u64,
    },
    /// All from this band on, again and again, each time with twice the packets in each block and half the gaps: N(t) = 2^t
    /// for ever. After so many rounds the last gap stays.
    Double {
        /// The first band of a round.
        band: u32,
        /// Rounds.
        octaves: u8,
    },
    /// Entries are drawn at random: the state steps by xorshift (13, 17, 5), its upper `input_bits` choose the entry.
    Draw {
        /// The first state; not 0.
        seed: u32,
    },
}

/// How to compile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// The form of the table.
    pub form: Form,
    /// Most entries.
    pub entries: u32,
    /// Bits of an entry's gap (and of its change), 8 to 48.
    pub word_bits: u8,
    /// Packets to follow, if the envelope neither repeats nor is self-similar: 2^20.
    pub packets: u32,
    /// Greatest error of a time in an interpolated table, in units.
    pub time_error: f64,
    /// Greatest relative error of a gap in an interpolated table.
    pub gap_error: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            form: Form::Interpolated,
            entries: 4096,
            word_bits: 32,
            packets: 1 << 20,
            time_error: 1.0 / (1_u64 << 30) as f64,
            gap_error: 5e-6,
        }
    }
}

/// Why an envelope can't be compiled.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum CompileError {
    /// It can't be solved.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// It needs more entries than allowed.
    #[error(
        "{allowed} entries reach packet {reached} of {wanted}; allow more entries, fewer packets, or a greater error of gaps"
    )]
    TooManyEntries {
        /// Entries allowed.
        allowed: u32,
        /// How far they reach.
        reached: u64,
        /// How far they should.
        wanted: u64,
    },
    /// The form `polynomial` is for polynomials.
    #[error(
        "the packets of this envelope are no polynomial of the time that never falls, to the power of 4 at most; use the form carried or interpolated"
    )]
    NoPolynomial,
    /// The numbers differ too much in size.
    #[error(
        "this polynomial can't be followed for 2^40 packets in words of 256 bits; use the form carried or interpolated"
    )]
    PolynomialTooWide,
    /// Options that can't be.
    #[error("{0}")]
    Options(String),
}

/// Hears how many packets more were solved: all but them takes little time.
pub type Watch<'a> = dyn FnMut(u64) + 'a;

/// Packets that are solved between two words.
const WATCH_STEP: u64 = 64;

/// Compiles an envelope; `text` is what it was made from, kept in the document.
pub fn compile(envelope: &Envelope, text: &str, options: &Options) -> Result<Evolution, CompileError> {
    compile_watched(envelope, text, options, &mut |_| ())
}

/// The same, watched: a table follows [`Options::packets`] packets or [`Options::entries`] at most.
pub fn compile_watched(
    envelope: &Envelope,
    text: &str,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Evolution, CompileError> {
    let wrong = |message: &str| Err(CompileError::Options(message.to_owned()));
    if !(1..=MOST_ENTRIES).contains(&options.entries) || !(1..=MOST_ENTRIES).contains(&options.packets) {
        return wrong("a table has 1 to 1048576 entries, and follows as many packets at most");
    }
    if !(8..=48).contains(&options.word_bits) {
        return wrong("an entry has 8 to 48 bits");
    }
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(options.time_error) || !positive(options.gap_error) {
        return wrong("errors are more than 0");
    }
    if let Shape::Poisson { rate, seed } = envelope.shape
        && options.form != Form::Polynomial
    {
        return Ok(random(envelope, text, rate, seed, options));
    }
    match options.form {
        Form::Interpolated => interpolated(envelope, text, options, watch),
        Form::Direct | Form::Carried => plain(envelope, text, options, watch),
        Form::Polynomial => followed(envelope, text, options),
    }
}

/// Registers in place of entries.
fn followed(envelope: &Envelope, text: &str, options: &Options) -> Result<Evolution, CompileError> {
    let first = first_packet(envelope);
    let first_gap = Solver::new(envelope).time_of_packet(first + 1)?;
    let (polynomial, fraction_bits) = polynomial::compiled(envelope, first_gap)?;
    Ok(Evolution {
        evolution_version: EVOLUTION_VERSION,
        envelope: text.to_owned(),
        unit: envelope.unit,
        form: options.form,
        first,
        fraction_bits,
        word_bits: options.word_bits,
        input_bits: 1,
        bands: Vec::new(),
        gaps: Vec::new(),
        changes: Vec::new(),
        then: Then::Hold,
        polynomial: Some(polynomial),
    })
}

/// T(n) for packets from `first` on, from T(first) = 0. Fewer if the envelope ends.
pub(crate) fn times(
    envelope: &Envelope,
    first: u64,
    count: u64,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, SolveError> {
    let mut solver = Solver::new(envelope);
    let start = solver.time_of_packet(first)?;
    let mut times: Vec<f64> = Vec::with_capacity(count as usize + 1);
    for n in first..=first + count {
        let time = match solver.time_of_packet(n) {
            Err(SolveError::NeverSent { .. }) if times.len() > 1 => break,
            other => other? - start,
        };
        if times.last().is_some_and(|last| time < *last) {
            return Err(SolveError::Backwards { packet: n as f64 });
        }
        times.push(time);
        if n > first && (n - first).is_multiple_of(WATCH_STEP) {
            watch(WATCH_STEP);
        }
    }
    Ok(times)
}

/// The packet after which the first gap comes.
pub(crate) fn first_packet(envelope: &Envelope) -> u64 {
    envelope.origin().clamp(1.0, 1e12) as u64
}

/// What repeats in an envelope: after so many packets from the first, so many packets take a time that is known exactly.
struct Round {
    prefix: u64,
    packets: u64,
    duration: Duration,
}

/// Exact, as a quotient: `time / rate`.
struct Duration {
    time: f64,
    rate: f64,
}

fn round(envelope: &Envelope, first: u64) -> Option<Round> {
    let Shape::Pieces { origin, pieces } = &envelope.shape else { return None };
    if let Some((time, packets)) = pieces.round() {
        let rounds = (1..=64).map(f64::from).find(|rounds| {
            let whole = libm::round(rounds * packets);
            whole >= 1.0 && (rounds * packets - whole).abs() < 1e-9 * whole
        })?;
        let packets = libm::round(rounds * packets);
        let small = packets <= f64::from(MOST_ENTRIES);
        return small.then_some(Round {
            prefix: 0,
            packets: packets as u64,
            duration: Duration { time: rounds * time, rate: 1.0 },
        });
    }
    let (sent, rate) = pieces.constant_end()?;
    let from = libm::ceil(origin + sent).max(first as f64);
    let usable = rate > 0.0 && from - (first as f64) < f64::from(MOST_ENTRIES);
    usable.then_some(Round { prefix: from as u64 - first, packets: 1, duration: Duration { time: 1.0, rate } })
}

/// One entry a packet.
fn plain(envelope: &Envelope, text: &str, options: &Options, watch: &mut Watch<'_>) -> Result<Evolution, CompileError> {
    let first = first_packet(envelope);
    let entries = u64::from(options.entries);
    let round = round(envelope, first).filter(|round| round.prefix + round.packets <= entries);
    let count = round.as_ref().map_or(entries, |round| round.prefix + round.packets);
    let times = times(envelope, first, count, watch)?;
    let greatest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    let fraction_bits = fit::fraction_bits(greatest, options.word_bits);
    let mut quantizer = Quantizer::new(fraction_bits, options.word_bits, options.form != Form::Direct);
    quantizer.fixed_shift = Some(0);
    let band = finish_round(
        &mut quantizer,
        round.as_ref(),
        |quantizer, from, to| {
            (from..to.min(times.len() as u64 - 1)).for_each(|at| quantizer.push(&Block::single(&times, at as usize)));
            Ok(())
        },
        count,
    )?;
    Ok(document(envelope, text, options, first, quantizer, band))
}

fn interpolated(
    envelope: &Envelope,
    text: &str,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Evolution, CompileError> {
    let first = first_packet(envelope);
    let mut quantizer = Quantizer::new(INTERPOLATED_GRAIN, options.word_bits, true);
    if let Shape::Exponential { window, doubling } = envelope.shape
        && window == libm::trunc(window)
        && options.entries >= 4
    {
        let octave = fit::octave(first, options)?;
        let time = |n: f64| doubling * libm::log2(n / window);
        (first..octave).for_each(|n| quantizer.push(&Block::real(&time, n as f64)));
        let band = quantizer.new_band();
        (octave..2 * octave).for_each(|n| quantizer.push(&Block::real(&time, n as f64)));
        return Ok(document(envelope, text, options, first, quantizer, Then::Double { band, octaves: OCTAVES }));
    }
    let round = round(envelope, first);
    let count = round.as_ref().map_or(u64::from(options.packets), |round| round.prefix + round.packets);
    let times = times(envelope, first, count, watch)?;
    let then = finish_round(
        &mut quantizer,
        round.as_ref(),
        |quantizer, from, to| {
            fit::blocks(&times, from as usize, (to as usize).min(times.len() - 1), options, quantizer).map_err(
                |reached| CompileError::TooManyEntries {
                    allowed: options.entries,
                    reached: first + reached as u64,
                    wanted: first + count,
                },
            )
        },
        count,
    )?;
    Ok(document(envelope, text, options, first, quantizer, then))
}

/// Fits the part in front of the round and the round itself, and makes the round exact.
fn finish_round(
    quantizer: &mut Quantizer,
    round: Option<&Round>,
    fit: impl Fn(&mut Quantizer, u64, u64) -> Result<(), CompileError>,
    count: u64,
) -> Result<Then, CompileError> {
    let Some(round) = round else {
        fit(quantizer, 0, count)?;
        return Ok(Then::Hold);
    };
    fit(quantizer, 0, round.prefix)?;
    let band = quantizer.new_band();
    let before = quantizer.sum();
    quantizer.round_down = true;
    fit(quantizer, round.prefix, count)?;
    let entries = quantizer.sum() - before;
    let (grains, numerator, denominator) = match quantizer.carries() {
        true => fit::excess(round.duration.time, round.duration.rate, quantizer.fraction_bits(), entries),
        false => (0, 0, 1),
    };
    Ok(Then::Repeat { band, grains, numerator, denominator })
}

/// Means of equal parts of the exponential distribution: the mean of all is the rate's.
fn random(envelope: &Envelope, text: &str, rate: f64, seed: u32, options: &Options) -> Evolution {
    let input_bits = options.entries.ilog2() as u8;
    let bins = 1_u32 << input_bits;
    // The integral of -ln u from 0 to u is u - u ln u.
    let until = |bin: u32| {
        let u = f64::from(bin) / f64::from(bins);
        if bin == 0 { 0.0 } else { u - u * libm::log(u) }
    };
    let means: Vec<f64> = (0..bins).map(|bin| (until(bin + 1) - until(bin)) * f64::from(bins) / rate).collect();
    let fraction_bits = fit::fraction_bits(means[0], options.word_bits);
    let mut quantizer = Quantizer::new(fraction_bits, options.word_bits, true);
    quantizer.fixed_shift = Some(0);
    let mut time = 0.0;
    for mean in means {
        time += mean;
        quantizer.push(&Block { packets_log2: 0, end: time, mean, change: 0.0 });
    }
    document(envelope, text, options, 1, quantizer, Then::Draw { seed })
}

fn document(
    envelope: &Envelope,
    text: &str,
    options: &Options,
    first: u64,
    quantizer: Quantizer,
    then: Then,
) -> Evolution {
    let (fraction_bits, entries) = (quantizer.fraction_bits(), quantizer.gaps.len() as u32);
    let plain = quantizer.changes.iter().all(|change| *change == 0);
    Evolution {
        evolution_version: EVOLUTION_VERSION,
        envelope: text.to_owned(),
        unit: envelope.unit,
        form: if matches!(then, Then::Draw { .. }) { Form::Carried } else { options.form },
        first,
        fraction_bits,
        word_bits: options.word_bits,
        input_bits: entries.max(2).next_power_of_two().ilog2() as u8,
        bands: quantizer.bands,
        gaps: quantizer.gaps,
        changes: if plain { Vec::new() } else { quantizer.changes },
        then,
        polynomial: None,
    }
}

/// What is wrong with a document that was read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this table can't run: {0}")]
pub struct BadTable(pub String);

impl Evolution {
    /// Reads a document and checks it.
    pub fn from_json(text: &str) -> Result<Evolution, BadTable> {
        let evolution: Evolution = serde_json::from_str(text).map_err(|error| BadTable(error.to_string()))?;
        evolution.check()?;
        Ok(evolution)
    }

    /// The document as JSON.
    pub fn to_json(&self) -> String {
        // Plain numbers and lists: there is nothing that JSON could not hold.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether a machine can run it: all within its bounds.
    pub fn check(&self) -> Result<(), BadTable> {
        let fail = |message: String| Err(BadTable(message));
        if self.evolution_version != EVOLUTION_VERSION {
            return fail(format!("its version is {}, known is {EVOLUTION_VERSION}", self.evolution_version));
        }
        if (self.form == Form::Polynomial) != self.polynomial.is_some() {
            return fail("a table has registers if its form is `polynomial`, and only then".to_owned());
        }
        if let Some(polynomial) = &self.polynomial {
            if !self.bands.is_empty() || !self.gaps.is_empty() || !self.changes.is_empty() || self.fraction_bits > 60 {
                return fail("a polynomial has no entries, and fractions of at most 60 bits".to_owned());
            }
            return polynomial.fault().map_or(Ok(()), |fault| fail(fault.to_owned()));
        }
        let entries: u64 = self.bands.iter().map(|band| u64::from(band.blocks)).sum();
        if entries != self.gaps.len() as u64 || entries == 0 || entries > u64::from(MOST_ENTRIES) {
            return fail(format!("its bands have {entries} blocks, its gaps are {}", self.gaps.len()));
        }
        if !self.changes.is_empty() && self.changes.len() != self.gaps.len() {
            return fail(format!("there are {} gaps and {} changes", self.gaps.len(), self.changes.len()));
        }
        if !(8..=48).contains(&self.word_bits) || self.fraction_bits > 60 || self.input_bits > 20 {
            return fail("words have 8 to 48 bits, fractions at most 60, the counter at most 20".to_owned());
        }
        if self.bands.iter().any(|band| {
            band.packets_log2 > 20
                || band.gap_shift > 15 + 8
                || !(-24..=30).contains(&band.change_shift)
                || band.blocks == 0
        }) {
            return fail("a band has at least 1 block of up to 2^20 packets, and shifts in bounds".to_owned());
        }
        if self.gaps.iter().any(|gap| *gap >> self.word_bits != 0) {
            return fail(format!("a gap has more than {} bits", self.word_bits));
        }
        if self.changes.iter().any(|change| change.unsigned_abs() >> (self.word_bits - 1) != 0) {
            return fail(format!("a change has more than {} bits with its sign", self.word_bits));
        }
        match self.then {
            Then::Repeat { band, .. } | Then::Double { band, .. } if band as usize >= self.bands.len() => {
                fail(format!("it goes on from band {band}, and has {}", self.bands.len()))
            }
            Then::Repeat { numerator, denominator, .. } if numerator >= denominator || denominator >> 62 != 0 => {
                fail(format!("{numerator}/{denominator} is no part of a grain"))
            }
            Then::Double { octaves, .. } if octaves > OCTAVES => fail(format!("at most {OCTAVES} octaves")),
            Then::Double { band, .. } if self.bands[band as usize..].iter().any(|band| band.packets_log2 != 0) => {
                fail("bands that double begin with blocks of one packet".to_owned())
            }
            Then::Draw { seed } if seed == 0 || !self.gaps.len().is_power_of_two() => {
                fail("a table to draw from has a power of two of entries and a seed that is not 0".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Packets that the entries are for, once through.
    pub fn packets(&self) -> u64 {
        self.bands.iter().map(|band| u64::from(band.blocks) << band.packets_log2.min(20)).sum()
    }

    /// Bits of memory that entries take, or of registers.
    pub fn memory_bits(&self) -> u64 {
        let registers = self.polynomial.as_ref();
        if let Some(registers) = registers {
            return registers.coefficients.len() as u64 * u64::from(registers.state_bits);
        }
        (self.gaps.len() + self.changes.len()) as u64 * u64::from(self.word_bits)
    }

    /// The document's JSON Schema.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Evolution).to_value()
    }
}
