//! Ranges of sequence numbers above a floor, and the bytes that stand there.

use super::distance;
use super::pages::Pages;
use crate::state::RangesState;
use weftwire_core::DropReason;
use weftwire_image::RangesQuery;

/// Disjoint ranges that do not touch. Few, so that plain lists are fast, and obvious.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// All ranges are at or above it.
    floor: u32,
    /// Where each begins and ends behind the floor, less than 2^31; the one changed last is the first.
    entries: Vec<(u32, u32)>,
    most: usize,
    /// The bytes, if it is the receive buffer.
    buffer: Option<Buffer>,
}

/// The bytes of the receive buffer.
#[derive(Clone, Debug)]
struct Buffer {
    /// Those of the ranges, by how far behind the floor they are.
    bytes: Pages,
    /// How many there may be, with those that were delivered and not read.
    size: u32,
    /// Bytes delivered that the application has not read.
    unread: u32,
}

impl Ranges {
    /// No ranges; at most so many. `size` is that of the receive buffer.
    pub fn new(most: u32, size: Option<u32>) -> Ranges {
        let buffer = size.map(|size| Buffer { bytes: Pages::default(), size, unread: 0 });
        Ranges { floor: 0, entries: Vec::new(), most: most as usize, buffer }
    }

    /// As new, with so many bytes of memory at most.
    pub fn blank(&mut self, kept: usize) {
        self.begin(0);
        if let Some(buffer) = &mut self.buffer {
            buffer.unread = 0;
            buffer.bytes.shrink_to(kept);
        }
    }

    /// Rule R2.
    pub fn begin(&mut self, at: u32) {
        self.floor = at;
        self.entries.clear();
        if let Some(buffer) = &mut self.buffer {
            buffer.bytes.clear();
        }
    }

    /// Rule R3.
    pub fn add(&mut self, left: u32, right: u32) -> Result<(), DropReason> {
        let (left, right) = (distance(self.floor, left).max(0), distance(self.floor, right));
        if left >= right {
            return Ok(());
        }
        self.insert(left as u32, right as u32)
    }

    fn insert(&mut self, left: u32, right: u32) -> Result<(), DropReason> {
        let apart = |entry: &(u32, u32)| entry.1 < left || right < entry.0;
        let joined = self.entries.iter().filter(|entry| !apart(entry));
        let (left, right, count) = joined
            .fold((left, right, 0), |(left, right, count), entry| (left.min(entry.0), right.max(entry.1), count + 1));
        if self.entries.len() - count >= self.most {
            return Err(DropReason::RangesFull);
        }
        self.entries.retain(apart);
        self.entries.insert(0, (left, right));
        Ok(())
    }

    /// Rule R4.
    pub fn trim(&mut self, to: u32) {
        let by = distance(self.floor, to);
        if by <= 0 {
            return;
        }
        let by = by as u32;
        self.floor = to;
        self.entries.retain(|entry| entry.1 > by);
        for entry in &mut self.entries {
            *entry = (entry.0.saturating_sub(by), entry.1 - by);
        }
        if let Some(Buffer { bytes, .. }) = &mut self.buffer {
            bytes.drop_front(by as usize, self.entries.is_empty());
        }
    }

    /// Rule R6: keeps bytes whose first has this sequence number. Returns what was in its way.
    pub fn hold(&mut self, at: u32, bytes: &[u8]) -> Result<(), DropReason> {
        if self.buffer.is_none() {
            return Ok(());
        }
        let at = distance(self.floor, at);
        let end = at + bytes.len() as i64;
        let (left, right) = (at.max(0), end.min(i64::from(self.room())));
        let result = if right < end { Err(DropReason::NoRoom) } else { Ok(()) };
        if left >= right {
            return result;
        }
        let new = &bytes[(left - at) as usize..(right - at) as usize];
        let (left, right) = (left as u32, right as u32);
        let mut before: Vec<(u32, u32)> =
            self.entries.iter().filter(|entry| entry.0 < right && left < entry.1).copied().collect();
        self.insert(left, right)?;
        let Some(Buffer { bytes, .. }) = &mut self.buffer else { return result };
        // A byte that was there already does not change.
        before.sort_unstable();
        let mut from = left;
        for (begin, end) in before.into_iter().chain([(right, right)]) {
            if from < begin {
                bytes.write(from as usize, &new[(from - left) as usize..(begin - left) as usize]);
            }
            from = from.max(end);
        }
        result
    }

