//! Folders of programs: valid ones compile and verify; of invalid ones the diagnostics are the expected output, which is
//! reviewed like code. `UPDATE=1 cargo test -p weftwire-lang` writes it anew.
#![allow(clippy::disallowed_methods, reason = "tests read their fixtures")]

use std::path::{Path, PathBuf};
use std::{fs, io};
use weftwire_lang::{Compilation, Dialect, compile};
use weftwire_text::{LoadError, Loader};

struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        fs::read_to_string(self.0.join(name)).map_err(|_| io::Error::other("there is no such file").into())
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn programs(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("the folder is part of the repository");
    let mut names: Vec<String> =
        names.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| Dialect::of_file_name(name).is_some());
    names.sort();
    assert!(!names.is_empty());
    names
}

fn compile_file(folder: &Path, name: &str) -> Compilation {
    let dialect = Dialect::of_file_name(name).expect("filtered by ending");
    compile(name, dialect, &Folder(folder.to_path_buf()))
}

fn text(compilation: &Compilation) -> String {
    let lines: Vec<String> = compilation.diagnostics.iter().map(|found| found.to_text(&compilation.sources)).collect();
    lines.join("\n") + "\n"
}

#[test]
fn valid_programs_compile_and_verify() {
    for name in ["tests/valid", "tests/dialect", "../../examples"] {
        let folder = folder(name);
        for program in programs(&folder) {
            if program == "parts.xl" {
                continue;
            }
            let compilation = compile_file(&folder, &program);
            let Some(image) = &compilation.image else { panic!("{program}:\n{}", text(&compilation)) };
            let verified = image.clone().verify();
            assert!(verified.is_ok(), "{program}: {}", verified.err().map_or(String::new(), |error| error.to_string()));
            let again = compile_file(&folder, &program).image.expect("it compiled before");
            assert_eq!(image.to_json(), again.to_json(), "{program}: same source, same bytes");
        }
    }
}

#[test]
fn examples_compile_without_warnings() {
    let folder = folder("../../examples");
    for program in programs(&folder) {
        let compilation = compile_file(&folder, &program);
        assert!(compilation.diagnostics.is_empty(), "{}", text(&compilation));
    }
}

#[test]
fn invalid_programs_say_what_is_wrong() {
    let folder = folder("tests/invalid");
    for program in programs(&folder) {
        let compilation = compile_file(&folder, &program);
        assert!(compilation.image.is_none() || program.starts_with("warn"), "{program} compiled");
        let found = text(&compilation);
        let expected_file = folder.join(&program).with_extension("expected");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected_file, &found).expect("writable");
        }
        let expected = fs::read_to_string(&expected_file).unwrap_or_default();
        assert_eq!(found, expected, "{program}; run with UPDATE=1 if this is what it should say");
    }
}
