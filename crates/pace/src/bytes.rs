//! Pacing by bytes: packets of different sizes under one envelope.
//!
//! An envelope counts packets of one nominal size. A packet of another size uses up its share: the k-th packet goes when the
//! envelope has given the bytes of all packets in front of it. Packets that all have the nominal size go when packets go.

use crate::envelope::Envelope;
use crate::fault::SolveError;
use crate::solve::Solver;

/// Gives the times of packets of any size.
#[derive(Clone, Debug)]
pub struct BytePacer<'a> {
    solver: Solver<'a>,
    nominal: u32,
    /// Bytes of the packets that have gone.
    sent: u64,
}

impl<'a> BytePacer<'a> {
    /// A pacer for an envelope whose packets have `nominal` bytes (0 is taken for 1). The first packet goes at 0.
    pub fn new(envelope: &'a Envelope, nominal: u32) -> BytePacer<'a> {
        BytePacer { solver: Solver::new(envelope), nominal: nominal.max(1), sent: 0 }
    }

    /// When the next packet goes, which has `size` bytes. A bigger one delays those behind it.
    ///
    /// With an envelope whose packets up to the n-th go at once, so many bytes go at once.
    pub fn next(&mut self, size: u32) -> Result<f64, SolveError> {
        // The packet numbered 1 is the first; those up to the origin go at 0.
        let amount = self.sent as f64 / f64::from(self.nominal) + 1.0 - self.solver.origin();
        let time = self.solver.time_of(amount)?;
        self.sent += u64::from(size);
        Ok(time)
    }
}