    /// How many bytes stand from the floor to a sequence number, all of them held; `None` if some are not.
    pub fn held(&self, to: u32) -> Option<usize> {
        match distance(self.floor, to) {
            ..=0 => Some(0),
            length => {
                self.entries.iter().any(|entry| entry.0 == 0 && i64::from(entry.1) >= length).then_some(length as usize)
            }
        }
    }

    /// The first bytes from the floor on.
    pub fn front(&mut self, length: usize) -> &[u8] {
        self.buffer.as_mut().map_or(&[], |buffer| buffer.bytes.front(length))
    }

    /// Rule R7: the first bytes were delivered.
    pub fn delivered(&mut self, length: usize) {
        self.trim(self.floor.wrapping_add(length as u32));
        if let Some(buffer) = &mut self.buffer {
            buffer.unread += length as u32;
        }
    }

    /// How many bytes there may be behind the floor.
    pub fn room(&self) -> u32 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.size.saturating_sub(buffer.unread))
    }

    /// The application has read so many of the bytes delivered, or as many as there are. Returns how many.
    pub fn read(&mut self, length: usize) -> u32 {
        let Some(buffer) = &mut self.buffer else { return 0 };
        let read = buffer.unread.min(u32::try_from(length).unwrap_or(u32::MAX));
        buffer.unread -= read;
        read
    }

    /// Rule R5.
    pub fn query(&self, what: RangesQuery, argument: i64) -> i64 {
        let place = |of: fn(&(u32, u32)) -> u32| {
            let entry = usize::try_from(argument).ok().and_then(|index| self.entries.get(index));
            self.number(entry.map_or(0, of))
        };
        let at = distance(self.floor, argument as u32);
        let around = |at: i64| self.entries.iter().find(|entry| (entry.0.into()..entry.1.into()).contains(&at));
        let top = || self.entries.iter().map(|entry| entry.1).max().unwrap_or(0);
        match what {
            RangesQuery::Floor => self.floor.into(),
            RangesQuery::Top => self.number(top()),
            RangesQuery::Count => self.entries.len() as i64,
            RangesQuery::Bytes => self.entries.iter().map(|entry| i64::from(entry.1 - entry.0)).sum(),
            RangesQuery::Has => i64::from(around(at).is_some()),
            RangesQuery::After => self.number(around(at.max(0)).map_or(at.max(0) as u32, |entry| entry.1)),
            RangesQuery::Next => {
                let behind = self.entries.iter().filter(|entry| i64::from(entry.1) > at);
                let first = behind.map(|entry| at.max(entry.0.into())).min();
                self.number(first.map_or_else(top, |first| first as u32))
            }
            RangesQuery::Left => place(|entry| entry.0),
            RangesQuery::Right => place(|entry| entry.1),
        }
    }

    fn number(&self, behind_floor: u32) -> i64 {
        self.floor.wrapping_add(behind_floor).into()
    }

    /// The state, without bytes.
    pub(crate) fn state(&self) -> RangesState {
        RangesState { floor: self.floor, entries: self.entries.clone() }
    }

    /// Bytes delivered and not read.
    pub(crate) fn unread(&self) -> u32 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.unread)
    }

    /// All bytes held, range by range in order.
    pub(crate) fn held_bytes(&self) -> Vec<u8> {
        let mut entries = self.entries.clone();
        entries.sort_unstable();
        let mut held = Vec::new();
        for (left, right) in entries {
            if let Some(buffer) = &self.buffer {
                buffer.bytes.read(left as usize..right as usize, &mut held);
            }
        }
        held
    }

    /// As they were: the bytes of all ranges in order, and what the application has not read. Nothing of it has to be true.
    /// `None` if there can be no such ranges.
    pub(crate) fn restored(mut self, state: &RangesState, held: &[u8], unread: u32) -> Option<Ranges> {
        let RangesState { floor, entries } = state;
        self.floor = *floor;
        self.entries.clone_from(entries);
        let mut sorted = entries.clone();
        sorted.sort_unstable();
        let apart = sorted.is_sorted_by(|one, other| one.1 < other.0);
        let whole = sorted.iter().all(|entry| entry.0 < entry.1 && entry.1 < 1 << 31);
        let all: u64 = sorted.iter().map(|entry| u64::from(entry.1.saturating_sub(entry.0))).sum();
        if !apart || !whole || entries.len() > self.most {
            return None;
        }
        let end = sorted.last().map_or(0, |entry| entry.1);
        match &mut self.buffer {
            None if held.is_empty() && unread == 0 => {}
            Some(buffer) if unread <= buffer.size && end <= buffer.size - unread && all == held.len() as u64 => {
                buffer.unread = unread;
                let mut rest = held;
                for (left, right) in sorted {
                    let (bytes, behind) = rest.split_at((right - left) as usize);
                    buffer.bytes.write(left as usize, bytes);
                    rest = behind;
                }
            }
            _ => return None,
        }
        Some(self)
    }
}

