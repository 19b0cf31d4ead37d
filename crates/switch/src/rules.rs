//! The rules of a switch that another thread runs: they are kept up to date here, and each change is made ready for it.

use crate::pipeline::{Patch, Pipeline};
use crate::whole;
use std::collections::BTreeMap;
use weftwire_subscribe::compiler::{CallId, Compiler};
use weftwire_subscribe::rules::Call;
use weftwire_subscribe::tables::Delta;

/// The tables of a compiler's rules as a switch is to have them. What it gives out is for the switch to take over
/// ([`crate::SubscriptionSwitch::take`]), in order, beginning with [`RulesKeeper::all`].
#[derive(Debug)]
pub struct RulesKeeper {
    pipeline: Pipeline,
    /// The application's actions that rules have had.
    calls: BTreeMap<CallId, Call>,
    /// See [`whole::alike`].
    whole: bool,
}

/// Rules that were made ready for a switch. Once it has taken them over, what they have replaced.
#[derive(Debug)]
pub struct RulesChange {
    pub(crate) tables: Changed,
    pub(crate) calls: BTreeMap<CallId, Call>,
    pub(crate) whole: bool,
}

/// Of the tables.
#[derive(Debug)]
pub(crate) enum Changed {
    /// All, for a switch that had any rules of the same formats.
    All(Box<Pipeline>),
    /// These pieces, for one that had the rules before.
    Pieces(Patch),
}

impl RulesKeeper {
    /// Lays out what the compiler has.
    pub fn new(compiler: &Compiler) -> RulesKeeper {
        let pipeline = Pipeline::new(compiler);
        let calls = compiler.calls().map(|id| (id, compiler.call(id).clone())).collect();
        RulesKeeper { whole: whole::alike(compiler, pipeline.columns()), pipeline, calls }
    }

    /// All rules.
    pub fn all(&self) -> RulesChange {
        let tables = Changed::All(Box::new(self.pipeline.clone()));
        RulesChange { tables, calls: self.calls.clone(), whole: self.whole }
    }

    /// Follows the latest change of the compiler's rules, in time that goes with what it changes.
    pub fn follow(&mut self, compiler: &Compiler, delta: &Delta) -> RulesChange {
        let patch = self.pipeline.follow(compiler, delta);
        let ids = delta.leaves().flat_map(|set| compiler.actions(set).calls);
        let calls: BTreeMap<CallId, Call> = ids.map(|id| (id, compiler.call(id).clone())).collect();
        self.calls.extend(calls.clone());
        self.whole = whole::alike(compiler, self.pipeline.columns());
        RulesChange { tables: Changed::Pieces(patch), calls, whole: self.whole }
    }
}
