//! Subscription switches: message formats and rules.

use crate::file::{self, Kind};
use crate::{Catalog, CatalogError, Loaded, summary};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weftwire_subscribe::budget::{Budget, CompileError, Excess};
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::order::{self, Choice};
use weftwire_subscribe::{Compiler, MessageFormats, Rule, Watch, read_rules};
use weftwire_switch::application::Registry;
use weftwire_text::{Diagnostic, Severity, SourceMap};

/// Stands between the files of one text: it can't be in them.
const BETWEEN: &str = "\0";

/// In which order rules test fields.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FieldsInOrder {
    /// The best that is found.
    #[default]
    Auto,
    /// That of the formats.
    File,
    /// These first, with or without their headers' names.
    Named(Vec<String>),
}

impl FieldsInOrder {
    /// Reads `auto`, `file` or names with commas.
    pub fn parse(text: &str) -> FieldsInOrder {
        match text {
            "auto" => FieldsInOrder::Auto,
            "file" => FieldsInOrder::File,
            names => FieldsInOrder::Named(names.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }

    fn text(&self) -> String {
        match self {
            FieldsInOrder::Auto => "auto".to_owned(),
            FieldsInOrder::File => "file".to_owned(),
            FieldsInOrder::Named(names) => names.join(","),
        }
    }
}

/// How rules are compiled.
#[derive(Clone, Debug, Default)]
pub struct Compiling {
    /// The order of fields.
    pub order: FieldsInOrder,
    /// What it may cost.
    pub budget: Budget,
    /// Hears how far it is.
    pub watch: Watch,
}

/// Formats and rules from files.
#[derive(Debug)]
pub struct Rules {
    /// The messages.
    pub formats: MessageFormats,
    /// The rules, in the order of their files.
    pub rules: Vec<Rule>,
    /// The texts that places point into.
    pub sources: SourceMap,
    /// What is wrong or suspicious, as far as it was not reported.
    pub diagnostics: Vec<Diagnostic>,
}

impl Catalog<'_> {
    /// Reads formats alone.
    ///
    /// # Errors
    /// They cannot be read, or have errors, which are reported.
    pub fn formats(&self, paths: &[PathBuf]) -> Result<Rules, CatalogError> {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
        let read = |path: &PathBuf| Ok((path.to_string_lossy().into_owned(), text(path)?));
        let files: Vec<(String, String)> = paths.iter().map(read).collect::<Result<_, CatalogError>>()?;
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let Some(formats) = MessageFormats::read_all(&files, &mut sources, &mut diagnostics) else {
            (self.report)(&diagnostics, &sources);
            return Err(CatalogError::Wrong(format!("{}: {}", names(paths), summary(&diagnostics))));
        };
        Ok(Rules { formats, rules: Vec::new(), sources, diagnostics })
    }

    /// Reads formats and rules. Errors and warnings are reported.
    ///
    /// # Errors
    /// They cannot be read, or have errors.
    pub fn rules(&self, rules: &[PathBuf], formats: &[PathBuf]) -> Result<Rules, CatalogError> {
        let mut found = self.formats(formats)?;
        for path in rules {
            found.read(path)?;
        }
        self.reported(found, &names(rules))
    }

    /// The rules, unless there are errors in them.
    fn reported(&self, rules: Rules, names: &str) -> Result<Rules, CatalogError> {
        (self.report)(&rules.diagnostics, &rules.sources);
        match rules.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            true => Err(CatalogError::Wrong(format!("{names}: {}", summary(&rules.diagnostics)))),
            false => Ok(rules),
        }
    }

    /// Loads a switch that forwards by the rules in files. The first file gives it its name.
    ///
    /// # Errors
    /// As [`Catalog::rules`] and [`Catalog::tables`]; or a rule names an action that no switch can carry out.
    pub fn switch(
        &self,
        rules: &[PathBuf],
        formats: &[PathBuf],
        compiling: &Compiling,
    ) -> Result<Loaded, CatalogError> {
        let name = rules.first().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy().into_owned();
        self.compiled(name, &names(rules), &self.rules(rules, formats)?, &texts(rules)?, formats, compiling)
    }

