//! `weft compile`: a program to its image.

use crate::console::tell;
use crate::{load, output};
use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use weftwire_catalog::Catalog;
use weftwire_image::Image;
use weftwire_image::profile::{PROFILES, Profile};

/// Compile a program to a machine image.
#[derive(Args)]
pub struct Arguments {
    /// The source (.xl, .xtra)
    source: PathBuf,
    /// Where to write the image [default: the source's name with .json, in the present folder]; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The platform whose limits the image must keep: software or fpga
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = profile)]
    profile: Profile,
    #[command(flatten)]
    includes: load::Includes,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let image =
        Catalog { timers: arguments.profile.timers, ..arguments.includes.catalog()? }.compile(&arguments.source)?;
    if !report_excess(&arguments.source, &image, &arguments.profile) {
        bail!("{} exceeds the profile `{}`; nothing was written", arguments.source.display(), arguments.profile.name);
    }
    let output = arguments.output.unwrap_or_else(|| {
        PathBuf::from(arguments.source.with_extension("json").file_name().unwrap_or("image.json".as_ref()))
    });
    output::bytes(Some(&output), &image.to_json())?;
    if output == Path::new("-") {
        return Ok(());
    }
    tell!("{}: {} states, {} rows, {}", output.display(), image.states.len(), image.rows.len(), image.digest);
    Ok(())
}

/// Reads the name of a profile.
pub fn profile(name: &str) -> Result<Profile, String> {
    let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    Profile::named(name).ok_or_else(|| format!("profiles are {}", names.join(" and ")))
}

/// Says what of the image of a file exceeds a profile, and whether nothing does.
pub fn report_excess(file: &Path, image: &Image, profile: &Profile) -> bool {
    let (missing, excess) = (profile.missing(image), profile.exceeded(image));
    for feature in &missing {
        tell!(
            "{}: profile {}: the program needs `{feature}`, which this platform does not have",
            file.display(),
            profile.name
        );
    }
    for found in &excess {
        let included = image.debug.source(found.source);
        let source = included.map_or_else(|| file.to_path_buf(), |name| file.with_file_name(name));
        let place = match found.line {
            0 => source.display().to_string(),
            line => format!("{}:{line}", source.display()),
        };
        let at = if found.at.is_empty() { String::new() } else { format!(" ({})", found.at) };
        tell!("{place}: profile {}: {found}{at}", profile.name);
    }
    missing.is_empty() && excess.is_empty()
}
