//! `weft subs replay`: a run of a switch again, from the recording of its inputs.

use super::{Compiling, run};
use crate::console::tell;
use crate::load::catalog;
use crate::recording::{self, Inputs, Keys};
use anyhow::Result;
use clap::Args;
use std::any::Any;
use std::cell::OnceCell;
use std::path::PathBuf;
use weftwire_core::{Change, Function, Ports};

/// Repeat a run from the recording that `weft subs run --record` has made of its inputs, rules that came meanwhile among them, and
/// see that the same comes out.
#[derive(Args)]
pub struct Arguments {
    /// The recording; its keys are beside it
    inputs: PathBuf,
    /// The rules that the run began with, in the same order
    #[arg(long, value_name = "FILE", required = true)]
    rules: Vec<PathBuf>,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    #[command(flatten)]
    compiling: Compiling,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let Arguments { inputs, rules, formats, compiling } = arguments;
    let switch = catalog().switch(rules, formats, &compiling.begin())?;
    let known = OnceCell::new();
    let start = |inputs: &Inputs, _: Keys| {
        let _ = known.set(inputs.ports().clone());
        Ok(Box::new(run::made(&switch, inputs.ports())?.0) as Box<dyn Function>)
    };
    recording::repeat(inputs, start, &mut |change| {
        let Change::Rules { text } = change else { return None };
        let renewed = || {
            let rules = catalog().switch_of_text("rules of the recording", text, formats, &compiling.begin())?;
            run::made(&rules, known.get().unwrap_or(&Ports::default()))
        };
        match renewed() {
            Ok((switch, _)) => Some(Box::new(switch) as Box<dyn Any + Send>),
            Err(error) => {
                tell!("{error:#}");
                None
            }
        }
    })
}
