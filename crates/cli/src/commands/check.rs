//! `weft check`: is this program, image or network right?

use crate::console::say;
use crate::diagnostics::show;
use crate::{load, network};
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use weftwire_catalog::{Catalog, dialect, summary};
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
    let catalog = Catalog { timers: arguments.profile.timers, ..arguments.includes.catalog()? };
    let mut failed = 0;
    for file in &arguments.files {
        if file.extension().is_some_and(|extension| extension == "toml") {
            match network::check(file, &catalog) {
                Ok(()) => say!("{}: ok", file.display()),
                Err(error) => {
                    say!("{error:#}");
                    failed += 1;
                }
            }
            continue;
        }
        let (image, said) = if dialect(file).is_some() {
            let compilation = catalog.try_compile(file)?;
            show(&compilation.diagnostics, &compilation.sources);
            let found = &compilation.diagnostics;
            let said = if found.is_empty() { "ok".to_owned() } else { summary(found) };
            (compilation.image.filter(|_| found.is_empty() || !arguments.deny_warnings), said)
        } else {
            match catalog.image(file) {
                Ok(image) => (Some(image.into_image()), "ok".to_owned()),
                Err(error) => (None, format!("{:#}", anyhow::Error::from(error))),
            }
        };
        let worst = image.as_ref().and_then(weftwire_image::Image::worst_case_text);
        let worst = worst.map_or_else(String::new, |worst| format!(", an event takes {worst}"));
        // Whether it fits is known before anything says that it is right.
        match image.map(|image| super::compile::report_excess(file, &image, &arguments.profile)) {
            Some(true) => say!("{}: {said}{worst}", file.display()),
            Some(false) => {
                say!("{}: too large for the profile `{}`", file.display(), arguments.profile.name);
                failed += 1;
            }
            None => {
                say!("{}: {said}", file.display());
                failed += 1;
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} files failed", arguments.files.len());
    }
    Ok(())
}
