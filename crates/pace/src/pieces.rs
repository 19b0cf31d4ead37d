//! Rates that are straight lines piece by piece: closed forms for the packets sent and for the time of a packet.

use crate::fault::Fault;

/// One piece: a rate that grows or falls evenly. Time is in the envelope's unit, rates in packets per unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Piece {
    /// How long it lasts; infinite for the last one of a profile that does not repeat.
    pub duration: f64,
    /// The rate at its start.
    pub rate: f64,
    /// How much the rate grows in one unit of time.
    pub slope: f64,
}

impl Piece {
    /// Packets sent in the first `time` of the piece.
    fn sent(&self, time: f64) -> f64 {
        time * (self.rate + 0.5 * self.slope * time)
    }

    /// When so many packets of the piece are sent; within the piece if it has so many.
    fn time_of(&self, amount: f64) -> f64 {
        if amount <= 0.0 {
            return 0.0;
        }
        // The root of slope/2 t² + rate t = amount, in the form that loses no digits for a small slope.
        let inside = self.rate * self.rate + 2.0 * self.slope * amount;
        2.0 * amount / (self.rate + libm::sqrt(inside.max(0.0)))
    }
}

/// Pieces, once with the last held for ever, or again and again.
#[derive(Clone, PartialEq, Debug)]
pub struct Pieces {
    pieces: Vec<Piece>,
    /// Time and packets at the start of each piece, and at the end of all.
    starts: Vec<(f64, f64)>,
    repeats: bool,
}

impl Pieces {
    /// These pieces, again and again.
    pub(crate) fn repeated(pieces: Vec<Piece>) -> Pieces {
        Pieces::new(pieces, true)
    }

    /// These pieces, the last of which never ends.
    pub(crate) fn once(mut pieces: Vec<Piece>) -> Pieces {
        if let Some(last) = pieces.last_mut() {
            last.duration = f64::INFINITY;
        }
        Pieces::new(pieces, false)
    }

    fn new(pieces: Vec<Piece>, repeats: bool) -> Pieces {
        let mut starts = vec![(0.0, 0.0)];
        let (mut time, mut sent) = (0.0, 0.0);
        for piece in pieces.iter().filter(|piece| piece.duration.is_finite()) {
            time += piece.duration;
            sent += piece.sent(piece.duration);
            starts.push((time, sent));
        }
        Pieces { pieces, starts, repeats }
    }

    /// Rates over time from a table: lines `time,rate`, times rising from 0, numbers without units. The rate stays until the
    /// next line's time; the last stays for ever. A first line of words and lines that begin with `#` are skipped.
    ///
    /// `scale` is what a rate of 1 in the table is in packets per unit of time.
    pub fn from_csv(text: &str, scale: f64) -> Result<Pieces, Fault> {
        let mut rows: Vec<(f64, f64)> = Vec::new();
        let mut at = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let span = at..at + line.trim_end().len();
            at += line.len();
            let fields: Vec<&str> = line.trim().split(',').map(str::trim).collect();
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let values: Vec<f64> = fields.iter().filter_map(|field| field.parse().ok()).collect();
            let ([time, rate], 2) = (values[..].first_chunk().copied().unwrap_or([f64::NAN; 2]), fields.len()) else {
                return Err(Fault::new(span, format!("line {} has {} fields", number + 1, fields.len()))
                    .help("each line is `time,rate`"));
            };
            if values.is_empty() && rows.is_empty() {
                continue;
            }
            if !(time.is_finite() && rate.is_finite() && rate >= 0.0) {
                return Err(Fault::new(span, format!("line {} is not two numbers, the rate 0 or more", number + 1))
                    .help("each line is `time,rate`, as in `0.5,100`"));
            }
            let wanted = rows.last().map_or(time == 0.0, |last| time > last.0);
            if !wanted {
                return Err(Fault::new(span, format!("line {}: times begin at 0 and rise", number + 1)));
            }
            if rows.len() >= 1 << 20 {
                return Err(Fault::new(span, "more than 1048576 lines"));
            }
            rows.push((time, rate * scale));
        }
        if rows.is_empty() {
            return Err(Fault::new(0..0, "the table has no lines `time,rate`"));
        }
        let ends = rows.iter().skip(1).map(|row| row.0).chain([f64::INFINITY]);
        let pieces = rows.iter().zip(ends).map(|(row, end)| Piece { duration: end - row.0, rate: row.1, slope: 0.0 });
        Ok(Pieces::once(pieces.collect()))
    }

    /// Time and packets of one round, if the pieces repeat.
    pub fn round(&self) -> Option<(f64, f64)> {
        self.repeats.then(|| *self.starts.last().unwrap_or(&(0.0, 0.0)))
    }

    /// The only piece, if it never ends.
    pub(crate) fn line(&self) -> Option<Piece> {
        match self.pieces[..] {
            [piece] if !self.repeats => Some(piece),
            _ => None,
        }
    }

    /// If the rate is constant in the end: since how many packets, and the rate.
    pub(crate) fn constant_end(&self) -> Option<(f64, f64)> {
        let last = self.pieces.last().filter(|piece| !self.repeats && piece.slope == 0.0)?;
        Some((self.starts[self.pieces.len() - 1].1, last.rate))
    }

    /// The rate.
    pub fn rate(&self, time: f64) -> f64 {
        let (_, time, _) = self.within(time, |start| start.0);
        let index = self.index(time, |start| start.0);
        self.pieces[index].rate + self.pieces[index].slope * (time - self.starts[index].0)
    }

    /// Packets sent until then.
    pub fn sent(&self, time: f64) -> f64 {
        let (rounds, time, _) = self.within(time, |start| start.0);
        let index = self.index(time, |start| start.0);
        let whole = self.round().map_or(0.0, |round| rounds * round.1);
        whole + self.starts[index].1 + self.pieces[index].sent(time - self.starts[index].0)
    }

    /// When so many packets are sent: infinite if never.
    pub fn time_of(&self, amount: f64) -> f64 {
        if amount <= 0.0 {
            return 0.0;
        }
        let (rounds, amount, _) = self.within(amount, |start| start.1);
        let index = self.index(amount, |start| start.1);
        let time = self.starts[index].0 + self.pieces[index].time_of(amount - self.starts[index].1);
        self.round().map_or(0.0, |round| rounds * round.0) + time
    }

    /// Whole rounds, and what is beyond them.
    fn within(&self, value: f64, of: fn(&(f64, f64)) -> f64) -> (f64, f64, f64) {
        let Some(round) = self.round() else { return (0.0, value, f64::INFINITY) };
        let length = of(&round);
        let rounds = libm::floor(value / length);
        (rounds, (value - rounds * length).clamp(0.0, length), length)
    }

    /// The piece in which it falls; at an end the one before, which has reached it.
    fn index(&self, value: f64, of: fn(&(f64, f64)) -> f64) -> usize {
        let after = self.starts.partition_point(|start| of(start) < value);
        after.saturating_sub(1).min(self.pieces.len() - 1)
    }
}
