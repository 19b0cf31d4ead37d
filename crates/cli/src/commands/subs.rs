//! `weft subs`: packet subscriptions.

mod compile;
mod explain;
mod graph;
mod pass;
mod replay;
mod route;
mod run;
#[cfg(feature = "services")]
mod services;
mod snapshot;

use crate::console::say;
use crate::diagnostics::show;
use crate::load::catalog;
use crate::progress::ProgressLine;
use anyhow::{Result, bail};
use clap::{Args, Subcommand, value_parser};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use weftwire_catalog::{FieldsInOrder, summary};
use weftwire_subscribe::budget::Budget;
use weftwire_subscribe::{Watch, check};
use weftwire_text::{Diagnostic, Severity};

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
    Run(Box<run::Arguments>),
    /// Repeat a run from the recording of its inputs
    Replay(replay::Arguments),
    /// Write down the state of a running switch
    Snapshot(snapshot::Arguments),
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
        Command::Replay(arguments) => replay::execute(&arguments),
        Command::Snapshot(arguments) => snapshot::execute(arguments),
        Command::Route(arguments) => route::execute(&arguments),
        #[cfg(feature = "services")]
        Command::Service(command) => services::execute(command),
    }
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
        let mut loaded = catalog().formats(&arguments.formats)?;
        loaded.read(file)?;
        let mut found = std::mem::take(&mut loaded.diagnostics);
        found.extend(check::check(&loaded.formats, &loaded.rules));
        show(&found, &loaded.sources);
        if found.is_empty() {
            say!("{}: ok, {} rules", file.display(), loaded.rules.len());
        } else {
            say!("{}: {}", file.display(), summary(&found));
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

    /// For the catalog, with a line that tells how far it is.
    pub fn begin(&self) -> weftwire_catalog::Compiling {
        weftwire_catalog::Compiling {
            order: FieldsInOrder::parse(&self.order),
            budget: self.budget(),
            watch: Line::begin().watch([0.0, 1.0], "the rules".to_owned()),
        }
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
