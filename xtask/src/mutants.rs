//! Sees that the test vectors alone notice small mistakes in an engine: a copy of the engine is built with all mistakes of
//! [`MUTATIONS`] in it, and the vectors run in it with one of them at a time.

use crate::mutations::{MUTATIONS, Mutation};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A mistake may make an engine go on for ever; that is noticed, too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which mistake is made is an environment variable of the copy.
const SWITCH: &str = "
/// Whether the mistake of this number is made.
#[allow(clippy::disallowed_methods)]
pub(crate) fn mistake(number: usize) -> bool {
    static MADE: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *MADE.get_or_init(|| std::env::var(\"WEFTWIRE_MISTAKE\").ok()?.parse().ok()) == Some(number)
}
";

/// Builds the copy and runs the vectors in it, once for each mistake.
pub fn run(root: &Path) -> Result<()> {
    let copy = root.join("target/mutants");
    copy_engine(root, &copy)?;
    let test = build(&copy)?;
    ensure!(
        ends_well(&test, None)?,
        "the vectors fail without any mistake: run `cargo test -p weftwire-engine --test vectors`"
    );
    let mut unnoticed = Vec::new();
    for (number, mutation) in MUTATIONS.iter().enumerate() {
        let Mutation { file, original, mutated } = mutation;
        let noticed = !ends_well(&test, Some(number))?;
        let word = if noticed { "noticed  " } else { "UNNOTICED" };
        println!("{word} {file}: `{}` for `{}`", one_line(mutated), one_line(original));
        unnoticed.extend((!noticed).then_some(number));
    }
    println!("{} of {} mistakes are noticed", MUTATIONS.len() - unnoticed.len(), MUTATIONS.len());
    ensure!(unnoticed.is_empty(), "write vectors for the mistakes that nobody notices");
    Ok(())
}

/// A workspace of its own with the engine, all mistakes in it, and the vectors beside it.
fn copy_engine(root: &Path, copy: &Path) -> Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    let engine = copy.join("crates/engine");
    // And what the tests name by paths of their own.
    for folder in ["crates/engine", "vectors", "crates/image/tests/support", "fuzz/corpus/image_load"] {
        copy_folder(&root.join(folder), &copy.join(folder))?;
    }
    let crates = format!("path = \"{}/crates/", root.display());
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?.replace("path = \"crates/", &crates);
    let members = manifest.replace("members = [\"crates/*\", \"xtask\"]", "members = [\"crates/engine\"]");
    ensure!(members != manifest, "the workspace's members are named otherwise in Cargo.toml");
    fs::write(copy.join("Cargo.toml"), members)?;
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    for (number, mutation) in MUTATIONS.iter().enumerate() {
        let file = engine.join("src").join(mutation.file);
        let text = fs::read_to_string(&file).with_context(|| mutation.file)?;
        fs::write(&file, make(&text, number, mutation)?)?;
    }
    let library = engine.join("src/lib.rs");
    fs::write(&library, fs::read_to_string(&library)? + SWITCH)?;
    Ok(())
}

/// The text with a mistake that can be turned on.
fn make(text: &str, number: usize, mutation: &Mutation) -> Result<String> {
    let Mutation { file, original, mutated } = mutation;
    let (code, tests) = text.split_once("#[cfg(test)]").unwrap_or((text, ""));
    if code.matches(original).count() != 1 {
        bail!(
            "{file} has `{original}` {} times: name another stretch in xtask/src/mutations.rs",
            code.matches(original).count()
        );
    }
    let either = format!("if crate::mistake({number}) {{ {mutated} }} else {{ {original} }}");
    let statements = original.ends_with([';', '}']) && !original.starts_with("if ");
    let made = code.replacen(original, &if statements { either } else { format!("({either})") }, 1);
    Ok(if tests.is_empty() { made } else { format!("{made}#[cfg(test)]{tests}") })
}

/// Builds the test of the vectors; its path.
fn build(copy: &Path) -> Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments =
        ["test", "--offline", "--package", "weftwire-engine", "--test", "vectors", "--no-run", "--message-format=json"];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(copy)
        .env("RUSTFLAGS", "--cap-lints allow")
        .env("CARGO_TARGET_DIR", copy.with_file_name("mutants-target"))
        .stderr(Stdio::inherit())
        .output()
        .context("can't run cargo")?;
    ensure!(output.status.success(), "the engine with mistakes does not compile");
    let messages = String::from_utf8(output.stdout)?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == "vectors").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    executables.next_back().context("cargo names no test `vectors`")
}

/// Whether the vectors pass with this mistake.
fn ends_well(test: &Path, mistake: Option<usize>) -> Result<bool> {
    let mut command = Command::new(test);
    command.stdout(Stdio::null()).stderr(Stdio::null()).env_remove("WEFTWIRE_MISTAKE");
    if let Some(number) = mistake {
        command.env("WEFTWIRE_MISTAKE", number.to_string());
    }
    let mut child = command.spawn().context("can't run the test")?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > PATIENCE {
            end(&mut child)?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn end(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("can't read {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_and_statements_are_made_choices() {
        let made = |original, mutated| {
            make("a(b, c);\nd = 1;\n", 7, &Mutation { file: "x", original, mutated }).expect("it is there once")
        };
        assert_eq!(made("b", "0"), "a((if crate::mistake(7) { 0 } else { b }), c);\nd = 1;\n");
        assert_eq!(made("d = 1;", ""), "a(b, c);\nif crate::mistake(7) {  } else { d = 1; }\n");
        assert!(make("b b", 7, &Mutation { file: "x", original: "b", mutated: "" }).is_err());
    }

    /// What the mistakes stand in for is there, so that the list does not age unseen.
    #[test]
    fn every_mistake_has_its_place() {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engine/src");
        for mutation in &MUTATIONS {
            let text = fs::read_to_string(engine.join(mutation.file)).expect("the engine has this file");
            make(&text, 0, mutation).expect("one place");
            for part in [mutation.original, mutation.mutated] {
                let open = |bracket| part.matches(bracket).count();
                assert!(
                    open('{') == open('}') && open('(') == open(')'),
                    "`{part}` is no whole expression or statement"
                );
            }
        }
    }
}
