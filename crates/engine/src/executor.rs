//! What makes one engine another: how it runs the rows of one event. All the rest is the [`crate::Runtime`]'s.
//!
//! An [`Executor`] finds the row of an event in a [`Program`], reads operands and calls the operations of [`Run`].

pub use crate::program::Program;
pub use crate::run::{Payload, Run};
pub use crate::stores::Tests;

use crate::EngineError;
use std::fmt::Debug;
use weftwire_image::{Event, Feature};

/// Runs rows.
pub trait Executor: Debug + Send + Sized + 'static {
    /// The engine's name, as [`crate::make`] and errors know it.
    const NAME: &'static str;

    /// What it has no means for: an image that uses any of it is refused when it is loaded.
    const LACKS: &'static [Feature] = &[];

    /// Makes an image ready.
    ///
    /// # Errors
    /// [`EngineError`], if the image is too large for it.
    fn load(program: &Program) -> Result<Self, EngineError>;

    /// Runs what `event` means in the instance's state: the preparation, then the operations of the first row whose
    /// conditions all hold (rule E6). Returns the number of that row.
    fn run_row(&self, run: &mut Run<'_>, event: Event) -> Option<usize>;
}