    /// Loads a switch that forwards by the rules in the text that [`texts`] makes of their files.
    ///
    /// # Errors
    /// As [`Catalog::switch`].
    pub fn switch_of_text(
        &self,
        name: &str,
        text: &str,
        formats: &[PathBuf],
        compiling: &Compiling,
    ) -> Result<Loaded, CatalogError> {
        let mut found = self.formats(formats)?;
        for file in text.split(BETWEEN) {
            found.read_text(name, file);
        }
        let found = self.reported(found, name)?;
        self.compiled(name.to_owned(), name, &found, text, formats, compiling)
    }

    fn compiled(
        &self,
        name: String,
        files: &str,
        rules: &Rules,
        text: &str,
        formats: &[PathBuf],
        compiling: &Compiling,
    ) -> Result<Loaded, CatalogError> {
        let (compiler, _) = self.tables(rules, compiling)?;
        let wrong = |error| CatalogError::Rules { files: files.to_owned(), error };
        Registry::built_in().check_rules(&compiler).map_err(wrong)?;
        let all = [text, &texts(formats)?, &compiling.order.text()].join(BETWEEN);
        let digest = Sha256::digest(all).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Loaded::Subscriptions { name, digest, compiler: Arc::new(compiler) })
    }

    /// Compiles rules; says which order was chosen, if none was asked for.
    ///
    /// # Errors
    /// They are over the budget: the costly one is reported. Or the order names what is no field.
    pub fn tables(&self, rules: &Rules, compiling: &Compiling) -> Result<(Compiler, Option<Choice>), CatalogError> {
        let Compiling { budget, watch, .. } = compiling;
        let options = |order| Options { order, budget: *budget, watch: watch.clone(), ..Options::default() };
        let new = |order| Compiler::new(rules.formats.clone(), &options(order), &rules.rules).map(|it| (it, None));
        let compiled = match &compiling.order {
            FieldsInOrder::Auto => order::compile(&rules.formats, &options(None), &rules.rules)
                .map(|(compiler, choice)| (compiler, Some(choice))),
            FieldsInOrder::File => new(None),
            FieldsInOrder::Named(names) => {
                new(Some(names.iter().map(|name| rules.field(name)).collect::<Result<_, CatalogError>>()?))
            }
        };
        compiled.map_err(|(rule, error)| {
            let mut found = Diagnostic::error(rules.rules[rule].span, error.to_string());
            if let CompileError::OverBudget(Excess::Size | Excess::Steps, _) = error {
                found = found.help("--budget allows more, --order names another order of the fields");
            }
            (self.report)(&[found], &rules.sources);
            CatalogError::TooMuch
        })
    }
}

impl Rules {
    /// Reads one more file of rules.
    ///
    /// # Errors
    /// It cannot be read. What is wrong in it comes to the diagnostics.
    pub fn read(&mut self, path: &Path) -> Result<(), CatalogError> {
        self.read_text(&path.to_string_lossy(), &text(path)?);
        Ok(())
    }

    /// Reads one more file's text. What is wrong in it comes to the diagnostics.
    fn read_text(&mut self, name: &str, text: &str) {
        self.rules.extend(read_rules(name, text, &self.formats, &mut self.sources, &mut self.diagnostics));
    }

    /// The field of this name, with or without its header's.
    ///
    /// # Errors
    /// [`CatalogError::NoField`].
    pub fn field(&self, name: &str) -> Result<FieldId, CatalogError> {
        let found = match name.split_once('.') {
            Some((header, field)) => {
                self.formats.header_named(header).and_then(|header| self.formats.field_named(header, field))
            }
            None => match self.formats.fields_named(name) {
                [field] => Some(*field),
                _ => None,
            },
        };
        found.ok_or_else(|| CatalogError::NoField(name.to_owned()))
    }
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn text(path: &Path) -> Result<String, CatalogError> {
    let kind = if path.extension().is_some_and(|it| it == "p4") { Kind::Source } else { Kind::Rules };
    file::text(path, kind)
}

/// Several files of formats or rules as one text, which names of files are no part of.
///
/// # Errors
/// One cannot be read.
pub fn texts(paths: &[PathBuf]) -> Result<String, CatalogError> {
    let texts: Vec<String> = paths.iter().map(|path| text(path)).collect::<Result<_, CatalogError>>()?;
    Ok(texts.join(BETWEEN))
}
