//! `weft check`: is this program, image or network right?

use crate::console::say;
use crate::{load, network};
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use weftwire_image::profile::Profile;

/// Check programs, images and networks: report every error and warning, write nothing.
#[derive(Args)]
pub struct Arguments {
    /// Sources (.xl, .xtra), images (.json) or networks (.toml)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Check against a platform's limits: software or fpga
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = super::compile::profile)]
    profile: Profile,
    /// Treat warnings as errors
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    includes: load::Includes,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let mut failed = 0;
    for file in &arguments.files {
        if file.extension().is_some_and(|extension| extension == "toml") {
            match network::check(file, &arguments.includes) {
                Ok(()) => say!("{}: ok", file.display()),
                Err(error) => {
                    say!("{error:#}");
                    failed += 1;
                }
            }
            continue;
        }
        let image = if load::dialect(file).is_some() {
            let compilation = load::try_compile(file, &arguments.includes)?;
            load::show(&compilation.diagnostics, &compilation.sources);
            if compilation.diagnostics.is_empty() {
                say!("{}: ok", file.display());
            } else {
                say!("{}: {}", file.display(), load::summary(&compilation.diagnostics));
                failed += usize::from(compilation.image.is_none() || arguments.deny_warnings);
            }
            compilation.image
        } else {
            match load::image(file, &arguments.includes) {
                Ok(image) => {
                    say!("{}: ok", file.display());
                    Some((*image).clone())
                }
                Err(error) => {
                    say!("{}: {error:#}", file.display());
                    failed += 1;
                    None
                }
            }
        };
        if let Some(image) = image
            && !super::compile::report_excess(&image, &arguments.profile)
        {
            failed += 1;
        }
    }
    if failed > 0 {
        bail!("{failed} of {} files failed", arguments.files.len());
    }
    Ok(())
}
