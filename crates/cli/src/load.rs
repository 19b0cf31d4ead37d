//! Functions from files: the one place where engines, compilers and files meet.

use crate::console::tell;
use crate::parameters::{self, Parameter};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use weftwire_core::Function;
use weftwire_core::function::Ports;
use weftwire_engine::{EngineOptions, make};
use weftwire_image::{Image, VerifiedImage};
use weftwire_lang::{Compilation, Diagnostic, Dialect, Loader, Severity, SourceMap};
use weftwire_subscribe::Compiler;
use weftwire_subscribe::application::Registry;
use weftwire_subscribe::engine::SubscriptionSwitch;

/// A function that is loaded and not yet started.
#[derive(Clone)]
pub enum Loaded {
    /// A machine.
    Machine(Box<VerifiedImage>),
    /// A switch that forwards by rules about messages.
    Subscriptions {
        /// The name of its file of rules.
        name: String,
        /// The digest of its rules and formats.
        digest: String,
        /// Its rules, compiled.
        compiler: Arc<Compiler>,
    },
}

/// Loads the function in the file `path`: an image (.json), or a source (.xl, .xtra), which is compiled.
pub fn function(path: &Path, parameters: &[Parameter]) -> Result<Loaded> {
    let image = parameters::apply(image(path)?, parameters);
    Ok(Loaded::Machine(Box::new(image.with_context(|| format!("cannot start {}", path.display()))?)))
}

impl Loaded {
    /// The function's own name.
    pub fn name(&self) -> &str {
        match self {
            Loaded::Machine(image) => &image.name,
            Loaded::Subscriptions { name, .. } => name,
        }
    }

    /// The digest of what it is made from.
    pub fn digest(&self) -> &str {
        match self {
            Loaded::Machine(image) => &image.digest,
            Loaded::Subscriptions { digest, .. } => digest,
        }
    }

    /// How many flows its table may hold.
    pub fn most_flows(&self) -> u64 {
        match self {
            Loaded::Machine(image) => image.flow.max.into(),
            Loaded::Subscriptions { .. } => 0,
        }
    }

    /// Starts it on these ports; a machine, with the named engine. Without a key one comes from the seed.
    pub fn start(&self, engine: &str, ports: &Ports, seed: u64, key: Option<[u64; 2]>) -> Result<Box<dyn Function>> {
        let image = match self {
            Loaded::Machine(image) => VerifiedImage::clone(image),
            Loaded::Subscriptions { compiler, .. } => {
                let registry = Registry::built_in();
                return Ok(Box::new(SubscriptionSwitch::with_actions(compiler, ports.clone(), registry)?));
            }
        };
        let hash_key = key.map(|[low, high]| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&low.to_le_bytes());
            bytes[8..].copy_from_slice(&high.to_le_bytes());
            bytes
        });
        Ok(make(engine, image, ports.clone(), EngineOptions { seed, hash_key })?)
    }
}

/// Loads and verifies an image, compiling it first if the file is a source.
pub fn image(path: &Path) -> Result<VerifiedImage> {
    if dialect(path).is_none() {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        return VerifiedImage::from_json(&bytes)
            .with_context(|| format!("{} is no image that can run", path.display()));
    }
    let image = compile(path)?;
    image.verify().context("the compiler made an image that does not verify; this is a defect of the compiler")
}

/// The syntax of a source file, by its name.
pub fn dialect(path: &Path) -> Option<Dialect> {
    Dialect::of_file_name(&path.to_string_lossy())
}

/// Compiles a source file. Warnings and errors go to standard error.
pub fn compile(path: &Path) -> Result<Image> {
    let compilation = try_compile(path)?;
    show(&compilation.diagnostics, &compilation.sources);
    match compilation.image {
        Some(image) => Ok(image),
        None => bail!("{}", summary(&compilation.diagnostics)),
    }
}

/// Compiles a source file and keeps the diagnostics.
pub fn try_compile(path: &Path) -> Result<Compilation> {
    let Some(dialect) = dialect(path) else {
        bail!("{} is no source: sources end in .xl or .xtra", path.display());
    };
    Ok(weftwire_lang::compile(&path.to_string_lossy(), dialect, &Files))
}

/// How many errors and warnings there are, in words.
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|found| found.severity == severity).count();
    let words = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", words(count(Severity::Error), "error"), words(count(Severity::Warning), "warning"))
}

/// Shows all diagnostics with their source lines.
pub fn show(diagnostics: &[Diagnostic], sources: &SourceMap) {
    for diagnostic in diagnostics {
        tell!("{}\n", render(diagnostic, sources));
    }
}

fn render(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level
        .primary_title(diagnostic.message.as_str())
        .elements([] as [Snippet<'_, annotate_snippets::Annotation<'_>>; 0]);
    if let Some(file) = sources.file(diagnostic.span).filter(|_| diagnostic.span.end > 0) {
        let length = file.text.len();
        let start = (diagnostic.span.start as usize).min(length);
        let end = (diagnostic.span.end as usize).clamp(start, length);
        let annotation = AnnotationKind::Primary.span(start..end).label(diagnostic.label.as_str());
        group = group.element(Snippet::source(file.text.as_str()).path(file.name.as_str()).annotation(annotation));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let styled = std::io::stderr().is_terminal();
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// Programs from files; names are relative to the file that mentions them.
struct Files;

impl Loader for Files {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, String> {
        fs::read_to_string(self.resolve(name, from)).map_err(|error| error.to_string())
    }

    fn resolve(&self, name: &str, from: Option<&str>) -> String {
        match from.map(Path::new).and_then(Path::parent) {
            Some(folder) => folder.join(name).to_string_lossy().into_owned(),
            None => name.to_string(),
        }
    }
}
