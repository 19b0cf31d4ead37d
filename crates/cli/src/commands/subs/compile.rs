//! `weft subs compile`: rules to tables.

use super::Loaded;
use crate::outputs;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weftwire_linux::signals::StopSignal;
use weftwire_subscribe::document::Document;
use weftwire_subscribe::target::{self, Targets};

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
    /// Messages of a packet that programs look at; packets with more go to all ports as they are
    #[arg(long, value_name = "COUNT", default_value_t = Targets::default().messages)]
    messages: usize,
    /// In programs, write ranges as prefixes of ternary tables
    #[arg(long)]
    tcam: bool,
    /// The order of fields: `auto`, `file`, or names like `add_order.stock,add_order.price`
    #[arg(long, default_value = "auto")]
    order: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// switch.p4: P4_16 for v1model
    P4,
    /// switch.json and commands.txt: for simple_switch, without a P4 compiler
    Bmv2,
    /// p4info.txtpb and entries.txtpb: for P4Runtime
    #[value(name = "p4runtime")]
    P4Runtime,
}

impl From<Target> for target::Target {
    fn from(target: Target) -> target::Target {
        match target {
            Target::P4 => target::Target::P4,
            Target::Bmv2 => target::Target::Bmv2,
            Target::P4Runtime => target::Target::P4Runtime,
        }
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let loaded = Loaded::rules(std::slice::from_ref(&arguments.rules), &arguments.formats)?;
    let (compiler, choice) = loaded.compile(&arguments.order)?;
    let document = Document::new(&compiler);
    println!("{} rules, {} stages", compiler.rule_count(), document.stages.len());
    if let Some(choice) = choice {
        println!(
            "order: chosen with {} rules, which need {} entries; {} in the file's order",
            choice.sample, choice.entries, choice.entries_in_file_order
        );
    }
    println!(
        "{:<40} {:>6} {:>8} {:>10} {:>12} {:>11}",
        "stage", "kind", "entries", "as ternary", "ternary bits", "compressed"
    );
    for cost in &document.costs {
        let kind = format!("{:?}", cost.kind).to_lowercase();
        let compressed = cost.compressed.map.entries + cost.compressed.stage.entries;
        println!(
            "{:<40} {kind:>6} {:>8} {:>10} {:>12} {compressed:>11}",
            cost.variable, cost.entries, cost.ternary.entries, cost.ternary.bits
        );
    }
    let (states, leaves, groups) = (document.states, document.leaves.len(), document.groups.len());
    println!("{states} states, {leaves} of them ends; {groups} multicast groups");
    let Some(folder) = &arguments.out else { return Ok(()) };
    // All is made before anything is written, and an interruption waits for what is being written.
    let targets = Targets { messages: arguments.messages, ternary: arguments.tcam };
    let mut files = Vec::new();
    for target in arguments.target.iter().map(|target| target::Target::from(*target)) {
        let its = target::files(&compiler, target, &targets)
            .with_context(|| format!("the rules can't become a program for {}", target.name()))?;
        files.extend(its);
    }
    let _stop = StopSignal::install()?;
    outputs::make_folder(folder)?;
    outputs::write_json(&folder.join("tables.json"), &document)?;
    for file in files {
        outputs::write_text(&folder.join(file.name), &file.text)?;
    }
    Ok(())
}
