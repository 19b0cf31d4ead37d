//! `weft subs`: packet subscriptions.

mod compile;
mod explain;
mod graph;
mod pass;
mod reload;
mod route;
mod run;
#[cfg(feature = "services")]
mod services;

use crate::console::say;
use crate::input::{self, Kind};
use crate::load;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, value_parser};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use weftwire_subscribe::budget::{Budget, CompileError, Excess};
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::order::{self, Choice};
use weftwire_subscribe::{Compiler, MessageFormats, Rule, Watch, check, read_rules};
use weftwire_switch::application::Registry;
use weftwire_text::{Diagnostic, Severity, SourceMap};

/// Compile packet subscriptions: filters on messages, and where messages that pass them go.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check rules and formats: report every error and warning, write nothing
    Check(CheckArguments),
    /// Compile rules to tables
    Compile(compile::Arguments),
    /// Tell which rules match a message, and why
    Explain(explain::Arguments),
    /// Draw the decision diagram of rules
    Graph(graph::Arguments),
    /// Sort the packets of a capture by the rules: one capture a port
    Match(pass::Arguments),
    /// Forward by rules on network interfaces, until it is interrupted
    Run(run::Arguments),
    /// Route subscriptions: the rules and tables of each switch of a network
    Route(route::Arguments),
    #[cfg(feature = "services")]
    #[command(flatten)]
    Service(services::Command),
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::Check(arguments) => execute_check(&arguments),
        Command::Compile(arguments) => compile::execute(&arguments),
        Command::Explain(arguments) => explain::execute(&arguments),
        Command::Graph(arguments) => graph::execute(&arguments),
        Command::Match(arguments) => pass::execute(&arguments),
        Command::Run(arguments) => run::execute(&arguments),
        Command::Route(arguments) => route::execute(&arguments),
        #[cfg(feature = "services")]
        Command::Service(command) => services::execute(command),
    }
}

/// A switch of the rules in files, to be started. The first file gives it its name.
pub fn switch(rules: &[PathBuf], formats: &[PathBuf], compiling: &Compiling) -> Result<load::Loaded> {
    let (compiler, _) = Loaded::rules(rules, formats)?.compile(compiling)?;
    Registry::built_in().check_rules(&compiler).with_context(|| names(rules))?;
    let name = rules.first().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy().into_owned();
    // What stands between them cannot be in a text.
    let text = [&together(rules)?, "\0", &together(formats)?, "\0", &compiling.order].concat();
    let digest = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(load::Loaded::Subscriptions { name, digest, compiler: Arc::new(compiler) })
}

#[derive(Args)]
struct CheckArguments {
    /// Files of rules
    #[arg(required = true)]
    rules: Vec<PathBuf>,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    deny_warnings: bool,
}

fn execute_check(arguments: &CheckArguments) -> Result<()> {
    let mut failed = 0;
    for file in &arguments.rules {
        let mut loaded = Loaded::formats(&arguments.formats)?;
        loaded.read(file)?;
        let mut found = std::mem::take(&mut loaded.diagnostics);
        found.extend(check::check(&loaded.formats, &loaded.rules));
        load::show(&found, &loaded.sources);
        if found.is_empty() {
            say!("{}: ok, {} rules", file.display(), loaded.rules.len());
        } else {
            say!("{}: {}", file.display(), load::summary(&found));
            failed += usize::from(is_error(&found) || arguments.deny_warnings);
        }
    }
    if failed > 0 {
        bail!("{failed} of {} files failed", arguments.rules.len());
    }
    Ok(())
}

fn is_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| found.severity == Severity::Error)
}

/// How rules are compiled.
#[derive(Args, Clone)]
pub struct Compiling {
    /// The order of fields: `auto`, `file`, or names like `add_order.stock,add_order.price`
    #[arg(long, default_value = "auto")]
    order: String,
    /// Most edges of the rules' diagram, which take about 50 bytes each; time is bounded with it
    #[arg(long, value_name = "EDGES", default_value_t = Budget::DEFAULT_SIZE as u64, value_parser = value_parser!(u64).range(1..=1 << 40))]
    budget: u64,
}

impl Default for Compiling {
    fn default() -> Compiling {
        Compiling { order: "auto".to_owned(), budget: Budget::DEFAULT_SIZE as u64 }
    }
}

