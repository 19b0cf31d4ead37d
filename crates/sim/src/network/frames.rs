//! The frames under way, in buffers that are used again and again.

/// Most frames under way at once; a storm in a loop of switches ends here.
pub const LIMIT: usize = 4 << 20;
/// Buffers that have grown beyond this are not kept.
const KEPT: usize = 2048;

/// Number of a frame's buffer.
pub type Slot = u32;

/// The frames under way.
#[derive(Default)]
pub struct Frames {
    buffers: Vec<Vec<u8>>,
    free: Vec<Slot>,
}

impl Frames {
    /// An empty frame; `None` if there are too many.
    pub fn take(&mut self) -> Option<Slot> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.buffers.len() == LIMIT {
            return None;
        }
        self.buffers.push(Vec::new());
        Some((self.buffers.len() - 1) as Slot)
    }

    /// A frame with these bytes; `None` if there are too many.
    pub fn copy(&mut self, bytes: &[u8]) -> Option<Slot> {
        let slot = self.take()?;
        self.get_mut(slot).extend_from_slice(bytes);
        Some(slot)
    }

    /// A second frame like this one.
    pub fn duplicate(&mut self, slot: Slot) -> Option<Slot> {
        let copy = self.take()?;
        let bytes = std::mem::take(self.get_mut(slot));
        self.get_mut(copy).extend_from_slice(&bytes);
        *self.get_mut(slot) = bytes;
        Some(copy)
    }

    /// A frame's bytes.
    pub fn get(&self, slot: Slot) -> &[u8] {
        &self.buffers[slot as usize]
    }

    /// A frame's buffer.
    pub fn get_mut(&mut self, slot: Slot) -> &mut Vec<u8> {
        &mut self.buffers[slot as usize]
    }

    /// The frame is gone: its buffer is free.
    pub fn release(&mut self, slot: Slot) {
        let buffer = &mut self.buffers[slot as usize];
        buffer.clear();
        if buffer.capacity() > KEPT {
            *buffer = Vec::new();
        }
        self.free.push(slot);
    }

    /// Frames under way; a copy made by a link shares its original's buffer.
    pub fn in_use(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let mut frames = Frames::default();
        let first = frames.copy(b"one").expect("room");
        let second = frames.duplicate(first).expect("room");
        assert_eq!((frames.get(first), frames.get(second), frames.in_use()), (&b"one"[..], &b"one"[..], 2));
        frames.release(first);
        assert_eq!(frames.take(), Some(first));
        assert!(frames.get(first).is_empty());
    }
}
