//! `weft subs graph`: the decision diagram as a picture.

use super::Compiling;
use crate::load::catalog;
use crate::output;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weftwire_subscribe::graph;

/// Draw the decision diagram of rules.
#[derive(Args)]
pub struct Arguments {
    /// The rules
    rules: PathBuf,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    /// A finished picture, or the language of Graphviz
    #[arg(long, value_enum, default_value = "svg")]
    picture: Picture,
    #[command(flatten)]
    compiling: Compiling,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Picture {
    Svg,
    Dot,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let loaded = catalog().rules(std::slice::from_ref(&arguments.rules), &arguments.formats)?;
    let (compiler, _) = catalog().tables(&loaded, &arguments.compiling.begin())?;
    let title = arguments.rules.file_name().unwrap_or_default().to_string_lossy();
    let text = match arguments.picture {
        Picture::Svg => graph::svg(&compiler, &title)?,
        Picture::Dot => graph::dot(&compiler, &title)?,
    };
    output::text(arguments.out.as_deref(), &text)
}
