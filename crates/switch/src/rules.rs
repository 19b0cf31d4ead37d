//! The rules of a switch that another thread runs: they are kept up to date here, and each change is made ready for it.

use crate::pipeline::{Memory, Patch, Pipeline, Touched};
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
    /// Since the last change was given out.
    touched: Touched,
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
    All(Pipeline),
    /// These pieces, for one that had the rules before.
    Pieces(Patch),
}

impl RulesKeeper {
    /// Lays out what the compiler has.
    pub fn new(compiler: &Compiler) -> RulesKeeper {
        let pipeline = Pipeline::new(compiler);
        let calls = compiler.calls().map(|id| (id, compiler.call(id).clone())).collect();
        RulesKeeper { whole: whole::alike(compiler, pipeline.columns()), pipeline, touched: Touched::default(), calls }
    }

    /// All rules.
    pub fn all(&self) -> RulesChange {
        self.with(Changed::All(self.pipeline.clone()))
    }

    /// Follows the latest change of the compiler's rules, in time that goes with what it changes.
    pub fn follow(&mut self, compiler: &Compiler, delta: &Delta) {
        self.pipeline.follow(compiler, delta, &mut self.touched);
        let ids = delta.leaves().flat_map(|set| compiler.actions(set).calls);
        self.calls.extend(ids.map(|id| (id, compiler.call(id).clone())));
        self.whole = whole::alike(compiler, self.pipeline.columns());
    }

    /// What has changed since the last change was given out, together with that one if no switch has taken it.
    pub fn change(&mut self, untaken: Option<RulesChange>) -> RulesChange {
        let mut touched = std::mem::take(&mut self.touched);
        match untaken.map(|change| change.tables) {
            Some(Changed::All(mut pipeline)) => {
                pipeline.take(&mut self.pipeline.pieces(touched), &mut Memory::default());
                self.with(Changed::All(pipeline))
            }
            Some(Changed::Pieces(patch)) => {
                touched.join(patch.into_touched());
                self.with(Changed::Pieces(self.pipeline.pieces(touched)))
            }
            None => self.with(Changed::Pieces(self.pipeline.pieces(touched))),
        }
    }

    fn with(&self, tables: Changed) -> RulesChange {
        RulesChange { tables, calls: self.calls.clone(), whole: self.whole }
    }
}
