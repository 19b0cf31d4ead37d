//! Hashes and random numbers, both from the seed (semantics, sections 1.6 and 1.7).

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use siphasher::sip::{SipHasher13, SipHasher24};
use std::hash::BuildHasher;

/// Keeps the generator of the secret key apart from the generator of `random`.
const KEY_SEED: u64 = 0x7365_6372_6574_6b79;

/// A function's generator and secret key.
#[derive(Clone, Debug)]
pub struct Chance {
    generator: Pcg64,
    hasher: SipHasher24,
}

impl Chance {
    /// From the platform's seed, and its secret key if it gives one.
    pub fn new(seed: u64, key: Option<[u8; 16]>) -> Chance {
        let key = key.unwrap_or_else(|| {
            let mut generator = Pcg64::seed_from_u64(seed ^ KEY_SEED);
            let mut key = [0; 16];
            key[..8].copy_from_slice(&generator.next_u64().to_le_bytes());
            key[8..].copy_from_slice(&generator.next_u64().to_le_bytes());
            key
        });
        Chance { generator: Pcg64::seed_from_u64(seed), hasher: SipHasher24::new_with_key(&key) }
    }

    /// SipHash-2-4 of the 16 bytes of both values, each little-endian.
    pub fn hash(&self, left: i64, right: i64) -> i64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&left.to_le_bytes());
        bytes[8..].copy_from_slice(&right.to_le_bytes());
        self.hasher.hash(&bytes) as i64
    }

    /// SipHash-2-4 of a flow key's bytes.
    pub fn hash_key(&self, key: &[u8]) -> i64 {
        self.hasher.hash(key) as i64
    }

    /// For tables, under the same secret key. SipHash-1-3 is what such tables need and no more.
    pub fn key_hasher(&self) -> KeyHasher {
        KeyHasher(SipHasher13::new_with_key(&self.hasher.key()))
    }

    /// The next random number.
    pub fn random(&mut self) -> i64 {
        self.generator.next_u64() as i64
    }
}

/// Makes keyed hashers for tables.
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher(SipHasher13);

impl BuildHasher for KeyHasher {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_siphash() {
        // SipHash paper, appendix A, with its key 00..0f and the 16-byte message 00..0f of the reference vectors.
        let key: [u8; 16] = std::array::from_fn(|index| index as u8);
        let chance = Chance::new(0, Some(key));
        let left = i64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
        let right = i64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(chance.hash(left, right).to_le_bytes(), [0xdb, 0x9b, 0xc2, 0x57, 0x7f, 0xcc, 0x2a, 0x3f]);
    }

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let (mut one, mut other, mut third) = (Chance::new(7, None), Chance::new(7, None), Chance::new(8, None));
        let draw = |chance: &mut Chance| [chance.random(), chance.random(), chance.hash(1, 2)];
        assert_eq!(draw(&mut one), draw(&mut other));
        assert_ne!(draw(&mut one), draw(&mut third));
    }
}
