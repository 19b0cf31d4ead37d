//! Things of one kind that come and go, named by small numbers.

/// Names nothing.
pub const NONE: u32 = u32::MAX;

/// What a pool can hold.
pub trait Pooled {
    /// A free one without a next.
    fn new() -> Self;
    /// The next free one, of one that is free.
    fn link(&self) -> u32;
    /// Makes it a free one, and says which is the next; whether it may be used again.
    fn set_link(&mut self, next: u32) -> bool;
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

    /// Adds whatever is there, for the caller to fill: the one that was freed last, or else the least number that was
    /// never given.
    #[inline]
    pub fn add(&mut self) -> (u32, &mut T) {
        let index = if self.free == NONE { self.make() } else { self.free };
        let thing = &mut self.segments[index as usize / LENGTH][index as usize % LENGTH];
        self.free = thing.link();
        (index, thing)
    }

    /// Frees a thing.
    #[inline]
    pub fn free(&mut self, index: u32) {
        let thing = &mut self.segments[index as usize / LENGTH][index as usize % LENGTH];
        if thing.set_link(self.free) {
            self.free = index;
        }
    }

    /// Frees a thing if `take` takes something out of it, and gives that; `None` too for a number that was never given.
    #[inline]
    pub fn free_if<R>(&mut self, index: u32, take: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let thing = self.segments.get_mut(index as usize / LENGTH)?;
        let thing = &mut thing[index as usize % LENGTH];
        let taken = take(thing)?;
        if thing.set_link(self.free) {
            self.free = index;
        }
        Some(taken)
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

    /// One more thing, free, at the end.
    #[cold]
    fn make(&mut self) -> u32 {
        let index = self.made;
        if index as usize / LENGTH == self.segments.len() {
            if index as usize / LENGTH == self.segments.capacity() {
                // Rarely, and while it is short, as the whole list is copied; memory that is not written to costs nothing.
                self.segments.reserve_exact(63 * self.segments.len() + 8);
            }
            let segment: Vec<T> = std::iter::repeat_with(T::new).take(LENGTH).collect();
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

        fn set_link(&mut self, next: u32) -> bool {
            self[0] = next;
            self[1] != 13
        }
    }

    #[test]
    fn numbers_are_used_again() {
        let mut pool: Pool<[u32; 4], 64> = Pool::new();
        let add = |pool: &mut Pool<[u32; 4], 64>, thing| {
            let (index, place) = pool.add();
            *place = thing;
            index
        };
        let numbers: Vec<u32> = (0..5_000).map(|it| add(&mut pool, [it; 4])).collect();
        assert!(numbers.iter().copied().eq(0..5_000));
        assert!((0..5_000).all(|it| pool.at(it)[3] == it));
        // Thirteen may not be used again.
        [17, 13, 4_000].into_iter().for_each(|it| pool.free(it));
        let again = [(); 3].map(|()| add(&mut pool, [1; 4]));
        assert_eq!(again, [4_000, 17, 5_000]);
        assert_eq!(pool.used(), 5_001);
        assert_eq!(pool.get(100_000), None);
    }
}