/// Equal if they hold the same; where in memory does not matter.
impl PartialEq for Ranges {
    fn eq(&self, other: &Ranges) -> bool {
        let known = |ranges: &Ranges| (ranges.floor, ranges.most, ranges.room(), ranges.unread(), ranges.held_bytes());
        self.entries == other.entries && known(self) == known(other)
    }
}

impl Eq for Ranges {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Each sequence number by itself, behind the floor.
    #[derive(Default, Debug)]
    struct Model {
        bytes: BTreeMap<i64, u8>,
        /// The ranges, the one changed last first.
        recent: Vec<(i64, i64)>,
        unread: i64,
    }

    impl Model {
        fn runs(&self) -> Vec<(i64, i64)> {
            let mut runs: Vec<(i64, i64)> = Vec::new();
            for &place in self.bytes.keys() {
                match runs.last_mut() {
                    Some(last) if last.1 == place => last.1 += 1,
                    _ => runs.push((place, place + 1)),
                }
            }
            runs
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Hold(i64, Vec<u8>),
        Trim(i64),
        Deliver(i64),
        Read(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (-20..120_i64, prop::collection::vec(any::<u8>(), 0..12)).prop_map(|(at, bytes)| Step::Hold(at, bytes)),
            1 => (-3..20_i64).prop_map(Step::Trim),
            2 => (-3..20_i64).prop_map(Step::Deliver),
            1 => (0..30_u32).prop_map(Step::Read),
        ];
        prop::collection::vec(step, 0..60)
    }

    const SIZE: i64 = 90;
    const MOST: usize = 5;

    proptest! {
        /// Against every byte by itself: what is held, what it is, how the ranges lie, and what is refused.
        #[test]
        fn a_buffer_is_what_each_byte_is(start in any::<u32>(), steps in steps()) {
            let mut ranges = Ranges::new(MOST as u32, Some(SIZE as u32));
            ranges.begin(start);
            let (mut model, mut floor) = (Model::default(), start);
            for step in steps {
                match step {
                    Step::Hold(at, bytes) => {
                        let end = at + bytes.len() as i64;
                        let limit = SIZE - model.unread;
                        let kept: Vec<(i64, u8)> =
                            (at..end).zip(bytes.iter().copied()).filter(|(place, _)| (0..limit).contains(place)).collect();
                        let mut next = Model { bytes: model.bytes.clone(), ..Model::default() };
                        for (place, byte) in &kept {
                            next.bytes.entry(*place).or_insert(*byte);
                        }
                        let full = next.runs().len() > MOST;
                        let expected = match (kept.is_empty(), full) {
                            (false, true) => Err(DropReason::RangesFull),
                            _ if end > limit => Err(DropReason::NoRoom),
                            _ => Ok(()),
                        };
                        prop_assert_eq!(ranges.hold(floor.wrapping_add(at as u32), &bytes), expected);
                        if !kept.is_empty() && !full {
                            model.bytes = next.bytes;
                            let touched = kept.first().map(|(place, _)| *place).into_iter();
                            let places: Vec<i64> = touched.chain(model.recent.iter().map(|run| run.0)).collect();
                            model.recent.clear();
                            for place in places {
                                let run = model.runs().into_iter().find(|run| (run.0..run.1).contains(&place));
                                model.recent.extend(run.filter(|run| !model.recent.contains(run)));
                            }
                        }
                    }
                    Step::Trim(to) => {
                        ranges.trim(floor.wrapping_add(to as u32));
                        go_on(&mut model, &mut floor, to.max(0));
                    }
                    Step::Deliver(to) => {
                        let whole = (0..to).all(|place| model.bytes.contains_key(&place));
                        let held = ranges.held(floor.wrapping_add(to as u32));
                        prop_assert_eq!(held, whole.then_some(to.max(0) as usize));
                        if let Some(length) = held {
                            let expected: Vec<u8> = (0..to).map(|place| model.bytes[&place]).collect();
                            prop_assert_eq!(ranges.front(length), &expected[..]);
                            ranges.delivered(length);
                            go_on(&mut model, &mut floor, to.max(0));
                            model.unread += to.max(0);
                        }
                    }
                    Step::Read(count) => {
                        model.unread -= i64::from(ranges.read(count as usize));
                    }
                }
                check(&ranges, &model, floor)?;
                let again = Ranges::new(MOST as u32, Some(SIZE as u32));
                let again = again.restored(&ranges.state(), &ranges.held_bytes(), model.unread as u32);
                prop_assert_eq!(again.map(|again| (again.held_bytes(), again.entries)), Some((ranges.held_bytes(), ranges.entries.clone())));
            }
        }
    }

