//! How far a long compilation is, in steps: those that are done of those that are expected.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps between two words.
const PAUSE: u64 = 1 << 14;

/// Hears of compilations how far they are; without anybody to hear it costs nothing. See [`crate::compiler::Options`].
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<Meter>>);

struct Meter {
    done: AtomicU64,
    /// What there is in all, as far as that is known.
    expected: AtomicU64,
    tell: Box<dyn Fn(f64) + Send + Sync>,
}

impl Watch {
    /// Calls `tell` now and then with the share of the work that is done, from 0 to 1. How much there is in all is a guess
    /// that gets better on the way, so the share may also fall.
    pub fn new(tell: impl Fn(f64) + Send + Sync + 'static) -> Watch {
        let meter = Meter { done: AtomicU64::new(0), expected: AtomicU64::new(0), tell: Box::new(tell) };
        Watch(Some(Arc::new(meter)))
    }

    /// Whether anybody hears.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// So many steps are still to come.
    pub(crate) fn expect(&self, steps: u64) {
        if let Some(meter) = &self.0 {
            let expected = meter.done.load(Ordering::Relaxed).saturating_add(steps);
            meter.expected.store(expected, Ordering::Relaxed);
        }
    }

    /// So many steps more are done.
    pub(crate) fn spend(&self, steps: u64) {
        let Some(meter) = &self.0 else { return };
        let before = meter.done.fetch_add(steps, Ordering::Relaxed);
        if before / PAUSE != (before + steps) / PAUSE {
            let (done, expected) = (before + steps, meter.expected.load(Ordering::Relaxed));
            // Before anything is known of the whole there is nothing to tell.
            if expected > 0 {
                (meter.tell)(done as f64 / expected.max(done) as f64);
            }
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Watch").field(&self.is_on()).finish()
    }
}
