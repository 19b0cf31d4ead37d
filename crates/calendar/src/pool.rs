//! Things of one kind that come and go, named by small numbers.

/// Names nothing.
pub const NONE: u32 = u32::MAX;

/// What a pool can hold.
pub trait Pooled {
    /// A new one.
    fn new() -> Self;
    /// The next free one, of one that is free.
    fn link(&self) -> u32;
    /// Makes it a free one, and says which is the next.
    fn set_link(&mut self, next: u32);
}

/// The things, in segments of `LENGTH` that stay where they are: a growing `Vec` would move everything now and then.
/// A segment should be so short that to add one is no stall.
#[derive(Clone, Debug)]
pub struct Pool<T, const LENGTH: usize> {
    segments: Vec<Box<[T; LENGTH]>>,
    /// The first free one.
    free: u32,
    /// How many there are, with the free ones.
    made: u32,
}

impl<T: Pooled, const LENGTH: usize> Pool<T, LENGTH> {
    pub const fn new() -> Pool<T, LENGTH> {
        assert!(LENGTH.is_power_of_two());
        Pool { segments: Vec::new(), free: NONE, made: 0 }
    }

    /// Adds a thing; the least number that is free if none was ever freed, else the one that was freed last.
    #[inline]
    pub fn add(&mut self, thing: T) -> u32 {
        let index = self.reserve();
        *self.at_mut(index) = thing;
        index
    }

    /// Adds whatever is there: the caller is to replace it.
    #[inline]
    pub fn reserve(&mut self) -> u32 {
        let index = if self.free == NONE { self.make() } else { self.free };
        self.free = self.at(index).link();
        index
    }

    /// Frees a thing.
    #[inline]
    pub fn free(&mut self, index: u32) {
        let next = self.free;
        self.at_mut(index).set_link(next);
        self.free = index;
    }

    #[inline]
    pub fn at(&self, index: u32) -> &T {
        let index = index as usize;
        &self.segments[index / LENGTH][index % LENGTH]
    }

    #[inline]
    pub fn at_mut(&mut self, index: u32) -> &mut T {
        let index = index as usize;
        &mut self.segments[index / LENGTH][index % LENGTH]
    }

    /// `None` for a number that was never given.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let index = index as usize;
        Some(&self.segments.get(index / LENGTH)?[index % LENGTH])
    }

    /// How many there are, without the free ones.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        let some = |index: u32| (index != NONE).then_some(index);
        let free = std::iter::successors(some(self.free), |index| some(self.at(*index).link()));
        self.made as usize - free.count()
    }

    /// One more, linked to nothing.
    #[cold]
    fn make(&mut self) -> u32 {
        let index = self.made;
        if index as usize / LENGTH == self.segments.len() {
            let unlinked = || {
                let mut thing = T::new();
                thing.set_link(NONE);
                thing
            };
            let segment: Vec<T> = std::iter::repeat_with(unlinked).take(LENGTH).collect();
            self.segments.extend(segment.try_into().ok());
        }
        self.made += 1;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pooled for [u32; 4] {
        fn new() -> [u32; 4] {
            [NONE; 4]
        }

        fn link(&self) -> u32 {
            self[0]
        }

        fn set_link(&mut self, next: u32) {
            self[0] = next;
        }
    }

    #[test]
    fn numbers_are_used_again() {
        let mut pool: Pool<[u32; 4], 64> = Pool::new();
        let numbers: Vec<u32> = (0..5_000).map(|it| pool.add([it; 4])).collect();
        assert!(numbers.iter().copied().eq(0..5_000));
        assert!((0..5_000).all(|it| pool.at(it)[3] == it));
        pool.free(17);
        pool.free(4_000);
        assert_eq!(pool.used(), 4_998);
        assert_eq!([pool.add([1; 4]), pool.add([2; 4]), pool.add([3; 4])], [4_000, 17, 5_000]);
        assert_eq!(pool.get(100_000), None);
    }
}
