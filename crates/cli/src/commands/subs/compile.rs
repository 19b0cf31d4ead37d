//! `weft subs compile`: rules to tables.

use super::Compiling;
use crate::console::say;
use crate::folder::OutputFolder;
use crate::load::catalog;
use crate::{output, outputs};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weftwire_linux::signals::StopSignal;
use weftwire_subscribe::Compiler;
use weftwire_subscribe::document::Document;
use weftwire_target::machine::{HEADERS, machine};
use weftwire_target::{Architecture, Program, Targets, commands, fit, limits};

/// Compile rules to tables, and say what they cost.
#[derive(Args)]
pub struct Arguments {
    /// The rules
    rules: PathBuf,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    /// Write tables.json, and the files of targets, into this folder
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write programs and entries for these switches
    #[arg(long, value_enum, value_delimiter = ',', requires = "out")]
    target: Vec<Target>,
    /// Messages of a packet that programs look at; packets with more go to all ports as they are. Without it as many as a
    /// packet of 1,500 bytes has room for, if the switch has
    #[arg(long, value_name = "COUNT")]
    messages: Option<usize>,
    /// In programs, write ranges as prefixes of ternary tables
    #[arg(long)]
    tcam: bool,
    /// In programs, map values of fields that several states look at to few bits first
    #[arg(long)]
    compress: bool,
    /// In programs, let copies leave by the port that their packet came in by
    #[arg(long)]
    hairpin: bool,
    #[command(flatten)]
    compiling: Compiling,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// switch.p4: P4_16 for v1model
    P4,
    /// switch.json, commands.txt and load.py: for simple_switch, without a P4 compiler
    Bmv2,
    /// p4info.txtpb and entries.txtpb: for P4Runtime
    #[value(name = "p4runtime")]
    P4Runtime,
    /// tna.p4 and tna.json: P4_16 and entries for Tofino
    Tna,
    /// switch.xl, and headers.p4 if it needs any: a program of the machines' language, for small sets of rules
    Xl,
    /// image.json: that program as a machine image
    Image,
}

impl Target {
    /// Its files: names and texts.
    fn files(self, compiler: &Compiler, arguments: &Arguments) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let target = match self {
            Target::P4 => weftwire_target::Target::P4,
            Target::Bmv2 => weftwire_target::Target::Bmv2,
            Target::P4Runtime => weftwire_target::Target::P4Runtime,
            Target::Tna => weftwire_target::Target::Tna,
            Target::Xl | Target::Image if arguments.hairpin => {
                bail!("machines send no packet back to where it came from; --hairpin is for programs of switches")
            }
            Target::Xl | Target::Image => {
                let name = arguments.rules.file_stem().unwrap_or_default().to_string_lossy();
                let machine = machine(compiler, &name).context("the rules can't become a machine")?;
                // What is written is a program that `weft check` takes.
                let image = machine.image().context("the rules can't become a machine")?;
                if let Target::Image = self {
                    return Ok(vec![("image.json", image.to_json())]);
                }
                let texts = [("switch.xl", machine.xl), (HEADERS, machine.headers)];
                let there = texts.into_iter().filter(|(_, text)| !text.is_empty());
                return Ok(there.map(|(name, text)| (name, text.into_bytes())).collect());
            }
        };
        let targets = arguments.targets(compiler, target.architecture());
        let program = Program::new(compiler, target.architecture(), &targets)
            .with_context(|| format!("the rules can't become a program for {}", target.name()))?;
        show_size(&program, target);
        Ok(weftwire_target::written(&program, target)
            .into_iter()
            .map(|file| (file.name, file.text.into_bytes()))
            .collect())
    }
}

impl Arguments {
    fn targets(&self, compiler: &Compiler, architecture: Architecture) -> Targets {
        let mut targets = Targets { messages: 1, ternary: self.tcam, compress: self.compress, hairpin: self.hairpin };
        targets.messages = self.messages.unwrap_or_else(|| fit::messages(compiler, architecture, &targets));
        targets
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let loaded = catalog().rules(std::slice::from_ref(&arguments.rules), &arguments.formats)?;
    let (compiler, choice) = catalog().tables(&loaded, &arguments.compiling.begin())?;
    let document = Document::new(&compiler);
    say!("{} rules, {} stages", compiler.rule_count(), document.stages.len());
    if let Some(choice) = choice {
        let other = match choice.entries_in_file_order {
            Some(entries) => format!("{entries} in the order of the formats"),
            None => "over the budget in the order of the formats".to_owned(),
        };
        say!("order: {} entries; {other}", choice.entries);
    }
    say!(
        "{:<40} {:>6} {:>8} {:>10} {:>12} {:>11} {:>15}",
        "stage",
        "kind",
        "entries",
        "as ternary",
        "ternary bits",
        "compressed",
        "compressed bits"
    );
    for cost in &document.costs {
        let kind = format!("{:?}", cost.kind).to_lowercase();
        let compressed = cost.compressed.map.entries + cost.compressed.stage.entries;
        let bits = cost.compressed.map.bits + cost.compressed.stage.bits;
        say!(
            "{:<40} {kind:>6} {:>8} {:>10} {:>12} {compressed:>11} {bits:>15}",
            cost.variable,
            cost.entries,
            cost.ternary.entries,
            cost.ternary.bits
        );
    }
    let (states, leaves, groups) = (document.states, document.leaves.len(), document.groups.len());
    let ending = if groups == 1 { "" } else { "s" };
    say!("{states} states, {leaves} of them ends; {groups} multicast group{ending}");
    let Some(folder) = &arguments.out else { return Ok(()) };
    // All is made before anything is written, and an interruption waits for what is being written.
    let mut files = Vec::new();
    for target in &arguments.target {
        files.extend(target.files(&compiler, arguments)?);
    }
    let _stop = StopSignal::install()?;
    let folder = OutputFolder::begin(folder)?;
    outputs::write_json(&folder.path().join("tables.json"), &document)?;
    for (name, bytes) in files {
        output::bytes(Some(&folder.path().join(name)), &bytes)?;
    }
    folder.finish()
}

/// Says what a program needs of its switch.
fn show_size(program: &Program, target: weftwire_target::Target) {
    let size = program.size();
    say!(
        "{}: {} tables; {} exact entries of {} bits, {} ternary ones of {} bits",
        target.name(),
        size.tables,
        size.exact.entries,
        size.exact.bits,
        size.ternary.entries,
        size.ternary.bits
    );
    if let Some(most) = program.most_messages {
        say!("{}: looks at {most} messages of a packet; one with more goes to all ports as it is", target.name());
    }
    if let Some(options) = commands::options(program).filter(|_| target != weftwire_target::Target::Tna) {
        let groups = program.groups.len();
        say!(
            "{}: {groups} multicast groups, which simple_switch takes if it is started with -- {options}",
            target.name()
        );
    }
    if target == weftwire_target::Target::Tna {
        say!(
            "tna: at least {} stages in ingress and {} in egress, of which Tofino 1 has {}",
            limits::stages(&program.ingress),
            limits::stages(&program.egress),
            limits::STAGES
        );
    }
}
