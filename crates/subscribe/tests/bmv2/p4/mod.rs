//! P4_16 as texts say it: a grammar, types, and an interpreter of both architectures.

mod architectures;
mod check;
mod run;
mod syntax;

pub use architectures::Kind;
pub use run::Switch;

/// Reads and checks a program.
pub fn check(text: &str, kind: Kind) {
    let file = syntax::read(text);
    check::Checker::new(&file, kind).program();
}
