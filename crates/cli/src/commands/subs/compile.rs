//! `weft subs compile`: rules to tables.

use super::Loaded;
use crate::outputs;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weftwire_subscribe::document::Document;

/// Compile rules to tables, and say what they cost.
#[derive(Args)]
pub struct Arguments {
    /// The rules
    rules: PathBuf,
    /// The message formats: a .p4 file with annotations
    #[arg(long, value_name = "FILE")]
    format: PathBuf,
    /// Write tables.json into this folder
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The order of fields: `auto`, `file`, or names like `add_order.stock,add_order.price`
    #[arg(long, default_value = "auto")]
    order: String,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let loaded = Loaded::rules(&arguments.rules, &arguments.format)?;
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
    if let Some(folder) = &arguments.out {
        outputs::make_folder(folder)?;
        outputs::write_json(&folder.join("tables.json"), &document)?;
    }
    Ok(())
}
