//! The book's programs are true: every block of XL or of the published dialect in `docs/*.md` is compiled and verified.
//!
//! What the word behind the language says about a block:
//!
//! | block | what it is |
//! |---|---|
//! | `xl`, `xtra` | a whole program; it compiles without a warning |
//! | `xl,setting` | declarations that the page's later fragments may use |
//! | `xl,fragment` | a part of a program; it is made whole (see [`Part`]) and compiles |
//! | `text` that begins with `Machine` | what `weft explain` says of the last whole program above; the digest may differ |
//! | `xl,error`, `xtra,error` | a whole or a part that says what stands in the `text` block behind it |
//! | `xl` behind `<!-- output of COMMAND -->` | an excerpt of a file, which the tests of the book's commands compare with that file |
//! | `xl,file`, `p4` with a comment `// NAME` as first line | a file that the page's later programs may include or import |
//!
//! Other files come from `examples/`.
#![allow(clippy::disallowed_methods, reason = "tests read the book")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use weftwire_core::format::builtin_formats;
use weftwire_explain::{Form, explain};
use weftwire_lang::{Compilation, Dialect, compile};
use weftwire_testbed::blocks;
use weftwire_text::{LoadError, Loader, Severity};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a block that is no whole program is a part of; its first word tells.
enum Part {
    /// A program without states: an empty one is added.
    Declarations,
    /// Handlers, `enter` and `exit` of a state.
    Handlers,
    /// Statements of an `on packet`.
    Statements,
}

impl Part {
    fn of(text: &str) -> Part {
        const DECLARATIONS: &[&str] = &[
            "machine",
            "include",
            "import",
            "const",
            "condition",
            "value",
            "flow",
            "other",
            "register",
            "slot",
            "template",
            "timer",
            "table",
            "pacer",
            "action",
            "ranges",
            "receive",
            "segments",
            "turns",
            "shared",
            "interface",
            "module",
            "use",
            "in",
            "state",
            "initial",
        ];
        let code = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("//")).unwrap_or("");
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '#')).filter(|w| !w.is_empty());
        let first = words.next().unwrap_or("");
        let word = if first == "#debug" { words.next().unwrap_or("") } else { first };
        match word {
            "on" | "enter" | "exit" => Part::Handlers,
            _ if DECLARATIONS.contains(&word) || (first == "#debug" && word != "if") => Part::Declarations,
            _ => Part::Statements,
        }
    }

    /// The whole program around a part.
    fn complete(text: &str) -> String {
        let state = match Part::of(text) {
            Part::Declarations if text.contains("initial state") => return text.to_string(),
            Part::Declarations => return format!("{text}\ninitial state only {{ }}\n"),
            Part::Handlers => text.to_string(),
            Part::Statements => format!("on packet {{\n{text}\n}}"),
        };
        format!("include \"setting\";\ninitial state fragment {{\n{state}\n}}\n")
    }
}

/// The files that programs of one page see.
struct Files(BTreeMap<String, String>);

impl Loader for Files {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        match self.0.get(name) {
            Some(text) => Ok(text.clone()),
            None => Ok(fs::read_to_string(repository().join("examples").join(name))?),
        }
    }
}

/// Diagnostics as the book shows them: without places.
fn said(compilation: &Compilation) -> String {
    let lines = compilation.diagnostics.iter().map(|found| {
        let severity = if found.severity == Severity::Error { "error" } else { "warning" };
        let help = found.help.as_ref().map_or(String::new(), |help| format!("  help: {help}\n"));
        format!("{severity}: {}\n{help}", found.message)
    });
    lines.collect()
}

