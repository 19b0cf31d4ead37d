//! Functions from files: the one place where files, the compiler and the engines meet.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use weftwire_core::Function;
use weftwire_core::function::Ports;
use weftwire_engine::EngineOptions;
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, Loader};

/// The engine that runs images.
const ENGINE: &str = "reference";

/// A function that is loaded and not yet started.
pub struct Loaded {
    image: VerifiedImage,
}

/// Loads the function in the file `path`: a source by its ending (`.xl`, `.xtra`), else an image.
///
/// Warnings of the compiler go to standard error.
pub fn function(path: &Path) -> Result<Loaded> {
    Ok(Loaded { image: image(path)? })
}

/// Loads the image in the file `path`, or compiles the source in it.
pub fn image(path: &Path) -> Result<VerifiedImage> {
    let name = path.to_str().with_context(|| format!("{} is not a name in UTF-8", path.display()))?;
    let Some(dialect) = Dialect::of_file_name(name) else {
        let bytes = fs::read(path).with_context(|| format!("cannot read {name}"))?;
        return VerifiedImage::from_json(&bytes)
            .with_context(|| format!("{name} is not an image that can be run (sources end in .xl or .xtra)"));
    };
    let compilation = weftwire_lang::compile(name, dialect, &Files);
    for diagnostic in &compilation.diagnostics {
        eprintln!("{}", diagnostic.to_text(&compilation.sources));
    }
    let Some(image) = compilation.image else { bail!("{name} has errors") };
    image.verify().with_context(|| format!("the image compiled from {name} does not verify"))
}

impl Loaded {
    /// The function's own name.
    pub fn name(&self) -> &str {
        &self.image.name
    }

    /// Starts it on these ports.
    pub fn start(self, ports: Ports, options: EngineOptions) -> Result<Box<dyn Function>> {
        Ok(weftwire_engine::make(ENGINE, self.image, ports, options)?)
    }
}

/// Sources from files. What a file includes is looked for beside it.
pub struct Files;

impl Loader for Files {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, String> {
        let path = self.resolve(name, from);
        fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))
    }

    fn resolve(&self, name: &str, from: Option<&str>) -> String {
        let directory = from.and_then(|from| Path::new(from).parent()).map_or_else(PathBuf::new, Path::to_owned);
        directory.join(name).display().to_string()
    }
}
