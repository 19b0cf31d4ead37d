//! Changes from outside (semantics, rules D4 and A10).

use crate::run::Occasion;
use crate::state::FlowState;
use crate::{Executor, Runtime};
use weftwire_core::control::Done;
use weftwire_core::{Change, ControlError, FlowId, Outbox, Time};
use weftwire_image::Event;

impl<E: Executor> Runtime<E> {
    /// Carries a command out at `now`, unless it makes another image.
    pub(crate) fn change(&mut self, now: Time, change: &Change, out: &mut Outbox) -> Result<Done, ControlError> {
        match change {
            Change::SetRegister { flow, register, value } => self.set_register(now, *flow, register, *value, out)?,
            Change::SetEntry { table, index, value } => self.set_entry(table, *index, *value)?,
            Change::Delete { flow } => self.delete(*flow)?,
            Change::Port { port, change } => self.shared.ports.change(*port, *change),
            Change::Take { flow, clocks } => {
                let state = self.take(*flow, clocks.as_ref()).ok_or(ControlError::NoFlow(*flow))?;
                return Ok(Done::State(state.to_bytes(&self.program.state_layout)));
            }
            Change::Adopt { state, clocks } => {
                let state = FlowState::from_bytes(state, &self.program.state_layout);
                let adopted = state.and_then(|state| self.restore(now, &state, clocks.as_ref()));
                return adopted.map(Done::Flow).map_err(|error| ControlError::Unfit(error.to_string()));
            }
            Change::Rules { .. } | Change::Image { .. } | Change::SetParameters { .. } | Change::Chain { .. } => {
                return Err(ControlError::Unsupported(change.subject()));
            }
        }
        Ok(Done::Done)
    }

    /// Rule A10.
    pub(crate) fn set_register(
        &mut self,
        now: Time,
        flow: FlowId,
        register: &str,
        value: i64,
        out: &mut Outbox,
    ) -> Result<(), ControlError> {
        let instance = self.table.get_mut(flow).ok_or(ControlError::NoFlow(flow))?;
        let stored = || self.program.image.registers.iter().enumerate().filter(|(_, register)| !register.scratch);
        let Some((index, found)) = stored().find(|(_, known)| known.name == register) else {
            let known: Vec<&str> = stored().map(|(_, register)| register.name.as_str()).collect();
            return Err(ControlError::NoRegister { name: register.into(), known: known.join(", ") });
        };
        instance.registers[index] = found.kind.cut(value);
        if self.program.has_rows(instance.state, Event::Set) {
            self.event(flow, now, Event::Set, Occasion::default(), out);
        }
        Ok(())
    }

    fn set_entry(&mut self, name: &str, index: i64, value: i64) -> Result<(), ControlError> {
        let tables = &mut self.shared.tables;
        let entry = tables.iter_mut().find(|table| table.name == name).and_then(|table| {
            let place = usize::try_from(index.checked_sub(table.base)?).ok()?;
            table.entries.get_mut(place)
        });
        if let Some(entry) = entry {
            *entry = value;
            return Ok(());
        }
        let known = tables.iter().map(|table| {
            let last = i128::from(table.base) + table.entries.len() as i128 - 1;
            format!("{} ({} to {last})", table.name, table.base)
        });
        let known = known.collect::<Vec<_>>().join(", ");
        Err(ControlError::NoEntry {
            table: name.into(),
            index,
            known: if known.is_empty() { "none".into() } else { known },
        })
    }

    fn delete(&mut self, flow: FlowId) -> Result<(), ControlError> {
        let instance = self.table.remove(flow).ok_or(ControlError::NoFlow(flow))?;
        self.samples.end(flow);
        self.forget(instance);
        Ok(())
    }
}
