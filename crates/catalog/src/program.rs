//! Machines: images, and programs that are compiled.

use crate::file::{self, Kind};
use crate::parameter::{self, Parameter};
use crate::{Catalog, CatalogError, Loaded, summary};
use std::path::{Path, PathBuf};
use weftwire_image::{Image, VerifiedImage};
use weftwire_lang::{Compilation, Dialect, Phases};
use weftwire_text::{LoadError, Loader};

/// The syntax of a source file, by its name.
pub fn dialect(path: &Path) -> Option<Dialect> {
    Dialect::of_file_name(&path.to_string_lossy())
}

impl Catalog<'_> {
    /// Loads a machine: an image (.json), or a source (.xl, .xtra), which is compiled; with these initial values of its
    /// registers.
    ///
    /// # Errors
    /// As [`Catalog::image`]; or a parameter is none of the machine's.
    pub fn machine(&self, path: &Path, parameters: &[Parameter]) -> Result<Loaded, CatalogError> {
        let image = parameter::apply(self.image(path)?, parameters);
        let wrong = |error| CatalogError::Parameter { path: path.display().to_string(), error };
        Ok(Loaded::Machine(Box::new(image.map_err(wrong)?)))
    }

    /// Loads and verifies an image, compiling it first if the file is a source.
    ///
    /// # Errors
    /// The file cannot be read, is no image that can run, or has errors, which are reported.
    pub fn image(&self, path: &Path) -> Result<VerifiedImage, CatalogError> {
        if dialect(path).is_none() {
            let bytes = file::bytes(path, Kind::Image)?;
            let wrong = |error| CatalogError::NoImage { path: path.display().to_string(), error };
            return VerifiedImage::from_json(&bytes).map_err(wrong);
        }
        self.compile(path)?.verify().map_err(CatalogError::Defect)
    }

    /// Compiles a source file. Warnings and errors are reported.
    ///
    /// # Errors
    /// It cannot be read, is no source by its name, or has errors.
    pub fn compile(&self, path: &Path) -> Result<Image, CatalogError> {
        let compilation = self.try_compile(path)?;
        (self.report)(&compilation.diagnostics, &compilation.sources);
        compilation.image.ok_or_else(|| CatalogError::Wrong(summary(&compilation.diagnostics)))
    }

    /// Compiles a source file and keeps the diagnostics; one of them says if it cannot be read.
    ///
    /// # Errors
    /// It is no source by its name.
    pub fn try_compile(&self, path: &Path) -> Result<Compilation, CatalogError> {
        let no_source = || CatalogError::NoSource { path: path.display().to_string() };
        let dialect = dialect(path).ok_or_else(no_source)?;
        let files = Files { root: path, allowed: &self.includes };
        Ok(weftwire_lang::compile_for(&path.to_string_lossy(), dialect, &files, self.timers))
    }

    /// The phases that a register of a module goes through ([`weftwire_lang::phases`]), in a source of XL.
    pub fn phases(&self, path: &Path, module: &str, register: &str) -> Option<Phases> {
        let files = Files { root: path, allowed: &self.includes };
        weftwire_lang::phases(&path.to_string_lossy(), &files, module, register)
    }
}

/// A program from files; names are relative to the file that mentions them. What it includes stays within its own folder
/// and the folders that are allowed.
struct Files<'a> {
    root: &'a Path,
    allowed: &'a [PathBuf],
}

impl Loader for Files<'_> {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, LoadError> {
        if from.is_none() {
            return file::load(self.root, Kind::Source);
        }
        // Behind all links, so that none leads out.
        let whole = Path::canonicalize;
        let file = whole(Path::new(&self.resolve(name, from)))?;
        let own = match self.root.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => whole(folder)?,
            _ => whole(Path::new("."))?,
        };
        if !self.allowed.iter().chain([&own]).any(|folder| file.starts_with(folder)) {
            return Err(LoadError::Outside { folder: own.display().to_string() });
        }
        file::load(&file, Kind::Source)
    }

    fn resolve(&self, name: &str, from: Option<&str>) -> String {
        match from.map(Path::new).and_then(Path::parent) {
            Some(folder) => folder.join(name).to_string_lossy().into_owned(),
            None => name.to_string(),
        }
    }
}
