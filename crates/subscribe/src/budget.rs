//! What compiling rules may cost: memory and steps, never a clock, so that the same rules are refused everywhere.

use crate::clauses::TooManyClauses;

/// Most tests of one alternative of a filter, and most tests on a way through a diagram: what walks one goes as deep.
pub const MOST_TESTS: usize = 512;

/// Limits of one compilation, or of one change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Most edges, effects and unions remembered at a time; about 50 bytes each.
    pub size: usize,
    /// Most edges and effects looked at.
    pub steps: u64,
}

impl Default for Budget {
    /// What rules that are over it cost is in `docs/subscriptions.md`.
    fn default() -> Budget {
        Budget::of_size(Budget::DEFAULT_SIZE)
    }
}

impl Budget {
    /// The size of the default budget.
    pub const DEFAULT_SIZE: usize = 1 << 23;

    /// A budget of so many edges, with the steps that go with them.
    pub fn of_size(size: usize) -> Budget {
        Budget { size, steps: (size as u64).saturating_mul(16) }
    }

    /// No limits, for what was within a budget before.
    pub const UNLIMITED: Budget = Budget { size: usize::MAX, steps: u64::MAX };
}

/// What was over the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excess {
    /// Memory: [`Budget::size`].
    Size,
    /// Work: [`Budget::steps`].
    Steps,
    /// More than [`MOST_TESTS`] tests follow each other.
    Depth,
}

/// Why rules are not compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompileError {
    /// A filter has too many alternatives.
    #[error(transparent)]
    TooManyClauses(#[from] TooManyClauses),
    /// A filter tests too much at once.
    #[error("the filter has an alternative of more than {MOST_TESTS} tests; split the rule")]
    TooManyTests,
    /// All rules together cost too much, and this one the most of them.
    #[error(
        "the rules come to more than {}; this one adds most of it. Rules that test different fields multiply where they \
         overlap: narrow them, test the same fields in each, or order the fields otherwise",
        limit(*.0, *.1)
    )]
    OverBudget(Excess, Budget),
}

fn limit(excess: Excess, budget: Budget) -> String {
    match excess {
        Excess::Size => format!("{} edges of their diagram, which is the budget", budget.size),
        Excess::Steps => format!("{} steps of compiling, which is the budget", budget.steps),
        Excess::Depth => format!("{MOST_TESTS} tests that follow each other"),
    }
}
