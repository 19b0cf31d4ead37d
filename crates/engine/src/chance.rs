//! Hashes and random numbers, both from keys (semantics, rules V9 to V12).

use crate::state::Keys;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use siphasher::sip::{SipHasher13, SipHasher24};
use std::hash::{BuildHasher, Hasher};
use weftwire_core::Time;

/// Keeps the generator of the secret key apart from that of the random key.
const KEY_SEED: u64 = 0x7365_6372_6574_6b79;

/// A function's keys.
#[derive(Clone, Debug)]
pub struct Chance {
    /// Under the secret key.
    secret: SipHasher24,
    /// Under the random key.
    random: SipHasher24,
}

/// Which random number it is.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// The instance's flow key.
    pub key: &'a [u8],
    /// When the instance was made.
    pub created: Time,
    /// How many instances of its key were made before it at that instant.
    pub earlier: u32,
    /// How many it has drawn before.
    pub number: u64,
}

impl Chance {
    /// From the platform's seed, and its secret key if it gives one.
    pub fn new(seed: u64, key: Option<[u8; 16]>) -> Chance {
        let drawn = |seed| {
            let mut generator = Pcg64::seed_from_u64(seed);
            let mut key = [0; 16];
            key[..8].copy_from_slice(&generator.next_u64().to_le_bytes());
            key[8..].copy_from_slice(&generator.next_u64().to_le_bytes());
            key
        };
        Chance::of_keys(&Keys { hash: key.unwrap_or_else(|| drawn(seed ^ KEY_SEED)), random: drawn(seed) })
    }

    /// Of these keys.
    pub fn of_keys(keys: &Keys) -> Chance {
        Chance { secret: SipHasher24::new_with_key(&keys.hash), random: SipHasher24::new_with_key(&keys.random) }
    }

    /// The keys.
    pub fn keys(&self) -> Keys {
        Keys { hash: self.secret.key(), random: self.random.key() }
    }

    /// SipHash-2-4 of the 16 bytes of both values, each little-endian.
    pub fn hash(&self, left: i64, right: i64) -> i64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&left.to_le_bytes());
        bytes[8..].copy_from_slice(&right.to_le_bytes());
        self.secret.hash(&bytes) as i64
    }

    /// SipHash-2-4 of a flow key's bytes.
    pub fn hash_key(&self, key: &[u8]) -> i64 {
        self.secret.hash(key) as i64
    }

    /// For tables, under a key of their own, which no machine sees. SipHash-1-3 is what such tables need and no more.
    pub fn key_hasher(&self) -> KeyHasher {
        let made = SipHasher13::new_with_key(&self.secret.key());
        KeyHasher(SipHasher13::new_with_keys(made.hash(b"places, low"), made.hash(b"places, high")))
    }

    /// A random number.
    pub fn random(&self, draw: Draw<'_>) -> i64 {
        let mut hasher = self.random;
        hasher.write(draw.key);
        hasher.write(&draw.created.nanoseconds().to_le_bytes());
        hasher.write(&draw.earlier.to_le_bytes());
        hasher.write(&draw.number.to_le_bytes());
        hasher.finish() as i64
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
        let draw = |seed| {
            let chance = Chance::new(seed, None);
            let first = Draw { key: b"key", created: Time::ZERO, earlier: 0, number: 0 };
            [chance.random(first), chance.random(Draw { number: 1, ..first }), chance.hash(1, 2)]
        };
        assert_eq!(draw(7), draw(7));
        assert!(draw(7).iter().zip(draw(8)).all(|(one, other)| *one != other));
    }

    #[test]
    fn each_draw_of_each_instance_is_a_number_of_its_own() {
        let chance = Chance::new(1, None);
        let first = Draw { key: b"key", created: Time::from_nanoseconds(5), earlier: 0, number: 0 };
        let others = [
            Draw { key: b"kez", ..first },
            Draw { created: Time::from_nanoseconds(6), ..first },
            Draw { earlier: 1, ..first },
            Draw { number: 1, ..first },
        ];
        assert!(others.into_iter().all(|other| chance.random(other) != chance.random(first)));
        // The bytes that are hashed, all at once.
        let mut bytes = b"key".to_vec();
        bytes.extend([5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(chance.random(first), chance.random.hash(&bytes) as i64);
    }
}
