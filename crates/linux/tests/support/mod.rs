//! Network namespaces, a bridge as the function under test, and the process that runs it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

pub mod bridge;
pub mod namespaces;
pub mod process;

/// Whether system tests can run here. Says so visibly if not; `WEFT_REQUIRE_SYSTEM_TESTS=1` makes that a failure.
pub fn can_run() -> bool {
    let ip = std::process::Command::new("ip").arg("-V").output().is_ok_and(|output| output.status.success());
    let able = weftwire_linux::privileges::is_root() && ip && namespaces::Namespace::new("probe").is_some();
    if !able {
        let message = "SKIPPED: needs root and network namespaces";
        assert!(std::env::var("WEFT_REQUIRE_SYSTEM_TESTS").as_deref() != Ok("1"), "{message}");
        eprintln!("{message}");
    }
    able
}
