//! From a tick to a row of each table.

use crate::dice::Dice;
use crate::model::Tick;
use serde::Serialize;

/// A family of hash functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hash {
    /// As good as random: several rounds of multiplying and shifting 64 bits. Too large for hardware, the measure for the others.
    Strong,
    /// The top bits of an odd constant times the key, in 32 bits. The bits below are what is left to store.
    MultiplyShift,
    /// The exclusive or of one random word for each bit of the key that is 1.
    H3,
    /// As in the published source: each table's row is the exclusive or of two slices of the key, which is the time in microseconds of
    /// 157 ticks, then the tick within it. For 1,024 rows.
    Published,
}

impl Hash {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Hash::Strong => "strong",
            Hash::MultiplyShift => "multiply-shift",
            Hash::H3 => "H3",
            Hash::Published => "published",
        }
    }
}

/// One hash function for each table.
#[derive(Clone, Debug)]
pub struct Hasher {
    hash: Hash,
    row_bits: u32,
    /// A constant for each table.
    constants: Vec<u64>,
    /// H3: for each table and each byte of the key, the word of each value of the byte.
    words: Vec<[[u32; 256]; 4]>,
}

/// Ticks of a microsecond in the published source, which counts from 0 to 156.
const PUBLISHED_MICROSECOND: u64 = 157;

impl Hasher {
    /// Functions for this many tables of `2^row_bits` rows.
    pub fn new(hash: Hash, tables: usize, row_bits: u32, dice: &mut Dice) -> Hasher {
        let constants = (0..tables).map(|_| dice.any() | 1).collect();
        let count = if hash == Hash::H3 { tables } else { 0 };
        let words = (0..count).map(|_| words(dice)).collect();
        Hasher { hash, row_bits, constants, words }
    }

    /// The row of a key in a table.
    #[inline]
    pub fn row(&self, table: usize, key: Tick) -> usize {
        let mask = (1_u64 << self.row_bits) - 1;
        let row = match self.hash {
            Hash::Strong => {
                // The finishing steps of SplitMix64.
                let mut word = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.constants[table];
                word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (word ^ (word >> 31)) & mask
            }
            Hash::MultiplyShift => {
                u64::from((key as u32).wrapping_mul(self.constants[table] as u32)) >> (32 - self.row_bits)
            }
            Hash::H3 => {
                let bytes = (key as u32).to_le_bytes();
                let words = &self.words[table];
                let word = (0..4).fold(0, |word, byte| word ^ words[byte][usize::from(bytes[byte])]);
                u64::from(word) & mask
            }
            Hash::Published => {
                // Two bits of the tick are left out.
                let word = ((key / PUBLISHED_MICROSECOND) << 8) | ((key % PUBLISHED_MICROSECOND) & !3);
                let (high, low) = [(8, 0), (10, 20), (20, 14), (30, 15)][table % 4];
                ((word >> high) ^ (word >> low)) & mask
            }
        };
        row as usize
    }
}

fn words(dice: &mut Dice) -> [[u32; 256]; 4] {
    let mut words = [[0; 256]; 4];
    for byte in &mut words {
        for bit in 0..8 {
            let word = dice.any() as u32;
            for value in (0..256).filter(|value| value >> bit & 1 == 1) {
                byte[value] ^= word;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread() {
        for hash in [Hash::Strong, Hash::MultiplyShift, Hash::H3] {
            let hasher = Hasher::new(hash, 4, 10, &mut Dice::new(1));
            for table in 0..4 {
                let mut counts = [0_u32; 1024];
                for key in 0..65_536_u64 {
                    counts[hasher.row(table, key * 15_259)] += 1;
                }
                let most = counts.iter().max().copied().unwrap_or(0);
                assert!(counts.iter().all(|count| *count > 0) && most < 256, "{hash:?} {table}: {most}");
            }
        }
    }

    #[test]
    fn what_multiply_shift_leaves_over_tells_keys_apart() {
        // Row and remainder are the product with an odd number, which can be undone.
        let constant = (Dice::new(1).any() | 1) as u32;
        let mut products: Vec<u32> = (0..100_000_u32).map(|key| key.wrapping_mul(constant)).collect();
        products.sort_unstable();
        products.dedup();
        assert_eq!(products.len(), 100_000);
        let hasher = Hasher::new(Hash::MultiplyShift, 1, 10, &mut Dice::new(1));
        assert_eq!(hasher.row(0, 77), (77_u32.wrapping_mul(constant) >> 22) as usize);
    }

    #[test]
    fn h3_is_linear() {
        let hasher = Hasher::new(Hash::H3, 2, 12, &mut Dice::new(7));
        let (a, b) = (0x1234_5678, 0x0f0f_1111);
        assert_eq!(hasher.row(1, a) ^ hasher.row(1, b), hasher.row(1, a ^ b));
    }

    #[test]
    fn the_published_rows_change_slowly() {
        let hasher = Hasher::new(Hash::Published, 4, 10, &mut Dice::new(7));
        // 4 microseconds for table 2, 64 for table 3, 128 for table 4.
        for (table, microseconds) in [(1, 4), (2, 64), (3, 128)] {
            let ticks = microseconds * PUBLISHED_MICROSECOND;
            let row = hasher.row(table, ticks * 5);
            assert!((0..ticks).all(|tick| hasher.row(table, ticks * 5 + tick) == row), "{table}");
            assert_ne!(hasher.row(table, ticks * 6), row);
        }
    }
}
