//! Functions from files: the one place where engines, compilers and files meet.

use crate::input::{self, Kind};
use crate::parameters::{self, Parameter};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weftwire_core::Function;
use weftwire_core::function::Ports;
use weftwire_engine::{EngineOptions, make};
use weftwire_image::{Image, VerifiedImage};
use weftwire_lang::{Compilation, Dialect};
use weftwire_network::memory::FRAME;
use weftwire_subscribe::Compiler;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::Registry;
use weftwire_text::Loader;

pub use crate::diagnostics::{show, summary};

/// Bytes of an instance with its places in the flow table, without registers and packets.
const INSTANCE: u64 = 512;

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

/// Whose files a program may include.
#[derive(clap::Args, Clone, Default, Debug)]
#[group(skip)]
pub struct Includes {
    /// Let programs include files of this folder too, beside those of their own
    #[arg(long = "allow-includes", value_name = "DIR")]
    folders: Vec<PathBuf>,
}

impl Includes {
    /// The further folders, as whole paths.
    pub fn whole(&self) -> Result<Vec<PathBuf>> {
        let whole = |folder: &PathBuf| {
            folder.canonicalize().with_context(|| format!("cannot find the folder {}", folder.display()))
        };
        self.folders.iter().map(whole).collect()
    }
}

/// Loads the function in the file `path`: an image (.json), or a source (.xl, .xtra), which is compiled.
pub fn function(path: &Path, parameters: &[Parameter], includes: &Includes) -> Result<Loaded> {
    let image = parameters::apply(image(path, includes)?, parameters);
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

    /// Bytes that its flow table takes if it fills up, as far as the image tells: buffers of applications come on top.
    pub fn flow_table(&self) -> u64 {
        match self {
            Loaded::Machine(image) => {
                let each = INSTANCE + 8 * image.registers.len() as u64 + FRAME * image.slots.len() as u64;
                u64::from(image.flow.max).saturating_mul(each)
            }
            Loaded::Subscriptions { .. } => 0,
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
pub fn image(path: &Path, includes: &Includes) -> Result<VerifiedImage> {
    if dialect(path).is_none() {
        let bytes = input::bytes(path, Kind::Image)?;
        return VerifiedImage::from_json(&bytes)
            .with_context(|| format!("{} is no image that can run", path.display()));
    }
    let image = compile(path, includes)?;
    image.verify().context("the compiler made an image that does not verify; this is a defect of the compiler")
}

/// The syntax of a source file, by its name.
pub fn dialect(path: &Path) -> Option<Dialect> {
    Dialect::of_file_name(&path.to_string_lossy())
}

/// Compiles a source file. Warnings and errors go to standard error.
pub fn compile(path: &Path, includes: &Includes) -> Result<Image> {
    let compilation = try_compile(path, includes)?;
    show(&compilation.diagnostics, &compilation.sources);
    match compilation.image {
        Some(image) => Ok(image),
        None => bail!("{}", summary(&compilation.diagnostics)),
    }
}

/// Compiles a source file and keeps the diagnostics.
pub fn try_compile(path: &Path, includes: &Includes) -> Result<Compilation> {
    let Some(dialect) = dialect(path) else {
        bail!("{} is no source: sources end in .xl or .xtra", path.display());
    };
    let files = Files { root: path, allowed: includes.whole()? };
    Ok(weftwire_lang::compile(&path.to_string_lossy(), dialect, &files))
}

/// A program from files; names are relative to the file that mentions them. What it includes stays within its own folder
/// and the folders that are allowed.
struct Files<'a> {
    root: &'a Path,
    allowed: Vec<PathBuf>,
}

impl Loader for Files<'_> {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, String> {
        if from.is_none() {
            return input::text_or_reason(self.root, Kind::Source);
        }
        // Behind all links, so that none leads out.
        let whole = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
        let file = whole(Path::new(&self.resolve(name, from)))?;
        let own = match self.root.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => whole(folder)?,
            _ => whole(Path::new("."))?,
        };
        if !self.allowed.iter().chain([&own]).any(|folder| file.starts_with(folder)) {
            return Err(format!(
                "it lies outside {}, the program's own folder; allow its folder with --allow-includes",
                own.display()
            ));
        }
        input::text_or_reason(&file, Kind::Source)
    }

    fn resolve(&self, name: &str, from: Option<&str>) -> String {
        match from.map(Path::new).and_then(Path::parent) {
            Some(folder) => folder.join(name).to_string_lossy().into_owned(),
            None => name.to_string(),
        }
    }
}
