//! State: functions over the messages of tumbling windows.

use crate::rules::Function;

/// A function's state: the window it is in and what it has seen there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    number: u64,
    count: u64,
    sum: u64,
    least: u64,
    greatest: u64,
}

impl Window {
    /// Words of [`Window::to_words`].
    pub const WORDS: usize = 5;

    /// All that it holds.
    pub fn to_words(&self) -> [u64; Window::WORDS] {
        [self.number, self.count, self.sum, self.least, self.greatest]
    }

    /// The window that holds this.
    pub fn from_words([number, count, sum, least, greatest]: [u64; Window::WORDS]) -> Window {
        Window { number, count, sum, least, greatest }
    }

    /// Takes a value in, at a time in nanoseconds. Windows start at multiples of their length; the first message of a
    /// new one forgets the old one.
    pub fn update(&mut self, now_ns: u64, window_ns: u64, value: u64) {
        let number = now_ns / window_ns.max(1);
        if number != self.number || self.count == 0 {
            *self = Window { number, least: u64::MAX, ..Window::default() };
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(value);
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// The function's value over the window so far.
    pub fn value(&self, function: Function) -> u128 {
        let value = match function {
            Function::Count => self.count,
            Function::Sum => self.sum,
            Function::Avg => self.sum.checked_div(self.count).unwrap_or(0),
            Function::Min => self.least,
            Function::Max => self.greatest,
        };
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_tumble_at_multiples_of_their_length() {
        let mut window = Window::default();
        for (now, value) in [(100, 4), (150, 8), (199, 3)] {
            window.update(now, 100, value);
        }
        let all = [Function::Count, Function::Sum, Function::Avg, Function::Min, Function::Max];
        assert_eq!(all.map(|function| window.value(function)), [3, 15, 5, 3, 8]);
        window.update(200, 100, 7);
        assert_eq!(all.map(|function| window.value(function)), [1, 7, 7, 7, 7]);
        // A clock that starts over starts a window, too.
        window.update(0, 100, u64::MAX);
        window.update(0, 100, 1);
        assert_eq!(window.value(Function::Sum), u64::MAX.into());
    }
}
