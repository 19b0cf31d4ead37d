//! The data that applications send: known bytes, so that whoever receives them can tell whether they are the right ones.

/// Period of the pattern: a prime, so that no power of two of lost bytes goes unnoticed.
const PERIOD: usize = 65_521;
/// Longest stretch that is compared at once.
const STRETCH: usize = 65_536;

/// A stretch of fixed pseudo-random bytes, read round and round. A stream's byte `offset` is that at `phase + offset`.
pub struct Pattern {
    bytes: Vec<u8>,
}

/// Where a stream begins in the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phase(u32);

impl Phase {
    /// That of stream `number`.
    pub fn of(number: u64) -> Phase {
        Phase((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % PERIOD as u32)
    }

    fn at(self, offset: u64) -> usize {
        ((u64::from(self.0) + offset % PERIOD as u64) % PERIOD as u64) as usize
    }
}

impl Pattern {
    /// The pattern, always the same.
    pub fn new() -> Pattern {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let mut bytes: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
        bytes.extend_from_within(..);
        Pattern { bytes }
    }

    /// Writes a stream's bytes from `offset` on.
    pub fn fill(&self, phase: Phase, mut offset: u64, target: &mut [u8]) {
        for part in target.chunks_mut(STRETCH / 2) {
            let start = phase.at(offset);
            part.copy_from_slice(&self.bytes[start..start + part.len()]);
            offset += part.len() as u64;
        }
    }

    /// The offset of the first byte that is not the stream's, if any.
    pub fn mismatch(&self, phase: Phase, mut offset: u64, data: &[u8]) -> Option<u64> {
        for part in data.chunks(STRETCH / 2) {
            let start = phase.at(offset);
            let expected = &self.bytes[start..start + part.len()];
            if part != expected {
                let wrong = part.iter().zip(expected).position(|(have, want)| have != want)?;
                return Some(offset + wrong as u64);
            }
            offset += part.len() as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_same_stream_and_a_wrong_byte_is_found() {
        let pattern = Pattern::new();
        let phase = Phase::of(7);
        let mut whole = vec![0; 200_000];
        pattern.fill(phase, 0, &mut whole);
        let mut offset = 0;
        for length in [1, 1460, 65_521, 65_536, 3, 60_000] {
            assert_eq!(pattern.mismatch(phase, offset as u64, &whole[offset..offset + length]), None);
            offset += length;
        }
        whole[150_000] ^= 1;
        assert_eq!(pattern.mismatch(phase, 0, &whole), Some(150_000));
        assert!(pattern.mismatch(phase, 1, &whole[..1000]).is_some(), "shifted");
        assert!(pattern.mismatch(Phase::of(8), 0, &whole[..1000]).is_some(), "another stream's");
    }
}
