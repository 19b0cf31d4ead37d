//! Records of segments in the order of their sequence numbers.

use super::distance;
use crate::state::SegmentsState;
use crate::value::{compare, is_before};
use std::ops::Range;
use weftwire_core::DropReason;
use weftwire_image::{Comparison, PayloadTest, RegisterType, SEGMENT_ENDS, SegmentsQuery};

/// Records side by side: each begins where the one in front ends.
#[derive(Clone, Debug)]
pub struct Segments {
    /// Where the first one begins; without records, where the next one will.
    start: u32,
    /// The records' fields one after the other; the first two are the ends. In front of them stand values that are no more.
    values: Vec<i64>,
    /// How many of these.
    gone: usize,
    /// In how many records a field is not 0, by field, but for the ends: tests for that need not look at records that are all alike.
    set: Vec<usize>,
    /// Types of the fields, those of the ends included.
    kinds: Vec<RegisterType>,
    most: usize,
}

impl PartialEq for Segments {
    fn eq(&self, other: &Segments) -> bool {
        (self.start, self.records(), &self.kinds, self.most) == (other.start, other.records(), &other.kinds, other.most)
    }
}

impl Eq for Segments {}

/// Tests of fields, with the values of their right sides.
#[derive(Clone, Copy, Debug)]
pub struct Tests<'a> {
    /// The tests.
    pub tests: &'a [PayloadTest],
    /// The right sides, one for each.
    pub right: &'a [i64],
}

impl Tests<'_> {
    /// Whether these values pass all of them.
    pub fn pass(&self, values: &[i64]) -> bool {
        let mut tests = self.tests.iter().zip(self.right);
        tests.all(|(test, right)| test.passes(values[usize::from(test.value)], *right))
    }
}

impl Segments {
    /// No records; at most so many, with these fields.
    pub fn new(most: u32, fields: impl Iterator<Item = RegisterType>) -> Segments {
        let kinds: Vec<_> = [RegisterType::Seq32; SEGMENT_ENDS.len()].into_iter().chain(fields).collect();
        Segments { start: 0, values: Vec::new(), gone: 0, set: vec![0; kinds.len()], kinds, most: most as usize }
    }

    fn width(&self) -> usize {
        self.kinds.len()
    }

    /// All records' fields.
    fn records(&self) -> &[i64] {
        &self.values[self.gone..]
    }

    fn count(&self) -> usize {
        self.records().len() / self.width()
    }

    /// The ends of a record.
    fn ends(&self, index: usize) -> [u32; 2] {
        let place = index * self.width();
        [0, 1].map(|end| self.records()[place + end] as u32)
    }

    fn end(&self) -> u32 {
        match self.count() {
            0 => self.start,
            count => self.ends(count - 1)[1],
        }
    }

    /// As new, with so many bytes of memory at most.
    pub fn blank(&mut self, kept: usize) {
        self.begin(0);
        self.values.shrink_to(kept / size_of::<i64>());
    }

    /// Rule G2.
    pub fn begin(&mut self, at: u32) {
        self.start = at;
        self.clear();
    }

    fn clear(&mut self) {
        self.values.clear();
        self.gone = 0;
        self.set.fill(0);
    }

    /// Rule G3.
    pub fn append(&mut self, end: u32, fields: &[i64]) -> Result<(), DropReason> {
        let left = self.end();
        if distance(left, end) <= 0 || distance(self.start, end) <= 0 {
            return Ok(());
        }
        if self.count() >= self.most {
            return Err(DropReason::SegmentsFull);
        }
        self.values.extend([i64::from(left), i64::from(end)]);
        let own = self.kinds[SEGMENT_ENDS.len()..].iter().zip(fields);
        self.values.extend(own.map(|(kind, value)| kind.cut(*value)));
        self.note(self.count() - 1, |set, is| set + is);
        Ok(())
    }

    /// Counts which fields of a record are set, or no longer does.
    fn note(&mut self, index: usize, change: impl Fn(usize, usize) -> usize) {
        let place = self.gone + index * self.kinds.len();
        for (set, value) in self.set.iter_mut().zip(&self.values[place..]) {
            *set = change(*set, usize::from(*value != 0));
        }
    }

