//! Whether live flows of one image can go on in another one: what an instance knows has to mean the same in both.

use crate::types::{FieldName, Format, Image, Place, RegisterType};
use crate::verify::VerifiedImage;

impl VerifiedImage {
    /// What keeps live flows of this image from going on in `next`: the first part in which what they know, or how long they
    /// live, is something else there. `None`: they can.
    ///
    /// Rows, conditions, templates, tables, initial values, scratch registers and debug points may be others, and there may
    /// be more notices.
    pub fn unlike(&self, next: &VerifiedImage) -> Option<&'static str> {
        let samples = |image: &Image| -> Vec<(String, i64)> {
            let name = |register: u16| image.registers[usize::from(register)].name.clone();
            image.debug.samples.iter().map(|sample| (name(sample.register), sample.interval)).collect()
        };
        let parts = [
            ("flow key's fields", key(self) == key(next)),
            ("flow table's limits", table(self) == table(next)),
            ("imported headers", imports(self).eq(imports(next))),
            ("states", self.states == next.states),
            ("registers", registers(self).eq(registers(next))),
            ("timers", self.timers == next.timers),
            ("packet slots", self.slots == next.slots),
            ("ranges", self.ranges == next.ranges),
            ("segments", self.segments == next.segments),
            ("turns", self.turns == next.turns),
            ("samples", samples(self) == samples(next)),
            ("notices", next.notices.starts_with(&self.notices)),
        ];
        parts.into_iter().find(|(_, alike)| !alike).map(|(part, _)| part)
    }
}

/// The fields of the flow key, by name, and whether its sides may be exchanged.
fn key(image: &Image) -> ([Vec<&FieldName>; 3], bool) {
    let named = |fields: &[u16]| fields.iter().map(|field| &image.fields[usize::from(*field)]).collect();
    let flow = &image.flow;
    ([named(&flow.common), named(&flow.source), named(&flow.destination)], flow.symmetric)
}

/// How many flows and timers there may be, and who has to go when.
fn table(image: &Image) -> impl PartialEq {
    let flow = &image.flow;
    (flow.expire, flow.hold, flow.max, flow.when_full.clone(), flow.max_timers)
}

fn imports(image: &Image) -> impl Iterator<Item = &Format> {
    image.formats.iter().filter(|format| format.place != Place::Builtin)
}

fn registers(image: &Image) -> impl Iterator<Item = (&str, RegisterType)> {
    image.registers.iter().filter(|register| !register.scratch).map(|register| (register.name.as_str(), register.kind))
}
