//! Bytes with holes, in pages: memory is taken only for pages that have some.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a page.
const PAGE: usize = 4_096;

type Page = Box<[u8; PAGE]>;

/// Bytes by how far behind the first one they are.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    pages: VecDeque<Option<Page>>,
    /// Where the first byte is in the first page.
    first: usize,
    /// A page that is not needed now.
    spare: Option<Page>,
    /// Bytes of several pages, side by side.
    joined: Vec<u8>,
}

impl Pages {
    /// There are no bytes.
    pub fn clear(&mut self) {
        self.first = 0;
        self.spare = self.spare.take().or(self.pages.drain(..).flatten().next());
        self.pages.clear();
    }

    /// Keeps no more than so many bytes of memory. There are no bytes.
    pub fn shrink_to(&mut self, kept: usize) {
        self.pages.shrink_to(kept / size_of::<Option<Page>>());
        self.joined.clear();
        self.joined.shrink_to(kept);
        self.spare = self.spare.take().filter(|_| kept >= PAGE);
    }

    /// Writes bytes from a place on.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        for (page, within, part) in pieces(self.first + at..self.first + at + bytes.len()) {
            if self.pages.len() <= page {
                self.pages.resize_with(page + 1, || None);
            }
            let spare = &mut self.spare;
            let page = self.pages[page].get_or_insert_with(|| spare.take().unwrap_or_else(|| Box::new([0; PAGE])));
            page[within].copy_from_slice(&bytes[part]);
        }
    }

    /// Appends the bytes of a range, which were written, to `out`.
    pub fn read(&self, range: Range<usize>, out: &mut Vec<u8>) {
        for (page, within, _) in pieces(self.first + range.start..self.first + range.end) {
            if let Some(Some(page)) = self.pages.get(page) {
                out.extend_from_slice(&page[within]);
            }
        }
    }

    /// The first bytes, which were written.
    pub fn front(&mut self, length: usize) -> &[u8] {
        let end = self.first + length;
        if end > PAGE {
            let mut joined = std::mem::take(&mut self.joined);
            joined.clear();
            self.read(0..length, &mut joined);
            self.joined = joined;
            return &self.joined;
        }
        match self.pages.front() {
            Some(Some(page)) => &page[self.first..end],
            _ => &[],
        }
    }

    /// Takes out the first bytes, and all that there are behind them if `all`.
    pub fn drop_front(&mut self, length: usize, all: bool) {
        if all {
            return self.clear();
        }
        self.first += length;
        let whole = (self.first / PAGE).min(self.pages.len());
        let dropped = self.pages.drain(..whole).flatten().next();
        self.spare = self.spare.take().or(dropped);
        self.first %= PAGE;
    }
}

/// The pages that a range of places lies in: each page's number, the range within it, and which of all the bytes those are.
fn pieces(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
    let start = range.start;
    let mut at = start;
    std::iter::from_fn(move || {
        let (page, within) = (at / PAGE, at % PAGE);
        let length = (PAGE - within).min(range.end - at);
        at += length;
        (length > 0).then(|| (page, within..within + length, at - length - start..at - start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(
            steps in proptest::collection::vec((0..30_000_usize, 1..9_000_usize, 0..5_000_usize), 1..40),
        ) {
            let mut pages = Pages::default();
            let mut model: Vec<Option<u8>> = Vec::new();
            for (number, (at, length, drop)) in steps.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..length).map(|byte| (byte * 7 + number) as u8).collect();
                pages.write(at, &bytes);
                model.resize(model.len().max(at + length), None);
                model[at..at + length].copy_from_slice(&bytes.iter().copied().map(Some).collect::<Vec<_>>());
                let held = model.iter().take_while(|byte| byte.is_some()).count();
                let front: Vec<u8> = model[..held].iter().flatten().copied().collect();
                prop_assert_eq!(pages.front(held), &front);
                let mut read = Vec::new();
                pages.read(at..at + length, &mut read);
                prop_assert_eq!(&read, &bytes);
                let drop = drop.min(model.len());
                model.drain(..drop);
                pages.drop_front(drop, model.is_empty());
            }
        }
    }

    #[test]
    fn a_byte_far_away_takes_a_page() {
        let mut pages = Pages::default();
        pages.write(4 << 20, &[1]);
        assert_eq!(pages.pages.iter().flatten().count(), 1);
    }
}
