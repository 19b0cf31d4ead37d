//! `scripts/package.sh`: a program without symbols and line tables, and those in a file beside it.
#![allow(clippy::disallowed_methods, reason = "this test compiles and runs a program")]

use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use weftwire_testbed::skip_unless_installed;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/package.sh");

fn said(folder: &Path, program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).current_dir(folder).output()?;
    ensure!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn symbols_and_line_tables_are_kept_apart() -> Result<()> {
    let Some(_turn) = skip_unless_installed(&["cc", "objcopy", "readelf"]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("program.c"), "int main(void) { return 0; }\n")?;
    said(&folder, "cc", &["-g", "-o", "program", "program.c"])?;
    said(&folder, SCRIPT, &["program", "out"])?;
    said(&folder, "out/program", &[])?;
    let sections = |file: &str| said(&folder, "readelf", &["--sections", "--wide", file]);
    let (program, symbols) = (sections("out/program")?, sections("out/program.debug")?);
    for section in [".debug_line", ".symtab"] {
        ensure!(!program.contains(section) && symbols.contains(section), "{section}: {program} {symbols}");
    }
    ensure!(program.contains(".gnu_debuglink"), "{program}");
    ensure!(fs::metadata(folder.join("program"))?.len() > fs::metadata(folder.join("out/program"))?.len());
    Ok(())
}
