//! The command `ip`, fed with many lines at once.

use crate::error::LinuxError;
use crate::system::die_with_parent;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

/// Lines for one run of `ip -batch`.
#[derive(Default)]
pub struct Batch(String);

impl Batch {
    /// Adds a line.
    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "{line}");
    }

    /// Whether it has no lines.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs the lines, in the network namespace if one is named; the first that fails ends it.
    pub fn run(self, namespace: Option<&str>) -> Result<(), LinuxError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut command = Command::new("ip");
        if let Some(namespace) = namespace {
            command.args(["-netns", namespace]);
        }
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        die_with_parent(&mut command);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => LinuxError::Network(
                "there is no command `ip`; install iproute2 (Debian, Fedora: package iproute2 or iproute)".to_owned(),
            ),
            _ => LinuxError::system("run `ip -batch -`", error),
        };
        let mut child = command.spawn().map_err(failed)?;
        let input = child.stdin.take();
        let mut errors = String::new();
        let written = std::thread::scope(|scope| {
            // Beside the reader, so that neither pipe ever fills up. An `ip` that ends early closes the pipe.
            let writer = scope.spawn(|| input.map(|mut input| input.write_all(self.0.as_bytes())));
            if let Some(output) = &mut child.stderr {
                let _ = output.take(64 * 1024).read_to_string(&mut errors);
            }
            writer.join()
        });
        let status = child.wait().map_err(failed)?;
        if status.success() && matches!(written, Ok(Some(Ok(())))) {
            return Ok(());
        }
        Err(LinuxError::Network(self.explain(namespace, &errors)))
    }

    /// What `ip` says, with the line it speaks of.
    fn explain(&self, namespace: Option<&str>, errors: &str) -> String {
        let number = errors.rsplit_once("Command failed -:").and_then(|(_, rest)| rest.trim().parse::<usize>().ok());
        let line = number.and_then(|number| self.0.lines().nth(number.checked_sub(1)?)).unwrap_or("...");
        let said: Vec<&str> = errors.lines().filter(|line| !line.starts_with("Command failed")).collect();
        let place = namespace.map_or(String::new(), |namespace| format!(" in namespace {namespace}"));
        let hint = match said.join(" ") {
            said if said.contains("Operation not permitted") => "; networks need root",
            said if said.contains("Unknown device type") || said.contains("Operation not supported") => {
                "; this kernel lacks the feature (veth: CONFIG_VETH, bridge: CONFIG_BRIDGE, IPv6: CONFIG_IPV6)"
            }
            _ => "",
        };
        format!("`ip {line}`{place} failed: {}{hint}", said.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_line() {
        let mut batch = Batch::default();
        batch.line(format_args!("link show dev lo"));
        batch.line(format_args!("link show dev no-such-device"));
        let text = batch.run(None).map_or_else(|error| error.to_string(), |()| String::new());
        assert!(text.contains("link show dev no-such-device") || text.contains("no command `ip`"), "{text}");
    }
}