impl Compiling {
    fn budget(&self) -> Budget {
        Budget::of_size(usize::try_from(self.budget).unwrap_or(usize::MAX))
    }
}

/// Formats and rules from files.
struct Loaded {
    formats: MessageFormats,
    rules: Vec<Rule>,
    sources: SourceMap,
    diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// Reads the formats alone.
    fn formats(paths: &[PathBuf]) -> Result<Loaded> {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
        let files: Vec<(String, String)> =
            paths.iter().map(|path| Ok((path.to_string_lossy().into_owned(), read(path)?))).collect::<Result<_>>()?;
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let Some(formats) = MessageFormats::read_all(&files, &mut sources, &mut diagnostics) else {
            load::show(&diagnostics, &sources);
            bail!("{}: {}", names(paths), load::summary(&diagnostics));
        };
        Ok(Loaded { formats, rules: Vec::new(), sources, diagnostics })
    }

    /// Reads formats and rules. Errors and warnings go to standard error.
    fn rules(rules: &[PathBuf], formats: &[PathBuf]) -> Result<Loaded> {
        let mut loaded = Loaded::formats(formats)?;
        for path in rules {
            loaded.read(path)?;
        }
        load::show(&loaded.diagnostics, &loaded.sources);
        if is_error(&loaded.diagnostics) {
            bail!("{}: {}", names(rules), load::summary(&loaded.diagnostics));
        }
        Ok(loaded)
    }

    fn read(&mut self, path: &Path) -> Result<()> {
        let text = read(path)?;
        let name = path.to_string_lossy();
        self.rules.extend(read_rules(&name, &text, &self.formats, &mut self.sources, &mut self.diagnostics));
        Ok(())
    }

    /// Compiles the rules.
    fn compile(&self, compiling: &Compiling) -> Result<(Compiler, Option<Choice>)> {
        let watch = Line::begin().watch([0.0, 1.0], format!("{} rules", self.rules.len()));
        let options = |order| Options { order, budget: compiling.budget(), watch: watch.clone(), ..Options::default() };
        let new = |order| Compiler::new(self.formats.clone(), &options(order), &self.rules).map(|it| (it, None));
        let compiled = match compiling.order.as_str() {
            "auto" => order::compile(&self.formats, &options(None), &self.rules).map(|(it, choice)| (it, Some(choice))),
            "file" => new(None),
            names => new(Some(names.split(',').map(|name| self.field(name.trim())).collect::<Result<_>>()?)),
        };
        drop(watch);
        compiled.map_err(|(rule, error)| {
            let mut found = Diagnostic::error(self.rules[rule].span, error.to_string());
            if let CompileError::OverBudget(Excess::Size | Excess::Steps, _) = error {
                found = found.help("--budget allows more, --order names another order of the fields");
            }
            load::show(&[found], &self.sources);
            anyhow::anyhow!("the rules are too much")
        })
    }

    fn field(&self, name: &str) -> Result<FieldId> {
        let found = match name.split_once('.') {
            Some((header, field)) => {
                self.formats.header_named(header).and_then(|header| self.formats.field_named(header, field))
            }
            None => match self.formats.fields_named(name) {
                [field] => Some(*field),
                _ => None,
            },
        };
        found.with_context(|| format!("there is no one field `{name}` that filters may use"))
    }
}

/// A line that compilations tell how far they are.
#[derive(Clone)]
struct Line(Arc<Mutex<ProgressLine>>);

impl Line {
    fn begin() -> Line {
        Line(Arc::new(Mutex::new(ProgressLine::begin())))
    }

    fn tell(&self, share: f64, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tell(share, what);
    }

    /// For a compilation that begins and ends with these shares of the whole.
    fn watch(&self, [from, to]: [f64; 2], what: String) -> Watch {
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_shown() {
            return Watch::default();
        }
        self.tell(from, &what);
        let line = self.clone();
        Watch::new(move |share| line.tell(from + share * (to - from), &what))
    }
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn read(path: &Path) -> Result<String> {
    let kind = if path.extension().is_some_and(|it| it == "p4") { Kind::Source } else { Kind::Rules };
    input::text(path, kind)
}

/// Several files as one text, which names of files are no part of.
fn together(paths: &[PathBuf]) -> Result<String> {
    let texts: Vec<String> = paths.iter().map(|path| read(path)).collect::<Result<_>>()?;
    Ok(texts.join("\0"))
}
