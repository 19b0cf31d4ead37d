//! Programs in C use the shared object by its header, and as packetdrill does. Without a C compiler they are skipped, and say so.
#![allow(clippy::disallowed_methods, reason = "tests compile and run programs")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the shared object: that of this test's program.
fn built() -> PathBuf {
    let program = std::env::current_exe().expect("a path");
    program.parent().expect("a folder").to_owned()
}

/// Compiles a program. `None`: there is no compiler.
fn compile(name: &str, link: bool) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = built();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-pthread", "-I"]);
    compiler.arg(here().join("include")).arg(here().join("tests/c").join(format!("{name}.c"))).arg("-o").arg(&program);
    if link {
        compiler.arg("-L").arg(&built).arg("-lweft_shim").arg(format!("-Wl,-rpath,{}", built.display()));
    }
    let output = match compiler.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no C compiler: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn run(program: &Path, arguments: &[&Path]) {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
}

fn machine() -> PathBuf {
    here().join("../../examples/transports/tcp/tcp.xl")
}

#[test]
fn a_program_uses_the_header() {
    if let Some(program) = compile("sockets", true) {
        run(&program, &[&machine()]);
    }
}

#[test]
fn a_program_uses_the_callbacks_as_packetdrill_does() {
    if let Some(program) = compile("callbacks", false) {
        run(&program, &[&built().join("libweft_shim.so"), &machine()]);
    }
}