    /// The record around a sequence number: its index.
    fn around(&self, at: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.count());
        if !(0..distance(self.start, self.end())).contains(&distance(self.start, at)) {
            return None;
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if distance(self.ends(middle)[0], at) >= 0 { low = middle } else { high = middle }
        }
        Some(low)
    }

    /// Rule G4.
    pub fn split(&mut self, at: u32) -> Result<(), DropReason> {
        let Some(index) = self.around(at).filter(|index| self.ends(*index)[0] != at) else { return Ok(()) };
        if self.count() >= self.most {
            return Err(DropReason::SegmentsFull);
        }
        self.note(index, |set, is| set + is);
        let (width, place) = (self.width(), self.gone + index * self.width());
        let first = if self.gone >= width && index < self.count() / 2 {
            // There is room in front, which is nearer.
            self.values.copy_within(self.gone..place + width, self.gone - width);
            self.gone -= width;
            place - width
        } else {
            self.values.extend_from_within(place..place + width);
            self.values[place + width..].rotate_right(width);
            place
        };
        self.values[first + 1] = at.into();
        self.values[first + width] = at.into();
        Ok(())
    }

    /// Rule G5.
    pub fn trim(&mut self, to: u32) {
        if distance(self.start, to) <= 0 {
            return;
        }
        match self.around(to) {
            None => {
                self.start = self.end();
                self.clear();
            }
            Some(index) => {
                (0..index).for_each(|index| self.note(index, |set, is| set - is));
                self.gone += index * self.width();
                if self.gone > self.values.len() / 2 {
                    self.values.drain(..self.gone);
                    self.gone = 0;
                }
                self.values[self.gone] = to.into();
                self.start = to;
            }
        }
    }

    /// Rule G6.
    pub fn change(&mut self, tests: Tests<'_>, writes: &[(u8, i64)]) {
        for index in self.candidates(tests) {
            let place = self.gone + index * self.width();
            if tests.pass(&self.values[place..]) {
                for (field, value) in writes {
                    let field = usize::from(*field);
                    let (old, new) = (self.values[place + field], self.kinds[field].cut(*value));
                    self.values[place + field] = new;
                    self.set[field] = self.set[field] + usize::from(new != 0) - usize::from(old != 0);
                }
            }
        }
    }

    /// Outside of these records none passes the tests.
    fn candidates(&self, tests: Tests<'_>) -> Range<usize> {
        let mut candidates = 0..self.count();
        for (test, right) in tests.tests.iter().zip(tests.right) {
            let field = usize::from(test.value);
            if self.alike(test, *right) == Some(false) {
                return 0..0;
            }
            if field >= SEGMENT_ENDS.len() || test.bits != 32 || distance(self.start, *right as u32) < 0 {
                continue;
            }
            // Ends are in order, and so is their distance from a number that is not below the first.
            let passes = |index: usize| compare(test.comparison, self.ends(index)[field].into(), *right);
            let turn = |first: bool| partition(candidates.clone(), |index| passes(index) == first);
            match test.comparison {
                Comparison::SeqLt | Comparison::SeqLe => candidates.end = turn(true),
                Comparison::SeqGt | Comparison::SeqGe => candidates.start = turn(false),
                _ => {}
            }
        }
        candidates
    }

    /// Whether all records pass the tests, as far as that can be told without looking at them.
    fn all_pass(&self, tests: Tests<'_>) -> bool {
        tests.tests.iter().zip(tests.right).all(|(test, right)| self.alike(test, *right) == Some(true))
    }

    /// Whether all records pass a test, or none does, if that can be told without looking at them.
    fn alike(&self, test: &PayloadTest, right: i64) -> Option<bool> {
        let field = usize::from(test.value);
        let zero = match test.comparison {
            Comparison::Eq => true,
            Comparison::Ne => false,
            _ => return None,
        };
        match self.set[field] {
            _ if right != 0 || field < SEGMENT_ENDS.len() => None,
            0 => Some(zero),
            set => (set == self.count()).then_some(!zero),
        }
    }

    /// Rule G7.
    pub fn query(&self, what: SegmentsQuery, field: u8, tests: Tests<'_>) -> i64 {
        match what {
            SegmentsQuery::Start => return self.start.into(),
            SegmentsQuery::End => return self.end().into(),
            SegmentsQuery::Bytes if self.all_pass(tests) => return distance(self.start, self.end()),
            SegmentsQuery::Count if self.all_pass(tests) => return self.count() as i64,
            _ => {}
        }
        let (width, candidates) = (self.width(), self.candidates(tests));
        let records = self.records()[candidates.start * width..candidates.end * width].chunks_exact(width);
        let mut passing = records.filter(|record| tests.pass(record));
        let value = |record: &[i64]| record[usize::from(field)];
        let less = |one: i64, other: i64| is_before(self.kinds[usize::from(field)], one, other);
        let found = match what {
            SegmentsQuery::First => passing.next().map(value),
            SegmentsQuery::Last => passing.next_back().map(value),
            SegmentsQuery::Least => passing.map(value).reduce(|one, other| if less(other, one) { other } else { one }),
            SegmentsQuery::Greatest => {
                passing.map(value).reduce(|one, other| if less(one, other) { other } else { one })
            }
            SegmentsQuery::Bytes => Some(passing.map(|record| distance(record[0] as u32, record[1] as u32)).sum()),
            _ => Some(passing.count() as i64),
        };
        found.unwrap_or(0)
    }

    /// The state.
    pub(crate) fn state(&self) -> SegmentsState {
        let record = |record: &[i64]| {
            let length = distance(record[0] as u32, record[1] as u32) as u32;
            (length, record[SEGMENT_ENDS.len()..].to_vec())
        };
        SegmentsState { start: self.start, records: self.records().chunks_exact(self.width()).map(record).collect() }
    }

    /// As they were. Nothing of it has to be true; `None` if there can be no such records.
    pub(crate) fn restored(mut self, state: &SegmentsState) -> Option<Segments> {
        self.begin(state.start);
        for (length, fields) in &state.records {
            let whole = *length < 1 << 31 && fields.len() + SEGMENT_ENDS.len() == self.width();
            let cut =
                self.kinds[SEGMENT_ENDS.len()..].iter().zip(fields).all(|(kind, value)| kind.cut(*value) == *value);
            let before = self.count();
            let end = self.end().wrapping_add(*length);
            if !whole || !cut || self.append(end, fields).is_err() || self.count() == before {
                return None;
            }
        }
        Some(self)
    }
}

