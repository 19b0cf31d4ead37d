//! `weft graph`: a machine's state diagram.

use crate::{load, output};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weftwire_explain::{phases, states};

/// Draw a machine's states and what leads from one to another.
#[derive(Args)]
pub struct Arguments {
    /// An image (.json) or a source (.xl, .xtra)
    image: PathBuf,
    /// A finished picture, or the language of Graphviz or Mermaid
    #[arg(long, value_enum, default_value = "svg")]
    format: Format,
    /// Instead of the machine's states, the phases that a module of the source keeps in a register of constants, e.g. bbr.mode
    #[arg(long, value_name = "MODULE.REGISTER", value_parser = parse_register)]
    phases: Option<(String, String)>,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    includes: load::Includes,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Svg,
    Dot,
    Mermaid,
}

fn parse_register(text: &str) -> Result<(String, String), &'static str> {
    let (module, register) = text.split_once('.').ok_or("write MODULE.REGISTER, e.g. bbr.mode")?;
    Ok((module.to_owned(), register.to_owned()))
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let catalog = arguments.includes.catalog()?;
    let image = catalog.image(&arguments.image)?;
    let (graph, name) = match &arguments.phases {
        None => (states(&image), &image.name),
        Some((module, register)) => {
            let found = catalog.phases(&arguments.image, module, register);
            let file = arguments.image.display();
            let missing =
                || format!("{file} is no source of XL with a module `{module}` that sets `{register}` to constants");
            (phases(found.with_context(missing)?), module)
        }
    };
    let text = match arguments.format {
        Format::Svg => graph.svg(name),
        Format::Dot => graph.dot(name),
        Format::Mermaid => graph.mermaid(),
    };
    output::text(arguments.out.as_deref(), &text)
}
