//! What is done of a study.

use super::StudyError;
use std::ops::ControlFlow;

/// Packets that are done, of all.
pub struct Work<'a> {
    done: usize,
    all: usize,
    watch: &'a mut dyn FnMut(f64) -> ControlFlow<()>,
}

impl<'a> Work<'a> {
    /// So many packets are to do.
    pub fn new(all: usize, watch: &'a mut dyn FnMut(f64) -> ControlFlow<()>) -> Work<'a> {
        Work { done: 0, all, watch }
    }

    /// Of the packets at hand so many are behind.
    pub fn tell(&mut self, packets: usize) -> ControlFlow<()> {
        let done = (self.done + packets) as f64;
        (self.watch)((done / self.all.max(1) as f64).min(1.0))
    }

    /// All packets at hand are behind.
    ///
    /// # Errors
    /// [`StudyError::Interrupted`].
    pub fn finish(&mut self, packets: usize) -> Result<(), StudyError> {
        let told = self.tell(packets);
        self.done += packets;
        if told.is_break() { Err(StudyError::Interrupted) } else { Ok(()) }
    }
}
