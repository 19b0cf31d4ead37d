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

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
