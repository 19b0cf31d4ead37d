//! `weft graph`: a machine's state diagram.

use crate::{load, output};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weftwire_explain::states;

/// Draw a machine's states and what leads from one to another.
#[derive(Args)]
pub struct Arguments {
    /// An image (.json) or a source (.xl, .xtra)
    image: PathBuf,
    /// A finished picture, or the language of Graphviz or Mermaid
    #[arg(long, value_enum, default_value = "svg")]
    format: Format,
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

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let image = arguments.includes.catalog()?.image(&arguments.image)?;
    let graph = states(&image);
    let text = match arguments.format {
        Format::Svg => graph.svg(&image.name),
        Format::Dot => graph.dot(&image.name),
        Format::Mermaid => graph.mermaid(),
    };
    output::text(arguments.out.as_deref(), &text)
}
