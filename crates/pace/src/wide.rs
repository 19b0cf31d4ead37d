//! Whole numbers of 128 and of 256 bits in two's complement, for words that hold fractions of packets and of time.

/// A whole number in two's complement. Sums and products that do not fit lose their upper bits.
pub(crate) trait Word: Copy + Default {
    /// Bits of a number.
    const BITS: u32;

    /// `value · 2^shift`.
    fn shifted(value: i64, shift: u32) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn shl(self, shift: u32) -> Self;
    fn times(self, factor: u64) -> Self;
    fn is_negative(self) -> bool;
}

impl Word for i128 {
    const BITS: u32 = 128;

    fn shifted(value: i64, shift: u32) -> i128 {
        Word::shl(i128::from(value), shift)
    }

    fn plus(self, other: i128) -> i128 {
        self.wrapping_add(other)
    }

    fn minus(self, other: i128) -> i128 {
        self.wrapping_sub(other)
    }

    fn shl(self, shift: u32) -> i128 {
        self.checked_shl(shift).unwrap_or(0)
    }

    fn times(self, factor: u64) -> i128 {
        self.wrapping_mul(i128::from(factor))
    }

    fn is_negative(self) -> bool {
        self < 0
    }
}

/// 256 bits, the least first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wide([u64; 4]);

impl Word for Wide {
    const BITS: u32 = 256;

    fn shifted(value: i64, shift: u32) -> Wide {
        let sign = if value < 0 { u64::MAX } else { 0 };
        Wide([value as u64, sign, sign, sign]).shl(shift)
    }

    fn plus(self, other: Wide) -> Wide {
        let mut sum = [0; 4];
        let mut carry = false;
        for (limb, (left, right)) in sum.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (part, over) = left.overflowing_add(right);
            let (part, over_again) = part.overflowing_add(u64::from(carry));
            (*limb, carry) = (part, over || over_again);
        }
        Wide(sum)
    }

    fn minus(self, other: Wide) -> Wide {
        self.plus(Wide(other.0.map(|limb| !limb)).plus(Wide([1, 0, 0, 0])))
    }

    fn shl(self, shift: u32) -> Wide {
        if shift >= Self::BITS {
            return Wide::default();
        }
        let (limbs, bits) = ((shift / 64) as usize, shift % 64);
        let limb = |index: usize| if index >= limbs { self.0[index - limbs] } else { 0 };
        let mut result = [0; 4];
        for (index, moved) in result.iter_mut().enumerate() {
            let below = if bits > 0 && index > 0 { limb(index - 1) >> (64 - bits) } else { 0 };
            *moved = limb(index) << bits | below;
        }
        Wide(result)
    }

    fn times(self, factor: u64) -> Wide {
        let mut product = [0; 4];
        let mut carry = 0_u128;
        for (limb, part) in product.iter_mut().zip(self.0) {
            let sum = u128::from(part) * u128::from(factor) + carry;
            (*limb, carry) = (sum as u64, sum >> 64);
        }
        Wide(product)
    }

    fn is_negative(self) -> bool {
        self.0[3] >> 63 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn narrow(value: i128) -> Wide {
        let high = Wide::shifted((value >> 64) as i64, 64);
        Wide([value as u64, 0, 0, 0]).plus(high)
    }

    proptest! {
        /// As numbers of 128 bits, where they fit.
        #[test]
        fn arithmetic_is_that_of_smaller_numbers(a in any::<i64>(), b in any::<i64>(), c in 0_u64..1 << 62, shift in 0_u32..63) {
            let (x, y) = (i128::from(a), i128::from(b) << shift);
            prop_assert_eq!(Wide::shifted(b, shift), narrow(y));
            prop_assert_eq!(narrow(x).plus(narrow(y)), narrow(x + y));
            prop_assert_eq!(narrow(x).minus(narrow(y)), narrow(x - y));
            prop_assert_eq!(narrow(x).times(c), narrow(x * i128::from(c)));
            prop_assert_eq!(narrow(y - x).is_negative(), y < x);
            prop_assert_eq!(narrow(x).shl(shift + 60).shl(100), Wide::shifted(a, shift + 160));
        }
    }
}
