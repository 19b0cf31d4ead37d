//! `weft explain`: a machine's rule table in words.

use crate::{load, output};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weftwire_draw::document;
use weftwire_explain::{Form, explain};
use weftwire_image::layout::StateLayout;
use weftwire_text::printable_lines;

/// Show what a machine does: its registers, and every row of its rule table in words.
#[derive(Args)]
pub struct Arguments {
    /// An image (.json) or a source (.xl, .xtra)
    image: PathBuf,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show instead where everything is in the state of a flow, as `weft flows snapshot` writes it
    #[arg(long, conflicts_with = "format")]
    layout: bool,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    includes: load::Includes,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Html,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let image = arguments.includes.catalog()?.image(&arguments.image)?;
    let text = match arguments.format {
        _ if arguments.layout => printable_lines(&StateLayout::of(&image).to_string()).into_owned(),
        Format::Text => printable_lines(&explain(&image, Form::Text)).into_owned(),
        Format::Markdown => explain(&image, Form::Markdown),
        Format::Html => {
            let body = format!("<section class=\"rules-part\">\n{}</section>\n", explain(&image, Form::Html));
            document(&format!("Machine {}", image.name), &body)
        }
    };
    output::text(arguments.out.as_deref(), &text)
}
