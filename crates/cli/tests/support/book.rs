//! The pages of the book as scripts: what their blocks of commands do, and what they show that these print.
//!
//! Blocks of `sh` and `console` are run in the order of their page, in a folder that has the examples, each by a shell of its own
//! that stops at the first command that fails. In `console` the commands stand behind `$ `. A comment right in front of a
//! block says more:
//!
//! | comment | what it means |
//! |---|---|
//! | `<!-- file NAME -->` | the block is this file for the commands behind it |
//! | `<!-- output -->` | what the last commands print; `…` stands for anything |
//! | `<!-- output of COMMAND -->` | what this command prints |
//! | `<!-- fails -->` | the commands are to fail |
//! | `<!-- background -->` | the commands go on beside those that follow, from when they print something until the page ends |
//! | `<!-- with TOOL ... -->` | the commands need these tools |
//! | `<!-- root -->` | the commands need root and namespaces |
//! | `<!-- not run: WHY -->` | the commands are not run; their options are looked up in the command's help |

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use weftwire_testbed::{Block, blocks};

/// Which blocks are run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those that anybody can run.
    Everybody,
    /// Those that need root.
    Root,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages by name; those of the gallery by `gallery-` and their name.
pub fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut add = |prefix: &str, file: &Path| {
        if file.extension().is_some_and(|it| it == "md") {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            pages.insert(format!("{prefix}{name}"), fs::read_to_string(file).expect("a page is text"));
        }
    };
    add("", &repository().join("README.md"));
    for (folder, prefix) in [("docs", ""), ("docs/gallery", "gallery-")] {
        let files = fs::read_dir(repository().join(folder)).expect("the book is there");
        files.for_each(|file| add(prefix, &file.expect("readable").path()));
    }
    pages
}

/// The commands of a block, and what it shows that they print.
fn script(block: &Block) -> (String, Option<String>) {
    if block.language().0 != "console" {
        return (block.text.clone(), None);
    }
    let (mut commands, mut shown) = (String::new(), String::new());
    for line in block.text.lines() {
        let (to, line) = match line.strip_prefix("$ ") {
            Some(command) => (&mut commands, command),
            None => (&mut shown, line),
        };
        to.push_str(line);
        to.push('\n');
    }
    (commands, Some(shown).filter(|shown| !shown.is_empty()))
}

/// Runs a page's commands. Returns what is wrong with it, by line.
pub fn run(name: &str, page: &str, of: Of) -> Vec<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("book-{name}-{}", of as u8));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    let (mut wrong, mut printed, mut beside) = (Vec::new(), String::new(), Vec::new());
    for block in blocks(page) {
        let place = format!("{name}.md:{}", block.line);
        let mut told = |what: String| wrong.push(format!("{place}: {what}"));
        if let Some(file) = block.note.strip_prefix("file ") {
            prepare(&folder);
            fs::write(folder.join(file), &block.text).expect("written");
        } else if block.note == "output" {
            if of == Of::Everybody && !matches(&block.text, &printed) {
                told(format!("the page shows\n{}\nand what is printed is\n{printed}", block.text));
            }
        } else if let Some(command) = block.note.strip_prefix("output of ") {
            if of == Of::Everybody {
                prepare(&folder);
                let (_, output) = shell(&folder, command);
                if !matches(&block.text, &output) {
                    told(format!("the page shows\n{}\nand `{command}` prints\n{output}", block.text));
                }
            }
        } else if matches!(block.language().0, "sh" | "console" | "bash") {
            let (commands, shown) = script(&block);
            let needs: Vec<&str> = block.note.strip_prefix("with ").unwrap_or_default().split_whitespace().collect();
            let missing = needs.iter().find(|tool| !weftwire_testbed::is_installed(tool));
            if block.note.starts_with("not run: ") || (block.note == "root") != (of == Of::Root) {
                if of == Of::Everybody {
                    options(&commands).into_iter().for_each(&mut told);
                }
                continue;
            }
            if let Some(tool) = missing {
                let required = std::env::var("WEFT_REQUIRE_SYSTEM_TESTS").as_deref() == Ok("1");
                assert!(!required, "WEFT_REQUIRE_SYSTEM_TESTS=1, but {place} needs {tool}");
                eprintln!("SKIPPED: {place} needs {tool}");
                continue;
            }
            prepare(&folder);
            if block.note == "background" {
                match Beside::start(&folder, &commands, beside.len()) {
                    Ok(started) => beside.push(started),
                    Err(what) => told(what),
                }
                continue;
            }
            let (good, output) = shell(&folder, &commands);
            if good == (block.note == "fails") {
                told(format!("`{}` {}:\n{output}", commands.trim(), if good { "succeeds" } else { "fails" }));
            } else if let Some(shown) = shown.filter(|shown| !matches(shown, &output)) {
                told(format!("the page shows\n{shown}\nand what is printed is\n{output}"));
            }
            printed = output;
        }
    }
    wrong
}