    fn go_on(model: &mut Model, floor: &mut u32, by: i64) {
        *floor = floor.wrapping_add(by as u32);
        model.bytes =
            model.bytes.iter().filter(|(place, _)| **place >= by).map(|(place, byte)| (place - by, *byte)).collect();
        model.recent.retain(|run| run.1 > by);
        for run in &mut model.recent {
            *run = ((run.0 - by).max(0), run.1 - by);
        }
    }

    fn check(ranges: &Ranges, model: &Model, floor: u32) -> Result<(), TestCaseError> {
        use RangesQuery::*;
        let number = |behind: i64| i64::from(floor.wrapping_add(behind as u32));
        let runs = model.runs();
        prop_assert_eq!(ranges.held_bytes(), model.bytes.values().copied().collect::<Vec<u8>>());
        prop_assert_eq!(ranges.query(Floor, 0), number(0));
        prop_assert_eq!(ranges.query(Count, 0), runs.len() as i64);
        prop_assert_eq!(ranges.query(Bytes, 0), model.bytes.len() as i64);
        let top = runs.last().map_or(0, |run| run.1);
        prop_assert_eq!(ranges.query(Top, 0), number(top));
        for at in [-5, 0, 1, 7, 40, 99] {
            let from = at.max(0);
            prop_assert_eq!(ranges.query(Has, number(at)), i64::from(model.bytes.contains_key(&at)));
            let after = (from..).find(|place| !model.bytes.contains_key(place)).unwrap_or(0);
            prop_assert_eq!(ranges.query(After, number(at)), number(after));
            let next = model.bytes.range(from..).next().map_or(top, |(place, _)| *place);
            prop_assert_eq!(ranges.query(Next, number(at)), number(next));
        }
        for (index, run) in model.recent.iter().enumerate() {
            let found = (ranges.query(Left, index as i64), ranges.query(Right, index as i64));
            prop_assert_eq!(found, (number(run.0), number(run.1)));
        }
        prop_assert_eq!(ranges.query(Left, runs.len() as i64), number(0));
        prop_assert_eq!(ranges.query(Right, -1), number(0));
        Ok(())
    }

    #[test]
    fn positions_are_modulo_2_to_the_32() {
        let mut ranges = Ranges::new(4, None);
        ranges.begin(0xffff_fff0);
        assert_eq!(ranges.add(0xffff_ffff, 5), Ok(()));
        assert_eq!((ranges.query(RangesQuery::Left, 0), ranges.query(RangesQuery::Right, 0)), (0xffff_ffff, 5));
        // Half of the circle away counts as below the floor.
        assert_eq!(ranges.add(0x7fff_fff0, 0x7fff_fff1), Ok(()));
        assert_eq!(ranges.query(RangesQuery::Count, 0), 1);
        ranges.trim(2);
        assert_eq!((ranges.query(RangesQuery::Left, 0), ranges.query(RangesQuery::Bytes, 0)), (2, 3));
        assert_eq!(ranges.hold(2, b"x"), Ok(()), "there is no buffer");
    }
}
