//! Bit fields of headers: big-endian, the most significant bit first, as RFCs and P4 count them.

/// Reads `width` bits (1 to 64 anywhere, or 128 on a byte boundary) that start `offset` bits into `bytes`.
/// `None` if they reach beyond its end.
pub fn read(bytes: &[u8], offset: usize, width: usize) -> Option<u128> {
    // Nearly always the field lies within 8 bytes, which are loaded at once.
    if offset % 8 + width <= 64
        && let Some(word) = bytes.get(offset / 8..).and_then(<[u8]>::first_chunk)
    {
        return Some((u64::from_be_bytes(*word) << (offset % 8) >> (64 - width)).into());
    }
    let covering = bytes.get(offset / 8..(offset + width).div_ceil(8))?;
    let value = covering.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
    Some(value >> (covering.len() * 8 - offset % 8 - width) & ones(width))
}

/// Writes the low `width` bits of `value` over the field. `false`, and nothing is changed, if the field reaches
/// beyond the end of `bytes`.
pub fn write(bytes: &mut [u8], offset: usize, width: usize, value: u128) -> bool {
    // As in `read`: nearly always within 8 bytes, which are changed at once.
    if offset % 8 + width <= 64
        && let Some(word) = bytes.get_mut(offset / 8..).and_then(<[u8]>::first_chunk_mut)
    {
        let shift = 64 - width - offset % 8;
        let mask = (u64::MAX >> (64 - width)) << shift;
        *word = (u64::from_be_bytes(*word) & !mask | (value as u64) << shift & mask).to_be_bytes();
        return true;
    }
    let end = offset + width;
    let Some(covering) = bytes.get_mut(offset / 8..end.div_ceil(8)) else { return false };
    let shift = covering.len() * 8 - offset % 8 - width;
    let mut mask = ones(width) << shift;
    let mut value = value << shift;
    for byte in covering.iter_mut().rev() {
        *byte = *byte & !(mask as u8) | value as u8 & mask as u8;
        mask >>= 8;
        value >>= 8;
    }
    true
}

fn ones(width: usize) -> u128 {
    u128::MAX >> (128 - width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One bit at a time.
    fn slow_read(bytes: &[u8], offset: usize, width: usize) -> u128 {
        (offset..offset + width).fold(0, |value, bit| value << 1 | u128::from(bytes[bit / 8] >> (7 - bit % 8) & 1))
    }

    proptest! {
        #[test]
        fn agrees_with_single_bits(
            bytes in proptest::collection::vec(any::<u8>(), 24),
            offset in 0usize..128,
            width in 1usize..=64,
            value: u64,
        ) {
            prop_assert_eq!(read(&bytes, offset, width), Some(slow_read(&bytes, offset, width)));
            let mut written = bytes.clone();
            prop_assert!(write(&mut written, offset, width, value.into()));
            prop_assert_eq!(slow_read(&written, offset, width), u128::from(value) & ones(width));
            for bit in (0..offset).chain(offset + width..bytes.len() * 8) {
                prop_assert_eq!(slow_read(&written, bit, 1), slow_read(&bytes, bit, 1));
            }
        }
    }

    #[test]
    fn wide_and_out_of_range() {
        let mut bytes = [0u8; 17];
        assert!(write(&mut bytes, 8, 128, u128::MAX - 5));
        assert_eq!(read(&bytes, 8, 128), Some(u128::MAX - 5));
        assert_eq!(read(&bytes, 16, 128), None);
        assert!(!write(&mut bytes, 130, 8, 1));
    }
}
