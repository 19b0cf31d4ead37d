//! Engines: they run machine images. `docs/semantics.md` says what every engine does; the code names its rules.
//!
//! - [`make`] gives an engine by name, as a [`Function`] for any platform;
//! - [`Runtime`] is what all of them are: flow table, timers, samples and calls, around an [`Executor`] of rows;
//! - [`ReferenceEngine`] is the one whose rows run as the page tells them.
#![forbid(unsafe_code)]

mod axis;
mod chance;
mod control;
mod counts;
pub mod executor;
mod flow_table;
mod inspect;
mod instance;
mod key_sets;
mod limits;
mod lines;
mod operations;
mod packets;
pub mod parameter;
mod pending;
mod predecessors;
mod program;
mod reference;
mod run;
mod runtime;
mod samples;
pub mod state;
mod stores;
mod succession;
mod text;
mod trace;
mod turns;
pub mod value;

pub use chance::Chance;
pub use counts::Counts;
pub use executor::Executor;
pub use limits::Limits;
pub use operations::ZERO_TIME_DEPTH;
pub use reference::{Reference, ReferenceEngine};
pub use runtime::Runtime;
pub use succession::Ready;

use std::any::Any;
use weftwire_core::{Change, Function, Ports};
use weftwire_image::{Feature, VerifiedImage};

/// Names of the engines that [`make`] knows.
pub const ENGINES: [&str; 1] = [Reference::NAME];

/// What a platform chooses for an engine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EngineOptions {
    /// Where all random numbers come from.
    pub seed: u64,
    /// Secret key of `hash`; `None`: made from the seed.
    pub hash_key: Option<[u8; 16]>,
    /// What it has room for.
    pub limits: Limits,
    /// Whether changes, calls and frames of one instant keep the time that they are told, in whatever order they come: to repeat
    /// runs of versions that left rule E1 to platforms.
    pub order_left_to_platform: bool,
}

/// Why there is no engine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine has no means for what the image uses.
    #[error("the engine `{engine}` lacks what the image uses: {}", list(.features))]
    Lacks {
        /// Its name.
        engine: &'static str,
        /// What it lacks.
        features: Vec<Feature>,
    },
    /// No engine has this name.
    #[error("there is no engine `{name}`; there are: {}", ENGINES.join(", "))]
    UnknownEngine {
        /// What was asked for.
        name: String,
    },
}

fn list(features: &[Feature]) -> String {
    features.iter().map(|feature| format!("`{feature}`")).collect::<Vec<String>>().join(", ")
}

/// An engine by name, loaded with an image.
///
/// # Errors
/// See [`EngineError`].
pub fn make(
    name: &str,
    image: VerifiedImage,
    ports: Ports,
    options: EngineOptions,
) -> Result<Box<dyn Function>, EngineError> {
    match name {
        Reference::NAME => Ok(Box::new(ReferenceEngine::new(image, ports, options)?)),
        _ => Err(EngineError::UnknownEngine { name: name.into() }),
    }
}

/// The change of a running engine of this name to another image, and what makes it quick: see [`Ready`]. To be called off the
/// data path.
///
/// # Errors
/// See [`EngineError`].
pub fn change_to(name: &str, image: VerifiedImage) -> Result<(Change, Box<dyn Any + Send>), EngineError> {
    match name {
        Reference::NAME => Ok(Ready::<Reference>::new(image)?.into_change()),
        _ => Err(EngineError::UnknownEngine { name: name.into() }),
    }
}
