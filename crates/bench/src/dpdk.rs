//! Peers from DPDK: programs in C that are built where DPDK is installed.

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::run;

/// Compiles `benches/dpdk/NAME.c`. Returns the folder with the program of that name, of this process alone; it is the
/// caller's to remove.
pub fn compile(name: &str) -> Result<PathBuf> {
    let options = |kind: &str| -> Result<Vec<String>> {
        let mut command = Command::new("pkg-config");
        command.args([kind, "libdpdk"]);
        Ok(run(command, Duration::from_secs(10))?.split_whitespace().map(str::to_owned).collect())
    };
    let (flags, libraries) = (options("--cflags")?, options("--libs")?);
    let folder = std::env::temp_dir().join(format!("weft-bench-dpdk-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/dpdk").join(name).with_extension("c");
    let mut command = Command::new("cc");
    command.arg("-O2").args(flags).arg("-o").arg(folder.join(name)).arg(source).args(libraries);
    run(command, Duration::from_secs(120))?;
    Ok(folder)
}
