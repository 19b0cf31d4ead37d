//! Who may run a system test, and when.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

static MACHINE: Mutex<()> = Mutex::new(());

/// The machine is this test's own until the turn is dropped: system tests of one process run one after the other,
/// so that they don't starve each other of processors.
pub struct Turn(#[expect(dead_code, reason = "held for its drop")] MutexGuard<'static, ()>);

/// Waits for the test's turn if it can run here: as root, with all `tools` installed.
///
/// Otherwise says visibly that the test is skipped (past the test harness's capture) and gives `None`.
///
/// # Panics
///
/// If something is missing and `WEFT_REQUIRE_SYSTEM_TESTS=1` is set, as it is in continuous integration.
pub fn skip_unless_root(tools: &[&str]) -> Option<Turn> {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let missing = ["ip"].iter().chain(tools).filter(|tool| !is_installed(tool));
    turn_without((!root).then_some("root").into_iter().chain(missing.copied()).collect())
}

/// As [`skip_unless_root`], for a test that any user may run.
///
/// # Panics
///
/// As [`skip_unless_root`].
pub fn skip_unless_installed(tools: &[&str]) -> Option<Turn> {
    turn_without(tools.iter().filter(|tool| !is_installed(tool)).copied().collect())
}

fn turn_without(missing: Vec<&str>) -> Option<Turn> {
    if missing.is_empty() {
        return Some(Turn(MACHINE.lock().unwrap_or_else(PoisonError::into_inner)));
    }
    let missing = missing.join(", ");
    assert!(
        std::env::var("WEFT_REQUIRE_SYSTEM_TESTS").as_deref() != Ok("1"),
        "WEFT_REQUIRE_SYSTEM_TESTS=1, but this system test needs {missing}"
    );
    let test = std::thread::current().name().unwrap_or("this test").to_owned();
    // Not `eprintln!`: the test harness would swallow it. That standard error is closed is no reason to fail.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test} needs {missing}");
    None
}

/// Whether a tool is installed: looks along `PATH` and in the system folders that an ordinary user's `PATH` may lack.
pub fn is_installed(tool: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/sbin"]).any(|folder| Path::new(folder).join(tool).is_file())
}
