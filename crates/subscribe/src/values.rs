//! Sets of values of a field: sorted, disjoint intervals that do not touch.

use serde::Serialize;
use smallvec::SmallVec;

/// All values from `first` to `last`, both included; `first <= last`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Interval {
    /// The least value.
    pub first: u128,
    /// The greatest value.
    pub last: u128,
}

impl Interval {
    /// A single value.
    pub fn point(value: u128) -> Interval {
        Interval { first: value, last: value }
    }

    /// All values of a field of `width` bits, 1 to 128.
    pub fn of_width(width: u16) -> Interval {
        Interval { first: 0, last: u128::MAX >> (128 - width.clamp(1, 128)) }
    }

    /// Whether it holds a value.
    pub fn contains(self, value: u128) -> bool {
        self.first <= value && value <= self.last
    }

    /// Whether it is a single value.
    pub fn is_point(self) -> bool {
        self.first == self.last
    }

    /// The values of both.
    pub fn intersection(self, other: Interval) -> Option<Interval> {
        let both = Interval { first: self.first.max(other.first), last: self.last.min(other.last) };
        (both.first <= both.last).then_some(both)
    }

    /// How many values it holds; 2^128 counts as one fewer.
    pub fn size(self) -> u128 {
        (self.last - self.first).saturating_add(1)
    }

    /// How many prefixes of `width` bits it takes to name all of it.
    pub fn prefix_count(self, width: u16) -> usize {
        let domain = Interval::of_width(width);
        let (mut first, last) = (self.first, self.last.min(domain.last));
        if first == 0 && last == domain.last {
            return 1;
        }
        let mut count = 0;
        while first <= last {
            // The widest block that starts here and does not go beyond the end.
            let block = first.trailing_zeros().min((last - first + 1).ilog2());
            count += 1;
            match first.checked_add(1 << block) {
                Some(next) => first = next,
                None => break,
            }
        }
        count
    }

    /// The values whose first `length` of `width` bits are those of `value`.
    pub fn of_prefix(value: u128, length: u16, width: u16) -> Interval {
        let host = if length >= width { 0 } else { u128::MAX >> (128 - (width - length).min(128)) };
        Interval { first: value & !host, last: value | host }
    }
}

/// A set of values of one field.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ValueSet(SmallVec<[Interval; 1]>);

impl ValueSet {
    /// No value.
    pub fn empty() -> ValueSet {
        ValueSet::default()
    }

    /// The values of one interval.
    pub fn interval(interval: Interval) -> ValueSet {
        ValueSet(SmallVec::from_buf([interval]))
    }

    /// A single value.
    pub fn point(value: u128) -> ValueSet {
        ValueSet::interval(Interval::point(value))
    }

    /// The values of all these intervals, which may overlap and come in any order.
    pub fn union_of(intervals: impl IntoIterator<Item = Interval>) -> ValueSet {
        let mut sorted: Vec<Interval> = intervals.into_iter().collect();
        sorted.sort_unstable();
        let mut set: SmallVec<[Interval; 1]> = SmallVec::new();
        for interval in sorted {
            match set.last_mut() {
                Some(last) if interval.first <= last.last.saturating_add(1) => last.last = last.last.max(interval.last),
                _ => set.push(interval),
            }
        }
        ValueSet(set)
    }

    /// Its intervals in order.
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it holds a value.
    pub fn contains(&self, value: u128) -> bool {
        let behind = self.0.partition_point(|interval| interval.last < value);
        self.0.get(behind).is_some_and(|interval| interval.first <= value)
    }

    /// The single value of a set of one.
    pub fn as_point(&self) -> Option<u128> {
        match self.0[..] {
            [interval] if interval.is_point() => Some(interval.first),
            _ => None,
        }
    }

    /// The values of `all` that are not in the set.
    #[must_use]
    pub fn complement(&self, all: Interval) -> ValueSet {
        let mut rest = SmallVec::new();
        let mut next = Some(all.first);
        for interval in &self.0 {
            if let Some(first) = next.filter(|first| *first < interval.first) {
                rest.push(Interval { first, last: interval.first - 1 });
            }
            next = interval.last.checked_add(1).filter(|next| *next <= all.last);
        }
        if let Some(first) = next {
            rest.push(Interval { first, last: all.last });
        }
        ValueSet(rest)
    }

    /// The values of both.
    #[must_use]
    pub fn intersection(&self, other: &ValueSet) -> ValueSet {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = SmallVec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            both.extend(a.intersection(**b));
            if a.last < b.last {
                left.next();
            } else {
                right.next();
            }
        }
        ValueSet(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set() -> impl Strategy<Value = ValueSet> {
        proptest::collection::vec((0u128..64, 0u128..10), 0..5).prop_map(|pairs| {
            ValueSet::union_of(pairs.into_iter().map(|(first, more)| Interval { first, last: (first + more).min(63) }))
        })
    }

    proptest! {
        #[test]
        fn agrees_with_single_values(a in set(), b in set()) {
            let all = Interval::of_width(6);
            let (not, both) = (a.complement(all), a.intersection(&b));
            let either = ValueSet::union_of(a.intervals().iter().chain(b.intervals()).copied());
            for value in 0..64 {
                let (in_a, in_b) = (a.contains(value), b.contains(value));
                prop_assert_eq!(not.contains(value), !in_a);
                prop_assert_eq!(both.contains(value), in_a && in_b);
                prop_assert_eq!(either.contains(value), in_a || in_b);
            }
            // Equal sets are written equally.
            prop_assert_eq!(not.complement(all), a);
        }
    }

    #[test]
    fn the_widest_field_has_no_end_to_fall_off() {
        let all = Interval::of_width(128);
        assert_eq!(
            ValueSet::point(u128::MAX).complement(all).intervals(),
            [Interval { first: 0, last: u128::MAX - 1 }]
        );
        assert!(ValueSet::interval(all).complement(all).is_empty());
        assert_eq!(Interval::of_prefix(0x1234, 0, 128), all);
        assert_eq!(Interval::of_prefix(0x1234, 8, 16), Interval { first: 0x1200, last: 0x12ff });
        assert_eq!(Interval::of_prefix(0x1234, 16, 16), Interval::point(0x1234));
    }
}
