//! P4_16 as texts say it: a grammar, types, and an interpreter of both architectures.

mod architectures;
mod check;
mod run;
mod syntax;

pub use architectures::Kind;
pub use run::Switch;

/// The numbers that tables and actions have by annotations, by their names in full.
pub fn numbers(text: &str, kind: Kind) -> std::collections::BTreeMap<String, u128> {
    check(text, kind);
    let file = syntax::read(text);
    let of = |control: &syntax::Control| {
        control.ids.iter().map(|(name, id)| (format!("{}.{name}", control.name), *id)).collect::<Vec<_>>()
    };
    file.controls.iter().flat_map(of).collect()
}

/// Reads and checks a program.
pub fn check(text: &str, kind: Kind) {
    let file = syntax::read(text);
    check::Checker::new(&file, kind).program();
}
