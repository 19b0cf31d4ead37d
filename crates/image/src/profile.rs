//! Profiles: how large an image a platform takes.

use crate::limits;
use crate::types::Image;
use std::fmt;

/// What a platform has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Registers, scratch ones included.
    pub registers: usize,
    /// Conditions.
    pub conditions: usize,
    /// Rows.
    pub rows: usize,
    /// Operations of one row or preparation.
    pub operations: usize,
    /// Packet slots of an instance.
    pub slots: usize,
}

/// The software engines: as much as the verifier allows.
pub const SOFTWARE: Profile = Profile {
    name: "software",
    registers: limits::MAX_REGISTERS,
    conditions: limits::MAX_CONDITIONS,
    rows: limits::MAX_ROWS,
    operations: limits::MAX_OPERATIONS,
    slots: limits::MAX_SLOTS,
};

/// The hardware pipeline.
pub const FPGA: Profile = Profile { name: "fpga", registers: 16, conditions: 32, rows: 64, operations: 16, slots: 8 };

/// All profiles.
pub const PROFILES: [Profile; 2] = [SOFTWARE, FPGA];

/// One way in which an image is too large for a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excess {
    /// What there is too much of.
    pub what: String,
    /// How much the profile has room for.
    pub limit: usize,
    /// How much the image has.
    pub found: usize,
    /// Where in the document, e.g. `rows[12].operations`.
    pub place: String,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Excess { what, limit, found, place } = self;
        write!(f, "{place}: {found} {what}, {} more than the {limit} of the profile", found - limit)
    }
}

impl Profile {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<Profile> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// All ways in which `image` is too large; none if it fits.
    pub fn exceeded(&self, image: &Image) -> Vec<Excess> {
        let mut found = Vec::new();
        let mut check = |what: &dyn Fn() -> String, limit: usize, count: usize, place: &dyn Fn() -> String| {
            if count > limit {
                found.push(Excess { what: what(), limit, found: count, place: place() });
            }
        };
        let scratch = image.registers.iter().filter(|register| register.scratch).count();
        let registers = || format!("registers (of which {scratch} scratch)");
        check(&registers, self.registers, image.registers.len(), &|| "registers".into());
        check(&|| "conditions".into(), self.conditions, image.conditions.len(), &|| "conditions".into());
        check(&|| "rows".into(), self.rows, image.rows.len(), &|| "rows".into());
        check(&|| "packet slots".into(), self.slots, image.slots.len(), &|| "slots".into());
        for (index, row) in image.rows.iter().enumerate() {
            let place = || format!("rows[{index}].operations");
            check(&|| "operations".into(), self.operations, row.operations.len(), &place);
        }
        for (index, preparation) in image.preparations.iter().enumerate() {
            let place = || format!("preparations[{index}].operations");
            check(&|| "operations".into(), self.operations, preparation.operations.len(), &place);
        }
        found
    }
}
