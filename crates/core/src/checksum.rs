//! The Internet checksum: in full (RFC 1071) and updated for a change (RFC 1624).

/// A ones' complement sum under way. Pieces may be added in any order, each as if it began at an even offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub fn new() -> Sum {
        Sum::default()
    }

    /// Adds bytes; an odd last byte counts as the high half of a word (RFC 1071, section 4.1).
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        // Summed in host order, 32 bits at a time into 64, which compilers turn into vector code; byte order only
        // matters for the final 16 bits (RFC 1071, section 2 (B)).
        let mut words = bytes.chunks_exact(4);
        let mut sum: u64 =
            words.by_ref().map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))).sum();
        let mut rest = [0u8; 4];
        rest[..words.remainder().len()].copy_from_slice(words.remainder());
        sum += u64::from(u32::from_ne_bytes(rest));
        self.word(u16::from_be(fold(sum)))
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The sum in 16 bits. 0xffff over data that includes its checksum field means that the checksum is right.
    pub fn folded(self) -> u16 {
        fold(self.0)
    }

    /// What goes into the checksum field.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The checksum of one piece of data whose checksum field is 0.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).checksum()
}

/// The checksum after one 16-bit word it covers changed from `old` to `new` (RFC 1624, equation 3).
///
/// Exact as long as the data holds anything but zeros, which every IP, TCP and UDP checksum's does. Over UDP, send a
/// result of 0 as 0xffff.
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::new().word(!checksum).word(!old).word(new).checksum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Word by word, as RFC 1071, section 4.1 writes it.
    fn slow(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for word in bytes.chunks(2) {
            sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn agrees_with_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..200), half in 0usize..100) {
            prop_assert_eq!(checksum(&bytes), slow(&bytes));
            let (front, back) = bytes.split_at((half * 2).min(bytes.len()));
            prop_assert_eq!(Sum::new().bytes(back).bytes(front).checksum(), slow(&bytes));
        }

        #[test]
        fn updates_agree_with_full_sums(
            mut words in proptest::collection::vec(prop_oneof![Just(0u16), Just(0xffff), any::<u16>()], 2..20),
            at: proptest::sample::Index,
            new in prop_oneof![Just(0u16), Just(0xffff), any::<u16>()],
        ) {
            let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
            let at = at.index(words.len());
            let (before, old) = (checksum(&bytes(&words)), words[at]);
            words[at] = new;
            prop_assume!(words.iter().any(|word| *word != 0));
            // The data before the change held more than zeros too.
            prop_assume!(before != 0xffff);
            prop_assert_eq!(update(before, old, new), checksum(&bytes(&words)));
        }
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: equation 2 of RFC 1141 would give 0xffff here.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(checksum(&[]), 0xffff);
    }
}