/// What is wrong with the programs of one page.
fn faults(page: &str) -> Vec<String> {
    let mut files = Files(BTreeMap::from([("setting".into(), String::new())]));
    let blocks = blocks(page);
    let mut faults = Vec::new();
    let mut explained = String::new();
    for (index, block) in blocks.iter().enumerate() {
        if block.note.starts_with("output of ") {
            continue;
        }
        let (language, kind) = block.language();
        let dialect = match language {
            "xl" => Dialect::Xl,
            "xtra" => Dialect::Xtra,
            "p4" => {
                files.0.extend(named_file(&block.text));
                continue;
            }
            "text" if block.text.starts_with("Machine ") => {
                if without_digest(&block.text) != without_digest(&explained) {
                    faults.push(format!("line {}: the rules are\n{explained}", block.line));
                }
                continue;
            }
            _ => continue,
        };
        let text = match (dialect, kind) {
            (_, "") | (Dialect::Xtra, "error") => block.text.clone(),
            (Dialect::Xl, "fragment" | "error") => Part::complete(&block.text),
            (Dialect::Xl, "setting") => {
                files.0.insert("setting".into(), block.text.clone());
                format!("{}\ninitial state only {{ }}\n", block.text)
            }
            (Dialect::Xl, "file") => {
                match named_file(&block.text) {
                    Some(file) => files.0.extend([file]),
                    None => faults.push(format!("line {}: the first line must be `// NAME`", block.line)),
                }
                continue;
            }
            _ => {
                faults.push(format!("line {}: `{}` is no kind of block", block.line, block.info));
                continue;
            }
        };
        files.0.insert("program".into(), text);
        let compilation = compile("program", dialect, &files);
        let said = said(&compilation);
        if kind.is_empty() {
            explained = compilation.image.as_ref().map_or(String::new(), |image| explain(image, Form::Text));
        }
        let fault = if kind == "error" {
            let expected = blocks.get(index + 1).filter(|next| next.info == "text").map_or("", |next| &next.text);
            (said != expected).then(|| format!("says\n{said}but the book has\n{expected}"))
        } else {
            match &compilation.image {
                None => Some(format!("does not compile:\n{said}")),
                Some(_) if kind.is_empty() && !said.is_empty() => Some(format!("has warnings:\n{said}")),
                Some(image) => image.clone().verify().err().map(|error| format!("is refused: {error}")),
            }
        };
        faults.extend(fault.map(|fault| format!("the program of line {} {fault}", block.line)));
    }
    faults
}

fn without_digest(rules: &str) -> Vec<&str> {
    rules.lines().filter(|line| !line.contains("Image sha256:")).collect()
}

/// The file that a block is, if its first line is a comment with a name.
fn named_file(text: &str) -> Option<(String, String)> {
    let name = text.lines().next()?.strip_prefix("// ")?;
    (!name.contains(' ')).then(|| (name.to_string(), text.to_string()))
}

fn pages() -> Vec<(String, String)> {
    let folder = fs::read_dir(repository().join("docs")).expect("the book is part of the repository");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).expect("readable");
    paths.iter().map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into(), text(path))).collect()
}

#[test]
fn every_program_of_the_book_compiles() {
    let mut found = Vec::new();
    for (name, text) in pages() {
        found.extend(faults(&text).into_iter().map(|fault| format!("docs/{name}: {fault}")));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The check itself can fail.
#[test]
fn faults_are_found() {
    let count = |page: &str| faults(page).len();
    assert_eq!(count("```xl\ninitial state s { }\n```\n"), 0);
    assert_eq!(count("```xl\ninitial state s { on nothing { } }\n```\n"), 1);
    assert_eq!(count("```xl\nregister unused: u8;\ninitial state s { }\n```\n"), 1);
    assert_eq!(count("<!-- output of sed -n 3,4p FILE -->\n```xl\ninitial state s { on nothing { } }\n```\n"), 0);
    assert_eq!(count("```xl,fragment\nsend packet to 1;\n```\n"), 0);
    assert_eq!(count("```xl,fragment\nsend parcel to 1;\n```\n"), 1);
    assert_eq!(count("```xl,setting\nslot parcel;\n```\n```xl,fragment\nsend parcel to 1;\n```\n"), 0);
    assert_eq!(count("```xl,error\nsend packet to 1;\n```\n```text\nerror: no\n```\n"), 1);
    assert_eq!(count("```xl,surprise\n```\n"), 1);
    assert_eq!(count("```xl\nmachine m;\ninitial state s { }\n```\n```text\nMachine n\n```\n"), 1);
    assert_eq!(count("```xtra\nState initial s { }\n```\n"), 0);
    assert_eq!(count("```xtra\nState initial s { on (nothing) { } }\n```\n"), 1);
}

/// The tables of header fields in the language's page list what there is: no more, no less, in order.
#[test]
fn the_field_tables_are_complete() {
    let page = fs::read_to_string(repository().join("docs/language.md")).expect("the page is part of the book");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(|cell| cell.trim().trim_end_matches('`'));
        let (field, bits) = (cells.next()?, cells.next()?);
        (field.contains('.') && bits.parse::<u16>().is_ok()).then(|| format!("{field} {bits}"))
    });
    let fields = builtin_formats().iter().flat_map(|format| {
        format.fields.iter().map(move |field| format!("{}.{} {}", format.name, field.name, field.width))
    });
    assert_eq!(rows.collect::<Vec<_>>(), fields.collect::<Vec<_>>());
}