/// The first of these numbers that is not like those in front of it.
fn partition(range: Range<usize>, is_front: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = (low + high) / 2;
        if is_front(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weftwire_image::Operand;

    #[derive(Clone, Debug)]
    enum Step {
        Append(i64, i64),
        Split(i64),
        Trim(i64),
        Change(i64, i64, i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (-3..30_i64, 0..5_i64).prop_map(|(length, value)| Step::Append(length, value)),
            2 => (-10..130_i64).prop_map(Step::Split),
            1 => (-10..60_i64).prop_map(Step::Trim),
            2 => (-10..130_i64, 0..60_i64, 0..5_i64).prop_map(|(left, length, value)| Step::Change(left, left + length, value)),
        ];
        prop::collection::vec(step, 0..60)
    }

    fn test(value: u8, comparison: Comparison) -> PayloadTest {
        PayloadTest::new(value, comparison, Operand::Constant(0))
    }

    const MOST: usize = 6;

    proptest! {
        /// Against a list of records with numbers that do not wrap.
        #[test]
        fn records_are_a_list(start in any::<u32>(), steps in steps()) {
            let mut segments = Segments::new(MOST as u32, [RegisterType::U8].into_iter());
            segments.begin(start);
            // (left, right, value) behind `start`.
            let (mut list, mut floor, mut end) = (Vec::<(i64, i64, i64)>::new(), 0_i64, 0_i64);
            let number = |place: i64| start.wrapping_add(place as u32);
            for step in steps {
                match step {
                    Step::Append(length, value) => {
                        let full = length > 0 && list.len() >= MOST;
                        let result = segments.append(number(end + length), &[value]);
                        prop_assert_eq!(result, if full { Err(DropReason::SegmentsFull) } else { Ok(()) });
                        if length > 0 && !full {
                            list.push((end, end + length, value));
                            end += length;
                        }
                    }
                    Step::Split(at) => {
                        let at = floor + at;
                        let inside = list.iter().position(|record| record.0 < at && at < record.1);
                        let full = inside.is_some() && list.len() >= MOST;
                        let result = segments.split(number(at));
                        prop_assert_eq!(result, if full { Err(DropReason::SegmentsFull) } else { Ok(()) });
                        if let Some(index) = inside.filter(|_| !full) {
                            let (left, right, value) = list[index];
                            list.splice(index..=index, [(left, at, value), (at, right, value)]);
                        }
                    }
                    Step::Trim(to) => {
                        segments.trim(number(floor + to));
                        if to > 0 {
                            floor = (floor + to).min(end);
                            list.retain(|record| record.1 > floor);
                            if let Some(first) = list.first_mut() {
                                first.0 = floor;
                            }
                        }
                    }
                    Step::Change(left, right, value) => {
                        let (left, right) = (floor + left, floor + right);
                        let tests = [test(0, Comparison::SeqGe), test(1, Comparison::SeqLe)];
                        let sides = [number(left).into(), number(right).into()];
                        segments.change(Tests { tests: &tests, right: &sides }, &[(2, 256 + value)]);
                        for record in list.iter_mut().filter(|record| record.0 >= left && record.1 <= right) {
                            record.2 = value;
                        }
                    }
                }
                use SegmentsQuery::*;
                let none = Tests { tests: &[], right: &[] };
                prop_assert_eq!(segments.query(Start, 0, none), i64::from(number(floor)));
                prop_assert_eq!(segments.query(End, 0, none), i64::from(number(end)));
                for value in 0..5 {
                    let tests = Tests { tests: &[test(2, Comparison::Ge)], right: &[value] };
                    let passing: Vec<_> = list.iter().filter(|record| record.2 >= value).collect();
                    let bytes: i64 = passing.iter().map(|record| record.1 - record.0).sum();
                    let ask = |what, field| segments.query(what, field, tests);
                    prop_assert_eq!((ask(Count, 0), ask(Bytes, 0)), (passing.len() as i64, bytes));
                    let left = passing.first().map_or(0, |record| i64::from(number(record.0)));
                    let right = passing.last().map_or(0, |record| i64::from(number(record.1)));
                    prop_assert_eq!((ask(First, 0), ask(Last, 1)), (left, right));
                    prop_assert_eq!((ask(Least, 0), ask(Greatest, 1)), (left, right));
                    let values = || passing.iter().map(|record| record.2);
                    let bounds = (values().min().unwrap_or(0), values().max().unwrap_or(0));
                    prop_assert_eq!((ask(Least, 2), ask(Greatest, 2)), bounds);
                }
                let again = Segments::new(MOST as u32, [RegisterType::U8].into_iter());
                prop_assert_eq!(again.restored(&segments.state()), Some(segments.clone()));
            }
        }
    }
}