/// A folder with the examples, in which pages' commands run.
fn prepare(folder: &Path) {
    if !folder.exists() {
        fs::create_dir_all(folder).expect("the build's folder can be written");
        let copied = Command::new("cp").arg("-r").arg(repository().join("examples")).arg(folder).status();
        assert!(copied.is_ok_and(|status| status.success()));
    }
}

/// A shell that runs commands, ended after a while.
fn script_of(folder: &Path, commands: &str) -> Command {
    let weft = Path::new(env!("CARGO_BIN_EXE_weft")).parent().expect("a folder");
    let path = format!("{}:{}", weft.display(), std::env::var("PATH").unwrap_or_default());
    // What still runs beside the shell ends with it.
    let prelude = "set -euo pipefail; exec 2>&1; sudo() { \"$@\"; }; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";
    let script = format!("{prelude}\n{commands}");
    let mut command = Command::new("timeout");
    command.args(["300", "bash", "-c", &script]).current_dir(folder).env("PATH", path).stdin(Stdio::null());
    command.env("LC_ALL", "C.UTF-8");
    command
}

/// Runs commands; whether they succeed, and what they print.
fn shell(folder: &Path, commands: &str) -> (bool, String) {
    let output = script_of(folder, commands).output().expect("bash starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Commands that go on beside others; they end with the page.
struct Beside(Child);

impl Beside {
    /// Starts them, and waits until they print something.
    fn start(folder: &Path, commands: &str, number: usize) -> Result<Beside, String> {
        let printed = folder.join(format!("beside-{number}.txt"));
        let file = fs::File::create(&printed).expect("written");
        let child = script_of(folder, commands).stdout(file).process_group(0).spawn().expect("bash starts");
        let mut beside = Beside(child);
        let text = || fs::read_to_string(&printed).unwrap_or_default();
        while text().is_empty() {
            if beside.0.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(format!("`{}` ends without a word", commands.trim()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        match beside.0.try_wait() {
            Ok(Some(status)) if !status.success() => Err(format!("`{}` fails: {}", commands.trim(), text())),
            _ => Ok(beside),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // `timeout` hands the signal on; the group is its own.
        let _ = Command::new("kill").args(["--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// Whether a text is the one shown, in which `…` stands for anything, and digests and spaces at ends of lines do not
/// count.
fn matches(shown: &str, text: &str) -> bool {
    let plain = |text: &str| -> String {
        // tshark's word for users like those of continuous integration.
        let lines = text.lines().filter(|line| !line.starts_with("Running as user \"root\""));
        let lines = lines.map(|line| match line.find("sha256:") {
            Some(at) => format!("{}sha256:…", &line[..at]),
            None => line.trim_end().to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    };
    let (shown, text) = (plain(shown), plain(text).replace("sha256:…", "sha256:"));
    let parts: Vec<&str> = shown.split('…').collect();
    let Some(mut rest) = text.strip_prefix(parts[0]) else { return false };
    for part in &parts[1..] {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || parts.len() > 1 && (parts[parts.len() - 1].is_empty() || text.ends_with(parts[parts.len() - 1]))
}

/// What is wrong with the options of each `weft` command, and with the names of examples.
fn options(commands: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in commands.replace("\\\n", " ").lines() {
        let line = line.split(" #").next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches(['[', ']', '"'])).collect();
        for word in words.iter().filter(|word| word.starts_with("examples/")) {
            let file = word.split([',', ';']).next().unwrap_or_default();
            if !repository().join(file).exists() {
                wrong.push(format!("there is no {file}"));
            }
        }
        let Some(at) = words.iter().position(|word| *word == "weft" || *word == "$weft") else { continue };
        let words = &words[at + 1..];
        let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        // As many names as are commands: each has its help.
        let mut names: Vec<&str> = words.iter().take_while(is_name).copied().collect();
        let help = loop {
            let output =
                Command::new(env!("CARGO_BIN_EXE_weft")).args(&names).arg("--help").output().expect("weft starts");
            let help = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() && help.contains(&format!("weft {}", names.join(" "))) || names.pop().is_none() {
                break help;
            }
        };
        let known = |option: &str| help.split([' ', ',', '\n']).any(|word| word == option);
        for word in words.iter().take_while(|word| **word != "--") {
            let option = word.split('=').next().unwrap_or_default();
            if option.len() > 1 && option.starts_with('-') && !known(option) {
                wrong.push(format!("`weft {}` has no {option}", names.join(" ")));
            }
        }
    }
    wrong
}
