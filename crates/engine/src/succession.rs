//! Another image in place of the running one, or the same with other initial values (semantics, rules D6 and D4).

use crate::parameter::{Parameter, apply};
use crate::program::Program;
use crate::{EngineError, Executor, Runtime};
use std::any::Any;
use std::sync::Arc;
use weftwire_core::control::{Done, Preparation};
use weftwire_core::{Change, ControlError};
use weftwire_image::{Feature, Register, VerifiedImage};

/// An image that is ready to run.
#[derive(Debug)]
pub struct Ready<E> {
    pub(crate) program: Arc<Program>,
    pub(crate) executor: E,
}

impl<E: Executor> Ready<E> {
    /// Makes an image ready.
    ///
    /// # Errors
    /// [`EngineError::Lacks`], and what the executor says.
    pub fn new(image: VerifiedImage) -> Result<Ready<E>, EngineError> {
        let lacking = |feature: &Feature| E::LACKS.contains(feature);
        let features: Vec<Feature> = image.features.iter().copied().filter(lacking).collect();
        if !features.is_empty() {
            return Err(EngineError::Lacks { engine: E::NAME, features });
        }
        Ready::of_program(Arc::new(Program::new(image)))
    }

    /// An image that was made ready before, once more.
    pub(crate) fn of_program(program: Arc<Program>) -> Result<Ready<E>, EngineError> {
        Ok(Ready { executor: E::load(&program)?, program })
    }

    /// The change to this image. With it goes what is ready, so that the function need not make it while packets wait.
    pub fn into_change(self) -> (Change, Box<dyn Any + Send>) {
        let document = String::from_utf8_lossy(&self.program.image.to_json()).into_owned();
        (Change::Image { document }, Box::new(self))
    }
}

/// An image with other initial values, that is ready to run in place of `base`.
pub(crate) struct Changed<E> {
    base: Arc<Program>,
    ready: Ready<E>,
}

impl<E: Executor> Changed<E> {
    fn new(base: Arc<Program>, parameters: &[Parameter]) -> Result<Changed<E>, ControlError> {
        let image = apply(base.image.clone(), parameters);
        let image = image.map_err(|error| ControlError::Unfit(error.to_string()))?;
        let ready = Ready::of_program(Arc::new(Program::new(image)));
        Ok(Changed { base, ready: ready.map_err(|error| ControlError::Unfit(error.to_string()))? })
    }
}

impl<E: Executor> Runtime<E> {
    /// Makes other initial values of the image that runs ready.
    pub(crate) fn parameters_preparation(&self, parameters: Vec<Parameter>) -> Preparation {
        let base = self.program.clone();
        Box::new(move || Ok(Box::new(Changed::<E>::new(base, &parameters)?)))
    }

    /// Goes over to another image, of whatever a document tells if nothing is ready. What it replaces comes back.
    pub(crate) fn set_image(
        &mut self,
        ready: Option<Box<Ready<E>>>,
        document: &str,
    ) -> Result<(Done, Box<dyn Any + Send>), ControlError> {
        let mut ready = match ready {
            Some(ready) => ready,
            None => {
                let image = VerifiedImage::from_json(document.as_bytes());
                let image = image.map_err(|error| ControlError::Unfit(error.to_string()))?;
                Box::new(Ready::new(image).map_err(|error| ControlError::Unfit(error.to_string()))?)
            }
        };
        if let Some(part) = self.program.image.unlike(&ready.program.image) {
            return Err(ControlError::Unfit(format!(
                "live flows can't go on in the image `{}`: its {part} differ from those of the image that runs; start it \
                 as a function of its own",
                ready.program.image.name
            )));
        }
        let (before, next) = (&self.program.image.registers, &ready.program.image.registers);
        if !before.iter().map(|register| register.scratch).eq(next.iter().map(|register| register.scratch)) {
            self.table.each(|instance| instance.registers = moved(&instance.registers, before, next));
        }
        self.samples.rename(&ready.program.image.debug.samples);
        self.shared.counts.rows = vec![0; ready.program.image.rows.len()];
        self.shared.rounds = vec![0; ready.program.image.repeats.len()];
        let tables = std::mem::replace(&mut self.shared.tables, ready.program.image.tables.clone());
        self.exchange(&mut ready);
        Ok((Done::Done, Box::new((tables, ready))))
    }

    /// Goes over to the same image with other initial values (rule D4). What it replaces comes back. What was made ready for an image that
    /// has been replaced since is made anew.
    pub(crate) fn set_parameters(
        &mut self,
        changed: Option<Box<Changed<E>>>,
        parameters: &[Parameter],
    ) -> Result<(Done, Box<dyn Any + Send>), ControlError> {
        let mut changed = match changed.filter(|changed| Arc::ptr_eq(&changed.base, &self.program)) {
            Some(changed) => changed,
            None => Box::new(Changed::new(self.program.clone(), parameters)?),
        };
        self.exchange(&mut changed.ready);
        Ok((Done::Done, changed))
    }

    /// Exchanges what is ready for what runs.
    fn exchange(&mut self, ready: &mut Ready<E>) {
        std::mem::swap(&mut self.program, &mut ready.program);
        std::mem::swap(&mut self.executor, &mut ready.executor);
    }
}

/// An instance's registers where others are scratch. Those are written before they are read.
fn moved(values: &[i64], before: &[Register], next: &[Register]) -> Vec<i64> {
    let mut stored = values.iter().zip(before).filter(|(_, register)| !register.scratch).map(|(value, _)| *value);
    next.iter().map(|register| if register.scratch { 0 } else { stored.next().unwrap_or(register.initial) }).collect()
}
